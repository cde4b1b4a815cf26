"""A Faust consumer that commits past no record of ours that was not acknowledged.

Faust takes the lowest acknowledged offset for the start of what is done: where nothing was committed yet, or one record
lies between, it commits past records that it was given and left out. It does leave some out: those that come while a
group shares its partitions anew reach no agent, and are read again later, unless the process dies before.

Rule: nothing is committed until the record at the last committed offset is acknowledged, or, without a commit, the
first one that was fetched. That needs topics whose offsets have no holes: those that HYVE writes. The raw topics are
others', may be compacted or transactional, and are left to Faust.

Faust hands out records one after the other and waits where an agent's queue is full: a backlog of requests held up the
commands that would have ended those that were begun, until their stores had to give way to newer ones.

Rule: of the topics that come `last`, no more is taken while half of its agent's queue is full; others are read on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP

from streams import metrics

LOOK = 0.1
"""Seconds after which a topic that was left out is looked at again."""


class Consumer(aiokafka.Consumer):
    """Knows the first offset that came of each partition since the last seek."""

    def __init__(self, *given: Any, without_holes: frozenset[str], last: frozenset[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self._without_holes = without_holes
        self._last = last
        self._first: dict[TP, int] = {}

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's
        if self._last and active_partitions:
            busy = {topic for topic in self._last if self._waits(topic)}
            if busy and (free := {tp for tp in active_partitions if tp.topic not in busy}):
                return await super()._getmany(free, min(timeout, LOOK))
        return await super()._getmany(active_partitions, timeout)

    def _waits(self, topic: str) -> bool:
        """Whether so many records of `topic` lie in front of an agent that a poll might not fit."""
        topics: Any = self.app.topics
        channels = topics._topic_name_index.get(topic, ())
        return any(2 * channel.queue.qsize() > channel.queue.maxsize for channel in channels)

    def committed_offset(self, tp: TP) -> int | None:
        """The offset below which all is done, as the group has told Kafka; None where it has told nothing yet."""
        return self._committed_offset[tp]

    async def perform_seek(self) -> None:
        self._first.clear()
        await super().perform_seek()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - Faust's signature
        async for tp, message in super().getmany(timeout):
            self._first.setdefault(tp, message.offset)
            yield tp, message

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        did: bool = await super()._commit_offsets(offsets, start_new_transaction)
        if did:
            metrics.COMMITS.inc()
        return did

    def _new_offset(self, tp: TP) -> int | None:
        acked = self._acked[tp]
        if acked and tp.topic in self._without_holes:
            # Records before the first that came are gone by retention: the first counts then.
            next_ = max(self._committed_offset[tp] or 0, self._first.get(tp, 0))
            if min(acked) > next_:
                return None
        found: int | None = super()._new_offset(tp)
        return found


class App(faust.App):
    """A Faust application with such a consumer. `without_holes` are the full names of the topics that HYVE writes,
    `last` those whose records wait for others."""

    def __init__(
        self, *given: Any, without_holes: frozenset[str], last: frozenset[str] = frozenset(), **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._without_holes, self._last = without_holes, last

    def _new_transport(self) -> Any:
        transport: Any = super()._new_transport()
        transport.Consumer = partial(Consumer, without_holes=self._without_holes, last=self._last)
        return transport
