"""Operators are registered, described, guarded; those of other packages too, and broken ones break nothing (H31)."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from hyve import operators, sql
from hyve.errors import InputError, SqlError, SqlRefused
from hyve.operators import Function, Operator, Registry
from hyve.tokens import count_tokens
from tests.unit.operators_store import locked

OURS = {"detect_anomaly", "change_point", "top_contributors", "log_templates", "critical_path"}

LOUDEST = Operator(
    "LOUDEST",
    "LOUDEST('table', 'column')",
    "the largest value",
    "(tbl, col) AS TABLE SELECT max(COLUMNS(lambda c: c = col)) AS most FROM query_table(tbl)",
)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    yield from locked(
        "CREATE TABLE points AS SELECT i, i % 7 AS v FROM range(100) r(i)",
        "CREATE TABLE hidden AS SELECT 1 AS v",
        memory_limit="500MB",
    )


def test_all_operators_are_in_the_tool_specification_in_few_tokens() -> None:
    """H25, H31: names and signatures stand in what every request pays for."""
    assert operators.names() >= OURS
    described = operators.describe()
    for name in OURS:
        assert f"{name.upper()}(" in described
    assert count_tokens(described) <= 64


@pytest.mark.parametrize(
    "statement",
    [
        "FROM DETECT_ANOMALY(hidden, v)",
        "FROM DETECT_ANOMALY('hidden', 'v')",
        "FROM CHANGE_POINT('main.hidden', 'v')",
        "FROM LOG_TEMPLATES('duckdb_settings()', 'v')",
        "FROM LOG_TEMPLATES('sqlite_master', 'sql')",
        "FROM CRITICAL_PATH('/etc/passwd')",
        "FROM TOP_CONTRIBUTORS(hidden, v, '2026-01-01')",
        "SELECT * FROM (WITH y AS (FROM points) FROM points) q, DETECT_ANOMALY('y', 'v')",
    ],
)
def test_an_operator_reads_this_requests_tables_only(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Invariant 6: the table of an operator is checked as every other table."""
    with pytest.raises(SqlRefused, match="there is no table"):
        sql.run(connection, statement, ("points",))


