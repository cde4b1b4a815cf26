"""Telemetry formats that HYVE knows: parsed values in, rows of named relations out (R26, R27).

Rules:
- One small file for each format, each with `recognise(value) -> Relations | None`: cheap to say no, never
  raises, never changes the value. Adding a format is a file and a line in `telemetry.RECOGNISERS`.
- The same relation has the same keys whatever format it came from: `spans`, `log_records`, `metric_points`,
  `alerts`; missing values are None.
- Keys of `TIME_KEYS` hold epoch nanoseconds (int or None).
"""

from __future__ import annotations

from hyve.formats.scalars import Relations, Row
from hyve.formats.telemetry import RECOGNISERS, Record, records, relations

__all__ = ["RECOGNISERS", "TIME_KEYS", "Record", "Relations", "Row", "records", "relations"]

TIME_KEYS = frozenset({"time", "end_time"})
