"""Faults for the incident generator: what each does to a service's time, errors, pods and gauges.

Rules:
- A fault touches only its own service (or store). Callers suffer because they wait and fail in the
  simulation, with timeouts and retries of their own, not because a fault writes to them.
- Seconds count from the start of the window. Everything is drawn from the generator's random source.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """A log line at a moment: seconds from the window's start, severity, text, extra attributes."""

    at: float
    severity: str
    body: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """How a request fails inside a service: the message, and how long it took to fail."""

    message: str
    after_ms: float


class Fault:
    """No fault at all; the others override what they need. `where` is the service it happens in; `service` is
    the one at fault, None where none is."""

    service: str | None = None
    where: str = ""
    onset: float = 0.0
    truth = "Nothing is wrong: the alert fired on a transient blip that went away by itself."

    def wait_ms(self, service: str, pod: int, at: float) -> float:
        """Extra time a request spends inside the service."""
        return 0.0

    def failure(self, service: str, pod: int, at: float) -> Failure | None:
        """A failure that the service itself makes."""
        return None

    def down(self, service: str, pod: int, at: float) -> bool:
        """Whether the pod takes no connections."""
        return False

    def query(self, store: str, at: float) -> tuple[float, Failure | None]:
        """Factor on a store's answer time, and a failure of the query."""
        return 1.0, None

    def store_of(self, service: str, store: str, at: float) -> tuple[str, Failure | None]:
        """The store that the service talks to, and a failure to reach it."""
        return store, None

    def call_timeout_ms(self, service: str, timeout_ms: float, at: float) -> float:
        """How long the service waits for another one."""
        return timeout_ms

    def gauge(self, service: str, pod: int, name: str, value: float, at: float) -> float:
        """The value that a gauge shows."""
        return value

    def restarts(self, service: str, pod: int, at: float) -> int:
        """Container restarts up to a moment."""
        return 0

    def lines(self, service: str) -> list[Line]:
        """Log lines that the fault makes the service write."""
        return []


class Blip(Fault):
    """A short latency and error spike that ends by itself; the alert on it is a false alarm."""

    def __init__(self, rng: random.Random, service: str, onset: float) -> None:
        self.onset, self.where, self._rng = onset, service, rng
        self._length = rng.uniform(25, 55)
        self._extra_ms, self._share = rng.uniform(150, 600), rng.uniform(0.1, 0.35)

    def _on(self, service: str, at: float) -> bool:
        return service == self.where and self.onset <= at < self.onset + self._length

    def wait_ms(self, service: str, pod: int, at: float) -> float:
        return self._extra_ms * self._rng.lognormvariate(0, 0.3) if self._on(service, at) else 0.0

    def failure(self, service: str, pod: int, at: float) -> Failure | None:
        if self._on(service, at) and self._rng.random() < self._share:
            return Failure("connection reset by peer", self._rng.uniform(2, 60))
        return None


class PoolExhaustion(Fault):
    """A new version leaks connections: the pool fills over some minutes, then requests wait and time out."""

    def __init__(self, rng: random.Random, service: str, onset: float, pool: int) -> None:
        self.service, self.onset, self._rng, self._pool = service, onset, rng, pool
        self.where = service
        self._fill = rng.uniform(50, 160)
        self._timeout_ms = rng.choice([1500.0, 2000.0, 3000.0, 5000.0])
        self._share, self._wait = rng.uniform(0.1, 0.6), rng.uniform(0.12, 0.4)
        self.truth = (
            f"The new version of {service} does not give connections back: its pool of {pool} runs dry, "
            f"requests wait up to {self._timeout_ms:.0f} ms for one, and callers time out."
        )

    def _fullness(self, at: float) -> float:
        return min(1.0, max(0.0, (at - self.onset) / self._fill))

    def wait_ms(self, service: str, pod: int, at: float) -> float:
        full = self._fullness(at)
        if service != self.service or full < 0.7:
            return 0.0
        pressure = (full - 0.7) / 0.3
        return min(self._timeout_ms, self._rng.expovariate(1) * self._wait * self._timeout_ms * pressure)

    def failure(self, service: str, pod: int, at: float) -> Failure | None:
        full = self._fullness(at)
        if service == self.service and full > 0.85 and self._rng.random() < self._share * (full - 0.85) / 0.15:
            waiting = self._rng.randint(4, 60)
            text = (
                f"timed out after {self._timeout_ms:.0f}ms waiting for a connection "
                f"(active={self._pool}, idle=0, waiting={waiting})"
            )
            return Failure(text, self._timeout_ms * self._rng.uniform(1.0, 1.02))
        return None

    def gauge(self, service: str, pod: int, name: str, value: float, at: float) -> float:
        if service == self.service and name == "db.client.connection.count" and at > self.onset:
            return float(round(value + (self._pool - value) * self._fullness(at)))
        return value


