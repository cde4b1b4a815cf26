"""Alerts as they are sent to us -> alert records: Alertmanager's and Grafana's webhooks, and Alertmanager's API v2.

Rules:
- An answer of 2xx means that every alert of the message is on Kafka, but for those that it says were refused: one bad
  alert takes none of the others with it. A message without a good alert gets 400 and the path of what is wrong, a body
  over the limit 413, and a broker that doesn't take it in time 503 (then the sender sends it again).
- What is said of a bad alert names the place, not the value: that may be a secret, and is told in the log.
- No sender sends again what got 400 or 413, so nothing of it goes unseen: what was refused is a dead letter of the
  stage "webhook", the message with its bad alerts alone; a body that was too large is told in the log. All are counted.
- What the sender groups belongs together: `group` is its group key. Alerts without one belong to those of the same
  service, or else of the same name. It is the Kafka key, so that a group meets on one worker.
- A bare list is API v2's: as its GET shows alerts (`status.state`), and as Prometheus and amtool post them, which say
  only when they end, and need not say when they began: then that is now, as for Alertmanager itself. Silenced and
  inhibited alerts are not taken: somebody decided to hear nothing of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import faust
from aiohttp.http_exceptions import BadHttpMessage
from aiohttp.web import HTTPRequestEntityTooLarge, RequestPayloadError

from hyve.formats.alertmanager import fingerprint_of
from hyve.formats.entities import service_of
from hyve.formats.scalars import rfc3339_ns
from schemas import Alert
from streams import metrics
from streams.app import Incoming, Outgoing, Send, dead_letter, deliver_or_bury, now_ms
from workers.settings import Settings

log = logging.getLogger("hyve")

PATH = "/alerts"
API_PATH = "/api/v2/alerts"
"""Where a Prometheus posts that has this worker among its Alertmanagers."""

STAGE = "webhook"
"""Of the dead letters of what was refused."""

_GROUP = 400
_TOLD = 5
"""Bad alerts of a body that an answer and the log tell of."""
_LARGEST = Settings.topics()["alerts"].max_bytes - (64 << 10)
_FIRING = {"ok": False, "alerting": True, "no_data": True, "pending": False, "paused": False}


class BadWebhook(ValueError):
    """The body is no message of alerts; the text says where."""


@dataclass(frozen=True)
class Posted:
    """What one body held: alerts, and of those that can't be used where and why, and what is left of the body."""

    alerts: tuple[Alert, ...]
    refused: tuple[str, ...] = ()
    rest: bytes = b""


