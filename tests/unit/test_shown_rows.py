"""Which rows and columns a cut view shows, with which cells, and what it counts of the rest (H14-H17, H20, H24)."""

from __future__ import annotations

import json
import random
import re

import pytest

import hyve
from tests.unit.documents import fetched


def shown(prompt: hyve.Prompt, table: str) -> tuple[list[str], list[dict[str, str]]]:
    """The lines about a table, and its rows by the names of their columns."""
    lines = prompt.text.split("\n# Data ")[1].split(f"## {table}: ")[1].split("\n## ")[0].split("\n")
    head = next((line for line in lines if line.startswith("rowid|")), "rowid")
    names = [re.split(r"[ :]", name)[0] for name in head.split("|")]
    rows = [dict(zip(names, line.split("|"), strict=True)) for line in lines if re.match(r"\d+\|", line)]
    return lines, rows


def sparse(rows: int) -> list[dict[str, object]]:
    draw = random.Random(4)
    found: list[dict[str, object]] = []
    for i in range(rows):
        record: dict[str, object] = {"id": i, "host": f"h{i % 7}"}
        for k in range(12):
            if draw.random() < 0.03:
                record[f"m{k}"] = draw.randrange(100)
        found.append(record)
    return found


def test_a_row_is_shown_with_the_column_that_it_was_chosen_for() -> None:
    """H17: a field that one row has is in that row's cells, however many nearly empty columns there are besides."""
    value = sparse(6000)
    value[4123]["error"] = "NEEDLE segfault"
    value[2345]["note"] = "disk sdb1 is read-only"
    prompt = hyve.view(json.dumps(value), question="what about sdb1?", budget=1500)
    rows = {row["rowid"]: row for row in shown(prompt, "records")[1]}
    assert rows["4123"]["error"] == "NEEDLE segfault"
    assert rows["2345"]["note"] == "disk sdb1 is read-only"


@pytest.mark.parametrize("budget", [900, 1500, 3000])
def test_columns_that_are_nowhere_and_those_that_rows_leave_out_are_counted(budget: int) -> None:
    """H20: what is cut is said with its count, columns of rows as well; what rows show is not called cut."""
    lines, rows = shown(hyve.view(json.dumps(sparse(6000)), question="?", budget=budget), "records")
    told = {match[1] for line in lines if (match := re.match(r"- (\w+) [A-Z]+", line))}
    in_rows = set(rows[0]) - {"rowid"} if rows else set()
    names = {"id", "host", *(f"m{k}" for k in range(12))}
    nowhere, left_out = len(names - told - in_rows), len(told - in_rows) if rows else 0
    mark = next(
        (line for line in lines if re.match(r"\.\.\. \(\d+ .*(columns?|rows)\)$", line) and "column" in line), ""
    )
    mark, _, others = mark.partition(": ")
    named, end, others = re.split(r"([;)])", others, maxsplit=1) if others else ("", "", "")
    assert {*named.split(", ")} - {"", "..."} <= names - told - in_rows
    assert (named.count(",") + 1 == nowhere) or named.endswith(", ...") or not named
    mark += end + others
    expected = [f"{nowhere} more column{'s' * (nowhere > 1)}"] if nowhere else []
    columns = "" if nowhere else f"column{'s' * (left_out > 1)} "
    expected += [f"{left_out} {columns}above not in rows"] if left_out else []
    undescribed = len(in_rows - told)
    columns = "" if expected else f"column{'s' * (undescribed > 1)} "
    expected += [f"{undescribed} {columns}only in rows"] if undescribed else []
    assert nowhere or left_out
    assert mark == f"... ({'; '.join(expected)})"


