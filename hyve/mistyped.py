"""What a typed column's text says that is no number or time, and values of several types at one path (H9, H14)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from hyve.catalog import Table
from hyve.columns import Columns
from hyve.profile import ColumnView, numeric

_SHAPES, _SIGNATURE = 16, 4_000
"""Of a table of more shapes, or of longer ones, types aren't compared."""
_EXAMPLES = 2
_FIELD = re.compile(r"[{,] ?([^{}\[\],:]+): (number|text|bool)(?=[,}])")
_INNER = re.compile(r"(?<!^)\{[^{}]*\}")


def mistyped(columns: Columns, views: Iterable[ColumnView], spell: Callable[[str], str]) -> dict[str, tuple[int, str]]:
    """For the columns where there is something to be said, by name: (how many of the rows without a number or time have
    a text, what is said of these and of values of another type)."""
    found: dict[str, tuple[int, str]] = {}
    kinds = _kinds(columns.table)
    for view in views:
        column, said, texts = view.column, "", 0
        if column.typed and view.nulls:
            others = columns.filled(column.typed) & ~columns.filled(column.name)
            rows = np.flatnonzero(others)
            texts = len(rows)
            if texts:
                some = dict.fromkeys(map(str, columns.cells(column.typed, rows[:100].tolist())))
                shown = [spell(text) for text in list(some)[:_EXAMPLES]]
                more = ", ..." if len(some) > len(shown) or texts > 100 else ""
                what = "number" if numeric(column) else "time"
                what = f"a {what}" if texts == 1 else f"{what}s"
                said = f", {texts:,} not {what} ({', '.join(shown)}{more})"
        if kinds and (spelled := kinds.get(column.path)) and len(spelled) > 1:
            usual = "number" if column.typed and numeric(column) else "text"
            said += "".join(f", {rows:,} as {kind}" for kind, rows in sorted(spelled.items()) if kind != usual)
        if said:
            found[column.name] = texts, said
    return found


def _kinds(table: Table) -> dict[str, Counter[str]]:
    """How many rows have a value of which type, by the keys of records that have values of several."""
    shapes = table.shapes
    if not 1 < len(shapes) <= _SHAPES or sum(len(shape.signature) for shape in shapes) > _SIGNATURE:
        return {}
    found: dict[str, Counter[str]] = {}
    for shape in shapes:
        top, inner = shape.signature, ""
        while top != inner:
            top, inner = _INNER.sub("{}", top), top
            if "{}" in top:
                top = top.replace("{}", "")
        for name, kind in _FIELD.findall(top):
            found.setdefault(name, Counter())[kind] += shape.rows
    return found
