"""The model's client: a server that speaks OpenAI's or Anthropic's chat API, over aiohttp, as `hyve.reply.Model`.

Rules:
- It talks to the configured host and to no other: no redirects, no proxy or netrc of the environment.
- `timeout` bounds one `complete` with all of its attempts. 408, 409, 429, 5xx, timeouts, broken connections, replies
  that end in the middle and a 200 that holds such an error are tried again with growing, jittered pauses; a Retry-After
  is kept to, or the call fails at once if it lies beyond the time that is left.
- Every failure is a ModelError whose `kind` says what to do. The key stands in no message, repr or log.
- A server that rejects `tools` is asked without them from then on; their description goes into the system
  message, and `hyve.reply.decide` reads the JSON call that the model writes into its text.
- Whatever the server sends is data: bodies are capped, decoded with care, and only known fields are read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import ssl
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import aiohttp
import certifi
import orjson
from yarl import URL

from hyve.errors import ModelError
from hyve.redact import Redactor
from hyve.reply import ModelReply
from hyve.secretforms import PLACEHOLDER
from workers.dialects import Anthropic, Dialect, OpenAI, error_text, with_tools_in_text

log = logging.getLogger("hyve")

MAX_BODY = 8 << 20
"""Bytes of the largest reply."""

_READ = 4096
"""Characters of a server's words that are looked at."""

DIALECTS: dict[str, Dialect] = {"openai": OpenAI(), "anthropic": Anthropic()}

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_LONGEST_PAUSE = 8.0


OnCall = Callable[[str, str], None]
"""Told the model's name and what came of a call: "ok", the kind of its ModelError, "retry" for one that is made once
more, "resting" where none was made, as the breaker is open."""


Again = Callable[[ModelError | None], bool]
"""Whether a call that failed may be made once more: asked with the failure before the pause, with None after it."""

_PASSING = re.compile(
    r"over.?load|rate.?limit|too many|capacity|unavailable|time[d ]*.?out|try again|busy|loading|internal|"
    r"server.?error",
    re.I,
)
"""Words of an error without a status that may pass."""


