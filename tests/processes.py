"""What Linux says of processes: their children, their memory and the processor time that they took."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def _times(pid: int) -> list[float]:
    """Processor seconds of a process in user and system mode, and of its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(it) / _TICK for it in fields[11:15]]


def cpu(pid: int) -> float:
    """Processor seconds of a process so far, without its children."""
    return sum(_times(pid)[:2])


def cpu_of_all(pid: int) -> float:
    """Processor seconds of a process, of its children that ended, and of all below it."""
    return sum(_times(pid)) + sum(map(cpu_of_all, children(pid)))


def machine_cpu() -> float:
    """Processor seconds of everything that runs here."""
    fields = [int(it) for it in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / _TICK  # user, nice, system, irq, softirq


def children(pid: int) -> list[int]:
    """Its direct children."""
    return [int(it) for task in Path(f"/proc/{pid}/task").glob("*/children") for it in task.read_text().split()]


def descendants(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(it for child in children(pid) for it in descendants(child))]


def store_processes(pid: int) -> list[int]:
    """The children of a store worker that hold stores."""
    return [child for child in children(pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def resident(pid: int) -> float:
    """Resident memory in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
