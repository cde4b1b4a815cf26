"""The webhook's body: alerts, or the path of what is wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable
from typing import Any

import aiohttp.web
import pytest
from aiohttp.test_utils import TestClient, TestServer

from schemas import DeadLetter
from streams import metrics
from streams.alerts import BadWebhook, Posted, group_of, mount, parse
from streams.app import Outgoing
from workers.settings import load


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
    (alert,) = parse(json.dumps(body()).encode(), received=9).alerts
    assert alert.fingerprint == "abc123"
    assert alert.status == "firing"
    assert alert.starts_at == "2026-01-02T03:04:05.678Z"
    assert alert.annotations == {"runbook": "r", "summary": "5% of requests fail"}
    assert alert.received == 9


def test_alerts_of_one_message_share_its_group_and_what_it_left_out() -> None:
    message = {**body(), "groupKey": '{}:{alertname="X"}', "truncatedAlerts": 4}
    message["alerts"] = [*message["alerts"], *body(labels={"alertname": "Y"}, fingerprint="f2")["alerts"]]
    one, two = parse(json.dumps(message).encode()).alerts
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
    (alert,) = parse(json.dumps(GRAFANA).encode()).alerts
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
    (alert,) = parse(json.dumps(message).encode(), received=1_767_323_045_678).alerts
    assert alert.labels == {"alertname": "Latency", "service": "cart"}
    assert (alert.status, alert.group, alert.values) == ("firing", "service=cart", {"p99": 2.5})
    assert alert.starts_at == "2026-01-02T03:04:05.678+00:00"
    assert alert.annotations == {"message": "slow", "title": "[Alerting] Latency"}
    (over,) = parse(json.dumps({**message, "state": "ok"}).encode(), received=1_767_323_999_000).alerts
    assert (over.status, over.fingerprint) == ("resolved", alert.fingerprint)


def test_a_list_is_what_the_api_shows_without_what_is_silenced() -> None:
    (shown,) = body(status={"state": "active", "silencedBy": []})["alerts"]
    (silenced,) = body(status={"state": "suppressed", "silencedBy": ["x"]}, fingerprint="f2")["alerts"]
    (alert,) = parse(json.dumps([shown, silenced]).encode()).alerts
    assert (alert.fingerprint, alert.status, alert.group) == ("abc123", "firing", "service=orders")


def test_a_list_is_what_prometheus_posts_and_says_only_when_it_ends() -> None:
    """Prometheus sets `endsAt` some minutes ahead while the alert fires, and to the end once it is over."""
    received = 1_767_323_100_000  # 03:05:00
    posted = {"labels": {"alertname": "X"}, "annotations": {}, "startsAt": "2026-01-02T03:04:05Z"}
    ends = ["2026-01-02T03:09:00Z", "2026-01-02T03:04:59Z", "0001-01-01T00:00:00Z", None]
    alerts = parse(json.dumps([{**posted, "endsAt": end} for end in ends]).encode(), received).alerts
    assert [alert.status for alert in alerts] == ["firing", "resolved", "firing", "firing"]
    assert len({alert.fingerprint for alert in alerts}) == 1


def test_without_a_fingerprint_the_labels_make_one() -> None:
    one, two = (parse(json.dumps(body(fingerprint=None)).encode()).alerts[0].fingerprint for _ in range(2))
    other = parse(json.dumps(body(fingerprint=None, labels={"alertname": "X"})).encode()).alerts[0].fingerprint
    assert one == two != other


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"7", "the body is a number, neither a webhook's object nor a list of alerts"),
        ({"evalMatches": [], "state": "ok"}, "ruleName: must be a text"),
        ({"evalMatches": [], "ruleName": "r", "state": "odd"}, "state: must be one of ok, alerting"),
        ({"version": "1", "alerts": []}, "version: must be"),
        ({"version": "3", "alerts": []}, "version: must be"),
        (b"null", "the body is null, neither"),
        ({"version": "4"}, "alerts: must be a list"),
    ],
)
def test_what_is_no_message_of_alerts_is_refused(message: Any, says: str) -> None:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    with pytest.raises(BadWebhook, match=says):
        parse(data)


@pytest.mark.parametrize("message", [[], {"version": "4", "alerts": []}])
def test_a_message_of_no_alert_is_taken(message: Any) -> None:
    assert parse(json.dumps(message).encode()) == Posted(())


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ([1], "[0]: must be an object"),
        ([{"labels": {"a": 1}, "startsAt": "2026-01-02T03:04:05Z"}], "[0].labels.a: must be a text, not a number"),
        ({"version": "4", "alerts": [7]}, "alerts[0]: must be an object"),
        (body(status="odd"), 'alerts[0].status: must be "firing" or "resolved"'),
        (body(labels={"a": 1}), "alerts[0].labels.a: must be a text, not a number"),
        (body(labels=None), "alerts[0].labels: must be an object of texts"),
        (body(startsAt=""), "alerts[0].startsAt: must be an RFC 3339 time"),
        (body(annotations=[]), "alerts[0].annotations: must be an object of texts"),
    ],
)
def test_a_bad_alert_is_told_with_its_path_and_kept(message: Any, says: str) -> None:
    posted = parse(json.dumps(message).encode())
    assert (posted.alerts, posted.refused) == ((), (says,))
    assert json.loads(posted.rest) == message


def test_an_alert_too_large_for_a_record_is_refused() -> None:
    posted = parse(json.dumps(body(annotations={"a": "x" * 2_200_000})).encode())
    assert posted.alerts == ()
    assert "is above the 2031616 of one record" in posted.refused[0]


def test_a_bad_alert_takes_none_of_the_others_with_it() -> None:
    good, bad = body()["alerts"][0], body(startsAt="", fingerprint="bad")["alerts"][0]
    message = {**body(), "groupKey": "g", "alerts": [good, bad, {**good, "fingerprint": "other"}]}
    posted = parse(json.dumps(message).encode())
    assert [alert.fingerprint for alert in posted.alerts] == ["abc123", "other"]
    assert posted.refused == ("alerts[1].startsAt: must be an RFC 3339 time",)
    assert json.loads(posted.rest) == {**message, "alerts": [bad]}


class Sent:
    """Takes what is sent, or is too slow."""

    def __init__(self, slow: bool = False) -> None:
        self.records: list[Outgoing] = []
        self.slow = slow

    async def __call__(self, records: Iterable[Outgoing]) -> None:
        if self.slow:
            await asyncio.sleep(60)
        self.records.extend(records)


def webhooks(outcome: str) -> float:
    return float(metrics.WEBHOOKS.labels(outcome)._value.get())


class Pages:
    """Takes the pages that are mounted."""

    def __init__(self) -> None:
        self.views: dict[str, Any] = {}

    def page(self, path: str) -> Any:
        return lambda view: self.views.setdefault(path, view)


async def post(data: bytes, sent: Sent, encoding: str = "", **given: Any) -> tuple[int, dict[str, Any]]:
    """Posts to the receiver, over HTTP."""
    pages, settings = Pages(), load(**given)
    mount(pages, settings, sent, timeout=0.2)  # type: ignore[arg-type]
    assert set(pages.views) == {"/alerts", "/api/v2/alerts"}
    view = pages.views["/alerts"].__new__(pages.views["/alerts"])
    view.json = lambda value, *, status=200: aiohttp.web.json_response(value, status=status)
    web = aiohttp.web.Application(client_max_size=settings.webhook_bytes)
    web.router.add_post("/alerts", view.post)
    async with TestClient(TestServer(web)) as client:
        headers = {"content-encoding": encoding} if encoding else {}
        answer = await client.post("/alerts", data=data, headers=headers)
        return answer.status, await answer.json()


async def test_the_good_alerts_of_a_body_are_taken_and_the_bad_ones_a_dead_letter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    message = {**body(), "alerts": [*body()["alerts"], *body(startsAt="", fingerprint="bad")["alerts"]]}
    sent, before = Sent(), webhooks("partly")
    status, answer = await post(json.dumps(message).encode(), sent)
    said = "alerts[1].startsAt: must be an RFC 3339 time"
    assert (status, answer) == (202, {"accepted": 1, "refused": 1, "error": said})
    assert [out.topic for out in sent.records] == ["alerts", "deadletters"]
    letter = DeadLetter.from_bytes(sent.records[1].value)
    assert (letter.stage, letter.topic, letter.error) == ("webhook", "", said)
    assert [alert["fingerprint"] for alert in json.loads(base64.b64decode(letter.value))["alerts"]] == ["bad"]
    assert webhooks("partly") == before + 1
    assert f"alerts taken: 1, refused: 1: {said}" in caplog.text


async def test_a_body_without_a_good_alert_is_a_dead_letter_too() -> None:
    sent = Sent()
    status, answer = await post(b"no json", sent)
    assert (status, answer["refused"]) == (400, 1)
    assert answer["error"].startswith("the body is not JSON")
    (out,) = sent.records
    assert base64.b64decode(DeadLetter.from_bytes(out.value).value) == b"no json"
    empty = Sent()
    assert (await post(b"", empty))[0] == 400
    assert empty.records == []


async def test_a_body_that_is_too_large_names_the_setting_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    sent, before = Sent(), webhooks("too_large")
    status, answer = await post(b"x" * 5000, sent, webhook_bytes=4000)
    assert status == 413
    assert answer["error"].startswith("the body of 5000 bytes is above 4000 bytes: raise HYVE_WEBHOOK_BYTES")
    assert (sent.records, webhooks("too_large")) == ([], before + 1)
    assert "HYVE_WEBHOOK_BYTES" in caplog.text


async def test_a_thousand_alerts_of_one_group_fit_one_body() -> None:
    """3 MB: an Alertmanager sends a whole group at once."""
    one = {**body()["alerts"][0], "annotations": {"description": "d" * 2500}}
    many = [{**one, "fingerprint": f"{i:04}"} for i in range(1000)]
    sent = Sent()
    assert await post(json.dumps({"version": "4", "alerts": many}).encode(), sent) == (202, {"accepted": 1000})
    assert len(sent.records) == 1000


async def test_a_broker_that_takes_nothing_in_time_is_told_to_the_sender() -> None:
    before = webhooks("undelivered")
    assert (await post(json.dumps(body()).encode(), Sent(slow=True)))[0] == 503
    assert webhooks("undelivered") == before + 1


@pytest.mark.parametrize("start", [{}, {"startsAt": None}, {"startsAt": ""}, {"startsAt": "0001-01-01T00:00:00.000Z"}])
def test_an_alert_of_the_api_without_a_start_begins_now(start: dict[str, Any]) -> None:
    """As `amtool alert add` posts it, and Alertmanager takes it."""
    posted = {"labels": {"alertname": "X"}, "endsAt": "0001-01-01T00:00:00.000Z", "annotations": None, **start}
    (alert,) = parse(json.dumps([posted]).encode(), 1_767_323_045_678).alerts
    assert (alert.status, alert.starts_at, alert.annotations) == ("firing", "2026-01-02T03:04:05.678+00:00", {})
    over = {**posted, "endsAt": "2026-01-02T03:04:00Z"}
    (alert,) = parse(json.dumps([over]).encode(), 1_767_323_045_678).alerts
    assert (alert.status, alert.starts_at) == ("resolved", "2026-01-02T03:04:00Z")


def test_annotations_of_null_are_none() -> None:
    message = {**body(annotations=None), "commonAnnotations": None}
    (alert,) = parse(json.dumps(message).encode()).alerts
    assert alert.annotations == {}


@pytest.mark.parametrize("sent", [b"no gzip", b"\x1f\x8b\x08" + b"x" * 40])
async def test_a_body_that_can_not_be_unpacked_is_the_senders_fault(sent: bytes) -> None:
    kafka = Sent()
    status, answer = await post(sent, kafka, encoding="gzip")
    assert (status, kafka.records) == (400, [])
    assert answer["error"].startswith("the body can't be read: ")


@pytest.mark.parametrize(
    "message",
    [
        {**body(), "version": "password=Secret55"},
        body(status="password=Secret55"),
        body(startsAt="password=Secret55"),
        body(labels={"a": ["password=Secret55"]}),
        {"ruleName": "r", "state": "password=Secret55", "evalMatches": []},
    ],
)
async def test_values_of_refused_alerts_are_not_told(message: Any, caplog: pytest.LogCaptureFixture) -> None:
    status, answer = await post(json.dumps(message).encode(), Sent())
    assert (status, "Secret55" in answer["error"], "Secret55" in caplog.text) == (400, False, False)
