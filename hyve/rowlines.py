"""The rows of a table as lines that grow: first with the cells that matter most, then wider, then longer (H15, H20)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

from hyve import toon
from hyve.fit import ROW_HEAD, ROWS, Line
from hyve.growing import LONG, SHORT, SPARE_ROOM
from hyve.ladder import ROOMY, Ladder
from hyve.naming import quote
from hyve.rowview import LEFT_OUT, RowView, longest, row_text, show, shown_whole
from hyve.shortened import ROUNDED, ROUNDED_NOTE
from hyve.tokens import count_tokens

_WIDER = 40
"""A row has one cell more for so many tokens that are spent, up to all of them."""
_NARROW, _NARROWER = 32, 4
"""Cells of long texts that are no message are cut to a part of others' length: rows need the room."""
_PIECE, _BRIEF = 24, 2
"""A cell is cut to no fewer characters; those of so few are never left out."""
_TINY = 5
"""Cells of so few characters are shown whole wherever they are shown."""
_FIRST = 2
"""The first row of a table has at least so many cells."""
_NOTE = "… for a cell: left out"


class RowLines:
    """The rows of table `index`, and what they have in common: their head, and how many of their cells are shown."""

    def __init__(
        self, index: int, view: RowView, part: Callable[[int], int], in_toon: bool, notes: tuple[str, ...]
    ) -> None:
        self.index, self.view, self.in_toon = index, view, in_toon
        self._part, self._notes = part, notes
        self._rows = iter(view.rows)
        self.order, self._names, self._heads = list(view.order), list(view.names), list(view.heads)
        self._further = deque(view.further)
        self.set_width(view.least)

    def next(self, shown: list[Row]) -> NextRow | None:
        """The row that comes after those that are `shown`."""
        found = next(self._rows, None)
        return None if found is None else NextRow(self, shown, Row(self, *found, self._part(found[0])))

    def set_width(self, width: int) -> None:
        """Shows so many cells of each row, those that matter most."""
        self.width = width
        self.places = sorted(self.order[:width])

    @property
    def least(self) -> float:
        """Tokens that are spent before a row has one cell more; columns beyond the usual ones come when all is said."""
        if self.width < self.view.least:
            return 0.0
        return float(_WIDER * (self.width + 1)) if self.width < len(self.view.order) else math.inf

    @property
    def widest(self) -> bool:
        """Whether rows have all cells that there are."""
        return self.width == len(self.order) and not self._further

    def wider(self, shown: Sequence[Row]) -> int:
        """Shows one more cell of each row, and says its place."""
        if self.width == len(self.order):
            column = self._further.popleft()
            self.order.append(len(self._names))
            self._names.append(column.name)
            self._heads.append(quote(column.name))
            cells = self.view.cells(column, [row.order for row in shown])
            for row, cell in zip(shown, cells, strict=True):
                row.append(cell)
        self.set_width(self.width + 1)
        return self.order[self.width - 1]

    def head(self) -> Line:
        """The line above the rows."""
        places = self.places
        names = ["rowid", *(self._heads[place] for place in places)]
        text = f"[]{{{','.join(names)}}}:" if self.in_toon else "|".join(names)
        notes = self._notes if any(mark in text for mark in "*>") else ()
        notes += (ROUNDED_NOTE,) if ROUNDED in text else ()
        columns = tuple(self._names[place] for place in places)
        return Line(self.index, ROWS, ROW_HEAD, text, columns, notes=notes)


