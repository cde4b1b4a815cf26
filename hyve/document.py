"""Text -> Document: where the structured parts stand, their values, and what had to be mended (H5-H8).

Rules:
- Strict first. A text is one JSON document, or lines of them, or one table; else it is scanned for documents, and what
  stands between them for tables. What is no strict JSON goes through `hyve.recovery`.
- Nothing is repaired in silence: each part carries flags, and text that is no part stays text.
- What begins like a JSON document and can't be read stays text, and the text is flagged `unparsed`.
- A document that ends early keeps what is whole; the token that was cut is told (`partial_tail`) and never a value.
- Colour codes are looked past: a part among them is flagged `ansi`, and its span is the one in the text as it came.
- Linear time: a failed candidate moves the scan past the place where it failed, and recovery has a work allowance.

Values are JSON's: dict, list, str, int (any size), float, bool, None; `Pairs` is an object that no dict can hold.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from hyve import delimited, heads, strictjson, tables
from hyve.again import CONTROLS, STRICT, Way
from hyve.ansi import Codes
from hyve.collector import collector_paused
from hyve.encodings import decode
from hyve.escaped import ESCAPED, ESCAPED_START, embedded, read_escaped
from hyve.freetext import FreeText, outside
from hyve.parts import (
    ANNOTATION,
    Kind,
    LineParts,
    ManyParts,
    Part,
    Spans,
    Syntax,
    holds_containers,
    kinds_of,
    parts_of,
    syntaxes,
)
from hyve.rawdecode import raw_decode
from hyve.recovery import BEGUN, LIKELY, NEAR, REST_BLANK, Reading, alike, cut_large, read_cut, read_root, recover
from hyve.strictjson import Decoder, too_deep

__all__ = ["Document", "Part", "Syntax", "parse"]

_ANNOTATION = 256
"""Characters before a document in which the annotation's name stands that it is the value of."""
_PROSE_LINES, _PROSE_CHARS = 20, 4_000
_FENCE = re.compile(r"\s*```[\w+.-]*\s*\Z")


@dataclass(frozen=True)
class Document:
    """A parsed text: its parts in source order, and the lines of short free text around them, as (number, text).

    A line is whole, with the documents that stand in it; of one on which a document of several lines begins or ends it
    is what stands before or behind that. Long free text (logs) is itself a part of syntax `lines`, the last one, whose
    span is the whole text. `prose` is short free text without documents and code fences. `flags` are those of the whole
    text and of all parts.
    """

    text: str
    parts: Sequence[Part]
    lines: tuple[tuple[int, str], ...] = ()
    flags: tuple[str, ...] = ()
    name: str = ""
    prose: str = ""

    @property
    def syntaxes(self) -> Sequence[str]:
        """The syntax of each part."""
        return syntaxes(self.parts)


@collector_paused()
def parse(source: str | bytes | bytearray | memoryview, name: str = "") -> Document:
    """Finds and reads every structured part of `source`.

    `name` names the root table in the store (a file's stem, say). Raises InputError for binary data.
    """
    text, flags = decode(source, name)
    parts: ManyParts | LineParts | list[Part] = []
    lines: tuple[tuple[int, str], ...] = ()
    prose = ""
    if text.strip():
        parts = _whole(text) or _found(text, flags)
        if isinstance(parts, LineParts):
            flags += ["concatenated"] if len(parts) > 1 else []
            flags += [flag for met in parts.lines.met.values() for flag in met]
            return Document(text, parts, (), tuple(dict.fromkeys(flags)), name)
        spans = Spans(parts)
        rest = list(islice(outside(text, spans), _PROSE_LINES + 1))
        if len(rest) > _PROSE_LINES or sum(len(line) for _, line, _ in rest) > _PROSE_CHARS:
            free = FreeText(text, spans)
            value = free if len(text) >= strictjson.LONG else free.value()
            parts.append(Part(value, (0, len(text)), "lines", ("ansi",) if "\x1b[" in text else ()))
        else:
            lines = tuple((number, line) for number, line, pieces in rest if not all(map(_FENCE.match, pieces)))
            prose = "\n".join(piece for *_, pieces in rest for piece in pieces if not _FENCE.match(piece))
            flags.extend(["ansi"] if any("\x1b[" in line for _, line in lines) else [])
        kinds = kinds_of(parts)
        if sum(count for (syntax, _), count in kinds if syntax == "json") > 1:
            flags.append("concatenated")
        flags.extend(flag for (_, met), _ in kinds for flag in met)
    found = parts if isinstance(parts, ManyParts) else tuple(parts)
    return Document(text, found, lines, tuple(dict.fromkeys(flags)), name, prose)


