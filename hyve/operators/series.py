"""A column as series: by time or in the order of rows, one or many, brought to NumPy and back (for the operators).

Rules:
- Rows without a number are samples that have no value: NaN. Where others have a time, rows without one are left out.
- Many series in one table are told apart by the columns in `series`; without it by `series_idx`, in `metric_points` by
  service, name and attributes.
- At most 500 series (that have at least 5 finite numbers), 1,000,000 samples in all, and 2.5 seconds: a Python function
  can't be interrupted. Beyond that it is an error that says to aggregate first. So that the time is that of a whole
  statement the function is called once, with all series.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyve.operators import Function
from hyve.operators.reading import ROWS, check, column, first_of, named, times, where
from hyve.operators.robust import FEWEST, Floats, Ints

MOST_SERIES, MOST_SAMPLES, MOST_SECONDS = 500, 1_000_000, 2.5
_NO_TIME = -(2**63)

_SERIES = f"""CASE WHEN series IS NOT NULL THEN {named("series")}
        WHEN lower(tbl) = 'metric_points' THEN regexp_matches(c, '^(service|name|attributes.*)$', 'i')
        ELSE lower(c) = 'series_idx' END OR c = '_none'"""
_OWN = ("_row", "_value", "_series")
_TOO_MANY = f"""CASE
        WHEN count(*) OVER () > {MOST_SERIES} THEN error(tbl || ' has ' || count(*) OVER ()
            || ' series, the limit is {MOST_SERIES}; filter or aggregate in a CTE first')
        WHEN sum(_samples) OVER () > {MOST_SAMPLES} THEN error(tbl || ' has ' || sum(_samples) OVER ()
            || ' samples, the limit is {MOST_SAMPLES}; filter, or aggregate in a CTE, by time_bucket, first')
        ELSE true END"""


def series(call: str, k: str = "") -> str:
    """The beginning of a macro with the parameters tbl, col, top, time and series, and perhaps `k`.

    `_found` has the `_series` and `_f` of every finding of the function `call`.
    """
    return f"""WITH {ROWS}, {
        check("col", "time", lists="series", numeric="col", needed="col", positive=k, count="top")
    }, _read AS (
    SELECT row_number() OVER () - 1 AS _row, TRY_CAST({column("col")} AS DOUBLE) AS _value,
           nullif(concat_ws(' ', *COLUMNS(lambda c: {_SERIES})), '') AS _series, {times("time")}
    FROM _rows
), _points AS (
    SELECT {", ".join(_OWN)}, {first_of(*_OWN)} AS _time FROM _read WHERE {where("true")}
), _counted AS (
    SELECT _series, count(*) AS _samples FROM _points
    GROUP BY _series HAVING count(*) FILTER (isfinite(_value)) >= {FEWEST}
), _bounded AS (
    SELECT _series FROM (SELECT _series, {_TOO_MANY} AS _ok FROM _counted) WHERE _ok
), _each AS (
    SELECT _series, list(coalesce(_value, 'NaN'::DOUBLE)) AS _values, list(coalesce(_time, {_NO_TIME})) AS _times,
           list(_row) AS _places
    FROM _points WHERE (SELECT count(*) FROM _bounded) > 0
    GROUP BY _series HAVING count(*) FILTER (isfinite(_value)) >= {FEWEST}
), _lists AS (
    SELECT list(_series) AS _names, {call}(list(_values), list(_times), list(_places),
           coalesce(TRY_CAST({k or "0"} AS DOUBLE), 0)) AS _done
    FROM _each
), _in_time AS (
    SELECT unnest(_names) AS _series, unnest(CASE WHEN len(_done) < len(_names) THEN error('{
        call.removeprefix("hyve_").upper()
    } had time for '
        || len(_done) || ' of ' || len(_names) || ' series; filter or aggregate first') ELSE _done END) AS _all
    FROM _lists
), _found AS (
    SELECT _series, unnest(_all) AS _f FROM _in_time
)"""


Kernel = Callable[[Floats, "Ints | None", Ints, float], Iterable[dict[str, Any]]]
"""Values in order (NaN without one), their times in nanoseconds (None without), their rows, `k` -> findings."""


def function(name: str, kernel: Kernel, fields: dict[str, Any]) -> Function:
    """`kernel` as a function of lists of values, times and rows, and a number to lists of structs with `fields`:

    each for all series of a statement, and fewer back where the time was up.
    """
    kind = pa.list_(pa.struct(list(fields.items())))

    def call(values: Any, stamps: Any, places: Any, ks: Any) -> Any:
        until = time.monotonic() + MOST_SECONDS
        done: list[list[list[dict[str, Any]]] | None] = []
        for columns in zip(values, stamps, places, ks, strict=True):
            if not columns[0].is_valid:
                done.append(None)
                continue
            found: list[list[dict[str, Any]]] = []
            for value, stamp, place in zip(*(one.values for one in columns[:3]), strict=True):
                if time.monotonic() > until:
                    break  # fewer than were asked for, which the macro tells
                found.append(_findings(kernel, value, stamp, place, columns[3].as_py() or 0.0))
            done.append(found)
        return pa.array(done, pa.list_(kind))

    names = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE"}
    struct = ", ".join(f"{field} {names[str(kind)]}" for field, kind in fields.items())
    return Function(name, call, ("DOUBLE[][]", "BIGINT[][]", "BIGINT[][]", "DOUBLE"), f"STRUCT({struct})[][]")


def _findings(kernel: Kernel, value: Any, stamp: Any, place: Any, k: float) -> list[dict[str, Any]]:
    samples, at, rows = _numpy(value, np.float64), _numpy(stamp, np.int64), _numpy(place, np.int64)
    timed = at != _NO_TIME
    if timed.any():
        samples, at, rows = samples[timed], at[timed], rows[timed]
    order = np.lexsort((rows, at))
    with np.errstate(all="ignore"):  # what is out of range becomes infinite or NaN, and no finding
        return list(kernel(samples[order], at[order] if timed.any() else None, rows[order], k))


def _numpy(cell: Any, kind: Any) -> npt.NDArray[Any]:
    return np.asarray(cell.values.to_numpy(zero_copy_only=False), dtype=kind)
