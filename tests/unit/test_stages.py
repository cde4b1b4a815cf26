"""The stages in one process: modes 1, 2, 3, their failures, and the rules in between (H4, H26, H30; invariant 5)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import prompt as prompts
from hyve import stages
from hyve.reply import ModelReply, ToolCall
from tests.bench import modes
from tests.unit.scripted import SLOW, Scripted, answer, query, run


async def test_mode_1_resolves_evidence() -> None:
    cause = {"entity": "ledger", "summary": "900 ms", "confidence": 0.9, "evidence": [SLOW]}
    found = await run(Scripted(answer(root_causes=[cause], claims=[{"text": "cart is fast", "evidence": [SLOW]}])))
    assert (found.status, found.mode, found.calls, found.model) == ("conclusive", "direct", 1, "scripted")
    assert found.root_causes[0].evidence == ("e1",)
    assert found.evidence[0].rows == (("ledger", 900.0), ("cart", 10.0))
    assert found.claims[0].evidence == ("e1",)
    assert found.tokens.original > 10 * found.tokens.prompt


async def test_a_status_that_there_is_not_is_told() -> None:
    found = await run(Scripted(answer(status="super")))
    assert found.status == "inconclusive"
    assert any("the model gave the status 'super', which is none of conclusive" in note for note in found.notes)


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
        "template": {"title": "ms", "data": [], "byService": {}},
        "fills": [{"sql": SLOW, "mappings": [{"column": "ms", "path": "byService.(service)"}]}],
    }
    found = await run(Scripted(ModelReply("", (ToolCall("c1", "fill_template", json.dumps(call)),))))
    assert (found.status, found.mode, found.calls) == ("conclusive", "template", 1)
    assert found.charts == ({"title": "ms", "data": [], "byService": {"ledger": 900.0, "cart": 10.0}},)


@pytest.mark.parametrize("library", modes.CHARTS)
def test_the_worked_example_end_to_end(library: str) -> None:
    """H27-H29, H33: 3 series of 768 points, one call, under 400 tokens written, every point equal."""
    found, written = modes.run(modes.template(library))
    assert (found.status, found.mode, found.calls) == ("conclusive", "template", 1)
    assert modes.equal(library, found.charts[0]) == 2304
    assert found.tokens.completion == written < 400
    assert found.evidence[0].total_rows == 2304


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
    assert [one.id for one in found.evidence] == ["e1", "e2"]
    assert found.evidence[0].rows == (("ledger", 900.0), ("cart", 10.0))
    assert found.evidence[1].rows == ((3000,),)
    assert any(note.startswith("the model asked for a second query") for note in found.notes)
    assert any(note.startswith(RULES) for note in found.notes)


async def test_a_second_query_that_fails_is_said_plainly() -> None:
    found = await run(Scripted(query(SLOW), query("SELECT getenv('HOME')")))
    assert (found.status, found.mode, found.calls) == ("partial", "query", 2)
    assert [one.sql for one in found.evidence] == [SLOW]
    assert "the query failed: the function getenv() is not allowed" in found.summary
    assert not any("the rows of that query are shown" in note for note in found.notes)


BAD_SECONDS = [
    ModelReply(""),
    ModelReply("", (ToolCall("c", "launch_missiles", "{}"),)),
    ModelReply("}}}{{{"),
    ModelReply('{"foo": 1}'),
    hyve.ModelError("busy", "rate"),
    RuntimeError("boom"),
    ModelReply('{"status": "conclusive", "summary": "sure", "claims": ["trust me"]}'),
]


@pytest.mark.parametrize("second", BAD_SECONDS)
async def test_rows_of_the_query_outlive_a_second_reply_without_an_answer(second: ModelReply | Exception) -> None:
    """Mode 3 keeps what it has: rows, why no answer came, what the rules found."""
    found = await run(Scripted(query(SLOW), second))
    assert (found.status, found.mode, found.model, found.calls) == ("partial", "query", "scripted", 2)
    assert found.evidence[0].rows == (("ledger", 900.0), ("cart", 10.0))
    assert found.summary == "No interpretation: the model's query returned 2 rows."
    assert any(note.startswith("the model's second reply could not be used: ") for note in found.notes)
    assert any(note.startswith(RULES) for note in found.notes)


async def test_rows_of_the_query_outlive_a_wrong_template_and_stand_beside_prose() -> None:
    found = await run(Scripted(query(SLOW), template(fill("wrong.(_row_id)"))))
    assert (found.status, len(found.evidence)) == ("partial", 1)
    assert any("no key 'wrong'" in note for note in found.notes)
    found = await run(Scripted(query(SLOW), ModelReply("The ledger is slow.")))
    assert (found.status, found.summary, found.evidence[0].sql) == ("inconclusive", "The ledger is slow.", SLOW)


async def test_a_whole_answer_beside_a_query_counts_where_the_second_reply_does_not() -> None:
    cause = {"entity": "ledger", "summary": "900 ms", "evidence": [SLOW]}
    first = dataclasses.replace(query(SLOW), text=answer(root_causes=[cause]).text)
    found = await run(Scripted(first, ModelReply("")))
    assert (found.status, found.mode, found.root_causes[0].entity) == ("conclusive", "query", "ledger")
    assert any("first reply" in note for note in found.notes)


async def test_a_template_that_does_not_fit_goes_back_once() -> None:
    """Mode 2 has a call left: the error is told as that of a query is."""
    model = Scripted(template(fill("series.0.dta.(_row_id)")), template(fill("series.0.data.(_row_id)")))
    found = await run(model)
    assert (found.status, found.mode, found.calls) == ("conclusive", "template", 2)
    assert found.charts == ({"series": [{"data": [900.0, 10.0]}]},)
    messages, tools = model.asked[1]
    assert tools == []
    assert "no key 'dta' at step 3 (did you mean 'data'?)" in messages[-1]["content"]
    assert messages[-2]["tool_calls"][0]["function"]["name"] == "fill_template"
    assert found.tokens.follow_up == prompts.size(messages)


async def test_a_template_whose_statement_fails_is_told_the_columns() -> None:
    model = Scripted(template(fill("series.0.data.(_row_id)", sql="SELECT latency FROM records")), answer())
    await run(model)
    assert "records(_row_id, service, ms, n)" in model.asked[1][0][-1]["content"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT 1 AS ms FROM range(3)", "reads none of the tables"),
        ("SELECT 99 AS ms FROM records LIMIT 3", "depends on the data"),
        ("SELECT NULL AS ms FROM records LIMIT 3", "nothing but NULL"),
    ],
)
async def test_a_template_filled_from_nothing_is_partial(statement: str, why: str) -> None:
    found = await run(Scripted(template(fill("series.0.data.(_row_id)", sql=statement))))
    assert (found.status, found.mode) == ("partial", "template")
    assert any("does not count as evidence" in note and why in note for note in found.notes)


async def test_numbers_and_placeholders_of_a_template_are_told() -> None:
    document = {"series": [{"data": [0, 0, 0, 0]}, {"data": [1, 2, 3]}]}
    found = await run(Scripted(template(fill("series.0.data.(_row_id)"), document)))
    assert found.charts == ({"series": [{"data": [900.0, 10.0]}, {"data": [1, 2, 3]}]},)
    assert found.notes == (
        "3 numbers in the template's data are the model's own: no query gave them",
        "2 placeholders of the template that no row filled were removed",
    )


@pytest.mark.parametrize("text", ["}}}{{{", '{"foo":1}', "[1,2]", '{"status": "conclusive", "summary": "trust me"}'])
async def test_rubbish_and_answers_without_anything_that_counts_are_left_to_the_rules(text: str) -> None:
    found = await run(Scripted(ModelReply(text)))
    assert (found.mode, found.status) == ("rules", "inconclusive")
    assert any(note.startswith("answered by the rules analyst: ") for note in found.notes)
    assert f"the model said: {text}" in found.notes


@pytest.mark.parametrize(
    ("entity", "statement", "says"),
    [
        ("h9", SLOW, "'h9' is nowhere in the data"),
        ("ledger", "SELECT 'ledger down' FROM records", "depends on the data"),
        ("ledger", "SELECT count(*) FILTER (WHERE service = 'x') FROM records", "supports no root cause"),
    ],
)
async def test_a_cause_needs_its_entity_and_values_of_the_data(entity: str, statement: str, says: str) -> None:
    found = await run(Scripted(answer(root_causes=[{"entity": entity, "summary": "down", "evidence": [statement]}])))
    assert (found.status, found.root_causes) == ("inconclusive", ())
    assert any(says in note for note in found.notes)


async def test_a_cut_reply_and_dropped_items_are_told() -> None:
    claims = [{"text": f"claim {i}", "evidence": [SLOW]} for i in range(53)]
    found = await run(Scripted(dataclasses.replace(answer(claims=claims), cut=True)))
    assert "the model's reply was cut at its token limit" in found.notes
    assert "3 items of the answer were dropped: it gave more than 50 of a kind" in found.notes
    assert len(found.claims) == 50


async def test_the_costs_of_both_calls_are_summed() -> None:
    first, last = dataclasses.replace(query(SLOW), cost=0.25), answer(claims=[{"text": "t", "evidence": [SLOW]}])
    assert (await run(Scripted(first, dataclasses.replace(last, cost=0.5)))).cost == 0.75
    assert (await run(Scripted(first, last))).cost == 0.25
    assert (await run(Scripted(dataclasses.replace(last, cost=0.0)))).cost == 0.0


_replies = st.one_of(
    st.sampled_from([SLOW, "SELECT * FROM records", "SELECT nothing", "DROP TABLE records", "x"]).map(query),
    st.sampled_from([{}, {"claims": [{"text": "t", "evidence": [SLOW]}]}, {"root_causes": "odd"}]).map(
        lambda fields: answer(**fields)
    ),
    st.sampled_from(["series.0.data.(_row_id)", "wrong.(_row_id)", "(("]).map(lambda path: template(fill(path))),
    st.text(max_size=30).map(ModelReply),
    st.sampled_from([hyve.ModelError("busy", "rate"), RuntimeError("boom"), None, 7]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(_replies, min_size=4, max_size=4))
def test_whatever_a_model_replies_there_are_at_most_two_calls_and_one_answer(replies: list[Any]) -> None:
    """Invariant 5, H4: hop 2 can't lead to hop 3."""
    model = Scripted(*replies)
    found = asyncio.run(run(model))
    assert found.calls == len(model.asked) <= 2
    asked = isinstance(replies[0], ModelReply) and str(replies[0].tool_calls)
    assert (found.calls == 2) == bool(asked and ("query_datastore" in asked or "wrong." in asked or "((" in asked))
    assert [bool(tools) for _, tools in model.asked] == [True, False][: found.calls]
    known = {evidence.id for evidence in found.evidence}
    assert all(set(item.evidence) <= known and item.evidence for item in (*found.root_causes, *found.claims))
    assert found.status != "conclusive" or found.root_causes or found.charts


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
    found = await run(Scripted(failure, failure))
    assert found.mode == "rules"
    assert any("answered by the rules analyst" in note for note in found.notes)


