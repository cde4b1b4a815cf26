"""What may be said of a table, line by line: its header, columns, means, rows and a query (H14, H15, H18, H24).

A column view is one line: type, distinct count, nulls, range, and its values with their counts or, in order, its first
and last ones. A row view holds rows in table order, cells parted by `|`; its first column is DuckDB's `rowid`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hyve import rank, toon
from hyve.catalog import Column, Table
from hyve.columns import Codes, Columns
from hyve.faults import names_errors, tells_faults
from hyve.fit import COLUMNS, HEAD, MEANS, QUERY, ROWS, Line
from hyve.mistyped import mistyped
from hyve.naming import quote
from hyve.profile import (
    ENTITIES,
    PROFILED,
    SERIES,
    SMALL,
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
    profile,
    told,
)
from hyve.question import Question
from hyve.rowview import MESSAGES, RowView, listing, row_view, show
from hyve.writer import LEGEND

_NAMES = 40
"""So many columns of a table that is told in brief are named."""
_NAMING = 16
"""Of so many columns, those that name who or what the rows are about come before all rows."""
_SAMPLE = 60
_TOGETHER = 24
"""Most columns of one value that share a line: a line is shown as a whole or not at all."""
_COLUMN = 8
"""Tokens that the line of a column has at least."""
_LEFT_OUT = "… for a cell: left out"
_VALUES, _VALUE = 5, 30
"""So many values of a column are told, one more for so many tokens of the budget; of who rows are about all are."""
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
    """A table's views, before it is known how much of them fits. `most`: so many values of a column are told."""

    index: int
    weight: float
    main: bool
    profile: Profile
    ranked: tuple[int, ...]
    means: tuple[str, ...]
    example: str
    rows: RowView | None
    series: dict[str, str]
    mistyped: dict[str, tuple[int, str]]
    most: int
    in_toon: bool

    def lines(self, limit: int) -> list[Line]:
        """The candidate lines but for the rows, with cells of at most `limit` characters."""
        table, views = self.profile.table, self.profile.views
        i, weight = self.index, self.weight
        head = 1000.0 + weight if self.main else weight * 1.35
        parts, _ = self._parts
        lines = [Line(i, HEAD, 0, head, f"## {quote(table.name)}: {_rows(table.rows)}{_join(table)}", parts=parts)]
        alone = {k for k, view in enumerate(views) if table.rows > 1 and (view.same or _one_value(view))}
        if len(alone) < 2:
            alone = {k for k in alone if views[k].same}
        alone -= {k for k in alone if views[k].column.name in self.mistyped or tells_faults(views[k])}
        for place, k in enumerate(k for k in self.ranked if k not in alone):
            named, tells, name = names_entities(views[k]), tells_faults(views[k]), views[k].column.name
            share = 1.3 / (1 + 0.15 * place)
            priority = weight * (1.25 if named and place < _NAMING else max(1.1, share) if tells else share)
            some = min(SMALL, max(_VALUES, self.most)) if place < 12 else _VALUES
            most = SMALL if named or tells else some
            told = _column_line(views[k], most, self.series, self.mistyped.get(name), limit)
            lines.append(Line(i, COLUMNS, k, priority, told, (name,), varied=True))
        for of_entities, share in ((True, 1.25), (False, 0.7)):
            few = [views[k] for k in sorted(alone) if (entity_rank(views[k]) < len(ENTITIES)) == of_entities]
            for text, columns in _alike(few, limit):
                lines.append(Line(i, COLUMNS, len(views), weight * share, text, columns))
        for place, text in enumerate(self.means):
            lines.append(Line(i, MEANS, place, weight * 1.2 / (1 + 0.8 * place), text))
        if self.example:
            lines.append(Line(i, QUERY, 0, weight * 1.1, self.example))
        if self.rows is not None:
            names = ["rowid", *self.rows.columns]
            columns_line = f"[]{{{','.join(names)}}}:" if self.in_toon else "|".join(names)
            notes = (LEGEND["both"],) * self.short() + (_LEFT_OUT,) * self.rows.hides
            lines.append(Line(i, ROWS, -1, 0.0, columns_line, self.rows.names, notes=notes))
            for place, text in enumerate(self.rows.changes):
                lines.append(Line(i, MEANS, place - len(self.rows.changes), weight * 1.28 / (1 + 0.1 * place), text))
        return lines

    def row_lines(self, limit: int) -> Iterator[Line]:
        """The lines of the rows, made one by one, those that matter more first."""
        parts, owners = self._parts
        if self.rows is None:
            return
        for row, share, cells in self.rows.rows:
            if self.in_toon:
                limits = self.rows.limits(row, limit) or (limit,) * len(cells)
                shown = [
                    show(cell, most) if type(cell) is str else cell for cell, most in zip(cells, limits, strict=True)
                ]
                text = f"  {toon.row([row, *shown])}"
            else:
                text = f"{row}|{self.rows.text(row, cells, limit)}"
            yield Line(self.index, ROWS, row, self.weight * share, text, part=int(owners[row]) if parts else -1)

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

    def short(self) -> bool:
        """Whether a head holds what its cells have in common."""
        return self.rows is not None and any(name.endswith("*") or ">" in name for name in self.rows.columns)

    def cuts(self, limit: int) -> bool:
        """Whether a cell is longer than `limit`."""
        if any(len(view.low) > limit for view in self.profile.views if view.distinct == 1 and type(view.low) is str):
            return True
        return self.rows is not None and self.rows.cuts(limit)


