"""Flags and environment variables become one frozen `Settings`; every problem is reported at once.

The table `SETTINGS` is the only list of what can be set: flags, variables, help texts and documentation follow from it.
Only the composition root and the command line read settings; everybody else is handed values.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from app import forms
from app.forms import MODES, Address, Form, Namespaced
from app.wording import LIMIT, PAGE, Faults, Texts, Wording

__all__ = [
    "MODES",
    "SETTINGS",
    "Address",
    "BadSettings",
    "Namespaced",
    "Reading",
    "Setting",
    "Settings",
    "read_settings",
    "settings_reading",
]


class BadSettings(Exception):
    """Settings that cannot be used. The message names each, what was found, and what was expected."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        heading = "1 bad setting" if len(problems) == 1 else f"{len(problems)} bad settings"
        super().__init__("\n  ".join((f"{heading}:", *problems)))


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
    options_text: Wording | None
    options_text_for: Texts
    page_url: str
    hide_names: bool
    kubeconfig: Path | None
    context: str
    withheld: frozenset[str]
    refresh_seconds: float
    mode: str
    owner_policy: Mapping[str, str]
    never_fits: str
    quota_words_for: tuple[str, ...]
    warn_only_for: tuple[str, ...]
    wake: bool
    listen: Address
    web_listen: Address
    tls_dir: Path | None
    tls_secret: Namespaced | None
    webhooks: tuple[str, ...]
    log_format: str
    log_level: str


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
    unread: set[str] = set()
    problems: list[str] = []
    for setting in SETTINGS:
        if setting.name in flags:
            origin, text = setting.flag, flags[setting.name]
        else:
            origin, text = setting.variable, environment.get(setting.variable, setting.default)
        try:
            values[setting.field] = setting.form.parse(text.strip())
        except ValueError as error:
            faults = error.sentences if isinstance(error, Faults) else (f"expected {setting.form.expects}",)
            problems += (f"{origin}={_shown(text)}: {fault}" for fault in faults)
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
    if settings.tls_secret and settings.tls_dir and not unread & {"tls_secret", "tls_dir"}:
        yield f"--tls-secret={settings.tls_secret} with --tls-dir={settings.tls_dir}: expected one of them"
    if settings.tls_secret and not settings.webhooks and not unread & {"tls_secret", "webhooks"}:
        yield (
            f"--tls-secret={settings.tls_secret} without --webhooks: expected the configurations that send to us, "
            "they name the server and are told whom to trust"
        )
    yield from _unfit_advice(settings, unread)


def _unfit_advice(settings: Settings, unread: set[str]) -> Iterator[str]:
    """What is wrong with advice once it is known where the page is."""
    page = settings.page_url
    texts = {"--options-text": settings.options_text} if settings.options_text else {}
    texts |= {f"--options-text-for={namespace}": text for namespace, text in settings.options_text_for}
    for where, text in texts.items() if "page_url" not in unread else ():
        if PAGE in text.fields and not page:
            yield f"{where}: found {{{PAGE}}}, expected --page-url as well"
        elif (length := len(text.longest(page))) > LIMIT:
            yield f"{where}: {length} characters with the link and the longest names, expected at most {LIMIT}"


def _shown(text: str) -> str:
    longest = 60
    return repr(text if len(text) <= longest else text[:longest] + "…")


# --- The table --------------------------------------------------------------------------------------------------------

