"""Nothing is lost: workers, store processes and the broker are killed while requests flow and the model fails.

`python -m tests.bench.faults [--requests 1000] [--kills 60] [--broker-restarts 2] [--seed 1]` starts Apache Kafka
(see `tests.integration.brokers`), one intake, two store and two LLM workers, and a model server that answers by chance
(429 with Retry-After, 500, a hang, a cut body, rubbish, or one of the three modes with words that differ each time).
Requests are sent evenly while the kills (SIGKILL, at random moments) go on: a fifth as alerts, so that the intake takes
part; one in fifty can't be decoded and must become a dead letter. When every consumer group has read to its end, all
topics are read and counted. Prints a Markdown table; 1 where a request has not exactly one final result or dead letter.

Two results of one request conflict where they differ in more than times (`finished`, `ms`): delivery is at least once,
so the same answer may stand there twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from hyve.errors import HyveError
from schemas import Alert, DiagnosisRequest, Payload
from streams.collect import request_id
from streams.supervisor import Supervisor, worker_command
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.processes import store_processes
from tests.scripted_llm import ScriptedLLM
from workers import kafka
from workers.broker import free_port
from workers.group import GroupReader
from workers.settings import Settings, load

WORKERS = {"intake": "intake", "store": "store", "store-2": "store", "llm": "llm", "llm-2": "llm"}
STORE_PROCESS = "store process"
TOPICS = ("prompts", "results", "deadletters")
READ = {"intake": ("raw", "alerts"), "store": ("requests", "queries"), "llm": ("prompts",)}
"""The topics of each consumer group."""

COUNT = "SELECT service, count(*) AS n FROM records GROUP BY service ORDER BY service"


@dataclass
class Outcome:
    """What came of a run; every list holds request ids (keys)."""

    asked: int
    seconds: float = 0.0
    finals: int = 0
    dead: int = 0
    lost: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    conflicting: list[str] = field(default_factory=list)
    hops: Counter[int] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    model: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    unread: int = 0

    @property
    def fault(self) -> str:
        """What was broken, or ""."""
        found = {
            "lost": self.lost,
            "result and dead letter": self.both,
            "two different results": self.conflicting,
            "prompts beyond hop 2": [str(hop) for hop in self.hops if hop > 2],
            "records that no group had read when time ran out": [str(self.unread)] if self.unread else [],
        }
        return "; ".join(f"{what}: {', '.join(names[:10])}" for what, names in found.items() if names)

    def table(self) -> str:
        """The figures in Markdown."""
        rows = {
            "requests": self.asked,
            "final results": self.finals,
            "dead letters": self.dead,
            "lost": len(self.lost),
            "conflicting": len(self.conflicting),
            "result and dead letter": len(self.both),
            "same result twice": len(self.repeated),
            "prompts by hop": _told(self.hops),
            "kills": f"{sum(self.kills.values())} ({_told(self.kills)})",
            "broker restarts": self.restarts,
            "model's steps": _told(self.model),
            "statuses": _told(self.statuses),
            "seconds": round(self.seconds),
        }
        return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def _told(counts: Counter[Any]) -> str:
    return ", ".join(f"{name}: {number}" for name, number in sorted(counts.items()))


class Model:
    """The model server's script: a step by chance, and none twice the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.steps: Counter[str] = Counter()

    def __call__(self, body: Any) -> dict[str, Any]:
        with self._lock:
            tools = bool(isinstance(body, dict) and body.get("tools"))
            names = ("direct", "template", "query", "429", "500", "hang", "cut", "rubbish")
            name = self._random.choices(names, (30, 10, 25, 8, 8, 3, 8, 8))[0]
            nonce = self._random.getrandbits(40)
            self.steps[name] += 1
        query = {"tool": "query_datastore", "arguments": {"sql": f"{COUNT} LIMIT {1 + nonce % 9}"}}
        fill = {"sql": COUNT, "mappings": [{"column": "n", "path": "bars.(_row_id).value"}]}
        answer = {"status": "conclusive", "summary": f"said {nonce}", "root_causes": [], "claims": []}
        steps: dict[str, dict[str, Any]] = {
            "direct": {"text": json.dumps(answer)},
            "template": {"tool": "fill_template", "arguments": {"template": {"t": nonce, "bars": []}, "fills": [fill]}},
            "query": query,  # at hop 2 no tools are offered: this one insists
            "429": {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {"message": "slow down"}}},
            "500": {"status": 500, "body": "boom"},
            "hang": {"hang": 30},
            "cut": {"cut": True},
            "rubbish": {"raw": "<html>\u0000"},
        }
        return steps[name if tools or name != "template" else "direct"]


