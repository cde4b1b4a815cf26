"""Intake: what the body of a raw record may be (formats, compressions, types), and the reasons of those it can't."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import aiokafka.codec
import cramjam
import kafka.codec
import pytest
import zstandard

from hyve.errors import HyveError
from hyve.formats import relations
from streams import bodies
from streams.app import Incoming, Poison
from streams.intake import Intake
from tests.unit.streams.raw_records import BASE, incoming, one, spans
from workers.settings import load


async def test_json_lines_are_taken_whole() -> None:
    lines = [json.dumps(spans(name, None, BASE)) for name in ("a", "b")]
    out = await Intake().process(incoming("\n".join(lines).encode()))
    assert [item.key for item in out] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "empty"),
        (b"\xff\x00", "not UTF-8 text: byte 0 is 0xff"),
        (b'{"resourceSpans": [', "not JSON: Expecting value at offset 19"),
        (b'{"a": 1} and more', "not JSON: Expecting value at offset 9"),
        (b"[" * 100_000, "JSON that can't be read"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested deeper than 200 levels"),
        (b"1" * 5000, "holds no object"),
        (b"[1, 2]", "holds no object"),
        (b"\x1f\x8b\x08rubbish", "compressed body is damaged"),
        (gzip.compress(b'{"a": 1}', mtime=0)[:-9], "compressed body is damaged: it is cut"),
        (b"\x28\xb5\x2f\xfdrubbish", "compressed body is damaged"),
        (
            zstandard.ZstdCompressor().compress(b"a" * 999 + bytes(range(256)))[:-9],
            "compressed body is damaged: it is cut",
        ),
        (b"\x82SNAPPY\x00" + bytes(8) + b"\x00\x00\x00\x05\xff\xff\xff\xff\xff", "compressed body is damaged"),
    ],
)
async def test_what_cannot_be_used_is_poison_and_says_why(value: bytes, says: str) -> None:
    with pytest.raises(Poison, match=says):
        await Intake().process(incoming(value))


def samples() -> list[tuple[str, Incoming]]:
    found = []
    for line in Path(__file__).parents[3].joinpath("tests/producers/samples.ndjson").read_text().splitlines():
        sample = json.loads(line)
        key = None if sample["key"] is None else base64.b64decode(sample["key"])
        headers = {name: value.encode() for name, value in sample["headers"].items()}
        value = base64.b64decode(sample["value"])
        found.append((sample["topic"], Incoming(sample["topic"], 0, 4, value, key, sample["timestamp"], headers)))
    return found


def taken(name: str, intake: Intake | None = None) -> list[tuple[str, str]]:
    """(signal, entity) of all that is made of the samples of a topic."""
    intake = intake or Intake()
    out = [item for topic, record in samples() if topic == name for item in intake.normalise(record)]
    return sorted((json.loads(item.value)["signal"], (item.key or b"").decode()) for item in out)


@pytest.mark.parametrize(
    ("topic", "records"),
    [
        ("otlp_proto.logs", [("log", "checkout")] * 2),
        ("otlp_proto.metrics", [("metric", "checkout")] * 5),
        (
            "otlp_proto.traces",
            [("call", "payments"), *[("span", "checkout")] * 2, ("span_event", "checkout"), ("span_link", "checkout")],
        ),
        ("zipkin_json.traces", [("call", "payments"), *[("span", "checkout")] * 2, ("span_event", "checkout")]),
        (
            "jaeger_json.traces",
            [("call", "payments"), *[("span", "checkout")] * 2, ("span_event", "checkout"), ("span_link", "checkout")],
        ),
        ("librdkafka.zstd", [("log", "stock")] * 5),
        ("cloudevents.binary", [("event", "orders")]),
        ("cloudevents.structured", [("event", "orders")]),
    ],
)
def test_what_real_producers_send_is_taken(topic: str, records: list[tuple[str, str]]) -> None:
    """The bytes come from an OpenTelemetry Collector, kcat and the CloudEvents SDK (`tests/producers/make.py`)."""
    assert taken(topic) == records


@pytest.mark.parametrize("signal", ["logs", "metrics", "traces"])
def test_the_collectors_protobuf_and_json_give_the_same_records(signal: str) -> None:
    proto, text = ([r for t, r in samples() if t == f"otlp_{how}.{signal}"] for how in ("proto", "json"))
    made = [
        [(item.key, item.timestamp, json.loads(item.value)) for record in given for item in Intake().normalise(record)]
        for given in (proto, text)
    ]
    assert made[0] == made[1]
    assert len(made[0]) >= 2


def test_both_modes_of_a_cloud_event_give_one_event_with_its_metadata() -> None:
    binary, structured = (
        json.loads(Intake().normalise(record)[0].value)
        for topic, record in samples()
        if topic.startswith("cloudevents.")
    )
    assert binary["row"] == structured["row"]
    assert binary["time"] == structured["time"] == 1_795_168_800_000_000_000
    assert binary["row"]["data"] == {"reason": "payments did not answer", "service": "orders"}
    assert relations([binary])["cloud_events"][0]["type"] == "shop.order.rejected"


def test_documents_one_behind_the_other_are_all_taken() -> None:
    record = {"time": 1_700_000_001, "level": "info", "msg": "x", "service": "a"}
    for joint in ("", "\n", "\r\n \t"):
        body = joint.join(json.dumps({**record, "service": name}) for name in "abc").encode()
        assert [item.key for item in Intake().normalise(incoming(body))] == [b"a", b"b", b"c"]


_LOG = b'{"time": 1700000001, "level": "info", "msg": "x", "service": "cart"}'
_XERIAL = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gzip.compress(_LOG, mtime=0), {}),
        (gzip.compress(_LOG[:9], mtime=0) + gzip.compress(_LOG[9:], mtime=0), {"content_encoding": "gzip"}),
        (bytes(cramjam.snappy.compress(_LOG)), {}),
        (bytes(cramjam.snappy.compress_raw(_LOG)), {"Content_Encoding": "snappy"}),
        (
            _XERIAL
            + b"".join(
                len(block).to_bytes(4, "big") + block
                for block in (bytes(cramjam.snappy.compress_raw(part)) for part in (_LOG[:20], _LOG[20:]))
            ),
            {},
        ),
        (zstandard.ZstdCompressor().compress(_LOG), {}),
    ],
)
def test_compressed_bodies_are_unpacked(body: bytes, headers: dict[str, str]) -> None:
    assert one(body, **headers)[:2] == ("log", "cart")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gzip.compress(bytes(bodies.LARGEST + 1), mtime=0), {}),
        (zstandard.ZstdCompressor().compress(bytes(bodies.LARGEST + 1)), {}),
        (b"\xff\xff\xff\xff\x0f", {"content-encoding": b"snappy"}),
        (b"\xff\x06\x00\x00sNaPpY" + bytes(bodies.LARGEST // 24), {}),
    ],
)
async def test_a_body_that_unfolds_to_too_much_is_poison(body: bytes, headers: dict[str, bytes]) -> None:
    with pytest.raises(Poison, match="unfold"):
        await Intake().process(Incoming("raw", 0, 0, body, headers=headers))


def test_the_setting_says_what_a_topic_holds() -> None:
    intake = Intake(load(raw_topics="a=otlp_proto, b=json,c=text,d"))
    proto = next(record.value for topic, record in samples() if topic == "otlp_proto.logs")
    assert len(intake.normalise(Incoming("a", 0, 0, proto))) == 2
    assert len(intake.normalise(Incoming("d", 0, 0, proto))) == 2
    with pytest.raises(Poison, match="no OTLP export request in protobuf"):
        intake.normalise(Incoming("a", 0, 0, b'{"a": 1}'))
    with pytest.raises(Poison, match="not JSON"):
        intake.normalise(Incoming("b", 0, 0, b"disk full"))
    (out,) = intake.normalise(Incoming("c", 0, 0, b"ERROR disk full\n  at stock", b"stock", 1_700_000_009_000))
    wire = json.loads(out.value)
    assert (wire["signal"], wire["entity"], wire["row"]["severity"]) == ("log", "stock", "ERROR")
    assert wire["row"]["body"] == "ERROR disk full\n  at stock"
    (point,) = intake.normalise(Incoming("c", 0, 0, b'up{job="cart"} 1 1700000001000\n'))
    assert (json.loads(point.value)["signal"], point.key) == ("metric", b"cart")
    with pytest.raises(HyveError, match=r"'a=avro' is not TOPIC=FORMAT, of the formats otlp_proto, json, text"):
        load(raw_topics="a=avro")


def test_a_content_type_says_what_a_body_is() -> None:
    proto = next(record.value for topic, record in samples() if topic == "otlp_proto.logs")
    headers = {"content-type": b"application/x-protobuf"}
    assert len(Intake().normalise(Incoming("raw", 0, 0, proto, headers=headers))) == 2
    with pytest.raises(Poison, match="no OTLP export"):
        Intake().normalise(Incoming("raw", 0, 0, b'{"a": 1}', headers=headers))
    event = {f"ce_{name}": b"1.0" for name in ("id", "source", "type", "specversion")}
    assert len(Intake().normalise(Incoming("raw", 0, 0, proto, headers={**headers, **event}))) == 2


def test_both_clients_read_all_of_kafkas_compressions() -> None:
    """A producer chooses the codec of its batches; a client without it can't read the topic at all."""
    for client in (aiokafka.codec, kafka.codec):
        assert all(getattr(client, f"has_{codec}")() for codec in ("gzip", "snappy", "lz4", "zstd"))


