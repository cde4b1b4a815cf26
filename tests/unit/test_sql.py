"""What `run` gives back: values, types, true counts, caps, errors."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import cells, limits, sql
from hyve.errors import SqlError, SqlLimit

TABLES = ("spans",)

Run = Callable[..., sql.QueryResult]


@pytest.fixture(params=["many", "few"])
def run(request: pytest.FixtureRequest) -> Run:
    """`sql.run` of many rows, by way of Arrow, and of few: their values, caps and errors are the same."""
    return partial(sql.run, ready=lambda _: request.param == "few")


@pytest.fixture
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sql.connect(memory_limit="500MB")
    connection.execute("CREATE TABLE spans AS SELECT i AS n, 'x' || i % 3 AS service FROM range(30000) r(i)")
    connection.execute("CREATE TABLE times AS SELECT '2024-05-06 07:08:09.123456789'::TIMESTAMP_NS AS t")
    sql.lock(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("1::UTINYINT", "UTINYINT", 1),
        ("9223372036854775807", "BIGINT", 9223372036854775807),
        ("170141183460469231731687303715884105727::HUGEINT", "HUGEINT", 170141183460469231731687303715884105727),
        ("340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT", 340282366920938463463374607431768211455),
        ("1e400::VARCHAR", "VARCHAR", "inf"),
        ("0.1::DOUBLE", "DOUBLE", 0.1),
        ("'nan'::DOUBLE", "DOUBLE", "NaN"),
        ("'inf'::FLOAT", "FLOAT", "Infinity"),
        ("'-inf'::DOUBLE", "DOUBLE", "-Infinity"),
        ("12.50::DECIMAL(10,2)", "DECIMAL(10,2)", 12.5),
        ("7::DECIMAL(10,2)", "DECIMAL(10,2)", 7),
        ("7::DECIMAL(10,0)", "DECIMAL(10,0)", 7),
        ("12345678901234567890.12::DECIMAL(38,2)", "DECIMAL(38,2)", "12345678901234567890.12"),
        ("true", "BOOLEAN", True),
        ("NULL::INT", "INTEGER", None),
        ("'a''b\u2603'", "VARCHAR", "a'b\u2603"),
        ("'2024-05-06 07:08:09.123456789'::TIMESTAMP_NS", "TIMESTAMP_NS", "2024-05-06T07:08:09.123456789"),
        ("'2024-05-06 07:08:09.120'::TIMESTAMP", "TIMESTAMP", "2024-05-06T07:08:09.12"),
        ("'2024-05-06 07:08:09'::TIMESTAMP_S", "TIMESTAMP_S", "2024-05-06T07:08:09"),
        ("'1969-12-31 23:59:59.5'::TIMESTAMP_MS", "TIMESTAMP_MS", "1969-12-31T23:59:59.5"),
        ("'1677-09-22 00:00:00.000000001'::TIMESTAMP_NS", "TIMESTAMP_NS", "1677-09-22T00:00:00.000000001"),
        ("'12345-02-03 00:00:00'::TIMESTAMP", "TIMESTAMP", "12345-02-03T00:00:00"),
        ("'infinity'::TIMESTAMP", "TIMESTAMP", "infinity"),
        ("'-infinity'::DATE", "DATE", "-infinity"),
        (
            "'2024-05-06 07:08:09+02'::TIMESTAMPTZ",
            "TIMESTAMP WITH TIME ZONE",
            "2024-05-06T05:08:09+00:00",
        ),
        ("DATE '2024-02-29'", "DATE", "2024-02-29"),
        ("TIME '23:59:59.25'", "TIME", "23:59:59.25"),
        ("INTERVAL '1 day 2 hours'", "INTERVAL", "1 day 02:00:00"),
        ("'ab\\x00c'::BLOB", "BLOB", "ab\\x00c"),
        ("'101'::BIT", "BIT", "101"),
        ("'6fa1b4b2-6fa1-4fa1-8fa1-6fa1b4b26fa1'::UUID", "UUID", "6fa1b4b2-6fa1-4fa1-8fa1-6fa1b4b26fa1"),
        ("'b'::ENUM('a', 'b')", "ENUM('a', 'b')", "b"),
        ("'{\"a\": [1, 2]}'::JSON", "JSON", '{"a": [1, 2]}'),
        ("[1, NULL, 3]", "INTEGER[]", [1, None, 3]),
        ("[[1], [], NULL]", "INTEGER[][]", [[1], [], None]),
        ("[1, 2]::INT[2]", "INTEGER[2]", [1, 2]),
        ("['nan'::DOUBLE, 1.5]", "DOUBLE[]", ["NaN", 1.5]),
        ("{'a': 1, 'b': {'c': [DATE '2024-01-01']}}", None, {"a": 1, "b": {"c": ["2024-01-01"]}}),
        ("{'t': '2024-01-01 00:00:00.000000001'::TIMESTAMP_NS}", None, {"t": "2024-01-01T00:00:00.000000001"}),
        ("map {'a': 1, 'b': 2}", "MAP(VARCHAR, INTEGER)", {"a": 1, "b": 2}),
        ("map {1: 'x'}", "MAP(INTEGER, VARCHAR)", {"1": "x"}),
        ("[INTERVAL 1 HOUR]", "INTERVAL[]", ["01:00:00"]),
        ("union_value(k := 1)", "UNION(k INTEGER)", {"k": 1}),
        ("sum(n) FILTER (WHERE n < 10)", "HUGEINT", 45),
    ],
)
def test_values_are_ready_for_json_and_lose_nothing(
    expression: str, kind: str | None, value: object, store: duckdb.DuckDBPyConnection, run: Run
) -> None:
    result = run(store, f"SELECT {expression} AS x FROM spans LIMIT 1", TABLES)
    assert result.rows == ((value,),)
    assert type(result.rows[0][0]) is type(value)
    assert kind is None or result.types == (kind,)
    assert json.loads(json.dumps(result.rows[0][0])) == value


def test_nested_values_of_a_slice_are_those_of_their_rows(store: duckdb.DuckDBPyConnection) -> None:
    result = sql.run(
        store,
        "SELECT n, [n, n + 1] AS l, {'n': n} AS s, map {'n': n} AS m, [n, n]::BIGINT[2] AS a FROM spans ORDER BY n",
        TABLES,
        sql.Limits(rows=5000),
    )
    assert len(result.rows) == 5000
    assert result.rows[4999] == (4999, [4999, 5000], {"n": 4999}, {"n": 4999}, [4999, 4999])
    assert all(row[1] == [row[0], row[0] + 1] and row[3] == {"n": row[0]} for row in result.rows)


def test_columns_of_one_name_survive(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    result = run(store, "SELECT 1 AS a, 2 AS a, INTERVAL 1 DAY AS a, 4 AS a_2", TABLES)
    assert result.columns == ("a", "a", "a", "a_2")
    assert result.rows == ((1, 2, "1 day", 4),)
    assert result.records() == [{"a": 1, "a_2": 2, "a_3": "1 day", "a_2_2": 4}]


def test_a_capped_result_says_its_true_count(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    result = run(store, "SELECT n FROM spans ORDER BY n DESC", TABLES, sql.Limits(rows=3))
    assert result.rows == ((29999,), (29998,), (29997,))
    assert result.total_rows == 30000


def test_the_byte_cap_keeps_whole_rows_and_the_true_count(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    result = run(store, "SELECT repeat('x', 1000) FROM spans", TABLES, sql.Limits(bytes=10_000))
    assert 5 <= len(result.rows) <= 9
    assert result.total_rows == 30000


def test_the_byte_cap_ends_the_work_on_a_wide_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """900 columns of 2,304 rows took more than twice the limit of time: every row was cut off on its own."""
    connection = sql.connect()
    columns = ", ".join(f"(i * {k})::DOUBLE AS c{k}" for k in range(900))
    connection.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(2304) r(i)")
    asked: list[int] = []
    rows = cells.rows

    def counted(batch: pa.RecordBatch, decoders: object) -> object:
        asked.append(batch.num_rows)
        return rows(batch, decoders)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "rows", counted)
    result = sql.run(connection, "SELECT * FROM wide", ("wide",))
    assert result.total_rows == 2304
    assert len(result.rows) == sum(asked) == pytest.approx((8 << 20) / (900 * 8), rel=0.02)
    assert len(asked) < 50
    assert result.rows[-1][899] == (len(result.rows) - 1) * 899


def test_a_result_that_takes_too_long_to_make_into_rows_is_stopped(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The interrupt doesn't end work in Python: the limit is looked at between two parts of a batch."""
    connection = sql.connect()
    columns = ", ".join(f"i + {k} AS c{k}" for k in range(100))
    connection.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(100000) r(i)")
    with pytest.raises(SqlLimit, match=r"ran past its limit of 0\.05 s"):
        run(connection, "SELECT * FROM wide", ("wide",), sql.Limits(rows=100_000, bytes=1 << 30, seconds=0.05))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 3000), st.booleans())
