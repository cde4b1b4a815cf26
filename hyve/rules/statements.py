"""The statements that stand as evidence: plain SELECTs with literal values and few rows, for a reader to run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyve.rules.calls import SERVED, called_sql
from hyve.rules.logs import TEMPLATE
from hyve.rules.timeline import literal, quote

if TYPE_CHECKING:
    from hyve.rules.analyst import Candidate, Findings


def bucket(found: Findings) -> str:
    """About 15 steps over the window, in whole seconds."""
    seconds = max(1, round((found.window.end - found.window.start) / 15e9))
    if seconds > 60:
        seconds = 60 * round(seconds / 60)
    return f"time_bucket(INTERVAL '{seconds} seconds', time)"


def served(found: Findings) -> str:
    kinds = ", ".join(quote(kind) for kind in SERVED)
    return f"kind IN ({kinds})" if found.schema.has("spans", "kind") else "true"


def timeline_sql(found: Findings, candidate: Candidate) -> str:
    """How the candidate did over time, in the table that speaks of it."""
    suspect = candidate.suspect
    entity = quote(candidate.entity)
    if suspect is None:
        if candidate.shifts:
            return gauge_sql(found, candidate.entity, [candidate.shifts[0].name])
        if found.schema.has("log_records", "severity", "service"):
            return f"""SELECT {bucket(found)} AS time, count(*) AS lines,
  count(*) FILTER (WHERE severity IN ('ERROR', 'FATAL')) AS errors,
  count(*) FILTER (WHERE severity = 'WARN') AS warnings
FROM log_records WHERE service = {entity} GROUP BY 1 ORDER BY 1 LIMIT 20"""
        return f"SELECT name, count(*) AS points FROM metric_points WHERE service = {entity} GROUP BY name LIMIT 20"
    if suspect.how == "own":
        where = f"service = {entity} AND {served(found)}"
    else:
        called = candidate.entity if suspect.how == "called" else suspect.about
        where = f"kind IN ('client', 'producer') AND {called_sql(found.schema, called, found.services)}"
        if suspect.how == "caller":
            where = f"service = {entity} AND {where}"
    return f"""SELECT {bucket(found)} AS time, count(*) AS requests,
  count(*) FILTER (WHERE status = 'error') AS errors,
  round(quantile_cont(duration_ms, 0.5), 1) AS p50_ms, round(quantile_cont(duration_ms, 0.95), 1) AS p95_ms
FROM spans WHERE {where} GROUP BY 1 ORDER BY 1 LIMIT 20"""


def around_sql(found: Findings, entity: str, begin: int, end: int) -> str:
    margin = 4 * found.window.width
    seconds = max(1, found.window.width // 1_000_000_000)
    return f"""SELECT time_bucket(INTERVAL '{seconds} seconds', time) AS time, count(*) AS requests,
  count(*) FILTER (WHERE status = 'error') AS errors, round(quantile_cont(duration_ms, 0.95), 1) AS p95_ms
FROM spans WHERE (service = {quote(entity)} OR {called_sql(found.schema, entity, found.services)})
  AND time BETWEEN {literal(begin - margin)} AND {literal(end + margin)} GROUP BY 1 ORDER BY 1 LIMIT 20"""


def compare_sql(found: Findings, onset: int) -> str:
    at = literal(onset)
    return f"""SELECT service, count(*) FILTER (WHERE time < {at}) AS requests_before,
  count(*) FILTER (WHERE time >= {at}) AS requests_since,
  round(100 * avg((status = 'error')::INT) FILTER (WHERE time < {at}), 1) AS error_pct_before,
  round(100 * avg((status = 'error')::INT) FILTER (WHERE time >= {at}), 1) AS error_pct_since,
  round(quantile_cont(duration_ms, 0.95) FILTER (WHERE time < {at}), 1) AS p95_ms_before,
  round(quantile_cont(duration_ms, 0.95) FILTER (WHERE time >= {at}), 1) AS p95_ms_since
