"""Where rows begin to come more often, or less, of a table of events (H18).

Rules:
- Told is by how many rows in a second, a minute, an hour or a day the rate changes, counted from the change or gap
  before up to the next one; it at least doubles or halves, and does so as levels change (`hyve.levels`).
- Times at a fixed distance, with as many rows each, are no events: they are measured.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hyve import rank
from hyve.changes import MOST_OF, Change, Changes
from hyve.figures import rounded
from hyve.gaps import back, gaps_in
from hyve.levels import CLIP, HELD, Floats, Rows, SeriesRows, placed, steps_in
from hyve.parted import Parted

_FEWEST, _EACH, _PLACES = 200, 4, 512
"""So many rows, and so many at least in each of so many places in which they are counted."""
_LEAST = 64
_TIMES = 2.0
"""The rate is so many times larger or smaller."""
_AROUND = 8
"""So many places beside it a change is looked for row by row."""
_SCORE = 6.5
_UNITS = (("s", 1e9), ("min", 60e9), ("h", 3_600e9), ("day", 86_400e9))


def rates(changes: Changes) -> list[Change]:
    """The changes of how often rows come."""
    if changes.time is None or len(changes.rows) < _FEWEST:
        return []
    view = changes.found.views[changes.time]
    at = changes.times[changes.rows]
    if view.step is not None or at[-1] <= at[0] or back(changes) is not None:
        return []
    gaps = [place for place, _ in gaps_in(at)]
    # What is missing in a gap is told as one: the rest is counted as if it were not there.
    distances = np.diff(at).astype(np.float64)
    distances[np.array(gaps, np.int64) - 1] = np.median(distances)
    times = np.concatenate([[0.0], np.cumsum(distances)])
    near = max(_EACH, len(at) // _PLACES)
    places = _by_rows(times, near) or _by_time(times)
    exact = sorted({_exact(times, place, _AROUND * near) for place in places} - {0})
    edges = sorted({0, len(at), *gaps, *exact})
    found = []
    for place in exact:
        before, behind = _beside(at, edges, place)
        first, last = edges[edges.index(place) - 1], edges[edges.index(place) + 1]
        if min(place - first, last - place) < HELD:
            continue
        if place not in gaps and min(before, behind) > 0 and max(before / behind, behind / before) >= _TIMES:
            found.append((place, before, behind))
    if not found:
        return []
    rows, parted, group = changes.rows, changes.whole, 0
    if (owner := _owner(changes, edges, found)) is not None:
        rows = owner[0].of(owner[1])
        at = changes.times[rows]
        near_own = [int(np.searchsorted(at, changes.times[changes.rows[place]])) for place, _, _ in found]
        own = [_exact((at - at[0]).astype(np.float64), place, _AROUND * _EACH) for place in near_own]
        edges = sorted({0, len(at), *(place for place, _ in gaps_in(at)), *own})
        if len({*own} - {0}) == len(found) and all(min(_beside(at, edges, place)) > 0 for place in own):
            found = [(place, *_beside(at, edges, place)) for place in own]
            parted, group = owner
        else:
            rows = changes.rows
    slowest = min(min(before, behind) for _, before, behind in found)
    unit, size = next((one for one in _UNITS if slowest * one[1] >= 1), _UNITS[-1])
    said = [
        (place, f"{rounded(before * size, 3)}→{rounded(behind * size, 3)} rows/{unit}")
        for place, before, behind in found
    ]
    return [changes.change(changes.time, _SCORE, rows, place, text, parted, group) for place, text in said]


def _owner(changes: Changes, edges: list[int], found: list[tuple[int, float, float]]) -> tuple[Parted, int] | None:
    """The series, one of several, of which alone the rows come more often or less at all places; None where none is."""
    for parted in changes.parted:
        if len(parted.sizes) < 2 or (parted.by is not None and parted.by.column.name == "template"):
            continue
        of = np.full(len(changes.times), -1, np.int64)
        of[parted.rows] = parted.owners
        along, owners = of[changes.rows], set[int]()
        for place, before, behind in found:
            i = edges.index(place)
            rates = [
                np.bincount(along[first:last] + 1, minlength=len(parted.sizes) + 1)[1:] * (rate / (last - first))
                for (first, last), rate in zip(pairwise(edges[i - 1 : i + 2]), (before, behind), strict=True)
            ]
            more = (rates[1] - rates[0]) / (behind - before)
            most = int(np.argmax(more))
            low, high = sorted((float(rates[0][most]), float(rates[1][most])))
            owners.add(
                most
                if more[most] >= MOST_OF and 0 < _TIMES * low <= high and low < MOST_OF * min(before, behind)
                else -1
            )
        if len(owners) == 1 and (group := owners.pop()) >= 0:
            return parted, group
    return None


def _beside(at: Rows, edges: list[int], place: int) -> tuple[float, float]:
    """The rates before and behind a place, up to the next of some edges."""
    i = edges.index(place)
    before, behind = (_rate(at, first, last) for first, last in pairwise(edges[i - 1 : i + 2]))
    return before, behind


def _rate(at: Rows, first: int, last: int) -> float:
    """Rows a nanosecond from one place, the first row of its instant, up to another: until the first row of the instant
    that stands there, or of the last one."""
    end = last if last < len(at) else int(np.searchsorted(at, at[-1]))
    time = int(at[end]) - int(at[first])
    return (end - first) / time if time > 0 else 0.0


def _by_rows(times: Floats, near: int) -> list[int]:
    """Where so many rows take longer, or less long, than before: what comes more often is many rows in little time."""
    ends = times[: len(times) // near * near : near]
    took = np.diff(ends)
    if len(took) < _LEAST:
        return []
    least = float(took[took > 0].min(initial=np.inf))
    return [at * near for at in _steps(-np.log(np.maximum(took, least / 2)))]


def _by_time(times: Floats) -> list[int]:
    """Where there are more rows, or fewer, in times of one length."""
    count = min(_PLACES, max(_LEAST, len(times) // (2 * _EACH)))
    quantum = float(np.diff(times)[np.diff(times) > 0].min(initial=np.inf))
    width = np.ceil(times[-1] / count / quantum) * quantum
    counts = np.bincount((times / width).astype(np.int64))[:-1]  # of the last one only a part may be there
    if len(counts) < _LEAST:
        return []
    return [int(np.searchsorted(times, at * width)) for at in _steps(np.log(counts + 0.5))]


def _steps(numbers: Floats) -> list[int]:
    """The places where numbers change their level."""
    count = len(numbers)
    rows = np.arange(count)
    away = rank.away(numbers, np.ones(count, np.bool_), np.zeros(count, np.int64))
    one = SeriesRows(rows, np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([count]))
    steps, _, _ = steps_in(away, np.clip(away, -CLIP, CLIP), numbers, one)
    return [level.at for some in steps for level in placed(away, numbers, some)]


def _exact(times: Floats, near: int, reach: int) -> int:
    """The row from which on two rates are likeliest, among those around a place."""
    first, last = max(0, near - reach), min(len(times) - 1, near + reach)
    # Rows of one instant begin together, however many there are.
    first = int(np.searchsorted(times, times[first]))
    last = min(len(times) - 1, int(np.searchsorted(times, times[last], "right")))
    rows = np.arange(first + 1, last)
    rows = rows[times[rows] > times[rows - 1]]
    if not len(rows):
        return int(np.searchsorted(times, times[near]))
    before, behind = rows - first, last - rows
    with np.errstate(all="ignore"):
        likely = before * np.log(before / (times[rows] - times[first])) + behind * np.log(
            behind / (times[last] - times[rows])
        )
    likely[~np.isfinite(likely)] = -np.inf
    return int(rows[np.argmax(likely)])
