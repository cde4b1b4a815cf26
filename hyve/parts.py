"""The structured values of a text, each a `Part`; of very many, where they stand and how they are read, and no values.

Rules:
- A part of a long text is made when it is asked for, and its value is read from the text then. Values are held only of
  those that can't be read by themselves, and of a few long ones that only a slow way reads: they are asked for often.
- Offsets take four bytes each, and what many parts share one: a part may have no more than six characters.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from operator import sub
from typing import Any, Literal, NamedTuple, TypeVar, get_args, overload

from hyve import again, strictjson
from hyve.again import Way
from hyve.delimited import Delimited
from hyve.flawed import Unread
from hyve.freetext import FreeText
from hyve.strictjson import Ahead, Lines, Pairs

ANNOTATION = "annotation"
"""The flag of a part that is no record of its own: the manifest that kubectl keeps in an annotation of an object."""

Syntax = Literal["json", "python", "csv", "table", "lines"]


@dataclass(frozen=True)
class Part:
    """One structured value. `span` is its half-open range of character offsets in the document's text.

    `partial_tail` is the text of the token that the end of a cut document left incomplete, without an opening quote.
    `unread` are the places in the span that could not be read: they are among the lines of text.
    The values of long texts are not held: `value` reads them again, `ahead` those of very long lists run by run. `way`
    is how.
    """

    value: Any
    span: tuple[int, int]
    syntax: Syntax
    flags: tuple[str, ...] = ()
    partial_tail: str = ""
    unread: tuple[Unread, ...] = ()
    way: Way | None = field(default=None, compare=False, repr=False)

    @property
    def held(self) -> Any:
        """The value, or what reads it."""
        return vars(self)["value"]

    @property
    def ahead(self) -> Ahead | Lines | Delimited | None:
        """The runs of a very long list or table, or of all lines of a very long text, which are not held as values."""
        return self.held if type(self.held) in (Ahead, Lines, Delimited) else None

    @property
    def free_text(self) -> FreeText | None:
        """The lines of a long text, which are not held as values."""
        return self.held if type(self.held) is FreeText else None

    def but(self, **changes: Any) -> Part:
        """The same part but for some fields."""
        made = object.__new__(Part)
        vars(made).update(vars(self) | changes)
        return made


class _Value:
    """The value of a part. Those of long texts are read from the text each time they are asked for.

    The part's own dict has what is held: Python asks a descriptor that can be set before it looks there.
    """

    def __get__(self, part: Part | None, owner: type) -> Any:
        if part is None:
            return self
        held = part.held
        if type(held) in (Ahead, Delimited, FreeText, _Unread):
            return held.value()
        return held.value(*part.span) if type(held) is Lines else held

    def __set__(self, part: Part, value: Any) -> None:
        vars(part)["value"] = value


Part.value = _Value()


class _Unread(NamedTuple):
    """The value of a part that is read when it is asked for."""

    parts: ManyParts
    number: int

    def value(self) -> Any:
        return self.parts.value(self.number)


T = TypeVar("T")


class _Made(Sequence[T]):
    """Items that are made when they are asked for."""

    @abstractmethod
    def make(self, number: int) -> T:
        """One item."""

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...

    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        number = range(len(self))[place]
        return tuple(map(self.make, number)) if isinstance(number, range) else self.make(number)

    def __iter__(self) -> Iterator[T]:
        return map(self.make, range(len(self)))


class LineParts(_Made[Part]):
    """The parts that are the lines of a very long text."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def __len__(self) -> int:
        return len(self.lines.starts)

    def make(self, number: int) -> Part:
        """One line."""
        span = self.lines.starts[number], self.lines.ends[number]
        return Part(self.lines, span, "json", self.lines.met.get(number, ()))


class Kind(NamedTuple):
    """What many parts have in common. `listed`: they are lists, `bare` lists that hold no objects."""

    syntax: Syntax
    flags: tuple[str, ...]
    way: Way | None
    listed: bool
    bare: bool


_RECORDS = 100
"""Items of a list that are looked at for objects."""


def is_bare(value: Any) -> bool:
    """Whether a value is a list that holds no objects."""
    return isinstance(value, list) and not any(isinstance(item, dict | Pairs) for item in value[:_RECORDS])


def holds_containers(value: Any) -> bool:
    """Whether a bracketed run is data by itself, rather than punctuation of a log line such as `[12]` or `[]`."""
    if isinstance(value, list):
        return any(isinstance(item, dict | list | Pairs) for item in value)
    return bool(value)


