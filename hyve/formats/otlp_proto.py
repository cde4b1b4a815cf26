"""OTLP export requests in protobuf, what the OTel Collector's Kafka exporter sends by default, as the rows that
`otlp.whole` makes of the same requests in JSON. Source: opentelemetry-proto.

Rules:
- The bytes don't say which signal they are. Read as another one's, a record's fields have other wire types and so are
  unknown: the reading with the fewest unknown fields counts. A field newer than the generated classes is left out.
  The tags of the first records tell it, so that bytes that are no request cost next to nothing; and what the parser of
  one signal refuses is no other signal's.
- protobuf's own parser reads the messages and bounds their depth (100 messages, of which a list in a list takes two, an
  object in an object three); `otlp.add_*` makes the rows. A test holds both readers to the same rows.
- A long request is parsed in runs of records: messages take some thirty times the bytes of empty ones.
- Rows of one resource share one `resource` object: readers must not change it.
- Importing this module loads the generated classes: only who reads protobuf should.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

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
    scope_keys,
)
from hyve.formats.rows import metric_point
from hyve.formats.scalars import Relations, Row, compact, epoch_ns, number, text, trace_or_span_id

_LOOKED_AT, _FIELDS_LOOKED_AT = 8, 2_000
"""Records that tell the signal, and fields that are looked at for it at most: attributes are many."""

_RUN = 64 << 10
"""Bytes of records that are parsed at a time."""

_FIELDS = 1_000_000
"""Resources, scopes and records of a long request at most: those that give no row take time, too."""

_PART = 8 << 20
"""Bytes of one record, or of what stands around records, at most."""

_INNER = 250_000
"""Points of one metric, or events and links of one span, at most."""

_POINTS = frozenset(POINTS.values())
"""The fields of a metric that hold points, each called after their kind."""

_FIRST, _SECOND = 1 << 3 | 2, 2 << 3 | 2
"""Tags: of a request's resources, and of the scopes in them and the records in those."""


class TooMuch(ValueError):
    """The request holds more than can be read in bounded memory and time."""


class _Cut(ValueError):
    """These bytes are no message."""


@dataclass(frozen=True, eq=False)
class _Signal:
    """The messages of a signal. `tags` are those of a record's fields; `told`, if it isn't 0, the one each has."""

    request: type[Any]
    around: type[Any]
    scope: type[Any]
    record: type[Any]
    tags: frozenset[int]
    told: int


def runs(data: bytes) -> Callable[[], Iterator[Relations]] | None:
    """What reads the rows in runs, as often as it is called; None where the bytes are no request. It raises protobuf's
    `DecodeError` where what began like one can't be parsed, and `TooMuch`."""
    signal = _signal(data)
    if signal is None:
        return None
    return partial(_whole if len(data) <= _RUN else _long, signal, data)


def _signal(data: bytes) -> _Signal | None:
    """The signal that the first records are of; None where the bytes are no request."""
    strange = dict.fromkeys(_SIGNALS, 0)
    told: set[_Signal] = set()
    known = False
    try:
        for tags in islice(_records(data), _LOOKED_AT):
            known = True
            for signal in tuple(strange) if tags else ():
                count = len(tags - signal.tags)
                if count == len(tags):
                    del strange[signal]
                    continue
                strange[signal] += count
                if signal.told in tags:
                    told.add(signal)
            if tags and list(strange.values()).count(0) == 1:
                break
    except _Cut:
        return None
    unlike = {signal: count + (signal.told != 0 and signal not in told) for signal, count in strange.items()}
    return min(unlike, key=unlike.__getitem__) if known and unlike else None


def _records(data: bytes) -> Iterator[set[int]]:
    """The tags of each record's fields, as long as not too many were looked at; none of a resource without records."""
    budget = iter(range(_FIELDS_LOOKED_AT))
    for _, start, end in _only(_FIRST, _fields(data, 0, len(data), budget)):
        empty = True
        for _, first, last in _only(_SECOND, _fields(data, start, end, budget)):
            for _, begin, stop in _only(_SECOND, _fields(data, first, last, budget)):
                empty = False
                yield {field[0] for field in _fields(data, begin, stop, budget)}
        if empty:
            yield set()


_Field = tuple[int, int, int]
"""Tag, start and end of what a field holds."""


def _only(wanted: int, fields: Iterable[_Field]) -> Iterator[_Field]:
    return (field for field in fields if field[0] == wanted)


def _fields(data: bytes, at: int, end: int, budget: Iterator[int]) -> Iterator[_Field]:
    """The fields of the message in `data[at:end]`, as many as there is `budget` for. Raises `_Cut`."""
    while at < end and next(budget, None) is not None:
        tag = data[at]
        if tag < 0x80:  # as most
            at += 1
        else:
            tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == 2:
            if at < end and data[at] < 0x80:
                after = at + 1 + data[at]
                at += 1
            else:
                size, at = _varint(data, at, end)
                after = at + size
        elif kind == 0:
            after = _varint(data, at, end)[1]
        elif kind in (1, 5):
            after = at + (8 if kind == 1 else 4)
        else:
            raise _Cut
        if after > end or tag < 8:
            raise _Cut
        yield tag, at, after
        at = after


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _Cut


