"""A real Apache Kafka for tests and benchmarks: one KRaft node, started and stopped by who asks for it.

`apache_kafka(folder)` takes the first of these that can be had:
- `HYVE_TEST_BOOTSTRAP` (host:port): a Kafka that runs already; nothing is started.
- Docker: the image `apache/kafka` by testcontainers.
- Java 17 and Maven: the server's jars, resolved once into a cache (`HYVE_TEST_CACHE`, by default
  `~/.cache/hyve`) and kept there between runs.

Rules: ports are free ones on loopback; data and log stay in `folder`; whatever is started ends with its owner,
even by SIGKILL. `NoKafka` says what is missing. A node that was started here can be stopped and started again on
the same address with its data, as a broker that restarts.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from kafka import KafkaAdminClient

from hyve.errors import HyveError
from tests.processes import children
from workers import kafka as calls
from workers.broker import GUARD, free_port, stop_group
from workers.settings import load

VERSION = "4.3.0"
HEAP = "512m"
READY_SECONDS = 90.0

TIMEOUTS = {"HYVE_REBALANCE_TIMEOUT": "30", "HYVE_SESSION_TIMEOUT": "6", "HYVE_HEARTBEAT_INTERVAL": "1"}
"""Settings of workers on it: a dead one is noticed in 6 seconds, a busy one has 30 to end its work."""

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>hyve</groupId><artifactId>kafka-node</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


class NoKafka(HyveError):
    """No Apache Kafka can be had here; the text says what was looked for."""


class Node(Protocol):
    """A Kafka that answers on `address` between `start` and `stop`. `can_restart`: it may be stopped and started."""

    address: str
    can_restart: bool
    log: Path | None

    def start(self) -> None: ...

    def stop(self, *, kill: bool = False) -> None: ...


class RunningNode:
    """A Kafka of somebody else's: it is neither started nor stopped."""

    can_restart = False
    log: Path | None = None

    def __init__(self, address: str) -> None:
        self.address = address

    def start(self) -> None:
        """Raises `HyveError` where it doesn't answer."""
        calls.topic_names(load(bootstrap_servers=self.address, connect_timeout=15.0))

    def stop(self, *, kill: bool = False) -> None:
        """Leaves it as it is."""


class _Started:
    """Ports, settings and the wait for an answer: what is the same in a container and in a process."""

    can_restart = True

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = folder / "kafka.log"

    def properties(self, listen: str, controller: int) -> dict[str, str]:
        """The server's settings. Topics are only made by who declares them; the rest is Kafka's defaults."""
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": f"PLAINTEXT://{listen}:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }

    def dead(self) -> str:
        """Why the node can't answer any more, or ""."""
        return ""

    def await_answer(self) -> None:
        """Returns when the node answers an admin's question. Raises `NoKafka` with the end of its log."""
        end = time.monotonic() + READY_SECONDS
        settings = load(bootstrap_servers=self.address, connect_timeout=5.0)
        while True:
            try:
                calls.list_topics(settings)
                return
            except HyveError as error:
                why = self.dead() or (str(error) if time.monotonic() > end else "")
            if why:
                raise NoKafka(f"Apache Kafka {VERSION} did not start: {why}; its log is {self.log}")
            time.sleep(0.2)


