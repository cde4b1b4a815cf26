"""What a typed column's text says that is no number or time, and values of several types at one path (H9, H14)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hyve.catalog import Table
from hyve.columns import Columns
from hyve.naming import quote
from hyve.profile import ColumnView, numeric

_SHAPES, _SIGNATURE = 16, 4_000
"""Of a table of more shapes, or of longer ones, types aren't compared."""
_EXAMPLES = 2
_FIELD = re.compile(r"[{,] ?([^{}\[\],:]+): (number|text|bool)(?=[,}])")
_INNER = re.compile(r"(?<!^)\{[^{}]*\}")


@dataclass(frozen=True)
class Mistyped:
    """What is said of a column: how many of the rows without a number or time have a `text`, what is `said` of these,
    and of values that JSON has as another type (`kinds`)."""

    texts: int = 0
    said: str = ""
    kinds: str = ""


def mistyped(columns: Columns, views: Iterable[ColumnView], spell: Callable[[str], str]) -> dict[str, Mistyped]:
    """What there is to be said of columns, by name."""
    found: dict[str, Mistyped] = {}
    kinds = kinds_of_values(columns.table)
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
                # Whose name says nothing of the text's name has to say where the text is.
                where = "" if column.name.startswith(column.typed) else f", NULL here, texts in {quote(column.typed)}"
                said = f", {texts:,} not {what} ({', '.join(shown)}{more}){where}"
        spelled = kinds.get(column.path, Counter())
        usual = "number" if column.typed and numeric(column) else "text"
        # Where these are the texts that are no numbers, they have been told.
        others_of = [(kind, n) for kind, n in sorted(spelled.items()) if kind != usual and (kind, n) != ("text", texts)]
        also = "".join(f", {rows:,} as {kind}" for kind, rows in others_of)
        if said or also:
            found[column.name] = Mistyped(texts, said, also)
    return found


def kinds_of_values(table: Table) -> dict[str, Counter[str]]:
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
    return {name: counts for name, counts in found.items() if len(counts) > 1}
