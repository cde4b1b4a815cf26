"""What stands at the head of a log line: times, levels, who speaks, and the message behind (H38)."""

from __future__ import annotations

import pytest

from tests.unit.test_lines import of

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
