"""Tokens and milliseconds of `hyve.view` on files: `python -m tests.bench.savings [--budget N] FILE_OR_FOLDER ...`.

One line a file: o200k tokens of the source, of the whole prompt (instructions, tools and question included), the share
saved, and the milliseconds from bytes to prompt (median of three, warm). Ends with the median share over files of more
than 20 KB. A folder is searched for files; without any, HYVE_CORPUS/real is.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import hyve

QUESTION = "Which entries look abnormal, and why?"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--budget", type=int, default=hyve.DEFAULT_BUDGET)
    options = parser.parse_args()
    corpus = os.environ.get("HYVE_CORPUS")
    roots = [Path(path) for path in options.paths] or ([Path(corpus) / "real"] if corpus else [])
    if not roots:
        sys.exit("name files or folders, or set HYVE_CORPUS")
    files = sorted(
        file
        for root in roots
        for file in (root.rglob("*") if root.is_dir() else [root])
        if file.is_file() and file.suffix != ".md"
    )
    print("| file | KB | tokens | prompt | saved | whole | ms |\n|---|---:|---:|---:|---:|---|---:|")
    shares, over = [], 0
    for file in files:
        data = file.read_bytes()
        times = []
        for _ in range(3):
            began = time.perf_counter()
            prompt = hyve.view(data, question=QUESTION, budget=options.budget)
            times.append((time.perf_counter() - began) * 1000)
        saved = prompt.savings
        over += saved.prompt > options.budget
        if len(data) > 20_000:
            shares.append(saved.saved)
        print(
            f"| {file.parent.name}/{file.name} | {len(data) / 1000:,.0f} | {saved.original:,} | {saved.prompt:,} "
            f"| {saved.saved:.1%} | {'no' if prompt.cut else 'yes'} | {statistics.median(times):,.0f} |"
        )
    if shares:
        print(f"\n{len(files)} files, {over} above the budget of {options.budget:,}; median saved over 20 KB: ", end="")
        print(f"{statistics.median(shares):.1%} ({len(shares)} files)")


if __name__ == "__main__":
    main()
