"""Zipkin v2 span lists, Jaeger's query answers, traces and single spans as rows of `spans`, `span_events` and
`span_links`.

Rules:
- Zipkin reports a span in halves: parts with the same trace, id, kind and service are one row, missing values filled.
- The server's half of a shared span has the client's id. Where both are there, it is a span of its own, called after
  its service, below the client's, and the parent of what its service did; so calls are seen, and parents end. Alone it
  keeps its id and its parent.
- Zipkin's annotations and Jaeger's logs are `span_events`; Jaeger's references that aren't the parent are `span_links`.
- Jaeger keeps services under keys of `processes`; times and durations of both are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.otlp import KINDS, peer_of
from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, Row, dicts, end_ns, integer, mapping, number, scaled_ns, text
from hyve.formats.scalars import trace_or_span_id as hex_id


@needs(
    *("data", "traceID spans", "traceID spanID operationName", "traceId id localEndpoint", "traceId id name kind"),
    listed=["traceId id"],
)
def recognise(value: Any) -> Relations | None:
    """Rows of `spans`, `span_events` and `span_links`, or None."""
    if type(value) is list and value and _is_zipkin(value[0]):
        return _zipkin([item for item in value if _is_zipkin(item)])
    if type(value) is not dict:
        return None
    if _is_zipkin(value) and ("localEndpoint" in value or value.get("kind") in _KINDS):
        return _zipkin([value])
    traces = [trace for trace in dicts(value.get("data")) or [value] if _is_trace(trace)]
    if traces:
        return _filled(jaeger_span(span, trace) for trace in traces for span in dicts(trace["spans"]))
    if "traceID" in value and "operationName" in value and "spanID" in value:
        return _filled([jaeger_span(value, {})])
    return None


_KINDS = ("CLIENT", "SERVER", "PRODUCER", "CONSUMER")


def _filled(parts: Iterable[tuple[Row, list[Row], list[Row]]]) -> Relations:
    """The relations of (span, its events, its links), those without rows left out."""
    result: Relations = {"spans": [], "span_events": [], "span_links": []}
    for span, events, links in parts:
        result["spans"].append(span)
        result["span_events"] += events
        result["span_links"] += links
    return {name: rows for name, rows in result.items() if rows}


def _is_trace(value: dict[str, Any]) -> bool:
    return "traceID" in value and type(value.get("spans")) is list


def _is_zipkin(item: Any) -> bool:
    return type(item) is dict and "traceId" in item and "id" in item and ("localEndpoint" in item or "name" in item)


def _zipkin(items: list[dict[str, Any]]) -> Relations:
    annotations: list[tuple[Row, dict[str, Any]]] = []
    halves: dict[tuple[Any, ...], Row] = {}
    for item in items:
        tags = mapping(item.get("tags"))
        kind = text(item.get("kind")).lower()
        failed = tags.get("error") not in (None, False, "false")
        start, took = scaled_ns(item.get("timestamp"), 1_000_000), _milliseconds(item.get("duration"))
        row: Row = {
            "time": start,
            "end_time": end_ns(start, took),
            "duration_ms": took if took is not None and took >= 0 else None,
            "service": text(mapping(item.get("localEndpoint")).get("serviceName")) or "unknown",
            "name": text(item.get("name")),
            "kind": kind if kind in KINDS else "unspecified",
            "trace_id": hex_id(item.get("traceId")),
            "span_id": hex_id(item.get("id")),
            "parent_span_id": hex_id(item.get("parentId")),
            "status": "error" if failed else "unset",
            "status_message": _message(tags) if failed else "",
            "peer_service": text(mapping(item.get("remoteEndpoint")).get("serviceName")) or peer_of(tags, kind),
            "attributes": tags,
            "resource": {},
        }
        first = halves.setdefault((row["trace_id"], row["span_id"], row["kind"], row["service"]), row)
        for key, inner in row.items():
            if first[key] is None or first[key] == "":
                first[key] = inner
        if row["status"] == "error":
            first["status"] = "error"
        first["attributes"] = {**tags, **first["attributes"]}
        annotations += [(first, annotation) for annotation in dicts(item.get("annotations"))]
    _part(list(halves.values()))
    events: list[Row] = []
    for row, annotation in annotations:
        about = {key: row[key] for key in ("service", "trace_id", "span_id")}
        time = scaled_ns(annotation.get("timestamp"), 1_000_000)
        events.append({"time": time, **about, "name": text(annotation.get("value")), "attributes": {}})
    spans: Relations = {"spans": list(halves.values())}
    return {**spans, "span_events": events} if events else spans


def _message(tags: dict[str, Any]) -> str:
    """What a failed span says of its error: the tag `error` is a text or only says that there is one."""
    error = text(tags["error"])
    return text(tags.get("otel.status_description")) if error == "true" else error


def _part(rows: list[Row]) -> None:
    """Makes spans of their own of the servers' halves that share the id of a client's, and puts what their services
    did below them."""
    clients = {(row["trace_id"], row["span_id"]) for row in rows if row["kind"] == "client" and row["span_id"]}
    servers = [row for row in rows if row["kind"] == "server" and (row["trace_id"], row["span_id"]) in clients]
    own = {(row["trace_id"], row["span_id"], row["service"]): f"{row['span_id']}-{row['service']}" for row in servers}
    for row in rows:
        row["parent_span_id"] = own.get((row["trace_id"], row["parent_span_id"], row["service"]), row["parent_span_id"])
        if row["parent_span_id"] == row["span_id"]:
            row["parent_span_id"] = None
    for row in servers:
        row["parent_span_id"] = row["span_id"]
        row["span_id"] = own[row["trace_id"], row["span_id"], row["service"]]


def _milliseconds(micros: Any) -> float | None:
    took = number(micros)
    return None if took is None else took / 1000


def jaeger_span(span: dict[str, Any], trace: dict[str, Any]) -> tuple[Row, list[Row], list[Row]]:
    """The rows of a span of Jaeger's query answers: its own, its events', its links'."""
    tags = _tags(span.get("tags"))
    name = span.get("processID")
    process = mapping(mapping(trace.get("processes")).get(name) if type(name) is str else span.get("process"))
    resource = _tags(process.get("tags"))
    kind = text(tags.get("span.kind")).lower()
    start, took = scaled_ns(span.get("startTime"), 1_000_000), _milliseconds(span.get("duration"))
    references = dicts(span.get("references"))
    parent = next((ref for ref in references if ref.get("refType") == "CHILD_OF"), None)
    followed = next((ref for ref in references if ref.get("traceID") == span.get("traceID")), None)
    # As in Jaeger itself, a span of the same trace that it follows is the parent of one that has no other.
    above = hex_id((parent or followed or {}).get("spanID", span.get("parentSpanID")))
    failed = (
        tags.get("error") in (True, "true")
        or tags.get("otel.status_code") == "ERROR"
        or integer(tags.get("http.status_code")) in range(500, 600)
    )
    row: Row = {
        "time": start,
        "end_time": end_ns(start, took),
        "duration_ms": took if took is not None and took >= 0 else None,
        "service": text(process.get("serviceName")) or service_of(resource),
        "name": text(span.get("operationName")),
        "kind": kind if kind in KINDS else "unspecified",
        "trace_id": hex_id(span.get("traceID")) or hex_id(trace.get("traceID")),
        "span_id": hex_id(span.get("spanID")),
        "parent_span_id": above if above != hex_id(span.get("spanID")) else None,
        "status": "error" if failed else "unset",
        "status_message": text(tags.get("otel.status_description")),
        "peer_service": peer_of(tags, kind),
        "attributes": tags,
        "resource": resource,
    }
    about = {key: row[key] for key in ("service", "trace_id", "span_id")}
    events, links = [], []
    for log in dicts(span.get("logs")):
        fields = _tags(log.get("fields"))
        name = text(fields.get("event") or fields.get("message"))
        time = scaled_ns(log.get("timestamp"), 1_000_000)
        events.append({"time": time, **about, "name": name, "attributes": fields})
    for ref in references:
        if ref is not parent:
            linked = {"linked_trace_id": hex_id(ref.get("traceID")), "linked_span_id": hex_id(ref.get("spanID"))}
            attributes = {"opentracing.ref_type": text(ref.get("refType")).lower()}
            links.append({"time": start, **about, **linked, "attributes": attributes})
    return row, events, links


def _tags(items: Any) -> dict[str, Any]:
    return {item["key"]: item.get("value") for item in dicts(items) if type(item.get("key")) is str}