def parse(body: bytes, received: int = 0) -> Posted:
    """The alerts of one body; `received` is epoch ms. Raises `BadWebhook` where it is no message of alerts."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadWebhook(f"the body is not JSON: {str(error)[:200]}") from None
    if isinstance(message, list):
        return _each(message, "", lambda bad: bad, lambda alert, path: _listed(alert, path, received))
    if not isinstance(message, dict):
        raise BadWebhook(f"the body is {json_kind(message)}, neither a webhook's object nor a list of alerts")
    if "evalMatches" in message and "alerts" not in message:
        return Posted((_legacy(message, received),))
    version = str(message.get("version", "4"))
    if version != "4" and not (version == "1" and "orgId" in message):  # Grafana's says 1
        raise BadWebhook('version: must be "4" (Alertmanager) or "1" (Grafana)')
    alerts = message.get("alerts")
    if not isinstance(alerts, list):
        raise BadWebhook("alerts: must be a list")
    shared = _texts(_or_none(message.get("commonAnnotations")), "commonAnnotations")
    key, missing = message.get("groupKey"), message.get("truncatedAlerts")
    read = partial(
        _alert,
        received=received,
        shared=shared,
        group=key if isinstance(key, str) else "",
        truncated=missing if type(missing) is int and missing > 0 else 0,
    )
    return _each(alerts, "alerts", lambda bad: {**message, "alerts": bad}, read)


def _each(
    alerts: list[Any], path: str, around: Callable[[list[Any]], Any], read: Callable[[Any, str], Alert | None]
) -> Posted:
    """Reads each alert for itself; `around` is the message that holds nothing but certain alerts."""
    made: list[Alert] = []
    refused: list[str] = []
    bad: list[Any] = []
    for i, alert in enumerate(alerts):
        try:
            found = read(alert, f"{path}[{i}]")
            size = len(found.to_bytes()) if found else 0
            if size > _LARGEST:
                raise BadWebhook(f"{path}[{i}]: an alert of {size} bytes is above the {_LARGEST} of one record")
        except BadWebhook as error:
            refused.append(str(error))
            bad.append(alert)
        else:
            made.extend([found] if found else ())
    rest = json.dumps(around(bad)).encode() if bad else b""
    return Posted(tuple(made), tuple(refused), rest)


def _alert(
    alert: Any,
    path: str,
    *,
    received: int,
    shared: dict[str, str] | None = None,
    status: Any = None,
    group: str = "",
    truncated: int = 0,
) -> Alert:
    if not isinstance(alert, dict):
        raise BadWebhook(f"{path}: must be an object")
    status = alert.get("status") if status is None else status
    if status not in ("firing", "resolved"):
        raise BadWebhook(f'{path}.status: must be "firing" or "resolved"')
    labels = _texts(alert.get("labels"), f"{path}.labels")
    starts = alert.get("startsAt")
    if not isinstance(starts, str) or rfc3339_ns(starts) is None:
        raise BadWebhook(f"{path}.startsAt: must be an RFC 3339 time")
    fingerprint = alert.get("fingerprint")
    ends, url, values = alert.get("endsAt"), alert.get("generatorURL"), alert.get("values")
    return Alert(
        fingerprint=fingerprint if isinstance(fingerprint, str) and fingerprint else fingerprint_of(labels),
        status=status,
        labels=labels,
        annotations={**(shared or {}), **_texts(_or_none(alert.get("annotations")), f"{path}.annotations")},
        starts_at=starts,
        ends_at=ends if isinstance(ends, str) else "",
        generator_url=url if isinstance(url, str) else "",
        received=received,
        group=group_of(labels, group),
        truncated=truncated,
        values=values if isinstance(values, dict) else {},
    )


def _listed(alert: Any, path: str, received: int) -> Alert | None:
    """An alert of a bare list; None for one that is silenced or inhibited."""
    if not isinstance(alert, dict):
        raise BadWebhook(f"{path}: must be an object")
    state, now = alert.get("status"), received or now_ms()
    if isinstance(state, dict):
        if state.get("state") == "suppressed":
            return None
        return _alert(alert, path, received=received, status="firing")
    ends = rfc3339_ns(alert.get("endsAt"))
    if _is_zero(alert.get("startsAt")):
        alert = {**alert, "startsAt": alert["endsAt"] if ends and ends <= now * 1_000_000 else _at(now)}
    over = ends is not None and 0 < ends <= now * 1_000_000
    return _alert(alert, path, received=received, status="resolved" if over else "firing")


def _is_zero(time: Any) -> bool:
    """Whether a time is Go's for none, or missing."""
    return time is None or time == "" or (isinstance(time, str) and time.startswith("0001-01-01T00:00:00"))


