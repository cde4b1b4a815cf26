"""Intake: raw records that unfold to very much go out slice by slice, whole or not at all, in bounded memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterable
from typing import Any

import pytest

from hyve.formats import otlp_proto
from schemas import DeadLetter
from streams import intake, reading
from streams.app import Incoming, Outgoing, Poison, Undeliverable, attempt, deliver_or_bury
from streams.intake import SOURCE, Intake
from tests.unit.streams.raw_records import BASE, incoming, one, spans


class Kafka:
    """Takes records, but for those of more than `largest` bytes."""

    def __init__(self, largest: int = 1 << 30) -> None:
        self.largest = largest
        self.taken: list[list[Outgoing]] = []

    async def send(self, records: Iterable[Outgoing]) -> None:
        listed = list(records)
        if any(len(it.value) > self.largest for it in listed if it.topic == "telemetry"):
            raise Undeliverable("too many bytes for hyve.telemetry")
        self.taken.append(listed)

    @property
    def telemetry(self) -> list[Outgoing]:
        return [it for taken in self.taken for it in taken if it.topic == "telemetry"]

    async def take(self, record: Incoming) -> None:
        """As a worker does it."""
        process = Intake(send=self.send).process
        await deliver_or_bury(self.send, await attempt(process, record, "intake"), record, "intake")

    def letters(self) -> list[DeadLetter]:
        return [DeadLetter.from_bytes(it.value) for taken in self.taken for it in taken if it.topic == "deadletters"]


def log(number: int, **more: Any) -> dict[str, Any]:
    return {"time": BASE / 1e9 + number, "level": "info", "msg": f"line {number}", "service": f"s{number % 7}", **more}


def lines(count: int) -> bytes:
    return b"\n".join(json.dumps(log(i)).encode() for i in range(count))


def export(count: int) -> bytes:
    return json.dumps(spans("orders", None, *(BASE + i * 1000 for i in range(count)))).encode()


def zipkin(count: int) -> bytes:
    """A list that can't be read in runs: the halves of a call find each other in it."""
    about = {"name": "get /", "localEndpoint": {"serviceName": "orders"}, "duration": 5}
    start = BASE // 1000
    return json.dumps(
        [{"traceId": f"{i + 1:032x}", "id": f"{i + 1:016x}", "timestamp": start + i, **about} for i in range(count)]
    ).encode()


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (lines(15_000), 15_000),
        (b"[" + lines(15_000).replace(b"\n", b",") + b"]", 15_000),
        (export(8_000), 8_000),
        (zipkin(12_000), 12_000),
    ],
    ids=["lines", "list", "export", "inseparable"],
)
async def test_a_long_raw_record_gives_the_same_records_in_slices(body: bytes, count: int) -> None:
    """Requirement: nothing is lost, whatever the size; each record says its place in the raw one."""
    assert len(body) > reading.LONG
    kafka = Kafka()
    record = Incoming("raw", 0, 7, gzip.compress(body), timestamp=1_700_000_009_000)
    await kafka.take(record)
    whole = [item for run in reading.reader(record, at_once=True)() for item in run]
    sent = kafka.telemetry
    assert len(whole) == len(sent) == count
    assert [json.loads(it.value) for it in sent] == [json.loads(intake.wire(item)) for item in whole]
    assert [it.headers[SOURCE] for it in sent] == [f"raw/0/7/{i}".encode() for i in range(count)]
    assert max(map(len, kafka.taken)) <= intake.SLICE
    assert not kafka.letters()


