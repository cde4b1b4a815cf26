"""Makes `samples.ndjson`: the Kafka records of real producers, as the intake meets them.

    python -m tests.producers.make --bootstrap HOST:PORT --collector PATH --kcat kcat

Needs `opentelemetry-sdk`, `opentelemetry-exporter-otlp-proto-http` and `cloudevents` beside the test dependencies; an
OpenTelemetry Collector built (with `go.opentelemetry.io/collector/cmd/builder`) from the OTLP receiver, the file and
environment providers of configurations and the Kafka exporter of the contrib repository; kcat, which writes with
librdkafka; and an Apache Kafka of no other use (the embedded broker doesn't speak with librdkafka).

An instrumented program of our own sends one trace, two log records and its metrics to the collector by OTLP/HTTP; the
collector's Kafka exporter writes them to Kafka in each of its encodings; what stands in the topics then, with keys and
headers, are the samples.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from workers.broker import free_port, stop_group

SAMPLES = Path(__file__).with_name("samples.ndjson")
ENCODINGS = {"otlp_proto": "tlm", "otlp_json": "tlm", "zipkin_json": "t", "jaeger_json": "t"}
"""The exporter's encodings, and the signals (traces, logs, metrics) that it has them for."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SIGNALS = {"t": "traces", "l": "logs", "m": "metrics"}


def topic(encoding: str, signal: str) -> str:
    return f"{encoding}.{SIGNALS[signal]}"


def config(brokers: str, port: int) -> dict[str, Any]:
    """The collector's configuration: one pipeline a signal, one exporter an encoding."""
    exporters: dict[str, Any] = {}
    pipelines: dict[str, Any] = {name: {"receivers": ["otlp"], "exporters": []} for name in SIGNALS.values()}
    for encoding, signals in ENCODINGS.items():
        # Bodies are not packed again: Kafka's own compression is the client's business, not the record's.
        exporter: dict[str, Any] = {"brokers": [brokers], "include_metadata_keys": []}
        for signal in signals:
            exporter[SIGNALS[signal]] = {"topic": topic(encoding, signal), "encoding": encoding}
            pipelines[SIGNALS[signal]]["exporters"].append(f"kafka/{encoding}")
        exporters[f"kafka/{encoding}"] = exporter
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": exporters,
        "service": {"pipelines": pipelines, "telemetry": {"metrics": {"level": "none"}}},
    }


def emit(endpoint: str) -> None:
    """The instrumented program: checkout calls payments, which fails."""
    from opentelemetry import context, trace
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource({"service.name": "checkout", "service.version": "2.4.1", "host.name": "node-3"})
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    loggers = LoggerProvider(resource=resource)
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{endpoint}/v1/logs")))
    logger = loggers.get_logger("checkout.orders")

    def log(severity: SeverityNumber, body: Any, **attributes: Any) -> None:
        now = time.time_ns()
        logger.emit(
            LogRecord(
                timestamp=now,
                observed_timestamp=now + 1000,
                context=context.get_current(),
                severity_number=severity,
                severity_text=severity.name,
                body=body,
                attributes=attributes,
            )
        )

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{endpoint}/v1/metrics"), 60_000)
    exponential = View(instrument_name="queue.wait", aggregation=ExponentialBucketHistogramAggregation())
    meters = MeterProvider([reader], resource=resource, views=[exponential])
    meter = meters.get_meter("checkout.meter", "1.0")
    tracer = tracers.get_tracer("checkout.tracer", "1.0")

    with tracer.start_as_current_span(
        "POST /orders", kind=trace.SpanKind.SERVER, attributes={"http.request.method": "POST", "retry": 2, "cold": True}
    ) as server:
        log(SeverityNumber.INFO, "order A-1 taken", amount=12.5, items=["pen", "ink"], rush=True, raw=b"\x00\xff")
        with tracer.start_as_current_span(
            "POST /charge",
            kind=trace.SpanKind.CLIENT,
            attributes={"peer.service": "payments", "ratio": 0.25},
            links=[trace.Link(server.get_span_context(), {"why": "same order"})],
        ) as client:
            client.add_event("exception", {"exception.type": "TimeoutError", "exception.message": "no answer in 2 s"})
            client.set_status(trace.Status(trace.StatusCode.ERROR))
        log(SeverityNumber.ERROR, {"what": "charging failed", "order": "A-1", "tries": 3})
    meter.create_counter("orders", unit="1").add(3, {"result": "failed"})
    meter.create_up_down_counter("pool.used").add(16)
    meter.create_gauge("cpu.load").set(0.75, {"core": "0"})
    meter.create_histogram("http.server.duration", unit="ms").record(2004.5, {"route": "/orders"})
    waits = meter.create_histogram("queue.wait", unit="s")
    for value in (0.001, 0.5, 30.0):
        waits.record(value)
    for provider in (tracers, loggers, meters):
        provider.shutdown()


