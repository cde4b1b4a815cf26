"""Two store workers against one, as Markdown: `python -m tests.bench.workers [--requests N] [--turns N] [--rounds N]`.

Starts Apache Kafka (see `tests.integration.brokers`), one LLM worker, store workers with one store process each, and a
model server that answers after `--model-ms`.

Throughput: the same requests to one and to two store workers, 24 in flight, in turns. On a machine whose processors
others use, or with fewer than the pipeline could use, the clock says little; so the processor time of a request stands
beside it, and in a store process, and how many processors the pipeline had and others took. From these follows what
one and two workers could do on processors of their own: a store process uses one at most, all of the pipeline all.

Coming and going: while requests flow, the second worker joins, leaves (SIGTERM), joins again and is killed (SIGKILL),
`--rounds` times. Every answer of the model differs, so a request that is answered twice would be seen. Then all topics
are read and counted. 1 where a request has not exactly one final result.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import httpx
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from hyve.errors import HyveError
from schemas import DiagnosisRequest, Payload
from streams.demo import scrape
from streams.supervisor import Supervisor, stopping_on_signals, worker_command
from tests.bench import payloads
from tests.bench.faults import Outcome, count, unread
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.processes import cpu, cpu_of_all, machine_cpu, store_processes
from tests.scripted_llm import ScriptedLLM
from workers import kafka
from workers.broker import free_port
from workers.settings import load

PARTITIONS = 6
IN_FLIGHT = 24
QUERY = "SELECT service, count(*) AS n FROM records GROUP BY service ORDER BY service"


class Model:
    """Answers after `seconds`, never twice the same; one in `queries` asks for rows first (0: none)."""

    def __init__(self, seconds: float, queries: int = 0) -> None:
        self._seconds, self._queries = seconds, queries
        self._random = random.Random(1)
        self._lock = threading.Lock()
        self.steps: Counter[str] = Counter()

    def __call__(self, body: Any) -> dict[str, Any]:
        with self._lock:
            nonce = self._random.getrandbits(40)
            asks = bool(self._queries and body.get("tools") and nonce % self._queries == 0)
            self.steps["query" if asks else "direct"] += 1
        time.sleep(self._seconds)
        if asks:
            return {"tool": "query_datastore", "arguments": {"sql": f"{QUERY} LIMIT {1 + nonce % 7}"}}
        answer = {"status": "inconclusive", "summary": f"said {nonce}", "root_causes": [], "claims": []}
        return {"text": json.dumps(answer)}


@dataclass
class StoreWorker:
    """One store worker that comes and goes; it also ends when this process does."""

    name: str
    env: dict[str, str]
    logs: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.logs / f"{self.name}.log").open("ab") as out:
            self.process = subprocess.Popen(
                worker_command("store"),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env={**os.environ, **self.env, "HYVE_METRICS_PORT": str(self.port)},
            )

    def end(self, how: signal.Signals) -> float:
        """Sends a signal and waits for the end; the seconds that it took."""
        if self.process is None:
            return 0.0
        began = time.monotonic()
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            process.wait(90)
        except subprocess.TimeoutExpired:
            process.kill()
            raise HyveError(f"{self.name} did not end within 90 s of {how.name}") from None
        return time.monotonic() - began

    @property
    def partitions(self) -> int:
        """Partitions of the requests that it reads, once it is ready."""
        try:
            if httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).status_code != 200:
                return 0
        except httpx.HTTPError:
            return 0
        name = f'hyve_assigned_partitions{{topic="{self.env["HYVE_TOPIC_PREFIX"]}.requests"}}'
        return int(scrape(self.port).get(name, 0))


def until(condition: Any, seconds: float, what: str) -> None:
    """Waits for something true. Raises `HyveError` where it doesn't come."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise HyveError(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


@dataclass
class Turn:
    """One measurement: requests a second, processor seconds of a request (and of them, in a store process), processors
    that the pipeline had and that others took."""

    rate: float
    cost: float
    store: float
    ours: float
    others: float

    def allowed(self, workers: int, processors: float) -> float:
        """Requests a second on so many processors of its own: a store process has one, all of it has all."""
        return min(workers / self.store, processors / self.cost)


