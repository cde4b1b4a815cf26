"""Builds and runs one worker process of each kind: `run("intake" | "store" | "llm", settings)`.

This is the only place where the stages, the store pool, the model client and Faust meet.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from typing import Any, Literal

import faust

from hyve.errors import HyveError
from streams import metrics
from streams.alertqueue import serve_alerts
from streams.alerts import mount
from streams.answered import Answered
from streams.app import make_app, sender, serve
from streams.app import run as run_app
from streams.intake import Intake
from streams.llm import LlmStage
from streams.store import StoreStage
from workers import claims, kafka
from workers.pool import StorePool
from workers.route import configured
from workers.settings import Settings

log = logging.getLogger("hyve")

_SWEPT_EVERY = 3_600.0

Kind = Literal["intake", "store", "llm"]


def run(kind: Kind, settings: Settings, *, stop_with_stdin: bool = False) -> None:
    """Runs a worker until it is told to stop. Raises `HyveError` at once where Kafka can't be reached."""
    _quiet_logs()
    kafka.create_topics(settings)
    if stop_with_stdin:
        _stop_with_stdin()
    app = {"intake": _intake, "store": _store, "llm": _llm}[kind](settings)
    port = metrics.serve(settings, kind)
    sys.stderr.write(f"hyve worker {kind}: metrics on http://{settings.http_host}:{port}/metrics\n")
    sys.stderr.flush()
    run_app(app, settings)


def _intake(settings: Settings) -> faust.App:
    _check_port(settings)
    app = make_app(settings, "intake", buffer=settings.raw_batch, web=True)
    send = sender(app, settings)
    mount(app, send)
    serve(app, settings, settings.raw, "intake", Intake(settings).process, send, settings.raw_batch)
    serve_alerts(app, settings, send)

    async def sweep() -> None:
        try:
            await asyncio.to_thread(claims.sweep, settings.claim_url)
        except HyveError as error:
            log.warning("claims: %s", error)

    if settings.claim_url:
        app.timer(_SWEPT_EVERY)(sweep)
    return app


def _store(settings: Settings) -> faust.App:
    app = make_app(settings, "store", buffer=settings.batch, last=[settings.topic("requests")])
    send = sender(app, settings)
    pool = StorePool(
        settings.pool_size,
        settings.pool_stores,
        metrics.POOL_RESPAWNS.inc,
        on_spent=lambda call, seconds: metrics.POOL_CPU.labels(call).inc(seconds),
        claims=settings.claim_url,
        redaction=settings.redaction,
        memory=settings.pool_memory,
    )
    answered = Answered(settings)
    stage = StoreStage(settings, pool, answered=answered)
    serve(app, settings, [settings.topic("requests")], "prepare", stage.request, send, settings.batch)
    serve(app, settings, [settings.topic("queries")], "finish", stage.command, send, settings.batch)

    async def moved(*_: Any, **__: Any) -> None:
        answered.moved()

    app.on_partitions_assigned.connect(moved)
    metrics.POOL_PROCESSES.set_function(lambda: len(pool.pids))
    metrics.POOL_BUSY.set_function(lambda: pool.waiting)

    async def hold() -> None:
        # A task of the application: it starts with the worker, and is cancelled after the streams have drained.
        await pool.warm()
        try:
            await asyncio.Event().wait()
        finally:
            pool.close()

    async def expire() -> None:
        if closed := await pool.expire(settings.pool_ttl):
            log.info("store: %d stores were closed after %g s without an answer", closed, settings.pool_ttl)

    app.task(hold)
    app.timer(min(60.0, settings.pool_ttl))(expire)
    return app


def _llm(settings: Settings) -> faust.App:
    limit = max(settings.batch, settings.llm_concurrency)
    app = make_app(settings, "llm", buffer=limit)
    send = sender(app, settings)
    model = configured(settings)
    stage = LlmStage(settings, model)
    log.info("llm: %s", "no model: the rules analyst answers" if model is None else f"model {model.name}")
    serve(app, settings, [settings.topic("prompts")], "model", stage.process, send, limit)
    return app


def _check_port(settings: Settings) -> None:
    """Says in one line that the webhook's port is taken; Faust would end with a traceback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.http_host, settings.http_port))
        except OSError as error:
            raise HyveError(
                f"can't serve the webhook on {settings.http_host}:{settings.http_port} ({error.strerror}): "
                "set HYVE_HTTP_HOST and HYVE_HTTP_PORT"
            ) from None


def _stop_with_stdin() -> None:
    """Ends this worker when its standard input closes: a supervisor that was killed can't tell it to stop."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        if not threading.Event().wait(20.0):
            os._exit(1)

    threading.Thread(target=watch, name="stdin-watch", daemon=True).start()


def _quiet_logs() -> None:
    """Keeps what Faust and the Kafka clients say at warnings and above; our own lines stay."""
    for name in ("faust", "mode", "aiokafka", "kafka", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


__all__ = ["Kind", "run"]
