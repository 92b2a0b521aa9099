"""Everything there is in a cluster, of every kind that the API server has; and what a crash leaves behind."""

from tests.controlplane.client import Client
from tests.live.serving import STATUSES

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# Events tell of the past, and go by themselves an hour later.
_LEFT_OUT = {"events"}


def inventory(client: Client) -> set[str]:
    """Kind, namespace and name of every object."""
    return {
        f"{resource} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for resource, path in _collections(client).items()
        for item in client.get(path)["items"]
    }


def leave_behind(client: Client, driver: str) -> None:
    """A pool status request of ours that nobody waits for any more."""
    labels = {"app.kubernetes.io/managed-by": "vacancy"}
    client.post(STATUSES, {"metadata": {"generateName": "vacancy-", "labels": labels}, "spec": {"driver": driver}})


def _collections(client: Client) -> dict[str, str]:
    """The path of all objects of each kind that can be listed, by group and resource."""
    found = {}
    for root in ("/api", "/apis"):
        for group in client.http.get(root, headers={"Accept": _DISCOVERY}).json()["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                folder = "/".join(part for part in (root, name, version["version"]) if part)
                for resource in version["resources"]:
                    if "list" in resource["verbs"] and resource["resource"] not in _LEFT_OUT:
                        found[f"{name}/{resource['resource']}"] = f"{folder}/{resource['resource']}"
    return found