class ContainerNode(_Started):
    """The image `apache/kafka` under Docker."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from testcontainers.core.container import DockerContainer

        container: Any = DockerContainer(f"apache/kafka:{VERSION}").with_bind_ports(self.port, self.port)
        settings = {**self.properties("0.0.0.0", 9093), "log.dirs": "/var/lib/kafka/data"}
        for name, value in settings.items():
            container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
        self._container = container.with_env("KAFKA_HEAP_OPTS", f"-Xmx{HEAP}")
        self._made = False

    def start(self) -> None:
        """Starts the container, or starts it again."""
        if self._made:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._made = True
        self.await_answer()

    def stop(self, *, kill: bool = False) -> None:
        """Stops the container; its data stays in it until the process that made it ends."""
        if self._made:
            made = self._container.get_wrapped_container()
            self.log.write_bytes(made.logs())
            made.kill() if kill else made.stop()


class JarNode(_Started):
    """A process of Java, from jars of the cache."""

    def __init__(self, folder: Path, jars: Path, more: Mapping[str, str] | None = None) -> None:
        """`more` are settings of the server beside those of every node, or in their place."""
        super().__init__(folder)
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        self._config = folder / "server.properties"
        settings = {**self.properties("127.0.0.1", free_port()), "log.dirs": str(folder / "data")}
        for name, value in (more or {}).items():  # to a list of listeners one more is added
            settings[name] = f"{settings[name]},{value}" if "listener" in name and name in settings else value
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # An id that begins with a dash would be read as an option.
        self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", f"--config={self._config}")

    def _java(self, *arguments: str) -> list[str]:
        logging = "-Dorg.slf4j.simpleLogger"
        options = [
            f"{logging}.defaultLogLevel=warn",
            f"{logging}.showDateTime=true",
            f"{logging}.dateTimeFormat=HH:mm:ss.SSS",
        ]
        return ["java", f"-Xmx{HEAP}", "-XX:+UseSerialGC", *options, "-cp", f"{self._jars}/*", *arguments]

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(self._java(*arguments), capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
            raise NoKafka(f"{arguments[0]} of Apache Kafka {VERSION} failed: {words[0][:300]}")

    def dead(self) -> str:
        if self._process is None or self._process.poll() is None:
            return ""
        words = [line for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()][-1:]
        return words[0][:300] if words else "it said nothing"

    @property
    def pids(self) -> list[int]:
        """The guard's children: the node among them."""
        return [] if self._process is None else children(self._process.pid)

    def start(self) -> None:
        """Starts the node on its address, with the data that it has."""
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "hyve-kafka", *self._java("kafka.Kafka", str(self._config))],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.await_answer()
        except BaseException:
            self.stop(kill=True)
            raise

    def stop(self, *, kill: bool = False) -> None:
        """Ends the node: SIGTERM with time to close its files, or SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None:
            process.stdin.close()  # the guard tells the node to end, and ends with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20.0)
        stop_group(process, grace=0.0)


def jars() -> Path:
    """The folder of the server's jars; resolved by Maven where the cache lacks them."""
    cache = Path(os.environ.get("HYVE_TEST_CACHE") or Path.home() / ".cache" / "hyve")
    folder = cache / f"kafka-{VERSION}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise NoKafka(f"{folder} does not exist and Maven (mvn) is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    # Resolved beside its place and moved there whole: a run that is cut short leaves no half of a cache.
    with (cache / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=cache) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():  # another run was faster
            return folder
        pom, made = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(_POM)
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={made}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            words = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line][:1] or ["no reason"]
            raise NoKafka(f"Maven could not resolve Apache Kafka {VERSION}: {words[0][:300]}")
        made.rename(folder)
    return folder


def _docker() -> bool:
    """Whether a Docker engine answers."""
    if shutil.which("docker") is None:
        return False
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def choose(folder: Path) -> Node:
    """The node that can be had here, not started yet. Raises `NoKafka`."""
    running = os.environ.get("HYVE_TEST_BOOTSTRAP")
    if running:
        return RunningNode(running)
    folder.mkdir(parents=True, exist_ok=True)
    if _docker():
        return ContainerNode(folder)
    if shutil.which("java") is None:
        raise NoKafka(
            f"Apache Kafka {VERSION} needs a Docker engine, or Java 17 and Maven, or HYVE_TEST_BOOTSTRAP=host:port "
            "of one that runs: none is here"
        )
    return JarNode(folder, jars())


class ApacheKafka:
    """Context manager: a Kafka on `address` while it is open."""

    def __init__(self, folder: Path) -> None:
        self.node = choose(folder)

    @property
    def address(self) -> str:
        """host:port to give to clients."""
        return self.node.address

    @property
    def pids(self) -> list[int]:
        """Processes of the broker, where it was started here from jars; else none."""
        return self.node.pids if isinstance(self.node, JarNode) else []

    def __enter__(self) -> ApacheKafka:
        self.node.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.node.stop()

    def forget(self, run_id: str) -> None:
        """Deletes the topics whose name holds `run_id`, where the broker goes on running without us."""
        if isinstance(self.node, RunningNode):
            admin = KafkaAdminClient(bootstrap_servers=self.address)
            admin.delete_topics([name for name in admin.list_topics() if run_id in name])
            admin.close()

    def restart(self, *, kill: bool = False, pause: float = 0.0) -> None:
        """Stops the broker (`kill`: by SIGKILL), waits `pause` seconds, and starts it again."""
        self.node.stop(kill=kill)
        time.sleep(pause)
        self.node.start()


__all__ = ["TIMEOUTS", "ApacheKafka", "NoKafka"]
