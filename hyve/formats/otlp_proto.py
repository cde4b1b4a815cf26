"""OTLP export requests in protobuf, what the OTel Collector's Kafka exporter sends by default, as the rows that
`otlp.whole` makes of the same requests in JSON. Source: opentelemetry-proto.

Rules:
- The bytes don't say which signal they are. Read as another one's, a record's fields have other wire types and so are
  unknown: the reading with the fewest unknown fields counts. A field newer than the generated classes is left out.
- protobuf's own parser reads the messages and bounds their depth; `otlp.add_*` makes the rows. A test holds both
  readers to the same rows.
- Rows of one resource share one `resource` object: readers must not change it.
- Importing this module loads the generated classes: only who reads protobuf should.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from itertools import islice
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from hyve.formats.entities import service_of
from hyve.formats.otlp import (
    CODES,
    DEPTH,
    KINDS,
    POINTS,
    RELATIONS,
    TEMPORALITIES,
    add_log,
    add_point,
    add_span,
    bucket_keys,
    rounded,
    scope_keys,
)
from hyve.formats.rows import metric_point
from hyve.formats.scalars import Relations, Row, compact, epoch_ns, number, text, trace_or_span_id, value_text

_LOOKED_AT = 8
"""Records whose unknown fields are counted."""
_POINTS = frozenset(POINTS.values())
"""The fields of a metric that hold points, each called after their kind."""


def read(data: bytes) -> Relations | None:
    """The rows of an export request of any signal, {} where it holds no record; None where the bytes are none."""
    best: tuple[int, Any, tuple[str, str, str]] | None = None
    for kind, names in _SIGNALS:
        request = kind()
        try:
            request.ParseFromString(data)
        except DecodeError:
            continue
        unknown = _unknown(request, names)
        if unknown is not None and (best is None or unknown < best[0]):
            best = unknown, request, names
            if not unknown:
                break
    return None if best is None else _rows(best[1], best[2])


def _unknown(request: Any, names: tuple[str, str, str]) -> int | None:
    """How many fields of the request and its first records are unknown; None where nothing else is in one of them."""
    found = len(UnknownFieldSet(request))
    if not request.ListFields():
        return None
    resources, scopes, records = names
    every = (
        r for item in getattr(request, resources) for scope in getattr(item, scopes) for r in getattr(scope, records)
    )
    for record in islice(every, _LOOKED_AT):
        strange = len(UnknownFieldSet(record))
        if strange and not record.ListFields():
            return None
        found += strange
    return found


def _rows(request: Any, names: tuple[str, str, str]) -> Relations:
    resources, scopes, records = names
    add = _ADD[records]
    result: Relations = {name: [] for name in RELATIONS}
    for item in getattr(request, resources):
        resource = _attributes(item.resource.attributes)
        service = service_of(resource)
        for scope in getattr(item, scopes):
            more = scope_keys(scope.scope.name, scope.scope.version)
            for record in getattr(scope, records):
                add(result, service, resource, record, more)
    return {name: rows for name, rows in result.items() if rows}


def _attributes(items: Iterable[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for item in items:
        value = item.value
        # Most are text, and one look tells it; empty text is told apart by the field that is set.
        result[item.key] = value.string_value or _any_value(value)
    return result


def _any_value(value: Any, depth: int = 0) -> Any:
    """As `otlp.any_value`: below 32 levels the JSON text that the request would have."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if depth > DEPTH:
        return compact(json_format.MessageToDict(value))
    inner = getattr(value, kind)
    if kind == "double_value":
        return number(inner)
    if kind == "bytes_value":
        return b64encode(inner).decode("ascii")
    if kind == "array_value":
        return [_any_value(item, depth + 1) for item in inner.values]
    if kind == "kvlist_value":
        return {pair.key: _any_value(pair.value, depth + 1) for pair in inner.values}
    return inner


def _id(value: bytes) -> str | None:
    if len(value) in (8, 16):
        return value.hex() if any(value) else None
    return trace_or_span_id(value.hex()) if value else None


