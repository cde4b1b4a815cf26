"""SQL over a request's store: opened, locked, guarded and bounded (H30, H32).

The walls between a model's statement and everything else, from the outside in:
1. `guard` (`hyve.guard`): one statement that only reads, only these tables, only listed functions.
2. `connect`: in memory; no external access, no extensions, no spilling to disk, Python's variables invisible;
   functions that make much work out of a few characters (`repeat`, `range`, `levenshtein`) shadowed by macros
   with bounds (`hyve.functions`).
3. `lock`: no setting can be changed any more.
4. `run`: time, memory, rows and bytes are limited (`hyve.limits`).
5. `dedicate`: for a process that runs nothing but statements, a hard cap on its memory.

What is left without the last: DuckDB looks for an interrupt between vectors of 2,048 rows, so a list of lists may
end seconds late and gigabytes too high. Whoever serves many requests runs this in a process that can be killed.

A connection runs one statement at a time; callers that share one hold a lock of their own.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from hyve import cells
from hyve.errors import SqlError, SqlLimit, SqlRefused
from hyve.functions import arm
from hyve.guard import Checked, check, guard, is_dynamic_pivot, short
from hyve.limits import Limits, Watched, capped, dedicate, watch
from hyve.pivots import MAX_VALUES, with_values

__all__ = [
    "GIVEN",
    "Limits",
    "QueryResult",
    "borrow",
    "close_idle",
    "connect",
    "counted",
    "dedicate",
    "give_back",
    "guard",
    "load",
    "loading",
    "lock",
    "open_database",
    "run",
]


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


def connect(memory_limit: str = "1GB", threads: int = 2) -> duckdb.DuckDBPyConnection:
    """A database as `open_database` makes it, with the operators and bounds that `run` counts on."""
    connection = open_database(memory_limit, threads)
    arm(connection)
    return connection


def open_database(memory_limit: str, threads: int, *, spare: int | None = 0) -> duckdb.DuckDBPyConnection:
    """An empty in-memory database that reaches no file, network or extension; for statements of our own.

    Tables can be loaded whether it is locked or not. CHECKPOINT compresses them; DuckDB does so only in databases that
    were attached. `spare`: so many bytes that were freed wait until they go back to the system. As many as it likes
    (None), and the allocator keeps several times of what loading takes; none, and a small statement takes three times
    as long, a large one the square of its length, for each time all that is held is looked through.
    """
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
            **({} if spare is None else dict.fromkeys(_THRESHOLDS, f"{spare >> 10}KB")),
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    for old, new in (("memory", "attached"), ("attached", "memory")):
        connection.execute(f"ATTACH ':memory:' AS {new} (COMPRESS); USE {new}; DETACH {old}")
    _given[connection] = given = _Given()
    connection.register(GIVEN, given)
    return connection


GIVEN = "_given"
"""What a statement of `load` calls what it reads. No table of a store has such a name."""


class _Given:
    """What stands behind `GIVEN` while a statement reads it. DuckDB asks for its columns anew each time."""

    source: Any = None

    def __arrow_c_schema__(self) -> object:
        return self._there().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._there().__arrow_c_stream__(requested_schema)

    def _there(self) -> Any:
        return pa.table({"none": pa.nulls(0)}) if self.source is None else self.source


_given: WeakKeyDictionary[duckdb.DuckDBPyConnection, _Given] = WeakKeyDictionary()


def load(connection: duckdb.DuckDBPyConnection, statement: str, source: pa.Table | pa.RecordBatchReader) -> None:
    """Runs a statement of our own, in which `GIVEN` is what `source` holds, on a database of `open_database`. Relations
    and names that are registered for it take a statement or two more."""
    given = _given[connection]
    given.source = source
    try:
        connection.execute(statement)
    finally:
        given.source = None


_loading = 0.0


@contextmanager
def counted() -> Iterator[None]:
    """Has the processor's time of what goes on counted as that of loading tables."""
    global _loading
    began = time.process_time()
    try:
        yield
    finally:
        _loading += time.process_time() - began


def loading() -> float:
    """The processor's seconds that were `counted` so far, of a process that does one thing at a time."""
    return _loading


