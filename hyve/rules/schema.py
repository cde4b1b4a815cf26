"""What the store holds, for rules that must cope with missing tables and columns.

Rules: a column that isn't there reads as a typed NULL, so that one statement serves all data; the rules learn the
tables from the catalog alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Store(Protocol):
    """What the rules need of a store: `.query(sql)`, and `.catalog.tables` with `.name`, `.rows`, `.columns[].name` and
    `.type`."""

    @property
    def catalog(self) -> Any: ...
    def query(self, statement: str, /) -> Any: ...


RELATIONS = ("spans", "log_records", "metric_points")
_TYPES = {
    "time": r"TIMESTAMP.*",
    "service": r"VARCHAR",
    "duration_ms": r"DOUBLE|FLOAT|DECIMAL.*|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?",
    "value": r"DOUBLE|FLOAT|DECIMAL.*|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?",
    "status": r"VARCHAR",
    "kind": r"VARCHAR",
    "body": r"VARCHAR",
}


def _fits(name: str, type_: str) -> bool:
    """Whether a column can be what the rules take it for: a user's own table may have the same names."""
    return name not in _TYPES or re.fullmatch(_TYPES[name], type_) is not None


class Schema:
    """The columns of the relations that the rules read, by table; tables without rows count as missing.

    `unfit` names the columns that can't be used because they hold something else than their names say.
    """

    def __init__(self, store: Store) -> None:
        self.tables: dict[str, frozenset[str]] = {
            table.name: frozenset(column.name for column in table.columns if _fits(column.name, column.type))
            for table in store.catalog.tables
            if table.rows > 0
        }
        self.unfit: tuple[str, ...] = tuple(
            f"{table.name}.{column.name} ({column.type})"
            for table in store.catalog.tables
            if table.name in RELATIONS and table.rows > 0
            for column in table.columns
            if not _fits(column.name, column.type)
        )

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
