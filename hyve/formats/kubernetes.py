"""Kubernetes objects (`kubectl get -o json`, watch events, single objects, bare lists) as rows of `pods`, `containers`,
`kubernetes_events` and `kubernetes_objects`.

Rules:
- Items without a kind take that of their list; what has container statuses is a pod, and what has an involved object
  and a reason is an event, as exporters write it. Every other object with a kind and a name, and an API version, spec
  or status, is a row of `kubernetes_objects`.
- `service` is the application: a label, else the owner's name without what controllers append, else the own name.
- Quantities (`10m`, `16419384Ki`) are numbers: cores, and bytes.
- A condition is bad where it says False or Unknown of what should be (Ready, Available) or True of what shouldn't
  (Degraded). A node under pressure is ready as long as it says so; its reason is the pressure.
- What isn't told is None, as where the end of a text cut it: a pod without the statuses of its containers is ready as
  its condition or phase says, and a count that is left out of a status is 0 only beside the others.
- What has fewer ready replicas than it wants isn't ready, whatever its conditions say. Of an autoscaler they are the
  desired and the current ones. `ready` is None where nothing says anything of it.
- `reason` of a container is that of its present state, `last_reason` that of its last end. A pod's is the reason of
  that of its containers that fails now (the one restarted most often, `container`), else what the pod itself says.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from hyve.formats.entities import HASH, application, service_of
from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, number, rfc3339_ns, text

RELATIONS = ("pods", "containers", "kubernetes_events", "kubernetes_objects")
_LABELS = ("app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance", "component")
_HASH = re.compile(rf"{HASH}\Z")
_GOOD = frozenset(
    {"Ready", "Available", "Established", "Healthy", "Complete", "Initialized", "ContainersReady"}
    | {"AbleToScale", "ScalingActive"}
)
_BAD = frozenset({"Degraded", "Failing", "Failed", "ReplicaFailure", "Stalled", "OutOfDisk"})
_PRESSURE = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
_REPLICATED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Rollout"})
_COUNTED = frozenset({"replicas", "updatedReplicas", "unavailableReplicas"})
"""Counts one of which every status has; they stand behind `readyReplicas`, by the alphabet."""
_PHASES = {
    **dict.fromkeys(("Bound", "Active", "Available", "Running", "Succeeded", "Ready"), True),
    **dict.fromkeys(("Pending", "Lost", "Failed", "Terminating", "Unknown"), False),
}
_STARTING = frozenset({"PodInitializing", "ContainerCreating"})
_QUANTITY = re.compile(r"([+-]?[0-9.]{1,30}(?:[eE][+-]?[0-9]{1,3})?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?", re.ASCII)
_UNITS = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)},
}


@needs(
    *("items", "object type", "kind metadata", "kind involvedObject", "kind regarding", "metadata status"),
    *("kind status", "involvedObject reason", "regarding reason", "verb event"),
)
def recognise(value: Any) -> Relations | None:
    """The rows of the objects that a value is or lists, or None where it holds none."""
    if type(value) is not dict:
        return None
    kind = value.get("kind")
    if type(value.get("items")) is list and (type(kind) is str or kind is None):
        listed = kind.removesuffix("List") if kind else ""
        objects = [(_kind(item) or listed, item) for item in dicts(value["items"])]
    elif type(value.get("object")) is dict and type(value.get("type")) is str:
        objects = [(_kind(value["object"]), value["object"])]
    elif type(value.get("event")) is dict and type(value.get("verb")) is str:  # eventrouter's
        objects = [(_kind(value["event"]), value["event"])]
    else:
        objects = [(_kind(value), value)]
    result: Relations = {name: [] for name in RELATIONS}
    for name, item in objects:
        if name == "Pod" or (not name and "containerStatuses" in mapping(item.get("status"))):
            _pod(item, result)
        elif name == "Event" or (not name and "reason" in item):  # exporters leave the kind out
            if "involvedObject" in item or "regarding" in item:
                result["kubernetes_events"].append(_event(item))
        elif name and name != "List" and _is_object(item):
            result["kubernetes_objects"].append(_object(name, item))
    return {name: rows for name, rows in result.items() if rows} or None


def _kind(item: dict[str, Any]) -> str:
    kind = item.get("kind")
    return kind if type(kind) is str else ""


def _is_object(item: dict[str, Any]) -> bool:
    named = type(mapping(item.get("metadata")).get("name")) is str
    return named and (type(item.get("apiVersion")) is str or type(item.get("status")) is dict or "spec" in item)


def _pod(item: dict[str, Any], result: Relations) -> None:
    meta, spec, status = mapping(item.get("metadata")), mapping(item.get("spec")), mapping(item.get("status"))
    name, namespace = text(meta.get("name")), text(meta.get("namespace"))
    service = _service(meta, name)
    about = {"service": service, "namespace": namespace, "pod": name}
    specs = dicts(spec.get("containers"))
    started = dicts(status.get("containerStatuses"))
    init = dicts(spec.get("initContainers")), dicts(status.get("initContainerStatuses"))
    containers = _containers(*init, about, True) + _containers(specs, started, about, False)
    result["containers"] += containers
    container, reason, message = _trouble(status, containers, [*init[1], *started])
    result["pods"].append(
        {
            "time": rfc3339_ns(status.get("startTime")) or rfc3339_ns(meta.get("creationTimestamp")),
            "service": service,
            "name": name,
            "namespace": namespace,
            "node": text(spec.get("nodeName")),
            "phase": text(status.get("phase")),
            "ready": _ready(status, containers),
            "restarts": _restarts(status, containers),
            "reason": reason,
            "message": message,
            "container": container,
            "deletion_time": rfc3339_ns(meta.get("deletionTimestamp")),
            "images": ", ".join([text(container.get("image")) for container in specs]),
            "labels": mapping(meta.get("labels")),
        }
    )


_NOT_READY = frozenset({"Pending", "Succeeded", "Failed"})


def _ready(status: dict[str, Any], containers: list[Row]) -> bool | None:
    """Whether a pod is ready: all of its containers are, or else what its condition or its phase says."""
    told = [row["ready"] for row in containers if not row["init"]]
    if False in told or (told and None not in told):
        return False not in told
    said = next((said.get("status") for said in dicts(status.get("conditions")) if said.get("type") == "Ready"), None)
    if said in ("True", "False"):
        return bool(said == "True")
    return False if status.get("phase") in _NOT_READY else None


def _restarts(status: dict[str, Any], containers: list[Row]) -> int | None:
    """How often a pod's containers were started anew; None where that isn't told of all that may have been started."""
    counts = [row["restarts"] for row in containers if not row["init"] or row["restarts"] is not None]
    if status.get("phase") == "Pending":  # what has no count was not started
        return sum([count or 0 for count in counts])
    return None if None in counts or not counts else sum(counts)


def _trouble(status: dict[str, Any], containers: list[Row], statuses: list[dict[str, Any]]) -> tuple[str, str, str]:
    """What is wrong with a pod now: the container that fails, the reason, the message; "" where nothing is."""
    failing = [row for row in containers if row["reason"] and row["reason"] not in _STARTING | {"Completed"}]
    if failing:
        worst = max(failing, key=lambda row: row["restarts"] or 0)
        said = next((told for told in statuses if text(told.get("name")) == worst["container"]), {})
        now = mapping(mapping(said.get("state")).get(worst["state"]))
        return worst["container"], worst["reason"], text(now.get("message"))
    if reason := text(status.get("reason")):
        return "", reason, text(status.get("message"))
    conditions = [said for said in dicts(status.get("conditions")) if said.get("status") == "False"]
    conditions.sort(key=lambda said: said.get("type") != "PodScheduled")
    starting = [row for row in containers if row["reason"] in _STARTING]
    if starting and not (conditions and conditions[0].get("type") == "PodScheduled"):
        return starting[-1]["container"], starting[-1]["reason"], ""
    for said in conditions:
        if (reason := text(said.get("reason"))) and reason != "PodCompleted":
            return "", reason, text(said.get("message"))
    return "", "", ""


def _containers(
    specs: list[dict[str, Any]], statuses: list[dict[str, Any]], about: dict[str, Any], init: bool
) -> list[Row]:
    """The rows of a pod's containers in the order of its spec, and of those that only its status tells of."""
    states = {text(status.get("name")): status for status in statuses}
    rows = [_container(spec, states.pop(text(spec.get("name")), {}), about, init) for spec in specs]
    return rows + [_container({}, status, about, init) for status in states.values()]


