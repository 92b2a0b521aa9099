"""Each setting by default, when good and when bad; by flag and by variable; and several bad ones at once."""

import dataclasses
from pathlib import Path

import pytest

from app.settings import SETTINGS, Address, BadSettings, Namespaced, Setting, Settings, read_settings, settings_reading
from app.wording import wording

NOTHING: dict[str, str] = {}

# name: (default, good text, its value, bad text)
ROWS: dict[str, tuple[object, str, object, str | None]] = {
    "manifests": (None, "examples/cluster", Path("examples/cluster"), None),
    "now": (None, "2026-01-01T00:00:00Z", 1767225600.0, "2026-01-01T00:00:00"),
    "source": ("auto", "both", "both", "neither"),
    "max-age": (90.0, "61.5", 61.5, "0"),
    "allow-queue-label": (True, "false", False, "no"),
    "autoscaled": (frozenset(), "a.example.com, b,", frozenset({"a.example.com", "b"}), "b,example.com/gpu"),
    "dynamic": (frozenset(), "a", frozenset({"a"}), "example.com/gpu"),
    "schedulers": (frozenset({"default-scheduler"}), "a,b", frozenset({"a", "b"}), " , "),
    "options-text": (None, "Ask in #{namespace}.", wording("Ask in #{namespace}."), None),
    "options-text-for": (
        (),
        "a = Ask ann.\n\nb=",
        (("a", wording("Ask ann.")), ("b", wording(""))),
        None,
    ),
    "page-url": ("", "https://gpu.example.com/page", "https://gpu.example.com/page", "ftp://gpu.example.com"),
    "hide-names": (False, "TRUE", True, "1"),
    "kubeconfig": (None, "/etc/kubeconfig", Path("/etc/kubeconfig"), None),
    "context": ("", "admin@prod", "admin@prod", None),
    "withheld": (frozenset(), "nodes,claims", frozenset({"nodes", "claims"}), "pods"),
    "refresh-seconds": (60.0, "30", 30.0, "nan"),
    "mode": ("enforce", "audit", "audit", "off"),
    "owner-policy": ({}, "Job.batch=warn,*=off", {"Job.batch": "warn", "*": "off"}, "Job:warn"),
    "never-fits": ("warn", "refuse", "refuse", "deny"),
    "quota-words-for": (
        (
            "system:serviceaccount:argo:argo",
            "system:serviceaccount:*:*argo-workflows-workflow-controller",
            "system:serviceaccount:*:tekton-pipelines-controller",
        ),
        "system:serviceaccount:ci:*",
        ("system:serviceaccount:ci:*",),
        None,
    ),
    "warn-only-for": (
        ("system:serviceaccount:*:hub",),
        "jane,system:serviceaccount:b:*",
        ("jane", "system:serviceaccount:b:*"),
        None,
    ),
    "wake": (True, "false", False, ""),
    "listen": (Address("0.0.0.0", 8443), "[::1]:9443", Address("::1", 9443), "8443"),  # noqa: S104 - everywhere is the default
    "web-listen": (Address("0.0.0.0", 8080), ":80", Address("0.0.0.0", 80), "localhost:65536"),  # noqa: S104 - everywhere is the default
    "tls-dir": (None, "/tls", Path("/tls"), None),
    "tls-secret": (None, "gpu/vacancy-tls", Namespaced("gpu", "vacancy-tls"), "vacancy-tls"),
    "webhooks": ((), "vacancy, vacancy-workloads", ("vacancy", "vacancy-workloads"), "vacancy,../pods"),
    "log-format": ("json", "text", "text", "xml"),
    "log-level": ("info", "debug", "debug", "INFO"),
}


def setting(name: str) -> Setting:
    return next(row for row in SETTINGS if row.name == name)


def given(name: str, text: str) -> Settings:
    return read_settings({name: text} | NEEDS.get(name, {}), NOTHING)


NEEDS = {"now": {"manifests": "examples/cluster"}, "tls-secret": {"webhooks": "vacancy"}}
"""Settings that are bad alone, and what they need beside them."""


def test_the_table_the_fields_and_the_tests_name_the_same_settings() -> None:
    assert {row.field for row in SETTINGS} == {field.name for field in dataclasses.fields(Settings)}
    assert [row.name for row in SETTINGS] == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_setting_that_nobody_gave_has_its_default(name: str) -> None:
    assert getattr(read_settings(NOTHING, NOTHING), setting(name).field) == ROWS[name][0]


