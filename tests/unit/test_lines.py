"""What lines of logs and of metrics carry (H38)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.lines import Reader, fields
from tests.unit.timed import seconds


def of(*texts: str) -> list[dict[str, Any] | None]:
    found = fields(texts)
    assert found is not None
    return found


def test_logfmt_with_quotes_dotted_keys_and_bare_words() -> None:
    found = of(
        'ts=2024-01-02T03:04:05Z level=info src.addr=10.0.0.1:80 msg="a \\"b\\" c\\n" dur=2ms empty= last=""',
        "ts=2024-01-02T03:04:06Z level=warn url=http://x/?a=b&c=d ids=1,2,3 token=YWJj== isr=[0, 1]",
    )
    assert found == [
        {
            "ts": "2024-01-02T03:04:05Z",
            "level": "info",
            "src.addr": "10.0.0.1:80",
            "msg": 'a "b" c\n',
            "dur": "2ms",
            "empty": "",
            "last": "",
        },
        {
            "ts": "2024-01-02T03:04:06Z",
            "level": "warn",
            "url": "http://x/?a=b&c=d",
            "ids": "1,2,3",
            "token": "YWJj==",
            "isr": "[0, 1]",
        },
    ]


def test_pairs_behind_a_head() -> None:
    found = of(
        '2024-01-02T03:04:05Z\tinfo\taccess\tconnection complete\tsrc.addr=10.0.0.1:5 direction="inbound"',
        '2024-01-02T03:04:06Z\tinfo\taccess\tconnection complete\tsrc.addr=10.0.0.2:5 direction="outbound"',
        "2024-01-02T03:04:07Z\twarn\tproxy\tno pairs here",
    )
    assert found[0] == {
        "time": "2024-01-02T03:04:05Z",
        "level": "info",
        "logger": "access",
        "msg": "connection complete",
        "src.addr": "10.0.0.1:5",
        "direction": "inbound",
    }
    assert found[2] == {"time": "2024-01-02T03:04:07Z", "level": "warn", "logger": "proxy", "msg": "no pairs here"}


def test_pairs_amid_prose_leave_the_message_whole() -> None:
    text = "2024-01-02 03:04:05 INFO got PartitionState(epoch=36, isr=[0, 1], zk=85) from controller=0, epoch now 37"
    assert of(text) == [
        {
            "time": "2024-01-02 03:04:05",
            "level": "INFO",
            "msg": text[25:],
            "epoch": "36",
            "isr": "[0, 1]",
            "zk": "85",
            "controller": "0",
        }
    ]


def test_one_pair_counts_where_most_lines_share_its_key() -> None:
    shared = [f"request took long id={i}" for i in range(20)]
    assert of(*shared, "nothing here")[3] == {"id": "3"}
    assert fields([f"request took long id{i}={i}" for i in range(20)]) is None


@pytest.mark.parametrize(
    "text",
    [
        "GET https://example.com/a?user=1&page=2 and https://example.com/b?x=1&y=2 were slow",
        "if a == b and c == d then stop",
        "the key is YWJjZA== or QUJD=",
        "    result = compute(first=1, second=2)",
        "for (int i=0; i<10; i++) { total += i; }",
        "UPDATE users SET name='x', age=3 WHERE id=7",
        '<a href="x" class="y">link</a>',
        'sum(rate(http_requests_total{job="api",code="500"}[5m])) by (pod)',
        "java -Xmx2g -Dfoo=bar -Dbaz=qux --port=80 --host=x Main",
        "spec:\n  replicas: 3",
        "Traceback (most recent call last):",
        "We met on Monday, talked about costs, and left.",
        "FOO=bar",
        "            first=None, second=False,",
        "def f(self, msg: str, path: str, line: int) -> None:",
        ".. |alpha|  unicode:: U+003B1 .. GREEK",
        "a | b",
    ],
)
def test_what_is_no_pair(text: str) -> None:
    assert fields([text]) is None
    other = "Something else entirely happened here"
    assert fields([other, text, other, text, other]) is None


def test_sql_and_selectors_in_log_lines_are_no_pairs() -> None:
    head = "2024-01-02 03:04:05 INFO "
    assert of(head + "update of cache done from=a to=b")[0] == {
        "time": "2024-01-02 03:04:05",
        "level": "INFO",
        "msg": "update of cache done",
        "from": "a",
        "to": "b",
    }
    for body in ("ran UPDATE t SET a=1, b=2 WHERE c=3", 'query up{job="a",ns="b"} failed', "<p id=1 class=2> sent"):
        assert of(head + body) == [{"time": "2024-01-02 03:04:05", "level": "INFO", "msg": body}]


def test_labelled_pieces() -> None:
    found = of(
        *(
            f"2025-06-20T10:38:1{i}Z [DEBUG] order-service - POST /login - Status: 20{i} - Response time: {i}ms"
            for i in range(5)
        )
    )
    assert found[4] == {
        "time": "2025-06-20T10:38:14Z",
        "level": "DEBUG",
        "logger": "order-service",
        "msg": "POST /login - Status: 204 - Response time: 4ms",
        "Status": "204",
        "Response time": "4ms",
    }
    nginx = (
        '2024/01/02 03:04:05 [error] 3#3: *5 open() "/x" failed (2: No such file), client: 10.0.0.1, '
        'server: a.example, request: "GET /x, y HTTP/1.1", host: "h"'
    )
    assert of(*[nginx] * 4)[0] is not None
    first = of(*[nginx] * 4)[0] or {}
    assert (first["client"], first["server"], first["request"], first["host"]) == (
        "10.0.0.1",
        "a.example",
        "GET /x, y HTTP/1.1",
        "h",
    )


def test_a_request_in_a_message() -> None:
    text = '2025-08-08 07:21:21,370 INFO     10.244.1.29:34804 - "GET /api/model HTTP/1.1" 200'
    assert of(text) == [
        {
            "time": "2025-08-08 07:21:21,370",
            "level": "INFO",
            "msg": '10.244.1.29:34804 - "GET /api/model HTTP/1.1" 200',
            "client": "10.244.1.29:34804",
            "method": "GET",
            "path": "/api/model",
            "protocol": "HTTP/1.1",
            "status": "200",
        }
    ]


def test_a_document_escaped_into_a_line() -> None:
    document = {"a": [1, {"b": 'x "y" \\z'}], "n": 10**30}
    once = json.dumps(json.dumps(document))[1:-1]
    twice = json.dumps(once)[1:-1]
    for escaped in (once, twice):
        found = of(f"2024-01-02 03:04:05 INFO body={escaped} sent", "2024-01-02 03:04:06 INFO done")
        assert (found[0] or {})["json"] == document


EXPOSITION = r"""# HELP http_requests_total Requests, with \\ and \n.
# TYPE http_requests_total counter
http_requests_total{method="post",path="a\"b\\c",} 1027 1395066363000
http_requests_total{method="get"} 3
# UNIT latency_seconds seconds
latency_seconds_bucket{le="+Inf"} 1.5e+03 # {trace_id="ab"} 0.67
up NaN
{"my.metric","a.b"="c"} -Inf
# EOF"""


