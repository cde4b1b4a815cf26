"""The order in which a view says things: one ladder for all budgets, of which each climbs as much as fits (H15, H20).

Rules:
- No step depends on the budget, only on what was said before it: a larger budget repeats all steps of a smaller one.
- Of what may be said next, what matters most comes first. What takes more tokens than a small share of those spent
  comes in parts, so that no more than that is left unused.
- Nothing gets shorter, and nothing goes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Protocol

from hyve.catalog import Table
from hyve.fit import COLUMNS, HEAD, NAME, Line, Slot, Step, cut_parts, name_of
from hyve.tokens import count_tokens

ROOMY = 1_200
"""Until so many tokens are spent one table gets most of them, and cells are shorter."""
_LEAST_ROOM, _ROOM = 20, 50
"""A step takes so many tokens, or one for so many that are spent."""
_MARKERS = 16
"""Tokens that the marks of cut rows and columns may take."""
_NAMES = 3
"""One of so many tokens may go to tables that are only named."""
_FIRST = 1_000.0
"""The priority of the headers of the tables that have a place before anything is said of others."""


class Item(Protocol):
    """Something to say of a table at one place, of which more is said with each step.

    `share` of the table's weight is its priority; its next step comes when `least` tokens are spent, or when there is
    nothing else to say. `done`: all is said, but for cells that get longer when all else is.
    """

    table: int
    section: int
    order: int
    share: float
    least: float
    done: bool

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """The lines of the next step, which should take no more than the ladder's `room`."""
        ...


class Growing(Protocol):
    """A line of which cells are cut after all is said."""

    table: int
    share: float

    @property
    def longest(self) -> int:
        """Characters of its longest cell."""
        ...

    def line(self, limit: int) -> Line:
        """It with cells of so many characters."""
        ...


_Entry = tuple[float, int, int, int, int, Item]


