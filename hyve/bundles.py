"""Many names in few words, reversibly: `10.0.0.{0..39}:9100`, `web-{a,b,c}.example.com`, read as bash reads them (H14).

Rules:
- Names keep their order, and a name that can't be read back (a comma, a brace or a quote in it) leaves all as they are.
- A bundle is of names that count on by one, with the zeros that bash would put before them, or of a few that begin and
  end alike, up to a word's end.
- Where that saves little, all names are as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hyve import codecs
from hyve.tokens import count_tokens

NOTE = "{1..3}, {a,b} in lists: as in bash"
"""What explains bundles."""
_RUN, _CHUNK = 3, 8
"""The least names that count on, the most that are told one by one, in a bundle."""
_LEAST_AFFIX = 6
"""Characters that names of a bundle have in common."""
_SAVED = 24
"""Tokens that bundles save at least: what explains them takes some."""
_LONGEST = 200
_DIGITS = re.compile(r"\d+")
_UNREADABLE = re.compile(r"[\s{},\"'\\|…×=]")


def natural(name: str) -> tuple[str, str]:
    """Orders names as people do: `web-2` comes before `web-10`."""
    text = name[:_LONGEST]
    return _DIGITS.sub(lambda digits: f"{len(digits[0].lstrip('0')):03d}{digits[0].lstrip('0')}", text), name


def bundled(names: Sequence[str]) -> list[tuple[str, int]]:
    """(text, of how many names) for distinct names, in their order; none where they are better told one by one."""
    if len(names) < _RUN + 1 or any(len(name) > _LONGEST or _UNREADABLE.search(name) for name in names):
        return []
    found: list[tuple[str, int]] = []
    rest: list[str] = []
    at = 0
    while at < len(names):
        text, count = _run(names, at)
        if count < _RUN:
            rest.append(names[at])
            at += 1
        if rest and (count >= _RUN or len(rest) == _CHUNK or at == len(names)):
            found += _alike(rest)
            rest = []
        if count >= _RUN:
            found.append((text, count))
            at += count
    saved = count_tokens(", ".join(names)) - count_tokens(", ".join(text for text, _ in found))
    return found if saved >= _SAVED else []


def _run(names: Sequence[str], at: int) -> tuple[str, int]:
    """The bundle of the names from the one `at` a place on that count on by one, and how many these are."""
    first = names[at]
    best = "", 1
    for digits in _DIGITS.finditer(first):
        start, width = digits.start(), len(digits[0])
        if width > 15:
            continue
        number, behind = int(digits[0]), first[digits.end() :]
        fixed = width if first[start] == "0" and width > 1 else 0
        count = 1
        while at + count < len(names) and names[at + count] == f"{first[:start]}{number + count:0{fixed}d}{behind}":
            count += 1
        last = f"{number + count - 1:0{fixed}d}"
        if count > best[1] and (not fixed or len(last) == width):
            best = f"{first[:start]}{{{digits[0]}..{last}}}{behind}", count
    return best


def _alike(names: list[str]) -> list[tuple[str, int]]:
    """A few names by what they begin and end with, else one by one."""
    if len(names) >= _RUN:
        before, behind = codecs.ends(names)
        parts = [name[len(before) : len(name) - len(behind)] for name in names]
        if len(before) + len(behind) >= _LEAST_AFFIX and all(parts):
            return [(f"{before}{{{','.join(parts)}}}{behind}", len(names))]
    return [(name, 1) for name in names]
