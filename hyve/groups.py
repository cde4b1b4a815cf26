"""Parts of documents -> groups: which of them share a root table, and the rows and telemetry that each group has.

Rules:
- Parts of one document are a group where their records are alike, lists of records and objects that have most keys in
  common: what a flaw took apart is one table again. Lists of other records are groups of their own, and so are tables
  with another header; objects that no list is like are one group, in any number.
- A very long list, or text of lines, is read in runs: it is shredded, and its telemetry is looked for, run by run.
  Where that doesn't come out right the first time, it is read again, at last as a whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import Any

from hyve import formats
from hyve.delimited import Delimited
from hyve.document import Document
from hyve.formats.by_runs import Inseparable, find_runs
from hyve.freetext import FreeText
from hyve.logtable import log_table
from hyve.metrictable import metric_table
from hyve.naming import identifier
from hyve.parts import ANNOTATION, Kind, ManyParts, Part, Rows, is_bare
from hyve.runs import Runs
from hyve.shape import TableData, Unsettled, shred
from hyve.strictjson import Ahead, Lines, Pairs

LINES = "lines"
_TABLES = ("csv", "table")
_BEYOND = {"extra_cells"}
"""What rows of a table may have that its header hasn't."""
_SAMPLE, _GROUPS = 100, 16
"""Records of a list, and parts of a group, that tell which keys it has; groups of a document at most."""

Place = tuple[int, int, int | None]
"""(part, first row, end row or None): the rows of a list, or the one row that a part is."""


@dataclass(frozen=True)
class Places:
    """The places of parts (from number `start` on) of which each is one row, but for those that are lists of so many
    rows."""

    start: int
    numbers: Sequence[int]
    spread: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Place]:
        row = 0
        for number in self.numbers:
            size = self.spread.get(number)
            yield self.start + number, row, None if size is None else row + size
            row += 1 if size is None else size


@dataclass
class Group:
    """Parts of one document that share a root table: lists of records and objects that are alike, or (`objects`) the
    objects that no list is like, and lists like them.

    `values` are those of the parts, `rows` their records. The parts of a long text have no values here but are read
    `ahead`; a very long list is alone in its group then. `source`: telemetry relations were made of them; none are of
    what stands in annotations.
    """

    keys: set[Any] = field(default_factory=set)
    objects: bool = False
    annotations: bool = False
    source: bool = False
    values: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    layout: list[Place] | Places = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("q"))
    ahead: Ahead | Lines | Delimited | Rows | None = None
    separable: bool = True
    data: TableData | None = None

    def __len__(self) -> int:
        """The rows that were taken in."""
        return len(self.ahead) if isinstance(self.ahead, Rows) else len(self.rows)

    def first(self) -> Any:
        """The first row of a list or of lines, or None."""
        if self.ahead is not None:
            return None if self.ahead.path else self.ahead.first()
        return self.rows[0] if self.rows else None

    def by_columns(self) -> tuple[str, Callable[[TableData], TableData | None]] | None:
        """The relation that may be made of its columns, told from its first record, and what makes it."""
        first = None if self.annotations else self.first()
        if isinstance(first, dict) and formats.only_logs(tuple(first)):
            return "log_records", log_table
        value = self.values[0] if len(self.values) == 1 and not self.annotations else None
        if isinstance(self.ahead, Rows) and len(self.ahead.numbers) == 1:
            value = self.ahead.values()[0]
        if isinstance(self.ahead, Ahead) and self.ahead.path[-1:] in ((), ("result",), ("values",)):
            value = self.ahead.short()
        keys = formats.series_keys(value)
        return None if keys is None else ("metric_points", partial(metric_table, keys=keys, coded=bool(self.ahead)))

    def extend(self, numbers: range, lines: Iterable[int | None]) -> None:
        """Takes in parts of a long text, each one row, and the lines on which they stand."""
        assert isinstance(self.ahead, Rows)
        self.ahead.extend(numbers)
        self.lines.extend(line for line, _ in zip(lines, numbers, strict=False) if line is not None)

    def settled(self) -> TableData:
        """The table of the group, which is shredded now."""
        for _ in self.shredded():
            pass
        return self.table()

    def table(self) -> TableData:
        """The table of the group, once it is shredded."""
        assert self.data is not None
        return self.data

    def found(self) -> Iterator[formats.Found]:
        """The telemetry relations that the parts hold; shreds them on the way. Raises Inseparable, but once."""
        if self.annotations:
            self.settled()
        elif self.ahead is None or not self.separable:
            self.settled()
            yield formats.find(self.values if self.ahead is None else self.ahead.values())
        else:
            try:
                yield from find_runs(self.shredded(), self.ahead.path, self.ahead.lines)
            except Inseparable:
                self.separable = False
                raise

    def shredded(self) -> Iterator[tuple[Any, list[Any]]]:
        """The runs of the very long list, which are shredded on the way unless that was done before."""
        if self.ahead is None:
            self.data = shred(self.rows) if self.data is None else self.data
            return
        runs = Runs() if self.data is None else None
        for value, run in self.ahead.runs():
            if runs is not None:
                try:
                    runs.add(run, value, self.ahead.path)
                except Unsettled:
                    runs = None
            yield value, run
            del value, run  # the next one is read now
        if self.data is not None:
            return
        try:
            while runs is not None and (data := runs.table()) is None:
                for value, run in self.ahead.runs():
                    runs.add(run, value, self.ahead.path)
                    del value, run
        except Unsettled:
            runs = None
        if runs is None:
            data = shred(self.ahead.rows())
        self.data = data
        if data is not None and self.ahead.listed:
            self.layout = [(number, 0, data.rows) for number, *_ in self.layout]

    def like(self, keys: set[Any], table: bool) -> bool:
        """Whether records of these keys are like the group's: most keys are the same, or one has all of the other.
        Those of a `table` have the same header."""
        if table:
            return self.keys | _BEYOND == keys | _BEYOND
        common = len(self.keys & keys)
        return 2 * common >= len(self.keys | keys) or 1 < common == min(len(self.keys), len(keys))

    def add(self, number: int, value: Any, keys: set[Any], size: int | None, line: int | None) -> None:
        """Takes in part `number`, a list of so many rows or one row (None), on its `line` where text stands around. The
        value isn't looked at where it is read ahead."""
        start = len(self)
        if isinstance(self.ahead, Rows):
            self.ahead.add(number, size)
        else:
            assert isinstance(self.layout, list)
            self.values.append(value)
            self.layout.append((number, start, None if size is None else start + size))
            self.rows += [value] if size is None else value
        self.keys |= keys if start < _SAMPLE else set()
        if line is not None:
            self.lines.extend(repeat(line, 1 if size is None else size))


