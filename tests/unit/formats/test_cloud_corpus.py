"""Real files of the cloud formats. The numbers were counted in the files, with the json module alone."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hyve.formats import relations

CORPUS = os.environ.get("HYVE_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="HYVE_CORPUS is not set")


def read(name: str) -> dict[str, list[dict[str, Any]]]:
    return relations([json.loads((Path(CORPUS) / "real" / name).read_text("utf-8"))])


def test_cloudtrail() -> None:
    found = read("cloud/cloudtrail.json")
    rows = found["cloudtrail_events"]
    assert (list(found), len(rows)) == (["cloudtrail_events"], 246)
    assert Counter(row["error_code"] for row in rows).most_common(3) == [
        (None, 222),
        ("ThrottlingException", 15),
        ("BucketNotEmpty", 2),
    ]
    assert Counter(row["user_name"] for row in rows) == {
        "user-a": 239,
        "stratus-red-team-ec2-enumerate-role": 4,
        "cloudtrail.amazonaws.com": 2,
        "ec2.amazonaws.com": 1,
    }
    assert Counter(row["user_type"] for row in rows) == {"IAMUser": 239, "AssumedRole": 4, "AWSService": 3}
    assert sum(row["read_only"] is True for row in rows) == 200
    assert sum(len(row["resources"]) for row in rows) == 46
    assert sum(row["request_parameters"] is None for row in rows) == 26
    assert sum(row["response_elements"] is not None for row in rows) == 30
    assert (rows[0]["time"], rows[-1]["time"]) == (1_688_990_574_000_000_000, 1_688_990_888_000_000_000)
    (denied,) = (row for row in rows if row["error_code"] == "AccessDenied")
    assert denied["event_name"] == "AssumeRole"
    assert denied["error_message"].endswith("role/stratus-red-team-ec2lui-role-pcccexdthk")


def test_a_metric_stream_through_firehose() -> None:
    rows = read("metrics/cloudwatch-firehose-records.json")["metric_points"]
    assert len(rows) == 384 + 195 + 180 + 401
    assert Counter(row["resource"]["namespace"] for row in rows) == {"AWS/EC2": 785, "AWS/EBS": 375}
    assert Counter(key for row in rows for key in row["attributes"]) == {
        "InstanceId": 437,
        "VolumeId": 375,
        "AutoScalingGroupName": 211,
        "InstanceType": 106,
        "ImageId": 19,
    }
    assert {row["resource"]["cloud.account.id"] for row in rows} == {"111122223333"}
    assert (min(row["time"] for row in rows), max(row["time"] for row in rows)) == (
        1_651_679_340_000_000_000,
        1_651_679_640_000_000_000,
    )
    assert sum(row["sum"] for row in rows if row["name"] == "CPUUtilization") == pytest.approx(644.4292317224833)
    assert all(row["value"] == row["sum"] / row["count"] for row in rows)


def test_get_metric_data() -> None:
    rows = read("metrics/opensre-rds-cpu-saturation.json")["metric_points"]
    assert len(rows) == 20 * 20
    processor = [row for row in rows if row["name"] == "CPUUtilization"]
    assert [row["value"] for row in processor[:3]] == [18.33, 91.2, 93.7]
    assert {row["service"] for row in processor} == {"catalog-prod"}
    assert processor[1]["time"] - processor[0]["time"] == 60_000_000_000
    assert Counter(row["service"] for row in rows) == {
        "catalog-prod": 60,
        "payments-prod": 320,
        "payments-prod-replica-1": 20,
    }


def test_elasticsearch_aggregations() -> None:
    found = read("elasticsearch/aggs-date-histogram.json")
    rows = found["buckets"]
    assert Counter((row["aggregation"], row["parents"].get("results_buckets")) for row in rows) == {
        ("results_buckets", None): 3,
        ("results_buckets>date_histogram", "/FindCar"): 1,
        ("results_buckets>date_histogram", "/FindDriverIDs"): 11,
        ("results_buckets>date_histogram", "/FindNearest"): 12,
    }
    assert [(row["key"], row["doc_count"]) for row in rows if not row["parents"]] == [
        ("/FindCar", 10),
        ("/FindDriverIDs", 200),
        ("/FindNearest", 100),
    ]
    assert (rows[1]["time"], rows[1]["metrics"]) == (1_749_894_840_000_000_000, {"cumulative_requests": 10.0})
    (search,) = found["searches"]
    assert (search["total"], search["total_capped"], search["hits"]) == (10_000, True, 0)
    assert "hits" not in found


def test_elasticsearch_hits() -> None:
    found = read("elasticsearch/search-hits.json")
    assert Counter(row["_index"] for row in found["hits"]) == {
        "apm-7.17.6-error-000001": 1,
        "apm-7.17.6-metric-000001": 5,
        "apm-7.17.6-span-000001": 1,
        "apm-7.17.6-transaction-000001": 1,
    }
    assert found["hits"][0]["time"] == 1_662_954_770_939_000_000
    assert found["searches"][0]["total"] == 8
    assert [(row["body"], row["service"]) for row in found["log_records"]] == [("boom", "main")]


def test_cloudevents() -> None:
    rows = read("events/cloudevents-batch.json")["cloud_events"]
    assert len(rows) == 17
    assert Counter(row["data"]["name"] for row in rows) == {"cpu": 17}
    assert rows[-1]["time"] == 1_682_613_051_000_000_999
    assert rows[-1]["data"]["fields"]["usage_idle"] == 99.62546816517232


def test_debezium() -> None:
    snapshot, update = read("cdc/debezium-schema-include.json")["changes"]
    assert (snapshot["op"], snapshot["snapshot"], snapshot["before"]) == ("read", True, None)
    assert (update["op"], update["snapshot"], update["changed"]) == ("update", False, ["timestamp_c"])
    assert (update["database"], update["table_name"]) == ("column_type_test_13p6nkc", "full_types")
    assert (snapshot["time"], update["time"]) == (1_630_315_344_066_000_000, 1_630_324_170_000_000_000)
    for image in (snapshot["after"], update["before"], update["after"]):
        assert len(image) == 59
        assert image["big_c"] == 9223372036854775807
        assert image["big_un_c"] == 18446744073709551615
        assert image["decimal_c"] == "123.4567"
        assert image["numeric_c"] == "346"
        assert image["big_decimal_c"] == "0." + "345678921".zfill(65)
        assert image["id"] == 1
        assert image["big_un_z_c"] == "AP//////////", "the schema doesn't say what it is"


def test_tempo() -> None:
    found = read("otlp/tempo-search.json")
    (trace,) = found["traces"]
    assert trace["trace_id"] == "02e299711ce47710289dc6640727404f"
    assert (trace["root_service"], trace["duration_ms"], trace["matched_spans"]) == ("waypoint.bookinfo", 12.0, 4)
    assert [(row["span_id"], row["duration_ms"]) for row in found["spans"]] == [
        ("289dc6640727404f", 12.902),
        ("9ac4466ca0202735", 1.472),
        ("d28bff40fcb118c5", 1.032),
        ("aac44fb4f828c727", 11.878),
    ]
    assert {row["trace_id"] for row in found["spans"]} == {trace["trace_id"]}
    assert found["spans"][0]["time"] == 1_736_952_956_641_922_000


def test_instances() -> None:
    rows = read("cloud/ec2-describe-placebo.json")["instances"]
    assert Counter(row["state"] for row in rows) == {"terminated": 10, "running": 3}
    assert {row["private_ip"] for row in rows} == {None, "10.0.1.221", "10.0.1.7", "10.0.1.251"}
    assert rows[0]["time"] == 1_772_583_216_000_000_000  # 2026-03-04T00:13:36Z


def test_solr() -> None:
    rows = read("metrics/solr-mbeans-nan.json")["solr_mbeans"]
    assert Counter(row["category"] for row in rows) == {
        "CORE": 3,
        "QUERYHANDLER": 31,
        "UPDATEHANDLER": 1,
        "CACHE": 5,
    }
    averages = [row["stats"]["avgTimePerRequest"] for row in rows if "avgTimePerRequest" in row["stats"]]
    assert averages.count(None) == 17
    (imports,) = (row for row in rows if row["name"] == "/dataimport")
    assert (imports["stats"]["Status"], len(imports["stats"])) == ("IDLE", 18)
