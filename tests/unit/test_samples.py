"""Rows of extremes and of each series, which neither stand out nor are asked for (H15, H18)."""

from __future__ import annotations

import collections
import json
import random
import re
from typing import Any

import pytest

import hyve


def loads(rows: int = 3_000, hosts: int = 1) -> list[dict[str, Any]]:
    """Even loads: none of them stands out."""
    draw = random.Random(5)
    return [
        {"i": i, "host": f"web-{i % hosts}", "cpu": round(draw.uniform(10, 60), 3), "note": "ok"} for i in range(rows)
    ]


def shown(text: str) -> dict[int, list[str]]:
    """The cells of the rows that a view shows, by rowid."""
    return {int(row[1]): row[2].split("|") for row in re.finditer(r"^(\d+)\|(.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("budget", [1_000, 1_500, 2_000])
@pytest.mark.parametrize("hosts", [1, 7])
def test_the_rows_of_the_extremes_of_the_header_are_shown(budget: int, hosts: int) -> None:
    """H14, H15: `0.0..60.0` is explained by its rows, also in a small view."""
    records = loads(hosts=hosts)
    records[1_501]["cpu"] = 0.0
    values = [record["cpu"] for record in records]
    text = hyve.view(json.dumps(records), question="what is wrong?", budget=budget).text
    rows = shown(text)
    for extreme in (max(values), 0.0):
        row = values.index(extreme)
        assert str(extreme) in rows[row], (budget, hosts, row)


@pytest.mark.parametrize("ties", [3, 4])
def test_an_extreme_that_many_rows_have_chooses_none(ties: int) -> None:
    records = loads()
    for i in [7, 501, 1_501, 2_501][:ties]:
        records[i]["cpu"] = 60.5
    text = hyve.view(json.dumps(records), question="what is wrong?", budget=1_000).text
    assert "60.5" in text.split("rowid|")[0]
    assert any("60.5" in cells for cells in shown(text).values()) == (ties == 3)


@pytest.mark.parametrize("hosts", [7, 15, 16, 40])
@pytest.mark.parametrize("arranged", ["in turns", "one after another"])
def test_each_series_has_a_row_before_another_has_ten(hosts: int, arranged: str) -> None:
    """H15: rows at even distances are in step with series in turns."""
    records = loads(3_200, hosts)
    if arranged == "one after another":
        records.sort(key=lambda record: str(record["host"]))
    for budget in (1_000, 1_500, 2_000, 4_000):
        text = hyve.view(json.dumps(records), question="what is wrong?", budget=budget).text
        assert "- cpu DOUBLE" in text
        counts = collections.Counter(cell for cells in shown(text).values() for cell in cells if cell[:4] == "web-")
        assert max(counts.values()) < 10 or len(counts) == hosts, (budget, counts)
    assert len(counts) == hosts


def test_rows_of_series_are_from_all_over_the_table() -> None:
    records = loads(3_200, 16)
    rows = list(shown(hyve.view(json.dumps(records), question="what is wrong?", budget=1_500).text))
    assert len(rows) > 16
    for start in range(0, 3_200, 800):
        assert sum(start <= row < start + 800 for row in rows) >= 3
