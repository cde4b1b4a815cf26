"""Prometheus' exposition text and OpenMetrics, line by line, as rows of `metric_points`.

Rules:
- Rows are those of `hyve.formats.prometheus`: labels are `attributes`, "NaN" and the infinities have their
  row and a `value_text`, exemplars are left out.
- A line is surely a sample if its name was declared (`# TYPE`, `# HELP`) or it has labels. "retries 3" may be prose:
  it counts where one in ten of the lines around it, up to any that is no sample, is surely one, or the lines before
  that one count and all that ends them is one name with something that is no number.
- Times are milliseconds or, as OpenMetrics has them, seconds; their size tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from hyve.formats.prometheus import COUNTERS
from hyve.formats.prometheus import row as metric_row
from hyve.formats.recogniser import Found
from hyve.formats.scalars import Row, instant_ns

_COMMENT = re.compile(r"#[ \t]*+(TYPE|HELP|UNIT)[ \t]++(\S++)[ \t]*+(.*)", re.DOTALL)
_NAME = re.compile(r"[ \t]*+([a-zA-Z_:][\w:.]*+)?[ \t]*+(\{)?", re.ASCII)
_LABEL = re.compile(
    r'[ \t]*+(?:([a-zA-Z_][\w.]*+)|"((?:[^"\\]|\\.)*+)")[ \t]*+(?:=[ \t]*+"((?:[^"\\]|\\.)*+)")?[ \t]*+(?:,|(?=\}))',
    re.ASCII,
)
_VALUE = re.compile(
    r"[ \t]*+([+-]?(?:inf(?:inity)?|nan|(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?))"
    r"(?:[ \t]+(-?\d++(?:\.\d++)?))?[ \t\r]*+(?:#[ \t]*+(?:(\{.*\S)\s*|.*))?\Z",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_CLOSE = re.compile(r"[ \t]*+\}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SUFFIXES = ("_total", "_bucket", "_count", "_sum", "_created", "_info")
_KINDS = {"counter": "sum", "gauge": "gauge", "info": "gauge", "stateset": "gauge"}
_NO_NUMBER = re.compile(r"[ \t]*+[a-zA-Z_:][\w:.]*+[ \t]++\S++[ \t\r]*+\Z", re.ASCII)
_LABELLED = re.compile(r'=[ \t]*+"')
_LOOKED_AT = 1_000
"""Lines among which one that looks like this format must be, so that other logs cost nothing."""


@dataclass
class Sample:
    """A sample as it is written: its labels with escapes undone, all else as text, "" for what isn't there."""

    name: str
    labels: dict[str, str]
    value: str
    timestamp: str = ""
    exemplar: str = ""


def read_sample(text: str) -> Sample | None:
    """The sample that a line says, if it may be one; its name may be "" then, or stand among the labels."""
    head = _NAME.match(text)
    if head is None or head.end() == 0:
        return None
    name, at, labels = head[1] or "", head.end(), {}
    if head[2]:
        found = read_labels(text, at)
        if found is None or (name and found[1]):
            return None
        labels, at = found[0], found[2]
        name = name or found[1] or labels.get("__name__", "")
    rest = _VALUE.match(text, at)
    if rest is None or (not head[2] and text[at - 1 : at] not in (" ", "\t")):
        return None
    return Sample(name, labels, rest[1], rest[2] or "", rest[3] or "")


def read_labels(text: str, at: int) -> tuple[dict[str, str], str, int] | None:
    """(the labels behind the brace that ends at `at`, the name that stands among them or "", where the closing brace
    ends); None where anything else stands there."""
    labels, name = {}, ""
    while (label := _LABEL.match(text, at)) is not None:
        key, quoted, value = label.groups()
        if value is not None:
            labels[key if key is not None else unescaped(quoted)] = unescaped(value)
        elif quoted is not None and not name:
            name = unescaped(quoted)  # one with other characters
        else:
            return None
        at = label.end()
    closed = _CLOSE.match(text, at)
    return None if closed is None else (labels, name, closed.end())


def read_comment(text: str) -> tuple[str, str, str] | None:
    """(TYPE, HELP or UNIT; of which metric; what a comment says), or None."""
    comment = _COMMENT.match(text)
    if comment is None:
        return None
    what, metric, said = comment.groups()
    return what, metric, unescaped(said.rstrip()) if what == "HELP" else said.rstrip()


