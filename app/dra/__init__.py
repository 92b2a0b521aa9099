"""The domain: frozen values and pure functions. No I/O, no clock, no settings, no log, no async."""
