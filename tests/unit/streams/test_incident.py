"""The incident generator: same seed, same incident; real shapes; one fault that spreads; red herrings."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pytest

from hyve.formats import Relations, relations
from hyve.formats.scalars import rfc3339_ns
from streams.incident import SCENARIOS, Incident, generate

END = 1_764_448_200 * 10**9
WINDOW = 1_800 * 10**9


@lru_cache(maxsize=10)
def made(scenario: str, seed: int = 7) -> tuple[Incident, Relations]:
    incident = generate(scenario, seed, END)
    return incident, relations(incident.payloads)


def digest(incident: Incident) -> str:
    return hashlib.sha256(json.dumps([incident.payloads, incident.alert, incident.truth]).encode()).hexdigest()


def test_the_scenarios_are_at_least_three_faults_and_healthy() -> None:
    assert len(SCENARIOS) >= 4
    assert "healthy" in SCENARIOS
    with pytest.raises(ValueError, match="no scenario 'nonsense'; there are pool-exhaustion"):
        generate("nonsense", 1, END)


def test_the_same_seed_gives_the_same_incident_in_any_process() -> None:
    code = (
        "import hashlib, json; from streams.incident import generate\n"
        f"i = generate('memory-leak', 7, {END})\n"
        "print(hashlib.sha256(json.dumps([i.payloads, i.alert, i.truth]).encode()).hexdigest())"
    )
    found = {digest(made("memory-leak")[0])}
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_seeds_differ_and_the_end_moves_all_times() -> None:
    assert digest(generate("healthy", 7, END)) != digest(generate("healthy", 8, END))
    assert digest(generate("healthy", 7, datetime.fromtimestamp(END // 10**9, UTC))) == digest(made("healthy")[0])
    later = generate("healthy", 7, END + WINDOW)
    assert later.onset - made("healthy")[0].onset == WINDOW


def test_seeds_vary_services_topology_fault_and_onset() -> None:
    incidents = [generate("bad-config", seed, END) for seed in range(12)]
    assert len({incident.services for incident in incidents}) == 12
    assert len({incident.faulty_service for incident in incidents}) >= 8
    assert len({incident.onset for incident in incidents}) == 12
    assert len({incident.truth.split(" ", 1)[1] for incident in incidents}) >= 3


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_size_services_and_times(scenario: str) -> None:
    incident, rows = made(scenario)
    assert sum(map(len, rows.values())) >= 20_000
    assert len(incident.services) == 8
    for name, records in rows.items():
        speaking = {row["service"] for row in records}
        assert speaking <= set(incident.services)
        assert len(speaking) == 7 + (name != "spans")
        assert all(END - WINDOW - 10**10 <= row["time"] < END for row in records)
    assert END - WINDOW < incident.onset < END


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_payload_is_a_batch_of_one_service_and_a_short_time_in_order(scenario: str) -> None:
    last = 0
    for payload in made(scenario)[0].payloads:
        assert len(payload) == 1
        for name, rows in relations([payload]).items():
            assert len({row["service"] for row in rows}) == 1
            times = [row["end_time"] if name == "spans" else row["time"] for row in rows]
            assert max(times) - min(times) <= 30 * 10**9
            assert max(times) >= last
            last = max(last, min(times) - 30 * 10**9)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_spans_hang_together(scenario: str) -> None:
    spans = made(scenario)[1]["spans"]
    by_id = {span["span_id"]: span for span in spans}
    assert len(by_id) == len(spans)
    children = [span for span in spans if span["parent_span_id"]]
    known = [span for span in children if span["parent_span_id"] in by_id]
    assert len(known) >= 0.95 * len(children), "only a few are lost by the collector"
    for span in known:
        parent = by_id[span["parent_span_id"]]
        assert parent["trace_id"] == span["trace_id"]
        assert parent["time"] <= span["time"]
        if parent["service"] != span["service"]:
            assert (parent["kind"], span["kind"], parent["peer_service"]) == ("client", "server", span["service"])
    assert all(span["peer_service"] for span in spans if span["kind"] == "client")
    assert {span["kind"] for span in spans} == {"server", "client"}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_logs_point_to_traces_and_resources_tell_version_and_pod(scenario: str) -> None:
    rows = made(scenario)[1]
    traces = {span["trace_id"] for span in rows["spans"]}
    pointing = [log for log in rows["log_records"] if log["trace_id"]]
    assert len(pointing) >= 500
    assert sum(log["trace_id"] in traces for log in pointing) >= 0.98 * len(pointing)
    for records in rows.values():
        assert all(row["resource"]["service.version"] and row["resource"]["k8s.pod.name"] for row in records)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_alert_is_a_webhook_about_a_symptom_after_the_onset(scenario: str) -> None:
    incident, _ = made(scenario)
    (alert,) = relations([incident.alert])["alerts"]
    assert incident.alert["version"] == "4"
    assert alert["service"] in incident.services
    assert alert["service"] != incident.faulty_service or scenario == "slow-database"
    assert incident.onset < alert["time"] < END
    assert alert["time"] - incident.onset < 10 * 60 * 10**9
    assert rfc3339_ns(incident.alert["alerts"][0]["startsAt"]) == alert["time"]


def rate(spans: list[dict[str, Any]], service: str, begin: int, end: int) -> float:
    """Share of a service's requests that fail or take over twice its usual 95th percentile before `begin`."""
    mine = [span for span in spans if span["service"] == service and span["kind"] == "server"]
    usual = sorted(span["duration_ms"] for span in mine if span["time"] < END - WINDOW + 600 * 10**9)
    limit = 2 * usual[int(0.95 * len(usual))]
    then = [span for span in mine if begin <= span["time"] < end]
    return sum(span["status"] == "error" or span["duration_ms"] > limit for span in then) / len(then)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s not in ("healthy", "slow-database")])
