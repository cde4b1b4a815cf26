"""Intake of OTLP on one core, as Markdown: `python -m tests.bench.intake [--copies N] [--rounds N] [--worker]`.

The telemetry is that of generated incidents, in OTLP JSON and the same in protobuf, one export request a message. For
each, three loops take turns in one process, and the processor's time of the process counts, the best of N rounds:

- bare: aiokafka reads the messages and sends the same bytes to another topic;
- decode: `Intake.normalise` of the messages, without Kafka;
- intake: aiokafka reads the messages, `Intake.normalise` makes records of them, aiokafka sends those.

Records are the telemetry records that the messages hold (the notes of who calls whom not among them). The broker is the
embedded one, a process of its own that isn't counted. Producers pack with gzip, as the worker's does, and once more not
at all: that is most of what the bare loop does. `--worker` adds the whole worker process with Faust.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from google.protobuf import json_format
from kafka.admin import KafkaAdminClient, NewTopic
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from streams.app import MAX_FETCH, Incoming, partitioner
from streams.demo import scrape
from streams.incident import SCENARIOS, generate
from streams.intake import Intake
from streams.supervisor import Supervisor, worker_command
from tests.processes import cpu
from workers import kafka
from workers.broker import EmbeddedBroker, free_port
from workers.settings import EMBEDDED, load

_MESSAGES = {"resourceSpans": TracesData, "resourceLogs": LogsData, "resourceMetrics": MetricsData}
_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def main() -> int:
    """Prints the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("--copies", type=int, default=2, help="incidents whose telemetry is taken")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--worker", action="store_true", help="the worker process, too")
    given = options.parse_args()
    now = time.time_ns()
    exports = [
        payload
        for seed in range(given.copies)
        for payload in generate(SCENARIOS[seed % len(SCENARIOS)], seed, now).payloads
    ]
    formats = {
        "protobuf": [protobuf(export) for export in exports],
        "JSON": [json.dumps(export, separators=(",", ":")).encode() for export in exports],
    }
    print("| format | messages | bytes each | records | decode, records/s | gzip: intake | bare | share | ", end="")
    print("plain: intake | bare | share |", "worker |" if given.worker else "")
    print("|---|" + "---:|" * (10 + given.worker))
    with EmbeddedBroker() as broker:
        for name, bodies in formats.items():
            print(asyncio.run(row(broker.address, name, bodies, given.rounds)), end="")
            print(f" {of_worker(broker.address, name, bodies):,.0f} |" if given.worker else "", flush=True)
    return 0


def protobuf(export: dict[str, Any]) -> bytes:
    """An export request of OTLP JSON in protobuf."""
    ((field, _),) = export.items()
    message = _MESSAGES[field]()
    json_format.ParseDict(_packed(export), message)
    return bytes(message.SerializeToString())


