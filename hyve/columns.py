"""A table's columns: what the figures, the scores and the cells of its views are computed from.

A statement of DuckDB takes half a millisecond however small the table is, a call of Arrow some tens of microseconds,
and a view asks a dozen things of each column. So a short column is read once, as a list; a longer one once, as Arrow;
those of a large table one by one, each freed before the next is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hyve.catalog import Column, Table
from hyve.cells import shortest
from hyve.store import Datastore

_CELLS = 2_000_000
_CHARACTERS = 16 << 20
"""A table of more cells, or of a request longer than that, is read column by column."""

_FEW = 100
"""Columns of so many values are kept by their codes, a byte a row, however large the table is."""

_SHORT = 1_000
"""Columns of so many rows are held as lists."""

_LISTED = frozenset(kind.id for kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("ns")))
"""Types whose values are in lists what they are in Arrow, or the text of it: times."""

Codes = NDArray[np.int32] | NDArray[np.int8]


class Values:
    """The distinct values of a column, in the order of the rows that have them first: Arrow's, or in a list."""

    def __init__(
        self, values: pa.Array[Any] | list[Any], kind: pa.DataType, integers: NDArray[np.int64] | None = None
    ) -> None:
        self._values, self._kind = values, kind
        self._integers = integers

    def __len__(self) -> int:
        return len(self._values)

    @property
    def texts(self) -> bool:
        """Whether they are texts."""
        return pa.types.is_string(self._kind)

    @cached_property
    def array(self) -> pa.Array[Any]:
        """The values as Arrow."""
        return pa.array(self._values, self._kind) if isinstance(self._values, list) else self._values

    def integers(self) -> NDArray[np.int64]:
        """Whole numbers, or times in units of their type."""
        if self._integers is None:
            if not isinstance(self._values, list):
                self._integers = self._values.cast(pa.int64()).to_numpy(zero_copy_only=False)
            elif pa.types.is_timestamp(self._kind):
                self._integers = np.array(self._values, "datetime64[ns]").view(np.int64)
            else:
                self._integers = np.array(self._values, np.int64)
        return self._integers

    def shown(self, places: NDArray[np.int64] | None = None) -> list[Any]:
        """The values, or those at some places, as they are shown."""
        values = self._values
        if isinstance(values, list):
            return values if places is None else [values[place] for place in places.tolist()]
        return shown(values if places is None else values.take(pa.array(places, pa.int64())))

    def numbers(self) -> NDArray[np.float64]:
        """Numeric values as doubles."""
        if isinstance(self._values, list):
            return np.array(self._values, np.float64)
        doubles: NDArray[np.float64] = self._values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return doubles

    def only(self, some: NDArray[np.bool_]) -> Values:
        """Those that `some` says."""
        if isinstance(self._values, list):
            return Values([value for value, wanted in zip(self._values, some, strict=True) if wanted], self._kind)
        return Values(self._values.filter(pa.array(some)), self._kind)

    def edges(self) -> tuple[Any, Any]:
        """The least and the greatest value as they are shown."""
        if isinstance(self._values, list):
            return min(self._values), max(self._values)
        edges = pc.min_max(self._values)
        low, high = shown(pa.array([edges["min"], edges["max"]], self._kind))
        return low, high

    def same(self, other: Values) -> bool:
        """Whether two columns have the same values in the same order."""
        if isinstance(self._values, list) and isinstance(other._values, list):
            return self._values == other._values
        return bool(self.array.equals(other.array))


