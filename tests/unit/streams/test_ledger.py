"""What may be acknowledged: never a record before one of its partition that is not done (invariant 8)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from streams.ledger import Ledger


@dataclass(frozen=True)
class Message:
    topic: str
    partition: int
    offset: int


class Event:
    def __init__(self, partition: int, offset: int, acked: list[tuple[int, int]]) -> None:
        self.message = Message("t", partition, offset)
        self._acked = acked

    def ack(self) -> None:
        self._acked.append((self.message.partition, self.message.offset))


@given(st.permutations([(partition, offset) for partition in (0, 1) for offset in range(6)]))
def test_records_are_acknowledged_in_order_whatever_ends_first(ends: list[tuple[int, int]]) -> None:
    acked: list[tuple[int, int]] = []
    ledger = Ledger()
    events = {(p, o): Event(p, o, acked) for p in (0, 1) for o in range(6)}
    assert all(ledger.take(event) for event in events.values())
    done: set[tuple[int, int]] = set()
    for place in ends:
        ledger.done(events[place])
        done.add(place)
        for partition in (0, 1):
            prefix = next((o for o in range(6) if (partition, o) not in done), 6)
            assert [o for p, o in acked if p == partition] == list(range(prefix))
        assert len(ledger) == 12 - len(acked)
    assert len(ledger) == 0


def test_a_record_that_comes_again_is_not_begun_again_and_both_are_acknowledged() -> None:
    acked: list[tuple[int, int]] = []
    ledger = Ledger()
    first, again = Event(0, 4, acked), Event(0, 4, acked)
    assert ledger.take(first)
    assert not ledger.take(again)
    ledger.done(first)
    assert acked == [(0, 4), (0, 4)]
    assert ledger.take(Event(0, 4, acked)), "once done it is a new one"


def test_a_partition_that_is_forgotten_begins_anew_and_what_was_in_hand_is_never_acknowledged() -> None:
    acked: list[tuple[int, int]] = []
    ledger = Ledger()
    old = [Event(0, offset, acked) for offset in range(3)]
    other = Event(1, 0, acked)
    for event in (*old, other):
        ledger.take(event)
    ledger.forget([("t", 0), ("t", 9)])
    assert len(ledger) == 1
    ledger.done(old[0])
    new = Event(0, 1, acked)
    assert ledger.take(new)
    ledger.done(old[1])
    assert acked == []
    ledger.done(new)
    ledger.done(other)
    assert acked == [(0, 1), (1, 0)]
