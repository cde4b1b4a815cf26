"""Intake: one raw record in, normalised records out, or a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.app import Incoming, Poison
from streams.intake import SOURCE, Intake

BASE = 1_700_000_000_000_000_000


def spans(service: str, peer: str | None, *times: int) -> dict[str, Any]:
    attributes = [] if peer is None else [{"key": "peer.service", "value": {"stringValue": peer}}]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": f"{i + 1:032x}",
                                "spanId": f"{i + 1:016x}",
                                "name": "GET /",
                                "kind": 3,
                                "startTimeUnixNano": str(time),
                                "endTimeUnixNano": str(time + 5_000_000),
                                "attributes": attributes,
                            }
                            for i, time in enumerate(times)
                        ]
                    }
                ],
            }
        ]
    }


def incoming(value: bytes) -> Incoming:
    return Incoming("hyve.raw", 3, 17, value, timestamp=1_700_000_009_000)


async def test_records_are_keyed_by_entity_and_stamped_with_the_event_time() -> None:
    body = json.dumps(spans("orders", None, BASE, BASE + 7_000_000)).encode()
    out = await Intake().process(incoming(body))
    assert [(item.topic, item.key, item.timestamp) for item in out] == [
        ("telemetry", b"orders", 1_700_000_000_000),
        ("telemetry", b"orders", 1_700_000_000_007),
    ]
    assert [item.headers[SOURCE] for item in out] == [b"hyve.raw/3/17/0", b"hyve.raw/3/17/1"]
    first = json.loads(out[0].value)
    assert (first["signal"], first["entity"], first["time"]) == ("span", "orders", BASE)
    assert first["row"]["duration_ms"] == 5.0


async def test_a_call_is_told_to_the_callee_once_a_minute() -> None:
    intake = Intake()
    body = json.dumps(spans("orders", "stock", BASE, BASE + 1_000_000_000, BASE + 120_000_000_000)).encode()
    out = await intake.process(incoming(body))
    calls = [item for item in out if item.key == b"stock"]
    assert [json.loads(item.value)["row"] for item in calls] == [{"caller": "orders", "callee": "stock"}] * 2
    assert len(out) == 5
    assert [item.key for item in await intake.process(incoming(body))] == [b"orders"] * 3


async def test_json_lines_are_taken_whole() -> None:
    lines = [json.dumps(spans(name, None, BASE)) for name in ("a", "b")]
    out = await Intake().process(incoming("\n".join(lines).encode()))
    assert [item.key for item in out] == [b"a", b"b"]


async def test_a_record_without_a_usable_time_takes_kafkas() -> None:
    out = await Intake().process(incoming(json.dumps(spans("a", None, 0)).encode()))
    assert out[0].timestamp == 1_700_000_009_000


async def test_an_export_without_records_is_known_and_gives_nothing() -> None:
    assert await Intake().process(incoming(b'{"resourceSpans": []}')) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "empty"),
        (b"\xff\x00", "not UTF-8 text: byte 0 is 0xff"),
        (b'{"resourceSpans": [', "not JSON: Expecting value at offset 19"),
        (b'{"hello": "world"}', "no telemetry format is recognised"),
        (b"[" * 100_000, "JSON that can't be read"),
        (b"1" * 5000, "JSON that can't be read"),
    ],
)
async def test_what_cannot_be_used_is_poison_and_says_why(value: bytes, says: str) -> None:
    with pytest.raises(Poison, match=says):
        await Intake().process(incoming(value))


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["resourceSpans", "resourceLogs", "scopeSpans", "spans", "resource", "x"]), inner, max_size=3
    ),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes_are_records_or_poison(value: bytes) -> None:
    try:
        out = Intake().normalise(incoming(value))
    except Poison:
        return
    for item in out:
        assert item.topic == "telemetry"
        assert isinstance(json.loads(item.value)["row"], dict)
