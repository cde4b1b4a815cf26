"""Store -> excerpt: column and row views of every table, cut to a hard token budget (H14-H20).

Rules:
- What fits is shown whole, in the cheaper of the source's own text and compact JSON.
- What does not fit is cut with a count: totals in headers are of all rows, computed in SQL, and a table that shows
  fewer rows than it has ends in `... (762 more rows)`.
- A line is shown before another by its priority alone, so a larger budget only adds lines.
- Same store, same question, same budget: same bytes.

A column view is one line: type, distinct count, nulls, range, and its values with their counts or, in order, its first
and last ones. A row view holds rows in table order, cells parted by `|`; its first column is DuckDB's `rowid`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hyve import rank
from hyve.shape import dump
from hyve.store import MASK, Column, Datastore, Table, quote
from hyve.tokens import count_tokens

_DETAILED, _PROFILED, _ROW_COLUMNS = 12, 80, 14
_CELL, _CANDIDATES, _PER_TEMPLATE = 160, 60, 2
_NUMERIC = re.compile(r"(TINY|SMALL|BIG|HUGE|U\w*)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnView:
    """What is said of a column: `values` are (value, rows) of a small dimension, largest first.

    `low`, `high` and `mean` are of the finite values; `odd` counts the others (NaN and infinities).
    """

    column: Column
    distinct: int
    nulls: int
    low: Any
    high: Any
    mean: float | None
    odd: int
    values: tuple[tuple[Any, int], ...]
    samples: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        """Whether its values can be averaged."""
        return bool(_NUMERIC.fullmatch(self.column.type))


@dataclass(frozen=True)
class RowView:
    """Rows of a table: (rowid, cells of `columns`), those that deserve a place most first."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Excerpt:
    """The data section of a prompt. `cut` says whether anything of the data is not in it."""

    text: str
    cut: bool


@dataclass
class _Line:
    """A candidate line: where it stands, how much it matters, how many columns it describes, what it costs."""

    table: int
    section: int
    order: int
    priority: float
    text: str
    columns: int = 0
    cost: int = 0


def excerpt(store: Datastore, query: str, budget: int) -> Excerpt:
    """The data of `store` for a question, in at most `budget` tokens."""
    whole = _whole(store, budget)
    if whole is not None:
        return Excerpt(whole, False)
    words = rank.terms(query)
    tables = store.catalog.tables
    related = any(map(_is_relation, tables))
    weights = _weights(tables, related, words)
    ranked = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    lines: list[_Line] = []
    for i in sorted(ranked[:_DETAILED]):
        if _is_source(tables[i], related):
            lines += _source_lines(tables[i], i, weights[i])
        else:
            lines += _table_lines(store, tables[i], i, weights[i], words)
    rest = sorted(ranked[_DETAILED:])
    return Excerpt(_fit(lines, tables, rest, budget), True)


def _whole(store: Datastore, budget: int) -> str | None:
    """All data in its cheapest lossless form, or None where that is over the budget."""
    sections = []
    for document in store.documents:
        if len(document.text) > budget * 24 + 4096:
            return None
        forms = [document.text.strip()]
        if document.parts and all(part.syntax in ("json", "python") for part in document.parts):
            compact = "\n".join(dump_readable(part.value) for part in document.parts)
            forms.append(f"{document.prose.strip()}\n{compact}" if document.prose.strip() else compact)
        best = min(forms, key=count_tokens)
        sections.append(f"{document.name}:\n{best}" if document.name and len(store.documents) > 1 else best)
    text = "\n\n".join(sections)
    return text if count_tokens(text) <= budget else None


