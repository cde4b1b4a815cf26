"""Whether a worker is alive, and whether it is ready: by what it gets done, not by whether its port answers.

Rules:
- Alive: the event loop turns, and where there is something to do, something gets done. To do are the records in hand,
  deliveries under way, and what the group has not acknowledged of this worker's partitions (asked of the broker apart
  from Faust, whose consumers die quietly). Done is a record worked on to its end, a delivery, a commit.
- Nothing done for `stall_limit` seconds is death, and so is one record in hand, or one partition whose committed
  offset stands still, for `record_limit`: no work takes that long, not even with all others before it in line.
- While Kafka doesn't answer, only the loop counts: starting anew would help nobody. When it answers again, all limits
  begin anew.
- Ready: partitions are assigned, or other members have them all (a standby), and what the worker holds is warm. While
  the group shares its partitions out anew, a worker that had some stays ready for as long as that may take. Without an
  answer from Kafka for longer than a hiccup, no worker is: what it takes it could not put anywhere.
- That the worker got ready or ceased to be, and that Kafka is gone or back, is one line of the log each.
- The loop, the thread that asks the broker, and those of the metrics port meet here: all state is behind one lock.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import faust
from prometheus_client.core import GaugeMetricFamily, Metric

from hyve.errors import HyveError
from streams import metrics
from streams.app import Incoming, Outgoing, Process, Send
from workers.group import GroupReader, Offsets, Place
from workers.settings import Settings

log = logging.getLogger("hyve")

LOOP_LIMIT: Final = 30.0
_BEAT: Final = 1.0
_ASK_EVERY: Final = 5.0
_PATIENCE: Final = 3.0
"""Seconds after which a question that Kafka hasn't answered says that it is gone."""

_OUTAGE: Final = 15.0
"""Seconds between two answers after which all limits begin anew, and without one after which no worker is ready."""


@dataclass(frozen=True)
class Fault:
    """What is wrong; `since` is on the clock of the health, in seconds."""

    check: str
    what: str
    since: float


@dataclass(frozen=True)
class _InHand:
    stage: str
    place: Place
    timestamp: int
    since: float


@dataclass(frozen=True)
class _Standing:
    """Where the group is in a partition, and since when it has stood there with something left to do."""

    offsets: Offsets
    since: float
    real: bool = True

    @property
    def behind(self) -> int:
        """Records that are left to do."""
        return self.offsets.lag if self.real else 0