def test_the_fault_hurts_its_service_and_spreads_to_a_caller(scenario: str) -> None:
    incident, rows = made(scenario)
    spans, service = rows["spans"], str(incident.faulty_service)
    callers = {s["service"] for s in spans if s["peer_service"] == service}
    begin = incident.onset + 180 * 10**9
    before = rate(spans, service, END - WINDOW, incident.onset)
    assert rate(spans, service, begin, END) > max(0.1, 5 * before)
    spread = {c: (rate(spans, c, END - WINDOW, incident.onset), rate(spans, c, begin, END)) for c in callers}
    assert any(now > 0.02 and now > 2 * usual for usual, now in spread.values()), spread


def test_healthy_has_a_blip_and_nothing_after_it() -> None:
    incident, rows = made("healthy")
    assert incident.faulty_service is None
    for service in incident.services[:7]:
        assert rate(rows["spans"], service, incident.onset + 90 * 10**9, END) < 0.06


def test_a_fault_leaves_services_that_it_does_not_reach_alone() -> None:
    incident, rows = made("pool-exhaustion")
    spans = rows["spans"]
    calm = [s for s in incident.services[:7] if rate(spans, s, incident.onset + 180 * 10**9, END) < 0.06]
    assert len(calm) >= 2


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_red_herrings_are_there(scenario: str) -> None:
    incident, rows = made(scenario)
    logs = [log for log in rows["log_records"] if not log["trace_id"]]
    loud = Counter(log["service"] for log in logs if log["severity"] in ("WARN", "ERROR"))
    noisy, count = loud.most_common(1)[0]
    assert noisy != incident.faulty_service
    assert count > 300
    half = sum(1 for log in logs if log["service"] == noisy and log["time"] < END - WINDOW // 2)
    assert 0.35 < half / sum(1 for log in logs if log["service"] == noisy) < 0.65, "the noise is steady"
    versions: dict[str, set[str]] = {}
    for span in rows["spans"]:
        versions.setdefault(span["service"], set()).add(span["resource"]["service.version"])
    deployed = {service for service, found in versions.items() if len(found) > 1}
    assert deployed - {incident.faulty_service}, "a healthy service was deployed"
    assert sum("configuration reloaded" in log["body"] for log in logs) >= 3
