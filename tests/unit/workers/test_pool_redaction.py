"""Secrets between the pipeline's stages: none leaves the store's process for the prompts' topic, answers have them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from schemas import DiagnosisRequest, Payload, Position, StoreCommand
from workers import stores

SECRETS = [f"pw-{i}x-Secret" for i in range(3)]
ROWS = [{"user": f"u{i}", "password": SECRETS[i % 3], "ms": i} for i in range(300)]
WHERE = Position(topic="hyve.requests", partition=0, offset=0)


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stores, "_CHILD", stores._Child())
    yield
    stores.drop("r1")


def prepared(redaction: stores.Redaction = (("secrets",), ())) -> stores.Prepared:
    stores._CHILD.redaction = redaction
    request = DiagnosisRequest(
        request_id="r1",
        question=f"why does {SECRETS[0]} fail?",
        payloads=(Payload(name="logins.json", text=json.dumps(ROWS)),),
        budget=1500,
    )
    return stores.prepare(request.to_bytes())


def placeholder() -> str:
    held = stores._held("r1")
    return str(held.store.masked.redactor.mask_value(SECRETS[0], "password"))


def command(kind: str, hop: int = 1, **given: object) -> StoreCommand:
    return StoreCommand.model_validate({"request_id": "r1", "hop": hop, "kind": kind, "request": WHERE, **given})


def test_prompts_hold_no_secret_and_answers_do() -> None:
    first = json.dumps(prepared().messages)
    assert not [secret for secret in SECRETS if secret in first]
    shown = placeholder()
    sql = f"SELECT password, count(*) AS n FROM records WHERE password = '{shown}' GROUP BY ALL"
    second = json.dumps(stores.follow_up(command("query", sql=sql), 2000).messages)
    assert not [secret for secret in SECRETS if secret in second]
    assert f"{shown}|100" in second
    answer = {
        "status": "conclusive",
        "summary": f"{shown} fails",
        "root_causes": [{"entity": shown, "summary": "x", "confidence": 0.9, "evidence": [sql]}],
    }
    found, _ = stores.finish(command("direct", hop=2, text=json.dumps(answer)))
    assert found.summary == f"{SECRETS[0]} fails"
    assert found.evidence[0].rows == ((SECRETS[0], 100),)


def test_a_store_that_is_built_again_knows_its_placeholders() -> None:
    """The model's answer may come after the store was lost: the placeholders of its prompt still mean the same."""
    before, shown = prepared().messages, placeholder()
    stores.drop("r1")
    assert prepared().messages == before
    assert placeholder() == shown


def test_redaction_is_a_setting() -> None:
    assert SECRETS[0] in json.dumps(prepared(((), ())).messages)
    prepared((("secrets",), ("password",)))
    shown = placeholder()
    found, _ = stores.finish(command("direct", text=shown))
    assert found.summary == shown


@pytest.mark.parametrize("kind", ["direct", "rules"])
def test_what_stays_masked_in_answers_does_so_in_the_question_and_notes_too(kind: str) -> None:
    typed = "and <password_9>, why does password=Typed-Secret99 fail?"
    stores._CHILD.redaction = (("secrets",), ("password",))
    request = DiagnosisRequest(
        request_id="r1",
        question=f"{SECRETS[0]} {typed}",
        payloads=(Payload(name="logins.json", text=json.dumps(ROWS)),),
        budget=1500,
        notes=(f"telemetry of {SECRETS[1]} was cut",),
    )
    stores.prepare(request.to_bytes())
    shown = placeholder()
    found, question = stores.finish(command(kind, text="x", reason="no model"))
    assert question.startswith(f"{shown} and <password_9>, why does password=<password_")
    said = question + json.dumps(found.notes)
    assert not [secret for secret in (*SECRETS, "Typed-Secret99") if secret in said]
    assert any(note.startswith("telemetry of <password_") for note in found.notes)


def test_a_question_stays_as_it_was_asked_where_nothing_is_kept_masked() -> None:
    prepared()
    assert stores.finish(command("direct", text="x"))[1] == f"why does {SECRETS[0]} fail?"
