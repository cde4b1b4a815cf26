"""Seeded incidents for the demo and the tests: 30 minutes of eight services as OTLP JSON, one fault or none.

Rules:
- Pure: the same scenario, seed and end give the same incident, with the standard library alone.
- Symptoms are simulated, not painted: each request walks the call graph (`streams.topology`), and waits,
  times out and fails because of what lies below it. A fault (`streams.faults`) touches one service only.
- Every incident has red herrings: a service that always logs errors that mean nothing, a burst of warnings, a
  healthy deployment of another service near the onset, harmless configuration reloads, memory that climbs and
  falls, and in half of them a short hiccup of another service before the fault.
- The alert fires on what a user sees, at a service above the fault, some minutes after the onset.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streams.exports import attributes, request, span_attributes, webhook
from streams.faults import BadConfig, Blip, Failure, Fault, Line, MemoryLeak, PoolExhaustion, SlowDatabase
from streams.topology import Service, Topology

SCENARIOS = ("pool-exhaustion", "memory-leak", "bad-config", "slow-database", "healthy")
WINDOW = 1800.0
_NS = 1_000_000_000
_SCRAPE, _EXPORT = 30.0, 30.0
_SPANS = 12_000

_CHATTER = (
    "cache refresh finished in {n} ms",
    "scheduled job metrics-flush ran in {n} ms",
    "lease renewed for {n} s",
    "compacted {n} segments",
    "connection keepalive ok, {n} peers",
)
_NOISE = (
    ("ERROR", "failed to parse optional header X-Client-Hint: unexpected token at position {n}"),
    ("WARN", "deprecated endpoint /v1/legacy called by client {n}"),
    ("ERROR", "could not resolve avatar for user {n}: 404, using default"),
    ("WARN", "retrying telemetry upload, attempt {n}"),
)
_BURSTS = (
    "certificate for *.internal expires in {n} days",
    "consumer lag above 500 on partition {n}",
    "slow clock source: drift {n} ms",
    "disk usage at 71% on volume data-{n}",
)


@dataclass(frozen=True)
class Incident:
    """`payloads` are OTLP JSON export requests in time order; `onset` and `end` are epoch nanoseconds."""

    scenario: str
    seed: int
    services: tuple[str, ...]
    payloads: list[dict[str, Any]]
    alert: dict[str, Any]
    faulty_service: str | None
    onset: int
    end: int
    truth: str


def generate(scenario: str, seed: int, end: datetime | int) -> Incident:
    """The incident of a scenario (one of `SCENARIOS`) and a seed whose window ends at `end` (a datetime, UTC
    where it has no zone, or epoch nanoseconds). ValueError for a scenario that isn't there."""
    if scenario not in SCENARIOS:
        raise ValueError(f"no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    if isinstance(end, datetime):
        moment = end if end.tzinfo else end.replace(tzinfo=UTC)
        end = int(moment.timestamp()) * _NS
    return _Run(scenario, seed, end).incident()


class _Run:
    """One generation: the topology, the fault, and the records written so far."""

    def __init__(self, scenario: str, seed: int, end: int) -> None:
        self.rng = rng = random.Random(f"{scenario}/{seed}")
        self.scenario, self.seed, self.end = scenario, seed, end
        self.start = end - int(WINDOW) * _NS
        self.topology = Topology(rng)
        self.services, self.edge, self.db = self.topology.services, self.topology.edge, self.topology.db
        self.fault = self._fault()
        # (signal, interval, service) -> (pod, generation) -> records
        self.batches: dict[tuple[int, str, str], dict[tuple[int, int], list[Any]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.seen: dict[str, dict[int, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
        self.spans = 0
        self.lost = rng.uniform(0, 0.012)  # share of spans that the collector drops
        self.scale = rng.uniform(18, 40)

    def _fault(self) -> Fault:
        rng = self.rng
        onset = rng.uniform(690, 1230)
        names = [name for name in self.services if name != self.edge]
        reached = [name for name in names if self.topology.reach(name) >= 0.25] or names
        stored = [name for name in reached if self.services[name].store]
        if self.scenario == "slow-database":
            users = [name for name in reached if self.services[name].store == self.db]
            if not users:  # no reached service uses the database: let the one that is reached most use it
                self.topology.use(max(reached, key=self.topology.reach), self.db, queries=2)
            fault: Fault = SlowDatabase(rng, self.db, onset)
        elif self.scenario == "pool-exhaustion":
            name = rng.choice(stored or reached)
            self.topology.use(name, self.services[name].store or f"{name}-pg")
            fault = PoolExhaustion(rng, name, onset, self.services[name].pool)
            self.services[name].deploy = onset - rng.uniform(15, 60)
        elif self.scenario == "memory-leak":
            fault = MemoryLeak(rng, rng.choice(reached), onset)
        elif self.scenario == "bad-config":
            name = rng.choice(reached)
            calls = any(op.calls for op in self.services[name].ops)
            fault = BadConfig(rng, name, onset, self.services[name].store, calls)
        else:
            fault = Blip(rng, rng.choice(reached), rng.uniform(900, 1400))
        # red herrings: who they strike is never the faulty service
        others = [name for name in self.services if name != fault.service]
        self.noisy, self.bursty, self.deployed = (rng.choice(others) for _ in range(3))
        if self.services[self.deployed].deploy is None:
            self.services[self.deployed].deploy = fault.onset - rng.uniform(20, 260)
        self.noise_line = rng.choice(_NOISE)
        self.burst_line, self.burst_at = rng.choice(_BURSTS), fault.onset + rng.uniform(-400, 200)
        self.reloads = [(rng.choice(others), rng.uniform(60, 1700)) for _ in range(3)]
        self.climbers = rng.sample(others, 2)
        self.slower = rng.uniform(1.0, 1.35)  # the healthy deployment costs a little
        hiccup = fault.service is not None and rng.random() < 0.5  # another service's blip before the fault
        self.hiccup = Blip(rng, rng.choice(others), fault.onset - rng.uniform(60, 500)) if hiccup else Fault()
        return fault

    def _request(self, at: float, op: int) -> None:
        trace = f"{self.rng.getrandbits(128) | 1:032x}"
        self._serve(self.edge, op, at, trace, "")

    def _serve(self, name: str, index: int, at: float, trace: str, parent: str) -> tuple[float, str]:
        """Runs one operation; returns when it ended (seconds) and why it failed ("" where it didn't)."""
        rng, service, fault = self.rng, self.services[name], self.fault
        op = service.ops[index]
        pod = int(rng.random() < 0.5)
        if fault.down(name, pod, at):
            if rng.random() < 0.55:
                return at + rng.uniform(0.001, 0.004), f"connect {service.pods[pod][0]}: connection refused"
            pod = 1 - pod
            if fault.down(name, pod, at):
                return at + rng.uniform(0.001, 0.004), f"no healthy upstream for {name}"
        span = f"{rng.getrandbits(64) | 1:016x}"
        warm = 1.6 if service.deploy is not None and 0 < at - service.deploy - 15 * pod < 25 else 1.0
        if name == self.deployed and service.generation(pod, at):
            warm *= self.slower
        tail = 5.0 if rng.random() < 0.008 else 1.0
        self_ms = service.base_ms * rng.lognormvariate(0, 0.3) * tail * warm
        clock = at + self_ms * 0.4 / 1000
        failure = fault.failure(name, pod, clock) or self.hiccup.failure(name, pod, clock)
        error = ""
        if failure is None and rng.random() < 0.0015:
            failure = Failure("unexpected end of stream", self_ms)
        clock += (fault.wait_ms(name, pod, clock) + self.hiccup.wait_ms(name, pod, clock)) / 1000
        if failure is not None:
            clock += failure.after_ms / 1000
            error = failure.message
            self._log(name, pod, clock, "ERROR", f"{op.name} failed: {error}", trace, span)
        for _ in range(0 if error else op.queries):
            clock, error = self._query(service, pod, clock, trace, span)
            if error:
                self._log(name, pod, clock, "ERROR", f"query failed: {error}", trace, span)
                break
        for callee, which in () if error else op.calls:
            clock, error = self._call(service, pod, callee, which, clock, trace, span)
            if error:
                break
        end = clock + self_ms * 0.6 / 1000
        self._span(name, pod, op.name, 2, at, end, trace, span, parent, error, ("server", op.name))
        self.seen[name][int(end // _SCRAPE)].append(((end - at) * 1000, bool(error)))
        if rng.random() < 0.22:
            took = (end - at) * 1000
            status = 500 if error else 200
            self._log(name, pod, end, "INFO", f"{op.name} {status} {took:.0f}ms", trace, span)
        return end, error

    def _call(
        self, service: Service, pod: int, callee: str, which: int, at: float, trace: str, parent: str
    ) -> tuple[float, str]:
        rng = self.rng
        clock, error = at, ""
        for _ in range(2 if service.retries else 1):
            span = f"{rng.getrandbits(64) | 1:016x}"
            begun = clock
            limit = self.fault.call_timeout_ms(service.name, service.timeout_ms, clock) / 1000
            end, error = self._serve(callee, which, clock + rng.uniform(0.0002, 0.001), trace, span)
            end += rng.uniform(0.0002, 0.001)
            if end - begun > limit:
                end, error = begun + limit, f"deadline exceeded after {limit * 1000:.0f}ms calling {callee}"
            elif error and not error.startswith(("connect ", "no healthy")):
                error = f"{callee} answered 500"
            title = self.services[callee].ops[which].name
            self._span(service.name, pod, title, 3, begun, end, trace, span, parent, error, ("client", callee))
            clock = end
            if not error:
                return clock, ""
            self._log(service.name, pod, clock, "WARN", f"call to {callee} failed: {error}", trace, parent)
        return clock, error

    def _query(self, service: Service, pod: int, at: float, trace: str, parent: str) -> tuple[float, str]:
        rng = self.rng
        store, failure = self.fault.store_of(service.name, service.store, at)
        factor, broken = self.fault.query(store, at)
        failure = failure or broken
        took = service.store_ms * rng.lognormvariate(0, 0.35) * factor if failure is None else failure.after_ms
        if factor > 3:  # slow queries hold connections, so others wait for one before they may ask
            at += rng.expovariate(1) * 0.1 * factor * service.store_ms / 1000
        end = at + took / 1000
        error = failure.message if failure else ""
        span = f"{rng.getrandbits(64) | 1:016x}"
        verb = "GET" if store.endswith(("redis", "cache")) else "SELECT"
        self._span(service.name, pod, verb, 3, at, end, trace, span, parent, error, ("store", store))
        return end, error

    def _put(self, signal: str, name: str, pod: int, at: float, record: dict[str, Any]) -> None:
        if 0 <= at < WINDOW:
            service = self.services.get(name)
            generation = service.generation(pod, at) if service else 0
            self.batches[int(at // _EXPORT), name, signal][pod, generation].append(record)

    def _span(
        self,
        name: str,
        pod: int,
        title: str,
        kind: int,
        begin: float,
        end: float,
        trace: str,
        span: str,
        parent: str,
        error: str,
        what: tuple[str, str],
    ) -> None:
        record = {
            "traceId": trace,
            "spanId": span,
            "parentSpanId": parent,
            "name": title,
            "kind": kind,
            "startTimeUnixNano": self._time(begin),
            "endTimeUnixNano": self._time(end),
            "attributes": span_attributes(*what, bool(error)),
            "status": {"code": 2, "message": error} if error else {},
        }
        if self.rng.random() >= self.lost:
            self._put("S", name, pod, end, record)
            self.spans += 1

    def _log(
        self, name: str, pod: int, at: float, severity: str, body: str, trace: str = "", span: str = "",
        extra: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        record: dict[str, Any] = {
            "timeUnixNano": self._time(at),
            "severityNumber": {"INFO": 9, "WARN": 13, "ERROR": 17}[severity],
            "severityText": severity,
            "body": {"stringValue": body},
        }
        if trace:
            record["traceId"], record["spanId"] = trace, span
        if extra:
            record["attributes"] = attributes(extra)
        self._put("L", name, pod, at, record)

    def _time(self, at: float) -> str:
        return str(self.start + int(at * 1e9))

    def _requests(self) -> None:
        """Requests at random moments until there are enough spans; traffic drifts a little."""
        rng, ops = self.rng, len(self.services[self.edge].ops)
        drift = rng.uniform(-0.15, 0.15)
        while self.spans < _SPANS:
            at = rng.uniform(0, WINDOW)
            if rng.random() < 1 - abs(drift) * (at / WINDOW if drift < 0 else 1 - at / WINDOW):
                self._request(at, rng.randrange(ops))

    def _logs(self) -> None:
        rng = self.rng
        for name in [*self.services, self.db]:
            for at in _poisson(rng, 0, WINDOW, 9.0):
                self._log(
                    name,
                    int(rng.random() < 0.5),
                    at,
                    "INFO",
                    rng.choice(_CHATTER).format(n=rng.randint(2, 90)),
                )
            for line in self.fault.lines(name):
                self._line(name, line)
        severity, text = self.noise_line
        for at in _poisson(rng, 0, WINDOW, 2.6):
            self._log(self.noisy, int(rng.random() < 0.5), at, severity, text.format(n=rng.randint(1, 9999)))
        for at in _poisson(rng, self.burst_at, self.burst_at + rng.uniform(30, 80), 0.7):
            self._log(self.bursty, 0, at, "WARN", self.burst_line.format(n=rng.randint(1, 30)))
        for name, at in self.reloads:
            self._log(name, 0, at, "INFO", f"configuration reloaded: revision {rng.randint(100, 900)}, no changes")
        for name, service in self.services.items():
            if service.deploy is None:
                continue
            for pod in (0, 1):
                at = service.deploy + 15 * pod
                self._log(name, pod, at - 2, "INFO", "received SIGTERM, draining connections")
                self._log(
                    name,
                    pod,
                    at + 0.5,
                    "INFO",
                    f"starting {name} {service.versions[1]}, commit {rng.getrandbits(28):07x}",
                )
                self._log(name, pod, at + 4, "INFO", f"listening on :8080 after {rng.uniform(2, 4):.1f}s")

    def _line(self, name: str, line: Line) -> None:
        pod = int(line.attributes.get("pod", "0"))
        body, service = line.body, self.services.get(name)
        if service is not None:
            generation = service.generation(pod, line.at)
            body = body.replace("{pod}", service.pods[pod][generation])
            body = body.replace("{version}", service.versions[generation])
        body = body.replace("{word}", self.rng.choice(["refund", "gift", "bulk", "retry", "promo"]))
        extra = {key: value for key, value in line.attributes.items() if key != "pod"}
        self._log(name, pod, line.at, line.severity, body, extra=extra)

    def _metrics(self) -> None:
        rng = self.rng
        limit = 512 * 1024 * 1024
        walks: dict[tuple[str, int], float] = defaultdict(float)
        totals: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
        phases = {name: rng.uniform(300, 900) for name in self.climbers}
        for step in range(int(WINDOW / _SCRAPE)):
            at = (step + 1) * _SCRAPE - rng.uniform(1, 4)
            for name, service in self.services.items():
                done = self.seen[name].get(step, [])
                busy = sum(ms for ms, _ in done) / 1000 / _SCRAPE * self.scale
                for pod in (0, 1):
                    walk = walks[name, pod] = walks[name, pod] * 0.8 + rng.gauss(0, 0.012)
                    memory = service.memory + walk
                    if name in self.climbers:
                        memory += 0.3 * ((at + 200 * pod) % phases[name]) / phases[name]
                    cpu = max(0.02, service.cpu + len(done) * 0.002 + walk * 2 + rng.gauss(0, 0.015))
                    active = round(max(0.0, rng.gauss(busy / 2, 0.6)))
                    gauges: list[tuple[str, str, float]] = [
                        ("process.cpu.utilization", "1", min(cpu, 1.0)),
                        ("process.memory.usage", "By", memory),
                        ("http.server.active_requests", "{request}", active),
                    ]
                    if service.store:
                        used = round(min(service.pool, max(0.0, rng.gauss(service.pool * 0.25 + busy * 0.08, 1.0))))
                        gauges.append(("db.client.connection.count", "{connection}", used))
                        gauges.append(("db.client.connection.max", "{connection}", service.pool))
                    for metric, unit, value in gauges:
                        shown = self.fault.gauge(name, pod, metric, value, at)
                        if metric == "process.memory.usage":
                            shown *= limit
                        self._gauge(name, pod, at, metric, unit, shown)
                    self._gauge(name, pod, at, "k8s.container.memory_limit", "By", limit)
                    restarts = self.fault.restarts(name, pod, at)
                    self._gauge(name, pod, at, "k8s.container.restarts", "{restart}", restarts)
                    total = totals[name, pod]
                    total[0] += len(done) * self.scale / 2
                    total[1] += sum(ms for ms, _ in done) * self.scale / 2000
                    self._histogram(name, pod, at, total, [ms for ms, _ in done])
            load = sum(len(self.seen[n].get(step, [])) for n, s in self.services.items() if s.store == self.db)
            walk = walks[self.db, 0] = walks[self.db, 0] * 0.8 + rng.gauss(0, 0.015)
            for metric, unit, value in (
                ("system.cpu.utilization", "1", min(0.6, 0.12 + load * 0.003) + walk),
                ("db.server.connection.count", "{connection}", round(30 + load * 0.3 + rng.gauss(0, 2))),
                ("db.server.lock.waiting", "{lock}", float(rng.random() < 0.2)),
                ("db.server.cache.hit_ratio", "1", min(1.0, 0.97 + rng.gauss(0, 0.006))),
                ("system.memory.utilization", "1", 0.7 + rng.gauss(0, 0.004)),
            ):
                self._gauge(self.db, 0, at, metric, unit, self.fault.gauge(self.db, 0, metric, value, at))

    def _gauge(self, name: str, pod: int, at: float, metric: str, unit: str, value: float) -> None:
        point: dict[str, Any] = {"timeUnixNano": self._time(at)}
        if isinstance(value, int):
            point["asInt"] = str(value)
        else:
            point["asDouble"] = round(value, 4)
        self._put("M", name, pod, at, {"name": metric, "unit": unit, "gauge": {"dataPoints": [point]}})

    def _histogram(self, name: str, pod: int, at: float, total: list[float], took: list[float]) -> None:
        point = {
            "timeUnixNano": self._time(at),
            "count": str(int(total[0])),
            "sum": round(total[1], 4),
            "max": round(max(took, default=0.0) / 1000, 4),
        }
        data = {"aggregationTemporality": 2, "dataPoints": [point]}
        self._put("M", name, pod, at, {"name": "http.server.request.duration", "unit": "s", "histogram": data})

    def _resource(self, name: str, pod: int, generation: int) -> dict[str, Any]:
        service = self.services.get(name)
        if service is None:
            pod_name, version = f"{name}-0", "16.4"
            return {"service.name": name, "service.version": version, "k8s.pod.name": pod_name}
        return {
            "service.name": name,
            "service.version": service.versions[generation],
            "service.namespace": "shop",
            "k8s.namespace.name": "shop",
            "k8s.deployment.name": name,
            "k8s.pod.name": service.pods[pod][generation],
            "k8s.node.name": f"node-{(len(name) * 7 + pod) % 4}",
            "telemetry.sdk.language": service.language,
        }

    def _export(self) -> list[dict[str, Any]]:
        return [
            request(signal, [(self._resource(name, *who), found) for who, found in sorted(groups.items())])
            for (_, name, signal), groups in sorted(self.batches.items(), key=lambda item: item[0])
        ]

    def _alert(self) -> dict[str, Any]:
        """The first alert that a user-facing symptom fires: errors above 5% or latency at twice the usual."""
        rng, onset = self.rng, self.fault.onset
        target = self.fault.where
        victims = [self.edge] * 3 + [name for name in self.services if self.topology.calls(name, target)]
        found: tuple[float, str, str] | None = None
        for victim in (rng.choice(victims), self.edge):
            usual = [ms for step in range(int(onset // _SCRAPE)) for ms, _ in self.seen[victim].get(step, [])]
            typical = sorted(usual)[int(len(usual) * 0.9)] if usual else 0.0
            for step in range(int(onset // _SCRAPE), int(WINDOW / _SCRAPE) - 2):
                now = self.seen[victim].get(step, []) + self.seen[victim].get(step + 1, [])
                if not now:
                    continue
                wrong = sum(failed for _, failed in now) / len(now)
                slow = sum(ms > 1.7 * typical for ms, _ in now) / len(now)
                if wrong > 0.06 or slow > 0.2:
                    found = ((step + 2) * _SCRAPE, victim, "HighErrorRate" if wrong > 0.06 else "HighLatency")
                    break
            if found:
                break
        at, victim, name = found or (onset + 120, self.edge, "HighLatency")
        what = "more than 5% of requests fail" if name == "HighErrorRate" else "requests take far longer than usual"
        starts = datetime.fromtimestamp((self.start // _NS) + int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        severity = "critical" if name == "HighErrorRate" else "warning"
        return webhook(name, victim, f"{victim}: {what}", severity, starts, f"{rng.getrandbits(64):016x}")

    def incident(self) -> Incident:
        self._requests()
        self._logs()
        self._metrics()
        return Incident(
            scenario=self.scenario,
            seed=self.seed,
            services=(*self.services, self.db),
            payloads=self._export(),
            alert=self._alert(),
            faulty_service=self.fault.service,
            onset=self.start + int(self.fault.onset * 1e9),
            end=self.end,
            truth=self.fault.truth,
        )


def _poisson(rng: random.Random, begin: float, end: float, every: float) -> list[float]:
    """Moments of a Poisson process with a mean gap of `every` seconds."""
    moments, at = [], begin + rng.expovariate(1 / every)
    while at < end:
        moments.append(at)
        at += rng.expovariate(1 / every)
    return moments
