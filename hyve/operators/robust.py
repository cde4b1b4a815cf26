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
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST = 5
"""Samples below which nothing can be said of a series."""

# How much is looked at: of longer series medians of blocks, windows of at most so many of them, wide windows by blocks
# of a 32nd, and so many windows at either end.
BLOCKS, _WIDEST, _FINE, _ENDS = 5_000, 501, 32, 8
# A period comes at least three times, its peak in the autocorrelation is so high, and up to eight cycles are judged by
# each other. A season is as sharp as it is where a smooth one leaves so many times as much.
_CYCLES, _PEAK, FEW_CYCLES = 3, 0.3, 8
# So many steps of a series at most; so many equal samples are a level that is held.
MOST_STEPS, _HELD = 50, 10
_SHARP = 2
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


def on_grid(values: Floats, times: Ints | None, rows: Ints) -> tuple[Ints, float, npt.NDArray[np.bool_], Decomposition]:
    """Finite samples put on an even grid: their places, its step (see `even_grid`), which of it have one, its parts."""
    places, step = even_grid(rows if times is None else times)
    known = np.zeros(places[-1] + 1, bool)
    known[places] = True
    filled = np.interp(np.arange(len(known)), places, values)
    return places, step, known, decompose(filled, known, 0.0 if times is None else step / 1e9)


