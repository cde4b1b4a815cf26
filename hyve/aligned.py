"""Tables whose columns stand below each other, parted by blanks alone: of kubectl, docker, ps, df, free, netstat, top.

Rules:
- A row is read only in a way that the places of its cells bear out: each begins where its column's name begins, or ends
  where that ends, or stands to the right of there because a cell before it was too wide. Where two ways differ, none is
  taken. Cells may have blanks in them where more than one blank is between cells.
- A row of which that can't be told, between others, has the cells that are sure, and the rest of its line as
  `extra_cells` (`ragged_rows`): no cell gets what may be another one's.
- A header that comes again is no row (`concatenated`); another header, or a blank line, ends the table.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple, Protocol

from hyve.delimited import DIGITS, NUMERIC, Table, column_names, is_header

Span = tuple[int, int]

_SHOWN = 8
"""Rows that a header is held against before a table is read: each line may be a header."""
_VOTERS = 100
"""Rows that tell how the columns are aligned."""
_MOST_NAMES = 256
_ODD = 2
"""Rows one behind the other that can't be told, before the table ends."""
_APART = 3
"""Blanks that no cell has, below names that are as far apart."""
MOUNTED, _COLUMNS, _WIDEST = "Mounted on", 16, 1_000
"""The last name of a header of df, and how many names it has, and its lines characters, at most."""

_HEADER = re.compile(r"(?:--(?=  ))?[ \t]*+(?:(?:\(?[A-Za-z%#][\w%()#/.:+-]*+|/)(?:[ \t]++|\Z)){2,}+\Z")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?=  )")
"""What sar writes where the name of its first column would stand."""
_BEGINS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""How a header begins that needs no numbers below it."""
_TITLE = re.compile(r"(?:[A-Z%#][\w%()#/.:+-]*+(?: [\w%()#/.:+-]++){0,2}|--)\Z")
_CAPITALS = re.compile(r"(?:\([a-z]++\)|[A-Z0-9_%()#/.:+ -])++\Z")
_UNDERLINE = re.compile(r"[ \t]*+[-=]{2,}+(?:[ \t]++[-=]{2,}+)++[ \t]*+\Z")
_WORD = re.compile(r"\S+")
_NAME = re.compile(r"\S+?Port(?=Process)|\S+")
"""A word of a header; ss leaves no blank before the name of its last column."""
_PAIRS = re.compile(r"(?:Local|Foreign|Peer) Address|Program name|Mounted on")
"""Names of two words in tables that have one blank between names."""
_CHUNK = re.compile(r"\S+(?: \S+)*+")
_MARK = re.compile(r"[^\w\s\"'/\[(<.$-] (?=\S)")
"""What systemctl writes before the first cell of some rows."""


def looks_like_header(line: str) -> bool:
    """Whether a line may be the header of such a table: names, some of them more than one blank apart."""
    return "  " in line.strip() and _HEADER.match(line, 8 if _CLOCK.match(line) else 0) is not None


def filesystems(lines: list[str], i: int) -> Table | None:
    """The table of df: its first and last cells may have blanks, and one blank may be all that is between two."""
    cells = [*lines[i].removesuffix(MOUNTED).split(), MOUNTED]
    if not 3 < len(cells) <= _COLUMNS:
        return None
    names = column_names(cells)
    middle = r"\s++(\S++)" * (len(cells) - 2)
    form = re.compile(rf"(\S++(?:\s++\S++)*?){middle}\s++(/.*\S|/)\s*\Z")
    rows: list[dict[str, Any]] = []
    while (at := i + 1 + len(rows)) < len(lines) and len(lines[at]) < _WIDEST and (match := form.match(lines[at])):
        rows.append(dict(zip(names, match.groups(), strict=False)))
    return Table(rows, i, at, "table") if rows else None


class _Row:
    """A line, and where its words stand, and what stands between two blanks and more."""

    def __init__(self, text: str, number: int, marked: bool) -> None:
        self.text, self.number = text.rstrip(), number
        mark = _MARK.match(text) if marked else None
        self.begin = mark.end() if mark else 0

    @cached_property
    def words(self) -> list[Span]:
        """The spans of the first words."""
        return [match.span() for match in islice(_WORD.finditer(self.text, self.begin), _MOST_NAMES + 2)]

    @cached_property
    def chunks(self) -> list[Span]:
        """The spans of the first words that have no more than a blank between them."""
        return [match.span() for match in islice(_CHUNK.finditer(self.text, self.begin), _MOST_NAMES + 2)]

    def cells(self, spans: Sequence[Span]) -> list[str]:
        """The texts of cells; a mark belongs to the first one, and to the last one what is behind it."""
        texts = [self.text[start:end] for start, end in spans]
        texts[0] = self.text[: spans[0][1]].strip()
        texts[-1] = self.text[spans[-1][0] if len(spans) > 1 else 0 :].strip()
        return texts


class _Read(NamedTuple):
    """The cells of a row, of all columns if there is no `rest`, which is the text of which it can't be told."""

    cells: list[str]
    rest: str = ""


