"""Columns that tell what failed, empty or usual in most rows, such as `error_code` (H15, H18)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hyve import rank
from hyve.numbered import last_word
from hyve.profile import ColumnView, Profile, text_of

_ERRORS = frozenset(
    {"err", "error", "errors", "exception", "exceptions", "failed", "failure", "failures", "fatal", "fault", "panic"}
)
_FAULTS = frozenset({"denied", "faults", "problem", "violation", "warning", "warnings"})
_OUTCOMES = frozenset({"code", "condition", "exit", "outcome", "phase", "rcode", "reason", "result", "state", "status"})
_LEVELS = frozenset({"level", "loglevel", "lvl", "severity"})
_NAMES = _ERRORS | _FAULTS | _OUTCOMES
_YES = frozenset({"available", "healthy", "ok", "passed", "ready", "succeeded", "success", "successful", "valid"})
_NO = frozenset({"blocked", "degraded", "denied", "expired", "rejected", "timedout", "timeout"})
"""Columns of yes and no tell it where they are called so, or like errors, and not like outcomes."""
_ANY = _NAMES | _LEVELS | _YES | _NO
_NAMING = frozenset({"fingerprint", "hash", "id", "key", "line", "uuid"})
"""What a column called so has of an error tells it apart from others, but says nothing."""
_WORDS = frozenset({"alert", "crit", "critical", "err", "error", "fatal", "info", "warn", "warning"})
"""What is called a level is one of messages where one of its kinds is among these, or where it is a number."""
_LONGEST = 200
"""Characters of such a kind that are read: a text that goes on is no level."""
_GOOD = frozenset({"-", "n/a"}) | rank.name_words(
    """
    active available complete completed connected healthy info none noerror normal ok passed ready running success
    succeeded successful unset up valid
    """
)
_REDIRECTED, _HTTP = 400, range(100, 600)
_KINDS, _COLUMNS = 20, 4
"""A column of more kinds, and more columns of a table, have no row of each kind."""


def tells_faults(view: ColumnView) -> bool:
    """Whether a column is named like what tells failures, and has few kinds, of which one at least says no success;
    most rows have the usual one, none, or one that says success."""
    if not view.complete or view.same or view.distinct > _KINDS or not _named(view):
        return False
    good = _good(view)
    counts = [count for _, count in view.values]
    usual = max(view.nulls, counts[0], view.nulls + sum(c for c, fine in zip(counts, good, strict=True) if fine))
    return not all(good) and usual * 2 > view.rows and view.nulls + counts[0] > 0


def _named(view: ColumnView) -> bool:
    named = rank.name_words(view.column.name)
    if named.isdisjoint(_ANY) or last_word(view.column.name) in _NAMING:
        return False
    if {value.lower() for value, _ in view.values} <= {"true", "false", "unknown"}:
        return not named.isdisjoint(_YES | _NO | _ERRORS | _FAULTS)
    if not named.isdisjoint(_NAMES):
        return True
    if named.isdisjoint(_LEVELS):
        return False
    return view.numeric or any(not _WORDS.isdisjoint(rank.words(value[:_LONGEST])) for value, _ in view.values)


def _good(view: ColumnView) -> list[bool]:
    """Which kinds of a column say that all is well."""
    values, named = [value for value, _ in view.values], rank.name_words(view.column.name)
    if view.numeric or all(map(str.isdecimal, values)):
        if not named.isdisjoint(_LEVELS):  # some count up to what is worse, some down: the usual one is no fault
            return [not place for place in range(len(values))]
        http = last_word(view.column.name) in ("code", "status") and all(float(value) in _HTTP for value in values)
        return [float(value) < _REDIRECTED if http else float(value) == 0 for value in values]
    yes = "true" if named.isdisjoint(_ERRORS | _FAULTS | _NO) else "false"
    return [value.lower() in ("", yes) or value.lower() in _GOOD for value in values]


def names_errors(view: ColumnView) -> bool:
    """Whether what stands in a column is an error."""
    return not rank.name_words(view.column.name).isdisjoint(_ERRORS)


def one_of_each(found: Profile, faulty: Sequence[int]) -> list[tuple[int, int]]:
    """(row, column) of a row for each kind that the columns `faulty` (`tells_faults`) have, but for the usual one and
    those that say success; rarer kinds first."""
    chosen: dict[int, int] = {}
    for i in faulty[:_COLUMNS]:
        view = found.views[i]
        codes, values, nulls, counts = found.columns.counted(view.column.name)
        if len(values) == 1 and not nulls:
            continue
        usual = int(np.argmax(counts)) if nulls <= counts.max() else -1
        shown = {int(codes[row]) for row in chosen}
        good = {value for (value, _), fine in zip(view.values, _good(view), strict=True) if fine}
        texts = [text_of(value) for value in values.shown()]
        for kind in np.argsort(counts, kind="stable").tolist():
            if kind != usual and kind not in shown and texts[kind] not in good:
                chosen[int(np.argmax(codes == kind))] = i
    return list(chosen.items())
