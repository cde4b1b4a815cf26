"""Store -> excerpt: column and row views of every table, cut to a hard token budget (H14-H20).

Rules:
- What fits is shown whole, in its cheapest lossless form.
- What does not fit is cut with a count: totals in headers are of all rows, computed in SQL, and a table that shows
  fewer rows than it has ends in `... (762 more rows)`.
- A line is taken before another by its priority alone, so a larger budget only adds. What stands out or was asked for
  goes before what is usual; the tables that the relations were made from come last.
- No budget is left unused while something is cut: then more rows, more tables and longer cells are shown.
- Same store, same question, same budget: same bytes.

A column view is one line: type, distinct count, nulls, range, and its values with their counts or, in order, its first
and last ones. A row view holds rows in table order, cells parted by `|`; its first column is DuckDB's `rowid`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hyve import notation, rank
from hyve.fit import COLUMNS, HEAD, MEANS, QUERY, ROWS, Line, fit
from hyve.naming import quote
from hyve.profile import (
    ENTITIES,
    SERIES,
    SMALL,
    ColumnView,
    Profile,
    entity_rank,
    free_text,
    is_dimension,
    is_measure,
    means,
    names_entities,
    profile,
    told,
)
from hyve.rowview import RowView, row_view, show
from hyve.store import Datastore, Table
from hyve.tokens import count_tokens

_DETAILED = 12
_MAIN, _ROOMY = 3, 1_200
"""So many tables have a place before anything is said of the others; with fewer tokens than that, it is one, which also
gets most of them, and cells are shorter."""
_CELLS = (60, 160, 640, 2_560, 10_240)
_SLACK = 0.04
"""The share of the budget that may stay unused while something is cut."""


@dataclass(frozen=True)
class Excerpt:
    """The data section of a prompt. `cut` says whether anything of the data is not in it."""

    text: str
    cut: bool


@dataclass(frozen=True)
class _TableView:
    """A table's views, before it is known how much of them fits."""

    index: int
    weight: float
    main: bool
    profile: Profile
    ranked: tuple[int, ...]
    means: tuple[str, ...]
    rows: RowView | None

    def lines(self, limit: int) -> list[Line]:
        """The candidate lines, with cells of at most `limit` characters."""
        table, views = self.profile.table, self.profile.views
        i, weight = self.index, self.weight
        head = 1000.0 + weight if self.main else weight * 1.35
        lines = [Line(i, HEAD, 0, head, f"## {table.name}: {table.rows:,} rows{_join(table)}")]
        alike = {k for k, v in enumerate(views) if v.distinct <= 1 and v.nulls in (0, v.rows) and not v.odd}
        if table.rows == 1 or len(alike) < 2:
            alike = set()
        for place, k in enumerate(k for k in self.ranked if k not in alike):
            priority = weight * 1.3 / (1 + 0.15 * place)
            most = SMALL if place < 12 or names_entities(views[k]) else 5
            lines.append(Line(i, COLUMNS, k, priority, _column_line(views[k], most), 1))
        for said, label in ((_constant, "constant"), (_empty, "all empty")):
            texts = [text for k in sorted(alike) if (text := said(views[k]))]
            if texts:
                line = f"- {label}: {', '.join(texts)}"
                lines.append(Line(i, COLUMNS, len(views), weight * 0.7, line, len(texts)))
        for place, text in enumerate(self.means):
            lines.append(Line(i, MEANS, place, weight * 1.2 / (1 + 0.8 * place), text))
        example = _example(self.profile, self.ranked)
        if example:
            lines.append(Line(i, QUERY, 0, weight * 1.1, example))
        if self.rows is not None:
            lines.append(Line(i, ROWS, -1, weight * 1.15, "rowid|" + "|".join(self.rows.columns)))
            for row, share, cells in self.rows.rows:
                text = f"{row}|" + "|".join(show(cell, limit) for cell in cells)
                lines.append(Line(i, ROWS, row, weight * share, text))
        return lines

    def cuts(self, limit: int) -> bool:
        """Whether a cell is longer than `limit`."""
        return self.rows is not None and any(
            isinstance(cell, str) and len(cell) > limit for _, _, cells in self.rows.rows for cell in cells
        )


