"""Payloads inside payloads: base64, gzip and JSON, as cloud services put them into each other's fields.

Rules:
- Nothing raises; what can't be read is None and stays in the base tables as it came.
- What gzip unfolds to is bounded: by its own size (ordinary logs shrink to a tenth, one stack trace over and over to a
  seventieth), in one field, and in all of a search (`bounded`), so that a small input can't become a large one. base64
  only gets smaller.
"""

from __future__ import annotations

import binascii
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from hyve import strictjson

_GZIP = b"\x1f\x8b"
_RATIO = 100
_LARGEST = 32 << 20
_IN_ALL = 64 << 20
_FAILURES = 1_000


@dataclass
class _Budget:
    left: int


_budget: ContextVar[_Budget | None] = ContextVar("_budget", default=None)


@contextmanager
def bounded(size: int = _IN_ALL) -> Iterator[None]:
    """Within it, all gzip together unfolds to at most `size` bytes; what comes later is not unfolded."""
    token = _budget.set(_Budget(size))
    try:
        yield
    finally:
        _budget.reset(token)


def from_base64(value: Any) -> bytes | None:
    """The bytes of standard base64 text, padded or not, in one line or several."""
    if type(value) is not str or not value:
        return None
    if not value.isascii() or "\n" in value or " " in value:
        value = "".join(value.split())
    try:
        return b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def gunzip(data: bytes) -> bytes | None:
    """What gzip made of one member unfolds to; other bytes as they are. None where it is damaged, cut or too large."""
    if not data.startswith(_GZIP):
        return data
    budget = _budget.get() or _Budget(_LARGEST)
    limit = min(_LARGEST, _RATIO * len(data), budget.left)
    if limit <= 0:
        return None
    stream = zlib.decompressobj(wbits=31)
    try:
        unfolded = stream.decompress(data, limit)
    except zlib.error:
        return None
    budget.left -= len(unfolded)
    return unfolded if stream.eof and not stream.unused_data else None


def as_text(data: bytes | None) -> str | None:
    """The text of UTF-8 bytes."""
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_json(source: Any) -> Any:
    """The value of a text that is one JSON document, else None (as for the text "null")."""
    if type(source) is not str:
        return None
    found = strictjson.read(source)
    return None if found is None else found[0]


def read_object(value: Any) -> dict[str, Any]:
    """An object that a sender may have written as JSON text; an empty one where it is neither."""
    if type(value) is str and value.lstrip()[:1] == "{":
        value = read_json(value)
    return value if type(value) is dict else {}


def read_lines(source: str) -> list[Any]:
    """The objects and lists of NDJSON, or of one document over several lines. Other lines are left out; where they are
    most, the rest is not looked at."""
    source = source.strip()
    if source[:1] not in ("{", "["):
        whole = None
    elif "\n" in source and (records := strictjson.read_lines(source)) is not None:
        return [value for value, *_ in records]
    else:
        whole = read_json(source)
    if whole is not None or "\n" not in source:
        return [] if whole is None else [whole]
    values: list[Any] = []
    failed = 0
    for line in source.split("\n"):
        value = read_json(line) if line.lstrip()[:1] in ("{", "[") else None
        if value is not None:
            values.append(value)
        failed += value is None
        if failed > _FAILURES + len(values):
            break
    return values


def unpack(value: Any) -> list[Any]:
    """The JSON objects and lists in a field of base64, gzipped or not."""
    data = from_base64(value)
    source = as_text(gunzip(data)) if data is not None else None
    return [] if source is None else read_lines(source)
