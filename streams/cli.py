"""The `hyve` command line.

Rules: a `HyveError` is one line on standard error and exit status 2, for every command; Faust, DuckDB and
the rest are imported by the command that needs them, so that `--help` is quick.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from streams import local
from streams.local import Json, Tokens, finite

if TYPE_CHECKING:
    from streams.worker import Kind

app = typer.Typer(
    name="hyve",
    help="An alert on Kafka becomes a diagnosis with evidence. Also for files, without Kafka.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
worker_app = typer.Typer(help="Run one worker of the pipeline (settings: HYVE_* variables).", no_args_is_help=True)
letters_app = typer.Typer(help="What could not be processed: list it, look at it, send it again.", no_args_is_help=True)
topics_app = typer.Typer(help="Create or list the pipeline's topics.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure HYVE on this machine.", no_args_is_help=True)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"hyve {importlib.metadata.version('hyve-diagnosis')}")
        raise typer.Exit


app.add_typer(worker_app, name="worker")
app.add_typer(topics_app, name="topics")
app.add_typer(letters_app, name="deadletters")
app.add_typer(bench_app, name="bench")

_SEEDS = (1 << 63) - 1
StopWithStdin = Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)]


class Scenario(StrEnum):
    """Faults that the demo can inject (checked against the generator by a test)."""

    POOL_EXHAUSTION = "pool-exhaustion"
    MEMORY_LEAK = "memory-leak"
    BAD_CONFIG = "bad-config"
    SLOW_DATABASE = "slow-database"
    HEALTHY = "healthy"


@app.command()
def demo(
    scenario: Annotated[Scenario, typer.Option(help="Which fault to inject.")] = Scenario.POOL_EXHAUSTION,
    seed: Annotated[int, typer.Option(min=0, max=_SEEDS, help="Varies services, times and noise.")] = 1,
    json_: Json = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep everything running until Ctrl-C.")] = False,
) -> None:
    """Play an incident through the whole pipeline, on an embedded broker, and print the diagnosis."""
    from streams import demo as play

    raise typer.Exit(play.run(scenario.value, seed, as_json=json_, keep=keep))


def _worker(kind: Kind, stop_with_stdin: bool) -> None:
    from streams import worker
    from workers import settings

    worker.run(kind, settings.load(), stop_with_stdin=stop_with_stdin)


@worker_app.command()
def intake(stop_with_stdin: StopWithStdin = False) -> None:
    """Raw topics to normalised telemetry; Alertmanager's webhook; alerts to requests."""
    _worker("intake", stop_with_stdin)


@worker_app.command()
def store(stop_with_stdin: StopWithStdin = False) -> None:
    """Requests to stores and prompts; the model's decisions to results."""
    _worker("store", stop_with_stdin)


@worker_app.command()
def llm(stop_with_stdin: StopWithStdin = False) -> None:
    """Prompts to the model, or to the rules analyst where none is configured."""
    _worker("llm", stop_with_stdin)


@topics_app.command("create")
def topics_create(json_: Json = False) -> None:
    """Create the topics that are missing."""
    from workers import kafka, settings

    loaded = settings.load()
    made = kafka.create_topics(loaded)
    if json_:
        typer.echo(json.dumps({name: "created" if new else "exists" for name, new in sorted(made.items())}))
    else:
        for name, new in sorted(made.items()):
            typer.echo(f"{name:<24} {'created' if new else 'exists'}")
    kafka.check_raw(loaded)


@topics_app.command("list")
def topics_list(json_: Json = False) -> None:
    """List the pipeline's topics and their partitions."""
    from workers import kafka, settings

    loaded = settings.load()
    found = kafka.list_topics(loaded)
    if json_:
        typer.echo(json.dumps(found))
        return
    if not found:
        typer.echo(f"no topics of HYVE at {loaded.bootstrap_servers}; `hyve topics create` makes them")
    for name, partitions in found.items():
        typer.echo(f"{name:<24} {partitions} partitions")


Hours = Annotated[float, typer.Option("--hours", min=0.01, max=24 * 31, callback=finite, help="How far back to look.")]
Stage = Annotated[str, typer.Option("--stage", help="Only what this stage gave up (intake, prepare, model, ...).")]
Of = Annotated[str, typer.Option("--topic", help="Only records of this topic.")]


