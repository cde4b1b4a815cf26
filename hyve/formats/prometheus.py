"""Prometheus query answers as rows of `metric_points`: the API's envelope, its bare result list, and the
messages of the Prometheus-to-Kafka adapter.

Rules: labels become `attributes` (without `__name__`); the samples "NaN", "+Inf" and "-Inf" keep their row, with no
value but a `value_text`; the kind is read off the name (`_total`, `_count`, `_sum`, `_bucket` are counters), since the
API doesn't say it. Rows of one series share their `attributes`: readers must not change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import metric_point
from hyve.formats.scalars import (
    EXACT,
    Relations,
    Row,
    dicts,
    mapping,
    number,
    rfc3339_ns,
    scaled_ns,
    text,
    value_text,
)

COUNTERS = ("_total", "_count", "_sum", "_bucket")


@needs("labels value timestamp name", "data", "resultType result", listed=("metric value", "metric values"))
def recognise(value: Any) -> Relations | None:
    """Rows of `metric_points`, or None."""
    if type(value) is dict:
        if type(value.get("labels")) is dict and "value" in value and "timestamp" in value and "name" in value:
            return {"metric_points": [_adapter(value)]}
        data = value["data"] if type(value.get("data")) is dict else value
        kind, result = data.get("resultType"), data.get("result")
        if type(result) is not list or type(kind) is not str:
            return None
        if kind == "scalar":
            return {"metric_points": _samples([result], series_row({}))}
        return {"metric_points": _series(result)} if kind in ("vector", "matrix") else None
    if type(value) is list and value and _is_series(value[0]):
        return {"metric_points": _series(value)}
    return None


def matrix(value: Any) -> tuple[tuple[str, ...], Any] | None:
    """(the keys to the list of series, the answer with its first sample only) of what may be a matrix, or None."""
    if type(value) is list:
        return ((), _shortened(value)) if value and _is_series(value[0]) else None
    if type(value) is not dict:
        return None
    if type(value.get("data")) is dict:
        told = matrix(value["data"])
        return (("data", *told[0]), {**value, "data": told[1]}) if told and told[0] == ("result",) else None
    if value.get("resultType") != "matrix" or type(value.get("result")) is not list:
        return None
    told = matrix(value["result"])
    return (("result",), {**value, "result": told[1]}) if told else None


def _shortened(series: list[Any]) -> list[Any]:
    first = series[0]
    return [{**first, "values": first["values"][:1]} if type(first.get("values")) is list else first]


def _is_series(item: Any) -> bool:
    return (
        type(item) is dict
        and type(item.get("metric")) is dict
        and (type(item.get("value")) is list or type(item.get("values")) is list)
    )


def _series(result: list[Any]) -> list[Row]:
    rows: list[Row] = []
    for series in dicts(result):
        samples = series.get("values")
        first = series_row(mapping(series.get("metric")))
        rows += _samples(samples if type(samples) is list else [series.get("value")], first)
    return rows


def series_row(metric: Mapping[str, Any]) -> Row:
    """What all rows of a series of these labels say, without a time and a value."""
    labels = dict(metric)
    name = text(labels.pop("__name__", ""))
    return row(None, None, name, labels)


def _samples(samples: list[Any], first: Row) -> list[Row]:
    """The rows of one series; a sample that is no [time, value] pair is left out."""
    rows: list[Row] = []
    for sample in samples:
        if type(sample) is list and len(sample) == 2:
            time, value = sample
            # Only the first two differ from sample to sample.
            read = number(value)
            found = {**first, "time": scaled_ns(time, 1), "value": read}
            exact = read is not None and -EXACT < read < EXACT
            rows.append(found if exact else found | value_text(value))
    return rows


def row(time: int | None, value: Any, name: str, labels: dict[str, Any]) -> Row:
    """The row of one sample, whose `value` may be a number's text."""
    kind = "sum" if name.endswith(COUNTERS) else "gauge"
    return metric_point(time, service_of(labels), name, value, kind=kind, attributes=labels, resource={})


def _adapter(value: dict[str, Any]) -> Row:
    labels = {key: inner for key, inner in value["labels"].items() if key != "__name__"}
    stamp = value["timestamp"]
    time = rfc3339_ns(stamp) if type(stamp) is str else scaled_ns(stamp, 1_000)
    return row(time, value["value"], text(value["name"]), labels)