def excerpt(store: Datastore, query: str, budget: int) -> Excerpt:
    """The data of `store` for a question, in at most `budget` tokens."""
    whole = _whole(store, budget)
    if whole is not None:
        return Excerpt(whole, False)
    tables = store.catalog.tables
    words = rank.terms(f"{query} {_slim(store)}")
    weights = _weights(tables, words)
    ranked = sorted(range(len(tables)), key=lambda i: (-weights[i], i))
    detailed = [i for i in ranked[:_DETAILED] if not tables[i].source]
    named = [i for i in ranked[:_DETAILED] if tables[i].source]
    pending = [i for i in ranked if i not in detailed]
    main = detailed[: _MAIN if budget >= _ROOMY else 1]
    if budget < _ROOMY:
        weights = [weight * 2 if i in main else weight for i, weight in enumerate(weights)]
    views = [_table_view(store, tables[i], i, weights[i], words, budget, i in main) for i in detailed]
    cells = _CELLS[1 if budget >= _ROOMY else 0 :]
    best = fit(_lines(views, named, tables, weights, cells[0]), tables, _rest(pending, named), budget)
    while pending and best.unused > budget * _SLACK:
        taken = pending.pop(0)
        named = [i for i in named if i != taken]
        views.append(_table_view(store, tables[taken], taken, weights[taken], words, budget))
        best = fit(_lines(views, named, tables, weights, cells[0]), tables, _rest(pending, named), budget)
    for shorter, limit in pairwise(cells):
        if best.unused <= budget * _SLACK or not any(view.cuts(shorter) for view in views):
            break
        longer = fit(_lines(views, named, tables, weights, limit), tables, _rest(pending, named), budget)
        if longer.lines < best.lines:
            break
        best = longer
    return Excerpt(best.text, True)


def _lines(
    views: Sequence[_TableView], named: Sequence[int], tables: Sequence[Table], weights: Sequence[float], limit: int
) -> list[Line]:
    lines = [line for view in views for line in view.lines(limit)]
    return lines + [line for i in named for line in _source_lines(tables[i], i, weights[i])]


def _rest(pending: Sequence[int], named: Sequence[int]) -> list[int]:
    return sorted(i for i in pending if i not in named)


def schema(store: Datastore, budget: int) -> str:
    """The tables with their columns in one line of at most `budget` tokens, for data that is shown whole."""
    named = ""
    for table in store.catalog.tables:
        columns = [quote(column.name) for column in told(table)]
        more = ", ..." if len(columns) > 12 else ""
        longer = f"{named}; " if named else "SQL tables: "
        longer += f"{quote(table.name)}({', '.join(columns[:12])}{more})"
        if count_tokens(longer) > budget:
            break
        named = longer
    return named


def _slim(store: Datastore) -> str:
    """The text of what stands alone (H17): the fields of tables of one row."""
    texts = []
    for table in store.catalog.tables:
        columns = [quote(c.name) for c in told(table) if c.type == "VARCHAR"][:20]
        if table.rows == 1 and columns and table.kind == "base" and not free_text(table):
            ((text,),) = store.fetch(f"SELECT left(concat_ws(' ', {', '.join(columns)}), 400) FROM {quote(table.name)}")
            texts.append(text)
        if len(texts) == 4:
            break
    return " ".join(texts)


