"""What the accounts of a release may do by its rules, and what they have done by the audit log."""

import dataclasses
import http
from collections.abc import Iterable, Iterator

from tests.controlplane.client import Json


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource, for one account."""

    account: str
    verb: str
    resource: str
    """With its group: `secrets`, `jobs.batch`, `jobs/status.batch`."""
    name: str = ""
    """Empty: of any object."""

    def __str__(self) -> str:
        return f"{self.account}: {self.verb} {self.resource} {self.name}".rstrip()


def granted(objects: Iterable[Json]) -> set[Right]:
    """What roles and bindings among these objects give to service accounts."""
    objects = list(objects)
    rules = {
        (each["kind"], each["metadata"]["name"]): each["rules"]
        for each in objects
        if each["kind"] in {"Role", "ClusterRole"}
    }
    found = set()
    for binding in objects:
        for subject in binding.get("subjects", ()):
            if subject["kind"] == "ServiceAccount":
                role = binding["roleRef"]["kind"], binding["roleRef"]["name"]
                found |= {right for rule in rules[role] for right in _of_rule(subject["name"], rule)}
    return found


def _of_rule(account: str, rule: Json) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(account, verb, _qualified(resource, group), name)


def used(events: Iterable[Json], known: set[Right]) -> tuple[set[Right], set[Right]]:
    """What was done, and what was refused; by the name of an object only where that is `known`."""
    done: set[Right] = set()
    refused: set[Right] = set()
    for event in events:
        of = event.get("objectRef")
        if of is None:  # discovery, the version: open to everyone
            continue
        account = event["user"]["username"].rpartition(":")[2]
        resource = "/".join(filter(None, (of["resource"], of.get("subresource"))))
        right = Right(account, event["verb"], _qualified(resource, of.get("apiGroup", "")), of.get("name", ""))
        if right not in known:
            right = dataclasses.replace(right, name="")
        (refused if event["responseStatus"]["code"] == http.HTTPStatus.FORBIDDEN else done).add(right)
    return done, refused


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource
