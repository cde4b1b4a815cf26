"""SQL over a request's store: opened, locked, guarded and bounded (H30, H32).

The walls between a model's statement and everything else, from the outside in:
1. `guard` (`hyve.guard`): one statement that only reads, only these tables, only listed functions.
2. `connect`: in memory; no external access, no extensions, no spilling to disk, Python's variables invisible;
   functions that make much work out of a few characters (`repeat`, `range`, `levenshtein`) shadowed by macros
   with bounds (`hyve.functions`).
3. `lock`: no setting can be changed any more.
4. `run`: time, memory, rows and bytes are limited. A statement past its time is interrupted, and so is one
   during which the process grows too far: DuckDB's own memory limit does not count what scalar functions and
   `list()` allocate (under a limit of 500 MB, lists of a hundred million numbers took 2.4 GB).
5. `dedicate`: for a process that runs nothing but statements. Its data segment is capped while one runs (Linux),
   so that an allocation too far fails. A program that embeds the library has other threads, which would fail
   with it: there it is off.

What is left without the last: DuckDB looks for an interrupt between vectors of 2,048 rows, so a list of lists may
end seconds late and gigabytes too high. Whoever serves many requests runs this in a process that can be killed.

A connection runs one statement at a time; callers that share one hold a lock of their own.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import pyarrow as pa

from hyve import cells
from hyve.errors import SqlError, SqlLimit, SqlRefused
from hyve.functions import arm
from hyve.guard import guard, is_dynamic_pivot, short
from hyve.pivots import MAX_VALUES, with_values

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

__all__ = ["Limits", "QueryResult", "connect", "guard", "lock", "run"]


@dataclass(frozen=True)
class QueryResult:
    """What a statement gave back.

    `rows` hold only what JSON can carry: int, float, str, bool, None, list, dict. Times are ISO 8601 text in
    UTC with all their digits (nanoseconds too), NaN and infinities the texts "NaN", "Infinity", "-Infinity";
    decimals are numbers where a double shows the same digits, else text. `total_rows` is the true count, also
    where `rows` was capped. Column names may repeat.
    """

    sql: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total_rows: int
    ms: float

    def records(self) -> list[dict[str, Any]]:
        """Rows as dicts; the second column of the same name becomes `name_2`, and so on."""
        names: list[str] = []
        for name in self.columns:
            unique, n = name, 1
            while unique in names:
                n += 1
                unique = f"{name}_{n}"
            names.append(unique)
        return [dict(zip(names, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Limits:
    """Bounds of one statement: `bytes` counts the values of the kept rows roughly as JSON, `memory` is what the
    process may grow by while the statement runs, in bytes (Linux only; a hard wall only after `dedicate`)."""

    rows: int = 10_000
    seconds: float = 5.0
    bytes: int = 8 << 20
    memory: int = 1 << 30


def connect(memory_limit: str = "1GB", threads: int = 2) -> duckdb.DuckDBPyConnection:
    """A database as `open_database` makes it, with the operators and bounds that `run` counts on."""
    connection = open_database(memory_limit, threads)
    arm(connection)
    return connection


_emptied: deque[tuple[tuple[str, int], duckdb.DuckDBPyConnection]] = deque(maxlen=8)
"""Databases that were used, emptied, and wait for the next request: to open one takes longer than a small request."""


def open_database(memory_limit: str, threads: int) -> duckdb.DuckDBPyConnection:
    """An empty in-memory database that reaches no file, network or extension; for statements of our own.

    Tables can be loaded (`register` an Arrow table, then CREATE TABLE AS) whether it is locked or not. CHECKPOINT
    compresses them; DuckDB does so only in databases that were attached.
    """
    try:
        settings, connection = _emptied.pop()
        if settings == (memory_limit, threads):
            return connection
        connection.close()
    except IndexError:
        pass
    connection = duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "preserve_insertion_order": "true",
            "temp_directory": "",
            "memory_limit": memory_limit,
            "threads": threads,
            "async_threads": 0,  # for files, which it can't reach: eight threads of each database
            # What is freed goes back to the system: the allocator else keeps several times of what small tables take.
            "allocator_flush_threshold": "0MB",
            "allocator_bulk_deallocation_flush_threshold": "0MB",
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    for old, new in (("memory", "attached"), ("attached", "memory")):
        connection.execute(f"ATTACH ':memory:' AS {new} (COMPRESS); USE {new}; DETACH {old}")
    return connection


def release(connection: duckdb.DuckDBPyConnection, memory_limit: str, threads: int) -> None:
    """Empties a database and keeps it for another request; one that can't be emptied is closed."""
    try:
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall():
            quoted = name.replace('"', '""')
            connection.execute(f'DROP TABLE "{quoted}"')
        ((left,),) = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()
    except duckdb.Error:
        left = 1
    if left or len(_emptied) == _emptied.maxlen:
        connection.close()
    else:
        _emptied.append(((memory_limit, threads), connection))


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Freeze the settings of `connection`; there is no way back."""
    connection.execute("SET lock_configuration = true")


def secure(connection: duckdb.DuckDBPyConnection) -> None:
    """`arm` and `lock` a database of `open_database`, unless that was done for an earlier request."""
    ((locked,),) = connection.execute("SELECT current_setting('lock_configuration')").fetchall()
    if not locked:
        arm(connection)
        lock(connection)


def run(
    connection: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str], limits: Limits | None = None
) -> QueryResult:
    """Guard `sql`, run it within `limits`, count all of its rows and keep the first `limits.rows`.

    SqlRefused before anything runs; SqlLimit past the time, memory or size limit; SqlError for DuckDB's own
    errors.
    """
    limits = limits or Limits()
    statement = guard(sql, tables)
    started = time.perf_counter()
    with _watchdog.limit(connection, limits) as watched:
        try:
            with _memory(limits.memory):
                if is_dynamic_pivot(statement):
                    statement = _with_pivot_values(connection, statement, tables)
                columns, types, rows, total = _fetch(connection, statement, limits, watched)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError, RuntimeError) as error:
            raise _failure(error, watched, limits, statement, tables) from None
    ms = (time.perf_counter() - started) * 1000
    return QueryResult(sql, columns, types, rows, total, ms)


_POLL = 0.02
"""Seconds between two looks at the statements that run."""


@dataclass(eq=False)
class _Watched:
    """A running statement, until when, up to how many resident bytes of the process; `why`: the limit it is past."""

    connection: duckdb.DuckDBPyConnection
    deadline: float
    ceiling: float
    why: Literal["", "time", "memory"] = ""


class _Watchdog:
    """One thread that interrupts every statement past its limits; started when first needed, anew after a fork."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._watched: list[_Watched] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, connection: duckdb.DuckDBPyConnection, limits: Limits) -> Iterator[_Watched]:
        """Interrupt `connection` past `limits`; the `why` of what is given then says which."""
        watched = _Watched(connection, time.monotonic() + limits.seconds, _memory_bytes(_RESIDENT) + limits.memory)
        with self._condition:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="sql-limits", daemon=True)
                self._thread.start()
            self._watched.append(watched)
            if len(self._watched) == 1:
                self._condition.notify()
        try:
            yield watched
        finally:
            # Under the lock: past this point no interrupt can hit the connection's next statement.
            with self._condition:
                self._watched.remove(watched)

    def _watch(self) -> None:
        with self._condition:
            while True:
                self._condition.wait(_POLL if self._watched else None)
                now, resident = time.monotonic(), _memory_bytes(_RESIDENT)
                for watched in self._watched:
                    if not watched.why and now >= watched.deadline:
                        watched.why = "time"
                    if not watched.why and resident > watched.ceiling:
                        watched.why = "memory"
                    if watched.why:
                        # Again and again: an interrupt between two phases of a statement is lost.
                        watched.connection.interrupt()


