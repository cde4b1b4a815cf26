"""Texts that look like numbers and are names: `4.10` after `4.9`, account `0012`, build `1e3`, hash `23e221` (H9, H14).

Rules:
- As numbers different names become one, or lose digits: views show such a column by its texts. Its numbers stay beside
  it in the store.
- Names have zeros or a plus sign before whole numbers, or (one of twenty) exponents that no program writes behind
  numbers. Where few different ones are written with several numbers of decimals, a zero behind them tells names, too;
  `2` beside `2.0` does not. Fractions are names where the column is called like names.
- Whole numbers that are written as numbers are, are shown as numbers, whatever they are called: nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hyve.typed import NUMBER

_FEW = 20
"""Of more different numbers, zeros behind decimals tell nothing: measures come from several programs."""
_UNUSUAL = 20
_SLICE = 1 << 16
_CALLED = re.compile(
    r"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:account|acct|build|code|commit|hash|id|imei|phone|postcode|release|rev|"
    r"revision|serial|sha|sku|tag|ver|version|zip|zipcode)(?:_?(?i:no|num|number))?$"
)
_PADDED = r"^(?:[+-]?0\d+|\+\d+)$"
_UNWRITTEN = r"^[+-]?\d+[eE]\d+$"
"""`1e21`: programs write `1e+21`, or `1.0E21`."""
_PLUS = re.compile(r"\+(?:0|[1-9]\d*)", re.ASCII)
_FRACTION = re.compile(r"[+-]?\d*\.(\d*)")
_WHOLE = re.compile(r"\.0*$")


def nominal(kind: str, texts: Any, numbers: Any, path: Sequence[Any]) -> bool:
    """Whether a column of texts at a path, of which nearly all spell `numbers` of a kind, holds names."""
    if kind != NUMBER:
        return False
    whole = pa.types.is_integer(numbers.type)
    if not whole and path and isinstance(path[-1], str) and _CALLED.search(path[-1]):
        return True
    some = list(map(_led, _slices(texts)) if whole else _slices(texts))
    if odd := _matching(some, _PADDED):
        return not _signed(texts, odd)
    if (unwritten := _matching(some, _UNWRITTEN)) and len(unwritten) * _UNUSUAL > len(
        pc.unique(pa.chunked_array(some))
    ):
        return True
    if whole or len(pc.unique(numbers[:_SLICE])) > _FEW or len(pc.unique(numbers)) > _FEW:
        return False
    return _decimals_differ(pc.unique(pa.chunked_array(some)).to_pylist())


def _slices(texts: Any) -> Iterator[Any]:
    """A column in slices, of codes the texts that they are of: all that is made of one is small beside the column."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        if pa.types.is_dictionary(chunk.type):
            yield pc.unique(chunk).cast(pa.string())
        else:
            yield from (chunk[start : start + _SLICE] for start in range(0, len(chunk), _SLICE))


def _led(texts: Any) -> Any:
    """Those that may have zeros or a plus sign before them."""
    plus = pc.or_(pc.starts_with(texts, "+"), pc.starts_with(texts, "-0"))
    return texts.filter(pc.or_(pc.starts_with(texts, "0"), plus))


def _matching(some: list[Any], form: str) -> set[str]:
    """The texts that match a pattern."""
    return {text for texts in some for text in texts.filter(pc.match_substring_regex(texts, form)).to_pylist()}


def _signed(texts: Any, odd: set[str]) -> bool:
    """Whether a sign is all that is odd, and stands before what is below zero, too: all have their signs."""
    plus = all(map(_PLUS.fullmatch, odd))
    return plus and any(pc.any(pc.starts_with(some, "-")).as_py() for some in _slices(texts))


def _decimals_differ(texts: list[str | None]) -> bool:
    """Whether a zero ends some fractions though not all have as many digits: `4.9`, `4.10`."""
    places = [found[1] for text in texts if text and (found := _FRACTION.fullmatch(text)) and not _WHOLE.search(text)]
    return len(set(map(len, places))) > 1 and any(digits.endswith("0") for digits in places)
