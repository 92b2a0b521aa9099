"""Names of objects that somebody else has written down, before they become part of a URL."""

import re

_SUBDOMAIN = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def is_name(text: str) -> bool:
    """Whether an object can have this name, a DNS subdomain. In a path another might mean something else."""
    return _SUBDOMAIN.fullmatch(text) is not None
