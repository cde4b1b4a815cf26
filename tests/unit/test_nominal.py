"""Texts that look like numbers and are names are shown as texts; measures as numbers (H9, H14)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

import hyve
from tests.unit.changes_inputs import at

ROWS = 1_500


def shown(values: list[str], name: str = "v", question: str = "what went wrong?", budget: int = 1_000) -> str:
    """The data of a prompt over rows with these values; among them a needed cut."""
    rows = [{"ts": at(i), "pod": f"p{i % 4}", name: value, "note": "x" * 40} for i, value in enumerate(values)]
    return hyve.view(json.dumps(rows), question=question, budget=budget).text.split("# Question")[0]


@pytest.mark.parametrize("budget", [1_000, 2_000, 8_000])
@pytest.mark.parametrize("before", ["4.1", "4.9"])
@pytest.mark.parametrize("name", ["version", "v"])
def test_a_deploy_of_another_version_is_told_as_it_is_written(name: str, before: str, budget: int) -> None:
    """H14, H18: as numbers 4.10 is 4.1, and comes before 4.9."""
    text = shown([before if i < 600 else "4.10" for i in range(ROWS)], name, budget=budget)
    assert f"- {name} VARCHAR: 2 values: 4.10 ×900, {before} ×600" in text
    assert f"- {name}: {before}→4.10 from rowid 600" in text
    assert f"{name}_num" not in text


def test_values_of_which_numbers_make_one_are_told_apart_and_counted() -> None:
    draw = random.Random(6)
    accounts = [draw.choice(["0012", "12", "+12", "12.0"]) for _ in range(ROWS)]
    line = next(line for line in shown(accounts, "acct").split("\n") if line.startswith("- acct"))
    assert line.startswith("- acct VARCHAR: 4 values: ")
    assert all(f"{value} ×{accounts.count(value)}" in line for value in set(accounts))


@pytest.mark.parametrize(
    "value",
    [
        lambda i: ("1e3", "1000")[i % 2],
        lambda i: ("007", "7", "08")[i % 3],
        lambda i: f"{10 + i % 90}e{100 + i % 888}",
        lambda i: f"{i % 40:05}",
        lambda i: ("+491511", "491511")[i % 2],
    ],
)
def test_names_of_digits_are_texts(value: Callable[[int], str]) -> None:
    text = shown([value(i) for i in range(ROWS)])
    assert "- v VARCHAR" in text
    assert f"|p0|{value(0)}" in text


def test_who_asks_for_a_zip_code_can_write_it_in_a_query() -> None:
    """H17, H24: the text column is shown, what is asked for is counted, and the example query is of it."""
    codes = [f"{i % 40:05}" for i in range(ROWS)]
    assert codes.count("00033") == 37
    text = shown(codes, "zip", "why is zip 00033 slow?", 2_000)
    assert "- zip VARCHAR: " in text
    assert "- zip = 00033: 37 rows" in text
    assert "WHERE zip = '00033' ORDER BY" in text


@pytest.mark.parametrize(
    "value",
    [
        lambda draw: f"{draw.gauss(100, 9):.2f}",
        lambda draw: f"{draw.gauss(0, 9):+.0f}",
        lambda draw: draw.choice(["2", "2.0", "1.5", "0.5", "0", "0.0", "-1", "1e-07", "1e+21"]),
        lambda draw: f"{draw.gauss(100, 9):.{draw.choice([1, 2])}f}",
        lambda draw: f"{draw.randrange(300)} ({draw.randrange(9) + 1}m2s ago)",
        lambda draw: str(draw.randrange(500)),
    ],
)
def test_measures_stay_numbers_however_they_are_written(value: Callable[[random.Random], str]) -> None:
    """H9: their means, levels and extremes are told."""
    draw = random.Random(3)
    assert "- v_num " in shown([value(draw) for _ in range(ROWS)])


def test_both_columns_are_in_the_store() -> None:
    """Invariant 1: what is shown takes nothing from what can be asked."""
    made = hyve.Datastore.from_text("\n".join(["a,version", *(f"{i},4.{i % 3 + 9}" for i in range(9))]))
    found = {column.name: column.type for column in made.catalog.tables[0].columns}
    assert found["version"] == "VARCHAR"
    assert found["version_num"] == "DOUBLE"
    assert made.query("SELECT count(*) AS n FROM records WHERE version = '4.10'").rows == ((3,),)
