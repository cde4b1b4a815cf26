"""The model's client: OpenAI-compatible chat completions over httpx, as `hyve.reply.Model`.

Rules:
- It talks to the configured host and to no other: no redirects, no proxy or netrc of the environment.
- `timeout` bounds one `complete` with all of its attempts. 408, 409, 429, 5xx, timeouts and broken
  connections are tried again with growing, jittered pauses; a Retry-After is kept to, or the call fails at
  once if it lies beyond the time that is left.
- Every failure is a ModelError whose `kind` says what to do. The key stands in no message, repr or log.
- A server that rejects `tools` is asked without them from then on; their description goes into the system
  message, and `hyve.reply.decide` reads the JSON call that the model writes into its text.
- Whatever the server sends is data: bodies are capped, decoded with care, and only known fields are read.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from hyve.errors import ModelError
from hyve.reply import ModelReply, ToolCall
from workers.settings import Settings

MAX_BODY = 8 << 20
"""Bytes of the largest reply."""

MAX_CALLS = 32
"""Tool calls of one reply that are looked at."""

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_LONGEST_PAUSE = 8.0


def configured(settings: Settings) -> OpenAIModel | None:
    """The client that the settings ask for; None where they name no server. ModelError where they can't be used."""
    if not settings.llm_base_url:
        return None
    key = settings.llm_api_key.get_secret_value()
    return OpenAIModel(settings.llm_base_url, settings.llm_model, key, timeout=settings.llm_timeout)


class OpenAIModel:
    """One model behind one OpenAI-compatible address.

    `base_url` may be the host, the `/v1` below it, or the whole `/v1/chat/completions`. `timeout` is in
    seconds, for a whole `complete`. ModelError (kind "request" or "auth") where the address or the key can't
    be used at all.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        *,
        timeout: float = 60.0,
        retries: int = 3,
        pause: float = 0.5,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = model
        self.url = endpoint(base_url)
        key = api_key.strip()
        if not re.fullmatch(r"[\x21-\x7e]*", key):
            raise ModelError(
                "HYVE_LLM_API_KEY holds characters that no key has (spaces, line ends, non-ASCII); set it again",
                "auth",
            )
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._pause = pause
        self._options: dict[str, Any] = {}
        if temperature is not None:
            self._options["temperature"] = temperature
        if max_tokens is not None:
            self._options["max_tokens"] = max_tokens
        self._native_tools = True
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r} at {self.url.host})"

    async def __aenter__(self) -> OpenAIModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next `complete` opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        """The model's next message. ModelError for every failure, within `timeout` seconds."""
        deadline = time.monotonic() + self._timeout
        try:
            async with asyncio.timeout(self._timeout):
                return await self._complete(messages, tools, deadline)
        except TimeoutError:
            raise self._timed_out() from None

    def _timed_out(self) -> ModelError:
        return ModelError(
            f"{self.name} at {self.url.host} did not answer within {self._timeout:g} s; "
            "raise HYVE_LLM_TIMEOUT or use a faster model",
            "timeout",
        )

    async def _complete(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], deadline: float
    ) -> ModelReply:
        attempt = 0
        while True:
            native = bool(tools) and self._native_tools
            try:
                return _reply(await self._post(self._body(messages, tools, native)))
            except _ToolsRejected as error:
                if not native:
                    raise error.failure from None
                self._native_tools = False
                continue
            except _TryAgain as error:
                failure = error.failure
            pause = failure.retry_after
            if pause is None:
                pause = random.uniform(0.5, 1.0) * min(self._pause * 2**attempt, _LONGEST_PAUSE)
            if attempt >= self._retries or time.monotonic() + pause >= deadline:
                raise failure
            attempt += 1
            await asyncio.sleep(pause)

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], native: bool
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.name, "messages": list(messages), **self._options}
        if native:
            body["tools"] = list(tools)
        elif tools:
            body["messages"] = _with_tools_in_text(messages, tools)
        return body

    def _connections(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Connections belong to the event loop that opened them.
            headers = {"accept": "application/json", "user-agent": "hyve"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            self._client = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(self._timeout, connect=min(10.0, self._timeout)),
                follow_redirects=False,
                trust_env=False,
            )
            self._loop = loop
        return self._client

    async def _post(self, body: Mapping[str, Any]) -> bytes:
        """The body of a 200; _TryAgain, _ToolsRejected or ModelError for everything else."""
        host = self.url.host
        raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = self._connections().build_request(
            "POST", self.url, content=raw, headers={"content-type": "application/json"}
        )
        status = 0
        try:
            response = await self._connections().send(request, stream=True)
            try:
                status = response.status_code
                content = await _read(response, MAX_BODY if status == 200 else 65_536)
            finally:
                await response.aclose()
        except httpx.TimeoutException:
            raise _TryAgain(self._timed_out()) from None
        except httpx.HTTPError as error:
            # `from None`: the exception holds the request, and with it the key.
            if status:
                raise ModelError(f"the reply of {host} was cut off ({type(error).__name__})", "reply") from None
            raise _TryAgain(
                ModelError(
                    f"{host} can't be reached ({self._clean(str(error)) or type(error).__name__}); "
                    "check HYVE_LLM_BASE_URL",
                    "connection",
                )
            ) from None
        if status == 200:
            return content
        raise self._failure(status, response.headers, content)

    def _failure(self, status: int, headers: httpx.Headers, content: bytes) -> Exception:
        """What a status other than 200 means."""
        host = self.url.host
        said = self._clean(_message(content))
        detail = f": {said}" if said else ""
        if status in (401, 403):
            what = "rejected HYVE_LLM_API_KEY" if self._key else "wants a key and HYVE_LLM_API_KEY is not set"
            return ModelError(f"{host} {what} (status {status}); set a key that it accepts{detail}", "auth")
        if status in _AGAIN or status >= 500:
            kind = "rate" if status == 429 else "timeout" if status == 408 else "server"
            text = f"{host} has no capacity (status 429)" if status == 429 else f"{host} failed (status {status})"
            wait = _retry_after(headers)
            failure = ModelError(f"{text}{detail}", kind, wait)  # type: ignore[arg-type]
            return failure if "insufficient_quota" in said else _TryAgain(failure)
        if 300 <= status < 400:
            return ModelError(
                f"{host} redirects (status {status}); set HYVE_LLM_BASE_URL to the final address", "request"
            )
        failure = ModelError(
            f"{host} rejected the request (status {status}); check HYVE_LLM_BASE_URL and HYVE_LLM_MODEL "
            f"({self.name}){detail}",
            "request",
        )
        if status in (400, 404, 422, 501) and re.search(r"\btools?\b|tool_choice|function.?call", said, re.I):
            return _ToolsRejected(failure)
        return failure

    def _clean(self, text: str) -> str:
        """A server's words on one line, short, without the key."""
        if self._key:
            text = text.replace(self._key, "***")
        return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:200]


