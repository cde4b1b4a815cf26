"""What is said of a table's columns: figures over all rows, computed in SQL (H14).

Rules: every figure is exact and of all rows; a few statements a table, however many columns it has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hyve import rank
from hyve.store import Column, Datastore, Table, quote

_COLUMNS = 80
SMALL = 64
"""A dimension of up to this many values has all of them named."""
SERIES = "series_idx"
_NUMERIC = re.compile(r"(TINY|SMALL|BIG|HUGE|U\w*)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*", re.IGNORECASE)
_STEP_ROWS = 200_000


@dataclass(frozen=True)
class Step:
    """Values at a fixed distance: `size` (seconds for times), and how many distances are larger (`gaps`)."""

    size: float
    gaps: int


@dataclass(frozen=True)
class ColumnView:
    """What is said of a column: `values` are (value, rows) of a small dimension, largest first.

    `low`, `high` and `mean` are of the finite values; `odd` counts the others (NaN and infinities). `samples` are its
    first three and last two values, where they aren't null.
    """

    column: Column
    rows: int
    distinct: int
    nulls: int
    low: Any
    high: Any
    mean: float | None
    odd: int
    values: tuple[tuple[str, int], ...] = ()
    samples: tuple[Any, ...] = ()
    step: Step | None = None

    @property
    def numeric(self) -> bool:
        """Whether its values can be averaged."""
        return numeric(self.column)

    @property
    def time(self) -> bool:
        """Whether its values are instants."""
        return "TIMESTAMP" in self.column.type

    @property
    def nested(self) -> bool:
        """Whether its values are lists."""
        return self.column.type.endswith("[]")

    @property
    def complete(self) -> bool:
        """Whether `values` names all there are."""
        return bool(self.values) and len(self.values) == self.distinct

    @property
    def identifier(self) -> bool:
        """Whether it looks like an id: long, random, almost never the same, and no name of anything."""
        if self.distinct <= max(20, self.rows // 4) or re.search("name|host|pod", self.column.name, re.IGNORECASE):
            return False
        sample = next((value for value in self.samples if isinstance(value, str)), "")
        return bool(re.fullmatch(r"[0-9a-fA-F-]{12,}|(?=.*\d)[A-Za-z0-9+/=_-]{20,}", sample))


@dataclass(frozen=True)
class Profile:
    """The views of a table's columns, and the names of the columns that were left out because there are so many."""

    table: Table
    views: tuple[ColumnView, ...] = ()
    skipped: tuple[str, ...] = field(default=())


def numeric(column: Column) -> bool:
    """Whether a column's values can be averaged."""
    return bool(_NUMERIC.fullmatch(column.type))


def _measured(column: Column) -> bool:
    return numeric(column) and column.name != SERIES


def structural(column: Column) -> bool:
    """Whether a column is a key that the store made."""
    names = ("_id", "_row_id", "_line", "series_idx")
    return column.path == "" and (column.name in names or column.name.startswith("parent_"))


def free_text(table: Table) -> bool:
    """Whether a table holds lines of text."""
    return [column.name for column in table.columns if not structural(column)][:4] == _LINE_COLUMNS


_LINE_COLUMNS = ["line", "text", "template", "variables"]


def told(table: Table) -> list[Column]:
    """The columns that are described: no keys, nor texts whose numbers or times stand beside them.

    The number of a row's series is described where there are a few series of many rows.
    """
    hidden = {column.typed for column in table.columns if column.typed}
    if free_text(table):
        hidden.add("variables")
    few = 2 <= table.series <= SMALL and table.series * 3 <= table.rows
    return [
        column
        for column in table.columns
        if (few and column.name == SERIES) or not (structural(column) or column.name in hidden)
    ]


def profile(store: Datastore, table: Table) -> Profile:
    """The figures of a table's columns, in the order of the columns."""
    columns = told(table)
    columns, skipped = columns[:_COLUMNS], columns[_COLUMNS:]
    if not columns or not table.rows:
        return Profile(table, (), tuple(column.name for column in columns + skipped))
    figures = _figures(store, table, columns)
    counted = [
        (column, 20 if column.name == "template" else SMALL)
        for column, (distinct, *_) in zip(columns, figures, strict=True)
        if distinct and (column.name == "template" or distinct <= (12 if _measured(column) else SMALL))
    ]
    values = _values(store, table, counted)
    samples = _samples(store, table, columns)
    views = []
    for column, (distinct, filled, low, high, mean, odd), seen in zip(columns, figures, samples, strict=True):
        step = None
        if distinct > 10 and table.rows <= _STEP_ROWS and ("TIMESTAMP" in column.type or column.type == "BIGINT"):
            step = _step(store, table, column)
        nulls = table.rows - filled
        counts = values.get(column.name, ())
        views.append(ColumnView(column, table.rows, distinct, nulls, low, high, mean, odd, counts, seen, step))
    return Profile(table, tuple(views), tuple(column.name for column in skipped))


def means(store: Datastore, table: Table, group: str, measure: Column, parent: str = "") -> list[tuple[str, float]]:
    """The mean of a measure's finite values in each group, in the order of the groups' first rows.

    `group` is a column of the table or, where `parent` is given, of its parent table.
    """
    value = f"t.{quote(measure.name)}::DOUBLE"
    join, label = "", f"t.{quote(group)}"
    if parent:
        join, label = f" JOIN {quote(parent)} AS p ON t.{quote(f'parent_{parent}')} = p._id", f"p.{quote(group)}"
    return store.fetch(
        f"SELECT {label}::VARCHAR, avg({value}) FILTER (isfinite({value})) AS m FROM {quote(table.name)} AS t{join}"
        f" WHERE {label} IS NOT NULL GROUP BY 1 HAVING m IS NOT NULL ORDER BY min(t.rowid)"
    )


