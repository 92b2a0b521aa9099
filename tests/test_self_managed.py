"""Replicas that share a Secret: through years by the clock of the test, and through everything that can go wrong."""

import asyncio
import random
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import signing
from app.cluster.client import ApiError, Unreachable
from app.presubmit.report import timestamp
from app.self_managed import SelfManaged
from certs.exchange import DAY, Lifetimes, Renewal, Situation, certificates_in
from certs.renewal import renewal
from certs.serving import throwaway_pair
from tests.replicas import NOON, SERVER, TIMING, Cluster, look, refusals, replica, shown

YEAR = 365 * DAY

signed = signing.renewal  # before the fixture below


@pytest.fixture(autouse=True)
def signed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Years of certificates are signed in this process, as one of its own takes a tenth of a second."""

    monkeypatch.setattr(signing, "renewal", signed_at_once)


async def signed_at_once(situation: Situation) -> Renewal:
    return renewal(situation)


def settled(cluster: Cluster, *replicas: SelfManaged) -> None:
    """Let them look as often as a change of authority takes."""
    for _ in range(4):
        look(*replicas)
        cluster.now += TIMING.settle


def installed(skews: tuple[float, ...] = (0.0, 0.0)) -> tuple[Cluster, list[SelfManaged]]:
    """A cluster in which all is well."""
    cluster = Cluster()
    for name in cluster.names:
        cluster.add(name)
    replicas = [replica(cluster, skew) for skew in skews]
    settled(cluster, *replicas)
    assert [each.missing() for each in replicas] == [""] * len(replicas)
    return cluster, replicas


# --- Years ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [0.0, 240.0], ids=["one clock", "clocks that differ by four minutes"])
def test_through_eight_years_no_call_is_refused_whoever_restarts(skew: float) -> None:
    cluster, replicas = installed((0.0, skew, -skew))
    chance, leaves, authorities = random.Random(0), set(), set()  # noqa: S311 - no secret
    started = cluster.now
    while cluster.now < started + 8 * YEAR:
        chance.shuffle(replicas)
        if chance.random() < 0.1:
            replicas[0] = replica(cluster, chance.choice((0.0, skew, -skew)))
        for each in replicas:
            look(each)
            assert refusals(cluster, replicas) == []
        leaves.add(shown(each))
        authorities.add(cluster.data["ca.crt"])
        # A change takes minutes, and nothing happens for days; a pause longer than the overlap would be an outage.
        cluster.now += chance.choice((5.0, 60.0, 2 * DAY, 6 * DAY))
    assert len(authorities) == 3  # a new one every 3 years and 4 months
    assert 8 * YEAR / (62 * DAY) - 3 < len(leaves) < 8 * YEAR / (60 * DAY) + 4
    # Every change has been made once: nobody undoes what another one did.
    assert cluster.writes <= 1 + len(leaves) + 2 * len(authorities)
    assert len(set(cluster.data)) == 4


# --- Start ------------------------------------------------------------------------------------------------------------


def test_it_is_not_ready_until_a_configuration_names_it_and_trusts_it() -> None:
    cluster = Cluster()
    one = replica(cluster)
    assert one.missing() == "none yet: not looked yet"
    with pytest.raises(ssl.SSLError):
        shown(one)
    look(one)
    assert one.missing() == "none yet: no ValidatingWebhookConfiguration vacancy, vacancy-workloads"
    cluster.add("vacancy")
    look(one)
    assert one.missing() == "not trusted yet: no ValidatingWebhookConfiguration vacancy-workloads"
    look(one)
    assert one.missing() == ""
    assert one.counts().in_step is False
    cluster.add("vacancy-workloads")
    look(one, one)
    assert refusals(cluster, [one]) == []
    assert one.counts().in_step is True


def test_of_two_that_start_at_once_one_makes_the_authority_and_the_other_takes_it() -> None:
    cluster = Cluster()
    for name in cluster.names:
        cluster.add(name)
    first, second = replica(cluster), replica(cluster)
    empty = asyncio.run(cluster.read(()))
    look(first)
    cluster.stale = empty  # what the second one read before the first one wrote
    look(second)
    assert second.counts().rotations["conflict"] == 1  # type: ignore[index]
    assert second.missing() == "none yet: not looked yet"
    look(second, first)
    assert cluster.writes == 1
    assert shown(first) == shown(second)
    assert refusals(cluster, [first, second]) == []


# --- What goes wrong --------------------------------------------------------------------------------------------------


def spoilt(cluster: Cluster) -> Iterator[dict[str, bytes]]:
    held, stranger = dict(cluster.data), throwaway_pair([SERVER], [], NOON)
    yield {}
    yield dict.fromkeys(held, b"garbage")
    yield {key: content[: len(content) // 2] for key, content in held.items()}
    yield {key: content for key, content in held.items() if key != "ca.key"}
    yield {key: content for key, content in held.items() if key != "tls.key"}
    yield held | {"tls.crt": stranger.certificate_pem, "tls.key": stranger.key_pem}
    yield held | {"tls.key": stranger.key_pem}
    yield {"ca.crt": stranger.authority_pem, "tls.crt": stranger.certificate_pem, "tls.key": stranger.key_pem}


@pytest.mark.parametrize("number", range(8))
def test_a_spoilt_secret_is_mended_while_every_call_gets_through(number: int) -> None:
    cluster, replicas = installed()
    before = shown(replicas[0])
    cluster.data = list(spoilt(cluster))[number]
    cluster.touch("secret")
    for _ in range(6):
        for each in replicas:
            look(each)
            assert refusals(cluster, replicas) == []
        cluster.now += TIMING.settle / 3
    assert {*map(shown, replicas)} == {cluster.data["tls.crt"]} != {before}
    cluster.now += TIMING.lifetimes.overlap
    settled(cluster, *replicas)
    assert refusals(cluster, [*replicas, replica_started(cluster)]) == []
    assert {len(certificates_in(bundle)) for each in cluster.bundles.values() for bundle in each.values()} == {1}


def replica_started(cluster: Cluster) -> SelfManaged:
    newcomer = replica(cluster)
    look(newcomer)
    return newcomer


def test_a_bundle_that_somebody_emptied_or_replaced_is_mended_at_the_next_look() -> None:
    cluster, replicas = installed()
    before = shown(replicas[0])
    cluster.add("vacancy")
    look(*replicas)
    assert refusals(cluster, replicas) == []
    cluster.add("vacancy-workloads", throwaway_pair([SERVER], [], NOON).authority_pem)
    look(*replicas)
    assert refusals(cluster, replicas) == []
    assert shown(replicas[0]) != before  # so that the stranger's time is counted from here
    cluster.now += TIMING.lifetimes.overlap
    settled(cluster, *replicas)
    assert refusals(cluster, replicas) == []
    assert {bundle for each in cluster.bundles.values() for bundle in each.values()} == {cluster.data["ca.crt"]}


def test_without_the_api_the_last_good_certificate_is_served_and_readiness_stays() -> None:
    cluster, replicas = installed()
    before = shown(replicas[0])
    cluster.fault = Unreachable("GET /secret: no answer within 10 s")
    cluster.now += 89 * DAY
    settled(cluster, *replicas)
    assert {*map(shown, replicas)} == {before}
    assert [each.missing() for each in replicas] == ["", ""]
    assert replicas[0].counts().in_step is False
    assert replicas[0].counts().rotations["failed"] == 4  # type: ignore[index]
    cluster.now += DAY
    assert replicas[0].missing() == "expired: GET /secret: no answer within 10 s"
    cluster.fault = None
    look(*replicas)
    assert [each.missing() for each in replicas] == ["", ""]
    assert refusals(cluster, replicas) == []


def test_without_the_api_at_the_start_it_is_not_ready_and_says_why() -> None:
    cluster = Cluster(fault=Unreachable("GET /secret: no answer within 10 s"))
    one = replica(cluster)
    look(one)
    assert one.missing() == "none yet: GET /secret: no answer within 10 s"


def unwritable(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    async def write(*_: object) -> None:
        raise ApiError("PATCH /secret: 403 Forbidden")

    monkeypatch.setattr(cluster, "write", write)
    return "PATCH /secret: 403 Forbidden"


def unsigned(_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    async def answer(_: Situation) -> Renewal:
        raise signing.NotSigned("the process that signs does not start")

    monkeypatch.setattr(signing, "renewal", answer)
    return "the process that signs does not start"


def test_who_restarts_and_may_not_write_a_renewal_serves_what_is_held_and_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, [old] = installed((0.0,))
    cluster.now = NOON + 64 * DAY
    unwritable(cluster, monkeypatch)
    one = replica_started(cluster)
    assert shown(one) == shown(old) == cluster.data["tls.crt"]
    assert one.missing() == ""
    assert one.counts().rotations["failed"] == 1  # type: ignore[index]
    assert refusals(cluster, [one]) == []
    monkeypatch.undo()
    monkeypatch.setattr(signing, "renewal", signed_at_once)
    look(one)
    assert shown(one) == cluster.data["tls.crt"] != shown(old)


def test_who_may_not_write_is_not_ready_with_what_a_configuration_does_not_trust(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = installed((0.0,))
    cluster.now = NOON + 64 * DAY
    cluster.add("vacancy", throwaway_pair([SERVER], [], cluster.now).authority_pem)
    problem = unwritable(cluster, monkeypatch)
    assert replica_started(cluster).missing() == f"not trusted yet: {problem}"


def test_who_restarts_without_the_process_that_signs_serves_what_is_held_and_is_ready_when_its_issuer_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = installed((0.0,))
    problem = unsigned(cluster, monkeypatch)
    one = replica_started(cluster)
    assert shown(one) == cluster.data["tls.crt"]
    assert one.missing() == f"not trusted yet: {problem}"
    monkeypatch.setattr(signing, "renewal", signed_at_once)
    look(one)
    assert one.missing() == ""


@pytest.mark.parametrize("number", [0, 1, 2, 4, 6])
def test_what_is_held_and_of_no_use_is_not_served(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = installed((0.0,))
    cluster.data = list(spoilt(cluster))[number]
    problem = unsigned(cluster, monkeypatch)
    assert replica_started(cluster).missing() == f"none yet: {problem}"


def test_what_is_held_and_expired_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = installed((0.0,))
    cluster.now = NOON + 91 * DAY
    problem = unwritable(cluster, monkeypatch)
    assert replica_started(cluster).missing() == f"none yet: {problem}"


def test_who_was_ready_has_to_be_trusted_anew_with_what_it_finds_after_its_own_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, [one] = installed((0.0,))
    cluster.now += 91 * DAY
    stranger = throwaway_pair([SERVER], [], cluster.now)
    cluster.data |= {"tls.crt": stranger.certificate_pem, "tls.key": stranger.key_pem}
    problem = unsigned(cluster, monkeypatch)
    look(one)
    assert shown(one) == stranger.certificate_pem
    assert one.missing() == f"not trusted yet: {problem}"


def test_a_stranger_s_pair_in_the_secret_gives_way_though_not_every_configuration_can_be_written() -> None:
    cluster, _ = installed((0.0,))
    cluster.data = list(spoilt(cluster))[5]
    cluster.add("vacancy")
    cluster.unwritable = frozenset({"vacancy"})
    assert shown(replica_started(cluster)) == cluster.data["tls.crt"] != list(spoilt(cluster))[5]["tls.crt"]


def test_a_mistake_of_ours_does_not_end_the_server_and_its_text_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, [one] = installed((0.0,))
    before = shown(one)

    def mistake() -> None:
        raise LookupError("-----BEGIN PRIVATE KEY-----")

    monkeypatch.setattr(cluster, "configurations", mistake)
    look(one, one)
    assert shown(one) == before
    assert one.counts().rotations["failed"] == 2  # type: ignore[index]
    assert one.counts().in_step is False
    [record] = caplog.records
    place = f"LookupError in test_self_managed.mistake, line {mistake.__code__.co_firstlineno + 1}"
    assert record.__dict__["facts"] == {"problem": place}
    assert record.exc_info is None
    cluster.now += 90 * DAY
    assert one.missing() == "expired: LookupError"


def test_a_new_authority_is_not_used_while_a_configuration_does_not_trust_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)  # else the certificate may be due before its authority is
    cluster, replicas = installed()
    cluster.now = NOON + TIMING.lifetimes.authority * 2 / 3 - 30 * DAY
    settled(cluster, *replicas)
    before = shown(replicas[0])
    cluster.unwritable = frozenset({"vacancy"})
    for _ in range(80):
        cluster.now += DAY
        look(*replicas)
        assert refusals(cluster, replicas) == []
    assert {*map(shown, replicas)} == {before}
    assert len(cluster.data) == 5
    assert {len(certificates_in(bundle)) for bundle in cluster.bundles["vacancy-workloads"].values()} == {2}
    assert replica_started(cluster).missing() == ""
    assert replicas[0].counts().in_step is False
    cluster.unwritable = frozenset()
    settled(cluster, *replicas)
    assert refusals(cluster, replicas) == []
    assert before not in map(shown, replicas)


def test_a_secret_that_was_emptied_is_not_served_from_while_a_configuration_does_not_trust_it() -> None:
    cluster, replicas = installed()
    before = shown(replicas[0])
    cluster.unwritable = frozenset({"vacancy"})
    cluster.data = {}
    cluster.touch("secret")
    settled(cluster, *replicas)
    assert refusals(cluster, replicas) == []
    assert {*map(shown, replicas)} == {before} != {cluster.data["tls.crt"]}
    cluster.unwritable = frozenset()
    settled(cluster, *replicas)
    assert refusals(cluster, replicas) == []
    assert {*map(shown, replicas)} == {cluster.data["tls.crt"]}


def test_a_replica_that_missed_a_change_of_authority_catches_up_at_once() -> None:
    cluster, [first, second] = installed()
    cluster.data = {}
    cluster.touch("secret")
    settled(cluster, first)
    cluster.now += TIMING.lifetimes.overlap
    settled(cluster, first)
    assert refusals(cluster, [second])
    look(second)
    assert refusals(cluster, [first, second]) == []


def test_a_pair_that_begins_in_the_future_waits_in_the_secret() -> None:
    cluster, [behind] = installed((0.0,))
    ahead = replica(cluster, 2 * DAY)
    cluster.now = NOON + 61.9 * DAY
    look(ahead)
    look(behind)
    assert shown(ahead) == cluster.data["tls.crt"] != shown(behind)
    assert refusals(cluster, [behind]) == []
    assert len(refusals(cluster, [ahead])) == 1  # its clock is wrong, and nobody else suffers
    cluster.now += 2 * DAY
    look(behind)
    assert shown(behind) == cluster.data["tls.crt"]


# --- Pace -------------------------------------------------------------------------------------------------------------


def test_it_looks_soon_where_something_is_missing_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, pauses = Cluster(), list[float]()
    one = replica(cluster)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            for name in cluster.names:
                cluster.add(name)
        if len(pauses) == 9:
            cluster.fault = Unreachable("GET /secret: no answer within 10 s")
        if len(pauses) == 13:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(random, "uniform", lambda _low, _high: 1.0)
    caplog.set_level("INFO")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(one.follow())
    absent, written, well, away = [1, 2, 4, 5, 5, 5], [1], [5, 5], [1, 2, 4, 5]
    assert pauses == [*absent, *written, *well, *away]
    assert [record.message for record in caplog.records] == [
        "certificates not in step",
        "certificates written",
        "certificate served",
        "certificates in step",
        "certificates not in step",
    ]
    ends = [record.__dict__["facts"]["ends"] for record in caplog.records if "ends" in record.__dict__["facts"]]
    assert ends == [timestamp(one.serving.not_after or 0.0)] * 2


# --- The process that signs -------------------------------------------------------------------------------------------


def test_the_process_that_signs_answers_and_keeps_its_library_to_itself() -> None:
    code = """
