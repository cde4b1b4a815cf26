"""Alerts: Alertmanager's webhook (v4), its API v2 list, and Grafana's two webhooks, as rows of `alerts`.

Rules:
- `endsAt` counts only for a resolved alert: a firing one has year 1 or a time in the future there.
- API v2 says `active` where the webhook says `firing`; the row says `firing` for both.
- An alert without a fingerprint gets one from its labels, so that the same alert has the same one each time.
"""

from __future__ import annotations

import hashlib
from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, Row, compact, dicts, mapping, rfc3339_ns, text

_ENVELOPE = frozenset({"receiver", "groupLabels", "commonLabels"})
_SUMMARIES = ("summary", "description", "message")
_STATES = {"active": "firing", "alerting": "firing", "ok": "resolved"}


@needs(*(f"alerts {key}" for key in sorted(_ENVELOPE)), "evalMatches ruleName", "labels startsAt")
def recognise(value: Any) -> Relations | None:
    """Rows of `alerts`, or None where the value is no alert message."""
    if type(value) is dict:
        alerts = value.get("alerts")
        if type(alerts) is list and not _ENVELOPE.isdisjoint(value):
            shared = mapping(value.get("commonAnnotations"))
            return {"alerts": [alert_row(alert, shared) for alert in dicts(alerts)]}
        if type(value.get("evalMatches")) is list and "ruleName" in value:
            return {"alerts": [_legacy(value)]}
        return {"alerts": [alert_row(value, {})]} if _is_alert(value) else None
    if type(value) is list and value and _is_alert(value[0]):
        return {"alerts": [alert_row(alert, {}) for alert in dicts(value) if _is_alert(alert)]}
    return None


def _is_alert(value: Any) -> bool:
    return type(value) is dict and type(value.get("labels")) is dict and "startsAt" in value


def alert_row(alert: dict[str, Any], shared: dict[str, Any]) -> Row:
    """The row of one alert with `labels`, `annotations`, `startsAt` and `status`; `shared` are further annotations."""
    labels = mapping(alert.get("labels"))
    annotations = {**shared, **mapping(alert.get("annotations"))}
    state = alert.get("status")
    status = text(state.get("state") if type(state) is dict else state) or "firing"
    status = _STATES.get(status, status)
    return {
        "time": rfc3339_ns(alert.get("startsAt")),
        "end_time": rfc3339_ns(alert.get("endsAt")) if status == "resolved" else None,
        "status": status,
        "name": text(labels.get("alertname")),
        "service": service_of(labels),
        "severity": text(labels.get("severity")),
        "summary": next((text(annotations[key]) for key in _SUMMARIES if annotations.get(key)), ""),
        "fingerprint": text(alert.get("fingerprint")) or fingerprint_of(labels),
        "labels": labels,
        "annotations": annotations,
    }


def _legacy(value: dict[str, Any]) -> Row:
    """Grafana's webhook before unified alerting: one rule, its state, and the series that matched."""
    matches = dicts(value.get("evalMatches"))
    labels = dict(mapping(value.get("tags")))
    for match in matches:
        labels.update(mapping(match.get("tags")))
    labels["alertname"] = text(value.get("ruleName"))
    state = text(value.get("state"))
    return {
        "time": None,
        "end_time": None,
        "status": _STATES.get(state, state),
        "name": labels["alertname"],
        "service": service_of(labels),
        "severity": text(labels.get("severity")),
        "summary": text(value.get("message") or value.get("title")),
        "fingerprint": fingerprint_of(labels),
        "labels": labels,
        "annotations": {"message": text(value.get("message")), "title": text(value.get("title"))},
    }


def fingerprint_of(labels: dict[str, Any]) -> str:
    """What labels give as fingerprint, whatever their order."""
    pairs = compact(sorted((str(key), text(inner)) for key, inner in labels.items()))
    return hashlib.sha256(pairs.encode("utf-8", "surrogatepass")).hexdigest()[:16]
