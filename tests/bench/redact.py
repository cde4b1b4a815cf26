"""Redaction, as Markdown: `python -m tests.bench.redact FOLDER [--rounds N]`.

For each file of FOLDER: megabytes a second of the processor's time in which `Redactor.mask` reads its text, and what a
first prompt of 4,000 tokens takes without and with redaction (the store is there already), taking turns, the best of N
rounds. The last file is generated: log lines that hold a password each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyve import Datastore, prompt
from hyve.masked import MaskedStore
from hyve.redact import Redactor

_LINES = "\n".join(
    f"2026-03-01T08:{i // 60 % 60:02d}:{i % 60:02d}Z ERROR db: user=u{i % 50} password=s3cret-{i} failed"
    for i in range(10_000)
)


def main() -> int:
    """Prints the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    texts = {path.name: path.read_text("utf-8", "replace") for path in sorted(given.folder.iterdir()) if path.is_file()}
    print(
        "| file | KB | secrets | mask, MB/s | prompt, ms | redacted, ms | ratio |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for name, text in {**texts, "10,000 lines with passwords": _LINES}.items():
        print(_row(name, text, given.rounds), flush=True)
    return 0


def _row(name: str, text: str, rounds: int) -> str:
    def make(shown: Datastore, mask: Callable[[str], str]) -> Any:
        return prompt.build(shown, mask("what fails?"))

    with Datastore.from_text(text) as store:
        secrets = Redactor()
        secrets.mask(text)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for label, work in {
                "mask": lambda: Redactor().mask(text),
                "plain": lambda: make(store, str),
                "redacted": lambda: MaskedStore(store, Redactor()).build(make),
            }.items():
                began = time.process_time()
                work()
                best[label] = min(best.get(label, 1e9), time.process_time() - began)
    return (
        f"| {name} | {len(text) / 1000:,.0f} | {secrets.found:,} | {len(text) / 1e6 / best['mask']:,.0f} "
        f"| {best['plain'] * 1000:,.0f} | {best['redacted'] * 1000:,.0f} | {best['redacted'] / best['plain']:.2f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
