"""What all workers share: the Faust application, and the loop that reads, works, delivers, acknowledges.

Rules (each one answers a trap of Faust that was measured):
- One coroutine an agent reads; up to a limit of records are worked on side by side, each in a task, so that a slow one
  holds up no other. They are acknowledged in the order of their partition (see `streams.ledger`). More throughput
  comes from partitions and workers.
- Topics are raw bytes. Decoding belongs to `process`, where a failure is a dead letter and not the end of
  the stream.
- `process` returns what to send; it is delivered (`send` gives a second awaitable) before the record is
  acknowledged.
- No error ends an agent: whatever `process` raises turns into a dead letter with the original bytes, and
  a delivery that fails is tried again until it succeeds.
- A stream acknowledges a record when the next one is asked for, and when the agent is cancelled. Therefore each
  message gets a second reference, which only finished work gives back: what was cancelled is read again.
- What Kafka knows of topics is asked for every few seconds: a broker that has just started may leave topics out, and a
  group that shares its partitions out by such an answer reads nothing until the next one.
"""

from __future__ import annotations

import asyncio
import base64
import faulthandler
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import faust
from aiokafka.errors import InvalidTimestampError, KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from schemas import DeadLetter, Position, Record
from streams import logs, metrics
from streams.commits import App, Uncounted
from streams.ledger import Ledger
from workers.kafka import ATTEMPTS, MAX_REQUEST, partition_of
from workers.security import tls
from workers.settings import Settings

log = logging.getLogger("hyve")

WITHIN = 0.05
METADATA_MS = 5000
AHEAD = 16
"""Most records that wait for one before them, as multiples of those that are worked on at a time."""

MAX_FETCH = 16 << 20
BATCH = 256 << 10
"""Bytes of the records that go to Kafka as one batch; a larger one has its own."""

_SHORT_KEY = 256
"""Bytes of a key whose place is remembered."""


@dataclass(frozen=True)
class Incoming:
    """One record as it came. `timestamp` is epoch milliseconds."""

    topic: str
    partition: int
    offset: int
    value: bytes
    key: bytes | None = None
    timestamp: int = 0
    headers: dict[str, bytes] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @classmethod
    def of(cls, message: Any) -> Incoming:
        """The record that Faust's `message` is."""
        return cls(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            value=message.value or b"",
            key=message.key,
            timestamp=int((message.timestamp or 0) * 1000),
            headers={name: value or b"" for name, value in dict(message.headers or ()).items()},
        )


@dataclass(slots=True)
class Outgoing:
    """One record to send; `topic` is the short name of the topic table ("requests"). Nobody changes one: that is not
    enforced, as a frozen one takes four times as long to make, and a raw record gives many."""

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


def check_place(position: Position, topic: str, partition: int | None = None) -> None:
    """`Poison` where no request can stand at a position, which would be asked for again and again: requests stand on
    `topic`, and that one in `partition` where it is known."""
    place = f"its request can't stand at {position.topic[:200]}[{position.partition}]@{position.offset}"
    if position.topic != topic:
        raise Poison(f"{place}: requests stand on {topic}")
    if position.partition < 0 or position.offset < 0:
        raise Poison(f"{place}: partitions and offsets begin at 0")
    if partition not in (None, position.partition):
        raise Poison(f"{place}: it would be in partition {partition}")


class Undeliverable(Exception):
    """Kafka will never take this record (it is too large for its topic)."""


Process = Callable[[Incoming], Awaitable[Sequence[Outgoing]]]
Send = Callable[[Iterable[Outgoing]], Awaitable[None]]


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def dead_letter(record: Incoming, stage: str, error: str, attempts: int = 1) -> Outgoing:
    """The dead letter of `record`, with its bytes as they came. What it failed before it was replayed counts."""
    before = record.headers.get(ATTEMPTS, b"")
    letter = DeadLetter(
        value=base64.b64encode(record.value).decode("ascii"),
        key=None if record.key is None else base64.b64encode(record.key).decode("ascii"),
        headers={name: base64.b64encode(value).decode("ascii") for name, value in record.headers.items()},
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        stage=stage,
        error=error[:2000],
        attempts=attempts + (int(before) if before.isdigit() and len(before) < 10 else 0),
        failed=now_ms(),
    )
    metrics.DEAD_LETTERS.labels(stage).inc()
    return Outgoing("deadletters", record.key, letter.to_bytes())


async def attempt(process: Process, record: Incoming, stage: str) -> Sequence[Outgoing]:
    """`process(record)`; whatever it raises, but for cancellation, comes back as a dead letter."""
    began = time.perf_counter()
    try:
        return await process(record)
    except Exception as error:
        return [buried(record, stage, error)]
    finally:
        metrics.seconds(stage).observe(time.perf_counter() - began)