class _TryAgain(Exception):
    def __init__(self, failure: ModelError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _ToolsRejected(Exception):
    def __init__(self, failure: ModelError) -> None:
        super().__init__(str(failure))
        self.failure = failure


def endpoint(base_url: str) -> httpx.URL:
    """The address of chat completions below `base_url`: the host alone gets `/v1`, any other path is kept."""
    try:
        url = httpx.URL(base_url.strip())
    except (httpx.InvalidURL, TypeError, ValueError):
        raise ModelError("HYVE_LLM_BASE_URL is no URL; write it as https://host/v1", "request") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelError("HYVE_LLM_BASE_URL must start with http:// or https:// and name a host", "request")
    if url.userinfo:
        raise ModelError("HYVE_LLM_BASE_URL holds a user or password; use HYVE_LLM_API_KEY instead", "request")
    path = url.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    return url.copy_with(path=path, fragment=None)


async def _read(response: httpx.Response, limit: int) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > limit:
            if response.status_code != 200:
                return bytes(content[:limit])
            raise ModelError(f"the reply is longer than {limit} bytes", "reply")
    return bytes(content)


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds to wait by `retry-after-ms` or `retry-after` (seconds or a date); None without them."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * unit
        if value and name == "retry-after":
            try:
                return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
            except (TypeError, ValueError, OverflowError):
                return None
    return None


def _message(content: bytes) -> str:
    """What an error body says: `error.message`, `error`, `message` or `detail`, else its first words."""
    text = content.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text if not text.lstrip().startswith("<") else ""
    if not isinstance(value, dict):
        return ""
    error = value.get("error", value)
    if isinstance(error, dict):
        parts = [error.get(key) for key in ("message", "code", "detail")]
        return " ".join(str(part) for part in parts if isinstance(part, (str, int)))
    return str(error)


def _reply(content: bytes) -> ModelReply:
    """A chat completion's first choice. ModelError("reply") where the body is none."""
    try:
        value = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        start = content[:60].decode("utf-8", "replace")
        raise ModelError(f"the reply is not JSON; it starts with {start!r}", "reply") from None
    choices = value.get("choices") if isinstance(value, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(value, dict) or not isinstance(first, dict) or not isinstance(message, dict):
        said = _message(content) if isinstance(value, dict) and "error" in value else ""
        raise ModelError(f"the reply has no choices[0].message{': ' + said[:200] if said else ''}", "reply")
    text, calls = _content(message)
    if not text and not calls and first.get("finish_reason") == "length":
        raise ModelError("the reply was cut at the model's token limit before it said anything", "reply")
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    model = value.get("model")
    return ModelReply(
        text=text,
        tool_calls=calls,
        prompt_tokens=_count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        completion_tokens=_count(usage.get("completion_tokens", usage.get("output_tokens"))),
        model=model[:200] if isinstance(model, str) else "",
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
            made.append(ToolCall(_utf8(identity)[:200], _utf8(name)[:200], _utf8(text)))
    return _utf8("".join(texts)), tuple(made)


def _utf8(text: str) -> str:
    """`text` without lone surrogates, which JSON can escape but UTF-8 can't carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _with_tools_in_text(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
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
