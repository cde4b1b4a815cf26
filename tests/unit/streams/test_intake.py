"""Intake: what becomes of the records that a raw record holds: keys, times, calls, producers' shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.formats import relations
from streams import metrics
from streams.app import Incoming, Poison, now_ms
from streams.intake import SOURCE, Intake
from tests.unit.streams.raw_records import BASE, incoming, one, spans


async def test_records_are_keyed_by_entity_and_stamped_with_the_event_time() -> None:
    body = json.dumps(spans("orders", None, BASE, BASE + 7_000_000)).encode()
    out = await Intake().process(incoming(body))
    assert [(item.topic, item.key, item.timestamp) for item in out] == [
        ("telemetry", b"orders", 1_700_000_000_000),
        ("telemetry", b"orders", 1_700_000_000_007),
    ]
    assert [item.headers[SOURCE] for item in out] == [b"hyve.raw/3/17/0", b"hyve.raw/3/17/1"]
    first = json.loads(out[0].value)
    assert (first["signal"], first["entity"], first["time"]) == ("span", "orders", BASE)
    assert first["row"]["duration_ms"] == 5.0


async def test_a_call_is_told_to_the_callee_once_a_minute() -> None:
    intake = Intake()
    body = json.dumps(spans("orders", "stock", BASE, BASE + 1_000_000_000, BASE + 120_000_000_000)).encode()
    out = await intake.process(incoming(body))
    calls = [item for item in out if item.key == b"stock"]
    assert [json.loads(item.value)["row"] for item in calls] == [{"caller": "orders", "callee": "stock"}] * 2
    assert len(out) == 5
    assert [item.key for item in await intake.process(incoming(body))] == [b"orders"] * 3


async def test_a_record_without_a_usable_time_takes_kafkas() -> None:
    out = await Intake().process(incoming(json.dumps(spans("a", None, 0)).encode()))
    assert out[0].timestamp == 1_700_000_009_000


async def test_an_export_without_records_is_known_and_gives_nothing() -> None:
    assert await Intake().process(incoming(b'{"resourceSpans": []}')) == []


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["resourceSpans", "resourceLogs", "scopeSpans", "spans", "resource", "x", "items", "kind", "specversion"]
        ) | st.sampled_from(
            ["id", "source", "type", "data", "time", "row", "signal", "traceId", "spanId", "operationName", "name"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes_are_records_or_poison(value: bytes) -> None:
    try:
        out = Intake().normalise(incoming(value))
    except Poison:
        return
    for item in out:
        assert item.topic == "telemetry"
        assert isinstance(json.loads(item.value)["row"], dict)


def test_fluent_bits_kafka_output_is_a_log_record() -> None:
    pod = {"pod_name": "cart-5d9f7c6b5d-x2x4z", "namespace_name": "shop", "container_name": "cart"}
    signal, entity, time, row = one(
        {"@timestamp": 1700000001.5, "log": "ERROR no stock\n", "stream": "stderr", "kubernetes": pod}
    )
    assert (signal, entity, time) == ("log", "cart", 1_700_000_001)
    assert (row["body"], row["severity"]) == ("ERROR no stock", "ERROR")


@pytest.mark.parametrize(
    ("record", "entity", "severity", "body"),
    [
        ({"log": "ERROR boom"}, "unknown", "ERROR", "ERROR boom"),
        ({"log": "ERROR boom", "hostname": "n1"}, "n1", "ERROR", "ERROR boom"),
        ({"MESSAGE": "x failed", "PRIORITY": "3", "_HOSTNAME": "n1"}, "n1", "ERROR", "x failed"),
        ({"MESSAGE": "x", "PRIORITY": "6", "SYSTEMD_UNIT": "a.service", "HOSTNAME": "n1"}, "a", "INFO", "x"),
    ],
)
def test_fluent_bits_tail_and_systemd_inputs_are_log_records(
    record: dict[str, Any], entity: str, severity: str, body: str
) -> None:
    """Without the filter for Kubernetes a record is the line and its time, as the Kafka output writes it."""
    signal, said, time, row = one({"@timestamp": 1700000001.5, **record})
    assert (signal, said, time, row["severity"], row["body"]) == ("log", entity, 1_700_000_001, severity, body)


@pytest.mark.parametrize("record", [{"cpu_p": 12.5}, {"log": {"offset": 7}}, {"log": 5}])
def test_other_records_of_fluent_bit_are_events(record: dict[str, Any]) -> None:
    assert one({"@timestamp": 1700000001.5, **record})[0] == "event"
    assert one({"time": 1700000001.5, "log": "a text"})[0] == "event"


def test_filebeats_kafka_output_is_a_log_record() -> None:
    signal, entity, time, row = one(
        {
            "@timestamp": "2023-11-14T22:13:21.000Z",
            "@metadata": {"beat": "filebeat", "type": "_doc", "version": "8.15.0"},
            "message": "disk full",
            "log": {"level": "error", "file": {"path": "/var/log/stock.log"}},
            "service": {"name": "stock"},
            "agent": {"type": "filebeat", "name": "node-1"},
        }
    )
    assert (signal, entity, time, row["severity"]) == ("log", "stock", 1_700_000_001, "ERROR")


def test_vectors_logs_and_metrics_are_taken() -> None:
    log = {"message": "ready", "timestamp": "2023-11-14T22:13:21Z", "source_type": "file", "host": "web-1"}
    assert one(log)[:3] == ("log", "web-1", 1_700_000_001)
    metric = {"name": "queue", "namespace": "shop", "kind": "absolute", "gauge": {"value": 7.0}}
    signal, entity, time, row = one({**metric, "tags": {"service": "cart"}, "timestamp": "2023-11-14T22:13:21Z"})
    assert (signal, entity, time) == ("metric", "cart", 1_700_000_001)
    assert (row["name"], row["value"], row["kind"]) == ("shop_queue", 7.0, "gauge")


def test_the_prometheus_adapters_samples_are_points() -> None:
    sample = {"timestamp": "2023-11-14T22:13:21Z", "value": "3.5", "name": "up", "labels": {"job": "cart"}}
    signal, entity, time, row = one(sample)
    assert (signal, entity, time, row["value"]) == ("metric", "cart", 1_700_000_001, 3.5)


def test_kubernetes_events_are_events_of_the_application() -> None:
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": "cart-5d9f7c6b5d-x2x4z", "namespace": "shop"},
        "reason": "OOMKilling",
        "message": "out of memory",
        "type": "Warning",
        "lastTimestamp": "2023-11-14T22:13:21Z",
    }
    for value in (event, {"type": "ADDED", "object": event}):
        signal, entity, time, row = one(value)
        assert (signal, entity, time) == ("event", "cart", 1_700_000_001)
        read = relations([{"signal": signal, "entity": entity, "time": time, "row": row}])
        assert [(row["reason"], row["service"]) for row in read["kubernetes_events"]] == [("OOMKilling", "cart")]
    listed = {"kind": "EventList", "apiVersion": "v1", "items": [event, {**event, "reason": "BackOff"}]}
    out = Intake().normalise(incoming(json.dumps(listed).encode()))
    assert [json.loads(item.value)["row"]["reason"] for item in out] == ["OOMKilling", "BackOff"]


def test_unknown_json_is_an_event_of_what_it_names_or_of_the_records_key() -> None:
    """An object of no known format is telemetry all the same, kept as it came."""
    value = {
        "what": {"app": "cart", "at": [1, None]},
        "createdAt": "2023-11-14T22:13:21Z",
        "n": 12345678901234567890123,
    }
    assert one(value) == ("event", "cart", 1_700_000_001, value)
    assert one({"a": 1}, b"stock")[:3] == ("event", "stock", 1_700_000_009)
    assert one({"a": 1})[1] == "unknown"
    digest = b"d7b697e29be92cd6812f24a8c11dacb9"
    assert one({"a": 1}, digest)[1] == "unknown"
    assert one({"a": 1}, bytes(range(16)))[1] == "unknown"
    assert one({"message": "x", "level": "info", "time": 1_700_000_001}, b"stock")[3]["service"] == "stock"


def test_nothing_of_a_mixed_list_is_lost() -> None:
    value = [spans("orders", None, BASE), {"a": 1}, 5, {"time": 1_700_000_001, "level": "info", "msg": "x"}]
    out = Intake().normalise(incoming(json.dumps(value).encode()))
    rows = [json.loads(item.value) for item in out]
    assert [row["signal"] for row in rows] == ["span", "log", "event", "event"]
    assert [row["row"] for row in rows[2:]] == [{"a": 1}, {"values": [5]}]


def test_repeated_keys_and_half_surrogates_reach_the_topic() -> None:
    body = (
        b'{"time": 1700000001, "level": "info", "msg": "\\ud83d x", "a": {"k": 1, "k": 2}, "big": 99999999999999999999}'
    )
    signal, _, _, row = one(body)
    assert (signal, row["body"]) == ("log", "? x")
    assert row["attributes"] == {"a": {"k": 1, "k_2": 2}, "big": 99999999999999999999}


def moved(why: str) -> float:
    return float(metrics.EVENT_TIMES.labels(why)._value.get())


@pytest.mark.parametrize(
    ("seconds", "stamp", "why"),
    [
        (-601, -601, ""),
        (600, 600, ""),
        (601, 0, "ahead"),
        (-604_801, 0, "behind"),
        (3e9, 0, "ahead"),
        (None, 0, "missing"),
    ],
)
def test_times_far_from_the_raw_records_own_are_bounded_and_counted(
    seconds: float | None, stamp: int, why: str
) -> None:
    """Kafka refuses a timestamp of more than an hour ahead; one behind the retention is deleted at once."""
    before = moved(why) if why else 0.0
    arrived = 1_700_000_009
    time = "" if seconds is None else f'"time": {arrived + seconds:.0f}, '
    body = f'{{{time}"level": "info", "msg": "x", "caller": "c", "@t": null}}'.encode()
    (out,) = Intake().normalise(Incoming("raw", 0, 0, body, None, arrived * 1000))
    assert out.timestamp == (arrived + stamp) * 1000
    if why:
        assert moved(why) == before + 1
    if seconds is not None:
        assert json.loads(out.value)["time"] == (arrived + int(seconds)) * 10**9


def test_a_producer_whose_clock_is_ahead_moves_nothing_into_the_future() -> None:
    ahead = now_ms() + 3_000_000
    body = json.dumps({"time": ahead / 1000, "level": "info", "msg": "x"}).encode()
    (out,) = Intake().normalise(Incoming("raw", 0, 0, body, None, ahead))
    assert out.timestamp is not None
    assert out.timestamp <= now_ms()


def sent_metric(kind: str, **point: Any) -> dict[str, Any]:
    about = {"aggregationTemporality": 2} if kind not in ("gauge", "summary") else {}
    metric = {"name": "m", kind: {**about, "dataPoints": [{"timeUnixNano": str(BASE), **point}]}}
    scope = {"scope": {"name": "lib", "version": "1.2"}, "metrics": [metric]}
    return {"resourceMetrics": [{"scopeMetrics": [scope]}]}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            sent_metric("histogram", count="3", bucketCounts=["1", "2", "0"], explicitBounds=[1, 5]),
            {"temporality": "cumulative", "bucket_counts": [1, 2, 0], "explicit_bounds": [1.0, 5.0]},
        ),
        (
            sent_metric("exponentialHistogram", scale=2, zeroCount="1", positive={"offset": 1, "bucketCounts": ["1"]}),
            {"scale": 2, "zero_count": 1, "zero_threshold": 0.0, "positive_offset": 1, "positive_counts": [1]},
        ),
        (sent_metric("sum", asInt=str(2**62 + 1)), {"monotonic": False, "value_text": str(2**62 + 1)}),
        (sent_metric("gauge", asDouble="NaN"), {"value": None, "value_text": "NaN"}),
        (sent_metric("gauge", asDouble="-Infinity"), {"value": None, "value_text": "-Infinity"}),
        (sent_metric("gauge", asInt="7"), {"value": 7.0, "scope_name": "lib", "scope_version": "1.2"}),
    ],
)
def test_what_a_metric_says_beside_its_number_is_kept(body: dict[str, Any], kept: dict[str, Any]) -> None:
    row = one(body)[3]
    assert {key: row.get(key) for key in kept} == kept
    assert ("value_text" in row) == ("value_text" in kept)


def test_what_stands_in_a_message_where_records_should_is_an_event() -> None:
    logs = [{"timeUnixNano": str(BASE), "body": {"stringValue": "good"}}, "junk", 5]
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}, {"scopeLogs": 5}, None]}
    out = [json.loads(item.value) for item in Intake().normalise(incoming(json.dumps(body).encode()))]
    assert [(it["signal"], it["row"].get("body")) for it in out[:1]] == [("log", "good")]
    assert [it["row"] for it in out[1:]] == [{"scopeLogs": 5}, {"values": [None, "junk", 5]}]


def test_a_raw_record_that_holds_nothing_is_counted() -> None:
    before = metrics.EVENTS.labels("none")._value.get()
    assert Intake().normalise(incoming(b"[]")) == []
    assert Intake().normalise(incoming(b'{"resourceMetrics": []}')) == []
    assert metrics.EVENTS.labels("none")._value.get() == before + 2


@pytest.mark.parametrize("head", [1_700_000_001.5, [1_700_000_001.5, {}]])
@pytest.mark.parametrize("listed", [False, True])
def test_fluent_bits_pairs_are_records_with_their_time(head: Any, listed: bool) -> None:
    pair = [head, {"log": "ERROR no stock", "stream": "stderr", "service": "stock"}]
    signal, entity, time, row = one([pair] if listed else pair)
    assert (signal, entity, time, row["body"]) == ("log", "stock", 1_700_000_001, "ERROR no stock")


def test_a_span_of_zipkin_alone_is_a_span() -> None:
    span = {"traceId": "1", "id": "2", "kind": "SERVER", "name": "get", "timestamp": 1_700_000_001_000_000}
    assert one({**span, "localEndpoint": {"serviceName": "cart"}})[:3] == ("span", "cart", 1_700_000_001)
    assert one(span)[0] == "span"
    assert one({"traceId": "1", "id": "2", "name": "x"})[0] == "event"


def test_a_replayed_record_gives_its_telemetry_the_place_where_it_first_stood() -> None:
    record = Incoming("hyve.raw", 3, 99, b'{"a": 1}', headers={"hyve-origin": b"hyve.raw/2/7"})
    assert Intake().normalise(record)[0].headers[SOURCE] == b"hyve.raw/2/7/0"


@pytest.mark.parametrize("service", ["BCart", "prod/bcart", "bcart-7d9f8b6c5d-x2x4z"])
def test_all_names_of_a_service_go_under_one_key(service: str) -> None:
    (out,) = Intake().normalise(incoming(json.dumps({"service": service, "message": "x"}).encode()))
    assert out.key == b"bcart"
    assert json.loads(out.value)["entity"] == service


def test_peers_are_services_whatever_form_their_address_has() -> None:
    addresses = {
        "peer.service": "pay",
        "server.address": "pay.prod.svc.cluster.local",
        "url.full": "http://pay:8080/charge",
        "http.url": "http://pay.prod.svc/charge",
        "net.peer.name": "pay",
    }
    for key, value in addresses.items():
        body = spans("orders", None, BASE)
        (span,) = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        span["attributes"] = [{"key": key, "value": {"stringValue": value}}]
        own, call = Intake().normalise(incoming(json.dumps(body).encode()))
        assert (own.key, call.key) == (b"orders", b"pay"), key


def test_vectors_and_fluent_bits_records_of_a_pod_go_under_one_key() -> None:
    pod = {"pod_name": "web-5d9f7c6b5d-x2x4z", "container_name": "c"}
    fluent = {"@timestamp": 1_700_000_001.5, "log": "x", "stream": "stderr"}
    vector = {"timestamp": "2023-11-14T22:13:21Z", "message": "x", "source_type": "kubernetes_logs", "stream": "stderr"}
    for labels, entity in (
        ({"app": "cart"}, "cart"),
        ({"app.kubernetes.io/name": "cart", "app": "x"}, "cart"),
        ({}, "web"),
    ):
        assert one({**fluent, "kubernetes": {**pod, "labels": labels}})[1] == entity
        assert one({**vector, "kubernetes": {**pod, "pod_labels": labels}})[1] == entity


@pytest.mark.parametrize("rest", [{"level": "info", "msg": "x"}, {"a": 1}])
@pytest.mark.parametrize(("time", "why"), [("9999-12-31T23:59:59Z", "ahead"), ("soon", "missing")])
def test_a_time_beyond_all_clocks_is_ahead(rest: dict[str, Any], time: str, why: str) -> None:
    before = moved(why)
    signal, _, seconds, row = one({"@timestamp": time, **rest})
    assert (seconds, moved(why)) == (1_700_000_009, before + 1)
    assert (row if signal == "event" else row["attributes"])["@timestamp"] == time
