"""Worker processes for a test, on topics of their own, and what a test asks of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx

from schemas import DiagnosisRequest, DiagnosisResult, Payload
from streams.demo import scrape
from streams.supervisor import Supervisor, worker_command
from workers import kafka
from workers.broker import free_port
from workers.group import GroupReader
from workers.kafka import Stored
from workers.settings import Settings, load


class Pipeline:
    """Worker processes on topics with a prefix of their own."""

    def __init__(
        self, address: str, prefix: str, supervisor: Supervisor, env: dict[str, str], timeouts: dict[str, str]
    ) -> None:
        self.settings: Settings = load(bootstrap_servers=address, topic_prefix=prefix)
        self.supervisor = supervisor
        self.ports = {kind: free_port() for kind in ("intake", "store", "llm")}
        self.web = f"http://127.0.0.1:{(web := free_port())}"
        self._env = {
            **timeouts,
            "HYVE_BOOTSTRAP_SERVERS": address,
            "HYVE_TOPIC_PREFIX": prefix,
            "HYVE_HTTP_PORT": str(web),
            "HYVE_POOL_SIZE": "1",
            **env,
        }
        kafka.create_topics(self.settings)

    def environment(self, kind: str) -> dict[str, str]:
        """What a worker of that kind needs beside the environment of the test."""
        return {**self._env, "HYVE_METRICS_PORT": str(self.ports[kind])}

    def start(self, *kinds: str) -> Pipeline:
        for kind in kinds:
            self.supervisor.start(kind, worker_command(kind), self.environment(kind))
        return self

    def metric(self, kind: str, sample: str) -> float:
        return scrape(self.ports[kind]).get(sample, 0.0)

    def topic(self, name: str) -> str:
        return self.settings.topic(name)

    def send(self, topic: str, key: str | None, value: bytes, partition: int | None = None) -> tuple[int, int]:
        """Sends one record; its partition and offset."""
        with kafka.producing(self.settings) as producer:
            name = None if key is None else key.encode()
            sent = producer.send(self.topic(topic), value, key=name, partition=partition)
        done = sent.get(10)
        return done.partition, done.offset

    def ask(self, request_id: str, rows: list[dict[str, Any]], **fields: Any) -> bytes:
        """Sends one request over `rows`; the bytes of its record."""
        text = "\n".join(json.dumps(row) for row in rows)
        request = DiagnosisRequest(
            request_id=request_id,
            question="what is wrong?",
            payloads=(Payload(name="rows", text=text),),
            created=int(time.time() * 1000),
            **fields,
        )
        self.send("requests", request_id, request.to_bytes())
        return request.to_bytes()

    def result(self, request_id: str, seconds: float = 60.0) -> DiagnosisResult:
        found = kafka.wait_for(
            self.settings, self.topic("results"), request_id.encode(), seconds, self.supervisor.check
        )
        assert found is not None, f"no result for {request_id} within {seconds} s\n{self.logs()}"
        return DiagnosisResult.from_bytes(found.value)

    def records(self, topic: str) -> list[Stored]:
        """Everything that stands on a topic now."""
        settings = self.settings.model_copy(update={"collect_idle": 1.0})
        far = 4_000_000_000_000
        with kafka.RangeReader(settings, self.topic(topic), 0, far, time.monotonic() + 20) as reader:
            return list(reader.read(range(reader.partitions)))

    def acknowledged(self, kind: str, topic: str) -> None:
        """Waits until the worker has committed all that stands on a topic: what it dies of then takes nothing back."""
        name = self.topic(topic)
        ends = {(name, record.partition): record.offset + 1 for record in self.records(topic)}
        with closing(GroupReader(self.settings, f"{self.settings.topic_prefix}-{kind}")) as reader:
            until(lambda: all(it.committed >= ends[place] for place, it in reader.offsets(ends).items()))

    def logs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in self.supervisor.logs.glob("*.log"))

    def webhook(self, body: Any) -> httpx.Response:
        """Posts a webhook, waiting for the worker to listen."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        end = time.monotonic() + 40
        while True:
            try:
                return httpx.post(f"{self.web}/alerts", content=content, timeout=20)
            except httpx.ConnectError:
                assert time.monotonic() < end, self.logs()
                self.supervisor.check()
                time.sleep(0.2)


def until(condition: Callable[[], Any], seconds: float = 40.0) -> Any:
    """Waits for something true, and returns it."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
