"""Our BM25 beside rank-bm25, as Markdown: `python -m tests.bench.bm25`.

Documents of twelve words out of two thousand, a query of four; processor time of scoring once, the best of nine rounds
taken in turns. rank-bm25 makes an index of all words first, which a prompt asks only once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rank_bm25 import BM25Okapi

from hyve import rank

_ROUNDS = 9


def main() -> int:
    """Prints the table; 1 if ours is slower."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(2_000)]
    query = words[1:5]
    print("| documents | ours, ms | rank-bm25, ms | ratio |")
    print("|---:|---:|---:|---:|")
    good = True
    for count in (100, 1_000, 10_000):
        corpus = [draw.choices(words, k=12) for _ in range(count)]
        turns = [
            (_took(partial(rank.bm25, query, corpus)), _took(partial(_package, query, corpus))) for _ in range(_ROUNDS)
        ]
        ours, theirs = (min(times) * 1e3 for times in zip(*turns, strict=True))
        print(f"| {count:,} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")
        good &= ours <= theirs
    return 0 if good else 1


def _package(query: list[str], corpus: list[list[str]]) -> Any:
    return BM25Okapi(corpus).get_scores(query)


def _took(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
