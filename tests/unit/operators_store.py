"""A locked database as a request has one, and the series that the operators' tests look at."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb

from hyve import sql

MINUTE = "TIMESTAMP_NS '2026-01-01 00:00:00' + to_minutes(i)"


def locked(*tables: str, memory_limit: str = "800MB") -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, once the statements `tables` have run."""
    with sql.connect(memory_limit) as connection:
        for statement in tables:
            connection.execute(statement)
        sql.lock(connection)
        yield connection


def ask(connection: duckdb.DuckDBPyConnection, made: str, statement: str) -> list[dict[str, Any]]:
    """The rows of `statement` over the table `points` that `made` selects from `r(i)`, the numbers from 0 to 99."""
    connection.execute(f"CREATE OR REPLACE TABLE points AS SELECT {made} FROM range(100) r(i)")
    return sql.run(connection, statement, ("points",)).records()


def noise(count: int, seed: int = 1) -> list[float]:
    """Normal noise of 5 around 100."""
    generator = random.Random(seed)
    return [100 + generator.gauss(0, 5) for _ in range(count)]
