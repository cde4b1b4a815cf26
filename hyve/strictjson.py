"""Strict JSON that loses nothing: repeated keys, integers of any size, values out of the middle of a text.

Rules:
- An object that repeats a key becomes `Pairs`; what had to be changed in reading stands in `Decoder.met` as a flag.
- Containers nested deeper than MAX_DEPTH are nobody's data: whoever reads leaves them as text.
- A value is read in a growing window, for an error's line and column are counted from the start of what the decoder
  was given: over a whole file of near-JSON lines that took the square of its length.
"""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 200
"""Containers nested deeper than this stay text."""


class Pairs(tuple[tuple[str, Any], ...]):
    """An object that repeats a key: its (key, value) pairs in source order, none dropped."""

    __slots__ = ()


class Decoder(json.JSONDecoder):
    """Strict JSON that keeps repeated keys. `met` holds the flags of what it met since it was last cleared."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._object, parse_int=self._int)
        self.met: set[str] = set()

    def _int(self, digits: str) -> int | str:
        if len(digits) <= 4000:  # Python refuses to read much longer ones
            return int(digits)
        self.met.add("integer_as_text")
        return digits

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | Pairs:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        self.met.add("duplicate_keys")
        return Pairs(pairs)


def too_deep(value: Any, source: str) -> bool:
    """Whether containers are nested beyond MAX_DEPTH; looked at only where the source has that many openings."""
    if source.count("[") + source.count("{") + source.count("(") <= MAX_DEPTH:
        return False
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list | tuple)
        ]
    return False


def raw_decode(decoder: Decoder, text: str, start: int) -> tuple[Any, int, int]:
    """(value, end, -1) of the JSON value at `start`, or (None, start, offset of the failure).

    Reads a growing window: an error's line and column are counted from the start of what the decoder was given, which
    over a whole file of near-JSON lines would take the square of its length.
    """
    size = 4096
    while True:
        window = text[start : start + size]
        try:
            value, end = decoder.raw_decode(window)
        except json.JSONDecodeError as error:
            cut = error.pos > len(window) - 64 or error.msg.startswith("Unterminated")
            if not cut or start + size >= len(text):
                return None, start, start + error.pos
            size *= 8
        except RecursionError:
            # Nested some thousand levels deep: what starts within the next levels is too deep as well.
            return None, start, start + 512
        except ValueError:
            return None, start, start + 1
        else:
            return value, start + end, -1
