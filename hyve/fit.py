"""The steps of a ladder -> the text that fits a budget: in reading order, with counts of what was cut (H20).

Rules: a budget takes the first steps of a ladder, as many as fit by exact count, so a larger one only adds; what is not
in the text is counted there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hyve.catalog import Table
from hyve.naming import quote
from hyve.profile import told
from hyve.rowview import BACKSLASH, OWN_MARK
from hyve.tokens import count_tokens

HEAD, COLUMNS, MEANS, ROWS, QUERY, NAME = range(6)
"""The sections of a table, in reading order; the queries and the names of all tables stand at the end."""
NAMED_ONLY = -1
"""The place of the line that only names columns: it is left out where all of them are told."""
UNTOLD = 1 << 31
"""The place of what says how many of the columns that are told nowhere else are named where they are counted."""
ROW_HEAD = -1
"""The place of the line that heads the rows."""

Slot = tuple[int, int, int]
"""Where a line stands: table, section, place."""


@dataclass(slots=True)
class Line:
    """A line: where it stands, its text, the columns that it is about.

    `varied`: the values of its columns differ from row to row. A header may name the `parts` of its table with their
    rows; a row then says to which `part` it belongs. The first line of the text explains its marks with its `notes`.
    Of the columns of the line at UNTOLD, `most` are named.
    """

    table: int
    section: int
    order: int
    text: str
    columns: tuple[str, ...] = ()
    part: int = -1
    parts: tuple[tuple[str, int], ...] = ()
    varied: bool = False
    notes: tuple[str, ...] = ()
    most: int = 0
    _tokens: int = field(default=-1, init=False)

    def longer(self, end: str) -> Line:
        """It with more text at its end."""
        text = self.text + end
        return Line(*self.slot, text, self.columns, self.part, self.parts, self.varied, self.notes)

    @property
    def tokens(self) -> int:
        """What its text takes with the line's end."""
        if self._tokens < 0:
            self._tokens = count_tokens(self.text) + 1
        return self._tokens

    @property
    def slot(self) -> Slot:
        """Where it stands."""
        return self.table, self.section, self.order


class Step(NamedTuple):
    """Lines that come together, each in the place of the one that stood there, and the tokens that they take."""

    lines: tuple[Line, ...]
    cost: int


class Lengths(Protocol):
    """Cells that get longer, from 0 on in `most` steps."""

    most: int

    def tokens(self, step: int) -> int:
        """About how many tokens so many steps take."""
        ...

    def lines(self, step: int) -> Iterable[Line]:
        """The lines of them all after so many steps."""
        ...


def fit(ladder: Iterable[Iterator[Step] | Lengths], tables: Sequence[Table], budget: int, note: str = "") -> str:
    """The text of as many steps as fit; `note` is said above all, before those of the lines.

    The parts of the ladder follow each other: the next one begins where the one before fits whole.
    """
    page = _Page(tables, note)
    base: dict[Slot, Line] = {}
    text = page.text(base)
    for part in ladder:
        climb = _Steps(part, base) if isinstance(part, Iterator) else _Longer(part, base)
        reached, text = _climb(climb, page, budget, text)
        if not climb.whole(reached):
            break
        base = climb.state(reached)
    return text


class _Climb(Protocol):
    """A part of a ladder upon what stands below it."""

    def up_to(self, tokens: int) -> int:
        """The last rung that takes no more than so many tokens above the lowest, by their costs."""
        ...

    def tokens(self, rung: int) -> int:
        """What a rung takes above the lowest, by its costs."""
        ...

    def state(self, rung: int) -> dict[Slot, Line]:
        """The lines of a rung."""
        ...

    def whole(self, rung: int) -> bool:
        """Whether it is the last one."""
        ...


def _climb(climb: _Climb, page: _Page, budget: int, text: str) -> tuple[int, str]:
    """The highest rung that fits, and its text; rung 0 has `text`."""
    low, least = 0, count_tokens(text)
    start = least
    room = budget - least
    while True:  # a text has fewer tokens than its lines one by one
        high = climb.up_to(room)
        if high == low:
            if climb.whole(low):
                return low, text
            high += 1
        tried = page.text(climb.state(high))
        most = count_tokens(tried)
        if most > budget:
            break
        low, least, text = high, most, tried
        if climb.whole(low):
            return low, text
        share = (climb.tokens(low) + 1) / max(1, least - start)
        room = climb.tokens(low) + int((budget - least) * max(1.0, share)) + 4
    halve = False
    while high - low > 1:
        below, above = climb.tokens(low), climb.tokens(high)
        guess = (low + high) // 2
        if not halve:
            wanted = below + (budget - least) * (above - below) // max(1, most - least)
            guess = min(max(climb.up_to(wanted), low + 1), high - 1)
        tried = page.text(climb.state(guess))
        size = count_tokens(tried)
        before = high - low
        if size > budget:
            high, most = guess, size
        else:
            low, least, text = guess, size, tried
        halve = (high - low) * 2 > before
    return low, text


class _Steps:
    """Steps that are made as they are needed."""

    def __init__(self, steps: Iterator[Step], base: dict[Slot, Line]) -> None:
        self._steps, self._base = steps, base
        self._made: list[tuple[Slot, Line]] = []
        self._sums, self._counts = [0], [0]
        self._next = next(steps, None)

    def up_to(self, tokens: int) -> int:
        while self._next is not None and self._sums[-1] + self._next.cost <= tokens:
            self._more()
        rung = len(self._counts) - 1
        while rung and self._sums[rung] > tokens:
            rung -= 1
        return rung

    def _more(self) -> None:
        if self._next is not None:
            self._made += [(line.slot, line) for line in self._next.lines]
            self._counts.append(len(self._made))
            self._sums.append(self._sums[-1] + self._next.cost)
            self._next = next(self._steps, None)

    def tokens(self, rung: int) -> int:
        return self._sums[rung]

    def state(self, rung: int) -> dict[Slot, Line]:
        while len(self._counts) <= rung:
            self._more()
        lines = dict(self._base)
        lines.update(self._made[: self._counts[rung]])
        return lines

    def whole(self, rung: int) -> bool:
        return self._next is None and rung == len(self._counts) - 1


