"""Delimited tables (CSV, TSV, ...): where one begins and ends, what its cells are, and what its flawed rows say.

Rules:
- Cells stay text; what a cell means is the store's business. An empty cell is "", a cell that its row doesn't have is
  absent (`ragged_rows`), cells beyond the header stand in `extra_cells`. One row in fifty may be ragged, or one, and
  the last may be short whatever the others are; one in five below three distinct names or more. A count of the rows
  below a table ("(20 rows)") is no part of it.
- A table has a header that looks like names (in any script, at most a mebibyte), unlike what stands below it. Prose
  with commas, log lines and source code have none. The shorter the table, the more its cells have to differ from its
  header.
- A row that repeats the header (files written one after the other) is dropped, and the table flagged `concatenated`.
- Blank lines part the rows of a table, or it from what follows: rows of another width, or with a header of their own.
- Flawed quotes (`repaired`) and the end of a cut table (`truncated`, `partial_tail`) are what `hyve.csvrows` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from hyve import strictjson
from hyve.csvrows import DELIMITERS, FIRST, LINES, Run, first_row, runs

_HEADER_CHARS = 1 << 20
_COMMENTS = 5
"""Lines of comment before a header that are looked past."""
_CELL = re.compile(r"(?:[^\W\d]|[@#])[^{}\"'=\n\t]{0,79}\Z")
_SERIES = re.compile(r"(?![-+]?[\d.,]+\Z)[^\n\t]{1,1000}\Z")
"""What may call a column of numbers."""
_FIGURE = re.compile(r"(?:[-+]?\$?\d[\w.,%/ +-]*|[-+]?(?i:nan|inf|null|undefined)|-)?\Z")
_INSTANT = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d{10}(?:\d{3}){0,3}(?:\.\d+)?\Z")
_NAME = re.compile(r"(?:[^\W\d]|[@#%])(?:[\w .()/%$#@:+-]|[^\x00-\x7f]){0,60}\Z")
NUMERIC = re.compile(r"[<>~+-]?\$?\d[\w.,:%+/() -]*\Z")
DIGITS = re.compile(r"\d+")
_TRAILER = re.compile(
    r"[ \t]*+\(?\d[\d,]*+ (?:rows?|row\(s\)|records?)(?: (?:affected|selected|returned|in set))?\)?[ \t.]*+\Z", re.I
)
"""What a client of a database writes below a table."""

_SAMPLE, _ODD, _SHOWN = 63, 12, 50
"""Rows that tell how many cells rows have, those of them that may have others, and rows that a header is held against.
"""
_TITLE = 3
"""Lines of text that may stand between blank lines before more rows of a table."""
_RUN_CELLS = 1 << 13
"""Cells of the runs in which rows that are not held come."""


class Table(NamedTuple):
    """Rows in source order, as objects of texts, and where they stand, header included. Those of a `long` one are not
    held. `tail` is what a cut table has of its last cell."""

    rows: list[dict[str, Any]]
    start: int
    end: int
    syntax: Literal["csv", "table"]
    flags: tuple[str, ...] = ()
    long: Delimited | None = None
    tail: str = ""


@dataclass(frozen=True)
class Delimited:
    """The rows of a very long delimited table from `start` to `end` of `text`, which are not held: they are read again
    each time they are asked for. `header` are its cells as they stand there, `names` those of the columns."""

    text: str
    start: int
    end: int
    delimiter: str
    header: list[str]
    names: list[str]
    path: tuple[()] = ()
    listed = True
    lines = False

    def first(self) -> dict[str, Any]:
        """The first row."""
        return next(self._rows())

    def value(self) -> list[dict[str, Any]]:
        """All rows."""
        return list(self._rows())

    rows = value

    def values(self) -> list[Any]:
        """The one value of the text."""
        return [self.value()]

    def runs(self) -> Iterator[tuple[Any, list[Any]]]:
        """Runs of rows, twice each: nothing stands around them."""
        rows = self._rows()
        while run := list(islice(rows, max(1, _RUN_CELLS // len(self.header)))):
            yield run, run
            del run

    def _rows(self) -> Iterator[dict[str, Any]]:
        for run in runs(self.text, self.start, self.end, self.delimiter, len(self.names) - 1, LINES):
            for row in run.rows:
                if row != self.header:
                    yield record(self.names, row)


def read(text: str, least: int = 1, keep: bool = True) -> Table | None:
    """The whole text as one delimited table of at least that many rows. Comment lines before it and a count of its rows
    behind it are no part of it. Unless they are to be `keep`t, the rows of a long text are `Delimited`."""
    start = len(text) - len(text.lstrip("\r\n"))
    end = untrailed(text, start, len(text))
    table = table_at(text, (start, end), None, least, keep)
    return table if table is not None and table.end == end else None


def untrailed(text: str, start: int, end: int) -> int:
    """Where the lines of a table end, without newlines and a count of rows behind it."""
    end = _stripped(text, start, end)
    last = max(text.rfind("\n", start, end), text.rfind("\r", start, end)) + 1
    return _stripped(text, start, last) if end - last < 80 and _TRAILER.match(text, last, end) else end


def _stripped(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in "\r\n":
        end -= 1
    return end


def table_at(text: str, span: tuple[int, int], stop: int | None, least: int, keep: bool = True) -> Table | None:
    """The delimited table whose header begins the span, or stands behind lines of comment there: its rows up to a blank
    line at `stop`, and those behind that go on with it. Without a stop the first rows needn't be a table without the
    others."""
    start, end = span
    for _ in range(_COMMENTS):
        limit = min(start + _HEADER_CHARS, end if stop is None else stop)
        ends = [at for newline in "\r\n" if (at := text.find(newline, start, limit)) >= 0]
        if not ends:
            return None
        head = text[start : min(ends)]
        for delimiter in DELIMITERS:
            if delimiter in head and (header := _header(head, delimiter)):
                reading = _Reading(text, (start, end), delimiter, header, least, keep)
                if table := reading.table(stop):
                    return table
        if head[:1] != "#":
            return None
        start = min(ends) + 1
        start += text[start - 1 : start + 1] == "\r\n"
    return None


def _header(head: str, delimiter: str) -> list[str] | None:
    """The cells of a line that may be a header: names, or a name and then anything that may call a column of numbers,
    such as the labels of a series."""
    cells = first_row([head], delimiter)
    if cells is None or len(cells) < 2:
        return None
    odd = [i for i, cell in enumerate(cells[:-1]) if not _is_name(cell) and (cell or i)]
    if not _is_name(cells[-1]) and (cells[-1] or len(cells) < 3):
        odd.append(len(cells) - 1)
    if odd and (odd[0] == 0 or not all(_SERIES.match(cells[i]) for i in odd) or len(set(cells)) < len(cells)):
        return None
    return cells


def _is_name(cell: str) -> bool:
    return _CELL.match(cell.strip()) is not None and len(cell.split()) <= 4  # more words make a sentence


@dataclass
class _Counts:
    """What was met up to `end`: rows of the header's width and others (`short`: the last one), headers, held rows."""

    end: int = 0
    even: int = 0
    ragged: int = 0
    short: bool = False
    repeated: int = 0
    held: int = 0
    mended: bool = False
    cut: bool = False
    tail: str = ""

    @property
    def rows(self) -> int:
        """Rows that are no header."""
        return self.even + self.ragged

    @property
    def hopeless(self) -> bool:
        """Whether there are more ragged rows than a table may have, though some may follow that aren't."""
        return self.ragged > _ODD and self.ragged * 4 > self.rows


