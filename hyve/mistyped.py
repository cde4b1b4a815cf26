"""What a typed column's text says that is no number or time, and values of several types at one path (H9, H14)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hyve.catalog import Column, Table
from hyve.columns import Columns
from hyve.naming import quote
from hyve.profile import ColumnView, numeric
from hyve.shares import KINDS

_SHAPES, _SIGNATURE = 16, 4_000
"""Of a table of more shapes, or of longer ones, types aren't compared."""
_EXAMPLES = 2
_KINDS = frozenset({"", "number", "text", "bool", "object", "list"})
"""Types of values that are told."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class Mistyped:
    """What is said of a column: how many of the rows without a value have a text, list or object (`texts`), what is
    `said` of the texts, and of values that JSON has as another type (`kinds`)."""

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
            rows = np.flatnonzero(others_beside(columns, column))
            texts = len(rows)
            if texts:
                codes, values = columns.coded(column.typed)
                of, first = np.unique(codes[rows], return_index=True)
                some = values.shown(of[np.argsort(first)][:_EXAMPLES].astype(np.int64))
                shown = [spell(text) for text in some]
                more = ", ..." if len(of) > len(shown) else ""
                what = "number" if numeric(column) else "time"
                what = f"a {what}" if texts == 1 else f"{what}s"
                # Whose name says nothing of the text's name has to say where the text is.
                where = "" if column.name.startswith(column.typed) else f", NULL here, texts in {quote(column.typed)}"
                said = f", {texts:,} not {what} ({', '.join(shown)}{more}){where}"
        spelled = kinds.get(column.path, Counter())
        usual = own_kind(column)
        # Where these are the texts that are no numbers, they have been told.
        others_of = [
            (kind, n) for kind, n in sorted(spelled.items()) if kind and kind != usual and (kind, n) != ("text", texts)
        ]
        also = "".join(f", {rows:,} as {kind}" for kind, rows in others_of)
        if said or also:
            held = sum(rows for kind, rows in others_of if kind in ("list", "object"))
            found[column.name] = Mistyped(texts + held, said, also)
    return found


def kinds_of_values(table: Table) -> dict[str, Counter[str]]:
    """How many rows have a value of which type, by the keys of records that have values of several; "" is the type that
    the key's own column has."""
    shapes = table.shapes
    if not 1 < len(shapes) <= _SHAPES or sum(len(shape.signature) for shape in shapes) > _SIGNATURE:
        return {}
    found: dict[str, Counter[str]] = {}
    for shape in shapes:
        for name, kind in zip(shape.fields, shape.kinds, strict=True):
            if kind in _KINDS:
                found.setdefault(name, Counter())[kind] += shape.rows
    return {name: counts for name, counts in found.items() if len(counts) > 1}


def kinds_in_rows(columns: Columns, view: ColumnView, spelled: Collection[str]) -> list[str]:
    """The type of each row's value, "" for none, of a column that may have values of several: of a key that is
    `spelled` with several, beside numbers, or of texts of which some are numbers; else nothing."""
    column, own = view.column, own_kind(view.column)
    if column.path in spelled:
        filled = columns.filled(column.name)
        kinds = (kind if kind in _KINDS else None for kind in columns.kinds(column))
        return [(own if there else "") if kind == "" else kind or "" for kind, there in zip(kinds, filled, strict=True)]
    if column.typed and numeric(column) and view.nulls:
        texts = others_beside(columns, column)
        return list(np.where(columns.filled(column.name), "number", np.where(texts, "text", "")).tolist())
    if column.type != "VARCHAR" or view.distinct <= KINDS:
        return []  # of few values it is told which follow each other
    if len({bool(_NUMBER.fullmatch(value)) for value in view.samples if value}) < 2:
        return []
    codes, values = columns.coded(column.name)
    spells = ["number" if _NUMBER.fullmatch(text) else "text" if text else "" for text in values.shown()]
    return list(np.array([*spells, ""])[codes].tolist())


def others_beside(columns: Columns, column: Column) -> NDArray[np.bool_]:
    """The rows in which a typed column has no value though its text says something."""
    codes, values = columns.coded(column.typed)
    says = np.append(np.asarray(pc.not_equal(values.array, pa.scalar("")), np.bool_), False)
    return np.asarray(says[codes] & ~columns.filled(column.name))


def own_kind(column: Column) -> str:
    """The type that JSON has for the values of a column."""
    return "number" if numeric(column) else "bool" if column.type == "BOOLEAN" else "text"
