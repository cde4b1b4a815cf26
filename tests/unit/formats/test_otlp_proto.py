"""OTLP in protobuf gives the rows of OTLP in JSON: real bytes of the OTel Collector, and any request there is."""

from __future__ import annotations

import base64
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as m
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

from hyve.formats import otlp, otlp_proto
from hyve.formats.scalars import Relations
from hyve.strictjson import read as read_json

SAMPLES = [
    json.loads(line)
    for line in Path(__file__).parents[3].joinpath("tests/producers/samples.ndjson").read_text().splitlines()
]


def sent(topic: str) -> bytes:
    return base64.b64decode(next(line["value"] for line in SAMPLES if line["topic"] == topic))


def read(data: bytes) -> Relations | None:
    """The rows of an export request of any signal, {} where it holds no record; None where the bytes are none, or can't
    be parsed. Raises `otlp_proto.TooMuch`."""
    found = otlp_proto.runs(data)
    if found is None:
        return None
    merged: Relations = {}
    try:
        for rows in found():
            for name, listed in rows.items():
                merged.setdefault(name, []).extend(listed)
    except DecodeError:
        return None
    return merged


@pytest.mark.parametrize(
    ("signal", "counts"),
    [
        ("traces", {"spans": 2, "span_events": 1, "span_links": 1}),
        ("logs", {"log_records": 2}),
        ("metrics", {"metric_points": 5}),
    ],
)
def test_the_collectors_protobuf_gives_the_rows_of_its_json(signal: str, counts: dict[str, int]) -> None:
    found = read(sent(f"otlp_proto.{signal}"))
    assert found is not None
    assert {name: len(rows) for name, rows in found.items()} == counts
    assert (found, []) == otlp.whole(json.loads(sent(f"otlp_json.{signal}")))


def test_a_span_of_the_collector_says_what_the_program_did() -> None:
    found = read(sent("otlp_proto.traces"))
    assert found is not None
    client, server = sorted(found["spans"], key=lambda row: row["kind"])
    assert (client["service"], client["name"], client["kind"]) == ("checkout", "POST /charge", "client")
    assert (client["status"], client["status_message"]) == ("error", "no answer in 2 s")
    assert client["peer_service"] == "payments"
    assert client["attributes"] == {"peer.service": "payments", "ratio": 0.25}
    assert client["parent_span_id"] == server["span_id"]
    assert len(server["trace_id"]) == 32
    assert server["attributes"] == {"http.request.method": "POST", "retry": 2, "cold": True}
    assert server["resource"]["host.name"] == "node-3"


def test_points_of_the_collector_have_their_numbers() -> None:
    found = read(sent("otlp_proto.metrics"))
    assert found is not None
    points = {row["name"]: row for row in found["metric_points"]}
    assert (points["orders"]["value"], points["orders"]["kind"], points["orders"]["unit"]) == (3.0, "sum", "1")
    assert (points["cpu.load"]["value"], points["cpu.load"]["attributes"]) == (0.75, {"core": "0"})
    waits = points["queue.wait"]
    assert (waits["kind"], waits["count"], waits["min"], waits["max"]) == ("exponential_histogram", 3, 0.001, 30.0)
    assert waits["sum"] == pytest.approx(30.501)


