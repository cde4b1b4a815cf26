"""What is said of kinds of which the share changes for good: states, versions, severities, status codes (H18).

Rules:
- Of columns of few values, numbers too, in tables with a time; of those of many, and of what texts say beside ids and
  numbers, the values that most rows have. It is said of the series that alone has the change, if one has; where all
  rows show none, the series are looked at one by one.
- Of values of several types at one path it is said where others begin, in tables without a time, too.
- Columns that change together by as much say it once. What else says it is left out: a state that ends where another
  begins is no gap.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hyve.changes import MOST_OF, Change, Changes
from hyve.columns import Codes
from hyve.levels import Floats, Rows
from hyve.mistyped import kinds_in_rows, kinds_of_values, others_beside
from hyve.numbered import last_word
from hyve.parted import FEWEST, Parted, used_in
from hyve.profile import (
    ENTITIES,
    SERIES,
    ColumnView,
    entity_rank,
    is_measure,
    names_entities,
    names_instants,
    text_of,
)
from hyve.shares import KINDS, Share, blocks_of, may_drift, shares_in, shares_within
from hyve.templates import masked

_SHARES = 2
"""Shares of so many columns at most are told of, and of one more that has many values."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:")
"""Kinds that are times go by as time does."""
_IDS = frozenset({"hash", "id", "ids", "key", "pid", "port", "uuid"})
_OFTEN, _READ = 50, 200
"""Of columns of many values those are looked at that one of so many rows has, by so many characters."""
_STEPS, _RUN = 3, 50
"""So many types at most follow each other, each of one of so many rows at least."""
_NAME, _UNTIL = 40, " until"
_LINE_ENDS = re.compile(r"[\x7f-\x9f\u2028\u2029]")
_SIMPLE = re.compile(rf"[\w.:/-]{{1,{_NAME}}}", re.ASCII)


@dataclass(frozen=True)
class _Kinds:
    """What the rows of a column are of: the number of each row's kind (-1: none; beyond the `names`: others that aren't
    looked at). `presence`: they are whether there is a value."""

    column: int
    view: ColumnView
    codes: Codes
    names: list[str]
    presence: bool = False

    @property
    def few(self) -> bool:
        """Whether they are all values that the column has."""
        return self.presence or self.view.distinct <= KINDS


@dataclass(frozen=True)
class _Found:
    """The changes of a share in rows in the order of their time: in all rows, or in a series of a parting of them."""

    kinds: _Kinds
    rows: Rows
    shares: list[Share]
    parted: Parted | None = None
    group: int = 0


def with_shares(changes: Changes, known: list[Change], said_by: Mapping[int, NDArray[np.integer]]) -> list[Change]:
    """What is `known` to change, and the changes of the shares of kinds but for those that are known as the levels of
    numbers. What ends, of entities, stays a gap. `said_by` columns of texts is what each of their values says."""
    if changes.time is None or len(changes.rows) < FEWEST:
        return known
    seen, ended = {change.column for change in known}, {change.of for change in known if change.of}
    told: list[_Found] = []
    for i, view in enumerate(changes.found.views):
        if i == changes.time or i in seen or (kinds := _kinds(changes, i, said_by.get(i))) is None:
            continue
        found = _in_all(changes, kinds) or _within(changes, kinds)
        if not found or (names_entities(view) and not ended.isdisjoint(kinds.names)):
            continue
        if view.numeric and changes.only_rises(i, changes.found.columns.floats(view.column.name)[0], kinds.codes >= 0):
            continue
        if all(map(_TIME.match, kinds.names)):
            continue
        told += found
    for kinds in _presences(changes):
        told += _in_all(changes, kinds) or _within(changes, kinds)
    told.sort(key=lambda one: (not one.kinds.few, one.kinds.presence, one.parted is not None, -one.shares[0].beyond))
    apart: dict[tuple[object, ...], _Found] = {}
    # Where failures are of another host than before, a host fails otherwise than before: that is said once.
    columns = {one.kinds.view.column.name for one in told if one.parted is None}
    for one in told:
        by = one.parted.by.column.name if one.parted and one.parted.by else ""
        if by in columns:
            continue
        if not one.kinds.presence:
            columns.add(one.kinds.view.column.name)
        key = by, one.group, *((share.at, share.before, share.behind) for share in one.shares)
        apart.setdefault(key, one)
    said, instead = list[Change](), set[str]()
    few = [one for one in apart.values() if one.kinds.few and not one.kinds.presence][:_SHARES]
    present = [one for one in apart.values() if one.kinds.presence][:_SHARES]
    for one in [*few, *present, *[one for one in apart.values() if not one.kinds.few][:1]]:
        said += _told(changes, one)
        if one.parted is None and one.kinds.few and not one.kinds.presence:
            instead.update(one.kinds.names)
    return [change for change in known if change.column != changes.time or change.of not in instead - {""}] + said


