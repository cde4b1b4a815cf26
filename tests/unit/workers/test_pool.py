"""The store pool with real processes and stores: stores are found again, and losing one is survived."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
import pytest_asyncio

from hyve.diagnosis import CUT, Diagnosis
from hyve.errors import HyveError
from schemas import Account, DiagnosisRequest, Payload, Position, StoreCommand
from workers import claims
from workers.pool import RecordUnusable, StoreDied, StoreMissing, StoreOverran, StorePool

POSITION = Position(topic="hyve.requests", partition=0, offset=0)


def raw(request_id: str, rows: int = 40, unlike: bool = False) -> bytes:
    """A request; the notes of its rows are all `unlike` each other, or the same."""
    notes = (hashlib.sha256(f"{request_id}{i}".encode()).hexdigest() if unlike else "x" * 20 for i in range(rows))
    lines = [json.dumps({"n": i, "service": f"s{i % 3}", "note": note}) for i, note in enumerate(notes)]
    request = DiagnosisRequest(
        request_id=request_id,
        question="how many rows?",
        payloads=(Payload(name="rows", text="\n".join(lines)),),
        notes=("half was cut",),
    )
    return request.to_bytes()


def command(request_id: str, kind: str, hop: int = 1, **fields: object) -> StoreCommand:
    return StoreCommand.model_validate(
        {
            "request_id": request_id,
            "hop": hop,
            "kind": kind,
            "request": POSITION,
            "account": Account(model="m"),
            **fields,
        }
    )


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[StorePool]:
    pool = StorePool(size=1, stores=2)
    yield pool
    pool.close()


async def test_data_whose_store_of_files_is_away_is_told_from_data_that_can_not_be_used(tmp_path: Path) -> None:
    root = f"file://{tmp_path}/claims"
    asked = DiagnosisRequest.from_bytes(raw("r1"))
    claimed = asked.model_copy(update={"payloads": (claims.put(root, asked.payloads[0]),)}).to_bytes()
    pool = StorePool(size=1, stores=2, claims=root)
    try:
        (tmp_path / "claims").rename(tmp_path / "gone")
        with pytest.raises(claims.Unreachable, match="is it mounted"):
            await pool.prepare("r1", claimed, 60)
        (tmp_path / "gone").rename(tmp_path / "claims")
        assert (await pool.prepare("r1", claimed, 60)).request_id == "r1"
    finally:
        pool.close()


async def test_a_store_of_files_that_says_nothing_holds_up_no_other_request(tmp_path: Path) -> None:
    """Invariant 5: the only process goes on, the request may be asked again, and its data counts once it comes."""
    root = f"file://{tmp_path}/claims"
    asked = DiagnosisRequest.from_bytes(raw("r1"))
    payload = claims.put(root, asked.payloads[0])
    claimed = asked.model_copy(update={"payloads": (payload,)}).to_bytes()
    path, aside, fifo = payload.url.removeprefix("file://"), tmp_path / "aside", tmp_path / "fifo"
    os.rename(path, aside)
    os.mkfifo(path)  # who reads waits for who writes
    pool = StorePool(size=1, stores=2, claims=root)
    try:
        await pool.prepare("r2", raw("r2"), 60)
        pids = pool.pids
        for _ in range(3):
            with pytest.raises(claims.Unreachable, match="nothing came of it"):
                await pool.prepare("r1", claimed, 2)
            ended, _ = await pool.finish(command("r2", "rules", reason="no model"), 60)
            assert ended.mode == "rules"
            await pool.prepare("r2", raw("r2"), 60)
        os.rename(path, fifo)
        os.rename(aside, path)
        os.close(os.open(fifo, os.O_WRONLY))
        for _ in range(100):
            with contextlib.suppress(claims.Unreachable):
                assert (await pool.prepare("r1", claimed, 60)).request_id == "r1"
                break
            await asyncio.sleep(0.05)
        ended, _ = await pool.finish(command("r1", "rules", reason="no model"), 60)
        assert ended.mode == "rules"
        assert pool.pids == pids
    finally:
        pool.close()


async def test_a_store_is_built_queried_and_answers(pool: StorePool) -> None:
    prepared = await pool.prepare("r1", raw("r1"), 60)
    assert prepared.request_id == "r1"
    assert prepared.question == "how many rows?"
    assert prepared.original_tokens > 500
    assert 0 < prepared.prompt_tokens <= 4000
    assert "half was cut" in json.dumps(prepared.messages)
    assert prepared.tools

    followed = await pool.follow_up(
        command("r1", "query", sql="SELECT count(*) AS c, sum(n) AS s FROM records"), 2000, 30
    )
    assert "780" in json.dumps(followed.messages[-1])
    assert followed.tokens > 0

    ended, question = await pool.finish(command("r1", "query", hop=2, sql="SELECT count(*) AS c FROM records"), 30)
    assert (ended.status, ended.mode, question) == ("partial", "query", "how many rows?")
    assert ended.evidence[0].rows == ((40,),)
    assert "half was cut" in ended.notes


async def test_what_the_pool_holds_and_does_is_counted(pool: StorePool) -> None:
    starting = asyncio.create_task(pool.warm())
    await asyncio.sleep(0.1)
    assert (pool.busy, pool.held) == (0, 0)
    await starting
    for number, held in enumerate((1, 2, 2)):  # two at most: the third takes the place of the first
        building = asyncio.create_task(pool.prepare(f"r{number}", raw(f"r{number}"), 60))
        await asyncio.sleep(0)
        assert (pool.busy, pool.waiting) == (1, 1)
        await building
        assert (pool.busy, pool.waiting, pool.held) == (0, 0, held)
    await pool.finish(command("r2", "rules", reason="no model"), 30)
    assert pool.held == 1
    os.kill(pool.pids[0], signal.SIGKILL)
    with pytest.raises(StoreMissing):
        await pool.finish(command("r1", "rules", reason="no model"), 30)
    assert pool.held == 0


async def test_a_direct_answer_has_its_evidence_run(pool: StorePool) -> None:
    await pool.prepare("r1", raw("r1"), 60)
    answer = {
        "status": "conclusive",
        "summary": "s1 it is",
        "root_causes": [
            {
                "entity": "s1",
                "summary": "x",
                "confidence": 0.9,
                "evidence": ["SELECT max(n) AS top FROM records"],
            }
        ],
        "claims": [],
        "next_steps": [],
    }
    diagnosis, _ = await pool.finish(command("r1", "direct", text=json.dumps(answer)), 30)
    assert diagnosis.status == "conclusive"
    assert diagnosis.model == "m"
    assert diagnosis.evidence[0].rows == ((39,),)


async def test_the_rules_analyst_says_why_it_answers(pool: StorePool) -> None:
    await pool.prepare("r1", raw("r1"), 60)
    diagnosis, _ = await pool.finish(command("r1", "rules", reason="the model answered 401"), 30)
    assert diagnosis.mode == "rules"
    assert any("the model answered 401" in note for note in diagnosis.notes)


async def test_rows_of_the_query_outlive_a_second_reply_without_an_answer(pool: StorePool) -> None:
    first = "SELECT count(*) AS n FROM records"

    async def finish(kind: str, **fields: object) -> Diagnosis:
        await pool.prepare("r1", raw("r1"), 60)
        return (await pool.finish(command("r1", kind, 2, asked=first, **fields), 30))[0]

    done = await finish("rules", reason="busy")
    assert (done.status, done.mode, done.model) == ("partial", "query", "m")
    assert [(one.sql, one.rows) for one in done.evidence] == [(first, ((40,),))]
    assert done.notes[0] == "half was cut"
    assert any("busy" in note for note in done.notes)
    done = await finish("query", sql="SELECT max(n) FROM records")
    assert [(one.id, one.sql) for one in done.evidence] == [("e1", first), ("e2", "SELECT max(n) FROM records")]
    done = await finish("direct", text="All is well, said the model.")
    assert (done.mode, done.evidence) == ("query", ()), "an answer needs no rows"


async def test_a_cut_reply_is_told(pool: StorePool) -> None:
    await pool.prepare("r1", raw("r1"), 60)
    diagnosis, _ = await pool.finish(command("r1", "direct", text="half an answ", cut=True), 30)
    assert diagnosis.notes[:2] == ("half was cut", CUT)


async def test_an_unknown_store_is_missing_and_so_is_a_dropped_one(pool: StorePool) -> None:
    with pytest.raises(StoreMissing):
        await pool.finish(command("nobody", "rules"), 30)
    await pool.prepare("r1", raw("r1"), 60)
    assert await pool.drop("r1") is True
    assert await pool.drop("r1") is False
    with pytest.raises(StoreMissing):
        await pool.finish(command("r1", "rules"), 30)


async def test_the_least_recently_used_store_gives_way(pool: StorePool) -> None:
    await pool.prepare("r1", raw("r1"), 60)
    await pool.prepare("r2", raw("r2"), 60)
    await pool.follow_up(command("r1", "query", sql="SELECT 1 FROM records"), 2000, 30)
    await pool.prepare("r3", raw("r3"), 60)
    with pytest.raises(StoreMissing):
        await pool.finish(command("r2", "rules"), 30)
    assert (await pool.finish(command("r1", "rules"), 30))[1] == "how many rows?"


async def test_the_processors_time_of_each_call_is_told() -> None:
    spent: list[tuple[str, float]] = []
    pool = StorePool(size=1, stores=2, on_spent=lambda call, seconds: spent.append((call, seconds)))
    try:
        await pool.prepare("r1", raw("r1"), 60)
        await pool.finish(command("r1", "rules"), 30)
        await pool.prepare("r2", raw("r2"), 60)
        await pool.finish(command("r2", "query", hop=2, sql="SELECT count(*) FROM records"), 30)
    finally:
        pool.close()
    assert [call for call, _ in spent] == ["prepare", "finish", "prepare", "finish", "load"]
    assert all(0 < seconds < 30 for _, seconds in spent)


async def test_a_store_is_closed_with_its_answer(pool: StorePool) -> None:
    await pool.prepare("r1", raw("r1"), 60)
    await pool.finish(command("r1", "rules"), 30)
    assert await pool.drop("r1") is False


async def test_stores_that_wait_too_long_for_an_answer_are_closed(pool: StorePool) -> None:
    assert await pool.expire(0.0) == 0, "no process is started to look for old stores"
    await pool.prepare("r1", raw("r1"), 60)
    await pool.prepare("r2", raw("r2"), 60)
    assert await pool.expire(60.0) == 0
    await asyncio.sleep(0.05)
    assert await pool.expire(0.01) == 2
    with pytest.raises(StoreMissing):
        await pool.finish(command("r1", "rules"), 30)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits all of a process's data")
async def test_data_that_needs_too_much_memory_is_refused_and_the_next_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whether the call fails or its process dies of it: libraries that can't get memory may end a process."""
    pool = StorePool(size=1, stores=4, memory=256 << 20)
    try:
        with pytest.raises(HyveError, match=r"HYVE_POOL_MEMORY .*268,435,456 bytes"):
            await pool.prepare("large", raw("large", 900_000), 120)
        told = [record.getMessage() for record in caplog.records if record.name == "hyve"]
        assert all(text.startswith("pool: ") and "prepare of large" in text for text in told)
        assert any("HYVE_POOL_MEMORY" in text for text in told)
        await pool.prepare("small", raw("small"), 60)
        diagnosis, _ = await pool.finish(command("small", "query", hop=2, sql="SELECT count(*) FROM records"), 30)
        assert diagnosis.evidence[0].rows == ((40,),)
    finally:
        pool.close()


