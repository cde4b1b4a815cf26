"""Words of texts, and BM25 (H17, H19)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from hyve import rank


@given(
    st.lists(st.text(alphabet="ab c1-_", max_size=20), min_size=1, max_size=8), st.text(alphabet="ab c1-_", max_size=12)
)
@settings(max_examples=50)
def test_bm25_scores_are_those_of_rank_bm25(texts: list[str], query: str) -> None:
    tokens = rank.words(query)
    expected = (
        BM25Okapi([rank.words(text) or [""] for text in texts]).get_scores(tokens) if tokens else [0] * len(texts)
    )
    assert rank.bm25(tokens, [rank.words(text) for text in texts]) == pytest.approx(list(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checkoutService", ["checkout", "service", "checkoutservice"]),
        ("order_items", ["order", "items", "order_items"]),
        ("10.0.0.31:9100", ["10.0.0.31", "9100", "10.0.0.31:9100"]),
        ("HTTPServer failed", ["http", "server", "httpserver", "failed"]),
        ("数据库慢", ["数据", "据库", "库慢"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert rank.words(text) == expected
