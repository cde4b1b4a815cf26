"""Prometheus query answers as rows of `metric_points`: the API's envelope, its bare result list, and the
messages of the Prometheus-to-Kafka adapter.

Rules: labels become `attributes` (without `__name__`); the samples "NaN", "+Inf" and "-Inf" keep their row,
with no value; the kind is read off the name (`_total`, `_count`, `_sum`, `_bucket` are counters), since the API
doesn't say it.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.scalars import (
    Relations,
    Row,
    dicts,
    mapping,
    number,
    rfc3339_ns,
    scaled_ns,
    service_of,
    text,
)

_ADAPTER = frozenset({"value", "timestamp", "name"})
_COUNTERS = ("_total", "_count", "_sum", "_bucket")


def recognise(value: Any) -> Relations | None:
    """Rows of `metric_points`, or None."""
    if type(value) is dict:
        if type(value.get("labels")) is dict and value.keys() >= _ADAPTER:
            return {"metric_points": [_adapter(value)]}
        data = value["data"] if type(value.get("data")) is dict else value
        kind, result = data.get("resultType"), data.get("result")
        if type(result) is not list or type(kind) is not str:
            return None
        if kind == "scalar":
            points = [_point(result, "", {}, "unknown")]
            return {"metric_points": [point for point in points if point is not None]}
        return {"metric_points": _series(result)} if kind in ("vector", "matrix") else None
    if type(value) is list and value and _is_series(value[0]):
        return {"metric_points": _series(value)}
    return None


def _is_series(item: Any) -> bool:
    return (
        type(item) is dict
        and type(item.get("metric")) is dict
        and (type(item.get("value")) is list or type(item.get("values")) is list)
    )


def _series(result: list[Any]) -> list[Row]:
    rows: list[Row] = []
    for series in dicts(result):
        labels = dict(mapping(series.get("metric")))
        name = text(labels.pop("__name__", ""))
        service = service_of(labels)
        samples = series.get("values")
        for sample in samples if type(samples) is list else [series.get("value")]:
            point = _point(sample, name, labels, service)
            if point is not None:
                rows.append(point)
    return rows


def _point(sample: Any, name: str, labels: dict[str, Any], service: str) -> Row | None:
    if type(sample) is not list or len(sample) != 2:
        return None
    return _row(scaled_ns(sample[0], 1), number(sample[1]), name, labels, service)


def _row(time: int | None, value: float | None, name: str, labels: dict[str, Any], service: str) -> Row:
    return {
        "time": time,
        "service": service,
        "name": name,
        "value": value,
        "unit": "",
        "kind": "sum" if name.endswith(_COUNTERS) else "gauge",
        "count": None,
        "sum": None,
        "min": None,
        "max": None,
        "attributes": labels,
        "resource": {},
    }


def _adapter(value: dict[str, Any]) -> Row:
    labels = {key: inner for key, inner in value["labels"].items() if key != "__name__"}
    stamp = value["timestamp"]
    time = rfc3339_ns(stamp) if type(stamp) is str else scaled_ns(stamp, 1_000)
    return _row(time, number(value["value"]), text(value["name"]), labels, service_of(labels))
