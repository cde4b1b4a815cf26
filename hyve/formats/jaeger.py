"""Jaeger's spans in the JSON mapping of its protobuf model, as its collector and others write them to Kafka (one span a
message), as rows of `spans`, `span_events` and `span_links`.

Rules: ids are base64, times RFC 3339, durations seconds with an `s`, values under a name for their type (`vStr`,
`vInt64`). Rows are those that `zipkin` makes of Jaeger's query answers, with times to the nanosecond.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, dicts, end_ns, integer, mapping, number, rfc3339_ns
from hyve.formats.zipkin import jaeger_span

_IDS = {"traceId", "spanId"}
_VALUES = ("vStr", "vBool", "vFloat64", "vBinary")


@needs("traceId spanId operationName startTime", "traceId spanId operationName process")
def recognise(value: Any) -> Relations | None:
    """The rows of one span, or None."""
    if type(value) is not dict or type(value.get("operationName")) is not str or not value.keys() >= _IDS:
        return None
    process = mapping(value.get("process"))
    span = {
        "traceID": value["traceId"],
        "spanID": value["spanId"],
        "operationName": value["operationName"],
        "references": [
            {
                "refType": ref.get("refType", "CHILD_OF"),  # the enum's zero is left out
                "traceID": ref.get("traceId"),
                "spanID": ref.get("spanId"),
            }
            for ref in dicts(value.get("references"))
        ],
        "tags": _tags(value.get("tags")),
        "process": {"serviceName": process.get("serviceName"), "tags": _tags(process.get("tags"))},
        "logs": [{"fields": _tags(log.get("fields"))} for log in dicts(value.get("logs"))],
    }
    row, events, links = jaeger_span(span, {})
    start, took = rfc3339_ns(value.get("startTime")), _milliseconds(value.get("duration"))
    row |= {"time": start, "end_time": end_ns(start, took), "duration_ms": took}
    for event, log in zip(events, dicts(value.get("logs")), strict=True):
        event["time"] = rfc3339_ns(log.get("timestamp"))
    for link in links:
        link["time"] = start
    return {name: rows for name, rows in (("spans", [row]), ("span_events", events), ("span_links", links)) if rows}


def _tags(items: Any) -> list[dict[str, Any]]:
    return [{"key": item.get("key"), "value": _value(item)} for item in dicts(items)]


def _value(tag: dict[str, Any]) -> Any:
    """The value of a tag; the zero of its type is left out of the JSON."""
    if "vInt64" in tag or tag.get("vType") == "INT64":
        whole = integer(tag.get("vInt64", 0))
        return tag["vInt64"] if whole is None else whole
    for name in _VALUES:
        if name in tag:
            return tag[name]
    return {"BOOL": False, "FLOAT64": 0.0}.get(str(tag.get("vType")), "")


def _milliseconds(duration: Any) -> float | None:
    """Milliseconds of protobuf's JSON form of a duration, "1.5s"."""
    seconds = number(duration[:-1]) if type(duration) is str and duration[-1:] == "s" else None
    return None if seconds is None or seconds < 0 else round(seconds * 1e3, 6)
