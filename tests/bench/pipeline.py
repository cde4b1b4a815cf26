"""What the pipeline costs beside `prepare`, as Markdown: `python -m tests.bench.pipeline [--requests N] [--seconds S]`.

Starts Apache Kafka (see `tests.integration.brokers`), one store worker with two store processes, one LLM worker and a
model server, and prints three tables.

Throughput: requests with 20 KB of log records and a model that answers in 0 ms. What the processor allows is what
`hyve.prepare` alone costs in this process for the same payloads; the shares say where the rest went. Processor time
counts, so that other work on the machine doesn't: a pipeline that keeps the processor busy reaches the share of
`prepare` of what the processor allows.

Overhead: the same requests at half of the throughput that was just measured, from the record's production to the
result's arrival, less the model's time. On a machine with other work these are upper bounds.

In flight: prompts sent straight to one LLM worker whose model takes two seconds: calls at a time, and memory of the
worker after a tenth of the prompts and at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import hyve
from hyve.errors import HyveError
from schemas import DiagnosisRequest, DiagnosisResult, Payload, Position, PromptReady
from streams.supervisor import Supervisor, worker_command
from tests.bench import payloads
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.scripted_llm import ScriptedLLM
from workers import kafka
from workers.broker import free_port
from workers.settings import Settings, load

PAYLOAD = 20_000
IN_FLIGHT = 200
ALLOWED = 0.70
P50_MS, P99_MS = 150.0, 600.0

_TICK = os.sysconf("SC_CLK_TCK")
_ANSWER = json.dumps({"status": "inconclusive", "summary": "nothing stands out", "root_causes": [], "claims": []})


def cpu(pid: int) -> float:
    """Processor seconds of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def children(pid: int) -> list[int]:
    """Its direct children."""
    return [int(it) for task in Path(f"/proc/{pid}/task").glob("*/children") for it in task.read_text().split()]


def descendants(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(it for child in children(pid) for it in descendants(child))]


def resident(pid: int) -> float:
    """Resident memory in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Results:
    """Reads a topic while it is written: when each key came first, and its value."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.came: dict[str, float] = {}
        self.values: dict[str, bytes] = {}
        self._consumer = KafkaConsumer(bootstrap_servers=settings.servers, fetch_max_wait_ms=20)
        places = [TopicPartition(settings.topic(topic), number) for number in range(6)]
        self._consumer.assign(places)
        self._consumer.seek_to_end(*places)
        for place in places:
            self._consumer.position(place)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for records in self._consumer.poll(timeout_ms=50).values():
                for record in records:
                    key = record.key.decode()
                    self.came.setdefault(key, time.time())
                    self.values.setdefault(key, record.value)

    def wait(self, number: int, seconds: float) -> None:
        """Returns when `number` keys have come. Raises `HyveError` where they don't."""
        end = time.monotonic() + seconds
        while len(self.came) < number:
            if time.monotonic() > end:
                raise HyveError(f"{len(self.came)} of {number} results came within {seconds:g} s")
            time.sleep(0.02)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()


@contextmanager
def results(settings: Settings, topic: str) -> Iterator[Results]:
    """A reader that is closed when the block ends."""
    reader = Results(settings, topic)
    try:
        yield reader
    finally:
        reader.close()


