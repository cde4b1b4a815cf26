"""LOG_TEMPLATES: what a column of messages says, ids and numbers masked.

`FROM LOG_TEMPLATES('table', 'column', time := 'column', top := 20)` gives a row for each template, the most frequent
first: how often it comes and its share, the first and last time and row, and the first message of it (300 characters).
`found` counts all templates; with a large `top`, `ORDER BY count` shows the rare ones. The masks are those of the
column `template` of `lines`, but for ids of letters alone, which other lines tell.
"""

from __future__ import annotations

from hyve.operators import Operator
from hyve.operators.reading import ROWS, check, column, first_of, most, times, where
from hyve.templates import template_of

_OWN = ("_row", "_text")
_MACRO = f"""(tbl, col := NULL, top := 20, time := NULL) AS TABLE
WITH {ROWS}, {check("col", "time", needed="col", count="top")}, _read AS (
    SELECT row_number() OVER () - 1 AS _row, CAST({column("col")} AS VARCHAR) AS _text, {times("time")}
    FROM _rows
), _messages AS (
    SELECT {", ".join(_OWN)}, {first_of(*_OWN)} AS _time,
           {template_of("_text")} AS _template
    FROM _read WHERE {where("_text IS NOT NULL")}
)
SELECT _template AS template, count(*) AS count, round(count(*) / sum(count(*)) OVER (), 4) AS share,
       make_timestamp_ns(min(_time)) AS first_time, make_timestamp_ns(max(_time)) AS last_time,
       min(_row) AS first_row, max(_row) AS last_row, left(arg_min(_text, _row), 300) AS example,
       count(*) OVER () AS found
FROM _messages GROUP BY _template ORDER BY count(*) DESC, min(_row) {most("top")}"""

OPERATOR = Operator("LOG_TEMPLATES", "LOG_TEMPLATES('table', 'column')", "", _MACRO)
