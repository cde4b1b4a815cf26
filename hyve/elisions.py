"""Items that a document's writer left out, and an ellipsis in their place: `[1, 2, ...]`, `[{...}, ... 98 more]` (H8).

Rules:
- What stands there is read, and nothing is made of the ellipsis or of the note behind it (`98 more`, `(12 more)`).
- An ellipsis in the place of a member's value leaves out what no value can stand for: such a text is no document.
- Behind an item the ellipsis stands apart from it: `12...` is a number that was cut.
"""

from __future__ import annotations

import re

_DOTS = r"(?:\.{3}|…)"
_COUNTED = (
    "more|others?|omitted|elided|truncated|skipped|remaining|hidden|left|total|items?|entries|rows|records|elements"
    "|lines|values|keys|fields|objects"
)
_COUNT = r"(?:\d[\d,_]*+\s++)?"
_NOTE = (
    rf"\(?(?:and\s++|\+\s*+)?{_COUNT}(?:(?!(?:{_COUNTED})\b)[a-z]++\s++){{0,4}}+"
    rf"(?:{_COUNTED})\b(?:[ \t]++[a-z]++){{0,4}}+\)?"
)
_STRING = re.compile(r"""\"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'""", re.DOTALL)
# A string, or an ellipsis with what stands around it.
_PLACE = re.compile(
    rf"""(?P<string>{_STRING.pattern})
    |(?P<dots>{_DOTS}(?:\s*+{_NOTE})?(?:\s*+{_DOTS})?+)(?P<comma>\s*+,)?""",
    re.VERBOSE | re.DOTALL,
)


def without_ellipses(source: str) -> str | None:
    """The source of a document without its ellipses; None where it has none, or where one can't just be left out."""
    if "..." not in source and "…" not in source:
        return None
    kept: list[str] = []
    at, last, found = 0, "", False  # `last`: what was kept last, blanks left out
    for match in _PLACE.finditer(source):
        if match["string"] is not None:
            continue
        piece = source[at : match.start()]
        last = piece.rstrip()[-1:] or last
        after = source[match.end() : match.end() + 64].lstrip()[:1]
        closes, comma = after in ("]", "}"), match["comma"] is not None
        kept.append(piece)
        at, found = match.end(), True
        if not closes and not comma and after not in ('"', "'", "{", "["):
            return None
        if last == "," and closes:
            while not kept[-1].strip():
                kept.pop()
            kept[-1] = kept[-1].rstrip().removesuffix(",")
            last = ""
        elif last in ("}", "]", '"', "'") or last.isdigit():
            if not piece[-1:].isspace():
                return None
            if not closes:
                kept.append(",")
                last = ","
        elif last not in ("[", "{", ","):
            return None
    kept.append(source[at:])
    plain = "".join(kept)
    # A call is kept as its source text, which no ellipsis may be taken from.
    return plain if found and "(" not in _STRING.sub("", plain) else None
