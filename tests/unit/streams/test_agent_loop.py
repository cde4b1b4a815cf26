"""What every agent relies on: no error gets out, and nothing counts as sent before Kafka has it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, MessageSizeTooLargeError

from schemas import DeadLetter
from streams import app as app_module
from streams.app import Incoming, Outgoing, Poison, Undeliverable, attempt, sender, serve
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


class Topic:
    """A topic whose sends end as `script` says: None is delivered, an exception comes from the delivery."""

    def __init__(self, script: list[Exception | None]) -> None:
        self.script = script
        self.delivered: list[bytes] = []
        self.tries = 0

    async def send(self, *, key: bytes, value: bytes, **_: Any) -> Any:
        self.tries += 1
        outcome = self.script.pop(0) if self.script else None

        async def delivery() -> None:
            if outcome is not None:
                raise outcome
            self.delivered.append(value)

        return asyncio.ensure_future(delivery())


class App:
    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def topic(self, *names: str, value_type: type) -> Topic:
        return self._topic


async def test_what_was_not_delivered_is_sent_again_and_nothing_else() -> None:
    topic = Topic([None, KafkaConnectionError("gone"), None])
    await sender(App(topic), load())([Outgoing("results", b"k", value) for value in (b"1", b"2", b"3")])
    assert sorted(topic.delivered) == [b"1", b"2", b"3"]
    assert topic.tries == 4


async def test_a_record_that_is_too_large_is_not_tried_for_ever() -> None:
    topic = Topic([MessageSizeTooLargeError("big")])
    with pytest.raises(Undeliverable, match=r"3 bytes are too many for hyve\.results"):
        await sender(App(topic), load())([Outgoing("results", b"k", b"big")])


class Message:
    """A Faust message as far as references go."""

    topic, partition, key, value, timestamp = "hyve.raw", 0, b"k", b"v", 1.0

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
    """One batch; like Faust it acknowledges in its clean-up, even when the agent was cancelled."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events

    async def take_events(self, most: int, within: float) -> Any:
        try:
            yield list(self.events)
        finally:
            for event in self.events:
                event.ack()


class Registry(App):
    class conf:
        id = "hyve-x"

    def agent(self, channel: Any, name: str) -> Any:
        def register(function: Any) -> None:
            self.function = function

        return register


def _agent(process: Any, sent: list[bytes]) -> Any:
    async def send(records: Any) -> None:
        sent.extend(record.value for record in records)

    app = Registry(Topic([]))
    serve(app, load(), ["hyve.raw"], "x", process, send, 4)
    return app.function


async def test_a_finished_batch_is_acknowledged_after_it_was_sent() -> None:
    sent: list[bytes] = []
    events = [Event(0), Event(1)]

    async def process(record: Incoming) -> Sequence[Outgoing]:
        return [Outgoing("results", b"k", str(record.offset).encode())]

    await _agent(process, sent)(Stream(events))
    assert sent == [b"0", b"1"]
    assert [event.message.refcount for event in events] == [0, 0]


async def test_a_cancelled_batch_is_not_acknowledged() -> None:
    events = [Event(0)]
    started = asyncio.Event()

    async def process(record: Incoming) -> Sequence[Outgoing]:
        started.set()
        await asyncio.sleep(60)
        return []

    stream = Stream(events)
    running = asyncio.create_task(_agent(process, [])(stream))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert events[0].message.refcount >= 1, "Faust would commit past a record that was not worked on"


def test_limits_leave_room_for_the_largest_record() -> None:
    assert max(topic.max_bytes for topic in load().topics().values()) < app_module.MAX_REQUEST
