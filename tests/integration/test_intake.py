"""What real producers send, through a worker: bodies, keys and headers as they came to Kafka, late and early events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiokafka
import httpx
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from schemas import DeadLetter, DiagnosisRequest
from streams.demo import scrape
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


def span(service: str, ids: str, **fields: Any) -> dict[str, Any]:
    """An export request with one span; `ids` is "TRACE SPAN PARENT" of one letter each, "." for no parent."""
    trace, own, parent = ids.split()
    now = time.time_ns()
    attributes = fields.pop("attributes", {})
    made = {
        "traceId": trace * 32,
        "spanId": own * 16,
        "parentSpanId": "" if parent == "." else parent * 16,
        "name": "call",
        "startTimeUnixNano": str(now - 10**9),
        "endTimeUnixNano": str(now),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        **fields,
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resource": resource, "scopeSpans": [{"spans": [made]}]}


def test_a_request_holds_who_calls_and_who_is_called_however_spans_tell_it(
    make_pipeline: Callable[..., Pipeline],
) -> None:
    """Parents alone, within a message and across messages, addresses of a cluster, URLs, queues; pods in alerts."""
    pipeline = make_pipeline("around", HYVE_COLLECT_IDLE="1").start("intake")
    client, server, producer, consumer = 3, 2, 4, 5

    def trace(letter: str, number: str) -> list[dict[str, Any]]:
        return [
            span(f"{letter}front", f"{number} 1 .", kind=client),
            span(f"{letter}cart", f"{number} 2 1", kind=server),
            span(f"{letter}cart", f"{number} 3 2", kind=client),
            span(f"{letter}pay", f"{number} 4 3", kind=server),
        ]

    apart = [
        *reversed(trace("b", "2")),
        span("cfront", "3 1 .", kind=client, attributes={"server.address": "ccart.prod.svc.cluster.local"}),
        span("ccart", "4 2 .", kind=client, attributes={"url.full": "http://cpay:8080/charge"}),
        span("dfront", "5 1 .", kind=producer, attributes={"messaging.system": "kafka"}),
        span("dcart", "5 2 1", kind=consumer, attributes={"messaging.system": "kafka"}),
        span("dcart", "5 3 2", kind=client, attributes={"net.peer.name": "dpay"}),
        span("other", "6 1 .", kind=server),
    ]
    bodies: list[dict[str, Any]] = [{"resourceSpans": trace("a", "1")}, *({"resourceSpans": [it]} for it in apart)]
    names = [f"{letter}{name}" for letter in "abcd" for name in ("front", "cart", "pay")]
    bodies += [{"service": name, "message": f"log of {name}"} for name in names]
    for body in bodies:
        pipeline.send("raw", None, json.dumps(body).encode())
    taken = f'hyve_records_in_total{{topic="{pipeline.topic("raw")}"}}'
    until(lambda: pipeline.metric("intake", taken) == len(bodies), 60)
    for letter in "abcd":
        alert = {
            "status": "firing",
            "labels": {
                "alertname": f"{letter}Down",
                "pod": f"{letter}cart-7d9f8b6c5d-x2x4z",
                "job": "kube-state-metrics",
            },
            "annotations": {},
            "startsAt": datetime.now(UTC).isoformat(),
        }
        assert pipeline.webhook({"version": "4", "groupKey": letter, "alerts": [alert]}).status_code == 202
    requests = until(lambda: len(it := pipeline.records("requests")) == 4 and it, 60)
    for record in requests:
        request = DiagnosisRequest.from_bytes(record.value)
        (letter, *_) = request.focus[0]
        lines = [json.loads(line) for line in request.payloads[1].text.splitlines()]
        assert {line["entity"] for line in lines} == {f"{letter}front", f"{letter}cart", f"{letter}pay"}, letter
        assert request.focus == (f"{letter}cart",)
        assert request.notes == ()


def test_port_0_is_a_free_one_that_the_worker_tells(make_pipeline: Callable[..., Pipeline]) -> None:
    pipeline = make_pipeline("port0", HYVE_HTTP_PORT="0").start("intake")
    (address,) = until(lambda: re.findall(r"alerts to (http://127\.0\.0\.1:[1-9]\d*/alerts)", pipeline.logs()))
    until(lambda: answers(address), 60)
    refused = httpx.post(address, json={"version": "4", "alerts": [{"labels": {}}]}, timeout=20)
    assert refused.status_code == 400
    (letter,) = until(lambda: pipeline.records("deadletters"))
    assert DeadLetter.from_bytes(letter.value).stage == "webhook"


def answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=5).status_code > 0
    except httpx.TransportError:
        return False


@pytest.mark.apache
async def test_transactions_that_are_aborted_or_open_are_no_telemetry(
    make_pipeline: Callable[..., Pipeline], run_id: str
) -> None:
    """And a transaction that stays open is nothing that the worker has left to do."""
    raw = f"raw-transactions-{run_id}"
    calls = dict.fromkeys((f"HYVE_{name}_TIMEOUT" for name in ("PREPARE", "QUERY", "COLLECT", "LLM")), "2")
    pipeline = make_pipeline("transactions", HYVE_RAW_TOPICS=raw, HYVE_STALL_TIMEOUT="15", **calls)
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=pipeline.settings.servers)) as admin:
        admin.create_topics([NewTopic(raw, 1, 1)])

    def bodies() -> list[str]:
        return [json.loads(record.value)["row"]["msg"] for record in pipeline.records("telemetry")]

    async with aiokafka.AIOKafkaProducer(bootstrap_servers=pipeline.settings.servers, transactional_id=raw) as producer:

        async def begin(said: str) -> None:
            await producer.begin_transaction()
            await producer.send_and_wait(raw, json.dumps({"service": "tx", "msg": said}).encode())

        for said, end in (("one", producer.commit_transaction), ("two", producer.abort_transaction)):
            await begin(said)
            await end()
        await begin("three")
        await producer.commit_transaction()
        await begin("open")
        pipeline.start("intake")
        await asyncio.to_thread(until, lambda: len(bodies()) >= 2, 60)
        lag = f'hyve_consumer_lag_records{{partition="0",topic="{raw}"}}'
        await asyncio.to_thread(until, lambda: scrape(pipeline.ports["intake"]).get(lag) == 0, 40)
        health = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{pipeline.ports['intake']}/healthz")
        assert health.status_code == 200
        assert sorted(bodies()) == ["one", "three"]
        await producer.commit_transaction()
        await asyncio.to_thread(until, lambda: len(bodies()) >= 3, 60)
    assert sorted(bodies()) == ["one", "open", "three"]
