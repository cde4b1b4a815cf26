"""The store pool: request stores live in child processes, so that parsing, views and SQL never block an
event loop.

Rules:
- N slots of one process each; a request's id picks its slot, so its store is found again. One call a slot
  at a time; calls for stores that are there go before all but one of those that build new ones, so that what was begun
  ends first.
- A store lives until its request's answer is made, until it is the oldest of too many or of those that fill half of the
  memory, or until it is older than its time to live, whatever comes first. It can be lost at any moment (death of its
  process, restart of the worker): calls then raise `StoreMissing`, and the caller builds it again from the request
  record, by `prepare`.
- A call has a time limit; a process that overruns it is killed and started again. A process that dies in
  a call is started again and the call repeated once; if it dies again, the request is at fault:
  `StoreDied`. What a process may hold in memory is limited too (Linux): a call that needs more fails, and its
  process is replaced, before the machine runs out of it.
- A call that was given up runs to its end in the child; its answer is known by its number and thrown away.

What a child does is in `workers.stores`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import multiprocessing
import os
import pickle
import signal
import socket
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from multiprocessing.process import BaseProcess
from typing import Any, cast

from hyve.diagnosis import Diagnosis
from hyve.errors import HyveError
from schemas import StoreCommand
from workers import claims, stores
from workers.stores import HEAD, FollowedUp, Prepared, RecordUnusable, Redaction, StoreMissing, Verdict, packed

log = logging.getLogger("hyve")


class StoreFault(Exception):
    """The child failed in a way that no input should cause; the text is its traceback."""


class StoreDied(HyveError):
    """The store's process died twice on the same call."""


class StoreOverran(HyveError):
    """The call took longer than its limit; its process was killed."""


class _Died(Exception):
    """The child ended before it answered."""


class _Slot:
    """One child process, the lock that lets one call in at a time, and the door at which all who build but one wait."""

    def __init__(self, cap: int, claims: str, memory: int, redaction: Redaction) -> None:
        self.lock = asyncio.Lock()
        self.door = asyncio.Lock()
        self.pid: int | None = None
        self.held = 0
        self._settings = cap, claims, memory, redaction
        self._numbers = count(1)
        self._link: _Link | None = None
        self._process: BaseProcess | None = None
        self._end: Callable[[], Any] = lambda: None

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Any:
        """One try. Raises `_Died` where the child died, `TimeoutError` where it overran."""
        link = self._link or await self._start()
        number = next(self._numbers)
        async with asyncio.timeout(limit):
            return await link.ask(number, packed(number, function, arguments))

    async def _start(self) -> _Link:
        """Starts the child and waits until it has imported what it needs."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = multiprocessing.get_context("spawn").Process(
                target=stores.serve, args=(theirs, *self._settings), daemon=True
            )
            process.start()
        self._process = process
        # Also where nobody closes the pool: children ignore the SIGTERM that `multiprocessing` would end them by.
        self._end = weakref.finalize(self, _kill, process)
        _, self._link = await asyncio.get_running_loop().create_connection(_Link, sock=ours)
        try:
            await self._link.ask(0, b"")
        except BaseException:
            self.close()
            raise
        self.pid = process.pid
        return self._link

    async def died_of(self) -> str:
        """What ended the child that is gone, as far as the system tells."""
        process, memory = self._process, self._settings[2]
        if process is None:
            return "it did not start"
        await asyncio.to_thread(process.join, 2.0)
        code = process.exitcode
        if code is None or code >= 0:
            return f"status {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        if -code == signal.SIGKILL:
            return f"{name}; the system's memory may have ended: lower HYVE_POOL_MEMORY ({memory:,} bytes)"
        if -code == signal.SIGABRT and memory:
            return f"{name}; HYVE_POOL_MEMORY ({memory:,} bytes) was too little for it"
        return name

    def close(self) -> None:
        """Ends the child at once; the next call starts another."""
        link, self._link, self.pid, self.held = self._link, None, None, 0
        self._end()
        if link is not None:
            with contextlib.suppress(RuntimeError):  # its loop may have ended
                link.close()


class _Link(asyncio.Protocol):
    """Our end of a child's socket: calls go out, answers are handed to who waits for them by their number. No stream of
    asyncio's, which wakes a task twice for each answer."""

    def __init__(self) -> None:
        self._lost = False
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._came = bytearray()
        self._transport: asyncio.Transport | None = None

    async def ask(self, number: int, call: bytes) -> Any:
        """The answer of this number. Raises `_Died` where the child ends before."""
        if self._lost or self._transport is None:
            raise _Died
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(call)
            return await answer
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        came = self._came
        came += data
        while len(came) >= HEAD and len(came) >= (end := HEAD + int.from_bytes(came[:HEAD], "big")):
            number, value = pickle.loads(bytes(came[HEAD:end]))
            del came[:end]
            answer = self._waiting.get(number)
            if answer is not None and not answer.done():
                answer.set_result(value)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_Died())


def _kill(process: BaseProcess) -> None:
    with contextlib.suppress(ProcessLookupError, ValueError):
        process.kill()


_OPEN = nullcontext()


