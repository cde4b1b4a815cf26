"""Runs of one long list -> the tables that all of the list gives, though no two runs are held as objects at once.

Rules:
- What comes out is what `shred` makes of all values at once: tables, columns, types, their order, signatures.
- Runs are shredded one by one. Where one was held in another way than all together ask for, `table` gives None: the
  same runs are given once more, and then what is known of them counts from the start. `Unsettled` means that it takes
  all values at once.
- Arrays are joined column by column, and the runs' own freed on the way.
- Relations say the same of many rows (a series' name and labels of each of its samples). So their texts are held as
  codes, and their columns stay in chunks, one a run, until they are read one by one or loaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.arrays import row_numbers
from hyve.choices import MAX_COLUMNS
from hyve.longlists import Keys
from hyve.shape import LIST, ColumnData, Fields, Numbers, Path, Shredder, Signature, TableData, Unsettled

_READINGS = 3
_RELEASED = 4
"""How many times what is freed goes back to the system while a column is put together."""
_DIGIT = re.compile(r"\d")
_NUMBERS = ("parents", "series", "positions")
_CODES = [(pa.dictionary(pa.int8(), pa.string()), 1 << 7), (pa.dictionary(pa.int16(), pa.string()), 1 << 15)]
"""Types of texts held as codes, and how many different ones each has room for."""


class Runs:
    """The runs of one list, in their order. `expand`, `derived`: as in `shred`; `chunked`: columns stay in chunks."""

    def __init__(self, *, expand: bool = True, derived: bool = False, chunked: bool = False) -> None:
        self.expand, self.derived, self.chunked = expand, derived, chunked or derived
        self.forced: dict[tuple[Path, Path], dict[str, Any]] = {}
        self.readings = 0
        self._begin()

    def _begin(self) -> None:
        self.shredder = Shredder(self.expand, True, self.forced)
        self.root: TableData | None = None
        self.path: Path = ()
        self.tables: list[TableData] = []
        self.rows = 0
        self.varied: set[tuple[Path, Path]] = set()

    def add(self, run: list[Any], whole: Any = None, keys: Keys = (), fields: Fields | None = None) -> None:
        """Takes in one run. What stands around it, `whole`, holds it under `keys`; only that of the first counts.
        `fields`: as in `shred`, of this run."""
        if keys and not self.tables:
            table = self._rooted(whole, keys)
        else:
            table = self.shredder.table(self.path, run, self.derived)
            table.positions += self.rows
            table.lists = 0 if self.tables else 1
            if self.path:
                table.parents, table.series = np.zeros(table.rows, np.int64), np.zeros(table.rows, np.int64)
        self.rows += table.rows
        if fields is not None:
            self.shredder.fields(table, fields)
        self._pack(table)
        self.tables.append(table)

    def _rooted(self, whole: Any, keys: Keys) -> TableData:
        """The first run's table, below that of what stands around it. Each list on the way has one item."""
        table = self.root = self.shredder.table((), whole if type(keys[0]) is int else [whole], self.derived)
        way: Path = ()
        for key in keys:
            if type(whole) is dict and len(whole) > 2 and all(_DIGIT.search(key) for key in whole):
                raise Unsettled  # whether it is a map is a question of what all lists in it hold
            whole = whole[key]
            way = (*way, key) if type(key) is str else ()
            if type(whole) is list:
                self.holder, self.place = table, (*way, LIST)
                if self.place not in table.children:
                    raise Unsettled
                table = table.children[self.place]
        self.path = table.path
        return table

    def _pack(self, root: TableData) -> None:
        """Holds a run in less: numbers of rows and of lines in half, and the texts of relations and of fields of lines
        as codes, but for columns that had hardly a text twice in this run or one before."""
        for table in root.walk():
            for name in _NUMBERS:
                setattr(table, name, _moved([getattr(table, name)], [0]))
            for path, column in table.columns.items():
                place = table.path, path
                if self.chunked and not column.derived and column.array is not None:
                    column.array = _halved(column.array)
                if not column.derived or not self.chunked:
                    continue
                if column.array is not None and pa.types.is_string(column.array.type) and place not in self.varied:
                    coded = _coded(column.array)
                    column.array = column.array if coded is None else coded
                    self.varied |= {place} if coded is None else set()

    def table(self) -> TableData | None:
        """The table of all runs, or of what stands around them, with its child tables; None: read them again."""
        self.readings += 1
        wrong = self.shredder.unsettled()
        if wrong:
            if self.readings == _READINGS:
                raise Unsettled
            for place, choices in wrong.items():
                self.forced.setdefault(place, {}).update(choices)
            self._begin()
            return None
        joined = _joined(self.tables, [0] * len(self.tables), self.chunked)
        self.tables = []
        root = self.root or joined
        if self.root is not None:
            joined.series = row_numbers(joined.rows)
            joined.series[:] = 0  # all runs are of one list
            self.holder.children[self.place] = joined
        self.shredder.finish(root)
        return root


