"""Each alert fires on its fault and no other does; beside it, and in a healthy cluster, all are silent.

The courses of events are made up, in the notation of promtool: a+bxn is a, then n more, each b more than the last.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.chart.rendering import CHART
from tests.operate.alerts import alerts, firing, promtool, written

OPERATE = CHART.parents[1] / "docs" / "operate.md"

HOURS = 9
STEPS = HOURS * 12
WEEK = 7 * 24


def steady(value: float, steps: int = STEPS) -> str:
    return f"{value}+0x{steps}"


def rising(by: float, steps: int = STEPS) -> str:
    return f"0+{by}x{steps}"


def late(values: str, change: str) -> str:
    """The first hours one way, the last hour another."""
    return f"{values}x{STEPS - 12} {change}x12"


Series = Mapping[str, str]

VERDICTS = 'vacancy_verdicts_total{verdict="%s",reason="%s"}'
NEW_REFUSALS = 'vacancy_refusals_total{attempt="new"}'
SOURCE = 'vacancy_driver_source{driver="gpu.example.com",source="%s"}'
REQUESTS = 'vacancy_pool_status_requests_total{driver="gpu.example.com",outcome="%s"}'
AGE = 'vacancy_snapshot_age_seconds{driver="gpu.example.com"}'
DEVICES = 'vacancy_class_devices{class="gpu",state="%s"}'
VACANCY = 'vacancy_class_vacancy{class="gpu",vacancy="%s",source="both"}'
BUCKET = 'vacancy_admit_seconds_bucket{decision="allow",le="%s"}'
EXPIRY = 'vacancy_certificate_expiry_timestamp_seconds{kind="serving"}'
FAIL_OPEN = 'apiserver_admission_webhook_fail_open_count{name="%s",type="validating"}'
REJECTIONS = 'apiserver_admission_webhook_rejection_count{name="%s",error_type="%s",type="validating"}'
OURS = "enforce.pods.gpu-vacancy.dev"
INFO = 'vacancy_build_info{version="1"}'

HEALTHY: Series = {
    INFO: steady(1),
    DEVICES % "total": steady(8),
    DEVICES % "available": steady(4),
    'vacancy_class_devices{class="none",state="total"}': steady(0),
    'vacancy_class_devices{class="none",state="available"}': steady(0),
    VACANCY % "free": steady(1),
    AGE: steady(60),
    SOURCE % "both": steady(1),
    SOURCE % "witness": steady(0),
    SOURCE % "none": steady(0),
    REQUESTS % "complete": rising(5),
    REQUESTS % "silent": steady(0),
    REQUESTS % "failed": steady(0),
    'vacancy_watch_current{kind="pods"}': steady(1),
    VERDICTS % ("room", "HasRoom"): rising(10),
    VERDICTS % ("full", "NoGPUCapacity"): rising(1),
    VERDICTS % ("unknown", "OptedOut"): rising(10),
    VERDICTS % ("unknown", "StaleSnapshot"): steady(0),
    NEW_REFUSALS: rising(1),
    BUCKET % "0.1": rising(100),
    BUCKET % "0.25": rising(100),
    BUCKET % "0.5": rising(100),
    BUCKET % "+Inf": rising(100),
    EXPIRY: steady(60 * 86400),
    "vacancy_panics_total": steady(0),
    FAIL_OPEN % OURS: steady(0),
    FAIL_OPEN % "other.example.com": rising(1),
    REJECTIONS % (OURS, "no_error"): rising(1),
    REJECTIONS % (OURS, "calling_webhook_error"): steady(0),
    REJECTIONS % ("other.example.com", "calling_webhook_error"): rising(1),
}

FAULTS: Mapping[str, Series] = {
    "VacancyClassLow": {DEVICES % "total": steady(100), DEVICES % "available": steady(9)},
    "VacancyClassFull": {VACANCY % "free": "_", VACANCY % "full": steady(1)},
    "VacancySnapshotStale": {AGE: late("60+0", "120+300")},
    "VacancyDriverSilent": {REQUESTS % "complete": steady(0), REQUESTS % "silent": rising(5)},
    "VacancyFallingBack": {SOURCE % "both": late("1+0", "0+0"), SOURCE % "witness": late("0+0", "1+0")},
    "VacancyWatchBroken": {'vacancy_watch_current{kind="pods"}': late("1+0", "0+0")},
    "VacancyUnknownHigh": {VERDICTS % ("unknown", "StaleSnapshot"): rising(6)},
    "VacancyDown": {INFO: f"{steady(1, STEPS - 12)} _x12"},
    "VacancyFailOpen": {FAIL_OPEN % OURS: late("0+0", "0+1")},
    "VacancyFailClosed": {REJECTIONS % (OURS, "calling_webhook_error"): late("0+0", "0+1")},
    "VacancySlow": {BUCKET % "0.1": rising(98), BUCKET % "0.25": rising(98)},
    "VacancyCertificateExpiry": {EXPIRY: steady(6 * 86400)},
    "VacancyPanics": {"vacancy_panics_total": f"{steady(0, STEPS - 2)} 1 1"},
}

BESIDE: Mapping[str, Series] = {
    "VacancyClassLow": {DEVICES % "total": steady(100), DEVICES % "available": steady(10)},
    "VacancyClassFull": {VACANCY % "free": f"1 _x{STEPS}", VACANCY % "full": f"_x{STEPS - 70} {steady(1, 69)}"},
    "VacancySnapshotStale": {AGE: steady(90)},
    "VacancyDriverSilent": {REQUESTS % "complete": rising(1), REQUESTS % "silent": rising(4)},
    "VacancyFallingBack": {SOURCE % "both": steady(0), SOURCE % "witness": steady(1)},
    "VacancyWatchBroken": {'vacancy_watch_current{kind="pods"}': f"{steady(1, STEPS - 2)} 0 0"},
    "VacancyUnknownHigh": {VERDICTS % ("unknown", "StaleSnapshot"): rising(5)},
    "VacancyDown": {INFO: f"{steady(1, STEPS - 2)} _ _"},
    "VacancyFailOpen": {FAIL_OPEN % OURS: f"{steady(0, STEPS - 20)} {steady(2, 19)}"},
    "VacancyFailClosed": {REJECTIONS % (OURS, "no_error"): late("0+0", "0+20")},
    "VacancySlow": {BUCKET % "0.1": rising(10)},
    "VacancyCertificateExpiry": {EXPIRY: steady(8 * 86400)},
    "VacancyPanics": {"vacancy_panics_total": steady(3)},
}


def twice(series: Series) -> Series:
    """As two replicas tell it."""
    both = {}
    for name, values in series.items():
        metric, _, labels = name.partition("{")
        for replica in "ab" if metric.startswith("vacancy_") else "":
            both[f'{metric}{{instance="{replica}:8080",pod="{replica}",{labels or "}"}'] = values
    return {name: values for name, values in series.items() if name.startswith("apiserver_")} | both


@pytest.mark.parametrize("alert", FAULTS)
def test_a_fault_fires_its_alert_alone_and_once_however_many_replicas_see_it(tmp_path: Path, alert: str) -> None:
    """But for a watch, which is one replica's own."""
    times = 2 if alert == "VacancyWatchBroken" else 1
    assert firing(tmp_path, twice({**HEALTHY, **FAULTS[alert]}), {alert: times}, HOURS) == ""