def decompose(values: Floats, known: npt.NDArray[np.bool_], step: float) -> Decomposition:
    """Takes `values` on an even grid of `step` seconds (0: not known); what is not `known` is interpolated.

    A period close to an hour, a day or a week is taken for it.
    """

    def filled(part: Floats) -> Floats:
        if known.all():
            return part
        at = np.flatnonzero(known)
        return np.interp(np.arange(len(part)), at, part[at])

    def width_of(period: int) -> int:
        return period or int(np.clip(len(values) // 10, 25, 201)) | 1

    centred, level = values - line(values), np.zeros_like(values)
    period, season = _seasonal(centred, known, step)
    held = np.flatnonzero(np.diff(values)) + 1
    # A period of constants changes at least five times in three cycles.
    wide = len(held) < 2 * _CYCLES - 1 or not period
    if wide and 0 < len(held) <= MOST_STEPS and np.diff([0, *held, len(values)]).min() >= _HELD:
        # Replicas, a version: constants one after the other. There is no noise that a step could be measured by.
        nothing = np.zeros_like(values)
        return Decomposition(values - values[0], nothing, nothing + values[0], nothing, 0.0, 0, tuple(held.tolist()))
    jumps, reach = _jumps(filled(centred - season), width_of(period))
    for last in (False, False, True) if jumps else ():
        # A step bends the line and hides a period: with the steps away both are looked for anew.
        centred = values - line(filled(values - season), jumps)
        level = _level(filled(centred - season), jumps, reach)
        if last:
            break
        anew, other = _seasonal(centred - level, known, step)
        if anew and sigma_of(centred - level - other) < sigma_of(centred - level - season):
            found, far = _jumps(filled(centred - other), width_of(anew))
            if found:
                period, season, jumps, reach = anew, other, found, far
    if period and jumps:
        season = _season_of(filled(centred - level), known, period)
    width = width_of(period)
    flat = filled(centred - level - season)
    trend = _trend(flat, width)
    residual = np.where(known, flat - trend, 0.0)
    size = float(np.max(np.abs(values)))
    sigma = sigma_of(residual[known], size)
    if period and len(values) < FEW_CYCLES * period:
        judged = centred - level - trend
        sigma = max(sigma, sigma_of((judged - _season_of(judged, known, period, others=True))[known], size))
    return Decomposition(level, season, values - level - season - residual, residual, sigma, period, jumps)


def _seasonal(values: Floats, known: npt.NDArray[np.bool_], step: float) -> tuple[int, Floats]:
    """The period of what has no line and no steps any more, and its season; 0 and zeros without one."""
    period = _period(values, step)
    # Judged by the other cycles: of few cycles, the median by phase is near each by itself.
    if not period or sigma_of(values - _season_of(values, known, period, others=True)) > 0.75 * sigma_of(values):
        return 0, np.zeros_like(values)
    season = _season_of(values, known, period)
    weekly = _season_of(values, known, 7 * period) if len(values) >= 3 * 7 * period else season
    # Means: a median never sees what two days of seven do.
    if np.mean(np.abs(values - weekly)[known]) < 0.8 * np.mean(np.abs(values - season)[known]):
        return 7 * period, weekly
    return period, season


def _season_of(values: Floats, known: npt.NDArray[np.bool_], period: int, others: bool = False) -> Floats:
    """The season of `period` around a trend as long as a period.

    A part of a period has a median of its own. Where the ends are much of the series the trend is found twice: first up
    to the last whole period, then without the season.
    """
    width = -(-12 // period) * period
    trend = _trend(values, width, hold=len(values) < FEW_CYCLES * period)
    if len(values) < FEW_CYCLES * period:
        trend = _trend(values - _season(np.where(known, values - trend, np.nan), period, False), width)
    return _season(np.where(known, values - trend, np.nan), period, others)


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


def running_median(values: Floats, width: int, hold: bool = False) -> Floats:
    """Medians of the `width` values around each; at the ends of fewer, interpolated between some.

    An even number of values stays even: of two levels in turn it has the mean, where an odd one jumps between them.
    With `hold` the ends are those nearest to them.
    """
    n = len(values)
    width = min(width, n - 1 + (n + width) % 2)
    if width < 2:
        return values.copy()
    half = width // 2
    inner = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    last = half + len(inner)
    if hold:
        return np.interp(np.arange(n), np.arange(half, last), inner)
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


def line(values: Floats, edges: tuple[int, ...] = ()) -> Floats:
    """The line of Theil and Sen through medians of 20 blocks; for short series their median.

    Only blocks of one stretch between two `edges`, where the level changes, are compared.
    """
    n = len(values)
    if n < 40:
        return np.full(n, np.median(values))
    size = n // 20
    slopes: list[Floats] = []
    for first, last in pairwise((0, *edges, n)):
        medians = blocks(values[first:last], size)
        i, j = np.triu_indices(len(medians), 1)
        slopes.append((medians[j] - medians[i]) / ((j - i) * size))
    every = np.concatenate(slopes)
    slope = float(np.median(every)) if len(every) else 0.0
    at = (np.arange(n // size) + 0.5) * size
    return np.asarray(np.median(blocks(values, size) - slope * at) + slope * np.arange(n), dtype=np.float64)


def _trend(values: Floats, width: int, hold: bool = False) -> Floats:
    """A running median of about `width`: of medians of blocks where it is wide, interpolated.

    `hold`: at the ends that of the last whole window, since a part of a period has a median of its own.
    """
    least, size = -(-len(values) // BLOCKS), width // _FINE
    # Blocks that fit into a period, if any do: others would see another part of it each time.
    fitting = (part for part in range(size, max(least, size // 2, 1) - 1, -1) if width % part == 0)
    size = next(fitting, max(least, size))
    medians = blocks(values, size)
    smooth = running_median(medians, max(3, min(width // size, _WIDEST)), hold)
    if size == 1:
        return smooth
    return np.interp(np.arange(len(values)), (np.arange(len(medians)) + 0.5) * size - 0.5, smooth)


def _period(values: Floats, step: float) -> int:
    """The lag of the highest peak of the autocorrelation, or 0. At least three cycles must be there."""
    n = len(values)
    longest = int(n / _CYCLES * 1.05)  # noise moves a peak
    if longest < 2 or longest + 2 > n:
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
            return steps if steps * _CYCLES <= n else 0
    return period if period * _CYCLES <= 1.03 * n else 0


def _season(values: Floats, period: int, others: bool) -> Floats:
    """Medians by phase; of long periods those of neighbours too, since few cycles make a noisy median.

    `others`: of at most 8 cycles each gets the median of those around it.
    """
    cycles = -(-len(values) // period)
    padded = np.full(cycles * period, np.nan)
    padded[: len(values)] = values
    table = padded.reshape(cycles, period)
    if others and cycles <= FEW_CYCLES:
        seasons = [_phases(np.delete(table, cycle, axis=0)) for cycle in range(cycles)]
        return np.concatenate(seasons)[: len(values)]
    return np.tile(_phases(table), cycles)[: len(values)]


def _phases(table: Floats) -> Floats:
    """The median of each column, smoothed over its neighbours, around 0.

    Not smoothed where that leaves far more: a sawtooth falls within one sample.
    """
    period = table.shape[1]
    never = np.isnan(table).all(axis=0)
    shape = np.where(never, 0.0, table)
    medians = np.nanmedian(shape, axis=0)
    half = period // 96
    if half:
        around = np.concatenate([medians[-half:], medians, medians[:half]])
        smooth = np.convolve(around, np.full(2 * half + 1, 1 / (2 * half + 1)), mode="valid")
        left, beside = (np.nanmedian(np.abs(shape - one), axis=0).mean() for one in (medians, smooth))
        if beside <= _SHARP * left:
            medians = smooth
    return np.asarray(medians - np.median(medians), dtype=np.float64)


def _jumps(values: Floats, width: int) -> tuple[tuple[int, ...], int]:
    """Where the level changes, and how many values beside it say by how much.

    A step is where the medians of the windows before and behind differ by over three sigma of the values and far more
    than they do elsewhere, and most of the difference lies within a few samples.
    """
    size = -(-len(values) // BLOCKS)
    medians = blocks(values, size)
    n = len(medians)
    half = max(3, min(int(np.clip(width // size // 2, 10, 50)), n // 6))
    if n < 4 * half:
        return (), 0
    windows = np.median(np.lib.stride_tricks.sliding_window_view(medians, half), axis=1)
    difference = windows[half:] - windows[:-half]  # of [i, i + half) and [i - half, i), for i from half on
    # A slow period is no step. In a short series the steps themselves could fill the window.
    usual_here = running_median(difference, 8 * half + 1) if n >= 40 * half else np.median(difference)
    difference = difference - usual_here
    sigma = sigma_of(medians - _trend(medians, half | 1))
    sizes = np.abs(difference)
    usual = max(1.4826 * float(np.median(sizes)), sigma * 1.77 / half**0.5)
    least = max(3 * sigma, 5 * usual, 1e-9 * float(np.max(np.abs(values))))
    jumps: list[int] = []
    for i in np.argsort(-sizes, kind="stable"):
        if sizes[i] <= least or len(jumps) >= MOST_STEPS:
            break
        at = int(i) + half
        near = max(3, half // 3)
        abrupt = np.median(medians[at : at + near]) - np.median(medians[max(0, at - near) : at])
        if all(abs(at - other) >= half for other in jumps) and abrupt / difference[i] > 0.6:
            jumps.append(at)
    places = {place_of_step(values, at * size, size, half * size) for at in jumps}
    return tuple(sorted(places)), half * size


def _level(values: Floats, jumps: tuple[int, ...], reach: int) -> Floats:
    """The steps at `jumps`: differences of the medians of up to `reach` values on either side."""
    level = np.zeros_like(values)
    base = 0.0
    for last, place, following in zip((0, *jumps), jumps, (*jumps[1:], len(values)), strict=False):
        before, behind = values[max(last, place - reach) : place], values[place : min(place + reach, following)]
        base += float(np.median(behind) - np.median(before))
        level[place:] = base
    return level


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
