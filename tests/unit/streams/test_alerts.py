"""The webhook's body: alerts, or the path of what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streams.alerts import BadWebhook, parse


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


def test_without_a_fingerprint_the_labels_make_one() -> None:
    one, two = (parse(json.dumps(body(fingerprint=None)).encode())[0].fingerprint for _ in range(2))
    other = parse(json.dumps(body(fingerprint=None, labels={"alertname": "X"})).encode())[0].fingerprint
    assert one == two != other


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "a JSON list, not an Alertmanager webhook object"),
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
