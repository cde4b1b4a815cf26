"""JSON whose quotes are escaped, as it stands in strings of JSON and in the lines of logs, to any depth (H5)."""

from __future__ import annotations

import re
from typing import Any

from hyve import strictjson
from hyve.literals import read_literal
from hyve.recovery import LIKELY
from hyve.strictjson import Decoder, Pairs, too_deep

ESCAPED = r"""(?:\s|\\+[nrt]|[{\[]){0,32}+\\++\""""
"""How a document goes on behind its bracket if its quotes are escaped, though no string is around it."""
ESCAPED_START = re.compile(rf"[{{\[]{ESCAPED}")
_LEVELS = 16
_ESCAPED_TOKEN = re.compile(r'(\\*)"|[\[\]{}]')
_UNESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def read_escaped(text: str, start: int) -> tuple[Any, int] | None:
    """(value, end) of the document at `start` whose quotes are escaped, any number of times; None where it is none."""
    depth, quote = 0, None
    inside = False
    for match in _ESCAPED_TOKEN.finditer(text, start):
        token = match[0]
        if token[-1] == '"':
            quote = len(match[1]) if quote is None else quote
            if len(match[1]) == quote:
                inside = not inside
            elif len(match[1]) < quote or not inside:
                return None
        elif not inside:
            depth += 1 if token in "{[" else -1
            if depth == 0:
                source, end = text[start : match.end()], match.end()
                break
    else:
        return None
    for _ in range(_LEVELS):
        source = _UNESCAPE.sub(lambda match: _PLAIN.get(match[1], match[0]), source)
        found = strictjson.read(source)
        if found is not None:
            return (found[0], end) if isinstance(found[0], dict | list | Pairs) and found[0] else None
        if '\\"' not in source:
            return None
    return None


_SHORT = Decoder()
_BEGINS = re.compile(r'"|[{\[]\s*+(?:["{\[\]}\d-]|true|false|null|NaN|Infinity)')


def embedded(text: str) -> Any | None:
    """The container that a string holds as JSON (escaped any number of times) or as a Python literal, else None."""
    for _ in range(_LEVELS):
        stripped = text.strip()
        if not stripped or stripped[0] not in '{["':
            return None
        value = _strict(stripped)
        if value is None:
            if stripped[0] == '"':
                return None
            if ESCAPED_START.match(stripped):
                escaped = read_escaped(stripped, 0)
                return escaped[0] if escaped and escaped[1] == len(stripped) else None
            found = read_literal(stripped) if LIKELY.match(stripped) else None
            value = found[0] if found and not too_deep(found[0], stripped) else None
        if not isinstance(value, str):
            return value if isinstance(value, dict | list | Pairs) and value else None
        text = value
    return None


def _strict(text: str) -> Any | None:
    if not _BEGINS.match(text):
        return None
    if len(text) > 1000:
        found = strictjson.read(text)
        return found[0] if found else None
    try:  # for a short text faster than `read`
        value = _SHORT.decode(text)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value, text) else value