def dump_readable(value: Any) -> str:
    """Compact JSON that keeps non-ASCII text readable, and objects with repeated keys whole."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8").decode()
    except (TypeError, UnicodeEncodeError):
        return dump(value)


def _weights(tables: Sequence[Table], related: bool, words: Sequence[str]) -> list[float]:
    """How much each table matters: by size, by the question's words in its names, relations before their source."""
    weights = []
    for table in tables:
        weight = 1.0 + math.log1p(table.rows)
        if _is_relation(table) or _is_free_text(table):
            weight = max(weight, 6.0)  # a single alert, or what somebody wrote, matters as much as many spans
        named = set(rank.words(table.name)) | {w for column in table.columns[:200] for w in rank.words(column.name)}
        weight *= 1.0 + 0.25 * min(4, len(named.intersection(words)))
        if _is_source(table, related):
            weight *= 0.15
        weights.append(weight)
    return weights


def _is_relation(table: Table) -> bool:
    return table.kind == "relation"


def _is_source(table: Table, related: bool) -> bool:
    """Whether the table's content is (most likely) told again, and better, by the telemetry relations."""
    return related and not _is_relation(table) and not _is_free_text(table)


def _is_free_text(table: Table) -> bool:
    return [column.name for column in table.columns] == ["_row_id", "line", "text", "template"]


def _source_lines(table: Table, index: int, weight: float) -> Iterator[_Line]:
    """A table that telemetry relations were made from: its columns are named, its rows are not shown twice."""
    names = [quote(column.name) for column in table.columns if not _structural(column)]
    more = f", ... ({len(names) - 40} more)" if len(names) > 40 else ""
    yield _Line(index, 0, 0, 500.0 + weight, f"## {table.name}: {table.rows:,} rows{_join(table)}, as received")
    yield _Line(index, 1, 0, weight, f"- {', '.join(names[:40])}{more}", len(names))


def _join(table: Table) -> str:
    path = f" (from {table.path})" if table.path != "$" else ""
    return path + (f", parent_{table.parent} = {table.parent}._id" if table.parent else "")


def _structural(column: Column) -> bool:
    return column.path == "" and (column.name in ("_id", "_row_id", "series_idx") or column.name.startswith("parent_"))


def _profile(store: Datastore, table: Table) -> list[ColumnView]:
    columns = [column for column in table.columns if not _structural(column)][:_PROFILED]
    if not columns or not table.rows:
        return []
    name = quote(table.name)
    parts = []
    for column in columns:
        label = quote(column.name)
        numeric, nested = _NUMERIC.fullmatch(column.type), column.type.endswith("[]")
        finite = f" FILTER (isfinite({label}::DOUBLE))" if numeric else ""
        mean = f"avg({label}::DOUBLE){finite}" if numeric else "NULL"
        odd = f"count(*) FILTER (NOT isfinite({label}::DOUBLE))" if numeric else "0"
        low, high = ("NULL" if nested else _text(f"{edge}({label}){finite}", column) for edge in ("min", "max"))
        parts.append(f"count(DISTINCT {label}), count({label}), {low}, {high}, {mean}, {odd}")
    (figures,) = store.fetch(f"SELECT {', '.join(parts)} FROM {name}")
    views = []
    for i, column in enumerate(columns):
        distinct, filled, low, high, mean, odd = figures[6 * i : 6 * i + 6]
        label = _text(quote(column.name), column)
        values: list[tuple[Any, int]] = []
        samples: list[Any] = []
        telling = column.name == "template" or (
            distinct <= 30 and (distinct <= 12 or not _NUMERIC.fullmatch(column.type))
        )
        if distinct and telling:
            values = [
                (value, count)
                for value, count in store.fetch(
                    f"SELECT {label}, count(*) FROM {name} WHERE {quote(column.name)} IS NOT NULL"
                    " GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 20"
                )
            ]
        elif distinct:
            some = f"SELECT rowid AS r, {label} AS v FROM {name} WHERE {quote(column.name)} IS NOT NULL"
            edges = store.fetch(f"({some} ORDER BY r LIMIT 3) UNION (({some} ORDER BY r DESC LIMIT 2)) ORDER BY 1")
            samples = [value for _, value in edges]
        views.append(
            ColumnView(column, distinct, table.rows - filled, low, high, mean, odd, tuple(values), tuple(samples))
        )
    return views


