"""The analyst's findings as a diagnosis that an engineer on call can act on.

Rules: every claim is written from the rows of a statement that stands in the evidence; each statement is one plain
SELECT with literal values, few rows, and runs by hand with `hyve sql`. Summaries say what, since when, how it
spread and what changed before; next steps are concrete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause
from hyve.errors import SqlError
from hyve.rules import statements
from hyve.rules.calls import called_sql
from hyve.rules.logs import TEMPLATE, Change
from hyve.rules.schema import Store
from hyve.rules.timeline import clock, literal, quote, scan

if TYPE_CHECKING:
    from hyve.rules.analyst import Candidate, Findings

_ROWS = 20
_TROUBLE = (
    "(?i)(^|[^a-z])(error|err|fatal|critical|exception|panic|fail(ed|ure|s)?|traceback|refused|timed? ?out)([^a-z]|$)"
)


class _Case:
    """Statements that were run, and the claims made from them. Only what a claim cites becomes evidence, numbered in
    the order of the claims."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.evidence: list[Evidence] = []
        self.claims: list[Claim] = []

    def run(self, statement: str) -> tuple[Evidence | None, list[dict[str, Any]]]:
        """Runs a statement; what came back, and its rows by column. One that fails gives None and no rows, and a
        claim that rests on it is not made."""
        try:
            result = self.store.query(statement)
        except SqlError:
            return None, []
        rows = result.rows[:_ROWS]
        proof = Evidence("", statement, result.columns, rows, result.total_rows)
        return proof, [dict(zip(result.columns, row, strict=True)) for row in rows]

    def claim(self, text: str, *proofs: Evidence | None) -> tuple[str, ...]:
        """Makes a claim; the ids of its evidence."""
        if not proofs or any(proof is None or not proof.rows for proof in proofs):
            return ()
        ids = tuple(self._cite(proof) for proof in proofs if proof is not None)
        self.claims.append(Claim(text, ids))
        return ids

    def _cite(self, proof: Evidence) -> str:
        known = next((evidence.id for evidence in self.evidence if evidence.sql == proof.sql), None)
        if known is None:
            known = f"E{len(self.evidence) + 1}"
            self.evidence.append(replace(proof, id=known))
        return known


def nothing_to_read(store: Store, tables: Sequence[str]) -> Diagnosis:
    """The answer where no table holds telemetry with times."""
    names = ", ".join(f"{table.name} ({table.rows} rows)" for table in store.catalog.tables[:20]) or "none"
    if tables:
        why = f"The rows of {', '.join(tables)} span less than ten seconds, so there is no before and after."
    else:
        why = "There are no spans, log records or metric points with times and services to compare."
    case = _Case(store)
    for table in store.catalog.tables:
        if {"line", "text", "template"} <= {column.name for column in table.columns}:
            _log_lines(case, '"' + table.name.replace('"', '""') + '"')
    said = " ".join(claim.text for claim in case.claims)
    return Diagnosis(
        status="inconclusive",
        summary=f"{why} {said} Tables: {names}." if said else f"{why} Tables: {names}.",
        claims=tuple(case.claims),
        evidence=tuple(case.evidence),
        next_steps=("Add telemetry (OTLP logs, metrics or traces) from some minutes before the trouble to now.",),
    )


def _log_lines(case: _Case, table: str) -> None:
    """Says which lines of a plain log speak of trouble, and which are alone of their kind."""
    trouble = f"""SELECT template, count(*) AS lines, min(line) AS first_line, max(line) AS last_line,
  left(min(text), 200) AS example
FROM {table} WHERE regexp_matches(text, '{_TROUBLE}')
GROUP BY template ORDER BY lines, first_line LIMIT 10"""
    proof, rows = case.run(trouble)
    if rows:
        shown = min(rows, key=lambda row: (row["lines"], row["first_line"]))
        total = f"SELECT count(*) AS lines FROM {table} WHERE regexp_matches(text, '{_TROUBLE}')"
        counted, sums = case.run(total)
        number = sums[0]["lines"] if sums else sum(row["lines"] for row in rows)
        lines = "line speaks" if number == 1 else "lines speak"
        case.claim(
            f"{number} {lines} of errors; the rarest kind, from line {shown['first_line']} on: “{shown['example']}”.",
            counted,
            proof,
        )


