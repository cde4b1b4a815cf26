"""The rows of a table that deserve a place: rare, asked for, first, last, evenly spread (H15, H17, H19)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hyve import rank
from hyve.naming import quote
from hyve.profile import Profile, entity_rank, is_dimension, is_measure, shown, structural
from hyve.store import MASK, Datastore, Table

_ROW_COLUMNS, _RARE, _PER_TEMPLATE, _IDS = 14, 60, 2, 2
_TEMPLATE_CELL = 160
_USUAL = 0.1
"""The rank of rows that neither stand out nor were asked for; their ids aren't shown."""
_CUT = "…"


@dataclass(frozen=True)
class RowView:
    """Rows of a table: `rows` are (rowid, rank, cells of `columns`), those that deserve a place most first.

    `rank` is the share of the table's weight that the row's line gets.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int, float, tuple[Any, ...]], ...]


def show(value: Any, limit: int = 60) -> str:
    """A cell: one line, `|` escaped, cut with a count beyond `limit` characters; "" for no value."""
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


def row_view(
    store: Datastore, found: Profile, ranked: Sequence[int], words: Sequence[str], budget: int
) -> RowView | None:
    """The rows worth showing, best first."""
    table, views = found.table, found.views
    if table.rows <= 1:
        return None  # the column views say it all
    keep = [
        i
        for i in ranked
        if (views[i].distinct > 1 or 0 < views[i].nulls < table.rows)
        and not views[i].identifier
        and views[i].column.name != "template"  # the text itself is shown
    ]
    ids = [i for i in ranked if views[i].identifier][:_IDS]
    picked = sorted(keep[:_ROW_COLUMNS]) + sorted(ids)
    if not picked:
        return None
    order = _candidates(store, found, words, budget)
    same_day = {
        i: view.low[:10] for i, view in enumerate(views) if view.time and view.low and view.low[:10] == view.high[:10]
    }
    wanted = ", ".join(map(str, order))
    fetched = {
        row[0]: row[1:]
        for row in store.fetch(
            f"SELECT rowid, {', '.join(shown(views[i].column) for i in picked)} FROM {quote(table.name)}"
            f" WHERE rowid IN ({wanted})"
        )
    }
    seen: dict[str, int] = {}
    rows: list[tuple[int, float, tuple[Any, ...]]] = []
    for row, share in order.items():
        usual = share <= _USUAL
        cells = tuple(
            _CUT
            if usual and i in ids and len(picked) > len(ids)
            else value[11:]
            if i in same_day and isinstance(value, str)
            else value
            for i, value in zip(picked, fetched[row], strict=True)
        )
        if not usual:
            template = re.sub(MASK, "#", "|".join(show(cell, _TEMPLATE_CELL) for cell in cells))
            seen[template] = seen.get(template, 0) + 1
            share *= 1.0 if seen[template] <= _PER_TEMPLATE else 0.8
        rows.append((row, share, cells))
    names = (views[i].column.name for i in picked)
    columns = tuple(f"{name} ({same_day[i]})" if i in same_day else name for i, name in zip(picked, names, strict=True))
    return RowView(columns, tuple(sorted(rows, key=lambda row: -row[1])))


def _candidates(store: Datastore, found: Profile, words: Sequence[str], budget: int) -> dict[int, float]:
    """Row numbers with the share of the table's weight that each deserves: rare, asked for, first, last, spread."""
    rows = found.table.rows
    rare = _rare(store, found)
    asked = _asked(store, found.table, words)
    shares: dict[int, float] = {}
    for place, (row, score) in enumerate(rare):
        shares[row] = min(1.25, 0.6 + score / 8) / (1 + 0.02 * place)
    for place, row in enumerate(asked):
        shares[row] = max(shares.get(row, 0.0), 0.9 / (1 + 0.1 * place))
    for place, row in enumerate((0, rows - 1, 1, rows - 2)):
        if 0 <= row < rows:
            shares[row] = max(shares.get(row, 0.0), 0.9 if place < 2 else 0.3)
    for place, row in enumerate(_spread(rows, budget // 6)):
        shares.setdefault(row, _USUAL / (1 + place / 1000))
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _spread(rows: int, most: int) -> list[int]:
    """Rows evenly spread over a table, those of a smaller `most` being the first of a larger one (van der Corput)."""
    if rows <= most:
        return list(range(rows))
    found: dict[int, None] = {}
    for k in range(most):
        found[int(int(f"{k:032b}"[::-1], 2) / 2**32 * rows)] = None
    return list(found)


def _rare(store: Datastore, found: Profile) -> list[tuple[int, float]]:
    """(row, surprise) of the rows that stand out, most first."""
    table, views = found.table, found.views
    categories: dict[str, dict[str, float]] = {}
    for view in views:
        if not view.complete or view.nested or view.rows < 8:
            continue
        scores = {value: rank.surprise(view.rows - view.nulls, view.distinct, count) for value, count in view.values}
        telling = {value: score for value, score in scores.items() if score > 0.7}
        if telling:
            categories[quote(view.column.name)] = telling
    seldom = {
        quote(view.column.name): rank.surprise(view.rows, 2, view.rows - view.nulls)
        for view in views
        if view.rows >= 8 and 0 < view.rows - view.nulls < view.rows // 4
    }
    texts = [view for view in views if view.column.type == "VARCHAR" and view.distinct > 12 and not view.identifier]
    if any(view.column.name == "template" for view in texts):
        texts = [view for view in texts if view.column.name == "template"]
    texts = [view for view in texts if not view.complete][:3]
    series: list[str] = []
    size = 1
    for view in sorted(filter(is_dimension, views), key=lambda view: (entity_rank(view), view.distinct)):
        if size * view.distinct * 8 <= table.rows and len(series) < 3:
            series.append(quote(view.column.name))
            size *= view.distinct
    measures = [quote(view.column.name) for view in views if is_measure(view)][:8]
    statement = rank.rarity(
        quote(table.name), categories, seldom, [quote(view.column.name) for view in texts], measures, series, MASK
    )
    return [(row, score) for row, score in store.fetch(f"{statement} LIMIT {_RARE}") if score and score > 0.5]


def _asked(store: Datastore, table: Table, words: Sequence[str]) -> list[int]:
    """Rows by BM25 against the question; rows that share no word with it score nothing and are not read."""
    columns = [quote(c.name) for c in table.columns if c.type.startswith("VARCHAR") and not structural(c)][:40]
    if not columns or not words:
        return []
    text = f"concat_ws(' ', {', '.join(f'{column}::VARCHAR' for column in columns)})"
    pattern = "|".join(map(_whole_word, words))
    found = store.fetch(
        f"SELECT r, s FROM (SELECT rowid AS r, left({text}, 2000) AS s FROM {quote(table.name)}"
        f" WHERE regexp_matches({text}, '{pattern}', 'i')) ORDER BY"
        f" len(list_distinct(regexp_extract_all(lower(s), '{pattern.lower()}'))) DESC, r LIMIT 1000"
    )
    scores = rank.bm25(words, [text for _, text in found])
    best = sorted(range(len(found)), key=lambda i: (-scores[i], found[i][0]))
    return [found[i][0] for i in best[:_RARE] if scores[i] > 0]


def _whole_word(word: str) -> str:
    """A pattern for a word that is no part of a longer one; scripts without blanks have no such bounds."""
    escaped = re.escape(word).replace("'", "''")
    return rf"\b{escaped}\b" if word.isascii() else escaped
