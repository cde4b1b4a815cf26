"""Documents -> roots: which parts share a root table, what telemetry they hold, and the columns of all of it.

Rules:
- Parts of one document share a root where their records are alike: objects in any number, and lists of records that
  have most keys in common. Lists of other records get roots of their own.
- Values are read here and nowhere later: once the columns are made, the documents may be freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hyve import formats, lines
from hyve.document import Document, collector_paused
from hyve.logtable import log_table
from hyve.naming import free_name, identifier
from hyve.shape import TableData, shred

ROOT, LINES = "records", "lines"
_SAMPLE, _GROUPS, _MOST = 100, 16, 0.7


@dataclass(frozen=True)
class Root:
    """One shredded root: which parts its rows came from. A layout entry is (part, first row, end row or None)."""

    data: TableData
    name: str
    layout: tuple[tuple[int, int, int | None], ...] = ()
    relation: bool = False
    source: bool = False
    free_text: bool = False
    lines: list[int] = field(default_factory=list)
    """For each row the source line of its part, where free text stands around the parts."""


@collector_paused()
def gather(documents: list[Document]) -> tuple[list[Root], list[Root], tuple[str, ...]]:
    """The relations' roots, the documents' roots, and the flags of what was done to read relations.

    Empties `documents`, so that values nobody else holds are freed.
    """
    grouped = _grouped(documents)
    documents.clear()
    groups = [group for document in grouped for group in document.groups]
    for group in groups:
        group.data = shred(group.rows)
    alone = len(groups) == 1 and not any(document.texts for document in grouped)
    if alone and (logs := _log_records(groups[0])) is not None:
        relations, flags = [logs], tuple[str, ...]()
    else:
        relations, flags = _relations(grouped)
    return relations, _shred(grouped, {root.name.lower() for root in relations}), flags


def _log_records(group: _Group) -> Root | None:
    """The relation of records that are all log records of one shape: made of the columns that are there already."""
    if not group.rows or not isinstance(group.rows[0], dict) or not formats.only_logs(tuple(group.rows[0])):
        return None
    made = log_table(group.data) if group.data is not None else None
    if made is None:
        return None
    group.source = True
    return Root(made, "log_records", relation=True)


def _relations(documents: Sequence[_Grouped]) -> tuple[list[Root], tuple[str, ...]]:
    """The telemetry that parts and lines of text hold, as roots, and the flags of what was done to read it."""
    relations: formats.Relations = {}
    flags: list[str] = []

    def take(found: formats.Found) -> int:
        flags.extend(found.flags)
        for name, rows in found.relations.items():
            relations.setdefault(name, []).extend(rows)
        return max(map(len, found.relations.values()), default=0)

    for document in documents:
        for group in document.groups:
            group.source = take(formats.find(group.values)) > 0
        texts = [row["text"] for _, rows in document.texts for row in rows]
        document.source = bool(texts) and take(formats.find((), texts)) >= _MOST * len(texts)
    roots = []
    for name in list(relations):
        data = shred(relations.pop(name), expand=False, derived=True)
        if not data.rows:
            continue
        for path, column in data.columns.items():
            array = column.array
            if array is not None and len(path) == 1 and path[0] in formats.TIME_KEYS:
                times = array if pa.types.is_int64(array.type) else pa.nulls(len(array), pa.int64())
                column.array = times.cast(pa.timestamp("ns"))
        roots.append(Root(data, name, relation=True))
    return roots, tuple(flags)


@dataclass
class _Group:
    """Parts of one document that share a root table: objects in any number, and lists of records like them.

    `values` are those of the parts, `rows` their records. `source`: telemetry relations were made of them.
    """

    keys: set[Any] = field(default_factory=set)
    objects: bool = False
    source: bool = False
    values: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    layout: list[tuple[int, int, int | None]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    data: TableData | None = None

    def like(self, keys: set[Any]) -> bool:
        """Whether records of these keys are like the group's: most keys are the same, or one has all of the other."""
        common = len(self.keys & keys)
        return 2 * common >= len(self.keys | keys) or 1 < common == min(len(self.keys), len(keys))

    def add(self, number: int, value: Any, keys: set[Any], line: int | None) -> None:
        """Takes in part `number`, which stands on `line` where free text stands around the parts."""
        start = len(self.rows)
        self.values.append(value)
        if isinstance(value, list):
            self.layout.append((number, start, start + len(value)))
            self.rows.extend(value)
        else:
            self.layout.append((number, start, None))
            self.rows.append(value)
            self.objects = True
        if start < _SAMPLE:
            self.keys |= keys
        if line is not None:
            self.lines += [line] * (len(self.rows) - start)


@dataclass
class _Grouped:
    """A document's parts by the root tables that they go to; `texts` are its lines of free text: (part, rows).

    `source`: telemetry relations say what most of the lines say.
    """

    name: str
    source: bool = False
    groups: list[_Group] = field(default_factory=list)
    texts: list[tuple[int | None, list[dict[str, Any]]]] = field(default_factory=list)


def _grouped(documents: Sequence[Document]) -> list[_Grouped]:
    result, number = [], 0
    for document in documents:
        found = _Grouped(identifier(document.name) if document.name else "")
        if document.lines:
            found.texts.append((None, [{"line": line, "text": text} for line, text in document.lines]))
        around = bool(document.lines) or any(part.syntax == LINES for part in document.parts)
        line, at = 1, 0
        for part in document.parts:
            if part.syntax == LINES:
                found.texts.append((number, part.value))
            else:
                if around:
                    line += document.text.count("\n", at, part.span[0])
                    at = part.span[0]
                keys, group = _group(found.groups, part.value)
                group.add(number, part.value, keys, line if around else None)
            number += 1
        result.append(found)
    return result


def _shred(documents: Sequence[_Grouped], taken: set[str]) -> list[Root]:
    roots: list[Root] = []

    def add(data: TableData, name: str, **rest: Any) -> None:
        root = Root(data, free_name(name, taken), **rest)
        taken.add(root.name.lower())
        roots.append(root)

    for document in documents:
        for number, rows in document.texts:
            layout: tuple[tuple[int, int, int | None], ...] = ((number, 0, len(rows)),) if number is not None else ()
            name = f"{document.name}_{LINES}" if document.name else LINES
            add(_shred_text(rows, derived=number is None), name, layout=layout, free_text=True, source=document.source)
        for group in document.groups:
            layout = tuple(group.layout)
            assert group.data is not None
            add(group.data, document.name or ROOT, layout=layout, lines=group.lines, source=group.source)
    return roots


def _group(groups: list[_Group], value: Any) -> tuple[set[Any], _Group]:
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
        found = _Group()
        groups.append(found)
    return keys, found


def _shred_text(rows: list[dict[str, Any]], derived: bool = False) -> TableData:
    """Lines of free text, and beside them what they were found to hold."""
    found = lines.fields([row["text"] for row in rows])
    return shred(rows, expand=False, derived=derived, fields=None if found is None else ("text", found))