class _Layout(Protocol):
    spans: list[Span]

    def read(self, row: _Row) -> _Read: ...

    def over(self, rows: list[_Row]) -> _Layout: ...


class _Gapped:
    """Columns of texts set to the left, with more than one blank between any two cells."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self.gap = min(start - end for (_, end), (start, _) in pairwise(spans)) if len(spans) > 1 else 0
        self.columns = {start: c for c, (start, _) in enumerate(spans)}
        self.grown: dict[int, int] = {}  # where the columns begin behind a row that pushed them to the right

    def over(self, rows: list[_Row]) -> _Gapped:
        """The same: its names say all of it."""
        return _Gapped(self.spans)

    def read(self, row: _Row) -> _Read:
        """The cells by their places, or in their order where all are there but pushed to the right."""
        pushed = self.pushed(row)
        ways = [self._placed(row, self.columns), self._placed(row, self.grown) if self.grown else None, pushed]
        cells = next(filter(None, ways), None)
        if cells and all(way in (None, cells) for way in ways):
            if pushed:
                self.grown = {start: c for c, (start, _) in enumerate(row.chunks)}
            return _Read(cells)
        exact = 0
        for (start, _), (name, _) in zip(row.chunks, self.spans, strict=False):
            if start != name:
                break
            exact += 1
        sure = max(exact - 1, 0)
        return _Read([row.text[start:end] for start, end in row.chunks[:sure]], row.text[row.chunks[sure][0] :])

    def _placed(self, row: _Row, columns: dict[int, int]) -> list[str] | None:
        """The cells by where the columns begin."""
        starts, found = list(columns), [(0, 0)] * len(columns)
        c, loose = -1, False
        for start, end in row.chunks:
            at = 0 if c < 0 and start <= starts[0] else columns.get(start)
            if at is not None:
                c, loose = at, False
                found[c] = (start, end)
            elif c < 0:
                return None
            else:  # more of the same cell, if the next one shows that nothing is pushed to the right
                found[c] = (found[c][0], end)
                loose = True
            if c == len(starts) - 1:
                found[c] = (start, len(row.text))
                break
            if end >= starts[c + 1]:
                return None
        if loose and c < len(starts) - 1:
            return None
        cells = [row.text[start:end] for start, end in found]
        cells[0] = row.text[: found[0][1]].strip()
        return cells if sum(map(bool, cells)) > 1 else None

    def pushed(self, row: _Row) -> list[str] | None:
        """The cells in their order, if all are there and pushed to the right."""
        if len(row.chunks) != len(self.spans) or row.chunks[0][0] > self.spans[0][0]:
            return None
        shift = 0
        for c in range(1, len(self.spans)):
            start, before = row.chunks[c][0], shift
            shift = start - self.spans[c][0]
            if shift < 0 or (0 < shift < before and min(self.gap, start - row.chunks[c - 1][1]) < _APART):
                return None
        return row.cells(row.chunks)


LEFT, RIGHT, BELOW = "left", "right", "below"
"""How the cells of a column are set: from where its name begins, up to where it ends, or anyhow below it."""


class _State(NamedTuple):
    """How far the cells of a row so far stand to the right of their columns, and whether that can be as all cells
    behind one that is too wide are pushed, or as only those are that have to be."""

    shift: int = 0
    all: bool = True
    few: bool = True


def _cell(row: _Row, c: int) -> str:
    return row.text[slice(*row.words[c])]


class _Worded:
    """Columns of words set to the left or to the right, of which one blank may be all that is between two."""

    def __init__(self, spans: list[Span], rows: list[_Row], allowed: Sequence[str]) -> None:
        self.spans, self.allowed, self.seen = spans, allowed, len(rows)
        self.stops = [stop for _, stop in spans]
        self.gapped = _Gapped(spans)
        self.modes: list[str] = []
        self.least: list[int] = []
        self._align(rows)
        self.starting = {spans[c][0]: c for c, mode in enumerate(self.modes) if mode == LEFT}
        self.ending = {spans[c][1]: c for c, mode in enumerate(self.modes) if mode == RIGHT}

    def over(self, rows: list[_Row]) -> _Worded:
        """The same columns, as more rows show them."""
        return self if len(rows) == self.seen else _Worded(self.spans, rows, self.allowed)

    @property
    def strict(self) -> bool:
        """Whether all of its columns are set to the left or the right."""
        return all(mode in (LEFT, RIGHT) for mode in self.modes)

    def _align(self, rows: list[_Row]) -> None:
        """Finds how the cells of each column are set, by most rows that may have all of them ("" where there are none),
        and where the widest cells begin that are not pushed."""
        alive = [(row, _State()) for row in rows if len(row.words) >= len(self.spans)]
        for c, (name, stop) in enumerate(self.spans):
            ending = (row.words[c][0] for row, _ in alive if row.words[c][1] == stop)
            self.least.append(min(ending, default=name))
            best, most = "", list[tuple[_Row, _State]]()
            for mode in self.allowed:
                stepped = [(row, after) for row, state in alive if (after := self._step(row, c, mode, state))]
                even = len(stepped) == len(most) > 0 and mode == RIGHT
                if len(stepped) > len(most) or (even and all(NUMERIC.match(_cell(row, c)) for row, _ in stepped)):
                    best, most = mode, stepped
            self.modes.append(best)
            alive = most

    def _step(self, row: _Row, c: int, mode: str, state: _State) -> _State | None:
        """The state behind the cell of a column; None if the cell can't stand there."""
        start, end = row.words[c]
        name, stop = self.spans[c]
        last = c == len(self.spans) - 1
        if last:
            end = len(row.text)
        shift = start - name if mode == LEFT else end - stop
        if mode == BELOW:
            shift = state.shift
            if not self._below(c, start - shift, end - shift):
                return None
        if shift < 0 or (last and mode != LEFT and len(row.words) > len(self.spans)):
            return None
        if last and mode == LEFT:  # it may be indented, as the tree of ps is
            return _State(shift)
        close = start == (row.words[c - 1][1] + 1 if c else 0)
        if mode == RIGHT and c and self.modes[c - 1] == LEFT:  # it fills the column from where that begins
            close |= start - state.shift <= min(self.least[c], name)
        every = state.all and (shift == state.shift or (shift > state.shift and close))
        few = state.few and (shift == 0 or close)
        return _State(shift, every, few) if every or few else None

    def _below(self, c: int, start: int, end: int) -> bool:
        """Whether a word stands below this name, and no other."""
        spans = self.spans
        return (
            start < spans[c][1]
            and end > spans[c][0]
            and (c == 0 or spans[c - 1][1] <= start)
            and (c == len(spans) - 1 or end <= spans[c + 1][0])
        )

    def read(self, row: _Row) -> _Read:
        """The cells in their order if each stands well, else by their places."""
        words, columns = row.words, len(self.spans)
        state: _State | None = _State()
        good, moved = 0, False
        while state and good < min(columns, len(words)):
            state = self._step(row, good, self.modes[good], state) if self.modes[good] else None
            if state:
                good += 1
                moved |= state.shift > 0 and good < columns
        if good == columns:
            cells = row.cells(words[:columns])
            others = (self._placed(row) if moved else None, self.gapped.pushed(row))
            if all(other in (None, cells) for other in others):
                return _Read(cells)
        elif placed := self._placed(row):
            return _Read(placed)
        sure = max(min(good, columns) - 2, 0) if moved else max(good - 1, 0)
        return _Read([row.text[start:end] for start, end in words[:sure]], row.text[words[sure][0] :])

    def _placed(self, row: _Row) -> list[str] | None:
        """The cells of a row of which some are blank: each word stands where one column's cells do."""
        found: dict[int, Span] = {}
        last = len(self.spans) - 1
        for start, end in row.words:
            below = bisect_right(self.stops, start)
            at = {self.starting.get(start), self.ending.get(end)} - {None}
            if below <= last and self.modes[below] in (BELOW, "") and self._below(below, start, end):
                at.add(below)
            if len(at) != 1 or (c := at.pop() or 0) <= max(found, default=-1):
                return None
            found[c] = (start, end)
            if c == last:
                found[c] = (start, len(row.text))
                break
            if self.modes[c] == LEFT and end >= self.spans[c + 1][0]:
                return None
        if len(found) < 2:
            return None
        cells = [row.text[slice(*found[c])] if c in found else "" for c in range(len(self.spans))]
        cells[0] = row.text[: found[0][1]].strip() if 0 in found else ""
        return cells


