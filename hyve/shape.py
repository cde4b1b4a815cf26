"""Values -> tables: recursive schema signatures and the columns that hold the leaves (H9-H13, H22, H23).

A batch of values that stand at one path is shredded together, column by column:
- the fields of an object become columns of its row; nested objects are flattened by path;
- a list becomes a child table, one row an element, keyed by parent and position; short lists of one scalar type stay
  a LIST column, short lists of fixed length become one column a position;
- an object whose keys are data (hosts, metric names) becomes a child table with `_key`;
- lists of equal length side by side (column-wise payloads) become one child table, one row an index (H23);
- text that holds JSON or a Python literal stays as it is and is expanded beside itself (H6), marked as derived.

The signature of a row says what no column can: which keys it had, in which order, and of what type each value was.
Rows with the same signature have the same shape. Columns and signatures together give the value back exactly.

Signature := "v"                      the column's value as it is (NULL is null)
           | "i" | "f" | "s" | "b"    int, float, str, bool out of a column of mixed types
           | "n"                      null where the other values at the path are containers
           | "j"                      JSON text (nested too deep, or a width beyond what a table takes)
           | "L"                      LIST column
           | "l" | "m" | "d"          child table: list, map with `_key`, object with repeated keys
           | ("p", first key)         one column of a child table of parallel lists
           | ("t", (Signature, ...))  list of fixed length, a column a position
           | ("o", ((key, Signature), ...))
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hyve.document import collector_paused, embedded
from hyve.strictjson import MAX_DEPTH, Pairs

Signature = str | tuple[Any, ...]
Path = tuple[Any, ...]
"""Keys from a row to a leaf or a child table. Tuples among them are steps that are no keys: `(INDEX, i)` a position of
a fixed-length list, LIST, MAP, PAIRS and `("parallel", first key)` a child table, EXPANDED, NUMBER and TEXT a column
beside another one."""

INDEX = "[]"
EXPANDED = ("expanded",)
NUMBER = ("number",)
TEXT = ("text",)
LIST, MAP, PAIRS = ("list",), ("map",), ("pairs",)

MAX_COLUMNS = 1_500
_SHORT_LIST, _FIXED_LIST = 64, 8
_MAP_KEYS = 40
_CONTAINERS = frozenset({dict, list, Pairs})
_LETTER = {int: "i", float: "f", str: "s", bool: "b"}


@dataclass
class ColumnData:
    """One column in the making: an arrow array of the table's length, and whether it is derived from another one.

    `exact` maps rows whose text can't be stored as UTF-8 (lone surrogates) to that text. The store gives the `name`
    and takes the array away once DuckDB holds it.
    """

    array: pa.Array[Any] | None
    derived: bool = False
    exact: dict[int, str] = field(default_factory=dict)
    name: str = ""


@dataclass
class TableData:
    """One table in the making.

    `path` leads from the document's root here. `parents` and `positions` hold, for each row, the parent's row and the
    place in its own list; `keys` the `_key` of map rows. `signatures` is one for all rows, or one a row. The
    store gives the `name`.
    """

    path: Path
    rows: int
    derived: bool
    parents: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    keys: list[str] | None = None
    columns: dict[Path, ColumnData] = field(default_factory=dict)
    children: dict[Path, TableData] = field(default_factory=dict)
    signatures: Signature | list[Signature] = "v"
    name: str = ""

    def signature(self, row: int) -> Signature:
        """The signature of one row."""
        return self.signatures[row] if isinstance(self.signatures, list) else self.signatures

    def walk(self) -> Iterator[TableData]:
        """This table and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()


@collector_paused()
def shred(values: Sequence[Any], *, expand: bool = True, numbers: bool = False, derived: bool = False) -> TableData:
    """The table whose rows are `values`, with its child tables.

    `expand`: text holding JSON or a Python literal is expanded beside itself. `numbers`: text columns that hold only
    numbers (CSV) get a numeric column beside them.
    """
    return _Shredder(expand, numbers).table((), list(values), None, None, derived)


