"""Structured application logs as rows of `log_records`: one object a record, as loggers and log shippers write it.

pino, bunyan, winston, zap, slog, zerolog, structlog, Serilog, log4j, logback, Elastic's ECS (Filebeat, Logstash),
Vector, NXLog, and whatever says time, level and message under the usual names.

Rules:
- A record has a time and a message that is text, and a level or a key that only loggers write (`_MARKS`). Anything
  less may be somebody's data.
- Dotted keys and nested objects are the same (`log.level`, `{"log": {"level": ...}}`); the nested one counts.
- A record without a level has that which its message says (`hyve.formats.levels`).
- What says who speaks or where (host, process, container) is the `resource`, all the rest `attributes`. A time or a
  level that can't be read stays among the attributes, as written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hyve.formats.entities import service_of, without_replica
from hyve.formats.kubernetes import speaker
from hyve.formats.levels import severity_in, severity_of
from hyve.formats.recogniser import needs
from hyve.formats.scalars import (
    Relations,
    Row,
    instant_ns,
    mapping,
    severity,
    text,
    trace_or_span_id,
)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_TIMES = _names(
    """
    @timestamp timestamp time ts @t Timestamp datetime asctime timeMillis date EventTime
    """
)
_MESSAGES = _names("message msg @m @mt Message RenderedMessage MessageTemplate event Body body log")
_LEVELS = _names(
    """
    log log.level level severity @l Level Severity lvl levelname loglevel log_level logLevel severity_text
    severityText SeverityText
    """
)
_RANKS = ("severity_number", "severityNumber", "SeverityNumber")
_SERVICES = _names(
    """
    service service.name service_name serviceName ServiceName app application appname SourceName
    """
)
_TRACES = _names(
    """
    trace trace.id trace_id traceId traceID TraceId @tr dd.trace_id otelTraceID logging.googleapis.com/trace
    """
)
_SPANS = _names(
    """
    span span.id span_id spanId spanID SpanId @sp dd.span_id otelSpanID logging.googleapis.com/spanId transaction
    transaction.id
    """
)
_RESOURCES = _names(
    """
    host hostname Hostname pid agent kubernetes docker container cloud orchestrator process service service.name
    service.version service.environment host.name container_id container_name pod namespace node app application
    appname service_name serviceName ServiceName resource ResourceAttributes ecs ecs.version source_type SourceName
    stream
    """
)
_NESTED = {"log": "level", "service": "name", "trace": "id", "span": "id", "transaction": "id"}
"""Keys whose value may be an object, and which of its keys is meant."""
_ONLY_NESTED = frozenset({"log", "transaction"})
_MARKS = frozenset(
    {"@timestamp", "@t", "caller", "logger", "logger_name", "loggerName", "levelno", "source_type"}
    | {"thread_name", "MessageTemplate"}
)
_WITH = {
    "event": _LEVELS[1:],
    "Body": ("SeverityText",),
    "body": ("severity_text", "severityText"),
    "log": ("@timestamp",),  # what Fluent Bit makes of a file's lines
}
"""Keys that are a message only beside one of these names."""
_KNOWN = (
    frozenset(_TIMES + _MESSAGES + _LEVELS + _RANKS + _SERVICES + _TRACES + _SPANS + _RESOURCES + ("name",)) | _MARKS
)


@dataclass(frozen=True)
class Plan:
    """Where records with certain keys have what: keys in the order in which they count. `level` is the first one that
    is no object's; `attributes` are the keys that nothing else takes."""

    time: str | None
    body: str | None
    levels: tuple[str, ...]
    level: str | None
    rank: str | None
    services: tuple[str, ...]
    traces: tuple[str, ...]
    spans: tuple[str, ...]
    resources: tuple[str, ...]
    attributes: tuple[str, ...]
    marked: bool


@needs(*(f"{time} {message}" for time in _TIMES for message in _MESSAGES if message != "log"), "@timestamp log")
def recognise(value: Any) -> Relations | None:
    """The row of one record, or None. A list of records is no message of its own."""
    if type(value) is not dict:
        return None
    row = record(value)
    return None if row is None else {"log_records": [row]}


