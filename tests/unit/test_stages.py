"""The stages in one process: modes 1, 2, 3, their failures, and the rules in between (H4, H26, H30; invariant 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import hyve
from hyve import prompt as prompts
from hyve import stages
from hyve.reply import ModelReply, ToolCall

ROWS = [{"service": "cart" if i % 3 else "ledger", "ms": 10 if i % 3 else 900, "n": i} for i in range(3000)]
REQUEST = stages.Request("what is slow?", (stages.Payload("rows", json.dumps(ROWS)),), 1500)
SLOW = "SELECT service, avg(ms) AS ms FROM records GROUP BY service ORDER BY ms DESC"


class Scripted:
    """A model that says what it was told to, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *replies: ModelReply | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        self.asked.append(([dict(message) for message in messages], [dict(tool) for tool in tools]))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def answer(**fields: Any) -> ModelReply:
    return ModelReply(json.dumps({"status": "conclusive", "summary": "ledger is slow", **fields}))


def query(sql: str) -> ModelReply:
    return ModelReply("", (ToolCall("c1", "query_datastore", json.dumps({"sql": sql})),))


async def run(model: Scripted | None) -> hyve.Diagnosis:
    with stages.load(REQUEST.payloads) as store:
        return await hyve.diagnose(REQUEST, store, model)


async def test_mode_1_resolves_evidence() -> None:
    cause = {"entity": "ledger", "summary": "900 ms", "confidence": 0.9, "evidence": [SLOW]}
    found = await run(Scripted(answer(root_causes=[cause], claims=[{"text": "cart is fast", "evidence": [SLOW]}])))
    assert (found.status, found.mode, found.calls, found.model) == ("conclusive", "direct", 1, "scripted")
    assert found.root_causes[0].evidence == ("e1",)
    assert found.evidence[0].rows == (("ledger", 900.0), ("cart", 10.0))
    assert found.claims[0].evidence == ("e1",)
    assert found.tokens.original > 10 * found.tokens.prompt


@pytest.mark.parametrize(
    "evidence",
    [[], ["SELECT nonsense FROM nowhere"], ["SELECT * FROM records WHERE ms > 5000"], ["DROP TABLE records"]],
)
async def test_a_cause_without_evidence_is_unsupported_and_not_conclusive(evidence: list[str]) -> None:
    """Code enforces it, not the prompt."""
    cause = {"entity": "ledger", "summary": "surely", "confidence": 1.0, "evidence": evidence}
    found = await run(Scripted(answer(root_causes=[cause])))
    assert found.status == "inconclusive"
    assert found.root_causes == ()
    assert found.unsupported[0].text == "ledger: surely"


async def test_mode_2_fills_a_template() -> None:
    call = {
        "template": {"title": "ms", "data": []},
        "fills": [{"sql": SLOW, "mappings": [{"column": "ms", "path": "byService.(service)"}]}],
    }
    found = await run(Scripted(ModelReply("", (ToolCall("c1", "fill_template", json.dumps(call)),))))
    assert (found.status, found.mode, found.calls) == ("conclusive", "template", 1)
    assert found.charts == ({"title": "ms", "data": [], "byService": {"ledger": 900.0, "cart": 10.0}},)


async def test_mode_3_asks_once_more_with_the_rows_and_without_tools() -> None:
    model = Scripted(query(SLOW), answer(root_causes=[{"entity": "ledger", "summary": "slow", "evidence": [SLOW]}]))
    found = await run(model)
    assert (found.status, found.mode, found.calls) == ("conclusive", "query", 2)
    (first, tools), (second, no_tools) = model.asked
    assert len(tools) == 2
    assert no_tools == []
    assert second[: len(first)] == first
    assert second[-1]["role"] == "tool"
    assert "2 rows\nservice|ms\nledger|900.0\ncart|10.0" in second[-1]["content"]


async def test_a_failing_query_is_told_with_the_columns() -> None:
    model = Scripted(query("SELECT latency FROM records"), answer())
    await run(model)
    told = model.asked[1][0][-1]["content"]
    assert "latency" in told
    assert "records(_row_id, service, ms, n)" in told


async def test_there_is_no_third_call() -> None:
    """Invariant 5."""
    model = Scripted(query(SLOW), query("SELECT count(*) AS n FROM records"))
    found = await run(model)
    assert (found.status, found.mode, found.calls) == ("partial", "query", 2)
    assert found.evidence[0].rows == ((3000,),)


async def test_follow_up_rows_stay_under_their_cap() -> None:
    model = Scripted(query("SELECT * FROM records"), answer())
    await run(model)
    content = model.asked[1][0][-1]["content"]
    assert hyve.count_tokens(content) <= prompts.FOLLOW_UP_BUDGET
    shown = sum(line.count("|") == 3 for line in content.split("\n")) - 1
    assert content.startswith("3,000 rows")
    assert f"... ({3000 - shown:,} more rows)" in content


