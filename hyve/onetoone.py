"""Columns that tell the same entities by other names: each value of one stands with the same value of the other (H14).

Rules:
- All rows are looked at; a column of which every value has one row tells nothing of the kind.
- The column that ranks first is told in full. What is made of it by putting a text before or behind, or taking it away,
  is told by an expression in SQL; the values of others stand in its order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hyve.columns import Columns
from hyve.naming import quote
from hyve.profile import ColumnView, Profile, is_dimension, text_of

_LEAST = 2
"""Rows that a value has on average."""
_AFFIX = re.compile(r"[ -&(-\[\]-~]{1,60}")
"""What is put before or behind: nothing in it has to be escaped."""


def told_by_others(found: Profile, ranked: Sequence[int], but: Collection[int]) -> tuple[Profile, dict[int, int]]:
    """A profile in which columns made of another say so, and, of the others that are one to one with another, which;
    those of `but` are told themselves."""
    columns, views = found.columns, list(found.views)
    leaders: dict[tuple[int, int, tuple[int, ...]], list[int]] = {}
    followers: dict[int, int] = {}
    for i in sorted(ranked, key=lambda i: views[i].numbered):  # names tell more than numbers
        view, texts = views[i], views[i].column.type == "VARCHAR" or views[i].numbered
        if not is_dimension(view) or not texts or view.same or view.identifier:
            continue
        if view.distinct * _LEAST > view.rows - view.nulls:
            continue
        known = leaders.setdefault((view.distinct, view.nulls, tuple(count for _, count in view.values)), [])
        codes = columns.coded(view.column.name)[0]
        leader = next((k for k in known if np.array_equal(columns.coded(views[k].column.name)[0], codes)), None)
        if leader is None or i in but:
            known.append(i)
        elif expression := _made_of(views[leader], pairs(columns, views[leader], view)):
            views[i] = replace(view, same=views[leader].column.name, spelled=expression)
        else:
            followers[i] = leader
    return replace(found, views=tuple(views)), followers


def pairs(columns: Columns, leader: ColumnView, view: ColumnView) -> dict[str, str]:
    """The value of a column by that of the one that it is one to one with."""
    names = (map(text_of, columns.coded(each.column.name)[1].shown()) for each in (leader, view))
    return dict(zip(*names, strict=True))


def _made_of(leader: ColumnView, names: Mapping[str, str]) -> str:
    """The expression that gives the values of a column of those of `leader`; "" where there is none so short."""
    name = quote(leader.column.name)
    for longer, shorter, added in ((1, 0, True), (0, 1, False)):
        first = next(iter(names.items()))
        if not first[shorter]:
            continue
        before, found, behind = first[longer].partition(first[shorter])
        if not found or not _AFFIX.fullmatch(before + behind):
            continue
        if all(pair[longer] == f"{before}{pair[shorter]}{behind}" for pair in names.items()):
            parts = [f"'{text}'" if text else "" for text in (before, behind)]
            if added:
                return " || ".join(filter(None, (parts[0], name, parts[1])))
            if not (before and behind) and all(pair[0].count(before + behind) == 1 for pair in names.items()):
                return f"replace({name}, {parts[0] or parts[1]}, '')"
    return ""
