"""Generated payloads of any size for the benchmarks: the same text for the same size, well formed, nobody's data."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

_STRING = re.compile(r'"[^"]*"')
_BARE_KEY = re.compile(r'"(\w+)":')
_SERVICES = ("checkout", "cart", "payments", "search", "auth", "catalog", "shipping", "email")


def records(number: int) -> str:
    """A list of `number` samples of metrics, six fields and about 140 characters each."""
    return "[" + ", ".join(islice(_endless(_sample), number)) + "]"


def log_records(number: int) -> str:
    """A list of `number` log records of six fields, about 128 characters each."""
    return "[" + ", ".join(islice(_endless(_record), number)) + "]"


def flat(size: int) -> str:
    """A list of such records as in `records`."""
    return _listed(_sample, size)


def logs(size: int) -> str:
    """A list of such records as in `log_records`."""
    return _listed(_record, size)


def lines(size: int) -> str:
    """The records of `logs`, one a line (NDJSON)."""
    return "\n".join(_sized(_record, size)) + "\n"


def pods(size: int) -> str:
    """A list of Kubernetes pods with their labels, containers and statuses."""
    return _listed(_pod, size)


def otlp(size: int) -> str:
    """An OTLP export: many resources of one scope of 100 spans each, attributes included."""
    return '{"resourceSpans": ' + _listed(_resource_spans, size) + "}"


def one_resource(size: int) -> str:
    """An OTLP export of one resource and one scope."""
    spans = _listed(_span, size)
    return (
        '{"resourceSpans": [{"resource": {"attributes": ['
        + json.dumps(_attribute("service.name", "cart"))
        + ']}, "scopeSpans": [{"scope": {"name": "auto"}, "spans": '
        + spans
        + "}]}]}"
    )


def changing(size: int) -> str:
    """A list of which one item in a hundred is no record, and whose fields are now numbers, now texts, lists, objects,
    or not there."""
    return _listed(_changing, size)


def matrix(size: int) -> str:
    """A Prometheus range query's answer: series of 500 samples, [number, text] each."""
    return '{"status": "success", "data": {"resultType": "matrix", "result": ' + _listed(_series, size) + "}}"


def python(size: int) -> str:
    """The records of `logs` as Python prints them, one a line."""
    return "\n".join(repr(json.loads(record)) for record in _sized(_record, size)) + "\n"


def near(size: int) -> str:
    """The records of `logs` with bare keys, one a line."""
    return "\n".join(_BARE_KEY.sub(r"\1:", record) for record in _sized(_record, size)) + "\n"


def commas(size: int) -> str:
    """The records of `logs`, one a line, each with the comma that was behind it in a list."""
    return ",\n".join(_sized(_record, size)) + ",\n"


def pairs(size: int) -> str:
    """The records of `logs`, two a line."""
    records = _sized(_record, size)
    return "".join(f"{first} {next(records, '{}')}\n" for first in records)


def behind_heads(size: int) -> str:
    """The records of `logs`, each behind the head of a log line."""
    source = random.Random(18)
    heads = (f"{_time(number)} INFO [{source.choice(_SERVICES)}] got " for number in count())
    return "".join(f"{head}{record}\n" for head, record in zip(heads, _sized(_record, size), strict=False))


