"""PIVOT and UNPIVOT statements -> plain queries that both parsers of the guard read.

DuckDB runs them as statements of their own: one with an order can't be read by sqlglot, and a PIVOT whose values are
not listed becomes two statements, of which one makes a type. What comes out here is text that is guarded like any
other, so nothing in this module has to be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from hyve.errors import SqlRefused

MAX_VALUES = 1_000
"""Columns that a PIVOT without a list of values may make."""

NO_VALUE = "(no value)"
"""The one column that a PIVOT over no values at all makes."""

_PIVOT_WORDS = {"PIVOT": "PIVOT", "PIVOT_WIDER": "PIVOT", "UNPIVOT": "UNPIVOT", "PIVOT_LONGER": "UNPIVOT"}


def as_query(text: str) -> str:
    """A statement that is a PIVOT or UNPIVOT with an order or a limit: `FROM (PIVOT ...) ORDER BY ...`.

    sqlglot knows neither what may follow such a statement nor its other names. Whatever comes out is guarded as if
    it had been sent.
    """
    if not re.search("PIVOT", text, re.IGNORECASE):
        return text
    try:
        tokens = sqlglot.tokenize(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return text
    depth, start, stop = 0, None, len(text)
    for i, token in enumerate(tokens):
        if token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN):
            depth += 1 if token.token_type is TokenType.L_PAREN else -1
        elif depth == 0 and start is None:
            after_ctes = tokens[0].token_type is TokenType.WITH and tokens[i - 1].token_type is TokenType.R_PAREN
            if token.text.upper() in _PIVOT_WORDS and (i == 0 or after_ctes):
                start = token
        elif depth == 0 and token.token_type in (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET):
            stop = token.start
            break
    if start is None:
        return text
    pivot = _PIVOT_WORDS[start.text.upper()] + text[start.end + 1 : stop]
    rest = text[stop:]
    return text[: start.start] + (f"FROM ({pivot}\n) {rest}" if rest else pivot)


def with_values(text: str, values: Callable[[str], list[str]]) -> str:
    """`text` with the values of each PIVOT that names none, so that it is one plain SELECT.

    DuckDB turns a PIVOT without an IN list into two statements, one of which makes a type. Instead the values
    are asked for first: `values` gets a SELECT of the distinct ones. What runs then is sqlglot's rendering of
    the statement, guarded once more.
    """
    refused = SqlRefused(
        "this PIVOT can't be read; write PIVOT (SELECT ..., expression AS key FROM table) ON key USING ..., "
        "or list the values: ON column IN ('a', 'b')"
    )
    try:
        statements = sqlglot.parse(text, dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise refused from None
    if len(statements) != 1 or statements[0] is None:
        raise refused
    statement = statements[0]
    ctes = statement.args.get("with_")
    expanded = False
    for pivot in list(statement.find_all(exp.Pivot)):
        if pivot.args.get("unpivot") or pivot.this is None:
            continue
        for on in list(pivot.expressions):
            if isinstance(on, (exp.In, exp.PivotAny)):
                continue
            expanded = True
            distinct = exp.select(exp.cast(on.copy(), "VARCHAR").as_("value")).distinct().from_(pivot.this.copy())
            distinct = distinct.order_by("1").limit(MAX_VALUES + 1)
            if ctes is not None:
                distinct.set("with_", ctes.copy())
            found = values(distinct.sql(dialect="duckdb")) or [NO_VALUE]
            literals = [exp.Literal.string(value) for value in found]
            on.replace(exp.In(this=on.copy(), expressions=literals))
    if not expanded:
        raise refused
    return str(statement.sql(dialect="duckdb"))
