"""What a log line says beside its ids and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MASK = r"\w*\d\w*(?:[-.:/]\w*\d\w*)*"
"""What makes two log lines differ though they say the same: ids, addresses, numbers."""

HIDDEN = rf"\x1b\[[0-9;]*m|{MASK}"
"""What a text is without: ids, numbers and colours are `#`. DuckDB and Arrow read it alike, by RE2, and Python, too."""

_FEW, _SHORT = 64, 256
"""So many texts of so many characters take less time than Arrow does to read the pattern."""
_PATTERNS = {pattern: re.compile(pattern, re.ASCII) for pattern in (MASK, HIDDEN)}
VARIABLE = _PATTERNS[MASK]
"""MASK as Python reads it alike."""
_DIGITS = re.compile(r"\d+", re.ASCII)
_ZEROS = str.maketrans("123456789", "0" * 9)


def template_of(column: str) -> str:
    """SQL of what a text says."""
    return f"regexp_replace({column}, '{HIDDEN}', '#', 'g')"


def masked(text: str) -> str:
    """A text with `#` for what MASK finds in it."""
    return _PATTERNS[MASK].sub("#", text)


def masked_texts(texts: pa.Array[Any], pattern: str) -> pa.Array[Any]:
    """Texts with `#` for what MASK or HIDDEN finds in them."""
    if len(texts) <= _FEW and max(map(len, filter(None, listed := texts.to_pylist())), default=0) <= _SHORT:
        mask = _PATTERNS[pattern]
        return pa.array([text and mask.sub("#", text) for text in listed], pa.string())
    found: pa.Array[Any] = pc.replace_substring_regex(texts, pattern, "#")
    return found


def kinds_of(texts: Sequence[str]) -> list[int]:
    """The number of each text's kind: texts of a kind differ in nothing that MASK finds."""
    zeros = [text.translate(_ZEROS) for text in texts]  # other digits make no other kind
    distinct = dict.fromkeys(zeros)
    masked = masked_texts(pa.array(distinct, pa.string()), MASK).to_pylist()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(masked))}
    kinds = {text: numbers[kind] for text, kind in zip(distinct, masked, strict=True)}
    return [kinds[text] for text in zeros]


def alike(texts: Sequence[str]) -> bool:
    """Whether texts differ in nothing but their digits."""
    seen: set[str] = set()
    first = _DIGITS.sub("#", texts[0]) if texts else ""
    for text in texts:
        zeros = text.translate(_ZEROS)
        if zeros not in seen:  # as many digits in the same places are looked at once
            if _DIGITS.sub("#", zeros) != first:
                return False
            seen.add(zeros)
    return True
