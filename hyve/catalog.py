"""What a store says that it holds: its tables, their columns, and the shapes that their rows have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyve.shape import Signature, TableData


@dataclass(frozen=True)
class Column:
    """A column: its SQL name, DuckDB type, source path (keys joined by dots) and, if derived, that it is.

    `typed` is the text column whose numbers or times it holds, or "". `names`: that holds names, of which these are
    not told apart by numbers.
    """

    name: str
    type: str
    path: str
    derived: bool = False
    typed: str = ""
    names: bool = False


@dataclass(frozen=True)
class Shape:
    """How many rows of a table have which fields, of which kinds: `signature` tells shapes of the same fields apart.

    It is made of the kinds of what stands below each field: `{...}` objects, `[...]` lists in tables of their own.
    `kinds`: of which each field is, "object" and "list" in short.
    """

    rows: int
    fields: tuple[str, ...]
    signature: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table. `parent` is the table that its `parent_<table>` column refers to; `path` where its rows stood.

    `kind`: "base" tables hold what was parsed, "derived" ones what base columns or free text hold besides, "relation"
    ones recognised telemetry under the names one expects. `series` is the number of lists that the rows come from;
    `source`: relations were made of what stands here.
    """

    name: str
    columns: tuple[Column, ...]
    rows: int
    path: str
    parent: str | None
    kind: Literal["base", "derived", "relation"]
    shapes: tuple[Shape, ...] = ()
    series: int = 1
    source: bool = False


@dataclass(frozen=True)
class Catalog:
    """What the store holds: tables in document order, telemetry relations first."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """The table called `name` (in any case), or None."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)


def shapes(data: TableData) -> tuple[Shape, ...]:
    """The shapes of a table's rows, the most frequent first."""
    if not isinstance(data.signatures, list):
        return (Shape(data.rows, *_told(data.signatures)),)
    made = {id(signature): signature for signature in data.signatures}
    counts: Counter[tuple[tuple[str, ...], str, tuple[str, ...]]] = Counter()
    for number, rows in Counter(map(id, data.signatures)).items():
        counts[_told(made[number])] += rows
    return tuple(Shape(rows, *shape) for shape, rows in counts.most_common())


def kind_at(signature: Signature, key: str) -> str:
    """Of which kind the value of an object's `key` is; "" where the column says it, or it has none."""
    if isinstance(signature, tuple) and signature[0] == "o":
        return next((_in_short(_spell(inner)) for name, inner in signature[1] if str(name) == key), "")
    return ""


def _told(signature: Signature) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """(the fields of rows, their signature for reading, the fields' kinds)."""
    if not (isinstance(signature, tuple) and signature[0] == "o"):
        return (), _spell(signature), ()
    fields = tuple(str(key) for key, _ in signature[1])
    kinds = [_spell(inner) for _, inner in signature[1]]
    return fields, _spell_object(fields, kinds), tuple(map(_in_short, kinds))


def _in_short(kind: str) -> str:
    return {"{": "object", "[": "list"}.get(kind[:1], kind)


_KINDS = {"i": "number", "f": "number", "s": "text", "b": "bool", "n": "null", "v": "", "j": "...", "L": "[]"}


def _spell(signature: Signature) -> str:
    """A signature for reading: integers and other numbers are the same (H9)."""
    match signature:
        case ("o", fields):
            return _spell_object([str(key) for key, _ in fields], [_spell(inner) for _, inner in fields])
        case ("t", items):
            return "[" + ", ".join(_spell(item) or "value" for item in items) + "]"
        case str():
            return _KINDS.get(signature, "[...]" if signature == "l" else "{...}")
    return "[...]" if signature[0] == "p" else ""


def _spell_object(fields: Sequence[str], kinds: Sequence[str]) -> str:
    told = (f"{key}: {kind}" if kind else key for key, kind in zip(fields, kinds, strict=True))
    return "{" + ", ".join(told) + "}"


__all__ = ["Catalog", "Column", "Shape", "Table", "kind_at", "shapes"]
