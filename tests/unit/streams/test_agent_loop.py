"""What every agent relies on: no error gets out, and nothing counts as sent before Kafka has it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaConnectionError, MessageSizeTooLargeError
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from schemas import DeadLetter
from streams import app as app_module
from streams.app import METADATA_MS, Incoming, Outgoing, Poison, Undeliverable, attempt, partitioner, sender, serve
from streams.ledger import Ledger
from tests.unit.streams.until import until
from workers import kafka
from workers.settings import load

RECORD = Incoming("hyve.raw", 2, 9, b"\xff\x00raw", b"key", 123)


def letter(out: Sequence[Outgoing]) -> DeadLetter:
    (item,) = out
    assert (item.topic, item.key) == ("deadletters", b"key")
    return DeadLetter.from_bytes(item.value)


async def test_poison_becomes_a_dead_letter_with_the_bytes_as_they_came() -> None:
    async def process(record: Incoming) -> Sequence[Outgoing]:
        raise Poison("not UTF-8")

    dead = letter(await attempt(process, RECORD, "intake"))
    assert base64.b64decode(dead.value) == RECORD.value
    assert base64.b64decode(dead.key or "") == b"key"
    assert (dead.topic, dead.partition, dead.offset, dead.timestamp) == ("hyve.raw", 2, 9, 123)
    assert (dead.stage, dead.error, dead.attempts) == ("intake", "not UTF-8", 1)


async def test_a_bug_becomes_a_dead_letter_too() -> None:
    async def process(record: Incoming) -> Sequence[Outgoing]:
        raise KeyError("row")

    assert letter(await attempt(process, RECORD, "intake")).error == "KeyError: 'row'"


async def test_cancellation_is_not_swallowed() -> None:
    async def process(record: Incoming) -> Sequence[Outgoing]:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await attempt(process, RECORD, "intake")


class Producer:
    """A producer whose sends end as `script` says: None is delivered, an exception comes from the delivery."""

    def __init__(self, script: list[Exception | None]) -> None:
        self.script = script
        self.delivered: list[bytes] = []
        self.tries = 0

    async def send(
        self, topic: str, key: bytes, value: bytes, partition: int | None, timestamp: float | None, headers: Any
    ) -> Any:
        self.tries += 1
        outcome = self.script.pop(0) if self.script else None

        async def delivery() -> None:
            if outcome is not None:
                raise outcome
            self.delivered.append(value)

        return asyncio.ensure_future(delivery())


class App:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    async def maybe_start_producer(self) -> Producer:
        return self._producer

    def topic(self, *names: str, value_type: type) -> tuple[str, ...]:
        return names


async def test_what_was_not_delivered_is_sent_again_and_nothing_else() -> None:
    producer = Producer([None, KafkaConnectionError("gone"), None])
    await sender(App(producer), load())([Outgoing("results", b"k", value) for value in (b"1", b"2", b"3")])
    assert sorted(producer.delivered) == [b"1", b"2", b"3"]
    assert producer.tries == 4


@given(st.none() | st.binary(max_size=300), st.lists(st.integers(0, 99), min_size=1, max_size=9, unique=True))
def test_a_key_goes_where_other_producers_send_it(key: bytes | None, every: list[int]) -> None:
    """Invariant: what has one key stands in one partition, whoever wrote it."""
    picked = partitioner(key, every, every[:1])
    assert picked == (every[0] if key is None else DefaultPartitioner()(key, every, every[:1]))


async def test_a_time_that_kafka_refuses_costs_neither_the_record_nor_its_neighbours_their_times() -> None:
    """A broker refuses a whole batch for one timestamp: its bounds, an hour ahead by default, are its own setting."""
    times: list[tuple[bytes, float | None]] = []

    class Strict(Producer):
        async def send(
            self, topic: str, key: bytes, value: bytes, partition: int | None, timestamp: float | None, headers: Any
        ) -> Any:
            in_batch = self.tries < 3  # the three that are sent together
            refused = in_batch or (value == b"late" and timestamp is not None)
            self.script = [InvalidTimestampError("bounds") if refused else None]
            if not refused:
                times.append((value, timestamp))
            return await super().send(topic, key, value, partition, timestamp, headers)

    producer = Strict([])
    records = [Outgoing("telemetry", b"k", value, timestamp=5000) for value in (b"1", b"late", b"3")]
    await sender(App(producer), load())(records)
    assert sorted(times) == [(b"1", 5.0), (b"3", 5.0), (b"late", None)]


async def test_a_record_that_is_too_large_for_a_dead_letter_too_leaves_one_without_its_bytes() -> None:
    sent: list[bytes] = []
    events = [Event(0)]

    async def process(record: Incoming) -> Sequence[Outgoing]:
        return [Outgoing("results", b"k", b"large")]

    async def send(records: Any) -> None:
        for record in records:
            if record.topic == "results" or json.loads(record.value)["value"]:
                raise Undeliverable("5 bytes are too many for hyve.results")
            sent.append(record.value)

    registry = Registry(Producer([]))
    serve(registry, load(), ["hyve.raw"], "x", process, send, 4)
    running = asyncio.create_task(registry.function(Stream(events)))
    await until(lambda: events[0].message.refcount == 0)
    dead = DeadLetter.from_bytes(sent[0])
    assert (dead.topic, dead.partition, dead.offset) == ("hyve.raw", 0, 0)
    assert "its own 1 bytes are too many for a dead letter" in dead.error
    await ended(running)


async def test_a_record_that_is_too_large_is_not_tried_for_ever() -> None:
    producer = Producer([MessageSizeTooLargeError("big")])
    with pytest.raises(Undeliverable, match=r"3 bytes are too many for hyve\.results"):
        await sender(App(producer), load())([Outgoing("results", b"k", b"big")])


async def test_a_partition_that_there_is_not_is_looked_for_until_what_is_known_of_topics_was_asked_for_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asserting(Producer):
        async def send(self, *given: Any) -> Any:
            self.tries += 1
            raise AssertionError("Unrecognized partition")

    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("streams.app.asyncio.sleep", sleep)
    with pytest.raises(Undeliverable, match=r"hyve\.queries has no partition 77"):
        await sender(App(Asserting([])), load())([Outgoing("queries", b"k", b"v", partition=77)])
    assert sum(pauses) > METADATA_MS / 1000


class Message:
    """A Faust message as far as references go."""

    topic, partition, key, value, timestamp, headers = "hyve.raw", 0, b"k", b"v", 1.0, None

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.refcount = 1

    def incref(self) -> None:
        self.refcount += 1


class Event:
    def __init__(self, offset: int) -> None:
        self.message = Message(offset)

    def ack(self) -> None:
        self.message.refcount -= 1


class Stream:
    """Like Faust's it acknowledges each event when the next is asked for or the agent is cancelled; it never ends."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    async def events(self) -> Any:
        for event in self._events:
            try:
                yield event
            finally:
                event.ack()
        await asyncio.sleep(60)


