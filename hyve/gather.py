"""Documents -> roots: which parts share a root table, what telemetry they hold, and the columns of all of it.

Rules:
- Parts of one document share a root where their records are alike: objects in any number, and lists of records that
  have most keys in common. Lists of other records get roots of their own.
- Values are read here and nowhere later: once the columns are made, the documents may be freed.
- A very long list, or text of lines, is read in runs, and both its tables and its relations are made run by run. Where
  they don't come out right the first time, it is read again, at last as a whole.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from hyve import formats
from hyve.collector import collector_paused
from hyve.document import Document
from hyve.formats.by_runs import Inseparable, find_runs
from hyve.freetext import FreeText
from hyve.limits import trim
from hyve.lines import Reader, fields
from hyve.logtable import log_table
from hyve.metrictable import metric_table
from hyve.naming import free_name, identifier
from hyve.parts import ManyParts, Rows, is_bare
from hyve.runs import Runs
from hyve.shape import TableData, Unsettled, shred
from hyve.strictjson import Ahead, Lines
from hyve.tables import Delimited

ROOT, LINES = "records", "lines"
_SAMPLE, _GROUPS, _MOST, _FEW = 100, 16, 0.7, 4


Place = tuple[int, int, int | None]
"""(part, first row, end row or None): the rows of a list, or the one row that a part is."""


@dataclass(frozen=True)
class _Places:
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


@dataclass(frozen=True)
class Root:
    """One shredded root, and where its rows came from."""

    data: TableData
    name: str
    layout: Sequence[Place] | _Places = ()
    relation: bool = False
    source: bool = False
    free_text: bool = False
    lines: array[int] = field(default_factory=lambda: array("q"))
    """For each row the source line of its part, where free text stands around the parts."""


@collector_paused()
def gather(documents: list[Document]) -> tuple[list[Root], list[Root], tuple[str, ...]]:
    """The relations' roots, the documents' roots, and the flags of what was done to read relations.

    Empties `documents`, so that values nobody else holds are freed.
    """
    grouped = _grouped(documents)
    documents.clear()
    long = any(document.reads_ahead() for document in grouped)
    if long:
        trim()
    relations, flags = _by_columns(grouped) or _relations(grouped)
    roots = _shred(grouped, {root.name.lower() for root in relations})
    if long:
        pa.default_memory_pool().release_unused()
        trim()  # what the objects of the runs took, before the database takes as much
    return relations, roots, flags


def _by_columns(documents: Sequence[_Grouped]) -> tuple[list[Root], tuple[str, ...]] | None:
    """The relations where one group holds log records of one shape, or one the samples of series, which are made of
    their columns, and nothing else holds such; else None. Not where there is much other text: all would be read twice
    if that held some."""
    ways = [(group, way) for document in documents for group in document.groups if (way := group.by_columns())]
    counts = Counter(name for _, (name, _) in ways)
    others = sum(document.count() for document in documents) if ways else 0
    if not ways or others * _FEW > sum(len(group) for group, _ in ways):
        return None
    made, taken = [], []
    for group, (name, make) in ways:
        if counts[name] == 1 and (data := make(group.settled())) is not None:
            made.append(Root(data, name, relation=True))
            taken.append(group)
    relations, flags = _relations(documents, taken)
    if not made or any(root.name in counts for root in relations):
        return None
    for group in taken:
        group.source = True
    return [*made, *relations], flags


def _relations(documents: Sequence[_Grouped], without: Sequence[_Group] = ()) -> tuple[list[Root], tuple[str, ...]]:
    """The telemetry that parts (but for those of some groups) and lines of text hold, as roots, and the flags of what
    was done to read it."""
    relations = _Relations(any(document.reads_ahead() for document in documents))
    while True:
        try:
            for document in documents:
                for group in document.groups:
                    if not any(group is one for one in without):
                        group.source = relations.take(group.found()) > 0
                if document.texts:
                    taken = relations.take(formats.find_lines(document.lines))
                    document.source = taken > 0 and taken >= _MOST * document.count()
            roots = relations.roots()
        except Inseparable:
            relations = _Relations(relations.several)
        except Unsettled:
            relations = _Relations(False)
        else:
            if roots is not None:
                return roots, tuple(dict.fromkeys(relations.flags))


class _Relations:
    """Relations in the making. `several`: their rows become columns as they come."""

    def __init__(self, several: bool) -> None:
        self.several = several
        self.made: dict[str, TableData] = {}
        self.runs: dict[str, Runs] = {}
        self.begin()

    def begin(self) -> None:
        """Forgets the rows: they come again."""
        self.rows: formats.Relations = {}
        self.counts: dict[str, int] = {}
        self.flags: list[str] = []

    def take(self, found: Iterator[formats.Found]) -> int:
        """Takes in what was found in one group or text; how many rows most of it has."""
        before = dict(self.counts)
        for one in found:
            self.flags.extend(one.flags)
            for name, rows in one.relations.items():
                self.counts[name] = self.counts.get(name, 0) + len(rows)
                if not self.several:
                    self.rows.setdefault(name, []).extend(rows)
                elif rows and name not in self.made:
                    self.runs.setdefault(name, Runs(expand=False, derived=True)).add(rows)
            del one  # the next one is made now
        self.counts = {name: count for name, count in self.counts.items() if count}
        return max((count - before.get(name, 0) for name, count in self.counts.items()), default=0)

    def roots(self) -> list[Root] | None:
        """The tables of all relations; None where everything is to be taken in once more. Raises Unsettled."""
        for name in self.counts:
            if name in self.made:
                continue
            if not self.several:
                data: TableData | None = shred(self.rows.pop(name), expand=False, derived=True)
            else:
                data = self.runs[name].table()
            if data is not None:
                self.made[name] = _timed(data)
        if len(self.made) < len(self.counts):
            self.begin()
            return None
        return [Root(self.made[name], name, relation=True) for name in self.counts]


def _timed(data: TableData) -> TableData:
    """A relation's table, its times as such; columns of numbers that have none are of numbers all the same."""
    nothing = pa.nulls(data.rows, pa.int64())  # shared by all columns
    for path, column in data.columns.items():
        array = column.array
        if array is None or len(path) != 1:
            continue
        if path[0] in formats.TIME_KEYS:
            times = array if pa.types.is_int64(array.type) else pa.nulls(len(array), pa.int64())
            column.array = times.cast(pa.timestamp("ns"))
        elif path[0] in formats.NUMBER_KEYS and array.null_count == len(array):
            column.array = nothing.view(pa.float64()) if formats.NUMBER_KEYS[path[0]] is float else nothing
    return data


