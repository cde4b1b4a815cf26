"""Health of real workers on a broker: dead where nothing is done, alive where there is nothing to do, ready when they
have partitions (or somebody else has them all)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from schemas import Position, PromptReady
from streams.supervisor import worker_command
from tests.integration.brokers import ApacheKafka
from tests.integration.pipeline import Pipeline, until
from workers.broker import free_port

LIMITS = {
    "HYVE_PREPARE_TIMEOUT": "2",
    "HYVE_QUERY_TIMEOUT": "2",
    "HYVE_LLM_TIMEOUT": "2",
    "HYVE_COLLECT_TIMEOUT": "2",
    "HYVE_STALL_TIMEOUT": "15",
    "HYVE_DRAIN_TIMEOUT": "2",
}
"""The shortest that a worker may be given before it counts as dead."""


def asked(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Status and body; (0, {}) while the port doesn't answer."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5)
    except httpx.HTTPError:
        return 0, {}
    return answer.status_code, answer.json()


def prompt(pipeline: Pipeline, name: str, partition: int) -> None:
    """Sends a prompt; without a model, an LLM worker answers it by asking for the rules."""
    place = Position(topic=pipeline.topic("requests"), partition=0, offset=0)
    messages = ({"role": "user", "content": "why?"},)
    record = PromptReady(request_id=name, hop=1, messages=messages, request=place)
    pipeline.send("prompts", name, record.to_bytes(), partition)


@dataclass
class Faulty:
    """A worker with a fault, on topics of its own, that was given three prompts of partition 2."""

    pipeline: Pipeline
    process: subprocess.Popen[bytes]
    port: int
    log: Path


@pytest.fixture(scope="module")
def faulty(
    make_pipeline: Callable[..., Pipeline], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Faulty]]:
    """One that hangs and one that freezes: they die side by side."""
    with ExitStack() as stack:
        made = {}
        for fault in ("hang", "freeze"):
            pipeline = make_pipeline(fault, **LIMITS)
            for number in range(3):
                prompt(pipeline, f"p{number}", 2)
            log = tmp_path_factory.mktemp(fault) / "worker.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.integration.faulty_worker", fault],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=out,
                    env={**os.environ, **pipeline.environment("llm")},
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            made[fault] = Faulty(pipeline, process, pipeline.ports["llm"], log)
        yield made


def test_a_worker_that_hangs_is_dead_and_one_that_idles_is_not(
    faulty: dict[str, Faulty], make_pipeline: Callable[..., Pipeline]
) -> None:
    """Trap: the port answers and the event loop turns while nothing is done any more."""
    idle = make_pipeline("idle", **LIMITS).start("llm")
    hung, frozen = faulty["hang"], faulty["freeze"]
    unready = until(lambda: asked(idle.ports["llm"], "/readyz")[1])
    until(lambda: asked(idle.ports["llm"], "/readyz")[0] == 200)
    assert unready["faults"][0]["what"] == "no partitions are assigned yet"
    idling = time.monotonic()
    body = until(lambda: asked(hung.port, "/healthz")[1].get("faults"), 60)
    assert [fault["check"] for fault in body] == ["progress"]
    assert "3 records in hand (model: 3)" in body[0]["what"]
    assert body[0]["seconds"] >= 15
    assert asked(hung.port, "/healthz")[0] == 503
    body = until(
        lambda: [it for it in asked(frozen.port, "/healthz")[1].get("faults", ()) if it["check"] == "loop"], 60
    )
    assert body[0]["seconds"] >= 30
    assert time.monotonic() - idling > 20, "the idle one had less time than it takes to be dead"
    assert asked(idle.ports["llm"], "/healthz") == (200, {"status": "alive", "worker": "llm", "faults": []})


@pytest.mark.apache
def test_lag_is_what_kafka_has_and_nobody_acknowledged(
    faulty: dict[str, Faulty], make_pipeline: Callable[..., Pipeline]
) -> None:
    """The embedded broker names the ends of partitions wrongly."""
    hung = faulty["hang"].pipeline
    topic = hung.topic("prompts")
    until(lambda: hung.metric("llm", f'hyve_consumer_lag_records{{partition="2",topic="{topic}"}}') == 3)
    assert hung.metric("llm", f'hyve_consumer_lag_seconds{{partition="2",topic="{topic}"}}') > 1
    assert hung.metric("llm", f'hyve_consumer_lag_records{{partition="1",topic="{topic}"}}') == 0
    assert hung.metric("llm", f'hyve_assigned_partitions{{topic="{topic}"}}') == 6
    assert hung.metric("llm", "hyve_commits_total") == 0

    well = make_pipeline("well").start("llm")
    for number in range(5):
        prompt(well, f"p{number}", 4)
    until(lambda: len(well.records("queries")) == 5)
    until(lambda: well.metric("llm", "hyve_commits_total") >= 1)
    name = f'hyve_consumer_lag_records{{partition="4",topic="{well.topic("prompts")}"}}'
    until(lambda: well.metric("llm", "hyve_progress_age_seconds") > 6)  # a question to the broker lies between
    assert well.metric("llm", name) == 0
    assert well.metric("llm", "hyve_rebalances_total") >= 1
    assert well.metric("llm", 'hyve_records_in_hand{stage="model"}') == 0


def test_a_worker_that_hangs_ends_when_its_time_to_drain_is_over(faulty: dict[str, Faulty]) -> None:
    hung = faulty["hang"]
    until(lambda: asked(hung.port, "/readyz")[0] == 200)
    hung.process.send_signal(signal.SIGTERM)
    unready = until(lambda: asked(hung.port, "/readyz")[1].get("faults"))
    assert [fault["check"] for fault in unready] == ["stopping"]
    assert hung.process.wait(30) == 1
    assert "not drained 2 s after it was told to stop (HYVE_DRAIN_TIMEOUT)" in hung.log.read_text()
    assert hung.pipeline.records("queries") == []


def test_a_store_worker_is_ready_when_its_pool_is_warm(make_pipeline: Callable[..., Pipeline]) -> None:
    pipeline = make_pipeline("warm", **LIMITS).start("store")
    seen: set[str] = set()

    def ready() -> bool:
        status, body = asked(pipeline.ports["store"], "/readyz")
        seen.update(fault["check"] for fault in body.get("faults", ()))
        return status == 200

    until(ready, 60)
    assert "pool" in seen
    assert pipeline.metric("store", "hyve_pool_processes") == 1
    assert (pipeline.metric("store", "hyve_pool_busy"), pipeline.metric("store", "hyve_pool_waiting")) == (0, 0)


@pytest.mark.apache
def test_a_standby_is_ready(make_pipeline: Callable[..., Pipeline], broker: str, run_id: str) -> None:
    """Of two workers for one partition, one has nothing to do."""
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics([NewTopic(name=f"standby-{run_id}.prompts", num_partitions=1, replication_factor=1)])
    admin.close()
    pipeline = make_pipeline("standby").start("llm")
    port = free_port()
    second = {**pipeline.environment("llm"), "HYVE_METRICS_PORT": str(port)}
    pipeline.supervisor.start("llm2", worker_command("llm"), second)
    notes = ["no model: the rules analyst answers"]
    standby = [*notes, "a standby: other workers have all partitions"]

    def both() -> bool:
        told = [asked(it, "/readyz") for it in (pipeline.ports["llm"], port)]
        return all(status == 200 for status, _ in told) and sorted(body["notes"] for _, body in told) == [
            notes,
            standby,
        ]

    until(both, 60)


@pytest.mark.apache
def test_a_broker_that_pauses_kills_no_worker(make_pipeline: Callable[..., Pipeline], apache: ApacheKafka) -> None:
    """For longer than it takes to count as dead, with records in hand and deliveries under way."""
    if not apache.pids:
        pytest.skip("needs a broker whose processes can be stopped")
    pipeline = make_pipeline("paused", **{**LIMITS, "HYVE_PREPARE_TIMEOUT": "5"}).start("store", "llm")
    for kind in ("store", "llm"):
        until(lambda kind=kind: asked(pipeline.ports[kind], "/readyz")[0] == 200, 60)
    rows = [{"service": f"s{i % 4}", "n": i} for i in range(500)]
    for number in range(30):
        pipeline.ask(f"r{number}", rows)
    seen: set[int] = set()
    noted = False
    for pid in apache.pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + 25
        while time.monotonic() < end:
            for kind in ("store", "llm"):
                status, body = asked(pipeline.ports[kind], "/healthz")
                seen.add(status)
                noted = noted or "notes" in body
            time.sleep(0.5)
    finally:
        for pid in apache.pids:
            os.kill(pid, signal.SIGCONT)
    assert (seen, noted) == ({200}, True)
    until(lambda: not any("notes" in asked(pipeline.ports[kind], "/healthz")[1] for kind in ("store", "llm")), 60)
    results = [pipeline.result(f"r{number}", 120) for number in range(30)]
    assert [it.summary for it in results if it.status == "failed"] == []
    assert {asked(pipeline.ports[kind], "/healthz")[0] for kind in ("store", "llm")} == {200}
    assert pipeline.supervisor.starts("store") == pipeline.supervisor.starts("llm") == 1


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_worker_that_is_asked_where_it_stands_tells_and_goes_on(
    make_pipeline: Callable[..., Pipeline], number: signal.Signals
) -> None:
    """Faust starts a debugger on SIGUSR2, which waits for somebody to type, and writes variables on SIGUSR1."""
    key = "sk-never-told"
    model = {"HYVE_LLM_BASE_URL": "http://127.0.0.1:9", "HYVE_LLM_MODEL": "m", "HYVE_LLM_API_KEY": key}
    pipeline = make_pipeline(f"stands{number}", **model).start("llm")
    until(lambda: asked(pipeline.ports["llm"], "/readyz")[0] == 200, 60)
    prompt(pipeline, "p1", 0)  # its call is tried again and again
    os.kill(pipeline.supervisor.pid("llm"), number)
    done = 'hyve_records_in_total{topic="' + pipeline.topic("prompts") + '"}'
    until(lambda: pipeline.metric("llm", done) == 1, 60)
    log = (pipeline.supervisor.logs / "llm.log").read_text("utf-8")
    assert "most recent call first" in log
    assert "Stack for <Task" in log
    assert key not in log