def is_exposition(sample: list[str]) -> bool:
    """Whether some lines of a text are such: nearly all that are no comments."""
    told = sum(read_comment(text) is not None for text in sample)
    series = [found for text in sample if text[:1] != "#" and (found := read_sample(text))]
    plain = sum(text[:1] != "#" for text in sample)
    certain = told or any(found.labels for found in series)
    return bool(certain) and 10 * len(series) >= 9 * plain and told + len(series) >= 2


def line_fields(text: str) -> dict[str, Any] | None:
    """What a line of exposition text carries by the names that `hyve.lines` gives it, or None."""
    if text[:1] == "#":
        comment = read_comment(text)
        return {"metric": comment[1], comment[0].lower(): comment[2]} if comment else None
    sample = read_sample(text)
    return {key: value for key, value in vars(sample).items() if value != ""} if sample else None


@dataclass
class _Families:
    """What the comments said of each metric family."""

    types: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str | None:
        """The declared family of a sample's name, which may have a suffix of its own."""
        if name in self.types:
            return name
        for suffix in _SUFFIXES:
            if name.endswith(suffix) and name.removesuffix(suffix) in self.types:
                return name.removesuffix(suffix)
        return None


def read_lines(runs: Callable[[], Iterator[Sequence[str]]]) -> Iterator[Found]:
    """The relations of those lines of a text that are samples, run by run. Lines of anything else are passed over."""
    if not any(map(_may_be_one, islice(chain.from_iterable(runs()), _LOOKED_AT))):
        return
    reader = _Reader()
    for texts in runs():
        rows = reader.read(texts)
        if rows:
            yield Found({"metric_points": rows})
        del texts, rows  # the next ones are made now
    if rest := reader.believed():
        yield Found({"metric_points": rest})


def _may_be_one(text: str) -> bool:
    return text.startswith("# TYPE ") or ("{" in text and _LABELLED.search(text) is not None)


class _Reader:
    """Reads lines in their order. Rows that may be prose wait for the end of the lines that stand together."""

    def __init__(self) -> None:
        self.families = _Families()
        self.together = self.sure = 0
        self.odd = self.trusted = False  # whether the last line was no sample; whether the lines before it count
        self.waiting: list[tuple[Row, bool]] = []

    def read(self, texts: Sequence[str]) -> list[Row]:
        """The rows of the next lines, and of earlier ones that have waited for them."""
        rows: list[Row] = []
        for text in texts:
            if text[:1] == "#":
                self._comment(text)
                continue
            sample = _sample(text, self.families)
            if sample is not None:
                self.together += 1
                self.odd = False
                self.sure += sample[1]
                if sample[1] and not self.waiting:
                    rows.append(sample[0])
                else:
                    self.waiting.append(sample)
            elif text and not text.isspace():
                rows += self.believed()
                self.trusted &= not self.odd and _NO_NUMBER.match(text) is not None
                self.odd = True
        return rows

    def _comment(self, text: str) -> None:
        comment = read_comment(text)
        if comment is not None:
            what, name, said = comment
            kind = self.families.types.setdefault(name, "")
            if what == "TYPE" and not kind:
                self.families.types[name] = said.lower()
            elif what == "UNIT":
                self.families.units[name] = said

    def believed(self) -> list[Row]:
        """The samples that wait, where no other line stands with them: all of them if enough are sure, else those."""
        enough = self.trusted or 10 * self.sure >= self.together
        self.trusted |= enough and self.sure > 0
        rows = [row for row, sure in self.waiting if sure or enough]
        self.together = self.sure = 0
        self.waiting = []
        return rows


def _sample(text: str, families: _Families) -> tuple[Row, bool] | None:
    """The row of a line that may be a sample, and whether it surely is one."""
    sample = read_sample(text)
    if sample is None or not sample.name:
        return None
    name, family = sample.name, families.of(sample.name)
    labels = {key: value for key, value in sample.labels.items() if key != "__name__"}
    row = metric_row(instant_ns(sample.timestamp), sample.value, name, labels)
    row["kind"] = _kind(name, families.types.get(family or "", ""), labels)
    row["unit"] = families.units.get(family or "", "")
    return row, bool(sample.labels) or family is not None


def _kind(name: str, declared: str, labels: dict[str, str]) -> str:
    """As `hyve.formats.prometheus` tells it by the name, where the comments don't say more."""
    if declared == "summary" and "quantile" in labels:
        return "summary"
    if declared in _KINDS:
        return _KINDS[declared]
    return "sum" if name.endswith(COUNTERS) else "gauge"


def unescaped(text: str) -> str:
    """What the text of a help, or of a label in quotes, stands for."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], text)
