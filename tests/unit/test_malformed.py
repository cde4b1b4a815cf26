"""Broken input: what must still be there, how it is told, and what must not be made up (H5-H8).

Each case says what is right for one input: `docs` rows of the root table (of `container_logs` for Docker's pieces),
`value` the one document, `rows` as SQL shows them, `survive` values that some table holds, `pairs` (name, numbers) that
belong together, `exact` values as text, `partial_tail`, `aggregates` over the numbers, `flags`. The ten cases of the
corpus are read where it is there; those here are of the same ten kinds.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import hyve

OWN: list[dict[str, Any]] = [
    {
        "id": "repeated-groups",
        "input": '{"zone":"a","disks":{"name":"sda","io":[7],"name":"sdb","io":[8,9],"name":"sdc","io":[]}}',
        "expected": {
            "docs": 1,
            "survive": ["a", "sda", "sdb", "sdc", 7, 8, 9],
            "pairs": [["sda", [7]], ["sdb", [8, 9]], ["sdc", []]],
            "flags": ["duplicate_keys"],
        },
    },
    {
        "id": "inner-quote-then-comma",
        "input": '{"n": 1, "title": "the "fast" lane, left", "w": 2.50}',
        "expected": {"docs": 1, "value": {"n": 1, "title": 'the "fast" lane, left', "w": 2.5}, "flags": ["repaired"]},
    },
    {
        "id": "python-repr",
        "input": "[{'id': 1, 'who': None, 'it\\'s': (1, 2), 'when': datetime.datetime(2025, 12, 31, 23, 59, 59, 7)}]",
        "expected": {
            "docs": 1,
            "value": [{"id": 1, "who": None, "it's": [1, 2], "when": "2025-12-31T23:59:59.000007"}],
            "flags": ["python_literal"],
        },
    },
    {
        "id": "docker-split",
        "input": '{"log":"{\\"a\\":1,\\"b\\":\\"x","stream":"stdout","time":"2025-01-01T00:00:00.000000009Z"}\n'
        '{"log":"other\\n","stream":"stderr","time":"2025-01-01T00:00:01Z"}\n'
        '{"log":"y\\"}\\n","stream":"stdout","time":"2025-01-01T00:00:02Z"}\n',
        "expected": {
            "docs": 2,
            "rows": [
                {"a": 1, "b": "xy", "stream": "stdout", "time": "2025-01-01T00:00:00.000000009Z"},
                {"log": "other", "stream": "stderr", "time": "2025-01-01T00:00:01Z"},
            ],
            "flags": ["rejoined_partial_lines"],
        },
    },
    {
        "id": "integers-of-any-size",
        "input": '[{"id": 9007199254740993, "n": 340282366920938463463374607431768211456}, {"id": -1, "n": 0}]',
        "expected": {"docs": 2, "exact": {"id": "9007199254740993", "n": str(2**128)}, "flags": []},
    },
    {
        "id": "bare-infinities",
        "input": '[{"k":"a","x":Infinity},{"k":"b","x":-4.25},{"k":"c","x":NaN},{"k":"d","x":null},{"k":"e","x":1}]',
        "expected": {
            "docs": 5,
            "rows": [
                {"k": "a", "x": "Infinity"},
                {"k": "b", "x": -4.25},
                {"k": "c", "x": "NaN"},
                {"k": "d", "x": None},
                {"k": "e", "x": 1},
            ],
            "aggregates": {"count": 4, "finite_count": 2, "finite_sum": -3.25},
            "flags": ["non_finite"],
        },
    },
    {
        "id": "documents-on-end",
        "input": '{"a":1}{"a":2}\r\n\r\n[{"a":3}] {"a":4}[{"a":5},{"a":6}]\n',
        "expected": {"docs": 6, "rows": [{"a": i} for i in range(1, 7)], "flags": ["concatenated"]},
    },
    {
        "id": "cut-in-a-string",
        "input": '[{"pod":"a-1","ok":true},{"pod":"a-2","ok":fal',
        "expected": {
            "docs": 2,
            "value": [{"pod": "a-1", "ok": True}, {"pod": "a-2"}],
            "partial_tail": "fal",
            "flags": ["truncated"],
        },
    },
    {
        "id": "byte-order-mark",
        "input": '\ufeff{"id":"first"}\n{"id":"second"}',
        "expected": {"docs": 2, "rows": [{"id": "first"}, {"id": "second"}], "flags": ["bom"]},
    },
    {
        "id": "half-a-pair",
        "input": '[{"s":"\\udc9a tail"},{"s":"\\ud83d\\udc9a whole"},{"s":"head \\ud83d"}]',
        "expected": {
            "docs": 3,
            "rows": [{"s": "\ufffd tail"}, {"s": "\U0001f49a whole"}, {"s": "head \ufffd"}],
            "flags": ["lone_surrogate"],
        },
    },
]


def corpus() -> list[dict[str, Any]]:
    path = Path(os.environ.get("HYVE_CORPUS", "")) / "malformed" / "cases.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def having(key: str) -> pytest.MarkDecorator:
    """The cases that say something of `key`, by their ids."""
    cases = [case for case in OWN + corpus() if key in case["expected"]]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])


@pytest.fixture
def document(case: dict[str, Any]) -> hyve.Document:
    return hyve.parse(case["input"])


@pytest.fixture
def store(document: hyve.Document) -> Iterator[hyve.Datastore]:
    with hyve.Datastore.from_document(document) as made:
        yield made


def holder(store: hyve.Datastore, keys: set[str]) -> hyve.Table:
    """The first table with columns of these names."""
    return next(table for table in store.catalog.tables if keys <= {column.name for column in table.columns})


def plain(value: Any) -> Any:
    """A cell as the cases write it: what no JSON has as text, times with nine digits or none."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def nanoseconds(text: str) -> int:
    """Epoch nanoseconds of a time in UTC."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int((fraction + "0" * 9)[:9])


def test_the_corpus_has_ten_cases() -> None:
    if not corpus():
        pytest.skip("HYVE_CORPUS is not set: the corpus of malformed inputs is not checked")
    assert len(corpus()) == 10


@having("docs")
def test_documents(case: dict[str, Any], store: hyve.Datastore) -> None:
    rejoined = "rejoined_partial_lines" in case["expected"]["flags"]
    table = store.catalog.table("container_logs" if rejoined else "records")
    assert table is not None
    assert table.rows == case["expected"]["docs"]


@having("value")
def test_value(case: dict[str, Any], document: hyve.Document, store: hyve.Datastore) -> None:
    (part,) = document.parts
    assert repr(part.value) == repr(case["expected"]["value"])
    assert repr(store.reconstruct(0)) == repr(part.value)


@having("rows")
def test_rows(case: dict[str, Any], store: hyve.Datastore) -> None:
    expected = case["expected"]["rows"]
    names = list(dict.fromkeys(key for row in expected for key in row))
    table = holder(store, set(names))
    fields = [f'epoch_ns("{name}")' if name == "time" else f'"{name}"' for name in names]
    order = "time" if "time" in names else "rowid"
    found = store.query(f'SELECT {", ".join(fields)} FROM "{table.name}" ORDER BY {order}').rows
    assert len(found) == len(expected)
    for cells, row in zip(found, expected, strict=True):
        shown = {name: plain(cell) for name, cell in zip(names, cells, strict=True) if name in row}
        assert shown == {name: nanoseconds(cell) if name == "time" else cell for name, cell in row.items()}


@having("survive")
def test_values_survive(case: dict[str, Any], store: hyve.Datastore) -> None:
    cells: list[Any] = []
    for table in store.catalog.tables:
        for row in store.query(f'SELECT * FROM "{table.name}"').rows:
            cells += [item for cell in row for item in (cell if isinstance(cell, list) else [cell])]
    for value in case["expected"]["survive"]:
        assert any(type(cell) is type(value) and cell == value for cell in cells), value


@having("pairs")
def test_values_of_one_group_stay_together(case: dict[str, Any], store: hyve.Datastore) -> None:
    table = holder(store, {"key", "value"})
    child = next(inner for inner in store.catalog.tables if inner.parent == table.name)
    statement = f"""
        SELECT named.value, list(numbers.value ORDER BY numbers._row_id) FILTER (numbers.value IS NOT NULL)
        FROM "{table.name}" named JOIN "{table.name}" next
            ON next.series_idx = named.series_idx AND next._row_id = named._row_id + 1
        LEFT JOIN "{child.name}" numbers ON numbers."parent_{table.name}" = next._id
        WHERE named.value IS NOT NULL GROUP BY named.value, named._id ORDER BY named._id"""
    assert [[name, numbers or []] for name, numbers in store.query(statement).rows] == case["expected"]["pairs"]


@having("exact")
def test_digits(case: dict[str, Any], store: hyve.Datastore) -> None:
    names = list(case["expected"]["exact"])
    fields = ", ".join(f"{name}::VARCHAR" for name in names)
    found = store.query(f"SELECT {fields} FROM records ORDER BY _row_id").rows[0]
    assert dict(zip(names, found, strict=True)) == case["expected"]["exact"]


@having("partial_tail")
def test_the_cut_token_is_named_and_is_no_value(
    case: dict[str, Any], document: hyve.Document, store: hyve.Datastore
) -> None:
    (part,) = document.parts
    assert part.partial_tail == case["expected"]["partial_tail"]
    assert "partial_tail" in part.flags
    shown = [str(store.query(f'SELECT * FROM "{table.name}"').rows) for table in store.catalog.tables]
    assert part.partial_tail not in "".join(shown)


@having("aggregates")
def test_aggregates_of_the_finite_values(case: dict[str, Any], store: hyve.Datastore) -> None:
    expected, table = case["expected"]["aggregates"], holder(store, set(case["expected"]["rows"][0]))
    value = next(column.name for column in table.columns if column.type == "DOUBLE")
    counts = f"count({value}), count(*) FILTER (isfinite({value})), sum({value}) FILTER (isfinite({value}))"
    (found,) = store.query(f"SELECT {counts} FROM {table.name}").rows
    assert found == (expected["count"], expected["finite_count"], expected["finite_sum"])


@having("aggregates")
def test_whoever_writes_sql_is_told_of_what_is_not_finite(case: dict[str, Any]) -> None:
    """Sums and averages must not become NaN unawares."""
    many = "\n".join([case["input"]] * 400)  # more than is shown
    assert "isfinite(" in hyve.view(many, question="average?", budget=1500).text


@having("flags")
def test_flags(case: dict[str, Any], document: hyve.Document, store: hyve.Datastore) -> None:
    expected = set(case["expected"]["flags"])
    found = set(document.flags) | set(store.flags)
    assert expected <= found
    assert expected or not found
