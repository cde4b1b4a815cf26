"""An LLM worker with a fault, for tests: `python -m tests.integration.faulty_worker hang|freeze`.

`hang`: working on a record never ends, and the event loop goes on. `freeze`: it blocks the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from unittest.mock import patch

from streams.app import Incoming, Outgoing
from streams.llm import LlmStage
from streams.worker import run
from workers.settings import load


async def hang(self: LlmStage, record: Incoming) -> Sequence[Outgoing]:
    await asyncio.Event().wait()
    return []


async def freeze(self: LlmStage, record: Incoming) -> Sequence[Outgoing]:
    time.sleep(3600)  # noqa: ASYNC251 - that is the fault
    return []


if __name__ == "__main__":
    with patch.object(LlmStage, "process", {"hang": hang, "freeze": freeze}[sys.argv[1]]):
        run("llm", load(), stop_with_stdin=True)
