"""The closed list of reasons: metric label, JSON value and cause reason at once.

Kubernetes gives some cause reasons a meaning of its own (`NamespaceTerminating` stops controllers); none of these does.
"""

import enum


class Reason(enum.StrEnum):
    """Why a verdict is what it is."""

    # Refused (or would be, in another mode).
    NoGPUCapacity = "NoGPUCapacity"
    NeverFits = "NeverFits"
    # Admitted: there is something free, or nothing was asked for.
    HasRoom = "HasRoom"
    FewerThanAsked = "FewerThanAsked"
    NoDeviceRequested = "NoDeviceRequested"
    # Not judged: the pod.
    OptedOut = "OptedOut"
    MirrorPod = "MirrorPod"
    NodeNameSet = "NodeNameSet"
    SchedulingGated = "SchedulingGated"
    SchedulingGroup = "SchedulingGroup"
    OtherScheduler = "OtherScheduler"
    DaemonSetPod = "DaemonSetPod"
    QueueManaged = "QueueManaged"
    MayPreempt = "MayPreempt"
    # Not judged: one request of the pod.
    DevicePlugin = "DevicePlugin"
    ClaimAllocated = "ClaimAllocated"
    ClaimMissing = "ClaimMissing"
    TemplateMissing = "TemplateMissing"
    ClassMissing = "ClassMissing"
    AdminAccess = "AdminAccess"
    UnknownField = "UnknownField"
    FractionalQuantity = "FractionalQuantity"
    Autoscaled = "Autoscaled"
    Dynamic = "Dynamic"
    LookupFailed = "LookupFailed"
    # Not known: the devices.
    NoMatchingDevice = "NoMatchingDevice"
    PoolIncomplete = "PoolIncomplete"
    PoolInvalid = "PoolInvalid"
    OutOfReach = "OutOfReach"
    SelectorUnknown = "SelectorUnknown"
    Shareable = "Shareable"
    StaleSnapshot = "StaleSnapshot"
    NoSource = "NoSource"
    InternalError = "InternalError"
