"""What a cut view shows, read from its text, and what of it a view of a larger budget has not any more (H20)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_MARK = re.compile(r'"?…\(\+\d+ chars\)')
_CUT_CELL = re.compile(r'^(.*?)"?…\(\+\d+ chars\)$', re.DOTALL)
_MORE = re.compile(r", \.\.\. \([\d,]+ more( rows)?\)")
_ROW = re.compile(r"\d+\|")
_COLUMN = re.compile(r'- ("(?:[^"]|"")+"|\S+) [A-Z]+[A-Z0-9_(), ]*(\[\])*(:| =|$)')
_GROWS = re.compile(r"- (mean .* by |constant .* by |constant: |one value, else empty: |the same: |all empty: )")
_EXPLAINS = re.compile(r"^(\* or <|… for a cell|\\… in a cell)")
"""A note on marks, which a larger view may not have."""
_NAME = re.compile(r'"(?:[^"]|"")+"|[^:|( ]+')


@dataclass
class TableShown:
    """One table of a view: its header, the lines about its columns, and its rows by number, cells by column."""

    header: str
    lines: list[str] = field(default_factory=list)
    heads: dict[str, str] = field(default_factory=dict)
    rows: dict[int, dict[str, str]] = field(default_factory=dict)

    def columns(self) -> set[str]:
        """The columns that are named anywhere."""
        found = set(self.heads)
        for line in self.lines:
            match = _COLUMN.match(line)
            if match:
                found.add(match[1])
            elif match := _GROWS.match(line):
                found.update(name for part in line[match.end() :].split(", ") for name in part.split(" = "))
            else:
                found.update(line[2:].split(", "))
        return found


@dataclass
class Shown:
    """A view: its tables by name, the tables that are only named, and the example queries."""

    notes: list[str] = field(default_factory=list)
    tables: dict[str, TableShown] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    queries: list[str] = field(default_factory=list)


@dataclass
class Lost:
    """What a larger view has lost, in words."""

    rows: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.lines or self.cells)


def data_of(text: str) -> str:
    """The data section of a prompt."""
    return text.split("\n# Data ", 1)[1].split("\n", 1)[1].rsplit("\n# End ", 1)[0]


def read(text: str) -> Shown:
    """What the data section of a cut prompt shows."""
    found = Shown()
    table: TableShown | None = None
    names: list[str] = []
    querying = False
    for line in data_of(text).split("\n"):
        if querying:
            found.queries.append(line)
        elif line.startswith("## "):
            name = _NAME.match(line[3:])
            assert name, line
            table = found.tables[name[0]] = TableShown(line)
        elif line == "Queries such as these see all rows:":
            querying = True
        elif match := re.match(r"(Other tables|Tables) \(rows\): ", line):
            parts = [part for part in line[match.end() :].split(", ") if not part.startswith("... (")]
            found.named = {part.rsplit(" ", 1)[0] for part in parts}
        elif line.startswith("# ") and table is None:
            found.notes = line[2:].split("; ")
        elif table is None or line.startswith("... ("):
            continue
        elif line.startswith("rowid|"):
            heads = _cells(line)
            names = [match[0] for head in heads if (match := _NAME.match(head))]
            table.heads = dict(zip(names, heads, strict=True))
        elif _ROW.match(line):
            cells = _cells(line)
            table.rows[int(cells[0])] = dict(zip(names, cells, strict=True))
            assert "…" not in cells or "… for a cell: left out" in found.notes, line
        else:
            assert line.startswith("- "), line
            table.lines.append(line)
    return found


def _cells(line: str) -> list[str]:
    return [match[1] for match in re.finditer(r"((?:[^\\|]|\\.)*)(?:\||$)", line)][: _bars(line) + 1]


def _bars(line: str) -> int:
    return len(re.sub(r"\\.", "", line).split("|")) - 1


def lost(small: Shown, large: Shown) -> Lost:
    """What `small` shows and `large` does not."""
    found = Lost()
    found.lines += [f"note {note}" for note in small.notes if note not in large.notes and not _EXPLAINS.search(note)]
    found.lines += [f"query {query}" for query in small.queries if query not in large.queries]
    found.lines += [f"name {name}" for name in sorted(small.named - large.named - large.tables.keys())]
    for name, table in small.tables.items():
        other = large.tables.get(name)
        if other is None:
            found.lines.append(f"table {name}")
            found.rows += [f"{name} {row}" for row in table.rows]
            continue
        if not other.header.startswith(table.header):
            found.lines.append(f"{table.header} -> {other.header}")
        found.lines += [f"{name}: {line}" for line in table.lines if not _told(line, other)]
        found.lines += [
            f"{name}: head {head} -> {other.heads.get(column)}"
            for column, head in table.heads.items()
            if other.heads.get(column) != head
        ]
        for row, cells in table.rows.items():
            if row not in other.rows:
                found.rows.append(f"{name} {row}")
                continue
            found.cells += [
                f"{name} {row} {column}: {cell} -> {other.rows[row].get(column)}"
                for column, cell in cells.items()
                if not _longer(cell, other.rows[row].get(column))
            ]
    return found


def _told(line: str, table: TableShown) -> bool:
    """Whether a table's lines tell all that `line` tells, or more of it."""
    pieces = _MORE.sub("\0", _MARK.sub("\0", line)).split("\0")
    if any(_has(other, pieces, bool(_GROWS.match(line))) for other in table.lines):
        return True
    if _COLUMN.match(line) or _GROWS.match(line):
        return False
    names = {name for name in line[2:].split(", ") if not name.startswith("...")}
    return names <= table.columns()


def _has(line: str, pieces: list[str], grows: bool) -> bool:
    """Whether a line begins with the first of `pieces`, has the others in order, and ends with the last one; one that
    `grows` may go on after that, any line may say its first and last values after that."""
    if not line.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    for piece in pieces[1:]:
        at = line.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return grows or line.endswith(pieces[-1]) or line[at:].startswith(", in order: ")


def _longer(cell: str, other: str | None) -> bool:
    if cell == other or (other is not None and cell == "…"):
        return True
    cut = _CUT_CELL.match(cell)
    if cut is None or other is None:
        return False
    return other.startswith(cut[1])