def types(changes: Changes) -> list[Change]:
    """Where values of another type begin, or end, in columns that have values of several."""
    found = []
    columns, spelled = changes.found.columns, kinds_of_values(changes.found.table)
    for i, view in enumerate(changes.found.views):
        of = kinds_in_rows(columns, view, spelled)
        names = [kind for kind in dict.fromkeys(of) if kind]
        if len(names) > 1:
            numbers = {name: number for number, name in enumerate(names)}
            kinds = _Kinds(i, view, np.array([numbers.get(kind, -1) for kind in of], np.int8), names)
            found += _one_by_one(changes, kinds) or _in_all(changes, kinds)
    said = [_told(changes, one, "type ") for one in found[:_SHARES]]
    return [change for changes_of_one in said for change in changes_of_one]


def _one_by_one(changes: Changes, kinds: _Kinds) -> list[_Found]:
    """Where all rows of one kind become all of another, and then of a third."""
    of = kinds.codes[changes.rows]
    rows, of = changes.rows[of >= 0], of[of >= 0]
    at = np.flatnonzero(np.diff(of)) + 1
    runs = np.diff([0, *at, len(of)]) if len(at) <= _STEPS else np.zeros(1)
    if len(rows) < FEWEST or runs.min() * _RUN < len(rows):
        return []
    steps = [Share(int(of[0]), place, 1.0, 0.0, math.inf) for place in at.tolist()]
    return [_Found(kinds, rows, steps, changes.whole)]


def _kinds(changes: Changes, i: int, says: NDArray[np.integer] | None) -> _Kinds | None:
    """The kinds of a column's rows, of which the shares are looked at; None where it has none."""
    view, columns = changes.found.views[i], changes.found.columns
    if view.distinct < 2 or view.nulls * 2 > view.rows or view.nested or view.time or view.same:
        return None
    if view.column.name == SERIES or view.identifier or is_measure(view) or view.step is not None:
        return None
    if view.distinct <= KINDS and not (
        view.complete and may_drift((count for _, count in view.values), view.rows - view.nulls)
    ):
        return None
    codes, values = columns.coded(view.column.name)
    if view.distinct <= KINDS:
        return _Kinds(i, view, codes, [text_of(value) for value in values.shown()])
    if (view.numeric and names_instants(view.column.name, view.low)) or _who(view) or not _says(view):
        return None
    # Of many values those that most rows have; texts are of one kind that say the same beside ids and numbers.
    says = np.arange(len(values)) if says is None else says
    counts = np.bincount(np.append(says, 0)[codes[codes >= 0]])
    often = np.argsort(-counts, kind="stable")[:KINDS]
    often = often[counts[often] * _OFTEN >= view.rows]
    if not len(often) or (len(counts) < 2):
        return None
    first, sizes = np.unique(says, return_index=True)[1], np.bincount(says)
    shown = [text_of(value) for value in values.shown(first[often])]
    names = [masked(text[:_READ]) if sizes[kind] > 1 else text for kind, text in zip(often, shown, strict=True)]
    numbers = np.full(len(counts) + 1, len(often), np.int32)
    numbers[often] = np.arange(len(often))
    numbers[-1] = -1
    return _Kinds(i, view, numbers[np.append(says, -1)[codes]], names)


