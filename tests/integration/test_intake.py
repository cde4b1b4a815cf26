"""What real producers send, through a worker: bodies, keys and headers as they came to Kafka, late and early events."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.pipeline import Pipeline, until
from workers import kafka

SAMPLES = Path(__file__).parents[1] / "producers" / "samples.ndjson"


def test_a_worker_takes_what_producers_send(make_pipeline: Callable[..., Pipeline]) -> None:
    """OTLP of the OpenTelemetry Collector in protobuf and JSON, Jaeger, Zipkin, CloudEvents by headers, kcat."""
    pipeline = make_pipeline("formats").start("intake")
    samples = [json.loads(line) for line in SAMPLES.read_text().splitlines()]
    now = time.time_ns()
    hour = 3600 * 10**9
    own = [
        {"time": now // 1000, "level": "info", "msg": "now", "service": "clock"},
        {"time": (now + 2 * hour) // 1000, "level": "info", "msg": "ahead", "service": "clock"},
        {"time": (now - 400 * hour) // 1000, "level": "info", "msg": "behind", "service": "clock"},
    ]
    with kafka.producing(pipeline.settings) as producer:
        for sample in samples:
            key = None if sample["key"] is None else base64.b64decode(sample["key"])
            headers = [(name, value.encode()) for name, value in sample["headers"].items()]
            producer.send(pipeline.topic("raw"), base64.b64decode(sample["value"]), key, headers=headers)
        for value in own:
            producer.send(pipeline.topic("raw"), json.dumps(value).encode())
    taken = f'hyve_records_in_total{{topic="{pipeline.topic("raw")}"}}'
    until(lambda: pipeline.metric("intake", taken) == len(samples) + len(own), 60)
    assert pipeline.records("deadletters") == []
    records = pipeline.records("telemetry")
    signals = Counter((json.loads(record.value)["signal"], (record.key or b"").decode()) for record in records)
    assert signals.pop(("call", "payments")) >= 1  # one for each minute
    assert signals == {
        ("span", "checkout"): 8,
        ("span_event", "checkout"): 4,
        ("span_link", "checkout"): 3,
        ("log", "checkout"): 4,
        ("metric", "checkout"): 10,
        ("log", "stock"): 25,
        ("event", "orders"): 2,
        ("log", "clock"): 3,
    }
    stamps: dict[str, Any] = {}
    for record in records:
        row = json.loads(record.value)["row"]
        if row.get("service") == "clock":
            stamps[row["body"]] = record.timestamp
    assert abs(stamps["now"] - now // 10**6) <= 1
    assert abs(stamps["ahead"] - now // 10**6) < 120_000
    assert abs(stamps["behind"] - now // 10**6) < 120_000
    assert pipeline.metric("intake", 'hyve_event_times_total{why="ahead"}') == 1
    assert pipeline.metric("intake", 'hyve_event_times_total{why="behind"}') >= 1
