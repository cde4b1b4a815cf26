"""Logs of containers as rows of `container_logs` and `log_records`: Docker's json-file records, what Fluent Bit and
Fluentd make of them, and the text lines of the container runtimes (CRI).

Rules:
- The runtime cuts a long line into records. Pieces of one stream of one container are joined up to the piece that
  ends the line: with a newline (Docker), with the tag F (CRI), with `partial_last` (Fluentd's driver). The first
  piece's time is the line's.
- A record without a newline is a piece only where lines do end with one: Fluent Bit may have taken the newlines off.
- A line that is a JSON object gives its fields to the row, beside `stream` and `time`; where names clash, the
  envelope's stays and the line's field is called `log_<name>`. Any other line is the row's `log`.
- The row of `log_records` is what the line itself says (`hyve.formats.logs`), completed from the envelope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from hyve.formats import logs
from hyve.formats.levels import severity_in
from hyve.formats.recogniser import Found, Stream, keys
from hyve.formats.scalars import TIME_KEYS, Row, instant_ns, mapping, plain
from hyve.strictjson import Pairs, read

REJOINED = "rejoined_partial_lines"

_TIMES = ("time", "@timestamp", "timestamp", "date", "ts")
_STREAMS = ("stdout", "stderr")
_CONSUMED = ("log", "logtag", *sorted(TIME_KEYS))
_DOCKER = frozenset({"log", "stream", "time", "attrs"})
_PIECE = 16_000
"""A piece is about 16 KiB long; one without a newline that is as long is one."""
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\S{8,30}) (stdout|stderr) ([FP])(?: (.*))?\Z", re.DOTALL)


@dataclass
class _Line:
    """A line in the making: its envelope (that of its first piece) and its pieces."""

    envelope: dict[str, Any]
    pieces: list[str]


def belongs(value: dict[str, Any]) -> bool:
    """Whether an object is a record of a container's log: its `log` is text and the rest says where it was written."""
    if type(value.get(_log_key(value))) is not str:
        return False
    stream = value.get("stream")
    if type(stream) is str and stream in _STREAMS:
        return any(
            key in value for key in (*_TIMES, "kubernetes", "logtag", "docker", "container_id", "container_name")
        )
    about = value.get("kubernetes")
    if type(about) is dict and ("pod_name" in about or "container_name" in about):
        return True
    return "partial_message" in value or {"container_id", "container_name", "source"} <= value.keys()


def read_records(values: Sequence[dict[str, Any]]) -> Found:
    """The relations of the records of one or more containers, in the order in which they were written."""
    return _found(_joined(values))


STREAM = Stream(
    belongs,
    read_records,
    keys("log stream", "log kubernetes", "log container_name", "log partial_message", "message logtag"),
)


def read_lines(runs: Callable[[], Iterator[Sequence[str]]]) -> Iterator[Found]:
    """The relations of those lines of free text that a container runtime wrote: time, stream, tag, text."""
    looked_at = islice(chain.from_iterable(runs()), _LOOKED_AT)
    if not any(" stdout " in text or " stderr " in text for text in looked_at):
        return
    records: list[dict[str, Any]] = []
    for text in chain.from_iterable(runs()):
        match = _CRI.match(text)
        if match is not None:
            time, stream, tag, log = match.groups()
            records.append({"time": time, "stream": stream, "logtag": tag, "log": (log or "").removesuffix("\r")})
    yield _found(_joined(records))


_LOOKED_AT = 1_000
"""Lines among which one of a runtime must be, so that other logs cost nothing."""


def _log_key(value: dict[str, Any]) -> str:
    """Fluentd's parser for the runtimes' lines calls the text `message`."""
    return "message" if "logtag" in value and "log" not in value else "log"


def _found(lines: Sequence[_Line]) -> Found:
    rows: list[Row] = []
    records: list[Row] = []
    for line in lines:
        row, record = _rows(line)
        rows.append(row)
        records.append(record)
    if not rows:
        return Found({})
    flags = (REJOINED,) if any(len(line.pieces) > 1 for line in lines) else ()
    return Found({"container_logs": rows, "log_records": records}, flags)


