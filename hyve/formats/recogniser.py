"""What a format gives to the register of formats: whom it may be asked about, and what it found.

Rules:
- A recogniser names the keys that its objects can't lack, so that the objects of a large list are told apart by their
  keys alone, once for each set of keys, and no recogniser is called for most of them.
- A stream format reads its records together, in order: a record alone is only a piece, or lacks what an earlier one
  said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hyve.formats.scalars import Relations

Needs = tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Found:
    """Rows by relation name, and what had to be done to get them (`rejoined_partial_lines`)."""

    relations: Relations
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recogniser:
    """Called with a value: its relations, or None. Asked only about an object with all keys of one of `needs`, and
    about a list whose first item is such an object, or one with all keys of one of `listed`."""

    read: Callable[[Any], Relations | None]
    needs: Needs
    listed: Needs = ()

    def __call__(self, value: Any) -> Relations | None:
        return self.read(value)


@dataclass(frozen=True)
class Stream:
    """A format of many records: `belongs` says whether an object is one of them, `read` takes all of them in order."""

    belongs: Callable[[dict[str, Any]], bool]
    read: Callable[[Sequence[dict[str, Any]]], Found]
    needs: Needs


def needs(*alternatives: str, listed: Sequence[str] = ()) -> Callable[[Callable[[Any], Relations | None]], Recogniser]:
    """Makes a recogniser of a function. Each alternative is the keys, with blanks between, that must all be there."""

    def decorate(read: Callable[[Any], Relations | None]) -> Recogniser:
        return Recogniser(read, keys(*alternatives), keys(*listed))

    return decorate


def keys(*alternatives: str) -> Needs:
    """The alternatives as sets of keys."""
    return tuple(frozenset(alternative.split()) for alternative in alternatives)
