"""The samples of a Prometheus matrix by columns: the same relation as sample by sample (H21-H23)."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hyve
from tests.unit.in_runs import gathered, in_runs

NUMBERS = ("1.5", "0", "-3e2", "7", "NaN", "+Inf", "-Inf")
ODD = (
    ".5",
    "5.",
    "+3",
    "1e400",
    "",
    "x",
    " 1",
    "0x1F",
    "1_0",
    "12345678901234567",
    "9" * 450,
    "infinity",
    2,
    2.5,
    None,
)
TIMES = (1_772_323_200, 1_772_323_260, 1_772_323_200.25, 1_772_323_261.0)
ODD_TIMES = (0, -5, 10**12, 10**30, 1e300, "1772323200", None)


def some(usual: tuple[Any, ...], odd: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Mostly one of the usual values."""
    return st.integers(0, 30).flatmap(lambda n: st.sampled_from(usual if n else odd))


samples = st.lists(some(TIMES, ODD_TIMES), min_size=0, max_size=14).flatmap(
    lambda times: st.tuples(*(some(NUMBERS, ODD).map(lambda value, time=time: [time, value]) for time in times)).map(
        list
    )
)
metric = st.dictionaries(
    st.sampled_from(["__name__", "job", "pod", "code", "instance", "12", "345"]),
    some(("a", "cart-0", "200", "http_requests_total"), ("", None, 5, "a\ud800", '{"x": 1}', {"x": 1})),
    max_size=4,
)
series = st.builds(
    lambda labels, values, more: {"metric": labels, "values": values, **more},
    metric,
    samples,
    some(({},), ({"value": [1, "2"]}, {"histograms": []}, {"values": "none"}, {"metric": []})),
)
wrapped = st.sampled_from(
    [
        lambda listed: {"status": "success", "data": {"resultType": "matrix", "result": listed}},
        lambda listed: {"resultType": "matrix", "result": listed},
        lambda listed: listed,
        lambda listed: {"data": {"resultType": "vector", "result": listed}},
        lambda listed: {"signal": "event", "row": {"a": 1}, "data": {"resultType": "matrix", "result": listed}},
    ]
)
USUAL = {"metric": {"__name__": "up", "job": "a"}, "values": [[1_772_323_200 + n, str(n)] for n in range(5)]}
OTHER = {"metric": {"job": "b", "__name__": "up_total", "pod": "cart-0"}, "values": USUAL["values"]}


def one_by_one(text: str) -> Any:
    """What is gathered where no series are known by their columns."""
    with mock.patch("hyve.groups.formats.series_keys", return_value=None):
        return gathered(text)


@given(st.lists(series, min_size=1, max_size=5), wrapped)
@example([USUAL, OTHER], lambda listed: {"data": {"resultType": "matrix", "result": listed}})
@settings(max_examples=120, deadline=None)
def test_columns_say_what_the_samples_say_one_by_one(listed: list[Any], wrap: Any) -> None:
    text = json.dumps(wrap(listed))
    wanted = repr(one_by_one(text))
    assert repr(gathered(text)) == wanted
    with in_runs(200):
        assert repr(gathered(text)) == repr(one_by_one(text)) == wanted


def store_of(text: str, size: int | None) -> hyve.Datastore:
    """The store of a text, read at once or in runs of some size."""
    with nullcontext() if size is None else in_runs(size):
        return hyve.Datastore.from_text(text)