_LINE_OPENS = re.compile(r"^[ \t]*+[{\[](?=\s*[\"{\[])", re.MULTILINE)


def _whole(text: str) -> list[Part] | ManyParts | LineParts | None:
    """The parts of a text that is strict JSON, or lines of it, or a table, from its start to its end."""
    start = len(text) - len(text.lstrip())
    if text[start] in "{[":
        read = strictjson.read(text, keep=False)
        if read is not None:
            return [Part(read[0], (start, len(text.rstrip())), "json", tuple(sorted(read[1])))]
        lines = strictjson.long_lines(text)
        return LineParts(lines) if lines is not None else _lines(text, 0, len(text))
    table = delimited.read(text, keep=False)
    if table is None:
        return _scalars(text)
    decoder = Decoder()
    if any(raw_decode(decoder, text, match.end() - 1)[2] < 0 for match in islice(_LINE_OPENS.finditer(text), 50)):
        return None  # lines of JSON between which commas happen to agree
    return [Part(table.long or table.rows, (table.start, table.end), table.syntax, table.flags, table.tail)]


def _lines(text: str, start: int, end: int) -> list[Part] | ManyParts | None:
    """The parts of a piece of text whose lines are each one object or list; None where some are not."""
    found = parts_of(text)
    for records, *_ in strictjson.pieces_of_lines(text[start:end]):
        if records is None:
            return None
        for value, a, b, flags in records:
            found.append(Part(value, (start + a, start + b), "json", flags, way=STRICT))
    return found


_SCALAR_LINE = re.compile(
    r"""^[ \t]*+(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?
    |"(?![\s\\"]{0,64}+[{\[])(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"
    |true|false|null|-?Infinity|NaN)[ \t\r]*+$""",
    re.MULTILINE | re.VERBOSE,
)
_FILLED_LINE = re.compile(r"^[^\S\n]*+[^\s]", re.MULTILINE)
_LEAST_SCALARS, _OTHERS, _TOGETHER = 3, 10, 1 << 10
"""Scalars on lines are values where there are so many, and so many for each other line; how many are read at once."""
_SCALAR = Kind("json", (), STRICT, False, False)


def _scalars(text: str) -> list[Part] | ManyParts | None:
    """The parts of a text of which most lines are each one scalar of JSON; the other lines stay text."""
    first = list(islice(_FILLED_LINE.finditer(text), 2 * _OTHERS))
    if sum(_SCALAR_LINE.match(text, match.start()) is not None for match in first) * 2 < len(first):
        return None
    count = sum(1 for _ in _SCALAR_LINE.finditer(text))
    if count < _LEAST_SCALARS or (sum(1 for _ in _FILLED_LINE.finditer(text)) - count) * _OTHERS > count:
        return None
    found = parts_of(text)
    matches = _SCALAR_LINE.finditer(text)
    while spans := [match.span(1) for match in islice(matches, _TOGETHER)]:
        if isinstance(found, ManyParts) and strictjson.at_once([text[start:end] for start, end in spans]) is not None:
            found.extend(_SCALAR, spans)
            continue
        for start, end in spans:
            read = strictjson.read(text[start:end])
            assert read is not None  # the pattern is JSON's grammar
            found.append(Part(read[0], (start, end), "json", tuple(sorted(read[1])), way=STRICT))
    return found


