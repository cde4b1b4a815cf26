"""What a raw record holds: the bytes of any producer as normalised records.

Rules:
- What a body holds is what the setting says of its topic, else what its headers say (`content-type`, `ce_*`), else what
  its bytes look like: OTLP in protobuf, or JSON. Compressed bodies are unpacked first.
- A JSON object of no known format is an event, and so is what stands in a known one where a record should.
- Memory is bounded: a long list, long lines and a long request in protobuf come in runs, and are read again for each
  reading. What has to be read at once is refused where it is long.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from hyve.formats import Record, events, normalised, otlp_proto, text_relations
from hyve.formats.by_runs import Inseparable, sort_out_runs
from hyve.formats.rows import log_record
from hyve.formats.scalars import instant_ns
from hyve.strictjson import Ahead, Lines
from streams.app import Incoming, Poison
from streams.bodies import LARGEST, Larger, in_runs, unpack, values

LONG = 1 << 20
"""Bytes of a body that is read in runs, if it can be."""

_LINES = 250_000
"""Most lines of a body of text."""

Runs = Callable[[], Iterator[list[Record]]]
"""Reads the records in runs, each time that it is called."""

_BLANKS = b" \t\r\n\xef\xbb\xbf"
_CLOUD_EVENT = ("id", "source", "type", "specversion")


def reader(record: Incoming, form: str = "", largest: int = LARGEST, at_once: bool = False) -> Runs:
    """What reads a raw record; `form` is what its topic is said to hold.

    Raises `Poison`, and `Larger` for a body of over `largest` bytes. So does the reading; it raises `Inseparable` where
    runs don't say what the whole does, unless the body is to be read `at_once`.
    """
    headers = {name.lower(): value.decode("utf-8", "replace") for name, value in record.headers.items()}
    encoding = headers.get("content-encoding", "").strip().lower()
    body = unpack(record.value, encoding, largest)
    if len(body) > largest:
        raise Larger(f"the body has more than {largest} bytes")
    kind = headers.get("content-type", "").lower()
    bare = body.lstrip(_BLANKS)[:1] in (b"{", b"[")
    plain_text = kind.startswith("text/plain") and not bare
    form = form or ("otlp_proto" if "protobuf" in kind else "json" if "json" in kind else "text" if plain_text else "")
    event = {name[3:]: value for name, value in headers.items() if name.startswith(("ce_", "ce-"))}
    if all(name in event for name in _CLOUD_EVENT):
        found = _protobuf(body) if form == "otlp_proto" else None
        return found or _once(_cloud_event(event, body, kind))
    if form == "text":
        return _once(_text(body))
    if form != "json" and (form or not bare):
        found = _protobuf(body)
        if found is not None:
            return found
        if form:
            raise Poison(f"these {len(body)} bytes are no OTLP export request in protobuf, or are cut or damaged")
    try:
        listed = in_runs(body) if len(body) > LONG and not at_once else None
        return _once(_json(values(body))) if listed is None else partial(_listed, listed)
    except Poison as error:
        # A protobuf message may begin with the bytes of a line feed and a brace.
        found = _protobuf(body) if not form and body[:1] == b"\n" else None
        if found is None:
            raise Poison(f"{error}{'' if form else _advice(body, encoding)}") from None
        return found


def _once(found: list[Record]) -> Runs:
    return lambda: iter([found])


def _protobuf(body: bytes) -> Runs | None:
    """What reads a request in protobuf; None where the body looks like none."""
    runs = otlp_proto.runs(body)
    if runs is None:
        return None

    def read() -> Iterator[list[Record]]:
        try:
            yield from map(normalised, runs())
        except DecodeError:
            raise Poison(
                f"these {len(body)} bytes are OTLP in protobuf, but cut or damaged, or nested deeper than the 100 "
                "messages that protobuf reads (33 objects in each other)"
            ) from None
        except otlp_proto.TooMuch as error:
            raise Poison(f"{error}; let the producer send smaller records") from None

    return read


def _advice(body: bytes, encoding: str) -> str:
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
    if encoding not in ("", "identity"):
        return f"; its content-encoding is {encoding[:40]!r}: gzip, zstd, snappy and deflate can be unpacked"
    if body[0] in _MSGPACK:
        return "; it begins as MessagePack does: let the producer write JSON (Fluent Bit: Format json)"
    return "; JSON, OTLP in protobuf, and text by setting (TOPIC=text) can be read"


_MSGPACK = frozenset((*range(0x80, 0xA0), *range(0xDC, 0xE0)))  # its maps and lists


def _json(found: list[Any]) -> list[Record]:
    records, known = events.records(_unpaired(found))
    if not known:
        raise Poison("this JSON holds no object: nothing in it can be telemetry")
    return records


def _listed(found: Ahead | Lines) -> Iterator[list[Record]]:
    """The same of a long list, or of long lines, of objects."""
    for records, rest in sort_out_runs(found.runs(), found.path, isinstance(found, Lines)):
        yield [*records, *(event for value in rest for event in events.events(value))]


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
    if (count := text.count("\n")) > _LINES:
        raise Poison(f"it has {count} lines of text: {_LINES} are the most, let the producer send fewer at a time")
    found = text_relations(text.splitlines())
    return normalised(found) or normalised(
        {"log_records": [log_record(_begun(text), "unknown", text.strip("\r\n"), attributes={}, resource={})]}
    )


def _begun(text: str) -> int | None:
    match = _TIME.match(text[:80])
    return instant_ns(match[1].replace(",", ".")) if match else None


_TIME = re.compile(r"\s*[\[(]?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?)")


def _cloud_event(event: dict[str, Any], body: bytes, kind: str) -> list[Record]:
    """A CloudEvent in binary mode: its attributes are headers, its data is the body."""
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


__all__ = ["LONG", "Inseparable", "Runs", "reader"]