class ManyParts(_Made[Part]):
    """The parts of a long text, in the order of their spans."""

    def __init__(self, text: str, parts: Iterable[Part] = ()) -> None:
        self.text = text
        self.starts, self.ends = strictjson.offsets(text), strictjson.offsets(text)
        self._kinds, self._distinct = array("B"), dict[Kind, int]()
        self._by_number: list[Kind] = []
        self._held: dict[int, Any] = {}
        self._slow = 0
        self._more: dict[int, tuple[str, tuple[Unread, ...]]] = {}
        for part in parts:
            self.append(part)

    def __len__(self) -> int:
        return len(self.starts)

    def append(self, part: Part) -> None:
        """Takes in one more part, behind all others."""
        held = part.held
        if type(held) is _Unread:
            kind = held.parts.kind(held.number)._replace(flags=part.flags, way=part.way)
        else:
            way = None if part.way is None or self._is_slow(part.way, *part.span) else part.way
            kind = Kind(part.syntax, part.flags, way, type(held) is list, is_bare(held))
            if way is None:
                self._held[len(self)] = held
        if part.partial_tail or part.unread:
            self._more[len(self)] = part.partial_tail, part.unread
        number = self._number(kind)
        self.starts.append(part.span[0])
        self.ends.append(part.span[1])
        self._kinds.append(number)

    def _is_slow(self, way: Way, start: int, end: int) -> bool:
        """Whether a long part takes long to be read again, and its value can be held: there is room for so many."""
        if (
            end - start < _LONG_PART
            or self._slow + end - start > _MOST_SLOW
            or again.is_quick(way, self.text[start:end])
        ):
            return False
        self._slow += end - start
        return True

    def extend(self, kind: Kind, spans: Sequence[tuple[int, int]]) -> None:
        """Takes in some parts of one kind, behind all others, whose values are not held."""
        starts, ends = zip(*spans, strict=True)
        self.starts.extend(starts)
        self.ends.extend(ends)
        number = self._number(kind)
        self._kinds.extend(repeat(number, len(spans)))

    def _number(self, kind: Kind) -> int:
        """The number of a kind, for which there is room then."""
        number = self._distinct.setdefault(kind, len(self._distinct))
        if number == len(self._by_number):
            self._by_number.append(kind)
            if number >> 8 * self._kinds.itemsize:
                self._kinds = array("L", self._kinds)
        return number

    def make(self, number: int) -> Part:
        """One part."""
        kind = self.kind(number)
        held = self._held[number] if kind.way is None else _Unread(self, number)
        tail, unread = self._more.get(number, ("", ()))
        span = self.starts[number], self.ends[number]
        return Part(held, span, kind.syntax, kind.flags, tail, unread, kind.way)

    def kind(self, number: int) -> Kind:
        """What one part shares with others."""
        return self._by_number[self._kinds[number]]

    def kinds(self) -> list[tuple[Kind, int]]:
        """How many parts there are of each kind, in the order of the first ones."""
        return [(kind, self._kinds.count(number)) for number, kind in enumerate(self._by_number)]

    def read_whole(self) -> bool:
        """Whether all that stands in the spans was read."""
        return not any(unread for _, unread in self._more.values())

    def value(self, number: int) -> Any:
        """The value of one part."""
        return self.values((number,))[0]

    def values(self, numbers: Sequence[int]) -> list[Any]:
        """The values of some parts."""
        places = [(self._by_number[self._kinds[i]].way, self.starts[i], self.ends[i], i) for i in numbers]
        # A comma behind a document may belong to its part.
        documents = [(way, self.text[start:end].rstrip(", \t")) for way, start, end, _ in places if way is not None]
        read = again.values(documents)
        if len(read) == len(places):
            return read
        others = iter(read)
        return [self._held[i] if way is None else next(others) for way, _, _, i in places]

    def runs(self, numbers: Sequence[int]) -> Iterator[list[Any]]:
        """The values of some parts in runs of so many characters or containers."""
        run: list[int] = []
        size = containers = 0
        for first in range(0, len(numbers), _STEP):
            some = numbers[first : first + _STEP]
            span = self.starts[some[0]], self.ends[some[-1]]
            length = sum(map(sub, map(self.ends.__getitem__, some), map(self.starts.__getitem__, some)))
            more = self.text.count("{", *span) + self.text.count("[", *span)
            size += length
            containers += more
            if run and (size > strictjson.RUN or containers > strictjson.CONTAINERS or len(run) + _STEP > _MOST):
                yield self.values(run)
                run, size, containers = [], length, more
            run += some
        if run:
            yield self.values(run)

    def line_numbers(self) -> Iterator[int]:
        """The line on which each part begins, from 1."""
        line, at = 1, 0
        for start in self.starts:
            line += self.text.count("\n", at, start)
            at = start
            yield line