class Registry(App):
    class conf:
        id = "hyve-x"

    def agent(self, channel: Any, name: str) -> Any:
        def register(function: Any) -> None:
            self.function = function

        return register


def _agent(process: Any, sent: list[bytes], limit: int = 4) -> Any:
    async def send(records: Any) -> None:
        sent.extend(record.value for record in records)

    app = Registry(Producer([]))
    serve(app, load(), ["hyve.raw"], "x", process, send, limit)
    return app.function


async def ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)


async def test_finished_records_are_acknowledged_after_they_were_sent() -> None:
    sent: list[bytes] = []
    events = [Event(0), Event(1)]

    async def process(record: Incoming) -> Sequence[Outgoing]:
        return [Outgoing("results", b"k", str(record.offset).encode())]

    running = asyncio.create_task(_agent(process, sent)(Stream(events)))
    await until(lambda: [event.message.refcount for event in events] == [0, 0])
    assert sent == [b"0", b"1"]
    await ended(running)


async def test_a_cancelled_record_is_not_acknowledged() -> None:
    events = [Event(0)]
    started = asyncio.Event()

    async def process(record: Incoming) -> Sequence[Outgoing]:
        started.set()
        await asyncio.sleep(60)
        return []

    running = asyncio.create_task(_agent(process, [])(Stream(events)))
    await started.wait()
    await ended(running)
    assert events[0].message.refcount >= 1, "Faust would commit past a record that was not worked on"


