"""Where numbers change their level or go on rising, of a table and of each series in it (H18).

Rules:
- A change of level is told where the medians of blocks before and behind it differ by far more than those of blocks two
  apart usually do, which is little in noise, even in a trend, and as much everywhere in a random walk; where low and
  high values move with the middle; and where what is before and behind it is level. Counters have no level.
- What rises or falls all the time is told where few series of many do, or the whole does that is no counter; what
  was level before is told from where it begins to (`hyve.climbs`).
- What comes again and again (jobs, seasons) is no change: of a series with many steps nothing is told.
- Work is bounded: of each series at most some thousand values are looked at, evenly spread over it, before a change is
  known to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.climbs import climb, may_climb
from hyve.columns import Columns
from hyve.figures import change_text, epoch_unit, instant_text, number_text
from hyve.levels import CLIP, HELD, MOST, Floats, Level, Rows, Steps, block_of, placed, steps_in
from hyve.naming import quote
from hyve.numbered import SMALL
from hyve.parted import FEWEST, Parted, Ways, used_in
from hyve.profile import (
    NONE,
    ColumnView,
    Profile,
    entity_rank,
    is_dimension,
    names_codes,
)

_GROUPS = 4
"""So many series at most are told of."""
_ALIKE = 0.25
"""Series change alike that move by this share of the whole's change."""
MOST_OF = 0.75
"""A change of this share of the series is one of the table."""
_BACK, _NANOSECONDS = 20, 10**9
"""Numbers are a table's time that go back in one of so many rows at most."""
_FEW_ROWS = 16
"""So many rows of a series tell whether it goes on."""
_RAMP, _ENDS = 5.5, 5
"""The score of what rises all the time, and of how many rows at either end the one with the median is told."""
_OTHERWISE = 0.5
"""A change between medians of all rows that differs from that of the rows around it by a larger share isn't told."""
_COUNTED = frozenset({"total", "restarts"})


@dataclass(frozen=True)
class Change:
    """Something that changed: in which column, how far it stands out, the rows at its edge, and what is said of it:
    `text`, `of` which series (as the data names it, "" for all), and `place`; `within`: of what else it is, such as a
    metric."""

    column: int
    score: float
    rows: tuple[int, ...]
    text: str
    of: str
    place: str
    within: tuple[str, ...] = ()

    @property
    def whose(self) -> tuple[str, ...]:
        """All names of the series; none for all."""
        return *self.within, *([self.of] if self.of else [])


def _may_be_held(view: ColumnView) -> bool:
    """Whether a column of few numbers may be a level: replicas, a limit; no codes."""
    return (
        view.numeric
        and 1 < view.distinct <= 12
        and not view.nulls
        and not view.same
        and not view.numbered
        and not names_codes(view.column.name)
    )


def series_of(columns: Columns, dimensions: Iterable[ColumnView]) -> tuple[Rows, int]:
    """(the number of each row's series: those alike in what tells who they are about; how many there may be)."""
    rows = columns.table.rows
    series = np.zeros(rows, np.int64)
    size = parted = 1
    for view in sorted(dimensions, key=lambda view: (entity_rank(view), view.distinct)):
        if size * view.distinct * 8 <= rows and parted <= 3:
            series = series * (view.distinct + 1) + columns.coded(view.column.name)[0] + 1
            size, parted = size * view.distinct, parted + 1
    return series, size


