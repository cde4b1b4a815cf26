"""The views on other inputs of the same shapes: `python -m tests.bench.views_seeds MAKE_INPUTS [--seeds 1 2 3 4 5]`.

MAKE_INPUTS is a script that writes seeded inputs and their `truth.json` into the folder named as its argument, and
reads its seed from SEED. Prints one line a seed and input: tokens of the prompt, whether within the budget, needles,
entities and means shown, and what is amiss; then how many lines have nothing amiss.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hyve
from streams import bench


def main() -> None:
    """Prints the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("make_inputs", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--budget", type=int, default=hyve.DEFAULT_BUDGET)
    options = parser.parse_args()
    content = bench.tables("", options.budget)[0][1]
    shown = [(name, cell) for name, cell in content if name in ("input", "prompt", "needles", "named", "means")]
    print(f"| seed | {' | '.join(name for name, _ in shown)} | amiss |")
    print(f"|---:|---|{'---:|' * (len(shown) - 1)}---|")
    fine = lines = 0
    for seed in options.seeds:
        with tempfile.TemporaryDirectory(prefix="hyve-seeds-") as folder:
            command = [sys.executable, str(options.make_inputs), folder]
            subprocess.run(command, env={**os.environ, "SEED": str(seed)}, stdout=subprocess.DEVNULL, check=True)
            for case in bench.load(Path(folder)):
                found = bench.measure(case, options.budget, runs=1)
                amiss = bench.misses(found, options.budget)
                lines, fine = lines + 1, fine + (not amiss)
                print(f"| {seed} | {' | '.join(cell(found) for _, cell in shown)} | {'; '.join(amiss)} |", flush=True)
    print(f"\n{fine} of {lines} with nothing amiss")
    sys.exit(fine < lines)


if __name__ == "__main__":
    main()