class StorePool:
    """N processes that hold request stores. `on_respawn` is called for each one that is started again, `on_spent` with
    the name of each call that ended ("prepare", "finish", ...) and the processor's seconds that it took; those in which
    tables were loaded for statements come as "load".

    `claims` is where data too large for a record lies (see `workers.claims`), `memory` the bytes that each process may
    hold beyond what it needs to start (0: no limit), `redaction` what models see masked, and answers too.
    """

    def __init__(
        self,
        size: int,
        stores: int,
        on_respawn: Callable[[], None] = lambda: None,
        *,
        on_spent: Callable[[str, float], None] = lambda _call, _seconds: None,
        claims: str = "",
        memory: int = 0,
        redaction: Redaction = (("secrets",), ()),
    ) -> None:
        self._slots = tuple(_Slot(stores, claims, memory, redaction) for _ in range(size))
        self._on_respawn = on_respawn
        self._on_spent = on_spent
        self.waiting = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes that are up."""
        return tuple(slot.pid for slot in self._slots if slot.pid is not None)

    @property
    def busy(self) -> int:
        """Processes that a call has for itself; one that only starts is not."""
        return min(self.waiting, sum(slot.lock.locked() for slot in self._slots))

    @property
    def held(self) -> int:
        """Stores that the processes held after their last calls."""
        return sum(slot.held for slot in self._slots)

    def slot_of(self, request_id: str) -> int:
        """Which slot holds the request: the same in every process and run."""
        digest = hashlib.blake2b(request_id.encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % len(self._slots)

    async def warm(self) -> None:
        """Starts every process and its imports now rather than at the first request."""

        async def start(slot: _Slot) -> None:
            async with slot.lock:
                await self._guarded(slot, os.getpid, (), 120.0)

        await asyncio.gather(*(start(slot) for slot in self._slots))

    async def prepare(self, request_id: str, raw: bytes, limit: float) -> Prepared:
        """Builds the store of the request record `raw` and its first prompt, or raises `HyveError`:
        `claims.Unreachable` where its data can't be had now."""
        slot = self._slot(request_id)
        silence = min(claims.READ_SILENCE, limit / 4)  # what is away is told before the call has overrun
        prepared: Prepared = await self._call(slot, stores.prepare, (raw, silence), limit, request_id, slot.door)
        return prepared

    async def digest(self, request_id: str, raw: bytes, limit: float) -> str:
        """What tells the request of the record `raw` from others of its id. `RecordUnusable` where it is none."""
        return str(await self._call(self._slot(request_id), stores.digest, (raw,), limit, request_id))

    async def follow_up(self, command: StoreCommand, budget: int, limit: float) -> FollowedUp:
        """Runs the model's query and makes the second prompt."""
        about = command.request_id
        done: FollowedUp = await self._call(self._slot(about), stores.follow_up, (command, budget), limit, about)
        return done

    async def finish(self, command: StoreCommand, limit: float) -> tuple[Diagnosis, str]:
        """The answer that `command` leads to, and the request's question."""
        about = command.request_id
        done: tuple[Diagnosis, str] = await self._call(self._slot(about), stores.finish, (command,), limit, about)
        return done

    async def drop(self, request_id: str) -> bool:
        """Closes the request's store; False where there was none."""
        return bool(await self._call(self._slot(request_id), stores.drop, (request_id,), 30.0, request_id))

    async def expire(self, age: float) -> int:
        """Closes the stores that are older than `age` seconds, in every process that is up; their number."""
        up = [slot for slot in self._slots if slot.pid is not None]
        return sum(await asyncio.gather(*(self._call(slot, stores.expire, (age,), 30.0) for slot in up)))

    def close(self) -> None:
        """Ends every process at once."""
        for slot in self._slots:
            slot.close()

    def _slot(self, request_id: str) -> _Slot:
        return self._slots[self.slot_of(request_id)]

    async def _call(
        self,
        slot: _Slot,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        limit: float,
        about: str = "no request",
        door: AbstractAsyncContextManager[None] = _OPEN,
    ) -> Any:
        self.waiting += 1
        try:
            async with door, slot.lock:
                verdict, value = await self._guarded(slot, function, arguments, limit, about)
        finally:
            self.waiting -= 1
        if verdict == "ok":
            return value
        if verdict == "missing":
            raise StoreMissing(value)
        if verdict == "unusable":
            raise RecordUnusable(value)
        if verdict == "away":
            raise claims.Unreachable(value)
        if verdict == "refused":
            raise HyveError(value)
        raise StoreFault(value)

    async def _guarded(
        self, slot: _Slot, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float, about: str = "start"
    ) -> tuple[Verdict, Any]:
        for last in (False, True):
            try:
                verdict, value, spent, slot.held = await slot.call(function, arguments, limit)
                for name, seconds in spent.items():
                    self._on_spent(name, seconds)
                if verdict == "memory":  # nobody knows what else in that process went without
                    log.warning("pool: %s of %s: %s; its process is started anew", function.__name__, about, value)
                    self._respawn(slot)
                    raise HyveError(value)
                return verdict, value
            except TimeoutError:
                log.warning("pool: %s of %s took over %g s: its process is stopped", function.__name__, about, limit)
                self._respawn(slot)
                raise StoreOverran(
                    f"the store took over {limit:g} s and was stopped: send less data or raise the limit"
                ) from None
            except _Died:
                pid, why = slot.pid, await slot.died_of()
                again = "given up" if last else "tried once more"
                log.warning("pool: process %s died in %s of %s (%s): %s", pid, function.__name__, about, why, again)
                self._respawn(slot)
                if last:
                    raise StoreDied(
                        f"the store's process died twice on this request ({why}): send less data, or raise "
                        "HYVE_POOL_MEMORY where the machine has more"
                    ) from None
        raise AssertionError("unreachable")

    def _respawn(self, slot: _Slot) -> None:
        slot.close()
        self._on_respawn()


__all__ = [
    "FollowedUp",
    "Prepared",
    "RecordUnusable",
    "StoreDied",
    "StoreFault",
    "StoreMissing",
    "StoreOverran",
    "StorePool",
]
