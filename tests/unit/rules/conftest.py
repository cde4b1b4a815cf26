"""Prints the table of the seeds test at the end of the run, whatever is captured."""

from __future__ import annotations

import pytest

TABLE = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash.setdefault(TABLE, [])


@pytest.fixture(scope="session")
def tables(request: pytest.FixtureRequest) -> list[str]:
    """Tables to print at the end of the run."""
    return request.config.stash.setdefault(TABLE, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for table in config.stash.get(TABLE, []):
        terminalreporter.section("rules analyst on generated incidents")
        terminalreporter.write_line(table)
