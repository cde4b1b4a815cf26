"""What Faust and the Kafka clients may say in a worker's log."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final


class Seldom(logging.Filter):
    """Lets a logger say the same, whatever it fills in, once in `seconds`: while a broker is away the Kafka clients say
    thousands of times a second that it is."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._clock = seconds, clock
        self._said: dict[tuple[str, str], float] = {}
        self._left_out: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        said, now = (record.name, str(record.msg)[:200]), self._clock()
        if now - self._said.get(said, -math.inf) < self._seconds:
            self._left_out[said] += 1
            return False
        if len(self._said) > 1000:  # messages that are all different
            self._said.clear()
            self._left_out.clear()
        self._said[said] = now
        if more := self._left_out.pop(said, 0):
            record.msg = f"{record.msg} ({more} more such lines before)"
        return True


_SELDOM = Seldom(10.0)

FORMAT: Final = "[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s"


def config(level: str) -> dict[str, Any]:
    """A worker's log, for `logging.config`: lines on standard error. Faust's own colours each of them, also in files,
    which takes as long as everything else that is done for a record's line."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": FORMAT}},
        "handlers": {"default": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"level": level, "handlers": ["default"]},
    }


def quiet() -> None:
    """Keeps what Faust and the Kafka clients say at warnings and above, and of that no line again and again; our own
    lines stay."""
    noisy = ("faust", "mode", "aiokafka", "kafka", "aiohttp")
    for name in noisy:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in tuple(logging.root.manager.loggerDict):
        if name.partition(".")[0] in noisy:
            logging.getLogger(name).addFilter(_SELDOM)
