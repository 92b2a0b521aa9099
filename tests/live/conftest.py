"""One `vacancy serve` per source for the whole run, and a scene for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cluster.rights import CORE, ROLES, WAKE
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import Vacancy, requests_of_ours


class Vacancies:
    """The servers, each started and registered when it is first asked for."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self._running: dict[str, Vacancy] = {}

    def of(self, source: str) -> Vacancy:
        """The server with that source; that of pool statuses may not read claims and pods, for it needs none."""
        if source not in self._running:
            roles = (CORE, WAKE) if source == "pool-status" else ROLES
            self._running[source] = Vacancy(self._plane, self._folder / f"vacancy-{source}", source, roles=roles)
            self._running[source].register(self._plane)
        return self._running[source]

    def stop(self) -> None:
        """Stop all; nothing of them may be left in the cluster."""
        for vacancy in self._running.values():
            vacancy.stop()
        until("no pool status request left", lambda: not requests_of_ours(self._plane))


@pytest.fixture(scope="session")
def vacancies(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vacancies]:
    servers = Vacancies(plane, tmp_path_factory.mktemp("vacancies"))
    yield servers
    servers.stop()


@pytest.fixture
def vacancy(vacancies: Vacancies, source: str) -> Vacancy:
    return vacancies.of(source)


@pytest.fixture
def scene(plane: ControlPlane, vacancy: Vacancy) -> Iterator[Scene]:
    """Pods of its namespace are shown to the server of the test's source."""
    scene = Scene(plane, vacancy.label)
    yield scene
    scene.close()
