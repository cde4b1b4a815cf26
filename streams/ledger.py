"""Which records of a partition are being worked on, and which of them may be acknowledged.

Kafka holds one number for a partition, the offset below which everything is done. Records are worked on side by side
and end in any order, and Faust commits past what it was not told to wait for.

Rules:
- A record is acknowledged when it and every record before it in its partition that was taken are done.
- A record that comes again while it is being worked on (partitions were handed out anew) is not begun again: both are
  acknowledged together. A partition that is forgotten begins anew with the next record; what was in hand is never
  acknowledged.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol


class Event(Protocol):
    """A record as it came, and the reference to it that `ack` gives back."""

    message: Any

    def ack(self) -> Any: ...


@dataclass
class _Work:
    events: list[Event]
    done: bool = False


@dataclass
class _Partition:
    offsets: list[int] = field(default_factory=list)  # a heap
    work: dict[int, _Work] = field(default_factory=dict)


class Ledger:
    """The records in hand; `len` counts those that are not acknowledged."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def take(self, event: Event) -> bool:
        """Notes the record; False where it is in hand already and must not be begun again."""
        message = event.message
        partition = self._partitions.setdefault((message.topic, message.partition), _Partition())
        work = partition.work.get(message.offset)
        if work is not None:
            work.events.append(event)
            return False
        partition.work[message.offset] = _Work([event])
        heapq.heappush(partition.offsets, message.offset)
        self._size += 1
        return True

    def done(self, event: Event) -> None:
        """The record was worked on to its end: acknowledges all that may be acknowledged now."""
        message = event.message
        partition = self._partitions.get((message.topic, message.partition), _Partition())
        work = partition.work.get(message.offset)
        if work is None or event not in work.events:
            return  # of a partition that was forgotten
        work.done = True
        while partition.offsets and partition.work[partition.offsets[0]].done:
            for taken in partition.work.pop(heapq.heappop(partition.offsets)).events:
                taken.ack()
            self._size -= 1

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """Lets go of the records of `places` (topic, partition), which go to another worker."""
        for place in places:
            self._size -= len(self._partitions.pop(place, _Partition()).work)
