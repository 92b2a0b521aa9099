"""Why a command has no answer, and the exit codes that say so."""

BAD_USAGE = 2
"""Arguments, settings or input that cannot be used."""

NO_ANSWER = 3
"""Also for a mistake of ours: 1 would be an answer."""


class NoAnswer(Exception):
    """The server or the cluster could not be asked, or did not answer like one. The message says why."""


class Unusable(Exception):
    """The question cannot be answered by anybody: an unreadable manifest, too large a text. The message says why."""
