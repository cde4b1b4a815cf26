"""DETECT_ANOMALY on series whose anomalies are known and on series that have none; what CHANGE_POINT shares (H31)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import sql
from hyve.errors import SqlError
from hyve.operators.anomaly import detect
from hyve.operators.change_point import changes
from tests.bench import anomaly
from tests.unit.operators_store import MINUTE, ask, locked, noise

connection = pytest.fixture(locked, scope="module")


def found(values: Sequence[float], k: float = 3.5) -> list[tuple[str, int, int]]:
    rows = np.arange(len(values))
    return [(f["kind"], f["first_row"], f["last_row"]) for f in detect(np.array(values, float), None, rows, k)]


def test_a_spike_with_its_time_row_score_and_bounds(connection: duckdb.DuckDBPyConnection) -> None:
    """99 fives and a fifty: no MAD, so sigma is 1.2533 times the mean deviation of 45 / 100."""
    (row,) = ask(
        connection, f"{MINUTE} AS time, CASE i WHEN 40 THEN 50 ELSE 5 END AS v", "FROM DETECT_ANOMALY('points', 'v')"
    )
    sigma = 1.2533 * 45 / 100
    assert row == {
        "series": None,
        "kind": "spike",
        "first_time": "2026-01-01T00:40:00",
        "last_time": "2026-01-01T00:40:00",
        "first_row": 40,
        "last_row": 40,
        "points": 1,
        "value": 50.0,
        "expected": pytest.approx(5.0),
        "low": pytest.approx(5 - 3.5 * 1.05 * sigma),
        "high": pytest.approx(5 + 3.5 * 1.05 * sigma),
        "score": round(45 / sigma, 2),
        "period": None,
        "found": 1,
    }


def test_a_gap_with_what_is_missing(connection: duckdb.DuckDBPyConnection) -> None:
    made = f"{MINUTE} AS time, 5 + i % 2 AS v"
    connection.execute(
        f"CREATE OR REPLACE TABLE points AS SELECT {made} FROM range(100) r(i) WHERE i NOT BETWEEN 50 AND 59"
    )
    (row,) = sql.run(connection, "FROM DETECT_ANOMALY('points', 'v')", ("points",)).records()
    assert (row["kind"], row["first_time"], row["last_time"]) == ("gap", "2026-01-01T00:49:00", "2026-01-01T01:00:00")
    assert (row["points"], row["score"], row["first_row"], row["last_row"]) == (10, 11.0, 49, 50)
    assert row["value"] is None


def test_a_value_that_only_its_hour_makes_an_anomaly() -> None:
    """Ten days of a sine by the hour; at the bottom of the sixth a value that is no extreme at all."""
    values = [10 * math.sin(i / 24 * 2 * math.pi) for i in range(240)]
    values[5 * 24 + 18] += 3
    (finding,) = detect(np.array(values), None, np.arange(240), 3.5)
    assert (finding["kind"], finding["first_row"], finding["period"]) == ("spike", 138, 24)
    assert finding["value"] == pytest.approx(-7)
    assert finding["expected"] == pytest.approx(-10)


def test_a_shift_of_level_there_and_back() -> None:
    values = noise(600)
    values[200:350] = [value + 40 for value in values[200:350]]
    shifts = [finding for finding in detect(np.array(values), None, np.arange(600), 3.5) if finding["kind"] == "shift"]
    assert [(s["first_row"], s["last_row"], s["points"]) for s in shifts] == [(200, 349, 150), (350, 599, 250)]
    assert shifts[0]["value"] - shifts[0]["expected"] == pytest.approx(40, abs=3)
    assert shifts[1]["value"] - shifts[1]["expected"] == pytest.approx(-40, abs=3)


def test_a_level_without_any_noise_shifts_too() -> None:
    values = [1.0] * 60 + [0.0] * 40 + [1.0] * 60
    down, up = detect(np.array(values), None, np.arange(160), 3.5)
    assert [(one["kind"], one["first_row"], one["last_row"]) for one in (down, up)] == [
        ("shift", 60, 99),
        ("shift", 100, 159),
    ]
    assert (down["expected"], down["value"], down["score"]) == (1.0, 0.0, None)


STEPS = st.lists(st.tuples(st.integers(40, 90), st.integers(-9, 9)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_a_configuration_that_changes_has_its_shifts_and_nothing_else(parts: list[tuple[int, int]]) -> None:
    """Replicas, versions: constants one after the other. No sample of them is a spike or a dip."""
    values = [float(value) for count, value in parts for _ in range(count)]
    edges = [i for i in range(1, len(values)) if values[i] != values[i - 1]]
    findings = list(detect(np.array(values), None, np.arange(len(values)), 3.5))
    assert {finding["kind"] for finding in findings} <= {"shift"}
    assert {finding["first_row"] for finding in findings} <= set(edges)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7 + (i >= 200) for i in range(400)], [("shift", 200, 399)]),
        ([7 + (i >= 10) for i in range(20)], [("shift", 10, 19)]),
        ([7 + (i >= 20) for i in range(40)], [("shift", 20, 39)]),
        ([7 + (i >= 120) + (i >= 260) for i in range(400)], [("shift", 120, 259), ("shift", 260, 399)]),
        ([i / 2 + 20 * (i >= 200) for i in range(400)], [("shift", 200, 399)]),
        ([i * 10 % 2000 for i in range(400)], [("shift", 200, 399)]),
        ([i * 10 % 2000 for i in range(1000)], []),
        ([i * 10 % 2000 for i in range(2000)], []),
        ([5 * (i % 100 < 30) for i in range(1000)], []),
    ],
)
def test_exact_shapes_have_no_spikes_at_their_edges(values: list[float], expected: list[tuple[str, int, int]]) -> None:
    """Two falls of a sawtooth are a shift; of five and more it is a period. Nothing here has any noise."""
    assert found(values) == expected


def test_the_levels_beside_a_shift_without_noise_are_exact() -> None:
    (shift,) = detect(np.array([7.0] * 200 + [8.0] * 200), None, np.arange(400), 3.5)
    assert (shift["expected"], shift["value"], shift["score"]) == (7.0, 8.0, None)


def test_infinite_values_are_spikes_and_dips(connection: duckdb.DuckDBPyConnection) -> None:
    """A rate by nothing: two in a row are one interval; what is finite around them is judged as without them."""
    value = "CASE WHEN i IN (40, 41) THEN 'inf'::DOUBLE WHEN i = 70 THEN '-inf'::DOUBLE ELSE 5 + i % 2 END"
    rows = ask(connection, f"{MINUTE} AS time, {value} AS v", "FROM DETECT_ANOMALY('points', 'v')")
    assert [(row["kind"], row["first_row"], row["last_row"], row["value"], row["score"]) for row in rows] == [
        ("spike", 40, 41, "Infinity", "Infinity"),
        ("dip", 70, 70, "-Infinity", "-Infinity"),
    ]


@pytest.mark.parametrize("missing", ["NULL", "'NaN'::DOUBLE"])
@pytest.mark.parametrize("time", [f"{MINUTE} AS time, ", ""])
def test_a_sample_without_a_value_is_no_gap(connection: duckdb.DuckDBPyConnection, missing: str, time: str) -> None:
    made = f"{time}CASE WHEN i BETWEEN 50 AND 59 THEN {missing} ELSE 5 + i % 2 END AS v"
    assert ask(connection, made, "FROM DETECT_ANOMALY('points', 'v')") == []


def test_a_gap_between_samples_without_a_value(connection: duckdb.DuckDBPyConnection) -> None:
    """Minutes 50 to 52 hold NULL, 53 to 59 aren't there: 7 samples are missing, from 52 to 60."""
    made = f"{MINUTE} AS time, CASE WHEN i BETWEEN 50 AND 52 THEN NULL ELSE 5 + i % 2 END AS v"
    connection.execute(
        f"CREATE OR REPLACE TABLE points AS SELECT {made} FROM range(100) r(i) WHERE i NOT BETWEEN 53 AND 59"
    )
    (row,) = sql.run(connection, "FROM DETECT_ANOMALY('points', 'v')", ("points",)).records()
    assert (row["kind"], row["points"], row["score"]) == ("gap", 7, 8.0)
    assert (row["first_time"], row["last_time"]) == ("2026-01-01T00:52:00", "2026-01-01T01:00:00")
    assert (row["first_row"], row["last_row"]) == (52, 53)