def conclusive(store: Store, found: Findings, candidates: list[Candidate]) -> Diagnosis:
    """The diagnosis that names the first candidate."""
    case, top = _Case(store), candidates[0]
    onset = found.window.at(top.start)
    what = _trouble(case, found, top, onset)
    spread = _spread(case, found, top, onset)
    _errors(case, found, top, onset)
    _saturation(case, found, top)
    _restarts(case, found, top)
    trigger = _trigger(case, found, top, onset)
    _ruled_out(case, found, top, onset)
    over = found.window.at(top.end) < found.window.end - 3 * found.window.width
    # From logs alone, a service that fails and one that only calls it look alike (measured: a third wrong).
    told = top.suspect is not None or found.schema.has("metric_points")
    parts = [f"{top.entity} is the {'likely cause' if told else 'first suspect'}: {what}."]
    if spread:
        parts.append(f"It spreads to {_list(spread)}, which only wait for it.")
    if top.saturated is not None:
        shift = top.saturated
        parts.append(f"{shift.name} reached {_figure(shift.peak)} of {_figure(shift.limit or 0)}.")
    if top.restarted is not None:
        parts.append(f"Its restarts rose from {_figure(top.restarted.usual)} to {_figure(top.restarted.peak)}.")
    if trigger is not None:
        when = _when(trigger.at, onset, found.window.width)
        parts.append(f"Its nearest change, {when} at {clock(trigger.at)}: {_short(trigger.text)}.")
    else:
        parts.append("No change of it is visible just before.")
    if top.suspect is None:
        parts.append("There are no spans, so who only waits for whom can't be seen: take this with care.")
    if over:
        parts.append(f"The trouble seems to be over since {clock(found.window.at(top.end))}.")
    causes = []
    ids = tuple(dict.fromkeys(name for claim in case.claims[:4] for name in claim.evidence))
    causes.append(RootCause(top.entity, what, top.confidence, ids))
    for other in candidates[1:3]:
        if other.score >= 0.5 * top.score:
            name, _ = case.run(statements.timeline_sql(found, other))
            text = f"{other.entity} also went bad at about {clock(found.window.at(other.start))}"
            proof = case.claim(f"{text}, but explains less.", name)
            causes.append(RootCause(other.entity, text, other.confidence, proof))
    return Diagnosis(
        status="conclusive" if told else "inconclusive",
        summary=" ".join(parts),
        root_causes=tuple(causes),
        claims=tuple(case.claims),
        evidence=tuple(case.evidence),
        next_steps=_next_steps(found, top, trigger, onset),
    )


def inconclusive(store: Store, found: Findings, candidates: list[Candidate]) -> Diagnosis:
    """The answer where nothing that lasts stands out."""
    case = _Case(store)
    middle = (found.window.start + found.window.end) // 2
    parts = ["Nothing that lasts stands out in this window."]
    steps = ["Look again with data from a longer time before the alert."]
    if candidates:
        top = candidates[0]
        name, _ = case.run(statements.timeline_sql(found, top))
        text = f"{top.entity} changed at about {clock(found.window.at(top.start))}, but too little to blame it"
        case.claim(f"{text} (confidence {top.confidence:.2f}).", name)
        parts.append(f"{text}.")
        steps.insert(0, f"Watch {top.entity}; if it gets worse, ask again with newer data.")
    blips = [
        suspect
        for suspect in found.suspects
        if not suspect.episode.lasting and suspect.episode.llr >= 5 and suspect.episode.end - suspect.episode.start <= 8
    ]
    for blip in blips[: 1 if not candidates else 0]:
        begin, end = found.window.at(blip.episode.start), found.window.at(blip.episode.end)
        name, rows = case.run(statements.around_sql(found, blip.entity, begin, end))
        text = (
            f"{blip.entity} had a short blip from {clock(begin)} to {clock(end)} ({blip.episode.bad} bad requests) "
            f"and was as usual afterwards"
        )
        case.claim(f"{text}.", name)
        parts.append(f"{text}; an alert at that time was on this.")
        steps.insert(0, f"Nothing to do now; if {blip.entity} blips again, look at its own log at {clock(begin)}.")
    if found.schema.has("spans", "service", "duration_ms", "status"):
        name, rows = case.run(statements.compare_sql(found, middle))
        worst = next((row for row in rows if row["error_pct_since"] is not None and row["requests_since"] >= 20), None)
        if worst is not None:
            case.claim(
                f"Most errors in the second half of the window: {worst['service']}, "
                f"{worst['error_pct_since']}% of its {worst['requests_since']} requests (first half: "
                f"{'no requests' if worst['error_pct_before'] is None else str(worst['error_pct_before']) + '%'}).",
                name,
            )
    missing = [name for name in ("spans", "log_records", "metric_points") if not found.schema.has(name)]
    if missing:
        parts.append(f"There is no data in {_list(missing)}.")
        steps.append(f"Add {_list(missing)} of the same time.")
    return Diagnosis(
        status="inconclusive",
        summary=" ".join(parts),
        claims=tuple(case.claims),
        evidence=tuple(case.evidence),
        next_steps=tuple(steps),
    )


