"""From raw telemetry and a webhook to a result, with real workers: nothing lost, nothing asked twice."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from schemas import DeadLetter, DiagnosisRequest, DiagnosisResult, RequestMetrics
from streams.alerts import parse
from streams.collect import request_id
from streams.demo import verdict
from streams.incident import generate
from tests.integration.pipeline import Pipeline, until
from workers import kafka

ROWS = [{"service": f"s{i % 4}", "latency_ms": i % 50, "level": "ERROR" if i % 9 == 0 else "INFO"} for i in range(300)]


@pytest.fixture(scope="module")
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline("pipe").start("intake", "store", "llm")


def letters(pipeline: Pipeline) -> list[DeadLetter]:
    return [DeadLetter.from_bytes(record.value) for record in pipeline.records("deadletters")]


def test_an_alert_becomes_a_diagnosis_and_poison_stops_nothing(pipeline: Pipeline) -> None:
    incident = generate("pool-exhaustion", 3, time.time_ns())
    poison = [b"\xff\xfe\x00poison", b'{"resourceSpans": [', b'["not telemetry"]']
    middle = len(incident.payloads) // 2
    with kafka.producing(pipeline.settings) as producer:
        for number, payload in enumerate(incident.payloads):
            producer.send(pipeline.topic("raw"), json.dumps(payload).encode())
            if number == middle:
                for value in poison:
                    producer.send(pipeline.topic("raw"), value, key=b"bad")
    taken = f'hyve_records_in_total{{topic="{pipeline.topic("raw")}"}}'
    until(lambda: pipeline.metric("intake", taken) == len(incident.payloads) + len(poison), 60)

    dead = letters(pipeline)
    assert sorted(base64.b64decode(letter.value) for letter in dead) == sorted(poison)
    assert {base64.b64decode(letter.key or "") for letter in dead} == {b"bad"}
    assert {(letter.topic, letter.stage) for letter in dead} == {(pipeline.topic("raw"), "intake")}

    answer = pipeline.webhook(incident.alert)
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1})
    asked = request_id(parse(json.dumps(incident.alert).encode()).alerts[0])
    result = pipeline.result(asked)
    assert verdict(result, incident) == "", result.summary
    assert (result.mode, result.model, result.calls) == ("rules", "rules", 0)
    assert any("no model is configured" in note for note in result.notes)
    assert result.tokens.original > 100_000
    assert 0 < result.tokens.prompt <= 4000
    assert result.tokens.saved > 0.9
    assert {"collect", "prepare", "finish", "total"} <= result.ms.keys()

    # Prometheus: what came in and went out, tokens, time by stage.
    assert pipeline.metric("store", 'hyve_requests_total{mode="rules",status="conclusive"}') == 1
    assert pipeline.metric("store", 'hyve_tokens_total{part="original"}') == result.tokens.original
    assert pipeline.metric("store", 'hyve_tokens_total{part="prompt"}') == result.tokens.prompt
    saved = result.tokens.original - result.tokens.prompt
    assert pipeline.metric("store", 'hyve_tokens_total{part="saved"}') == saved
    assert pipeline.metric("store", 'hyve_stage_seconds_count{stage="prepare"}') == 1
    assert pipeline.metric("store", "hyve_pool_processes") == 1
    assert pipeline.metric("llm", f'hyve_records_out_total{{topic="{pipeline.topic("queries")}"}}') == 1
    assert pipeline.metric("intake", 'hyve_dead_letters_total{stage="intake"}') == len(poison)

    # The same alert once more: accepted, but neither asked nor answered again.
    assert pipeline.webhook(incident.alert).status_code == 202
    until(lambda: pipeline.metric("intake", f'hyve_records_in_total{{topic="{pipeline.topic("alerts")}"}}') == 2)
    assert [record.key for record in pipeline.records("requests")] == [asked.encode()]
    assert [record.key for record in pipeline.records("results")] == [asked.encode()]
    (account,) = [RequestMetrics.from_bytes(record.value) for record in pipeline.records("metrics")]
    assert (account.request_id, account.tokens) == (asked, result.tokens)


def test_the_webhook_refuses_rubbish_with_a_reason(pipeline: Pipeline) -> None:
    before = len(pipeline.records("alerts"))
    answer = pipeline.webhook(b"{")
    assert answer.status_code == 400
    assert "not JSON" in answer.json()["error"]
    bad = {"version": "4", "alerts": [{"status": "on"}]}
    said = 'alerts[0].status: must be "firing" or "resolved"'  # and not what it was: that may be a secret
    assert pipeline.webhook(bad).json() == {"error": said, "refused": 1}
    large = pipeline.webhook(b"x" * (33 << 20))
    assert (large.status_code, "HYVE_WEBHOOK_BYTES" in large.json()["error"]) == (413, True)
    assert len(pipeline.records("alerts")) == before
    kept = [letter for letter in letters(pipeline) if letter.stage == "webhook"]
    assert sorted(base64.b64decode(letter.value) for letter in kept) == sorted([b"{", json.dumps(bad).encode()])


def test_a_request_that_is_delivered_twice_has_one_result(pipeline: Pipeline) -> None:
    raw = pipeline.ask("twice", ROWS)
    pipeline.send("requests", "twice", raw)
    first = pipeline.result("twice")
    pipeline.send("requests", "twice", raw)
    pipeline.ask("after", ROWS)
    pipeline.result("after")
    results = [record for record in pipeline.records("results") if record.key == b"twice"]
    assert len(results) == 1
    assert first.request_id == "twice"


def test_requests_that_cannot_be_used_end_too(pipeline: Pipeline) -> None:
    broken = b'{"request_id": "broken", "question": 7'
    pipeline.send("requests", "broken", broken)
    empty = DiagnosisRequest(request_id="empty", question="q", payloads=())
    pipeline.send("requests", "empty", empty.to_bytes())
    result = pipeline.result("empty")
    assert result.status == "failed"
    assert "no data" in result.summary
    dead = until(lambda: [letter for letter in letters(pipeline) if letter.topic == pipeline.topic("requests")])
    assert [base64.b64decode(letter.value) for letter in dead] == [broken]
    assert "not a DiagnosisRequest" in dead[0].error


def test_killing_the_store_worker_in_the_middle_of_a_request_loses_nothing(pipeline: Pipeline) -> None:
    rows = [{"service": f"s{i % 7}", "n": i, "text": f"line {i} of many " * 4} for i in range(90_000)]
    pipeline.ask("killed", rows)
    until(lambda: pipeline.metric("store", "hyve_pool_busy") >= 1)
    pid = pipeline.supervisor.pid("store")
    os.kill(pid, signal.SIGKILL)
    result = pipeline.result("killed", 90)
    assert pipeline.supervisor.pid("store") != pid
    assert pipeline.supervisor.starts("store") == 2
    assert result.tokens.original > 500_000
    assert len([record for record in pipeline.records("results") if record.key == b"killed"]) == 1


def test_a_store_that_is_lost_between_prompt_and_answer_is_built_again(
    make_pipeline: Callable[..., Pipeline],
) -> None:
    pipeline = make_pipeline("lost").start("store")
    pipeline.ask("lost", ROWS)
    until(lambda: [record.key for record in pipeline.records("prompts")] == [b"lost"])
    pipeline.acknowledged("store", "requests")  # else the request is read again, and its store is there
    os.kill(pipeline.supervisor.pid("store"), signal.SIGKILL)
    pipeline.start("llm")
    assert pipeline.result("lost", 90).request_id == "lost"
    assert "building the store again" in (pipeline.supervisor.logs / "store.log").read_text()


def test_a_worker_that_has_just_started_knows_what_was_answered(make_pipeline: Callable[..., Pipeline]) -> None:
    """Invariant 8: a worker that is killed after a result and before its commit leaves its command to the next one."""
    pipeline = make_pipeline("answered").start("store", "llm")
    pipeline.ask("once", ROWS)
    first = pipeline.result("once")
    (command,) = [json.loads(record.value) for record in pipeline.records("queries")]
    os.kill(pipeline.supervisor.pid("store"), signal.SIGKILL)
    other = {**command, "kind": "direct", "text": '{"status": "conclusive", "summary": "something else"}'}
    partition = command["request"]["partition"]
    pipeline.send("queries", "once", json.dumps(other).encode(), partition)
    pipeline.ask("next", ROWS)
    pipeline.result("next", 90)
    until(lambda: "hop 1 came again and has its result" in (pipeline.supervisor.logs / "store.log").read_text())
    answers = {record.value for record in pipeline.records("results") if record.key == b"once"}
    assert [DiagnosisResult.from_bytes(value).summary for value in answers] == [first.summary]
