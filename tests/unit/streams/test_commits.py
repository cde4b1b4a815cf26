"""What the consumer commits, reads on and hands on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from faust.types import TP
from intervaltree import IntervalTree

from streams import app as app_module
from streams import commits
from tests.unit.streams.until import until
from workers.settings import load


class Offsets(commits.Consumer):
    """The consumer's books without its connections."""

    def __init__(self, acked: list[int], committed: int | None, first: int) -> None:
        self._without_holes = frozenset({"hyve.queries"})
        self._acked = defaultdict(list, {tp: list(acked) for tp in (OURS, RAW)})
        self._acked_index = defaultdict(set)
        self._committed_offset = defaultdict(lambda: None, dict.fromkeys((OURS, RAW), committed))
        self._gap = defaultdict(IntervalTree)
        if committed is not None and first > committed:  # what Faust notes when the first record comes
            self._gap[OURS].addi(committed + 1, first + 1)
        self._first = {OURS: first, RAW: first}


OURS, RAW = TP("hyve.queries", 3), TP("otel.logs", 3)


@pytest.mark.parametrize(
    ("acked", "committed", "first", "commits_to"),
    [
        ([5, 6], 5, 5, 7),
        ([6, 7], 5, 5, None),  # Faust: 8
        ([1], None, 0, None),  # Faust: 2
        ([0, 1], None, 0, 2),
        ([0, 2], None, 0, 1),
        ([9, 10], 5, 9, 10),  # retention took 5 to 8; Faust holds 9 twice then, and commits 11 the next time
        ([4, 5], 5, 5, 6),  # 4 came twice
    ],
)
def test_no_record_of_ours_is_committed_past(
    acked: list[int], committed: int | None, first: int, commits_to: int | None
) -> None:
    """Invariant 8: what a group that shares its partitions anew leaves out is read again even if the worker dies."""
    assert Offsets(acked, committed, first)._new_offset(OURS) == commits_to


def test_topics_of_others_may_have_holes() -> None:
    assert Offsets([6, 7], 5, 5)._new_offset(RAW) == 8


class Polled(commits.Consumer):
    """A consumer of one agent for each of two topics; what is asked of its client is kept."""

    def __init__(self, waiting: int) -> None:
        self._last = frozenset({"hyve.requests"})
        self._thread = SimpleNamespace(getmany=self._polled)
        queues = {"hyve.requests": waiting, "hyve.queries": 32}
        names = {name: [SimpleNamespace(queue=Queue(size))] for name, size in queues.items()}
        self.app = SimpleNamespace(topics=SimpleNamespace(_topic_name_index=names))
        self.asked: list[tuple[set[TP], float]] = []

    async def _polled(self, active: set[TP], seconds: float) -> dict[TP, Any]:
        self.asked.append((active, seconds))
        return {}


class Queue:
    maxsize = 32

    def __init__(self, size: int) -> None:
        self._size = size

    def qsize(self) -> int:
        return self._size


@pytest.mark.parametrize(("waiting", "read"), [(0, True), (16, True), (17, False), (32, False)])
async def test_requests_are_not_read_on_while_many_wait_but_queries_are(waiting: int, read: bool) -> None:
    """A backlog of requests must not stand before the commands that end those which were begun."""
    requests, queries = {TP("hyve.requests", 0), TP("hyve.requests", 1)}, {TP("hyve.queries", 0)}
    consumer = Polled(waiting)
    await consumer._getmany(requests | queries, 1.0)
    await consumer._getmany(set(requests), 1.0)  # nothing else to read
    (first, seconds), alone = consumer.asked
    assert first == (requests | queries if read else queries)
    assert seconds == (1.0 if read else commits.LOOK)
    assert alone == (requests, 1.0)


