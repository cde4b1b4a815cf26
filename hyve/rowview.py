"""The rows of a table that deserve a place: rare, asked for, first, last, evenly spread (H15, H17, H19)."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from heapq import heappop, heappush
from itertools import accumulate
from operator import itemgetter
from typing import Any

from hyve import rank
from hyve.asked import Named, asked, in_turns
from hyve.catalog import Column
from hyve.columns import spread
from hyve.faults import one_of_each
from hyve.naming import quote
from hyve.profile import SERIES, ColumnView, Profile, free_text, names_entities
from hyve.question import Question
from hyve.samples import extremes, of_each_series
from hyve.shortened import shortened
from hyve.standout import StandsOut, stands_out
from hyve.templates import masked

_ROW_COLUMNS, _IDS = 14, 2
_LEAST_COLUMNS = 6
"""A row of a small view has fewer columns."""
_NEARLY_EMPTY = 0.9
"""A column of which more than this share is empty is in the rows only where one was chosen for it or asked for it."""
_NAMED = 8
"""Where a question asks for no more rows than that, it names them."""
_FIRST = 1.05
"""The rank of the first row: what rows look like is said before all columns are."""
_PER_TEMPLATE, _ALL_ALIKE = 2, 10
"""So many rows that say the same have their full rank, and so many are shown before usual ones."""
_TEMPLATE_CELL = 160
_USUAL = 0.1
_LEAST = _USUAL / 10
"""The rank of rows that neither stand out nor were asked for; their ids aren't shown."""
_ABOUT, _USUAL_BESIDE = 240, 1.5
"""So many rows of what the question names are shown before all of its rows count as usual; beside each one so many
usual ones."""
_SERIES_BESIDE = 8
"""So many rows of different series come beside a usual one."""
_GREATEST, _EXTREME = 1.1, 0.88
"""The rank of the row with the greatest value of the likeliest measure, where no columns tell faults, and of those with
other extremes."""
SPARE = 12
_WIDE = 60
"""Cells of so many characters on average, and no message, are cut shorter than others."""
MESSAGES = frozenset({"message", "msg", "body", "text", "log", "description", "summary", "query", "error", "reason"})
_LABELS = re.compile(r"[\w./-]{1,100}=[^,\s=]{0,100}(,[\w./-]{1,100}=|$)")
OWN_MARK = "\\… in a cell: the data's own …"
"""Says what `own_mark` does."""
BACKSLASH = "\\\\ in a value: one \\"
"""Says what `show` does with backslashes that could be taken for its own, and JSON with all."""
_FIRST_ROWS = 512
"""So many rows, evenly spread, are made ready at first; then as many again whenever those that are have been said."""


class _LeftOut:
    """A cell that is not shown."""


LEFT_OUT = _LeftOut()


@dataclass(frozen=True)
class RowView:
    """Rows of a table: (rowid, rank, cells of the columns `names`), made a few at a time, and of these those that
    deserve a place most first.

    `rank` is the share of the table's weight that the row's line gets; `heads` are the columns as the rows' head has
    them. `order` are the places of the cells, those that matter most first; a row has the first `least` ones before any
    other. `further` are columns for which there is room only when all else is said; `cells` reads those of some rows.
    `changes` says where levels change and times have gaps, each with its place in their time. Cells of the places
    `wide` are cut shorter than others, but for those `telling` why the row is here.
    """

    names: tuple[str, ...]
    heads: tuple[str, ...]
    order: tuple[int, ...]
    least: int
    rows: Iterable[tuple[int, float, tuple[Any, ...]]]
    changes: tuple[tuple[int, str], ...] = ()
    wide: frozenset[int] = frozenset()
    telling: Mapping[int, frozenset[int]] = field(default_factory=dict)
    further: tuple[Column, ...] = ()
    cells: Callable[[Column, Sequence[int]], list[Any]] = lambda column, rows: []


