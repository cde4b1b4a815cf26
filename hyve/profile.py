"""What is said of a table's columns: figures over all rows (H14).

Rules: every figure is exact, of all rows, and what SQL says of them too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.catalog import Column, Table
from hyve.columns import Codes, Columns, Values, nested
from hyve.firstlook import most_telling
from hyve.numbered import SMALL, is_numbered, last_word, names_numbered

_PROFILED = 480
"""So many columns of a table, those that tell most, are described before all else is said."""
SERIES = "series_idx"
_NUMERIC = re.compile(r"(TINY|SMALL|BIG|HUGE|U\w*)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*", re.IGNORECASE)
_HEAVIEST, _PART, _HEAVY = 3, 10, 5
"""So many values at most are told that one of so many rows has, and so many times as many as the mean value."""
NONE = "(none)"
"""What rows are of that have no value by which rows are parted."""
_STEP_ROWS, _ENTITIES = 200_000, 6
_UNEVEN = 2
"""Times some of which have so many times as many rows as others are of events, however far they are apart."""
_NANOSECONDS = 1e9
"""Times of the store are counted in them."""


@dataclass(frozen=True)
class Step:
    """Values at a fixed distance: `size` (seconds for times), and how many distances are larger (`gaps`)."""

    size: float
    gaps: int


@dataclass(frozen=True)
class ColumnView:
    """What is said of a column: `values` are (value, rows) of a small dimension, largest first.

    `low`, `high` and `mean` are of the finite values; `odd` counts the others (NaN and infinities). `samples` are its
    first three and last two values, where they aren't null. `same` names another column that has the same value in
    every row, or one of whose values the expression `spelled` makes these. `heavy` are (value, rows) of a large column
    that far more rows have than others. `numbered`: its whole numbers are who or what the rows are about.
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
    same: str = ""
    heavy: tuple[tuple[str, int], ...] = ()
    spelled: str = ""
    numbered: bool = False

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
        return nested(self.column)

    @property
    def complete(self) -> bool:
        """Whether `values` names all there are."""
        return bool(self.values) and len(self.values) == self.distinct

    @cached_property
    def identifier(self) -> bool:
        """Whether it looks like an id: long, random, almost never the same (or many that are called ids), and no name
        of anything."""
        called = self.distinct > SMALL and last_word(self.column.name) == "id"
        if (self.distinct <= max(20, self.rows // 4) and not called) or _NAMING.search(self.column.name):
            return False
        samples = [value for value in self.samples if isinstance(value, str)]
        like = sum(bool(_IDENTIFIER.fullmatch(value)) for value in (samples if called else samples[:1]))
        return like * 2 > (len(samples) if called else 0)


_NAMING = re.compile("name|host|pod", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[0-9a-fA-F-]{12,}|(?=.*\d)[A-Za-z0-9+/=_-]{20,}")


@dataclass(frozen=True)
class Profile:
    """The views of a table's columns, and where they were read from."""

    columns: Columns
    views: tuple[ColumnView, ...]

    @property
    def table(self) -> Table:
        """The table."""
        return self.columns.table


def numeric(column: Column) -> bool:
    """Whether a column's values can be averaged."""
    return _numeric(column.type)


@lru_cache(maxsize=256)
def _numeric(kind: str) -> bool:
    return bool(_NUMERIC.fullmatch(kind))


def _measured(column: Column) -> bool:
    return numeric(column) and column.name != SERIES


def structural(column: Column) -> bool:
    """Whether a column is a key that the store made."""
    return column.path == "" and (column.name in _KEYS or column.name.startswith("parent_"))


_KEYS = frozenset({"_id", "_row_id", "_line", SERIES})


def free_text(table: Table) -> bool:
    """Whether a table holds lines of text."""
    names = (column.name for column in table.columns if not structural(column))
    return list(islice(names, len(_LINE_COLUMNS))) == _LINE_COLUMNS


_LINE_COLUMNS = ["line", "text", "template", "variables"]


def told(table: Table) -> list[Column]:
    """The columns that are described: no keys, nor texts whose numbers or times stand beside them, nor the numbers of
    texts that are names.

    The number of a row's series is described where there are several of several rows each.
    """
    hidden = {column.name if column.names else column.typed for column in table.columns if column.typed}
    if free_text(table):
        hidden.update(("variables", "template") if table.rows == 1 else ("variables",))
    several = table.series >= 2 and table.series * 3 <= table.rows
    return [
        column
        for column in table.columns
        if (column.path and column.name not in hidden)
        or (several and column.name == SERIES)
        or not (structural(column) or column.name in hidden)
    ]


def profile(columns: Columns, words: Collection[str] = ()) -> Profile:
    """The figures of a table's columns in their order: of those that tell most where there are very many, and of those
    that have `words` of the question in their names."""
    return Profile(columns, views_of(columns, most_telling(columns, told(columns.table), _PROFILED, words)))


def views_of(columns: Columns, some: Iterable[Column]) -> tuple[ColumnView, ...]:
    """The figures of some of a table's columns; none where it has no rows."""
    views: list[ColumnView] = []
    for column in some if columns.table.rows else ():
        views.append(_view(columns, column, views))
    return tuple(views)


def entities(columns: Columns) -> list[ColumnView]:
    """The views of the columns of a few values that tell who or what the rows are about."""
    named = [
        column
        for column in (told(columns.table) if columns.table.rows else ())
        if column.type == "VARCHAR" and not rank.name_words(column.name).isdisjoint(ENTITIES)
    ][:_ENTITIES]
    columns.load([column.name for column in named])
    found: list[ColumnView] = []
    for column in named:
        if 0 < len(columns.coded(column.name)[1]) <= SMALL:
            found.append(_view(columns, column, found))
    return [view for view in found if not view.same]


@dataclass(frozen=True)
class Kinds:
    """Of which rows a table's `measure` may be averaged: those whose `column` says `name`; its `parts` never are."""

    column: str
    name: str
    measure: str
    parts: tuple[str, ...]
    rows: NDArray[np.bool_]

    @property
    def all(self) -> bool:
        """Whether all rows are of the kind."""
        return bool(self.rows.all())


def holds_metrics(table: Table) -> bool:
    """Whether a table's rows are points of metrics."""
    return table.kind == "relation" and table.name == "metric_points"


def kinds(columns: Columns) -> Kinds | None:
    """Which points of metrics are gauges: a mean of counts that add up, or of parts of histograms, says nothing."""
    if not holds_metrics(columns.table):
        return None
    codes, values = columns.coded("kind")
    gauges = [i for i, value in enumerate(values.shown()) if value == "gauge"]
    return Kinds("kind", "gauge", "value", ("count", "sum", "min", "max"), np.isin(codes, gauges))


def means(
    columns: Columns,
    group: str,
    measure: str,
    parent: Columns | None = None,
    only: NDArray[np.bool_] | None = None,
) -> list[tuple[str, float]]:
    """The mean of a measure's finite values in each group, in the order of the groups' first rows; last those of none.

    `group` is a column of the table or, where `parent` is given, of its parent table; `only`: of these rows.
    """
    codes, labels = (columns if parent is None else parent).coded(group)
    if parent is not None:
        above = columns.array(f"parent_{parent.table.name}").to_numpy(zero_copy_only=False)
        codes = codes[above]
    numbers, there = columns.floats(measure)
    used = there & np.isfinite(numbers)
    if only is not None:
        used &= only
    others = numbers[used & (codes < 0)]
    used &= codes >= 0
    if not used.all():
        codes, numbers = codes[used], numbers[used]
    counts = np.bincount(codes, minlength=len(labels))
    first = np.zeros(len(labels), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    found = np.flatnonzero(counts)
    with np.errstate(over="ignore"):
        averages: NDArray[np.float64] = np.bincount(codes, numbers, len(labels))[found] / counts[found]
    if not np.isfinite(averages).all():  # the sums are beyond doubles, the means are not
        averages = np.bincount(codes, numbers / counts[codes], len(labels)).astype(np.float64)[found]
    texts = labels.shown()
    of_all = [(text_of(texts[found[i]]), float(averages[i])) for i in np.argsort(first[found], kind="stable")]
    return [*of_all, *([(NONE, float((others / len(others)).sum()))] if of_all and len(others) else [])]


def _view(columns: Columns, column: Column, earlier: Sequence[ColumnView]) -> ColumnView:
    rows = columns.table.rows
    codes, values, nulls, counts = columns.counted(column.name)
    low = high = mean = step = None
    odd = 0
    finite = values
    if numeric(column) and len(values):
        numbers = values.numbers()
        proper = np.isfinite(numbers)
        odd = 0 if proper.all() else int(counts[~proper].sum())
        finite = values.only(proper) if odd else values
    if len(finite) and not nested(column):
        low, high = finite.edges()
    if numeric(column) and len(finite) and not names_codes(column.name) and not names_instants(column.name, low):
        mean = _mean(numbers[proper], counts[proper]) if odd else _mean(numbers, counts)
    # Each number as often as the others: durations of 0 to 99 ms are no count from 0 to 99.
    time = "TIMESTAMP" in column.type
    whole = column.type in ("BIGINT", "INTEGER") and column.name != SERIES
    numbered = whole and is_numbered(column.name, codes, counts)
    mean = None if numbered and names_numbered(column.name) else mean
    counts_on = whole and not numbered
    if len(values) > 10 and rows <= _STEP_ROWS and (time or (counts_on and counts.min() == counts.max())):
        step = _step(values.integers(), time) if not time or _evenly(counts) else None
    many = 12 if _measured(column) and not (numbered or names_codes(column.name)) else SMALL
    few = column.name == "template" or len(values) <= many
    return ColumnView(
        column,
        rows,
        len(values),
        nulls,
        low,
        high,
        mean,
        odd,
        _largest(values, counts, 20 if column.name == "template" else SMALL) if few else (),
        tuple(_samples(columns, column.name)),
        step,
        _same(columns, codes, values, earlier, nulls),
        () if few or time or step is not None or nested(column) or column.name == SERIES else _heavy(values, counts),
        numbered=numbered,
    )


def _mean(numbers: NDArray[np.float64], counts: NDArray[np.int64]) -> float | None:
    total = int(counts.sum())
    if not total:
        return None
    with np.errstate(all="ignore"):
        mean = float((numbers * counts).sum() / total)
    return mean if np.isfinite(mean) else float((numbers * (counts / total)).sum())


def _largest(values: Values, counts: NDArray[np.int64], most: int) -> tuple[tuple[str, int], ...]:
    """The commonest values as text, with their rows; of equally common ones the first by text."""
    if len(counts) <= most:
        pairs = list(zip(map(text_of, values.shown()), counts.tolist(), strict=True))
    else:
        places = np.flatnonzero(counts >= np.partition(counts, -most)[-most])
        pairs = list(zip(map(text_of, values.shown(places)), counts[places].tolist(), strict=True))
    pairs.sort()
    pairs.sort(key=itemgetter(1), reverse=True)
    return tuple(pairs[:most])


def _heavy(values: Values, counts: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    """The few values that a good part of the rows have each, and many times as many as the usual value has."""
    rows = int(counts.sum())
    if not len(counts) or int(counts.max()) * _PART < rows or int(counts.max()) * len(counts) < _HEAVY * rows:
        return ()
    found = _largest(values, counts, _HEAVIEST)
    return tuple(pair for pair in found if pair[1] * _PART >= rows and pair[1] * len(counts) >= _HEAVY * rows)


def text_of(value: Any) -> str:
    """A value as DuckDB casts it to text, but for the zeros that a decimal's type adds."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    return format(value, "f") if type(value) is Decimal else str(value)


def _samples(columns: Columns, name: str) -> list[Any]:
    rows = columns.table.rows
    places = [0, 1, 2, rows - 2, rows - 1] if rows >= 5 else range(rows)
    return [value for value in columns.cells(name, places) if value is not None]


def _same(columns: Columns, codes: Codes, values: Values, earlier: Sequence[ColumnView], nulls: int) -> str:
    """The earlier column with the same value in every row, if there is one; constants say it better by themselves."""
    if len(values) < 2 or not values.texts:
        return ""
    for view in earlier:
        if view.distinct == len(values) and view.nulls == nulls and view.column.type == "VARCHAR" and not view.same:
            others, known = columns.coded(view.column.name)
            if np.array_equal(others, codes) and known.same(values):
                return view.column.name
    return ""


def _evenly(counts: NDArray[np.int64]) -> bool:
    """Whether most rows have a value that as many others have: times of measurements, not of events."""
    if counts.max() < _UNEVEN * counts.min():
        return True
    ordered = np.sort(counts)
    few, many = ordered[np.searchsorted(np.cumsum(ordered), [ordered.sum() * 0.1, ordered.sum() * 0.9])].tolist()
    return bool(many < _UNEVEN * few)


def _step(numbers: NDArray[np.int64], time: bool) -> Step | None:
    """The distance at which almost all values of a column stand, if there is one; that of times is in nanoseconds."""
    ordered = np.sort(numbers).view(np.uint64)
    distances = ordered[1:] - ordered[:-1]
    size = int(distances.min())
    larger = len(distances) - int(np.count_nonzero(distances == size))
    if larger * 20 > len(distances):
        return None
    return Step(size / _NANOSECONDS if time else size, larger)


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
    return _entity_rank(view.column.name)


@lru_cache(maxsize=4096)
def _entity_rank(name: str) -> int:
    if name == SERIES:
        return -1
    named = rank.name_words(name)
    return next((i for i, word in enumerate(ENTITIES) if word in named), len(ENTITIES))


def names_entities(view: ColumnView) -> bool:
    """Whether a column's few values are who or what the rows are about."""
    return is_dimension(view) and entity_rank(view) < len(ENTITIES)


def listed(view: ColumnView) -> bool:
    """Whether saying a column's values says more than its range or its first and last ones."""
    if not view.values or view.identifier:
        return False
    if view.time and view.distinct > 5:
        return False
    once = all(count == 1 for _, count in view.values)
    if once and any(len(value) > 40 for value, _ in view.values):
        return False  # the rows say it all
    return not once or view.distinct <= 12 or names_entities(view) or view.column.name == "_key"


def is_dimension(view: ColumnView) -> bool:
    """Whether a column has few values, all of them known, that can part the rows."""
    parts = view.column.type == "VARCHAR" or view.column.name == SERIES or view.numbered
    return parts and view.complete and view.distinct > 1


def parts_rows(view: ColumnView) -> bool:
    """Whether a dimension's values have several rows each."""
    return is_dimension(view) and view.distinct * 3 <= view.rows


_CODES = rank.name_words(
    """
    code epoch errno id index leader line lineno opcode p pid port ppid priority qclass qtype rcode severity signal
    status task tid uid version
    """
)
_QUANTITIES = frozenset({"available", "bytes", "free", "heap", "memory", "rss", "size", "usage", "used", "value"})
"""What large whole numbers that hardly repeat are of, where they are no ids."""
_TIMES = rank.name_words(
    """
    after at before created date end ended epoch expires expiry modified seen since start started t time timestamp ts
    until updated
    """
)
_EPOCH = 10**8
"""Seconds since 1970 of times that machine data has."""


def is_measure(view: ColumnView) -> bool:
    """Whether averages of a column say anything: no ids, codes, positions, or times."""
    if (
        not view.numeric
        or view.numbered
        or view.distinct <= 12
        or view.step is not None
        or view.column.name in ("line", SERIES)
    ):
        return False
    if names_codes(view.column.name) or names_instants(view.column.name, view.low):
        return False
    large = isinstance(view.low, int) and view.low > 10**9 and view.distinct > view.rows // 20
    return not large or last_word(view.column.name) in _QUANTITIES


@lru_cache(maxsize=4096)
def names_codes(name: str) -> bool:
    """Whether a column is called like ids, codes or positions, of which a mean says nothing."""
    return name == SERIES or last_word(name) in _CODES


def names_instants(name: str, low: Any) -> bool:
    """Whether a column of numbers from `low` on is called like times, and they are since 1970."""
    return low is not None and low >= _EPOCH and not rank.name_words(name).isdisjoint(_TIMES)