def _text(expression: str, column: Column) -> str:
    """SQL that shows a value as JSON-like text: times to the digit, everything else as it is."""
    return f"({expression})::VARCHAR" if "TIME" in column.type or "DATE" in column.type else expression


def _table_lines(store: Datastore, table: Table, index: int, weight: float, words: Sequence[str]) -> Iterator[_Line]:
    profile = _profile(store, table)
    yield _Line(index, 0, 0, 1000.0 + weight, f"## {table.name}: {table.rows:,} rows{_join(table)}")
    ranked = sorted(range(len(profile)), key=lambda i: (_column_rank(profile[i], table, words), i))
    for place, i in enumerate(ranked):
        line = _column_line(profile[i], table.rows, 20 if place < 8 else 5)
        yield _Line(index, 1, i, weight * 1.3 / (1 + 0.15 * place), line, 1)
    example = _example(table, profile, ranked)
    if example:
        yield _Line(index, 3, 0, weight * 1.1, example)
    rows = _row_view(store, table, profile, ranked, words)
    if rows is None:
        return
    yield _Line(index, 2, -1, weight * 1.05, "rowid|" + "|".join(rows.columns))
    for place, (row, cells) in enumerate(rows.rows):
        yield _Line(index, 2, row, weight / (1 + 0.12 * place), f"{row}|" + "|".join(cells))


def _example(table: Table, profile: list[ColumnView], ranked: list[int]) -> str:
    """A query over all rows, made from this very schema (H24); none where the table has nothing to group by."""
    views = [profile[i] for i in ranked]
    group = next((view for view in views if 1 < view.distinct <= 50 and view.column.type == "VARCHAR"), None)
    if group is None or table.rows < 3:
        return ""
    number = next((view for view in views if view.numeric and view.distinct > 12), None)
    label = quote(group.column.name)
    measure = f", avg({quote(number.column.name)}) AS mean" if number is not None else ""
    return f"SELECT {label}, count(*) AS n{measure} FROM {quote(table.name)} GROUP BY {label} ORDER BY n DESC LIMIT 10"


def _column_rank(view: ColumnView, table: Table, words: Sequence[str]) -> float:
    """Lower comes first: columns the question names, then filled and telling ones, then ids and constants."""
    score = view.nulls / max(1, table.rows) * 4
    if view.distinct <= 1:
        score += 3
    if view.column.derived and table.kind == "base":
        score += 0.5
    if _is_id(view, table.rows):
        score += 2
    if view.column.name.startswith("resource_"):
        score += 2
    return score - 6 * bool(set(rank.words(view.column.name)).intersection(words))


def _is_id(view: ColumnView, rows: int) -> bool:
    sample = next((value for value in view.samples if isinstance(value, str)), "")
    return view.distinct > max(20, rows // 4) and bool(re.fullmatch(r"[0-9a-fA-F-]{12,}|[A-Za-z0-9+/=_-]{20,}", sample))


def _column_line(view: ColumnView, rows: int, most: int) -> str:
    head = f"- {quote(view.column.name)} {view.column.type}"
    nulls = f", {view.nulls:,} empty" if view.nulls else ""
    nulls += f", {view.odd:,} NaN or infinite" if view.odd else ""
    if view.distinct == 0:
        return f"{head}: all empty"
    if view.distinct == 1:
        only = view.values[0][0] if view.values else view.low
        return f"{head} = {_show(only)}{nulls}"
    span = "" if view.low is None else f"{_show(view.low)}..{_show(view.high)}"
    mean = "" if view.mean is None else f", mean {view.mean:.6g}"
    if view.values:
        named = [f"{_show(value)} {count:,}" for value, count in view.values[:most]]
        more = f", ... ({view.distinct - len(named):,} more)" if view.distinct > len(named) else ""
        return f"{head}: {view.distinct} values{mean}{nulls}: {', '.join(named)}{more}"
    edge = ""
    filled = rows - view.nulls
    if len(view.samples) == 5 and filled > 5 and "TIME" not in view.column.type:
        first, last = ([_show(value, 40) for value in part] for part in (view.samples[:3], view.samples[3:]))
        edge = f": {', '.join(first)}, ... ({filled - 5:,} more), {', '.join(last)}"
    if not view.numeric and "TIME" not in view.column.type:
        span = ""
    return f"{head}: {view.distinct:,} distinct{', ' + span if span else ''}{mean}{nulls}{edge}"


def _show(value: Any, limit: int = 60) -> str:
    if value is None:
        return ""
    if value == "":
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, float) else str(value)
    text = json.dumps(text, ensure_ascii=False)[1:-1].replace("|", "\\|") if not text.isalnum() else text
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else f"{text[:limit]}…(+{len(text) - limit} chars)"


