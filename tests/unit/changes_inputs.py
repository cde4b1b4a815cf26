"""Rows of requests, columns in which nothing changes, and what a view of such rows shows."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hyve
from tests.unit import gains

START = datetime(2026, 1, 31, 12)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat() + "Z"


def data_of(value: Any, budget: int = 1500) -> str:
    return gains.data_of(hyve.view(json.dumps(value), "", budget).text)


def rows_in(text: str) -> list[int]:
    return [int(row) for row in re.findall(r"^(\d+)\|", text, re.MULTILINE)]


def requests(seed: int, count: int = 2_000) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "ts": at(i),
            "host": f"web-{rng.integers(4)}",
            "region": str(rng.choice(["eu", "us"])),
            "latency": round(float(rng.normal(100, 10)), 2),
            "trace": f"{int(rng.integers(2**63)):016x}",
            "msg": f"request {rng.integers(10**6)} handled in {rng.integers(100)} ms",
        }
        for i in range(count)
    ]


def calm(rng: np.random.Generator, count: int) -> dict[str, NDArray[np.float64]]:
    """Numbers that have no level that changes."""
    noise, i = rng.normal(size=count), np.arange(count)
    return {
        "noise": noise,
        "tailed": np.exp(1.5 * noise),
        "student": rng.standard_t(2, size=count),
        "either": np.where(rng.random(count) < 0.3, noise + 50, noise),
        "trend": i * 20 / count + noise,
        "bent": (i / count) ** 2 * 30 + noise,
        "walk": np.cumsum(noise),
        "walking": np.cumsum(noise) * 0.3 + rng.normal(size=count),
        "season": np.sin(2 * np.pi * 3 * i / count + rng.random() * 6) * 5 + noise,
        "slow": np.sin(np.pi * i / count + rng.random() * 6) * 5 + noise,
        "days": np.sin(2 * np.pi * 20 * i / count) * 50 + noise,
        "jobs": np.where(i % (count // 15) < count // 60, 30.0, 0.0) + noise,
        "louder": noise * np.where(i > count // 2, 5, 1),
        "burst": noise + 10 * ((i > count // 2) & (i < count // 2 + 4)),
        "events": rng.poisson(0.1, count).astype(float),
        "spikes": np.where(rng.random(count) < 0.02, 100 * rng.random(count), 0),
        "constant": np.full(count, 7.5),
        "total": np.cumsum(rng.exponential(size=count)),
        "reset": np.concatenate([np.cumsum(rng.exponential(size=part)) for part in (count // 3, count - count // 3)]),
        "key": 5_000.0 + i * 7,
    }


def drawn(rng: np.random.Generator, share: Any, count: int) -> NDArray[np.int64]:
    """Rows that are of a kind with so large a share, one by one."""
    return (rng.random(count) < share).astype(np.int64)


def lasting(rng: np.random.Generator, share: float, run: int, count: int) -> NDArray[np.int64]:
    """The same, drawn anew once in so many rows."""
    fresh = rng.random(count) * run < 1
    fresh[0] = True
    return drawn(rng, share, count)[np.maximum.accumulate(np.where(fresh, np.arange(count), 0))]


def calm_kinds(rng: np.random.Generator, count: int) -> dict[str, NDArray[np.int64]]:
    """Kinds of which no share changes for good."""
    i = np.arange(count) / count
    phase = 2 * np.pi * rng.random()
    return {
        "even": drawn(rng, 0.5, count),
        "rare": drawn(rng, 0.01, count),
        "few": drawn(rng, 0.002, count),
        "five": rng.choice(5, count, p=[0.4, 0.3, 0.2, 0.07, 0.03]),
        "twelve": rng.choice(12, count, p=[0.89, *[0.01] * 11]),
        "lasting": lasting(rng, 0.5, 5, count),
        "lasting, rare": lasting(rng, 0.05, 5, count),
        "lasting long": lasting(rng, 0.5, max(5, count // 100), count),
        "drift": drawn(rng, 0.1 + 0.2 * i, count),
        "far drift": drawn(rng, 0.2 + 0.6 * i, count),
        "rare drift": drawn(rng, 0.01 + 0.09 * i, count),
        "season": drawn(rng, 0.3 + 0.2 * np.sin(2 * np.pi * i + phase), count),
        "seasons": drawn(rng, 0.3 + 0.2 * np.sin(6 * np.pi * i + phase), count),
        "rare seasons": drawn(rng, 0.03 + 0.025 * np.sin(6 * np.pi * i + phase), count),
        "turns": np.arange(count) % 3,
        "jobs": (np.arange(count) % 50 == 0).astype(np.int64),
        "few in a row": drawn(rng, 0.01, count) | (np.abs(np.arange(count) - int(count * rng.random())) < 3),
    }
