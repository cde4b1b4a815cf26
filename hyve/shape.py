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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from hyve.arrays import array_of, dump, in_rows, list_array, may_hold
from hyve.choices import CONTAINERS, MAX_COLUMNS, Lists, Objects, Seen
from hyve.collector import collector_paused
from hyve.encodings import encodable
from hyve.escaped import embedded
from hyve.linetimes import spelled
from hyve.nominal import nominal
from hyve.strictjson import MAX_DEPTH, Pairs
from hyve.typed import KINDS

Signature = str | tuple[Any, ...]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64] | np.dtype[np.int32]]
Path = tuple[Any, ...]
"""Keys from a row to a leaf or a child table. Tuples among them are steps that are no keys: `(INDEX, i)` a position of
a fixed-length list, LIST, MAP, PAIRS and `(PARALLEL, first key)` a child table, EXPANDED, FIELDS, TEXT and those of
TYPED a column beside another one."""

Fields = tuple[Any, Sequence[dict[str, Any] | None]]
"""A key, and what the text there was found to hold in each row (None: nothing)."""

INDEX, PARALLEL = "[]", "parallel"
EXPANDED, FIELDS = ("expanded",), ("fields",)
TYPED = tuple((kind,) for kind in KINDS)
NUMBER, TIME = TYPED[:2]
LIST, MAP, PAIRS, TEXT = ("list",), ("map",), ("pairs",), ("text",)
_STEPS: list[Any] = [EXPANDED, *TYPED, FIELDS, MAP, None, None, None, PAIRS, LIST, TEXT]
_KEYS = _STEPS.index(None) + 1
"""In which order stands what is at one path: columns beside another one first, keys at place _KEYS."""

MAX_TABLES, _SPARSE_KEYS = 300, 300
_SPARSE = 0.02
"""A key that fewer than this share of many records have gets no column of its own if there are many such keys."""
_LETTER = {int: "i", float: "f", str: "s", bool: "b"}


@dataclass
class ColumnData:
    """One column in the making: an arrow array of the table's length, and whether it is derived from another one.

    `exact` maps rows whose text can't be stored as UTF-8 (lone surrogates) to that text. `spells`: the numbers or times
    that its text may spell are wanted beside it; `names`: of names. The store gives the `name` and takes the array away
    once DuckDB holds it. Relations that came in runs have chunks and codes in its place, which only the store reads.
    """

    array: pa.Array[Any] | None
    derived: bool = False
    exact: dict[int, str] = field(default_factory=dict)
    spells: bool = False
    names: bool = False
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
    values: Sequence[Any], *, expand: bool = True, derived: bool = False, fields: Fields | None = None
) -> TableData:
    """The table whose rows are `values`, with its child tables.

    `expand`: what text columns hold (JSON, literals, numbers, times) stands beside them. `fields` become derived
    columns.
    """
    shredder = Shredder(expand)
    table = shredder.table((), list(values), derived)
    if fields is not None:
        shredder.fields(table, fields)
    shredder.finish(table)
    return table


class Unsettled(Exception):
    """What comes in several runs can be held rightly only if it is seen at once: for its size, most likely."""