async def test_a_small_raw_record_of_many_lines_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A raw record of kilobytes: 14,000 records, of which each takes kilobytes itself while it is under way."""
    monkeypatch.setattr(intake, "LONG", 1 << 18)
    monkeypatch.setattr(reading, "LONG", 1 << 18)
    monkeypatch.setattr(intake, "SLICE", 500)
    packed = gzip.compress(b'{"a":1}%32s\n' % b"" * 14_000)
    assert len(packed) < 4_000
    sent = most = 0

    async def send(records: Iterable[Outgoing]) -> None:
        nonlocal sent, most
        sent += len(list(records))
        most = max(most, tracemalloc.get_traced_memory()[1])

    tracemalloc.start()
    try:
        assert await Intake(send=send).process(incoming(packed)) == ()
        most = max(most, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert sent == 14_000
    assert most < 12 << 20


@pytest.mark.parametrize("body", [b'{"a":1}\n' * 2_000, b"[" + b'{"a":1},' * 2_000 + b"{}]"])
async def test_more_records_than_one_may_give_are_one_dead_letter(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "SLICE", 100)
    monkeypatch.setattr(intake, "MOST", 1_000)
    kafka = Kafka()
    await kafka.take(incoming(gzip.compress(body)))
    (letter,) = kafka.letters()
    assert "it unfolds to more than 1000 records" in letter.error
    assert kafka.telemetry == []


async def test_rows_that_repeat_a_large_resource_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_BYTES", 10 << 20)
    record = {"body": {"stringValue": "x"}}
    resource = {"attributes": [{"key": "large", "value": {"stringValue": "y" * 100_000}}]}
    body = json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record] * 1_000}]}]})
    kafka = Kafka()
    await kafka.take(incoming(body.encode()))
    (letter,) = kafka.letters()
    assert f"more than {10 << 20} bytes" in letter.error
    assert kafka.telemetry == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[" + b"[]," * 2_000_000 + b"[]]", "4000000 are the most"),
        (b"{}" * 600_000, "can't be read in parts: 500000 are the most"),
        (b"\x0a\x00" * 40_000, "the request has more than 10000 parts"),
    ],
    ids=["lists", "documents", "resources"],
)
async def test_what_would_take_gigabytes_is_refused(body: bytes, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_proto, "_FIELDS", 10_000)
    with pytest.raises(Poison, match=says):
        await Intake().process(incoming(gzip.compress(body, 1)))


@pytest.mark.parametrize("count", [1_000, 12_000])
async def test_a_record_that_kafka_refuses_takes_the_whole_raw_record_along(count: int) -> None:
    """Whole or not at all: one large line among others, and nothing of them is written."""
    large = json.dumps(log(500, note="z" * 3_000_000)).encode()
    body = b"\n".join((lines(count // 2), large, lines(count // 2)))
    kafka = Kafka(largest=2_000_000)
    await kafka.take(incoming(gzip.compress(body)))
    assert kafka.telemetry == []
    (letter,) = kafka.letters()
    assert "too many bytes for hyve.telemetry" in letter.error
    willing = Kafka()
    await willing.take(incoming(gzip.compress(body)))
    assert len({it.headers[SOURCE] for it in willing.telemetry}) == len(willing.telemetry) == 2 * (count // 2) + 1


def field(number: int, held: bytes) -> bytes:
    """A field that holds bytes, as protobuf writes it."""
    size, left = bytearray(), len(held)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((number << 3 | 2, *size, left)) + held


def nested(depth: int) -> bytes:
    """A log record whose body is an object in an object, and so on. The classes can't make one that is too deep."""
    value = field(1, b"deep")
    for _ in range(depth):
        value = field(6, field(1, field(1, b"k") + field(2, value)))
    return field(5, value)


@pytest.mark.parametrize("others", [9, 0])
async def test_logs_nested_too_deep_for_protobuf_are_a_dead_letter(others: int) -> None:
    """They are no metrics without points, of which nothing would be left."""

    def request(*records: bytes) -> bytes:
        return field(1, field(2, b"".join(field(2, record) for record in records)))

    for headers in ({}, {"content-type": b"application/x-protobuf"}):
        kafka = Kafka()
        await kafka.take(Incoming("raw", 0, 0, request(*[nested(1)] * others, nested(40)), headers=headers))
        (letter,) = kafka.letters()
        assert "OTLP in protobuf, but cut or damaged, or nested deeper" in letter.error
        assert kafka.telemetry == []
    (out,) = Intake().normalise(incoming(request(nested(30))))
    assert "deep" in json.loads(out.value)["row"]["body"]


@pytest.mark.parametrize("bare", [False, True])
def test_deflate_is_unpacked(bare: bool) -> None:
    packer = zlib.compressobj(wbits=-15 if bare else 15)
    body = packer.compress(json.dumps(log(1)).encode()) + packer.flush()
    assert one(body, content_encoding="deflate")[:2] == ("log", "s1")


@pytest.mark.parametrize("level", [6, 9])
def test_zlib_is_known_by_its_first_bytes(level: int) -> None:
    assert one(zlib.compress(json.dumps(log(1)).encode(), level))[:2] == ("log", "s1")


def test_the_reason_names_an_encoding_that_is_not_unpacked() -> None:
    record = Incoming("raw", 0, 0, b"\x8b\x00\x80br\x03", headers={"content-encoding": b"br"})
    with pytest.raises(Poison, match="its content-encoding is 'br': gzip, zstd, snappy and deflate can be unpacked"):
        Intake().normalise(record)
