"""Prometheus exposition text and OpenMetrics as `metric_points`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.formats import relations, text_relations
from hyve.lines import fields

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z


def points(source: str) -> list[dict[str, Any]]:
    return text_relations(source.split("\n")).get("metric_points", [])


def test_a_sample_is_the_row_that_the_api_gives() -> None:
    (row,) = points('up{job="api",pod="p1"} 1 1706933106500')
    answer = {"resultType": "vector", "result": [{"metric": {"__name__": "up", "job": "api", "pod": "p1"}}]}
    answer["result"][0]["value"] = [1706933106.5, "1"]  # type: ignore[index]
    assert [row] == relations([answer])["metric_points"]
    assert (row["time"], row["service"], row["value"], row["kind"]) == (AT + 500_000_000, "p1", 1.0, "gauge")


def test_families_and_kinds() -> None:
    source = """# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total 5
# TYPE temperature gauge
# UNIT temperature celsius
temperature{room="a"} -3.5e1
# TYPE rpc histogram
rpc_bucket{le="+Inf"} 3
rpc_sum 4.5
rpc_count 3
# TYPE gc summary
gc{quantile="0.5"} 0.1
gc_count 7
# TYPE old untyped
old 1

process 3 is running
free 12"""
    assert [(p["name"], p["value"], p["kind"], p["unit"]) for p in points(source)] == [
        ("http_requests_total", 5.0, "sum", ""),
        ("temperature", -35.0, "gauge", "celsius"),
        ("rpc_bucket", 3.0, "sum", ""),
        ("rpc_sum", 4.5, "sum", ""),
        ("rpc_count", 3.0, "sum", ""),
        ("gc", 0.1, "summary", ""),
        ("gc_count", 7.0, "sum", ""),
        ("old", 1.0, "gauge", ""),
    ]


def test_samples_without_labels_count_among_others() -> None:
    source = """http_requests_total{method="post"} 1027

# Minimalistic line:
metric_no_labels 12.47 1706933106000
process_open_fds 10
go_gc_total 3
something_weird{problem="division by zero"} +Inf

$ uptime
users 3
"""
    assert [(p["name"], p["value"], p["kind"], p["time"], p["attributes"]) for p in points(source)] == [
        ("http_requests_total", 1027.0, "sum", None, {"method": "post"}),
        ("metric_no_labels", 12.47, "gauge", AT, {}),
        ("process_open_fds", 10.0, "gauge", None, {}),
        ("go_gc_total", 3.0, "sum", None, {}),
        ("something_weird", None, "gauge", None, {"problem": "division by zero"}),
    ]


@pytest.mark.parametrize(("plain", "told"), [(9, 10), (10, 1)])
def test_one_in_ten_lines_has_to_be_a_sure_sample(plain: int, told: int) -> None:
    assert len(points("\n".join(['up{job="a"} 1', *(f"word{'x' * i} {i}" for i in range(plain))]))) == told


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        (r'a{p="C:\\x",q="say \"hi\"",n="x\ny"} 1', {"p": "C:\\x", "q": 'say "hi"', "n": "x\ny"}, 1.0),
        ('a{b="}",c="# 1"} 2 # {trace_id="x"} 0.5', {"b": "}", "c": "# 1"}, 2.0),
        ('a { b = "c" , } 3', {"b": "c"}, 3.0),
        ('a{b="c"} NaN', {"b": "c"}, None),
        ('a{b="c"} +Inf', {"b": "c"}, None),
        ('a{b="c"} -Inf 1706933106000', {"b": "c"}, None),
        ('a{b=""} .5\r', {"b": ""}, 0.5),
        ('{"a","b.c"="d"} 1', {"b.c": "d"}, 1.0),
        ('a:b:c{d="e"} 1e400', {"d": "e"}, None),
    ],
)
def test_labels_and_values(line: str, labels: dict[str, str], value: float | None) -> None:
    (row,) = points(line)
    assert (row["attributes"], row["value"]) == (labels, value)
    assert row["name"] in ("a", "a:b:c")


@pytest.mark.parametrize(
    ("stamp", "time"), [("1706933106000", AT), ("1706933106", AT), ("1706933106.25", AT + 250_000_000)]
)
def test_times_in_milliseconds_and_seconds(stamp: str, time: int) -> None:
    assert points(f'a{{b="c"}} 1 {stamp}')[0]["time"] == time


@pytest.mark.parametrize(
    "line",
    [
        "retries 3",
        'a{b="c"}',
        'a{b="c"} one',
        'a{b="c" 1',
        "a{b=c} 1",
        'a{b="c"} 1 2 3',
        'log="x" {not} 1',
        'a{b="c"} 1_000',
        "# a comment",
        'level=info msg="done {ok}" 5',
        "",
    ],
)
def test_what_is_no_sample(line: str) -> None:
    assert points(line) == []
    assert points("# TYPE z gauge\n" + line) == []


_TEXT = st.text(st.characters(exclude_characters="\n\r"), max_size=12)


def _escaped(text: str) -> str:
    return re.sub(r'([\\"])', r"\\\1", text)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), _TEXT, min_size=1, max_size=5), st.floats(allow_nan=False))
def test_every_label_set_comes_back(labels: dict[str, str], value: float) -> None:
    line = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    (row,) = points(f"m{{{line}}} {value!r}")
    assert row["attributes"] == labels
    assert row["value"] == (value if abs(value) != float("inf") else None)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.sampled_from('ab{}=",#\\ 1.eTYPEnan\t'), max_size=30), max_size=6))
def test_no_text_raises(texts: list[str]) -> None:
    for row in text_relations(["# TYPE a gauge", 'a{b="c"} 1', *texts])["metric_points"]:
        assert type(row["name"]) is str
        assert row["value"] is None or type(row["value"]) is float


EDGES = [
    r'a{p="C:\\x",q="say \"hi\"",n="x\ny"} 1',
    'a{b="}",c="# 1"} 2 # {trace_id="x"} 0.5',
    'a { b = "c" , } 3',
    'a{b="c"} 1 1706933106.25',
    'a{b="c"} 1 1706933106000 # {trace_id="x"} 0.5 1706933106.1  ',
    '{"a","b.c"="d"} 1',
    '{__name__="a",b="c"} 1',
    'a{b="c"}5',
    'a{b="c"} 5\r',
    "a\t7",
    'a{b="c"} 1 2 3',
    "a{b=c} 1",
    'a{b="c" d="e"} 1',
    'a{b="c"} 0x1F',
    "# EOF",
    "#TYPE a gauge",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=8))
def test_fields_of_lines_are_those_of_the_samples(lines: list[str]) -> None:
    """One grammar: what is a sample in `lines` is a row of `metric_points`."""
    lines = ["# TYPE a gauge", *['a{b="c"} 1'] * 90, *lines]
    told = [item for item in fields(lines) or () if item is not None and "value" in item]
    rows = text_relations(lines)["metric_points"]
    assert [(row["name"], row["value"], row["time"] is None) for row in rows] == [
        (item["name"], float(item["value"]), "timestamp" not in item) for item in told
    ]
    for row, item in zip(rows, told, strict=True):
        assert row["attributes"] == {key: value for key, value in item["labels"].items() if key != "__name__"}
