"""What the guard lets through, and what it does not, and what stops at a limit: all run against a real store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyve import functions, limits, operators, sql
from hyve.errors import SqlError, SqlRefused
from tests.unit import statements
from tests.unit.statements import TABLES

GENERATED = [
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "SELECT " + "1+" * 16_000 + "1",
    "SELECT '" + "x" * 40_000 + "'",
    "SELECT " + "list_transform([1], lambda x: " * 400 + "x" + ")" * 400,
    "WITH " + ", ".join(f"c{i} AS (SELECT * FROM read_text('/etc/passwd'))" for i in range(400)) + " SELECT 1",
    "SELECT * FROM spans WHERE " + " OR ".join(["getenv('HOME') = 'x'"] * 1000),
]


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = statements.store()
    yield connection
    connection.close()


@pytest.fixture
def dedicated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that runs nothing but statements; else these would take gigabytes before they end."""
    monkeypatch.setattr(limits, "_dedicated", True)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("word\nopensesame\n")
    return path


def test_the_sets_are_as_large_as_asked_for() -> None:
    hostile, endless, harmless = statements.hostile("hostile"), statements.hostile("endless"), statements.harmless()
    assert len({text for text, _ in hostile + endless}) == len(hostile + endless) >= 400
    assert len(set(harmless)) == len(harmless) >= 500


@pytest.mark.parametrize(("statement", "says"), statements.hostile("hostile"), ids=lambda text: text[:60])
def test_hostile_statements_are_refused_and_change_nothing(
    statement: str, says: str, store: duckdb.DuckDBPyConnection, secret: Path
) -> None:
    """Invariant 6, H32: no file, setting, network, catalog or other table is reached, and the error explains itself."""
    before = store.execute("SELECT count(*), sum(code) FROM spans").fetchall()
    with pytest.raises(SqlError) as caught:
        sql.run(store, statement.replace("{secret}", str(secret)), TABLES)
    # One is stopped later than by the guard: DuckDB looks up the name of an aggregate in a text.
    assert isinstance(caught.value, SqlRefused) or "list_aggregate" in statement
    assert says in str(caught.value)
    assert len(str(caught.value)) > 20
    assert "opensesame" not in str(caught.value)
    assert store.execute("SELECT count(*), sum(code) FROM spans").fetchall() == before
    assert [path.name for path in secret.parent.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("statement", GENERATED, ids=lambda text: text[:60])
def test_statements_of_hostile_size_are_refused(statement: str) -> None:
    with pytest.raises(SqlRefused):
        sql.guard(statement, TABLES)


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [
        ("(", ")", 5000),
        ("1 + ", "", 2000),
        ("NOT ", "", 3000),
        ("abs(", ")", 300),
        ("abs(", ")", 2000),
        ("(SELECT ", ")", 300),
        ("[", "]", 600),
        ("CASE WHEN true THEN ", " END", 300),
        ("list_transform([1], x -> ", ")", 400),
    ],
)
def test_a_statement_that_is_nested_too_deeply_is_told_so(before: str, after: str, times: int) -> None:
    """And not to raise a limit of DuckDB's or Python's, which no statement can."""
    with pytest.raises(SqlRefused, match=r"^the statement is nested too deeply; write a simpler one$"):
        sql.guard("SELECT " + before * times + "1" + after * times, TABLES)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 /* /* nested */ ; DROP TABLE spans; */",
        "SELECT 1 AS x -- ; DROP TABLE spans",
        "SELECT code FROM spans WINDOW w AS (PARTITION BY (SELECT content FROM read_text('{secret}')))",
    ],
)
def test_what_only_looks_hostile_does_nothing(statement: str, store: duckdb.DuckDBPyConnection, secret: Path) -> None:
    """The second statement is a comment, the window is never used: DuckDB itself leaves both out."""
    result = sql.run(store, statement.replace("{secret}", str(secret)), TABLES)
    assert "opensesame" not in str(result.rows)
    assert store.execute("SELECT count(*) FROM spans").fetchall() == [(40,)]


