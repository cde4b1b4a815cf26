"""Liveness by progress and readiness by assignment, on a clock of the test's (invariant 8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from hyve.errors import HyveError
from streams import metrics
from streams.app import Incoming, Outgoing
from streams.health import LOOP_LIMIT, Health
from workers.group import Offsets
from workers.settings import Settings, load

SHORT = {"prepare_timeout": 10, "query_timeout": 10, "llm_timeout": 10, "collect_timeout": 10, "stall_timeout": 60}
P0, P1 = ("hyve.requests", 0), ("hyve.requests", 1)
RAW = ("hyve.raw", 0)
RECORD = Incoming("hyve.requests", 0, 5, b"{}", b"r", 1_000)


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """A health whose loop turns and whose broker answers while the test's time goes by."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or load(**SHORT)
        self.clock = Clock()
        self.health = Health(self.settings, "store", self.clock)
        self.offsets = {P0: Offsets(5, 5), P1: Offsets(7, 7)}
        self.holes: set[tuple[str, int]] = set()

    def assigned(self) -> Worker:
        self.health.beat()
        self.health.assigned(self.offsets)
        self.health.saw(self.offsets)
        return self

    def goes(self, seconds: float, *, turns: bool = True, answers: bool = True, standby: bool = False) -> None:
        for _ in range(int(seconds // 5)):
            self.clock.now += 5
            if turns:
                self.health.beat()
            self.health.asks()
            if answers:
                self.health.saw(self.offsets, standby=standby, holes=self.holes)
            else:
                self.health.failed()

    def wrong(self) -> list[str]:
        return [fault.check for fault in self.health.faults()]

    def missing(self) -> list[str]:
        return [fault.check for fault in self.health.missing()]


async def forever(record: Incoming) -> Sequence[Outgoing]:
    await asyncio.Event().wait()
    return []


async def at_once(record: Incoming) -> Sequence[Outgoing]:
    return []


async def test_a_process_that_hangs_is_death_and_says_since_when() -> None:
    worker = Worker().assigned()
    task = asyncio.create_task(worker.health.watched("prepare", forever)(RECORD))
    await asyncio.sleep(0)
    worker.goes(60)
    assert worker.wrong() == []
    worker.goes(5)
    assert worker.wrong() == ["progress"]
    told = worker.health.live()
    assert told["status"] == "dead"
    (fault,) = told["faults"]
    assert fault["what"].startswith("1 records in hand (prepare: 1), 0 deliveries under way, 0 not acknowledged")
    assert fault["seconds"] == 65.0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert worker.wrong() == []


async def test_a_slow_record_is_no_death_while_others_end_until_its_own_limit() -> None:
    worker = Worker().assigned()
    task = asyncio.create_task(worker.health.watched("prepare", forever)(RECORD))
    await asyncio.sleep(0)
    quick = worker.health.watched("finish", at_once)
    for _ in range(int(worker.settings.record_limit // 20)):
        worker.goes(20)
        await quick(RECORD)
        assert worker.wrong() == []
    worker.goes(5)
    assert worker.wrong() == ["record"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_worker_that_idles_is_alive_for_ever() -> None:
    worker = Worker().assigned()
    worker.goes(100_000)
    assert worker.wrong() == []
    assert worker.health.live() == {"status": "alive", "worker": "store", "faults": []}


def test_a_consumer_that_died_quietly_is_seen_by_its_lag() -> None:
    """The port answers and the loop turns, but nothing is fetched any more."""
    worker = Worker().assigned()
    worker.goes(500)
    worker.offsets = {**worker.offsets, P0: Offsets(5, 9)}
    worker.goes(60)
    assert worker.wrong() == []
    worker.goes(10)
    assert worker.wrong() == ["progress"]
    assert "4 not acknowledged" in worker.health.faults()[0].what
    worker.offsets = {**worker.offsets, P0: Offsets(6, 9)}
    worker.goes(5)
    assert worker.wrong() == []


def test_one_partition_that_stands_still_is_seen_beside_others_that_move() -> None:
    worker = Worker().assigned()
    worker.offsets = {P0: Offsets(5, 9), P1: Offsets(7, 8)}
    for step in range(int(worker.settings.record_limit // 20)):
        worker.offsets[P1] = Offsets(8 + step, 9 + step)
        worker.goes(20)
        assert worker.wrong() == []
    worker.offsets[P1] = Offsets(10_000, 10_000)
    worker.goes(10)
    assert worker.wrong() == ["partition"]
    assert worker.health.faults()[0].what == "hyve.requests[0]: offset 5 of 9 is not committed"


def test_a_loop_that_hangs_is_death_whatever_kafka_does() -> None:
    worker = Worker().assigned()
    worker.goes(LOOP_LIMIT, turns=False, answers=False)
    assert worker.wrong() == []
    worker.goes(5, turns=False, answers=False)
    assert worker.wrong() == ["loop"]


async def test_a_broker_that_pauses_kills_no_worker_and_all_limits_begin_anew() -> None:
    worker = Worker().assigned()
    worker.offsets = {**worker.offsets, P0: Offsets(5, 9)}
    hand = asyncio.create_task(worker.health.watched("prepare", forever)(RECORD))

    async def stuck(records: Iterable[Outgoing]) -> None:
        await asyncio.Event().wait()

    sent = asyncio.create_task(worker.health.sending(stuck)([]))
    await asyncio.sleep(0)
    worker.goes(10_000, answers=False)
    assert worker.wrong() == []
    assert worker.health.live()["notes"] == ["Kafka does not answer: only the event loop is judged"]
    worker.goes(60)
    assert worker.wrong() == []
    worker.goes(10)
    assert worker.wrong() == ["progress"]
    assert "1 deliveries under way" in worker.health.faults()[0].what
    for task in (hand, sent):
        task.cancel()
    await asyncio.gather(hand, sent, return_exceptions=True)


def test_a_question_that_gets_no_answer_is_silence_at_once() -> None:
    worker = Worker().assigned()
    worker.offsets = {**worker.offsets, P0: Offsets(5, 9)}
    worker.goes(70)
    assert worker.wrong() == ["progress"]
    worker.health.asks()
    worker.clock.now += 3
    assert worker.wrong() == []


def test_offsets_that_hold_no_record_are_no_lag() -> None:
    """The last offset of a transaction is its marker: the group stands before it for ever."""
    worker = Worker()
    worker.offsets = {RAW: Offsets(5, 6)}
    worker.holes = {RAW}
    worker.assigned().goes(10_000)
    assert worker.wrong() == []


class Reader:
    """Answers as a broker would."""

    def __init__(self, offsets: dict[tuple[str, int], Offsets], owned: set[tuple[str, int]] | None = None) -> None:
        self._offsets, self._owned = offsets, owned
        self.read: list[tuple[tuple[str, int], int]] = []

    def offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Offsets]:
        return {place: self._offsets[place] for place in places}

    def owned(self) -> set[tuple[str, int]]:
        if self._owned is None:
            raise HyveError("not told")
        return self._owned

    def holds_record(self, place: tuple[str, int], offset: int) -> bool:
        self.read.append((place, offset))
        return False


def test_only_topics_of_others_are_read_for_holes_and_only_where_they_stand_still() -> None:
    worker = Worker()
    worker.offsets = {RAW: Offsets(5, 6), P0: Offsets(5, 6)}
    worker.assigned()
    reader = Reader(worker.offsets)
    for _ in range(8):
        worker.clock.now += 5
        worker.health.beat()
        worker.health._ask_once(reader)  # type: ignore[arg-type]
    assert set(reader.read) == {(RAW, 5)}
    assert len(reader.read) == 2, "at 35 s and 40 s, past half of the limit of 60 s"
    worker.goes(0)
    samples = scraped(worker.health)
    assert samples['hyve_consumer_lag_records{partition="0",topic="hyve.raw"}'] == 0
    assert samples['hyve_consumer_lag_records{partition="0",topic="hyve.requests"}'] == 1


def test_not_ready_before_partitions_are_assigned() -> None:
    worker = Worker()
    assert worker.missing() == ["assignment"]
    worker.clock.now += 20
    told = worker.health.ready()
    assert told["status"] == "not ready"
    assert (told["faults"][0]["what"], told["faults"][0]["seconds"]) == ("no partitions are assigned yet", 20.0)
    worker.assigned()
    assert worker.missing() == []
    assert worker.health.ready()["status"] == "ready"


def test_not_ready_before_the_pool_is_warm() -> None:
    worker = Worker().assigned()
    worker.health.waits("pool", "the pool's processes are starting")
    assert worker.missing() == ["pool"]
    worker.health.there("pool")
    assert worker.missing() == []


def test_a_worker_that_is_told_to_stop_is_not_ready() -> None:
    class App:
        should_stop = False

    worker = Worker().assigned()
    worker.health._app = App
    assert worker.missing() == []
    App.should_stop = True
    assert worker.missing() == ["stopping"]


def test_a_standby_is_ready_once_others_are_known_to_have_all_partitions() -> None:
    worker = Worker()
    worker.health.beat()
    worker.health.assigned([])
    assert worker.missing() == ["assignment"]
    worker.health._ask_once(Reader({}, owned=None))  # type: ignore[arg-type]
    assert worker.missing() == ["assignment"]
    worker.health._ask_once(Reader({}, owned={P0, P1}))  # type: ignore[arg-type]
    assert worker.missing() == []
    assert worker.health.ready()["notes"] == ["a standby: other workers have all partitions"]


def test_a_rebalance_makes_nobody_unready_unless_it_does_not_end() -> None:
    worker = Worker().assigned()
    worker.health.revoked()
    worker.goes(worker.settings.rebalance_limit // 5 * 5)
    assert (worker.missing(), worker.wrong()) == ([], [])
    worker.goes(5)
    assert (worker.missing(), worker.wrong()) == (["assignment"], [])
    worker.goes(worker.settings.stall_limit)
    assert worker.wrong() == ["assignment"]
    worker.health.assigned([P0])
    assert (worker.missing(), worker.wrong()) == ([], [])


def test_a_worker_that_never_starts_is_dead_only_where_kafka_answers() -> None:
    worker = Worker()
    worker.goes(500, turns=False, answers=False)
    assert worker.wrong() == []
    worker.goes(70, turns=False)
    assert worker.wrong() == ["loop"]


def scraped(health: Health) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(health)
    lines = generate_latest(registry).decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


async def test_metrics_of_a_partition_come_and_go_with_it() -> None:
    worker = Worker().assigned()
    worker.offsets[P0] = Offsets(5, 9)
    task = asyncio.create_task(worker.health.watched("prepare", forever)(RECORD))
    await asyncio.sleep(0)
    worker.goes(20)
    found = scraped(worker.health)
    late = found.pop('hyve_consumer_lag_seconds{partition="0",topic="hyve.requests"}')
    assert late > 1_000_000_000, "the record is of 1970"
    assert found == {
        'hyve_consumer_lag_records{partition="0",topic="hyve.requests"}': 4,
        'hyve_consumer_lag_records{partition="1",topic="hyve.requests"}': 0,
        'hyve_consumer_lag_seconds{partition="1",topic="hyve.requests"}': 0,
        'hyve_assigned_partitions{topic="hyve.requests"}': 2,
        'hyve_record_age_seconds{stage="prepare"}': 20,
        'hyve_records_in_hand{stage="prepare"}': 1,
        "hyve_progress_age_seconds": 20,
        "hyve_loop_age_seconds": 0,
        "hyve_kafka_answers": 1,
    }
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    worker.health.assigned([P1])
    assert not [name for name in scraped(worker.health) if 'partition="0"' in name]
    assert scraped(worker.health)['hyve_record_age_seconds{stage="prepare"}'] == 0
    worker.goes(5, answers=False)
    assert not [name for name in scraped(worker.health) if "lag" in name], "unknown is not 0"


async def test_what_process_and_send_give_and_raise_passes_through() -> None:
    health = Worker().health
    out = [Outgoing("results", b"k", b"v")]
    sent: list[Outgoing] = []

    async def process(record: Incoming) -> Sequence[Outgoing]:
        if record is RECORD:
            return out
        raise ValueError("bad")

    async def send(records: Iterable[Outgoing]) -> None:
        sent.extend(records)

    watched = health.watched("prepare", process)
    assert await watched(RECORD) is out
    with pytest.raises(ValueError, match="bad"):
        await watched(Incoming("hyve.requests", 0, 6, b""))
    await health.sending(send)(iter(out))
    assert sent == out
    assert scraped(health)['hyve_records_in_hand{stage="prepare"}'] == 0


def test_the_port_answers_with_a_status_and_a_reason() -> None:
    worker = Worker(load(**SHORT, metrics_port=0))
    port = metrics.serve(worker.settings, "store", worker.health)
    try:
        base = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{base}/healthz").status_code == 200
        assert httpx.get(f"{base}/livez").json()["status"] == "alive"
        unready = httpx.get(f"{base}/readyz")
        assert (unready.status_code, unready.headers["content-type"]) == (503, "application/json")
        (fault,) = unready.json()["faults"]
        assert set(fault) == {"check", "what", "since", "seconds"}
        worker.assigned()
        assert httpx.get(f"{base}/readyz").status_code == 200
        worker.clock.now += LOOP_LIMIT + 1
        dead = httpx.get(f"{base}/healthz")
        assert (dead.status_code, dead.json()["faults"][0]["what"]) == (503, "the event loop does not turn")
        scraped_ = httpx.get(f"{base}/metrics").text
        assert "hyve_progress_age_seconds 31.0" in scraped_
        assert "hyve_commits_total" in scraped_
        assert httpx.get(f"{base}/secrets").status_code == 404
        with pytest.raises(HyveError, match=f"can't serve metrics on 127.0.0.1:{port}"):
            metrics.serve(load(metrics_port=port), "store", worker.health)
    finally:
        REGISTRY.unregister(worker.health)


def test_what_is_told_is_json_for_any_name() -> None:
    worker = Worker()
    worker.health.note("model ✓ \ud800")
    answered: list[Any] = []
    application = metrics.application(worker.health, CollectorRegistry())
    body = b"".join(application({"PATH_INFO": "/readyz"}, lambda status, headers: answered.append(status)))
    assert answered == ["503 Service Unavailable"]
    assert json.loads(body)["notes"] == ["model ✓ \ud800"]


def test_without_kafka_no_worker_is_ready_and_all_stay_alive() -> None:
    """A balancer has to turn elsewhere: the webhook of such a worker can only answer 503."""
    worker = Worker().assigned()
    worker.goes(15, answers=False)
    assert worker.missing() == [], "a hiccup"
    worker.goes(5, answers=False)
    assert (worker.missing(), worker.wrong()) == (["kafka"], [])
    (fault,) = worker.health.ready()["faults"]
    assert (fault["what"], fault["seconds"]) == ("Kafka does not answer", 20.0)
    worker.goes(5)
    assert worker.missing() == []


def test_a_question_that_kafka_leaves_open_is_no_answer() -> None:
    worker = Worker().assigned()
    worker.health.asks()
    worker.clock.now += 20
    worker.health.beat()
    assert worker.missing() == ["kafka"]


def test_a_worker_that_kafka_never_answered_is_not_ready() -> None:
    worker = Worker()
    worker.health.assigned([P0])
    assert worker.missing() == []
    worker.goes(20, answers=False)
    assert worker.missing() == ["kafka"]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log was told since the last time."""
    found = [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "hyve"]
    caplog.clear()
    return found


def test_that_the_worker_is_ready_or_ceases_to_be_is_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    worker = Worker()
    worker.health.waits("pool", "the pool's processes are starting")
    for _ in range(3):
        worker.health.tell()
    starting = "INFO worker: not ready: the pool's processes are starting; no partitions are assigned yet"
    assert said(caplog) == [starting]
    worker.health.there("pool")
    worker.assigned()
    for _ in range(3):
        worker.goes(5)
        worker.health.tell()
    assert said(caplog) == ["INFO worker: ready: 2 partitions of hyve.requests"]
    worker.health.revoked()
    worker.health.tell()
    assert said(caplog) == []
    worker.goes(worker.settings.rebalance_limit + 10)
    for _ in range(3):
        worker.health.tell()
    assert said(caplog) == ["WARNING worker: not ready: the group shares its partitions out anew"]
    worker.assigned()
    worker.health.tell()
    assert said(caplog) == ["INFO worker: ready: 2 partitions of hyve.requests"]
    worker.offsets = {}
    worker.assigned()
    worker.goes(5, standby=True)
    worker.health.tell()
    assert said(caplog) == ["INFO worker: ready, as a standby: other workers have all partitions"]


def test_that_kafka_is_gone_and_back_is_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    worker = Worker().assigned()
    worker.health.tell()
    said(caplog)
    for _ in range(12):
        worker.goes(5, answers=False)
        worker.health.tell()
    (gone,) = said(caplog)
    address = worker.settings.bootstrap_servers
    assert gone == (
        f"WARNING worker: Kafka at {address} has not answered for 20 s: it is asked on, and what is in hand waits"
    )
    worker.goes(5)
    worker.health.tell()
    assert said(caplog) == ["WARNING worker: Kafka answers again, after 65 s"]
    worker.goes(5)
    worker.health.tell()
    assert said(caplog) == []