def _span(out: Relations, service: str, resource: dict[str, Any], span: Any, more: Row) -> None:
    kind, status = span.kind, span.status
    code = status.code
    add_span(
        out,
        service,
        resource,
        start=epoch_ns(span.start_time_unix_nano),
        end=epoch_ns(span.end_time_unix_nano),
        name=span.name,
        kind=KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0],
        trace_id=_id(span.trace_id),
        span_id=_id(span.span_id),
        parent=_id(span.parent_span_id),
        status=CODES[code] if 0 <= code < len(CODES) else CODES[0],
        message=status.message,
        own=_attributes(span.attributes),
        events=[(epoch_ns(e.time_unix_nano), e.name, _attributes(e.attributes)) for e in span.events],
        links=[(_id(link.trace_id), _id(link.span_id), _attributes(link.attributes)) for link in span.links],
        more=more,
    )


def _log(out: Relations, service: str, resource: dict[str, Any], record: Any, more: Row) -> None:
    body = record.body
    add_log(
        out,
        service,
        resource,
        time=epoch_ns(record.time_unix_nano) or epoch_ns(record.observed_time_unix_nano),
        level=record.severity_text,
        rank=record.severity_number,
        body=body.string_value or text(_any_value(body)),
        event=record.event_name,
        trace_id=_id(record.trace_id),
        span_id=_id(record.span_id),
        own=_attributes(record.attributes),
        more=more,
    )


def _metric(out: Relations, service: str, resource: dict[str, Any], metric: Any, more: Row) -> None:
    name, unit, kind = metric.name, metric.unit, metric.WhichOneof("data")
    if not name or kind not in _POINTS:
        return
    held = getattr(metric, kind)
    about = {**more, **_aggregation(held, kind)}
    for point in held.data_points:
        value = count = total = least = most = None
        details: Row = {}
        if kind in ("gauge", "sum"):
            chosen = point.WhichOneof("value")
            if chosen == "as_int":
                value, details = float(point.as_int), rounded(point.as_int)
            elif chosen:
                value = number(point.as_double)
                details = value_text(point.as_double) if value is None else {}
        else:
            count = _count(point.count)
            if kind == "summary":
                total = number(point.sum)
            else:
                total = number(point.sum) if point.HasField("sum") else None
                least = number(point.min) if point.HasField("min") else None
                most = number(point.max) if point.HasField("max") else None
        row = metric_point(
            epoch_ns(point.time_unix_nano),
            service,
            name,
            value,
            unit=unit,
            kind=kind,
            count=count,
            sum=total,
            min=least,
            max=most,
            attributes=_attributes(point.attributes),
            resource=resource,
        )
        quantiles = point.quantile_values if kind == "summary" else ()
        found = [(number(entry.quantile), entry.value) for entry in quantiles]
        add_point(out, row, found, {**about, **(details or _buckets(point, kind))})


def _aggregation(held: Any, kind: str) -> Row:
    given = held.aggregation_temporality if kind not in ("gauge", "summary") else 0
    more: Row = {"temporality": TEMPORALITIES[given]} if given in (1, 2) else {}
    return {**more, "monotonic": held.is_monotonic} if kind == "sum" else more


def _buckets(point: Any, kind: str) -> Row:
    if kind == "histogram":
        bounds = [number(bound) for bound in point.explicit_bounds]
        return bucket_keys("bucket", _counts(point.bucket_counts), bounds=bounds)
    if kind != "exponential_histogram":
        return {}
    return {
        "scale": point.scale,
        "zero_count": _count(point.zero_count),
        "zero_threshold": number(point.zero_threshold),
        **bucket_keys("positive", _counts(point.positive.bucket_counts), offset=point.positive.offset),
        **bucket_keys("negative", _counts(point.negative.bucket_counts), offset=point.negative.offset),
    }


def _count(value: int) -> int | None:
    return value if value < 1 << 63 else None


def _counts(values: Iterable[int]) -> list[int | None]:
    return [_count(value) for value in values]


_ADD = {"log_records": _log, "metrics": _metric, "spans": _span}
# A metric whose point is its only field may look like a span without a start, which there is none of: so metrics first.
_SIGNALS: tuple[tuple[type[Any], tuple[str, str, str]], ...] = (
    (LogsData, ("resource_logs", "scope_logs", "log_records")),
    (MetricsData, ("resource_metrics", "scope_metrics", "metrics")),
    (TracesData, ("resource_spans", "scope_spans", "spans")),
)
