"""What is said of a table beside its rows, each a line that grows step by step (H14, H20)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, chain

from hyve.fit import COLUMNS, HEAD, UNTOLD, Line
from hyve.ladder import ROOMY, Ladder
from hyve.naming import quote
from hyve.rowview import SPARE, show

SHORT, LONG = 60, 160
"""Characters of cells until much is said, and after."""
_CHARACTERS, _LONG_WORDS = 3, 10
"""Characters of a token, rather too few, and rather too many."""
_FIRST = 12
"""So many texts of a line come before other things that matter."""
_MARK = 6
"""Characters that a line may have more without what says how many texts are not listed."""
SPARE_ROOM = 8
"""A step is not parted for so many tokens."""


class Plain:
    """A line that is said at once, or first without its `ends`, each of which says more than the one before; `parted`:
    first without them even where there is room. The share of the ends is `then`."""

    def __init__(
        self,
        line: Line,
        share: float,
        ends: Sequence[str] = (),
        least: float = 0.0,
        parted: bool = False,
        then: float = math.inf,
    ) -> None:
        self.table, self.section, self.order = line.slot
        self.share, self.least, self.done, self._then = share, least, False, then
        self._lines = [line, *(line.longer(end) for end in ends)]
        self._parted = parted

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """It with the longest end that there is room for."""
        before = self._lines[0].tokens if self._said else 0
        last = 0 if self._parted and not self._said else len(self._lines) - 1
        while last and self._lines[last].tokens - before > ladder.room + SPARE_ROOM:
            last -= 1
        last = max(last, int(self._said))
        del self._lines[:last]
        self._said, self.done = True, len(self._lines) == 1
        self.share = min(self.share, self._then)
        return [self._lines[0]]

    _said = False


class Listing:
    """A line that lists `texts`, so many of them as there is room for; then `more` says how many there are besides.

    Beyond `few` it lists one more for each `each` tokens that are spent; `before` texts stand in other lines. Beyond
    the first ones its share is `then`. `columns` are those that each text is about.
    """

    def __init__(
        self,
        line: Line,
        share: float,
        texts: Sequence[str],
        more: Callable[[int], str],
        few: int = 1 << 30,
        each: float = math.inf,
        columns: Sequence[tuple[str, ...]] = (),
        before: int = 0,
        then: float = math.inf,
    ) -> None:
        self.table, self.section, self.order = line.slot
        self.share, self.least, self.done = share, each * (before + 1) if before >= few else 0.0, False
        self._line, self._texts, self._more, self._columns = line, texts, more, columns
        self._few, self._each, self._before, self._then = max(0, few - before), each, before, then
        self._listed = self._size = self._length = 0
        self._ends = list(accumulate((len(text) + 2 for text in texts), initial=0))
        self._tried = -1, line

    def _said(self, count: int) -> Line:
        line = self._line
        text = line.text + ", ".join(self._texts[:count]) + self._more(count)
        columns = (*line.columns, *chain.from_iterable(self._columns[:count]))
        return Line(*line.slot, text, columns, varied=line.varied, notes=line.notes)

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """As many texts more as there is room for, and at least one."""
        listed, most, ends = self._listed, self._most(ladder), self._ends
        if self._tried[0] != most:  # the same may be tried until there is room for it
            self._tried = most, self._said(most)
        said = self._tried[1]
        longer = len(said.text) - self._length
        # What is certain to be too long is not counted.
        size = longer // _CHARACTERS if longer > _LONG_WORDS * ladder.room else said.tokens - self._size
        while size > ladder.room + SPARE_ROOM and most > listed + 1:
            head = 0 if listed else len(self._line.text)
            end = (head + ends[most] - ends[listed]) * ladder.room // size - head + ends[listed]
            most = min(max(listed + 1, bisect_right(ends, end, listed, most) - 1), most - 1)
            said = self._said(most)
            size = said.tokens - self._size
        if most < len(self._texts) and ends[-1] - ends[most] <= len(self._more(most)) + _MARK:
            most = len(self._texts)  # what says how many are not listed takes as much
            said = self._said(most)
        self._listed, self._size, self._length = most, said.tokens, len(said.text)
        self.done = most == len(self._texts)
        self.least = self._each * self._all(self.next(most)) if most >= self._few else 0.0
        if most >= _FIRST:
            self.share = min(self.share, self._then)
        return [said]

    def _most(self, ladder: Ladder) -> int:
        """How many texts may be listed now."""
        most = max(self._few, self._listed)
        if self._listed >= self._few:
            most = self.next(self._listed)
        while most < len(self._texts) and self._each * self._all(self.next(most)) <= ladder.spent:
            most = self.next(most)
        return min(most, len(self._texts))

    def _all(self, count: int) -> int:
        """How many texts are told with those of other lines."""
        return self._before + min(count, len(self._texts))

    @staticmethod
    def next(count: int) -> int:
        """How many come after so many."""
        return count + max(1, count // 2)


class Untold:
    """Names columns that are told nowhere else, the first ones of `names`: a `few`, and one more for `each` tokens that
    are spent. No more than these come with the table's first line."""

    order = UNTOLD

    def __init__(self, table: int, names: Sequence[str], share: float, few: int, each: float) -> None:
        self.table, self.share, self.least, self.done = table, share, 0.0, not names
        self.section = HEAD if len(names) <= few else COLUMNS
        self._names, self._few, self._each, self._named = tuple(names), few, each, 0

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """One name more, or as many as there is room for."""
        named = self._named
        most = min(max(self._few, Listing.next(named)), len(self._names))
        while most > named + 1 and sum(map(len, self._names[named:most])) > _CHARACTERS * ladder.room:
            most -= 1
        self._named, self.done = most, most == len(self._names)
        self.least = self._each * min(Listing.next(most), len(self._names)) if most >= self._few else 0.0
        text = ", ".join(map(quote, self._names[:most]))
        return [Line(self.table, COLUMNS, UNTOLD, text, self._names, most=most)]


class Cell:
    """A column's one value, which may be long."""

    def __init__(self, line: Line, share: float, value: object, end: str) -> None:
        self.table, self.section, self.order = line.slot
        self.share, self.least, self.done = share, 0.0, False
        self._line, self._value, self._end = line, value, end
        self._limit = self._size = 0

    def line(self, limit: int) -> Line:
        """It with so many characters of the value."""
        line = self._line
        return Line(*line.slot, f"{line.text}{show(self._value, limit)}{self._end}", line.columns, varied=line.varied)

    @property
    def longest(self) -> int:
        """Characters of the value."""
        return len(self._value) if type(self._value) is str else 0

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """More of the value."""
        wanted = SHORT if ladder.spent < ROOMY else LONG
        line = self.line(wanted)
        size = line.tokens - self._size
        if size > ladder.room + SPARE_ROOM and self.longest > max(SHORT, self._limit) + SPARE:
            wanted = max(SHORT, self._limit + (wanted - self._limit) * ladder.room // size)
            line = self.line(wanted)
        self._size = line.tokens
        self._limit = wanted
        if self.longest <= wanted + SPARE:
            self.done = True
        elif wanted >= LONG:
            self.done = True
            ladder.longer.append(self)
        elif wanted >= SHORT and ladder.spent < ROOMY:
            self.least = float(ROOMY)
        return [line]
