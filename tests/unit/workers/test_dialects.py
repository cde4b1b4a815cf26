"""How Anthropic's Messages API is spoken: conversations there, replies back, and the same client around it (R: any
OpenAI- or Anthropic-compatible API)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyve.errors import ModelError
from hyve.reply import TOOLS, Query, ToolCall, decide
from tests.scripted_llm import ScriptedLLM
from workers.dialects import Anthropic, OpenAI
from workers.llm import ChatModel

SYSTEM = {"role": "system", "content": "You diagnose."}
USER = {"role": "user", "content": "Why?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "query_datastore", "arguments": '{"sql": "SELECT 1"}'}}
    ],
}
ROWS = {"role": "tool", "tool_call_id": "c1", "content": "1 row"}


def message(*content: dict[str, Any], **rest: Any) -> str:
    usage = {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 90}
    return json.dumps(
        {"type": "message", "role": "assistant", "model": "c-1", "content": content, "usage": usage, **rest}
    )


def test_the_first_question_keeps_system_and_tools_apart() -> None:
    body = Anthropic().body([SYSTEM, USER], TOOLS, 0)
    assert body["system"] == "You diagnose."
    assert body["messages"] == [USER]
    assert body["max_tokens"] == Anthropic.MOST
    assert [tool["name"] for tool in body["tools"]] == ["query_datastore", "fill_template"]
    assert body["tools"][0]["input_schema"] == TOOLS[0]["function"]["parameters"]
    assert "tool_choice" not in body


def test_a_follow_up_names_the_tools_of_its_calls_and_lets_none_be_called() -> None:
    body = Anthropic().body([SYSTEM, USER, CALL, ROWS], (), 500)
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "query_datastore", "input": {"sql": "SELECT 1"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1 row"}]},
    ]
    assert body["tools"] == [{"name": "query_datastore", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}
    assert body["max_tokens"] == 500


@pytest.mark.parametrize("arguments", ["{bad", "[1]", ""])
def test_arguments_that_are_no_object_are_sent_as_one(arguments: str) -> None:
    call = {**CALL, "tool_calls": [{"id": "c1", "function": {"name": "q", "arguments": arguments}}]}
    turn = Anthropic().body([USER, call, ROWS], (), 0)["messages"][1]
    assert turn["content"][0]["input"] == {"arguments": arguments}


def test_text_beside_a_call_stays_beside_it() -> None:
    turn = Anthropic().body([USER, {**CALL, "content": "I look."}], (), 0)["messages"][1]
    assert [block["type"] for block in turn["content"]] == ["text", "tool_use"]


async def test_the_client_speaks_it_by_the_address() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "query_datastore", "input": {"sql": "SELECT 2"}}
    with ScriptedLLM([{"raw": message({"type": "text", "text": "I ask."}, use)}]) as server:
        async with ChatModel(f"{server.url}/messages", "c", "k-1") as client:
            reply = await client.complete([SYSTEM, USER], TOOLS)
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "k-1"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.body["model"] == "c"
    assert reply.text == "I ask."
    assert reply.tool_calls == (ToolCall("t1", "query_datastore", '{"sql": "SELECT 2"}'),)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.model) == (100, 4, "c-1")
    decision = decide(reply)
    assert isinstance(decision, Query)
    assert decision.sql == "SELECT 2"


@pytest.mark.parametrize(
    ("url", "api", "path"),
    [
        ("https://api.anthropic.com", "", "/v1/messages"),
        ("https://api.anthropic.com/v1", "", "/v1/messages"),
        ("https://gate.local/llm/v1/messages", "", "/llm/v1/messages"),
        ("https://gate.local/v1", "anthropic", "/v1/messages"),
        ("https://gate.local/v1", "", "/v1/chat/completions"),
        ("https://api.anthropic.com.evil.example/v1", "", "/v1/chat/completions"),
        ("https://api.anthropic.com/v1", "openai", "/v1/chat/completions"),
    ],
)
def test_which_api_an_address_means(url: str, api: str, path: str) -> None:
    assert ChatModel(url, "m", api=api).url.path == path


@pytest.mark.parametrize(
    ("step", "kind", "said"),
    [
        ({"status": 401, "body": {"type": "error", "error": {"message": "invalid x-api-key"}}}, "auth", "invalid"),
        ({"status": 529, "body": {"type": "error", "error": {"message": "Overloaded"}}}, "server", "Overloaded"),
        ({"raw": message()[:-1]}, "reply", "not JSON"),
        ({"raw": "{}"}, "reply", "no content"),
        ({"raw": "[]"}, "reply", "no content"),
        ({"raw": '{"error": {"message": "nope"}}'}, "reply", "nope"),
        ({"raw": message(stop_reason="max_tokens")}, "reply", "token limit"),
    ],
)
async def test_what_goes_wrong_is_told(step: dict[str, Any], kind: str, said: str) -> None:
    with ScriptedLLM([step], repeat_last=True) as server:
        async with ChatModel(server.url, "c", "k-1", api="anthropic", retries=1, pause=0.01) as client:
            with pytest.raises(ModelError, match=said) as caught:
                await client.complete([USER], ())
    assert caught.value.kind == kind
    assert "k-1" not in str(caught.value)


async def test_a_server_without_tools_gets_them_as_text() -> None:
    refusal = {"status": 400, "body": {"error": {"message": "tools: not supported"}}}
    with ScriptedLLM([refusal, {"raw": message({"type": "text", "text": "fine"})}]) as server:
        async with ChatModel(server.url, "c", api="anthropic") as client:
            assert (await client.complete([SYSTEM, USER], TOOLS)).text == "fine"
    assert "tools" not in server.requests[1].body
    assert "fill_template" in server.requests[1].body["system"]


def test_openai_leaves_the_length_to_the_server() -> None:
    assert OpenAI().body([USER], (), 0) == {"messages": [USER]}
    assert OpenAI().body([USER], (), 7) == {"messages": [USER], "max_tokens": 7}
