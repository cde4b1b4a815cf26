"""A broker that is away is asked with pauses, however many tasks of a client want it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient

from streams import connections
from streams.connections import paced


class Client:
    """Its broker is away until `back`; time passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, back: float) -> None:
        self.now, self.back = 0.0, back
        self.attempts: list[float] = []
        monkeypatch.setattr(connections, "monotonic", lambda: self.now)
        monkeypatch.setattr(connections, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def _get_conn(self, node_id: Any, **named: Any) -> Any:
        self.now += 0.0001
        await asyncio.sleep(0)
        self.attempts.append(self.now)
        return "connection" if self.now >= self.back else None


async def wants(client: Client) -> None:
    """As the client's own tasks do: every 100 ms, for ever."""
    while await client._get_conn(1, group=0) is None:
        await client.sleep(0.1)


async def test_pauses_grow_to_a_second_and_all_tasks_share_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    paced(client := Client(monkeypatch, back=60.0))
    await asyncio.gather(*(wants(client) for _ in range(5)))
    # Five tasks at once before the first failure is known; then 50, 100 ... ms, and one a second, with a fifth more or
    # less. Without pauses there were some 3,000.
    failed = [at for at in client.attempts if at < 60.0]
    assert 50 <= len(failed) <= 90
    assert client.attempts[-1] < 61.5, "it is found again within a pause"


async def test_once_it_is_back_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    paced(client := Client(monkeypatch, back=3.0))
    await wants(client)
    before = client.now
    for _ in range(100):
        assert await client._get_conn(1) == "connection"
    assert client.now - before < 0.1


def test_the_clients_own_method_is_the_one_that_is_paced() -> None:
    """It is private: a release that renames it must not go unnoticed."""
    assert asyncio.iscoroutinefunction(AIOKafkaClient._get_conn)