@pytest.mark.parametrize("alert", BESIDE)
def test_what_is_no_fault_yet_fires_nothing(tmp_path: Path, alert: str) -> None:
    assert firing(tmp_path, {**HEALTHY, **BESIDE[alert]}, {}, HOURS) == ""


QUIET: Mapping[str, Series] = {
    "a healthy cluster": HEALTHY,
    "no class exists, and nobody asks for anything": {INFO: steady(1), 'vacancy_watch_current{kind="pods"}': steady(1)},
    "the API server serves no pool statuses": {
        INFO: steady(1),
        REQUESTS % "not-served": rising(5),
        REQUESTS % "complete": steady(0),
        SOURCE % "both": steady(0),
        SOURCE % "witness": steady(1),
        SOURCE % "none": steady(0),
    },
    "a cluster that is refused much, each refusal with its second look": {
        **HEALTHY,
        'vacancy_admit_seconds_bucket{decision="deny",le="0.05"}': steady(0),
        'vacancy_admit_seconds_bucket{decision="deny",le="0.1"}': rising(100),
        'vacancy_admit_seconds_bucket{decision="deny",le="+Inf"}': rising(100),
    },
}


@pytest.mark.parametrize("cluster", QUIET)
def test_a_cluster_without_faults_fires_nothing(tmp_path: Path, cluster: str) -> None:
    assert firing(tmp_path, QUIET[cluster], {}, HOURS) == ""


