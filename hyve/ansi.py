"""Colour codes of terminals: a text without them, and what was found there as parts of the text with them (H5).

Rules:
- Codes around the tokens of a document are no part of it; those inside of its strings are data.
- A part with codes in its span is flagged `ansi`. Its span is the one in the text as it came, and it is read again from
  there: no value is held for the codes' sake.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache

from hyve import strictjson
from hyve.again import LENIENT, Way
from hyve.flawed import Unread
from hyve.lenient import read_lenient
from hyve.parts import Part
from hyve.recovery import ANSI

_TOGETHER = 1 << 12
"""Pieces between codes that are joined at once: each takes some 60 bytes beside its text."""


class Codes:
    """The codes of `text`. `plain` is what remains without them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places = strictjson.offsets(text)  # in the plain text
        self._removed = array(self._places.typecode, [0])  # characters before each code, and behind the last
        joined: list[str] = []
        pieces: list[str] = []
        at = removed = 0
        for match in ANSI.finditer(text):
            start, end = match.span()
            self._places.append(start - removed)
            removed += end - start
            self._removed.append(removed)
            pieces.append(text[at:start])
            at = end
            if len(pieces) == _TOGETHER:
                joined.append("".join(pieces))
                pieces.clear()
        self.plain = "".join((*joined, *pieces, text[at:])) if at else text

    def moved(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Parts of the plain text as parts of the one with the codes."""
        return map(self._moved, parts)

    def _moved(self, part: Part) -> Part:
        places, removed = self._places, self._removed
        start, end = part.span
        first, last = bisect_left(places, start), bisect_right(places, end)
        if first == last:
            by = removed[first]
            unread = tuple(Unread(a + by, b + by, why) for a, b, why in part.unread)
            return part.but(span=(start + by, end + by), unread=unread)
        inner = self.text[start + removed[bisect_right(places, start)] : end + removed[bisect_left(places, end)]]
        span = start + removed[first], end + removed[last]
        if part.unread:
            unread = tuple(Unread(self._before(a), self._before(b), why) for a, b, why in part.unread)
            return part.but(span=span, flags=(*part.flags, "ansi"), unread=unread)
        kept = _with_codes(inner) if "\x1b" in inner and part.syntax == "json" else None
        if kept is not None:
            return kept.but(span=span)
        way = part.way and _without_codes(part.way)
        return part.but(span=span, flags=(*part.flags, "ansi"), way=way)

    def _before(self, offset: int) -> int:
        """The offset in the text of one in the plain text; in front of the codes that stand there."""
        return offset + self._removed[bisect_left(self._places, offset)]


def _as_escapes(source: str) -> str:
    """JSON of the same value, where codes stand nowhere but in strings."""
    return source.replace("\x1b", "\\u001b")


_QUOTED = re.compile(r"""\"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""", re.DOTALL)
_IN_STRINGS = Way(lambda source: strictjson.read(_as_escapes(source)), _as_escapes)


def _with_codes(source: str) -> Part | None:
    """The document whose codes stand inside of strings, and are kept; None where some stand elsewhere."""
    if "\x1b" in _QUOTED.sub("", source):
        return None
    found, way = None, _IN_STRINGS
    if "\\\x1b" not in source:
        found = _IN_STRINGS.read(source.rstrip(", \t"))
    if found is None:
        found, way = read_lenient(source), LENIENT
    if found is None:
        return None
    return Part(found[0], (0, 0), "json", ("repaired", *sorted(found[1]), "ansi"), way=way)


@cache
def _without_codes(way: Way) -> Way:
    """The same way to read a document with colour codes in it, which are no part of it; nor is a comma before one."""

    def clean(source: str) -> str:
        return ANSI.sub("", source).rstrip(", \t")

    return Way(lambda source: way.read(clean(source)), lambda source: way.plain(clean(source)))