def test_a_cloud_event_without_data_has_none() -> None:
    event = {f"ce_{name}": "1.0" for name in ("id", "source", "type", "specversion")}
    assert "data" not in one(b"", **event)[3]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"\n\xfe\x01\x02\x03", "it begins as OTLP in protobuf does, but is cut or damaged"),
        (b"\x82\xa3log\xa1x\xa6stream\xa1y\xff", r"it begins as MessagePack does: let the producer write JSON"),
        (bytes(cramjam.snappy.compress_raw(b'{"a": "' + b"xyz" * 100)), "it is raw Snappy, which the header"),
        (b"\xff\xfe\x00", "can be read"),
        (b"disk full", "not JSON.*; for lines of text, set HYVE_RAW_TOPICS to TOPIC=text"),
    ],
)
def test_a_reason_says_what_to_do(value: bytes, says: str) -> None:
    with pytest.raises(Poison, match=says):
        Intake().normalise(incoming(value))


def test_plain_text_is_taken_where_its_type_says_so() -> None:
    signal, entity, _, row = one(b"ERROR disk full", b"stock", content_type="text/plain; charset=utf-8")
    assert (signal, entity, row["body"]) == ("log", "stock", "ERROR disk full")
    assert one(b'{"service": "cart"}', content_type="text/plain")[:2] == ("event", "cart")


@pytest.mark.parametrize(
    ("line", "nanoseconds"),
    [
        ("2023-11-14T22:13:21Z ERROR x", 0),
        ("[2023-11-14 22:13:21,250] ERROR x", 250_000_000),
        ("2023/11/14 22:13:21 x", 0),
        ("2023-11-15T00:13:21.5+02:00 x", 500_000_000),
    ],
)
def test_a_line_of_text_has_the_time_that_it_begins_with(line: str, nanoseconds: int) -> None:
    (out,) = Intake(load(raw_topics="c=text")).normalise(Incoming("c", 0, 0, line.encode(), timestamp=BASE // 10**6))
    assert json.loads(out.value)["time"] == 1_700_000_001 * 10**9 + nanoseconds
