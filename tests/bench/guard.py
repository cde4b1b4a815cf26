"""What the guard lets through and what it costs, as Markdown: `python -m tests.bench.guard [--rounds N]`.

Sets: the hostile statements (all must fail, of those without end none may run long past its limit), the harmless ones
(all must run), and the published text-to-SQL development sets of HYVE_CORPUS, translated from SQLite's dialect over
empty tables (what DuckDB runs bare must run guarded).

Overhead: milliseconds of the processor for `sql.run` above those of the bare DuckDB query with its rows fetched, for
the harmless statements that take under 20 ms bare, in turns, the best of N rounds for each: of a statement that was
never seen before, and of one that was guarded just before; `--slowest N` names those that it costs most. Statements
without end run as in a process of a store, with its data segment capped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

from hyve import guard, sql
from hyve.errors import SqlError, SqlRefused
from tests.unit import statements

MOST = 3.0
"""Most milliseconds above the bare query, at the median."""

LATE = 3.0
"""Most seconds that a statement may run past its limit: DuckDB looks for an interrupt between vectors."""

_LIMITS = sql.Limits(seconds=0.5, memory=300 << 20)


def main() -> int:
    """Prints the tables; 1 if a figure is out of bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slowest", type=int, default=0, metavar="N")
    options = parser.parse_args()
    good = _overhead(options.rounds, options.slowest)
    print()
    return 0 if _sets() & good else 1


def _overhead(rounds: int, slowest: int) -> bool:
    connection = statements.store()
    costs: list[tuple[float, str]] = []
    again: list[float] = []
    bare_times: list[float] = []
    for statement in statements.harmless():
        bare = ours = second = float("inf")
        for _ in range(rounds):
            before = time.process_time()
            try:
                connection.sql(statement).fetchall()
            except (duckdb.Error, AttributeError):  # what only runs once the guard has rewritten it
                break
            guard._checked.cache_clear()
            guard._trees.clear()
            middle = time.process_time()
            sql.run(connection, statement, statements.TABLES)
            last = time.process_time()
            sql.run(connection, statement, statements.TABLES)
            bare, ours = min(bare, middle - before), min(ours, last - middle)
            second = min(second, time.process_time() - last)
        if bare < 0.02:
            costs.append(((ours - bare) * 1000, statement))
            again.append((second - bare) * 1000)
            bare_times.append(bare * 1000)
    connection.close()
    differences = [cost for cost, _ in costs]
    p50, p95 = (_percentile(differences, share) for share in (0.5, 0.95))
    print("| statements | bare p50, ms | guarded above bare: p50, ms | p95, ms | seen before: p50, ms |")
    print("|---:|---:|---:|---:|---:|")
    half = _percentile(again, 0.5)
    print(f"| {len(differences)} | {_percentile(bare_times, 0.5):.2f} | {p50:.2f} | {p95:.2f} | {half:.2f} |")
    for cost, statement in sorted(costs, reverse=True)[:slowest]:
        print(f"- {cost:.2f} ms: `{statement}`")
    return bool(p50 <= MOST)


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _sets() -> bool:
    print("| set | statements | ran | refused by the guard | failed otherwise | longest past its limit, s |")
    print("|---|---:|---:|---:|---:|---:|")
    sql.dedicate()
    connection = statements.store("400MB")
    good = True
    for name in ("hostile", "endless"):
        texts = [text.replace("{secret}", "/etc/hostname") for text, _ in statements.hostile(name)]
        ran, refused, failed, late = _run(connection, texts)
        good &= ran == 0 and late <= LATE
        print(f"| {name} | {len(texts)} | {ran} | {refused} | {failed} | {late:.1f} |")
    texts = statements.harmless()
    ran, refused, failed, late = _run(connection, texts)
    good &= ran == len(texts)
    print(f"| harmless | {len(texts)} | {ran} | {refused} | {failed} | {late:.1f} |")
    connection.close()
    corpus = os.environ.get("HYVE_CORPUS", "")
    for name in ("spider", "bird", "cspider") if corpus else ():
        found = published(Path(corpus) / "text2sql", name)
        good &= found[0] == found[1]
        print(f"| {name}, of those that run bare | {' | '.join(map(str, found))} | 0.0 |")
    return good


def _run(connection: duckdb.DuckDBPyConnection, texts: list[str], tables: Any = statements.TABLES) -> tuple[Any, ...]:
    ran = refused = failed = 0
    late = 0.0
    for text in texts:
        before = time.perf_counter()
        try:
            sql.run(connection, text, tables, _LIMITS)
            ran += 1
        except SqlRefused:
            refused += 1
        except SqlError:
            failed += 1
        late = max(late, time.perf_counter() - before - _LIMITS.seconds)
    return ran, refused, failed, late


_TYPES = {"number": "DOUBLE", "integer": "BIGINT", "real": "DOUBLE", "date": "DATE", "datetime": "TIMESTAMP"}


def published(folder: Path, name: str) -> tuple[int, int, int, int]:
    """Of the statements of a text-to-SQL set that DuckDB runs bare: all, those that ran, were refused, failed."""
    schemas = {schema["db"]: schema["tables"] for schema in _lines(folder / f"{name}-schemas.jsonl.gz")}
    texts: dict[str, list[str]] = {}
    for entry in _lines(folder / f"{name}-dev.jsonl.gz"):
        texts.setdefault(entry["db"], []).append(sqlglot.transpile(entry["sql"], read="sqlite", write="duckdb")[0])
    total = [0, 0, 0, 0]
    for database, asked in texts.items():
        connection = sql.connect()
        for table in schemas[database]:
            columns = ", ".join(
                f'"{column["name"]}" {_TYPES.get(column["type"], "VARCHAR")}' for column in table["columns"]
            )
            connection.execute(f'CREATE TABLE "{table["name"]}" ({columns})')
        sql.lock(connection)
        runnable = []
        for text in asked:
            try:
                connection.execute(text).fetchall()
            except duckdb.Error:
                continue
            runnable.append(text)
        found = (len(runnable), *_run(connection, runnable, [table["name"] for table in schemas[database]])[:3])
        total = [a + b for a, b in zip(total, found, strict=True)]
        connection.close()
    return total[0], total[1], total[2], total[3]


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


if __name__ == "__main__":
    raise SystemExit(main())
