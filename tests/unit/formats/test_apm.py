"""Elastic APM's intake events."""

from __future__ import annotations

from typing import Any

from hyve.formats import relations

AT = 1_571_657_444_929_001_000
METADATA = {
    "metadata": {
        "service": {"name": "shop", "version": "1", "agent": {"name": "java"}},
        "system": {"configured_hostname": "h", "kubernetes": {"pod": {"name": "shop-0"}}},
        "labels": {"team": "a"},
    }
}


def test_transactions_and_spans() -> None:
    transaction = {
        "timestamp": AT // 1000,
        "name": "GET /",
        "type": "request",
        "id": "4340a8e0df1906ec",
        "duration": 32.5,
    }
    span = {
        "timestamp": AT // 1000,
        "name": "SELECT",
        "type": "db",
        "id": "1234567890aaaade",
        "parent_id": transaction["id"],
    }
    context = {"db": {"statement": "SELECT 1", "type": "sql"}, "destination": {"service": {"resource": "postgresql"}}}
    found = relations(
        [METADATA, {"transaction": {**transaction, "outcome": "failure"}}, {"span": {**span, "context": context}}]
    )
    first, second = found["spans"]
    assert (first["time"], first["end_time"], first["duration_ms"]) == (AT, AT + 32_500_000, 32.5)
    assert (first["service"], first["kind"], first["status"]) == ("shop", "server", "error")
    assert first["attributes"] == {"type": "request"}
    assert first["resource"] == {
        "service.name": "shop",
        "service.version": "1",
        "host.name": "h",
        "k8s.pod.name": "shop-0",
        "telemetry.sdk.name": "java",
        "team": "a",
    }
    assert (second["parent_span_id"], second["kind"], second["peer_service"]) == (
        first["span_id"],
        "client",
        "postgresql",
    )
    assert second["attributes"] == {"type": "db", "db.query.text": "SELECT 1"}


def test_errors_logs_and_metrics() -> None:
    error = {
        "timestamp": AT // 1000,
        "trace_id": "ab" * 16,
        "parent_id": "cd" * 8,
        "exception": {"message": "m", "type": "T"},
    }
    log = {"message": "l", "@timestamp": AT // 1000, "log.level": "warn"}
    samples = {"a": {"value": 1.5, "type": "counter"}, "b": {"values": [1, 2], "counts": [3, 4], "type": "histogram"}}
    metrics = {"timestamp": AT // 1000, "tags": {"code": 200}, "samples": samples, "span": {"type": "db"}}
    found = relations([[METADATA, {"error": error}, {"log": log}, {"metricset": metrics}]])
    first, second = found["log_records"]
    assert (first["severity"], first["body"], first["span_id"]) == ("ERROR", "m", "cd" * 8)
    assert first["attributes"] == {"exception.type": "T", "exception.message": "m"}
    assert (second["severity"], second["body"], second["time"], second["service"]) == ("WARN", "l", AT, "shop")
    points = found["metric_points"]
    assert [(p["name"], p["value"], p["kind"], p["count"]) for p in points] == [
        ("a", 1.5, "sum", None),
        ("b", None, "histogram", 7),
    ]
    assert points[0]["attributes"] == {"code": 200, "span.type": "db"}


def test_without_metadata_an_object_of_one_key_is_nobodys_event() -> None:
    values: list[Any] = [{"error": {"message": "not found"}}, {"log": {"message": "m"}}, {"metadata": {"name": "x"}}]
    assert relations(values) == {}
    assert relations([{"metadata": {"service": {"name": 5}}}, {"log": {"message": "m"}}]) == {}
