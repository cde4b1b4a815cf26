"""The newest keys of an endless stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Recent(Generic[K]):
    """The newest `most` keys that were added, each with a note; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        self._keys: OrderedDict[K, str] = OrderedDict()
        self._most = most

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def note(self, key: K) -> str:
        """What was noted of `key` when it was added last; "" where it is forgotten."""
        return self._keys.get(key, "")

    def add(self, key: K, note: str = "") -> None:
        """Makes `key` the newest."""
        self._keys[key] = note
        self._keys.move_to_end(key)
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)