class MemoryLeak(Fault):
    """Memory climbs to the limit, pauses grow, the container is killed and starts again, and again."""

    def __init__(self, rng: random.Random, service: str, onset: float) -> None:
        self.service, self.onset, self._rng = service, onset, rng
        self.where = service
        self._cycle = rng.uniform(150, 260)
        self._offsets = (0.0, rng.uniform(25, 90))
        self._down = rng.uniform(12, 28)
        self._pause_ms = rng.uniform(60, 500)
        self._flag = rng.choice(["bulk-export", "rich-previews", "edge-cache-v2", "session-replay"])
        self._announced = rng.random() < 0.5
        self.truth = f"{service} leaks memory: its containers reach the limit, are killed and restart, over and over."

    def _phase(self, pod: int, at: float) -> tuple[int, float]:
        """How often the pod was killed, and how full its memory is (0..1); negative while it is down."""
        since = at - self.onset - self._offsets[pod % 2]
        if since < 0:
            return 0, 0.0
        kills, inside = divmod(since, self._cycle + self._down)
        if inside > self._cycle:
            return int(kills) + 1, -1.0
        return int(kills), inside / self._cycle

    def wait_ms(self, service: str, pod: int, at: float) -> float:
        full = self._phase(pod, at)[1]
        if service != self.service or full < 0.55:
            return 0.0
        return self._pause_ms * ((full - 0.55) / 0.45) * self._rng.expovariate(1) * 1.6

    def down(self, service: str, pod: int, at: float) -> bool:
        return service == self.service and self._phase(pod, at)[1] < 0

    def gauge(self, service: str, pod: int, name: str, value: float, at: float) -> float:
        if service != self.service:
            return value
        full = self._phase(pod, at)[1]
        if name == "process.memory.usage":
            return value + (0.97 - value) * max(full, 0.0) if full >= 0 else value * 0.3
        if name == "process.cpu.utilization" and full > 0.6:
            return min(1.0, value + (full - 0.6) * 1.1)
        return value

    def restarts(self, service: str, pod: int, at: float) -> int:
        return self._phase(pod, at)[0] if service == self.service else 0

    def lines(self, service: str) -> list[Line]:
        if service != self.service:
            return []
        result = []
        if self._announced:
            result.append(Line(self.onset - 4, "INFO", f"feature flag {self._flag} enabled for 100% of requests"))
        for pod, offset in enumerate(self._offsets):
            at = self.onset + offset + self._cycle
            while at < 1800:
                body = f"Container {service} in pod {{pod}} terminated: OOMKilled (exit code 137)"
                reason = {"k8s.event.reason": "OOMKilled", "pod": str(pod)}
                result.append(Line(at, "WARN", body, reason))
                again = f"starting {service} {{version}}, heap limit 512 MiB"
                result.append(Line(at + self._down, "INFO", again, {"pod": str(pod)}))
                at += self._cycle + self._down
        return result


