"""Which requests have a result already: the memory of a worker that has just started, read from `hyve.results` itself.

A worker that is killed between a result and the commit of its offset leaves records that are read once more, and its
memory of them dies with it. Asked again, a model may say something else, and the request would have two answers.

Rules:
- The results topic is the memory. It is read when a record comes that is older than what was read so far, and again
  after partitions were handed out: another worker may have answered meanwhile.
- A read that Kafka refuses is tried again for two minutes. Then the work goes on without it: a request that is not
  answered at all would be worse than one that is answered twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from hyve.errors import HyveError
from streams.app import now_ms
from streams.patience import patiently
from streams.recent import Recent
from workers.kafka import RangeReader
from workers.settings import Settings

log = logging.getLogger("hyve")

_DAY = 86_400_000
_FOREVER = 1 << 62


class Answered:
    """`has` says whether a request was answered at or after a time. Remembers the newest 100,000 ids."""

    def __init__(
        self, settings: Settings, read: Callable[[int], dict[str, str]] | None = None, remember: int = 100_000
    ) -> None:
        self._settings = settings
        self._read = read or self._from_results
        self._ids = Recent[str](remember)
        self._since = _FOREVER  # results from here on are known
        self._moves = 0
        self._lock = asyncio.Lock()

    def moved(self) -> None:
        """Partitions were handed out: what others did since is not known."""
        self._since = _FOREVER
        self._moves += 1

    async def has(self, request_id: str, since: int) -> bool:
        """Whether a result of the request was written at `since` (epoch ms, at most a day ago) or later."""
        if since < self._since:
            async with self._lock:
                await self._recall(max(since, now_ms() - _DAY))
        return request_id in self._ids

    def digest(self, request_id: str) -> str:
        """What tells the request that was answered from others of its id; "" where it is not known."""
        return self._ids.note(request_id)

    async def _recall(self, since: int) -> None:
        if since >= self._since:
            return
        moves = self._moves

        async def read() -> dict[str, str]:
            nonlocal moves
            moves = self._moves
            return await asyncio.to_thread(self._read, since)

        while True:
            try:
                found = await patiently(read, lambda _: True, "answered")
            except HyveError as error:
                log.warning("answered: %s; going on without it", error)
                found = {}
            for request_id, digest in found.items():
                self._ids.add(request_id, digest)
            if self._moves == moves:  # else what was read may be older than the last move
                self._since = since
                return

    def _from_results(self, since: int) -> dict[str, str]:
        settings = self._settings
        deadline = time.monotonic() + settings.collect_timeout
        with RangeReader(settings, settings.topic("results"), since, _FOREVER, deadline) as reader:
            found: dict[str, str] = {}
            for record in reader.read(range(reader.partitions)):
                found.setdefault((record.key or b"").decode("utf-8", "replace"), record.request)
            if reader.timed_out:
                log.warning("answered: reading results was stopped after %g s", settings.collect_timeout)
        return found
