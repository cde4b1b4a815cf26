"""`hyve ask`, `hyve view` and `hyve sql`: one request in this process, without Kafka; `hyve request`: one with it.

Data comes from files (`-` is standard input). Answers go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyve.errors import InputError, ModelError

if TYPE_CHECKING:
    from hyve.reply import Model, ModelReply

Files = Annotated[
    list[str], typer.Option("--file", "-f", help="A file of machine data; - is standard input. May be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Tokens = Annotated[
    int, typer.Option("--budget", "-b", min=1, max=1_000_000, help="Most o200k tokens of the whole prompt.")
]

MAX_BYTES = 1 << 30

_MENDED = frozenset({"truncated", "repaired", "elided", "unparsed"})


def finite(value: float) -> float:
    """Refuses what is no number: it lies within all bounds."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number of them")
    return value


class _Watched:
    """A model that keeps the error of a server that refused its key."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        self.refused: ModelError | None = None

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        try:
            return await self._model.complete(messages, tools)
        except ModelError as error:
            if error.kind == "auth":
                self.refused = error
            raise


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")] = "",
    file: Files = [],  # noqa: B006 - Typer reads the default, nothing changes it
    budget: Tokens = 4000,
    json_: Json = False,
) -> None:
    """Diagnose files: one question, one answer with evidence.

    Asks the model that HYVE_LLM_BASE_URL, HYVE_LLM_MODEL and HYVE_LLM_API_KEY name. Without one the rules analyst
    answers.
    """
    from hyve import masked, stages
    from schemas import DiagnosisResult
    from workers import settings
    from workers.route import configured

    loaded = settings.load()
    client = configured(loaded)
    model = None if client is None else _Watched(client)
    redact, keep_masked = loaded.redaction
    request = stages.Request(question, _payloads(file), budget, redact=redact, keep_masked=keep_masked)

    async def run() -> Any:
        began = time.perf_counter()
        store = stages.load(request.payloads)
        ms = (time.perf_counter() - began) * 1000
        with store:
            async with nullcontext() if client is None else aclosing(client):
                found = await stages.diagnose(request, store, model)
            asked = masked.told(store, question)
        return replace(found, ms={**found.ms, **{name: found.ms[name] + ms for name in ("prepare", "total")}}), asked

    found, asked = asyncio.run(run())
    if model is not None and model.refused is not None:
        raise model.refused  # settings to mend: an answer of the rules would hide it
    result = DiagnosisResult.of(found, request_id=str(uuid.uuid4()), question=asked, finished=int(time.time() * 1000))
    if json_:
        typer.echo(result.model_dump_json())
        return
    from rich.console import Console

    from streams import report

    console = Console(highlight=False)
    console.print(report.answered_line(loaded, result), markup=False, soft_wrap=True)
    report.show(result, console)


def view(
    file: Files = [],  # noqa: B006
    question: Annotated[str, typer.Option("--question", "-q", help="What the prompt is for.")] = "",
    budget: Tokens = 4000,
    ablation: Annotated[
        list[str], typer.Option(help="no-rank, no-truncation, toon or no-postprocessing: to see what each is worth.")
    ] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Show the compact prompt for files, the tables behind it, and the tokens saved."""
    from hyve import stages

    began = time.perf_counter()
    store, prompt = stages.prepare(stages.Request(question, _payloads(file), budget, ablation=frozenset(ablation)))
    ms = (time.perf_counter() - began) * 1000
    with store:
        tables = store.catalog.tables
    if json_:
        typer.echo(
            json.dumps(
                {
                    "prompt": prompt.text,
                    "tokens": {"original": prompt.savings.original, "prompt": prompt.savings.prompt},
                    "tables": [
                        {"name": table.name, "columns": [column.name for column in table.columns], "rows": table.rows}
                        for table in tables
                    ],
                    "flags": list(prompt.flags),
                    "ms": round(ms, 3),
                }
            )
        )
        return
    from rich.console import Console

    from streams import report

    console = Console(highlight=False, soft_wrap=True)
    for line in prompt.text.split("\n"):
        console.print(report.clean(line), markup=False)
    console.rule("[bold]Tables")
    rows = [(table.name, table.rows, len(table.columns), table.path, table.kind) for table in tables[:40]]
    names = ("table", "rows", "columns", "from", "kind")
    console.print(report.rows_table(names, rows, len(tables), width=console.width))
    saved = prompt.savings
    read = (
        "shown whole, as far as it could be read" if _MENDED.intersection(prompt.flags) else "shown whole, nothing cut"
    )
    said = f"{saved.saved:.1%} saved" if prompt.cut else read
    console.print(
        f"{saved.original:,} tokens of data became a prompt of {saved.prompt:,} (budget {budget:,}): "
        f"{said}; {ms:,.0f} ms",
        style="bold",
        markup=False,
    )
    if prompt.flags:
        console.print(f"Met while reading: {', '.join(prompt.flags)}", markup=False)


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT over the file's tables (see `hyve view`).")],
    file: Files = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Run one read-only SELECT over the tables that files become."""
    from hyve import stages

    with stages.load(_payloads(file)) as store:
        result = store.query(statement)
    if json_:
        found: dict[str, Any] = {"columns": list(result.columns), "rows": [list(row) for row in result.rows]}
        if result.total_rows > len(result.rows):
            found["total_rows"] = result.total_rows
            typer.echo(f"hyve: the first {len(result.rows):,} of {result.total_rows:,} rows", err=True)
        typer.echo(json.dumps(found))
        return
    from rich.console import Console

    from streams import report

    console = Console(highlight=False)
    console.print(report.rows_table(result.columns, result.rows, result.total_rows, width=console.width))
    console.print(f"{result.total_rows:,} row{'s' * (result.total_rows != 1)}, {result.ms:,.1f} ms", style="dim")


def request(
    question: Annotated[str, typer.Argument(help="What you want to know.")] = "",
    file: Files = [],  # noqa: B006
    budget: Tokens = 4000,
    focus: Annotated[list[str], typer.Option(help="A service, host or pod it is about. May be repeated.")] = [],  # noqa: B006
    answer: Annotated[bool, typer.Option("--answer", help="It is a question, not an incident to diagnose.")] = False,
    seconds: Annotated[
        float,
        typer.Option("--wait", min=0, max=86_400, callback=finite, help="How long to wait; 0 only prints the id."),
    ] = 300.0,
    id_: Annotated[
        str,
        typer.Option("--id", help="Its request_id. Asked the same again, it has the same result; all else is refused."),
    ] = "",
    json_: Json = False,
) -> None:
    """Put a question about files to the running pipeline (HYVE_BOOTSTRAP_SERVERS), and wait for its result.

    Ends with status 2 where the result is that it failed.
    """
    from streams import submit
    from workers import settings

    loaded = settings.load()
    made = submit.request(
        loaded,
        question,
        _payloads(file),
        request_id=id_,
        kind="answer" if answer else "diagnosis",
        focus=focus,
        budget=budget,
        seconds=seconds or None,
    )
    submit.send(loaded, made)
    if not seconds:
        typer.echo(made.request_id)
        return
    found = submit.result(loaded, made, seconds)
    if json_:
        typer.echo(found.model_dump_json())
    else:
        from rich.console import Console

        from streams import report

        report.show(found, Console(highlight=False))
    if found.status == "failed":
        raise typer.Exit(2)


def _payloads(files: list[str]) -> tuple[Any, ...]:
    """The files' bytes as payloads, named by their stems."""
    from hyve.stages import Payload

    if not files:
        raise InputError("no data was given: name a file with --file F (or --file - for standard input)")
    if files.count("-") > 1:
        raise InputError("standard input can be read once: give --file - only once")
    payloads: list[Payload] = []
    for name in files:
        stem = "stdin" if name == "-" else Path(name).name.split(".")[0] or Path(name).name
        taken = {payload.name for payload in payloads}
        label, number = stem, 1
        while label in taken:
            number += 1
            label = f"{stem}_{number}"
        payloads.append(Payload(label, _read(name)))
    if not any(payload.data.strip() for payload in payloads):
        which = "standard input" if files == ["-"] else ", ".join(files)
        raise InputError(f"{which} is empty: there is nothing to look at")
    return tuple(payloads)


def _read(name: str) -> bytes:
    try:
        if not name:
            raise InputError("--file names no file: give a path, or - for standard input")
        if name == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            path = Path(name)
            if path.is_dir():
                raise InputError(f"{name} is a folder: name the files in it")
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than {MAX_BYTES >> 20} MiB: split it")
    return data


__all__ = ["ask", "request", "sql", "view"]
