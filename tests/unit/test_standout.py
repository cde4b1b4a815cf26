"""Rows that stand out though nobody asked: what is absent, odd ids and numbers, categories, all columns (H18, H19)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import rank
from hyve.oddtexts import far_numbers
from tests.unit.changes_inputs import data_of, requests, rows_in


def canary(rows: list[dict[str, Any]], slower: float) -> None:
    """A sixth of the requests goes to pods of another version, all the time."""
    rng = np.random.default_rng(2)
    for row in rows:
        new = rng.random() < 1 / 6
        row["version"], row["pod"] = ("v2", f"new-{rng.integers(2)}") if new else ("v1", f"old-{rng.integers(8)}")
        row["service"] = f"svc-{rng.integers(3)}"
        row["latency"] = round(float(100 * np.exp(0.5 * rng.normal())) * (slower if new else 1), 2)


@pytest.mark.parametrize("budget", [1000, 2000, 4000])
def test_versions_side_by_side_of_which_one_is_slower_are_told(budget: int) -> None:
    """H14, H18: no change in time. The medians are of all rows."""
    rows = requests(1)
    canary(rows, 2.2)
    text = data_of(rows, budget)
    told = re.findall(r"^- latency: median by version: v1 (\S+), v2 (\S+)$", text, re.MULTILINE)
    medians = [np.median([row["latency"] for row in rows if row["version"] == v]) for v in ("v1", "v2")]
    assert [tuple(map(float, pair)) for pair in told] == [pytest.approx(medians, rel=1e-3)]
    assert "level" not in text


def test_versions_alike_and_those_of_different_services_are_not_told() -> None:
    rows = requests(1)
    canary(rows, 1.0)
    assert "median by" not in data_of(rows, 2000)
    for row in rows:  # what differs is the service
        row["version"] = {"svc-0": "1.7", "svc-1": "3.2", "svc-2": "3.2"}[row["service"]]
        row["latency"] *= {"svc-0": 1, "svc-1": 3, "svc-2": 3}[row["service"]]
    assert "median by" not in data_of(rows, 2000)


def test_names_of_categories_cannot_end_the_line() -> None:
    rows = requests(1)
    canary(rows, 3.0)
    for row in rows:
        row["version"] = "a\n## b: 1" if row["version"] == "v2" else "v1\u2028x"
    told = next(line for line in data_of(rows, 2000).split("\n") if "median by" in line)
    assert re.fullmatch(r'- latency: median by version: "v1\\u2028x" [\d.]+, "a\\n## b: 1" [\d.]+', told)


@pytest.mark.parametrize("kind", ["null", "host", "missing", "list"])
@pytest.mark.parametrize("budget", [1000, 4000])
def test_the_only_row_without_a_value_is_shown(kind: str, budget: int) -> None:
    rows = requests(4)
    for row in rows:
        row["tags"] = ["a", "b"]
    if kind == "missing":
        del rows[777]["msg"]
    else:
        rows[777][{"null": "latency", "host": "host", "list": "tags"}[kind]] = [] if kind == "list" else None
    assert 777 in rows_in(data_of(rows, budget))


def test_what_is_often_absent_does_not_stand_out() -> None:
    rows = requests(4, 600)
    rng = np.random.default_rng(1)
    for row in rows:
        if rng.random() < 0.7:
            row["tag"] = f"tag {rng.integers(101)}"
    shown = [rows[i] for i in rows_in(data_of(rows, 2000))]
    assert 0.15 < sum("tag" not in row for row in shown) / len(shown) < 0.55


@pytest.mark.parametrize(("count", "odd"), [(6, 4), (12, 10), (60, 55)])
def test_all_columns_are_looked_at(count: int, odd: int) -> None:
    rng = np.random.default_rng(3)
    numbers = [{f"m{i}": round(float(x), 3) for i, x in enumerate(rng.normal(50, 5, count))} for _ in range(1_000)]
    numbers[618][f"m{odd}"] = 912.125
    assert re.search(r"^618\|.*912\.125", data_of(numbers), re.MULTILINE)
    texts = [
        {
            f"t{i}": f"task {rng.integers(10**6)} finished step {i} in {rng.integers(99)} ms"
            for i in range(min(count, 8))
        }
        for _ in range(1_000)
    ]
    texts[618][f"t{min(odd, 7)}"] = "kernel panic zqx"
    assert re.search(r"^618\|.*zqx", data_of(texts), re.MULTILINE)


def test_an_odd_id_among_those_of_one_form_is_shown() -> None:
    rng = np.random.default_rng(3)
    rows = [{"id": f"{int(rng.integers(2**63)):016x}", "v": i % 7} for i in range(1_000)]
    assert 618 not in rows_in(data_of(rows))
    rows[618]["id"] = "ZZ-manual-override"
    assert re.search(r"^618\|.*ZZ-manual-override", data_of(rows), re.MULTILINE)


@pytest.mark.parametrize("odd", ["xyz", "req-2026-03-01-", "req-2026-03-01-0005180", "req.2026.03.01.000518"])
def test_an_id_of_another_form_is_shown_though_its_characters_are_usual(odd: str) -> None:
    """H18: it is shorter or longer than all others, or lacks the marks that part them."""
    rows = [{"id": f"req-2026-03-01-{i * 7:06}", "v": i % 7} for i in range(3_000)]
    assert 518 not in rows_in(data_of(rows))
    rows[518]["id"] = odd
    assert 518 in rows_in(data_of(rows))


@pytest.mark.parametrize("kind", ["duration", "message"])
def test_a_number_far_above_those_in_the_same_place_of_other_texts_is_shown(kind: str) -> None:
    rng = np.random.default_rng(3)

    def said(value: int) -> str:
        if kind == "duration":
            return f"{value}ms"
        return f"user {rng.integers(10**6)} from 10.0.{rng.integers(255)}.1:{rng.integers(60_000)} latency={value}"

    rows = [{"text": said(int(rng.integers(10, 99))), "v": i % 7} for i in range(1_000)]
    assert 618 not in rows_in(data_of(rows))
    rows[618]["text"] = said(93_000)
    assert re.search(r"^618\|.*93(000|\.0)", data_of(rows), re.MULTILINE)


@given(st.lists(st.text(alphabet="0123456789abZ-_.é =", max_size=40), min_size=50, max_size=300, unique=True))
@settings(max_examples=50, deadline=None)
def test_numbers_far_out_are_those_that_a_pattern_finds(texts: list[str]) -> None:
    """Of texts of one kind, by the numbers that stand first, second ...; longer ones than 15 digits are none."""
    expected = np.zeros(len(texts))
    for place in range(8):
        found = [(number, i) for i, text in enumerate(texts) for number in _number(text, place)]
        numbers = sorted((number for number, _ in found), reverse=True)
        rest = (sum(numbers) - numbers[0]) / max(1, len(numbers) - 1) if numbers else 0
        if len(numbers) < 50 or numbers[0] <= 20 * max(1.0, rest):
            continue
        far = next((i for i in range(1, 4) if numbers[i - 1] >= 10 * max(1, numbers[i])), 0)
        for number, i in found:
            if far and number >= numbers[far - 1]:
                expected[i] = max(expected[i], rank.surprise(len(numbers), 2, far))
    scores = far_numbers(pa.array(texts, pa.string()), np.zeros(len(texts), np.int64))
    assert (np.zeros(len(texts)) if scores is None else scores).tolist() == pytest.approx(expected.tolist())


def _number(text: str, place: int) -> list[int]:
    found = re.findall(r"(?<![\w.:/-])[0-9]+", text)
    return [int(found[place])] if place < len(found) and len(found[place]) <= 15 else []


def test_rows_of_a_rare_kind_are_shown_from_all_over_the_table() -> None:
    """H18: the earliest of them would say that it is over."""
    rows = requests(4, 4_000)
    for i, row in enumerate(rows):
        row["st"] = "retry" if i % 40 == 7 else "ok"
    for budget in (1000, 2000, 4000):
        shown = [row for row in rows_in(data_of(rows, budget)) if row % 40 == 7]
        assert len(shown) >= 3
        assert min(shown) < 1_400
        assert max(shown) > 2_500