async def test_bad_records_and_bad_data_are_told_apart(pool: StorePool) -> None:
    with pytest.raises(RecordUnusable, match="not a DiagnosisRequest"):
        await pool.prepare("r1", b"{", 60)
    empty = DiagnosisRequest(request_id="r1", question="q", payloads=())
    with pytest.raises(HyveError, match="no data"):
        await pool.prepare("r1", empty.to_bytes(), 60)


async def test_a_process_that_is_killed_is_replaced_and_the_call_repeated() -> None:
    respawned = []
    pool = StorePool(size=1, stores=2, on_respawn=lambda: respawned.append(1))
    try:
        await pool.warm()
        (first,) = pool.pids
        running = asyncio.create_task(pool.prepare("r1", raw("r1", rows=60_000), 60))
        await asyncio.sleep(0.15)
        os.kill(first, signal.SIGKILL)
        assert (await running).request_id == "r1"
        assert pool.pids != (first,)
        assert respawned == [1]
    finally:
        pool.close()


async def test_a_process_that_died_between_two_calls_is_replaced() -> None:
    pool = StorePool(size=1, stores=2)
    try:
        await pool.prepare("r1", raw("r1"), 60)
        (first,) = pool.pids
        os.kill(first, signal.SIGKILL)
        _wait_for_the_end_of([first])
        with pytest.raises(StoreMissing):
            await pool.finish(command("r1", "rules"), 30)
        assert pool.pids != (first,)
    finally:
        pool.close()


