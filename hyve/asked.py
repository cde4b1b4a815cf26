"""The rows of a table that a question asks for: those that share words with it, the best ones by BM25 (H17, H19).

Rows that share no word with the question score nothing and are not read, and words that most rows have choose none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow.compute as pc
from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
from numpy.typing import NDArray

from hyve import rank
from hyve.columns import Columns, Values
from hyve.profile import Profile, free_text, structural

_COLUMNS, _CHARACTERS = 40, 2_000
"""So many columns of texts are looked through, and so many characters of a row are scored."""
_READ, _BEST = 1_000, 60
"""So many of the rows that share words with the question are scored, and so many are told."""
_WINDOW = 1 << 16
"""Characters that are looked through at once: each place of each word takes memory."""


def asked(found: Profile, words: Sequence[str]) -> list[tuple[int, list[int]]]:
    """(row, the columns that have most of the words) of the rows that `words` ask for, best first."""
    columns, table = found.columns, found.table
    names = [c.name for c in table.columns if c.type.startswith("VARCHAR") and not structural(c)][:_COLUMNS]
    if free_text(table):
        names = ["text"]
    if not names or not words or not table.rows:
        return []
    rows = _sharing_of_few(columns, names, words) if columns.short else _sharing(columns, names, words)
    cells = [columns.cells(name, rows) for name in names]
    known: dict[str, list[str]] = {}

    def said(cell: str) -> list[str]:
        if cell not in known:
            known[cell] = rank.words(cell[:_CHARACTERS])
        return known[cell]

    corpus = []
    for row in zip(*cells, strict=True):
        texts = [cell for cell in row if cell is not None]
        if sum(map(len, texts)) + len(texts) > _CHARACTERS:
            corpus.append(rank.words(" ".join(texts)[:_CHARACTERS]))
        else:
            corpus.append([word for text in texts for word in said(text)])
    scores = rank.bm25(words, corpus)
    # Where few rows have a word, BM25 may give them less than 0.
    best = sorted(range(len(rows)), key=lambda i: (-scores[i], rows[i]))[:_BEST]
    numbers = {view.column.name: i for i, view in enumerate(found.views)}
    wanted = set(words)
    result = []
    for i in best:
        found_in = [
            (len(wanted.intersection(said(column[i]))), numbers[name])
            for name, column in zip(names, cells, strict=True)
            if column[i] and name in numbers
        ]
        most = max(found_in, default=(0, 0))[0]
        result.append((rows[i], [column for count, column in found_in if count == most > 0][:2]))
    return result


def _sharing_of_few(columns: Columns, names: Sequence[str], words: Sequence[str]) -> list[int]:
    """The same as `_sharing` in columns that are short: a pattern takes longer to be read than they do."""
    told: dict[int, set[str]] = {}
    for codes, values in (columns.coded(name) for name in names):
        said = words_in([text.lower() for text in values.shown()], tuple(words))
        for row, code in enumerate(codes.tolist()) if said else ():
            if code in said:
                told.setdefault(row, set()).update(said[code])
    rows = sorted(told)
    most = columns.table.rows // 2
    if len(rows) <= most:
        return rows
    counts = Counter(word for row in rows for word in told[row])
    common = {word for word, count in counts.items() if count > most}
    return sorted((row for row in rows if told[row] - common), key=lambda row: -len(told[row] - common))


def words_in(texts: Sequence[str], words: tuple[str, ...]) -> dict[int, set[str]]:
    """By the number of a text in lower case, the words that it has as `whole_word`'s pattern finds them."""
    found: dict[int, set[str]] = {}
    starts = list(accumulate((len(text) + 1 for text in texts), initial=1))
    whole = "\n".join(["", *texts, ""])
    longest = max(map(len, words))
    for at in range(0, len(whole), _WINDOW):
        window = whole[at : at + _WINDOW + longest]
        for number, start, end in _automaton(words).find_matches_as_indexes(window, overlapping=True):
            word = words[number]
            if not word.isascii() or (_bound(whole, at + start) and _bound(whole, at + end)):
                found.setdefault(bisect_right(starts, at + start) - 1, set()).add(word)
    return found


def _bound(text: str, at: int) -> bool:
    """What `\\b` is in ASCII."""
    return (text[at - 1] in _WORD) != (text[at] in _WORD)


@lru_cache(maxsize=16)
def _automaton(words: tuple[str, ...]) -> AhoCorasick:
    """Looks for all words of a question at once, in each of the columns."""
    return AhoCorasick(words, matchkind=MatchKind.Standard, implementation=Implementation.ContiguousNFA)


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _sharing(columns: Columns, names: Sequence[str], words: Sequence[str]) -> list[int]:
    """The rows that share a word with `words`; where more than half of the table does, or many do, those with the most
    words that not more than half of the table has."""
    coded = [columns.coded(name) for name in names]
    pattern = "|".join(map(whole_word, words))
    matched = np.zeros(columns.table.rows, np.bool_)
    for codes, values in coded:
        matched |= np.append(hits(values, pattern), False)[codes]
    rows, most = np.flatnonzero(matched), columns.table.rows // 2
    if len(rows) > min(_READ, most):
        told = np.zeros(len(rows), np.int64)
        for word in words:
            found = np.zeros(len(rows), np.bool_)
            for codes, values in coded:
                found |= np.append(hits(values, whole_word(word)), False)[codes[rows]]
            if np.count_nonzero(found) <= most:
                told += found
        rows = rows[told > 0]
        rows = rows[np.argsort(-told[told > 0], kind="stable")[:_READ]]
    return [int(row) for row in rows]


def hits(values: Values, pattern: str) -> NDArray[np.bool_]:
    """Which values have a pattern."""
    found = pc.match_substring_regex(values.array, pattern, ignore_case=True)
    return np.asarray(found, np.bool_)


def whole_word(word: str) -> str:
    """A pattern for a word that is no part of a longer one; scripts without blanks have no such bounds."""
    escaped = re.escape(word)
    return rf"\b{escaped}\b" if word.isascii() else escaped
