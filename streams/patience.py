"""Patience with what is away for a while: Kafka, or the store of files in which large data lies.

Rule: what can't be reached says nothing about a record. It is asked for again for two minutes, with growing pauses; the
record that needs it ends as a dead letter only then, to be replayed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from hyve.errors import HyveError
from workers.settings import PATIENCE

log = logging.getLogger("hyve")

T = TypeVar("T")

SECONDS: Final = PATIENCE
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


async def patiently(call: Callable[[], Awaitable[T]], passing: Callable[[HyveError], bool], who: str) -> T:
    """What `call` gives, asked again while it raises an error that is `passing`. The last one is raised in the end, and
    any other at once. `who` begins the lines in the log."""
    end = time.monotonic() + SECONDS
    pause = _FIRST_PAUSE
    while True:
        try:
            return await call()
        except HyveError as error:
            if not passing(error) or time.monotonic() + pause > end:
                raise
            log.warning("%s: %s; trying again in %g s", who, error, pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
