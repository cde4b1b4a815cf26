"""The command line: helps at once, fails with one line and status 2."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from streams.cli import Scenario, app
from streams.incident import SCENARIOS
from tests.command import HYVE, environment
from workers.broker import free_port


def hyve(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HYVE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(COLUMNS="100", **env),
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [(), ("demo",), ("ask",), ("view",), ("sql",), ("worker",), ("worker", "intake"), ("worker", "store"),
     ("worker", "llm"), ("topics",), ("topics", "create"), ("topics", "list"),
     ("deadletters",), ("deadletters", "list"), ("deadletters", "show"), ("deadletters", "replay")],
)  # fmt: skip
def test_every_command_has_help(arguments: tuple[str, ...]) -> None:
    done = hyve(*arguments, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout
    assert "stop-with-stdin" not in done.stdout


def test_help_loads_nothing_slow() -> None:
    """What takes a second to import is imported by the commands that need it."""
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from streams.cli import main; main()"
    command = [sys.executable, "-c", program, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    loaded = set(done.stdout.split())
    assert "streams.cli" in loaded
    slow = {"duckdb", "pyarrow", "faust", "aiokafka", "kafka", "aiohttp", "httpx", "sqlglot", "numpy", "pandas"}
    assert not loaded & slow


@pytest.mark.parametrize("command", [("topics", "list"), ("topics", "create"), ("worker", "store"), ("worker", "llm")])
def test_an_unreachable_broker_is_one_line(command: tuple[str, ...]) -> None:
    address = f"127.0.0.1:{free_port()}"
    done = hyve(*command, HYVE_BOOTSTRAP_SERVERS=address, HYVE_CONNECT_TIMEOUT="0.5")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"hyve: cannot reach a Kafka broker at {address}: is it running? "
        "Check HYVE_BOOTSTRAP_SERVERS (host:port, by commas)\n"
    )


def test_bad_settings_are_one_line() -> None:
    done = hyve("worker", "intake", HYVE_BUDGET="x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("hyve: bad settings: HYVE_BUDGET: ")


def test_an_unknown_scenario_names_the_known_ones() -> None:
    done = hyve("demo", "--scenario", "nonsense")
    assert done.returncode == 2
    assert "pool-exhaustion" in done.stderr


def test_the_scenarios_are_those_of_the_generator() -> None:
    assert tuple(item.value for item in Scenario) == SCENARIOS


def numbers(of: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every option that takes a number, and the command that has it."""
    for group in of.registered_groups:
        yield from numbers(group.typer_instance, (*path, str(group.name)))
    for command in of.registered_commands:
        function: Any = command.callback
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
            kind, *told = get_args(parameter.annotation) or (parameter.annotation,)
            if kind in (int, float):
                named = [it for info in told for it in (info.default, *(info.param_decls or ()))]
                option = next((it for it in named if str(it).startswith("--")), f"--{name}")
                yield (*path, command.name or function.__name__), option


NUMBERS = sorted(numbers(app))


def test_there_are_numbers_to_look_at() -> None:
    assert {(("request",), "--wait"), (("request",), "--budget"), (("deadletters", "list"), "--hours")} <= set(NUMBERS)


@pytest.mark.parametrize("value", ["inf", "nan", "-5", "1e308", "9" * 400, "\u0661e99", ""])
@pytest.mark.parametrize(("path", "option"), NUMBERS)
def test_no_number_is_without_bounds(path: tuple[str, ...], option: str, value: str) -> None:
    done = CliRunner().invoke(app, [*path, f"{option}={value}"])
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    assert f"Invalid value for '{option}'" in done.output
