"""`hyve demo`: one incident through the whole pipeline on an embedded broker, from raw telemetry to the
diagnosis.

Rules:
- Nothing is staged: the workers are the real ones in processes of their own, the broker speaks Kafka, the
  alert goes through the webhook, and the result is read from the results topic.
- The exit status is 0 only where the result names the faulty service with evidence (for "healthy": where
  it is inconclusive). Otherwise the reason and the folder of the logs are printed.
- Whatever it starts, it stops: at the end, on Ctrl-C, SIGTERM and failure.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from hyve.errors import HyveError, InputError, ModelError
from hyve.tokens import count_tokens
from schemas import Alert, DiagnosisResult
from streams.alerts import PATH, parse
from streams.collect import request_id
from streams.incident import Incident, generate
from streams.report import POINT_AT_MODEL, analyst_line, show
from streams.supervisor import Supervisor, stopping_on_signals, worker_command
from workers import kafka
from workers.broker import EmbeddedBroker, free_port
from workers.route import configured
from workers.settings import EMBEDDED, Settings, load

KINDS = ("intake", "store", "llm")
READY_SECONDS = 60.0
RESULT_SECONDS = 120.0


def run(scenario: str, seed: int, *, as_json: bool = False, keep: bool = False) -> int:
    """Plays the incident and prints what came of it. Returns the exit status."""
    err = Console(stderr=True, highlight=False)
    out = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    embedded = {name.removeprefix("HYVE_").lower(): value for name, value in EMBEDDED.items()}
    settings = load(topic_prefix="hyve", raw_topics="", **embedded)
    configured(settings)  # a bad address or key ends it here, in one line, before anything is started
    (err if as_json else out).print(analyst_line(settings), soft_wrap=True)
    logs = Path(tempfile.mkdtemp(prefix="hyve-demo-"))
    fault = ""
    try:
        with stopping_on_signals():
            fault = _play(settings, scenario, seed, logs, as_json, keep, out, err)
    except KeyboardInterrupt:
        err.print("stopped; everything that was started has been ended")
        shutil.rmtree(logs, ignore_errors=True)
        return 130
    except (InputError, ModelError):  # the extra is missing, or the model's settings are wrong: the user's to mend
        shutil.rmtree(logs, ignore_errors=True)
        raise
    except HyveError as error:
        fault = " ".join(str(error).split())
    if fault:
        err.print(f"demo failed: {fault}", style="bold red", soft_wrap=True, markup=False)
        err.print(f"logs of the broker and the workers: {logs}", soft_wrap=True, markup=False)
        return 1
    shutil.rmtree(logs, ignore_errors=True)
    return 0


def _play(
    settings: Settings,
    scenario: str,
    seed: int,
    logs: Path,
    as_json: bool,
    keep: bool,
    out: Console,
    err: Console,
) -> str:
    """The whole demo; returns why it failed, or ""."""
    began = time.monotonic()
    with EmbeddedBroker(logs / "broker.log") as broker, Supervisor(logs) as supervisor:
        settings = settings.model_copy(update={"bootstrap_servers": broker.address})
        ports = {kind: free_port() for kind in KINDS}
        web = free_port()
        kafka.create_topics(settings)
        _say(err, began, f"broker on {broker.address}, {len(settings.topics())} topics")
        for kind in KINDS:
            env = {
                **EMBEDDED,
                "HYVE_BOOTSTRAP_SERVERS": broker.address,
                "HYVE_TOPIC_PREFIX": settings.topic_prefix,
                "HYVE_RAW_TOPICS": "",
                "HYVE_HTTP_HOST": "127.0.0.1",
                "HYVE_HTTP_PORT": str(web),
                "HYVE_METRICS_PORT": str(ports[kind]),
            }
            supervisor.start(kind, worker_command(kind), env)
        _say(err, began, "workers: " + ", ".join(f"{kind} (process {supervisor.pid(kind)})" for kind in KINDS))
        incident = generate(scenario, seed, time.time_ns())
        size, tokens = _produce(settings, incident)
        _say(
            err,
            began,
            f"incident {scenario!r}, seed {seed}: {len(incident.services)} services, "
            f"{len(incident.payloads)} OTLP JSON messages, {size / 1e6:.1f} MB on {settings.raw[0]}",
        )
        count = _wait_for_intake(err, supervisor, settings, ports["intake"], len(incident.payloads))
        _say(err, began, f"intake: {count} telemetry records on {settings.topic('telemetry')}")
        alert = _fire(supervisor, web, incident)
        asked = request_id(alert)
        _say(err, began, f"alert {alert.labels.get('alertname', '')} delivered by webhook: request {asked}")
        with _spinner(err, "diagnosing"):
            found = kafka.wait_for(
                settings, settings.topic("results"), asked.encode(), RESULT_SECONDS, supervisor.check
            )
        if found is None:
            return f"no result for {asked} within {RESULT_SECONDS:.0f} s"
        result = DiagnosisResult.from_bytes(found.value)
        seconds = time.monotonic() - began
        _say(err, began, f"result from {settings.topic('results')}: {result.status} by {result.model}")
        fault = verdict(result, incident)
        if as_json:
            out.file.write(json.dumps(_as_json(result, incident, fault, seconds, tokens), ensure_ascii=False) + "\n")
        else:
            show(result, out)
            injected = incident.truth if incident.faulty_service else "no fault"
            saved = 1 - (result.tokens.prompt + result.tokens.follow_up) / tokens
            out.print(
                f"Raw data: {tokens:,} tokens of OTLP JSON were sent; the prompt is {result.tokens.prompt:,} "
                f"({saved:.2%} saved). Injected: {injected}",
                soft_wrap=True,
                markup=False,
            )
            if not settings.llm_base_url:
                out.print(POINT_AT_MODEL, markup=False, soft_wrap=True)
        if keep:
            err.print(
                f"kept running: Kafka {broker.address}, webhook http://127.0.0.1:{web}{PATH}, metrics "
                + ", ".join(f"http://127.0.0.1:{port}/metrics" for port in ports.values())
                + f", logs {logs}; Ctrl-C ends it",
                soft_wrap=True,
            )
            while True:
                supervisor.check()
                time.sleep(0.5)
    if settings.llm_base_url and result.mode == "rules":
        why = next((note for note in result.notes if "answered by the rules analyst" in note), "")
        raise ModelError(f"the model {settings.llm_model} gave no answer ({why}): check HYVE_LLM_*", "reply")
    return fault


def verdict(result: DiagnosisResult, incident: Incident) -> str:
    """Why the result is not the right answer to the incident, or ""."""
    if incident.faulty_service is None:
        return "" if result.status == "inconclusive" else f"nothing is broken, but the result is {result.status}"
    rows = {evidence.id for evidence in result.evidence if evidence.total_rows}
    for cause in result.root_causes:
        if cause.entity == incident.faulty_service:
            return "" if rows & set(cause.evidence) else f"{cause.entity} is named, but without evidence"
    named = ", ".join(cause.entity for cause in result.root_causes) or "nobody"
    return f"the faulty service is {incident.faulty_service}; the result is {result.status} and names {named}"


def _produce(settings: Settings, incident: Incident) -> tuple[int, int]:
    """Sends the telemetry; returns its bytes and its o200k tokens."""
    size = tokens = 0
    with kafka.producing(settings) as producer:
        for payload in incident.payloads:
            text = json.dumps(payload)
            size += len(text)
            tokens += count_tokens(text)
            producer.send(settings.raw[0], text.encode())
    return size, tokens


def _wait_for_intake(err: Console, supervisor: Supervisor, settings: Settings, port: int, messages: int) -> int:
    """Follows the intake worker's own metrics until every message is taken; returns the records it made."""
    taken = f'hyve_records_in_total{{topic="{settings.raw[0]}"}}'
    made = f'hyve_records_out_total{{topic="{settings.topic("telemetry")}"}}'
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    end = time.monotonic() + READY_SECONDS
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("workers join, telemetry is normalised", total=messages)
        while time.monotonic() < end:
            supervisor.check()
            seen = scrape(port)
            progress.update(task, completed=int(seen.get(taken, 0)))
            if seen.get(taken, 0) >= messages:
                return int(seen.get(made, 0))
            time.sleep(0.15)
    raise HyveError(f"the intake worker did not take the telemetry within {READY_SECONDS:.0f} s")


