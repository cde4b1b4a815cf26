"""Whether more budget only gains: `python -m tests.bench.gains [PATH ...] [--step 50] [--least 500] [--most 8000]`.

Each input (files, those of folders, or generated ones where none is named) is shown at every budget from `--least` to
`--most`, and each view compared with the one before. Prints for each: steps with a cut view, rows lost, lines lost,
cells shortened, and the share of the budget that is unused (median, largest, and tokens at the largest). Ends with
status 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import hyve
from hyve import prompt
from tests.unit import gains
from tests.unit.gains_inputs import inputs


def main() -> None:
    """Prints the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--step", type=int, default=50)
    parser.add_argument("--least", type=int, default=500)
    parser.add_argument("--most", type=int, default=8_000)
    parser.add_argument("--question", default="why is it slow?")
    parser.add_argument("--verbose", action="store_true", help="print what was lost and where much is unused")
    parser.add_argument("--quiet", action="store_true", help="print only inputs of which something was lost")
    options = parser.parse_args()
    budgets = range(options.least, options.most + 1, options.step)
    print("| input | steps | rows lost | lines lost | cells shortened | unused p50 | max | at |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    total, shares = 0, []
    for name, text in _texts(options.paths):
        steps, before, rows, lines, cells, unused = 0, None, 0, 0, 0, []
        try:
            with hyve.Datastore.from_text(text) as store:
                for budget in budgets:
                    try:
                        shown = prompt.build(store, options.question, budget=budget)
                    except hyve.BudgetError:
                        continue
                    assert shown.prompt_tokens <= budget, (name, budget)
                    if not shown.cut:
                        break
                    view = gains.read(shown.text)
                    lost = gains.Lost() if before is None else gains.lost(before, view)
                    if options.verbose and lost:
                        print(f"  {name} at {budget}:", *lost.rows, *lost.lines, *lost.cells, sep="\n    ")
                    free = budget - shown.prompt_tokens
                    if options.verbose and free > max(40, budget * 0.02):
                        print(f"  {name} at {budget}: {free} tokens are unused")
                    before, steps = view, steps + 1
                    rows, lines, cells = rows + len(lost.rows), lines + len(lost.lines), cells + len(lost.cells)
                    unused.append(((budget - shown.prompt_tokens) / budget, budget))
        except hyve.InputError as error:
            print(f"| {name} | {error} |")
            continue
        total += rows + lines + cells
        if not unused or (options.quiet and not rows + lines + cells):
            shares += unused
            continue
        share, at = max(unused)
        middle = statistics.median(share for share, _ in unused)
        shares += unused
        print(f"| {name} | {steps} | {rows} | {lines} | {cells} | {middle:.2%} | {share:.2%} | {at} |", flush=True)
    if shares:
        middle, largest = statistics.median(share for share, _ in shares), max(shares)
        print(f"\n{total} lost; unused: median {middle:.2%}, most {largest[0]:.2%} at {largest[1]}")
        over = sum(share * at > max(40, at * 0.02) for share, at in shares)
        print(f"{over} of {len(shares)} views leave more than 40 tokens and 2% unused")
    sys.exit(bool(total))


def _texts(paths: list[Path]) -> Iterator[tuple[str, str | bytes]]:
    if not paths:
        yield from inputs().items()
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if file.name not in ("truth.json", "INDEX.md"):
                yield str(file.relative_to(path) if path.is_dir() else file.name), file.read_bytes()


if __name__ == "__main__":
    main()
