"""Builds and runs one worker process of each kind: `run("intake" | "store" | "llm", settings)`.

This is the only place where the stages, the store pool, the model client and Faust meet.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import logging.config
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, Literal

import faust

from hyve.errors import HyveError
from streams import logs, metrics
from streams.alertqueue import serve_alerts
from streams.alerts import PATH, mount
from streams.answered import Answered
from streams.app import make_app, sender, serve
from streams.app import run as run_app
from streams.commits import App
from streams.health import Health
from streams.intake import Intake
from streams.llm import LlmStage
from streams.store import StoreStage
from streams.together import Together
from workers import claims, kafka
from workers.pool import StorePool
from workers.route import configured
from workers.settings import Settings

log = logging.getLogger("hyve")

_SWEPT_EVERY = 3_600.0

_STORE_WAITS, _LLM_WAITS = 0.3, 0.02
"""Seconds for which deliveries of a busy worker wait for others at most."""

_A_PROCESS = 4
"""Calls in line for each store process that make a worker busy: with fewer, one of them might have none."""

Kind = Literal["intake", "store", "llm"]


def run(kind: Kind, settings: Settings, *, stop_with_stdin: bool = False) -> None:
    """Runs a worker until it is told to stop. Raises `HyveError` at once where Kafka can't be reached."""
    logs.quiet()
    claims.check(settings.claim_url)
    if kind == "intake":
        settings = _with_port(settings)
    kafka.create_topics(settings)
    if kind == "intake":
        kafka.check_raw(settings)
    if stop_with_stdin:
        _stop_with_stdin()
    health = Health(settings, kind)
    app = {"intake": _intake, "store": _store, "llm": _llm}[kind](settings, health)
    health.attach(app)
    port = metrics.serve(settings, kind, health)
    sys.stderr.write(f"hyve worker {kind}: metrics on http://{settings.http_host}:{port}/metrics\n")
    sys.stderr.flush()
    logging.config.dictConfig(logs.config(settings.log_level))  # the application would do so later
    if settings.rebalance_limit < settings.longest_call:
        log.warning(
            "worker: HYVE_REBALANCE_TIMEOUT (%g s) is below the longest call (%g s, by HYVE_PREPARE_TIMEOUT and "
            "HYVE_LLM_TIMEOUT): a record in hand for longer is worked on twice when partitions move",
            settings.rebalance_limit,
            settings.longest_call,
        )
    _end_in_time(app, settings.drain_timeout)
    gc.collect()
    gc.freeze()  # what is here by now stays: each full collection would walk all of it
    run_app(app, settings, health.in_hand)


def _intake(settings: Settings, health: Health) -> App:
    app = make_app(settings, "intake", buffer=settings.raw_batch, web=True, linger=0.005)
    send = health.sending(sender(app, settings))
    mount(app, settings, send)
    process = health.watched("intake", Intake(settings, send).process)
    serve(app, settings, settings.raw, "intake", process, send, settings.raw_batch)
    serve_alerts(app, settings, send)

    async def sweep() -> None:
        try:
            await asyncio.to_thread(claims.sweep, settings.claim_url)
        except HyveError as error:
            log.warning("claims: %s", error)

    if settings.claim_url:
        app.timer(_SWEPT_EVERY)(sweep)
    return app


def _store(settings: Settings, health: Health) -> App:
    app = make_app(settings, "store", buffer=settings.batch, last=[settings.topic("requests")])
    together = Together(min(_A_PROCESS * settings.pool_size, settings.batch), _STORE_WAITS)
    send = together.sending(health.sending(sender(app, settings)))
    pool = StorePool(
        settings.pool_size,
        settings.pool_stores,
        metrics.POOL_RESPAWNS.inc,
        on_spent=lambda call, seconds: metrics.pool_cpu(call).inc(seconds),
        claims=settings.claim_url,
        redaction=settings.redaction,
        memory=settings.pool_memory,
    )
    answered = Answered(settings)
    stage = StoreStage(settings, pool, answered=answered)
    for topic, name, process in (("requests", "prepare", stage.request), ("queries", "finish", stage.command)):
        watched = together.counted(health.watched(name, process))
        serve(app, settings, [settings.topic(topic)], name, watched, send, settings.batch)

    async def moved(*_: Any, **__: Any) -> None:
        answered.moved()

    app.on_partitions_assigned.connect(moved)
    metrics.POOL_PROCESSES.set_function(lambda: len(pool.pids))
    metrics.POOL_BUSY.set_function(lambda: pool.busy)
    metrics.POOL_WAITING.set_function(lambda: pool.waiting - pool.busy)
    metrics.POOL_STORES.set_function(lambda: pool.held)
    health.waits("pool", "the pool's processes are starting")

    async def warm() -> None:
        await pool.warm()
        health.there("pool")

    async def hold() -> None:
        # A task of the application: it is cancelled after the streams have drained.
        try:
            await asyncio.Event().wait()
        finally:
            pool.close()

    async def expire() -> None:
        if closed := await pool.expire(settings.pool_ttl):
            log.info("store: %d stores were closed after %g s without an answer", closed, settings.pool_ttl)

    app.first = warm
    app.task(hold)
    app.timer(min(60.0, settings.pool_ttl))(expire)
    return app


def _llm(settings: Settings, health: Health) -> App:
    limit = max(settings.batch, settings.llm_concurrency)
    app = make_app(settings, "llm", buffer=limit)
    together = Together(1, _LLM_WAITS)
    send = together.sending(health.sending(sender(app, settings)))
    model = configured(settings, lambda name, outcome: metrics.LLM_CALLS.labels(name, outcome).inc())
    stage = LlmStage(settings, model)
    told = "no model: the rules analyst answers" if model is None else f"model {model.name}"
    health.note(told)

    async def hold() -> None:
        # A task of the application: it is cancelled after the streams have drained.
        log.info("llm: %s", told)
        try:
            await asyncio.Event().wait()
        finally:
            if model is not None:
                await model.aclose()

    app.task(hold)
    watched = together.counted(health.watched("model", stage.process))
    serve(app, settings, [settings.topic("prompts")], "model", watched, send, limit)
    return app


def _with_port(settings: Settings) -> Settings:
    """The settings with the port that the webhook gets: a free one for 0. Says in one line that a port is taken; Faust
    would end with a traceback."""
    try:
        found = socket.getaddrinfo(settings.http_host, settings.http_port, type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
            port = int(probe.getsockname()[1])
    except OSError as error:
        raise HyveError(
            f"can't serve the webhook on {settings.http_host}:{settings.http_port} ({error.strerror}): "
            "set HYVE_HTTP_HOST and HYVE_HTTP_PORT (0 picks a free port)"
        ) from None
    sys.stderr.write(f"hyve worker intake: alerts to http://{settings.http_host}:{port}{PATH}\n")
    return settings.model_copy(update={"http_port": port})


def _end_in_time(app: faust.App, seconds: float) -> None:
    """Ends the process when it was told to stop and has not ended `seconds` later. What was in hand is read again."""

    def watch() -> None:
        while not app.should_stop:
            time.sleep(0.5)
        time.sleep(seconds)
        log.error("worker: not drained %g s after it was told to stop (HYVE_DRAIN_TIMEOUT): it ends", seconds)
        os._exit(1)

    threading.Thread(target=watch, name="drain-watch", daemon=True).start()


def _stop_with_stdin() -> None:
    """Ends this worker when its standard input closes: a supervisor that was killed can't tell it to stop."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        if not threading.Event().wait(20.0):
            os._exit(1)

    threading.Thread(target=watch, name="stdin-watch", daemon=True).start()


__all__ = ["Kind", "run"]
