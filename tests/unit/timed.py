"""Processor time of work of two sizes, by which tests tell linear time from quadratic."""

from __future__ import annotations

import time
from collections.abc import Callable

from hyve.collector import collector_paused


def seconds(work: Callable[[], object]) -> float:
    """What one run takes. Without Python's cycle collector: a pass over all tests' objects takes longer than a text."""
    with collector_paused():
        begun = time.process_time()
        work()
        return time.process_time() - begun
