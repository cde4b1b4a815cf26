"""Structured application logs as `log_records`, one small record of each logger."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations
from hyve.formats.scalars import instant_ns

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z
TEXT = "2024-02-03T04:05:06Z"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def row(**fields: Any) -> dict[str, Any]:
    (found,) = relations([fields])["log_records"]
    return found


def test_pino() -> None:
    record = {
        "level": 50,
        "time": 1_706_933_106_123,
        "pid": 7,
        "hostname": "web-1",
        "msg": "boom",
        "err": {"type": "E"},
    }
    assert row(**record) == {
        "time": AT + 123_000_000,
        "service": "web-1",
        "severity": "ERROR",
        "severity_number": 17,
        "body": "boom",
        "trace_id": None,
        "span_id": None,
        "attributes": {"err": {"type": "E"}},
        "resource": {"hostname": "web-1", "pid": 7},
    }


def test_a_pods_host_name_names_its_application() -> None:
    assert row(level=30, time=1_706_933_106_123, hostname="cart-5d9f7c6b5d-x2x4z", msg="m")["service"] == "cart"
    assert row(level=30, time=1_706_933_106_123, hostname="db-primary", msg="m")["service"] == "db-primary"


def test_bunyan_is_called_after_its_program() -> None:
    found = row(name="shop", hostname="h", pid=1, level=40, msg="m", time="2024-02-03T04:05:06.123Z", v=0)
    assert (found["service"], found["severity"], found["time"]) == ("shop", "WARN", AT + 123_000_000)
    assert found["attributes"] == {"name": "shop", "v": 0}


@pytest.mark.parametrize(
    ("record", "time", "severity", "body", "attributes"),
    [
        ({"level": "info", "message": "winston", "timestamp": TEXT}, AT, "INFO", "winston", {}),
        (
            {"level": "warn", "ts": 1706933106.25, "caller": "a/b.go:1", "msg": "zap"},
            AT + 250_000_000,
            "WARN",
            "zap",
            {"caller": "a/b.go:1"},
        ),
        ({"time": "2024-02-03T05:05:06+01:00", "level": "INFO+2", "msg": "slog", "n": 1}, AT, "INFO", "slog", {"n": 1}),
        ({"level": "fatal", "time": 1706933106, "message": "zerolog"}, AT, "FATAL", "zerolog", {}),
        ({"event": "structlog", "level": "debug", "timestamp": TEXT}, AT, "DEBUG", "structlog", {}),
        (
            {"@t": TEXT, "@mt": "Hello {Name}", "@l": "Warning", "Name": "Ann"},
            AT,
            "WARN",
            "Hello {Name}",
            {"Name": "Ann"},
        ),
        ({"@t": TEXT, "@mt": "no level is Information"}, AT, "INFO", "no level is Information", {}),
        ({"@timestamp": TEXT, "@version": "1", "message": "logstash"}, AT, "", "logstash", {"@version": "1"}),
        (
            {"asctime": "2024-02-03 04:05:06,007", "levelname": "ERROR", "message": "py"},
            AT + 7_000_000,
            "ERROR",
            "py",
            {},
        ),
        (
            {"timeMillis": 1706933106000, "thread": "main", "level": "ERROR", "loggerName": "a.B", "message": "log4j"},
            AT,
            "ERROR",
            "log4j",
            {"thread": "main", "loggerName": "a.B"},
        ),
        ({"timestamp": "1706933106000", "level": "30", "msg": "texts"}, AT, "INFO", "texts", {}),
        ({"ts": "2024/02/03 04:05:06", "level": "E", "msg": "letter"}, AT, "ERROR", "letter", {}),
        ({"ts": TEXT, "level": "audit", "msg": "own"}, AT, "", "own", {"level": "audit"}),
    ],
)
def test_loggers(record: dict[str, Any], time: int, severity: str, body: str, attributes: dict[str, Any]) -> None:
    found = row(**record)
    assert (found["time"], found["severity"], found["body"], found["attributes"]) == (time, severity, body, attributes)


def test_vector_needs_no_level() -> None:
    found = row(host="h", message="m", source_type="file", timestamp=TEXT)
    assert (found["service"], found["resource"]) == ("h", {"host": "h", "source_type": "file"})


def test_a_message_says_its_level_where_the_record_does_not() -> None:
    found = row(**{"@timestamp": TEXT, "message": "2024-02-03 04:05:06 ERROR db down"})
    assert (found["severity"], found["severity_number"]) == ("ERROR", 17)
    assert row(**{"@timestamp": TEXT, "level": "info", "message": "ERROR db down"})["severity"] == "INFO"


def test_elastic_common_schema_dotted_and_nested() -> None:
    dotted = {"@timestamp": TEXT, "log.level": "warn", "message": "m", "service.name": "a", "trace.id": TRACE}
    nested = {
        "@timestamp": TEXT,
        "log": {"level": "warn"},
        "message": "m",
        "service": {"name": "a"},
        "trace": {"id": TRACE},
    }
    for record in (dotted, nested):
        found = row(**record)
        assert (found["severity"], found["service"], found["trace_id"]) == ("WARN", "a", TRACE)
    both = row(**{**dotted, "log.level": "debug", "log": {"level": "error"}, "service": {"name": "b"}})
    assert (both["severity"], both["service"]) == ("ERROR", "b"), "the nested one counts"
    assert row(**dotted)["attributes"] == {}
    assert row(**dotted)["resource"] == {"service.name": "a"}


def test_windows_events_and_stored_otel_logs() -> None:
    event = {"@timestamp": TEXT, "Message": "A driver\r\nwas loaded", "Severity": "INFO", "SourceName": "Sysmon"}
    found = row(**event, Hostname="WS6", EventID=6)
    assert (found["body"], found["service"], found["severity"]) == ("A driver\r\nwas loaded", "Sysmon", "INFO")
    assert (found["resource"], found["attributes"]) == ({"Hostname": "WS6", "SourceName": "Sysmon"}, {"EventID": 6})
    stored = {"Timestamp": TEXT, "TraceId": TRACE, "SpanId": SPAN, "SeverityText": "error", "SeverityNumber": 18}
    found = row(**stored, ServiceName="cart", Body="b", LogAttributes={"a": 1})
    assert (found["severity"], found["severity_number"], found["service"]) == ("ERROR", 18, "cart")
    assert (found["body"], found["trace_id"], found["span_id"]) == ("b", TRACE, SPAN)
    assert found["attributes"] == {"LogAttributes": {"a": 1}}


def test_kubernetes_metadata_names_the_speaker() -> None:
    about = {"pod_name": "cart-5d9f7c6b5d-x2x4z", "container_name": "server", "labels": {"app": "basket"}}
    assert row(**{"@timestamp": TEXT, "message": "m", "kubernetes": about})["service"] == "basket"
    assert row(**{"@timestamp": TEXT, "message": "m", "kubernetes": {**about, "labels": {}}})["service"] == "cart"


def test_what_cannot_be_read_stays_among_the_attributes() -> None:
    found = row(**{"@timestamp": "yesterday", "message": "m", "level": {"odd": 1}})
    assert (found["time"], found["severity"]) == (None, "")
    assert found["attributes"] == {"@timestamp": "yesterday", "level": {"odd": 1}}


@pytest.mark.parametrize(
    "record",
    [
        {"time": TEXT, "message": "no level"},
        {"time": TEXT, "level": "info"},
        {"level": "info", "message": "no time"},
        {"time": "later", "level": "info", "message": "no time that can be read"},
        {"time": TEXT, "level": 12, "message": "a game's level"},
        {"time": TEXT, "level": "12", "message": "a game's level"},
        {"time": TEXT, "level": "a whole sentence of words", "message": "m"},
        {"time": TEXT, "level": "info", "message": {"not": "text"}},
        {"time": 12.5, "level": "info", "msg": "a clock that began at 0"},
        {"date": TEXT, "severity": "P2", "body": "an alert's text"},
        {"timestamp": TEXT, "event": "login", "user": "u"},
        {"@timestamp": TEXT, "value": 1},
        {"ts": 1588317555.87, "uid": "C1", "service": "dns", "proto": "udp"},
    ],
)
def test_what_is_no_log_record(record: dict[str, Any]) -> None:
    assert relations([record]) == {}
    assert relations([[record]]) == {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1_706_933_106, AT),
        (1_706_933_106_000, AT),
        (1_706_933_106_000_000, AT),
        (AT, AT),
        ("1706933106", AT),
        ("1706933106.000000001", AT + 1),
        ("1706933106000.5", AT + 500_000),
        (1706933106.5, AT + 500_000_000),
        ("2024-02-03T04:05:06.000000001Z", AT + 1),
        ("2024-02-03 04:05:06.5", AT + 500_000_000),
        ("2024-02-02T20:05:06-0800", AT),
        ("2024-02-03 04:05:06 UTC", AT),
        ("2024-02-03 04:05:06.5 GMT", AT + 500_000_000),
        ("2024-02-02 20:05:06.000000001 -0800 UTC", AT + 1),
        ("2024-02-03 UTC", None),
        ("2024-02-03T04:05:6Z", None),
        ("2024-02-03T04:05:60Z", None),
        ("2024-02-03T04:05:06.x1Z", None),
        ("2024-02-30T04:05:06Z", None),
        ("", None),
        ("00:09.375", None),
        (7, None),
        (True, None),
        (None, None),
        (float("nan"), None),
        (10**400, None),
        ("1" * 400, None),
        ([], None),
    ],
)
def test_instants(given: Any, expected: int | None) -> None:
    assert instant_ns(given) == expected
