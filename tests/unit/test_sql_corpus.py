"""Published questions as SQL (H30, H36): TOON-QA's over its own data with the right answers, and text-to-SQL sets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyve import stages
from hyve.store import Datastore
from tests.bench import guard

pytestmark = pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: published questions are not asked"
)
CORPUS = Path(os.environ.get("HYVE_CORPUS", "."))

_NAME = r"(?P<name>.+)"
_N, _M = r"(?P<n>[\d.]+)", r"(?P<m>[\d.]+)"
SHAPES: dict[str, list[tuple[str, str]]] = {
    "tabular": [
        (f"What is the salary of {_NAME}\\?", "SELECT salary FROM employees WHERE name = '{name}'"),
        (f"What department does {_NAME} work in\\?", "SELECT department FROM employees WHERE name = '{name}'"),
        (f"What is the email address of {_NAME}\\?", "SELECT email FROM employees WHERE name = '{name}'"),
        (f"How many years of experience does {_NAME} have\\?",
         "SELECT yearsExperience FROM employees WHERE name = '{name}'"),
        (f"Is {_NAME} an active employee\\?", "SELECT active FROM employees WHERE name = '{name}'"),
        ("How many employees are in the dataset\\?", "SELECT count(*) FROM employees"),
        ("How many employees are active\\?", "SELECT count(*) FROM employees WHERE active"),
        ("How many employees are inactive\\?", "SELECT count(*) FILTER (NOT active) FROM employees"),
        ("What is the average salary across all employees\\?", "SELECT round(avg(salary)) FROM employees"),
        (f"How many employees have a salary greater than {_N}\\?", "SELECT count(*) FROM employees WHERE salary > {n}"),
        (f"How many employees work in {_NAME}\\?", "SELECT count(*) FROM employees WHERE department = '{name}'"),
        (f"How many employees in {_NAME} have a salary greater than {_N}\\?",
         "SELECT count(*) FROM employees WHERE department = '{name}' AND salary > {n}"),
        (f"How many employees in {_NAME} have more than {_N} years of experience\\?",
         "SELECT count(*) FROM employees WHERE department = '{name}' AND yearsExperience > {n}"),
        (f"How many active employees have more than {_N} years of experience\\?",
         "SELECT count(*) FROM employees WHERE active AND yearsExperience > {n}"),
        (f"How many active employees work in {_NAME}\\?",
         "SELECT count(*) FROM employees WHERE active AND department = '{name}'"),
        ("What is the (?P<name>department|name) of the last employee.*",
         "SELECT {name} FROM employees ORDER BY _row_id DESC LIMIT 1"),
    ],
    "nested": [
        ("What is the (?P<name>total|status) (?:for|of) order (?P<n>ORD-[0-9]+)\\?",
         "SELECT {name} FROM orders WHERE orderId = '{n}'"),
        ("What is the customer (?P<name>name|email) for order (?P<n>ORD-[0-9]+)\\?",
         "SELECT customer_{name} FROM orders WHERE orderId = '{n}'"),
        ("What is the order date for order (?P<n>ORD-[0-9]+)\\?", "SELECT orderDate FROM orders WHERE orderId = '{n}'"),
        ("How many items are in order (?P<n>ORD-[0-9]+)\\?",
         "SELECT count(*) FROM items i JOIN orders o ON i.parent_orders = o._id WHERE o.orderId = '{n}'"),
        ('How many orders have status "(?P<name>\\w+)"\\?', "SELECT count(*) FROM orders WHERE status = '{name}'"),
        ("What is the total revenue across all orders\\?", "SELECT round(sum(total), 2) FROM orders"),
        ("What is the average order value\\?", "SELECT round(avg(total), 2) FROM orders"),
        ("How many orders are in the dataset\\?", "SELECT count(*) FROM orders"),
        ("What is the highest order total\\?", "SELECT max(total) FROM orders"),
        (f"How many orders have a total greater than {_N}\\?", "SELECT count(*) FROM orders WHERE total > {n}"),
        (f'How many orders have status "(?P<name>\\w+)" and total greater than {_N}\\?',
         "SELECT count(*) FROM orders WHERE status = '{name}' AND total > {n}"),
        (f'How many orders have status "(?P<name>\\w+)" and at least {_N} items\\?',
         "SELECT count(*) FROM orders o WHERE status = '{name}'"
         " AND (SELECT count(*) FROM items i WHERE i.parent_orders = o._id) >= {n}"),
        (f"How many orders have a total greater than {_N} and at least {_M} items\\?",
         "WITH counted AS (SELECT parent_orders, count(*) AS k FROM items GROUP BY ALL)"
         " SELECT count(*) FROM orders o JOIN counted c ON c.parent_orders = o._id WHERE total > {n} AND k >= {m}"),
        ("What is the status of the last order in the dataset\\?", "FROM orders SELECT last(status ORDER BY _row_id)"),
    ],
    "analytics": [
        ("What (?:are|is) the (?P<name>views|revenue) for (?P<n>[\\d-]+)\\?",
         "SELECT {name} FROM metrics WHERE date = '{n}'"),
        ("What is the bounce rate for (?P<n>[\\d-]+)\\?", "SELECT bounceRate FROM metrics WHERE date_ts = DATE '{n}'"),
        ("How many conversions were there on (?P<n>[\\d-]+)\\?", "SELECT conversions FROM metrics WHERE date = '{n}'"),
        ("How many (?:days of data|metric records) are in the dataset\\?", "SELECT count(DISTINCT date) FROM metrics"),
        ("What is the total (?:number of )?(?P<name>\\w+) across all dates\\?",
         "SELECT round(sum({name}), 2) FROM metrics"),
        ("What is the average bounce rate\\?", "SELECT round(avg(bounceRate), 2) FROM metrics"),
        (f"How many days had more than {_N} (?P<name>\\w+)\\?", "SELECT count(*) FROM metrics WHERE {name} > {n}"),
        (f"How many days had more than {_N} (?P<name>\\w+) and more than {_M} conversions\\?",
         "SELECT count(*) FROM metrics WHERE {name} > {n} AND conversions > {m}"),
        (f"How many days had revenue greater than {_N} with views above {_M}\\?",
         "SELECT count_if(revenue > {n} AND views > {m}) FROM metrics"),
        (f"How many days had revenue greater than {_N} with bounce rate below {_M}\\?",
         "SELECT sum((revenue > {n} AND bounceRate < {m})::INT) FROM metrics"),
        ("What is the date of the last metric record in the dataset\\?", "SELECT max(date) FROM metrics"),
    ],
    "github": [
        ("How many (?P<n>stars|forks|watchers) does (?P<name>\\S+) have\\?",
         "SELECT {n} FROM repositories WHERE repo = '{name}'"),
        ("What is the main branch of (?P<name>\\S+)\\?",
         "SELECT defaultBranch FROM repositories WHERE repo = '{name}'"),
        ("How many repositories are in the dataset\\?", "SELECT count(*) FROM repositories"),
        ("What is the total number of (?P<name>\\w+) across all repositories\\?",
         "SELECT sum({name}) FROM repositories"),
        ("What is the average number of stars per repository\\?", "SELECT round(avg(stars)) FROM repositories"),
        ('How many repositories use "(?P<name>\\w+)" as their default branch\\?',
         "SELECT count(*) FROM repositories WHERE defaultBranch = '{name}'"),
        (f"How many repositories have more than {_N} (?P<name>\\w+)\\?",
         "SELECT count(*) FROM repositories WHERE {name} > {n}"),
        (f"How many repositories have more than {_N} stars and more than {_M} (?P<name>\\w+)\\?",
         "SELECT count(*) FROM repositories WHERE stars > {n} AND {name} > {m}"),
        ("What is the name of the last repository in the dataset\\?",
         "SELECT name FROM repositories ORDER BY _row_id DESC LIMIT 1"),
    ],
    "event-logs": [
        ("What is the level of the log at (?P<n>\\S+)\\?", "SELECT level FROM logs WHERE timestamp = '{n}'"),
        ("What is the endpoint for the log at (?P<n>\\S+)\\?", "SELECT endpoint FROM logs WHERE timestamp = '{n}'"),
        ("What is the status code for the log at (?P<n>\\S+)\\?",
         "SELECT statusCode FROM logs WHERE timestamp = '{n}'"),
        ("What is the response time for the log at (?P<n>\\S+)\\?",
         "SELECT responseTime FROM logs WHERE timestamp_ts = TIMESTAMPTZ '{n}'"),
        ("How many log entries are in the dataset\\?", "SELECT count(*) FROM logs"),
        ("What is the average response time across all logs\\?", "SELECT round(avg(responseTime), 2) FROM logs"),
        ('How many log entries have level "(?P<name>\\w+)"\\?', "SELECT count(*) FROM logs WHERE level = '{name}'"),
        ('How many log entries are for endpoint "(?P<name>\\S+)"\\?',
         "SELECT count(*) FROM logs WHERE endpoint = '{name}'"),
        ("How many log entries have a status code indicating an error.*",
         "SELECT count(*) FROM logs WHERE statusCode >= 400"),
        ("How many log entries have a successful status code.*",
         "SELECT count(*) FROM logs WHERE statusCode BETWEEN 200 AND 299"),
        ("How many log entries have a retryable error\\?", "SELECT count(*) FROM logs WHERE error_retryable"),
        (f'How many log entries have level "(?P<name>\\w+)" and status code >= {_N}\\?',
         "SELECT count(*) FROM logs WHERE level = '{name}' AND statusCode >= {n}"),
        (f'How many log entries are for endpoint "(?P<name>\\S+)" with status code >= {_N}\\?',
         "SELECT count(*) FROM logs WHERE endpoint = '{name}' AND statusCode >= {n}"),
        ('How many log entries for endpoint "(?P<name>\\S+)" have a retryable error\\?',
         "SELECT count(*) FILTER (error_retryable) FROM logs WHERE endpoint = '{name}'"),
        ("What is the level of the last log entry in the dataset\\?", "SELECT last(level ORDER BY _row_id) FROM logs"),
    ],
    "nested-config": [
        ("What is the (?P<name>environment|version) in the configuration\\?", "SELECT {name} FROM records"),
        ("What is the database (?P<name>host|port|name)\\?", "SELECT database_{name} FROM records"),
        ("What is the (?P<name>max|min)imum connection pool size\\?", "SELECT database_pool_{name} FROM records"),
        ("What is the connection pool idle timeout\\?", "SELECT database_pool_idleTimeout FROM records"),
        ("What is the session duration\\?", "SELECT authentication_session_duration FROM records"),
        ("What is the session refresh threshold\\?", "SELECT authentication_session_refreshThreshold FROM records"),
        ("How many roles are defined in permissions\\?", "SELECT count(*) FROM roles"),
        ("How many authentication providers are configured\\?", "SELECT count(*) FROM providers"),
        ("How many database replicas are configured\\?", "SELECT count(*) FROM replicas"),
        ('How many authentication providers include the "admin" scope\\?',
         "SELECT count(*) FROM providers WHERE list_contains(scopes, 'admin')"),
        ("How many permissions does the admin role have\\?", "SELECT len(permissions) FROM roles WHERE _key = 'admin'"),
        ("What is the total number of permissions across all roles\\?", "SELECT sum(len(permissions)) FROM roles"),
        ("How many distinct permissions are defined across all roles\\?",
         "SELECT count(DISTINCT p) FROM (SELECT unnest(permissions) AS p FROM roles)"),
        (f"How many database replicas have a priority greater than {_N}\\?",
         "SELECT count(*) FROM replicas WHERE priority > {n}"),
        (f"How many database replicas have priority greater than {_N} and port {_M}\\?",
         "SELECT count(*) FROM replicas WHERE priority > {n} AND port = {m}"),
        (f"How many authentication providers have more than {_N} scopes\\?",
         "SELECT count(*) FROM providers WHERE len(scopes) > {n}"),
        (f"How many roles have at least {_N} permissions\\?",
         "SELECT count(*) FROM roles WHERE len(permissions) >= {n}"),
    ],
    "keyed": [
        ("What is the rollout percentage of flag `(?P<name>\\w+)`\\?",
         "SELECT rollout FROM flags WHERE _key = '{name}'"),
        ("Who owns flag `(?P<name>\\w+)`\\?", "SELECT owner FROM flags WHERE _key = '{name}'"),
        ("Is flag `(?P<name>\\w+)` enabled\\?", "SELECT enabled FROM flags WHERE _key = '{name}'"),
        ("How many flags are defined\\?", "SELECT count(*) FROM flags"),
        ("What is the owner of the last flag.*", "SELECT owner FROM flags ORDER BY _row_id DESC LIMIT 1"),
    ],
    "nested-group": [
        (f"What city is {_NAME}'s address in\\?", "SELECT address_city FROM contacts WHERE name = '{name}'"),
        ("What country does the last contact in the dataset live in\\?",
         "SELECT address_country FROM contacts ORDER BY _row_id DESC LIMIT 1"),
        (f"What country does {_NAME} live in\\?", "SELECT address_country FROM contacts WHERE name = '{name}'"),
        (f"What plan is {_NAME} on\\?", "SELECT plan_name FROM contacts WHERE name = '{name}'"),
        (f"What is the price of {_NAME}'s plan\\?", "SELECT plan_price FROM contacts WHERE name = '{name}'"),
        (f"How old is {_NAME}\\?", "SELECT age FROM contacts WHERE name = '{name}'"),
        ("How many contacts are in the dataset\\?", "SELECT count(*) FROM contacts"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[str, Datastore]]:
    made = {}
    for name in SHAPES:
        text = (CORPUS / "toon" / "v4" / "datasets" / f"{name}.json").read_text(encoding="utf-8")
        made[name] = stages.load((stages.Payload(name, text),))
    yield made
    for store in made.values():
        store.close()


def _statement(dataset: str, prompt: str) -> str | None:
    for pattern, sql in SHAPES.get(dataset, ()):
        found = re.fullmatch(pattern, prompt)
        if found:
            given = {name: value.replace("'", "''") for name, value in found.groupdict().items()}
            return sql.format(**given)
    return None


def _same(value: Any, truth: str) -> bool:
    if isinstance(value, bool):
        return truth == ("yes" if value else "no")
    if isinstance(value, (int, float)):
        return abs(float(value) - float(truth)) < 0.005
    return bool(value == truth)


def test_toon_qa_is_answered_by_sql(stores: dict[str, Datastore]) -> None:
    asked: list[str] = []
    wrong = []
    path = CORPUS / "toon" / "v4" / "questions.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        statement = _statement(question["dataset"], question["prompt"])
        if statement is None:
            continue
        asked.append(question["id"])
        rows = stores[question["dataset"]].query(statement).rows
        if len(rows) != 1 or not _same(rows[0][0], question["groundTruth"]):
            wrong.append((question["id"], statement, rows[:2], question["groundTruth"]))
    assert wrong == []
    assert len(asked) >= 200


def test_published_statements_that_duckdb_runs_are_never_refused() -> None:
    runnable, ran, refused, failed = guard.published(CORPUS / "text2sql", "cspider")
    assert (ran, refused, failed) == (runnable, 0, 0)
    assert runnable > 600