class Ladder:
    """Says things step by step. `main` are the tables that matter most; `weights` are those of all tables."""

    def __init__(self, tables: Sequence[Table], weights: Sequence[float], main: Sequence[int]) -> None:
        self._tables, self._weights, self._main = tables, weights, main
        self.spent = 0
        self.longer: list[Growing] = []  # of these the cells are cut
        self._ready: list[_Entry] = []
        self._waiting: list[tuple[float, int, Item]] = []
        self._count = 0
        self._costs: dict[Slot, int] = {}
        self._notes: dict[str, int] = {}
        self._unnamed: deque[int] = deque()
        self._naming = 0

    @property
    def room(self) -> int:
        """Tokens that the next step should take at most."""
        return max(_LEAST_ROOM, self.spent // _ROOM)

    def add(self, item: Item) -> None:
        """Takes in something to say."""
        self._count += 1
        if item.least > self.spent:
            heappush(self._waiting, (item.least, self._count, item))
        else:
            heappush(self._ready, self._entry(item, self._count))

    def cut(self) -> list[Growing]:
        """The lines of which cells are still cut, once: they get longer when all is said."""
        cells, self.longer = self.longer, []
        return sorted(cells, key=lambda cell: -self._weights[cell.table] * cell.share)

    def _entry(self, item: Item, count: int) -> _Entry:
        return (-self._priority(item), item.table, item.section, item.order, count, item)

    def _priority(self, item: Item) -> float:
        weight = self._weights[item.table]
        first = bool(self._main) and item.table == self._main[0]
        roomy = self.spent >= ROOMY
        if item.section == HEAD and (first or (roomy and item.table in self._main)):
            return _FIRST + weight
        return weight * item.share * (2 if first and not roomy else 1)

    def steps(self, items: Iterable[Item], named: Collection[int] = ()) -> Iterator[Step]:
        """All steps that say `items`; of tables without a header those `named` are named meanwhile."""
        self._unnamed.extend(named)
        for item in items:
            self.add(item)
        roomy = self.spent >= ROOMY
        while True:
            if not roomy and self.spent >= ROOMY:
                roomy = True
                self._ready = [self._entry(entry[-1], entry[-2]) for entry in self._ready]
                heapify(self._ready)
            while self._waiting and self._waiting[0][0] <= self.spent:
                _, count, item = heappop(self._waiting)
                heappush(self._ready, self._entry(item, count))
            if self._unnamed and (step := self._name()) is not None:
                yield step
                continue
            if self._ready:
                item = heappop(self._ready)[-1]
            elif self._waiting:  # there is nothing else to say
                least, _, item = heappop(self._waiting)
                if least < math.inf:
                    self.spent = max(self.spent, int(least))
            else:
                break
            lines = item.grow(self)
            if not item.done:
                self.add(item)
            if lines and (step := self._step(lines)) is not None:
                yield step
        while (step := self._name(always=True)) is not None:
            yield step

    def _step(self, lines: Sequence[Line]) -> Step | None:
        cost = 0
        for line in lines:
            size, slot = line.tokens, line.slot
            if line.section == HEAD:
                size += _MARKERS + (count_tokens(cut_parts(line.parts, ())) if line.parts else 0)
                cost -= self._costs.pop((line.table, NAME, 0), 0)
            for note in line.notes:
                if note not in self._notes:
                    self._notes[note] = count_tokens(f"; {note}")
                    size += self._notes[note]
            before = self._costs.get(slot, 0)
            if before >= size and line.section in (HEAD, COLUMNS):
                continue  # it was told before, and in full
            self._costs[slot] = size
            cost += size - before
        if cost <= 0 and all(line.section in (HEAD, COLUMNS) for line in lines):
            return None
        self.spent += cost
        return Step(tuple(lines), cost)

    def _name(self, always: bool = False) -> Step | None:
        """Names the next table that has no header; `always`: also beyond the share of the tokens for them."""
        while self._unnamed and (self._unnamed[0], HEAD, 0) in self._costs:
            self._unnamed.popleft()
        if not self._unnamed:
            return None
        index = self._unnamed[0]
        line = Line(index, NAME, 0, name_of(self._tables[index]))
        cost = count_tokens(f", {line.text}")
        if not always and (self._naming + cost) * _NAMES > self.spent:
            return None
        self._unnamed.popleft()
        self._naming += cost
        self._costs[line.slot] = cost
        self.spent += cost
        return Step((line,), cost)


class LongerCells:
    """Cells that get longer together: those of the first line by a small part, then those of the next."""

    def __init__(self, cells: Sequence[Growing], shortest: int) -> None:
        self._cells = cells
        lengths = sorted(cell.longest for cell in cells)
        self._limits = [shortest]
        while self._limits[-1] < lengths[-1]:
            self._limits.append(self._limits[-1] + max(_LEAST_LONGER, self._limits[-1] // _LONGER))
        self.most = (len(self._limits) - 1) * len(cells)
        sums = list(accumulate(lengths, initial=0))
        self._sizes = [
            sums[whole := bisect_right(lengths, limit)] + limit * (len(cells) - whole) for limit in self._limits
        ]

    def tokens(self, step: int) -> int:
        """About how many tokens so many steps take, by the characters of the longest cells."""
        level, further = divmod(step, len(self._cells))
        size = self._sizes[level]
        more = (self._sizes[level + 1] - size) * further // len(self._cells) if further else 0
        return (size + more - self._sizes[0]) // _CHARACTERS

    def lines(self, step: int) -> Iterator[Line]:
        """The lines of them all after so many steps."""
        level, further = divmod(step, len(self._cells))
        for place, cell in enumerate(self._cells):
            yield cell.line(self._limits[level + (place < further)])


_CHARACTERS = 4
"""Characters of a usual token."""
_LEAST_LONGER, _LONGER = 8, 80
"""Cells get longer by so many characters, or one of so many that they have."""
