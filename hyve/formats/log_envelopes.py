"""Log records in the envelope of what carries them: journald, GELF, Splunk HEC, Google Cloud Logging, Datadog.

Rules: rows are those of `hyve.formats.logs`; what the envelope says of time, level and service comes before what the
record inside says; an event that is an object gives its own fields as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyve.formats import logs
from hyve.formats.entities import service_of
from hyve.formats.recogniser import keys, needs
from hyve.formats.rows import log_record
from hyve.formats.scalars import (
    Relations,
    Row,
    dicts,
    instant_ns,
    integer,
    mapping,
    scaled_ns,
    severity,
    text,
    trace_or_span_id,
)

_SYSLOG = ("EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG")


def _journald(value: dict[str, Any]) -> Row | None:
    """One entry of `journalctl -o json`, or of Fluent Bit's input for it, which has a time of its own and may take the
    underscores off. Field names that begin with `_` are what the journal itself knows to be true."""
    message = value.get("MESSAGE")
    if type(message) is list:  # text that is no UTF-8 is written as its bytes
        try:
            message = bytes(message).decode("utf-8", "replace")
        except (TypeError, ValueError):
            message = text(message)
    unit = value.get("_SYSTEMD_UNIT", value.get("SYSTEMD_UNIT"))
    names = map(value.get, ("SYSLOG_IDENTIFIER", "_COMM", "COMM", "_HOSTNAME", "HOSTNAME"))
    service = unit.removesuffix(".service") if type(unit) is str else None
    own = {
        key: inner
        for key, inner in value.items()
        if key not in ("@timestamp", "MESSAGE", "PRIORITY") and key[:1] != "_"
    }
    return log_record(
        scaled_ns(integer(value.get("__REALTIME_TIMESTAMP")), 1_000_000) or instant_ns(value.get("@timestamp")),
        service or next((name for name in names if type(name) is str and name), "unknown"),
        text(message),
        level=_syslog(value.get("PRIORITY")),
        attributes=own,
        resource={key: inner for key, inner in value.items() if key[:1] == "_" and key[:2] != "__"},
    )


def _gelf(value: dict[str, Any]) -> Row | None:
    """Graylog's format: fields of the sender's own begin with `_`."""
    if type(value["short_message"]) is not str or type(value["host"]) is not str:
        return None
    named = ("version", "host", "short_message", "timestamp", "level")
    own = {key.removeprefix("_"): inner for key, inner in value.items() if key not in named}
    said = service_of(own)
    return log_record(
        instant_ns(value.get("timestamp")),
        said if said != "unknown" else value["host"] or "unknown",
        value["short_message"],
        level=_syslog(value.get("level")),
        trace_id=trace_or_span_id(own.get("trace_id")),
        span_id=trace_or_span_id(own.get("span_id")),
        attributes=own,
        resource={"host": value["host"]},
    )


def _splunk(value: dict[str, Any]) -> Row | None:
    """An event of the HTTP Event Collector: `event` is text or an object, `fields` are indexed beside it."""
    event, time = value["event"], instant_ns(value.get("time"))
    if not value.keys() <= _COLLECTED or event is None or (time is None and "sourcetype" not in value):
        return None
    resource: dict[str, Any] = {key: value[key] for key in ("host", "source", "sourcetype", "index") if key in value}
    own = mapping(value.get("fields"))
    row = logs.record(event, sure=True) if type(event) is dict else None
    if row is None:
        service = logs.service({**resource, **own})
        return log_record(time, service, text(event), attributes=own, resource=resource)
    said = row["service"] if row["service"] != "unknown" else logs.service({**resource, **own})
    body = row["body"] or text(event)
    attributes = {**own, **row["attributes"]}
    return {
        **row,
        "time": time or row["time"],
        "service": said,
        "body": body,
        "attributes": attributes,
        "resource": {**row["resource"], **resource},
    }


_COLLECTED = frozenset({"time", "host", "source", "sourcetype", "index", "event", "fields"})


def _google(value: dict[str, Any]) -> Row | None:
    """A LogEntry of Google Cloud Logging."""
    payload = next((value[key] for key in ("jsonPayload", "textPayload", "protoPayload") if key in value), None)
    inner = logs.record(payload, sure=True) if type(payload) is dict else None
    monitored, labels = mapping(value.get("resource")), mapping(value.get("labels"))
    said = {**labels, **mapping(monitored.get("labels"))}
    service = next((said[key] for key in _GOOGLE_SERVICES if type(said.get(key)) is str and said[key]), None)
    spoken = inner["service"] if inner else "unknown"
    carried = ("jsonPayload", "textPayload", "timestamp", "severity", "trace", "spanId", "resource", "labels")
    own = {key: item for key, item in value.items() if key not in carried}
    trace = value.get("trace")
    name, rank = severity(value.get("severity"))
    return {
        "time": instant_ns(value.get("timestamp")) or instant_ns(value.get("receiveTimestamp")),
        "service": service or (spoken if spoken != "unknown" else logs.service(said)),
        "severity": name or (inner["severity"] if inner else ""),
        "severity_number": rank or (inner["severity_number"] if inner else None),
        "body": (inner["body"] if inner else "") or text(payload),
        "trace_id": trace_or_span_id(trace.rpartition("/")[2] if type(trace) is str else None),
        "span_id": trace_or_span_id(value.get("spanId")),
        "attributes": {**own, **({**inner["attributes"], **inner["resource"]} if inner else {})},
        "resource": {**monitored, **({"entry_labels": labels} if labels else {})},
    }


_GOOGLE_SERVICES = ("service_name", "container_name", "function_name", "module_id", "job_name", "app", "k8s-pod/app")


def _datadog(value: dict[str, Any]) -> Row | None:
    """A log as Datadog's agents send it, or as its search returns it (`attributes` around the same names)."""
    sent = "ddsource" in value or "ddtags" in value
    inner = value if sent else mapping(value.get("attributes"))
    message, own = inner.get("message"), mapping(inner.get("attributes"))
    if type(message) is not str or not (sent or value.get("type") == "log"):
        return None
    named = ("timestamp", "date", "status", "message", "service", "host", "hostname", "tags", "ddtags", "attributes")
    resource: dict[str, Any] = {key: inner[key] for key in ("host", "hostname", "ddtags", "tags") if key in inner}
    said = inner.get("service")
    tracing = {**own, **mapping(own.get("dd"))}
    return log_record(
        instant_ns(inner.get("timestamp", inner.get("date"))),
        said if type(said) is str and said else logs.service(inner),
        message,
        level=inner.get("status"),
        trace_id=trace_or_span_id(tracing.get("trace_id", tracing.get("dd.trace_id"))),
        span_id=trace_or_span_id(tracing.get("span_id", tracing.get("dd.span_id"))),
        attributes={**{key: item for key, item in inner.items() if key not in named}, **own},
        resource=resource,
    )