def scrape(port: int) -> dict[str, float]:
    """A worker's metrics by sample; empty while it doesn't answer."""
    try:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=2.0).text
    except httpx.HTTPError:
        return {}
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def _fire(supervisor: Supervisor, port: int, incident: Incident) -> Alert:
    """Delivers the webhook; returns its (first) alert."""
    body = json.dumps(incident.alert).encode()
    end = time.monotonic() + READY_SECONDS
    said = ""
    while time.monotonic() < end:
        supervisor.check()
        try:
            answer = httpx.post(f"http://127.0.0.1:{port}{PATH}", content=body, timeout=20.0)
        except httpx.HTTPError as error:
            said = str(error)
        else:
            if answer.is_success:
                return parse(body).alerts[0]
            said = f"{answer.status_code} {answer.text[:200]}"
            if answer.status_code < 500:
                break
        time.sleep(0.2)
    raise HyveError(f"the webhook did not take the alert: {said}")


def _as_json(result: DiagnosisResult, incident: Incident, fault: str, seconds: float, tokens: int) -> dict[str, Any]:
    return {
        "ok": not fault,
        "reason": fault,
        "scenario": incident.scenario,
        "seed": incident.seed,
        "faulty_service": incident.faulty_service,
        "seconds": round(seconds, 1),
        "raw_tokens": tokens,
        "result": json.loads(result.to_bytes()),
    }


def _say(err: Console, began: float, text: str) -> None:
    err.print(f"{time.monotonic() - began:5.1f} s  {text}", style="dim", soft_wrap=True, markup=False)


@contextmanager
def _spinner(err: Console, text: str) -> Iterator[None]:
    if not err.is_terminal:
        yield
        return
    with err.status(text):
        yield
