"""Which version this is."""

import importlib.metadata


def version() -> str:
    """The installed version; a checkout that is not installed has none."""
    try:
        return importlib.metadata.version("vacancy")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