def _whole(signal: _Signal, data: bytes) -> Iterator[Relations]:
    result: Relations = {name: [] for name in RELATIONS}
    request = signal.request.FromString(data)
    for item in getattr(request, request.DESCRIPTOR.fields[0].name):
        around = _around(item)
        for scope in getattr(item, item.DESCRIPTOR.fields_by_number[2].name):
            _add(result, signal, around, scope)
    yield {name: rows for name, rows in result.items() if rows}


def _long(signal: _Signal, data: bytes) -> Iterator[Relations]:
    """As `_whole`, but for what is read at a time: some records of one scope."""
    budget = iter(range(_FIELDS))
    try:
        for _, start, end in _only(_FIRST, _fields(data, 0, len(data), budget)):
            around = _around(signal.around.FromString(_split(data, start, end, budget)[0]))
            for _, first, last in _only(_SECOND, _fields(data, start, end, budget)):
                head, pieces = _split(data, first, last, budget)
                for begin, stop in pieces:
                    result: Relations = {name: [] for name in RELATIONS}
                    _add(result, signal, around, signal.scope.FromString(head + data[begin:stop]))
                    yield {name: rows for name, rows in result.items() if rows}
    except _Cut:
        raise DecodeError("a message is cut") from None
    if next(budget, None) is None:
        raise TooMuch(f"the request has more than {_FIELDS} parts")


def _split(data: bytes, start: int, end: int, budget: Iterator[int]) -> tuple[bytes, list[tuple[int, int]]]:
    """What stands in a message beside its fields of the second tag, and where runs of these begin and end."""
    beside: list[bytes] = []
    pieces: list[tuple[int, int]] = []
    begin = at = start
    held = False
    for tag, _, after in _fields(data, start, end, budget):
        if tag == _SECOND:
            held = True
        else:
            beside.append(data[at:after])
        at = after
        if held and at - begin >= _RUN:
            pieces.append(_bounded(begin, at))
            begin, held = at, False
    if held:
        pieces.append(_bounded(begin, at))
    head = b"".join(beside)
    _bounded(0, len(head))
    return head, pieces


def _bounded(begin: int, end: int) -> tuple[int, int]:
    if end - begin > _PART + _RUN:
        raise TooMuch(f"a record, or what stands around records, has more than {_PART} bytes")
    return begin, end


_Around = tuple[str, dict[str, Any]]


def _around(item: Any) -> _Around:
    """The service and the attributes of a resource."""
    resource = _attributes(item.resource.attributes)
    return service_of(resource), resource


def _add(out: Relations, signal: _Signal, around: _Around, scope: Any) -> None:
    """Adds the rows of the records of a scope."""
    add = _ADD[signal.record]
    more = scope_keys(scope.scope.name, scope.scope.version)
    for record in getattr(scope, scope.DESCRIPTOR.fields_by_number[2].name):
        add(out, *around, record, more)


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
    _few(len(span.events) + len(span.links), "events and links")
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
    _few(len(held.data_points), "points")
    about = {**more, **_aggregation(held, kind)}
    for point in held.data_points:
        given = count = total = least = most = None
        if kind in ("gauge", "sum"):
            chosen = point.WhichOneof("value")
            given = getattr(point, chosen) if chosen else None
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
            given,
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
        add_point(out, row, found, {**about, **_buckets(point, kind)})


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


def _few(count: int, what: str) -> None:
    if count > _INNER:
        raise TooMuch(f"one record has {count} {what}: {_INNER} are the most")


_ADD = {LogRecord: _log, Metric: _metric, Span: _span}


def _described(request: type[Any], around: type[Any], scope: type[Any], record: type[Any], told: str) -> _Signal:
    tags = {field.name: field.number << 3 | _WIRE.get(field.type, 0) for field in record.DESCRIPTOR.fields}
    return _Signal(request, around, scope, record, frozenset(tags.values()), tags.get(told, 0))


_F = FieldDescriptor
_WIRE = {
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64, _F.TYPE_DOUBLE), 1),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE), 2),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32, _F.TYPE_FLOAT), 5),
}
"""How a field of a type is written; 0, as a number of variable length, those that aren't here."""

_SIGNALS = (
    _described(LogsData, ResourceLogs, ScopeLogs, LogRecord, ""),
    _described(MetricsData, ResourceMetrics, ScopeMetrics, Metric, "name"),
    _described(TracesData, ResourceSpans, ScopeSpans, Span, "start_time_unix_nano"),
)
