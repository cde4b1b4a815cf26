"""CHANGE_POINT on series whose changes are known, and on series that have none (H31)."""

from __future__ import annotations

import math
import random

import duckdb
import numpy as np
import pytest

from hyve.operators.anomaly import detect
from hyve.operators.change_point import changes
from tests.unit.operators_store import MINUTE, ask, locked, noise

connection = pytest.fixture(locked, scope="module")


def test_a_change_point_with_the_levels_beside_it(connection: duckdb.DuckDBPyConnection) -> None:
    """10, 11, 10, 11, ... then 70, 71, ...: medians 10.5 and 70.5. In turn is a period, so there is no noise."""
    made = f"{MINUTE} AS time, CASE WHEN i < 30 THEN 10 ELSE 70 END + i % 2 AS v"
    assert ask(connection, made, "FROM CHANGE_POINT('points', 'v')") == [
        {
            "series": None,
            "time": "2026-01-01T00:30:00",
            "row": 30,
            "before": 10.5,
            "after": 70.5,
            "change": 60.0,
            "score": None,
            "found": 1,
        }
    ]


def test_the_score_of_a_change_is_in_sigma_of_both_its_stretches() -> None:
    values = np.array(noise(100, 1) + [value + 50 for value in noise(100, 2)])
    (split,) = changes(values, None, np.arange(200), 0.0)
    before, after = np.median(values[:100]), np.median(values[100:])
    sigma = 1.4826 * np.median(np.abs(np.concatenate([values[:100] - before, values[100:] - after])))
    assert (split["row"], split["before"], split["after"]) == (100, before, after)
    assert split["score"] == pytest.approx((after - before) / sigma, rel=0.01)


@pytest.mark.parametrize("at", [1000, 1500, 2160, 3000, 3600, 4000])
@pytest.mark.parametrize("timed", [True, False])
def test_a_step_of_40_in_three_days_of_a_daily_sine(at: int, timed: bool) -> None:
    """The season is taken away first: the levels are those of the series without its sine of 30."""
    i = np.arange(4320)
    drawn = np.random.default_rng(at).normal(0, 2, 4320)
    values = 100 + 30 * np.sin(2 * np.pi * i / 1440) + drawn + 40 * (i >= at)
    (split,) = changes(values, i * 60_000_000_000 if timed else None, i, 0.0)
    assert abs(split["row"] - at) <= 1
    assert split["after"] - split["before"] == pytest.approx(40, abs=1)
    assert split["before"] == pytest.approx(100, abs=2)
    assert split["score"] == pytest.approx(20, abs=2)


def test_three_days_of_a_daily_sine_are_no_change_and_no_anomaly() -> None:
    i = np.arange(4320)
    values = 100 + 30 * np.sin(2 * np.pi * i / 1440) + np.random.default_rng(1).normal(0, 2, 4320)
    assert list(changes(values, i * 60_000_000_000, i, 0.0)) == []
    assert list(detect(values, i * 60_000_000_000, i, 3.5)) == []


def test_a_change_on_top_of_a_drift_is_measured_where_it_happens() -> None:
    """Half a unit each sample, and 20 more from 200 on: 100 becomes 120 there."""
    values = np.array([i / 2 + 20 * (i >= 200) for i in range(400)])
    (split,) = changes(values, None, np.arange(400), 0.0)
    assert (split["row"], split["before"], split["after"]) == (200, pytest.approx(100), pytest.approx(120))


def test_each_step_of_a_stair_without_noise_is_a_change() -> None:
    values = np.array([7.0 + (i >= 120) + (i >= 260) for i in range(400)])
    assert [(s["row"], s["before"], s["after"]) for s in changes(values, None, np.arange(400), 0.0)] == [
        (120, 7.0, 8.0),
        (260, 8.0, 9.0),
    ]


def test_each_change_is_measured_against_the_stretches_beside_it() -> None:
    values = noise(100, 1) + [value + 50 for value in noise(100, 2)] + [value + 20 for value in noise(100, 3)]
    splits = list(changes(np.array(values), None, np.arange(300), 0.0))
    assert [split["row"] for split in splits] == [100, 200]
    assert [round(split["after"] - split["before"], -1) for split in splits] == [50, -30]


def test_a_drift_a_period_and_a_spike_are_no_change_points() -> None:
    draw = random.Random(2)
    drift = [i / 10 + draw.gauss(0, 1) for i in range(400)]
    period = [10 * math.sin(i / 24 * 2 * math.pi) + draw.gauss(0, 1) for i in range(480)]
    spike = noise(200)
    spike[100:104] = [900.0] * 4
    for values in (drift, period, spike):
        assert list(changes(np.array(values), None, np.arange(len(values)), 0.0)) == []


def test_a_change_under_a_period_is_found_where_it_is() -> None:
    draw = random.Random(3)
    values = [10 * math.sin(i / 24 * 2 * math.pi) + draw.gauss(0, 1) + (8 if i >= 300 else 0) for i in range(480)]
    (split,) = changes(np.array(values), None, np.arange(480), 0.0)
    assert abs(split["row"] - 300) <= 1