@pytest.mark.parametrize("statement", statements.harmless(), ids=lambda text: text[:60])
def test_harmless_statements_run(statement: str, store: duckdb.DuckDBPyConnection) -> None:
    """H30: what a model may sensibly ask is never refused."""
    result = sql.run(store, statement, TABLES)
    assert len(result.columns) == len(result.types) > 0
    assert all(len(row) == len(result.columns) for row in result.rows)
    assert result.total_rows == len(result.rows)


@pytest.mark.parametrize(("statement", "says"), statements.hostile("endless"), ids=lambda text: text[:60])
@pytest.mark.usefixtures("dedicated")
def test_endless_and_huge_statements_end_at_a_limit(
    statement: str, says: str, store: duckdb.DuckDBPyConnection
) -> None:
    with pytest.raises(SqlError) as caught:
        sql.run(store, statement, TABLES, sql.Limits(seconds=0.3, memory=300 << 20))
    assert any(part in str(caught.value) for part in says.split("|"))
    assert sql.run(store, "SELECT count(*) FROM spans", TABLES).rows == ((40,),)


def test_a_pivot_sorts_as_the_same_pivot_in_a_query(store: duckdb.DuckDBPyConnection) -> None:
    pivot = "PIVOT spans ON status USING count(*) GROUP BY service"
    result = sql.run(store, f"{pivot} ORDER BY service DESC LIMIT 2", TABLES)
    assert result.columns == ("service", "error", "ok")
    assert result.rows == (("c", 6, 7), ("b", 7, 6))
    assert result.rows == sql.run(store, f"SELECT * FROM ({pivot}) ORDER BY service DESC LIMIT 2", TABLES).rows
    unpivot = "UNPIVOT metrics ON value, code INTO NAME n VALUE v ORDER BY time, n LIMIT 2"
    assert [row[2:] for row in sql.run(store, unpivot, TABLES).rows] == [("code", 200.0), ("value", 0.0)]


def test_a_pivot_over_no_values_says_so(store: duckdb.DuckDBPyConnection) -> None:
    result = sql.run(store, "PIVOT (FROM spans WHERE code = 0) ON status USING count(*) GROUP BY service", TABLES)
    assert (result.columns, result.rows) == (("service", "(no value)"), ())


def test_a_table_that_is_not_of_the_request_is_refused_by_name(store: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(SqlRefused, match=r"no table 'hidden' in this request; the tables are: .*logs.*spans"):
        sql.run(store, "SELECT * FROM hidden", TABLES)
    with pytest.raises(SqlRefused, match="no table 'hidden'"):
        sql.run(store, "SELECT * FROM detect_anomaly(hidden, x)", TABLES)


def test_the_guard_gives_back_the_statement_without_its_semicolon() -> None:
    assert sql.guard("  SELECT 1 ;; ", ()) == "SELECT 1"


def test_bare_names_in_an_operator_become_texts_also_after_wide_characters() -> None:
    text = "SELECT '日本' FROM detect_anomaly(spans, \"duration_ms\", k := 4)"
    assert sql.guard(text, TABLES) == "SELECT '日本' FROM detect_anomaly('spans', 'duration_ms', k := 4)"


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DROP TABLE spans", "DROP is not allowed"),
        ("PRAGMA version", "PRAGMA is not allowed"),
        ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN is not allowed"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT 1; DROP TABLE spans", r"several statements were sent \(SELECT and DROP\)"),
        ("SELECT getenv('HOME')", r"function getenv\(\) is not allowed"),
        ("SELECT * FROM read_csv('x')", r"table function read_csv\(\) is not allowed"),
        ("WITH x AS (DELETE FROM spans RETURNING *) FROM x", "DELETE is not allowed"),
        ("SELECT a FROM spans WHERE", "syntax error"),
        ("SELECT 1\x00", r"U\+0000 at offset 8"),
        ("SHOW TABLES", "DESCRIBE one of the tables: analytics, contacts"),
        ("CHECKPOINT", "^CHECKPOINT is not allowed"),
        ("install httpfs", "^INSTALL is not allowed"),
        ("SELECT mode(code) OVER (ORDER BY time) FROM spans", r"mode\(\) .*use GROUP BY.*up to 1000 on each side"),
    ],
)
def test_refusals_say_what_and_why(statement: str, says: str) -> None:
    with pytest.raises(SqlRefused, match=says):
        sql.guard(statement, TABLES)


