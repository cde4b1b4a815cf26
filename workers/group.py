"""How far a consumer group is: its committed offsets against the ends of its partitions, and who has which of them.

Asked of the broker by clients of its own (kafka-python), so that a consumer that died quietly is seen, too. Blocking:
for a thread. Every failure is a `HyveError` of one line; the next question connects anew.

Transactions are as the workers' consumers see them: what lies behind an open one is not left to do yet.

The embedded broker names the end of a partition too low (see `workers.broker`): a lag is then an understatement.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from hyve.errors import HyveError
from workers.kafka import ISOLATION
from workers.security import client_options
from workers.settings import Settings

Place = tuple[str, int]
"""A topic's partition."""

_SECONDS = 5.0


@dataclass(frozen=True)
class Offsets:
    """Where the group is in a partition (its first offset, where it has committed nothing), and where that ends."""

    committed: int
    end: int

    @property
    def lag(self) -> int:
        """Records, or what else takes offsets, that the group has not acknowledged."""
        return max(0, self.end - self.committed)


class GroupReader:
    """Asks about the consumer group `group`."""

    def __init__(self, settings: Settings, group: str) -> None:
        self._settings, self._group = settings, group
        self._security = client_options(settings)
        self._admin: Any = None
        self._consumer: Any = None

    def offsets(self, places: Collection[Place]) -> dict[Place, Offsets]:
        """The offsets of `places`."""
        with self._connected():
            partitions = [TopicPartition(*place) for place in places]
            if not partitions:
                return {}
            listed: Any = self._admin.list_group_offsets({self._group: partitions})
            committed = {place: entry.offset for place, entry in listed.get(self._group, {}).items()}
            ends = self._consumer.end_offsets(partitions, timeout_ms=int(_SECONDS * 1000))
            # Where retention took what was committed, reading goes on at the first record that is left.
            starts = self._consumer.beginning_offsets(partitions, timeout_ms=int(_SECONDS * 1000))
            return {
                (place.topic, place.partition): Offsets(max(committed.get(place, -1), starts[place]), ends[place])
                for place in partitions
            }

    def owned(self) -> set[Place]:
        """The partitions that the group's members have; empty while it shares them out."""
        with self._connected():
            described = self._admin.describe_groups([self._group])[self._group]
            if described["group_state"] != "Stable":
                return set()
            return set(_assigned(described))

    def holds_record(self, place: Place, offset: int) -> bool:
        """Whether a record stands at `offset` or after it: offsets are also taken by what transactions leave."""
        with self._connected():
            partition = TopicPartition(*place)
            self._consumer.assign([partition])
            self._consumer.seek(partition, offset)
            return bool(self._consumer.poll(timeout_ms=2000, max_records=1))

    def close(self) -> None:
        """Lets go of the connections."""
        clients, self._admin, self._consumer = (self._admin, self._consumer), None, None
        for client in clients:
            if client is not None:
                with contextlib.suppress(Exception):
                    client.close()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        options: dict[str, Any] = {
            "bootstrap_servers": self._settings.servers,
            "bootstrap_timeout_ms": int(_SECONDS * 1000),
            "request_timeout_ms": int(_SECONDS * 1000),
            **self._security,
        }
        try:
            if self._admin is None:
                self._admin = KafkaAdminClient(**options)
            if self._consumer is None:
                self._consumer = KafkaConsumer(
                    **options, enable_auto_commit=False, max_partition_fetch_bytes=1 << 10, isolation_level=ISOLATION
                )
            yield
        except Exception as error:
            self.close()
            text = " ".join(str(error).split())[:200]
            raise HyveError(f"the group {self._group} can't be asked about: {type(error).__name__}: {text}") from None


def _assigned(described: Mapping[str, Any]) -> Iterator[Place]:
    for member in described["members"]:
        assignment = member["member_assignment"]
        for topic in (assignment or {}).get("assigned_partitions", ()):
            for partition in topic["partitions"]:
                yield topic["topic"], partition
