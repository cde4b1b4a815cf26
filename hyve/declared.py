"""How a large Arrow table is declared to DuckDB where that takes less memory than a plain copy until it is compressed.

Rules:
- A column without a value, one whose rows all say the same, and one that another column says as well are computed, not
  stored. What is computed depends on a stored column unless it is NULL: a row that an outer join adds has NULLs.
- What lines of a short text say (their template and its variables) is computed as well: to store it would take several
  times the text, and to compute it for a statement takes some ten milliseconds for a megabyte.
- Texts that come as codes are loaded as an ENUM of as many bytes, and become text column by column: as text each takes
  16 bytes a row. What a statement sees is VARCHAR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from hyve.ducktypes import type_name
from hyve.naming import literal, quote

_ROWS = 1 << 13
"""Rows of a table for which it is worth the time."""

_SPARED = 8
"""How many rows there are at least for each text of an ENUM."""

_LONGEST, _MOST = 1_000, 1 << 20
"""Characters of a text that is written into a table's definition, and of all of them."""


_COMPUTED = 2 << 20
"""Bytes of texts of which templates and variables are computed for each statement that reads them."""

LINE = ("_id", "_row_id", "line", "text")
"""The first columns of a table of text; what its text says follows them."""

SAID = {"template": "VARCHAR", "variables": "VARCHAR[]"}
"""What a line's text says beside it, and its type."""


@dataclass(frozen=True)
class Declared:
    """The definitions of a table's columns, the names of those that are loaded, and of those that are to be text."""

    definitions: str
    loaded: list[str]
    texts: list[str]


def declared(table: pa.Table, room: int) -> Declared | None:
    """How a table is declared that has a column `_row_id` without NULLs; None for a small one. Codes are loaded as such
    if as texts they would take more than `room` bytes."""
    if table.num_rows < _ROWS:
        return None
    names, columns = table.column_names, list(table.itercolumns())
    places, told = list(map(_place, columns)), list(map(_texts, columns))
    counts = Counter(places)
    as_codes = {  # but what others are made of keeps its type
        name
        for name, place, texts in zip(names, places, told, strict=True)
        if texts is not None and len(texts) > 1 and (place is None or counts[place] == 1)
    }
    if 16 * table.num_rows * len(as_codes) <= room:
        as_codes = set()
    definitions, loaded = [], []
    known: dict[Any, str] = {}
    for name, column, place, texts in zip(names, columns, places, told, strict=True):
        kind = type_name(column.type)
        if column.null_count == len(column):
            kind += f" AS (CAST(NULL AS {kind}))"
        elif texts is not None and len(texts) == 1 and not column.null_count:
            kind += f" AS (CASE WHEN _row_id IS NOT NULL THEN {literal(texts[0])} END)"
        elif place is not None and place in known:
            kind += f" AS ({quote(known[place])})"
        else:
            loaded.append(name)
            known[place] = name
            if texts is not None and name in as_codes:
                kind = f"ENUM ({', '.join(map(literal, texts))})"
        definitions.append(f"{quote(name)} {kind}")
    return Declared(", ".join(definitions), loaded, [name for name in loaded if name in as_codes])


def declared_lines(table: pa.Table, said: Mapping[str, str]) -> Declared | None:
    """The same of a table of lines, whose `text` tells more: `said` is the SQL of each. None where that is stored."""
    if table.column("text").nbytes > _COMPUTED or not SAID.keys().isdisjoint(table.column_names):
        return None
    loaded = sorted(table.column_names, key=lambda name: name not in LINE)
    definitions = [f"{quote(name)} {type_name(table.schema.field(name).type)}" for name in loaded]
    place = sum(name in LINE for name in loaded)
    definitions[place:place] = [f"{name} {kind} AS ({said[name]})" for name, kind in SAID.items()]
    return Declared(", ".join(definitions), loaded, [])


def _place(column: pa.ChunkedArray[Any]) -> Any:
    """What only columns of the same values have in common: where they are kept. None where that isn't told easily."""
    if column.num_chunks != 1:
        return None
    chunk: Any = column.chunk(0)
    arrays = (chunk, chunk.dictionary) if pa.types.is_dictionary(chunk.type) else (chunk,)
    buffers = chain.from_iterable(array.buffers() for array in arrays)
    addresses = (buffer.address if buffer is not None else 0 for buffer in buffers)
    return (chunk.type, *(array.offset for array in arrays), *addresses)


def _texts(column: pa.ChunkedArray[Any]) -> list[str] | None:
    """The different texts of a column that comes as codes; None of another one, or if they are too many."""
    if not pa.types.is_dictionary(column.type):
        return None
    texts: dict[str, None] = {}
    chunks: list[Any] = column.chunks
    for chunk in chunks:
        texts.update(dict.fromkeys(chunk.dictionary.to_pylist()))
    if len(texts) * _SPARED > len(column) or max(map(len, texts), default=0) > _LONGEST or sum(map(len, texts)) > _MOST:
        return None
    return list(texts)
