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
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hyve.typed import NUMBER

_FEW = 20
"""Of more different numbers, zeros behind decimals tell nothing: measures come from several programs."""
_UNUSUAL = 20
_CALLED = re.compile(
    r"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:account|acct|build|code|commit|hash|id|imei|phone|postcode|release|rev|"
    r"revision|serial|sha|sku|tag|ver|version|zip|zipcode)(?:_?(?i:no|num|number))?$"
)
_PADDED = r"^(?:[+-]?0\d+|\+\d+)$"
_UNWRITTEN = r"^[+-]?\d+[eE]\d+$"
"""`1e21`: programs write `1e+21`, or `1.0E21`."""
_FRACTION = re.compile(r"[+-]?\d*\.(\d*)")
_WHOLE = re.compile(r"\.0*$")


def nominal(kind: str, texts: Any, numbers: Any, path: Sequence[Any]) -> bool:
    """Whether a column of texts at a path, of which nearly all spell `numbers` of a kind, holds names."""
    if kind != NUMBER:
        return False
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(pa.string())
    whole = pa.types.is_integer(numbers.type)
    if not whole and path and isinstance(path[-1], str) and _CALLED.search(path[-1]):
        return True
    led = pc.or_(pc.starts_with(texts, "0"), pc.or_(pc.starts_with(texts, "+"), pc.starts_with(texts, "-0")))
    if whole and not pc.any(led).as_py():
        return False
    distinct = pc.unique(texts.filter(led) if whole else texts)
    odd = distinct.filter(pc.match_substring_regex(distinct, _PADDED))
    if len(odd):
        return not _signed(texts, odd)
    unwritten = pc.sum(pc.match_substring_regex(distinct, _UNWRITTEN)).as_py() or 0
    if unwritten * _UNUSUAL > len(distinct):
        return True
    return not whole and len(pc.unique(numbers)) <= _FEW and _decimals_differ(distinct.to_pylist())


def _signed(texts: Any, odd: Any) -> bool:
    """Whether a sign is all that is odd, and stands before what is below zero, too: all have their signs."""
    plus = pc.all(pc.match_substring_regex(odd, r"^\+(?:0|[1-9]\d*)$")).as_py()
    return bool(plus and pc.any(pc.starts_with(texts, "-")).as_py())


def _decimals_differ(texts: list[str | None]) -> bool:
    """Whether a zero ends some fractions though not all have as many digits: `4.9`, `4.10`."""
    places = [found[1] for text in texts if text and (found := _FRACTION.fullmatch(text)) and not _WHOLE.search(text)]
    return len(set(map(len, places))) > 1 and any(digits.endswith("0") for digits in places)