def _syslog(level: Any) -> Any:
    """The word for a syslog level, 0 (emergency) to 7 (debug)."""
    rank = integer(level)
    return _SYSLOG[rank] if rank is not None and 0 <= rank <= 7 else level


_ENVELOPES: tuple[tuple[tuple[str, ...], Callable[[dict[str, Any]], Row | None]], ...] = (
    (("__REALTIME_TIMESTAMP MESSAGE", "@timestamp MESSAGE"), _journald),
    (("version host short_message",), _gelf),
    (("event sourcetype", "event host time", "event source time", "event index time"), _splunk),
    (("logName textPayload", "logName jsonPayload", "logName protoPayload"), _google),
    (("ddsource message", "ddtags message", "id type attributes"), _datadog),
)
_READERS = tuple((need, read) for alternatives, read in _ENVELOPES for need in keys(*alternatives))


@needs("entries", "data", *(alternative for alternatives, _ in _ENVELOPES for alternative in alternatives))
def recognise(value: Any) -> Relations | None:
    """The rows of one record, or of an answer that lists them (`entries`, `data`), or None."""
    if type(value) is not dict:
        return None
    row = _read(value)
    if row is not None:
        return {"log_records": [row]}
    for name in ("entries", "data"):
        listed = dicts(value.get(name))
        if listed and _read(listed[0]) is not None:
            return {"log_records": [row for row in map(_read, listed) if row is not None]}
    return None


def _read(value: dict[str, Any]) -> Row | None:
    for need, read in _READERS:
        if need <= value.keys():
            return read(value)
    return None
