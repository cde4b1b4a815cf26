"""What a log line says beside its ids and numbers.

Rules:
- What has a digit is a variable (`MASK`). So is a word of hexadecimal letters alone (`id=dead`) where ids stand, which
  the other lines tell: behind the same word (and as many variables after it) most of a sample of lines have
  hexadecimal words, many of them with digits and letters in either order, and no word of letters alone comes again and
  again.
- A template with its `#` replaced by the variables, one by one, is the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hyve.naming import literal

MASK = r"\w*\d\w*(?:[-.:/]\w*\d\w*)*"
"""What makes two log lines differ though they say the same: ids, addresses, numbers."""

HIDDEN = rf"\x1b\[[0-9;]*m|#|{MASK}"
"""What a text is without: ids, numbers and colours are `#`. DuckDB and Arrow read it alike, by RE2, and Python, too."""

_FEW, _SHORT = 64, 256
"""So many texts of so many characters take less time than Arrow does to read the pattern."""
_STEADY = MASK.replace(r"\w*\d\w*", "[A-Za-z_]*+[0-9][0-9A-Za-z_]*+")
_PATTERNS = {
    MASK: re.compile(rf"\b{_STEADY}", re.ASCII),
    HIDDEN: re.compile(HIDDEN.replace(MASK, _STEADY), re.ASCII),
}
"""What MASK finds begins where a word does: Python's `re` would look for it at every letter, and for the first digit of
a word from its end."""
VARIABLE = _PATTERNS[MASK]
"""MASK as Python reads it alike."""
_DIGITS = re.compile(r"\d+", re.ASCII)
_ZEROS = str.maketrans("123456789", "0" * 9)

_LETTERS = r"\b(?:[a-f]{2,}|[A-F]{2,})\b"
"""A word that may be an id. Where there is none, ids are not looked for."""
_MIXED = re.compile(r"\b(?:\d+(?:[a-f]|[A-F])|(?:[a-f]+|[A-F]+)\d)[\da-fA-F]*\b", re.ASCII)
_TOKEN = re.compile(r"\w+", re.ASCII)
_HEX = re.compile(r"[\da-f]+|[\dA-F]+", re.ASCII)
_ORDERS = re.compile(r"\d[a-fA-F]", re.ASCII), re.compile(r"[a-fA-F]\d", re.ASCII)
_SAMPLE, _PART, _FEWEST, _MOST = 250, 40, 8, 16
"""Lines of a sample, up to four times as many where these are less than one in so many; those of them that a place of
ids has at least, and such places."""
_LONGEST, _EACH = 400, 20
"""Characters of each line that are looked at, and words in them that mix digits and letters."""
_BEFORE, _DEEP = 120, 7
"""Characters that are looked at before an id for the last word, and variables that stand between them at most."""
_ORDERED, _OTHER, _SAME = 8, 4, 16
"""Of ids one in so many at least has a letter before a digit, and one a digit before a letter: numbers with a unit have
no such. One in so many at most is not hexadecimal, and of so many one at most says the same in letters alone."""
_MARKS = tuple(map(chr, range(0xE000, 0xE008)))
"""One of these that no text has marks the letters that are ids while they are masked: for MASK it is a digit. Another
stands between variables."""


@dataclass(frozen=True)
class Ids:
    """Where words of letters alone are ids in some texts: patterns of them and what stands before them, in the order in
    which they are looked for, one of a text that has some, the character that marks them, and one that stands between
    variables."""

    places: tuple[str, ...]
    some: str
    mark: str
    between: str

    def masks(self, pattern: str) -> str:
        """The pattern, which finds them too once they are marked."""
        return pattern.replace(r"\d", rf"[\d{self.mark}]")

    def marked(self, column: str) -> str:
        """SQL of texts with the mark."""
        for place in self.places:
            column = f"regexp_replace({column}, {literal(place)}, '{self._put}', 'g')"
        return column

    def mark_texts(self, texts: Any) -> Any:
        """The same of an Arrow array."""
        for place in self.places:
            texts = pc.replace_substring_regex(texts, place, self._put)
        return texts

    @property
    def _put(self) -> str:
        return rf"\1{self.mark}\2"


def ids_of(texts: pa.Array[Any] | pa.ChunkedArray[Any]) -> Ids | None:
    """Where ids stand in texts some of which have letters alone; None where none has."""
    if len(texts) < _FEWEST or not _any(texts, _LETTERS):
        return None
    step = max(1, len(texts) // min(max(_SAMPLE, len(texts) // _PART), 4 * _SAMPLE))
    sample: list[str] = [text for i in range(0, len(texts), step) if (text := texts[i].as_py())]
    sample = [text[:_LONGEST] for text in sample]
    met = Counter(place for text in sample for place in islice(_places(text), _EACH))
    joined = "\n".join(sample)
    found = [place for place, count in met.most_common(_MOST) if count > 1 and _holds_ids(place, joined)]
    if not found:
        return None
    steps: dict[tuple[int, bool], list[str]] = {}
    for depth, upper, before in found:
        steps.setdefault((depth, upper), []).append(before)
    patterns = [
        f"({'|'.join(steps[depth, upper])})({'[A-F]+' if upper else '[a-f]+'})\\b" for depth, upper in sorted(steps)
    ]
    some = "|".join(patterns)
    if not _any(texts, some):
        return None
    unused = list(islice((mark for mark in _MARKS if not pc.any(pc.match_substring(texts, mark)).as_py()), 2))
    if len(unused) < 2:
        return None
    return Ids(tuple(pattern.replace("[0-9]", f"[0-9{unused[0]}]") for pattern in patterns), some, *unused)


def _any(texts: pa.Array[Any] | pa.ChunkedArray[Any], pattern: str) -> bool:
    """Whether a pattern is found in some of the texts."""
    if (few := _few(texts)) is not None:
        search = re.compile(pattern, re.ASCII).search
        return any(search(text) for text in few if text is not None)
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _few(texts: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[str | None] | None:
    """The texts, where they are few and short; else None."""
    listed: list[str | None] | None = texts.to_pylist() if len(texts) <= _FEW else None
    return listed if listed is not None and max(map(len, filter(None, listed)), default=0) <= _SHORT else None


_Place = tuple[int, bool, str]
"""Variables since the last word, whether ids have capitals, and the pattern of that word and all that follows it."""


def _places(text: str) -> Iterator[_Place]:
    """The places of words that mix digits and hexadecimal letters."""
    for match in _MIXED.finditer(text):
        first = max(0, match.start() - _BEFORE)
        before, end, depth, pattern = text[first : match.start()], match.start() - first, 0, ""
        for token in reversed(list(_TOKEN.finditer(before))):
            between = before[token.end() : end]
            pattern, end = re.escape(between) + pattern, token.start()
            if _DIGITS.search(token.group()):
                pattern, depth = rf"\w*[0-9]\w*{pattern}", depth + 1
                continue
            pattern = token.group() + pattern
            if not _HEX.fullmatch(token.group()):
                pattern = rf"\b{pattern}"
                break
        else:
            if first:
                continue
            pattern = "^" + re.escape(before[:end]) + pattern
        pattern = pattern.replace("\\\t", r"\t")
        if depth <= _DEEP and pattern.isprintable():
            yield depth, match.group().isupper(), pattern


def _holds_ids(place: _Place, lines: str) -> bool:
    """Whether what stands at a place are ids, by a sample of lines."""
    _, upper, before = place
    linear = before.replace(r"\w*[0-9]\w*", r"[^\W0-9]*+[0-9]\w*+")
    values = re.findall(rf"{linear}(\w+)", lines, re.ASCII | re.MULTILINE)
    ids = [value for value in values if _HEX.fullmatch(value) and (value.upper() if upper else value.lower()) == value]
    letters = Counter(value for value in ids if value.isalpha())
    return (
        len(values) >= _FEWEST
        and (len(values) - len(ids)) * _OTHER <= len(values)
        and all(sum(map(bool, map(order.search, ids))) * _ORDERED >= len(values) for order in _ORDERS)
        and max(letters.values(), default=0) <= max(3, len(values) // _SAME)
    )


def template_of(column: str, ids: Ids | None = None) -> str:
    """SQL of what a text says."""
    if ids is None:
        return f"regexp_replace({column}, '{HIDDEN}', '#', 'g')"
    return f"regexp_replace({ids.marked(column)}, '{ids.masks(HIDDEN)}', '#', 'g')"


def variables_of(column: str, ids: Ids | None = None) -> str:
    """SQL of what its template hides of a text."""
    plain = f"regexp_extract_all({column}, '{HIDDEN}')"
    if ids is None:
        return plain
    # A column that is computed may have no lambda.
    found = f"array_to_string(regexp_extract_all({ids.marked(column)}, '{ids.masks(HIDDEN)}'), '{ids.between}')"
    found = f"string_split(replace({found}, '{ids.mark}', ''), '{ids.between}')"
    return f"CASE WHEN regexp_matches({column}, {literal(ids.some)}) THEN {found} ELSE {plain} END"


def masked(text: str) -> str:
    """A text with `#` for what MASK finds in it."""
    return VARIABLE.sub("#", text)


def masked_texts(texts: pa.Array[Any], pattern: str, ids: Ids | None = None) -> pa.Array[Any]:
    """Texts with `#` for what MASK or HIDDEN finds in them, and for `ids`."""
    if ids is not None:
        texts, pattern = ids.mark_texts(texts), ids.masks(pattern)
    elif (few := _few(texts)) is not None:
        mask = _PATTERNS[pattern]
        return pa.array([text and mask.sub("#", text) for text in few], pa.string())
    found: pa.Array[Any] = pc.replace_substring_regex(texts, pattern, "#")
    return found


def kinds_of(texts: Sequence[str]) -> list[int]:
    """The number of each text's kind: texts of a kind differ in nothing that MASK finds."""
    zeros = _zeros(texts)  # other digits make no other kind
    distinct = dict.fromkeys(zeros)
    array = pa.array(distinct, pa.string())
    masked = masked_texts(array, MASK, ids_of(array)).to_pylist()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(masked))}
    kinds = {text: numbers[kind] for text, kind in zip(distinct, masked, strict=True)}
    return [kinds[text] for text in zeros]


def _zeros(texts: Sequence[str]) -> list[str]:
    """Texts with 0 for each digit: all at once, where none has what is put between them."""
    zeros = "\0".join(texts).translate(_ZEROS).split("\0")
    return zeros if len(zeros) == len(texts) else [text.translate(_ZEROS) for text in texts]


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
