"""What headers say of faults, of texts that are no numbers or times, and what more budget adds (H14, H15, H18, H20)."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import prompt, rank, rowtext

CODES = [f"Err{name}" for name in ("Throttled", "Denied", "Missing", "Expired", "Conflict", "Quota")]


def calls(rows: int = 400) -> list[dict[str, Any]]:
    """API calls with long arguments, of which few fail, in one of several ways."""
    draw = random.Random(7)
    found: list[dict[str, Any]] = [
        {
            "source": f"{draw.choice(['ec2', 'iam', 'kms', 's3'])}.example.com",
            "user": draw.choice(["user-a", "user-b"]),
            "agent": f"tool/{draw.randrange(9)} (linux; amd64) terraform-provider/{draw.randrange(9)} " + "x" * 60,
            "request": json.dumps({f"k{k}": draw.randrange(10**6) for k in range(12)}),
            "response": json.dumps({f"r{k}": draw.randrange(10**6) for k in range(12)}),
        }
        for _ in range(rows)
    ]
    for place, row in enumerate(range(30, 390, 24)):
        found[row]["error_code"] = CODES[place % len(CODES)]
    return found


def lines_of(text: str) -> list[str]:
    return text.split("\n# Data ")[1].split("\n# End ")[0].split("\n")


def shown_rows(text: str) -> dict[int, str]:
    return {int(line.split("|")[0]): line for line in lines_of(text) if re.match(r"\d+\|", line)}


@pytest.mark.parametrize("question", ["which calls failed and why?", "", "errors?"])
@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
def test_what_failed_is_in_the_header_and_a_row_of_each_kind_is_shown(question: str, budget: int) -> None:
    """H15, H18: an empty cell in the first rows reads as if nothing had failed."""
    text = hyve.view(json.dumps(calls()), question=question, budget=budget).text
    header = next(line for line in lines_of(text) if line.startswith("- error_code "))
    assert header.startswith("- error_code VARCHAR: 6 values, 385 empty: ErrDenied ×3")
    assert all(code in header for code in CODES)
    if budget >= 2_000:
        rows = "\n".join(shown_rows(text).values())
        assert all(re.search(rf"\|{code}$", rows, re.MULTILINE) for code in CODES)


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("question", ["which API calls failed and why?", ""])
def test_the_same_of_a_real_file(budget: int, question: str) -> None:
    root = os.environ.get("HYVE_CORPUS")
    if not root:
        pytest.skip("HYVE_CORPUS is not set")
    text = hyve.view((Path(root) / "real/cloud/cloudtrail.json").read_bytes(), question=question, budget=budget).text
    header = next(line for line in lines_of(text) if line.startswith("- error_code "))
    kinds = [kind.rsplit(" ", 1)[0] for kind in header.split(" empty: ")[1].split(", ")]
    assert len(kinds) == 9
    if budget >= 4_000:
        rows = "\n".join(shown_rows(text).values())
        assert all(f"|{kind}|" in rows for kind in kinds)


def header_names(text: str) -> list[str]:
    """The columns that have a line of their own, in the order of the lines."""
    return [line.split(" ")[1] for line in lines_of(text) if re.match(r"- \S+ [A-Z]+\b", line)]


def of_corpus(name: str, budget: int, question: str = "what failed and why?") -> str:
    root = os.environ.get("HYVE_CORPUS")
    if not root:
        pytest.skip("HYVE_CORPUS is not set")
    return hyve.view((Path(root) / "real" / name).read_bytes(), question=question, budget=budget).text


@pytest.mark.parametrize("budget", [2_000, 4_000])
def test_outcomes_of_spans_are_in_the_header(budget: int) -> None:
    """H15, H18: the two spans of 1,037 that failed, by status and code; what only sounds alike is not said first."""
    text = of_corpus("traces/zipkin-smartthings.json", budget)
    lines = lines_of(text)
    assert "- status VARCHAR: 2 values: unset ×1,035, error ×2" in lines
    assert "- attributes_error VARCHAR = 404, 1,035 empty" in lines
    assert "- attributes_http_status_code VARCHAR: 2 values, 1,032 empty: 302 ×3, 404 ×2" in lines
    if budget == 2_000:  # "ONE", "QUORUM" and "UP"
        assert not {"attributes_cassandra_consistency_level", "attributes_cassandra_state"} & set(header_names(text))
    assert any("|error|404|" in row for row in shown_rows(text).values())


@pytest.mark.parametrize("budget", [2_000, 4_000])
def test_outcomes_of_connections_are_in_the_header_and_no_means_of_times(budget: int) -> None:
    """H14, H15, H18: Zeek's logs of connections, DNS, Kerberos and others in one file."""
    lines = lines_of(of_corpus("logs/zeek-combined.ndjson", budget))
    for line in (
        "- conn_state VARCHAR: 7 values, 4,492 empty: SF ×992, RSTR ×121, RSTO ×45, S1 ×8, S0 ×4, OTH ×1, RSTOS0 ×1",
        "- rcode BIGINT: 2 values, 5,481 empty: 0 ×145, 3 ×38",
        "- success BOOLEAN: 2 values, 5,594 empty: true ×44, false ×26",
    ):
        assert line in lines
    assert any(line.startswith("- error_msg VARCHAR: 3 values") for line in lines)
    assert not [line for line in lines if re.search(r"mean (ts|\d\.\d+e\+09)|avg\(ts\)", line)]


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
def test_codes_of_responses_are_counted_though_no_one_of_them_is_usual(budget: int) -> None:
    """H14, H15, H18: of 14 codes one third are 200; a row of each that is an error is shown, of no other."""
    draw = random.Random(2)
    usual = [200, 200, 304, 304, 206, 204]
    rare = [201, 301, 302, 401, 403, 404, 429, 500, 502, 503]
    records = [
        {
            "path": f"/v1/items/{draw.randrange(10**6)}",
            "ms": round(draw.gammavariate(2, 20), 2),
            "peer_port": draw.randrange(1024, 65_536),
            "status": rare[i // 37 % 10] if i % 37 == 5 else draw.choice(usual),
            "consistency_level": draw.choice(["ONE", "ONE", "ONE", "QUORUM"]),
        }
        for i in range(3_000)
    ]
    text = hyve.view(json.dumps(records), question="what failed?", budget=budget).text
    header = next(line for line in lines_of(text) if line.startswith("- status "))
    assert header.startswith("- status BIGINT: 14 values: 200 ")
    assert all(f"{code} ×{sum(one['status'] == code for one in records)}" in header for code in rare)
    assert "consistency_level" not in header_names(text)[:1]
    assert "mean" not in next((line for line in lines_of(text) if line.startswith("- peer_port ")), "")
    shown = [records[row]["status"] for row in shown_rows(text)]
    assert {code for code in rare if code >= 400} <= set(shown)


@pytest.mark.parametrize(
    ("name", "usual", "other", "first"),
    [
        ("conditions_Ready", "True", "False", True),
        ("conditions_Degraded", "False", "True", True),
        ("request_ok", True, False, True),
        ("rejected", False, True, True),
        ("severity_number", 9, 17, True),
        ("exit_code", 0, 137, True),
        ("exit_code", "0", "137", True),
        ("phase", "Running", "Failed", True),
        ("error_id", None, "b2da5288b2c3", False),
        ("status_code", 200, 204, False),
        ("phase", "Running", "Succeeded", False),
    ],
)
def test_a_column_is_said_first_where_its_values_tell_that_something_failed(
    name: str, usual: object, other: object, first: bool
) -> None:
    """H15, H18: by what a column is called and by what stands in it."""
    draw = random.Random(1)
    records = [{**{f"v{i}": draw.randrange(10**6) for i in range(30)}, name: usual} for _ in range(800)]
    for row in (99, 345, 610) if first else range(0, 800, 3):  # what is rare is said anyway
        records[row][name] = other
    text = hyve.view(json.dumps(records), question="?", budget=900).text
    assert any(column in (name, f"{name}_num") for column in header_names(text)) == first
    if first:
        assert any(row in shown_rows(text) for row in (99, 345, 610))


def test_of_an_exception_its_message_is_said_first() -> None:
    """H15: Elastic's hits hold one error, whose exception is a table of one row."""
    assert "- message VARCHAR = boom" in lines_of(of_corpus("elasticsearch/search-hits.json", 2_000))


@pytest.mark.parametrize(
    ("name", "value", "mean"),
    [
        ("kafka.leader_epoch", 57, False),
        ("http_response_status_code", 200, False),
        ("process_id", 2_339, False),
        ("net.peer.port", 443, False),
        ("not_after", 1_636_130_682, False),
        ("status_5xx", 3, True),
        ("rss_bytes", 1_588_320_000, True),
        ("epochs_per_s", 31, True),
    ],
)
def test_means_are_said_of_quantities_only(name: str, value: int, mean: bool) -> None:
    """H14: a mean of codes, ids, ports or times since 1970 says nothing; it is told by the column's own name."""
    draw = random.Random(1)
    records = [{name: value + draw.randrange(400), "host": f"h{i % 9}"} for i in range(900)]
    lines = lines_of(hyve.view(json.dumps(records), question="?", budget=900).text)
    column = re.sub(r"\W", "_", name)
    header = next(line for line in lines if line.startswith(f"- {column} "))
    assert (", mean " in header) == mean
    assert any(line.startswith(f"- mean {column} by host: ") for line in lines) == mean


def header_of(values: list[Any], column: str) -> str:
    """The line of a typed column in a table of these values and one that varies."""
    records = [{"v": value, "pad": f"x{i * 7919}"} for i, value in enumerate(values)]
    text = hyve.view(json.dumps(records), question="?", budget=900).text
    return next(line for line in lines_of(text) if line.startswith(f"- {column} "))


def test_a_header_does_not_call_texts_empty() -> None:
    """H9, H14: a typed column has no value where the text is no number or time; the row has one."""
    times = [f"2026-01-01T00:{i // 60:02d}:{i % 60:02d}Z" for i in range(600)]
    times[5] = times[77] = "9999-12-31T23:59:59Z"
    line = header_of(times, "v_ts")
    assert ", 2 not times (9999-12-31T23:59:59Z)" in line
    assert "empty" not in line
    numbers: list[str | None] = [str(i * 3) for i in range(600)]
    numbers[5], numbers[6], numbers[7], numbers[8] = "n/a", None, "1e400", "-"
    line = header_of(numbers, "v_num")
    assert ", 3 not numbers (n/a, 1e400, ...), 1 empty" in line


def test_a_changed_type_is_said() -> None:
    """H9: half of the values are texts, which the column of numbers hides."""
    assert header_of([12 if i % 2 else "12" for i in range(600)], "v_num") == "- v_num BIGINT = 12, 300 as text"
    assert ", 1 as text" in header_of([i if i != 44 else "44" for i in range(600)], "v_num")
    assert "as text" not in header_of([str(i) for i in range(600)], "v_num")


def test_of_a_long_text_little_is_read_to_tell_whether_it_is_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """H28: a line of megabytes, or as much under the name of a level, was taken apart into all of its words."""
    read: list[int] = []
    words = rank.words
    monkeypatch.setattr(rank, "words", lambda text: [read.append(len(text)), words(text)][1])
    long = "error: " * 40_000
    for text in (long, "\\" * 300_000, json.dumps([{"level": long, "n": n} for n in range(3)])):
        hyve.view(text, budget=900)
    assert 0 < max(read) < 5_000


def test_no_mean_is_said_of_codes_and_of_times_that_are_numbers() -> None:
    records = [
        {"ts": 1588320000.5 + i * 0.7 + i * i % 7, "status": [200, 404][i % 2], "ms": i % 97} for i in range(900)
    ]
    lines = lines_of(hyve.view(json.dumps(records), question="?", budget=900).text)
    said = {line.split(" ")[1]: "mean" in line for line in lines if line.startswith("- ")}
    assert said == {"ts": False, "status": False, "ms": True}


def test_no_cell_is_cut_while_there_is_room_for_it() -> None:
    """H20: 71,000 characters fit into 60,000 tokens, and no budget is left over where they don't fit."""
    draw = random.Random(1)
    size = {0: 10, 1: 71_000, 2: 10}
    records = [{"id": i, "text": "".join(draw.choices("abcdef 123", k=size[i % 3]))} for i in range(3)]
    prompt = hyve.view(json.dumps(records), question="?", budget=24_000)
    assert prompt.cut
    assert prompt.prompt_tokens > 24_000 * 0.97


@pytest.mark.parametrize("budget", [520, 560, 600])
def test_marks_are_explained_where_they_are_used(budget: int) -> None:
    records = [
        {"at": f"2026-01-31T12:{i // 60 % 60:02d}:{i % 60:02d}Z", "msg": f"request {i * 7919}"} for i in range(900)
    ]
    text = "\n".join(lines_of(hyve.view(json.dumps(records), question="why is it slow?", budget=budget).text))
    assert ("in a head: the cell goes there" in text) == bool(re.search(r"^rowid\|.*[*>]", text, re.MULTILINE))


def test_the_rows_that_a_question_names_come_before_samples() -> None:
    """H17: also where there is room for little else."""
    records = [{"ts": 1_000 + i, "host": f"node-{i % 2500:04d}", "ms": i * 7919 % 100 / 7} for i in range(5_000)]
    rows = shown_rows(hyve.view(json.dumps(records), question="why is node-1234 slow?", budget=700).text)
    assert {1234, 3734} <= rows.keys()


@given(st.integers(0, 10_000), st.integers(12, 60))
@settings(max_examples=4, deadline=None)
def test_more_budget_does_not_show_fewer_rows(seed: int, longest: int) -> None:
    """H20: neither longer cells nor a line of a header that fits at last take the room of rows."""
    draw = random.Random(seed)
    records = [
        {"id": i, "text": "lorem ipsum " * draw.randrange(1, longest) + str(draw.random()), "s": draw.choice("ab")}
        for i in range(500)
    ]
    text = json.dumps(records)
    before: set[int] = set()
    for budget in (1_500, 1_650, 1_700, 1_800, 2_400, 3_600):
        rows = set(shown_rows(hyve.view(text, question="", budget=budget).text))
        assert before <= rows
        before = rows


DECIMALS = {
    0: "0",
    559341: "559341",
    18446744073709551615: "18446744073709551615",
    148.4848484848485: "148.4848484848485",
}


@pytest.mark.parametrize("ablation", [(), ("toon",)])
def test_a_decimal_has_no_zeros_that_its_type_adds(ablation: tuple[str, ...]) -> None:
    """H14, H15: one number of 64 bits beside a fraction makes all of the column decimals; none is written `0E-13`."""
    numbers = list(DECIMALS)
    records = [{"i": i, "num": numbers[i % 4], "pad": f"p{i * 7919}"} for i in range(400)]
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        text = prompt.build(store, "what is wrong?", budget=1_000, ablation=ablation).text
        result = store.query("SELECT num_num FROM records ORDER BY i LIMIT 4")
    header = next(line for line in lines_of(text) if line.startswith("- num_num DECIMAL"))
    assert "E-" not in header
    assert all(re.search(rf"[ :,=]{re.escape(said)}[ :,=]", f"{header} ") for said in DECIMALS.values())
    shown = [line.strip().split("," if ablation else "|") for line in lines_of(text) if re.match(r" *\d+[|,]", line)]
    assert len(shown) > 10
    assert all(cells[2] == DECIMALS[numbers[int(cells[0]) % 4]] for cells in shown)
    assert rowtext.rows_text(result, 500).split("\n")[2:6] == list(DECIMALS.values())


def test_a_value_and_its_count_are_told_apart() -> None:
    """H14: `5 ×3` is the value 5 in three rows; a value that looks like that is in quotes, as is one with a comma."""
    odd = {"5": 3, "5 3": 4, "5 ×3": 5, "7, 2": 6, "2 (of 3)": 380}
    values = [value for value, count in odd.items() for _ in range(count)]
    records = [{"v": value, "n": i * 7919, "pad": f"p{i * 31 % 97}" * 9} for i, value in enumerate(values)]
    header = next(line for line in lines_of(view_of(records)) if line.startswith("- v "))
    assert header == '- v VARCHAR: 5 values: 2 (of 3) ×380, "7, 2" ×6, "5 ×3" ×5, 5 3 ×4, 5 ×3'


def test_a_mean_is_told_apart_from_what_it_is_of() -> None:
    records = [{"shard": f"{i % 2} 0", "ms": i % 2 * 500 + i % 20 / 2, "n": i * 7919} for i in range(400)]
    assert any(line == "- mean ms by shard: 0 0=4.5, 1 0=505" for line in lines_of(view_of(records)))


def view_of(records: list[dict[str, Any]]) -> str:
    return hyve.view(json.dumps(records), question="", budget=1_000).text


@pytest.mark.parametrize("budget", [1_000, 2_000, 4_000])
def test_a_measure_is_described_before_ids_and_times_that_are_numbers(budget: int) -> None:
    """H14, H15: 5,321 spans with ids of 16 and 32 digits and times in nanoseconds."""
    text = of_corpus("rca/nezha-trace-0520.csv", budget, "why is it slow?")
    lines = lines_of(text)
    assert "- Duration_num BIGINT: 3,780 distinct, 10..36799850, mean 541213" in text
    assert not [line for line in lines if re.search(r"in order: .*\w{16}", line)]
    if budget == 4_000:
        line = next(line for line in lines if line.startswith("- StartTimeUnixNano_num "))
        assert line.endswith("1661145538816465114..1661145648696644982 ns = 2022-08-22 05:18:58..05:20:48 UTC")
        assert "... (1 column above not in rows; 1 only in rows)" in lines
        assert "|36799850" in text  # the longest one's row


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (1_700_000_000, "s = 2023-11-14 22:13:20..2023-11-15 00:31:26 UTC"),
        (1_700_006_400_000, "ms = 2023-11-15 00:00:00..00:00:08 UTC"),
        (1_700_006_400_000_000, "us = 2023-11-15 00:00:00..00:00:00 UTC"),
        (90_000_000, ""),
        (10**21, ""),
    ],
)
def test_times_that_are_numbers_are_said_as_times(first: int, said: str) -> None:
    """H14: whatever the unit; numbers that are no times of this age stay numbers."""
    draw = random.Random(3)
    steps = [0, *(draw.randrange(1, 8_285) for _ in range(900)), 8_286]
    records = [{"started_at": first + step, "note": f"n{step * 7919}"} for step in steps]
    text = hyve.view(json.dumps(records), question="?", budget=900).text
    line = next(line for line in lines_of(text) if line.startswith("- started_at "))
    assert (f" {said}" in line) if said else ("UTC" not in line)