def _row_view(
    store: Datastore, table: Table, profile: list[ColumnView], ranked: list[int], words: Sequence[str]
) -> RowView | None:
    """The rows worth showing, best first."""
    if table.rows == 1:
        return None  # the column views say it all
    keep = [
        i
        for i in ranked
        if profile[i].distinct > 1
        and not (_is_id(profile[i], table.rows) and len(profile) > 6)
        and profile[i].column.name != "template"  # the text itself is shown
    ]
    picked = sorted(keep[:_ROW_COLUMNS])
    if not picked:
        return None
    order = _candidates(store, table, profile, words)
    same_day = {
        i: view.low[:10]
        for i, view in enumerate(profile)
        if "TIMESTAMP" in view.column.type and view.low and view.low[:10] == view.high[:10]
    }
    labels = [_text(quote(profile[i].column.name), profile[i].column) for i in picked]
    wanted = ", ".join(map(str, order))
    fetched = {
        row[0]: row[1:]
        for row in store.fetch(f"SELECT rowid, {', '.join(labels)} FROM {quote(table.name)} WHERE rowid IN ({wanted})")
    }
    seen: dict[str, int] = {}
    first: list[tuple[int, tuple[str, ...]]] = []
    later: list[tuple[int, tuple[str, ...]]] = []
    for row in order:
        cells = tuple(
            _show(value[11:] if i in same_day and isinstance(value, str) else value, _CELL)
            for i, value in zip(picked, fetched[row], strict=True)
        )
        template = re.sub(MASK, "#", "|".join(cells))
        seen[template] = seen.get(template, 0) + 1
        (first if seen[template] <= _PER_TEMPLATE else later).append((row, cells))
    columns = tuple(
        f"{profile[i].column.name} ({same_day[i]})" if i in same_day else profile[i].column.name for i in picked
    )
    return RowView(columns, tuple(first + later))


