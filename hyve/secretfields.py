"""Where the values of fields that keep secrets stand in a text: JSON, YAML, CSV, Kubernetes Secrets.

Rules:
- Their names tell which fields do (`hyve.secretnames`). All values under `data` and `stringData` of a Kubernetes Secret
  are secrets, and of the items of a SecretList, which don't say their kind.
- Spans never overlap and come in the text's order. All is linear in the text; broken syntax ends what it stands in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hyve.secretnames import WAYS, below, held, inner_label, keeps, label_of


class Span(NamedTuple):
    """Where a secret stands, and what it is."""

    start: int
    end: int
    label: str


KUBERNETES: Final = re.compile(r"kind\\{0,15}[\"']?\s{0,4}:\s{0,4}\\{0,15}[\"']?Secret(?:List)?\b")
"""What tells that there may be a Kubernetes Secret."""
SECRET, LISTED = "Secret", "SecretList"
"""Kinds of a Kubernetes Secret and of a list of them."""
KEPT: Final = ("data", "stringData")
"""Fields of a Kubernetes Secret that keep secrets."""
_TOKENS = {
    mark: re.compile(rf"(?<!\\)(\\*+){mark}|[{{}}\[\],]|(?<![\w.])-?\d[\w.+-]{{0,40}}+|\n(?=[^\s}}\],\"'])")
    for mark in "\"'"
}
_QUOTES = {mark: re.compile(rf"(?<!\\)(\\*+){mark}|\n") for mark in "\"'"}
_COLON = re.compile(r"\s{0,20}:")
_DEEPEST = 15


@dataclass(slots=True)
class _Frame:
    """An object or a list of JSON: what it holds, the field that is read, its `kind`, which values stand under `data`,
    and which do so in its items."""

    closes: str
    holds: str
    first: int
    key: str = ""
    kind: str = ""
    kept: list[range] = field(default_factory=list)
    below: list[range] = field(default_factory=list)

    def says(self) -> str:
        """What a value here is."""
        if self.closes == "}":
            return inner_label(self.key, self.holds) if self.key else ""
        return self.holds if self.holds not in WAYS else ""

    def opens(self, char: str, first: int) -> _Frame:
        """An object or a list within."""
        return _Frame("}" if char == "{" else "]", below(self.key if self.closes == "}" else "", self.holds), first)


class _Json:
    """Reads JSON, also where it is broken or stands in free text, for the secrets in it."""

    def __init__(self, text: str, level: int, mark: str) -> None:
        self.text, self.level, self.mark = text, level, mark
        self.values: list[Span] = []
        self.names: list[str] = []
        self.inside: list[Span] = []
        self.kept: list[range] = []
        self.stack: list[_Frame] = []

    def read(self, start: int, end: int, holds: str) -> int:
        """Reads to `end`, or with `holds` to the end of the object or list at `start`. Returns where that is."""
        place, stack, search = start, self.stack, _TOKENS[self.mark].search
        while token := search(self.text, place, end):
            place = token.end()
            char = token[0]
            if token[1] is not None:
                place = self._string(token, end)
            elif char in "{[":
                stack.append(
                    stack[-1].opens(char, len(self.values)) if stack else _Frame("}" if char == "{" else "]", holds, 0)
                )
            elif char in "}]":
                if stack and stack[-1].closes == char:
                    self._close()
            elif char == ",":
                if stack and stack[-1].closes == "}":
                    stack[-1].key = ""
            elif char == "\n":  # a line that is no JSON
                while stack:
                    self._close()
            else:
                self._value(token.start(), place)
            if holds and not stack:
                end = place
                break
        while stack:
            self._close()
        return end

    def _string(self, opened: re.Match[str], end: int) -> int:
        """Reads a string; returns where to go on."""
        start, unit = opened.end(), 2 * self.level + 2
        if len(opened[1]) % unit != self.level:
            return start
        for quote in _QUOTES[self.mark].finditer(self.text, start, end):
            if quote[1] is None:
                return quote.start()
            if len(quote[1]) % unit == self.level:
                last, place = quote.end() - 1 - self.level, quote.end()
                break
        else:
            last = place = end
        if self.stack and _COLON.match(self.text, place):
            self.stack[-1].key = self.text[start:last]
        else:
            self._value(start, last)
        if self.level < _DEEPEST and KUBERNETES.search(self.text, start, last):
            reader = _Json(self.text, 2 * self.level + 1, self.mark)
            reader.read(start, last, "")
            self.inside += reader.secrets()
            self.inside += yaml_secrets(self.text, _ESCAPED_LINE, start, last)
        return place

    def _value(self, start: int, end: int) -> None:
        if self.stack:
            frame = self.stack[-1]
            if frame.key == "kind":
                frame.kind = self.text[start : min(end, start + 40)]
            self.values.append(Span(start, end, frame.says()))
            self.names.append(frame.key)

    def _close(self) -> None:
        frame = self.stack.pop()
        if frame.kind == SECRET:
            self.kept += frame.kept
        elif frame.kind == LISTED:
            self.kept += frame.below
        if not self.stack:
            return
        above = self.stack[-1]
        if frame.closes == "}" and above.closes == "]":  # an item, of a list whose kind may come later
            above.below += frame.kept
        elif frame.closes == "]" and above.key == "items":
            above.below += frame.below
        if above.key in KEPT:
            above.kept.append(range(frame.first, len(self.values)))

    def secrets(self) -> list[Span]:
        """What was found, in the text's order."""
        kept = bytearray(len(self.values))
        for run in _disjoint(self.kept):
            kept[run.start : run.stop] = b"\1" * len(run)
        found = [
            Span(start, end, says or "password")
            for (start, end, says), name, whole in zip(self.values, self.names, kept, strict=True)
            if end > start and (whole or (says and keeps(says, self.text[start:end], name)))
        ]
        return apart([*found, *self.inside])


