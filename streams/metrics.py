"""Prometheus metrics of a worker process and its health, served on a port of its own (`HYVE_METRICS_PORT`).

`/metrics`; `/healthz` (also `/livez`) and `/readyz` answer 200, or 503 where the worker is not, with JSON that says why
and since when (see `streams.health`). Threads answer, so that a hung event loop can be told.

Rule: labels are bounded (topics, partitions, stages, modes, statuses), never a request's id or a service's name.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable
from functools import lru_cache
from socketserver import ThreadingMixIn
from typing import Any, Final, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.core import Metric

from hyve.errors import HyveError
from schemas import DiagnosisResult
from workers.settings import Settings

PORTS: Final[dict[str, int]] = {"intake": 9464, "store": 9465, "llm": 9466}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

RECORDS_IN = Counter("hyve_records_in_total", "Records taken from a topic and worked on to the end", ["topic"])
RECORDS_OUT = Counter("hyve_records_out_total", "Records delivered to a topic", ["topic"])
DEAD_LETTERS = Counter("hyve_dead_letters_total", "Records that could not be used", ["stage"])
STAGE_SECONDS = Histogram("hyve_stage_seconds", "Time of one step on one record", ["stage"], buckets=_SECONDS)
TOKENS = Counter("hyve_tokens_total", "Tokens of finished requests: original, prompt, saved", ["part"])
REQUESTS = Counter("hyve_requests_total", "Finished requests", ["mode", "status"])
POOL_PROCESSES = Gauge("hyve_pool_processes", "Processes of the store pool that are up")
POOL_BUSY = Gauge("hyve_pool_busy", "Store calls that run")
POOL_WAITING = Gauge("hyve_pool_waiting", "Store calls that wait for their process")
POOL_STORES = Gauge("hyve_pool_stores", "Stores that the pool's processes hold")
POOL_RESPAWNS = Counter("hyve_pool_respawns_total", "Store processes that died or overran and were started again")
POOL_CPU = Counter("hyve_pool_cpu_seconds_total", "Processor time of the store processes", ["call"])
LLM_CALLS = Counter(
    "hyve_llm_calls_total",
    "Calls of models: ok; what they failed of; retry: made once more; resting: not made, the breaker is open",
    ["model", "outcome"],
)
ALERTS = Counter(
    "hyve_alerts_total", "Alerts: asked, repeated, cancelled (resolved while waiting), resolved", ["outcome"]
)
WEBHOOKS = Counter(
    "hyve_webhooks_total",
    "Bodies posted: taken, partly, refused, too_large, undelivered",
    ["outcome"],
)
ALERTS_WAITING = Gauge("hyve_alerts_waiting", "Alerts whose turn has not come")
EVENTS = Counter(
    "hyve_events_total", "Records of telemetry that the intake made; none: raw records that held nothing", ["signal"]
)
EVENT_TIMES = Counter("hyve_event_times_total", "Events stamped with Kafka's time in place of their own", ["why"])
COMMITS = Counter("hyve_commits_total", "Commits that moved an offset")
REBALANCES = Counter("hyve_rebalances_total", "Times that the group gave this worker its partitions")
COLLECTED = Counter("hyve_collected_bytes_total", "Telemetry bytes put into requests", ["kept"])


# Looking up a label takes longer than counting: what is counted for each record is kept.
taken = lru_cache(maxsize=1000)(RECORDS_IN.labels)
out = lru_cache(maxsize=1000)(RECORDS_OUT.labels)
seconds = lru_cache(maxsize=100)(STAGE_SECONDS.labels)
tokens_of = lru_cache(maxsize=10)(TOKENS.labels)
request_of = lru_cache(maxsize=100)(REQUESTS.labels)
pool_cpu = lru_cache(maxsize=100)(POOL_CPU.labels)


def finished(result: DiagnosisResult) -> None:
    """Counts one finished request."""
    tokens = result.tokens
    request_of(result.mode, result.status).inc()
    tokens_of("original").inc(tokens.original)
    tokens_of("prompt").inc(tokens.prompt + tokens.follow_up)
    tokens_of("saved").inc(max(0, tokens.original - tokens.prompt - tokens.follow_up))


class Health(Protocol):
    """What answers for the worker."""

    def live(self) -> dict[str, Any]: ...

    def ready(self) -> dict[str, Any]: ...

    def collect(self) -> Iterable[Metric]: ...


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = 10.0  # a client that says nothing keeps no thread

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: whoever scrapes asks every few seconds."""


def application(health: Health, registry: CollectorRegistry = REGISTRY) -> Any:
    """The WSGI application of the port."""
    scraped = make_wsgi_app(registry)
    answers = {"/healthz": health.live, "/livez": health.live, "/readyz": health.ready}

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path in ("/", "/metrics"):
            samples: Iterable[bytes] = scraped(environ, start_response)
            return samples
        if path not in answers:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics, /healthz, /readyz\n"]
        told = answers[path]()
        status = "503 Service Unavailable" if told["faults"] else "200 OK"
        start_response(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
        return [json.dumps(told).encode() + b"\n"]

    return answer


def serve(settings: Settings, kind: str, health: Health) -> int:
    """Starts the port of metrics and health and returns its number. Raises `HyveError` where it is taken."""
    port = PORTS[kind] if settings.metrics_port < 0 else settings.metrics_port
    try:
        family = socket.getaddrinfo(settings.http_host, port, type=socket.SOCK_STREAM)[0][0]
        served = type("Server", (_Server,), {"address_family": family})
        server: WSGIServer = make_server(settings.http_host, port, application(health), served, _Handler)
    except OSError as error:
        raise HyveError(
            f"can't serve metrics on {settings.http_host}:{port} ({error.strerror}): "
            "set HYVE_METRICS_PORT to a free port (0 picks one)"
        ) from None
    REGISTRY.register(health)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return int(server.server_port)
