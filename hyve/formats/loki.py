"""Loki's query_range answers and push requests as rows of `log_records`.

Rules: stream labels are the `resource`; a third element of a value is structured metadata, the `attributes`. The level
is that of the metadata, of the labels, else what the line itself says.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import log_record
from hyve.formats.scalars import Relations, Row, dicts, epoch_ns, mapping, text, trace_or_span_id


@needs("data", "resultType result", "streams")
def recognise(value: Any) -> Relations | None:
    """Rows of `log_records`, or None."""
    if type(value) is not dict:
        return None
    data = value["data"] if type(value.get("data")) is dict else value
    streams = data.get("result") if data.get("resultType") == "streams" else value.get("streams")
    if type(streams) is not list or not all(
        type(item) is dict and type(item.get("stream")) is dict for item in streams
    ):
        return None
    rows: list[Row] = []
    for item in dicts(streams):
        labels = item["stream"]
        service = service_of(labels)
        values = item.get("values")
        for entry in values if type(values) is list else ():
            if type(entry) is not list or len(entry) < 2:
                continue
            extra = mapping(entry[2]) if len(entry) > 2 else {}
            extra = {**extra, **mapping(extra.get("structuredMetadata"))} if extra else extra
            word = extra.get("level") or extra.get("detected_level")
            word = word or labels.get("level") or labels.get("detected_level")
            rows.append(
                log_record(
                    epoch_ns(entry[0]),
                    service,
                    text(entry[1]),
                    level=word if word and word != "unknown" else None,
                    trace_id=trace_or_span_id(extra.get("trace_id") or extra.get("traceID")),
                    span_id=trace_or_span_id(extra.get("span_id") or extra.get("spanID")),
                    attributes=extra,
                    resource=labels,
                )
            )
    return {"log_records": rows}