class Health:
    """The state of one worker process. `clock` is seconds that only go forward."""

    def __init__(self, settings: Settings, kind: str, clock: Any = time.monotonic) -> None:
        self._settings, self._kind, self._clock = settings, kind, clock
        self._ours = {settings.topic(name) for name in settings.topics()} - set(settings.raw)
        self._lock = threading.Lock()
        self._born = self._done = clock()
        self._beaten: float | None = None
        self._answered: float | None = None  # when Kafka answered last; none where it failed to
        self._asked: float | None = None  # when it was asked what it has not answered yet
        self._last: float | None = None  # when it did before
        self._kafka_since: float | None = None  # since when it does without a long break
        self._assigned: frozenset[Place] | None = None
        self._moving: float | None = self._born  # since when there has been no assignment
        self._standby = False
        self._stages: set[str] = set()
        self._hand: dict[object, _InHand] = {}
        self._sending: dict[object, float] = {}
        self._places: dict[Place, _Standing] = {}
        self._waits: dict[str, tuple[str, float]] = {}
        self._notes: list[str] = []
        self._told = ""  # what the log was told last
        self._silent: float | None = None  # since when Kafka has not answered, as the log was told
        self._app: Any = None

    # What the worker tells.

    def attach(self, app: faust.App) -> None:
        """Follows the application: its loop, its partitions, its end. Starts the thread that asks the broker."""
        self._app = app

        async def beat() -> None:
            while True:
                self.beat()
                self.tell()
                await asyncio.sleep(_BEAT)

        async def assigned(_: Any, /, *given: Any, signal: Any, **__: Any) -> None:
            metrics.REBALANCES.inc()
            self.assigned((place.topic, place.partition) for place in given[0])

        async def revoked(_: Any, /, *given: Any, signal: Any, **__: Any) -> None:
            self.revoked()

        app.task(beat)
        app.on_partitions_assigned.connect(assigned)
        app.on_partitions_revoked.connect(revoked)
        reader = GroupReader(self._settings, app.conf.id)
        threading.Thread(target=self._ask, args=(reader,), name="group-watch", daemon=True).start()

    def watched(self, stage: str, process: Process) -> Process:
        """`process`, whose records are seen while they are in hand."""

        self._stages.add(stage)

        async def watched(record: Incoming) -> Sequence[Outgoing]:
            taken = object()
            with self._lock:
                place = record.topic, record.partition
                self._hand[taken] = _InHand(stage, place, record.timestamp, self._clock())
            try:
                return await process(record)
            finally:
                with self._lock:
                    del self._hand[taken]
                    self._done = self._clock()

        return watched

    def sending(self, send: Send) -> Send:
        """`send`, whose deliveries are seen while they are under way."""

        async def sending(records: Iterable[Outgoing]) -> None:
            begun = object()
            with self._lock:
                self._sending[begun] = self._clock()
            try:
                await send(records)
                with self._lock:
                    self._done = self._clock()
            finally:
                with self._lock:
                    del self._sending[begun]

        return sending

    def waits(self, part: str, why: str) -> None:
        """The worker is not ready before `there(part)`: `why`."""
        with self._lock:
            self._waits[part] = why, self._clock()

    def there(self, part: str) -> None:
        """What the worker waited for is there."""
        with self._lock:
            self._waits.pop(part, None)

    def note(self, text: str) -> None:
        """Something that whoever asks about readiness should know."""
        self._notes.append(text)

    def beat(self) -> None:
        """The event loop turns."""
        with self._lock:
            self._beaten = self._clock()

    def assigned(self, places: Iterable[Place]) -> None:
        """The worker was given these partitions, perhaps none."""
        with self._lock:
            self._assigned, self._moving = frozenset(places), None
            self._standby = False
            self._places = {place: seen for place, seen in self._places.items() if place in self._assigned}

    def revoked(self) -> None:
        """The group shares its partitions out anew."""
        with self._lock:
            self._moving = self._clock()

    # What the broker tells.

    def asks(self) -> None:
        """The broker is being asked."""
        with self._lock:
            self._asked = self._clock()

    def failed(self) -> None:
        """The broker did not answer."""
        with self._lock:
            self._answered = self._asked = None

    def saw(self, offsets: Mapping[Place, Offsets], *, standby: bool = False, holes: Collection[Place] = ()) -> None:
        """Takes what the broker answered. In `holes` no record is left, whatever the offsets say."""
        with self._lock:
            now = self._clock()
            if self._last is None or now - self._last > _OUTAGE:
                self._kafka_since = now
            self._answered = self._last = now
            self._asked = None
            self._standby = standby
            before, self._places = self._places, {}
            for place, found in offsets.items():
                if self._assigned is None or place not in self._assigned:
                    continue
                last = before.get(place)
                if last is not None and found.committed > last.offsets.committed:
                    self._done = now
                seen = _Standing(found, now, place not in holes)
                if last is not None and last.behind and seen.behind and last.offsets.committed == found.committed:
                    seen = replace(seen, since=last.since)
                self._places[place] = seen

    def _ask(self, reader: GroupReader) -> None:
        while True:
            self.asks()
            try:
                self._ask_once(reader)
            except Exception as error:  # a thread that ended would look like a Kafka that is away
                log.debug("health: %s", error)
                self.failed()
            time.sleep(_ASK_EVERY)

    def _ask_once(self, reader: GroupReader) -> None:
        with self._lock:
            places = self._assigned
            still = self._clock() - self._settings.stall_limit / 2
            seen = self._places
        offsets = reader.offsets(places or ())
        # Others' topics may be transactional or compacted: then an offset is no sign of a record.
        suspects = [
            place
            for place, it in seen.items()
            if place in offsets and place[0] not in self._ours and it.offsets.lag and (not it.real or it.since < still)
        ]
        holes = {place for place in suspects if not reader.holds_record(place, offsets[place].committed)}
        standby = False
        if not places and self._assigned is not None:
            try:
                standby = bool(reader.owned())
            except HyveError as error:  # the embedded broker doesn't tell
                log.debug("health: %s", error)
        self.saw(offsets, standby=standby, holes=holes)

    def _answers(self, now: float) -> bool:
        return self._answered is not None and (self._asked is None or now - self._asked < _PATIENCE)

    # What is asked.

    def faults(self) -> list[Fault]:
        """Why the worker counts as dead; empty while it lives."""
        with self._lock:
            now = self._clock()
            found = []
            if self._beaten is not None and now - self._beaten > LOOP_LIMIT:
                found.append(Fault("loop", "the event loop does not turn", self._beaten))
            if self._kafka_since is None or not self._answers(now):
                return found
            return [*found, *self._stalls(now, self._kafka_since)]

    def _stalls(self, now: float, floor: float) -> Iterator[Fault]:
        settings = self._settings
        hand, behind = list(self._hand.values()), [it for it in self._places.values() if it.behind]
        todo = [*(it.since for it in hand), *self._sending.values(), *(it.since for it in behind)]
        since = max(floor, self._done, min(todo, default=now))  # there was something to do, and nothing was done
        if now - since > settings.stall_limit:
            stages = ", ".join(f"{name}: {number}" for name, number in Counter(it.stage for it in hand).items())
            told = f"{len(hand)} records in hand ({stages or 'none'}), {len(self._sending)} deliveries under way, "
            yield Fault("progress", f"{told}{sum(it.behind for it in behind)} not acknowledged: none ends", since)
        for it in hand:
            since = max(floor, it.since)
            if now - since > settings.record_limit:
                yield Fault("record", f"a record of {it.place[0]}[{it.place[1]}] does not end ({it.stage})", since)
                break
        for place, at in self._places.items():
            since = max(floor, at.since)
            if at.behind and now - since > settings.record_limit:
                told = f"offset {at.offsets.committed} of {at.offsets.end} is not committed"
                yield Fault("partition", f"{place[0]}[{place[1]}]: {told}", since)
                break
        since = max(floor, self._born)
        if self._beaten is None and now - since > settings.stall_limit:
            yield Fault("loop", "the event loop has never turned", since)
        since = now if self._moving is None else max(floor, self._moving)
        if now - since > settings.stall_limit + settings.rebalance_limit:
            yield Fault("assignment", "the group shares its partitions out, and does not end", since)

    def missing(self) -> list[Fault]:
        """Why the worker is not ready; empty when it is."""
        with self._lock:
            now = self._clock()
            found = [Fault(part, why, since) for part, (why, since) in self._waits.items()]
            if self._app is not None and self._app.should_stop:
                found.append(Fault("stopping", "the worker was told to stop", now))
            moving = self._moving
            if self._assigned is None and moving is not None:
                found.append(Fault("assignment", "no partitions are assigned yet", moving))
            elif moving is not None and now - moving > self._settings.rebalance_limit:
                found.append(Fault("assignment", "the group shares its partitions out anew", moving))
            elif not self._assigned and not self._standby:
                found.append(Fault("assignment", "no partitions are assigned, and nobody is known to have them", now))
            heard = self._born if self._last is None else self._last
            if not self._answers(now) and now - heard > _OUTAGE:
                found.append(Fault("kafka", "Kafka does not answer", heard))
            return found

    def report(self, faults: Sequence[Fault], good: str, bad: str) -> dict[str, Any]:
        """`faults` for people and programs."""
        now, wall = self._clock(), time.time()
        told = [
            {
                "check": fault.check,
                "what": fault.what,
                "since": datetime.fromtimestamp(wall - (now - fault.since), UTC).isoformat(timespec="seconds"),
                "seconds": round(now - fault.since, 1),
            }
            for fault in faults
        ]
        return {"status": bad if told else good, "worker": self._kind, "faults": told}

    def live(self) -> dict[str, Any]:
        """The body of `/healthz`."""
        with self._lock:
            silent = not self._answers(self._clock())
        notes = {"notes": ["Kafka does not answer: only the event loop is judged"]} if silent else {}
        return {**self.report(self.faults(), "alive", "dead"), **notes}

    def ready(self) -> dict[str, Any]:
        """The body of `/readyz`."""
        notes = [*self._notes, *(["a standby: other workers have all partitions"] if self._standby else [])]
        return {**self.report(self.missing(), "ready", "not ready"), **({"notes": notes} if notes else {})}

    def in_hand(self) -> int:
        """How many records are worked on."""
        with self._lock:
            return len(self._hand)

    def tell(self) -> None:
        """Says in the log what has changed."""
        missing, now = self.missing(), self._clock()
        kafka = next((fault for fault in missing if fault.check == "kafka"), None)
        if kafka is not None and self._silent is None:
            self._silent = kafka.since
            said = "worker: Kafka at %s has not answered for %.0f s: it is asked on, and what is in hand waits"
            log.warning(said, self._settings.bootstrap_servers, now - kafka.since)
        elif kafka is None and self._silent is not None:
            log.warning("worker: Kafka answers again, after %.0f s", now - self._silent)
            self._silent = None
        if kafka is not None or any(fault.check == "stopping" for fault in missing):
            return  # why the worker isn't ready was said
        counts = Counter(topic for topic, _ in self._assigned or ())
        if missing:
            told = f"not ready: {'; '.join(fault.what for fault in missing)}"
        elif self._standby:
            told = "ready, as a standby: other workers have all partitions"
        else:
            told = f"ready: {', '.join(f'{n} partitions of {topic}' for topic, n in sorted(counts.items()))}"
        if told != self._told:
            # At the start nothing is amiss.
            level = logging.WARNING if missing and self._told.startswith("ready") else logging.INFO
            self._told = told
            log.log(level, "worker: %s", told)

    # What Prometheus reads; nothing of a partition stays when it goes.

    def collect(self) -> Iterable[Metric]:
        """The gauges of this moment."""
        with self._lock:
            now, wall = self._clock(), time.time()
            hand, places, assigned = list(self._hand.values()), dict(self._places), self._assigned or frozenset()
            done, beaten, answers = self._done, self._beaten, self._answers(now)
        lag = _gauge("hyve_consumer_lag_records", "Records that the group has not acknowledged", "topic", "partition")
        late = _gauge("hyve_consumer_lag_seconds", "Age of the oldest record in hand; 0: no lag", "topic", "partition")
        oldest: dict[Place, int] = {}
        for it in hand:
            if it.timestamp > 0:
                oldest[it.place] = min(it.timestamp, oldest.get(it.place, it.timestamp))
        for place, at in places.items():
            name = [place[0], str(place[1])]
            if answers:
                lag.add_metric(name, at.behind)
            if place in oldest:
                late.add_metric(name, max(0.0, wall - oldest[place] / 1000))
            elif answers and not at.behind:
                late.add_metric(name, 0)
        yield lag
        yield late
        owned = _gauge("hyve_assigned_partitions", "Partitions that this worker reads", "topic")
        for topic, number in sorted(Counter(topic for topic, _ in assigned).items()):
            owned.add_metric([topic], number)
        yield owned
        ages = _gauge("hyve_record_age_seconds", "Since the oldest record in hand was taken", "stage")
        counts = _gauge("hyve_records_in_hand", "Records that are worked on", "stage")
        for stage in sorted(self._stages):
            those = [it.since for it in hand if it.stage == stage]
            ages.add_metric([stage], now - min(those, default=now))
            counts.add_metric([stage], len(those))
        yield ages
        yield counts
        yield GaugeMetricFamily("hyve_progress_age_seconds", "Since a record, a delivery or a commit ended", now - done)
        if beaten is not None:
            yield GaugeMetricFamily("hyve_loop_age_seconds", "Since the event loop last turned", now - beaten)
        yield GaugeMetricFamily("hyve_kafka_answers", "1 while the broker answers the worker's questions", int(answers))


def _gauge(name: str, says: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, labels=labels)


__all__ = ["Fault", "Health"]