class ChatModel:
    """One model behind one address.

    `base_url` may be the host, the `/v1` below it, or the whole `/v1/chat/completions` (`/v1/messages`). `api` is a key
    of DIALECTS; without one the address says it: Anthropic's host, or a path that ends in `/messages`. `timeout` is in
    seconds, for a whole `complete`. `max_tokens` 0 leaves the length of answers to the server. `settings` is how the
    names of the variables begin that errors advise to change. ModelError (kind "request" or "auth") where the address
    or the key can't be used at all.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        *,
        api: str = "",
        timeout: float = 60.0,
        retries: int = 3,
        pause: float = 0.5,
        max_tokens: int = 0,
        settings: str = "HYVE_LLM",
        on_call: OnCall = lambda _model, _outcome: None,
        again: Again = lambda _failure: True,
    ) -> None:
        self.name = model
        self._again = again
        self._settings = settings
        self._on_call = on_call
        self._dialect = DIALECTS[api or _spoken(base_url)]
        self.url = endpoint(base_url, self._dialect.path, settings)
        key = api_key.strip()
        if not re.fullmatch(r"[\x21-\x7e]*", key):
            raise ModelError(
                f"{settings}_API_KEY holds characters that no key has (spaces, line ends, non-ASCII); set it again",
                "auth",
            )
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._pause = pause
        self._max_tokens = max_tokens
        self.longest_answer = max_tokens or self._dialect.MOST
        self._native_tools = True
        self._who = f"{model} at {self.url.host_subcomponent}:{self.url.port}"
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "gzip",
            "content-type": "application/json",
            "user-agent": "hyve",
            **self._dialect.headers(key),
        }
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatModel({self._who})"

    async def __aenter__(self) -> ChatModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next `complete` opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

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
            f"{self._who} did not answer within {self._timeout:g} s; raise HYVE_LLM_TIMEOUT or use a faster model",
            "timeout",
        )

    async def _complete(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], deadline: float
    ) -> ModelReply:
        attempt = 0
        while True:
            native = bool(tools) and self._native_tools
            try:
                return self._reply(await self._post(self._body(messages, tools, native)))
            except _ToolsRejected as error:
                if not native:
                    raise error.failure from None
                self._native_tools = False
                continue
            except _TryAgain as error:
                failure = error.failure
            pause = random.uniform(0.5, 1.0) * min(self._pause * 2**attempt, _LONGEST_PAUSE)
            if failure.retry_after is not None:  # a date that has passed asks for no call at once
                pause = max(failure.retry_after, min(pause, self._pause))
            if attempt >= self._retries or time.monotonic() + pause >= deadline or not self._again(failure):
                raise failure
            attempt += 1
            log.warning("llm: %s; try %d of %d in %.1f s", failure, attempt + 1, self._retries + 1, pause)
            await asyncio.sleep(pause)
            if not self._again(None):  # others have met the same meanwhile
                raise failure
            self._on_call(self.name, "retry")

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], native: bool
    ) -> dict[str, Any]:
        if tools and not native:
            messages, tools = with_tools_in_text(messages, tools), ()
        return {"model": self.name, **self._dialect.body(messages, tools, self._max_tokens)}

    def _reply(self, content: bytes) -> ModelReply:
        try:
            value = json.loads(content.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            start = self._clean(content.decode("utf-8", "replace"))[:60]
            streams = " (it streams: HYVE asks for a whole reply)" if start.startswith(("data:", "event:")) else ""
            raise ModelError(
                f"the reply of {self._who} is not JSON{streams}; it starts with {start!r}", "reply"
            ) from None
        try:
            return self._dialect.reply(value if isinstance(value, dict) else {})
        except ModelError as error:
            said = f"{self._who}: {self._clean(str(error))}"
            if isinstance(value, dict) and (kind := _passing(value.get("error"))):
                raise _TryAgain(ModelError(said, kind)) from None
            raise ModelError(said, error.kind) from None

    def _connections(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            # Connections belong to the event loop that opened them.
            self._session = aiohttp.ClientSession(
                # How many calls are in flight is `workers.route`'s to say.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=5.0, ssl=self._certificates()),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # see `_read`
                # Reads and writes need no limits of their own: `complete` has one for all of a call.
                timeout=aiohttp.ClientTimeout(total=None, connect=min(10.0, self._timeout)),
            )
            self._loop = loop
        return self._session

    def _certificates(self) -> ssl.SSLContext | bool:
        """certifi's, as a slim container has none; True where they are not needed."""
        return ssl.create_default_context(cafile=certifi.where()) if self.url.scheme == "https" else True

    async def _post(self, body: Mapping[str, Any]) -> bytes:
        """The body of a 200; _TryAgain, _ToolsRejected or ModelError for everything else."""
        status = 0
        try:
            async with self._connections().post(
                self.url, data=_encoded(body), headers=self._headers, allow_redirects=False
            ) as response:
                status = response.status
                content = await self._read(response, MAX_BODY if status == 200 else 65_536)
        except aiohttp.ServerTimeoutError:
            raise _TryAgain(self._timed_out()) from None
        except aiohttp.ClientError as error:
            # `from None`: the exception holds the request, and with it the key.
            if status:
                raise self._cut_off(type(error).__name__) from None
            raise _TryAgain(
                ModelError(
                    f"{self._who} can't be reached ({self._clean(str(error)) or type(error).__name__}); "
                    f"check {self._settings}_BASE_URL",
                    "connection",
                )
            ) from None
        if status == 200:
            return content
        raise self._failure(status, response.headers, content)

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        """The body, unpacked here: a library would unpack a whole chunk, in any encoding, before its size is known."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        packed = encoding in ("gzip", "x-gzip")
        if not packed and encoding not in ("", "identity"):
            if response.status != 200:
                return b""  # the status says enough
            raise ModelError(f"{self._who} replies in the content-encoding {encoding[:40]!r}; HYVE takes gzip", "reply")
        unpacked = zlib.decompressobj(16 + zlib.MAX_WBITS)
        content = bytearray()
        try:
            async for chunk in response.content.iter_any():
                content += unpacked.decompress(chunk, limit + 1 - len(content)) if packed else chunk
                if len(content) > limit:
                    if response.status != 200:
                        return bytes(content[:limit])
                    raise ModelError(f"the reply of {self._who} is longer than {limit} bytes", "reply")
        except zlib.error:
            raise ModelError(f"the reply of {self._who} is not the gzip that it says it is", "reply") from None
        if packed and content and not unpacked.eof:
            raise self._cut_off("gzip")
        return bytes(content)

    def _cut_off(self, how: str) -> _TryAgain:
        """A server or a proxy that died in the middle of its reply."""
        return _TryAgain(ModelError(f"the reply of {self._who} was cut off ({how})", "connection"))

    def _failure(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        """What a status other than 200 means."""
        who = self._who
        said = self._clean(_message(content))
        detail = f": {said}" if said else ""
        if status in (401, 403):
            name = f"{self._settings}_API_KEY"
            what = f"rejected {name}" if self._key else f"wants a key and {name} is not set"
            return ModelError(f"{who} {what} (status {status}); set a key that it accepts{detail}", "auth")
        if status in _AGAIN or status >= 500:
            kind: Literal["rate", "timeout", "server"] = (
                "rate" if status == 429 else "timeout" if status == 408 else "server"
            )
            text = f"{who} has no capacity (status 429)" if status == 429 else f"{who} failed (status {status})"
            wait = _retry_after(headers)
            told = f", to be asked again in {wait:.0f} s" if wait else ""
            failure = ModelError(f"{text}{told}{detail}", kind, wait)
            return failure if "insufficient_quota" in said else _TryAgain(failure)
        if 300 <= status < 400:
            return ModelError(
                f"{who} redirects (status {status}); set {self._settings}_BASE_URL to the final address", "request"
            )
        failure = ModelError(
            f"{who} rejected the request (status {status}); check {self._settings}_BASE_URL and "
            f"{self._settings}_MODEL{detail}",
            "request",
        )
        if status in (400, 404, 422, 501) and re.search(r"\btools?\b|tool_choice|function.?call", said, re.I):
            return _ToolsRejected(failure)
        return failure

    def _clean(self, text: str) -> str:
        """A server's words on one line, short, without the key and other secrets: they go to logs and results."""
        text = text[:_READ]
        if self._key:
            text = text.replace(self._key, "***")
        text = PLACEHOLDER.sub("***", Redactor().mask(text))
        return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:200]


