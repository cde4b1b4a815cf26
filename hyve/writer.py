"""Writes values in the notation of `hyve.notation`: objects and lists on lines, lists of records as tables.

Rules:
- A table is chosen over a list of objects by shape (`hyve.records`), a short one by counting tokens.
- Columns are spelled by `hyve.codecs`; columns that count on from row to row are left out only where rows would be
  much longer with them, for they say where one is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hyve import codecs
from hyve.codecs import ABSENT, SCALARS, Absent, Codec, Kind
from hyve.records import Field, Records, records
from hyve.strictjson import Pairs
from hyve.tokens import count_tokens

_WIDTH = 100
"""Characters of a line of short members."""

_LABELLED = 5
"""Every so many rows, one that counts on says where it is."""

_FEW = 8
"""Lists up to this long are shown as a table only where counting says so, and scalars not by their steps."""

_TELLING = 0.2
"""Columns that count on are left out only where rows would take this share more with them: they say where one is."""

_KEY = re.compile(r"[\w$@./][\w$@./-]*")
_KEYS = "(key)"
"""The head of the column that holds an object's keys."""


LEGEND: dict[str, str] = {
    "constant": "name:x in a head: x in all rows",
    "affix": "* in a head: the cell goes there",
    "time": "<...> in a head: the cell goes there, a time without - and :",
    "both": "* or <...> in a head: the cell goes there, a time without - and :",
    "steps": "a..b in a head: counts on row by row, every 5th row begins with it",
    "codes": "{A:x} in a head: cell A is x",
    "absent": "empty cell: no such key",
    "across": "f = a,b: field f of the first record is a, of the second b",
    "lists": "name[]{...}: a list of records, its cells [row;row]",
    "bare": "[,] one row, as the head says",
    "under": "rows of name[]>{...} stand below their record",
    "other": "!x: x instead of a record",
    "none": "=x: x instead of rows, = alone: no such key",
}
"""What the first line says of each mark in use; `both` stands for affix and time together."""


