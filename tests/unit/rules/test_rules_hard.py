"""The rules analyst where it must not be fooled: other names, other row order, missing tables, hostile values."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from functools import lru_cache
from typing import Any

import pytest

from hyve.diagnosis import Diagnosis
from hyve.formats import Relations, relations
from hyve.rules import analyse
from hyve.store import Datastore
from streams.incident import SCENARIOS, Incident, generate
from tests.unit.rules.rules_seeds import END, diagnose, load
from tests.unit.rules.rules_store import FixtureStore

FAULTS = [scenario for scenario in SCENARIOS if scenario != "healthy"]


@lru_cache(maxsize=8)
def incident(scenario: str, seed: int = 40) -> Incident:
    return generate(scenario, seed, END)


def ask(rows: Relations, question: str = "", focus: tuple[str, ...] = ()) -> Diagnosis:
    store = FixtureStore(rows)
    try:
        return analyse(store, question, focus)
    finally:
        store.close()


def answer(of: Incident, keep: tuple[str, ...] | None = None) -> Diagnosis:
    rows = load(of)
    store = FixtureStore({name: rows[name] for name in keep or rows})
    try:
        return diagnose(store, of)
    finally:
        store.close()


@pytest.mark.parametrize("scenario", FAULTS)
def test_every_claim_stands_on_rows_that_come_back_again(scenario: str) -> None:
    store = FixtureStore(load(incident(scenario)))
    result = diagnose(store, incident(scenario))
    ids = {evidence.id: evidence for evidence in result.evidence}
    assert len(result.claims) >= 4
    assert result.status == "conclusive"
    assert result.mode == "rules"
    for claim in result.claims:
        assert claim.evidence
        assert ids.keys() >= set(claim.evidence)
    for cause in result.root_causes:
        assert cause.evidence
        assert ids.keys() >= set(cause.evidence)
    for evidence in result.evidence:
        again = store.query(evidence.sql)
        assert evidence.sql.split()[0] in ("SELECT", "WITH")
        assert again.rows[:20] == evidence.rows
        assert 1 <= len(evidence.rows) <= 20
        assert (evidence.columns, evidence.total_rows) == (again.columns, again.total_rows)
    assert result.next_steps
    store.close()


def test_the_summary_says_what_since_when_and_what_changed() -> None:
    of = incident("pool-exhaustion")
    result = answer(of)
    service = str(of.faulty_service)
    assert result.summary.startswith(f"{service} is the likely cause: since 20:")
    assert "db.client.connection.count reached" in result.summary
    version = re.search(r"version (\S+) became (\S+)\.", result.summary)
    assert version is not None
    assert result.next_steps[0] == f"Roll {service} back from {version[2]} to {version[1]}, or stop its rollout."


def test_loud_and_newly_deployed_services_are_ruled_out_by_name() -> None:
    result = answer(incident("bad-config"))
    out = [claim.text for claim in result.claims if claim.text.startswith("Not the cause: ")]
    assert any(" all the time (" in text for text in out)
    assert not any(f"Not the cause: {result.root_causes[0].entity} " in text for text in out)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_other_names_give_the_same_answer(scenario: str) -> None:
    of = incident(scenario)
    names = random.Random(1).sample([f"zz{i}-unit" for i in range(90)], len(of.services))
    new = dict(zip(of.services, names, strict=True))
    pattern = re.compile("|".join(re.escape(name) for name in sorted(new, key=len, reverse=True)))
    text = pattern.sub(lambda match: new[match.group()], json.dumps([of.payloads, of.alert]))
    payloads, alert = json.loads(text)
    renamed = answer(dataclasses.replace(of, payloads=payloads, alert=alert))
    plain = answer(of)
    assert renamed.status == plain.status
    assert [new[cause.entity] for cause in plain.root_causes] == [cause.entity for cause in renamed.root_causes]
    assert [c.confidence for c in plain.root_causes] == [c.confidence for c in renamed.root_causes]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_order_of_rows_makes_no_difference(scenario: str) -> None:
    rows = load(incident(scenario))
    shuffled = {name: random.Random(2).sample(found, len(found)) for name, found in rows.items()}
    assert ask(shuffled) == ask(rows)


@pytest.mark.parametrize("scenario", FAULTS)
def test_spans_alone_are_enough(scenario: str) -> None:
    result = answer(incident(scenario), ("spans",))
    assert (result.status, result.root_causes[0].entity) == ("conclusive", incident(scenario).faulty_service)


@pytest.mark.parametrize("scenario", FAULTS)
def test_without_spans_it_is_right_or_unsure_and_says_why(scenario: str) -> None:
    result = answer(incident(scenario), ("log_records", "metric_points"))
    if result.status == "conclusive":
        assert result.root_causes[0].entity == incident(scenario).faulty_service
        assert result.root_causes[0].confidence <= 0.7
        assert "There are no spans" in result.summary
    else:
        assert "There is no data in spans" in result.summary


@pytest.mark.parametrize("keep", [("log_records",), ("metric_points",), ("log_records", "metric_points")])
def test_healthy_stays_inconclusive_on_partial_data(keep: tuple[str, ...]) -> None:
    assert answer(incident("healthy"), keep).status == "inconclusive"


def test_logs_alone_name_a_suspect_but_conclude_nothing() -> None:
    """From logs a service that fails and one that only calls it look alike, so no answer of them is conclusive."""
    named = 0
    for scenario in FAULTS:
        result = answer(incident(scenario), ("log_records",))
        assert result.status == "inconclusive"
        for cause in result.root_causes:
            assert cause.confidence <= 0.6
            assert f"{result.root_causes[0].entity} is the first suspect" in result.summary
            named += 1
    assert named


def test_no_telemetry_says_which_tables_there_are() -> None:
    result = ask({"alerts": [{"time": END, "service": "a", "status": "firing"}], "pods": [{"name": "p"}]})
    assert result.status == "inconclusive"
    assert result.summary.endswith("Tables: alerts (1 rows), pods (1 rows).")
    assert result.evidence == ()
    assert ask({}).summary.endswith("Tables: none.")


def test_a_blip_is_told_but_not_blamed() -> None:
    result = answer(incident("healthy"))
    assert result.status == "inconclusive"
    assert result.root_causes == ()
    assert "had a short blip from" in result.summary


def test_the_same_answer_from_the_real_store() -> None:
    of = incident("slow-database")
    text = "\n".join(json.dumps(payload) for payload in [*of.payloads, of.alert])
    with Datastore.from_text(text) as store:
        real = diagnose(store, of)
    assert real == answer(of)


class Traces:
    """Spans of a few services over half an hour, one request each five seconds."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def span(self, service: str, at: float, ms: float, parent: str | None = None, **more: Any) -> str:
        name = f"{len(self.rows) + 1:016x}"
        start = END - 1_800 * 10**9 + int(at * 1e9)
        self.rows.append(
            {
                "time": start,
                "end_time": start + int(ms * 1e6),
                "duration_ms": ms,
                "service": service,
                "name": more.pop("name", "op"),
                "kind": more.pop("kind", "server"),
                "trace_id": more.pop("trace", f"{int(at * 1000):032x}"),
                "span_id": name,
                "parent_span_id": parent,
                "status": more.pop("status", "ok"),
                "status_message": more.pop("message", ""),
                "peer_service": more.pop("peer", None),
                "resource": more.pop("resource", {}),
            }
        )
        return name

    def ask(self, *focus: str, **tables: list[dict[str, Any]]) -> Diagnosis:
        return ask({"spans": self.rows, **tables}, "", focus)


