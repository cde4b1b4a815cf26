"""Deliveries of a busy worker wait for each other, those of any other don't."""

from __future__ import annotations

import asyncio

from streams.app import Incoming, Outgoing, Process, Send
from streams.together import Together

FOREVER = 60.0


def record(number: int) -> Incoming:
    return Incoming("prompts", 0, number, b"")


class Worker:
    """Stages whose records end when they are told to; `sent` holds the deliveries, each the numbers it was made of."""

    def __init__(self, many: int, seconds: float) -> None:
        together = Together(many, seconds)
        self.sent: list[list[int]] = []
        self._ends: dict[int, asyncio.Event] = {}
        self._process: Process = together.counted(self._work)
        self._send: Send = together.sending(self._deliver)
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def _work(self, it: Incoming) -> list[Outgoing]:
        await self._ends[it.offset].wait()
        if it.offset < 0:
            return []
        return [Outgoing("results", None, str(it.offset).encode())]

    async def _deliver(self, records: object) -> None:
        assert isinstance(records, list)
        self.sent.append([int(it.value) for it in records])

    async def _one(self, number: int) -> None:
        await self._send(await self._process(record(number)))

    async def begin(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number] = asyncio.Event()
            self.tasks[number] = asyncio.create_task(self._one(number))
        await settle()

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_with_little_to_do_nothing_waits() -> None:
    worker = Worker(2, FOREVER)
    await worker.begin(1, 2)
    await worker.end(1)
    assert worker.sent == [[1]]
    await worker.end(2)
    assert worker.sent == [[1], [2]]


async def test_what_a_busy_worker_made_goes_once_it_is_busy_no_more() -> None:
    worker = Worker(2, FOREVER)
    await worker.begin(1, 2, 3, 4)
    await worker.end(1)
    await worker.end(2)
    assert worker.sent == []
    await worker.end(3)  # one is left
    assert sorted(map(tuple, worker.sent)) == [(1,), (2,), (3,)]
    await worker.end(4)
    assert worker.sent[-1] == [4]


async def test_a_delivery_waits_no_longer_than_it_may() -> None:
    worker = Worker(1, 0.01)
    await worker.begin(1, 2)
    await worker.end(1)
    assert worker.sent == []
    await asyncio.wait_for(worker.tasks[1], 5)
    assert worker.sent == [[1]]
    await worker.begin(3)
    await worker.end(3)  # the timer that has run out holds for these no more
    assert worker.sent == [[1]]
    await asyncio.wait_for(worker.tasks[3], 5)
    assert worker.sent == [[1], [3]]


async def test_one_that_is_cancelled_while_it_waits_holds_up_no_other() -> None:
    worker = Worker(1, FOREVER)
    await worker.begin(1, 2, 3)
    await worker.end(1)
    await worker.end(2)
    worker.tasks[1].cancel()
    await settle()
    await worker.end(3)
    assert sorted(map(tuple, worker.sent)) == [(2,), (3,)]


async def test_nothing_to_send_waits_for_nothing() -> None:
    worker = Worker(1, FOREVER)
    await worker.begin(-1, 2)
    await worker.end(-1)
    assert worker.tasks[-1].done()
    worker.tasks[2].cancel()
    await settle()
