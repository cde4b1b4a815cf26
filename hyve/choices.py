"""How the values at one path are held, chosen by all of them, in however many runs they come (H10, H23).

Rules:
- A choice is made of what was seen so far. What comes in one run is held rightly at once. Of what comes in several, an
  early run may be held in another way than all of them ask for: `Seen.settle` tells, and the runs are read again with
  what is known then (`forced`).
- Objects are no records where their keys are data (hosts, metric names), and lists side by side may be columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import Any

from hyve.strictjson import Pairs

CONTAINERS = frozenset({dict, list, Pairs})
MAX_COLUMNS, FIXED_LIST, SHORT_LIST = 1_000, 8, 64
_MAP_KEYS, _MANY = 40, 16
_EXACT, _DIGITS = 1 << 53, 10**38
_NONE = frozenset({type(None)})
_ID_KEY = re.compile(r"\d+|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Seen:
    """What stood at one path. `several`: more runs may follow. `forced` are choices that are known beforehand."""

    def __init__(self, several: bool, forced: dict[str, Any]) -> None:
        self.several = several
        self.forced = forced
        self.taken: dict[str, Any] = {}
        self.kinds: set[type] = set()
        self.small = True
        self.wide = False
        self.objects: Objects | None = None
        self.lists: Lists | None = None
        self.tried, self.held = 0, False  # texts that were looked into for what they hold, and whether one held it

    def choose(self, what: str, choice: Any) -> Any:
        """The choice that this run follows, where what was seen so far asks for `choice`."""
        made = self.forced.get(what, choice)
        if self.several and self.taken.setdefault(what, made) != made:
            self.taken[what] = _DIFFERING
        return made

    def settle(self) -> dict[str, Any]:
        """The choices that all runs ask for, as far as not all were held so."""
        return {what: asked for what in self.taken if self.taken[what] != (asked := _ASKED[what](self))}

    def containers(self) -> bool:
        """Whether there are containers among the values: nulls beside them have no column."""
        return not self.kinds.isdisjoint(CONTAINERS)

    def add_scalars(self, values: list[Any], kinds: set[type]) -> None:
        """Takes in how large the integers are, where that may matter."""
        if int not in kinds or self.wide or not (self.several or len(kinds) > 1):
            return
        integers = values if kinds == {int} else [value for value in values if type(value) is int]
        least, most = min(integers), max(integers)
        self.small = self.small and least >= -_EXACT and most <= _EXACT
        self.wide = self.several and (least <= -_DIGITS or most >= _DIGITS)

    def scalar(self) -> Any:
        """The one type that the scalars have, or as what they are held: "number", "text", "digits" (of integers that
        are too long for numbers)."""
        kinds = self.kinds - CONTAINERS - _NONE
        if len(kinds) > 1:
            return "number" if kinds == {int, float} and self.small else "text"
        kind = next(iter(kinds), None)
        return "digits" if kind is int and self.wide else kind

    def listed(self) -> str:
        """How lists are held: "fixed" (a column a position), "column", or "child" (a table)."""
        assert self.lists is not None  # asked where there were some
        return self.lists.choice(self.kinds <= CONTAINERS | _NONE)

    def map(self, room: int = MAX_COLUMNS) -> bool:
        """See `Objects.keys_are_data`."""
        assert self.objects is not None
        return self.objects.keys_are_data(room)

    def parallel(self) -> tuple[tuple[Any, ...], ...]:
        """See `Objects.parallel`."""
        assert self.objects is not None
        return self.objects.parallel()


_DIFFERING = object()
_ASKED: dict[str, Callable[[Seen], Any]] = {
    "containers": Seen.containers,
    "scalar": Seen.scalar,
    "lists": Seen.listed,
    "map": Seen.map,
    "parallel": Seen.parallel,
}


class Lists:
    """The lists at one path."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = False  # they are the rows of their table
        self.kinds: set[type] = set()
        self.lengths: set[int] = set()
        self.refused = False  # no column can hold the items

    def add(self, values: list[list[Any]], rows: bool) -> None:
        """Takes in some lists."""
        self.count += len(values)
        self.rows = rows
        for value in values:
            self.kinds.update(map(type, value))
        self.lengths.update(map(len, values))

    def choice(self, alone: bool) -> str:
        """See `Seen.listed`. `alone`: no scalars stand at the path."""
        if not self.kinds.isdisjoint(CONTAINERS):
            return "child"
        kinds, longest = self.kinds - _NONE, max(self.lengths, default=0)
        several = len(kinds) > 1 or (self.rows and self.count > 1)
        if several and len(self.lengths) == 1 and 0 < longest <= FIXED_LIST:
            return "fixed"
        held = len(kinds) <= 1 and (self.kinds or not self.rows) and longest <= SHORT_LIST
        return "column" if held and alone and not self.refused else "child"


