"""TLS of the webhook's listener: which certificate a new connection is shown."""
