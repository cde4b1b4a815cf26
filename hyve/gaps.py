"""Gaps between times, or between numbers at a fixed distance, of a table and of each series in it (H18).

Rules: a gap is far longer than nearly all distances between times, or one of very few in times at a fixed distance;
where there are many there is none.
A clock that goes back is told where it does: what lies between the times before and behind it is no gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hyve.changes import Change, Changes
from hyve.figures import duration_text, epoch_unit
from hyve.levels import HELD, Rows
from hyve.naming import quote
from hyve.profile import ColumnView

_FEW_GAPS, _TIMES, _TOLD = 3, 5, 8
"""So many gaps are told of a series, each so many times its mean distance; of so many series at most."""
_BACK = 6.0
"""The score of a clock that goes back."""


def back(changes: Changes) -> int | None:
    """The row at which the clock of a table in the order of its time goes back for good, once; None if it doesn't."""
    if changes.time is None:
        return None
    at = changes.times
    distances = np.diff(at)
    places = np.flatnonzero(distances < 0) + 1
    if len(places) != 1 or not HELD <= (place := int(places[0])) <= len(at) - HELD:
        return None
    usual = float(np.median(distances[distances > 0])) if (distances > 0).any() else math.inf
    before, behind = slice(place - HELD, place), slice(place, place + HELD)
    if at[place - 1] - at[place] <= _TIMES * usual or at[behind].max() >= at[place - 1]:
        return None  # rows are a little late
    # Rows of another series follow those of one, from the beginning.
    same = np.isin(changes.series[before], changes.series[behind]).any()
    return place if same else None


def gaps(changes: Changes) -> list[Change]:
    """The gaps of the table's time, and of numbers at a fixed distance; where its clock goes back."""
    found = _all_gaps(changes)
    if (place := back(changes)) is None:
        return found
    return [_back(changes, place), *(gap for gap in found if gap.rows[0] <= gap.rows[-1])]


def _back(changes: Changes, place: int) -> Change:
    assert changes.time is not None  # it goes back
    view = changes.found.views[changes.time]
    size = int(changes.times[place - 1] - changes.times[place])
    text = f"- {quote(view.column.name)}: goes back {_size(view, size)}"
    return Change(
        changes.time, _BACK, (place - 1, place), text, "", f" at rowid {place} ({changes.shown(changes.time, place)})"
    )


def _size(view: ColumnView, size: int) -> str:
    return duration_text(size / 1e9) if view.time or epoch_unit(view) else str(size)


def _all_gaps(changes: Changes) -> list[Change]:
    views = enumerate(changes.found.views)
    some = [i for i, view in views if i == changes.time or (view.step and view.step.gaps and not view.time)]
    return [gap for i in some for gap in _gaps(changes, i)]


def _gaps(changes: Changes, column: int) -> Iterator[Change]:
    """The gaps of times, or of numbers at a fixed distance: those of all rows, and of series those beside them."""
    view = changes.found.views[column]
    timed = view.time or column == changes.time
    at = changes.times if column == changes.time else changes.instants(column)
    rows = changes.rows if column == changes.time else np.argsort(at, kind="stable")
    known: list[tuple[int, int]] = []
    for place, ratio in gaps_in(at[rows]):
        known.append((int(at[rows[place - 1]]), int(at[rows[place]])))
        yield _gap(changes, column, at, rows, place, ratio, "")
    if not timed:
        return
    end = int(at[rows[-1]])
    for parted in changes.parted[:1]:
        times = at[parted.rows]
        distances = np.diff(times, append=times[-1:])
        lasts = parted.starts + parted.sizes - 1
        distances[lasts] = end - times[lasts]
        longest = np.maximum.reduceat(distances, parted.starts)
        others = np.add.reduceat(distances, parted.starts) - longest
        steps = np.add.reduceat(distances > 0, parted.starts) - 1
        ratios = longest * np.maximum(steps, 1) / np.maximum(others, 1)
        odd = np.flatnonzero((ratios > _TIMES) & (parted.sizes >= HELD) & ~changes.unnamed(parted))
        told: list[Change] = []
        for group in odd[np.argsort(-ratios[odd], kind="stable")].tolist() if len(odd) * 2 <= len(ratios) else ():
            series, of = parted.of(group), changes.of(parted, group)
            for place, ratio in gaps_in(np.append(at[series], end)):
                first = int(at[series[place - 1]])
                behind = int(at[series[place]]) if place < len(series) else end
                if any(first <= low and high <= behind and behind - first < 2 * (high - low) for low, high in known):
                    continue
                told.append(_gap(changes, column, at, series, place, ratio, of))
        if len(told) <= _TOLD:  # of those that others replace some say it
            yield from told[: 2 if parted.by in changes.handed else len(told)]


def _gap(changes: Changes, column: int, at: Rows, rows: Rows, place: int, ratio: float, of: str) -> Change:
    view = changes.found.views[column]
    name, before = quote(view.column.name), int(rows[place - 1])
    since = f" after {changes.shown(column, before)} (rowid {before})"
    score = min(8.0, 5 + ratio / 20)
    if place == len(rows):
        return Change(column, score, (before,), f"- {name}: none", of, since)
    behind = int(rows[place])
    size = int(at[behind]) - int(at[before])
    text = f"- {name}: gap of {_size(view, size)}"
    return Change(column, score, (before, behind), text, of, since)


def gaps_in(times: Rows) -> list[tuple[int, float]]:
    """(the place behind it, how many usual distances long it is) of each gap in sorted times."""
    distances = np.diff(times)
    positive = distances[distances > 0]
    if len(positive) < HELD:
        return []
    usual = float(np.partition(positive, len(positive) * 19 // 20)[len(positive) * 19 // 20])
    longest = float(positive.max())
    if longest <= 1.5 * usual:
        return []
    even = np.count_nonzero(positive == usual) * 20 >= 19 * len(positive)
    # Of n distances between rows that come at random the longest is ln n means long, and a 20th are over three.
    limit = usual * (1.5 if even else max(4.0, 2 / 3 * math.log(len(positive))))
    places = np.flatnonzero(distances > limit)
    if not 0 < len(places) <= _FEW_GAPS:
        return []
    rest = float(positive[positive <= limit].max())
    return [(int(i) + 1, float(distances[i]) / usual) for i in places if even or distances[i] > 2 * rest]
