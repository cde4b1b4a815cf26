"""Alerts that wait for their turn: groups of them, the most severe first.

Rules:
- An alert that was asked about, waits, or is being asked about is not taken again: resent alerts ask nothing twice. One
  that comes while it is being asked about is done when that is: it may be the same record, given once more.
  What an earlier worker asked is read back from the alerts topic itself: all that stands below the offset that the
  group has committed was worked on. Not all before the first record that this worker is given: Faust leaves some out
  while partitions move, and gives them later.
- Alerts of one group that wait at the same time become one request. A turn comes after `alert_settle` seconds, so that
  alerts of one moment meet; then the group with the most severe alert is first, and among equals the one that waited
  longest. Waiting raises a group by one severity a minute, so no storm starves it.
- An alert that resolves before its turn leaves the queue.
- Bounded: when `alert_queue` alerts wait, no more are read, and Kafka keeps them. None is dropped; each outcome is
  counted.
- A record is given back when its alert is done, in the order of its partition (see `streams.ledger`). Faust waits for
  none of them, neither when partitions are handed out anew nor at its end: it would take minutes.
- A partition that goes to another worker takes its waiting alerts along.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import faust
from faust.types import TP

from hyve.errors import HyveError
from schemas import Alert
from streams import metrics
from streams.app import WITHIN, Incoming, Outgoing, Poison, Send, buried, deliver_or_bury
from streams.collect import Collect, firing, started
from streams.ledger import Ledger
from streams.recent import Recent
from workers import kafka
from workers.group import Place
from workers.settings import Settings

log = logging.getLogger("hyve")

Firing = tuple[str, int | str]
"""See `streams.collect.firing`."""

_STAGE = "collect"
_REMEMBERED = 50_000
_RAISED_AFTER = 60.0
_READ_SECONDS = 30.0
_SEVERITIES = (
    ("critical", "page", "emergency", "fatal", "disaster", "p1", "sev1", "1"),
    ("error", "high", "major", "severe", "p2", "sev2", "2"),
    ("warning", "warn", "medium", "average", "minor", "p3", "sev3", "3"),
    ("info", "low", "notice", "none", "debug", "p4", "p5", "sev4", "4", "5"),
)
_RANKS = {name: rank for rank, names in enumerate(_SEVERITIES) for name in names}
_UNTOLD = 2


def rank(alert: Alert) -> int:
    """0 for the most severe alerts to 3; one that tells no known severity is a warning."""
    for key in ("severity", "priority", "level"):
        found = _RANKS.get(alert.labels.get(key, "").strip().lower())
        if found is not None:
            return found
    return _UNTOLD


@dataclass
class Waiting:
    """An alert, the record that it came with, and what gives the record back."""

    alert: Alert
    record: Incoming
    done: Callable[[], None]
    since: float

    @property
    def key(self) -> Firing:
        """The same for every delivery of the same firing."""
        return firing(self.alert)

    @property
    def place(self) -> Place:
        """Where it came from."""
        return self.record.topic, self.record.partition


class Pending:
    """The alerts that wait, by their groups. Pure: `now` is given in seconds."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._groups: OrderedDict[str, list[Waiting]] = OrderedDict()
        self._keys: set[Firing] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Firing) -> bool:
        return key in self._keys

    def add(self, waiting: Waiting) -> None:
        """Takes an alert that is not waiting yet."""
        self._groups.setdefault(waiting.alert.group, []).append(waiting)
        self._keys.add(waiting.key)

    def resolve(self, alert: Alert) -> list[Waiting]:
        """Takes out what `alert` says is over: the same one's firings that began no later."""
        over = started(alert)
        return self._take(lambda it: it.alert.fingerprint == alert.fingerprint and started(it.alert) <= over)

    def leave(self, places: Iterable[Place]) -> list[Waiting]:
        """Takes out what came from `places`."""
        gone = set(places)
        return self._take(lambda it: it.place in gone)

    def _take(self, which: Callable[[Waiting], bool]) -> list[Waiting]:
        taken = [it for group in self._groups.values() for it in group if which(it)]
        for it in taken:
            group = self._groups[it.alert.group]
            group.remove(it)
            self._keys.discard(it.key)
            if not group:
                del self._groups[it.alert.group]
        return taken

    def next(self, now: float) -> list[Waiting]:
        """The group whose turn it is, its most severe alert first; empty where none has settled."""

        def urgency(name: str) -> tuple[float, float]:
            group = self._groups[name]
            first = min(it.since for it in group)
            return min(rank(it.alert) for it in group) - (now - first) // _RAISED_AFTER, first

        settled = [name for name, group in self._groups.items() if now - min(it.since for it in group) >= self._settle]
        if not settled:
            return []
        chosen = self._groups.pop(min(settled, key=urgency))
        self._keys -= {it.key for it in chosen}
        return sorted(chosen, key=lambda it: (rank(it.alert), started(it.alert), it.alert.fingerprint))