def test_rare_rows_are_of_different_kinds_and_none_shows_nothing() -> None:
    """H17: many rows of one rare kind do not take the places of the others."""
    draw = random.Random(9)
    value: list[object] = []
    for i in range(9000):
        labels = {f"l{draw.randrange(9)}": f"v{i % 5}"}
        record: dict[str, object] = {"id": i, "ok": bool(i % 3), "took": i % 97, "labels": labels}
        if i % 100 == 3:
            record["took"] = [1, "x"]
        if i % 100 == 4:
            record["took"] = {"ms": 4}
        if i % 100 == 5:
            record["labels"] = "none"
        if i == 5123:
            record["panic"] = "nil pointer"
        value.append(None if i % 1500 == 7 else record)
    rows = shown(hyve.view(json.dumps(value), question="", budget=1500), "records")[1]
    assert all(any(cell for name, cell in row.items() if name != "rowid") for row in rows)
    kinds = [next((k for k in (3, 4, 5) if int(row["rowid"]) % 100 == k), 0) for row in rows]
    assert all(3 <= kinds.count(k) <= len(rows) // 2 for k in (3, 4, 5))
    assert any(row["panic"] == "nil pointer" for row in rows if row["rowid"] == "5123")


@pytest.mark.parametrize("budget", [1200, 1500, 2500, 4000, 9000])
def test_records_that_a_relation_was_made_of_are_told_once_and_the_budget_is_used(budget: int) -> None:
    """H16, H20: the rows of log lines have no second place as the records that they came as."""
    lines = []
    for i in range(3000):
        at = f"2026-11-29T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}.{i % 1000:03d}Z"
        record: dict[str, object] = {"time": at, "level": "info", "service": "abc"[i % 3], "msg": f"req {i} done"}
        record |= {"latency_ms": i % 90, "user": {"id": i % 700, "ip": f"10.0.0.{i % 250}"}}
        if i == 2321:
            record |= {"level": "fatal", "msg": "disk read-only", "err": {"code": 30, "stack": ["a", "b"]}}
        if i % 1000 == 7:
            record["latency_ms"] = "timeout"
        lines.append(json.dumps(record))
    prompt = hyve.view("\n".join(lines), question="?", budget=budget)
    assert len(re.findall(r"^0\|", prompt.text, re.MULTILINE)) == 1
    assert "## records: 3,000 rows\n" not in prompt.text
    assert budget - prompt.prompt_tokens <= max(40, budget * 0.02)


@pytest.mark.parametrize("budget", [700, 720, 760])
def test_a_small_view_has_the_row_that_was_asked_for(budget: int) -> None:
    """H15, H17: with little room a row has fewer columns, those that matter, rather than no place."""
    value = [
        {
            "namespace": f"team-{i % 4}",
            "pod": f"web-{i:04d}-{i * 7919 % 65536:04x}",
            "image": f"registry/web:{i % 5}",
            "node": f"node-{i % 9}",
            **{
                f"limit_{name}": f"{(i * 31) % 11}00m of {name}"
                for name in ("cpu", "memory", "disk", "network", "files")
            },
            **{f"seen_{k}": f"2026-11-{k + 10}T10:00:{i % 60:02d}Z" for k in range(5)},
            "restarts": 19 if i == 84 else 0,
            "state": "CrashLoopBackOff" if i == 84 else "Running",
        }
        for i in range(240)
    ]
    prompt = hyve.view(json.dumps(value), question="which pod restarts?", budget=budget)
    row = next(row for row in shown(prompt, "records")[1] if row["rowid"] == "84")
    assert (row["pod"], row["restarts"], row["state"]) == (value[84]["pod"], "19", "CrashLoopBackOff")


def test_names_are_printed_as_sql_takes_them() -> None:
    """H24: a query with names as they are printed runs, also where they are words of SQL."""
    value = {"select": [{"order": i, "values": [{"table": f"t{i}-{k}", "n": k} for k in range(9)]} for i in range(400)]}
    with hyve.Datastore.from_text(json.dumps(value)) as store:
        text = hyve.view(json.dumps(value), question="?", budget=1500).text
        heads = re.findall(r'^## ("?\w+"?): ([\d,]+) rows', text, re.MULTILINE)
        assert len(heads) == 2
        for name, count in heads:
            assert store.query(f"SELECT count(*) FROM {name}").rows == ((int(count.replace(",", "")),),)
        (join,) = re.findall(r", (\"?parent_\w+\"?) = (\"?\w+\"?)\._id", text)
        assert store.query(f"SELECT count({join[0]}) FROM {heads[1][0]}").rows == ((3600,),)
        assert store.query(f"SELECT count({join[1]}._id) FROM {join[1]}").rows == ((400,),)


def test_means_of_metrics_are_of_gauges() -> None:
    """H14: sums that add up and histograms have no mean that says anything; rows alike but for their time are few."""
    points = [
        {"timeUnixNano": str(1796000000000000000 + i * 15000000000), "asDouble": 10 + i * 7919 % 1000 / 1000}
        for i in range(600)
    ]
    sums = [{"timeUnixNano": str(1796000000000000000 + i * 15000000000), "asInt": str(i * 7)} for i in range(50)]
    lat = [{"timeUnixNano": str(1796000000000000000 + i * 15000000000), "count": "10", "sum": 12.5} for i in range(20)]
    metrics = [
        {"name": "db.pool.used", "gauge": {"dataPoints": points}},
        {"name": "lat", "histogram": {"dataPoints": lat, "aggregationTemporality": 2}},
        {"name": "reqs", "sum": {"dataPoints": sums, "isMonotonic": True, "aggregationTemporality": 2}},
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "web"}}]}
    value = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]}
    with hyve.Datastore.from_text(json.dumps(value)) as store:
        prompt = hyve.view(json.dumps(value), question="?", budget=2500)
        lines, rows = shown(prompt, "metric_points")
        mean = next(line for line in lines if line.startswith("- mean") and "by name" in line)
        ((expected,),) = fetched(store, "SELECT avg(value) FROM metric_points WHERE kind = 'gauge'")
        assert mean == f"- mean value of gauges by name: db.pool.used={expected:.6g}"
        assert all(line.startswith("- mean value of gauges by ") for line in lines if line.startswith("- mean"))
        assert not any("mean" in line for line in lines if re.match("- (value|count|sum) ", line))
        assert len([row for row in rows if row["name"] == "lat"]) <= 4
        for query in re.findall(r"^SELECT .*avg.*$", prompt.text, re.MULTILINE):
            assert {row[0] for row in store.query(query).rows} == {"db.pool.used"}