def jitter(at: float) -> float:
    return 1 + 0.2 * ((at * 7919) % 13) / 13


def chain(slow: float, *, answered: bool = True, peer: str = "b") -> Traces:
    """a calls b each five seconds; b takes `slow` ms after 900 s, 10 ms before."""
    traces = Traces()
    for i in range(360):
        at = i * 5.0
        ms = (slow if at >= 900 else 10.0) * jitter(at)
        root = traces.span("a", at, ms + 12 * jitter(at))
        call = traces.span("a", at, ms + 1, root, kind="client", peer=peer)
        if answered:
            traces.span("b", at, ms, call)
    return traces


def test_the_slow_callee_is_blamed_not_its_caller() -> None:
    result = chain(400.0).ask("a")
    assert [cause.entity for cause in result.root_causes] == ["b"]
    assert re.search(r"since 20:(14:[345]\d|15:00) 100.0% \(before: 0.0%\)", result.summary)
    assert "It spreads to a" in result.summary


@pytest.mark.parametrize("peer", ["b", "b.shop.svc.cluster.local:5432"])
def test_a_callee_without_spans_is_known_by_its_peer_name(peer: str) -> None:
    tables = {"log_records": [{"time": END - 10**9, "service": "b", "severity": "INFO", "body": "alive"}]}
    assert chain(400.0, answered=False, peer=peer).ask("a", **tables).root_causes[0].entity == "b"


def test_a_caller_that_gives_up_too_early_is_blamed_itself() -> None:
    traces = Traces()
    for i in range(360):
        at = i * 5.0
        cut = at >= 900 and i % 2 == 0
        status = "error" if cut else "ok"
        root = traces.span("a", at, 30.0, status=status)
        call = traces.span("a", at, 5.0 if cut else 21.0, root, kind="client", peer="b", status=status)
        traces.span("b", at, 20.0 * jitter(at), call)
    result = traces.ask("a")
    assert [cause.entity for cause in result.root_causes] == ["a"]
    assert "its calls to b fail, and the fault is on its own side" in result.summary


def test_one_of_two_callers_in_trouble_is_blamed_itself() -> None:
    traces = Traces()
    for i in range(720):
        at = i * 2.5
        service = "a" if i % 2 else "c"
        bad = service == "a" and at >= 900 and i % 3 == 0
        root = traces.span(service, at, 30.0, status="error" if bad else "ok")
        status = "error" if bad else "ok"
        traces.span(service, at, 5.0 * jitter(at), root, kind="client", peer="db", status=status)
    assert traces.ask().root_causes[0].entity == "a"


