"""The places where the share of a kind changes for good, among the rows of a table in the order of their time (H18).

Rules:
- A share changes where two are likelier than one by far more than chance gives, and than what the kind does elsewhere:
  kinds that come in bursts are as uneven before and behind it.
- It changes by much: the odds of the kind at least double.
- What goes on and on (a slow drift, a season), or comes again and again, is no change.
- Where many series are looked at it takes so much more as many looks give by chance. What drifts in one of them alone
  is rather a change than what does in all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hyve.levels import HELD, Floats, Rows, curves

KINDS = 12
"""A column of up to so many kinds is looked at."""
_BLOCKS, _LEAST_BLOCKS = 64, 8
_LIKELIER = 30.0
"""By so much the doubled logarithm of the likelihood grows where a share changes, divided by how uneven the kind is."""
_DRIFTS = 2.2
_ODDS, _SMOOTHER, _STEPS = 2.0, 5.0, 2
"""The odds change by this factor, each of so many steps at most is likelier by so much than a curve."""
_RUNS = (1, 2, 4, 8, 16)
_COARSE = 16
"""Of so many blocks of each series it is seen first whether a share drifts."""
_STILL, _OTHERS = 1.5, 10
"""A share that drifts by more moves; one of the series alone does where at most one of so many others moves."""


@dataclass(frozen=True)
class Share:
    """A change of the share of a kind: its number, the place, the shares before and behind it (up to the next change
    or the end), and how far it stands out."""

    kind: int
    at: int
    before: float
    behind: float
    beyond: float


def may_drift(counts: Iterable[int], rows: int) -> bool:
    """Whether the share of a kind can drift in so many rows, or in some of them: it goes furthest where all of a kind
    come at one end."""
    return any(count * (rows - count) >= _DRIFTS**2 * rows for count in counts)


def blocks_of(count: int) -> Rows:
    """Where the blocks begin that so many rows are counted in, and the end of the last one."""
    blocks = max(_LEAST_BLOCKS, min(_BLOCKS, count // 16))
    return np.arange(blocks + 1) * count // blocks


def shares_within(codes: NDArray[np.integer], kinds: int, sizes: Rows, looks: int) -> list[tuple[int, list[Share]]]:
    """(the number of the series, its changes) of series of so many rows, one after another, of which shares change;
    those that stand out most first. `looks` are the series that are looked at in all; of codes from `kinds` on nothing
    is told."""
    groups, ends = len(sizes), np.cumsum(sizes)
    edges = np.arange(_COARSE + 1) * sizes[:, None] // _COARSE
    drifts = _drifts(_counts_in_blocks(codes, kinds, np.diff(edges)), edges)
    alone = np.count_nonzero(drifts > _STILL, axis=0) <= 1 + (groups - 1) // _OTHERS
    found = []
    for group in np.flatnonzero((drifts > _DRIFTS).any(axis=1)).tolist():
        of = codes[ends[group] - sizes[group] : ends[group]]
        if shares := shares_in(of, kinds, blocks_of(len(of)), looks, alone & (groups > 1)):
            found.append((group, shares))
    return sorted(found, key=lambda one: -one[1][0].beyond)


def shares_in(
    codes: NDArray[np.integer],
    kinds: int,
    edges: Rows,
    looks: int = 1,
    alone: NDArray[np.bool_] | None = None,
) -> list[Share]:
    """The changes of the kind whose share changes most surely: `codes` number the kinds of rows in their order, and
    those from `kinds` on are of what isn't looked at. Of the kinds `alone` it is known that they move here and hardly
    anywhere else."""
    counts = _counts_in_blocks(codes, kinds, np.diff(edges))
    totals, of_kinds = counts.sum(axis=0), counts.T.astype(np.float64)
    best: tuple[float, int, list[int]] | None = None
    for kind in np.flatnonzero(_drifts(counts, edges) > _DRIFTS).tolist():
        found = _steps(codes == kind, of_kinds[kind], edges, looks, alone is not None and bool(alone[kind]))
        # Of two kinds that take the place of each other it is the rarer one.
        if found and (best is None or (round(found[0], 6), -totals[kind]) > (round(best[0], 6), -totals[best[1]])):
            best = found[0], kind, found[1]
    if best is None:
        return []
    beyond, kind, places = best
    return _shares(codes == kind, kind, places, beyond)


def _counts_in_blocks(codes: NDArray[np.integer], kinds: int, sizes: Rows) -> Rows:
    """The rows of each kind in blocks of so many rows, one after another."""
    blocks = np.repeat(np.arange(sizes.size) * (kinds + 1), sizes.ravel())
    counts = np.bincount(blocks + np.minimum(codes, kinds), minlength=sizes.size * (kinds + 1))
    return counts.reshape(*sizes.shape, kinds + 1)[..., :kinds]


def _drifts(counts: Rows, edges: Rows) -> Floats:
    """How far the share of each kind goes from an even one, in deviations of chance (Kolmogorov's statistic), by its
    rows in each of the blocks between `edges`."""
    rows = edges[..., -1:]
    usual = counts.sum(axis=-2) / rows
    sums = np.cumsum(counts, axis=-2) - usual[..., None, :] * edges[..., 1:, None]
    with np.errstate(all="ignore"):
        drifts: Floats = np.abs(sums).max(axis=-2) / np.sqrt(rows * usual * (1 - usual))
    drifts[~np.isfinite(drifts)] = 0.0
    return drifts


def _likelihood(counts: Floats, sizes: Floats) -> Floats:
    """The doubled logarithm of the likelihood of so many of so many, with their own share."""
    others = sizes - counts
    with np.errstate(all="ignore"):
        found = counts * np.log(counts / sizes) + others * np.log(others / sizes)
        return 2 * np.where((counts > 0) & (others > 0), found, 0.0)


def _split(sums: Floats, ends: Floats, first: int, last: int) -> tuple[float, int]:
    """(by how much two shares are likelier than one, from which place on) of the best place between two; `sums` and
    `ends` are the rows of the kind and all rows up to each."""
    if last - first < 2:
        return 0.0, first
    counts, sizes = sums[first : last + 1] - sums[first], ends[first : last + 1] - ends[first]
    before = _likelihood(counts[1:-1], sizes[1:-1])
    behind = _likelihood(counts[-1] - counts[1:-1], sizes[-1] - sizes[1:-1])
    likelier = before + behind - _likelihood(counts[-1:], sizes[-1:])
    at = int(np.argmax(likelier))
    return float(likelier[at]), first + at + 1


def _steps(
    of_kind: NDArray[np.bool_], counts: Floats, edges: Rows, looks: int, alone: bool
) -> tuple[float, list[int]] | None:
    """(how far the least sure of them stands out, the places) of the changes that a kind is made of; None where it is
    not."""
    sizes, by_looks = np.diff(edges), 2 * math.log(looks)
    blocks, uneven, sure = len(sizes), _neighbours(counts, sizes), _LIKELIER + by_looks
    sums = np.concatenate([[0.0], np.cumsum(of_kind)])
    ends, grid, places = np.arange(len(sums), dtype=np.float64), edges, list[int]()
    for _ in range(_STEPS + 1):
        parts = np.searchsorted(grid, [0, *places, len(of_kind)]).tolist()
        size, at = max(_split(sums[grid], ends[grid], first, last) for first, last in pairwise(parts))
        if size < sure * uneven:
            break
        least, most = max(place for place in parts if place < at), min(place for place in parts if place > at)
        first, last = int(grid[max(least, at - 2)]), int(grid[min(most, at + 2)])
        places = sorted([*places, _split(sums, ends, first, last)[1]])
        grid = np.union1d(edges, places)
    steps = len(places)
    if not 0 < steps <= _STEPS:
        return None
    around = [0, *places, len(of_kind)]
    lengths = np.diff(around)
    if lengths.min() < HELD or lengths[1:-1].min(initial=2 * int(sizes.max())) < 2 * sizes.max():
        return None
    shares = np.diff(sums[around]) / lengths
    # How long the kind lasts once it is there: so many rows say no more than fewer that are drawn one by one.
    turns = of_kind[1:] != of_kind[:-1]
    turns[np.array(places) - 1] = False
    if (by_chance := float((2 * lengths * shares * (1 - shares)).sum())) > 0:
        lasting = max(0.0, 1 - (np.count_nonzero(turns) + 1) / (by_chance + 1))
        uneven = max(uneven, (1 + lasting) / (1 - lasting))
    # A share of none, or of all, is as uneven as if half a row more were otherwise.
    within = np.diff(np.minimum(np.maximum(edges[:, None], around[:-1]), around[1:]), axis=0) / sizes[:, None]
    expected = within @ shares
    likely = (expected * sizes + 0.5) / (sizes + 1)
    weights = np.sqrt(sizes / (likely * (1 - likely)))
    rest = (counts / sizes - expected) * weights
    for run in _RUNS:
        summed = rest[: blocks // run * run].reshape(-1, run).sum(axis=1)
        uneven = max(uneven, float(summed @ summed) / (run * max(1, len(summed) - steps)))
    least = min(
        _split(sums[[first, at, last]], ends[[first, at, last]], 0, 2)[0]
        for first, at, last in zip(around[:-2], places, around[2:], strict=True)
    )
    if least < sure * uneven:
        return None
    basis = np.linalg.qr(curves(blocks, 1 + 2 * steps) * weights[:, None])[0]
    means = counts / sizes * weights
    smooth = means - basis @ (basis.T @ means)
    if float(smooth @ smooth) - float(rest @ rest) < (0.0 if alone else _SMOOTHER + by_looks) * steps * uneven:
        return None
    return least / uneven, places


def _neighbours(counts: Floats, sizes: Rows) -> float:
    """How many times more than by chance counts of neighbouring blocks differ, but for the few that differ most."""
    both, of = counts[1:] + counts[:-1], sizes[1:] + sizes[:-1]
    share = both / of
    seen = (share > 0) & (share < 1)
    if np.count_nonzero(seen) <= 4 * _STEPS:
        return 1.0
    apart = (counts[1:] / sizes[1:] - counts[:-1] / sizes[:-1])[seen] ** 2
    apart /= (share * (1 - share) * (1 / sizes[1:] + 1 / sizes[:-1]))[seen]
    return max(1.0, float(np.sort(apart)[: -2 * _STEPS].mean()))


def _shares(of_kind: NDArray[np.bool_], kind: int, places: list[int], beyond: float) -> list[Share]:
    """The changes with the shares beside them; none where one of them is small."""
    around = [0, *places, len(of_kind)]
    lengths = np.diff(around)
    counts = np.add.reduceat(of_kind, around[:-1], dtype=np.float64)
    odds = np.log((counts + 0.5) / (lengths - counts + 0.5))
    if np.abs(np.diff(odds)).min() < math.log(_ODDS):
        return []
    shares = (counts / lengths).tolist()
    return [Share(kind, at, shares[i], shares[i + 1], beyond) for i, at in enumerate(places)]
