"""What a store process does: it holds the stores of requests and answers calls, one at a time (see `workers.pool`).

Rules:
- Nothing unpicklable comes back: answers are values, errors are text.
- What the process may hold in memory is limited (Linux), as long as a call runs; before a store is built, the oldest
  give way until there is one place free and half of the memory.
- It ignores SIGINT and SIGTERM (its worker drains first) and ends when the worker ends, even by SIGKILL.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hyve.diagnosis import CUT, Diagnosis, with_rows
from hyve.errors import HyveError
from schemas import DiagnosisRequest, StoreCommand
from workers import claims

Redaction = tuple[tuple[str, ...], tuple[str, ...]]
"""`redact` and `keep_masked` of `hyve.Request`."""

Verdict = Literal["ok", "missing", "unusable", "refused", "away", "memory", "fault"]

HEAD = 8
"""Bytes before each message that say how long it is."""


class StoreMissing(Exception):
    """The request's store is not in the pool (any more)."""


class RecordUnusable(HyveError):
    """The request record can't be decoded; it belongs to the dead letters."""


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
    digest: str = ""


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


def serve(link: socket.socket, cap: int, claims: str, memory: int, redaction: Redaction) -> None:
    """Runs in a child: answers calls until the other end of `link` is closed. The first answer says it is ready."""
    _start_child(cap, claims, memory, redaction)
    _warm()
    with contextlib.suppress(OSError), link.makefile("rb") as asked, link.makefile("wb") as told:
        answer = packed(0, None)
        while True:
            told.write(answer)
            told.flush()
            head = asked.read(HEAD)
            call = asked.read(int.from_bytes(head, "big"))
            if len(head) < HEAD or not call:
                return
            number, function, arguments = pickle.loads(call)
            del call
            answer = packed(number, run(function, arguments))
            del arguments


def packed(number: int, *values: Any) -> bytes:
    data = pickle.dumps((number, *values), pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(HEAD, "big") + data


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


def drop(request_id: str) -> bool:
    held = _CHILD.stores.pop(request_id, None)
    if held is not None:
        held.store.close()
    return held is not None


def expire(age: float) -> int:
    """Closes the stores that are older than `age` seconds; their number."""
    born = time.monotonic() - age
    old = [name for name, held in _CHILD.stores.items() if held.born < born]
    return sum(map(drop, old))


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


def _make_room() -> None:
    """Closes the oldest stores: there is room for one more, and for what building it takes."""
    from hyve import limits

    stores = _CHILD.stores
    while len(stores) >= _CHILD.cap:
        drop(next(iter(stores)))
    while stores and _CHILD.most and limits.memory()[1] > _CHILD.most - _CHILD.memory // 2:
        drop(next(iter(stores)))
        gc.collect()
        limits.trim()


def _warm() -> None:
    """Imports, and what is set up when it is first used: no request waits for it, and it is none's memory."""
    from hyve import limits, stages  # here, so that only children pay for it

    limits.dedicate()
    payload = stages.Payload("warm", _WARM)
    store, _ = stages.prepare(stages.Request("what is up?", (payload,), redact=_CHILD.redaction[0]))
    with store:
        store.query("SELECT count(*) FROM log_records")
    gc.collect()
    gc.freeze()  # what is here by now stays: no collection has to walk it
    if _CHILD.memory and not _CHILD.most and sys.platform.startswith("linux"):  # others don't count all data
        _CHILD.most = limits.memory()[1] + _CHILD.memory


_WARM = '[{"time":"2026-01-01T00:00:00Z","level":"info","service":"a","msg":"token=x is up"}]'


def prepare(raw: bytes, silence: float = claims.READ_SILENCE) -> Prepared:
    """Builds the request's store. A store of files where its data lies may be silent for `silence` seconds."""
    from hyve import stages

    began = time.perf_counter()
    request = _request(raw)
    known_as = request.digest()
    payloads = tuple(
        stages.Payload(payload.name, claims.text(_CHILD.claims, payload, silence)) for payload in request.payloads
    )
    decode = (time.perf_counter() - began) * 1000
    drop(request.request_id)
    _make_room()
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
        digest=known_as,
    )


def digest(raw: bytes) -> str:
    """What tells the request of this record from others of its id."""
    return _request(raw).digest()


def _request(raw: bytes) -> DiagnosisRequest:
    try:
        return DiagnosisRequest.from_bytes(raw)
    except ValueError as error:
        raise RecordUnusable(str(error)) from None


def follow_up(command: StoreCommand, budget: int) -> FollowedUp:
    from hyve import stages

    held = _held(command.request_id)
    began = time.perf_counter()
    messages, tokens = stages.follow_up(held.store, held.prompt.messages, _decision(command), budget)
    return FollowedUp(tuple(messages), tokens, (time.perf_counter() - began) * 1000)


def finish(command: StoreCommand) -> tuple[Diagnosis, str]:
    """The answer, and the request's question as a result may show it. Where hop 2 gave no answer, with the rows of hop
    1's query."""
    from hyve import masked, reply, stages

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
    told = (*(masked.told(store, note) for note in request.notes), *((CUT,) if command.cut else ()))
    notes = (*(note for note in told if note not in diagnosis.notes), *diagnosis.notes)
    question = masked.told(store, request.question)
    drop(command.request_id)
    return replace(diagnosis, notes=notes), question


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


def run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Verdict, Any, dict[str, float], int]:
    """What came of a call, the processor's seconds that it took, and how many stores this process holds now. Seconds in
    which tables were loaded into the database stand by themselves, under "load"."""
    from hyve import sql

    began, loaded = time.process_time(), sql.loading()
    verdict, value = _tried(function, arguments)
    load = sql.loading() - loaded
    spent = {function.__name__: time.process_time() - began - load, **({"load": load} if load else {})}
    return verdict, value, spent, len(_CHILD.stores)


def _tried(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Verdict, Any]:
    try:
        with _limited():
            return "ok", function(*arguments)
    except StoreMissing as error:
        return "missing", str(error)
    except RecordUnusable as error:
        return "unusable", str(error)
    except claims.Unreachable as error:
        return "away", str(error)
    except HyveError as error:
        return "refused", str(error)
    except MemoryError:
        return "memory", f"this data needs more memory than HYVE_POOL_MEMORY allows ({_CHILD.memory:,} bytes)"
    except Exception:
        return "fault", traceback.format_exc(limit=8)
