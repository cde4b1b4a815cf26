"""What all workers share: the Faust application, and the loop that reads a batch, works on it, delivers,
acknowledges.

Rules (each one answers a trap of Faust that was measured):
- One coroutine an agent; a batch is worked on with `gather`. More throughput comes from partitions and
  workers.
- Topics are raw bytes. Decoding belongs to `process`, where a failure is a dead letter and not the end of
  the stream.
- `process` returns what to send; it is delivered (`send` gives a second awaitable) before the record is
  acknowledged.
- No error ends an agent: whatever `process` raises turns into a dead letter with the original bytes, and
  a delivery that fails is tried again until it succeeds.
- `take_events` acknowledges its batch even when the agent is cancelled in the middle of it. Therefore
  each message gets a second reference, which only a finished batch gives back: a cancelled one is read
  again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import faust
from aiokafka.errors import MessageSizeTooLargeError

from schemas import DeadLetter, Record
from streams import metrics
from workers.settings import Settings

log = logging.getLogger("hyve")

WITHIN = 0.05
MAX_FETCH = 16 << 20
MAX_REQUEST = 100 << 20


@dataclass(frozen=True)
class Incoming:
    """One record as it came. `timestamp` is epoch milliseconds."""

    topic: str
    partition: int
    offset: int
    value: bytes
    key: bytes | None = None
    timestamp: int = 0


@dataclass(frozen=True)
class Outgoing:
    """One record to send; `topic` is the short name of the topic table ("requests")."""

    topic: str
    key: bytes | None
    value: bytes
    partition: int | None = None
    timestamp: int | None = None
    headers: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: str, key: str, record: Record, partition: int | None = None) -> Outgoing:
        """`record` under `key`."""
        return cls(topic, key.encode("utf-8", "replace"), record.to_bytes(), partition)


class Poison(Exception):
    """This record can never be used; its text says why. It goes to the dead letters as it is."""

    def __init__(self, text: str, attempts: int = 1) -> None:
        super().__init__(text)
        self.attempts = attempts


class Undeliverable(Exception):
    """Kafka will never take this record (it is too large for its topic)."""


Process = Callable[[Incoming], Awaitable[Sequence[Outgoing]]]
Send = Callable[[Iterable[Outgoing]], Awaitable[None]]


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def dead_letter(record: Incoming, stage: str, error: str, attempts: int = 1) -> Outgoing:
    """The dead letter of `record`, with its bytes as they came."""
    letter = DeadLetter(
        value=base64.b64encode(record.value).decode("ascii"),
        key=None if record.key is None else base64.b64encode(record.key).decode("ascii"),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        stage=stage,
        error=error[:2000],
        attempts=attempts,
        failed=now_ms(),
    )
    metrics.DEAD_LETTERS.labels(stage).inc()
    return Outgoing("deadletters", record.key, letter.to_bytes())


async def attempt(process: Process, record: Incoming, stage: str) -> Sequence[Outgoing]:
    """`process(record)`; whatever it raises, but for cancellation, comes back as a dead letter."""
    try:
        with metrics.STAGE_SECONDS.labels(stage).time():
            return await process(record)
    except Poison as error:
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        log.warning("%s: dead letter from %s: %s", stage, where, error)
        return [dead_letter(record, stage, str(error), error.attempts)]
    except Exception as error:
        log.exception("%s: %s[%d]@%d failed", stage, record.topic, record.partition, record.offset)
        return [dead_letter(record, stage, f"{type(error).__name__}: {error}")]


def make_app(settings: Settings, kind: str, *, buffer: int, web: bool = False) -> faust.App:
    """The Faust application of one kind of worker; its consumer group is `<prefix>-<kind>`.

    `buffer` bounds the records that are fetched ahead; below its agents' largest batch it slows them.
    """
    return faust.App(
        f"{settings.topic_prefix}-{kind}",
        broker=[f"kafka://{server}" for server in settings.servers],
        autodiscover=False,
        datadir=tempfile.gettempdir(),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        topic_allow_declare=False,
        topic_disable_leader=True,
        broker_session_timeout=settings.session_timeout,
        broker_heartbeat_interval=settings.heartbeat_interval,
        broker_rebalance_timeout=settings.rebalance_timeout,
        broker_request_timeout=max(90.0, settings.session_timeout + 10),
        # Faust stops polling while a batch is worked on; the group must wait for the longest one.
        broker_max_poll_interval=max(1000.0, 2 * settings.deadline, settings.batch * settings.prepare_timeout),
        broker_commit_interval=1.0,
        broker_max_poll_records=buffer,
        stream_buffer_maxsize=buffer,
        consumer_max_fetch_size=MAX_FETCH,
        consumer_auto_offset_reset="earliest",
        producer_max_request_size=MAX_REQUEST,
        producer_max_batch_size=256 << 10,
        producer_compression_type="gzip",
        producer_linger=0.002,
        producer_acks=-1,
        worker_redirect_stdouts=False,
        web_enabled=web,
        web_bind=settings.http_host,
        web_port=settings.http_port,
        web_application_options={"client_max_size": settings.webhook_bytes} if web else None,
    )


def sender(app: faust.App, settings: Settings) -> Send:
    """A coroutine function that returns once every record is delivered, however often it has to try."""
    topics = {name: app.topic(settings.topic(name), value_type=bytes) for name in settings.topics()}

    async def deliver(records: Sequence[Outgoing]) -> list[Outgoing]:
        """Those that were not delivered."""
        waiting: list[Awaitable[Any]] = []
        for record in records:
            waiting.append(
                await topics[record.topic].send(
                    key=record.key,
                    value=record.value,
                    partition=record.partition,
                    timestamp=None if record.timestamp is None else record.timestamp / 1000,
                    headers=record.headers or None,
                )
            )
        done = await asyncio.gather(*waiting, return_exceptions=True)
        failed: list[Outgoing] = []
        for record, outcome in zip(records, done, strict=True):
            if isinstance(outcome, MessageSizeTooLargeError):
                raise outcome
            if isinstance(outcome, BaseException):
                if not failed:
                    log.warning("not delivered to %s, trying again: %r", record.topic, outcome)
                failed.append(record)
            else:
                metrics.RECORDS_OUT.labels(settings.topic(record.topic)).inc()
        return failed

    async def send(records: Iterable[Outgoing]) -> None:
        left = list(records)
        pause = 0.1
        while left:
            try:
                left = await deliver(left)
            except Exception as error:
                if isinstance(error, MessageSizeTooLargeError) or isinstance(error.__cause__, MessageSizeTooLargeError):
                    largest = max(left, key=lambda record: len(record.value))
                    name = settings.topic(largest.topic)
                    raise Undeliverable(f"{len(largest.value)} bytes are too many for {name}") from None
                log.warning("%d records not sent, trying again: %r", len(left), error)
            if left:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 10.0)

    return send


def serve(
    app: faust.App,
    settings: Settings,
    topics: Sequence[str],
    stage: str,
    process: Process,
    send: Send,
    batch: int,
) -> None:
    """Registers the agent that runs `process` over the records of `topics` (full names)."""

    async def one(event: Any) -> None:
        message = event.message
        record = Incoming(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            value=message.value or b"",
            key=message.key,
            timestamp=int((message.timestamp or 0) * 1000),
        )
        try:
            await send(await attempt(process, record, stage))
        except Undeliverable as error:
            log.warning("%s: %s[%d]@%d: %s", stage, record.topic, record.partition, record.offset, error)
            await send([dead_letter(record, stage, str(error))])
        metrics.RECORDS_IN.labels(record.topic).inc()

    async def agent(stream: Any) -> None:
        async for events in stream.take_events(batch, within=WITHIN):
            for event in events:
                event.message.incref()
            await asyncio.gather(*(one(event) for event in events))
            for event in events:
                event.ack()

    app.agent(app.topic(*topics, value_type=bytes), name=f"{app.conf.id}.{stage}")(agent)


def run(app: faust.App, settings: Settings) -> None:
    """Runs the worker until SIGTERM or SIGINT; the batch in hand is finished first. Does not return."""
    worker = faust.Worker(
        app, loglevel=settings.log_level, redirect_stdouts=False, loop=asyncio.new_event_loop(), quiet=True
    )
    worker.spinner = None
    worker.execute_from_commandline()