@pytest.mark.parametrize(
    "failure",
    [
        hyve.ModelError("the model answered 401", "auth"),
        ModelReply(""),
        ModelReply("", (ToolCall("c", "launch_missiles", "{}"),)),
        ModelReply("", (ToolCall("c", "fill_template", json.dumps({"template": {}, "fills": [
            {"sql": SLOW, "mappings": [{"column": "no_such", "path": "a.(service)"}]}]})),)),
    ],
)  # fmt: skip
async def test_a_model_that_fails_leaves_the_answer_to_the_rules_and_says_so(failure: Any) -> None:
    found = await run(Scripted(failure))
    assert found.mode == "rules"
    assert any("answered by the rules analyst" in note for note in found.notes)


async def test_prose_is_an_answer_without_claims() -> None:
    found = await run(Scripted(ModelReply("It is the ledger, I am sure.")))
    assert (found.status, found.summary) == ("inconclusive", "It is the ledger, I am sure.")


async def test_no_model() -> None:
    found = await run(None)
    assert (found.mode, found.calls) == ("rules", 0)


def test_several_payloads_name_their_tables() -> None:
    payloads = (stages.Payload("pods", '[{"a": 1}]'), stages.Payload("nodes", '[{"b": 2}, {"b": 3}]'))
    with stages.load(payloads) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("pods", 1), ("nodes", 2)]


def test_no_payload() -> None:
    with pytest.raises(hyve.InputError, match="no data"):
        stages.load(())


@pytest.mark.parametrize(
    "text",
    [
        '{"spans": [{"time": "10:00", "service": "a"}]}',
        json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"timeUnixNano": "0", "body": {"stringValue": "x"}}]}]}]}),
        json.dumps({"spans": [{"time": [1], "service": {"a": 1}, "duration_ms": "x"}] * 30}),
        json.dumps(
            [
                {"resourceLogs": [{"resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": "a"}},
                    {"key": "service.version", "value": {"stringValue": version}}]},
                    "scopeLogs": [{"logRecords": [{"timeUnixNano": at, "body": {"stringValue": "x"}}]}]}]}
                for version, at in (
                    ("1", "9223372036854775807"), ("2", "1700000000000000000"), ("2", "1700000900000000000"))
            ]
        ),
    ],
)  # fmt: skip
async def test_the_rules_survive_odd_telemetry(text: str) -> None:
    request = stages.Request("why?", (stages.Payload("odd", text),))
    with stages.load(request.payloads) as store:
        found = await hyve.diagnose(request, store, None)
    assert (found.status, found.mode) == ("inconclusive", "rules")
    assert "can't read" not in found.summary


@pytest.mark.parametrize("statement", ["SELECT 1", "SELECT 'anything' AS proof", "VALUES (1)"])
async def test_a_statement_that_reads_no_table_proves_nothing(statement: str) -> None:
    found = await run(Scripted(answer(root_causes=[{"entity": "ledger", "summary": "x", "evidence": [statement]}])))
    assert (found.status, found.root_causes) == ("inconclusive", ())


async def test_a_template_without_rows_is_partial() -> None:
    call = {"template": {}, "fills": [{"sql": "SELECT n FROM records WHERE n < 0", "mappings": [
        {"column": "n", "path": "a.(_row_id)"}]}]}  # fmt: skip
    found = await run(Scripted(ModelReply("", (ToolCall("c1", "fill_template", json.dumps(call)),))))
    assert found.status == "partial"
    assert any("no rows" in note for note in found.notes)


@pytest.mark.parametrize(
    "call",
    [
        query("SELECT 1 AS a /*" + "x" * 200_000 + "*/ FROM records"),
        ModelReply("", (ToolCall("c", "query_datastore", json.dumps({"sql": SLOW, "note": "word " * 100_000})),)),
        query("SELECT " + ", ".join(f"1 AS column_name_long_{i}" for i in range(900)) + " FROM records"),
        ModelReply(json.dumps({"tool": "query_datastore", "arguments": {"sql": SLOW + " -- " + "y" * 100_000}})),
        query("SELECT nothing_" + "z" * 9_000 + " FROM records"),
    ],
)
async def test_what_the_second_call_adds_is_bounded(call: ModelReply) -> None:
    model = Scripted(call, answer())
    await run(model)
    if len(model.asked) == 2:
        added = prompts.size(model.asked[1][0]) - prompts.size(model.asked[0][0])
        assert added <= prompts.FOLLOW_UP_BUDGET + 1_500


async def test_cells_that_are_cut_for_the_second_call_say_so() -> None:
    model = Scripted(query("SELECT repeat('A', 1000) || 'END' AS m FROM records LIMIT 1"), answer())
    await run(model)
    assert "…(+603 chars)" in model.asked[1][0][-1]["content"]


async def test_a_client_that_raises_or_returns_rubbish_leaves_the_answer_to_the_rules() -> None:
    for reply in (RuntimeError("boom"), "just a text", None, ModelReply(None)):  # type: ignore[arg-type]
        found = await run(Scripted(reply))  # type: ignore[arg-type]
        assert found.mode == "rules"
        assert any("answered by the rules analyst" in note for note in found.notes)


async def test_absurd_numbers_in_an_answer_do_no_harm() -> None:
    text = '{"status":"conclusive","summary":"s","root_causes":[{"entity":"a","summary":"x","confidence":1' + "0" * 400
    found = await run(Scripted(ModelReply(text + f',"evidence":["{SLOW}"]}}]}}')))
    assert found.root_causes[0].confidence == 1.0
