"""CloudWatch's metrics as rows of `metric_points`: metric streams, GetMetricData and GetMetricStatistics.

Rules:
- `value` is the average, as CloudWatch itself shows a metric; the rest stands in `count`, `sum`, `min` and `max`.
- Any other statistic (p99, TM(10%:90%), the one that GetMetricData was asked for) is a row of its own, named by the
  attribute `statistic`.
- Dimensions are the attributes. Parallel lists of unequal length end with the shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyve.formats.aws import moment_ns, service, tags
from hyve.formats.recogniser import needs
from hyve.formats.rows import metric_point, present
from hyve.formats.scalars import Relations, Row, dicts, integer, mapping, number, text

_STREAMED = frozenset({"metric_name", "namespace", "timestamp", "value"})
_RESULTS = ("MetricDataResults", "metric_data_results", "metrics")
_STATISTICS = frozenset({"count", "sum", "min", "max", "average"})


@needs("metric_name namespace timestamp value", "Datapoints Label", *_RESULTS)
def recognise(value: Any) -> Relations | None:
    """Rows of `metric_points`, or None."""
    if type(value) is not dict:
        return None
    if is_streamed(value):
        return {"metric_points": streamed(value)}
    if type(value.get("Datapoints")) is list and "Label" in value:
        return {"metric_points": _statistics(value)}
    for key in _RESULTS:
        results = dicts(value.get(key))
        if results and _is_series(results[0]):
            return {"metric_points": [row for result in results for row in _series(result, value)]}
    return None


def is_streamed(value: Any) -> bool:
    """Whether a value is one line of a metric stream in JSON format."""
    return type(value) is dict and value.keys() >= _STREAMED and type(value["value"]) is dict


def streamed(item: dict[str, Any]) -> list[Row]:
    """The rows of one line of a metric stream: its average, then its additional statistics."""
    dimensions = tags(item.get("dimensions"))
    namespace = text(item.get("namespace"))
    resource = present(
        cloud__provider="aws",
        cloud__account__id=text(item.get("account_id")),
        cloud__region=text(item.get("region")),
        namespace=namespace,
    )
    statistics = item["value"]
    return _points(
        moment_ns(item.get("timestamp")),
        service(dimensions, namespace),
        text(item.get("metric_name")),
        text(item.get("unit")),
        {key: inner for key, inner in statistics.items() if key in _STATISTICS},
        {key: inner for key, inner in statistics.items() if key not in _STATISTICS},
        dimensions,
        resource,
    )


def _points(
    time: int | None,
    about: str,
    name: str,
    unit: str,
    usual: Mapping[Any, Any],
    others: Mapping[Any, Any],
    dimensions: dict[str, str],
    resource: dict[str, Any],
) -> list[Row]:
    count, total = number(usual.get("count")), number(usual.get("sum"))
    average = number(usual.get("average"))
    if average is None and count and total is not None:
        average = number(total / count)
    rows = []
    if any(number(inner) is not None for inner in usual.values()):
        rows.append(
            metric_point(
                time,
                about,
                name,
                average,
                unit=unit,
                count=integer(usual.get("count")),
                sum=total,
                min=number(usual.get("min")),
                max=number(usual.get("max")),
                attributes=dimensions,
                resource=resource,
            )
        )
    for statistic, inner in others.items():
        if (value := number(inner)) is not None:
            marked = {**dimensions, "statistic": text(statistic)}
            rows.append(metric_point(time, about, name, value, unit=unit, attributes=marked, resource=resource))
    return rows


def _statistics(answer: dict[str, Any]) -> list[Row]:
    """GetMetricStatistics: the dimensions were in the question only."""
    rows: list[Row] = []
    name = text(answer["Label"])
    for point in dicts(answer["Datapoints"]):
        usual = {
            "average": point.get("Average"),
            "count": point.get("SampleCount"),
            "sum": point.get("Sum"),
            "min": point.get("Minimum"),
            "max": point.get("Maximum"),
        }
        others = mapping(point.get("ExtendedStatistics"))
        time, unit = moment_ns(point.get("Timestamp")), text(point.get("Unit"))
        rows += _points(time, "unknown", name, unit, usual, others, {}, {"cloud.provider": "aws"})
    return rows


def _either(item: dict[str, Any], *keys: str) -> Any:
    """The first of the keys that is there: AWS's answer, and how Python code spells it."""
    return next((item[key] for key in keys if key in item), None)


def _is_series(item: dict[str, Any]) -> bool:
    return (
        type(_either(item, "Timestamps", "timestamps")) is list
        and type(_either(item, "Values", "values")) is list
        and not {"Label", "label", "Id", "metric_name", "MetricName"}.isdisjoint(item)
    )


def _series(result: dict[str, Any], answer: dict[str, Any]) -> list[Row]:
    times, values = _either(result, "Timestamps", "timestamps"), _either(result, "Values", "values")
    if type(times) is not list or type(values) is not list:
        return []
    name = _either(result, "MetricName", "metric_name", "Label", "label", "Id")
    namespace = text(_either(result, "Namespace", "namespace") or _either(answer, "Namespace", "namespace"))
    dimensions = tags(_either(result, "Dimensions", "dimensions"), "Name")
    about = service(dimensions, namespace)
    resource = present(cloud__provider="aws", namespace=namespace)
    unit = text(_either(result, "Unit", "unit"))
    asked = present(id=_either(result, "Id", "id"), statistic=_either(result, "Stat", "stat"))
    attributes = {**dimensions, **{key: text(inner) for key, inner in asked.items()}}
    return [
        metric_point(moment_ns(at), about, text(name), one, unit=unit, attributes=attributes, resource=resource)
        for at, one in zip(times, values, strict=False)
    ]