def answer(*listed: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": listed}})


@pytest.mark.parametrize("size", [None, 100])
def test_the_usual_answer_is_read_by_columns(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    monkeypatch.setattr("hyve.groups.formats.find", None)  # not called
    monkeypatch.setattr("hyve.groups.find_runs", None)
    with store_of(answer(USUAL, {**OTHER, "values": [[1_772_323_200.5, "NaN"], *OTHER["values"]]}), size) as store:
        rows = store.query("SELECT * EXCLUDE (count, sum, min, max) FROM metric_points ORDER BY _row_id").records()
        assert len(rows) == 11
        assert rows[4] == {
            "_row_id": 4,
            "time": "2026-03-01T00:00:04",
            "service": "a",
            "name": "up",
            "value": 4.0,
            "unit": "",
            "kind": "gauge",
            "attributes_job": "a",
            "attributes_pod": None,
            "value_text": None,
        }
        assert rows[5] == {
            "_row_id": 5,
            "time": "2026-03-01T00:00:00.5",
            "service": "cart",
            "name": "up_total",
            "value": None,
            "unit": "",
            "kind": "sum",
            "attributes_job": "b",
            "attributes_pod": "cart-0",
            "value_text": "NaN",
        }


def test_logs_and_series_and_more_in_one_request_are_all_there() -> None:
    logs = json.dumps(
        [{"ts": f"2026-03-01T00:00:{i:02d}Z", "level": "warn", "msg": "x", "service": "a"} for i in range(9)]
    )
    found = gathered_of(logs, answer(USUAL), '[{"kind": "Pod", "metadata": {"name": "a"}}]')
    assert found == {"log_records": 9, "metric_points": 5, "pods": 1}


def test_two_answers_give_the_samples_of_both() -> None:
    assert gathered_of(answer(USUAL), answer(OTHER)) == {"metric_points": 10}
    assert gathered_of(answer(USUAL), answer(OTHER, USUAL), "a log line") == {"metric_points": 15}


def gathered_of(*texts: str) -> dict[str, int]:
    """How many rows each relation of several texts has."""
    with hyve.Datastore(map(hyve.parse, texts)) as store:
        return {table.name: table.rows for table in store.catalog.tables if table.kind == "relation"}


EXPOSED = "# TYPE up gauge\n" + "".join(
    f'up{{pod="p{i % 4}",n="{i}"}} {("NaN", "+Inf", "-Inf")[i % 3] if i < 6 else i / 4}\n' for i in range(400)
)
OTLP = json.dumps(
    {
        "resourceMetrics": [
            {
                "scopeMetrics": [
                    {
                        "metrics": [
                            {
                                "name": "up",
                                "gauge": {
                                    "dataPoints": [
                                        {
                                            "timeUnixNano": str(1_772_323_200_000_000_000 + i),
                                            "asDouble": ("NaN", "Infinity", "-Infinity")[i % 3] if i < 6 else i / 4,
                                        }
                                        for i in range(400)
                                    ]
                                },
                            }
                        ]
                    }
                ]
            }
        ]
    }
)
MATRIX = answer(
    {
        "metric": {"__name__": "up"},
        "values": [[1_772_323_200 + i, ("NaN", "+Inf", "-Inf")[i % 3] if i < 6 else str(i / 4)] for i in range(400)],
    }
)
VECTOR = json.dumps(
    {
        "resultType": "vector",
        "result": [
            {
                "metric": {"__name__": "up", "n": str(i)},
                "value": [1_772_323_200, ("NaN", "+Inf", "-Inf")[i % 3] if i < 6 else str(i / 4)],
            }
            for i in range(400)
        ],
    }
)


@pytest.mark.parametrize("text", [EXPOSED, OTLP, MATRIX, VECTOR], ids=["exposition", "otlp", "matrix", "vector"])
@pytest.mark.parametrize("size", [None, 4_000])
def test_a_point_without_a_number_says_which_it_has(text: str, size: int | None) -> None:
    """Invariant 3: means are of finite values, and nobody takes NaN for a value that is missing."""
    with store_of(text, size) as store:
        found = store.query(
            "SELECT value_text, count(*) FROM metric_points WHERE value IS NULL GROUP BY 1 ORDER BY 1"
        ).rows
        assert found == (("-Infinity", 2), ("Infinity", 2), ("NaN", 2))
        assert store.query("SELECT count(*), avg(value), count(value_text) FROM metric_points").rows == (
            (400, sum(i / 4 for i in range(6, 400)) / 394, 6),
        )
    shown = hyve.view(text, question="?", budget=1_500).text
    line = next(line for line in shown.splitlines() if line.startswith("- value "))
    assert ", 6 not numbers (NaN, Infinity, ...), NULL here, texts in value_text" in line
    assert "empty" not in line


def test_points_that_all_have_a_number_have_no_column_more() -> None:
    with hyve.Datastore.from_text(answer(USUAL)) as store:
        assert "value_text" not in {column.name for column in store.catalog.tables[0].columns}
