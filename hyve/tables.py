"""Tables in text: delimited (CSV, TSV, ...), fixed-width (of kubectl, docker, ps, df), ruled (Markdown, psql, MySQL).

Rules:
- Cells stay text; what a cell means is the store's business. An empty cell is "", a cell that its row doesn't have is
  absent (`ragged_rows`), cells beyond the header stand in `extra_cells`. One row in fifty may be ragged, or one, and
  the last may be short whatever the others are. A count of the rows below a table ("(20 rows)") is no part of it.
- A table has a header that looks like names (in any script, at most a mebibyte), unlike what stands below it. Prose
  with commas, log lines and source code have none. The shorter the table, the more its cells have to differ from its
  header.
- A row that repeats the header (files written one after the other) is dropped, and the table flagged `concatenated`.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Any, Literal, NamedTuple

from hyve import strictjson

csv.field_size_limit(1 << 30)  # a cell may hold a whole document; the limit is the process's

_HEADER_CHARS = 1 << 20
_COMMENTS = 5
"""Lines of comment before a header that are looked past."""
_CELL = re.compile(r"(?:[^\W\d]|[@#])[^{}\"'=\n\t]{0,79}\Z")
_NAME = re.compile(r"(?:[^\W\d]|[@#%])(?:[\w .()/%$#@:+-]|[^\x00-\x7f]){0,60}\Z")
_NUMERIC = re.compile(r"[<>~+-]?\$?\d[\w.,:%+/() -]*\Z")
_DIGITS = re.compile(r"\d+")
_TRAILER = re.compile(
    r"[ \t]*+\(?\d[\d,]*+ (?:rows?|row\(s\)|records?)(?: (?:affected|selected|returned|in set))?\)?[ \t.]*+\Z", re.I
)
"""What a client of a database writes below a table."""
_SHOWN = 8
"""Rows that a header is held against before a table of aligned columns is read: each line may be a header."""


class Table(NamedTuple):
    """Rows in source order, as objects of texts, and where they stand, header included. Those of a `long` one are not
    held."""

    rows: list[dict[str, Any]]
    start: int
    end: int
    syntax: Literal["csv", "table"]
    flags: tuple[str, ...] = ()
    long: Delimited | None = None


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
        for row in _cells(self.text, self.start, self.end, self.delimiter):
            if row and row != self.header:
                yield _ragged(self.names, row)


_ROWS, _SHOWN_EVEN = 512, 50
"""Rows that are looked at together, and those that a header is held against."""

_RUN_CELLS = 1 << 13
"""Cells of the runs in which rows that are not held come."""


def _cells(text: str, start: int, end: int, delimiter: str) -> Iterator[list[str]]:
    """The cells of each line of a delimited table. Raises csv.Error."""
    return csv.reader(_lines(text, start, end), delimiter=delimiter, strict=True)


def _lines(text: str, start: int, end: int) -> Iterator[str]:
    """Lines with their ends; no copy of a long text has to live."""
    while start < end:
        stop = min(text.find("\n", start + _LINES, end) + 1 or end, end)
        yield from io.StringIO(text[start:stop], newline="")
        start = stop


_LINES = 1 << 16
"""Characters of text that are cut into lines at once."""


def read(text: str, least: int = 1, keep: bool = True) -> Table | None:
    """The whole text as one delimited table of at least that many rows. Comment lines before it and a count of its rows
    behind it are no part of it. Unless they are to be `keep`t, the rows of a long text are `Delimited`."""
    end = len(text.rstrip("\r\n"))
    last = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
    if end - last < 80 and _TRAILER.match(text, last, end):
        end = len(text[:last].rstrip("\r\n"))
    start = len(text) - len(text.lstrip("\r\n"))
    for _ in range(_COMMENTS):
        stop = min(start + _HEADER_CHARS, end)
        ends = [at for newline in "\r\n" if (at := text.find(newline, start, stop)) >= 0]
        if not ends:
            return None
        head = text[start : min(ends)]
        for delimiter in ",\t;|":
            if delimiter in head and (table := _delimited(text, (start, end), head, delimiter, least, keep)):
                return table
        if head[:1] != "#":
            return None
        start = min(ends) + 1
        start += text[start - 1 : start + 1] == "\r\n"
    return None


def _delimited(text: str, span: tuple[int, int], head: str, delimiter: str, least: int, keep: bool) -> Table | None:
    long = not keep and span[1] - span[0] >= strictjson.LONG
    held: list[list[str]] = []
    shown: list[list[str]] = []  # the first even rows; if all of them are empty, one that is not
    even = ragged = repeated = 0
    short = False
    try:
        cells = next(csv.reader([head], delimiter=delimiter, strict=True))
        if len(cells) < 2 or any(len(cell.split()) > 4 for cell in cells):
            return None  # names are short: more words make a sentence
        if not all(_CELL.match(cell.strip()) or (cell == "" and i == 0) for i, cell in enumerate(cells[:-1])):
            return None
        if not _CELL.match(cells[-1].strip()) and (cells[-1] or len(cells) < 3):
            return None
        reader = _cells(text, *span, delimiter)
        rows = list(islice(reader, 1, 64))
        header = cells
        if not cells[-1] and 2 * sum(len(row) == len(cells) - 1 for row in rows) > len(rows):
            cells = cells[:-1]  # only the header ends in a delimiter
        if sum(len(row) not in (0, len(cells)) for row in rows) > 8:
            return None
        while rows:
            filled = [row for row in rows if row]
            others = [row for row in filled if row != header]
            fitting = [row for row in others if len(row) == len(cells)]
            repeated += len(filled) - len(others)
            even += len(fitting)
            ragged += len(others) - len(fitting)
            short = len(others[-1]) < len(cells) if others else short
            if len(shown) < _SHOWN_EVEN:
                shown += fitting[:_SHOWN_EVEN]
            elif not any(map(any, shown[:_SHOWN_EVEN])):
                shown += [row for row in fitting if any(row)][:1]
            held += [] if long else others
            rows = list(islice(reader, _ROWS))
    except csv.Error:
        return None
    if ragged and (even < 2 or ragged - short > (max(1, (even + ragged) // 50) if even > 2 else 0)):
        return None
    if even < least or not _is_header(cells, shown, f"{delimiter} " in head):
        return None
    names = _names(cells)
    flags = ("concatenated",) * (repeated > 0) + ("ragged_rows",) * (ragged > 0)
    if long:
        return Table([], *span, "csv", flags, Delimited(text, *span, delimiter, header, names))
    if ragged:
        return Table([_ragged(names, row) for row in held], *span, "csv", flags)
    return Table([dict(zip(names, row, strict=False)) for row in held], *span, "csv", flags)


def _names(cells: Sequence[str]) -> list[str]:
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


def _ragged(names: list[str], row: list[str]) -> dict[str, Any]:
    width = len(names) - 1
    record: dict[str, Any] = dict(zip(names[:width], row, strict=False))
    if len(row) > width:
        record[names[-1]] = row[width:]
    return record


def _is_header(cells: list[str], rows: list[list[str]], spaced: bool) -> bool:
    """Whether the first line names what stands below it, rather than being one more line of the same kind.

    `rows` have a cell below each of its cells. `spaced`: blanks follow the delimiters, as in prose.
    """
    if not any(any(row) for row in rows):
        return False
    shown = rows[:_SHOWN_EVEN]
    columns = [[row[i] for row in shown] for i in range(len(cells))]
    for cell, column in zip(cells, columns, strict=True):
        mask = _DIGITS.sub("0", cell)
        same = (_DIGITS.sub("0", other) == mask for other in column if other[:1] == cell[:1] and len(other) < 200)
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
        return any(column and all(_NUMERIC.match(cell.strip()) for cell in column) for column in columns)
    return any(any(char.isdigit() for char in cell) or not cell for row in rows for cell in row)


_MOST_NAMES = 256
_VOTERS = 1_000
"""Rows that tell where the names of a header part."""
_NAMES = re.compile(r"(?=(?: {4}| ?[A-Z%#]| {1,3}[A-Z%#]))[ \t]*+(?:[A-Za-z%#][\w%()#/.:+-]*+(?:[ \t]++|\Z)){2,}+\Z")
_TITLE = re.compile(r"[A-Z%#][\w%()#/.:+-]*+(?: [\w%()#/.:+-]++){0,2}\Z")
_CAPITALS = re.compile(r"(?:\([a-z]++\)|[A-Z0-9_%()#/.:+ -])++\Z")
_RULE = re.compile(r"[ \t]*+[|+]?[ \t]*+:?(?:-{2,}+|={2,}+):?[ \t]*+(?:[|+][ \t]*+:?[-=]++:?[ \t]*+)++[|+]?[ \t]*+\Z")
_UNDERLINE = re.compile(r"[ \t]*+[-=]{2,}+(?:[ \t]++[-=]{2,}+)++[ \t]*+\Z")


def find(text: str) -> list[Table]:
    """The tables that stand in free text, in order."""
    found = list(_laid_out(text)) if "  " in text or "|" in text else []
    taken = [table.start for table in found]
    for table in _blocks(text):
        at = bisect_left(taken, table.start)
        if (at == 0 or found[at - 1].end <= table.start) and (at == len(found) or table.end <= taken[at]):
            found.insert(at, table)
            taken.insert(at, table.start)
    return found


_BLOCK_END = re.compile(r"\n[ \t\r]*+(?=\n|\Z|```)")
_FENCE = re.compile(r"\s*+(?:```[ \t]*+(?P<kind>\w*+)[^\n]*+\n)?")


def _blocks(text: str) -> Iterator[Table]:
    """The delimited tables among the blocks of lines, up to a blank line or a fence; one line may stand before them."""
    start = 0
    while start < len(text) and (fence := _FENCE.match(text, start)):
        match = _BLOCK_END.search(text, fence.end())
        end = match.start() if match else len(text)
        least = 1 if (fence["kind"] or "").lower() in ("csv", "tsv") else 3  # a fence that says so holds a table
        at = fence.end()
        for _ in range(2):
            newline = text.find("\n", at, end)
            if newline < 0:
                break
            table = read(text[at:end], least) if any(delimiter in text[at:newline] for delimiter in ",\t;|") else None
            if table and (least == 1 or _holds_numbers(table.rows[:50])):
                yield table._replace(start=at + table.start, end=at + table.end)
                break
            at = newline + 1
        start = end + 1


def _holds_numbers(rows: list[dict[str, Any]]) -> bool:
    return any(type(cell) is str and cell[:1].isdigit() for row in rows for cell in row.values())


def _laid_out(text: str) -> Iterator[Table]:
    """The tables that are drawn: by lines of dashes, or by blanks."""
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    lines = [line.rstrip("\r") for line in lines]
    i = 0
    while i < len(lines) - 1:
        line = lines[i]
        found: Table | None = None
        if "|" in line or line.lstrip()[:2] == "+-":
            header = i + 1 if _RULE.match(line) else i
            if "|" in lines[header] and header + 1 < len(lines) and _RULE.match(lines[header + 1]):
                found = _ruled(lines, i, header)
        elif "  " in line and _NAMES.match(line):
            found = _aligned(lines, i)
        if found is not None:  # its span counts lines
            yield found._replace(start=offsets[i], end=offsets[found.end - 1] + len(lines[found.end - 1]))
            i = found.end
        else:
            i += 1


def _ruled(lines: list[str], first: int, header: int) -> Table | None:
    """A table with a line of dashes below its header (and in a frame: above it and at its end)."""
    ruler = lines[header + 1]
    width = len(_piped(ruler.replace("+", "|"), True))
    # Whether `|` opens the lines or parts their cells isn't for each line to say: its first cell may be blank.
    framed = ruler.strip()[0] in "|+" or width != len(_piped(lines[header], False))
    cells = _piped(lines[header], framed)
    names = _names(cells)
    if len(cells) < 2 or len(cells) != width or not any(cells):
        return None
    stop, ragged = header + 2, False
    rows: list[list[str | list[str]]] = []  # a cell of several lines is a list of them
    goes_on: set[int] = set()
    while stop < len(lines) and (line := lines[stop]).strip():
        if _RULE.match(line):
            stop += 1
            goes_on = set()
            if first < header:
                break
            continue
        if "|" not in line:
            break
        row = _piped(line, framed)
        if goes_on and len(row) == width and not any(cell for i, cell in enumerate(row) if i not in goes_on):
            for i in goes_on:
                cell = rows[-1][i]
                pieces = [cell] if isinstance(cell, str) else cell
                pieces[-1] = pieces[-1][:-1].rstrip()
                pieces.append(row[i])
                rows[-1][i] = pieces
        else:
            ragged |= len(row) != width
            rows.append([*row])
        goes_on = _unfinished(line, ruler, framed) if len(row) == width and "+" in ruler and "+" in line else set()
        stop += 1
    records = [_ragged(names, [cell if isinstance(cell, str) else "\n".join(cell) for cell in row]) for row in rows]
    return Table(records, first, stop, "table", ("ragged_rows",) if ragged else ()) if rows else None


def _unfinished(line: str, ruler: str, framed: bool) -> set[int]:
    """The columns that psql goes on with in the next line: a + stands where a blank would be, at the cell's end."""
    cells = line.rstrip().split("|")
    if framed:
        cells = cells[1:-1]
    last = len(cells) - 1
    full = framed or len(line.rstrip()) == len(ruler.rstrip())
    return {i for i, cell in enumerate(cells) if cell.endswith("+") and (i < last or full)}


