"""Many alerts at once through real workers: groups, severities, resends, and a worker that starts anew."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from schemas import DiagnosisRequest
from tests.integration.pipeline import Pipeline, until

pytestmark = pytest.mark.apache

START = datetime.now(UTC) - timedelta(minutes=1)


def alert(number: int, **changes: Any) -> dict[str, Any]:
    service, severity = f"s{number % 10}", "critical" if number % 10 == 3 else "warning"
    return {
        "status": "firing",
        "labels": {"alertname": f"A{number}", "service": service, "severity": severity},
        "annotations": {},
        "startsAt": START.isoformat(),
        "fingerprint": f"f{number:04}",
        **changes,
    }


def alerts(pipeline: Pipeline, outcome: str) -> float:
    return pipeline.metric("intake", f'hyve_alerts_total{{outcome="{outcome}"}}')


def test_a_storm_is_grouped_and_asked_about_once(make_pipeline: Callable[..., Pipeline]) -> None:
    pipeline = make_pipeline("storm", HYVE_ALERT_SETTLE="2", HYVE_COLLECT_IDLE="0.2").start("intake")
    storm = [alert(number) for number in range(1000)]
    for start in range(0, 1000, 50):
        body = {"version": "4", "alerts": storm[start : start + 50]}
        assert pipeline.webhook(body).status_code == 202
    # A Prometheus posts the same firing that a webhook told, and one that is over before anybody asks.
    over = (START + timedelta(seconds=30)).isoformat()
    posted = [alert(0), alert(2000), alert(2000, endsAt=over)]
    for it in posted:
        it.pop("status")
        assert httpx.post(f"{pipeline.web}/api/v2/alerts", json=[it], timeout=20).status_code == 202

    until(lambda: alerts(pipeline, "asked") == 1000, 90)
    assert alerts(pipeline, "cancelled") == alerts(pipeline, "resolved") == 1
    assert alerts(pipeline, "repeated") == 1
    found = [DiagnosisRequest.from_bytes(record.value) for record in pipeline.records("requests")]
    told = [json.loads(request.payloads[0].text) for request in found]
    names = sorted(form["fingerprint"] for forms in told for form in (forms if isinstance(forms, list) else [forms]))
    assert names == [f"f{number:04}" for number in range(1000)]
    assert len(found) <= 60, "a hundred alerts of one service, posted within seconds, are a few requests at most"
    assert len({request.request_id for request in found}) == len(found)

    # A worker that starts anew knows from the topic what was asked.
    pipeline.acknowledged("intake", "alerts")
    os.kill(pipeline.supervisor.pid("intake"), signal.SIGKILL)
    until(lambda: pipeline.supervisor.starts("intake") == 2)
    assert pipeline.webhook({"version": "4", "alerts": storm[:50]}).status_code == 202
    until(lambda: alerts(pipeline, "repeated") == 50, 60)
    time.sleep(3)
    assert alerts(pipeline, "asked") == 0
    assert len(pipeline.records("requests")) == len(found)
    assert pipeline.records("deadletters") == []
