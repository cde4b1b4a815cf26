"""The table of topics: name, key, record, partitions, clean-up, retention, largest message.

`requests` and `queries` must have the same number of partitions: partition p of both belongs to one store
worker. Names here are without the prefix (`HYVE_TOPIC_PREFIX`, "hyve" by default): "requests" stands for
"hyve.requests".
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.records import (
    Alert,
    DeadLetter,
    DiagnosisRequest,
    DiagnosisResult,
    PromptReady,
    Record,
    RequestMetrics,
    StoreCommand,
    TelemetryRecord,
)

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_MB = 1 << 20


@dataclass(frozen=True)
class Topic:
    """One topic. `retention_ms` counts from the record's timestamp; `max_bytes` bounds one message."""

    name: str
    key: str
    record: type[Record] | None
    partitions: int
    cleanup: str
    retention_ms: int
    max_bytes: int

    def config(self) -> dict[str, str]:
        """Topic settings as Kafka spells them."""
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(self.max_bytes),
        }


TOPICS: tuple[Topic, ...] = (
    Topic("raw", "any", None, 6, "delete", 6 * _HOUR, 32 * _MB),
    Topic("telemetry", "entity", TelemetryRecord, 6, "delete", 6 * _HOUR, 2 * _MB),
    Topic("alerts", "group", Alert, 6, "delete", 7 * _DAY, 2 * _MB),
    Topic("requests", "request_id", DiagnosisRequest, 6, "delete", _DAY, 64 * _MB),
    Topic("prompts", "request_id", PromptReady, 6, "delete", _DAY, 8 * _MB),
    Topic("queries", "request_id", StoreCommand, 6, "delete", _DAY, 8 * _MB),
    Topic("results", "request_id", DiagnosisResult, 6, "compact,delete", 30 * _DAY, 16 * _MB),
    Topic("metrics", "request_id", RequestMetrics, 6, "delete", 7 * _DAY, 2 * _MB),
    Topic("deadletters", "original key", DeadLetter, 6, "delete", 30 * _DAY, 96 * _MB),
)
