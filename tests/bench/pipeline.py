"""What the pipeline costs beside `prepare`, as Markdown: `python -m tests.bench.pipeline [--requests N] [--seconds S]`.

Starts Apache Kafka (see `tests.integration.brokers`), one store worker with two store processes, one LLM worker and a
model server, and prints three tables, with `--floor` a fourth.

Throughput: requests of 20 KB of each kind of data (`tests.bench.requests`), one kind after the other, and a model that
answers in 0 ms, with one cause and one claim and a statement for each. Processor time counts, so that other work on the
machine doesn't: a pipeline that keeps the processor busy reaches the share of `prepare` of what the processor allows.
What `prepare` and `finish` cost is what the store processes say of these very requests: the same work costs more where
five processes share two cores than it does alone, which is told beside it. The tables that a statement names are loaded
into DuckDB before it runs. `prepare` puts that off, as many requests need none or few of them; it has a column of its
own and counts with `prepare`, whose work it is. The broker is warmed by a few thousand small records first, and all of
it by requests: Java compiles what it runs often. The benchmark's own time (client and model server) and what Java's
compiler still takes are told beside the table, whose shares are of what goes on for as long as requests come; so is
what the broker takes without any client, which is not taken off. Where store processes neither run nor wait for a core
(Linux says it), the pipeline lets them idle.

Overhead: requests of log records at half of their throughput that was just measured, from the record's production to
the result's arrival, less the model's time. On a machine with other work these are upper bounds.

Floor: the same records go through two processes that only hand them on (see `tests.bench.floor`), in the same broker:
requests one by one at the rate that the workers reached, and all at once.

In flight: prompts sent straight to one LLM worker whose model takes two seconds: calls at a time, and memory of the
worker after a tenth of the prompts and at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import hyve
from hyve.errors import HyveError
from schemas import DiagnosisRequest, DiagnosisResult, Position, PromptReady
from streams.demo import scrape
from streams.supervisor import Supervisor, worker_command
from tests.bench.requests import Asked, kinds
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.processes import cpu, descendants, resident
from tests.scripted_llm import ScriptedLLM
from workers import kafka
from workers.broker import free_port
from workers.settings import Settings, load

LOGS = "log records"
"""The kind that takes least: what is not about kinds is about it."""

_WARM, _LATE = 40, 100_000
"""Requests of a kind before those that are measured; the first number of those that come at half load."""

IN_FLIGHT = 200
ALLOWED = 0.70
P50_MS, P99_MS = 150.0, 600.0


def compiling(pid: int) -> float:
    """Processor seconds so far of Java's compiler in a process."""
    names = [task / "comm" for task in Path(f"/proc/{pid}/task").iterdir()]
    compilers = [name.parent for name in names if name.read_text().startswith(("C1 Compiler", "C2 Compiler"))]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in compilers) / 1e9


def busy(pid: int) -> float:
    """Seconds so far in which a process's main thread ran or waited for a core."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return (int(ran) + int(waited)) / 1e9


class Results:
    """Reads a topic while it is written: when each key came first, and its value."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.came: dict[str, float] = {}
        self.values: dict[str, bytes] = {}
        self._consumer = KafkaConsumer(bootstrap_servers=settings.servers, fetch_max_wait_ms=500)
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