def _piped(line: str, framed: bool) -> list[str]:
    """The cells of a line; in a frame, a `|` at its start and its end is no part of them."""
    line = line.strip()
    if framed and line.startswith("|"):
        line = line[1:]
    if framed and line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    if "\\|" not in line:
        return [cell.strip() for cell in line.split("|")]
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)]


def _aligned(lines: list[str], i: int) -> Table | None:
    """A table whose columns stand below each other: by the starts of its header's names, else by its blanks."""
    line = lines[i].replace("\t", " ")
    underlined = bool(_UNDERLINE.match(lines[i + 1]))
    first = i + 1 + underlined
    if first >= len(lines) or _DIGITS.sub("0", lines[first]) == _DIGITS.sub("0", line):
        return None
    spans = [match.span() for match in re.finditer(r"\S+(?: \S+)*+", line)]
    cells = [line[start:end] for start, end in spans]
    capitals = bool(_CAPITALS.match(line))
    if len(cells) > (1 if capitals else 2) and all(_TITLE.match(cell) or _CAPITALS.match(cell) for cell in cells):
        shown, tight = _below(lines[first : first + _SHOWN], [start for start, _ in spans])
        certain = underlined or (capitals and not tight and len(cells) > 2)
        if len(shown) >= (1 if certain else 2 if capitals and not tight else 3) and _is_header(cells, shown, False):
            spans = list(_split(line, spans, lines[first : first + len(shown)]))
            rows, _ = _below(lines[first:], [start for start, _ in spans])
            names = _names([line[start:end] for start, end in spans])
            return Table([dict(zip(names, row, strict=False)) for row in rows], i, first + len(rows), "table")
    return _columns(lines, line, first)


