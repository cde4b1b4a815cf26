"""The rows of cells of delimited text (CSV, TSV, ...), also where its quotes are flawed or it is cut.

Rules:
- A quote that is never closed, or closed within a cell, costs the row in which it stands, and no other: its line is
  read by itself (`repaired`), in the first way that gives as many cells as the header has.
- A text that ends inside of a cell keeps the row's cells before; what there is of that cell is told. So is the last
  cell of a last row that is short and ends without a newline: it may be the start of one.
- Linear time: a line on which a quote opens that isn't closed on it can't itself stand inside of quotes and leave them
  open. So each line is read in vain once, however many rows are flawed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

csv.field_size_limit(1 << 30)  # a cell may hold a whole document; the limit is the process's

DELIMITERS = ",\t;|"
LINES = 1 << 16
"""Characters of text that are cut into lines at once."""
FIRST = 8
"""Rows that come together at least, unless a blank line or the end of the table is behind them."""
_SHOWN = 50
"""Lines that tell whether a quote that isn't closed is a mistake."""
_NEWLINE = re.compile(r"\r\n?|\n")


class Run(NamedTuple):
    """Rows that stand one behind the other up to `end`. `apart`: a blank line is before them. `mended`: some
    are not what a strict reader gives. `cut`: the last one is the start of a row, `tail` what there is of its last
    cell."""

    rows: list[list[str]]
    end: int
    apart: bool
    mended: bool = False
    cut: bool = False
    tail: str = ""


def runs(text: str, start: int, end: int, delimiter: str, width: int, size: int) -> Iterator[Run]:
    """The rows of cells of a delimited table, its header first, some `size` characters of them at first. No copy of a
    long text has to live."""
    rows: list[list[str]] = []
    apart = mended = False
    while start < end:
        newline = _NEWLINE.search(text, start + size, end)
        stop = newline.end() if newline else end
        lines = list(io.StringIO(text[start:stop], newline=""))
        size = min(2 * size, LINES)
        begun = used = 0  # the lines before those of `rows`, and behind them
        with suppress(csv.Error):
            found = list(csv.reader(lines, delimiter=delimiter, strict=True))
            if min(map(len, found)) > 1:
                rows += found
                used = len(lines)
        while used < len(lines):  # one by one
            first = used
            reader = csv.reader(map(lines.__getitem__, range(first, len(lines))), delimiter=delimiter, strict=True)
            try:
                for row in reader:
                    used = first + reader.line_num
                    if len(row) > 1 or (row and not lines[used - 1].isspace()):
                        rows.append(row)
                        continue
                    if rows:
                        length = sum(map(len, lines[begun:used]))
                        yield Run(rows, start + length, apart, mended)
                        rows, mended = [], False
                    start += sum(map(len, lines[begun:used]))
                    begun, apart = used, True
            except csv.Error:
                reached = first + reader.line_num
                if reached == len(lines) and stop < end:  # a cell may go on behind these lines
                    rest = sum(map(len, lines[used:]))
                    stop -= rest
                    size = max(size, 2 * rest)
                    break
                some = lines[used:reached]
                if reached == len(lines) and _cut(some, delimiter, width):
                    some = _paragraph(some)
                    *whole, tail = _open(some, delimiter) or [""]
                    tail = tail.replace('"', '""').rstrip("\r\n")
                    length = sum(map(len, lines[begun : used + len(some)]))
                    yield Run([*rows, whole] if whole else rows, start + length, apart, mended, True, tail)
                    return
                rows.append(_mended(lines[used].rstrip("\r\n"), delimiter, width))
                mended = True
                used += 1
        if stop == end == len(text) and rows and len(rows[-1]) < width and not (apart and len(rows) == 1):
            tail = rows[-1].pop().replace('"', '""') + '"' * (text[-1] == '"')  # which may be one of two
            yield Run(rows if rows[-1] else rows[:-1], stop, apart, mended, True, tail)
        elif rows and (len(rows) >= FIRST or stop == end):
            yield Run(rows, stop, apart, mended)
            rows, apart, mended = [], False, False
        start = stop


def first_row(lines: Iterable[str], delimiter: str) -> list[str] | None:
    """The cells of the first row in some lines, by themselves; None where its quotes are flawed."""
    try:
        return next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _open(lines: list[str], delimiter: str) -> list[str] | None:
    """The cells of a row whose last one is not closed in these lines; None where that is not what is wrong."""
    return first_row([*lines[:-1], lines[-1] + '"'], delimiter)


def _cut(lines: list[str], delimiter: str, width: int) -> bool:
    """Whether the lines that a text ends with are a row that is cut inside of quotes. The quote is a mistake if the
    lines behind it are rows by themselves."""
    others = [line for line in lines[1 : _SHOWN + 1] if not line.isspace()]
    fitting = sum(len(first_row([line], delimiter) or ()) == width for line in others)
    return not (others and 2 * fitting >= len(others)) and _open(lines, delimiter) is not None


def _paragraph(lines: list[str]) -> list[str]:
    """The lines up to a blank one: what stands behind it need not be of the cell."""
    return lines[: next((i for i, line in enumerate(lines) if i and line.isspace()), len(lines))]


def _mended(line: str, delimiter: str, width: int) -> list[str]:
    """The cells of a row whose quotes are flawed."""
    literal = line.split(delimiter)
    standard = next(csv.reader([line], delimiter=delimiter), [])
    ways = _with_inner_quotes(line, delimiter), standard, literal
    return next((row for row in ways if row is not None and len(row) == width), literal)


_QUOTED = {
    delimiter: re.compile(rf'"((?:[^"]++|""?(?!{re.escape(delimiter)}|\Z))*+)"(?={re.escape(delimiter)}|\Z)')
    for delimiter in DELIMITERS
}


def _with_inner_quotes(line: str, delimiter: str) -> list[str] | None:
    """The cells if only a quote before a delimiter closes a cell; None where one is not closed."""
    quoted = _QUOTED[delimiter]
    cells, at = list[str](), 0
    while True:
        if line.startswith('"', at):
            match = quoted.match(line, at)
            if match is None:
                return None
            cells.append(match[1].replace('""', '"'))
            at = match.end() + 1
        else:
            stop = line.find(delimiter, at)
            stop = len(line) if stop < 0 else stop
            cells.append(line[at:stop])
            at = stop + 1
        if at > len(line):
            return cells
