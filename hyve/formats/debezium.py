"""Debezium's change events as rows of `changes`: bare (`{before, after, source, op}`), in Kafka Connect's envelope
(`{schema, payload}`), and with their key (`{key, value}`).

Rules:
- Connect writes decimals as base64 of a two's complement integer; with the schema's scale they become exact decimal
  text. What the schema calls an integer but came as such bytes (an unsigned bigint) becomes the integer.
- `time` is when the database changed, else when the connector saw it. `changed` names the columns that an update
  changed.
- MongoDB's documents, which come as JSON text, are read.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.packed import from_base64, read_json
from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, scaled_ns

_OPERATIONS = {"c": "create", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE = "io.debezium.data.VariableScaleDecimal"
_INTEGERS = ("int8", "int16", "int32", "int64")
_LONGEST = 1_000
"""Numbers of more base64 digits, and larger scales, stay as they came."""


@needs("op source", "schema payload", "key value")
def recognise(value: Any) -> Relations | None:
    """The row of `changes`, or None."""
    row = _row(value) if type(value) is dict else None
    return None if row is None else {"changes": [row]}


def _row(value: dict[str, Any]) -> Row | None:
    key: Any = None
    if type(value.get("value")) is dict and "key" in value:
        key, value = value["key"], value["value"]
    schema, value = _opened(value)
    source, op = value.get("source"), value.get("op")
    operation = _OPERATIONS.get(op) if type(op) is str else None
    if operation is None or type(source) is not dict or {"before", "after", "connector"}.isdisjoint({*value, *source}):
        return None
    before = _image(value.get("before"), _columns(schema, "before"))
    after = _image(value.get("after"), _columns(schema, "after"))
    changed = None
    if operation == "update" and before is not None and after is not None:
        changed = [name for name, inner in after.items() if name not in before or not _same(before[name], inner)]
    key_schema, key = _opened(key) if type(key) is dict else ({}, None)
    return {
        "time": _time(source) or _time(value),
        "op": operation,
        "connector": known(source.get("connector")),
        "database": known(source.get("db")),
        "schema": known(source.get("schema")),
        "table_name": known(source.get("table") or source.get("collection")),
        "snapshot": source.get("snapshot") not in (None, False, "false"),
        "transaction": known(mapping(value.get("transaction")).get("id")),
        "key": _image(key, _columns(key_schema, "")),
        "changed": changed,
        "before": before,
        "after": after,
    }


def _opened(value: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema and the payload of Connect's envelope; without one no schema and the value itself."""
    if type(value.get("payload")) is dict and "schema" in value:
        return mapping(value["schema"]), value["payload"]
    return {}, value


def _time(value: dict[str, Any]) -> int | None:
    for unit, per_second in (("ts_ns", 1_000_000_000), ("ts_us", 1_000_000), ("ts_ms", 1_000)):
        at = scaled_ns(integer(value.get(unit)), per_second)
        if at is not None:
            return at
    return None


def _same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except RecursionError:
        return False


def _columns(schema: dict[str, Any], image: str) -> dict[str, dict[str, Any]]:
    """The schema of each column of a row image: a key's fields are its columns, an envelope's those of `before` and
    `after` (some give the columns where the envelope's fields should be)."""
    fields = dicts(schema.get("fields"))
    for field in fields:
        if field.get("field") == image and type(field.get("fields")) is list:
            fields = dicts(field["fields"])
            break
    return {field["field"]: field for field in fields if type(field.get("field")) is str}


def _image(image: Any, columns: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """A row before or after the change, its numbers decoded."""
    if type(image) is str:
        image = read_json(image)
    if type(image) is not dict:
        return None
    return {name: _decoded(inner, columns[name]) if name in columns else inner for name, inner in image.items()}


def _decoded(value: Any, column: dict[str, Any]) -> Any:
    name = column.get("name")
    found: int | str | None = None
    if name == _VARIABLE and type(value) is dict:
        found = _decimal(_unscaled(value.get("value")), value.get("scale"))
    elif type(value) is not str:
        return value
    elif name == _DECIMAL:
        found = _decimal(_unscaled(value), mapping(column.get("parameters")).get("scale"))
    elif column.get("type") in _INTEGERS and not value.isdigit():
        found = _unscaled(value)
    return value if found is None else found


def _unscaled(value: Any) -> int | None:
    """The integer that Connect wrote as base64 of its big-endian two's complement bytes."""
    data = from_base64(value) if type(value) is str and len(value) <= _LONGEST else None
    return int.from_bytes(data, "big", signed=True) if data else None


def _decimal(unscaled: int | None, scale: Any) -> str | None:
    """The decimal text of unscaled * 10^-scale, with exactly `scale` digits after the point."""
    places = integer(scale)
    if unscaled is None or places is None or abs(places) > _LONGEST:
        return None
    digits, sign = str(abs(unscaled)), "-" if unscaled < 0 else ""
    if places <= 0:
        return sign + digits + ("0" * -places if unscaled else "")
    digits = digits.zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
