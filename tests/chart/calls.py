"""Objects, and whether a webhook is called for them: one table for the rendered conditions and for the API server."""

from typing import Any

Json = dict[str, Any]

IMAGE = "registry.example.com/app"


def container(name: str = "a", **fields: object) -> Json:
    return {"name": name, "image": IMAGE} | fields


def asking(resource: str, count: str = "1", name: str = "a") -> Json:
    """A container with that request, and the same limit, as extended resources must have."""
    return container(name, resources={"requests": {resource: count}, "limits": {resource: count}})


def pod(*containers: Json, metadata: Json | None = None, **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-", **(metadata or {})},
        "spec": {"containers": list(containers or [container()]), **spec},
    }


GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.example.com"
CLAIM = {"name": "gpu", "resourceClaimName": "some"}


def owner(kind: str, api_version: str = "apps/v1", **fields: object) -> Json:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", **fields}]}


PODS: dict[str, tuple[Json, bool]] = {
    "nothing at all": (pod(), False),
    "cpu and memory": (pod(container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})), False),
    "huge pages": (
        pod(
            container(resources={"requests": {"hugepages-2Mi": "2Mi", "cpu": "1"}, "limits": {"hugepages-2Mi": "2Mi"}})
        ),
        False,
    ),
    "a name that only contains the native domain": (pod(asking("mykubernetes.io/gpu")), False),
    "an extended resource": (pod(asking(GPU)), True),
    "an extended resource of the second container": (pod(container("b"), asking(GPU)), True),
    "an extended resource of an init container": (pod(initContainers=[asking(GPU, name="i")]), True),
    "an extended resource of a sidecar": (
        pod(initContainers=[asking(GPU, name="i") | {"restartPolicy": "Always"}]),
        True,
    ),
    "none of an extended resource": (pod(asking(GPU, "0")), True),
    "a device class by its name": (pod(asking(IMPLICIT)), True),
    "a device class in requests alone": (pod(container(resources={"requests": {IMPLICIT: "1"}})), True),
    "a resource claim": (pod(resourceClaims=[CLAIM]), True),
    "a resource claim that a container names": (
        pod(container(resources={"claims": [{"name": "gpu"}]}), resourceClaims=[CLAIM]),
        True,
    ),
    "held by a scheduling gate": (pod(asking(GPU), schedulingGates=[{"name": "example.com/wait"}]), False),
    "of another scheduler": (pod(asking(GPU), schedulerName="batch"), False),
    "of the default scheduler by name": (pod(asking(GPU), schedulerName="default-scheduler"), True),
    "with its node's name": (pod(asking(GPU), nodeName="n"), False),
    "of a DaemonSet": (pod(asking(GPU), metadata=owner("DaemonSet", controller=True)), False),
    "that belongs to a DaemonSet which doesn't control it": (pod(asking(GPU), metadata=owner("DaemonSet")), True),
    "of a ReplicaSet": (pod(asking(GPU), metadata=owner("ReplicaSet", controller=True)), True),
    "that mirrors a static pod": (
        pod(asking(GPU), metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName="n"),
        False,
    ),
}


def template(*containers: Json, **spec: object) -> Json:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": list(containers or [container()]), **spec}}


def workload(kind: str, api_version: str, of: Json, metadata: Json | None = None, **spec: object) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"generateName": "w-", **(metadata or {})},
        "spec": {"template": of, **spec},
    }


SELECTOR = {"matchLabels": {"app": "a"}}
NEVER = {"restartPolicy": "Never"}


def cron_job(of: Json) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"generateName": "w-"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": of}}},
    }


WORKLOADS: dict[str, tuple[Json, bool]] = {
    "a Deployment without devices": (workload("Deployment", "apps/v1", template(), selector=SELECTOR), False),
    "a Deployment": (workload("Deployment", "apps/v1", template(asking(GPU)), selector=SELECTOR), True),
    "a Deployment with limits alone": (
        workload("Deployment", "apps/v1", template(container(resources={"limits": {GPU: "1"}})), selector=SELECTOR),
        True,
    ),
    "a Deployment with cpu limits alone": (
        workload("Deployment", "apps/v1", template(container(resources={"limits": {"cpu": "1"}})), selector=SELECTOR),
        False,
    ),
    "a StatefulSet that names a claim": (
        workload("StatefulSet", "apps/v1", template(resourceClaims=[CLAIM]), selector=SELECTOR, serviceName="s"),
        True,
    ),
    "a ReplicaSet": (workload("ReplicaSet", "apps/v1", template(asking(GPU)), selector=SELECTOR), True),
    "a ReplicaSet of a Deployment": (
        workload(
            "ReplicaSet",
            "apps/v1",
            template(asking(GPU)),
            owner("Deployment", controller=True),
            selector=SELECTOR,
        ),
        False,
    ),
    "a ReplicationController": (
        workload("ReplicationController", "v1", template(asking(GPU)), selector={"app": "a"}),
        True,
    ),
    "a Job whose init container asks": (
        workload("Job", "batch/v1", template(initContainers=[asking(IMPLICIT, name="i")], **NEVER)),
        True,
    ),
    "a Job of a CronJob": (
        workload("Job", "batch/v1", template(asking(GPU), **NEVER), owner("CronJob", "batch/v1", controller=True)),
        False,
    ),
    "a CronJob": (cron_job(template(asking(GPU), **NEVER)), True),
    "a CronJob without devices": (cron_job(template(**NEVER)), False),
}
