"""Whether orjson kept all that a JSON text says: every number to its last digit, every value of repeated keys.

Rules: the answer is no where something was lost, may have been lost, or is nested deeper than MAX_DEPTH; it costs less
than to read the text with Python's own decoder.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

MAX_DEPTH = 200
"""Containers nested deeper than this stay text."""


def _dump_levels() -> int:
    """How many containers inside of each other orjson writes before it refuses."""
    levels = 0
    value: list[Any] = []
    while levels < 10 * MAX_DEPTH:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            break
        levels, value = levels + 1, [value]
    return levels


_SPARE_LEVELS = _dump_levels() - MAX_DEPTH

# Where a number may not be kept, told from a copy in which all digits and points look the same: every double gives back
# 15 digits, a 64-bit integer 18, and only exponents of three digits leave the doubles' range.
_FACELESS = bytes.maketrans(b"123456789.E", b"0000000000e")
_LONG, _TINY = b"0" * 16, b"0e-000"
_LONG_NUMBER = re.compile(_LONG + rb"0*+(?:e[+-]?0++)?")
_TINY_END = re.compile(_TINY + rb"0*+(?=[\s,\]}]|\Z)")
_LONG_NEGATIVE = b"-" + b"0" * 19


def kept(data: bytes, value: Any, above: int) -> bool:
    """Whether `value`, which orjson read from `data`, is what the reference reads there, without any flag.

    False where it is not, may not be, or is nested too deep, the containers `above` it counted.

    Repeated keys: a string takes two quotes in `data`, and one more for each quote in it unless that is spelled by its
    number. orjson writes strings just so, and the counts are the same only where no string was dropped.
    """
    copy = written(value, above)
    if copy is None:
        return False
    around = _SPARE_LEVELS + above
    if len(copy) == len(data) + 2 * around and copy.startswith(data, around):
        return True  # it was written just as orjson writes what it read
    if copy.count(b'"') != data.count(b'"') or (b"\\" in data and b"\\u0022" in data):
        return False
    del copy
    faceless = data.translate(_FACELESS)
    if _TINY in faceless and _TINY_END.search(faceless):
        return False
    if _LONG not in faceless:
        return True
    spans = [match.span() for match in _LONG_NUMBER.finditer(faceless)]
    listed = b"[" + b",".join([data[start:end] for start, end in spans]) + b"]"
    try:
        if orjson.dumps(orjson.loads(listed)) == listed and _LONG_NEGATIVE not in faceless:
            return True  # all are spelled as orjson spells what it read
    except orjson.JSONDecodeError:
        pass  # some are no numbers, but stand in strings
    return all(_number_kept(data, start, end) for start, end in spans)


def written(value: Any, above: int) -> bytes | None:
    """`value` as orjson writes it inside of lists, so many that it refuses what `above` more containers bury too deep.

    None where it refuses, be it for the depth or for what it can't write at all.
    """
    for _ in range(_SPARE_LEVELS + above):
        value = [value]
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None


def _number_kept(data: bytes, start: int, end: int) -> bool:
    """Whether what stands from `start` to `end` is no number, or one that 64 bits or a double give back."""
    negative = data[start - 1 : start] == b"-"
    before = start - 1 - negative
    if before >= 0 and data[before] not in b" \t\r\n,:[":
        return True  # within a string
    literal = data[start:end]
    if literal.isdigit():
        return len(literal) <= 20 and int(literal) <= (1 << 63 if negative else (1 << 64) - 1)
    try:
        return comes_back(literal.decode(), float(literal))
    except ValueError:
        return True  # within a string


def _significant(literal: str) -> str:
    """The significant digits of a float literal: none for zero."""
    mantissa = literal.lower().partition("e")[0]
    return mantissa.replace(".", "").lstrip("-0").rstrip("0")


def comes_back(literal: str, value: float) -> bool:
    """Whether `value`, written with as many significant digits as `literal` has, has the same digits."""
    digits = _significant(literal)
    if len(digits) > 767:  # no double has more
        return False
    return not digits or _significant(f"{value:.{len(digits) - 1}e}") == digits
