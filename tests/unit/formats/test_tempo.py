"""Tempo's search answers."""

from __future__ import annotations

from typing import Any

from hyve.formats import relations

AT = 1_785_603_722_000_000_000


def span(span_id: str = "89dc6640727404f", **attributes: str) -> dict[str, Any]:
    listed = [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    return {
        "spanID": span_id,
        "name": "GET /cart",
        "startTimeUnixNano": str(AT),
        "durationNanos": "1500000",
        "attributes": listed,
    }


def trace(**fields: Any) -> dict[str, Any]:
    base = {
        "traceID": "2e299711ce47710289dc6640727404f",
        "rootServiceName": "gateway",
        "rootTraceName": "GET /",
        "startTimeUnixNano": str(AT),
        "durationMs": 12,
    }
    return base | fields


def test_a_trace_without_spans() -> None:
    assert relations(
        [{"traces": [trace(serviceStats={"a": {"spanCount": 3, "errorCount": 1}, "b": {"spanCount": 1}})]}]
    ) == {
        "traces": [
            {
                "time": AT,
                "trace_id": "02e299711ce47710289dc6640727404f",
                "root_service": "gateway",
                "root_name": "GET /",
                "duration_ms": 12.0,
                "matched_spans": 0,
                "spans": 4,
                "errors": 1,
            }
        ]
    }


def test_spans_count_once() -> None:
    found = {"spans": [span(service_name="cart", status="error", kind="server"), span("b" * 16)], "matched": 7}
    result = relations([{"traces": [trace(spanSet=found, spanSets=[found])], "metrics": {}}])
    first, second = result["spans"]
    assert result["traces"][0]["matched_spans"] == 7
    assert {key: first[key] for key in ("time", "end_time", "duration_ms", "service", "kind", "status", "span_id")} == {
        "time": AT,
        "end_time": AT + 1_500_000,
        "duration_ms": 1.5,
        "service": "cart",
        "kind": "server",
        "status": "error",
        "span_id": "089dc6640727404f",
    }
    assert (second["service"], second["kind"], second["status"]) == ("unknown", "unspecified", "unset")
    assert first["trace_id"] == second["trace_id"] == "02e299711ce47710289dc6640727404f"


def test_the_older_single_set_and_short_ids() -> None:
    result = relations([{"traces": [trace(traceID="72F277EDAC0B77F5", spanSet={"spans": [span()], "matched": 1})]}])
    assert result["spans"][0]["trace_id"] == "0" * 16 + "72f277edac0b77f5"


def test_spans_that_carry_too_little_and_other_peoples_traces() -> None:
    poor = [{"spanID": "1"}, {"startTimeUnixNano": str(AT)}, {"spanID": [], "startTimeUnixNano": str(AT)}, 5]
    result = relations([{"traces": [trace(spanSets=[{"spans": poor}]), 5, {"traceID": 1}]}])
    assert "spans" not in result
    assert len(result["traces"]) == 1
    assert relations([{"traces": [{"id": 1}]}, {"traces": "x"}, {"traces": [{"traceID": "ab"}]}]) == {}
