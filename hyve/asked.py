"""The rows of a table that a question asks for: those that share words, numbers or times with it, by BM25 (H17, H19).

Rows that share no word with the question score nothing and are not read, and words that most rows have choose none.
Where a table has a name that the question spells (`web-7`), what that name is made of (`web`) asks for no row; a row of
what the question excludes is not asked for, unless it has such a name, too. Of rows that have the same of a question's
words those that are evenly spread over the table come first, of each of its names in turn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
from numpy.typing import NDArray

from hyve import rank
from hyve.columns import Columns, Values, spread
from hyve.profile import ENTITIES, ColumnView, Profile, entity_rank, free_text, numeric, structural, told
from hyve.question import DAY, Instant, Question

_CHARACTERS = 2_000
"""So many characters of a row are scored."""
_FEW, _MANY = 8, 16
"""So few rows are told by how many of the words they have; of a row of so many texts, those with a word come first."""
_READ, _BEST = 1_000, 60
"""So many of the rows that share words with the question are scored, and so many are told."""
_VALUES, _ENTITIES = 20_000, 4
"""Columns of more values name no entities of which several rows are looked for; so many are told."""
_NEAR = 600 * 10**9
"""Nanoseconds from a time that no row has to the nearest one that is told instead."""
_WINDOW = 1 << 16
"""Characters that are looked through at once: each place of each word takes memory."""


def asked(found: Profile, question: Question) -> list[tuple[int, list[int]]]:
    """(row, the columns that have most of the words) of the rows that `question` asks for, best first."""
    columns, table = found.columns, found.table
    names = ["text"]
    if not free_text(table):
        names = [c.name for c in table.columns if c.type.startswith("VARCHAR") and not structural(c)]
    known = _known(columns, names, [name for name, _ in question.names])
    question = question.exactly(known)
    words = question.words
    if not table.rows or not ((names and words) or question.numbers or question.times):
        return []
    valued = _valued(columns, question)
    sharing = _sharing_of_few if columns.short else _sharing
    rows = list(dict.fromkeys([*_most_valued(valued), *(sharing(columns, names, words) if names and words else ())]))
    cells = [columns.cells(name, rows) for name in names]
    read: dict[str, list[str]] = {}

    def said(cell: str) -> list[str]:
        if cell not in read:
            read[cell] = rank.words(cell[:_CHARACTERS])
        return read[cell]

    corpus: list[list[str]] = []
    for number, row in enumerate(rows):
        texts = [cell for column in cells if (cell := column[number]) is not None]
        if sum(map(len, texts)) + len(texts) > _CHARACTERS:
            if len(texts) > _MANY:
                texts.sort(key=lambda text: not any(word in text.lower() for word in words))
            document = rank.words(" ".join(texts)[:_CHARACTERS])
        else:
            document = [word for text in texts for word in said(text)]
        corpus.append(document + [word for word, _, has in valued if has[row]])
    if question.excluded:
        kept = [i for i, has in enumerate(corpus) if question.excluded.isdisjoint(has) or not known.isdisjoint(has)]
        rows, corpus = [rows[i] for i in kept], [corpus[i] for i in kept]
        cells = [[column[i] for i in kept] for column in cells]
    query = dict.fromkeys([*words, *(word for word, _, _ in valued)])
    if len(rows) <= _FEW:  # BM25 may give less than 0 to what they have in common
        scores = [float(len(query.keys() & document)) for document in corpus]
    else:
        scores = rank.bm25(list(query), corpus)
    best = _best(rows, scores, [query.keys() & document for document in corpus] if known else [], known)
    places = _places(found)
    wanted = set(words)
    result = []
    for i in best:
        found_in = Counter(places[name] for _, name, has in valued if has[rows[i]] and name in places)
        for name, column in zip(names, cells, strict=True):
            if column[i] and name in places:
                found_in[places[name]] += len(wanted.intersection(said(column[i])))
        most = max(found_in.values(), default=0)
        result.append((rows[i], sorted(c for c, count in found_in.items() if count == most > 0)[:2]))
    return result


def _best(rows: Sequence[int], scores: Sequence[float], having: Sequence[set[str]], known: set[str]) -> list[int]:
    """The places of the best of some rows. `having` are the words of each where the table has names that the question
    spells: it asks for all that is said of these, however long it is, and for one as much as for another."""
    alike: dict[Any, list[int]] = {}
    for place, score in enumerate(scores):
        words = having[place] if having else set()
        alike.setdefault((frozenset(words - known), bool(words & known)) if having else score, []).append(place)
    groups = sorted(alike.values(), key=lambda places: -max(scores[place] for place in places))
    best: list[int] = []
    for places in groups:
        places.sort(key=rows.__getitem__)
        by_name: dict[frozenset[str], list[int]] = {}
        for place in places:
            by_name.setdefault(frozenset(having[place] & known) if having else frozenset(), []).append(place)
        best += in_turns([spread(np.array(some), _BEST) if len(some) > 1 else some for some in by_name.values()])
        if len(best) >= _BEST:
            break
    return best[:_BEST]


def in_turns(lists: Sequence[Sequence[int]]) -> list[int]:
    """The first ones of some lists, then the second ones, and so on."""
    return [one for some in zip_longest(*lists) for one in some if one is not None]


@dataclass(frozen=True)
class Named:
    """An entity that a question names: the view of the column and its value, and the rows of it."""

    view: ColumnView
    value: str
    rows: NDArray[np.int64]


def named(found: Profile, question: Question) -> list[Named]:
    """The entities that `question` names and that have several rows, in the order of the columns."""
    wanted = {name for name, _ in question.names}
    if free_text(found.table) or not question.own:
        return []
    entities: dict[str, Named] = {}
    for view in found.views:
        about = entity_rank(view) < len(ENTITIES) or not rank.name_words(view.column.name).isdisjoint(question.own)
        words = question.own if about else wanted
        repeats = 1 < view.distinct <= min(_VALUES, view.rows // 2) and (not view.same or view.spelled)
        if view.numbered:
            called = rank.name_words(view.column.name)
            words = frozenset(
                str(int(number)) for word, number in question.numbered if not called.isdisjoint(rank.words(word))
            )
        if (
            not words
            or not repeats
            or not (view.numbered or view.column.type == "VARCHAR")
            or view.column.name == "template"
        ):
            continue
        codes, values = found.columns.coded(view.column.name)
        for code, value in enumerate(map(str, values.shown())):
            name = value.lower()
            if name in words and name not in entities and len(rows := np.flatnonzero(codes == code)) > 1:
                entities[name] = Named(view, value, rows)
    made_of = frozenset[str]().union(*(pieces for name, pieces in question.names if name in entities))
    return [entity for name, entity in entities.items() if name not in made_of][:_ENTITIES]


def _places(found: Profile) -> dict[str, int]:
    """The view that tells each column: its own, that of its numbers or times, or of the column that is the same."""
    places = {view.column.name: i for i, view in enumerate(found.views)}
    for column in found.table.columns:
        if column.typed and column.name in places:
            places.setdefault(column.typed, places[column.name])
    same = {view.column.name: view.same for view in found.views if view.same}
    return {name: places[same[name]] if name in same else place for name, place in places.items()}


def _known(columns: Columns, texts: Sequence[str], names: Sequence[str]) -> set[str]:
    """Those of some names that the texts of a table have as a word of their own."""
    known: set[str] = set()
    for text in texts if names else ():
        values = columns.coded(text)[1]
        if hits(values, "|".join(map(_as_it_is, names))).any():
            known.update(name for name in names if name not in known and hits(values, _as_it_is(name)).any())
    return known


def _as_it_is(name: str) -> str:
    """A pattern for a name that is no part of a longer one: `web-7` is none of `web-70`, `web-7-0` or `my-web-7`."""
    return rf"(^|[^\w.:/-]){re.escape(name)}([.:]?$|[.:]?[^\w.:/-])"


_Valued = list[tuple[str, str, NDArray[np.bool_]]]
"""(a number or time, a column, which rows have it there)."""


def _valued(columns: Columns, question: Question) -> _Valued:
    """Where numbers and times of the question stand in columns of numbers and times; what most rows have tells none."""
    found: _Valued = []
    most = columns.table.rows // 2
    for column in told(columns.table) if question.numbers or question.times else ():
        if numeric(column) and not column.typed and question.numbers:
            array = columns.array(column.name)
            for number in question.numbers:
                if (has := _equal(array, number)) is not None:
                    found.append((number, column.name, has))
        elif "TIMESTAMP" in column.type and question.times:
            array = columns.array(column.name)
            there = np.asarray(array.is_valid(), np.bool_)
            instants = array.drop_null().cast(pa.int64()).to_numpy()
            for instant in question.times:
                has = there.copy()
                has[there] = _near(instants, instant)
                found.append((str(instant), column.name, has))
    return [(word, name, has) for word, name, has in found if 0 < np.count_nonzero(has) <= max(1, most)]


def _most_valued(valued: _Valued) -> list[int]:
    """The rows that have most of the numbers and times."""
    if not valued:
        return []
    count: NDArray[np.int64] = np.add.reduce([has for _, _, has in valued], dtype=np.int64)
    rows = np.flatnonzero(count)
    rows = rows[spread(len(rows), len(rows))] if len(rows) > _READ else rows
    return [int(row) for row in rows[np.argsort(-count[rows], kind="stable")[:_READ]]]


def _equal(array: pa.Array[Any], number: str) -> NDArray[np.bool_] | None:
    """Which values of a numeric column are `number`; None where none can be."""
    try:
        wanted = pa.scalar(float(number) if pa.types.is_floating(array.type) else int(number), array.type)
    except (ValueError, OverflowError):  # it is no whole number, or beyond the column's type
        return None
    same: pa.Array[Any] = pc.equal(array, wanted)
    return np.asarray(same.fill_null(False), np.bool_)


def _near(instants: NDArray[np.int64], wanted: Instant) -> NDArray[np.bool_]:
    """Which times are the one wanted; where none is, the nearest one if it is near."""
    at = instants % DAY if wanted.daily else instants
    away = at - np.int64(wanted.at)
    within: NDArray[np.bool_] = (away >= 0) & (away < wanted.length)
    if within.any() or not len(instants):
        return within
    distance = np.abs(away)
    nearest: NDArray[np.bool_] = (distance == distance.min()) & (distance <= _NEAR)
    return nearest


def _sharing_of_few(columns: Columns, names: Sequence[str], words: Sequence[str]) -> list[int]:
    """The same as `_sharing` in columns that are short: a pattern takes longer to be read than they do."""
    having: dict[int, set[str]] = {}
    coded = [columns.coded(name) for name in names]
    said = words_in(list(chain.from_iterable(values.shown() for _, values in coded)), tuple(words))
    first = 0
    for codes, values in coded if said else ():
        of_codes = {code: said[first + code] for code in range(len(values)) if first + code in said}
        for row, code in enumerate(codes.tolist()) if of_codes else ():
            if code in of_codes:
                having.setdefault(row, set()).update(of_codes[code])
        first += len(values)
    rows = sorted(having)
    most = columns.table.rows // 2
    if len(rows) <= most:
        return rows
    counts = Counter(word for row in rows for word in having[row])
    common = {word for word, count in counts.items() if count > most}
    return sorted((row for row in rows if having[row] - common), key=lambda row: -len(having[row] - common))


def words_in(texts: Sequence[str], words: tuple[str, ...]) -> dict[int, set[str]]:
    """By the number of a text, the words (in lower case) that it has as `whole_word`'s pattern finds them."""
    found: dict[int, set[str]] = {}
    starts: list[int] = []
    joined = "\n".join(["", *texts, ""])
    whole = joined.lower()
    if len(whole) != len(joined):  # some characters are two in lower case
        texts = list(map(str.lower, texts))
        whole = "\n".join(["", *texts, ""])
    longest = max(map(len, words))
    bounded = list(map(str.isascii, words))
    for at in range(0, len(whole), _WINDOW):
        window = whole[at : at + _WINDOW + longest]
        for number, start, end in _automaton(words).find_matches_as_indexes(window, overlapping=True):
            start, end = at + start, at + end
            if bounded[number] and (  # there is no `\b` of ASCII before it, or none behind it
                (whole[start - 1] in _WORD) == (whole[start] in _WORD)
                or (whole[end - 1] in _WORD) == (whole[end] in _WORD)
            ):
                continue
            starts = starts or list(accumulate(map((1).__add__, map(len, texts)), initial=1))
            found.setdefault(bisect_right(starts, start) - 1, set()).add(words[number])
    return found


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
        having = np.zeros(len(rows), np.int64)
        for word in words:
            found = np.zeros(len(rows), np.bool_)
            for codes, values in coded:
                found |= np.append(hits(values, whole_word(word)), False)[codes[rows]]
            if np.count_nonzero(found) <= most:
                having += found
        some = np.flatnonzero(having)
        some = some[spread(len(some), len(some))]
        rows = rows[some[np.argsort(-having[some], kind="stable")[:_READ]]]
    return [int(row) for row in rows]


def hits(values: Values, pattern: str) -> NDArray[np.bool_]:
    """Which values have a pattern."""
    found = pc.match_substring_regex(values.array, pattern, ignore_case=True)
    return np.asarray(found, np.bool_)


def whole_word(word: str) -> str:
    """A pattern for a word that is no part of a longer one; scripts without blanks have no such bounds."""
    escaped = re.escape(word)
    return rf"\b{escaped}\b" if word.isascii() else escaped