RULES = "the rules analyst, asked because the model's answer stands without evidence: inconclusive: "
"""How a note begins that says what the rules found."""


async def test_prose_is_an_answer_without_claims() -> None:
    found = await run(Scripted(ModelReply("It is the ledger, I am sure.")))
    assert (found.status, found.summary) == ("inconclusive", "It is the ledger, I am sure.")
    assert any(note.startswith(RULES) for note in found.notes)


def template(fills: Any, document: Any = None) -> ModelReply:
    call = {"template": {"series": [{"data": []}]} if document is None else document, "fills": fills}
    return ModelReply("", (ToolCall("c1", "fill_template", json.dumps(call)),))


def fill(path: str, column: str = "ms", sql: str = SLOW) -> list[dict[str, Any]]:
    return [{"sql": sql, "mappings": [{"column": column, "path": path}]}]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (ModelReply(""), "the model's reply is empty"),
        (ModelReply("<think>hm</think>"), "the model's reply is empty"),
        (ModelReply("", (ToolCall("c", "launch_missiles", "{}"),)), "there is no tool 'launch_missiles'"),
        (ModelReply("", (ToolCall("c", "query_datastore", "{{{{"),)), "are no JSON object"),
        (template(fill("series.0.dta.(_row_id)")), "no key 'dta' at step 3 (did you mean 'data'?)"),
        (template(fill("series.0.data.(_row_id)", "msec")), "no column 'msec' (did you mean 'ms'?)"),
        (template(fill("series.0.data.(idx)")), "no column 'idx'"),
        (template(fill("series.0.data.(_row_id)"), {"title": "no slots"}), "no key 'series' at the top"),
        (template(fill("a.(_row_id)", sql="SELECT * FROM nowhere")), "there is no table 'nowhere'"),
        (template(fill("a.(_row_id)", sql="DROP TABLE records")), "DROP is not allowed"),
        (template(fill("series.0.data.(_row_id)", "n", "SELECT n FROM records, range(200)")), "600000 rows and only"),
        (template([]), "it has no `fills`"),
    ],
)
async def test_each_unusable_reply_leaves_the_answer_to_the_rules_with_its_reason(reply: ModelReply, says: str) -> None:
    """A template that misfits may be mended once; a second one that does is the end."""
    model = Scripted(reply, reply)
    found = await run(model)
    assert (found.mode, found.model, found.status) == ("rules", "rules", "inconclusive")
    mendable = "fill_template" in str(reply.tool_calls) and "no `fills`" not in says
    assert found.calls == len(model.asked) == 1 + mendable
    assert any(note.startswith("answered by the rules analyst: ") and says in note for note in found.notes)


