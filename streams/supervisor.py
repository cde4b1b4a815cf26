"""Runs the broker and the workers as processes of the operating system, and leaves none behind.

Rules:
- Each process leads its own process group and holds the reading end of a pipe: it ends when it is told
  to, and also when this process is gone, even by SIGKILL.
- A worker that dies is started again, at most `restarts` times; after that the run fails with the end of
  its log.
- Stopping is SIGTERM, a grace period, then SIGKILL, for the whole group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType

from hyve.errors import HyveError
from workers.broker import stop_group


@dataclass
class _Child:
    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes]
    starts: int = 1


@dataclass
class Supervisor:
    """Context manager around worker processes; their logs are `logs/<name>.log`."""

    logs: Path
    restarts: int = 3
    grace: float = 8.0
    _children: dict[str, _Child] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _watcher: threading.Thread | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    failure: str = ""

    def __enter__(self) -> Supervisor:
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts a process under `name`; `env` is added to this process's environment."""
        log = self.logs / f"{name}.log"
        with self._lock:
            if self._stopping.is_set():
                raise HyveError("the supervisor is stopping")
            child = _Child(name, tuple(command), dict(env), log, self._spawn(command, env, log))
            self._children[name] = child

    def pid(self, name: str) -> int:
        """Process id of the running process of that name."""
        return self._children[name].process.pid

    def starts(self, name: str) -> int:
        """How often that process was started."""
        return self._children[name].starts

    def check(self) -> None:
        """Raises `HyveError` where a process could not be kept running."""
        if self.failure:
            raise HyveError(self.failure)

    def stop(self) -> None:
        """Ends every process. Safe to call twice."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join(5.0)
        with self._lock:
            children = list(self._children.values())
            self._children.clear()
        for child in children:
            if child.process.stdin is not None:
                with contextlib.suppress(OSError):
                    child.process.stdin.close()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGTERM)
        end = time.monotonic() + self.grace
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.1, end - time.monotonic()))
            stop_group(child.process, grace=0.1)

    def _spawn(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **env},
                start_new_session=True,
            )

    def _watch(self) -> None:
        while not self._stopping.wait(0.2):
            with self._lock:
                for child in self._children.values():
                    code = child.process.poll()
                    if code is None or self.failure:
                        continue
                    if child.starts > self.restarts or code == 2:
                        self.failure = f"worker {child.name} ended with status {code}: {last_words(child.log)}"
                        continue
                    stop_group(child.process, grace=0.1)
                    child.process = self._spawn(child.command, child.env, child.log)
                    child.starts += 1


def last_words(log: Path) -> str:
    """The last line of a log that says something."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return lines[-1][:400]
    return "its log is empty"


def worker_command(kind: str) -> list[str]:
    """The command line that runs one worker under a supervisor."""
    return [sys.executable, "-m", "streams.cli", "worker", kind, "--stop-with-stdin"]


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise `KeyboardInterrupt`, so that who holds processes ends them on the way out.

    SIGINT too: a shell starts its background jobs with SIGINT ignored, and Python then leaves it so.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
