"""Strict JSON that loses nothing: exact numbers, repeated keys, lone surrogates, and flags for what had to be changed.

Rules:
- The reference is `Decoder`, Python's own decoder with hooks. orjson reads several times faster, but it keeps only the
  last of repeated keys, makes doubles of integers beyond 64 bits and rounds in silence: its value counts only where
  `_kept` shows that nothing was lost; whatever else goes to the reference.
- An object that repeats a key becomes `Pairs`. An integer longer than MAX_DIGITS or a number outside the doubles' range
  is kept as its text; a float literal whose digits the double doesn't give back is rounded, and flagged.
- Containers nested deeper than MAX_DEPTH are nobody's data: whoever reads leaves them as text.
- Long texts are read in pieces. JSON's grammar has one reading, so a list whose pieces between commas are lists of
  values is the list of all these values; and a piece costs no more memory beside its values than its own size.
- Time is linear in the text, whatever stands there.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import add
from typing import Any

import orjson

MAX_DEPTH = 200
"""Containers nested deeper than this stay text."""

MAX_DIGITS = 4_000
"""Integers with more digits stay text: Python takes the square of their length, and refuses those beyond 4,300."""

_PIECE = 1 << 18
"""Characters read at a time: what orjson makes of so many fits a processor's cache."""

_CLOSER = {"{": "}", "[": "]"}


class Pairs(tuple[tuple[Any, Any], ...]):
    """An object that no dict with text keys can hold, as its (key, value) pairs in source order, none dropped.

    It repeats a key, or a key is no text (Python literals have such; then the key stands here as it was).
    """

    __slots__ = ()