async def test_what_was_begun_ends_before_more_is_begun(pool: StorePool) -> None:
    await pool.prepare("r0", raw("r0"), 60)
    ended: list[str] = []

    async def noted(name: str, call: Awaitable[object]) -> None:
        await call
        ended.append(name)

    building = [noted(f"r{i}", pool.prepare(f"r{i}", raw(f"r{i}"), 60)) for i in range(1, 5)]
    tasks = [asyncio.create_task(one) for one in building]
    await asyncio.sleep(0)  # all four have asked
    tasks.append(asyncio.create_task(noted("answer", pool.finish(command("r0", "rules"), 30))))
    assert pool.waiting == 4
    await asyncio.gather(*tasks)
    assert ended == ["r1", "answer", "r2", "r3", "r4"]
    assert pool.waiting == 0


async def test_the_answer_of_a_call_that_was_given_up_is_nobody_elses(pool: StorePool) -> None:
    await pool.warm()
    (before,) = pool.pids
    given_up = asyncio.create_task(pool.prepare("r1", raw("r1", rows=5_000), 60))
    await asyncio.sleep(0.02)
    given_up.cancel()
    assert (await pool.prepare("r2", raw("r2"), 60)).request_id == "r2"
    assert pool.pids == (before,)
    assert await pool.drop("r1") is True, "it was run to its end"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says what a process's data takes")
