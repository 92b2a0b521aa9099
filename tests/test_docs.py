"""The documentation names what there is and nothing else, and its links lead somewhere; `docs` runs its commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app import cli, commands, serve
from app.admission.admit import DEFAULT_OWNERS, QUOTA_WORDS_FOR, Rules, audit_annotations
from app.admission.review import MAX_BODY_BYTES, decode_review
from app.audit_log import MAX_LINE_BYTES
from app.cluster.manifests import MAX_FILE_BYTES
from app.cluster.wake import ANNOTATION
from app.dra import explain
from app.dra.capacity import capacity
from app.dra.demand import Lookups
from app.dra.explain import Audience
from app.dra.judgement import Policy, Source, judge
from app.dra.reasons import Reason
from app.dra.scope import QUEUE_LABEL
from app.dra.vacancy import Vacancy
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.dra.wake import End, WakeQueue
from app.embedded import Embedded
from app.ledger.events import PodOutcome
from app.ledger.ledger import MAX_ROWS, REMEMBERED
from app.ledger.report import COLUMNS
from app.listeners import HEAD_SECONDS, MAX_WEB_HEAD_BYTES
from app.metrics import CertificateCounts, DoorCounts, Metrics, RiverCounts, WatchCounts
from app.presubmit.report import EXIT_CODE_UNKNOWN_STRICT, EXIT_CODES
from app.settings import SETTINGS, read_settings
from app.unanswered import BAD_USAGE, NO_ANSWER
from app.web.admit import AdmissionDoor
from app.web.application import BODY_SECONDS
from app.web.check import (
    AT_ONCE,
    MAX_ANSWER_BYTES,
    MAX_ASKS,
    MAX_ASKS_OF_TEXT,
    MAX_BYTES,
    MAX_CLAIM_BYTES,
    MAX_NAMES,
    MAX_PODS,
    MAX_TEMPLATE_BYTES,
    WAITING_AT_MOST,
)
from app.web.probes import Probes
from app.wording import LENGTHS, LIMIT, PAGE
from certs.exchange import CHANGES, DAY, Lifetimes
from tests.story import stories
from tests.web.example import asked
from tests.web.example import example as application

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference.md"
CONCEPTS = ROOT / "docs" / "concepts.md"
LEDGER = ROOT / "docs" / "ledger.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")])
INTERRUPTED, UNREAD = 130, 141  # typer's, and those of shells: 128 and the number of the signal
NOW = 1767268800.0  # 2026-01-01T12:00:00Z, the example's time


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, cell by cell, without the marks of code."""
    _, found, below = page.read_text("utf-8").partition(f"# {heading}\n")
    assert found, f"{page.name} has no heading {heading!r}"
    lines = re.search(r"^\|.*(?:\n\|.*)*", below, re.MULTILINE)
    assert lines, f"{page.name} has no table below {heading!r}"
    _, _, *rows = lines[0].splitlines()
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows]


def column(page: Path, heading: str, number: int = 0) -> list[str]:
    return [row[number] for row in table(page, heading)]


@pytest.fixture(scope="module")
def example() -> Embedded:
    return Embedded(ROOT / "examples" / "cluster", Policy(), lambda: NOW)


# --- Reference: what can be set ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heading", "serve_only"), [("Of every command", False), ("Of `serve`", True)])
def test_settings_are_documented_with_variable_and_default(heading: str, serve_only: bool) -> None:  # noqa: FBT001 - a row
    known = [[row.flag, row.variable, row.default] for row in SETTINGS if row.serve_only is serve_only]
    assert [row[:3] for row in table(REFERENCE, heading)] == known


def test_users_that_wait_for_quota_are_the_same_in_the_settings_and_in_the_rules() -> None:
    assert read_settings({}, {}).quota_words_for == QUOTA_WORDS_FOR


def test_fields_of_advice_are_documented() -> None:
    assert column(REFERENCE, "Advice") == [f"{{{field}}}" for field in (*LENGTHS, PAGE)]


def test_modes_of_owners_are_documented() -> None:
    assert dict(table(REFERENCE, "Owner policy")) == DEFAULT_OWNERS


def test_sources_are_documented() -> None:
    assert {text.split()[0] for text in column(CONCEPTS, "Sources")} == set(Source)


