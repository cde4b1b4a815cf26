"""Raw records for tests of the intake, and what it makes of one."""

from __future__ import annotations

import json
from typing import Any

from streams.app import Incoming
from streams.intake import Intake

BASE = 1_700_000_000_000_000_000


def spans(service: str, peer: str | None, *times: int) -> dict[str, Any]:
    attributes = [] if peer is None else [{"key": "peer.service", "value": {"stringValue": peer}}]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": f"{i + 1:032x}",
                                "spanId": f"{i + 1:016x}",
                                "name": "GET /",
                                "kind": 3,
                                "startTimeUnixNano": str(time),
                                "endTimeUnixNano": str(time + 5_000_000),
                                "attributes": attributes,
                            }
                            for i, time in enumerate(times)
                        ]
                    }
                ],
            }
        ]
    }


def incoming(value: bytes) -> Incoming:
    return Incoming("hyve.raw", 3, 17, value, timestamp=1_700_000_009_000)


def one(value: Any, key: bytes | None = None, **headers: str) -> tuple[str, str, int, dict[str, Any]]:
    """(signal, entity, time in seconds, row) of the one record that a value gives."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    record = Incoming(
        "raw", 0, 0, body, key, 1_700_000_009_000, {k.replace("_", "-"): v.encode() for k, v in headers.items()}
    )
    (out,) = Intake().normalise(record)
    wire = json.loads(out.value)
    assert out.key == wire["entity"].encode()
    return wire["signal"], wire["entity"], wire["time"] // 10**9, wire["row"]
