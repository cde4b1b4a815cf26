"""From parsed values to relations and to normalised records: asks each recogniser in turn.

Rules: the first recogniser that knows a value takes all of it; rows keep the order of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hyve.formats import alertmanager, kubernetes, loki, otlp, prometheus, wire, zipkin
from hyve.formats.scalars import Relations
from hyve.formats.wire import RELATION, Record

__all__ = ["RECOGNISERS", "Record", "records", "relations"]

RECOGNISERS: tuple[Callable[[Any], Relations | None], ...] = (
    wire.recognise,
    otlp.recognise,
    alertmanager.recognise,
    prometheus.recognise,
    loki.recognise,
    zipkin.recognise,
    kubernetes.recognise,
)


def relations(values: Sequence[Any]) -> Relations:
    """Rows of every value that a recogniser knows, by relation name, in the order of the values. A list that
    is no known message itself is looked into: its items may be messages (a file of exports in one array)."""
    merged: Relations = {}
    for value in values:
        if not _take(value, merged) and type(value) is list:
            for item in value:
                _take(item, merged)
    return merged


def records(value: Any) -> list[Record]:
    """The normalised records of any telemetry payload that is known; [] where nothing is recognised."""
    found = relations([value])
    result: list[Record] = []
    for signal, name in RELATION.items():
        for row in found.get(name, ()):
            time = row["time"]
            result.append(Record(signal, row["service"], time if time is not None else 0, row))
    return result


def _take(value: Any, merged: Relations) -> bool:
    if type(value) is not dict and type(value) is not list:
        return False
    for recognise in RECOGNISERS:
        found = recognise(value)
        if found is not None:
            for name, rows in found.items():
                merged.setdefault(name, []).extend(rows)
            return True
    return False
