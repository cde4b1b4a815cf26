"""A column as series: by time or in the order of rows, one or many, brought to NumPy and back (for the operators).

Rules:
- Rows without a finite number are left out; where others have a time, so are those without one.
- Many series in one table are told apart by the columns in `series`; without it by `series_idx`, in `metric_points` by
  service, name and attributes.
- At most 500 series (that have at least 5 samples) of 2,000,000 samples, and 4 seconds: a Python function can't be
  interrupted. Beyond that it is an error that says to aggregate first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyve.operators import Function
from hyve.operators.reading import ROWS, check, column, first_of, split, times, where
from hyve.operators.robust import FEWEST, Floats, Ints

MOST_SERIES, MOST_SAMPLES, MOST_SECONDS = 500, 2_000_000, 4.0
_NO_TIME = -(2**63)

_NAMED = f"list_contains(list_transform({split('series')}, lambda s: lower(s)), lower(c))"
_SERIES = f"""CASE WHEN series IS NOT NULL THEN {_NAMED}
        WHEN lower(tbl) = 'metric_points' THEN regexp_matches(c, '^(service|name|attributes.*)$', 'i')
        ELSE lower(c) = 'series_idx' END OR c = '_none'"""
_OWN = ("_row", "_value", "_series")
_TOO_MANY = f"""CASE
        WHEN count(*) OVER () > {MOST_SERIES} THEN error(tbl || ' has ' || count(*) OVER ()
            || ' series, the limit is {MOST_SERIES}; filter or aggregate in a CTE first')
        WHEN _samples > {MOST_SAMPLES} THEN error(tbl || ' has ' || _samples
            || ' samples in one series, the limit is {MOST_SAMPLES}; aggregate in a CTE, by time_bucket, first')
        ELSE true END"""

SERIES = f"""WITH {ROWS}, {check("col", "time", lists="series", numeric="col")}, _read AS (
    SELECT row_number() OVER () - 1 AS _row, TRY_CAST({column("col")} AS DOUBLE) AS _value,
           nullif(concat_ws(' ', *COLUMNS(lambda c: {_SERIES})), '') AS _series, {times("time")}
    FROM _rows
), _points AS (
    SELECT {", ".join(_OWN)}, {first_of(*_OWN)} AS _time FROM _read WHERE {where("isfinite(_value)")}
), _counted AS (
    SELECT _series, count(*) AS _samples FROM _points GROUP BY _series HAVING count(*) >= {FEWEST}
), _bounded AS (
    SELECT _series FROM (SELECT _series, {_TOO_MANY} AS _ok FROM _counted) WHERE _ok
), _lists AS (
    SELECT _series, list(_value) AS _values, list(coalesce(_time, {_NO_TIME})) AS _times, list(_row) AS _places
    FROM _points WHERE (SELECT count(*) FROM _bounded) > 0 GROUP BY _series HAVING count(*) >= {FEWEST}
)"""
"""The beginning of a macro with the parameters tbl, col, time and series: `_lists` has one row for each series."""

Kernel = Callable[[Floats, "Ints | None", Ints, float], Iterable[dict[str, Any]]]
"""Finite values in order, their times in nanoseconds (None without), their rows, the parameter `k` -> findings."""


def function(name: str, kernel: Kernel, fields: dict[str, Any]) -> Function:
    """`kernel` as a function of lists of values, times and rows, and a number, to a list of structs with `fields`."""
    kind = pa.list_(pa.struct(list(fields.items())))

    def call(values: Any, stamps: Any, places: Any, ks: Any) -> Any:
        found: list[list[dict[str, Any]]] = []
        until = time.monotonic() + MOST_SECONDS
        for value, stamp, place, k in zip(values, stamps, places, ks, strict=True):
            if time.monotonic() > until:
                raise TimeoutError(f"{MOST_SECONDS:g} s were enough for {len(found)} series; filter or aggregate first")
            samples, at, rows = _numpy(value, np.float64), _numpy(stamp, np.int64), _numpy(place, np.int64)
            timed = at != _NO_TIME
            if timed.any():
                samples, at, rows = samples[timed], at[timed], rows[timed]
            order = np.lexsort((rows, at))
            with np.errstate(all="ignore"):  # what is out of range becomes infinite or NaN, and no finding
                made = kernel(samples[order], at[order] if timed.any() else None, rows[order], k.as_py() or 0.0)
                found.append(list(made))
        return pa.array(found, kind)

    names = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE"}
    struct = ", ".join(f"{field} {names[str(kind)]}" for field, kind in fields.items())
    return Function(name, call, ("DOUBLE[]", "BIGINT[]", "BIGINT[]", "DOUBLE"), f"STRUCT({struct})[]")


def _numpy(cell: Any, kind: Any) -> npt.NDArray[Any]:
    return np.asarray(cell.values.to_numpy(zero_copy_only=False), dtype=kind)
