"""Large tables are declared so that they take little memory; SQL sees what it would see of a plain copy (H22)."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import hyve
from hyve.declared import declared
from tests.unit.documents import fetched

ROWS = 9_000


def matrix() -> str:
    """Three series of `ROWS` samples in all, with labels that SQL would have to quote."""
    listed = [
        {
            "metric": {"__name__": "it's", "job": job, **({"zone": zone} if zone else {}), "app": "a\0'b"},
            "values": [[1_772_323_200 + i, f"{i % 700 / 8}"] for i in range(ROWS // 3)],
        }
        for job, zone in (("", "x"), ('say "hi"', "x"), ("c", None))
    ]
    return json.dumps({"data": {"resultType": "matrix", "result": listed}})


TEXT = matrix()
STATEMENTS = (
    "DESCRIBE metric_points",
    "SELECT *, rowid FROM metric_points ORDER BY rowid",
    'SELECT * FROM "values" ORDER BY rowid',
    "SUMMARIZE metric_points",
    "SELECT attributes_job, unit, kind, name, count(*), sum(value), max(count) FROM metric_points"
    " GROUP BY ALL ORDER BY ALL",
    "SELECT typeof(attributes_job), typeof(kind), typeof(sum) FROM metric_points LIMIT 1",
    "SELECT attributes_job || kind AS a FROM metric_points WHERE attributes_job LIKE '%hi%' AND kind = 'gauge' LIMIT 2",
    "SELECT min(attributes_job), max(attributes_job), min(kind) FROM metric_points",
    "SELECT attributes_job FROM metric_points ORDER BY attributes_job DESC, _row_id LIMIT 3",
    "SELECT DISTINCT attributes_zone FROM metric_points ORDER BY ALL",
    "SELECT m.kind, m.sum, m.name, m.attributes_job, i FROM range(2) t(i) LEFT JOIN metric_points m"
    " ON m._row_id = i - 1 ORDER BY i",
    "SELECT sum(CASE WHEN kind IS NULL THEN 1 END) FROM metric_points m FULL JOIN range(-5, 5) t(i) ON m._row_id = i",
)


def told(text: str) -> Any:
    with hyve.Datastore.from_text(text) as store:
        return [fetched(store, statement) for statement in STATEMENTS], store.catalog, store.reconstruct(0)


def test_sql_sees_what_a_plain_copy_would_show() -> None:
    found = told(TEXT)
    with mock.patch("hyve.store.declared", return_value=None):
        wanted = told(TEXT)
    for statement, rows, plain in zip(STATEMENTS, found[0], wanted[0], strict=True):
        assert rows == plain, statement
    assert found[1:] == wanted[1:]
    assert len(found[0][1]) == ROWS
    assert found[0][-1] == [(5,)]  # what a join adds has no kind


def test_what_is_said_once_is_not_stored() -> None:
    codes = pa.array(["a", "b"] * ROWS).dictionary_encode()
    ids, same = pa.array(range(2 * ROWS)), pa.array(["it's"] * (2 * ROWS)).dictionary_encode()
    nothing = pa.nulls(2 * ROWS, pa.float64())
    twice = pa.array(["x", "y", "z"] * (ROWS // 3 * 2)).dictionary_encode()
    columns = {"_row_id": ids, "id": ids, "kind": codes, "unit": same, "n": nothing, "job": twice, "service": twice}
    found = declared(pa.table(columns), 16 * 2 * ROWS - 1)
    assert found is not None
    assert (found.loaded, found.texts) == (["_row_id", "kind", "job"], ["kind"])
    assert found.definitions == (
        "_row_id BIGINT, id BIGINT AS (_row_id), kind ENUM ('a', 'b'), "
        "unit VARCHAR AS (CASE WHEN _row_id IS NOT NULL THEN 'it''s' END), n DOUBLE AS (CAST(NULL AS DOUBLE)), "
        "job VARCHAR, service VARCHAR AS (job)"
    )
    roomy = declared(pa.table(columns), 16 * 2 * ROWS)
    assert roomy is not None
    assert (roomy.loaded, roomy.texts) == (found.loaded, [])
    assert roomy.definitions == found.definitions.replace("ENUM ('a', 'b')", "VARCHAR")


@pytest.mark.parametrize(
    "codes",
    [
        [str(i) for i in range(ROWS)],  # too many
        ["a" * 2_000, "b"] * (ROWS // 2),  # too long
        [None, "a", "b"] * (ROWS // 3),
        ["a", None] * (ROWS // 2),
    ],
)
def test_codes_of_all_kinds_come_back(codes: list[str | None]) -> None:
    array = pa.chunked_array([pa.array(codes[:100]).dictionary_encode(), pa.array(codes[100:]).dictionary_encode()])
    with hyve.Datastore.from_text("[{}]") as store:
        database = store._open()
        store._fill(database, "t", {"_row_id": pa.array(range(ROWS)), "c": array}, {})
        assert fetched(store, "SELECT c FROM t ORDER BY rowid") == [(text,) for text in codes]
        assert fetched(store, "SELECT DISTINCT typeof(c) FROM t") == [("VARCHAR",)]


def test_small_tables_are_copied() -> None:
    assert declared(pa.table({"_row_id": pa.array(range(8_000)), "n": pa.nulls(8_000, pa.float64())}), 0) is None
