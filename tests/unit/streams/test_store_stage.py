"""The store stage: every request ends once, hop 2 never leads to hop 3, a store that is gone is built again."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from hyve.diagnosis import Diagnosis
from hyve.errors import HyveError
from schemas import Account, Position, RequestMetrics, StoreCommand
from streams import patience
from streams.answered import Answered
from streams.app import Incoming, Outgoing, Poison, now_ms
from tests.unit.streams.store_stages import HERE, Pool, command, prompt, request, result, results_of, stage
from workers.claims import Unreachable
from workers.kafka import RecordGone, RecordLate
from workers.pool import Prepared, RecordUnusable, StoreFault
from workers.settings import load


async def test_a_request_becomes_a_prompt_that_knows_where_the_request_stands() -> None:
    made = prompt(await stage(Pool()).request(request()))
    assert (made.hop, made.request, made.deadline) == (1, HERE, 77)
    assert (made.account.original, made.account.prompt, made.account.created) == (1000, 100, 50)
    assert made.account.ms["collect"] == 2.0
    assert made.account.ms["prepare"] >= 0


async def test_a_request_that_comes_again_is_not_asked_again() -> None:
    pool = Pool()
    store = stage(pool)
    await store.request(request())
    assert await store.request(request()) == []
    result(await store.command(command()))
    assert await store.request(request()) == []
    assert await store.command(command()) == []
    assert len(pool.prepared) == 1


async def test_both_copies_in_one_batch_are_asked_and_answered_once() -> None:
    pool = Pool()
    store = stage(pool)
    asked = await asyncio.gather(store.request(request()), store.request(request()))
    assert sorted(len(out) for out in asked) == [0, 1]
    ended = await asyncio.gather(store.command(command()), store.command(command()))
    assert sorted(len(out) for out in ended) == [0, 2]
    assert len(pool.finished) == 1


async def test_bad_records_in_front_of_a_good_one_of_the_same_key_take_nothing_from_it() -> None:
    pool = Pool()
    pool.raises["prepare"] = [RecordUnusable("not JSON"), RecordUnusable("no question")]
    store = stage(pool)
    done = await asyncio.gather(*(store.request(request()) for _ in range(4)), return_exceptions=True)
    assert [str(out) for out in done if isinstance(out, Poison)] == ["not JSON", "no question"]
    assert [len(out) for out in done if not isinstance(out, BaseException)] == [1, 0]


async def test_a_direct_answer_ends_the_request_and_frees_the_store() -> None:
    pool = Pool()
    store = stage(pool)
    await store.request(request())
    done = result(await store.command(command()))
    assert (done.request_id, done.mode, done.model, done.calls) == ("r", "direct", "m", 1)
    assert (done.tokens.original, done.tokens.prompt, done.tokens.completion) == (1000, 100, 9)
    assert done.question == "why?"
    assert done.ms["total"] > 0
    assert pool.stores == set()


async def test_an_answer_that_kafka_would_refuse_ends_as_failed() -> None:
    class Chatty(Pool):
        async def finish(self, command: StoreCommand, limit: float) -> tuple[Diagnosis, str]:
            return Diagnosis("conclusive", "s", charts=("x" * (17 << 20),), mode="template"), "why?"

    store = stage(Chatty())
    done = result(await store.command(command("template")))
    assert (done.status, done.charts) == ("failed", ())
    assert "is above the limit" in done.summary


async def test_a_query_leads_to_the_only_follow_up_and_that_to_a_result() -> None:
    pool = Pool()
    store = stage(pool)
    await store.request(request())
    second = prompt(await store.command(command("query", sql="SELECT 1")))
    assert (second.hop, second.tools, second.account.follow_up, second.asked) == (2, (), 33, "SELECT 1")
    assert await store.command(command("query", sql="SELECT 1")) == [], "hop 1 twice must not ask twice"
    done = result(await store.command(command("query", hop=2, sql="SELECT 2")))
    assert done.mode == "query"
    assert pool.finished[-1].hop == 2


async def test_a_template_that_does_not_fit_goes_back_to_the_model_once() -> None:
    pool = Pool()
    pool.raises["finish"] = [HyveError("the template has no key 'dta'")]
    store = stage(pool)
    await store.request(request())
    assert prompt(await store.command(command("template"))).hop == 2
    assert await store.command(command("template")) == [], "hop 1 twice must not ask twice"
    assert result(await store.command(command("template", hop=2))).status == "inconclusive"
    assert await store.command(command("template", hop=2)) == []


@pytest.mark.parametrize(
    "first", [command("template"), command("direct", text="one"), command("query", sql="SELECT 1")]
)
async def test_two_decisions_side_by_side_are_answered_once(first: Incoming) -> None:
    """Invariant 8: one of hop 2, of a prompt that a worker sent before it died, beside one of hop 1, asked again."""

    class Slow(Pool):
        async def finish(self, command: StoreCommand, limit: float) -> tuple[Diagnosis, str]:
            await asyncio.sleep(0.02)
            self.stores.add(command.request_id)
            return await super().finish(command, limit)

    store = stage(pool := Slow())
    await store.request(request())
    outs = await asyncio.gather(store.command(first), store.command(command("query", hop=2, sql="SELECT 2")))
    assert [item.topic for out in outs for item in out].count("results") == 1
    assert len(pool.finished) == 1


async def test_a_store_that_is_gone_is_built_from_the_request_record() -> None:
    asked: list[Position] = []

    def read(position: Position) -> bytes:
        asked.append(position)
        return b"r"

    pool = Pool()
    assert result(await stage(pool, read).command(command())).status == "inconclusive"
    assert prompt(await stage(pool, read).command(command("query", sql="SELECT 1"))).hop == 2
    assert asked == [HERE, HERE]
    assert pool.prepared == [b"r", b"r"]


async def test_a_request_record_that_is_gone_fails_the_request_and_says_so() -> None:
    def read(position: Position) -> bytes:
        raise RecordGone("the request record is gone")

    made = await stage(Pool(), read).command(command(text="disk is full"))
    done = result(made)
    assert (done.status, done.summary) == ("failed", "the request record is gone")
    assert done.notes == ("what the model said, which could not be checked: disk is full",)
    assert (done.mode, done.model, done.calls, done.ms["total"] >= 0) == ("direct", "m", 1, True)
    told = RequestMetrics.from_bytes(made[1].value)
    assert (told.mode, told.model, told.ms) == (done.mode, done.model, done.ms)


@pytest.mark.parametrize(
    ("kind", "hop", "mode"),
    [("rules", 1, "rules"), ("query", 1, "query"), ("template", 1, "template"), ("direct", 2, "query")],
)
async def test_a_request_that_failed_says_how_it_was_answered(kind: str, hop: int, mode: str) -> None:
    def read(position: Position) -> bytes:
        raise RecordGone("the request record is gone")

    done = result(await stage(Pool(), read).command(command(kind, hop=hop)))
    assert (done.status, done.mode, done.model) == ("failed", mode, "rules" if mode == "rules" else "m")


@pytest.mark.parametrize("error", [HyveError("cannot reach a Kafka broker"), RecordLate("it did not come within 15 s")])
async def test_a_kafka_that_is_away_for_a_while_costs_no_request_its_answer(error: HyveError) -> None:
    pool, errors = Pool(), [error]

    def read(position: Position) -> bytes:
        if errors:
            raise errors.pop()
        return b"r"

    assert result(await stage(pool, read).command(command())).status == "inconclusive"
    assert (errors, pool.prepared) == ([], [b"r"])


@pytest.mark.parametrize(
    "place", [{"partition": -1, "offset": -5}, {"offset": -1}, {"partition": 4}, {"topic": "hyve.results"}], ids=str
)
async def test_a_decision_whose_request_can_stand_nowhere_is_refused_at_once(place: dict[str, Any]) -> None:
    """Kafka would be asked for it for minutes, and everything behind it in its partition would wait."""

    def read(position: Position) -> bytes:
        raise AssertionError("it was looked for")

    with pytest.raises(Poison, match="its request can't stand at hyve"):
        await stage(Pool(), read).command(command(request=HERE.model_copy(update=place)))


async def test_a_decision_that_names_another_request_is_refused_and_says_so() -> None:
    pool = Pool()
    with pytest.raises(Poison, match="of another request, 'other'"):
        await stage(pool, lambda position: b"other").command(command())


async def test_a_store_that_is_lost_again_and_again_fails_its_request_and_says_so() -> None:
    class Leaking(Pool):
        async def prepare(self, request_id: str, raw: bytes, limit: float) -> Prepared:
            prepared = await super().prepare(request_id, raw, limit)
            self.stores.clear()
            return prepared

    done = result(await stage(Leaking()).command(command()))
    assert (done.status, done.summary.partition(":")[0]) == (
        "failed",
        "its store was lost three times before it could answer",
    )


async def test_why_a_request_failed_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool()
    pool.raises["prepare"] = [HyveError("the input is empty")]
    result(await stage(pool).request(request()))
    (told,) = (record for record in caplog.records if "failed" in record.getMessage())
    assert (told.levelname, told.getMessage()) == ("WARNING", "store: r: failed: the input is empty")


class Away(Pool):
    """A pool whose store of large data is away for the first `times` tries."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.left = times

    async def prepare(self, request_id: str, raw: bytes, limit: float) -> Prepared:
        if self.left > 0:
            self.left -= 1
            raise Unreachable("logs: its data lies at file:///claims/x and can't be read: OSError: gone")
        return await super().prepare(request_id, raw, limit)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("SECONDS", 0.2), ("_FIRST_PAUSE", 0.01), ("_LONGEST_PAUSE", 0.05)):
        monkeypatch.setattr(patience, name, seconds)


