"""What counts as evidence and what doesn't, over a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

import duckdb
import pytest

from hyve import functions, guard, provenance, stages
from hyve.evidence import Resolver
from hyve.sql import Limits, QueryResult
from hyve.store import Datastore

ROWS = [
    {"service": "cart" if i % 3 else "ledger", "ms": 10 if i % 3 else 900, "note": None if i else "x", "n": i}
    for i in range(300)
]


@pytest.fixture(scope="module")
def store() -> Iterator[Datastore]:
    with stages.load((stages.Payload("rows", json.dumps(ROWS)),)) as store:
        yield store


@pytest.mark.parametrize(
    "named",
    [
        "records[3]",
        "records rowid 3",
        "records rowid=3",
        "Records row 3",
        '"records" rowid = 3',
        "records:3",
        "records#3",
    ],
)
def test_a_row_that_is_shown_is_evidence_by_its_rowid(store: Datastore, named: str) -> None:
    resolver = Resolver(store)
    assert resolver.ids([named]) == ("e1",)
    (found,) = resolver.evidence
    assert found.sql == "SELECT * FROM records WHERE rowid = 3"
    assert dict(zip(found.columns, found.rows[0], strict=True))["n"] == 3


@pytest.mark.parametrize("named", ["records[300]", "nowhere[3]", "records[3] OR 1=1", "records", "records[-1]"])
def test_a_row_that_is_not_there_is_none(store: Datastore, named: str) -> None:
    resolver = Resolver(store)
    assert resolver.ids([named]) == ()
    assert named in resolver.failed


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM records WHERE ms > 100",
        "SELECT count(*) FROM records",
        "SELECT count(*) AS n FROM records WHERE service = 'ledger';",
        "SELECT count(*) FILTER (WHERE service = 'ghost') FROM records",
        "SELECT service, count(*) FROM records GROUP BY service HAVING count(*) > 150",
        "SELECT service, avg(ms) FROM records GROUP BY ALL",
        "SELECT avg(ms) - min(ms) AS spread FROM records",
        "WITH slow AS (SELECT * FROM records WHERE ms > 100) SELECT count(*) FROM slow",
        "SELECT * FROM (SELECT service, max(ms) AS worst FROM records GROUP BY 1) WHERE worst > 100",
        "SELECT sum(count(*)) OVER () FROM records",
        "SELECT (SELECT count(*) FROM records WHERE ms > 100) AS slow",
        "SELECT r.service FROM records r JOIN (SELECT max(ms) AS top FROM records) t ON r.ms = t.top",
        "PIVOT records ON service USING count(*)",
        "FROM records",
        "SELECT 'max', max(ms) FROM records UNION ALL SELECT 'min', min(ms) FROM records",
        "SELECT note FROM records ORDER BY n DESC",
        "SELECT s.a.b FROM (SELECT {'b': service} AS a FROM records) AS s",
        "WITH c(x) AS (SELECT service FROM records) SELECT upper(x) AS y, y || '!' FROM c",
        "SELECT r FROM records AS r",
        "SELECT count(1) FROM records",
        "SELECT EXISTS (SELECT 1 FROM records WHERE ms > 100)",
        "SELECT (SELECT max(i.ms) FROM records i WHERE i.service = o.s) FROM (SELECT service AS s FROM records) o",
        "SELECT * FROM (PIVOT records ON service USING count(*)) p",
        "SELECT list_transform([service], x -> upper(x)) FROM records",
        "WITH RECURSIVE c AS (SELECT n FROM records WHERE n = 0 UNION ALL SELECT n + 1 FROM c WHERE n < 3) FROM c",
        "SELECT COLUMNS('m.*') FROM records",
        "SELECT max(n) FROM records HAVING max(n) > 10",
    ],
)
def test_rows_of_the_request_count(statement: str, store: Datastore) -> None:
    resolver = Resolver(store)
    assert resolver.ids([statement]) == ("e1",)
    assert resolver.failed == {}
    evidence = resolver.evidence[0]
    assert evidence.sql == statement
    again = store.query(statement)
    assert evidence.total_rows == again.total_rows > 0
    assert len(evidence.rows) == min(20, again.total_rows)
    assert all(row in again.rows for row in evidence.rows)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT * FROM records WHERE ms > 5000", "returns no rows"),
        ("SELECT count(*) FROM records WHERE false", "aggregates no rows"),
        ("SELECT count(*) FROM records WHERE service = 'ghost'", "aggregates no rows"),
        ("SELECT count(*) AS n, max(ms) FROM records WHERE ms > 5000", "aggregates no rows"),
        ("SELECT sum(ms) FROM records WHERE ms > 5000", "nothing but NULL"),
        ("SELECT coalesce(sum(ms), 7) FROM records WHERE ms > 5000", "aggregates no rows"),
        ("SELECT 'down' AS status, count(*) FROM records WHERE ms > 5000", "aggregates no rows"),
        ("SELECT * FROM (SELECT count(*) AS n FROM records WHERE ms > 5000)", "aggregates no rows"),
        ("WITH c AS (SELECT count(*) AS n FROM records WHERE ms > 5000) SELECT n + 1 FROM c", "aggregates no rows"),
        ("SELECT (SELECT count(*) FROM records WHERE ms > 5000) AS n", "aggregates no rows"),
        ("SELECT count(*) FROM (SELECT service FROM records WHERE ms > 5000 GROUP BY service)", "aggregates no rows"),
        ("SELECT sum(count(*)) OVER () FROM records WHERE ms > 5000", "aggregates no rows"),
        ("SELECT count(*) FROM records WHERE ms > 5000 HAVING count(*) = 0", "aggregates no rows"),
        ("SELECT 1 FROM records WHERE ms > 5000 HAVING true", "aggregates no rows"),
        ("SELECT note FROM records WHERE n BETWEEN 1 AND 9", "nothing but NULL"),
        ("SELECT 'h9 down' FROM records LIMIT 1", "depends on the data"),
        ("SELECT 1 FROM records", "depends on the data"),
        ("SELECT random() FROM records", "depends on the data"),
        ("SELECT now(), row_number() OVER () FROM records", "depends on the data"),
        ("SELECT x.a FROM records, (SELECT 'h9' AS a) AS x", "depends on the data"),
        ("SELECT x.a FROM records r JOIN (VALUES ('h9')) AS x(a) ON true", "depends on the data"),
        ("SELECT 'h9' AS s FROM records UNION ALL SELECT 'h9'", "depends on the data"),
        ("SELECT service FROM records UNION ALL SELECT 'h9'", "depends on the data"),
        ("SELECT * FROM (SELECT service FROM records UNION SELECT 'h9')", "depends on the data"),
        ("WITH c AS (SELECT 'h9' AS service FROM records) SELECT service FROM c", "depends on the data"),
        ("WITH c(service) AS (SELECT 'h9' FROM records) SELECT c.* FROM c", "depends on the data"),
        ("SELECT max('h9') FROM records", "depends on the data"),
        ("SELECT (SELECT 'h9' FROM records LIMIT 1)", "depends on the data"),
        ("SELECT list_transform(['h9'], x -> upper(x)) FROM records", "depends on the data"),
        ("SELECT count(*) FROM (VALUES (1)) AS v WHERE EXISTS (SELECT 1 FROM records)", "depends on the data"),
        ("SELECT u.x FROM records, unnest(['h9']) AS u(x)", "depends on the data"),
        ("SELECT NULL FROM records", "nothing but NULL"),
        ("SELECT nullif(ms, ms) FROM records;", "nothing but NULL"),
        ("SELECT 1", "reads none of the tables"),
        ("SELECT 'records' AS proof -- FROM records", "reads none of the tables"),
        ("VALUES (1)", "reads none of the tables"),
        ("SELECT * FROM range(3)", "reads none of the tables"),
        ("DESCRIBE records", "tells of columns"),
        ("SUMMARIZE records", "tells of columns"),
        ("SELECT * FROM ghost", "no table 'ghost'|reads none of the tables"),
        ("SELECT ghost FROM records", "ghost"),
        ("DROP TABLE records", "DROP is not allowed"),
        ("nonsense", "syntax error"),
        ("", "empty"),
        ("SELECT " + "(" * 900 + "1" + ")" * 900 + " FROM records", "nested|parse"),
    ],
)
def test_what_proves_nothing_does_not_count(statement: str, why: str, store: Datastore) -> None:
    resolver = Resolver(store)
    assert resolver.ids([statement]) == ()
    assert resolver.evidence == ()
    assert any(part in resolver.failed[statement] for part in why.split("|"))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FILTER (WHERE service = 'ghost') FROM records",
        "SELECT EXISTS (SELECT 1 FROM records WHERE ms > 5000)",
        "SELECT max(ms) IS NULL FROM records",
        "SELECT ms > 5000 FROM records WHERE n < 9",
    ],
)
def test_a_lone_zero_or_false_backs_a_claim_and_no_root_cause(statement: str, store: Datastore) -> None:
    resolver = Resolver(store)
    assert resolver.ids([statement], cause=True) == ()
    assert statement in resolver.denied
    assert resolver.ids([statement]) == ("e1",)


@pytest.mark.parametrize(
    ("entity", "there"),
    [
        ("ledger", True),
        ("Ledger service", True),
        ("records", True),
        ("MS", True),
        ("x", True),
        ("the ledger database", True),
        ("h9", False),
        ("host h9", False),
        ("the server", False),
        ("ledger-7", False),
        ("o'hara", False),
        ("", False),
        ("???", False),
    ],
)
def test_an_entity_must_occur_in_the_data(entity: str, there: bool, store: Datastore) -> None:
    assert Resolver(store).occurs(entity) is there


@pytest.mark.parametrize("given", ["'records', 'ms'", "records, ms"])
def test_what_an_operator_says_of_a_table_depends_on_the_data(given: str) -> None:
    tree = guard.tree(f"SELECT score FROM DETECT_ANOMALY({given})")
    assert provenance.depends(tree, {"records": ["ms"]})
    assert not provenance.depends(tree, {"others": ["ms"]})


def test_each_statement_runs_once_and_few_of_them(store: Datastore) -> None:
    resolver = Resolver(store)
    statements = [f"SELECT {i} AS k, service FROM records" for i in range(60)]
    assert resolver.ids(statements) == tuple(f"e{i}" for i in range(1, 9))
    assert resolver.skipped == 52
    for i in range(0, 60, 8):
        resolver.ids(statements[i : i + 8])
    assert len(resolver.evidence) == 40
    assert resolver.skipped == 52 + 20
    assert resolver.ids(statements[:2]) == ("e1", "e2")


def test_the_known_aggregates_are_those_of_duckdb() -> None:
    rows = duckdb.connect().execute("SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
    allowed = {row[0] for row in rows.fetchall()} & functions.ALLOWED
    assert allowed <= functions.AGGREGATES


class Asked:
    """A store that counts what it is asked."""

    def __init__(self, store: Datastore) -> None:
        self.catalog, self.sources, self._store = store.catalog, store.sources, store
        self.queries = 0

    def query(self, statement: str, limits: Limits | None = None) -> QueryResult:
        self.queries += 1
        return self._store.query(statement, limits)


@pytest.mark.parametrize(
    ("statement", "runs"),
    [
        ("SELECT service, sum(ms) FROM records GROUP BY service", 1),
        ("SELECT service, sum(ms) FROM records GROUP BY service HAVING sum(ms) > 0", 1),
        ("SELECT max(ms), count(*) AS n FROM records WHERE ms > 100", 1),
        ("SELECT max(ms) FROM records", 2),
        ("SELECT service, max(ms) FROM records GROUP BY ROLLUP (service)", 2),
        ("SELECT count(*) FILTER (WHERE ms > 100) FROM records", 2),
        ("SELECT count(*), n FROM (SELECT max(ms) AS n FROM records) GROUP BY n", 2),
    ],
)
def test_aggregates_are_run_again_only_where_they_may_have_had_no_rows(
    statement: str, runs: int, store: Datastore
) -> None:
    asked = Asked(store)
    assert Resolver(cast(Datastore, asked)).ids([statement]) == ("e1",)
    assert asked.queries == runs


def test_an_entity_is_looked_for_in_the_text_before_the_tables(store: Datastore) -> None:
    asked = Asked(store)
    resolver = Resolver(cast(Datastore, asked))
    assert resolver.occurs("Ledger")
    assert resolver.occurs("the service cart")
    assert asked.queries == 0
    assert not resolver.occurs("car"), "a short word must stand alone, it is a part of `cart`"
    assert not resolver.occurs("ghost")
    assert asked.queries == 2
