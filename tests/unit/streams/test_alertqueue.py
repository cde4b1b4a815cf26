"""Alerts wait for their turn: what is grouped, who is first, what is cancelled, and when records are given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import Alert, DiagnosisRequest
from streams import alertqueue, metrics
from streams.alertqueue import AlertQueue, Pending, Waiting, rank
from streams.app import Incoming, Outgoing, Poison
from streams.collect import firing, request_id
from streams.ledger import Ledger
from workers.settings import load

START = "2026-01-02T03:04:05Z"


def alert(fingerprint: str, group: str = "g", severity: str = "", **rest: Any) -> Alert:
    labels = {"alertname": "X", **({"severity": severity} if severity else {})}
    return Alert(
        **{"fingerprint": fingerprint, "status": "firing", "labels": labels, "starts_at": START, "group": group, **rest}
    )


def record(it: Alert | bytes, offset: int = 0, partition: int = 0) -> Incoming:
    return Incoming("hyve.alerts", partition, offset, it if isinstance(it, bytes) else it.to_bytes())


def waiting(it: Alert, since: float = 0.0, partition: int = 0) -> Waiting:
    return Waiting(it, record(it, 0, partition), lambda: None, since)


def names(group: Iterable[Waiting]) -> list[str]:
    return [it.alert.fingerprint for it in group]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"severity": "critical"}, 0), ({"severity": " Page "}, 0), ({"priority": "P1"}, 0), ({"severity": "high"}, 1),
        ({"severity": "warning"}, 2), ({"severity": "purple"}, 2), ({}, 2), ({"level": "info"}, 3),
        ({"severity": "4"}, 3), ({"severity": "purple", "priority": "1"}, 0),
    ],
)  # fmt: skip
def test_severities_of_many_tools_are_known(labels: dict[str, str], expected: int) -> None:
    assert rank(Alert(fingerprint="f", status="firing", labels=labels, starts_at=START)) == expected


def test_a_group_waits_until_it_has_settled_and_comes_whole() -> None:
    pending = Pending(settle=2.0)
    pending.add(waiting(alert("a", severity="info"), 10.0))
    assert pending.next(11.9) == []
    pending.add(waiting(alert("b", severity="critical"), 11.9))
    assert names(pending.next(12.0)) == ["b", "a"]
    assert len(pending) == 0


def test_the_most_severe_group_is_first_then_the_one_that_waited_longest() -> None:
    pending = Pending(settle=0.0)
    for number, (name, severity) in enumerate(
        [("w1", "warning"), ("i1", "info"), ("c1", "critical"), ("w2", "warning"), ("c2", "critical")]
    ):
        pending.add(waiting(alert(name, group=name, severity=severity), float(number)))
    order = [names(pending.next(10.0))[0] for _ in range(5)]
    assert order == ["c1", "c2", "w1", "w2", "i1"]
    assert pending.next(10.0) == []


def test_waiting_raises_a_group_by_one_severity_a_minute() -> None:
    pending = Pending(settle=0.0)
    pending.add(waiting(alert("old", group="old", severity="info"), 0.0))
    pending.add(waiting(alert("new", group="new", severity="critical"), 185.0))
    assert names(pending.next(186.0)) == ["old"]


def test_what_resolves_leaves_and_a_later_firing_stays() -> None:
    pending = Pending(settle=0.0)
    later = "2026-01-02T04:04:05Z"
    for it in (alert("a"), alert("b"), alert("a", starts_at=later)):
        pending.add(waiting(it))
    assert names(pending.resolve(alert("a", status="resolved"))) == ["a"]
    assert firing(alert("a", starts_at=later)) in pending
    assert sorted(names(pending.next(1.0))) == ["a", "b"]
    assert pending.resolve(alert("a", status="resolved")) == []


def test_what_came_from_a_partition_leaves_with_it() -> None:
    pending = Pending(settle=0.0)
    pending.add(waiting(alert("a", group="x"), partition=1))
    pending.add(waiting(alert("b", group="y"), partition=2))
    assert names(pending.leave([("hyve.alerts", 1)])) == ["a"]
    assert names(pending.next(1.0)) == ["b"]


class Model:
    """Stands in for `Collect`: notes each group, and answers, fails or waits as it is told."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def request(self, alerts: list[Alert]) -> DiagnosisRequest:
        self.groups.append([it.fingerprint for it in alerts])
        await self.gate.wait()
        if self.error:
            raise self.error
        return DiagnosisRequest(request_id=f"r-{alerts[0].fingerprint}", question="?", payloads=())


