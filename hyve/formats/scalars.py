"""Reading single JSON values that a telemetry format promises but a hostile or sloppy sender may not keep.

Rules: no function here raises; what can't be read is None (or the empty text), never a guess. Not-a-number
and infinite values are None: they neither survive JSON nor mean anything in a mean or a quantile.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
Relations = dict[str, list[Row]]

_HEX = "0123456789abcdefABCDEF"
_INT64 = 1 << 63
_FRACTION = re.compile(r"[.,](\d+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_SEVERITY_WORDS = {
    **{name: name for name in SEVERITIES},
    "VERBOSE": "TRACE",
    "FINE": "DEBUG",
    "FINEST": "TRACE",
    "INFORMATION": "INFO",
    "INFORMATIONAL": "INFO",
    "NOTICE": "INFO",
    "WARNING": "WARN",
    "ERR": "ERROR",
    "SEVERE": "ERROR",
    "CRIT": "FATAL",
    "CRITICAL": "FATAL",
    "ALERT": "FATAL",
    "EMERG": "FATAL",
    "EMERGENCY": "FATAL",
    "PANIC": "FATAL",
}


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
    if type(value) is bool or not isinstance(value, int | float | str):
        return None
    if type(value) is str and (len(value) > 400 or "_" in value):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


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
    result = value if type(value) is int and 0 < value < _INT64 else integer(value)
    return result if result is not None and result > 0 else None


def scaled_ns(value: Any, per_second: int) -> int | None:
    """Epoch nanoseconds of an epoch in other units; a fraction is kept exactly as the decimal text has it."""
    if type(value) is int:
        return epoch_ns(value * (1_000_000_000 // per_second))
    parsed = number(value)
    if parsed is None or abs(parsed) > 1e19:
        return None
    return epoch_ns(round(parsed * 1_000_000) * 1_000 // per_second)


def rfc3339_ns(value: Any) -> int | None:
    """Epoch nanoseconds of an RFC 3339 time with any offset and up to nine digits; year 1 is "not set"."""
    if type(value) is not str or not 10 <= len(value) <= 64:
        return None
    fraction = _FRACTION.search(value)
    digits = fraction.group(1) if fraction else ""
    plain = value[: fraction.start()] + value[fraction.end() :] if fraction else value
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        delta = moment - _EPOCH
    except OverflowError:
        return None
    seconds = delta.days * 86_400 + delta.seconds
    return epoch_ns(seconds * 1_000_000_000 + int((digits + "0" * 9)[:9]))


def trace_or_span_id(value: Any) -> str | None:
    """A trace or span id as lower-case hex, whatever the sender wrote: hex of any case, hex that lost its
    leading zeros, or base64 (protobuf's JSON mapping of bytes). All zeros and empty mean "none"; other text
    stays as it is."""
    if type(value) is not str:
        return None
    size = len(value)
    if not value.strip(_HEX):
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
    known = _SEVERITY_WORDS.get(word.strip().upper()) if type(word) is str else None
    if type(level) is str and level.startswith("SEVERITY_NUMBER_"):
        name, _, step = level[16:].partition("_")
        stem = name.rstrip("1234")
        step = name[len(stem) :] or step
        if stem in SEVERITIES:
            level = SEVERITIES.index(stem) * 4 + (int(step) if step.isdigit() else 1)
    rank = integer(level)
    if rank is not None and not 1 <= rank <= 24:
        rank = None
    if known is None and rank is not None:
        known = SEVERITIES[(rank - 1) // 4]
    if known is not None and rank is None:
        rank = SEVERITIES.index(known) * 4 + 1
    return known or "", rank


_SERVICE_KEYS = (
    "service.name",
    "service_name",
    "service",
    "k8s.deployment.name",
    "deployment",
    "app.kubernetes.io/name",
    "app_kubernetes_io_name",
    "k8s-app",
    "app",
    "k8s.pod.name",
    "pod",
    "pod_name",
    "host.name",
    "host",
    "job",
    "instance",
)


def service_of(labels: Mapping[str, Any]) -> str:
    """Who speaks: the first label of the usual ones that is set, else "unknown". The SDK's default name
    `unknown_service` counts only where nothing better is there."""
    default = "unknown"
    for key in _SERVICE_KEYS:
        value = labels.get(key)
        if type(value) is str and value:
            if not value.startswith("unknown_service"):
                return value
            default = value
    return default


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; everything else is left out."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def mapping(value: Any) -> dict[str, Any]:
    """The object itself, or an empty one."""
    return value if type(value) is dict else {}