def _below(lines: list[str], starts: list[int]) -> tuple[list[list[str]], bool]:
    """(cells of the lines that are rows of columns with these starts, whether only one blank parts some of them)."""
    starts = [0, *starts[1:]]
    rows: list[list[str]] = []
    tight = False
    for line in lines:
        cut = [start for start in starts[1:] if start <= len(line)]
        if not line.strip():
            break
        if any(line[start - 1] != " " for start in cut):
            row = re.split(" {2,}", line.strip())  # a long cell pushed the others to the right
            if not rows or len(row) != len(starts) or len(row) < 3:
                break
            rows.append(row)
            continue
        row = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], len(line)], strict=True)]
        if sum(map(bool, row)) < 2:
            break
        tight |= any(line[start - 2] != " " for start in cut)
        rows.append(row)
    return rows, tight


def _split(line: str, spans: list[tuple[int, int]], rows: list[str]) -> Iterator[tuple[int, int]]:
    """The spans of a header's names, taken apart where all rows have a blank below theirs and something behind it."""
    ends = [*[start for start, _ in spans[1:]], max(map(len, rows))]
    for (start, end), stop in zip(spans, ends, strict=True):
        for match in re.finditer(" ", line[start:end]):
            at = start + match.start()
            if all(row[at : at + 1] in (" ", "") for row in rows) and any(row[at:stop].strip() for row in rows):
                yield start, at
                start = at + 1
        yield start, end


