"""What may be said of a table, line by line: its header, columns, means, rows and a query (H14, H15, H18, H24).

A column view is one line: type, distinct count, nulls, range, and its values with their counts (`200 ×2,999`) or, in
order, its first and last ones. Means are `web-7=81.2`. A row view holds rows in table order, cells parted by `|`; its
first column is DuckDB's `rowid`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np

from hyve import rank
from hyve.asked import Named, named
from hyve.catalog import Table
from hyve.columnlines import (
    column_line,
    in_order,
    listed_by_means,
    more_of,
    of_few_words,
    one_value,
    only_value,
    row_count,
)
from hyve.columns import Codes, Columns
from hyve.examples import example
from hyve.faults import names_errors, tells_faults
from hyve.figures import epoch_unit, mean_text
from hyve.fit import COLUMNS, HEAD, MEANS, NAMED_ONLY, QUERY, Line
from hyve.growing import SHORT, Listing, Plain, Untold
from hyve.ladder import Item, Ladder
from hyve.mistyped import Mistyped, mistyped
from hyve.naming import quote
from hyve.numbered import SMALL
from hyve.onetoone import pairs, told_by_others
from hyve.parted import metric_of
from hyve.profile import (
    ENTITIES,
    NONE,
    SERIES,
    ColumnView,
    Kinds,
    Profile,
    entity_rank,
    is_dimension,
    is_measure,
    kinds,
    listed,
    means,
    names_entities,
    parts_rows,
    profile,
    told,
    views_of,
)
from hyve.question import Question
from hyve.rowlines import RowLines
from hyve.rowview import MESSAGES, Owner, RowView, listing, row_view, shown_whole
from hyve.samples import steady_series
from hyve.writer import LEGEND

_NAMES = 40
"""So many columns of a table that is told in brief are named."""
_NAMING = 16
"""Of so many columns, those that name who or what the rows are about come before all rows."""
_VALUES, _VALUE, _LISTING, _PART = 5, 30, 12, 12
"""So many values of a column are told, of so many columns one more for so many tokens that are spent, and for fewer
(the last) where each has several rows; of who rows are about all are."""
_MEASURE, _MEANS, _AVERAGES = 1.26, 1.2, 12
"""The priorities of the likeliest measure and of its means, of which so many are told at first."""
_OWNERS, _OWNER = 1_000, 14
"""Of so many series at most means are told: one more for so many tokens that are spent."""
_HEADER, _NAMED, _BESIDE, _THEN = 1.35, 1.25, 1.0, 1.12
"""The priorities of headers, of what names who rows are about, of columns that are one to one with another, and of more
means than the first ones."""
_FEW_WORDS, _CONSTANTS, _CONSTANT = 0.4, 12, 60
"""The priority of columns of one value; so many of them are told, and one more for so many tokens that are spent."""
_UNTOLD = 4
"""So many columns that nothing else is said of are named early, one more for so many tokens as of constants."""
_KINDS = 24
"""So many values of a column of a table that is told in brief are told."""
_FIRST = 1_000
"""What is said of an entity that the question names stands so many places before the changes."""
_EXAMPLE = 400
"""Tokens that are spent before an example query is shown: what there is comes first."""
_SERIES = 12
"""Of so many series, the marker of cut rows says how many of each are cut."""


@dataclass(frozen=True)
class Switches:
    """What an excerpt is made with, each of which an ablation switches (H34): rows and columns by rank, a budget, TOON
    instead of our notation, example queries."""

    rank: bool = True
    truncation: bool = True
    toon: bool = False
    queries: bool = True


@dataclass(frozen=True)
class TableView:
    """A table's views; `faulty` are the columns that tell what failed, `note` is said in its header, `asked` of the
    entities that the question names; `measure` is the column of which `means` are, `in_means` those whose values these
    list; `beside` are columns by those that are one to one with them."""

    index: int
    profile: Profile
    ranked: tuple[int, ...]
    faulty: Sequence[int]
    means: tuple[tuple[str, tuple[str, ...], str], ...]
    example: str
    rows: RowView | None
    series: dict[str, str]
    mistyped: dict[str, Mistyped]
    in_toon: bool
    note: str
    asked: tuple[str, ...]
    measure: str
    beside: Mapping[int, int]
    in_means: frozenset[str]

    def items(self) -> Iterator[Item]:
        """What there is to say, each line with the share of the table's weight that is its priority."""
        table, views, i = self.profile.table, self.profile.views, self.index
        parts, owners = self._parts
        yield _header(i, table, self.note, _HEADER, parts)
        alone = {k for k, view in enumerate(views) if table.rows > 1 and (view.same or one_value(view))}
        if len(alone) < 2:
            alone = {k for k in alone if views[k].same}
        alone -= {k for k in alone if views[k].column.name in self.mistyped or k in self.faulty}
        alone -= {k for k in alone if not views[k].same and not shown_whole(only_value(views[k]), SHORT)}
        for place, k in enumerate(k for k in self.ranked if k not in alone):
            named, tells, name = names_entities(views[k]), k in self.faulty, views[k].column.name
            share = 1.3 / (1 + 0.15 * place)
            share = 1.25 if named and place < _NAMING else max(1.1, share) if tells else share
            share = max(share, _MEASURE) if name == self.measure else share
            few = SMALL if named or tells else _VALUES
            each = math.inf if place >= _LISTING else _PART if parts_rows(views[k]) else _VALUE
            other, beside = self.mistyped.get(name), None
            if k in self.beside:
                beside, share, few = self._beside(k), min(share, _BESIDE), _VALUES
            if other is not None:
                share = max(share, _MEASURE)  # it may be what failed
            elsewhere = name in self.in_means or (name == SERIES and bool(parts) and not self.series)
            if name == SERIES and not self.series:
                share = min(share, _BESIDE)
            yield column_line(i, k, share, views[k], few, each, self.series, other, beside, elsewhere)
        yield from self._in_few_words(alone)
        names = [*(views[k].column.name for k in self.ranked), *self._further]
        yield Untold(i, names[:_NAMES], _HEADER if len(names) <= _UNTOLD else _NAMED, _UNTOLD, _CONSTANT)
        for place, (text, averages, of) in enumerate(self.means):
            line, share = Line(i, MEANS, place, text), _MEANS / (1 + 0.8 * place)
            each = _VALUE if len(averages) <= SMALL else _OWNER
            few = _AVERAGES
            if of in self.in_means.difference(of for _, _, of in self.means[:place]):
                share, few = max(share, _NAMED), SMALL
            yield Listing(line, share, averages, more_of(len(averages)), few, each, then=_THEN)
        for place, text in enumerate(self.asked):
            yield Plain(Line(i, MEANS, place - _FIRST, text), 1.32)
        if self.example:
            yield Plain(Line(i, QUERY, 0, self.example), 1.1, least=_EXAMPLE)
        if self.rows is not None:
            for place, (order, text) in enumerate(self.rows.changes):
                yield Plain(Line(i, MEANS, order - len(self.rows.changes), text), 1.28 / (1 + 0.1 * place))
            rows = RowLines(
                i, self.rows, lambda row: int(owners[row]) if parts else -1, self.in_toon, (LEGEND["both"],)
            )
            first = rows.next([])
            if first is not None:
                yield first
        if len(told(table)) > len(views):
            yield _Further(i, self.profile)

    @property
    def _further(self) -> Iterator[str]:
        """The columns of which nothing is known yet."""
        known = {view.column.name for view in self.profile.views}
        return (column.name for column in told(self.profile.table) if column.name not in known)

    def _beside(self, k: int) -> tuple[str, list[str]]:
        """The column that another is one to one with, and the values of that other in its order."""
        leader, view = self.profile.views[self.beside[k]], self.profile.views[k]
        names = pairs(self.profile.columns, leader, view)
        return leader.column.name, [names[value] for value, _ in in_order(leader)]

    def _in_few_words(self, alone: Collection[int]) -> Iterator[Item]:
        """The lines of several columns: first those of who or what all rows are about, then few of the others: what
        varies says more."""
        views = self.profile.views
        about = {k for k in alone if entity_rank(views[k]) < len(ENTITIES) and (views[k].same or not views[k].nulls)}
        order = len(views)
        for some, share, few in ((about, 1.25, SMALL), ({*alone} - about, _FEW_WORDS, _CONSTANTS)):
            before = 0
            for label, told_of in of_few_words([views[k] for k in sorted(some)]):
                line, columns = Line(self.index, COLUMNS, order, label), [*told_of.values()]
                yield Listing(line, share, [*told_of], _nothing, few, _CONSTANT, columns, before)
                order, before = order + 1, before + len(columns)

    @cached_property
    def _parts(self) -> tuple[tuple[tuple[str, int], ...], Codes]:
        """(name and rows of each series, the number of the series of each row), where there are a few."""
        view = next((view for view in self.profile.views if view.column.name == SERIES), None)
        if view is None or not view.complete or not 1 < view.distinct <= _SERIES:
            return (), np.zeros(0, np.int32)
        owners, values = self.profile.columns.coded(SERIES)
        rows = dict(view.values)
        names = [(f"{'' if i else SERIES + ' '}{value}", rows[str(value)]) for i, value in enumerate(values.shown())]
        return tuple(names), owners

    def named(self) -> set[str]:
        """The values that name who or what its rows are about."""
        return {value for view in self.profile.views if entity_rank(view) < len(ENTITIES) for value, _ in view.values}


