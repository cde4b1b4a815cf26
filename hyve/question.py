"""What a question asks for: words, numbers, and times (H17).

Rules: a time without a zone is UTC, as the store's times are; one without seconds means the whole minute, a date the
whole day. Digits in groups of thousands are a number. What a question excludes ("not web-17", "except checkout",
"不是 web-17") it does not ask for; after a mere "not" only names are, for "not ready" asks for what is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
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
_NUMBERED = re.compile(
    r"\b([A-Za-z][A-Za-z_]*?)(?:[ _]?(?:id|no|num|number))?\s{0,2}[-=:#_]?\s{0,2}(\d{1,18})(?![\w.:-]?\d|[A-Za-z])",
    re.ASCII,
)
_NUMBER_ALONE = re.compile(r"(?<![\w.:-])\d+(?![\w:-])", re.ASCII)
_SIGN = r"(?=[\w.:/-]*[\d.:/_-])[A-Za-z][\w.:/-]*\w"
_NAME = re.compile(_SIGN, re.ASCII)
_EXACT = rf"(?<![\w.:/-])(?:{_SIGN}|\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?)"
_WORD = rf"(?:{_EXACT}|[A-Za-z][\w.:/-]*\w)"
_WHAT = r"(?:(?:the|in|on|for|of|from|at|with)\s+)?(?:(?:pod|host|service|node|instance|container|server)s?\s+)?"
_AND = r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|nor)\s+|\s*[和或、与及]\s*)"
_EXCLUDED = re.compile(
    rf"(?:\b(?:not|nor)\s+|(?<!是)(?:不是|并非)\s*){_WHAT}(?P<names>{_EXACT}(?:{_AND}{_EXACT})*)"
    r"|(?:\b(?:except(?:\s+for)?|excluding|exclude|ignoring|ignore|unlike|other\s+than|rather\s+than|instead\s+of|apart\s+from|aside\s+from)\s+"
    rf"|(?:而不是|除了|不包括|不含|排除)\s*){_WHAT}(?P<words>{_WORD}(?:{_AND}{_WORD})*)"
    rf"|(?P<outside>{_EXACT})\s*(?:除外|以外|之外)",
    re.ASCII | re.IGNORECASE,
)
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
    """The words that can tell rows apart, the numbers, and the times. `names` are the words with digits (`web-7`), each
    with what it is made of and nobody asked for by itself (`web`); `excluded` are words that aren't asked for, `own`
    those that stand in the question itself, `numbered` are words with the number behind each (`partition 7`)."""

    words: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    times: tuple[Instant, ...] = ()
    names: tuple[tuple[str, frozenset[str]], ...] = ()
    excluded: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    numbered: frozenset[tuple[str, str]] = frozenset()

    def and_words_of(self, text: str) -> Question:
        """The same with the words of another text, whose numbers and times nobody asked for."""
        words = dict.fromkeys([*self.words, *(word for word in rank.terms(text) if word not in self.excluded)])
        return replace(self, words=tuple(words)[: max(_WORDS, len(self.words))])

    def exactly(self, names: Collection[str]) -> Question:
        """The same where these of its names are known: what they are made of asks for nothing."""
        if not names:
            return self
        made_of = frozenset[str]().union(*(pieces for name, pieces in self.names if name in names))
        words, numbers = ([one for one in ones if one not in made_of] for ones in (self.words, self.numbers))
        return replace(self, words=tuple(words), numbers=tuple(numbers))


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

    excluded: list[str] = []

    def left_out(match: re.Match[str]) -> str:
        excluded.extend(re.findall(_WORD, match["names"] or match["words"] or match["outside"], re.ASCII))
        return " "

    head = _EXCLUDED.sub(left_out, _TIME.sub(noted, text[:_READ]))
    for group in _GROUPED.findall(head):
        head = head.replace(group, group.replace(",", ""))
    numbers = [match[1] or match[0].lstrip("+") for match in _NUMBER.finditer(head)]
    words = dict.fromkeys([*rank.terms(head + text[_READ:]), *spelled])
    numbers = [number for number in dict.fromkeys(numbers) if len(number) > 1]
    return Question(
        tuple(words),
        tuple(numbers[:_NUMBERS]),
        tuple(times)[:_TIMES],
        tuple(_names(head, words)),
        frozenset(name.lower() for name in excluded[:_NUMBERS] if rank.terms(name)) - words.keys(),
        frozenset(words),
        frozenset((word.lower(), number) for word, number in _NUMBERED.findall(head)),
    )


def _names(text: str, words: Collection[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The words of a question that are names with digits, with the pieces of them that stand nowhere else in it."""
    spelled = re.findall(_EXACT, text, re.ASCII)
    spelled = [name for name in spelled if re.search(r"\d", name) and name.lower() in words]
    found = {name.lower(): name for name in spelled[:_NUMBERS]}
    rest = text
    for name in sorted(found.values(), key=len, reverse=True):
        rest = rest.replace(name, " ")
    alone = {*rank.words(rest), *_NUMBER_ALONE.findall(rest)}
    for name, whole in found.items():
        yield name, frozenset(rank.words(whole)) - alone - {name}


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
