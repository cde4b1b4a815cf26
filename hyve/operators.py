"""Analytic operators that a statement may call beside DuckDB's own functions (H31).

Rules:
- An operator is a DuckDB table macro over `query_table`, so it runs inside the database, under the same time
  and memory limits as any other statement, and gives back a compact summary instead of the rows it looked at.
- Its first parameter is always the name of one table of the request, given as a text literal: `hyve.sql`
  checks that name as it checks every other table. The other parameters are plain values.
- Adding one is an `Operator` in `OPERATORS`; the tool specification and the guard read the same tuple.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Operator:
    """`signature` and `description` are what a model reads; `macro` is the body of `CREATE MACRO <name>`."""

    name: str
    signature: str
    description: str
    macro: str


# 1.4826 makes the MAD of a normal distribution its standard deviation; where more than half of the values are
# equal the MAD is 0, and 1.2533 times the mean absolute deviation takes its place (Iglewicz and Hoaglin,
# 1993).
_DETECT_ANOMALY = """(tbl, col, k := 3.5, top := 5) AS TABLE
WITH points AS (
    SELECT row_number() OVER () AS row_id, CAST(COLUMNS(lambda c: lower(c) = lower(col)) AS DOUBLE) AS value
    FROM query_table(tbl)
), finite AS (
    SELECT row_id, value FROM points WHERE isfinite(value)
), middle AS (
    SELECT median(value) AS centre, count(*) AS n FROM finite
), spread AS (
    SELECT any_value(centre) AS centre, any_value(n) AS n,
           1.4826 * median(abs(value - centre)) AS mad, 1.2533 * avg(abs(value - centre)) AS aad
    FROM finite, middle
), scored AS (
    SELECT row_id, value, (value - centre) / coalesce(nullif(mad, 0), nullif(aad, 0)) AS score
    FROM finite, spread
), strongest AS (
    SELECT row_id, value, score FROM scored WHERE abs(score) > k
    ORDER BY abs(score) DESC, row_id LIMIT CAST(top AS BIGINT)
)
SELECT n AS points,
       (SELECT count(*) FROM scored WHERE score > k) AS high,
       (SELECT count(*) FROM scored WHERE score < -k) AS low,
       centre AS median, coalesce(nullif(mad, 0), aad) AS sigma,
       centre - k * coalesce(nullif(mad, 0), aad) AS lower_bound,
       centre + k * coalesce(nullif(mad, 0), aad) AS upper_bound,
       (SELECT list({'row_id': row_id, 'value': value, 'score': round(score, 2)}
                    ORDER BY abs(score) DESC, row_id) FROM strongest) AS strongest
FROM spread"""

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "DETECT_ANOMALY",
        "FROM DETECT_ANOMALY('table', 'column', k := 3.5, top := 5)",
        "one row of robust outliers",
        _DETECT_ANOMALY,
    ),
)

NAMES: frozenset[str] = frozenset(operator.name.lower() for operator in OPERATORS)


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every operator in `connection`."""
    for operator in OPERATORS:
        connection.execute(f"CREATE OR REPLACE MACRO {operator.name.lower()}{operator.macro}")


def describe() -> str:
    """The operators as lines of text for the tool specification."""
    return "\n".join(f"{operator.signature}: {operator.description}" for operator in OPERATORS)