def _columns(lines: list[str], line: str, first: int) -> Table | None:
    """A table with numbers set to the right, as of ps, df and free: one word a cell, but for the last column."""
    if not 4 <= len(line.split()) <= _MOST_NAMES:
        return None
    block = []
    for row in lines[first:]:
        if sum(bool(_NUMERIC.match(cell)) for cell in row.split()) < 2:
            break
        block.append(row)
    if len(block) < 2:
        return None
    spans = _names_apart(line, block[:_VOTERS])
    cells = [line[start:end] for start, end in spans]
    if line[:4].isspace() and len(block[0].split()) == len(cells) + 1 and block[0][:1].strip():
        cells.insert(0, "")
        spans.insert(0, (0, 1))
    rows: list[list[str]] = []
    for row in block:
        values = [value.rstrip() for value in row.split(None, len(cells) - 1)]
        placed = values if len(values) == len(cells) else _placed(row, spans)
        if placed is None:
            break
        rows.append(placed)
    numeric = sum(all(_NUMERIC.match(row[c]) for row in rows if row[c]) for c in range(len(cells)))
    if len(rows) < 2 or len(cells) < 4 or numeric < 2 or not _is_header(cells, rows, False):
        return None
    names = _names(cells)
    return Table([dict(zip(names, row, strict=False)) for row in rows], first, first + len(rows), "table")


