"""Views of tables of very many columns: what is told is chosen by what the columns hold (H14, H18, H20)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import hyve
from tests.unit import gains

ODD = 987.65


def rows_of(before: int, behind: int = 0, varied: bool = False, rows: int = 300) -> list[dict[str, Any]]:
    """Rows with `lag`, which is far out in one, between so many columns that tell nothing."""
    draw = random.Random(2)

    def cells(first: int, count: int) -> dict[str, Any]:
        return {f"l_{k}": draw.randint(1, 9) if varied else f"v-{k}" for k in range(first, first + count)}

    return [
        {**cells(0, before), "lag": ODD if i == rows // 2 else round(draw.gauss(5, 0.2), 2), **cells(before, behind)}
        for i in range(rows)
    ]


def shown(rows: list[dict[str, Any]], question: str, budget: int) -> str:
    return gains.data_of(hyve.view(json.dumps(rows), question, budget).text)


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
@pytest.mark.parametrize(("before", "behind"), [(470, 0), (490, 0), (600, 0), (990, 0), (600, 300)])
def test_the_one_column_that_varies_is_told_wherever_it_is(before: int, behind: int, budget: int) -> None:
    """H18: its row that stands out is shown, though nobody asked for it."""
    text = shown(rows_of(before, behind), "what is wrong?", budget)
    assert re.search(rf"^- lag DOUBLE: .*\.\.{ODD}", text, re.MULTILINE)
    assert re.search(rf"^150\|.*{ODD}", text, re.MULTILINE)


@pytest.mark.parametrize("question", ["what is wrong?", "why is lag high?"])
def test_of_columns_that_all_vary_the_one_with_the_odd_value_is_told(question: str) -> None:
    text = shown(rows_of(600, varied=True), question, 2_000)
    assert re.search(r"^rowid\|.*\blag\b", text, re.MULTILINE)
    assert re.search(rf"^150\|.*{ODD}", text, re.MULTILINE)


@pytest.mark.parametrize("kind", ["text", "number"])
def test_a_column_that_the_question_names_is_told_wherever_it_is(kind: str) -> None:
    """H20: also one of which all values are the same, among others that vary."""
    rows = rows_of(700, varied=True)
    for row in rows:
        row["queue_depth"] = "full" if kind == "text" else 17
    text = shown(rows, "is queue_depth too high?", 1_000)
    assert re.search(rf"^- .*\bqueue_depth\b.* = {'full' if kind == 'text' else 17}\b", text, re.MULTILINE)


def test_columns_of_any_type_are_looked_at() -> None:
    """No type of a column that a table may hold is an error: the one that differs is told."""
    rows = rows_of(500, rows=40)
    for i, row in enumerate(rows):
        row.update(
            at=f"2026-03-01T10:00:{i:02d}Z",
            flag=i == 7,
            large=10**30 + i,
            exact=123456789.123456789123456789,
            mixed="n/a" if i == 9 else i,
            tags=["a"] * (1 + (i == 3)),
            none=None,
            rare="E_DB_POOL" if i == 5 else None,
            huge=1e308 if i % 2 else -1e308,
        )
    text = shown(rows, "what is wrong?", 2_000)
    for name in ("at", "flag", "large", "mixed", "tags", "rare", "huge", "lag"):
        assert re.search(rf"\b{name}(_|\b)", text), name


def test_of_a_table_without_rows_no_column_is_described() -> None:
    """A list that is empty wherever it is one makes a table of no rows; all else is said before it is looked at."""
    rows: list[dict[str, Any]] = [
        *({"a": None, "b": None}, {"a": None, "b": None}, {"a": None, "b": 0.0}, {"a": 0, "0:\x07": -447}),
        {"a": [], "b": 3.7715289286949304e16, "": -970454365, "0:0": None},
        {"a": None, "b": 1.6157864195815542e16, "": -1934753367376947200, "0\x1f0": -1, "0:\x07𐀀": -1e15},
    ] * 9
    text = shown([*rows, {"end": 1}], "", 1_500)
    assert "## records: 55 rows" in text
    assert "## a: 0 rows (from a[])" in text
