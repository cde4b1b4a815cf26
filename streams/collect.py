"""Alerts in, a self-contained request out: reads the telemetry around them from Kafka, the only telemetry store.

Rules:
- Alerts of one group become one request. Its id is made of the fingerprint and the start of the first of them, so a
  group that is sent again overwrites its own result.
- What is read: between `window_minutes` before the first start and now (and what is here already of clocks that are
  up to HYVE_TIME_AHEAD ahead), the alerts' entities, every service that they call, directly or through others, and
  their direct callers. Each partition that one of them needs is read once. The entity of an alert is found as the
  intake finds a record's (`hyve.formats.entities`).
- The newest telemetry is kept where the byte limit cuts; what was cut is said in the request's notes,
  with counts.
- Telemetry may still be on its way when the alert comes: a read ends on silence (see `workers.kafka`).
- Reads block, so they run in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hyve.errors import HyveError
from hyve.formats import relations
from hyve.formats.entities import entity_key, peer_names
from hyve.formats.scalars import rfc3339_ns
from schemas import Alert, DiagnosisRequest, Payload
from streams import metrics
from streams.app import Poison, now_ms
from streams.calls import CALL, key_of
from streams.intake import SOURCE
from streams.patience import patiently
from workers import claims
from workers.kafka import RangeReader, Stored, partition_of
from workers.settings import Settings

log = logging.getLogger("hyve")

_ENTITIES = 12
"""Services around which telemetry is read for one request."""

_SPELLINGS = 20
"""Records of an entity that are asked how they spell it."""

_NAMED = 6
"""Kinds of alerts that a question names."""


@dataclass(frozen=True)
class Collected:
    """Telemetry lines in the order of time, and what the reader must know about them."""

    lines: tuple[str, ...]
    entities: tuple[str, ...]
    notes: tuple[str, ...]
    spelled: dict[str, str] = field(default_factory=dict)
    """How the lines spell an entity that has this key."""


class Graph:
    """Who calls whom, as the records that were read tell it, by the keys of entities."""

    def __init__(self) -> None:
        self._callees: dict[str, set[str]] = defaultdict(set)
        self._callers: dict[str, set[str]] = defaultdict(set)

    def learn(self, value: bytes) -> None:
        """Takes the edge that a telemetry record holds, if any."""
        # Most records hold none: the JSON of those is not parsed.
        if not (b'"peer_service":"' in value or value.startswith(CALL)):
            return
        try:
            record = json.loads(value)
            row = record["row"]
            caller, callee = (
                (row["caller"], row["callee"]) if record["signal"] == "call" else (row["service"], row["peer_service"])
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if isinstance(caller, str) and isinstance(callee, str):
            caller = entity_key(caller)
            for called in map(entity_key, peer_names(callee)):
                if caller != called:
                    self._callees[caller].add(called)
                    self._callers[called].add(caller)

    def around(self, entities: Collection[str]) -> set[str]:
        """The keys of the entities, of all that they call through any number of steps, and of their direct callers."""
        named = [entity_key(entity) for entity in entities]
        reached = set(named)
        left = list(named)
        while left:
            for callee in self._callees.get(left.pop(), ()):
                if callee not in reached:
                    reached.add(callee)
                    left.append(callee)
        return reached.union(*(self._callers.get(entity, ()) for entity in named))


class Window:
    """Telemetry that was read. Holds at most four times `limit` bytes: beyond that the oldest half goes, counted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: list[tuple[int, bytes, bytes]] = []
        self._size = 0
        self._lost: Counter[bytes] = Counter()  # records of each entity that had to go
        self._lost_bytes: Counter[bytes] = Counter()
        self._floor = 0  # nothing older is taken, once something newer had to go

    def add(self, timestamp: int, entity: bytes, line: bytes) -> None:
        """Takes one record; `timestamp` is epoch ms."""
        row = (timestamp, entity, line.replace(b"\n", b" "))
        self._size += len(line) + 1
        if timestamp < self._floor:
            self._lose([row])
            return
        self._rows.append(row)
        if self._size > 4 * self._limit:
            self._rows, lost = _newest(self._rows, 2 * self._limit)
            self._lose(lost)
            self._floor = lost[0][0]

    def _lose(self, rows: list[tuple[int, bytes, bytes]]) -> None:
        for _, entity, line in rows:
            self._lost[entity] += 1
            self._lost_bytes[entity] += len(line) + 1
            self._size -= len(line) + 1

    def take(self, entities: Collection[bytes] | None) -> Collected:
        """The newest records of `entities` (None: of all) that fit the limit, oldest first."""
        chosen = [row for row in self._rows if entities is None or row[1] in entities]
        names = {row[1] for row in chosen} | {name for name in self._lost if entities is None or name in entities}
        kept, left = _newest(chosen, self._limit)
        kept.reverse()
        size = sum(len(row[2]) + 1 for row in kept)
        total = size + sum(len(row[2]) + 1 for row in left) + sum(self._lost_bytes[name] for name in names)
        count = len(chosen) + sum(self._lost[name] for name in names)
        metrics.COLLECTED.labels("yes").inc(size)
        metrics.COLLECTED.labels("no").inc(total - size)
        notes: tuple[str, ...] = ()
        if len(kept) < count:
            said = (
                f"the newest {len(kept)} of {count} records ({size} of {total} bytes) are here, "
                f"from {_utc(kept[0][0])} on"
                if kept
                else f"none of {count} records is here: the newest is larger than HYVE_COLLECT_BYTES ({self._limit})"
            )
            notes = (f"telemetry was cut: {said}",)
        return Collected(
            tuple(row[2].decode("utf-8", "replace") for row in kept),
            tuple(sorted(name.decode("utf-8", "replace") for name in names)),
            notes,
            _spelled(kept),
        )


