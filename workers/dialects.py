"""The two chat APIs that model servers speak: how a question is written, and what a reply says. No network here.

Rules:
- Messages and tools come in the form of OpenAI's chat completions; `Anthropic` translates them to the Messages API
  (system text apart, tool calls and their results as content blocks).
- Whatever a server sends is data: only known fields are read, and a reply that isn't one is a ModelError ("reply").

Sources: OpenAI's "Create chat completion", Anthropic's "Create a Message" (version 2023-06-01).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hyve.errors import ModelError
from hyve.reply import ModelReply, ToolCall

MAX_CALLS = 32
"""Tool calls of one reply that are looked at."""

Messages = Sequence[Mapping[str, Any]]


class Dialect(Protocol):
    """A chat API. `path` stands behind the version of the base URL; `MOST` are the tokens of an answer where no limit
    is set, 0 where the server has its own."""

    path: str
    MOST: int

    def headers(self, key: str) -> dict[str, str]: ...
    def body(self, messages: Messages, tools: Messages, max_tokens: int) -> dict[str, Any]: ...
    def reply(self, value: Mapping[str, Any]) -> ModelReply: ...


class OpenAI:
    """Chat completions. `max_tokens` 0 leaves the length of the answer to the server."""

    path = "/chat/completions"
    MOST = 0

    def headers(self, key: str) -> dict[str, str]:
        """What identifies the caller."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, messages: Messages, tools: Messages, max_tokens: int) -> dict[str, Any]:
        """The request, but for the model's name."""
        body: dict[str, Any] = {"messages": list(messages)}
        if max_tokens:
            body["max_tokens"] = max_tokens
        if tools:
            body["tools"] = list(tools)
        return body

    def reply(self, value: Mapping[str, Any]) -> ModelReply:
        """A completion's first choice."""
        choices = value.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            raise _no_reply("choices[0].message", value)
        text, calls = _content(message)
        if not text and not calls and first.get("finish_reason") == "length":
            raise _cut()
        return _reply(value, text, calls, first.get("finish_reason") == "length")


class Anthropic:
    """The Messages API. It always wants a limit of the answer: `max_tokens` 0 is MOST tokens."""

    path = "/messages"
    MOST = 4096

    def headers(self, key: str) -> dict[str, str]:
        """What identifies the caller, and the version of the API."""
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    def body(self, messages: Messages, tools: Messages, max_tokens: int) -> dict[str, Any]:
        """The request, but for the model's name."""
        system = "\n\n".join(str(message["content"]) for message in messages if message.get("role") == "system")
        turns = [_turn(message) for message in messages if message.get("role") != "system"]
        body: dict[str, Any] = {"max_tokens": max_tokens or self.MOST, "messages": turns}
        if system:
            body["system"] = system
        if tools:
            body["tools"] = [_tool(tool.get("function", tool)) for tool in tools]
        elif called := dict.fromkeys(block["name"] for block in _blocks(turns) if block["type"] == "tool_use"):
            # A conversation with calls in it is refused without their tools, even where none may be called any more.
            body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
            body["tool_choice"] = {"type": "none"}
        return body

    def reply(self, value: Mapping[str, Any]) -> ModelReply:
        """A message's text blocks and tool calls."""
        if not isinstance(value.get("content"), list):
            raise _no_reply("content", value)
        text, calls = _content(value)
        if not text and not calls and value.get("stop_reason") == "max_tokens":
            raise _cut()
        return _reply(value, text, calls, value.get("stop_reason") == "max_tokens")


def _turn(message: Mapping[str, Any]) -> dict[str, Any]:
    """One message but the system's as Anthropic has it."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        block = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": content}
        return {"role": "user", "content": [block]}
    calls = [_use(call) for call in message.get("tool_calls") or ()]
    if not calls:
        return {"role": role, "content": content}
    return {"role": role, "content": [*([{"type": "text", "text": content}] if content else []), *calls]}


def _use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):  # it must be an object, whatever the model wrote
        arguments = {"arguments": function["arguments"]}
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _blocks(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]]


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object"}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _no_reply(where: str, value: Mapping[str, Any]) -> ModelError:
    said = error_text(value) if "error" in value else ""
    return ModelError(f"the reply has no {where}{': ' + said[:200] if said else ''}", "reply")


def _cut() -> ModelError:
    return ModelError("the reply was cut at the model's token limit before it said anything", "reply")


def error_text(value: Mapping[str, Any]) -> str:
    """What an error's JSON says: `error.message`, `error`, `message` or `detail`."""
    error = value.get("error", value)
    if isinstance(error, dict):
        parts = [error.get(key) for key in ("message", "code", "detail")]
        return " ".join(str(part) for part in parts if isinstance(part, (str, int)))
    return str(error)


def _reply(value: Mapping[str, Any], text: str, calls: tuple[ToolCall, ...], cut: bool) -> ModelReply:
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    model = value.get("model")
    asked = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    if asked is not None:  # Anthropic counts what its cache held or took apart from the rest
        cached = (_count(usage.get(f"cache_{what}_input_tokens")) or 0 for what in ("read", "creation"))
        asked += sum(cached)
    return ModelReply(
        text=text,
        tool_calls=calls,
        prompt_tokens=asked,
        completion_tokens=_count(usage.get("completion_tokens", usage.get("output_tokens"))),
        model=utf8(model)[:200] if isinstance(model, str) else "",
        cut=cut,
    )


def _content(message: Mapping[str, Any]) -> tuple[str, tuple[ToolCall, ...]]:
    """Text and calls of a message: content is a text or parts, calls are `tool_calls`, `function_call` or parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else []
    given: list[tuple[Any, Any, Any]] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "tool_use":
            given.append((part.get("id"), part.get("name"), part.get("input")))
    if not texts and isinstance(message.get("refusal"), str):
        texts.append(message["refusal"])
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            given.append((call.get("id"), function.get("name"), function.get("arguments")))
    legacy = message.get("function_call")
    if not given and isinstance(legacy, dict):
        given.append((None, legacy.get("name"), legacy.get("arguments")))
    made = []
    for number, (identity, name, arguments) in enumerate(given[:MAX_CALLS]):
        if isinstance(name, str) and name:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            identity = identity if isinstance(identity, str) and identity else f"call_{number}"
            made.append(ToolCall(utf8(identity)[:200], utf8(name)[:200], utf8(text)))
    return utf8("".join(texts)), tuple(made)


def utf8(text: str) -> str:
    """`text` without lone surrogates, which JSON can escape but UTF-8 can't carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def with_tools_in_text(messages: Messages, tools: Messages) -> list[Mapping[str, Any]]:
    """The messages with the tools in the first system message, for a server that takes no `tools`."""
    functions = [tool.get("function", tool) for tool in tools]
    text = (
        "To call a tool, reply with nothing but one JSON object "
        '{"name": <tool>, "arguments": {...}}. The tools:\n'
        + "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
    )
    changed = [dict(message) for message in messages]
    for message in changed:
        if message.get("role") == "system" and isinstance(message.get("content"), str):
            message["content"] = f"{message['content']}\n\n{text}"
            return list(changed)
    return [{"role": "system", "content": text}, *changed]
