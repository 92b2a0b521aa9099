"""Flags and environment variables become one frozen `Settings`; every problem is reported at once.

The table `SETTINGS` is the only list of what can be set: flags, variables, help texts and documentation follow from it.
Only the composition root and the command line read settings; everybody else is handed values.
"""

import dataclasses
import math
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

MODES = ("enforce", "warn", "audit")


class BadSettings(Exception):
    """Settings that cannot be used. The message names each, what was found, and what was expected."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        heading = "1 bad setting" if len(problems) == 1 else f"{len(problems)} bad settings"
        super().__init__("\n  ".join((f"{heading}:", *problems)))


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """Where a listener listens. Port 0: any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a process was told. The meaning of each field is in the table below, under the same name."""

    manifests: Path | None
    now: float | None
    source: str
    max_age: float
    allow_queue_label: bool
    autoscaled: frozenset[str]
    dynamic: frozenset[str]
    schedulers: frozenset[str]
    options_text: str
    page_url: str
    hide_names: bool
    kubeconfig: Path | None
    context: str
    refresh_seconds: float
    mode: str
    owner_policy: Mapping[str, str]
    never_fits: str
    quota_words_for: tuple[str, ...]
    wake: bool
    listen: Address
    web_listen: Address
    tls_dir: Path | None
    log_format: str
    log_level: str


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """What may be written as a setting's value."""

    placeholder: str
    """Stands for the value in help texts."""
    expects: str
    """How an error message goes on after "expected"."""
    parse: Callable[[str], object]
    """Text to value; raises ValueError."""


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One row: `--name`, `VACANCY_NAME`, what it is when neither is given, and what it is good for."""

    name: str
    default: str
    """As one would write it; empty for none."""
    form: Form
    help: str
    serve_only: bool = False
    """Of no meaning to commands that answer once and end."""

    @property
    def flag(self) -> str:
        """`--kebab-case`."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """`VACANCY_…`."""
        return f"VACANCY_{self.field.upper()}"

    @property
    def field(self) -> str:
        """The field of `Settings`."""
        return self.name.replace("-", "_")


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """Settings as far as they can be read: whoever finds problems elsewhere can tell these in the same message."""

    settings: Settings
    """With the default in the place of what cannot be read."""
    unread: frozenset[str]
    """The fields that cannot be read."""
    problems: tuple[str, ...]
    """What is wrong with each of them, and what contradicts what."""


def read_settings(flags: Mapping[str, str], environment: Mapping[str, str]) -> Settings:
    """The settings of a command line and an environment. Raises `BadSettings`."""
    reading = settings_reading(flags, environment)
    if reading.problems:
        raise BadSettings(reading.problems)
    return reading.settings


def settings_reading(flags: Mapping[str, str], environment: Mapping[str, str]) -> Reading:
    """What a command line (name to text, only what was given) and an environment say; a flag wins.

    Variables that are no setting are none of our business: Kubernetes itself sets `VACANCY_SERVICE_HOST` and the like.
    """
    values: dict[str, object] = {}
    unread, problems = set(), []
    for setting in SETTINGS:
        if setting.name in flags:
            origin, text = setting.flag, flags[setting.name]
        else:
            origin, text = setting.variable, environment.get(setting.variable, setting.default)
        try:
            values[setting.field] = setting.form.parse(text.strip())
        except ValueError:
            problems.append(f"{origin}={_shown(text)}: expected {setting.form.expects}")
            unread.add(setting.field)
            values[setting.field] = setting.form.parse(setting.default)
    settings = Settings(**values)  # type: ignore[arg-type]  # the table gives each field its parser; a test compares them
    problems += _contradictions(settings, unread)
    return Reading(settings, frozenset(unread), tuple(problems))


def _contradictions(settings: Settings, unread: set[str]) -> Iterator[str]:
    """What is wrong with settings that can be read each."""
    is_live = settings.manifests is None
    if is_live and settings.now is not None:
        yield "--now without --manifests: expected both or neither, a live cluster has its own clock"
    if is_live and settings.max_age <= settings.refresh_seconds and not unread & {"max_age", "refresh_seconds"}:
        yield (
            f"--max-age={settings.max_age:g}: expected more than --refresh-seconds={settings.refresh_seconds:g}, "
            "else every count is too old before the next one"
        )
    if settings.listen == settings.web_listen and settings.listen.port != 0 and not unread & {"listen", "web_listen"}:
        yield f"--listen={settings.listen}: expected another address than --web-listen={settings.web_listen}"


def _shown(text: str) -> str:
    longest = 60
    return repr(text if len(text) <= longest else text[:longest] + "…")


# --- Parsers ----------------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return text


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _word(text: str, words: tuple[str, ...]) -> str:
    if text not in words:
        raise ValueError(text)
    return text


def _truth(text: str) -> bool:
    return _word(text.lower(), ("true", "false")) == "true"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(text)
    return seconds


def _time(text: str) -> float | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.timestamp()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _set(text: str) -> frozenset[str]:
    return frozenset(_names(text))


def _some(text: str) -> frozenset[str]:
    names = _set(text)
    if not names:
        raise ValueError(text)
    return names


def _owner_policy(text: str) -> dict[str, str]:
    given = {}
    for entry in _names(text):
        owner, _, mode = entry.partition("=")
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*(\.[a-z0-9.-]+)?|\*", owner):
            raise ValueError(entry)
        given[owner] = _word(mode, (*MODES, "off"))
    return given


def _one_line(text: str) -> str:
    if not (text.isascii() and (text.isprintable() or not text)):
        raise ValueError(text)
    return text


def _url(text: str) -> str:
    if text:
        url = urllib.parse.urlsplit(_one_line(text))
        if url.scheme not in {"http", "https"} or not url.hostname or " " in text:
            raise ValueError(text)
    return text


def _address(text: str) -> Address:
    match = re.fullmatch(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]\s]*)):(?P<port>[0-9]{1,5})", text)
    highest_port = 65535
    if not match or int(match["port"]) > highest_port:
        raise ValueError(text)
    return Address(match["v6"] or match["name"] or "0.0.0.0", int(match["port"]))  # noqa: S104 - ":8443" means all, as in Go


# --- The table --------------------------------------------------------------------------------------------------------


def _one_of(*words: str) -> Form:
    return Form("|".join(words), f"one of {', '.join(words)}", lambda text: _word(text, words))


_TRUTH = Form("true|false", "true or false", _truth)
_PATH = Form("PATH", "a path", _path)
_TEXT = Form("TEXT", "a text", _text)
_LINE = Form("TEXT", "one line of printable ASCII", _one_line)
_SECONDS = Form("SECONDS", "a number of seconds above 0", _seconds)
_TIME = Form("TIME", "a time like 2026-01-01T00:00:00Z", _time)
_URL = Form("URL", "an http or https address", _url)
_ADDRESS = Form("HOST:PORT", "HOST:PORT, :PORT or [IPV6]:PORT", _address)
_NAMES = Form("NAME,…", "names separated by commas", _set)
_ONE_NAME_OR_MORE = Form("NAME,…", "one name or more, separated by commas", _some)
_PATTERNS = Form("NAME,…", "user names separated by commas, * for any text", _names)
_OWNER_MODES = Form(
    "OWNER=MODE,…",
    "OWNER=MODE separated by commas, OWNER a kind like Job or Job.batch, Pod or *, MODE enforce, warn, audit or off",
    _owner_policy,
)

SETTINGS: tuple[Setting, ...] = (
    Setting("manifests", "", _PATH, "File or folder of YAML and JSON that stands in for the cluster."),
    Setting("now", "", _TIME, "Stop the clock at this time; only with --manifests."),
    Setting(
        "source",
        "auto",
        _one_of("pool-status", "witness", "both", "auto"),
        "What a refusal rests on: pool-status (the cluster's own count), witness (the live view), both, or auto: "
        "per driver the strictest there is.",
    ),
    Setting("max-age", "90", _SECONDS, "Age at which a pool status is no longer believed."),
    Setting(
        "allow-queue-label",
        "true",
        _TRUTH,
        "Whether pods with label gpu-vacancy.dev/queue=true are admitted without a look.",
    ),
    Setting(
        "autoscaled",
        "",
        _NAMES,
        "Drivers and device classes whose nodes an autoscaler adds: pods that ask for them are never refused.",
    ),
    Setting("dynamic", "", _NAMES, "Drivers and device classes whose devices appear on demand: not judged."),
    Setting(
        "schedulers",
        "default-scheduler",
        _ONE_NAME_OR_MORE,
        "Schedulers that allocate devices as kube-scheduler does; pods of others are not judged.",
    ),
    Setting(
        "options-text",
        "",
        _LINE,
        "What a refusal advises; empty: to try again later, to wait in the queue, or to run on CPU.",
    ),
    Setting("page-url", "", _URL, "Address of the capacity page, named in refusals."),
    Setting("hide-names", "false", _TRUTH, "Leave out the names of pools and nodes in all answers."),
    Setting("kubeconfig", "", _PATH, "Kubeconfig of the cluster."),
    Setting("context", "", _TEXT, "Context of the kubeconfig."),
    Setting("refresh-seconds", "60", _SECONDS, "Time between two pool status requests to a driver.", serve_only=True),
    Setting(
        "mode",
        "enforce",
        _one_of(*MODES),
        "What happens to pods that get no device, where the request's path does not say.",
        serve_only=True,
    ),
    Setting(
        "owner-policy",
        "",
        _OWNER_MODES,
        "Strictest mode by kind of a pod's controller; Pod: none, *: any other. Not named: enforce for Pod and the "
        "controllers of Kubernetes, warn for every other.",
        serve_only=True,
    ),
    Setting(
        "never-fits",
        "warn",
        _one_of("warn", "refuse"),
        "What happens to pods that ask for more devices than any node has.",
        serve_only=True,
    ),
    Setting(
        "quota-words-for",
        "system:serviceaccount:argo:argo,system:serviceaccount:*:*argo-workflows-workflow-controller,"
        "system:serviceaccount:*:tekton-pipelines-controller",
        _PATTERNS,
        "Users that try again only after a quota error: their refusals say 'exceeded quota'.",
        serve_only=True,
    ),
    Setting("wake", "true", _TRUTH, "Wake the owners of refused pods when a device frees.", serve_only=True),
    Setting("listen", "0.0.0.0:8443", _ADDRESS, "Address of the webhook (TLS).", serve_only=True),
    Setting("web-listen", "0.0.0.0:8080", _ADDRESS, "Address of page, API, probes and metrics.", serve_only=True),
    Setting(
        "tls-dir",
        "",
        _PATH,
        "Folder with tls.crt and tls.key; left out with --manifests, a throw-away pair is made.",
        serve_only=True,
    ),
    Setting("log-format", "json", _one_of("json", "text"), "Form of the log.", serve_only=True),
    Setting(
        "log-level",
        "info",
        _one_of("debug", "info", "warning", "error"),
        "Least severe lines to log.",
        serve_only=True,
    ),
)
