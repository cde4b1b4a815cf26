"""Values -> tables: recursive schema signatures and the columns that hold the leaves (H9-H13, H22, H23).

A batch of values that stand at one path is shredded together, column by column:
- the fields of an object become columns of its row; nested objects are flattened by path;
- a list becomes a child table, one row an element, keyed by parent and position; short lists of one scalar type stay
  a LIST column, short lists of fixed length become one column a position;
- an object whose keys are data (hosts, metric names) becomes a child table with `_key`;
- lists of equal length side by side (column-wise payloads) become one child table, one row an index (H23);
- text stays text; what it holds stands beside it, marked as derived: JSON or a Python literal expanded (H6), numbers
  and times as typed columns.

The signature of a row says what no column can: which keys it had, in which order, and of what type each value was.
Rows with the same signature have the same shape. Columns and signatures together give the value back exactly.

Signature := "v"                      the column's value as it is (NULL is null)
           | "i" | "f" | "s" | "b"    int, float, str, bool out of a column of mixed types
           | "n"                      null where the other values at the path are containers
           | "j"                      literal text (nested too deep, or a width beyond what a table takes)
           | "L"                      LIST column
           | "l" | "m" | "d"          child table: list, map with `_key`, object with repeated keys
           | ("p", first key)         one column of a child table of parallel lists
           | ("e", i)                 the i-th entry of the row in the child table of keys that few rows have
           | ("t", (Signature, ...))  list of fixed length, a column a position
           | ("o", ((key, Signature), ...))
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.document import collector_paused, embedded
from hyve.maps import CONTAINERS, FIXED_LIST, MAX_COLUMNS, keys_are_data, parallel_lists
from hyve.strictjson import MAX_DEPTH, Pairs
from hyve.typed import numbers, times

Signature = str | tuple[Any, ...]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Path = tuple[Any, ...]
"""Keys from a row to a leaf or a child table. Tuples among them are steps that are no keys: `(INDEX, i)` a position of
a fixed-length list, LIST, MAP, PAIRS and `("parallel", first key)` a child table, EXPANDED, FIELDS, NUMBER, TIME and
TEXT a column beside another one."""

INDEX = "[]"
EXPANDED, FIELDS = ("expanded",), ("fields",)
NUMBER, TIME = ("number",), ("time",)
TEXT = ("text",)
LIST, MAP, PAIRS = ("list",), ("map",), ("pairs",)

MAX_TABLES = 300
_SHORT_LIST = 64
_SPARSE_KEYS = 300
_SPARSE = 0.02
"""A key that fewer than this share of many records have gets no column of its own if there are many such keys."""
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

    `path` leads from the document's root here. `parents`, `series` and `positions` hold, for each row, the parent's row
    (never falling), the number of its list among the `lists` that the rows come from, and its place in it; `keys` the
    `_key` of map rows. `signatures` is one for all rows, or one a row. The store gives the `name`.
    """

    path: Path
    rows: int
    derived: bool
    parents: Numbers
    series: Numbers
    positions: Numbers
    lists: int = 1
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
def shred(
    values: Sequence[Any],
    *,
    expand: bool = True,
    derived: bool = False,
    fields: tuple[Any, Sequence[dict[str, Any] | None]] | None = None,
) -> TableData:
    """The table whose rows are `values`, with its child tables.

    `expand`: what text columns hold (JSON, literals, numbers, times) stands beside them. `fields` are what the text at
    a key of each row (or of none: None) was found to hold, and become derived columns.
    """
    shredder = _Shredder(expand)
    table = shredder.table((), list(values), derived)
    if fields is not None:
        key, found = fields
        rows = [row for row, value in enumerate(found) if value is not None]
        shredder.expand = True
        shredder.node(table, (key, FIELDS), rows, [found[row] for row in rows], True)
    return table