def _container(spec: dict[str, Any], status: dict[str, Any], about: dict[str, Any], init: bool) -> Row:
    """What was asked for a container and how it is; either may be missing. Times are those of its present run, of the
    last one while it waits; reason and exit code those of its present state."""
    state, last = mapping(status.get("state")), mapping(mapping(status.get("lastState")).get("terminated"))
    name = next((key for key in ("running", "waiting", "terminated") if type(state.get(key)) is dict), "")
    now = mapping(state.get(name))
    run = last if name == "waiting" else now
    resources = mapping(spec.get("resources"))
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    ready = status.get("ready")
    return {
        "time": rfc3339_ns(run.get("startedAt")),
        "end_time": rfc3339_ns(run.get("finishedAt")),
        **about,
        "container": text(spec.get("name")) or text(status.get("name")),
        "init": init,
        "image": text(spec.get("image")) or text(status.get("image")),
        "ready": ready if type(ready) is bool else None,
        "restarts": integer(status.get("restartCount")),
        "state": name,
        "reason": text(now.get("reason")),
        "exit_code": integer(now.get("exitCode")),
        "last_reason": text(last.get("reason")),
        "last_exit_code": integer(last.get("exitCode")),
        "last_finished": rfc3339_ns(last.get("finishedAt")),
        "cpu_request": quantity(requests.get("cpu")),
        "cpu_limit": quantity(limits.get("cpu")),
        "memory_request": _bytes(requests.get("memory")),
        "memory_limit": _bytes(limits.get("memory")),
    }


