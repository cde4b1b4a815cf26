"""Changes of what values are, of how often rows come, and of values that many rows have (H18)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest

import hyve
from tests.unit.changes_inputs import at, data_of, rows_in


def typed(values: list[Any], timed: bool = True) -> list[dict[str, Any]]:
    return [{**({"ts": at(i)} if timed else {}), "host": f"h{i % 7}", "depth": v} for i, v in enumerate(values)]


def line_of(text: str, start: str) -> str:
    [line] = [line for line in text.split("\n") if line.startswith(start)]
    return line


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("bad", [str, lambda value: "n/a"])
def test_values_that_become_another_type_are_told_with_their_place(timed: bool, bad: Any) -> None:
    """H14, H18: numbers until row 2,000, then texts, whether these are numbers or not."""
    text = data_of(typed([i % 9 + 1 if i < 2_000 else bad(i % 9 + 1) for i in range(3_000)], timed), 1_000)
    when = " (2026-01-31 12:33:20)" if timed else ""
    assert line_of(text, "- depth_num: ") == f"- depth_num: type number→text from rowid 2000{when}"
    assert {1999, 2000} <= set(rows_in(text))


def test_a_share_of_texts_that_rises_is_told_and_one_that_is_even_is_not() -> None:
    draw = random.Random(3)
    mixed = [str(i % 9) if draw.random() < (0.05 if i < 2_000 else 0.6) else i % 9 for i in range(3_000)]
    assert re.match(
        r"- depth_num: share of type text 4\.\d%→60% from rowid (199|200)\d ",
        line_of(data_of(typed(mixed), 1_000), "- depth_num: "),
    )
    draw.shuffle(mixed)
    assert "- depth_num: " not in data_of(typed(mixed), 1_000)


def test_values_that_become_objects_are_told_and_not_called_empty() -> None:
    """H14, H18: the objects' fields stand in columns of their own."""
    text = data_of(typed([i % 9 + 1 if i < 2_000 else {"code": i % 7} for i in range(3_000)]), 1_000)
    assert line_of(text, "- depth: ") == "- depth: type number→object from rowid 2000 (2026-01-31 12:33:20)"
    line = line_of(text, "- depth BIGINT")
    assert line.startswith("- depth BIGINT, 1,000 as object: 9 values, mean ")
    assert "empty" not in line