_watchdog = _Watchdog()


def _after_fork() -> None:
    """A forked child has no such thread, and may have copied its lock in the locked state."""
    global _watchdog
    _watchdog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
def _memory(growth: int) -> Iterator[None]:
    """Let a dedicated process's data segment grow by `growth` bytes at most while this runs.

    The limit is the process's, so of statements that run side by side the first sets it and the last lifts
    it; a limit that was already tighter stays.
    """
    global _memory_depth, _memory_before
    if not _dedicated or resource is None:
        yield
        return
    used = _memory_bytes(_DATA)
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


_RESIDENT, _DATA = 1, 5
"""Columns of Linux's /proc/self/statm."""


def _memory_bytes(column: int) -> int:
    """Resident bytes, or bytes of data and stack, of this process; 0 where the system doesn't say."""
    if resource is None:
        return 0
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[column]) * resource.getpagesize()
    except (OSError, ValueError, IndexError, MemoryError):  # at its cap a process can't even open a file
        return 0


def _with_pivot_values(connection: duckdb.DuckDBPyConnection, statement: str, tables: Collection[str]) -> str:
    def values(distinct: str) -> list[str]:
        found = [row[0] for row in connection.sql(guard(distinct, tables)).fetchall() if row[0] is not None]
        if len(found) > MAX_VALUES:
            raise SqlLimit(f"PIVOT would make over {MAX_VALUES} columns; list the values: ON column IN ('a', 'b')")
        return found

    return guard(with_values(statement, values), tables)