def _trouble(case: _Case, found: Findings, top: Candidate, onset: int) -> str:
    """What went wrong at the candidate, as a clause; claims it."""
    suspect = top.suspect
    name, rows = case.run(statements.timeline_sql(found, top))
    if suspect is None:
        what = f"its log or gauges changed at about {clock(onset)} and stayed so"
        case.claim(f"At {top.entity} {what}.", name)
        return what
    share, proof = _share(case, found, top, onset)
    if suspect.how == "own":
        what = f"since {clock(onset)} {share} of its requests fail or get slow inside of it"
        case.claim(f"{top.entity}: {what}, not counting what it waits for.", *proof, name)
        extra, rows = case.run(statements.own_time_sql(onset))
        mine = next((row for row in rows if row["service"] == top.entity), None)
        if mine is not None and (mine["own_p95_since"] or 0) > 1.5 * (mine["own_p95_before"] or 0) > 0:
            most = ", the largest rise of all services" if mine is rows[0] and len(rows) > 1 else ""
            case.claim(
                f"The time that {top.entity} itself takes (p95, without its calls) went from "
                f"{mine['own_p95_before']} to {mine['own_p95_since']} ms{most}.",
                extra,
            )
    elif suspect.how == "called":
        what = f"since {clock(onset)} {share} of the calls to it fail or get slow, with no answer of a service below"
        case.claim(f"{top.entity}: {what}.", *proof, name)
    else:
        what = f"since {clock(onset)} {share} of its calls to {suspect.about} fail, and the fault is on its own side"
        case.claim(f"{top.entity}: {what}: {_why_caller(found, suspect.about)}.", *proof, name)
    return what


def _share(case: _Case, found: Findings, top: Candidate, onset: int) -> tuple[str, list[Evidence | None]]:
    """The share of bad requests since the onset and before, and the evidence that shows just these figures."""
    suspect = top.suspect
    assert suspect is not None
    if found.schema.has("spans", "trace_id", "span_id", "parent_span_id", "kind", "status", "duration_ms"):
        name, rows = case.run(statements.share_sql(found, top, onset))
        if rows and rows[0]["bad_pct_since"] is not None:
            before = rows[0]["bad_pct_before"]
            told = "none were seen before" if before is None else f"before: {before}%"
            return f"{rows[0]['bad_pct_since']}% ({told})", [name]
    episode = suspect.episode
    return f"about {100 * episode.during:.0f}% (before: {100 * episode.before:.1f}%)", []


def _why_caller(found: Findings, called: str) -> str:
    callers = sorted({caller for caller, other in found.calls.sent if other == called})
    if called not in found.services and len(callers) == 1:
        return f"{called} was never called before"
    return f"{called} answers in its usual time and serves others well"


def _spread(case: _Case, found: Findings, top: Candidate, onset: int) -> list[str]:
    """Services above the candidate that feel it, in the order in which they did; claims it."""
    if top.suspect is None:
        return []
    felt = []
    for service, counts in found.calls.felt.items():
        if service != top.entity and top.entity in found.calls.callees(service):
            episode = scan(counts.total, counts.bad)
            if episode is not None and episode.llr >= 5 and episode.end > top.start:
                felt.append((episode.start, service))
    victims = [service for _, service in sorted(felt)]
    name, rows = case.run(statements.compare_sql(found, onset))
    if victims:
        hurt = {row["service"]: row for row in rows}
        figures = [
            f"{service} (errors {hurt[service]['error_pct_before']}% to {hurt[service]['error_pct_since']}%, "
            f"p95 {hurt[service]['p95_ms_before']} to {hurt[service]['p95_ms_since']} ms)"
            for service in victims[:4]
            if service in hurt
        ]
        if figures:
            case.claim(f"Its callers suffer: {'; '.join(figures)}.", name)
    if found.schema.has("spans", "peer_service", "kind", "status"):
        called = called_sql(found.schema, top.entity, found.services)
        edge, rows = case.run(
            f"""SELECT service AS caller, count(*) FILTER (WHERE time < {literal(onset)}) AS calls_before,
  count(*) FILTER (WHERE time >= {literal(onset)}) AS calls_since,
  count(*) FILTER (WHERE time < {literal(onset)} AND status = 'error') AS errors_before,
  count(*) FILTER (WHERE time >= {literal(onset)} AND status = 'error') AS errors_since,
  round(quantile_cont(duration_ms, 0.95) FILTER (WHERE time < {literal(onset)}), 1) AS p95_ms_before,
  round(quantile_cont(duration_ms, 0.95) FILTER (WHERE time >= {literal(onset)}), 1) AS p95_ms_since
FROM spans WHERE kind IN ('client', 'producer') AND {called}
GROUP BY service ORDER BY errors_since DESC, service LIMIT 10"""
        )
        if rows:
            callers = [row["caller"] for row in rows]
            case.claim(f"{top.entity} is called by {_list(callers)}.", edge)
    return victims[:5]