def show(value: Any, limit: int = 60) -> str:
    """A cell: one line, `|` escaped, cut with a count beyond `limit` characters; "" for no value."""
    kind = type(value)
    if kind is float or kind is int:
        return repr(value)
    if value is None:
        return ""
    if value is LEFT_OUT:
        return "…"
    if kind is bool:
        return "true" if value else "false"
    if kind is not str:
        return format(value, "f") if kind is Decimal else str(value)
    if value in ("", '""'):
        return json.dumps(value)
    text, whole = value, len(value)
    if whole > limit + SPARE:
        text = value[: limit + SPARE + 1]  # the rest, which may be megabytes, is not shown
    if not _ODD.search(text):
        return own_mark(text) if whole <= limit + SPARE else f"{text[:limit]}…(+{whole - limit} chars)"
    text = text.encode("utf-8", "replace").decode()
    pieces = list(map(_one_line, text, text[1:] + "\\"))  # one at the end is doubled, too
    if whole <= limit + SPARE and sum(map(len, pieces)) <= limit + SPARE:  # the mark of a cut costs as much
        return own_mark("".join(pieces))
    fit = bisect_right(list(accumulate(map(len, pieces))), limit)
    if fit and pieces[fit - 1] == "\\":
        pieces[fit - 1] = "\\\\"  # it would make the mark of the cut the data's own
    return f"{''.join(pieces[:fit])}…(+{whole - fit} chars)"


def shown_whole(value: Any, limit: int) -> bool:
    """Whether `show` cuts nothing of a cell."""
    if type(value) is not str:
        return value is not LEFT_OUT
    return len(value) <= limit + SPARE and (not _ODD.search(value) or "…(+" not in show(value, limit)[-20:])


def longest(value: Any) -> int:
    """At least so many characters are all of a cell as it is shown."""
    return len(value) + 5 * len(_ODD.findall(value)) if type(value) is str else 0


def row_text(cells: Sequence[Any], limit: int = 60) -> str:
    """Cells as `show` has them, with `|` between."""
    shown = [cell if type(cell) is str and cell else show(cell) for cell in cells]
    text = "|".join(shown)
    short = len(text) <= limit + SPARE or max(map(len, shown)) <= limit + SPARE
    if short and text.count("|") < len(shown) and '""' not in text and "…" not in text and not _ODD_ROW.search(text):
        return text
    return "|".join([show(cell, limit) for cell in cells])


def own_mark(text: str) -> str:
    """A text that is shown whole, told apart from the mark of a cut (or of a cell that is left out) by a backslash."""
    return _LIKE_A_MARK.sub(r"\\\g<0>", text) if "…" in text else text


def _one_line(char: str, after: str) -> str:
    """A character of a cell; a backslash is as it is where what comes `after` it makes no escape of it."""
    if char == "\\":
        return "\\\\" if after in _ESCAPES or _ESCAPED.match(after) else char
    return "\\|" if char == "|" else json.dumps(char)[1:-1] if _ESCAPED.match(char) else char


def listing(value: Any, limit: int = 60) -> str:
    """A value in a line of several: JSON where a comma, a quote, a count, a blank at an end or braces as those of
    bundles could be taken for the line's."""
    if type(value) is not str:
        return show(value, limit)
    if len(value) <= limit and _SIMPLE.fullmatch(value):
        return value
    if _PARTING.search(value):
        text = value.encode("utf-8", "replace").decode()
        if len(text) <= limit + SPARE:
            return json.dumps(text, ensure_ascii=False)
        return f"{json.dumps(text[:limit], ensure_ascii=False)}…(+{len(text) - limit} chars)"
    return show(value, limit)


_LIKE_A_MARK = re.compile(r"\A…\Z|…(?=\(\+\d+ chars\)\Z)")
_SIMPLE = re.compile(r"[\w.:/-]+", re.ASCII)
_PARTING = re.compile(r'[,"]|×\d|^\s|\s$|\{[^{}.]{0,60}\.\.')
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029|]")
_ESCAPES = frozenset("bfnrtu\\…")
"""What a backslash before it makes an escape of."""
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\|\ud800-\udfff]")
_ODD_ROW = re.compile(_ODD.pattern.replace("|", ""))


@dataclass(frozen=True)
class Owner:
    """Who the rows of each series belong to: `head` is what they are called by, `names` are in the order of `coded`."""

    head: str
    names: Sequence[str]