class Columns:
    """The columns of one table. Lists are read as DuckDB's text of them; times are UTC.

    `short`: they are so short that lists are the faster way.
    """

    def __init__(self, store: Datastore, table: Table) -> None:
        self.table = table
        self._store = store
        cells = table.rows * len(table.columns)
        self._small = cells <= _CELLS and sum(len(source.text) for source in store.sources) <= _CHARACTERS
        self.short = self._small and table.rows <= _SHORT
        self._kept: dict[str, pa.Array[Any]] = {}
        self._listed: dict[str, list[Any]] = {}
        self._coded: dict[str, tuple[Codes, Values]] = {}
        self._floats: dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]] = {}
        self._counted: dict[str, tuple[Codes, Values, int, NDArray[np.int64]]] = {}

    def load(self, names: Sequence[str]) -> None:
        """Reads some columns before they are asked for; without it the first one asked for brings all others along,
        but for lists, which take the longest to be read as text and are seldom wanted."""
        if self._small and names:
            self._kept.update(self._read(names))

    def array(self, name: str) -> pa.Array[Any]:
        """All values of a column, in the order of the rows; texts may come as codes."""
        if not self._small:
            return self._read([name])[name]
        if name not in self._kept:
            along = [one.name for one in self.table.columns if one.name not in self._kept and not nested(one)]
            self.load(along if name in along else [name])
        return self._kept[name]

    def each(self, names: Sequence[str]) -> Iterator[tuple[str, pa.Array[Any]]]:
        """Columns one by one, of large tables several read at a time."""
        if self._small:
            for name in names:
                yield name, self.array(name)
            return
        together = max(1, _CELLS // max(1, self.table.rows))
        for start in range(0, len(names), together):
            yield from self._read(names[start : start + together]).items()

    def kinds(self, column: Column) -> list[str]:
        """Of which type each row's value is at the path of a column of which records have values of several types."""
        return self._store.kinds(self.table.name, column.path)

    def size(self, name: str) -> int:
        """About how many bytes a column has."""
        return self.array(name).get_total_buffer_size() if self.short else 8 * self.table.rows

    def coded(self, name: str) -> tuple[Codes, Values]:
        """(the number of each row's value, -1 for none; the distinct values)."""
        found = self._coded.get(name)
        if found is None:
            array = self.array(name)
            if self.short and array.type.id in _LISTED:
                found = _coded(self._cells(name), array)
            elif _rises(array):  # as the numbers of lines do: a table of all of them takes ten times their memory
                found = np.arange(len(array), dtype=np.int32), Values(array, array.type)
            else:
                kind, told = array.type, None
                if pa.types.is_floating(kind):
                    array = pc.add(array, 0.0)  # -0.0 is 0.0
                elif isinstance(array, pa.DictionaryArray):
                    kind, told, array = kind.value_type, array.dictionary, array.indices
                coded = array.dictionary_encode()
                codes = (coded.indices.fill_null(-1) if coded.null_count else coded.indices).to_numpy()
                values = coded.dictionary if told is None else told.take(coded.dictionary)
                few = len(values) <= _FEW
                found = codes.astype(np.int8) if few and not self._small else codes, Values(values, kind)
            if self._small or len(found[1]) <= _FEW:
                self._coded[name] = found
        return found

    def counted(self, name: str) -> tuple[Codes, Values, int, NDArray[np.int64]]:
        """The same, and the rows without a value, and those that have each of the distinct ones."""
        found = self._counted.get(name)
        if found is None:
            codes, values = self.coded(name)
            counts = np.bincount(codes + 1, minlength=len(values) + 1)
            found = codes, values, int(counts[0]), counts[1:]
            if name in self._coded:
                self._counted[name] = found
        return found

    def texts(self, name: str) -> list[str]:
        """The distinct values of a column, in the order of the rows, as text."""
        if self.short and name not in self._coded and pa.types.is_string(self.array(name).type):
            found = dict.fromkeys(self._cells(name))
            found.pop(None, None)
            return list(found)
        return list(map(str, self.coded(name)[1].shown()))

    def floats(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(the numbers of a column as doubles, whether there is one)."""
        array = self.array(name)
        if self.short and array.type.id in _LISTED:
            found = self._floats.get(name)
            if found is None:
                cells = self._cells(name)
                numbers = np.array([0.0 if cell is None else cell for cell in cells], np.float64)
                found = self._floats[name] = numbers, self.coded(name)[0] >= 0
            return found
        numbers = array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
        return numbers, array.is_valid().to_numpy(zero_copy_only=False)

    def filled(self, name: str) -> NDArray[np.bool_]:
        """Which rows have a value."""
        known = self._coded.get(name)
        if known is not None:
            return known[0] >= 0
        there: NDArray[np.bool_] = self.array(name).is_valid().to_numpy(zero_copy_only=False)
        return there

    def cells(self, name: str, rows: Sequence[int]) -> list[Any]:
        """The values of some rows as they are shown: times as text."""
        if self.short:
            return list(map(self._cells(name).__getitem__, rows))
        return shown(self.array(name).take(pa.array(rows, pa.int64())))

    def or_texts(self, column: Column, rows: Sequence[int], cells: list[Any]) -> list[Any]:
        """The `cells` of some rows; where a typed column has no value, what its text says."""
        if not column.typed or None not in cells:
            return cells
        empty = [place for place, cell in enumerate(cells) if cell is None]
        texts = dict(zip(empty, self.cells(column.typed, [rows[place] for place in empty]), strict=True))
        return [texts.get(place) or None if cell is None else cell for place, cell in enumerate(cells)]

    def _cells(self, name: str) -> list[Any]:
        """A short column as it is shown."""
        cells = self._listed.get(name)
        if cells is None:
            cells = self._listed[name] = shown(self.array(name))
        return cells

    def _read(self, names: Sequence[str]) -> dict[str, pa.Array[Any]]:
        lists = {column.name for column in self.table.columns if nested(column)}
        return self._store.columns(self.table.name, names, lists)


def _rises(array: pa.Array[Any]) -> bool:
    """Whether an array is of integers, each larger than the one before it."""
    if not pa.types.is_integer(array.type) or array.null_count or not len(array):
        return False
    numbers = array.to_numpy()
    return bool((numbers[1:] > numbers[:-1]).all())


def _coded(cells: Sequence[Any], array: pa.Array[Any]) -> tuple[Codes, Values]:
    kind = array.type
    if pa.types.is_floating(kind):  # -0.0 is 0.0, and NaN itself
        cells = [cell if cell is None else cell + 0.0 if cell == cell else _NAN for cell in cells]
    known = dict.fromkeys(cells)
    if len(known) == len(cells) and None not in known:
        # To read the numbers of times from their texts takes longer than all else here.
        integers = array.view(pa.int64()).to_numpy() if pa.types.is_timestamp(kind) else None
        return np.arange(len(cells), dtype=np.int32), Values(list(known), kind, integers)
    known.pop(None, None)
    numbers = dict(zip(known, range(len(known)), strict=True))
    numbers[None] = -1
    return np.fromiter(map(numbers.__getitem__, cells), np.int32, len(cells)), Values(list(known), kind)


_NAN = float("nan")


def nested(column: Column) -> bool:
    """Whether a column's values are lists."""
    return column.type.endswith("[]")


def shown(array: pa.Array[Any]) -> list[Any]:
    """The values of an array; times as `2026-03-01 08:13:20.77`, decimals without the zeros that their type adds."""
    if pa.types.is_decimal(array.type):
        return [None if value is None else shortest(value) for value in array.to_pylist()]
    if not pa.types.is_timestamp(array.type):
        return array.to_pylist()
    texts = pc.call_function("cast", [array], _TEXT)  # a small part of what `cast` takes
    return [text and _instant(text) for text in texts.to_pylist()]


_TEXT = pc.CastOptions.safe(pa.string())


@lru_cache(maxsize=4096)
def _instant(text: str) -> str:
    head, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return f"{head}.{fraction}" if fraction else head


def spread(rows: int | NDArray[np.int64], most: int) -> list[int]:
    """`most` rows evenly spread over a table of so many (or over some rows), those of a smaller `most` being the first
    of a larger one (van der Corput)."""
    count = rows if isinstance(rows, int) else len(rows)
    # No row comes twice before all do, so a power of two that is above either number is enough.
    places = (_reversed(min(count.bit_length(), most.bit_length())) * count).astype(np.int64)
    found = list(dict.fromkeys(places.tolist()))[:most]
    return found if isinstance(rows, int) else [int(row) for row in rows[found]]


@lru_cache(maxsize=24)
def _reversed(bits: int) -> NDArray[np.float64]:
    """The numbers of so many bits, their bits reversed behind the point."""
    return reversed_bits(np.arange(1 << bits)) / (1 << bits)


def reversed_bits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bits of numbers below a power of two reversed: in this order the first of 0 to n lie all over them."""
    bits = int(numbers.max(initial=0)).bit_length()
    found = np.zeros_like(numbers)
    for bit in range(bits):
        found |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    return found
