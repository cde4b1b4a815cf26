"""Columns that tell what failed, empty or usual in most rows, such as `error_code` (H15, H18)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hyve import rank
from hyve.profile import ColumnView, Profile

_ERRORS = frozenset(
    {"err", "error", "errors", "exception", "exceptions", "failed", "failure", "failures", "fatal", "fault", "panic"}
)
_FAULTS = frozenset({"denied", "faults", "level", "problem", "severity", "violation", "warning", "warnings"})
_OUTCOMES = frozenset({"code", "condition", "exit", "outcome", "phase", "rcode", "reason", "result", "state", "status"})
_NAMES = _ERRORS | _FAULTS | _OUTCOMES
_KINDS, _COLUMNS = 20, 4
"""A column of more kinds, and more columns of a table, have no row of each kind."""


def tells_faults(view: ColumnView) -> bool:
    """Whether a column is named like what tells failures, and has few kinds that most rows don't have."""
    if rank.name_words(view.column.name).isdisjoint(_NAMES) or not view.complete or view.same or view.distinct > _KINDS:
        return False
    return max(view.nulls, view.values[0][1]) * 2 > view.rows and view.nulls + view.values[0][1] > 0


def names_errors(view: ColumnView) -> bool:
    """Whether what stands in a column is an error."""
    return not rank.name_words(view.column.name).isdisjoint(_ERRORS)


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