def record(value: dict[str, Any], sure: bool = False) -> Row | None:
    """The row of `log_records` of one object, None where it may be no log record. `sure`: what it stood in says that
    it is one; then nothing is asked of it."""
    planned = plan(tuple(value))
    time = instant_ns(value[planned.time]) if planned.time else None
    body = value[planned.body] if planned.body else None
    level = _first(value, planned.levels) if planned.levels else None
    name, rank = severity_of(level)
    if planned.time == "@t" and level is None:
        name, rank = severity("INFO")  # Serilog leaves this one out
    if not sure and not (
        type(body) is str
        and (time is not None or planned.marked)
        and planned.time
        and (planned.marked if not planned.levels else planned.marked or _plausible(level, name))
    ):
        return None
    if planned.rank:
        name, rank = severity(name, value[planned.rank])
    if not name and level is None and type(body) is str:
        name, rank = severity_in(body)
    attributes = {key: value[key] for key in planned.attributes}
    if planned.time and time is None and value[planned.time] is not None:
        attributes[planned.time] = value[planned.time]
    if not name and planned.level is not None and value[planned.level] not in (None, ""):
        attributes[planned.level] = value[planned.level]
    return {
        "time": time,
        "service": service(value, planned.services),
        "severity": name,
        "severity_number": rank,
        "body": text(body),
        "trace_id": _trace(_first(value, planned.traces)) if planned.traces else None,
        "span_id": _trace(_first(value, planned.spans)) if planned.spans else None,
        "attributes": attributes,
        "resource": {key: value[key] for key in planned.resources},
    }


@lru_cache(maxsize=1024)
def plan(keys: tuple[str, ...]) -> Plan:
    """The plan for records with these keys."""
    there = _KNOWN.intersection(keys)

    def present(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name in there)

    times = present(_TIMES)
    messages = [name for name in present(_MESSAGES) if name not in _WITH or not there.isdisjoint(_WITH[name])]
    levels, ranks, traces, spans = present(_LEVELS), present(_RANKS), present(_TRACES), present(_SPANS)
    resources = tuple(name for name in present(_RESOURCES) if name not in times)
    services = present(_SERVICES)
    if {"pid", "hostname", "name"} <= there:  # bunyan and pino: the logger is called after the program
        services = (*services, "name")
    flat = [next((key for key in names if key not in _NESTED), None) for names in (levels, traces, spans)]
    taken = {*times[:1], *messages[:1], *ranks[:1], *filter(None, flat), *resources}
    return Plan(
        times[0] if times else None,
        messages[0] if messages else None,
        levels,
        flat[0],
        ranks[0] if ranks else None,
        services,
        traces,
        spans,
        resources,
        tuple(key for key in keys if key not in taken),
        not there.isdisjoint(_MARKS),
    )


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The first value that is there under one of several keys; of an object, the one that its name stands for."""
    for key in keys:
        found = value[key]
        if key in _NESTED:
            if type(found) is dict:
                found = found.get(_NESTED[key])
            elif key in _ONLY_NESTED:
                continue
        if found is not None and found != "":
            return found
    return None


def _plausible(level: Any, name: str) -> bool:
    """Whether a value may be a level: one that is known, none, or some other short word."""
    return bool(name) or level is None or (type(level) is str and len(level) <= 16 and level.isalpha())


def _trace(value: Any) -> str | None:
    if type(value) is str and value.startswith("projects/"):  # Google Cloud: projects/<project>/traces/<id>
        value = value.rpartition("/")[2]
    return trace_or_span_id(value)


def service(value: dict[str, Any], keys: tuple[str, ...] = ()) -> str:
    """Who speaks in a record: its service, its pod's application, its program, its host, else "unknown"."""
    said = _first(value, keys)
    if type(said) is str and said:
        return said
    for found in (speaker(mapping(value.get("kubernetes"))), service_of(value)):
        if found != "unknown":
            return found
    for key in ("host", "container"):
        inner = mapping(value.get(key)).get("name")
        if type(inner) is str and inner:
            return inner
    host = value.get("hostname", value.get("Hostname"))
    return without_replica(host) if type(host) is str and host else "unknown"