def test_a_fifth_that_lies_elsewhere_is_a_shift_and_not_a_hundred_spikes() -> None:
    """Plain 3-sigma finds none of these: they stretch the standard deviation over themselves."""
    assert found(noise(400) + [value + 900 for value in noise(100, 2)]) == [("shift", 400, 499)]


def test_spikes_do_not_hide_each_other() -> None:
    values = noise(500)
    at = [11, 60, 152, 233, 280, 301, 377, 430, 431, 490]
    for i in at:
        values[i] = 400.0
    assert sorted(row for kind, first, last in found(values) for row in range(first, last + 1)) == at


def test_a_burst_is_one_interval_and_a_dip_is_none_of_a_spike() -> None:
    values = noise(300)
    values[100:104] = [300.0, 310.0, 305.0, 290.0]
    values[105] = -50.0
    assert found(values) == [("spike", 100, 103), ("dip", 105, 105)]


def test_calm_series_have_few_anomalies() -> None:
    assert sum(len(found(noise(1000, seed))) for seed in range(20)) <= 4
    assert sum(len(found(noise(20, seed))) for seed in range(50)) <= 5


def test_the_tail_of_latencies_is_no_anomaly_but_what_lies_beyond_is() -> None:
    """Log-normal values: 3.5 sigma lie in their usual tail."""
    draw = np.random.default_rng(5)
    values = np.exp(draw.normal(0, 0.6, 1000))
    sigma = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    assert np.sum(values > np.median(values) + 3.5 * sigma) > 20
    assert len(found(values.tolist())) <= 1
    values[500] = 60.0
    assert ("spike", 500, 500) in found(values.tolist())


