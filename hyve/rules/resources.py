"""Gauges and counters: what left its usual range, what reached a limit, and what restarted.

Rules:
- A series is a metric of a service, averaged over its instances. A counter that only grows is read as its growth.
- Far means beyond the first quarter's range by three times its width, for at least a twentieth of the window.
- A limit is a constant of the same service and unit whose name says so (max, limit, ...) and shares a word with the
  series, or 1 for a share. Saturated means it came from below three quarters of the limit to nine tenths of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyve.rules.schema import Schema, Store
from hyve.rules.timeline import BASE, BUCKETS, Window

_LIMIT = re.compile(r"(^|[._-])(max|maximum|limit|limits|capacity|quota|allocatable)([._-]|$)")
_SHARE = re.compile(r"util|percent|ratio|saturation|usage_share")
_FILLER = frozenset(
    {
        "max",
        "maximum",
        "limit",
        "limits",
        "usage",
        "count",
        "total",
        "used",
        "current",
        "process",
        "container",
    }
)


@dataclass(frozen=True)
class Shift:
    """A series that left its range. `limit` is what it saturates, None where it saturates nothing; `since` is the
    first bucket far out; `restarts` says that the series counts restarts."""

    service: str
    name: str
    unit: str
    usual: float
    peak: float
    since: int
    far: int
    limit: float | None
    limit_name: str
    restarts: bool


def read(store: Store, schema: Schema, window: Window) -> list[Shift]:
    """Series that shifted, saturated ones first."""
    if not schema.has("metric_points", "time", "service", "name", "value"):
        return []
    kind = schema.column("metric_points", "kind")
    statement = f"""
WITH series AS (
  SELECT service, name, coalesce({schema.column("metric_points", "unit")}, '') AS unit,
    coalesce({kind}, '') = 'sum' AS adds, {window.bucket()} AS bucket,
    avg(value) AS v, max(value) AS hi, min(value) AS lo
  FROM metric_points WHERE time IS NOT NULL AND value IS NOT NULL
    AND coalesce({kind}, 'gauge') IN ('gauge', 'sum') GROUP BY ALL
), steps AS (
  SELECT *, v - lag(v) OVER (PARTITION BY service, name, unit, adds ORDER BY bucket) AS step FROM series
), rising AS (
  SELECT service, name, unit, adds, adds AND coalesce(bool_and(step >= 0), false) AS grows
  FROM steps GROUP BY service, name, unit, adds
), flat AS (
  SELECT service, name, unit, bucket, grows, CASE WHEN grows THEN step ELSE v END AS v,
    CASE WHEN grows THEN step ELSE hi END AS hi, hi AS raw_hi, lo AS raw_lo
  FROM steps JOIN rising USING (service, name, unit, adds)
), usual AS (
  SELECT service, name, unit, median(v) AS m,
    greatest(quantile_cont(v, 0.9) - quantile_cont(v, 0.1), 0.05 * abs(median(v)), 1e-9) AS spread,
    quantile_cont(v, 0.9) AS up, max(raw_hi) AS top
  FROM flat WHERE bucket < {BASE} GROUP BY ALL
)
SELECT service, name, unit, any_value(m) AS m, max(hi) FILTER (WHERE bucket >= {BASE}) AS peak,
  count(*) FILTER (WHERE bucket >= {BASE} AND v > up + 3 * spread) AS far,
  min(bucket) FILTER (WHERE bucket >= {BASE} AND v > up + 3 * spread) AS since,
  max(raw_hi) = min(raw_lo) AS constant, max(raw_hi) AS top, any_value(top) AS top_before
FROM flat JOIN usual USING (service, name, unit)
GROUP BY service, name, unit ORDER BY far DESC, service, name LIMIT 5000"""
    rows = store.query(statement).rows
    limits: dict[str, list[tuple[str, str, float]]] = {}
    for service, name, unit, _, _, _, _, constant, top, _ in rows:
        if constant and top and _LIMIT.search(name.lower()):
            limits.setdefault(service, []).append((name, unit, top))
    found = []
    for service, name, unit, usual, peak, far, since, constant, top, before in rows:
        if constant or peak is None or usual is None:
            continue
        if "restart" in name.lower():
            if top is not None and before is not None and top > before:
                found.append(Shift(service, name, unit, before, top, since or BASE, far, None, "", True))
            continue
        limit, limit_name = _limit(name, unit, peak, limits.get(service, []))
        if limit is not None and not (peak >= 0.9 * limit and usual <= 0.75 * limit):
            limit = None
        if far >= BUCKETS // 20:
            found.append(Shift(service, name, unit, usual, peak, since, far, limit, limit_name, False))
    found.sort(key=lambda s: (s.limit is None, not s.restarts, s.since, s.service, s.name))
    return found


def _limit(name: str, unit: str, peak: float, limits: list[tuple[str, str, float]]) -> tuple[float | None, str]:
    words = set(re.split(r"[._\-\s]+", name.lower())) - _FILLER
    best: tuple[int, float, str] | None = None
    for other, other_unit, value in limits:
        shared = len(words & set(re.split(r"[._\-\s]+", other.lower())))
        if shared and other_unit == unit and peak <= 1.05 * value and (best is None or shared > best[0]):
            best = (shared, value, other)
    if best is not None:
        return best[1], best[2]
    if peak <= 1.0 and (unit == "1" or _SHARE.search(name.lower())):
        return 1.0, "1"
    return None, ""
