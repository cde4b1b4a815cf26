"""Small stores wait as Arrow, and short columns are read as lists: what comes out is what DuckDB and Arrow say."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hyve
from hyve import asked, sql
from hyve.arrays import may_hold
from hyve.columns import Columns, Values, spread
from hyve.ducktypes import list_texts, type_name
from hyve.masked import MaskedStore
from hyve.naming import quote
from hyve.redact import Redactor
from hyve.templates import HIDDEN, template_of
from tests.unit.documents import fetched

_RECORDS = [
    {
        "time": f"2026-03-01T10:{i:02d}:00.5Z",
        "service": f"svc-{i % 3}",
        "ms": i / 4,
        "n": 10**20 + i,
        "ok": i % 2 == 0,
        "code": str(200 + i),
        "tags": ["a b", "c,d", "it's", None][: i % 5],
        "inner": {"x": [{"y": i}, {"y": None}]},
        "raw": json.dumps({"k": i}),
    }
    for i in range(30)
]
_TEXTS = {
    "records": json.dumps(_RECORDS),
    "map": json.dumps({f"host-{i}": {"cpu": i, "up": True} for i in range(20)}),
    "lines": "".join(
        f"2026-03-01 10:{i:02d}:00 ERROR worker-{i % 4} \x1b[31mtook\x1b[0m {i} ms: é\n" for i in range(40)
    ),
    "csv": "id,when,v\n" + "".join(f"{i:03d},2026-03-01T10:00:{i:02d}Z,{i / 8}\n" for i in range(40)),
    "mixed": f"deploy at 09:14\n{json.dumps(_RECORDS)}\nthen it broke\n{json.dumps({'app': 'cart', 'v': [1, 2.5]})}\n",
}


def _no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: Any) -> None:
        raise AssertionError("a database was opened")

    for name in ("open_database", "borrow"):
        monkeypatch.setattr(sql, name, opened)


@pytest.mark.parametrize("name", _TEXTS)
def test_a_small_store_needs_no_database_until_sql_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H3, H21: its catalog, its views and its values come from Arrow."""
    text = _TEXTS[name]
    hyve.view(text)  # names are quoted by what DuckDB's parser says, once
    with monkeypatch.context() as patch:
        _no_database(patch)
        for budget in (700, 4000):
            for redact in ((), ("secrets", "emails")):
                assert hyve.view(text, "which worker is slow?", budget, redact=redact).prompt_tokens <= budget
        document = hyve.parse(text)
        store = hyve.Datastore.from_text(text)
        assert [repr(store.reconstruct(i)) for i in range(len(document.parts))] == [
            repr(part.value) for part in document.parts
        ]
        with pytest.raises(AssertionError, match="opened"):
            store.query("SELECT 1")
    with store:
        counts = {table.name: table.rows for table in store.catalog.tables}
        assert {n: store.query(f"SELECT count(*) FROM {quote(n)}").rows[0][0] for n in counts} == counts
    for ask in (lambda: store.columns("records", ["_row_id"]), lambda: fetched(store, "SELECT 1")):
        with pytest.raises(hyve.InputError, match="closed"):
            ask()


@pytest.mark.parametrize("name", _TEXTS)
def test_what_waits_is_what_duckdb_holds(name: str) -> None:
    """H3: names, types and values of every column, before and after they are loaded."""
    with hyve.Datastore.from_text(_TEXTS[name]) as waiting, hyve.Datastore.from_text(_TEXTS[name]) as loaded:
        fetched(loaded, "SELECT 1")
        assert waiting.catalog == loaded.catalog
        for table in loaded.catalog.tables:
            described = fetched(loaded, f"DESCRIBE {quote(table.name)}")
            assert [(column.name, column.type) for column in table.columns] == [row[:2] for row in described]
            names = [column.name for column in table.columns if column.name != "variables"]
            lists = [column.name for column in table.columns if column.type.endswith("[]")]
            before, after = (store.columns(table.name, names, lists) for store in (waiting, loaded))
            assert {n: (a.type, a.to_pylist()) for n, a in before.items()} == {
                n: (a.type, a.to_pylist()) for n, a in after.items()
            }
        assert waiting.reconstruct(0) == loaded.reconstruct(0)


