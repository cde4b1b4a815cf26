"""Lists of records -> fields: which lists are tables, and of what columns (for `hyve.notation`).

Rules:
- Records are objects, or lists of one length. A list is a table where at least three of four elements are records whose
  keys can stand in one order, and where at least half of the cells are filled; the other elements are `others`.
- An object under a key becomes a group of columns by the same rules, a list of records a table of its own, over the
  elements of all its lists. Objects that come again and again whole stay whole, for a code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import NoneType
from typing import Any

from hyve.codecs import ABSENT, SCALARS, Absent

_MOST_FOREIGN = 64
"""Keys that the most frequent kind of record lacks, and that the table may still have a column for."""

_WIDEST = 64
"""Longer lists of one length are rows of a matrix, not records."""

_LEAST_ACROSS = 20
"""Tables of so many fields, and half as many records or less, have a line per field."""

_TUPLES, _LONGEST_TUPLE = 4, 4
"""So many lists of one length, up to this one, are taken for tuples."""


@dataclass
class Field:
    """A field of records: its values, ABSENT where a record has none.

    `fields` are the columns of a group: objects, tuples (`listed`), or lists that hold one object each (`single`);
    `records` is what the lists hold together; `others` are the values (by place) that are no such group or list.
    """

    key: str
    values: list[Any]
    fields: list[Field] = field(default_factory=list)
    records: Records | None = None
    others: dict[int, Any] = field(default_factory=dict)
    listed: bool = False
    single: bool = False

    def alike(self) -> bool:
        """Whether all records have the same list."""
        return len(self.values) > 1 and all(repr(value) == repr(self.values[0]) for value in self.values)

    def places(self) -> list[int]:
        """The place of each listed record in its own list."""
        return [
            place
            for i, value in enumerate(self.values)
            if type(value) is list and i not in self.others
            for place in range(len(value))
        ]


@dataclass
class Records:
    """Elements of a list as records of `fields`; `others` are those (by place) that are no such record.

    `listed`: they are lists; `keys`: the field that holds the keys of the object whose members they are.
    """

    count: int
    fields: list[Field]
    others: dict[int, Any]
    listed: bool = False
    keys: Field | None = None

    def longest(self) -> Field | None:
        """The field of lists that deserve lines of their own: the one that holds most, two or more a list."""
        best, most = None, 1
        for one in _reachable(self.fields):
            if one.records is not None:
                lists = sum(1 for value in one.values if type(value) is list and value)
                if one.records.count > most and one.records.count >= 2 * lists and not one.alike():
                    best, most = one, one.records.count
        return best

    def wide(self) -> bool:
        """Whether there are so many fields, and so few records, that rows of cells would be hard to read."""
        if self.others:
            return False
        width = sum(1 for one in _reachable(self.fields) if not one.fields)
        return width >= max(_LEAST_ACROSS, 2 * self.count)


def _reachable(fields: Iterable[Field]) -> Iterable[Field]:
    for one in fields:
        yield one
        if not one.others:
            yield from _reachable(one.fields)


def records(elements: Sequence[Any], codes: bool) -> Records | None:
    """`elements` as records, or None where they are no table. `codes`: whether objects may stay whole for a code."""
    kinds = Counter(map(type, elements))
    if kinds[dict] * 4 >= len(elements) * 3:
        return _objects(elements, codes)
    if kinds[list] * 4 >= len(elements) * 3:
        return _tuples(elements, codes)
    return None


def _objects(elements: Sequence[Any], codes: bool) -> Records | None:
    order, fitting = _order([element for element in elements if type(element) is dict])
    others = {i: e for i, e in enumerate(elements) if type(e) is not dict or tuple(e) not in fitting}
    if not order or len(others) * 4 > len(elements):
        return None
    regular = [element for i, element in enumerate(elements) if i not in others] if others else elements
    fields = [_field(key, [record.get(key, ABSENT) for record in regular], codes) for key in order]
    return Records(len(elements), fields, others)


def _tuples(elements: Sequence[Any], codes: bool) -> Records | None:
    ((width, _),) = Counter(len(element) for element in elements if type(element) is list).most_common(1)
    others = {i: e for i, e in enumerate(elements) if type(e) is not list or len(e) != width}
    if not 2 <= width <= _WIDEST or len(others) * 4 > len(elements):
        return None
    regular = [element for i, element in enumerate(elements) if i not in others] if others else elements
    fields = [_field(str(i), list(column), codes) for i, column in enumerate(zip(*regular, strict=True))]
    return Records(len(elements), fields, others, listed=True)


def _order(objects: Sequence[dict[str, Any]]) -> tuple[list[str], set[tuple[str, ...]]]:
    """(keys in an order that fits most objects, the key sequences that fit it); no keys where there is no such one."""
    shapes = Counter(map(tuple, objects))
    (first, _), *rest = shapes.most_common()
    order = list(first)
    place = {key: i for i, key in enumerate(order)}
    foreign = 0
    for shape, _ in rest:
        behind = -1
        for key in shape:
            if key in place:
                behind = place[key]
            elif foreign < _MOST_FOREIGN:
                foreign += 1
                behind += 1
                order.insert(behind, key)
                place = {key: i for i, key in enumerate(order)}
    fitting = {shape for shape in shapes if _fits(shape, place)}
    if foreign:
        met = {key for shape in fitting for key in shape}
        order = [key for key in order if key in met]
    filled = sum(len(shape) * shapes[shape] for shape in fitting)
    cells = len(order) * sum(shapes[shape] for shape in fitting)
    return (order, fitting) if 2 * filled >= cells else ([], set())


def _fits(shape: tuple[str, ...], place: dict[str, int]) -> bool:
    places = [place.get(key, -1) for key in shape]
    return -1 not in places and all(a < b for a, b in pairwise(places))


def _field(key: str, values: list[Any], codes: bool) -> Field:
    kinds = set(map(type, values))
    if kinds <= SCALARS:
        return Field(key, values)
    if dict in kinds and len(values) > 1:
        return _group(key, values, codes) or Field(key, values)
    if kinds == {list} and len(values) >= _TUPLES and (found := _fixed(key, values, codes)):
        return found
    if list in kinds:
        return _listing(key, values, codes) or Field(key, values)
    return Field(key, values)


def _group(key: str, values: list[Any], codes: bool) -> Field | None:
    objects = [value for value in values if type(value) is dict and value]
    if not objects or (codes and _repeated(values)):
        return None
    order, fitting = _order(objects)
    others = {
        i: value
        for i, value in enumerate(values)
        if value is not ABSENT and (type(value) is not dict or tuple(value) not in fitting)
    }
    if not order or len(others) * 4 > len(values):
        return None
    present = [{} if value is ABSENT or i in others else value for i, value in enumerate(values)]
    fields = [_field(name, [value.get(name, ABSENT) for value in present], codes) for name in order]
    return Field(key, values, fields, others=others)


def _fixed(key: str, values: list[list[Any]], codes: bool) -> Field | None:
    """Lists that all have the same few places, none of them a container: a group of columns."""
    width = len(values[0])
    if not 2 <= width <= _LONGEST_TUPLE or any(len(value) != width for value in values):
        return None
    columns = [list(column) for column in zip(*values, strict=True)]
    if any(type(item) not in SCALARS for column in columns for item in column):
        return None
    fields = [_field(str(i), column, codes) for i, column in enumerate(columns)]
    return Field(key, values, fields, listed=True)


def _listing(key: str, values: list[Any], codes: bool) -> Field | None:
    lists = [value for value in values if type(value) is list]
    elements = [element for value in lists for element in value]
    if len(elements) < 2 or set(map(type, elements)) <= SCALARS:
        return None
    if len(elements) == len(lists) and all(map(len, lists)):
        alone = [
            value[0] if type(value) is list and type(value[0]) is dict else ABSENT if value is ABSENT else _Other(value)
            for value in values
        ]
        group = _group(key, alone, codes)
        if group is not None:
            others = {i: values[i] for i in group.others}
            return Field(key, values, group.fields, others=others, single=True)
    others = {i: value for i, value in enumerate(values) if type(value) not in (list, NoneType, Absent)}
    found = records(elements, codes) if len(others) * 4 <= len(values) else None
    return Field(key, values, records=found, others=others) if found else None


@dataclass(frozen=True)
class _Other:
    """What stands where a list of one object was looked for."""

    value: Any


def _repeated(values: list[Any]) -> bool:
    """Whether few objects make up all of `values`, each of them long and met often."""
    if len(values) < 8:
        return False
    texts = Counter(map(repr, values))
    return 1 < len(texts) <= min(26, len(values) // 4) and sum(map(len, texts)) > 100 * len(texts)