class BadConfig(Fault):
    """A configuration reload breaks the service: a wrong host, too short a timeout, or too low a limit."""

    def __init__(self, rng: random.Random, service: str, onset: float, store: str, calls: bool) -> None:
        self.service, self.onset, self._rng, self._store = service, onset, rng, store
        self.where = service
        choices = ["limit", *(["host"] if store else []), *(["timeout"] if calls else [])]
        self._how = rng.choice(choices)
        self._share = rng.uniform(0.12, 0.65)
        self._revision = rng.randint(100, 900)
        self._timeout = rng.choice([5, 8, 10])
        what = {
            "host": "looks for its store at a host that isn't there",
            "timeout": f"waits only {self._timeout} ms for others",
            "limit": "turns away most requests by its own limit",
        }[self._how]
        self.truth = f"{service} reloaded its configuration and now {what}."

    def _on(self, service: str, at: float) -> bool:
        return service == self.service and at >= self.onset

    def failure(self, service: str, pod: int, at: float) -> Failure | None:
        if self._how == "limit" and self._on(service, at) and self._rng.random() < self._share:
            return Failure(f"request rejected: limit of {self._timeout} concurrent requests reached", 0.4)
        return None

    def store_of(self, service: str, store: str, at: float) -> tuple[str, Failure | None]:
        if self._how == "host" and self._on(service, at) and store == self._store:
            wrong = f"{store}-b.internal"
            if self._rng.random() < 0.85:
                return wrong, Failure(f"dial tcp: lookup {wrong}: no such host", self._rng.uniform(5, 400))
        return store, None

    def call_timeout_ms(self, service: str, timeout_ms: float, at: float) -> float:
        return float(self._timeout) if self._how == "timeout" and self._on(service, at) else timeout_ms

    def lines(self, service: str) -> list[Line]:
        if service != self.service:
            return []
        key = {"host": "store.hosts", "timeout": "http.client.timeout", "limit": "server.max_concurrent"}[self._how]
        return [Line(self.onset - 1, "INFO", f"configuration reloaded: revision {self._revision}, changed {key}")]


class SlowDatabase(Fault):
    """A store gets slow for all users: a bad query eats its CPU, or a long transaction holds its locks."""

    def __init__(self, rng: random.Random, store: str, onset: float) -> None:
        self.service, self.onset, self._rng = store, onset, rng
        self.where = store
        self._factor = rng.uniform(5, 40)
        self._ramp = rng.uniform(20, 70)
        self._share = rng.uniform(0.02, 0.2)
        self._locks = rng.random() < 0.4
        why = "a long transaction holds locks" if self._locks else "a query without an index takes all of its CPU"
        self.truth = f"{store} is slow for all its clients: {why}."

    def _strength(self, at: float) -> float:
        return min(1.0, max(0.0, (at - self.onset) / self._ramp))

    def query(self, store: str, at: float) -> tuple[float, Failure | None]:
        if store != self.service:
            return 1.0, None
        strength = self._strength(at)
        if self._rng.random() < self._share * strength:
            text = "canceling statement due to " + ("lock" if self._locks else "statement") + " timeout"
            return 1.0, Failure(text, self._rng.uniform(900, 1100))
        return 1.0 + (self._factor - 1) * strength * self._rng.lognormvariate(0, 0.5), None

    def gauge(self, service: str, pod: int, name: str, value: float, at: float) -> float:
        strength = self._strength(at)
        if service != self.service:
            return value
        if name == "system.cpu.utilization" and not self._locks:
            return value + (0.985 - value) * strength * self._rng.uniform(0.94, 1.0)
        if name == "db.server.lock.waiting" and self._locks:
            return value + round(strength * self._rng.uniform(14, 40))
        if name == "db.server.connection.count":
            return round(value * (1 + 0.8 * strength))
        return value

    def lines(self, service: str) -> list[Line]:
        if service != self.service:
            return []
        result, at = [], self.onset + 3.0
        while at < 1800:
            took = self._rng.uniform(1500, 9000)
            waits = f"process {self._rng.randint(2000, 9000)} still waiting for ShareLock after {took:.0f} ms"
            query = f"duration: {took:.1f} ms  statement: SELECT * FROM events WHERE body LIKE '%{{word}}%'"
            text = waits if self._locks else query
            result.append(Line(at, "WARN" if self._locks else "INFO", text))
            at += self._rng.expovariate(1 / 9)
        return result