def test_series_side_by_side_are_told_apart(connection: duckdb.DuckDBPyConnection) -> None:
    """Two hosts on other levels: 90 is nothing among all values, and a spike on the second host."""
    value = "CASE WHEN i % 2 = 0 THEN 100 + i % 3 WHEN i = 51 THEN 90 ELSE 10 + i % 3 END"
    made = f"{MINUTE} AS time, ['a', 'b'][i % 2 + 1] AS host, 'z' AS zone, {value} AS v"
    (row,) = ask(connection, made, "FROM DETECT_ANOMALY('points', 'v', series := 'host, ZONE')")
    assert (row["series"], row["kind"], row["first_row"], row["value"]) == ("b z", "spike", 51, 90.0)
    made = made.replace("['a', 'b'][i % 2 + 1] AS host", "i % 2 AS series_idx")
    assert [row["series"] for row in ask(connection, made, "FROM DETECT_ANOMALY(points, v)")] == ["1"]


def test_top_bounds_the_rows_and_found_counts_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Invariant 3: what is cut is counted."""
    made = "CASE WHEN i % 20 = 7 THEN 500 + i ELSE i % 2 END AS v"
    rows = ask(connection, made, "FROM DETECT_ANOMALY('points', 'v', top := 2)")
    assert [(row["value"], row["found"]) for row in rows] == [(587.0, 5), (567.0, 5)]
    assert ask(connection, made, "FROM DETECT_ANOMALY('points', 'v', k := 1e6)") == []


@pytest.mark.parametrize(
    "time",
    [
        "epoch_ns({})",
        "epoch_ms({}::TIMESTAMP)",
        "epoch({})",
        "({})::DATE + to_days(i)",
        "strftime({}, '%Y-%m-%dT%H:%M:%SZ')",
    ],
)
def test_times_of_any_type_are_found(connection: duckdb.DuckDBPyConnection, time: str) -> None:
    made = f"{time.format(f'({MINUTE})')} AS ts, CASE i WHEN 40 THEN 50 ELSE i % 2 END AS v"
    (row,) = ask(connection, made, "FROM DETECT_ANOMALY('points', 'v')")
    assert row["first_time"] == ("2026-02-10T00:00:00" if "DATE" in time else "2026-01-01T00:40:00")


def test_rows_are_put_in_the_order_of_their_times(connection: duckdb.DuckDBPyConnection) -> None:
    made = "TIMESTAMP '2026-01-01' + to_minutes(99 - i) AS at, CASE WHEN i < 50 THEN 50 ELSE 5 END + i % 2 AS v"
    (row,) = ask(connection, made, "FROM CHANGE_POINT('points', 'v', time := 'at')")
    assert (row["row"], row["time"], row["change"]) == (49, "2026-01-01T00:50:00", 45.0)


@pytest.mark.parametrize(
    "values", ["NULL::DOUBLE", "5", "'NaN'::DOUBLE", "'inf'::DOUBLE", "CASE WHEN i = 3 THEN 7 END", "i", "true"]
)
@pytest.mark.parametrize("name", ["DETECT_ANOMALY", "CHANGE_POINT"])
def test_where_nothing_can_be_said_there_is_no_row(
    connection: duckdb.DuckDBPyConnection, values: str, name: str
) -> None:
    assert ask(connection, f"{MINUTE} AS time, {values} AS v", f"FROM {name}('points', 'v')") == []
    connection.execute("DELETE FROM points")
    assert sql.run(connection, f"FROM {name}('points', 'v')", ("points",)).rows == ()


def test_what_is_no_number_or_not_there_is_an_error_that_says_what_to_do(connection: duckdb.DuckDBPyConnection) -> None:
    made = "'5' AS v, '5' AS w, 5 AS w_num, [1] AS l, now() AS time"
    for statement, message in {
        "FROM DETECT_ANOMALY('points', 'v')": "v is VARCHAR, not numbers; make numbers of it first: WITH x AS",
        "FROM DETECT_ANOMALY('points', 'w')": "w is VARCHAR, not numbers; take w_num",
        "FROM DETECT_ANOMALY('points', 'l')": "not numbers",
        "FROM CHANGE_POINT('points', 'time')": "not numbers",
        "FROM DETECT_ANOMALY('points', 'x')": "points has no column x; it has v, w, w_num, l, time",
        "FROM DETECT_ANOMALY('points', 'w_num', time := 'when')": "points has no column when",
        "FROM DETECT_ANOMALY('points', 'w_num', series := 'v, host')": "points has no column host",
    }.items():
        with pytest.raises(SqlError, match=message):
            ask(connection, made, statement)


@pytest.mark.parametrize("name", ["DETECT_ANOMALY", "CHANGE_POINT"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", 'v', top := -1", "top must be a whole number from 0 on, not -1"),
        (", 'v', top := NULL", "top must be a whole number from 0 on, not NULL"),
        (", 'v', 'host'", "must be a .*number .*, not host; give what follows the columns by name, such as series :="),
        (", 'v', time := 5", "points has no column 5"),
        ("", r'name a column of points; it has v, "a, b"'),
        (", NULL", "name a column of points"),
    ],
)
def test_a_parameter_that_can_not_be_is_an_error_that_says_so(
    connection: duckdb.DuckDBPyConnection, name: str, more: str, message: str
) -> None:
    with pytest.raises(SqlError, match=message):
        ask(connection, 'i AS v, 1 AS "a, b"', f"FROM {name}('points'{more})")


@pytest.mark.parametrize("k", ["0", "-1", "NULL", "'nan'", "'inf'", "'much'"])
def test_k_is_a_number_over_0(connection: duckdb.DuckDBPyConnection, k: str) -> None:
    said = k.strip("'")
    with pytest.raises(SqlError, match=f"k must be a number over 0, not {said}"):
        ask(connection, "i AS v", f"FROM DETECT_ANOMALY('points', 'v', k := {k})")


def test_no_row_is_wanted(connection: duckdb.DuckDBPyConnection) -> None:
    assert (
        ask(connection, "CASE i WHEN 9 THEN 50 ELSE i % 2 END AS v", "FROM DETECT_ANOMALY(points, v, top := 0)") == []
    )


@pytest.mark.parametrize("series", ['"a, b"', 'host, "A, B"', ' "a, b" ,host', '"say ""a"""'])
def test_a_column_whose_name_holds_a_comma_tells_series_apart(
    connection: duckdb.DuckDBPyConnection, series: str
) -> None:
    value = "CASE WHEN i = 51 THEN 90 ELSE 100 * (i % 2) END"
    made = f'i AS n, {value} AS v, i % 2 AS "a, b", \'x\' AS host, i % 2 AS "say ""a"""'
    (row,) = ask(connection, made, f"FROM DETECT_ANOMALY('points', 'v', series := '{series}')")
    assert row["series"].split()[0] in ("1", "x")
    assert (row["kind"], row["first_row"], row["value"]) == ("dip", 51, 90.0)