def buried(record: Incoming, stage: str, error: Exception) -> Outgoing:
    """The dead letter of a record that `error` made useless, told in the log."""
    if isinstance(error, Poison):
        log.warning("%s: dead letter from %s: %s", stage, record.place, error)
        return dead_letter(record, stage, str(error), error.attempts)
    log.error("%s: %s failed", stage, record.place, exc_info=error)
    return dead_letter(record, stage, f"{type(error).__name__}: {error}")


async def deliver_or_bury(send: Send, out: Iterable[Outgoing], record: Incoming, stage: str) -> None:
    """Sends what `record` became. What Kafka will never take is a dead letter, without the bytes if need be."""
    try:
        await send(out)
    except Undeliverable as error:
        log.warning("%s: %s: %s", stage, record.place, error)
        try:
            await send([dead_letter(record, stage, str(error))])
        except Undeliverable:
            without = f"{error}; its own {len(record.value)} bytes are too many for a dead letter"
            await send([dead_letter(replace(record, value=b""), stage, without)])


def make_app(
    settings: Settings, kind: str, *, buffer: int, last: Sequence[str] = (), web: bool = False, linger: float = 0.0
) -> App:
    """The Faust application of one kind of worker; its consumer group is `<prefix>-<kind>`.

    `buffer` bounds the records that are fetched ahead; below its agents' limits it slows them. Topics that come `last`
    (full names) wait for the others: see `streams.commits`. A record waits `linger` seconds for others to go with it:
    what comes while a request is under way goes together anyway, so it pays only where one record becomes many.
    """
    ours = frozenset(settings.topic(name) for name in settings.topics()) - set(settings.raw)
    return App(
        f"{settings.topic_prefix}-{kind}",
        without_holes=ours,
        last=frozenset(last),
        broker=[f"kafka://{server}" for server in settings.servers],
        broker_credentials=_credentials(settings),
        autodiscover=False,
        Monitor=Uncounted,
        datadir=tempfile.gettempdir(),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        topic_allow_declare=False,
        topic_disable_leader=True,
        broker_session_timeout=settings.session_timeout,
        broker_heartbeat_interval=settings.heartbeat_interval,
        broker_rebalance_timeout=settings.rebalance_limit,
        broker_request_timeout=max(90.0, settings.session_timeout + 10),
        # Faust stops polling while its buffer is full; the group must wait for the longest work.
        broker_max_poll_interval=settings.record_limit,
        broker_commit_interval=1.0,
        broker_max_poll_records=buffer,
        stream_buffer_maxsize=2 * buffer,  # where one buffer waits, there is room for a whole poll
        consumer_max_fetch_size=MAX_FETCH,
        consumer_metadata_max_age_ms=METADATA_MS,
        producer_metadata_max_age_ms=METADATA_MS,
        consumer_auto_offset_reset="earliest",
        producer_max_request_size=MAX_REQUEST,
        producer_max_batch_size=BATCH,
        producer_compression_type="lz4",
        producer_linger=linger,
        producer_acks=-1,
        producer_partitioner=partitioner,
        worker_redirect_stdouts=False,
        **_web(settings) if web else {"web_enabled": False},
    )


def _web(settings: Settings) -> dict[str, Any]:
    return {
        "web_enabled": True,
        "web_bind": settings.http_host,
        "web_port": settings.http_port,
        "web_application_options": {"client_max_size": settings.webhook_bytes},
    }


def _credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    context = tls(settings)
    if settings.security_protocol.startswith("SASL"):
        password = settings.sasl_password.get_secret_value()
        return faust.SASLCredentials(
            username=settings.sasl_username, password=password, mechanism=settings.sasl_mechanism, ssl_context=context
        )
    return None if context is None else faust.SSLCredentials(context)


def partitioner(key: bytes | None, every: Sequence[int], available: Sequence[int]) -> int:
    """As aiokafka's own, which takes longer for a key than all the rest of sending: keys come again and again."""
    if key is None:
        return random.choice(available or every)
    return every[(_place if len(key) <= _SHORT_KEY else partition_of)(key, len(every))]


_place = lru_cache(maxsize=8192)(partition_of)