# Types that Arrow would lose or garble: they come as text, or by way of JSON where they are nested.
_AS_TEXT = re.compile(r"BLOB|BIT|INTERVAL|BIGNUM|UHUGEINT|TIME WITH TIME ZONE|GEOMETRY.*")
_AS_JSON = re.compile(r"\b(?:BLOB|BIT|INTERVAL|BIGNUM|UHUGEINT|TIME WITH TIME ZONE|GEOMETRY|UNION|VARIANT)\b")
_INTEGERS = ("BIGNUM", "UHUGEINT")


def _fetch(
    connection: duckdb.DuckDBPyConnection, statement: str, limits: Limits, watched: _Watched
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[Any, ...], ...], int]:
    relation = connection.sql(statement)
    if relation is None:
        raise SqlRefused("the statement gives back no rows; write one SELECT")
    columns, types = tuple(relation.columns), tuple(str(kind) for kind in relation.types)
    chosen, decoders = _projection(types)
    if decoders or any(item.startswith("CAST") for item in chosen):
        relation = connection.sql(f"SELECT {', '.join(chosen)} FROM (\n{statement}\n)")
    rows: list[tuple[Any, ...]] = []
    total, left = 0, limits.bytes
    full = False
    at_once = max(1, _CELLS // max(1, len(columns)))
    reader = relation.to_arrow_reader(2048)
    try:
        for batch in reader:
            total += batch.num_rows
            start, stop = 0, min(batch.num_rows, limits.rows - len(rows))
            while start < stop and not full:
                part = _fitting(batch.slice(start, min(at_once, stop - start)), left)
                full = part.num_rows < min(at_once, stop - start)
                start, left = start + part.num_rows, left - part.nbytes
                rows.extend(cells.rows(part, decoders))
                if watched.why:
                    raise duckdb.InterruptException("INTERRUPT")
    finally:
        reader.close()
    if full and not rows:
        raise SqlLimit(f"one row is larger than {limits.bytes} bytes; select fewer columns, or left(column, 1000)")
    return columns, types, tuple(rows), total


_CELLS = 65_536
"""Values that are made into Python between two looks at the limits."""


def _fitting(batch: Any, limit: int) -> Any:
    """As many of the first rows of `batch` as fit into `limit` bytes."""
    low, high = 0, batch.num_rows
    if batch.nbytes <= limit:
        return batch
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if batch.slice(0, middle).nbytes <= limit else (low, middle)
    return batch.slice(0, low)


def _projection(types: tuple[str, ...]) -> tuple[list[str], dict[int, Callable[[Any], Any]]]:
    """The select list that brings every column over Arrow unharmed, and what undoes its casts.

    Columns go by position, because their names may repeat.
    """
    chosen: list[str] = []
    decoders: dict[int, Callable[[Any], Any]] = {}
    for i, kind in enumerate(types):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", kind)
        if _AS_TEXT.fullmatch(bare):
            chosen.append(f"CAST(#{i + 1} AS VARCHAR)")
            if bare in _INTEGERS:
                decoders[i] = int
        elif _AS_JSON.search(bare):
            chosen.append(f"CAST(to_json(#{i + 1}) AS VARCHAR)")
            decoders[i] = json.loads
        else:
            chosen.append(f"#{i + 1}")
    return chosen, decoders


_TOLD = re.compile(
    r"Could not convert string '(\w+\(\) (?:could make|compares) [^']*)'|executing the UDF: \w+: ([^\n]+)"
)
"""Words of our own inside of DuckDB's: of a bounded function (`_unless`), and of an operator's function."""


_HINTS = (
    (
        r"(?s)(?=.*\bTIMESTAMP(?:_NS)?\b(?! WITH))(?=.*TIMESTAMP WITH TIME ZONE)(?:Cannot|No function|Binder)",
        "Times here are UTC and have no zone: write now(), or a cast: TIMESTAMPTZ '...'::TIMESTAMP",
    ),
    (
        r"Unimplemented type for cast \((?:INTERVAL|\w*INT\w*|DOUBLE|DECIMAL\S*) -> TIMESTAMP_NS\)",
        "epoch_ms() of an aggregate takes a time; of an INTERVAL write epoch(...) * 1000, of a number to_timestamp",
    ),
    (r"Unimplemented type for cast \((?:INT64|TIMESTAMP_NS) ->", "Cast the time first: column::TIMESTAMP"),
    (r"Could not convert string '\d{4}-[^']*' to INTERVAL", "Write the time as TIMESTAMP '...'"),
    (r"'(?:sum|quantile\w*|stddev\w*|median)\(INTERVAL", "Take seconds: epoch(b - a), or date_diff('ms', a, b)"),
)
"""What to do about some of DuckDB's errors."""


def _hint(message: str, statement: str) -> str:
    for pattern, advice in _HINTS:
        if re.search(pattern, message):
            return advice
    name = re.search(r'Referenced column "(\w+)" (?:was )?not found', message)
    if name and re.search(rf"\b{name[1]}\b[\s\w,]*\)?\s*->", statement):
        return f"Write the lambda as: lambda {name[1]}: ..."
    return ""


def _failure(error: Exception, watched: _Watched, limits: Limits, statement: str, tables: Collection[str]) -> SqlError:
    told = _TOLD.search(str(error))
    message = short(str(told[1] or told[2]) if told else str(error))
    interrupted = "INTERRUPT" in message.upper() or isinstance(error, duckdb.InterruptException)
    if interrupted and watched.why == "time":
        return SqlLimit(
            f"the statement ran past its limit of {limits.seconds:g} s and was stopped; "
            "filter, aggregate or sample before joining"
        )
    memory = isinstance(error, (MemoryError, duckdb.OutOfMemoryException, pa.ArrowMemoryError))
    memory |= interrupted and watched.why == "memory"
    if memory or re.search(r"out of memory|bad_alloc|allocat\w+ .*fail|fail\w+ to allocate", message, re.I):
        return SqlLimit(
            "the statement needs more memory than it may use; filter or aggregate before joining, "
            "and make no huge texts or lists"
        )
    if isinstance(error, duckdb.CatalogException) and "Table" in message:
        message += f" The tables are: {', '.join(sorted(tables)[:20])}"
    if hint := _hint(str(error), statement):
        return SqlError(f"{hint}. {message.partition(' Candidate functions:')[0]}")
    return SqlError(message or type(error).__name__)
