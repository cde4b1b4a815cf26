"""Arrow record batches -> rows that JSON can carry, without loss.

Rules: times are ISO 8601 text with all their digits (Python's datetime would drop nanoseconds); NaN and
infinities are the texts "NaN", "Infinity", "-Infinity"; whole decimals are ints, others floats where a double
is the same number, else text. Nested values go by way of Arrow's children, so the same holds inside lists,
structs and maps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa


def rows(batch: Any, decoders: Mapping[int, Callable[[Any], Any]]) -> Iterator[tuple[Any, ...]]:
    columns = []
    for i, column in enumerate(batch.columns):
        values = _values(column)
        if i in decoders:
            decode = decoders[i]
            values = [None if value is None else plain(decode(value)) for value in values]
        columns.append(values)
    if not columns:
        return iter([()] * batch.num_rows)
    return zip(*columns, strict=True)


def _values(array: Any) -> list[Any]:
    """An Arrow array as JSON-ready values; nested ones by way of their children, to keep nanoseconds."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if pa.types.is_timestamp(kind):
        return [
            None if value is None else _timestamp(value, kind.unit, kind.tz) for value in _integers(array, pa.int64())
        ]
    if pa.types.is_date32(kind):
        return [None if value is None else _date(value) for value in _integers(array, pa.int32())]
    if pa.types.is_time(kind):
        width = pa.int64() if pa.types.is_time64(kind) else pa.int32()
        return [None if value is None else _clock(value, kind.unit) for value in _integers(array, width)]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        children = [_values(child) for child in array.flatten()]
        valid = array.is_valid().to_pylist()
        if not children:
            return [{} if ok else None for ok in valid]
        return [
            dict(zip(names, row, strict=True)) if ok else None
            for ok, row in zip(valid, zip(*children, strict=True), strict=True)
        ]
    if pa.types.is_map(kind):
        starts = array.offsets.to_pylist()
        keys, items = _values(array.keys), _values(array.items)
        valid = array.is_valid().to_pylist()
        return [
            {_key(k): v for k, v in zip(keys[a:b], items[a:b], strict=True)} if ok else None
            for ok, a, b in zip(valid, starts, starts[1:], strict=False)
        ]
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        valid = array.is_valid().to_pylist()
        flat = _values(array.values.slice(array.offset * width, len(array) * width))
        return [flat[i * width : (i + 1) * width] if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        starts = array.offsets.to_pylist()
        base = starts[0] if starts else 0
        flat = _values(array.values.slice(base, (starts[-1] if starts else 0) - base))
        valid = array.is_valid().to_pylist()
        return [flat[a - base : b - base] if ok else None for ok, a, b in zip(valid, starts, starts[1:], strict=False)]
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return list(array.to_pylist())
    return [plain(value) for value in array.to_pylist()]


def _integers(array: Any, kind: Any) -> list[int | None]:
    return list(array.view(kind).to_pylist())


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def plain(value: Any) -> Any:
    """A value of Python's as JSON can carry it."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        number = shortest(value)
        return format(number, "f") if isinstance(number, Decimal) else number
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def shortest(value: Decimal) -> int | float | Decimal:
    """The same number without the zeros that its type adds: 0 for `0E-15`, 559341 for `559341.000`."""
    if value == (whole := int(value)):
        return whole
    number = float(value)
    return number if Decimal(repr(number)) == value else value.normalize(_ALL_DIGITS)


_ALL_DIGITS = Context(prec=40)
"""DuckDB's decimals have 38 digits at most."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def _timestamp(value: int, unit: str, zone: str | None) -> str:
    if value >= 2**63 - 1 or value <= -(2**63) + 1:
        return "infinity" if value > 0 else "-infinity"
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    days, second = divmod(seconds, _DAY)
    text = f"{_date(days)}T{_hms(second, fraction, unit)}"
    return text + "+00:00" if zone else text


def _date(days: int) -> str:
    if abs(days) >= 2**31 - 1:
        return "infinity" if days > 0 else "-infinity"
    # The Gregorian calendar repeats every 400 years, 146,097 days; Python's own dates end at year 9999.
    cycles, rest = divmod(days + _EPOCH_ORDINAL - 1, 146_097)
    day = date.fromordinal(rest + 1)
    year = day.year + 400 * cycles
    return f"{year:04d}-{day.month:02d}-{day.day:02d}" if year >= 0 else f"-{-year:04d}-{day.month:02d}-{day.day:02d}"


def _clock(value: int, unit: str) -> str:
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    return _hms(seconds, fraction, unit)


def _hms(second: int, fraction: int, unit: str) -> str:
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{text}.{fraction:0{_DIGITS[unit]}d}".rstrip("0") if fraction else text


def size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 3
    if isinstance(value, (list, tuple)):
        return 2 + sum(size(item) for item in value)
    if isinstance(value, dict):
        return 2 + sum(len(key) + 4 + size(item) for key, item in value.items())
    return 8
