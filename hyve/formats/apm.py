"""Elastic APM's intake (NDJSON) as rows of `spans`, `log_records` and `metric_points`.

Rules:
- Each line is an object of one key, which is the type of the event. `metadata` speaks of all events behind it;
  without a `metadata` line that names a service nothing else tells that an object such as {"error": ...} is such an
  event.
- Times are epoch microseconds, durations milliseconds. An event without a time has none.
- A transaction is the server's side of a call, a span of type external, db or messaging the client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hyve.formats import logs
from hyve.formats.levels import severity_of
from hyve.formats.recogniser import Found, Stream, keys
from hyve.formats.rows import log_record, metric_point
from hyve.formats.scalars import (
    Relations,
    Row,
    end_ns,
    integer,
    mapping,
    number,
    scaled_ns,
    text,
    trace_or_span_id,
)

_EVENTS = ("metadata", "transaction", "span", "error", "metricset", "log")
_CALLS = ("external", "db", "messaging", "storage", "cache")
_KINDS = {"counter": "sum", "histogram": "histogram"}


def belongs(value: dict[str, Any]) -> bool:
    """Whether an object may be an event: one known key with an object."""
    if len(value) != 1:
        return False
    ((kind, event),) = value.items()
    return kind in _EVENTS and type(event) is dict


def read_events(values: Sequence[dict[str, Any]]) -> Found:
    """The relations of the events behind a `metadata` line."""
    result: Relations = {"spans": [], "log_records": [], "metric_points": []}
    resource: dict[str, Any] | None = None
    for value in values:
        ((kind, event),) = value.items()
        if kind == "metadata":
            named = mapping(event.get("service")).get("name")
            resource = _resource(event) if type(named) is str else None
        elif resource is not None:
            own = mapping(mapping(event.get("context")).get("service"))
            service = text(own.get("name")) or text(resource["service.name"])
            if kind in ("transaction", "span"):
                result["spans"].append(_span(kind, event, service, resource))
            elif kind == "metricset":
                result["metric_points"] += _metrics(event, service, resource)
            else:
                read = _log if kind == "log" else _error
                result["log_records"].append(read(event, service, resource))
    return Found({name: rows for name, rows in result.items() if rows})


STREAM = Stream(belongs, read_events, keys(*_EVENTS))


def _resource(metadata: dict[str, Any]) -> dict[str, Any]:
    """What `metadata` says, under OpenTelemetry's names."""
    service, system, process = (mapping(metadata.get(name)) for name in ("service", "system", "process"))
    kubernetes = mapping(system.get("kubernetes"))
    found = {
        "service.name": service.get("name"),
        "service.version": service.get("version"),
        "deployment.environment": service.get("environment"),
        "host.name": system.get("configured_hostname") or system.get("detected_hostname") or system.get("hostname"),
        "process.pid": process.get("pid"),
        "container.id": mapping(system.get("container")).get("id"),
        "k8s.namespace.name": kubernetes.get("namespace"),
        "k8s.pod.name": mapping(kubernetes.get("pod")).get("name"),
        "telemetry.sdk.name": mapping(service.get("agent")).get("name"),
        **mapping(metadata.get("labels")),
    }
    return {key: value for key, value in found.items() if value is not None}


def _span(kind: str, event: dict[str, Any], service: str, resource: dict[str, Any]) -> Row:
    context, type_ = mapping(event.get("context")), text(event.get("type"))
    http, response = mapping(context.get("http")), mapping(context.get("response"))
    request, db = mapping(context.get("request")), mapping(context.get("db"))
    target = mapping(mapping(context.get("destination")).get("service"))
    url = mapping(request.get("url"))
    called = {
        "http.request.method": request.get("method") or http.get("method"),
        "http.response.status_code": response.get("status_code") or http.get("status_code"),
        "url.full": url.get("full") or http.get("url"),
        "db.query.text": db.get("statement"),
        "db.namespace": db.get("instance"),
    }
    told = {key: event[key] for key in ("type", "subtype", "action", "result", "transaction_id") if key in event}
    took = number(event.get("duration"))
    start = scaled_ns(integer(event.get("timestamp")), 1_000_000)
    calls = kind == "span" and type_ in _CALLS
    serves = "consumer" if type_ == "messaging" else "server"
    peer = target.get("name") or target.get("resource") or (db.get("type") if calls else None)
    return {
        "time": start,
        "end_time": end_ns(start, took),
        "duration_ms": took if took is not None and took >= 0 else None,
        "service": service,
        "name": text(event.get("name")),
        "kind": serves if kind == "transaction" else "client" if calls else "internal",
        "trace_id": trace_or_span_id(event.get("trace_id")),
        "span_id": trace_or_span_id(event.get("id")),
        "parent_span_id": trace_or_span_id(event.get("parent_id")),
        "status": {"failure": "error", "success": "ok"}.get(text(event.get("outcome")), "unset"),
        "status_message": "",
        "peer_service": peer if type(peer) is str and peer else None,
        "attributes": {
            **told,
            **{key: value for key, value in called.items() if value is not None},
            **mapping(context.get("tags")),
        },
        "resource": resource,
    }


def _error(event: dict[str, Any], service: str, resource: dict[str, Any]) -> Row:
    """An error is a log record with OpenTelemetry's attributes of exceptions."""
    log, exception = mapping(event.get("log")), mapping(event.get("exception"))
    name, _ = severity_of(log.get("level"))
    told = {
        "exception.type": exception.get("type"),
        "exception.message": exception.get("message"),
        "logger": log.get("logger_name"),
        "culprit": event.get("culprit"),
    }
    return log_record(
        scaled_ns(integer(event.get("timestamp")), 1_000_000),
        service,
        text(log.get("message")) or text(exception.get("message")),
        level=name or "ERROR",
        trace_id=trace_or_span_id(event.get("trace_id")),
        span_id=trace_or_span_id(event.get("parent_id")),
        attributes={key: value for key, value in told.items() if value is not None},
        resource=resource,
    )


def _log(event: dict[str, Any], service: str, resource: dict[str, Any]) -> Row:
    row = logs.record(event, sure=True)
    assert row is not None
    if row["service"] == "unknown":
        row["service"] = service
    row["resource"] = {**resource, **row["resource"]}
    return row


def _metrics(event: dict[str, Any], service: str, resource: dict[str, Any]) -> list[Row]:
    about = {
        f"{name}.{key}": inner for name in ("transaction", "span") for key, inner in mapping(event.get(name)).items()
    }
    attributes = {**mapping(event.get("tags")), **about}
    time = scaled_ns(integer(event.get("timestamp")), 1_000_000)
    rows: list[Row] = []
    for name, sample in mapping(event.get("samples")).items():
        said = mapping(sample)
        counts = said.get("counts")
        whole = [integer(count) or 0 for count in counts] if type(counts) is list else []
        rows.append(
            metric_point(
                time,
                service,
                name,
                said.get("value"),
                unit=text(said.get("unit")),
                kind=_KINDS.get(text(said.get("type")), "gauge"),
                count=sum(whole) if whole else None,
                attributes=attributes,
                resource=resource,
            )
        )
    return rows
