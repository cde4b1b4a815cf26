"""Replies of every shape -> decisions, and answers -> conclusions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.errors import ReplyError
from hyve.reply import (
    TOOLS,
    Conclusion,
    Direct,
    Fill,
    FillMapping,
    ModelReply,
    Query,
    Template,
    ToolCall,
    conclusion,
    decide,
)

SQL = "SELECT service, count(*) FROM spans GROUP BY 1"
FILL = {"sql": SQL, "mappings": [{"column": "n", "path": "series.(i).data.(j).y"}]}
FILLED = Fill(SQL, (FillMapping("n", "series.(i).data.(j).y"),))
CHART = {"series": []}


def native(name: str, arguments: Any, text: str = "") -> ModelReply:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ModelReply(text, (ToolCall("c1", name, given),))


@pytest.mark.parametrize("name", ["query_datastore", "QueryDatastore", "QUERYDATASTORE", "functions.query_datastore"])
def test_a_native_query(name: str) -> None:
    reply = native(name, {"sql": SQL})
    assert decide(reply) == Query(SQL, reply.tool_calls[0])


def test_arguments_as_an_object_are_those_of_an_anthropic_block() -> None:
    """A `tool_use` block has an object as `input`; the call then holds its text, as OpenAI's does."""
    block: Any = {"sql": SQL}
    call = ToolCall("toolu_1", "query_datastore", block)
    assert call == ToolCall("toolu_1", "query_datastore", json.dumps(block))
    assert decide(ModelReply("Let me look.", (call,))) == Query(SQL, call)
    made = ToolCall("toolu_2", "fill_template", {"template": CHART, "fills": [FILL]})  # type: ignore[arg-type]
    assert decide(ModelReply("The chart:", (made,))) == Template(CHART, (FILLED,), made, "The chart:")


def test_the_text_beside_a_query_goes_along() -> None:
    decision = decide(native("query_datastore", {"sql": SQL}, "The ledger."))
    assert isinstance(decision, Query)
    assert decision.text == "The ledger."


def test_items_above_the_limit_of_an_answer_are_counted() -> None:
    found = conclusion(json.dumps({"summary": "s", "claims": ["c"] * 57, "next_steps": ["n"] * 51}))
    assert (len(found.claims), len(found.next_steps), found.dropped) == (50, 50, 8)


def test_a_text_that_is_anthropic_content_blocks() -> None:
    text = json.dumps(
        [
            {"type": "text", "text": "I need rows."},
            {"type": "tool_use", "id": "toolu_1", "name": "query_datastore", "input": {"sql": "SELECT 1"}},
        ]
    )
    assert decide(ModelReply(text)) == Query("SELECT 1", None)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("query_datastore", "fill_template"), Query),
        (("fill_template", "query_datastore"), Template),
        (("get_weather", "fill_template", "query_datastore"), Template),
        (("BackfillData", "query_datastore"), Query),
    ],
)
def test_of_two_calls_at_once_the_first_usable_one_counts(names: tuple[str, ...], expected: type) -> None:
    given = {
        "query_datastore": {"sql": SQL},
        "fill_template": {"template": CHART, "fills": [FILL]},
        "BackfillData": FILL,
    }
    calls = tuple(ToolCall(f"c{i}", name, json.dumps(given.get(name, {}))) for i, name in enumerate(names))
    decision = decide(ModelReply("text beside", calls))
    assert isinstance(decision, expected)
    assert getattr(decision, "text", "text beside") == "text beside"
    written = json.dumps([{"name": call.name, "arguments": json.loads(call.arguments)} for call in calls])
    assert isinstance(decide(ModelReply(written)), expected)


def test_lone_surrogates_and_no_numbers_never_leave_the_reply() -> None:
    arguments = (
        '{"template": {"a\\ud800": ["\\udfff", "\\ud83d\\ude80", NaN, -Infinity]}, "fills": [' + json.dumps(FILL) + "]}"
    )
    decision = decide(ModelReply("\udfff beside", (ToolCall("c", "fill_template", arguments),)))
    assert isinstance(decision, Template)
    assert decision.template == {"a\ufffd": ["\ufffd", "\U0001f680", None, None]}
    assert decision.text == "\ufffd beside"
    assert conclusion('{"summary": "a\\udc00", "claims": ["\\ud800b"]}').claims[0].text == "\ufffdb"


