"""CloudEvents in structured mode."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from hyve.formats import relations

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z


def event(**fields: Any) -> dict[str, Any]:
    base = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.paid", "time": "2026-08-01T17:02:02Z"}
    return base | fields


def rows(value: Any) -> list[dict[str, Any]]:
    return relations([value])["cloud_events"]


def test_a_whole_event() -> None:
    whole = event(subject="7", datacontenttype="application/json", traceparent="00-ab", data={"order": 7})
    assert rows(whole) == [
        {
            "time": AT,
            "id": "1",
            "source": "/shop",
            "type": "order.paid",
            "subject": "7",
            "datacontenttype": "application/json",
            "dataschema": None,
            "extensions": {"traceparent": "00-ab"},
            "data": {"order": 7},
        }
    ]


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({"data_base64": base64.b64encode(b'{"order": 7}').decode()}, {"order": 7}),
        ({"data_base64": base64.b64encode(b"plain").decode()}, "plain"),
        ({"data_base64": base64.b64encode(b"\xff\x00").decode()}, "/wA="),
        ({"data_base64": 5}, 5),
        ({"data": '{"order": 9223372036854775807}'}, {"order": 9223372036854775807}),
        ({"data": '["a"]'}, ["a"]),
        ({"data": "{not json"}, "{not json"),
        ({"data": "e30=", "datacontentencoding": "base64"}, {}),
        ({"data": 1.5}, 1.5),
        ({"data": None}, None),
        ({}, None),
    ],
)
def test_data(fields: dict[str, Any], data: Any) -> None:
    assert rows(event(**fields))[0]["data"] == data


def test_a_batch_and_what_is_no_event() -> None:
    batch = [event(id="1"), {"specversion": "1.0"}, 7, event(id="2", time="yesterday")]
    assert [(row["id"], row["time"]) for row in rows(batch)] == [("1", AT), ("2", None)]
    assert "cloud_events" not in relations([{"id": "1", "source": "/shop", "type": "order.paid"}])
    assert "cloud_events" not in relations([event(specversion=1.0)])
