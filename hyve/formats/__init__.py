"""Telemetry formats that HYVE knows: parsed values in, rows of named relations out (R26, R27).

Rules:
- One small file for each format, each with a `recognise(value) -> Relations | None`, which never raises and never
  changes the value, decorated with the keys that it needs (`recogniser.needs`). Adding a format is a file and a line in
  `telemetry.RECOGNISERS`; one whose records mean something only together is a `Stream` in `telemetry.STREAMS`.
- The same relation has the same keys whatever format it came from: `spans`, `span_events`, `span_links`, `log_records`,
  `metric_points`, `alerts`; missing values are None. Every point of a series keeps its row of `metric_points`, but a
  `value` that is NaN or infinite is None there, and `value_text` says it (rows of other points have no such key): one
  NaN makes NaN of every average, and readers of `value` need no `isfinite`. `container_logs` has the fields of the
  lines themselves.
- The keys of `TIME_KEYS`, in the row itself and not in the objects inside it, hold epoch nanoseconds (int or None).
- Rows may share the objects in them: readers must not change them.
"""

from __future__ import annotations

from hyve.formats.recogniser import Found
from hyve.formats.scalars import NUMBER_KEYS, TIME_KEYS, Relations, Row
from hyve.formats.telemetry import (
    RECOGNISERS,
    find,
    find_lines,
    normalised,
    only_logs,
    relations,
    series_keys,
    sort_out,
    text_relations,
)
from hyve.formats.wire import Record

__all__ = [
    "NUMBER_KEYS",
    "RECOGNISERS",
    "TIME_KEYS",
    "Found",
    "Record",
    "Relations",
    "Row",
    "find",
    "find_lines",
    "normalised",
    "only_logs",
    "relations",
    "series_keys",
    "sort_out",
    "text_relations",
]
