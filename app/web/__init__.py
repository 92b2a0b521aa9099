"""The doors: what comes in over HTTP is handed to the domain, and its answer is put into bytes."""
