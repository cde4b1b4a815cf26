"""Blocking Kafka calls by kafka-python: topics, one record by position, records by time.

Rules:
- Called from a thread or a command line, never on an event loop.
- Every failure is a `HyveError` of one line; kafka-python's own log stays silent but for what is
  critical.
- A read by time trusts only what it sees: it checks each record's timestamp itself (a partition is not in
  the order of event time, and some brokers answer `offsets_for_times` with offset 0), and it ends on a
  later record beyond the end that the broker named, on silence, or at its deadline. `end_offsets` alone
  never ends it.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import InvalidReplicationFactorError, KafkaError, TopicAlreadyExistsError
from kafka.partitioner import murmur2

from hyve.errors import HyveError
from schemas import Position
from workers.security import client_options
from workers.settings import Settings

FETCH_BYTES = 64 << 20
MAX_REQUEST = 100 << 20
ISOLATION = "read_committed"
"""No record of a transaction that was aborted is read, and none of one that is open; the end of a partition, as Kafka
names it then, lies before such a one."""

ORIGIN, ATTEMPTS = "hyve-origin", "hyve-attempts"
"""Headers of a record that was replayed: where it first stood (TOPIC/PARTITION/OFFSET), and how often it has failed."""
REQUEST = "hyve-request"
"""Header of a result: what tells the request that it answers from others of its id (`DiagnosisRequest.digest`)."""


_SILENCE = 2.0
"""Seconds without a record after which it is asked whether there is one."""


class RecordGone(HyveError):
    """The record that a position names is no longer on its topic."""


class RecordEmpty(RecordGone):
    """It stands there without a value."""


class RecordLate(RecordGone):
    """It did not come in time: Kafka is slow, or never had it."""


@dataclass(frozen=True)
class Stored:
    """One record as it stands on Kafka. `timestamp` is epoch milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, record: Any) -> Stored:
        """The record that kafka-python's `record` is; it has a value."""
        return cls(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            bytes(record.value),
            tuple(record.headers or ()),
        )

    @property
    def request(self) -> str:
        """Of a result: its request's digest; "" where none is told."""
        return (dict(self.headers).get(REQUEST) or b"").decode("utf-8", "replace")


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that Kafka's default partitioner picks for `key`."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


def said(error: BaseException) -> str:
    """What an error of kafka-python says, without the request that it prints: one line, at most 300 characters."""
    text = " ".join(str(error).split())
    if broker := _BROKERS_WORDS.search(text):
        text = broker[2]
    return re.sub(r"^\[Error \d+\] \w+: Request '.*", "", text)[:300] or type(error).__name__


_BROKERS_WORDS = re.compile(r"""error_message=(['"])(.*?)\1[,)]""")


