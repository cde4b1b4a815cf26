"""Statements as data: hostile ones with what their refusal must say, harmless ones, and the store they run over.

`hostile.tsv`, `endless.tsv`: a statement, a tab, and words of its error (of `endless`: words of which some, between
bars). `harmless.sql`: a statement a line. `## ` begins a heading. `<U+000A>` stands for that character, `{secret}` for
the path of a file.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from hyve import sql

_HERE = Path(__file__).parent

TABLES = (
    "analytics", "contacts", "employees", "events", "flags", "items", "logs", "metrics", "odd name", "orders",
    "repositories", "spans",
)  # fmt: skip
"""What a statement may read. `store` has one table more, `hidden`."""


def hostile(name: str) -> list[tuple[str, str]]:
    """Pairs of a statement and what its error must say."""
    pairs = (line.rsplit("\t", 1) for line in _lines(f"{name}.tsv"))
    return [(_characters(statement), _characters(says)) for statement, says in pairs]


def harmless() -> list[str]:
    """Statements that must run."""
    return [_characters(line) for line in _lines("harmless.sql")]


def _lines(name: str) -> list[str]:
    text = (_HERE / name).read_text(encoding="ascii" if name.endswith(".tsv") else "utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("## ")]


def _characters(text: str) -> str:
    return re.sub(r"<U\+([0-9A-F]{4})>", lambda match: chr(int(match[1], 16)), text)


def store(memory_limit: str = "500MB") -> duckdb.DuckDBPyConnection:
    """A locked database as a request has one, with small tables."""
    connection = sql.connect(memory_limit=memory_limit)
    for statement in (_HERE / "store.sql").read_text(encoding="utf-8").split(";\n"):
        connection.execute(statement)
    sql.lock(connection)
    return connection
