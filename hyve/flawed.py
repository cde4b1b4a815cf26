"""Lists of JSON records with flaws in them: all whole records, and what could not be read as text (H7, H8).

Rules:
- Strict JSON fails at the first flaw, so the brackets that are open there tell in which lists it stands. What is left
  out is the least that lets the innermost of these lists go on: one record, or what stands between two.
- A list goes on where an object like its others begins: by its indentation, or its first key, and by its keys. None is
  looked for beyond the place where an outer list goes on, so that no record gets what is another's.
- What is left out is told by its place and its reason (`Unread`) and stays text. A record that a repair reads for
  itself is no flaw any longer, and neither is a comma that is missing or the last of a list: these are repaired.
- A list that nothing ends is what stands before its flaw.
- Work is counted and bounded, in characters: the same text isn't read again and again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from hyve.brackets import ANY_BRACKET, NEXT_BRACKET, open_at
from hyve.exactjson import STRING, Decoder, flags, holds_pairs, too_deep
from hyve.kept import MAX_DEPTH
from hyve.longlists import BEGIN, FIRST_RECORD, first_record
from hyve.rawdecode import raw_decode


class Unread(NamedTuple):
    """What could not be read inside of a document: its half-open range of offsets in the text, and why."""

    start: int
    end: int
    reason: str


class Flawed(NamedTuple):
    """What was read of a flawed document, and where it ends. Without a value (None), `inner` is where a list in it
    begins that can be read by itself, or -1, and `elided` says that an ellipsis would have been left out."""

    value: Any
    end: int
    flags: tuple[str, ...]
    unread: tuple[Unread, ...]
    work: int
    inner: int = -1
    elided: bool = False


Repair = Callable[[str, int, int], "tuple[Any, tuple[str, ...]] | None"]
"""Reads one document between two offsets of a text by a repair: (value, flags), or None."""

_RECORD = 1 << 16
"""Characters of the longest record that is tried to be repaired by itself."""

_BLOCK, _LONGEST_BLOCK, _TRIES, _CLOSERS, _SEEN = 1 << 10, 1 << 16, 3, 64, 8
_FARTHEST, _SEPARATOR = 17, 64
_EACH, _PER_CHARACTER, _LEAST_WORK = 200, 24, 1 << 18

_BEHIND = re.compile(r"\s*+(?:,\s*+(?=\{)|\])")
_FIELD = re.compile(rf"\s*+,\s*+{STRING.pattern}\s*+:", re.DOTALL)
# A list's rows from the first on, one a line, up to its end, and such lists behind: they are no other documents.
_LIST = r"(?:[ \t]*+\{[^\n]*+(?:(?<=,)|(?<=,\r))\n)*+[ \t]*+\{[^\n]*+\n[ \t]*+\]"
_ROWS = re.compile(rf"{_LIST}(?:[^\n\[\]{{}}]*+\[\r?\n{_LIST})*+")
_WORDS_ONLY = re.compile(r'[^"\[\]{}]*+')
_NOTHING = re.compile(r"(?:\s|,|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_ROOT_END = re.compile(r'\]\s*+(?![,}\]":])')


class _List(NamedTuple):
    """A list of objects that is open where the text fails: where its bracket and its item that fails begin (-1: it
    fails between items), the brackets around it and its own, and how its items begin."""

    start: int
    item: int
    around: str
    blanks: str
    key: str


class _Elided(Exception):
    """What was left out by the text's writer is no flaw."""


def read_flawed(text: str, start: int, limit: int, end: int, repair: Repair, ellipses: bool) -> Flawed:
    """Reads the document with lists of records at `start`, which strict JSON can't read.

    What is left out ends before `limit`, where other text may begin, unless a record of a list over several lines is
    indented like those before; nothing is read beyond `end`. An ellipsis is left out only if `ellipses` may be.
    """
    if limit - start <= BEGIN and not text[text.rfind("\n", 0, start) + 1 : start].strip():
        rows = _ROWS.match(text, limit, end) if text[start:limit].rstrip()[-1:] == "[" else None
        limit = rows.end() if rows else limit
    if first_record(text, start, limit) is None:
        return Flawed(None, start, (), (), 0)
    reader = _Reader(text, start, limit, end, repair, ellipses)
    try:
        return reader.read() or Flawed(None, start, (), (), reader.work)
    except _Elided:
        return Flawed(None, start, (), (), reader.work, elided=True)