# --- Reference: what can be asked -------------------------------------------------------------------------------------


def test_commands_are_documented() -> None:
    verbs = {info.callback.__name__ for info in cli.app.registered_commands if info.callback}
    assert {text.split()[1] for text in column(REFERENCE, "Commands")} == verbs


def test_options_of_commands_are_documented() -> None:
    of_settings = {row.flag for row in SETTINGS}
    commands_by_verb = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]  # a group has them
    known = {
        (", ".join(sorted(option.opts, key=len)), verb)
        for verb, command in commands_by_verb.items()
        for option in command.params
        if option.param_type_name == "option" and not of_settings.intersection(option.opts)
    }
    rows = table(REFERENCE, "Options")
    assert {(options, verb) for options, verbs, _ in rows for verb in verbs.split(", ")} == known


def test_exit_codes_are_documented() -> None:
    documented = {(int(code), verb) for code, verbs, _ in table(REFERENCE, "Exit codes") for verb in verbs.split(", ")}
    of_check = {*EXIT_CODES.values(), EXIT_CODE_UNKNOWN_STRICT, BAD_USAGE, NO_ANSWER, INTERRUPTED, UNREAD}
    assert {code for code, verb in documented if verb in {"check", "all"}} == of_check
    of_explain = {0, commands.NOT_KNOWN, BAD_USAGE, NO_ANSWER, INTERRUPTED, UNREAD}
    assert {code for code, verb in documented if verb in {"explain", "all"}} == of_explain


def test_what_the_webhook_listener_serves_is_documented(example: Embedded) -> None:
    door = AdmissionDoor(
        rules=Rules(),
        world=example.latest.get,
        reader=example,
        now=lambda: NOW,
        counts=DoorCounts(),
        probes=Probes(),
    )
    served = {f"POST {path}" for path in door._rules}  # noqa: SLF001 - the only list there is
    assert set(column(REFERENCE, "Webhook listener")) == served


def test_what_the_web_listener_serves_is_documented() -> None:
    description = "/openapi.json"
    paths = asked(application(), "GET", description).json()["paths"]
    served = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert set(column(REFERENCE, "Web listener")) == {*served, f"GET {description}"}


def test_limits_are_documented() -> None:
    mebibyte = 1024 * 1024
    assert column(REFERENCE, "Limits", 1) == [
        f"{MAX_BODY_BYTES // mebibyte} MiB",
        f"{HEAD_SECONDS:g} s",
        f"{MAX_WEB_HEAD_BYTES // 1024} KiB",
        f"{MAX_BYTES // mebibyte} MiB",
        f"{BODY_SECONDS:g} s",
        f"{AT_ONCE}, {WAITING_AT_MOST}",
        str(MAX_PODS),
        f"{MAX_TEMPLATE_BYTES // mebibyte} MiB",
        str(MAX_ASKS),
        str(MAX_ASKS_OF_TEXT),
        str(MAX_NAMES),
        f"{MAX_CLAIM_BYTES // 1024} KiB",
        f"{MAX_ANSWER_BYTES // mebibyte} MiB",
        f"{MAX_FILE_BYTES // mebibyte} MiB",
        f"{explain.SENTENCE_LIMIT} characters",
        f"{LIMIT} characters",
        f"{explain.WARNING_LIMIT} characters",
        str(explain.WARNINGS_LIMIT),
        f"{serve.DRAIN_SECONDS:g} s; a second signal ends it at once",
    ]


# --- Reference: what can be read --------------------------------------------------------------------------------------


def test_reasons_are_documented() -> None:
    assert column(REFERENCE, "Reasons") == [str(reason) for reason in Reason]


def test_a_reason_has_the_verdict_that_every_story_gives_it() -> None:
    told = {(story.want["reason"], story.want["verdict"]) for story in stories() if "reason" in story.want}
    documented = {(reason, verdict) for reason, verdict, *_ in table(REFERENCE, "Reasons")}
    assert documented - told == {("InternalError", "unknown")}, "no story meets a bug"
    assert told <= documented


