"""One input, measured in a process of its own: what it becomes, how long that takes and how much memory it needs.

    python bench_child.py hyve|headroom        a JSON request on standard input, a JSON reply on standard output

Request: `path`, `question`, `budget`, `runs`, `ablation` (of HYVE only). Reply: `text`, `tokens` (where the package
counts exactly), `cut`, `ms` and `cpu_ms` of each timed run, `stages` (milliseconds by stage), `memory` (bytes); or
`error`.

Rules:
- Standard library only, until the measured package is imported: another interpreter may run this file.
- A small text warms imports, vocabularies and caches up. The first call on the input is measured for memory (the peak
  of the resident set over what it was before), the next `runs` calls for time.
- Headroom remembers texts that it has seen, so each of its calls gets one more newline at the end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[[bytes, str, int], dict[str, Any]]


def _hyve(ablation: list[str]) -> Call:
    import hyve

    def call(data: bytes, question: str, budget: int) -> dict[str, Any]:
        prompt = hyve.view(data, question, budget, ablation=ablation)
        return {"text": prompt.text, "tokens": prompt.prompt_tokens, "cut": prompt.cut, "stages": prompt.ms}

    return call


def _headroom(_: list[str]) -> Call:
    os.environ["HEADROOM_OFFLINE"] = "1"
    litellm = importlib.util.find_spec("litellm")
    if litellm is not None and litellm.origin:  # carries the vocabulary that tiktoken would fetch
        vocabularies = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(vocabularies))
    compress = importlib.import_module("headroom").compress
    seen = 0

    def call(data: bytes, question: str, budget: int) -> dict[str, Any]:
        nonlocal seen
        seen += 1
        function = {"name": "fetch_data", "arguments": "{}"}
        messages = [
            {"role": "user", "content": question or "See the data."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": data.decode("utf-8", "replace") + "\n" * seen},
        ]
        result = compress(messages, model="gpt-4o")
        return {"text": str(result.messages[-1]["content"]), "stages": {}}

    return call


def _resident(field: str) -> int:
    """Bytes of a field of this process's status (Linux), 0 elsewhere."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def measure(call: Call, data: bytes, question: str, budget: int, runs: int) -> dict[str, Any]:
    """Runs `call` on `data` once for memory and `runs` times for time."""
    call(_WARM, question, max(budget, 4000))
    gc.collect()
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as peak:
        peak.write("5")  # the peak starts anew
    before = _resident("VmRSS")
    found = call(data, question, budget)
    found["memory"] = max(0, _resident("VmHWM") - before)
    ms, cpu, stages = [], [], []
    for _ in range(runs):
        began, worked = time.perf_counter(), time.process_time()
        again = call(data, question, budget)
        ms.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - worked) * 1000)
        stages.append(again["stages"])
    return {
        **found,
        "ms": ms,
        "cpu_ms": cpu,
        "stages": {name: [run[name] for run in stages] for name in found["stages"]},
    }


_WARM = json.dumps(
    [
        {
            "time": f"2026-01-01T{i // 60:02d}:{i % 60:02d}:00Z",
            "service": f"s{i % 3}",
            "ms": i % 7,
            "message": f"item {i} read",
        }
        for i in range(600)
    ]
).encode()


def main() -> None:
    """Answers the one request."""
    request = json.load(sys.stdin)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # packages that greet
            call = {"hyve": _hyve, "headroom": _headroom}[sys.argv[1]](request.get("ablation", []))
            data = Path(request["path"]).read_bytes()
            reply = measure(call, data, request["question"], request["budget"], request["runs"])
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