class Event:
    """A record with the reference that the ledger gives back."""

    def __init__(self, message: Incoming, released: list[tuple[int, int]]) -> None:
        self.message = message
        self._released = released

    def ack(self) -> None:
        self._released.append((self.message.partition, self.message.offset))


async def until(true: Callable[[], bool]) -> None:
    """Waits for what no single event tells."""
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 (what is awaited is not one event)
            await asyncio.sleep(0.005)


class Bench:
    """A queue with its stand-ins: what was sent, and which offsets were given back, in order."""

    def __init__(self, **given: Any) -> None:
        self.sent: list[Outgoing] = []
        self.released: list[tuple[int, int]] = []
        self.ledger = Ledger()
        self.collect = Model()
        settings = load(**{"alert_settle": 0.0, **given})
        self.queue = AlertQueue(settings, self.collect, self._send, lambda *_: None)  # type: ignore[arg-type]

    async def _send(self, records: Iterable[Outgoing]) -> None:
        self.sent += records

    async def take(self, it: Alert | bytes, offset: int, partition: int = 0) -> None:
        event = Event(record(it, offset, partition), self.released)
        assert self.ledger.take(event)
        await self.queue.take(event.message, lambda: self.ledger.done(event))

    async def until(self, true: Callable[[], bool]) -> None:
        runner = asyncio.create_task(self.queue.run())
        try:
            await until(true)
        finally:
            runner.cancel()

    def ids(self) -> list[str]:
        return [out.key.decode() for out in self.sent if out.topic == "requests" and out.key]


@pytest.fixture(autouse=True)
def _nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AlertQueue, "_asked_before", lambda self, record, below: [])


async def test_an_alert_is_asked_about_once_however_often_it_comes() -> None:
    bench = Bench()
    await bench.take(alert("a"), 0)
    await bench.take(alert("a"), 1)
    await bench.until(lambda: len(bench.released) == 2)
    await bench.take(alert("a", annotations={"summary": "still"}), 2)
    await bench.take(alert("a", status="resolved"), 3)
    await bench.take(alert("a", starts_at="2026-01-03T00:00:00Z"), 4)
    await bench.until(lambda: len(bench.released) == 5)
    assert bench.collect.groups == [["a"], ["a"]]


async def test_a_start_is_the_same_however_it_is_written() -> None:
    """The two Alertmanagers of a pair, or one before and after an upgrade, may write one instant in their own ways."""
    bench = Bench()
    starts = [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T03:04:05.000Z",
        "2026-01-02T05:04:05+02:00",
    ]
    for offset, start in enumerate(starts):
        await bench.take(alert("a", starts_at=start), offset)
    await bench.until(lambda: len(bench.released) == 4)
    assert bench.collect.groups == [["a"]]
    assert len({request_id(alert("a", starts_at=start)) for start in starts}) == 1
    others = ["2026-01-02T03:04:05.001Z", "no time", "nor this"]
    assert len({request_id(alert("a", starts_at=start)) for start in (*starts, *others)}) == 4


async def test_what_earlier_workers_asked_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AlertQueue, "_asked_before", lambda self, record, below: [firing(alert("a"))])
    bench = Bench()
    await bench.take(alert("a"), 7)
    await bench.take(alert("b"), 8)
    await bench.until(lambda: len(bench.released) == 2)
    assert bench.collect.groups == [["b"]]


