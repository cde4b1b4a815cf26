"""JSON inside of a model's text: strict first, repaired only where that fails, one document at a time.

Rules:
- Documents in ``` fences come before bare ones.
- At most one document of a text is repaired, the first that does not parse strictly; what comes out counts
  only if it is of the kind (object, list) that the text began. Whoever asked decides whether it has the shape
  that was wanted.
- Lone surrogates, which JSON can escape but UTF-8 can't carry, become U+FFFD, in keys too.
- All is bounded: characters, attempts, documents. Nothing raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import json_repair

from hyve.encodings import encodable

MAX_TEXT = 1 << 20
"""Characters of a model's text that are looked at."""

_MAX_REPAIR = 1 << 18
_MAX_DOCUMENTS = 32
_MAX_ATTEMPTS = 64

_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_HOPELESS = 8
"""Openings after the first broken document that may fail too before the rest is left alone."""
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
"""NaN and infinities are no JSON; a model that writes one has no value there."""


@dataclass(frozen=True)
class Found:
    """One document and where it stands in the text."""

    start: int
    stop: int
    value: Any


def documents(text: str) -> Iterator[Found]:
    """The objects and lists in `text`: of each part those before the first broken one, that one, the rest."""
    text = text[:MAX_TEXT]
    seen: set[int] = set()
    repaired = False
    for begin, end in [*(match.span(1) for match in _FENCE.finditer(text)), (0, len(text))]:
        before, broken, after = _scan(text, begin, end, seen)
        yield from before
        if broken is not None and not repaired:
            value = repair(text[broken:end])
            if value is not None:
                repaired = True
                yield Found(broken, end, value)
        yield from after


def _scan(text: str, begin: int, end: int, seen: set[int]) -> tuple[list[Found], int | None, list[Found]]:
    before: list[Found] = []
    after: list[Found] = []
    broken: int | None = None
    failures = 0
    at = begin
    for _ in range(_MAX_ATTEMPTS):
        match = _OPENING.search(text, at, end)
        if match is None or len(before) + len(after) >= _MAX_DOCUMENTS:
            break
        at = match.start()
        try:
            value, stop = _DECODER.raw_decode(text, at)
            value = _carried(value, text)
        except (ValueError, RecursionError):
            if broken is None and text[at] == "{":
                broken = at
            failures += 1
            if failures > _HOPELESS and text.count("{", begin, end) > 1000:
                break
            at += 1
            continue
        if at not in seen:
            seen.add(at)
            (before if broken is None else after).append(Found(at, stop, value))
        at = stop
    return before, broken, after


def parse(text: str) -> Any:
    """One JSON value: strictly, else repaired; None where neither gives anything."""
    text = text[:MAX_TEXT].strip()
    try:
        return _carried(_DECODER.decode(text), text)
    except (ValueError, RecursionError):
        return repair(text)


def repair(text: str) -> Any:
    """`text` read as one broken object or list; None where that gives nothing."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or len(text) > _MAX_REPAIR:
        return None
    try:
        value = _carried(json_repair.loads(text, skip_json_loads=True), text)
    except Exception:  # whatever a repair of hostile text may stumble over
        return None
    # Where other text follows, the repair gives a list of documents; the first is the one that was asked for.
    if start == "{" and isinstance(value, list) and value:
        value = value[0]
    return value if value and isinstance(value, dict if start == "{" else list) else None


def _carried(value: Any, source: str) -> Any:
    """`value`, read from `source`, without lone surrogates. RecursionError where it is nested too deeply for it."""
    return _well_formed(value) if "\\ud" in source or "\\uD" in source else value


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key) if isinstance(key, str) else key: _well_formed(item) for key, item in value.items()}
    return value


def as_object(value: Any) -> dict[str, Any] | None:
    """A JSON object given as it is, as text, or as a text of a text."""
    for _ in range(3):
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            return None
        value = parse(value)
    return value if isinstance(value, dict) else None


def fold(name: str) -> str:
    """A key or name without case, underscores and digits, so that spellings of one name compare equal."""
    return (_known if len(name) <= _NAME else _folded)(name)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


_NAME = 40
"""Characters of a name that is remembered: the keys of an answer are folded for each that is looked for."""

_known = lru_cache(maxsize=500)(_folded)


def first(value: Mapping[str, Any], *names: str) -> Any:
    """What `value` holds under the first of the (folded) `names` that it has; None without any."""
    folded = {fold(key): item for key, item in reversed(list(value.items()))}
    return next((folded[name] for name in names if name in folded), None)


def without_thoughts(text: str) -> str:
    """`text` without the block of thoughts that some models put first, and without lone surrogates."""
    return re.sub(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", "", encodable(text), flags=re.DOTALL).strip()


def has_words(text: str) -> bool:
    """Whether a text says something in words, beside the JSON in it."""
    at, said = 0, []
    for found in sorted(documents(text), key=lambda found: found.start):
        if found.start >= at:
            said.append(text[at : found.start])
            at = found.stop
    return any(re.search(r"[^\W\d_]{2,}", part) for part in (*said, text[at:]))
