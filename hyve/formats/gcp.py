"""Google Cloud Monitoring's time series (`timeSeries[].points[]`) as rows of `metric_points`.

Rules:
- A point's time is the end of its interval. Cumulative and delta series are sums, distributions histograms (with count,
  sum and range); points of text have no number and no row.
- The metric's labels are the attributes, the monitored resource with its labels the resource.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import metric_point
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, number, rfc3339_ns, text

_SERVICES = (
    "service_name",
    "service",
    "function_name",
    "module_id",
    "database_id",
    "container_name",
    "pod_name",
    "backend_service_name",
    "subscription_id",
    "topic_id",
    "bucket_name",
    "cluster_name",
    "instance_name",
    "instance_id",
)


@needs("timeSeries", "metric points")
def recognise(value: Any) -> Relations | None:
    """Rows of `metric_points`, or None."""
    if type(value) is not dict:
        return None
    if _is_series(value):
        return {"metric_points": _points(value, value)}
    series = dicts(value.get("timeSeries"))
    if not series or not _is_series(series[0]):
        return None
    return {"metric_points": [row for one in series if _is_series(one) for row in _points(one, value)]}


def _is_series(value: dict[str, Any]) -> bool:
    return type(value.get("points")) is list and "type" in mapping(value.get("metric"))


def _points(series: dict[str, Any], answer: dict[str, Any]) -> list[Row]:
    metric, monitored = mapping(series.get("metric")), mapping(series.get("resource"))
    labels = mapping(monitored.get("labels"))
    own = mapping(metric.get("labels"))
    named = {**own, **labels}
    service = next((named[key] for key in _SERVICES if type(named.get(key)) is str and named[key]), "")
    resource = {**labels, "cloud.provider": "gcp", "type": text(monitored.get("type"))}
    unit = text(series.get("unit") or answer.get("unit"))
    adds = series.get("metricKind") in ("CUMULATIVE", "DELTA")
    rows = []
    for point in dicts(series.get("points")):
        value = mapping(point.get("value"))
        spread = value.get("distributionValue")
        flag = value.get("boolValue")
        one = value.get("doubleValue", value.get("int64Value"))
        plain = float(flag) if type(flag) is bool else one if number(one) is not None else None
        if plain is None and type(spread) is not dict:
            continue
        spread = mapping(spread)
        count, mean = integer(spread.get("count")), number(spread.get("mean"))
        limits = mapping(spread.get("range"))
        rows.append(
            metric_point(
                rfc3339_ns(mapping(point.get("interval")).get("endTime")),
                service or service_of(named),
                text(metric.get("type")),
                plain,
                unit=unit,
                kind="histogram" if spread else "sum" if adds else "gauge",
                count=count,
                sum=number(count * mean) if count is not None and mean is not None else None,
                min=number(limits.get("min")),
                max=number(limits.get("max")),
                attributes=own,
                resource=resource,
            )
        )
    return rows
