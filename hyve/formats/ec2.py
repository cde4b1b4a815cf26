"""EC2's answer to DescribeInstances, bare or as placebo records it (`{"status_code", "data"}`), as rows of `instances`.

Rules: `time` is when the instance was launched; `tags` is a plain object, name and value.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.aws import moment_ns, tags
from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import Relations, Row, dicts, mapping, text


@needs("Reservations", "status_code data")
def recognise(value: Any) -> Relations | None:
    """Rows of `instances`, or None."""
    if type(value) is not dict:
        return None
    answer = value["data"] if type(value.get("data")) is dict else value
    reservations = dicts(answer.get("Reservations"))
    if not reservations or type(reservations[0].get("Instances")) is not list:
        return None
    return {"instances": [_row(item, one) for one in reservations for item in dicts(one.get("Instances"))]}


def _row(instance: dict[str, Any], reservation: dict[str, Any]) -> Row:
    own = tags(instance.get("Tags"))
    groups = dicts(instance.get("SecurityGroups"))
    return {
        "time": moment_ns(instance.get("LaunchTime")),
        "instance_id": text(instance.get("InstanceId")),
        "name": known(own.get("Name")),
        "state": known(mapping(instance.get("State")).get("Name")),
        "state_reason": known(mapping(instance.get("StateReason")).get("Message")),
        "state_transition": known(instance.get("StateTransitionReason")),
        "type": known(instance.get("InstanceType")),
        "image": known(instance.get("ImageId")),
        "zone": known(mapping(instance.get("Placement")).get("AvailabilityZone")),
        "private_ip": known(instance.get("PrivateIpAddress")),
        "public_ip": known(instance.get("PublicIpAddress")),
        "vpc": known(instance.get("VpcId")),
        "subnet": known(instance.get("SubnetId")),
        "security_groups": [text(group.get("GroupName") or group.get("GroupId")) for group in groups],
        "reservation": known(reservation.get("ReservationId")),
        "owner": known(reservation.get("OwnerId")),
        "tags": own,
    }
