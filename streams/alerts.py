"""Alertmanager's webhook (v4) -> alert records.

Rules: an answer of 2xx means that every alert of the message is on Kafka; anything that isn't a webhook
message gets 400 and the path of what is wrong, a body over the limit 413, and a broker that doesn't take
it in time 503 (then Alertmanager sends it again).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from typing import Any

import faust

from hyve.formats.scalars import rfc3339_ns
from schemas import Alert
from streams.app import Outgoing, Send, now_ms

log = logging.getLogger("hyve")

PATH = "/alerts"


class BadWebhook(ValueError):
    """The body is not an Alertmanager webhook message; the text says where."""


def parse(body: bytes, received: int = 0) -> list[Alert]:
    """The alerts of one webhook body. Raises `BadWebhook`."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadWebhook(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(message, dict):
        raise BadWebhook(f"the body is a JSON {type(message).__name__}, not an Alertmanager webhook object")
    if str(message.get("version", "4")) != "4":
        raise BadWebhook(f'version: {str(message["version"])[:20]!r} is not supported, only "4" is')
    alerts = message.get("alerts")
    if not isinstance(alerts, list) or not alerts:
        raise BadWebhook("alerts: must be a list with at least one alert")
    shared = _texts(message.get("commonAnnotations", {}), "commonAnnotations")
    return [_alert(alert, shared, f"alerts[{i}]", received) for i, alert in enumerate(alerts)]


def _alert(alert: Any, shared: dict[str, str], path: str, received: int) -> Alert:
    if not isinstance(alert, dict):
        raise BadWebhook(f"{path}: must be an object")
    status = alert.get("status")
    if status not in ("firing", "resolved"):
        raise BadWebhook(f'{path}.status: must be "firing" or "resolved", not {str(status)[:40]!r}')
    labels = _texts(alert.get("labels"), f"{path}.labels")
    starts = alert.get("startsAt")
    if not isinstance(starts, str) or rfc3339_ns(starts) is None:
        raise BadWebhook(f"{path}.startsAt: must be an RFC 3339 time, not {str(starts)[:40]!r}")
    fingerprint = alert.get("fingerprint")
    if not isinstance(fingerprint, str) or not fingerprint:
        fingerprint = hashlib.blake2b(json.dumps(labels, sort_keys=True).encode(), digest_size=8).hexdigest()
    ends, url = alert.get("endsAt"), alert.get("generatorURL")
    return Alert(
        fingerprint=fingerprint,
        status=status,
        labels=labels,
        annotations={**shared, **_texts(alert.get("annotations", {}), f"{path}.annotations")},
        starts_at=starts,
        ends_at=ends if isinstance(ends, str) else "",
        generator_url=url if isinstance(url, str) else "",
        received=received,
    )


def _texts(value: Any, path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise BadWebhook(f"{path}: must be an object of texts")
    for key, item in value.items():
        if not isinstance(item, str):
            raise BadWebhook(f"{path}.{key[:60]}: must be a text, not {type(item).__name__}")
    return value


def mount(app: faust.App, send: Send, timeout: float = 15.0) -> None:
    """Adds `POST /alerts` to the worker's web server."""

    class Alerts(faust.web.View):
        """Alertmanager's receiver."""

        async def post(self, request: Any) -> Any:
            body = await request.read()
            try:
                alerts = parse(body, now_ms())
            except BadWebhook as error:
                return self.json({"error": str(error)}, status=400)
            try:
                await asyncio.wait_for(
                    send([Outgoing.of("alerts", alert.fingerprint, alert) for alert in alerts]), timeout
                )
            except TimeoutError:
                log.warning("webhook: Kafka took none of %d alerts within %g s", len(alerts), timeout)
                return self.json({"error": "Kafka did not take the alerts in time; send them again"}, status=503)
            return self.json({"accepted": len(alerts)}, status=202)

    app.page(PATH)(Alerts)