def _names_apart(line: str, block: list[str]) -> list[tuple[int, int]]:
    """The spans of the names in a header, where one blank may part two names or two words of one.

    It parts two names where all rows have a blank there. Where some have none, something long may have pushed their
    cells to the right: then it does so if most have a blank, and all rows have words enough for as many names.
    """
    words = [match.span() for match in re.finditer(r"\S+", line)]
    filled = {
        start: sum(row[start - 1 : start] != " " for row in block)
        for (_, end), (start, _) in pairwise(words)
        if start == end + 1
    }
    joined = {start for start, count in filled.items() if 2 * count > len(block)}
    if len(words) - len(joined) > min(len(row.split()) for row in block):
        joined = {start for start, count in filled.items() if count}
    spans = words[:1]
    for start, end in words[1:]:
        if start in joined:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _placed(row: str, spans: list[tuple[int, int]]) -> list[str] | None:
    """The cells of a row with too few words for the columns: each word stands below the one name that it touches."""
    cells = [""] * len(spans)
    c = 0
    for match in re.finditer(r"\S+", row):
        start, end = match.span()
        while c < len(spans) and spans[c][1] <= start:
            c += 1
        if c == len(spans) or spans[c][0] >= end or cells[c] or (c + 1 < len(spans) and spans[c + 1][0] < end):
            return None
        if c == len(spans) - 1:
            cells[c] = row[start:].rstrip()
            break
        cells[c] = match[0]
    return cells