async def test_a_huge_reply_is_kept_short_and_says_so() -> None:
    found = await run(Scripted(ModelReply("word " * 400_000)))
    assert found.status == "inconclusive"
    assert len(found.summary) < 5_000
    assert len(found.answer) < 101_000
    assert found.answer.endswith(" chars)")
    assert any(note.startswith(RULES) for note in found.notes)


@pytest.mark.parametrize(
    "text",
    [
        "It is \ud800 the ledger",
        '{"status": "inconclusive", "summary": "\\udfff ledger", "claims": [{"text": "\\ud83d", "evidence": []}]}',
        '{"tool": "fill_template", "arguments": {"template": {"\\ud800": [], "y": NaN}, "fills": [{"sql": "'
        + SLOW
        + '", "mappings": {"ms": "y"}}]}}',
        '{"tool": "query_datastore", "arguments": {"sql": "SELECT \'\\ud800\' FROM records"}}',
    ],
)
async def test_what_utf8_cannot_carry_never_gets_through(text: str) -> None:
    """A reply with lone surrogates or NaN gives an answer that any JSON writer takes."""
    found = await run(Scripted(ModelReply(text), ModelReply(text)))
    written = json.dumps(dataclasses.asdict(found), allow_nan=False, ensure_ascii=False)
    assert written.encode("utf-8")


