"""A cluster in one file: class `full` has its only device taken, class `roomy` has one free, clock `NOW`."""

from pathlib import Path

from app.dra.judgement import Policy
from app.embedded import Embedded

NOW = 1767225600.0
"""2026-01-01T00:00:00Z."""

CLUSTER = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: full, creationTimestamp: "2025-12-01T00:00:00Z"}
spec:
  extendedResourceName: example.com/full
  selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].kind == "full"'}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: roomy, creationTimestamp: "2025-12-01T00:00:00Z"}
spec:
  extendedResourceName: example.com/roomy
  selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].kind == "roomy"'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1, creationTimestamp: "2025-12-01T00:00:00Z"}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {kind: {string: full}}}
  - {name: gpu-1, attributes: {kind: {string: roomy}}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: "2025-12-01T00:00:00Z"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, namespace: team, uid: c1, creationTimestamp: "2025-12-01T00:00:00Z"}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: full}}]}}
status:
  allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: gpu-0}]}}
  reservedFor: [{resource: pods, name: p, uid: p1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-full, namespace: team}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: full}}]}}}
"""


def cluster(folder: Path) -> Embedded:
    """The cluster, read from a file in `folder`."""
    (folder / "cluster.yaml").write_text(CLUSTER, "utf-8")
    return Embedded(folder, Policy(), lambda: NOW)