class Pipeline:
    """The workers, under a topic prefix of their own."""

    def __init__(self, apache: ApacheKafka, prefix: str, supervisor: Supervisor, **env: str) -> None:
        self.settings = load(bootstrap_servers=apache.address, topic_prefix=prefix)
        self.supervisor = supervisor
        self._env = {
            **TIMEOUTS,
            "HYVE_BOOTSTRAP_SERVERS": apache.address,
            "HYVE_TOPIC_PREFIX": prefix,
            "HYVE_HTTP_PORT": str(free_port()),
            "HYVE_METRICS_PORT": "0",
            "HYVE_LLM_MODEL": "scripted-1",
            **env,
        }
        kafka.create_topics(self.settings)
        self.producer = KafkaProducer(bootstrap_servers=self.settings.servers, linger_ms=0, acks="all")

    def start(self, *kinds: str) -> Pipeline:
        for kind in kinds:
            self.supervisor.start(f"{self.settings.topic_prefix}-{kind}", worker_command(kind), self._env)
        return self

    def pid(self, kind: str) -> int:
        return self.supervisor.pid(f"{self.settings.topic_prefix}-{kind}")

    def ask(self, number: int, text: str) -> float:
        """Produces one request; the time at which it was handed to the client."""
        request = DiagnosisRequest(
            request_id=f"r{number}", question="what is wrong?", payloads=(Payload(name="logs", text=text),)
        )
        at = time.time()
        value = request.model_copy(update={"created": int(at * 1000)}).to_bytes()
        self.producer.send(self.settings.topic("requests"), value, key=request.request_id.encode())
        return at


def prepare_cpu(text: str, rounds: int = 60) -> float:
    """Processor seconds of `hyve.prepare` for one request, the mean after a round of warming up."""
    request = hyve.Request("what is wrong?", (hyve.Payload("logs", text),))
    began = 0.0
    for number in range(rounds + 10):
        if number == 10:
            began = time.process_time()
        store, _ = hyve.prepare(request)
        store.close()
    return (time.process_time() - began) / rounds


def throughput(apache: ApacheKafka, pipeline: Pipeline, requests: int, text: str) -> tuple[str, float, bool]:
    """The table, requests a second by the clock, and whether the bound is kept."""
    alone = prepare_cpu(text)
    with results(pipeline.settings, "results") as seen:
        for number in range(40):  # joins, imports and connections
            pipeline.ask(number, text)
        seen.wait(40, 120)
        groups = {
            "store processes": [pid for pid in descendants(pipeline.pid("store")) if pid != pipeline.pid("store")],
            "store worker": [pipeline.pid("store")],
            "LLM worker": descendants(pipeline.pid("llm")),
            "Kafka": apache.pids,
        }
        before = {name: sum(map(cpu, pids)) for name, pids in groups.items()}
        began = time.perf_counter()
        for number in range(40, 40 + requests):
            pipeline.ask(number, text)
        seen.wait(40 + requests, 600)
        clock = (time.perf_counter() - began) / requests
        spent = {name: (sum(map(cpu, pids)) - before[name]) / requests for name, pids in groups.items()}
        inside = [DiagnosisResult.from_bytes(seen.values[f"r{number}"]) for number in range(40, 40 + requests)]
    total = sum(spent.values())
    rows = {"`prepare` alone": alone, "store processes, beside it": spent.pop("store processes") - alone, **spent}
    lines = ["| part | ms of processor a request | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {seconds * 1000:.1f} | {seconds / total:.0%} |" for name, seconds in rows.items()]
    share = alone / total
    views = sorted(sum(ms for name, ms in it.ms.items() if name.startswith("prepare.")) for it in inside)
    lines += [
        f"| together | {total * 1000:.1f} | at least {ALLOWED:.0%} is to be `prepare`: {share:.0%} |",
        "",
        f"{1 / clock:.1f} requests a second by the clock; `prepare` alone would allow "
        f"{os.cpu_count() or 1} / {alone * 1000:.1f} ms = {(os.cpu_count() or 1) / alone:.1f}. "
        f"In the pipeline `prepare` took {views[len(views) // 2]:.1f} ms of the clock (median).",
    ]
    return "\n".join(lines), 1 / clock, share >= ALLOWED


