"""Zipkin v2 span lists and Jaeger query answers as rows of `spans`.

Rules:
- Zipkin reports a span in halves: parts with the same trace, id, kind and service are one row, missing values filled.
- The server's half of a shared span has the client's id; its `parent_span_id` is that id, so that the call is seen.
- Jaeger keeps services under keys of `processes`; times and durations of both are microseconds.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.otlp import peer_of
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, number, scaled_ns, service_of, text
from hyve.formats.scalars import trace_or_span_id as hex_id

_KINDS = ("server", "client", "producer", "consumer", "internal")


def recognise(value: Any) -> Relations | None:
    """Rows of `spans`, or None."""
    if type(value) is list and value and _is_zipkin(value[0]):
        return {"spans": _zipkin([item for item in value if _is_zipkin(item)])}
    if type(value) is dict and type(value.get("data")) is list:
        traces = [trace for trace in dicts(value["data"]) if "traceID" in trace and type(trace.get("spans")) is list]
        if traces:
            return {"spans": [_jaeger(span, trace) for trace in traces for span in dicts(trace["spans"])]}
    return None


def _is_zipkin(item: Any) -> bool:
    return type(item) is dict and "traceId" in item and "id" in item and ("localEndpoint" in item or "name" in item)


def _zipkin(items: list[dict[str, Any]]) -> list[Row]:
    halves: dict[tuple[Any, ...], Row] = {}
    for item in items:
        tags = mapping(item.get("tags"))
        kind = text(item.get("kind")).lower()
        start, took = scaled_ns(item.get("timestamp"), 1_000_000), number(item.get("duration"))
        row: Row = {
            "time": start,
            "end_time": _end(start, took),
            "duration_ms": took / 1000 if took is not None and took >= 0 else None,
            "service": text(mapping(item.get("localEndpoint")).get("serviceName")) or "unknown",
            "name": text(item.get("name")),
            "kind": kind if kind in _KINDS else "unspecified",
            "trace_id": hex_id(item.get("traceId")),
            "span_id": hex_id(item.get("id")),
            "parent_span_id": hex_id(item.get("parentId")),
            "status": "error" if tags.get("error") not in (None, False, "false") else "unset",
            "status_message": text(tags.get("error")),
            "peer_service": text(mapping(item.get("remoteEndpoint")).get("serviceName")) or peer_of(tags, kind),
            "attributes": tags,
            "resource": {},
        }
        if item.get("shared") is True and row["kind"] == "server":
            row["parent_span_id"] = row["span_id"]
        first = halves.setdefault((row["trace_id"], row["span_id"], row["kind"], row["service"]), row)
        for key, inner in row.items():
            if first[key] is None or first[key] == "":
                first[key] = inner
        if row["status"] == "error":
            first["status"] = "error"
        first["attributes"] = {**tags, **first["attributes"]}
    return list(halves.values())


def _end(start: int | None, micros: float | None) -> int | None:
    if start is None or micros is None or not 0 <= micros < 1e15:
        return None
    end = start + int(micros) * 1000
    return end if end < 1 << 63 else None


def _jaeger(span: dict[str, Any], trace: dict[str, Any]) -> Row:
    tags = _tags(span.get("tags"))
    name = span.get("processID")
    process = mapping(mapping(trace.get("processes")).get(name) if type(name) is str else span.get("process"))
    resource = _tags(process.get("tags"))
    kind = text(tags.get("span.kind")).lower()
    start, took = scaled_ns(span.get("startTime"), 1_000_000), number(span.get("duration"))
    parents = [ref.get("spanID") for ref in dicts(span.get("references")) if ref.get("refType") == "CHILD_OF"]
    failed = tags.get("error") in (True, "true") or integer(tags.get("http.status_code")) in range(500, 600)
    return {
        "time": start,
        "end_time": _end(start, took),
        "duration_ms": took / 1000 if took is not None and took >= 0 else None,
        "service": text(process.get("serviceName")) or service_of(resource),
        "name": text(span.get("operationName")),
        "kind": kind if kind in _KINDS else "unspecified",
        "trace_id": hex_id(span.get("traceID")) or hex_id(trace.get("traceID")),
        "span_id": hex_id(span.get("spanID")),
        "parent_span_id": hex_id(parents[0] if parents else span.get("parentSpanID")),
        "status": "error" if failed else "unset",
        "status_message": text(tags.get("otel.status_description")),
        "peer_service": peer_of(tags, kind),
        "attributes": tags,
        "resource": resource,
    }


def _tags(items: Any) -> dict[str, Any]:
    return {item["key"]: item.get("value") for item in dicts(items) if type(item.get("key")) is str}