def _presences(changes: Changes) -> Iterator[_Kinds]:
    """Whether rows have a value, of each column in which some have none; of those that have theirs in the same rows the
    first one's. What is read from texts is there as these are."""
    columns, known = changes.found.columns, set[bytes]()
    spelled = kinds_of_values(changes.found.table)
    for i, view in enumerate(changes.found.views):
        column = view.column
        if i == changes.time or not 0 < view.nulls < view.rows or view.same or (column.derived and not column.typed):
            continue
        there = columns.filled(column.name)
        if column.path in spelled:  # a value of another type is one, too
            there = np.array([kind != "" for kind in kinds_in_rows(columns, view, spelled)])
        elif column.typed:
            there = there | others_beside(columns, column)
        bits = np.packbits(there).tobytes()
        if bits not in known and 0 < np.count_nonzero(there) < view.rows:
            known.add(bits)
            yield _Kinds(i, view, there.astype(np.int8), ["empty", "filled"], presence=True)


def _who(view: ColumnView) -> bool:
    """Whether a column names who rows are about: of many each comes and goes."""
    return entity_rank(view) < len(ENTITIES) and ENTITIES[entity_rank(view)] != "name"


def _says(view: ColumnView) -> bool:
    """Whether a column is not called like ids, of which one or another always is there for a while."""
    return last_word(view.column.name) not in _IDS


def _in_all(changes: Changes, kinds: _Kinds) -> list[_Found]:
    """The changes of shares in all rows."""
    of = kinds.codes[changes.rows]
    rows, of = changes.rows[of >= 0], of[of >= 0]
    shares = shares_in(of, len(kinds.names), blocks_of(len(rows))) if len(rows) >= FEWEST else []
    return [_Found(kinds, rows, shares)] if shares else []


def _within(changes: Changes, kinds: _Kinds) -> list[_Found]:
    """What changes in some of the series, by the column that parts the rows into those that show it best."""
    partings, view, codes = [], kinds.view, kinds.codes
    for parted in changes.parted:
        if parted.by is None or parted.by in changes.handed or parted.by.column.name == view.column.name:
            continue
        if entity_rank(parted.by) > entity_rank(view):
            continue
        if (series := used_in(parted, codes >= 0)) is not None:
            partings.append((parted, series))
    looks, best = sum(len(series.sizes) for _, series in partings), list[_Found]()
    for parted, series in partings:
        rows = series.rows
        if int(series.sizes.sum()) < len(rows):
            rows = np.concatenate([series.of(place) for place in range(len(series.sizes))])
        found = shares_within(codes[rows], len(kinds.names), series.sizes, looks)
        if found and (not best or found[0][1][0].beyond > best[0].shares[0].beyond):
            best = [
                _Found(kinds, series.of(at), shares, parted, int(series.owners[at])) for at, shares in found[:_SHARES]
            ]
    return best


def _told(changes: Changes, one: _Found, what: str = "") -> list[Change]:
    """The changes of a share, of the series that alone has them if one does; each from the change before it up to the
    next one. `what` changes is said where all of one kind become all of another."""
    codes, column = one.kinds.codes, one.kinds.column
    rows, found = one.rows, one.shares
    of_kind = codes == found[0].kind
    parted, group, edges = one.parted or changes.whole, one.group, [0, *(share.at for share in found), len(rows)]
    for by in changes.parted if one.parted is None else ():
        if by.by is None or by.by in changes.handed or by.by.column.name == one.kinds.view.column.name:
            continue
        owners, _ = changes.found.columns.coded(by.by.column.name)
        if (owner := _alone(owners[rows], of_kind[rows], edges)) < 0:
            continue
        start = [int(owners[by.rows[start]]) for start in by.starts]
        if owner in start:
            parted, group = by, start.index(owner)
            own = owners[rows] == owner
            edges = [int(np.count_nonzero(own[:edge])) for edge in edges]
            rows = rows[own]
            break
    names = _spelled(one.kinds.names)
    counts = [np.bincount(codes[rows[first:last]], minlength=len(names) + 1) for first, last in pairwise(edges)]
    score = min(8.0, 5 + found[0].beyond / 40)
    said = _of_presence if one.kinds.presence else _said
    told = [
        changes.change(column, score, rows, at, said(names, found[0].kind, before, behind, what), parted, group)
        for at, (before, behind) in zip(edges[1:-1], pairwise(count / count.sum() for count in counts), strict=True)
    ]
    # "Empty until a row" is told by the first one that has a value.
    return [
        replace(change, text=change.text.removesuffix(_UNTIL), place=change.place.replace("from", "until", 1))
        if change.text.endswith(_UNTIL)
        else change
        for change in told
    ]


