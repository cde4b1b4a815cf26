"""What AWS's answers have in common: times, tags and dimensions.

Rules: a time is ISO 8601 text, an epoch in seconds or milliseconds, or a datetime as placebo records it
(`{"__class__": "datetime", "year": ...}`).
"""

from __future__ import annotations

from typing import Any

from hyve.formats.scalars import dicts, instant_ns, rfc3339_ns, text

_FIELDS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_SERVICES = (
    "ServiceName",
    "Service",
    "FunctionName",
    "DBInstanceIdentifier",
    "DBClusterIdentifier",
    "TableName",
    "QueueName",
    "TopicName",
    "StreamName",
    "LoadBalancer",
    "TargetGroup",
    "ApiName",
    "CacheClusterId",
    "DomainName",
    "BucketName",
    "ClusterName",
    "AutoScalingGroupName",
    "InstanceId",
    "VolumeId",
)


def moment_ns(value: Any) -> int | None:
    """Epoch nanoseconds of a time in any of AWS's ways to write one."""
    return _recorded_ns(value) if type(value) is dict else instant_ns(value)


def _recorded_ns(value: dict[str, Any]) -> int | None:
    if value.get("__class__") != "datetime":
        return None
    parts = [value.get(field, 0) for field in _FIELDS]
    if not all(type(part) is int and 0 <= part < 1_000_000 for part in parts):
        return None
    year, month, day, hour, minute, second, micros = parts
    return rfc3339_ns(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")


def tags(items: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """`[{Key, Value}]` (tags) or `[{Name, Value}]` (dimensions) as a plain dict; a plain object is taken as it is."""
    if type(items) is dict:
        return {name: text(inner) for name, inner in items.items() if type(name) is str}
    return {item[key]: text(item.get(value)) for item in dicts(items) if type(item.get(key)) is str}


def service(dimensions: dict[str, str], namespace: str) -> str:
    """Whom a metric speaks of: the first of the usual dimensions, else the AWS service (its namespace)."""
    return next((dimensions[key] for key in _SERVICES if dimensions.get(key)), namespace or "unknown")