def _at(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _legacy(message: dict[str, Any], received: int) -> Alert:
    """Grafana's webhook before its unified alerting: one rule with the series that matched. It tells no time, so the
    alert begins when it comes."""
    name = message.get("ruleName")
    if not isinstance(name, str) or not name:
        raise BadWebhook("ruleName: must be a text")
    state = message.get("state")
    if state not in _FIRING:
        raise BadWebhook(f"state: must be one of {', '.join(_FIRING)}")
    labels = {"alertname": name}
    matches = message["evalMatches"] if isinstance(message["evalMatches"], list) else []
    for tags in (message.get("tags"), *(match.get("tags") for match in matches if isinstance(match, dict))):
        labels |= {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {}
    told = {key: message.get(key) for key in ("message", "title", "ruleUrl")}
    return Alert(
        fingerprint=fingerprint_of(labels),
        status="firing" if _FIRING[state] else "resolved",
        labels=labels,
        annotations={key: value for key, value in told.items() if isinstance(value, str) and value},
        starts_at=_at(received or now_ms()),
        received=received,
        group=group_of(labels),
        values={str(match.get("metric")): match.get("value") for match in matches if isinstance(match, dict)},
    )


def group_of(labels: dict[str, str], key: str = "") -> str:
    """What an alert is grouped by: the sender's key, else its service, else its name."""
    service = service_of(labels)
    text = key or (f"service={service}" if service != "unknown" else f"alertname={labels.get('alertname', '')}")
    if len(text) <= _GROUP:
        return text
    return f"{text[:_GROUP]}#{hashlib.blake2b(text.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _or_none(texts: Any) -> Any:
    """An object without texts for null, as which Go writes an empty map."""
    return {} if texts is None else texts


def _texts(value: Any, path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise BadWebhook(f"{path}: must be an object of texts")
    for key, item in value.items():
        if not isinstance(item, str):
            raise BadWebhook(f"{path}.{key[:60]}: must be a text, not {json_kind(item)}")
    return value


def json_kind(value: Any) -> str:
    """What a value of JSON is, in JSON's own words."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def mount(app: faust.App, settings: Settings, send: Send, timeout: float = 15.0) -> None:
    """Adds what takes alerts to the worker's web server."""

    async def deliver(posted: Posted, said: str) -> None:
        await send([Outgoing.of("alerts", alert.group, alert) for alert in posted.alerts])
        if posted.rest:
            record = Incoming("", -1, -1, posted.rest, timestamp=now_ms())
            await deliver_or_bury(send, [dead_letter(record, STAGE, said)], record, STAGE)

    async def taken(body: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the answer to one body."""
        try:
            posted = await asyncio.to_thread(parse, body, now_ms())
        except BadWebhook as error:
            posted = Posted((), (str(error),), body)
        more = f"; and {len(posted.refused) - _TOLD} more" if len(posted.refused) > _TOLD else ""
        said = "; ".join(posted.refused[:_TOLD]) + more
        try:
            await asyncio.wait_for(deliver(posted, said), timeout)
        except TimeoutError:
            metrics.WEBHOOKS.labels("undelivered").inc()
            log.warning("webhook: Kafka took none of %d alerts within %g s", len(posted.alerts), timeout)
            return 503, {"error": "Kafka did not take the alerts in time; send them again"}
        if not posted.refused:
            metrics.WEBHOOKS.labels("taken").inc()
            return 202, {"accepted": len(posted.alerts)}
        count = len(posted.refused)
        metrics.WEBHOOKS.labels("partly" if posted.alerts else "refused").inc()
        kept = " (see `hyve deadletters list --stage webhook`)" if posted.rest else ""
        shown = "".join(char if char.isprintable() else "?" for char in said)
        log.warning("webhook: alerts taken: %d, refused: %d: %s%s", len(posted.alerts), count, shown, kept)
        if not posted.alerts:
            return 400, {"error": said, "refused": count}
        return 202, {"accepted": len(posted.alerts), "refused": count, "error": said}

    class Alerts(faust.web.View):
        """The receiver of alerts."""

        async def post(self, request: Any) -> Any:
            try:
                body = await request.read()
            except HTTPRequestEntityTooLarge:
                size = request.content_length
                said = (
                    f"the body {f'of {size} bytes ' if size else ''}is above {settings.webhook_bytes} bytes: "
                    "raise HYVE_WEBHOOK_BYTES, or let the sender put fewer alerts into one message"
                )
                metrics.WEBHOOKS.labels("too_large").inc()
                log.warning("webhook: a body was refused, and its alerts with it: %s", said)
                return self.json({"error": said}, status=413)
            except (RequestPayloadError, BadHttpMessage) as error:
                said = f"the body can't be read: {' '.join(str(error).split())[:200]}"
                metrics.WEBHOOKS.labels("refused").inc()
                log.warning("webhook: a body was refused, and its alerts with it: %s", said)
                return self.json({"error": said}, status=400)
            status, answer = await taken(body)
            return self.json(answer, status=status)

    for path in (PATH, API_PATH):
        app.page(path)(Alerts)
