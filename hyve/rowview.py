"""The rows of a table that deserve a place: rare, asked for, first, last, evenly spread (H15, H17, H19)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hyve import codecs, rank
from hyve.columns import Columns
from hyve.profile import ENTITIES, ColumnView, Profile, entity_rank, free_text, is_dimension, is_measure, structural
from hyve.store import MASK

_ROW_COLUMNS, _RARE, _IDS = 14, 60, 2
_PER_TEMPLATE, _ALL_ALIKE = 2, 10
"""So many rows that say the same have their full rank, and so many are shown before usual ones."""
_READ = 1_000
"""So many of the rows that share words with the question are scored."""
_TEMPLATE_CELL = 160
_USUAL = 0.1
"""The rank of rows that neither stand out nor were asked for; their ids aren't shown."""
_ALIKE, _PREFIX = 5, 8
"""What so many values begin with is said once if it has that many characters."""
_LEAST = 1.0
"""A category of a column that is rarer than its mean by less than this factor (in nats) surprises nobody."""
_SPARE = 12
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
    if type(value) is float:
        return repr(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is not str:
        return str(value)
    if value in ("", '""'):
        return json.dumps(value)
    text: str = value
    if _ODD.search(text):
        text = text.encode("utf-8", "replace").decode()
        text = _ESCAPED.sub(lambda match: "\\|" if match[0] == "|" else json.dumps(match[0])[1:-1], text)
    if len(text) <= limit + _SPARE:  # the mark of a cut costs as much
        return text
    return f"{text[:limit]}…(+{len(text) - limit} chars)"


_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\|]")
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\|\ud800-\udfff]")


def row_view(
    found: Profile, ranked: Sequence[int], words: Sequence[str], budget: int, rare: bool = True, short: bool = True
) -> RowView | None:
    """The rows worth showing, best first; without `rare` none stands out, without `short` all cells are whole."""
    table, views = found.table, found.views
    if table.rows <= 1:
        return None  # the column views say it all
    whole = free_text(table)  # a line says what its fields say
    keep = [
        i
        for i in ranked
        if (views[i].distinct > 1 or 0 < views[i].nulls < table.rows)
        and not views[i].identifier
        and not views[i].same
        and (_told_by_line(views[i]) if whole else views[i].column.name != "template")
    ]
    ids = [] if whole else [i for i in ranked if views[i].identifier and not views[i].same][:_IDS]
    picked = sorted(keep[:_ROW_COLUMNS]) + sorted(ids)
    if not picked:
        return None
    order = _candidates(found, words, budget, rare)
    places = np.fromiter(order, np.int64, len(order))
    columns = [found.columns.cells(views[i].column.name, places) for i in picked]
    names = [views[i].column.name for i in picked]
    for place, i in enumerate(picked if short else ()):
        head, columns[place] = _shortened(views[i], columns[place])
        names[place] += head
    hidden = len(picked) - len(ids)
    seen: dict[str, int] = {}
    known: set[tuple[Any, ...]] = set()
    rows: list[tuple[int, float, tuple[Any, ...]]] = []
    for (row, share), cells in zip(order.items(), zip(*columns, strict=True), strict=True):
        if cells in known:
            share = min(share, _USUAL) / 10  # the very same row again
        known.add(cells)
        if share <= _USUAL:
            if hidden and ids:
                cells = (*cells[:hidden], *(_CUT for _ in ids))
        else:
            template = _MASK.sub("#", "|".join([show(cell, _TEMPLATE_CELL) for cell in cells]))
            seen[template] = seen.get(template, 0) + 1
            share *= 1.0 if seen[template] <= _PER_TEMPLATE else 0.8 if seen[template] <= _ALL_ALIKE else 0.1
        rows.append((row, share, cells))
    return RowView(tuple(names), tuple(sorted(rows, key=lambda row: -row[1])))


def _told_by_line(view: ColumnView) -> bool:
    """Whether a row of a table of lines shows a column: its number, where `rowid` does not tell it, and the text."""
    numbered = view.step is not None and not view.step.gaps and view.low == 1
    return view.column.name == "text" or (view.column.name == "line" and not numbered)


_MASK = re.compile(MASK, re.ASCII)


def _shortened(view: ColumnView, cells: list[Any]) -> tuple[str, list[Any]]:
    """What is put after a column's name, and its cells without what that says of all of them.

    `:/var/log/*` is what all texts of the table begin with, `:2026-<mmdd hhmm>:00` the layout of its times, and
    `(2026-03-01)` the day of all of them. Names of who or what the rows are about stay whole, so that they are found.
    """
    if view.time:
        if view.low and view.low[:10] == view.high[:10]:
            return f" ({view.low[:10]})", [cell and cell[11:] for cell in cells]
        codec = codecs.times(cells)
        return ("", cells) if codec is None else (codec.header, list(codec.cells or ()))
    if view.column.type == "VARCHAR" and view.distinct >= _ALIKE and entity_rank(view) == len(ENTITIES):
        before = codecs.common(view.low, view.high)
        before = before[: max(before.rfind(mark) for mark in " /=") + 1]
        if len(before) >= _PREFIX and not _ODD.search(before) and "*" not in before:
            return f":{before}*", [cell and cell[len(before) :] for cell in cells]
    return "", cells