import asyncio, sys, time
import app.self_managed
from app import signing
from certs.exchange import Lifetimes, Situation
answer = asyncio.run(signing.renewal(Situation({}, ["localhost"], [], [], time.time(), Lifetimes())))
print(answer.change, sorted(answer.data), "cryptography" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("created ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'] False\n", "")


def ask(names: list[str]) -> object:
    return asyncio.run(signed(Situation({}, names, [], [], NOON, Lifetimes())))


def test_what_the_process_that_signs_cannot_do_is_told_in_one_line() -> None:
    with pytest.raises(signing.NotSigned) as told:
        ask(["a b", "localhost"])
    assert str(told.value) == "no certificate can be made: 'a b' is not a DNS name"


def spy(folder: Path) -> Path:
    """A program that is told keys if it is taken for ours; where it would put them."""
    told = folder / "told"
    (folder / "certs").mkdir(exist_ok=True)
    (folder / "certs" / "__init__.py").touch()
    (folder / "certs" / "renewal.py").write_text(
        f"import sys\nopen({str(told)!r}, 'wb').write(sys.stdin.buffer.read())\n"
    )
    return told


@pytest.mark.parametrize("path", [None, "", "elsewhere"])
def test_a_program_in_the_working_directory_is_told_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str | None
) -> None:
    told = spy(tmp_path)
    (tmp_path / "msgspec.py").write_text((tmp_path / "certs" / "renewal.py").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    assert isinstance(ask(["localhost"]), Renewal)
    assert not told.exists()


def test_the_process_that_signs_is_found_beside_the_server_that_asks_it(tmp_path: Path) -> None:
    root = Path(signing.__file__).parents[1]
    for name in ("app", "certs"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    told = spy(tmp_path)  # here it is ours: nothing but the folder in which we were started leads to it
    code = """
import asyncio
from app import signing
from certs.exchange import Lifetimes, Situation
asyncio.run(signing.renewal(Situation({}, ["localhost"], [], [], 0.0, Lifetimes())))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert told.exists()


def test_a_process_that_signs_and_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, started = tmp_path / "hangs", tmp_path / "pid"
    program.write_text(f"#!/bin/sh\necho $$ >{started}\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(signing, "SECONDS", 0.5)
    with pytest.raises(signing.NotSigned) as told:
        ask(["localhost"])
    assert str(told.value) == "the process that signs gave no answer within 0.5 s"
    assert not Path(f"/proc/{started.read_text().strip()}").exists()


def test_a_process_that_signs_and_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nothing")
    with pytest.raises(signing.NotSigned, match=r"the process that signs does not start: .*No such file"):
        ask(["localhost"])
