"""What the store holds, for rules that must cope with missing tables and columns.

Rules: a column that isn't there reads as a typed NULL, so that one statement serves all data; the rules learn the
tables from the catalog alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Result(Protocol):
    """What a query gives back (`hyve.sql.QueryResult`)."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]: ...
    @property
    def total_rows(self) -> int: ...


class Store(Protocol):
    """What the rules need of a store: `.query(sql)` and `.catalog.tables` (`.name`, `.columns[].name`, `.rows`)."""

    @property
    def catalog(self) -> Any: ...
    def query(self, statement: str, /) -> Any: ...


class Schema:
    """The columns of the relations that the rules read, by table; tables without rows count as missing."""

    def __init__(self, store: Store) -> None:
        self.tables: dict[str, frozenset[str]] = {
            table.name: frozenset(column.name for column in table.columns)
            for table in store.catalog.tables
            if table.rows > 0
        }

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there with all of these columns."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def column(self, table: str, name: str, type_: str = "VARCHAR") -> str:
        """The column's name, or a typed NULL."""
        return name if self.has(table, name) else f"NULL::{type_}"

    def first(self, table: str, names: Iterable[str]) -> str | None:
        """The first of several columns that is there."""
        return next((name for name in names if self.has(table, name)), None)

    def timed(self, names: Sequence[str]) -> list[str]:
        """Those of the tables that are there with a time and a service."""
        return [name for name in names if self.has(name, "time", "service")]