def row_view(
    found: Profile,
    ranked: Sequence[int],
    faulty: Sequence[int],
    question: Question,
    rare: bool = True,
    short: bool = True,
    named: Sequence[Named] = (),
    owner: Owner | None = None,
) -> RowView | None:
    """The rows worth showing, best first; without `rare` none stands out, without `short` all cells are whole. `faulty`
    are the columns that tell what failed, `named` the entities that the question names; `owner` says whose the rows of
    each series are."""
    table, views = found.table, found.views
    if table.rows <= 1:
        return None  # the column views say it all
    whole = free_text(table)  # a line says what its fields say
    keep = [
        i
        for i in ranked
        if (views[i].distinct > 1 or 0 < views[i].nulls < table.rows)
        and not views[i].same
        and (_told_by_line(views[i]) if whole else views[i].column.name != "template")
    ]
    odd = stands_out(found) if rare else StandsOut((), (), ())
    faults = one_of_each(found, faulty) if rare else []
    edges = extremes(found, ranked) if rare else []
    shares, reasons, named_rows = _candidates(found, question, odd.rows, faults, edges)
    because = [i for row in shares for i in reasons.get(row, ())]
    first, least = _picked(found, keep, because, question.words, rare)
    if not first:
        return None
    picked = sorted(first, key=lambda i: (views[i].identifier, i))
    if not whole:
        for row in shares.keys() & reasons.keys():
            if {*picked}.isdisjoint(reasons[row]):
                shares[row] = 0.0
    about = in_turns([spread(one.rows, _ABOUT) for one in named])[:_ABOUT]
    series = of_each_series(found, ranked, owner is not None) if rare else []
    in_full = {i for row in named_rows for i in reasons[row]}
    rows = _Rows(
        found, picked, sum(not views[i].identifier for i in picked), shares, short, about, series, owner, in_full
    )
    wide = _wide(views, picked, rows.sample, question.words)
    telling = {
        row: frozenset(place for place in wide if row in named_rows or picked[place] in told)
        for row, told in (reasons.items() if wide else ())
    }
    return RowView(
        tuple(views[i].column.name for i in picked),
        rows.heads,
        tuple(map(picked.index, first)),
        least,
        rows,
        tuple(
            (order, f"{one.text}{' of ' * bool(one.whose)}{', '.join(map(listing, one.whose))}{one.place}")
            for order, one in zip(odd.order, odd.changes, strict=True)
        ),
        wide,
        telling,
        tuple(views[i].column for i in keep if i not in {*picked}),
        lambda column, rows: found.columns.or_texts(column, rows, found.columns.cells(column.name, rows)),
    )


