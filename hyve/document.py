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

import ast
import csv
import gc
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any, Literal

import json_repair

from hyve.errors import InputError

Syntax = Literal["json", "python", "csv", "lines"]

MAX_DEPTH = 64
"""Containers nested deeper than this stay text."""
_HEADER_CHARS = 64 * 1024
_PROSE_LINES, _PROSE_CHARS = 20, 4_000
_REPAIR_CHARS = 256 * 1024


class Pairs(tuple[tuple[str, Any], ...]):
    """An object that repeats a key: its (key, value) pairs in source order, none dropped."""

    __slots__ = ()


@dataclass(frozen=True)
class Part:
    """One structured value. `span` is its half-open range of character offsets in the document's text."""

    value: Any
    span: tuple[int, int]
    syntax: Syntax
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A parsed text: its parts in source order, and `prose`, the short free text around them.

    Long free text (logs) is itself a part of syntax `lines`. `flags` are those of the whole text and of all parts.
    """

    text: str
    parts: tuple[Part, ...]
    prose: str = ""
    flags: tuple[str, ...] = ()
    name: str = ""


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
    prose = ""
    if text.strip():
        parts = _whole(text) or _table(text) or []
        if not parts:
            parts = list(_scan(text))
            rest = list(_outside(text, [part.span for part in parts]))
            if len(rest) > _PROSE_LINES or sum(len(line) for _, line in rest) > _PROSE_CHARS:
                rows = [{"line": number, "text": line} for number, line in rest]
                parts.append(Part(rows, (0, len(text)), "lines", ("ansi",) if "\x1b[" in text else ()))
            else:
                prose = "\n".join(line for _, line in rest if not line.strip().startswith("```"))
            if len(parts) > 1 and sum(part.syntax == "json" for part in parts) > 1:
                flags.append("concatenated")
    for part in parts:
        flags.extend(part.flags)
    return Document(text, tuple(parts), prose, tuple(dict.fromkeys(flags)), name)


# --- decoding ---------------------------------------------------------------------------------------------------


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


# --- strict JSON ------------------------------------------------------------------------------------------------


def _read_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= 4000 else digits


class _Decoder(json.JSONDecoder):
    """Strict JSON that keeps repeated keys; `repeated` says whether it met any since it was last set to False."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._object, parse_int=_read_int)
        self.repeated = False

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | Pairs:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        self.repeated = True
        return Pairs(pairs)


def _json_flags(value: Any, source: str) -> tuple[str, ...]:
    """Flags of a strictly read value; each check looks at the source first, since almost no text needs the walk."""
    flags = []
    if "NaN" in source or "Infinity" in source:
        flags.append("non_finite")
    if re.search(r"\\u[dD][89a-fA-F]", source) and re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False)):
        flags.append("lone_surrogate")
    return tuple(flags)


def _json_part(decoder: _Decoder, value: Any, text: str, start: int, end: int) -> Part:
    flags = _json_flags(value, text[start:end])
    if decoder.repeated:
        flags += ("duplicate_keys",)
    decoder.repeated = False
    return Part(value, (start, end), "json", flags)


def _whole(text: str) -> list[Part] | None:
    start = len(text) - len(text.lstrip())
    if text[start] not in "{[":
        return None
    end = len(text.rstrip())
    decoder = _Decoder()
    try:
        value, stop = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return [_json_part(decoder, value, text, start, end)] if stop == end else None


# --- CSV and TSV ------------------------------------------------------------------------------------------------

csv.field_size_limit(1 << 30)  # a cell may hold a whole document; the limit is the process's
_LINE_OPENS = re.compile(r"^[ \t]*[{\[](?=\s*[\"{\[])", re.MULTILINE)
_HEADER_CELL = re.compile(r"[A-Za-z_@#][^{}\[\]\"'=\n\t]{0,79}\Z")


