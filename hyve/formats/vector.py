"""Metric events as Vector writes them in JSON, one a message, as rows of `metric_points`.

Rules: the value is under the name of its kind (`gauge`, `counter`, `aggregated_histogram`, ...), tags are `attributes`;
the name has its namespace before it. The points of a distribution or a set are counted, not listed.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import metric_point
from hyve.formats.scalars import Relations, dicts, instant_ns, integer, mapping, number

_KINDS = {
    "gauge": "gauge",
    "counter": "sum",
    "set": "gauge",
    "distribution": "histogram",
    "aggregated_histogram": "histogram",
    "aggregated_summary": "summary",
}


@needs(*(f"name kind {kind}" for kind in _KINDS))
def recognise(value: Any) -> Relations | None:
    """The row of one metric event, or None."""
    if type(value) is not dict or value.get("kind") not in ("absolute", "incremental"):
        return None
    name, field = value.get("name"), next(kind for kind in _KINDS if kind in value)
    held = value[field]
    if type(name) is not str or not name or type(held) is not dict:
        return None
    tags, space = mapping(value.get("tags")), value.get("namespace")
    samples = dicts(held.get("samples"))
    members = held.get("values")
    row = metric_point(
        instant_ns(value.get("timestamp")),
        service_of(tags),
        f"{space}_{name}" if type(space) is str and space else name,
        float(len(members)) if field == "set" and type(members) is list else held.get("value"),
        kind=_KINDS[field],
        count=sum(integer(sample.get("rate")) or 0 for sample in samples) if samples else integer(held.get("count")),
        sum=number(held.get("sum")),
        attributes=tags,
        resource={},
    )
    return {"metric_points": [row]}