def test_values_with_commas_or_quotes_are_quoted_among_others() -> None:
    """H14: `- note: 3 values: a, "b" c 5` could be read in several ways."""
    notes = ['a, "q" b', "plain", " led"]
    value = [
        {"id": i, "note": notes[i % 10 % 3], "fixed": "x, y", "also": "z", "pad": f"{i * 7919}"} for i in range(4000)
    ]
    lines, _ = shown(hyve.view(json.dumps(value), question="?", budget=1200), "records")
    (note,) = [line for line in lines if line.startswith("- note ")]
    assert note == r'- note VARCHAR: 3 values: "a, \"q\" b" ×1,600, " led" ×1,200, plain ×1,200'
    assert '- constant: fixed = "x, y", also = z' in lines


def test_a_backslash_is_as_it_is_unless_it_could_be_read_as_an_escape() -> None:
    r"""H14: who reads `C:\\x` writes a query that finds nothing; where `\\` is one backslash, the head says so."""
    plain = [{"id": i, "path": ("C:\\x", "D:\\y\\z")[i % 2], "pad": f"{i * 7919}"} for i in range(900)]
    text = hyve.view(json.dumps(plain), question="?", budget=1200).text
    lines, rows = shown(hyve.view(json.dumps(plain), question="?", budget=1200), "records")
    assert "C:\\x" in next(line for line in lines if line.startswith("- path "))
    assert rows[0]["path"] == "C:\\x"
    assert "\\\\" not in text
    odd = [{**row, "path": ("C:\\new", "a\nb", "a\\nb", "end\\")[i % 4]} for i, row in enumerate(plain)]
    text = hyve.view(json.dumps(odd), question="?", budget=1200).text
    assert "# \\\\ in a value: one \\\n" in text
    path = next(line for line in text.split("\n") if line.startswith("- path "))
    assert {value.split(" ×")[0] for value in path.split(": ", 2)[2].split(", ")} == {
        "C:\\\\new",
        "a\\nb",
        "a\\\\nb",
        "end\\\\",
    }


def test_braces_of_the_data_are_quoted_in_lists() -> None:
    """H14: `{0..3}` in a list is short for four names; a value that has just these characters is quoted there."""
    value = [
        {"id": i, "node": f"shard-{i % 20}", "topic": ("q{0..3}", "plain")[i % 3 % 2], "pad": f"{i * 7919}"}
        for i in range(1_000)
    ]
    lines, rows = shown(hyve.view(json.dumps(value), question="?", budget=1200), "records")
    assert next(line for line in lines if line.startswith("- node ")).endswith("shard-{0..19}")
    assert next(line for line in lines if line.startswith("- topic ")).endswith(': "q{0..3}" ×667, plain ×333')
    assert rows[0]["topic"] == "q{0..3}"
