"""TOP_CONTRIBUTORS, LOG_TEMPLATES and CRITICAL_PATH on tables whose answers were worked out by hand (H31)."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import sql
from hyve.errors import SqlError
from hyve.operators.critical_path import critical_path
from tests.unit.operators_store import locked

AT = "TIMESTAMP '2026-01-01 12:00:00' + to_minutes(i)"

connection = pytest.fixture(locked, scope="module")


@pytest.fixture
def requests(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Twenty minutes; from the tenth on `b` has 4 a minute for 1, `c` 1 for 2, `a` 1 as before. In all 40 become 60."""
    connection.execute(
        f"""CREATE OR REPLACE TABLE requests AS
        SELECT {AT} AS time, service, CASE service WHEN 'a' THEN 'x' ELSE 'y' END AS zone,
               'r' || i || service AS request_id,
               CASE service WHEN 'a' THEN 1 WHEN 'b' THEN CASE WHEN i < 10 THEN 1 ELSE 4 END
                    ELSE CASE WHEN i < 10 THEN 2 ELSE 1 END END AS n
        FROM range(20) r(i), (VALUES ('a'), ('b'), ('c')) s(service)"""
    )
    return connection


def rows(connection: duckdb.DuckDBPyConnection, statement: str, table: str = "requests") -> list[tuple[Any, ...]]:
    return list(sql.run(connection, statement, (table,)).rows)


SPLIT = "2026-01-01 12:10:00"


def test_shares_of_a_change_in_both_directions(requests: duckdb.DuckDBPyConnection) -> None:
    """9 minutes before against 9 from the split on: 36 become 54, so 18 more: `b` 27, `c` 9 fewer."""
    asked = f"SELECT * FROM TOP_CONTRIBUTORS('requests', 'n', '{SPLIT}')"
    assert rows(requests, asked) == [
        ("service", "b", 9.0, 36.0, 27.0, 1.5, 3),
        ("zone", "y", 27.0, 45.0, 18.0, 1.0, 3),
        ("service", "c", 18.0, 9.0, -9.0, -0.5, 3),
    ]


def test_the_window_the_dimensions_and_the_time_can_be_given(requests: duckdb.DuckDBPyConnection) -> None:
    more = "dimensions := 'Zone', span := '5 minutes', time := 'time'"
    asked = f"FROM TOP_CONTRIBUTORS(requests, n, TIMESTAMP '{SPLIT}', {more})"
    assert rows(requests, asked) == [("zone", "y", 15.0, 25.0, 10.0, 1.0, 1)]