@contextlib.contextmanager
def _told(settings: Settings, doing: str) -> Iterator[None]:
    """Turns kafka-python's errors into one line each."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        yield
    except HyveError:
        raise
    except (KafkaError, OSError, ValueError) as error:
        text = said(error)
        if "bootstrap" in text.lower() or "NoBrokersAvailable" in text or isinstance(error, OSError):
            # The client tells a broker that refuses it, or that it doesn't trust, from none at all only in its own log.
            secured = settings.security_protocol != "PLAINTEXT"
            refused = ", and HYVE_SECURITY_PROTOCOL, HYVE_SASL_* and HYVE_SSL_*" if secured else ""
            raise HyveError(
                f"cannot reach a Kafka broker at {settings.bootstrap_servers}: is it running? "
                f"Check HYVE_BOOTSTRAP_SERVERS (host:port, by commas){refused}"
            ) from None
        raise HyveError(f"{doing} failed at {settings.bootstrap_servers}: {type(error).__name__}: {text}") from None


def _connecting(settings: Settings) -> dict[str, Any]:
    return {
        "bootstrap_servers": settings.servers,
        "bootstrap_timeout_ms": int(settings.connect_timeout * 1000),
        **client_options(settings),
    }


@contextlib.contextmanager
def _admin(settings: Settings) -> Iterator[KafkaAdminClient]:
    with _told(settings, "asking Kafka for its topics"):
        client = KafkaAdminClient(**_connecting(settings))
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def _consumer(settings: Settings, doing: str, **options: Any) -> Iterator[KafkaConsumer]:
    with _told(settings, doing):
        consumer = KafkaConsumer(
            **_connecting(settings),
            enable_auto_commit=False,
            fetch_max_bytes=FETCH_BYTES,
            fetch_max_wait_ms=100,
            receive_message_max_bytes=2 * FETCH_BYTES,
            isolation_level=ISOLATION,
            **options,
        )
        try:
            yield consumer
        finally:
            consumer.close()


@contextlib.contextmanager
def producing(settings: Settings) -> Iterator[KafkaProducer]:
    """A producer whose records are all delivered when the block ends."""
    with _told(settings, "producing"):
        producer = KafkaProducer(
            **_connecting(settings),
            max_request_size=MAX_REQUEST,
            compression_type="gzip",
            linger_ms=5,
            acks="all",
        )
        try:
            yield producer
            producer.flush(60)
        finally:
            producer.close(timeout=5)


def list_topics(settings: Settings) -> dict[str, int]:
    """Every topic of ours that exists, and its number of partitions."""
    ours = {settings.topic(name) for name in settings.topics()} | set(settings.raw)
    with _admin(settings) as admin:
        return _counts(admin, ours)


def _counts(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, int]:
    """Those of `names` that the broker knows by now, and their partitions."""
    there = sorted(set(names) & set(admin.list_topics()))
    found = admin.describe_topics(there) if there else []
    return {topic["name"]: len(topic["partitions"]) for topic in found if topic["partitions"]}


def create_topics(settings: Settings) -> dict[str, bool]:
    """Creates what is missing, from the table of topics, and waits until the broker serves it.

    Raw topics of other names, in HYVE_RAW_TOPICS, are their owner's and left alone. Name -> whether it was created now.
    """
    wanted = {settings.topic(name): topic for name, topic in settings.topics().items()}
    if settings.topic("raw") not in settings.raw:
        wanted.pop(settings.topic("raw"))
    made: dict[str, bool] = {}
    with _admin(settings) as admin:
        there = set(admin.list_topics())
        pair = [settings.topic("requests"), settings.topic("queries")]
        planned = {name: wanted[name].partitions for name in pair}
        _check_alike(pair, {**planned, **_counts(admin, [name for name in pair if name in there])})
        for name, topic in wanted.items():
            made[name] = False
            if name in there:
                continue
            new = NewTopic(name, topic.partitions, settings.replication, topic_configs=topic.config())
            try:
                admin.create_topics([new])
                made[name] = True
            except TopicAlreadyExistsError:
                pass
            except InvalidReplicationFactorError as error:
                raise HyveError(
                    f"{name} can't have HYVE_REPLICATION={settings.replication} replicas: {said(error)}"
                ) from None
        # Kafka answers as soon as the controller has taken a topic down; the brokers learn of it a little later.
        end = time.monotonic() + max(15.0, settings.connect_timeout)
        while missing := sorted(set(wanted) - set(counts := _counts(admin, wanted))):
            if time.monotonic() > end:
                raise HyveError(f"topics were created but are not served: {', '.join(missing)}; is a broker down?")
            time.sleep(0.05)
    _check_alike(pair, counts)  # somebody else may have made one meanwhile
    return made


def _check_alike(pair: Sequence[str], counts: Mapping[str, int]) -> None:
    if counts[pair[0]] != counts[pair[1]]:
        raise HyveError(
            f"{pair[0]} has (or would get) {counts[pair[0]]} partitions and {pair[1]} {counts[pair[1]]}: "
            "they need the same number, for a request and its queries must meet on one worker"
        )


def check_raw(settings: Settings) -> None:
    """HyveError that names the raw topics which don't exist, or which HYVE writes: a name that was mistyped would be
    read for ever, and what the intake writes and reads again would never end.

    Ours is not asked about: `create_topics` has made it.
    """
    written = {settings.topic(name) for name in settings.topics()} - {settings.topic("raw")}
    if fed := sorted(written & set(settings.raw)):
        raise HyveError(f"HYVE_RAW_TOPICS: {', '.join(fed)} is written by HYVE itself, whose intake would feed on it")
    others = set(settings.raw) - {settings.topic("raw")}
    if not others:
        return
    with _admin(settings) as admin:
        missing = sorted(others - set(admin.list_topics()))
    if missing:
        raise HyveError(
            f"no topic {', '.join(missing)} at {settings.bootstrap_servers}: correct HYVE_RAW_TOPICS, or create what "
            "it names (HYVE doesn't: partitions and retention are their owner's)"
        )


def topic_names(settings: Settings) -> set[str]:
    """The names of all topics there are, whosever they are."""
    with _admin(settings) as admin:
        return set(admin.list_topics())


def partitions(settings: Settings, topic: str) -> int:
    """Number of partitions of `topic`; `HyveError` where it doesn't exist."""
    with _consumer(settings, f"asking for {topic}") as consumer:
        found = consumer.partitions_for_topic(topic)
    if not found:
        raise HyveError(f"topic {topic} does not exist at {settings.bootstrap_servers}: run `hyve topics create`")
    return len(found)