def test_the_kept_rows_are_the_first_that_fit(lengths: list[int], limit: int, few: bool) -> None:
    _connection.execute("CREATE OR REPLACE TABLE t (n BIGINT, s VARCHAR)")
    _connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * n) for n in lengths])
    try:
        result = sql.run(_connection, "SELECT n, s FROM t", ("t",), sql.Limits(bytes=limit), ready=lambda _: few)
    except SqlLimit:
        assert lengths[0] + 8 <= limit + 50 or lengths[0] > limit - 50
        return
    kept = len(result.rows)
    assert result.rows == tuple((n, "x" * n) for n in lengths[:kept])
    assert result.total_rows == len(lengths)
    assert sum(lengths[:kept]) <= limit
    assert kept == len(lengths) or sum(n + 30 for n in lengths[: kept + 1]) > limit


def test_one_row_over_the_byte_cap_is_an_error_that_says_what_to_do(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    with pytest.raises(SqlLimit, match=r"larger than 5000 bytes.*left\(column"):
        run(store, "SELECT repeat('x', 10000)", TABLES, sql.Limits(bytes=5000))


def test_no_rows_are_a_result_too(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    result = run(store, "SELECT n, service FROM spans WHERE false", TABLES)
    assert (result.columns, result.rows, result.total_rows) == (("n", "service"), (), 0)


def test_order_is_kept(store: duckdb.DuckDBPyConnection, run: Run) -> None:
    result = run(store, "SELECT n FROM spans", TABLES, sql.Limits(rows=30000))
    assert [row[0] for row in result.rows] == list(range(30000))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("SELECT servce FROM spans", 'column "servce" not found.*Candidate bindings: "service"'),
        ("SELECT n FROM spans ORDER BY nn", "nn"),
        ("SELECT n + service FROM spans", "(?i)could not convert|conversion|no function matches"),
        ("SELECT service FROM spans GROUP BY n", "must appear in the GROUP BY"),
        ("SELECT error('boom')", "boom"),
        ("SELECT * FROM detect_anomaly(spans, nope)", "nope"),
        ("SELECT list_filter(['{}'::JSON], v -> v->>'a' = 'b')", 'Write the lambda as: lambda v: .*column "v" was not'),
        ("SELECT 1 WHERE 1 = (SELECT n FROM spans)", "More than one row returned by a subquery[^.]*[.]$"),
        *(
            (f"SELECT {text} FROM times", "Times here are UTC and have no zone: write now.*::TIMESTAMP")
            for text in (
                "t > TIMESTAMPTZ '2024-01-01 00:00:00+00'",
                "t - TIMESTAMPTZ '2024-01-01 00:00:00+00'",
                "coalesce(t, TIMESTAMPTZ '2024-01-01 00:00:00+00')",
                "date_diff('ms', t, TIMESTAMPTZ '2024-01-01 00:00:00+00')",
                "now() AT TIME ZONE 'UTC' - t",
            )
        ),
        ("SELECT t::BIGINT FROM times", "Cast the time first: column::TIMESTAMP"),
        ("SELECT t - '2024-01-01' FROM times", "Write the time as TIMESTAMP '...'"),
        ("SELECT sum(t - t) FROM times", r"Take seconds: epoch\(b - a\)"),
        ("SELECT epoch_ms(max(t) - min(t)) FROM times", r"of an INTERVAL write epoch\(...\) \* 1000"),
    ],
)
def test_errors_of_the_database_are_short_and_useful(
    statement: str, says: str, store: duckdb.DuckDBPyConnection, run: Run
) -> None:
    with pytest.raises(SqlError, match=says) as caught:
        run(store, statement, (*TABLES, "times"))
    assert type(caught.value) is SqlError
    assert "Use " not in str(caught.value)
    assert len(str(caught.value)) <= 600
    assert "LINE 1" not in str(caught.value)
    assert run(store, "SELECT 1", TABLES).rows == ((1,),)