def test_what_can_not_be_bounded_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE OR REPLACE TABLE points AS SELECT i // 5 AS i, 1.0 AS v FROM range(2505) r(i)")
    with pytest.raises(SqlError, match="points has 501 series, the limit is 500; filter or aggregate in a CTE first"):
        sql.run(connection, "FROM DETECT_ANOMALY('points', 'v', series := 'i')", ("points",))
    connection.execute("DELETE FROM points WHERE i % 5 > 0")
    assert sql.run(connection, "FROM DETECT_ANOMALY('points', 'v', series := 'i')", ("points",)).rows == ()
    connection.execute("CREATE OR REPLACE TABLE points AS SELECT 1.0 AS v FROM range(1000001)")
    with pytest.raises(SqlError, match="points has 1000001 samples, the limit is 1000000; filter, or aggregate"):
        sql.run(connection, "FROM DETECT_ANOMALY('points', 'v')", ("points",))


def test_time_is_bounded_where_nothing_can_be_interrupted(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyve.operators.series.MOST_SECONDS", -1.0)
    with pytest.raises(SqlError, match="DETECT_ANOMALY had time for 0 of 1 series; filter or aggregate first"):
        ask(connection, "i AS v", "FROM DETECT_ANOMALY('points', 'v')")


def test_a_million_rows_are_looked_at(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE points AS SELECT"
        " sin(i / 500) * 9 + hash(i) % 100 / 50 + CASE i WHEN 700000 THEN 90 ELSE 0 END AS v FROM range(1000000) r(i)"
    )
    result = sql.run(
        connection, "SELECT kind, first_row FROM DETECT_ANOMALY('points', 'v')", ("points",), sql.Limits(seconds=60)
    )
    assert result.rows == (("spike", 700_000),)


VALUES = st.lists(st.one_of(st.floats(), st.integers(-5, 5).map(float)), max_size=80)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.lists(st.integers(0, 2**62), min_size=80, max_size=80), st.booleans())
def test_whatever_the_values_findings_lie_in_the_series(values: list[float], times: list[int], timed: bool) -> None:
    array = np.array(values, float)
    at = np.sort(np.array(times[: len(values)], np.int64)) if timed else None
    rows = np.arange(len(values))
    with np.errstate(all="ignore"):
        findings = list(detect(array, at, rows, 3.5))
        splits = list(changes(array, at, rows, 0.0))
    assert all(0 <= f["first_row"] <= f["last_row"] < len(values) for f in findings)
    assert all(0 < s["row"] < len(values) for s in splits)
    assert len(findings) <= 2 * len(values)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(-8, 8), st.integers(-3, 3))
