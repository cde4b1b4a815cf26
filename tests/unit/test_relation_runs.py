"""The telemetry of a very long list is found run by run, and its relations are those of the whole (H21-H23)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hyve
from hyve.formats.by_runs import Inseparable, find_runs
from hyve.formats.telemetry import find
from hyve.strictjson import Ahead
from tests.unit.documents import fetched
from tests.unit.in_runs import check, in_runs

SPAN = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "GET", "startTimeUnixNano": "1772323200000000000"}
EVENT = {"name": "exception", "timeUnixNano": "1772323200000000000", "attributes": []}
SERVICE = {"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]}
POD = {
    "kind": "Pod",
    "metadata": {"name": "cart-1"},
    "status": {"phase": "Running", "containerStatuses": [{"name": "c"}]},
}
AWS = {"eventID": "1", "eventTime": "2026-03-01T00:00:00Z", "eventName": "Run", "eventSource": "ec2"}
ALERT = {"labels": {"alertname": "Slow"}, "startsAt": "2026-03-01T00:00:00Z"}
SERIES = {"metric": {"__name__": "up", "job": "a"}, "values": [[1772323200, "1"], [1772323260, "0"]]}
ENTRY = {"logName": "a", "textPayload": "x", "timestamp": "2026-03-01T00:00:00Z"}
ZIPKIN = {"traceId": "ab" * 8, "id": "cd" * 8, "name": "get", "timestamp": 1772323200000000, "duration": 5}
JAEGER = {"traceID": "1", "spanID": "2", "operationName": "x", "startTime": 1772323200000000, "duration": 7}
POINT = {"interval": {"endTime": "2026-03-01T00:00:00Z"}, "value": {"doubleValue": 1}}
LOG = {"@timestamp": "2026-03-01T00:00:00Z", "message": "x", "log.level": "info"}


def rows_of(ahead: Ahead) -> dict[str, list[Any]]:
    """The rows of all runs by relation, those without rows left out."""
    rows: dict[str, list[Any]] = {}
    for found in find_runs(ahead.runs(), ahead.path):
        for name, more in found.relations.items():
            rows.setdefault(name, []).extend(more)
    return {name: more for name, more in rows.items() if more}


def spans(*found: dict[str, Any]) -> dict[str, Any]:
    return {"resource": SERVICE, "scopeSpans": [{"scope": {}, "spans": list(found)}]}


FORMATS: dict[str, tuple[bool, Any]] = {
    "OTLP": (True, {"resourceSpans": [spans(SPAN), spans({**SPAN, "events": [EVENT]}), spans(SPAN)]}),
    "OTLP of two signals": (
        True,
        {
            "resourceSpans": [spans(SPAN), spans(SPAN)],
            "resourceLogs": [{"resource": SERVICE, "scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}],
        },
    ),
    "Kubernetes": (
        True,
        {
            "kind": "List",
            "items": [
                POD,
                {"kind": "Event", "involvedObject": {}, "metadata": {"name": "e"}},
                POD,
                {"kind": "Node", **POD},
            ],
        },
    ),
    "Kubernetes, first unknown": (False, {"kind": "List", "items": [{"kind": "Event"}, POD, POD]}),
    "pods": (True, [POD, POD, {**POD, "kind": "Event", "involvedObject": {"name": "x"}}]),
    "Prometheus": (True, {"status": "success", "data": {"resultType": "matrix", "result": [SERIES, SERIES]}}),
    "Prometheus' list": (True, [SERIES, SERIES, {**SERIES, "metric": {"job": "b"}}]),
    "Prometheus' list, not all": (False, [SERIES, SERIES, {"metric": 1}, {"metric": 2}]),
    "Loki": (
        True,
        {"data": {"resultType": "streams", "result": [{"stream": {"app": "a"}, "values": [["1", "x"]]}] * 3}},
    ),
    "Loki, not all": (
        False,
        {"streams": [*[{"stream": {"app": "a"}, "values": [["1", "x"]]}] * 2, {"stream": 1}, {"stream": 2}]},
    ),
    "Alertmanager": (True, {"receiver": "x", "commonAnnotations": {"summary": "s"}, "alerts": [ALERT, ALERT]}),
    "Alertmanager's list": (True, [ALERT, {**ALERT, "status": {"state": "active"}}, ALERT]),
    "CloudTrail": (True, {"Records": [AWS, AWS, {**AWS, "eventName": "x"}]}),
    "CloudTrail, not all": (False, {"Records": [AWS, {"eventID": 1}, AWS]}),
    "Google Cloud's logs": (True, {"entries": [ENTRY, ENTRY]}),
    "Google Cloud's metrics": (
        True,
        {"unit": "By", "timeSeries": [{"metric": {"type": "m"}, "points": [POINT, POINT]}] * 2},
    ),
    "Jaeger": (True, {"data": [{"traceID": "1", "spans": [JAEGER], "processes": {}}] * 3, "total": 0}),
    "Zipkin": (False, [ZIPKIN, {**ZIPKIN, "kind": "SERVER"}, ZIPKIN]),
    "Elasticsearch": (
        False,
        {
            "took": 1,
            "hits": {"total": 2, "hits": [{"_index": "i", "_id": str(n), "_source": {"a": n}} for n in range(3)]},
        },
    ),
    "log records": (True, [LOG, LOG, {**LOG, "message": None}, {"x": 1}]),
    "log records beside others": (True, [{"@timestamp": 1}, LOG, {"@timestamp": 2, **POD}, {"@timestamp": 2, **LOG}]),
    "Docker's lines": (True, [{"log": "a ", "stream": "stdout", "time": "2026-03-01T00:00:00Z"}] * 3),
    "Elastic APM": (True, [{"metadata": {"service": {"name": "a"}}}, {"span": {"name": "x"}}] * 3),
    "a message by name": (True, {"q": {"resultType": "matrix", "result": [SERIES, SERIES]}}),
    "messages by name": (
        False,
        {"q": {"resultType": "matrix", "result": [SERIES, SERIES]}, "r": {"resultType": "vector", "result": [SERIES]}},
    ),
    "nothing known": (True, {"items": [{"a": 1}, {"a": 2}]}),
}


@pytest.mark.parametrize("value", [value for _, value in FORMATS.values() if isinstance(value, list)])
def test_relations_of_lines(value: list[Any]) -> None:
    check("\n".join(map(json.dumps, value)))


@pytest.mark.parametrize(("in_turn", "value"), FORMATS.values(), ids=FORMATS)
def test_relations_of_runs(in_turn: bool, value: Any) -> None:
    """The rows are those of the whole; `in_turn` tells the formats that need not see it."""
    text = json.dumps(value)
    check(text)
    with in_runs():
        ahead = hyve.parse(text).parts[0].ahead
        assert isinstance(ahead, Ahead)
        assert len(list(ahead.runs())) > 1
        if not in_turn:
            with pytest.raises(Inseparable):
                rows_of(ahead)
            return
        rows = rows_of(ahead)
    wanted = find([value]).relations
    assert rows == wanted
    assert list(rows) == list(wanted)


NESTED: dict[str, Any] = {
    "spans": {"resourceSpans": [spans(SPAN, {**SPAN, "events": [EVENT]}, *[SPAN] * 8)]},
    "logs": {
        "resourceLogs": [
            {"resource": SERVICE, "scopeLogs": [{"logRecords": [{"body": {"stringValue": f"x{i}"}} for i in range(9)]}]}
        ]
    },
    "a scope behind": {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN] * 9, "scope": {}}], "resource": SERVICE}]},
    "points": {
        "resourceMetrics": [
            {
                "resource": SERVICE,
                "scopeMetrics": [
                    {
                        "metrics": [
                            {"name": "m", "gauge": {"dataPoints": [{"asInt": i, "attributes": []} for i in range(9)]}}
                        ]
                    }
                ],
            }
        ]
    },
    "Prometheus": {
        "data": {
            "resultType": "matrix",
            "result": [{**SERIES, "values": [[1772323200 + i, f"{i}"] for i in range(40)]}],
        }
    },
}


@pytest.mark.parametrize("value", NESTED.values(), ids=NESTED)
def test_relations_of_runs_of_an_inner_list(value: Any) -> None:
    """One resource, scope, metric or series: the rows are those of the whole, which is never held."""
    text = json.dumps(value)
    check(text)
    with in_runs():
        ahead = hyve.parse(text).parts[0].ahead
        assert isinstance(ahead, Ahead)
        assert len(list(ahead.runs())) > 3
        rows = rows_of(ahead)
    assert rows == find([value]).relations


def test_odd_records_beside_known_ones() -> None:
    """Formats leave out what is no record of theirs, in runs too."""
    text = json.dumps({"Records": [AWS, {"eventID": "2"}, AWS, {"eventName": "x"}, None, AWS]})
    check(text, 1000)
    with in_runs(1000):
        ahead = hyve.parse(text).parts[0].ahead
        assert ahead is not None
        rows = [len(found.relations["cloudtrail_events"]) for found in find_runs(ahead.runs(), ahead.path)]
        assert rows == [3, 1]


def test_documents_beside_each_other() -> None:
    """Relations of a long list and of other documents are one table each."""
    first, second = json.dumps({"resourceSpans": [spans(SPAN)] * 3}), json.dumps({"resourceSpans": [spans(SPAN)] * 2})
    log = "\n".join(f"2026-03-01 10:00:{i:02d} INFO started {i}" for i in range(30))
    with hyve.Datastore(map(hyve.parse, [first, log, second], ["a", "b", "c"])) as store:
        wanted = [(table, fetched(store, f'FROM "{table.name}"')) for table in store.catalog.tables]
    with in_runs():
        parsed = [hyve.parse(first, "a"), hyve.parse(log, "b"), hyve.parse(second, "c")]
        assert [part.ahead is not None for document in parsed for part in document.parts] == [True, False, True]
        with hyve.Datastore(parsed) as store:
            assert [(table, fetched(store, f'FROM "{table.name}"')) for table in store.catalog.tables] == wanted
            assert store.reconstruct(0) == json.loads(first)
            assert store.reconstruct(2) == json.loads(second)
