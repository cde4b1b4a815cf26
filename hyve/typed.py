"""Text columns -> typed columns beside them: the numbers and the times that all of a column spells (H9).

Rules: a column is typed as a whole or not at all; words for "none" are null. What is typed is derived: the text stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_NOTHING = pa.array(["", "-", "--", "N/A", "n/a", "None", "none", "<none>", "null", "<nil>"], pa.string())
_TIME = re.compile(
    r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})"
)
_FEW = 1_000
"""Texts that are looked at one by one: so few take less time than a call of Arrow."""
_SAMPLE = 50
"""Texts that tell whether a column may spell numbers or times at all."""
_ACCESS_LOG = r"^(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def spelled(texts: pa.Array[Any]) -> tuple[pa.Array[Any] | None, pa.Array[Any] | None]:
    """The numbers and the times that a column of texts spells, be they held as codes: None where it spells none."""
    told = texts.drop_null() if texts.null_count else texts
    sample = [text for text in told.slice(0, 64).to_pylist() if text][:_SAMPLE]
    if len(sample) < _SAMPLE < len(told):
        sample = [text for text in told.slice(0, 2000).to_pylist() if text][:_SAMPLE]
    array: Any = texts.cast(pa.string()) if pa.types.is_dictionary(texts.type) else texts
    return _numbers(array, sample), _times(array, sample)


def _numbers(array: pa.Array[Any], sample: Sequence[str]) -> pa.Array[Any] | None:
    """The numbers that a text column spells; None where it holds anything else than numbers and words for "none".

    NaN and infinities, which would spoil every sum, are null: the text says them.
    """
    told = [text for text in sample if text not in _NOTHING_TEXTS]
    finite = [text for text in told if text.lstrip("+-").lower() not in _NOT_FINITE]
    if not finite or not all(map(_NUMBER.fullmatch, finite)):
        return None
    filled = _filled(array)
    for kind in (pa.int64(), pa.float64()):
        try:
            read: pa.Array[Any] = filled.cast(kind)
        except pa.ArrowInvalid:
            continue
        if kind == pa.int64():
            return read
        if any(len(text.strip("+-0")) > 15 and text.isdecimal() for text in finite):
            return None  # digits that a double rounds are an id, not a quantity
        finites: pa.Array[Any] = pc.if_else(pc.is_finite(read), read, pa.scalar(None, pa.float64()))
        return finites
    return None


def _times(array: pa.Array[Any], sample: Sequence[str]) -> pa.Array[Any] | None:
    """The instants (UTC, nanoseconds) that a text column spells as ISO 8601, or as access logs and Go's log package do;
    None where it holds anything else.

    Times beyond the range of 64-bit nanoseconds, such as the year 1 for "not set", are null.
    """
    told = [text for text in sample if text not in _NOTHING_TEXTS]
    if not told or not all(map(_TIME.fullmatch, told)):
        return None
    if len(array) <= _FEW and all(map(_in_range, array.to_pylist())) and "," not in told[0] and " " not in told[0][11:]:
        return _instants(array)
    filled = _filled(array)
    if told[0][2] == "/":
        filled = pc.replace_substring_regex(filled, _ACCESS_LOG, r"\3-\2-\1T\4\5")
        for number, month in enumerate(_MONTHS, 1):
            filled = pc.replace_substring(filled, f"-{month}-", f"-{number:02d}-")
    elif told[0][4] == "/":
        filled = pc.replace_substring(filled, "/", "-", max_replacements=2)
    if "," in told[0]:
        filled = pc.replace_substring(filled, ",", ".")
    if " " in told[0][11:]:
        filled = pc.replace_substring_regex(filled, r" (Z|[+-]\d\d:?\d\d)$", r"\1")
    if not pc.all(pc.match_substring_regex(filled, r"^\d{4}-"), min_count=0).as_py():
        return None
    known = pc.and_(pc.greater(filled, pa.scalar("1678")), pc.less(filled, pa.scalar("2262")))
    filled = pc.if_else(known, filled, _NULL)
    return _instants(filled)


def _in_range(text: str | None) -> bool:
    """Whether a text begins like an ISO 8601 time that 64-bit nanoseconds reach."""
    return text is None or (text[4:5] == "-" and "1678" < text < "2262" and text[:4].isdigit() and text[:4].isascii())


def _instants(array: pa.Array[Any]) -> pa.Array[Any] | None:
    for zone in ("UTC", None):
        try:
            read: pa.Array[Any] = array.cast(pa.timestamp("ns", zone)).cast(pa.timestamp("ns"))
        except pa.ArrowInvalid:
            continue
        return read
    return None


_NULL = pa.scalar(None, pa.string())
_NOTHING_TEXTS = frozenset(_NOTHING.to_pylist())


def _filled(array: pa.Array[Any]) -> pa.Array[Any]:
    filled: pa.Array[Any] = pc.if_else(pc.is_in(array, _NOTHING), _NULL, array)
    return filled
