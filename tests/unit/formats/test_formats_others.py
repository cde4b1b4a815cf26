"""Alerts, Prometheus, Loki and the wire form of normalised records, on small inputs made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.formats import RECOGNISERS, TIME_KEYS, relations, sort_out
from hyve.formats.scalars import rfc3339_ns

START = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z


def webhook(**alert: Any) -> dict[str, Any]:
    base = {"status": "firing", "labels": {"alertname": "Slow", "service": "cart", "severity": "page"}}
    base |= {"annotations": {"summary": "cart is slow"}, "startsAt": "2026-08-01T17:02:02Z"}
    base |= {"endsAt": "0001-01-01T00:00:00Z", "fingerprint": "abc"}
    return {"version": "4", "receiver": "x", "groupLabels": {}, "alerts": [base | alert]}


def test_alertmanager_webhook() -> None:
    assert relations([webhook()])["alerts"] == [
        {
            "time": START,
            "end_time": None,
            "status": "firing",
            "name": "Slow",
            "service": "cart",
            "severity": "page",
            "summary": "cart is slow",
            "fingerprint": "abc",
            "labels": {"alertname": "Slow", "service": "cart", "severity": "page"},
            "annotations": {"summary": "cart is slow"},
        }
    ]


def test_only_a_resolved_alert_has_an_end() -> None:
    end = "2026-08-01T17:02:03.5Z"
    assert relations([webhook(status="resolved", endsAt=end)])["alerts"][0]["end_time"] == START + 1_500_000_000
    assert relations([webhook(endsAt=end)])["alerts"][0]["end_time"] is None


def test_alertmanager_api_list() -> None:
    items = webhook(status={"state": "active", "silencedBy": [], "inhibitedBy": []})["alerts"]
    del items[0]["fingerprint"]
    items[0]["endsAt"] = "2026-08-01T17:30:00Z"
    row = relations([items])["alerts"][0]
    assert (row["status"], row["end_time"], row["time"]) == ("firing", None, START)
    again = relations([items])["alerts"][0]["fingerprint"]
    assert len(row["fingerprint"]) == 16
    assert row["fingerprint"] == again


def test_grafana_times_with_offset_and_legacy_webhook() -> None:
    new = webhook(startsAt="2026-08-01T19:02:02.000000001+02:00", values={"B": 22, "C": 1}) | {"orgId": 1}
    assert relations([new])["alerts"][0]["time"] == START + 1
    legacy = {
        "ruleName": "CPU",
        "state": "alerting",
        "message": "too hot",
        "evalMatches": [{"value": 97, "metric": "cpu", "tags": {"host": "h1"}}],
    }
    row = relations([legacy])["alerts"][0]
    assert (row["name"], row["status"], row["service"], row["summary"]) == ("CPU", "firing", "h1", "too hot")


def test_prometheus_matrix_and_vector() -> None:
    matrix = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {
                    "metric": {"__name__": "up", "job": "api", "pod": "p1"},
                    "values": [[1_785_603_722, "1"], [1_785_603_722.5, "NaN"], ["bad"], [1_785_603_723, 2]],
                }
            ],
        },
    }
    found = relations([matrix])["metric_points"]
    assert [(p["time"], p["value"]) for p in found] == [
        (START, 1.0),
        (START + 500_000_000, None),
        (START + 1_000_000_000, 2.0),
    ]
    assert (found[0]["name"], found[0]["service"], found[0]["attributes"]) == ("up", "p1", {"job": "api", "pod": "p1"})
    bare = [{"metric": {"__name__": "reqs_total", "service": "cart"}, "value": [1_785_603_722.123, "+Inf"]}]
    row = relations([bare])["metric_points"][0]
    assert (row["time"], row["value"], row["kind"], row["service"]) == (START + 123_000_000, None, "sum", "cart")


def test_prometheus_scalar_and_adapter() -> None:
    scalar = {"data": {"resultType": "scalar", "result": [1_785_603_722, "3"]}}
    assert relations([scalar])["metric_points"][0]["value"] == 3.0
    message = {
        "timestamp": "2026-08-01T17:02:02Z",
        "value": "9876",
        "name": "up",
        "labels": {"__name__": "up", "a": "b"},
    }
    row = relations([message])["metric_points"][0]
    assert (row["time"], row["value"], row["name"], row["attributes"]) == (START, 9876.0, "up", {"a": "b"})


def test_loki_streams() -> None:
    answer = {
        "data": {
            "resultType": "streams",
            "result": [
                {
                    "stream": {"service_name": "cart", "level": "warn"},
                    "values": [[str(START), "slow"], [str(START + 1), "id", {"trace_id": "AB" * 16, "level": "error"}]],
                }
            ],
        }
    }
    first, second = relations([answer])["log_records"]
    assert (first["time"], first["service"], first["severity"], first["body"]) == (START, "cart", "WARN", "slow")
    assert (second["severity"], second["trace_id"]) == ("ERROR", "ab" * 16)


def test_a_loki_push_may_hold_streams_of_both_forms() -> None:
    old = {
        "labels": '{app="cart", path="C:\\\\x", job="prod/cart"}',
        "entries": [{"ts": "2026-01-31T12:00:00.5Z", "line": "level=error failed"}, {"timestamp": "x", "line": "y"}],
    }
    new = {"stream": {"app": "web"}, "values": [["1769860801000000000", "ok"]]}
    rows = relations([{"streams": [old, new]}])["log_records"]
    assert [(row["time"], row["service"], row["severity"], row["body"], row["resource"]) for row in rows] == [
        (
            1_769_860_800_500_000_000,
            "cart",
            "ERROR",
            "level=error failed",
            {"app": "cart", "path": "C:\\x", "job": "prod/cart"},
        ),
        (None, "cart", "", "y", {"app": "cart", "path": "C:\\x", "job": "prod/cart"}),
        (1_769_860_801_000_000_000, "web", "", "ok", {"app": "web"}),
    ]
    assert relations([{"streams": [{**old, "labels": "app=cart"}, new]}]) == {}


def test_lines_in_loki_say_their_level_where_nothing_else_does() -> None:
    bodies = ['level=error msg="card declined"', '{"msg":"declined","level":"error"}', "level is fine", "ERROR db down"]
    for labels, expected in (
        ({"app": "pay"}, ["ERROR", "ERROR", "", "ERROR"]),
        ({"app": "pay", "detected_level": "unknown"}, ["ERROR", "ERROR", "", "ERROR"]),
        ({"app": "pay", "level": "info"}, ["INFO"] * 4),
    ):
        stream = {"stream": labels, "values": [[str(START), body] for body in bodies]}
        rows = relations([{"streams": [stream]}])["log_records"]
        assert [row["severity"] for row in rows] == expected


def test_zipkin_halves_and_shared_spans() -> None:
    base = {"traceId": "14b60fd9ae504820", "id": "a0dc23f22c4fee3f", "localEndpoint": {"serviceName": "front"}}
    spans = [
        {**base, "kind": "CLIENT", "name": "get"},
        {**base, "kind": "CLIENT", "timestamp": 1_785_603_722_000_000, "duration": 2120, "tags": {"error": "500"}},
        {**base, "kind": "SERVER", "shared": True, "localEndpoint": {"serviceName": "back"}, "parentId": "1"},
    ]
    client, server = relations([spans])["spans"]
    assert (client["service"], client["kind"], client["name"]) == ("front", "client", "get")
    assert (client["time"], client["end_time"], client["duration_ms"]) == (START, START + 2_120_000, 2.12)
    assert (server["service"], server["parent_span_id"], server["time"]) == ("back", "a0dc23f22c4fee3f", None)
    assert server["span_id"] == "a0dc23f22c4fee3f-back"
    assert (client["status"], client["status_message"], server["status"]) == ("error", "500", "unset")
    assert client["attributes"] == {"error": "500"}


def zipkin(id_: str, parent: str | None, kind: str, service: str, **more: Any) -> dict[str, Any]:
    endpoint = {"serviceName": service}
    return {"traceId": "a" * 16, "id": id_ * 16, "parentId": parent and parent * 16, "kind": kind} | {
        "localEndpoint": endpoint,
        **more,
    }


@pytest.mark.parametrize("shared", [{"shared": True}, {}])
def test_the_parents_of_shared_spans_end(shared: dict[str, Any]) -> None:
    """front calls back in span 2, whose two halves have one id; back calls db; front does something in span 2 too."""
    note = {"annotations": [{"timestamp": 1_785_603_722_000_000, "value": "ws"}]}
    spans = [
        zipkin("1", None, "SERVER", "front"),
        zipkin("2", "1", "CLIENT", "front"),
        zipkin("4", "2", "", "front"),
        zipkin("3", "2", "CLIENT", "back"),
        zipkin("2", "1", "SERVER", "back", **shared, **note),
    ]
    found = relations([spans])
    assert [(row["service"], row["kind"], row["span_id"], row["parent_span_id"]) for row in found["spans"]] == [
        ("front", "server", "1" * 16, None),
        ("front", "client", "2" * 16, "1" * 16),
        ("front", "unspecified", "4" * 16, "2" * 16),
        ("back", "client", "3" * 16, "2" * 16 + "-back"),
        ("back", "server", "2" * 16 + "-back", "2" * 16),
    ]
    assert found["span_events"][0]["span_id"] == "2" * 16 + "-back"


def test_a_shared_half_alone_keeps_its_parent_and_no_span_is_its_own() -> None:
    (server,) = relations([[zipkin("2", "1", "SERVER", "back", shared=True)]])["spans"]
    assert (server["span_id"], server["parent_span_id"]) == ("2" * 16, "1" * 16)
    (own,) = relations([[zipkin("2", "2", "SERVER", "back")]])["spans"]
    assert own["parent_span_id"] is None
    span = {"traceID": "ab" * 16, "spanID": "cd" * 8, "operationName": "x", "parentSpanID": "cd" * 8}
    assert relations([span])["spans"][0]["parent_span_id"] is None


def test_an_error_that_is_false_is_none() -> None:
    (row,) = relations([[zipkin("2", None, "SERVER", "a", tags={"error": "false"})]])["spans"]
    assert (row["status"], row["status_message"]) == ("unset", "")


def test_jaeger_says_errors_as_otel_does() -> None:
    tags = [{"key": "otel.status_code", "value": "ERROR"}, {"key": "otel.status_description", "value": "boom"}]
    span = {"traceID": "ab" * 16, "spanID": "cd" * 8, "operationName": "x", "tags": tags}
    (row,) = relations([span])["spans"]
    assert (row["status"], row["status_message"]) == ("error", "boom")


def test_jaeger_answer() -> None:
    answer = {
        "data": [
            {
                "traceID": "ab" * 16,
                "spans": [
                    {
                        "spanID": "cd" * 8,
                        "operationName": "GET /",
                        "references": [{"refType": "CHILD_OF", "spanID": "ef" * 8}],
                        "startTime": 1_785_603_722_000_000,
                        "duration": 1500,
                        "processID": "p1",
                        "tags": [
                            {"key": "span.kind", "value": "client"},
                            {"key": "peer.service", "value": "db"},
                            {"key": "error", "value": True},
                        ],
                    }
                ],
                "processes": {"p1": {"serviceName": "front", "tags": [{"key": "host", "value": "h"}]}},
            }
        ]
    }
    (row,) = relations([answer])["spans"]
    assert (row["service"], row["kind"], row["peer_service"], row["status"]) == ("front", "client", "db", "error")
    assert (row["trace_id"], row["parent_span_id"], row["duration_ms"]) == ("ab" * 16, "ef" * 8, 1.5)
    assert row["resource"] == {"host": "h"}


def test_kubernetes_pods_and_events() -> None:
    pod = {
        "metadata": {"name": "cart-5d9f7c6b5d-abcde", "namespace": "shop", "labels": {"app": "cart"}},
        "spec": {"nodeName": "n1", "containers": [{"image": "cart:1"}]},
        "status": {
            "phase": "Running",
            "startTime": "2026-08-01T17:02:02Z",
            "containerStatuses": [
                {"ready": False, "restartCount": 3, "state": {"terminated": {"reason": "OOMKilled"}}}
            ],
        },
    }
    (row,) = relations([{"kind": "PodList", "items": [pod, 5]}])["pods"]
    assert (row["service"], row["restarts"], row["reason"], row["ready"]) == ("cart", 3, "OOMKilled", False)
    assert row["time"] == START
    assert relations([{"metadata": {}, "items": [pod]}])["pods"] == [row], "as older clients write lists"
    event = {
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "name": "cart-5d9f7c6b5d-abcde", "namespace": "shop"},
        "lastTimestamp": "2026-08-01T17:02:02Z",
        "reason": "BackOff",
        "message": "Back-off restarting",
        "count": 4,
    }
    for value in (event, {"type": "ADDED", "object": event}, {"kind": "List", "items": [event]}):
        (row,) = relations([value])["kubernetes_events"]
        assert (row["service"], row["reason"], row["count"], row["time"]) == ("cart", "BackOff", 4, START)
    assert relations([{"items": [{"metadata": {"name": "x"}}]}]) == {}


def test_normalised_records_read_back_as_the_same_rows() -> None:
    payload = {
        "resourceLogs": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]},
                "scopeLogs": [{"logRecords": [{"timeUnixNano": str(START), "body": {"stringValue": "x"}}]}],
            }
        ]
    }
    (record,) = sort_out([payload])[0]
    assert (record.signal, record.entity, record.time) == ("log", "cart", START)
    wire = json.loads(json.dumps(record.wire()))
    assert relations([wire]) == relations([payload])
    assert sort_out([wire])[0] == [record]
    assert sort_out([{"hello": 1}])[0] == []


def test_a_record_without_a_service_belongs_to_its_entity() -> None:
    row = relations([{"signal": "metric", "entity": "e", "time": 5, "row": {"name": "m", "time": "x"}}])
    assert row == {"metric_points": [{"name": "m", "time": 5, "service": "e"}]}
    assert relations([{"signal": "other", "row": {}}, {"signal": [], "row": {}}]) == {}


def test_many_values_merge_in_order_and_lists_of_messages_are_looked_into() -> None:
    def log(text: str) -> dict[str, Any]:
        return {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": text}}]}]}]}

    found = relations([log("a"), [log("b"), 5, log("c")], "text", None, log("d")])
    assert [row["body"] for row in found["log_records"]] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-08-01T17:02:02Z", START),
        ("2026-08-01T17:02:02.123456789Z", START + 123_456_789),
        ("2026-08-01T17:02:02,5+00:00", START + 500_000_000),
        ("2026-08-01 17:02:02", START),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        (17, None),
        ("9999-12-31T23:59:59Z", None),
    ],
)
def test_rfc3339(text: Any, expected: int | None) -> None:
    assert rfc3339_ns(text) == expected


_WORDS = """
    resourceLogs resourceSpans resourceMetrics batches scopeLogs scopeSpans scopeMetrics logRecords spans metrics
    resource attributes key value stringValue intValue doubleValue arrayValue kvlistValue values body status code
    kind traceId spanId timeUnixNano startTimeUnixNano endTimeUnixNano gauge sum histogram summary dataPoints
    quantileValues asDouble asInt alerts labels annotations startsAt endsAt receiver evalMatches ruleName data
    resultType result metric stream streams signal row entity time end_time severityNumber severityText events
    resource_spans scope_spans trace name timestamp tags traceId id localEndpoint remoteEndpoint shared duration
    processes processID references startTime items object type kind metadata involvedObject containerStatuses
"""
_KEYS = st.sampled_from(_WORDS.split())
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["matrix", "vector", "scalar", "streams", "span", "log", "2026-08-01T17:02:02Z", "1e400", "-1", "Pod", "Event"]
    )
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=40,
)


def _envelope(inner: Any) -> Any:
    return st.fixed_dictionaries(
        {}, optional={"resourceLogs": inner, "resourceSpans": inner, "resourceMetrics": inner, "alerts": inner}
    )


@settings(max_examples=400, deadline=None)
@given(_JSON | _envelope(_JSON))
def test_no_json_value_raises_and_times_are_integers(value: Any) -> None:
    for rows in relations([value]).values():
        for row in rows:
            for key in TIME_KEYS & row.keys():
                assert row[key] is None or (type(row[key]) is int and 0 < row[key] < 2**63)
    for record in sort_out([value])[0]:
        assert type(record.entity) is str
        assert type(record.time) is int


@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_every_recogniser_answers_alone(value: Any) -> None:
    for recognise in RECOGNISERS:
        found = recognise(value)
        assert found is None or all(type(row) is dict for rows in found.values() for row in rows)