def shown(column: Column) -> str:
    """SQL of a column's value as it is shown: times to the digit, everything else as it is."""
    name = quote(column.name)
    return f"{name}::VARCHAR" if "TIME" in column.type or "DATE" in column.type else name


def _figures(store: Datastore, table: Table, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    parts = []
    for column in columns:
        name = quote(column.name)
        nested = column.type.endswith("[]")
        finite = f" FILTER (isfinite({name}::DOUBLE))" if numeric(column) else ""
        mean = f"avg({name}::DOUBLE){finite}" if numeric(column) else "NULL"
        odd = f"count(*) FILTER (NOT isfinite({name}::DOUBLE))" if numeric(column) else "0"
        cast = "::VARCHAR" if "TIME" in column.type or "DATE" in column.type else ""
        low, high = ("NULL" if nested else f"({edge}({name}){finite}){cast}" for edge in ("min", "max"))
        parts.append(f"count({name}), {low}, {high}, {mean}, {odd}")
    (figures,) = store.fetch(f"SELECT {', '.join(parts)} FROM {quote(table.name)}")
    # One column at a time: DuckDB holds the hash tables of all distinct counts of a statement at once.
    counts = " UNION ALL ".join(
        f"SELECT {i} AS i, count(DISTINCT {quote(column.name)}) FROM {quote(table.name)}"
        for i, column in enumerate(columns)
    )
    distinct = [count for _, count in store.fetch(f"{counts} ORDER BY i")]
    return [(distinct[i], *figures[5 * i : 5 * i + 5]) for i in range(len(columns))]


def _values(
    store: Datastore, table: Table, columns: Sequence[tuple[Column, int]]
) -> dict[str, tuple[tuple[str, int], ...]]:
    if not columns:
        return {}
    selects = " UNION ALL ".join(
        f"(SELECT {i} AS i, {quote(column.name)}::VARCHAR AS v, count(*) AS n FROM {quote(table.name)}"
        f" WHERE {quote(column.name)} IS NOT NULL GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT {limit})"
        for i, (column, limit) in enumerate(columns)
    )
    found: dict[str, list[tuple[str, int]]] = {}
    for i, value, count in store.fetch(f"SELECT * FROM ({selects}) ORDER BY i, n DESC, v"):
        found.setdefault(columns[i][0].name, []).append((value, count))
    return {name: tuple(values) for name, values in found.items()}


def _samples(store: Datastore, table: Table, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    rows = store.fetch(
        f"SELECT {', '.join(map(shown, columns))} FROM {quote(table.name)}"
        f" WHERE rowid < 3 OR rowid >= {max(3, table.rows - 2)} ORDER BY rowid"
    )
    return [tuple(value for value in column if value is not None) for column in zip(*rows, strict=True)]


def _step(store: Datastore, table: Table, column: Column) -> Step | None:
    """The distance at which almost all values of a column stand, if there is one."""
    time = "TIMESTAMP" in column.type
    value = f"epoch_ns({quote(column.name)})" if time else quote(column.name)
    ((size, alike, larger, total),) = store.fetch(
        f"WITH d AS (SELECT v::HUGEINT - lag(v) OVER (ORDER BY v) AS d FROM (SELECT DISTINCT {value} AS v FROM"
        f" {quote(table.name)} WHERE {quote(column.name)} IS NOT NULL)), m AS (SELECT mode(d) AS m FROM d)"
        " SELECT any_value(m), count(*) FILTER (d = m), count(*) FILTER (d > m), count(d) FROM d, m"
    )
    if not total or alike + larger < total or larger * 20 > total:
        return None
    return Step(int(size) / 1e9 if time else int(size), larger)


ENTITIES = (
    "service",
    "name",
    "namespace",
    "instance",
    "pod",
    "host",
    "metric",
    "resource",
    "container",
    "node",
    "job",
)


def entity_rank(view: ColumnView) -> int:
    """How much a small dimension reads like who or what the rows are about: lower is more."""
    if view.column.name == SERIES:
        return -1
    named = set(rank.words(view.column.name))
    return next((i for i, word in enumerate(ENTITIES) if word in named), len(ENTITIES))


def names_entities(view: ColumnView) -> bool:
    """Whether a column's few values are who or what the rows are about."""
    return is_dimension(view) and entity_rank(view) < len(ENTITIES)


def is_dimension(view: ColumnView) -> bool:
    """Whether a column has few values, all of them known, that can part the rows."""
    return (view.column.type == "VARCHAR" or view.column.name == SERIES) and view.complete and view.distinct > 1


def is_measure(view: ColumnView) -> bool:
    """Whether averages of a column say anything: no ids, codes, positions, or times."""
    if not view.numeric or view.distinct <= 12 or view.step is not None or view.column.name in ("line", SERIES):
        return False
    if {"port", "pid", "id", "code", "line", "lineno"}.intersection(rank.words(view.column.name)):
        return False
    return not (isinstance(view.low, int) and view.low > 10**9 and view.distinct > view.rows // 20)
