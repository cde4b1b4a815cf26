"""Objects that are no records: maps whose keys are data, and lists side by side that are columns (H10, H23)."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

from hyve.strictjson import Pairs

CONTAINERS = frozenset({dict, list, Pairs})
MAX_COLUMNS, FIXED_LIST = 1_000, 8
_MAP_KEYS, _MANY = 40, 16


def keys_are_data(values: list[dict[Any, Any]], distinct: dict[tuple[Any, ...], None], room: int) -> bool:
    """Whether the objects are maps: many keys, or keys seen once, over values of one kind; or more keys than a table
    has `room` for columns."""
    union = dict.fromkeys(key for keys in distinct for key in keys)
    ids = bool(union) and all(map(_ID_KEY.fullmatch, union))
    if len(union) < 3 and not ids:
        return False
    filled = sum(map(len, values)) / (len(values) * len(union))
    if len(union) > max(room, 0) and (filled > 0.5 or len(union) > 10 * MAX_COLUMNS):
        return True
    kind = type(next(iter(values[0].values()), None))
    if not all(type(item) is kind for value in values for item in value.values()) or kind is Pairs:
        return False
    items = [item for value in values for item in value.values()]
    if ids:
        return True
    if kind is dict and (_alike(items) or _alike([inner for item in items for inner in item.values()])):
        return True
    if kind is list and all(re.search(r"\d", key) for key in union) and _alike(list(chain.from_iterable(items))):
        return True
    return len(union) > _MAP_KEYS and (len(values) == 1 or filled < 0.5)


_ID_KEY = re.compile(r"\d+|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _alike(records: list[Any]) -> bool:
    """Whether three or more objects share at least two keys and most of all there are; of many, a third will do."""
    if len(records) < 3 or any(type(record) is not dict for record in records):
        return False
    shapes = {frozenset(record) for record in records}
    common, every = frozenset.intersection(*shapes), frozenset.union(*shapes)
    if len(records) >= _MANY and common:
        return len(common) * 3 >= len(every) > 1
    return len(common) > 1 and len(common) * 5 >= len(every) * 3


def parallel_lists(values: list[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Groups of two or more keys whose values are long scalar lists of equal length in every object."""
    groups: dict[tuple[int, ...], list[Any]] = {}
    for key in values[0] if values else ():
        column = [value[key] for value in values]
        if any(type(item) is not list for item in column):
            continue
        lengths = tuple(map(len, column))
        if max(lengths) > FIXED_LIST and all(CONTAINERS.isdisjoint(map(type, item)) for item in column):
            groups.setdefault(lengths, []).append(key)
    return {keys[0]: keys for keys in groups.values() if len(keys) > 1}
