"""JSON values that lose nothing: exact numbers, repeated keys, lone surrogates, and flags for what had to be changed.

Rules:
- The reference is `Decoder`, Python's own decoder with hooks. orjson reads several times faster, but it keeps only the
  last of repeated keys, makes doubles of integers beyond 64 bits and rounds in silence: its value counts only where
  `kept` shows that nothing was lost; whatever else goes to the reference.
- An object that repeats a key becomes `Pairs`. An integer longer than MAX_DIGITS or a number outside the doubles' range
  is kept as its text; a float literal whose digits the double doesn't give back is rounded, and flagged.
- Containers nested deeper than MAX_DEPTH are nobody's data: whoever reads leaves them as text.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from hyve.kept import MAX_DEPTH, comes_back, kept, written

MAX_DIGITS = 4_000
"""Integers with more digits stay text: Python takes the square of their length, and refuses those beyond 4,300."""


class Pairs(tuple[tuple[Any, Any], ...]):
    """An object that no dict with text keys can hold, as its (key, value) pairs in source order, none dropped.

    It repeats a key, or a key is no text (Python literals have such; then the key stands here as it was).
    """

    __slots__ = ()

    def unique(self) -> dict[str, Any]:
        """The fields that have a text for a name, and one that isn't repeated."""
        names = Counter(key for key, _ in self if type(key) is str)
        return {key: value for key, value in self if type(key) is str and names[key] == 1}


class Decoder(json.JSONDecoder):
    """Strict JSON that loses nothing. `met` holds the flags of what it met since it was last cleared.

    If it isn't `strict`, control characters may stand in strings as they are.
    """

    def __init__(self, strict: bool = True) -> None:
        super().__init__(
            strict=strict,
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
        )
        self.met: set[str] = set()

    def _int(self, literal: str) -> int | str:
        if len(literal) <= MAX_DIGITS:
            return int(literal)
        self.met.add("number_as_text")
        return literal

    def _float(self, literal: str) -> float | str:
        value = float(literal)
        if len(literal) <= 16 and "e" not in literal and "E" not in literal:
            return value  # any double gives 15 digits back
        if comes_back(literal, value):
            return value
        if value == 0 or math.isinf(value):
            self.met.add("number_as_text")
            return literal
        self.met.add("rounded_number")
        return value

    def _constant(self, name: str) -> float:
        self.met.add("non_finite")
        return float(name)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | Pairs:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        self.met.add("duplicate_keys")
        return Pairs(pairs)


def flags(source: str, decoder: Decoder) -> tuple[str, ...]:
    """The flags of a value that `decoder` has just read from `source`, sorted; clears `decoder.met`."""
    met = decoder.met
    if ("\\ud" in source or "\\uD" in source) and any(match[1] for match in _ESCAPE.finditer(source)):
        met.add("lone_surrogate")
    names = tuple(sorted(met))
    met.clear()
    return names


def too_deep(value: Any, source: str, above: int = 0) -> bool:
    """Whether containers are nested beyond MAX_DEPTH, `above` ones around the value counted.

    Looked at only where the source has that many openings.
    """
    if source.count("[") + source.count("{") + source.count("(") + above <= MAX_DEPTH:
        return False
    if written(value, above) is not None:
        return False
    return any(depth > MAX_DEPTH for depth, _ in enumerate(_levels(value), above + 1))


def holds_pairs(value: Any) -> bool:
    """Whether an object stands in a value that no dict can hold."""
    return any(type(node) is Pairs for level in _levels(value) for node in level)


def _levels(value: Any) -> Iterator[list[Any]]:
    """The containers of a value by how deep they are nested, the outermost first."""
    level = [value] if isinstance(value, dict | list | tuple) else []
    while level:
        yield level
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list | tuple)
        ]


STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')

# Escapes one after the other, for a backslash may itself be escaped. Group 1 is half of a surrogate pair.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def read_plain(source: str, above: int) -> tuple[Any] | None:
    """The value that orjson reads from `source`, alone in a tuple, if it is exact and has no flags."""
    try:
        data = source.encode()
        value = orjson.loads(data)
    except ValueError:  # not UTF-8, or no JSON for orjson
        return None
    return (value,) if kept(data, value, above) else None


def read_value(source: str, above: int = 0) -> tuple[Any, frozenset[str]] | None:
    """(value, flags) of exactly `source`, which stands inside of `above` containers; None as in `strictjson.read`."""
    plain = read_plain(source, above)
    if plain is not None:
        return plain[0], frozenset()
    decoder = Decoder()
    try:
        value = decoder.decode(source)
    except (ValueError, RecursionError):
        return None
    if too_deep(value, source, above):
        return None
    return value, frozenset(flags(source, decoder))