@dataclass
class Grouped:
    """A document's parts by the root tables that they go to; `texts` are its lines of free text: (part, lines).

    `source`: telemetry relations say what most of the lines say.
    """

    name: str
    source: bool = False
    groups: list[Group] = field(default_factory=list)
    texts: list[tuple[int | None, FreeText | list[dict[str, Any]]]] = field(default_factory=list)

    def reads_ahead(self) -> bool:
        """Whether some of it is so long that it is read in runs."""
        return self.long_text() or any(group.ahead is not None for group in self.groups)

    def long_text(self) -> bool:
        """Whether some of its free text is."""
        return any(isinstance(rows, FreeText) for _, rows in self.texts)

    def lines(self) -> Iterator[Sequence[str]]:
        """The lines of free text, in runs."""
        for _, rows in self.texts:
            yield from rows.texts() if isinstance(rows, FreeText) else ([row["text"] for row in rows],)

    def count(self) -> int:
        """How many lines of free text there are."""
        return sum(len(rows) for _, rows in self.texts)


def grouped(documents: Sequence[Document]) -> list[Grouped]:
    """The groups and the free text of each document; parts are numbered over all of them."""
    result, number = [], 0
    for document in documents:
        found = Grouped(identifier(document.name) if document.name else "")
        if document.lines:
            found.texts.append((None, [{"line": line, "text": text} for line, text in document.lines]))
        ahead = _ahead(document)
        if ahead is not None:
            found.groups.append(Group(ahead=ahead, layout=Places(number, range(len(document.parts)))))
        elif isinstance(document.parts, ManyParts):
            _group_ahead(found, document.parts, number, bool(document.lines))
        else:
            _group_values(found, document, number)
        number += len(document.parts)
        result.append(found)
    return result