class AlertQueue:
    """Takes alert records, and sends one request for each group when its turn comes."""

    def __init__(
        self, settings: Settings, collect: Collect, send: Send, committed: Callable[[str, int], int | None]
    ) -> None:
        """`committed`: the offset that the group has committed of a topic and partition, None where there is none."""
        self._settings, self._collect, self._send = settings, collect, send
        self._committed = committed
        self._pending = Pending(settings.alert_settle)
        self._asked = Recent[Firing](_REMEMBERED)
        self._asking: dict[Firing, list[Waiting]] = {}
        """Of what is being asked about, those that came meanwhile."""
        self._known: set[Place] = set()
        self._changed = asyncio.Event()
        self._turns: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Alerts whose turn has not come."""
        return len(self._pending)

    async def take(self, record: Incoming, done: Callable[[], None]) -> None:
        """Takes one record; `done` is called when its alert is. Waits while the queue is full."""
        place = record.topic, record.partition
        if place not in self._known:
            self._known.add(place)
            below = min(record.offset, max(0, self._committed(*place) or 0))
            for key in await asyncio.to_thread(self._asked_before, record, below):
                self._asked.add(key)
        try:
            alert = Alert.from_bytes(record.value)
        except ValueError as error:
            await deliver_or_bury(self._send, [buried(record, _STAGE, Poison(str(error)))], record, _STAGE)
            done()
            return
        if not alert.group:
            alert = alert.model_copy(update={"group": alert.fingerprint})
        waiting = Waiting(alert, record, done, time.monotonic())
        if alert.status == "resolved":
            for it in (*self._pending.resolve(alert), waiting):
                self._finish(it, "resolved" if it is waiting else "cancelled")
        elif waiting.key in self._asking:
            self._asking[waiting.key].append(waiting)
        elif waiting.key in self._pending or waiting.key in self._asked:
            self._finish(waiting, "repeated")
        else:
            self._pending.add(waiting)
            self._changed.set()
        while len(self._pending) >= self._settings.alert_queue:
            self._changed.clear()
            await self._changed.wait()

    def _asked_before(self, record: Incoming, below: int) -> list[Firing]:
        """The firings that stand in the partition of `record` below an offset. Blocks."""
        last = below - 1
        if last < 0:
            return []
        now = time.time()
        since, until = int((now - self._settings.alert_memory * 3600) * 1000), int((now + 3600) * 1000)
        found = []
        try:
            with kafka.RangeReader(
                self._settings, record.topic, since, until, time.monotonic() + _READ_SECONDS
            ) as reader:
                for stored in reader.read([record.partition]):
                    if stored.offset > last:
                        break
                    with contextlib.suppress(ValueError):
                        alert = Alert.from_bytes(stored.value)
                        if alert.status == "firing":
                            found.append(firing(alert))
                    if stored.offset == last:
                        break
        except HyveError as error:
            log.warning("collect: %s; alerts that were asked about before may be asked about again", error)
        return found

    def _finish(self, waiting: Waiting, outcome: str) -> None:
        metrics.ALERTS.labels(outcome).inc()
        if outcome in ("cancelled", "repeated"):
            log.info("collect: alert %s %s", waiting.alert.fingerprint, outcome)
        waiting.done()

    async def run(self) -> None:
        """Gives turns until it is cancelled."""
        try:
            while True:
                if len(self._turns) < self._settings.alert_turns and (group := self._pending.next(time.monotonic())):
                    self._asking.update((it.key, []) for it in group)
                    turn = asyncio.create_task(self._turn(group))
                    self._turns.add(turn)
                    turn.add_done_callback(self._turns.discard)
                    self._changed.set()
                    continue
                await asyncio.sleep(WITHIN)
        finally:
            for turn in self._turns:
                turn.cancel()

    async def _turn(self, group: list[Waiting]) -> None:
        """One request for a group. What can't be asked about goes to the dead letters, record by record."""
        try:
            request = await self._collect.request([it.alert for it in group])
            await self._send([Outgoing.of("requests", request.request_id, request)])
        except Exception as error:
            for it in group:
                await deliver_or_bury(self._send, [buried(it.record, _STAGE, error)], it.record, _STAGE)
                self._told(it, "failed")
            return
        for it in group:
            self._asked.add(it.key)
            self._told(it, "asked")

    def _told(self, waiting: Waiting, outcome: str) -> None:
        """Gives back an alert that was asked about, and those like it that came meanwhile."""
        self._finish(waiting, outcome)
        for again in self._asking.pop(waiting.key, ()):
            self._finish(again, "repeated")

    def forget(self, places: Iterable[Place]) -> None:
        """Partitions that go to another worker take along what waits. Their records are not given back."""
        gone = set(places)
        for it in self._pending.leave(gone):
            log.info("collect: alert %s goes to another worker", it.alert.fingerprint)
        self._known -= gone
        self._changed.set()


def serve_alerts(app: faust.App, settings: Settings, send: Send) -> AlertQueue:
    """Registers the agent that reads the alerts, and the task that gives them turns."""

    def committed(topic: str, partition: int) -> int | None:
        consumer: Any = app.consumer
        found: int | None = consumer.committed_offset(TP(topic, partition))
        return found

    queue = AlertQueue(settings, Collect(settings), send, committed)
    metrics.ALERTS_WAITING.set_function(lambda: queue.waiting)
    ledger = Ledger()

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            event.message.incref()
            app.consumer.unacked.discard(event.message)
            if ledger.take(event):
                await queue.take(Incoming.of(event.message), partial(ledger.done, event))
                metrics.taken(event.message.topic).inc()

    def revoked(_: Any, /, *given: Any, signal: Any, **__: Any) -> None:
        places = [(place.topic, place.partition) for place in given[0]]
        ledger.forget(places)
        queue.forget(places)

    app.agent(app.topic(settings.topic("alerts"), value_type=bytes), name=f"{app.conf.id}.{_STAGE}")(agent)
    app.task(queue.run)
    app.on_partitions_revoked.connect(revoked)
    return queue
