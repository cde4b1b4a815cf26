"""Token counts: those of the vocabulary, and never of a text that is long more than a few times (invariant of cost)."""

from __future__ import annotations

from typing import Any

import pytest

import hyve
from hyve import tokens


@pytest.mark.parametrize("text", ["", "a b", "<|endoftext|>", "\\" * 1_000, "\0" * 999, " " * 5_000, "é漢😀\n" * 100])
def test_a_count_is_that_of_the_tokens_themselves(text: str) -> None:
    assert tokens.count_tokens(text) == len(tokens._encoding().encode_ordinary(text))


def test_half_of_a_surrogate_pair_counts_as_a_question_mark() -> None:
    assert tokens.count_tokens("a \ud83d b") == tokens.count_tokens("a ? b")


class _Counted:
    """The vocabulary, and the characters that were given to it."""

    def __init__(self, encoding: Any) -> None:
        self.encoding, self.given = encoding, 0

    def count(self, text: str) -> int:
        self.given += len(text)
        return int(self.encoding.count(text))


@pytest.mark.parametrize("unit", ["\\", "\0", "a", "9", "key=", 'a=1 b="x y" c={d: 1} ', "{name: foo, said: [hello} "])
def test_a_long_cell_is_counted_once_for_all_cells_that_are_tried(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original is counted whole; what is fitted into the budget is cut before, at times in one round more."""
    counted = _Counted(tokens._encoding())
    monkeypatch.setattr(tokens, "_encoding", lambda: counted)
    given = []
    for size in (40_000, 160_000):
        counted.given = 0
        hyve.view(unit * (size // len(unit)), budget=1_500)
        given.append(counted.given)
    assert given[1] - given[0] < 120_000 + 10 * 1_500