def test_the_allow_list_holds_only_functions_that_duckdb_has() -> None:
    known = {
        row[0].lower() for row in duckdb.connect().execute("SELECT function_name FROM duckdb_functions()").fetchall()
    }
    # Parsed as functions but not in DuckDB's list.
    grammar = {
        "coalesce",
        "ifnull",
        "try_cast",
        "current_date",
        "current_time",
        "current_timestamp",
        "grouping_id",
    }
    grammar |= {
        "grouping",
        "percentile_cont",
        "percentile_disc",
        "overlay",
        "position",
        "->",
        "<>",
        "element_at",
    }
    unknown = functions.ALLOWED - known - grammar
    assert unknown == set()


LEFT_OUT = {
    "reads files, or tells about files": (
        r"read_\w+|parquet_\w+|glob|sniff_csv|seq_scan|arrow_scan\w*|pandas_scan|python_\w+"
    ),
    "tells about the database, its settings or its users": (
        r"duckdb_(?!approx)\w+|duckdb_approx_database_count|pragma_\w+|current_(?!date|time|local)\w+|\w*session_user|user"
        r"|version|stats|summary|which_secret|has_\w+_privilege|(?:obj|col|shobj)_description|pg_(?!typeof|size|sleep)\w+"
        r"|inet_\w+|in_search_path|txid_current|get_block_size|icu_calendar_names|map_t\w+_pg_oid|map_type_id_to_pg_oid"
        r"|format_type|format_pg_type"
    ),
    "runs or describes other SQL, or a table named in a text": (
        r"query|query_table|histogram_values|json_(?:de)?serialize_\w+|json_execute_serialized_sql|test_\w+"
    ),
    "changes something, or keeps a state": (
        r"(?:force_)?checkpoint|(?:enable|disable)_\w+|truncate_duckdb_logs|write_log|nextval|currval|setval|setseed"
        r"|getvariable|\w+_external_resource(?:_type)?|\w+_grammar_extension"
    ),
    "waits": r"pg_sleep|sleep_ms",
    "has a form of its own in SQL: COLLATE, IS DISTINCT FROM, UNION ALL": (
        r"(?:icu_)?collate_\w+|icu_sort_key|is (?:not )?distinct from|repeat_row"
    ),
    "is DuckDB's own, for its plans and files": (
        r"__internal_\w+|combine|combine_aggr|finalize|to_aggregate_state|decimal_\w+|invoke|switch|index_key|replace_type"
        r"|get_type|make_type|vector_type|\w+_byte_comparable|hive_partition_component|parse_duckdb_log_message"
        r"|json_copy_\w+|variant_bytes_to_variant|variant_comparator|variant_to_parquet_variant"
    ),
    "is about geometries, which telemetry has none of": r"st_\w+|vertex_extract",
}


def test_every_function_of_duckdb_is_allowed_or_left_out_for_a_reason() -> None:
    """H30: what is pure and bounded can be called. A new function of DuckDB's fails here until it was judged."""
    listed = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type <> 'pragma'"
    rows = duckdb.connect().execute(listed).fetchall()
    allowed = functions.ALLOWED | functions.TABLE_FUNCTIONS | operators.names()
    left = {name for (name,) in rows} - allowed
    reasons = {name: [why for why, names in LEFT_OUT.items() if re.fullmatch(names, name)] for name in left}
    assert {name: why for name, why in reasons.items() if len(why) != 1} == {}
    assert {why for (why,) in reasons.values()} == set(LEFT_OUT)
    assert not [name for name in functions.ALLOWED for names in LEFT_OUT.values() if re.fullmatch(names, name)]