class Changes:
    """What changes in a table."""

    def __init__(self, found: Profile) -> None:
        self.found = found
        size = found.table.rows
        filled = [(i, view) for i, view in enumerate(found.views) if view.nulls * 10 <= size and view.distinct > 2]
        self.time = next((i for i, view in filled if view.time), None)
        if self.time is None:
            self.time = next((i for i, view in filled if epoch_unit(view) and self._goes_on(i)), None)
        self.handed = [view for view in self._dimensions if self._hands_over(view)]
        lasting = [view for view in self._dimensions if view not in self.handed]
        self.series, self.count = series_of(found.columns, lasting)

    def held(self) -> list[Change]:
        """The changes of numbers that are held for long."""
        if self.time is None or len(self.rows) < FEWEST:
            return []
        views = enumerate(self.found.views)
        return [change for i, view in views if i != self.time and _may_be_held(view) for change in self._held(i)]

    @cached_property
    def rows(self) -> Rows:
        """The rows in the order of their time; those that have none have no place in it."""
        rows: Rows = np.arange(self.found.table.rows)
        if self.time is not None:
            at, view = self.times, self.found.views[self.time]
            if (at[1:] < at[:-1]).any():
                rows = np.argsort(at, kind="stable")
            if view.nulls:
                rows = rows[self.found.columns.coded(view.column.name)[0][rows] >= 0]
        return rows

    @cached_property
    def times(self) -> Rows:
        """The instants of the table's time, in the order of its rows."""
        assert self.time is not None  # asked where there is one
        return self.instants(self.time)

    def _goes_on(self, column: int) -> bool:
        """Whether times hardly ever go back from row to row: neither when something ends nor when it was made."""
        at = self.instants(column)
        return int(np.count_nonzero(at[1:] < at[:-1])) * _BACK <= len(at)

    def when(self, change: Change) -> tuple[bool, int, int]:
        """What changes are put in order by: the time, or the place, of the first row behind it; what is said of all
        rows comes last."""
        row = change.rows[:2][-1]
        return not change.place, row if self.time is None else int(self.times[row]), row

    def instants(self, column: int) -> Rows:
        """The times of a column in nanoseconds, or its whole numbers; where there is none, that of the row before."""
        view = self.found.views[column]
        codes, values = self.found.columns.coded(view.column.name)
        if (unit := epoch_unit(view)) is None:
            at = values.integers()[codes]
        elif isinstance(view.low, int) and isinstance(view.high, int):
            at = (values.integers() * (_NANOSECONDS // unit[0]))[codes]
        else:
            at = (values.numbers() * (_NANOSECONDS / unit[0])).astype(np.int64)[codes]
        if view.nulls:
            last = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(codes)), -1))
            at = at[last]  # those before the first have the last one's, where nothing is looked for
        return at

    @cached_property
    def whole(self) -> Parted:
        size = len(self.rows)
        return Parted(None, self.rows, np.zeros(1, np.int64), np.array([size]))

    @cached_property
    def _dimensions(self) -> list[ColumnView]:
        return [view for view in self.found.views if is_dimension(view) and not view.same]

    def _hands_over(self, view: ColumnView) -> bool:
        """Whether some values of a column end where others begin, as time goes on: versions, pods that are replaced.

        What changes with them changes in the table: series by such a column don't last.
        """
        if self.time is None or view.distinct > SMALL or (size := len(self.rows)) < FEWEST:
            return False
        codes = self.found.columns.coded(view.column.name)[0]
        if view.nulls or codes[self.rows[0]] == codes[self.rows[-1]]:
            return False
        along = codes[self.rows]
        last = np.zeros(view.distinct, np.int64)
        last[along] = np.arange(size)
        # A place is an edge where all values that were there before have had their last row.
        edges = np.flatnonzero(np.maximum.accumulate(last[along]) == np.arange(size)) + 1
        return 2 <= len(edges) <= MOST + 1 and int(np.diff(edges, prepend=0).min()) >= HELD

    @cached_property
    def ways(self) -> Ways:
        """The ways to part the rows by columns."""
        return Ways(self.found, self.rows, self._dimensions, self.handed)

    @property
    def parted(self) -> list[Parted]:
        """The rows by each of the columns that tell who or what they are about."""
        return self.ways.parted

    @cached_property
    def mixed(self) -> bool:
        """Whether the series take turns: where one follows another, a change from one to the next is none."""
        along = self.series[self.rows]
        return self.count < 2 or int(np.count_nonzero(along[1:] != along[:-1])) >= 4 * self.count

    def partings(self, column: int) -> list[Parted]:
        """The ways to look for changes of a column: all rows, where the series take turns, and each series by a column
        or two; of values of several metrics each metric, and its series."""
        if in_metrics := self.ways.in_metrics(self.found.views[column]):
            return in_metrics
        return [*([self.whole] if self.mixed else []), *self.parted, *self.ways.pairs]

    @cached_property
    def full(self) -> Rows:
        """The number of each row's series by all that tells who it is about, as far as series are of many rows."""
        key = np.zeros(self.found.table.rows, np.int64)
        for view in sorted(self._dimensions, key=lambda view: (entity_rank(view), view.distinct)):
            codes = self.found.columns.coded(view.column.name)[0]
            numbers, finer = np.unique(key * (view.distinct + 1) + codes + 1, return_inverse=True)
            if len(numbers) * _FEW_ROWS <= len(key):
                key = finer.astype(np.int64)
        return key

    def _passes_on(self, rows: Rows, at: int) -> bool:
        """Whether one series ends near a place where the next begins, in rows without a time."""
        if self.time is not None:
            return False
        key, near = self.full[rows], block_of(len(rows))
        before, behind = key[: max(1, at - near)], key[min(at + near, len(key) - 1) :]
        ended, begun = ~np.isin(before[-_FEW_ROWS:], behind), ~np.isin(behind[:_FEW_ROWS], before)
        return bool(min(ended.mean(), begun.mean()) > 0.5)

    def only_rises(self, column: int, numbers: Floats, used: NDArray[np.bool_]) -> bool:
        """Whether numbers rise again and again in a series, and hardly ever fall in any: counters of however few steps.
        One that rises only once is one by its name."""
        rows = self.rows[used[self.rows]]
        rows = rows[np.argsort(self.full[rows], kind="stable")]
        steps, of = np.diff(numbers[rows]), self.full[rows]
        steps[of[1:] != of[:-1]] = 0
        rises, falls = of[1:][steps > 0], int(np.count_nonzero(steps < 0))
        least = 1 if not _COUNTED.isdisjoint(rank.name_words(self.found.views[column].column.name)) else 2
        return len(rises) > 0 and falls * 20 < len(rises) + falls and int(np.bincount(rises).max()) >= least

    # Levels

    def levels(self, column: int, numbers: Floats, used: NDArray[np.bool_], away: Floats) -> list[Change]:
        """The changes of level of a number, by the parting of the rows that shows them best.

        `away` is how far each of the `used` numbers is from the median of its series (`rank.away`).
        """
        if len(self.rows) < FEWEST:
            return []
        if self.handed:
            away = rank.away(numbers, used, self.series)
        clipped = np.clip(away, -CLIP, CLIP)
        tried: list[tuple[Parted, list[Steps]]] = []
        ramps: list[tuple[Parted, list[int], int]] = []
        moving: list[tuple[Parted, Rows]] = []
        counts = False
        for parted in self.partings(column):
            series = used_in(parted, used)
            if series is None:
                continue
            steps, rising, apart = steps_in(away, clipped, numbers, series, len(series.sizes) if parted.within else 1)
            if len(groups := apart[0][may_climb(apart[1])]):
                moving.append((parted, groups))
            if rising:
                ramps.append((parted, rising, len(series.sizes)))
            if steps and not (counts := counts or self.only_rises(column, numbers, used)):
                tried.append((parted, steps))
        # What all series share is told once; what one of them does is found best where they are parted by it: by one
        # column, if what else parts them makes no difference.
        rather: list[Change] = []
        for parted, steps in sorted(tried, key=lambda one: (one[0].columns, one[1][0].faint, -one[1][0].beyond)):
            told: list[Change] = []
            shared = True
            for one in steps[:_GROUPS]:
                rows = parted.of(one.group)
                rows = rows[used[rows]]
                score = min(8.0, 5 + steps[0].beyond / 20)
                levels = placed(away[rows], numbers[rows], one, not parted.within)
                levels = [level for level in levels if not self._passes_on(rows, level.at)]
                shares = [self._shared(away, rows, level) for level in levels]
                if parted.by is None:
                    levels = [level for level, share in zip(levels, shares, strict=True) if share]
                else:
                    shared &= all(shares)
                edges = [0, *(level.at for level in levels), len(rows)]
                for i, level in enumerate(levels):
                    text, of_rows = _level_text(numbers, rows, level, edges[i : i + 3])
                    told.append(self.change(column, score, rows, level.at, text, parted, one.group, of_rows))
            if told and shared:
                return told
            rather = rather or told
        return rather or self._climbs(column, numbers, used, away, moving) or self._ramps(column, numbers, used, ramps)

    def _climbs(
        self, column: int, numbers: Floats, used: NDArray[np.bool_], away: Floats, found: Sequence[tuple[Parted, Rows]]
    ) -> list[Change]:
        """Where what was level begins to rise or fall, of some groups of each parting: of the first that all tell."""
        rather: list[Change] = []
        counts = bool(found) and self.only_rises(column, numbers, used)
        for parted, groups in sorted(found, key=lambda one: one[0].columns):
            told, shared = list[Change](), True
            if counts and parted.by is not None and self._all_count(numbers, parted, groups.tolist()):
                continue
            for group in groups.tolist():
                rows = parted.of(group)
                rows = rows[used[rows]]
                if len(told) >= _GROUPS or (one := climb(numbers[rows])) is None or self._passes_on(rows, one.at):
                    continue
                if not self._shared(away, rows, Level(one.at, 0.0, 0.0, len(rows))):
                    shared = False
                    if parted.by is None:
                        continue
                before = float(np.median(numbers[rows[: one.at]]))
                level_again = one.end < len(rows)
                last = int(rows[one.end - 1]) if level_again else _ends(numbers, rows)[1]
                behind = float(np.median(numbers[rows[one.end :]])) if level_again else float(numbers[last])
                text = f"{'rises' if behind > before else 'falls'} {change_text(before, behind)}"
                change = self.change(column, _RAMP, rows, one.at, text, parted, group, f" to {last}")
                names = self.found.views[column].column.name, *change.whose
                if not counts or all(_COUNTED.isdisjoint(rank.name_words(name)) for name in names):
                    told.append(replace(change, rows=(*change.rows, last)))
            if told and shared:
                return told
            rather = rather or told
        return rather

    def _ramps(
        self, column: int, numbers: Floats, used: NDArray[np.bool_], found: Sequence[tuple[Parted, list[int], int]]
    ) -> list[Change]:
        """What rises or falls all the time: a few series of many, or else the whole; no counters, which all do."""
        counts = bool(found) and self.only_rises(column, numbers, used)
        few = [
            one
            for one in found
            if one[0].by is not None
            and len(one[1]) * 2 < one[2]
            and not (counts and self._all_count(numbers, *one[:2]))
        ]
        whole = [one for one in found if one[0].by is None and not counts]
        told = []
        for parted, groups, _ in [*few, *whole][:1]:
            for group in groups[:_GROUPS]:
                rows = parted.of(group)
                rows = rows[used[rows]]
                first, last = _ends(numbers, rows)
                up = numbers[last] > numbers[first]
                top = int(rows[np.argmax(numbers[rows] if up else -numbers[rows])])
                name, way = quote(self.found.views[column].column.name), "rises" if up else "falls"
                text = f"- {name}: {way} {change_text(float(numbers[first]), float(numbers[last]))}"
                place = f" all the time (rowid {first} to {last})"
                edges = (first, last) if top in rows[-_ENDS:] else (first, last, top)
                of, within = self.of(parted, group), self.within(parted, group)
                told.append(Change(column, _RAMP, edges, text, of, place, within))
        return told

    def _all_count(self, numbers: Floats, parted: Parted, groups: Sequence[int]) -> bool:
        """Whether other series than those of some groups rise, too: counters do."""
        ends = parted.starts + parted.sizes - 1
        still = numbers[parted.rows[parted.starts]] == numbers[parted.rows[ends]]
        return bool(np.count_nonzero(np.delete(still, groups)) * 2 < len(still) - len(groups))

    def _shared(self, away: Floats, rows: Rows, level: Level) -> bool:
        """Whether most of the series change, as far as it can be seen of each."""
        if self.count < 2:
            return True
        at, reach = level.at, level.reach
        before, behind = rows[max(0, at - reach) : at], rows[at : at + reach]
        series, of = np.unique(self.series[np.concatenate([before, behind])], return_inverse=True)
        parts = of[: len(before)], of[len(before) :]
        counts = [np.bincount(part, minlength=len(series)) for part in parts]
        seen = np.minimum(*counts) >= HELD
        if not seen.any():
            return True
        sums = [
            np.bincount(part, away[which], len(series)) for part, which in zip(parts, (before, behind), strict=True)
        ]
        moved = sums[1][seen] / counts[1][seen] - sums[0][seen] / counts[0][seen]
        step = float(np.median(away[behind]) - np.median(away[before]))
        return bool(np.mean(moved / step > _ALIKE) >= MOST_OF)

    def _held(self, column: int) -> list[Change]:
        """The changes of a number that is held for long."""
        codes, values = self.found.columns.coded(self.found.views[column].column.name)
        for parted in self.partings(column):
            of = codes[parted.rows]
            turns = of[1:] != of[:-1]
            turns[parted.starts[1:] - 1] = False
            at = np.flatnonzero(turns) + 1
            if not 0 < len(at) <= MOST:
                continue
            edges = np.sort(np.concatenate([parted.starts, at, [len(of)]]))
            if np.diff(edges).min() < HELD:
                continue
            told, numbers = [], values.numbers()
            if self.only_rises(column, numbers[codes], codes >= 0):
                return []
            for place in at.tolist():
                group = int(np.searchsorted(parted.starts, place, "right")) - 1
                text = f"median {change_text(float(numbers[of[place - 1]]), float(numbers[of[place]]))}"
                told.append(self.change(column, 6.0, parted.rows, place, text, parted, group))
            return told
        return []

    def change(
        self, column: int, score: float, rows: Rows, at: int, text: str, parted: Parted, group: int, of_rows: str = ""
    ) -> Change:
        """A change between two of the rows of a table or of one of its series; `of_rows`: which it is told of."""
        before, behind = int(rows[at - 1]), int(rows[at])
        at_time = self.shown(self.time, behind) if self.time is not None else "None"
        when = f" ({at_time})" if at_time != "None" else ""
        name = quote(self.found.views[column].column.name)
        place = f" from rowid {behind}{when}{of_rows}"
        of, within = self.of(parted, group), self.within(parted, group)
        return Change(column, score, (before, behind), f"- {name}: {text}", of, place, within)

    def of(self, parted: Parted, group: int) -> str:
        """Which series a change is of, as the data names it; "" for all."""
        return self._name(parted.by, parted, group) if parted.by else ""

    def within(self, parted: Parted, group: int) -> tuple[str, ...]:
        """Of what else it is."""
        return tuple(self._name(view, parted, group) for view in parted.within)

    def _name(self, view: ColumnView, parted: Parted, group: int) -> str:
        codes, values = self.found.columns.coded(view.column.name)
        if (code := codes[parted.rows[parted.starts[group]]]) < 0:
            return f"{quote(view.column.name)} {NONE}"
        name = str(values.shown()[code])
        return f"{quote(view.column.name)} {name}" if view.numeric else name

    def unnamed(self, parted: Parted) -> NDArray[np.bool_]:
        """Which of the series is that of the rows that have no value in the column that parts them."""
        if parted.by is None:
            return np.zeros(len(parted.sizes), np.bool_)
        codes, _ = self.found.columns.coded(parted.by.column.name)
        return np.asarray(codes[parted.rows[parted.starts]] < 0)

    def shown(self, column: int, row: int) -> str:
        """What stands in a row of a column, as it is shown; a time since 1970 as one."""
        view = self.found.views[column]
        [cell] = self.found.columns.cells(view.column.name, [row])
        unit = epoch_unit(view) if cell is not None else None
        return instant_text(cell, unit[0]) if unit else str(cell)


