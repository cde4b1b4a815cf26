"""`hyve demo` and the worker commands as a user runs them: exit status, output, and nothing left running."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from streams.incident import generate
from tests.command import HYVE, environment

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.embedded]


def marked(marker: str) -> list[str]:
    """Command lines of running processes that carry the marker in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"HYVE_TEST_MARKER={marker}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def none_left(marker: str, seconds: float = 10.0) -> list[str]:
    end = time.monotonic() + seconds
    while (left := marked(marker)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def test_the_demo_names_the_faulty_service_and_leaves_nothing_running() -> None:
    done = subprocess.run(
        [*HYVE, "demo", "--scenario", "bad-config", "--seed", "7", "--json"],
        capture_output=True,
        text=True,
        timeout=150,
        env=environment(HYVE_TEST_MARKER="demo"),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["ok"] is True
    assert said["faulty_service"] == generate("bad-config", 7, 0).faulty_service
    assert said["faulty_service"] in [cause["entity"] for cause in said["result"]["root_causes"]]
    assert said["result"]["tokens"]["original"] > 100_000
    assert done.stderr.splitlines()[0].startswith("Analyst: the built-in rules analyst")
    assert "Traceback" not in done.stderr
    assert none_left("demo") == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_demo_that_is_stopped_stops_all_it_started(number: signal.Signals, status: int, tmp_path: Path) -> None:
    marker = f"stopped-{number.name}"
    demo = subprocess.Popen(
        [*HYVE, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(HYVE_TEST_MARKER=marker, TMPDIR=str(tmp_path)),
    )
    assert demo.stderr is not None
    while "workers: intake" not in (line := demo.stderr.readline()):
        assert line, "the demo ended by itself"
    time.sleep(1.5)
    assert len(marked(marker)) >= 5, "the demo, the broker, its guard and three workers"
    demo.send_signal(number)
    _, err = demo.communicate(timeout=30)
    assert demo.returncode == status
    assert "Traceback" not in err
    assert none_left(marker, 25) == []
    if number != signal.SIGKILL:
        assert list(tmp_path.glob("hyve-*")) == [], "temporary files stayed"


def test_a_port_that_is_taken_is_one_line(broker: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for kind, name in (("llm", "HYVE_METRICS_PORT"), ("intake", "HYVE_HTTP_PORT")):
            env = environment(HYVE_BOOTSTRAP_SERVERS=broker, HYVE_TOPIC_PREFIX="ports", **{name: port})
            done = subprocess.run(
                [*HYVE, "worker", kind], capture_output=True, text=True, timeout=30, env=env, check=False
            )
            assert done.returncode == 2
            assert done.stderr.startswith("hyve: can't serve ")
            assert f":{port} (Address already in use): set HYVE_" in done.stderr
            assert done.stderr.count("\n") == 1
