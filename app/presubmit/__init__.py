"""The wire of the pre-submit check: manifests in, a report out. Pure: whoever calls reads the bytes and the clock."""