def overhead(pipeline: Pipeline, rate: float, seconds: float, text: str) -> tuple[str, bool]:
    """Requests at `rate` a second; milliseconds from production to arrival, less the model's."""
    number = max(50, int(rate * seconds))
    sent: dict[str, float] = {}
    with results(pipeline.settings, "results") as seen:
        began = time.perf_counter()
        for index in range(number):
            pause = began + index / rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            sent[f"r{10_000 + index}"] = pipeline.ask(10_000 + index, text)
        seen.wait(number, 300)
        taken = []
        for key, at in sent.items():
            result = DiagnosisResult.from_bytes(seen.values[key])
            taken.append((seen.came[key] - at) * 1000 - result.ms.get("model", 0.0))
    taken.sort()
    p50, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    table = (
        "| requests a second | p50 ms | at most | p99 ms | at most |\n|---:|---:|---:|---:|---:|\n"
        f"| {rate:.1f} | {p50:.0f} | {P50_MS:.0f} | {p99:.0f} | {P99_MS:.0f} |"
    )
    return table, p50 <= P50_MS and p99 <= P99_MS


class SlowModel:
    """Answers after `seconds`; counts the calls at a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def __call__(self, body: Any) -> dict[str, Any]:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self._seconds)
        with self._lock:
            self._now -= 1
        return {"text": _ANSWER}


def in_flight(apache: ApacheKafka, supervisor: Supervisor, prompts: int, text: str) -> tuple[str, bool]:
    """One LLM worker with `prompts` prompts and a model of two seconds."""
    _, prompt = hyve.prepare(hyve.Request("what is wrong?", (hyve.Payload("logs", text),)))
    model = SlowModel(2.0)
    with ScriptedLLM([model], repeat_last=True) as server:
        pipeline = Pipeline(
            apache, "flight", supervisor, HYVE_LLM_BASE_URL=server.url, HYVE_LLM_CONCURRENCY=str(IN_FLIGHT)
        ).start("llm")
        with results(pipeline.settings, "queries") as seen:
            began = 0.0
            early = late = 0.0
            place = Position(topic=pipeline.settings.topic("requests"), partition=0, offset=0)
            for number in range(prompts):
                record = PromptReady(
                    request_id=f"p{number}", hop=1, messages=tuple(prompt.messages), request=place
                ).to_bytes()
                pipeline.producer.send(pipeline.settings.topic("prompts"), record, key=f"p{number}".encode())
            seen.wait(prompts // 10, 120)
            began, first = time.perf_counter(), len(seen.came)
            early = resident(pipeline.pid("llm"))
            seen.wait(prompts, 600)
            late = resident(pipeline.pid("llm"))
            rate = (len(seen.came) - first) / (time.perf_counter() - began)
    table = (
        "| prompts | calls at a time | answers a second | MB after a tenth | MB at the end |\n"
        "|---:|---:|---:|---:|---:|\n"
        f"| {prompts} | {model.most} | {rate:.0f} (at most {IN_FLIGHT / 2.0:.0f}) | {early:.0f} | {late:.0f} |"
    )
    return table, model.most == IN_FLIGHT and late <= early * 1.1


def main() -> int:
    """Prints the tables; 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=30.0, help="of the run at half load")
    parser.add_argument("--prompts", type=int, default=4000)
    options = parser.parse_args()
    text = payloads.logs(PAYLOAD)
    folder = Path(tempfile.mkdtemp(prefix="hyve-pipeline-"))
    kept = []
    try:
        with (
            ApacheKafka(folder / "kafka") as apache,
            Supervisor(folder) as supervisor,
            ScriptedLLM([{"text": _ANSWER}], repeat_last=True) as server,
        ):
            pipeline = Pipeline(apache, "through", supervisor, HYVE_LLM_BASE_URL=server.url).start("store", "llm")
            table, rate, fine = throughput(apache, pipeline, options.requests, text)
            kept.append(fine)
            print(f"{table}\n")
            table, fine = overhead(pipeline, rate / 2, options.seconds, text)
            kept.append(fine)
            print(f"{table}\n")
            table, fine = in_flight(apache, supervisor, options.prompts, text)
            kept.append(fine)
            print(table)
    except HyveError as error:
        print(f"pipeline: {error}; logs: {folder}", file=sys.stderr)
        return 1
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