def test_each_type_that_follows_another_is_told() -> None:
    """H18: bools, numbers, texts, lists, each with its place."""
    kinds: list[Any] = [True, 1, "1", [1]]
    text = data_of(typed([kinds[i // 500] for i in range(2_000)]), 1_200)
    told = [line.split(" (")[0] for line in text.split("\n") if line.startswith("- depth: ")]
    assert told == [
        "- depth: type bool→number from rowid 500",
        "- depth: type number→text from rowid 1000",
        "- depth: type text→list from rowid 1500",
    ]


def test_numbers_that_get_a_unit_in_all_rows_are_told_and_empty_cells_are_no_type() -> None:
    """H9, H18: of a column that is no number's for half its texts, and of one whose texts go away."""
    cells = [(f"{i * 37 % 290}{'ms' * (i >= 1_000)}", i % 9 if i < 1_500 else "") for i in range(2_000)]
    rows = [f"{at(i)},h{i % 7},{lat},{x}" for i, (lat, x) in enumerate(cells)]
    text = hyve.view("\n".join(["ts,host,lat,x", *rows]), budget=1_200).text
    assert line_of(text, "- lat: ") == "- lat: type number→text from rowid 1000 (2026-01-31 12:16:40)"
    assert "x_num: type" not in text
    line = line_of(text, "- x_num BIGINT")
    assert ", 500 empty" in line
    assert "not numbers" not in line


def test_counts_are_not_of_the_texts_alone_and_a_bad_cell_is_told_once() -> None:
    """H14: `1,000 as text` stands before the values, whose counts are of all rows."""
    text = data_of(typed([i % 3 if i < 2_000 else str(i % 3) for i in range(3_000)]), 1_000)
    assert line_of(text, "- depth_num BIGINT").startswith(
        "- depth_num BIGINT, 1,000 as text: 3 values, 1,000 rows each, mean 1: 0"
    )
    text = data_of(typed([i % 3 if i != 1_500 else "n/a" for i in range(3_000)]), 1_000)
    line = line_of(text, "- depth_num BIGINT")
    assert "1 not a number (n/a)" in line
    assert "as text" not in line


def test_a_value_that_a_third_of_the_rows_have_among_many_is_told_with_its_count_and_share() -> None:
    """H14, H18: in a column of a hundred values, and from when on."""
    draw = random.Random(9)
    rows = [
        {
            "ts": at(i),
            "msg": "timeout calling bank" if i >= 2_010 and draw.random() < 0.3 else f"ok {draw.randint(1, 99)}",
        }
        for i in range(4_000)
    ]
    count = sum(row["msg"] == "timeout calling bank" for row in rows)
    text = data_of(rows, 1_000)
    assert line_of(text, "- msg VARCHAR").startswith(f"- msg VARCHAR: 100 distinct, timeout calling bank ×{count}, ")
    [(share, row)] = re.findall(
        r'^- msg: share of "timeout calling bank" 0%→(\d+)% from rowid (\d+) ', text, re.MULTILINE
    )
    first = next(i for i, one in enumerate(rows) if one["msg"] == "timeout calling bank")
    assert abs(int(row) - first) <= 10
    assert float(share) == pytest.approx(100 * count / (4_000 - int(row)), abs=1)


def test_of_many_even_values_none_is_told() -> None:
    draw = random.Random(4)
    rows = [
        {"ts": at(i), "msg": f"{draw.choice('abcdefghijklmnopqrstuvwxyz')}{draw.choice('abcd')}"} for i in range(4_000)
    ]
    text = data_of(rows, 1_000)
    assert "×" not in line_of(text, "- msg VARCHAR")
    assert "share of" not in text


def test_an_event_rate_that_rises_is_told_as_sql_says_it() -> None:
    """H14, H18: one row a second, then ten; times are whole seconds, of which no step is claimed."""
    rows = [
        {"ts": at(i if i < 3_000 else 3_000 + (i - 3_000) // 10), "host": f"h{i % 5}", "m": "hit"} for i in range(6_000)
    ]
    text = data_of(rows, 1_000)
    assert line_of(text, "- ts_ts: ") == "- ts_ts: 1→10 rows/s from rowid 3000 (2026-01-31 12:50:00)"
    assert "every" not in line_of(text, "- ts_ts TIMESTAMP")
    with hyve.Datastore.from_document(hyve.parse(json.dumps(rows))) as store:
        for part, rate in (("rowid <= 3000", 1.0), ("rowid >= 3000", 10.0)):
            query = f"SELECT (count(*) - 1) / date_diff('second', min(ts_ts), max(ts_ts)) FROM records WHERE {part}"
            assert store.query(query).rows[0][0] == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("factor", [4, 10, 0.1])
def test_rates_of_random_events(factor: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        apart = rng.exponential(size=3_000)
        apart[1_800:] /= factor
        rows = [{"ts": at(float(time)), "v": i * 7919 % 997} for i, time in enumerate(np.cumsum(apart))]
        [(before, behind, row)] = re.findall(
            r"^- ts_ts: (\S+)→(\S+) rows/\w+ from rowid (\d+) ", data_of(rows, 1_000), re.MULTILINE
        )
        assert float(behind) / float(before) == pytest.approx(factor, rel=0.15)
        assert abs(int(row) - 1_800) <= 20


@pytest.mark.parametrize("count", [300, 1_000, 5_000])
def test_rates_that_do_not_change_for_good_are_not_told(count: int) -> None:
    i = np.arange(count)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        even = rng.exponential(size=count)
        kinds = {
            "even": even,
            "trend": even / (1 + 4 * i / count),
            "season": even / (1.2 + np.sin(6 * np.pi * i / count + seed)),
            "clusters": np.where(rng.random(count) < 0.1, even * 30, even / 10),
            "jobs": np.where(i % 50 < 25, even, even / 8),
            "seconds": np.round(even),
            "measured": np.where(i % 20, 0.0, 15.0),
        }
        for name, apart in kinds.items():
            rows = [{"ts": at(float(time)), "v": k * 7919 % 997} for k, time in enumerate(np.cumsum(apart))]
            assert "rows/" not in data_of(rows, 800), name


def test_changes_are_listed_in_the_order_of_their_time() -> None:
    """H15: though rows stand in another one."""
    rng = np.random.default_rng(8)
    rows = [
        {
            "ts": at(i),
            "a": round(float(rng.normal(10 + 20 * (i >= 1_500), 1)), 2),
            "b": 200 if i < 700 or i % 2 else 500,
        }
        for i in range(2_000)
    ]
    rows = rows[1_000:] + rows[:1_000]
    told = re.findall(r"^- \w+: \D+.*→.* \((2026\S+ \S+)\)$", data_of(rows, 1_500), re.MULTILINE)
    assert len(told) == 2
    assert told == sorted(told)


def test_numbers_of_many_digits_are_rounded_where_the_head_says_so() -> None:
    """H15: to as many digits as tell them apart; the column's range stays exact."""
    rng = np.random.default_rng(8)
    rows = [{"cpu": float(rng.random()), "base": 1_000 + float(rng.random()), "n": i / 4} for i in range(2_000)]
    text = data_of(rows, 1_500)
    assert "≈ in a head: rounded" in text
    assert "\nrowid|cpu≈|base≈|n\n" in text
    shown = re.findall(r"^(\d+)\|(\S+)\|(\S+)\|(\S+)$", text, re.MULTILINE)
    assert len(shown) > 20
    for row, cpu, base, n in shown:
        exact = rows[int(row)]
        assert (cpu, base) == (f"{exact['cpu']:.6g}", f"{exact['base']:.9g}")
        assert float(n) == exact["n"]
    assert f"{min(row['cpu'] for row in rows)}..{max(row['cpu'] for row in rows)}" in text


def test_ids_and_epochs_lose_what_all_begin_with_unless_they_are_asked_for() -> None:
    """H15: the head says it; an id that the question names is shown whole."""
    rows = [
        {
            "trace_id": f"4bf92f3577b34da6a3ce92{i * 7919 % 2**20:010x}",
            "at": 1_661_145_000_000 + i * 37,
            "ms": i % 97 + 0.5,
        }
        for i in range(2_000)
    ]
    text = data_of(rows, 1_500)
    head = line_of(text, "rowid|")
    place = head.split("|").index('"at":16611450*')
    for line in re.findall(r"^\d+\|.*$", text, re.MULTILINE):
        cells = line.split("|")
        if cells[place] != "…":
            assert int("16611450" + cells[place]) == rows[int(cells[0])]["at"]
    wanted = rows[1_234]["trace_id"]
    assert f"|{wanted}" in hyve.view(json.dumps(rows), f"what is {wanted}?", 1_500).text


def test_rows_without_a_time_have_no_place_among_others() -> None:
    """H18: nothing of them says when they were."""
    rows = [{"ts": at(i), "kind": "client" if i % 3 else "server", "v": i * 7919 % 997} for i in range(1_000)]
    rows[400:400] = [{"ts": None, "kind": "other", "v": i} for i in range(90)]
    for i, row in enumerate(rows):
        row |= {"host": f"h{i % 3}", "zone": f"z{i % 4}"}
    assert "share of" not in data_of(rows)
