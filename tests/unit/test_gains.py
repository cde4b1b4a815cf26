"""More budget only adds to a view, at every step (H20): rows, lines, names, queries stay, and no cell gets shorter."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import prompt
from hyve.rowview import show
from tests.unit import gains
from tests.unit.gains_inputs import inputs

INPUTS = inputs()


def climb(text: str, budgets: range, question: str = "why is it slow?") -> int:
    """Compares each view with the one before; the number of those that were cut."""
    before: gains.Shown | None = None
    steps = 0
    with hyve.Datastore.from_text(text) as store:
        for budget in budgets:
            try:
                shown = prompt.build(store, question, budget=budget)
            except hyve.BudgetError:
                continue
            assert shown.prompt_tokens <= budget
            if not shown.cut:
                break
            view = gains.read(shown.text)
            if before is not None:
                lost = gains.lost(before, view)
                assert not lost, (budget, lost)
            unused = budget - shown.prompt_tokens
            assert unused <= max(40, budget * 0.025), (budget, unused)
            before, steps = view, steps + 1
    return steps


@pytest.mark.parametrize("name", INPUTS)
def test_each_step_of_50_tokens_only_adds(name: str) -> None:
    """H20: also no more than a few percent are left while something is cut."""
    assert climb(INPUTS[name], range(500, 1_851, 50)) > 20


@pytest.mark.parametrize("name", ["long texts", "chinese", "nested", "wide", "few rows of many columns"])
def test_so_does_each_larger_one(name: str) -> None:
    assert climb(INPUTS[name], range(1_900, 8_001, 50 if name == "long texts" else 350)) > 10


def test_cells_get_longer_only_when_all_is_said_and_then_evenly() -> None:
    """A cell that is larger than the budget, and several, are shown as far as there is room."""
    assert climb(INPUTS["a cell larger than the budget"], range(1_000, 20_001, 1_900)) == 11
    assert climb(INPUTS["long cells"], range(1_000, 20_001, 1_900)) == 11


@given(
    st.integers(0, 10_000), st.integers(500, 3_000), st.integers(1, 80), st.sampled_from(["", "why is host-3 slow?"])
)
@settings(max_examples=12, deadline=None)
def test_a_few_tokens_more_only_add(seed: int, budget: int, step: int, question: str) -> None:
    draw = random.Random(seed)
    wide = draw.choice([2, 9, 30])
    records = [
        {
            "host": f"host-{i % draw.choice([3, 30])}",
            "text": "lorem ipsum " * draw.choice([1, 2, 30]) + str(draw.random()),
            **{f"f{k}": draw.choice([i, i / 7, "x", "long " * 20, None, True, [1, 2]]) for k in range(wide)},
        }
        for i in range(draw.choice([2, 40, 400]))
    ]
    budgets = range(budget, budget + 4 * step + 1, step)
    before: gains.Shown | None = None
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        for tokens in budgets:
            try:
                shown = prompt.build(store, question, budget=tokens)
            except hyve.BudgetError:
                continue
            if not shown.cut:
                break
            view = gains.read(shown.text)
            assert before is None or not gains.lost(before, view)
            before = view


def test_what_a_comparison_finds() -> None:
    """The reader tells what is lost: a row, a cell that is shorter, a line that tells less, a name."""

    def view(data: str) -> gains.Shown:
        return gains.read(f"x\n# Data 1\n{data}\n# End 1")

    small = view(
        "# times are UTC; … for a cell: left out\n## records: 9 rows\n"
        "- a VARCHAR: 3 values: x ×5, y ×2, ... (1 more)\n- constant: b = 1\n"
        "rowid|a|c\n1|x|abc…(+9 chars)\n2|y|…\n... (7 more rows)\nOther tables (rows): t 4"
    )
    large = view(
        "# times are UTC\n## records: 9 rows\n- a VARCHAR: 3 values: x ×5, y ×2, z ×2\n- constant: b = 1, d = 2\n"
        "rowid|a|c\n1|x|abcdef…(+6 chars)\n2|y|q\n3|z|w\n... (6 more rows)\n## t: 4 rows"
    )
    assert not gains.lost(small, large)
    lost = gains.lost(large, small)
    assert lost.rows == ["records 3"]
    assert lost.cells == ["records 1 c: abcdef…(+6 chars) -> abc…(+9 chars)", "records 2 c: q -> …"]
    assert [line.split(":")[0] for line in lost.lines] == ["records", "records", "table t"]


@pytest.mark.parametrize("budget", [900, 1_500, 4_000])
def test_a_cell_that_is_left_out_is_explained_where_there_is_one(budget: int) -> None:
    """H20: `gains.read` fails where a cell is `…` and the notes don't say what that is."""
    for name in ("nested", "wide", "spans"):
        text = hyve.view(INPUTS[name], budget=budget).text
        shown = gains.read(text)
        left_out = any("…" in row.values() for table in shown.tables.values() for row in table.rows.values())
        assert ("… for a cell: left out" in shown.notes) == left_out


def escaped(cell: str) -> str:
    """A cell as it is shown whole: backslashes that could be taken for those of an escape are two."""
    return re.sub(r"\\(?=[bfnrtu\\|…]|$)", r"\\\\", cell).replace("|", "\\|")


@pytest.mark.parametrize("own", ["cut …(+5 chars)", "…", "…(+12 chars)", "a\\…(+5 chars)"])
def test_a_text_like_the_mark_of_a_cut_is_told_apart(own: str) -> None:
    """H20: the data's own mark has a backslash, which is explained where it occurs and only there."""
    records = [{"id": i, "text": f"request {i * 7919} " + "x" * (i % 5)} for i in range(900)]
    records[450]["text"] = own
    text = hyve.view(json.dumps(records), question="", budget=4_000).text
    shown = gains.read(text)
    cell = shown.tables["records"].rows[450]["text"]
    assert cell == escaped(own).replace("…", "\\…")
    assert "\\… in a cell: the data's own …" in shown.notes
    records[450]["text"] = "…and so on…"
    assert "the data's own" not in hyve.view(json.dumps(records), question="", budget=4_000).text


@given(st.text(alphabet="ab\\…(+5 chars)|", max_size=40), st.integers(1, 30))
def test_a_mark_without_an_odd_number_of_backslashes_is_the_mark_of_a_cut(cell: str, limit: int) -> None:
    shown = show(cell, limit)
    mark = re.search(r"(\\*)…\(\+(\d+) chars\)$", shown)
    cut = mark is not None and len(mark[1]) % 2 == 0
    if cut:
        assert mark is not None
        assert escaped(cell).startswith((shown[: mark.start()] + mark[1]).removesuffix("\\"))
        assert len(cell) >= int(mark[2]) > 0
    else:
        whole = re.sub(r"\\(…(\(\+\d+ chars\))?)$", r"\1", shown) if re.search(r"(?<!\\)(\\\\)*\\…", shown) else shown
        assert whole.replace('""', "") == escaped(cell).replace('""', "")
