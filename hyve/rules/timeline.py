"""The window of the data in equal buckets, and when something in it went bad.

Rules:
- The window is cut into `BUCKETS` equal parts; the first quarter is what "usual" means: the data's own beginning.
- An episode is the stretch of buckets in which the share of bad events differs most from the rest, by the
  log-likelihood ratio of a binomial scan (Kulldorff 1997).
- An episode lasts when its bad events spread over at least four buckets (inverse Simpson index); else it is a blip.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hyve import naming

BUCKETS = 60
BASE = 15
_LASTING = 4.0
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def quote(text: str) -> str:
    """A text as an SQL literal; characters that no statement may hold (ANSI escapes in a log line) by their code."""
    plain = naming.literal(text)
    if _CONTROL.search(plain) is None:
        return plain
    return "concat(" + _CONTROL.sub(lambda found: f"', chr({ord(found.group())}), '", plain) + ")"


@dataclass(frozen=True)
class Window:
    """The time that the data covers, in epoch nanoseconds."""

    start: int
    end: int

    @property
    def width(self) -> int:
        """Nanoseconds of one bucket."""
        return max(1, -(-(self.end - self.start + 1) // BUCKETS))

    def at(self, bucket: float) -> int:
        """When a bucket begins."""
        return self.start + int(bucket * self.width)

    def bucket(self, column: str = "time") -> str:
        """The SQL of a row's bucket number."""
        return f"((epoch_ns({column}) - {self.start}) // {self.width})"


def moment(ns: int) -> datetime:
    """The UTC time of epoch nanoseconds, to the second."""
    return _EPOCH + timedelta(seconds=ns // 1_000_000_000)


def clock(ns: int) -> str:
    """A time of day for a reader, in UTC."""
    return f"{moment(ns):%H:%M:%S}"


def literal(ns: int) -> str:
    """A time as an SQL literal, to the second."""
    return f"TIMESTAMP '{moment(ns):%Y-%m-%d %H:%M:%S}'"


@dataclass(frozen=True)
class Episode:
    """Buckets [start, end) in which `during` of the events were bad, against `before` outside of them. `spread` is
    the number of buckets that the bad events fill, as if they were spread evenly."""

    start: int
    end: int
    llr: float
    before: float
    during: float
    bad: int
    total: int
    spread: float

    @property
    def lasting(self) -> bool:
        return self.spread >= _LASTING


def _likelihood(bad: float, total: float) -> float:
    if bad <= 0 or bad >= total:
        return 0.0
    share = bad / total
    return bad * math.log(share) + (total - bad) * math.log(1 - share)


def scan(total: Sequence[int], bad: Sequence[int], least: int = 4) -> Episode | None:
    """The worst episode of a series, or None where nothing stands out (fewer than `least` bad events count as
    nothing). `total` and `bad` are the events of each bucket."""
    size = len(total)
    events, wrong = [0], [0]
    for index in range(size):
        events.append(events[-1] + total[index])
        wrong.append(wrong[-1] + bad[index])
    if wrong[-1] < least or events[-1] <= 0:
        return None
    whole = _likelihood(wrong[-1], events[-1])
    places = [index for index in range(size) if bad[index]]
    best: Episode | None = None
    for start in places:
        for last in reversed(places):
            if last < start:
                break
            inside, hit = events[last + 1] - events[start], wrong[last + 1] - wrong[start]
            outside, missed = events[-1] - inside, wrong[-1] - hit
            if hit < least or (outside and hit / inside <= missed / outside):
                continue
            llr = _likelihood(hit, inside) + _likelihood(missed, outside) - whole
            if best is None or llr > best.llr:
                usual = missed / outside if outside else 0.0
                best = Episode(start, last + 1, llr, usual, hit / inside, hit, inside, 0.0)
    if best is None:
        return None
    squares = sum(bad[index] ** 2 for index in range(best.start, best.end))
    return replace(best, spread=best.bad**2 / squares)