@letters_app.command("list")
def deadletters_list(hours: Hours = 24.0, stage: Stage = "", topic: Of = "", json_: Json = False) -> None:
    """List dead letters: when, which record, which stage, why."""
    from rich.console import Console

    from streams import deadletters
    from workers import settings

    found = sorted(deadletters.find(settings.load(), hours, stage=stage, topic=topic), key=lambda it: it.record.failed)
    if json_:
        typer.echo(json.dumps([deadletters.described(letter) for letter in found], ensure_ascii=False))
    elif found and (console := Console()).is_terminal:
        console.print(deadletters.table(found))
    elif found:
        typer.echo(deadletters.listed(found))
    else:
        of = "".join(f" of {what} {name}" for what, name in (("stage", stage), ("topic", topic)) if name)
        typer.echo(f"no dead letters{of} in the last {hours:g} hours")


@letters_app.command("show")
def deadletters_show(
    letter: Annotated[str, typer.Argument(help="PARTITION:OFFSET, as `list` prints it.")],
    raw: Annotated[bool, typer.Option("--raw", help="Print the original record's bytes and nothing else.")] = False,
    json_: Json = False,
) -> None:
    """Show one dead letter with the record that could not be processed."""
    from rich.console import Console

    from streams import deadletters
    from workers import settings

    found = deadletters.get(settings.load(), letter)
    if raw:
        sys.stdout.buffer.write(found.value)
    elif json_:
        typer.echo(json.dumps(deadletters.described(found), ensure_ascii=False))
    else:
        deadletters.show(found, Console())


@letters_app.command("replay")
def deadletters_replay(
    letters: Annotated[list[str] | None, typer.Argument(help="PARTITION:OFFSET, one or more.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them; --hours, --stage, --topic narrow it.")] = False,
    hours: Hours = 24.0,
    stage: Stage = "",
    topic: Of = "",
    again: Annotated[bool, typer.Option("--again", help="With --all: those too that were replayed before.")] = False,
) -> None:
    """Send records to their topics again, once what made them fail is mended."""
    from hyve.errors import InputError
    from streams import deadletters
    from workers import settings

    if letters and all_:
        raise InputError("give either the names of dead letters or --all, not both")
    if not letters and not all_:
        raise InputError("name the dead letters to replay (see `hyve deadletters list`), or give --all")
    loaded = settings.load()
    if letters:
        sent, left = deadletters.replay(loaded, [deadletters.get(loaded, name) for name in dict.fromkeys(letters)]), 0
    else:
        sent, left = deadletters.replay_all(loaded, hours, stage=stage, topic=topic, again=again)
    typer.echo(f"{sent} record{'' if sent == 1 else 's'} sent again")
    if left:
        before = "" if again else "replayed before (--again sends those too), "
        typer.echo(f"{left} left: {before}of a record with a newer letter, or posted to the webhook")


class Peer(StrEnum):
    """Packages that the views can be compared with."""

    HEADROOM = "headroom"


class Ablated(StrEnum):
    """What the views can be made without (see `hyve.prompt.ABLATIONS`)."""

    NO_RANK = "no-rank"
    NO_TRUNCATION = "no-truncation"
    TOON = "toon"
    NO_POSTPROCESSING = "no-postprocessing"


@bench_app.command("views")
def bench_views(
    folder: Annotated[
        str, typer.Argument(help="A folder of machine data, or a file; without one inputs are made.")
    ] = "",
    budget: Tokens = 4000,
    only: Annotated[list[str], typer.Option(help="Only inputs whose name starts so. May be repeated.")] = [],  # noqa: B006
    rows: Annotated[int, typer.Option(min=1, max=10_000_000, help="Rows of each input that is made.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, max=_SEEDS, help="Varies the inputs that are made.")] = 1,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Timed runs of each input; the median counts.")] = 5,
    compare: Annotated[Peer | None, typer.Option(help="Run this package on the same inputs too.")] = None,
    headroom_python: Annotated[str, typer.Option(help="An interpreter that has headroom-ai installed.")] = "",
    ablation: Annotated[list[Ablated], typer.Option(help="Leave this out, to see what it is worth.")] = [],  # noqa: B006
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
    json_: Json = False,
) -> None:
    """Measure the views: tokens, what is shown of what must be, milliseconds, memory."""
    from streams import bench

    form = "json" if json_ else "markdown" if markdown else "table"
    bench.views(
        folder,
        budget=budget,
        only=only,
        rows=rows,
        seed=seed,
        runs=runs,
        compare=compare is not None,
        headroom_python=headroom_python,
        ablation=ablation,
        form=form,
    )


# What is asked about files: `ask`, `view` and `sql` need no Kafka.
for command in (local.ask, local.view, local.sql, local.request):
    app.command()(command)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except Exception as error:
        from hyve.errors import HyveError

        if isinstance(error, HyveError):
            said = str(error)
        elif isinstance(error, OSError):  # a full disk, a closed port: nothing of ours to explain
            said = error.strerror or str(error)
        else:
            raise
        from streams.logs import printable

        sys.stderr.write(f"hyve: {printable(' '.join(said.split()))}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