def _errors(case: _Case, found: Findings, top: Candidate, onset: int) -> None:
    if top.suspect is not None and found.schema.has("spans", "status", "status_message"):
        where = f"service = {quote(top.entity)}"
        if top.suspect.how == "called":
            where = f"({where} OR {called_sql(found.schema, top.entity, found.services)})"
        name, rows = case.run(
            f"""SELECT regexp_replace(status_message, '[0-9]+', '#', 'g') AS message, count(*) AS spans,
  min(time) AS first_seen, max(time) AS last_seen
FROM spans WHERE {where} AND status = 'error' AND time >= {literal(onset)}
GROUP BY message ORDER BY spans DESC, message LIMIT 5"""
        )
        if rows and rows[0]["message"] and rows[0]["spans"] >= 3:
            case.claim(f"Its most frequent error: “{_short(rows[0]['message'])}” ({rows[0]['spans']} spans).", name)
    fresh = sorted(top.templates, key=lambda t: (not t.serious, -t.after, t.text))[:1]
    for template in fresh:
        name, rows = case.run(
            f"""SELECT severity, left({TEMPLATE}, 200) AS template,
  count(*) FILTER (WHERE time < {literal(onset)}) AS lines_before,
  count(*) FILTER (WHERE time >= {literal(onset)}) AS lines_since, min(time) AS first_seen,
  left(min(body), 300) AS example
FROM log_records WHERE service = {quote(top.entity)} AND {statements.like(template.text)}
GROUP BY ALL ORDER BY lines_since DESC LIMIT 5"""
        )
        if rows:
            row = rows[0]
            case.claim(
                f"New in its log: “{_short(row['example'])}” ({row['lines_since']} lines since "
                f"{clock(onset)}, {row['lines_before']} before).",
                name,
            )


def _saturation(case: _Case, found: Findings, top: Candidate) -> None:
    moved = [shift for shift in top.shifts if not shift.restarts]
    if not moved:
        return
    shift = top.saturated or max(moved, key=lambda s: (s.peak / max(s.usual, 0.05 * s.peak, 1e-9), s.name))
    name, _ = case.run(statements.gauge_sql(found, top.entity, [shift.name]))
    since = clock(found.window.at(shift.since))
    if shift.limit is None:
        case.claim(
            f"{shift.name} of {top.entity} left its range at {since}: usually about {_figure(shift.usual)}, "
            f"up to {_figure(shift.peak)} {shift.unit}.",
            name,
        )
    else:
        of = f"{shift.limit_name} = {_figure(shift.limit)}" if shift.limit_name != "1" else "its full share"
        case.claim(
            f"{shift.name} of {top.entity} reached its limit from {since} on: usually about {_figure(shift.usual)}, "
            f"up to {_figure(shift.peak)} of {of}.",
            name,
        )


def _restarts(case: _Case, found: Findings, top: Candidate) -> None:
    shift = top.restarted
    if shift is not None:
        name, _ = case.run(statements.gauge_sql(found, top.entity, [shift.name]))
        text = f"{shift.name} of {top.entity} rose from {_figure(shift.usual)} to {_figure(shift.peak)}."
        case.claim(text, name)