async def test_a_record_given_once_more_while_it_is_asked_about_is_not_given_back_before() -> None:
    """Invariant 8: the partition was handed out anew in the middle; a worker that dies now must not have let it go."""
    bench = Bench()
    held = asyncio.Event()

    async def slow(records: Iterable[Outgoing]) -> None:
        await held.wait()
        bench.sent += records

    bench.queue._send = slow
    await bench.take(alert("a"), 5)
    runner = asyncio.create_task(bench.queue.run())
    await until(lambda: bool(bench.collect.groups))
    bench.ledger.forget([("hyve.alerts", 0)])
    bench.queue.forget([("hyve.alerts", 0)])
    await bench.take(alert("a"), 5)
    await asyncio.sleep(0.05)
    assert bench.released == []
    held.set()
    await until(lambda: bool(bench.released))
    runner.cancel()
    assert bench.released == [(0, 5)]
    assert bench.collect.groups == [["a"]]
    await bench.take(alert("a"), 6)
    assert bench.released == [(0, 5), (0, 6)]


async def test_a_storm_becomes_as_many_requests_as_groups_the_severest_first() -> None:
    bench = Bench(alert_turns=1)
    for number in range(1000):
        severity = "critical" if number % 20 == 7 else "warning"
        await bench.take(alert(f"a{number}", f"service=s{number % 20}", severity), number)
    await bench.until(lambda: len(bench.released) == 1000)
    assert len(bench.collect.groups) == 20
    assert sorted(name for group in bench.collect.groups for name in group) == sorted(f"a{i}" for i in range(1000))
    assert bench.collect.groups[0] == sorted(f"a{i}" for i in range(7, 1000, 20))
    assert [place[1] for place in bench.released] == list(range(1000))
    assert len(bench.ids()) == 20


async def test_what_resolves_before_its_turn_is_never_asked() -> None:
    bench = Bench()
    await bench.take(alert("a"), 0)
    await bench.take(alert("b"), 1)
    await bench.take(alert("a", status="resolved"), 2)
    await bench.until(lambda: len(bench.released) == 3)
    assert bench.collect.groups == [["b"]]
    assert bench.released == [(0, 0), (0, 1), (0, 2)]


async def test_records_are_given_back_in_order_whatever_ends_first() -> None:
    """The one with the higher offset is done long before: its commit would lose the other."""
    bench = Bench()
    bench.collect.gate.clear()
    await bench.take(alert("slow", "x"), 0)
    await bench.until(lambda: bench.collect.groups == [["slow"]])
    await bench.take(alert("done", "y", status="resolved"), 1)
    assert bench.released == []


async def test_a_full_queue_takes_no_more_until_a_turn_is_given() -> None:
    bench = Bench(alert_queue=2)
    await bench.take(alert("a", "x"), 0)
    more = asyncio.create_task(bench.take(alert("b", "y"), 1))
    await asyncio.sleep(0.02)
    assert not more.done()
    await bench.until(lambda: len(bench.released) == 2)
    await asyncio.wait_for(more, 1)


async def test_no_more_turns_at_a_time_than_allowed() -> None:
    bench = Bench(alert_turns=2)
    bench.collect.gate.clear()
    for number in range(5):
        await bench.take(alert(f"a{number}", f"g{number}"), number)
    runner = asyncio.create_task(bench.queue.run())
    await asyncio.sleep(0.1)
    assert len(bench.collect.groups) == 2
    bench.collect.gate.set()
    await asyncio.sleep(0.3)
    runner.cancel()
    assert len(bench.collect.groups) == 5


async def test_what_can_not_be_asked_about_is_a_dead_letter_and_may_come_again() -> None:
    bench = Bench()
    bench.collect.error = Poison("no broker", attempts=3)
    await bench.take(b"[]", 0)
    await bench.take(alert("a"), 1)
    await bench.take(alert("b"), 2)
    await bench.until(lambda: len(bench.released) == 3)
    assert [out.topic for out in bench.sent] == ["deadletters"] * 3
    bench.collect.error = None
    await bench.take(alert("a"), 3)
    await bench.until(lambda: len(bench.released) == 4)
    assert bench.ids() == ["r-a"]


