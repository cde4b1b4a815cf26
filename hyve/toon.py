"""JSON values -> TOON, the tabular form that `hyve.notation` is measured against and falls back to (H34).

Source: the TOON specification 4.4 (github.com/toon-format/spec): sections 7 (strings), 9 (arrays), 9.5 (keyed objects).
Comma as delimiter, two blanks a level. TOON has no spelling for 1.0 beside 1, for -0.0, for NaN and infinities, for
lone surrogates or for repeated keys, and its tables forget in which order a record has its keys: `encode` says so
instead of changing the value, and puts records of several orders into a list, not into a table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NUMBER_LIKE = r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z"
_BARE = re.compile(
    rf"(?!(?:true|false|null)\Z|{_NUMBER_LIKE})"
    r"[^ \-#,:\"\\\[\]{}\x00-\x1f\ud800-\udfff][^,:\"\\\[\]{}\x00-\x1f\ud800-\udfff]*(?<![ \t])\Z"
)
_ESCAPED = re.compile(r"[\\\"\x00-\x1f]")
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")

_Shape = tuple[tuple[str, Any], ...]
"""The fields of uniform records: (key, None) of a scalar, (key, shape) of an object."""


class _NotExactError(Exception):
    """TOON can't hold the value as it is."""


def encode(value: Any) -> str | None:
    """`value` as TOON, or None where TOON would change it. Containers must not be nested beyond 100 levels."""
    lines: list[str] = []
    try:
        if isinstance(value, list) and value:
            _array(lines, "", value, 0)
        elif type(value) is dict:
            shape = _keyed(value)
            if shape is None:
                _members(lines, value, 0)
            else:
                _keyed_table(lines, "", value, shape, 0)
        else:
            first = isinstance(value, str) and value.startswith("\ufeff")  # bare, it would be a byte order mark
            lines.append(_quoted(value) if first else _scalar(value) if value != [] else "[]")
    except _NotExactError:
        return None
    return "\n".join(lines)


def row(values: Sequence[Any]) -> str:
    """Scalars as a row of a table, where numbers need not read back exactly."""
    return ",".join([value if type(value) is str and _BARE.match(value) else json.dumps(value) for value in values])


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return value if _BARE.match(value) else _quoted(value)
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is not float or not isfinite(value) or (value.is_integer() and abs(value) < 1e21):
        raise _NotExactError
    text = repr(value)
    if abs(value) >= 1e21:
        return text
    if "e" not in text:
        return text
    return f"{Decimal(text):f}" if abs(value) >= 1e-6 else re.sub(r"e-0*", "e-", text)


def _quoted(text: str) -> str:
    if _SURROGATE.search(text):
        raise _NotExactError
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) else _quoted(key)


def _shape(records: list[Any]) -> _Shape | None:
    """The fields that all of `records` have in one order; None where they are no table."""
    first = records[0]
    if type(first) is not dict or not first:
        return None
    keys = tuple(first)
    if any(type(record) is not dict or tuple(record) != keys for record in records):
        return None
    fields: list[tuple[str, Any]] = []
    for key in keys:
        column = [record[key] for record in records]
        if not any(isinstance(item, dict | list | tuple) for item in column):
            fields.append((key, None))
        elif (nested := _shape(column)) is not None:
            fields.append((key, nested))
        else:
            return None
    return tuple(fields)


def _keyed(value: dict[str, Any]) -> _Shape | None:
    return _shape(list(value.values())) if len(value) > 1 else None


def _head(shape: _Shape) -> str:
    return "{" + ",".join(_key(key) + (_head(nested) if nested else "") for key, nested in shape) + "}"


def _cells(record: dict[str, Any], shape: _Shape) -> Iterator[str]:
    for key, nested in shape:
        if nested:
            yield from _cells(record[key], nested)
        else:
            yield _scalar(record[key])


def _members(lines: list[str], value: dict[str, Any], depth: int) -> None:
    for key, item in value.items():
        _member(lines, _key(key), item, depth)


def _member(lines: list[str], key: str, value: Any, depth: int) -> None:
    indent = "  " * depth
    if type(value) is dict:
        shape = _keyed(value)
        if shape is not None:
            _keyed_table(lines, key, value, shape, depth)
            return
        lines.append(f"{indent}{key}:")
        _members(lines, value, depth + 1)
    elif type(value) is list and value:
        _array(lines, key, value, depth)
    else:
        lines.append(f"{indent}{key}: {_scalar(value) if value != [] else '[]'}")


def _keyed_table(lines: list[str], key: str, value: dict[str, Any], shape: _Shape, depth: int) -> None:
    lines.append(f"{'  ' * depth}{key}[{len(value)}:]{_head(shape)}:")
    indent = "  " * (depth + 1)
    lines += [f"{indent}{_key(name)}: {','.join(_cells(record, shape))}" for name, record in value.items()]


def _array(lines: list[str], key: str, values: list[Any], depth: int, tables: bool = True) -> None:
    """A list that isn't empty, under `key`; one that is itself an item of a list is no table."""
    head = f"{'  ' * depth}{key}[{len(values)}]"
    if not any(isinstance(item, dict | list | tuple) for item in values):
        lines.append(f"{head}: {','.join(map(_scalar, values))}")
        return
    shape = _shape(values) if tables else None
    if shape is not None:
        indent = "  " * (depth + 1)
        lines.append(f"{head}{_head(shape)}:")
        lines += [indent + ",".join(_cells(record, shape)) for record in values]
        return
    lines.append(f"{head}:")
    for item in values:
        _item(lines, item, depth + 1)


def _item(lines: list[str], value: Any, depth: int) -> None:
    indent = "  " * depth
    if type(value) is dict and value:
        first = len(lines)
        _members(lines, value, depth + 1)  # its first line takes the hyphen, one level up
        lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
    elif type(value) is dict:
        lines.append(f"{indent}-")
    elif type(value) is list and value:
        _array(lines, "- ", value, depth, tables=False)
    else:
        lines.append(f"{indent}- {_scalar(value)}" if value != [] else f"{indent}- [0]:")
