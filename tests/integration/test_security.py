"""TLS and SASL: every client of every process proves who it is, checks the broker, and tells the password to nobody."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.supervisor import Supervisor
from tests.command import HYVE, environment
from tests.integration.brokers import TIMEOUTS, JarNode, jars
from tests.integration.pipeline import Pipeline
from workers import kafka
from workers.broker import free_port
from workers.settings import load

pytestmark = pytest.mark.apache

PASSWORD = "not-for-any-log-77"
_LOGIN = "org.apache.kafka.common.security"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings for a node that has a listener for known users alone, over TLS, by an authority of its own."""
    if not shutil.which("java"):
        pytest.skip("needs Java 17: a broker of its own settings")
    folder = tmp_path_factory.mktemp("secured")
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-subj", "/CN=test", "-days", "2")  # fmt: skip
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "node.key", "-out", "node.csr", "-subj", "/CN=n")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl(folder, "x509", "-req", "-in", "node.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "node.pem", "-days", "2", "-extfile", "names")  # fmt: skip
    both = folder / "both.pem"
    both.write_text((folder / "node.key").read_text() + (folder / "node.pem").read_text())
    address = f"127.0.0.1:{free_port()}"
    more = {
        "listeners": f"SASL_SSL://{address}",
        "advertised.listeners": f"SASL_SSL://{address}",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{_LOGIN}.plain.PlainLoginModule required user_hyve="{PASSWORD}";'
        ),
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
    }
    node = JarNode(folder, jars(), more)
    node.start()
    try:
        yield {
            "HYVE_BOOTSTRAP_SERVERS": address,
            "HYVE_SECURITY_PROTOCOL": "SASL_SSL",
            "HYVE_SASL_USERNAME": "hyve",
            "HYVE_SASL_PASSWORD": PASSWORD,
            "HYVE_SSL_CAFILE": str(folder / "ca.pem"),
        }
    finally:
        node.stop()


def test_the_whole_pipeline_runs_over_tls_with_a_password(
    secured: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in secured.items():
        monkeypatch.setenv(name, value)
    with Supervisor(tmp_path) as supervisor:
        pipeline = Pipeline(secured["HYVE_BOOTSTRAP_SERVERS"], "secured", supervisor, {}, TIMEOUTS)
        pipeline.start("intake", "store", "llm")
        pipeline.send("raw", None, b'{"service": "cart", "message": "x"}')
        pipeline.ask("r", [{"a": 1}])
        assert pipeline.result("r").status == "inconclusive"
        assert len(pipeline.records("telemetry")) == 1
        logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "worker store" in logs
    assert PASSWORD not in logs


@pytest.mark.parametrize("changed", [{"HYVE_SASL_PASSWORD": "wrong-password-5"}, {"HYVE_SSL_CAFILE": ""}])
@pytest.mark.parametrize("command", [("topics", "list"), ("worker", "llm")])
def test_what_the_broker_or_we_refuse_is_one_line(
    secured: dict[str, str], changed: dict[str, str], command: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [*HYVE, *command],
        capture_output=True, text=True, timeout=60, check=False, env=environment(**{**secured, **changed}),
    )  # fmt: skip
    assert "and HYVE_SECURITY_PROTOCOL, HYVE_SASL_* and HYVE_SSL_*" in done.stderr
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "wrong-password-5" not in done.stderr
    assert PASSWORD not in done.stderr


def test_settings_and_clients_show_no_password(secured: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in secured.items():
        monkeypatch.setenv(name, value)
    settings = load()
    kafka.topic_names(settings)
    assert PASSWORD not in repr(settings) + settings.model_dump_json()