async def test_stores_that_fill_half_of_the_memory_give_way_to_a_new_one() -> None:
    pool = StorePool(size=1, stores=100, memory=128 << 20)
    try:
        for number in range(16):  # some 6 MB each, which can't be compressed
            await pool.prepare(f"r{number}", raw(f"r{number}", 30_000, unlike=True), 120)
        assert await pool.drop("r0") is False
        assert await pool.drop("r15") is True
        assert 1 < pool.held < 15
    finally:
        pool.close()


async def test_a_request_that_kills_its_process_twice_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    pool = StorePool(size=1, stores=2)
    try:
        await pool.warm()
        running = asyncio.create_task(pool.prepare("r1", raw("r1", rows=150_000), 60))
        while not running.done():
            await asyncio.sleep(0.05)
            for pid in pool.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with pytest.raises(StoreDied, match=r"died twice on this request \(SIGKILL.*raise HYVE_POOL_MEMORY"):
            await running
        first, second = (record.getMessage() for record in caplog.records if record.name == "hyve")
        assert re.fullmatch(r"pool: process \d+ died in prepare of r1 \(SIGKILL; .*\): tried once more", first)
        assert second.endswith("given up")
        assert (await pool.prepare("r2", raw("r2"), 60)).request_id == "r2"
    finally:
        pool.close()


async def test_a_call_that_overruns_is_stopped_and_the_slot_works_again(pool: StorePool) -> None:
    await pool.warm()
    (before,) = pool.pids
    with pytest.raises(StoreOverran, match=r"over 0\.01 s"):
        await pool.prepare("r1", raw("r1", rows=60_000), 0.01)
    assert (await pool.prepare("r2", raw("r2"), 60)).request_id == "r2"
    assert pool.pids != (before,)


def test_requests_keep_their_slot() -> None:
    pool, other = StorePool(size=4, stores=1), StorePool(size=4, stores=1)
    try:
        slots = [pool.slot_of(f"r{i}") for i in range(200)]
        assert slots == [other.slot_of(f"r{i}") for i in range(200)]
        assert set(slots) == {0, 1, 2, 3}
    finally:
        pool.close()
        other.close()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads /proc")
def test_children_end_with_a_parent_that_was_killed() -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from workers.pool import StorePool

        async def main():
            pool = StorePool(size=2, stores=1)
            await pool.warm()
            print(*pool.pids, flush=True)
            await asyncio.sleep(60)

        if __name__ == "__main__":
            asyncio.run(main())
    """)
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(_runs(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait()
    _wait_for_the_end_of(pids)


def _wait_for_the_end_of(pids: list[int]) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end and any(_runs(pid) for pid in pids):
        time.sleep(0.05)
    assert [pid for pid in pids if _runs(pid)] == []


def _runs(pid: int) -> bool:
    """Whether the process is there and not merely unreaped."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