class _Cut:
    """Columns whose widths the lines of dashes below their names tell, with one blank between two."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans

    def over(self, rows: list[_Row]) -> _Cut:
        """The same."""
        return self

    def read(self, row: _Row) -> _Read:
        """The cells between the blanks."""
        cells: list[str] = []
        for start, end in self.spans[:-1]:
            if row.text[end : end + 1] not in (" ", ""):
                return _Read(cells, row.text[start:])
            cells.append(row.text[start:end].strip())
        return _Read([*cells, row.text[self.spans[-1][0] :].strip()])


def aligned(lines: list[str], i: int) -> Table | None:
    """The table whose header is line `i`, if there is one; its span counts lines."""
    header = _CLOCK.sub("time    ", lines[i].replace("\t", " "), count=1)
    underline = [match.span() for match in _WORD.finditer(lines[i + 1])] if _UNDERLINE.match(lines[i + 1]) else []
    first = i + 1 + bool(underline)
    if first >= len(lines) or DIGITS.sub("0", lines[first]) == DIGITS.sub("0", header):
        return None
    shown = list(islice(_block(lines, first, header), _SHOWN))
    if len(shown) > 2 and not any(
        told for layout in _layouts(header, underline, shown[:2]) for told in _table(layout, shown[:2])
    ):
        return None
    best: _Layout | None = None
    most, table = 0, list[tuple[_Row, _Read]]()
    for layout in _layouts(header, underline, shown):
        found = list(_table(layout, shown))
        told = [read.cells for _, read in found if not read.rest]
        if len(told) > most and not _needless(layout.spans, told) and _is_table(header, bool(underline), told, layout):
            best, most, table = layout, len(told), found
            if most == len(shown):
                break
    if best is None:
        return None
    block: Iterable[tuple[_Row, _Read]] = table
    if len(shown) == _SHOWN:
        layout = best.over(list(islice(_block(lines, first, header), _VOTERS)))
        block = _table(layout, _block(lines, first, header))
    names = column_names([header[start:end].strip() for start, end in _named(best.spans, underline)])
    rows: list[dict[str, Any]] = []
    ragged, stop = False, first
    for row, (cells, rest) in block:
        rows.append(dict(zip(names, cells, strict=False)))
        if rest:
            rows[-1][names[-1]] = [rest]
            ragged = True
        stop = row.number + 1
    said = {"concatenated": stop - first > len(rows), "ragged_rows": ragged}
    return Table(rows, i, stop, "table", tuple(flag for flag, met in said.items() if met)) if rows else None


def _block(lines: list[str], first: int, header: str) -> Iterator[_Row]:
    """The lines below a header that may be rows: up to a blank one or another header, without the header itself."""
    capitals, names = bool(_CAPITALS.match(header)), set(header.split())
    for number in range(first, len(lines)):
        line = lines[number]
        if not line or line.isspace():
            return
        if line.rstrip() == header.rstrip():
            continue
        if capitals and _CAPITALS.match(line) and _HEADER.match(line) and not names.isdisjoint(line.split()):
            return
        yield _Row(line, number, header[:2].isspace())


def _table(layout: _Layout, rows: Iterable[_Row]) -> Iterator[tuple[_Row, _Read]]:
    """The rows of a table, of which a few between others may not be told."""
    odd: list[tuple[_Row, _Read]] = []
    for row in rows:
        read = layout.read(row)
        if read.rest:
            if not read.cells or len(odd) == _ODD:
                return
            odd.append((row, read))
        else:
            yield from odd
            yield row, read
            odd = []


def _named(spans: list[Span], underline: list[Span]) -> list[Span]:
    """The spans of the names of columns: above dashes, up to where the next ones begin."""
    if not underline:
        return spans
    starts = [start for start, _ in spans]
    return list(zip(starts, [*starts[1:], starts[-1] + _WIDEST], strict=True))


def _layouts(header: str, underline: list[Span], shown: list[_Row]) -> Iterator[_Layout]:
    """The ways in which the columns of a table may stand below its header, the likeliest first."""
    if not shown:
        return
    if underline:
        if all(start == end + 1 for (_, end), (start, _) in pairwise(underline)):
            yield _Cut(underline)
        yield _Gapped(underline)
        yield _Worded(underline, shown, (LEFT, RIGHT, BELOW))
        return
    words = [match.span() for match in islice(_NAME.finditer(header), _MOST_NAMES + 1)]
    if not 1 < len(words) <= _MOST_NAMES:
        return
    yield _Worded(words, shown, (LEFT, RIGHT))
    chunks = [match.span() for match in _CHUNK.finditer(header)]
    if all(_TITLE.match(name) or _CAPITALS.match(name) for name in (header[start:end] for start, end in chunks)):
        yield _Gapped(chunks)
    gaps = [start for (_, end), (start, _) in pairwise(words) if start == end + 1]
    filled = {start: sum(row.text[start - 1 : start].strip() != "" for row in shown) for start in gaps}
    pairs = {start for match in _PAIRS.finditer(header) for start in (header.index(" ", match.start()) + 1,)}
    joins = [set[int](), pairs, {start for start in gaps if filled[start]} | pairs]
    joins += [{start for start in gaps if 2 * filled[start] > len(shown)} | pairs, set(gaps)]
    labels = [[], [(0, 1)]] if header[:4].isspace() and not shown[0].text[0].isspace() else [[]]
    tried: list[list[Span]] = []
    for joined in joins:
        for label in labels:
            spans = [*label, *_without(words, joined)]
            if spans not in tried:
                tried.append(spans)
                yield _Worded(spans, shown, (LEFT, RIGHT, BELOW))


def _without(words: list[Span], joined: set[int]) -> list[Span]:
    """The spans of names, of which those that begin at `joined` go on with the one before."""
    spans = words[:1]
    for start, end in words[1:]:
        if start in joined:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _needless(spans: list[Span], told: list[list[str]]) -> bool:
    """Whether a column is blank in all rows, and but one blank is before its name: it is a word of the name there."""
    close = (c for c, ((_, end), (start, _)) in enumerate(pairwise(spans), 1) if start == end + 1)
    return any(not any(row[c] for row in told) for c in close)


def _is_table(header: str, underlined: bool, told: list[list[str]], layout: _Layout) -> bool:
    """Whether the lines that are read so are rows, and the header is one."""
    cells = [header[start:end].strip() for start, end in _named(layout.spans, layout.spans if underlined else [])]
    capitals, columns = bool(_CAPITALS.match(header)), len(cells)
    words = not any(" " in text for text in chain(*told))
    if columns < 2 or (
        columns == 2 and not (capitals or underlined or (words and len(told) > 2 and cells[0] != cells[1]))
    ):
        return False
    numbers = sum(all(NUMERIC.match(row[c]) for row in told if row[c]) for c in range(columns))
    strict = not isinstance(layout, _Worded) or layout.strict
    apart = all(start > end + 1 for (_, end), (start, _) in pairwise(layout.spans))
    named = header.lstrip()[:1] in _BEGINS
    sure = underlined or (numbers == columns > 7 and strict)
    if sure or (capitals and columns > (2 if apart else 3) and strict and (apart or numbers > 1)):
        least = 1
    elif numbers > 1 and columns > 3 and (strict or named or header[:4].isspace()):
        least = 2
    elif strict and named and (capitals or apart):
        least = 2 if capitals and (apart or columns > 2) else 3
    else:
        return False
    return len(told) >= least and is_header([cell.replace(" / ", "/") for cell in cells], told, False)