class Model:
    """Says at once what it is to say."""

    reply = ""

    def __call__(self, body: Any) -> dict[str, Any]:
        return {"text": self.reply}


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

    def pool_cpu(self) -> dict[str, float]:
        """Processor seconds so far that `prepare`, `finish` and loading tables took in the store processes."""
        log = (self.supervisor.logs / f"{self.settings.topic_prefix}-store.log").read_text("utf-8")
        port = re.search(r"metrics on \S+:(\d+)/", log)
        assert port is not None
        found = scrape(int(port[1]))
        names = {call: f'hyve_pool_cpu_seconds_total{{call="{call}"}}' for call in ("prepare", "load", "finish")}
        return {call: found.get(name, 0.0) for call, name in names.items()}

    def warm_broker(self, rounds: int) -> None:
        """Produces and reads `rounds` small records one by one, on a topic that no worker reads."""
        place = TopicPartition(self.settings.topic("deadletters"), 0)
        consumer = KafkaConsumer(bootstrap_servers=self.settings.servers)
        consumer.assign([place])
        consumer.seek_to_end(place)
        consumer.position(place)
        for _ in range(rounds):
            self.producer.send(place.topic, b"x" * 2000, partition=0).get(30)
            while not consumer.poll(timeout_ms=1000):
                pass
        consumer.close()

    def ask(self, number: int, asked: Asked) -> float:
        """Produces one request; the time at which it was handed to the client."""
        request = DiagnosisRequest(request_id=f"r{number}", question="what is wrong?", payloads=asked.payloads)
        at = time.time()
        value = request.model_copy(update={"created": int(at * 1000)}).to_bytes()
        self.producer.send(self.settings.topic("requests"), value, key=request.request_id.encode())
        return at


def prepare_cpu(asked: Asked, rounds: int = 40) -> float:
    """Processor seconds of `hyve.prepare` for one request: the mean after a round of warming up."""
    request = hyve.Request("what is wrong?", tuple(hyve.Payload(one.name, one.text) for one in asked.payloads))
    times: list[float] = []
    for _ in range(rounds + 10):
        began = time.process_time()
        store, _ = hyve.prepare(request)
        times.append(time.process_time() - began)
        store.close()
    return sum(times[10:]) / rounds


def idle(apache: ApacheKafka, seconds: float = 5.0) -> float:
    """Of each second, the processor's seconds that the broker takes now, but for Java's compiler."""
    before, compiler = sum(map(cpu, apache.pids)), sum(map(compiling, apache.pids))
    time.sleep(seconds)
    compiler = sum(map(compiling, apache.pids)) - compiler
    return (sum(map(cpu, apache.pids)) - before - compiler) / seconds


@dataclass(frozen=True)
class Spent:
    """What one request takes: milliseconds of processor time by part, and of the clock. `aside` is the benchmark's own
    and what Java's compiler takes; `busy` the share of the time in which the store processes ran or waited for a
    core."""

    parts: dict[str, float]
    aside: tuple[float, float]
    clock: float
    busy: float

    @property
    def prepare(self) -> float:
        return self.parts["prepare"] + self.parts["load"]

    @property
    def all(self) -> float:
        return sum(self.parts.values())

    @property
    def share(self) -> float:
        return self.prepare / self.all


def spent(apache: ApacheKafka, pipeline: Pipeline, asked: Asked, numbers: range, done: Results) -> Spent:
    """Sends requests all at once and returns when they are answered."""
    groups = {
        "store processes": [pid for pid in descendants(pipeline.pid("store")) if pid != pipeline.pid("store")],
        "store worker": [pipeline.pid("store")],
        "LLM worker": descendants(pipeline.pid("llm")),
        "Kafka": apache.pids,
        "benchmark": [os.getpid()],
    }

    def now() -> dict[str, float]:
        found = {name: sum(map(cpu, pids)) for name, pids in groups.items()}
        return {
            **pipeline.pool_cpu(),
            **found,
            "compiler": sum(map(compiling, apache.pids)),
            "busy": sum(map(busy, groups["store processes"])) / len(groups["store processes"]),
            "clock": time.perf_counter(),
        }

    before = now()
    for number in numbers:
        pipeline.ask(number, asked)
    done.wait(numbers.stop, 900)
    took = {name: (value - before[name]) / len(numbers) * 1000 for name, value in now().items()}
    compiler, bench, clock, at_work = (took.pop(name) for name in ("compiler", "benchmark", "clock", "busy"))
    took["Kafka"] -= compiler
    took["store processes"] -= took["prepare"] + took["load"] + took["finish"]
    return Spent(took, (bench, compiler), clock, at_work / clock)


