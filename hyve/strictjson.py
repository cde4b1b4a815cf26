"""Strict JSON of any length: short texts as values, long lists and long texts of lines piece by piece.

Rules:
- Long texts are read in pieces. JSON's grammar has one reading, so a list whose pieces between commas are lists of
  values is the list of all these values; and a piece costs no more memory beside its values than its own size.
- The first reading of a very long list or text of lines validates and keeps offsets; whoever wants the values reads
  them again, run by run.
- Values are read by `hyve.exactjson`, in a time that is linear in the text, whatever stands there.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, repeat
from operator import add
from typing import Any

import orjson

from hyve.exactjson import STRING, Decoder, Pairs, flags, read_plain, read_value, too_deep
from hyve.kept import MAX_DEPTH, kept
from hyve.longlists import CLOSER, Keys, first_record, long_lists, next_comma

__all__ = [
    "CONTAINERS",
    "MAX_DEPTH",
    "STRING",
    "Ahead",
    "Decoder",
    "Lines",
    "Pairs",
    "at_once",
    "flags",
    "lists_records",
    "long_lines",
    "offsets",
    "pieces_of_lines",
    "read",
    "read_ahead",
    "read_lines",
    "too_deep",
]

_PIECE = 1 << 16
"""Characters read at a time: what orjson makes of so many fits a processor's cache."""

LONG, RUN, CONTAINERS = 1 << 19, 1 << 18, 1 << 12
"""Characters of a text whose list is not kept as objects, and of the runs in which it comes: short ones, as objects of
a few megabytes take a third less time than those of fifty. Runs end earlier where they have so many containers."""

_TRIES = 8
"""Places at which a list is cut before it is given up."""

_AROUND = 4
"""A list is long for what stands around it where that is less than this part of all."""

_LISTS, _NEAR = 4, 1 << 19
"""Lists that are tried, and characters in which one has to have two items for no list inside of them to be tried before
it."""


def read(text: str, keep: bool = True) -> tuple[Any, frozenset[str]] | None:
    """(value, flags) of a text that is one JSON value of any kind and nothing else but blanks around it.

    None where it is not, and where its containers are nested deeper than MAX_DEPTH. Unless it is to `keep` it, the
    value of a text of LONG characters or more that is one long list for the most part is an `Ahead`.
    """
    bare = text.strip()
    if not bare or (bare[0] in CLOSER and bare[-1] != CLOSER[bare[0]]):
        return None
    if len(bare) == len(text.strip(" \t\r\n")):
        bare = text  # JSON takes such blanks itself: no second copy of a long text has to live
    keep = keep or len(bare) < LONG
    ahead = read_ahead(bare, keep)
    if ahead is None:
        return read_value(bare)
    rest = read_value(ahead.rest)
    if rest is None:
        return None
    value, met = rest[0], rest[1] | ahead.flags
    if not keep and len(ahead.rest) * _AROUND < len(bare) and ahead.list_in(value) is not None:
        return ahead, met
    return (value, met) if ahead.join(value) else read_value(bare)


