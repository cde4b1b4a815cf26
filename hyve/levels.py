"""The places where series of numbers change their level (the rules are those of `hyve.changes`)."""

from __future__ import annotations

import math

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
_AWAY, _CHANCE, _ALIKE, _MOVED = 0.8, 4.5, 0.25, 0.4
"""A change is larger than this share of the spread, and than so many deviations of chance; quartiles move by this share
of it; what is level moves by less than that: what goes on evenly by half."""


def steps_in(away: Floats, rows: Rows, owners: Rows, starts: Rows, sizes: Rows) -> list[tuple[float, int, Rows]]:
    """(how far the largest one stands out, the number of the series, places) of series that may change their level,
    those that stand out most first. Places count the used rows of the series."""
    least = int(sizes.min())
    blocks = max(_LEAST_BLOCKS, min(_BLOCKS, least // 8))
    samples = min(_SAMPLES, least // blocks)
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
    limit = _BEYOND + _FEWER / blocks
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
            found.append((float(tops[group]), int(owners[group]), at.astype(np.int64)))
    return found


def _middle(values: Floats) -> Floats:
    """The medians of rows."""
    half = values.shape[1] // 2
    return np.asarray(np.partition(values, half, axis=1)[:, half : half + 1], np.float64)


def _deviation(sizes: Floats) -> Floats:
    """The standard deviation of normal numbers in a row, of the sizes but for the largest fifth, which a change has."""
    most = max(1, sizes.shape[1] * 4 // 5)
    return np.asarray(np.partition(sizes, most - 1, axis=1)[:, :most].mean(axis=1, keepdims=True) / 0.5586, np.float64)


def placed(away: Floats, numbers: Floats, near: Rows) -> list[tuple[int, float, float]]:
    """(place, median before it, median behind it) of those changes of one series that are levels' indeed."""
    count = len(away)
    if _counts(numbers):
        return []
    block = block_of(count)
    found = []
    for number, place in enumerate(near.tolist()):
        first = int(near[number - 1]) + block if number else 0
        last = int(near[number + 1]) - block if number + 1 < len(near) else count
        at = _exact(away, max(first, place - 3 * block), place, min(last, place + 3 * block))
        left, right = slice(max(first, at - 8 * block), at), slice(at, min(last, at + 8 * block))
        before, behind = away[left], away[right]
        if min(len(before), len(behind)) < min(block, HELD):
            continue
        low, high = np.quantile(before, (0.25, 0.5, 0.75)), np.quantile(behind, (0.25, 0.5, 0.75))
        step, moved = float(high[1] - low[1]), high - low
        noise = float(max(low[2] - low[0], high[2] - high[0])) / 1.349
        of_chance = 1.25 * noise * math.sqrt(1 / len(before) + 1 / len(behind))
        if abs(step) <= max(_AWAY * noise, _CHANCE * of_chance) or (moved / step).min() < _ALIKE:
            continue
        drift = max(abs(float(np.median(half[1]) - np.median(half[0]))) for half in (_halves(before), _halves(behind)))
        if drift > _MOVED * abs(step):
            continue
        was, became = float(np.median(numbers[left])), float(np.median(numbers[right]))
        if (became - was) * step > 0:
            found.append((at, was, became))
    return found


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
    costs = np.cumsum(np.abs(around - before) - np.abs(around - behind))
    return first + min(len(around) - 1, int(np.argmin(costs)) + 1)


def _counts(numbers: Floats) -> bool:
    """Whether numbers hardly ever go back, or hardly ever on: counters, ids."""
    steps = np.diff(numbers)
    up, down = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(up + down > 2 * MOST and min(up, down) * 20 < up + down)
