"""Who renders the chart and applies what comes out never quarrels with what Vacancy writes by itself."""

from tests.controlplane.client import Json
from tests.install.release import Release


def written_by_itself(release: Release) -> list[Json]:
    """Its Secret, and whom the API server trusts."""
    secret = release.client.get(f"/api/v1/namespaces/{release.name}/secrets/{release.name}-tls")["data"]
    trusted = [
        webhook["clientConfig"].get("caBundle") for each in release.configurations() for webhook in each["webhooks"]
    ]
    assert all(secret.values())
    assert all(trusted)
    return [secret, *trusted]


def test_two_renderings_are_equal(release: Release) -> None:
    assert release.render() == release.render()


def test_another_field_manager_finds_no_difference(release: Release) -> None:
    written_by_itself(release)
    diff = release.plane.kubectl(
        "diff", "--server-side", "--field-manager=gitops", "-f", "-", input=release.render("--no-hooks")
    )
    assert diff.stderr + diff.stdout == ""
    assert diff.returncode == 0


def test_upgrades_leave_what_it_wrote(release: Release) -> None:
    before = written_by_itself(release)
    release.upgrade(optionsText="Ask for a reservation.", workloads={"enabled": True})
    release.upgrade()
    release.upgrade(optionsText="")
    assert written_by_itself(release) == before
    managers = {
        (each["manager"], each["operation"])
        for configuration in release.configurations()
        for each in configuration["metadata"]["managedFields"]
    }
    assert ("helm", "Apply") in managers  # or this would have tested nothing