@dataclass(frozen=True)
class Ahead:
    """The first records of a long list in `text`. `rest` is the text without them and the comma behind each: the same
    document with a shorter list, be it cut or damaged in what follows.

    `cuts` are the pieces read, (start, end, whether orjson alone reads all of it), `path` the keys that lead to the
    list, `records` what was read, if it was kept.
    """

    text: str
    cuts: tuple[tuple[int, int, bool], ...]
    records: list[Any] | None
    flags: frozenset[str]
    rest: str
    path: Keys
    lines = False

    @property
    def listed(self) -> bool:
        """Whether the value is a list itself."""
        return not self.path or type(self.path[0]) is int

    def list_in(self, value: Any) -> list[Any] | None:
        """The list in `value`, which `rest` gave; None where it has no such list."""
        for key in self.path:
            if type(key) is int:
                value = value[key] if type(value) is list and len(value) == key + 1 == 1 else None
            else:
                value = value.get(key) if type(value) is dict else None
        return value if type(value) is list else None

    def until(self, end: int) -> Ahead | None:
        """The same of the text up to `end`; None where that ends among the records."""
        if end < self.cuts[-1][1] + 1:
            return None
        return replace(self, text=self.text[:end], rest=self.rest[: len(self.rest) - len(self.text) + end])

    def join(self, value: Any) -> bool:
        """Puts the records in front of their list in `value`, which `rest` gave; False where that has no such list."""
        listed = self.list_in(value)
        if listed is not None:
            listed[:0] = self._read(self.cuts) if self.records is None else self.records
        return listed is not None

    def value(self) -> Any:
        """The value of all of the text, which was found to be one document."""
        whole = self._around()
        self.join(whole)
        return whole

    def values(self) -> list[Any]:
        """The one value of the text."""
        return [self.value()]

    def rows(self) -> list[Any]:
        """The items of a list; any other value is one row."""
        value = self.value()
        return value if self.listed else [value]

    def first(self) -> Any:
        """The first record."""
        return self._read(self.cuts[:1])[0]

    def short(self) -> Any:
        """The value with the first record only."""
        return self._with(self._around(), [self.first()])

    def runs(self) -> Iterator[tuple[Any, list[Any]]]:
        """The same in runs, one after the other: (a document that holds the run, the run itself).

        What stands around the list is all there in the first run; later ones have no other lists beside it.
        """
        whole = self._around()
        listed = self.list_in(whole)
        assert listed is not None
        last = listed[:]
        for cuts in (*_together(self.text, self.cuts), []):
            run = self._read(cuts) if cuts else last
            if run:
                yield self._with(whole, run), run
            del run
            whole = self._bare(whole)

    def _around(self) -> Any:
        found = read_value(self.rest)
        assert found is not None  # it was read before
        return found[0]

    def _read(self, cuts: Iterable[tuple[int, int, bool]]) -> list[Any]:
        records: list[Any] = []
        for start, end, plain in cuts:
            source = f"[{self.text[start:end]}]"
            found = (orjson.loads(source), None) if plain else read_value(source, len(self.path))
            assert found is not None
            records += found[0]
        return records

    def _with(self, whole: Any, run: list[Any], depth: int = 0) -> Any:
        """`whole` with `run` for its list. It shares all else."""
        if depth == len(self.path):
            return run
        key = self.path[depth]
        inner = self._with(whole[key], run, depth + 1)
        return [inner] if type(key) is int else {**whole, key: inner}

    def _bare(self, whole: Any, depth: int = 0) -> Any:
        """`whole` without the lists that stand beside the path."""
        if depth == len(self.path):
            return []
        way = self.path[depth]
        inner = self._bare(whole[way], depth + 1)
        if type(way) is int:
            return [inner]
        return {**{key: [] if type(value) is list else value for key, value in whole.items()}, way: inner}


def lists_records(text: str, start: int, end: int, piece: int = 0) -> bool:
    """Whether `read_ahead` may find something between `start` and `end`: a long list of objects begins near `start`."""
    return end - start > 2 * (piece or _PIECE) and first_record(text, start, end) is not None


def read_ahead(text: str, keep: bool = True, piece: int = 0) -> Ahead | None:
    """Reads the first records of a long list that begins near the start of `text`, as far as they are strict JSON.

    That is the first list of objects if most of the text stands there; else, unless they are to be kept (recovery asks
    often, and keeps them), the outermost list in which it does. The last records are left to `rest`. None for a text
    that is no longer than a few pieces (`piece`: characters of one), and where nothing could be read ahead.
    """
    piece = piece or _PIECE
    if len(text) <= 2 * piece:
        return None
    best: Ahead | None = None
    lists = list(islice(long_lists(text, keep), _LISTS))
    for near, count in ((True, False), (False, False)) if keep else ((True, False), (True, True), (False, True)):
        for path, start, between in lists if near else lists[:1]:
            ahead = _read_list(text, start, path, between, keep, near, piece, count)
            if ahead is not None and len(ahead.rest) * _AROUND < len(text):
                return ahead
            best = min(filter(None, (best, ahead)), key=lambda one: len(one.rest), default=None)
    return best


