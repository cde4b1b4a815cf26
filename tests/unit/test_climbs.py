"""What begins to rise or fall and goes on: lag, leaks, connections that go (H18)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from hyve.climbs import climb
from tests.bench.levels import fainter
from tests.unit.changes_inputs import at, calm, data_of, rows_in

_TOLD = re.compile(r"^- v: (rises|falls) (\S+)→(\S+)((?: of \S+)?) from rowid (\d+) \((.*)\) to (\d+)$", re.MULTILINE)
_NOW = np.arange(3_000)
_WHOLE = np.random.default_rng(2).integers(0, 10, 3_000)
_NOISE = np.random.default_rng(4).normal(size=3_000)


def _of_hosts(values: Any) -> list[dict[str, Any]]:
    return [{"ts": at(i), "host": f"h{i % 3}", "v": value} for i, value in enumerate(values.tolist())]


@pytest.mark.parametrize("budget", [2000, 8000])
@pytest.mark.parametrize(
    ("values", "said", "edges"),
    [
        (
            _WHOLE + 5 * np.maximum(_NOW - 2_000, 0),
            (4.5, 4_985),
            (2_000, 2_999),
        ),
        (500 + 5 * _NOISE + 0.3 * np.maximum(_NOW - 1_500, 0), (500, 948), (1_500, 2_999)),
        (np.maximum(0, 100 - np.maximum(_NOW - 1_000, 0) // 10), (100, 0), (1_000, 2_000)),
        (np.maximum(0, 100 - np.maximum(_NOW - 1_000, 0) / 10) + _NOISE, (100, 0), (1_000, 2_000)),
        (40 + np.maximum(_NOW - 1_200, 0) // 30, (40, 99), (1_200, 2_999)),
    ],
    ids=["lag", "leak", "connections", "noisy connections", "disk"],
)
def test_a_climb_is_told_from_where_it_begins(
    values: Any, said: tuple[float, float], edges: tuple[int, int], budget: int
) -> None:
    text = data_of([{"ts": at(i), "v": value} for i, value in enumerate(values.tolist())], budget)
    [(way, before, behind, of, first, _, last)] = _TOLD.findall(text)
    assert (way, of) == ("rises" if said[1] > said[0] else "falls", "")
    assert float(before) == pytest.approx(said[0], abs=1)
    assert float(behind) == pytest.approx(said[1], abs=30)
    assert abs(int(first) - edges[0]) <= 30
    assert abs(int(last) - edges[1]) <= 30
    assert int(first) in rows_in(text)


@pytest.mark.parametrize("noise", [0, 2])
def test_a_climb_of_one_series_is_told_of_it(noise: int) -> None:
    values = noise * _NOISE + np.maximum(_NOW - 2_000, 0) * (_NOW % 3 == 1)
    [(way, _, _, of, first, when, _)] = _TOLD.findall(data_of(_of_hosts(values)))
    assert (way, of) == ("rises", " of h1")
    assert abs(int(first) - 2_000) <= 30
    assert when == at(int(first))[:-1].replace("T", " ")


def test_whole_numbers_that_rise_in_steps_in_one_series_are_told() -> None:
    values = np.where(_NOW % 3 == 2, 40 + _NOW // 75, 40)
    assert "- v: rises 40→79 of h2 all the time (rowid " in data_of(_of_hosts(values))


@pytest.mark.parametrize(
    "values",
    [
        np.repeat(np.cumsum(np.random.default_rng(1).integers(0, 5, 1_000)), 3),
        np.cumsum(np.random.default_rng(1).integers(0, 9, 3_000)),
        _NOW * 7 + 5_000,
    ],
    ids=["of each host", "of all", "even"],
)
def test_counters_that_always_rise_are_not_told(values: Any) -> None:
    assert not re.search(r"^- v: (rises|falls|median)", data_of(_of_hosts(values)), re.MULTILINE)


def test_a_total_that_begins_to_rise_is_a_counter() -> None:
    rows = [{"ts": at(i), "sent_total": max(0, i - 1_000)} for i in range(3_000)]
    assert not re.search(r"^- sent_total: (rises|falls|median)", data_of(rows), re.MULTILINE)


@pytest.mark.parametrize("count", [100, 300, 2_000])
def test_what_is_calm_does_not_climb(count: int) -> None:
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        numbers = calm(rng, count) | fainter(rng, count)
        found += [name for name, values in numbers.items() if climb(values) is not None]
    assert found == []


@pytest.mark.parametrize("times", [1e-300, 1e300, 1.0])
def test_numbers_of_any_size_are_read(times: float) -> None:
    assert climb(np.zeros(1_000) * times) is None
    found = climb(times * (0.01 * _NOISE + np.maximum(_NOW - 1_500, 0) / 3_000))
    assert found is None or abs(found.at - 1_500) < 30
