"""Values that go away, or are there for the first time, are told with their place (H14, H18)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import hyve
from tests.unit import gains
from tests.unit.changes_inputs import at


def data_of(value: Any, budget: int) -> str:
    return gains.data_of(hyve.view(value if isinstance(value, str) else json.dumps(value), "", budget).text)


def rows(value: Any, host: int = 5, count: int = 2_000) -> list[dict[str, Any]]:
    return [{"ts": at(i), "host": f"h{i % host}", "v": i * 7 % 10, "x": value(i)} for i in range(count)]


def lines(text: str, name: str = "x") -> list[str]:
    return re.findall(rf"^- {name}: .*", text, re.MULTILINE)


@pytest.mark.parametrize("missing", [True, False])
def test_a_value_that_goes_away_is_told_with_its_place(missing: bool) -> None:
    draw = random.Random(1)
    data = rows(lambda i: draw.randint(1, 99) if i < 1_500 else None)
    if missing:
        data = [{name: value for name, value in row.items() if value is not None} for row in data]
    assert lines(data_of(data, 1_000)) == ["- x: empty from rowid 1500 (2026-01-31 12:25:00)"]


def test_a_value_that_goes_away_in_one_series_is_told_of_it() -> None:
    draw = random.Random(1)
    data = rows(lambda i: draw.randint(1, 99) if i % 5 != 3 or i <= 1_500 else None)
    assert lines(data_of(data, 1_000)) == ["- x: empty of h3 from rowid 1503 (2026-01-31 12:25:03)"]


def test_a_value_that_is_first_there_is_told_with_its_place() -> None:
    draw = random.Random(2)
    data = [
        {**row, **({"error": f"E_CONN_{draw.randint(1, 3)}"} if i >= 1_500 else {})}
        for i, row in enumerate(rows(lambda i: 3))
    ]
    assert lines(data_of(data, 1_000), "error") == ["- error: empty until rowid 1500 (2026-01-31 12:25:00)"]


def test_a_value_that_comes_in_a_share_of_the_rows_from_a_place_on_is_told_with_it() -> None:
    draw = random.Random(2)
    data = rows(lambda i: "Timeout" if i >= 1_001 and draw.random() < 0.3 else None)
    first = next(i for i, row in enumerate(data) if row["x"])
    share = 100 * sum(row["x"] is not None for row in data) / (2_000 - first)
    [line] = lines(data_of(data, 1_000))
    [(told, row)] = re.findall(r"^- x: filled 0%→(\d+)% from rowid (\d+) ", line)
    assert abs(int(row) - first) <= 10
    assert float(told) == pytest.approx(share, abs=1)


def test_empty_cells_of_csv_are_told_as_such() -> None:
    draw = random.Random(2)
    data = [f"{at(i)},h{i % 5},{draw.randint(1, 99) if i < 1_500 else ''}" for i in range(2_000)]
    text = data_of("\n".join(["ts,h,x", *data]), 1_000)
    assert "- x_num: empty from rowid 1500 (2026-01-31 12:25:00)" in text


def test_what_changes_together_is_told_once() -> None:
    data = rows(lambda i: i % 3 if i < 1_500 else None)
    data = [{**row, "y": row["x"], "z": None if row["x"] is None else f"z{i % 7}"} for i, row in enumerate(data)]
    assert len(re.findall("empty from rowid 1500", data_of(data, 1_500))) == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_is_empty_at_random_or_by_turns_is_no_change(seed: int) -> None:
    draw = random.Random(seed)
    for value in (
        lambda i: 1 if draw.random() < 0.5 else None,
        lambda i: 1 if draw.random() < 0.01 else None,
        lambda i: 1 if i % 50 == 7 else None,
        lambda i: 1 if i % 300 < 20 else None,
        lambda i: None if i == 1_000 else 1,
    ):
        assert lines(data_of(rows(value), 1_500)) == []
