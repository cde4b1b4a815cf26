"""Kafka calls against a broker: topics, positions, reads by time."""

from __future__ import annotations

import time

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic

from hyve.errors import HyveError
from schemas import Position
from workers import kafka
from workers.kafka import RangeReader, RecordGone, RecordLate
from workers.settings import Settings, load


@pytest.fixture
def settings(broker: str, run_id: str, request: pytest.FixtureRequest) -> Settings:
    prefix = "k" + "".join(letter for letter in request.node.name if letter.isalnum())[:40]
    return load(bootstrap_servers=broker, topic_prefix=f"{prefix}-{run_id}")


def test_topics_are_created_once(settings: Settings) -> None:
    first = kafka.create_topics(settings)
    assert set(first) == {settings.topic(name) for name in settings.topics()}
    assert set(first.values()) == {True}
    assert set(kafka.create_topics(settings).values()) == {False}
    assert kafka.list_topics(settings) == dict.fromkeys(sorted(first), 6)


def test_raw_topics_that_are_named_are_their_owners(broker: str, run_id: str) -> None:
    """One that was mistyped is told, not made: it would be read for ever, and nothing would come."""
    settings = load(bootstrap_servers=broker, topic_prefix=f"kraw-{run_id}", raw_topics=f"nosuch-{run_id}=text")
    made = kafka.create_topics(settings)
    assert settings.topic("raw") not in made
    with pytest.raises(HyveError, match=rf"no topic nosuch-{run_id} at .*: correct HYVE_RAW_TOPICS"):
        kafka.check_raw(settings)
    assert f"nosuch-{run_id}" not in kafka.list_topics(settings)
    there = settings.topic("requests")  # somebody else's, for a pipeline of another prefix
    kafka.check_raw(load(bootstrap_servers=broker, topic_prefix=f"other-{run_id}", raw_topics=there))


def test_a_large_record_is_read_again_by_its_position(settings: Settings) -> None:
    kafka.create_topics(settings)
    large = bytes(range(256)) * (12 << 12)
    with kafka.producing(settings) as producer:
        sent = [producer.send(settings.topic("requests"), value, key=b"r") for value in (b"before", large, b"after")]
    places = [future.get(10) for future in sent]
    position = Position(topic=places[1].topic, partition=places[1].partition, offset=places[1].offset)
    assert kafka.read_one(settings, position) == large
    beyond = position.model_copy(update={"offset": places[2].offset + 5})
    with pytest.raises(RecordLate, match=r"did not come within 0\.5 s"):
        kafka.read_one(settings, beyond, timeout=0.5)
    for more in (1, 5, 10**9):  # none stands there: waiting longer is of no use
        nowhere = position.model_copy(update={"offset": places[2].offset + more})
        with pytest.raises(RecordGone, match="the partition ends before") as caught:
            kafka.read_one(settings, nowhere, timeout=60)
        assert not isinstance(caught.value, RecordLate)


@pytest.mark.apache
def test_a_record_that_retention_took_is_told_to_be_gone_at_once(settings: Settings) -> None:
    """A worker that waits for it holds up others."""
    kafka.create_topics(settings)
    with kafka.producing(settings) as producer:
        sent = [producer.send(settings.topic("requests"), b"x", key=b"gone") for _ in range(3)]
        place = sent[2].get(10)
    admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    admin.delete_records({TopicPartition(place.topic, place.partition): place.offset})
    admin.close()
    position = Position(topic=place.topic, partition=place.partition, offset=place.offset - 1)
    with pytest.raises(RecordGone, match="its topic's retention has passed"):
        kafka.read_one(settings, position, timeout=600)


def test_topics_that_would_not_fit_each_other_are_refused_before_any_is_made(broker: str, run_id: str) -> None:
    settings = load(bootstrap_servers=broker, topic_prefix=f"unlike-{run_id}")
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics([NewTopic(settings.topic("requests"), 2, 1)])
    admin.close()
    with pytest.raises(
        HyveError, match=r"requests has \(or would get\) 2 partitions and .*queries 6: they need the same"
    ):
        kafka.create_topics(settings)
    assert set(kafka.list_topics(settings)) == {settings.topic("requests")}


def test_keys_land_where_partition_of_says(settings: Settings) -> None:
    kafka.create_topics(settings)
    with kafka.producing(settings) as producer:
        sent = {key: producer.send(settings.topic("requests"), b"x", key=key) for key in (b"a", b"orders", b"r-17")}
    for key, future in sent.items():
        assert future.get(10).partition == kafka.partition_of(key, 6)


def test_a_read_by_time_checks_each_record_and_is_not_ended_by_a_clock_that_runs_ahead(
    settings: Settings,
) -> None:
    kafka.create_topics(settings)
    now = int(time.time() * 1000)
    times = [now - 9000, now + 3_600_000, now - 3000, now - 60_000, now - 1000, now - 5000, now + 240_000]
    with kafka.producing(settings) as producer:
        for when in times:
            producer.send(settings.topic("telemetry"), str(when).encode(), key=b"e", timestamp_ms=when)
    with RangeReader(settings, settings.topic("telemetry"), now - 9000, now, time.monotonic() + 10) as reader:
        found = [int(record.value) for record in reader.read(range(reader.partitions))]
        assert not reader.timed_out
    assert found == [now - 9000, now - 3000, now - 1000, now - 5000]
    deadline = time.monotonic() + 10
    with RangeReader(settings, settings.topic("telemetry"), now - 9000, now, deadline, ahead=300_000) as reader:
        assert [int(record.value) for record in reader.read(range(reader.partitions))] == [*found, now + 240_000]
        assert not reader.timed_out


def test_a_read_by_time_ends_at_its_deadline(settings: Settings) -> None:
    kafka.create_topics(settings)
    with RangeReader(settings, settings.topic("telemetry"), 0, 1, time.monotonic() - 1) as reader:
        assert list(reader.read([0])) == []
        assert reader.timed_out


def test_a_topic_that_is_missing_names_the_remedy(broker: str) -> None:
    settings = load(bootstrap_servers=broker, topic_prefix="nobody")
    with pytest.raises(HyveError, match="run `hyve topics create`"):
        kafka.wait_for(settings, "nobody.results", b"r", 1)
    with (
        pytest.raises(HyveError, match="does not exist"),
        RangeReader(settings, "nobody.x", 0, 1, time.monotonic() + 1),
    ):
        pass
