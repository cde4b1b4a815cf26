"""Tables in free text: delimited ones (see `hyve.delimited`), those parted by blanks alone (see `hyve.aligned`), those
of a line for each cell (see `hyve.expanded`), and ruled ones: of Markdown, psql, MySQL, and in frames of Unicode.

Rules: cells stay text, as those of delimited tables do, and a header is told from rows in the same way.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain
from typing import Any
from unicodedata import combining, east_asian_width

from hyve.aligned import MOUNTED, aligned, filesystems, looks_like_header
from hyve.delimited import Table, column_names, record, table_at, untrailed
from hyve.expanded import BEGIN, expanded
from hyve.parts import ManyParts, Part, parts_of, spans_of, starts_of
from hyve.recovery import REST_BLANK

_RULE = re.compile(r"[ \t]*+[|+]?[ \t]*+:?(?:-{2,}+|={2,}+):?[ \t]*+(?:[|+][ \t]*+:?[-=]++:?[ \t]*+)++[|+]?[ \t]*+\Z")


def find(text: str) -> list[Table]:
    """The tables that stand in free text, in order."""
    found = list(_laid_out(text)) if _DRAWN.search(text) else []
    taken = [table.start for table in found]
    for table in _blocks(text):
        at = bisect_left(taken, table.start)
        if (at == 0 or found[at - 1].end <= table.start) and (at == len(found) or table.end <= taken[at]):
            found.insert(at, table)
            taken.insert(at, table.start)
    return found


def with_tables(text: str, parts: list[Part] | ManyParts) -> list[Part] | ManyParts:
    """The parts and the tables around them; a table may have documents in its cells, which are no parts then."""
    found: list[Part] = []
    begun = line = looked = 0
    for start, end in chain(spans_of(parts), ((len(text), len(text)),)):
        line = text.rfind("\n", looked, start) + 1 or line
        looked = end
        blank = REST_BLANK.match(text, end)
        last = start == len(text)
        if not last and (
            (blank is None and "\n" not in text[start:end]) or start - line > 256 or text[line:start].strip()
        ):
            continue  # inside of its line
        a, b = begun, len(text) if last else line
        if "\n" in text[a:b].strip():
            found += (
                Part(table.rows, (a + table.start, a + table.end), table.syntax, table.flags, table.tail)
                for table in find(text[a:b])
            )
        begun = max(begun, blank.end() if blank else end)
    starts = starts_of(parts)
    # Not such as stand in a part that begins in the middle of a line and goes over several.
    found = [table for table in found if not _within(parts, bisect_left(starts, table.span[0]) - 1, table)]
    if not found:
        return parts
    begins = [table.span[0] for table in found]
    kept = (part for part in parts if not _within(found, bisect_right(begins, part.span[0]) - 1, part))
    return parts_of(text, merge(kept, found, key=lambda part: part.span))


def _within(outer: Sequence[Part], place: int, part: Part) -> bool:
    """Whether `part` begins before the end of the one at `place` of `outer`, the last that begins before it."""
    return place >= 0 and outer[place].span[1] > part.span[0]


_BOX = re.compile(r"[\u2500-\u257f]")
_LINES = {
    chr(code): "|" if chr(code) in "│┃║" else "-" if chr(code) in "─━═" else "+" for code in range(0x2500, 0x2580)
}
_ASCII = str.maketrans(_LINES)
_BARS = str.maketrans("│┃║", "|||")
_SINGLE = re.compile(r"-{3,}\Z")
_COUNT = re.compile(r"\((\d{1,9}) rows?\)\Z")
_DRAWN = re.compile(rf"  |[|\u2500-\u257f]|{MOUNTED}|\n---+\r?\n")
"""What stands in a text that has such tables."""
_BLOCK_END = re.compile(r"\n[ \t\r]*+(?=\n|\Z|```)")
_BEFORE, _MANY = 3, 1 << 30
"""Lines of text that may stand right before a table; below more than one of them, no number of rows makes it sure."""
_FENCE = re.compile(r"\s*+(?:```[ \t]*+(?P<kind>\w*+)[^\n]*+\n)?")


def _blocks(text: str) -> Iterator[Table]:
    """The delimited tables among the blocks of lines, up to a blank line or a fence; some lines may be before them."""
    start, fenced = 0, -1
    while start < len(text) and (fence := _FENCE.match(text, start)):
        match = _BLOCK_END.search(text, fence.end())
        stop = match.start() if match else len(text)
        least = 1 if (fence["kind"] or "").lower() in ("csv", "tsv") else 3  # a fence that says so holds a table
        at = fence.end()
        if fenced < at:
            fenced = text.find("\n```", at) % (len(text) + 1)
        start = stop + 1
        for before in range(_BEFORE + 1):
            newline = text.find("\n", at, stop)
            if newline < 0:
                break
            if any(delimiter in text[at:newline] for delimiter in ",\t;|"):
                last = untrailed(text, at, stop)
                end = fenced if last == stop else last
                table = table_at(text, (at, max(end, last)), last, least if before < 2 else _MANY)
                if table and (least == 1 or _holds_numbers(table.rows[:50])):
                    yield table
                    start = max(start, table.end)
                    break
            at = newline + 1


def _holds_numbers(rows: list[dict[str, Any]]) -> bool:
    return any(type(cell) is str and cell[:1].isdigit() for row in rows for cell in row.values())


def _laid_out(text: str) -> Iterator[Table]:
    """The tables that are drawn: by lines of dashes, or by blanks."""
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    ends = [offset + len(line.rstrip("\r")) for offset, line in zip(offsets, lines, strict=False)]
    lines = [line.rstrip("\r") for line in lines]
    if _BOX.search(text):
        lines = [_plain(line) if _BOX.search(line) else line for line in lines]
    i = 0
    while i < len(lines) - 1:
        line = lines[i]
        found: Table | None = None
        if "|" in line or line.lstrip()[:2] == "+-":
            header = i + 1 if _RULE.match(line) else i
            if "|" in lines[header] and header + 1 < len(lines) and _RULE.match(lines[header + 1]):
                found = _ruled(lines, i, header)
        elif line[:1] in ("*", "-") and BEGIN.match(line):
            found = expanded(lines, i)
        elif line[:1] == " " and _SINGLE.match(lines[i + 1]):
            found = _single(lines, i)
        elif line.startswith("Filesystem") and line.endswith(MOUNTED):
            found = filesystems(lines, i)
        elif looks_like_header(line):
            found = aligned(lines, i)
        if found is not None:  # its span counts lines
            yield found._replace(start=offsets[i], end=ends[found.end - 1])
            i = found.end
        else:
            i += 1


def _plain(line: str) -> str:
    """A line of a frame in Unicode as one in ASCII; a `|` in its cells is none of it."""
    if set(line.strip()) <= _LINES.keys():
        return line.translate(_ASCII)
    cells = line.strip()
    return line.replace("|", "\\|").translate(_BARS) if cells[0] in "│┃║" and cells[-1] in "│┃║" else line


def _single(lines: list[str], i: int) -> Table | None:
    """A table of psql with one column, which only the count of its rows tells."""
    stop = i + 2
    while stop < len(lines) and lines[stop][:1] == " ":
        stop += 1
    count = _COUNT.match(lines[stop]) if stop < len(lines) else None
    if count is None or int(count[1]) != stop - i - 2 or stop == i + 2:
        return None
    name = lines[i].strip()
    return Table([{name: line.strip()} for line in lines[i + 2 : stop]], i, stop, "table") if name else None


def _ruled(lines: list[str], first: int, header: int) -> Table | None:
    """A table with a line of dashes below its header (and in a frame: above it and at its end)."""
    ruler = lines[header + 1]
    width = len(_piped(ruler.replace("+", "|"), True))
    # Whether `|` opens the lines or parts their cells isn't for each line to say: its first cell may be blank.
    framed = ruler.strip()[0] in "|+" or width != len(_piped(lines[header], False))
    cells = _piped(lines[header], framed)
    names = column_names(cells)
    if len(cells) < 2 or len(cells) != width or not any(cells):
        return None
    borders = [match.start() for match in re.finditer(r"\+", ruler)]
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
        raw = _bordered(line, borders) or line.rstrip().split("|")
        if framed:
            raw = raw[1:-1]
        row = [cell.strip() for cell in raw] if len(raw) == width and borders else _piped(line, framed)
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
        goes_on = set()
        if borders and "+" in line and len(row) == len(raw) == width:  # a + where a blank would be, at the cell's end
            full = framed or len(line.rstrip()) == len(ruler.rstrip())
            goes_on = {i for i, cell in enumerate(raw) if cell.endswith("+") and (i < width - 1 or full)}
        stop += 1
    records = [record(names, [cell if isinstance(cell, str) else "\n".join(cell) for cell in row]) for row in rows]
    return Table(records, first, stop, "table", ("ragged_rows",) if ragged else ()) if rows else None


def _bordered(line: str, borders: list[int]) -> list[str] | None:
    """What stands between the borders of a line, which a `|` in a cell is not; None where not all have a `|`."""
    line = line.rstrip()
    if not line.isascii():
        widths = (0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in line)
        places = {column: place for place, column in enumerate(accumulate(widths, initial=0)) if place < len(line)}
        borders = [places.get(column, len(line)) for column in borders]
    if not borders or any(line[place : place + 1] != "|" for place in borders):
        return None
    return [line[a + 1 : b] for a, b in zip([-1, *borders], [*borders, len(line)], strict=True)]


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
