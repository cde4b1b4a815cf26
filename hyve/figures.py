"""Numbers, durations and times since 1970 as people write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from hyve.profile import ColumnView, names_instants

_WRITTEN_OUT = 1e15
"""Numbers below it have no exponent."""
_MEAN_DIGITS, _LEVEL_DIGITS, _ALL_DIGITS = 3, 2, 17
"""So many digits of what numbers differ by are told: of means, and of levels; a double has no more."""
_PLAIN, _SHORT = 6, 999_999
"""Digits of most means, and which of them have no more before the point."""
_EPOCHS = ((10**17, 10**9, "ns"), (10**14, 10**6, "us"), (10**11, 10**3, "ms"), (10**8, 1, "s"))
"""(numbers from there on, how many make a second, the unit) of times that are numbers."""
_END = 10**10
"""Seconds: later times are none of machine data, but of other units."""


def number_text(value: float, apart: float = math.inf) -> str:
    """A number with as many digits as tell it from another level, which is so far `apart`."""
    least = 4 if abs(value) < 10_000 else 6
    return _with_digits(value, max(least, _digits(value, apart, _LEVEL_DIGITS)))


def change_text(before: float, behind: float) -> str:
    """`3→5`: two levels, with as many digits as tell them apart."""
    return "→".join(number_text(value, abs(behind - before)) for value in (before, behind))


def mean_text(mean: float, low: Any, high: Any) -> str:
    """A mean of numbers from `low` to `high`, among which it stays, with as many digits as tell where it is."""
    low, high, least = _range(low, high)
    if least == _PLAIN and -_SHORT < mean < _SHORT and low <= float(text := f"{mean:.{_PLAIN}g}") <= high:
        return text  # as nearly all are
    mean = min(max(mean, low), high)
    for digits in range(least, _ALL_DIGITS):
        text = _with_digits(mean, digits)
        if low <= float(text) <= high:
            return text
    return repr(mean)


@lru_cache(maxsize=64)
def _range(low: Any, high: Any) -> tuple[float, float, int]:
    """The ends of a range as doubles, and how many digits a mean in it has."""
    low, high = float(low), float(high)
    return low, high, max(_PLAIN, _digits(max(abs(low), abs(high)), high - low, _MEAN_DIGITS))


def _digits(value: float, apart: float, of_these: int) -> int:
    """How many digits a number has down to the first one by which numbers so far apart differ, and some more."""
    if not 0 < apart < abs(value):
        return 0
    return min(_ALL_DIGITS - 1, math.floor(math.log10(abs(value))) - math.floor(math.log10(apart)) + of_these)


def _with_digits(value: float, digits: int) -> str:
    """A number of so many digits; of large ones the whole number, which is no longer than one that ends in zeros."""
    if 10**digits <= abs(value) < _WRITTEN_OUT:
        return f"{value:.0f}"
    return rounded(value, digits)


def rounded(value: float, digits: int) -> str:
    """A number of so many digits, without an exponent where it is large."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < _WRITTEN_OUT else text


def duration_text(seconds: float) -> str:
    """`301 s`, `3 h 25 min`, `53 d 19 h`: of what is long nobody counts the seconds."""
    for least, unit, large, small, name in ((2 * 86_400, 3_600, 24, "d", "h"), (2 * 3_600, 60, 60, "h", "min")):
        if seconds >= least:
            whole, rest = divmod(round(seconds / unit), large)
            return f"{whole:,} {small} {rest} {name}" if rest else f"{whole:,} {small}"
    return f"{seconds:g} s"


def epoch_unit(view: ColumnView) -> tuple[int, str] | None:
    """(how many make a second, the unit) of a column of numbers that is called like times, and are such; else None."""
    if not view.numeric or view.odd or not names_instants(view.column.name, view.low):
        return None
    found = _unit(view.low)
    return found if found == _unit(view.high) else None


def instant_text(number: Any, per_second: int) -> str:
    """A time since 1970, in UTC, to the thousandth of a second."""
    seconds, rest = divmod(number, per_second)
    text = datetime.fromtimestamp(int(seconds), UTC).isoformat(" ")[:19]
    thousandths = int(rest * 1_000 // per_second)
    return f"{text}.{thousandths:03d}".rstrip("0") if thousandths else text


def _unit(number: Any) -> tuple[int, str] | None:
    found = next(((size, unit) for least, size, unit in _EPOCHS if number >= least), None)
    return found if found and number < _END * found[0] else None
