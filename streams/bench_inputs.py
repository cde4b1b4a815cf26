"""The inputs that `hyve bench views` makes itself: eight kinds of machine data, each with what it hides.

Seeded, so that a kind, a seed and a number of rows always give the same bytes. The entries to find, the entities and
the means are written down as the data is made, never read back from it.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any

from hyve.errors import InputError
from streams.bench_truth import QUESTION, Case, Needle, Truth, named, number, span_needle

SERVICES = ("gateway", "ledger", "inventory", "pricing", "notify", "profile")
_START = datetime(2026, 5, 11, 6, tzinfo=UTC)


def make(kind: str, seed: int = 1, rows: int = 5000) -> tuple[Case, ...]:
    """The cases of one kind: the same data, asked about once or twice. `rows` is roughly its number of entries."""
    if kind not in KINDS:
        raise InputError(f"there is no built-in input {kind!r}: the kinds are {', '.join(KINDS)}")
    if rows < 200:
        raise InputError(f"{rows} rows are too few to hide anything in: ask for 200 or more")
    return KINDS[kind](random.Random(f"{kind} {seed}"), rows)


def _clock(seconds: float) -> str:
    return (_START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _case(
    kind: str, value: Any, truth: Truth, questions: Sequence[tuple[str, str]] = (("", QUESTION),)
) -> tuple[Case, ...]:
    data = json.dumps(value).encode()
    return tuple(Case(kind + suffix, data, question, truth, value) for suffix, question in questions)


def _metrics(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """Flat rows of one gauge for each service, with one spike."""
    points = rows // len(SERVICES)
    table: list[dict[str, Any]] = [
        {
            "time": _clock(60 * i),
            "name": "queue_depth",
            "service": service,
            "zone": f"zone-{'abc'[i % 3]}",
            "value": round(20 + 4 * s + 6 * math.sin(i / 40) + draw.gauss(0, 1.5), 3),
        }
        for s, service in enumerate(SERVICES)
        for i in range(points)
    ]
    spike = table[draw.randrange(points // 4, len(table) - points // 4)]
    spike["value"] = (draw.randrange(180_000, 220_000) * 10 + 7) / 10_000  # four decimals: no other value has them
    means = {s: fmean(row["value"] for row in table if row["service"] == s) for s in SERVICES}
    truth = Truth((((number(spike["value"]), spike["service"]),),), {"services": SERVICES}, means)
    return _case("metrics", {"metric": "queue_depth", "step": 60, "points": table}, truth)


def _pods(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """A list of pods as `kubectl get -o json` prints it; four are not well."""
    namespaces = ("shop", "payments", "platform", "batch")
    reasons = ("CrashLoopBackOff", "OOMKilled", "ImagePullBackOff", "CreateContainerConfigError")
    sick = dict(zip(draw.sample(range(rows), len(reasons)), reasons, strict=True))
    items, needles = [], []
    for i in range(rows):
        service, reason = draw.choice(SERVICES), sick.get(i)
        name = f"{service}-{draw.getrandbits(32):08x}-{draw.getrandbits(20):05x}"
        state: dict[str, Any] = {"running": {"startedAt": _clock(draw.randrange(40_000))}}
        if reason == "OOMKilled":
            state = {"terminated": {"reason": reason, "exitCode": 137}}
        elif reason:
            state = {"waiting": {"reason": reason, "message": "see the events of this pod"}}
        if reason:
            needles.append(((name, reason),))
        items.append(
            {
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": draw.choice(namespaces),
                    "labels": {"app": service, "pod-template-hash": name.split("-")[1]},
                },
                "spec": {"nodeName": f"worker-{draw.randrange(40)}", "priority": draw.choice([0, 0, 100])},
                "status": {
                    "phase": "Running" if reason in (None, "OOMKilled") else "Pending",
                    "podIP": f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(1, 255)}",
                    "containerStatuses": [
                        {
                            "name": service,
                            "image": f"registry.example/{service}:{draw.randrange(3)}.{draw.randrange(20)}",
                            "ready": reason is None,
                            "restartCount": draw.randrange(20, 40) if reason else draw.choice([0, 0, 0, 1, 2]),
                            "state": state,
                        }
                    ],
                },
            }
        )
    value = {"apiVersion": "v1", "kind": "List", "items": items}
    return _case("pods", value, Truth(tuple(needles), {"services": SERVICES, "namespaces": namespaces}))


def _log_rows(draw: random.Random, rows: int) -> list[dict[str, Any]]:
    """Requests that went well."""
    paths = ("/v2/quotes", "/v2/stock", "/v2/accounts", "/healthz")
    return [
        {
            "time": _clock(3 * i + draw.random()),
            "severity": draw.choices(["info", "warning"], [98, 2])[0],
            "service": (service := draw.choice(SERVICES)),
            "instance": f"{service}-{draw.randrange(1, 5)}",
            "request_id": f"{draw.getrandbits(64):016x}",
            "latency_ms": round(draw.lognormvariate(2.5, 0.4), 2),
            "message": f"{draw.choice(['GET', 'PUT'])} {draw.choice(paths)}/{draw.randrange(10**5)} answered",
        }
        for i in range(rows)
    ]


def _log_truth(table: Sequence[dict[str, Any]], needles: Sequence[Needle]) -> Truth:
    means = {s: fmean(row["latency_ms"] for row in table if row["service"] == s) for s in SERVICES}
    return Truth(tuple(needles), {"services": SERVICES}, means)


def _logs(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """Requests of which four failed."""
    table = _log_rows(draw, rows)
    needles = []
    for i in sorted(draw.sample(range(rows), 4)):
        ticket = f"PX{draw.randrange(10**6, 10**7)}"
        table[i] |= {"severity": "error", "latency_ms": 9000.5, "message": f"bank refused the payment, ticket={ticket}"}
        needles.append(((ticket,),))
    return _case("logs", table, _log_truth(table, needles))


def _quiet(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """Requests, and three lines that sound harmless but are unlike all others."""
    table = _log_rows(draw, rows)
    needles = []
    for i in sorted(draw.sample(range(rows), 3)):
        change = f"CH{draw.randrange(10**6, 10**7)}"
        table[i] |= {"severity": "info", "message": f"cache policy set to write-through by olga, change {change}"}
        needles.append(((change,),))
    return _case("quiet", table, _log_truth(table, needles))


def _errors(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """Three in ten requests failed alike; one failed otherwise."""
    table = _log_rows(draw, rows)
    failed = sorted(draw.sample(range(rows), rows * 3 // 10))
    for n, i in enumerate(failed):
        table[i] |= {"severity": "error", "message": f"no answer from ledger-db within 800 ms, attempt={n + 1}"}
    serial = f"SN{draw.randrange(10**6, 10**7)}"
    table[failed[len(failed) // 2]]["message"] = f"certificate of pricing.internal is past its end, serial={serial}"
    return _case("errors", table, _log_truth(table, [((serial,),)]))


def _spans(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """OTLP spans of nine resources; three spans failed."""
    resources, each = 9, rows // 9
    start = int(_START.timestamp() * 1_000_000_000)
    bad = set(draw.sample(range(resources * each), 3))
    sent, names, needles = [], [], []

    def text(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    for r in range(resources):
        service = SERVICES[r % len(SERVICES)]
        names.append(f"{service}-pod-{r}")
        spans = []
        for i in range(each):
            number_of = r * each + i
            began = start + 2_000_000 * number_of
            failed = number_of in bad
            took = int(draw.lognormvariate(2, 0.5) * 1_000_000) + (4_000_000_000 if failed else 0)
            code = 503 if failed else 200
            span: dict[str, Any] = {
                "traceId": f"{draw.getrandbits(128):032x}",
                "spanId": f"{draw.getrandbits(64):016x}",
                "name": draw.choice(["POST /quote", "UPDATE stock", "kafka send"]),
                "kind": draw.randrange(1, 4),
                "startTimeUnixNano": str(began),
                "endTimeUnixNano": str(began + took),
                "attributes": [{"key": "http.response.status_code", "value": {"intValue": str(code)}}],
                "status": {"code": 2, "message": "no healthy upstream"} if failed else {"code": 1},
            }
            if failed:
                needles.append(span_needle(span, ("503", "no healthy upstream")))
            spans.append(span)
        attributes = [text("service.name", service), text("k8s.pod.name", names[-1])]
        sent.append(
            {"resource": {"attributes": attributes}, "scopeSpans": [{"scope": {"name": "agent"}, "spans": spans}]}
        )
    return _case(
        "spans", {"resourceSpans": sent}, Truth(tuple(needles), {"services": SERVICES, "resources": tuple(names)})
    )


def _series(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """A range query's answer of thirty series, one with a spike; asked twice, once naming that series."""
    count, points = 30, max(6, rows // 30)
    start = int(_START.timestamp())
    names = tuple(f"node-{i:02d}.example:9400" for i in range(count))
    values = [
        [round(50 + 2 * s + 8 * math.sin(i / 30) + draw.gauss(0, 2), 4) for i in range(points)] for s in range(count)
    ]
    s, i = draw.randrange(count), draw.randrange(points // 3, points)
    values[s][i] = (draw.randrange(7_000_000, 9_000_000) * 10 + 7) / 100_000  # five decimals: no other value has them
    result = [
        {
            "metric": {"__name__": "disk_busy_ratio", "instance": name, "job": "storage"},
            "values": [[start + 30 * at, f"{value:.5f}"] for at, value in enumerate(values[n])],
        }
        for n, name in enumerate(names)
    ]
    truth = Truth(
        (((f"{values[s][i]:.5f}", names[s]),),),
        {"series": names},
        {name: fmean(values[n]) for n, name in enumerate(names)},
    )
    value = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return _case("series", value, truth, (("", QUESTION), (" (named)", named(names[s]))))


def _mixed(draw: random.Random, rows: int) -> tuple[Case, ...]:
    """An engineer's note with configuration, alerts, a CSV table, a printed Python list and a log that was cut."""
    count = rows // 25
    config = {
        "release": {"service": "pricing", "env": {f"OPTION_{i}": f"{draw.getrandbits(48):x}" for i in range(count)}}
    }
    page, lost = draw.randrange(count), draw.randrange(count)
    alerts = [
        {
            "id": 100 + i,
            "rule": draw.choice(["QueueGrows", "DiskFills"]),
            "severity": "critical" if i == page else "minor",
        }
        for i in range(count)
    ]
    hosts = [{"host": f"rack-{i}", "up": i != lost, "load": round(draw.random(), 3)} for i in range(count)]
    table = "\n".join(
        ["order,service,cents", *(f"{i},{draw.choice(SERVICES)},{draw.randrange(90, 9000)}" for i in range(count))]
    )
    logs = _log_rows(draw, count)
    logs[count // 2]["message"] = "write refused, volume is read-only, case=VR8812734"
    log = json.dumps(logs)
    text = "\n\n".join(
        [
            "Hello, this is about case 7731. The release that is out:",
            f"```json\n{json.dumps(config, indent=2)}\n```",
            "What the alert manager had:",
            json.dumps(alerts),
            "Orders of that minute:",
            table,
            "Our inventory script printed:",
            repr(hosts),
            "And the log, as far as my terminal went:",
            log[: len(log) * 4 // 5],
            "Which host is down, which alert was critical, and what does the log hide?\n",
        ]
    )
    needles: list[Needle] = [((f"rack-{lost}", "false"),), ((str(100 + page), "critical"),), (("VR8812734",),)]
    return (Case("mixed", text.encode(), "", Truth(tuple(needles))),)


KINDS: dict[str, Callable[[random.Random, int], tuple[Case, ...]]] = {
    "metrics": _metrics,
    "pods": _pods,
    "logs": _logs,
    "quiet": _quiet,
    "errors": _errors,
    "spans": _spans,
    "series": _series,
    "mixed": _mixed,
}
