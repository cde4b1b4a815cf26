"""CHANGE_POINT: where the level of a series changes for good.

`FROM CHANGE_POINT('table', 'column', time := 'column', series := 'columns', top := 10)` gives a row for each change,
the strongest first: its row and time (the first sample of the new level), the median of the stretch `before`
(back to the change before it) and `after` it (to the next one), `change`, and `score`, the change in robust sigma of
the two stretches (NULL where they have no noise at all). `found` counts all changes, of which `top` are shown.

A stretch is split where the sum of centred ranks is furthest from zero (Pettitt, 1979), if that is unlikely (p < 0.001,
with fewer independent samples where neighbours resemble each other), the change is over one sigma, and it happens
within a few samples: a drift is no change point. Then its two sides are looked at. The shifts of DETECT_ANOMALY are
such splits too. A period is taken away first, and a steady drift where the series is far straighter around it: `before`
and `after` are then the levels without the season, at the moment of the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from hyve.operators import Operator
from hyve.operators.reading import most
from hyve.operators.robust import (
    BLOCKS,
    FEW_CYCLES,
    FEWEST,
    MOST_STEPS,
    Floats,
    Ints,
    blocks,
    line,
    on_grid,
    place_of_step,
    sigma_of,
)
from hyve.operators.series import function, series

_UNLIKELY = 0.001
_STRAIGHTER = 0.8
"""A drift is one if the series spreads so much less around it."""

_FIELDS: dict[str, Any] = {
    **{name: pa.int64() for name in ("time", "row")},
    **{name: pa.float64() for name in ("before", "after", "score")},
}


def changes(values: Floats, times: Ints | None, rows: Ints, _: float) -> Iterator[dict[str, Any]]:
    """The change points of one series."""
    finite = np.isfinite(values)
    values, rows, times = values[finite], rows[finite], times[finite] if times is not None else None
    if len(values) < 2 * FEWEST:
        return
    places, _step, known, parts = on_grid(values, times, rows)
    flat = values - parts.season[places]
    jumps = np.unique(np.searchsorted(places, parts.jumps)).tolist()
    found = _splits(flat, jumps)
    drift = line(flat, tuple(found or jumps))
    if _spread(flat - drift, found) < _STRAIGHTER * _spread(flat, found):
        flat = flat - drift
        found = _splits(flat, jumps)
    else:
        drift = np.zeros_like(flat)
    edges = [0, *found, len(values)]
    for i, split in enumerate(found, 1):
        before, after = (float(np.median(part)) for part in (flat[edges[i - 1] : split], flat[split : edges[i + 1]]))
        sigma = _spread(flat[edges[i - 1] : edges[i + 1]], [split - edges[i - 1]])
        # Less than it seemed before the others were found, or what a season of few cycles leaves.
        if abs(after - before) <= (2 if len(known) < FEW_CYCLES * parts.period else 1) * sigma:
            continue
        yield {
            "time": int(times[split]) if times is not None else None,
            "row": int(rows[split]),
            "before": before + float(drift[split]),
            "after": after + float(drift[split]),
            "score": (after - before) / sigma if sigma > 1e-9 * abs(after - before) else None,
        }


def _spread(values: Floats, splits: list[int]) -> float:
    """Robust sigma around the medians of the stretches between `splits`."""
    return sigma_of(np.concatenate([part - np.median(part) for part in np.split(values, splits)]))


def _splits(values: Floats, jumps: list[int]) -> list[int]:
    """Where `values` change: at the steps that were seen already, and within the stretches between them."""
    n = len(values)
    inner = [jump for jump in jumps if FEWEST <= jump <= n - FEWEST]
    found = list(inner)
    stretches = list(pairwise((0, *inner, n)))
    while stretches and len(found) < MOST_STEPS:
        first, last = stretches.pop()
        size = -(-(last - first) // BLOCKS)
        near = _split(blocks(values[first:last], size))
        if near is not None:
            # Of two uneven stretches the sum of ranks is furthest from zero a little inside the longer one.
            split = first + place_of_step(values[first:last], near * size, size, 25 * size)
            if first < split < last:
                found.append(split)
                stretches += [(first, split), (split, last)]
    return sorted(found)


def _split(values: Floats) -> int | None:
    n = len(values)
    if n < 2 * FEWEST:
        return None
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # equal values share the mean of their ranks
    sums = np.abs(2 * np.cumsum(ranks) - np.arange(1, n + 1) * (n + 1))[:-1]
    split = int(np.argmax(sums)) + 1
    if min(split, n - split) < FEWEST:
        return None
    before, after = values[:split], values[split:]
    change = float(np.median(after) - np.median(before))
    residual = np.concatenate([before - np.median(before), after - np.median(after)])
    sigma = sigma_of(residual)
    likeness = _likeness(np.clip(residual, -4 * sigma, 4 * sigma))
    chance = 2 * np.exp(-6 * float(sums[split - 1]) ** 2 * (1 - likeness) / (1 + likeness) / (n**3 + n**2))
    near = max(3, min(10, n // 4))
    abrupt = float(np.median(after[:near]) - np.median(before[-near:]))
    return split if chance < _UNLIKELY and abs(change) > sigma and abrupt / change > 0.5 else None


def _likeness(residual: Floats) -> float:
    """How far each sample resembles its neighbour: their correlation, from 0 to 0.9."""
    power = float(residual @ residual)
    return float(np.clip(residual[1:] @ residual[:-1] / power, 0, 0.9)) if power else 0.0


_MACRO = f"""(tbl, col := NULL, top := 10, time := NULL, series := NULL) AS TABLE
{series("hyve_change_point")}
SELECT _series AS series, make_timestamp_ns(_f.time) AS time, _f.row AS row, _f.before AS before, _f.after AS after,
       _f.after - _f.before AS change, round(_f.score, 2) AS score, count(*) OVER () AS found
FROM _found ORDER BY abs(_f.score) DESC NULLS FIRST, abs(_f.after - _f.before) DESC, _f.row {most("top")}"""

OPERATOR = Operator(
    "CHANGE_POINT",
    "CHANGE_POINT(same)",
    "",
    _MACRO,
    (function("hyve_change_point", changes, _FIELDS),),
)