def _of_presence(names: list[str], kind: int, before: Floats, behind: Floats, what: str) -> str:
    """Of values that all are there, or none are, from when or until when they are not, else how many are there."""
    was, became = before[1], behind[1]
    if {was, became} == {0.0, 1.0}:
        return "empty" if was else f"empty{_UNTIL}"
    return f"filled {_percent(was, became)}"


def _said(names: list[str], kind: int, before: Floats, behind: Floats, what: str) -> str:
    """`1.2→1.3` where all of one kind become all of another, else the shares of a kind, and of what takes its place."""
    was, became = int(np.argmax(before)), int(np.argmax(behind))
    if was != became and before[was] == behind[became] == 1 and max(was, became) < len(names):
        return f"{what}{names[was]}→{names[became]}"
    said = f"share of {what}{names[kind]} {_percent(before[kind], behind[kind])}"
    gained = behind - before
    other = int(np.argmax(gained[: len(names)]))
    if before[kind] > behind[kind] == 0 and gained[other] > MOST_OF * before[kind]:
        said += f", of {names[other]} {_percent(before[other], behind[other])}"
    return said


def _alone(owners: Codes, of_kind: NDArray[np.bool_], edges: list[int]) -> int:
    """The number of the series, one of less than half the rows, that has most of each change of a kind between the
    `edges`; -1 where none has."""
    size = int(owners.max(initial=-1)) + 2
    parts = [
        (
            np.bincount(owners[first:last][of_kind[first:last]] + 1, minlength=size),
            np.bincount(owners[first:last] + 1, minlength=size),
        )
        for first, last in pairwise(edges)
    ]
    found = set[int]()
    for first, then in pairwise(parts):
        before, behind = first[0].sum() / first[1].sum(), then[0].sum() / then[1].sum()
        usual = np.divide(first[0], first[1], out=np.full(size, before), where=first[1] > 0)
        more = (then[0] - then[1] * usual) * np.sign(behind - before)
        most = int(np.argmax(more))
        found.add(most)
        if len(found) > 1 or not 0 < MOST_OF * float(more.sum()) <= more[most]:
            return -1
        if not (first[1][most] and then[1][most]) or (first[1] + then[1])[most] * 2 >= (first[1] + then[1]).sum():
            return -1
    return found.pop() - 1


def _spelled(names: list[str]) -> list[str]:
    """Kinds as parts of a line: by their ends, where they begin alike."""
    cut = Counter(name[:_NAME] for name in names)
    return [spelled(name if cut[name[:_NAME]] == 1 else f"…{name[1 - _NAME :]}") for name in names]


def spelled(name: str) -> str:
    """A kind as part of a line."""
    if _SIMPLE.fullmatch(name):
        return name
    text = json.dumps(name[:_NAME].encode("utf-8", "replace").decode(), ensure_ascii=False)
    return _LINE_ENDS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _percent(*shares: float) -> str:
    """Shares with as many digits as tell them from none and from all."""
    return "→".join(f"{_digits(100 * share):g}%" for share in shares)


def _digits(percent: float) -> float:
    rest = min(percent, 100 - percent)
    return round(percent, max(0, 1 - math.floor(math.log10(rest))) if 0 < rest < 10 else 0)
