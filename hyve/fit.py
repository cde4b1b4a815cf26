"""Candidate lines -> the text that fits: what matters most first, in reading order, with counts of what was cut (H20).

Rules: a line is taken before another by its priority alone, so a larger budget only adds; a table's lines only follow
its header; what does not fit leaves a marker with its count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from hyve.catalog import Table
from hyve.naming import quote
from hyve.profile import told
from hyve.tokens import count_tokens

_ROUNDS, _SPARE = 4, 8
"""So often a text is filled up while more than a few tokens are unused."""
_MARKERS = 16
"""Tokens that the marks of cut rows and columns may take."""

HEAD, COLUMNS, MEANS, ROWS, QUERY = range(5)
"""The sections of a table, in reading order; the queries of all tables stand at the end."""


@dataclass(slots=True)
class Line:
    """A candidate line: where it stands, how much it matters, the columns that it is about, its tokens with its end.

    `varied`: the values of its columns differ from row to row. A header may name the `parts` of its table with their
    rows; a row then says to which `part` it belongs. The first line of the text explains its marks with its `notes`.
    """

    table: int
    section: int
    order: int
    priority: float
    text: str
    columns: tuple[str, ...] = ()
    part: int = -1
    parts: tuple[tuple[str, int], ...] = ()
    varied: bool = False
    notes: tuple[str, ...] = ()
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        self.cost = count_tokens(self.text) + 1
        if self.notes:
            self.cost += sum(map(_note_tokens, self.notes))


@lru_cache(maxsize=64)
def _note_tokens(note: str) -> int:
    return count_tokens(f"; {note}")


def precedence(line: Line) -> tuple[float, int, int, int]:
    """The order in which lines are taken."""
    return -line.priority, line.table, line.section, line.order


@dataclass(frozen=True)
class Fitted:
    """A text that fits: its lines, how many of those that wanted in it has not, the tokens left unused."""

    text: str
    kept: tuple[Line, ...]
    left: int
    unused: int

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.kept)

    @property
    def rows(self) -> set[tuple[int, int]]:
        """The rows that are shown, by table and number."""
        return {(line.table, line.order) for line in self.kept if line.section == ROWS}


def fit(lines: list[Line], tables: Sequence[Table], rest: list[int], budget: int, note: str = "") -> Fitted:
    """The lines of highest priority that fit, in reading order, with the counts of what was left out.

    `rest` are the tables that are only named; `note` is said above all, before those of the lines.
    """
    lines.sort(key=precedence)
    most = _names_that_fit(tables, range(len(tables)), budget // 3)
    above = count_tokens(_others(tables, rest, most, True)) + count_tokens(note) + 20
    room = budget - above

    names = {i: frozenset(column.name for column in told(tables[i])) for i in {line.table for line in lines}}
    known: dict[tuple[int, ...], Fitted] = {}

    def assembled(kept: list[Line]) -> Fitted:
        key = (most, *map(id, kept))
        found = known.get(key)
        if found is None:
            text = _assemble(kept, names, tables, rest, most)
            said = dict.fromkeys([note] * bool(note) + [note for line in kept for note in line.notes])
            text = f"# {'; '.join(said)}\n{text}" if said else text
            found = known[key] = Fitted(text, tuple(kept), len(lines) - len(kept), budget - count_tokens(text))
        return found

    kept = _taken(lines, room)
    while (found := assembled(kept)).unused < 0 and (kept or most):
        if kept:
            kept.pop()
        else:
            most = most * 3 // 4
    # A text has fewer tokens than its lines one by one: there is room for some more.
    for _ in range(_ROUNDS):
        if found.unused < _SPARE or not found.left:
            break
        room += found.unused
        taken = _taken(lines, room)
        more = assembled(taken)
        if more.unused < 0:
            room += more.unused - found.unused
            taken = _taken(lines, room + found.unused // 2)
            more = assembled(taken)
        if not 0 <= more.unused < found.unused:
            break
        found, kept = more, taken
    if found.unused >= _SPARE and (small := _small(lines, kept, found.unused)):
        more = assembled([*kept, *small])
        found = more if more.unused >= 0 else found
    return found


def _small(lines: Sequence[Line], kept: Sequence[Line], room: int) -> list[Line]:
    """Of the rows left out those that fit, of tables of which some are shown: larger ones before them took no room."""
    taken = set(map(id, kept))
    shown = {line.table for line in kept if line.section == ROWS}
    found = []
    for line in lines:
        row = line.section == ROWS and line.order >= 0 and line.table in shown
        if row and line.cost <= room and id(line) not in taken:
            found.append(line)
            room -= line.cost
    return found


def _taken(lines: Sequence[Line], room: int) -> list[Line]:
    """Of lines by priority those that fit, a table's behind its header, its rows behind the line that heads them."""
    kept: list[Line] = []
    headed: set[int] = set()
    heads = {line.table: line for line in lines if line.section == ROWS and line.order < 0}
    for line in lines:
        if line.cost > room:
            continue
        if (line.section != HEAD and line.table not in headed) or (line.section == ROWS and line.order < 0):
            continue
        # A header may need a mark of cut rows and columns.
        cost = line.cost + (_MARKERS + count_tokens(_cut(line.parts, [])) if line.section == HEAD else 0)
        head = heads.get(line.table) if line.section == ROWS else None
        cost += head.cost if head is not None else 0
        if cost <= room:
            kept += [line] if head is None else [head, line]
            room -= cost
            if line.section == HEAD:
                headed.add(line.table)
            elif head is not None:
                del heads[line.table]
    return kept


