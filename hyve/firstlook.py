"""Which columns of a very wide table are described: a first look at all of them, which costs little (H14, H18).

Rules:
- Those that the question names come first, then times and numbers of which one lies far out, then all others in which
  anything differs; those of one value in all rows, and empty ones, come last. Alike ones keep the order of the table.
- All rows of all columns are looked at, each for its least and greatest value and its spread only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hyve import rank
from hyve.catalog import Column
from hyve.columns import Columns

_FAR = 8.0
"""So many standard deviations from the mean lies what is looked at first."""
_FIRST, _VARIED, _ALIKE = range(3)


def most_telling(columns: Columns, candidates: Sequence[Column], most: int, words: Collection[str]) -> list[Column]:
    """The `most` columns that tell most, in the order of the table; `words` are those of the question."""
    if len(candidates) <= most or not columns.table.rows:
        return list(candidates)[:most]
    wanted = frozenset(words)
    kinds = {name: _kind(array) for name, array in columns.each([column.name for column in candidates])}
    named = [len(wanted.intersection(rank.name_words(column.name))) for column in candidates]
    ranked = sorted(range(len(candidates)), key=lambda i: (-named[i], kinds[candidates[i].name], i))
    return [candidates[i] for i in sorted(ranked[:most])]


def _kind(array: pa.Array[Any]) -> int:
    if array.null_count == len(array):
        return _ALIKE
    kind = array.type
    edges = pc.min_max(array)
    if edges["min"] == edges["max"]:
        return _VARIED if array.null_count else _ALIKE
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _FIRST if pa.types.is_timestamp(kind) else _VARIED
    numbers = array.cast(pa.float64(), safe=False)
    low, high, mean, spread = (
        float(found.as_py()) for found in (*edges.values(), pc.mean(numbers), pc.stddev(numbers))
    )
    return _FIRST if math.isfinite(spread) and max(high - mean, mean - low) > _FAR * spread else _VARIED
