"""Pauses between attempts to reach a broker that is away. aiokafka has none: each of a client's tasks tries ten times a
second, so a worker knocked fifty times a second.

Rules, those of Kafka's own clients: the pause after a failure doubles from 50 ms to a second, with a fifth of jitter.
One attempt at a time for each broker and client; its outcome counts for all that wait for it.
"""

from __future__ import annotations

import asyncio
import random
from asyncio import sleep
from collections import defaultdict
from time import monotonic
from typing import Any, Final

FIRST, LONGEST, JITTER = 0.05, 1.0, 0.2
_MOST: Final = 10
"""Failures after which the pause grows no more."""


def paced(client: Any) -> None:
    """Makes an `AIOKafkaClient` wait between attempts."""
    client._get_conn = _Paced(client._get_conn)


class _Paced:
    def __init__(self, connect: Any) -> None:
        self._connect = connect
        self._turns: defaultdict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failures: dict[Any, tuple[int, float]] = {}
        """Of each broker: how many in a row, and when the last one was."""

    async def __call__(self, node_id: Any, **named: Any) -> Any:
        asked = monotonic()
        if node_id not in self._failures:
            return await self._tried(node_id, named)
        async with self._turns[node_id]:
            met, last = self._failures.get(node_id, (0, 0.0))
            if last > asked:
                return None  # another has just tried
            pause = FIRST * 2 ** min(met, _MOST) * random.uniform(1 - JITTER, 1 + JITTER) if met else 0.0
            await sleep(max(0.0, last + min(pause, LONGEST) - monotonic()))
            return await self._tried(node_id, named)

    async def _tried(self, node_id: Any, named: dict[str, Any]) -> Any:
        connection = await self._connect(node_id, **named)
        if connection is None:
            self._failures[node_id] = self._failures.get(node_id, (0, 0.0))[0] + 1, monotonic()
        else:
            self._failures.pop(node_id, None)
        return connection