def _level_text(numbers: Floats, rows: Rows, level: Level, edges: Sequence[int]) -> tuple[str, str]:
    """(`median 3→5`, the rows that it is of where they are not all from the change before to the next one).

    `edges` are the places in `rows` of the change before, of this one, and of the next. What goes on rising behind it
    is told by two of its rows.
    """
    first, at, last = edges
    of = numbers[rows]
    if level.last is not None:
        begin, end = _ends(numbers, rows[at:last])
        way = "rises" if level.last > level.behind else "falls"
        said = f"{change_text(float(numbers[begin]), float(numbers[end]))} (rowid {begin} to {end})"
        return f"median {number_text(float(np.median(of[first:at])))}, then {way} {said}", ""
    before, behind = float(np.median(of[first:at])), float(np.median(of[at:last]))
    of_rows = ""
    if abs((behind - before) / (level.behind - level.before) - 1) > _OTHERWISE:
        # What the number does farther away hides the change: it is told of the rows around it.
        first, last = max(first, at - level.reach), min(last, at + level.reach)
        before, behind = float(np.median(of[first:at])), float(np.median(of[at:last]))
        of_rows = f" among rowid {int(rows[first])} to {int(rows[last - 1])}"
    return f"median {change_text(before, behind)}", of_rows


def _ends(numbers: Floats, rows: Rows) -> tuple[int, int]:
    """Of the first and of the last few rows that with the median number."""
    first, last = rows[:_ENDS], rows[-_ENDS:]
    middle = [int(some[np.argsort(numbers[some], kind="stable")[len(some) // 2]]) for some in (first, last)]
    return middle[0], middle[1]
