"""Prometheus metrics of a worker process, served on a port of its own (`HYVE_METRICS_PORT`).

Rule: labels are bounded (topics, stages, modes, statuses), never a request's id or a service's name.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram, start_http_server

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
POOL_BUSY = Gauge("hyve_pool_busy", "Store calls that run or wait")
POOL_RESPAWNS = Counter("hyve_pool_respawns_total", "Store processes that died or overran and were started again")
POOL_CPU = Counter("hyve_pool_cpu_seconds_total", "Processor time of the store processes", ["call"])
ALERTS = Counter(
    "hyve_alerts_total", "Alerts: asked, repeated, cancelled (resolved while waiting), resolved", ["outcome"]
)
ALERTS_WAITING = Gauge("hyve_alerts_waiting", "Alerts whose turn has not come")
EVENTS = Counter("hyve_events_total", "Records of telemetry that the intake made", ["signal"])
EVENT_TIMES = Counter("hyve_event_times_total", "Events stamped with Kafka's time in place of their own", ["why"])
COLLECTED = Counter("hyve_collected_bytes_total", "Telemetry bytes put into requests", ["kept"])


def finished(result: DiagnosisResult) -> None:
    """Counts one finished request."""
    tokens = result.tokens
    REQUESTS.labels(result.mode, result.status).inc()
    TOKENS.labels("original").inc(tokens.original)
    TOKENS.labels("prompt").inc(tokens.prompt + tokens.follow_up)
    TOKENS.labels("saved").inc(max(0, tokens.original - tokens.prompt - tokens.follow_up))


def serve(settings: Settings, kind: str) -> int:
    """Starts the metrics port and returns its number. Raises `HyveError` where it is taken."""
    port = PORTS[kind] if settings.metrics_port < 0 else settings.metrics_port
    try:
        server, _ = start_http_server(port, addr=settings.http_host)
    except OSError as error:
        raise HyveError(
            f"can't serve metrics on {settings.http_host}:{port} ({error.strerror}): "
            "set HYVE_METRICS_PORT to a free port (0 picks one)"
        ) from None
    return int(server.server_port)
