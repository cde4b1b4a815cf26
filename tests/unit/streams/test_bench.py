"""`hyve bench views` as a user runs it, and the rules by which a prompt is judged."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hyve import count_tokens
from streams import bench, bench_inputs, cli
from streams.bench_truth import QUESTION, Truth, entities, judge, read_truth, span_needle

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def hyve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `hyve bench views` in this process: (exit status, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hyve", "bench", "views", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_two_built_in_inputs_as_json(hyve: Command) -> None:
    status, out, err = hyve("--only", "metrics", "--only", "mixed", "--rows", "1200", "--runs", "1", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["budget"], found["peer"]) == (4000, None)
    metrics, mixed = found["inputs"]
    (made,) = bench_inputs.make("metrics", 1, 1200)
    compact = json.dumps(json.loads(made.data), separators=(",", ":"))
    assert (metrics["name"], metrics["size"], metrics["json_tokens"]) == (
        "metrics",
        len(made.data),
        count_tokens(compact),
    )
    run = metrics["hyve"]
    assert 1000 < run["tokens"] <= 4000
    assert run["cut"] is True
    assert run["shown"]["needles"] == 1
    assert run["shown"]["needles_missing"] == []
    assert run["shown"]["named"] == 6
    assert metrics["saved"] == round(1 - run["tokens"] / metrics["json_tokens"], 4)
    assert set(run["stages"]) == {"store", "view"}
    assert 0 < run["stages"]["store"] + run["stages"]["view"] <= run["ms"]
    assert run["error"] == ""
    (text,) = bench_inputs.make("mixed", 1, 1200)
    assert mixed["json_tokens"] == count_tokens(text.data.decode())
    assert mixed["toon_tokens"] is None
    assert len(mixed["truth"]["needles"]) == 3


def test_an_ablation_shows_what_a_part_is_worth(hyve: Command) -> None:
    """H34: without rank the odd row of the input is not shown."""
    arguments = ("--only", "metrics", "--rows", "1200", "--runs", "1", "--json")
    _, out, _ = hyve(*arguments, "--ablation", "no-rank")
    run = json.loads(out)["inputs"][0]["hyve"]
    assert run["shown"]["needles"] == 0
    assert run["tokens"] <= 4000
    status, _, err = hyve(*arguments, "--ablation", "rank")
    assert status == 2
    assert "no-rank" in err


def test_table_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"service": f"s{i % 3}", "ms": i % 11, "text": f"request {i} served"} for i in range(900)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (tmp_path / "notes.md").write_text("not data")
    found = [bench.measure(case, 2000, runs=1) for case in bench.load(tmp_path)]
    marked = bench.markdown(found, "", 2000).splitlines()
    line = next(line for line in marked if line.startswith("| rows.json"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2] == f"{count_tokens(json.dumps(rows, separators=(',', ':'))):,}"
    assert cells[8:12] == ["yes", "no", "", "3/3"]  # in budget, whole, needles (none known), services named
    prompt, data = (int(cells[i].replace(",", "")) for i in (4, 6))
    assert 300 < prompt - data < 600  # instructions, tools and question
    saved = [f"{1 - tokens / int(cells[2].replace(',', '')):.1%}" for tokens in (data, prompt)]
    assert marked[-1] == (
        f"1 inputs, 0 above the budget of 2,000; median saved of the 1 over 20 KB: {saved[0]} of the data, "
        f"{saved[1]} with instructions, tools and question"
    )
    bench.show(found, "", 2000)
    printed = capsys.readouterr().out
    assert "What the model sees" in printed
    assert "What it costs" in printed
    assert cells[2] in printed
    assert marked[-1] in printed


def test_truth_file_of_the_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "a_points.json").write_text(json.dumps([{"service": "x", "value": i} for i in range(10)]))
    spike = {"service": "x", "value": 9}
    (tmp_path / "truth.json").write_text(json.dumps({"a": {"spike": spike, "avg_by_service": {"x": 4.5}}}))
    (case,) = bench.load(tmp_path)
    assert (case.name, case.question) == ("a_points.json", QUESTION)
    assert case.truth == Truth(((("9", "x"),),), {"services": ("x",)}, {"x": 4.5})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/none"], "there is no folder {}/none"),
        (["{}/empty"], "{}/empty holds no files to measure"),
        (["{}/broken"], "cannot read {}/broken/gone.json: No such file or directory"),
        (["{}/odd"], "truth.json must be a JSON object of objects"),
        (["{}/unfit"], "the entry 'a' does not fit a_x.json"),
        (["{}/fine", "--only", "b"], "no file of {}/fine has a name that starts with b"),
        (["--only", "moons"], "there is no built-in input 'moons': the kinds are metrics, pods, logs"),
        (["--rows", "10"], "10 rows are too few"),
    ],
)
def test_errors_are_one_line(hyve: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    for folder in ("empty", "broken", "odd", "unfit", "fine"):
        (tmp_path / folder).mkdir()
    (tmp_path / "broken" / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "odd" / "truth.json").write_text("[1]")
    (tmp_path / "unfit" / "truth.json").write_text('{"a": {"spike": {"value": "much"}}}')
    for folder in ("unfit", "fine"):
        (tmp_path / folder / "a_x.json").write_text("[1]")
    status, out, err = hyve(*(argument.replace("{}", str(tmp_path)) for argument in arguments))
    assert (status, out) == (2, "")
    assert said.replace("{}", str(tmp_path)) in err
    assert err.count("\n") == 1


def test_an_input_without_data_is_a_line_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "blank.json").write_text("  \n")
    (case,) = bench.load(tmp_path)
    found = bench.measure(case, 4000, 1)
    assert found.hyve.error.startswith("InputError: the input ")
    assert bench.misses(found, 4000) == [found.hyve.error]
    assert "| blank.json | 0 |" in bench.markdown([found], "", 4000)
    assert bench.summary([found], 4000) == "1 inputs, 0 above the budget of 4,000; 1 failed"


def test_a_peer_that_is_not_installed_is_told_in_one_line(hyve: Command, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1, 2, 3]")
    missing = str(tmp_path / "python")
    compare = ("--compare", "headroom", "--headroom-python", missing)
    status, out, err = hyve(str(tmp_path), "--runs", "1", *compare, "--json")
    assert status == 0
    assert err == (
        f"hyve: headroom-ai is not installed for {missing}: run `python -m venv V && V/bin/pip install headroom-ai`, "
        "then add --headroom-python V/bin/python\n"
    )
    assert json.loads(out)["inputs"][0]["peer"] is None


def peer(run: bench.Run, **changes: Any) -> bench.Measured:
    truth = Truth(((("TX1",),),), {"services": ("cart",)}, {})
    return bench.Measured("x", 50_000, 10_000, None, truth, run, bench.Run(tokens=9000, cpu_ms=100.0, memory=50 << 20))


def test_misses_say_what_is_amiss() -> None:
    truth = Truth(((("TX1",),),), {"services": ("cart",)}, {"cart": 2.5})
    shown = judge(truth, "cart mean 3.5", "")
    run = bench.Run(tokens=4100, cut=True, cpu_ms=60.0, memory=60 << 20, shown=shown)
    assert bench.misses(peer(run), 4000) == [
        "100 tokens over the budget",
        "not shown: TX1",
        "mean wrong: cart",
        "0.60 of the peer's time (at most 0.50)",
        "60 MB of memory, the peer 50",
    ]
    good = bench.Run(tokens=3900, cut=True, cpu_ms=50.0, memory=50 << 20, shown=judge(truth, "TX1\ncart mean 2.5", ""))
    assert bench.misses(peer(good), 4000) == []
    lazy = bench.Run(tokens=2000, cut=True, cpu_ms=50.0, shown=judge(truth, "TX1\ncart mean 2.5", ""))
    assert bench.misses(peer(lazy), 4000) == ["2,000 tokens unused though something is cut"]


@pytest.mark.parametrize(
    ("text", "needles", "named", "means"),
    [
        ("payments spiked to 99.8731", 1, 1, "absent"),
        ("payments spiked to 99.87310", 1, 1, "absent"),
        ("payments\n99.8731", 0, 1, "absent"),  # not in one line
        ('{"text":"payments\\n99.8731"}', 0, 1, "absent"),  # an escaped line break parts lines too
        ("payments 199.8731", 0, 1, "absent"),
        ("payments-2 99.8731", 0, 0, "absent"),  # a pod of it is not the service
        ("- payments: 288 rows, mean 50.2895", 0, 1, "right"),
        ("- payments: 288 rows, mean 50.29", 0, 1, "right"),
        ("- payments: 288 rows, mean 50.3", 0, 1, "wrong"),  # three digits prove nothing
        ("- payments: mean 51.2895", 0, 1, "wrong"),
        ("- all: mean 50.2895", 0, 0, "absent"),
        ("service|mean\npayments|50.2895", 0, 1, "right"),
        ("rowid|service|value\n17|payments|50.29", 0, 1, "absent"),  # a value that looks like the mean
        (f"payments 99.8731 {QUESTION}", 1, 1, "absent"),
    ],
)
def test_judging(text: str, needles: int, named: int, means: str) -> None:
    truth = Truth(((("99.8731", "payments"),),), {"services": ("payments",)}, {"payments": 50.28951})
    found = judge(truth, text, QUESTION)
    assert (found.needles, found.named) == (needles, named)
    states = {
        "right": found.means == 1,
        "absent": found.means_absent == ("payments",),
        "wrong": bool(found.means_wrong),
    }
    assert [state for state, holds in states.items() if holds] == [means]


def test_what_the_question_says_is_not_shown() -> None:
    truth = Truth((), {"series": ("10.0.0.3:9100",)})
    asked = "Look at 10.0.0.3:9100."
    assert judge(truth, f"rows of 10.0.0.31:9100\n{asked}", asked).named == 0
    assert judge(truth, f"rows of 10.0.0.3:9100, more\n{asked}", asked).named == 1


def test_entities_of_telemetry() -> None:
    def resource(service: str, pod: str) -> dict[str, Any]:
        pairs = {"service.name": service, "k8s.pod.name": pod, "k8s.namespace.name": "prod"}
        return {"resource": {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in pairs.items()]}}

    spans = {"resourceSpans": [resource("cart", "cart-1"), resource("cart", "cart-2")]}
    assert entities(spans) == {"services": ("cart",), "namespaces": ("prod",), "resources": ("cart-1", "cart-2")}
    series = [{"metric": {"__name__": "up", "instance": f"h{i}:1"}, "values": [[0, "1"]]} for i in range(2)]
    assert entities({"data": {"result": series}}) == {"series": ("h0:1", "h1:1")}
    assert entities([{"service": f"s{i}"} for i in range(101)]) == {}  # no small dimension


def test_reading_the_truth_of_rows_and_spans() -> None:
    rows = [{"msg": "db-0 refused, txn=TX70000"}, {"msg": "db-0 fine"}]
    found = read_truth({"errors": rows[:1], "avg_dur": 2.5}, json.dumps(rows), rows)
    assert found.needles == ((("db-0 refused, txn=TX70000",), ("TX70000",)),)
    assert found.means == {"duration_ms": 2.5}
    span = {"spanId": "ab", "startTimeUnixNano": "1772323200981000000"}
    assert span_needle(span, ["504"]) == (("ab",), ("00:00:00.981", "504"))
    assert read_truth({"error_spans": ["ab"]}, "", [span]).needles[0][0] == ("ab",)
    mixed = read_truth({"node": "node-63", "alert": 41, "err_txn": "TX1", "err_in_trunc": True}, "", None)
    assert mixed.needles == ((("node-63", "false"),), (("41", "page"),), (("TX1",),))


@pytest.mark.parametrize("kind", bench_inputs.KINDS)
def test_built_in_inputs_hide_what_they_say(kind: str) -> None:
    cases = bench_inputs.make(kind, 3, 900)
    assert cases == bench_inputs.make(kind, 3, 900)
    assert cases[0].data != bench_inputs.make(kind, 4, 900)[0].data
    for case in cases:
        text = case.data.decode()
        found = judge(case.truth, text, "")
        assert (found.needles, found.unnamed) == (len(case.truth.needles), ())
        assert case.truth.needles
        if case.value is not None:
            assert [text.count(needle[0][0]) for needle in case.truth.needles] == [1] * len(case.truth.needles)
            assert {kind: set(names) for kind, names in case.truth.entities.items()} == {
                kind: set(names) for kind, names in entities(json.loads(text)).items()
            }


def test_means_of_the_built_in_inputs() -> None:
    (case,) = bench_inputs.make("metrics", 1, 600)
    points = json.loads(case.data)["points"]
    assert case.truth.means["ledger"] == fmean(p["value"] for p in points if p["service"] == "ledger")
    plain, named = bench_inputs.make("series", 1, 900)
    assert (plain.name, named.name) == ("series", "series (named)")
    assert named.data == plain.data
    (((_, instance),),) = plain.truth.needles
    assert instance in named.question
    assert instance not in plain.question
