"""Requests of some 20 KB for `tests.bench.pipeline`, one for each kind of data: what an alert collects, and what people
send. Each has what a model says to it: one cause and one claim, with a statement that gives rows over the data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from schemas import Payload
from streams.app import Incoming
from streams.incident import generate
from streams.intake import Intake
from tests.bench import payloads

SIZE = 20_000
"""Characters of all payloads of a request."""

_END = 1_770_000_000 * 10**9


@dataclass(frozen=True)
class Asked:
    """What is sent, and the reply of a model."""

    payloads: tuple[Payload, ...]
    reply: str


def kinds() -> dict[str, Asked]:
    """The requests by the name of their kind."""
    return {
        "an alert's telemetry": _alert(),
        "log records": _one(payloads.logs, "checkout", _grouped("service", "records"), _most("ms", "records")),
        "log lines": _one(payloads.log, "auth", _grouped("level", "lines"), "SELECT count(*) AS lines FROM lines"),
        "spans": _one(payloads.one_resource, "cart", _grouped("name", "spans"), _most("duration_ms", "spans")),
        "exposition text": _one(
            payloads.exposition, "10.0.0.0:8080", _grouped("service", "metric_points"), _most("value", "metric_points")
        ),
        "pods": _one(payloads.pods, "shipping", _grouped("phase", "pods"), _most("restarts", "containers")),
        "CSV": _one(payloads.csv, "auth", _grouped("service", "records"), _most("duration_ms_num", "records")),
        "text with JSON and CSV": _one(
            payloads.mixed, "shipping", _grouped("service", "records"), _most("value", "records")
        ),
    }


def _one(make: Callable[[int], str], entity: str, cause: str, claim: str) -> Asked:
    return Asked((Payload(name="data", text=make(SIZE)),), _reply(entity, cause, claim))


def _alert() -> Asked:
    """As `streams.collect` makes it: the alert, and the newest telemetry of the service at fault."""
    incident = generate("pool-exhaustion", 7, _END)
    intake, service = Intake(), incident.faulty_service or ""
    raw = [Incoming("raw", 0, at, json.dumps(one).encode()) for at, one in enumerate(incident.payloads)]
    made = [out for record in raw for out in intake.normalise(record) if out.topic == "telemetry"]
    own = sorted((out for out in made if out.key == service.encode()), key=lambda out: out.timestamp or 0)
    alert, lines = json.dumps(incident.alert), list[str]()
    while own and len(alert) + sum(map(len, lines)) + len(lines) < SIZE:
        lines.append(own.pop().value.decode())
    text = "\n".join(reversed(lines))
    sent = Payload(name="alert.json", text=alert), Payload(name="telemetry.ndjson", text=text)
    return Asked(sent, _reply(service, _grouped("name", "spans"), _most("duration_ms", "spans")))


def _grouped(column: str, table: str) -> str:
    return f"SELECT {column}, count(*) AS number FROM {table} GROUP BY {column} ORDER BY number DESC LIMIT 5"


def _most(column: str, table: str) -> str:
    return f"SELECT count(*) AS number, max({column}) AS most FROM {table} WHERE {column} > 0"


def _reply(entity: str, cause: str, claim: str) -> str:
    """One cause and one claim, each with its statement."""
    return json.dumps(
        {
            "status": "conclusive",
            "summary": f"{entity} fails",
            "root_causes": [{"entity": entity, "summary": "it fails", "confidence": 0.7, "evidence": [cause]}],
            "claims": [{"text": "it takes long", "evidence": [claim]}],
        }
    )