class _Shredder:
    def __init__(self, expand: bool, numbers: bool) -> None:
        self.expand = expand
        self.numbers = numbers
        self.interned: dict[Signature, Signature] = {}

    def table(
        self, path: Path, values: list[Any], parents: list[int] | None, positions: list[int] | None, derived: bool
    ) -> TableData:
        table = TableData(path, len(values), derived, parents or [], positions or list(range(len(values))))
        table.signatures = self.node(table, (), range(len(values)), values, derived)
        return table

    def node(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> Signature | list[Signature]:
        kinds = set(map(type, values))
        if kinds.isdisjoint(_CONTAINERS):
            return self.scalars(table, path, rows, values, kinds, derived)
        if len(table.path) + len(path) > MAX_DEPTH or len(table.columns) > MAX_COLUMNS:
            return self.text(table, path, rows, values, derived)
        if kinds == {dict}:
            return self.objects(table, path, rows, values, derived)
        if kinds == {list}:
            return self.lists(table, path, rows, values, derived)
        if kinds == {Pairs}:
            elements = [[{"key": key, "value": value} for key, value in pairs] for pairs in values]
            self.child(table, (*path, PAIRS), rows, elements, derived)
            return "d"
        return self.mixed(table, path, rows, values, derived)

    def mixed(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> list[Signature]:
        signatures: list[Signature] = ["n"] * len(values)
        for group in (None, dict, list, Pairs):  # scalars first: lists then leave the path's column to them
            picks = [
                i
                for i, value in enumerate(values)
                if (type(value) is group if group else type(value) not in _CONTAINERS and value is not None)
            ]
            if not picks:
                continue
            found = self.node(table, path, [rows[i] for i in picks], [values[i] for i in picks], derived)
            for place, i in enumerate(picks):
                signatures[i] = found[place] if isinstance(found, list) else found
        return signatures

    def scalars(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], kinds: set[type], derived: bool
    ) -> Signature | list[Signature]:
        kinds = kinds - {type(None)}
        signatures: Signature | list[Signature] = "v"
        exact: dict[int, str] = {}
        column = values
        if len(kinds) > 1:
            signatures = [_LETTER.get(type(value), "v") for value in values]
            if not (kinds == {int, float} and all(type(v) is not int or abs(v) <= 1 << 53 for v in values)):
                column = [value if value is None or type(value) is str else json.dumps(value) for value in values]
                kinds = {str}
        array = _array(column, kinds)
        if array is None and kinds == {int}:
            signatures = ["v" if value is None else "i" for value in values]
            array = pa.array([None if value is None else str(value) for value in values], pa.string())
        elif array is None:
            exact = {
                rows[i]: value
                for i, value in enumerate(column)
                if type(value) is str and any("\ud800" <= c <= "\udfff" for c in value)
            }
            column = [
                value if value is None else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                for value in column
            ]
            array = pa.array(column, pa.string())
        self.put(table, path, rows, array, derived, exact)
        if kinds == {str} and signatures == "v":
            self.beside(table, path, rows, values)
        return signatures

    def put(
        self,
        table: TableData,
        path: Path,
        rows: Sequence[int],
        array: pa.Array[Any],
        derived: bool,
        exact: dict[int, str],
    ) -> None:
        if len(rows) != table.rows:
            places: list[int | None] = [None] * table.rows
            for i, row in enumerate(rows):
                places[row] = i
            array = array.take(pa.array(places, pa.int64()))
        table.columns[path] = ColumnData(array, derived, exact)

    def text(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> Signature | list[Signature]:
        """Containers kept as JSON text in a column of their own."""
        texts = [dump(value) for value in values]
        path = (*path, TEXT)
        if path in table.columns:  # objects and lists of one mixed path
            kept = table.columns[path].array
            assert kept is not None  # only the store takes arrays away, once all are made
            merged = kept.to_pylist()
            for row, value in zip(rows, texts, strict=True):
                merged[row] = value
            table.columns[path].array = pa.array(merged, pa.string())
        else:
            self.put(table, path, rows, pa.array(texts, pa.string()), derived, {})
        return "j"

    def beside(self, table: TableData, path: Path, rows: Sequence[int], values: list[Any]) -> None:
        """Derived columns next to a text column: its numbers, or what its JSON or Python literals hold."""
        sample = [value for value in values[:2000] if value][:50]
        if self.expand and sample and sum(value.lstrip()[:1] in '{["' for value in sample) * 3 >= len(sample):
            found = [(row, embedded(value)) for row, value in zip(rows, values, strict=True) if value]
            found = [(row, value) for row, value in found if value is not None]
            if found:
                picked, parsed = zip(*found, strict=True)
                self.node(table, (*path, EXPANDED), picked, list(parsed), True)
        if self.numbers and sample and all(_number(value) is not None for value in sample):
            numbers = [_number(value) if value else None for value in values]
            if sum(number is None for number in numbers) == sum(not value for value in values):
                kinds = {type(number) for number in numbers} - {type(None)}
                if kinds == {int, float}:
                    numbers, kinds = [None if n is None else float(n) for n in numbers], {float}
                array = _array(numbers, kinds)
                if array is not None:
                    self.put(table, (*path, NUMBER), rows, array, True, {})

    def objects(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[dict[Any, Any]], derived: bool
    ) -> Signature | list[Signature]:
        keysets = list(map(tuple, values))
        distinct = dict.fromkeys(keysets)
        if _keys_are_data(values, distinct):
            self.child(table, (*path, MAP), rows, [list(value.values()) for value in values], derived)
            table.children[*path, MAP].keys = [key for value in values for key in value]
            return "m"
        found: dict[Any, Signature | list[Signature]] = {}
        if len(distinct) == 1:
            for first, group in _parallel(values).items():
                zipped = [
                    [dict(zip(group, items, strict=True)) for items in zip(*(v[k] for k in group), strict=True)]
                    for v in values
                ]
                self.child(table, (*path, ("parallel", first)), rows, zipped, derived)
                found.update(dict.fromkeys(group, ("p", first)))
            for key in keysets[0] if keysets else ():
                if key not in found:
                    found[key] = self.node(table, (*path, key), rows, [value[key] for value in values], derived)
        else:
            numbers = {keys: number for number, keys in enumerate(distinct)}
            owned = [numbers[keys] for keys in keysets]
            holders: dict[Any, list[int]] = {}
            for keys, number in numbers.items():
                for key in keys:
                    holders.setdefault(key, []).append(number)
            picked: dict[frozenset[int], list[int]] = {}  # keys that the same records have share their picks
            for key, having in holders.items():
                wanted = frozenset(having)
                if wanted not in picked:
                    picked[wanted] = [i for i, number in enumerate(owned) if number in wanted]
                picks = picked[wanted]
                picked_rows = [rows[i] for i in picks]
                found[key] = self.node(table, (*path, key), picked_rows, [values[i][key] for i in picks], derived)
        return self.signatures(keysets, distinct, found)

    def signatures(
        self, keysets: list[Path], distinct: dict[Path, None], found: dict[Any, Signature | list[Signature]]
    ) -> Signature | list[Signature]:
        if not any(isinstance(signature, list) for signature in found.values()):
            made = {keys: self.intern(("o", tuple((key, found[key]) for key in keys))) for keys in distinct}
            return next(iter(made.values())) if len(made) == 1 else [made[keys] for keys in keysets]
        varying = {key: iter(signature) for key, signature in found.items() if isinstance(signature, list)}
        known: dict[Any, Signature] = {}
        signatures = []
        for keys in keysets:
            codes = {key: next(varying[key]) for key in keys if key in varying}
            case = (keys, *codes.values())
            if case not in known:
                known[case] = self.intern(("o", tuple((key, codes.get(key, found[key])) for key in keys)))
            signatures.append(known[case])
        return signatures

    def intern(self, signature: Signature) -> Signature:
        return self.interned.setdefault(signature, signature)

    def lists(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[list[Any]], derived: bool
    ) -> Signature | list[Signature]:
        kinds: set[type] = set()
        for value in values:
            kinds.update(map(type, value))
        lengths = set(map(len, values))
        if kinds.isdisjoint(_CONTAINERS):
            fixed = len(lengths) == 1 and 0 < max(lengths) <= _FIXED_LIST
            if fixed and (len(kinds) > 1 or (path == () and len(values) > 1)):
                parts = [
                    self.node(table, (*path, (INDEX, i)), rows, [value[i] for value in values], derived)
                    for i in range(max(lengths))
                ]
                if not any(isinstance(part, list) for part in parts):
                    return self.intern(("t", tuple(parts)))
                streams = [iter(part) if isinstance(part, list) else _forever(part) for part in parts]
                return [self.intern(("t", tuple(next(stream) for stream in streams))) for _ in values]
            if (
                len(kinds) <= 1
                and type(None) not in kinds
                and max(lengths) <= _SHORT_LIST
                and path not in table.columns
            ):
                array = _list_array(values, next(iter(kinds), str))
                if array is not None:
                    self.put(table, path, rows, array, derived, {})
                    return "L"
        self.child(table, (*path, LIST), rows, values, derived)
        return "l"

    def child(self, table: TableData, path: Path, rows: Sequence[int], lists: list[list[Any]], derived: bool) -> None:
        parents = [row for row, items in zip(rows, lists, strict=True) for _ in items]
        positions = [i for items in lists for i in range(len(items))]
        elements = [item for items in lists for item in items]
        table.children[path] = self.table((*table.path, *path), elements, parents, positions, derived)


def _forever(signature: Signature) -> Iterator[Signature]:
    while True:
        yield signature


def dump(value: Any) -> str:
    """Compact ASCII JSON of `value`; objects with repeated keys keep them all."""
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{dump(item)}" for key, item in value) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value)


def _array(values: list[Any], kinds: set[type]) -> pa.Array[Any] | None:
    """`values` of one type (None aside) as arrow, or None where arrow can't hold them exactly."""
    try:
        if kinds == {int}:
            try:
                return pa.array(values, pa.int64())
            except OverflowError:
                return (
                    pa.array(values, pa.decimal128(38, 0))
                    if all(v is None or abs(v) < 10**38 for v in values)
                    else None
                )
        if kinds <= {str}:
            return pa.array(values, pa.string())
        return pa.array(values, pa.bool_() if kinds == {bool} else pa.float64())
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return None


def _list_array(values: list[list[Any]], kind: type) -> pa.Array[Any] | None:
    types: dict[type, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    try:
        return pa.array(values, pa.list_(types[kind]))
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return None


def _number(text: str) -> int | float | None:
    """The number that all of `text` spells in decimal notation, else None."""
    if not text.strip() or text.strip()[-1:] not in "0123456789." or "_" in text:
        return None
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() and len(text) < 19 else float(text)
    except ValueError:
        return None


def _keys_are_data(values: list[dict[Any, Any]], distinct: dict[Path, None]) -> bool:
    """Whether the objects are maps: many keys, or keys seen once, over values of one kind."""
    union = dict.fromkeys(key for keys in distinct for key in keys)
    if len(union) < 3 or not all(type(key) is str for key in union):
        return False
    kinds = {type(item) for value in values for item in value.values()}
    if len(kinds) > 1 or kinds == {Pairs}:
        return False
    if kinds == {dict}:
        shapes = {tuple(item) for value in values for item in value.values()}
        if len(shapes) == 1 and len(next(iter(shapes))) > 1:
            return True
    presence = sum(map(len, values)) / (len(values) * len(union))
    return len(union) > _MAP_KEYS and (len(values) == 1 or presence < 0.5)


def _parallel(values: list[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Groups of two or more keys whose values are long scalar lists of equal length in every object."""
    groups: dict[tuple[int, ...], list[Any]] = {}
    for key in values[0] if values else ():
        column = [value[key] for value in values]
        if any(type(item) is not list for item in column):
            continue
        lengths = tuple(map(len, column))
        if max(lengths) > _FIXED_LIST and all(_CONTAINERS.isdisjoint(map(type, item)) for item in column):
            groups.setdefault(lengths, []).append(key)
    return {keys[0]: keys for keys in groups.values() if len(keys) > 1}
