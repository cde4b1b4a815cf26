"""Azure Monitor: metrics (the REST answer, and what diagnostic settings send) as rows of `metric_points`; activity and
resource logs (`records`, or one a line) as rows of `log_records`.

Rules:
- `service` is the resource: the last name in its id.
- A metric's `value` is its average, else the one aggregation that was asked for (`aggregation` in the attributes).
- A log's body says operation, result and what the service wrote of it; `identity` holds claims under URLs and stays
  JSON text.
"""

from __future__ import annotations

import re
from typing import Any

from hyve.formats.recogniser import needs
from hyve.formats.rows import json_text, log_record, metric_point, present
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, number, rfc3339_ns, text

_LOG = frozenset({"time", "resourceId", "operationName", "category"})
_METRIC = frozenset({"time", "resourceId", "metricName", "timeGrain"})
_METRIC_OF = re.compile("/providers/microsoft.insights/", re.IGNORECASE)
"""Between the id of a resource and what Azure Monitor has of it."""
_AGGREGATIONS = ("average", "total", "maximum", "minimum", "count")
_ATTRIBUTES = (
    "category",
    "operationName",
    "operationVersion",
    "resultType",
    "resultSignature",
    "durationMs",
    "callerIpAddress",
    "correlationId",
)


@needs("value timespan", "records", "time resourceId operationName category", "time resourceId metricName timeGrain")
def recognise(value: Any) -> Relations | None:
    """Rows of `metric_points` and `log_records`, or None."""
    if type(value) is not dict:
        return None
    metrics = dicts(value.get("value"))
    if metrics and type(metrics[0].get("timeseries")) is list:
        return {"metric_points": [row for metric in metrics for row in _metric(metric, value)]}
    records = [value] if _is_record(value) else dicts(value.get("records"))
    if not records or not _is_record(records[0]):
        return None
    result: Relations = {}
    for record in records:
        if record.keys() >= _METRIC:
            result.setdefault("metric_points", []).append(_exported(record))
        elif record.keys() >= _LOG:
            result.setdefault("log_records", []).append(_log(record))
    return result


def _is_record(value: dict[str, Any]) -> bool:
    return value.keys() >= _LOG or value.keys() >= _METRIC


def _metric(metric: dict[str, Any], answer: dict[str, Any]) -> list[Row]:
    said = metric.get("name")
    name = text(said.get("value") if type(said) is dict else said)
    about = _METRIC_OF.split(text(metric.get("id")), maxsplit=1)[0]
    resource = present(
        cloud__provider="azure",
        cloud__resource_id=about,
        cloud__region=text(answer.get("resourceregion")),
        namespace=text(answer.get("namespace")),
    )
    rows = []
    for series in dicts(metric.get("timeseries")):
        labels = {
            text(mapping(item.get("name")).get("value")): text(item.get("value"))
            for item in dicts(series.get("metadatavalues"))
        }
        for point in dicts(series.get("data")):
            time = rfc3339_ns(point.get("timeStamp"))
            rows.append(_point(time, _service(about), name, text(metric.get("unit")), point, labels, resource))
    return rows


def _exported(record: dict[str, Any]) -> Row:
    about = text(record["resourceId"])
    resource = present(cloud__provider="azure", cloud__resource_id=about)
    time, name, unit = rfc3339_ns(record["time"]), text(record["metricName"]), text(record.get("unit"))
    return _point(time, _service(about), name, unit, record, present(time_grain=text(record["timeGrain"])), resource)


def _point(
    time: int | None,
    service: str,
    name: str,
    unit: str,
    found: dict[str, Any],
    labels: dict[str, Any],
    resource: dict[str, Any],
) -> Row:
    first = next((key for key in _AGGREGATIONS if number(found.get(key)) is not None), "average")
    return metric_point(
        time,
        service,
        name,
        found.get(first),
        unit=unit,
        count=integer(found.get("count")),
        sum=number(found.get("total")),
        min=number(found.get("minimum")),
        max=number(found.get("maximum")),
        attributes=labels if first == "average" else {**labels, "aggregation": first},
        resource=resource,
    )


def _log(record: dict[str, Any]) -> Row:
    properties = record.get("properties")
    inner = mapping(properties)
    about = text(record["resourceId"])
    parts = (
        text(record["operationName"]),
        text(record.get("resultType")),
        text(record.get("resultDescription") or inner.get("message") or inner.get("statusMessage") or inner.get("log")),
    )
    attributes = present(**{key: record.get(key) for key in _ATTRIBUTES})
    identity = json_text(record.get("identity"))
    if identity:
        attributes["identity"] = identity
    if properties not in (None, "", {}):
        attributes["properties"] = properties
    return log_record(
        rfc3339_ns(record["time"]),
        _service(about),
        ": ".join(part for part in parts if part),
        level=record.get("level"),
        attributes=attributes,
        resource=present(cloud__provider="azure", cloud__resource_id=about, cloud__region=text(record.get("location"))),
    )


def _service(resource_id: str) -> str:
    return resource_id.rstrip("/").rpartition("/")[2] or "unknown"
