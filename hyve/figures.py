"""Numbers, durations and times since 1970 as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hyve.profile import ColumnView, names_instants

_WRITTEN_OUT = 1e15
"""Numbers below it have no exponent."""
_EPOCHS = ((10**17, 10**9, "ns"), (10**14, 10**6, "us"), (10**11, 10**3, "ms"), (10**8, 1, "s"))
"""(numbers from there on, how many make a second, the unit) of times that are numbers."""
_END = 10**10
"""Seconds: later times are none of machine data, but of other units."""


def number_text(value: float) -> str:
    """A number with as many digits as tell it from another level."""
    return rounded(value, 4 if abs(value) < 10_000 else 6)


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
