"""The model's client against a scripted server: what it sends, what it makes of every kind of answer."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import re
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from hyve.errors import ModelError
from hyve.reply import TOOLS, Query, decide
from tests.scripted_llm import ScriptedLLM, completion
from workers.llm import MAX_BODY, ChatModel, endpoint

KEY = "sk-very-secret-0123456789"
MESSAGES = [{"role": "system", "content": "You diagnose."}, {"role": "user", "content": "Why? ☃"}]
FAST = {"pause": 0.01}
OK = {"text": "fine"}


def model(server: ScriptedLLM, **options: Any) -> ChatModel:
    return ChatModel(server.url, "m-1", KEY, **{"timeout": 5.0, **FAST, **options})


async def ask(server: ScriptedLLM, tools: Sequence[dict[str, Any]] = (), **options: Any) -> Any:
    async with model(server, **options) as client:
        return await client.complete(MESSAGES, tools)


async def failure(server: ScriptedLLM, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(server, **options)
    assert KEY not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


async def test_what_is_sent_and_what_comes_back() -> None:
    with ScriptedLLM(
        [{"text": "hello", "model": "m-1-2024", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}]
    ) as s:
        reply = await ask(s, TOOLS, max_tokens=50)
    assert (reply.text, reply.tool_calls, reply.model) == ("hello", (), "m-1-2024")
    assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)
    (request,) = s.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "model": "m-1",
        "messages": MESSAGES,
        "max_tokens": 50,
        "tools": list(TOOLS),
    }


def packed(content: bytes, encoding: str, status: int = 200) -> dict[str, Any]:
    body = base64.b64encode(content).decode()
    return {"status": status, "headers": {"content-encoding": encoding}, "raw_base64": body}


async def test_a_reply_may_be_packed_with_gzip() -> None:
    with ScriptedLLM([packed(gzip.compress(json.dumps(completion(OK)).encode()), "gzip")]) as s:
        assert (await ask(s)).text == "fine"
    assert s.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (packed(gzip.compress(bytes(1 << 28)), "gzip"), f"longer than {MAX_BODY} bytes"),
        (packed(gzip.compress(gzip.compress(bytes(1 << 28))), "gzip, gzip"), "content-encoding 'gzip, gzip'"),
        (packed(b"(\xb5/\xfd", "zstd"), "content-encoding 'zstd'; HYVE takes gzip"),
        (packed(b'{"choices": []}', "gzip"), "not the gzip that it says it is"),
        (packed(gzip.compress(b"{}" * 500)[:-9], "gzip"), "cut off"),
        (packed(gzip.compress(bytes(1 << 28)), "gzip", 400), "rejected the request"),
        (packed(b"(\xb5/\xfd", "zstd", 500), "failed (status 500)"),
    ],
)
async def test_what_a_reply_unfolds_to_is_bounded(step: dict[str, Any], says: str) -> None:
    """All input is hostile: 260 KB of gzip are 256 MB, and no more of them is unpacked than a reply may have."""
    with ScriptedLLM([step] * 9) as s:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert says in str(await failure(s, retries=0))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KB


async def test_without_tools_and_key_neither_is_sent() -> None:
    with ScriptedLLM([OK]) as s:
        async with ChatModel(s.url, "m-1") as client:
            assert (await client.complete(MESSAGES, ())).text == "fine"
    assert "authorization" not in s.requests[0].headers
    assert s.requests[0].body == {"model": "m-1", "messages": MESSAGES}


async def test_tool_calls_come_back_as_they_were_sent() -> None:
    steps = {
        "tools": [{"tool": "query_datastore", "arguments": {"sql": "SELECT 1"}}, {"tool": "x", "arguments": "{bad"}]
    }
    with ScriptedLLM([steps]) as s:
        reply = await ask(s, TOOLS)
    assert reply.text == ""
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("call_0", "query_datastore", '{"sql": "SELECT 1"}'),
        ("call_1", "x", "{bad"),
    ]
    assert decide(reply) == Query("SELECT 1", reply.tool_calls[0])


@pytest.mark.parametrize(
    ("message", "text", "calls"),
    [
        ({"content": "a"}, "a", []),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 5]}, "ab", []),
        ({"content": None, "refusal": "no"}, "no", []),
        ({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "", [("call_0", "f", "{}")]),
        ({"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]}, "", [("t", "f", '{"a": 1}')]),
        ({"tool_calls": [{"id": 5, "function": {"name": "f", "arguments": {"a": 1}}}]}, "",
         [("call_0", "f", '{"a": 1}')]),
        ({"tool_calls": [None, {"function": None}, {"function": {"name": 3}}, {"function": {"name": "f"}}]}, "",
         [("call_1", "f", "{}")]),
        ({"content": "\ud800x"}, "?x", []),
    ],
)  # fmt: skip
async def test_messages_of_every_shape(message: Any, text: str, calls: list[tuple[str, str, str]]) -> None:
    with ScriptedLLM([{"raw": json.dumps({"choices": [{"message": message}]})}]) as s:
        reply = await ask(s)
    assert reply.text == text
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == calls
    assert (reply.prompt_tokens, reply.completion_tokens, reply.model) == (None, None, "")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_rejected_key_names_its_setting_and_is_not_tried_again(status: int) -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    with ScriptedLLM([{"status": status, "body": body}, OK]) as s:
        error = await failure(s)
    assert error.kind == "auth"
    assert "HYVE_LLM_API_KEY" in str(error)
    assert "Incorrect API key provided: ***" in str(error)
    assert len(s.requests) == 1


async def test_a_missing_key_says_so() -> None:
    with ScriptedLLM([{"status": 401}]) as s:
        async with ChatModel(s.url, "m-1") as client:
            with pytest.raises(ModelError, match="HYVE_LLM_API_KEY is not set") as caught:
                await client.complete(MESSAGES, ())
    assert caught.value.kind == "auth"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_passing_failures_are_tried_again(status: int) -> None:
    with ScriptedLLM([{"status": status}, {"status": status}, OK]) as s:
        assert (await ask(s)).text == "fine"
    assert len(s.requests) == 3
    assert s.requests[0].body == s.requests[2].body


@pytest.mark.parametrize(
    "step",
    [
        {"cut": True},
        packed(gzip.compress(b"{}" * 500, mtime=0)[:-9], "gzip"),
        *(
            {"raw": json.dumps({"error": error})}
            for error in (
                {"message": "overloaded", "code": 503},
                {"message": "slow down", "code": "429"},
                {"message": "Overloaded", "type": "overloaded_error"},
                {"message": "model is loading"},
                {"message": "try again later", "code": None, "param": None},
                "upstream timed out",
            )
        ),
        {"raw": json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "no"}})},
    ],
    ids=str,
)
async def test_a_200_that_holds_no_reply_but_a_passing_failure_is_tried_again(step: dict[str, Any]) -> None:
    """A proxy that dies in the middle, and servers that send their errors as a reply."""
    with ScriptedLLM([step, OK]) as s:
        assert (await ask(s)).text == "fine"
    assert len(s.requests) == 2
    with ScriptedLLM([step] * 9) as s:
        error = await failure(s, retries=1)
    assert error.kind in ("server", "rate", "connection")
    assert len(s.requests) == 2


async def test_each_try_that_fails_is_told_with_the_time_until_the_next(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedLLM([{"status": 500, "body": {"error": "it is down"}}, {"cut": True}, OK]) as s:
        assert (await ask(s)).text == "fine"
    first, second = (record for record in caplog.records if record.name == "hyve")
    assert first.levelname == second.levelname == "WARNING"
    assert re.fullmatch(
        r"llm: m-1 at .* failed \(status 500\): it is down; try 2 of \d in \d\.\d s", first.getMessage()
    )
    assert re.search(r"was cut off \(\w+\); try 3 of \d in", second.getMessage())


@pytest.mark.parametrize(("status", "kind"), [(429, "rate"), (500, "server"), (408, "timeout"), (599, "server")])
async def test_after_the_last_attempt_the_failure_is_told(status: int, kind: str) -> None:
    with ScriptedLLM([{"status": status, "body": {"error": "busy"}}], repeat_last=True) as s:
        error = await failure(s, retries=2)
    assert error.kind == kind
    assert "busy" in str(error)
    assert len(s.requests) == 3


async def test_a_closed_connection_is_tried_again() -> None:
    with ScriptedLLM([{"disconnect": True}, OK]) as s:
        assert (await ask(s)).text == "fine"
    assert len(s.requests) == 2


async def test_retry_after_is_kept_to() -> None:
    with ScriptedLLM([{"status": 429, "headers": {"retry-after": "0.3"}}, OK]) as s:
        started = time.monotonic()
        assert (await ask(s)).text == "fine"
    assert 0.3 <= time.monotonic() - started < 2.0


@pytest.mark.parametrize("after", ["0", formatdate(0, usegmt=True)])
async def test_a_time_that_has_passed_asks_for_no_call_at_once(after: str) -> None:
    with ScriptedLLM([{"status": 429, "headers": {"retry-after": after}}, OK]) as s:
        model = ChatModel(s.url, "m", "k", pause=0.4)
        began = time.monotonic()
        assert (await model.complete(MESSAGES, ())).text
        assert time.monotonic() - began >= 0.2
        await model.aclose()


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "30"}, 30, 30),
        ({"retry-after": "an hour from now"}, 3500, 3600),
        ({"retry-after-ms": "45000"}, 45, 45),
    ],
)
async def test_a_retry_after_beyond_the_deadline_fails_at_once(headers: Any, least: float, most: float) -> None:
    if headers.get("retry-after") == "an hour from now":
        headers = {"retry-after": formatdate(time.time() + 3600, usegmt=True)}
    with ScriptedLLM([{"status": 429, "headers": headers}, OK]) as s:
        started = time.monotonic()
        error = await failure(s)
    assert time.monotonic() - started < 1.0
    assert error.kind == "rate"
    assert error.retry_after is not None
    assert least <= error.retry_after <= most
    assert len(s.requests) == 1


async def test_a_used_up_quota_is_not_tried_again() -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    with ScriptedLLM([{"status": 429, "body": body}, OK]) as s:
        error = await failure(s)
    assert (error.kind, len(s.requests)) == ("rate", 1)


async def test_silence_ends_at_the_timeout() -> None:
    with ScriptedLLM([{"hang": 10}], repeat_last=True) as s:
        started = time.monotonic()
        error = await failure(s, timeout=0.3)
    assert 0.3 <= time.monotonic() - started < 1.0
    assert error.kind == "timeout"
    assert "0.3 s" in str(error)


async def test_nobody_listening_is_a_connection_error_that_names_the_setting() -> None:
    with ScriptedLLM([]) as s:
        url = s.url
    async with ChatModel(url, "m-1", KEY, timeout=5, retries=1, pause=0.01) as client:
        with pytest.raises(ModelError, match=r"HYVE_LLM_BASE_URL") as caught:
            await client.complete(MESSAGES, ())
    assert str(caught.value).startswith(f"m-1 at {url[len('http://') : -len('/v1')]} can't be reached")
    assert caught.value.kind == "connection"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"raw": "<html>hello</html>"}, "not JSON; it starts with '<html>"),
        ({"raw": ""}, "not JSON"),
        (
            {"raw": 'data: {"choices": []}'},
            r"not JSON \(it streams: .*; it starts with 'data:",
        ),
        ({"raw": "[]"}, r"no choices\[0\].message"),
        ({"raw": "{}"}, r"no choices\[0\].message"),
        ({"raw": '{"choices": []}'}, r"no choices\[0\].message"),
        ({"raw": '{"choices": {"0": 1}}'}, r"no choices\[0\].message"),
        ({"raw": '{"choices": [{"message": "hi"}]}'}, r"no choices\[0\].message"),
        ({"raw": '{"error": {"message": "the context is too long", "code": 400}}'}, "the context is too long"),
        ({"raw": '{"error": {"message": "rate limit", "code": "insufficient_quota"}}'}, "insufficient_quota"),
        ({"raw": '{"error": {"message": "no such model"}}'}, "no such model"),
        ({"raw": "[" * 100_000}, "not JSON"),
        ({"raw_base64": base64.b64encode(b"\xff\xfe\x00{}").decode()}, "not JSON"),
        ({"text": "", "finish_reason": "length"}, "token limit"),
        ({"raw": " " * (MAX_BODY + 1)}, f"longer than {MAX_BODY} bytes"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_rubbish_is_a_reply_error_and_not_tried_again(step: Any, says: str) -> None:
    with ScriptedLLM([step, OK]) as s:
        error = await failure(s)
    assert error.kind == "reply"
    assert re.search(says, str(error))
    assert len(s.requests) == 1


async def test_invalid_utf8_inside_of_a_text_is_replaced() -> None:
    raw = json.dumps(completion({"text": "a?b"})).encode().replace(b"?", b"\xff")
    with ScriptedLLM([{"raw_base64": base64.b64encode(raw).decode()}]) as s:
        assert (await ask(s)).text == "a\ufffdb"


async def test_redirects_are_not_followed() -> None:
    with ScriptedLLM([OK]) as other, ScriptedLLM([{"status": 307, "headers": {"location": other.url}}]) as s:
        error = await failure(s)
    assert error.kind == "request"
    assert "HYVE_LLM_BASE_URL" in str(error)
    assert other.requests == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedLLM([OK]) as proxy, ScriptedLLM([OK]) as s:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.host)
        assert (await ask(s)).text == "fine"
    assert proxy.requests == []


async def test_a_server_without_tools_is_asked_again_with_the_tools_in_the_text() -> None:
    refusal = {"status": 400, "body": {"error": {"message": "m-1 does not support tools"}}}
    answer = {"text": '{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}'}
    with ScriptedLLM([refusal, answer, OK]) as s:
        async with model(s) as client:
            assert decide(await client.complete(MESSAGES, TOOLS)) == Query("SELECT 1", None)
            await client.complete(MESSAGES, TOOLS)
    assert ["tools" in request.body for request in s.requests] == [True, False, False]
    system = s.requests[1].body["messages"][0]["content"]
    assert system.startswith("You diagnose.\n\n")
    assert '"name": "query_datastore"' in system
    assert s.requests[1].body["messages"][1] == MESSAGES[1]
    assert MESSAGES[0]["content"] == "You diagnose."


async def test_any_other_rejection_is_told_with_its_words() -> None:
    with ScriptedLLM([{"status": 404, "body": {"error": {"message": "no model\nof that name"}}}, OK]) as s:
        error = await failure(s, retries=3)
    assert error.kind == "request"
    assert str(error).startswith(f"m-1 at {s.host[len('http://') :]} rejected the request (status 404)")
    assert str(error).endswith("check HYVE_LLM_BASE_URL and HYVE_LLM_MODEL: no model of that name")
    assert len(s.requests) == 1


async def test_the_client_outlives_an_event_loop() -> None:
    with ScriptedLLM([OK], repeat_last=True) as s:
        client = model(s)

        def other_loop() -> str:
            async def once() -> str:
                try:
                    return (await client.complete(MESSAGES, ())).text
                finally:
                    await client.aclose()

            return asyncio.run(once())

        assert await asyncio.to_thread(other_loop) == "fine"
        assert (await client.complete(MESSAGES, ())).text == "fine"
        await client.aclose()


async def test_the_key_is_in_no_repr_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedLLM([OK]) as s:
        client = model(s)
        await client.complete(MESSAGES, ())
        assert repr(client) == f"ChatModel(m-1 at {s.host[len('http://') :]})"
        assert KEY not in repr(client) + str(client) + caplog.text
        await client.aclose()


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h:8080/", "http://h:8080/v1/chat/completions"),
        ("https://h/v1", "https://h/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        (" https://h/v1/chat/completions ", "https://h/v1/chat/completions"),
        ("https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("https://h/openai?api-version=1", "https://h/openai/chat/completions?api-version=1"),
    ],
)
def test_base_urls_in_every_spelling(base: str, url: str) -> None:
    assert endpoint(base) == URL(url)


@pytest.mark.parametrize(
    ("base", "place"),
    [
        ("https://h/v1", "h:443"),
        ("http://h", "h:80"),
        ("https://h:8443/v1", "h:8443"),
        ("http://[::1]:8000/v1", "[::1]:8000"),
        ("http://[::1]", "[::1]:80"),
    ],
)
def test_a_server_is_named_with_its_port_and_model(base: str, place: str) -> None:
    assert repr(ChatModel(base, "m-1")) == f"ChatModel(m-1 at {place})"


@pytest.mark.parametrize(
    ("base", "key", "kind", "says"),
    [
        ("h/v1", "", "request", "must start with http"),
        ("ftp://h/v1", "", "request", "must start with http"),
        ("http://", "", "request", "HYVE_LLM_BASE_URL"),
        ("http://h:port/", "", "request", "no URL"),
        ("https://user:pass@h/v1", "", "request", "HYVE_LLM_API_KEY instead"),
        ("https://h/v1", "sk-\nx", "auth", "HYVE_LLM_API_KEY holds characters"),
        ("https://h/v1", "schlüssel", "auth", "HYVE_LLM_API_KEY holds characters"),
    ],
)
def test_settings_that_can_not_work_are_refused_at_once(base: str, key: str, kind: str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        ChatModel(base, "m-1", key)
    assert caught.value.kind == kind
    assert "pass" not in str(caught.value).replace("password", "")


def test_the_scripted_server_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    replies = [{"text": "one"}, {"text": "two", "expect": "Why"}]
    script.write_text(json.dumps({"replies": replies, "repeat_last": True}))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scripted_llm", "--port", "0", "--script", str(script)],
        cwd=Path(__file__).resolve().parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()

        async def talk() -> list[str]:
            async with ChatModel(url, "m-1", timeout=5) as client:
                return [(await client.complete(MESSAGES, ())).text for _ in range(3)]

        assert asyncio.run(talk()) == ["one", "two", "two"]
        with urllib.request.urlopen(url.removesuffix("/v1") + "/requests") as response:
            recorded = json.load(response)
        assert [request["body"]["messages"] for request in recorded] == [MESSAGES] * 3
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.mark.parametrize(
    "step",
    [
        {"status": 500, "body": "boom password=ServerLeak123"},
        {"status": 400, "body": {"error": {"message": "bad header Authorization: Bearer ServerLeak123abc"}}},
        {"status": 401, "body": {"detail": "no such key sk-ServerLeak123ServerLeak123ServerLeak123"}},
        {"status": 500, "body": f"{'x' * 180} password=ServerLeak123ServerLeak123"},
        {"raw": "password=ServerLeak123"},
        {"raw": json.dumps({"error": {"message": f"password=ServerLeak123, key {KEY}"}})},
    ],
)
async def test_secrets_in_a_servers_words_are_told_to_nobody(step: Any) -> None:
    with ScriptedLLM([step], repeat_last=True) as s:
        error = await failure(s, retries=0)
    assert "ServerLeak" not in str(error)
    assert not re.search(r"<\w+_\d+>", str(error)), "a placeholder would be taken for one of the request's"


async def test_what_else_a_server_says_is_told() -> None:
    with ScriptedLLM([{"status": 500, "body": "GPU 3 is gone, password=ServerLeak123"}]) as s:
        assert "GPU 3 is gone, password=***" in str(await failure(s, retries=0))
