"""Log records by columns: the same relation as record by record."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve

times = st.integers(0, 10**6).map(
    lambda n: f"2026-03-01T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.{n % 1000:03d}Z"
)
records = st.fixed_dictionaries(
    {
        "ts": times | st.sampled_from(["2026-03-01 10:00:00", "2026-03-01T10:00:00+02:00", "", "never"]),
        "level": st.sampled_from(["INFO", "warn", "E", "fatal", "odd", ""]) | st.none(),
        "msg": st.text(max_size=6) | st.just("a\ud800b") | st.integers(),
        "service": st.sampled_from(["cart", "auth", ""]),
        "trace_id": st.sampled_from(["0" * 32, "ab" * 16, "AB" * 16, "ab", "x"]),
        "n": st.integers() | st.none(),
        "tags": st.lists(st.text(max_size=2), max_size=2),
        "at": st.fixed_dictionaries({"x": st.integers(0, 3), "y": st.text(max_size=2)}),
    },
)
some = st.sets(st.sampled_from(["level", "service", "trace_id", "n", "tags", "at"]))


def rows(text: str) -> list[dict[str, Any]]:
    with hyve.Datastore.from_text(text) as store:
        table = store.catalog.table("log_records")
        if table is None:
            return []
        names = [column.name for column in table.columns if column.name not in ("_id", "_row_id")]
        listed = ", ".join(f'"{name}"::VARCHAR' for name in names)
        found = store.query(f"SELECT {listed} FROM log_records ORDER BY _row_id").rows
        return [dict(zip(names, row, strict=True)) for row in found]


def one_by_one(text: str) -> list[dict[str, Any]]:
    """The same, each record read by itself."""
    with mock.patch("hyve.groups.log_table", return_value=None):
        return rows(text)


@given(st.lists(records, min_size=1, max_size=8), some)
@settings(max_examples=150, deadline=None)
def test_columns_say_what_the_records_say_one_by_one(values: list[dict[str, Any]], left_out: set[str]) -> None:
    values = [{key: item for key, item in value.items() if key not in left_out} for value in values]
    text = json.dumps(values)
    assert rows(text) == one_by_one(text)


@given(st.lists(records, min_size=2, max_size=5), some, st.integers(1, 150))
@settings(max_examples=100, deadline=None)
def test_a_log_that_was_cut_gives_the_same_rows_both_ways(
    values: list[dict[str, Any]], left_out: set[str], cut: int
) -> None:
    values = [{key: item for key, item in value.items() if key not in left_out} for value in values]
    text = json.dumps(values)[:-cut]
    assert rows(text) == one_by_one(text)


@pytest.mark.parametrize(
    "others", ["\nand pods:\n" + json.dumps([{"kind": "Pod", "metadata": {"name": "a"}}] * 3), "\nmore"]
)
def test_a_log_among_other_documents_gives_the_rows_that_it_gives_alone(others: str) -> None:
    log = json.dumps([{"ts": f"2026-03-01T00:00:{i:02d}Z", "level": "warn", "msg": "x", "n": i} for i in range(40)])
    assert rows(log + others) == rows(log)
    two = log + "\nand another log:\n" + log.replace('"n":', '"m":')
    assert len(rows(two)) == 80


def test_the_usual_log_is_read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    value = [
        {"ts": f"2026-03-01T00:00:{i:02d}Z", "level": "warn", "msg": "x", "service": "a", "ms": i} for i in range(9)
    ]
    monkeypatch.setattr("hyve.groups.formats.find", None)  # not called
    assert rows(json.dumps(value)[:-30]) == rows(json.dumps(value[:8]))
    found = rows(json.dumps(value))
    assert found[3] == {
        "time": "2026-03-01 00:00:03",
        "service": "a",
        "severity": "WARN",
        "severity_number": "13",
        "body": "x",
        "trace_id": None,
        "span_id": None,
        "attributes_ms": "3",
        "resource_service": "a",
    }