class Decoder(json.JSONDecoder):
    """Strict JSON that loses nothing. `met` holds the flags of what it met since it was last cleared."""

    def __init__(self) -> None:
        super().__init__(
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
        if _comes_back(literal, value):
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


def read(text: str) -> tuple[Any, frozenset[str]] | None:
    """(value, flags) of a text that is one JSON value of any kind and nothing else but blanks around it.

    None where it is not, and where its containers are nested deeper than MAX_DEPTH.
    """
    bare = text.strip()
    if not bare or (bare[0] in _CLOSER and bare[-1] != _CLOSER[bare[0]]):
        return None
    if len(bare) == len(text.strip(" \t\r\n")):
        bare = text  # JSON takes such blanks itself: no second copy of a long text has to live
    ahead = read_ahead(bare)
    if ahead is None:
        return _read(bare)
    rest = _read(ahead.rest)
    if rest is None:
        return None
    return (rest[0], rest[1] | ahead.flags) if ahead.join(rest[0]) else _read(bare)


@dataclass(frozen=True)
class Ahead:
    """The first records of a long list, read. `rest` is the text without what stands at `span`, those records and the
    comma behind each: the same document with a shorter list, be it cut or damaged in what follows."""

    records: list[Any]
    flags: frozenset[str]
    rest: str
    span: tuple[int, int]
    path: tuple[str, ...]

    def join(self, value: Any) -> bool:
        """Puts the records in front of their list in `value`, which `rest` gave; False where that has no such list."""
        for key in self.path:
            value = value.get(key) if type(value) is dict else None
        if type(value) is not list:
            return False
        value[:0] = self.records
        return True


def lists_records(text: str, start: int, end: int) -> bool:
    """Whether `read_ahead` may find something between `start` and `end`: a long list of objects begins near `start`."""
    return end - start > 2 * _PIECE and _FIRST_RECORD.search(text, start, min(end, start + 4096)) is not None


def read_ahead(text: str) -> Ahead | None:
    """Reads the first records of a long list of objects near the start of `text`, as far as they are strict JSON.

    Looks for the first such list, which only objects may hold. The last records are left to `rest`. None for a text
    that is no longer than a few pieces, and where nothing could be read ahead.
    """
    head = _FIRST_RECORD.search(text, 0, 4096) if len(text) > 2 * _PIECE else None
    path = _path(text[: head.end("open")]) if head else None
    if head is None or path is None:
        return None
    blanks = re.escape(head["blanks"]) if "\n" in head["blanks"] else " ?"
    between = re.compile(r"\}," + blanks + r"(?=\{" + re.escape(head["key"]) + ")")
    records: list[Any] = []
    met: set[str] = set()
    start = at = head.end("open")
    while cut := between.search(text, at + _PIECE):
        piece = _read(f"[{text[at : cut.start() + 1]}]", len(path))
        if piece is None:
            break  # no cut between two elements of the list, or no strict JSON
        records += piece[0]
        met |= piece[1]
        at = cut.end()
    return Ahead(records, frozenset(met), text[:start] + text[at:], (start, at), path) if records else None


def read_lines(text: str) -> list[tuple[Any, int, int, tuple[str, ...]]] | None:
    """(value, start, end, flags) of each line, where every non-blank line is by itself one JSON object or array.

    `start` and `end` are offsets in `text`, blanks left out. None as soon as one line is something else.
    """
    if text.lstrip()[:1] not in ("{", "[") or _OTHER_LINE.search(text):
        return None
    found: list[tuple[Any, int, int, tuple[str, ...]]] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at + _PIECE) + 1 or len(text)
        records = _read_lines(text[at:end], at)
        if records is None:
            return None
        found += records
        at = end
    return found


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
    if _written(value, above) is not None:
        return False
    level, depth = [value] if isinstance(value, dict | list | tuple) else [], above
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
    over a whole file of near-JSON lines would take the square of its length. `decoder.met` is of this value only.
    """
    wrong = _NO_JSON.match(text, start)
    if wrong:
        return None, start, wrong.end() - 1
    size = 4096
    while True:
        decoder.met.clear()
        window = text[start : start + size]
        try:
            value, end = decoder.raw_decode(window)
        except json.JSONDecodeError as error:
            cut = error.pos > len(window) - 64 or error.msg.startswith("Unterminated")
            if not cut or start + size >= len(text):
                return None, start, start + error.pos
            size *= 8
        except RecursionError:
            return None, start, _far_below(text, start)
        except ValueError:
            return None, start, start + 1
        else:
            return value, start + end, -1


# What after a bracket can't become JSON, as seen within its first tokens. The decoder finds the same, but by way of an
# exception, which takes ten times as long; and near-JSON has a bracket every few characters.
_W, _KEY, _STARTS = r"[ \t\r\n]*+", r'"(?:[^"\\]|\\.){0,64}+"', r'"\[{\dtfnNI-'
_SCALAR = rf"(?:{_KEY}|-?\d[\d.eE+-]*+|true|false|null|NaN|-?Infinity){_W}"
_MEMBER = rf"{_KEY}{_W}:{_W}"
_MEMBERS, _ITEMS = rf"(?:{_MEMBER}{_SCALAR},{_W}){{0,16}}+", rf"(?:{_SCALAR},{_W}){{0,16}}+"
_NO_JSON = re.compile(
    rf"""(?: (?: \{{ {_W} {_MEMBERS} {_MEMBER} | \[ {_W} {_ITEMS} ) (?= [\[{{] ) ){{0,16}}+
    (?: \{{ {_W} {_MEMBERS} (?: [^\s"}}] | {_KEY} {_W} [^\s:] | {_MEMBER} (?: [^\s{_STARTS}] | {_SCALAR} [^\s,}}] ) )
      | \[ {_W} {_ITEMS} (?: [^\s\]{_STARTS}] | {_SCALAR} [^\s,\]] ) )""",
    re.VERBOSE,
)

_FAR = 3 * MAX_DEPTH
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NESTING = re.compile(rf"{_STRING.pattern}|[\[{{]{{1,{_FAR}}}+|[\]}}]++")

# The first list of objects: the blanks before its first object, and the blanks and the key after that one's brace.
_FIRST_RECORD = re.compile(rf"(?P<open>\[)(?P<blanks>\s*+)\{{(?P<key>\s*+{_STRING.pattern})")

_OTHER_LINE = re.compile(r"\n[^{\[\s]")
"""A line that starts with neither an opening bracket nor a blank."""

_FEW_LINES = 32
"""Lines that are read at once where a longer piece holds a line that orjson doesn't read exactly."""

_MARK = "\x7f"
_BETWEEN_LINES = f',"{_MARK}",'

# Escapes one after the other, for a backslash may itself be escaped. Group 1 is half of a surrogate pair.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _far_below(text: str, start: int) -> int:
    """Where the containers open that the one at `start`, deeper than Python can read, holds _FAR levels further in.

    What opens on the way is, for the most part, too deep as well: Python reads some 900 levels.
    """
    depth = 0
    for match in _NESTING.finditer(text, start):
        first, end = match.span()
        if text[first] in "[{":
            depth += end - first
            if depth >= _FAR:
                return end
        elif text[first] != '"':
            depth -= end - first
    return start + 1


def _path(prefix: str) -> tuple[str, ...] | None:
    """The keys from the root to the list that the last character of `prefix` opens; None where lists hold it."""
    closers: list[str] = []
    for char in _STRING.sub("", prefix):
        if char in _CLOSER:
            closers.append(_CLOSER[char])
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


def _read(source: str, above: int = 0) -> tuple[Any, frozenset[str]] | None:
    """(value, flags) of exactly `source`, which stands inside of `above` containers; None as in `read`."""
    try:
        data = source.encode()
        value = orjson.loads(data)
    except ValueError:  # not UTF-8, or no JSON for orjson
        pass
    else:
        if _kept(data, value, above):
            return value, frozenset()
        del value, data
    decoder = Decoder()
    try:
        value = decoder.decode(source)
    except (ValueError, RecursionError):
        return None
    if too_deep(value, source, above):
        return None
    return value, frozenset(flags(source, decoder))


def _read_lines(text: str, at: int) -> list[tuple[Any, int, int, tuple[str, ...]]] | None:
    """`read_lines` for a piece of a text, which stands at offset `at`."""
    lines = text.removesuffix("\n").split("\n")
    starts = list(accumulate(map(add, map(len, lines), repeat(1)), initial=at))[:-1]
    bare = list(map(str.strip, lines))
    if bare != lines or "" in bare:
        starts = [start + len(line) - len(line.lstrip()) for start, line in zip(starts, lines, strict=True)]
        starts = [start for start, line in zip(starts, bare, strict=True) if line]
        bare = [line for line in bare if line]
    ends = list(map(add, starts, map(len, bare)))
    marked = _MARK in text or ("\\" in text and "\\u007" in text)
    values = None if marked else _lines_at_once(bare)
    if values is not None:
        return list(zip(values, starts, ends, repeat(())))
    found: list[tuple[Any, int, int, tuple[str, ...]]] = []
    decoder = Decoder()
    for first in range(0, len(bare), _FEW_LINES):
        few = slice(first, first + _FEW_LINES)
        values = None if marked else _lines_at_once(bare[few])
        if values is not None:
            found.extend(zip(values, starts[few], ends[few], repeat(())))
            continue
        for line, start, end in zip(bare[few], starts[few], ends[few], strict=True):
            try:
                value = decoder.decode(line)
            except (ValueError, RecursionError):
                return None
            if line[0] not in _CLOSER or too_deep(value, line):
                return None
            found.append((value, start, end, flags(line, decoder)))
    return found


def _lines_at_once(lines: list[str]) -> list[Any] | None:
    """The values of lines that hold no _MARK, each one object or array that orjson reads exactly; else None.

    They are read as one list, with _MARK between. Where that comes out at every other place, no line was but a part of
    a value, or two.
    """
    source = f"[{_BETWEEN_LINES.join(lines)}]"
    try:
        data = source.encode()
        values = orjson.loads(data)
    except ValueError:  # not UTF-8, or no JSON for orjson
        return None
    if values[1::2] != [_MARK] * (len(lines) - 1) or not set(map(type, values[::2])) <= {dict, list}:
        return None
    return values[::2] if _kept(data, values, 0) else None


def _dump_levels() -> int:
    """How many containers inside of each other orjson writes before it refuses."""
    levels = 0
    value: list[Any] = []
    while levels < 10 * MAX_DEPTH:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            break
        levels, value = levels + 1, [value]
    return levels


_SPARE_LEVELS = _dump_levels() - MAX_DEPTH

# Where a number may not be kept, told from a copy in which all digits and points look the same: every double gives back
# 15 digits, a 64-bit integer 18, and only exponents of three digits leave the doubles' range.
_FACELESS = bytes.maketrans(b"123456789.E", b"0000000000e")
_LONG, _TINY = b"0" * 16, b"0e-000"
_LONG_NUMBER = re.compile(_LONG + rb"0*+(?:e[+-]?0++)?")
_TINY_END = re.compile(_TINY + rb"0*+(?=[\s,\]}]|\Z)")
_LONG_NEGATIVE = b"-" + b"0" * 19


def _kept(data: bytes, value: Any, above: int) -> bool:
    """Whether `value`, which orjson read from `data`, is what the reference reads there, without any flag.

    False where it is not, may not be, or is nested too deep, the containers `above` it counted.

    Repeated keys: a string takes two quotes in `data`, and one more for each quote in it unless that is spelled by its
    number. orjson writes strings just so, and the counts are the same only where no string was dropped.
    """
    written = _written(value, above)
    if written is None:
        return False
    around = _SPARE_LEVELS + above
    if len(written) == len(data) + 2 * around and written.startswith(data, around):
        return True  # it was written just as orjson writes what it read
    if written.count(b'"') != data.count(b'"') or (b"\\" in data and b"\\u0022" in data):
        return False
    del written
    faceless = data.translate(_FACELESS)
    if _TINY in faceless and _TINY_END.search(faceless):
        return False
    if _LONG not in faceless:
        return True
    spans = [match.span() for match in _LONG_NUMBER.finditer(faceless)]
    listed = b"[" + b",".join([data[start:end] for start, end in spans]) + b"]"
    try:
        if orjson.dumps(orjson.loads(listed)) == listed and _LONG_NEGATIVE not in faceless:
            return True  # all are spelled as orjson spells what it read
    except orjson.JSONDecodeError:
        pass  # some are no numbers, but stand in strings
    return all(_number_kept(data, start, end) for start, end in spans)


def _written(value: Any, above: int) -> bytes | None:
    """`value` as orjson writes it inside of lists, so many that it refuses what `above` more containers bury too deep.

    None where it refuses, be it for the depth or for what it can't write at all.
    """
    for _ in range(_SPARE_LEVELS + above):
        value = [value]
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None


def _number_kept(data: bytes, start: int, end: int) -> bool:
    """Whether what stands from `start` to `end` is no number, or one that 64 bits or a double give back."""
    negative = data[start - 1 : start] == b"-"
    before = start - 1 - negative
    if before >= 0 and data[before] not in b" \t\r\n,:[":
        return True  # within a string
    literal = data[start:end]
    if literal.isdigit():
        return len(literal) <= 20 and int(literal) <= (1 << 63 if negative else (1 << 64) - 1)
    try:
        return _comes_back(literal.decode(), float(literal))
    except ValueError:
        return True  # within a string


def _significant(literal: str) -> str:
    """The significant digits of a float literal: none for zero."""
    mantissa = literal.lower().partition("e")[0]
    return mantissa.replace(".", "").lstrip("-0").rstrip("0")


def _comes_back(literal: str, value: float) -> bool:
    """Whether `value`, written with as many significant digits as `literal` has, has the same digits."""
    digits = _significant(literal)
    if len(digits) > 767:  # no double has more
        return False
    return not digits or _significant(f"{value:.{len(digits) - 1}e}") == digits
