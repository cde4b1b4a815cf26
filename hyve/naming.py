"""Names in SQL: of tables, of columns, and how they are quoted."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot

from hyve.shape import EXPANDED, FIELDS, INDEX, LIST, MAP, NUMBER, PAIRS, PARALLEL, TEXT, TIME, TYPED, Path


@lru_cache(maxsize=1)
def _keywords() -> frozenset[str]:
    """Words that DuckDB does not take unquoted as both a column and a table, found by asking its parser."""
    quoted = set()
    with duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": 1}) as connection:
        for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall():
            try:
                connection.extract_statements(f"SELECT {word}, t.{word} FROM {word} WHERE {word} = 1")
            except duckdb.Error:
                quoted.add(word)
    return frozenset(quoted)


@lru_cache(maxsize=4096)
def quote(name: str) -> str:
    """`name` as an SQL identifier, in double quotes where DuckDB needs them, or the guard's second parser."""
    bare = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _keywords()
    if bare and (len(name) > _WORD or not name.isalpha() or _second_parser_takes(name)):
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """`text` as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


_WORD = 20
"""No word of SQL is longer."""


def _second_parser_takes(name: str) -> bool:
    try:
        sqlglot.parse_one(f"SELECT {name}, t.{name}, max({name}) FROM {name}", dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return False
    return True


def identifier(text: str) -> str:
    """A name that SQL takes unquoted, most likely, made of `text`."""
    cleaned = re.sub(r"\W+", "_", text.encode("utf-8", "ignore").decode()).strip("_")[:60]
    if not cleaned:
        return "field"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned


def column_name(path: Path) -> str:
    """The name of the column at a path within its table."""
    if FIELDS in path:
        path = path[path.index(FIELDS) + 1 :]
    keys, suffixes = [], []
    for step in path:
        if not isinstance(step, tuple):
            keys.append(str(step))
        elif step[0] == INDEX:
            keys.append(str(step[1]))
        elif step in _SUFFIX:
            suffixes.append(_SUFFIX[step])
    name = [identifier("_".join(keys))] if keys else []
    suffixes += ["json"] * (path[-1:] == (EXPANDED,))
    return "_".join(name + suffixes) or "value"


_SUFFIX: dict[Any, str] = {**{step: step[0] for step in TYPED}, NUMBER: "num", TIME: "ts", TEXT: "json"}


def dotted(path: Path) -> str:
    """A path for reading: keys joined by dots, `[]` for the elements of a list, `.*` for the entries of a map."""
    out = ""
    for step in path:
        if isinstance(step, tuple):
            if step[0] == PARALLEL:
                out += f"{'.' if out else ''}{_spelled(step[1])}[]"
            out += {INDEX: f"[{step[-1]}]", LIST[0]: "[]", MAP[0]: ".*", PAIRS[0]: "[]"}.get(step[0], "")
        else:
            out += f".{_spelled(step)}" if out else _spelled(step)
    return out


def _spelled(key: Any) -> str:
    """A key as a path has it: quoted where it holds a dot itself."""
    return f'"{key}"' if "." in str(key) else str(key)


def free_name(name: str, taken: set[str] | frozenset[str]) -> str:
    """`name`, or `name_2`, ... where it is taken (in any case)."""
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
