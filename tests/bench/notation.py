"""Tokens of the notation beside JSON and TOON: `python -m tests.bench.notation [FOLDER]`, a Markdown table.

One line a dataset: o200k tokens as compact JSON, as TOON, as `hyve.notation.encode` writes it, its share of the cheaper
of the two, and the milliseconds of encoding (best of five). TOON is the `toon-format` package's text, or the text that
stands under `encoded/` beside `datasets/` where that is shorter and says the same: texts that were damaged on purpose
are no encodings of the data. Without FOLDER, the data sets under HYVE_CORPUS/toon.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import toon_format

from hyve import notation, strictjson
from hyve.tokens import count_tokens


def datasets(folder: Path) -> Iterator[tuple[Path, Any]]:
    """(file, value) of each JSON document under `folder`, in order of path."""
    files = sorted(folder.rglob("datasets/*.json")) or sorted(folder.rglob("*.json"))
    for file in files:
        found = strictjson.read(file.read_text(encoding="utf-8"))
        if found is not None:
            yield file, found[0]


def compact_json(value: Any) -> str:
    """The value as JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def cheapest_toon(file: Path, value: Any) -> int:
    """Tokens of the shortest TOON text of the value."""
    texts = [toon_format.encode(value)]
    origin = file.parent.parent / "encoded" / f"{file.stem}.toon"
    if origin.exists():
        text = origin.read_text(encoding="utf-8")
        try:
            if repr(toon_format.decode(text)) == repr(value):
                texts.append(text)
        except ValueError:
            pass
    return min(map(count_tokens, texts))


def milliseconds(value: Any) -> float:
    """Processor time of encoding, best of five."""
    times = []
    for _ in range(5):
        began = time.process_time()
        notation.encode([value])
        times.append(time.process_time() - began)
    return min(times) * 1000


def main() -> None:
    """Prints the table."""
    corpus = os.environ.get("HYVE_CORPUS")
    if len(sys.argv) < 2 and not corpus:
        sys.exit("name a folder, or set HYVE_CORPUS")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(str(corpus)) / "toon"
    print("| dataset | KB | JSON | TOON | notation | of the cheaper | ms |\n|---|---:|---:|---:|---:|---:|---:|")
    total = [0, 0, 0, 0]
    worst = 0.0
    for file, value in datasets(folder):
        text = compact_json(value)
        counts = [count_tokens(text), cheapest_toon(file, value), count_tokens(notation.encode([value]))]
        cheaper = min(counts[:2])
        worst = max(worst, counts[2] / cheaper)
        total = [a + b for a, b in zip(total, [*counts, cheaper], strict=True)]
        print(
            f"| {file.relative_to(folder).with_suffix('')} | {len(text) / 1000:.1f} | {counts[0]:,} | {counts[1]:,} "
            f"| {counts[2]:,} | {counts[2] / cheaper:.1%} | {milliseconds(value):.1f} |"
        )
    if total[3]:
        print(f"| total | | {total[0]:,} | {total[1]:,} | {total[2]:,} | {total[2] / total[3]:.1%} | |")
        print(f"\nThe worst is at {worst:.1%} of the cheaper of JSON and TOON.")


if __name__ == "__main__":
    main()