@pytest.mark.usefixtures("impatient")
async def test_large_data_that_is_away_for_a_while_costs_no_request_its_answer() -> None:
    """Invariant 5, for the request and for a decision whose store has to be built again."""
    assert prompt(await stage(Away(3)).request(request())).hop == 1
    assert result(await stage(Away(3)).command(command())).status == "inconclusive"
    assert prompt(await stage(Away(3)).command(command("query", sql="SELECT 1"))).hop == 2


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [request(), command(), command("query", sql="SELECT 1"), command("template")])
async def test_large_data_that_stays_away_is_a_dead_letter_and_its_replay_is_answered_once(sent: Incoming) -> None:
    pool = Away(math.inf)
    store = stage(pool)
    process = store.request if sent.topic == HERE.topic else store.command
    with pytest.raises(Poison, match="can't be read: OSError: gone"):
        await process(sent)
    pool.left = 0
    replayed = replace(sent, offset=99)
    out = await process(replayed)
    assert out[0].topic in ("prompts", "results")
    assert await process(replayed) == []
    if out[0].topic == "results":
        assert result(out).status == "inconclusive"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [HyveError("cannot reach a Kafka broker"), RecordLate("it did not come within 15 s")])
async def test_a_kafka_that_stays_away_is_a_dead_letter_that_can_be_replayed(error: HyveError) -> None:
    there = False

    def read(position: Position) -> bytes:
        if there:
            return b"r"
        raise error

    store = stage(Pool(), read)
    with pytest.raises(Poison, match=str(error)):
        await store.command(command())
    there = True
    assert result(await store.command(command())).status == "inconclusive"


