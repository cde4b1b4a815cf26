"""A store stage over a pool without processes, and the records that it takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hyve.diagnosis import Diagnosis, Mode
from schemas import Account, DiagnosisResult, Position, PromptReady, RequestMetrics, StoreCommand
from streams.answered import Answered
from streams.app import Incoming
from streams.store import StoreStage
from workers.pool import FollowedUp, Prepared, StoreMissing, StorePool
from workers.settings import load

HERE = Position(topic="hyve.requests", partition=5, offset=40)


class Pool:
    """A pool without processes. `stores` are the ids it holds; errors in `raises` are raised once, by call."""

    def __init__(self) -> None:
        self.stores: set[str] = set()
        self.raises: dict[str, list[Exception]] = {}
        self.prepared: list[bytes] = []
        self.finished: list[StoreCommand] = []
        self.digests: dict[bytes, str] = {}

    def _raise(self, call: str) -> None:
        if self.raises.get(call):
            raise self.raises[call].pop(0)

    async def prepare(self, request_id: str, raw: bytes, limit: float) -> Prepared:
        self.prepared.append(raw)
        self._raise("prepare")
        self.stores.add(request_id)
        said = raw.decode().partition(" ")[0] or request_id
        messages = ({"role": "user", "content": "x"},)
        digest = self.digests.get(raw, "d")
        return Prepared(said, "why?", messages, ({},), 1000, 100, 77, 50, {"collect": 2.0}, digest)

    async def digest(self, request_id: str, raw: bytes, limit: float) -> str:
        self._raise("digest")
        return self.digests.get(raw, "d")

    async def follow_up(self, command: StoreCommand, budget: int, limit: float) -> FollowedUp:
        self._raise("follow_up")
        if command.request_id not in self.stores:
            raise StoreMissing(command.request_id)
        return FollowedUp(({"role": "tool", "content": command.sql},), 33, 1.0)

    async def finish(self, command: StoreCommand, limit: float) -> tuple[Diagnosis, str]:
        self._raise("finish")
        if command.request_id not in self.stores:
            raise StoreMissing(command.request_id)
        self.finished.append(command)
        self.stores.discard(command.request_id)
        mode: Mode = "rules" if command.kind == "rules" else "query" if command.hop == 2 else "direct"
        return Diagnosis("inconclusive", command.reason or "said", mode=mode), "why?"

    async def drop(self, request_id: str) -> bool:
        self.stores.discard(request_id)
        return True


def stage(
    pool: Pool, read: Callable[[Position], bytes] = lambda position: b"r", answered: Answered | None = None
) -> StoreStage:
    return StoreStage(load(), cast(StorePool, pool), read, answered)


def request(key: bytes | None = b"r", value: bytes = b"r") -> Incoming:
    return Incoming(HERE.topic, HERE.partition, HERE.offset, value, key)


def command(kind: str = "direct", hop: int = 1, **fields: Any) -> Incoming:
    account = Account(original=1000, prompt=100, calls=hop, completion=9, model="m", created=1, ms={"prepare": 5.0})
    record = StoreCommand.model_validate(
        {"request_id": "r", "hop": hop, "kind": kind, "request": HERE, "account": account, **fields}
    )
    return Incoming("hyve.queries", 5, 0, record.to_bytes(), b"r")


def result(out: Any) -> DiagnosisResult:
    assert [item.topic for item in out] == ["results", "metrics"]
    assert {item.key for item in out} == {b"r"}
    read = DiagnosisResult.from_bytes(out[0].value)
    account = RequestMetrics.from_bytes(out[1].value)
    assert (account.status, account.tokens, account.ms) == (read.status, read.tokens, read.ms)
    return read


def prompt(out: Any) -> PromptReady:
    (item,) = out
    assert (item.topic, item.key) == ("prompts", b"r")
    return PromptReady.from_bytes(item.value)


def results_of(*found: str) -> tuple[Answered, list[int]]:
    """What has just started beside a results topic that holds `found`; the times it was read from."""
    reads: list[int] = []

    def read(since: int) -> dict[str, str]:
        reads.append(since)
        return dict.fromkeys(found, "")

    return Answered(load(), read), reads