def test_exposition_text() -> None:
    assert of(*EXPOSITION.split("\n")) == [
        {"metric": "http_requests_total", "help": "Requests, with \\ and \n."},
        {"metric": "http_requests_total", "type": "counter"},
        {
            "name": "http_requests_total",
            "labels": {"method": "post", "path": 'a"b\\c'},
            "value": "1027",
            "timestamp": "1395066363000",
        },
        {"name": "http_requests_total", "labels": {"method": "get"}, "value": "3"},
        {"metric": "latency_seconds", "unit": "seconds"},
        {
            "name": "latency_seconds_bucket",
            "labels": {"le": "+Inf"},
            "value": "1.5e+03",
            "exemplar": '{trace_id="ab"} 0.67',
        },
        {"name": "up", "labels": {}, "value": "NaN"},
        {"name": "my.metric", "labels": {"a.b": "c"}, "value": "-Inf"},
        None,
    ]


def test_names_of_a_lines_own_columns_are_free() -> None:
    assert of("line=1 text=a", "line=2 text=b") == [
        {"line_value": "1", "text_value": "a"},
        {"line_value": "2", "text_value": "b"},
    ]


def test_a_key_that_a_line_repeats_has_a_column_for_each_value() -> None:
    assert of("level=info a=1 b=x a=2 a=2 a=3 a_2=y", "level=warn a=1 a=1") == [
        {"level": "info", "a": "1", "b": "x", "a_2": "2", "a_3": "3", "a_2_2": "y"},
        {"level": "warn", "a": "1"},
    ]


