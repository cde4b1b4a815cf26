"""Runs of one long list -> the tables that all of the list gives, though no two runs are held as objects at once.

Rules:
- What comes out is what `shred` makes of all values at once: tables, columns, types, their order, signatures.
- Runs are shredded one by one. Where one was held in another way than all together ask for, `table` gives None: the
  same runs are given once more, and then what is known of them counts from the start. `Unsettled` means that it takes
  all values at once.
- Arrays are joined column by column, and the runs' own freed on the way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.choices import MAX_COLUMNS
from hyve.shape import LIST, ColumnData, Path, Shredder, Signature, TableData, Unsettled

_READINGS = 3
_DIGIT = re.compile(r"\d")


class Runs:
    """The runs of one list, in their order. `expand`, `derived`: as in `shred`."""

    def __init__(self, *, expand: bool = True, derived: bool = False) -> None:
        self.expand, self.derived = expand, derived
        self.forced: dict[tuple[Path, Path], dict[str, Any]] = {}
        self.readings = 0
        self._begin()

    def _begin(self) -> None:
        self.shredder = Shredder(self.expand, True, self.forced)
        self.root: TableData | None = None
        self.path: Path = ()
        self.tables: list[TableData] = []

    def add(self, run: list[Any], whole: Any = None, keys: Sequence[str] = ()) -> None:
        """Takes in one run. What stands around it, `whole`, holds it under `keys`; only that of the first counts."""
        if keys and not self.tables:
            holder = whole
            for key in keys[:-1]:
                holder = holder[key]
            if len(holder) > 2 and all(_DIGIT.search(key) for key in holder):
                raise Unsettled  # whether it is a map is a question of what all lists in it hold
            self.root = self.shredder.table((), [whole], self.derived)
            self.path = (*keys, LIST)
            if self.path not in self.root.children:
                raise Unsettled
            self.tables.append(self.root.children[self.path])
            return
        table = self.shredder.table(self.path, run, self.derived)
        table.positions += sum(before.rows for before in self.tables)
        table.lists = 0 if self.tables else 1
        if self.path:
            table.parents, table.series = np.zeros(table.rows, np.int64), np.zeros(table.rows, np.int64)
        self.tables.append(table)

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
        joined = _joined(self.tables, [0] * len(self.tables))
        self.tables = []
        root = self.root or joined
        if self.root is not None:
            joined.series[:] = 0  # all runs are of one list
            self.root.children[self.path] = joined
        self.shredder.finish(root)
        return root


def _joined(runs: list[TableData], before: Sequence[int]) -> TableData:
    """One table of those of several runs. `before`: how many rows the parent's table has before each run."""
    sizes = [run.rows for run in runs]
    starts = list(accumulate(sizes, initial=0))[:-1]
    lists = list(accumulate((run.lists for run in runs), initial=0))
    first = runs[0]
    made = TableData(
        first.path,
        sum(sizes),
        first.derived,
        _moved([run.parents for run in runs], before),
        _moved([run.series for run in runs], lists),
        np.concatenate([run.positions for run in runs]),
        lists[-1],
    )
    for run in runs:
        run.parents = run.series = run.positions = made.parents[:0]
    if first.keys is not None:
        made.keys = list(chain.from_iterable(run.keys or () for run in runs))
    made.signatures = _signatures(runs)
    filled = [run for run in runs if run.rows] or runs[:1]  # a table without rows has no fields
    for path in dict.fromkeys(path for run in filled for path in run.columns):
        made.columns[path] = _column([run.columns.pop(path, None) for run in runs], sizes, starts)
    if len(made.columns) > MAX_COLUMNS // 2:
        raise Unsettled
    for path in dict.fromkeys(path for run in filled for path in run.children):
        some = [
            (run.children.pop(path), start) for run, start in zip(runs, starts, strict=True) if path in run.children
        ]
        made.children[path] = _joined([child for child, _ in some], [start for _, start in some])
    return made


def _moved(numbers: list[np.ndarray[Any, Any]], by: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.concatenate([part + start for part, start in zip(numbers, by, strict=False)])


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


def _column(parts: list[ColumnData | None], sizes: Sequence[int], starts: Sequence[int]) -> ColumnData:
    """One column of those of several runs, of which some may lack it."""
    there = [part for part in parts if part is not None]
    kind = _kind([part.array for part in there if part.array is not None])
    arrays = []
    exact: dict[int, str] = {}
    for part, size, start in zip(parts, sizes, starts, strict=True):
        array = part.array if part is not None else None
        if array is None or array.null_count == len(array):
            array = pa.nulls(size, kind)
        arrays.append(array if array.type == kind else array.cast(kind))
        if part is not None:
            exact.update((row + start, text) for row, text in part.exact.items())
            part.array = None
    made = ColumnData(pa.concat_arrays(arrays), there[0].derived, exact, any(part.spells for part in there))
    del arrays
    pa.default_memory_pool().release_unused()  # Arrow's allocator else holds twice of what is used
    return made


def _kind(arrays: list[pa.Array[Any]]) -> Any:
    """The type of a column. Runs that hold nothing but nulls, or empty lists, are of any type."""
    kinds = {array.type for array in arrays if array.null_count < len(array)} or {arrays[0].type}
    if len(kinds) > 1:
        kinds = {array.type for array in arrays if not _bare(array)} or {arrays[0].type}
    if len(kinds) > 1 and all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in kinds):
        return pa.decimal128(38, 0)
    if len(kinds) > 1:
        raise Unsettled
    return next(iter(kinds))


def _bare(array: pa.Array[Any]) -> bool:
    """Whether an array has only nulls, or lists of nothing but nulls."""
    if array.null_count == len(array):
        return True
    inner: Any = pc.list_flatten(array) if pa.types.is_list(array.type) else None
    return inner is not None and inner.null_count == len(inner)
