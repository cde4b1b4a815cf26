"""Collect: which services belong to an alert, what is kept, and the id of the request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.errors import HyveError
from schemas import Alert, TelemetryRecord
from streams import collect, patience
from streams.app import Poison
from streams.calls import key_of
from streams.collect import Collect, Collected, Graph, Window, request_id
from workers.claims import Unreachable
from workers.kafka import Stored, partition_of
from workers.settings import load

ALERT = Alert(
    fingerprint="f1",
    status="firing",
    labels={"alertname": "HighErrorRate", "service": "orders"},
    annotations={"summary": "many errors"},
    starts_at="2026-01-02T03:04:05Z",
    received=1_767_323_100_000,
)


def record(signal: str, **row: Any) -> bytes:
    return TelemetryRecord(signal=signal, entity="e", time=1, row=row).to_bytes()


def test_the_neighbourhood_is_all_callees_and_direct_callers() -> None:
    graph = Graph()
    for caller, callee in [
        ("web", "orders"),
        ("orders", "stock"),
        ("stock", "db"),
        ("web", "search"),
        ("app", "web"),
    ]:
        graph.learn(record("span", service=caller, peer_service=callee))
    assert graph.around(["orders"]) == {"orders", "stock", "db", "web"}
    assert graph.around(["db"]) == {"db", "stock"}
    assert graph.around(["nobody"]) == {"nobody"}
    assert graph.around(["db", "search"]) == {"db", "stock", "search", "web"}


def test_names_of_one_service_are_one_neighbour() -> None:
    graph = Graph()
    graph.learn(record("span", service="front", peer_service="Cart"))
    graph.learn(record("span", service="cart-7d9f8b6c5d-x2x4z", peer_service="pay.prod.svc.cluster.local"))
    assert graph.around(["prod/cart"]) == {"front", "cart", "pay"}
    graph.learn(record("span", service="pay", peer_service="bank.finance"))
    assert graph.around(["cart"]) == {"front", "cart", "pay", "bank.finance", "bank"}


def test_calls_that_the_intake_noted_count_and_rubbish_does_not() -> None:
    graph = Graph()
    graph.learn(record("call", caller="web", callee="orders"))
    graph.learn(record("span", service="orders", peer_service=None))
    graph.learn(record("log", service="orders", body='"peer_service":"stock"'))
    graph.learn(b'{"signal":"call"')
    graph.learn(b'{"peer_service":"x"}')
    assert graph.around(["orders"]) == {"orders", "web"}


def test_a_cycle_of_calls_ends() -> None:
    graph = Graph()
    for caller, callee in [("a", "b"), ("b", "c"), ("c", "a")]:
        graph.learn(record("span", service=caller, peer_service=callee))
    assert graph.around(["a"]) == {"a", "b", "c"}


def taken(limit: int, rows: list[tuple[int, bytes, bytes]], entities: set[bytes] | None = None) -> Collected:
    window = Window(limit)
    for row in rows:
        window.add(*row)
    return window.take(entities)


def test_the_newest_fit_the_limit_and_the_cut_is_counted() -> None:
    rows = [(i * 1000, b"k", f"{i:09d}".encode()) for i in (3, 1, 2, 0)]
    found = taken(20, rows)
    assert found.lines == ("000000002", "000000003")
    assert found.notes == (
        "telemetry was cut: the newest 2 of 4 records (20 of 40 bytes) are here, from 1970-01-01T00:00:02Z on",
    )
    assert taken(40, rows) == Collected(("000000000", "000000001", "000000002", "000000003"), ("k",), ())


def test_only_the_entities_that_are_wanted_count() -> None:
    rows = [(1, b"a", b"one"), (2, b"b", b"two"), (3, b"a", b'{\n"x": 3}')]
    assert taken(100, rows, {b"a"}) == Collected(("one", '{ "x": 3}'), ("a",), ())
    assert taken(100, rows, {b"c"}) == Collected((), (), ())


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from([b"a", b"b"]), st.binary(max_size=9)), max_size=60))
def test_what_is_held_is_bounded_and_what_is_taken_is_the_newest(rows: list[tuple[int, bytes, bytes]]) -> None:
    window = Window(30)
    for row in rows:
        window.add(*row)
        assert window._size <= 4 * 30
    found = window.take(None)
    assert sum(len(row.encode("utf-8", "surrogateescape")) for row in found.lines) <= 30 * 3
    if len(found.lines) < len(rows):
        assert f"the newest {len(found.lines)} of {len(rows)} records" in found.notes[0]
    times = sorted((row[0] for row in rows), reverse=True)
    whole = window._rows
    assert sorted((row[0] for row in whole), reverse=True) == times[: len(whole)]


def test_the_id_is_that_of_the_firing() -> None:
    again = ALERT.model_copy(update={"annotations": {}, "received": 7})
    later = ALERT.model_copy(update={"starts_at": "2026-01-02T04:04:05Z"})
    other = ALERT.model_copy(update={"fingerprint": "f2"})
    assert request_id(ALERT) == request_id(again)
    assert len({request_id(ALERT), request_id(later), request_id(other)}) == 3


class Reads:
    """Stands in for Kafka: notes what was asked for."""

    def __init__(self, lines: Sequence[str] = ('{"signal":"log"}',)) -> None:
        self.asked: list[tuple[tuple[str, ...], int, int]] = []
        self.lines = tuple(lines)

    def __call__(self, settings: object, entities: Sequence[str], since: int, until: int) -> Collected:
        self.asked.append((tuple(entities), since, until))
        return Collected(self.lines, ("orders",), ("a note",))


async def test_an_alert_becomes_one_self_contained_request(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads()
    monkeypatch.setattr(collect, "read_around", reads)
    request = await Collect(load(window_minutes=10)).request([ALERT])
    assert request.request_id == request_id(ALERT)
    assert request.focus == ("orders",)
    assert "HighErrorRate is firing on orders" in request.question
    assert "many errors" in request.question
    assert request.notes == ("a note",)
    assert [payload.name for payload in request.payloads] == ["alert.json", "telemetry.ndjson"]
    assert json.loads(request.payloads[0].text)["fingerprint"] == "f1"
    assert request.ms["collect"] > 0
    assert request.created == ALERT.received
    ((entities, since, until),) = reads.asked
    assert entities == ("orders",)
    assert since == 1_767_323_045_000 - 600_000
    assert until >= 1_767_323_045_000


def alert(name: str, service: str = "", **rest: Any) -> Alert:
    labels = {"alertname": name, **({"service": service} if service else {})}
    return ALERT.model_copy(update={"fingerprint": f"{name}-{service}", "labels": labels, "annotations": {}, **rest})


async def test_a_group_becomes_one_request_around_all_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads()
    monkeypatch.setattr(collect, "read_around", reads)
    earlier = "2026-01-02T05:00:05+02:00"  # four minutes before the others
    group = [alert("Errors", "orders"), alert("Slow", "web", starts_at=earlier, truncated=3), alert("Errors", "stock")]
    request = await Collect(load(window_minutes=10)).request(group)
    assert request.request_id == request_id(group[1])
    assert request.focus == ("orders", "web", "stock")
    assert request.question.startswith(
        "3 alerts are firing on orders, web, stock since 2026-01-02T03:00:05Z: Errors (2), Slow. What is the root"
    )
    assert request.notes == ("the sender left out 3 alerts of this group", "a note")
    assert [form["fingerprint"] for form in json.loads(request.payloads[0].text)] == [it.fingerprint for it in group]
    ((entities, since, _),) = reads.asked
    assert entities == request.focus
    assert since == 1_767_323_045_000 - 240_000 - 600_000


async def test_telemetry_is_read_around_a_dozen_services_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads()
    monkeypatch.setattr(collect, "read_around", reads)
    request = await Collect(load()).request([alert("Down", f"s{i:02}") for i in range(20)] + [alert("Odd")])
    assert reads.asked[0][0] == tuple(f"s{i:02}" for i in range(12)) == request.focus
    assert request.notes[0] == "telemetry was read around 12 of 20 services that the alerts name"
    assert len(json.loads(request.payloads[0].text)) == 21


async def test_without_a_service_everything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(lines=())
    monkeypatch.setattr(collect, "read_around", reads)
    request = await Collect(load()).request([alert("X")])
    assert reads.asked[0][0] == ()
    assert request.focus == ()
    assert [payload.name for payload in request.payloads] == ["alert.json"]


class Topic:
    """Stands in for the telemetry topic: records by the partition of their key."""

    def __init__(self, *records: tuple[str, bytes]) -> None:
        self.records = records
        self.partitions = 6
        self.timed_out = False

    def __call__(self, *_: object, ahead: int) -> Topic:
        self.ahead = ahead
        return self

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, partitions: Sequence[int]) -> Iterator[Stored]:
        for offset, (entity, value) in enumerate(self.records):
            key = key_of(entity)
            if (place := partition_of(key, self.partitions)) in partitions:
                yield Stored("telemetry", place, offset, 1_767_323_000_000 + offset, key, value)


def log_of(service: str) -> tuple[str, bytes]:
    return service, TelemetryRecord(signal="log", entity=service, time=1, row={"service": service}).to_bytes()


def call(caller: str, callee: str, under: str) -> tuple[str, bytes]:
    return under, record("call", caller=caller, callee=callee)


async def asked_of(topic: Topic, labels: dict[str, str], monkeypatch: pytest.MonkeyPatch, **given: Any) -> Any:
    monkeypatch.setattr(collect, "RangeReader", topic)
    one = ALERT.model_copy(update={"labels": {"alertname": "Down", **labels}})
    request = await Collect(load(**given)).request([one])
    return request, sorted(
        json.loads(line)["entity"] for payload in request.payloads[1:] for line in payload.text.splitlines()
    )


@pytest.mark.parametrize(
    "labels",
    [
        {"service": "cart"},
        {"service": "Cart"},
        {"service": "prod/cart"},
        {"pod": "cart-7d9f8b6c5d-x2x4z", "job": "kube-state-metrics", "instance": "10.0.0.1:80"},
        {"deployment": "cart", "namespace": "prod"},
        {"statefulset": "cart"},
        {"daemonset": "cart"},
        {"job": "prod/cart"},
        {"instance": "cart:8080"},
        {"host": "cart"},
    ],
)
async def test_an_alert_finds_the_telemetry_of_its_workload_and_its_neighbours(
    labels: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(
        *(log_of(name) for name in ("front", "cart", "pay", "other")),
        call("front", "cart", "cart"),
        call("cart", "pay", "cart"),
    )
    request, found = await asked_of(topic, labels, monkeypatch)
    assert found == ["cart", "front", "pay"]
    assert request.focus == ("cart",), "who reads alert and telemetry needs one name: telemetry's"
    assert request.notes == ()


async def test_that_no_neighbour_or_no_telemetry_is_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(log_of("cart"), log_of("other"))
    request, found = await asked_of(topic, {"service": "cart"}, monkeypatch)
    assert found == ["cart"]
    assert [note.partition(" between")[0] for note in request.notes] == [
        "no span says whom cart called or who called it"
    ]
    request, found = await asked_of(topic, {"service": "stock"}, monkeypatch)
    assert found == []
    assert [note.partition(" between")[0] for note in request.notes] == ["no telemetry of stock was found"]
    request, found = await asked_of(topic, {}, monkeypatch)
    assert found == ["cart", "other"]
    assert request.notes == ("the alerts name no service, workload or host: telemetry of all of them was read",)


async def test_a_record_above_the_limit_is_cut_and_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    large = TelemetryRecord(signal="log", entity="cart", time=1, row={"body": "x" * 3000}).to_bytes()
    topic = Topic(("cart", large), call("front", "cart", "cart"))
    request, found = await asked_of(topic, {"service": "cart"}, monkeypatch, collect_bytes=1024)
    assert found == []
    assert request.notes == (
        "telemetry was cut: none of 1 records is here: the newest is larger than HYVE_COLLECT_BYTES (1024)",
    )


async def test_kafka_that_fails_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []
    pauses = []

    def fail(*_: object) -> Collected:
        tries.append(1)
        raise HyveError("cannot reach a Kafka broker")

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(collect, "read_around", fail)
    monkeypatch.setattr(collect.asyncio, "sleep", sleep)
    with pytest.raises(Poison, match="cannot reach a Kafka broker") as caught:
        await Collect(load()).request([ALERT])
    assert (len(tries), pauses, caught.value.attempts) == (3, [1.0, 5.0], 3)


async def test_a_store_of_large_data_that_is_away_for_a_while_costs_no_alert_its_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = 2

    def check_in(root: str, request: Any, limit: int) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise Unreachable("5 bytes of p can't be written: OSError: gone")
        return request

    monkeypatch.setattr(collect, "read_around", Reads())
    monkeypatch.setattr(collect.claims, "check_in", check_in)
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    assert (await Collect(load()).request([ALERT])).payloads
    left = 10**9
    monkeypatch.setattr(patience, "SECONDS", 0.05)
    with pytest.raises(Poison, match="can't be written: OSError: gone"):
        await Collect(load()).request([ALERT])


async def test_what_came_of_clocks_that_are_ahead_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intake lets such events keep their time, and gives those further ahead the one at which they came."""
    topic = Topic(log_of("cart"))
    await asked_of(topic, {"service": "cart"}, monkeypatch, time_ahead=90)
    assert topic.ahead == 90_000