def test_arguments_beyond_a_megabyte_are_no_call_rather_than_half_of_one() -> None:
    huge = json.dumps({"sql": "SELECT '" + "x" * 1_200_000 + "'"})
    with pytest.raises(ReplyError, match="are no JSON object"):
        decide(ModelReply("", (ToolCall("c", "query_datastore", huge),)))


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps({"sql": SQL}),
        json.dumps(json.dumps({"sql": SQL})),
        json.dumps({"query": SQL}),
        json.dumps({"SQL": f"  {SQL}\n"}),
        '{"sql": "' + SQL + '",}',
        "{'sql': '" + SQL + "'}",
        '{"sql": "' + SQL + '"',
        SQL,
        json.dumps(SQL),
        f"```sql\n{SQL}\n```",
    ],
)
def test_arguments_in_every_wrapping(arguments: str) -> None:
    decision = decide(native("query_datastore", arguments))
    assert isinstance(decision, Query)
    assert decision.sql == SQL


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}',
        '```json\n{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}\n```',
        'I need more.\n```\n{"tool": "QueryDatastore", "args": {"sql": "SELECT 1"}}\n```\nThen I answer.',
        'Let me look: {"name": "query_datastore", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}',
        '{"function": {"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}}',
        '{"tool_calls": [{"function": {"name": "query_datastore", "arguments": "{\\"sql\\": \\"SELECT 1\\"}"}}]}',
        '[{"name": "query_datastore", "parameters": {"sql": "SELECT 1"}}]',
        '{"query_datastore": {"sql": "SELECT 1"}}',
        '{"type": "tool_use", "name": "query_datastore", "input": {"sql": "SELECT 1"}}',
        '{"name": "query_datastore", "sql": "SELECT 1"}',
        '{"sql": "SELECT 1"}',
        '{"name": "query_datastore", "arguments": {"sql": "SELECT 1"},}',
        '{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}',
        "{'name': 'query_datastore', 'arguments': {'sql': 'SELECT 1'}}",
        'The set {a, b} is small. {"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}',
        '<think>{"sql": "SELECT 2"} no</think>{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}',
        "```sql\nSELECT 1\n```",
        "```\nSELECT 1```",
        'query_datastore(sql="SELECT 1")',
        "`QueryDatastore('SELECT 1')`",
        '```python\nquery_datastore(sql="""SELECT 1""")\n```',
        '{"note": 1}\n{"name": "query_datastore", "arguments": {"sql": "SELECT 1"}}',
    ],
)
def test_a_call_in_the_text(text: str) -> None:
    assert decide(ModelReply(text)) == Query("SELECT 1", None)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fill_template", {"template": CHART, "fills": [FILL]}),
        ("GenTemplateAndBackfill", {"template": CHART, "fills": [FILL]}),
        ("GenTemplateAndBackfill", {"template": json.dumps(CHART), "BackfillData": FILL}),
        ("fill_template", {"template": CHART, "fills": json.dumps([FILL])}),
        ("fill_template", {"template": CHART, "fills": [json.dumps(FILL)]}),
        ("fill_template", {"template": CHART, "sql": SQL, "mappings": {"n": "series.(i).data.(j).y"}}),
        ("fill_template", {"template": CHART, "fills": [{"sql": SQL, "mappings": FILL["mappings"][0]}]}),
        ("fill_template", {"template": CHART, "fills": [{"name": "BackfillData", "arguments": FILL}]}),
        ("BackfillData", {"template": CHART, **FILL}),
    ],
)
def test_a_template_in_every_spelling(name: str, arguments: Any) -> None:
    reply = native(name, arguments, "Here is the chart.")
    assert decide(reply) == Template(CHART, (FILLED,), reply.tool_calls[0], "Here is the chart.")


def test_a_template_and_its_fills_as_two_calls() -> None:
    calls = (
        ToolCall("a", "GenTemplateAndBackfill", json.dumps({"template": CHART})),
        ToolCall("b", "BackfillData", json.dumps(FILL)),
    )
    assert decide(ModelReply("", calls)) == Template(CHART, (FILLED,), calls[0])


def test_a_template_in_the_text_keeps_what_stands_beside_it() -> None:
    text = "The chart:\n```json\n" + json.dumps({"template": CHART, "fills": [FILL]}) + "\n```\nSpeed fell."
    decision = decide(ModelReply(text))
    assert decision == Template(CHART, (FILLED,), None, decision.text)
    assert decision.text.split() == ["The", "chart:", "Speed", "fell."]


