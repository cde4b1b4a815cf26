"""What the second call is told: rows and errors under a cap of their own (H30; invariants 2 and 3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import prompt as prompts
from hyve import rowtext, stages
from hyve.reply import ModelReply, ToolCall
from hyve.sql import QueryResult
from tests.unit.scripted import SLOW, Scripted, answer, query, run


async def test_follow_up_rows_stay_under_their_cap() -> None:
    model = Scripted(query("SELECT * FROM records"), answer())
    await run(model)
    content = model.asked[1][0][-1]["content"]
    assert hyve.count_tokens(content) <= prompts.FOLLOW_UP_BUDGET
    shown = sum(line.count("|") == 3 for line in content.split("\n")) - 1
    assert content.startswith("3,000 rows")
    assert f"... ({3000 - shown:,} more rows)" in content


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


@settings(max_examples=40, deadline=None)
@given(
    columns=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=40, unique=True),
    value=st.one_of(st.text(max_size=300), st.floats(), st.lists(st.text(max_size=50), max_size=20), st.none()),
    rows=st.integers(0, 60),
    total=st.integers(0, 10**9),
    budget=st.integers(150, 2000),
)
def test_what_a_query_gave_stays_under_the_cap_of_the_second_call(
    columns: list[str], value: Any, rows: int, total: int, budget: int
) -> None:
    """Invariant 2: a follow-up has its own cap; and its rows are counted truly (invariant 3)."""
    given_rows = tuple((value,) * len(columns) for _ in range(rows))
    result = QueryResult("SELECT", tuple(columns), ("?",) * len(columns), given_rows, rows + total, 0.0)
    text = rowtext.rows_text(result, budget)
    assert hyve.count_tokens(text) <= budget
    assert text.startswith(f"{rows + total:,} rows\n")


@settings(max_examples=12, deadline=None)
@given(st.text(max_size=3000), st.integers(150, 2000), st.booleans())
def test_an_error_and_its_tables_stay_under_the_cap_of_the_second_call(said: str, budget: int, wide: bool) -> None:
    row = {f"column_{i}_of_many_that_are_named_at_length": i for i in range(60)} if wide else {"ms": 1}
    with stages.load((stages.Payload("rows", json.dumps([row] * 5)),)) as store:
        text = rowtext.error_text(store, "SELECT nothing FROM records", hyve.SqlError(said), budget)
    assert hyve.count_tokens(text) <= budget
    assert "records(_row_id" in text


async def test_a_row_too_wide_for_the_second_call_is_shown_with_shorter_cells() -> None:
    wide = "SELECT " + ", ".join(f"repeat('word ', 100) AS c{i}" for i in range(60)) + " FROM records LIMIT 3"
    model = Scripted(query(wide), answer())
    await run(model)
    lines = model.asked[1][0][-1]["content"].split("\n")
    assert lines[0] == "3 rows"
    assert lines[2].startswith(f"{'word ' * 20}…(+400 chars)|word")


async def test_nested_values_of_the_second_call_are_json() -> None:
    model = Scripted(
        query("SELECT [1, 2] AS l, {'a': true, 'b': 'x|y'} AS s, NULL AS n, false AS f FROM records LIMIT 1"), answer()
    )
    await run(model)
    assert 'l|s|n|f\n[1,2]|{"a":true,"b":"x\\|y"}||false' in model.asked[1][0][-1]["content"]


async def test_cells_that_are_cut_for_the_second_call_say_so() -> None:
    model = Scripted(query("SELECT repeat('A', 1000) || 'END' AS m FROM records LIMIT 1"), answer())
    await run(model)
    assert "…(+603 chars)" in model.asked[1][0][-1]["content"]


def test_a_text_like_the_mark_of_a_cut_is_told_apart_in_rows_of_a_query() -> None:
    """H20: the data's own mark has a backslash, which is explained where it occurs and only there."""
    texts = ["a…(+5 chars)", "…", "b" * 500, "c" * 399 + "\\" + "d" * 99, "e…"]
    result = QueryResult("SELECT", ("t",), ("VARCHAR",), tuple((text,) for text in texts), 5, 0.0)
    lines = rowtext.rows_text(result, 2_000).split("\n")
    assert lines[2:4] == ["a\\…(+5 chars)", "\\…"]
    assert lines[4:7] == ["b" * 400 + "…(+100 chars)", "c" * 399 + "…(+100 chars)", "e…"]
    assert lines[7:] == ["\\… in a cell: the data's own …"]
    plain = QueryResult("SELECT", ("t",), ("VARCHAR",), (("b" * 500,), ("",)), 2, 0.0)
    assert rowtext.rows_text(plain, 2_000).split("\n")[2:] == ["b" * 400 + "…(+100 chars)", ""]


def test_tables_are_named_so_that_a_statement_can_read_them() -> None:
    """A model has one query: `FROM values` is read by DuckDB and refused by the guard's second parser."""
    with stages.load((stages.Payload("rows", json.dumps({"values": [{"n": i} for i in range(3)]})),)) as store:
        text = rowtext.error_text(store, "SELECT nope FROM values", hyve.SqlError("no"), 500)
        assert '"values"(' in text
        assert store.query('SELECT count(*) FROM "values"').rows == ((3,),)
