"""Documents -> roots: the columns of their groups of parts and of their text, and of the telemetry in all of it.

Rules:
- Each group of parts is a root, and so are a document's lines of free text, and the rows of each relation.
- Values are read here and nowhere later: once the columns are made, the documents may be freed.
- Where there is anything very long, relations are made run by run. Where they don't come out right the first time, all
  of it is read again, at last as a whole.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from hyve import formats
from hyve.collector import collector_paused
from hyve.document import Document
from hyve.formats.by_runs import Inseparable
from hyve.freetext import FreeText
from hyve.groups import LINES, Group, Grouped, Place, Places, grouped
from hyve.limits import trim
from hyve.lines import Reader, fields
from hyve.naming import free_name
from hyve.runs import Runs
from hyve.shape import TableData, Unsettled, shred

ROOT = "records"
_MOST, _FEW = 0.7, 4


@dataclass(frozen=True)
class Root:
    """One shredded root, and where its rows came from."""

    data: TableData
    name: str
    layout: Sequence[Place] | Places = ()
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
    found = grouped(documents)
    documents.clear()
    long = any(document.reads_ahead() for document in found)
    if long:
        trim()
    relations, flags = _by_columns(found) or _relations(found)
    roots = _shred(found, {root.name.lower() for root in relations})
    if long:
        pa.default_memory_pool().release_unused()
        trim()  # what the objects of the runs took, before the database takes as much
    return relations, roots, flags


def _by_columns(documents: Sequence[Grouped]) -> tuple[list[Root], tuple[str, ...]] | None:
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


def _relations(documents: Sequence[Grouped], without: Sequence[Group] = ()) -> tuple[list[Root], tuple[str, ...]]:
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


def _shred(documents: Sequence[Grouped], taken: set[str]) -> list[Root]:
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
