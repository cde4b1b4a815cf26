"""Brackets of a text that may be damaged: where one that opens is closed, and which are open at a place."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from hyve.strictjson import MAX_DEPTH, Ahead

CLOSER = {"{": "}", "[": "]", "(": ")"}
# The next bracket outside of strings, but for braces around no other brackets: most records are such. A string that
# never ends runs to the end of the text: no later quote may start the search again.
_TRIPLE = r"""'{3}(?:[^'\\]++|\\.|'(?!''))*+(?:'{3}|\\?\Z)"""
_QUOTED = (
    rf"""(?:{_TRIPLE}|"(?:[^"\\]*+"|(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|'(?:[^'\\]*+'|(?:[^'\\]++|\\.)*+(?:'|\\?\Z)))"""
)
_OTHER = r"""[^"'\[\]{}()]*+"""
_FLAT = rf"\{{{_OTHER}(?:{_QUOTED}{_OTHER})*+\}}"
_NEXT_BRACKET = re.compile(rf"{_OTHER}(?:(?:{_QUOTED}|{_FLAT}){_OTHER})*+[\[\]{{}}()]", re.DOTALL)
_TO_END = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_NO_BRACKET = r'[^"\[\]{}]*+'
NEXT_BRACKET = re.compile(
    rf"{_NO_BRACKET}(?:(?:{_TO_END}|\{{{_NO_BRACKET}(?:{_TO_END}{_NO_BRACKET})*+\}}){_NO_BRACKET})*+[\[\]{{}}]",
    re.DOTALL,
)
"""Text up to the next bracket of a document of JSON: one in no string, nor in an object without others."""
ANY_BRACKET = re.compile(r"[^\[\]{}]*+[\[\]{}]")
"""Text up to the next bracket, be it in a string."""
_TOKENS, _COPIED = 12, 8
"""Work of each bracket that is matched; how many characters that are copied are the work of one."""


class Run(NamedTuple):
    """A bracketed run: its end or None, whether all brackets match, where it gets too deep or -1, the work."""

    end: int | None
    exact: bool
    deep: int
    work: int


def balanced(text: str, start: int, limit: int) -> Run:
    """The run of brackets from the one at `start` on. A closer that doesn't match the innermost opener closes the
    nearest that it does match."""
    stack = [CLOSER[text[start]]]
    levels = [start]
    exact, count, at = True, 1, start + 1
    while match := _NEXT_BRACKET.match(text, at, limit):
        count, at = count + 1, match.end()
        token = text[at - 1]
        if token in CLOSER:
            stack.append(CLOSER[token])
            levels.append(at - 1)
            if len(stack) > 2 * MAX_DEPTH:
                return Run(None, False, levels[MAX_DEPTH], at - start + _TOKENS * count)
        else:
            while stack and stack[-1] != token:
                if token not in stack:
                    return Run(None, False, -1, at - start + _TOKENS * count)
                exact = False
                stack.pop()
                levels.pop()
            if stack:
                stack.pop()
                levels.pop()
            if not stack:
                return Run(at, exact, -1, at - start + _TOKENS * count)
    return Run(None, False, -1, limit - start + _TOKENS * count)


def balanced_around(ahead: Ahead, start: int) -> Run:
    """The same of the text that `ahead` stands in, which begins at `start`: what was read there matches by itself."""
    run = balanced(ahead.rest, 0, len(ahead.rest))
    first, read = ahead.cuts[0][0], len(ahead.text) - len(ahead.rest)

    def place(at: int) -> int:
        return start + at + (read if at > first else 0)

    end = None if run.end is None else place(run.end)
    deep = run.deep if run.deep < 0 else place(run.deep)
    return Run(end, run.exact, deep, run.work + read + len(ahead.text) // _COPIED)


def open_at(
    text: str, start: int, end: int, brackets: re.Pattern[str] = NEXT_BRACKET, deepest: int = sys.maxsize
) -> list[int]:
    """Where the brackets stand, from `start` on, that are open at `end`, as `brackets` tell, the outermost first; none
    if more than `deepest` are open anywhere before. What closes none counts for nothing."""
    opened: list[int] = []
    at = start
    while match := brackets.match(text, at, end):
        at = match.end()
        if text[at - 1] in "[{":
            opened.append(at - 1)
            if len(opened) > deepest:
                return []
        elif opened:
            opened.pop()
    return opened