def _cut(parts: Sequence[tuple[str, int]], shown: Sequence[Line]) -> str:
    """How many rows of each part are not among the lines shown."""
    counts = Counter(line.part for line in shown if line.section == ROWS and line.order >= 0)
    left = (f"{name}: {rows - counts[i]:,}" for i, (name, rows) in enumerate(parts))
    return f"; {', '.join(left)}" if parts else ""


def _of(count: int, what: str) -> str:
    return what if count == 1 else f"{what}s"


def _others(tables: Sequence[Table], missing: Sequence[int], most: int, others: bool) -> str:
    """The tables that are only named, at most `most` of them; whether there are others."""
    named = ", ".join(f"{quote(tables[i].name)} {tables[i].rows:,}" for i in missing[:most])
    more = f"... ({len(missing) - most} more tables)" if len(missing) > most else ""
    return (
        f"{'Other tables' if others else 'Tables'} (rows): {', '.join(filter(None, (named, more)))}" if missing else ""
    )


def _names_that_fit(tables: Sequence[Table], missing: Sequence[int], budget: int) -> int:
    most = len(missing)
    while most and count_tokens(_others(tables, missing, most, True)) > budget:
        most = most * 3 // 4
    return most


def _assemble(
    kept: list[Line], names: Mapping[int, frozenset[str]], tables: Sequence[Table], rest: list[int], most: int
) -> str:
    """The text of some lines; `names` are the columns of each table that has any line."""
    out: list[str] = []
    by_table: dict[int, list[Line]] = {}
    for line in kept:
        by_table.setdefault(line.table, []).append(line)
    for index in sorted(by_table):
        group = sorted(by_table[index], key=lambda line: (line.section, line.order))
        out += [line.text for line in group if line.section in (HEAD, COLUMNS)]
        rows = [line.text for line in group if line.section == ROWS and line.order >= 0]
        heads = [line for line in group if line.section == ROWS and line.order < 0] if rows else []
        in_rows = {name for line in heads for name in line.columns}
        above = [line for line in group if line.section == COLUMNS]
        hidden = names[index].difference(in_rows, *(line.columns for line in above))
        varied = {name for line in above if line.varied for name in line.columns} - in_rows
        said = [f"{len(hidden)} more {_of(len(hidden), 'column')}"] if hidden else []
        if varied and rows:
            said.append(f"{len(varied)} {'of those' if hidden else _of(len(varied), 'column')} above not in the rows")
        if said:
            out.append(f"... ({'; '.join(said)})")
        out += [line.text for line in group if line.section == MEANS]
        for head in heads:  # TOON says how many
            out.append(f"[{len(rows)}]{head.text[2:]}" if head.text.startswith("[]") else head.text)
        out += rows
        left = tables[index].rows - len(rows)
        if left and tables[index].rows > 1:
            head_line = next(line for line in group if line.section == HEAD)
            out.append(f"... ({left:,} more {_of(left, 'row')}{_cut(head_line.parts, group)})")
    missing = sorted(names.keys() - by_table.keys()) + rest
    examples = [line.text for line in sorted(kept, key=lambda line: line.table) if line.section == QUERY]
    if missing:
        out.append(_others(tables, missing, most, bool(by_table)))
    if examples:
        out += ["Queries such as these see all rows:", *examples]
    return "\n".join(out)
