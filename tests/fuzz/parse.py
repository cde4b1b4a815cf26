"""Fuzzing of `hyve.parse` and the store: `python -m tests.fuzz.parse [SECONDS [CORPUS]]`, by default for 60 seconds.

Needs atheris, which is no dependency of the tests: it has wheels for Linux on x86-64 only. CORPUS is a directory that
takes the inputs that reached something new, for the next run. The input that broke a promise is left in the working
directory as `crash-<digest>`; `python -m tests.fuzz.parse crash-<digest>` tries it again, without atheris.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random


def main(arguments: list[str]) -> int:
    """Fuzzes, or tries one file."""
    if arguments and Path(arguments[0]).is_file():
        from tests.fuzz.target import check

        check(Path(arguments[0]).read_bytes())
        return 0
    try:
        import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        print("atheris is missing: pip install atheris (wheels for Python 3.11 to 3.14 on Linux x86-64)")
        return 2
    with atheris.instrument_imports(include=["hyve"]):  # before anything imports the library
        from tests.fuzz import target

    others = [path.read_bytes() for path in target.seeds()]
    words = target.tokens()

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.3:
            return bytes(atheris.Mutate(data, size))
        return target.mutated(data, random, others, words)[:size]

    with tempfile.TemporaryDirectory() as made:
        options = [
            f"-max_total_time={arguments[0] if arguments else 60}",
            f"-max_len={target.MOST_BYTES}",
            f"-dict={target.HERE / 'tokens.dict'}",
            "-timeout=30",
            "-rss_limit_mb=4096",
            arguments[1] if len(arguments) > 1 else made,
            str(target.HERE / "seeds"),
        ]
        atheris.Setup(["parse", *options], target.check, custom_mutator=mutate)
        atheris.Fuzz()  # ends the process
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