@dataclass(frozen=True)
class Brief:
    """A table of which columns are named, and the values of those that tell who or what its rows are about.

    Its rows are told by telemetry relations, or by others that matter more.
    """

    index: int
    weight: float
    naming: float
    table: Table
    entities: tuple[ColumnView, ...]
    note: str = ""

    def lines(self, limit: int) -> list[Line]:
        """The candidate lines."""
        i, weight, table = self.index, self.weight, self.table
        columns = tuple(column.name for column in told(table))
        names = [quote(name) for name in columns]
        more = f", ... ({len(names) - _NAMES} more)" if len(names) > _NAMES else ""
        first = max(weight * 1.1, self.naming if self.entities else 0.0)
        lines = [Line(i, HEAD, 0, first, f"## {quote(table.name)}: {_rows(table.rows)}{_join(table)}{self.note}")]
        lines.append(Line(i, COLUMNS, 0, weight, f"- {', '.join(names[:_NAMES])}{more}", columns))
        for place, view in enumerate(self.entities, 1):
            lines.append(Line(i, COLUMNS, place, self.naming, _column_line(view, SMALL, {}, None), (view.column.name,)))
        return lines

    def row_lines(self, limit: int) -> Iterator[Line]:
        """No row of it is shown."""
        return iter(())

    def cuts(self, limit: int) -> bool:
        """Nor any cell."""
        return False


def _join(table: Table) -> str:
    path = f" (from {table.path})" if table.path not in ("$", "lines") else ""
    return path + (f", {quote('parent_' + table.parent)} = {quote(table.parent)}._id" if table.parent else "")


