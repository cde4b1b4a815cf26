"""A model that says what it was told to, asked about 3,000 rows in which one service is slow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import hyve
from hyve import stages
from hyve.reply import ModelReply, ToolCall

ROWS = [{"service": "cart" if i % 3 else "ledger", "ms": 10 if i % 3 else 900, "n": i} for i in range(3000)]
REQUEST = stages.Request("what is slow?", (stages.Payload("rows", json.dumps(ROWS)),), 1500)
SLOW = "SELECT service, avg(ms) AS ms FROM records GROUP BY service ORDER BY ms DESC"


class Scripted:
    """A model that says what it was told to, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *replies: ModelReply | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        self.asked.append(([dict(message) for message in messages], [dict(tool) for tool in tools]))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def answer(**fields: Any) -> ModelReply:
    return ModelReply(json.dumps({"status": "conclusive", "summary": "ledger is slow", **fields}))


def query(sql: str) -> ModelReply:
    return ModelReply("", (ToolCall("c1", "query_datastore", json.dumps({"sql": sql})),))


async def run(model: Scripted | None) -> hyve.Diagnosis:
    with stages.load(REQUEST.payloads) as store:
        return await hyve.diagnose(REQUEST, store, model)