def test_data_that_cannot_be_loaded_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that comes when no memory is left has an answer, and so has the next one."""

    def full(*_: Any) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate")

    with hyve.Datastore.from_text(_TEXTS["csv"]) as store:
        monkeypatch.setattr(store, "_fill", full)
        with pytest.raises(hyve.SqlError, match="could not be loaded"):
            store.query("SELECT id FROM records")
        with pytest.raises(hyve.InputError, match="closed"):
            store.query("SELECT 1")


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("SELECT 1", []),
        ("SELECT count(*) FROM orders", ["orders"]),
        ('SELECT count(*) FROM main."ORDERS"', ["orders"]),
        (
            "WITH x AS (FROM orders) SELECT (SELECT max(n) FROM parts) FROM x, hosts LIMIT 1",
            ["hosts", "orders", "parts"],
        ),
        ("WITH orders AS (FROM parts) FROM orders", ["orders", "parts"]),
        ("FROM LOG_TEMPLATES('hosts', name)", ["hosts"]),
        ("FROM LOG_TEMPLATES(Hosts, 'name')", ["hosts"]),
        ("DESCRIBE parts", ["parts"]),
        ("PIVOT orders ON id USING count(*)", ["orders"]),
        ("SELECT id FROM orders WHERE EXISTS (FROM parts WHERE n = id)", ["orders", "parts"]),
    ],
)
def test_only_what_a_statement_reads_is_loaded(statement: str, loaded: list[str]) -> None:
    """H21: the guard knows which tables those are; the rows are the same with all of them loaded."""
    text = json.dumps(
        {
            "orders": [{"id": 7, "parts": [{"n": 7}, {"n": 2}]}, {"id": 8, "parts": [{"n": 3}]}],
            "hosts": [{"name": f"host {i}"} for i in range(3)],
        }
    )
    with hyve.Datastore.from_text(text) as store, hyve.Datastore.from_text(text) as whole:
        found = store.query(statement)
        assert sorted(name for (name,) in store._open().execute(_NAMES).fetchall()) == loaded
        fetched(whole, "SELECT 1")
        assert whole.query(statement).rows == found.rows
        with pytest.raises(hyve.SqlRefused, match="no table 'hosts2'"):
            store.query("SELECT * FROM hosts2")


_NAMES = "SELECT table_name FROM duckdb_tables()"


def test_a_database_that_was_emptied_serves_the_next_store() -> None:
    """Invariant 6: locked, of one thread, and without a table or a temporary copy of the store before."""
    secret = "hunter2-" + "x" * 12
    with hyve.Datastore.from_text(json.dumps([{"password": secret, "n": i} for i in range(9)])) as store:
        masked = MaskedStore(store, Redactor(("secrets",), ("password",)))
        masked.build(lambda shown, mask: hyve.prompt.build(shown, "why?", budget=900))
        assert masked.asked.query("SELECT DISTINCT password FROM records").rows == (("<password_1>",),)
        used = store._open()
    with hyve.Datastore.from_text('[{"password": 1}]') as store:
        assert store._open() is used
        assert used.execute(_NAMES).fetchall() == []
        with pytest.raises(duckdb.Error, match="locked"):
            used.execute("SET threads = 2")
        assert fetched(store, "SELECT current_setting('threads'), password FROM records") == [(1, 1)]


def test_a_database_that_cannot_be_emptied_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_emptied", deque())
    with hyve.Datastore.from_text(_TEXTS["csv"]) as store:
        store.query("SELECT id FROM records")
        used = store._open()
        used.execute("DROP TABLE records")
    with pytest.raises(duckdb.Error, match="closed"):
        used.execute("SELECT 1")
    assert not sql._emptied


def test_of_the_databases_that_wait_the_oldest_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_emptied", deque())
    made = [sql.borrow("100MB") for _ in range(10)]
    for database in made:
        sql.give_back(database, "100MB", ())
    assert [database for _, database in sql._emptied] == made[2:]
    for database in made[:2]:
        with pytest.raises(duckdb.Error, match="closed"):
            database.execute("SELECT 1")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.none() | st.sampled_from(["a", "B", "é", "\U0001f600", "", "c d"])] * 2), min_size=1))
def test_secrets_are_learnt_from_distinct_values_in_order(pairs: list[tuple[str | None, str | None]]) -> None:
    """H32: placeholders are numbered alike however the values are read."""
    with hyve.Datastore.from_text(json.dumps([{"key": key, "value": value, "n": 1} for key, value in pairs])) as store:
        (table,) = store.catalog.tables
        for names in (("key",), ("value",), ("key", "value")):
            if all(next(c.type for c in table.columns if c.name == name) == "VARCHAR" for name in names):
                present = " AND ".join(f"{name} IS NOT NULL" for name in names)
                found = MaskedStore(store, Redactor(("secrets",), ())).shown._distinct(table, *names)  # type: ignore[attr-defined]
                wanted = f"SELECT DISTINCT {', '.join(names)} FROM records WHERE {present} ORDER BY ALL"
                assert found == [tuple(row) for row in store.query(wanted).rows]


def _spans() -> str:
    """Each run has other names, of which a byte numbers those of one run, not those of all."""
    spans = [
        {
            "traceId": f"{i:032x}",
            "id": f"{i:016x}",
            "name": f"op-{i // 10}",
            "timestamp": 1_700_000_000_000_000 + i,
            "duration": i % 90,
            "localEndpoint": {"serviceName": f"svc-{i % 3}"},
            "tags": {"http.path": f"/p/{i % 7}", "password": f"pw-{i % 5}-long"} if i % 5 else {},
        }
        for i in range(2600)
    ]
    return json.dumps(spans)


def _matrix(series: int, samples: int) -> str:
    result = [
        {
            "metric": {"__name__": "up", "pod": f"p-{p}", **({"zone": "z"} if p % 2 else {})},
            "values": [[1_700_000_000 + i, "NaN" if i == 7 else str(i * p % 100)] for i in range(samples)],
        }
        for p in range(series)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def _free_text() -> str:
    return "".join(
        f"2026-03-01 10:{i // 60 % 60:02d}:{i % 60:02d} INFO svc-{i // 20} GET /api/v1/projects/orders/items/by-name "
        f"request id={i % 1000} took={i % 70}ms user=u{i % 11}\n"
        for i in range(5000)
    )


_CODED = {"spans": _spans, "matrix": lambda: _matrix(20, 1400), "lines": _free_text}


@pytest.mark.parametrize("name", _CODED)
def test_a_small_store_of_runs_and_codes_waits_as_such(name: str) -> None:
    """H3, H14: what is read of it is what DuckDB says: each column, its distinct values in the order of the rows."""
    text = _CODED[name]()
    with hyve.Datastore.from_text(text) as waiting, hyve.Datastore.from_text(text) as loaded:
        held = [(column.type, type(column)) for arrays, _ in waiting._waiting.values() for column in arrays.values()]
        assert waiting._database is None
        assert any(pa.types.is_dictionary(kind) for kind, _ in held)
        assert any(way is pa.ChunkedArray for _, way in held)
        for table in loaded.catalog.tables:
            loaded._open(table.name)
            before, after = Columns(waiting, table), Columns(loaded, table)
            for column in table.columns:
                if column.name == "variables":
                    continue
                (codes, values, nulls, counts), wanted = before.counted(column.name), after.counted(column.name)
                assert codes.tolist() == wanted[0].tolist(), column.name
                assert (repr(values.shown()), values.texts) == (repr(wanted[1].shown()), wanted[1].texts)
                assert (nulls, counts.tolist()) == (wanted[2], wanted[3].tolist())
                some = spread(table.rows, 40)
                assert repr(before.cells(column.name, some)) == repr(after.cells(column.name, some))
                assert before.filled(column.name).tolist() == after.filled(column.name).tolist()
        assert waiting._database is None
        assert waiting.reconstruct(0) == loaded.reconstruct(0)


@pytest.mark.parametrize("name", _CODED)
def test_secrets_are_masked_in_codes_too(name: str) -> None:
    """H32: a store that waits is masked as one that was loaded."""
    text, kinds = _CODED[name](), ("secrets", "emails", "ips")
    with hyve.Datastore.from_text(text) as waiting, hyve.Datastore.from_text(text) as loaded:
        found = []
        for store in (waiting, loaded):
            for table in store.catalog.tables if store is loaded else ():
                store._open(table.name)
            masked = MaskedStore(store, Redactor(kinds, ()))
            prompt = masked.build(lambda shown, mask: hyve.prompt.build(shown, "why?", budget=4000))
            assert "pw-3-long" not in prompt.text
            cells = {
                (table.name, column.name): masked.shown.columns(table.name, [column.name])[column.name].to_pylist()
                for table in masked.shown.catalog.tables
                for column in table.columns
                if column.type == "VARCHAR"
            }
            found.append((prompt.text, cells))
        assert found[0] == found[1]
        assert (name == "spans") == any("<password_3>" in cells for cells in found[0][1].values())


def test_a_larger_store_is_loaded_at_once() -> None:
    """H21: what takes many megabytes is compressed as it comes."""
    with hyve.Datastore.from_text(_matrix(1, 260_000)) as store:
        assert store._database is not None
        table = store.catalog.table("metric_points")
        assert table is not None
        assert table.rows == 260_000
        described = fetched(store, "DESCRIBE metric_points")
        assert [(column.name, column.type) for column in table.columns] == [row[:2] for row in described]


_item = st.none() | st.text(max_size=6) | st.sampled_from(["null", "NULL", "a b", " a", "a\t", "a,b", "it's", "\\"])


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(_item, max_size=4), min_size=1, max_size=5))
def test_lists_of_texts_are_spelled_as_duckdb_does(lists: list[list[str | None] | None]) -> None:
    _same_texts(pa.array(lists, pa.list_(pa.string())))


@settings(deadline=None)
@given(st.lists(st.lists(st.none() | st.floats(), max_size=4), min_size=1, max_size=5))
@example([[1e16, 1e15, 1e-5, 0.0001, -0.0, float("inf"), float("nan"), 5e-324]])
def test_lists_of_numbers_are_spelled_as_duckdb_does(lists: list[list[float | None]]) -> None:
    _same_texts(pa.array(lists, pa.list_(pa.float64())))


def test_lists_of_integers_and_truth_values_are_spelled_as_duckdb_does() -> None:
    _same_texts(pa.array([[1, -(2**63), None], [], None], pa.list_(pa.int64())))
    _same_texts(pa.array([[True, None, False], []], pa.list_(pa.bool_())))


_database = duckdb.connect()


def _same_texts(lists: pa.Array[Any]) -> None:
    _database.register("given", pa.table({"a": lists}))
    assert [(type_name(lists.type),)] == _database.execute("SELECT column_type FROM (DESCRIBE given)").fetchall()
    said = [text for (text,) in _database.execute("SELECT a::VARCHAR FROM given").fetchall()]
    assert list_texts(lists).to_pylist() == said


@settings(deadline=None)
@given(st.lists(st.none() | st.text(max_size=30) | st.from_regex(r"[a-z0-9:./_\x1b\[m é-]{0,30}", fullmatch=True)))
def test_arrow_masks_lines_as_duckdb_does(lines: list[str | None]) -> None:
    texts = pa.array(lines, pa.string())
    _database.register("given", pa.table({"text": texts}))
    said = [text for (text,) in _database.execute(f"SELECT {template_of('text')} FROM given").fetchall()]
    assert pc.replace_substring_regex(texts, HIDDEN, "#").to_pylist() == said


_value = st.none() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]) | st.booleans()
_text = st.none() | st.sampled_from(["checkout", "cart failed", "timeout 10.0.0.1:80", "é", "", "Node", "inc-4471"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"a": _text, "b": _text, "n": st.none() | st.integers(0, 5), "f": _value}),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([500, 900, 4000]),
)
def test_short_columns_are_told_as_long_ones_are(records: list[dict[str, Any]], budget: int) -> None:
    """H14, H17-H19: lists of values are a faster way to the same prompt. NaN, -0.0 and nulls count alike."""
    text = json.dumps([{**record, "time": f"2026-03-01T10:00:{i:02d}Z"} for i, record in enumerate(records)])
    short = hyve.view(text, "why does checkout or inc-4471 fail?", max(budget, 700)).text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hyve.columns._SHORT", -1)
        assert hyve.view(text, "why does checkout or inc-4471 fail?", max(budget, 700)).text == short


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["node", "inc-4471", "10.0.0.1:80", "09", "/var", "ready", "café"]), min_size=1, unique=True
    ),
    st.text("nodeNODEinc-4471/var09.:80 _cafécafe\n|", max_size=60),
)
def test_words_are_found_as_their_pattern_does(words: list[str], text: str) -> None:
    found = [word for word in words if asked.hits(Values([text], pa.string()), asked.whole_word(word)).any()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asked, "_WINDOW", 7)
        said = asked.words_in(["x", text, "é"], tuple(words))
    assert said == asked.words_in(["x", text, "é"], tuple(words))
    assert said == asked.words_in(["İ", text, "é"], tuple(words))  # two characters in lower case
    assert said == ({1: set(found)} if found else {})


@settings(deadline=None)
@given(
    st.lists(
        st.none() | st.sampled_from(["", " ", "{", " {", "\t[1]", '\n"a"', "a{", "\u00a0{", "\u2028[", "\x0b{", "x"]),
        max_size=4,
    )
)
def test_few_texts_are_told_by_their_first_characters(texts: list[str | None]) -> None:
    """H6: which columns are looked into for JSON and literals."""
    assert may_hold(texts, pa.array(texts, pa.string())) == any(re.match(r'\s*[{\["]', t or "") for t in texts)


@settings(deadline=None)
@given(st.integers(1, 3000), st.integers(0, 700))
def test_rows_are_spread_as_the_bits_of_their_numbers_are_reversed(rows: int, most: int) -> None:
    """H15: each row once, in an order that a larger number of rows only continues."""
    some = spread(rows, most)
    assert len(set(some)) == len(some) == min(rows, most)
    assert all(0 <= row < rows for row in some)
    assert spread(rows, most + 100)[:most] == some
    quarter = np.bincount(np.array(some[:64], np.int64) * 4 // max(rows, 1), minlength=4)
    assert quarter.max() - quarter.min() <= 2 or rows < 64 or most < 64


def test_few_and_many_values_are_kept_alike() -> None:
    """H14: codes, values, edges and cells of one column, as a list and as Arrow."""
    text = json.dumps([{"s": s, "f": f} for s, f in (("b", -0.0), (None, float("nan")), ("a", 0.0), ("b", 2.5))])
    with hyve.Datastore.from_text(text) as store:
        (table,) = store.catalog.tables
        short, long = Columns(store, table), Columns(store, table)
        long.short = False
        for columns in (short, long):
            codes, values = columns.coded("s")
            assert (codes.tolist(), values.shown(), values.edges()) == ([0, -1, 1, 0], ["b", "a"], ("a", "b"))
            assert columns.coded("f")[0].tolist() == [0, 1, 0, 2]
            assert repr(columns.coded("f")[1].shown()) == "[0.0, nan, 2.5]"
            assert columns.filled("s").tolist() == [True, False, True, True]
            assert columns.cells("s", [3, 1]) == ["b", None]
            assert columns.floats("f")[1].tolist() == [True] * 4
            nulls, counts = columns.counted("s")[2:]
            assert (nulls, counts.tolist()) == (1, [2, 1])


def test_times_and_numbers_are_the_same_integers_either_way() -> None:
    """H14: steps between the times of a short column are those of a long one, to the nanosecond."""
    given = (("2026-03-01T10:00:00.000000001Z", 2**62), (None, None), ("1970-01-01T00:00:00Z", -1))
    text = json.dumps([{"t": t, "n": n} for t, n in given])
    with hyve.Datastore.from_text(text) as store:
        (table,) = store.catalog.tables
        short, long = Columns(store, table), Columns(store, table)
        long.short = False
        for columns in (short, long):
            values = columns.coded("t_ts")[1]
            assert values.integers().tolist() == [1_772_359_200_000_000_001, 0]
            assert values.edges() == ("1970-01-01 00:00:00", "2026-03-01 10:00:00.000000001")
            assert columns.coded("n")[1].integers().tolist() == [2**62, -1]


def test_idle_databases_of_small_stores_make_room_for_a_large_one() -> None:
    with hyve.Datastore.from_text('[{"a": 1}]') as small:
        small.query("SELECT a FROM records")
    assert len(sql._emptied) > 0
    rows = [{"a": i, "b": f"text {i * 7919 % 100_003}" * 20} for i in range(20_000)]
    with hyve.Datastore.from_text(json.dumps(rows)) as large:
        assert large.query("SELECT count(*) FROM records").rows == ((20_000,),)
        assert len(sql._emptied) == 0


def test_what_is_loaded_can_be_read_only_while_it_is() -> None:
    """H32: a name that our own statements read is no way to the data of another request."""
    for database in (sql.borrow("100MB"), sql.open_database("100MB", 2)):
        seen = f"SELECT count(*) FROM {sql.GIVEN}"
        sql.load(database, f"CREATE TABLE t AS FROM {sql.GIVEN}", pa.table({"a": [1, 2], "b": ["x", None]}))
        sql.load(database, f"INSERT INTO t SELECT n, 'y' FROM {sql.GIVEN}", pa.table({"n": [3]}))
        assert database.execute("FROM t").fetchall() == [(1, "x"), (2, None), (3, "y")]
        assert database.execute(seen).fetchall() == [(0,)]
        with pytest.raises(duckdb.BinderException, match="n"):
            sql.load(database, f"CREATE TABLE u AS SELECT n FROM {sql.GIVEN}", pa.table({"m": [4]}))
        assert database.execute(seen).fetchall() == [(0,)]
        with pytest.raises(hyve.SqlRefused, match="no table"):
            sql.run(database, seen, ["t"])
        database.close()
    with hyve.Datastore.from_text(json.dumps({sql.GIVEN: [{"a": 5}]})) as store:
        (name,) = (table.name for table in store.catalog.tables)
        assert name != sql.GIVEN
        assert store.query(f"SELECT a FROM {quote(name)}").rows == ((5,),)
