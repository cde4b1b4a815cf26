"""CloudWatch: metrics from streams and from both query APIs, logs, and what Firehose and subscriptions wrap them in."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from hyve.formats import relations

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z
MS = AT // 1_000_000


def streamed(**fields: Any) -> dict[str, Any]:
    base = {
        "metric_stream_name": "all",
        "account_id": "1",
        "region": "eu-west-1",
        "namespace": "AWS/RDS",
        "metric_name": "CPUUtilization",
        "dimensions": {"DBInstanceIdentifier": "orders"},
        "timestamp": MS,
        "value": {"count": 4.0, "sum": 10.0, "max": 4.0, "min": 1.0},
        "unit": "Percent",
    }
    return base | fields


def packed(*values: Any, zipped: bool = False) -> str:
    data = "\n".join(value if type(value) is str else json.dumps(value) for value in values).encode()
    return base64.b64encode(gzip.compress(data) if zipped else data).decode()


def points(value: Any) -> list[dict[str, Any]]:
    return relations([value])["metric_points"]


def test_a_line_of_a_metric_stream() -> None:
    assert points(streamed()) == [
        {
            "time": AT,
            "service": "orders",
            "name": "CPUUtilization",
            "value": 2.5,
            "unit": "Percent",
            "kind": "gauge",
            "count": 4,
            "sum": 10.0,
            "min": 1.0,
            "max": 4.0,
            "attributes": {"DBInstanceIdentifier": "orders"},
            "resource": {
                "cloud.provider": "aws",
                "cloud.account.id": "1",
                "cloud.region": "eu-west-1",
                "namespace": "AWS/RDS",
            },
        }
    ]


def test_additional_statistics_are_rows_of_their_own() -> None:
    found = points(streamed(value={"count": 2, "sum": 4, "max": 3, "min": 1, "p99": 2.9, "TM(10%:90%)": 2}))
    assert [(row["value"], row["count"], row["attributes"].get("statistic")) for row in found] == [
        (2.0, 2, None),
        (2.9, None, "p99"),
        (2.0, None, "TM(10%:90%)"),
    ]


def test_whom_a_metric_speaks_of() -> None:
    def service(**dimensions: str) -> str:
        return str(points(streamed(dimensions=dimensions, namespace="AWS/EC2"))[0]["service"])

    assert service(InstanceId="i-1", AutoScalingGroupName="web") == "web"
    assert service(ClusterName="prod", ServiceName="cart") == "cart"
    assert service(InstanceType="m5.large") == "AWS/EC2", "a type of machine is nobody"
    assert service() == "AWS/EC2"


def test_firehose_carries_lines_in_base64() -> None:
    delivery = {
        "requestId": "r",
        "timestamp": MS,
        "records": [
            {"data": packed(streamed(), streamed(metric_name="ReadIOPS"), "", "not json")},
            {"data": packed(streamed(metric_name="WriteIOPS"))},
            {"data": "%%%"},
            {"data": base64.b64encode(b"\xff\xfe").decode()},
            {"data": None},
            7,
        ],
    }
    assert [row["name"] for row in points(delivery)] == ["CPUUtilization", "ReadIOPS", "WriteIOPS"]


def test_firehose_and_kinesis_carry_other_things_too() -> None:
    subscription = {"messageType": "DATA_MESSAGE", "logGroup": "g", "logEvents": [{"timestamp": MS, "message": "m"}]}
    delivery = {
        "invocationId": "i",
        "records": [
            {"recordId": "1", "data": packed(subscription, zipped=True)},
            {"recordId": "2", "data": packed({"order": 7})},
        ],
    }
    found = relations([delivery])
    assert [row["body"] for row in found["log_records"]] == ["m"]
    assert found["delivered_records"] == [{"record": 1, "data": {"order": 7}}]
    assert points({"Records": [{"kinesis": {"data": packed(streamed())}}]})[0]["name"] == "CPUUtilization"
    assert relations([{"records": [{"data": "plain text"}]}]) == {}


def test_get_metric_data() -> None:
    answer = {
        "MetricDataResults": [
            {
                "Id": "m1",
                "Label": "CPUUtilization",
                "Timestamps": ["2026-08-01T17:02:02+00:00", "2026-08-01T17:01:02+00:00", "2026-08-01T17:00:02+00:00"],
                "Values": [93.5, 18.25],
                "StatusCode": "Complete",
            },
            {"Id": "m2", "Timestamps": "x", "Values": [1]},
        ],
        "Messages": [],
    }
    found = points(answer)
    assert [(row["time"], row["value"], row["name"], row["attributes"]) for row in found] == [
        (AT, 93.5, "CPUUtilization", {"id": "m1"}),
        (AT - 60_000_000_000, 18.25, "CPUUtilization", {"id": "m1"}),
    ], "parallel lists end with the shorter"


def test_get_metric_data_as_python_code_writes_it() -> None:
    answer = {
        "namespace": "AWS/RDS",
        "metric_data_results": [
            {
                "id": "m_cpu",
                "metric_name": "CPUUtilization",
                "dimensions": [{"Name": "DBInstanceIdentifier", "Value": "orders"}],
                "stat": "Maximum",
                "unit": "Percent",
                "timestamps": ["2026-08-01T17:02:02Z"],
                "values": [99],
            }
        ],
    }
    (row,) = points(answer)
    assert (row["service"], row["value"], row["unit"]) == ("orders", 99.0, "Percent")
    assert row["attributes"] == {"DBInstanceIdentifier": "orders", "id": "m_cpu", "statistic": "Maximum"}
    assert row["resource"] == {"cloud.provider": "aws", "namespace": "AWS/RDS"}


def test_get_metric_statistics() -> None:
    answer = {
        "Label": "Latency",
        "Datapoints": [
            {"Timestamp": MS / 1000, "Average": 1.5, "Maximum": 3, "Unit": "Seconds", "ExtendedStatistics": {"p90": 2}},
            {"Timestamp": "2026-08-01T17:02:02Z", "Sum": 6, "SampleCount": 4, "Unit": "Seconds"},
            {"Timestamp": "2026-08-01T17:02:02Z", "Maximum": 9},
        ],
    }
    assert [(row["time"], row["value"], row["max"], row["attributes"]) for row in points(answer)] == [
        (AT, 1.5, 3.0, {}),
        (AT, 2.0, None, {"statistic": "p90"}),
        (AT, 1.5, None, {}),
        (AT, None, 9.0, {}),
    ]


def test_log_events() -> None:
    answer = {
        "events": [
            {"timestamp": MS, "message": "START RequestId: 1\n", "ingestionTime": MS + 9},
            {"timestamp": MS + 1, "message": "[ERROR] boom", "ingestionTime": MS + 9, "eventId": "e"},
            {"timestamp": "x", "message": None, "ingestionTime": 1, "logStreamName": "s"},
        ],
        "nextForwardToken": "f/1",
    }
    first, second, third = relations([answer])["log_records"]
    assert (first["time"], first["body"], first["severity"], first["service"]) == (
        AT,
        "START RequestId: 1",
        "",
        "unknown",
    )
    assert (second["severity"], second["severity_number"], second["attributes"]) == ("ERROR", 17, {"event_id": "e"})
    assert (third["time"], third["body"], third["resource"]["log_stream"]) == (None, "", "s")
    assert relations([{"events": [{"timestamp": 1, "message": "no ingestion time"}]}]) == {}


def test_a_subscription_in_base64_and_gzip() -> None:
    payload = {
        "messageType": "DATA_MESSAGE",
        "owner": "1",
        "logGroup": "/aws/lambda/checkout",
        "logStream": "2026/08/01/[$LATEST]ab",
        "subscriptionFilters": ["f"],
        "logEvents": [
            {"id": "3", "timestamp": MS, "message": "2026-08-01T17:02:02Z WARN slow"},
            {"id": "4", "timestamp": MS, "message": '{"time":"2026-08-01T17:02:01Z","level":"error","message":"no"}'},
        ],
    }
    first, second = relations([{"awslogs": {"data": packed(payload, zipped=True)}}])["log_records"]
    assert (first["service"], first["severity"], first["time"]) == ("checkout", "WARN", AT)
    assert first["resource"] == {
        "cloud.provider": "aws",
        "cloud.account.id": "1",
        "log_group": "/aws/lambda/checkout",
        "log_stream": "2026/08/01/[$LATEST]ab",
    }
    assert (second["body"], second["severity"], second["service"], second["time"]) == ("no", "ERROR", "checkout", AT)
    assert relations([payload])["log_records"] == [first, second]
    control = payload | {"messageType": "CONTROL_MESSAGE"}
    assert relations([control]).get("log_records", []) == []


def test_a_bomb_does_not_go_off() -> None:
    bomb = base64.b64encode(gzip.compress(b"[" + b" " * 20_000_000 + b"]")).decode()
    assert len(bomb) < 100_000
    assert relations([{"awslogs": {"data": bomb}}, {"records": [{"data": bomb}]}]) == {}