class _Failed(Exception):
    def __init__(self, failure: ModelError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _TryAgain(_Failed):
    """The same call may go well."""


class _ToolsRejected(_Failed):
    """The server takes no tools: they may be told in the text."""


def _spoken(base_url: str) -> str:
    """The dialect that an address tells of by itself."""
    address = base_url.strip().rstrip("/").lower()
    host = address.partition("://")[2].partition("/")[0].partition(":")[0]
    return "anthropic" if host == "api.anthropic.com" or address.endswith(Anthropic.path) else "openai"


def endpoint(base_url: str, path: str = OpenAI.path, settings: str = "HYVE_LLM") -> URL:
    """The address of `path` below `base_url`: the host alone gets `/v1`, any other path is kept."""
    name = f"{settings}_BASE_URL"
    try:
        url = URL(base_url.strip())
    except (TypeError, ValueError):
        raise ModelError(f"{name} is no URL; write it as https://host/v1", "request") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelError(f"{name} must start with http:// or https:// and name a host", "request")
    if url.user is not None or url.password is not None:
        raise ModelError(f"{name} holds a user or password; use {settings}_API_KEY instead", "request")
    given = url.raw_path.rstrip("/")
    if not given.endswith(path):
        given = (given or "/v1") + path
    return url.with_path(given, encoded=True, keep_query=True)


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # half surrogates, integers of more than 64 bits
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _retry_after(headers: Mapping[str, str]) -> float | None:
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


def _passing(error: Any) -> Literal["rate", "server"] | None:
    """What kind of failure the error in a 200 is, if the same call may go well: by its number, else by its words."""
    if not error:
        return None
    code = next((error[key] for key in ("status", "code") if error.get(key)), None) if isinstance(error, dict) else None
    if re.fullmatch(r"\d{3}", str(code)):
        number = int(str(code))
        return None if number not in _AGAIN and number < 500 else "rate" if number == 429 else "server"
    words = (
        " ".join(str(error.get(key) or "") for key in ("type", "code", "message")) if isinstance(error, dict) else error
    )
    if "insufficient_quota" in str(words) or not _PASSING.search(str(words)[:_READ]):
        return None
    return "rate" if re.search(r"rate.?limit|too many", str(words), re.I) else "server"


def _message(content: bytes) -> str:
    """What an error body says, else its first words."""
    text = content.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text if not text.lstrip().startswith("<") else ""
    return error_text(value) if isinstance(value, dict) else ""