@pytest.mark.parametrize("name", ROWS)
def test_a_good_value_is_taken_from_flag_and_variable(name: str) -> None:
    _, text, value, _ = ROWS[name]
    assert getattr(given(name, text), setting(name).field) == value
    beside = {setting(other).variable: text for other, text in NEEDS.get(name, {}).items()}
    by_variable = read_settings(NOTHING, {setting(name).variable: text} | beside)
    assert getattr(by_variable, setting(name).field) == value


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[3] is not None])
def test_a_bad_value_is_named_with_what_was_expected(name: str) -> None:
    text = ROWS[name][3]
    with pytest.raises(BadSettings) as caught:
        given(name, text)
    assert caught.value.problems == (f"--{name}={text!r}: expected {setting(name).form.expects}",)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-00:01"])
def test_a_clock_that_cannot_be_read_in_utc_is_none(text: str) -> None:
    with pytest.raises(BadSettings, match=f"expected {setting('now').form.expects}"):
        given("now", text)


def test_a_flag_wins_over_a_variable() -> None:
    assert read_settings({"mode": "warn"}, {"VACANCY_MODE": "audit"}).mode == "warn"


def test_all_bad_settings_are_told_in_one_message() -> None:
    with pytest.raises(BadSettings) as caught:
        read_settings({"max-age": "soon", "listen": "x"}, {"VACANCY_MODE": "strict"})
    assert str(caught.value).splitlines() == [
        "3 bad settings:",
        "  --max-age='soon': expected a number of seconds above 0",
        "  VACANCY_MODE='strict': expected one of enforce, warn, audit",
        "  --listen='x': expected HOST:PORT, :PORT or [IPV6]:PORT",
    ]


def test_a_long_bad_value_is_cut() -> None:
    with pytest.raises(BadSettings) as caught:
        read_settings({"mode": "x" * 1000}, NOTHING)
    assert len(str(caught.value)) < 200


