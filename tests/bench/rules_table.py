"""Prints how often the rules analyst is right: `python tests/bench/rules_table.py [first seed] [number of seeds]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main(arguments: list[str]) -> int:
    from tests.unit.rules import rules_seeds

    first, number = (int(arguments[i]) if len(arguments) > i else default for i, default in ((0, 0), (1, 30)))
    begun = time.perf_counter()
    outcomes = list(rules_seeds.evaluate_all(range(first, first + number)))
    print(rules_seeds.table(outcomes))
    for stage in ("generate", "formats", "load", "rules"):
        took = sorted(outcome.ms[stage] for outcome in outcomes)
        print(f"{stage:<10} median {took[len(took) // 2]:6.0f} ms  max {took[-1]:6.0f} ms")
    records = sorted(outcome.records for outcome in outcomes)
    print(f"records    {records[0]} to {records[-1]}; {len(outcomes)} incidents in {time.perf_counter() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