class _Further:
    """The columns that are described only when all else is said."""

    section, order, share, least = COLUMNS, 1 << 30, 0.01, math.inf

    def __init__(self, index: int, found: Profile) -> None:
        self.table, self.done = index, False
        self._found = found

    def grow(self, ladder: Ladder) -> Sequence[Line]:
        """Nothing yet: their lines come one by one."""
        self.done = True
        known = {view.column.name for view in self._found.views}
        columns = told(self._found.table)
        others = [column for column in columns if column.name not in known]
        for place, view in enumerate(views_of(self._found.columns, others), len(known)):
            order = place + len(columns)  # behind the lines of several columns
            ladder.add(column_line(self.table, order, self.share / place, view, _VALUES, math.inf, {}, None))
        return []


@dataclass(frozen=True)
class Brief:
    """A table of which columns are named, and the values of those that tell who or what its rows are about.

    Its rows are told by telemetry relations, or by others that matter more. `naming` is the share of its weight that
    names of entities have.
    """

    index: int
    naming: float
    table: Table
    entities: tuple[ColumnView, ...]
    note: str = ""

    def named(self) -> set[str]:
        """The values that name who or what its rows are about."""
        return {value for view in self.entities for value, _ in view.values}

    def items(self) -> Iterator[Item]:
        """What there is to say."""
        i, table = self.index, self.table
        names = [column.name for column in told(table)]
        first = max(1.1, self.naming if self.entities else 0.0)
        yield _header(i, table, self.note, first)
        said = [quote(name) for name in names[:_NAMES]]
        if said:
            yield Listing(Line(i, COLUMNS, NAMED_ONLY, "- ", tuple(names)), 1.0, said, more_of(len(names)))
        for view in self.entities:
            place = names.index(view.column.name)
            yield column_line(i, place, self.naming, view, _KINDS, _VALUE, {}, None, most=_KINDS)


