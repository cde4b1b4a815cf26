"""Raw telemetry in, normalised records out: the first half of the intake worker.

Rules:
- One raw record is used whole or not at all: what can't be decoded (see `streams.reading`), or gives too much, is a
  dead letter with its bytes; what holds nothing is counted. An event is kept as it came but for what UTF-8 JSON can't
  hold or Python's doubles can't: NaN and infinite numbers become null, half surrogates "?", further values of a
  repeated key get a number to their key, and a number of more digits than a double has is rounded.
- A raw record of kilobytes may unfold to millions of records. What is more than one slice is read twice, one such raw
  record at a time: first to see that all of it can be used, then to send it slice by slice.
- Kafka may refuse one record for its size. The one that takes most is sent before all others: where it is refused,
  nothing was written.
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
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import cramjam
import orjson

from hyve.formats import Record
from hyve.formats.scalars import plain
from hyve.strictjson import Pairs
from schemas import TelemetryRecord
from streams import metrics
from streams.app import BATCH, Incoming, Outgoing, Poison, Send, Undeliverable, now_ms
from streams.bodies import Larger
from streams.calls import Calls, key_of
from streams.reading import LONG, Inseparable, Runs, reader
from workers.kafka import ORIGIN
from workers.settings import Settings

SOURCE = "hyve-source"
_DIGEST = re.compile(r"[0-9a-fA-F-]{16,}|[A-Za-z0-9+/]{20,}={1,2}")
"""Keys that producers make to spread records: ids of traces, digests."""


SLICE, SLICE_BYTES = 5_000, 4 << 20
"""Records that go out at a time, and bytes after which no more of them do."""

MOST, MOST_BYTES = 250_000, 256 << 20
"""Records that a raw record may give, and their bytes."""


class Many(Exception):
    """A raw record gives more than goes out at once."""


class _Made(NamedTuple):
    """One record of a raw record, its place among them, what is sent, and why its timestamp is not its own time."""

    place: int
    item: Record
    out: Outgoing
    moved: str


class Intake:
    """`process` turns one raw record into telemetry records. Remembers the newest spans and the calls it told of."""

    def __init__(self, settings: Settings | None = None, send: Send | None = None) -> None:
        """`send` delivers what doesn't go out at once, and what may be refused."""
        settings = settings or Settings()
        self._formats = settings.raw_formats
        self._behind, self._ahead = int(settings.time_behind * 1000), int(settings.time_ahead * 1000)
        self._calls = Calls()
        self._send = send
        self._one = asyncio.Lock()

    async def process(self, record: Incoming) -> Sequence[Outgoing]:
        """The normalised records that are left to send; `Poison` where the raw record can't be used."""
        made: Sequence[Outgoing] | None = None
        with suppress(Many):
            made = await asyncio.to_thread(self.normalise, record)
        if made is None:
            async with self._one:
                await self._in_slices(record)
            return ()
        large = [out for out in made if len(out.value) > BATCH]
        if large and len(made) > 1:
            largest = await asyncio.to_thread(max, large, key=_packed)
            await self._deliver([largest])
            made = [out for out in made if out is not largest]
        return made

    def normalise(self, record: Incoming) -> list[Outgoing]:
        """The blocking work of `process`. `Many` where the records are too many, or too large, to go out at once."""
        try:
            every = self._made(record, reader(record, self._formats.get(record.topic, ""), LONG))
            made = self._slice(every)
            if next(every, None) is not None:
                raise Many
        except Larger:
            raise Many from None
        return self._told(made)

    async def _in_slices(self, record: Incoming) -> None:
        runs, count, largest = await asyncio.to_thread(self._weighed, record)
        if largest is not None:
            await self._deliver(self._told([largest]))
        sent = 0
        every = self._made(record, runs)
        # All that reads it has one context: what it sets there is taken back at its end.
        following = partial(asyncio.get_running_loop().run_in_executor, None, copy_context().run, self._slice, every)
        while made := await following():
            sent += len(made)
            rest = [it for it in made if largest is None or it.place != largest.place]
            await self._deliver(self._told(rest), f"; {sent - len(made)} of its {count} records were written")

    async def _deliver(self, out: Sequence[Outgoing], more: str = "") -> None:
        if self._send is None:
            raise RuntimeError("this intake has nothing to send with")
        try:
            await self._send(out)
        except Undeliverable as error:
            raise Poison(f"{error}{more}") from None

    def _weighed(self, record: Incoming) -> tuple[Runs, int, _Made | None]:
        """What reads a long raw record, how many records it gives, and the one of them that takes most, if one is
        larger than a batch. `Poison` where they are too many or too large."""
        form = self._formats.get(record.topic, "")
        runs = reader(record, form)
        try:
            return runs, *self._weigh(record, runs)
        except Inseparable:
            runs = reader(record, form, at_once=True)
            return runs, *self._weigh(record, runs)

    def _weigh(self, record: Incoming, runs: Runs) -> tuple[int, _Made | None]:
        count = size = most = 0
        largest: _Made | None = None
        for it in self._made(record, runs):
            count += 1
            size += len(it.out.value)
            if count > MOST or size > MOST_BYTES:
                raise Poison(
                    f"it unfolds to more than {MOST} records, or to more than {MOST_BYTES} bytes of them: let the "
                    "producer send smaller ones"
                )
            if len(it.out.value) > BATCH and (packed := _packed(it.out)) > most:
                largest, most = it, packed
        return count, largest

    @staticmethod
    def _slice(made: Iterator[_Made]) -> list[_Made]:
        """The next ones, as many as go out at a time."""
        found: list[_Made] = []
        size = 0
        for it in made:
            found.append(it)
            size += len(it.out.value)
            if len(found) == SLICE or size > SLICE_BYTES:
                break
        return found

    def _made(self, record: Incoming, runs: Runs) -> Iterator[_Made]:
        """The records that a raw record holds, each with what is sent."""
        now = now_ms()
        # A producer's clock may be ahead too.
        arrived = record.timestamp if 0 < record.timestamp <= now else now
        name = _name(record.key)
        origin = record.headers.get(ORIGIN, b"").decode("utf-8", "replace")
        source = f"{origin or f'{record.topic}/{record.partition}/{record.offset}'}/"
        for number, item in enumerate(item for found in runs() for item in found):
            if item.entity == "unknown" and name:
                row = {**item.row, "service": name} if item.signal != "event" else item.row
                item = replace(item, entity=name, row=row)
            ms, why = self._stamp(item.time // 1_000_000, arrived)
            if why == "missing":
                item = replace(item, time=ms * 1_000_000)
                why = "ahead" if _beyond(item.row) else why
            headers = {SOURCE: f"{source}{number}".encode()}
            yield _Made(number, item, Outgoing("telemetry", key_of(item.entity), wire(item), None, ms, headers), why)

    def _told(self, made: Sequence[_Made]) -> list[Outgoing]:
        """What is sent for these records, counted: they, and the calls that they tell of."""
        out: list[Outgoing] = []
        for it in made:
            out.append(it.out)
            if calls := self._calls.of(it.item, it.out.timestamp or 0):
                out.extend(calls)
        for why, count in Counter(it.moved for it in made if it.moved).items():
            metrics.EVENT_TIMES.labels(why).inc(count)
        for signal, count in (Counter(it.item.signal for it in made) or {"none": 1}).items():
            metrics.EVENTS.labels(signal).inc(count)
        return out

    def _stamp(self, ms: int, arrived: int) -> tuple[int, str]:
        """The Kafka timestamp of an event of epoch `ms` (0: unknown), and why it is not the event's own."""
        if ms <= 0:
            return arrived, "missing"
        if ms > arrived + self._ahead:
            return arrived, "ahead"
        return (arrived, "behind") if ms < arrived - self._behind else (ms, "")


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


def _packed(out: Outgoing) -> int:
    """About what a record takes on Kafka, where it has a batch of its own."""
    return len(cramjam.lz4.compress(out.value))


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
