"""Prometheus' exposition text and OpenMetrics, line by line, as rows of `metric_points`.

Rules:
- Rows are those of `hyve.formats.prometheus`: labels are `attributes`, "NaN" and the infinities have their
  row and a `value_text`, exemplars are left out.
- A line is surely a sample if its name was declared (`# TYPE`, `# HELP`) or it has labels. "retries 3" may be prose:
  it counts where one in ten of the lines around it, up to any that is no sample, is surely one.
- Times are milliseconds or, as OpenMetrics has them, seconds; their size tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from hyve.formats.prometheus import COUNTERS
from hyve.formats.prometheus import row as metric_row
from hyve.formats.recogniser import Found
from hyve.formats.scalars import Row, instant_ns

_COMMENT = re.compile(r"#[ \t]+(TYPE|HELP|UNIT)[ \t]+(\S+)[ \t]*+(.*)")
_NAME = re.compile(r"[ \t]*+([a-zA-Z_:][\w:.]*+)?[ \t]*+(\{)?", re.ASCII)
_LABEL = re.compile(
    r'[ \t]*+(?:([a-zA-Z_][\w.]*+)|"((?:[^"\\]|\\.)*+)")[ \t]*+(?:=[ \t]*+"((?:[^"\\]|\\.)*+)")?[ \t]*+(?:,|(?=\}))',
    re.ASCII,
)
_VALUE = re.compile(
    r"[ \t]*+([+-]?(?:inf(?:inity)?|nan|(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?))"
    r"(?:[ \t]+(-?\d++(?:\.\d++)?))?[ \t\r]*+(?:#.*)?\Z",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_CLOSE = re.compile(r"[ \t]*+\}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SUFFIXES = ("_total", "_bucket", "_count", "_sum", "_created", "_info")
_KINDS = {"counter": "sum", "gauge": "gauge", "info": "gauge", "stateset": "gauge"}
_LABELLED = re.compile(r'=[ \t]*+"')
_LOOKED_AT = 1_000
"""Lines among which one that looks like this format must be, so that other logs cost nothing."""


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
                self.sure += sample[1]
                if sample[1] and not self.waiting:
                    rows.append(sample[0])
                else:
                    self.waiting.append(sample)
            elif text and not text.isspace():
                rows += self.believed()
        return rows

    def _comment(self, text: str) -> None:
        comment = _COMMENT.match(text)
        if comment is not None:
            what, name, said = comment.groups()
            kind = self.families.types.setdefault(name, "")
            if what == "TYPE" and not kind:
                self.families.types[name] = said.strip().lower()
            elif what == "UNIT":
                self.families.units[name] = said.strip()

    def believed(self) -> list[Row]:
        """The samples that wait, where no other line stands with them: all of them if enough are sure, else those."""
        enough = 10 * self.sure >= self.together
        rows = [row for row, sure in self.waiting if sure or enough]
        self.together = self.sure = 0
        self.waiting = []
        return rows


def _sample(text: str, families: _Families) -> tuple[Row, bool] | None:
    """The row of a line that may be a sample, and whether it surely is one."""
    head = _NAME.match(text)
    if head is None or head.end() == 0:
        return None
    name, at, labels = head[1] or "", head.end(), {}
    if head[2]:
        while (label := _LABEL.match(text, at)) is not None:
            key, quoted, value = label.groups()
            if value is not None:
                labels[key if key is not None else unescaped(quoted)] = unescaped(value)
            elif quoted is not None and not name:
                name = unescaped(quoted)  # a name with other characters stands among the labels
            else:
                return None
            at = label.end()
        closed = _CLOSE.match(text, at)
        if closed is None:
            return None
        at = closed.end()
    family = families.of(name)
    if not name:
        return None
    rest = _VALUE.match(text, at)
    if rest is None or (not head[2] and text[at - 1 : at] not in (" ", "\t")):
        return None
    time = instant_ns(rest[2]) if rest[2] else None
    row = metric_row(time, rest[1], name, labels)
    row["kind"] = _kind(name, families.types.get(family or "", ""), labels)
    row["unit"] = families.units.get(family or "", "")
    return row, bool(labels) or family is not None


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
