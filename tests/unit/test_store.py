"""The store: lossless, relational, named (H3, H9-H13, H21-H23; invariant 1)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve.document import Document, Part
from hyve.strictjson import Pairs
from tests.unit.documents import fetched


def store_of(value: object) -> hyve.Datastore:
    text = json.dumps(value)
    return hyve.Datastore.from_document(Document(text, (Part(value, (0, len(text)), "json"),)))


def rows(store: hyve.Datastore, sql: str) -> list[tuple[object, ...]]:
    return list(store.query(sql).rows)


def same(a: object, b: object) -> bool:
    """Equal with types, key order, float bits and NaN."""
    return type(a) is type(b) and repr(a) == repr(b)


def test_parent_child_and_grandchild_tables() -> None:
    """H22."""
    value = {
        "region": "eu",
        "orders": [
            {"id": 7, "items": [{"sku": "a", "parts": [{"n": 1}, {"n": 2}]}, {"sku": "b", "parts": []}]},
            {"id": 8, "items": [{"sku": "c", "parts": [{"n": 3}]}]},
        ],
    }
    with store_of(value) as store:
        assert [(table.name, table.rows, table.parent) for table in store.catalog.tables] == [
            ("records", 1, None),
            ("orders", 2, "records"),
            ("items", 3, "orders"),
            ("parts", 3, "items"),
        ]
        joined = """SELECT o.id, i.sku, p.n FROM parts p JOIN items i ON p.parent_items = i._id
                    JOIN orders o ON i.parent_orders = o._id ORDER BY p.n"""
        assert rows(store, joined) == [(7, "a", 1), (7, "a", 2), (8, "c", 3)]
        assert rows(store, "SELECT series_idx, _row_id, n FROM parts ORDER BY 3") == [(0, 0, 1), (0, 1, 2), (2, 0, 3)]
        assert same(store.reconstruct(0), value)


def test_series_of_points_have_series_and_row_numbers() -> None:
    """H23, H33: three series of points address their rows as (series_idx), (_row_id)."""
    value = {"list": [{"name": f"s{s}", "data": [{"x": i, "y": i * s} for i in range(4)]} for s in range(3)]}
    with store_of(value) as store:
        found = rows(store, "SELECT series_idx, _row_id, x, y FROM data ORDER BY series_idx, _row_id")
        assert found == [(s, i, i, i * s) for s in range(3) for i in range(4)]


def test_parallel_lists_become_rows() -> None:
    """H23: column-wise payloads."""
    value = {"host": "n1", "t": list(range(20)), "v": [i / 2 for i in range(20)], "tags": ["a"]}
    with store_of(value) as store:
        assert rows(store, "SELECT _row_id, t, v FROM series WHERE t IN (3, 19)") == [(3, 3, 1.5), (19, 19, 9.5)]
        assert rows(store, "SELECT host, tags FROM records") == [("n1", ["a"])]
        assert same(store.reconstruct(0), value)


def test_maps_whose_keys_are_data_become_rows() -> None:
    value = {"hosts": {f"n{i}": {"cpu": i, "up": True} for i in range(5)}}
    with store_of(value) as store:
        assert rows(store, "SELECT _key, cpu FROM hosts WHERE cpu > 2") == [("n3", 3), ("n4", 4)]
        assert same(store.reconstruct(0), value)


def test_records_with_another_shape_are_variants_of_one_table() -> None:
    """H11, H13: never merged falsely; the catalog says how many rows have which shape."""
    value = [{"a": 1}, {"a": 2, "b": None}, {"a": None}, {"a": 3}]
    with store_of(value) as store:
        (table,) = store.catalog.tables
        assert [(shape.rows, shape.fields) for shape in table.shapes] == [(3, ("a",)), (1, ("a", "b"))]
        assert same(store.reconstruct(0), value)


def test_mixed_types_stay_exact_and_readable() -> None:
    value = [{"v": 1}, {"v": 1.0}, {"v": "1"}, {"v": True}, {"v": None}, {"v": [1, {"x": "y"}]}, {"v": {"k": 2}}]
    with store_of(value) as store:
        assert rows(store, "SELECT v FROM records WHERE v IS NOT NULL") == [("1",), ("1.0",), ("1",), ("true",)]
        assert rows(store, "SELECT v_k FROM records WHERE v_k IS NOT NULL") == [(2,)]
        assert same(store.reconstruct(0), value)


def test_a_large_table_is_loaded_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """H21: in the order of its rows, with what is made of free text beside it; compressed."""
    texts = (
        json.dumps([{"id": i, "v": f"value {i % 7}", "of": [{"n": i}]} for i in range(10_000)]),
        "".join(f"line {i} took {i % 90} ms\n" for i in range(5_000)),
    )
    for text in texts:
        with hyve.Datastore.from_text(text) as store:
            wanted = [fetched(store, f"FROM {table.name}") for table in store.catalog.tables]
            held = "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'"
            before = fetched(store, held)
        with monkeypatch.context() as patch:
            patch.setattr("hyve.store._COMPRESSED", 1 << 10)
            patch.setattr("hyve.store._ROW_GROUP", 2_048)
            with hyve.Datastore.from_text(text) as store:
                assert [fetched(store, f"FROM {table.name}") for table in store.catalog.tables] == wanted
                assert fetched(store, held) < before
                assert same(store.reconstruct(0), hyve.parse(text).parts[0].value)


def test_large_integers_are_numbers_where_duckdb_has_them() -> None:
    value = [{"n": 18446744073709551615}, {"n": -(10**30)}, {"n": 10**50}]
    with store_of(value[:2]) as store:
        assert rows(store, "SELECT n::VARCHAR FROM records ORDER BY n") == [
            (str(-(10**30)),),
            ("18446744073709551615",),
        ]
        assert same(store.reconstruct(0), value[:2])
    with store_of(value) as store:
        assert rows(store, "SELECT n FROM records WHERE n LIKE '1%0'") == [(str(10**50),)]
        assert same(store.reconstruct(0), value)


def test_repeated_keys_are_queryable() -> None:
    text = '{"rows": [{"svc": "cart", "p": 41, "svc": "auth", "p": 12}]}'
    document = hyve.parse(text)
    with hyve.Datastore.from_document(document) as store:
        assert rows(store, "SELECT key, value FROM pairs WHERE key = 'svc'") == [("svc", "cart"), ("svc", "auth")]
        back = store.reconstruct(0)
        assert back == document.parts[0].value
        assert isinstance(back["rows"][0], Pairs)


def test_json_in_strings_is_expanded_beside_the_text() -> None:
    """H6: the text column stays, its content is queryable."""
    value = [{"msg": json.dumps({"lvl": "error", "code": i, "frames": [{"f": "a"}, {"f": "b"}]})} for i in range(3)]
    with store_of(value) as store:
        assert rows(store, "SELECT msg_code FROM records WHERE msg_lvl = 'error' ORDER BY 1") == [(0,), (1,), (2,)]
        assert rows(store, "SELECT count(*) FROM frames WHERE f = 'b'") == [(3,)]
        assert store.catalog.table("frames").kind == "derived"  # type: ignore[union-attr]
        assert same(store.reconstruct(0), value)


def test_csv_numbers_stand_beside_their_text() -> None:
    with hyve.Datastore.from_text("id,v\n01,1.5\n02,\n03,2\n") as store:
        assert rows(store, "SELECT id, id_num, v, v_num FROM records") == [
            ("01", 1, "1.5", 1.5),
            ("02", 2, "", None),
            ("03", 3, "2", 2.0),
        ]


def test_log_lines_have_number_text_and_template() -> None:
    text = "\n".join(f"GET /cart/{i} took {i * 3} ms" for i in range(40))
    with hyve.Datastore.from_text(text) as store:
        assert rows(store, "SELECT template, count(*) FROM lines GROUP BY ALL") == [("GET /cart/# took # ms", 40)]
        assert rows(store, "SELECT text FROM lines WHERE line = 40") == [("GET /cart/39 took 117 ms",)]


def test_otlp_gives_spans_and_keeps_its_base_tables() -> None:
    span = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "GET /cart",
        "kind": 2,
        "startTimeUnixNano": "1700000000000000001",
        "endTimeUnixNano": "1700000000250000001",
        "attributes": [{"key": "http.status_code", "value": {"intValue": "500"}}],
        "status": {"code": 2},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]}
    value = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
    with store_of(value) as store:
        assert rows(store, "SELECT service, name, duration_ms, status, attributes_http_status_code FROM spans") == [
            ("cart", "GET /cart", 250.0, "error", 500)
        ]
        assert rows(store, "SELECT epoch_ns(time) FROM spans") == [(1700000000000000001,)]
        assert rows(store, "SELECT spanId FROM scopeSpans_spans") == [("eee19b7ec3c1b174",)]
        assert same(store.reconstruct(0), value)


def test_column_names_are_quoted_where_sql_needs_it() -> None:
    value = [{"order": 1, "glob": 2, "a b": 3, "A B": 4, "9x": 5, "": 6, "_row_id": 7}]
    with store_of(value) as store:
        names = [column.name for column in store.catalog.tables[0].columns]
        assert names == ["_row_id", "order", "glob", "a_b", "A_B_2", "_9x", "field", "row_id"]
        assert same(store.reconstruct(0), value)


def test_a_part_that_is_not_there() -> None:
    with store_of({"a": 1}) as store, pytest.raises(hyve.InputError, match="no part 3"):
        store.reconstruct(3)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["", "x", "1", "null"])
keys = st.sampled_from(["a", "b", "c", "d", "id", "order"]) | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda children: (
        st.lists(children, max_size=5)
        | st.dictionaries(keys, children, max_size=5)
        | st.lists(st.fixed_dictionaries({"a": children, "b": scalars}, optional={"c": children}), max_size=5)
    ),
    max_leaves=30,
)


@given(st.lists(anything, max_size=6) | st.dictionaries(keys, anything, max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_value_comes_back_exactly(value: object) -> None:
    """Invariant 1: values, key order, number types and float bits."""
    with store_of(value) as store:
        assert same(store.reconstruct(0), value)


@given(st.lists(st.lists(st.tuples(keys, scalars), min_size=1, max_size=4).map(Pairs), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_objects_with_repeated_keys_come_back_exactly(value: list[Pairs]) -> None:
    with store_of(value) as store:
        assert same(store.reconstruct(0), value)


def corpus(pattern: str) -> list[Path]:
    root = os.environ.get("HYVE_CORPUS", "")
    return sorted(Path(root).glob(pattern)) if root else []


@pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the corpus of real files is not checked"
)
def test_corpus_files_come_back_exactly() -> None:
    """Invariant 1 on real files; every file gives at least one table."""
    files = [path for path in corpus("real/*/*") + corpus("toon/*/datasets/*.json") if path.is_file()]
    assert len(files) >= 70
    for path in files:
        document = hyve.parse(path.read_bytes())
        with hyve.Datastore.from_document(document) as store:
            assert store.catalog.tables, path
            for i, part in enumerate(document.parts):
                assert same(store.reconstruct(i), part.value), f"{path} part {i}"


def test_parts_among_free_text_come_back_and_the_text_is_queryable() -> None:
    document = hyve.parse('first line\n{"a": 1}\nlast line\n[{"b": 2}]')
    with hyve.Datastore.from_document(document) as store:
        assert [store.reconstruct(i) for i in range(2)] == [{"a": 1}, [{"b": 2}]]
        assert rows(store, "SELECT line, text FROM lines") == [(1, "first line"), (3, "last line")]


def test_a_derived_column_never_takes_the_name_of_a_real_one() -> None:
    value = [{"size": "10", "size_num": "7", "t": "2024-01-01T00:00:00Z", "t_ts": "x"}]
    with store_of(value) as store:
        assert rows(store, "SELECT size, size_num, size_num_2, t_ts, t_ts_2::VARCHAR FROM records") == [
            ("10", "7", 10, "x", "2024-01-01 00:00:00")
        ]
        assert same(store.reconstruct(0), value)


def test_a_line_with_a_document_in_it_is_one_row() -> None:
    text = "".join(f'2024-01-01T00:00:0{i}Z ERROR request {{"a": {i}}} failed status=500 took=5ms\n' for i in range(3))
    with hyve.Datastore.from_text(text) as store:
        assert rows(store, "SELECT line, level, status_num, took FROM lines") == [
            (n, "ERROR", 500, "5ms") for n in (1, 2, 3)
        ]
        assert rows(store, "SELECT r.a, l.level FROM records r JOIN lines l ON r._line = l.line WHERE a = 2") == [
            (2, "ERROR")
        ]


@pytest.mark.parametrize(
    ("texts", "instants"),
    [
        (["2024-02-03T04:05:06.100000001Z", "2024-02-03T06:05:06+02:00"], ["04:05:06.100000001", "04:05:06"]),
        (["2024-02-03 04:05:06,123", "", "2024-02-03 04:05:07,5"], ["04:05:06.123", None, "04:05:07.5"]),
        (["2024-02-03 04:05:06 +0200"], ["02:05:06"]),
        (["03/Feb/2024:04:05:06 +0200", "-"], ["02:05:06", None]),
        (["2024/02/03 04:05:06"], ["04:05:06"]),
        (["2024-02-03T04:05:06Z", "0001-01-01T00:00:00Z"], ["04:05:06", None]),
    ],
)
def test_times_in_text_stand_beside_it(texts: list[str], instants: list[str | None]) -> None:
    value = [{"t": text} for text in texts]
    with store_of(value) as store:
        wanted = [(f"2024-02-03 {instant}" if instant else None,) for instant in instants]
        assert rows(store, "SELECT t_ts::VARCHAR FROM records") == wanted
        assert same(store.reconstruct(0), value)


def test_lines_that_hold_lists_have_one_id() -> None:
    text = "".join(f'2024-01-01T00:00:0{i}Z INFO got payload="{{\\"a\\":[{{\\"b\\":{i}}}]}}" n={i}\n' for i in range(3))
    with hyve.Datastore.from_text(text) as store:
        table = store.catalog.table("lines")
        assert table is not None
        assert [column.name for column in table.columns][:6] == [
            "_id",
            "_row_id",
            "line",
            "text",
            "template",
            "variables",
        ]
        assert not [column.name for column in table.columns if column.name.startswith("_id_")]
        assert rows(store, "SELECT l.line, a.b FROM a JOIN lines l ON a.parent_lines = l._id ORDER BY 1") == [
            (1, 0),
            (2, 1),
            (3, 2),
        ]


@pytest.mark.parametrize("series", [1, 9_000])
def test_numbers_of_a_relation_are_numbers_where_no_row_has_one(series: int) -> None:
    """Else `sum(count)` would be refused for some answers of Prometheus and run for others, long ones (in runs) too."""
    vector = [{"metric": {"__name__": "up", "job": f"j{i}"}, "value": [1772323200 + i, "1"]} for i in range(series)]
    text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": vector}})
    with hyve.Datastore.from_text(text) as store:
        table = store.catalog.table("metric_points")
        assert table is not None
        types = {column.name: column.type for column in table.columns}
        assert [types[name] for name in ("value", "count", "sum", "min", "max")] == [
            "DOUBLE",
            "BIGINT",
            *["DOUBLE"] * 3,
        ]
        found = store.query("SELECT sum(count), avg(sum), max(min), sum(value) FROM metric_points").rows
        assert found == ((None, None, None, float(series)),)
