"""What DuckDB says of Arrow arrays, said without it: the names of their types, and the text of lists.

A small request's views need nothing else of DuckDB, and to load it takes longer than they do.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa

_NAMES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("ns"): "TIMESTAMP_NS",
}
"""The types that values are held in, beside decimals and lists; 32 bits hold row numbers, which are loaded as 64."""

_BARE = re.compile(r"(?!null\Z|[ \t-\r])[^,:=(){}\[\]\"'\\]+(?<![ \t-\r])", re.IGNORECASE)


def type_name(kind: pa.DataType) -> str:
    """The DuckDB type of an Arrow type that the store holds."""
    if pa.types.is_list(kind):
        return f"{type_name(kind.value_type)}[]"
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _NAMES[kind]


def list_texts(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """What DuckDB casts lists of texts, numbers or truth values to: `[a, 'b c,', NULL]`."""
    return pa.array([None if items is None else f"[{', '.join(map(_item, items))}]" for items in array.to_pylist()])


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if type(value) is str:
        return value if _BARE.fullmatch(value) else "'" + re.sub(r"['\\]", r"\\\g<0>", value) + "'"
    if type(value) is bool:
        return "true" if value else "false"
    return "-nan" if value != value and math.copysign(1, value) < 0 else str(value)


__all__ = ["list_texts", "type_name"]