def test_labels_are_cut_before_rows_are() -> None:
    """H15: `kubectl get pods -A -o wide --show-labels`: names of pods come before labels of up to 460 characters."""
    rows = shown_rows(of_corpus("k8s/kubectl-get-pods-wide.txt", 4_000, "what is wrong?"))
    pods = [row for row in rows.values() if re.search(r"\|(Running|Completed|CrashLoopBackOff)\|", row)]
    assert len(pods) >= 30
    assert any("|CrashLoopBackOff|" in row for row in pods)


def test_the_pod_that_a_question_names_keeps_its_labels() -> None:
    text = of_corpus("k8s/kubectl-get-pods-wide.txt", 4_000, "why is tempo-querier-67474d8b6c-4fjtb slow?")
    rows = shown_rows(text)
    pods = {row.split("|")[2]: row.rsplit("|", 1)[1] for row in rows.values() if row.count("|") > 7}
    names = [name for name in pods if "tempo" in name]
    labels = {name: len(pods[name]) for name in names}
    assert labels["tempo-querier-67474d8b6c-4fjtb"] > 150
    assert len(pods) > 25
    assert max(length for name, length in labels.items() if name != "tempo-querier-67474d8b6c-4fjtb") < 80


def test_of_what_relations_tell_again_the_reasons_come_first() -> None:
    """H15, H20: conditions of cluster operators; words of an address in the data don't say which tables matter."""
    text = of_corpus("k8s/clusteroperators.json", 4_000, "what is wrong?")
    conditions = text.split("\n## conditions: ")[1].split("\n## ")[0]
    assert "\n- reason VARCHAR: 9 values, 38 empty: AsExpected ×64, NoData ×3" in conditions
    assert len(re.findall(r"^\d+\|", conditions, re.MULTILINE)) > 20


@pytest.mark.parametrize("budget", ["1000", None, 3.5, True])
def test_a_budget_that_is_no_whole_number_is_an_error_that_says_so(budget: Any) -> None:
    with pytest.raises(hyve.InputError, match="whole number of tokens.*, not " + re.escape(repr(budget))):
        hyve.view('[{"a": 1}]', budget=budget)