async def test_a_partition_that_goes_takes_its_alerts_along_and_comes_back_new() -> None:
    bench = Bench(alert_settle=300)
    await bench.take(alert("a", "x"), 5, partition=1)
    await bench.take(alert("b", "y"), 9, partition=2)
    bench.queue.forget([("hyve.alerts", 1)])
    bench.ledger.forget([("hyve.alerts", 1)])
    assert bench.queue.waiting == 1
    await bench.take(alert("a", "x"), 5, partition=1)
    assert bench.queue.waiting == 2
    assert bench.released == []


async def test_outcomes_are_counted() -> None:
    before = {name: metrics.ALERTS.labels(name)._value.get() for name in ("asked", "repeated", "cancelled", "resolved")}
    bench = Bench()
    for offset, it in enumerate([alert("a"), alert("a"), alert("b"), alert("b", status="resolved")]):
        await bench.take(it, offset)
    await bench.until(lambda: len(bench.released) == 4)
    grown = {name: metrics.ALERTS.labels(name)._value.get() - value for name, value in before.items()}
    assert grown == {"asked": 1, "repeated": 1, "cancelled": 1, "resolved": 1}


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y"]), st.booleans()), max_size=20))
def test_every_alert_is_asked_repeated_cancelled_or_resolved(steps: list[tuple[str, str, bool]]) -> None:
    """Invariant 8 for alerts: whatever comes, each record is given back once and in order."""

    async def play() -> None:
        bench = Bench()
        for offset, (name, group, fires) in enumerate(steps):
            await bench.take(alert(name, group, status="firing" if fires else "resolved"), offset)
        await bench.until(lambda: len(bench.released) == len(steps))
        assert bench.released == [(0, offset) for offset in range(len(steps))]
        asked = [name for group in bench.collect.groups for name in group]
        assert len(asked) == len(set(asked))
        last = {name: firing for name, _, firing in steps}
        assert {name for name, firing in last.items() if firing} <= {*asked}

    asyncio.run(play())


def test_earlier_firings_are_read_from_the_partition_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    stored = [alert("a"), alert("b", status="resolved"), b"rubbish", alert("c"), alert("d")]

    class Reader:
        def __init__(self, settings: Any, topic: str, since: int, until: int, deadline: float) -> None:
            assert topic == "hyve.alerts"
            assert since < time.time() * 1000 < until

        def __enter__(self) -> Reader:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read(self, partitions: list[int]) -> Any:
            assert partitions == [3]
            for offset, it in enumerate(stored):
                yield Incoming("hyve.alerts", 3, offset, it if isinstance(it, bytes) else it.to_bytes())

    monkeypatch.setattr(alertqueue.kafka, "RangeReader", Reader)
    queue = AlertQueue(load(), Model(), None, lambda *_: None)  # type: ignore[arg-type]
    assert queue._asked_before(record(alert("d"), 4, 3), 4) == [firing(alert("a")), firing(alert("c"))]
    assert queue._asked_before(record(alert("d"), 4, 3), 3) == [firing(alert("a"))]
    assert queue._asked_before(record(alert("d"), 0, 3), 0) == []


@pytest.mark.parametrize(("committed", "below"), [(None, 0), (-1, 0), (2, 2), (3, 3), (9, 3)])
async def test_a_record_that_comes_later_than_one_behind_it_was_not_asked_before(
    monkeypatch: pytest.MonkeyPatch, committed: int | None, below: int
) -> None:
    """Invariant 8: Faust leaves records out while partitions move. What the group has not committed is not done."""
    stored = [alert(name) for name in "abcd"]
    monkeypatch.setattr(AlertQueue, "_asked_before", lambda self, record, below: [firing(it) for it in stored[:below]])
    bench = Bench()
    bench.queue._committed = lambda *_: committed
    for offset in (3, 0, 1, 2):
        await bench.take(stored[offset], offset)
    await bench.until(lambda: len(bench.released) == 4)
    assert sorted(name for group in bench.collect.groups for name in group) == list("abcd"[below:])