def _found(text: str, flags: list[str]) -> list[Part] | ManyParts:
    """The parts of free text. `flags` takes what is to be said of the whole text."""
    codes = Codes(text) if "\x1b" in text else None
    plain = codes.plain if codes else text
    met: set[str] = set()
    parts = tables.with_tables(plain, parts_of(plain, _Scan(plain, met).parts()))
    if heads.begins_inside(plain):
        met.add("unparsed")
    flags.extend(sorted(met))
    if codes and plain is not text:
        parts = parts_of(text, codes.moved(parts))
    return parts_of(text, _annotations(text, parts)) if _LAST_APPLIED in text else parts


_LAST_APPLIED = "last-applied-configuration"
_ANNOTATES = re.compile(rf"{_LAST_APPLIED}[\"']?:[ \t]*+(?:[|>][-+\d]{{0,2}}+)?\s*+[\"']?\Z")


def _annotations(text: str, parts: Sequence[Part]) -> Iterator[Part]:
    """The parts; one that is what was applied to a cluster once, as kubectl keeps it beside an object, is flagged."""
    for part in parts:
        before = text[max(part.span[0] - _ANNOTATION, 0) : part.span[0]]
        applied = part.syntax != "lines" and _LAST_APPLIED in before and _ANNOTATES.search(before)
        yield part.but(flags=(*part.flags, ANNOTATION)) if applied else part


# A bracket that may begin strict JSON, told by the next tokens; then one that recovery may read. As most brackets of a
# text begin nothing, each token that is looked at here saves the decoder's failures.
_STRICT = r"""(?P<strict>(?<=\{)\s*+(?:\}|"(?:[^"\\]|\\.)*+(?:"\s*+(?:\Z|:(?!\s*+
        (?:[\w.+-]++|"(?:[^"\\]|\\.)*+")\s*+(?:,\s*+[^"\s]|[^,}\s])))|\\?\Z))
    |(?<=\[)\s*+(?:\]|\{\s*+["}]|\[|"(?:[^"\\]|\\.)*+(?:"\s*+(?:[,\]]|\Z)|\\?\Z)
        |-?\d[\d.eE+-]*+\s*+(?:[,\]]|\Z)|-?(?:null|true|false|NaN|Infinity)\b))"""
_OPEN_STRICT = re.compile(rf"[{{\[]{_STRICT}", re.VERBOSE | re.DOTALL)
_OPEN = re.compile(rf"[{{\[](?:{_STRICT}|{NEAR}|{ESCAPED})", re.VERBOSE | re.DOTALL)
# Empty brackets and lists of scalars, one behind the other on a line: they are no data there.
_FLAT_ITEM = r"""(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+|true|false|null|"[^"\\\x00-\x1f]*+")\s*+"""
_FLAT_ONE = rf"(?:\{{\s*+\}}|\[\s*+(?:{_FLAT_ITEM}(?:,\s*+{_FLAT_ITEM})*+)?+\])"
_FLAT = re.compile(rf"({_FLAT_ONE})(?:[ \t]*+{_FLAT_ONE})*+", re.ASCII)
_EACH_FLAT = re.compile(_FLAT_ONE, re.ASCII)
# But they are among documents, one behind the other, where nothing else stands on the line.
_GAP = re.compile(r"[ \t]*+,?[ \t]*+")
_FARTHEST = 256  # blanks are looked at once more for each bracket behind them
_ONE_MORE = re.compile(r"[ \t]*+,?[ \t]*+(?:[{\[]|\r?(?:\n|\Z))")
_CLOSERS = re.compile(r"[ \t]*+[\]}][\]} \t\r]*+(?:\n|\Z)")
_LAST_CLOSERS = re.compile(r"\s*+[\]}][\]}\s]*+\Z")
"""Closers too many behind a document, up to the end of its line, and behind one with which the text begins."""
# What may begin a document at the start of a line, besides a bracket: a tuple, a call, a string that holds one.
_ROOT = re.compile(
    r"""[ \t]*+(?:(?P<tuple>\((?=\s*+(?:["'({\[]|-?\d|None|True|False|b["'])))
    |(?P<call>(?:[A-Za-z_]\w*+\.)*+(?:(?:OrderedDict|defaultdict|Counter|deque|array|frozenset|set|dict)\(
        |[A-Z]\w*+\((?=\w+=)))
    |(?P<string>"(?=[\s\\"]{0,64}+[{\[])))""",
    re.VERBOSE,
)
_ROOT_LINE = re.compile(rf"\n{_ROOT.pattern}", re.VERBOSE)
_LINE_COMMA = re.compile(r"[ \t]*+,(?=[ \t\r]*+(?:\n|\Z))")
_CONTROLS = frozenset(map(chr, range(32)))
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_JSON_LINES = re.compile(r"(?:[{\[][^\n]*+\n){2,}+")


