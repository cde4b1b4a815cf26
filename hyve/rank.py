"""What to show of a table: rows that the question asks for (BM25) and rows that stand out (rarity) (H17-H19).

Both are scored over all rows; BM25 reads only those that share a word with the query, since all others score 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:\.\d+)*")
_COMPOUND = re.compile(r"[\w.:/-]*\w")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_OTHER = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+|\d+(?:\.\d+)*")
_TERMS = 40
_COMMON = frozenset(
    """
    a an and are as at be been by did do does entries for from had has have how i in is it its look me my of on or
    our per show tell that the their them there these they this to was we were what when where which who why will
    with you your
    """.split()  # noqa: SIM905 (a list would take fifty lines)
)


def words(text: str) -> list[str]:
    """The words of `text` for matching: lower case, compounds (`checkout-db:5432`) whole and in their pieces.

    Scripts without blanks (Chinese, Japanese, Korean) give pairs of neighbouring characters.
    """
    found: list[str] = []
    for compound in _COMPOUND.findall(text):
        if compound.isascii():
            pieces = [piece.lower() for piece in _TOKEN.findall(compound)]
        else:
            pieces = [piece for run in _OTHER.findall(compound) for piece in _pieces(run)]
        found.extend(pieces)
        if len(pieces) > 1 and compound.isascii():
            found.append(compound.lower())
    return found


@lru_cache(maxsize=4096)
def name_words(name: str) -> frozenset[str]:
    """The words of a table's or a column's name."""
    return frozenset(words(name))


def _pieces(run: str) -> list[str]:
    if run[0] < "\u3040" or len(run) == 1:
        return [run.lower()]
    return [run[i : i + 2] for i in range(len(run) - 1)]


def terms(query: str) -> list[str]:
    """The first distinct words of a query that can tell rows apart."""
    found = (word for word in dict.fromkeys(words(query)) if word not in _COMMON)
    return [word for word in found if len(word) > 1 or not word.isascii()][:_TERMS]


def bm25(query: Sequence[str], texts: Iterable[str]) -> list[float]:
    """The BM25Okapi score of each text for the query's words."""
    corpus = [words(text) or [""] for text in texts]
    there = frozenset[str]().union(*corpus)
    said = [word for word in query if word in there]  # the others add nothing
    if not said:
        return [0.0] * len(corpus)
    scores: list[float] = BM25Okapi(corpus).get_scores(said).tolist()
    return scores


def surprise(rows: int, distinct: int, count: int) -> float:
    """How much rarer than its peers a value is that `count` of `rows` have, in nats; 0 for the usual ones."""
    return max(0.0, math.log(rows / max(1, distinct) / count)) if count else 0.0


def rare_kinds(codes: NDArray[np.integer[Any]], least: float = 0.0) -> NDArray[np.float64]:
    """The surprise of each row's value among the values of its column, 0 where it is not above `least`.

    `codes` number the values, -1 for none. A value that is one of many equally rare ones surprises less: that there is
    one such was to be expected.
    """
    filled = codes >= 0
    counts = np.bincount(codes[filled])
    kinds = np.count_nonzero(counts)
    scores = np.zeros(len(codes))
    if kinds:
        as_rare = np.searchsorted(np.sort(counts), counts, side="right") - (len(counts) - kinds)
        with np.errstate(divide="ignore", invalid="ignore"):
            surprises = np.log(counts.sum() / kinds / counts) - np.log(as_rare)
        surprises[~((surprises > least) & np.isfinite(surprises))] = 0.0
        scores[filled] = surprises[codes[filled]]
    return scores


def outliers(numbers: NDArray[np.float64], there: NDArray[np.bool_], series: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far each number is from the median of its own series, in robust spreads, a quarter of them, at most 10.

    NaN and infinities surprise by 8. `there` says which rows have a number, `series` which rows go together.
    """
    scores = np.zeros(len(numbers))
    finite = np.flatnonzero(there & np.isfinite(numbers))
    scores[there & ~np.isfinite(numbers)] = 8.0
    if not len(finite):
        return scores
    order = finite[np.lexsort((numbers[finite], series[finite]))]
    values, owners = numbers[order], series[order]
    starts, sizes = runs(owners)
    with np.errstate(all="ignore"):
        low, median, high = (_quantile(values, starts, sizes, share) for share in (0.25, 0.5, 0.75))
        spread = (high - low) / 1.349
        means = np.add.reduceat(values, starts) / sizes
        squares = (values - np.repeat(means, sizes)) ** 2
        spread = np.where(spread > 0, spread, np.sqrt(np.add.reduceat(squares, starts) / sizes))
        away = np.abs(values - np.repeat(median, sizes)) / np.repeat(spread, sizes)
    scores[order] = np.minimum(np.nan_to_num(away, nan=0.0, posinf=0.0), 40) / 4
    return scores


def runs(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(where each run of equal values begins, how many it has)."""
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    sizes = np.full(len(starts), len(values))
    sizes[:-1] = starts[1:]
    return starts, sizes - starts


def _quantile(
    values: NDArray[np.float64], starts: NDArray[np.int64], sizes: NDArray[np.int64], share: float
) -> NDArray[np.float64]:
    """A quantile of each run of sorted values, between two of them by their distance."""
    at = share * (sizes - 1)
    below = np.floor(at).astype(np.int64)
    one = values[starts + below]
    other = values[starts + np.minimum(below + 1, sizes - 1)]
    between: NDArray[np.float64] = one + (other - one) * (at - below)
    return between
