"""What the pipeline costs beside `prepare`, as Markdown: `python -m tests.bench.pipeline [--requests N] [--seconds S]`.

Starts Apache Kafka (see `tests.integration.brokers`), one store worker with two store processes, one LLM worker and a
model server, and prints three tables, with `--floor` a fourth.

Throughput: requests with 20 KB of log records and a model that answers in 0 ms, with one cause and one claim and a
statement for each. Processor time counts, so that other work on the machine doesn't: a pipeline that keeps the
processor busy reaches the share of `prepare` of what the processor allows. What `prepare` and `finish` cost is what the
store processes say of these very requests: the same work costs more where five processes share two cores than it does
alone, which is told beside it. The tables that a statement names are loaded into DuckDB before it runs. `prepare` puts
that off, as many requests need none or few of them; it has a row of its own and counts with `prepare`, whose work it
is. The broker is warmed by a few thousand small records first, and all of it by requests: Java compiles what it runs
often. The benchmark's own time (client and model server) and what Java's compiler still takes are told beside the
table, whose shares are of what goes on for as long as requests come; so is what the broker takes without any client,
which is not taken off. Where store processes neither run nor wait for a core (Linux says it), the pipeline lets them
idle.

Overhead: the same requests at half of the throughput that was just measured, from the record's production to the
result's arrival, less the model's time. On a machine with other work these are upper bounds.

Floor: the same records go through two processes that only hand them on (see `tests.bench.floor`), in the same broker:
requests one by one at the rate that the workers reached, and all at once.

In flight: prompts sent straight to one LLM worker whose model takes two seconds: calls at a time, and memory of the
worker after a tenth of the prompts and at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import hyve
from hyve.errors import HyveError
from schemas import DiagnosisRequest, DiagnosisResult, Payload, Position, PromptReady
from streams.demo import scrape
from streams.supervisor import Supervisor, worker_command
from tests.bench import payloads
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.processes import cpu, descendants, resident
from tests.scripted_llm import ScriptedLLM
from workers import kafka
from workers.broker import free_port
from workers.settings import Settings, load

PAYLOAD = 20_000
IN_FLIGHT = 200
ALLOWED = 0.70
P50_MS, P99_MS = 150.0, 600.0

_ERRORS = (
    "SELECT service, count(*) AS errors FROM records WHERE status = 500 GROUP BY service ORDER BY errors DESC LIMIT 5"
)
_SLOW = "SELECT count(*) AS slow, max(ms) AS slowest FROM records WHERE ms > 800"
_ANSWER = json.dumps(
    {
        "status": "conclusive",
        "summary": "checkout answers with status 500",
        "root_causes": [
            {"entity": "checkout", "summary": "it fails", "confidence": 0.7, "evidence": [_ERRORS]},
        ],
        "claims": [{"text": "requests take up to 900 ms", "evidence": [_SLOW]}],
    }
)
"""One cause and one claim, each with a statement that gives rows over the payload."""


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
        """Processor seconds so far that `prepare`, `finish` and loading tables took in the store processes, which have
        done all three."""
        log = (self.supervisor.logs / f"{self.settings.topic_prefix}-store.log").read_text("utf-8")
        port = re.search(r"metrics on \S+:(\d+)/", log)
        assert port is not None
        found = scrape(int(port[1]))
        return {call: found[f'hyve_pool_cpu_seconds_total{{call="{call}"}}'] for call in ("prepare", "load", "finish")}

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
    """Processor seconds of `hyve.prepare` for one request: the mean after a round of warming up."""
    request = hyve.Request("what is wrong?", (hyve.Payload("logs", text),))
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


def throughput(
    apache: ApacheKafka, pipeline: Pipeline, requests: int, warm: int, text: str, alone: float
) -> tuple[str, float, bool]:
    """The table, requests a second by the clock, and whether the bound is kept. `alone`: what the broker takes of each
    second without a client."""
    bare = prepare_cpu(text)
    pipeline.warm_broker(4 * warm)
    with closing(Results(pipeline.settings, "results")) as seen:
        for number in range(warm):
            pipeline.ask(number, text)
        seen.wait(warm, 600)
        groups = {
            "store processes": [pid for pid in descendants(pipeline.pid("store")) if pid != pipeline.pid("store")],
            "store worker": [pipeline.pid("store")],
            "LLM worker": descendants(pipeline.pid("llm")),
            "Kafka": apache.pids,
            "benchmark": [os.getpid()],
        }
        before, calls = {name: sum(map(cpu, pids)) for name, pids in groups.items()}, pipeline.pool_cpu()
        compiler = sum(map(compiling, apache.pids))
        at_work = sum(map(busy, groups["store processes"]))
        began = time.perf_counter()
        for number in range(warm, warm + requests):
            pipeline.ask(number, text)
        seen.wait(warm + requests, 900)
        clock = (time.perf_counter() - began) / requests
        at_work = (sum(map(busy, groups["store processes"])) - at_work) / (clock * requests * 2)
        spent = {name: (sum(map(cpu, pids)) - before[name]) / requests for name, pids in groups.items()}
        compiler = (sum(map(compiling, apache.pids)) - compiler) / requests
        in_pool = {name: (value - calls[name]) / requests for name, value in pipeline.pool_cpu().items()}
    bench = spent.pop("benchmark")
    spent["Kafka"] -= compiler
    total = sum(spent.values())
    prepare, load, finish = (in_pool[name] for name in ("prepare", "load", "finish"))
    rest = spent.pop("store processes") - prepare - load - finish
    rows = {"`prepare`": prepare, "tables that it left to the first statement": load, "`finish`": finish}
    rows |= {"store processes, the rest": rest, **spent}
    lines = ["| part | ms of processor a request | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {seconds * 1000:.1f} | {seconds / total:.0%} |" for name, seconds in rows.items()]
    share, cores = (prepare + load) / total, os.cpu_count() or 1
    lines += [
        f"| together | {total * 1000:.1f} | at least {ALLOWED:.0%} is to be `prepare` with its tables: {share:.0%} |",
        "",
        f"{1 / clock:.1f} requests a second by the clock, with {(total + bench + compiler) / clock:.2f} of {cores} "
        f"cores ({bench * 1000:.1f} ms a request are the benchmark's own, {compiler * 1000:.1f} Java's compiler's); "
        f"the two store processes ran or waited for a core {at_work:.0%} of the time. {cores} cores of their own would "
        f"do {cores / total:.1f}, with `prepare` and its tables only {cores / (prepare + load):.1f}. With nothing "
        f"beside it `prepare` takes {bare * 1000:.1f} ms. A broker without clients takes {alone * 1000:.0f} ms a "
        f"second, which are {alone * clock * 1000:.1f} ms a request here. Without Kafka's own time, as of a broker on "
        f"other machines, the share is {(prepare + load) / (total - spent['Kafka']):.0%}.",
    ]
    return "\n".join(lines), 1 / clock, share >= ALLOWED


def floor(apache: ApacheKafka, pipeline: Pipeline, requests: int, rate: float, text: str) -> str:
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
            bare.ask(number, text)
        seen.wait(requests, 120)  # joined, and compiled
        done = requests
        for pace in (1 / rate, 0.0):
            pids = [[bare.pid("store")], [bare.pid("llm")], apache.pids]
            before = [sum(map(cpu, those)) for those in pids]
            compiler = sum(map(compiling, apache.pids))
            for number in range(requests):
                bare.ask(done + number, text)
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


def overhead(pipeline: Pipeline, rate: float, seconds: float, text: str) -> tuple[str, bool]:
    """Requests at `rate` a second; milliseconds from production to arrival, less the model's."""
    number = max(50, int(rate * seconds))
    sent: dict[str, float] = {}
    with closing(Results(pipeline.settings, "results")) as seen:
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
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=500, help="requests before those that are measured")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the run at half load")
    parser.add_argument("--prompts", type=int, default=4000, help="0: no such table")
    parser.add_argument("--floor", action="store_true", help="also what Kafka and its clients alone take")
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
            alone = idle(apache)
            pipeline = Pipeline(apache, "through", supervisor, HYVE_LLM_BASE_URL=server.url).start("store", "llm")
            table, rate, fine = throughput(apache, pipeline, options.requests, options.warm, text, alone)
            kept.append(fine)
            print(f"{table}\n", flush=True)
            if options.floor:
                print(f"{floor(apache, pipeline, options.requests, rate, text)}\n", flush=True)
            table, fine = overhead(pipeline, rate / 2, options.seconds, text)
            kept.append(fine)
            print(f"{table}\n")
            if options.prompts:
                table, fine = in_flight(apache, supervisor, options.prompts, text)
                kept.append(fine)
                print(table)
    except HyveError as error:
        print(f"pipeline: {error}; logs: {folder}", file=sys.stderr)
        return 1
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