def sender(app: faust.App, settings: Settings) -> Send:
    """A coroutine function that returns once every record is delivered, however often it has to try."""
    topics = {name: settings.topic(name) for name in settings.topics()}

    async def deliver(records: Sequence[Outgoing]) -> list[Outgoing]:
        """Those that were not delivered."""
        # Straight to the producer: `Topic.send` takes as long again.
        producer = await app.maybe_start_producer()
        waiting: list[Awaitable[Any]] = []
        for record in records:
            waiting.append(
                await producer.send(
                    topics[record.topic],
                    record.key,
                    record.value,
                    record.partition,
                    None if record.timestamp is None else record.timestamp / 1000,
                    record.headers or None,
                )
            )
        done: list[Any] = []
        for delivery in waiting:  # `gather` makes more of the few that a record has than they are
            try:
                done.append(await delivery)
            except Exception as error:
                done.append(error)
        failed: list[Outgoing] = []
        delivered: Counter[str] = Counter()
        for record, outcome in zip(records, done, strict=True):
            if isinstance(outcome, MessageSizeTooLargeError | RecordListTooLargeError):
                raise outcome
            if isinstance(outcome, Exception):
                if not failed:
                    log.warning("not delivered to %s, trying again: %r", record.topic, outcome)
                if isinstance(outcome, InvalidTimestampError) and len(records) == 1:
                    # The broker's bounds on time are its own; the event's time stands in the record as well.
                    record = replace(record, timestamp=None)
                failed.append(record)
            else:
                delivered[record.topic] += 1
        for name, count in delivered.items():
            metrics.out(topics[name]).inc(count)
        if any(isinstance(outcome, InvalidTimestampError) for outcome in done) and len(records) > 1:
            # One such record takes the others of its batch with it: each for itself.
            return [left for record in failed for left in await deliver([record])]
        return failed

    async def send(records: Iterable[Outgoing]) -> None:
        left = list(records)
        pause = 0.1
        while left:
            try:
                left = await deliver(left)
            except Exception as error:
                cause = error if isinstance(error, KafkaError) else error.__cause__
                if isinstance(cause, MessageSizeTooLargeError | RecordListTooLargeError):
                    largest = max(left, key=lambda record: len(record.value))
                    raise Undeliverable(
                        f"{len(largest.value)} bytes are too many for {topics[largest.topic]}"
                    ) from None
                named = next((record for record in left if record.partition is not None), None)
                if isinstance(error, AssertionError) and named is not None and pause > METADATA_MS / 1000:
                    # The client asserts that there is such a partition, by what it knew some seconds ago.
                    raise Undeliverable(f"{topics[named.topic]} has no partition {named.partition}") from None
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
    limit: int,
) -> None:
    """Registers the agent that runs `process` over the records of `topics` (full names), `limit` at a time."""

    async def one(event: Any) -> None:
        record = Incoming.of(event.message)
        await deliver_or_bury(send, await attempt(process, record, stage), record, stage)
        metrics.taken(record.topic).inc()

    async def agent(stream: Any) -> None:
        ledger = Ledger()
        running: set[asyncio.Task[None]] = set()
        freed = asyncio.Event()

        async def work(event: Any) -> None:
            await one(event)
            ledger.done(event)

        def ended(task: asyncio.Task[None]) -> None:
            running.discard(task)
            freed.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("%s: a record was left unacknowledged", stage, exc_info=error)

        try:
            async for event in stream.events():
                event.message.incref()
                if ledger.take(event):
                    running.add(task := asyncio.create_task(work(event)))
                    task.add_done_callback(ended)
                while len(running) >= limit or (running and len(ledger) >= AHEAD * limit):
                    freed.clear()
                    await freed.wait()
        finally:
            # Faust has waited for what it knows to be in hand; what is cut off here is read again.
            for task in tuple(running):
                task.cancel()

    app.agent(app.topic(*topics, value_type=bytes), name=f"{app.conf.id}.{stage}")(agent)


class _Worker(faust.Worker):
    """Tells on SIGUSR1 and SIGUSR2 where each thread and task stands, and goes on. Faust's writes the values of their
    variables too, among them keys and data, and starts on the latter a debugger that waits for somebody to type."""

    def _on_sigusr1(self) -> None:
        faulthandler.dump_traceback(sys.stderr)
        for task in asyncio.all_tasks():
            task.print_stack(file=sys.stderr)

    _on_sigusr2 = _on_sigusr1

    def _schedule_shutdown(self, signal: signal.Signals) -> None:
        if not self._signal_stop_time:
            log.info("worker: told to stop by %s: what is in hand is finished first", signal.name)
        super()._schedule_shutdown(signal)


def run(app: faust.App, settings: Settings, in_hand: Callable[[], int] = lambda: 0) -> None:
    """Runs the worker until SIGTERM or SIGINT; the batch in hand is finished first. Does not return. `in_hand` counts
    the records that are worked on."""
    worker = _Worker(
        app,
        loglevel=settings.log_level,
        logging_config=logs.config(settings.log_level),
        redirect_stdouts=False,
        loop=asyncio.new_event_loop(),
        quiet=True,
    )
    worker.spinner = None
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        if not end.code:  # else the last line is what it died of
            left = in_hand()
            log.info("worker: ended, %s", f"{left} records in hand are read again" if left else "nothing in hand")
        raise