def _candidates(store: Datastore, table: Table, profile: list[ColumnView], words: Sequence[str]) -> list[int]:
    """Row numbers in the order in which they deserve a place: rare, asked for, first and last, then evenly spread."""
    rows = table.rows
    name = quote(table.name)
    small = [view for view in profile if 2 <= view.distinct <= min(50, max(2, rows // 4))]
    categories = [quote(view.column.name) for view in small if not view.column.type.endswith("[]")][:12]
    texts = [
        quote(view.column.name)
        for view in profile
        if view.column.type == "VARCHAR" and view.distinct > 50 and not _is_id(view, rows)
    ][:3]
    numbers = [quote(view.column.name) for view in profile if view.numeric and view.distinct > 12][:8]
    series: list[str] = []
    size = 1
    for view in sorted(small, key=lambda view: (view.column.name not in ("name", "service", "metric"), view.distinct)):
        if view.column.type == "VARCHAR" and size * view.distinct * 8 <= rows and len(series) < 3:
            series.append(quote(view.column.name))
            size *= view.distinct
    rare = [
        row
        for row, score in store.fetch(
            f"{rank.rarity(name, categories, texts, numbers, series, MASK)} LIMIT {_CANDIDATES}"
        )
        if score and score > 0
    ]
    asked = _asked(store, table, words)
    edges = [row for row in (0, rows - 1, 1, rows - 2) if 0 <= row < rows]
    step = max(1, rows // (2 * _CANDIDATES))
    spread = list(range(0, rows, step))
    order: list[int] = edges[:2]
    for i in range(max(len(rare), len(asked))):
        order += rare[i : i + 1] + asked[i : i + 1]
    return list(dict.fromkeys(order + edges + spread))


def _asked(store: Datastore, table: Table, words: Sequence[str]) -> list[int]:
    """Rows by BM25 against the question; rows that share no word with it score nothing and are not read."""
    columns = [quote(c.name) for c in table.columns if c.type.startswith("VARCHAR") and not _structural(c)][:40]
    if not columns or not words:
        return []
    text = f"concat_ws(' ', {', '.join(f'{column}::VARCHAR' for column in columns)})"
    pattern = "|".join(re.escape(word).replace("'", "''") for word in words)
    found = store.fetch(
        f"SELECT rowid, left({text}, 2000) FROM {quote(table.name)}"
        f" WHERE regexp_matches({text}, '{pattern}', 'i') ORDER BY rowid LIMIT 2000"
    )
    scores = rank.bm25(words, [text for _, text in found])
    best = sorted(range(len(found)), key=lambda i: (-scores[i], found[i][0]))
    return [found[i][0] for i in best[:_CANDIDATES] if scores[i] > 0]


def _fit(lines: list[_Line], tables: Sequence[Table], rest: list[int], budget: int) -> str:
    """The lines of highest priority that fit, in reading order, with the counts of what was left out."""
    for line in lines:
        line.cost = count_tokens(line.text) + 1
    lines.sort(key=lambda line: (-line.priority, line.table, line.section, line.order))
    kept: list[_Line] = []
    headed: set[int] = set()
    most = _names_that_fit(tables, range(len(tables)), budget // 3)
    spent = count_tokens(_others(tables, rest, most)) + 20
    for line in lines:
        extra = 9 if line.section == 0 else 0  # a header may need a marker of cut rows and columns
        if (line.section == 0 or line.table in headed) and spent + line.cost + extra <= budget:
            kept.append(line)
            spent += line.cost + extra
            if line.section == 0:
                headed.add(line.table)
    while True:
        text = _assemble(kept, lines, tables, rest, most)
        if count_tokens(text) <= budget or not (kept or most):
            return text
        if kept:
            kept.pop()
        else:
            most = most * 3 // 4


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


def _assemble(kept: list[_Line], lines: list[_Line], tables: Sequence[Table], rest: list[int], most: int) -> str:
    out: list[str] = []
    by_table: dict[int, list[_Line]] = {}
    for line in kept:
        by_table.setdefault(line.table, []).append(line)
    for index in sorted(by_table):
        group = sorted(by_table[index], key=lambda line: (line.section, line.order))
        out += [line.text for line in group if line.section == 0]
        out += [line.text for line in group if line.section == 1]
        total = sum(not _structural(column) for column in tables[index].columns)
        hidden = total - sum(line.columns for line in group)
        if hidden:
            out.append(f"... ({hidden} more columns)")
        rows = [line.text for line in group if line.section == 2]
        shown = max(0, len(rows) - 1)
        if shown:
            out += rows
        left = tables[index].rows - shown
        if left and tables[index].rows > 1:
            out.append(f"... ({left:,} more rows)")
    missing = sorted({line.table for line in lines} - set(by_table)) + rest
    examples = [line.text for line in sorted(kept, key=lambda line: line.table) if line.section == 3]
    if missing:
        out.append(_others(tables, missing, most))
    if examples:
        out += ["Queries such as these see all rows:", *examples]
    return "\n".join(out)


__all__ = ["ColumnView", "Excerpt", "RowView", "excerpt"]