def test_a_table_that_has_gone_is_an_error_that_lists_the_tables(store: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(SqlError, match="The tables are: gone, spans"):
        sql.run(store, "SELECT * FROM gone", ("spans", "gone"))


def test_pivot_without_values_takes_them_from_the_data(store: duckdb.DuckDBPyConnection) -> None:
    result = sql.run(store, "PIVOT (SELECT n // 20000 AS part, service FROM spans) ON service USING count(*)", TABLES)
    assert result.columns[1:] == ("x0", "x1", "x2")
    assert sum(sum(row[1:]) for row in result.rows) == 30000
    with pytest.raises(SqlLimit, match="over 1000 columns"):
        sql.run(store, "PIVOT spans ON n USING count(*)", TABLES)


def test_a_locked_connection_keeps_its_walls(store: duckdb.DuckDBPyConnection) -> None:
    for statement in ("SET memory_limit = '10GB'", "SET enable_external_access = true", "SET temp_directory = '/tmp'"):
        with pytest.raises(duckdb.Error):
            store.execute(statement)
    with pytest.raises(duckdb.Error):
        store.execute("SELECT * FROM read_text('/etc/hostname')")
    with pytest.raises(duckdb.Error):
        store.execute("COPY spans TO '/tmp/spans.csv'")
    with pytest.raises(duckdb.Error):
        store.execute("INSTALL httpfs")
    names = "'enable_external_access', 'lock_configuration', 'TimeZone', 'temp_directory', 'python_enable_replacements'"
    found = dict(store.execute(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})").fetchall())
    assert found == {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "TimeZone": "UTC",
        "temp_directory": "",
        "python_enable_replacements": "false",
    }


def test_python_variables_are_no_tables() -> None:
    connection = sql.connect()
    frame = pa.table({"a": [1]})
    with pytest.raises(SqlError):
        sql.run(connection, "SELECT * FROM frame", ("frame",))
    connection.register("loaded", frame)
    assert sql.run(connection, "SELECT a FROM loaded", ("loaded",)).rows == ((1,),)


_LISTS = "SELECT sum(len(l)) FROM (SELECT list_transform(range(50000), lambda x: range(50000)) AS l)"
"""Makes lists of 20 GB in one vector, between two looks for an interrupt."""


def test_a_dedicated_process_is_capped_and_its_limit_put_back(
    store: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_dedicated", True)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    sql.run(store, "SELECT 1", TABLES)
    with pytest.raises(SqlLimit, match="needs more memory"):
        sql.run(store, _LISTS, TABLES, sql.Limits(memory=300 << 20))
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert sql.run(store, "SELECT 1", TABLES).rows == ((1,),)


def test_a_process_with_other_work_keeps_its_limits(
    store: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data segment is the whole process's: other threads of an embedding program would fail with the statement."""
    changed: list[object] = []
    monkeypatch.setattr(resource, "setrlimit", lambda *given: changed.append(given))
    assert sql.run(store, "SELECT count(*) FROM spans", TABLES).rows == ((30000,),)
    assert changed == []


def test_a_statement_during_which_the_process_grows_too_far_is_interrupted(
    store: duckdb.DuckDBPyConnection, run: Run
) -> None:
    with pytest.raises(SqlLimit, match="needs more memory"):
        run(
            store,
            "SELECT len(list(a.range)) FROM range(100000) a, range(100000) b",
            TABLES,
            sql.Limits(seconds=60, memory=200 << 20),
        )
    assert run(store, "SELECT count(*) FROM spans", TABLES).rows == ((30000,),)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("range(3)", [0, 1, 2]),
        ("range(5, 1, -2)", [5, 3]),
        ("range(2, 5)", [2, 3, 4]),
        ("generate_series(0, 6, 3)", [0, 3, 6]),
        ("generate_series(DATE '2024-01-31', DATE '2024-04-01', INTERVAL 1 MONTH)[2]", "2024-02-29T00:00:00"),
        ("len(range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL 1 MINUTE))", 1440),
        ("range(NULL::BIGINT)", None),
        ("list_resize([1], 3, 0)", [1, 0, 0]),
        ("list_resize([1], 2)", [1, None]),
        ("replace('a.b.c', '.', '/')", "a/b/c"),
        ("regexp_replace('a1b22', '[0-9]+', '#', 'g')", "a#b#"),
        ("regexp_replace('a1b22', '([0-9]+)', '<\\1>')", "a<1>b22"),
        ("len(range(100000))", 100_000),
        ("bitstring('101', 8)", "00000101"),
        ("epoch_ms('2024-01-01 00:00:00.123999999'::TIMESTAMP)", 1704067200123),
        ("epoch_ms('1969-12-31 23:59:59.9995'::TIMESTAMP)", -1),
        ("epoch_ms(1704067200123)", "2024-01-01T00:00:00.123"),
        ("epoch_ms(DATE '2024-01-01')", 1704067200000),
        ("epoch_ms(INTERVAL 1 HOUR)", 3600000),
        ("epoch_ms(NULL)", None),
    ],
)
def test_functions_with_a_bound_do_what_they_did(
    expression: str, value: object, store: duckdb.DuckDBPyConnection
) -> None:
    assert sql.run(store, f"SELECT {expression}", TABLES).rows == ((value,),)
    bare = duckdb.connect().execute(f"SELECT {expression}").fetchall()[0][0]
    assert (bare == value) or str(bare)[:10] == str(value)[:10]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("epoch_ms(t)", 1714979289123),
        ("epoch_ms(max(t))", 1714979289123),
        ("epoch_ms(date_trunc('minute', min(t)))", 1714979280000),
        ("epoch_ms('1969-12-31 23:59:59.999500001'::TIMESTAMP_NS)", -1),
        ("epoch_ms('1970-01-01 00:00:00.000999999'::TIMESTAMP_NS)", 0),
        ("epoch_ms(NULL::TIMESTAMP_NS)", None),
        ("date_diff('minute', t, now()) BETWEEN 1000000 AND 100000000", True),
        ("epoch(now() - t) > 0 AND t < now() - INTERVAL 1 YEAR AND t < current_timestamp", True),
        ("typeof(coalesce(t, now()))", "TIMESTAMP_NS"),
        ("list_transform([1, 2], x -> x + 1)", [2, 3]),
        ("list_transform([t], x -> epoch_ms(x))", [1714979289123]),
        ("'{\"a\": {\"b\": 3}}'::JSON->'a'->>'b'", "3"),
    ],
)
def test_times_in_nanoseconds_and_arrows_work_as_models_write_them(
    expression: str, value: object, store: duckdb.DuckDBPyConnection
) -> None:
    assert sql.run(store, f"SELECT {expression} FROM times", ("times",)).rows == ((value,),)


