"""Kubernetes objects (`kubectl get -o json`, watch events, single objects) as rows of `pods` and `kubernetes_events`.

Rules: pods and events only; other kinds stay what the store makes of them. Items without a kind take that of their
list, and what has container statuses is a pod. `service` is the pod's application: its label, else the owner's name
without the hash, else its own name.
"""

from __future__ import annotations

import re
from typing import Any

from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, rfc3339_ns, text

_LABELS = ("app.kubernetes.io/name", "app", "k8s-app", "app.kubernetes.io/instance", "component")
_HASH = re.compile(r"-[a-f0-9]{6,10}$")
_POD_HASH = re.compile(r"(-[a-f0-9]{6,10})?-[a-z0-9]{5}$")


def recognise(value: Any) -> Relations | None:
    """Rows of `pods` and `kubernetes_events`, or None where the value holds neither."""
    if type(value) is not dict:
        return None
    kind = value.get("kind")
    if type(value.get("items")) is list and (type(kind) is str or kind is None):
        listed = kind.removesuffix("List") if kind else ""
        objects = [(text(item.get("kind")) or listed, item) for item in dicts(value["items"])]
    elif type(value.get("object")) is dict and type(value.get("type")) is str:
        objects = [(text(value["object"].get("kind")), value["object"])]
    else:
        objects = [(text(kind), value)]
    result: Relations = {}
    for name, item in objects:
        if name == "Pod" or (not name and "containerStatuses" in mapping(item.get("status"))):
            result.setdefault("pods", []).append(_pod(item))
        elif name == "Event" and ("involvedObject" in item or "regarding" in item):
            result.setdefault("kubernetes_events", []).append(_event(item))
    return result or None


def _pod(item: dict[str, Any]) -> Row:
    meta, spec, status = mapping(item.get("metadata")), mapping(item.get("spec")), mapping(item.get("status"))
    labels = mapping(meta.get("labels"))
    containers = dicts(status.get("containerStatuses"))
    reasons = [
        text(mapping(mapping(container.get(when)).get(state)).get("reason"))
        for container in containers
        for when, state in (("state", "waiting"), ("state", "terminated"), ("lastState", "terminated"))
    ]
    owners = [text(owner.get("name")) for owner in dicts(meta.get("ownerReferences"))]
    label = next((labels[key] for key in _LABELS if type(labels.get(key)) is str and labels[key]), "")
    service = label or (_HASH.sub("", owners[0]) if owners and owners[0] else "") or text(meta.get("name"))
    return {
        "time": rfc3339_ns(status.get("startTime")) or rfc3339_ns(meta.get("creationTimestamp")),
        "service": service or "unknown",
        "name": text(meta.get("name")),
        "namespace": text(meta.get("namespace")),
        "node": text(spec.get("nodeName")),
        "phase": text(status.get("phase")),
        "ready": bool(containers) and all(container.get("ready") is True for container in containers),
        "restarts": sum(integer(container.get("restartCount")) or 0 for container in containers),
        "reason": next((reason for reason in reasons if reason), text(status.get("reason"))),
        "images": ", ".join(text(container.get("image")) for container in dicts(spec.get("containers"))),
        "labels": labels,
    }


def _event(item: dict[str, Any]) -> Row:
    meta = mapping(item.get("metadata"))
    about = mapping(item.get("involvedObject") or item.get("regarding"))
    times = (item.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp", "deprecatedLastTimestamp"))
    time = next((at for at in map(rfc3339_ns, times) if at is not None), rfc3339_ns(meta.get("creationTimestamp")))
    name = text(about.get("name"))
    hashed = {"Pod": _POD_HASH, "ReplicaSet": _HASH}.get(text(about.get("kind")))
    return {
        "time": time,
        "service": (hashed.sub("", name) if hashed else name) or "unknown",
        "kind": text(about.get("kind")),
        "name": name,
        "namespace": text(about.get("namespace")) or text(meta.get("namespace")),
        "type": text(item.get("type")),
        "reason": text(item.get("reason")),
        "message": text(item.get("message") or item.get("note")),
        "count": integer(item.get("count") or mapping(item.get("series")).get("count")),
    }