def quantity(value: Any) -> float | None:
    """A quantity as a number: `10m` is 0.01, `1Ki` is 1024."""
    if type(value) is str:
        return _quantity(value) if len(value) <= 40 else None
    return number(value)


@lru_cache(maxsize=1024)
def _quantity(value: str) -> float | None:
    match = _QUANTITY.fullmatch(value)
    amount = number(match[1]) if match else None
    return None if match is None or amount is None else number(amount * _UNITS.get(match[2] or "", 1))


def _bytes(value: Any) -> int | None:
    amount = quantity(value)
    return None if amount is None else integer(round(amount))


def _service(meta: dict[str, Any], name: str) -> str:
    labels = mapping(meta.get("labels"))
    for key in _LABELS:
        label = labels.get(key)
        if type(label) is str and label:
            return label
    owners = dicts(meta.get("ownerReferences"))
    return (_HASH.sub("", text(owners[0].get("name"))) if owners else "") or name or "unknown"


def _object(kind: str, item: dict[str, Any]) -> Row:
    meta, spec, status = mapping(item.get("metadata")), mapping(item.get("spec")), mapping(item.get("status"))
    conditions = {text(said.get("type")): said for said in dicts(status.get("conditions")) if said.get("type")}
    wanted, there = _replicas(kind, item, spec, status)
    phase = text(status.get("phase"))
    ready, reason, message = _condition(kind, conditions)
    if wanted is not None and there is not None and kind != "HorizontalPodAutoscaler":
        short = there < wanted
        ready = not short and ready is not False
        message = message or (f"{there} of {wanted} replicas are ready" if short else "")
    if ready is None and (ready := _PHASES.get(phase)) is False:
        reason = reason or phase
    name = text(meta.get("name"))
    return {
        "time": rfc3339_ns(meta.get("creationTimestamp")),
        "service": _service(meta, name),
        "kind": kind,
        "name": name,
        "namespace": text(meta.get("namespace")),
        "ready": ready,
        "phase": phase,
        "reason": reason,
        "message": message,
        "replicas": wanted,
        "ready_replicas": there,
        "conditions": {type_: text(said.get("status")) for type_, said in conditions.items()},
        "labels": mapping(meta.get("labels")),
    }