_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_keys = st.sampled_from(["a", "b", "service.name", "peer.service", "exception.message", "event.name"])
_times = st.sampled_from([0, 1, 1_700_000_000_000_000_001, (1 << 63) - 1, (1 << 64) - 1])
_ids = st.sampled_from([b"", bytes(16), bytes(range(16)), b"\xff" * 16])
_span_ids = st.sampled_from([b"", bytes(8), bytes(range(8)), b"\xff" * 8])
_doubles = st.floats() | st.just(0.0)
_ints = st.integers(-(1 << 63), (1 << 63) - 1)
_values: st.SearchStrategy[Any] = st.recursive(
    st.builds(AnyValue)
    | st.builds(AnyValue, string_value=_words)
    | st.builds(AnyValue, bool_value=st.booleans())
    | st.builds(AnyValue, int_value=_ints)
    | st.builds(AnyValue, double_value=_doubles)
    | st.builds(AnyValue, bytes_value=st.binary(max_size=4)),
    lambda inner: (
        st.builds(lambda items: AnyValue(array_value=ArrayValue(values=items)), st.lists(inner, max_size=3))
        | st.builds(
            lambda items: AnyValue(
                kvlist_value=KeyValueList(values=[KeyValue(key=key, value=value) for key, value in items])
            ),
            st.lists(st.tuples(_keys, inner), max_size=3),
        )
    ),
    max_leaves=4,
)
_attributes = st.lists(st.builds(KeyValue, key=_keys, value=_values), max_size=3)
_resources = st.builds(Resource, attributes=_attributes)
_events = st.lists(st.builds(Span.Event, time_unix_nano=_times, name=_words, attributes=_attributes), max_size=2)
_links = st.lists(st.builds(Span.Link, trace_id=_ids, span_id=_span_ids, attributes=_attributes), max_size=2)
_spans = st.builds(
    Span,
    trace_id=_ids,
    span_id=_span_ids,
    parent_span_id=_span_ids,
    name=_words,
    kind=st.integers(0, 5) | st.just(77),
    start_time_unix_nano=_times.filter(bool),  # every span has one; without it the signal can't be told
    end_time_unix_nano=_times,
    status=st.builds(Status, code=st.integers(0, 2) | st.just(9), message=_words),
    attributes=_attributes,
    events=_events,
    links=_links,
)
_logs = st.builds(
    LogRecord,
    time_unix_nano=_times,
    observed_time_unix_nano=_times,
    severity_number=st.integers(0, 24) | st.just(99),
    severity_text=st.sampled_from(["", "INFO", "warn", "odd"]),
    body=st.none() | _values,
    attributes=_attributes,
    trace_id=_ids,
    span_id=_span_ids,
    event_name=st.sampled_from(["", "started"]),
)
_counts = st.sampled_from([0, 3, (1 << 63) - 1, (1 << 64) - 1])
_optional = st.none() | _doubles
_number_points = st.builds(m.NumberDataPoint, time_unix_nano=_times, attributes=_attributes, as_double=_doubles) | (
    st.builds(m.NumberDataPoint, time_unix_nano=_times, as_int=_ints) | st.builds(m.NumberDataPoint)
)
_wide: dict[str, Any] = {
    "time_unix_nano": _times,
    "count": _counts,
    "sum": _optional,
    "min": _optional,
    "max": _optional,
}
_temporalities = st.integers(0, 2) | st.just(9)
_bucket_counts = st.lists(_counts, max_size=3)
_buckets = st.none() | st.builds(
    m.ExponentialHistogramDataPoint.Buckets, offset=st.integers(-9, 9), bucket_counts=_bucket_counts
)
_datas = st.one_of(
    st.builds(lambda p: {"gauge": m.Gauge(data_points=p)}, st.lists(_number_points, max_size=2)),
    st.builds(
        lambda p, t, up: {"sum": m.Sum(data_points=p, aggregation_temporality=t, is_monotonic=up)},
        st.lists(_number_points, max_size=2),
        _temporalities,
        st.booleans(),
    ),
    st.builds(
        lambda p, t: {"histogram": m.Histogram(data_points=[p], aggregation_temporality=t)},
        st.builds(
            m.HistogramDataPoint,
            bucket_counts=_bucket_counts,
            explicit_bounds=st.lists(_doubles, max_size=2),
            **_wide,
        ),
        _temporalities,
    ),
    st.builds(
        lambda p, t: {"exponential_histogram": m.ExponentialHistogram(data_points=[p], aggregation_temporality=t)},
        st.builds(
            m.ExponentialHistogramDataPoint,
            scale=st.integers(-10, 20),
            zero_count=_counts,
            zero_threshold=_doubles,
            positive=_buckets,
            negative=_buckets,
            **_wide,
        ),
        _temporalities,
    ),
    st.builds(
        lambda p: {"summary": m.Summary(data_points=[p])},
        st.builds(
            m.SummaryDataPoint,
            time_unix_nano=_times,
            count=_counts,
            sum=_doubles,
            quantile_values=st.lists(
                st.builds(m.SummaryDataPoint.ValueAtQuantile, quantile=_doubles, value=_doubles), max_size=2
            ),
        ),
    ),
    st.just({}),
)
_metrics = st.builds(
    lambda name, unit, data: m.Metric(name=name, unit=unit, **data), st.sampled_from(["up", "q" * 16]), _words, _datas
)


