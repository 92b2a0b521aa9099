"""`python -m tests.live.short_lived SECONDS --flag value …`: `vacancy serve` whose certificates live only so long."""

import sys

from app.self_managed import Timing
from app.serve import run
from app.settings import settings_reading
from certs.exchange import Lifetimes


def timing(seconds: float) -> Timing:
    """A certificate is renewed after two thirds of its life, an authority after two of its certificates' lives."""
    lifetimes = Lifetimes(authority=3 * seconds, serving=seconds, overlap=seconds / 2)
    return Timing(first_look=0.2, look=0.5, settle=1.0, lifetimes=lifetimes)


if __name__ == "__main__":
    _, seconds, *words = sys.argv
    flags = {flag.removeprefix("--"): text for flag, text in zip(words[::2], words[1::2], strict=True)}
    sys.exit(run(settings_reading(flags, {}), timing(float(seconds))))