def test_no_function_that_reads_or_changes_the_outside_is_on_the_allow_list() -> None:
    dangerous = (
        "read_",
        "duckdb_",
        "pragma_",
        "parquet_",
        "pg_",
        "scan",
        "setting",
        "variable",
        "secret",
        "sleep",
    )
    allowed = functions.ALLOWED | functions.TABLE_FUNCTIONS
    found = {name for name in allowed for part in dangerous if part in name}
    assert found == {"pg_size_pretty", "pg_typeof"}
    assert not allowed & {
        "query",
        "query_table",
        "glob",
        "getenv",
        "nextval",
        "setval",
        "write_log",
        "version",
        "stats",
    }


_SOURCES = (
    "read_text('{secret}')", "read_csv('{secret}')", "'{secret}'", '"{secret}"', "hidden", "main.hidden",
    "glob('{secret}')", "duckdb_settings()", "duckdb_tables()", "information_schema.tables", "query_table('hidden')",
    "query('FROM hidden')", "(SELECT getenv('HYVE_TEST_SECRET'))", "(SELECT current_setting('memory_limit'))",
    "detect_anomaly('hidden', 'x')", "(FROM hidden)", "(VALUES ((FROM read_text('{secret}'))))",
)  # fmt: skip
_AROUND = (
    "SELECT * FROM {}", "FROM {}", "TABLE {}", "SUMMARIZE {}", "SELECT count(*) FROM spans, {}",
    "SELECT * FROM spans WHERE EXISTS (FROM {})", "WITH spans AS (FROM {}) FROM spans", "PIVOT {} ON x USING count(*)",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL FROM {}) FROM r", "SELECT (SELECT count(*) FROM {})", "DESCRIBE FROM {}",
    "PIVOT {} ON x USING count(*) ORDER BY 1", "UNPIVOT {} ON x INTO NAME n VALUE v LIMIT 1", "COPY (FROM {}) TO 'x'",
    "SELECT * FROM spans UNION ALL FROM {}", "SELECT 1; FROM {}", "EXPLAIN ANALYZE FROM {}",
    "CREATE TABLE y AS FROM {}", "SELECT * FROM spans ORDER BY (SELECT count(*) FROM {})",
    "INSERT INTO spans FROM {}", "FROM (FROM {}) AS q",
)  # fmt: skip
_BETWEEN = (" ", "\t", "\n", " /* x */ ", " --\n", "/**/")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    around=st.lists(st.sampled_from(_AROUND), min_size=1, max_size=3),
    source=st.sampled_from(_SOURCES),
    between=st.sampled_from(_BETWEEN),
    upper=st.booleans(),
)
def test_nothing_outside_of_the_request_is_reached_in_any_disguise(
    around: list[str],
    source: str,
    between: str,
    upper: bool,
    store: duckdb.DuckDBPyConnection,
    secret: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariant 6: no SQL from a model reaches a file, a setting, the environment or another table."""
    monkeypatch.setenv("HYVE_TEST_SECRET", "opensesame")
    statement = source
    for shape in around:
        inner = statement if statement == source else f"({statement})"
        statement = shape.replace("{}", inner)
    statement = statement.replace(" ", between).replace("{secret}", str(secret))
    if upper:
        statement = (
            statement.replace("read_text", "READ_TEXT").replace("hidden", "HIDDEN").replace("duckdb_", "DuckDB_")
        )
    with pytest.raises(SqlRefused):
        sql.run(store, statement, TABLES)
    assert store.execute("SELECT count(*) FROM spans").fetchall() == [(40,)]
    assert [path.name for path in secret.parent.iterdir()] == ["secret.csv"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(" ".join(statements.harmless()).split(" ")), max_size=25).map(" ".join))
def test_whatever_passes_is_one_statement_that_reads(text: str) -> None:
    """Invariant 6 on random pieces of harmless statements: what the guard lets through DuckDB too calls a SELECT."""
    try:
        statement = sql.guard(text, TABLES)
    except SqlRefused:
        return
    kinds = [found.type for found in duckdb.connect().extract_statements(statement)]
    assert kinds in ([duckdb.StatementType.SELECT], [duckdb.StatementType.MULTI])
