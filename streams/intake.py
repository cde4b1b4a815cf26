"""Raw telemetry in, normalised records out: the first half of the intake worker.

Rules:
- What a body holds is what the setting says of its topic, else what its headers say (`content-type`, `ce_*`), else what
  its bytes look like: OTLP in protobuf, or JSON. Compressed bodies are unpacked first.
- One raw record is used whole or not at all: what can't be decoded is a dead letter with its bytes. A JSON object of no
  known format is an event, and so is what stands in a known one where a record should; what holds nothing is counted.
  An event is kept as it came but for what UTF-8 JSON can't hold or Python's doubles can't: NaN and infinite numbers
  become null, half surrogates "?", further values of a repeated key get a number to their key, and a number of more
  digits than a double has is rounded.
- A normalised record's key is that of its entity (`hyve.formats.entities`), or where none is found the raw record's key
  if that is a name. Its Kafka timestamp is the event time. A time too far behind or ahead of the raw record would fall
  out of the topic at once, or be refused by Kafka: then the raw record's time is the timestamp, and the record itself
  keeps what it said.
- The header `hyve-source` names the raw record and the place in it, so that a raw record that is read or replayed twice
  can be told apart from two equal events.
- Calls between services are told to the collector by records of their own (`streams.calls`).
- Decoding runs in a thread: the event loop goes on.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from hyve.formats import Record, events, normalised, otlp_proto, text_relations
from hyve.formats.rows import log_record
from hyve.formats.scalars import instant_ns, plain
from hyve.strictjson import Pairs
from schemas import TelemetryRecord
from streams import metrics
from streams.app import Incoming, Outgoing, Poison, now_ms
from streams.bodies import unpack, values
from streams.calls import Calls, key_of
from workers.kafka import ORIGIN
from workers.settings import Settings

SOURCE = "hyve-source"
_BLANKS = b" \t\r\n\xef\xbb\xbf"
_CLOUD_EVENT = ("id", "source", "type", "specversion")
_DIGEST = re.compile(r"[0-9a-fA-F-]{16,}|[A-Za-z0-9+/]{20,}={1,2}")
"""Keys that producers make to spread records: ids of traces, digests."""


class Intake:
    """`process` turns one raw record into telemetry records. Remembers the newest spans and the calls it told of."""

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self._formats = settings.raw_formats
        self._behind, self._ahead = int(settings.time_behind * 1000), int(settings.time_ahead * 1000)
        self._calls = Calls()

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
        origin = record.headers.get(ORIGIN, b"").decode("utf-8", "replace")
        source = f"{origin or f'{record.topic}/{record.partition}/{record.offset}'}/"
        out: list[Outgoing] = []
        moved: Counter[str] = Counter()
        for item in found:
            if item.entity == "unknown" and name:
                row = {**item.row, "service": name} if item.signal != "event" else item.row
                item = replace(item, entity=name, row=row)
            ms, why = self._stamp(item.time // 1_000_000, arrived)
            if why:
                if why == "missing":
                    item = replace(item, time=ms * 1_000_000)
                    why = "ahead" if _beyond(item.row) else why
                moved[why] += 1
            headers = {SOURCE: f"{source}{len(out)}".encode()}
            out.append(Outgoing("telemetry", key_of(item.entity), wire(item), None, ms, headers))
            if calls := self._calls.of(item, ms):
                out.extend(calls)
        for why, count in moved.items():
            metrics.EVENT_TIMES.labels(why).inc(count)
        for signal, count in (Counter(item.signal for item in found) or {"none": 1}).items():
            metrics.EVENTS.labels(signal).inc(count)
        return out

    def _stamp(self, ms: int, arrived: int) -> tuple[int, str]:
        """The Kafka timestamp of an event of epoch `ms` (0: unknown), and why it is not the event's own."""
        if ms <= 0:
            return arrived, "missing"
        if ms > arrived + self._ahead:
            return arrived, "ahead"
        return (arrived, "behind") if ms < arrived - self._behind else (ms, "")


def read(record: Incoming, form: str = "") -> list[Record]:
    """The records that a raw record holds; `form` is what its topic is said to hold. Raises `Poison`."""
    headers = {name.lower(): value.decode("utf-8", "replace") for name, value in record.headers.items()}
    body = unpack(record.value, headers.get("content-encoding", "").strip().lower())
    kind = headers.get("content-type", "").lower()
    bare = body.lstrip(_BLANKS)[:1] in (b"{", b"[")
    plain_text = kind.startswith("text/plain") and not bare
    form = form or ("otlp_proto" if "protobuf" in kind else "json" if "json" in kind else "text" if plain_text else "")
    event = {name[3:]: value for name, value in headers.items() if name.startswith(("ce_", "ce-"))}
    if all(name in event for name in _CLOUD_EVENT):
        return _cloud_event(event, body, kind, form)
    if form == "text":
        return _text(body)
    if form != "json" and (form or not bare):
        found = otlp_proto.read(body)
        if found is not None:
            return normalised(found)
        if form:
            raise Poison(f"these {len(body)} bytes are no OTLP export request in protobuf, or are cut or damaged")
    try:
        return _json(values(body))
    except Poison as error:
        # A protobuf message may begin with the bytes of a line feed and a brace.
        found = otlp_proto.read(body) if not form and body[:1] == b"\n" else None
        if found is None:
            raise Poison(f"{error}{'' if form else _advice(body)}") from None
        return normalised(found)