def _candidates(found: Profile, words: Sequence[str], budget: int, rare: bool) -> dict[int, float]:
    """Row numbers with the share of the table's weight that each deserves: rare, asked for, first, last, spread."""
    rows = found.table.rows
    shares: dict[int, float] = {}
    for place, (row, score) in enumerate(_rare(found) if rare else ()):
        shares[row] = min(1.25, 0.6 + score / 8) / (1 + 0.02 * place)
    for place, row in enumerate(_asked(found, words)):
        shares[row] = max(shares.get(row, 0.0), 0.9 / (1 + 0.1 * place))
    for place, row in enumerate((0, rows - 1, 1, rows - 2)):
        if 0 <= row < rows:
            shares[row] = max(shares.get(row, 0.0), 0.9 if place < 2 else 0.3)
    for place, row in enumerate(_spread(rows, budget // 6)):
        shares.setdefault(row, _USUAL / (1 + place / 1000))
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _spread(rows: int, most: int) -> list[int]:
    """Rows evenly spread over a table, those of a smaller `most` being the first of a larger one (van der Corput)."""
    found: dict[int, None] = {}
    for k in range(1 << rows.bit_length()):
        if len(found) >= most:
            break
        found[int(int(f"{k:032b}"[::-1], 2) / 2**32 * rows)] = None
    return list(found)


def _rare(found: Profile) -> list[tuple[int, float]]:
    """(row, surprise) of the rows that stand out, most first; the surprise is the largest of a row's fields.

    A text surprises by how rare it is among its kind once ids and numbers are masked, a number by its distance from the
    median of its own series: the rows that are alike in the columns that tell who they are about.
    """
    columns, table = found.columns, found.table
    views = [view for view in found.views if not view.same]
    scores = np.zeros(table.rows)
    for view in views if table.rows >= 8 else ():
        filled = view.rows - view.nulls
        if view.complete and not view.nested:
            np.maximum(scores, rank.rare_kinds(columns.coded(view.column.name)[0], _LEAST), out=scores)
        if 0 < filled < view.rows // 4:
            there = columns.array(view.column.name).is_valid().to_numpy(zero_copy_only=False)
            np.maximum(scores, there * rank.surprise(view.rows, 2, filled), out=scores)
    texts = [view for view in views if view.column.type == "VARCHAR" and view.distinct > 12 and not view.identifier]
    if any(view.column.name == "template" for view in texts):
        texts = [view for view in texts if view.column.name == "template"]
    for view in [view for view in texts if not view.complete][:3]:
        codes, values = columns.coded(view.column.name)
        kinds = pc.replace_substring_regex(values, MASK, "#").dictionary_encode().indices.to_numpy()
        np.maximum(scores, rank.rare_kinds(np.where(codes < 0, -1, kinds[codes])), out=scores)
    series = np.zeros(table.rows, np.int64)
    size = parted = 1
    for view in sorted(filter(is_dimension, views), key=lambda view: (entity_rank(view), view.distinct)):
        if size * view.distinct * 8 <= table.rows and parted <= 3:
            series = series * (view.distinct + 1) + columns.coded(view.column.name)[0] + 1
            size, parted = size * view.distinct, parted + 1
    for view in [view for view in views if is_measure(view)][:8]:
        np.maximum(scores, rank.outliers(*columns.floats(view.column.name), series), out=scores)
    rare = np.flatnonzero(scores > 0.5)
    best = rare[np.argsort(-scores[rare], kind="stable")][:_RARE]
    return list(zip(best.tolist(), scores[best].tolist(), strict=True))


def _asked(found: Profile, words: Sequence[str]) -> list[int]:
    """Rows by BM25 against the question; rows that share no word with it score nothing and are not read."""
    columns, table = found.columns, found.table
    names = [c.name for c in table.columns if c.type.startswith("VARCHAR") and not structural(c)][:40]
    if free_text(table):
        names = ["text"]
    if not names or not words or not table.rows:
        return []
    patterns = [_whole_word(word) for word in words]
    (matched,) = _matches(columns, names, ["|".join(patterns)])
    rows = np.flatnonzero(matched)
    if len(rows) > min(_READ, table.rows // 2):  # words that most rows have tell none of them apart
        told = np.zeros(table.rows, np.int64)
        for hits in _matches(columns, names, patterns):
            if np.count_nonzero(hits) <= table.rows // 2:
                told += hits
        rows = np.flatnonzero(told)
        rows = rows[np.argsort(-told[rows], kind="stable")[:_READ]]
    cells = [columns.cells(name, rows) for name in names]
    texts = [" ".join([cell for cell in row if cell is not None])[:2000] for row in zip(*cells, strict=True)]
    scores = rank.bm25(words, texts)
    best = sorted(range(len(rows)), key=lambda i: (-scores[i], rows[i]))
    return [int(rows[i]) for i in best[:_RARE]]  # where few rows have a word, BM25 may give them less than 0


def _matches(columns: Columns, names: Sequence[str], patterns: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Which rows have a text that a pattern finds, for each pattern."""
    matched = [np.zeros(columns.table.rows, np.bool_) for _ in patterns]
    for name in names:
        codes, values = columns.coded(name)
        filled = codes >= 0
        for rows, pattern in zip(matched, patterns, strict=True):
            hits = pc.match_substring_regex(values, pattern, ignore_case=True).to_numpy(zero_copy_only=False)
            if hits.any():
                rows |= filled & hits[codes]
    return matched


def _whole_word(word: str) -> str:
    """A pattern for a word that is no part of a longer one; scripts without blanks have no such bounds."""
    escaped = re.escape(word)
    return rf"\b{escaped}\b" if word.isascii() else escaped
