"""What travels on HYVE's Kafka topics: one frozen pydantic model a record, and the table of topics.

Imports nothing of ours, so that any client can use it. `python -m schemas` writes the JSON Schema files in
`schemas/json/`; a test fails where they and the models drift apart.
"""

from __future__ import annotations

from schemas.records import (
    Account,
    Alert,
    DeadLetter,
    DiagnosisRequest,
    DiagnosisResult,
    Fill,
    FillMapping,
    Payload,
    Position,
    PromptReady,
    Record,
    RequestMetrics,
    StoreCommand,
    TelemetryRecord,
    ToolCall,
)
from schemas.topics import TOPICS, Topic

__all__ = [
    "TOPICS",
    "Account",
    "Alert",
    "DeadLetter",
    "DiagnosisRequest",
    "DiagnosisResult",
    "Fill",
    "FillMapping",
    "Payload",
    "Position",
    "PromptReady",
    "Record",
    "RequestMetrics",
    "StoreCommand",
    "TelemetryRecord",
    "ToolCall",
    "Topic",
]
