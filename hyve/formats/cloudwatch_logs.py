"""CloudWatch Logs as rows of `log_records`: GetLogEvents and FilterLogEvents, subscription payloads (plain, or
`awslogs.data` in base64 and gzip), and what Firehose and Kinesis carry in `records[].data`.

Rules:
- A subscription's log group is who speaks; of Lambda's and ECS's groups, the function or the task family.
- A message that is a logger's JSON is read as one: its message is the body, its level, trace and fields count.
- Firehose carries metric streams as well: their lines become `metric_points`. Other JSON in it, which the base tables
  hold only in base64, becomes rows of `delivered_records`.
- A control message (Firehose testing the way) says nothing.
"""

from __future__ import annotations

import re
from typing import Any

from hyve.formats import cloudwatch, logs
from hyve.formats.aws import moment_ns
from hyve.formats.packed import read_object, unpack
from hyve.formats.recogniser import needs
from hyve.formats.rows import log_record, present
from hyve.formats.scalars import Relations, Row, dicts, mapping, text

_GROUPS = ("/aws/lambda/", "/aws/ecs/", "/ecs/")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)\b")


@needs("logGroup logEvents", "awslogs", "records", "Records", "events")
def recognise(value: Any) -> Relations | None:
    """Rows of `log_records` and of what Firehose carries besides, or None."""
    if type(value) is not dict:
        return None
    if _is_subscription(value):
        return {"log_records": _subscription(value)}
    if type(value.get("awslogs")) is dict:
        payloads = filter(_is_subscription, unpack(value["awslogs"].get("data")))
        rows = [row for payload in payloads for row in _subscription(payload)]
        return {"log_records": rows} if rows else None
    for key in ("records", "Records"):
        carried = dicts(value.get(key))
        if carried and _data(carried[0]) is not None:
            return _delivered(carried)
    events = dicts(value.get("events"))
    if events and type(events[0].get("message")) is str and "ingestionTime" in events[0]:
        return {"log_records": [_record(event) for event in events]}
    return None


def _is_subscription(value: Any) -> bool:
    return type(value) is dict and type(value.get("logEvents")) is list and "logGroup" in value


def _subscription(value: dict[str, Any]) -> list[Row]:
    if value.get("messageType") == "CONTROL_MESSAGE":
        return []
    group, stream, account = (text(value.get(key)) for key in ("logGroup", "logStream", "owner"))
    return [_record(event, group, stream, account) for event in dicts(value["logEvents"])]


def _record(event: dict[str, Any], group: str = "", stream: str = "", account: str = "") -> Row:
    message = text(event.get("message")).rstrip("\r\n")
    prefix = next((prefix for prefix in _GROUPS if group.startswith(prefix)), "")
    inner = read_object(message)
    row = logs.record(inner) if inner else None
    if row is None:
        level = _LEVEL.search(message, 0, 200)
        row = log_record(None, "unknown", message, level=level and level.group(), attributes={}, resource={})
    row["time"] = moment_ns(event.get("timestamp")) or row["time"]
    if row["service"] == "unknown":
        row["service"] = group[len(prefix) :] or "unknown"
    row["attributes"] = {**row["attributes"], **present(event_id=text(event.get("eventId") or event.get("id")))}
    row["resource"] = {
        **row["resource"],
        **present(
            cloud__provider="aws",
            cloud__account__id=account,
            log_group=group,
            log_stream=stream or text(event.get("logStreamName")),
        ),
    }
    return row


def _data(record: dict[str, Any]) -> str | None:
    """The base64 of a record as Firehose (`data`), Kinesis (`Data`) and Kinesis to Lambda (`kinesis.data`) have it."""
    data = record.get("data") or record.get("Data") or mapping(record.get("kinesis")).get("data")
    return data if type(data) is str else None


def _delivered(carried: list[dict[str, Any]]) -> Relations | None:
    result: Relations = {}
    for number, record in enumerate(carried):
        for one in unpack(_data(record)):
            if cloudwatch.is_streamed(one):
                result.setdefault("metric_points", []).extend(cloudwatch.streamed(one))
            elif _is_subscription(one):
                result.setdefault("log_records", []).extend(_subscription(one))
            elif type(one) is dict and (row := logs.record(one)) is not None:
                result.setdefault("log_records", []).append(row)
            elif type(one) is dict:
                result.setdefault("delivered_records", []).append({"record": number, "data": one})
    return result or None
