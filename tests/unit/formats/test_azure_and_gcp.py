"""Azure Monitor and Google Cloud Monitoring."""

from __future__ import annotations

from typing import Any

from hyve.formats import relations

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z
STAMP = "2026-08-01T17:02:02Z"
VM = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm1"


def test_azure_metrics() -> None:
    answer = {
        "cost": 0,
        "timespan": "2026-08-01T16:02:02Z/2026-08-01T17:02:02Z",
        "interval": "PT1M",
        "value": [
            {
                "id": f"{VM}/providers/microsoft.insights/metrics/Percentage CPU",
                "type": "Microsoft.Insights/metrics",
                "name": {"value": "Percentage CPU", "localizedValue": "CPU"},
                "unit": "Percent",
                "timeseries": [
                    {
                        "metadatavalues": [{"name": {"value": "core"}, "value": "0"}],
                        "data": [
                            {"timeStamp": STAMP, "average": 93.5, "maximum": 99.0},
                            {"timeStamp": STAMP, "average": None, "total": 7.0},
                            {"timeStamp": STAMP},
                        ],
                    }
                ],
            }
        ],
        "namespace": "Microsoft.Compute/virtualMachines",
        "resourceregion": "westeurope",
    }
    first, second, third = relations([answer])["metric_points"]
    assert first == {
        "time": AT,
        "service": "vm1",
        "name": "Percentage CPU",
        "value": 93.5,
        "unit": "Percent",
        "kind": "gauge",
        "count": None,
        "sum": None,
        "min": None,
        "max": 99.0,
        "attributes": {"core": "0"},
        "resource": {
            "cloud.provider": "azure",
            "cloud.resource_id": VM,
            "cloud.region": "westeurope",
            "namespace": "Microsoft.Compute/virtualMachines",
        },
    }
    assert (second["value"], second["sum"], second["attributes"]) == (7.0, 7.0, {"core": "0", "aggregation": "total"})
    assert third["value"] is None


def test_azure_records() -> None:
    log = {
        "time": STAMP,
        "resourceId": VM,
        "operationName": "Microsoft.Compute/virtualMachines/write",
        "category": "Administrative",
        "resultType": "Failure",
        "level": "Error",
        "durationMs": "78",
        "callerIpAddress": "192.0.2.1",
        "identity": {"claims": {"http://schemas/claims/name": "eve"}},
        "properties": {"message": "quota exceeded", "statusCode": "Conflict"},
    }
    metric = {"time": STAMP, "resourceId": VM, "metricName": "CPU", "timeGrain": "PT1M", "average": 1.25, "count": 4}
    found = relations([{"records": [log, metric, {"other": 1}]}])
    (row,) = found["log_records"]
    assert row["body"] == "Microsoft.Compute/virtualMachines/write: Failure: quota exceeded"
    assert (row["time"], row["service"], row["severity"]) == (AT, "vm1", "ERROR")
    assert row["attributes"]["identity"] == '{"claims":{"http://schemas/claims/name":"eve"}}'
    assert row["attributes"]["properties"] == {"message": "quota exceeded", "statusCode": "Conflict"}
    (point,) = found["metric_points"]
    assert (point["name"], point["value"], point["count"], point["attributes"]) == (
        "CPU",
        1.25,
        4,
        {"time_grain": "PT1M"},
    )
    assert relations([log])["log_records"] == [row], "as storage accounts hold them, one a line"
    assert (
        relations([{"records": [{"time": STAMP, "resourceId": VM}]}, {"value": [{"timeseries": 1}], "timespan": 1}])
        == {}
    )


def series(kind: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {
        "metric": {"type": "run.googleapis.com/request_count", "labels": {"response_code": "500"}},
        "resource": {"type": "cloud_run_revision", "labels": {"service_name": "cart", "location": "eu"}},
        "metricKind": kind,
        "valueType": "INT64",
        "points": [{"interval": {"startTime": STAMP, "endTime": STAMP}, "value": value} for value in values],
    }


def test_google_cloud_monitoring() -> None:
    spread = {"distributionValue": {"count": "4", "mean": 2.5, "range": {"min": 1, "max": 4}, "bucketCounts": ["4"]}}
    answer = {
        "timeSeries": [
            series("DELTA", {"int64Value": "7"}, {"stringValue": "x"}),
            series("GAUGE", {"doubleValue": 0.5}, {"boolValue": True}),
            series("DELTA", spread),
            {"metric": 1},
        ],
        "unit": "1",
    }
    found = relations([answer])["metric_points"]
    assert [(row["kind"], row["value"], row["count"], row["sum"], row["max"]) for row in found] == [
        ("sum", 7.0, None, None, None),
        ("gauge", 0.5, None, None, None),
        ("gauge", 1.0, None, None, None),
        ("histogram", None, 4, 10.0, 4.0),
    ]
    first = found[0]
    assert (first["time"], first["service"], first["name"]) == (AT, "cart", "run.googleapis.com/request_count")
    assert (first["unit"], first["attributes"]) == ("1", {"response_code": "500"})
    assert first["resource"] == {
        "service_name": "cart",
        "location": "eu",
        "cloud.provider": "gcp",
        "type": "cloud_run_revision",
    }
    assert relations([series("GAUGE", {"doubleValue": 0.5})])["metric_points"][0]["value"] == 0.5, "a series alone"
