"""An OpenAI-compatible server that answers by a script, for tests. It stands in for the network only.

In a test: `with ScriptedLLM([{"text": "hello"}]) as server: ... server.url, server.requests`.
In a process of its own: `python -m tests.scripted_llm --port 0 --script replies.json` prints its base URL on
one line and serves until it is stopped; `GET /requests` then gives the recorded requests as JSON.

A script is a list of steps, one for each POST, or {"replies": [...], "repeat_last": true}. A step is one of
    {"text": "..."}                                       an assistant's message
    {"tool": "query_datastore", "arguments": {...}}       one call; arguments may be a string, sent as it is
    {"tools": [{"tool": ..., "arguments": ...}, ...]}     several calls
    {"status": 429, "headers": {...}, "body": ...}        any status; body an object or a text
    {"raw": "..."}                                        a 200 with this body; "raw_base64" for bytes, with "headers"
    {"hang": 5}                                           silence for so many seconds, then a closed connection
    {"cut": true}                                         a 200 whose body ends before its announced length
    {"disconnect": true}                                  the connection closes without a word
`text`, `tool` and `tools` may stand together, with "usage", "finish_reason" and "model" to override.
"expect" (a text) makes the step a 500 that says so where the request's body doesn't hold that text.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

Step = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """One POST as it came in; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: Any


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # of Python's five, a burst of connections leaves most to be tried again seconds later


class ScriptedLLM:
    """The server. `url` is its base URL (with /v1), `requests` what it was asked, in order."""

    def __init__(
        self,
        replies: Sequence[Step | Callable[[Any], Step]],
        *,
        port: int = 0,
        repeat_last: bool = False,
    ) -> None:
        self.requests: list[Recorded] = []
        self._replies = list(replies)
        self._repeat_last = repeat_last
        self._next = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.host}/v1"

    def __enter__(self) -> ScriptedLLM:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def step(self, request: Recorded) -> Step:
        """The next step of the script, for this request."""
        with self._lock:
            self.requests.append(request)
            if self._next >= len(self._replies) and not (self._repeat_last and self._replies):
                return {"status": 500, "body": {"error": {"message": "the script has no more replies"}}}
            chosen = self._replies[min(self._next, len(self._replies) - 1)]
            self._next += 1
        step = chosen(request.body) if callable(chosen) else chosen
        if "expect" in step and step["expect"] not in json.dumps(request.body, ensure_ascii=False):
            return {"status": 500, "body": {"error": {"message": f"the request lacks {step['expect']!r}"}}}
        return step

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Silent: the tests' output is not the place for access logs."""

            def do_GET(self) -> None:
                found = [vars(request) for request in owner.requests]
                self._send(200, {}, json.dumps(found).encode())

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", "0")))
                try:
                    body = json.loads(raw)
                except ValueError:
                    body = raw.decode("utf-8", "replace")
                headers = {name.lower(): value for name, value in self.headers.items()}
                step = owner.step(Recorded(self.path, headers, body))
                if "hang" in step:
                    owner._stopping.wait(step["hang"])
                    self.close_connection = True
                elif step.get("disconnect"):
                    self.close_connection = True
                elif step.get("cut"):
                    self._send(200, {}, b'{"choices": [{"mess', announced=1000)
                    self.close_connection = True
                elif "raw_base64" in step:
                    self._send(step.get("status", 200), step.get("headers", {}), base64.b64decode(step["raw_base64"]))
                elif "raw" in step:
                    self._send(200, {}, step["raw"].encode())
                elif "status" in step:
                    content = step.get("body", "")
                    text = content if isinstance(content, str) else json.dumps(content)
                    self._send(step["status"], step.get("headers", {}), text.encode())
                else:
                    self._send(200, {}, json.dumps(completion(step)).encode())

            def _send(self, status: int, headers: dict[str, str], content: bytes, announced: int | None = None) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content) if announced is None else announced))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        return Handler


def completion(step: Step) -> dict[str, Any]:
    """A chat completion that says what `step` wants."""
    calls = list(step.get("tools", ()))
    if "tool" in step:
        calls.append({"tool": step["tool"], "arguments": step.get("arguments", {})})
    message: dict[str, Any] = {"role": "assistant", "content": step.get("text")}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {
                    "name": call["tool"],
                    "arguments": call["arguments"]
                    if isinstance(call["arguments"], str)
                    else json.dumps(call["arguments"]),
                },
            }
            for number, call in enumerate(calls)
        ]
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": step.get("model", "scripted-1"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": step.get("finish_reason", "tool_calls" if calls else "stop"),
            }
        ],
        "usage": step.get("usage", {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server that answers by a script.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    options = parser.parse_args(arguments)
    script = json.loads(options.script.read_text("utf-8"))
    steps, repeat = (script, False) if isinstance(script, list) else (script["replies"], script["repeat_last"])
    with ScriptedLLM(steps, port=options.port, repeat_last=repeat) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