def _advice(body: bytes) -> str:
    """What may be wrong with a body that nothing was recognised in, and what to do."""
    try:
        if body.strip().decode("utf-8")[:1] in ("{", "[", ""):
            return ""
        return "; for lines of text, set HYVE_RAW_TOPICS to TOPIC=text"
    except UnicodeDecodeError:
        pass
    with suppress(Poison):
        unpack(body, "snappy")
        return "; it is raw Snappy, which the header content-encoding: snappy must say"
    if body[:1] == b"\n":
        return "; it begins as OTLP in protobuf does, but is cut or damaged"
    if body[0] in _MSGPACK:
        return "; it begins as MessagePack does: let the producer write JSON (Fluent Bit: Format json)"
    return "; JSON, OTLP in protobuf, and text by setting (TOPIC=text) can be read"


_MSGPACK = frozenset((*range(0x80, 0xA0), *range(0xDC, 0xE0)))  # its maps and lists


def _json(found: list[Any]) -> list[Record]:
    records, known = events.records(_unpaired(found))
    if not known:
        raise Poison("this JSON holds no object: nothing in it can be telemetry")
    return records


def _unpaired(found: list[Any]) -> list[Any]:
    """Fluent Bit's events, [time, record] or [[time, metadata], record], as records with their time."""
    if len(found) == 1 and type(found[0]) is list and not _is_pair(found[0]) and any(map(_is_pair, found[0])):
        found = found[0]
    return [_with_time(value) if _is_pair(value) else value for value in found]


def _is_pair(value: Any) -> bool:
    if type(value) is not list or len(value) != 2 or type(value[1]) is not dict:
        return False
    head = value[0][0] if type(value[0]) is list and value[0] else value[0]
    return type(head) in (int, float) and instant_ns(head) is not None


def _with_time(pair: list[Any]) -> dict[str, Any]:
    head, record = pair
    about = {"metadata": head[1]} if type(head) is list and len(head) > 1 and head[1] else {}
    return {"@timestamp": head[0] if type(head) is list else head, **about, **record}


def _text(body: bytes) -> list[Record]:
    """Lines of a format of text, else one log record, of the time with which its text begins."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        raise Poison("the record is empty")
    found = text_relations(text.splitlines())
    return normalised(found) or normalised(
        {"log_records": [log_record(_begun(text), "unknown", text.strip("\r\n"), attributes={}, resource={})]}
    )


def _begun(text: str) -> int | None:
    match = _TIME.match(text[:80])
    return instant_ns(match[1].replace(",", ".")) if match else None


_TIME = re.compile(r"\s*[\[(]?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?)")


def _cloud_event(event: dict[str, Any], body: bytes, kind: str, form: str) -> list[Record]:
    """A CloudEvent in binary mode: its attributes are headers, its data is the body."""
    if form == "otlp_proto" and (found := otlp_proto.read(body)) is not None:
        return normalised(found)
    if kind:
        event["datacontenttype"] = kind
    if not body:
        return _json([event])
    try:
        read = values(body)
        event["data"] = read[0] if len(read) == 1 else read
    except Poison:
        try:
            event["data"] = body.decode("utf-8")
        except UnicodeDecodeError:
            event["data_base64"] = b64encode(body).decode("ascii")
    return _json([event])


def _beyond(row: dict[str, Any]) -> bool:
    """Whether a row without a time says one that epoch nanoseconds can't hold, such as the year 9999."""
    own = row.get("attributes")
    values = (holder.get(key) for holder in (row, own if type(own) is dict else {}) for key in _TIMES)
    return any(type(value) is str and _FAR.match(value) is not None for value in values)


_TIMES = ("time", "timestamp", "@timestamp", "ts", "@t")
_FAR = re.compile(r"(?:22[7-9]|2[3-9]\d|[3-9]\d\d)\d-\d\d")


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


def _name(key: bytes | None) -> str:
    """A raw record's key as a name, "" where it is none."""
    try:
        text = (key or b"").decode("utf-8").strip()
    except UnicodeDecodeError:
        return ""
    return text if 0 < len(text) <= 200 and text.isprintable() and not _DIGEST.fullmatch(text) else ""
