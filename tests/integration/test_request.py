"""`hyve request`: an id names one request, and a pipeline that isn't there is told at once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from schemas import DeadLetter, DiagnosisResult
from tests.command import HYVE, environment
from tests.integration.pipeline import Pipeline, until


def hyve(pipeline: Pipeline, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HYVE, "request", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(**{**pipeline.environment("llm"), **more}),
        check=False,
    )


def test_an_id_names_one_request(make_pipeline: Callable[..., Pipeline], tmp_path: Path) -> None:
    """Nobody gets the answer to another's question: before and after a store worker was killed."""
    pipeline = make_pipeline("same").start("store", "llm")
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text('[{"a": 1}, {"a": 2}]')
    two.write_text('[{"b": 1}, {"b": 2}]')
    asked = ("--file", str(one), "--id", "same", "--json", "--wait", "60")

    def answered(*arguments: str) -> DiagnosisResult:
        done = hyve(pipeline, *arguments)
        assert done.returncode == 0, done.stderr + pipeline.logs()
        return DiagnosisResult.model_validate_json(done.stdout)

    first = answered("first question", *asked)
    assert first.question == "first question"
    for question, file in (("second question", one), ("first question", two)):
        done = hyve(pipeline, question, "--file", str(file), *asked[2:])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "hyve: the id same was used before, with another question or other data: this request was refused; "
            "give another --id, or none\n"
        )
    assert answered("first question", *asked).finished == first.finished, "the same request has the same result"

    def letters() -> list[str]:
        return [DeadLetter.from_bytes(record.value).error for record in pipeline.records("deadletters")]

    said = "the id 'same' was used before, by a request of other content: send it under another"
    until(lambda: len(letters()) == 2)
    os.kill(pipeline.supervisor.pid("store"), 9)
    pipeline.send("requests", "same", b'{"request_id": "same", "question": "third", "payloads": []}')
    until(lambda: len(letters()) == 3, 90)
    assert letters() == [said] * 3
    assert [record.key for record in pipeline.records("results")] == [b"same"]


def test_a_request_that_failed_ends_with_status_2(make_pipeline: Callable[..., Pipeline], tmp_path: Path) -> None:
    """As `hyve ask` does, and with the result all the same: a script has to tell it."""
    pipeline = make_pipeline("failing").start("store")
    file = tmp_path / "a.json"
    file.write_text('[{"a": 1}, {"a": 2}]')
    asked = ("why?", "--file", str(file), "--budget", "100")
    done = hyve(pipeline, *asked)
    assert (done.returncode, "FAILED" in done.stdout) == (2, True), done.stdout + done.stderr
    done = hyve(pipeline, *asked, "--json")
    assert (done.returncode, DiagnosisResult.model_validate_json(done.stdout).status) == (2, "failed")


def test_a_store_of_large_data_that_is_away_for_a_moment_costs_no_request(
    make_pipeline: Callable[..., Pipeline], tmp_path: Path
) -> None:
    """Invariant 5: a share that isn't mounted, and is again, is no reason for a failed result."""
    claims, away = tmp_path / "claims", tmp_path / "away"
    pipeline = make_pipeline("outage", HYVE_CLAIM_URL=f"file://{claims}")
    file = tmp_path / "a.ndjson"
    file.write_text("".join(f'{{"service": "s{i % 3}", "n": {i}}}\n' for i in range(300)))
    asked = ("which?", "--file", str(file), "--id", "claimed")
    assert hyve(pipeline, *asked, "--wait", "0", HYVE_CLAIM_BYTES="1024").returncode == 0
    claims.rename(away)
    pipeline.start("store", "llm")
    until(lambda: "store: claimed: a: its data lies at" in (pipeline.supervisor.logs / "store.log").read_text(), 90)
    away.rename(claims)
    found = pipeline.result("claimed")
    assert (found.status, found.tokens.original > 1_000) == ("inconclusive", True)
    assert [record.key for record in pipeline.records("results")] == [b"claimed"]
    assert pipeline.records("deadletters") == []


def test_topics_that_do_not_exist_are_told_at_once(make_pipeline: Callable[..., Pipeline], tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    done = hyve(make_pipeline("there"), "why?", "--file", str(file), "--wait", "3", HYVE_TOPIC_PREFIX="nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert "topic nobody.requests does not exist" in done.stderr
    assert "run `hyve topics create`" in done.stderr