class Writer:
    """Writes values in the notation, with the codecs of `kinds`.

    `used` gathers the marks that the legend has to explain, `saved` the tokens that each kind of codec saved.
    """

    def __init__(self, kinds: frozenset[Kind]) -> None:
        self.kinds = kinds
        self.used: set[str] = set()
        self.saved: Counter[str] = Counter()

    def document(self, values: Sequence[Any]) -> str:
        """The text of all values, without the legend."""
        if len(values) != 1:
            return f"(values):{self.value(list(values))}"
        (value,) = values
        if isinstance(value, dict | Pairs) and value:
            table = self._keyed(value) if type(value) is dict else None
            return table or "\n".join(_lines(self._members(value)))
        return self.value(value)

    def value(self, value: Any) -> str:
        """`value` on one line, or on several where it holds tables."""
        if isinstance(value, list):
            return self._list(value)
        if not isinstance(value, dict | Pairs):
            return codecs.inline(value)
        table = self._keyed(value) if type(value) is dict else None
        if table:
            return table
        members = self._members(value)
        if any("\n" in member for member in members):
            return "{\n" + "\n".join(_lines(members)) + "\n}"
        return "{" + " ".join(members) + "}"

    def _members(self, value: dict[str, Any] | Pairs) -> list[str]:
        pairs = value.items() if isinstance(value, dict) else value
        return [f"{self._key(key)}:{self.value(item)}" for key, item in pairs]

    def _key(self, key: Any) -> str:
        if type(key) is str:
            return key if _KEY.fullmatch(key) else codecs.quoted(key)
        return f"({self.line(key)})"

    def line(self, value: Any) -> str:
        """`value` on one line, without tables."""
        if isinstance(value, list):
            if len(value) >= _FEW and type(value[0]) in (int, str) and (series := self._series(value)):
                return series
            return "[" + _joined([self.line(item) for item in value]) + "]"
        if isinstance(value, dict | Pairs):
            pairs = value.items() if isinstance(value, dict) else value
            return "{" + " ".join([f"{self._key(key)}:{self.line(item)}" for key, item in pairs]) + "}"
        return codecs.inline(value)

    def _list(self, values: list[Any]) -> str:
        if not any(type(value) not in SCALARS for value in values):
            return self.line(values)
        before = self.used.copy(), self.saved.copy()
        table = self._table(records(values, "codes" in self.kinds), len(values)) if len(values) > 1 else None
        if table and len(values) > _FEW:
            return table
        after = self.used, self.saved
        self.used, self.saved = before
        items = [self.value(value) for value in values]
        tall = any("\n" in item for item in items)
        listed = "[\n" + "\n".join(items) + "\n]" if tall else f"[{_joined(items)}]"
        if table and count_tokens(table) < count_tokens(listed):
            self.used, self.saved = after
            return table
        return listed

    def _series(self, values: list[Any]) -> str | None:
        """A list of scalars by its steps."""
        if "steps" not in self.kinds or any(type(value) is not type(values[0]) for value in values):
            return None
        if any(codecs.inline(value) != codecs.head_text(value) for value in (values[0], values[-1])):
            return None
        cells = [codecs.cell(value) for value in values]
        codec = codecs.spell(values, cells, frozenset({"steps"}), places=range(len(values)))
        if codec is None:
            return None
        self.saved["steps"] += codec.saved
        return f"[{codec.header[1:]}]"

    def _keyed(self, value: dict[str, Any]) -> str | None:
        """An object of records as a table with their keys in its first column."""
        if len(value) < 3 or any(type(item) is not dict for item in value.values()):
            return None
        found = records(list(value.values()), "codes" in self.kinds)
        if found is None or found.others:
            return None
        found.keys = Field("", list(value))
        found.fields.insert(0, found.keys)
        before = self.used.copy(), self.saved.copy()
        table = self._table(found, len(value))
        if table and len(value) <= _FEW:
            listed = "{" + " ".join(self._members(value)) + "}"
            if count_tokens(table) >= count_tokens(listed):
                self.used, self.saved = before
                return None
        return table

    def _table(self, found: Records | None, count: int) -> str | None:
        if found is None:
            return None
        if found.wide():
            return f"[{count}]{self._across(found)}"
        head, rows, shown = self._rows(found, range(found.count), packed=False)
        return "\n".join([f"[{count}]{head}", *(rows if shown else [])])

    def _across(self, found: Records) -> str:
        """A line per field instead of a row per record."""
        self.used.add("across")
        table = _Table(None, packed=False, others=False, under=None, keys=found.keys)
        return _field_lines(self._heads(found.fields, table), table.columns, found.listed)

    def _rows(self, found: Records, places: Sequence[int], packed: bool) -> tuple[str, list[str], bool]:
        """(head, a text per record, whether these texts say anything)."""
        # Where other elements stand between the records, rows don't count on, and there must be a column to show them.
        others = bool(found.others)
        table = _Table(None if others else places, packed, others, None if packed else found.longest(), found.keys)
        heads = self._heads(found.fields, table)
        counts = self._counts_on(table, heads)
        shown = [table.columns[place] for place in _shown(heads)]
        rows = [",".join(cells).rstrip(",") or "," for cells in zip(*shown, strict=True)]
        rows = rows or [","] * (found.count - len(found.others))
        if "," in rows and packed:
            self.used.add("bare")
        if counts and not packed and (shown or table.below):
            labels = table.counters[0][1].labels or ()
            for i, place in enumerate(places):
                if place % _LABELLED == _LABELLED - 1:
                    rows[i] = f"{labels[i]}:{rows[i]}"
        if table.below:
            self.used.add("under")
            rows = [row + lines for row, lines in zip(rows, table.below, strict=True)]
        if found.others:
            self.used.add("other")
            left = iter(rows)
            mark = "!" * (_opened(heads) + 1)
            rows = [mark + self.line(found.others[i]) if i in found.others else next(left) for i in range(found.count)]
        return _head_text(heads, found.listed), rows, bool(shown or table.below)

    def _counts_on(self, table: _Table, heads: list[_Head]) -> bool:
        """Settles whether rows leave out the columns that count on, and spells their heads so."""
        if not table.counters:
            return False
        hidden = [table.columns[place] for place in _shown([head for head, _, _ in table.counters])]
        for head, _, _ in table.counters:
            head.aside, head.column = head.column, None
        rest = [table.columns[place] for place in _shown(heads)]
        labels = () if table.packed else table.counters[0][1].labels or ()
        most = sum(count_tokens(",\n".join(cells)) for cells in hidden)
        least = count_tokens(":\n".join(labels[_LABELLED - 1 :: _LABELLED]))
        counts = most - least > _TELLING * sum(count_tokens(",\n".join(cells)) for cells in rest)
        for head, steps, other in table.counters:
            if not counts:
                head.column = head.aside
            codec = steps if counts else other
            if codec is not None:
                head.text += codec.header
                self._note(codec)
        return counts

    def _heads(self, fields: list[Field], table: _Table) -> list[_Head]:
        """What the head says of `fields`; their cells go to `table`."""
        heads: list[_Head] = []
        for one in fields:
            head = _Head(self._key(one.key) if one is not table.keys else _KEYS)
            heads.append(head)
            if one.fields:
                head.inner, head.listed = self._heads(one.fields, table), one.listed
                head.text += "[1]" if one.single else ""
                if one.others:
                    self.used.add("other")
                    place = _shown(head.inner)[0]
                    cells = list(table.columns[place])
                    for i, value in one.others.items():
                        cells[i] = "!" * _opened([head]) + self.line(value)
                    table.columns[place] = cells
            elif one.records is not None:
                below = one is table.under
                inner, lists = self._lists(one, one.records, below)
                head.text += f"[]{'>' if below else ''}{inner}"
                if below:
                    table.below = lists
                elif not table.others and len(lists) > 1 and lists[0][:1] == "[" and len(set(lists)) == 1:
                    self.used |= {"constant", "lists"}
                    head.text += ":" + lists[0]
                else:
                    self.used.add("lists")
                    head.lists = True
                    table.add(head, lists)
            else:
                self._leaf(one, table, head)
        return heads

    def _leaf(self, one: Field, table: _Table, head: _Head) -> None:
        """Spells a column of single values."""
        kinds = set(map(type, one.values))
        if kinds <= SCALARS:
            cells = [codecs.cell(value, table.packed) for value in one.values]
        else:
            cells = [
                codecs.cell(value, table.packed) if type(value) in SCALARS else self.line(value) for value in one.values
            ]
        if Absent in kinds:
            self.used.add("absent")
        allowed = self.kinds - {"constant"} if table.others else self.kinds
        if one is table.keys:
            allowed -= {"steps"}  # an object's members are known by their keys
        codec = codecs.spell(one.values, cells, allowed, table.packed, table.places)
        if codec is not None and codec.kind == "steps":
            other = codecs.spell(one.values, cells, allowed - {"steps"}, table.packed)
            table.counters.append((head, codec, other))
            table.add(head, other.cells if other and other.cells is not None else cells)
            return
        if codec is not None:
            head.text += codec.header
            self._note(codec)
        if codec is None or codec.cells is not None:
            table.add(head, cells if codec is None or codec.cells is None else codec.cells)

    def _note(self, codec: Codec) -> None:
        self.saved[codec.kind] += codec.saved
        self.used.add(codec.kind)

    def _lists(self, one: Field, found: Records, below: bool) -> tuple[str, list[str]]:
        """(head, cells) of a field of lists, or (head, lines) where their rows stand `below` their record."""
        head, rows, _ = self._rows(found, one.places(), packed=not below)
        texts, at = [], 0
        for i, value in enumerate(one.values):
            if type(value) is list and i not in one.others:
                some = rows[at : at + len(value)]
                at += len(value)
                if below:
                    texts.append("".join(["\n " + row.replace("\n", "\n ") for row in some]))
                else:
                    texts.append(f"[{';'.join(some)}]")
            elif below:
                self.used.add("none")
                texts.append("\n =" + ("" if value is ABSENT else self.line(value)))
            elif i in one.others:
                self.used.add("other")
                texts.append("!" + self.line(value))
            else:
                if value is ABSENT:
                    self.used.add("absent")
                texts.append(codecs.cell(value))
        return head, texts


