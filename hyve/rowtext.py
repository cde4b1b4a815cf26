"""Rows and errors as text within a number of tokens, for the second prompt."""

from __future__ import annotations

import json
import re
from typing import Any

from hyve.errors import SqlError
from hyve.naming import quote
from hyve.rowview import OWN_MARK, own_mark
from hyve.sql import QueryResult
from hyve.store import Datastore
from hyve.tokens import count_tokens


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, and how many more there are."""
    return text if len(text) <= limit else f"{text[:limit]}…(+{len(text) - limit} chars)"


def fit(text: str, budget: int) -> str:
    """The head of `text` that takes at most `budget` tokens, with a marker where it was cut."""
    head = text[: 8 * budget]  # no token is longer on average
    while len(head) > 1 and count_tokens(cut(text, len(head))) > budget:
        head = head[: len(head) * 3 // 4]
    return cut(text, len(head))


def rows_text(result: QueryResult, budget: int) -> str:
    """The rows in at most `budget` tokens, with the true count of all. Cells are cut where else no row would fit."""
    width = len(result.columns)
    while width > 1 and count_tokens("|".join(result.columns[:width])) > budget // 2:
        width = width * 3 // 4
    more = f"|... ({len(result.columns) - width} more columns)" if width < len(result.columns) else ""
    head = f"{result.total_rows:,} rows\n" + fit("|".join(result.columns[:width]), budget // 2) + more
    spent = count_tokens(head) + 16
    lines: list[str] = []
    note = ""
    for longest in (400, 100, 25, 6):
        left = budget - spent
        for row in result.rows:
            line = "|".join([_shown(value, longest) for value in row[:width]]).replace("\n", "\\n")
            left -= count_tokens(line) + 1
            if not note and "\\…" in line:
                left -= count_tokens(OWN_MARK) + 1
            if left < 0:
                break
            note = note or OWN_MARK * ("\\…" in line)
            lines.append(line)
        if lines:
            break
    rest = result.total_rows - len(lines)
    marks = [f"... ({rest:,} more rows)"] * bool(rest) + [note] * bool(note)
    return "\n".join([head, *lines, *marks])


def _shown(value: Any, limit: int) -> str:
    text = _cell(value).replace("|", "\\|")
    if len(text) <= limit:
        return own_mark(text)
    while limit > 1 and text[limit - 1] == "\\":  # it would make the mark of the cut the data's own
        limit -= 1
    return cut(text, limit)


def _cell(value: Any) -> str:
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "" if value is None else str(value)


def error_text(store: Datastore, statement: str, error: SqlError, budget: int) -> str:
    """The error and the columns of the tables that the statement names (of the first ones where it names none)."""
    lines = [fit(f"The statement did not run: {error}", budget // 2)]
    words = {word.lower() for word in re.findall(r"\w+", statement)}
    named = [table for table in store.catalog.tables if set(re.findall(r"\w+", table.name.lower())) <= words]
    for table in (named or store.catalog.tables)[:8]:
        columns = [quote(column.name) for column in table.columns]
        room = budget - count_tokens("\n".join(lines)) - 2
        count = min(len(columns), 80)
        while count:
            more = f", ... ({len(columns) - count} more)" if count < len(columns) else ""
            line = f"{quote(table.name)}({', '.join(columns[:count])}{more})"
            if count_tokens(line) <= room:
                lines.append(line)
                break
            count //= 2
        else:
            break
    return "\n".join(lines)