async def test_a_slow_record_holds_up_no_other_and_is_acknowledged_first() -> None:
    sent: list[bytes] = []
    slow = asyncio.Event()
    events = [Event(offset) for offset in range(20)]

    async def process(record: Incoming) -> Sequence[Outgoing]:
        if record.offset == 0:
            await slow.wait()
        return [Outgoing("results", b"k", str(record.offset).encode())]

    running = asyncio.create_task(_agent(process, sent, limit=3)(Stream(events)))
    await until(lambda: len(sent) == 19)
    assert [event.message.refcount for event in events[:19]] == [1] * 19, "Kafka would skip offset 0 after a crash"
    slow.set()
    await until(lambda: not any(event.message.refcount for event in events))
    await ended(running)


async def test_no_more_are_worked_on_at_a_time_than_the_limit_and_a_bounded_number_waits_for_a_slow_one() -> None:
    now, most, begun = 0, 0, 0

    async def process(record: Incoming) -> Sequence[Outgoing]:
        nonlocal now, most, begun
        begun += 1
        now += 1
        most = max(most, now)
        await asyncio.sleep(3600 if record.offset == 0 else 0)
        now -= 1
        return []

    running = asyncio.create_task(_agent(process, [], limit=3)(Stream([Event(offset) for offset in range(1000)])))
    await until(lambda: begun == 3 * app_module.AHEAD)
    for _ in range(100):
        await asyncio.sleep(0)
    assert (begun, most) == (3 * app_module.AHEAD, 3)
    await ended(running)


async def test_a_record_that_comes_again_while_it_is_in_hand_is_worked_on_once() -> None:
    goes_on = asyncio.Event()
    begun: list[int] = []
    events = [Event(0), Event(1), Event(0)]

    async def process(record: Incoming) -> Sequence[Outgoing]:
        begun.append(record.offset)
        await goes_on.wait()
        return []

    running = asyncio.create_task(_agent(process, [])(Stream(events)))
    await until(lambda: len(begun) == 2)
    goes_on.set()
    await until(lambda: [event.message.refcount for event in events] == [0, 0, 0])
    assert begun == [0, 1]
    await ended(running)


@given(st.lists(st.integers(0, 30), max_size=40), st.randoms(use_true_random=False))
def test_what_is_acknowledged_has_nothing_unfinished_before_it(offsets: list[int], chance: random.Random) -> None:
    """Invariant 8: the offset that Kafka would hold never passes a record that was taken and is not done."""
    ledger = Ledger()
    in_hand: list[Event] = []
    acked: list[int] = []

    class Watched(Event):
        def ack(self) -> None:
            assert self.message.offset <= min((event.message.offset for event in in_hand), default=99)
            acked.append(self.message.offset)

    def finish() -> None:
        ledger.done(in_hand.pop(chance.randrange(len(in_hand))))

    for offset in offsets:
        event = Watched(offset)
        if ledger.take(event):
            in_hand.append(event)
        while in_hand and chance.random() < 0.5:
            finish()
    while in_hand:
        finish()
    assert len(ledger) == 0
    assert sorted(acked) == sorted(offsets)


def test_limits_leave_room_for_the_largest_record() -> None:
    assert max(topic.max_bytes for topic in load().topics().values()) < kafka.MAX_REQUEST


def test_what_kafka_knows_of_topics_is_asked_for_every_few_seconds() -> None:
    """A broker that starts may leave topics out; by default the group would read nothing for five minutes."""
    conf = app_module.make_app(load(), "llm", buffer=16).conf
    assert conf.consumer_metadata_max_age_ms <= 10_000
    assert conf.producer_metadata_max_age_ms <= 10_000


@pytest.mark.parametrize(("before", "attempts"), [(None, 1), (b"2", 3), (b"-1", 1), (b"x", 1), (b"9" * 99, 1)])
def test_a_replayed_record_that_fails_again_counts_on(before: bytes | None, attempts: int) -> None:
    headers = {} if before is None else {"hyve-attempts": before}
    letter = DeadLetter.from_bytes(app_module.dead_letter(Incoming("t", 0, 0, b"x", headers=headers), "s", "e").value)
    assert letter.attempts == attempts
