"""Categories of rows that differ in a number at all times: versions side by side, a method, a zone (H18).

Rules:
- Told are the medians of a number by a column of few values that names no entity, where one of its categories lies far
  from the others, among rows of the same service or the like: instances may differ because of it. Points of metrics
  differ by their series.
- A few thousand rows, evenly spread over the table, say whether it is so; the medians are of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.changes import Change, series_of
from hyve.columns import Codes
from hyve.figures import number_text
from hyve.levels import HELD, Rows, ranks_of
from hyve.naming import quote
from hyve.profile import ENTITIES, ColumnView, Profile, entity_rank, holds_metrics, is_dimension
from hyve.states import spelled

_CATEGORIES, _COLUMNS = 8, 8
"""A column of more categories isn't looked at, nor are more columns."""
_ROWS, _EVEN = 4096, 1.02
_APART, _SURE = 0.15, 8.0
"""Mean ranks (from -0.5 to 0.5) of a category and the rest are so far apart, and by so many deviations of chance."""
_INSTANCES = frozenset({"instance", "pod", "host", "node", "container"})


class Categories:
    """The columns of a table that may part its numbers. `series` is how the table is parted where numbers far out are
    looked for."""

    def __init__(self, found: Profile, views: Sequence[ColumnView], series: Rows) -> None:
        self.found = found
        size = found.table.rows
        dimensions = [view for view in views if is_dimension(view)]
        few = size < 8 * HELD or holds_metrics(found.table)
        parting = [] if few else [view for view in dimensions if _parts(view)][:_COLUMNS]
        self.parting = [view for view in parting if _of_many(view)]
        if self.parting:
            self.sample = np.arange(min(size, _ROWS)) * size // min(size, _ROWS)
            about = [v for v in dimensions if entity_rank(v) < len(ENTITIES) and not _instances(v)]
            self.series = series_of(found.columns, about)[0][self.sample]
            self._alike = len(self.sample) == size and np.array_equal(self.series, series)

    def differing(
        self, column: int, numbers: NDArray[np.float64], used: NDArray[np.bool_], far: NDArray[np.float64]
    ) -> list[Change]:
        """The columns by which a number differs most, at most one. `far` is how far each is from the middle of its
        series, by which the table is parted."""
        best, told = 0.0, None
        if self.parting and np.count_nonzero(there := used[self.sample]) >= 8 * HELD:
            rows = self.sample[there]
            if not self._alike:
                far = rank.away(numbers[rows], np.ones(len(rows), np.bool_), self.series[there])
            ranks = ranks_of(far[rows] if self._alike else far)
            for view in self.parting:
                codes = self.found.columns.coded(view.column.name)[0][rows]
                apart, category = _apart(codes, ranks, view.distinct)
                if apart > best:
                    best, told = apart, (view, category)
        return [self._change(column, numbers, used, best, *told)] if told else []

    def _change(
        self, column: int, numbers: NDArray[np.float64], used: NDArray[np.bool_], apart: float, by: ColumnView, odd: int
    ) -> Change:
        codes, values = self.found.columns.coded(by.column.name)
        codes = np.where(used, codes, -1)
        of = [(name, numbers[codes == i]) for i, name in enumerate(map(str, values.shown()))]
        of.sort(key=lambda one: -len(one[1]))
        medians = [(name, float(np.median(some))) for name, some in of if len(some)]
        span = max(median for _, median in medians) - min(median for _, median in medians)
        said = ", ".join(f"{spelled(name)} {number_text(median, span)}" for name, median in medians)
        text = f"- {quote(self.found.views[column].column.name)}: median by {quote(by.column.name)}: {said}"
        return Change(column, 3 + 6 * apart, (int(np.argmax(codes == odd)),), text, "", "")


def _apart(codes: Codes, ranks: NDArray[np.float64], distinct: int) -> tuple[float, int]:
    """(by how much the mean ranks of a category and of the rest differ, the category) of the one that differs most and
    surely; 0 where none does."""
    there = codes >= 0
    counts = np.bincount(codes[there], minlength=distinct)
    sums = np.bincount(codes[there], ranks[there], distinct)
    rest = counts.sum() - counts
    with np.errstate(all="ignore"):
        apart = np.abs(sums / counts - (sums.sum() - sums) / rest)
        sure = apart > _SURE * np.sqrt((1 / counts + 1 / rest) / 12)
    apart = np.where(sure & (np.minimum(counts, rest) >= HELD) & (apart > _APART), apart, 0.0)
    odd = int(np.argmax(apart))
    return float(apart[odd]), odd


def _parts(view: ColumnView) -> bool:
    """Whether a column may part the rows into categories; those with equally many rows each are series."""
    counts = [count for _, count in view.values]
    return len(counts) <= _CATEGORIES and entity_rank(view) == len(ENTITIES) and counts[0] > _EVEN * counts[-1]


def _of_many(view: ColumnView) -> bool:
    """Whether there are rows enough of a category and of the rest."""
    return any(HELD <= count <= view.rows - view.nulls - HELD for _, count in view.values)


def _instances(view: ColumnView) -> bool:
    return not rank.name_words(view.column.name).isdisjoint(_INSTANCES)