def test_all_callers_in_trouble_blame_what_they_call() -> None:
    traces = Traces()
    for i in range(720):
        at = i * 2.5
        service = "a" if i % 2 else "c"
        bad = at >= 900 and i % 3 == 0
        root = traces.span(service, at, 30.0, status="error" if bad else "ok")
        status = "error" if bad else "ok"
        traces.span(service, at, 5.0 * jitter(at), root, kind="client", peer="db", status=status)
    assert traces.ask().root_causes[0].entity == "db"


def test_trouble_that_is_short_against_a_long_window_is_still_found() -> None:
    traces = Traces()
    for i in range(4320):  # six hours, and eight minutes of trouble in the fifth
        at = i * 5.0 - 19_800
        bad = -3000 <= at < -2520 and i % 2 == 0
        root = traces.span("a", at, 40.0, status="error" if bad else "ok", trace=f"{i:032x}")
        call = traces.span(
            "a", at, 21.0, root, kind="client", peer="b", status="error" if bad else "ok", trace=f"{i:032x}"
        )
        traces.span("b", at, 20.0 * jitter(i), call, status="error" if bad else "ok", trace=f"{i:032x}")
    result = traces.ask("a")
    assert [cause.entity for cause in result.root_causes] == ["b"]
    assert "since 19:1" in result.summary
    assert "seems to be over since 19:1" in result.summary


def test_what_the_alerts_service_never_calls_does_not_explain_the_alert() -> None:
    traces = chain(400.0)
    for i in range(360):
        at = i * 5.0
        traces.span("lonely", at, (700.0 if at >= 900 else 10.0) * jitter(at), trace=f"ff{i:030x}")
    assert traces.ask("a").root_causes[0].entity == "b"
    assert traces.ask("lonely").root_causes[0].entity == "lonely"


@pytest.mark.parametrize("missing", ["kind", "status", "peer_service", "parent_span_id", "trace_id", "name", "service"])
def test_missing_columns_make_it_less_sure_at_most(missing: str) -> None:
    rows = [{key: value for key, value in row.items() if key != missing} for row in chain(400.0).rows]
    result = ask({"spans": rows}, "", ("a",))
    assert result.status in ("conclusive", "inconclusive")
    assert [note for note in result.notes if "could not read" in note] == []


HOSTILE = ["o'hara\"; DROP TABLE spans; --", "\x1b[31mred\x1b[0m", "nul\x00here", "%s{x}", "", "日本", "a" * 5000]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_do_no_harm(name: str) -> None:
    rows = [{**row, "service": name if row["service"] == "b" else row["service"]} for row in chain(400.0).rows]
    logs = [
        {"time": row["time"], "service": name, "severity": "ERROR", "body": f"{name} failed {row['span_id']}"}
        for row in rows
        if row["time"] > END - 800 * 10**9
    ]
    result = ask({"spans": rows, "log_records": logs}, f"why is {name} slow?", (name,))
    assert result.root_causes[0].entity == name
    assert all(claim.evidence for claim in result.claims)
    assert result.claims


def test_odd_times_and_few_rows_do_no_harm() -> None:
    traces = chain(400.0)
    for row, time in zip(traces.rows[:3], (None, 1, 2**62), strict=True):
        row["time"] = time
    assert traces.ask("a").root_causes[0].entity == "b"
    assert ask({"spans": traces.rows[10:11]}).status == "inconclusive"
    assert ask({"spans": [{**row, "time": END} for row in traces.rows]}).status == "inconclusive"


def test_a_users_table_of_the_same_name_is_noted_not_raised() -> None:
    rows = [{"time": END - i * 10**9, "service": "a", "duration_ms": "quick", "status": "error"} for i in range(600)]
    result = ask({"spans": rows})
    assert result.status == "inconclusive"
    assert any("could not use spans.duration_ms (VARCHAR)" in note for note in result.notes)


def test_a_question_names_the_focus() -> None:
    traces = chain(400.0)
    for i in range(360):
        at = i * 5.0
        traces.span("lonely", at, (700.0 if at >= 900 else 10.0) * jitter(at), trace=f"ff{i:030x}")
    assert ask({"spans": traces.rows}, "why is lonely slow?").root_causes[0].entity == "lonely"


def test_empty_relations_are_like_none() -> None:
    assert relations([]) == {}
    assert ask({"spans": [], "log_records": []}).status == "inconclusive"


def test_a_plain_log_is_told_by_its_error_lines() -> None:
    lines = [f"10:00:{i % 60:02d} INFO GET /cart/{i} 200" for i in range(400)]
    lines[100:300:10] = [f"10:01:00 WARN cache error on shard {i}" for i in range(20)]
    lines[333] = "10:02:00 FATAL disk /dev/sdb1 is full"
    with Datastore.from_text("\n".join(lines)) as store:
        result = analyse(store, "what is wrong?")
        assert (result.status, len(result.claims)) == ("inconclusive", 1)
        assert "21 lines speak of errors" in result.claims[0].text
        assert "line 334 on: “10:02:00 FATAL disk /dev/sdb1 is full”" in result.summary
        for item in result.evidence:
            assert store.query(item.sql).rows[: len(item.rows)] == item.rows