def _group_values(found: Grouped, document: Document, number: int) -> None:
    """Takes in the parts of a document, of which the first is number `number`."""
    parts = [(i, part, part.value) for i, part in enumerate(document.parts, number) if part.syntax != LINES]
    if len(parts) < len(document.parts):  # the last one is the lines
        last = document.parts[-1]
        found.texts.append((number + len(parts), _lines_of(last)))
    each = _are_rows(sum(is_bare(value) for *_, value in parts), len(parts))
    around = bool(document.lines) or len(parts) < len(document.parts)
    line, at = 1, 0
    for i, part, value in parts:
        if around:
            line += document.text.count("\n", at, part.span[0])
            at = part.span[0]
        size = len(value) if isinstance(value, list) and not (each and is_bare(value)) else None
        keys, group = _group(found.groups, value, part)
        group.add(i, value, keys, size, line if around else None)


def _group_ahead(found: Grouped, parts: ManyParts, start: int, around: bool) -> None:
    """The same of a long text. Values are read only where they say where they belong."""
    kinds = [(kind, count) for kind, count in parts.kinds() if kind.syntax != LINES]
    total = sum(count for _, count in kinds)
    each = _are_rows(sum(count for kind, count in kinds if kind.bare), total)
    around = around or total < len(parts)
    lines: Iterator[int | None] = parts.line_numbers() if around else repeat(None)
    objects: Group | None = None
    alike = not any(kind.listed or ANNOTATION in kind.flags for kind, _ in kinds)
    # Where there are lists of records, each object's keys tell whether it is like those.
    listed = sum(count for kind, count in kinds if kind.listed and not kind.bare)
    values = chain.from_iterable(parts.runs(range(total))) if 0 < listed < total else None

    def group_of(value: Any, kind: Kind) -> tuple[set[Any], Group]:
        rows = Rows(parts)
        made = partial(Group, ahead=rows, layout=Places(start, rows.numbers, rows.spread))
        return _group(found.groups, value, kind, made)

    for i in range(total):
        if alike and objects is not None and len(objects) >= _SAMPLE:
            objects.extend(range(i, total), lines if around else ())
            break
        line, kind = next(lines), parts.kind(i)
        value: Any = None if values is None else next(values)
        if each and kind.bare:
            keys, group = group_of([], kind)
            group.add(i, None, keys, None, line)
        elif values is not None or kind.listed or ANNOTATION in kind.flags:
            value = parts.value(i) if values is None else value
            keys, group = group_of(value, kind)
            group.add(i, None, keys, len(value) if kind.listed else None, line)
        else:
            keys = set()
            if objects is None or len(objects) < _SAMPLE:
                keys, objects = group_of(parts.value(i), kind)
            objects.add(i, None, keys, None, line)
    if total < len(parts):  # the last one is the lines
        found.texts.append((start + total, _lines_of(parts[-1])))


def _lines_of(part: Part) -> FreeText | list[dict[str, Any]]:
    """The lines of a part of free text; long ones are not counted for it."""
    lines: FreeText | list[dict[str, Any]] = part.value if part.free_text is None else part.free_text
    return lines


def _are_rows(bare: int, parts: int) -> bool:
    """Whether lists without objects are rows, as objects are, for most of several parts are such."""
    return 2 * bare > parts > 1


def _ahead(document: Document) -> Ahead | Lines | Delimited | None:
    """The one very long list or table that a document is, or its lines, to be read in runs."""
    ahead = document.parts[0].ahead if document.parts and not document.lines else None
    return ahead if len(document.parts) == (len(ahead.starts) if isinstance(ahead, Lines) else 1) else None


def _group(
    groups: list[Group], value: Any, of: Part | Kind, make: Callable[..., Group] = Group
) -> tuple[set[Any], Group]:
    """The keys of a part's records, and the group that it belongs to, which is made where there is none."""
    listed, annotation = isinstance(value, list), ANNOTATION in of.flags
    keys = {key for record in (value[:_SAMPLE] if listed else [value]) for key in _fields(record)}
    own = [group for group in groups if group.annotations == annotation]
    alike = [group for group in own if group.like(keys, of.syntax in _TABLES)] if keys or listed else []
    found = next(iter(alike or [group for group in own if group.objects and not listed]), None)
    if found is None and len(own) == _GROUPS:
        found = own[-1]
    if found is None:
        found = make(annotations=annotation)
        found.objects = not listed
        groups.append(found)
    return keys, found


def _fields(record: Any) -> Iterable[str]:
    """The keys of a record that are its own, none of what is no record."""
    return record if isinstance(record, dict) else record.unique() if isinstance(record, Pairs) else ()
