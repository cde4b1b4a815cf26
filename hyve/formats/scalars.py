"""Reading single JSON values that a telemetry format promises but a hostile or sloppy sender may not keep.

Rules: no function here raises; what can't be read is None (or the empty text), never a guess. Not-a-number
and infinite values are None: they neither survive JSON nor mean anything in a mean or a quantile. `value_text` is
what the rows of metrics say of them.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from base64 import b64decode
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from string import hexdigits
from typing import Any

from hyve.strictjson import Pairs
from hyve.zones import OFFSETS

Row = dict[str, Any]
Relations = dict[str, list[Row]]

TIME_KEYS = frozenset({"time", "end_time", "first_time", "last_finished", "deletion_time"})
"""Keys of rows that hold epoch nanoseconds or None."""

NUMBER_KEYS = {
    **dict.fromkeys(("value", "sum", "min", "max", "duration_ms"), float),
    **dict.fromkeys(("count", "exit_code", "last_exit_code", "restarts"), int),
}
"""Keys of rows that hold numbers, and of which kind their columns are where no row has one."""

_INT64 = 1 << 63
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_OFFSET = re.compile(r"[+-]\d\d:?\d\d\Z")
_FRACTION = re.compile(r"[.,](\d+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_SEVERITY_WORDS = {
    **{name: name for name in SEVERITIES},
    "TRC": "TRACE",
    "VERBOSE": "TRACE",
    "FINEST": "TRACE",
    "FINER": "TRACE",
    "SILLY": "TRACE",
    "DBG": "DEBUG",
    "FINE": "DEBUG",
    "CONFIG": "DEBUG",
    "INF": "INFO",
    "INFORMATION": "INFO",
    "INFORMATIONAL": "INFO",
    "NOTICE": "INFO",
    "SUCCESS": "INFO",
    "HTTP": "INFO",
    "WRN": "WARN",
    "WARNING": "WARN",
    "ERR": "ERROR",
    "SEVERE": "ERROR",
    "FTL": "FATAL",
    "DPANIC": "FATAL",
    "CRIT": "FATAL",
    "CRITICAL": "FATAL",
    "ALERT": "FATAL",
    "EMERG": "FATAL",
    "EMERGENCY": "FATAL",
    "PANIC": "FATAL",
}
_FIRST_RANK = {name: 4 * i + 1 for i, name in enumerate(SEVERITIES)}


def integer(value: Any) -> int | None:
    """An int64 written as a number, a string of digits or a whole float."""
    if type(value) is str:
        try:
            value = int(value) if len(value) < 32 and "_" not in value else None
        except ValueError:
            return None
    elif type(value) is float:
        value = int(value) if value.is_integer() else None
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    return None


def number(value: Any) -> float | None:
    """A finite float written as a number or as text ("1e3", but not "NaN")."""
    if type(value) is str:
        if len(value) > 400 or "_" in value:
            return None
    elif type(value) is not int and type(value) is not float:
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


EXACT = 1 << 53
"""Whole numbers up to this one are all doubles; the next one is rounded to it."""


def value_text(given: Any) -> Row:
    """The key `value_text` for a number that `number` has none for, because it is NaN, infinite or too large for a
    double, or which a double rounds to another whole number; no key for anything else."""
    if type(given) is int:
        return {} if -EXACT <= given <= EXACT or number(given) == given else {"value_text": str(given)}
    if type(given) is str:
        if len(given) > 400 or "_" in given:
            return {}
        if (plain := given.strip().removeprefix("-").removeprefix("+")).isdecimal() and plain.isascii():
            whole = value_text(int(given))
            return {"value_text": given.strip()} if whole else {}
        try:
            value = float(given)
        except ValueError:
            return {}
        if given.strip(" +-").lower() not in _NOT_FINITE:
            return {} if math.isfinite(value) else {"value_text": given}
    elif type(given) is float and not math.isfinite(given):
        value = given
    else:
        return {}
    return {"value_text": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}


def text(value: Any) -> str:
    """The text itself; numbers and booleans as JSON writes them; other values as compact JSON; None as ""."""
    if type(value) is str:
        return value
    return "" if value is None else compact(value)


def compact(value: Any) -> str:
    """Compact JSON, or "" where the value is nested too deep or is no JSON value."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def epoch_ns(value: Any) -> int | None:
    """Nanoseconds since the epoch, where 0 and negative values mean "unknown" (OTLP, Go's zero time)."""
    if type(value) is str and len(value) == 19 and value.isdigit() and value.isascii():
        value = int(value)  # as exporters write them
    elif type(value) is not int:
        value = integer(value)
    return value if value is not None and 0 < value < _INT64 else None