def read_one(settings: Settings, position: Position, timeout: float = 15.0) -> bytes:
    """The value of the record at `position`. Raises `RecordGone` where Kafka no longer has it, or `RecordLate`."""
    where = f"{position.topic}[{position.partition}] offset {position.offset}"
    gone = f"the request record at {where} is gone: its topic's retention has passed"
    with _consumer(settings, f"reading {where}", max_partition_fetch_bytes=FETCH_BYTES, max_poll_records=1) as consumer:
        place = TopicPartition(position.topic, position.partition)
        consumer.assign([place])
        consumer.seek(place, position.offset)
        end = time.monotonic() + timeout
        look, beyond, asked = time.monotonic() + _SILENCE, False, False
        while time.monotonic() < end:
            records = consumer.poll(timeout_ms=500).get(place, ())
            if not records and beyond:
                raise RecordGone(f"there is no request record at {where}: the partition ends before")
            if not records and not asked:
                asked = True  # a client that is sent for what retention took may just stay silent
                if consumer.beginning_offsets([place])[place] > position.offset:
                    raise RecordGone(gone)
            if not records and time.monotonic() > look:
                # Some brokers name an end that lies too early, but those give what is there when they are asked again.
                beyond = consumer.end_offsets([place])[place] <= position.offset
                look = time.monotonic() + timeout
            for record in records:
                if record.offset == position.offset and record.value is not None:
                    return bytes(record.value)
                if record.offset == position.offset:
                    raise RecordEmpty(f"the record at {where} is empty")
                if record.offset > position.offset:
                    raise RecordGone(gone)
    raise RecordLate(f"the request record at {where} did not come within {timeout:g} s")


class RangeReader:
    """Reads records between two times (epoch ms, both included), one connection for several rounds. What came before
    that is dated up to `ahead` ms after the second time is taken too.

    `timed_out` says that the deadline ended a round before the partition's end.
    """

    def __init__(
        self, settings: Settings, topic: str, since: int, until: int, deadline: float, *, ahead: int = 0
    ) -> None:
        self._settings, self._topic, self._ahead = settings, topic, ahead
        self._since, self._until = since, until
        self._deadline = deadline
        self.timed_out = False
        self.partitions = 0
        self._stack = contextlib.ExitStack()
        self._consumer: KafkaConsumer | None = None

    def __enter__(self) -> RangeReader:
        self._consumer = self._stack.enter_context(
            _consumer(
                self._settings,
                f"reading {self._topic}",
                max_partition_fetch_bytes=8 << 20,
                max_poll_records=5000,
            )
        )
        found = self._consumer.partitions_for_topic(self._topic)
        if not found:
            self._stack.close()
            raise HyveError(f"topic {self._topic} does not exist: run `hyve topics create`")
        self.partitions = len(found)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, partitions: Sequence[int]) -> Iterator[Stored]:
        """The records of `partitions` in the range, in the order of arrival for each partition."""
        consumer = self._consumer
        if consumer is None or not partitions:
            return
        with _told(self._settings, f"reading {self._topic}"):
            places = [TopicPartition(self._topic, partition) for partition in partitions]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            starts = consumer.offsets_for_times(dict.fromkeys(places, self._since))
            for place in places:
                start = starts.get(place)
                consumer.seek(place, start.offset if start is not None else ends.get(place, 0))
            open_ = set(places)
            heard = time.monotonic()
            while open_:
                now = time.monotonic()
                if now > self._deadline:
                    self.timed_out = True
                    return
                if now - heard > self._settings.collect_idle:
                    return
                for place, records in consumer.poll(timeout_ms=100).items():
                    heard = time.monotonic()
                    for record in records:
                        if record.timestamp > self._until and record.offset >= ends.get(place, 0):
                            open_.discard(place)
                        if self._since <= record.timestamp <= self._until + self._ahead and record.value is not None:
                            yield Stored.of(record)
                    if place not in open_:
                        consumer.pause(place)


def wait_for(
    settings: Settings, topic: str, key: bytes, timeout: float, check: Callable[[], None] = lambda: None
) -> Stored | None:
    """The first record with a value under `key` on `topic` (read from its start); None where time runs out.

    `check` is called all the while; what it raises ends the wait.
    """
    with _consumer(
        settings, f"reading {topic}", max_partition_fetch_bytes=FETCH_BYTES, auto_offset_reset="earliest"
    ) as consumer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        if not places:
            raise HyveError(f"topic {topic} does not exist: run `hyve topics create`")
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            check()
            for records in consumer.poll(timeout_ms=200).values():
                for record in records:
                    if record.key == key and record.value is not None:
                        return Stored.of(record)
    return None