_EMBEDDED = Way(lambda source: (embedded(source),))
_ESCAPED = Way(lambda source: read_escaped(source, 0))
_ALLOWANCE = 8, 4 << 20
"""Fruitless work of recovery that a text may cost: for each of its characters, and beside."""
_LOOKED, _MATCHED, _CUT = 8, 4, 8
"""Characters in which lines are looked for that cost as much as one that is read; what one costs in which brackets are
matched, and what one of a line that is no cut record."""


class _Scan:
    """One pass over a text for its documents. `met` takes what is to be said of the whole text."""

    def __init__(self, text: str, met: set[str]) -> None:
        self.text = text
        self.start, self.end = len(text) - len(text.lstrip()), len(text.rstrip())
        self.met = met
        self.decoder = Decoder()
        self.with_controls = Decoder(strict=False)
        self.allowance = _ALLOWANCE[0] * len(text) + _ALLOWANCE[1]
        self.fences = (
            [match.end() - 3 for match in re.finditer("^[ \t]*+```", text, re.MULTILINE)] if "```" in text else []
        )
        self.line_start = self.looked = self.tried = 0
        self.row = -1  # where the last document ends that has nothing but documents before it on its line
        self.first, self.recover = True, partial(recover, alike(), text)
        self.head = -1  # the head of a log line that was found last
        self.cut = -1, ""  # the line behind a record that was cut, and how that began
        self.alone = -1  # and the line with an object that is no row of a list
        self.pieces = heads.pieces_of_lines(text)[::-1]  # the last first

    def parts(self) -> Iterator[Part]:
        text, at = self.text, 0
        roots = self._roots()
        root = next(roots, None)
        opens, match, searched = _OPEN, None, False
        while True:
            if self.allowance <= 0 and opens is _OPEN:
                opens, searched = _OPEN_STRICT, False
                if "too_deep" not in self.met and LIKELY.search(text, at):
                    self.met.add("unparsed")
            if not searched or (match is not None and match.start() < at):
                match, searched = opens.search(text, at), True  # the next one, until the scan is beyond it
            start = len(text) if match is None else match.start()
            while self.pieces and self.pieces[-1][1] <= start:
                self.pieces.pop()
            if match is not None and self.pieces and self.pieces[-1][0] <= start:
                at = self.pieces[-1][1]
                continue
            while root is not None and root < at:
                root = next(roots, None)
            if root is not None and root <= start:
                part, at = self._root(root), root
                root = next(roots, None)
                if part is not None:
                    at = part.span[1]
                    yield part
            elif match is None:
                return
            else:
                first = self._begins_line(start)
                if first and start >= self.tried and (found := self._lines(start)):
                    yield from found
                    at = found[-1].span[1]
                    continue
                flat = _FLAT.match(text, start)
                if flat and not (first and REST_BLANK.match(text, flat.end(1))):
                    at = flat.end()  # not even a list that is alone on its line
                    if self._in_row(start) and _ONE_MORE.match(text, at):
                        yield from self._flat(start, at)
                        self.row = at
                    continue
                part, at = self._document(start, first, match["strict"] is not None)
                if part is not None:
                    if first and (comma := _LINE_COMMA.match(text, at)):  # of lines that were a list's
                        at = comma.end()
                        part = part.but(span=(start, at), flags=tuple(dict.fromkeys(("repaired", *part.flags))))
                    self.row = at if first or self._in_row(start) else -1
                    if self.row >= 0 and (
                        _CLOSERS.match(text, at) or (start == self.start and _LAST_CLOSERS.match(text, at))
                    ):
                        self.met.add("unparsed")
                    yield part
                elif "too_deep" not in self.met and (first or text[start - 1] in " \t:=") and BEGUN.match(text, start):
                    self.met.add("unparsed")

    def _in_row(self, start: int) -> bool:
        """Whether nothing but documents stands on the line before the bracket at `start`, which is not the first."""
        if self.row < 0 or start - self.row > _FARTHEST:
            return False
        gap = _GAP.match(self.text, self.row)
        return gap is not None and gap.end() == start

    def _flat(self, start: int, end: int) -> Iterator[Part]:
        """The empty objects and lists of scalars that stand side by side."""
        for match in _EACH_FLAT.finditer(self.text, start, end):
            if (read := strictjson.read(match[0])) is not None:
                yield Part(read[0], match.span(), "json", tuple(sorted(read[1])), way=STRICT)

    def _roots(self) -> Iterator[int]:
        text = self.text
        if match := _ROOT.match(text):
            yield match.start(match.lastgroup or 0)
        for match in _ROOT_LINE.finditer(text):
            yield match.start(match.lastgroup or 0)

    def _root(self, start: int) -> Part | None:
        """A tuple, a call or a string of a document that is alone on its lines."""
        if self.allowance < 0:
            return None
        if self.text[start] == '"':
            string = _JSON_STRING.match(self.text, start)
            if string is None or not REST_BLANK.match(self.text, string.end()):
                return None
            value = embedded(string.group())
            return Part(value, string.span(), "json", ("escaped",), way=_EMBEDDED) if value is not None else None
        reading, work, *_ = read_root(self.text, start, len(self.text))
        self.allowance -= work
        return _part(start, reading) if reading else None

    def _lines(self, start: int) -> Sequence[Part]:
        """The documents of the lines that begin like documents from here on, where each line is one."""
        if not (match := _JSON_LINES.match(self.text, start)):
            return []
        self.tried = match.end()  # each line is looked at once
        return _lines(self.text, *match.span()) or []

    def _document(self, start: int, first: bool, strict: bool) -> tuple[Part | None, int]:
        """(the document at a bracket or None, where the scan goes on). `first`: it begins its line."""
        text, failed = self.text, start
        if self.first:
            self.first = False  # one that the end of the text cuts need not be read to there before
            if strictjson.lists_records(text, start, len(text)) and (large := cut_large(text, start, len(text))):
                return _part(start, large), large.end
        if strict:
            value, end, failed = raw_decode(self.decoder, text, start)
            mended: tuple[str, ...] = ()
            if failed >= 0 and text[failed : failed + 1] in _CONTROLS and self.allowance > 0:
                value, end, behind = raw_decode(self.with_controls, text, start)
                if behind >= 0 or end <= self._next_head(start):
                    failed, mended = behind, ("repaired",)
                else:
                    self.allowance -= end - start
            if failed < 0:
                if too_deep(value, text[start:end]):
                    self.met.add("too_deep")
                elif holds_containers(value) or (first and REST_BLANK.match(text, end)):
                    flags = strictjson.flags(text[start:end], self.with_controls if mended else self.decoder)
                    return Part(value, (start, end), "json", mended + flags, way=CONTROLS if mended else STRICT), end
                return None, end
        elif ESCAPED_START.match(text, start):
            escaped = read_escaped(text, start)
            self.allowance -= 0 if escaped else len(text) - start
            if escaped is None:
                return None, start + 1
            value, end = escaped
            alone = first and REST_BLANK.match(text, end)  # else it is a field of its line
            return Part(value, (start, end), "json", ("repaired",), way=_ESCAPED) if alone else None, end
        if first and strict and (cut := self._cut_line(start)):
            return cut, cut.span[1]
        limit, closed, rows = self.end, self.end, False
        if self.allowance > 0 or failed - start > 64:
            limit, closed, rows = self._limit(start, first)
        if self.allowance > 0 and LIKELY.match(text, start):
            reading, work, resume, inner = self.recover(start, limit, closed, self.line_start, self.met, rows)
            self.allowance -= work
            if reading is not None and (
                reading.syntax == "python"
                or holds_containers(reading.value)
                or (first and REST_BLANK.match(text, reading.end))
            ):
                return _part(start, reading), reading.end
            if inner > start:
                return None, inner
            failed = max(failed, resume if reading is None else start)
        if failed - start <= 64:
            return None, start + 1
        # Past the failure: reading the same text again from inside could cost the square of its length. But a record
        # that a cut one before it seemed to hold is not passed over.
        return None, min(failed, limit)

    def _cut_line(self, start: int) -> Part | None:
        """The record from `start` to the end of its line that is cut there, as log shippers do: a record that begins
        alike is the next line, or was cut on the one before."""
        text, key = self.text, heads.FIRST_KEY.match(self.text, start)
        end = text.find("\n", start, self.end)
        if key is None or end < 0:
            return None
        if heads.goes_on(text, start, end + 1) and heads.open_list(text, start, end) >= 0:
            return None
        if not (text.startswith(key[0], end + 1) or self.cut == (start, key[0])) or self.allowance <= 0:
            return None
        source = text[start:end].rstrip("\r")
        reading = read_cut(source)
        self.allowance -= 0 if reading else _CUT * len(source)
        if reading is not None:
            self.cut = end + 1, key[0]
            return Part(reading.value, (start, start + len(source)), *reading[2:5], way=reading.way)
        return None

    def _begins_line(self, start: int) -> bool:
        """Whether only blanks stand before `start` on its line. Lines are looked for once, however long they are."""
        newline = self.text.rfind("\n", self.looked, start)
        self.looked = start
        if newline >= 0:
            self.line_start = newline + 1
        return start - self.line_start < 256 and not self.text[self.line_start : start].strip()

    def _limit(self, start: int, first: bool) -> tuple[int, int, bool]:
        """Where the text that may belong to a broken document ends, where the document would be cut, and whether it
        has a list of one record a line.

        It is cut by its fence's end or the end of the text; not by the next line that is a record of its own (for an
        object that itself starts a line, as in NDJSON), that has the head of a log line, or that begins like the line
        in which the document stands.
        """
        text = self.text
        fence = bisect_left(self.fences, start)
        closed = end = self.fences[fence] if fence < len(self.fences) else self.end
        end = min(end, self._next_head(start))
        record: str | None = None
        if first and text[start] == "{":
            line = text.find("\n{", start, end) + 1
            self.allowance -= max(line - start, 0) // _LOOKED
            if line and self.allowance > 0 and heads.goes_on(text, start, line):
                self.allowance -= _MATCHED * (line - start)
                record = heads.begins_rows(self.decoder, text, start, line, end)
                line = line if record is None else self._next_alone(line, record)
            if 0 < line < end and raw_decode(self.decoder, text, line)[2] < 0:
                end = line
        elif not first:
            end = heads.next_alike(text, self.line_start, start, end)
        return end, closed, record is not None

    def _next_alone(self, start: int, record: str) -> int:
        """Where the next line begins with an object that is no row of the list that goes on at `start`."""
        if self.alone < start:
            self.alone = heads.next_alone(self.decoder, self.text, start)
        if not record:
            return self.alone
        found = heads.next_record(self.decoder, self.text, start, record)
        self.allowance -= (found - start) // _LOOKED
        return min(self.alone, found)

    def _next_head(self, start: int) -> int:
        """Where the next line begins that has the head of a log line; heads are looked for once."""
        if self.head < start:
            self.head = heads.next_head(self.text, start)
        return self.head


def _part(start: int, found: Reading) -> Part:
    """The part that was read from `start` on."""
    return Part(found.value, (start, found.end), found.syntax, found.flags, found.tail, found.unread, found.way)
