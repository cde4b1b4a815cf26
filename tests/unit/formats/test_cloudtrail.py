"""CloudTrail records in each of the envelopes they come in, on small inputs made by hand."""

from __future__ import annotations

import json
from typing import Any

from hyve.formats import relations

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z


def event(**fields: Any) -> dict[str, Any]:
    base = {
        "eventVersion": "1.08",
        "eventTime": "2026-08-01T17:02:02Z",
        "eventSource": "iam.amazonaws.com",
        "eventName": "AttachRolePolicy",
        "awsRegion": "eu-west-1",
        "sourceIPAddress": "192.0.2.7",
        "userAgent": "aws-cli",
        "userIdentity": {"type": "IAMUser", "arn": "arn:aws:iam::1:user/eve", "userName": "eve", "accountId": "1"},
        "requestParameters": {"roleName": "admin", "policy": '{"Version":"2012-10-17"}'},
        "responseElements": None,
        "eventID": "e-1",
        "eventType": "AwsApiCall",
        "readOnly": False,
        "resources": [{"ARN": "arn:aws:iam::1:role/admin", "accountId": "1"}, {"type": "no ARN"}],
    }
    return base | fields


def rows(value: Any) -> list[dict[str, Any]]:
    return relations([value])["cloudtrail_events"]


def test_a_whole_record() -> None:
    assert rows({"Records": [event()]}) == [
        {
            "time": AT,
            "event_name": "AttachRolePolicy",
            "event_source": "iam.amazonaws.com",
            "region": "eu-west-1",
            "user_type": "IAMUser",
            "user_name": "eve",
            "user_arn": "arn:aws:iam::1:user/eve",
            "account": "1",
            "source_ip": "192.0.2.7",
            "user_agent": "aws-cli",
            "error_code": None,
            "error_message": None,
            "read_only": False,
            "event_id": "e-1",
            "event_type": "AwsApiCall",
            "resources": ["arn:aws:iam::1:role/admin"],
            "request_parameters": '{"roleName":"admin","policy":"{\\"Version\\":\\"2012-10-17\\"}"}',
            "response_elements": None,
        }
    ]


def test_who_called() -> None:
    session = {"type": "AssumedRole", "sessionContext": {"sessionIssuer": {"userName": "ops-role"}}}
    service = {"type": "AWSService", "invokedBy": "ec2.amazonaws.com"}
    found = rows({"Records": [event(userIdentity=session), event(userIdentity=service), event(userIdentity="odd")]})
    assert [row["user_name"] for row in found] == ["ops-role", "ec2.amazonaws.com", None]
    assert [row["user_type"] for row in found] == ["AssumedRole", "AWSService", None]


def test_a_failed_call() -> None:
    (row,) = rows(event(errorCode="AccessDenied", errorMessage="not authorized", readOnly="true"))
    assert (row["error_code"], row["error_message"], row["read_only"]) == ("AccessDenied", "not authorized", True)


def test_lookup_events_and_eventbridge() -> None:
    inner = event(errorCode="AccessDenied")
    answer = {
        "Events": [
            {
                "EventId": "e-1",
                "EventName": "AttachRolePolicy",
                "ReadOnly": "false",
                "EventTime": "2026-08-01T19:02:02+02:00",
                "Username": "eve",
                "Resources": [{"ResourceType": "AWS::IAM::Role", "ResourceName": "admin"}],
                "CloudTrailEvent": json.dumps(inner),
            },
            {"EventId": "e-2", "EventName": "GetUser", "EventTime": 1_785_603_722.5, "CloudTrailEvent": "{cut"},
        ]
    }
    whole, cut = rows(answer)
    assert whole == rows(inner)[0]
    assert (cut["event_id"], cut["event_name"], cut["time"]) == ("e-2", "GetUser", AT + 500_000_000)
    bridged = {"version": "0", "detail-type": "AWS API Call via CloudTrail", "source": "aws.iam", "detail": inner}
    assert rows(bridged) == rows(inner)


def test_records_of_other_services_are_not_cloudtrail() -> None:
    s3 = event()
    del s3["eventID"]
    assert "cloudtrail_events" not in relations([{"Records": [s3]}])
    assert "cloudtrail_events" not in relations(
        [{"Records": [{"eventID": "1", "eventName": "INSERT", "dynamodb": {}}]}]
    )
    assert "cloudtrail_events" not in relations([{"Records": []}, {"Records": "x"}, {"Events": [{"EventId": "1"}]}])


def test_free_form_parameters_make_no_columns() -> None:
    deep: Any = "bottom"
    for _ in range(150):
        deep = {"next": deep}
    found = rows(
        {"Records": [event(requestParameters={f"key{i}": i for i in range(500)}), event(requestParameters=deep)]}
    )
    assert all(type(row["request_parameters"]) is str for row in found)
    assert json.loads(found[0]["request_parameters"])["key499"] == 499
    assert "bottom" in found[1]["request_parameters"]
