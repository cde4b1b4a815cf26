"""Log lines grouped by template: what is new since the window's beginning, what always was there, what changed.

Rules:
- A template is the line with its numbers and long hex words replaced by `#`.
- New means six times its rate in the first quarter, at least five lines, in at least four buckets: a single burst is
  no trouble that lasts.
- Steady means warnings or errors at about the same rate before and after: noise, however loud.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyve.rules.schema import Schema, Store
from hyve.rules.timeline import BASE, BUCKETS, Window

TEMPLATE = "regexp_replace(body, '[0-9a-fA-F]{8,}|[0-9]+', '#', 'g')"
_CHANGE = (
    "deploy|roll(ed|ing)?[ -]?(out|back)|upgrad|migrat|config(uration)? |reload|feature flag|restart|starting|"
    "shutting down|sigterm|oom|terminated|evict|scaled|failover|cordon"
)
_NEW = 6.0


@dataclass(frozen=True)
class Template:
    """Lines of one service and severity. `since` is the first bucket after the first quarter with one."""

    service: str
    severity: str
    text: str
    sample: str
    before: int
    after: int
    since: int
    buckets: int

    @property
    def growth(self) -> float:
        """How much the rate grew from the first quarter to the rest."""
        return (self.after / (BUCKETS - BASE)) / ((self.before + 0.5) / BASE)

    @property
    def new(self) -> bool:
        return self.growth >= _NEW and self.after >= 5 and self.buckets >= 4

    @property
    def serious(self) -> bool:
        return self.severity in ("WARN", "ERROR", "FATAL")


@dataclass(frozen=True)
class Change:
    """Something that changed at a service: `kind` is "version", "instance", "log" or "event"."""

    service: str
    at: int
    kind: str
    text: str
    before: str = ""
    after: str = ""


def templates(store: Store, schema: Schema, window: Window) -> list[Template]:
    """The templates that occur at least five times, those that grew most first."""
    if not schema.has("log_records", "time", "service", "body"):
        return []
    statement = f"""
WITH lines AS (
  SELECT service, coalesce({schema.column("log_records", "severity")}, '') AS severity, body,
    {TEMPLATE} AS template, {window.bucket()} AS bucket
  FROM log_records WHERE time IS NOT NULL
)
SELECT service, severity, template, min(body) AS sample, count(*) FILTER (WHERE bucket < {BASE}) AS before,
  count(*) FILTER (WHERE bucket >= {BASE}) AS after, min(bucket) FILTER (WHERE bucket >= {BASE}) AS since,
  count(DISTINCT bucket) AS buckets
FROM lines GROUP BY ALL HAVING count(*) >= 5 ORDER BY after - 3 * before DESC, service, template, severity LIMIT 1000"""
    return [
        Template(service, severity, text, sample, before, after, since if since is not None else 0, buckets)
        for service, severity, text, sample, before, after, since, buckets in store.query(statement).rows
    ]


def changes(store: Store, schema: Schema, window: Window) -> list[Change]:
    """New versions, new instances, Kubernetes events, and rare log lines that speak of a change, in time order."""
    found = _replaced(store, schema, window)
    if schema.has("log_records", "time", "service", "body"):
        statement = f"""
WITH lines AS (
  SELECT service, epoch_ns(time) AS stamp, body, count(*) OVER (PARTITION BY service, {TEMPLATE}) AS n
  FROM log_records WHERE time IS NOT NULL AND regexp_matches(body, '(?i){_CHANGE}')
)
SELECT service, stamp, body FROM lines WHERE n <= 12 ORDER BY stamp, service, body LIMIT 500"""
        found += [Change(service, at, "log", body) for service, at, body in store.query(statement).rows if body]
    if schema.has("kubernetes_events", "time", "service", "reason", "message"):
        statement = """
SELECT service, epoch_ns(time) AS stamp, reason, message FROM kubernetes_events
WHERE time IS NOT NULL ORDER BY time, service LIMIT 500"""
        found += [
            Change(service, at, "event", f"{reason}: {message}", after=reason or "")
            for service, at, reason, message in store.query(statement).rows
        ]
    found.sort(key=lambda change: (change.at, change.service, change.kind, change.text))
    return found


_MARKS = (
    ("version", ("resource_service_version",)),
    ("instance", ("resource_k8s_pod_name", "resource_service_instance_id", "resource_process_pid")),
)


def _replaced(store: Store, schema: Schema, window: Window) -> list[Change]:
    """Versions and instances that first spoke after the window's first twentieth, in any of the tables."""
    found = []
    for kind, names in _MARKS:
        parts = []
        for table in schema.timed(("spans", "log_records", "metric_points")):
            column = schema.first(table, names)
            if column is not None:
                parts.append(
                    f"SELECT service, {column}::VARCHAR AS mark, min(epoch_ns(time)) AS first, max(epoch_ns(time)) "
                    f"AS last FROM {table} WHERE time IS NOT NULL AND {column} IS NOT NULL GROUP BY ALL"
                )
        if not parts:
            continue
        statement = f"""
SELECT service, mark, min(first) AS first, max(last) AS last FROM ({" UNION ALL ".join(parts)})
GROUP BY ALL ORDER BY first, service, mark LIMIT 2000"""
        known: dict[str, str] = {}
        for service, mark, first, _ in store.query(statement).rows:
            before = known.get(service, "")
            known[service] = mark
            if before and first is not None and first > window.at(BUCKETS / 20):
                found.append(Change(service, first, kind, f"{kind} {before} became {mark}", before, mark))
    return found