def throughput(
    apache: ApacheKafka, pipeline: Pipeline, model: Model, requests: int, warm: int, alone: float
) -> tuple[str, float, bool]:
    """The table, requests a second of log records by the clock, and whether the bound is kept. `alone`: what the broker
    takes of each second without a client."""
    every = kinds()
    bare = prepare_cpu(every[LOGS])
    pipeline.warm_broker(4 * warm)
    found: dict[str, Spent] = {}
    sent = 0
    with closing(Results(pipeline.settings, "results")) as done:
        for name, asked in {LOGS: every[LOGS], **every}.items():
            model.reply = asked.reply
            for number in (_WARM if sent else warm, requests):
                found[name] = spent(apache, pipeline, asked, range(sent, sent + number), done)
                sent += number
            result = DiagnosisResult.from_bytes(done.values[f"r{sent - 1}"])
            if result.status != "conclusive" or len(result.evidence) != 2:
                raise HyveError(f"{name}: {result.status} with {len(result.evidence)} statements: {result.notes}")
    mean = Spent(
        {part: sum(one.parts[part] for one in found.values()) / len(found) for part in found[LOGS].parts}, (0, 0), 0, 0
    )
    columns = " | ".join(mean.parts)
    lines = [f"| ms of processor a request | {columns} | together | share |", "|---|" + "---:|" * (len(mean.parts) + 2)]
    for name, one in {**found, "on average": mean}.items():
        parts = " | ".join(f"{ms:.1f}" for ms in one.parts.values())
        lines.append(f"| {name} | {parts} | {one.all:.1f} | {one.share:.0%} |")
    logs, cores = found[LOGS], os.cpu_count() or 1
    lines += [
        "",
        f"Of each kind at least {ALLOWED:.0%} is to be `prepare` with its tables (`load`). Of log records "
        f"{1000 / logs.clock:.1f} requests a second by the clock, with {(logs.all + sum(logs.aside)) / logs.clock:.2f} "
        f"of {cores} cores ({logs.aside[0]:.1f} ms a request are the benchmark's own, {logs.aside[1]:.1f} Java's "
        f"compiler's); the store processes ran or waited for a core {logs.busy:.0%} of the time. {cores} cores of "
        f"their own would do {cores * 1000 / logs.all:.1f}, with `prepare` and its tables only "
        f"{cores * 1000 / logs.prepare:.1f}. With nothing beside it `prepare` takes {bare * 1000:.1f} ms. A broker "
        f"without clients takes {alone * 1000:.0f} ms a second, which are {alone * logs.clock:.1f} ms a request here. "
        f"Without Kafka's own time, as of a broker on other machines, the shares are "
        f"{logs.prepare / (logs.all - logs.parts['Kafka']):.0%}, on average "
        f"{mean.prepare / (mean.all - mean.parts['Kafka']):.0%}.",
    ]
    return "\n".join(lines), 1000 / logs.clock, all(one.share >= ALLOWED for one in found.values())


def floor(apache: ApacheKafka, pipeline: Pipeline, requests: int, rate: float, asked: Asked) -> str:
    """What two processes take that only hand on the records of a pipeline that is there: paced, and all at once."""
    folder = pipeline.supervisor.logs / "floor"
    folder.mkdir()
    for topic in ("prompts", "queries", "results", "metrics"):
        (folder / topic).write_bytes(first_of(pipeline.settings, topic))
    bare = Pipeline(apache, "floor", pipeline.supervisor)
    for kind in ("store", "llm"):
        command = [sys.executable, "-m", "tests.bench.floor", kind, apache.address, "floor", str(folder)]
        bare.supervisor.start(f"floor-{kind}", command, {})
    rows: list[tuple[str, list[float]]] = []
    with closing(Results(bare.settings, "metrics")) as seen:
        for number in range(requests):
            bare.ask(number, asked)
        seen.wait(requests, 120)  # joined, and compiled
        done = requests
        for pace in (1 / rate, 0.0):
            pids = [[bare.pid("store")], [bare.pid("llm")], apache.pids]
            before = [sum(map(cpu, those)) for those in pids]
            compiler = sum(map(compiling, apache.pids))
            for number in range(requests):
                bare.ask(done + number, asked)
                time.sleep(pace)
            done += requests
            seen.wait(done, 120)
            took = [sum(map(cpu, those)) - was for those, was in zip(pids, before, strict=True)]
            took[-1] -= sum(map(compiling, apache.pids)) - compiler
            rows.append((f"{rate:.0f} a second" if pace else "all at once", [it / requests * 1000 for it in took]))
    lines = ["| only handed on | store | LLM | Kafka | together |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {name} | {' | '.join(f'{ms:.1f}' for ms in those)} | {sum(those):.1f} |" for name, those in rows]
    return "\n".join(lines)


