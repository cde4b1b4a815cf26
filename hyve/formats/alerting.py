"""Alerts of other tools as rows of `alerts`: Datadog's webhook, Robusta's findings, karma, Prometheus' rules and
alerts API.

Rules:
- Rows are those of `hyve.formats.alertmanager`.
- Datadog's message of a recovery doesn't say when the alert began: `time` and `end_time` are both its own.
- karma keeps what the alerts of a group share beside them; each row has all of its labels.
- Prometheus lists rules with the alerts that they raised; rules without any give no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hyve.formats.alertmanager import alert_row, fingerprint_of
from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, Row, dicts, instant_ns, mapping, rfc3339_ns, text

_TRANSITIONS = {"Recovered": "resolved", "Warn Recovered": "resolved", "No Data Recovered": "resolved"}


@needs("alert_transition title", "aggregation_key starts_at", "grids", "groups", "data")
def recognise(value: Any) -> Relations | None:
    """Rows of `alerts`, or None."""
    if type(value) is not dict:
        return None
    if "alert_transition" in value and "title" in value:
        return {"alerts": [_datadog(value)]}
    if "aggregation_key" in value and "starts_at" in value:
        return {"alerts": [_robusta(value)]}
    if type(value.get("grids")) is list:
        rows = list(_karma(value["grids"]))
    else:
        data = mapping(value.get("data")) or value
        rows = [alert_row(_prometheus(alert), {}) for alert in _raised(data)]
    return {"alerts": rows} if rows else None


def _datadog(value: dict[str, Any]) -> Row:
    written = value.get("tags")
    labels: dict[str, Any] = {}
    for tag in written.split(",") if type(written) is str else ():
        key, colon, said = tag.strip().partition(":")
        if key:
            labels[key] = said if colon else True
    labels |= {key: value[key] for key in ("monitor_id", "scopes") if value.get(key) not in (None, "")}
    title = text(value.get("title"))
    if title.startswith("["):  # [Triggered on {service:cart}] Slow
        title = title.partition("] ")[2] or title
    time = instant_ns(value.get("date")) or instant_ns(value.get("last_updated"))
    transition = text(value.get("alert_transition"))
    status = _TRANSITIONS.get(transition, "firing")
    return {
        "time": time,
        "end_time": time if status == "resolved" else None,
        "status": status,
        "name": title,
        "service": service_of(labels),
        "severity": text(value.get("severity")) or text(value.get("alert_type")),
        "summary": text(value.get("title")),
        "fingerprint": fingerprint_of(labels),
        "labels": labels,
        "annotations": {key: value[key] for key in ("body", "alert_query", "alert_transition", "url") if key in value},
    }


def _robusta(value: dict[str, Any]) -> Row:
    labels = {"alertname": value["aggregation_key"], **mapping(value.get("labels"))}
    said = service_of(labels)
    resolved = rfc3339_ns(value.get("ends_at"))
    subject = text(value.get("subject_name"))
    return {
        "time": rfc3339_ns(value["starts_at"]) or rfc3339_ns(value.get("creation_date")),
        "end_time": resolved,
        "status": "firing" if resolved is None else "resolved",
        "name": text(labels["alertname"]),
        "service": subject or said,
        "severity": text(labels.get("severity")) or text(value.get("priority")),
        "summary": text(value.get("title")) or text(value.get("description")),
        "fingerprint": text(value.get("fingerprint")) or fingerprint_of(labels),
        "labels": labels,
        "annotations": {"description": value.get("description"), **mapping(value.get("annotations"))},
    }


def _karma(grids: Any) -> Iterator[Row]:
    for grid in dicts(grids):
        for group in dicts(grid.get("alertGroups")):
            shared = mapping(group.get("shared"))
            common = {**mapping(group.get("labels")), **mapping(shared.get("labels"))}
            for alert in dicts(group.get("alerts")):
                told = [*dicts(shared.get("annotations")), *dicts(alert.get("annotations"))]
                annotations = {item["name"]: item.get("value") for item in told if type(item.get("name")) is str}
                yield alert_row(
                    {
                        "labels": {**common, **mapping(alert.get("labels"))},
                        "annotations": annotations,
                        "startsAt": alert.get("startsAt"),
                        "status": alert.get("state"),
                        "fingerprint": alert.get("id"),
                    },
                    {},
                )


def _raised(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The alerts in an answer of Prometheus: those of `alerts`, and those of the rules in `groups`."""
    groups = dicts(data.get("groups"))
    rules = [rule for group in groups for rule in dicts(group.get("rules"))]
    for alert in [*dicts(data.get("alerts")), *(alert for rule in rules for alert in dicts(rule.get("alerts")))]:
        if "activeAt" in alert and type(alert.get("labels")) is dict:
            yield alert


def _prometheus(alert: dict[str, Any]) -> dict[str, Any]:
    return {
        "labels": alert["labels"],
        "annotations": {**mapping(alert.get("annotations")), "value": alert.get("value")},
        "startsAt": alert["activeAt"],
        "status": alert.get("state"),
    }
