"""Loki's query_range answers and push requests as rows of `log_records`.

Rules: stream labels are the `resource`; a third element of a value is structured metadata, the `attributes`. The level
is that of the metadata, of the labels, else what the line itself says. A stream may also be one of Loki's first API
(`{"labels": "{app=\\"x\\"}", "entries": [{"ts", "line"}]}`), as older clients push it, among others.
"""

from __future__ import annotations

from typing import Any

from hyve.formats.entities import service_of
from hyve.formats.exposition import read_labels
from hyve.formats.recogniser import needs
from hyve.formats.rows import log_record
from hyve.formats.scalars import Relations, Row, dicts, epoch_ns, instant_ns, mapping, text, trace_or_span_id


@needs("data", "resultType result", "streams")
def recognise(value: Any) -> Relations | None:
    """Rows of `log_records`, or None."""
    if type(value) is not dict:
        return None
    data = value["data"] if type(value.get("data")) is dict else value
    streams = data.get("result") if data.get("resultType") == "streams" else value.get("streams")
    read = [_stream(item) for item in streams] if type(streams) is list else [None]
    if None in read:
        return None
    rows: list[Row] = []
    for labels, entries in filter(None, read):
        service = service_of(labels)
        for time, line, extra in entries:
            extra = {**extra, **mapping(extra.get("structuredMetadata"))} if extra else extra
            word = extra.get("level") or extra.get("detected_level")
            word = word or labels.get("level") or labels.get("detected_level")
            rows.append(
                log_record(
                    time,
                    service,
                    text(line),
                    level=word if word and word != "unknown" else None,
                    trace_id=trace_or_span_id(extra.get("trace_id") or extra.get("traceID")),
                    span_id=trace_or_span_id(extra.get("span_id") or extra.get("spanID")),
                    attributes=extra,
                    resource=labels,
                )
            )
    return {"log_records": rows}


_Entry = tuple[int | None, Any, dict[str, Any]]


def _stream(item: Any) -> tuple[dict[str, Any], list[_Entry]] | None:
    """(the labels of a stream, its entries as (time, line, metadata)); None of what is no stream."""
    if type(item) is not dict:
        return None
    labels, values, entries = item.get("stream"), item.get("values"), item.get("entries")
    if type(labels) is dict:
        pairs = [entry for entry in values if type(entry) is list and len(entry) > 1] if type(values) is list else []
        return labels, [(epoch_ns(time), line, mapping(more[0]) if more else {}) for time, line, *more in pairs]
    written = item.get("labels")
    if type(written) is not str or type(entries) is not list or written[:1] != "{":
        return None
    found = read_labels(written, 1)
    if found is None or found[1] or written[found[2] :].strip():
        return None
    return found[0], [
        (instant_ns(one.get("ts", one.get("timestamp"))), one["line"], {}) for one in dicts(entries) if "line" in one
    ]