def _requests(
    request: Any, wrap: Any, scope: Any, name: str, records: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    named = st.none() | st.builds(InstrumentationScope, name=_words, version=_words)
    listed = {name: st.lists(records, min_size=1, max_size=3), "scope": named}
    scopes = st.lists(st.builds(scope, **listed), min_size=1, max_size=2)
    outer = wrap.DESCRIPTOR.fields_by_number[2].name
    field = request.DESCRIPTOR.fields_by_number[1].name
    wrapped = st.builds(wrap, resource=st.none() | _resources, **{outer: scopes})
    return st.builds(request, **{field: st.lists(wrapped, min_size=1, max_size=2)})


_any_request = st.one_of(
    _requests(TracesData, ResourceSpans, ScopeSpans, "spans", _spans),
    _requests(LogsData, ResourceLogs, ScopeLogs, "log_records", _logs),
    _requests(m.MetricsData, m.ResourceMetrics, m.ScopeMetrics, "metrics", _metrics),
)


@settings(max_examples=150, deadline=None)
@given(_any_request)
def test_protobuf_and_json_of_one_request_give_the_same_rows(request: Message) -> None:
    written = read_json(json_format.MessageToJson(request))
    assert written is not None
    assert (read(request.SerializeToString()), []) == otlp.whole(written[0])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=_any_request)
def test_a_long_request_gives_the_same_rows_run_by_run(request: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    data = request.SerializeToString()
    whole = read(data)
    with monkeypatch.context() as patched:
        patched.setattr(otlp_proto, "_RUN", 1)
        assert read(data) == whole


@pytest.mark.parametrize("data", [b"x" * 1_000_000, b"\x0a\x04\x12\x02\x12\x00" + b"x" * 1_000_000])
def test_hostile_bytes_cost_no_objects(data: bytes) -> None:
    """Each two of these bytes are a field of a number that nobody knows."""
    tracemalloc.start()
    try:
        read(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_what_a_record_gives_is_bounded() -> None:
    points = m.Gauge.FromString(b"\x0a\x00" * 250_001)
    metric = m.Metric(name="up", gauge=points)
    request = m.MetricsData(resource_metrics=[m.ResourceMetrics(scope_metrics=[m.ScopeMetrics(metrics=[metric])])])
    with pytest.raises(otlp_proto.TooMuch, match="one record has 250001 points: 250000 are the most"):
        read(request.SerializeToString())


def test_values_below_the_depth_limit_are_json_text() -> None:
    value = AnyValue(int_value=7)
    for _ in range(40):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    log = LogRecord(time_unix_nano=1, attributes=[KeyValue(key="deep", value=value)])
    request = LogsData(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[log])])])
    assert (read(request.SerializeToString()), []) == otlp.whole(json.loads(json_format.MessageToJson(request)))


def test_fields_of_a_newer_protocol_are_left_out() -> None:
    span = Span(trace_id=bytes(range(16)), span_id=b"12345678", name="x", start_time_unix_nano=5)
    span.MergeFromString(b"\xfa\x3e\x03new")  # field 1007
    request = TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])
    found = read(request.SerializeToString())
    assert found is not None
    assert [(row["name"], row["time"]) for row in found["spans"]] == [("x", 5)]


@pytest.mark.parametrize(
    "request_", [LogsData(resource_logs=[ResourceLogs()]), TracesData(resource_spans=[ResourceSpans()])]
)
def test_a_request_without_records_is_known_and_has_no_rows(request_: Message) -> None:
    assert read(request_.SerializeToString()) == {}


@pytest.mark.parametrize(
    "data", [b"", b"\n\nhello", b'\n{"a": 1}', b"hello", b"\x0a", b"\x08\x01", b"\xff" * 40, b"\n" * 999]
)
def test_other_bytes_are_no_request(data: bytes) -> None:
    assert read(data) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_rows_or_none(data: bytes) -> None:
    found = read(data)
    assert found is None or all(isinstance(row, dict) for rows in found.values() for row in rows)


def test_cut_requests_are_no_requests() -> None:
    whole = sent("otlp_proto.traces")
    assert all(read(whole[:size]) is None for size in range(1, len(whole)))
