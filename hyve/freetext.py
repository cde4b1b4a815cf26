"""The lines of a text that no part covers, read from it each time they are asked for: a long log is never held as rows.

Rules:
- A line is whole, with the documents that stand in it; of one on which a part of several lines begins or ends, or of
  which something could not be read, it is what stands outside of that. Blank lines are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

_LINES = 1 << 16
"""Characters of text that are cut into lines at once."""
_CHARACTERS, _MOST = 1 << 16, 1 << 10
"""Characters and lines of a run at most: the objects of what they say take many times their text."""


@dataclass(frozen=True)
class FreeText:
    """The lines of `text` outside of `spans` (start, end, whether something beside could not be read), which are
    ordered, do not overlap, and are the same each time."""

    text: str
    spans: Iterable[tuple[int, int, bool]]

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in outside(self.text, self.spans))

    def __len__(self) -> int:
        return self._count

    def value(self) -> list[dict[str, Any]]:
        """A row for each line: its number, from 1, and its text."""
        return list(chain.from_iterable(self.runs()))

    def runs(self) -> Iterator[list[dict[str, Any]]]:
        """The same in runs of so many lines or characters."""
        rows: list[dict[str, Any]] = []
        size = 0
        for number, text, _ in outside(self.text, self.spans):
            rows.append({"line": number, "text": text})
            size += len(text)
            if size >= _CHARACTERS or len(rows) >= _MOST:
                yield rows
                rows, size = [], 0
        if rows:
            yield rows

    def texts(self) -> Iterator[list[str]]:
        """The texts of the lines in such runs."""
        lines = (text for _, text, _ in outside(self.text, self.spans))
        while texts := list(islice(lines, _MOST)):
            yield texts


def outside(text: str, spans: Iterable[tuple[int, int, bool]]) -> Iterator[tuple[int, str, list[str]]]:
    """(number from 1, text, the pieces that stand outside of `spans`) of each line that has such a piece."""
    newline = "\r" if "\r" in text and "\n" not in text else "\n"
    number, begins, at = 1, 0, 0
    pieces: list[str] = []  # those of the line `number`, which begins at `begins`
    broken = False

    def line() -> tuple[int, str, list[str]]:
        if broken:
            return number, "".join(pieces), pieces
        end = text.find(newline, begins)
        return number, text[begins : len(text) if end < 0 else end].rstrip("\r"), pieces

    for start, end, flawed in chain(spans, ((len(text), len(text), False),)):
        while at < start:
            stop = text.find(newline, at + _LINES, start) + 1 or start
            first, *others = text[at:stop].split(newline)
            if first and not first.isspace():
                pieces.append(first.rstrip("\r"))
            if others:
                if pieces:
                    yield line()
                last = others.pop()
                for whole in others:
                    number += 1
                    if whole and not whole.isspace():
                        whole = whole.rstrip("\r")
                        yield number, whole, [whole]
                number += 1
                begins, broken = stop - len(last), False
                pieces = [last.rstrip("\r")] if last and not last.isspace() else []
            at = stop
        over = text.count(newline, start, end)
        broken = broken or over > 0 or flawed
        if over:
            if pieces:
                yield line()
            pieces = []
            number += over
            begins = text.rfind(newline, start, end) + 1
        at = max(at, end)
    if pieces:
        yield line()


def thinned(texts: Iterable[str], few: int) -> list[str]:
    """All of some texts if they are less than twice `few`; else at least `few` of them, at equal distances."""
    some: list[str] = []
    step = 1
    for number, text in enumerate(texts):
        if number % step == 0:
            some.append(text)
            if len(some) == 2 * few:
                some, step = some[::2], step * 2
    return some