async def test_an_answer_that_cannot_be_used_falls_back_to_the_rules() -> None:
    pool = Pool()
    pool.raises["finish"] = [HyveError("path y.(n): no such column")]
    store = stage(pool)
    await store.request(request())
    done = result(await store.command(command("template", hop=2)))
    assert (done.mode, done.model) == ("rules", "rules")
    assert done.summary == "the model's answer could not be used: path y.(n): no such column"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HyveError("the input is empty"), "the input is empty"),
        (StoreFault("Traceback\nValueError: odd"), "the store failed on this data: ValueError: odd"),
    ],
)
async def test_data_that_cannot_be_used_fails_with_the_reason_once_and_for_all(error: Exception, said: str) -> None:
    """One id has one result, a failed one too: what a later try would say is nobody's second answer."""
    pool = Pool()
    pool.raises["prepare"] = [error]
    store = stage(pool)
    assert result(await store.request(request())).summary == said
    assert await store.request(request()) == []


async def test_a_failed_request_that_can_not_be_told_from_others_takes_nothing_from_them() -> None:
    pool = Pool()
    pool.raises["prepare"], pool.raises["digest"] = [HyveError("too large")], [HyveError("too large")]
    store = stage(pool)
    assert result(await store.request(request())).status == "failed"
    assert prompt(await store.request(request())).hop == 1


async def test_records_that_cannot_be_decoded_are_poison() -> None:
    pool = Pool()
    pool.raises["prepare"] = [RecordUnusable("not a DiagnosisRequest: Invalid JSON")]
    with pytest.raises(Poison, match="not a DiagnosisRequest"):
        await stage(pool).request(request())
    with pytest.raises(Poison, match="request_id as the record's key"):
        await stage(pool).request(request(key=None))
    with pytest.raises(Poison, match="'other' is not its request_id 'r'"):
        await stage(Pool()).request(request(key=b"other"))
    with pytest.raises(Poison, match="StoreCommand"):
        await stage(pool).command(Incoming("hyve.queries", 0, 0, b"{}"))


