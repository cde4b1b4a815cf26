"""Generic records, Jaeger's and Vector's messages, and what the reader makes of generic records later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hyve
from hyve.formats import events, relations, sort_out
from hyve.formats.wire import Record

TIME = "2023-11-14T22:13:21.000000007Z"
NS = 1_700_000_001_000_000_007


def test_a_cloud_event_of_telemetry_is_the_telemetry() -> None:
    log = {"time": TIME, "level": "error", "msg": "no stock", "service": "cart"}
    envelope = {"specversion": "1.0", "id": "1", "source": "/x/y", "type": "t", "data": log}
    (record,), known = events.records([envelope])
    assert known
    assert (record.signal, record.entity, record.time, record.row["body"]) == ("log", "cart", NS, "no stock")


def test_a_cloud_event_without_a_service_is_its_sources() -> None:
    envelope = {"specversion": "1.0", "id": "1", "source": "https://x/orders/", "type": "t", "time": TIME, "data": 5}
    assert events.records([envelope]) == ([Record("event", "orders", NS, envelope)], True)


@pytest.mark.parametrize(
    ("value", "entity", "time"),
    [
        ({"service": {"name": "cart"}, "x": 1}, "cart", 0),
        ({"labels": {"app": "cart"}, "service": None}, "cart", 0),
        ({"a": {"b": {"c": {"app": "cart"}}}}, "cart", 0),
        ({"a": {"b": {"c": {"d": {"app": "too deep"}}}}}, "unknown", 0),
        ({"host": "web-1", "inner": {"service": "cart"}}, "web-1", 0),
        ({"inner": {"created_at": TIME}}, "unknown", NS),
        ({"time": "soon", "ts": 1_700_000_001}, "unknown", NS - 7),
        ({}, "unknown", 0),
    ],
)
def test_who_and_when_are_what_the_usual_keys_say(value: dict[str, Any], entity: str, time: int) -> None:
    assert events.records([value]) == ([Record("event", entity, time, value)], True)


def test_values_without_an_object_are_nothing() -> None:
    for value in ([1, 2], "x", 5, None, [[3]]):
        assert events.records([value]) == ([], False)
    assert events.records([[]]) == ([], True)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", TIME, "Pod", "Event"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "items", "a", "b", "time", "msg", "level", "metadata"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(st.lists(_json, max_size=4))
def test_every_object_is_a_record_or_in_one(values: list[Any]) -> None:
    """Nothing is dropped: each object that no format knows is the row of an event."""
    records, _ = events.records(values)
    rows = [record.row for record in records if record.signal == "event"]
    for value in values:
        if type(value) is dict and not relations([value]) and not any(type(v) is dict for v in value.values()):
            assert value in rows


def test_a_generic_record_is_read_as_what_it_carries() -> None:
    """Data from the topic and data that a user pastes end in the same tables."""
    event = {
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "name": "cart-5d9f7c6b5d-x2x4z"},
        "reason": "BackOff",
        "lastTimestamp": TIME,
    }
    (record,), _ = events.records([event])
    assert (record.signal, record.entity, record.time) == ("event", "cart", NS)
    assert relations([record.wire()]) == relations([event])
    lines = [record.wire(), {"signal": "event", "entity": "x", "time": 1, "row": {"odd": 5}}]
    text = "\n".join(json.dumps(line) for line in lines)
    with hyve.Datastore.from_document(hyve.parse(text)) as store:
        assert store.query("SELECT reason, service FROM kubernetes_events").rows == (("BackOff", "cart"),)
        assert store.query("SELECT count(*) FROM records").rows == ((2,),)


def test_jaegers_span_from_kafka() -> None:
    span = {
        "traceId": "AAAAAAAAAAAAAAAAAAAAAQ==",
        "spanId": "AAAAAAAAAAI=",
        "operationName": "GET /",
        "references": [{"traceId": "AAAAAAAAAAAAAAAAAAAAAQ==", "spanId": "AAAAAAAAAAM="}],
        "startTime": TIME,
        "duration": "1.500000001s",
        "tags": [
            {"key": "span.kind", "vStr": "client"},
            {"key": "peer.service", "vStr": "stock"},
            {"key": "n", "vType": "INT64", "vInt64": "9007199254740993"},
            {"key": "zero", "vType": "INT64"},
            {"key": "no", "vType": "BOOL"},
            {"key": "error", "vType": "BOOL", "vBool": True},
        ],
        "logs": [{"timestamp": TIME, "fields": [{"key": "event", "vStr": "retry"}]}],
        "process": {"serviceName": "cart", "tags": [{"key": "host", "vStr": "h1"}]},
    }
    found = relations([span])
    (row,) = found["spans"]
    assert (row["trace_id"], row["span_id"], row["parent_span_id"]) == (f"{1:032x}", f"{2:016x}", f"{3:016x}")
    assert (row["time"], row["duration_ms"]) == (NS, 1500.000001)
    assert (row["service"], row["peer_service"], row["kind"], row["status"]) == ("cart", "stock", "client", "error")
    assert row["attributes"] | {} == {
        "span.kind": "client", "peer.service": "stock", "n": 9007199254740993, "zero": 0, "no": False, "error": True
    }  # fmt: skip
    assert [(event["time"], event["name"]) for event in found["span_events"]] == [(NS, "retry")]


@pytest.mark.parametrize(
    ("held", "value", "kind", "count", "total"),
    [
        ({"gauge": {"value": 1.5}}, 1.5, "gauge", None, None),
        ({"counter": {"value": 2}}, 2.0, "sum", None, None),
        ({"set": {"values": ["a", "b"]}}, 2.0, "gauge", None, None),
        (
            {"distribution": {"samples": [{"value": 1.0, "rate": 3}, {"value": 2.0, "rate": 1}]}},
            None,
            "histogram",
            4,
            None,
        ),
        ({"aggregated_histogram": {"buckets": [], "count": 7, "sum": 3.5}}, None, "histogram", 7, 3.5),
    ],
)
def test_vectors_metric_events(held: Any, value: Any, kind: str, count: Any, total: Any) -> None:
    event = {"name": "m", "kind": "incremental", "timestamp": TIME, "tags": {"service": "cart"}, **held}
    (row,) = relations([event])["metric_points"]
    assert (row["value"], row["kind"], row["count"], row["sum"]) == (value, kind, count, total)
    assert (row["service"], row["time"], row["name"]) == ("cart", NS, "m")


def test_an_object_with_such_names_that_is_no_metric_is_left_alone() -> None:
    assert sort_out([{"name": "x", "kind": "Pod", "gauge": {"value": 1}}])[0] == []