SETTINGS: tuple[Setting, ...] = (
    Setting("manifests", "", forms.PATH, "File or folder of YAML and JSON that stands in for the cluster."),
    Setting("now", "", forms.TIME, "Stop the clock at this time; only with --manifests."),
    Setting(
        "source",
        "auto",
        forms.one_of("pool-status", "witness", "both", "auto"),
        "What a refusal rests on: pool-status (the cluster's own count), witness (the live view), both, or auto: "
        "per driver the strictest there is.",
    ),
    Setting("max-age", "90", forms.SECONDS, "Age at which a pool status is no longer believed."),
    Setting(
        "allow-queue-label",
        "true",
        forms.TRUTH,
        "Whether pods with label gpu-vacancy.dev/queue=true are admitted without a look.",
    ),
    Setting(
        "autoscaled",
        "",
        forms.DRIVERS_OR_CLASSES,
        "Drivers and device classes (not resources) whose nodes an autoscaler adds: pods that ask for them are never "
        "refused.",
    ),
    Setting(
        "dynamic",
        "",
        forms.DRIVERS_OR_CLASSES,
        "Drivers and device classes (not resources) whose devices appear on demand: not judged.",
    ),
    Setting(
        "schedulers",
        "default-scheduler",
        forms.ONE_NAME_OR_MORE,
        "Schedulers that allocate devices as kube-scheduler does; pods of others are not judged.",
    ),
    Setting(
        "options-text",
        "",
        forms.ADVICE,
        "What a refusal advises; empty: to try again later, to wait in the queue, or to run on CPU. "
        "{namespace}, {name}, {class}, {count}, {total} and {page} are filled in.",
    ),
    Setting(
        "options-text-for",
        "",
        forms.ADVICE_BY_NAMESPACE,
        "The same for some namespaces, a line each; * is any text, and the longest name that matches counts.",
    ),
    Setting("page-url", "", forms.URL, "Address of the capacity page, named in refusals."),
    Setting("hide-names", "false", forms.TRUTH, "Leave out the names of pools and nodes in all answers."),
    Setting("kubeconfig", "", forms.PATH, "Kubeconfig of the cluster."),
    Setting("context", "", forms.TEXT, "Context of the kubeconfig."),
    Setting(
        "withheld",
        "",
        forms.some_of("claims", "nodes", "taint-rules"),
        "What there are no rights to read, and so is not read.",
        serve_only=True,
    ),
    Setting(
        "refresh-seconds", "60", forms.SECONDS, "Time between two pool status requests to a driver.", serve_only=True
    ),
    Setting(
        "mode",
        "enforce",
        forms.one_of(*MODES),
        "What happens to pods that get no device, where the request's path does not say.",
        serve_only=True,
    ),
    Setting(
        "owner-policy",
        "",
        forms.OWNER_MODES,
        "Strictest mode by kind of a pod's controller; Pod: none, *: any other. Not named: enforce for Pod and the "
        "controllers of Kubernetes, warn for every other.",
        serve_only=True,
    ),
    Setting(
        "never-fits",
        "warn",
        forms.one_of("warn", "refuse"),
        "What happens to pods that ask for more devices than any node has.",
        serve_only=True,
    ),
    Setting(
        "quota-words-for",
        "system:serviceaccount:argo:argo,system:serviceaccount:*:*argo-workflows-workflow-controller,"
        "system:serviceaccount:*:tekton-pipelines-controller",
        forms.PATTERNS,
        "Users that try again only after a quota error: their refusals say 'exceeded quota'.",
        serve_only=True,
    ),
    Setting(
        "warn-only-for",
        "system:serviceaccount:*:hub",
        forms.PATTERNS,
        "Users whose pods are warned about and not refused, for they take a refusal as final.",
        serve_only=True,
    ),
    Setting("wake", "true", forms.TRUTH, "Wake the owners of refused pods when a device frees.", serve_only=True),
    Setting("listen", "0.0.0.0:8443", forms.ADDRESS, "Address of the webhook (TLS).", serve_only=True),
    Setting("web-listen", "0.0.0.0:8080", forms.ADDRESS, "Address of page, API, probes and metrics.", serve_only=True),
    Setting(
        "tls-dir",
        "",
        forms.PATH,
        "Folder with tls.crt and tls.key; left out with --manifests, a throw-away pair is made.",
        serve_only=True,
    ),
    Setting(
        "tls-secret",
        "",
        forms.SECRET,
        "Secret in which Vacancy keeps an authority and certificates of its own, and renews them; needs --webhooks.",
        serve_only=True,
    ),
    Setting(
        "webhooks",
        "",
        forms.OBJECTS,
        "ValidatingWebhookConfigurations that send to us; with --tls-secret their caBundle is kept in step.",
        serve_only=True,
    ),
    Setting("log-format", "json", forms.one_of("json", "text"), "Form of the log.", serve_only=True),
    Setting(
        "log-level",
        "info",
        forms.one_of("debug", "info", "warning", "error"),
        "Least severe lines to log.",
        serve_only=True,
    ),
)
