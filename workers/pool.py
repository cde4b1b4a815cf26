"""The store pool: request stores live in child processes, so that parsing, views and SQL never block an
event loop.

Rules:
- N slots of one process each; a request's id picks its slot, so its store is found again. One call a slot
  at a time.
- A store lives until its request's answer is made, until it is the oldest of too many, or until it is older than its
  time to live, whatever comes first. It can be lost at any moment (death of its process, restart of the worker): calls
  then raise `StoreMissing`, and the caller builds it again from the request record, by `prepare`.
- A call has a time limit; a process that overruns it is killed and started again. A process that dies in
  a call is started again and the call repeated once; if it dies again, the request is at fault:
  `StoreDied`. What a process may hold in memory is limited too (Linux): a call that needs more fails, and its
  process is replaced, before the machine runs out of it.
- Nothing unpicklable comes back: a child answers with values, its errors as text.
- Children ignore SIGINT and SIGTERM (their worker drains first) and end when the worker ends, even by
  SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hyve.diagnosis import CUT, Diagnosis, with_rows
from hyve.errors import HyveError
from schemas import DiagnosisRequest, StoreCommand

Redaction = tuple[tuple[str, ...], tuple[str, ...]]
"""`redact` and `keep_masked` of `hyve.Request`."""


class StoreMissing(Exception):
    """The request's store is not in the pool (any more)."""


class StoreFault(Exception):
    """The child failed in a way that no input should cause; the text is its traceback."""


class RecordUnusable(HyveError):
    """The request record can't be decoded; it belongs to the dead letters."""


class StoreDied(HyveError):
    """The store's process died twice on the same call."""


class StoreOverran(HyveError):
    """The call took longer than its limit; its process was killed."""


@dataclass(frozen=True)
class Prepared:
    """What `prepare` made: the first prompt and what it cost."""

    request_id: str
    question: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    original_tokens: int
    prompt_tokens: int
    deadline: int | None
    created: int
    ms: dict[str, float]


@dataclass(frozen=True)
class FollowedUp:
    """The second prompt's messages and their tokens."""

    messages: tuple[dict[str, Any], ...]
    tokens: int
    ms: float


@dataclass
class _Held:
    request: DiagnosisRequest
    store: Any
    prompt: Any
    born: float = field(default_factory=time.monotonic)


@dataclass
class _Child:
    """State of one child process."""

    cap: int = 1
    claims: str = ""
    memory: int = 0
    redaction: Redaction = (("secrets",), ())
    most: int = 0
    stores: OrderedDict[str, _Held] = field(default_factory=OrderedDict)


_CHILD = _Child()


def _start_child(cap: int, claims: str, memory: int, redaction: Redaction) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _CHILD.cap, _CHILD.claims, _CHILD.memory, _CHILD.redaction = cap, claims, memory, redaction
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            multiprocessing.connection.wait([sentinel])
            os._exit(1)

        threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _held(request_id: str) -> _Held:
    held = _CHILD.stores.get(request_id)
    if held is None:
        raise StoreMissing(request_id)
    _CHILD.stores.move_to_end(request_id)
    return held


def _drop(request_id: str) -> bool:
    held = _CHILD.stores.pop(request_id, None)
    if held is not None:
        held.store.close()
    return held is not None


