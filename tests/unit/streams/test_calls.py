"""Who calls whom, found in spans that name each other, each other's parents, or nobody."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyve.formats import Record
from streams.calls import Calls, Halves

TRACE = "0" * 31 + "1"
MS = 1_700_000_000_000


def span(service: str, span_id: str, parent: str | None = None, kind: str = "server", **rest: Any) -> Record:
    row = {"service": service, "trace_id": TRACE, "span_id": span_id, "parent_span_id": parent, "kind": kind}
    return Record("span", service, MS * 1_000_000, {"peer_service": None, **row, **rest})


def told(*items: Record, calls: Calls | None = None) -> list[tuple[str, str, str]]:
    """(key, caller, callee) of what is told of the spans, in this order."""
    calls = calls or Calls()
    found = []
    for item in items:
        for out in calls.of(item, item.time // 1_000_000):
            wire = json.loads(out.value)
            assert (out.topic, wire["signal"], out.timestamp) == ("telemetry", "call", item.time // 1_000_000)
            found.append(((out.key or b"").decode(), wire["row"]["caller"], wire["row"]["callee"]))
    return found


def test_a_parent_of_another_service_called_it_and_both_are_told() -> None:
    trace = [
        span("front", "a1", None, "client"),
        span("cart", "b1", "a1"),
        span("cart", "b2", "b1", "client"),
        span("pay", "c1", "b2"),
    ]
    expected = {
        ("cart", "front", "cart"),
        ("front", "front", "cart"),
        ("pay", "cart", "pay"),
        ("cart", "cart", "pay"),
    }
    assert set(told(*trace)) == expected
    assert set(told(*reversed(trace))) == expected, "children end, and are sent, before their parents"


@given(st.integers(0, 1000))
def test_the_order_of_spans_and_how_often_they_come_does_not_matter(seed: int) -> None:
    trace = [span(f"s{i % 7}", f"{i:02x}", f"{i // 2:02x}" if i else None, "internal") for i in range(30)]
    again = [*trace, *trace]
    random.Random(seed).shuffle(again)
    found = told(*again)
    assert len(found) == len(set(found))
    assert set(found) == set(told(*trace))


def test_a_message_links_its_consumer_to_its_producer() -> None:
    made = span("cart", "a1", None, "producer", peer_service="kafka")
    by_parent = span("worker", "b1", "a1", "consumer")
    assert ("worker", "cart", "worker") in told(made, by_parent)
    link = Record("span_link", "batch", 1, {"service": "batch", "linked_trace_id": TRACE, "linked_span_id": "a1"})
    assert ("batch", "cart", "batch") in told(made, link)


def test_a_peer_that_is_named_is_told_once_a_minute_to_it_alone() -> None:
    calls = Calls()
    first, second = (span("cart", name, None, "client", peer_service="prod/Pay:80") for name in ("a1", "a2"))
    assert told(first, second, calls=calls) == [("pay", "cart", "prod/Pay:80")]
    later = Record("span", "cart", (MS + 60_000) * 1_000_000, first.row)
    assert len(told(later, calls=calls)) == 1


def test_a_peer_of_another_namespace_is_told_under_both_names() -> None:
    found = told(span("cart", "a1", None, "client", peer_service="pay.prod"))
    assert found == [("pay.prod", "cart", "pay.prod"), ("pay", "cart", "pay")]


def test_both_halves_of_one_span_are_a_call() -> None:
    client, server = span("front", "a1", None, "client"), span("cart", "a1", None, "server")
    for pair in ((client, server), (server, client)):
        assert set(told(*pair)) == {("cart", "front", "cart"), ("front", "front", "cart")}


def test_nothing_is_told_of_ones_own_spans_or_of_nobodys() -> None:
    assert told(span("cart", "a1"), span("cart", "b1", "a1"), span("Cart", "b2", "b1")) == []
    assert told(span("unknown", "a1"), span("cart", "b1", "a1"), span("pay", "", "")) == []
    assert told(Record("log", "cart", 1, {"service": "cart", "span_id": "a1", "peer_service": "pay"})) == []
    assert told(span("cart", "b1", None, "client", peer_service="cart:8080")) == []


def test_what_is_remembered_is_bounded() -> None:
    calls = Calls(remember=10)
    for i in range(100):
        told(span("cart", f"{i:03x}", f"{i + 500:03x}"), calls=calls)
    assert len(calls._services) <= 20
    assert len(calls._waiting) <= 20
    assert told(span("front", f"{500:03x}", None), calls=calls) == []
    assert told(span("front", f"{599:03x}", None), calls=calls) != []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers())), st.integers(1, 5))
def test_halves_keep_the_newest(puts: list[tuple[int, int]], most: int) -> None:
    halves = Halves[int](most)
    for key, value in puts:
        halves.put(key, value)
        assert len(halves) <= 2 * most
    newest = dict(puts[-most:])
    assert {key: halves.get(key) for key in newest} == newest
