"""Python's cycle collector, held off where values are read or made of others."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Holds off Python's cycle collector: reading makes many containers and no cycles, and each pass would walk all."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
