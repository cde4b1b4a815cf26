"""One reading for all documents that differ in nothing but their words and numbers, as those in a log's lines do.

Rules:
- To a reader of near-JSON all words are the same but for the few that it knows (`_KNOWN`), and so are all plain whole
  numbers. So a document is read once with stand-ins for them, the same one for the same word, and what was read gets
  the words of each document that looks like it.
- Only what comes back as it went in is shared: objects, lists and scalars of JSON in short documents of plain ASCII
  without escapes. Anything else, and the first document of each kind, is read by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from hyve.strictjson import Pairs

T = TypeVar("T")
"""What is said of documents, such as how to read them again."""

_LONGEST, _MOST_WORDS, _KINDS = 512, 64, 1024
"""Characters and words of a document whose reading is shared; how many kinds of documents are remembered."""
_PLAIN = re.compile(r"""[\w\s{}\[\],:"'.+-]++""", re.ASCII)
_KNOWN = "true|false|null|none|nan|nat|nil|inf|undefined|ellipsis|function|return"
# Neither known words nor prefixes of strings, nor what may be a part of a number or of a longer name. A repair counts
# one character otherwise than more.
_WORD = re.compile(rf"(?<![\w.+-])(?!(?i:{_KNOWN})|[BFRUbfru]{{2}}\b|[eE][eE_\d]*+\b)[A-Za-z]\w++(?![.+-])", re.ASCII)
_NUMBER = re.compile(r"(?<![\w.+-])[1-9]\d{1,14}+(?![\w.+-])", re.ASCII)
_EITHER = re.compile(rf"{_WORD.pattern}|{_NUMBER.pattern}", re.ASCII)
_SIGN, _ANY_WORD = re.compile("[.+-]"), re.compile(r"\w+", re.ASCII)
_WORDS, _NUMBERS = "zqj", "98765"  # what the stand-ins begin with
_STAND_IN = re.compile(rf"({_WORDS}[a-z]{{2}}q|{_NUMBERS}\d\d)")


class _Shared(NamedTuple, Generic[T]):
    """What was read of documents of a kind: a format of JSON with the places of its words, or None; what was said."""

    form: str | None
    places: tuple[int, ...]
    said: T


class Alike(Generic[T]):
    """Reads documents by `read`, which gives a value, or None, and what there is to say of all that look like it."""

    def __init__(self, read: Callable[[str], tuple[Any, T]]) -> None:
        self.read_one = read
        self.kinds: dict[Any, _Shared[T] | bool] = {}  # whether a kind may be shared that was read once

    def read(self, source: str) -> tuple[Any, T]:
        """The value of a document, and what is said of it, as if it was read by itself."""
        if len(source) > _LONGEST or not _PLAIN.fullmatch(source) or _WORDS in source or _NUMBERS in source:
            return self.read_one(source)
        words = _EITHER.findall(source)
        if len(words) > _MOST_WORDS:
            return self.read_one(source)
        first: dict[str, int] = {}
        same = tuple([first.setdefault(word, place) for place, word in enumerate(words)])
        if _SIGN.search(source) and sum(word in first for word in _ANY_WORD.findall(source)) != len(words):
            return self.read_one(source)  # a word that is kept in another place may be the same key
        kind = _NUMBER.sub("\1", _WORD.sub("\0", source)), same if len(first) < len(words) else ()
        shared = self.kinds.get(kind)
        if shared is True:
            shared = self.kinds[kind] = self._shared(source, same)
        if isinstance(shared, _Shared):
            if shared.form is None:
                return None, shared.said
            return json.loads(shared.form % tuple([words[place] for place in shared.places])), shared.said
        if shared is None:
            if len(self.kinds) >= _KINDS:
                self.kinds.clear()
            self.kinds[kind] = True
        return self.read_one(source)

    def _shared(self, source: str, same: tuple[int, ...]) -> _Shared[T] | bool:
        """What all documents that look like the source read as; False where that can't be shared."""
        places = iter(same)

        def stand_in(match: re.Match[str]) -> str:
            place = next(places)
            if match[0].isdecimal():
                return f"{_NUMBERS}{place:02}"
            return f"{_WORDS}{chr(97 + place // 26)}{chr(97 + place % 26)}q"

        value, said = self.read_one(_EITHER.sub(stand_in, source))
        if value is None:
            return _Shared(None, (), said)
        if not _plain(value):
            return False
        pieces = _STAND_IN.split(json.dumps(value))
        return _Shared("%s".join(pieces[::2]), tuple(map(_place, pieces[1::2])), said)


def _place(stand_in: str) -> int:
    """The place of the word that has a stand-in."""
    if stand_in.startswith(_NUMBERS):
        return int(stand_in[-2:])
    return 26 * (ord(stand_in[-3]) - 97) + ord(stand_in[-2]) - 97


def _plain(value: Any) -> bool:
    """Whether a value is one that JSON gives back."""
    if isinstance(value, Pairs):
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_plain, value.values()))
    return all(map(_plain, value)) if isinstance(value, list) else isinstance(value, str | int | float | None)
