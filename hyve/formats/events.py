"""Records of the signal "event": JSON objects that are no span, log record or metric point, kept as they are.

Rules:
- Who an event is about and when it happened is what a format says that knows it (Kubernetes' events, alerts), else what
  the usual keys say, the outermost first; of a cloud event without either, its source.
- Telemetry in the data of a cloud event is telemetry, not an event.
- A list of Kubernetes objects is one event an object. Values that are no objects are one event together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from hyve.formats import logs
from hyve.formats.scalars import Relations, dicts, instant_ns
from hyve.formats.telemetry import relations, sort_out
from hyve.formats.wire import Record, carried

_TIMES = (
    *("time", "timestamp", "@timestamp", "ts", "eventTime", "event_time", "datetime", "date", "occurredAt"),
    *("occurred_at", "createdAt", "created_at", "startsAt", "lastTimestamp", "firstTimestamp", "creationTimestamp"),
)
_DEPTH = 3
_OBJECTS = 100
"""How far in, and how many objects, entity and time are looked for."""


def records(values: Sequence[Any]) -> tuple[list[Record], bool]:
    """The records of parsed values: what they hold of telemetry, and an event for each other object; and whether the
    values held an object at all."""
    found, rest = sort_out(values)
    others = [value for value in rest if type(value) is not dict]
    for value in rest:
        if type(value) is dict:
            found.extend(events(value))
    known = bool(found) or len(others) < len(rest) or not rest
    if others and known:
        found.append(Record("event", "unknown", 0, {"values": others}))
    return found, known


def events(value: dict[str, Any]) -> list[Record]:
    """The records of an object that is no telemetry, but may carry some."""
    value = carried(value) or value
    known = relations([value])
    listed = dicts(value.get("items")) if not known.keys().isdisjoint(_KUBERNETES) else []
    if listed:
        kind = value.get("kind")
        kind = kind.removesuffix("List") if type(kind) is str else None
        named = [{"kind": kind, **item} if kind and "kind" not in item else item for item in listed]
        return [_event(item, relations([item])) for item in named]
    if "cloud_events" in known:
        data = known["cloud_events"][0]["data"]
        found, rest = sort_out([data]) if type(data) in (dict, list) else ([], [])
        if found and not rest:
            return found
    return [_event(value, known)]


_KUBERNETES = frozenset({"pods", "containers", "kubernetes_events", "kubernetes_objects"})


def _event(value: dict[str, Any], known: Relations) -> Record:
    rows = [row for listed in known.values() for row in listed[:1]]
    services = (row["service"] for row in rows if type(row.get("service")) is str and row["service"] != "unknown")
    times = (row["time"] for row in rows if row.get("time"))
    entity = next(services, None) or next(filter(None, map(_service, _objects(value))), None) or _source(value)
    time = next(times, None) or next(filter(None, map(_time, _objects(value))), 0)
    return Record("event", entity or "unknown", time, value)


def _objects(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object and those in it, the outermost first."""
    left = deque([(value, 0)])
    seen = 0
    while left and seen < _OBJECTS:
        item, depth = left.popleft()
        seen += 1
        yield item
        if depth < _DEPTH:
            left.extend((inner, depth + 1) for inner in item.values() if type(inner) is dict)


def _service(value: dict[str, Any]) -> str | None:
    found = logs.service(value, logs.plan(tuple(value)).services)
    return found if found != "unknown" else None


def _time(value: dict[str, Any]) -> int | None:
    return next(filter(None, (instant_ns(value[key]) for key in _TIMES if key in value)), None)


def _source(value: dict[str, Any]) -> str | None:
    source = value.get("source") if "specversion" in value else None
    return source.rstrip("/").rpartition("/")[2] if type(source) is str else None
