"""What to show of a table: rows that the question asks for (BM25) and rows that stand out (rarity) (H17-H19).

Both are scored over all rows: rarity in SQL, BM25 over the rows that share a word with the query (all others score 0).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from rank_bm25 import BM25Okapi

_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:\.\d+)*")
_COMPOUND = re.compile(r"[\w.:/-]*\w")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_OTHER = re.compile(rf"[{_CJK}]+|[^\W\d_{_CJK}]+|\d+(?:\.\d+)*")
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


def _pieces(run: str) -> list[str]:
    if run[0] < "\u3040" or len(run) == 1:
        return [run.lower()]
    return [run[i : i + 2] for i in range(len(run) - 1)]


def terms(query: str, limit: int = 40) -> list[str]:
    """The distinct words of a query that can tell rows apart."""
    found = (word for word in dict.fromkeys(words(query)) if word not in _COMMON)
    return [word for word in found if len(word) > 1 or not word.isascii()][:limit]


def bm25(query: Sequence[str], texts: Iterable[str]) -> list[float]:
    """The BM25Okapi score of each text for the query's words."""
    corpus = [words(text) or [""] for text in texts]
    if not corpus or not query:
        return [0.0] * len(corpus)
    return [float(score) for score in BM25Okapi(corpus).get_scores(list(query))]


def surprise(rows: int, distinct: int, count: int) -> float:
    """How much rarer than its peers a value is that `count` of `rows` have, in nats; 0 for the usual ones."""
    return max(0.0, math.log(rows / max(1, distinct) / count)) if count else 0.0


def rarity(
    table: str,
    categories: Mapping[str, Mapping[str, float]],
    seldom: Mapping[str, float],
    texts: Sequence[str],
    numbers: Sequence[str],
    series: Sequence[str],
    mask: str,
) -> str:
    """SQL for (rowid, score) of the rows that stand out, most first; the score is the largest surprise of a field.

    `categories` gives the surprise of each rare value of a column, `seldom` that of any value of a column that few
    rows have. A text surprises by how rare it is among its kind once `mask` (a regular expression) is taken out, a
    number by its distance from the median of its own series (rows alike in the `series` columns) in robust spreads.
    All names come quoted.
    """
    surprises, withs, joins = [], [], []
    for column, values in categories.items():
        cases = " ".join(f"WHEN {literal(value)} THEN {score:.3f}" for value, score in values.items())
        surprises.append(f"CASE t.{column}::VARCHAR {cases} ELSE 0 END")
    surprises += [f"CASE WHEN t.{column} IS NOT NULL THEN {score:.3f} ELSE 0 END" for column, score in seldom.items()]
    for i, column in enumerate(texts):
        masked = f"regexp_replace({column}::VARCHAR, '{mask}', '#', 'g')"
        withs.append(f"k{i} AS (SELECT rowid AS r, {masked} AS k FROM {table} WHERE {column} IS NOT NULL)")
        withs.append(
            f"x{i} AS (SELECT k, greatest(0, ln(sum(count(*)) OVER () / count(*) OVER () / count(*))) AS x"
            f" FROM k{i} GROUP BY k)"
        )
        joins.append(f" LEFT JOIN k{i} ON k{i}.r = t.rowid LEFT JOIN x{i} ON x{i}.k = k{i}.k")
        surprises.append(f"coalesce(x{i}.x, 0)")
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
        withs.append(f"s AS (SELECT {keys}{', '.join(measures)} FROM {table} GROUP BY ALL)")
        joins.append(
            " JOIN s ON " + (" AND ".join(f"t.{column} IS NOT DISTINCT FROM s.{column}" for column in series) or "true")
        )
    score = f"greatest({', '.join(surprises)}, 0)" if surprises else "0.0"
    head = f"WITH {', '.join(withs)} " if withs else ""
    rows = f"{table} AS t{''.join(joins)}"
    return f"{head}SELECT t.rowid AS r, ({score})::DOUBLE AS score FROM {rows} ORDER BY score DESC, r"


def literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"
