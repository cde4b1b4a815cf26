"""What a question asks for: words, numbers, and times (H17).

Rules: a time without a zone is UTC, as the store's times are; one without seconds means the whole minute, a date the
whole day. Digits in groups of thousands are a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hyve import rank

_TIME = re.compile(
    r"(?<![\w.:-])(?:(\d{4}-\d\d-\d\d)(?:[T ](?=\d\d:))?)?(?:(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?"
    r"(?<=\d)\s?(Z\b|UTC\b|[+-]\d\d:?\d\d\b)?(?![\w:-])",
    re.ASCII,
)
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,]|\.\d)", re.ASCII)
_NUMBER = re.compile(
    r"(?<![\w.:-])[+-]?\d+(?:\.\d+)?(?![\w:-]|\.\d)"  # 1015554
    r"|(?<![\w.:-])[A-Za-z]+[-_#:]?(\d{2,18})(?![\w:-]|\.\d)",  # order-1015554
    re.ASCII,
)
_NAME = re.compile(r"(?=[\w.:/-]*[\d.:/_-])[A-Za-z][\w.:/-]*\w", re.ASCII)
_TIMES, _NUMBERS = 8, 16
"""So many of a question's times and numbers are looked for."""
_READ, _WORDS = 10_000, 40
DAY = 86_400 * 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HELD = range(-(1 << 63), 1 << 63)
"""Times that a column can hold."""


@dataclass(frozen=True)
class Instant:
    """Nanoseconds since 1970 (of the day, where `daily`), and how many of them are meant."""

    at: int
    length: int
    daily: bool


@dataclass(frozen=True)
class Question:
    """The words that can tell rows apart, the numbers, and the times."""

    words: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    times: tuple[Instant, ...] = ()

    def and_words_of(self, text: str) -> Question:
        """The same with the words of another text, whose numbers and times nobody asked for."""
        words = dict.fromkeys([*self.words, *rank.terms(text)])
        return Question(tuple(words)[: max(_WORDS, len(self.words))], self.numbers, self.times)


def read(text: str) -> Question:
    """The question that a text asks; of a very long one, times and numbers are those at its beginning."""
    times: dict[Instant, None] = {}
    spelled: list[str] = []

    def noted(match: re.Match[str]) -> str:
        instant = _instant(match)
        if instant is None:
            return match[0]
        if instant.at in _HELD:
            times.setdefault(instant)
        spelled.extend(re.findall(r"[\d:-]{5,}", match[0].split("+")[0]))
        return " "

    head = _TIME.sub(noted, text[:_READ])
    for group in _GROUPED.findall(head):
        head = head.replace(group, group.replace(",", ""))
    numbers = [match[1] or match[0].lstrip("+") for match in _NUMBER.finditer(head)]
    words = dict.fromkeys([*rank.terms(head + text[_READ:]), *spelled])
    numbers = [number for number in dict.fromkeys(numbers) if len(number) > 1]
    return Question(tuple(words), tuple(numbers[:_NUMBERS]), tuple(times)[:_TIMES])


def names(text: str) -> list[str]:
    """What may name one of many in a question: words with a digit or a mark within."""
    return list(dict.fromkeys(_NAME.findall(text[:_READ])))[:_NUMBERS]


def _instant(match: re.Match[str]) -> Instant | None:
    day, hours, minutes, seconds, fraction, zone = match.groups()
    if day is None and hours is None:
        return None
    length = DAY
    if hours is not None:
        length = 60 * 10**9 if seconds is None else 10 ** (9 - len(fraction or ""))
    text = f"{day or '1970-01-01'} {hours or '00'}:{minutes or '00'}:{seconds or '00'}"
    try:
        moment = datetime.fromisoformat(text + (zone if zone and zone[0] in "+-" else "Z"))
    except ValueError:
        return None
    at = (moment - _EPOCH) // timedelta(seconds=1) * 10**9 + int((fraction or "").ljust(9, "0"))
    return Instant(at % DAY if day is None else at, length, day is None)
