"""Where long lists begin in a JSON text, told from its first characters: a list need not be read for that.

What is told is likely, not sure: whoever reads there finds out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from hyve.exactjson import STRING
from hyve.kept import MAX_DEPTH

CLOSER = {"{": "}", "[": "]"}
"""The closing bracket of each opening one."""

BEGIN, _HEAD = 1 << 12, 1 << 14
"""Characters of a text in which the first list of objects begins, and those in which others are looked for."""

_STRING = 1 << 12
"""Characters of a string that goes on where looking for lists ends."""

FIRST_RECORD = re.compile(rf"(?P<open>\[)(?P<blanks>\s*+)(?P<item>\{{\s*+(?P<key>{STRING.pattern}))", re.DOTALL)
"""A list of objects up to its first key: the blanks before its first object, and how that one begins."""

_TOKEN = re.compile(rf"{STRING.pattern}|[\[\]{{}},]")
_BRACKET, _BRACKET_OR_COMMA = (
    re.compile(rf'(?:[^"\[\]{{}}{more}]++|{STRING.pattern})*+[\[\]{{}}{more}]') for more in ("", ",")
)
"""Text up to the next bracket (or comma) that is in no string."""

_COLON = re.compile(r"\s*+:")
_ITEM = re.compile(rf"(?P<blanks>\s*+)(?P<item>\{{\s*+{STRING.pattern}|\[)")

Keys = tuple[str | int, ...]
"""The way to a list: keys of objects, and places in lists."""


def first_record(text: str, start: int, end: int) -> re.Match[str] | None:
    """The beginning of the first list of objects, if it is near `start`, as FIRST_RECORD matches it."""
    return FIRST_RECORD.search(text, start, min(end, start + BEGIN))


def long_lists(text: str, one: bool) -> Iterator[tuple[Keys, int, re.Pattern[str]]]:
    """Lists of containers that begin near the start of `text` and may be long: (the way there, where the first item
    begins, what stands between two items, most likely). First the first list of objects, then those that are open
    further on, unless `one` is enough; only objects and lists of one item lead there."""
    head = first_record(text, 0, len(text))
    path = _path(text[: head.end("open")]) if head else None
    if head and path is not None:
        yield path, head.end("open"), _between("}", head["blanks"], head["item"])
    if one:
        return
    way: list[str | int] = []
    for opener, start, key, between, several in _open(text, min(_HEAD, len(text) // 2)):
        if opener == "{":
            try:
                way.append(orjson.loads(key))
            except orjson.JSONDecodeError:
                return
            continue
        if between is not None and (not head or path is None or start != head.end("open")):
            yield tuple(way), start, between
        if several:
            return
        way.append(0)


def _open(text: str, end: int) -> list[tuple[str, int, str, re.Pattern[str] | None, bool]]:
    """The containers of a text that are open at `end`, outermost first: (opening bracket, where it ends, an object's
    last key as it is spelled, what stands between items of a list, whether it has several); no containers where
    the text can't be JSON."""
    if text.lstrip()[:1] not in CLOSER:
        return []
    found: list[tuple[str, int, str, re.Pattern[str] | None, bool]] = []
    try:
        for match in _TOKEN.finditer(text, 0, end + _STRING):  # a string that goes over the end is one, too
            if match.start() >= end:
                break
            token = match[0]
            if token in "[{":
                item = _ITEM.match(text, match.end()) if token == "[" else None
                between = _between(CLOSER[item["item"][0]], item["blanks"], item["item"]) if item else None
                found.append((token, match.end(), "", between, False))
            elif token in "]}":
                if CLOSER[found.pop()[0]] != token:
                    return []
            elif found and found[-1][0] == "{":
                if token != "," and _COLON.match(text, match.end()):
                    found[-1] = ("{", found[-1][1], token, None, False)
            elif found and token == ",":
                item = _ITEM.match(text, match.end()) if text[match.start() - 1] in "}]" else None
                between = _between(text[match.start() - 1], item["blanks"], item["item"]) if item else found[-1][3]
                found[-1] = ("[", found[-1][1], "", between, True)
    except IndexError:
        return []
    return found


def _between(before: str, blanks: str, item: str) -> re.Pattern[str]:
    """What stands from the last character of an item of a list to the next item, which begins like `item`."""
    spaces = re.escape(blanks) if "\n" in blanks else " ?"
    return re.compile(f"{re.escape(before)},{spaces}(?={re.escape(item)})")


def next_comma(text: str, at: int, least: int, stop: int) -> int:
    """Where the first comma from `least` on stands between the items of a list of which one begins at `at`; -1 where
    the list ends, `stop` comes before, or it is no JSON."""
    depth = 0
    while match := (_BRACKET if depth else _BRACKET_OR_COMMA).match(text, at, stop):
        at = match.end()
        token = text[at - 1]
        if token in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return -1
        elif token != ",":
            depth -= 1
            if depth < 0:
                return -1
        elif at > least:
            return at - 1
    return -1


def _path(prefix: str) -> tuple[str, ...] | None:
    """The keys from the root to the list that the last character of `prefix` opens; None where lists hold it."""
    closers: list[str] = []
    for char in STRING.sub("", prefix):
        if char in CLOSER:
            closers.append(CLOSER[char])
        elif char in "}]" and (not closers or closers.pop() != char):
            return None
    try:
        node = orjson.loads(prefix + "".join(reversed(closers)))
    except orjson.JSONDecodeError:
        return None
    keys: list[str] = []
    while isinstance(node, dict):
        keys.append(next(reversed(node)))
        node = node[keys[-1]]
    return tuple(keys) if node == [] else None