def _table(text: str) -> list[Part] | None:
    """The whole text as one CSV or TSV table with a header, or None. Cells stay text."""
    start = len(text) - len(text.lstrip("\r\n"))
    end = text.find("\n", start, start + _HEADER_CHARS)
    if end < 0:
        return None
    decoder = _Decoder()
    if any(_raw_decode(decoder, text, match.end() - 1)[2] < 0 for match in islice(_LINE_OPENS.finditer(text), 50)):
        return None  # lines of JSON between which commas happen to agree
    head = text[start:end].rstrip("\r")
    for delimiter in (",", "\t", ";"):
        try:
            cells = next(csv.reader([head], delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        if len(cells) < 2 or len(set(cells)) < len(cells):
            continue
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
        names = [cell.strip() or f"column_{i}" for i, cell in enumerate(cells)]
        value = [_csv_row(names, row) for row in rows]
        return [Part(value, (0, len(text)), "csv", ("ragged_rows",) if ragged else ())]
    return None


def _csv_row(names: list[str], row: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = dict(zip(names, row, strict=False))
    if len(row) > len(names):
        record["extra_cells"] = row[len(names) :]
    return record


# --- parts inside free text -------------------------------------------------------------------------------------

_OPEN = re.compile(r"[{\[]")
_STRICT = re.compile(r"""\{\s*["}]|\[\s*(?:["{\[\]]|-?\d[\d.eE+-]*\s*[,\]]|(?:null|true|false)\b)""")
_LIKELY = re.compile(
    r"""\{\s*(?:["']|[A-Za-z_$][\w$.-]*\s*:|-?\d+\s*:)|\[\s*(?:["'{\[(]|-?\d[\d.eE+-]*\s*,|(?:None|True|False)\b)"""
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[\[\]{}()]', re.DOTALL)
_CLOSER = {"{": "}", "[": "]", "(": ")"}


def _scan(text: str) -> Iterator[Part]:
    at, allowance = 0, 4 * len(text) + (1 << 20)
    decoder = _Decoder()
    while match := _OPEN.search(text, at):
        start = failed = match.start()
        if _STRICT.match(text, start):
            decoder.repeated = False
            value, end, failed = _raw_decode(decoder, text, start)
            if failed < 0:
                if _plausible(value, text, start, end):
                    yield _json_part(decoder, value, text, start, end)
                at = end
                continue
        part = None
        if allowance > 0 and _LIKELY.match(text, start):
            part, spent = _recover(text, start)
            allowance -= spent
        if part is not None:
            yield part
            at = part.span[1]
        else:
            # Past the failure: reading the same text again from inside could cost the square of its length.
            at = failed if failed - start > 64 else start + 1


def _raw_decode(decoder: _Decoder, text: str, start: int) -> tuple[Any, int, int]:
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


def _plausible(value: Any, text: str, start: int, end: int) -> bool:
    """Whether a bracketed run is data rather than punctuation of a log line such as `[12]` or `[]`."""
    if isinstance(value, list) and any(isinstance(item, dict | list | Pairs) for item in value):
        return True
    if value and not isinstance(value, list):
        return True
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    return not text[line_start:start].strip() and not text[end : line_end if line_end >= 0 else None].strip()


def _recover(text: str, start: int) -> tuple[Part | None, int]:
    """A part at `start` that is not strict JSON, and how many characters the attempt looked at."""
    end = _balanced(text, start)
    if end is None:
        return _truncated(text, start), len(text) - start
    source = text[start:end]
    spent = 2 * len(source)
    found = _python(source)
    if found is not None:
        value, extra = found
        return Part(value, (start, end), "python", ("python_literal", *extra)), spent
    if len(source) <= _REPAIR_CHARS:
        try:
            value = json_repair.loads(source, skip_json_loads=True)
        except Exception:  # a third-party repairer on hostile text: whatever it raises, the text stays text
            value = None
        if isinstance(value, dict | list) and _plausible(value, source, 0, len(source)) and _covers(value, source):
            return Part(value, (start, end), "json", ("repaired",)), spent + 20 * len(source)
    return None, spent


def _balanced(text: str, start: int) -> int | None:
    stack: list[str] = []
    for match in _TOKEN.finditer(text, start):
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


_JSON_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def _truncated(text: str, start: int) -> Part | None:
    """A JSON document that the end of the text cut: its whole items, and the cut rest named in a flag."""
    stack: list[str] = []
    safe: tuple[int, tuple[str, ...]] | None = None
    expects_value, at = True, start
    while match := _JSON_TOKEN.match(text, at):
        token, at = match.group(), match.end()
        if token in ("{", "["):
            stack.append(_CLOSER[token])
            if len(stack) > MAX_DEPTH:
                return None
            expects_value = token == "["
            safe = (at, tuple(stack)) if token == "[" else safe
        elif token in ("}", "]"):
            if not stack or stack.pop() != token or not stack:
                return None
            safe = (at, tuple(stack))
        elif token == ",":
            expects_value = stack[-1:] == ["]"]
            if safe is None or safe[0] < match.start():
                safe = (match.start(), tuple(stack))
        elif token == ":":
            expects_value = True
        elif token.startswith('"') and expects_value:
            safe = (at, tuple(stack))
    if safe is None or len(text[at:].strip()) > _REPAIR_CHARS:
        return None
    if at < len(text) and not text.startswith('"', at):
        return None
    cut, closers = safe
    decoder = _Decoder()
    try:
        value = decoder.decode(text[start:cut] + "".join(reversed(closers)))
    except (ValueError, RecursionError):
        return None
    if not value:
        return None
    repeated = ("duplicate_keys",) * decoder.repeated
    return Part(value, (start, len(text)), "json", ("truncated", "partial_tail", *repeated))


_WORD = re.compile(r"\w+")


def _covers(value: Any, source: str) -> bool:
    """H8: every word of the source, as often as it stands there, is in the value (escapes aside)."""
    words = Counter(_WORD.findall(re.sub(r"\\[nrtbf\"'\\/]|\\u[0-9a-fA-F]{4}", " ", source)))
    kept = Counter(_WORD.findall(re.sub(r"\\[nrtbf\"'\\/]", " ", json.dumps(value, ensure_ascii=False))))
    for python, js in (("None", "null"), ("True", "true"), ("False", "false")):
        words[js] += words.pop(python, 0)
    return not (words - kept)


# --- Python literals --------------------------------------------------------------------------------------------


def _python(source: str) -> tuple[Any, tuple[str, ...]] | None:
    """The value of a Python literal or repr (no code runs), with flags; None where it is none."""
    if len(source) > 4 * _REPAIR_CHARS:
        return None
    try:
        tree = ast.parse(source, mode="eval").body
        calls: list[str] = []
        return _literal(tree, source, calls), tuple(dict.fromkeys(calls))
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, OverflowError):
        return None


def _literal(node: ast.expr, source: str, flags: list[str]) -> Any:
    match node:
        case ast.Constant(value=bytes() as raw):
            flags.append("bytes")
            return raw.decode("utf-8", "backslashreplace")
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float | bool):
            return value
        case ast.Dict(keys=keys, values=values):
            pairs = [
                (_literal(key, source, flags), _literal(value, source, flags))
                for key, value in zip(keys, values, strict=True)
                if key is not None
            ]
            if len(pairs) < len(keys):
                raise ValueError("unpacking is no literal")
            pairs = [(key if _is_key(key) else json.dumps(key), value) for key, value in pairs]
            result = dict(pairs)
            if len(result) < len(pairs):
                flags.append("duplicate_keys")
                return Pairs((str(key), value) for key, value in pairs)
            return result
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            if isinstance(node, ast.Set):
                flags.append("set")
            return [_literal(item, source, flags) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _literal(operand, source, flags)
            if isinstance(number, int | float):
                return -number
        case ast.Name(id="nan" | "NaN"):
            flags.append("non_finite")
            return float("nan")
        case ast.Name(id="inf" | "Infinity"):
            flags.append("non_finite")
            return float("inf")
        case ast.Name(id="null"):
            return None
        case ast.Name(id="true" | "false" as word):
            return word == "true"
        case ast.Call():
            flags.append("constructor_call")
            moment = _moment(node)
            return moment if moment is not None else (ast.get_source_segment(source, node) or "")
    raise ValueError(f"{type(node).__name__} is no literal")


def _is_key(key: Any) -> bool:
    return key is None or isinstance(key, str | int | float | bool)


def _moment(call: ast.Call) -> str | None:
    """The ISO text of a `datetime(...)` or `date(...)` call, or None for any other constructor."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("datetime", "date"):
        return None
    numbers = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if len(numbers) != len(call.args) or not all(isinstance(number, int) for number in numbers):
        return None
    zone = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "tzinfo"), "")
    tz = UTC if re.search(r"utc|tzutc|UTC", zone) else None
    if tz is None and (offset := re.search(r"timedelta\(.*?(?:seconds=)?(-?\d+)\)", zone)):
        tz = timezone(timedelta(seconds=int(offset.group(1))))
    try:
        parts = [int(str(number)) for number in numbers]
        return datetime(*parts[:7]).replace(tzinfo=tz).isoformat()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


_EMBEDDED = _Decoder()


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
            found = _python(stripped)
            value = found[0] if found else None
        if not isinstance(value, str):
            return value if isinstance(value, dict | list | Pairs) and value else None
        text = value
    return None


# --- free text --------------------------------------------------------------------------------------------------


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
