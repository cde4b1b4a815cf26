"""Tables in free text: delimited ones (see `hyve.delimited`), and those drawn: fixed-width (of kubectl, docker, ps,
df) and ruled (Markdown, psql, MySQL).

Rules: cells stay text, as those of delimited tables do, and a header is told from rows in the same way.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, pairwise
from typing import Any

from hyve.delimited import DIGITS, NUMERIC, Table, column_names, is_header, record, table_at, untrailed
from hyve.parts import ManyParts, Part, parts_of, spans_of, starts_of
from hyve.recovery import REST_BLANK

_SHOWN = 8
"""Rows that a header is held against before a table of aligned columns is read: each line may be a header."""
_MOST_NAMES = 256
_VOTERS = 1_000
"""Rows that tell where the names of a header part."""
_MOUNTED, _COLUMNS, _WIDEST = "Mounted on", 16, 1_000
"""The last name of a header of df, and how many names it has, and its lines characters, at most."""
_NAMES = re.compile(r"(?=(?: {4}| ?[A-Z%#]| {1,3}[A-Z%#]))[ \t]*+(?:[A-Za-z%#][\w%()#/.:+-]*+(?:[ \t]++|\Z)){2,}+\Z")
_TITLE = re.compile(r"[A-Z%#][\w%()#/.:+-]*+(?: [\w%()#/.:+-]++){0,2}\Z")
_CAPITALS = re.compile(r"(?:\([a-z]++\)|[A-Z0-9_%()#/.:+ -])++\Z")
_RULE = re.compile(r"[ \t]*+[|+]?[ \t]*+:?(?:-{2,}+|={2,}+):?[ \t]*+(?:[|+][ \t]*+:?[-=]++:?[ \t]*+)++[|+]?[ \t]*+\Z")
_UNDERLINE = re.compile(r"[ \t]*+[-=]{2,}+(?:[ \t]++[-=]{2,}+)++[ \t]*+\Z")


def find(text: str) -> list[Table]:
    """The tables that stand in free text, in order."""
    found = list(_laid_out(text)) if "  " in text or "|" in text or _MOUNTED in text else []
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


_BLOCK_END = re.compile(r"\n[ \t\r]*+(?=\n|\Z|```)")
_FENCE = re.compile(r"\s*+(?:```[ \t]*+(?P<kind>\w*+)[^\n]*+\n)?")


def _blocks(text: str) -> Iterator[Table]:
    """The delimited tables among the blocks of lines, up to a blank line or a fence; one line may stand before them."""
    start, fenced = 0, -1
    while start < len(text) and (fence := _FENCE.match(text, start)):
        match = _BLOCK_END.search(text, fence.end())
        stop = match.start() if match else len(text)
        least = 1 if (fence["kind"] or "").lower() in ("csv", "tsv") else 3  # a fence that says so holds a table
        at = fence.end()
        if fenced < at:
            fenced = text.find("\n```", at) % (len(text) + 1)
        start = stop + 1
        for _ in range(2):
            newline = text.find("\n", at, stop)
            if newline < 0:
                break
            if any(delimiter in text[at:newline] for delimiter in ",\t;|"):
                last = untrailed(text, at, stop)
                end = fenced if last == stop else last
                table = table_at(text, (at, max(end, last)), last, least)
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
    lines = [line.rstrip("\r") for line in lines]
    i = 0
    while i < len(lines) - 1:
        line = lines[i]
        found: Table | None = None
        if "|" in line or line.lstrip()[:2] == "+-":
            header = i + 1 if _RULE.match(line) else i
            if "|" in lines[header] and header + 1 < len(lines) and _RULE.match(lines[header + 1]):
                found = _ruled(lines, i, header)
        elif line.startswith("Filesystem") and line.endswith(_MOUNTED):
            found = _filesystems(lines, i)
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
    names = column_names(cells)
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
    records = [record(names, [cell if isinstance(cell, str) else "\n".join(cell) for cell in row]) for row in rows]
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
    if first >= len(lines) or DIGITS.sub("0", lines[first]) == DIGITS.sub("0", line):
        return None
    spans = [match.span() for match in re.finditer(r"\S+(?: \S+)*+", line)]
    cells = [line[start:end] for start, end in spans]
    capitals = bool(_CAPITALS.match(line))
    if len(cells) > (1 if capitals else 2) and all(_TITLE.match(cell) or _CAPITALS.match(cell) for cell in cells):
        shown, tight = _below(lines[first : first + _SHOWN], [start for start, _ in spans])
        certain = underlined or (capitals and not tight and len(cells) > 2)
        if len(shown) >= (1 if certain else 2 if capitals and not tight else 3) and is_header(cells, shown, False):
            spans = list(_split(line, spans, lines[first : first + len(shown)]))
            rows, _ = _below(lines[first:], [start for start, _ in spans])
            names = column_names([line[start:end] for start, end in spans])
            return Table([dict(zip(names, row, strict=False)) for row in rows], i, first + len(rows), "table")
    return _columns(lines, line, first)


def _filesystems(lines: list[str], i: int) -> Table | None:
    """The table of df: its first and last cells may have blanks, and one blank may be all that is between two."""
    cells = [*lines[i].removesuffix(_MOUNTED).split(), _MOUNTED]
    if not 3 < len(cells) <= _COLUMNS:
        return None
    names = column_names(cells)
    middle = r"\s++(\S++)" * (len(cells) - 2)
    form = re.compile(rf"(\S++(?:\s++\S++)*?){middle}\s++(/.*\S|/)\s*\Z")
    rows: list[dict[str, Any]] = []
    while (at := i + 1 + len(rows)) < len(lines) and len(lines[at]) < _WIDEST and (match := form.match(lines[at])):
        rows.append(dict(zip(names, match.groups(), strict=False)))
    return Table(rows, i, at, "table") if rows else None


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
        if sum(bool(NUMERIC.match(cell)) for cell in row.split()) < 2:
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
    numeric = sum(all(NUMERIC.match(row[c]) for row in rows if row[c]) for c in range(len(cells)))
    if len(rows) < 2 or len(cells) < 4 or numeric < 2 or not is_header(cells, rows, False):
        return None
    names = column_names(cells)
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
