"""What bounds a running statement: time and memory.

Rules:
- A statement past its time is interrupted, and so is one during which the process grows too far: DuckDB's own memory
  limit does not count what scalar functions and `list()` allocate (under a limit of 500 MB, lists of a hundred million
  numbers took 2.4 GB).
- In a process that runs nothing but statements (`dedicate`), the data segment is capped while one runs (Linux), so that
  an allocation too far fails. A program that embeds the library has other threads, which would fail with it.
- What a large statement leaves with the allocator goes back to the system.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Literal

import duckdb
import pyarrow as pa

if sys.platform == "win32":
    resource = None
else:
    import resource


@dataclass(frozen=True)
class Limits:
    """Bounds of one statement: `bytes` counts the values of the kept rows roughly as JSON, `memory` is what the
    process may grow by while the statement runs, in bytes (Linux only; a hard wall only after `dedicate`)."""

    rows: int = 10_000
    seconds: float = 5.0
    bytes: int = 8 << 20
    memory: int = 1 << 30


_POLL, _AWAKE = 0.02, 50
"""Seconds between two looks at the statements that run, and after how many in vain the watch sleeps: to be woken for
each statement would take a good part of the time that it takes."""

_LEFT = 32 << 20
"""Bytes that a statement may leave with the allocator."""


@dataclass(eq=False)
class Watched:
    """A running statement and until when it may run. Bytes of the process: how many may be resident (`ceiling`), were
    so at `first` and at `most`, and those of its `data` at first. `why`: the limit that the statement is past."""

    connection: duckdb.DuckDBPyConnection
    deadline: float
    ceiling: int
    first: int
    data: int
    most: int = 0
    why: Literal["", "time", "memory"] = ""


class _Watchdog:
    """One thread that interrupts every statement past its limits; started when first needed, anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watched: list[Watched] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, connection: duckdb.DuckDBPyConnection, limits: Limits) -> Iterator[Watched]:
        resident, data = memory()
        watched = Watched(connection, time.monotonic() + limits.seconds, resident + limits.memory, resident, data)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="sql-limits", daemon=True)
                self._thread.start()
            self._watched.append(watched)
            self._wake.set()
        try:
            yield watched
        finally:
            # Under the lock: past this point no interrupt can hit the connection's next statement.
            with self._lock:
                self._watched.remove(watched)
            if watched.most > watched.first + _LEFT:
                trim()

    def _watch(self) -> None:
        vain = 0
        while True:
            with suppress(MemoryError, RuntimeError):  # whoever is at the cap must still be stopped
                if vain > _AWAKE:
                    self._wake.wait()
                time.sleep(_POLL)
                with self._lock:
                    vain = 0 if self._watched else vain + 1
                    if not vain:
                        self._look()
                    elif vain > _AWAKE:
                        self._wake.clear()

    def _look(self) -> None:
        now, resident = time.monotonic(), memory()[0]
        for watched in self._watched:
            watched.most = max(watched.most, resident)
            if not watched.why and now >= watched.deadline:
                watched.why = "time"
            if not watched.why and resident > watched.ceiling:
                watched.why = "memory"
            if watched.why:
                # Again and again: an interrupt between two phases of a statement is lost.
                watched.connection.interrupt()


_watchdog = _Watchdog()


def _after_fork() -> None:
    """A forked child has no such thread, may have copied its lock in the locked state, and would read its parent's
    memory."""
    global _watchdog
    _watchdog = _Watchdog()
    _statm.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def watch(connection: duckdb.DuckDBPyConnection, limits: Limits) -> AbstractContextManager[Watched]:
    """Interrupts what runs on `connection` past `limits`; the `why` of what is given then says which."""
    return _watchdog.watch(connection, limits)


_dedicated = False


def dedicate() -> None:
    """Say that this process holds nothing but stores: `run` may then cap its data segment, and Arrow takes memory from
    the system, whose allocator gives it back; its own holds up to ten times of what many small arrays take."""
    global _dedicated
    _dedicated = True
    pa.set_memory_pool(pa.system_memory_pool())


_memory_lock = threading.Lock()
_memory_depth = 0
_memory_before: tuple[int, int] = (-1, -1)


@contextmanager
def capped(used: int, growth: int) -> Iterator[None]:
    """Lets a dedicated process's data segment of `used` bytes grow by `growth` at most while this runs.

    The limit is the process's, so of statements that run side by side the first sets it and the last lifts
    it; a limit that was already tighter stays.
    """
    global _memory_depth, _memory_before
    if not _dedicated or resource is None:
        yield
        return
    with _memory_lock:
        _memory_depth += 1
        if _memory_depth == 1:
            soft, hard = _memory_before = resource.getrlimit(resource.RLIMIT_DATA)
            wanted = used + growth
            if (
                used
                and (soft == resource.RLIM_INFINITY or wanted < soft)
                and (hard == resource.RLIM_INFINITY or wanted <= hard)
            ):
                resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        with _memory_lock:
            _memory_depth -= 1
            if _memory_depth == 0:
                resource.setrlimit(resource.RLIMIT_DATA, _memory_before)


def memory() -> tuple[int, int]:
    """Bytes of this process that are resident, and of its data and stack, as RLIMIT_DATA counts them; 0 where the
    system doesn't say."""
    if resource is None:
        return 0, 0
    try:
        pages, size = os.pread(_statm(), 256, 0).split(), resource.getpagesize()
        return int(pages[1]) * size, int(pages[5]) * size
    except (OSError, ValueError, IndexError, MemoryError):
        return 0, 0


@cache
def _statm() -> int:
    """Linux's account of this process's pages; it stays open, because to open it takes twenty times as long as to
    read it, and a process at its cap can't."""
    return os.open("/proc/self/statm", os.O_RDONLY)


def trim() -> None:
    """Gives what was freed back to the system, where the C library can: else it would look as if it were held."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


__all__ = ["Limits", "Watched", "capped", "dedicate", "memory", "trim", "watch"]
