"""A table's columns as Arrow arrays: what the figures, the scores and the cells of its views are computed from.

A statement of DuckDB takes half a millisecond however small the table is, and a view asks a dozen things of each. So a
table is read once, and a large one column by column, each freed before the next is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hyve.store import Column, Datastore, Table

_CELLS = 2_000_000
_CHARACTERS = 16 << 20
"""A table of more cells, or of a request longer than that, is read column by column."""

_FEW = 100
"""Columns of so many values are kept by their codes, a byte a row, however large the table is."""

Codes = NDArray[np.int32] | NDArray[np.int8]


class Columns:
    """The columns of one table. Lists are read as DuckDB's text of them; times are UTC."""

    def __init__(self, store: Datastore, table: Table) -> None:
        self.table = table
        self._store = store
        cells = table.rows * len(table.columns)
        self._small = cells <= _CELLS and sum(len(source.text) for source in store.sources) <= _CHARACTERS
        self._kept: dict[str, pa.Array[Any]] = {}
        self._coded: dict[str, tuple[Codes, pa.Array[Any]]] = {}

    def load(self, names: Sequence[str]) -> None:
        """Reads some columns before they are asked for; without it the first one asked for brings all others along,
        but for lists, which take the longest to be read as text and are seldom wanted."""
        if self._small and names:
            self._kept.update(self._read(names))

    def array(self, name: str) -> pa.Array[Any]:
        """All values of a column, in the order of the rows."""
        if not self._small:
            return self._read([name])[name]
        if name not in self._kept:
            along = [one.name for one in self.table.columns if one.name not in self._kept and not nested(one)]
            self.load(along if name in along else [name])
        return self._kept[name]

    def coded(self, name: str) -> tuple[Codes, pa.Array[Any]]:
        """(the number of each row's value, -1 for none; the distinct values, in the order of their first rows)."""
        found = self._coded.get(name)
        if found is None:
            array = self.array(name)
            if pa.types.is_floating(array.type):
                array = pc.add(array, 0.0)  # -0.0 is 0.0
            coded = array.dictionary_encode()
            codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            few = len(coded.dictionary) <= _FEW
            found = codes.astype(np.int8) if few and not self._small else codes, coded.dictionary
            if few or self._small:
                self._coded[name] = found
        return found

    def floats(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(the numbers of a column as doubles, whether there is one)."""
        array = self.array(name)
        numbers = array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
        return numbers, array.is_valid().to_numpy(zero_copy_only=False)

    def cells(self, name: str, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows as they are shown: times as text."""
        return shown(self.array(name).take(pa.array(rows, pa.int64())))

    def _read(self, names: Sequence[str]) -> dict[str, pa.Array[Any]]:
        lists = {column.name for column in self.table.columns if nested(column)}
        read = self._store.columns(self.table.name, names, lists)
        return {name: read.column(i).combine_chunks() for i, name in enumerate(names)}


def nested(column: Column) -> bool:
    """Whether a column's values are lists."""
    return column.type.endswith("[]")


def shown(array: pa.Array[Any]) -> list[Any]:
    """The values of an array; times as `2026-03-01 08:13:20.77`."""
    if not pa.types.is_timestamp(array.type):
        return array.to_pylist()
    texts = np.datetime_as_string(array.to_numpy(zero_copy_only=False))
    return [None if text == "NaT" else _instant(str(text)) for text in texts]


@lru_cache(maxsize=4096)
def _instant(text: str) -> str:
    head, dot, fraction = text.replace("T", " ").partition(".")
    fraction = fraction.rstrip("0")
    return f"{head}.{fraction}" if dot and fraction else head
