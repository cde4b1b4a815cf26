"""Calls between services, read from spans: who got slow or fails by itself, and who only waits for others.

Rules:
- Time and errors are charged where they arise. A span's own time is its duration less that of its children. An error
  counts for the span that has no failing child.
- A call that nobody answered with a span (a database, a dead process) is charged to the one that was called. A call
  that was answered in the usual time, but failed for the caller, is charged to the caller: it gave up too early.
  One that was answered late is charged to neither: the delay has its own place further down.
- Slow means more than twice the 95th percentile of the same operation in the window's first quarter.
- If only one of several callers has trouble with a called one, or the called one appeared with the trouble, then the
  caller is charged: it calls the wrong thing, or calls it in a wrong way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hyve.rules.schema import Schema, Store
from hyve.rules.timeline import BASE, BUCKETS, Episode, Window, quote, scan

SERVED = ("server", "consumer")


class Counts:
    """Events of each bucket: all, and the bad ones of them."""

    def __init__(self) -> None:
        self.total = [0] * BUCKETS
        self.bad = [0] * BUCKETS

    def add(self, bucket: int, total: int, bad: int) -> None:
        self.total[bucket] += total
        self.bad[bucket] += bad

    def merge(self, other: Counts) -> None:
        for bucket in range(BUCKETS):
            self.add(bucket, other.total[bucket], other.bad[bucket])


@dataclass
class Calls:
    """`own[entity]`: what it does by itself; `sent[(caller, called)]`: calls, bad where unanswered and failed or
    slow; `cut[(caller, called)]`: calls that the caller gave up although they were answered as usual;
    `felt[service]`: requests that failed or were slow for whatever reason."""

    own: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    sent: dict[tuple[str, str], Counts] = field(default_factory=lambda: defaultdict(Counts))
    cut: dict[tuple[str, str], Counts] = field(default_factory=lambda: defaultdict(Counts))
    felt: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))

    def callees(self, entity: str) -> set[str]:
        """Whom an entity calls, directly or through others (itself not included)."""
        found: set[str] = set()
        ahead = [entity]
        while ahead:
            here = ahead.pop()
            for caller, called in self.sent:
                if caller == here and called not in found:
                    found.add(called)
                    ahead.append(called)
        found.discard(entity)
        return found


@dataclass(frozen=True)
class Suspect:
    """An entity that went bad by itself. `how` is "own", "called" (its callers see it) or "caller" (it is charged
    for calls of its own to `about`)."""

    entity: str
    how: str
    episode: Episode
    about: str = ""


STEM = "split_part(split_part(peer_service, ':', 1), '.', 1)"
"""The SQL of the first label of a called host name: `a` of `a.namespace.svc.cluster.local:8080`."""


def called_sql(schema: Schema, entity: str, services: list[str]) -> str:
    """The SQL condition that a span calls an entity, by its service name or by a host name that starts with it."""
    if not schema.has("spans", "peer_service"):
        return "false"
    if entity in services and entity.isprintable() and not {".", ":"} & set(entity):
        return f"{STEM} = {quote(entity)}"
    return f"peer_service = {quote(entity)}"


def read(store: Store, schema: Schema, window: Window) -> Calls:
    """Counts of all calls, or empty ones where there are no usable spans."""
    calls = Calls()
    if not schema.has("spans", "time", "service", "duration_ms"):
        return calls
    column = schema.column
    names = " UNION ".join(
        f"SELECT service FROM {table} WHERE service IS NOT NULL"
        for table in schema.timed(("spans", "log_records", "metric_points"))
    )
    peer = "NULL::VARCHAR"
    if schema.has("spans", "peer_service"):
        known = "(SELECT service FROM names)"
        peer = f"CASE WHEN peer_service NOT IN {known} AND {STEM} IN {known} THEN {STEM} ELSE peer_service END"
    statement = f"""