def test_a_reason_warns_as_documented() -> None:
    def warned(reason: Reason, outcome: Outcome) -> str:
        need = NeedVerdict("example.com/gpu", "spec", 1, outcome, reason)
        return "yes" if explain.warnings(Verdict(outcome, reason, (need,)), Audience(), NOW) else "no"

    documented = {reason: said for reason, _, said, _ in table(REFERENCE, "Reasons")}
    assert documented == {
        reason: warned(Reason(reason), Outcome(verdict)) for reason, verdict, *_ in table(REFERENCE, "Reasons")
    }


def test_verdicts_are_documented() -> None:
    assert set(column(CONCEPTS, "Certain or not")) == set(Outcome)


def test_labels_and_annotations_are_documented() -> None:
    webhooks = (ROOT / "charts" / "vacancy" / "templates" / "_webhook.tpl").read_text("utf-8")
    (mode_label,) = re.findall(r"key: (gpu-vacancy\.dev/\S+)", webhooks)
    assert column(REFERENCE, "Labels and annotations") == [mode_label, QUEUE_LABEL, ANNOTATION]


def test_audit_annotations_are_documented(example: Embedded) -> None:
    request = decode_review((ROOT / "examples" / "reviews" / "full.json").read_bytes())
    assert request.pod
    verdict = judge(request.pod, request.namespace, Lookups({}, {}), example.latest.get(), NOW)
    assert column(REFERENCE, "Audit annotations") == list(audit_annotations(verdict, NOW))


def test_metrics_are_documented_with_type_and_labels(example: Embedded) -> None:
    counts = DoorCounts()
    counts.judged(Outcome.FULL, Reason.NoGPUCapacity)
    metrics = Metrics(
        version="0",
        counts=counts,
        world=example.latest.get,
        now=lambda: NOW,
        certificates=lambda: CertificateCounts({"serving": NOW, "ca": NOW}, {"created": 1}, in_step=True),
        river=lambda: RiverCounts(
            requests={("gpu.example.com", "complete"): 1},
            refresh_seconds=0.1,
            watches=(WatchCounts("Node", current=True, objects=1, unreadable=0, interruptions=0),),
        ),
        wake=WakeQueue(),
    )
    text = metrics.text(capacity(example.latest.get(), NOW).classes, {("gpu.example.com", Vacancy.FREE): 1})
    known = {}
    for family in text_string_to_metric_families(text.decode()):
        if family.name.startswith("vacancy_"):
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            known[family.name + "_total" * (family.type == "counter")] = (family.type, labels)
    documented = {
        name: (kind, set(filter(None, labels.split(", ")))) for name, kind, labels, _ in table(REFERENCE, "Metrics")
    }
    assert documented == known


def test_outcomes_of_renewals_are_documented() -> None:
    page = ROOT / "docs" / "certificates.md"
    assert column(page, "What can be seen") == [*CHANGES, "conflict", "failed"]


def test_outcomes_of_nudges_are_documented() -> None:
    assert column(ROOT / "docs" / "wake.md", "What can be seen") == [*End]


def test_columns_of_the_ledger_are_documented() -> None:
    assert column(LEDGER, "What it shows") == [*COLUMNS]


def test_what_may_become_of_a_pod_is_documented() -> None:
    assert column(LEDGER, "What is counted") == [*PodOutcome]


def test_limits_of_the_ledger_are_documented() -> None:
    text = " ".join(LEDGER.read_text("utf-8").split())
    assert f"over {MAX_LINE_BYTES // 1024**2} MiB, and pods beyond {MAX_ROWS:,} different rows" in text
    assert f"no more than {REMEMBERED:,} others" in text


def test_the_audit_policy_is_the_one_of_the_example() -> None:
    (quoted,) = re.findall(r"```yaml\n(.*?)```", LEDGER.read_text("utf-8"), re.DOTALL)
    assert yaml.safe_load(quoted) == yaml.safe_load((ROOT / "examples" / "audit-policy.yaml").read_text("utf-8"))


def test_lifetimes_are_documented() -> None:
    lifetimes, page = Lifetimes(), ROOT / "docs" / "certificates.md"
    assert column(page, "Self-managed", 1) == [
        f"{lifetimes.authority / DAY / 365.25:g} years",
        f"{lifetimes.serving / DAY:g} days",
    ]


# --- Every page -------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """How GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []
