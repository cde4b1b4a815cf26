"""Where the lines of a log begin, told apart from the lines of a document that goes over several (H8).

Rules:
- A head is a time or the word of a level at a line's start; or what a line begins with is its head as well, its digits
  aside (`web-1 got {...`, `web-12 failed`).
- A line that begins with an object is a record of its own, but for one in a list that the document before it has open:
  a comma or the list's bracket stands before it, and a comma or the end behind it (`{"items": [{...},` and `{...},` on
  the next line).
- A line that a container runtime wrote piece by piece (tag P, the last piece F) is whole only when it is joined: what
  begins in one piece may end in another.
"""

from __future__ import annotations

import re

from hyve.brackets import ANY_BRACKET, NEXT_BRACKET, open_at
from hyve.longlists import FIRST_RECORD
from hyve.rawdecode import raw_decode
from hyve.strictjson import STRING, Decoder

_LEVELS = "TRACE|DEBUG|DBG|INFO|INF|NOTICE|WARNING|WARN|WRN|ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC"
_HEAD = re.compile(
    rf"""\n(?:<\d{{1,3}}>(?:\d\ )?|\[)?+(?:
        \d{{4}}[-/.]\d\d[-/.]\d\d(?:[T\ ]\d\d:\d\d|\b)
        | \d\d?[-/.](?:\d\d|[A-Z][a-z]{{2}})[-/.]\d{{2,4}}[:\ ]\d\d?:\d\d
        | (?:[A-Z][a-z]{{2}}\ )?[A-Z][a-z]{{2}}\ [ \d]\d\ (?:\d{{4}}\ )?\d\d:\d\d:\d\d
        | (?:\d\d-\d\d\ )?\d\d?:\d\d:\d\d\b
        | \ ?(?:{_LEVELS})\b(?!\s*+["'=])
        | [IWEF]\d{{4}}\ \d\d:\d\d:\d\d
        | (?:time|ts|level|lvl)=["\w] )""",
    re.VERBOSE,
)
_FIRST_TOKEN = re.compile(r"[\w\[(<][^\s{]{1,63}+(?=\s)|\w(?=\s)")
_ALIKE = 4096
"""How far a line is looked for that begins like another."""
FIRST_KEY = re.compile(rf"\{{\s*+({STRING.pattern})", re.DOTALL)
_BEFORE = 64
"""Blanks that may stand before the object of a row."""
_GOES_ON = re.compile(r"\s*+[,\]]")
_CUT = re.compile(r"\s*+\Z|[ \t\r]*+\n[ \t\r]*+\n")
"""What stands behind a row of a list: more of it, or what cuts a document."""
_FIRST_LINE = 1 << 16
_INSIDE = re.compile(r'"\s*+[:,]|[:,]\s*+"')
_NEXT_RECORD = re.compile(r"\s*+[{\[]")
_MEMBERS = re.compile(
    rf"(?:[ \t]*+{STRING.pattern}[ \t]*+:[ \t]*+[^\s{{\[][^\n]*+\n)++[ \t]*+[}}\]],?[ \t\r]*+(?:\n|\Z)"
)
_PIECE = re.compile(r"^\S{19,40} (stdout|stderr) ([FP])(?: .*+)?\n?", re.MULTILINE)


def next_head(text: str, start: int) -> int:
    """Where the next line behind `start` begins that has the head of a log line; beyond the end if none has."""
    match = _HEAD.search(text, start)
    return match.start() + 1 if match else len(text) + 1


