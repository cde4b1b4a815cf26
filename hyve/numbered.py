"""Which columns of whole numbers say who or what a table's rows are about: partitions, nodes, ports (H14, H18)."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.columns import Codes

SMALL = 64
"""A dimension of up to this many values has all of them named."""
_TYPES = frozenset({"int", "long", "no", "num", "number", "value"})
_NUMBERED = rank.name_words(
    """
    broker cluster customer gpu host instance machine node nodeid partition pod port rack replica server shard slot
    tenant worker zip zipcode
    """
)
"""What whole numbers are called that tell who or what rows are about."""
_MEASURED_TOO = rank.name_words("channel core cpu device disk lane queue sensor slice thread tid vcpu zone")
"""The same of those that are called as their measures are: these come evenly."""
_NO_ENTITIES = rank.name_words(
    """
    attempt attempts batch bucket buckets bytes code count counts day days errno hour hours index level line lineno
    minute minutes month months ms offset priority second seconds seq sequence severity signal size status step
    retries retry total v value version week weekday year years
    """
)
"""What whole numbers are called that come evenly, or in turn, and are none."""
_NOBODY = rank.name_words("event message msg request row seq status error")
_ROWS_EACH, _EVEN, _IN_TURN = 8, 1.1, 3
"""Entities have so many rows each at the mean; where only their counts say so, none has so many times as many as
another; so many at least take turns."""


def is_numbered(name: str, codes: Codes, counts: NDArray[np.int64]) -> bool:
    """Whether whole numbers are who or what the rows are about (partitions, nodes), as a column's name says, or that
    they come again and again in one order."""
    size, rows = len(counts), int(counts.sum())
    if not 2 <= size <= SMALL or size * _ROWS_EACH > rows:
        return False
    if names_numbered(name):
        return True
    if int(counts.max()) > _EVEN * int(counts.min()) or not _NO_ENTITIES.isdisjoint(rank.name_words(name)):
        return False
    if last_word(name) in _MEASURED_TOO:
        return True
    turns = (codes[size:] == codes[:-size]) & (codes[size:] != codes[size - 1 : -1])
    return size >= _IN_TURN and bool(np.count_nonzero(turns) >= 0.98 * len(turns))


@lru_cache(maxsize=4096)
def names_numbered(name: str) -> bool:
    """Whether a column is called like whole numbers of those that rows are about."""
    last = last_word(name)
    return last in _NUMBERED or (last == "id" and last_word(re.sub("(?i)_?id$", "", name)) not in _NOBODY)


@lru_cache(maxsize=4096)
def last_word(name: str) -> str:
    """What a column's name says that its values are: `code` of `http.status_code`; a type behind it is none."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    while len(words) > 1 and words[-1] in _TYPES:
        words.pop()
    return words[-1] if words else ""
