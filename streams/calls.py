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

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from hyve.formats import Record
from hyve.formats.entities import entity_key, peer_names
from schemas import TelemetryRecord
from streams.app import Outgoing
from streams.recent import Recent

CALL = b'{"signal":"call"'  # how the wire form of a "call" record begins
_MINUTE = 60_000
_TOLD = 20_000
_CHILDREN = 8
"""Services that wait for one missing parent."""

_SIGNALS = frozenset({"span", "span_link"})
_CALLING = frozenset({"client", "producer"})
"""Kinds of spans that another service's span is no parent of: what makes a call runs where it was decided on."""

V = TypeVar("V")


class Calls:
    """Turns spans into call records. Several threads may ask at a time: what one adds, the next one finds."""

    def __init__(self, remember: int = 50_000) -> None:
        self._told = Recent[tuple[str, str, int, bool]](_TOLD)
        self._services = Halves[tuple[str, bool]](remember)
        self._waiting = Halves[tuple[str, ...]](remember)

    def of(self, item: Record, ms: int) -> Sequence[Outgoing]:
        """The call records that a span or a span's link gives; `ms` is its Kafka timestamp."""
        signal, row = item.signal, item.row
        if signal not in _SIGNALS:
            return ()
        service = row.get("service")
        if type(service) is not str or service == "unknown":
            return ()
        out: list[Outgoing] = []
        when = item.time, ms
        if signal == "span_link":
            self._child(out, _id(row.get("linked_trace_id"), row.get("linked_span_id")), service, when)
            return out
        peer, kind, trace = row.get("peer_service"), row.get("kind"), row.get("trace_id")
        if peer and type(peer) is str:
            for callee in peer_names(peer):
                self._call(out, service, callee, when, both=False)
        span = _id(trace, row.get("span_id"))
        if span is None:
            return out
        serves = kind == "server"
        services = self._services
        before = services.get(span)
        services.put(span, (service, serves))
        if before is not None and before[1] != serves:  # Zipkin's halves of one call have one id
            pair = (before[0], service) if serves else (service, before[0])
            self._call(out, *pair, when, both=True)
        if children := self._waiting.get(span):
            for child in children:
                self._call(out, service, child, when, both=True)
        if kind not in _CALLING:
            self._child(out, _id(trace, row.get("parent_span_id")), service, when)
        return out

    def _child(self, out: list[Outgoing], above: int | None, service: str, when: tuple[int, int]) -> None:
        if above is None:
            return
        caller = self._services.get(above)
        if caller is None:
            others = self._waiting.get(above) or ()
            if service not in others:
                self._waiting.put(above, (*others, service)[-_CHILDREN:])
            caller = self._services.get(above)  # it may have come meanwhile
        if caller is not None and caller[0] != service:
            self._call(out, caller[0], service, when, both=True)

    def _call(self, out: list[Outgoing], caller: str, callee: str, when: tuple[int, int], *, both: bool) -> None:
        time, ms = when
        told = caller, callee, ms // _MINUTE, both
        if told in self._told:
            return
        self._told.add(told)
        if entity_key(caller) == entity_key(callee):
            return
        for entity in (callee, caller) if both else (callee,):
            call = TelemetryRecord(signal="call", entity=entity, time=time, row={"caller": caller, "callee": callee})
            out.append(Outgoing("telemetry", key_of(entity), call.to_bytes(), None, ms))


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


@lru_cache(maxsize=8192)
def key_of(entity: str) -> bytes:
    """The Kafka key of what is about `entity`, however it is spelled."""
    return entity_key(entity).encode("utf-8", "replace")


def _id(trace: Any, span: Any) -> int | None:
    """A span's id within its trace; two of them are alike once in a very long while, which would tell one call."""
    return hash((trace, span)) if span and type(span) is str and (type(trace) is str or trace is None) else None
