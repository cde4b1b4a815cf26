"""CRITICAL_PATH: the spans that a trace waited for, and how long for each.

`FROM CRITICAL_PATH('spans')`, or with `trace := 'id'`; without an id the trace that took longest. A row is one span on
the path in the order of their starts: service, name, span_id, `start_ms` from the trace's start, `duration_ms`,
`self_ms` (the time in which the trace waited for this span and for none that it called), its `share` of the root's
duration, and a `note`. The `self_ms` of a path add up to the root's duration. `GROUP BY service` sums them.

The path is walked from the root's end backwards (as CRISP and Jaeger do): the child that ended last before the moment
is entered, and when its start is reached, the one that ended last before that. What data does wrong:

- A child that goes on after its parent (asynchronous) counts up to the parent's end; one that starts after it, not.
- A child that starts before its parent has another clock: it is moved with all below it, and the note says by how much.
  Two children that overlap by less than a twentieth of the earlier one are taken as one after the other.
- A span whose parent isn't there, or is itself, hangs on the root (the longest span without a parent; where every span
  names one, the longest whose parent isn't there), and the note says so. Of two spans with one id the shorter is the
  child (Zipkin's shared ids). Loops and spans without times are left out; where there is nothing but loops, the
  earliest span is the root.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from hyve.operators import Function, Operator
from hyve.operators.reading import ROWS, check, where

MOST_SPANS = 100_000
_OVERLAP = 20


@dataclass
class _Span:
    """One span: nanoseconds, its children, the stretches it was waited for, and what had to be mended."""

    place: int
    start: int
    end: int
    children: list[_Span] = field(default_factory=list)
    moved: int = 0
    note: str = ""
    waited: int = 0


def critical_path(spans: Iterable[tuple[str | None, str | None, int, int]]) -> list[dict[str, Any]]:
    """The path through spans given as (id, parent's id, start, end), by their places in that order."""
    root = _tree([(_Span(i, start, end), own, above) for i, (own, above, start, end) in enumerate(spans)])
    if root is None:
        return []
    path: list[_Span] = []
    waiting = [(root, root.start, root.end)]
    while waiting:
        span, start, until = waiting.pop()
        path.append(span)
        now = until
        for child in sorted(span.children, key=lambda one: (-one.end, -one.start, one.place)):
            begins, ends = max(child.start, start), min(child.end, now)
            late = child.end - now
            if child.start >= now or ends <= start or (now < until and late * _OVERLAP > child.end - child.start):
                continue
            if child.end > span.end and child.start < span.end:
                child.note = child.note or f"goes on {_ms(child.end - span.end)} ms after its parent"
            span.waited += now - ends
            waiting.append((child, begins, ends))
            now = begins
        span.waited += max(0, now - start)
    path.sort(key=lambda span: (max(span.start, root.start), -span.end, span.place))
    return [
        {
            "place": span.place,
            "start": span.start - root.start,
            "self": span.waited,
            "all": root.end - root.start,
            "note": span.note or None,
        }
        for span in path
    ]


def _tree(spans: list[tuple[_Span, str | None, str | None]]) -> _Span | None:
    """Links spans to their parents and gives back the root; clocks are set right from the root down."""
    by_id: dict[str, list[_Span]] = defaultdict(list)
    for span, own, _ in spans:
        if own:
            by_id[own].append(span)
    for shared in by_id.values():
        shared.sort(key=lambda span: (span.start - span.end, span.place))
        for above, below in pairwise(shared):
            above.children.append(below)
    inner = {below.place for shared in by_id.values() for below in shared[1:]}
    roots, orphans = [], []
    for span, own, parent in spans:
        if span.place in inner:
            continue
        if not parent:
            roots.append(span)
        elif parent in by_id and parent != own:
            by_id[parent][-1].children.append(span)
        else:
            orphans.append(span)
    candidates = roots or orphans
    if candidates:
        root = max(candidates, key=lambda span: (span.end - span.start, -span.place))
    elif spans:
        root = min((span for span, _, _ in spans), key=lambda span: (span.start, -span.end, span.place))
        root.note = "the spans are each other's parents; this is the earliest"
    else:
        return None
    for span in (*roots, *orphans):
        if span is not root and root.start <= span.start < root.end:
            span.note = "its parent is missing"
            root.children.append(span)
    if root in orphans:
        root.note = "its parent is missing"
    reached, waiting = {root.place}, [root]
    while waiting:
        span = waiting.pop()
        span.children = [child for child in span.children if child.place not in reached]
        for child in span.children:
            reached.add(child.place)
            child.moved = span.moved
            early = span.start - (child.start + child.moved)
            if early > 0:
                child.moved += early
                child.note = f"clock: moved by {_ms(child.moved)} ms"
            child.start, child.end = child.start + child.moved, child.end + child.moved
        waiting += span.children
    return root


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3f}".rstrip("0").rstrip(".")


