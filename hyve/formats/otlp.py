"""OTLP/JSON export requests (logs, metrics, traces) as rows. Source: the JSON mapping of opentelemetry-proto.

Rules:
- Quirks taken: int64 as string or number; enum names for numbers; ids in hex or base64; `batches` (Tempo) for
  `resourceSpans`; a `trace` or `result` wrapper; the older `instrumentationLibrary*` lists; snake_case field
  names; attributes as a plain object; a log body that is no AnyValue.
- A record that can't be read is left out, its neighbours stay. A point whose number is missing or not finite keeps its
  row, without a value: that the series was looked at says something too, and `value_text` says that it is NaN or
  infinite. Nothing raises, nothing of the input changes.
- The events and links of spans are rows of their own (`span_events`, `span_links`), joined by trace and span id. A
  summary's quantiles are rows of `metric_points` beside the row with its count and sum.
- `whole` is for who keeps rows instead of the message: its rows have further keys, there only where the message says
  them (`scope_name`, `scope_version`, `temporality`, `monotonic`, the buckets of histograms, `value_text` of an
  integer beyond 2^53 that no double is), and what is no record comes back beside them. Only exemplars, flags, trace
  states and the counts of dropped attributes stay behind.
- Rows of one resource share one `resource` object: readers must not change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hyve.formats.entities import host_in, in_cluster, service_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import metric_point
from hyve.formats.scalars import (
    Relations,
    Row,
    compact,
    dicts,
    epoch_ns,
    integer,
    mapping,
    number,
    severity,
    text,
    trace_or_span_id,
    value_text,
)

DEPTH = 32
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_KIND: dict[Any, str] = {
    **dict(enumerate(KINDS)),
    **{str(i): kind for i, kind in enumerate(KINDS)},
    **{f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS},
    **{kind.upper(): kind for kind in KINDS},
}
CODES = ("unset", "ok", "error")
_STATUS: dict[Any, str] = {
    **{code: name for i, name in enumerate(CODES) for code in (i, str(i), name.title())},
    **{f"STATUS_CODE_{name.upper()}": name for name in CODES},
}
_PEERS = (
    "peer.service",
    "server.address",
    "net.peer.name",
    "url.full",
    "http.url",
    "db.system",
    "db.system.name",
    "messaging.system",
)
_URLS = frozenset({"url.full", "http.url"})
POINTS = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
TEMPORALITIES = ("", "delta", "cumulative")
_TEMPORALITY: dict[Any, str] = {
    **{code: name for i, name in enumerate(TEMPORALITIES) for code in (i, str(i))},
    **{f"AGGREGATION_TEMPORALITY_{name.upper()}": name for name in TEMPORALITIES},
}
RELATIONS = ("spans", "span_events", "span_links", "log_records", "metric_points")
_SNAKE = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "resource_metrics": "resourceMetrics",
}


@needs("resourceSpans", "resourceLogs", "resourceMetrics", *_SNAKE, "batches", "trace", "result")
def recognise(value: Any) -> Relations | None:
    """Rows of `spans`, `log_records` and `metric_points`, or None where the value is no OTLP request."""
    return _read(value, None)


def whole(value: Any) -> tuple[Relations, list[Any]] | None:
    """As `recognise`, with all that a row can keep, and the values that stand where records should."""
    left: list[Any] = []
    found = _read(value, left)
    return None if found is None else (found, left)


def _read(value: Any, left: list[Any] | None) -> Relations | None:
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
    result: Relations = {name: [] for name in RELATIONS}
    for items, scopes, older, records, read in (
        (traces, "scopeSpans", "instrumentationLibrarySpans", "spans", _span),
        (logs, "scopeLogs", "instrumentationLibraryLogs", "logRecords", _log),
        (metrics, "scopeMetrics", "instrumentationLibraryMetrics", "metrics", _metric),
    ):
        for item in _objects(items, records, left):
            resource = attributes(mapping(item.get("resource")).get("attributes"))
            service = service_of(resource)
            for scope in _objects(item.get(scopes) or item.get(older), scopes, left):
                more = None if left is None else _scope(scope)
                for record in _objects(scope.get(records), records, left):
                    read(record, service, resource, result, more)
    return {name: rows for name, rows in result.items() if rows}


def _objects(value: Any, name: str, left: list[Any] | None) -> list[dict[str, Any]]:
    """The objects of a list; all else that is there goes to `left`, what is no list under its name."""
    found = dicts(value)
    if left is not None and value is not None and not (type(value) is list and len(found) == len(value)):
        left.extend([item for item in value if type(item) is not dict] if type(value) is list else [{name: value}])
    return found


def _scope(scope: dict[str, Any]) -> Row:
    about = mapping(scope.get("scope") or scope.get("instrumentationLibrary"))
    return scope_keys(text(about.get("name")), text(about.get("version")))


def scope_keys(name: str, version: str) -> Row:
    """The keys of an instrumentation scope, those that are set."""
    return {key: said for key, said in (("scope_name", name), ("scope_version", version)) if said}


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
    if depth > DEPTH:
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


def _span(span: dict[str, Any], service: str, resource: dict[str, Any], out: Relations, more: Row | None) -> None:
    kind, state = span.get("kind", 0), mapping(span.get("status"))
    code = state.get("code", 0)
    add_span(
        out,
        service,
        resource,
        start=epoch_ns(span.get("startTimeUnixNano")),
        end=epoch_ns(span.get("endTimeUnixNano")),
        name=text(span.get("name")),
        kind=_KIND.get(kind, "unspecified") if type(kind) in (int, str) else "unspecified",
        trace_id=trace_or_span_id(span.get("traceId")),
        span_id=trace_or_span_id(span.get("spanId")),
        parent=trace_or_span_id(span.get("parentSpanId")),
        status=_STATUS.get(code, "unset") if type(code) in (int, str) else "unset",
        message=text(state.get("message")),
        own=attributes(span.get("attributes")),
        events=[
            (epoch_ns(event.get("timeUnixNano")), text(event.get("name")), attributes(event.get("attributes")))
            for event in dicts(span.get("events"))
        ],
        links=[
            (
                trace_or_span_id(link.get("traceId")),
                trace_or_span_id(link.get("spanId")),
                attributes(link.get("attributes")),
            )
            for link in dicts(span.get("links"))
        ],
        more=more,
    )


def add_span(
    out: Relations,
    service: str,
    resource: dict[str, Any],
    *,
    start: int | None,
    end: int | None,
    name: str,
    kind: str,
    trace_id: str | None,
    span_id: str | None,
    parent: str | None,
    status: str,
    message: str,
    own: dict[str, Any],
    events: Sequence[tuple[int | None, str, dict[str, Any]]],
    links: Sequence[tuple[str | None, str | None, dict[str, Any]]],
    more: Row | None = None,
) -> None:
    """Adds the rows of one span, of its events (time, name, attributes) and links (trace, span, attributes). `more` are
    further keys of its own row."""
    if status == "error" and not message:
        message = _exception(events)
    out["spans"].append(
        {
            "time": start,
            "end_time": end,
            "duration_ms": (end - start) / 1e6 if start and end and end >= start else None,
            "service": service,
            "name": name,
            "kind": kind,
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": parent,
            "status": status,
            "status_message": message,
            "peer_service": peer_of(own, kind),
            "attributes": own,
            "resource": resource,
            **(more or {}),
        }
    )
    for time, event, said in events:
        out["span_events"].append(
            {
                "time": time,
                "service": service,
                "trace_id": trace_id,
                "span_id": span_id,
                "name": event,
                "attributes": said,
            }
        )
    for linked_trace, linked_span, said in links:
        out["span_links"].append(
            {
                "time": start,
                "service": service,
                "trace_id": trace_id,
                "span_id": span_id,
                "linked_trace_id": linked_trace,
                "linked_span_id": linked_span,
                "attributes": said,
            }
        )


def peer_of(own: dict[str, Any], kind: str) -> str | None:
    """Whom a span calls. An address names the other side only on the calling side of a call; one of Kubernetes' own
    counts as the service that it is of, and so does the host of a URL."""
    for key in _PEERS if kind in ("client", "producer") else _PEERS[:1]:
        peer = own.get(key)
        if type(peer) is str and peer:
            host = host_in(peer) if key in _URLS else peer
            if host:
                return in_cluster(host)
    return None


def _exception(events: Sequence[tuple[int | None, str, dict[str, Any]]]) -> str:
    for _, _, said in events:
        message = said.get("exception.message") or said.get("exception.type")
        if type(message) is str:
            return message
    return ""


def _log(record: dict[str, Any], service: str, resource: dict[str, Any], out: Relations, more: Row | None) -> None:
    event = record.get("eventName")
    add_log(
        out,
        service,
        resource,
        time=epoch_ns(record.get("timeUnixNano")) or epoch_ns(record.get("observedTimeUnixNano")),
        level=record.get("severityText"),
        rank=record.get("severityNumber"),
        body=text(any_value(record.get("body"))),
        event=event if type(event) is str else "",
        trace_id=trace_or_span_id(record.get("traceId")),
        span_id=trace_or_span_id(record.get("spanId")),
        own=attributes(record.get("attributes")),
        more=more,
    )


def add_log(
    out: Relations,
    service: str,
    resource: dict[str, Any],
    *,
    time: int | None,
    level: Any,
    rank: Any,
    body: str,
    event: str,
    trace_id: str | None,
    span_id: str | None,
    own: dict[str, Any],
    more: Row | None = None,
) -> None:
    """Adds the row of one log record. `event` is the name of an event record, else ""; `more` are further keys."""
    if event:
        own.setdefault("event.name", event)
    name, number = severity(level, rank)
    out["log_records"].append(
        {
            "time": time,
            "service": service,
            "severity": name,
            "severity_number": number,
            "body": body,
            "trace_id": trace_id,
            "span_id": span_id,
            "attributes": own,
            "resource": resource,
            **(more or {}),
        }
    )


def _metric(metric: dict[str, Any], service: str, resource: dict[str, Any], out: Relations, more: Row | None) -> None:
    name, unit = metric.get("name"), text(metric.get("unit"))
    if type(name) is not str or not name:
        return
    for field, kind in POINTS.items():
        held = mapping(metric.get(field))
        about = {} if more is None else {**more, **_aggregation(held, kind)}
        for point in dicts(held.get("dataPoints")):
            counted = kind not in ("gauge", "sum")  # what is 0 may be left out: protobuf's JSON writes no defaults
            given = point["asDouble"] if "asDouble" in point else point.get("asInt")
            add_point(
                out,
                metric_point(
                    epoch_ns(point.get("timeUnixNano")),
                    service,
                    name,
                    given,
                    unit=unit,
                    kind=kind,
                    count=integer(point.get("count", 0 if counted else None)),
                    sum=number(point.get("sum", 0 if kind == "summary" else None)),
                    min=number(point.get("min")),
                    max=number(point.get("max")),
                    attributes=attributes(point.get("attributes")),
                    resource=resource,
                ),
                [
                    (number(entry.get("quantile", 0)), entry.get("value", 0))
                    for entry in dicts(point.get("quantileValues"))
                ]
                if kind == "summary"
                else (),
                {**about, **(_details(point, kind) if more is not None else {})},
            )


def _aggregation(held: dict[str, Any], kind: str) -> Row:
    given = held.get("aggregationTemporality")
    found = _TEMPORALITY.get(given) if type(given) in (int, str) else None
    more: Row = {"temporality": found} if found else {}
    return {**more, "monotonic": held.get("isMonotonic") is True} if kind == "sum" else more


def _details(point: dict[str, Any], kind: str) -> Row:
    if kind in ("gauge", "sum", "summary"):
        return {}
    if kind == "histogram":
        return bucket_keys("bucket", _integers(point.get("bucketCounts")), bounds=_numbers(point.get("explicitBounds")))
    above, below = mapping(point.get("positive")), mapping(point.get("negative"))
    return {
        "scale": integer(point.get("scale", 0)),
        "zero_count": integer(point.get("zeroCount", 0)),
        "zero_threshold": number(point.get("zeroThreshold", 0)),
        **bucket_keys("positive", _integers(above.get("bucketCounts")), offset=integer(above.get("offset", 0))),
        **bucket_keys("negative", _integers(below.get("bucketCounts")), offset=integer(below.get("offset", 0))),
    }


def bucket_keys(name: str, counts: list[Any], *, bounds: list[Any] | None = None, offset: int | None = None) -> Row:
    """The keys of a histogram's buckets, if it has any. `bounds` are those between them; `offset` is the first's."""
    if not counts:
        return {}
    return {f"{name}_counts": counts} | ({f"{name}_offset": offset} if bounds is None else {"explicit_bounds": bounds})


def _integers(value: Any) -> list[int | None]:
    return [integer(item) for item in value] if type(value) is list else []


def _numbers(value: Any) -> list[float | None]:
    return [number(item) for item in value] if type(value) is list else []


def add_point(out: Relations, row: Row, quantiles: Sequence[tuple[float | None, Any]], more: Row) -> None:
    """Adds the row of one point, and one for each (quantile, value) of a summary. `more` are further keys of both."""
    row |= more
    out["metric_points"].append(row)
    for quantile, at in quantiles:
        if quantile is not None:
            marked = {**row["attributes"], "quantile": quantile}
            value = number(at)
            odd = value_text(at) if value is None else {}
            out["metric_points"].append(
                {**row, "value": value, "count": None, "sum": None, "attributes": marked, **odd}
            )


def _camel_keys(value: Any, depth: int = 0) -> Any:
    """Protobuf's own field names (`trace_id`) as its JSON names (`traceId`). Attribute keys are values, not
    fields, so they stay untouched."""
    if depth > 4 * DEPTH:
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
