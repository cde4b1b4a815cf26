"""DETECT_ANOMALY on series whose anomalies are known, and on series that have none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from hyve import operators, sql
from hyve.errors import SqlError


def detect(values: Sequence[Any], arguments: str = "", kind: str = "DOUBLE") -> dict[str, Any]:
    connection = sql.connect()
    connection.execute(f"CREATE TABLE points (v {kind})")
    for value in values:
        connection.execute("INSERT INTO points VALUES (?)", [value])
    sql.lock(connection)
    result = sql.run(connection, f"SELECT * FROM DETECT_ANOMALY('points', 'v'{arguments})", ("points",))
    assert result.total_rows == 1
    return result.records()[0]


def noise(count: int, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [100 + generator.gauss(0, 5) for _ in range(count)]


def test_spikes_and_dips_are_found_with_their_rows() -> None:
    values = noise(500)
    values[100], values[200], values[300] = 400.0, 250.0, -50.0
    found = detect(values)
    assert (found["points"], found["high"], found["low"]) == (500, 2, 1)
    assert [(point["row_id"], point["value"]) for point in found["strongest"]] == [
        (101, 400.0),
        (301, -50.0),
        (201, 250.0),
    ]
    assert 98 < found["median"] < 102
    assert 4 < found["sigma"] < 6
    assert found["lower_bound"] == pytest.approx(found["median"] - 3.5 * found["sigma"])
    assert found["upper_bound"] == pytest.approx(found["median"] + 3.5 * found["sigma"])


def test_a_fifth_of_outliers_does_not_hide_itself() -> None:
    # Plain 3-sigma finds none of these: the outliers stretch the standard deviation over themselves.
    values = noise(400) + [1000.0] * 100
    found = detect(values)
    assert (found["high"], found["low"]) == (100, 0)
    assert len(found["strongest"]) == 5


def test_calm_series_have_few_anomalies() -> None:
    found = [detect(noise(1000, seed)) for seed in range(5)]
    assert sum(item["high"] + item["low"] for item in found) <= 10


def test_a_series_that_mostly_stands_still_is_scored_by_the_mean_deviation() -> None:
    found = detect([5.0] * 99 + [50.0])
    assert (found["high"], found["low"], found["median"]) == (1, 0, 5.0)
    assert found["strongest"][0]["value"] == 50.0


@pytest.mark.parametrize(("values", "points"), [([7.0] * 20, 20), ([7.0], 1), ([None, None], 0), ([], 0)])
def test_without_spread_there_is_nothing_to_find(values: list[float | None], points: int) -> None:
    found = detect(values)
    assert (found["points"] or 0, found["high"], found["low"], found["strongest"]) == (points, 0, 0, None)


def test_what_is_no_number_is_left_out() -> None:
    found = detect([*noise(100), float("nan"), float("inf"), None])
    assert found["points"] == 100


def test_the_threshold_and_the_number_of_points_can_be_chosen() -> None:
    values = noise(500)
    values[10], values[20] = 130.0, 170.0
    assert detect(values, ", k := 10")["high"] == 1
    assert len(detect(values, ", k := 1, top := 3")["strongest"]) == 3


def test_integers_and_decimals_are_series_too_and_texts_are_an_error() -> None:
    assert detect([1, 2, 3, 2, 1, 100], kind="BIGINT")["high"] == 1
    assert detect([1, 2, 3, 2, 1, 100], kind="DECIMAL(10, 2)")["high"] == 1
    with pytest.raises(SqlError):
        detect(["a", "b"], kind="VARCHAR")


def test_every_operator_is_registered_and_described() -> None:
    connection = duckdb.connect()
    operators.register(connection)
    macros = {
        row[0]
        for row in connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal"
        ).fetchall()
    }
    assert macros == operators.NAMES == {"detect_anomaly"}
    for operator in operators.OPERATORS:
        assert f"{operator.signature}: {operator.description}" in operators.describe()