def _expire(age: float) -> int:
    """Closes the stores that are older than `age` seconds; their number."""
    born = time.monotonic() - age
    old = [name for name, held in _CHILD.stores.items() if held.born < born]
    return sum(map(_drop, old))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Lets the data of this process be `memory` bytes more than after its start, as long as a call runs.

    Not in between: what a call's arguments need when they come in can't be refused, only die of it.
    """
    if not _CHILD.most:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_CHILD.most if hard < 0 else min(_CHILD.most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _warm() -> int:
    import hyve.stages  # noqa: F401 - imported here, so that only children pay for it
    from hyve import sql
    from hyve.tokens import count_tokens

    sql.dedicate()
    count_tokens("")  # reads the vocabulary
    if _CHILD.memory and not _CHILD.most and sys.platform.startswith("linux"):  # others don't count all data
        status = Path("/proc/self/status").read_text()
        _CHILD.most = int(status.partition("VmData:")[2].split()[0]) * 1024 + _CHILD.memory
    return os.getpid()


def _prepare(raw: bytes) -> Prepared:
    from hyve import stages
    from workers import claims

    began = time.perf_counter()
    try:
        request = DiagnosisRequest.from_bytes(raw)
    except ValueError as error:
        raise RecordUnusable(str(error)) from None
    payloads = tuple(stages.Payload(payload.name, claims.text(_CHILD.claims, payload)) for payload in request.payloads)
    decode = (time.perf_counter() - began) * 1000
    _drop(request.request_id)
    while len(_CHILD.stores) >= _CHILD.cap:
        _drop(next(iter(_CHILD.stores)))
    store, prompt = stages.prepare(
        stages.Request(
            question=request.question,
            payloads=payloads,
            budget=request.budget,
            focus=request.focus,
            kind=request.kind,
            notes=request.notes,
            redact=_CHILD.redaction[0],
            keep_masked=_CHILD.redaction[1],
        )
    )
    # The payload text is the bulk of the memory and no longer needed: the store holds the values.
    slim = request.model_copy(update={"payloads": ()})
    _CHILD.stores[request.request_id] = _Held(slim, store, prompt)
    return Prepared(
        request_id=request.request_id,
        question=request.question,
        messages=tuple(prompt.messages),
        tools=tuple(prompt.tools),
        original_tokens=prompt.original_tokens,
        prompt_tokens=prompt.prompt_tokens,
        deadline=request.deadline,
        created=request.created,
        ms={
            **request.ms,
            "prepare.decode": decode,
            **{f"prepare.{name}": ms for name, ms in prompt.ms.items()},
        },
    )


def _follow_up(command: StoreCommand, budget: int) -> FollowedUp:
    from hyve import stages

    held = _held(command.request_id)
    began = time.perf_counter()
    messages, tokens = stages.follow_up(held.store, held.prompt.messages, _decision(command), budget)
    return FollowedUp(tuple(messages), tokens, (time.perf_counter() - began) * 1000)


def _finish(command: StoreCommand) -> tuple[Diagnosis, str]:
    """The answer, and the request's question. Where hop 2 gave no answer, with the rows of hop 1's query."""
    from hyve import reply, stages

    held = _held(command.request_id)
    request, store, model = held.request, held.store, command.account.model

    def rows(query: Any) -> Diagnosis:
        return stages.rows_answer(store, query, model=model, question=request.question, focus=request.focus)

    if command.kind == "rules":
        diagnosis = stages.rules(store, request.question, request.focus, command.reason)
    elif command.kind == "query":
        diagnosis = rows(_decision(command))
    else:
        diagnosis = stages.finish(
            store,
            _decision(command),
            model=model,
            mode="query" if command.hop == 2 else "direct",
            question=request.question,
            focus=request.focus,
            kind=request.kind,
        )
    if command.asked and (diagnosis.mode == "rules" or command.kind == "query"):  # no answer came of its rows
        diagnosis = with_rows(diagnosis, rows(reply.Query(command.asked, None)))
    told = (*request.notes, *((CUT,) if command.cut else ()))
    notes = (*(note for note in told if note not in diagnosis.notes), *diagnosis.notes)
    _drop(command.request_id)
    return replace(diagnosis, notes=notes), request.question


def _decision(command: StoreCommand) -> Any:
    from hyve import reply

    said = command.call
    call = None if said is None else reply.ToolCall(said.id, said.name, said.arguments)
    if command.kind == "query":
        return reply.Query(command.sql, call)
    if command.kind == "template":
        fills = tuple(
            reply.Fill(fill.sql, tuple(reply.FillMapping(item.column, item.path) for item in fill.mappings))
            for fill in command.fills
        )
        return reply.Template(command.template, fills, call, command.text)
    return reply.Direct(command.text)


Verdict = Literal["ok", "missing", "unusable", "refused", "memory", "fault"]


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Verdict, Any]:
    try:
        with _limited():
            return "ok", function(*arguments)
    except StoreMissing as error:
        return "missing", str(error)
    except RecordUnusable as error:
        return "unusable", str(error)
    except HyveError as error:
        return "refused", str(error)
    except MemoryError:
        return "memory", f"this data needs more memory than HYVE_POOL_MEMORY allows ({_CHILD.memory:,} bytes)"
    except Exception:
        return "fault", traceback.format_exc(limit=8)


class _Slot:
    """One child process and the lock that lets one call in at a time."""

    def __init__(self, cap: int, claims: str, memory: int, redaction: Redaction) -> None:
        self.lock = asyncio.Lock()
        self._settings = cap, claims, memory, redaction
        self._executor = self._spawn()
        self.pid: int | None = None

    def _spawn(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_child,
            initargs=self._settings,
        )

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Any:
        """One try. Raises `BrokenProcessPool` where the child died, `TimeoutError` where it overran."""
        loop = asyncio.get_running_loop()
        if self.pid is None:
            self.pid = await loop.run_in_executor(self._executor, _warm)
        running = loop.run_in_executor(self._executor, _run, function, arguments)
        return await asyncio.wait_for(running, limit)

    def respawn(self) -> None:
        self.close()
        self._executor = self._spawn()

    def close(self) -> None:
        pid, self.pid = self.pid, None
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


class StorePool:
    """N processes that hold request stores. `on_respawn` is called for each one that is started again.

    `claims` is where data too large for a record lies (see `workers.claims`), `memory` the bytes that each process may
    hold beyond what it needs to start (0: no limit), `redaction` what models see masked, and answers too.
    """

    def __init__(
        self,
        size: int,
        stores: int,
        on_respawn: Callable[[], None] | None = None,
        *,
        claims: str = "",
        memory: int = 0,
        redaction: Redaction = (("secrets",), ()),
    ) -> None:
        self._slots = tuple(_Slot(stores, claims, memory, redaction) for _ in range(size))
        self._on_respawn = on_respawn
        self.waiting = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes that are up."""
        return tuple(slot.pid for slot in self._slots if slot.pid is not None)

    def slot_of(self, request_id: str) -> int:
        """Which slot holds the request: the same in every process and run."""
        digest = hashlib.blake2b(request_id.encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % len(self._slots)

    async def warm(self) -> None:
        """Starts every process and its imports now rather than at the first request."""

        async def start(slot: _Slot) -> None:
            async with slot.lock:
                await self._guarded(slot, _warm, (), 120.0)

        await asyncio.gather(*(start(slot) for slot in self._slots))

    async def prepare(self, request_id: str, raw: bytes, limit: float) -> Prepared:
        """Builds the store of the request record `raw` and its first prompt, or raises `HyveError`."""
        prepared: Prepared = await self._call(self.slot_of(request_id), _prepare, (raw,), limit)
        return prepared

    async def follow_up(self, command: StoreCommand, budget: int, limit: float) -> FollowedUp:
        """Runs the model's query and makes the second prompt."""
        done: FollowedUp = await self._call(self.slot_of(command.request_id), _follow_up, (command, budget), limit)
        return done

    async def finish(self, command: StoreCommand, limit: float) -> tuple[Diagnosis, str]:
        """The answer that `command` leads to, and the request's question."""
        done: tuple[Diagnosis, str] = await self._call(self.slot_of(command.request_id), _finish, (command,), limit)
        return done

    async def drop(self, request_id: str) -> bool:
        """Closes the request's store; False where there was none."""
        return bool(await self._call(self.slot_of(request_id), _drop, (request_id,), 30.0))

    async def expire(self, age: float) -> int:
        """Closes the stores that are older than `age` seconds, in every process that is up; their number."""
        up = [index for index, slot in enumerate(self._slots) if slot.pid is not None]
        return sum(await asyncio.gather(*(self._call(index, _expire, (age,), 30.0) for index in up)))

    def close(self) -> None:
        """Ends every process at once."""
        for slot in self._slots:
            slot.close()

    async def _call(self, index: int, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> Any:
        slot = self._slots[index]
        self.waiting += 1
        try:
            async with slot.lock:
                verdict, value = await self._guarded(slot, function, arguments, limit)
        finally:
            self.waiting -= 1
        if verdict == "ok":
            return value
        if verdict == "missing":
            raise StoreMissing(value)
        if verdict == "unusable":
            raise RecordUnusable(value)
        if verdict == "refused":
            raise HyveError(value)
        raise StoreFault(value)

    async def _guarded(
        self, slot: _Slot, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float
    ) -> tuple[Verdict, Any]:
        for last in (False, True):
            try:
                answer: tuple[Verdict, Any] = await slot.call(function, arguments, limit)
                if answer[0] == "memory":  # nobody knows what else in that process went without
                    self._respawn(slot)
                    raise HyveError(answer[1])
                return answer
            except TimeoutError:
                self._respawn(slot)
                raise StoreOverran(
                    f"the store took over {limit:g} s and was stopped: send less data or raise the limit"
                ) from None
            except BrokenProcessPool:
                self._respawn(slot)
                if last:
                    raise StoreDied(
                        "the store's process died twice on this request (out of memory?): send less data"
                    ) from None
        raise AssertionError("unreachable")

    def _respawn(self, slot: _Slot) -> None:
        slot.respawn()
        if self._on_respawn is not None:
            self._on_respawn()
