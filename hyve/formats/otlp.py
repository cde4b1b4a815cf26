"""OTLP/JSON export requests (logs, metrics, traces) as rows. Source: the JSON mapping of opentelemetry-proto.

Rules:
- Quirks taken: int64 as string or number; enum names for numbers; ids in hex or base64; `batches` (Tempo) for
  `resourceSpans`; a `trace` or `result` wrapper; the older `instrumentationLibrary*` lists; snake_case field
  names; attributes as a plain object; a log body that is no AnyValue.
- A record that can't be read is left out, its neighbours stay. A point whose number is missing or not finite keeps its
  row, without a value: that the series was looked at says something too. Nothing raises, nothing of the input changes.
- The events and links of spans are rows of their own (`span_events`, `span_links`), joined by trace and span id. A
  summary's quantiles are rows of `metric_points` beside the row with its count and sum.
- Rows of one resource share one `resource` object: readers must not change it.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.recogniser import needs
from hyve.formats.scalars import (
    Relations,
    Row,
    compact,
    dicts,
    epoch_ns,
    integer,
    mapping,
    number,
    service_of,
    severity,
    text,
    trace_or_span_id,
)

_DEPTH = 32
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_KIND: dict[Any, str] = {
    **dict(enumerate(_KINDS)),
    **{str(i): kind for i, kind in enumerate(_KINDS)},
    **{f"SPAN_KIND_{kind.upper()}": kind for kind in _KINDS},
    **{kind.upper(): kind for kind in _KINDS},
}
_CODES = ("unset", "ok", "error")
_STATUS: dict[Any, str] = {
    **{code: name for i, name in enumerate(_CODES) for code in (i, str(i), name.title())},
    **{f"STATUS_CODE_{name.upper()}": name for name in _CODES},
}
_PEERS = (
    "peer.service",
    "server.address",
    "net.peer.name",
    "db.system",
    "db.system.name",
    "messaging.system",
)
_POINTS = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
_RELATIONS = ("spans", "span_events", "span_links", "log_records", "metric_points")
_SNAKE = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "resource_metrics": "resourceMetrics",
}


@needs("resourceSpans", "resourceLogs", "resourceMetrics", *_SNAKE, "batches", "trace", "result")
def recognise(value: Any) -> Relations | None:
    """Rows of `spans`, `log_records` and `metric_points`, or None where the value is no OTLP request."""
    if type(value) is not dict:
        return None
    if not _SNAKE.keys().isdisjoint(value):
        value = _camel_keys(value)
    elif "trace" in value or "result" in value:
        inner = value.get("trace", value.get("result"))
        if type(inner) is dict and type(inner.get("resourceSpans")) is list:
            value = inner
    traces = value.get("resourceSpans")
    if type(traces) is not list:
        traces = value.get("batches")
        if type(traces) is list and not any(
            "scopeSpans" in item or "instrumentationLibrarySpans" in item for item in dicts(traces)
        ):
            traces = None
    logs, metrics = value.get("resourceLogs"), value.get("resourceMetrics")
    if not any(type(items) is list for items in (traces, logs, metrics)):
        return None
    result: Relations = {name: [] for name in _RELATIONS}
    for items, scopes, older, records, read in (
        (traces, "scopeSpans", "instrumentationLibrarySpans", "spans", _span),
        (logs, "scopeLogs", "instrumentationLibraryLogs", "logRecords", _log),
        (metrics, "scopeMetrics", "instrumentationLibraryMetrics", "metrics", _metric),
    ):
        for item in dicts(items):
            resource = attributes(mapping(item.get("resource")).get("attributes"))
            service = service_of(resource)
            for scope in dicts(item.get(scopes) or item.get(older)):
                for record in dicts(scope.get(records)):
                    read(record, service, resource, result)
    return {name: rows for name, rows in result.items() if rows}


def attributes(items: Any) -> dict[str, Any]:
    """`[{key, value: AnyValue}]` as a plain dict of Python values; a plain object is taken as it is."""
    result: dict[str, Any] = {}
    if type(items) is list:
        for item in items:
            if type(item) is dict:
                key = item.get("key")
                value = item.get("value")
                if type(key) is str:
                    if type(value) is dict and type(plain := value.get("stringValue")) is str:
                        result[key] = plain
                    else:
                        result[key] = any_value(value)
    elif type(items) is dict:
        for key, value in items.items():
            result[key] = any_value(value)
    return result


def any_value(value: Any, depth: int = 0) -> Any:
    """The Python value of an AnyValue; a value in no AnyValue wrapper as it is; below 32 levels as text."""
    if type(value) is not dict:
        return value
    if depth > _DEPTH:
        return compact(value)
    if len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "stringValue":
            return text(inner)
        if kind == "intValue":
            whole = integer(inner)
            return inner if whole is None else whole
        if kind == "doubleValue":
            return number(inner)
        if kind in ("boolValue", "bytesValue"):
            return inner
        if kind == "arrayValue":
            values = inner.get("values") if type(inner) is dict else inner
            return [any_value(item, depth + 1) for item in values] if type(values) is list else []
        if kind == "kvlistValue":
            pairs = dicts(inner.get("values") if type(inner) is dict else inner)
            return {p["key"]: any_value(p.get("value"), depth + 1) for p in pairs if type(p.get("key")) is str}
    if not value:
        return None
    return {key: any_value(inner, depth + 1) for key, inner in value.items()}


def _span(span: dict[str, Any], service: str, resource: dict[str, Any], out: Relations) -> None:
    start, end = epoch_ns(span.get("startTimeUnixNano")), epoch_ns(span.get("endTimeUnixNano"))
    own = attributes(span.get("attributes"))
    kind = span.get("kind", 0)
    kind = _KIND.get(kind, "unspecified") if type(kind) in (int, str) else "unspecified"
    state = mapping(span.get("status"))
    code = state.get("code", 0)
    status = _STATUS.get(code, "unset") if type(code) in (int, str) else "unset"
    message = text(state.get("message"))
    if status == "error" and not message:
        message = _exception(span.get("events"))
    trace_id, span_id = trace_or_span_id(span.get("traceId")), trace_or_span_id(span.get("spanId"))
    out["spans"].append(
        {
            "time": start,
            "end_time": end,
            "duration_ms": (end - start) / 1e6 if start and end and end >= start else None,
            "service": service,
            "name": text(span.get("name")),
            "kind": kind,
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": trace_or_span_id(span.get("parentSpanId")),
            "status": status,
            "status_message": message,
            "peer_service": peer_of(own, kind),
            "attributes": own,
            "resource": resource,
        }
    )
    for event in dicts(span.get("events")):
        out["span_events"].append(
            {
                "time": epoch_ns(event.get("timeUnixNano")),
                "service": service,
                "trace_id": trace_id,
                "span_id": span_id,
                "name": text(event.get("name")),
                "attributes": attributes(event.get("attributes")),
            }
        )
    for link in dicts(span.get("links")):
        out["span_links"].append(
            {
                "time": start,
                "service": service,
                "trace_id": trace_id,
                "span_id": span_id,
                "linked_trace_id": trace_or_span_id(link.get("traceId")),
                "linked_span_id": trace_or_span_id(link.get("spanId")),
                "attributes": attributes(link.get("attributes")),
            }
        )


def peer_of(own: dict[str, Any], kind: str) -> str | None:
    """Whom a span calls. An address names the other side only on the calling side of a call."""
    for key in _PEERS if kind in ("client", "producer") else _PEERS[:1]:
        peer = own.get(key)
        if type(peer) is str and peer:
            return peer
    return None


def _exception(events: Any) -> str:
    for event in dicts(events):
        found = attributes(event.get("attributes"))
        message = found.get("exception.message") or found.get("exception.type")
        if type(message) is str:
            return message
    return ""


def _log(record: dict[str, Any], service: str, resource: dict[str, Any], out: Relations) -> None:
    own = attributes(record.get("attributes"))
    event = record.get("eventName")
    if type(event) is str and event:
        own.setdefault("event.name", event)
    name, rank = severity(record.get("severityText"), record.get("severityNumber"))
    out["log_records"].append(
        {
            "time": epoch_ns(record.get("timeUnixNano")) or epoch_ns(record.get("observedTimeUnixNano")),
            "service": service,
            "severity": name,
            "severity_number": rank,
            "body": text(any_value(record.get("body"))),
            "trace_id": trace_or_span_id(record.get("traceId")),
            "span_id": trace_or_span_id(record.get("spanId")),
            "attributes": own,
            "resource": resource,
        }
    )


def _metric(metric: dict[str, Any], service: str, resource: dict[str, Any], out: Relations) -> None:
    name, unit = metric.get("name"), text(metric.get("unit"))
    if type(name) is not str or not name:
        return
    for field, kind in _POINTS.items():
        for point in dicts(mapping(metric.get(field)).get("dataPoints")):
            value = number(point["asDouble"] if "asDouble" in point else point.get("asInt"))
            row: Row = {
                "time": epoch_ns(point.get("timeUnixNano")),
                "service": service,
                "name": name,
                "value": value,
                "unit": unit,
                "kind": kind,
                "count": integer(point.get("count")),
                "sum": number(point.get("sum")),
                "min": number(point.get("min")),
                "max": number(point.get("max")),
                "attributes": attributes(point.get("attributes")),
                "resource": resource,
            }
            out["metric_points"].append(row)
            for entry in dicts(point.get("quantileValues")) if kind == "summary" else ():
                quantile, at = number(entry.get("quantile")), number(entry.get("value"))
                if quantile is not None:
                    marked = {**row["attributes"], "quantile": quantile}
                    out["metric_points"].append({**row, "value": at, "count": None, "sum": None, "attributes": marked})


def _camel_keys(value: Any, depth: int = 0) -> Any:
    """Protobuf's own field names (`trace_id`) as its JSON names (`traceId`). Attribute keys are values, not
    fields, so they stay untouched."""
    if depth > 4 * _DEPTH:
        return value
    if type(value) is list:
        return [_camel_keys(item, depth + 1) for item in value]
    if type(value) is not dict:
        return value
    renamed: dict[str, Any] = {}
    for key, inner in value.items():
        head, *tail = key.split("_") if type(key) is str else [key]
        renamed["".join([head, *(part.capitalize() for part in tail)])] = _camel_keys(inner, depth + 1)
    return renamed
