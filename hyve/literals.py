"""Python literals and reprs as JSON values: no code runs (H6).

The source is parsed to Python's own syntax tree, and only literals of it are read. Tuples and sets become lists, bytes
text, `datetime(...)` its ISO text, and any other constructor call the text that stands there; flags say so.
"""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hyve.strictjson import Pairs

_CHARS = 1 << 20
"""Longest source that is parsed: Python's parser takes some hundred times its size."""


def read_literal(source: str) -> tuple[Any, tuple[str, ...]] | None:
    """The value of a Python literal or repr (no code runs), with flags; None where it is none."""
    if len(source) > _CHARS:
        return None
    try:
        tree = ast.parse(source, mode="eval").body
        calls: list[str] = []
        return _literal(tree, source, calls), tuple(dict.fromkeys(calls))
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, OverflowError):
        return None


def _literal(node: ast.expr, source: str, flags: list[str]) -> Any:
    match node:
        case ast.Constant(value=bytes() as raw):
            flags.append("bytes")
            return raw.decode("utf-8", "backslashreplace")
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float | bool):
            return value
        case ast.Dict(keys=keys, values=values):
            pairs = [
                (_literal(key, source, flags), _literal(value, source, flags))
                for key, value in zip(keys, values, strict=True)
                if key is not None
            ]
            if len(pairs) < len(keys):
                raise ValueError("unpacking is no literal")
            pairs = [(key if _is_key(key) else json.dumps(key), value) for key, value in pairs]
            result = dict(pairs)
            if len(result) < len(pairs):
                flags.append("duplicate_keys")
                return Pairs((str(key), value) for key, value in pairs)
            return result
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            if isinstance(node, ast.Set):
                flags.append("set")
            return [_literal(item, source, flags) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _literal(operand, source, flags)
            if (
                isinstance(number, int | float)
                and not isinstance(number, bool)
                and isinstance(operand, ast.Constant | ast.Name)
            ):
                return -number
        case ast.Name(id="nan" | "NaN"):
            flags.append("non_finite")
            return float("nan")
        case ast.Name(id="inf" | "Infinity"):
            flags.append("non_finite")
            return float("inf")
        case ast.Name(id="null"):
            return None
        case ast.Name(id="true" | "false" as word):
            return word == "true"
        case ast.Call():
            flags.append("constructor_call")
            moment = _moment(node)
            return moment if moment is not None else (ast.get_source_segment(source, node) or "")
    raise ValueError(f"{type(node).__name__} is no literal")


def _is_key(key: Any) -> bool:
    return key is None or isinstance(key, str | int | float | bool)


def _moment(call: ast.Call) -> str | None:
    """The ISO text of a `datetime(...)` or `date(...)` call, or None for any other constructor."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("datetime", "date"):
        return None
    numbers = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if len(numbers) != len(call.args) or not all(isinstance(number, int) for number in numbers):
        return None
    zone = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "tzinfo"), "")
    tz = UTC if re.search(r"utc|tzutc|UTC", zone) else None
    if tz is None and (offset := re.search(r"timedelta\(.*?(?:seconds=)?(-?\d+)\)", zone)):
        tz = timezone(timedelta(seconds=int(offset.group(1))))
    try:
        parts = [int(str(number)) for number in numbers]
        return datetime(*parts[:7]).replace(tzinfo=tz).isoformat()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
