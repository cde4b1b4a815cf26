"""Real files as relations. The counts were found by looking at the files (grep, wc, a reading eye), not by running this
code."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hyve.document import parse
from hyve.formats import Found, find, relations

CORPUS = Path(os.environ.get("HYVE_CORPUS", "")) / "real"
pytestmark = pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the corpus of real files is not checked"
)


def found_in(name: str) -> Found:
    document = parse((CORPUS / name).read_bytes())
    texts = [row["text"] for part in document.parts if part.syntax == "lines" for row in part.value]
    return find([part.value for part in document.parts if part.syntax != "lines"], texts)


COUNTS = {
    "alerts/alertmanager-v2-alerts.json": {"alerts": 9},
    "alerts/datadog-webhook.jsonl.txt": {"alerts": 43},
    "alerts/karma-alerts.json": {"alerts": 2316},
    "alerts/robusta-issue.json": {"alerts": 1},
    "k8s/authentication-pods.json": {"pods": 2, "containers": 2},
    "k8s/clusteroperators.json": {"kubernetes_objects": 30},
    "logs/ansi-holmes-runner.txt": {},
    "logs/apm-intake-events-dupkeys.ndjson": {"spans": 2, "log_records": 1, "metric_points": 15},
    "logs/apm-intake-logs.ndjson": {"log_records": 7},
    "logs/auth-service.txt": {},
    "logs/kafka-state-change.log": {},
    "logs/m365-defender.ndjson": {},
    "logs/nginxplus-status.ndjson": {},
    "logs/pino-mixed.txt": {"log_records": 3286},
    "logs/surrogates.ndjson": {"log_records": 300},
    "logs/windows-events.ndjson": {"log_records": 700},
    "logs/zeek-combined.ndjson": {},
    "logs/ztunnel.log": {},
    "loki/query-range-streams.json": {"log_records": 5},
    "otlp/jaeger-otlp-traces.json": {"spans": 4, "span_events": 8, "span_links": 8},
    "otlp/proto-example-metrics.json": {"metric_points": 4},
    "otlp/tempo-batches-base64-ids.json": {"spans": 8, "span_events": 8},
    "prometheus/cluster-metrics.prom.txt": {"metric_points": 125},
    "prometheus/holmes-rules.txt": {"alerts": 25},
    "prometheus/vm-instant-vector.json": {"metric_points": 219},
    "traces/zipkin-smartthings.json": {"spans": 1037, "span_events": 92},
}


@pytest.mark.parametrize("name", COUNTS)
def test_rows(name: str) -> None:
    found = found_in(name)
    assert {relation: len(rows) for relation, rows in found.relations.items()} == COUNTS[name]
    assert found.flags == ()


def test_pino_lines() -> None:
    rows = found_in("logs/pino-mixed.txt").relations["log_records"]
    assert rows[0] == {
        "time": 1742214812400000000,
        "service": "fraud-service",
        "severity": "INFO",
        "severity_number": 9,
        "body": "Server listening at http://127.0.0.1:3005",
        "trace_id": None,
        "span_id": None,
        "attributes": {},
        "resource": {"hostname": "fraud-service-5f8b576878-slnpb", "pid": 1},
    }
    assert Counter(row["body"] for row in rows).most_common(2) == [
        ("incoming request", 1642),
        ("request completed", 1642),
    ]


def test_windows_events() -> None:
    rows = found_in("logs/windows-events.ndjson").relations["log_records"]
    assert Counter(row["severity"] for row in rows) == {"INFO": 699, "ERROR": 1}
    assert rows[0]["time"] == 1591757456537000000, "2020-06-10T02:50:56.537Z"


def test_apm_logs_have_nested_before_dotted_names() -> None:
    rows = found_in("logs/apm-intake-logs.ndjson").relations["log_records"]
    times = [None, 1662673649111000000, *[1662616049000000000] * 5]
    assert [row["time"] for row in rows] == times, "2022-09-08T13:47:29.111-0800; microseconds"
    assert [row["service"] for row in rows] == ["1234_service-12a3"] * 4 + ["testSvc"] * 3
    assert [row["severity"] for row in rows] == [""] * 4 + ["WARN"] * 3


def test_apm_events() -> None:
    found = found_in("logs/apm-intake-events-dupkeys.ndjson").relations
    span, transaction = found["spans"]
    assert (span["service"], span["kind"], span["duration_ms"]) == ("opbeans-java-1", "client", 3.781912)
    assert (transaction["service"], transaction["kind"], transaction["duration_ms"]) == (
        "experimental-java",
        "server",
        32.592981,
    )
    assert found["log_records"][0]["body"] == "Request method 'POST' not supported"
    points = {row["name"]: row["value"] for row in found["metric_points"]}
    assert (points["span.self_time.sum.us"], points["negative.d.o.t.t.e.d"]) == (633.288, -1022.0)


def test_exposition_text() -> None:
    rows = found_in("prometheus/cluster-metrics.prom.txt").relations["metric_points"]
    names = Counter(row["name"] for row in rows)
    assert (names["namespace:container_cpu_usage:sum"], names["virt_platform"], len(names)) == (51, 12, 12)
    last = rows[-1]
    assert (last["name"], last["value"], last["time"]) == ("virt_platform", 1.0, 1620977240435000000)
    assert last["attributes"]["prometheus"] == "openshift-monitoring/k8s"


def test_alerts_of_four_tools() -> None:
    datadog = found_in("alerts/datadog-webhook.jsonl.txt").relations["alerts"]
    assert Counter(row["status"] for row in datadog) == {"resolved": 18, "firing": 25}
    karma = found_in("alerts/karma-alerts.json").relations["alerts"]
    assert Counter(row["status"] for row in karma) == {"firing": 2220, "suppressed": 96}
    assert all(row["name"] and row["labels"].get("cluster") for row in karma)
    (robusta,) = found_in("alerts/robusta-issue.json").relations["alerts"]
    assert (robusta["name"], robusta["service"]) == ("KubeDeploymentReplicasMismatch", "user-profile-resources")
    rules = found_in("prometheus/holmes-rules.txt").relations["alerts"]
    assert Counter(row["status"] for row in rules) == {"firing": 21, "pending": 4}


def test_operators_and_pods() -> None:
    operators = found_in("k8s/clusteroperators.json").relations["kubernetes_objects"]
    assert {row["kind"] for row in operators} == {"ClusterOperator"}
    assert all(row["ready"] is True for row in operators), "none is degraded, all are available"
    containers = found_in("k8s/authentication-pods.json").relations["containers"]
    assert {(row["cpu_request"], row["memory_request"], row["restarts"]) for row in containers} == {(0.01, 52428800, 0)}


def cases(name: str) -> dict[str, Any]:
    return json.loads((CORPUS / "otlp" / name).read_text())


def test_every_log_payload_of_a_receivers_test_suite() -> None:
    """Where the receiver takes the payload, the first record's body is what it reads (a value that is missing is null
    here and "" there). Where it refuses all of it for one bad record, the good ones are rows."""
    seen = cases("fluentbit-otlp-log-cases.json")
    assert len(seen) == 61
    good = 0
    for name, case in seen.items():
        rows = relations([case["input"]]).get("log_records", [])
        expected = case.get("expected") or {}
        if "log_body" in expected:
            good += 1
            wanted = expected["log_body"]
            body = rows[0]["body"]
            if set(wanted) == {"log"}:
                assert body == wanted["log"], name
            else:
                told = {key: None if key == "missing_value_key" else value for key, value in wanted.items()}
                assert json.loads(body) == told, name
            otlp = expected["log_metadata"]["otlp"]
            assert rows[0]["attributes"] == {
                **otlp.get("attributes", {}),
                **({"event.name": otlp["event_name"]} if "event_name" in otlp else {}),
            }, name
            assert rows[0]["trace_id"] == (otlp["trace_id"].lower() if "trace_id" in otlp else None), name
            assert rows[0]["resource"] == expected["group_body"]["resource"].get("attributes", {}), name
        elif expected.get("empty_payload"):
            assert rows == [], name
    assert good == 24
    kept = {
        "multiple_records_middle_record_fails": 4,
        "multiple_groups_second_group_fails": 2,
        "unexpected_attributes_type": 1,
        "base64_encoded_trace_span": 1,
        "multiple_resources_first_succeeds_second_fails_logrecords": 1,
        "logRecords_entry_wrong_type": 0,
    }
    for name, count in kept.items():
        assert len(relations([seen[name]["input"]]).get("log_records", [])) == count, name


def test_every_metric_payload_of_a_receivers_test_suite() -> None:
    seen = cases("fluentbit-otlp-metric-cases.json")
    assert len(seen) == 40
    good = 0
    for name, case in seen.items():
        rows = relations([case["input"]]).get("metric_points", [])
        expected = case.get("expected")
        if expected is None:
            assert rows == [], name
            continue
        good += 1
        for key, kind in (("gauge", "gauge"), ("counter", "sum")):
            if key in expected:
                mine = [row for row in rows if row["name"] == expected[key]["name"] and row["kind"] == kind]
                assert mine[-1]["value"] == expected[key]["value"], name
                assert mine[-1]["unit"] == expected[key].get("unit", ""), name
        for key, kind in (
            ("histogram", "histogram"),
            ("exp_histogram", "exponential_histogram"),
            ("summary", "summary"),
        ):
            if key in expected:
                mine = [row for row in rows if row["kind"] == kind and row["count"] is not None]
                assert (mine[-1]["name"], mine[-1]["count"], mine[-1]["sum"]) == (
                    expected[key]["name"],
                    expected[key]["count"],
                    expected[key]["sum"],
                ), name
    assert good == 18