@pytest.mark.parametrize(
    "statement",
    [
        "FROM DETECT_ANOMALY(tbl := 'hidden', col := 'v')",
        "FROM DETECT_ANOMALY('points', 'v', tbl := 'hidden')",
        "FROM DETECT_ANOMALY('points', 'v', TBL := 'hidden')",
        "FROM DETECT_ANOMALY('hid' || 'den', 'v')",
        "FROM DETECT_ANOMALY((SELECT 'hidden'), 'v')",
        "FROM DETECT_ANOMALY('points', 'v', k := (SELECT max(v) FROM hidden))",
        "FROM DETECT_ANOMALY('points', 'v', k := getenv('HOME'))",
        "FROM DETECT_ANOMALY('points', 'v', k := CAST(getenv('HOME') AS INT))",
        "SELECT hyve_detect_anomaly([1.0], [1], [1], 3.5)",
        "SELECT [1.0].hyve_detect_anomaly([1], [1], 3.5)",
        "FROM hyve_critical_path('points')",
        "FROM main.detect_anomaly('points', 'v')",
    ],
)
def test_an_operator_is_no_way_around_the_guard(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Invariant 6: names and values only, and the functions behind the macros can't be called."""
    with pytest.raises(SqlRefused):
        sql.run(connection, statement, ("points",))


@pytest.mark.parametrize("name", ["points' UNION SELECT 1 --", 'v" FROM hidden --', "%", "", "🦆", "a" * 10_000])
def test_a_column_is_a_name_and_never_sql(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    quoted = "'" + name.replace("'", "''") + "'"
    calls = ("DETECT_ANOMALY('points', {})", "LOG_TEMPLATES('points', {})", "TOP_CONTRIBUTORS('points', {}, '2026')")
    for statement in (f"FROM {call.format(quoted)}" for call in calls):
        with pytest.raises(SqlError, match="points has no column"):
            sql.run(connection, statement, ("points",))


def test_operators_read_ctes_whatever_they_are_called(connection: duckdb.DuckDBPyConnection) -> None:
    for name in ("_rows", "_read", "_points", "x"):
        statement = f"WITH {name} AS (SELECT i, CASE WHEN i = 50 THEN 99 ELSE i % 2 END AS w FROM points)"
        result = sql.run(connection, f"{statement} SELECT first_row, value FROM DETECT_ANOMALY({name}, w)", ("points",))
        assert result.rows == ((50, 99.0),)


def test_an_operator_of_the_librarys_user(connection: duckdb.DuckDBPyConnection) -> None:
    def double(values: pa.ChunkedArray) -> pa.Array:
        return pa.array([None if value is None else 2 * value for value in values.to_pylist()])

    twice = Operator(
        "TWICE",
        "TWICE('table', 'column')",
        "",
        "(tbl, col) AS TABLE SELECT hyve_twice(CAST(max(COLUMNS(lambda c: c = col)) AS BIGINT)) FROM query_table(tbl)",
        (Function("hyve_twice", double, ("BIGINT",), "BIGINT"),),
    )
    registry = Registry()
    registry.add(LOUDEST)
    registry.add(twice)
    assert registry.describe() == "LOUDEST('table', 'column'): the largest value\nTWICE('table', 'column')"
    registry.install(connection)
    assert connection.execute("FROM loudest('points', 'v')").fetchall() == [(6,)]
    assert connection.execute("FROM twice('points', 'v')").fetchall() == [(12,)]
    with pytest.raises(InputError, match="too late"):
        registry.add(Operator("LATE", "LATE('table')", "", "(tbl) AS TABLE FROM query_table(tbl)"))


@pytest.mark.parametrize(
    ("name", "macro", "words", "reason"),
    [
        ("read_csv", "(tbl) AS TABLE FROM query_table(tbl)", "", "DuckDB has a function called read_csv"),
        ("duckdb_settings", "(tbl) AS TABLE FROM query_table(tbl)", "", "DuckDB has a function"),
        ("loudest", "(tbl) AS TABLE FROM query_table(tbl)", "", "the name is taken"),
        ("drop table x", "(tbl) AS TABLE FROM query_table(tbl)", "", "use up to 40 letters"),
        ("NEW", "(x) AS TABLE FROM query_table(x)", "", "the first is tbl"),
        ("NEW", "(tbl) AS TABLE FROM FROM", "", "Parser Error"),
        ("NEW", "(tbl) AS TABLE FROM query_table(tbl)", "x" * 301, "300 characters"),
        ("NEW", "(tbl) AS TABLE FROM query_table(tbl)", "a\nb", "one line"),
    ],
)
def test_an_operator_that_is_no_good_is_refused(name: str, macro: str, words: str, reason: str) -> None:
    registry = Registry([LOUDEST])
    with pytest.raises(InputError, match=reason):
        registry.add(Operator(name, "", words, macro))
    assert registry.names() == {"loudest"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installed package with a good entry point, two in one, and three that are broken."""
    (tmp_path / "plug.py").write_text(
        textwrap.dedent("""
        from hyve.operators import Operator
        good = Operator("LOUDEST", "LOUDEST('table', 'column')", "the largest value",
            "(tbl, col) AS TABLE SELECT max(COLUMNS(lambda c: c = col)) AS most FROM query_table(tbl)")
        pair = [Operator(name, f"{name}('table')", "", "(tbl) AS TABLE SELECT count(*) AS n FROM query_table(tbl)")
                for name in ("COUNTED", "NUMBERED")]
        text = "no operator"
        stolen = Operator("detect_anomaly", "", "", "(tbl) AS TABLE FROM query_table(tbl)")
        """)
    )
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hyve.operators]\ngood = plug:good\npair = plug:pair\n"
        "text = plug:text\nstolen = plug:stolen\nnone = plug_that_isnt:x\n"
    )
    return tmp_path


def test_entry_points_are_found_and_broken_ones_left_out(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H31: registration by entry point; what can't be had is a warning that names it."""
    monkeypatch.syspath_prepend(str(package))
    registry = Registry([Operator("DETECT_ANOMALY", "", "", "(tbl) AS TABLE FROM query_table(tbl)")])
    with pytest.warns(RuntimeWarning) as met:
        registry.discover()
    assert registry.names() == {"detect_anomaly", "loudest", "counted", "numbered"}
    assert sorted(str(item.message).split("'")[1] for item in met) == ["none", "stolen", "text"]


def test_an_entry_point_works_from_the_prompt_to_the_rows(package: Path) -> None:
    """In a process of its own: the tool specification names the operator, and the guard lets it read its table."""
    program = textwrap.dedent("""
        import hyve
        from hyve.reply import TOOLS
        assert "LOUDEST('table', 'column'): the largest value" in TOOLS[0]["function"]["description"]
        with hyve.Datastore.from_text('[{"a": 1}, {"a": 5}]') as store:
            print(store.query("FROM LOUDEST(records, a)").rows, store.query("FROM COUNTED('records')").rows)
            try:
                store.query("FROM LOUDEST('sqlite_master', 'sql')")
            except hyve.SqlRefused as error:
                print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", program],
        env={"PYTHONPATH": f"{package}:{Path(__file__).parents[2]}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    rows, refusal = done.stdout.splitlines()
    assert rows == "((5,),) ((2,),)"
    assert refusal.startswith("there is no table 'sqlite_master'")
    assert done.stderr.count("is left out") == 3
