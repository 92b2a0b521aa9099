"""What the log says of an exception that nobody expected."""

import traceback
from pathlib import Path


def place(error: Exception) -> str:
    """Its type, and where it happened. Not its text, which may quote a tenant's object, or a key."""
    while isinstance(error, ExceptionGroup):  # of a task group, which is not where it happened
        error = error.exceptions[0]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).stem}.{frame.name}, line {frame.lineno}"