def test_statements_side_by_side_put_the_memory_limit_back_once_both_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_dedicated", True)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    found: list[object] = []

    def work() -> None:
        connection = sql.connect()
        found.extend(sql.run(connection, "SELECT sum(range) FROM range(2000000)", ()).rows[0][0] for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1999999000000] * 15
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_statement_after_an_interrupted_one_is_not_interrupted(store: duckdb.DuckDBPyConnection) -> None:
    for _ in range(5):
        with pytest.raises(SqlLimit):
            sql.run(
                store,
                "SELECT sum(a.range * b.range % 7) FROM range(1000000) a, range(1000000) b",
                TABLES,
                sql.Limits(seconds=0.05),
            )
        assert sql.run(store, "SELECT count(*) FROM spans", TABLES).rows == ((30000,),)


_connection = sql.connect()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), max_size=20))
def test_times_in_nanoseconds_come_back_exactly(values: list[int | None]) -> None:
    _connection.execute("CREATE OR REPLACE TABLE t (ns BIGINT)")
    for value in values:
        _connection.execute("INSERT INTO t VALUES (?)", [value])
    result = sql.run(_connection, "SELECT ns, make_timestamp_ns(ns) AS t FROM t", ("t",))
    assert [row[0] for row in result.rows] == values
    for value, text in result.rows:
        if value is None:
            assert text is None
            continue
        back = _connection.execute("SELECT epoch_ns(?::TIMESTAMP_NS)", [text]).fetchall()
        assert back == [(value,)]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_guard_fail_in_another_way_than_by_refusing(text: str) -> None:
    try:
        statement = sql.guard(text, ("spans",))
    except SqlError:
        return
    assert statement
    assert _connection.extract_statements(statement)[0].type in (
        duckdb.StatementType.SELECT,
        duckdb.StatementType.MULTI,
    )


def test_a_forked_process_has_a_guard_and_deadlines_of_its_own(store: duckdb.DuckDBPyConnection) -> None:
    sql.run(store, "SELECT 1", TABLES)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            connection = sql.connect()
            os.write(write, str(sql.run(connection, "SELECT 40 + 2", ()).rows[0][0]).encode())
            endless = "SELECT sum(a.range * b.range % 7) FROM range(1000000) a, range(1000000) b"
            sql.run(connection, endless, (), sql.Limits(seconds=0.2))
        except SqlLimit:
            os.write(write, b" stopped")
        finally:
            os._exit(0)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(20)
    try:
        with os.fdopen(read, "rb") as pipe:
            assert pipe.read() == b"42 stopped"
        os.waitpid(child, 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
