"""What to show of a table: rows that the question asks for (BM25) and rows that stand out (rarity) (H17-H19).

Both are scored over all rows: rarity in SQL, BM25 over the rows that share a word with the query (all others score 0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rank_bm25 import BM25Okapi

_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:\.\d+)*|[^\W\da-zA-Z_]")
_COMPOUND = re.compile(r"[\w.:/-]*\w")
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "show",
        "tell",
        "that",
        "the",
        "their",
        "them",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)


def words(text: str) -> list[str]:
    """The words of `text` for matching: lower case, compounds (`checkout-db:5432`) whole and in their pieces."""
    found: list[str] = []
    for compound in _COMPOUND.findall(text):
        pieces = [piece.lower() for piece in _TOKEN.findall(compound)]
        found.extend(pieces)
        if len(pieces) > 1:
            found.append(compound.lower())
    return found


def terms(query: str, limit: int = 40) -> list[str]:
    """The distinct words of a query that can tell rows apart."""
    return [word for word in dict.fromkeys(words(query)) if word not in _COMMON and len(word) > 1][:limit]


def bm25(query: Sequence[str], texts: Iterable[str]) -> list[float]:
    """The BM25Okapi score of each text for the query's words."""
    corpus = [words(text) or [""] for text in texts]
    if not corpus or not query:
        return [0.0] * len(corpus)
    return [float(score) for score in BM25Okapi(corpus).get_scores(list(query))]


def rarity(
    table: str,
    categories: Sequence[str],
    texts: Sequence[str],
    numbers: Sequence[str],
    series: Sequence[str],
    mask: str,
) -> str:
    """SQL for (rowid, score) of the rows that stand out, most first; the score is the largest surprise of a field.

    A category surprises by how rare its value is, a text by how rare it is once `mask` (a regular expression) is taken
    out, a number by its distance from the median of its own series (rows alike in the `series` columns) in robust
    spreads. All names come quoted.
    """
    surprises = [f"ln(count(*) OVER () / count(*) OVER (PARTITION BY t.{column}))" for column in categories]
    surprises += [
        f"ln(count(*) OVER () / count(*) OVER (PARTITION BY regexp_replace(t.{column}::VARCHAR, '{mask}', '#', 'g')))"
        for column in texts
    ]
    stats, join = "", ""
    if numbers:
        measures = []
        for i, column in enumerate(numbers):
            value = f"{column}::DOUBLE"
            measures.append(
                f"median({value}) FILTER (isfinite({value})) AS m{i}, "
                f"coalesce(nullif((quantile_cont({value}, 0.75) FILTER (isfinite({value}))"
                f" - quantile_cont({value}, 0.25) FILTER (isfinite({value}))) / 1.349, 0),"
                f" nullif(stddev_pop({value}) FILTER (isfinite({value})), 0)) AS s{i}"
            )
            surprises.append(
                f"coalesce(CASE WHEN isfinite(t.{value}) THEN least(abs(t.{value} - m{i}) / s{i}, 40) / 4"
                f" WHEN t.{column} IS NOT NULL THEN 8 END, 0)"
            )
        keys = "".join(f"{column}, " for column in series)
        stats = f"WITH s AS (SELECT {keys}{', '.join(measures)} FROM {table} GROUP BY ALL) "
        join = " JOIN s ON " + (
            " AND ".join(f"t.{column} IS NOT DISTINCT FROM s.{column}" for column in series) or "true"
        )
    score = surprises[0] if len(surprises) == 1 else f"greatest({', '.join(surprises)})" if surprises else "0.0"
    return f"{stats}SELECT t.rowid AS r, {score} AS score FROM {table} AS t{join} ORDER BY score DESC, r"