def test_outgoing_takes_odd_ids() -> None:
    sent = Outgoing.of("queries", "a\ud800", StoreCommand(request_id="a", hop=1, kind="rules", request=HERE), 2)
    assert (sent.key, sent.partition) == (b"a?", 2)


async def test_what_another_process_has_answered_is_not_answered_again() -> None:
    """Invariant 8: a worker that was killed after a result and before its commit leaves the records to the next."""
    pool = Pool()
    answered, reads = results_of("r")
    store = stage(pool, answered=answered)
    at = now_ms()
    assert await store.command(replace(command("rules", account=Account(created=at)), timestamp=at)) == []
    assert await store.request(replace(request(), timestamp=at)) == []
    assert (pool.prepared, pool.finished) == ([], [])
    assert reads == [at - 300_000], "results since the request was made, less its deadline"


async def test_a_request_that_failed_after_its_prompt_takes_no_later_answer() -> None:
    """A second call of the model, made because a worker was killed, must not replace the result that stands."""
    pool = Pool()
    store = stage(pool)
    await store.request(request())
    pool.raises["finish"] = [HyveError("gone"), HyveError("gone")]
    assert result(await store.command(command())).status == "failed"
    assert await store.command(command(text="late")) == []


OTHER = b"r other"
"""A record of the same id that asks something else."""


async def test_another_request_under_the_same_id_is_a_dead_letter_and_changes_nothing() -> None:
    """Before the first one's result and after it: nobody gets an answer to what he did not ask."""
    pool = Pool()
    pool.digests = {OTHER: "e"}
    store = stage(pool)
    asked = prompt(await store.request(request()))
    assert asked.digest == "d"
    with pytest.raises(Poison, match="the id 'r' was used before, by a request of other content"):
        await store.request(request(value=OTHER))
    sent = await store.command(command(digest=asked.digest))
    assert (result(sent).status, sent[0].headers) == ("inconclusive", {"hyve-request": b"d"})
    with pytest.raises(Poison, match="was used before"):
        await store.request(request(value=OTHER))
    assert await store.request(request()) == [], "the same one is a repetition"
    assert len(pool.prepared) == 1


async def test_the_id_of_a_request_that_failed_is_used_up_too() -> None:
    pool = Pool()
    pool.digests = {OTHER: "e"}
    pool.raises["prepare"] = [HyveError("the input is empty")]
    store = stage(pool)
    failed = await store.request(request())
    assert (result(failed).status, failed[0].headers) == ("failed", {"hyve-request": b"d"})
    with pytest.raises(Poison, match="was used before"):
        await store.request(request(value=OTHER))
    assert await store.request(request()) == []


async def test_a_worker_that_has_just_started_knows_what_was_asked_under_an_id_from_its_result() -> None:
    pool = Pool()
    pool.digests = {OTHER: "e"}
    store = stage(pool, answered=Answered(load(), lambda since: {"r": "e"}))
    at = now_ms()
    with pytest.raises(Poison, match="was used before"):
        await store.request(replace(request(), timestamp=at))
    assert await store.request(replace(request(value=OTHER), timestamp=at)) == []
    late = command("rules", account=Account(created=at), digest="d")
    with pytest.raises(Poison, match="was used before"):
        await store.command(replace(late, timestamp=at))
    assert pool.prepared == []


async def test_a_decision_on_another_request_of_the_id_is_not_run_over_its_store() -> None:
    """A worker died between the two, and the next one has only seen the second."""
    pool = Pool()
    pool.digests = {OTHER: "e"}
    store = stage(pool)
    await store.request(request(value=OTHER))
    with pytest.raises(Poison, match="was used before"):
        await store.command(command(digest="d"))
    assert pool.finished == []


async def test_a_record_that_can_not_be_read_under_a_used_id_is_poison() -> None:
    pool = Pool()
    store = stage(pool)
    await store.request(request())
    pool.raises["digest"] = [RecordUnusable("not a DiagnosisRequest")]
    with pytest.raises(Poison, match="not a DiagnosisRequest"):
        await store.request(request(value=b"rubbish"))
