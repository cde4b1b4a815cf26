"""Where the time of parse to prompt goes: `python -m tests.bench.sections [--question Q] FILE ...`.

One table a file: milliseconds of each function of HYVE by itself under cProfile, the largest first, and the sum by
module. What a function calls outside of HYVE (DuckDB, Arrow, the tokeniser, ...) counts as its own, and so do
comprehensions, statements (`fetch`) and counts of tokens. The profiler makes Python code slower than it is and leaves
DuckDB's time as it is, so the plain time stands above for scale.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hyve
from streams.bench_truth import QUESTION

_HOME = str(Path(hyve.__file__).parent)
_PASSED_ON = ("columns", "fetch", "count_tokens", "quote")
Function = tuple[str, int, str]


def times(call: Callable[[], Any], runs: int) -> list[tuple[float, float]]:
    """Milliseconds of each of `runs` calls: (by the clock, of the processor)."""
    found = []
    for _ in range(runs):
        began, worked = time.perf_counter(), time.process_time()
        call()
        found.append(((time.perf_counter() - began) * 1000, (time.process_time() - worked) * 1000))
    return found


def sections(call: Callable[[], Any], runs: int = 5) -> dict[str, float]:
    """Milliseconds of one call by function of HYVE, such as "store._load", the largest first."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(runs):
        call()
    profile.disable()
    stats: dict[Function, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    own = {function: figures[2] for function, figures in stats.items()}
    for _ in range(40):  # time outside of HYVE moves to its callers until it reaches HYVE
        moved = False
        for function, figures in stats.items():
            amount, callers = own[function], figures[4]
            if _counts(function) or not callers or amount < 1e-7:
                continue
            whole = sum(each[2] for each in callers.values()) or 1.0
            own[function] = 0.0
            for caller, each in callers.items():
                share = each[2] / whole if whole != 1.0 or each[2] else 1 / len(callers)
                own[caller] = own.get(caller, 0.0) + amount * share
            moved = True
        if not moved:
            break
    found: Counter[str] = Counter()
    for (file, _, name), seconds in own.items():
        label = f"{Path(file).relative_to(_HOME).with_suffix('')}.{name}" if file.startswith(_HOME) else "elsewhere"
        found[label] += seconds * 1000 / runs
    return dict(found.most_common())


def _counts(function: Function) -> bool:
    """Whether a function has a line of its own; the time of all others is their callers'."""
    file, _, name = function
    return file.startswith(_HOME) and not name.startswith("<") and name not in _PASSED_ON


def table(found: dict[str, float], most: int = 14) -> str:
    """The largest sections and the sums by module, as Markdown."""
    modules: Counter[str] = Counter()
    for label, ms in found.items():
        modules[label.partition(".")[0]] += ms  # type: ignore[assignment]
    whole = sum(found.values())
    rows = [f"| {label} | {ms:,.1f} | {ms / whole:.0%} |" for label, ms in list(found.items())[:most]]
    sums = ", ".join(f"{module} {ms:,.0f}" for module, ms in modules.most_common(10))
    return "\n".join(["| function | ms | share |", "|---|---:|---:|", *rows, "", f"By module (ms): {sums}"])


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument("--budget", type=int, default=hyve.DEFAULT_BUDGET)
    options = parser.parse_args()
    for file in options.files:
        data = file.read_bytes()

        def call(data: bytes = data) -> None:
            hyve.view(data, options.question, options.budget)

        call()
        wall, cpu = (statistics.median(figures) for figures in zip(*times(call, 5), strict=True))
        print(f"\n**{file.name}**: {wall:,.0f} ms, CPU {cpu:,.0f} ms\n\n{table(sections(call, 3))}", flush=True)


if __name__ == "__main__":
    main()