def coloured(size: int) -> str:
    """The records of `logs` in the colours of a terminal: behind a log line's head and as jq prints them, in turns."""
    lines = (
        _STRING.sub("\x1b[0;32m\\g<0>\x1b[0m", record)
        if number % 2
        else f"\x1b[2m{_time(number)}\x1b[0m \x1b[32mINFO\x1b[0m got {record}"
        for number, record in enumerate(_sized(_record, size * 3 // 4))
    )
    return "\n".join(lines) + "\n"


def tiny_python(size: int) -> str:
    """Python objects of some twenty characters, one a line."""
    return "\n".join(_sized(lambda source, number: f"{{'a': {source.randrange(9)}, 'b': None}}", size)) + "\n"


def tiny_near(size: int) -> str:
    """Objects of some seven characters with bare keys, one a line."""
    return "\n".join(_sized(lambda source, number: f"{{a: {source.randrange(99)}}}", size)) + "\n"


def tiny_pairs(size: int) -> str:
    """Objects of some seven characters, two a line."""
    return "\n".join(_sized(lambda source, number: f'{{"a":{source.randrange(99)}}} {{"b":{number}}}', size)) + "\n"


def numbers(size: int) -> str:
    """A number a line."""
    return "\n".join(_sized(lambda source, number: str(source.randrange(10**6)), size)) + "\n"


def rows(size: int) -> str:
    """A list of three values a line."""
    return "\n".join(_sized(lambda source, number: [number, source.random(), source.choice(_SERVICES)], size)) + "\n"


def log(size: int) -> str:
    """Lines of a log in free text."""
    return "\n".join(_sized(_log_line, size)) + "\n"


def logfmt(size: int) -> str:
    """Lines of key=value pairs."""
    return "\n".join(_sized(_logfmt_line, size)) + "\n"


def access_log(size: int) -> str:
    """Lines of a web server's log of requests."""
    return "\n".join(_sized(_request_line, size)) + "\n"


def exposition(size: int) -> str:
    """Samples of metrics as Prometheus reads them from services."""
    return "# TYPE http_request_seconds histogram\n" + "\n".join(_sized(_bucket_line, size)) + "\n"


def short_lines(size: int) -> str:
    """Lines of free text of some six characters."""
    return "\n".join(_sized(lambda source, number: f"ok {source.randrange(1000)}", size)) + "\n"


def tiny_documents(size: int) -> str:
    """JSON documents of nine characters, one behind the other."""
    return "".join(_sized(lambda source, number: f'{{"a":"{source.randrange(10)}"}}', size))


def csv(size: int) -> str:
    """A CSV table of six columns, one of them quoted."""
    return "ts,level,service,status,duration_ms,msg\n" + "\n".join(_sized(_csv_row, size)) + "\n"


def mixed(size: int) -> str:
    """Prose, a JSON document in a code fence, free log lines, and a JSON document at the end."""
    half = size // 2
    return (
        "This is what was gathered about the incident.\n\n```json\n"
        + json.dumps(json.loads(flat(half // 2)), indent=2)
        + "\n```\n\nThe log of the gateway:\n\n"
        + log(half)
        + "\nAnd its pods:\n"
        + pods(half // 2)
    )


def _endless(make: Callable[[random.Random, int], Any]) -> Iterator[str]:
    source = random.Random(17)
    for number in count():
        item = make(source, number)
        yield item if isinstance(item, str) else json.dumps(item)


def _sized(make: Callable[[random.Random, int], Any], size: int) -> Iterator[str]:
    written = 0
    for text in _endless(make):
        yield text
        written += len(text) + 2
        if written >= size:
            return


def _listed(make: Callable[[random.Random, int], Any], size: int) -> str:
    return "[" + ", ".join(_sized(make, size)) + "]"


def _time(number: int) -> str:
    return (
        f"2026-03-{1 + number // 86_400 % 28:02d}T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
    )


def _sample(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "timestamp": _time(number),
        "metric": "cpu_percent",
        "service": source.choice(_SERVICES),
        "host": f"node-{source.randrange(40)}",
        "value": round(source.random() * 100, 4),
        "unit": "percent",
    }


def _record(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "ts": _time(number),
        "level": source.choice(("INFO", "INFO", "WARN", "ERROR")),
        "service": source.choice(_SERVICES),
        "status": source.choice((200, 200, 404, 500)),
        "ms": round(source.random() * 900, 2),
        "msg": f"POST /items/{source.randrange(10**6)}",
    }


def _changing(source: random.Random, number: int) -> Any:
    if number % 100 == 0:
        return [number, "row"]
    record: dict[str, Any] = {
        "ts": _time(number),
        "id": number,
        "took": source.choice((number % 97, round(source.random() * 90, 3), str(number % 50), None)),
        "labels": {f"l{source.randrange(9)}": f"v{number % 5}"} if number % 11 else "none",
        "path": [["a", number], ["b", [number % 3, None]]],
    }
    if number % 50 == 3:
        record["took"] = [1, "x"]
    elif number % 50 == 4:
        record["took"] = {"ms": 4}
    elif number % 4 == 0:
        del record["took"]
    if number % 9 == 0:
        record["events"] = [{"n": k, "at": number + k, "attrs": {"x": [{"deep": k}]}} for k in range(number % 4)]
    return record


def _pod(source: random.Random, number: int) -> dict[str, Any]:
    app = source.choice(_SERVICES)
    return {
        "metadata": {
            "name": f"{app}-{source.randrange(16**9):09x}",
            "namespace": source.choice(("prod", "staging")),
            "uid": f"{source.randrange(16**32):032x}",
            "labels": {"app": app, "tier": source.choice(("fe", "be")), "team": f"t{source.randrange(9)}"},
        },
        "spec": {
            "nodeName": f"node-{source.randrange(99)}",
            "containers": [
                {"name": app, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}}}
            ],
        },
        "status": {
            "phase": source.choice(("Running", "Running", "Pending")),
            "podIP": f"10.{source.randrange(256)}.{source.randrange(256)}.{source.randrange(256)}",
            "containerStatuses": [
                {
                    "name": app,
                    "ready": True,
                    "restartCount": source.randrange(5),
                    "image": f"registry.local/{app}:v1.{source.randrange(9)}",
                    "state": {"running": {"startedAt": _time(number)}},
                }
            ],
        },
    }


def _resource_spans(source: random.Random, number: int) -> dict[str, Any]:
    service = source.choice(_SERVICES)
    return {
        "resource": {
            "attributes": [_attribute("service.name", service), _attribute("host.name", f"node-{number % 99}")]
        },
        "scopeSpans": [
            {"scope": {"name": "auto", "version": "1.2.0"}, "spans": [_span(source, i) for i in range(100)]}
        ],
    }


def _span(source: random.Random, number: int) -> dict[str, Any]:
    start = 1_772_323_200_000_000_000 + number * 3_000_000
    return {
        "traceId": f"{source.randrange(16**32):032x}",
        "spanId": f"{source.randrange(16**16):016x}",
        "parentSpanId": f"{source.randrange(16**16):016x}" if number else "",
        "name": source.choice(("GET /cart", "publish event", "SELECT items")),
        "kind": 1 + number % 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + source.randrange(10**8)),
        "attributes": [
            _attribute("http.method", "GET"),
            {"key": "http.status_code", "value": {"intValue": source.choice(("200", "200", "500"))}},
            _attribute("net.peer.name", f"db-{source.randrange(4)}"),
        ],
        "status": {"code": 1},
    }


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def _series(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "metric": {"__name__": "http_requests_rate", "instance": f"10.0.0.{number % 250}:9100", "code": "200"},
        "values": [[1_772_323_200 + 60 * i, f"{source.random() * 100:.6f}"] for i in range(500)],
    }


def _log_line(source: random.Random, number: int) -> str:
    return (
        f"{_time(number)} {source.choice(('INFO', 'INFO', 'WARN', 'ERROR'))} [{source.choice(_SERVICES)}] request "
        f"{source.randrange(16**8):08x} took {source.randrange(900)} ms, {source.randrange(10**6)} bytes sent"
    )


def _logfmt_line(source: random.Random, number: int) -> str:
    return (
        f"ts={_time(number)} level={source.choice(('info', 'info', 'warn', 'error'))} caller=main.go:{number % 50} "
        f'msg="handled request" dur={source.randrange(900)}ms user=u{source.randrange(1000)} path=/orders/{number}'
    )


def _request_line(source: random.Random, number: int) -> str:
    return (
        f"10.0.{source.randrange(250)}.{source.randrange(99)} - - "
        f"[31/Jan/2026:12:{number // 60 % 60:02d}:{number % 60:02d} +0000] "
        f'"GET /orders/{number} HTTP/1.1" {source.choice((200, 200, 404, 502))} {source.randrange(10**5)} "-" '
        '"Mozilla/5.0 (X11; Linux x86_64)"'
    )


def _bucket_line(source: random.Random, number: int) -> str:
    return (
        f'http_request_seconds_bucket{{method="GET",uri="/api/v{number % 7}/orders",status="200",'
        f'instance="10.0.0.{number % 200}:8080",le="{number % 11 / 10}"}} {source.randrange(10**7)}'
    )


def _csv_row(source: random.Random, number: int) -> str:
    record = _record(source, number)
    return ",".join(
        [*(str(record[key]) for key in ("ts", "level", "service", "status", "ms")), f'"{record["msg"]}, ok"']
    )