async def test_a_template_after_the_follow_up_is_the_last_answer() -> None:
    found = await run(Scripted(query(SLOW), template(fill("series.0.data.(_row_id)"))))
    assert (found.status, found.mode, found.calls) == ("conclusive", "template", 2)
    assert found.charts == ({"series": [{"data": [900.0, 10.0]}]},)


async def test_all_causes_unsupported_is_inconclusive_with_what_the_rules_found() -> None:
    cause = {
        "entity": "ledger",
        "summary": "down",
        "confidence": 1,
        "evidence": ["SELECT count(*) FROM records WHERE n < 0"],
    }
    claim = {"text": "ledger takes 900 ms", "evidence": [SLOW]}
    found = await run(Scripted(answer(root_causes=[cause], claims=[claim])))
    assert (found.status, found.mode, found.root_causes) == ("inconclusive", "direct", ())
    assert [claim.text for claim in found.unsupported] == ["ledger: down"]
    assert any("aggregates no rows" in note for note in found.notes)
    assert any(note.startswith(RULES) for note in found.notes)


async def test_an_honest_inconclusive_answer_stands_alone() -> None:
    found = await run(Scripted(answer(status="inconclusive", claims=[{"text": "900 ms", "evidence": [SLOW]}])))
    assert (found.status, found.claims[0].evidence) == ("inconclusive", ("e1",))
    assert found.notes == ()


async def test_timings_tokens_and_calls_are_told() -> None:
    model = Scripted(
        dataclasses.replace(query(SLOW), completion_tokens=30), dataclasses.replace(answer(), completion_tokens=12)
    )
    found = await run(model)
    assert set(found.ms) == {"prepare", "model", "query", "model_2", "finish", "total"}
    assert (found.tokens.completion, found.cost) == (42, None)
    assert found.tokens.follow_up == prompts.size(model.asked[1][0])


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


async def test_a_client_that_raises_or_returns_rubbish_leaves_the_answer_to_the_rules() -> None:
    for reply in (RuntimeError("boom"), "just a text", None, ModelReply(None)):  # type: ignore[arg-type]
        found = await run(Scripted(reply))  # type: ignore[arg-type]
        assert found.mode == "rules"
        assert any("answered by the rules analyst" in note for note in found.notes)


async def test_absurd_numbers_in_an_answer_do_no_harm() -> None:
    text = (
        '{"status":"conclusive","summary":"s","root_causes":[{"entity":"cart","summary":"x","confidence":1' + "0" * 400
    )
    found = await run(Scripted(ModelReply(text + f',"evidence":["{SLOW}"]}}]}}')))
    assert found.root_causes[0].confidence == 1.0


def test_an_empty_input_among_others_is_told_and_no_error() -> None:
    rows = '[{"a": 1}, {"a": 2}]'
    for payloads in ([("a", ""), ("b", rows)], [("b", rows), ("a", b" \n")]):
        request = hyve.Request("how many?", tuple(hyve.Payload(name, data) for name, data in payloads))
        store, prompt = hyve.prepare(request)
        with store:
            assert [table.name for table in store.catalog.tables] == ["b"]
            assert "empty_input" in store.flags
            assert "some inputs are empty" in prompt.text
    with pytest.raises(hyve.InputError, match="all 2 inputs are empty"):
        hyve.prepare(hyve.Request("how many?", (hyve.Payload("a", ""), hyve.Payload("b", "\n"))))
    with pytest.raises(hyve.InputError, match="the input 'a' is empty"):
        hyve.prepare(hyve.Request("how many?", (hyve.Payload("a", ""),)))