def json_secrets(text: str) -> list[Span]:
    """The secrets of all JSON in a text."""
    reader = _Json(text, 0, '"')
    reader.read(0, len(text), "")
    return reader.secrets()


def json_field(text: str, at: int, level: int, mark: str, name: str) -> tuple[list[Span], int]:
    """The secrets of the object or list at `at`, in a field of this name, and where it ends."""
    reader = _Json(text, level, mark)
    end = reader.read(at, len(text), held(name))
    return reader.secrets(), end


def _disjoint(runs: Iterable[range]) -> Iterator[range]:
    """Runs in order, without what an earlier one has."""
    last = 0
    for run in sorted(runs, key=lambda run: run.start):
        first = max(run.start, last)
        if first < run.stop:
            yield range(first, run.stop)
            last = run.stop


def apart(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, without those that others cover."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not found or span.start >= found[-1].end:
            found.append(span)
    return found


_LEAD = r"(?P<lead>[ ]{0,400}(?:-[ ]{1,20})*)"
_LINE = re.compile(_LEAD + r"(?P<rest>[^\r\n]*)(?:\r\n?|\n|\Z)")
_ESCAPED_LINE = re.compile(_LEAD + r"(?P<rest>(?:[^\r\n\\]|\\++(?!n))*+)(?:\\++n|\r|\n|\Z)")
"""A line of YAML within a string of JSON."""
_ENTRY = re.compile(r"[\"']?(?P<key>[\w./-]{1,253})[\"']?:(?:[ \t]{1,40}(?P<value>\S.*)|\s*)\Z", re.DOTALL)
_BLOCK = re.compile(r"[|>][+-]?\d?\s*|[&!]\S*\s*")


def yaml_secrets(text: str, lines_of: re.Pattern[str] = _LINE, start: int = 0, stop: int = sys.maxsize) -> list[Span]:
    """The secrets of the Kubernetes Secrets in YAML."""
    lines: list[tuple[int, int]] = []
    """Where the scalar of each line stands."""
    kept: list[range] = []
    stack: list[_Mapping] = []
    for line in lines_of.finditer(text, start, stop):
        lead, rest = line["lead"], line["rest"]
        if line.end() == line.start():
            break
        entry = _ENTRY.match(rest)
        at = line.start("rest")
        lines.append(
            (
                at + entry.start("value") if entry and entry["value"] else at,
                0 if entry and not entry["value"] else at + len(rest),
            )
        )
        if not rest.strip() or rest.startswith("#"):
            lines[-1] = (at, 0)
            continue
        column = len(lead)
        first = column - len(lead.lstrip(" "))
        item = "-" in lead
        while stack and (stack[-1].column > column or rest.startswith("---") or (item and stack[-1].column > first)):
            closed = stack.pop()
            closed.close(len(lines) - 1, kept, stack[-1] if stack else None)
        if not entry:
            if stack and stack[-1].column == column and not item:
                stack[-1].end(len(lines) - 1)
            continue
        if not stack or stack[-1].column < column:
            stack.append(_Mapping(column))
        mapping = stack[-1]
        mapping.end(len(lines) - 1)
        key, value = entry["key"], (entry["value"] or "").strip().strip("\"'")
        if key == "kind":
            mapping.kind = value
        if key in KEPT:
            mapping.begun = len(lines) - (1 if value and not _BLOCK.fullmatch(value) else 0)
    while stack:
        closed = stack.pop()
        closed.close(len(lines), kept, stack[-1] if stack else None)
    found: list[Span] = []
    for run in _disjoint(kept):
        for first, end in lines[run.start : run.stop]:
            if end and not _BLOCK.fullmatch(text[first:end].rstrip()):
                found.append(_scalar(text, first, end, "password"))
    return [span for span in found if span.end > span.start]


def _scalar(text: str, first: int, end: int, label: str) -> Span:
    """A scalar of YAML without its quotes."""
    value = text[first:end].rstrip()
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return Span(first + quoted, first + len(value) - quoted, label)


_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|(?:[^\s]|\s(?!#))*+)\s++#.*", re.DOTALL)


def yaml_field(text: str, start: int) -> tuple[list[Span], int]:
    """The secrets in the block of YAML below the key that stands alone on the line at `start`, and where it ends."""
    head = _LINE.match(text, start)
    entry = _ENTRY.match(head["rest"]) if head else None
    if head is None or entry is None or not held(entry["key"]):
        return [], start
    found: list[Span] = []
    above = [(len(head["lead"]), held(entry["key"]))]
    """Column of each key that a block stands below, and what that holds."""
    block = (len(head["lead"]), above[0][1]) if entry["value"] else None
    if block and not _BLOCK.fullmatch(entry["value"]):
        return [], head.end()
    place = head.end()
    while (line := _LINE.match(text, place)) and line.end() > place:
        lead, rest, at = line["lead"], line["rest"], line.start("rest")
        column = len(lead)
        indent = column - len(lead.lstrip(" "))
        if block and rest.strip() and indent > block[0]:  # a text of many lines
            if block[1] not in ("", *WAYS):
                found.append(_scalar(text, line.start() + indent, line.end("rest"), block[1]))
        elif rest.strip() and not rest.startswith("#"):
            block = None
            item = "-" in lead
            if indent < above[0][0] or (indent == above[0][0] and not item):
                break
            while len(above) > 1 and above[-1][0] >= column:
                above.pop()
            comment = _COMMENT.fullmatch(rest)
            entry = _ENTRY.match(rest)
            holds = above[-1][1]
            if entry is None:
                if not item:
                    break  # no YAML
                if holds not in ("", *WAYS) and rest[0] not in "[{" and " " not in (comment[1] if comment else rest):
                    found.append(_scalar(text, at, comment.end(1) + at if comment else line.end("rest"), holds))
            else:
                inside = inner_label(entry["key"], holds)
                if not entry["value"] or _BLOCK.fullmatch(entry["value"]):
                    above.append((column, below(entry["key"], holds)))
                    block = (column, inside) if entry["value"] else None
                elif inside and entry["value"][0] not in "[{":
                    end = at + (comment.end(1) if comment else len(rest))
                    found.append(_scalar(text, at + entry.start("value"), end, inside))
        place = line.end()
    return [span for span in found if keeps(span.label, text[span.start : span.end])], place


@dataclass(slots=True)
class _Mapping:
    """A mapping of YAML that is read: its column, its `kind`, where `data` began, its lines under that, and those of
    the mappings in its lists."""

    column: int
    kind: str = ""
    begun: int = -1
    kept: list[range] = field(default_factory=list)
    below: list[range] = field(default_factory=list)

    def end(self, line: int) -> None:
        if self.begun >= 0:
            self.kept.append(range(self.begun, line))
        self.begun = -1

    def close(self, line: int, kept: list[range], above: _Mapping | None) -> None:
        self.end(line)
        if self.kind == SECRET:
            kept += self.kept
        elif self.kind == LISTED:
            kept += self.below
        if above is not None:
            above.below += self.kept


_HEADER = re.compile(r"NAME([,;\t|])NAME(?:\1NAME)*+\r?\n".replace("NAME", r"\"?[A-Za-z_][\w .@/-]{0,60}\"?"))
_CELLS = {
    sign: re.compile(rf"(?:\"((?:[^\"]|\"\"){{0,4000}}+)\"|([^{re.escape(sign)}\r\n]*+))({re.escape(sign)}|\r?\n|\Z)")
    for sign in ",;\t|"
}


def csv_secrets(text: str, start: int) -> tuple[list[Span], int]:
    """The secrets in columns of the table whose head is the line at `start`, and where it ends."""
    head = _HEADER.match(text, start)
    if head is None:
        return [], start
    names = [name.strip().strip('"') for name in head[0].rstrip("\r\n").split(head[1])]
    labels = [label_of(name) for name in names]
    cells = _CELLS[head[1]]
    found: list[Span] = []
    place = head.end()
    while place < len(text):
        row: list[Span] = []
        at = place
        for says in labels:
            cell = cells.match(text, at)
            if cell is None or (cell[3] == head[1]) != (len(row) < len(labels) - 1):
                return found, place
            group = 1 if cell[1] is not None else 2
            row.append(Span(*cell.span(group), says))
            at = cell.end()
        found += [
            span
            for span, name in zip(row, names, strict=True)
            if span.label and span.end > span.start and keeps(span.label, text[span.start : span.end], name)
        ]
        place = at
    return found, place
