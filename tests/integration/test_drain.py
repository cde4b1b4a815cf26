"""Workers that come and go: SIGTERM drains, what is in hand when partitions move is done once, and of two store workers
one may be killed (invariants 5 and 8)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams.supervisor import worker_command
from tests.integration.pipeline import Pipeline, until
from tests.scripted_llm import ScriptedLLM


def test_a_store_worker_that_is_told_to_stop_delivers_what_it_has_begun(
    make_pipeline: Callable[..., Pipeline], tmp_path: Path
) -> None:
    pipeline = make_pipeline("drain")
    env = {**os.environ, **pipeline.environment("store")}
    log = tmp_path / "store.log"
    with log.open("wb") as out:
        worker = subprocess.Popen(worker_command("store"), stdin=subprocess.PIPE, stdout=out, stderr=out, env=env)
    try:
        rows = [{"service": f"s{i % 7}", "n": i, "text": f"line {i} of many " * 4} for i in range(90_000)]
        until(lambda: "worker: ready" in log.read_text())
        pipeline.ask("drained", rows)
        until(lambda: pipeline.metric("store", "hyve_pool_busy") >= 1)
        began = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
        assert time.monotonic() - began < 30
    finally:
        worker.kill()
        worker.wait()
    assert [record.key for record in pipeline.records("prompts")] == [b"drained"]
    assert pipeline.records("results") == []
    told = log.read_text()
    assert "Traceback" not in told
    lines = (
        "worker: ready: ",
        "worker: told to stop by SIGTERM: what is in hand is finished first",
        "worker: ended, nothing",
    )
    assert [told.count(line) for line in lines] == [1, 1, 1], told
    assert told.index(lines[0]) < told.index(lines[1]) < told.index(lines[2])


def test_two_store_workers_share_the_requests_and_one_of_them_is_killed(
    make_pipeline: Callable[..., Pipeline],
) -> None:
    pipeline = make_pipeline("pair").start("store", "llm")
    second = {**pipeline.environment("store"), "HYVE_METRICS_PORT": "0"}
    pipeline.supervisor.start("store2", worker_command("store"), second)
    rows = [{"service": f"s{i % 4}", "n": i} for i in range(2_000)]
    first: list[str] = []

    def both_have_had_requests() -> bool:
        first.append(f"a{len(first)}")
        pipeline.ask(first[-1], rows)
        logs = [(pipeline.supervisor.logs / f"{name}.log").read_text() for name in ("store", "store2")]
        return len(first) >= 10 and all("prompt of" in log for log in logs)

    until(both_have_had_requests, 90)
    assert [pipeline.result(name, 90).request_id for name in first] == first

    more = [f"b{i}" for i in range(10)]
    for number, name in enumerate(more):
        pipeline.ask(name, rows)
        if number == 4:
            os.kill(pipeline.supervisor.pid("store2"), signal.SIGKILL)
    assert [pipeline.result(name, 120).status for name in more] == ["inconclusive"] * 10
    hops = {json.loads(record.value)["hop"] for record in pipeline.records("prompts")}
    assert hops == {1}
    assert pipeline.records("deadletters") == []


class TwoHops:
    """A model that thinks for `seconds`, asks one query, and answers with its rows. Counts calls by request and hop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls: Counter[tuple[str, int]] = Counter()

    def __call__(self, body: Any) -> dict[str, Any]:
        hop = 1 if body.get("tools") else 2
        (name,) = set(re.findall(r"asked-\d+", json.dumps(body)))
        self.calls[name, hop] += 1
        time.sleep(self.seconds)
        if hop == 1:
            return {"tool": "query_datastore", "arguments": {"sql": "SELECT count(*) AS n FROM records"}}
        return {"text": json.dumps({"status": "inconclusive", "summary": "looked"})}


def test_llm_workers_come_and_go_and_no_prompt_is_asked_twice(make_pipeline: Callable[..., Pipeline]) -> None:
    """Two hops are two calls. What a worker has in hand when partitions move, to it or from it, ends and is committed
    before; a worker that is told to stop is no other."""
    model = TwoHops(2.0)
    asked: list[str] = []
    with ScriptedLLM([model], repeat_last=True) as server:
        given = {"HYVE_LLM_BASE_URL": server.url, "HYVE_LLM_MODEL": "m", "HYVE_LLM_CONCURRENCY": "8"}
        pipeline = make_pipeline("rolling", **given).start("store", "llm")

        def asked_on() -> int:
            """Asks one more where few wait, so that workers have records in hand; how many calls there were."""
            if 2 * len(asked) - model.calls.total() < 32:
                asked.append(f"asked-{len(asked)}")
                pipeline.ask(asked[-1], [{"service": asked[-1], "n": n} for n in range(3)])
            return model.calls.total()

        def ready(name: str, starts: int) -> bool:
            asked_on()
            log = pipeline.supervisor.logs / f"{name}.log"
            begun = log.read_text().split("metrics on") if log.exists() else []
            return len(begun) == starts + 1 and "worker: ready" in begun[-1]

        until(lambda: asked_on() >= 4, 90)
        second = {**pipeline.environment("llm"), "HYVE_METRICS_PORT": "0"}
        pipeline.supervisor.start("llm2", worker_command("llm"), second)
        until(lambda: ready("llm2", 1), 60)
        for name in ("llm", "llm2"):
            before = model.calls.total()
            until(lambda before=before: asked_on() >= before + 4, 60)
            os.kill(pipeline.supervisor.pid(name), signal.SIGTERM)  # who supervises it starts it again
            until(lambda name=name: ready(name, 2), 90)
        assert [pipeline.result(name, 90).mode for name in asked] == ["query"] * len(asked)
    assert model.calls == {(name, hop): 1 for name in asked for hop in (1, 2)}
    assert pipeline.records("deadletters") == []
