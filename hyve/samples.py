"""Rows that say what a table is like though they neither stand out nor were asked for (H15, H18).

Rules: the header tells the least and the greatest value of a measure, so their rows are shown where few rows have them;
every series of a small dimension has a row before another has many, each from another part of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.columns import Columns, spread
from hyve.profile import ENTITIES, SERIES, ColumnView, Profile, entity_rank, holds_metrics, is_dimension, is_measure

_MEASURES = 3
"""Of so many measures the extremes are shown, the likeliest first."""
_TIES = 3
"""An extreme that more rows have tells none of them apart."""


def extremes(found: Profile, ranked: Sequence[int]) -> list[tuple[int, int]]:
    """(row, column) of the greatest and the least value of the likeliest measures.

    Of metrics of several names the numbers are of different things: they have no extremes together.
    """
    names = next((view for view in found.views if view.column.name == "name"), None)
    if names is not None and names.distinct > 1 and holds_metrics(found.table):
        return []
    rows: list[tuple[int, int]] = []
    for i in [i for i in ranked if is_measure(found.views[i]) and not found.views[i].same][:_MEASURES]:
        numbers, there = found.columns.floats(found.views[i].column.name)
        used = np.flatnonzero(there & np.isfinite(numbers))
        some = numbers[used]
        for extreme in (some.max(), some.min()) if len(some) and some.max() > some.min() else ():
            having = used[some == extreme]
            if len(having) <= _TIES:
                rows.append((int(having[0]), i))
    return rows


def of_each_series(found: Profile, ranked: Sequence[int], owned: bool) -> list[int]:
    """A row of each value of the dimension that tells best who the rows are about, evenly spread over the table;
    `owned`: that is the number of their series, however many there are, but for those that are steady."""
    views = [found.views[i] for i in ranked]
    about = [view for view in views if is_dimension(view) and _tells(view) and view.distinct * 3 <= view.rows]
    if not about and not owned:
        return []
    codes, _ = found.columns.coded(SERIES if owned else min(about, key=entity_rank).column.name)
    order = np.argsort(codes, kind="stable")
    starts, sizes = rank.runs(codes[order])
    values = codes[order[starts]]
    measure = next((view.column.name for view in views if is_measure(view)), "") if owned else ""
    steady = steady_series(found.columns, measure) if measure else np.zeros(len(values) + 1, np.bool_)
    named = np.flatnonzero((values >= 0) & ~steady[values])
    places = np.empty(len(named), np.int64)
    places[spread(len(named), len(named))] = np.arange(len(named))
    rows = order[starts[named] + sizes[named] * places // max(1, len(named))]
    return [int(row) for row in rows]


def steady_series(columns: Columns, measure: str) -> NDArray[np.bool_]:
    """Of which series, by code, all finite values of a measure are the same."""
    codes, numbers_of = columns.coded(SERIES)
    numbers, there = columns.floats(measure)
    used = there & np.isfinite(numbers) & (codes >= 0)
    low, high = np.full(len(numbers_of) + 1, np.inf), np.full(len(numbers_of) + 1, -np.inf)
    np.minimum.at(low, codes[used], numbers[used])
    np.maximum.at(high, codes[used], numbers[used])
    steady: NDArray[np.bool_] = low == high
    return steady


def _tells(view: ColumnView) -> bool:
    return not view.same and (entity_rank(view) < len(ENTITIES) or view.column.name == SERIES)
