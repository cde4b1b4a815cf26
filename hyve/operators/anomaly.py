"""DETECT_ANOMALY: what stands out of a series once its period, trend and level are taken away (H31).

`FROM DETECT_ANOMALY('table', 'column', time := 'column', series := 'column, column', k := 3.5, top := 20)` gives a row
for each interval, the strongest first:

- "spike" and "dip": neighbouring samples further from what was expected than `k` robust sigma and than the tail of the
  other samples lets expect. `value` is the furthest one, `score` its distance in sigma; both may be infinite.
- "shift": from here on the level is another one, until the next shift. `expected` is the level before, `value` the one
  behind it (of the sample, that is with its season and trend). `score` is NULL where there is no noise at all.
- "gap": more samples are missing than elsewhere; `points` is how many, `score` the same in usual distances. The
  interval is from the last sample before to the first one behind. A row that comes in time and holds NaN or NULL is a
  sample without a value, and no gap.

`low` and `high` bound what would have been no anomaly; `period` is in samples; `found` counts all intervals, of which
`top` are shown. Rows are counted from 0 in the order of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyve.operators import Operator
from hyve.operators.reading import most
from hyve.operators.robust import FEWEST, Decomposition, Floats, Ints, on_grid, tail
from hyve.operators.series import function, series

_NEAR = 2
"""Flagged samples at most so many steps apart are one interval."""

_FIELDS: dict[str, Any] = {
    "kind": pa.string(),
    **{name: pa.int64() for name in ("first_time", "last_time", "first_row", "last_row", "points")},
    **{name: pa.float64() for name in ("value", "expected", "low", "high", "score")},
    "period": pa.int64(),
}


@dataclass(frozen=True)
class _Series:
    """Samples, their places on an even grid, and for each place of the grid the sample at it or before."""

    values: Floats
    times: Ints | None
    rows: Ints
    places: Ints
    samples: Ints


def detect(values: Floats, times: Ints | None, rows: Ints, k: float) -> Iterator[dict[str, Any]]:
    """The findings of one series."""
    all_values, all_times, all_rows, finite = values, times, rows, np.isfinite(values)
    values, rows, times = values[finite], rows[finite], times[finite] if times is not None else None
    if len(values) < FEWEST:
        return
    places, step, known, parts = on_grid(values, times, rows)
    samples = np.searchsorted(places, np.arange(len(known)), side="right") - 1
    series = _Series(values, times, rows, places, samples)
    whole = _Series(all_values, all_times, all_rows, places, samples)
    yield from _gaps(whole, finite, step)
    yield from _shifts(series, parts)
    if parts.sigma:
        yield from _spikes(series, parts, known, k)
    yield from _infinite(whole)


def _gaps(series: _Series, finite: npt.NDArray[np.bool_], step: float) -> Iterator[dict[str, Any]]:
    """Where no sample is. One that has no value is there, if it comes when the next one is due."""
    if not step:
        return
    at = series.times if series.times is not None else series.rows
    steps = np.diff(at[finite]).astype(np.float64)
    limit = max(2.5 * step, step + tail(np.abs(steps[steps > 0] - step), len(steps)))
    held = np.flatnonzero(finite)
    since = (at - at[held[np.maximum(np.searchsorted(held, np.arange(len(at)), side="right") - 1, 0)]]) / step
    there = np.flatnonzero(finite | (np.abs(since - np.rint(since)) < 0.2))
    steps = np.diff(at[there]).astype(np.float64)
    for i in np.flatnonzero(steps > limit):
        missing = round(steps[i] / step) - 1
        yield _finding(series, "gap", int(there[i]), int(there[i + 1]), points=missing, score=float(steps[i] / step))


def _infinite(series: _Series) -> Iterator[dict[str, Any]]:
    """An infinite value among finite ones, such as a rate by nothing."""
    far = np.flatnonzero(np.isinf(series.values))
    for run in _runs(far, series.values[far]):
        value = float(series.values[run[0]])
        yield _finding(series, "spike" if value > 0 else "dip", int(run[0]), int(run[-1]), len(run), value, score=value)


def _runs(far: Ints, away: Floats) -> list[Ints]:
    """Places with what is `away` to one side, and near each other, together."""
    apart = (np.diff(far) > _NEAR) | (np.diff(np.sign(away)) != 0)
    return np.split(far, np.flatnonzero(apart) + 1) if len(far) else []


def _shifts(series: _Series, parts: Decomposition) -> Iterator[dict[str, Any]]:
    for jump, behind in pairwise((*parts.jumps, len(series.samples))):
        size = float(parts.level[jump] - parts.level[jump - 1])
        first, last = int(np.searchsorted(series.places, jump)), int(series.samples[behind - 1])
        expected = float(parts.trend[jump] + parts.season[jump] + parts.level[jump - 1])
        yield _finding(
            series,
            "shift",
            first,
            last,
            last - first + 1,
            expected + size,
            expected,
            size / parts.sigma if parts.sigma else None,
            parts.period,
        )


def _spikes(series: _Series, parts: Decomposition, known: npt.NDArray[np.bool_], k: float) -> Iterator[dict[str, Any]]:
    scores = np.where(known, parts.residual - np.median(parts.residual[known]), 0.0) / parts.sigma
    count = int(known.sum())
    k *= 1 + FEWEST / count  # the sigma of a few samples is often too small
    up, down = (max(k, tail(side[side > 0], count)) for side in (scores[known], -scores[known]))
    beside = np.zeros(len(scores), bool)
    for jump in parts.jumps:
        beside[max(0, jump - _NEAR) : jump + _NEAR] = True  # a shift that takes two samples isn't a spike as well
    far = np.flatnonzero(((scores > up) | (scores < -down)) & ~beside)
    for run in _runs(far, scores[far]):
        worst = run[np.argmax(np.abs(scores[run]))]
        score, sample = float(scores[worst]), int(series.samples[worst])
        value = float(series.values[sample])
        expected = value - score * parts.sigma
        finding = _finding(
            series,
            "spike" if score > 0 else "dip",
            int(series.samples[run[0]]),
            int(series.samples[run[-1]]),
            len(run),
            value,
            expected,
            score,
            parts.period,
        )
        yield finding | {"low": expected - down * parts.sigma, "high": expected + up * parts.sigma}


def _finding(
    series: _Series,
    kind: str,
    first: int,
    last: int,
    points: int,
    value: float | None = None,
    expected: float | None = None,
    score: float | None = None,
    period: int = 0,
) -> dict[str, Any]:
    times = series.times
    return {
        "kind": kind,
        "first_time": int(times[first]) if times is not None else None,
        "last_time": int(times[last]) if times is not None else None,
        "first_row": int(series.rows[first]),
        "last_row": int(series.rows[last]),
        "points": points,
        "value": value,
        "expected": expected,
        "score": score,
        "period": period or None,
    }


_MACRO = f"""(tbl, col := NULL, k := 3.5, top := 20, time := NULL, series := NULL) AS TABLE
{series("hyve_detect_anomaly", "k")}
SELECT _series AS series, _f.kind AS kind, make_timestamp_ns(_f.first_time) AS first_time,
       make_timestamp_ns(_f.last_time) AS last_time, _f.first_row AS first_row, _f.last_row AS last_row,
       _f.points AS points, _f.value AS value, _f.expected AS expected, _f.low AS low, _f.high AS high,
       round(_f.score, 2) AS score, _f.period AS period, count(*) OVER () AS found
FROM _found ORDER BY abs(_f.score) DESC NULLS FIRST, _f.first_row, _f.kind {most("top")}"""

OPERATOR = Operator(
    "DETECT_ANOMALY",
    "FROM DETECT_ANOMALY('table', 'column', series := 'columns')",
    "spikes, shifts, gaps",
    _MACRO,
    (function("hyve_detect_anomaly", detect, _FIELDS),),
)
