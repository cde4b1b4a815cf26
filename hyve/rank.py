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
    """a an and are as at be been by did do does for from had has have how i in is it its me my of on or our show
    tell that the their them there these they this to was we were what when where which who why will with you your""".split()
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


def rarity(categories: Sequence[str], texts: Sequence[str], numbers: Sequence[tuple[str, float, float]], mask: str) -> str:
    """An SQL expression for how far a row stands out, in nats: the largest surprise of its fields.

    `categories` and `texts` are quoted columns, `texts` compared by what is left when `mask` (a regular expression) is
    taken out; `numbers` are (quoted column, centre, spread) with a robust spread above 0.
    """
    surprises = [f"ln(count(*) OVER () / count(*) OVER (PARTITION BY {column}))" for column in categories]
    surprises += [
        f"ln(count(*) OVER () / count(*) OVER (PARTITION BY regexp_replace({column}::VARCHAR, '{mask}', '#', 'g')))"
        for column in texts
    ]
    surprises += [
        f"coalesce(CASE WHEN isfinite({column}::DOUBLE) THEN least(abs({column} - {centre!r}) / {spread!r}, 40) / 4 ELSE 8 END, 0)"
        for column, centre, spread in numbers
    ]
    if not surprises:
        return "0.0"
    return surprises[0] if len(surprises) == 1 else f"greatest({', '.join(surprises)})"
