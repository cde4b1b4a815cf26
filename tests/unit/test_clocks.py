"""Clocks that go back, and how often rows come, to the row and the digit (H14, H18)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import hyve
from tests.unit import gains
from tests.unit.changes_inputs import at


def lines(rows: list[dict[str, Any]], start: str = "ts_ts", budget: int = 1_500) -> list[str]:
    text = gains.data_of(hyve.view(json.dumps(rows), "", budget).text)
    return re.findall(rf"^- {start}: .*", text, re.MULTILINE)


@pytest.mark.parametrize("apart", [0.25, 1, 60])
def test_a_clock_that_jumps_back_is_told_and_no_gap_in_its_place(apart: float) -> None:
    rows: list[dict[str, Any]] = [
        {"ts": at(apart * i - (3_600 if i >= 800 else 0)), "v": i * 7919 % 997} for i in range(1_500)
    ]
    [line] = lines(rows)
    assert line == f"- ts_ts: goes back {3_600 - apart:g} s at rowid 800 ({rows[800]['ts'][:-1].replace('T', ' ')})"
    rows = [{"ts": 1_772_359_200 + i - (3_600 if i >= 800 else 0), "v": i * 7919 % 997} for i in range(1_500)]
    [line] = lines(rows, "ts")
    assert line == "- ts: goes back 3599 s at rowid 800 (2026-03-01 09:13:20)"


@pytest.mark.parametrize("kind", ["shuffled", "descending", "late", "of two hosts", "nearly", "again and again"])
def test_rows_in_another_order_or_of_other_hosts_are_no_jump(kind: str) -> None:
    draw = random.Random(3)
    rows = [{"ts": at(i % 1_000), "host": f"h{i // 1_000}", "v": i * 7919 % 997} for i in range(2_000)]
    if kind != "of two hosts":
        rows = [{**row, "ts": at(i), "host": f"h{i % 4}"} for i, row in enumerate(rows)]
    if kind == "again and again":
        rows = [{**row, "ts": at(i % 500)} for i, row in enumerate(rows)]
    if kind == "shuffled":
        draw.shuffle(rows)
    if kind == "descending":
        rows.reverse()
    if kind == "late":
        rows[1_000]["ts"] = at(400)
    if kind == "nearly":
        rows = [{**row, "ts": at(i + 3 * draw.random())} for i, row in enumerate(rows)]
    assert not [line for line in lines(rows) if "goes back" in line]


def test_rates_are_exact_and_told_of_whom_they_are() -> None:
    """Three services ten times a minute, of which one comes forty times for half an hour, in whole turns."""
    rows = [
        {"ts": at(60 * minute + 60 * turn / turns), "svc": svc, "msg": "ok"}
        for minute in range(200)
        for svc in ("api", "db", "web")
        for turns in [40 if svc == "db" and 120 <= minute < 150 else 10]
        for turn in range(turns)
    ]
    rows.sort(key=lambda row: row["ts"])
    assert lines(rows) == [
        "- ts_ts: 10→40 rows/min of db from rowid 3601 (2026-01-31 14:00:00)",
        "- ts_ts: 40→10 rows/min of db from rowid 5401 (2026-01-31 14:30:00)",
    ]


def test_a_burst_within_a_second_has_its_rate_and_place() -> None:
    rows = sorted([at(i) for i in range(900)] + [at(450)] * 500)
    assert lines([{"ts": time, "m": "ok"} for time in rows]) == [
        "- ts_ts: 1→501 rows/s from rowid 450 (2026-01-31 12:07:30)",
        "- ts_ts: 501→1 rows/s from rowid 951 (2026-01-31 12:07:31)",
    ]
