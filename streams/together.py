"""Deliveries of a busy worker that wait for each other, so that Kafka is asked less often.

A request to Kafka costs a few tenths of a millisecond of processor time on either side, however many records it holds,
and so does each fetch that it answers. While records queue up in front of a worker, what one of them becomes is in no
hurry: it goes with what the next ones become, and is fetched and answered with them further on, too.

Rules: a delivery waits only while at least `many` other records are worked on, and `seconds` at most. As soon as there
are fewer, all that wait go at once. No record is acknowledged before its delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from streams.app import Incoming, Outgoing, Process, Send


class Together:
    """What the stages of one worker share: how many records are worked on, and the deliveries that wait."""

    def __init__(self, many: int, seconds: float) -> None:
        self._many, self._seconds = many, seconds
        self._working = 0
        self._waiting: asyncio.Future[None] | None = None

    def counted(self, process: Process) -> Process:
        """`process`, whose records count while they are worked on."""

        async def counted(record: Incoming) -> Sequence[Outgoing]:
            self._working += 1
            try:
                return await process(record)
            finally:
                self._working -= 1
                if self._working < self._many:
                    self._go()

        return counted

    def sending(self, send: Send) -> Send:
        """`send`, whose records wait for others."""

        async def sending(records: Iterable[Outgoing]) -> None:
            records = list(records)
            if records and self._working >= self._many:
                await self._turn()
            await send(records)

        return sending

    async def _turn(self) -> None:
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            loop.call_later(self._seconds, self._go, self._waiting)
        await asyncio.shield(self._waiting)  # one that is cancelled holds up no other

    def _go(self, those: asyncio.Future[None] | None = None) -> None:
        """Lets all that wait go; a timer only `those` that it was set for."""
        waiting = self._waiting
        if waiting is not None and those in (None, waiting):
            self._waiting = None
            waiting.set_result(None)