@dataclass
class _Head:
    """A field in a head: its text, the fields within a group, the place of its cells among the table's columns.

    `listed`: the group is a list; `lists`: the cells hold rows; `aside`: the place of cells that may not be needed.
    """

    text: str
    inner: list[_Head] = field(default_factory=list)
    column: int | None = None
    listed: bool = False
    lists: bool = False
    aside: int | None = None


@dataclass
class _Table:
    """A table on its way to text: the records' places in their lists where rows may count on, whether rows share a
    line, whether other elements stand among them, which field's lists stand below, which field holds an object's keys;
    then its columns, those that count on (head, by steps, else by), the lines below."""

    places: Sequence[int] | None
    packed: bool
    others: bool
    under: Field | None
    keys: Field | None
    columns: list[Sequence[str]] = field(default_factory=list)
    counters: list[tuple[_Head, Codec, Codec | None]] = field(default_factory=list)
    below: list[str] = field(default_factory=list)

    def add(self, head: _Head, cells: Sequence[str]) -> None:
        """A column under `head`."""
        head.column = len(self.columns)
        self.columns.append(cells)


def _shown(heads: Sequence[_Head]) -> list[int]:
    """The places of the columns that rows show."""
    places: list[int] = []
    for head in heads:
        if head.inner:
            places += _shown(head.inner)
        elif head.column is not None:
            places.append(head.column)
    return places


