"""Rows of extremes and of each series, which neither stand out nor are asked for (H15, H18)."""

from __future__ import annotations

import collections
import json
import os
import random
import re
from pathlib import Path
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


def statistics(steady: int, changing: int) -> dict[str, list[int]]:
    """A map of lists of numbers, of which most never change."""
    draw = random.Random(2)
    lists = {f"stat_{i}_total": [i * 3] * 60 for i in range(steady)}
    return lists | {f"rate_{i}": [draw.randrange(1_000) for _ in range(60)] for i in range(changing)}


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
def test_rows_of_many_series_say_whose_they_are(budget: int) -> None:
    """H14, H15: by the name in the parent's row; means of the series that change come before the others' one value."""
    lists = statistics(150, 9)
    names = list(lists)
    value = {"samples": {name: [{"num": number} for number in numbers] for name, numbers in lists.items()}}
    text = hyve.view(json.dumps(value), question="what is wrong?", budget=budget).text
    assert "\nrowid|samples._key|num\n" in text
    numbered = [(names[row // 60], lists[names[row // 60]][row % 60]) for row in range(60 * len(names))]
    data = text.split("rowid|samples._key|num\n")[1].split("\n... (")[0]
    shown_rows = shown(data)
    assert len(shown_rows) >= 3
    assert shown_rows == {row: [numbered[row][0], str(numbered[row][1])] for row in shown_rows}
    mean = next(line for line in text.split("\n") if line.startswith("- mean num by samples._key: "))
    said = [f"{name}={sum(lists[name]) / 60:.6g}" for name in names[150:]]
    assert mean == "- mean num by samples._key: " + ", ".join(said)
    constant = next(line for line in text.split("\n") if line.startswith("- constant num by samples._key: "))
    assert constant.startswith("- constant num by samples._key: stat_0_total=0, stat_1_total=3, ")
    if budget == 4_000:
        assert constant.endswith("stat_149_total=447")
        assert {name for name, _ in shown_rows.values()} >= set(names[150:])


def test_the_same_of_a_real_file() -> None:
    """H14, H15: 215 statistics of a bucket, 60 samples each."""
    if not (root := os.environ.get("HYVE_CORPUS")):
        pytest.skip("HYVE_CORPUS is not set")
    raw = (Path(root) / "real/metrics/couchbase-bucket-stats.json").read_bytes()
    lists = json.loads(raw)["op"]["samples"]
    text = hyve.view(raw, question="what is wrong?", budget=2_000).text
    numbers = [(name, number) for name, samples in lists.items() for number in samples]
    rows = shown(text.split("rowid|samples._key|num\n")[1].split("\n... (")[0])
    assert len(rows) > 20
    for row, (name, number) in rows.items():
        assert (name, float(number)) == (numbers[row][0], float(numbers[row][1]))
    for name in ("bytes_read", "cpu_user_rate", "mem_free", "rest_requests"):
        [mean] = re.findall(rf" {name}=(\d+(?:\.\d+)?)", text)
        assert float(mean) == pytest.approx(sum(lists[name]) / 60, rel=5e-6)
    assert " curr_connections=14," in text
