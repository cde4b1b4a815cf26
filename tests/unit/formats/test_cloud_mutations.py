"""Good payloads of the cloud formats, damaged at random places: nothing raises, rows keep their types, input stays."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.formats import (
    azure,
    cloudevents,
    cloudtrail,
    cloudwatch,
    cloudwatch_logs,
    debezium,
    ec2,
    elasticsearch,
    gcp,
    relations,
    solr,
    tempo,
)
from hyve.strictjson import Pairs

RECOGNISERS = tuple(
    module.recognise
    for module in (
        azure,
        cloudevents,
        cloudtrail,
        cloudwatch,
        cloudwatch_logs,
        debezium,
        ec2,
        elasticsearch,
        gcp,
        solr,
        tempo,
    )
)
STAMP = "2026-08-01T17:02:02Z"
MS = 1_785_603_722_000
VM = "/subscriptions/s/providers/Microsoft.Compute/virtualMachines/vm1"
STREAMED = {
    "account_id": "1",
    "region": "eu",
    "namespace": "AWS/RDS",
    "metric_name": "CPU",
    "dimensions": {"DBInstanceIdentifier": "orders"},
    "timestamp": MS,
    "value": {"count": 4.0, "sum": 10.0, "max": 4.0, "min": 1.0, "p99": 3.5},
    "unit": "Percent",
}
EVENT = {
    "eventID": "e",
    "eventTime": STAMP,
    "eventName": "GetRole",
    "eventSource": "iam.amazonaws.com",
    "awsRegion": "eu-west-1",
    "userIdentity": {
        "type": "AssumedRole",
        "arn": "arn",
        "userName": "eve",
        "invokedBy": "ec2",
        "sessionContext": {"sessionIssuer": {"userName": "ops"}},
    },
    "recipientAccountId": "1",
    "sourceIPAddress": "192.0.2.1",
    "userAgent": "cli",
    "errorCode": "AccessDenied",
    "errorMessage": "no",
    "eventType": "AwsApiCall",
    "requestParameters": {"roleName": "admin"},
    "responseElements": {"role": {}},
    "resources": [{"ARN": "arn:aws:iam::1:role/admin"}],
    "readOnly": True,
}
SUBSCRIPTION = {
    "messageType": "DATA_MESSAGE",
    "logGroup": "/aws/lambda/f",
    "logStream": "s",
    "owner": "1",
    "logEvents": [{"id": "1", "timestamp": MS, "message": '{"time":"2026-08-01T17:02:02Z","level":"warn","msg":"x"}'}],
}


def packed(value: Any, zipped: bool = False) -> str:
    data = json.dumps(value).encode()
    return base64.b64encode(gzip.compress(data) if zipped else data).decode()


_COLUMNS = [
    {"field": "n", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    {"field": "v", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    {"field": "u", "type": "int64"},
]
_ROW = {"n": "EtaH", "v": {"scale": 1, "value": "AVo="}, "u": "AP//////////"}
GOOD: list[Any] = [
    {"Records": [EVENT, EVENT]},
    STREAMED,
    SUBSCRIPTION,
    {"Events": [{"EventId": "e", "EventTime": STAMP, "CloudTrailEvent": json.dumps(EVENT), "Resources": []}]},
    {
        "Events": [
            {
                "EventId": "e",
                "EventName": "n",
                "EventSource": "s",
                "EventTime": STAMP,
                "Username": "eve",
                "ReadOnly": "true",
                "Resources": [{"ResourceName": "r"}],
                "CloudTrailEvent": "{}",
            }
        ]
    },
    {"records": [{"data": packed(STREAMED)}, {"data": packed(SUBSCRIPTION, zipped=True)}, {"data": packed({"a": 1})}]},
    {"MetricDataResults": [{"Id": "m", "Label": "CPU", "Timestamps": [STAMP, STAMP], "Values": [1, 2.5]}]},
    {"Label": "CPU", "Datapoints": [{"Timestamp": STAMP, "Average": 1, "ExtendedStatistics": {"p90": 2}}]},
    {
        "events": [
            {"timestamp": MS, "message": "[ERROR] boom", "ingestionTime": MS, "eventId": "1", "logStreamName": "s"}
        ]
    },
    {"awslogs": {"data": packed(SUBSCRIPTION, zipped=True)}},
    {
        "took": 1,
        "timed_out": False,
        "_shards": {"total": 1, "failed": 0},
        "hits": {
            "max_score": 1.0,
            "total": {"value": 1, "relation": "eq"},
            "hits": [{"_index": "i", "_id": "1", "_score": 1.0, "_source": {"@timestamp": STAMP, "message": "m"}}],
        },
        "aggregations": {
            "a": {
                "buckets": [
                    {
                        "key": MS,
                        "key_as_string": STAMP,
                        "from": 1,
                        "doc_count": 1,
                        "p": {"values": {"50.0": 1}},
                        "b": {"buckets": {"k": {}}},
                    }
                ]
            },
            "f": {"doc_count": 2, "m": {"value": 1}},
        },
    },
    {
        "specversion": "1.0",
        "id": "1",
        "source": "s",
        "type": "t",
        "time": STAMP,
        "subject": "s",
        "datacontenttype": "application/json",
        "dataschema": "d",
        "data_base64": packed({"a": [1]}),
        "ext": 1,
    },
    {
        "schema": {"fields": [{"field": "before", "fields": _COLUMNS}, {"field": "after", "fields": _COLUMNS}]},
        "payload": {
            "before": _ROW,
            "after": _ROW | {"u": 7},
            "source": {"connector": "mysql", "db": "d", "schema": "s", "table": "t", "ts_ms": MS, "snapshot": "false"},
            "op": "u",
            "transaction": {"id": "1"},
        },
    },
    {
        "traces": [
            {
                "traceID": "ab",
                "rootServiceName": "s",
                "rootTraceName": "GET /",
                "startTimeUnixNano": f"{MS}000000",
                "durationMs": 3,
                "serviceStats": {"s": {"spanCount": 1, "errorCount": 0}},
                "spanSets": [
                    {
                        "spans": [
                            {
                                "spanID": "cd",
                                "parentSpanID": "ef",
                                "name": "GET",
                                "startTimeUnixNano": f"{MS}000000",
                                "durationNanos": "5",
                                "attributes": [
                                    {"key": "status", "value": {"stringValue": "error"}},
                                    {"key": "kind", "value": {"stringValue": "server"}},
                                    {"key": "statusMessage", "value": {"stringValue": "m"}},
                                    {"key": "service.name", "value": {"stringValue": "s"}},
                                    {"key": "peer.service", "value": {"stringValue": "p"}},
                                ],
                            }
                        ],
                        "matched": 1,
                    }
                ],
            }
        ]
    },
    {
        "status_code": 200,
        "data": {
            "Reservations": [
                {
                    "ReservationId": "r",
                    "OwnerId": "1",
                    "Instances": [
                        {
                            "InstanceId": "i",
                            "LaunchTime": {"__class__": "datetime", "year": 2026, "month": 8, "day": 1},
                            "State": {"Name": "running"},
                            "StateReason": {"Message": "m"},
                            "StateTransitionReason": "r",
                            "InstanceType": "t2.micro",
                            "ImageId": "ami",
                            "Placement": {"AvailabilityZone": "a"},
                            "PrivateIpAddress": "10.0.0.1",
                            "PublicIpAddress": "192.0.2.1",
                            "VpcId": "v",
                            "SubnetId": "s",
                            "Tags": [{"Key": "Name", "Value": "web"}],
                            "SecurityGroups": [{"GroupName": "g"}],
                        }
                    ],
                }
            ]
        },
    },
    {
        "solr-mbeans": [
            "CORE",
            {"core": {"class": "c", "version": "1", "description": "d", "stats": {"a": "NaN"}}},
            "CACHE",
            {"q": {"stats": ["k", 1]}},
        ]
    },
    {
        "timespan": "x",
        "value": [
            {
                "id": VM,
                "name": {"value": "CPU"},
                "unit": "Percent",
                "timeseries": [
                    {
                        "metadatavalues": [{"name": {"value": "core"}, "value": "0"}],
                        "data": [
                            {"timeStamp": STAMP, "average": 1, "count": 1, "total": 1, "minimum": 1, "maximum": 1},
                            {"timeStamp": STAMP, "total": 1},
                        ],
                    }
                ],
            }
        ],
    },
    {
        "records": [
            {
                "time": STAMP,
                "resourceId": VM,
                "operationName": "w",
                "category": "c",
                "level": "Error",
                "resultType": "Failure",
                "identity": {"a": 1},
                "location": "eu",
                "properties": {"message": "m"},
            },
            {"time": STAMP, "resourceId": VM, "metricName": "m", "timeGrain": "PT1M", "average": 1},
        ]
    },
    {
        "timeSeries": [
            {
                "metric": {"type": "t", "labels": {"a": "b"}},
                "resource": {"type": "r", "labels": {"service_name": "s"}},
                "metricKind": "DELTA",
                "points": [
                    {"interval": {"endTime": STAMP}, "value": {"int64Value": "7"}},
                    {
                        "interval": {"endTime": STAMP},
                        "value": {"distributionValue": {"count": "1", "mean": 2, "range": {"min": 1, "max": 2}}},
                    },
                ],
            }
        ],
        "unit": "1",
    },
]

_TEXT, _MAYBE, _REAL, _WHOLE = (str,), (str, type(None)), (float, type(None)), (int, type(None))
_ANY = (object,)
_SHARED: dict[str, tuple[type, ...]] = {"service": _TEXT, "attributes": (dict,), "resource": (dict,)}
_TYPES: dict[str, dict[str, tuple[type, ...]]] = {
    "metric_points": _SHARED
    | dict.fromkeys(("name", "unit", "kind"), _TEXT)
    | dict.fromkeys(("value", "sum", "min", "max"), _REAL)
    | {"count": _WHOLE},
    "log_records": _SHARED
    | dict.fromkeys(("severity", "body"), _TEXT)
    | dict.fromkeys(("trace_id", "span_id"), _MAYBE)
    | {"severity_number": _WHOLE},
    "spans": _SHARED
    | dict.fromkeys(("name", "kind", "status", "status_message"), _TEXT)
    | dict.fromkeys(("trace_id", "span_id", "parent_span_id", "peer_service"), _MAYBE)
    | {"duration_ms": _REAL, "end_time": _WHOLE},
    "traces": dict.fromkeys(("trace_id", "root_service", "root_name"), _MAYBE)
    | dict.fromkeys(("spans", "errors", "matched_spans"), _WHOLE)
    | {"duration_ms": _REAL},
    "cloudtrail_events": dict.fromkeys(("event_name", "event_source", "region", "event_id"), _TEXT)
    | dict.fromkeys(("user_type", "user_name", "user_arn", "account", "source_ip", "user_agent", "error_code"), _MAYBE)
    | dict.fromkeys(("error_message", "event_type", "request_parameters", "response_elements"), _MAYBE)
    | {"read_only": (bool, type(None)), "resources": (list,)},
    "instances": dict.fromkeys(("name", "state", "state_reason", "state_transition", "type", "image", "zone"), _MAYBE)
    | dict.fromkeys(("private_ip", "public_ip", "vpc", "subnet", "reservation", "owner"), _MAYBE)
    | {"instance_id": _TEXT, "security_groups": (list,), "tags": (dict,)},
    "hits": {"_index": _TEXT, "_id": _TEXT, "_score": _REAL},
    "buckets": {"aggregation": _TEXT, "key": _MAYBE, "key_as_string": _MAYBE, "doc_count": _WHOLE}
    | {"parents": (dict,), "metrics": (dict,)},
    "searches": dict.fromkeys(("took_ms", "max_score"), _REAL)
    | dict.fromkeys(("total", "hits", "shards", "shards_failed"), _WHOLE)
    | dict.fromkeys(("timed_out", "total_capped"), (bool,)),
    "cloud_events": dict.fromkeys(("id", "source", "type"), _TEXT)
    | dict.fromkeys(("subject", "datacontenttype", "dataschema"), _MAYBE)
    | {"extensions": (dict,), "data": _ANY},
    "changes": dict.fromkeys(("connector", "database", "schema", "table_name", "transaction"), _MAYBE)
    | dict.fromkeys(("key", "before", "after"), (dict, type(None)))
    | {"op": _TEXT, "snapshot": (bool,), "changed": (list, type(None))},
    "solr_mbeans": dict.fromkeys(("class", "version", "description"), _MAYBE)
    | {"category": _TEXT, "name": _TEXT, "stats": (dict,)},
    "delivered_records": {"record": (int,), "data": (dict,)},
}


_STRINGS = ("resources", "changed", "security_groups", "parents", "tags")
"""Lists and objects of texts."""


def check(found: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in found.items():
        if name not in _TYPES:
            continue  # another format's: a damaged payload may look like one
        for row in rows:
            assert all(type(key) is str for key in row), name
            time = row.get("time")
            assert time is None or (type(time) is int and 0 < time < 1 << 63), (name, time)
            for column, types in _TYPES[name].items():
                assert isinstance(row[column], types), (name, column, row[column])
                assert type(row[column]) is not bool or bool in types or types is _ANY, (name, column)
            for column in _STRINGS:
                inner = row.get(column) if column in _TYPES[name] else None
                for one in inner.values() if type(inner) is dict else inner or ():
                    assert type(one) is str, (name, column, one)
            if name == "buckets":
                for metric in row["metrics"].values():
                    values = metric.values() if type(metric) is dict else [metric]
                    assert all(isinstance(one, _REAL) for one in values), metric
            if name == "metric_points":
                labels = ("cloud.region", "cloud.account.id", "namespace", "type", "core", "time_grain")
                assert all(type(row[side].get(key, "")) is str for side in ("resource", "attributes") for key in labels)


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = {"buckets": [value], "key": 1, "doc_count": 1} if level % 2 else [value]
    return value


ODD = [
    None,
    True,
    False,
    0,
    -1,
    1 << 70,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "NaN",
    "\ud800",
    "A" * 100_000,
    "A" * 99_999 + "!",
    "H4sIAAAAAAAA",
    base64.b64encode(gzip.compress(b"[" * 1_000_000, mtime=0)).decode(),
    base64.b64encode(b"[" * 10_000).decode(),
    "{" * 500,
    STAMP,
    [],
    {},
    [[]],
    [None, 1, "x"],
    {"": {}},
    {"value": {"value": 1}},
    Pairs([("a", 1), ("a", [2])]),
    [Pairs([("a", 1), ("a", 2)])],
    deep(400),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if len(path) > 20:
        return found
    if type(value) is dict:
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif type(value) is list:
        for i, inner in enumerate(value):
            found += places(inner, (*path, i))
    return found


def damage(value: Any, chance: random.Random) -> Any:
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 4)):
        path = chance.choice(places(value))
        if not path:
            continue
        holder = value
        for step in path[:-1]:
            holder = holder[step]
        action, last = chance.randrange(5), path[-1]
        if action == 0:
            del holder[last]
        elif action == 1 and type(holder[last]) is dict:
            holder[last] = Pairs([*holder[last].items(), *holder[last].items()])
        elif action == 2 and type(holder[last]) in (int, float):
            holder[last] = str(holder[last])
        elif action == 3:
            holder[last] = [holder[last]]
        else:
            holder[last] = copy.deepcopy(chance.choice(ODD))
    return value


def test_good_payloads_give_well_typed_rows() -> None:
    names: set[str] = set()
    for value in GOOD:
        found = relations([value])
        assert found, value
        check(found)
        names |= found.keys()
    assert names == _TYPES.keys()


def test_every_single_place_damaged() -> None:
    """Every place of every payload, replaced by each odd value and left out."""
    for good in GOOD:
        for path in places(good)[1:]:
            for odd in ODD:
                value = copy.copy(good)
                holder = value
                for step in path[:-1]:
                    holder[step] = copy.copy(holder[step])
                    holder = holder[step]
                holder[path[-1]] = odd
                for recognise in RECOGNISERS:
                    check(recognise(value) or {})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GOOD), st.integers(0, 1 << 32))
def test_damage_at_random_places(good: Any, seed: int) -> None:
    value = damage(good, random.Random(seed))
    before = repr(value)
    check(relations([value, [value], {"one": value, "other": value}]))
    for recognise in RECOGNISERS:
        check(recognise(value) or {})
    assert repr(value) == before