def _spelled(rows: list[tuple[int, bytes, bytes]]) -> dict[str, str]:
    """How the newest records of each key, oldest first among `rows`, spell their entity most often."""
    found: dict[bytes, Counter[str]] = {}
    for _, key, line in reversed(rows):
        names = found.setdefault(key, Counter())
        if names.total() < _SPELLINGS:
            try:
                entity = json.loads(line)["entity"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
            names[entity if isinstance(entity, str) else ""] += 1
    return {key.decode("utf-8", "replace"): names.most_common(1)[0][0] for key, names in found.items() if names.total()}


def _newest(
    rows: list[tuple[int, bytes, bytes]], limit: int
) -> tuple[list[tuple[int, bytes, bytes]], list[tuple[int, bytes, bytes]]]:
    """The newest rows that fit `limit` bytes, newest first, and the rest."""
    ordered = sorted(rows, key=lambda row: row[0], reverse=True)
    size = 0
    for index, row in enumerate(ordered):
        size += len(row[2]) + 1
        if size > limit:
            return ordered[:index], ordered[index:]
    return ordered, []


def read_around(settings: Settings, entities: Sequence[str], since: int, until: int) -> Collected:
    """Reads the telemetry of `entities` and their neighbours (none: of everything). Times are epoch ms."""
    graph = Graph()
    window = Window(settings.collect_bytes)
    seen: set[bytes] = set()
    done: set[int] = set()
    around: set[str] = set()
    wanted: set[bytes] | None = {key_of(entity) for entity in entities} or None
    deadline = time.monotonic() + settings.collect_timeout
    ahead = int(settings.time_ahead * 1000)  # clocks of services: what is dated later stands under the time it came
    with RangeReader(settings, settings.topic("telemetry"), since, until, deadline, ahead=ahead) as reader:
        while True:
            count = reader.partitions
            need = set(range(count)) if wanted is None else {partition_of(name, count) for name in wanted}
            new = sorted(need - done)
            if not new:
                break
            done.update(new)
            for record in reader.read(new):
                graph.learn(record.value)
                if not record.value.startswith(CALL) and _first(record, seen):
                    window.add(record.timestamp, record.key or b"", record.value)
            if entities:
                around = graph.around(entities)
                wanted = {name.encode("utf-8", "replace") for name in around}
        timed_out = reader.timed_out
    collected = window.take(wanted)
    notes = list(collected.notes)
    if timed_out:
        notes.append(f"reading telemetry was stopped after {settings.collect_timeout:g} s; some may be missing")
    between = f"between {_utc(since)} and {_utc(until)}"
    if not collected.entities:
        notes.append(f"no telemetry of {', '.join(entities) or 'any entity'} was found {between}")
    elif entities and around <= set(map(entity_key, entities)):
        notes.append(f"no span says whom {', '.join(entities)} called or who called it {between}: no neighbour is here")
    return replace(collected, notes=tuple(notes))


def _first(record: Stored, seen: set[bytes]) -> bool:
    """Whether the event is new: a raw record that the intake took twice gives each of its events twice."""
    source = next((value for name, value in record.headers if name == SOURCE), None)
    if source is None:
        return True
    if source in seen:
        return False
    seen.add(source)
    return True


def request_id(alert: Alert) -> str:
    """The same for every delivery of the same firing of an alert."""
    fingerprint, start = firing(alert)
    digest = hashlib.blake2b(f"{fingerprint}\n{start}".encode("utf-8", "replace"), digest_size=10)
    return f"alert-{digest.hexdigest()}"


def webhook_form(alert: Alert) -> dict[str, Any]:
    """The alert as Alertmanager writes it: what the request's data shows."""
    form: dict[str, Any] = {
        "status": alert.status,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "endsAt": alert.ends_at,
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }
    return {**form, "values": alert.values} if alert.values else form


def question(alerts: Sequence[Alert], entities: Sequence[str]) -> str:
    """What the alerts ask, as a sentence."""
    first = alerts[0]
    on = f" on {', '.join(entities)}" if entities else ""
    since = _since(min(alerts, key=started))
    about = first.annotations.get("summary") or first.annotations.get("description") or ""
    said = f" It says: {about.strip()[:500]}" if about.strip() else ""
    if len(alerts) == 1:
        head = f"{_name(first)} is firing{on} since {since}.{said}"
    else:
        counts = Counter(map(_name, alerts))
        names = [f"{name} ({count})" if count > 1 else name for name, count in counts.most_common(_NAMED)]
        more = f" and {len(counts) - _NAMED} others" if len(counts) > _NAMED else ""
        head = f"{len(alerts)} alerts are firing{on} since {since}: {', '.join(names)}{more}.{said}"
    return f"{head} What is the root cause, and what shows it?"


def _since(alert: Alert) -> str:
    """When an alert began, in UTC as all times that are told."""
    at = started(alert)
    if not at or alert.starts_at.endswith("Z"):
        return alert.starts_at
    return f"{datetime.fromtimestamp(at // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"


def firing(alert: Alert) -> tuple[str, int | str]:
    """What tells one firing of an alert from all others: its start is an instant, however it is written."""
    return alert.fingerprint, started(alert) or alert.starts_at


def started(alert: Alert) -> int:
    """When the alert began, in epoch nanoseconds; 0 where that can't be read."""
    return rfc3339_ns(alert.starts_at) or 0


def _name(alert: Alert) -> str:
    return alert.labels.get("alertname") or "An alert"


class Collect:
    """Makes requests of alerts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def request(self, alerts: Sequence[Alert]) -> DiagnosisRequest:
        """The request of a group's alerts, the most severe first. `Poison` where Kafka can't be read, or the
        store of large data not be written, for long."""
        settings = self._settings
        began = time.perf_counter()
        created = now_ms()
        asked = request_id(min(alerts, key=lambda alert: (started(alert), alert.fingerprint)))
        forms = [webhook_form(alert) for alert in alerts]
        services = dict.fromkeys(row["service"] for row in relations(forms)["alerts"])
        entities = [service for service in services if service != "unknown"]
        notes = []
        if not entities:
            notes.append("the alerts name no service, workload or host: telemetry of all of them was read")
        if len(entities) > _ENTITIES:
            notes.append(f"telemetry was read around {_ENTITIES} of {len(entities)} services that the alerts name")
            entities = entities[:_ENTITIES]
        if missing := max(alert.truncated for alert in alerts):
            notes.append(f"the sender left out {missing} alerts of this group")
        first = min((at // 1_000_000 for at in map(started, alerts) if at > 0), default=created)
        since = min(first, created) - int(settings.window_minutes * 60_000)
        collected = await self._read(entities, since, created)
        # Telemetry may write a service in another way than the alert does: who reads both looks for one name.
        entities = list(dict.fromkeys(collected.spelled.get(entity_key(name)) or name for name in entities))
        spent = (time.perf_counter() - began) * 1000
        log.info("collect: %s: %d records of %s", asked, len(collected.lines), ", ".join(collected.entities))
        payloads = [
            Payload(name="alert.json", text=json.dumps(forms if len(forms) > 1 else forms[0], ensure_ascii=False))
        ]
        if collected.lines:
            payloads.append(Payload(name="telemetry.ndjson", text="\n".join(collected.lines)))
        made = DiagnosisRequest(
            request_id=asked,
            question=question(alerts, entities),
            payloads=tuple(payloads),
            budget=settings.budget,
            focus=tuple(entities),
            deadline=created + int(settings.deadline * 1000),
            created=min((alert.received for alert in alerts if alert.received), default=created),
            notes=(*notes, *collected.notes),
            ms={"collect": spent},
            identity=asked,  # made twice, it finds other telemetry and is the same all the same
        )
        try:
            return await patiently(
                lambda: asyncio.to_thread(claims.check_in, settings.claim_url, made, settings.claim_bytes),
                lambda error: isinstance(error, claims.Unreachable),
                f"collect: {asked}",
            )
        except HyveError as error:
            raise Poison(str(error)) from None

    async def _read(self, entities: Sequence[str], since: int, until: int) -> Collected:
        """Reads with three tries: a broker that restarts is no reason to give an alert up."""
        for attempt, pause in enumerate((1.0, 5.0, 0.0), 1):
            try:
                return await asyncio.to_thread(read_around, self._settings, entities, since, until)
            except HyveError as error:
                if not pause:
                    raise Poison(str(error), attempts=attempt) from None
                log.warning("collect: %s; trying again", error)
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
