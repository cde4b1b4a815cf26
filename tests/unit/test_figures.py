"""Figures have as many digits as tell them from what stands beside them (H14)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import hyve
from hyve.figures import change_text, mean_text
from tests.unit import gains
from tests.unit.changes_inputs import at


def data_of(rows: list[dict[str, Any]]) -> str:
    return gains.data_of(hyve.view(json.dumps(rows), "", 2_000).text)


@given(st.floats(-1e14, 1e14), st.floats(0, 1e6), st.floats(0, 1))
def test_a_mean_is_never_beyond_the_least_and_the_greatest_value(low: float, span: float, part: float) -> None:
    high = low + span
    assert low <= float(mean_text(low + span * part, low, high)) <= high


def test_a_mean_has_the_digits_that_its_range_needs() -> None:
    assert mean_text(1_234_568_589.5, 1_234_567_890, 1_234_569_289) == "1234568590"
    assert mean_text(123456789.872, 123456789.12, 123456790.62) == "123456789.87"
    assert mean_text(20_260_313.94, 20_260_301, 20_260_327) == "20260313.9"
    assert mean_text(0.499999954, 0.49999949, 0.5) == "0.499999954"
    assert mean_text(81.234567, 2.5, 310) == "81.2346"
    assert mean_text(123_456_789.5, 0, 10**9) == "123456790"


def test_two_levels_are_told_apart() -> None:
    assert change_text(100.0, 110.0) == "100→110"
    assert change_text(75, 80.0512) == "75→80.05"
    assert change_text(229_638_144, 629_145_600) == "229638144→629145600"
    assert change_text(1000000.391, 1000000.412) == "1000000.391→1000000.412"


def test_means_of_series_and_of_an_entity_are_within_the_range() -> None:
    draw = random.Random(3)
    rows = [
        {"ts": at(i), "host": f"h{i % 4}", "size": draw.randint(1_234_567_890, 1_234_569_290)} for i in range(2_000)
    ]
    text = data_of(rows)
    means = re.findall(r"mean (\d[\d.]*)", text) + re.findall(r"h\d=([\d.]+)", text)
    assert len(means) == 5
    assert all(1_234_567_890 <= float(mean) <= 1_234_569_290 for mean in means)
