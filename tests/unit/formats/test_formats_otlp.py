"""OTLP JSON as rows: each quirk that senders have, on small payloads made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hyve.formats import relations

AT = 1_700_000_000_123_456_789


def span_payload(span: dict[str, Any], resource: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    attributes = resource if resource is not None else [text("service.name", "cart")]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}]}


def text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def one_span(**fields: Any) -> dict[str, Any]:
    return relations([span_payload(fields)])["spans"][0]


def one_log(record: dict[str, Any]) -> dict[str, Any]:
    return relations([{"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}])["log_records"][0]


def points(*metrics: dict[str, Any]) -> list[dict[str, Any]]:
    found = relations([{"resourceMetrics": [{"scopeMetrics": [{"metrics": list(metrics)}]}]}])
    return found.get("metric_points", [])


def test_a_whole_span() -> None:
    row = one_span(
        traceId="0AF7651916CD43DD8448EB211C80319C",
        spanId="b7ad6b7169203331",
        parentSpanId="",
        name="GET /cart",
        kind=2,
        startTimeUnixNano=str(AT),
        endTimeUnixNano=str(AT + 1_500_000),
        attributes=[{"key": "http.response.status_code", "value": {"intValue": "500"}}],
        status={"code": 2, "message": "boom"},
    )
    assert row == {
        "time": AT,
        "end_time": AT + 1_500_000,
        "duration_ms": 1.5,
        "service": "cart",
        "name": "GET /cart",
        "kind": "server",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
        "parent_span_id": None,
        "status": "error",
        "status_message": "boom",
        "peer_service": None,
        "attributes": {"http.response.status_code": 500},
        "resource": {"service.name": "cart"},
    }


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (3, "client"),
        ("3", "client"),
        ("SPAN_KIND_CLIENT", "client"),
        ("SPAN_KIND_CONSUMER", "consumer"),
        (0, "unspecified"),
        (True, "unspecified"),
        ("nonsense", "unspecified"),
        ([], "unspecified"),
        (99, "unspecified"),
    ],
)
def test_span_kinds(given: Any, kind: str) -> None:
    assert one_span(kind=given)["kind"] == kind


@pytest.mark.parametrize(
    ("given", "status"),
    [(1, "ok"), ("2", "error"), ("STATUS_CODE_ERROR", "error"), (None, "unset"), ({}, "unset"), (7, "unset")],
)
def test_status_codes(given: Any, status: str) -> None:
    assert one_span(status={"code": given})["status"] == status


@pytest.mark.parametrize(
    ("given", "trace_id"),
    [
        ("O6VWCcPN5JZJzXfR+dzZNg==", "3ba55609c3cde49649cd77d1f9dcd936"),
        ("O6VWCcPN5JZJzXfR+dzZNg", "3ba55609c3cde49649cd77d1f9dcd936"),
        ("2e299711ce47710289dc6640727404f", "02e299711ce47710289dc6640727404f"),
        ("00000000000000000000000000000000", None),
        ("AAAAAAAAAAAAAAAAAAAAAA==", None),
        ("", None),
        (17, None),
        ("invalid-hex-format", "invalid-hex-format"),
    ],
)
def test_trace_ids_become_hex(given: Any, trace_id: str | None) -> None:
    assert one_span(traceId=given)["trace_id"] == trace_id


def test_span_id_in_base64_and_short() -> None:
    assert one_span(spanId="Sc130fnc2TY=")["span_id"] == "49cd77d1f9dcd936"
    assert one_span(spanId="89dc6640727404f")["span_id"] == "089dc6640727404f"


def test_batches_in_place_of_resource_spans_and_wrappers() -> None:
    inner = span_payload({"name": "x"})["resourceSpans"]
    for payload in ({"batches": inner}, {"trace": {"resourceSpans": inner}}, {"result": {"resourceSpans": inner}}):
        assert relations([payload])["spans"][0]["name"] == "x"
    assert relations([{"batches": [{"id": 1}, {"id": 2}]}]) == {}, "other people's batches are no spans"


def test_older_and_snake_case_field_names() -> None:
    older = {"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [{"name": "old"}]}]}]}
    assert relations([older])["spans"][0]["name"] == "old"
    snake = {
        "resource_spans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"string_value": "cart"}}]},
                "scope_spans": [
                    {
                        "spans": [
                            {
                                "trace_id": "O6VWCcPN5JZJzXfR+dzZNg==",
                                "start_time_unix_nano": str(AT),
                                "end_time_unix_nano": str(AT + 10**6),
                                "attributes": [{"key": "snake_key", "value": {"int_value": "7"}}],
                            }
                        ]
                    }
                ],
            }
        ]
    }
    row = relations([snake])["spans"][0]
    assert (row["service"], row["duration_ms"], row["attributes"]) == ("cart", 1.0, {"snake_key": 7})
    assert row["trace_id"] == "3ba55609c3cde49649cd77d1f9dcd936"


@pytest.mark.parametrize(
    ("kind", "attributes", "peer"),
    [
        (3, {"peer.service": "db", "server.address": "10.0.0.1"}, "db"),
        (3, {"server.address": "db.internal"}, "db.internal"),
        (3, {"net.peer.name": "old"}, "old"),
        (3, {"db.system": "redis"}, "redis"),
        (2, {"server.address": "myself"}, None),
        (2, {"peer.service": "caller"}, "caller"),
    ],
)
def test_peer_service(kind: int, attributes: dict[str, str], peer: str | None) -> None:
    assert one_span(kind=kind, attributes=[text(*pair) for pair in attributes.items()])["peer_service"] == peer


def test_an_exception_event_tells_the_message_of_a_failed_span() -> None:
    events = [{"name": "exception", "attributes": [text("exception.message", "no route")]}]
    assert one_span(status={"code": 2}, events=events)["status_message"] == "no route"
    assert one_span(status={"code": 1}, events=events)["status_message"] == ""


def test_times_that_make_no_duration() -> None:
    assert one_span(startTimeUnixNano=AT, endTimeUnixNano=AT - 1)["duration_ms"] is None
    assert one_span(startTimeUnixNano="0", endTimeUnixNano=AT)["time"] is None
    assert one_span(startTimeUnixNano=str(2**63))["time"] is None
    assert one_span(startTimeUnixNano="12x")["time"] is None


@pytest.mark.parametrize(
    ("resource", "service"),
    [
        ({"service.name": "a", "k8s.pod.name": "p"}, "a"),
        ({"k8s.deployment.name": "d", "k8s.pod.name": "p"}, "d"),
        ({"app.kubernetes.io/name": "l", "k8s.pod.name": "p"}, "l"),
        ({"k8s.pod.name": "p", "host.name": "h"}, "p"),
        ({"host.name": "h"}, "h"),
        ({"service.name": "unknown_service:java", "k8s.deployment.name": "d"}, "d"),
        ({"service.name": "unknown_service:java"}, "unknown_service:java"),
        ({"service.name": ""}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_service_falls_back(resource: dict[str, str], service: str) -> None:
    payload = span_payload({"name": "x"}, [text(*pair) for pair in resource.items()])
    assert relations([payload])["spans"][0]["service"] == service


def test_a_whole_log_record() -> None:
    row = one_log(
        {
            "timeUnixNano": str(AT),
            "severityNumber": 17,
            "severityText": "Error",
            "body": {"stringValue": "it broke"},
            "traceId": "5B8EFFF798038103D269B633813FC60C",
            "spanId": "",
            "attributes": [{"key": "retryable", "value": {"boolValue": False}}],
        }
    )
    assert row == {
        "time": AT,
        "service": "unknown",
        "severity": "ERROR",
        "severity_number": 17,
        "body": "it broke",
        "trace_id": "5b8efff798038103d269b633813fc60c",
        "span_id": None,
        "attributes": {"retryable": False},
        "resource": {},
    }


@pytest.mark.parametrize(
    ("word", "number", "expected"),
    [
        ("warning", None, ("WARN", 13)),
        ("", 18, ("ERROR", 18)),
        (None, "SEVERITY_NUMBER_ERROR2", ("ERROR", 18)),
        (None, "SEVERITY_NUMBER_INFO", ("INFO", 9)),
        ("CRITICAL", 0, ("FATAL", 21)),
        ("nonsense", "9", ("INFO", 9)),
        (None, 99, ("", None)),
        (None, None, ("", None)),
    ],
)
def test_severities(word: Any, number: Any, expected: tuple[str, int | None]) -> None:
    row = one_log({"severityText": word, "severityNumber": number})
    assert (row["severity"], row["severity_number"]) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"stringValue": "text"}, "text"),
        ({"intValue": "42"}, "42"),
        ({"doubleValue": 3.5}, "3.5"),
        ({"boolValue": True}, "true"),
        (
            {"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "ü"}}, {"key": "n"}]}},
            '{"a":"ü","n":null}',
        ),
        ({"arrayValue": {"values": [{"intValue": 1}, {"stringValue": None}]}}, '[1,""]'),
        ("bare", "bare"),
        (["no", "AnyValue"], '["no","AnyValue"]'),
        (None, ""),
        ({}, ""),
    ],
)
def test_bodies(body: Any, expected: str) -> None:
    assert one_log({"body": body})["body"] == expected


def test_log_times_fall_back_and_event_names_are_kept() -> None:
    assert one_log({"timeUnixNano": 0, "observedTimeUnixNano": str(AT)})["time"] == AT
    assert one_log({"eventName": "login"})["attributes"] == {"event.name": "login"}


def test_attributes_as_a_plain_object_and_odd_values() -> None:
    row = one_log({"attributes": {"http.status_code": "500", "retryable": True}})
    assert row["attributes"] == {"http.status_code": "500", "retryable": True}
    odd = [
        {"key": "big", "value": {"intValue": "18446744073709551615"}},
        {"key": "nan", "value": {"doubleValue": "NaN"}},
        {"key": "bytes", "value": {"bytesValue": "AQI="}},
        {"key": "none"},
        {"value": {"stringValue": "no key"}},
        {"key": "plain", "value": {"key1": {"stringValue": "v1"}, "key2": {"intValue": 2}}},
        "no object",
    ]
    assert one_log({"attributes": odd})["attributes"] == {
        "big": "18446744073709551615",
        "nan": None,
        "bytes": "AQI=",
        "none": None,
        "plain": {"key1": "v1", "key2": 2},
    }


def test_gauges_and_sums() -> None:
    found = points(
        {"name": "t", "unit": "Cel", "gauge": {"dataPoints": [{"asDouble": "38.25", "timeUnixNano": str(AT)}]}},
        {"name": "n", "sum": {"dataPoints": [{"asInt": "7"}, {"asInt": "12oops"}, {"asDouble": "NaN"}]}},
        {
            "name": "g",
            "gauge": {
                "dataPoints": [
                    {"asDouble": "Infinity"},
                    {"asDouble": float("nan")},
                    {"timeUnixNano": str(AT)},
                    {"asInt": 1},
                ]
            },
        },
        {"gauge": {"dataPoints": [{"asInt": 1}]}},
    )
    assert [(p["name"], p["kind"], p["value"], p["unit"], p["time"]) for p in found] == [
        ("t", "gauge", 38.25, "Cel", AT),
        ("n", "sum", 7.0, "", None),
        ("n", "sum", None, "", None),
        ("n", "sum", None, "", None),
        ("g", "gauge", None, "", None),
        ("g", "gauge", None, "", None),
        ("g", "gauge", None, "", AT),
        ("g", "gauge", 1.0, "", None),
    ]


QUANTILES = [{"quantile": "0.5", "value": "100"}, {"quantile": 0.99, "value": "NaN"}]


def test_histograms_and_summaries() -> None:
    found = points(
        {"name": "h", "histogram": {"dataPoints": [{"count": "6", "sum": "18.5", "min": 1, "max": "9"}]}},
        {"name": "e", "exponentialHistogram": {"dataPoints": [{"count": "8", "sum": 27.5, "zeroCount": "2"}]}},
        {
            "name": "s",
            "summary": {"dataPoints": [{"count": 4, "sum": 420.0, "quantileValues": QUANTILES}]},
        },
    )
    assert [(p["name"], p["kind"], p["value"], p["count"], p["sum"]) for p in found] == [
        ("h", "histogram", None, 6, 18.5),
        ("e", "exponential_histogram", None, 8, 27.5),
        ("s", "summary", None, 4, 420.0),
        ("s", "summary", 100.0, None, None),
        ("s", "summary", None, None, None),
    ]
    assert (found[0]["min"], found[0]["max"]) == (1.0, 9.0)
    assert [point["attributes"] for point in found[3:]] == [{"quantile": 0.5}, {"quantile": 0.99}]


@pytest.mark.parametrize(
    "payload",
    [
        {"resourceLogs": "text"},
        {"resourceLogs": {}},
        {"resourceLogs": [1, None, {}]},
        {"resourceLogs": [{"scopeLogs": {}}]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [1, "x"]}]}]},
        {"resourceSpans": [{"resource": "x", "scopeSpans": [{"spans": {}}]}]},
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "x", "gauge": []}, {"name": 1}]}]}]},
        {},
    ],
)
def test_hostile_shapes_give_no_rows(payload: Any) -> None:
    assert relations([payload]) == {}


def test_a_bad_record_does_not_take_its_neighbours() -> None:
    records = [{"body": {"stringValue": "a"}}, 17, {"body": {"stringValue": "b"}, "attributes": "bad"}]
    found = relations([{"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}])
    assert [row["body"] for row in found["log_records"]] == ["a", "b"]


def test_the_payload_is_not_changed() -> None:
    payload = span_payload({"name": "x", "attributes": [text("a", "b")]})
    before = copy.deepcopy(payload)
    relations([payload])
    assert payload == before


def test_very_deep_values_end_as_text() -> None:
    body: dict[str, Any] = {"stringValue": "bottom"}
    for _ in range(200):
        body = {"arrayValue": {"values": [body]}}
    assert "bottom" in one_log({"body": body})["body"]
