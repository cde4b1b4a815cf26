"""Candidate lines -> the text that fits: what matters most first, in reading order, with counts of what was cut (H20).

Rules: a line is taken before another by its priority alone, so a larger budget only adds; a table's lines only follow
its header; what does not fit leaves a marker with its count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hyve.naming import quote
from hyve.profile import told
from hyve.store import Table
from hyve.tokens import count_tokens

HEAD, COLUMNS, MEANS, ROWS, QUERY = range(5)
"""The sections of a table, in reading order; the queries of all tables stand at the end."""


@dataclass(frozen=True)
class Line:
    """A candidate line: where it stands, how much it matters, how many columns it describes, its tokens with its end.

    A header may name the `parts` of its table with their rows; a row then says to which `part` it belongs.
    """

    table: int
    section: int
    order: int
    priority: float
    text: str
    columns: int = 0
    part: int = -1
    parts: tuple[tuple[str, int], ...] = ()
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", count_tokens(self.text) + 1)


@dataclass(frozen=True)
class Fitted:
    """A text that fits: how many lines it has of those that wanted in, and the tokens that stayed unused."""

    text: str
    lines: int
    unused: int


def fit(lines: list[Line], tables: Sequence[Table], rest: list[int], budget: int, note: str = "") -> Fitted:
    """The lines of highest priority that fit, in reading order, with the counts of what was left out.

    `rest` are the tables that are only named, `note` stands above all.
    """
    lines.sort(key=lambda line: (-line.priority, line.table, line.section, line.order))
    kept: list[Line] = []
    headed: set[int] = set()
    most = _names_that_fit(tables, range(len(tables)), budget // 3)
    spent = count_tokens(_others(tables, rest, most)) + count_tokens(note) + 20
    for line in lines:
        # A header may need a marker of cut rows and columns.
        extra = 9 + count_tokens(_cut(line.parts, [])) if line.section == HEAD else 0
        if (line.section == HEAD or line.table in headed) and spent + line.cost + extra <= budget:
            kept.append(line)
            spent += line.cost + extra
            if line.section == HEAD:
                headed.add(line.table)
    while True:
        text = _assemble(kept, lines, tables, rest, most)
        text = f"{note}\n{text}" if note else text
        cost = count_tokens(text)
        if cost <= budget or not (kept or most):
            return Fitted(text, len(kept), budget - cost)
        if kept:
            kept.pop()
        else:
            most = most * 3 // 4


def _cut(parts: Sequence[tuple[str, int]], shown: Sequence[Line]) -> str:
    """How many rows of each part are not among the lines shown."""
    counts = Counter(line.part for line in shown if line.section == ROWS)
    left = (f"{name}: {rows - counts[i]:,}" for i, (name, rows) in enumerate(parts))
    return f"; {', '.join(left)}" if parts else ""


def _others(tables: Sequence[Table], missing: Sequence[int], most: int) -> str:
    """The tables that are only named, at most `most` of them."""
    named = ", ".join(f"{quote(tables[i].name)} {tables[i].rows:,}" for i in missing[:most])
    more = f"... ({len(missing) - most} more tables)" if len(missing) > most else ""
    return f"Other tables (rows): {', '.join(filter(None, (named, more)))}" if missing else ""


def _names_that_fit(tables: Sequence[Table], missing: Sequence[int], budget: int) -> int:
    most = len(missing)
    while most and count_tokens(_others(tables, missing, most)) > budget:
        most = most * 3 // 4
    return most


def _assemble(kept: list[Line], lines: list[Line], tables: Sequence[Table], rest: list[int], most: int) -> str:
    out: list[str] = []
    by_table: dict[int, list[Line]] = {}
    for line in kept:
        by_table.setdefault(line.table, []).append(line)
    for index in sorted(by_table):
        group = sorted(by_table[index], key=lambda line: (line.section, line.order))
        out += [line.text for line in group if line.section in (HEAD, COLUMNS)]
        hidden = len(told(tables[index])) - sum(line.columns for line in group)
        if hidden > 0:
            out.append(f"... ({hidden} more columns)")
        out += [line.text for line in group if line.section == MEANS]
        rows = [line.text for line in group if line.section == ROWS]
        shown_rows = max(0, len(rows) - 1)
        if shown_rows:
            head, *rows = rows
            out += [f"[{shown_rows}]{head[2:]}" if head.startswith("[]") else head, *rows]  # TOON says how many
        left = tables[index].rows - shown_rows
        if left and tables[index].rows > 1:
            head_line = next(line for line in group if line.section == HEAD)
            out.append(f"... ({left:,} more rows{_cut(head_line.parts, group)})")
    missing = sorted({line.table for line in lines} - set(by_table)) + rest
    examples = [line.text for line in sorted(kept, key=lambda line: line.table) if line.section == QUERY]
    if missing:
        out.append(_others(tables, missing, most))
    if examples:
        out += ["Queries such as these see all rows:", *examples]
    return "\n".join(out)
