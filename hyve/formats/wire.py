"""One normalised telemetry record: what the intake writes to its topic, and how it reads back.

Rules: a record is one row of `spans`, `span_events`, `span_links`, `log_records` or `metric_points` exactly as OTLP
gives it (`otlp.whole`), so that data from the topic and data pasted by a user end in the same tables. On the wire a
record is `{"signal": "span"|"span_event"|..., "entity": ..., "time": <ns>, "row": {...}}`. Of the signal "event"
(anything else: Kubernetes and cloud events, JSON of no known format) `row` is the object as it came, and is read as
such; only what JSON in UTF-8 has no form for is written in another way (see `streams.intake.wire`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hyve.formats.recogniser import needs
from hyve.formats.scalars import Relations, Row, epoch_ns

Signal = Literal["span", "span_event", "span_link", "log", "metric", "event"]
RELATION: dict[Signal, str] = {
    "span": "spans",
    "span_event": "span_events",
    "span_link": "span_links",
    "log": "log_records",
    "metric": "metric_points",
}


@dataclass(slots=True)
class Record:
    """`entity` is the service the record speaks of, `time` epoch nanoseconds (0 where unknown). Nobody changes one."""

    signal: Signal
    entity: str
    time: int
    row: Row

    def wire(self) -> dict[str, Any]:
        """The JSON-ready object of this record, as `recognise` reads it."""
        return {"signal": self.signal, "entity": self.entity, "time": self.time, "row": self.row}


def carried(value: dict[str, Any]) -> dict[str, Any] | None:
    """The object that a record of the signal "event" carries; None of any other value."""
    row = value.get("row")
    return row if value.get("signal") == "event" and type(row) is dict else None


@needs("signal row")
def recognise(value: Any) -> Relations | None:
    """The one row of a normalised record, or None."""
    if type(value) is not dict:
        return None
    signal, row = value.get("signal"), value.get("row")
    if type(signal) is not str or type(row) is not dict:
        return None
    name = RELATION.get(signal)  # type: ignore[call-overload]
    if name is None:  # "event" too: who knows what it carries is asked about that
        return None
    entity = value.get("entity")
    clean = dict(row)
    clean["time"] = epoch_ns(row.get("time")) or epoch_ns(value.get("time"))
    if "end_time" in row:
        clean["end_time"] = epoch_ns(row["end_time"])
    if type(row.get("service")) is not str:
        clean["service"] = entity if type(entity) is str and entity else "unknown"
    return {name: [clean]}
