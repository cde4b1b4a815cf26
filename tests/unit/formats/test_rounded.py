"""Values of metrics that a double rounds, and samples beside which other lines stand (H38)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hyve
from tests.unit.formats.test_exposition import points

BIG, EVEN = 9_007_199_254_740_993, 9_007_199_254_740_992


def _series(kind: str, values: list[Any]) -> str:
    samples = [[1_769_773_501 + i, value] for i, value in enumerate(values)]
    held = {"values": samples} if kind == "matrix" else {"value": samples[0]}
    result = [{"metric": {"__name__": "a", "job": "b"}, **held}]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


def _otlp(value: Any) -> str:
    point = {"timeUnixNano": "1769773501000000000", "asInt": value}
    metrics = [{"name": "a", "sum": {"dataPoints": [point], "isMonotonic": True}}]
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})


def _gcp(value: str) -> str:
    points = [{"interval": {"endTime": "2026-01-30T11:45:01Z"}, "value": {"int64Value": value}}]
    series = {"metric": {"type": "a"}, "resource": {"type": "b", "labels": {}}, "valueType": "INT64", "points": points}
    return json.dumps({"timeSeries": [series]})


@pytest.mark.parametrize(
    "source",
    [
        f"# TYPE a counter\na {BIG}\n",
        f'a{{job="b"}} {BIG}\n',
        _series("vector", [str(BIG)]),
        _series("matrix", [str(BIG)] * 9),
        _series("matrix", [BIG] * 9),
        _series("matrix", [str(BIG), "1.5", "NaN", "1", "2", "3"]),
        _otlp(str(BIG)),
        _otlp(BIG),
        _gcp(str(BIG)),
    ],
)
def test_a_whole_number_that_a_double_rounds_stands_as_text(source: str) -> None:
    with hyve.Datastore.from_text(source) as store:
        found = store.query("SELECT DISTINCT value, value_text FROM metric_points WHERE value > 1e10").rows
    assert found == ((float(EVEN), str(BIG)),)


@pytest.mark.parametrize("value", [str(EVEN), "-9007199254740994", "18446744073709551616", "1.8446744073709552e+19"])
@pytest.mark.parametrize("kind", ["text", "matrix", "otlp"])
def test_what_a_double_holds_has_no_text(kind: str, value: str) -> None:
    make = {"text": lambda value: f"# TYPE a gauge\na {value}\n", "otlp": _otlp}
    source = _series("matrix", [value] * 5) if kind == "matrix" else make[kind](value)
    with hyve.Datastore.from_text(source) as store:
        table = store.catalog.table("metric_points")
        assert table is not None
        assert "value_text" not in {column.name for column in table.columns}
        assert store.query("SELECT DISTINCT value FROM metric_points").rows == ((float(value),),)


def test_whole_numbers_as_json_has_them() -> None:
    """A column of numbers, not of texts: only what is rounded has a text."""
    with hyve.Datastore.from_text(_series("matrix", [BIG, EVEN, 3, 4, 5])) as store:
        found = store.query("SELECT value_text FROM metric_points ORDER BY time").rows
    assert found == ((str(BIG),), (None,), (None,), (None,), (None,))


@pytest.mark.parametrize("odd", ["hex 0x1f", "grouped 1_000"])
def test_one_odd_line_does_not_end_an_exposition(odd: str) -> None:
    text = f"# TYPE neg gauge\nneg -Inf\n{odd}\nup NaN\npos +Inf\n{odd}\nten 10\n"
    assert [row["name"] for row in points(text)] == ["neg", "up", "pos", "ten"]
    for other in (f"{odd}\n{odd}", "$ uptime", "that was it"):
        assert [row["name"] for row in points(f"# TYPE neg gauge\nneg -Inf\n{other}\nretries 3\n")] == ["neg"]