def _header(place: int, table: Table, note: str, share: float, parts: tuple[tuple[str, int], ...] = ()) -> Plain:
    """A table's first line: how many rows it has, then where they are from."""
    line = Line(place, HEAD, 0, f"## {quote(table.name)}: {row_count(table.rows)}", parts=parts)
    return Plain(line, share, [end] if (end := f"{_join(table)}{note}") else (), parted=True)


def _nothing(count: int) -> str:
    return ""


def _join(table: Table) -> str:
    path = f" (from {table.path})" if table.path not in ("$", "lines") else ""
    return path + (f", {quote('parent_' + table.parent)} = {quote(table.parent)}._id" if table.parent else "")


def table_view(
    tables: Sequence[Columns], index: int, question: Question, switches: Switches, note: str = ""
) -> TableView:
    """The candidates of one of the tables."""
    columns = tables[index]
    words = question.words
    table, found = columns.table, profile(columns, words)
    only = kinds(columns)
    if only is not None and not only.all:
        unlike = {only.measure, *only.parts}
        views = tuple(replace(view, mean=None) if view.column.name in unlike else view for view in found.views)
        found = replace(found, views=views)
    views = found.views
    places = range(len(views))
    tell = {i for i in places if tells_faults(views[i])}
    by_rank = sorted(places, key=lambda i: (_column_rank(views[i], i in tell, table, words), i))
    found, beside = told_by_others(found, by_rank, tell) if switches.rank else (found, {})
    views = found.views
    # What another column tells, and the numbers of lists, come after what tells more.
    by_rank.sort(key=lambda i: i in beside or bool(views[i].spelled))
    ranked = tuple(by_rank if switches.rank else places)
    faulty = [i for i in ranked if i in tell]
    parent, name = _series_name(tables, table)
    series, owner = _series(columns, parent, name, views), None
    if series and parent is not None and len(series) > SMALL:
        # Of so many the header can't say whose number is whose: the rows do.
        owner = Owner(f"{quote(parent.table.name)}.{quote(name)}", list(series.values()))
    averages = tuple(_means(found, ranked, words, parent, name, only, owner))
    lines = [(of, len(all_of) - all_of[-1].startswith(f"{NONE}=")) for _, all_of, of in averages]
    leaders = {*beside.values()}
    others = [views[i] for i in ranked if i not in beside and i not in leaders and views[i].column.name != SERIES]
    in_means = frozenset(view.column.name for view in others if listed_by_means(view, lines))
    asked = named(found, question) if switches.rank else []
    query = example(found, ranked, only, asked) if switches.queries else ""
    rows = row_view(found, ranked, faulty, question, switches.rank, not switches.toon, asked, owner)
    said = tuple(_of_entity(found, ranked, one, only) for one in asked)
    measure = only.measure if only is not None else ""
    if averages:
        measure = next((view.column.name for view in _measured(found, ranked, only)), "")
    other = mistyped(columns, views, lambda text: listing(text, 40))
    return TableView(
        index,
        found,
        ranked,
        faulty,
        averages,
        query,
        rows,
        series,
        other,
        switches.toon,
        note,
        said,
        measure,
        beside,
        in_means,
    )