def test_of_several_calls_the_first_usable_one_counts() -> None:
    calls = (
        ToolCall("a", "get_weather", "{}"),
        ToolCall("b", "query_datastore", "{}"),
        ToolCall("c", "query_datastore", '{"sql": "SELECT 1"}'),
        ToolCall("d", "query_datastore", '{"sql": "SELECT 2"}'),
    )
    assert decide(ModelReply("", calls)) == Query("SELECT 1", calls[2])


def test_a_call_that_cannot_be_used_leaves_the_text() -> None:
    assert decide(native("get_weather", "{}", "The pool ran dry.")) == Direct("The pool ran dry.")
    assert decide(native("query_datastore", "rubbish", "The pool ran dry.")) == Direct("The pool ran dry.")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (ModelReply(""), "empty"),
        (ModelReply(" \n "), "empty"),
        (ModelReply("<think>hm</think>"), "empty"),
        (native("get_weather", "{}"), "no tool 'get_weather', only query_datastore and fill_template"),
        (native("query_datastore", "rubbish"), "no JSON object: 'rubbish'"),
        (native("query_datastore", "[1]"), "no JSON object"),
        (native("query_datastore", {"sql": " "}), "no `sql`"),
        (native("query_datastore", {"sql": 7}), "no `sql`"),
        (native("fill_template", {"fills": [FILL]}), "no `template`"),
        (native("fill_template", {"template": "text", "fills": [FILL]}), "no `template`"),
        (native("fill_template", {"template": CHART}), "no `fills`"),
        (native("fill_template", {"template": CHART, "fills": []}), "no `fills`"),
        (native("fill_template", {"template": CHART, "fills": [{"sql": SQL}]}), "fill 0 has no `mappings`"),
        (native("fill_template", {"template": CHART, "fills": [FILL, {"mappings": []}]}), "fill 1 has no `sql`"),
        (
            native("fill_template", {"template": CHART, "fills": [{"sql": SQL, "mappings": [{"column": "n"}]}]}),
            "a mapping",
        ),
        (native("fill_template", {"template": CHART, "fills": [FILL] * 65}), "more than 64 fills"),
        (ModelReply('{"name": "get_weather", "arguments": {}}'), "no tool 'get_weather'"),
        (ModelReply('```json\n{"name": "query_datastore", "arguments": {}}\n```'), "no `sql`"),
    ],
)
def test_nothing_usable_is_an_error_that_says_why(reply: ModelReply, says: str) -> None:
    with pytest.raises(ReplyError, match=says):
        decide(reply)


@pytest.mark.parametrize(
    "text",
    [
        "The pool of checkout ran dry after the deployment.",
        "Run this:\n```sql\nSELECT 1\n```",
        "```sql\nDROP TABLE x\n```",
        'query_datastore(sql="")',
        '{"status": "conclusive", "summary": "x", "claims": [{"text": "t", "evidence": ["SELECT 1"]}]}',
        '{"name": "checkout", "replicas": 3}',
        '[{"name": "checkout"}]',
        '{"name": "checkout", "input": 5, "output": 6}',
        "{ not json",
        "I can't use query_datastore here.",
        "[1, 2, 3]",
    ],
)
def test_anything_else_is_the_answer_itself(text: str) -> None:
    assert decide(ModelReply(text)) == Direct(text)


def test_the_tools_are_specified_as_the_reply_is_read() -> None:
    assert [tool["function"]["name"] for tool in TOOLS] == ["query_datastore", "fill_template"]
    assert TOOLS[0]["function"]["parameters"]["required"] == ["sql"]
    assert "DETECT_ANOMALY('table', 'column'" in TOOLS[0]["function"]["description"]
    items = TOOLS[1]["function"]["parameters"]["properties"]["fills"]["items"]
    assert list(items["properties"]) == ["sql", "mappings"]
    assert list(items["properties"]["mappings"]["items"]["properties"]) == ["column", "path"]