class _Longer:
    """Cells that get longer."""

    def __init__(self, lengths: Lengths, base: dict[Slot, Line]) -> None:
        self._lengths, self._base = lengths, base

    def up_to(self, tokens: int) -> int:
        return bisect_right(range(self._lengths.most + 1), tokens, key=self._lengths.tokens) - 1

    def tokens(self, rung: int) -> int:
        return self._lengths.tokens(rung)

    def state(self, rung: int) -> dict[Slot, Line]:
        return self._base | {line.slot: line for line in self._lengths.lines(rung)}

    def whole(self, rung: int) -> bool:
        return rung == self._lengths.most


class _Page:
    """Puts lines together."""

    def __init__(self, tables: Sequence[Table], note: str) -> None:
        self._tables, self._note = tables, note
        self._columns: dict[int, frozenset[str]] = {}

    def text(self, lines: Mapping[Slot, Line]) -> str:
        """The text of some lines."""
        by_table: dict[int, list[Line]] = {}
        for slot in sorted(lines):
            by_table.setdefault(slot[0], []).append(lines[slot])
        out: list[str] = []
        named, headed = [], 0
        examples = []
        for table, group in by_table.items():
            if group[0].section == HEAD:
                headed += 1
                out += self._table(table, group)
                examples += [line.text for line in group if line.section == QUERY]
            else:
                named += [line.text for line in group if line.section == NAME]
        missing = len(self._tables) - headed
        if missing:
            out.append(_others(named, missing, bool(headed)))
        if examples:
            out += ["Queries such as these see all rows:", *examples]
        text = "\n".join(out)
        said = dict.fromkeys([self._note] * bool(self._note) + [note for line in lines.values() for note in line.notes])
        if "\\…" in text:
            said[OWN_MARK] = None
        if "\\\\" in text:
            said[BACKSLASH] = None
        return f"# {'; '.join(said)}\n{text}" if said else text

    def _table(self, index: int, group: Sequence[Line]) -> list[str]:
        """The lines of a table, with marks of the columns and rows that are cut."""
        table = self._tables[index]
        rows = [line for line in group if line.section == ROWS and line.order != ROW_HEAD]
        heads = [line for line in group if line.section == ROWS and line.order == ROW_HEAD] if rows else []
        in_rows = {name for line in heads for name in line.columns}
        above = [line for line in group if line.section == COLUMNS]
        untold = above.pop() if above and above[-1].order == UNTOLD else None
        if above and above[0].order == NAMED_ONLY:
            elsewhere = in_rows.union(*(line.columns for line in above[1:]))
            above = above[elsewhere.issuperset(above[0].columns) :]
        out = [group[0].text, *(line.text for line in above)]
        if index not in self._columns:
            self._columns[index] = frozenset(column.name for column in told(table))
        hidden = self._columns[index].difference(in_rows, *(line.columns for line in above))
        varied = {name for line in above if line.varied for name in line.columns} - in_rows
        said = [f"{len(hidden)} more {_of(len(hidden), 'column')}{_names(untold, hidden)}"] if hidden else []
        if varied and rows:
            said.append(f"{len(varied)} {'' if hidden else _of(len(varied), 'column') + ' '}above not in rows")
        undescribed = in_rows.difference(*(line.columns for line in above if line.order != NAMED_ONLY))
        if undescribed and rows:
            said.append(f"{len(undescribed)} {'' if said else _of(len(undescribed), 'column') + ' '}only in rows")
        if said:
            out.append(f"... ({'; '.join(said)})")
        out += [line.text for line in group if line.section == MEANS]
        for head in heads:  # TOON says how many
            out.append(f"[{len(rows)}]{head.text[2:]}" if head.text.startswith("[]") else head.text)
        out += [line.text for line in rows]
        left = table.rows - len(rows)
        if left and table.rows > 1:
            out.append(f"... ({left:,} more {_of(left, 'row')}{cut_parts(group[0].parts, rows)})")
        return out


def _names(untold: Line | None, hidden: Collection[str]) -> str:
    """The first of the columns that are told nowhere else."""
    names = [quote(name) for name in untold.columns if name in hidden][: untold.most] if untold else []
    return f": {', '.join(names)}{', ...' if len(names) < len(hidden) else ''}" if names else ""


def cut_parts(parts: Sequence[tuple[str, int]], shown: Sequence[Line]) -> str:
    """How many rows of each part are not among those shown."""
    if not parts:
        return ""
    counts = Counter(line.part for line in shown)
    return f"; {', '.join(f'{name}: {rows - counts[i]:,}' for i, (name, rows) in enumerate(parts))}"


def _of(count: int, what: str) -> str:
    return what if count == 1 else f"{what}s"


def _others(named: Sequence[str], missing: int, others: bool) -> str:
    """The tables that are only named; whether there are others."""
    more = [f"... ({missing - len(named)} more tables)"] if missing > len(named) else []
    return f"{'Other tables' if others else 'Tables'} (rows): {', '.join([*named, *more])}"


def name_of(table: Table) -> str:
    """What is said of a table that is only named."""
    return f"{quote(table.name)} {table.rows:,}"