def _column_rank(view: ColumnView, tells: bool, table: Table, words: Sequence[str]) -> float:
    """Lower comes first: columns the question names, then filled and telling ones (`tells`: what failed), then ids and
    constants."""
    score = (-4.0 if names_errors(view) else -2.0) if tells else view.nulls / max(1, table.rows) * 4
    if view.distinct <= 1 and not tells:
        score += 3
    if table.rows == 1 and not rank.name_words(view.column.name).isdisjoint(MESSAGES):
        score -= 1  # of an exception what it says
    if view.column.derived and table.kind == "base" and not view.column.typed:
        score += 0.5
    if view.identifier:
        score += 2
    if epoch_unit(view):
        score += 0.5  # who and what, and how much, come before when
    if view.column.name.startswith("resource_") and not names_entities(view):
        score += 2
    if view.same:
        score += 3
    if view.complete and rank.surprise(view.rows - view.nulls, view.distinct, min(n for _, n in view.values)) > 2:
        score -= 1
    if view.column.name == "line" or (view.column.name == "template" and not listed(view)):
        score += 5
    return score - 6 * (not rank.name_words(view.column.name).isdisjoint(words))


def _means(
    found: Profile,
    ranked: Sequence[int],
    words: Sequence[str],
    above: Columns | None,
    name: str,
    only: Kinds | None,
    owner: Owner | None,
) -> Iterable[tuple[str, tuple[str, ...], str]]:
    """(`- mean value by service: `, what is said of each, the column of the groups) for the likeliest measures and
    dimensions; `owner` names the series where they are many."""
    views = [found.views[i] for i in ranked]
    owned = owner is not None and len(owner.names) <= _OWNERS
    groups = [view for view in views if is_dimension(view) or (owned and view.column.name == SERIES)]
    groups = [view for view in groups if view.distinct * 3 <= view.rows]
    numbers = SERIES if above is None else ""  # which list it is tells less than who
    groups.sort(
        key=lambda view: (
            rank.name_words(view.column.name).isdisjoint(words),
            view.column.name == numbers,
            entity_rank(view),
            view.numbered,
        )
    )
    groups = [view for view in groups if not view.same]
    measures = [view for view in views if is_measure(view) and (only is None or view.column.name == only.measure)][:2]
    within = {measure.column.name: metric_of(found.table, views, measure) for measure in measures}
    groups = [*filter(None, within.values()), *groups]
    groups = list({view.column.name: view for view in groups}.values())[:2]
    of = "" if only is None or only.all else f" of {only.name}s"
    for group in groups if only is None or only.rows.any() else ():
        parent, label = (above, name) if group.column.name == SERIES else (None, group.column.name)
        by = f"{quote(parent.table.name)}.{quote(label)}" if parent is not None else quote(label)
        for measure in measures:
            if (within[measure.column.name] or group).column.name != group.column.name:
                continue
            averages = means(found.columns, label, measure.column.name, parent, None if only is None else only.rows)
            if not averages:
                continue
            steady: set[str] = set()
            if owner is not None and group.column.name == SERIES:  # of a series that never changes its mean says all
                steady.update(compress(owner.names, steady_series(found.columns, measure.column.name)))
            for what, said_of in (("mean", False), ("constant", True)):
                of_some = [(name, mean) for name, mean in averages if (name in steady) == said_of]
                some = [f"{listing(name, 40)}={mean_text(mean, measure.low, measure.high)}" for name, mean in of_some]
                if some:
                    yield f"- {what} {quote(measure.column.name)}{of} by {by}: ", tuple(some), group.column.name


