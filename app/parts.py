"""Settings, put into the words of the rooms they concern; shared by the server and the commands that answer once."""

import time
from collections.abc import Callable

from app.admission.admit import Mode, Rules
from app.dra.explain import Audience
from app.dra.judgement import Policy, Source
from app.dra.scope import Scope
from app.settings import Settings


def judgement_policy(settings: Settings, source: Source | None = None) -> Policy:
    """What the platform team decided about judging; `source`: where there is no choice."""
    return Policy(
        source=source or Source(settings.source),
        max_age_seconds=settings.max_age,
        autoscaled=settings.autoscaled,
        dynamic=settings.dynamic,
        scope=Scope(schedulers=settings.schedulers, allow_queue_label=settings.allow_queue_label),
    )


def rules(settings: Settings) -> Rules:
    """What the platform team decided about refusing."""
    return Rules(
        mode=Mode(settings.mode),
        owners={owner: Mode(mode) for owner, mode in settings.owner_policy.items()},
        refuse_never_fits=settings.never_fits == "refuse",
        quota_words_for=settings.quota_words_for,
        warn_only_for=settings.warn_only_for,
        audience=readers(settings),
    )


def readers(settings: Settings) -> Audience:
    """What the platform team decided about words; who the reader is, the doors fill in."""
    everybodys = (("*", settings.options_text),) if settings.options_text else ()
    return Audience(
        advice=(*settings.options_text_for, *everybodys),
        page_url=settings.page_url,
        hide_names=settings.hide_names,
        queue_allowed=settings.allow_queue_label,
    )


def clock(settings: Settings) -> Callable[[], float]:
    """The judgement's time in epoch seconds: the real one, or one moment for ever."""
    moment = settings.now
    return time.time if moment is None else lambda: moment
