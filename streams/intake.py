"""Raw telemetry in, normalised records out: the first half of the intake worker.

Rules:
- One raw record is used whole or not at all: what can't be decoded or recognised is a dead letter with
  its bytes.
- A normalised record's key is its entity and its Kafka timestamp the event time. The header `hyve-source`
  names the raw record and the place in it, so that a raw record that is read twice can be told apart from
  two equal events.
- For each call between services, a small "call" record goes under the callee's key once a minute of event
  time: the collector finds an entity's callers in the entity's own partition, without reading all the
  others.
- Decoding runs in a thread: the event loop goes on.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from hyve.formats import RECOGNISERS, records
from schemas import TelemetryRecord
from streams.app import Incoming, Outgoing, Poison, now_ms

SOURCE = "hyve-source"
CALL = b'{"signal":"call"'  # how the wire form of a "call" record begins
_MINUTE = 60_000
_LATEST = 4_102_444_800_000  # the year 2100: what lies beyond is a unit error, not an event


class Intake:
    """`process` turns one raw record into telemetry records. Remembers which calls it has already told of."""

    def __init__(self, remember: int = 20_000) -> None:
        self._calls: OrderedDict[tuple[str, str, int], None] = OrderedDict()
        self._remember = remember

    async def process(self, record: Incoming) -> Sequence[Outgoing]:
        """The normalised records; `Poison` where the raw record can't be used."""
        return await asyncio.to_thread(self.normalise, record)

    def normalise(self, record: Incoming) -> list[Outgoing]:
        """The blocking work of `process`."""
        out: list[Outgoing] = []
        source = f"{record.topic}/{record.partition}/{record.offset}/"
        known = False
        for value in _values(record.value):
            found = records(value)
            known = known or bool(found) or any(recognise(value) is not None for recognise in RECOGNISERS)
            for item in found:
                ms = item.time // 1_000_000
                if not 0 < ms < _LATEST:
                    ms = record.timestamp if record.timestamp > 0 else now_ms()
                wire = TelemetryRecord(signal=item.signal, entity=item.entity, time=item.time, row=item.row)
                headers = {SOURCE: f"{source}{len(out)}".encode()}
                key = item.entity.encode("utf-8", "replace")
                out.append(Outgoing("telemetry", key, wire.to_bytes(), None, ms, headers))
                if item.signal == "span":
                    out.extend(self._call(item.row, item.time, ms))
        if not known:
            raise Poison("no telemetry format is recognised in this JSON (OTLP JSON is; see the documentation)")
        return out

    def _call(self, row: dict[str, Any], time: int, ms: int) -> list[Outgoing]:
        caller, callee = row.get("service"), row.get("peer_service")
        if not isinstance(caller, str) or not isinstance(callee, str) or caller == callee:
            return []
        told = (caller, callee, ms // _MINUTE)
        if told in self._calls:
            return []
        self._calls[told] = None
        if len(self._calls) > self._remember:
            self._calls.popitem(last=False)
        call = TelemetryRecord(signal="call", entity=callee, time=time, row={"caller": caller, "callee": callee})
        return [Outgoing("telemetry", callee.encode("utf-8", "replace"), call.to_bytes(), None, ms)]


def _values(data: bytes) -> list[Any]:
    """The JSON value of `data`, or the values of its lines."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Poison(f"not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}") from None
    if not text.strip():
        raise Poison("the record is empty")
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1:
            try:
                return [json.loads(line) for line in lines]
            except (ValueError, RecursionError):
                pass
        raise Poison(f"not JSON: {error.msg} at offset {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise Poison(f"JSON that can't be read: {str(error)[:200]}") from None