def scaled_ns(value: Any, per_second: int) -> int | None:
    """Epoch nanoseconds of an epoch in other units; a fraction is kept exactly as the decimal text has it."""
    if type(value) is int:
        scaled = value * (1_000_000_000 // per_second)
        return scaled if 0 < scaled < _INT64 else None
    parsed = number(value)
    if parsed is None or abs(parsed) > 1e19:
        return None
    return epoch_ns(round(parsed * 1_000_000) * 1_000 // per_second)


def end_ns(start: int | None, milliseconds: float | None) -> int | None:
    """The end of what began at `start` and took so long; None where either isn't known."""
    if start is None or milliseconds is None or not 0 <= milliseconds < 1e12:
        return None
    return epoch_ns(start + round(milliseconds * 1_000_000))


def rfc3339_ns(value: Any) -> int | None:
    """Epoch nanoseconds of an RFC 3339 time with any offset and up to nine digits; year 1 is "not set"."""
    if type(value) is not str or not 10 <= len(value) <= 64:
        return None
    if value[-1] == "Z" and value[16:17] == ":" and value[10] == "T":
        minute, second, digits = _minute(value[:16]), value[17:19], value[20:-1]
        if (
            minute is not None
            and second < "60"
            and second.isdigit()
            and (value[19] in ".," and digits.isdigit() if digits else value[19] == "Z")
            and value.isascii()
        ):
            return epoch_ns((minute + int(second)) * 1_000_000_000 + int((digits + "000000000")[:9]))
    if value[-4:] in (" UTC", " GMT"):  # as PostgreSQL and Go print it
        value = value[:-4] if _OFFSET.search(value, 0, len(value) - 4) else f"{value[:-4]}Z"
    elif value[-1] in "KT" and (offset := OFFSETS.get(value[-4:].strip())):
        value = value[: -len(value[-4:].strip())].rstrip() + offset
    fraction = _FRACTION.search(value)
    digits = fraction.group(1) if fraction else ""
    plain = value[: fraction.start()] + value[fraction.end() :] if fraction else value
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        return None
    seconds = _seconds(moment)
    return None if seconds is None else epoch_ns(seconds * 1_000_000_000 + int((digits + "0" * 9)[:9]))


@lru_cache(maxsize=4096)
def _minute(text: str) -> int | None:
    """Epoch seconds of a UTC time written down to the minute: the records of a log share a few of them."""
    try:
        return _seconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def _seconds(moment: datetime) -> int | None:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        delta = moment - _EPOCH
    except OverflowError:
        return None
    return delta.days * 86_400 + delta.seconds


def instant_ns(value: Any) -> int | None:
    """Epoch nanoseconds of a time however a log writes it: ISO text, a date of HTTP, or an epoch whose size tells
    seconds from milli-, micro- and nanoseconds. Small numbers are no epochs (a clock that began at 0)."""
    if type(value) is str:
        if value[4:5] == "-":
            return rfc3339_ns(value)
        whole, _, fraction = value.strip().partition(".")
        if not (whole.isdigit() and whole.isascii()):
            text = value.strip()
            if text[3:5] == ", ":
                return _mail_ns(text)
            return rfc3339_ns(text.replace("/", "-", 2) if text[4:5] == "/" else text)
        if not fraction:
            return instant_ns(int(whole)) if len(whole) < 20 else None
        if not (fraction.isdigit() and fraction.isascii()) or not 9 <= len(whole) < 20:
            return None
        unit = _unit(int(whole))
        return None if unit is None else int(whole) * unit + int((fraction + "000000000")[:9]) * unit // 1_000_000_000
    if type(value) is int:
        unit = _unit(value)
        return None if unit is None else epoch_ns(value * unit)
    if type(value) is float and math.isfinite(value):
        unit = _unit(value)
        return None if unit is None else scaled_ns(value, 1_000_000_000 // unit)
    return None


def _mail_ns(text: str) -> int | None:
    """Epoch nanoseconds of a time as HTTP and mail write it: `Fri, 30 Jan 2026 11:45:01 GMT`."""
    try:
        seconds = _seconds(parsedate_to_datetime(text)) if len(text) <= 64 else None
    except (ValueError, OverflowError):
        return None
    return None if seconds is None else epoch_ns(seconds * 1_000_000_000)


def _unit(epoch: float) -> int | None:
    """How many nanoseconds the unit of an epoch has."""
    if not 1e8 <= epoch < 9e18:
        return None
    return 1_000_000_000 if epoch < 1e11 else 1_000_000 if epoch < 1e14 else 1_000 if epoch < 1e17 else 1


def trace_or_span_id(value: Any) -> str | None:
    """A trace or span id as lower-case hex, whatever the sender wrote: hex of any case, hex that lost its
    leading zeros, or base64 (protobuf's JSON mapping of bytes). All zeros and empty mean "none"; other text
    stays as it is."""
    if type(value) is not str:
        return None
    size = len(value)
    if not value.strip(hexdigits):
        if not value.strip("0"):
            return None
        lower = value.lower()
        if size in (16, 32):
            return lower
        return lower.zfill(16 if size < 16 else 32) if size < 32 else lower
    if size in (11, 12, 22, 24):
        try:
            raw = b64decode(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4), validate=True)
        except (binascii.Error, ValueError):
            return value
        if len(raw) in (8, 16):
            return raw.hex() if any(raw) else None
    return value


def severity(word: Any, level: Any = None) -> tuple[str, int | None]:
    """The OTel severity (name, number) of a level written as text, as number, or as an enum name."""
    known = _SEVERITY_WORDS.get(word) or _SEVERITY_WORDS.get(word.strip().upper()) if type(word) is str else None
    if type(level) is str and level.startswith("SEVERITY_NUMBER_"):
        name, _, step = level[16:].partition("_")
        stem = name.rstrip("1234")
        step = name[len(stem) :] or step
        if stem in SEVERITIES:
            level = SEVERITIES.index(stem) * 4 + (int(step) if step in ("1", "2", "3", "4") else 1)
    rank = integer(level) if level is not None else None
    if rank is not None and not 1 <= rank <= 24:
        rank = None
    if known is None and rank is not None:
        known = SEVERITIES[(rank - 1) // 4]
    if known is not None and rank is None:
        rank = _FIRST_RANK[known]
    return known or "", rank


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; everything else is left out."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def mapping(value: Any) -> dict[str, Any]:
    """The object itself, or an empty one; of one that repeats a key, `plain`."""
    if type(value) is dict:
        return value
    return plain(value) if type(value) is Pairs else {}


def plain(pairs: Pairs) -> dict[str, Any]:
    """An object that repeats keys as one that doesn't: the second value of `a` is `a_2`. Keys become text."""
    result: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for key, value in pairs:
        name = key if type(key) is str else text(key)
        counts[name] = counts.get(name, 0) + 1
        free = name if counts[name] == 1 else f"{name}_{counts[name]}"
        while free in result:
            counts[name] += 1
            free = f"{name}_{counts[name]}"
        result[free] = value
    return result
