"""The fuzz target over its seeds, and over a few hundred mutations of them that are the same in every run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from hyve import Document, parse
from tests.fuzz import target

SEEDS = {path.name: path.read_bytes() for path in target.seeds()}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(name: str) -> None:
    target.check(SEEDS[name])


@pytest.mark.parametrize("name", SEEDS)
def test_mutations_of_seeds(name: str) -> None:
    random = Random(name)
    others, words = list(SEEDS.values()), target.tokens()
    for _ in range(8):
        data = target.mutated(SEEDS[name], random, others, words)
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"the input: {data!r}")
            raise


def test_the_check_sees_what_is_lost() -> None:
    document = parse("before\n[1, 2]\nafter")
    assert target.lost(document) == ""
    assert target.lost(Document(document.text, document.parts, document.lines[:1])) == "after"
    assert target.lost(Document(document.text, document.parts, (*document.lines, (4, "x")))) == "!x"
    other = (document.lines[0], (3, "aft"))
    assert target.lost(Document(document.text, document.parts, other)) == "after"


def test_a_file_is_tried_without_atheris(tmp_path: Path) -> None:
    (tmp_path / "crash").write_bytes(b'{"a": 1}')
    command = [sys.executable, "-m", "tests.fuzz.parse", str(tmp_path / "crash")]
    assert subprocess.run(command, cwd=target.HERE.parent.parent, check=False).returncode == 0
