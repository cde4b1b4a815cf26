"""What a worker checks before it touches anything."""

from __future__ import annotations

import socket

import pytest

from hyve.errors import HyveError
from streams import worker
from streams.app import make_app
from streams.health import Health
from workers import kafka
from workers.pool import StorePool
from workers.settings import load


def test_port_0_is_a_free_one_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    settings = worker._with_port(load(http_port=0))
    assert 1024 <= settings.http_port <= 65535
    assert f"alerts to http://127.0.0.1:{settings.http_port}/alerts" in capsys.readouterr().err


def touched(*_: object) -> None:
    raise AssertionError("topics were created")


def test_a_port_that_is_taken_is_told_before_topics_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "create_topics", touched)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HyveError, match=rf"can't serve the webhook on 127\.0\.0\.1:{port} .*: set HYVE_HTTP_HOST"):
            worker.run("intake", load(http_port=port))


@pytest.mark.parametrize("kind", ["intake", "store", "llm"])
def test_a_claim_store_that_can_not_be_is_told_at_start(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "create_topics", touched)
    with pytest.raises(HyveError, match="HYVE_CLAIM_URL: 'ftp://x' is none of"):
        worker.run(kind, load(claim_url="ftp://x"))  # type: ignore[arg-type]


def test_only_who_serves_the_webhook_needs_its_port() -> None:
    """One environment may serve all workers, with any free port for the webhook."""
    for kind in ("store", "llm"):
        app = make_app(load(http_port=0), kind, buffer=4)
        assert not app.conf.web_enabled
    assert make_app(load(http_port=8_123), "intake", buffer=4, web=True).conf.web_port == 8_123


async def test_a_store_worker_joins_its_group_when_its_pool_can_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions that it takes before stand still meanwhile, though another worker had them."""
    told = []

    async def warm(pool: StorePool) -> None:
        told.append("warm")

    settings = load()
    health = Health(settings, "store")
    monkeypatch.setattr(StorePool, "warm", warm)
    monkeypatch.setattr(health, "there", told.append)
    app = worker._store(settings, health)
    assert told == []
    await app.on_first_start()  # Faust starts the consumer after it
    assert told == ["warm", "pool"]
