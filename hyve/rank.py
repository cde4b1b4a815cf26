"""What rows and columns are ranked by: words, BM25, how rare a value is, how far a number is out (H17-H19)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:\.\d+)*")
_COMPOUND = re.compile(r"[\w.:/-]*\w")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_OTHER = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+|\d+(?:\.\d+)*")
_BETWEEN = re.compile(rf"[{_CJK}]+")
_TERMS = 40


def words(text: str) -> list[str]:
    """The words of `text` for matching: lower case, compounds (`checkout-db:5432`) whole and in their pieces.

    Scripts without blanks (Chinese, Japanese, Korean) give pairs of neighbouring characters; what is written between
    them without a blank (`重启web-7`) is a compound of its own.
    """
    found: list[str] = []
    for compound in _COMPOUND.findall(text):
        if compound.isascii() and compound.isalpha() and compound.islower():
            found.append(compound)  # as most are
            continue
        for run in (compound,) if compound.isascii() else _COMPOUND.findall(_BETWEEN.sub(r" \g<0> ", compound)):
            if run.isascii():
                pieces = [piece.lower() for piece in _TOKEN.findall(run)]
                found.extend(pieces)
                if len(pieces) > 1:
                    found.append(run.lower())
            else:
                found.extend(piece for part in _OTHER.findall(run) for piece in _pieces(part))
    return found


@lru_cache(maxsize=4096)
def name_words(name: str) -> frozenset[str]:
    """The words of a table's or a column's name."""
    return frozenset(words(name))


def _pieces(run: str) -> list[str]:
    if run[0] < "\u3040" or len(run) == 1:
        return [run.lower()]
    return [run[i : i + 2] for i in range(len(run) - 1)]


_COMMON = frozenset(
    words(
        """
        a an and are as at be been by did do does entries for from had has have how i in is it its look me my of on or
        our per show tell that the their them there these they this to was we were what when where which who why will
        with you your
        """
    )
)


def terms(query: str) -> list[str]:
    """The first distinct words of a query that can tell rows apart."""
    found = (word for word in dict.fromkeys(words(query)) if word not in _COMMON)
    return [word for word in found if len(word) > 1 or not word.isascii()][:_TERMS]


_K1, _B, _EPSILON = 1.5, 0.75, 0.25


def bm25(query: Sequence[str], corpus: Sequence[Sequence[str]]) -> list[float]:
    """The score of each document, given as its words, for a query's words.

    Okapi BM25, as the package rank-bm25 has it: a word that more than half of the documents have, whose weight would be
    negative, has a quarter of the mean weight of all words.
    """
    wanted = set(query)
    holders: dict[str, list[tuple[int, int]]] = {}
    for number, document in enumerate(corpus):
        for word in wanted.intersection(document):
            holders.setdefault(word, []).append((number, document.count(word)))
    lengths = [len(document) or 1 for document in corpus]
    mean = sum(lengths) / max(1, len(corpus))
    scores = [0.0] * len(corpus)
    least: float | None = None
    for word in query:
        found = holders.get(word, ())
        weight = _weight(len(corpus), len(found)) if found else 0.0
        if weight < 0:
            weight = least = _EPSILON * _mean_weight(corpus) if least is None else least
        for number, count in found:
            long = 1 - _B + _B * lengths[number] / mean
            scores[number] += weight * (count * (_K1 + 1) / (count + _K1 * long))
    return scores


def _weight(documents: int, having: int) -> float:
    return math.log(documents - having + 0.5) - math.log(having + 0.5)


def _mean_weight(corpus: Sequence[Sequence[str]]) -> float:
    having = Counter(word for document in corpus for word in dict.fromkeys(document or ("",)))
    total = 0.0
    for count in having.values():
        total += _weight(len(corpus), count)
    return total / len(having)


def surprise(rows: int, distinct: int, count: int) -> float:
    """How much rarer than its peers a value is that `count` of `rows` have, in nats; 0 for the usual ones."""
    return max(0.0, math.log(rows / max(1, distinct) / count)) if count else 0.0


def surprise_beside(rows: int, count: int, others: Iterable[int]) -> float:
    """The surprise of what `count` of `rows` have: it is less where many of the `others`, itself included, are as
    rare."""
    return surprise(rows, 2 * sum(other <= 2 * count for other in others), count)


def rare_kinds(
    codes: NDArray[np.integer[Any]], counts: NDArray[np.int64], least: float = 0.0
) -> NDArray[np.float64] | None:
    """The surprise of each row's value among the values of its column, 0 where it is not above `least`; None where no
    value's is.

    `codes` number the values, -1 for none, and `counts` are the rows that have each. A value that is one of many
    equally rare ones surprises less: that there is one such was to be expected.
    """
    if len(counts) < 2:
        return None
    mean, rarest = counts.sum() / len(counts), int(counts.min())
    if not _any_rare(mean, rarest, int(np.count_nonzero(counts == rarest)), least):
        return None
    as_rare = np.searchsorted(np.sort(counts), counts, side="right")
    surprises = np.log(mean / counts) - np.log(as_rare)
    surprises[surprises <= least] = 0.0
    return np.append(surprises, 0.0)[codes] if surprises.any() else None


def any_rare(counts: Sequence[int], least: float = 0.0) -> bool:
    """Whether `rare_kinds` finds one among kinds that have so many rows, the commonest first."""
    if len(counts) < 2:
        return False
    return _any_rare(sum(counts) / len(counts), counts[-1], counts.count(counts[-1]), least)


def _any_rare(mean: float, rarest: int, as_rare: int, least: float) -> bool:
    return math.log(mean / rarest) - math.log(as_rare) >= least - _ROUNDED


_ROUNDED = 1e-9


def surprising(far: NDArray[np.float64], odd: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much numbers surprise that are so `far` from the median of their series in robust spreads: a quarter of it,
    at most 10. Those that are `odd`, NaN and infinities, surprise by 8."""
    scores: NDArray[np.float64] = np.minimum(np.abs(far), 40) / 4
    scores[odd] = 8.0
    return scores