class _Shredder:
    def __init__(self, expand: bool) -> None:
        self.expand = expand
        self.tables = 0
        self.interned: dict[Signature, Signature] = {}

    def table(self, path: Path, values: list[Any], derived: bool) -> TableData:
        none = np.zeros(0, np.int64)
        table = TableData(path, len(values), derived, none, none, np.arange(len(values), dtype=np.int64))
        table.signatures = self.node(table, (), range(len(values)), values, derived)
        return table

    def node(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> Signature | list[Signature]:
        kinds = set(map(type, values))
        if kinds.isdisjoint(CONTAINERS):
            return self.scalars(table, path, rows, values, kinds, derived)
        if len(table.path) + len(path) > MAX_DEPTH or (self.tables >= MAX_TABLES and kinds != {dict}):
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
                if (type(value) is group if group else type(value) not in CONTAINERS and value is not None)
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
            column = [value if value is None else encodable(value) for value in column]
            array = pa.array(column, pa.string())
        self.put(table, path, rows, array, derived, exact)
        if self.expand and kinds == {str}:
            self.beside(table, path, rows, values if signatures == "v" else column, array)
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
            places = np.full(table.rows, -1, np.int64)
            places[np.asarray(rows, np.int64)] = np.arange(len(rows))
            array = array.take(pa.array(places, pa.int64(), mask=places < 0))
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

    def beside(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], array: pa.Array[Any]
    ) -> None:
        """Derived columns next to a text column: what its JSON or Python literals hold, its numbers, its times."""
        if pc.any(pc.match_substring_regex(array, _HOLDS)).as_py():
            self.embedded(table, path, rows, values)
        sample = [value for value in values[:2000] if type(value) is str and value][:50]
        for step, typed in ((NUMBER, numbers), (TIME, times)):
            read = typed(array, sample)
            if read is not None:
                self.put(table, (*path, step), rows, read, True, {})

    def embedded(self, table: TableData, path: Path, rows: Sequence[int], values: list[Any]) -> None:
        """What the texts of a column hold. Where the first that look like it hold nothing, no other is tried."""
        found: list[tuple[int, Any]] = []
        tried = 0
        for row, text in zip(rows, values, strict=True):
            if type(text) is not str or text.lstrip()[:1] not in _OPENERS:
                continue
            value = embedded(text)
            tried += 1
            if value is not None:
                found.append((row, value))
            elif tried == _TRIES and not found:
                return
        if found:
            picked, parsed = zip(*found, strict=True)
            self.node(table, (*path, EXPANDED), picked, list(parsed), True)

    def objects(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[dict[Any, Any]], derived: bool
    ) -> Signature | list[Signature]:
        alike = tuple(values[0])
        keysets = [] if all(tuple(value) == alike for value in values) else list(map(tuple, values))
        distinct = dict.fromkeys(keysets or (alike,))
        if keys_are_data(values, distinct, MAX_COLUMNS - len(table.columns)) and self.tables < MAX_TABLES:
            self.child(table, (*path, MAP), rows, [list(value.values()) for value in values], derived)
            table.children[*path, MAP].keys = [key for value in values for key in value]
            return "m"
        found: dict[Any, Signature | list[Signature]] = {}
        if len(distinct) == 1:
            for first, group in parallel_lists(values).items():
                zipped = [
                    [dict(zip(group, items, strict=True)) for items in zip(*(v[k] for k in group), strict=True)]
                    for v in values
                ]
                self.child(table, (*path, ("parallel", first)), rows, zipped, derived)
                found.update(dict.fromkeys(group, ("p", first)))
            for key in alike:
                if key not in found:
                    found[key] = self.node(table, (*path, key), rows, [value[key] for value in values], derived)
        else:
            numbers = {keys: number for number, keys in enumerate(distinct)}
            owned = [numbers[keys] for keys in keysets]
            holders: dict[Any, list[int]] = {}
            for keys, number in numbers.items():
                for key in keys:
                    holders.setdefault(key, []).append(number)
            sparse = self.sparse(table, path, rows, values, holders, owned, derived)
            picked: dict[frozenset[int], list[int]] = {}  # keys that the same records have share their picks
            for key, having in holders.items():
                if key in sparse:
                    continue
                wanted = frozenset(having)
                if wanted not in picked:
                    picked[wanted] = [i for i, number in enumerate(owned) if number in wanted]
                picks = picked[wanted]
                picked_rows = [rows[i] for i in picks]
                found[key] = self.node(table, (*path, key), picked_rows, [values[i][key] for i in picks], derived)
            if sparse:
                places = {keys: iter(range(len(keys))) for keys in distinct}
                entries: dict[Path, dict[Any, Signature]] = {
                    keys: {key: ("e", next(places[keys])) for key in keys if key in sparse} for keys in distinct
                }
                return self.signatures(keysets, distinct, found, entries)
        return self.signatures(keysets or repeat(alike, len(values)), distinct, found)

    def sparse(
        self,
        table: TableData,
        path: Path,
        rows: Sequence[int],
        values: list[dict[Any, Any]],
        holders: dict[Any, list[int]],
        owned: list[int],
        derived: bool,
    ) -> set[Any]:
        """The keys that so few of the records have that columns of them would be all but empty; they become rows."""
        if len(holders) <= _SPARSE_KEYS or self.tables >= MAX_TABLES:
            return set()
        sizes = Counter(owned)
        few = len(values) * _SPARSE
        rare = {key for key, having in holders.items() if sum(sizes[number] for number in having) < few}
        if len(rare) <= _SPARSE_KEYS:
            return set()
        kept = [[(key, item) for key, item in value.items() if key in rare] for value in values]
        self.child(table, (*path, MAP), rows, [[item for _, item in pairs] for pairs in kept], derived)
        table.children[*path, MAP].keys = [key for pairs in kept for key, _ in pairs]
        return rare

    def signatures(
        self,
        keysets: Iterable[Path],
        distinct: dict[Path, None],
        found: dict[Any, Signature | list[Signature]],
        entries: dict[Path, dict[Any, Signature]] | None = None,
    ) -> Signature | list[Signature]:
        def one(keys: Path, codes: dict[Any, Signature]) -> Signature:
            own = entries[keys] if entries else {}
            return self.intern(("o", tuple((key, own.get(key) or codes.get(key) or found[key]) for key in keys)))

        varying = {key: iter(signature) for key, signature in found.items() if isinstance(signature, list)}
        if not varying:
            made = {keys: one(keys, {}) for keys in distinct}
            return next(iter(made.values())) if len(made) == 1 else [made[keys] for keys in keysets]
        known: dict[Any, Signature] = {}
        signatures = []
        for keys in keysets:
            codes = {key: next(varying[key]) for key in keys if key in varying}
            case = (keys, *codes.values())
            if case not in known:
                known[case] = one(keys, codes)
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
        if kinds.isdisjoint(CONTAINERS):
            fixed = len(lengths) == 1 and 0 < max(lengths) <= FIXED_LIST
            if fixed and (len(kinds - {type(None)}) > 1 or (path == () and len(values) > 1)):
                parts = [
                    self.node(table, (*path, (INDEX, i)), rows, [value[i] for value in values], derived)
                    for i in range(max(lengths))
                ]
                if not any(isinstance(part, list) for part in parts):
                    return self.intern(("t", tuple(parts)))
                streams = [iter(part) if isinstance(part, list) else _forever(part) for part in parts]
                return [self.intern(("t", tuple(next(stream) for stream in streams))) for _ in values]
            if (
                len(kinds - {type(None)}) <= 1
                and (kinds or path)
                and max(lengths) <= _SHORT_LIST
                and path not in table.columns
            ):
                array = _list_array(values, next(iter(kinds - {type(None)}), str))
                if array is not None:
                    self.put(table, path, rows, array, derived, {})
                    return "L"
        self.child(table, (*path, LIST), rows, values, derived)
        return "l"

    def child(self, table: TableData, path: Path, rows: Sequence[int], lists: list[list[Any]], derived: bool) -> None:
        self.tables += 1
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        series = np.repeat(np.arange(len(lists)), lengths)
        parents = np.asarray(rows, np.int64)[series]
        positions = np.arange(len(series)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        elements = list(chain.from_iterable(lists))
        made = TableData((*table.path, *path), len(elements), derived, parents, series, positions, len(lists))
        made.signatures = self.node(made, (), range(len(elements)), elements, derived)
        table.children[path] = made


def _forever(signature: Signature) -> Iterator[Signature]:
    while True:
        yield signature


def dump(value: Any) -> str:
    """Compact ASCII JSON of `value`. Objects with repeated keys keep them all; keys that are no text are written as
    they are, which is then no JSON but still reads back as a literal."""
    if isinstance(value, Pairs | dict):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{dump(key)}:{dump(item)}" for key, item in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value)


def encodable(text: str) -> str:
    """`text` with the replacement character in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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


_OPENERS = ("{", "[", '"')
_HOLDS = r"""^\s*[{\["]"""
_TRIES = 200
