"""The rows of the relations that several formats share, and the cells in them.

Rules: a relation's rows have the same keys whatever format they came from. Text that a format always gives is "" where
it is missing, text that tells by its presence (an error code) is None.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.levels import severity_in
from hyve.formats.scalars import EXACT, Row, compact, number, severity, text, value_text


def metric_point(
    time: int | None,
    service: str,
    name: str,
    given: Any,
    *,
    unit: str = "",
    kind: str = "gauge",
    count: int | None = None,
    sum: float | None = None,
    min: float | None = None,
    max: float | None = None,
    attributes: dict[str, Any],
    resource: dict[str, Any],
) -> Row:
    """A row of `metric_points`, whose value is `given` as a number or as its text; what a double can't hold is said."""
    value = number(given)
    inexact = (value is None and given is not None) or (value is not None and not -EXACT < value < EXACT)
    row = {
        "time": time,
        "service": service,
        "name": name,
        "value": value,
        "unit": unit,
        "kind": kind,
        "count": count,
        "sum": sum,
        "min": min,
        "max": max,
        "attributes": attributes,
        "resource": resource,
    }
    return row | value_text(given) if inexact else row


def log_record(
    time: int | None,
    service: str,
    body: str,
    *,
    level: Any = None,
    trace_id: str | None = None,
    span_id: str | None = None,
    attributes: dict[str, Any],
    resource: dict[str, Any],
) -> Row:
    """A row of `log_records`; `level` is the sender's word for the severity; without one, the body's counts."""
    name, rank = severity_in(body) if level is None or level == "" else severity(level)
    return {
        "time": time,
        "service": service,
        "severity": name,
        "severity_number": rank,
        "body": body,
        "trace_id": trace_id,
        "span_id": span_id,
        "attributes": attributes,
        "resource": resource,
    }


def known(value: Any) -> str | None:
    """A text, or None where it is missing or empty."""
    return text(value) or None


def json_text(value: Any) -> str | None:
    """A free-form value as JSON text, to be asked with `->>`; None where it is missing."""
    return None if value is None else compact(value) or None


def present(**values: Any) -> dict[str, Any]:
    """Those of the values that are there, under their names with dots for double underscores."""
    return {key.replace("__", "."): value for key, value in values.items() if value not in (None, "")}
