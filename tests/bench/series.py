"""A request of 171 KB over three series, parse to prompt, warm, on one core: `python -m tests.bench.series [--runs N]`.

Three columns of 768 `{"x": time, "y": value}` points, 2,304 rows in all, one of them a spike. Prints the median and the
95th percentile of the milliseconds, the median of the processor's (which others at work on the machine do not change
much), and where the time goes (see `sections`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import hyve
from streams.bench_truth import QUESTION
from tests.bench.sections import sections, table, times

_POINTS = 768


def request(seed: int = 1) -> bytes:
    """The request's bytes."""
    draw = random.Random(seed)
    start = datetime(2026, 4, 7, tzinfo=UTC)
    columns: list[dict[str, Any]] = []
    for name, level in (("checkout_latency_p99_ms", 180), ("orders_per_minute", 420), ("db_pool_in_use", 35)):
        points = [
            {
                "x": (start + timedelta(minutes=5 * i)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "y": round(level * (1 + 0.2 * math.sin(i / 40)) + draw.gauss(0, level / 30), 9),
            }
            for i in range(_POINTS)
        ]
        columns.append({"name": name, "column": points})
    columns[0]["column"][511]["y"] = 2417.538192661
    return json.dumps({"query": "service overview", "series": columns}, indent=1).encode()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--budget", type=int, default=hyve.DEFAULT_BUDGET)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    data = request()

    def call() -> hyve.Prompt:
        return hyve.view(data, QUESTION, options.budget)

    for _ in range(5):
        prompt = call()
    found = times(call, options.runs)
    wall, cpu = sorted(ms for ms, _ in found), sorted(ms for _, ms in found)
    p50, p95 = wall[len(wall) // 2], wall[min(len(wall) - 1, len(wall) * 95 // 100)]
    size = f"{len(data) / 1000:,.0f} KB, {3 * _POINTS:,} rows"
    print(f"{size}: {prompt.original_tokens:,} tokens became {prompt.prompt_tokens:,}")
    print(f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, least {wall[0]:.1f} ms, CPU p50 {cpu[len(cpu) // 2]:.1f} ms")
    print(f"{len(wall)} runs\n")
    print(table(sections(call, 20), 25))


if __name__ == "__main__":
    main()
