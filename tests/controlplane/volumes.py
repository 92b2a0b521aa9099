"""The volumes of a pod as folders, filled once when the pod starts: what changes later is not brought after."""

import base64
from pathlib import Path

from tests.controlplane.client import Client, Json


def fill_volume(client: Client, pod: Json, volume: Json, folder: Path) -> None:
    """Make the folder of a volume and what is in it. Raises `Refused` while something it needs is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = volume["projected"]["sources"] if "projected" in volume else [volume]
    for source in sources:
        for name, content in _files(client, pod, source).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def field(pod: Json, path: str, address: str) -> str:
    """A field as an environment variable or a file may name it (downward API)."""
    first, _, rest = path.partition(".")
    if path == "status.podIP":
        return address
    if first in {"metadata", "spec"} and isinstance(pod[first].get(rest), str):
        return str(pod[first][rest])
    raise NotImplementedError(path)


def _files(client: Client, pod: Json, source: Json) -> dict[str, bytes]:
    namespace = pod["metadata"]["namespace"]
    match source:
        case {"emptyDir": _}:
            return {}
        case {"secret": given}:
            name = given.get("secretName") or given["name"]  # the one alone, the other in a projected volume
            data = client.get(f"/api/v1/namespaces/{namespace}/secrets/{name}").get("data") or {}
            return _chosen({key: base64.b64decode(value) for key, value in data.items()}, given)
        case {"configMap": given}:
            data = client.get(f"/api/v1/namespaces/{namespace}/configmaps/{given['name']}").get("data") or {}
            return _chosen({key: value.encode() for key, value in data.items()}, given)
        case {"serviceAccountToken": given}:
            return {given["path"]: _token(client, pod, given).encode()}
        case {"downwardAPI": given}:
            return {each["path"]: field(pod, each["fieldRef"]["fieldPath"], "").encode() for each in given["items"]}
    raise NotImplementedError(sorted(source))


def _chosen(data: dict[str, bytes], given: Json) -> dict[str, bytes]:
    if items := given.get("items"):
        return {each["path"]: data[each["key"]] for each in items}
    return data


def _token(client: Client, pod: Json, given: Json) -> str:
    """A token for this pod alone, as the kubelet asks for it: it ends with the pod."""
    meta = pod["metadata"]
    account = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{pod['spec']['serviceAccountName']}"
    spec: Json = {
        "expirationSeconds": given.get("expirationSeconds", 3600),
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]},
    }
    if audience := given.get("audience"):
        spec["audiences"] = [audience]
    token: str = client.post(f"{account}/token", {"spec": spec})["status"]["token"]
    return token