_LONG_PART, _MOST_SLOW = 1 << 16, 1 << 24
"""Characters of a part that may be slow to read again, and of all such parts whose values are held."""

_STEP, _MOST = 1 << 5, 1 << 10
"""Values whose containers are counted and that are added to a run together, and values of a run at most."""


class Rows:
    """The rows that some parts of a long text are, or hold as lists, read in runs."""

    path: tuple[()] = ()
    listed = False
    lines = True

    def __init__(self, parts: ManyParts) -> None:
        self.parts = parts
        self.numbers = strictjson.offsets(parts.text)
        self.spread = dict[int, int]()
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def add(self, number: int, size: int | None) -> None:
        """Takes in one more part: the rows of a list of that size, or one row (None)."""
        if size is not None:
            self.spread[number] = size
        self.numbers.append(number)
        self.count += 1 if size is None else size

    def extend(self, numbers: range) -> None:
        """Takes in more parts, of which each is one row."""
        self.numbers.extend(numbers)
        self.count += len(numbers)

    def first(self) -> Any:
        """The first row, or None."""
        for number in self.numbers:
            if self.spread.get(number) != 0:
                value = self.parts.value(number)
                return value[0] if number in self.spread else value
        return None

    def values(self) -> list[Any]:
        """The values of all parts."""
        return self.parts.values(self.numbers)

    def rows(self) -> list[Any]:
        """All rows."""
        return self._rows(self.numbers, self.values())

    def runs(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """Runs of parts: their values, and the rows of these."""
        at = 0
        for values in self.parts.runs(self.numbers):
            numbers = self.numbers[at : at + len(values)]
            at += len(values)
            yield values, self._rows(numbers, values)
            del values  # the next ones are read now

    def _rows(self, numbers: Sequence[int], values: list[Any]) -> list[Any]:
        if not self.spread:
            return values
        rows: list[Any] = []
        for number, value in zip(numbers, values, strict=True):
            rows += value if number in self.spread else (value,)
        return rows


def parts_of(text: str, parts: Iterable[Part] = ()) -> list[Part] | ManyParts:
    """Parts in a list, or, of a long text, without their values."""
    return ManyParts(text, parts) if len(text) >= strictjson.LONG else list(parts)


class Spans:
    """The spans of the parts that there are now, without what could not be read in them, and whether there is something
    like that; each time they are asked for."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts, self._count = parts, len(parts)

    def __iter__(self) -> Iterator[tuple[int, int, bool]]:
        parts = self._parts
        if isinstance(parts, ManyParts) and parts.read_whole():
            return zip(islice(parts.starts, self._count), parts.ends, repeat(False))
        return self._with_unread()

    def _with_unread(self) -> Iterator[tuple[int, int, bool]]:
        for part in islice(self._parts, self._count):
            at, end = part.span
            for unread in part.unread:
                yield at, unread.start, True
                at = unread.end
            yield at, end, bool(part.unread)


def spans_of(parts: Sequence[Part]) -> Iterable[tuple[int, int]]:
    """The span of each of some parts."""
    if isinstance(parts, ManyParts):
        return zip(parts.starts, parts.ends, strict=True)
    return (part.span for part in parts)


def starts_of(parts: Sequence[Part]) -> Sequence[int]:
    """Where each of some parts begins."""
    return parts.starts if isinstance(parts, ManyParts) else [part.span[0] for part in parts]


def kinds_of(parts: Sequence[Part]) -> list[tuple[tuple[Syntax, tuple[str, ...]], int]]:
    """Syntax and flags of parts in the order of the first ones, and how many have the same."""
    if isinstance(parts, ManyParts):
        return [(kind[:2], count) for kind, count in parts.kinds()]
    return [((part.syntax, part.flags), 1) for part in parts]


class _Syntaxes(_Made[str]):
    """The syntaxes of very many parts, a byte each."""

    def __init__(self, codes: bytes) -> None:
        self._codes = codes

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, syntax: object) -> bool:
        return syntax in _SYNTAXES and _SYNTAXES.index(syntax) in self._codes

    def make(self, number: int) -> str:
        """The syntax of one part."""
        return _SYNTAXES[self._codes[number]]


_SYNTAXES: tuple[str, ...] = get_args(Syntax)


def syntaxes(parts: Sequence[Part]) -> Sequence[str]:
    """The syntax of each part."""
    if isinstance(parts, LineParts):
        return _Syntaxes(bytes(len(parts)))
    if isinstance(parts, ManyParts):
        return _Syntaxes(bytes(_SYNTAXES.index(parts.kind(number).syntax) for number in range(len(parts))))
    return tuple(part.syntax for part in parts)
