"""The LLM stage: whatever the model does, one command goes to the request's partition."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hyve.diagnosis import CUT
from hyve.errors import ModelError
from hyve.reply import ModelReply, ToolCall
from schemas import Account, Position, PromptReady, StoreCommand
from streams.app import Incoming, Poison, now_ms
from streams.llm import NO_MODEL, LlmStage
from workers.settings import load


class Scripted:
    """Answers from a queue; an exception in it is raised."""

    name = "scripted"

    def __init__(self, *answers: ModelReply | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]] = []

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        self.seen.append((messages, tools))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Hanging(Scripted):
    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        await asyncio.sleep(60)
        raise AssertionError("it should have been cancelled")


def prompt(hop: int = 1, deadline: int | None = None) -> Incoming:
    record = PromptReady(
        request_id="r",
        hop=hop,  # type: ignore[arg-type]
        messages=({"role": "user", "content": "why?"},),
        tools=({"type": "function"},),
        request=Position(topic="hyve.requests", partition=4, offset=2),
        deadline=deadline,
        account=Account(original=100, prompt=10, completion=3, ms={"prepare": 1.0}),
    )
    return Incoming("hyve.prompts", 0, 0, record.to_bytes(), b"r")


async def ask(model: Scripted | None, record: Incoming, **settings: Any) -> StoreCommand:
    (out,) = await LlmStage(load(**settings), model).process(record)
    assert (out.topic, out.key, out.partition) == ("queries", b"r", 4)
    return StoreCommand.from_bytes(out.value)


async def test_without_a_model_the_rules_analyst_is_asked() -> None:
    command = await ask(None, prompt())
    assert (command.kind, command.reason, command.account.calls) == ("rules", NO_MODEL, 0)


async def test_a_direct_answer_is_billed_and_passed_on() -> None:
    model = Scripted(ModelReply('{"status": "inconclusive", "summary": "?"}', completion_tokens=12, model="m-2"))
    command = await ask(model, prompt())
    assert (command.kind, command.hop) == ("direct", 1)
    assert json.loads(command.text)["summary"] == "?"
    assert (command.account.calls, command.account.completion, command.account.model) == (1, 15, "m-2")
    assert command.account.ms["prepare"] == 1.0
    assert command.account.ms["model"] >= 0
    assert model.seen[0][1] == ({"type": "function"},)


async def test_a_query_keeps_its_call() -> None:
    call = ToolCall("c1", "query_datastore", '{"sql": "SELECT 1"}')
    command = await ask(Scripted(ModelReply("", (call,))), prompt())
    assert (command.kind, command.sql) == ("query", "SELECT 1")
    assert command.call is not None
    assert command.call.id == "c1"


async def test_the_query_of_hop_1_goes_along_with_hop_2() -> None:
    record = PromptReady.from_bytes(prompt(2).value).model_copy(update={"asked": "SELECT 'a: b'"})
    asked = Incoming("hyve.prompts", 0, 0, record.to_bytes(), b"r")
    call = ToolCall("c1", "query_datastore", '{"sql": "SELECT 2"}')
    replies = [
        (ModelError("busy", "rate"), "rules"),
        (ModelReply("prose"), "direct"),
        (ModelReply("", (call,)), "query"),
    ]
    for reply, kind in replies:
        command = await ask(Scripted(reply), asked)
        assert (command.kind, command.hop, command.asked) == (kind, 2, "SELECT 'a: b'")
    assert command.sql == "SELECT 2"


async def test_a_cut_reply_says_so() -> None:
    assert (await ask(Scripted(ModelReply("half an ans", cut=True)), prompt())).cut
    assert not (await ask(Scripted(ModelReply("an answer")), prompt())).cut
    assert CUT in (await ask(Scripted(ModelReply("", cut=True)), prompt())).reason


async def test_a_template_keeps_its_fills() -> None:
    arguments = {
        "template": {"y": []},
        "fills": [{"sql": "SELECT n FROM records", "mappings": [{"column": "n", "path": "y.(_row_id)"}]}],
    }
    call = ToolCall("c1", "fill_template", json.dumps(arguments))
    command = await ask(Scripted(ModelReply("", (call,))), prompt())
    assert command.kind == "template"
    assert command.template == {"y": []}
    assert (command.fills[0].sql, command.fills[0].mappings[0].path) == (
        "SELECT n FROM records",
        "y.(_row_id)",
    )


async def test_a_failing_model_leads_to_the_rules_with_its_reason() -> None:
    command = await ask(Scripted(ModelError("the model answered 401: check HYVE_LLM_API_KEY", "auth")), prompt())
    assert (command.kind, command.reason) == ("rules", "the model answered 401: check HYVE_LLM_API_KEY")
    assert command.account.ms["model"] >= 0, "the time that it took is told, too"
    assert command.account.calls == 0


async def test_a_bug_in_the_client_leads_to_the_rules_without_its_text() -> None:
    command = await ask(Scripted(RuntimeError("Bearer sk-secret")), prompt())
    assert (command.kind, command.reason) == ("rules", "the model client failed: RuntimeError")


async def test_an_empty_reply_leads_to_the_rules() -> None:
    command = await ask(Scripted(ModelReply("")), prompt())
    assert command.kind == "rules"
    assert "could not be used" in command.reason
    assert command.account.calls == 1


async def test_a_model_that_hangs_is_cut_off() -> None:
    command = await ask(Hanging(), prompt(), llm_timeout=0.05)
    assert command.kind == "rules"
    assert "did not answer within" in command.reason


async def test_no_call_is_made_after_the_deadline() -> None:
    model = Scripted()
    command = await ask(model, prompt(deadline=now_ms() - 1))
    assert "deadline passed" in command.reason
    assert model.seen == []


async def test_a_record_that_is_no_prompt_is_poison() -> None:
    with pytest.raises(Poison, match="PromptReady: hop"):
        await LlmStage(load(), None).process(Incoming("t", 0, 0, prompt().value.replace(b'"hop":1', b'"hop":3')))


@pytest.mark.parametrize("place", [b'"partition":-1', b'"partition":-4', b'"topic":"hyve.queries"'])
async def test_a_prompt_whose_answer_can_go_nowhere_is_poison(place: bytes) -> None:
    """The decision goes to the request's partition: delivering it would be tried for ever."""
    name = place.partition(b":")[0]
    value = re.sub(name + rb":[^,}]+", place, prompt().value)
    model = Scripted("x")
    with pytest.raises(Poison, match="its request can't stand at"):
        await LlmStage(load(), model).process(Incoming("t", 0, 0, value))
    assert model.seen == []


@pytest.mark.parametrize(("model", "level"), [(None, "INFO"), (True, "WARNING")])
async def test_a_model_that_fails_is_a_warning_and_none_is_not(
    model: Any, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody who looks for warnings in the morning must see that no model answered all night."""
    caplog.set_level("INFO")
    await ask(Scripted(ModelError("m rejected HYVE_LLM_API_KEY", "auth")) if model else None, prompt())
    (told,) = caplog.records
    assert (told.levelname, told.getMessage()[:13]) == (level, "llm: r: hop 1")