@dataclass
class _Group:
    """Parts of one document that share a root table: objects in any number, and lists of records like them.

    `values` are those of the parts, `rows` their records. The parts of a long text have no values here but are read
    `ahead`; a very long list is alone in its group then. `source`: telemetry relations were made of them.
    """

    keys: set[Any] = field(default_factory=set)
    objects: bool = False
    source: bool = False
    values: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    layout: list[Place] | _Places = field(default_factory=list)
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
        first = self.first()
        if isinstance(first, dict) and formats.only_logs(tuple(first)):
            return "log_records", log_table
        value = self.values[0] if len(self.values) == 1 else None
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
        if self.ahead is None or not self.separable:
            self.settled()
            yield formats.find(self.values if self.ahead is None else self.ahead.values())
            return
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

    def like(self, keys: set[Any]) -> bool:
        """Whether records of these keys are like the group's: most keys are the same, or one has all of the other."""
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
class _Grouped:
    """A document's parts by the root tables that they go to; `texts` are its lines of free text: (part, lines).

    `source`: telemetry relations say what most of the lines say.
    """

    name: str
    source: bool = False
    groups: list[_Group] = field(default_factory=list)
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


def _grouped(documents: Sequence[Document]) -> list[_Grouped]:
    result, number = [], 0
    for document in documents:
        found = _Grouped(identifier(document.name) if document.name else "")
        if document.lines:
            found.texts.append((None, [{"line": line, "text": text} for line, text in document.lines]))
        ahead = _ahead(document)
        if ahead is not None:
            found.groups.append(_Group(ahead=ahead, layout=_Places(number, range(len(document.parts)))))
        elif isinstance(document.parts, ManyParts):
            _group_ahead(found, document.parts, number, bool(document.lines))
        else:
            _group_values(found, document, number)
        number += len(document.parts)
        result.append(found)
    return result


def _group_values(found: _Grouped, document: Document, number: int) -> None:
    """Takes in the parts of a document, of which the first is number `number`."""
    parts = [(i, part, part.value) for i, part in enumerate(document.parts, number) if part.syntax != LINES]
    if len(parts) < len(document.parts):  # the last one is the lines
        last = document.parts[-1]
        found.texts.append((number + len(parts), last.free_text or last.value))
    each = _are_rows(sum(is_bare(value) for *_, value in parts), len(parts))
    around = bool(document.lines) or len(parts) < len(document.parts)
    line, at = 1, 0
    for i, part, value in parts:
        if around:
            line += document.text.count("\n", at, part.span[0])
            at = part.span[0]
        size = len(value) if isinstance(value, list) and not (each and is_bare(value)) else None
        keys, group = _group(found.groups, value)
        group.add(i, value, keys, size, line if around else None)