CONTRADICTIONS = {
    "a frozen clock without files": (
        {"now": "2026-01-01T00:00:00Z"},
        "--now without --manifests: expected both or neither, a live cluster has its own clock",
    ),
    "statuses too old before the next one": (
        {"max-age": "60"},
        "--max-age=60: expected more than --refresh-seconds=60, else every count is too old before the next one",
    ),
    "two listeners on one address": (
        {"web-listen": "0.0.0.0:8443"},
        "--listen=0.0.0.0:8443: expected another address than --web-listen=0.0.0.0:8443",
    ),
    "two places for the certificate": (
        {"tls-secret": "gpu/tls", "webhooks": "vacancy", "tls-dir": "/tls"},
        "--tls-secret=gpu/tls with --tls-dir=/tls: expected one of them",
    ),
    "a certificate for nobody": (
        {"tls-secret": "gpu/tls"},
        (
            "--tls-secret=gpu/tls without --webhooks: expected the configurations that send to us, "
            "they name the server and are told whom to trust"
        ),
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_settings_that_contradict_each_other_are_told_with_both_values(case: str) -> None:
    flags, problem = CONTRADICTIONS[case]
    with pytest.raises(BadSettings) as caught:
        read_settings(flags, NOTHING)
    assert caught.value.problems == (problem,)


def test_a_contradiction_is_told_beside_a_bad_setting() -> None:
    with pytest.raises(BadSettings) as caught:
        read_settings({"mode": "odd", "max-age": "60"}, NOTHING)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["--mode='odd'", "--max-age=60"]


FIELDS = "{namespace}, {name}, {class}, {count}, {total}, {page}"
ONE_LINE = "expected one line of printable ASCII"
ALONE = "found a brace without the other one, expected {{ or }} where it is to be seen"

# sentence: (settings; the problems)
ADVICE: dict[str, tuple[dict[str, str], list[str]]] = {
    "several lines": ({"options-text": "a\nb"}, [f"--options-text='a\\nb': {ONE_LINE}"]),
    "another alphabet": ({"options-text": "später"}, [f"--options-text='später': {ONE_LINE}"]),
    "fields there are not": (
        {"options-text": "{who} {} {name.x} {count:d} {0}"},
        [
            f"--options-text='{{who}} {{}} {{name.x}} {{count:d}} {{0}}': found '{{{field}}}', expected one of {FIELDS}"
            for field in ("", "0", "count:d", "name.x", "who")
        ],
    ),
    "a brace that is left open": ({"options-text": "ask {name"}, [f"--options-text='ask {{name': {ALONE}"]),
    "a brace that nobody opened": ({"options-text": "{name}}"}, [f"--options-text='{{name}}}}': {ALONE}"]),
    "all at once": (
        {"options-text": "ä {who} }", "options-text-for": "a=}\nb\nC=x\nd=\ne={page}"},
        [
            f"--options-text='ä {{who}} }}': {ONE_LINE}",
            f"--options-text='ä {{who}} }}': {ALONE}",
            f"--options-text='ä {{who}} }}': found '{{who}}', expected one of {FIELDS}",
            *(
                f"--options-text-for='a=}}\\nb\\nC=x\\nd=\\ne={{page}}': {fault}"
                for fault in (
                    f"a: {ALONE}",
                    "found 'b', expected NAMESPACE=TEXT",
                    "found 'C=x', expected NAMESPACE=TEXT",
                )
            ),
        ],
    ),
    "a page that nobody named": (
        {"options-text": "See {page}", "options-text-for": "a=ok\nb=See {page}"},
        [
            "--options-text: found {page}, expected --page-url as well",
            "--options-text-for=b: found {page}, expected --page-url as well",
        ],
    ),
    "a page that cannot be read": (
        {"options-text": "See {page}", "page-url": "x"},
        ["--page-url='x': expected an http or https address"],
    ),
    "too long a text": (
        {"options-text": "x" * 301},
        ["--options-text: 301 characters with the link and the longest names, expected at most 300"],
    ),
    "too long with the longest names": (
        {"options-text-for": f"a={'x' * 186}{{namespace}}{{name}}{{count}}{{{{"},
        ["--options-text-for=a: 307 characters with the link and the longest names, expected at most 300"],
    ),
    "too long with the link": (
        {"options-text": "x" * 274, "page-url": "https://x.example/"},
        ["--options-text: 303 characters with the link and the longest names, expected at most 300"],
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_advice_that_cannot_be_said_is_told_with_all_that_is_wrong(case: str) -> None:
    flags, problems = ADVICE[case]
    with pytest.raises(BadSettings) as caught:
        read_settings(flags, NOTHING)
    assert list(caught.value.problems) == problems


def test_advice_of_just_the_right_length_is_taken_with_every_field() -> None:
    text = f"{{namespace}} {{name}} {{class}} {{count}} {{total}} {{page}} {{{{}}}} {'x' * 96}"
    read_settings({"options-text": text, "page-url": "https://x.example/"}, NOTHING)
    with pytest.raises(BadSettings, match="301 characters"):
        read_settings({"options-text": f"{text}x", "page-url": "https://x.example/"}, NOTHING)


def test_the_advice_for_the_most_of_a_name_comes_first() -> None:
    lines = "*=1\nteam*=2\nteam-a=3\nteam-a*=4\nteam-*=5"
    texts = read_settings({"options-text-for": lines}, NOTHING).options_text_for
    assert [namespace for namespace, _ in texts] == ["team-a", "team-a*", "team-*", "team*", "*"]


UNREAD_BESIDE = {
    "max-age": {"max-age": "soon", "refresh-seconds": "120"},
    "refresh-seconds": {"max-age": "50", "refresh-seconds": "often"},
    "listen": {"listen": "x", "web-listen": "0.0.0.0:8443"},
    "web-listen": {"listen": "0.0.0.0:8080", "web-listen": "x"},
    "tls-secret": {"tls-secret": "tls", "tls-dir": "/tls"},
    "webhooks": {"tls-secret": "gpu/tls", "webhooks": "../pods"},
}


@pytest.mark.parametrize("name", UNREAD_BESIDE)
def test_a_setting_that_cannot_be_read_contradicts_nothing(name: str) -> None:
    reading = settings_reading(UNREAD_BESIDE[name], NOTHING)
    assert reading.unread == {setting(name).field}
    assert [problem.partition("=")[0] for problem in reading.problems] == [f"--{name}"]


def test_variables_that_kubernetes_sets_for_a_service_are_no_settings() -> None:
    service = {"VACANCY_PORT": "tcp://10.0.0.1:443", "VACANCY_SERVICE_HOST": "10.0.0.1"}
    assert read_settings(NOTHING, service) == read_settings(NOTHING, NOTHING)


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(Address("::", 80)) == "[::]:80"
    assert str(Address("localhost", 80)) == "localhost:80"
