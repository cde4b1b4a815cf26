"""TOP_CONTRIBUTORS: which values of which dimensions explain that a sum or a count changed between two windows.

`FROM TOP_CONTRIBUTORS('table', 'measure' or '*', 'split time', dimensions := 'service, region', time := 'column',
span := '10 minutes', top := 10)` compares the `span` before the split with the one from it on; without `span` the
longest that both sides have. The measure is summed, '*' counts rows. A row is one value of one dimension: the sums
`before` and `after`, the `change`, and its `share` of the change of all (negative: it goes against it; NULL: all in all
nothing changed). The largest changes come first, in both directions; `found` counts all values that changed.

Without `dimensions` every column is one that has 2 to 100 different values, at most half as many as there are rows, but
for the measure, times and ids. Shares of one dimension add up to 1; those of different ones are different cuts through
the same rows. A mean is no sum: ask for the sum and the count.
"""

from __future__ import annotations

from hyve.operators import Operator
from hyve.operators.reading import ROWS, check, column, most, named, time_columns, times, where

_IDS = "(^|_)(id|row_id|key|line|num|ts)$|^_|timestamp|^(end_)?time$|^series_idx$"
_DIMENSIONS = f"""c = '_blank' OR c <> '_none' AND NOT coalesce({time_columns("time")}, false) AND CASE
            WHEN dimensions IS NOT NULL THEN {named("dimensions")}
            ELSE NOT regexp_matches(c, '{_IDS}', 'i') AND lower(c) <> lower(measure) END"""

_MACRO = f"""(tbl, measure := NULL, split := NULL, dimensions := NULL, time := NULL, span := NULL, top := 10) AS TABLE
WITH {ROWS}, {
    check("nullif(measure, '*')", "time", lists="dimensions", numeric="measure", needed="measure", count="top")
}, _read AS (
    SELECT CASE WHEN measure = '*' THEN 1.0 ELSE TRY_CAST({column("measure")} AS DOUBLE) END AS _amount,
           {times("time")},
           CAST(COLUMNS(lambda c: {_DIMENSIONS}) AS VARCHAR)
    FROM (SELECT *, NULL AS "_blank" FROM _rows)
), _timed AS (
    SELECT _amount, coalesce(*COLUMNS(lambda c: {time_columns("time")} OR c = '_none')) AS _time,
           COLUMNS(lambda c: c = '_blank' OR NOT (starts_with(c, '_') OR {time_columns("time")}))
    FROM _read WHERE {where("isfinite(_amount)")}
), _at AS (
    SELECT min(_time) AS _from, max(_time) AS _to, epoch_ns(TRY_CAST(split AS TIMESTAMP_NS)) AS _split,
           CAST(epoch(TRY_CAST(span AS INTERVAL)) * 1e9 AS BIGINT) AS _span
    FROM _timed
), _windows AS (
    SELECT CASE
        WHEN _from IS NULL THEN error(tbl || ' has no row with a time and a number; name its column: time := ...')
        WHEN _split IS NULL THEN error(coalesce(CAST(split AS VARCHAR), 'NULL')
            || ' is no time; write it as 2026-01-31 12:00:00')
        WHEN span IS NOT NULL AND coalesce(_span, 0) <= 0
            THEN error(span || ' is no span of time; write it as 10 minutes')
        WHEN _split <= _from OR _split > _to THEN error('the split must lie between the times of ' || tbl || ', '
            || make_timestamp_ns(_from) || ' and ' || make_timestamp_ns(_to))
        ELSE _split END AS _split, coalesce(_span, greatest(1, least(_split - _from, _to - _split))) AS _span
    FROM _at WHERE (SELECT count(*) FROM _names) > 0
), _compared AS (
    SELECT _time >= _split AS _after, _amount, COLUMNS(lambda c: c = '_blank' OR NOT starts_with(c, '_'))
    FROM _timed, _windows WHERE _time >= _split - _span AND _time < _split + _span
), _total AS (
    SELECT coalesce(sum(_amount) FILTER (_after), 0) - coalesce(sum(_amount) FILTER (NOT _after), 0) AS _all
    FROM _compared
), _different AS (
    SELECT _dimension FROM (
        UNPIVOT (
            SELECT approx_count_distinct(COLUMNS(* EXCLUDE (_after, _amount))) FROM _compared
        ) ON * INTO NAME _dimension VALUE _many
    ) WHERE _dimension <> '_blank'
        AND (dimensions IS NOT NULL OR _many BETWEEN 2 AND least(100, (SELECT count(*) FROM _compared) / 2))
), _cells AS (
    SELECT * FROM _compared
    UNPIVOT INCLUDE NULLS (_value FOR _dimension IN (COLUMNS(* EXCLUDE (_after, _amount))))
), _sums AS (
    SELECT _dimension, _value, coalesce(sum(_amount) FILTER (NOT _after), 0) AS _b,
           coalesce(sum(_amount) FILTER (_after), 0) AS _a
    FROM _cells WHERE _dimension IN (SELECT _dimension FROM _different) GROUP BY _dimension, _value
)
SELECT _dimension AS dimension, _value AS value, _b AS before, _a AS after, _a - _b AS change,
       round((_a - _b) / nullif(_all, 0), 4) AS share, count(*) OVER () AS found
FROM _sums, _total WHERE _a <> _b ORDER BY abs(_a - _b) DESC, _dimension, _value {most("top")}"""

OPERATOR = Operator(
    "TOP_CONTRIBUTORS",
    "TOP_CONTRIBUTORS('table', 'column or *', 'split time')",
    "",
    _MACRO,
)
