"""CHANGE_POINT: where the level of a series changes for good.

`FROM CHANGE_POINT('table', 'column', time := 'column', series := 'columns', top := 10)` gives a row for each change,
the strongest first: its row and time (the first sample of the new level), the median of the stretch `before` (back to
the change before it) and `after` it, `change`, and `score`, the change in robust sigma of the two stretches (NULL where
they have no noise at all). `found` counts all changes, of which `top` are shown.

A stretch is split where the sum of centred ranks is furthest from zero (Pettitt, 1979), if that is unlikely (p < 0.001,
with fewer independent samples where neighbours resemble each other), the change is over one sigma, and it happens
within a few samples: a drift is no change point. Then its two sides are looked at. A period is taken away first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hyve.operators import Operator
from hyve.operators.robust import FEWEST, Floats, Ints, blocks, decompose, even_grid, place_of_step, sigma_of
from hyve.operators.series import SERIES, function

_BLOCKS = 5_000
_MOST = 50
_UNLIKELY = 0.001

_FIELDS: dict[str, Any] = {
    **{name: pa.int64() for name in ("time", "row")},
    **{name: pa.float64() for name in ("before", "after", "score")},
}


def changes(values: Floats, times: Ints | None, rows: Ints, _: float) -> Iterator[dict[str, Any]]:
    """The change points of one series."""
    if len(values) < 2 * FEWEST:
        return
    at = times if times is not None else rows
    places, step = even_grid(at)
    grid = np.arange(places[-1] + 1)
    known = np.zeros(len(grid), bool)
    known[places] = True
    parts = decompose(np.interp(grid, places, values), known, step / 1e9 if times is not None else 0)
    flat = values - parts.season[places]
    size = -(-len(flat) // _BLOCKS)
    # Of two uneven stretches the sum of ranks is furthest from zero a little inside the longer one.
    found = sorted({place_of_step(flat, split * size, size, 25 * size) for split in _splits(blocks(flat, size))})
    edges = [0, *found, len(values)]
    for i, split in enumerate(found, 1):
        before, after = values[edges[i - 1] : split], values[split : edges[i + 1]]
        change = float(np.median(after) - np.median(before))
        sigma = sigma_of(np.concatenate([part - np.median(part) for part in (before, after)]))
        yield {
            "time": int(times[split]) if times is not None else None,
            "row": int(rows[split]),
            "before": float(np.median(before)),
            "after": float(np.median(after)),
            "score": change / sigma if sigma > 1e-9 * abs(change) else None,
        }


def _splits(values: Floats) -> list[int]:
    found: list[int] = []
    stretches = [(0, len(values))]
    while stretches and len(found) < _MOST:
        first, last = stretches.pop()
        split = _split(values[first:last])
        if split is not None:
            found.append(first + split)
            stretches += [(first, first + split), (first + split, last)]
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


_MACRO = f"""(tbl, col, time := NULL, series := NULL, top := 10) AS TABLE
{SERIES}, _found AS (
    SELECT _series, unnest(hyve_change_point(_values, _times, _places, 0.0::DOUBLE)) AS _f FROM _lists
)
SELECT _series AS series, make_timestamp_ns(_f.time) AS time, _f.row AS row, _f.before AS before, _f.after AS after,
       _f.after - _f.before AS change, round(_f.score, 2) AS score, count(*) OVER () AS found
FROM _found ORDER BY abs(_f.score) DESC NULLS FIRST, abs(_f.after - _f.before) DESC, _f.row LIMIT CAST(top AS BIGINT)"""

OPERATOR = Operator(
    "CHANGE_POINT",
    "CHANGE_POINT(same)",
    "",
    _MACRO,
    (function("hyve_change_point", changes, _FIELDS),),
)