def _read_list(
    text: str, start: int, path: Keys, between: re.Pattern[str], keep: bool, near: bool, size: int, count: bool
) -> Ahead | None:
    """Reads the list ahead whose first item is at `start`. `near`: only if that one isn't very long; `count`: brackets
    may be counted from the first item on, not only from one further on."""
    records: list[Any] = []
    cuts: list[tuple[int, int, bool]] = []
    met: set[str] = set()
    at, stop = start, start + _NEAR if near else len(text)
    while piece := _piece(text, at, between, len(path), stop, size, count or bool(cuts and not keep)):
        value, flags, end = piece
        if keep:
            records += value
        met.update(flags or ())
        cuts.append((at, end, flags is None))
        at, stop = end + 1, len(text)  # past the comma
    if not cuts:
        return None
    return Ahead(text, tuple(cuts), records if keep else None, frozenset(met), text[:start] + text[at:], path)


def _piece(
    text: str, at: int, between: re.Pattern[str], above: int, stop: int, size: int, count: bool
) -> tuple[list[Any], frozenset[str] | None, int] | None:
    """Some items of a list from `at` on, their flags (None: orjson alone reads them), and where the last one ends.

    Objects in an item may begin as the items do. No brackets match where a piece ends among them: then they are
    counted, if they are to be. None where the list ends or `stop` comes before, or it is no strict JSON.
    """
    cut = between.search(text, at + size, stop)
    first = cut.start() + 1 if cut else -1
    for _ in range(_TRIES):
        if cut is None:
            break
        plain = read_plain(f"[{text[at : cut.start() + 1]}]", above)
        if plain is not None:
            return plain[0], None, cut.start() + 1
        cut = between.search(text, cut.end())
    found = read_value(f"[{text[at:first]}]", above) if first > at else None
    if found is None and count and len(text) - at > size:
        first = next_comma(text, at, at + size, min(stop, at + size + _NEAR))
        found = read_value(f"[{text[at:first]}]", above) if first > at else None
    return None if found is None else (found[0], found[1], first)


def read_lines(text: str) -> list[tuple[Any, int, int, tuple[str, ...]]] | None:
    """(value, start, end, flags) of each line, where every non-blank line is by itself one JSON object or array.

    `start` and `end` are offsets in `text`, blanks left out. None as soon as one line is something else.
    """
    found: list[tuple[Any, int, int, tuple[str, ...]]] = []
    for records, *_ in pieces_of_lines(text):
        if records is None:
            return None
        found += records
    return found


def long_lines(text: str) -> Lines | None:
    """The same of a text of LONG characters or more whose lines are all objects, which are not held; else None."""
    if len(text) < LONG:
        return None
    lines = Lines(text, starts=offsets(text), ends=offsets(text))
    for records, start, end, plain in pieces_of_lines(text):
        if records is None or not all(isinstance(record[0], dict | Pairs) for record in records):
            return None
        lines.cuts.append((start, end, plain))
        for _, first, last, met in records:
            if met:
                lines.met[len(lines.starts)] = met
            lines.starts.append(first)
            lines.ends.append(last)
    return lines


def pieces_of_lines(
    text: str,
) -> Iterator[tuple[list[tuple[Any, int, int, tuple[str, ...]]] | None, int, int, bool]]:
    """What `_read_lines` says of each piece of a text, and where the piece is; at once None if it can't be lines."""
    if text.lstrip()[:1] not in ("{", "[") or _OTHER_LINE.search(text):
        yield None, 0, 0, False
        return
    at = 0
    while at < len(text):
        end = text.find("\n", at + _PIECE) + 1 or len(text)
        records, plain = _read_lines(text[at:end], at)
        yield records, at, end, plain
        del records  # the next one is read now
        at = end


def offsets(text: str) -> array[int]:
    """An empty array for offsets in a text."""
    return array("I" if len(text) >> 32 == 0 else "Q")


