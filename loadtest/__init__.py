"""Measuring, apart from testing: figures depend on the machine and are written down, never asserted as times."""
