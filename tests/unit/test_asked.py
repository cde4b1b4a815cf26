"""Rows that a question asks for by a number, a time, or a word in any column (H17, H19)."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

import hyve
from hyve import asked, question
from hyve.columns import Columns
from hyve.profile import profile
from hyve.question import DAY, Instant

ROWS = 5_000


def orders(identifier: str = "number") -> list[dict[str, object]]:
    """A row a second; ids in steps of 7."""
    draw = random.Random(4)
    start = datetime(2026, 1, 31, 12)
    return [
        {
            "ts": f"{(start + timedelta(seconds=i)).isoformat()}Z",
            "id": {"number": 1_000_000 + i * 7, "text": str(1_000_000 + i * 7), "decimal": i + 0.25}[identifier],
            "host": f"h{i % 9}",
            "latency_ms": round(draw.gauss(100, 9), 1),
            "msg": f"request {draw.randrange(10**6)} done",
        }
        for i in range(ROWS)
    ]


def rows(text: str, asked: str, budget: int) -> dict[int, str]:
    """The rows that a view shows, by their numbers."""
    shown = hyve.view(text, question=asked, budget=budget).text
    return {int(row): line for row, line in re.findall(r"^(\d+)(\|.*)$", shown, re.MULTILINE)}


@pytest.mark.parametrize("budget", [1_000, 4_000])
@pytest.mark.parametrize(
    ("identifier", "asked", "cell"),
    [
        ("number", "what happened with order 1015554?", "1015554"),
        ("number", "order 1,015,554 is late", "1015554"),
        ("number", "order-1015554?", "1015554"),
        ("text", "what happened with order 1015554?", "1015554"),
        ("decimal", "which one has 2222.25?", "2222.25"),
        ("number", "what happened at 12:37:02?", "12:37:02"),
        ("number", "why was it slow at 2026-01-31T13:37:02+01:00?", "12:37:02"),
        ("number", "why was it slow on 2026-01-31 12:37:02 UTC", "12:37:02"),
    ],
)
def test_the_row_of_a_number_or_a_time_is_shown(identifier: str, asked: str, cell: str, budget: int) -> None:
    shown = rows(json.dumps(orders(identifier)), asked, budget)
    assert f"|{cell}|" in shown[2222]


def test_the_same_of_csv() -> None:
    records = orders()
    text = "\n".join([",".join(records[0]), *(",".join(map(str, record.values())) for record in records)])
    assert "|1015554|" in rows(text, "what happened with order 1015554?", 1_000)[2222]


def test_of_a_time_that_no_row_has_the_nearest_row_is_shown() -> None:
    records = [record for i, record in enumerate(orders()) if i % 50 == 0]
    assert 44 in rows(json.dumps(records), "what happened at 12:36:42?", 1_000)  # 2,200 s after 12:00


def test_rows_without_a_time_are_near_none() -> None:
    start = datetime(2026, 1, 31, 23, 0, 25)
    records = [{"ts": f"{(start + timedelta(seconds=50 * i)).isoformat()}Z", "n": i * i} for i in range(1_000)]
    records[9]["ts"] = None
    assert 72 in rows(json.dumps(records), "what happened at 00:00:10?", 800)


@pytest.mark.parametrize("number", [500, 2_000])
def test_a_word_of_any_column_is_found(number: int) -> None:
    """Neither the number of the column nor long cells before it hide it."""
    records = [{f"c{k}": f"value {i * 31 + k} of {'x' * 60}" for k in range(60)} for i in range(number)]
    records[321]["c56"] = "mutex-zq7 held"
    assert "mutex-zq7" in rows(json.dumps(records), "who holds mutex-zq7?", 4_000)[321]


def test_a_number_of_more_than_64_bits_is_found_to_the_last_digit() -> None:
    records = [{"id": 10**20 + i, "host": f"h{i % 9}"} for i in range(ROWS)]
    assert f"|{10**20 + 2_222}" in rows(json.dumps(records), f"which host had {10**20 + 2_222}?", 1_000)[2222]


def test_numbers_and_times_that_nothing_has_bring_no_rows() -> None:
    text = json.dumps(orders())
    asked = "why is it slow? 99999999 2020-01-01T00:00:00Z 123456789012345678901234567890 9999-12-31 0001-01-01"
    assert rows(text, asked, 1_500).keys() <= rows(text, "why is it slow?", 1_500).keys()


@pytest.mark.parametrize(
    ("text", "numbers", "times"),
    [
        ("at 12:33:20.", (), (Instant(45_200 * 10**9, 10**9, True),)),
        ("12:33", (), (Instant(45_180 * 10**9, 60 * 10**9, True),)),
        ("1970-01-02", (), (Instant(DAY, DAY, False),)),
        ("1970-01-01T02:00:00.5+02:00", (), (Instant(5 * 10**8, 10**8, False),)),
        ("1970-01-01 00:01 UTC", (), (Instant(60 * 10**9, 60 * 10**9, False),)),
        ("9999-12-31 0001-01-01 00:00+05:00 9999-12-31 23:59-05:00", (), ()),
        ("25:99 1970-13-01 10.0.0.31:9100 v2.31", (), ()),
        ("1,015,554 id=55 node-1234 -5.5 7", ("1015554", "55", "1234", "-5.5"), ()),
        ("7f3e2a10-1111-4222-8333-abcdefabcdef", (), ()),
    ],
)
def test_numbers_and_times_of_a_question(text: str, numbers: tuple[str, ...], times: tuple[Instant, ...]) -> None:
    found = question.read(text)
    assert sorted(found.numbers) == sorted(numbers)
    assert found.times == times


@pytest.mark.parametrize("budget", [1_000, 1_200, 1_600, 2_500])
def test_a_row_of_what_the_question_names_comes_before_means_of_all(budget: int) -> None:
    """H17, H18: however many rows are of it."""
    draw = random.Random(3)
    start = datetime(2026, 1, 1)
    served = [
        {
            "ts": f"{(start + timedelta(seconds=20 * i)).isoformat()}Z",
            "pod": f"web-{i % 40}",
            "ns": ("prod", "dev")[i % 2],
            "status": draw.choice([200, 200, 200, 404]),
            "latency": round(draw.gammavariate(2, 20), 2),
            "order": 1_000_000 + i,
            "msg": f"request {i} served",
        }
        for i in range(4_000)
    ]
    served[2_345] |= {"status": 503, "latency": 7_311.5, "pod": "web-17"}
    served[777]["msg"] = "OOMKilled container"
    assert any("|web-39|" in line for line in rows(json.dumps(served), "pod WEB-39", budget).values())


def served_by(hosts: dict[str, int], form: str = "json") -> str:
    """Requests, a second apart, of hosts with so many of them each."""
    draw = random.Random(5)
    start = datetime(2026, 1, 31, 12)
    order = [host for host, count in hosts.items() for _ in range(count)]
    draw.shuffle(order)
    served = [
        {
            "ts": f"{(start + timedelta(seconds=i)).isoformat()}Z",
            "host": host,
            "msg": f"request {draw.randrange(10**6)} handled",
            "latency_ms": round(draw.gauss(100, 9), 1),
        }
        for i, host in enumerate(order)
    ]
    if form == "log":
        return "\n".join(
            f"{one['ts']} INFO host={one['host']} {one['msg']} in {one['latency_ms']} ms" for one in served
        )
    return json.dumps(served)


WEBS = {"web-7": 20, "web-17": 400, **{f"web-{i}": 60 for i in range(70, 80)}, "db-1": 1_500, "cache-2": 1_200}


def hosts_in(text: str) -> Counter[str]:
    return Counter(re.findall(r"\b(?:web|db|cache)-\d+\b", " ".join(rows_of(text))))


def rows_of(text: str) -> list[str]:
    return re.findall(r"^\d+\|.*$", text, re.MULTILINE)


@pytest.mark.parametrize("form", ["json", "log"])
@pytest.mark.parametrize(
    "asked",
    [
        "why is web-7 slow?",
        "why is web-7 slow, not web-17?",
        "why is WEB-7 slow but not the host web-17 or web-70?",
        "what is wrong with web-7, other than on web-17 and web-71",
        "web-7 为什么慢，不是 web-17",
        "为什么web-7慢，而不是web-17和web-70？",
        "web-17 除外，web-7 慢吗",
    ],
)
def test_rows_of_exactly_what_the_question_names_come_first(form: str, asked: str) -> None:
    """H17: `web-7` is none of `web-17` and `web-70`; what is excluded has no place by the question."""
    shown = hosts_in(hyve.view(served_by(WEBS, form), asked, 1_500).text)
    assert shown["web-7"] >= 6
    assert sum(count for host, count in shown.items() if host.startswith("web-") and host != "web-7") <= 8
    assert shown["web-17"] <= 4


def test_a_row_of_both_is_asked_for_though_one_is_excluded() -> None:
    lines = served_by(WEBS, "log").split("\n")
    lines[1_234] = lines[1_234].split(" INFO ")[0] + " INFO web-17 hands session over to web-7"
    text = hyve.view("\n".join(lines), "why is web-7 slow, not web-17?", 1_500).text
    assert "hands session over" in text


def test_what_no_table_has_is_looked_for_by_its_words() -> None:
    """A name that stands nowhere by itself asks for those that it is made of."""
    text = served_by({"web-7-abc": 20, "db-1": 1_500, "cache-2": 900})
    assert sum("web-7-abc" in row for row in rows_of(hyve.view(text, "why is web-7 slow?", 1_500).text)) >= 8


@pytest.mark.parametrize(
    ("asked", "excluded", "words"),
    [
        ("why is web-7 slow, not web-17?", {"web-17"}, {"web-7", "web", "slow"}),
        ("which pods are not ready?", set(), {"pods", "not", "ready"}),
        ("errors except timeout and checkout", {"timeout", "checkout"}, {"errors"}),
        ("not 10.0.0.1:80, but 10.0.0.2:80", {"10.0.0.1:80"}, {"10.0.0.2:80"}),
        ("not web-17, but is web-17 up?", set(), {"web-17"}),
        ("是不是 web-17 的问题", set(), {"web-17"}),
        ("除了 checkout 以外哪些服务慢", {"checkout"}, {"服务"}),
    ],
)
def test_what_a_question_excludes(asked: str, excluded: set[str], words: set[str]) -> None:
    found = question.read(asked)
    assert found.excluded == excluded
    assert words <= set(found.words)
    assert not excluded & set(found.words)


def requests(rows: int, hosts: int) -> list[dict[str, object]]:
    """A request each ten seconds, of one host after the other."""
    draw = random.Random(5)
    start = datetime(2026, 3, 1, 10)
    return [
        {
            "ts": f"{(start + timedelta(seconds=10 * i)).isoformat()}Z",
            "host": f"web-{i % hosts}",
            "latency": round(draw.gauss(50, 5), 2) + 40 * (i % hosts == 7 and i > rows * 0.9),
            "cpu": round(draw.uniform(10, 60), 1),
            "msg": f"request done in {draw.randrange(1, 99)} ms",
        }
        for i in range(rows)
    ]


def data(records: list[dict[str, object]], asked: str, budget: int) -> str:
    text = hyve.view(json.dumps(records), question=asked, budget=budget).text
    return text.split("\n# Data ")[1].split("\n# End ")[0]


def of_host(text: str, host: str) -> list[int]:
    return [int(row) for row in re.findall(rf"^(\d+)\|[^|]*\|{host}\|", text, re.MULTILINE)]


@pytest.mark.parametrize("budget", [600, 700, 1_000, 4_000])
def test_the_entity_that_a_question_names_is_told_with_its_rows_and_mean(budget: int) -> None:
    """H17: exact, of all rows; `web-7` is neither `web-70` nor `web-17`."""
    records = requests(3_000, 80)
    of_all = [float(str(row["latency"])) for row in records]
    its = [float(str(row["latency"])) for row in records if row["host"] == "web-7"]
    told = f"- host = web-7: 38 rows, mean latency {sum(its) / 38:.6g} (of all {sum(of_all) / 3_000:.6g})"
    lines = data(records, "why is WEB-7 slow?", budget).split("\n")
    assert [line for line in lines if line.startswith("- host = ")] == [told]
    assert not [line for line in data(records, "why is it slow?", budget).split("\n") if line.startswith("- host = ")]


@pytest.mark.parametrize(("size", "hosts", "budget", "least"), [(3_000, 80, 2_000, 12), (20_000, 200, 2_000, 12)])
def test_its_rows_are_spread_over_its_time_and_more_with_more_budget(
    size: int, hosts: int, budget: int, least: int
) -> None:
    """H17, H20: a late change of it is seen."""
    records = requests(size, hosts)
    few, many = (of_host(data(records, "why is web-7 slow?", tokens), "web-7") for tokens in (budget, 4 * budget))
    assert len(few) >= least
    edges = [0, *few, size]
    assert max(after - before for before, after in pairwise(edges)) <= size // 5
    assert few[-1] >= 0.9 * size
    assert {*few} < {*many}
    assert len(many) >= min(2 * len(few), size // hosts)


@pytest.mark.parametrize("budget", [2_000, 4_000])
def test_entities_that_are_compared_share_the_rows(budget: int) -> None:
    """H17: the one of which some rows stand out has those, too."""
    text = data(requests(3_000, 80), "compare web-7 and web-70", budget)
    some, others = of_host(text, "web-7"), of_host(text, "web-70")
    assert min(len(some), len(others)) >= 6
    assert 2 * min(len(some), len(others)) >= max(len(some), len(others))
    assert [line.split(":")[0] for line in text.split("\n") if line.startswith("- host = ")] == [
        "- host = web-7",
        "- host = web-70",
    ]


def test_rows_that_are_asked_for_alike_are_spread_over_the_table() -> None:
    """H17: 1,800 texts have the word; the first ones tell the least of how it went on."""
    draw = random.Random(3)
    records = [
        {"n": i * 7919, "text": f"{'timeout' if i % 5 == 0 else 'done'} of {draw.randrange(10**6)}"}
        for i in range(9_000)
    ]
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        best = asked.asked(profile(Columns(store, store.catalog.tables[0])), question.read("why the timeout?"))
    fifths = Counter(row // 1_800 for row, _ in best)
    assert all(row % 5 == 0 for row, _ in best)
    assert len(fifths) == 5
    assert max(fifths.values()) - min(fifths.values()) <= 2


@pytest.mark.parametrize("hosts", [10, 80, 150])
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("what is wrong?", r"SELECT host, count\(\*\) AS n, avg\(latency\) AS mean FROM records GROUP BY host"),
        ("why is web-7 slow?", r"WHERE host = 'web-7' ORDER BY latency DESC"),
        ("compare web-7 and web-9", r"WHERE host IN \('web-7', 'web-9'\) GROUP BY host"),
    ],
)
@pytest.mark.parametrize("budget", [1_000, 4_000])
def test_where_something_is_cut_a_query_is_shown_that_runs(hosts: int, asked: str, says: str, budget: int) -> None:
    """H24: also where there are too many hosts to list; of the entities that the question names."""
    records = requests(3_000, hosts)
    shown = data(records, asked, budget).split("Queries such as these see all rows:\n")
    assert len(shown) == 2
    assert re.search(says, shown[1])
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        result = store.query(shown[1].strip())
    assert result.rows
    if "ORDER BY latency DESC" in shown[1]:
        best = sorted((float(str(row["latency"])) for row in records if row["host"] == "web-7"), reverse=True)[:10]
        assert [row[-1] for row in result.rows] == best
