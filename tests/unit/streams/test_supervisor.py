"""The supervisor: restarts what dies, gives up in the end, leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hyve.errors import HyveError
from streams.supervisor import Supervisor, last_words

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        supervisor.start("one", SLEEP, {})
        first = supervisor.pid("one")
        assert until(lambda: (tmp_path / "one.log").read_text() == "up\n")
        os.kill(first, signal.SIGKILL)
        assert until(lambda: supervisor.starts("one") == 2)
        second = supervisor.pid("one")
        assert second != first
        supervisor.check()
    assert not runs(first)
    assert not runs(second)


def test_a_process_that_keeps_dying_fails_the_run_with_its_last_words(tmp_path: Path) -> None:
    with Supervisor(tmp_path, restarts=2) as supervisor:
        supervisor.start("bad", [sys.executable, "-c", "print('port is taken'); raise SystemExit(7)"], {})
        assert until(lambda: bool(supervisor.failure))
        with pytest.raises(HyveError, match="worker bad ended with status 7: port is taken"):
            supervisor.check()
        assert supervisor.starts("bad") == 3


def test_bad_settings_are_not_tried_again(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        supervisor.start("bad", [sys.executable, "-c", "raise SystemExit(2)"], {})
        assert until(lambda: bool(supervisor.failure))
        assert supervisor.starts("bad") == 1
        assert "its log is empty" in supervisor.failure


def test_a_process_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    program = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); time.sleep(60)"
    )
    with Supervisor(tmp_path, grace=0.5) as supervisor:
        supervisor.start("stubborn", [sys.executable, "-c", program], {})
        assert until(lambda: (tmp_path / "stubborn.log").read_text().strip().isdigit())
        leader = supervisor.pid("stubborn")
        child = int((tmp_path / "stubborn.log").read_text())
        assert runs(child)
    assert until(lambda: not runs(leader) and not runs(child), 3)


def test_workers_see_their_standard_input_close_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from streams.supervisor import Supervisor

        worker = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
        with Supervisor(Path({str(tmp_path)!r})) as supervisor:
            supervisor.start("w", [sys.executable, "-c", worker], {{}})
            print("up", flush=True)
            time.sleep(60)
    """)
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        log = tmp_path / "w.log"
        assert until(lambda: log.exists() and log.read_text().strip().isdigit())
        pid = int(log.read_text())
        assert runs(pid)
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: not runs(pid))


def test_last_words_are_the_last_line_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert last_words(log) == "its log is empty"
    log.write_text("one\ntwo\n\n   \n")
    assert last_words(log) == "two"
