"""The rules analyst on generated incidents: one outcome for a scenario and a seed, and the table of many.

Right means that the first root cause is the faulty service; for an incident without a fault, that the diagnosis is
inconclusive. Wrong means that another service is named first, whatever the confidence.
"""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from hyve.diagnosis import Diagnosis
from hyve.formats import Relations, relations
from hyve.rules import analyse
from streams.incident import SCENARIOS, Incident, generate
from tests.unit.rules.rules_store import FixtureStore

END = 1_764_448_200 * 10**9


@dataclass(frozen=True)
class Outcome:
    scenario: str
    seed: int
    verdict: str
    named: str
    truth: str
    confidence: float
    onset_error_s: float | None
    records: int
    ms: dict[str, float]


def load(incident: Incident) -> Relations:
    """The relations of an incident with its alert."""
    return relations([*incident.payloads, incident.alert])


def diagnose(store: Any, incident: Incident) -> Diagnosis:
    """The analyst's answer, asked as the pipeline asks: with the alert's service as focus."""
    return analyse(store, "", [incident.alert["commonLabels"]["service"]])


def evaluate(case: tuple[str, int]) -> Outcome:
    """Generates, loads and diagnoses one incident."""
    gc.disable()  # nothing here makes cycles, and collecting among so many live dicts doubles the time
    marks = [time.perf_counter()]
    incident = generate(*case, END)
    marks.append(time.perf_counter())
    rows = load(incident)
    marks.append(time.perf_counter())
    store = FixtureStore(rows)
    marks.append(time.perf_counter())
    answer = diagnose(store, incident)
    marks.append(time.perf_counter())
    store.close()
    gc.enable()
    named = answer.root_causes[0].entity if answer.root_causes else ""
    if answer.status == "inconclusive":
        verdict = "right" if incident.faulty_service is None else "inconclusive"
    else:
        verdict = "right" if named == incident.faulty_service else "wrong"
    return Outcome(
        scenario=case[0],
        seed=case[1],
        verdict=verdict,
        named=named,
        truth=incident.faulty_service or "",
        confidence=answer.root_causes[0].confidence if answer.root_causes else 0.0,
        onset_error_s=_onset_error(answer, incident),
        records=sum(len(found) for name, found in rows.items() if name != "alerts"),
        ms={name: (marks[i + 1] - marks[i]) * 1000 for i, name in enumerate(("generate", "formats", "load", "rules"))},
    )


def _onset_error(answer: Diagnosis, incident: Incident) -> float | None:
    """Seconds from the true onset to the time that the summary tells; None where nothing was at fault or named."""
    told = re.search(r"since (\d\d):(\d\d):(\d\d)", answer.summary)
    if incident.faulty_service is None or told is None:
        return None
    hours, minutes, seconds = map(int, told.groups())
    return (hours * 3600 + minutes * 60 + seconds) - (incident.onset / 1e9) % 86_400


def evaluate_all(seeds: Iterable[int], scenarios: Sequence[str] = SCENARIOS, workers: int = 2) -> Iterator[Outcome]:
    """All outcomes, on some processes."""
    cases = [(scenario, seed) for scenario in scenarios for seed in seeds]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(evaluate, cases, chunksize=5)


def table(outcomes: Sequence[Outcome]) -> str:
    """Right, wrong and inconclusive of each scenario, then the wrong ones one by one."""
    lines = [f"{'scenario':<18}{'right':>7}{'wrong':>7}{'inconclusive':>14}{'rules ms (median, max)':>26}"]
    for scenario in dict.fromkeys(outcome.scenario for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.scenario == scenario]
        count = Counter(outcome.verdict for outcome in mine)
        took = sorted(outcome.ms["rules"] for outcome in mine)
        spent = f"{took[len(took) // 2]:.0f}, {took[-1]:.0f}"
        line = f"{scenario:<18}{count['right']:>7}{count['wrong']:>7}{count['inconclusive']:>14}{spent:>26}"
        lines.append(line)
    for outcome in outcomes:
        if outcome.verdict != "right":
            lines.append(
                f"  {outcome.scenario}/{outcome.seed}: {outcome.verdict}, truth {outcome.truth or '(nothing)'}, "
                f"named {outcome.named or '(nobody)'} with confidence {outcome.confidence:.2f}"
            )
    return "\n".join(lines)
