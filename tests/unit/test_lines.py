"""What lines of logs and of metrics carry (H38)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.lines import fields


def of(*texts: str) -> list[dict[str, Any] | None]:
    found = fields(texts)
    assert found is not None
    return found


HEADS = [
    (
        "2025-06-20T10:38:18.916Z [INFO] auth-service - Auth event: login",
        {
            "time": "2025-06-20T10:38:18.916Z",
            "level": "INFO",
            "logger": "auth-service",
            "msg": "Auth event: login",
        },
    ),
    (
        "2024-01-02 03:04:05,678 ERROR [main] com.acme.Pay - card refused",  # log4j
        {
            "time": "2024-01-02 03:04:05,678",
            "level": "ERROR",
            "thread": "main",
            "logger": "com.acme.Pay",
            "msg": "card refused",
        },
    ),
    (
        "03:04:05.678 [http-nio-8080-exec-1] WARN  c.a.Pay - slow",  # logback
        {"time": "03:04:05.678", "thread": "http-nio-8080-exec-1", "level": "WARN", "logger": "c.a.Pay", "msg": "slow"},
    ),
    (
        "2024-01-02 03:04:05,678 - acme.pay - WARNING - slow",  # Python
        {"time": "2024-01-02 03:04:05,678", "logger": "acme.pay", "level": "WARNING", "msg": "slow"},
    ),
    ("WARNING:acme.pay:slow", {"level": "WARNING", "logger": "acme.pay", "msg": "slow"}),
    (
        "2024-01-02T03:04:05.678+01:00  INFO 1 --- [shop] [main] c.a.ShopApplication : Started in 3 s",  # Spring Boot 3
        {
            "time": "2024-01-02T03:04:05.678+01:00",
            "level": "INFO",
            "pid": "1",
            "thread": "main",
            "logger": "c.a.ShopApplication",
            "msg": "Started in 3 s",
        },
    ),
    (
        "[2024-01-02T03:04:05,678][WARN ][o.e.n.Node               ] [node-1] high load",  # Elasticsearch
        {"time": "2024-01-02T03:04:05,678", "level": "WARN", "logger": "o.e.n.Node", "msg": "[node-1] high load"},
    ),
    (
        "[2016-12-19 20:54:33,532] TRACE Broker 2 skipped (state.change.logger)",  # Kafka
        {
            "time": "2016-12-19 20:54:33,532",
            "level": "TRACE",
            "msg": "Broker 2 skipped",
            "logger": "state.change.logger",
        },
    ),
    (
        "2015-07-29 17:41:44,747 - WARN  [Quorum[id=1]/0:0:0:2181:Fast@774] - Notification time out",  # ZooKeeper
        {
            "time": "2015-07-29 17:41:44,747",
            "level": "WARN",
            "thread": "Quorum[id=1]/0:0:0:2181:Fast@774",
            "msg": "Notification time out",
        },
    ),
    (
        "17/06/09 20:10:40 INFO executor.CoarseGrainedExecutorBackend: Registered signal handlers",  # Spark
        {
            "time": "17/06/09 20:10:40",
            "level": "INFO",
            "logger": "executor.CoarseGrainedExecutorBackend",
            "msg": "Registered signal handlers",
        },
    ),
    (
        "2017-05-16 00:00:00.008 25746 INFO nova.osapi_compute.wsgi [req-1] accepted",  # OpenStack
        {
            "time": "2017-05-16 00:00:00.008",
            "pid": "25746",
            "level": "INFO",
            "logger": "nova.osapi_compute.wsgi",
            "msg": "[req-1] accepted",
        },
    ),
    (
        "2024-01-02T03:04:05.123456Z  WARN hyper::client: retry",  # Rust
        {"time": "2024-01-02T03:04:05.123456Z", "level": "WARN", "logger": "hyper::client", "msg": "retry"},
    ),
    (
        "[2024-01-02T03:04:05Z INFO  app::db] ready",
        {"time": "2024-01-02T03:04:05Z", "level": "INFO", "logger": "app::db", "msg": "ready"},
    ),
    (
        "2024-01-02 03:04:05.678 | INFO     | __main__:<module>:12 - ready",  # loguru
        {"time": "2024-01-02 03:04:05.678", "level": "INFO", "logger": "__main__:<module>:12", "msg": "ready"},
    ),
    (
        "I0123 12:00:00.000000       1 server.go:12] listening",  # klog
        {
            "level": "I",
            "time": "0123 12:00:00.000000",
            "pid": "1",
            "source": "server.go:12",
            "msg": "listening",
        },
    ),
    (
        "2024-01-02T03:04:05.678Z\tINFO\tsetup\tstarting manager",  # zap
        {"time": "2024-01-02T03:04:05.678Z", "level": "INFO", "logger": "setup", "msg": "starting manager"},
    ),
    (
        "I, [2024-01-02T03:04:05.123456 #1234]  INFO -- : Started GET",  # Ruby
        {"time": "2024-01-02T03:04:05.123456", "pid": "1234", "level": "INFO", "msg": "Started GET"},
    ),
    (
        "[2024-01-02 03:04:05,678: ERROR/MainProcess] Task failed",  # celery
        {"time": "2024-01-02 03:04:05,678", "level": "ERROR", "thread": "MainProcess", "msg": "Task failed"},
    ),
    (
        "[2024-01-02 03:04:05 +0000] [7] [INFO] Booting worker",  # gunicorn
        {"time": "2024-01-02 03:04:05 +0000", "pid": "7", "level": "INFO", "msg": "Booting worker"},
    ),
    (
        "[Wed Oct 11 14:32:52.123456 2023] [core:error] [pid 35:tid 42] [client 1.2.3.4:5] File not found",  # httpd
        {
            "time": "Wed Oct 11 14:32:52.123456 2023",
            "logger": "core",
            "level": "error",
            "pid": "35",
            "client": "1.2.3.4:5",
            "msg": "File not found",
        },
    ),
    (
        "2024-01-02 03:04:05.678 UTC [42] shop@orders ERROR:  deadlock detected",  # PostgreSQL
        {
            "time": "2024-01-02 03:04:05.678 UTC",
            "pid": "42",
            "user": "shop",
            "database": "orders",
            "level": "ERROR",
            "msg": "deadlock detected",
        },
    ),
    (
        "1:M 02 Jan 2024 03:04:05.678 # Out of memory",  # Redis
        {"pid": "1", "time": "02 Jan 2024 03:04:05.678", "level": "#", "msg": "Out of memory"},
    ),
    (
        "<34>Oct 11 22:14:15 mymachine su[77]: 'su root' failed",  # RFC 3164
        {
            "priority": "34",
            "time": "Oct 11 22:14:15",
            "host": "mymachine",
            "app": "su",
            "pid": "77",
            "msg": "'su root' failed",
        },
    ),
    (
        "Jan  2 03:04:05 web1 kernel: oom-killer invoked",
        {"time": "Jan  2 03:04:05", "host": "web1", "app": "kernel", "msg": "oom-killer invoked"},
    ),
    (
        # RFC 5424
        '<165>1 2003-10-11T22:14:15.003Z m.example.com evntslog - ID47 [ex@32473 iut="3" e="A\\"p"] An event',
        {
            "priority": "165",
            "time": "2003-10-11T22:14:15.003Z",
            "host": "m.example.com",
            "app": "evntslog",
            "msgid": "ID47",
            "data": '[ex@32473 iut="3" e="A\\"p"]',
            "msg": "An event",
        },
    ),
    (
        '10.0.0.1 - bob [02/Jan/2024:03:04:05 +0000] "GET /a?x=1&y=2 HTTP/1.1" 500 17 "-" "curl/8"',
        {
            "client": "10.0.0.1",
            "user": "bob",
            "time": "02/Jan/2024:03:04:05 +0000",
            "method": "GET",
            "path": "/a?x=1&y=2",
            "protocol": "HTTP/1.1",
            "status": "500",
            "bytes": "17",
            "agent": "curl/8",
        },
    ),
    (
        "2024/01/02 03:04:05 [error] 31#31: *5 open() failed",  # nginx
        {"time": "2024/01/02 03:04:05", "level": "error", "pid": "31", "msg": "open() failed"},
    ),
    ("[03:04:05 WRN] slow", {"time": "03:04:05", "level": "WRN", "msg": "slow"}),  # Serilog
    ("2024/01/02 03:04:05 main.go:12: hi", {"time": "2024/01/02 03:04:05", "source": "main.go:12", "msg": "hi"}),
    ("ERROR: it broke", {"level": "ERROR", "msg": "it broke"}),
    ("[warn] it bends", {"level": "warn", "msg": "it bends"}),
    (
        "app-1  | 2024-01-02T03:04:05Z ERROR it broke",  # docker compose
        {"container": "app-1", "time": "2024-01-02T03:04:05Z", "level": "ERROR", "msg": "it broke"},
    ),
    (
        "[pod/web-7d/nginx] 2024-01-02T03:04:05.123456789Z I0102 03:04:05.000001       1 main.go:5] up",
        {
            "pod": "web-7d",
            "container": "nginx",
            "time": "2024-01-02T03:04:05.123456789Z",
            "level": "I",
            "pid": "1",
            "source": "main.go:5",
            "msg": "up",
        },
    ),
    (
        '2024-01-02T03:04:05.123456789Z stderr F level=error msg="it \\"broke\\"" code=7',
        {
            "time": "2024-01-02T03:04:05.123456789Z",
            "stream": "stderr",
            "level": "error",
            "msg": 'it "broke"',
            "code": "7",
        },
    ),
    (
        "\x1b[32m2025-08-08 07:06:59.594 INFO     ready\x1b[0m",
        {"time": "2025-08-08 07:06:59.594", "level": "INFO", "msg": "ready"},
    ),
]


@pytest.mark.parametrize(("text", "expected"), HEADS, ids=[text[:30] for text, _ in HEADS])
def test_heads_of_lines(text: str, expected: dict[str, str]) -> None:
    assert of(text) == [expected]
    assert of(text, "  at Foo.bar(Foo.java:12)", text)[1:] == [None, expected]


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


def test_too_many_keys_keep_the_frequent_ones() -> None:
    texts = [f"level=info k{i}=1 user=u{i}" for i in range(1000)]
    found = of(*texts)
    assert (found[999] or {})["user"] == "u999"
    assert len({key for item in found for key in item or {}}) == 256


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
    def seconds(size: int) -> float:
        text = head + unit * (size // len(unit))
        begun = time.process_time()
        fields([text, text + "\x00"])
        return time.process_time() - begun

    assert min(seconds(60_000) for _ in range(3)) < 0.2 + 12 * seconds(12_000)


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