class Objects:
    """The objects at one path."""

    def __init__(self, several: bool) -> None:
        self.several = several
        self.count = self.filled = 0
        self.keys: dict[Any, None] = {}
        self.alike: tuple[Any, ...] | None = None  # the keys of all of them, in order
        self._kind: Any = None
        self._unread: list[list[dict[Any, Any]]] = []
        self._items, self._inner, self._listed = _Shapes(), _Shapes(), _Shapes()
        self._ungrouped: list[list[dict[Any, Any]]] = []
        self._groups: dict[Any, int] | None = None
        self._longest: dict[Any, int] = {}

    def add(self, values: list[dict[Any, Any]], distinct: dict[tuple[Any, ...], None]) -> None:
        """Takes in some objects, whose sequences of keys are `distinct`."""
        if len(distinct) == 1 and (not self.count or self.alike in distinct):
            self.alike = next(iter(distinct))
            self._ungrouped.append(values)
        else:
            self.alike = None
        self.count += len(values)
        self.filled += sum(map(len, values))
        for keys in distinct:
            self.keys.update(dict.fromkeys(keys))
        self._unread.append(values)
        if self.several:  # the values will be gone when they are asked about
            self._one_kind()
            self._group()
            for shapes in (self._items, self._inner, self._listed):
                shapes.alike()

    def keys_are_data(self, room: int) -> bool:
        """Whether the objects are maps: many keys, or keys seen once, over values of one kind; or more keys than a
        table has `room` for columns."""
        ids = are_ids(self.keys)
        if len(self.keys) < 3 and not ids:
            return False
        filled = self.filled / (self.count * len(self.keys))
        if len(self.keys) > max(room, 0) and (filled > 0.5 or len(self.keys) > 10 * MAX_COLUMNS):
            return True
        if not self._one_kind():
            return False
        if ids or self._items.alike() or self._inner.alike():
            return True
        if all(re.search(r"\d", key) for key in self.keys) and self._listed.alike():
            return True
        return len(self.keys) > _MAP_KEYS and (self.count == 1 or filled < 0.5)

    def are_many(self, most: int) -> bool:
        """Whether they have more keys than these, but for maps whatever room there is: with more keys than any table
        has columns, most of them in each."""
        wide = len(self.keys) > MAX_COLUMNS and 2 * self.filled > self.count * len(self.keys)
        return len(self.keys) > most and not wide

    def keys_of(self, values: list[dict[Any, Any]]) -> list[Any]:
        """The keys of some of them, one after the other. Each key is one object: maps may have as many as values."""
        known = dict(zip(self.keys, self.keys, strict=True))
        return [known[key] for value in values for key in value]

    def _one_kind(self) -> bool:
        """Whether all values in the objects are of one kind. Notes the shapes of those that are containers."""
        for values in self._unread:
            kind = self._kind or type(next(iter(values[0].values()), None))
            self._kind = kind
            first, all_of_them = values[0].values(), chain.from_iterable(map(dict.values, values))
            if kind is Pairs or any(type(item) is not kind for item in first) or set(map(type, all_of_them)) - {kind}:
                self._kind = _DIFFERING
            elif kind is dict:
                items = [item for value in values for item in value.values()]
                self._items.add(items)
                self._inner.add(inner for item in items for inner in item.values())
            elif kind is list:
                self._listed.add(chain.from_iterable(item for value in values for item in value.values()))
        self._unread.clear()
        return self._kind is not _DIFFERING

    def parallel(self) -> tuple[tuple[Any, ...], ...]:
        """Groups of two or more keys whose values are long scalar lists of equal length in every object."""
        if self.alike is None:
            return ()
        self._group()
        groups: dict[int, list[Any]] = {}
        for key, group in (self._groups or {}).items():
            if self._longest[key] > FIXED_LIST:
                groups.setdefault(group, []).append(key)
        return tuple(tuple(keys) for keys in groups.values() if len(keys) > 1)

    def _group(self) -> None:
        """Parts the groups of keys whose lists had equal lengths so far where they have not."""
        for values in self._ungrouped:
            self._part(values)
        self._ungrouped.clear()

    def _part(self, values: list[dict[Any, Any]]) -> None:
        known = dict.fromkeys(values[0], 0) if self._groups is None else self._groups
        parted: dict[tuple[int, tuple[int, ...]], int] = {}
        self._groups = {}
        for key, group in known.items():
            if type(values[0][key]) is not list:
                continue
            column = [value[key] for value in values]
            if any(type(item) is not list for item in column):
                continue
            lengths = tuple(map(len, column))
            if not self.several and max(lengths) <= FIXED_LIST:
                continue
            if not all(CONTAINERS.isdisjoint(map(type, item)) for item in column):
                continue
            self._groups[key] = parted.setdefault((group, lengths), len(parted))
            self._longest[key] = max(self._longest.get(key, 0), *lengths)


def are_ids(keys: Collection[str]) -> bool:
    """Whether all of some keys are ids, which makes data of them."""
    return bool(keys) and all(map(_ID_KEY.fullmatch, keys))


class _Shapes:
    """The shapes of records, which are looked at when they are asked for."""

    def __init__(self) -> None:
        self.count = 0
        self.objects = True
        self.shapes: set[frozenset[Any]] = set()
        self.unread: list[Iterable[Any]] = []

    def add(self, records: Iterable[Any]) -> None:
        self.unread.append(records)

    def alike(self) -> bool:
        """Whether three or more objects share at least two keys and most of all there are; of many, a third will do."""
        for records in self.unread:
            listed = list(records) if self.objects else []
            self.count += len(listed)
            self.objects = self.objects and all(type(record) is dict for record in listed)
            if self.objects:
                self.shapes.update(map(frozenset, listed))
        self.unread.clear()
        if self.count < 3 or not self.objects:
            return False
        common, every = frozenset.intersection(*self.shapes), frozenset.union(*self.shapes)
        if self.count >= _MANY and common:
            return len(common) * 3 >= len(every) > 1
        return len(common) > 1 and len(common) * 5 >= len(every) * 3