def collected(bootstrap: str, topics: list[str]) -> Iterator[dict[str, Any]]:
    """Every record of `topics`, as lines of the samples file."""
    consumer = KafkaConsumer(
        *topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=4000
    )
    for record in consumer:
        yield {
            "topic": record.topic,
            "key": None if record.key is None else base64.b64encode(record.key).decode(),
            "headers": {name: value.decode() for name, value in record.headers},
            "timestamp": record.timestamp,
            "value": base64.b64encode(record.value).decode(),
        }
    consumer.close()


def cloud_events(bootstrap: str) -> list[str]:
    """One CloudEvent in binary and one in structured mode, as the CloudEvents SDK writes them to Kafka."""
    from cloudevents.core.bindings.kafka import to_binary, to_structured  # type: ignore[import-not-found]
    from cloudevents.core.formats.json import JSONFormat  # type: ignore[import-not-found]
    from cloudevents.core.v1.event import CloudEvent  # type: ignore[import-not-found]

    attributes = {
        "id": "e-1",
        "source": "https://shop.example/orders",
        "type": "shop.order.rejected",
        "specversion": "1.0",
        "time": datetime(2026, 11, 20, 10, tzinfo=UTC),
        "datacontenttype": "application/json",
        "subject": "A-1",
        "partitionkey": "orders",
    }
    event = CloudEvent(attributes=attributes, data={"reason": "payments did not answer", "service": "orders"})
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for name, message in (
        ("binary", to_binary(event, JSONFormat())),
        ("structured", to_structured(event, JSONFormat())),
    ):
        key = message.key.encode() if isinstance(message.key, str) else message.key
        producer.send(f"cloudevents.{name}", message.value, key, headers=list(message.headers.items()))
    producer.flush()
    producer.close()
    return ["cloudevents.binary", "cloudevents.structured"]


def librdkafka(bootstrap: str, kcat: str) -> list[str]:
    """One record of five lines for each of Kafka's compressions."""
    line = '{"@timestamp":"2026-11-20T10:00:0%dZ","level":"error","message":"disk full","service":"stock"}\n'
    body = "".join(line % second for second in range(5))
    for codec in CODECS:
        command = [
            kcat,
            "-P",
            "-b",
            bootstrap,
            "-t",
            f"librdkafka.{codec}",
            "-k",
            "stock",
            "-H",
            "via=kcat",
            "-D",
            ";;",
        ]
        subprocess.run([*command, "-z", codec], input=body.encode(), check=True)
    return [f"librdkafka.{codec}" for codec in CODECS]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    options.add_argument("--bootstrap", required=True, help="host:port of an Apache Kafka")
    options.add_argument("--collector", required=True, help="the collector's program")
    options.add_argument("--kcat", default="kcat", help="kcat's program")
    given = options.parse_args()
    port = free_port()
    topics = [topic(encoding, signal) for encoding, signals in ENCODINGS.items() for signal in signals]
    admin = KafkaAdminClient(bootstrap_servers=given.bootstrap)
    more = ["cloudevents.binary", "cloudevents.structured", *(f"librdkafka.{codec}" for codec in CODECS)]
    admin.create_topics([NewTopic(name, 1, 1) for name in [*topics, *more]])
    with tempfile.TemporaryDirectory() as scratch:
        settings, said = Path(scratch, "collector.yaml"), Path(scratch, "collector.log")
        settings.write_text(json.dumps(config(given.bootstrap, port)))  # JSON is YAML
        with said.open("wb") as out:
            process = subprocess.Popen(
                [given.collector, f"--config=file:{settings}"], stdout=out, stderr=out, start_new_session=True
            )
        try:
            time.sleep(3)
            emit(f"http://127.0.0.1:{port}")
            time.sleep(3)
            topics += cloud_events(given.bootstrap) + librdkafka(given.bootstrap, given.kcat)
            lines = list(collected(given.bootstrap, topics))
        finally:
            stop_group(process, 5.0)
        missing = set(topics) - {line["topic"] for line in lines}
        if missing:
            sys.exit(f"nothing came to {sorted(missing)}:\n{said.read_text()[-3000:]}")
    lines.sort(key=lambda line: (line["topic"], line["timestamp"]))
    SAMPLES.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))
    print(f"{len(lines)} records, {SAMPLES.stat().st_size} bytes: {SAMPLES}")


if __name__ == "__main__":
    main()