def _joined(values: Sequence[dict[str, Any]]) -> list[_Line]:
    """The lines of the records, each at the place of its first piece."""
    newlines = _newlines(values)
    lines: list[_Line] = []
    open_lines: dict[tuple[Any, ...], _Line] = {}
    for value in values:
        log, source = value[_log_key(value)], _source(value)
        ends = _ends(value, newlines)
        line = open_lines.get(source)
        if line is None:
            line = _Line(value, [log])
            lines.append(line)
            if not ends:
                open_lines[source] = line
        else:
            line.pieces.append(log)
            if ends:
                del open_lines[source]
    return lines


def _newlines(values: Sequence[dict[str, Any]]) -> dict[bool, bool]:
    """For Docker's own records and for those of shippers: whether their lines end with a newline."""
    result = {}
    for own in (True, False):
        untagged = [v["log"] for v in values if (v.keys() <= _DOCKER) is own and "logtag" not in v]
        ended = sum(log.endswith("\n") for log in untagged)
        long = sum(len(log) >= _PIECE for log in untagged)
        result[own] = ended > 0 if own else 4 * (ended + long) >= len(untagged) and ended > 0
    return result


def _ends(value: dict[str, Any], newlines: dict[bool, bool]) -> bool:
    tag = value.get("logtag")
    if type(tag) is str:
        return tag[:1] != "P"
    if "partial_message" in value:
        return value.get("partial_last") in ("true", True) if value["partial_message"] in ("true", True) else True
    return not newlines[value.keys() <= _DOCKER] or value["log"].endswith("\n")


def _source(value: dict[str, Any]) -> tuple[Any, ...]:
    """Which stream of which container: records of two of them may alternate."""
    about = mapping(value.get("kubernetes"))
    named = (
        value.get("stream"),
        value.get("source"),
        value.get("container_id"),
        value.get("partial_id"),
        value.get("filename"),
        value.get("tag"),
        about.get("pod_id") or about.get("pod_name"),
        about.get("container_name"),
        mapping(value.get("docker")).get("container_id"),
    )
    return tuple(name if type(name) is str else None for name in named)


def _rows(line: _Line) -> tuple[Row, Row]:
    envelope = line.envelope
    log = "".join(line.pieces)
    log = log.removesuffix("\n").removesuffix("\r") if log.endswith("\n") else log
    inner = _object(log)
    time = next((at for at in (instant_ns(envelope.get(key)) for key in _TIMES) if at is not None), None)
    consumed = (_log_key(envelope), *_CONSUMED)
    outer = {key: value for key, value in envelope.items() if key not in consumed and key[:8] != "partial_"}
    if time is None and envelope.get("time") is not None:
        outer["time_text"] = envelope["time"]
    row: Row = {"time": time, **outer}
    if inner is None:
        row["log"] = log
    fields = inner or {}
    for key, value in fields.items():
        name = key
        while name in row or name in _CONSUMED or (name is not key and name in fields):
            name = f"log_{name}"
        row[name] = value
    return row, _record(log, inner, time, outer)


def _record(log: str, inner: dict[str, Any] | None, time: int | None, outer: dict[str, Any]) -> Row:
    record = logs.record(inner or {}, sure=True)
    assert record is not None
    if inner is None or not record["body"]:
        record["body"] = log
        if not record["severity"]:
            record["severity"], record["severity_number"] = severity_in(log)
    record["time"] = record["time"] or time
    if record["service"] == "unknown":
        record["service"] = logs.service(outer)
    record["resource"] = {**record["resource"], **outer}
    return record


def _object(log: str) -> dict[str, Any] | None:
    """The JSON object that a line is, or None."""
    if log[:1] != "{" or not log.rstrip().endswith("}"):
        return None
    found = read(log)
    if found is None:
        return None
    value = found[0]
    if type(value) is Pairs:
        return plain(value)
    return value if type(value) is dict and value else None
