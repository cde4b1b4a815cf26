"""Text -> Document: where the structured parts stand, their values, and what had to be mended (H5-H8).

Rules:
- Strict first. A part is read as JSON, then as a Python literal; only when both fail is it repaired, one part at a
  time, and a repair counts only if the words of its source are all still there (H8, `_covers`).
- Nothing is repaired in silence: each part carries flags, and text that is no part stays text.
- A document that ends early keeps what is whole; the cut rest is named (`partial_tail`), never shown as a value.
- Linear time: a failed candidate moves the scan past the place where it failed, and recovery has a work allowance.

Values are JSON's: dict, list, str, int (any size), float, bool, None; `Pairs` stands for an object with repeated keys.
"""

from __future__ import annotations

import csv
import gc
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import json_repair

from hyve.errors import InputError
from hyve.literals import read_literal
from hyve.strictjson import MAX_DEPTH, Decoder, Pairs, raw_decode, too_deep

Syntax = Literal["json", "python", "csv", "lines"]

_HEADER_CHARS = 64 * 1024
_PROSE_LINES, _PROSE_CHARS = 20, 4_000
_REPAIR_CHARS = 256 * 1024


@dataclass(frozen=True)
class Part:
    """One structured value. `span` is its half-open range of character offsets in the document's text."""

    value: Any
    span: tuple[int, int]
    syntax: Syntax
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A parsed text: its parts in source order, and the short free text around them, `lines` of (number, text).

    Long free text (logs) is itself a part of syntax `lines`. `flags` are those of the whole text and of all parts.
    """

    text: str
    parts: tuple[Part, ...]
    lines: tuple[tuple[int, str], ...] = ()
    flags: tuple[str, ...] = ()
    name: str = ""

    @property
    def prose(self) -> str:
        """The free text, without its code fences."""
        return "\n".join(line for _, line in self.lines)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Holds off Python's cycle collector: reading makes many containers and no cycles, and each pass would walk all."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@collector_paused()
def parse(source: str | bytes, name: str = "") -> Document:
    """Finds and reads every structured part of `source`.

    `name` names the root table in the store (a file's stem, say). Raises InputError for binary data.
    """
    text, flags = _decode(source, name)
    parts: list[Part] = []
    lines: tuple[tuple[int, str], ...] = ()
    if text.strip():
        parts = _whole(text) or _table(text) or []
        if not parts:
            parts = list(_scan(text))
            rest = list(_outside(text, [part.span for part in parts]))
            if len(rest) > _PROSE_LINES or sum(len(line) for _, line in rest) > _PROSE_CHARS:
                rows = [{"line": number, "text": line} for number, line in rest]
                parts.append(Part(rows, (0, len(text)), "lines", ("ansi",) if "\x1b[" in text else ()))
            else:
                lines = tuple((number, line) for number, line in rest if not line.strip().startswith("```"))
            if len(parts) > 1 and sum(part.syntax == "json" for part in parts) > 1:
                flags.append("concatenated")
    for part in parts:
        flags.extend(part.flags)
    return Document(text, tuple(parts), lines, tuple(dict.fromkeys(flags)), name)


def _decode(source: str | bytes, name: str) -> tuple[str, list[str]]:
    flags: list[str] = []
    if isinstance(source, bytes):
        where = f" {name!r}" if name else ""
        if source[:2] in (b"\xff\xfe", b"\xfe\xff"):
            try:
                text, flags = source.decode("utf-16"), ["utf16"]
            except UnicodeDecodeError as error:
                raise InputError(
                    f"the input{where} starts like UTF-16 but byte {error.start} doesn't fit: {error.reason}"
                ) from None
        else:
            control = sum(source[:65536].count(byte) for byte in range(32) if byte not in (9, 10, 12, 13, 27))
            if control > max(8, len(source[:65536]) // 50):
                raise InputError(
                    f"the input{where} is binary ({control} control bytes in its first {len(source[:65536])}): "
                    "give text such as JSON, CSV or logs; decompress it first if it is compressed"
                )
            try:
                text = source.decode("utf-8")
            except UnicodeDecodeError as error:
                text = source.decode("utf-8", "surrogateescape")
                if sum("\udc80" <= char <= "\udcff" for char in text) > max(8, len(text) // 20):
                    raise InputError(
                        f"the input{where} is not UTF-8 text (first bad byte at {error.start}): convert it to UTF-8"
                    ) from None
                flags.append("invalid_utf8")
    else:
        text = source
    if text.startswith("\ufeff"):
        text = text[1:]
        flags.append("bom")
    return text, flags


_HUGE = re.compile(r"\d[eE]\+?\d{3}")


def _json_flags(value: Any, source: str) -> tuple[str, ...]:
    """Flags of a strictly read value; each check looks at the source first, since almost no text needs the walk."""
    flags = []
    if "NaN" in source or "Infinity" in source or (_HUGE.search(source) and "Infinity" in json.dumps(value)):
        flags.append("non_finite")
    if re.search(r"\\u[dD][89a-fA-F]", source) and re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False)):
        flags.append("lone_surrogate")
    return tuple(flags)


def _json_part(decoder: Decoder, value: Any, text: str, start: int, end: int) -> Part:
    flags = _json_flags(value, text[start:end]) + tuple(sorted(decoder.met))
    decoder.met.clear()
    return Part(value, (start, end), "json", flags)


def _whole(text: str) -> list[Part] | None:
    start = len(text) - len(text.lstrip())
    if text[start] not in "{[":
        return None
    end = len(text.rstrip())
    decoder = Decoder()
    try:
        value, stop = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if stop != end or too_deep(value, text):
        return None
    return [_json_part(decoder, value, text, start, end)]


csv.field_size_limit(1 << 30)  # a cell may hold a whole document; the limit is the process's
_LINE_OPENS = re.compile(r"^[ \t]*[{\[](?=\s*[\"{\[])", re.MULTILINE)
_HEADER_CELL = re.compile(r"[A-Za-z_@#][^{}\"'=\n\t]{0,79}\Z")


def _table(text: str) -> list[Part] | None:
    """The whole text as one CSV or TSV table with a header, or None. Cells stay text."""
    start = len(text) - len(text.lstrip("\r\n"))
    end = text.find("\n", start, start + _HEADER_CHARS)
    if end < 0:
        return None
    decoder = Decoder()
    if any(raw_decode(decoder, text, match.end() - 1)[2] < 0 for match in islice(_LINE_OPENS.finditer(text), 50)):
        return None  # lines of JSON between which commas happen to agree
    head = text[start:end].rstrip("\r")
    for delimiter in (",", "\t", ";"):
        try:
            cells = next(csv.reader([head], delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        if len(cells) < 2 or any(len(cell.split()) > 4 for cell in cells):
            continue  # names are short: more words make a sentence
        if not all(_HEADER_CELL.match(cell.strip()) or (cell == "" and i == 0) for i, cell in enumerate(cells)):
            continue
        try:
            rows = list(csv.reader(io.StringIO(text[start:], newline=""), delimiter=delimiter, strict=True))[1:]
        except csv.Error:
            continue
        rows = [row for row in rows if row]
        ragged = sum(len(row) != len(cells) for row in rows)
        if len(rows) < (2 if len(cells) > 2 else 3) or ragged > len(rows) // 50:
            continue
        names: list[str] = []
        for i, cell in enumerate([*cells, "extra_cells"]):
            name = label = cell.strip() or f"column_{i}"
            number = 1
            while label in names:
                number += 1
                label = f"{name}_{number}"
            names.append(label)
        value = [_csv_row(names, row) for row in rows]
        return [Part(value, (0, len(text)), "csv", ("ragged_rows",) if ragged else ())]
    return None


def _csv_row(names: list[str], row: list[str]) -> dict[str, Any]:
    """One record; the last of `names` is for a list of cells beyond the header."""
    width = len(names) - 1
    record: dict[str, Any] = dict(zip(names[:width], row, strict=False))
    if len(row) > width:
        record[names[-1]] = row[width:]
    return record


_OPEN = re.compile(r"[{\[]")
_STRICT = re.compile(r"""\{\s*["}]|\[\s*(?:["{\[\]]|-?\d[\d.eE+-]*\s*[,\]]|-?(?:null|true|false|NaN|Infinity)\b)""")
_LIKELY = re.compile(
    r"""\{\s*(?:["']|[A-Za-z_$][\w$.-]*\s*:|-?\d+\s*:)|\[\s*(?:["'{\[(]|-?\d[\d.eE+-]*\s*,
    |(?:None|True|False|-?nan|-?inf|datetime|Decimal|UUID)\b|b["'])""",
    re.VERBOSE,
)
# A string that never ends runs to the end of the text, once: no later quote may start the search again.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*+(?:\'|\\?\Z)|[\[\]{}()]', re.DOTALL)
_CLOSER = {"{": "}", "[": "]", "(": ")"}


def _scan(text: str) -> Iterator[Part]:
    at, allowance = 0, 8 * len(text) + (4 << 20)
    decoder = Decoder()
    while match := _OPEN.search(text, at):
        start = failed = match.start()
        if _STRICT.match(text, start):
            decoder.met.clear()
            value, end, failed = raw_decode(decoder, text, start)
            if failed < 0:
                if _plausible(value, text, start, end) and not too_deep(value, text[start:end]):
                    yield _json_part(decoder, value, text, start, end)
                at = end
                continue
        part = None
        limit = _next_record(decoder, text, start)
        if allowance > 0 and _LIKELY.match(text, start):
            part, spent = _recover(text, start, limit)
            allowance -= spent
        if part is not None:
            yield part
            at = part.span[1]
        elif failed - start <= 64:
            at = start + 1
        else:
            # Past the failure: reading the same text again from inside could cost the square of its length. But a
            # record that a cut one before it seemed to hold is not passed over.
            at = min(failed, limit)


def _next_record(decoder: Decoder, text: str, start: int) -> int:
    """Where the text that may belong to a broken object at `start` ends: at the next line that is a record of its own.

    Only for an object that itself starts a line, as in NDJSON; else the end of the text.
    """
    if text[start] != "{" or text[text.rfind("\n", 0, start) + 1 : start].strip():
        return len(text)
    line = text.find("\n{", start)
    if line < 0 or raw_decode(decoder, text, line + 1)[2] >= 0:
        return len(text)
    return line + 1


def _plausible(value: Any, text: str, start: int, end: int) -> bool:
    """Whether a bracketed run is data rather than punctuation of a log line such as `[12]` or `[]`."""
    if isinstance(value, list) and any(isinstance(item, dict | list | Pairs) for item in value):
        return True
    if value and not isinstance(value, list):
        return True
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    return not text[line_start:start].strip() and not text[end : line_end if line_end >= 0 else None].strip()


def _recover(text: str, start: int, limit: int) -> tuple[Part | None, int]:
    """A part between `start` and `limit` that is not strict JSON, and how much work the attempt was, in characters."""
    end = _balanced(text, start, limit)
    if end is None:
        # What is cut in the middle of a text is text; only the end of the text cuts a document.
        part = _truncated(text, start) if limit == len(text) else None
        line = text.find("\n", start, limit)
        end = text.rfind(_CLOSER[text[start]], start, line if line >= 0 else limit) + 1
        if part is not None or not end:
            return part, 2 * (limit - start)
    source = text[start:end]
    spent = 2 * len(source)
    found = read_literal(source)
    if found is not None:
        value, extra = found
        if too_deep(value, source):
            return None, spent
        return Part(value, (start, end), "python", ("python_literal", *extra)), spent
    if len(source) <= _REPAIR_CHARS:
        try:
            value = json_repair.loads(source, skip_json_loads=True)
        except Exception:  # a third-party repairer on hostile text: whatever it raises, the text stays text
            value = None
        spent += 8 * len(source)
        plausible = isinstance(value, dict | list) and _plausible(value, source, 0, len(source))
        if plausible and _covers(value, source) and not too_deep(value, source):
            return Part(value, (start, end), "json", ("repaired",)), spent
    return None, spent


def _balanced(text: str, start: int, limit: int) -> int | None:
    stack: list[str] = []
    for match in _TOKEN.finditer(text, start, limit):
        token = match.group()
        if token in _CLOSER:
            stack.append(_CLOSER[token])
            if len(stack) > MAX_DEPTH * 4:
                return None
        elif token in ")]}":
            if not stack or stack.pop() != token:
                return None
            if not stack:
                return match.end()
    return None


_JSON_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|-?Infinity|NaN")


def _truncated(text: str, start: int) -> Part | None:
    """A JSON document that the end of the text cut: its whole items. Anything but JSON before the end: None.

    The cut rest is one incomplete token, or nothing; its place in the part's span is all that is kept of it.
    """
    end = len(text.rstrip())
    stack: list[str] = []
    safe: tuple[int, tuple[str, ...]] | None = None
    state, at = "value", start  # what may come: value, key, colon, next (a comma or a closer)
    while at < end and (match := _JSON_TOKEN.match(text, at)):
        token, at = match.group(), match.end()
        if token.isspace():
            continue
        last = at >= end
        if token in ("{", "[") and state == "value":
            stack.append(_CLOSER[token])
            if len(stack) > MAX_DEPTH:
                return None
            state = "value" if token == "[" else "key"
            safe = (at, tuple(stack)) if token == "[" else safe
        elif token in ("}", "]"):
            if state == "colon" or stack.pop() != token or not stack:
                return None
            state, safe = "next", (at, tuple(stack))
        elif token == "," and state == "next":
            state = "value" if stack[-1] == "]" else "key"
        elif token == ":" and state == "colon":
            state = "value"
        elif token.startswith('"') and state in ("key", "value"):
            if state == "value":
                safe = (at, tuple(stack))
            state = "colon" if state == "key" else "next"
        elif state == "value" and (_SCALAR.fullmatch(token) or last):
            if not last:  # a number at the very end may be the beginning of a longer one
                safe = (at, tuple(stack))
            state = "next"
        else:
            return None
    tail = text[at:end]
    if safe is None or (tail and (tail[0] != '"' or state not in ("key", "value"))):
        return None
    if "\n" in tail and len(tail) > 4096:
        return None  # a quote that opens pages of text is a quote, not a value
    cut, closers = safe
    decoder = Decoder()
    try:
        value = decoder.decode(text[start:cut] + "".join(reversed(closers)))
    except (ValueError, RecursionError):
        return None
    if not value:
        return None
    return Part(value, (start, end), "json", ("truncated", "partial_tail", *sorted(decoder.met)))


_WORD = re.compile(r"\w+")


def _covers(value: Any, source: str) -> bool:
    """H8: every word of the source, as often as it stands there, is in the value (escapes aside)."""
    words = Counter(_WORD.findall(re.sub(r"\\[nrtbf\"'\\/]|\\u[0-9a-fA-F]{4}", " ", source)))
    kept = Counter(_WORD.findall(re.sub(r"\\[nrtbf\"'\\/]", " ", json.dumps(value, ensure_ascii=False))))
    for python, js in (("None", "null"), ("True", "true"), ("False", "false")):
        words[js] += words.pop(python, 0)
    return not (words - kept)


_EMBEDDED = Decoder()


def embedded(text: str) -> Any | None:
    """The container that a string holds as JSON (escaped any number of times) or as a Python literal, else None."""
    for _ in range(4):
        stripped = text.strip()
        if not stripped or stripped[0] not in '{["':
            return None
        try:
            value = _EMBEDDED.decode(stripped)
        except (ValueError, RecursionError):
            if stripped[0] == '"' or not _LIKELY.match(stripped):
                return None
            found = read_literal(stripped)
            value = found[0] if found else None
        if not isinstance(value, str):
            return value if isinstance(value, dict | list | Pairs) and value else None
        text = value
    return None


def _outside(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """(1-based line number, text) of every non-blank line piece that no part covers."""
    number, at = 1, 0
    for start, end in [*spans, (len(text), len(text))]:
        gap = text[at:start]
        if gap.strip():
            for offset, line in enumerate(gap.split("\n")):
                if line.strip():
                    yield number + offset, line.rstrip("\r")
        number += text.count("\n", at, end)
        at = end