class Shredder:
    """Makes tables of values, all at once or in several runs of what stands at one path.

    `forced` are choices by place (the table's path, the path within) that are known from an earlier reading.
    """

    def __init__(
        self, expand: bool, several: bool = False, forced: dict[tuple[Path, Path], dict[str, Any]] | None = None
    ) -> None:
        self.expand = expand
        self.several = several
        self.forced = forced or {}
        self.tables = 0
        self.made: set[Path] = set()
        self.interned: dict[Signature, Signature] = {}
        self.seen: dict[tuple[Path, Path], Seen] = {}
        self.places: dict[tuple[Path, Path], int] = {}

    def table(self, path: Path, values: list[Any], derived: bool) -> TableData:
        """The table of values that have no parents: those of the root, or further ones of a list that has begun."""
        none = np.zeros(0, np.int64)
        table = TableData(path, len(values), derived, none, none, np.arange(len(values), dtype=np.int64))
        table.signatures = self.node(table, (), range(len(values)), values, derived)
        return table

    def fields(self, table: TableData, fields: Fields) -> None:
        """Puts beside the texts of a table what they were found to hold. Texts in that are expanded."""
        key, found = fields
        rows = [row for row, value in enumerate(found) if value is not None]
        if rows:
            expand, self.expand = self.expand, True
            self.node(table, (key, FIELDS), rows, [found[row] for row in rows], True)
            self.expand = expand

    def finish(self, root: TableData) -> None:
        """Puts typed columns beside text, and columns and tables in the order in which the source has them first."""
        for table in root.walk():
            for path, column in list(table.columns.items()):
                if column.spells and column.array is not None:
                    for kind, read in spelled(column.array, path[-1:], path[-2:-1] == (FIELDS,)):
                        names = nominal(kind, column.array, read, path)
                        table.columns[*path, (kind,)] = ColumnData(read, True, names=names)
            place = self.place(table)
            table.columns = dict(sorted(table.columns.items(), key=place))
            table.children = dict(sorted(table.children.items(), key=place))

    def place(self, table: TableData) -> Callable[[tuple[Path, Any]], list[tuple[int, int]]]:
        """The sort key of a table's columns and children: a value before what is made of it or stands below it."""

        def key(item: tuple[Path, Any]) -> list[tuple[int, int]]:
            path, found = item[0], []
            for length, step in enumerate(path, 1):
                if not isinstance(step, tuple):
                    found.append((_KEYS, self.places.get((table.path, path[:length]), -1)))
                elif step[0] == INDEX:
                    found.append((_KEYS + 1, step[1]))
                elif step[0] == PARALLEL:
                    found.append((_KEYS - 1, self.places.get((table.path, (*path[: length - 1], step[1])), -1)))
                else:
                    found.append((_STEPS.index(step), 0))
            if isinstance(item[1], ColumnData) and item[1].array is not None and pa.types.is_list(item[1].array.type):
                found.append((_KEYS + 1, 0))  # among objects
            return found

        return key

    def at(self, table: TableData, path: Path) -> Seen:
        """What was seen at a place so far."""
        place = table.path, path
        seen = self.seen.get(place)
        if seen is None:
            seen = self.seen[place] = Seen(self.several, self.forced.get(place, {}))
        return seen

    def unsettled(self) -> dict[tuple[Path, Path], dict[str, Any]]:
        """The choices by place that all runs ask for where some run was held in another way."""
        return {place: wrong for place, seen in self.seen.items() if (wrong := seen.settle())}

    def node(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> Signature | list[Signature]:
        """Puts the values at a path of some rows into columns and child tables; gives the rows' signatures."""
        kinds = set(map(type, values))
        seen = self.at(table, path)
        seen.kinds |= kinds
        deep = len(table.path) + len(path) > MAX_DEPTH
        holds = not kinds.isdisjoint(CONTAINERS)
        plain = not holds and not deep and type(None) not in kinds
        if plain or (not seen.choose("containers", seen.containers()) and not holds):
            return self.scalars(table, path, rows, values, kinds, derived)
        if deep or (self.tables >= MAX_TABLES and kinds != {dict}):
            return self.text(table, path, rows, values, derived)
        if kinds == {dict}:
            return self.objects(table, path, rows, values, derived)
        if kinds == {list}:
            return self.lists(table, path, rows, values, derived)
        return self.mixed(table, path, rows, values, derived)

    def mixed(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], derived: bool
    ) -> list[Signature]:
        signatures: list[Signature] = ["n"] * len(values)
        repeats = [i for i, value in enumerate(values) if type(value) is Pairs]
        elements = [[{"key": key, "value": value} for key, value in values[i]] for i in repeats]
        values = [value.unique() or value if type(value) is Pairs else value for value in values]
        groups = [None if value is None else type(value) if type(value) in CONTAINERS else "v" for value in values]
        for group in ("v", dict, list):  # scalars first: lists then leave the path's column to them
            picks = [i for i, own in enumerate(groups) if own is group]
            if not picks:
                continue
            found = self.node(table, path, [rows[i] for i in picks], [values[i] for i in picks], derived)
            for place, i in enumerate(picks):
                signatures[i] = found[place] if isinstance(found, list) else found
        if repeats:  # all of their fields stand in the pairs; those that are not repeated stand in columns, too
            self.child(table, (*path, PAIRS), [rows[i] for i in repeats], elements, derived)
            for i in repeats:
                signatures[i] = "d"
        return signatures

    def scalars(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[Any], kinds: set[type], derived: bool
    ) -> Signature | list[Signature]:
        seen = self.at(table, path)
        seen.add_scalars(values, kinds)
        kinds = kinds - {type(None)}
        held = seen.choose("scalar", seen.scalar()) if kinds else None
        signatures: Signature | list[Signature] = "v"
        exact: dict[int, str] = {}
        column = values
        if held in ("number", "text"):
            signatures = [_LETTER.get(type(value), "v") for value in values]
            kinds = {int, float}
            if held == "text":
                column = [value if value is None or type(value) is str else json.dumps(value) for value in values]
                kinds = {str}
        array = array_of(column, kinds) if held != "digits" else None
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
            table.columns[path].spells = True
            if may_hold(column, array):
                self.embedded(table, path, rows, values if signatures == "v" else column)
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
            array = in_rows(array, rows, table.rows)
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

    def embedded(self, table: TableData, path: Path, rows: Sequence[int], values: list[Any]) -> None:
        """Puts what the texts of a column hold (JSON, Python literals) beside them. Where the first that look like it
        hold nothing, no other is tried."""
        found: list[tuple[int, Any]] = []
        seen = self.at(table, path)
        for row, text in zip(rows, values, strict=True):
            if type(text) is not str or text.lstrip()[:1] not in _OPENERS:
                continue
            if seen.tried >= _TRIES and not seen.held:
                return
            value = embedded(text)
            seen.tried += 1
            if value is not None:
                seen.held = True
                found.append((row, value))
        if found:
            picked, parsed = zip(*found, strict=True)
            self.node(table, (*path, EXPANDED), picked, list(parsed), True)

    def objects(
        self, table: TableData, path: Path, rows: Sequence[int], values: list[dict[Any, Any]], derived: bool
    ) -> Signature | list[Signature]:
        alike = tuple(values[0])
        keysets = [] if all(tuple(value) == alike for value in values) else list(map(tuple, values))
        distinct = dict.fromkeys(keysets or (alike,))
        seen = self.at(table, path)
        seen.objects = seen.objects or Objects(self.several)
        seen.objects.add(values, distinct)
        room = MAX_COLUMNS - len(table.columns)
        if self.several and (seen.objects.are_many(_SPARSE_KEYS) or room < MAX_COLUMNS // 2):
            raise Unsettled
        if seen.choose("map", self.tables < MAX_TABLES and seen.map(room)):
            self.child(table, (*path, MAP), rows, [list(value.values()) for value in values], derived)
            table.children[*path, MAP].keys = seen.objects.keys_of(values)
            return "m"
        found: dict[Any, Signature | list[Signature]] = {}
        for key in seen.objects.keys:
            self.places.setdefault((table.path, (*path, key)), len(self.places))
        parallel = seen.choose("parallel", seen.parallel())
        if len(distinct) == 1:
            for group in parallel:
                zipped = [
                    [dict(zip(group, items, strict=True)) for items in zip(*(v[k] for k in group), strict=True)]
                    for v in values
                ]
                self.child(table, (*path, (PARALLEL, group[0])), rows, zipped, derived)
                found.update(dict.fromkeys(group, ("p", group[0])))
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
            picked: dict[frozenset[int], tuple[list[int], list[int]]] = {}  # shared by keys that the same records have
            for key, having in holders.items():
                if key in sparse:
                    continue
                wanted = frozenset(having)
                if wanted not in picked:
                    picks = [i for i, number in enumerate(owned) if number in wanted]
                    picked[wanted] = picks, [rows[i] for i in picks]
                picks, picked_rows = picked[wanted]
                found[key] = self.node(table, (*path, key), picked_rows, [values[i][key] for i in picks], derived)
            if sparse:
                entries: dict[Path, dict[Any, Signature]] = {
                    keys: {key: ("e", i) for i, key in enumerate(filter(sparse.__contains__, keys))}
                    for keys in distinct
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
        seen = self.at(table, path)
        seen.lists = seen.lists or Lists()
        seen.lists.add(values, path == ())
        held = seen.choose("lists", seen.listed())
        if held == "fixed":
            parts = [
                self.node(table, (*path, (INDEX, i)), rows, [value[i] for value in values], derived)
                for i in range(len(values[0]))
            ]
            if not any(isinstance(part, list) for part in parts):
                return self.intern(("t", tuple(parts)))
            streams = [iter(part) if isinstance(part, list) else repeat(part) for part in parts]
            return [self.intern(("t", tuple(next(stream) for stream in streams))) for _ in values]
        if held == "column":
            array = list_array(values, next(iter(seen.lists.kinds - {type(None)}), str))
            if array is not None:
                self.put(table, path, rows, array, derived, {})
                return "L"
            seen.lists.refused = True
            seen.choose("lists", "child")
        self.child(table, (*path, LIST), rows, values, derived)
        return "l"

    def child(self, table: TableData, path: Path, rows: Sequence[int], lists: list[list[Any]], derived: bool) -> None:
        self.made.add((*table.path, *path))
        self.tables = len(self.made)
        if self.several and self.tables >= MAX_TABLES:
            raise Unsettled
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        series = np.repeat(np.arange(len(lists)), lengths)
        parents = np.asarray(rows, np.int64)[series]
        positions = np.arange(len(series)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        elements = list(chain.from_iterable(lists))
        made = TableData((*table.path, *path), len(elements), derived, parents, series, positions, len(lists))
        made.signatures = self.node(made, (), range(len(elements)), elements, derived)
        table.children[path] = made


_OPENERS = ("{", "[", '"')
_TRIES = 200
