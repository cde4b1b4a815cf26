"""Raw telemetry in, normalised records out: the first half of the intake worker.

Rules:
- What a body holds is what the setting says of its topic, else what its headers say (`content-type`, `ce_*`), else what
  its bytes look like: OTLP in protobuf, or JSON. Compressed bodies are unpacked first.
- One raw record is used whole or not at all: what can't be decoded is a dead letter with its bytes. A JSON object of no
  known format is an event, kept as it came.
- A normalised record's key is its entity, or where none is found the raw record's key if that is a name. Its Kafka
  timestamp is the event time. A time too far behind or ahead of the raw record would fall out of the topic at once, or
  be refused by Kafka: then the raw record's time is the timestamp, and the record itself keeps what it said.
- The header `hyve-source` names the raw record and the place in it, so that a raw record that is read twice can be told
  apart from two equal events.
- For each call between services, a small "call" record goes under the callee's key once a minute of event
  time: the collector finds an entity's callers in the entity's own partition, without reading all the
  others.
- Decoding runs in a thread: the event loop goes on.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from hyve.formats import Record, events, find, normalised, otlp_proto
from hyve.formats.rows import log_record
from hyve.formats.scalars import Relations, plain
from hyve.strictjson import Pairs
from schemas import TelemetryRecord
from streams import metrics
from streams.app import Incoming, Outgoing, Poison, now_ms
from streams.bodies import unpack, values
from streams.recent import Recent
from workers.settings import Settings

SOURCE = "hyve-source"
CALL = b'{"signal":"call"'  # how the wire form of a "call" record begins
_MINUTE = 60_000
_BLANKS = b" \t\r\n\xef\xbb\xbf"
_CLOUD_EVENT = ("id", "source", "type", "specversion")
_DIGEST = re.compile(r"[0-9a-fA-F-]{16,}|[A-Za-z0-9+/]{20,}={1,2}")
"""Keys that producers make to spread records: ids of traces, digests."""


class Intake:
    """`process` turns one raw record into telemetry records. Remembers which calls it has already told of."""

    def __init__(self, settings: Settings | None = None, remember: int = 20_000) -> None:
        settings = settings or Settings()
        self._formats = settings.raw_formats
        self._behind, self._ahead = int(settings.time_behind * 1000), int(settings.time_ahead * 1000)
        self._calls = Recent[tuple[str, str, int]](remember)

    async def process(self, record: Incoming) -> Sequence[Outgoing]:
        """The normalised records; `Poison` where the raw record can't be used."""
        return await asyncio.to_thread(self.normalise, record)

    def normalise(self, record: Incoming) -> list[Outgoing]:
        """The blocking work of `process`."""
        found = read(record, self._formats.get(record.topic, ""))
        now = now_ms()
        # A producer's clock may be ahead too.
        arrived = record.timestamp if 0 < record.timestamp <= now else now
        name = _name(record.key)
        source = f"{record.topic}/{record.partition}/{record.offset}/"
        out: list[Outgoing] = []
        moved: Counter[str] = Counter()
        for item in found:
            if item.entity == "unknown" and name:
                row = {**item.row, "service": name} if item.signal != "event" else item.row
                item = replace(item, entity=name, row=row)
            ms, why = self._stamp(item.time // 1_000_000, arrived)
            if why:
                moved[why] += 1
                if why == "missing":
                    item = replace(item, time=ms * 1_000_000)
            headers = {SOURCE: f"{source}{len(out)}".encode()}
            out.append(Outgoing("telemetry", _key(item.entity), wire(item), None, ms, headers))
            if item.signal == "span":
                out.extend(self._call(item.row, item.time, ms))
        for why, count in moved.items():
            metrics.EVENT_TIMES.labels(why).inc(count)
        for signal, count in Counter(item.signal for item in found).items():
            metrics.EVENTS.labels(signal).inc(count)
        return out

    def _stamp(self, ms: int, arrived: int) -> tuple[int, str]:
        """The Kafka timestamp of an event of epoch `ms` (0: unknown), and why it is not the event's own."""
        if ms <= 0:
            return arrived, "missing"
        if ms > arrived + self._ahead:
            return arrived, "ahead"
        return (arrived, "behind") if ms < arrived - self._behind else (ms, "")

    def _call(self, row: dict[str, Any], time: int, ms: int) -> list[Outgoing]:
        caller, callee = row.get("service"), row.get("peer_service")
        if not isinstance(caller, str) or not isinstance(callee, str) or caller == callee:
            return []
        told = (caller, callee, ms // _MINUTE)
        if told in self._calls:
            return []
        self._calls.add(told)
        call = TelemetryRecord(signal="call", entity=callee, time=time, row={"caller": caller, "callee": callee})
        return [Outgoing("telemetry", _key(callee), call.to_bytes(), None, ms)]


def read(record: Incoming, form: str = "") -> list[Record]:
    """The records that a raw record holds; `form` is what its topic is said to hold. Raises `Poison`."""
    headers = {name.lower(): value.decode("utf-8", "replace") for name, value in record.headers.items()}
    body = unpack(record.value, headers.get("content-encoding", "").strip().lower())
    kind = headers.get("content-type", "").lower()
    form = form or ("otlp_proto" if "protobuf" in kind else "json" if "json" in kind else "")
    event = {name[3:]: value for name, value in headers.items() if name.startswith(("ce_", "ce-"))}
    if all(name in event for name in _CLOUD_EVENT):
        return _cloud_event(event, body, kind, form)
    if form == "text":
        return _text(body)
    if form != "json" and (form or body.lstrip(_BLANKS)[:1] not in (b"{", b"[")):
        found = otlp_proto.read(body)
        if found is not None:
            return normalised(found)
        if form:
            raise Poison(f"these {len(body)} bytes are no OTLP export request in protobuf")
    try:
        return _json(values(body))
    except Poison:
        # A protobuf message may begin with the bytes of a line feed and a brace.
        found = otlp_proto.read(body) if not form and body[:1] == b"\n" else None
        if found is None:
            raise
        return normalised(found)


def _json(found: list[Any]) -> list[Record]:
    records, known = events.records(found)
    if not known:
        raise Poison("this JSON holds no object: nothing in it can be telemetry")
    return records


def _text(body: bytes) -> list[Record]:
    """Lines of a format of text, else one log record."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        raise Poison("the record is empty")
    found: Relations = find((), text.splitlines()).relations
    return normalised(found) or normalised(
        {"log_records": [log_record(None, "unknown", text.strip("\r\n"), attributes={}, resource={})]}
    )


def _cloud_event(event: dict[str, Any], body: bytes, kind: str, form: str) -> list[Record]:
    """A CloudEvent in binary mode: its attributes are headers, its data is the body."""
    if form == "otlp_proto" and (found := otlp_proto.read(body)) is not None:
        return normalised(found)
    if kind:
        event["datacontenttype"] = kind
    try:
        read = values(body)
        event["data"] = read[0] if len(read) == 1 else read
    except Poison:
        try:
            event["data"] = body.decode("utf-8")
        except UnicodeDecodeError:
            event["data_base64"] = b64encode(body).decode("ascii")
    return _json([event])


def wire(record: Record) -> bytes:
    """The record as JSON. Numbers and texts that orjson refuses are `TelemetryRecord`'s to write."""
    value = record.wire()
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        return TelemetryRecord(**_mended(value)).to_bytes()


def _plain(value: Any) -> Any:
    if isinstance(value, Pairs):
        return plain(value)
    raise TypeError


def _mended(value: Any) -> Any:
    if isinstance(value, Pairs):
        value = plain(value)
    if isinstance(value, dict):
        return {key: _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value


def _key(entity: str) -> bytes:
    return entity.encode("utf-8", "replace")


def _name(key: bytes | None) -> str:
    """A raw record's key as a name, "" where it is none."""
    try:
        text = (key or b"").decode("utf-8").strip()
    except UnicodeDecodeError:
        return ""
    return text if 0 < len(text) <= 200 and text.isprintable() and not _DIGEST.fullmatch(text) else ""
