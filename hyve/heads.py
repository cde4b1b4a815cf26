"""Where the lines of a log begin, told apart from the lines of a document that goes over several (H8).

Rules:
- A head is a time or the word of a level at a line's start; or what a line begins with is its head as well, its digits
  aside (`web-1 got {...`, `web-12 failed`).
- A line that a container runtime wrote piece by piece (tag P, the last piece F) is whole only when it is joined: what
  begins in one piece may end in another.
"""

from __future__ import annotations

import re

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
_PIECE = re.compile(r"^\S{19,40} (stdout|stderr) ([FP])(?: .*+)?\n?", re.MULTILINE)


def next_head(text: str, start: int) -> int:
    """Where the next line behind `start` begins that has the head of a log line; beyond the end if none has."""
    match = _HEAD.search(text, start)
    return match.start() + 1 if match else len(text) + 1


def next_alike(text: str, line: int, start: int, end: int) -> int:
    """Where, behind `start`, a line begins like the one from `line` to `start`; `end` if none near by does."""
    near = min(end, start + _ALIKE)
    token = _FIRST_TOKEN.match(text, line, start) if text.find("\n", start, near) >= 0 else None
    if token is None:
        return end
    pattern = "[0-9]+".join(map(re.escape, re.split("[0-9]+", token.group())))
    match = re.compile(rf"\n{pattern}(?=\s)").search(text, start, near)
    return match.start() + 1 if match else end


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