def _whole(store: Datastore, budget: int) -> str | None:
    """All data in its cheapest lossless form, or None where that is over the budget."""
    sections, number = [], 0
    for source in store.sources:
        if len(source.text) > budget * 24 + 4096:
            return None
        forms = [source.text.strip()]
        if source.syntaxes and "lines" not in source.syntaxes:
            values = [store.reconstruct(i) for i in range(number, number + len(source.syntaxes))]
            told = f"{source.prose.strip()}\n" if source.prose.strip() else ""
            forms.append(told + notation.encode(values))
        number += len(source.syntaxes)
        best = min(forms, key=count_tokens)
        sections.append(f"{source.name}:\n{best}" if source.name and len(store.sources) > 1 else best)
    text = "\n\n".join(sections)
    return text if count_tokens(text) <= budget else None


def _weights(tables: Sequence[Table], words: Sequence[str]) -> list[float]:
    """How much each table matters: by size, by the question's words in its names, relations before their source."""
    weights = []
    for table in tables:
        weight = 1.0 + math.log1p(table.rows)
        if table.kind == "relation" or free_text(table):
            weight = max(weight, 6.0)  # a single alert, or what somebody wrote, matters as much as many spans
        named = set(rank.words(table.name)) | {w for column in table.columns[:200] for w in rank.words(column.name)}
        weight *= 1.0 + 0.25 * min(4, len(named.intersection(words)))
        if table.name == "container_logs" and any(other.name == "log_records" for other in tables):
            weight *= 0.5  # the same lines
        if table.source:  # its content is (most likely) told again, and better, by the telemetry relations
            weight *= 0.15
        weights.append(weight)
    return weights


def _source_lines(table: Table, index: int, weight: float) -> Iterable[Line]:
    """A table that telemetry relations were made from: its columns are named, its rows are not shown twice."""
    names = [quote(column.name) for column in told(table)]
    more = f", ... ({len(names) - 40} more)" if len(names) > 40 else ""
    yield Line(index, HEAD, 0, weight * 1.1, f"## {table.name}: {table.rows:,} rows{_join(table)}, as received")
    yield Line(index, COLUMNS, 0, weight, f"- {', '.join(names[:40])}{more}", len(names))


def _join(table: Table) -> str:
    path = f" (from {table.path})" if table.path not in ("$", "lines") else ""
    return path + (f", parent_{table.parent} = {table.parent}._id" if table.parent else "")


def _table_view(
    store: Datastore, table: Table, index: int, weight: float, words: Sequence[str], budget: int, main: bool = False
) -> _TableView:
    found = profile(store, table)
    views = found.views
    ranked = tuple(sorted(range(len(views)), key=lambda i: (_column_rank(views[i], table, words), i)))
    averages = tuple(_mean_lines(store, found, ranked, words))
    return _TableView(index, weight, main, found, ranked, averages, row_view(store, found, ranked, words, budget))


def _column_rank(view: ColumnView, table: Table, words: Sequence[str]) -> float:
    """Lower comes first: columns the question names, then filled and telling ones, then ids and constants."""
    score = view.nulls / max(1, table.rows) * 4
    if view.distinct <= 1:
        score += 3
    if view.column.derived and table.kind == "base" and not view.column.typed:
        score += 0.5
    if view.identifier:
        score += 2
    if view.column.name.startswith("resource_") and not names_entities(view):
        score += 2
    if view.column.name == "line" or (view.column.name == "template" and _once(view)):
        score += 5
    return score - 6 * bool(set(rank.words(view.column.name)).intersection(words))


def _mean_lines(store: Datastore, found: Profile, ranked: Sequence[int], words: Sequence[str]) -> Iterable[str]:
    """`mean of value by service: ...` for the likeliest measures and dimensions."""
    views = [found.views[i] for i in ranked]
    groups = [view for view in views if is_dimension(view) and view.distinct * 3 <= view.rows]
    groups.sort(key=lambda view: (not set(rank.words(view.column.name)).intersection(words), entity_rank(view)))
    groups = list({view.values: view for view in reversed(groups)}.values())[::-1]  # two columns may say the same
    measures = [view for view in views if is_measure(view)]
    for group in groups[:2]:
        parent, label = "", group.column.name
        if label == SERIES:
            parent, label = _series_name(store, found.table)
        by = f"{quote(parent)}.{quote(label)}" if parent else quote(label)
        for measure in measures[:2]:
            averages = means(store, found.table, label, measure.column, parent)
            if not averages:
                continue
            said = ", ".join(f"{show(name, 40)} {mean:.6g}" for name, mean in averages)
            yield f"- mean {quote(measure.column.name)} by {by}: {said}"