def test_a_start_fires_nothing(tmp_path: Path) -> None:
    """An hour ago there was nothing yet; the first scrape came before the cluster was read."""
    before = f"_x{STEPS - 13}"
    starting = {
        SOURCE % "both": f"{before} 0 {steady(1, 12)}",
        SOURCE % "none": f"{before} 1 {steady(0, 12)}",
        'vacancy_watch_current{kind="pods"}': f"{before} 0 {steady(1, 12)}",
        VERDICTS % ("unknown", "NoSource"): f"{before} 3 {steady(3, 12)}",
    }
    already = {INFO: HEALTHY[INFO]}  # of the replica before it
    young = {name: values.replace(f"x{STEPS}", "x12") for name, values in HEALTHY.items()}
    series = {name: f"{before} {values}" for name, values in young.items()} | starting | already
    assert firing(tmp_path, series, {}, HOURS) == ""


@pytest.mark.parametrize(
    ("week_ago", "now", "expected"),
    [
        pytest.param(6, 25, {"VacancyRefusalsJump": 1}, id="four times as many"),
        pytest.param(10, 25, {}, id="not three times as many"),
        pytest.param(0, 16, {}, id="few"),
    ],
)
def test_a_jump_is_measured_against_a_week_ago(
    tmp_path: Path, week_ago: int, now: int, expected: dict[str, int]
) -> None:
    """So many in 20 minutes."""
    course = f"0+{week_ago}x{WEEK * 3} {week_ago * WEEK * 3}+{now}x12"
    series = {INFO: steady(1, (WEEK + 4) * 3), NEW_REFUSALS: course}
    assert firing(tmp_path, series, expected, WEEK + 3, minutes=20) == ""


def test_in_the_first_week_there_is_nothing_to_jump_from(tmp_path: Path) -> None:
    series = {**HEALTHY, NEW_REFUSALS: rising(100)}
    assert firing(tmp_path, series, {}, HOURS) == ""


def test_every_alert_is_tried() -> None:
    assert {*FAULTS, "VacancyRefusalsJump"} == set(alerts())
    assert set(FAULTS) == set(BESIDE)


# --- What they say ----------------------------------------------------------------------------------------------------


def test_promtool_finds_no_fault_with_them(tmp_path: Path) -> None:
    assert promtool("check", "rules", written(tmp_path)) == ""


def test_every_alert_says_what_it_means_what_to_do_and_where_to_read_on() -> None:
    for alert in alerts().values():
        assert set(alert["annotations"]) == {"summary", "impact", "action", "runbook_url"}
        assert alert["labels"]["severity"] in {"info", "warning", "critical"}


def test_every_alert_has_a_section_in_the_runbook_and_no_other_has_one() -> None:
    sections = re.findall(r"^### (Vacancy\w+)$", OPERATE.read_text("utf-8"), re.MULTILINE)
    assert sections == list(alerts())
    urls = {name: alert["annotations"]["runbook_url"] for name, alert in alerts().items()}
    assert urls == {name: f"docs/operate.md#{name.lower()}" for name in sections}


def test_thresholds_links_and_overrides_are_the_users(tmp_path: Path) -> None:
    values = {
        "runbookUrl": "https://git.example.com/operate.md",
        "thresholds": {"freePercent": 25.5},
        "overrides": {"VacancyClassFull": {"for": "12h", "severity": "critical"}, "VacancyDown": {"enabled": False}},
    }
    changed = alerts(values)
    assert changed["VacancyClassLow"]["expr"].endswith("< 25.5")
    full = changed["VacancyClassFull"]
    assert (full["for"], full["labels"]["severity"]) == ("12h", "critical")
    assert changed["VacancySlow"]["annotations"]["runbook_url"] == "https://git.example.com/operate.md#vacancyslow"
    assert set(alerts()) - set(changed) == {"VacancyDown"}
    assert promtool("check", "rules", written(tmp_path, values)) == ""


def test_no_placeholder_is_left() -> None:
    assert "${" not in str(alerts())
