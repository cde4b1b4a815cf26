"""The webhook's body: alerts, or the path of what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streams.alerts import BadWebhook, group_of, parse


def body(**changes: Any) -> dict[str, Any]:
    alert = {
        "status": "firing",
        "labels": {"alertname": "HighErrorRate", "service": "orders"},
        "annotations": {"summary": "5% of requests fail"},
        "startsAt": "2026-01-02T03:04:05.678Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": "abc123",
    }
    return {"version": "4", "commonAnnotations": {"runbook": "r"}, "alerts": [{**alert, **changes}]}


def test_an_alert_is_taken_as_it_is() -> None:
    (alert,) = parse(json.dumps(body()).encode(), received=9)
    assert alert.fingerprint == "abc123"
    assert alert.status == "firing"
    assert alert.starts_at == "2026-01-02T03:04:05.678Z"
    assert alert.annotations == {"runbook": "r", "summary": "5% of requests fail"}
    assert alert.received == 9


def test_alerts_of_one_message_share_its_group_and_what_it_left_out() -> None:
    message = {**body(), "groupKey": '{}:{alertname="X"}', "truncatedAlerts": 4}
    message["alerts"] = [*message["alerts"], *body(labels={"alertname": "Y"}, fingerprint="f2")["alerts"]]
    one, two = parse(json.dumps(message).encode())
    assert one.group == two.group == '{}:{alertname="X"}'
    assert (one.truncated, two.truncated) == (4, 4)


@pytest.mark.parametrize(
    ("labels", "group"),
    [
        ({"alertname": "X", "service": "orders"}, "service=orders"),
        ({"alertname": "X"}, "alertname=X"),
        ({}, "alertname="),
    ],
)
def test_without_a_group_key_alerts_belong_to_their_service_or_name(labels: dict[str, str], group: str) -> None:
    assert group_of(labels) == group
    long = group_of(labels, "k" * 5000)
    assert len(long) < 450
    assert long != group_of(labels, "k" * 5001)


GRAFANA = {
    "receiver": "hyve",
    "status": "firing",
    "orgId": 1,
    "version": "1",
    "groupKey": '{}/{severity="page"}:{alertname="Latency"}',
    "truncatedAlerts": 0,
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "Latency", "service": "cart"},
            "annotations": {"summary": "slow"},
            "startsAt": "2026-01-02T05:04:05+02:00",
            "endsAt": "0001-01-01T00:00:00Z",
            "values": {"B": 2.5, "C": 1},
            "fingerprint": "9f",
        }
    ],
}


def test_grafanas_webhook_is_taken_with_its_values() -> None:
    (alert,) = parse(json.dumps(GRAFANA).encode())
    assert (alert.fingerprint, alert.group) == ("9f", GRAFANA["groupKey"])
    assert alert.values == {"B": 2.5, "C": 1}
    assert alert.starts_at == "2026-01-02T05:04:05+02:00"


def test_grafanas_old_webhook_begins_when_it_comes() -> None:
    message = {
        "ruleName": "Latency",
        "state": "alerting",
        "title": "[Alerting] Latency",
        "message": "slow",
        "evalMatches": [{"metric": "p99", "value": 2.5, "tags": {"service": "cart"}}],
    }
    (alert,) = parse(json.dumps(message).encode(), received=1_767_323_045_678)
    assert alert.labels == {"alertname": "Latency", "service": "cart"}
    assert (alert.status, alert.group, alert.values) == ("firing", "service=cart", {"p99": 2.5})
    assert alert.starts_at == "2026-01-02T03:04:05.678+00:00"
    assert alert.annotations == {"message": "slow", "title": "[Alerting] Latency"}
    (over,) = parse(json.dumps({**message, "state": "ok"}).encode(), received=1_767_323_999_000)
    assert (over.status, over.fingerprint) == ("resolved", alert.fingerprint)


def test_a_list_is_what_the_api_shows_without_what_is_silenced() -> None:
    (shown,) = body(status={"state": "active", "silencedBy": []})["alerts"]
    (silenced,) = body(status={"state": "suppressed", "silencedBy": ["x"]}, fingerprint="f2")["alerts"]
    (alert,) = parse(json.dumps([shown, silenced]).encode())
    assert (alert.fingerprint, alert.status, alert.group) == ("abc123", "firing", "service=orders")


def test_a_list_is_what_prometheus_posts_and_says_only_when_it_ends() -> None:
    """Prometheus sets `endsAt` some minutes ahead while the alert fires, and to the end once it is over."""
    received = 1_767_323_100_000  # 03:05:00
    posted = {"labels": {"alertname": "X"}, "annotations": {}, "startsAt": "2026-01-02T03:04:05Z"}
    ends = ["2026-01-02T03:09:00Z", "2026-01-02T03:04:59Z", "0001-01-01T00:00:00Z", None]
    alerts = parse(json.dumps([{**posted, "endsAt": end} for end in ends]).encode(), received)
    assert [alert.status for alert in alerts] == ["firing", "resolved", "firing", "firing"]
    assert len({alert.fingerprint for alert in alerts}) == 1


def test_without_a_fingerprint_the_labels_make_one() -> None:
    one, two = (parse(json.dumps(body(fingerprint=None)).encode())[0].fingerprint for _ in range(2))
    other = parse(json.dumps(body(fingerprint=None, labels={"alertname": "X"})).encode())[0].fingerprint
    assert one == two != other


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"7", "a JSON int, neither a webhook's object nor a list of alerts"),
        (b"[1]", r"\[0\]: must be an object"),
        ([{"labels": {"a": 1}, "startsAt": "2026-01-02T03:04:05Z"}], r"\[0\]\.labels\.a: must be a text"),
        ({"evalMatches": [], "state": "ok"}, "ruleName: must be a text"),
        ({"evalMatches": [], "ruleName": "r", "state": "odd"}, "state: must be one of ok, alerting"),
        ({"version": "1", "alerts": []}, "version: '1' is not supported"),
        ({"version": "3", "alerts": []}, "version: '3' is not supported"),
        ({"version": "4"}, "alerts: must be a list with at least one"),
        ({"version": "4", "alerts": []}, "alerts: must be a list with at least one"),
        ({"version": "4", "alerts": [7]}, r"alerts\[0\]: must be an object"),
        (body(status="odd"), r"alerts\[0\]\.status: must be"),
        (body(labels={"a": 1}), r"alerts\[0\]\.labels\.a: must be a text, not int"),
        (body(labels=None), r"alerts\[0\]\.labels: must be an object"),
        (body(startsAt="yesterday"), r"alerts\[0\]\.startsAt: must be an RFC 3339 time, not 'yesterday'"),
        (body(annotations=[]), r"alerts\[0\]\.annotations: must be an object"),
    ],
)
def test_rubbish_is_refused_with_its_path(message: Any, says: str) -> None:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    with pytest.raises(BadWebhook, match=says):
        parse(data)