def _replicas(
    kind: str, item: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]
) -> tuple[int | None, int | None]:
    """How many replicas an object wants and how many are ready (of an autoscaler: are there)."""
    if kind == "DaemonSet":
        wanted, there = integer(status.get("desiredNumberScheduled")), integer(status.get("numberReady"))
    elif kind == "HorizontalPodAutoscaler":
        wanted, there = integer(status.get("desiredReplicas")), integer(status.get("currentReplicas"))
    else:
        wanted, there = integer(spec.get("replicas")), integer(status.get("readyReplicas"))
        known = type(item.get("status")) is dict and not (wanted and status.keys().isdisjoint(_COUNTED))
        if kind not in _REPLICATED or not known:
            return wanted, there
    return wanted, 0 if there is None and wanted is not None else there


def _condition(kind: str, conditions: dict[str, dict[str, Any]]) -> tuple[bool | None, str, str]:
    """Whether an object's conditions say that it is ready, and the reason and message of the one that matters most."""
    steady = {type_ for type_, said in conditions.items() if said.get("status") == "True"}
    pressure = _PRESSURE & steady
    bad = [
        type_
        for type_, said in conditions.items()
        if (type_ in _GOOD and said.get("status") in ("False", "Unknown"))
        or (type_ == "Progressing" and kind == "Deployment" and said.get("status") == "False")
        or (type_ in _BAD and type_ in steady)
        or (type_ in pressure and "Ready" not in conditions)
    ]
    # A rollout that is stuck says why, while too few replicas are only what follows.
    bad.sort(key=lambda type_: type_ != "Progressing")
    worth = bad or [
        type_ for type_ in conditions if type_ in pressure or (type_ == "ScalingLimited" and type_ in steady)
    ]
    said = conditions[worth[0]] if worth else {}
    told = bool(bad) or not conditions.keys().isdisjoint(_GOOD | _BAD | _PRESSURE)
    return not bad if told else None, text(said.get("reason")), text(said.get("message"))


def _event(item: dict[str, Any]) -> Row:
    meta = mapping(item.get("metadata"))
    about = mapping(item.get("involvedObject") or item.get("regarding"))
    series = mapping(item.get("series"))
    last = (item.get(key) for key in ("lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp"))
    first = (item.get(key) for key in ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"))
    name, kind = text(about.get("name")), text(about.get("kind"))
    service = _labelled(about.get("labels")) if kind in ("Pod", "ReplicaSet") else ""
    service = service or (application(name) if kind == "Pod" else _HASH.sub("", name) if kind == "ReplicaSet" else name)
    return {
        "time": _first_time(series.get("lastObservedTime"), *last, meta.get("creationTimestamp")),
        "first_time": _first_time(*first),
        "service": service or "unknown",
        "kind": kind,
        "name": name,
        "namespace": text(about.get("namespace")) or text(meta.get("namespace")),
        "type": text(item.get("type")),
        "reason": text(item.get("reason")),
        "message": text(item.get("message") or item.get("note")),
        "count": integer(item.get("count") or series.get("count") or item.get("deprecatedCount")),
    }


def _first_time(*times: Any) -> int | None:
    """The first of several times that is one."""
    return next((at for at in map(rfc3339_ns, times) if at is not None), None)


def _labelled(labels: Any) -> str:
    """The application that a pod's labels name, "" where they name none."""
    found = service_of({key: inner for key, inner in mapping(labels).items() if key not in _NO_NAMES})
    return "" if found == "unknown" else found


_NO_NAMES = frozenset({"job", "instance", "host", "pod", "job_name"})


def speaker(about: dict[str, Any]) -> str:
    """Whose log it is that a log shipper tells of in a record's `kubernetes`: the application that the pod's labels
    name, else that of the pod's name, else the container, else "unknown"."""
    if not about:
        return "unknown"
    found = _labelled(about.get("labels")) or _labelled(about.get("pod_labels"))
    if found:
        return found
    name = about.get("pod_name") or mapping(about.get("pod")).get("name")
    if type(name) is str and name:
        return application(name)
    container = about.get("container_name") or mapping(about.get("container")).get("name")
    return container if type(container) is str and container else "unknown"