class Row:
    """A row, of whose cells so many characters are shown as `_limits` says; none of a cell that is left out."""

    section = ROWS

    def __init__(self, rows: RowLines, row: int, share: float, cells: Sequence[Any], part: int) -> None:
        self.table, self.order, self.share = rows.index, row, share
        self.least, self.done = 0.0, False
        self._rows, self._cells, self._part = rows, list(cells), part
        self._short = rows.view.wide - rows.view.telling.get(row, frozenset())
        self._limits = [0] * len(cells)
        self._tokens = 0
        self._longer = False

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """More of its cells."""
        return self.more(ladder, ladder.room)

    def more(self, ladder: Ladder, room: int) -> list[Line]:
        """More of its cells, none where all that are due now are shown."""
        target = SHORT if ladder.spent < ROOMY else LONG
        lines = []
        if not self._tokens or not self._reached(target):
            line = self._grown(target, room)
            self._tokens = line.tokens
            lines.append(line)
        self.least = 0.0
        self.done = self._reached(target)
        cut = not lines or "…" in lines[0].text  # the mark of all that is cut or left out, and some data's own
        if self.done and cut and not self._whole:
            if target < LONG:
                self.done, self.least = False, float(ROOMY)
            elif not self._longer:
                self._longer = True
                ladder.longer.append(self)
        return lines

    def reached_now(self, ladder: Ladder) -> bool:
        """Whether all that is due now is shown."""
        return self._reached(SHORT if ladder.spent < ROOMY else LONG)

    def _due(self, place: int, limit: int) -> int:
        """Characters of a cell where others have `limit`."""
        return max(_NARROW, limit // _NARROWER) if place in self._short else limit

    def _enough(self, place: int, limit: int) -> bool:
        """Whether a cell has what is due, or all that it has."""
        cell, has = self._cells[place], self._limits[place]
        return cell is LEFT_OUT or has >= self._due(place, limit) or (has > 0 and shown_whole(cell, has))

    def _reached(self, limit: int) -> bool:
        if not self._short and min(map(self._limits.__getitem__, self._rows.places)) >= limit:
            return True
        return all(self._enough(place, limit) for place in self._rows.places)

    @property
    def _whole(self) -> bool:
        cells, limits = self._cells, self._limits
        for place in self._rows.places:
            cell = cells[place]
            if type(cell) is str and len(cell) > _TINY and not shown_whole(cell, limits[place]):
                return False
        return True

    def _grown(self, target: int, room: int) -> Line:
        """It with all that is due where there is room for that, else with what matters most of that."""
        before, places = self._limits, self._rows.places
        all_due = list(before)
        for place in places:
            due = self._due(place, target) if self._short else target
            if due > before[place]:
                all_due[place] = due
        line = self._line(all_due)
        if line.tokens - self._tokens <= room + SPARE_ROOM:
            self._limits = all_due
            return line
        limits, grew = list(before), False
        for place in places:
            if not limits[place] and len(str(self._cells[place] or "")) <= _BRIEF:
                limits[place] = all_due[place]
        if not self._tokens:
            room -= self._line(limits).tokens
        for place in self._rows.order[: self._rows.width]:
            cell, has, due = self._cells[place], limits[place], all_due[place]
            if has >= due or self._enough(place, target):
                continue
            cost = count_tokens(show(cell, due)) - (count_tokens(show(cell, has)) if has else 1)
            if cost <= room:
                limits[place], grew, room = due, True, room - cost
                continue
            characters = len(cell) if type(cell) is str else 0
            most = has + (min(due, characters) - has) * max(0, room) // max(1, cost)
            if characters <= _PIECE:
                limits[place] = limits[place] if grew else due
            elif most >= max(_PIECE, has + 1) or not grew:
                limits[place] = min(due, max(most, has + _PIECE))
            break
        self._limits = limits
        return self._line(limits)

    def append(self, cell: Any) -> None:
        """It has one more cell, which is not shown yet."""
        self._cells.append(cell)
        self._limits.append(0)

    def widen(self, place: int, ladder: Ladder, room: int) -> int:
        """One more of its cells is shown, left out where that is long or takes more than there is room for: it grows
        then. Says how many tokens that takes, about."""
        cell = self._cells[place]
        size = 0 if cell is None else len(str(cell))
        short = size <= _BRIEF or (size <= _PIECE and 2 + size // 2 <= room)
        self._limits[place] = self._due(place, SHORT if ladder.spent < ROOMY else LONG) if short else 0
        return 2 + size // 2 if short else 2

    def line(self, limit: int) -> Line:
        """It with cells of at least so many characters."""
        limits = list(self._limits)
        for place in self._rows.places:
            limits[place] = max(limits[place], self._due(place, limit))
        return self._line(limits)

    def now(self) -> Line:
        """It as it is."""
        line = self._line(self._limits)
        self._tokens = line.tokens
        return line

    @cached_property
    def longest(self) -> int:
        """Characters of its longest cell."""
        return max(
            longest(self._cells[place]) * (_NARROWER if place in self._short else 1) for place in self._rows.places
        )

    def _line(self, limits: Sequence[int]) -> Line:
        places = self._rows.places
        cells = [self._cells[p] if limits[p] else LEFT_OUT for p in places]
        shown = [limits[p] for p in places]
        if self._rows.in_toon:
            said = [cell if _plain(cell) else show(cell, most) for cell, most in zip(cells, shown, strict=True)]
            text = f"  {toon.row([self.order, *said])}"
        else:
            same = bool(shown) and shown[0] > 0 and shown.count(shown[0]) == len(shown)
            told = row_text(cells, shown[0]) if same else "|".join(map(show, cells, shown))
            text = f"{self.order}|{told}"
        notes = (_NOTE,) if "…" in text and LEFT_OUT in cells else ()
        return Line(self.table, ROWS, self.order, text, part=self._part, notes=notes)


class NextRow:
    """A row that is not shown yet: its table's first one comes with the head.

    It knows those that are `shown`, and a row does not: a view that holds itself would hold its table, too.
    """

    section = ROWS

    def __init__(self, rows: RowLines, shown: list[Row], row: Row) -> None:
        self.table, self.order, self.share = row.table, row.order, row.share
        self.least, self.done = 0.0, True
        self._rows, self._shown, self._row = rows, shown, row

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """The row, which grows by itself from then on."""
        rows, row = self._rows, self._row
        lines: list[Line] = []
        room = ladder.room
        if not self._shown:
            lines.append(rows.head())
            while rows.width > _FIRST and lines[0].tokens + row.line(SHORT).tokens > room + SPARE_ROOM:
                rows.set_width(rows.width - 1)
                lines = [rows.head()]
            room -= lines[0].tokens
            if not rows.widest:
                ladder.add(Wider(rows, self._shown, self.share))
        self._shown.append(row)
        if (further := rows.next(self._shown)) is not None:
            ladder.add(further)
        lines += row.more(ladder, room)
        if not row.done:
            ladder.add(row)
        return lines


def _plain(cell: Any) -> bool:
    return type(cell) not in (str, Decimal) and cell is not LEFT_OUT


class Wider:
    """Shows one more cell of all rows of a table, or several that are short."""

    section, order = ROWS, ROW_HEAD

    def __init__(self, rows: RowLines, shown: Sequence[Row], share: float) -> None:
        self.table, self.share = rows.index, share
        self._rows, self._shown = rows, shown
        self.done = False
        self.least = rows.least

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """The head and the rows with the next cell."""
        rows, shown = self._rows, self._shown
        room, head = ladder.room, rows.head()
        while True:
            place = rows.wider(shown)
            room += head.tokens
            head = rows.head()
            room -= head.tokens
            for row in shown:
                room -= row.widen(place, ladder, room)
            if room < SPARE_ROOM or rows.widest or rows.least > max(self.least, ladder.spent):
                break
        for row in shown:
            if not row.reached_now(ladder):
                ladder.add(Filled(row))
        self.least, self.done = rows.least, rows.widest
        return [head, *(row.now() for row in shown)]


class Filled:
    """Stands for a row that was done, or waits, and left out a cell when it became wider."""

    section = ROWS

    def __init__(self, row: Row) -> None:
        self.table, self.order, self.share = row.table, row.order, row.share
        self._row, self.least, self.done = row, 0.0, False

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """More of the row's cells."""
        lines = self._row.more(ladder, ladder.room)
        self.least, self.done = self._row.least, self._row.done
        return lines
