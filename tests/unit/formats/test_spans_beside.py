"""What stands beside spans: events and links, of OTLP, Jaeger and Zipkin."""

from __future__ import annotations

from typing import Any

from hyve.formats import relations

AT = 1_785_603_722_000_000_000
TRACE, SPAN, OTHER = "ab" * 16, "cd" * 8, "ef" * 8


def test_otlp_events_and_links() -> None:
    event = {"timeUnixNano": str(AT + 5), "name": "retry", "attributes": [{"key": "n", "value": {"intValue": "2"}}]}
    link = {"traceId": TRACE.upper(), "spanId": OTHER, "attributes": [{"key": "k", "value": {"bytesValue": "AAE="}}]}
    span = {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": str(AT), "events": [event, {}, 5], "links": [link]}
    found = relations([{"resourceSpans": [{"scopeSpans": [{"spans": [span, {"spanId": OTHER}]}]}]}])
    about = {"service": "unknown", "trace_id": TRACE, "span_id": SPAN}
    assert list(found) == ["spans", "span_events", "span_links"]
    assert found["span_events"] == [
        {"time": AT + 5, **about, "name": "retry", "attributes": {"n": 2}},
        {"time": None, **about, "name": "", "attributes": {}},
    ]
    assert found["span_links"] == [
        {"time": AT, **about, "linked_trace_id": TRACE, "linked_span_id": OTHER, "attributes": {"k": "AAE="}}
    ]


def jaeger(**more: Any) -> dict[str, Any]:
    return {"traceID": TRACE, "spanID": SPAN, "operationName": "GET", "startTime": AT // 1000, "duration": 1500, **more}


def test_jaeger_logs_and_further_references() -> None:
    fields = [{"key": "event", "value": "error"}, {"key": "message", "value": "m"}]
    references = [
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": OTHER},
        {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "12" * 8},
    ]
    span = jaeger(logs=[{"timestamp": AT // 1000 + 1, "fields": fields}], references=references)
    found = relations([{"data": [{"traceID": TRACE, "spans": [span], "processes": {}}]}])
    assert found["spans"][0]["parent_span_id"] == OTHER
    (event,) = found["span_events"]
    assert (event["time"], event["name"], event["attributes"]) == (
        AT + 1000,
        "error",
        {"event": "error", "message": "m"},
    )
    (link,) = found["span_links"]
    assert (link["linked_span_id"], link["attributes"]) == ("12" * 8, {"opentracing.ref_type": "follows_from"})


def test_jaeger_spans_as_its_storage_keeps_them_and_single_traces() -> None:
    span = jaeger(process={"serviceName": "front", "tags": [{"key": "host", "value": "h"}]})
    (row,) = relations([span])["spans"]
    assert (row["service"], row["end_time"], row["resource"]) == ("front", AT + 1_500_000, {"host": "h"})
    trace = {
        "traceID": TRACE,
        "spans": [{"spanID": SPAN, "processID": "p1"}],
        "processes": {"p1": {"serviceName": "a"}},
    }
    assert relations([trace])["spans"][0]["service"] == "a"
    assert relations([[trace, trace]])["spans"][1]["trace_id"] == TRACE


def test_zipkin_annotations() -> None:
    span = {"traceId": TRACE, "id": SPAN, "name": "get", "localEndpoint": {"serviceName": "front"}}
    found = relations([[{**span, "annotations": [{"timestamp": AT // 1000, "value": "ws"}]}]])
    assert found["span_events"] == [
        {"time": AT, "service": "front", "trace_id": TRACE, "span_id": SPAN, "name": "ws", "attributes": {}}
    ]
