"""Alerts of Datadog, Robusta, karma and Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z
TEXT = "2024-02-03T04:05:06Z"


def alerts(value: Any) -> list[dict[str, Any]]:
    return relations([value]).get("alerts", [])


@pytest.mark.parametrize(
    ("transition", "status", "end"),
    [("Triggered", "firing", None), ("Warn", "firing", None), ("Recovered", "resolved", AT)],
)
def test_datadog(transition: str, status: str, end: int | None) -> None:
    message = {
        "title": "[Triggered on {service:cart}] Error monitor",
        "alert_transition": transition,
        "alert_type": "error",
        "severity": "P2",
        "date": "1706933106000",
        "tags": "monitor,service:cart",
        "monitor_id": "7",
        "scopes": "service:cart",
        "alert_query": "q",
        "body": "%%%",
    }
    (row,) = alerts(message)
    assert (row["time"], row["end_time"], row["status"]) == (AT, end, status)
    assert (row["name"], row["service"], row["severity"]) == ("Error monitor", "cart", "P2")
    assert row["labels"] == {"monitor": True, "service": "cart", "monitor_id": "7", "scopes": "service:cart"}
    again = alerts({**message, "title": "[Recovered on {service:cart}] Error monitor", "date": "1706933107000"})
    assert again[0]["fingerprint"] == row["fingerprint"]


def test_robusta() -> None:
    finding = {
        "aggregation_key": "KubePodCrashLooping",
        "title": "A pod crashes",
        "priority": "LOW",
        "starts_at": TEXT,
        "ends_at": None,
        "fingerprint": "abc",
        "subject_name": "cart",
        "labels": {"alertname": "KubePodCrashLooping", "severity": "warning", "service": "metrics"},
    }
    (row,) = alerts(finding)
    assert (row["name"], row["service"], row["severity"]) == ("KubePodCrashLooping", "cart", "warning")
    assert (row["time"], row["end_time"], row["status"], row["fingerprint"]) == (AT, None, "firing", "abc")
    assert alerts({**finding, "ends_at": TEXT})[0]["status"] == "resolved"


def test_karma_gives_each_alert_all_of_its_labels() -> None:
    group = {
        "labels": {"alertname": "Down"},
        "shared": {"labels": {"cluster": "prod"}, "annotations": [{"name": "summary", "value": "s"}]},
        "alerts": [
            {"labels": {"instance": "a"}, "annotations": [], "startsAt": TEXT, "state": "active"},
            {"labels": {"instance": "b"}, "annotations": [{"name": "help", "value": "h"}], "state": "suppressed"},
        ],
    }
    first, second = alerts({"status": "success", "grids": [{"alertGroups": [group]}]})
    assert first["labels"] == {"alertname": "Down", "cluster": "prod", "instance": "a"}
    assert (first["name"], first["time"], first["status"], first["summary"]) == ("Down", AT, "firing", "s")
    assert (second["status"], second["time"]) == ("suppressed", None)
    assert second["annotations"] == {"summary": "s", "help": "h"}


def test_prometheus_rules_and_alerts() -> None:
    alert = {"labels": {"alertname": "Down"}, "annotations": {"summary": "s"}, "state": "firing", "activeAt": TEXT}
    rules = {"groups": [{"rules": [{"name": "Down", "alerts": [{**alert, "value": "1e+00"}]}, {"alerts": []}]}]}
    for value in (rules, {"status": "success", "data": rules}, {"data": {"alerts": [{**alert, "value": "1e+00"}]}}):
        (row,) = alerts(value)
        assert (row["name"], row["time"], row["status"]) == ("Down", AT, "firing")
        assert row["annotations"] == {"summary": "s", "value": "1e+00"}
    assert alerts({"groups": [{"rules": [{"name": "r", "alerts": []}]}]}) == []
