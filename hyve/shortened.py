"""Cells of rows without what the head of their column says of all of them (H15).

Rules:
- `:/var/log/*` is what all texts of the table begin with, or all numbers of one length; `:2026-<mmdd hhmm>:00` the
  layout of its times, and `(2026-03-01)` the day of all of them: the cells read back exactly.
- `≈`: numbers of many digits are rounded, to as many as tell them apart.
- Names of who or what the rows are about stay whole, so that they are found; so do numbers that are measured and whole.
"""

from __future__ import annotations

import math
import re
from typing import Any

from hyve import codecs
from hyve.figures import rounded
from hyve.profile import ENTITIES, SERIES, ColumnView, entity_rank, is_measure

ROUNDED = "≈"
ROUNDED_NOTE = "≈ in a head: rounded"
_ALIKE, _PREFIX, _DIGITS = 5, 8, 4
"""What so many values begin with is said once if it has that many characters, or digits of a number of so many."""
_LONG = 9
"""Whole numbers of more digits may be shown without their first ones."""
_SIGNIFICANT, _MOST, _MANY = 6, 11, 9
"""Numbers are rounded to so many digits, up to so many where they differ by little, if most have more characters."""
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\|\ud800-\udfff*]")


def shortened(view: ColumnView, cells: list[Any], whole: bool) -> tuple[str, list[Any]]:
    """What is put after a column's name, and its cells without what that says of all of them; `whole`: numbers and ids
    are left as they are."""
    if view.time:
        if view.low and view.low[:10] == view.high[:10]:
            return f" ({view.low[:10]})", [cell and cell[11:] for cell in cells]
        codec = codecs.times(cells)
        return ("", cells) if codec is None else (codec.header, list(codec.cells or ()))
    if view.distinct < _ALIKE or view.column.name == SERIES:
        return "", cells
    if view.column.type == "VARCHAR":
        before = "" if whole and view.identifier else _prefix(view)
        return (f":{before}*", [cell and cell[len(before) :] for cell in cells]) if before else ("", cells)
    if whole:
        return "", cells
    if type(view.low) is int and type(view.high) is int:
        before = _first_digits(view)
        if before:
            return f":{before}*", [cell if cell is None else str(cell)[len(before) :] for cell in cells]
    if digits := _digits(view):
        return ROUNDED, [
            rounded(cell, digits) if type(cell) is float and math.isfinite(cell) else cell for cell in cells
        ]
    return "", cells


def _prefix(view: ColumnView) -> str:
    """What all texts begin with, up to a word's end; of ids up to anywhere."""
    if entity_rank(view) < len(ENTITIES):
        return ""
    before = codecs.common(view.low, view.high)
    if not view.identifier:
        before = before[: max(before.rfind(mark) for mark in " /=") + 1]
    return before if len(before) >= _PREFIX and not _ODD.search(before) else ""


def _first_digits(view: ColumnView) -> str:
    """What all whole numbers of one length begin with, of ids, codes and times."""
    low, high = str(view.low), str(view.high)
    if view.low < 0 or len(low) != len(high) or len(low) <= _LONG or is_measure(view):
        return ""
    before = codecs.common(low, high)
    return before if _DIGITS <= len(before) < len(low) else ""


def _digits(view: ColumnView) -> int:
    """To how many digits the numbers of a column are rounded; 0 where they are shown as they are."""
    if type(view.low) is not float or type(view.high) is not float or not view.high > view.low:
        return 0
    samples = [value for value in view.samples if type(value) is float and math.isfinite(value)]
    if 2 * sum(len(repr(value)) > _MANY for value in samples) <= len(samples):
        return 0
    largest, apart = max(abs(view.low), abs(view.high)), view.high / 2 - view.low / 2  # halves: no double is too large
    digits = _SIGNIFICANT + max(0, math.ceil(math.log10(largest / 2) - math.log10(apart) - 0.5)) if apart else _MOST + 1
    return digits if digits <= _MOST else 0
