"""A store built straight from relations, for the rules' tests: the flattening of the product's store without the
JSON text, so that hundreds of incidents load in a minute. Queries run through `hyve.sql`, guard and limits included.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hyve import sql
from hyve.formats import TIME_KEYS, Relations


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    rows: int


@dataclass(frozen=True)
class Catalog:
    tables: tuple[Table, ...]


class FixtureStore:
    """`.catalog.tables` and `.query(sql)` over relations."""

    def __init__(self, relations: Relations) -> None:
        self._connection = sql.connect()
        tables = []
        for name, rows in relations.items():
            columns = _columns(rows)
            if not columns:
                continue
            self._connection.register("loading", pa.table(columns))
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM loading')
            self._connection.unregister("loading")
            described = self._connection.execute(f'DESCRIBE "{name}"').fetchall()
            tables.append(Table(name, tuple(Column(label, kind) for label, kind, *_ in described), len(rows)))
        self.catalog = Catalog(tuple(tables))
        sql.lock(self._connection)

    def query(self, statement: str) -> sql.QueryResult:
        return sql.run(self._connection, statement, [table.name for table in self.catalog.tables])

    def close(self) -> None:
        self._connection.close()


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, pa.Array]:
    found: dict[str, list[Any]] = {}
    kept = ("resource", "labels")  # the rules never read the attributes
    shared: dict[int, list[tuple[str, Any]]] = {}
    for number, row in enumerate(rows):
        for key, value in row.items():
            if type(value) is dict:
                if key not in kept:
                    continue
                pairs = shared.get(id(value))
                if pairs is None:
                    pairs = shared[id(value)] = [
                        (f"{key}_" + "".join(c if c.isalnum() else "_" for c in inner), item)
                        for inner, item in value.items()
                    ]
            else:
                pairs = [(key, value)]
            for column, item in pairs:
                values = found.get(column)
                if values is None:
                    values = found[column] = []
                if len(values) < number:
                    values.extend([None] * (number - len(values)))
                values.append(item)
    result = {}
    for column, values in found.items():
        values.extend([None] * (len(rows) - len(values)))
        if column in TIME_KEYS:
            result[column] = pa.array(values, pa.int64()).cast(pa.timestamp("ns"))
            continue
        try:
            result[column] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            result[column] = pa.array(
                [item if item is None or type(item) is str else json.dumps(item) for item in values],
                pa.string(),
            )
        if pa.types.is_null(result[column].type):
            result[column] = result[column].cast(pa.string())
    return result
