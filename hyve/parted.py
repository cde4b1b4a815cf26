"""The ways to part the rows of a table into series: by a column, by pairs of columns, by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.catalog import Table
from hyve.levels import Rows, SeriesRows
from hyve.numbered import SMALL
from hyve.profile import ColumnView, Profile, entity_rank, holds_metrics

FEWEST = 64
"""Values of a series that has a level."""
_PARTED = 3
"""So many columns part a table into series."""
_USUAL = 0.9
"""Where so many rows have one value of a column, it parts those of others into nothing new."""
_METRIC = frozenset({"counter", "field", "indicator", "measurement", "metric", "metrics", "name"})
_VALUES = frozenset({"reading", "val", "value"})
"""Columns that are called by these words only name the metric of a row, of which one called by those has the value."""


def _values_of_metrics(table: Table, view: ColumnView) -> bool:
    """Whether a column has the values of metrics that another one names."""
    return holds_metrics(table) or not rank.name_words(view.column.name).isdisjoint(_VALUES)


def _names_metrics(view: ColumnView) -> bool:
    """Whether a column names the metric of each row, where values of several stand in one column."""
    words = rank.name_words(view.column.name)
    parts = words - {view.column.name.lower()} or words  # a name of several words is one of its words, too
    return set() < parts <= _METRIC


def metric_of(table: Table, views: Sequence[ColumnView], measure: ColumnView) -> ColumnView | None:
    """The column that tells apart the metrics whose values a measure has: a mean of several of them says nothing."""
    if not _values_of_metrics(table, measure):
        return None
    return next((view for view in views if _names_metrics(view) and 1 < view.distinct <= view.rows // 3), None)


@dataclass(frozen=True)
class Parted:
    """The rows of a table in the order of their time, those of one series after those of another; those of none, unless
    most are, come first.

    `by` is the column that parts them, or None, `within` are further ones; `starts` and `sizes` are the runs of the
    series in `rows`.
    """

    by: ColumnView | None
    rows: Rows
    starts: Rows
    sizes: Rows
    within: tuple[ColumnView, ...] = ()

    @property
    def columns(self) -> int:
        """How many columns part them."""
        return len(self.within) + (self.by is not None)

    @cached_property
    def owners(self) -> Rows:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def of(self, group: int) -> Rows:
        """The rows of one of the series."""
        return self.rows[self.starts[group] : self.starts[group] + self.sizes[group]]


def used_in(parted: Parted, used: NDArray[np.bool_]) -> SeriesRows | None:
    """The used rows of the series that have many, or at least an eighth as many as the largest one."""
    rows, starts, sizes = parted.rows, parted.starts, parted.sizes
    owners: Rows = np.arange(len(sizes))
    if not used.all():
        kept = used[rows]
        rows, of = rows[kept], parted.owners[kept]
        owners, sizes = np.unique(of, return_counts=True)
        starts = np.cumsum(sizes) - sizes
    largest = int(sizes.max()) if len(sizes) else 0
    if largest < FEWEST:
        return None
    large = sizes >= max(FEWEST, largest // 8)
    return SeriesRows(rows, owners[large], starts[large], sizes[large])


class Ways:
    """The ways to part the rows of a table, which are in the order of their time."""

    def __init__(
        self,
        found: Profile,
        rows: Rows,
        dimensions: Sequence[ColumnView],
        handed: Sequence[ColumnView],
    ) -> None:
        self._found = found
        self._rows = rows
        self._dimensions = dimensions
        self._handed = handed
        self._made: dict[tuple[str, ...], Parted] = {}

    @cached_property
    def parted(self) -> list[Parted]:
        """The rows by each of the columns that tell who or what they are about."""
        views = [view for view in self._dimensions if view.distinct <= SMALL]
        views = sorted(views, key=lambda view: (entity_rank(view), view.distinct))[:_PARTED]
        return [self.by(view) for view in views if view.distinct * FEWEST <= view.rows]

    def in_metrics(self, view: ColumnView) -> list[Parted]:
        """The rows by metric and by further columns, where a column has the values of several metrics; else none."""
        return self._metrics if _values_of_metrics(self._found.table, view) else []

    def by(self, *views: ColumnView) -> Parted:
        """The rows by the values of a column, or of several, where those that lack one are left out."""
        names = tuple(view.column.name for view in views)
        if names not in self._made:
            rows, key = self._rows, np.zeros(1, np.int64)
            if len(views) > 1:
                rows = self.by(*views[:-1]).rows
            codes = self._found.columns.coded(names[-1])[0]
            short = codes[rows].astype(np.int16)  # these are sorted by their bits
            order = np.argsort(short, kind="stable")
            if len(views) > 1 or views[0].nulls * 2 > views[0].rows:
                order = order[int(np.count_nonzero(short < 0)) :]
            rows = rows[order]
            if len(views) > 1:
                rows = rows[self._found.columns.coded(names[0])[0][rows] >= 0]
            for view in views:
                key = key * view.distinct + self._found.columns.coded(view.column.name)[0][rows]
            self._made[names] = Parted(views[-1], rows, *rank.runs(key), within=views[:-1])
        return self._made[names]

    @cached_property
    def _metric(self) -> ColumnView | None:
        """The column that names the metric of each row, where values of several stand in one column."""
        named = filter(_names_metrics, self._dimensions)
        return next((view for view in named if view.distinct * FEWEST <= view.rows), None)

    @cached_property
    def pairs(self) -> list[Parted]:
        """The rows by pairs of the columns that part them."""
        return self._finer([(view,) for view in self._singles])

    @cached_property
    def _metrics(self) -> list[Parted]:
        """The rows by metric, by metric and one column more, and by pairs of them."""
        metric = self._metric
        if metric is None:
            return []
        finer = self._finer([(metric,), *((view,) for view in self._singles if view is not metric)], metric)
        some = [(metric, view) for view in self._singles if any(parted.by is view for parted in finer)]
        return [self.by(metric), *finer, *self._finer(some)]

    @property
    def _singles(self) -> list[ColumnView]:
        views = [parted.by for parted in self.parted if parted.by and parted.by not in self._handed]
        return [view for view in views if view.values[0][1] < _USUAL * view.rows]

    def _count(self, *views: ColumnView) -> int:
        """How many series the values of some columns make."""
        if len(views) == 1:
            return views[0].distinct
        key = np.zeros(len(self._rows), np.int64)
        there = np.ones(len(self._rows), np.bool_)
        for view in views:
            codes = self._found.columns.coded(view.column.name)[0][self._rows]
            key = key * view.distinct + codes
            there &= codes >= 0
        return int(np.count_nonzero(np.bincount(key[there])))

    def _finer(self, some: Sequence[tuple[ColumnView, ...]], first: ColumnView | None = None) -> list[Parted]:
        """The rows by two of some ways to part them (one of which is by the `first` column), where neither says what
        the other does."""
        found = []
        for one, other in combinations(some, 2):
            if first is None or one == (first,):
                views = dict.fromkeys(one + other)
                if self._count(*views) > max(self._count(*one), self._count(*other)):
                    found.append(self.by(*views))
        return found
