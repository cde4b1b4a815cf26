"""Who calls whom, as the intake sees it: small "call" records by which the collector finds an entity's neighbours in
the entity's own partition, without reading all the others.

Rules:
- A span that names whom it calls tells the callee: its own record tells the caller's side. Most services name nobody,
  or an address that is no service; but what a span of another service has for a parent, or links to, called it. That is
  told to both.
- The two spans of such a pair come in any order and in different raw records, so the newest spans' services are
  remembered, and the parents that were missing. The memory is bounded: two halves of `remember` ids, the older one is
  dropped when the newer one is full. With several workers a pair is seen where both spans come to one worker; of the
  many pairs of a minute one is enough.
- The same call is told once a minute of event time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from hyve.formats import Record
from hyve.formats.entities import entity_key
from schemas import TelemetryRecord
from streams.app import Outgoing
from streams.recent import Recent

CALL = b'{"signal":"call"'  # how the wire form of a "call" record begins
_MINUTE = 60_000
_TOLD = 20_000
_CHILDREN = 8
"""Services that wait for one missing parent."""

V = TypeVar("V")


class Calls:
    """Turns spans into call records. Several threads may ask at a time: what one adds, the next one finds."""

    def __init__(self, remember: int = 50_000) -> None:
        self._told = Recent[tuple[str, str, int, bool]](_TOLD)
        self._services = Halves[tuple[str, bool]](remember)
        self._waiting = Halves[tuple[str, ...]](remember)

    def of(self, item: Record, ms: int) -> Iterator[Outgoing]:
        """The call records that a span or a span's link gives; `ms` is its Kafka timestamp."""
        row = item.row
        service = row.get("service")
        if item.signal not in ("span", "span_link") or type(service) is not str or service == "unknown":
            return
        service = sys.intern(service)
        trace = row.get("trace_id")
        if item.signal == "span_link":
            yield from self._child(row.get("linked_trace_id"), row.get("linked_span_id"), service, item.time, ms)
            return
        peer = row.get("peer_service")
        if type(peer) is str and peer:
            yield from self._call(service, peer, item.time, ms, both=False)
        span = _id(trace, row.get("span_id"))
        if span is None:
            return
        serves = row.get("kind") == "server"
        before = self._services.get(span)
        self._services.put(span, (service, serves))
        if before is not None and before[1] != serves:  # Zipkin's halves of one call have one id
            pair = (before[0], service) if serves else (service, before[0])
            yield from self._call(*pair, item.time, ms, both=True)
        for child in self._waiting.get(span) or ():
            yield from self._call(service, child, item.time, ms, both=True)
        yield from self._child(trace, row.get("parent_span_id"), service, item.time, ms)

    def _child(self, trace: Any, parent: Any, service: str, time: int, ms: int) -> Iterator[Outgoing]:
        above = _id(trace, parent)
        if above is None:
            return
        caller = self._services.get(above)
        if caller is None:
            others = self._waiting.get(above) or ()
            if service not in others:
                self._waiting.put(above, (*others, service)[-_CHILDREN:])
            caller = self._services.get(above)  # it may have come meanwhile
        if caller is not None:
            yield from self._call(caller[0], service, time, ms, both=True)

    def _call(self, caller: str, callee: str, time: int, ms: int, *, both: bool) -> Iterator[Outgoing]:
        ends = entity_key(caller), entity_key(callee)
        told = (*ends, ms // _MINUTE, both)
        if ends[0] == ends[1] or told in self._told:
            return
        self._told.add(told)
        for entity in (callee, caller) if both else (callee,):
            call = TelemetryRecord(signal="call", entity=entity, time=time, row={"caller": caller, "callee": callee})
            yield Outgoing("telemetry", key_of(entity), call.to_bytes(), None, ms)


class Halves(Generic[V]):
    """A dict that keeps the newest `most` to twice as many keys, at the cost of a dict's."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[int, V] = {}
        self._old: dict[int, V] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def get(self, key: int) -> V | None:
        """What was put under `key`, None where it is forgotten."""
        found = self._new.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: int, value: V) -> None:
        """Keeps `value` under `key`."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, {}
        self._new[key] = value


def key_of(entity: str) -> bytes:
    """The Kafka key of what is about `entity`, however it is spelled."""
    return entity_key(entity).encode("utf-8", "replace")


def _id(trace: Any, span: Any) -> int | None:
    """A span's id within its trace; two of them are alike once in a very long while, which would tell one call."""
    return hash((trace, span)) if type(span) is str and span and (trace is None or type(trace) is str) else None