def _opened(heads: Sequence[_Head]) -> int:
    """How many groups and lists open at the first cell."""
    for head in heads:
        if _shown([head]):
            return 1 + _opened(head.inner) if head.inner else int(head.lists)
    return 0


def _head_text(heads: Sequence[_Head], listed: bool) -> str:
    text = ",".join([head.text + (_head_text(head.inner, head.listed) if head.inner else "") for head in heads])
    return f"({text})" if listed else f"{{{text}}}"


def _field_lines(heads: Sequence[_Head], columns: Sequence[Sequence[str]], listed: bool) -> str:
    lines = []
    for head in heads:
        if head.inner:
            within = _field_lines(head.inner, columns, head.listed)
            lines.append(head.text + (within if _shown(head.inner) else _head_text(head.inner, head.listed)))
        elif head.column is None:
            lines.append(head.text)
        else:
            lines.append(f"{head.text} = {','.join(columns[head.column]).rstrip(',')}")
    text = "\n".join(lines)
    return f"(\n{text}\n)" if listed else f"{{\n{text}\n}}"


def _joined(items: Sequence[str]) -> str:
    """Items of a list on one line, between blanks where they don't part by themselves."""
    parts: list[str] = []
    for item in items:
        if parts and not (parts[-1][-1] == "}" and item[0] == "{"):
            parts.append(" ")
        parts.append(item)
    return "".join(parts)


def _lines(members: Sequence[str]) -> list[str]:
    """Members of an object that takes several lines: short ones share a line, tables and long ones have their own."""
    lines: list[str] = []
    room = 0
    for member in members:
        alone = "\n" in member or len(member) > _WIDTH // 2
        if alone or len(member) >= room:
            lines.append(member)
            room = 0 if alone else _WIDTH - len(member)
        else:
            lines[-1] += " " + member
            room -= len(member) + 1
    return lines