def _group_ahead(found: _Grouped, parts: ManyParts, start: int, around: bool) -> None:
    """The same of a long text. Values are read only where they say where they belong."""
    kinds = [(kind, count) for kind, count in parts.kinds() if kind.syntax != LINES]
    total = sum(count for _, count in kinds)
    each = _are_rows(sum(count for kind, count in kinds if kind.bare), total)
    around = around or total < len(parts)
    lines: Iterator[int | None] = parts.line_numbers() if around else repeat(None)
    objects: _Group | None = None
    alike = not any(kind.listed for kind, _ in kinds)

    def group_of(value: Any) -> tuple[set[Any], _Group]:
        rows = Rows(parts)
        return _group(found.groups, value, lambda: _Group(ahead=rows, layout=_Places(start, rows.numbers, rows.spread)))

    for i in range(total):
        if alike and objects is not None and len(objects) >= _SAMPLE:
            objects.extend(range(i, total), lines if around else ())
            break
        line, kind = next(lines), parts.kind(i)
        if each and kind.bare:
            keys, group = group_of([])
            group.add(i, None, keys, None, line)
        elif kind.listed:
            value = parts.value(i)
            keys, group = group_of(value)
            group.add(i, None, keys, len(value), line)
        else:
            keys = set()
            if objects is None or len(objects) < _SAMPLE:
                keys, objects = group_of(parts.value(i))
            objects.add(i, None, keys, None, line)
    if total < len(parts):  # the last one is the lines
        found.texts.append((start + total, parts[-1].free_text or parts[-1].value))


def _are_rows(bare: int, parts: int) -> bool:
    """Whether lists without objects are rows, as objects are, for most of several parts are such."""
    return 2 * bare > parts > 1


def _ahead(document: Document) -> Ahead | Lines | Delimited | None:
    """The one very long list or table that a document is, or its lines, to be read in runs."""
    ahead = document.parts[0].ahead if document.parts and not document.lines else None
    return ahead if len(document.parts) == (len(ahead.starts) if isinstance(ahead, Lines) else 1) else None


def _shred(documents: Sequence[_Grouped], taken: set[str]) -> list[Root]:
    roots: list[Root] = []

    def add(data: TableData, name: str, **rest: Any) -> None:
        root = Root(data, free_name(name, taken), **rest)
        taken.add(root.name.lower())
        roots.append(root)

    for document in documents:
        for number, rows in document.texts:
            name = f"{document.name}_{LINES}" if document.name else LINES
            data = _shred_runs(rows) if isinstance(rows, FreeText) else _shred_text(rows, derived=number is None)
            layout: list[Place] = [(number, 0, data.rows)] if number is not None else []
            add(data, name, layout=layout, free_text=True, source=document.source)
        for group in document.groups:
            add(group.table(), document.name or ROOT, layout=group.layout, lines=group.lines, source=group.source)
    return roots


def _group(groups: list[_Group], value: Any, make: Callable[[], _Group] = _Group) -> tuple[set[Any], _Group]:
    """The keys of a part's records, and the group that it belongs to, which is made where there is none."""
    listed = isinstance(value, list)
    if not listed and (found := next((group for group in groups if group.objects), None)) is not None:
        return set(value) if isinstance(value, dict) else set(), found
    records = [record for record in (value[:_SAMPLE] if listed else [value]) if isinstance(record, dict)]
    keys = {key for record in records for key in record}
    found = next((group for group in groups if group.like(keys)), None)
    if found is None and len(groups) == _GROUPS:
        found = groups[-1]
    if found is None:
        found = make()
        groups.append(found)
    found.objects |= not listed
    return keys, found


def _shred_text(rows: list[dict[str, Any]], derived: bool = False) -> TableData:
    """Lines of free text, and beside them what they were found to hold."""
    found = fields([row["text"] for row in rows])
    return shred(rows, expand=False, derived=derived, fields=None if found is None else ("text", found))


def _shred_runs(text: FreeText) -> TableData:
    """The same of very many lines, run by run."""
    reader: Reader | None = Reader(chain.from_iterable(text.texts()))
    runs = Runs(expand=False, chunked=True)
    try:
        while True:
            for rows in text.runs():
                found = reader and reader.read([row["text"] for row in rows])
                runs.add(rows, fields=("text", found) if found else None)
                del rows, found  # the next ones are made now
            again = reader is not None and reader.again()
            if reader is not None and not (again or reader.carries or reader.idle):
                reader, again = None, True
            if again:
                runs = Runs(expand=False, chunked=True)
            elif (data := runs.table()) is not None:
                return data
    except Unsettled:
        return _shred_text(text.value())