def first_of(settings: Settings, topic: str) -> bytes:
    """The value of a record of a topic that has some."""
    consumer = KafkaConsumer(bootstrap_servers=settings.servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(settings.topic(topic), number) for number in range(6)])
    try:
        while not (polled := consumer.poll(timeout_ms=1000)):
            pass
        return bytes(next(iter(polled.values()))[0].value)
    finally:
        consumer.close()


def overhead(pipeline: Pipeline, rate: float, seconds: float, asked: Asked) -> tuple[str, bool]:
    """Requests at `rate` a second; milliseconds from production to arrival, less the model's."""
    number = max(50, int(rate * seconds))
    sent: dict[str, float] = {}
    with closing(Results(pipeline.settings, "results")) as seen:
        began = time.perf_counter()
        for index in range(number):
            pause = began + index / rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            sent[f"r{_LATE + index}"] = pipeline.ask(_LATE + index, asked)
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

    def __init__(self, seconds: float, reply: str) -> None:
        self._seconds, self._reply = seconds, reply
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
        return {"text": self._reply}


def in_flight(apache: ApacheKafka, supervisor: Supervisor, prompts: int, asked: Asked) -> tuple[str, bool]:
    """One LLM worker with `prompts` prompts and a model of two seconds."""
    payloads = tuple(hyve.Payload(one.name, one.text) for one in asked.payloads)
    _, prompt = hyve.prepare(hyve.Request("what is wrong?", payloads))
    model = SlowModel(2.0, asked.reply)
    with ScriptedLLM([model], repeat_last=True) as server:
        pipeline = Pipeline(
            apache, "flight", supervisor, HYVE_LLM_BASE_URL=server.url, HYVE_LLM_CONCURRENCY=str(IN_FLIGHT)
        ).start("llm")
        with closing(Results(pipeline.settings, "queries")) as seen:
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
    parser.add_argument("--requests", type=int, default=300, help="of each kind")
    parser.add_argument("--warm", type=int, default=500, help="requests before those that are measured")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the run at half load")
    parser.add_argument("--prompts", type=int, default=4000, help="0: no such table")
    parser.add_argument("--floor", action="store_true", help="also what Kafka and its clients alone take")
    options = parser.parse_args()
    logs, model = kinds()[LOGS], Model()
    folder = Path(tempfile.mkdtemp(prefix="hyve-pipeline-"))
    kept = []
    try:
        with (
            ApacheKafka(folder / "kafka") as apache,
            Supervisor(folder) as supervisor,
            ScriptedLLM([model], repeat_last=True) as server,
        ):
            alone = idle(apache)
            pipeline = Pipeline(apache, "through", supervisor, HYVE_LLM_BASE_URL=server.url).start("store", "llm")
            table, rate, fine = throughput(apache, pipeline, model, options.requests, options.warm, alone)
            kept.append(fine)
            print(f"{table}\n", flush=True)
            if options.floor:
                print(f"{floor(apache, pipeline, options.requests, rate, logs)}\n", flush=True)
            model.reply = logs.reply
            table, fine = overhead(pipeline, rate / 2, options.seconds, logs)
            kept.append(fine)
            print(f"{table}\n")
            if options.prompts:
                table, fine = in_flight(apache, supervisor, options.prompts, logs)
                kept.append(fine)
                print(table)
    except HyveError as error:
        print(f"pipeline: {error}; logs: {folder}", file=sys.stderr)
        return 1
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
