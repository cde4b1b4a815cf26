"""What Kafka's client and the broker alone take: one of two processes that hand records on and do nothing else.

`python -m tests.bench.floor store|llm ADDRESS PREFIX FOLDER` reads the topics that the worker of that kind reads and
answers each record with those that the worker would send, whose values are the files of FOLDER, by topic. The clients
are set as the workers' are: lz4, all acknowledgements, a commit a second.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

NEXT = {
    "store": {"requests": ("prompts",), "queries": ("results", "metrics")},
    "llm": {"prompts": ("queries",)},
}


async def relay(kind: str, address: str, prefix: str, folder: Path) -> None:
    """Runs until it is ended."""
    next_ = {
        f"{prefix}.{topic}": [(f"{prefix}.{name}", (folder / name).read_bytes()) for name in names]
        for topic, names in NEXT[kind].items()
    }
    consumer = AIOKafkaConsumer(
        *next_,
        bootstrap_servers=address,
        group_id=f"{prefix}-{kind}",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1000,
        fetch_max_wait_ms=1500,
    )
    producer = AIOKafkaProducer(bootstrap_servers=address, acks="all", compression_type="lz4")
    async with consumer, producer:
        while True:
            polled = await consumer.getmany(timeout_ms=1000, max_records=16)
            sent = [
                await producer.send(name, value, key=record.key)
                for records in polled.values()
                for record in records
                for name, value in next_[record.topic]
            ]
            if sent:
                await asyncio.gather(*sent)


if __name__ == "__main__":
    asyncio.run(relay(*sys.argv[1:4], Path(sys.argv[4])))