class _Reading:
    """A table while it is read."""

    def __init__(
        self,
        text: str,
        span: tuple[int, int],
        delimiter: str,
        header: list[str],
        least: int,
        keep: bool,
    ) -> None:
        self.text, (self.start, self.end) = text, span
        self.delimiter, self.header, self.cells = delimiter, header, header
        self.spaced, self.least = any(cell[:1] == " " for cell in header[1:]), least
        self.series = [i for i, cell in enumerate(header) if cell and not _is_name(cell)]
        self.long = not keep and self.end - self.start >= strictjson.LONG
        self.held: list[list[str]] = []
        self.shown: list[list[str]] = []  # the first even rows; if all of them are empty, one that is not
        self.counts = _Counts()
        self.headed = False

    def table(self, stop: int | None) -> Table | None:
        """The table, of which the rows before `stop` must be one; None if there is none."""
        runs = self._started(stop)
        good: dict[str, Any] | None = None  # the counts at the last blank line at which the table may end
        title: Run | None = None  # the lines of text behind it: the table may go on with the next ones
        for run in runs:
            if run.apart and self.counts.rows:
                if title is None:
                    if self._holds():
                        good = vars(self.counts).copy()
                    elif stop is not None:
                        break
                if not self._goes_on(run.rows) or (title and run.rows[0] == self.header):
                    if title or len(run.rows) > _TITLE or any(len(row) > 1 for row in run.rows):
                        break
                    title = run
                    continue
                if title:
                    self._add(title)
                    title = None
            elif title:
                break
            self._add(run)
            if self.counts.hopeless or (len(self.shown) >= _SHOWN and not self._is_headed()):
                break
        else:
            if title is None and self._holds():
                good = vars(self.counts)
        return None if good is None else self._made(_Counts(**good))

    def _started(self, stop: int | None) -> Iterator[Run]:
        """The runs of rows behind the header. The first ones tell whether the rows or the header end in a delimiter
        that the other lacks."""
        runs = self._runs(stop)
        first = next(runs)
        sample, width = first.rows[1 : _SAMPLE + 1], len(self.header)
        if 2 * sum(len(row) == width + 1 and not row[-1] for row in sample) > len(sample):
            self.cells = [*self.header, ""]
        elif not self.header[-1] and 2 * sum(len(row) == width - 1 for row in sample) > len(sample):
            self.cells = self.header[:-1]
        if len(self.cells) != width:
            runs = self._runs(stop)
            first = next(runs)
        if sum(len(row) != len(self.cells) for row in first.rows[1 : _SAMPLE + 1]) <= _ODD:
            del first.rows[0]
            yield first
            yield from runs

    def _runs(self, stop: int | None) -> Iterator[Run]:
        size = LINES if stop is None else stop - self.start
        return runs(self.text, self.start, self.end, self.delimiter, len(self.cells), size)

    def _add(self, run: Run) -> None:
        counts, width = self.counts, len(self.cells)
        others = [row for row in run.rows if row != self.header]
        fitting = [row for row in others if len(row) == width]
        counts.end = run.end
        counts.repeated += len(run.rows) - len(others)
        counts.even += len(fitting)
        if others:
            counts.short = len(others[-1]) < width
            counts.ragged += len(others) - len(fitting) - (run.cut and counts.short)
        counts.mended |= run.mended
        counts.cut, counts.tail = run.cut, run.tail
        if len(self.shown) < _SHOWN:
            self.shown += fitting[:_SHOWN]
        elif not any(map(any, self.shown[:_SHOWN])):
            self.shown += [row for row in fitting if any(row)][:1]
        if not self.long:
            self.held += others
            counts.held = len(self.held)

    def _holds(self) -> bool:
        """Whether the rows so far are a table's."""
        counts = self.counts
        if counts.even < self.least and (counts.even < 2 or not self._is_sure()):
            return False
        if counts.ragged:
            most = max(1, counts.rows // (5 if self._is_named() else 50)) if counts.even > 2 else 0
            if counts.even < 2 or counts.ragged - (counts.short and not counts.cut) > most:
                return False
        return self._is_headed()

    def _is_named(self) -> bool:
        """Whether the header are certainly names: three or more, and distinct."""
        if self.spaced or not 2 < len(self.cells) == len(set(self.cells)):
            return False
        return all(_NAME.match(cell.strip()) for cell in self.header)

    def _is_sure(self) -> bool:
        """Whether few rows are a table's by what they are: below names, times, or numbers behind tabs."""
        form = NUMERIC if self.delimiter == "\t" else _INSTANT
        return self._is_named() and any(all(map(form.match, column)) for column in zip(*self.shown, strict=True))

    def _is_headed(self) -> bool:
        if self.headed:
            return True
        if self.series:
            figures = [[row[i] for row in self.shown[:_SHOWN]] for i in self.series if i < len(self.cells)]
            clear = all(set(self.header[i]) & set("{=") for i in self.series) and len(self.shown) > 1
            clear |= all(_INSTANT.match(row[0]) for row in self.shown[:_SHOWN])
            found = clear and all(all(map(_FIGURE.match, column)) for column in figures)
            found &= any(any(column) for column in figures)
        else:
            found = is_header(self.cells, self.shown, self.spaced)
        self.headed = found and len(self.shown) >= _SHOWN
        return found

    def _goes_on(self, rows: list[list[str]]) -> bool:
        """Whether rows behind a blank line are the table's: some of the first have its width, and the first one isn't
        the header of another table."""
        width, first = len(self.cells), rows[0] if rows else []
        if not any(len(row) == width for row in rows[:FIRST]):
            return False
        if len(first) == 1 and len(rows) > 1 and len(rows[1]) == width:  # a line of text, with a table of its own below
            return rows[1] != self.header and self._goes_on(rows[1:]) if len(rows) > 2 else True
        if len(rows) == 1 or len(first) != width or first == self.header:
            return True
        if not all(_NAME.match(cell.strip()) for cell in first):
            return True
        shown = self.shown[:_SHOWN]
        return all(
            NUMERIC.match(cell) or not all(NUMERIC.match(row[i]) for row in shown) for i, cell in enumerate(first)
        )

    def _made(self, counts: _Counts) -> Table:
        names = column_names(self.cells)
        end = _stripped(self.text, self.start, counts.end)
        said = {
            "concatenated": counts.repeated,
            "ragged_rows": counts.ragged,
            "repaired": counts.mended,
            "truncated": counts.cut,
            "partial_tail": counts.tail,
        }
        flags = tuple(flag for flag, met in said.items() if met)
        if self.long:
            long = Delimited(self.text, self.start, end, self.delimiter, self.header, names)
            return Table([], self.start, end, "csv", flags, long, counts.tail)
        held = self.held[: counts.held]
        if counts.ragged or counts.cut:
            rows = [record(names, row) for row in held]
        else:
            rows = [dict(zip(names, row, strict=False)) for row in held]
        return Table(rows, self.start, end, "csv", flags, None, counts.tail)


def column_names(cells: Sequence[str]) -> list[str]:
    """A name for each column, none twice; the last is for cells beyond the header."""
    names: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for i, cell in enumerate([*cells, "extra_cells"]):
        name = label = cell.strip() or f"column_{i}"
        while label in names:
            numbers[name] = numbers.get(name, 1) + 1
            label = f"{name}_{numbers[name]}"
        names[label] = None
    return list(names)


def record(names: list[str], row: list[str]) -> dict[str, Any]:
    """A row as an object: a cell that it lacks is absent, those beyond the header are a list under the last name."""
    width = len(names) - 1
    found: dict[str, Any] = dict(zip(names[:width], row, strict=False))
    if len(row) > width:
        found[names[-1]] = row[width:]
    return found


def is_header(cells: list[str], rows: list[list[str]], spaced: bool) -> bool:
    """Whether the first line names what stands below it, rather than being one more line of the same kind.

    `rows` have a cell below each of its cells. `spaced`: blanks follow the delimiters, as in prose.
    """
    if not any(any(row) for row in rows):
        return False
    shown = rows[:_SHOWN]
    columns = [[row[i] for row in shown] for i in range(len(cells))]
    for cell, column in zip(cells, columns, strict=True):
        mask = DIGITS.sub("0", cell)
        same = (DIGITS.sub("0", other) == mask for other in column if other[:1] == cell[:1] and len(other) < 200)
        if cell and 2 * sum(same) > len(column):
            return False
    if not spaced and len(rows) >= (2 if len(cells) > 2 else 3):
        return True
    if len(set(cells)) < len(cells) or not all(
        _NAME.match(cell.strip()) for cell in (cells if cells[-1] else cells[:-1])
    ):
        return False
    if any(len(cell.split()) > 3 for cell in cells):
        return False
    if spaced:
        return any(column and all(NUMERIC.match(cell.strip()) for cell in column) for column in columns)
    return any(any(char.isdigit() for char in cell) or not cell for row in rows for cell in row)
