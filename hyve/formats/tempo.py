"""Tempo's search answers as rows of `traces` and, as far as they are shown, of `spans`.

Rules:
- Tempo drops the leading zeros of a trace id; `trace_id` has all 32 digits, as spans from elsewhere do.
- Newer servers send the first of `spanSets` again as `spanSet`; a span counts once for each trace.
- A search shows a few spans without their parents; their service is the attribute `service.name`, where selected.
"""

from __future__ import annotations

from string import hexdigits
from typing import Any

from hyve.formats.otlp import CODES, KINDS, attributes, peer_of
from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import Relations, Row, dicts, epoch_ns, integer, mapping, number, text, trace_or_span_id


@needs("traces")
def recognise(value: Any) -> Relations | None:
    """Rows of `traces` and `spans`, or None."""
    if type(value) is not dict:
        return None
    traces = dicts(value.get("traces"))
    if not traces or not _is_trace(traces[0]):
        return None
    result: Relations = {"traces": [], "spans": []}
    for trace in filter(_is_trace, traces):
        _read(trace, result)
    return {name: rows for name, rows in result.items() if rows}


def _is_trace(trace: dict[str, Any]) -> bool:
    return type(trace.get("traceID")) is str and not {"rootServiceName", "startTimeUnixNano"}.isdisjoint(trace)


def _read(trace: dict[str, Any], result: Relations) -> None:
    trace_id = _trace_id(trace["traceID"])
    sets = dicts(trace.get("spanSets")) or dicts([trace.get("spanSet")])
    stats = [one for one in mapping(trace.get("serviceStats")).values() if type(one) is dict]
    seen: dict[Any, None] = {}
    for span in (span for one in sets for span in dicts(one.get("spans"))):
        span_id = trace_or_span_id(span.get("spanID"))
        start = epoch_ns(span.get("startTimeUnixNano"))
        if span_id is None or start is None or span_id in seen:
            continue
        seen[span_id] = None
        result["spans"].append(_span(span, trace_id, span_id, start))
    result["traces"].append(
        {
            "time": epoch_ns(trace.get("startTimeUnixNano")),
            "trace_id": trace_id,
            "root_service": known(trace.get("rootServiceName")),
            "root_name": known(trace.get("rootTraceName")),
            "duration_ms": number(trace.get("durationMs", 0)),
            "matched_spans": sum(integer(one.get("matched")) or 0 for one in sets),
            "spans": sum(integer(one.get("spanCount")) or 0 for one in stats) if stats else None,
            "errors": sum(integer(one.get("errorCount")) or 0 for one in stats) if stats else None,
        }
    )


def _trace_id(value: str) -> str | None:
    if value.strip(hexdigits) or not value.strip("0") or len(value) > 32:
        return trace_or_span_id(value)
    return value.lower().zfill(32)


def _span(span: dict[str, Any], trace_id: str | None, span_id: str, start: int) -> Row:
    own = attributes(span.get("attributes"))
    took = integer(span.get("durationNanos"))
    end = start + took if took is not None and 0 <= took < (1 << 63) - start else None
    kind, status = (
        text(own.get(key)).lower().removeprefix(prefix)
        for key, prefix in (("kind", "span_kind_"), ("status", "status_code_"))
    )
    kind = kind if kind in KINDS else "unspecified"
    return {
        "time": start,
        "end_time": end,
        "duration_ms": took / 1e6 if end is not None and took is not None else None,
        "service": text(own.get("service.name")) or "unknown",
        "name": text(span.get("name")),
        "kind": kind,
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": trace_or_span_id(span.get("parentSpanID") or own.get("span:parentID")),
        "status": status if status in CODES else "unset",
        "status_message": text(own.get("statusMessage")),
        "peer_service": peer_of(own, kind),
        "attributes": own,
        "resource": {},
    }
