"""The rows of a table that stand out though nobody asked for them (H18).

Rules:
- A text surprises by how rare it is among its kind once ids and numbers are masked, an id by characters that hardly any
  other has, a number by its distance from the median of its own series: the rows that are alike in the columns that
  tell who they are about. A row beside a change of level or a gap surprises by that (`hyve.changes`), and one of a
  category in which a number differs from the others (`hyve.categories`).
- That a field is there at all, or is not, surprises less where many others are as seldom there, or not there.
- All columns are looked at as far as the work is bounded; of very large tables those that promise most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyve import rank
from hyve.categories import Categories
from hyve.changes import Change, Changes, series_of
from hyve.columns import Codes, reversed_bits
from hyve.gaps import gaps
from hyve.oddtexts import far_numbers, odd_characters
from hyve.profile import ColumnView, Profile, is_dimension, is_measure
from hyve.rates import rates
from hyve.states import types, with_shares
from hyve.stuck import with_stuck
from hyve.templates import MASK, ids_of, kinds_of, masked_texts

_RARE = 60
_FULL = 3
"""So many rows that stand out for the same reason have their full rank; each further one less."""
_MANY_ALIKE = 20
"""Of more rows that stand out alike those shown are taken from all over the table."""
_LEAST = 1.0
"""A category of a column that is rarer than its mean by less than this factor (in nats) surprises nobody."""
_STANDS_OUT = 0.5
_TEXTS, _NUMBERS = 3, 8
"""So many columns of texts and of numbers are looked at, however many rows there are."""
_CHARACTERS, _CELLS = 1 << 21, 1_000_000
"""Of more of them, so many values are."""
_FEW_MISS = 20
"""Of so many rows at most one lacks a field where that it lacks it stands out."""


@dataclass(frozen=True)
class StandsOut:
    """`rows` are (row, surprise, columns) of those that stand out, most first; the surprise is the largest of a row's
    fields. `changes` are said of the table: where levels change and times have gaps, those that stand out most first;
    `order` is the place of each in their time."""

    rows: tuple[tuple[int, float, list[int]], ...]
    changes: tuple[Change, ...]
    order: tuple[int, ...]


def stands_out(found: Profile) -> StandsOut:
    """What stands out of a table."""
    columns, table = found.columns, found.table
    views = [(i, view) for i, view in enumerate(found.views) if not view.same]
    scores = _Scores(table.rows)
    if table.rows >= _FEWEST:
        for i, view in views:
            if view.complete and not view.nested and rank.any_rare([count for _, count in view.values], _LEAST):
                codes, _, _, counts = columns.counted(view.column.name)
                scores.add(i, rank.rare_kinds(codes, counts, _LEAST), codes)
        _presence(found, views, scores)
    says: dict[int, NDArray[np.integer[Any]]] = {}
    for i, view in _texts(views):
        codes, values = columns.coded(view.column.name)
        if columns.short:
            kinds = np.array(kinds_of(values.shown()))
        else:
            kinds = masked_texts(values.array, MASK, ids_of(values.array)).dictionary_encode().indices.to_numpy()
        says[i] = kinds
        of_rows = np.append(kinds, -1)[codes]
        scores.add(i, rank.rare_kinds(of_rows, np.bincount(of_rows + 1)[1:]), of_rows)
        scores.of_values(i, codes, far_numbers(values.array, kinds) if table.rows >= _MANY else None)
    for i, view in views:
        if view.identifier and table.rows >= _MANY:
            codes, values = columns.coded(view.column.name)
            scores.of_values(i, codes, odd_characters(values.array))
    changes = Changes(found)
    series = changes.series
    if changes.handed:
        series, _ = series_of(columns, [view for _, view in views if is_dimension(view)])
    told = with_shares(changes, [*gaps(changes), *changes.held(), *types(changes)], says) + rates(changes)
    differing: list[Change] = []
    categories = Categories(found, [view for _, view in views if view not in changes.handed], series)
    for i in _measures(views, table.rows):
        numbers, there = columns.floats(found.views[i].column.name)
        used = there & np.isfinite(numbers)
        far = rank.away(numbers, used, series)
        scores.add(i, rank.surprising(far, there & ~used), series)
        told += with_stuck(changes, i, numbers, used, changes.levels(i, numbers, used, far))
        differing += categories.differing(i, numbers, used, far)
    told += sorted(differing, key=lambda change: -change.score)[:_DIFFERING]
    told = sorted(told, key=lambda change: -change.score)[:_CHANGES]
    for change in told:
        scores.beside(change.column, change.rows, change.score)
    texts_first = [view.column.type != "VARCHAR" for view in found.views]
    rows = ((row, score, sorted(because, key=texts_first.__getitem__)) for row, score, because in scores.rows())
    by_time = sorted(range(len(told)), key=lambda i: changes.when(told[i]))
    return StandsOut(tuple(rows), tuple(told), tuple(map(by_time.index, range(len(told)))))


_FEWEST, _MANY, _CHANGES, _DIFFERING = 8, 200, 8, 2
"""Rows of a table in which a kind is rare, or a text odd; so many changes are told of it, and so many numbers that
differ by a category."""


def _presence(found: Profile, views: Iterable[tuple[int, ColumnView]], scores: _Scores) -> None:
    """Scores that fields are there, or are not, which hardly any other row has, or lacks; an empty list is none."""
    rows = found.table.rows
    odd: list[dict[bytes, tuple[int, list[int]]]] = [{}, {}]
    for i, view in views:
        missing = view.nulls
        empty = [count for value, count in view.values if value == "[]"] if view.nested else []
        if 0 < rows - missing < rows // 4:
            bits = np.packbits(found.columns.filled(view.column.name)).tobytes()
            odd[0].setdefault(bits, (rows - missing, []))[1].append(i)
        elif 0 < (missing := missing + sum(empty)) * _FEW_MISS <= rows:
            there = found.columns.filled(view.column.name)
            if empty:
                codes, values = found.columns.coded(view.column.name)
                there = there & (codes != values.shown().index("[]"))
            odd[1].setdefault(np.packbits(~there).tobytes(), (missing, []))[1].append(i)
    for known in odd:
        for bits, (count, together) in known.items():
            surprise = rank.surprise_beside(rows, count, (other for other, _ in known.values()))
            these = np.unpackbits(np.frombuffer(bits, np.uint8), count=rows).astype(np.float64)
            for i in together if surprise > _STANDS_OUT else ():
                scores.add(i, these * surprise)


def _texts(views: Iterable[tuple[int, ColumnView]]) -> Iterator[tuple[int, ColumnView]]:
    """The columns of texts that are looked at for what they say."""
    texts = [(i, v) for i, v in views if v.column.type == "VARCHAR" and v.distinct > 12 and not v.identifier]
    texts = [(i, view) for i, view in texts if view.column.name == "template"] or texts
    room = _CHARACTERS
    for place, (i, view) in enumerate([(i, view) for i, view in texts if not view.complete]):
        longest = max((len(sample) for sample in view.samples), default=0)
        room -= view.distinct * (longest + 1)
        if place < _TEXTS or room > 0:
            yield i, view


def _measures(views: Iterable[tuple[int, ColumnView]], rows: int) -> list[int]:
    """The columns of numbers that are looked at for those far out: one of which the mean is near an end comes first."""
    measures = [(i, view) for i, view in views if is_measure(view)]
    most = max(_NUMBERS, _CELLS // max(1, rows))
    if len(measures) > most:
        measures = sorted(measures, key=lambda one: (-_lopsided(one[1]), one[0]))[:most]
    return [i for i, _ in measures]


def _lopsided(view: ColumnView) -> float:
    """How far the mean is from the middle of the range, of 0.5; NaN and infinities count as the most."""
    if view.odd or view.mean is None or not float(view.high) > float(view.low):
        return 0.5
    with np.errstate(all="ignore"):
        part = (view.mean - float(view.low)) / (float(view.high) - float(view.low))
    return abs(part - 0.5) if np.isfinite(part) else 0.5


class _Scores:
    """How much each row stands out, for which column, and as which of its kinds."""

    def __init__(self, rows: int) -> None:
        self.best = np.zeros(rows)
        self.column = np.full(rows, -1, np.int32)
        self.kind = np.zeros(rows, np.int64)
        self.tops: list[tuple[int, dict[int, float]]] = []

    def add(
        self, column: int, scores: NDArray[np.float64] | None, kinds: NDArray[np.integer[Any]] | None = None
    ) -> None:
        """Takes in the scores by a column; rows of the same of its `kinds` stand out for the same reason."""
        if scores is None or not len(rows := np.flatnonzero(scores > _STANDS_OUT)):
            return
        some = scores[rows]
        top = rows[np.argsort(-some, kind="stable")[:_RARE]]
        self.tops.append((column, dict(zip(top.tolist(), scores[top].tolist(), strict=True))))
        rows = rows[some > self.best[rows]]
        self.best[rows] = scores[rows]
        self.column[rows] = column
        self.kind[rows] = (len(self.tops) << 32) + (0 if kinds is None else kinds[rows].astype(np.int64) + 1)

    def of_values(self, column: int, codes: Codes, scores: NDArray[np.float64] | None) -> None:
        """Takes in the scores of a column's distinct values."""
        if scores is not None:
            self.add(column, np.append(scores, 0.0)[codes])

    def beside(self, column: int, rows: Iterable[int], score: float) -> None:
        """Takes in the rows beside a change, each pair of which is of a kind of its own."""
        self.tops.append((column, dict.fromkeys(rows, score)))
        for row in rows:
            if score > self.best[row]:
                self.best[row], self.column[row], self.kind[row] = score, column, len(self.tops) << 32

    def rows(self) -> list[tuple[int, float, list[int]]]:
        """(row, score, columns) of those that stand out most; of many that do for the same reason only some."""
        rare = np.flatnonzero(self.best > _STANDS_OUT)
        if not len(rare):
            return []
        rare = rare[np.lexsort((rare, self._all_over(rare), -self.best[rare]))]
        by_kind = np.argsort(self.kind[rare], kind="stable")
        kinds = self.kind[rare][by_kind]
        starts, sizes = rank.runs(kinds)
        before = np.zeros(len(rare))
        before[by_kind] = np.arange(len(rare)) - np.repeat(starts, sizes)
        scores = self.best[rare] / (1 + np.maximum(0, before - _FULL + 1) / 2)
        order = np.argsort(-scores, kind="stable")[:_RARE]
        found = []
        for row, score in zip(rare[order].tolist(), scores[order].tolist(), strict=True):
            if score > _STANDS_OUT:
                least = 0.6 * self.best[row]
                others = [column for column, top in self.tops if top.get(row, 0.0) >= least]
                found.append((row, score, list(dict.fromkeys([int(self.column[row]), *others]))))
        return found

    def _all_over(self, rare: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each of some rows among many that stand out alike, by which those shown are from all over the
        table: the earliest would say that it is over."""
        places = np.zeros(len(rare), np.int64)
        if len(rare) > _MANY_ALIKE:
            alike = np.lexsort((rare, -self.best[rare], self.kind[rare]))
            apart = (np.diff(self.kind[rare[alike]]) != 0) | (np.diff(self.best[rare[alike]]) != 0)
            starts, sizes = rank.runs(np.append(0, np.cumsum(apart)))
            of_alike = reversed_bits(np.arange(len(rare)) - np.repeat(starts, sizes))
            places[alike] = np.where(np.repeat(sizes, sizes) > _MANY_ALIKE, of_alike, 0)
        return places
