"""Python values -> Arrow arrays that hold them exactly, and texts where none does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.strictjson import Pairs


def dump(value: Any) -> str:
    """Compact ASCII JSON of `value`. Objects with repeated keys keep them all; keys that are no text are written as
    they are, which is then no JSON but still reads back as a literal."""
    if isinstance(value, Pairs | dict):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{dump(key)}:{dump(item)}" for key, item in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value)


def array_of(values: list[Any], kinds: set[type]) -> pa.Array[Any] | None:
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


def list_array(values: list[list[Any]], kind: type) -> pa.Array[Any] | None:
    """Lists of values of one type (None aside) as arrow, or None where arrow can't hold them exactly."""
    types: dict[type, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    try:
        return pa.array(values, pa.list_(types[kind]))
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return None


def in_rows(array: pa.Array[Any], rows: Sequence[int], count: int) -> pa.Array[Any]:
    """An array of so many values: those of `array` in some rows, null in the others."""
    if count <= _SHORT:  # the code of an Arrow kernel is cold: to call it takes longer than to read so many
        cells: list[Any] = [None] * count
        for row, value in zip(rows, array.to_pylist(), strict=True):
            cells[row] = value
        made: pa.Array[Any] = pa.array(cells, array.type)
        return made
    places = np.full(count, -1, np.int64)
    places[np.asarray(rows, np.int64)] = np.arange(len(rows))
    taken: pa.Array[Any] = array.take(pa.array(places, pa.int64(), mask=places < 0))
    return taken


_OPENERS = frozenset('{["')
_HOLDS = (
    r"^[\s\v\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
    r"""[{\["]"""
)
"""Behind what `str.strip` takes for blanks, as who reads the texts does."""
_SHORT = 1_000


def may_hold(texts: Sequence[str | None], array: pa.Array[Any]) -> bool:
    """Whether one of some texts begins as JSON or a literal would; of few, their first characters tell it soonest."""
    if len(texts) <= _SHORT:
        first = {text[0] for text in texts if text}
        if first.isdisjoint(_OPENERS) and not any(map(str.isspace, first)):
            return False
    return bool(pc.any(pc.match_substring_regex(array, _HOLDS)).as_py())


def row_numbers(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Room for `count` numbers of rows (no memory holds 2^31 of them): Arrow gives back what the heap would keep."""
    return np.frombuffer(memoryview(pa.allocate_buffer(4 * count + 4)), np.int32)[:count]