def _trigger(case: _Case, found: Findings, top: Candidate, onset: int) -> Change | None:
    """The change that best explains the onset: versions first, then what the log says; claims it."""
    if not top.changes:
        return None
    order = {"version": 0, "event": 1, "log": 2, "instance": 3}
    width = found.window.width
    change = min(top.changes, key=lambda c: (c.at > onset + width, order[c.kind], abs(c.at - onset), c.text))
    when = _when(change.at, onset, width)
    if change.kind == "version":
        name, _ = case.run(statements.mark_sql(found, top.entity, ("resource_service_version",)))
        case.claim(
            f"{top.entity} changed its version from {change.before} to {change.after} at {clock(change.at)}, {when}.",
            name,
        )
    elif change.kind == "event":
        name, _ = case.run(
            f"SELECT time, reason, message FROM kubernetes_events WHERE service = {quote(top.entity)} "
            "ORDER BY time LIMIT 20"
        )
        case.claim(f"Kubernetes reported for {top.entity}: {_short(change.text)}.", name)
    elif change.kind == "log":
        begin, end = change.at - 30_000_000_000, change.at + 30_000_000_000
        name, _ = case.run(
            f"""SELECT time, severity, body FROM log_records WHERE service = {quote(top.entity)}
  AND time BETWEEN {literal(begin)} AND {literal(end)}
  AND regexp_matches(body, {quote(_pattern(change.text))}) ORDER BY time LIMIT 10"""
        )
        case.claim(
            f"The log of {top.entity} says at {clock(change.at)}, {when}: “{_short(change.text)}”.",
            name,
        )
    else:
        marks = ("resource_k8s_pod_name", "resource_service_instance_id", "resource_process_pid")
        name, _ = case.run(statements.mark_sql(found, top.entity, marks))
        case.claim(f"{top.entity} got a new instance at {clock(change.at)}: {change.after}.", name)
    return change


def _ruled_out(case: _Case, found: Findings, top: Candidate, onset: int) -> None:
    """Loud or changed services that are not the cause, so that nobody runs after them."""
    loud = [
        t
        for t in found.templates
        if t.service != top.entity and t.serious and t.before >= 20 and 0.5 <= t.growth <= 2.0
    ]
    if loud:
        template = loud[0]
        name, rows = case.run(
            f"""SELECT count(*) FILTER (WHERE time < {literal(onset)}) AS lines_before,
  count(*) FILTER (WHERE time >= {literal(onset)}) AS lines_since
FROM log_records WHERE service = {quote(template.service)} AND {statements.like(template.text)}"""
        )
        case.claim(
            f"Not the cause: {template.service} writes “{_short(template.sample)}” all the time "
            f"({rows[0]['lines_before']} lines before, {rows[0]['lines_since']} since).",
            name,
        )
    for change in found.changes:
        near = abs(change.at - onset) <= 10 * found.window.width
        if change.kind == "version" and change.service != top.entity and near:
            bad = any(s.entity == change.service and s.episode.lasting for s in found.suspects)
            if not bad and found.schema.has("spans"):
                name, _ = case.run(statements.mark_sql(found, change.service, ("resource_service_version",)))
                case.claim(
                    f"Not the cause: {change.service} went from version {change.before} to {change.after} at "
                    f"{clock(change.at)}, but does its own work as before.",
                    name,
                )
                return


def _next_steps(found: Findings, top: Candidate, trigger: Change | None, onset: int) -> tuple[str, ...]:
    steps = []
    if trigger is not None and trigger.kind == "version":
        steps.append(f"Roll {top.entity} back from {trigger.after} to {trigger.before}, or stop its rollout.")
    elif trigger is not None and trigger.kind == "log" and trigger.at <= onset + found.window.width:
        steps.append(f"Undo or check what {top.entity} logged at {clock(trigger.at)}: {_short(trigger.text)}.")
    if top.saturated is not None:
        shift = top.saturated
        steps.append(f"Find what holds {shift.name} of {top.entity} at its limit; raise the limit only as a stopgap.")
    if top.restarted is not None:
        steps.append(f"Read why the containers of {top.entity} ended (last state and exit code) and their memory.")
    suspect = top.suspect
    if suspect is not None and suspect.how == "called" and top.entity not in found.services:
        steps.append(f"{top.entity} sends no telemetry of its own: look at it directly from {clock(onset)} on.")
    elif suspect is not None and suspect.how == "caller":
        steps.append(f"Compare how {top.entity} reaches {suspect.about} (host, timeout, credentials) with before.")
    steps.append(f"Read the log of {top.entity} from {clock(onset - 120_000_000_000)} on.")
    return tuple(steps)


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 140 else line[:139] + "…"


def _figure(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _when(at: int, onset: int, width: int) -> str:
    """How a change lies to the onset, which is known to one bucket."""
    seconds = (onset - at) // 1_000_000_000
    if abs(onset - at) <= width or 0 <= at - onset <= 2 * width:
        return "at the onset"
    return f"{seconds} s before the onset" if seconds >= 0 else f"{-seconds} s after the onset"


def _pattern(text: str) -> str:
    """A regular expression of a line's first words, without what may differ from line to line."""
    words = [word for word in text.split()[:3] if word.isalpha()]
    return words[0] if words else "."
