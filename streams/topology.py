"""The make-believe shop of the incident generator: eight services, who calls whom, and who uses which store.

Rules: drawn from the generator's random source alone; calls go down the tiers only, so a request ends; every
service but the edge has a caller; the last of the eight is a database that writes logs and metrics, no spans.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

_EDGES = ("storefront", "web-gateway", "mobile-api", "portal", "graphql-edge")
_NAMES = (
    *(
        "checkout",
        "cart",
        "orders",
        "payments",
        "inventory",
        "listings",
        "pricing",
        "recommendations",
        "accounts",
    ),
    *(
        "shipping",
        "notifications",
        "search",
        "reviews",
        "loyalty",
        "ledger",
        "tax",
        "fraud",
        "profiles",
        "media",
    ),
    *("sessions", "coupons", "wallet", "quotes", "billing", "identity", "returns"),
)
_STORES = ("orders-db", "main-postgres", "core-mysql", "records-db", "primary-pg")
_NOUNS = ("items", "list", "detail", "summary", "status", "batch", "session", "offer", "entry", "search")
_SIZES = ((1, 2, 3, 1), (1, 2, 2, 2), (1, 3, 2, 1), (1, 1, 3, 2))


@dataclass(frozen=True)
class Op:
    """One operation: its route, the operations of others it calls in turn, and how many queries it makes."""

    name: str
    calls: tuple[tuple[str, int], ...]
    queries: int


@dataclass
class Service:
    """One service of two pods. `store` is "" where it has none; `versions` are before and after `deploy`."""

    name: str
    tier: int
    language: str
    base_ms: float
    timeout_ms: float
    retries: bool
    store_ms: float
    pool: int
    versions: tuple[str, str]
    pods: tuple[tuple[str, str], tuple[str, str]]
    memory: float
    cpu: float
    store: str = ""
    deploy: float | None = None
    ops: list[Op] = field(default_factory=list)

    def generation(self, pod: int, at: float) -> int:
        """0 before the pod was replaced by the deployment, 1 after it."""
        return int(self.deploy is not None and at >= self.deploy + 15.0 * pod)


class Topology:
    """`services` by name (top tier first), the `edge` that users talk to, and the shared database `db`."""

    def __init__(self, rng: random.Random) -> None:
        sizes = rng.choice(_SIZES)
        names = [rng.choice(_EDGES), *rng.sample(_NAMES, sum(sizes) - 1)]
        self.edge = names[0]
        self.db = rng.choice(_STORES)
        self.services: dict[str, Service] = {}
        tiers: list[list[str]] = []
        taken = iter(names)
        for tier, size in enumerate(sizes):
            tiers.append([next(taken) for _ in range(size)])
            for name in tiers[-1]:
                self.services[name] = _service(rng, name, tier)
        self._stores(rng, names[1:])
        callees: dict[str, list[str]] = {name: [] for name in names}
        for tier in range(1, len(tiers)):
            for name in tiers[tier]:
                callees[rng.choice(tiers[tier - 1])].append(name)
                if rng.random() < 0.4:
                    other = rng.choice(tiers[rng.randrange(tier)])
                    if name not in callees[other]:
                        callees[other].append(name)
        for name in reversed(names):
            self.services[name].ops = _operations(rng, self.services[name], callees[name])

    def _stores(self, rng: random.Random, below: list[str]) -> None:
        users = set(rng.sample([name for name in below if self.services[name].tier >= 2], 2))
        users |= {name for name in below if rng.random() < 0.35}
        for name in below:
            if name in users:
                self.services[name].store = self.db
            elif rng.random() < 0.6:
                self.services[name].store = f"{name}-{rng.choice(['redis', 'cache', 'mongo'])}"

    def reach(self, target: str) -> float:
        """Share of the edge's operations whose calls reach a service or a store."""

        def reaches(name: str, op: Op) -> bool:
            if name == target or (op.queries and self.services[name].store == target):
                return True
            return any(reaches(callee, self.services[callee].ops[index]) for callee, index in op.calls)

        ops = self.services[self.edge].ops
        return sum(reaches(self.edge, op) for op in ops) / len(ops)

    def calls(self, name: str, target: str) -> bool:
        """Whether a service reaches another service or a store through its calls."""
        service = self.services[name]
        callees = {callee for op in service.ops for callee, _ in op.calls}
        return service.store == target or target in callees or any(self.calls(c, target) for c in callees)

    def use(self, name: str, store: str, queries: int = 1) -> None:
        """Makes each operation of a service ask a store."""
        service = self.services[name]
        service.store = store
        service.ops = [Op(op.name, op.calls, max(op.queries, queries)) for op in service.ops]


def _service(rng: random.Random, name: str, tier: int) -> Service:
    major, minor = rng.randint(1, 5), rng.randint(0, 30)
    hashes = [f"{rng.getrandbits(32):08x}" for _ in range(2)]
    first, second = (
        (f"{name}-{hashes[0]}-{rng.getrandbits(20):05x}", f"{name}-{hashes[1]}-{rng.getrandbits(20):05x}")
        for _ in range(2)
    )
    return Service(
        name=name,
        tier=tier,
        language=rng.choice(["java", "go", "nodejs", "python", "dotnet"]),
        base_ms=rng.uniform(2, 14),
        timeout_ms=rng.choice([1000.0, 2000.0, 2500.0, 4000.0]) * (1.5 if tier == 0 else 1.0),
        retries=rng.random() < 0.3,
        store_ms=rng.uniform(1.5, 7),
        pool=rng.choice([10, 16, 20, 32, 50]),
        versions=(f"{major}.{minor}.{rng.randint(0, 9)}", f"{major}.{minor + 1}.0"),
        pods=(first, second),
        memory=rng.uniform(0.3, 0.55),
        cpu=rng.uniform(0.1, 0.4),
    )


def _operations(rng: random.Random, service: Service, targets: list[str]) -> list[Op]:
    ops = []
    for number in range(4 if service.tier == 0 else 2):
        noun = rng.choice(_NOUNS)
        path = f"/api/{service.name if service.tier else noun}/{noun}-{number}"
        chosen = rng.sample(targets, min(len(targets), rng.choice([1, 1, 2, 2, 3])))
        calls = tuple((target, rng.randrange(2)) for target in targets if target in chosen)
        queries = rng.choice([1, 1, 2, 3]) if service.store else 0
        ops.append(Op(f"{rng.choice(['GET', 'POST'])} {path}", calls, queries))
    return ops
