"""Builders of the wire forms that the incident generator writes: OTLP JSON requests, an Alertmanager webhook.

Rules: values in, fresh dicts out, except attribute lists, which repeat and are shared; int64 is text, as
the JSON mapping of protobuf says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_SIGNALS = {
    "L": ("resourceLogs", "scopeLogs", "logRecords"),
    "M": ("resourceMetrics", "scopeMetrics", "metrics"),
    "S": ("resourceSpans", "scopeSpans", "spans"),
}


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """A plain dict as OTLP's attribute list."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)},
        }
        for key, value in values.items()
    ]


@lru_cache(maxsize=4096)
def span_attributes(role: str, what: str, failed: bool) -> list[dict[str, Any]]:
    """Attributes of a span that asks a store, calls a service, or serves a route. Shared, so read only."""
    if role == "store":
        system = "redis" if what.endswith(("redis", "cache")) else "postgresql"
        return attributes({"db.system": system, "peer.service": what, "server.port": 5432})
    if role == "client":
        status = 503 if failed else 200
        return attributes({"peer.service": what, "http.response.status_code": status, "server.address": what})
    method, _, route = what.partition(" ")
    status = 500 if failed else 200
    return attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})


def request(signal: str, groups: list[tuple[dict[str, Any], list[Any]]]) -> dict[str, Any]:
    """One export request of a signal ("L", "M", "S"): for each resource its records, in time order."""
    top, scope, records = _SIGNALS[signal]
    return {
        top: [
            {
                "resource": {"attributes": attributes(resource)},
                scope: [{"scope": {"name": "app"}, records: sorted(found, key=_when)}],
            }
            for resource, found in groups
        ]
    }


def _when(record: dict[str, Any]) -> str:
    when: str = record.get("endTimeUnixNano") or record.get("timeUnixNano") or ""
    return when


def webhook(name: str, service: str, summary: str, severity: str, starts: str, fingerprint: str) -> dict[str, Any]:
    """An Alertmanager v4 webhook with one firing alert."""
    labels = {"alertname": name, "service": service, "namespace": "shop", "severity": severity}
    annotations = {"summary": summary, "runbook_url": f"https://runbooks.example/{name}"}
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{name}"}}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "hyve",
        "groupLabels": {"alertname": name},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "https://alertmanager.example",
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": starts,
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "https://prometheus.example/graph",
                "fingerprint": fingerprint,
            }
        ],
    }