class Run:
    """One run against the broker at `apache`; `logs` takes the workers' logs."""

    def __init__(self, apache: ApacheKafka, logs: Path, requests: int, kills: int, restarts: int, seed: int) -> None:
        self._apache = apache
        self._random = random.Random(seed)
        self._settings = load(bootstrap_servers=apache.address, topic_prefix=f"faults-{logs.name}"[:64])
        self._supervisor = Supervisor(logs, restarts=10_000)
        self._model = Model(seed)
        self._kills, self._restarts = kills, restarts
        self._seconds = max(10.0, 3.0 * kills + 30.0 * restarts)  # how long requests flow and processes die
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self.expected: set[str] = set()
        self.outcome = Outcome(requests)

    def __call__(self, limit: float) -> Outcome:
        """Runs to the end, `limit` seconds at most. Raises `HyveError` where a worker can't be kept running."""
        began = time.monotonic()
        kafka.create_topics(self._settings)
        with ScriptedLLM([self._model], repeat_last=True) as server, self._supervisor:
            for name, kind in WORKERS.items():
                self._supervisor.start(name, worker_command(kind), self._environment(server.url))
            threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._produce, self._kill)]
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join(limit)
                self._await_end(began + limit)
            finally:
                self._stop.set()
            if self._failures:
                raise self._failures[0]
            self.outcome.seconds = time.monotonic() - began
        self.outcome.model = self._model.steps
        count(self._settings, self.expected, self.outcome)
        return self.outcome

    def _environment(self, model: str) -> dict[str, str]:
        return {
            **TIMEOUTS,
            "HYVE_BOOTSTRAP_SERVERS": self._apache.address,
            "HYVE_TOPIC_PREFIX": self._settings.topic_prefix,
            "HYVE_CONNECT_TIMEOUT": "60",
            "HYVE_HTTP_PORT": str(free_port()),
            "HYVE_METRICS_PORT": "0",
            "HYVE_POOL_SIZE": "1",
            "HYVE_LLM_BASE_URL": model,
            "HYVE_LLM_MODEL": "scripted-1",
            "HYVE_LLM_TIMEOUT": "4",
            "HYVE_LLM_BREAKER_FAILURES": "1000",
        }

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failures.append(error)

    def _produce(self) -> None:
        """Sends the requests evenly; each counts from the moment that Kafka has it."""
        rows = "\n".join(json.dumps({"service": f"s{n % 4}", "n": n, "latency_ms": n % 50}) for n in range(150))
        pause = self._seconds / self.outcome.asked
        producer = KafkaProducer(
            bootstrap_servers=self._apache.address, acks="all", retries=1000, delivery_timeout_ms=300_000
        )
        for number in range(self.outcome.asked):
            if self._stop.wait(pause):
                break
            topic, key, value = self._request(number, rows)
            self.expected.add(key)
            producer.send(self._settings.topic(topic), value, key=key.encode() if topic == "requests" else None)
        producer.flush(300)
        producer.close()

    def _request(self, number: int, rows: str) -> tuple[str, str, bytes]:
        if number % 50 == 7:
            return "requests", f"broken-{number}", b'{"request_id": "broken", "question": 7'
        if number % 5 == 3:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            labels = {"alertname": "Slow", "service": f"s{number % 4}"}
            alert = Alert(fingerprint=f"f{number}", status="firing", labels=labels, starts_at=now)
            return "alerts", request_id(alert), alert.to_bytes()
        request = DiagnosisRequest(
            request_id=f"r-{number}",
            question="what is wrong?",
            payloads=(Payload(name="rows", text=rows),),
            created=int(time.time() * 1000),
        )
        return "requests", request.request_id, request.to_bytes()

    def _kill(self) -> None:
        """Ends processes at random moments, each kind as often as the others, and restarts the broker."""
        targets = [*WORKERS, STORE_PROCESS]
        blows: list[str] = [targets[number % len(targets)] for number in range(self._kills)]
        self._random.shuffle(blows)
        for number in range(self._restarts):
            blows.insert(self._random.randrange(len(blows) + 1), f"broker {number}")
        moments = sorted(self._random.uniform(0, self._seconds) for _ in blows)
        began = time.monotonic()
        for moment, blow in zip(moments, blows, strict=True):
            if self._stop.wait(max(0.0, began + moment - time.monotonic())):
                return
            if blow.startswith("broker"):
                self._apache.restart(kill=self._random.random() < 0.5, pause=self._random.uniform(0, 3))
                self.outcome.restarts += 1
                continue
            pids = self._store_processes() if blow == STORE_PROCESS else [self._supervisor.pid(blow)]
            for pid in pids[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.outcome.kills[WORKERS.get(blow, blow)] += 1

    def _store_processes(self) -> list[int]:
        """Children of the store workers that hold stores."""
        found = [child for name in ("store", "store-2") for child in store_processes(self._supervisor.pid(name))]
        self._random.shuffle(found)
        return found

    def _await_end(self, end: float) -> None:
        """Returns when every group has read its topics to the end, twice in a row, or when time runs out."""
        quiet = 0
        while quiet < 2 and time.monotonic() < end:
            self._supervisor.check()
            if self._failures:
                return
            try:
                self.outcome.unread = unread(self._settings)
            except HyveError:  # a broker that restarts answers later
                self.outcome.unread = 1
            quiet = 0 if self.outcome.unread else quiet + 1
            time.sleep(1.5)


def unread(settings: Settings, groups: Iterable[str] = tuple(READ)) -> int:
    """Records that the groups have not acknowledged yet. Raises `HyveError` where the broker doesn't answer."""
    lag = 0
    for group in groups:
        places = [(settings.topic(topic), number) for topic in READ[group] for number in range(6)]
        with closing(GroupReader(settings, f"{settings.topic_prefix}-{group}")) as reader:
            lag += sum(it.lag for it in reader.offsets(places).values())
    return lag


def count(settings: Settings, expected: Iterable[str], found: Outcome) -> None:
    """Reads all topics and notes in `found` what became of each expected request."""
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    letters: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for topic, key, value in _everything(settings):
        record = json.loads(value)
        if topic == "results":
            results[key].append(record)
        elif topic == "deadletters":
            letters[key].add((record["topic"], record["partition"], record["offset"], record["error"]))
        elif topic == "prompts":
            found.hops[record["hop"]] += 1
    for key in sorted(expected):
        answers = results.get(key, [])
        says = {json.dumps({k: v for k, v in each.items() if k not in ("finished", "ms")}) for each in answers}
        found.finals += bool(answers)
        found.dead += bool(letters.get(key)) and not answers
        if not answers and key not in letters:
            found.lost.append(key)
        if answers and key in letters:
            found.both.append(key)
        if len(answers) > 1:
            (found.repeated if len(says) == 1 else found.conflicting).append(key)
        for each in answers[:1]:
            found.statuses[f"{each['status']} by {each['mode']}"] += 1
            if each["status"] == "failed":
                found.failed.append(f"{key}: {each['summary']}")


def _everything(settings: Settings) -> Iterator[tuple[str, str, bytes]]:
    """Topic, key and value of every record of TOPICS; the end offsets of Apache Kafka can be relied on."""
    consumer = KafkaConsumer(bootstrap_servers=settings.servers, fetch_max_bytes=64 << 20)
    try:
        names = {settings.topic(topic): topic for topic in TOPICS}
        places = [TopicPartition(name, number) for name in names for number in range(6)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    yield names[record.topic], (record.key or b"").decode(), record.value
    finally:
        consumer.close()


def main(arguments: Iterable[str] | None = None) -> int:
    """Runs it and prints the table; 1 if something was lost, doubled or asked a third time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--broker-restarts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which the run counts as stuck")
    options = parser.parse_args(None if arguments is None else list(arguments))
    folder = Path(tempfile.mkdtemp(prefix="hyve-faults-"))
    try:
        with ApacheKafka(folder / "kafka") as apache:
            (logs := folder / f"seed{options.seed}").mkdir()
            run = Run(apache, logs, options.requests, options.kills, options.broker_restarts, options.seed)
            found = run(options.limit)
    except HyveError as error:
        print(f"faults: {error}; logs: {folder}", file=sys.stderr)
        return 1
    print(found.table())
    for line in found.failed[:20]:
        print(f"failed: {line}")
    print(f"\n{found.fault or 'every request has exactly one final result or dead letter'}; logs: {folder}")
    return 1 if found.fault else 0


if __name__ == "__main__":
    sys.exit(main())
