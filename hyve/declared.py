"""How a large Arrow table is declared to DuckDB where that takes less memory than a plain copy until it is compressed.

Rules:
- A column without a value, one whose rows all say the same, and one that another column says as well are computed, not
  stored. What is computed depends on a stored column unless it is NULL: a row that an outer join adds has NULLs.
- Texts that come as codes are loaded as an ENUM of as many bytes, and become text column by column: as text each takes
  16 bytes a row. What a statement sees is VARCHAR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hyve.ducktypes import type_name
from hyve.naming import quote

_ROWS = 1 << 13
"""Rows of a table for which it is worth the time."""

_SPARED = 8
"""How many rows there are at least for each text of an ENUM."""

_LONGEST, _MOST = 1_000, 1 << 20
"""Characters of a text that is written into a table's definition, and of all of them."""


@dataclass(frozen=True)
class Declared:
    """The definitions of a table's columns, the names of those that are loaded, and of those that are to be text."""

    definitions: str
    loaded: list[str]
    texts: list[str]


def declared(table: pa.Table) -> Declared | None:
    """How a table is declared that has a column `_row_id` without NULLs; None for a small one."""
    if table.num_rows < _ROWS:
        return None
    definitions, loaded, texts = [], [], []
    known: dict[Any, str] = {}
    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        kind = type_name(column.type)
        if column.null_count == len(column):
            definitions.append(f"{quote(name)} {kind} AS (CAST(NULL AS {kind}))")
            continue
        place = _place(column)
        if place in known:
            definitions.append(f"{quote(name)} {kind} AS ({quote(known[place])})")
            continue
        if place is not None:
            known[place] = name
        told = _texts(column)
        if told is not None and len(told) == 1 and not column.null_count:
            definitions.append(f"{quote(name)} {kind} AS (CASE WHEN _row_id IS NOT NULL THEN {_literal(told[0])} END)")
            continue
        loaded.append(name)
        if told is not None:
            texts.append(name)
            kind = f"ENUM ({', '.join(map(_literal, told))})"
        definitions.append(f"{quote(name)} {kind}")
    return Declared(", ".join(definitions), loaded, texts)


def _place(column: pa.ChunkedArray[Any]) -> Any:
    """What only columns of the same values have in common: where they are kept. None where that isn't told easily."""
    if column.num_chunks != 1 or not pa.types.is_primitive(column.type):
        return None
    chunk: Any = column.chunk(0)
    return (chunk.type, chunk.offset, *(buffer and buffer.address for buffer in chunk.buffers()))


def _texts(column: pa.ChunkedArray[Any]) -> list[str] | None:
    """The different texts of a column that comes as codes; None of another one, or if they are too many."""
    if not pa.types.is_dictionary(column.type):
        return None
    texts: dict[str, None] = {}
    chunks: list[Any] = column.chunks
    for chunk in chunks:
        texts.update(dict.fromkeys(chunk.dictionary.to_pylist()))
    if len(texts) * _SPARED > len(column) or max(map(len, texts)) > _LONGEST or sum(map(len, texts)) > _MOST:
        return None
    return list(texts)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
