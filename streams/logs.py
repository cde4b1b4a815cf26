"""A worker's log: one line for each thing that is said, whoever wrote what is quoted in it.

Rules:
- Labels, names and ids are anybody's. Control characters are written as escapes, so that nobody else writes a line of
  the log or speaks to the terminal that shows it; what is longer than LONGEST characters is cut, and says so.
- Only a traceback has more lines. They are indented: none of them begins as a line of the log does.
- What libraries say again and again is said seldom, and what is no fault, though they call it one, not at all.
"""

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


_SELDOM = Seldom(60.0)

_USUAL: Final = {
    "Heartbeat failed for group %s because it is rebalancing": "",
    "Group Coordinator Request failed: %s": "[Error 15]",
    "Warning: Task timed out!": "",
    "Please make sure it's hanging before restart.": "",
}
"""What Faust and the Kafka client say while workers come and go (what is in hand may take longer than a session), and
where a broker doesn't coordinate yet (with these words in it). What doesn't end is told by `streams.health`."""


def unusual(record: logging.LogRecord) -> bool:
    """Whether a line of a library's is more than that."""
    words = _USUAL.get(str(record.msg))
    return words is None or words not in record.getMessage()


LONGEST: Final = 2_000
"""Characters of the longest line's text."""

_TRACED: Final = 100
"""Lines of the longest traceback."""


def printable(text: str) -> str:
    """`text` on one line, with its control characters visible."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _bounded(text: str) -> str:
    text, left = text[:LONGEST], len(text) - LONGEST
    text = printable(text)
    return f"{text} ... ({left:,} more characters)" if left > 0 else text


class Lines(logging.Formatter):
    """Keeps to the rules of lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _bounded(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(f"    {_bounded(line)}" for line in lines[-_TRACED:])


FORMAT: Final = "[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s"


def config(level: str) -> dict[str, Any]:
    """A worker's log, for `logging.config`: lines on standard error. Faust's own colours each of them, also in files,
    which takes as long as everything else that is done for a record's line."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"()": Lines, "fmt": FORMAT}},
        "handlers": {"default": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"level": level, "handlers": ["default"]},
    }


def quiet() -> None:
    """Keeps what Faust, our classes of its (`streams.commits`) and the Kafka clients say at warnings and above, and of
    that no line again and again; our own lines stay."""
    noisy = ("faust", "mode", "aiokafka", "kafka", "aiohttp", "streams")
    for name in noisy:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in tuple(logging.root.manager.loggerDict):
        if name.partition(".")[0] in noisy:
            logging.getLogger(name).addFilter(unusual)
            logging.getLogger(name).addFilter(_SELDOM)
