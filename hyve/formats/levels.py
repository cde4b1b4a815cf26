"""The severity of a log record: from the level that a logger wrote, or from the first characters of a text that has no
level beside it.

Rules: a text says its level as a pair (`level=error`), as a member of the JSON object that it is, or as a word in
capitals behind nothing but what stands before messages (times, brackets, dotted names). Words inside of prose say
nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from hyve.formats.scalars import SEVERITIES, integer, severity
from hyve.recovery import ANSI

_LETTERS = {name[0]: name for name in SEVERITIES}
_PINO = dict(zip(range(10, 70, 10), SEVERITIES, strict=True))

_LOOKED_AT = 200
_TOKENS = 8
_KEY = r"(?:log[._]?)?level|levelname|lvl|severity(?:[_]?text)?"
_MEMBER = re.compile(rf'"(?:{_KEY}|@l)"\s{{0,9}}+:\s{{0,9}}+(?:"([A-Za-z]{{1,16}})"|(\d\d)(?!\d))', re.IGNORECASE)
_PAIR = re.compile(rf"""(?<![\w.-])(?:{_KEY})=["']?([A-Za-z]{{1,16}})|"(?:[^"\\]|\\.)*+\"""", re.IGNORECASE)
_KLOG = re.compile(r"([IWEF])\d{4} \d\d:\d\d:\d\d")
_TOKEN = re.compile(r"\[ ?([A-Za-z]{1,16}) {0,5}\]|[^\s\[\]()|]+")
_WORD = re.compile(
    r"(TRACE|TRC|VERBOSE|DEBUG|DBG|INFO|INF|NOTICE|WARN|WARNING|WRN|ERROR|ERR|SEVERE|FATAL|FTL|CRITICAL|CRIT|ALERT|EMERG"
    r"|PANIC)(?=[:/,]|\Z)"
)
_OF_TIMES = re.compile(
    r"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun|[AP]M|UTC|GMT|CES?T"
)


def severity_of(level: Any) -> tuple[str, int | None]:
    """The severity (name, number) of a level as loggers write it: a word or its first letter, slog's `INFO+2`, pino's
    and bunyan's 10 to 60."""
    if type(level) is str:
        return _severity_of(level)
    return severity(_PINO.get(level)) if type(level) is int else ("", None)


@lru_cache(maxsize=256)
def _severity_of(level: str) -> tuple[str, int | None]:
    name, rank = severity(level)
    if not name and 0 < len(level) <= 16:
        stem = level.replace("-", "+", 1).partition("+")[0]
        return severity(stem if stem != level else _LETTERS.get(level) or _PINO.get(integer(level) or 0))
    return name, rank


def severity_in(body: str) -> tuple[str, int | None]:
    """The severity (name, number) that a text says itself, ("", None) where it says none."""
    head = body[:_LOOKED_AT].lstrip()
    if "\x1b" in head:
        head = ANSI.sub("", head)
    if head[:1] == "{":
        return _first(_MEMBER, body[: 5 * _LOOKED_AT])  # messages often stand before the level
    if match := _KLOG.match(head):
        return severity(_LETTERS[match[1]])
    if head.startswith("panic: "):
        return severity("FATAL")
    word = _leading(head)
    return severity(word) if word else _first(_PAIR, head)


def _first(pattern: re.Pattern[str], text: str) -> tuple[str, int | None]:
    """The first level that is known among those that a pattern finds."""
    for match in pattern.finditer(text):
        name, rank = severity_of(next(filter(None, match.groups()), None))
        if name:
            return name, rank
    return "", None


def _leading(head: str) -> str:
    """The level among the tokens before a message, or "". Words end the search, and so does a number in the first
    place, which counts something."""
    for place, match in enumerate(_TOKEN.finditer(head)):
        token, boxed = match[0], match[1]
        if boxed:
            if _WORD.fullmatch(boxed.upper()):
                return boxed
        elif found := _WORD.match(token):
            return found[1]
        elif not _OF_TIMES.fullmatch(token) and (
            place == _TOKENS
            or token.isalpha()
            or "=" in token
            or token[:-1].isalpha()
            or (not place and token.isdigit())
        ):
            return ""
    return ""
