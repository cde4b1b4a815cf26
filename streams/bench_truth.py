"""What a prompt over an input must show, and whether it does: entries looked for, entities, means (H17-H19).

Rules:
- A needle is shown where all texts of one of its ways stand in one line. A column that lists the value somewhere is not
  enough, and neither is a template with the value taken out.
- An entity is named by its whole name: `auth` is not named by `auth-5`, nor `10.0.0.3:9100` by `10.0.0.31:9100`.
- A mean is right where a line that names its entity holds a number that equals it, rounded to the digits shown: four or
  more (or four decimals) where the line speaks of a mean, six or more elsewhere, since a value may look like a mean. It
  is wrong where that line only has other numbers called "mean", "avg" or "average".
- A line break inside a JSON text (backslash, n) is a line break.
- What the question itself says does not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

QUESTION = "Which entries look abnormal, and what is the average per service?"
_MOST_NAMES = 100
"""A kind of entity with more names than this is no small dimension."""
_SERVICES = frozenset({"service", "service.name", "service_name", "serviceName", "app"})
_NAMESPACES = frozenset({"namespace", "k8s.namespace.name"})
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MEAN = re.compile(r"\b(?:mean|avg|average)\b")
_CALLED_MEAN = re.compile(r"\b(?:mean|avg|average)\W{0,3}(-?\d[\d.]*)")

Needle = tuple[tuple[str, ...], ...]
"""An entry that must be shown: its ways of being shown, each the texts that must stand in one line."""


@dataclass(frozen=True)
class Truth:
    """What is known of an input. `entities` are names by kind, `means` are of an entity's (or a column's) values."""

    needles: tuple[Needle, ...] = ()
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One input and the question asked of it. `value` is its parsed JSON (a list of them for JSON lines), or None."""

    name: str
    data: bytes
    question: str = QUESTION
    truth: Truth = Truth()
    value: Any = None


@dataclass(frozen=True)
class Verdict:
    """How much of a truth a text shows; each list holds what is missing."""

    needles: int
    needles_missing: tuple[str, ...]
    named: int
    unnamed: tuple[str, ...]
    means: int
    means_absent: tuple[str, ...]
    means_wrong: tuple[str, ...]


def judge(truth: Truth, text: str, question: str) -> Verdict:
    """Holds `text`, a prompt for `question`, against `truth`."""
    if question:
        text = text.replace(question, "")
    lines = text.replace("\\n", "\n").split("\n")
    missing = tuple(
        " ".join(needle[0]) for needle in truth.needles if not any(_in_one_line(way, lines) for way in needle)
    )
    names = [name for kind in truth.entities.values() for name in kind]
    unnamed = tuple(name for name in names if not any(_with(name, lines)))
    means = {name: _mean_state(name, mean, lines) for name, mean in truth.means.items()}
    by_state = {state: tuple(n for n, s in means.items() if s == state) for state in ("right", "absent", "wrong")}
    return Verdict(
        len(truth.needles) - len(missing),
        missing,
        len(names) - len(unnamed),
        unnamed,
        len(by_state["right"]),
        by_state["absent"],
        by_state["wrong"],
    )


def _in_one_line(texts: Sequence[str], lines: Sequence[str]) -> bool:
    first, *others = texts
    patterns = [_pattern(text) for text in others]
    return any(all(pattern.search(line) for pattern in patterns) for line in _with(first, lines))


def _with(text: str, lines: Sequence[str]) -> Iterator[str]:
    """The lines that hold `text` as a whole."""
    pattern, small = _pattern(text), text.lower()
    return (line for line in lines if small in line.lower() and pattern.search(line))


def _pattern(text: str) -> re.Pattern[str]:
    """Finds `text` where it is no piece of a longer name or number; a decimal number may end in more zeros, and a
    column may have a prefix that ends in an underscore."""
    before = r"(?<![\d.])" if text[0].isdigit() else r"(?<![^\W_])(?<!-)"
    zeros = "0*" if re.fullmatch(r"-?\d+\.\d+", text) else ""
    return re.compile(f"{before}{re.escape(text)}{zeros}(?![\\w-])(?!\\.\\d)", re.IGNORECASE)


def _mean_state(name: str, mean: float, lines: Sequence[str]) -> Literal["right", "absent", "wrong"]:
    called = []
    for line in _with(name, lines):
        told = bool(_MEAN.search(line))
        for number in _NUMBER.findall(line):
            decimals = len(number.partition(".")[2])
            precise = len(number.lstrip("-0.").replace(".", "")) >= (4 if told else 6)
            if (precise and float(number) == round(mean, decimals)) or (told and float(number) == round(mean, 4)):
                return "right"
        called += _CALLED_MEAN.findall(line)
    return "wrong" if called else "absent"


