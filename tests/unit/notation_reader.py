"""Reads what `hyve.notation.encode` wrote, from the text alone: the proof that nothing is lost.

Written from the rules in the docstrings of `hyve.notation` and `hyve.codecs`, without their code. TOON texts are left
to the `toon-format` package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from dataclasses import field as empty
from typing import Any

import toon_format

from hyve.strictjson import Pairs
from tests.unit.notation_scalars import Steps, moment, scalar, shown, unquote

_TOON_LINE = re.compile(r'("(\\.|[^"\\])*"|[A-Za-z_][\w.]*)?(\[\d+:?\](\{.*\})?)?:( |$)', re.ASCII)
_TABLE = re.compile(r"\[(\d+)\](?=[{(])")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class _Nothing:
    """No value: of a key that the record doesn't have; no key: of the column that holds an object's keys."""


NOTHING, KEYS = _Nothing(), _Nothing()


def read(text: str) -> list[Any]:
    """The values that `text` shows."""
    first, _, rest = text.partition("\n")
    if first.startswith("# ") and rest:
        text, first = rest, rest.partition("\n")[0]
    elif first.startswith("(values)["):
        return list(toon_format.decode(text.removeprefix("(values)")))
    elif _TOON_LINE.match(first):
        return [toon_format.decode(text)]
    elif not re.search(r'[:"{}\[\]\n]', text):
        return [scalar(text)]
    reader = Reader(text)
    reader.blanks()
    if text.startswith("(values):"):
        reader.at = len("(values):")
        values = reader.value()
    elif reader.names_a_member():
        values = [reader.members("")]
    else:
        values = []
        while reader.at < len(text):
            values.append(reader.value())
            reader.blanks()
    reader.blanks()
    assert reader.at == len(text), text[reader.at :]
    return values


def as_object(pairs: list[tuple[Any, Any]]) -> Any:
    """A dict where one can hold the pairs."""
    keys = [key for key, _ in pairs]
    if all(type(key) is str for key in keys) and len(set(keys)) == len(keys):
        return dict(pairs)
    return Pairs(pairs)


@dataclass
class Column:
    """What a head says of one field."""

    name: Any
    kind: str
    codec: Any = None
    fields: list[Column] = empty(default_factory=list)
    listed: bool = False
    single: bool = False


class Reader:
    """A cursor over text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \n,":
            self.at += 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> None:
        assert self.text.startswith(mark, self.at), (mark, self.text[self.at : self.at + 40])
        self.at += len(mark)

    def until(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at]

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        assert match, self.text[self.at : self.at + 40]
        self.at = match.end()
        return unquote(match[0])

    def names_a_member(self) -> bool:
        here = self.at
        try:
            if self.peek() in ("{", "["):
                return False
            self.key()
            return self.peek() == ":"
        finally:
            self.at = here

    def key(self) -> Any:
        if self.peek() == '"':
            return self.string()
        if self.peek() == "(":
            self.take("(")
            value = self.value() if self.peek() in '[{"' else scalar(self.until(")"))
            self.take(")")
            return value
        return self.until(':{}[]," \n()')

    def value(self) -> Any:
        """A value among blanks."""
        self.blanks()
        match = _TABLE.match(self.text, self.at)
        if match:
            self.at = match.end()
            return self.table(int(match[1]))
        if self.peek() == '"':
            return self.string()
        if self.peek() == "{":
            self.take("{")
            value = self.members("}")
            self.take("}")
            return value
        if self.peek() == "[":
            return self.items()
        text = self.until(' \n,[]{}"')
        assert text, self.text[self.at : self.at + 40]
        return scalar(text)

    def members(self, end: str) -> Any:
        pairs = []
        self.blanks()
        while self.at < len(self.text) and self.peek() != end:
            key = self.key()
            self.take(":")
            pairs.append((key, self.value()))
            self.blanks()
        return as_object(pairs)

    def items(self) -> list[Any]:
        self.take("[")
        series = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"\[\]{},;]*?)\.\.').match(self.text, self.at)
        if series:
            codec = self.steps("]")
            self.take("]")
            return codec.all()
        values = []
        self.blanks()
        while self.peek() != "]":
            values.append(self.value())
            self.blanks()
        self.take("]")
        return values

    def steps(self, stops: str) -> Steps:
        if self.peek() == '"':
            first: Any = self.string()
            self.take("..")
            last: Any = self.string() if self.peek() == '"' else None
            rest = self.until(stops)
        else:
            text = self.until(stops)
            start, _, rest = text.partition("..")
            first = scalar(start)
            bare, by, step = rest.partition(" by ")
            last, rest = (scalar(bare) if bare else None), by + step
        return Steps(first, last, rest.removeprefix(" by "))

    def bracket(self) -> str:
        """The text from a bracket to the one that closes it."""
        start, depth = self.at, 0
        while True:
            if self.peek() == '"':
                self.string()
                continue
            depth += (self.peek() in "[{") - (self.peek() in "]}")
            self.at += 1
            if not depth:
                return self.text[start : self.at]

    # Heads

    def head(self) -> list[Column]:
        """The fields between braces or parentheses."""
        end = "}" if self.peek() == "{" else ")"
        self.at += 1
        fields = []
        while self.peek() != end:
            if self.peek() == ",":
                self.at += 1
            fields.append(self.column())
        self.at += 1
        return fields

    def column(self, columns: list[list[str]] | None = None) -> Column:
        if self.text.startswith("(key)", self.at):
            self.take("(key)")
            name: Any = KEYS
        else:
            name = self.string() if self.peek() == '"' else self.until(":{}[](), ")
        single = self.text.startswith("[1]", self.at)
        self.at += 3 * single
        if self.peek() in ("{", "("):
            listed = self.peek() == "("
            lines = columns is not None and self.text[self.at + 1] == "\n"
            fields = self.field_lines(columns) if lines else self.head()
            return Column(name, "group", fields=fields, listed=listed, single=single)
        if self.peek() == "[":
            self.take("[]")
            below = self.peek() == ">"
            self.at += below
            listed = self.peek() == "("
            one = Column(name, "below" if below else "lists", fields=self.head(), listed=listed)
            if self.peek() == ":":
                self.take(":")
                return Column(name, "constant", rows_in(one, self.bracket()))
            return one
        if self.peek() != ":":
            return Column(name, "plain")
        self.take(":")
        return self.codec(name, ",})" if columns is None else "\n")

    def codec(self, name: str, stops: str) -> Column:
        start = self.at
        if self.peek() == "{":
            codes = self.value()
            return Column(name, "codes", codes) if codes else Column(name, "constant", codes)
        if self.peek() == "[":
            return Column(name, "constant", self.value())
        if self.peek() == '"':
            text = self.string()
            if self.text.startswith("..", self.at):
                self.at = start
                return Column(name, "steps", self.steps(stops))
            if "*" in text:
                before, behind = text.split("*")
                return Column(name, "affix", (before, behind, True))
            return Column(name, "constant", text)
        text = self.until(stops)
        if stops == "\n":
            text, equals, cells = text.partition(" = ")
            self.at -= len(equals + cells)
        if "*" in text:
            before, behind = text.split("*")
            return Column(name, "affix", (before, behind, False))
        if "<" in text:
            return Column(name, "time", text)
        if ".." in text:
            self.at = start
            return Column(name, "steps", self.steps(stops))
        return Column(name, "constant", scalar(text))

    # Rows

    def table(self, count: int) -> Any:
        listed = self.peek() == "("
        if self.text[self.at + 1 : self.at + 2] == "\n":
            columns: list[list[str]] = []
            fields = self.field_lines(columns)
            rows = [[column[i] if i < len(column) else "" for column in columns] for i in range(count)]
            return keyed(fields, [record(fields, listed, Cells(cells), i, None) for i, cells in enumerate(rows)])
        fields = self.head()
        shown = any(holds_rows(one) for one in fields)
        if not shown:
            records = [record(fields, listed, Cells([]), place, None) for place in range(count)]
        else:
            self.take("\n")
            records = [self.row(fields, listed, place, "") for place in range(count)]
        return keyed(fields, records)

    def field_lines(self, columns: list[list[str]]) -> list[Column]:
        """A line per field, with its cells."""
        end = "\n}" if self.peek() == "{" else "\n)"
        self.at += 1
        fields = []
        while not self.text.startswith(end, self.at):
            self.take("\n")
            fields.append(self.column(columns))
            if self.text.startswith(" = ", self.at):
                self.take(" = ")
                columns.append(split(self.until("\n"), ","))
        self.take(end)
        return fields

    def line(self) -> str:
        line = self.until("\n")
        self.at = min(self.at + 1, len(self.text))
        return line

    def row(self, fields: list[Column], listed: bool, place: int, indent: str) -> Any:
        line = self.line().removeprefix(indent)
        label = label_of(fields, place) if any(map(holds_rows, fields)) else None
        if label is not None:
            assert line.startswith(label + ":"), (line, label)
            line = line[len(label) + 1 :]
        if line.startswith("!" * opened(fields, 1)):
            return whole(line.lstrip("!"))
        return record(fields, listed, Cells(split(line, ",")), place, lambda one: self.below(one, indent + " "))

    def below(self, one: Column, indent: str) -> Any:
        """The rows under a record."""
        records: list[Any] = []
        while self.text.startswith(indent, self.at):
            if self.text.startswith(indent + "=", self.at):
                text = self.line()[len(indent) + 1 :]
                return whole(text) if text else NOTHING
            records.append(self.row(one.fields, one.listed, len(records), indent))
        return records