class _Reader:
    def __init__(self, text: str, start: int, limit: int, end: int, repair: Repair, ellipses: bool) -> None:
        self.text, self.start, self.limit, self.end = text, start, limit, end
        self.repair, self.ellipses = repair, ellipses
        self.decoder = Decoder()
        self.cuts: list[tuple[int, int, str]] = []  # what is left out, and what stands there instead
        self.unread: list[Unread] = []
        self.met: set[str] = set()
        self.keys: dict[int, set[str] | None] = {}
        self.rowless: set[int] = set()  # lists no further item of which begins a line
        self.ends: dict[int, int] = {}  # where lists of an item a line end
        self.lines: dict[int, int] = {}  # where the line ends that a list begins on
        self.work = 0
        self.mended = ""
        self.reached = start

    def read(self) -> Flawed | None:
        failed = -1
        while True:
            value, stop, at = self._decode()
            if at < 0:
                return self._flawed(value, self._place(stop), self.mended[:stop])
            if at <= failed or self._spent():
                return self._before(self._lists(at), at)
            failed = at
            lists = self._lists(at)
            if not lists:
                return self._whole_list(at)
            before = len(self.cuts), self.cuts[-1:]
            self._mend(lists, self._place(at))
            if (len(self.cuts), self.cuts[-1:]) == before:
                return self._before(lists, at)
            failed = -1

    def _whole_list(self, failed: int) -> Flawed | None:
        """The first list of objects, where all of it stands before the offset where the text fails outside of it."""
        head = None if self.cuts else first_record(self.text, self.start, self._place(failed))
        return head and Flawed(None, self.start, (), (), self.work, head.start("open"))

    def _spent(self) -> bool:
        return self.work > _PER_CHARACTER * (self.reached - self.start) + _LEAST_WORK

    def _flawed(self, value: Any, end: int, source: str) -> Flawed | None:
        if too_deep(value, source):
            return None
        met = ["repaired"] * ("repaired" in self.met) + ["unparsed"] * bool(self.unread)
        met += sorted({*self.met, *flags(source, self.decoder)} - {"repaired"})
        return Flawed(value, end, tuple(dict.fromkeys(met)), tuple(self.unread), self.work)

    def _decode(self) -> tuple[Any, int, int]:
        """What `raw_decode` says of the text without what is left out, offsets being those there (`mended`)."""
        pieces, at = [], self.start
        for begin, end, instead in self.cuts:
            pieces += [self.text[at:begin], instead]
            at = end
        head = "".join(pieces)
        size = max(_BLOCK, at - self.start)
        while True:
            stop = min(self.end, at + size)
            self.mended = head + self.text[at:stop]
            self.work += len(self.mended)
            value, end, failed = raw_decode(self.decoder, self.mended, 0)
            cut = failed > len(self.mended) - 64 or (
                self.mended[failed : failed + 1] == '"' and not STRING.match(self.mended, failed)
            )
            if failed < 0 or not cut or stop == self.end:
                self.reached = max(self.reached, self._place(end if failed < 0 else failed))
                return value, end, failed
            size *= 8

    def _place(self, offset: int) -> int:
        """The offset in the text of one in `mended`."""
        at = self.start
        for begin, end, instead in self.cuts:
            if offset < begin - at:
                break
            offset -= begin - at
            if offset < len(instead):
                return begin
            offset -= len(instead)
            at = end
        return at + offset

    def _lists(self, failed: int) -> list[_List]:
        """The lists of objects that are open at an offset of `mended`, outermost first."""
        mended = self.mended
        self.work += failed
        stack = open_at(mended, 0, failed, deepest=MAX_DEPTH)
        around = "".join("[" if mended[place] == "[" else '{"":' for place in stack)
        length, found = 0, []
        for place, inner in pairwise([*stack, -1]):
            length += 1 if mended[place] == "[" else 4
            head = FIRST_RECORD.match(mended, place) if mended[place] == "[" else None
            if head and (inner < 0 or mended[inner] == "{"):
                item = self._place(inner) if inner >= 0 else -1
                found.append(_List(self._place(place), item, around[:length], head["blanks"], head["key"]))
        return found

    def _mend(self, lists: list[_List], failed: int) -> None:
        """Leaves out what lets one of the lists go on, and what else is wrong in it further on."""
        last = lists[-1]
        begun = last.item if last.item >= 0 else self._end_before(last, failed)
        if begun < 0:
            return
        after, bounds = begun + (last.item >= 0), [-1]
        for one in lists:
            found = self._next(one, after, bounds[-1])
            bounds.append(found if found >= 0 else bounds[-1])
        for one, bound, place in zip(reversed(lists), bounds[-2::-1], bounds[:0:-1], strict=True):
            if place != bound:
                chosen = one
                break
            if self._close(one, one.item, begun if one is last and one.item < 0 else -1, bound):
                return
        else:
            return
        self._leave_out(chosen.item, begun if chosen.item < 0 else -1, place)
        while not self._spent():
            end, item = self._whole(chosen, place)
            behind = _BEHIND.match(self.text, end) if item < 0 else None
            if behind is not None:  # the list's end
                return
            place = self._next(chosen, end if item < 0 else item + 1, -1)
            if place < 0:
                self._close(chosen, item, end, -1)
                return
            self._leave_out(item, end, place)

    def _end_before(self, one: _List, failed: int) -> int:
        """Where the last item of a list ends before the offset where the text fails between two."""
        end = self.text.rfind("}", one.start, failed) + 1
        return end if end and _WORDS_ONLY.fullmatch(self.text, end, failed) else -1

    def _next(self, one: _List, at: int, bound: int) -> int:
        """Where, from `at` on, the next item of a list begins, -1 for nowhere before `bound` (-1: as far as may be)."""
        text, wanted = self.text, self._keys(one)
        seen: list[tuple[int, set[str]]] = []  # of a list whose first item is flawed: the largest are its items
        for place in self._starts(one, at, bound, wanted is not None):
            if self._left(at, place) >= 0:
                break  # the rest is of another list in the same object
            value, end, failed = raw_decode(self.decoder, text, place)
            self.work += _EACH + (failed if failed >= 0 else end) - place
            if failed < 0 and isinstance(value, dict):
                if wanted is None:
                    seen.append((place, set(value)))
                elif _alike(wanted, set(value)):
                    self.reached = max(self.reached, end)
                    return place
            if len(seen) == _SEEN or self._spent():
                break
        largest = max((keys for _, keys in seen), key=len, default=set())
        return next((place for place, keys in seen if _alike(largest, keys)), -1)

    def _left(self, at: int, stop: int) -> int:
        """Where a list ends that is open at `at`, before `stop`, if another field of the same object follows; else -1.

        Brackets tell it, those outside of strings, or, where the flaw is one of quotes, all.
        """
        ends = (self._list_end(at, stop, brackets) for brackets in (NEXT_BRACKET, ANY_BRACKET))
        return next((end for end in ends if end >= 0 and _FIELD.match(self.text, end + 1)), -1)

    def _list_end(self, at: int, stop: int, brackets: re.Pattern[str] = NEXT_BRACKET) -> int:
        """Where the bracket is that ends a list which is open at `at`, in an item or behind one, as `brackets` tell; -1
        for nowhere before `stop`."""
        depth = int(self.text[at - 1] == "{")
        stop = min(stop, at + _RECORD)
        self.work += (stop - at) // 8
        while match := brackets.match(self.text, at, stop):
            at = match.end()
            bracket = self.text[at - 1]
            if bracket == "]" and depth <= 1:
                return at - 1
            depth += 1 if bracket in "[{" else -1
        return -1

    def _keys(self, one: _List) -> set[str] | None:
        """The keys of the first item of a list; None where that is flawed."""
        if one.start not in self.keys:
            first = one.start + 1 + len(one.blanks)
            value, _, failed = raw_decode(self.decoder, self.text, first)
            self.keys[one.start] = set(value) if failed < 0 and isinstance(value, dict) else None
        return self.keys[one.start]

    def _starts(self, one: _List, at: int, bound: int, any_key: bool) -> Iterator[int]:
        """Where items of a list may begin. `any_key`: with another key than the first one, too."""
        text, limit, end = self.text, self.limit, self.end
        last = self._rows_end(one, at)
        stops = [place for place in (bound, last) if place >= 0]
        limit, end = min([limit, *stops]), min([end, *stops])
        limit = self._line_limit(one, at, limit)
        if "\n" in one.blanks and one.start not in self.rowless:
            indent = one.blanks.rpartition("\n")[2]
            stop = end if indent or last >= 0 or limit == self.limit else limit
            match = None
            for match in re.compile(rf'\n{re.escape(indent)}(?=\{{\s*+["}}])').finditer(text, at, stop):
                yield match.end()
            if match is None and stop == self.end and last < 0:
                self.rowless.add(one.start)
        first = rf"\{{\s*+{re.escape(one.key)}\s*+:"
        for match in re.compile(rf'{first}|\}}\s*+,\s*+(?=\{{\s*+")' if any_key else first).finditer(text, at, limit):
            place = match.start() if match[0][0] == "{" else match.end()
            if text[max(at, place - 64) : place].rstrip()[-1:] not in ("[", ":"):
                yield place

    def _rows_end(self, one: _List, at: int) -> int:
        """Where, from `at` on, a list ends that has an item a line: at a bracket on the line behind one; else -1."""
        if "\n" not in one.blanks:
            return -1
        indent = one.blanks.rpartition("\n")[2]
        found = self.ends.get(one.start, 0)
        if 0 <= found < at:
            end = re.compile(rf"\n{re.escape(indent)}\{{[^\n]*+\n[ \t]{{0,{len(indent)}}}\]")
            match = end.search(self.text, max(one.start, at - len(indent) - 2), self.end)
            found = self.ends[one.start] = match.end() - 1 if match else -1
        return found

    def _line_limit(self, one: _List, at: int, limit: int) -> int:
        """Up to where a list goes on from `at` that stands on one line so far: its line's end, at most `limit`."""
        if one.start not in self.lines:
            self.lines[one.start] = self.text.find("\n", one.start, self.end)
        line = self.lines[one.start]
        return min(line, limit) if line >= at else limit

    def _whole(self, one: _List, at: int) -> tuple[int, int]:
        """Reads on in a list from the item at `at`: (where the last whole item ends, where one begins that is none or
        -1 where none begins behind it)."""
        text, size, last = self.text, _BLOCK, at
        while True:
            before = text[max(one.start, at - _SEPARATOR) : at]
            blanks = before[len(before.rstrip()) :]
            between = re.compile(rf"\}}\s*+,{re.escape(blanks)}(?=\{{\s*+{re.escape(one.key)})")
            cut, begun, stop = None, at + size, min(self.end, at + _FARTHEST * size)
            for _ in range(_TRIES):
                found = between.search(text, begun, stop)
                self.work += ((found.end() if found else max(begun, stop)) - at) // 8
                if found is None:
                    break
                try:
                    orjson.loads(f"[{text[at : found.start() + 1]}]")
                    cut = found
                    break
                except ValueError:
                    begun = found.end()
            if cut is not None:
                last, at = cut.start() + 1, cut.end()
                size = min(2 * size, _LONGEST_BLOCK)
                continue
            stop, size = at + 2 * size, _BLOCK
            while at < stop:
                _, end, failed = raw_decode(self.decoder, text, at)
                self.work += _EACH + (failed if failed >= 0 else end) - at
                self.reached = max(self.reached, at)
                if failed >= 0:
                    return last, at
                behind, last = _BEHIND.match(text, end), end
                if behind is None or text[behind.end() - 1] == "]":
                    return last, -1
                at = behind.end()

    def _leave_out(self, item: int, end: int, place: int) -> None:
        """Leaves out the item at `item` (-1: what stands behind the `end` of one) for another one to follow at
        `place`."""
        if item < 0:
            self._between(end, place, ",")
            return
        stop = len(self.text[item:place].rstrip(" \t\r\n"))
        stop = item + len(self.text[item : item + stop].removesuffix(",").rstrip(" \t\r\n"))
        self._cut(item, place, self._repaired(item, stop, ", "), item, stop, "a record that is no JSON")

    def _between(self, end: int, place: int, instead: str) -> None:
        gap = self.text[end:place]
        if _NOTHING.fullmatch(gap) and gap.count(",") < 2:
            self._cut(end, place, instead)
            self.met.add("repaired")
            return
        before = len(gap) - len(gap.lstrip())
        if gap[before : before + 1] == ",":
            before += 1 + len(gap[before + 1 :]) - len(gap[before + 1 :].lstrip())
        behind = len(gap.rstrip())
        if behind - 1 > before and gap[behind - 1] == ",":
            behind = len(gap[: behind - 1].rstrip())
        reason = "a comma too many" if not gap[before:behind].strip(", \t\r\n") else "text between two records"
        self._cut(end, place, instead, end + before, end + behind, reason)

    def _repaired(self, start: int, end: int, behind: str) -> str:
        """The record between two offsets as JSON, if a repair reads it, and what goes `behind` it; else ""."""
        if end - start > _RECORD:
            return ""
        self.work += 8 * (end - start)
        found = self.repair(self.text, start, end)
        if found is None or not isinstance(found[0], dict) or holds_pairs(found[0]):
            return ""
        self.met.update(found[1], ("repaired",))
        return json.dumps(found[0]) + behind

    def _cut(self, start: int, end: int, instead: str, begin: int = 0, stop: int = 0, reason: str = "") -> None:
        while self.cuts and self.cuts[-1][0] >= start:
            self.cuts.pop()
        while self.unread and self.unread[-1].start >= start:
            self.unread.pop()
        self.cuts.append((start, end, instead))
        if reason and not instead.strip(", "):
            unread = self.text[begin:stop]
            if not self.ellipses and ("..." in unread or "…" in unread):
                raise _Elided
            self.unread.append(Unread(begin, stop, reason))

    def _close(self, one: _List, item: int, end: int, bound: int) -> bool:
        """Leaves out the last item of a list (`item` -1: what stands behind the `end` of it) if the list ends behind,
        before `bound`."""
        text = self.text
        begun = item if item >= 0 else end
        if begun < 0:
            return False
        limit = self._line_limit(one, begun, self.limit if bound < 0 else min(self.limit, bound))
        behind = item + 1 if item >= 0 else end
        left = self._left(behind, limit)
        begun = left if left >= 0 else max(begun, self._list_end(behind, limit))
        place, last = -1, self._rows_end(one, begun)
        for _ in range(_CLOSERS):
            if 0 <= last < limit:
                place = last
                break
            place = text.find("]", max(place + 1, begun), limit)
            if place < 0 or self._spent():
                return False
            if one.around == "[":
                if _ROOT_END.match(text, place):
                    break
                continue
            rest = one.around + text[place : place + BEGIN]
            _, _, failed = raw_decode(self.decoder, rest, 0)
            self.work += len(rest)
            if failed < 0 or failed > len(rest) - 64:
                break
        else:
            return False
        if item < 0:
            self._between(end, place, "")
            return True
        before = len(text[one.start : item].rstrip(" \t\r\n"))
        before = one.start + len(text[one.start : one.start + before].removesuffix(",").rstrip(" \t\r\n"))
        stop = item + len(text[item:place].rstrip())
        repaired = self._repaired(item, stop, "")
        if not repaired and text[before - 1] == "[":
            return False  # nothing of the list would be left
        comma = "," if repaired and text[before - 1] != "[" else ""
        self._cut(before, place, comma + repaired, item, stop, "a record that is no JSON")
        return True

    def _before(self, lists: list[_List], failed: int) -> Flawed | None:
        """The innermost list with several whole items, as far as they go."""
        text = self.text
        for one in reversed(lists):
            begun = one.item if one.item >= 0 else self._end_before(one, self._place(failed))
            end = one.start + len(text[one.start : max(begun, one.start)].rstrip(" \t\r\n,"))
            if text[end - 1 : end] != "}":
                continue
            if one.around != "[":
                return Flawed(None, one.start, (), (), self.work, one.start)
            while self.cuts and self.cuts[-1][1] >= end:
                self.cuts.pop()
            self.unread = [unread for unread in self.unread if unread.end <= end]
            at, pieces = self.start, []
            for begin, stop, instead in self.cuts:
                pieces += [text[at:begin], instead]
                at = stop
            source = "".join([*pieces, text[at:end], "]"])
            value, _, wrong = raw_decode(self.decoder, source, 0)
            self.work += len(source)
            if wrong >= 0 or len(value) < 2:
                return None
            found = self._flawed(value, end, source)
            return found and found._replace(flags=tuple(dict.fromkeys([*found.flags, "unparsed"])))
        return None


def _alike(wanted: set[Any], keys: set[Any]) -> bool:
    """Whether an object of these keys may be an item of a list of others."""
    return 2 * len(wanted & keys) >= max(len(wanted), len(keys))