class _Rows:
    """(rowid, rank, cells) of rows: first those of `shares` among `_FIRST_ROWS` evenly spread ones, then more of these.

    `hidden`: the places from there on are ids, which usual rows leave out. `about` are rows of what the question names:
    one comes with each usual one or two, also where many are alike. `series` are rows that come before almost all usual
    ones. Numbers and ids of the columns `whole`, which the question names, are shown as they are. `heads` are the
    columns as the rows' head has them, `sample` the cells of the first rows by column.
    """

    def __init__(
        self,
        found: Profile,
        picked: Sequence[int],
        hidden: int,
        shares: Mapping[int, float],
        short: bool,
        about: Sequence[int],
        series: Sequence[int],
        owner: Owner | None,
        whole: Collection[int],
    ) -> None:
        self._found, self._hidden, self._owner = found, hidden, owner
        self._views = [found.views[i] for i in picked]
        self._whole = [i in whole for i in picked]
        self._about = {row: _usual(place * _USUAL_BESIDE) for place, row in enumerate(about)}
        of_series = {row: _usual(place / _SERIES_BESIDE) for place, row in enumerate(series)}
        self._shares = {**of_series, **self._about, **shares}
        self._first = self._spread(0, _FIRST_ROWS)
        rows = list(self._first)
        self.sample = self._raw = [self._cells(view, rows) for view in self._views]
        self.heads = names = tuple(map(self._name, self._views))
        if short:
            spelled = list(map(shortened, self._views, self._raw, self._whole))
            self.heads = tuple(name + head for name, (head, _) in zip(names, spelled, strict=True))
            self.sample = [cells for _, cells in spelled]
        self.sample = [self._or_texts(*one, rows) for one in zip(self._views, self.sample, strict=True)]
        self._short = short

    def _name(self, view: ColumnView) -> str:
        return self._owner.head if self._owner and view.column.name == SERIES else quote(view.column.name)

    def _cells(self, view: ColumnView, rows: Sequence[int]) -> list[Any]:
        if self._owner and view.column.name == SERIES:
            codes = self._found.columns.coded(SERIES)[0]
            return [self._owner.names[codes[row]] for row in rows]
        return self._found.columns.cells(view.column.name, rows)

    def _or_texts(self, view: ColumnView, cells: list[Any], rows: Sequence[int]) -> list[Any]:
        return self._found.columns.or_texts(view.column, rows, cells)

    def _spread(self, start: int, stop: int) -> dict[int, float]:
        """Rows with their shares, those that are evenly spread from the `start`th to the `stop`th, most first."""
        rows = spread(self._found.table.rows, stop)[start:]
        known = self._shares
        shares = [(-_usual(place), row) for place, row in enumerate(rows, start) if row not in known]
        if not start:
            shares += [(-share, row) for row, share in known.items()]
        return {row: -share for share, row in sorted(shares)}

    def __iter__(self) -> Iterator[tuple[int, float, tuple[Any, ...]]]:
        seen: dict[str, int] = {}
        known: dict[Any, int] = {}
        yield from self._ranked(self._first, self.sample, known, seen)
        start = _FIRST_ROWS
        while start < self._found.table.rows:
            shares = self._spread(start, 2 * start)
            rows = list(shares)
            columns = [self._or_texts(view, self._spelled(place, rows), rows) for place, view in enumerate(self._views)]
            yield from self._ranked(shares, columns, known, seen)
            start *= 2

    def _spelled(self, place: int, rows: Sequence[int]) -> list[Any]:
        """The cells of further rows as their head says; times of another layout than it has are spelled out."""
        view = self._views[place]
        cells = self._cells(view, rows)
        if not self._short:
            return cells
        head, spelled = shortened(view, [*self._raw[place], *cells], self._whole[place])
        return spelled[len(self._raw[place]) :] if self.heads[place] == self._name(view) + head else cells

    def _ranked(
        self, shares: Mapping[int, float], columns: Sequence[list[Any]], known: dict[Any, int], seen: dict[str, int]
    ) -> Iterator[tuple[int, float, tuple[Any, ...]]]:
        """The rows by rank: those that are the same as another, or say the same as many, come later.

        A row's rank is never above its share (or the least that a row has), and rows come by their shares: one is
        handed on as soon as none that is not looked at yet can come before it.
        """
        hidden, ids = self._hidden, len(self._views) - self._hidden
        views = self._views[:hidden]
        parting = [place for place, view in enumerate(views) if not view.time and view.step is None]
        tell = itemgetter(slice(None)) if len(parting) in (0, len(self._views)) else itemgetter(*parting)
        cut, empty = (LEFT_OUT,) * ids, (None,) * len(self._views)
        rows: list[tuple[float, int, int, tuple[Any, ...]]] = []
        for place, ((row, share), cells) in enumerate(zip(shares.items(), zip(*columns, strict=True), strict=True)):
            while rows and -rows[0][0] >= max(share, _LEAST):
                yield _told(heappop(rows))
            if cells == empty:
                continue  # a row that shows nothing says nothing
            but_time = tell(cells)
            same = cells in known or known.get(but_time, 0) >= _PER_TEMPLATE
            known[cells] = 1
            if but_time != cells:
                known[but_time] = known.get(but_time, 0) + 1
            if same or not share:  # the very same row again, or nothing to be seen of why it is here
                share = min(share or _USUAL, _USUAL) / 10
            if share <= _USUAL:
                if hidden and ids:
                    cells = (*cells[:hidden], *cut)
            else:
                template = masked(row_text(cells, _TEMPLATE_CELL))
                seen[template] = seen.get(template, 0) + 1
                share *= 1.0 if seen[template] <= _PER_TEMPLATE else 0.8 if seen[template] <= _ALL_ALIKE else 0.1
                share = max(share, self._about.get(row, 0.0))
            heappush(rows, (-share, place, row, cells))
        while rows:
            yield _told(heappop(rows))


def _told(ranked: tuple[float, int, int, tuple[Any, ...]]) -> tuple[int, float, tuple[Any, ...]]:
    """A row as it is handed on, of (its rank, negative; its place among all; its number; its cells)."""
    return ranked[2], -ranked[0], ranked[3]


def _usual(place: float) -> float:
    """The rank of a usual row."""
    return _USUAL / (1 + place / 1000)


def _wide(
    views: Sequence[ColumnView], picked: Sequence[int], columns: Sequence[list[Any]], words: Sequence[str]
) -> frozenset[int]:
    """The places of columns of long texts that are neither a message nor named by the question; of texts that are no
    JSON and no labels the first one counts as a message where nothing is called so."""
    found, messages, first = set(), False, -1
    for place, i in enumerate(picked):
        named = rank.name_words(views[i].column.name)
        messages = messages or not named.isdisjoint(MESSAGES)
        if views[i].column.type != "VARCHAR" or not named.isdisjoint(MESSAGES) or not named.isdisjoint(words):
            continue
        texts = [cell for cell in columns[place] if cell]
        if sum(map(len, texts)) > _WIDE * len(texts):
            found.add(place)
            if first < 0 and texts[0][0] not in "{[" and not _LABELS.match(texts[0]):
                first = place
    return frozenset(found if messages else found - {first})


