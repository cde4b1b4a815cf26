"""Numbers that are stuck: a series of which the values hardly ever repeat, and then are the same for long (H18).

Rules:
- What repeats now and then (states, few values, counters that idle) is not stuck, nor is what is constant. A value at a
  natural bound (0, the least or the largest of a column) isn't, either: where that is new, the level has changed.
- A counter is stuck that stops for good while those of other series go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.changes import Change, Changes
from hyve.levels import HELD, Floats, Rows, block_of
from hyve.parted import Parted, used_in

_LONGEST, _PART = 2 * HELD, 16
"""So many equal values in a row are stuck, and such a part of a series."""
_REPEATS = 20
"""Of so many other values at most one is the same as that before it."""
_TOLD = 4
_SCORE = 7.0


@dataclass(frozen=True)
class _Run:
    """Equal values of a series from a place in its `rows` up to an end."""

    parted: Parted
    group: int
    rows: Rows
    first: int
    end: int


def with_stuck(
    changes: Changes, column: int, numbers: Floats, used: NDArray[np.bool_], levels: list[Change]
) -> list[Change]:
    """The changes of the `levels` of a number, and where it is stuck instead."""
    view = changes.found.views[column]
    if changes.time is None or view.distinct + _LONGEST > view.rows - view.nulls:
        return levels
    if int(changes.found.columns.counted(view.column.name)[3].max(initial=0)) < _LONGEST:
        return levels
    for parted in changes.partings(column):
        if (series := used_in(parted, used)) is None:
            continue
        parts = [numbers[series.of(place)] for place in range(len(series.sizes))]
        found = {place: run for place, values in enumerate(parts) if (run := _run(values))}
        if not found or len(found) * 2 > len(parts) > 1:
            continue
        goes_on = [values[-1] != values[-2] or values[-2] != values[-3] for values in parts]
        others_go_on = len(parts) > 1 and sum(goes_on) * 4 >= 3 * (len(parts) - len(found))
        low, high = float(numbers[used].min()), float(numbers[used].max())
        told = list[_Run]()
        for place, (first, end) in found.items():
            values, value = parts[place], float(parts[place][first])
            counts = _counts(values[:first])
            shared = not counts or sum(value in some for some in parts) > 1
            if value == 0 or (value in (low, high) and shared):
                continue
            if not counts or (others_go_on and end == len(values)):
                told.append(_Run(parted, int(series.owners[place]), series.of(place), first, end))
        if told:
            return _told(changes, column, told[:_TOLD], levels)
    return levels


def _run(values: Floats) -> tuple[int, int] | None:
    """(place, end) of the one run of equal values in a series of which others hardly ever repeat; None where there is
    none."""
    starts, lengths = rank.runs(values)
    longest = int(np.argmax(lengths))
    first, size = int(starts[longest]), int(lengths[longest])
    if size < max(_LONGEST, len(values) // _PART) or first < _LONGEST:
        return None
    others = len(values) - size
    if (others - len(lengths) + 1) * _REPEATS > others or len(np.unique(values[:first])) < _LONGEST:
        return None
    return first, first + size


def _counts(values: Floats) -> bool:
    """Whether numbers hardly ever go back, or hardly ever on."""
    steps = np.diff(values)
    return bool(min(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)) * _REPEATS < len(steps))


def _told(changes: Changes, column: int, runs: list[_Run], levels: list[Change]) -> list[Change]:
    """What is said of runs, and the levels but for those that begin or end with them."""
    told = []
    for run in runs:
        value = changes.shown(column, int(run.rows[run.first]))
        one = changes.change(column, _SCORE, run.rows, run.first, f"stuck at {value}", run.parted, run.group)
        if run.end < len(run.rows):
            last = int(run.rows[run.end - 1])
            one = replace(one, rows=(*one.rows, last, int(run.rows[run.end])), place=f"{one.place} to {last}")
        told.append(one)
        near = block_of(len(run.rows)) + HELD
        edges = {int(row) for at in (run.first, run.end) for row in run.rows[max(0, at - near) : at + near]}
        levels = [level for level in levels if level.whose != one.whose or edges.isdisjoint(level.rows)]
    return told + levels