_THRESHOLDS = "allocator_flush_threshold", "allocator_bulk_deallocation_flush_threshold"


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Freeze the settings of `connection`; there is no way back."""
    connection.execute("SET lock_configuration = true")


_emptied: deque[tuple[str, duckdb.DuckDBPyConnection]] = deque()
"""Locked databases that were used, emptied, and wait for the next request: to open one takes longer than a request."""

_IDLE = 8
"""How many may wait."""


def close_idle() -> None:
    """Closes the databases that wait for small tables: each holds some 2 MB, of which large ones have use."""
    while _emptied:
        with suppress(IndexError):  # another thread took the last one
            _emptied.pop()[1].close()


def borrow(memory_limit: str) -> duckdb.DuckDBPyConnection:
    """An empty database of one thread for small tables, with operators and bounds, locked; `give_back` ends its use.

    DuckDB shares work out by 122,880 rows: a second thread would only be woken up.
    """
    with suppress(IndexError):
        limit, connection = _emptied.pop()
        if limit == memory_limit:
            return connection
        connection.close()
    connection = open_database(memory_limit, 1, spare=None)
    arm(connection)
    lock(connection)
    return connection


def give_back(connection: duckdb.DuckDBPyConnection, memory_limit: str, tables: Iterable[str]) -> None:
    """Empties a database of `borrow` and keeps it for another request, or closes it where that fails. `tables` are all
    that were created in it: only its store can, and tells."""
    try:
        for name in tables:
            connection.execute(f"DROP TABLE {name}")
    except duckdb.Error:
        connection.close()
        return
    _emptied.append((memory_limit, connection))
    if len(_emptied) > _IDLE:
        with suppress(IndexError):  # another thread took the last one
            _emptied.popleft()[1].close()


def run(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    tables: Collection[str],
    limits: Limits | None = None,
    ready: Callable[[Checked], bool] = lambda _: False,
) -> QueryResult:
    """Guard `sql`, run it within `limits`, count all of its rows and keep the first `limits.rows`.

    `ready` is told before it runs what it reads, and says whether its rows are probably few and of plain types.
    SqlRefused before anything runs; SqlLimit past the time, memory or size limit; SqlError for DuckDB's own errors.
    """
    limits = limits or Limits()
    checked = check(sql, tables)
    few = ready(checked)
    statement = checked.text
    started = time.perf_counter()
    with watch(connection, limits) as watched:
        try:
            with capped(watched.data, limits.memory):
                if is_dynamic_pivot(statement):
                    statement = _with_pivot_values(connection, statement, tables)
                columns, types, rows, total = _fetch(connection, statement, limits, watched, few)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError, RuntimeError) as error:
            raise _failure(error, watched, limits, statement, tables) from None
    ms = (time.perf_counter() - started) * 1000
    return QueryResult(sql, columns, types, rows, total, ms)


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
    connection: duckdb.DuckDBPyConnection, statement: str, limits: Limits, watched: Watched, few: bool
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[Any, ...], ...], int]:
    found = _fetch_plain(connection, statement, limits, watched) if few else None
    columns, types, rows, total, full = found or _fetch_arrow(connection, statement, limits, watched)
    if full and not rows:
        raise SqlLimit(f"one row is larger than {limits.bytes} bytes; select fewer columns, or left(column, 1000)")
    return columns, types, tuple(rows), total


_Fetched = tuple[tuple[str, ...], tuple[str, ...], list[tuple[Any, ...]], int, bool]
"""Columns, types, the rows that are kept, the number of all, and whether more had not fitted."""


def _fetch_arrow(connection: duckdb.DuckDBPyConnection, statement: str, limits: Limits, watched: Watched) -> _Fetched:
    """Any rows, however many: those that are not kept are only counted."""
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
    return columns, types, rows, total, full


_PLAIN = re.compile(r"BOOLEAN|U?(?:TINY|SMALL|BIG)INT|U?INTEGER|HUGEINT|DECIMAL\(\d+,\d+\)|FLOAT|DOUBLE|VARCHAR")
"""Types whose values are the same by way of Python and of Arrow."""


def _fetch_plain(
    connection: duckdb.DuckDBPyConnection, statement: str, limits: Limits, watched: Watched
) -> _Fetched | None:
    """Rows of plain types, None where it has others. DuckDB parses and plans a statement twice for Arrow, and parses a
    text twice that it is to execute."""
    (parsed,) = connection.extract_statements(statement)
    connection.execute(parsed)
    try:
        columns = tuple(column[0] for column in connection.description)
        types = tuple(str(column[1]) for column in connection.description)
        if not all(map(_PLAIN.fullmatch, types)):
            return None
        rows: list[tuple[Any, ...]] = []
        total, left = 0, limits.bytes
        at_once = min(2048, max(1, _CELLS // len(columns)))
        while part := connection.fetchmany(at_once):
            total += len(part)
            for row in part[: limits.rows - len(rows)] if left >= 0 else ():
                left -= cells.size(row)
                if left < 0:
                    break
                rows.append(tuple(map(cells.plain, row)))
            if watched.why:
                raise duckdb.InterruptException("INTERRUPT")
        return columns, types, rows, total, left < 0
    finally:
        connection.abort()


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


def _failure(error: Exception, watched: Watched, limits: Limits, statement: str, tables: Collection[str]) -> SqlError:
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