def test_too_many_keys_keep_the_frequent_ones() -> None:
    """H38: and each line says how many of its pairs are not among them."""
    texts = [f"level=info k{i}=1 user=u{i}" for i in range(1100)]
    found = of(*texts)
    assert found[1099] == {"level": "info", "user": "u1099", "pairs_left_out": 1}
    assert found[0] == {"level": "info", "user": "u0", "k0": "1"}
    assert len({key for item in found for key in item or {}} - {"pairs_left_out"}) == 1000


@pytest.mark.parametrize("count", [300, 1_000, 1_300])
def test_a_line_of_very_many_pairs(count: int) -> None:
    """H38: the first thousand are kept, and how many more there are is said."""
    kept = {f"k{i}": f"v{i}" for i in range(min(count, 1_000))}
    left_out = {"pairs_left_out": count - 1_000} if count > 1_000 else {}
    (found,) = of(" ".join(f"k{i}=v{i}" for i in range(count)))
    assert found == kept | left_out
    (headed,) = of("2026-01-30T11:45:00Z INFO dump " + " ".join(f"k{i}=v{i}" for i in range(count)))
    assert {key: (headed or {})[key] for key in (*kept, *left_out)} == kept | left_out
    assert (headed or {})["level"] == "INFO"


def test_rare_kinds_of_lines_are_found_beside_the_frequent_one() -> None:
    texts = [f"2024-01-02 03:04:05 INFO tick {i}" for i in range(300)]
    texts[7:7] = ["java.lang.NullPointerException: x", "\tat a.B.c(B.java:1)"] * 3
    found = of(*texts)
    assert found[7] is None
    assert found[-1] == {"time": "2024-01-02 03:04:05", "level": "INFO", "msg": "tick 299"}


@given(st.lists(st.text(max_size=60) | st.text(alphabet='a=b "\\{}[](),:-<>\t#1IT', max_size=80), max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_lines_at_all(texts: list[str]) -> None:
    found = fields(texts)
    assert found is None or len(found) == len(texts)


_PIECES = ("a=1", " b=2", "x ", 'got {\\"k\\": 1}', ' "GET /a HTTP/1.1" 200', "\x1b[31m", "INFO ", "12:00:01 ")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.sampled_from(_PIECES), max_size=4).map("".join), min_size=1, max_size=12))
def test_a_line_says_the_same_whatever_is_read_with_it(texts: list[str]) -> None:
    assert [Reader(texts).read([text])[0] for text in texts] == Reader(texts).read(texts)


words = st.text(alphabet="abcxyz", min_size=1, max_size=5)


@given(st.lists(st.dictionaries(words, st.text(max_size=12), min_size=2, max_size=5), min_size=2, max_size=5))
@settings(deadline=None)
def test_quoted_values_come_back_as_they_were(records: list[dict[str, str]]) -> None:
    texts = [" ".join(f"{key}={json.dumps(value)}" for key, value in record.items()) for record in records]
    assert of(*texts) == records


@pytest.mark.parametrize(
    "unit",
    [
        '"',
        "\\",
        "=",
        "a=",
        'a="',
        "a=[",
        "a={",
        "{",
        "<a",
        "[",
        "(",
        " ",
        "a ",
        "a,",
        'x\\"',
        "1",
        ": ",
        " - a: ",
        "a=b,",
        "' ",
        '{\\"',
    ],
)
@pytest.mark.parametrize("head", ["", "2024-01-02 03:04:05 INFO ", "x{a=", "# HELP ", "[2024-01-02 03:04:05] INFO a ("])
def test_hostile_lines_take_linear_time(head: str, unit: str) -> None:
    def took(size: int) -> float:
        text = head + unit * (size // len(unit))
        return seconds(lambda: fields([text, text + "\x00"]))

    assert min(took(60_000) for _ in range(3)) < 0.2 + 12 * took(12_000)


def test_real_logs() -> None:
    """The corpus: every line of these carries what a reader sees in it."""
    corpus = os.environ.get("HYVE_CORPUS")
    if not corpus:
        pytest.skip("HYVE_CORPUS is not set")
    logs = Path(corpus) / "real" / "logs"
    ztunnel = of(*[text for text in (logs / "ztunnel.log").read_text().split("\n") if text])
    assert [item is None for item in ztunnel] == [False] * 28
    assert {item["level"] for item in ztunnel if item} == {"info"}
    assert (ztunnel[-1] or {})["bytes_recv"] == "1483"
    states = of(*[text for text in (logs / "kafka-state-change.log").read_text().split("\n") if text])
    assert len(states) == 506
    assert all(item and item["logger"] == "state.change.logger" for item in states)
    assert sum(item is not None and "controllerEpoch" in item for item in states) == 72
