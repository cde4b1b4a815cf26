"""CloudTrail as rows of `cloudtrail_events`: log files (`Records`), answers of `lookup-events` (`Events`, each with its
record as JSON text), EventBridge's envelope, and single records.

Rules:
- Request and response are free-form and differ for each call: they are JSON text, asked with `->>`; the base tables
  have them taken apart.
- `user_name` is the user's, else that of the role behind the session, else the AWS service that called.
- S3, DynamoDB and Kinesis send `Records` too; only CloudTrail's have an event's id, time, name and source.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.aws import moment_ns
from hyve.formats.packed import read_object
from hyve.formats.recogniser import needs
from hyve.formats.rows import json_text, known
from hyve.formats.scalars import Relations, Row, dicts, mapping, text

_EVENT = frozenset({"eventID", "eventTime", "eventName", "eventSource"})
_FLAGS = {"true": True, "false": False}


@needs("Records", "Events", "detail-type detail", "eventID eventTime eventName eventSource")
def recognise(value: Any) -> Relations | None:
    """Rows of `cloudtrail_events`, or None."""
    if type(value) is not dict:
        return None
    if _is_event(value):
        return {"cloudtrail_events": [_row(value)]}
    if "detail-type" in value and _is_event(value.get("detail")):
        return {"cloudtrail_events": [_row(value["detail"])]}
    records = dicts(value.get("Records"))
    if records and _is_event(records[0]):
        return {"cloudtrail_events": [_row(record) for record in records if "eventName" in record]}
    found = dicts(value.get("Events"))
    if found and "CloudTrailEvent" in found[0]:
        return {"cloudtrail_events": [_found(item) for item in found]}
    return None


def _is_event(value: Any) -> bool:
    return type(value) is dict and value.keys() >= _EVENT


def _row(event: dict[str, Any]) -> Row:
    user = mapping(event.get("userIdentity"))
    issuer = mapping(mapping(user.get("sessionContext")).get("sessionIssuer"))
    return {
        "time": moment_ns(event.get("eventTime")),
        "event_name": text(event.get("eventName")),
        "event_source": text(event.get("eventSource")),
        "region": text(event.get("awsRegion")),
        "user_type": known(user.get("type")),
        "user_name": known(user.get("userName") or issuer.get("userName") or user.get("invokedBy")),
        "user_arn": known(user.get("arn")),
        "account": known(event.get("recipientAccountId") or user.get("accountId")),
        "source_ip": known(event.get("sourceIPAddress")),
        "user_agent": known(event.get("userAgent")),
        "error_code": known(event.get("errorCode")),
        "error_message": known(event.get("errorMessage")),
        "read_only": _flag(event.get("readOnly")),
        "event_id": text(event.get("eventID")),
        "event_type": known(event.get("eventType")),
        "resources": [text(item["ARN"]) for item in dicts(event.get("resources")) if item.get("ARN")],
        "request_parameters": json_text(event.get("requestParameters")),
        "response_elements": json_text(event.get("responseElements")),
    }


def _found(item: dict[str, Any]) -> Row:
    """A row of `lookup-events`: its own fields fill in what the record inside doesn't say."""
    event = read_object(item.get("CloudTrailEvent"))
    row = _row(event)
    row["time"] = row["time"] or moment_ns(item.get("EventTime"))
    for column, key in (("event_name", "EventName"), ("event_source", "EventSource"), ("event_id", "EventId")):
        row[column] = row[column] or text(item.get(key))
    row["user_name"] = row["user_name"] or known(item.get("Username"))
    if row["read_only"] is None:
        row["read_only"] = _flag(item.get("ReadOnly"))
    names = [text(named["ResourceName"]) for named in dicts(item.get("Resources")) if named.get("ResourceName")]
    row["resources"] = row["resources"] or names
    return row


def _flag(value: Any) -> bool | None:
    return value if type(value) is bool else _FLAGS.get(value) if type(value) is str else None