def _picked(
    found: Profile, keep: Sequence[int], reasons: Sequence[int], words: Sequence[str], rare: bool
) -> tuple[list[int], int]:
    """(the columns of the rows, those that matter most first; how many of them a row has at least): `keep` by rank,
    `reasons` those that rows were chosen for.

    What the question names and what makes the best rows stand out comes first, nearly empty columns do not come at all.
    """
    views = found.views
    kept = frozenset(keep)
    chosen = [i for i in dict.fromkeys(reasons) if i in kept]
    ids = [i for i in dict.fromkeys([*chosen, *keep]) if views[i].identifier][:_IDS]
    if free_text(found.table):
        ids = []
    keep = [i for i in keep if not views[i].identifier]
    named = [i for i in keep if not rank.name_words(views[i].column.name).isdisjoint(words)]
    telling = [i for i in chosen if not views[i].identifier]
    # Who or what a row is about, and when it was, belongs to why it is here.
    about = [i for i in keep if names_entities(views[i]) or views[i].time]
    filled = [i for i in keep if not rare or views[i].nulls <= _NEARLY_EMPTY * views[i].rows]

    def best(width: int) -> list[int]:
        half = width // 2
        some = [*named[:half], *telling[:half], *about[:2], *named, *telling[: half + 2], *filled]
        return list(dict.fromkeys(some))[:width]

    narrow = best(_LEAST_COLUMNS)
    columns = list(dict.fromkeys([*narrow, *best(_ROW_COLUMNS)]))[:_ROW_COLUMNS]
    narrow += [i for i in ids[:1] if i in chosen]
    return list(dict.fromkeys([*narrow, *columns, *ids])), len(narrow)


def _told_by_line(view: ColumnView) -> bool:
    """Whether a row of a table of lines shows a column: its number, where `rowid` does not tell it, and the text."""
    numbered = view.step is not None and not view.step.gaps and view.low == 1
    return view.column.name == "text" or (view.column.name == "line" and not numbered)


def _candidates(
    found: Profile,
    question: Question,
    odd: Sequence[tuple[int, float, list[int]]],
    faults: Sequence[tuple[int, int]],
    edges: Sequence[tuple[int, int]],
) -> tuple[dict[int, float], dict[int, list[int]], set[int]]:
    """Row numbers with the share of the table's weight that each deserves (rare, asked for, first, last, with an
    extreme), most first; for rows that were chosen for some of their fields the columns of these, the most telling one
    first; and the rows that the question names."""
    rows = found.table.rows
    shares: dict[int, float] = {}
    reasons: dict[int, list[int]] = {}
    for place, (row, score, columns) in enumerate(odd):
        shares[row] = min(1.25, 0.6 + score / 8) / (1 + 0.02 * place)
        reasons[row] = columns
    wanted = asked(found, question)
    few = len(wanted) <= _NAMED
    for place, (row, columns) in enumerate(wanted):
        # What the question names comes before what is said of all rows: of an entity one row at least.
        named = few or (not place and any(names_entities(found.views[i]) for i in columns))
        share = (1.25 if named else 0.9) / (1 + 0.1 * place)
        known = reasons.get(row, [])
        reasons[row] = [*columns, *known] if share > shares.get(row, 0.0) else [*known, *columns]
        shares[row] = max(shares.get(row, 0.0), share)
    for place, (row, column) in enumerate(faults):
        reasons[row] = list(dict.fromkeys([column, *reasons.get(row, ())]))
        shares[row] = max(shares.get(row, 0.0), 1.1 / (1 + 0.02 * place))
    for place, (row, column) in enumerate(edges):
        reasons[row] = list(dict.fromkeys([*reasons.get(row, ()), column]))
        share = _EXTREME / (1 + 0.05 * place) if place or faults else _GREATEST
        shares[row] = max(shares.get(row, 0.0), share)
    for place, row in enumerate((0, rows - 1, 1, rows - 2)):
        if 0 <= row < rows:
            shares[row] = max(shares.get(row, 0.0), (_FIRST, 0.9, 0.3, 0.3)[place])
    ordered = dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))
    return ordered, reasons, {row for row, _ in wanted} if few else set()
