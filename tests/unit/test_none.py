"""Rows that have no value by which rows are parted are a group of their own (H14, H18)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import hyve
from tests.unit import gains
from tests.unit.changes_inputs import at


def test_rows_without_a_series_have_a_mean_and_changes_of_their_own() -> None:
    draw = random.Random(7)
    rows: list[dict[str, Any]] = [
        {"ts": at(i), "tenant": draw.choice(["a", "b", "c", None]), "lat_ms": round(draw.gauss(10, 1), 2)}
        for i in range(4_000)
    ]
    for row in rows[1_300:]:
        if row["tenant"] is None:
            row["lat_ms"] += 30
    text = gains.data_of(hyve.view(json.dumps(rows), "", 2_000).text)
    [mean] = re.findall(r"^- mean lat_ms by tenant: .*, \(none\)=([\d.]+)$", text, re.MULTILINE)
    without = [row["lat_ms"] for row in rows if row["tenant"] is None]
    assert float(mean) == pytest.approx(sum(without) / len(without), rel=1e-5)
    assert re.search(
        r"^- lat_ms: median (9.9|10)\S*→(39|40)\S* of tenant \(none\) from rowid 1[23]\d\d ", text, re.MULTILINE
    )


def test_rows_that_all_are_of_a_series_leave_none_out() -> None:
    rows = [{"ts": at(i), "host": f"h{i % 4}", "ms": (i * 37 % 101) / 7} for i in range(2_000)]
    assert "(none)" not in gains.data_of(hyve.view(json.dumps(rows), "", 2_000).text)
