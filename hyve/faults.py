"""Columns that tell what failed, empty or usual in most rows, such as `error_code` (H15, H18)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hyve import rank
from hyve.profile import ColumnView, Profile

_NAMES = frozenset(
    """
    code condition denied err error errors exception exceptions exit failed failure failures fatal fault faults level
    outcome panic phase problem rcode reason result severity state status violation warning warnings
    """.split()  # noqa: SIM905 (a list would take thirty lines)
)
_ERRORS = frozenset(
    {"err", "error", "errors", "exception", "exceptions", "failed", "failure", "failures", "fatal", "fault", "panic"}
)
_KINDS, _COLUMNS = 20, 4
"""A column of more kinds, and more columns of a table, have no row of each kind."""


def tells_faults(view: ColumnView) -> bool:
    """Whether a column is named like what tells failures, and has few kinds that most rows don't have."""
    if not _named(view.column.name) or not view.complete or view.same or view.distinct > _KINDS:
        return False
    return max(view.nulls, view.values[0][1]) * 2 > view.rows and view.nulls + view.values[0][1] > 0


def names_errors(view: ColumnView) -> bool:
    """Whether what stands in a column is an error."""
    return not rank.name_words(view.column.name).isdisjoint(_ERRORS)


@lru_cache(maxsize=4096)
def _named(name: str) -> bool:
    return not rank.name_words(name).isdisjoint(_NAMES)


def one_of_each(found: Profile, ranked: Sequence[int]) -> list[tuple[int, int]]:
    """(row, column) of a row for each kind that such columns have, but for the usual one; rarer kinds first."""
    told = [i for i in ranked if tells_faults(found.views[i])]
    chosen: dict[int, int] = {}
    for i in told[:_COLUMNS]:
        codes, values, nulls, counts = found.columns.counted(found.views[i].column.name)
        if len(values) == 1 and not nulls:
            continue
        usual = int(np.argmax(counts)) if nulls <= counts.max() else -1
        shown = {int(codes[row]) for row in chosen}
        for kind in np.argsort(counts, kind="stable").tolist():
            if kind != usual and kind not in shown:
                chosen[int(np.argmax(codes == kind))] = i
    return list(chosen.items())
