"""Means where one column has the values of several metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

import hyve


def _samples(metrics: Sequence[str], column: str = "metric") -> str:
    base, scale = {"cpu": 100, "memory_bytes": 10**9}, {"cpu": 1, "memory_bytes": 1000}
    return json.dumps(
        [
            {
                "time": f"2026-03-01T{minute // 60:02d}:{minute % 60:02d}:00Z",
                "host": host,
                column: metric,
                "value": base[metric] + (minute + place) * scale[metric],
            }
            for minute in range(200)
            for place, host in enumerate(("web-1", "web-2", "db-1"))
            for metric in metrics
        ]
    )


def _shown(metrics: Sequence[str], question: str = "", column: str = "metric") -> str:
    prompt = hyve.view(_samples(metrics, column), question, 1500)
    return "\n".join(str(message["content"]) for message in prompt.messages)


@pytest.mark.parametrize("column", ["metric", "metric_name", "metricName", "measurement"])
def test_a_mean_of_several_metrics_is_told_by_metric_only(column: str) -> None:
    shown = _shown(["cpu", "memory_bytes"], column=column)
    assert f"- mean value by {column}: cpu=200.5, memory_bytes=1000100500" in shown
    assert "mean value by host" not in shown


def test_a_host_that_is_asked_for_has_no_mean_of_several_metrics() -> None:
    assert "- host = db-1: 400 rows\n" in _shown(["cpu", "memory_bytes"], "why is db-1 slow?")


def test_of_one_metric_the_mean_is_told_by_host() -> None:
    shown = _shown(["cpu"], "why is db-1 slow?")
    assert "- mean value by host: " in shown
    assert "- host = db-1: 200 rows, mean value 201.5 (of all 200.5)" in shown


def test_the_example_query_parts_the_metrics() -> None:
    assert "SELECT host, metric, count(*) AS n, avg(value) AS mean FROM" in _shown(["cpu", "memory_bytes"])