def begins_inside(text: str) -> bool:
    """Whether a text begins in the middle of a document: with the end of a record before others, or with members."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] in ("{", "["):
        return False
    if _MEMBERS.match(text, start):
        return True
    end = text.find("\n", start, start + _FIRST_LINE)
    line = text[start:end].rstrip(" \t\r,") if end >= 0 else ""
    if line[-1:] not in ("}", "]") or not _NEXT_RECORD.match(text, end) or not _INSIDE.search(line):
        return False
    return line.count("}") + line.count("]") > line.count("{") + line.count("[")


def next_alike(text: str, line: int, start: int, end: int) -> int:
    """Where, behind `start`, a line begins like the one from `line` to `start`; `end` if none near by does."""
    near = min(end, start + _ALIKE)
    token = _FIRST_TOKEN.match(text, line, start) if text.find("\n", start, near) >= 0 else None
    if token is None:
        return end
    pattern = "[0-9]+".join(map(re.escape, re.split("[0-9]+", token.group())))
    match = re.compile(rf"\n{pattern}(?=\s)").search(text, start, near)
    return match.start() + 1 if match else end


def goes_on(text: str, start: int, line: int) -> bool:
    """Whether the object at `line`, where a line begins, may be one of a list that is open before it."""
    before = text[max(start, line - _BEFORE) : line].rstrip()
    return before[-1:] == "[" or (before[-1:] == "," and before[:-1].rstrip()[-1:] == "}")


def begins_rows(decoder: Decoder, text: str, start: int, line: int, end: int) -> str | None:
    """How a record like the document from `start` on begins, where the object at `line`, which may go on a list, is no
    such record but one of a list that the document has open; "" where the two can't be told apart; else None.

    The object that is the last one before the `end` is a record of its own if it begins like one.
    """
    opened = open_list(text, start, line)
    if opened < 0:
        return None
    outer, own = (FIRST_KEY.match(text, at) for at in (start, line))
    first = FIRST_RECORD.match(text, opened)
    key = first["key"] if first else None
    record = "" if outer is None or outer[1] == key else outer[0]
    _, behind, failed = raw_decode(decoder, text, line)
    if failed < 0 and not _GOES_ON.match(text, behind, end):
        item = first is not None and first.start("item") < line
        if not (_CUT.match(text, behind, end) or (item and record and own and own[1] == key)):
            return None
        if outer and own and outer[1] == own[1] and not (item and not record):
            return None
    return record


def open_list(text: str, start: int, end: int) -> int:
    """Where the innermost bracket stands that is open at `end` if it is a list's, else -1. Where a missing quote hides
    that, all brackets tell it."""
    for brackets in (NEXT_BRACKET, ANY_BRACKET):
        opened = open_at(text, start, end, brackets)
        if opened and text[opened[-1]] == "[":
            return opened[-1]
    return -1


def next_alone(decoder: Decoder, text: str, start: int) -> int:
    """Where the next line behind `start` begins with an object that is no row of a list: no comma or bracket stands
    before it, nor behind it; beyond the end if none does."""
    line = text.find("\n{", start)
    while line >= 0:
        if not goes_on(text, start, line):
            behind = raw_decode(decoder, text, line + 1)[1]
            if not _GOES_ON.match(text, behind):
                return line + 1
            line = behind - 1
        line = text.find("\n{", line + 1)
    return len(text) + 1


def next_record(decoder: Decoder, text: str, start: int, record: str) -> int:
    """Where the next line behind `start` begins with `record`; beyond the end if none does, or as a row of a list."""
    line = text.find(f"\n{record}", start) + 1
    _, behind, failed = raw_decode(decoder, text, line) if line else (None, 0, 0)
    return line if failed < 0 and not _GOES_ON.match(text, behind) else len(text) + 1


def pieces_of_lines(text: str) -> list[tuple[int, int]]:
    """The spans of the lines that a container runtime wrote as pieces of longer ones."""
    if " stdout P" not in text and " stderr P" not in text:
        return []
    spans: list[tuple[int, int]] = []
    going_on: set[str] = set()
    for match in _PIECE.finditer(text):
        stream, tag = match.groups()
        if tag == "P" or stream in going_on:
            spans.append(match.span())
        going_on = going_on | {stream} if tag == "P" else going_on - {stream}
    return spans