ANSWER = {
    "status": "conclusive",
    "summary": "The pool of checkout ran dry.",
    "root_causes": [
        {"entity": "checkout", "summary": "pool too small", "confidence": 0.9, "evidence": ["SELECT 1", "SELECT 2"]}
    ],
    "claims": [{"text": "errors began at 10:05", "evidence": ["SELECT 3"]}],
    "next_steps": ["raise the pool", "roll back"],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ANSWER),
        f"```json\n{json.dumps(ANSWER, indent=2)}\n```",
        f"Here is my answer:\n{json.dumps(ANSWER)}\nHope that helps {{really}}.",
        json.dumps({"diagnosis": ANSWER}),
        json.dumps([ANSWER]),
        json.dumps(ANSWER)[:-1] + ",}",
        json.dumps(ANSWER)[:-1],
        json.dumps({key.title().replace("_", ""): value for key, value in ANSWER.items()}),
        "<think>{}</think>" + json.dumps(ANSWER),
    ],
)
def test_an_answer_is_read_in_every_wrapping(text: str) -> None:
    found = conclusion(text)
    assert found.structured
    assert (found.status, found.summary) == ("conclusive", "The pool of checkout ran dry.")
    cause = found.root_causes[0]
    assert (cause.entity, cause.summary, cause.confidence) == ("checkout", "pool too small", 0.9)
    assert cause.evidence == ("SELECT 1", "SELECT 2")
    assert [(claim.text, claim.evidence) for claim in found.claims] == [("errors began at 10:05", ("SELECT 3",))]
    assert found.next_steps == ("raise the pool", "roll back")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.8, 0.8), (1, 1.0), (80, 0.8), ("80%", 0.8), ("0.8", 0.8), ("85", 0.85), ("high", 0.85), ("Medium", 0.5),
        ("8/10", 0.8), (" low ", 0.25), (None, 0.0), (True, 0.0), ("who knows", 0.0), (-3, 0.0), (1e9, 1.0),
        (float("nan"), 0.0), ([0.5], 0.0), ({}, 0.0), ("~90 %", 0.9),
    ],
)  # fmt: skip
def test_confidence_in_every_spelling(given: Any, read: float) -> None:
    text = json.dumps({"summary": "s", "root_causes": [{"entity": "a", "confidence": given}]})
    assert conclusion(text).root_causes[0].confidence == pytest.approx(read)


def test_loose_types_are_taken_as_meant() -> None:
    found = conclusion(
        json.dumps(
            {
                "status": "Inconclusive",
                "root_causes": {"service": "cart", "description": "slow", "evidence": {"sql": "SELECT 1"}},
                "claims": [
                    "a fact",
                    {"claim": "another", "evidence": "```sql\nSELECT 2\n```"},
                    {"evidence": []},
                    5,
                    None,
                ],
                "next_steps": "look again",
            }
        )
    )
    assert found.status == "inconclusive"
    assert (found.root_causes[0].entity, found.root_causes[0].evidence) == ("cart", ("SELECT 1",))
    assert [(claim.text, claim.evidence) for claim in found.claims] == [
        ("a fact", ()),
        ("another", ("SELECT 2",)),
        ("5", ()),
    ]
    assert found.next_steps == ("look again",)


def test_prose_is_a_summary_without_claims() -> None:
    assert conclusion(" The pool ran dry. ") == Conclusion(summary="The pool ran dry.")
    assert conclusion('{"other": 1}') == Conclusion(summary='{"other": 1}')
    assert conclusion("") == Conclusion()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["status", "summary", "root_causes", "claims", "evidence", "sql", "name", "arguments", "template"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(_json, st.text(max_size=30), st.booleans())
def test_no_reply_raises_anything_but_a_reply_error(value: Any, around: str, cut: bool) -> None:
    text = around + json.dumps(value)[: -1 if cut else None] + around
    found = conclusion(text)
    assert isinstance(found, Conclusion)
    assert all(0.0 <= cause.confidence <= 1.0 for cause in found.root_causes)
    for reply in (ModelReply(text), native("fill_template", text), native("query_datastore", json.dumps(value))):
        try:
            decision = decide(reply)
        except ReplyError:
            continue
        assert isinstance(decision, (Direct, Query, Template))


@pytest.mark.parametrize(
    "text",
    ["{" * 1_000_000, "[" * 1_000_000, '{"a":' * 200_000, "[1," * 300_000, "```json\n" * 100_000, '{"a' * 300_000,
     '{"sql": "' + "x" * 2_000_000, "{'a': " * 40_000, "\\" * 1_000_000, "{} " * 300_000],
    ids=lambda text: text[:10],
)  # fmt: skip
def test_huge_rubbish_is_read_without_harm(text: str) -> None:
    decision = decide(ModelReply(text))
    assert isinstance(decision, (Direct, Query))
    assert conclusion(text).claims == ()
