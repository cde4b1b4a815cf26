"""What the results topic tells of requests that other processes have answered (invariant 8)."""

from __future__ import annotations

from hyve.errors import HyveError
from streams.answered import Answered
from streams.app import now_ms
from tests.unit.streams.store_stages import results_of
from workers.settings import load


async def test_results_are_read_again_for_older_records_and_after_partitions_moved() -> None:
    at = now_ms()
    answered, reads = results_of("a")
    assert not await answered.has("r", at)
    assert await answered.has("a", at + 5)
    assert reads == [at]
    await answered.has("r", at - 1)
    await answered.has("r", 0)
    assert reads[:2] == [at, at - 1]
    assert reads[2] >= at - 86_400_000, "a day back at most"
    answered.moved()
    await answered.has("r", at)
    assert reads[3:] == [at]


async def test_results_are_read_once_more_where_partitions_move_during_a_read() -> None:
    found = [["early"], ["early", "late"]]

    def read(since: int) -> dict[str, str]:
        if len(found) == 2:
            answered.moved()
        return dict.fromkeys(found.pop(0), "")

    answered = Answered(load(), read)
    assert await answered.has("late", now_ms())
    assert found == []


async def test_results_that_cannot_be_read_are_asked_for_again() -> None:
    script: list[Exception | dict[str, str]] = [HyveError("no broker"), {"r": ""}]

    def read(since: int) -> dict[str, str]:
        outcome = script.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert await Answered(load(), read).has("r", now_ms())
