"""Good payloads of the formats, spoilt at random places: nothing raises or is changed, rows keep their promises."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.formats import RECOGNISERS, TIME_KEYS, find, sort_out
from hyve.formats.telemetry import STREAMS
from hyve.strictjson import Pairs

TEXT, MS, NS = "2024-02-03T04:05:06.123456789Z", 1706933106123, "1706933106123456789"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALUE = {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"intValue": "7"}]}}}]}}
ATTRIBUTES = [{"key": "service.name", "value": {"stringValue": "cart"}}, {"key": "b", "value": VALUE}]
POINT = {"timeUnixNano": NS, "asDouble": 1.5, "count": "2", "sum": 3, "quantileValues": [{"quantile": 0.5, "value": 1}]}
LOG = {"log": '{"level":"warn","msg":"a', "stream": "stdout", "time": TEXT}

PAYLOADS: list[Any] = [
    {
        "resourceSpans": [
            {
                "resource": {"attributes": ATTRIBUTES},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": TRACE,
                                "spanId": SPAN,
                                "kind": 2,
                                "startTimeUnixNano": NS,
                                "endTimeUnixNano": NS,
                                "status": {"code": 2},
                                "attributes": ATTRIBUTES,
                                "events": [{"timeUnixNano": NS, "name": "exception", "attributes": ATTRIBUTES}],
                                "links": [{"traceId": TRACE, "spanId": SPAN, "attributes": ATTRIBUTES}],
                            }
                        ]
                    }
                ],
            }
        ],
        "resource_logs": [
            {"scope_logs": [{"log_records": [{"time_unix_nano": NS, "severity_number": 9, "body": VALUE}]}]}
        ],
    },
    {
        "resourceMetrics": [
            {
                "scopeMetrics": [
                    {
                        "metrics": [
                            {"name": "g", "gauge": {"dataPoints": [POINT]}},
                            {"name": "s", "summary": {"dataPoints": [POINT]}},
                            {"name": "e", "exponentialHistogram": {"dataPoints": [POINT]}},
                        ]
                    }
                ]
            }
        ]
    },
    {"signal": "log", "entity": "cart", "time": MS, "row": {"time": MS, "service": "cart", "body": "b"}},
    {
        "receiver": "r",
        "commonAnnotations": {"summary": "s"},
        "alerts": [{"status": "firing", "labels": {"alertname": "A"}, "startsAt": TEXT, "endsAt": TEXT}],
    },
    {"ruleName": "r", "state": "alerting", "evalMatches": [{"metric": "m", "tags": {"a": "b"}, "value": 1}]},
    {"title": "[T on {a:b}] x", "alert_transition": "Triggered", "date": str(MS), "tags": "a:b,c", "monitor_id": "7"},
    {"aggregation_key": "A", "starts_at": TEXT, "ends_at": None, "labels": {"severity": "warning"}, "title": "t"},
    {
        "grids": [
            {
                "alertGroups": [
                    {
                        "labels": {"a": "b"},
                        "shared": {"labels": {}, "annotations": [{"name": "n", "value": "v"}]},
                        "alerts": [{"labels": {"c": "d"}, "annotations": [], "startsAt": TEXT, "state": "active"}],
                    }
                ]
            }
        ]
    },
    {"data": {"groups": [{"rules": [{"alerts": [{"labels": {"a": "b"}, "activeAt": TEXT, "state": "firing"}]}]}]}},
    {"data": {"resultType": "matrix", "result": [{"metric": {"__name__": "up"}, "values": [[1706933106.5, "1"]]}]}},
    [{"metric": {"__name__": "up", "job": "a"}, "value": [1706933106, "NaN"]}],
    {"timestamp": TEXT, "value": "1", "name": "up", "labels": {"a": "b"}},
    {
        "data": {
            "resultType": "streams",
            "result": [{"stream": {"a": "b"}, "values": [[NS, "line", {"level": "warn"}]]}],
        }
    },
    [
        {
            "traceId": TRACE,
            "id": SPAN,
            "kind": "SERVER",
            "timestamp": MS * 1000,
            "duration": 5,
            "shared": True,
            "localEndpoint": {"serviceName": "a"},
            "annotations": [{"timestamp": MS * 1000, "value": "v"}],
            "tags": {"error": "e"},
        }
    ],
    {
        "data": [
            {
                "traceID": TRACE,
                "processes": {"p1": {"serviceName": "a", "tags": []}},
                "spans": [
                    {
                        "spanID": SPAN,
                        "operationName": "o",
                        "processID": "p1",
                        "startTime": MS * 1000,
                        "duration": 5,
                        "references": [{"refType": "CHILD_OF", "spanID": SPAN}, {"refType": "FOLLOWS_FROM"}],
                        "tags": [{"key": "span.kind", "value": "client"}],
                        "logs": [{"timestamp": MS * 1000, "fields": [{"key": "event", "value": "e"}]}],
                    }
                ],
            }
        ]
    },
    {
        "kind": "List",
        "items": [
            {
                "kind": "Pod",
                "metadata": {"name": "a-0", "labels": {"app": "a"}, "ownerReferences": [{"name": "a"}]},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "10m", "memory": "1Ki"}}}]},
                "status": {
                    "startTime": TEXT,
                    "containerStatuses": [
                        {
                            "name": "c",
                            "restartCount": 3,
                            "state": {"waiting": {"reason": "r"}},
                            "lastState": {"terminated": {"exitCode": 1, "finishedAt": TEXT}},
                        }
                    ],
                },
            },
            {"kind": "Event", "involvedObject": {"kind": "Pod", "name": "a-0"}, "lastTimestamp": TEXT, "count": 2},
            {
                "kind": "Node",
                "metadata": {"name": "n", "creationTimestamp": TEXT},
                "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "r"}]},
            },
        ],
    },
    [
        LOG,
        {**LOG, "log": 'b"}\n'},
        {**LOG, "logtag": "P"},
        {**LOG, "kubernetes": {"pod_name": "p", "labels": {"app": "a"}}},
    ],
    [
        {
            "log": "x",
            "container_id": "c",
            "container_name": "n",
            "source": "stdout",
            "partial_message": "true",
            "partial_id": "p",
        }
    ],
    [
        {
            "metadata": {
                "service": {"name": "s", "agent": {}},
                "system": {"kubernetes": {"pod": {"name": "p"}}},
                "labels": {},
            }
        },
        {
            "transaction": {
                "id": SPAN,
                "trace_id": TRACE,
                "timestamp": MS * 1000,
                "duration": 5.5,
                "context": {"request": {}},
            }
        },
        {"span": {"id": SPAN, "type": "db", "timestamp": MS * 1000, "duration": 5, "context": {"db": {"type": "sql"}}}},
        {"error": {"timestamp": MS * 1000, "log": {"message": "m", "level": "error"}, "exception": {"message": "x"}}},
        {
            "metricset": {
                "timestamp": MS * 1000,
                "samples": {"a": {"value": 1, "counts": [1, 2]}},
                "tags": {},
                "span": {},
            }
        },
        {"log": {"message": "m", "log.level": "warn", "@timestamp": MS * 1000}},
    ],
    {"level": 30, "time": MS, "pid": 1, "hostname": "h", "name": "n", "msg": "m", "trace_id": TRACE},
    {"@timestamp": TEXT, "log": {"level": "warn"}, "message": "m", "service": {"name": "a"}, "trace": {"id": TRACE}},
    {"@t": TEXT, "@mt": "m", "@l": "Error", "@tr": TRACE},
    {"Timestamp": TEXT, "SeverityText": "ERROR", "SeverityNumber": 17, "Body": "b", "ServiceName": "a"},
    {"__REALTIME_TIMESTAMP": NS[:16], "MESSAGE": [104, 105], "PRIORITY": "3", "_SYSTEMD_UNIT": "a.service"},
    {"version": "1.1", "host": "h", "short_message": "s", "timestamp": 1706933106.5, "level": 3, "_a": 1},
    {
        "time": 1706933106.5,
        "host": "h",
        "sourcetype": "s",
        "event": {"message": "m", "level": "warn"},
        "fields": {"a": 1},
    },
    {
        "logName": "l",
        "jsonPayload": {"message": "m"},
        "resource": {"type": "t", "labels": {"container_name": "c"}},
        "timestamp": TEXT,
        "severity": "ERROR",
        "trace": f"projects/p/traces/{TRACE}",
    },
    {
        "data": [
            {
                "id": "i",
                "type": "log",
                "attributes": {"timestamp": TEXT, "status": "warn", "message": "m", "attributes": {}},
            }
        ]
    },
]
_KEYS = sorted({key for one in (*STREAMS, *RECOGNISERS) for need in one.needs for key in need})

_SPOILT: st.SearchStrategy[Any] = (
    st.sampled_from([None, True, 0, -1, 10**30, 10**400, 1.5, 1e300, float("nan"), float("inf")])
    | st.sampled_from(["", "x", "\ud800", "9" * 40, "1e999", TEXT])
    | st.sampled_from(
        [
            [],
            {},
            [[]],
            [{}],
            [None],
            {"a": 1},
            {"": {}},
            [1, "a", {}],
            Pairs([("a", 1), ("a", 2)]),
            Pairs([(None, [])]),
            {"key": 5},
            {"name": 5},
            {"labels": 5},
            {"stringValue": []},
        ]
    )
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, below in inner:
        yield from _places(below, (*path, key))


def _spoil(value: Any, path: tuple[Any, ...], new: Any, how: str) -> Any:
    if not path:
        return new
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    if how == "drop":
        del parent[path[-1]]
    elif how == "wrap":
        parent[path[-1]] = [parent[path[-1]]]
    elif how == "repeat" and type(parent[path[-1]]) is dict:
        pairs = list(parent[path[-1]].items())
        parent[path[-1]] = Pairs(pairs + pairs[:1])
    else:
        parent[path[-1]] = new
    return value


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    value = copy.deepcopy(draw(st.sampled_from(PAYLOADS)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(_places(value))))
        value = _spoil(
            value, path, copy.deepcopy(draw(_SPOILT)), draw(st.sampled_from(["set", "set", "drop", "wrap", "repeat"]))
        )
    return value


def _check(value: Any) -> None:
    before = repr(value)
    found = find([value])
    wired = type(value) is dict and "signal" in value  # those rows are as the topic has them
    assert repr(value) == before, "nothing of the input is changed"
    for name, rows in found.relations.items():
        assert rows, name
        for row in rows:
            for key in TIME_KEYS & row.keys():
                assert row[key] is None or (type(row[key]) is int and 0 < row[key] < 2**63)
            if name in ("spans", "log_records", "metric_points"):
                assert type(row["service"]) is str
                if not wired:
                    assert type(row["attributes"]) is dict
                    assert type(row["resource"]) is dict
    for record in sort_out([value])[0]:
        assert type(record.entity) is str
    for recognise in RECOGNISERS:
        if recognise(value) is not None:
            seen = value[0] if type(value) is list else value
            assert any(need <= seen.keys() for need in recognise.needs + recognise.listed), "asked only if so"


def test_the_payloads_are_good() -> None:
    for payload in PAYLOADS:
        assert find([payload]).relations, payload
        _check(payload)


@settings(max_examples=600, deadline=None)
@given(spoilt())
def test_spoilt_payloads(value: Any) -> None:
    _check(value)


_JSON = st.recursive(
    _SPOILT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([(r, need) for r in RECOGNISERS for need in r.needs]), st.data())
def test_objects_with_the_right_keys_and_anything_in_them(wanted: Any, data: st.DataObject) -> None:
    recogniser, need = wanted
    value = {key: data.draw(_JSON, label=key) for key in sorted(need)}
    found = recogniser(value)
    assert found is None or all(type(row) is dict for rows in found.values() for row in rows)
    _check(value)
    _check([value, value])
