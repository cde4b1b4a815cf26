"""A Faust consumer that commits past no record of ours that was not acknowledged.

Faust takes the lowest acknowledged offset for the start of what is done: where nothing was committed yet, or one record
lies between, it commits past records that it was given and left out. It does leave some out: those that come while a
group shares its partitions anew reach no agent, and are read again later, unless the process dies before.

Rule: nothing is committed until the record at the last committed offset is acknowledged, or, without a commit, the
first one that was fetched. That needs topics whose offsets have no holes: those that HYVE writes. The raw topics are
others', may be compacted or transactional, and are left to Faust.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP


class Consumer(aiokafka.Consumer):
    """Knows the first offset that came of each partition since the last seek."""

    def __init__(self, *given: Any, without_holes: frozenset[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self._without_holes = without_holes
        self._first: dict[TP, int] = {}

    async def perform_seek(self) -> None:
        self._first.clear()
        await super().perform_seek()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - Faust's signature
        async for tp, message in super().getmany(timeout):
            self._first.setdefault(tp, message.offset)
            yield tp, message

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
    """A Faust application with such a consumer; `without_holes` are the full names of the topics that HYVE writes."""

    def __init__(self, *given: Any, without_holes: frozenset[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self._without_holes = without_holes

    def _new_transport(self) -> Any:
        transport: Any = super()._new_transport()
        transport.Consumer = lambda *given, **named: Consumer(*given, without_holes=self._without_holes, **named)
        return transport