def table_view(
    tables: Sequence[Columns],
    index: int,
    weight: float,
    question: Question,
    budget: int,
    switches: Switches,
    main: bool = False,
) -> TableView:
    """The candidates of one of the tables."""
    columns = tables[index]
    words = question.words
    table, found = columns.table, profile(columns, max(PROFILED, budget // _COLUMN))
    only = kinds(columns)
    if only is not None and not only.all:
        unlike = {only.measure, *only.parts}
        views = tuple(replace(view, mean=None) if view.column.name in unlike else view for view in found.views)
        found = replace(found, views=views)
    views = found.views
    places = range(len(views))
    ranked = tuple(sorted(places, key=lambda i: (_column_rank(views[i], table, words), i)) if switches.rank else places)
    parent, name = _series_name(tables, table)
    averages = tuple(_mean_lines(found, ranked, words, parent, name, only))
    example = _example(found, ranked, only) if switches.queries else ""
    series = (
        _series(columns, parent, name) if parent is not None and any(v.column.name == SERIES for v in views) else {}
    )
    rows = row_view(found, ranked, question, budget, switches.rank, not switches.toon)
    other = mistyped(columns, views, lambda text: listing(text, 40))
    return TableView(
        index, weight, main, found, ranked, averages, example, rows, series, other, budget // _VALUE, switches.toon
    )


def _column_rank(view: ColumnView, table: Table, words: Sequence[str]) -> float:
    """Lower comes first: columns the question names, then filled and telling ones, then ids and constants."""
    tells = tells_faults(view)
    score = (-4.0 if names_errors(view) else -2.0) if tells else view.nulls / max(1, table.rows) * 4
    if view.distinct <= 1 and not tells:
        score += 3
    if table.rows == 1 and not rank.name_words(view.column.name).isdisjoint(MESSAGES):
        score -= 1  # of an exception what it says
    if view.column.derived and table.kind == "base" and not view.column.typed:
        score += 0.5
    if view.identifier:
        score += 2
    if view.column.name.startswith("resource_") and not names_entities(view):
        score += 2
    if view.same:
        score += 3
    if view.complete and rank.surprise(view.rows - view.nulls, view.distinct, min(n for _, n in view.values)) > 2:
        score -= 1
    if view.column.name == "line" or (view.column.name == "template" and not listed(view)):
        score += 5
    return score - 6 * (not rank.name_words(view.column.name).isdisjoint(words))


def _mean_lines(
    found: Profile, ranked: Sequence[int], words: Sequence[str], above: Columns | None, name: str, only: Kinds | None
) -> Iterable[str]:
    """`mean of value by service: ...` for the likeliest measures and dimensions."""
    views = [found.views[i] for i in ranked]
    groups = [view for view in views if is_dimension(view) and view.distinct * 3 <= view.rows]
    groups.sort(key=lambda view: (rank.name_words(view.column.name).isdisjoint(words), entity_rank(view)))
    groups = [view for view in groups if not view.same]
    measures = [view for view in views if is_measure(view) and (only is None or view.column.name == only.measure)]
    of = "" if only is None or only.all else f" of {only.name}s"
    for group in groups[:2] if only is None or only.rows.any() else ():
        parent, label = (above, name) if group.column.name == SERIES else (None, group.column.name)
        by = f"{quote(parent.table.name)}.{quote(label)}" if parent is not None else quote(label)
        for measure in measures[:2]:
            averages = means(found.columns, label, measure.column.name, parent, None if only is None else only.rows)
            if not averages:
                continue
            said = ", ".join(f"{listing(name, 40)} {mean:.6g}" for name, mean in averages)
            yield f"- mean {quote(measure.column.name)}{of} by {by}: {said}"


def _series_name(tables: Sequence[Columns], table: Table) -> tuple[Columns | None, str]:
    """The parent table and its column that names the series, or no table and their number."""
    parent = next((one for one in tables if one.table.name == table.parent), None)
    above = parent.table.columns if parent is not None else ()
    texts = [column.name for column in above if column.type == "VARCHAR" and not column.derived]
    named = [name for name in texts if name == "_key" or not rank.name_words(name).isdisjoint(ENTITIES)]
    return (parent, named[0]) if named else (None, SERIES)


def _series(columns: Columns, parent: Columns, name: str) -> dict[str, str]:
    """The name of each series by its number, where no two have the same."""
    owners, numbers = columns.coded(SERIES)
    first = np.unique(owners, return_index=True)[1]
    above = columns.array(f"parent_{parent.table.name}").to_numpy(zero_copy_only=False)[first]
    names = parent.cells(name, above.tolist())
    if None in names or len(set(names)) < len(names):
        return {}
    return {str(number): text for number, text in zip(numbers.shown(), names, strict=True)}


def _example(found: Profile, ranked: Sequence[int], only: Kinds | None) -> str:
    """A query over all rows, made from this very schema (H24); none where the table has nothing to group by."""
    views = [found.views[i] for i in ranked]
    group = next((view for view in views if is_dimension(view) and view.distinct * 3 <= view.rows), None)
    if group is None:
        return ""
    number = next(filter(is_measure, views), None)
    label, where = quote(group.column.name), ""
    if only is not None and not only.all:
        number = next((view for view in views if view.column.name == only.measure), None) if only.rows.any() else None
        where = f" WHERE {quote(only.column)} = '{only.name}'" if number is not None else ""
    measure = f", avg({quote(number.column.name)}) AS mean" if number is not None else ""
    table = quote(found.table.name)
    return f"SELECT {label}, count(*) AS n{measure} FROM {table}{where} GROUP BY {label} ORDER BY n DESC LIMIT 10"


def _one_value(view: ColumnView) -> bool:
    return view.distinct <= 1 and not view.odd


def _alike(views: Sequence[ColumnView], limit: int) -> Iterable[tuple[str, tuple[str, ...]]]:
    """(line, columns) of the columns that take few words: of one value, empty, or the same as another."""
    groups: dict[str, dict[str, list[Column]]] = {}
    for view in views:
        if view.same:
            label, value = "the same", quote(view.same)
        elif not view.distinct:
            label, value = "all empty", ""
        else:
            label, value = f"one value, {view.nulls:,} empty" if view.nulls else "constant", _item(view, limit)
        groups.setdefault(label, {}).setdefault(value, []).append(view.column)
    for label, values in groups.items():
        texts: list[str] = []
        columns: list[str] = []
        for value, alike in values.items():
            for start in range(0, len(alike), _TOGETHER):
                some = [column.name for column in alike[start : start + _TOGETHER]]
                names = [quote(name) for name in some]
                texts.append(" = ".join([*names, value]) if value else ", ".join(names))
                columns += some
                if len(columns) >= _TOGETHER:
                    yield f"- {label}: {', '.join(texts)}", tuple(columns)
                    texts, columns = [], []
        if texts:
            yield f"- {label}: {', '.join(texts)}", tuple(columns)


def _item(view: ColumnView, limit: int) -> str:
    """The one value of a column among others."""
    value = _only(view)
    return listing(value, limit) if view.column.type == "VARCHAR" else show(value, limit)


def _only(view: ColumnView) -> Any:
    return view.values[0][0] if view.values else view.low


def _column_line(
    view: ColumnView, most: int, series: dict[str, str], mistyped: tuple[int, str] | None, limit: int = 60
) -> str:
    """A column's line; `series` names the numbers of series, `mistyped` tells its texts that have no number or time."""
    head = f"- {quote(view.column.name)} {view.column.type}"
    texts, other = mistyped or (0, "")
    nulls = other + (f", {view.nulls - texts:,} empty" if view.nulls > texts else "")
    nulls += f", {view.odd:,} NaN or infinite" if view.odd else ""
    if view.distinct == 0:
        return f"{head}: {nulls[2:]}" if texts else f"{head}: all empty"
    if view.distinct == 1:
        return f"{head} = {show(_only(view), limit)}{nulls}"
    span = "" if view.low is None else f"{show(view.low)}..{show(view.high)}"
    mean = "" if view.mean is None else f", mean {view.mean:.6g}"
    if listed(view):
        counts = {count for _, count in view.values}
        each = f", {_rows(counts.pop())} each" if len(counts) == 1 and view.complete else ""
        names = series if view.column.name == SERIES else {}
        shown = [f"{value} = {names[value]}" if value in names else value for value, _ in view.values[:most]]
        named = [
            listing(text) if each else f"{listing(text)} {count:,}"
            for text, (_, count) in zip(shown, view.values[:most], strict=True)
        ]
        more = f", ... ({view.distinct - len(named):,} more)" if view.distinct > len(named) else ""
        return f"{head}: {view.distinct} values{each}{mean}{nulls}: {', '.join(named)}{more}"
    edge = ""
    filled = view.rows - view.nulls
    short = all(len(str(value)) <= _SAMPLE for value in view.samples)  # the first and last rows show longer ones
    if len(view.samples) == 5 and filled > 5 and short and not view.time and view.step is None:
        first, last = ([listing(value, 40) for value in part] for part in (view.samples[:3], view.samples[3:]))
        edge = f", in order: {', '.join(first)}, ... ({filled - 5:,} more rows), {', '.join(last)}"
    if not view.numeric and not view.time:
        span = ""
    step = ""
    if view.step is not None:
        unit = " s" if view.time else ""
        step = f", every {view.step.size:g}{unit}" + (
            f" but for {view.step.gaps} gap{'s' * (view.step.gaps > 1)}" if view.step.gaps else ""
        )
        mean = ""
    return f"{head}: {view.distinct:,} distinct{', ' + span if span else ''}{step}{mean}{nulls}{edge}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