def keyed(fields: list[Column], records: list[Any]) -> Any:
    """The records, or the object whose members they are."""
    if fields and fields[0].name is KEYS:
        return {one.pop(KEYS): one for one in records}
    return records


def whole(text: str) -> Any:
    """A value that takes a whole cell or line."""
    reader = Reader(text)
    value = reader.value()
    assert reader.at == len(text), text
    return value


def holds_rows(one: Column) -> bool:
    """Whether rows, or those under them, show the field."""
    if one.kind == "group":
        return any(map(holds_rows, one.fields))
    return one.kind not in ("constant", "steps")


def opened(fields: list[Column], count: int) -> int:
    """How many records, groups and lists open at the first cell."""
    for one in fields:
        if not width(one):
            continue
        if one.kind == "group":
            return opened(one.fields, count + 1)
        return count + (one.kind == "lists")
    return count


def label_of(fields: list[Column], place: int) -> str | None:
    """What a row begins with that counts on."""
    if place % 5 != 4:
        return None
    for one in fields:
        if one.kind == "steps":
            value = one.codec.at(place)
            return shown(value)
        inner = label_of(one.fields, place) if one.kind == "group" else None
        if inner is not None:
            return inner
    return None


class Cells:
    """The cells of a row, one after the other."""

    def __init__(self, cells: list[str]) -> None:
        self.cells = cells

    def next(self) -> str:
        return self.cells.pop(0) if self.cells else ""

    def peek(self) -> str:
        return self.cells[0] if self.cells else ""