def _call(own: Any, above: Any, starts: Any, ends: Any) -> Any:
    lists = (column.to_pylist() for column in (own, above, starts, ends))
    found = [critical_path(zip(*cells, strict=True)) for cells in zip(*lists, strict=True)]
    return pa.array(found, pa.list_(pa.struct([*((name, pa.int64()) for name in _NUMBERS), ("note", pa.string())])))


_NUMBERS = ("place", "start", "self", "all")


def _optional(name: str) -> str:
    return f"coalesce(*COLUMNS(lambda c: lower(c) = '{name}' OR c = '_none'))"


_MACRO = f"""(tbl, trace := NULL) AS TABLE
WITH {ROWS}, {check("'trace_id'", "'span_id'", "'time'")}, _read AS (
    SELECT row_number() OVER () AS _row, CAST({_optional("trace_id")} AS VARCHAR) AS _trace,
           CAST({_optional("span_id")} AS VARCHAR) AS _own, CAST({_optional("parent_span_id")} AS VARCHAR) AS _above,
           CAST({_optional("service")} AS VARCHAR) AS _service, CAST({_optional("name")} AS VARCHAR) AS _name,
           epoch_ns(TRY_CAST({_optional("time")} AS TIMESTAMP_NS)) AS _start,
           epoch_ns(TRY_CAST({_optional("end_time")} AS TIMESTAMP_NS)) AS _stop,
           CAST(TRY_CAST({_optional("duration_ms")} AS DOUBLE) * 1e6 AS BIGINT) AS _took
    FROM _rows
), _whole AS (
    SELECT *, coalesce(_stop, _start + _took) AS _end FROM _read
    WHERE {where("_trace IS NOT NULL AND _end >= _start")}
), _chosen AS (
    SELECT coalesce(CAST(trace AS VARCHAR), (
        SELECT _trace FROM _whole GROUP BY _trace ORDER BY max(_end) - min(_start) DESC, _trace LIMIT 1)) AS _id
), _spans AS (
    SELECT row_number() OVER (ORDER BY _row) - 1 AS _place, * FROM _whole WHERE _trace = (SELECT _id FROM _chosen)
), _lists AS (
    SELECT list(_own ORDER BY _place) AS _owns, list(_above ORDER BY _place) AS _aboves,
           list(_start ORDER BY _place) AS _starts, list(_end ORDER BY _place) AS _ends
    FROM _spans
    HAVING count(*) > 0 AND CASE WHEN count(*) > {MOST_SPANS} THEN error('the trace has ' || count(*)
        || ' spans, the limit is {MOST_SPANS}; filter them in a CTE first') ELSE true END
), _path AS (
    SELECT unnest(hyve_critical_path(_owns, _aboves, _starts, _ends)) AS _p FROM _lists
)
SELECT _trace AS trace_id, _service AS service, _name AS name, _own AS span_id, round(_p.start / 1e6, 3) AS start_ms,
       round((_end - _start) / 1e6, 3) AS duration_ms, round(_p.self / 1e6, 3) AS self_ms,
       round(_p.self / nullif(_p."all", 0), 4) AS share, _p.note AS note
FROM _path JOIN _spans ON _p.place = _place ORDER BY _p.start, _end DESC, _place"""

OPERATOR = Operator(
    "CRITICAL_PATH",
    "CRITICAL_PATH('spans')",
    "",
    _MACRO,
    (
        Function(
            "hyve_critical_path",
            _call,
            ("VARCHAR[]", "VARCHAR[]", "BIGINT[]", "BIGINT[]"),
            'STRUCT(place BIGINT, start BIGINT, self BIGINT, "all" BIGINT, note VARCHAR)[]',
        ),
    ),
)
