"""What is said of kinds of which the share changes for good: states, versions, severities, status codes (H18).

Rules:
- Of columns of few values, numbers too, in tables with a time. It is said of the series that alone has the change, if
  one has; where all rows show none, the series are looked at one by one.
- Columns that change together by as much say it once. What else says it is left out: a state that ends where another
  begins is no gap.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hyve.changes import FEWEST, MOST_OF, Change, Changes, Parted, used_in
from hyve.columns import Codes
from hyve.levels import Floats, Rows
from hyve.profile import SERIES, ColumnView, entity_rank, names_entities, text_of
from hyve.shares import KINDS, Share, blocks_of, shares_in, shares_within

_SHARES = 2
"""Shares of so many columns at most are told of."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:")
"""Kinds that are times go by as time does."""
_NAME = 40
_SIMPLE = re.compile(rf"[\w.:/-]{{1,{_NAME}}}", re.ASCII)


@dataclass(frozen=True)
class _Found:
    """The changes of a share in rows in the order of their time: in all rows, or in a series of a parting of them."""

    rows: Rows
    shares: list[Share]
    parted: Parted | None = None
    group: int = 0


def with_shares(changes: Changes, known: list[Change]) -> list[Change]:
    """What is `known` to change, and the changes of the shares of kinds but for those that are known as the levels of
    numbers. What ends, of entities, stays a gap."""
    if changes.time is None or len(changes.rows) < FEWEST:
        return known
    seen, ended = {change.column for change in known}, {change.of for change in known if change.of}
    edges = blocks_of(len(changes.rows))
    told: list[tuple[float, int, _Found]] = []
    for i, view in enumerate(changes.found.views):
        if i == changes.time or i in seen or not 2 <= view.distinct <= KINDS or view.nulls * 2 > view.rows:
            continue
        if not view.complete or view.nested or view.time or view.same or view.column.name == SERIES:
            continue
        codes, values = changes.found.columns.coded(view.column.name)
        of, rows, within = codes[changes.rows], changes.rows, edges
        if view.nulls:
            rows = rows[of >= 0]
            of, within = codes[rows], blocks_of(len(rows))
        shares = shares_in(of, view.distinct, within) if len(rows) >= FEWEST else []
        found = [_Found(rows, shares)] if shares else _within(changes, view, codes)
        if not found or (names_entities(view) and not ended.isdisjoint(values.shown())):
            continue
        if view.numeric and changes.only_rises(i, values.numbers()[codes], codes >= 0):
            continue
        if all(_TIME.match(text_of(value)) for value in values.shown()):
            continue
        told += [(one.shares[0].beyond, i, one) for one in found]
    told.sort(key=lambda one: (one[2].parted is not None, -one[0]))
    apart: dict[tuple[object, ...], tuple[int, _Found]] = {}
    # Where failures are of another host than before, a host fails otherwise than before: that is said once.
    columns = {changes.found.views[i].column.name for _, i, one in told if one.parted is None}
    for _, i, one in told:
        by = one.parted.by.column.name if one.parted and one.parted.by else ""
        if by in columns:
            continue
        columns.add(changes.found.views[i].column.name)
        key = by, one.group, *((share.at, share.before, share.behind) for share in one.shares)
        apart.setdefault(key, (i, one))
    said, instead = list[Change](), set[str]()
    for i, one in list(apart.values())[:_SHARES]:
        said += _told(changes, i, one)
        if one.parted is None:
            instead.update(map(text_of, changes.found.columns.coded(changes.found.views[i].column.name)[1].shown()))
    return [change for change in known if change.column != changes.time or change.of not in instead - {""}] + said


def _within(changes: Changes, view: ColumnView, codes: Codes) -> list[_Found]:
    """What changes in some of the series, by the column that parts the rows into those that show it best."""
    partings = []
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
        found = shares_within(codes[rows], view.distinct, series.sizes, looks)
        if found and (not best or found[0][1][0].beyond > best[0].shares[0].beyond):
            best = [_Found(series.of(at), shares, parted, int(series.owners[at])) for at, shares in found[:_SHARES]]
    return best


def _told(changes: Changes, column: int, one: _Found) -> list[Change]:
    """The changes of a share, of the series that alone has them if one does; each from the change before it up to the
    next one."""
    codes, values = changes.found.columns.coded(changes.found.views[column].column.name)
    rows, found = one.rows, one.shares
    of_kind = codes == found[0].kind
    parted, group, edges = one.parted or changes.whole, one.group, [0, *(share.at for share in found), len(rows)]
    for by in changes.parted if one.parted is None else ():
        if by.by is None or by.by in changes.handed or by.by.column.name == changes.found.views[column].column.name:
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
    names = [spelled(text_of(value)) for value in values.shown()]
    counts = [np.bincount(codes[rows[first:last]], minlength=len(names)) for first, last in pairwise(edges)]
    score = min(8.0, 5 + found[0].beyond / 40)
    return [
        changes.change(column, score, rows, at, _said(names, found[0].kind, before, behind), parted, group)
        for at, (before, behind) in zip(edges[1:-1], pairwise(count / count.sum() for count in counts), strict=True)
    ]


def _said(names: list[str], kind: int, before: Floats, behind: Floats) -> str:
    """`1.2→1.3` where all of one kind become all of another, else the shares of a kind, and of what takes its place."""
    was, became = int(np.argmax(before)), int(np.argmax(behind))
    if was != became and before[was] == behind[became] == 1:
        return f"{names[was]}→{names[became]}"
    said = f"share of {names[kind]} {_percent(before[kind], behind[kind])}"
    gained = behind - before
    other = int(np.argmax(gained))
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


def spelled(name: str) -> str:
    """A kind as part of a line."""
    return name if _SIMPLE.fullmatch(name) else json.dumps(name[:_NAME])


def _percent(*shares: float) -> str:
    """Shares with as many digits as tell them from none and from all."""
    return "→".join(f"{_digits(100 * share):g}%" for share in shares)


def _digits(percent: float) -> float:
    rest = min(percent, 100 - percent)
    return round(percent, max(0, 1 - math.floor(math.log10(rest))) if 0 < rest < 10 else 0)