def split(text: str, mark: str) -> list[str]:
    """Cells or rows, where marks in quotes and brackets don't count: those that open a cell, and what they hold.

    Rows that share a line (`mark` is `;`) have their cells between commas.
    """
    parts, start, at, depth = [], 0, 0, 0
    opens = True
    while at < len(text):
        here = text[at]
        if (opens or depth) and here == '"':
            match = _STRING.match(text, at)
            assert match, text
            at = match.end()
            opens = False
            continue
        if (opens or depth) and here in "[{":
            depth += 1
        elif here in "]}" and depth:
            depth -= 1
        elif here == mark and not depth:
            parts.append(text[start:at])
            start = at + 1
        opens = here == mark or (mark == ";" and here == ",") or (opens and here == "!")
        at += 1
    parts.append(text[start:])
    return parts


def record(fields: list[Column], listed: bool, cells: Cells, place: int, below: Any) -> Any:
    if listed:
        return [take(one, cells, place, below)[0] for one in fields]
    result = {}
    for one in fields:
        value, _ = take(one, cells, place, below)
        if value is not NOTHING:
            result[one.name] = value
    return result


def take(one: Column, cells: Cells, place: int, below: Any) -> tuple[Any, bool]:
    """The value of a field, and whether its cell (if any) was filled."""
    if one.kind == "constant":
        return one.codec, True
    if one.kind == "steps":
        return one.codec.at(place), True
    if one.kind == "below":
        return below(one), True
    if one.kind == "group":
        if width(one) and cells.peek().startswith("!" * opened(one.fields, 1)):
            value = whole(cells.peek().lstrip("!"))
            for _ in range(width(one)):
                cells.next()
            return value, True
        result, filled = {}, False
        for inner in one.fields:
            value, _ = take(inner, cells, place, below)
            if value is not NOTHING:
                result[inner.name] = value
                filled = True
        if one.listed:
            return list(result.values()), True
        if one.single and filled:
            return [result], True
        return (result if filled else NOTHING), filled
    text = cells.next()
    if not text:
        return NOTHING, False
    if one.kind == "lists":
        if text.startswith("!"):
            return whole(text[1:]), True
        if not text.startswith("["):
            return single(text), True
        return rows_in(one, text), True
    if one.kind == "affix":
        if text == "null":
            return None, True
        before, behind, is_text = one.codec
        joined = before + (unquote(text) if text[0] == '"' else text) + behind
        return (joined if is_text else scalar(joined)), True
    if one.kind == "time":
        return (None if text == "null" else moment(one.codec, text)), True
    if one.kind == "codes" and text in one.codec:
        return one.codec[text], True
    return single(text), True


def width(one: Column) -> int:
    """How many cells of a row show the field."""
    if one.kind == "group":
        return sum(map(width, one.fields))
    return int(one.kind not in ("constant", "steps", "below"))


def rows_in(one: Column, text: str) -> list[Any]:
    """The rows that stand between brackets."""
    rows = split(text[1:-1], ";") if text != "[]" else []
    return [packed_row(one, row, i) for i, row in enumerate(rows)]


def packed_row(one: Column, row: str, place: int) -> Any:
    if row.startswith("!" * opened(one.fields, 1)):
        return whole(row.lstrip("!"))
    return record(one.fields, one.listed, Cells(split(row, ",")), place, None)


def single(text: str) -> Any:
    """A plain cell."""
    if text[0] == '"':
        return unquote(text)
    return whole(text) if text[0] in "[{" else scalar(text)
