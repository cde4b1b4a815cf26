"""Who is to blame: puts the readings of calls, gauges, logs and changes together, and scores the candidates.

Rules:
- With spans, only an entity that went bad by itself can be the cause; gauges, logs and changes strengthen it.
  Without spans, gauges and logs must do, and the confidence is lower.
- Where a candidate calls another candidate that went bad no later, the called one is the better explanation.
- An entity that the alert's service never calls explains the alert badly.
- Trouble that is short against a long window is looked at in a narrower one before it counts as a blip.
- The order of rows and the names of services make no difference.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hyve.diagnosis import Diagnosis
from hyve.errors import SqlError
from hyve.rules import calls as calling
from hyve.rules import logs, report, resources
from hyve.rules.calls import Calls, Suspect
from hyve.rules.logs import Change, Template
from hyve.rules.resources import Shift
from hyve.rules.schema import Schema, Store
from hyve.rules.timeline import BUCKETS, Window

T = TypeVar("T")
TABLES = ("spans", "log_records", "metric_points")
_CLEAR_LLR, _LEAST_LLR = 8.0, 5.0  # trouble below the first needs support, below the second it is noise
_CONCLUSIVE = 0.55
_FINE = 30_000_000_000  # a bucket's width, in ns, at which there is no need to look closer
_BEFORE, _AFTER = 20, 3  # buckets around the onset in which a change may be the trigger


@dataclass
class Candidate:
    """One entity that may be the cause. `score` ranks; `start` and `end` are the buckets of its trouble."""

    entity: str
    score: float
    start: int
    end: int
    suspect: Suspect | None = None
    shifts: list[Shift] = field(default_factory=list)
    templates: list[Template] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    confidence: float = 0.0

    @property
    def saturated(self) -> Shift | None:
        return next((shift for shift in self.shifts if shift.limit is not None), None)

    @property
    def supported(self) -> bool:
        """Whether the candidate's own gauges, restarts or error lines speak for it."""
        return bool(self.saturated or self.restarted or any(template.serious for template in self.templates))

    @property
    def restarted(self) -> Shift | None:
        return next((shift for shift in self.shifts if shift.restarts), None)


@dataclass(frozen=True)
class Findings:
    """Everything that was read, for the report."""

    window: Window
    schema: Schema
    services: list[str]
    focus: list[str]
    calls: Calls
    suspects: list[Suspect]
    shifts: list[Shift]
    templates: list[Template]
    changes: list[Change]


def analyse(store: Store, question: str = "", focus: Sequence[str] = ()) -> Diagnosis:
    """A diagnosis of what the store holds. `focus` are the entities that the alert names; without it, those of the
    `alerts` table and the services that the question names."""
    schema = Schema(store)
    tables = schema.timed(TABLES)
    window = _window(store, tables)
    if window is None:
        return report.nothing_to_read(store, tables)
    services = _services(store, tables)
    notes = [f"The rules could not use {column}: it does not hold what its name says." for column in schema.unfit]

    def read_or(default: T, what: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except SqlError as error:  # a table of the same name with other types, or too much data for the time limit
            notes.append(f"The rules could not read {what}: {error}")
            return default

    def read_calls(window: Window) -> Calls:
        return read_or(Calls(), "calls from spans", lambda: calling.read(store, schema, window))

    suspects = calling.suspects(calls := read_calls(window))
    while (closer := _closer(window, suspects)) is not None:
        window = closer
        suspects = calling.suspects(calls := read_calls(window))
    seen = window
    found = Findings(
        window=seen,
        schema=schema,
        services=services,
        focus=_focus(store, schema, services, calls, question, focus),
        calls=calls,
        suspects=suspects,
        shifts=read_or([], "metric points", lambda: resources.read(store, schema, seen)),
        templates=read_or([], "log records", lambda: logs.templates(store, schema, seen)),
        changes=read_or([], "changes", lambda: logs.changes(store, schema, seen)),
    )
    traced = bool(calls.own or calls.sent)
    candidates = _from_calls(found) if traced else _from_signals(found)
    _support(found, candidates, traced)
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.start, candidate.entity))
    _weigh(candidates, 0.97 if traced else 0.7 if schema.has("metric_points") else 0.6)
    sure = bool(candidates) and candidates[0].confidence >= _CONCLUSIVE
    write = report.conclusive if sure else report.inconclusive
    return replace(write(store, found, candidates), notes=tuple(notes))


def _window(store: Store, tables: list[str]) -> Window | None:
    """The time that nearly all rows fall in; a few rows with a wrong clock don't stretch it."""
    if not tables:
        return None
    times = " UNION ALL ".join(f"SELECT epoch_ns(time) AS t FROM {table} WHERE time IS NOT NULL" for table in tables)
    statement = f"""
WITH times AS ({times}), middle AS (
  SELECT quantile_disc(t, 0.05) AS low, quantile_disc(t, 0.95) AS high FROM times
)
SELECT min(t) AS first, max(t) AS last, count(*) AS n FROM times, middle
WHERE t BETWEEN low - (high - low) AND high + (high - low)"""
    first, last, rows = store.query(statement).rows[0]
    if not rows or first is None or last - first < 10_000_000_000:
        return None
    return Window(first, last)


def _closer(window: Window, suspects: list[Suspect]) -> Window | None:
    """A narrower window about trouble that is too short to be seen in this one, as in a day's data."""
    strong = [suspect.episode for suspect in suspects if suspect.episode.llr >= _CLEAR_LLR]
    if window.width <= _FINE or not strong or any(episode.lasting for episode in strong):
        return None
    first, last = strong[0].start - BUCKETS // 6, strong[0].end + BUCKETS // 10
    closer = Window(max(window.start, window.at(first)), min(window.end, window.at(last)))
    return closer if closer.width < window.width else None