def test_units_do_not_matter(seed: int, power: int, offset: int) -> None:
    """Megabytes or bytes, Celsius or Kelvin: the same samples stand out."""
    series = anomaly.generate(anomaly.KINDS[seed % 5], seed)
    values = series.values[np.isfinite(series.values)][:400]
    size = float(np.median(np.abs(values)))
    assert found((values * 2.0**power + offset * size * 2.0**power).tolist()) == found(values.tolist())


def test_better_than_three_sigma_on_generated_series() -> None:
    """The whole comparison is `python -m tests.bench.anomaly`; these are other seeds."""
    ours, plain = anomaly.Counter(), anomaly.Counter()
    for kind in anomaly.KINDS:
        for seed in range(500, 503):
            series = anomaly.generate(kind, seed)
            ours += anomaly.score(series, anomaly.ours(series))
            plain += anomaly.score(series, anomaly.three_sigma(series))
    assert anomaly.figures(ours)[2] > 0.8
    assert anomaly.figures(ours, gaps=False)[2] > anomaly.figures(plain, gaps=False)[2] + 0.2


@pytest.mark.skipif("HYVE_CORPUS" not in os.environ, reason="HYVE_CORPUS is not set: no real fault is looked for")
@pytest.mark.parametrize("column", ["PodServerLatencyP90_s_num", "PodServerLatencyP99_s_num", "MemoryUsageRate_num"])
def test_a_fault_that_was_injected_is_the_strongest_finding_of_its_day(column: str) -> None:
    """CPU contention in the currency service from 05:18:09 on, in 20 hours of measurements of its pod."""
    folder = Path(os.environ["HYVE_CORPUS"]) / "real" / "rca"
    faults = [fault for hour in json.loads((folder / "nezha-fault-list.json").read_bytes()).values() for fault in hour]
    (injected,) = (
        datetime.fromisoformat(fault["inject_time"])
        for fault in faults
        if fault["inject_pod"].startswith("currency") and fault["inject_type"] == "cpu_contention"
    )
    with hyve.Datastore.from_text((folder / "nezha-currency-metric.csv").read_bytes()) as store:
        rows = store.query(
            f"SELECT kind, first_time FROM DETECT_ANOMALY(records, {column}) ORDER BY abs(score) DESC"
        ).rows
    kind, first = rows[0]
    assert kind == "spike"
    assert len(rows) <= 3
    assert timedelta(0) <= datetime.fromisoformat(first) - injected < timedelta(minutes=2)
