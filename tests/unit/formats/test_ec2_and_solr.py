"""Two small formats: EC2's instances and Solr's statistics."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations
from hyve.formats.aws import moment_ns

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z
RECORDED = {"__class__": "datetime", "year": 2026, "month": 8, "day": 1, "hour": 17, "minute": 2, "second": 2}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RECORDED, AT),
        (RECORDED | {"microsecond": 5}, AT + 5_000),
        (RECORDED | {"month": 13}, None),
        (RECORDED | {"month": "8"}, None),
        (RECORDED | {"year": 10**5000}, None),
        (RECORDED | {"second": -1}, None),
        ({"__class__": "date"}, None),
        ("2026-08-01T17:02:02+00:00", AT),
        (AT // 1_000_000, AT),
        (AT // 1_000_000_000, AT),
        (1_785_603_722.5, AT + 500_000_000),
        (True, None),
        ([], None),
        (None, None),
    ],
)
def test_the_times_of_aws(value: Any, expected: int | None) -> None:
    assert moment_ns(value) == expected


def test_instances() -> None:
    instance = {
        "InstanceId": "i-1",
        "InstanceType": "t2.micro",
        "ImageId": "ami-1",
        "LaunchTime": RECORDED,
        "State": {"Code": 16, "Name": "running"},
        "Placement": {"AvailabilityZone": "eu-west-1a"},
        "PrivateIpAddress": "10.0.0.1",
        "SecurityGroups": [{"GroupName": "web", "GroupId": "sg-1"}],
        "Tags": [{"Key": "Name", "Value": "web-1"}, {"Key": "team", "Value": "shop"}, {"Value": "no key"}],
    }
    answer = {"Reservations": [{"ReservationId": "r-1", "OwnerId": "1", "Instances": [instance, 5]}]}
    (row,) = relations([answer])["instances"]
    assert row == {
        "time": AT,
        "instance_id": "i-1",
        "name": "web-1",
        "state": "running",
        "state_reason": None,
        "state_transition": None,
        "type": "t2.micro",
        "image": "ami-1",
        "zone": "eu-west-1a",
        "private_ip": "10.0.0.1",
        "public_ip": None,
        "vpc": None,
        "subnet": None,
        "security_groups": ["web"],
        "reservation": "r-1",
        "owner": "1",
        "tags": {"Name": "web-1", "team": "shop"},
    }
    assert relations([{"status_code": 200, "data": answer}])["instances"] == [row]
    assert relations([{"Reservations": []}, {"Reservations": [{"Instances": 1}]}, {"status_code": 1, "data": {}}]) == {}


def test_solr_statistics() -> None:
    bean = {"class": "c", "version": "1.0", "description": "d", "stats": {"requests": 0, "avgTimePerRequest": "NaN"}}
    listed = [
        "QUERYHANDLER",
        {"/select": bean, "/import": {"stats": ["Status", "IDLE", "left over"]}, "odd": 5},
        "CACHE",
    ]
    expected = [
        {
            "category": "QUERYHANDLER",
            "name": "/select",
            "class": "c",
            "version": "1.0",
            "description": "d",
            "stats": {"requests": 0, "avgTimePerRequest": None},
        },
        {
            "category": "QUERYHANDLER",
            "name": "/import",
            "class": None,
            "version": None,
            "description": None,
            "stats": {"Status": "IDLE"},
        },
    ]
    assert relations([{"solr-mbeans": listed}])["solr_mbeans"] == expected
    assert relations([{"solr-mbeans": {"QUERYHANDLER": listed[1]}}])["solr_mbeans"] == expected
    assert relations([{"solr-mbeans": []}, {"solr-mbeans": [[], {}]}, {"solr-mbeans": 5}]) == {}