WITH names AS ({names}), s AS (
  SELECT {column("spans", "trace_id")} AS trace, {column("spans", "span_id")} AS span,
    {column("spans", "parent_span_id")} AS parent, service, {column("spans", "name")} AS name,
    coalesce({column("spans", "kind")} IN ('client', 'producer'), false) AS calling, {peer} AS peer,
    coalesce({column("spans", "status")} = 'error', false) AS failed, duration_ms AS ms, {window.bucket()} AS bucket
  FROM spans WHERE time IS NOT NULL AND duration_ms IS NOT NULL
), kids AS (
  SELECT trace, parent AS span, sum(ms) AS ms, bool_or(failed) AS failed, min(service) AS service
  FROM s WHERE parent IS NOT NULL GROUP BY trace, parent
), own AS (
  SELECT s.service AS caller, s.calling, s.name, s.bucket, s.ms AS whole, s.failed,
    kids.span IS NOT NULL AS answered, kids.ms AS kids_ms,
    CASE WHEN s.calling THEN coalesce(kids.service, s.peer, s.service) ELSE s.service END AS entity,
    s.failed AND NOT coalesce(kids.failed, false) AS broke, greatest(0, s.ms - coalesce(kids.ms, 0)) AS ms
  FROM s LEFT JOIN kids ON kids.trace = s.trace AND kids.span = s.span
), usual AS (
  SELECT caller, calling, entity, name, quantile_cont(ms, 0.95) FILTER (NOT calling OR NOT answered) AS ms,
    quantile_cont(whole, 0.95) AS whole, quantile_cont(kids_ms, 0.95) AS kids_ms, count(*) AS n
  FROM own WHERE bucket < {BASE} AND NOT failed GROUP BY ALL HAVING count(*) >= 8
), rough AS (
  SELECT calling, entity, quantile_cont(ms, 0.95) FILTER (NOT calling OR NOT answered) AS ms,
    quantile_cont(whole, 0.95) AS whole, quantile_cont(kids_ms, 0.95) AS kids_ms
  FROM own WHERE bucket < {BASE} AND NOT failed GROUP BY ALL
), judged AS (
  SELECT own.*, 2 * coalesce(usual.ms, rough.ms) + 5 AS limit_ms,
    2 * coalesce(usual.whole, rough.whole) + 5 AS limit_whole,
    1.5 * coalesce(usual.kids_ms, rough.kids_ms) + 5 AS limit_kids
  FROM own LEFT JOIN usual USING (caller, calling, entity, name) LEFT JOIN rough USING (calling, entity)
), counted AS (
SELECT calling, caller, entity, bucket, count(*) AS n,
  count(*) FILTER (WHERE NOT (calling AND answered) AND (broke OR coalesce(ms > limit_ms, false))) AS bad,
  count(*) FILTER (WHERE calling AND answered AND broke AND coalesce(kids_ms <= limit_kids, true)) AS cut,
  count(*) FILTER (WHERE failed OR coalesce(whole > limit_whole, false)) AS felt
FROM judged WHERE bucket BETWEEN 0 AND {BUCKETS - 1} GROUP BY ALL
)
SELECT calling, caller, entity, list([bucket, n, bad, cut, felt] ORDER BY bucket) AS counts
FROM counted GROUP BY ALL ORDER BY sum(n) DESC, caller, entity, calling LIMIT 5000"""
    for calls_out, caller, entity, counts in store.query(statement).rows:
        for bucket, total, bad, cut, felt in counts:
            if calls_out:
                calls.sent[caller, entity].add(bucket, total, bad)
                calls.cut[caller, entity].add(bucket, total, cut)
            else:
                calls.own[entity].add(bucket, total, bad)
                calls.felt[entity].add(bucket, total, felt)
    return calls


def suspects(calls: Calls) -> list[Suspect]:
    """All entities with an episode of their own, the strongest first; blips included."""
    found: list[Suspect] = []
    for entity, counts in calls.own.items():
        episode = scan(counts.total, counts.bad)
        if episode is not None:
            found.append(Suspect(entity, "own", episode))
    callers: dict[str, list[str]] = defaultdict(list)
    everything: dict[str, Counts] = defaultdict(Counts)
    for (caller, called), counts in calls.sent.items():
        everything[caller].merge(counts)
        if caller != called:
            callers[called].append(caller)
    for called, names in callers.items():
        merged = Counts()
        for name in names:
            merged.merge(calls.sent[name, called])
        if len(names) == 1 and _appeared(merged) >= BASE:
            # there is no "before" of its own to compare with: compare with all calls of its caller
            episode = scan(everything[names[0]].total, merged.bad)
            if episode is not None and _appeared(merged) >= episode.start - 1:
                found.append(Suspect(names[0], "caller", episode, called))
            continue
        episode = scan(merged.total, merged.bad)
        if episode is None:
            continue
        guilty = _wrong_caller(calls, called, names, episode)
        found.append(Suspect(guilty, "caller", episode, called) if guilty else Suspect(called, "called", episode))
    for (caller, called), counts in calls.cut.items():
        episode = scan(counts.total, counts.bad)
        if episode is not None:
            found.append(Suspect(caller, "caller", episode, called))
    found.sort(key=lambda suspect: (-suspect.episode.llr, suspect.entity, suspect.how))
    return found


def _appeared(counts: Counts) -> int:
    """The first bucket with a call."""
    return next((bucket for bucket in range(BUCKETS) if counts.total[bucket]), 0)


def _wrong_caller(calls: Calls, called: str, names: list[str], episode: Episode) -> str:
    """The one caller that is to blame for trouble with what it calls, or ""."""
    if len(names) == 1:
        return ""
    span = range(episode.start, episode.end)
    hurt = [name for name in names if sum(calls.sent[name, called].bad[b] for b in span) > 1]
    fine = [
        name
        for name in names
        if name not in hurt and sum(calls.sent[name, called].total[b] for b in span) * episode.during >= 5
    ]
    return hurt[0] if len(hurt) == 1 and fine else ""