def test_rows_are_counted_and_where_all_in_all_nothing_changed_there_is_no_share(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute(
        f"CREATE OR REPLACE TABLE requests AS SELECT {AT} AS time,"
        " CASE WHEN i >= 10 THEN 'new' ELSE 'old' END AS version,"
        " CASE WHEN i % 2 = 0 THEN 'even' END AS parity FROM range(20) r(i)"
    )
    asked = f"FROM TOP_CONTRIBUTORS('requests', '*', '{SPLIT}', span := '10 minutes')"
    assert rows(connection, asked) == [
        ("version", "new", 0.0, 10.0, 10.0, None, 2),
        ("version", "old", 10.0, 0.0, -10.0, None, 2),
    ]
    late = "WITH late AS (FROM requests WHERE parity IS NULL OR version = 'old')"
    asked = f"{late} FROM TOP_CONTRIBUTORS(late, '*', '{SPLIT}', dimensions := 'parity', span := '10 minutes')"
    assert rows(connection, asked) == [("parity", "even", 5.0, 0.0, -5.0, 1.0, 1)]


def test_a_dimension_with_nulls_and_one_of_ids(requests: duckdb.DuckDBPyConnection) -> None:
    """Ids are no dimension unless they are asked for; NULL is a value like others."""
    found = {row[0] for row in rows(requests, f"FROM TOP_CONTRIBUTORS('requests', 'n', '{SPLIT}', top := 1000)")}
    assert found == {"service", "zone"}
    requests.execute("UPDATE requests SET service = NULL WHERE service = 'b'")
    asked = f"FROM TOP_CONTRIBUTORS('requests', 'n', '{SPLIT}', dimensions := 'service', top := 1)"
    assert rows(requests, asked) == [("service", None, 9.0, 36.0, 27.0, 1.5, 2)]
    asked = (
        f"SELECT count(*) FROM TOP_CONTRIBUTORS('requests', 'n', '{SPLIT}', dimensions := 'request_id', top := 1000)"
    )
    assert rows(requests, asked) == [(54,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'n', 'yesterday'", "yesterday is no time; write it as 2026-01-31 12:00:00"),
        ("'n', NULL", "NULL is no time; write it as"),
        ("'n'", "NULL is no time; write it as"),
        ("NULL, '2026-01-01 12:10:00'", "name a column of requests; it has time, service"),
        ("'n', '2026-01-01 12:10:00', top := -1", "top must be a whole number from 0 on, not -1"),
        ("'n', '2027-01-01'", "the split must lie between the times of requests, 2026-01-01 12:00:00 and"),
        ("'n', '2026-01-01 12:10:00', span := 'soon'", "soon is no span of time; write it as 10 minutes"),
        ("'n', '2026-01-01 12:10:00', span := '-5 minutes'", "is no span of time"),
        ("'service', '2026-01-01 12:10:00'", "service is VARCHAR, not numbers"),
        ("'m', '2026-01-01 12:10:00'", "requests has no column m; it has time, service, zone, request_id, n"),
        ("'n', '2026-01-01 12:10:00', dimensions := 'zone, region'", "requests has no column region"),
        ("'n', '2026-01-01 12:10:00', time := 'zone'", "has no row with a time and a number; name its column: time :="),
    ],
)
def test_errors_say_what_to_write(requests: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        rows(requests, f"FROM TOP_CONTRIBUTORS('requests', {arguments})")


def test_messages_by_what_they_say(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"""CREATE OR REPLACE TABLE logs AS SELECT {AT} AS time,
        CASE WHEN i = 7 THEN 'disk sda1 is full' WHEN i = 9 THEN NULL
             ELSE 'GET /cart/' || i * 31 || ' from 10.0.0.' || i || ' took ' || i || 'ms' END AS body
        FROM range(10) r(i)"""
    )
    assert rows(connection, "FROM LOG_TEMPLATES('logs', 'body')", "logs") == [
        (
            *("GET /cart/# from # took #", 8, 0.8889, "2026-01-01T12:00:00", "2026-01-01T12:08:00", 0, 8),
            *("GET /cart/0 from 10.0.0.0 took 0ms", 2),
        ),
        ("disk # is full", 1, 0.1111, "2026-01-01T12:07:00", "2026-01-01T12:07:00", 7, 7, "disk sda1 is full", 2),
    ]
    assert len(rows(connection, "FROM LOG_TEMPLATES(logs, body, top := 1)", "logs")) == 1
    for more, message in {
        ", body, top := -3": "top must be a whole number from 0 on, not -3",
        ", body, 'time'": "top must be a whole number from 0 on, not time; give what follows the columns by name",
        "": "name a column of logs; it has time, body",
    }.items():
        with pytest.raises(SqlError, match=message):
            rows(connection, f"FROM LOG_TEMPLATES(logs{more})", "logs")


def test_templates_are_those_of_lines() -> None:
    text = "\n".join(f"2026-01-01 12:00:{i:02} WARN pool-{i} timeout after {i}ms" for i in range(30)) + "\nshutdown"
    with hyve.Datastore.from_text(text) as store:
        asked = "SELECT template, count FROM LOG_TEMPLATES('lines', 'text')"
        grouped = "SELECT template, count(*) FROM lines GROUP BY 1 ORDER BY 2 DESC"
        assert store.query(asked).rows == store.query(grouped).rows
        assert len(store.query(asked).rows) == 2


def span(span_id: str, parent: str | None, start: float, end: float) -> tuple[str, str | None, int, int]:
    """Times in milliseconds."""
    return span_id, parent, round(start * 1_000_000), round(end * 1_000_000)


def path(*spans: tuple[str, str | None, int, int]) -> list[tuple[str | None, float, str | None]]:
    """Id, self time in milliseconds, note."""
    return [(spans[one["place"]][0], one["self"] / 1e6, one["note"]) for one in critical_path(spans)]


def test_the_path_of_a_trace_from_its_payload_to_self_times() -> None:
    """web 0-10 calls db 1-4, then svc 5-9, which calls cache 6-7: web waits 0-1, 4-5 and 9-10 for itself."""
    calls = [("1", None, "web", 0, 10), ("2", "1", "db", 1, 3), ("3", "1", "svc", 5, 4), ("4", "3", "cache", 6, 1)]
    zipkin = [
        {
            "traceId": "a" * 32,
            "id": own * 16,
            "parentId": parent and parent * 16,
            "name": name,
            "timestamp": 1_767_225_600_000_000 + start * 1000,
            "duration": took * 1000,
            "localEndpoint": {"serviceName": name},
        }
        for own, parent, name, start, took in calls
    ]
    with hyve.Datastore.from_text(json.dumps(zipkin)) as store:
        assert store.query(
            "SELECT service, start_ms, duration_ms, self_ms, share, note FROM CRITICAL_PATH('spans')"
        ).rows == (
            ("web", 0.0, 10.0, 3.0, 0.3, None),
            ("db", 1.0, 3.0, 3.0, 0.3, None),
            ("svc", 5.0, 4.0, 3.0, 0.3, None),
            ("cache", 6.0, 1.0, 1.0, 0.1, None),
        )
        assert store.query(f"SELECT count(*) FROM CRITICAL_PATH(spans, trace := '{'a' * 32}')").rows == ((4,),)
        assert store.query("FROM CRITICAL_PATH('spans', trace := 'x')").rows == ()
        with pytest.raises(SqlError, match="records has no column trace_id; it has _row_id, traceId, id"):
            store.query("FROM CRITICAL_PATH('records')")


def test_the_longest_trace_is_taken(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"CREATE OR REPLACE TABLE spans AS SELECT 't' || i AS trace_id, 's' AS span_id, {AT} AS time,"
        " i * 1000.0 AS duration_ms FROM range(5) r(i)"
    )
    assert rows(connection, "SELECT trace_id, self_ms, service FROM CRITICAL_PATH(spans)", "spans") == [
        ("t4", 4000.0, None)
    ]


def test_of_parallel_children_the_last_counts() -> None:
    assert path(span("root", None, 0, 10), span("short", "root", 1, 5), span("long", "root", 1, 9)) == [
        ("root", 2.0, None),
        ("long", 8.0, None),
    ]


def test_children_that_hardly_overlap_come_one_after_the_other() -> None:
    assert path(span("root", None, 0, 10), span("one", "root", 0, 5.1), span("two", "root", 5, 10)) == [
        ("root", 0.0, None),
        ("one", 5.0, None),
        ("two", 5.0, None),
    ]


def test_what_goes_on_after_its_parent_is_cut_and_what_starts_after_it_left_out() -> None:
    assert path(span("root", None, 0, 10), span("async", "root", 8, 30), span("later", "root", 11, 12)) == [
        ("root", 8.0, None),
        ("async", 2.0, "goes on 20 ms after its parent"),
    ]


def test_a_clock_that_is_slow_is_set_right_with_all_below_it() -> None:
    """The child's clock is 3 ms behind: 0-4 is really 3-7 at the earliest, or it would start before it was called."""
    assert path(span("root", None, 3, 13), span("skewed", "root", 0, 4), span("below", "skewed", 1, 2)) == [
        ("root", 6.0, None),
        ("skewed", 3.0, "clock: moved by 3 ms"),
        ("below", 1.0, None),
    ]


def test_a_missing_parent_and_shared_ids() -> None:
    assert path(span("root", None, 0, 10), span("orphan", "lost", 2, 6)) == [
        ("root", 6.0, None),
        ("orphan", 4.0, "its parent is missing"),
    ]
    assert path(span("only", "lost", 0, 5)) == [("only", 5.0, "its parent is missing")]
    assert path(span("root", None, 0, 10), span("rpc", "root", 1, 9), span("rpc", "root", 2, 8)) == [
        ("root", 2.0, None),
        ("rpc", 2.0, None),
        ("rpc", 6.0, None),
    ]


def test_loops_are_left_out() -> None:
    assert path(span("root", None, 0, 10), span("a", "b", 1, 2), span("b", "a", 1, 2)) == [("root", 10.0, None)]
    assert path() == []


def test_where_there_is_nothing_but_a_loop_the_earliest_span_is_the_root() -> None:
    """b 1-9 calls a 2-6, which names b's caller: 8 ms, of which a took 4."""
    assert path(span("a", "b", 2, 6), span("b", "a", 1, 9)) == [
        ("b", 4.0, "the spans are each other's parents; this is the earliest"),
        ("a", 4.0, None),
    ]


def test_a_span_that_is_its_own_parent_has_an_unknown_one() -> None:
    """It is no root beside a real one, and none before a longer one whose parent is missing."""
    missing = "its parent is missing"
    assert path(span("a", "a", 1, 2)) == [("a", 1.0, missing)]
    assert path(span("self", "self", 2, 3), span("lost", "gone", 0, 100)) == [
        ("lost", 99.0, missing),
        ("self", 1.0, missing),
    ]
    assert path(span("self", "self", 20, 70), span("root", None, 0, 10), span("child", "root", 2, 8)) == [
        ("root", 4.0, None),
        ("child", 6.0, None),
    ]


def test_deep_and_wide_traces_are_walked() -> None:
    deep = [span(str(i), str(i - 1) if i else None, i / 1000, 100 - i / 1000) for i in range(20_000)]
    assert sum(one["self"] for one in critical_path(deep)) == 100_000_000
    wide = [span("root", None, 0, 20_000), *(span(str(i), "root", i, i + 1) for i in range(20_000))]
    assert len(critical_path(wide)) == 20_001


IDS = st.sampled_from([*"abcdefgh", None, ""])
SPANS = st.lists(st.tuples(IDS, IDS, st.integers(0, 50), st.integers(0, 50)), max_size=15)


@settings(max_examples=200, deadline=None)
@given(SPANS)
def test_self_times_add_up_to_the_roots_duration(drawn: list[tuple[str | None, str | None, int, int]]) -> None:
    spans = [(own, above, start, start + length) for own, above, start, length in drawn]
    found = critical_path(spans)
    places = [one["place"] for one in found]
    assert len(set(places)) == len(places)
    assert all(one["self"] >= 0 for one in found)
    assert sum(one["self"] for one in found) == (found[0]["all"] if found else 0)


def test_the_order_of_rows_does_not_matter() -> None:
    spans = [span("root", None, 0, 100)]
    draw = random.Random(4)
    for i in range(200):
        start = draw.uniform(0, 95)
        spans.append(
            span(
                str(i),
                str(draw.randrange(i)) if i and draw.random() < 0.7 else "root",
                start,
                start + draw.uniform(0, 20),
            )
        )
    shuffled = draw.sample(spans, len(spans))
    assert sorted(path(*spans), key=str) == sorted(path(*shuffled), key=str)


@pytest.mark.skipif("HYVE_CORPUS" not in os.environ, reason="HYVE_CORPUS is not set: no real trace is walked")
def test_the_path_of_a_real_trace() -> None:
    """Of 1,037 spans of one login 14 were waited for; what they took adds up to the root's 36.713 ms."""
    text = (Path(os.environ["HYVE_CORPUS"]) / "real" / "traces" / "zipkin-smartthings.json").read_bytes()
    with hyve.Datastore.from_text(text) as store:
        asked = "SELECT sum(self_ms), max(duration_ms), count(*), min(start_ms) FROM CRITICAL_PATH('spans')"
        ((waited, took, spans, first),) = store.query(asked).rows
    assert waited == pytest.approx(took) == pytest.approx(36.713)
    assert (spans, first) == (14, 0.0)