class Bench:
    """The pipeline on topics of its own, with one store worker."""

    def __init__(self, apache: ApacheKafka, prefix: str, logs: Path, model: str, stack: ExitStack) -> None:
        self.apache = apache
        self.settings = load(bootstrap_servers=apache.address, topic_prefix=prefix)
        kafka.create_topics(self.settings)
        env = {
            **TIMEOUTS,
            "HYVE_BOOTSTRAP_SERVERS": apache.address,
            "HYVE_TOPIC_PREFIX": prefix,
            "HYVE_POOL_SIZE": "1",
            "HYVE_POOL_STORES": str(2 * IN_FLIGHT),  # none is built twice for want of room
            "HYVE_LLM_BASE_URL": model,
            "HYVE_LLM_MODEL": "scripted-1",
        }
        self.supervisor = stack.enter_context(Supervisor(logs))
        self.supervisor.start("llm", worker_command("llm"), {**env, "HYVE_METRICS_PORT": "0"})
        self.workers = [StoreWorker(name, env, logs) for name in (f"{prefix}-1", f"{prefix}-2")]
        stack.callback(lambda: [worker.end(signal.SIGKILL) for worker in self.workers])
        self.producer = KafkaProducer(bootstrap_servers=self.settings.servers, linger_ms=0, acks="all")
        stack.callback(self.producer.close)
        self.results = KafkaConsumer(bootstrap_servers=self.settings.servers, fetch_max_wait_ms=20)
        stack.callback(self.results.close)
        places = [TopicPartition(self.settings.topic("results"), number) for number in range(PARTITIONS)]
        self.results.assign(places)
        self.results.seek_to_beginning(*places)
        self.came: set[str] = set()
        self.asked = 0

    def share(self, *partitions: int) -> None:
        """Waits until the workers read that many partitions each."""

        def shared() -> bool:
            return sorted(worker.partitions for worker in self.workers) == sorted(partitions)

        until(shared, 90, f"store workers share {partitions}")

    def ask(self, text: str) -> str:
        """Sends one request."""
        name, self.asked = f"r{self.asked}", self.asked + 1
        request = DiagnosisRequest(
            request_id=name,
            question="what is wrong?",
            payloads=(Payload(name="logs", text=text),),
            created=int(time.time() * 1000),
        )
        self.producer.send(self.settings.topic("requests"), request.to_bytes(), key=name.encode())
        return name

    def collect(self) -> None:
        """Reads results for a moment."""
        for records in self.results.poll(timeout_ms=50).values():
            self.came.update(record.key.decode() for record in records)

    def measure(self, requests: int, text: str) -> Turn:
        """Sends requests, `IN_FLIGHT` at a time, and waits for their results."""
        running = [worker.process.pid for worker in self.workers if worker.process is not None]
        pids = [*running, self.supervisor.pid("llm"), *self.apache.pids]
        pools = [child for pid in running for child in store_processes(pid)]
        before, all_before, pool_before = sum(map(cpu_of_all, pids)), machine_cpu(), sum(map(cpu, pools))
        began = time.perf_counter()
        names: set[str] = set()
        end = time.monotonic() + 600
        while len(names) < requests or not names <= self.came:
            while len(names) < requests and len(names - self.came) < IN_FLIGHT:
                names.add(self.ask(text))
            self.collect()
            if time.monotonic() > end:
                raise HyveError(f"{len(names - self.came)} of {requests} results did not come within 600 s")
        clock = time.perf_counter() - began
        ours = sum(map(cpu_of_all, pids)) - before
        return Turn(
            requests / clock,
            ours / requests,
            (sum(map(cpu, pools)) - pool_before) / requests,
            ours / clock,
            max(0.0, machine_cpu() - all_before - ours) / clock,
        )