def _of_entity(found: Profile, ranked: Sequence[int], asked: Named, only: Kinds | None) -> str:
    """`- host = web-7: 38 rows, mean latency 81.2 (of all 20.3)`: what there is of an entity that is asked for."""
    text = f"- {quote(asked.view.column.name)} = {listing(asked.value, 40)}: {row_count(len(asked.rows))}"
    for view in _measured(found, ranked, only)[:1]:
        if metric_of(found.table, found.views, view) not in (None, asked.view):
            break
        numbers, there = found.columns.floats(view.column.name)
        used = there & np.isfinite(numbers)
        if only is not None:
            used &= only.rows
        some = numbers[asked.rows][used[asked.rows]]
        if len(some):
            # Sums of the largest doubles are beyond doubles, means are not.
            mean, all_of_them = ((each / len(each)).sum() for each in (some, numbers[used]))
            said = [mean_text(float(one), view.low, view.high) for one in (mean, all_of_them)]
            text += f", mean {quote(view.column.name)} {said[0]} (of all {said[1]})"
    return text


def _measured(found: Profile, ranked: Sequence[int], only: Kinds | None) -> list[ColumnView]:
    """The columns of which a mean says something, the likeliest first."""
    views = [found.views[i] for i in ranked]
    if only is not None:
        return [view for view in views if view.column.name == only.measure] if only.rows.any() else []
    return [view for view in views if is_measure(view)]


def _series_name(tables: Sequence[Columns], table: Table) -> tuple[Columns | None, str]:
    """The parent table and its column that names the series, or no table and their number."""
    parent = next((one for one in tables if one.table.name == table.parent), None)
    above = parent.table.columns if parent is not None else ()
    texts = [column.name for column in above if column.type == "VARCHAR" and not column.derived]
    named = [name for name in texts if name == "_key" or not rank.name_words(name).isdisjoint(ENTITIES)]
    return (parent, named[0]) if named else (None, SERIES)


def _series(columns: Columns, parent: Columns | None, name: str, views: Sequence[ColumnView]) -> dict[str, str]:
    """The name of each series by its number, in the order of `coded`, where they are told and no two have the same."""
    if parent is None or not any(view.column.name == SERIES for view in views):
        return {}
    owners, numbers = columns.coded(SERIES)
    first = np.unique(owners, return_index=True)[1]
    above = columns.array(f"parent_{parent.table.name}").to_numpy(zero_copy_only=False)[first]
    names = parent.cells(name, above.tolist())
    if None in names or len(set(names)) < len(names):
        return {}
    return {str(number): text for number, text in zip(numbers.shown(), names, strict=True)}