def _packed(value: Any, key: str = "") -> Any:
    """OTLP's own JSON has ids in hex, protobuf's JSON mapping in base64."""
    if isinstance(value, dict):
        return {name: _packed(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_packed(inner) for inner in value]
    return base64.b64encode(bytes.fromhex(value)).decode() if key in _IDS else value


async def row(address: str, name: str, bodies: Sequence[bytes], rounds: int) -> str:
    """The cells of one format."""
    raw = f"raw-{name}"
    _topics(address, raw, f"{raw}-out")
    async with AIOKafkaProducer(bootstrap_servers=address, max_request_size=kafka.MAX_REQUEST) as producer:
        for body in bodies:
            await producer.send_and_wait(raw, body)
    count = sum(len(Intake().normalise(Incoming(raw, 0, 0, body))) for body in bodies)
    intake = Intake()
    for body in bodies:
        intake.normalise(Incoming(raw, 0, 0, body))
    records = sum(len(intake.normalise(Incoming(raw, 0, 0, body))) for body in bodies)  # calls are told once
    assert 0 < records <= count

    async def decode() -> None:
        taker = Intake()
        for body in bodies:
            taker.normalise(Incoming(raw, 0, 0, body))

    best: dict[str, float] = {}
    for _ in range(rounds):
        for label, work in {
            "decode": decode,
            "gzip intake": lambda: _loop(address, raw, len(bodies), "gzip", True),
            "gzip bare": lambda: _loop(address, raw, len(bodies), "gzip", False),
            "plain intake": lambda: _loop(address, raw, len(bodies), None, True),
            "plain bare": lambda: _loop(address, raw, len(bodies), None, False),
        }.items():
            best[label] = min(best.get(label, 1e9), await _seconds(work))
    cells = [name, len(bodies), f"{sum(map(len, bodies)) / len(bodies):,.0f}", f"{records:,}"]
    cells.append(f"{records / best['decode']:,.0f}")
    for codec in ("gzip", "plain"):
        ours, bare = (records / best[f"{codec} {which}"] for which in ("intake", "bare"))
        cells += [f"{ours:,.0f}", f"{bare:,.0f}", f"{ours / bare:.0%}"]
    return f"| {' | '.join(map(str, cells))} |"


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    began = time.process_time()
    await work()
    return time.process_time() - began


async def _loop(address: str, raw: str, messages: int, codec: str | None, decode: bool) -> None:
    """Reads all messages of a topic and sends them, or the records that they hold, to another."""
    out, intake = f"{raw}-out", Intake()
    part = TopicPartition(raw, 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        fetch_max_bytes=MAX_FETCH,
        max_partition_fetch_bytes=MAX_FETCH,
        enable_auto_commit=False,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        compression_type=codec,
        linger_ms=2,
        max_batch_size=256 << 10,
        max_request_size=kafka.MAX_REQUEST,
        partitioner=partitioner,
    )
    async with consumer, producer:
        consumer.assign([part])
        await consumer.seek_to_beginning(part)
        taken = 0
        while taken < messages:
            for batch in (await consumer.getmany(timeout_ms=1000, max_records=64)).values():
                waiting = []
                for message in batch:
                    taken += 1
                    if not decode:
                        waiting.append(await producer.send(out, message.value))
                        continue
                    record = Incoming(raw, 0, message.offset, message.value, message.key, message.timestamp)
                    for item in intake.normalise(record):
                        headers = list(item.headers.items())
                        waiting.append(
                            await producer.send(out, item.value, item.key, timestamp_ms=item.timestamp, headers=headers)
                        )
                await asyncio.gather(*waiting)


def of_worker(address: str, name: str, bodies: Sequence[bytes]) -> float:
    """Records a second of its processor's time that a worker process takes, from the first message to the last."""
    prefix, port = f"bench-{name}", free_port()
    env = {
        "HYVE_BOOTSTRAP_SERVERS": address,
        "HYVE_TOPIC_PREFIX": prefix,
        "HYVE_METRICS_PORT": str(port),
        "HYVE_HTTP_PORT": str(free_port()),
        **EMBEDDED,
    }
    settings = load(bootstrap_servers=address, topic_prefix=prefix, replication=1)
    kafka.create_topics(settings)

    def taken(topic: str, what: str = "in") -> float:
        return scrape(port).get(f'hyve_records_{what}_total{{topic="{topic}"}}', 0.0)

    async def send(some: Sequence[bytes]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=address, max_request_size=kafka.MAX_REQUEST) as producer:
            await asyncio.gather(*[await producer.send(settings.raw[0], body) for body in some])

    def wait(count: float) -> None:
        while taken(settings.raw[0]) < count:
            time.sleep(0.1)

    with tempfile.TemporaryDirectory() as logs, Supervisor(Path(logs)) as supervisor:
        supervisor.start("intake", worker_command("intake"), env)
        asyncio.run(send(bodies[:1]))  # it has joined and read everything when this one is done
        wait(1)
        pid = supervisor.pid("intake")
        before, records = cpu(pid), taken(settings.topic("telemetry"), "out")
        asyncio.run(send(bodies))
        wait(1 + len(bodies))
        return (taken(settings.topic("telemetry"), "out") - records) / (cpu(pid) - before)


def _topics(address: str, *names: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(name, 1, 1) for name in names])
    admin.close()


if __name__ == "__main__":
    sys.exit(main())
