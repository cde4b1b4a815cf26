"""Changes of one series of two columns: a metric of a host, a service in a region (H18)."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

import hyve
from tests.unit.changes_inputs import at, calm, data_of
from tests.unit.gains import data_of as view_data

_LEVEL = re.compile(r"^- (\S+): median (\S+)→(\S+) of (.*) from rowid (\d+)(.*)$", re.MULTILINE)


def _series(first: str, second: str, sizes: tuple[int, int], times: int, step: float, **levels: float) -> Any:
    """Rows of each series at each time: that of `a1` and `b1` has another level from three fifths on."""
    rng, rows = np.random.default_rng(5), []
    for i in range(times):
        for one, other in product(range(sizes[0]), range(sizes[1])):
            moved = step * ((one, other) == (1, 1) and 5 * i >= 3 * times)
            level = list(levels.values())[one] if levels else 20.0
            name = list(levels)[one] if levels else f"a{one}"
            rows.append(
                {"ts": at(60 * i), first: name, second: f"b{other}", "value": round(rng.normal(level + moved, 2), 1)}
            )
    return rows


@pytest.mark.parametrize("budget", [1000, 2000, 8000])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (4, 6)])
def test_what_changes_in_one_series_of_two_columns_is_told(sizes: tuple[int, int], budget: int) -> None:
    rows = _series("region", "svc", sizes, 500, 20)
    [(name, before, behind, of, row, rest)] = _LEVEL.findall(data_of(rows, budget))
    assert (name, of, rest) == ("value", "a1, b1", f" ({at(18_000)[:-1].replace('T', ' ')})")
    assert int(row) == 300 * sizes[0] * sizes[1] + sizes[1] + 1
    with hyve.Datastore.from_document(hyve.parse(json.dumps(rows))) as store:
        medians = f"median(value) FILTER (rowid < {row}), median(value) FILTER (rowid >= {row})"
        [figures] = store.query(f"SELECT {medians} FROM records WHERE region = 'a1' AND svc = 'b1'").rows
    assert [before, behind] == [f"{figure:.4g}" for figure in figures]


@pytest.mark.parametrize("hosts", [2, 5, 20])
@pytest.mark.parametrize("column", ["metric", "__name__", "name"])
def test_values_of_several_metrics_are_never_mixed(column: str, hosts: int) -> None:
    rows = _series(column, "host", (3, hosts), 300, 15, cpu=50, mem=100, disk=5)
    told = _LEVEL.findall(data_of(rows, 4000))
    assert [(of, int(row)) for _, _, _, of, row, _ in told] == [("mem, b1", 180 * 3 * hosts + hosts + 1)]
    assert float(told[0][1]) == pytest.approx(100, abs=1)
    assert float(told[0][2]) == pytest.approx(115, abs=1)


def test_a_metric_that_changes_of_all_hosts_is_told_by_its_name() -> None:
    rows = _series("metric", "host", (3, 4), 300, 0, cpu=50, mem=100, disk=5)
    for row in rows[200 * 12 :]:
        row["value"] += 30 * (row["metric"] == "disk")
    [(_, _, _, of, row_id, _)] = _LEVEL.findall(data_of(rows, 4000))
    assert (of, int(row_id)) == ("disk", 200 * 12 + 8)


def test_a_host_of_which_all_changes_is_told_by_its_name() -> None:
    rows = _series("region", "svc", (3, 4), 300, 0)
    for row in rows[200 * 12 :]:
        row["value"] += 30 * (row["svc"] == "b2")
    [(_, _, _, of, row_id, _)] = _LEVEL.findall(data_of(rows, 4000))
    assert (of, int(row_id)) == ("b2", 200 * 12 + 2)


@pytest.mark.parametrize("labels", [("__name__", "instance"), ("region", "svc")])
def test_a_series_of_a_monitoring_answer_is_told_by_its_labels(labels: tuple[str, str]) -> None:
    rng, result = np.random.default_rng(7), []
    for one, other in product(range(3), range(4)):
        values = rng.normal(50 * (one + 1), 1, 300)
        values[150:] += 30 * ((one, other) == (1, 2))
        points = [[1_772_359_200 + 60 * i, f"{value:.1f}"] for i, value in enumerate(values)]
        metric = {"__name__": "latency", labels[0]: f"m{one}", labels[1]: f"h{other}"}
        result.append({"metric": metric, "values": points})
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    [(_, before, _, of, row, _)] = _LEVEL.findall(view_data(hyve.view(text, "", 2000).text))
    assert (of, int(row)) == ("m1, h2", (4 + 2) * 300 + 150)
    assert float(before) == pytest.approx(100, abs=1)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_columns_tell_nothing_of_what_is_calm(seed: int) -> None:
    """H18: more series are looked at, by higher limits."""
    rng = np.random.default_rng(seed)
    parts = [calm(rng, 300) for _ in range(12)]
    rows = [
        {"ts": at(i), "region": f"a{k % 3}", "svc": f"b{k // 3}", **{name: of[i] for name, of in parts[k].items()}}
        for i in range(300)
        for k in range(12)
    ]
    assert not re.findall(r"^- .*: median .* of a\d, b\d .*$", data_of(rows, 4000), re.MULTILINE)
