"""The places where series of numbers change their level (the rules are those of `hyve.changes`).

Three looks, each at what the one before can't see: medians of blocks, which find steps of some spreads and where they
come and go; ranks of all values, which find a step of less than a spread, such as a skewed number's that doubles; and
the last rows, of which there are too few for a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

MOST = 4
"""Of a series so many changes at most are told."""
HELD = 10
"""So many equal numbers are a level, and so many numbers tell whether a series changes."""
_LEAST_BLOCKS, _BLOCKS, _SAMPLES = 12, 64, 128
"""Blocks that a series is parted into, and values that are looked at of each."""
_BEYOND, _FEWER, _WIDE, _WANDERS, _UNSURE = 5.0, 40.0, 3, 1.56, 1.4
_AWAY, _CHANCE, _ALIKE, _MOVED, _DRIFT, _STRAIGHT = 0.8, 4.5, 0.25, 0.4, 2.0, 2.5
"""A change is larger than this share of the spread, and than so many deviations of chance; quartiles move by this share
of it; what is level moves by less than that (what goes on evenly by half), a faint one by so many deviations of chance;
a line through both sides leaves so many times more than they do."""
_PARTS, _RISES, _EVENLY = 12, 4.0, 1.6
"""What rises all the time does so in each of so many parts, by so many deviations of its noise, and from part to part
by so many deviations of that: a walk may rise all the time, but unevenly."""
CLIP = 3.0
_COARSE, _APART, _DRIFTS = 16, 0.9, 2.0
"""Where a level may change, means of so many blocks, of what is so many spreads away at most, lie so far apart, or
their sum goes so far from an even one (in deviations of noise; Kolmogorov's statistic is above 2 in 0.07%)."""
_FAINT_ROWS, _FAINT_STEPS, _FAINT, _STEP, _MISFIT, _RELATED, _SMOOTHER, _EACH = 250, 2, 7.0, 5.0, 2.0, 0.07, 8.0, 12.0
"""In ranks, a series of so many rows has so many steps at most: the first stands out by `_FAINT` deviations, a further
one by `_STEP`. What they leave is noise: larger by at most so many deviations of chance, neighbours unrelated (the less
so the fainter the step); and curves as smooth as can be, of two degrees more for each step, leave more by so much."""
_LATE_BLOCKS, _LATE, _EVER = 3, 1.0, 1.5
"""An onset in the last blocks is a jump of so many spreads, and so many times any jump before of as many rows, or
more where there are few."""


@dataclass(frozen=True)
class Steps:
    """Where one of several series may change its level: how far the largest step stands out, the series' number, places
    in its used rows, and the place of an onset in its last rows, or 0. `faint` ones are seen only in all rows between
    them."""

    beyond: float
    group: int
    places: Rows
    faint: bool = False
    onset: int = 0


@dataclass(frozen=True)
class Level:
    """A change of level: its place, the medians before it and behind it, and of how many rows on either side. What goes
    on rising, or falling, behind it has its first values there, and its `last`."""

    at: int
    before: float
    behind: float
    reach: int
    last: float | None = None


@dataclass(frozen=True)
class SeriesRows:
    """The used rows of some series in the order of their time, one series after another: their numbers, where each
    begins in `rows`, and how many it has."""

    rows: Rows
    owners: Rows
    starts: Rows
    sizes: Rows

    def only(self, which: Rows | NDArray[np.bool_]) -> SeriesRows:
        """Some of the series."""
        return SeriesRows(self.rows, self.owners[which], self.starts[which], self.sizes[which])

    def of(self, group: int) -> Rows:
        """The rows of one of them."""
        return self.rows[self.starts[group] : self.starts[group] + self.sizes[group]]


def steps_in(
    away: Floats, clipped: Floats, numbers: Floats, series: SeriesRows, looks: int = 1
) -> tuple[list[Steps], list[int], tuple[Rows, Floats]]:
    """(the steps of series that may change their level, those that stand out most first; the numbers of those that
    rise, or fall, all the time; those of all that move by much, and means of their blocks).

    `away` is how many spreads each of the `numbers` of a table is from the middle of its series, `clipped` the same, at
    most `CLIP`. Where as many series as `looks` are looked at beside others, limits are higher, and nothing faint is
    found.
    """
    more = math.sqrt(1 + 4 * math.log(looks) / _BEYOND**2)
    apart, faintly, ramps, means = _moving(clipped, series)
    found = {steps.group: steps for steps in _between_blocks(away, series.only(apart), more)} if len(apart) else {}
    for place in faintly.tolist() if looks == 1 else ():
        group = int(series.owners[place])
        if group not in found and (faint := _faint_steps(away[series.of(place)], group)):
            found[group] = faint
    # Few rows in many series: one of them ends otherwise by chance.
    late = series if looks == 1 else series.only(series.sizes >= _FAINT_ROWS)
    for place in _late(away, late).tolist() if len(late.sizes) else ():
        rows, group = late.of(place), int(late.owners[place])
        if onset := _onset(away[rows], numbers[rows], more):
            beyond, at = onset
            known = found.get(group, Steps(0.0, group, np.zeros(0, np.int64)))
            found[group] = replace(known, beyond=max(known.beyond, beyond), onset=at)
    rising = [int(series.owners[place]) for place in ramps.tolist() if _ramp(numbers[series.of(place)])]
    return sorted(found.values(), key=lambda steps: (steps.faint, -steps.beyond)), rising, (series.owners[apart], means)


def _moving(clipped: Floats, series: SeriesRows) -> tuple[Rows, Rows, Rows, Floats]:
    """(the places of the series of which means of few blocks are far apart, of those of which they drift in steps, of
    those of which they only rise or fall; the means of the first). Most do neither, and are looked at no more."""
    rows, starts, sizes = series.rows, series.starts, series.sizes
    blocks = min(_COARSE, max(4, int(sizes.max()) // 24))
    if len(sizes) == 1:
        size = int(sizes[0]) // blocks
        start = int(starts[0])
        means = np.add.reduce(clipped[rows[start : start + blocks * size]].reshape(1, blocks, size), axis=2) / size
    else:
        edges = starts[:, None] + np.arange(blocks) * sizes[:, None] // blocks
        # What follows a series that was left out would count as the last block's: its end is an edge, too.
        ends = np.concatenate([edges, (starts + sizes)[:, None]], axis=1)
        sums = np.add.reduceat(np.append(clipped[rows], 0.0), ends.ravel()).reshape(len(sizes), -1)[:, :-1]
        means = sums / np.diff(ends, axis=1)
    apart = np.flatnonzero(means.max(axis=1) - means.min(axis=1) > _APART)
    on = np.diff(means[apart], axis=1)
    ramps = apart[(on > 0).all(axis=1) | (on < 0).all(axis=1)]
    moved = means[apart]
    large = np.flatnonzero(sizes >= _FAINT_ROWS)
    if len(large):
        means = means[large] - means[large].mean(axis=1, keepdims=True)
        drifts = np.abs(np.cumsum(means, axis=1)).max(axis=1) * np.sqrt(sizes[large]) / blocks
        large = large[(drifts > _DRIFTS) & _in_steps(means)]
    return apart, large, ramps, moved


def _ramp(numbers: Floats) -> bool:
    """Whether numbers rise all the time, or fall, by far more than their noise."""
    edges = np.arange(_PARTS + 1) * len(numbers) // _PARTS
    with np.errstate(all="ignore"):  # sums beyond a double are infinite, and rise no more
        means = np.add.reduceat(numbers, edges[:-1]) / np.diff(edges)
        on = np.diff(means)
        noise = 1.05 * float(np.median(np.abs(np.diff(numbers))))
        evenly = abs(float(on.mean())) > _EVENLY * float(on.std())
        return evenly and bool(((on > 0).all() or (on < 0).all()) and abs(means[-1] - means[0]) > _RISES * noise)


def _in_steps(means: Floats) -> NDArray[np.bool_]:
    """Of rows of means with a mean of 0, whether one step or two are closer to them than curves as smooth are."""
    found = np.zeros(len(means), np.bool_)
    for steps in range(1, _FAINT_STEPS + 1):
        by_steps = (means @ _steps(means.shape[1], steps)).reshape(len(means), -1, steps)
        by_curves = means @ curves(means.shape[1], 1 + 2 * steps)
        found |= (by_steps**2).sum(axis=2).max(axis=1) > (by_curves**2).sum(axis=1)
    return found


@lru_cache(maxsize=64)
def _steps(count: int, steps: int) -> Floats:
    """For each way to part so many places by steps orthogonal levels with a mean of 0, side by side."""
    ways = []
    for edges in combinations(range(1, count), steps):
        levels = (np.arange(count)[:, None] >= np.array(edges)).astype(np.float64)
        ways.append(np.linalg.qr(np.column_stack([np.ones(count), levels]))[0][:, 1:])
    return np.concatenate(ways, axis=1)


def _between_blocks(away: Floats, series: SeriesRows, more: float) -> list[Steps]:
    """The steps that are seen in blocks of values."""
    rows, owners, starts, sizes = series.rows, series.owners, series.starts, series.sizes
    least = int(sizes.min())
    blocks, samples = _blocks(least)
    spread = np.arange(blocks * samples) * (sizes[:, None] / (blocks * samples))
    taken = away[rows[starts[:, None] + spread.astype(np.int64)]].reshape(len(sizes), blocks, samples)
    taken.sort(axis=2)
    half, quarter = samples // 2, samples // 4
    middles = taken[:, :, half]
    noise = (_middle(taken[:, :, -1 - quarter] - taken[:, :, quarter]) / 1.349) * (1.77 / math.sqrt(samples))
    least_sigma = 1e-9 * np.abs(middles).max(axis=1, keepdims=True)
    apart = middles[:, 2:] - middles[:, :-2]
    apart = np.abs(apart - _middle(apart))
    sigma = np.maximum(_deviation(apart), noise)
    sums = np.cumsum(np.pad(middles, ((0, 0), (1, 0))), axis=1)
    means = (sums[:, _WIDE:] - sums[:, :-_WIDE]) / _WIDE
    wide = means[:, _WIDE + 1 :] - means[:, : -_WIDE - 1]
    wide = np.abs(wide - _middle(wide))
    # Of noise, means of three differ by less than one block from another; what wanders differs by more, further away.
    wander = _WANDERS * np.maximum(sigma**2 - _UNSURE * noise**2, 0)
    beyond = np.zeros((2, len(sizes), blocks))
    with np.errstate(all="ignore"):
        beyond[0, :, 1:-1] = apart / np.maximum(sigma, least_sigma)
        beyond[1, :, _WIDE:-_WIDE] = wide / np.maximum(np.sqrt(noise**2 / _WIDE + wander), least_sigma)
    beyond = np.nan_to_num(beyond)
    limit = more * (_BEYOND + _FEWER / blocks)
    tops = beyond.max(axis=(0, 2))
    found = []
    for group in np.flatnonzero(tops > limit)[np.argsort(-tops[tops > limit], kind="stable")].tolist():
        places: list[tuple[int, int]] = []
        by_size = np.argsort(-beyond[:, group].ravel(), kind="stable")[: np.count_nonzero(beyond[:, group] > limit)]
        for width, block in (divmod(place, blocks) for place in by_size.tolist()):
            if all(abs(block - other) > (_WIDE + 1 if width or wider else 2) for other, wider in places):
                places.append((block, width))
        if len(places) <= MOST:
            at = (np.sort([block for block, _ in places]) + 0.5) * (int(sizes[group]) / blocks)
            found.append(Steps(float(tops[group]), int(owners[group]), at.astype(np.int64)))
    return found


def ranks_of(values: Floats) -> Floats:
    """The ranks of numbers, equal ones the same, evenly from -0.5 to 0.5."""
    ordered = np.sort(values, axis=None)
    low, high = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.asarray((low + high) / (2 * len(ordered)) - 0.5, np.float64)


def _blocks(count: int) -> tuple[int, int]:
    """(how many blocks a series of so many values is parted into, how many values of each are looked at)."""
    blocks = max(_LEAST_BLOCKS, min(_BLOCKS, count // 8))
    return blocks, min(_SAMPLES, count // blocks)


def _faint_steps(away: Floats, group: int) -> Steps | None:
    """The steps of one series, where steps are what it is made of but for noise; None where they are not."""
    count = len(away)
    if count < _FAINT_ROWS:
        return None
    blocks, samples = _blocks(count)
    taken = away[(np.arange(blocks * samples) * (count / (blocks * samples))).astype(np.int64)].reshape(blocks, samples)
    ranks = ranks_of(taken)
    means = ranks.mean(axis=1)
    within = float(ranks.var(axis=1).mean()) / max(1, samples - 1)
    between = max(float(_deviation(np.abs(means[lag:] - means[:-lag])[None])[0, 0]) ** 2 / 2 for lag in (1, 2))
    variance = max(within, between)
    if variance <= 0:
        return None
    edges, first = [0, blocks], 0.0
    for _ in range(_FAINT_STEPS + 1):
        size, at = max(_split(means, start, end, variance) for start, end in pairwise(edges))
        if size < (_STEP if first else _FAINT):
            break
        first = first or size
        edges = sorted([*edges, at])
    steps = len(edges) - 2
    if not 0 < steps <= _FAINT_STEPS:
        return None
    levels = np.concatenate([np.full(end - start, means[start:end].mean()) for start, end in pairwise(edges)])
    rest = means - levels
    left = float(rest @ rest) / variance
    if left > (blocks - 1 - 2 * steps) * (1 + _MISFIT * math.sqrt(2 / blocks)):
        return None
    if float(rest[1:] @ rest[:-1]) > _RELATED * max(first, 2 * _FAINT) / math.sqrt(blocks) * left * variance:
        return None
    basis = curves(blocks, 1 + 2 * steps)
    smooth = means - basis @ (basis.T @ means)
    if float(smooth @ smooth) / variance - left < _SMOOTHER + _EACH * (steps - 1):
        return None
    return Steps(first, group, (np.array(edges[1:-1]) * (count / blocks)).astype(np.int64), True)


def _split(means: Floats, start: int, end: int, variance: float) -> tuple[float, int]:
    """(by how many deviations the means before and behind it differ, the place) of the best split of some means."""
    size = end - start
    if size < 4:
        return 0.0, start
    sums = np.cumsum(means[start:end])
    before = np.arange(1, size)
    apart = np.abs(sums[:-1] - before / size * sums[-1]) / np.sqrt(variance * before * (size - before) / size)
    at = int(np.argmax(apart[1:-1])) + 1
    return float(apart[at]), start + at + 1


@lru_cache(maxsize=256)
def curves(count: int, degree: int) -> Floats:
    """Polynomials up to a degree at so many even places, orthogonal to each other."""
    return np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1, 1, count), degree))[0]


def _middle(values: Floats) -> Floats:
    """The medians of rows."""
    half = values.shape[1] // 2
    return np.asarray(np.partition(values, half, axis=1)[:, half : half + 1], np.float64)


def _deviation(sizes: Floats) -> Floats:
    """The standard deviation of normal numbers in a row, of the sizes but for the largest fifth, which a change has."""
    most = max(1, sizes.shape[1] * 4 // 5)
    return np.asarray(np.partition(sizes, most - 1, axis=1)[:, :most].mean(axis=1, keepdims=True) / 0.5586, np.float64)


def placed(away: Floats, numbers: Floats, steps: Steps, faintly: bool = True) -> list[Level]:
    """Those changes of one series that are levels' indeed; `faintly`: also faint ones."""
    if _counts(numbers):
        return []
    found = _placed(away, steps)
    if faintly and not (found or steps.faint) and (faint := _faint_steps(away, steps.group)):
        found = _placed(away, faint)
    count = len(away)
    if steps.onset and not any(steps.onset - at < 2 * block_of(count) for at, _, _ in found):
        at, size = steps.onset, count - steps.onset
        found.append((at, max(0, at - 8 * size), count))
    levels = []
    for at, first, last in found:
        was, became = float(np.median(numbers[first:at])), float(np.median(numbers[at:last]))
        if (became - was) * (np.median(away[at:last]) - np.median(away[first:at])) > 0:
            reach = max(at - first, last - at)
            end = min([next_at for next_at, _, _ in found if next_at > at], default=count)
            rest = numbers[at:end]
            if len(rest) > 4 * _PARTS and not _counts(rest) and _ramp(rest):
                head, tail = float(np.median(rest[:HELD])), float(np.median(rest[-HELD:]))
                if (tail - head) * (became - was) > 0 and abs(tail - head) > _MOVED * abs(became - was):
                    levels.append(Level(at, was, head, reach, tail))
                    continue
            levels.append(Level(at, was, became, reach))
    return levels


def _placed(away: Floats, steps: Steps) -> list[tuple[int, int, int]]:
    """(place, first of the rows before it, end of those behind it) of the steps from one level to another."""
    count, near = len(away), steps.places.tolist()
    block = block_of(count)
    reach = count if steps.faint else 8 * block
    ranks = ranks_of(away) if steps.faint else away
    found = []
    for number, place in enumerate(near):
        first = near[number - 1] + block if number else 0
        last = near[number + 1] - block if number + 1 < len(near) else count
        if steps.faint:
            at = _split(ranks, first, last, 1.0)[1]
        else:
            at = _exact(away, max(first, place - 3 * block), place, min(last, place + 3 * block))
        first, last = max(first, at - reach), min(last, at + reach)
        if _level(away[first:at], away[at:last], block, steps.faint):
            found.append((at, first, last))
    return found


def _level(before: Floats, behind: Floats, block: int, faint: bool) -> bool:
    """Whether the level of what is before a place and behind it differs: where low and high values move with the
    middle, by more than by chance, and either side is level."""
    if min(len(before), len(behind)) < min(block, HELD):
        return False
    low, high = np.quantile(before, (0.25, 0.5, 0.75)), np.quantile(behind, (0.25, 0.5, 0.75))
    step, moved = float(high[1] - low[1]), high - low
    noise = float(max(low[2] - low[0], high[2] - high[0])) / 1.349
    of_chance = 1.25 * noise * math.sqrt(1 / len(before) + 1 / len(behind))
    if abs(step) <= max(0.0 if faint else _AWAY * noise, _CHANCE * of_chance) or (moved / step).min() < _ALIKE:
        return False
    drift = max(abs(float(np.median(half[1]) - np.median(half[0]))) for half in (_halves(before), _halves(behind)))
    if drift > max(_MOVED * abs(step), _DRIFT * of_chance if faint else 0.0):
        return False
    return faint or not _rather_a_line(before, behind, block)


def _rather_a_line(before: Floats, behind: Floats, block: int) -> bool:
    """Whether a straight line is closer to the medians of blocks beside a place than two levels are."""
    sides = [side[: len(side) // block * block].reshape(-1, block) for side in (before[::-1], behind)]
    left, right = np.median(sides[0], axis=1)[::-1], np.median(sides[1], axis=1)
    if min(len(left), len(right)) < 2:
        return False
    both = np.concatenate([left, right])
    basis = curves(len(both), 1)
    rest = both - basis @ (basis.T @ both)
    return bool(rest @ rest < _STRAIGHT * (len(left) * left.var() + len(right) * right.var()))


def _late(away: Floats, series: SeriesRows) -> Rows:
    """Of series those whose last rows lie far out on one side, by their place."""
    ends = series.starts + series.sizes
    last = np.sort(away[series.rows[ends[:, None] - np.arange(1, HELD + 1)]], axis=1)
    few = HELD // 4
    return np.flatnonzero((last[:, few] > _LATE) | (last[:, -1 - few] < -_LATE))


def _onset(away: Floats, numbers: Floats, more: float) -> tuple[float, int] | None:
    """(how far it stands out, its place) of the onset in the last rows of a series; None where there is none. Positive
    numbers may be skewed, and stand out by how many times larger they get."""
    found = _jump(away, more)
    if found is None and more == 1 and numbers.min() > 0:
        return _jump(np.log(numbers), more)
    return found


def _jump(values: Floats, more: float) -> tuple[float, int] | None:
    count = len(values)
    reach = min(count, _LATE_BLOCKS * block_of(count) + 4 * HELD)
    around = values[count - reach :]
    at = count - reach + _parting(around, float(np.median(around[: reach // 2])), float(np.median(around[-HELD:])))
    size = count - at
    if not HELD <= size <= min(max(2 * HELD, 2 * block_of(count)), at // 4):  # more of them are seen in blocks
        return None
    earlier = values[at % size : at].reshape(-1, size)
    middles = np.median(earlier, axis=1)
    ever = max(float(np.abs(middles[lag:] - middles[:-lag]).max()) for lag in (1, 2))
    apart = np.abs(earlier - middles[:, None])
    usual, lately = float(np.median(apart)), float(np.median(apart[-8:]))
    ever *= max(1.0, lately / usual) if usual else 1.0  # what is louder of late jumps further
    jump = abs(float(np.median(values[at:]) - middles[-1]))
    low, high = np.quantile(earlier[-8:], (0.25, 0.75))
    most = more * max(_LATE * float(high - low) / 1.349, (_EVER + _EVER * HELD / len(middles)) * ever)
    first, second = _halves(values[at:])
    if jump <= most or abs(float(np.median(second) - np.median(first))) > _MOVED * jump:
        return None
    return 20 * jump / most if most else 40.0, at


def block_of(count: int) -> int:
    """How many of so many values are looked at together."""
    return max(4, -(-count // _BLOCKS))


def _halves(values: Floats) -> tuple[Floats, Floats]:
    half = max(1, len(values) // 2)
    return values[:half], values[-half:]


def _exact(values: Floats, first: int, near: int, last: int) -> int:
    """The place of a change close to `near`: where two constants fit best."""
    around = values[first:last]
    third = max(1, (near - first) // 2), max(1, (last - near) // 2)
    before, behind = np.median(around[: third[0]]), np.median(around[-third[1] :])
    return first + _parting(around, float(before), float(behind))


def _parting(around: Floats, before: float, behind: float) -> int:
    """The place where values go over from one constant to another."""
    costs = np.cumsum(np.abs(around - before) - np.abs(around - behind))
    return min(len(around) - 1, int(np.argmin(costs)) + 1)


def _counts(numbers: Floats) -> bool:
    """Whether numbers hardly ever go back, or hardly ever on: counters, ids."""
    steps = np.diff(numbers)
    up, down = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(up + down > 2 * MOST and min(up, down) * 20 < up + down)