def away(numbers: NDArray[np.float64], used: NDArray[np.bool_], series: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many robust spreads each of the finite numbers `used` is from the median of its own series; else 0."""
    found = np.zeros(len(numbers))
    finite = np.flatnonzero(used)
    if not len(finite):
        return found
    if len(finite) == len(numbers) and not series.any():
        order = np.argsort(numbers)
    else:
        order = finite[np.lexsort((numbers[finite], series[finite]))]
    values, owners = numbers[order], series[order]
    starts, sizes = runs(owners)
    with np.errstate(all="ignore"):
        low, median, high = _quantiles(values, starts, sizes, (0.25, 0.5, 0.75))
        spread = (high - low) / 1.349
        if not spread.all():
            means = np.add.reduceat(values, starts) / sizes
            squares = (values - np.repeat(means, sizes)) ** 2
            spread = np.where(spread > 0, spread, np.sqrt(np.add.reduceat(squares, starts) / sizes))
        far = (values - np.repeat(median, sizes)) / np.repeat(spread, sizes)
    far[~np.isfinite(far)] = 0.0
    found[order] = far
    return found


def runs(values: NDArray[np.number[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(where each run of equal values begins, how many it has)."""
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    sizes = np.full(len(starts), len(values))
    sizes[:-1] = starts[1:]
    return starts, sizes - starts


def _quantiles(
    values: NDArray[np.float64], starts: NDArray[np.int64], sizes: NDArray[np.int64], shares: tuple[float, ...]
) -> NDArray[np.float64]:
    """Quantiles of each run of sorted values, between two of them by their distance."""
    at = np.array(shares)[:, None] * (sizes - 1)
    below = np.floor(at).astype(np.int64)
    one = values[starts + below]
    other = values[starts + np.minimum(below + 1, sizes - 1)]
    between: NDArray[np.float64] = one + (other - one) * (at - below)
    return between
