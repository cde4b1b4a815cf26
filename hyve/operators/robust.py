"""Robust statistics of one series: period, season, trend, level shifts, gaps and what stands out of all of them.

Rules:
- Everything is made of medians, so a few wild values move nothing. 1.4826 MAD is the standard deviation that a normal
  distribution with that median absolute deviation has; where over half of the values are equal the MAD is 0, and 1.2533
  times the mean absolute deviation takes its place (Iglewicz and Hoaglin, 1993).
- How far is too far depends on the tail: latencies and counts often lie ten sigma off. The threshold is `k` or, where
  that is more, what a Weibull tail through two quantiles of the residuals exceeds in one series out of twenty.
- Time and memory are O(n log n) in the samples: windows slide over at most some 5,000 medians of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 5
"""Samples below which nothing can be said of a series."""

# How much is looked at: of longer series medians of blocks, windows of at most so many of them, wide windows by blocks
# of a 32nd, and so many windows at either end.
_BLOCKS, _WIDEST, _FINE, _ENDS = 5_000, 501, 32, 8
# A period comes at least three times, its peak in the autocorrelation is so high, and up to eight cycles are judged by
# each other.
_CYCLES, _PEAK, _FEW = 3, 0.3, 8
_CALENDAR = (3_600, 86_400, 604_800)
# The tail goes through these quantiles; so many samples of a calm series may lie beyond it.
_LOW, _HIGH, _EXPECTED = 0.80, 0.95, 0.05


@dataclass(frozen=True)
class Decomposition:
    """A series on an even grid = `level` (steps) + `season` + `trend` (both without steps) + `residual`.

    `jumps` are the grid positions where `level` changes; `period` is in steps of the grid, 0 without one.
    """

    level: Floats
    season: Floats
    trend: Floats
    residual: Floats
    sigma: float
    period: int
    jumps: tuple[int, ...]


def decompose(values: Floats, known: npt.NDArray[np.bool_], step: float = 0.0) -> Decomposition:
    """Takes `values` on an even grid of `step` seconds apart; what is not `known` is interpolated.

    A period close to an hour, a day or a week is taken for it.
    """
    centred = values - _line(values)

    def filled(part: Floats) -> Floats:
        if known.all():
            return part
        at = np.flatnonzero(known)
        return np.interp(np.arange(len(part)), at, part[at])

    def season_of(part: Floats, period: int, others: bool = False) -> Floats:
        cycles = -(-12 // period)
        return _season(np.where(known, part - _trend(part, cycles * period), np.nan), period, others)

    season = np.zeros_like(values)
    period = _period(centred, step)
    if period:
        # Judged by the other cycles: of few cycles, the median by phase is near each by itself.
        if sigma_of(centred - season_of(centred, period, others=True)) > 0.75 * sigma_of(centred):
            period = 0
        else:
            season = season_of(centred, period)
            weekly = season_of(centred, 7 * period) if len(values) >= 3 * 7 * period else season
            # Means: a median never sees what two days of seven do.
            if np.mean(np.abs(centred - weekly)[known]) < 0.8 * np.mean(np.abs(centred - season)[known]):
                period, season = 7 * period, weekly
    width = period or int(np.clip(len(values) // 10, 25, 201)) | 1
    level, jumps = _levels(filled(centred - season), width)
    if period and jumps:
        season = season_of(filled(centred - level), period)
    flat = filled(centred - level - season)
    trend = _trend(flat, width)
    residual = np.where(known, flat - trend, 0.0)
    size = float(np.max(np.abs(values)))
    sigma = sigma_of(residual[known], size)
    if period and len(values) < _FEW * period:
        judged = centred - level - trend
        sigma = max(sigma, sigma_of((judged - season_of(judged, period, others=True))[known], size))
    return Decomposition(level, season, values - level - season - residual, residual, sigma, period, jumps)


def sigma_of(values: Floats, size: float = 0.0) -> float:
    """A robust standard deviation; 0 where it is not over the rounding errors of numbers as large as `size`."""
    off = np.abs(values - np.median(values))
    for sigma in (1.4826 * float(np.median(off)), 1.2533 * float(np.mean(off))):
        if sigma > 1e-9 * size:
            return sigma
    return 0.0


def tail(sizes: Floats, n: int) -> float:
    """What the largest of `n` such sizes exceeds in one case out of twenty; 0 for fewer than 50 sizes.

    -log P(size > x) = (x / a) ** b, with a and b from two quantiles; sizes over the outcome are left out and it is
    found anew, so that anomalies don't hide themselves.
    """
    kept = sizes
    limit = 0.0
    for _ in range(3):
        if len(kept) < 50:
            break
        low, high = np.quantile(kept, (_LOW, _HIGH))
        if not 0 < low < high:
            return float(high)
        shape = np.clip(np.log(np.log(1 - _HIGH) / np.log(1 - _LOW)) / np.log(high / low), 0.5, 2.0)
        limit = float(high * (np.log(n / _EXPECTED) / -np.log(1 - _HIGH)) ** (1 / shape))
        inside = kept[kept <= limit]
        if len(inside) == len(kept):
            break
        kept = inside
    return limit


def running_median(values: Floats, width: int) -> Floats:
    """Medians of the `width` values around each; at the ends of fewer, interpolated between some.

    An even number of values stays even: of two levels in turn it has the mean, where an odd one jumps between them.
    """
    n = len(values)
    width = min(width, n - 1 + (n + width) % 2)
    if width < 2:
        return values.copy()
    half = width // 2
    inner = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    last = half + len(inner)
    head = np.unique(np.linspace(0, half, _ENDS, endpoint=False, dtype=np.int64)) if half else np.arange(0)
    foot = np.unique(np.linspace(n - 1, last - 1, _ENDS, endpoint=False, dtype=np.int64)) if last < n else np.arange(0)
    firsts = [float(np.median(values[: i + half + (i + half + width) % 2])) for i in head]
    lasts = [float(np.median(values[i - half + (n - i + half + width) % 2 :])) for i in foot]
    at = np.concatenate([head, np.arange(half, last), foot])
    return np.asarray(np.interp(np.arange(n), at, np.concatenate([firsts, inner, lasts])), dtype=np.float64)


def blocks(values: Floats, size: int) -> Floats:
    """Medians of blocks of `size`; what is left over at the end is dropped."""
    if size == 1:
        return values
    count = len(values) // size
    return np.asarray(np.median(values[: count * size].reshape(count, size), axis=1), dtype=np.float64)


def _line(values: Floats) -> Floats:
    """The line of Theil and Sen through medians of 20 blocks; for short series their median."""
    n = len(values)
    if n < 40:
        return np.full(n, np.median(values))
    size = n // 20
    medians = blocks(values, size)
    at = (np.arange(len(medians)) + 0.5) * size
    i, j = np.triu_indices(len(medians), 1)
    slope = float(np.median((medians[j] - medians[i]) / (at[j] - at[i])))
    return np.asarray(np.median(medians - slope * at) + slope * np.arange(n), dtype=np.float64)


def _trend(values: Floats, width: int) -> Floats:
    """A running median of about `width`: of medians of blocks where it is wide, interpolated."""
    size = max(-(-len(values) // _BLOCKS), width // _FINE)
    medians = blocks(values, size)
    smooth = running_median(medians, max(3, min(width // size, _WIDEST)))
    if size == 1:
        return smooth
    return np.interp(np.arange(len(values)), (np.arange(len(medians)) + 0.5) * size - 0.5, smooth)


def _period(values: Floats, step: float) -> int:
    """The lag of the highest peak of the autocorrelation, or 0. At least three cycles must be there."""
    n = len(values)
    longest = n // _CYCLES
    if longest < 2:
        return 0
    smooth = values - _trend(values, max(n // 2, 3) | 1)
    sigma = sigma_of(smooth)
    bound = 4 * sigma
    x = np.clip(smooth, -bound, bound)
    x = x - x.mean()
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(x, size)
    acf = np.fft.irfft(spectrum * np.conj(spectrum), size)[: longest + 2]
    if acf[0] <= 0:
        return 0
    acf = acf / acf[0] * (n / (n - np.arange(len(acf))))
    lowest = np.minimum.accumulate(acf)
    lags = np.arange(2, longest + 1)
    peaks = lags[(acf[lags] >= acf[lags - 1]) & (acf[lags] >= acf[lags + 1])]
    least = max(_PEAK, 3 / n**0.5)
    peaks = peaks[(acf[peaks] > least) & (acf[peaks] - lowest[peaks] > least)]
    if not len(peaks):
        return 0
    best = float(acf[peaks].max())
    period = int(peaks[acf[peaks] >= 0.9 * best][0])
    for seconds in _CALENDAR if step else ():
        steps = round(seconds / step)
        if abs(steps * step - seconds) < 1e-6 * seconds and abs(period - steps) <= max(1, 0.03 * steps):
            return steps
    return period


def _season(values: Floats, period: int, others: bool) -> Floats:
    """Medians by phase; of long periods those of neighbours too, since few cycles make a noisy median.

    `others`: of at most 8 cycles each gets the median of those around it.
    """
    cycles = -(-len(values) // period)
    padded = np.full(cycles * period, np.nan)
    padded[: len(values)] = values
    table = padded.reshape(cycles, period)
    if others and cycles <= _FEW:
        seasons = [_phases(np.delete(table, cycle, axis=0)) for cycle in range(cycles)]
        return np.concatenate(seasons)[: len(values)]
    return np.tile(_phases(table), cycles)[: len(values)]


def _phases(table: Floats) -> Floats:
    """The median of each column, smoothed over its neighbours, around 0."""
    period = table.shape[1]
    never = np.isnan(table).all(axis=0)
    medians = np.nanmedian(np.where(never, 0.0, table), axis=0)
    half = period // 96
    if half:
        around = np.concatenate([medians[-half:], medians, medians[:half]])
        medians = np.convolve(around, np.full(2 * half + 1, 1 / (2 * half + 1)), mode="valid")
    return np.asarray(medians - np.median(medians), dtype=np.float64)


def _levels(values: Floats, width: int) -> tuple[Floats, tuple[int, ...]]:
    """Steps of the level: the step function and where it changes.

    A step is where the medians of the windows before and behind differ by over three sigma of the values and far more
    than they do elsewhere, and most of the difference lies within a few samples.
    """
    size = -(-len(values) // _BLOCKS)
    medians = blocks(values, size)
    n = len(medians)
    half = int(np.clip(width // size // 2, 10, 50))
    level = np.zeros_like(values)
    if n < 4 * half:
        return level, ()
    windows = np.median(np.lib.stride_tricks.sliding_window_view(medians, half), axis=1)
    difference = windows[half:] - windows[:-half]  # of [i, i + half) and [i - half, i), for i from half on
    difference = difference - np.median(difference)
    sigma = sigma_of(medians - _trend(medians, half | 1))
    sizes = np.abs(difference)
    usual = max(1.4826 * float(np.median(sizes)), sigma * 1.77 / half**0.5)
    least = max(3 * sigma, 5 * usual, 1e-9 * float(np.max(np.abs(values))))
    jumps: list[int] = []
    for i in np.argsort(-sizes, kind="stable"):
        if sizes[i] <= least or len(jumps) >= 50:
            break
        at = int(i) + half
        near = max(3, half // 3)
        abrupt = np.median(medians[at : at + near]) - np.median(medians[max(0, at - near) : at])
        if all(abs(at - other) >= half for other in jumps) and abrupt / difference[i] > 0.6:
            jumps.append(at)
    places = tuple(place_of_step(values, at * size, size, half * size) for at in sorted(jumps))
    base = 0.0
    for place in places:
        before, behind = values[max(0, place - half * size) : place], values[place : place + half * size]
        base += float(np.median(behind) - np.median(before))
        level[place:] = base
    return level, places


def place_of_step(values: Floats, near: int, size: int, half: int) -> int:
    """The exact place of a step close to `near`: where two constants fit best."""
    first = max(0, near - half)
    around = values[first : near + half]
    before, behind = np.median(values[first:near]), np.median(values[near : near + half])
    costs = np.concatenate([[0.0], np.cumsum(np.abs(around - before) - np.abs(around - behind))])
    reach = max(3 * size, half // 2)
    low = max(1, near - first - reach)
    return first + low + int(np.argmin(costs[low : near - first + reach + 1]))


def even_grid(at: Ints) -> tuple[Ints, float]:
    """Places of samples on an even grid, and its step in the unit of `at`; 0 where all stand at one moment.

    Samples that keep no even distance, or share their moments, are placed one after the other.
    """
    steps = np.diff(at).astype(np.float64)
    positive = steps[steps > 0]
    order = np.arange(len(at), dtype=np.int64)
    if not len(positive):
        return order, 0.0
    step = float(np.median(positive))
    even = np.abs(positive / step - np.rint(positive / step)) < 0.2
    if even.mean() < 0.8 or len(positive) < 0.8 * len(steps) or (at[-1] - at[0]) / step > 4 * len(at) + 1000:
        return order, step
    return np.rint((at - at[0]) / step).astype(np.int64), step