FROM spans WHERE {served(found)} GROUP BY service ORDER BY error_pct_since DESC NULLS LAST, service LIMIT 20"""


def share_sql(found: Findings, candidate: Candidate, onset: int) -> str:
    """How many of the candidate's requests (or of the calls that it is blamed for) were bad, before and since: failed
    by themselves, or longer than twice what 95% took before."""
    at = literal(onset)
    suspect = candidate.suspect
    assert suspect is not None
    if suspect.how == "own":
        spans = f"""child AS (
  SELECT trace_id, parent_span_id, sum(duration_ms) AS ms, bool_or(status = 'error') AS failed
  FROM spans GROUP BY trace_id, parent_span_id
), own AS (
  SELECT s.time, s.status = 'error' AND NOT coalesce(child.failed, false) AS failed,
    greatest(0, s.duration_ms - coalesce(child.ms, 0)) AS ms
  FROM spans s LEFT JOIN child ON child.trace_id = s.trace_id AND child.parent_span_id = s.span_id
  WHERE s.service = {quote(candidate.entity)} AND s.kind NOT IN ('client', 'producer')
)"""
    else:
        called = candidate.entity if suspect.how == "called" else suspect.about
        where = f"kind IN ('client', 'producer') AND {called_sql(found.schema, called, found.services)}"
        if suspect.how == "caller":
            where = f"service = {quote(candidate.entity)} AND {where}"
        spans = f"own AS (\n  SELECT time, status = 'error' AS failed, duration_ms AS ms FROM spans WHERE {where}\n)"
    return f"""WITH {spans}, usual AS (
  SELECT 2 * quantile_cont(ms, 0.95) + 5 AS limit_ms FROM own WHERE time < {at} AND NOT failed
)
SELECT count(*) FILTER (WHERE time < {at}) AS before, count(*) FILTER (WHERE time >= {at}) AS since,
  round(100 * avg((failed OR coalesce(ms > limit_ms, false))::INT) FILTER (WHERE time < {at}), 1) AS bad_pct_before,
  round(100 * avg((failed OR coalesce(ms > limit_ms, false))::INT) FILTER (WHERE time >= {at}), 1) AS bad_pct_since,
  round(any_value(limit_ms), 1) AS slow_means_over_ms
FROM own, usual"""


def own_time_sql(onset: int) -> str:
    at = literal(onset)
    return f"""WITH child AS (
  SELECT trace_id, parent_span_id, sum(duration_ms) AS ms FROM spans GROUP BY trace_id, parent_span_id
), own AS (
  SELECT s.service, s.time, greatest(0, s.duration_ms - coalesce(child.ms, 0)) AS ms
  FROM spans s LEFT JOIN child ON child.trace_id = s.trace_id AND child.parent_span_id = s.span_id
  WHERE s.kind NOT IN ('client', 'producer')
)
SELECT service, round(quantile_cont(ms, 0.95) FILTER (WHERE time < {at}), 1) AS own_p95_before,
  round(quantile_cont(ms, 0.95) FILTER (WHERE time >= {at}), 1) AS own_p95_since
FROM own GROUP BY service ORDER BY own_p95_since - own_p95_before DESC NULLS LAST, service LIMIT 10"""


def mark_sql(found: Findings, service: str, columns: Sequence[str]) -> str:
    """First and last sight of each version or instance of a service."""
    for table in found.schema.timed(("spans", "log_records", "metric_points")):
        column = found.schema.first(table, columns)
        if column is not None:
            return f"""SELECT {column} AS mark, min(time) AS first_seen, max(time) AS last_seen, count(*) AS records
FROM {table} WHERE service = {quote(service)} GROUP BY 1 ORDER BY 2 LIMIT 20"""
    return f"SELECT service FROM {found.schema.timed(('spans', 'log_records', 'metric_points'))[0]} LIMIT 1"


def gauge_sql(found: Findings, service: str, names: Sequence[str]) -> str:
    listed = ", ".join(quote(name) for name in names)
    return f"""SELECT {bucket(found)} AS time, name, round(avg(value), 3) AS mean, round(max(value), 3) AS peak
FROM metric_points WHERE service = {quote(service)} AND name IN ({listed})
GROUP BY ALL ORDER BY name, time LIMIT 40"""


def like(template: str) -> str:
    """The SQL condition that a line is of a template; a long one is known by its beginning."""
    if len(template) <= 300:
        return f"{TEMPLATE} = {quote(template)}"
    return f"starts_with({TEMPLATE}, {quote(template[:300])})"