@dataclass(frozen=True)
class Lines:
    """A text of very many lines, of which each is one JSON object; `cuts` are as in `Ahead`.

    `starts` and `ends` are the offsets of the objects, `met` the flags of those that have some.
    """

    text: str
    starts: array[int]
    ends: array[int]
    cuts: list[tuple[int, int, bool]] = field(default_factory=list)
    met: dict[int, tuple[str, ...]] = field(default_factory=dict)
    path: Keys = ()
    listed = False
    lines = True

    def value(self, start: int, end: int) -> Any:
        """The value of one line."""
        found = read_value(self.text[start:end])
        assert found is not None  # it was read before
        return found[0]

    def values(self) -> list[Any]:
        """The values of all lines."""
        return self._read(self.cuts)

    rows = values

    def first(self) -> Any:
        """The first value."""
        return self._read(self.cuts[:1])[0]

    def runs(self) -> Iterator[tuple[Any, list[Any]]]:
        """Runs of lines, as from `Ahead`; nothing stands around them."""
        for cuts in _together(self.text, self.cuts):
            run = self._read(cuts)
            yield run, run
            del run

    def _read(self, cuts: Iterable[tuple[int, int, bool]]) -> list[Any]:
        values: list[Any] = []
        for start, end, plain in cuts:
            text = self.text[start:end]
            if plain:
                values += orjson.loads("[" + ",".join(filter(str.strip, text.split("\n"))) + "]")
            else:
                values += [record[0] for record in _read_lines(text, start)[0] or ()]
        return values


_OTHER_LINE = re.compile(r"\n[^{\[\s]")
"""A line that starts with neither an opening bracket nor a blank."""

_FEW_LINES = 32
"""Lines that are read at once where a longer piece holds a line that orjson doesn't read exactly."""

_MARK = "\x7f"
_BETWEEN_LINES = f',"{_MARK}",'


def _together(text: str, cuts: Iterable[tuple[int, int, bool]]) -> Iterator[list[tuple[int, int, bool]]]:
    """The cuts of each run."""
    run: list[tuple[int, int, bool]] = []
    containers = 0
    for cut in cuts:
        more = text.count("{", *cut[:2]) + text.count("[", *cut[:2])
        if run and (cut[1] - run[0][0] > RUN or containers + more > CONTAINERS):
            yield run
            run, containers = [], 0
        run.append(cut)
        containers += more
    if run:
        yield run


def _read_lines(text: str, at: int) -> tuple[list[tuple[Any, int, int, tuple[str, ...]]] | None, bool]:
    """`read_lines` for a piece of a text, which stands at offset `at`, and whether orjson alone reads all of it."""
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
        return list(zip(values, starts, ends, repeat(()))), True
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
                return None, False
            if line[0] not in CLOSER or too_deep(value, line):
                return None, False
            found.append((value, start, end, flags(line, decoder)))
    return found, False


def at_once(documents: Sequence[str]) -> list[Any] | None:
    """The values of some JSON documents, read as one; None where one of them is none, or where that doesn't say."""
    if not documents or any(_MARK in one or ("\\" in one and "\\u007" in one) for one in documents):
        return None
    return _lines_at_once(documents, None)


def _lines_at_once(lines: Sequence[str], kinds: Collection[type] | None = (dict, list)) -> list[Any] | None:
    """The values of lines that hold no _MARK, each one value of these `kinds` that orjson reads exactly; else None.

    They are read as one list, with _MARK between. Where that comes out at every other place, no line was but a part of
    a value, or two.
    """
    source = f"[{_BETWEEN_LINES.join(lines)}]"
    try:
        data = source.encode()
        values = orjson.loads(data)
    except ValueError:  # not UTF-8, or no JSON for orjson
        return None
    if values[1::2] != [_MARK] * (len(lines) - 1):
        return None
    if kinds is not None and not set(map(type, values[::2])).issubset(kinds):
        return None
    return values[::2] if kept(data, values, 0) else None
