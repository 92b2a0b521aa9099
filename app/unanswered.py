"""Why a command has no answer."""


class NoAnswer(Exception):
    """The server or the cluster could not be asked, or did not answer like one. The message says why."""


class Unusable(Exception):
    """The question cannot be answered by anybody: an unreadable manifest, too large a text. The message says why."""
