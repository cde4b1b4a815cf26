"""Entities that are whole numbers are series as those with names are (H14, H17, H18)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import hyve
from tests.unit import gains
from tests.unit.changes_inputs import at


def lagging(name: str = "partition", first: int = 0) -> list[dict[str, Any]]:
    """Twelve of them a minute, of which the eighth falls behind from the 61st minute (row 727) on."""
    draw = random.Random(4)
    return [
        {"ts": at(60 * i), name: first + p, "lag": draw.randint(0, 9) + (5_000 if p == 7 and i >= 60 else 0)}
        for i in range(150)
        for p in range(12)
    ]


def view(value: Any, question: str = "what went wrong?", budget: int = 2_000) -> str:
    return gains.data_of(hyve.view(value if isinstance(value, str) else json.dumps(value), question, budget).text)


@pytest.mark.parametrize(("name", "first"), [("partition", 0), ("shard", 0), ("node_id", 1_000), ("p", 0)])
def test_what_one_of_many_numbers_does_is_told_with_means_and_a_query(name: str, first: int) -> None:
    rows = lagging(name, first)
    text = view(rows)
    assert re.search(rf"^- lag: median \d→500\d of {name} {first + 7} from rowid 727 ", text, re.MULTILINE)
    mean = sum(row["lag"] for row in rows if row[name] == first + 7) / 150
    [line] = re.findall(rf"^- mean lag by {name}: .*", text, re.MULTILINE)
    assert re.search(rf"\b{first + 7}={mean:.6g}\b", line)
    [column] = re.findall(rf"^- {name} BIGINT.*", text, re.MULTILINE)
    assert "mean" not in column
    [query] = re.findall("SELECT .*", text)
    with hyve.Datastore.from_text(json.dumps(rows)) as store:
        assert [first + 7] in [list(row)[:1] for row in store.query(query).rows]


@pytest.mark.parametrize("question", ["why does partition 7 lag?", "why does partition=7 lag?", "partition-07 lags"])
def test_a_number_is_asked_for_by_what_it_is_a_number_of(question: str) -> None:
    rows = lagging()
    text = view(rows, question)
    mean = sum(row["lag"] for row in rows if row["partition"] == 7) / 150
    assert f"- partition = 7: 150 rows, mean lag {mean:.6g} (of all " in text
    assert "WHERE partition = 7 ORDER BY lag DESC LIMIT 10" in text


def test_digits_as_text_and_numbers_in_lines_are_entities() -> None:
    rows = [{**row, "node": str(1_000 + row.pop("partition"))} for row in lagging()]
    assert re.search(r"^- lag: median \d→500\d of node(_num)? 1007 from rowid 727 ", view(rows), re.MULTILINE)
    draw = random.Random(4)
    lines = [
        f"{at(i)} INFO worker={i % 12} latency={draw.randint(5, 15) + 300 * (i % 12 == 7 and i > 1500)}ms done"
        for i in range(3_000)
    ]
    assert re.search(
        r"^- latency\w*: median 0\.0\d+→0\.3\d* of worker(_num)? 7 from rowid 15\d\d ",
        view("\n".join(lines)),
        re.MULTILINE,
    )


@pytest.mark.parametrize("name", ["status_code", "hour", "le_bucket", "priority", "error_count", "replicas", "cpu"])
def test_codes_hours_and_counts_are_no_entities(name: str) -> None:
    draw = random.Random(5)
    rows = [
        {"ts": at(i), name: draw.choice([1, 2, 3, 4, 5, 6, 7]) if name != "hour" else i // 200, "ms": draw.gauss(50, 5)}
        for i in range(2_000)
    ]
    text = view(rows)
    assert f"by {name}: " not in text
    assert "SELECT" not in text


def test_numbers_of_names_are_told_with_these_and_part_nothing_again() -> None:
    rows = [{"host": f"web-{'cadbgihfeljk'[row['node_id'] % 12]}", **row} for row in lagging("node_id", 0)]
    text = view(rows)
    assert "- node_id BIGINT, one to one with host and in its order: " in text
    assert re.search(r"^- lag: median \d→500\d of web-f from rowid 727 ", text, re.MULTILINE)
    rows = [{"host": f"web-{row['node_id']}", **row} for row in lagging("node_id", 0)]
    assert "- the same: node_id = replace(host, 'web-', '')" in view(rows)