def entities(value: Any) -> dict[str, tuple[str, ...]]:
    """The entities of parsed JSON by kind: services, namespaces, resources (OTLP) and series (Prometheus, Loki).

    A resource or a series is known by the first label that tells all of them apart. Kinds of more than a hundred names
    are left out.
    """
    services: dict[str, None] = {}
    namespaces: dict[str, None] = {}
    resources: list[dict[str, str]] = []
    series: list[dict[str, str]] = []
    for item in _objects(value):
        for key, inner in item.items():
            if isinstance(inner, str) and inner:
                if key in _SERVICES:
                    services[inner] = None
                elif key in _NAMESPACES:
                    namespaces[inner] = None
        labels = item.get("metric") if "metric" in item else item.get("stream")
        if isinstance(labels, dict) and ("values" in item or "value" in item):
            series.append({str(key): text for key, text in labels.items() if isinstance(text, str)})
        resource = item.get("resource")
        if isinstance(resource, dict) and isinstance(resource.get("attributes"), list):
            resources.append(_attributes(resource["attributes"]))
    for labels in resources:
        services.update((labels[key], None) for key in _SERVICES if key in labels)
        namespaces.update((labels[key], None) for key in _NAMESPACES if key in labels)
    found = {
        "services": tuple(services),
        "namespaces": tuple(namespaces),
        "resources": _told_apart(resources),
        "series": _told_apart(series),
    }
    return {kind: names for kind, names in found.items() if 0 < len(names) <= _MOST_NAMES}


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of parsed JSON, in document order."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def _attributes(attributes: Sequence[Any]) -> dict[str, str]:
    """OTLP's list of keys and typed values as a dict of the texts."""
    pairs = ((a.get("key"), a.get("value")) for a in attributes if isinstance(a, dict))
    texts = ((key, value.get("stringValue")) for key, value in pairs if isinstance(value, dict))
    return {str(key): text for key, text in texts if isinstance(text, str)}


def _told_apart(sets: Sequence[dict[str, str]]) -> tuple[str, ...]:
    """The names of label sets: the values of the first label that is another in each."""
    for key in sets[0] if len(sets) > 1 else ():
        names = {labels[key]: None for labels in sets if labels.get(key)}
        if len(names) == len(sets):
            return tuple(names)
    return ()


def span_needle(span: Mapping[str, Any], mark: Iterable[str]) -> Needle:
    """An OTLP span is shown by its id, or by its start to the millisecond beside one of the texts of `mark`."""
    at = datetime.fromtimestamp(int(span["startTimeUnixNano"]) // 1_000_000_000, UTC)
    clock = f"{at:%H:%M:%S}.{int(span['startTimeUnixNano']) // 1_000_000 % 1000:03d}"
    return ((str(span["spanId"]),), *((clock, text) for text in mark))


def number(value: float) -> str:
    """A number as it is looked for in a text."""
    return repr(float(value)) if float(value) % 1 else str(int(value))


def read_truth(found: Mapping[str, Any], text: str, value: Any) -> Truth:
    """The truth of an input from its entry in a `truth.json`; fields that are not known say nothing.

    `spike` is a row with `value` and `service`, or (series, time, value); `bad` are (name, reason); `errors`, `needles`
    and `unique` are rows with a `msg`; `error_spans` are span ids; `avg_by_service`, `avg_dur` and `avg_31` are means;
    `node`, `alert` and `err_txn` name what the mixed text hides.
    """
    needles: list[Needle] = []
    means = {str(name): float(mean) for name, mean in found.get("avg_by_service", {}).items()}
    if "avg_dur" in found:
        means["duration_ms"] = float(found["avg_dur"])
    spike = found.get("spike")
    if isinstance(spike, dict):
        needles.append(((number(spike["value"]), spike["service"]),))
    elif spike:
        needles.append(((number(float(spike[2])), spike[0]),))
        if "avg_31" in found:
            means[spike[0]] = float(found["avg_31"])
    needles += [((name, reason),) for name, reason in found.get("bad", ())]
    rows = [*found.get("errors", ()), *found.get("needles", ())]
    if "unique" in found:
        rows.append(found["unique"])
    needles += [((row["msg"],), (_own_word(row["msg"], text),)) for row in rows]
    if "error_spans" in found:
        spans = {item["spanId"]: item for item in _objects(value) if "spanId" in item}
        needles += [span_needle(spans[name], ("504", "deadline exceeded")) for name in found["error_spans"]]
    if "node" in found:
        needles.append(((found["node"], "false"),))
    if "alert" in found:
        needles.append(((str(found["alert"]), "page"),))
    if found.get("err_in_trunc"):
        needles.append(((found["err_txn"],),))
    return Truth(tuple(needles), entities(value), means)


def _own_word(message: str, text: str) -> str:
    """The word of a message that stands nowhere else in the text: one with digits, or else the longest."""
    words = dict.fromkeys(re.findall(r"[\w-]+", message))
    own = [word for word in words if text.count(word) == 1]
    return max(own, key=lambda word: (any(map(str.isdigit, word)), len(word)), default=message)


def questions(found: Mapping[str, Any], own: bool) -> tuple[tuple[str, str], ...]:
    """(suffix of the name, question) of an input; one whose spike belongs to a series is asked about that one too.

    `own`: the text asks its own question.
    """
    if own:
        return (("", ""),)
    spike = found.get("spike")
    if not isinstance(spike, list):
        return (("", QUESTION),)
    return (("", QUESTION), (" (named)", named(spike[0])))


def named(entity: str) -> str:
    """The question with an entity to look at."""
    return f"{QUESTION} Look at {entity}."


def parsed(data: bytes) -> Any:
    """The JSON value of an input, a list of them for JSON lines, or None."""
    reads: tuple[Callable[[str], Any], ...] = (
        json.loads,
        lambda text: [json.loads(line) for line in text.splitlines()],
    )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for read in reads:
        try:
            return read(text.strip())
        except (ValueError, RecursionError):
            continue
    return None
