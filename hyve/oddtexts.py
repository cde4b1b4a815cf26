"""Texts that are odd among others of one form: ids with other characters, numbers far out of those in the same place.

Both read the bytes of all texts at once: patterns would take longer than all else that is said of a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hyve.rank import runs, surprise, surprise_beside

_MANY = 200
"""Of so many ids at most one is odd."""
_MARKS = (4, 5, 6)
"""The kinds of characters, by their bits, that part what an id is made of."""
_FORM = 50
"""So many texts of a form have numbers that others may be far out of."""
_NUMBERS, _DIGITS = 8, 15
"""So many numbers of a text are looked at, of so many digits."""
_ABOVE, _BEHIND, _FEW = 20, 10, 3
"""A number far out is so many times the mean of the others, and the next one; there are only a few of them."""

_BYTES = 32 << 20
"""Of more bytes of texts, numbers, which take some times as much, are not looked for; ids are in four times as many."""

_CLASSES = np.zeros(256, np.uint8)
for _bit, _characters in enumerate(
    (b"GHIJKLMNOPQRSTUVWXYZ", b"ghijklmnopqrstuvwxyz", b"ABCDEF", b"abcdef", b"-", b"_")
):
    _CLASSES[np.frombuffer(_characters, np.uint8)] = 1 << _bit
_CLASSES[(_CLASSES == 0) & ~np.isin(np.arange(256), np.frombuffer(b"0123456789", np.uint8))] = 1 << 6

_WITHIN = np.zeros(256, np.bool_)
_WITHIN[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/-", np.uint8)] = True
_WITHIN[128:] = True
"""Bytes behind which digits are part of a word, a fraction, a time or an address."""


def _bytes(texts: pa.Array[Any], most: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
    """(the bytes of all texts, where each begins and the last one ends); None where
    they are more than `most` bytes."""
    if texts.type != pa.string() or texts.null_count or texts.nbytes > most:
        return None
    buffers: list[Any] = texts.buffers()
    _, offsets, data = buffers
    if offsets is None or data is None:
        return None
    edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8)[edges[0] : edges[-1]], edges - edges[0]


def odd_characters(texts: pa.Array[Any]) -> NDArray[np.float64] | None:
    """The surprise of each of distinct ids that it has characters of a kind that hardly any other has (letters that are
    no hexadecimal digits, capitals, hyphens, underscores, others), lacks marks that nearly all others have, or is not
    as long as these; None where none is odd."""
    read = _bytes(texts, 4 * _BYTES) if len(texts) >= _MANY else None
    if read is None:
        return None
    data, edges = read
    kinds = np.bitwise_or.reduceat(np.append(_CLASSES[data], np.uint8(0)), edges[:-1])
    kinds[edges[1:] == edges[:-1]] = 0
    lengths = np.diff(edges)
    forms = [(kinds & (1 << bit)) > 0 for bit in range(7)]
    # An id may lack any kind of letters by chance, but the marks that part it are in all.
    forms += [~forms[bit] for bit in _MARKS]
    forms.append(lengths != np.sort(lengths)[len(lengths) // 2])
    counted = [(form, int(np.count_nonzero(form))) for form in forms]
    # An id that is odd in several ways is no less odd.
    odd = {form.tobytes(): (form, count) for form, count in counted if 0 < count * _MANY <= len(texts)}
    scores = np.zeros(len(texts))
    for form, count in odd.values():
        found = surprise_beside(len(texts), count, (count for _, count in odd.values()))
        scores = np.maximum(scores, np.where(form, found, 0.0))
    return scores if odd else None


def far_numbers(texts: pa.Array[Any], kinds: NDArray[np.integer[Any]]) -> NDArray[np.float64] | None:
    """The surprise of each of distinct texts that a number in it is far above those in the same place of texts of its
    kind: `93000ms` among `10ms`; None where none is."""
    read = _bytes(texts, _BYTES) if len(texts) >= _FORM else None
    if read is None:
        return None
    data, edges = read
    sizes = np.bincount(kinds)
    common = np.flatnonzero(sizes >= _FORM)
    if not len(common):
        return None
    digit = (data >= 48) & (data <= 57)
    begins = digit.copy()
    begins[1:] &= ~_WITHIN[data[:-1]]
    first = edges[:-1][edges[:-1] < len(data)]
    begins[first] = digit[first]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return None
    owners = np.searchsorted(edges, starts, side="right") - 1
    places = np.arange(len(starts)) - np.searchsorted(owners, owners)
    numbered = np.full(len(sizes), -1)
    numbered[common] = np.arange(len(common))
    forms = numbered[kinds[owners]]
    used = np.flatnonzero((forms >= 0) & (places < _NUMBERS))
    starts, owners, ends = starts[used], owners[used], edges[owners[used] + 1]
    values, going, digits = np.zeros(len(starts)), np.arange(len(starts)), np.zeros(len(starts), np.int64)
    for place in range(_DIGITS + 1):
        at = starts[going] + place
        going = going[(at < ends[going]) & digit[np.minimum(at, len(data) - 1)]]
        if not len(going):
            break
        values[going] = values[going] * 10 + (data[starts[going] + place] - 48)
        digits[going] += 1
    groups = np.where(digits <= _DIGITS, forms[used] * _NUMBERS + places[used], -1)
    order = np.argsort(groups.astype(np.int32), kind="stable")
    order = order[np.searchsorted(groups[order], 0) :]
    if not len(order):
        return None
    values, owners, groups = values[order], owners[order], groups[order]
    begin, counts = runs(groups)
    largest = np.maximum.reduceat(values, begin)
    means = (np.add.reduceat(values, begin) - largest) / np.maximum(counts - 1, 1)
    scores = np.zeros(len(texts))
    for group in np.flatnonzero((counts >= _FORM) & (largest > _ABOVE * np.maximum(means, 1.0))).tolist():
        part = slice(begin[group], begin[group] + counts[group])
        top = np.argsort(-values[part], kind="stable")[: _FEW + 1]
        high = values[part][top]
        far = next((i for i in range(1, len(high)) if high[i - 1] >= _BEHIND * max(1.0, float(high[i]))), 0)
        whose = owners[part][top[:far]]
        scores[whose] = np.maximum(scores[whose], surprise(int(counts[group]), 2, max(1, far)))
    return scores if scores.any() else None
