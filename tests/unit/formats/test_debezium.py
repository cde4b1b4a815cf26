"""Debezium's change events: operations, envelopes, keys and the numbers that Connect writes as bytes."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.formats import relations

MS = 1_785_603_722_123
DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}


def change(op: str = "u", before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    source = {"connector": "mysql", "db": "shop", "table": "orders", "ts_ms": MS, "snapshot": "false"}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": MS + 400} | more


def enveloped(payload: dict[str, Any], **columns: dict[str, Any]) -> dict[str, Any]:
    fields = [{"field": name, "optional": True} | schema for name, schema in columns.items()]
    images = [{"type": "struct", "fields": fields, "field": name} for name in ("before", "after")]
    return {"schema": {"type": "struct", "fields": [*images, {"field": "op", "type": "string"}]}, "payload": payload}


def row(value: Any) -> dict[str, Any]:
    (found,) = relations([value])["changes"]
    return found


def number(value: int) -> str:
    size = (value.bit_length() // 8) + 1
    return base64.b64encode(value.to_bytes(size, "big", signed=True)).decode()


def test_a_whole_change() -> None:
    before, after = {"id": 7, "state": "new", "at": 1}, {"id": 7, "state": "paid", "at": 1}
    assert row(change("u", before, after, transaction={"id": "tx1"})) == {
        "time": MS * 1_000_000,
        "op": "update",
        "connector": "mysql",
        "database": "shop",
        "schema": None,
        "table_name": "orders",
        "snapshot": False,
        "transaction": "tx1",
        "key": None,
        "changed": ["state"],
        "before": before,
        "after": after,
    }


@pytest.mark.parametrize(
    ("op", "name"), [("c", "create"), ("u", "update"), ("d", "delete"), ("r", "read"), ("t", "truncate")]
)
def test_operations(op: str, name: str) -> None:
    assert row(change(op, {"id": 1}, None))["op"] == name
    assert row(change(op, {"id": 1}, None))["changed"] is None


def test_what_is_no_change() -> None:
    for value in (
        change("x"),
        change() | {"source": "app"},
        {"op": "u", "source": {"a": 1}},
        {"op": ["u"], "source": {}},
    ):
        assert "changes" not in relations([value])


def test_when_it_changed() -> None:
    exact = change(source={"connector": "postgresql", "ts_ms": MS, "ts_ns": MS * 1_000_000 + 7}, after={})
    assert row(exact)["time"] == MS * 1_000_000 + 7
    assert row(change(source={"connector": "mysql", "ts_ms": 0}, after={}))["time"] == (MS + 400) * 1_000_000
    assert row(change(source={"connector": "mysql", "snapshot": "last"}, after={}))["snapshot"] is True


def test_the_key_and_a_document_as_text() -> None:
    key = {"schema": {"fields": [{"field": "id", **DECIMAL, "parameters": {"scale": "0"}}]}, "payload": {"id": "AVo="}}
    assert row({"key": key, "value": change(after={"id": 346})})["key"] == {"id": "346"}
    assert row({"key": {"id": 1}, "value": change(after={"id": 1})})["key"] == {"id": 1}
    source = {"connector": "mongodb", "db": "shop", "collection": "carts", "ts_ms": MS}
    found = row(change("c", None, '{"_id": {"$oid": "1"}, "n": 2}', source=source))
    assert (found["table_name"], found["after"]) == ("carts", {"_id": {"$oid": "1"}, "n": 2})


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("EtaH", DECIMAL | {"parameters": {"scale": "4"}}, "123.4567"),
        ("AVo=", DECIMAL | {"parameters": {"scale": "0"}}, "346"),
        ("/w==", DECIMAL | {"parameters": {"scale": 2}}, "-0.01"),
        ("AVo=", DECIMAL | {"parameters": {"scale": -2}}, "34600"),
        ("AA==", DECIMAL | {"parameters": {"scale": "2"}}, "0.00"),
        ("EtaH", DECIMAL, "EtaH"),
        ("EtaH", DECIMAL | {"parameters": {"scale": "999999999999"}}, "EtaH"),
        ("EtaH", DECIMAL | {"parameters": "4"}, "EtaH"),
        ("!", DECIMAL | {"parameters": {"scale": "4"}}, "!"),
        ("A" * 4_000, DECIMAL | {"parameters": {"scale": "4"}}, "A" * 4_000),
        (None, DECIMAL | {"parameters": {"scale": "4"}}, None),
        (
            {"scale": 3, "value": "EtaH"},
            {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
            "1234.567",
        ),
        ({"scale": 3}, {"name": "io.debezium.data.VariableScaleDecimal"}, {"scale": 3}),
        ("AP//////////", {"type": "int64"}, 18446744073709551615),
        ("AH//////////", {"type": "int64"}, 9223372036854775807),
        (9223372036854775807, {"type": "int64"}, 9223372036854775807),
        ("1234", {"type": "int64"}, "1234"),
        ("EtaH", {"type": "bytes"}, "EtaH"),
        ("EtaH", {"type": "string"}, "EtaH"),
    ],
)
def test_numbers(value: Any, schema: dict[str, Any], expected: Any) -> None:
    found = row(enveloped(change("u", {"n": value}, {"n": value, "other": "EtaH"}), n=schema))
    assert found["after"] == {"n": expected, "other": "EtaH"}
    assert found["before"] == {"n": expected}
    assert type(found["after"]["n"]) is type(expected)


@given(st.integers(min_value=-(10**60), max_value=10**60), st.integers(0, 80))
def test_decimals_are_exact(unscaled: int, scale: int) -> None:
    schema = DECIMAL | {"parameters": {"scale": str(scale)}}
    text = row(enveloped(change(after={"n": number(unscaled)}), n=schema))["after"]["n"]
    sign, digits, exponent = Decimal(text).as_tuple()
    assert int("".join(map(str, digits))) * (-1 if sign else 1) == unscaled
    assert exponent == -scale


def test_columns_where_the_envelopes_fields_should_be() -> None:
    schema = {"fields": [{"field": "n", **DECIMAL, "parameters": {"scale": "1"}}]}
    assert row({"schema": schema, "payload": change(after={"n": "AVo="})})["after"] == {"n": "34.6"}
    assert row({"schema": None, "payload": change(after={"n": "AVo="})})["after"] == {"n": "AVo="}