def _series_name(store: Datastore, table: Table) -> tuple[str, str]:
    """The parent table and its column that names the series, or no table and their number."""
    parent = store.catalog.table(table.parent or "")
    texts = [c.name for c in parent.columns if c.type == "VARCHAR" and not c.derived] if parent is not None else []
    named = [name for name in texts if name == "_key" or set(rank.words(name)).intersection(ENTITIES)]
    return (table.parent or "", named[0]) if named else ("", SERIES)


def _example(found: Profile, ranked: Sequence[int]) -> str:
    """A query over all rows, made from this very schema (H24); none where the table has nothing to group by."""
    views = [found.views[i] for i in ranked]
    group = next((view for view in views if is_dimension(view) and view.distinct * 3 <= view.rows), None)
    if group is None:
        return ""
    number = next(filter(is_measure, views), None)
    label = quote(group.column.name)
    measure = f", avg({quote(number.column.name)}) AS mean" if number is not None else ""
    table = quote(found.table.name)
    return f"SELECT {label}, count(*) AS n{measure} FROM {table} GROUP BY {label} ORDER BY n DESC LIMIT 10"


def _constant(view: ColumnView) -> str:
    return f"{quote(view.column.name)} = {show(_only(view))}" if view.distinct else ""


def _empty(view: ColumnView) -> str:
    return "" if view.distinct else quote(view.column.name)


def _only(view: ColumnView) -> Any:
    return view.values[0][0] if view.values else view.low


def _column_line(view: ColumnView, most: int) -> str:
    head = f"- {quote(view.column.name)} {view.column.type}"
    nulls = f", {view.nulls:,} empty" if view.nulls else ""
    nulls += f", {view.odd:,} NaN or infinite" if view.odd else ""
    if view.distinct == 0:
        return f"{head}: all empty"
    if view.distinct == 1:
        return f"{head} = {show(_only(view))}{nulls}"
    span = "" if view.low is None else f"{show(view.low)}..{show(view.high)}"
    mean = "" if view.mean is None or view.column.name == SERIES else f", mean {view.mean:.6g}"
    if view.values and not _once(view):
        counts = {count for _, count in view.values}
        each = f", {counts.pop():,} rows each" if len(counts) == 1 and view.complete else ""
        named = [show(value) if each else f"{show(value)} {count:,}" for value, count in view.values[:most]]
        more = f", ... ({view.distinct - len(named):,} more)" if view.distinct > len(named) else ""
        return f"{head}: {view.distinct} values{each}{mean}{nulls}: {', '.join(named)}{more}"
    edge = ""
    filled = view.rows - view.nulls
    if len(view.samples) == 5 and filled > 5 and not view.time and view.step is None:
        first, last = ([show(value, 40) for value in part] for part in (view.samples[:3], view.samples[3:]))
        edge = f", in order: {', '.join(first)}, ... ({filled - 5:,} more rows), {', '.join(last)}"
    if not view.numeric and not view.time:
        span = ""
    step = ""
    if view.step is not None:
        unit = " s" if view.time else ""
        step = f", every {view.step.size:g}{unit}" + (f" but for {view.step.gaps} gaps" if view.step.gaps else "")
        mean = ""
    return f"{head}: {view.distinct:,} distinct{', ' + span if span else ''}{step}{mean}{nulls}{edge}"


def _once(view: ColumnView) -> bool:
    """Whether a column's values are long and each stands in one row, so that the rows say it all."""
    return all(count == 1 for _, count in view.values) and any(len(value) > 40 for value, _ in view.values)


__all__ = ["Excerpt", "RowView", "excerpt", "schema"]