def _services(store: Store, tables: list[str]) -> list[str]:
    names = " UNION ".join(f"SELECT service FROM {table} WHERE service IS NOT NULL" for table in tables)
    return [name for (name,) in store.query(f"{names} ORDER BY service LIMIT 5000").rows if name]


def _focus(
    store: Store, schema: Schema, services: list[str], calls: Calls, question: str, given: Sequence[str]
) -> list[str]:
    known = {*services, *(called for _, called in calls.sent)}
    names = list(given)
    if not names and schema.has("alerts", "service"):
        names = [name for (name,) in store.query("SELECT DISTINCT service FROM alerts ORDER BY 1 LIMIT 100").rows]
    if not names:
        names = sorted(name for name in known if len(name) > 2 and _mentions(question, name))
    return [name for name in dict.fromkeys(names) if name in known]


def _mentions(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _from_calls(found: Findings) -> list[Candidate]:
    strongest: dict[str, Suspect] = {}
    for suspect in found.suspects:
        if suspect.episode.lasting and suspect.episode.llr >= _LEAST_LLR and suspect.entity != "unknown":
            strongest.setdefault(suspect.entity, suspect)
    result = []
    for entity, suspect in strongest.items():
        episode = suspect.episode
        score = episode.llr
        for callee in found.calls.callees(entity):
            below = strongest.get(callee)
            if (
                below is not None
                and entity not in found.calls.callees(callee)
                and below.episode.llr >= 0.35 * episode.llr
                and below.episode.start <= episode.start + 4
            ):
                score = episode.llr * 0.4
                break
        result.append(Candidate(entity, score, episode.start, episode.end, suspect))
    reached = set(found.focus)
    for name in found.focus:
        reached |= found.calls.callees(name)
    for candidate in result:
        if reached and candidate.entity not in reached:
            candidate.score *= 0.5
    return result


def _from_signals(found: Findings) -> list[Candidate]:
    """Candidates where there are no spans: what gauges and log lines say."""
    points: dict[str, float] = defaultdict(float)
    since: dict[str, int] = {}
    blamed: dict[str, set[str]] = defaultdict(set)

    def add(entity: str, value: float, bucket: int) -> None:
        points[entity] += value
        since[entity] = min(since.get(entity, BUCKETS), bucket)

    for service in found.services:
        own = [shift for shift in found.shifts if shift.service == service]
        for kind, value in ((True, 30.0), (False, 25.0)):
            hits = [s for s in own if (s.restarts if kind else s.limit is not None)]
            if hits:
                add(service, value, min(shift.since for shift in hits))
        if own and service not in points:
            add(service, 5.0, min(shift.since for shift in own))
        for template in found.templates:
            if template.service != service or not template.new:
                continue
            others = [name for name in found.services if name != service and _mentions(template.sample, name)]
            weight = {"FATAL": 1.0, "ERROR": 1.0, "WARN": 0.6}.get(template.severity, 0.35)
            value = weight * min(25.0, 3.0 * math.log2(1 + template.after))
            if others and template.serious:
                blamed[service].update(others)
                for name in others:
                    add(name, value * 0.3, template.since)
            else:
                add(service, value, template.since)
    result = []
    for entity, score in points.items():
        explained = any(points.get(name, 0.0) >= 0.5 * score for name in blamed[entity])
        result.append(Candidate(entity, score * (0.5 if explained else 1.0), since[entity], BUCKETS))
    return result


def _support(found: Findings, candidates: list[Candidate], traced: bool) -> None:
    """What else speaks for a candidate: shifts and new lines about its onset, and changes just before it."""
    for candidate in candidates:
        first = candidate.start - _BEFORE
        candidate.shifts = [
            shift
            for shift in found.shifts
            if shift.service == candidate.entity and (shift.restarts or shift.since >= first)
        ]
        candidate.templates = [
            template
            for template in found.templates
            if template.service == candidate.entity and template.new and template.since >= candidate.start - 6
        ]
        onset = found.window.at(candidate.start)
        candidate.changes = [
            change
            for change in found.changes
            if change.service == candidate.entity
            and onset - _BEFORE * found.window.width <= change.at <= onset + _AFTER * found.window.width
        ]
        if traced:
            candidate.score *= 1.3 if candidate.saturated else 1.0
            candidate.score *= 1.3 if candidate.restarted else 1.0
            candidate.score *= 1.15 if any(template.serious for template in candidate.templates) else 1.0
        candidate.score *= 1.25 if candidate.changes else 1.0


def _weigh(candidates: list[Candidate], most: float) -> None:
    """Confidence of each: how strong its trouble is, how far ahead of the next one, what else speaks for it. `most`
    is the highest that the kind of data allows."""
    for index, candidate in enumerate(candidates):
        rival = candidates[1 - min(index, 1)].score if len(candidates) > 1 else 0.0
        margin = max(0.0, 1.0 - rival / candidate.score) if candidate.score > 0 else 0.0
        strength = candidate.suspect.episode.llr / 20 if candidate.suspect else candidate.score / 30
        confidence = (
            (0.32 if candidate.suspect else 0.25) + 0.33 * (1 - math.exp(-strength)) + 0.18 * min(1.0, 1.5 * margin)
        )
        confidence += 0.06 if candidate.saturated else 0.0
        confidence += 0.06 if candidate.restarted else 0.0
        confidence += 0.06 if candidate.changes else 0.0
        confidence += 0.04 if candidate.templates else 0.0
        if candidate.suspect and candidate.suspect.episode.llr < _CLEAR_LLR and not candidate.supported:
            confidence = min(confidence, 0.5)
        candidate.confidence = round(min(most if index == 0 else 0.5, confidence), 2)
