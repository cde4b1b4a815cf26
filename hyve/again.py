"""Ways to read a document that was found in a text, by which it is read again: of very many no value is held.

Rules:
- A way gives the same value for the same text, each time. What needed more of the text than the document's own to be
  read (a list that its end cuts, one with flaws in it) has no way.
- Many documents are read at once where all of them can be said in strict JSON: one call takes a good part of the time
  that a short document takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hyve import lenient, literals, strictjson
from hyve.alike import Alike
from hyve.errors import InputError
from hyve.strictjson import Decoder

_FEW = 32
"""Documents that are read at once where one of many can't be."""


@dataclass(frozen=True, eq=False)
class Way:
    """`read` gives the value of a document's text, or None, first in a tuple; `plain` strict JSON of the same value, or
    None where that takes a closer look."""

    read: Callable[[str], tuple[Any, ...] | None]
    plain: Callable[[str], str | None] = lambda source: None

    def alike(self) -> Alike[None]:
        """Reads many such documents, of which those that look alike are read once."""
        return Alike(lambda source: (self.value(source), None))

    def value(self, source: str) -> Any:
        """The value of a document that was read this way before. Raises InputError if there is no room for it now."""
        found = self.read(source)
        if found is None:  # what was read with more memory, or on a lower stack
            raise InputError(f"no room to read a document of {len(source):,} characters again: ask with less data")
        return found[0]


STRICT = Way(strictjson.read, lambda source: source)
CONTROLS = Way(lambda source: (Decoder(strict=False).decode(source),))
LITERAL = Way(literals.read_literal, literals.as_json)
LENIENT = Way(lenient.read_lenient, lenient.as_json)
INSIDE = Way(lambda source: lenient.read_lenient(source, quotes_inside=True))


def values(documents: Sequence[tuple[Way, str]]) -> list[Any]:
    """The values of documents, each with its way."""
    plain = [way.plain(source) for way, source in documents]
    found = _at_once(plain)
    if found is not None:
        return found
    read: list[Any] = []
    alike = {way: way.alike() for way in dict.fromkeys(way for way, _ in documents)}
    for first in range(0, len(documents), _FEW):
        few = slice(first, first + _FEW)
        found = _at_once(plain[few]) if len(documents) > _FEW else None
        if found is None:
            found = [alike[way].read(source)[0] for way, source in documents[few]]
        read += found
    return read


def is_quick(way: Way, source: str) -> bool:
    """Whether a document can be said in strict JSON, which is read some ten times as quickly as anything else."""
    return way is STRICT or _at_once([way.plain(source)]) is not None


def _at_once(plain: Sequence[str | None]) -> list[Any] | None:
    sources = [source for source in plain if source is not None]
    return strictjson.at_once(sources) if len(sources) == len(plain) else None
