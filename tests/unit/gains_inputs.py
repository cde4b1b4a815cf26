"""Small inputs of many shapes, none of which fits into a few thousand tokens."""

from __future__ import annotations

import json
import random


def inputs(seed: int = 1) -> dict[str, str]:
    """The texts by name."""
    draw = random.Random(seed)

    def word(least: int = 4, most: int = 9) -> str:
        return "".join(draw.choices("abcdefghiklmnoprstuw", k=draw.randrange(least, most)))

    def at(i: int) -> str:
        return f"2026-03-{1 + i // 1440:02d}T{i // 60 % 24:02d}:{i % 60:02d}:{i * 7 % 60:02d}Z"

    long_texts = [
        {"id": i, "txt": "lorem ipsum " * draw.randrange(1, 60) + str(draw.random()), "s": draw.choice("ab")}
        for i in range(500)
    ]
    wide = [
        {
            f"{'host' if k == 7 else 'field'}_{k}": [
                i * k,
                f"{word()}-{i % 5}",
                f"v{i % 3}",
                round(draw.gauss(5, 1), 2),
                "x" if i % 9 else None,
            ][k % 5]
            for k in range(60)
        }
        for i in range(300)
    ]
    services = [word() for _ in range(20)]
    spans = [
        {"service": draw.choice(services), "ms": round(draw.gauss(80, 9), 1), "at": at(i), "ok": i % 50 > 0}
        for i in range(1_500)
    ]
    pods = [
        {"pod": f"{word()}-{i}", "node": f"n{i % 7}", "restarts": i % 40 // 39, "image": f"r/{word()}:{i % 4}"}
        for i in range(400)
    ]
    five = {
        "spans": spans[:400],
        "pods": pods[:200],
        "users": [{"name": word(), "mail": f"{word()}@{word()}.org", "age": i % 70} for i in range(300)],
        "one": [{"title": "deployment of " + word(), "at": at(3), "by": word(), "note": "text " * 60}],
        "disks": [
            {"disk": f"sd{'abcd'[i % 4]}", "used": i * 31 % 97, "path": f"/var/lib/{word()}"} for i in range(200)
        ],
    }
    logs = [
        f"{at(i)} {draw.choices(['INFO', 'WARN', 'ERROR'], [90, 9, 1])[0]} [{draw.choice(services)}] request"
        f" {draw.randrange(10**9):x} to /api/{word()} took {draw.randrange(900)} ms"
        + (f": java.lang.IllegalState: {' at '.join(word() for _ in range(40))}" if not i % 97 else "")
        for i in range(1_200)
    ]
    otlp = {
        "resourceLogs": [
            {
                "resource": {
                    "attributes": [
                        {"key": "service.name", "value": {"stringValue": name}},
                        {"key": "host.name", "value": {"stringValue": f"h-{name}"}},
                    ]
                },
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "timeUnixNano": str(1_796_000_000_000_000_000 + i * 10**9),
                                "severityText": "INFO",
                                "body": {"stringValue": f"handled {word()} in {draw.randrange(99)} ms"},
                                "attributes": [
                                    {"key": "http.route", "value": {"stringValue": f"/{draw.choice(services)}"}},
                                    {"key": "thread", "value": {"intValue": str(i % 9)}},
                                ],
                            }
                            for i in range(60)
                        ]
                    }
                ],
            }
            for name in services[:8]
        ]
    }
    chinese = [
        {"时间": i, "消息": f"请求 {i * 7919} 已完成，用户{draw.choice('甲乙丙丁')}，耗时 {draw.randrange(999)} 毫秒"}
        for i in range(2_000)
    ]
    constants = [
        {**{f"label_{k}": f"{'long ' * (k % 4 * 8)}value {k // 2}" for k in range(40)}, "n": i * i, "v": word()}
        for i in range(700)
    ]
    rows_of_one = {
        f"{word()}_{k}": {"name": word(), "size": k * 77, "text": f"{word()} " * (30 * (k % 5))} for k in range(40)
    }
    cells = [{"id": i, "blob": "".join(draw.choices("abcdef 123", k=9_000 if i % 3 else 30))} for i in range(12)]
    large = [{"id": 1, "note": "small", "blob": "".join(draw.choices("abcdef 123", k=60_000))}]
    deep = {
        "items": [
            {
                "meta": {"name": f"{word()}-{i}", "uid": f"{draw.randrange(16**16):016x}", "labels": {"app": word()}},
                "spec": {
                    "containers": [{"name": word(), "image": f"{word()}:{i}", "args": [word()] * 3} for _ in range(2)]
                },
                "status": {"phase": "Running" if i % 40 else "Failed", "message": "m" * (i % 300)},
            }
            for i in range(120)
        ]
    }
    many = {f"table {word()} {k}": [{"a": i, f"b{k}": word(), "c": word()} for i in range(30)] for k in range(60)}
    few = [
        {**{f"c{k}": f"{word()} {i * k % 7}" for k in range(40)}, "blob": "".join(draw.choices("abc 123", k=30_000))}
        for i in range(9)
    ]
    return {
        "long texts": json.dumps(long_texts),
        "wide": json.dumps(wide),
        "two tables": json.dumps({"spans": spans, "pods": pods}),
        "five tables": json.dumps(five),
        "logs": "\n".join(logs),
        "otlp": json.dumps(otlp),
        "chinese": json.dumps(chinese),
        "constants": json.dumps(constants),
        "tables of one row": json.dumps(rows_of_one),
        "long cells": json.dumps(cells),
        "a cell larger than the budget": json.dumps(large),
        "nested": json.dumps(deep),
        "many tables": json.dumps(many),
        "spans": json.dumps(spans),
        "few rows of many columns": json.dumps(few),
    }
