"""Where numbers that were level begin to rise or to fall, and go on for long (the rules are those of `hyve.changes`).

The medians of blocks are level up to a knot, go evenly from there to another one, and are level again, if more follow:
that is far likelier than a step or curves as smooth, and leaves no more than noise. Walks, seasons and bends are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hyve.levels import Floats, curves

_BLOCKS, _SAMPLES, _LEAST_ROWS = 64, 64, 96
"""Blocks that a series is parted into, and values that are looked at of each."""
_LEVEL, _CLIMB = 6, 6
"""So many blocks at least are level before it rises, and rise."""
_RISES, _MISFIT, _SMOOTHER, _STRAIGHT, _FINE, _LIKELY = 8.0, 2.0, 20.0, 0.003, 8, 0.9
"""It rises by so many deviations of a block's median; what is left is noise, larger by at most so many deviations of
chance, or by such a share of all; a step or curves leave more by so much."""


@dataclass(frozen=True)
class Climb:
    """Where numbers begin to rise or fall, and the place from which on they are level again (their number, if they
    aren't)."""

    at: int
    end: int


def climb(numbers: Floats) -> Climb | None:
    """The climb of a series; None where it has none."""
    count = len(numbers)
    if count < _LEAST_ROWS:
        return None
    blocks = min(_BLOCKS, count // 6)
    samples = min(_SAMPLES, count // blocks)
    taken = numbers[(np.arange(blocks * samples) * (count / (blocks * samples))).astype(np.int64)]
    if not 0 < (largest := float(np.abs(taken).max())) < math.inf:
        return None
    taken = np.sort((taken / largest).reshape(blocks, samples), axis=1)
    with np.errstate(all="ignore"):
        means = taken[:, samples // 4 : samples - samples // 4].mean(axis=1)
        centred = means - means.mean()
        knots, shapes = _shapes(blocks)
        best = int(np.argmax(np.abs(centred @ shapes)))
        knots, shapes = _finer(blocks, *knots[best])
        by = centred @ shapes
        best = int(np.argmax(np.abs(by)))
        start, end = knots[best]
        rest = centred - by[best] * shapes[:, best]
        rise = abs(float(by[best])) * float(np.ptp(shapes[:, best]))
        variance = _variance(means, taken)
        if not (math.isfinite(rise) and rise > _RISES * math.sqrt(variance)):
            return None
        left, whole = float(rest @ rest), float(centred @ centred)
        basis = curves(blocks, 3)
        smooth = centred - basis @ (basis.T @ centred)
        of_noise = left < variance * (blocks - 4) * (1 + _MISFIT * math.sqrt(2 / blocks))
        if not (of_noise or left < _STRAIGHT * whole):
            return None
        step = whole - float(np.square(centred @ _steps(blocks)).max())
        if min(float(smooth @ smooth), step) < left + _SMOOTHER * max(variance, left / blocks):
            return None
    last = count if end > blocks - _LEVEL / 2 else round(end * count / blocks)
    return Climb(round(start * count / blocks), last)


def may_climb(means: Floats) -> NDArray[np.bool_]:
    """Of which series, by means of few blocks of what is far out at most, a climb may be found: what is a step there,
    too."""
    blocks = means.shape[1]
    centred = means - means.mean(axis=1, keepdims=True)
    whole = (centred**2).sum(axis=1)
    found = ((centred @ _coarse(blocks)) ** 2).max(axis=1, initial=0.0)
    likely: NDArray[np.bool_] = found > _LIKELY * whole
    if blocks >= _FINE:
        likely &= found > ((centred @ curves(blocks, 3)) ** 2).sum(axis=1)
    return likely


@lru_cache(maxsize=32)
def _coarse(blocks: int) -> Floats:
    """The courses of climbs and steps between any two of few blocks."""
    at = np.arange(0.0, blocks + 0.5, 0.5)
    knots = [(i, max(j, i + 0.25)) for i in at for j in at if j >= i and 0 < i <= blocks - 1]
    return _courses(blocks, np.array(knots))


def _variance(means: Floats, taken: Floats) -> float:
    """Of a block's median: what two neighbours are beside the third, but for the fifth that is largest; whole numbers
    are off by half of what they go up by at most."""
    bent = np.sort((means[2:] - 2 * means[1:-1] + means[:-2]) ** 2)
    usual = bent[: max(1, len(bent) * 4 // 5)].mean() / 6 / 0.44
    distances = np.diff(np.unique(taken))
    unit = float(distances.min()) if len(distances) else 0.0
    return max(float(usual), unit**2 / 12, 1e-18)


@lru_cache(maxsize=32)
def _shapes(blocks: int) -> tuple[Floats, Floats]:
    """(where each climb begins and ends, in blocks; their courses)."""
    knots = [(i, j) for i in range(_LEVEL, blocks) for j in range(i + _CLIMB, blocks + 1)]
    return np.array(knots, np.float64), _courses(blocks, np.array(knots, np.float64))


@lru_cache(maxsize=32)
def _steps(blocks: int) -> Floats:
    """The same of steps from one block to the next."""
    at = np.arange(1.0, blocks)
    return _courses(blocks, np.stack([at - 0.25, at + 0.25], axis=1))


def _finer(blocks: int, start: float, end: float) -> tuple[Floats, Floats]:
    """The same of those less than a block away."""
    near = np.arange(-_FINE, _FINE + 1) / _FINE
    knots = np.stack(np.meshgrid(start + near, np.minimum(end + near, blocks)), axis=2).reshape(-1, 2)
    return knots, _courses(blocks, knots)


def _courses(blocks: int, knots: Floats) -> Floats:
    """What climbs are, with a mean of 0 and a length of 1, side by side."""
    at = np.arange(blocks)[:, None] + 0.5
    start, end = knots.T
    shapes = np.clip((at - start) / (end - start), 0, 1)
    shapes -= shapes.mean(axis=0)
    return np.asarray(shapes / np.sqrt((shapes**2).sum(axis=0)), np.float64)