class Handing(commits.Consumer):
    """A consumer whose records go to one queue of two places."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] = asyncio.Queue(2)
        names = {RAW.topic: [SimpleNamespace(queue=self.queue)]}
        topics = SimpleNamespace(_topic_name_index=names, acks_enabled_for=lambda topic: True)
        self.flows = True
        self.app = SimpleNamespace(topics=topics, flow_control=SimpleNamespace(is_active=lambda: self.flows))
        self._read_offset = defaultdict(lambda: None)
        self._committed_offset = defaultdict(lambda: None)
        self._gap = defaultdict(IntervalTree)
        self.flow_active, self.suspend_flow = True, asyncio.Event()
        self.raced = 0

    async def callback(self, message: Any) -> None:
        await self.queue.put(message.offset)

    async def wait_first(self, *given: Any, **_: Any) -> Any:
        self.raced += 1
        tasks = [asyncio.ensure_future(it) for it in given]
        _, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()

    async def hand_on(self, *offsets: int) -> list[int]:
        for offset in offsets:
            await self._hand_on(RAW, SimpleNamespace(topic=RAW.topic, offset=offset))
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]


async def test_a_record_that_came_before_is_left_out_and_what_is_missing_is_noted_as_a_hole() -> None:
    consumer = Handing()
    assert await consumer.hand_on(5, 6) == [5, 6]
    assert await consumer.hand_on(4, 10) == [10]
    assert [(hole.begin, hole.end) for hole in consumer._gap[RAW]] == [(7, 11)]
    assert consumer.raced == 0


async def test_what_is_missing_behind_the_first_offset_of_all_is_a_hole_too() -> None:
    """An aborted transaction behind the first record of a topic leaves it. Faust takes offset 0 for none, and would
    commit nothing until it starts anew."""
    consumer = Handing()
    assert await consumer.hand_on(0, 4) == [0, 4]
    assert [(hole.begin, hole.end) for hole in consumer._gap[RAW]] == [(1, 5)]


async def test_what_waits_for_a_full_queue_goes_on_when_partitions_move() -> None:
    """Else a rebalance would wait for an agent that waits for the rebalance."""
    consumer = Handing()
    handing = asyncio.create_task(consumer.hand_on(1, 2, 3))
    await until(lambda: consumer.raced == 1)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not handing.done()
    consumer.suspend_flow.set()
    assert await asyncio.wait_for(handing, 10) == [1, 2]


@pytest.mark.parametrize("what", ["flow_active", "flows"])
async def test_nothing_is_handed_on_while_partitions_move_but_in_that_race(what: str) -> None:
    consumer = Handing()
    setattr(consumer, what, False)
    await consumer.hand_on(1)
    assert consumer.raced == 1


async def test_the_application_has_that_consumer() -> None:
    app = app_module.make_app(load(raw_topics="hyve.requests"), "store", buffer=16, last=["hyve.queries"])
    consumer = app._new_consumer()
    assert isinstance(consumer, commits.Consumer)
    assert "hyve.queries" in consumer._without_holes
    assert "hyve.requests" not in consumer._without_holes
    assert consumer._last == {"hyve.queries"}


class Giving(commits.Consumer):
    """A consumer with one record in hand (offset 7 of `OURS`), and two that are acknowledged and not committed yet."""

    def __init__(self, *, stops: bool) -> None:
        self.stops, self.seeks = stops, 0
        self.told: list[Any] = []
        self.app = SimpleNamespace(
            should_stop=stops,
            client_only=False,
            topics=SimpleNamespace(acks_enabled_for=lambda topic: True),
            sensors=SimpleNamespace(on_commit_initiated=lambda _: None, on_commit_completed=lambda *_: None),
        )
        self._without_holes, self._giving_up = frozenset({OURS.topic}), False
        self._active_partitions, self._paused_partitions = {OURS}, set()
        self._gap, self._acked_index = defaultdict(IntervalTree), defaultdict(set, {OURS: {5, 6}})
        self._acked = defaultdict(list, {OURS: [5, 6]})
        self._read_offset = defaultdict(lambda: None, {OURS: 7})
        self._committed_offset = defaultdict(lambda: None, {OURS: 5})
        self._first, self._commit_fut, self._unacked_messages = {OURS: 3}, None, set()
        self._waiting_for_ack = None
        self.loop = asyncio.get_running_loop()
        self.in_hand = Mock(acked=False, tp=OURS, topic=OURS.topic, offset=7)

    async def force_commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        found = self._filter_committable_offsets(list(self._acked))
        self.told += [*found.values()]
        self._committed_offset.update(found)
        return bool(found)

    async def wait_empty(self) -> None:
        await self.perform_seek()  # as who polls does when no records are taken any more
        self.ack(self.in_hand)
        await self.commit()

    async def _on_partitions_revoked(self, revoked: set[TP]) -> None:
        if self.stops:
            self.told.append("closed")
        else:
            await self.wait_empty()

    async def seek_to_committed(self) -> dict[TP, int]:
        self.seeks += 1
        return {OURS: 2}


@pytest.mark.parametrize(("stops", "told"), [(False, [8]), (True, [8, "closed"])])
async def test_partitions_are_given_up_when_what_was_in_hand_is_committed(stops: bool, told: list[Any]) -> None:
    """Invariant 8: else whoever gets them does all of it again. A worker that was told to stop is no other."""
    consumer = Giving(stops=stops)
    await consumer.on_partitions_revoked({OURS})
    assert (consumer.told, consumer.seeks) == (told, 0)
    books = (consumer._acked, consumer._acked_index, consumer._committed_offset, consumer._read_offset, consumer._first)
    assert not any(OURS in book for book in books)
    assert not consumer._active_partitions
    await consumer.perform_seek()
    assert consumer.seeks == 1


async def test_the_last_commit_waits_for_one_that_is_under_way_and_is_made_all_the_same() -> None:
    consumer = Giving(stops=False)
    consumer._commit_fut = under_way = asyncio.get_running_loop().create_future()
    giving = asyncio.create_task(consumer.on_partitions_revoked({OURS}))
    await asyncio.sleep(0)
    consumer._commit_fut = None
    under_way.set_result(None)
    await giving
    assert consumer.told == [8]