def _joined(runs: list[TableData], before: Sequence[int], chunked: bool) -> TableData:
    """One table of those of several runs. `before`: how many rows the parent's table has before each run; `chunked`:
    its columns stay in chunks."""
    sizes = [run.rows for run in runs]
    starts = list(accumulate(sizes, initial=0))[:-1]
    lists = list(accumulate((run.lists for run in runs), initial=0))
    first = runs[0]
    none = row_numbers(0)
    made = TableData(first.path, sum(sizes), first.derived, none, none, none, lists[-1])
    for name, by in zip(_NUMBERS, (before, lists, [0] * len(runs)), strict=True):
        setattr(made, name, _moved([getattr(run, name) for run in runs], by))
        for run in runs:
            setattr(run, name, none)
    if np.array_equal(made.parents, made.series):
        made.series = made.parents
    if first.keys is not None:
        made.keys = list(chain.from_iterable(run.keys or () for run in runs))
    made.signatures = _signatures(runs)
    filled = [run for run in runs if run.rows] or runs[:1]  # a table without rows has no fields
    for path in dict.fromkeys(path for run in filled for path in run.columns):
        made.columns[path] = _column([run.columns.pop(path, None) for run in runs], sizes, starts, chunked)
    if len(made.columns) > MAX_COLUMNS // 2:
        raise Unsettled
    for path in dict.fromkeys(path for run in filled for path in run.children):
        some = [
            (run.children.pop(path), start) for run, start in zip(runs, starts, strict=True) if path in run.children
        ]
        made.children[path] = _joined([child for child, _ in some], [start for _, start in some], chunked)
    return made


def _moved(parts: list[Numbers], by: Sequence[int]) -> Numbers:
    """All numbers one after the other, those of each part moved by what goes with it."""
    made = row_numbers(sum(map(len, parts)))
    at = 0
    for part, start in zip(parts, by, strict=False):
        made[at : at + len(part)] = part
        made[at : at + len(part)] += start
        at += len(part)
    return made


def _signatures(runs: list[TableData]) -> Signature | list[Signature]:
    filled = [run for run in runs if run.rows] or runs[:1]
    first = filled[0].signatures
    if not isinstance(first, list) and all(run.signatures == first for run in filled):
        return first
    return list(
        chain.from_iterable(
            run.signatures if isinstance(run.signatures, list) else repeat(run.signatures, run.rows) for run in filled
        )
    )


def _column(parts: list[ColumnData | None], sizes: Sequence[int], starts: Sequence[int], chunked: bool) -> ColumnData:
    """One column of those of several runs, of which some may lack it."""
    there = [part for part in parts if part is not None]
    kind = _kind([part.array for part in there if part.array is not None])
    arrays = []
    nulls = pa.nulls(max(sizes), kind)
    exact: dict[int, str] = {}
    for part, size, start in zip(parts, sizes, starts, strict=True):
        array = part.array if part is not None else None
        if array is None or array.null_count == len(array):
            array = nulls.slice(0, size)
        arrays.append(array if array.type == kind else array.cast(kind))
        if part is not None:
            exact.update((row + start, text) for row, text in part.exact.items())
            part.array = None
    joined: Any = pa.chunked_array(arrays, kind) if chunked else _concatenated(arrays, kind)
    made = ColumnData(joined, there[0].derived, exact, any(part.spells for part in there))
    del arrays
    pa.default_memory_pool().release_unused()  # Arrow's allocator else holds twice of what is used
    return made


def _concatenated(arrays: list[pa.Array[Any]], kind: pa.DataType) -> pa.Array[Any]:
    """One array of several, which it empties: numbers are never held twice."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.concat_arrays(arrays)
    made = np.empty(sum(map(len, arrays)), kind.to_pandas_dtype())
    none = np.zeros(len(made), np.bool_) if any(array.null_count for array in arrays) else None
    end, some = len(made), len(arrays) // _RELEASED + 1
    while arrays:
        last = arrays.pop()
        start = end - len(last)
        if none is not None and last.null_count:
            none[start:end] = last.is_null().to_numpy(zero_copy_only=False)
            last = last.fill_null(0)
        made[start:end] = last.to_numpy()
        end = start
        if len(arrays) % some == 0:
            del last
            pa.default_memory_pool().release_unused()
    return pa.array(made, kind, mask=none)


def _halved(numbers: pa.Array[Any]) -> pa.Array[Any]:
    """Numbers of lines in half their memory, and any other array."""
    return numbers.cast(pa.int32()) if pa.types.is_int64(numbers.type) else numbers


def _coded(texts: pa.Array[Any]) -> pa.Array[Any] | None:
    """Texts by their codes; None where most are different."""
    coded: Any = texts.dictionary_encode()
    different = len(coded.dictionary)
    if different * 2 > len(texts) - texts.null_count > 0:
        return None
    kind = code_type(different)
    return (
        None if kind is None else pa.DictionaryArray.from_arrays(coded.indices.cast(kind.index_type), coded.dictionary)
    )


def code_type(different: int) -> Any:
    """The type of codes for so many different texts; None for too many."""
    return next((kind for kind, most in _CODES if different <= most), None)


def _kind(arrays: list[pa.Array[Any]]) -> Any:
    """The type of a column. Runs that hold nothing but nulls, or empty lists, are of any type."""
    kinds = {array.type for array in arrays if array.null_count < len(array)} or {arrays[0].type}
    if len(kinds) > 1:
        kinds = {array.type for array in arrays if not _bare(array)} or {arrays[0].type}
    if len(kinds) > 1 and all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in kinds):
        return pa.decimal128(38, 0)
    if len(kinds) > 1 and all(pa.types.is_string(kind) or pa.types.is_dictionary(kind) for kind in kinds):
        return next((kind for kind, _ in reversed(_CODES) if kind in kinds and pa.string() not in kinds), pa.string())
    if len(kinds) > 1:
        raise Unsettled
    return next(iter(kinds))


def _bare(array: pa.Array[Any]) -> bool:
    """Whether an array has only nulls, or lists of nothing but nulls."""
    if array.null_count == len(array):
        return True
    inner: Any = pc.list_flatten(array) if pa.types.is_list(array.type) else None
    return inner is not None and inner.null_count == len(inner)
