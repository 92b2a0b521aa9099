"""The Kubernetes API, and the files that stand in for it: everything that is read from a cluster comes in here."""