def throughput(bench: Bench, requests: int, turns: int, text: str) -> str:
    """The table of one and two workers in turns."""
    first, second = bench.workers
    first.start()
    bench.share(0, PARTITIONS)
    bench.measure(100, text)  # imports, connections, and what Java compiles
    found: dict[int, list[Turn]] = {1: [], 2: []}
    for _ in range(turns):
        found[1].append(bench.measure(requests, text))
        second.start()
        bench.share(PARTITIONS // 2, PARTITIONS // 2)
        bench.measure(40, text)
        found[2].append(bench.measure(requests, text))
        second.end(signal.SIGTERM)
        bench.share(0, PARTITIONS)
    lines = [
        "| store workers | turn | requests a second | ms of processor a request | of them in a store process "
        "| processors: pipeline | others |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for number in range(turns):
        for workers, measured in found.items():
            it = measured[number]
            lines.append(
                f"| {workers} | {number + 1} | {it.rate:.1f} | {it.cost * 1000:.1f} | {it.store * 1000:.1f} "
                f"| {it.ours:.2f} | {it.others:.2f} |"
            )
    one, two = (_middle(measured) for measured in found.values())
    ratios = sorted(after.rate / before.rate for before, after in zip(found[1], found[2], strict=True))
    lines += [
        "",
        f"Two against one by the clock: {two.rate / one.rate:.2f} (turns: {', '.join(f'{it:.2f}' for it in ratios)}). "
        "By processor time, on processors of its own:",
        "",
        "| processors | one | two | ratio |",
        "|---:|---:|---:|---:|",
    ]
    for processors in (2, 4, 8):
        few, many = one.allowed(1, processors), two.allowed(2, processors)
        lines.append(f"| {processors} | {few:.1f} | {many:.1f} | {many / few:.2f} |")
    return "\n".join(lines)


def _middle(measured: Iterable[Turn]) -> Turn:
    """The median of each figure."""
    return Turn(*map(statistics.median, zip(*map(astuple, measured), strict=True)))


def coming_and_going(bench: Bench, rounds: int, rate: float, text: str, model: Model) -> tuple[str, bool]:
    """The table of what became of requests that flow at `rate` a second, and whether each has one result."""
    first, second = bench.workers
    first.start()
    bench.share(0, PARTITIONS)
    stop = threading.Event()
    failed: list[BaseException] = []
    events: Counter[str] = Counter()
    longest = 0.0

    def produce() -> None:
        try:
            while not stop.wait(1 / rate):
                bench.ask(text)
        except BaseException as error:
            failed.append(error)

    began = time.monotonic()
    producing = threading.Thread(target=produce)
    producing.start()
    try:
        for _ in range(rounds):
            for how in (signal.SIGTERM, signal.SIGKILL):
                second.start()
                bench.share(PARTITIONS // 2, PARTITIONS // 2)
                events["joined"] += 1
                stop.wait(3.0)
                took = second.end(how)
                events[how.name] += 1
                if how == signal.SIGTERM:
                    longest = max(longest, took)
                bench.share(0, PARTITIONS)
                stop.wait(2.0)
    finally:
        stop.set()
        producing.join()
    if failed:
        raise failed[0]
    bench.producer.flush(60)
    names = {f"r{number}" for number in range(bench.asked)}

    def ended() -> bool:
        if unread(bench.settings, ("store", "llm")):
            return False
        time.sleep(2)  # what one group has just ended may be another's to read
        return not unread(bench.settings, ("store", "llm"))

    until(ended, 300, "every group has read to its end")
    outcome = Outcome(len(names), seconds=time.monotonic() - began, kills=events, model=model.steps)
    count(bench.settings, names, outcome)
    rows = {
        "requests": outcome.asked,
        "final results": outcome.finals,
        "dead letters": outcome.dead,
        "lost": len(outcome.lost),
        "answered twice, differently": len(outcome.conflicting),
        "the same result twice": len(outcome.repeated),
        "failed": len(outcome.failed),
        "prompts by hop": ", ".join(f"{hop}: {number}" for hop, number in sorted(outcome.hops.items())),
        "calls of the model": sum(model.steps.values()),
        "the second worker": ", ".join(f"{name}: {number}" for name, number in events.items()),
        "longest SIGTERM to end, s": f"{longest:.1f}",
        "seconds": round(outcome.seconds),
    }
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])
    table += "".join(f"\nfailed: {line}" for line in outcome.failed[:20])
    return table, not outcome.fault and outcome.finals == outcome.asked and not outcome.failed


def main(arguments: Iterable[str] | None = None) -> int:
    """Prints the tables; 1 where a request has not exactly one final result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=120, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=200_000, help="of a request's log records")
    parser.add_argument("--model-ms", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=2.0, help="requests a second while the second comes and goes")
    options = parser.parse_args(None if arguments is None else list(arguments))
    folder = Path(tempfile.mkdtemp(prefix="hyve-workers-"))
    fine = True
    try:
        with stopping_on_signals(), ApacheKafka(folder / "kafka") as apache:
            text = payloads.logs(options.bytes)
            if options.turns:
                with ExitStack() as stack:
                    server = stack.enter_context(ScriptedLLM([Model(options.model_ms / 1000)], repeat_last=True))
                    bench = Bench(apache, "turns", folder, server.url, stack)
                    print(f"{throughput(bench, options.requests, options.turns, text)}\n", flush=True)
            if options.rounds:
                with ExitStack() as stack:
                    model = Model(options.model_ms / 1000, queries=3)
                    server = stack.enter_context(ScriptedLLM([model], repeat_last=True))
                    bench = Bench(apache, "flow", folder, server.url, stack)
                    table, fine = coming_and_going(bench, options.rounds, options.rate, text, model)
                    print(table)
    except HyveError as error:
        print(f"workers: {error}; logs: {folder}", file=sys.stderr)
        return 1
    print(f"\nlogs: {folder}", file=sys.stderr)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
