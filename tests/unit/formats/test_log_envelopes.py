"""journald, GELF, Splunk HEC, Google Cloud Logging and Datadog as `log_records`."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def rows(*values: Any) -> list[dict[str, Any]]:
    return relations(list(values)).get("log_records", [])


def test_journald() -> None:
    entry = {
        "__CURSOR": "s=1",
        "__REALTIME_TIMESTAMP": "1706933106123456",
        "PRIORITY": "3",
        "MESSAGE": "boom",
        "SYSLOG_IDENTIFIER": "nginx",
        "_SYSTEMD_UNIT": "web.service",
        "_HOSTNAME": "h",
    }
    assert rows(entry) == [
        {
            "time": AT + 123_456_000,
            "service": "web",
            "severity": "ERROR",
            "severity_number": 17,
            "body": "boom",
            "trace_id": None,
            "span_id": None,
            "attributes": {"SYSLOG_IDENTIFIER": "nginx"},
            "resource": {"_SYSTEMD_UNIT": "web.service", "_HOSTNAME": "h"},
        }
    ]
    (row,) = rows({"__REALTIME_TIMESTAMP": "1", "MESSAGE": [104, 105, 255], "_COMM": "sshd"})
    assert (row["body"], row["service"], row["severity"]) == ("hi\ufffd", "sshd", "")
    (row,) = rows({"__REALTIME_TIMESTAMP": "1", "MESSAGE": [104, 999]})
    assert row["body"] == "[104,999]"


@pytest.mark.parametrize(
    ("level", "severity"), [(0, "FATAL"), ("4", "WARN"), (5, "INFO"), (7, "DEBUG"), (8, ""), (-1, "")]
)
def test_gelf_and_syslog_levels(level: Any, severity: str) -> None:
    message = {"version": "1.1", "host": "h1", "short_message": "s", "timestamp": 1706933106.5, "level": level}
    (row,) = rows({**message, "full_message": "long", "_user": "u"})
    assert (row["time"], row["service"], row["severity"]) == (AT + 500_000_000, "h1", severity)
    assert row["attributes"] == {"full_message": "long", "user": "u"}
    assert rows({**message, "_service": "cart"})[0]["service"] == "cart"


def test_splunk_events_of_text_and_of_fields() -> None:
    around = {"time": 1706933106.5, "host": "h", "source": "/var/log/x", "sourcetype": "app", "index": "main"}
    text, fields = rows(
        {**around, "event": "it broke", "fields": {"region": "eu"}},
        {**around, "event": {"message": "m", "level": "error", "service": "cart", "code": 5}},
    )
    assert (text["time"], text["service"], text["body"]) == (AT + 500_000_000, "h", "it broke")
    assert text["attributes"] == {"region": "eu"}
    assert (fields["service"], fields["severity"], fields["body"]) == ("cart", "ERROR", "m")
    assert fields["attributes"] == {"code": 5}
    assert fields["resource"]["sourcetype"] == "app"
    (bare,) = rows({"time": "1706933106", "host": "h", "event": {"code": 5}})
    assert (bare["time"], bare["body"]) == (AT, '{"code":5}')
    assert rows({"time": 1706933106, "host": "h", "event": "login", "user": "u"}) == [], (
        "other keys: no collector's event"
    )


def test_google_cloud_entries() -> None:
    entry = {
        "insertId": "i",
        "logName": "projects/p/logs/stdout",
        "resource": {"type": "k8s_container", "labels": {"container_name": "cart", "pod_name": "cart-0"}},
        "timestamp": "2024-02-03T04:05:06.000000001Z",
        "severity": "ERROR",
        "labels": {"env": "prod"},
        "trace": f"projects/p/traces/{TRACE}",
        "spanId": SPAN,
        "jsonPayload": {"message": "m", "code": 5},
    }
    (row,) = rows(entry)
    assert (row["time"], row["service"], row["severity"], row["body"]) == (AT + 1, "cart", "ERROR", "m")
    assert (row["trace_id"], row["span_id"]) == (TRACE, SPAN)
    assert row["attributes"] == {"insertId": "i", "logName": "projects/p/logs/stdout", "code": 5}
    plain = {key: value for key, value in entry.items() if key != "jsonPayload"} | {"textPayload": "t"}
    assert [row["body"] for row in rows({"entries": [plain, 5, entry]})] == ["t", "m"]


def test_datadog_as_sent_and_as_searched() -> None:
    inner = {"timestamp": "2024-02-03T04:05:06Z", "status": "warn", "service": "cart", "host": "h", "message": "m"}
    sent = {**inner, "ddsource": "python", "ddtags": "env:prod", "dd": {"trace_id": "5"}}
    searched = {"id": "AB", "type": "log", "attributes": {**inner, "attributes": {"code": 5}, "tags": ["env:prod"]}}
    first, second, third = rows(sent, searched, {"data": [searched]})
    assert second == third
    assert (first["time"], first["service"], first["severity"], first["body"]) == (AT, "cart", "WARN", "m")
    assert first["attributes"] == {"ddsource": "python", "dd": {"trace_id": "5"}}
    assert second["attributes"] == {"code": 5}
    assert second["resource"] == {"host": "h", "tags": ["env:prod"]}
    assert rows({"id": "AB", "type": "user", "attributes": {"message": "m"}}) == []
