"""Which statements of a model may run (H32): exactly one that only reads, and only this request's tables.

Rules:
- DuckDB's own parser is the authority: its tree (`json_serialize_sql`) is walked, and every query node, table
  reference, expression class and function in it must be on an allow-list. What is not listed is refused.
- sqlglot must read the same text the same way: one statement, nothing that writes, no other table.
- A CTE's name counts as a table only where DuckDB would see it: after its definition, and inside of it only
  where it is recursive. Otherwise `WITH x AS (FROM x)` would read a catalog view named x.
- Functions are called by their bare names: a qualified one could pass by the bounded macros of
  `hyve.functions`, which also lists what may be called.
- A window in which DuckDB would go through a long frame for each row is refused, since no interrupt ends it.
- A refusal says what was refused and what to write instead.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from hyve import functions, operators, pivots
from hyve.errors import SqlRefused
from hyve.naming import literal

MAX_SQL = 32_768
"""Characters of the longest statement that is looked at."""

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_REFERENCES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF"}
)
_MODIFIERS = frozenset(
    {"DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"}
    | {"ASCENDING", "DESCENDING", "ORDER_DEFAULT"}
)
_NODES = _QUERIES | _REFERENCES | _MODIFIERS
_EXPRESSIONS = frozenset({
    "COLUMN_REF", "STAR", "CONSTANT", "FUNCTION", "COMPARISON", "CAST", "TYPE", "CASE", "BETWEEN", "OPERATOR",
    "SUBQUERY", "WINDOW", "LAMBDA", "LAMBDA_REF", "POSITIONAL_REFERENCE", "COLLATE", "CONJUNCTION",
})  # fmt: skip
_FRAME = 1_000
_TOO_DEEP = "the statement is nested too deeply; write a simpler one"
_SCHEMAS = frozenset({"main", "system", "memory", "temp", "pg_catalog", "information_schema"})
_WIDE = re.compile(r"\d{4}|\*|\{[^{}]*\{")


@dataclass(frozen=True)
class Checked:
    """A statement that may run: its text, and which of the tables that it may read it names."""

    text: str
    tables: tuple[str, ...]


def guard(sql: str, tables: Collection[str]) -> str:
    """The text of `check`."""
    return check(sql, tables).text


def check(sql: str, tables: Collection[str]) -> Checked:
    """The statement to run: `sql` without its last semicolon, operator names quoted. Else SqlRefused.

    `tables` are the names that may be read; they are compared without case, as DuckDB does. A PIVOT without a list of
    values comes back as it is: `hyve.sql.run` fills the values in and guards the outcome again.
    """
    return _checked(_text(sql), tuple(sorted(tables)))


@lru_cache(maxsize=16)
def _checked(text: str, tables: tuple[str, ...]) -> Checked:
    """A statement is often asked for rows first and named as evidence then."""
    names = {_fold(name): name for name in tables}
    walk = _Walk(names)
    walk.check(_tree(text))
    _second_opinion(text, names)
    runs = text if is_dynamic_pivot(text) else _quote_arguments(text, walk.arguments)
    return Checked(runs, tuple(names[name] for name in sorted(walk.read)))


def _fold(name: str) -> str:
    # DuckDB folds ASCII letters only; str.lower would also fold the Kelvin sign to k.
    return name.translate(_LOWER)


_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}


def _text(sql: str) -> str:
    if not isinstance(sql, str):
        raise SqlRefused(f"the statement is {type(sql).__name__}, not text; send one SELECT statement as a string")
    if len(sql) > MAX_SQL:
        raise SqlRefused(f"the statement has {len(sql)} characters; the limit is {MAX_SQL}: write a shorter one")
    bad = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff]", sql)
    if bad:
        raise SqlRefused(
            f"the statement holds the character U+{ord(bad.group()):04X} at offset {bad.start()}; remove it"
        )
    text = sql.strip()
    while text.endswith(";"):
        text = text[:-1].rstrip()
    if not text:
        raise SqlRefused("the statement is empty; write one SELECT statement")
    return pivots.as_query(text)


_local = threading.local()
_inherited: list[duckdb.DuckDBPyConnection] = []
"""Connections of a forked process's parent: closing one here would wait for threads that only the parent has."""


def _parser() -> duckdb.DuckDBPyConnection:
    """An empty locked database whose parser is asked; one for each thread, and anew after a fork."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "parser", None)
    if connection is not None and _local.process != os.getpid():
        _inherited.append(connection)
        connection = None
    if connection is None:
        connection = duckdb.connect(
            ":memory:",
            config={"enable_external_access": "false", "threads": 1, "async_threads": 0, "memory_limit": "256MB"},
        )
        connection.execute("SET enable_optimizer = false")  # it takes a third of the time, and there is nothing to do
        connection.execute("SET lock_configuration = true")
        _local.parser, _local.process = connection, os.getpid()
    return connection


def tree(sql: str) -> dict[str, Any]:
    """DuckDB's own tree of the one statement that `sql` is; SqlRefused where it is none. No more is checked."""
    return _tree(_text(sql))


_trees: dict[str, str] = {}
"""DuckDB's trees of the last statements, as JSON: evidence asks for the tree of a statement that is guarded next."""

_KEPT = 40


def parse_ahead(statements: Iterable[str]) -> None:
    """Has DuckDB parse several statements together, which are then read: to ask it takes longer than to parse one."""
    texts: dict[str, None] = {}
    for statement in statements:
        with suppress(SqlRefused):
            texts[_text(statement)] = None
    missing = [text for text in texts if text not in _trees]
    if missing:
        with suppress(duckdb.Error, MemoryError):  # of one of them: then each is parsed on its own
            _serialize(missing)


def _serialize(texts: Sequence[str]) -> tuple[str, ...]:
    asked = ", ".join(f"json_serialize_sql({literal(text)})" for text in texts)
    found: tuple[str, ...]
    (found,) = _parser().execute(f"SELECT {asked}").fetchall()
    _trees.update(zip(texts, found, strict=True))
    for text in list(_trees)[:-_KEPT]:
        _trees.pop(text, None)
    return found


def _tree(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(_trees.get(text) or _serialize([text])[0])
    except RecursionError:
        raise SqlRefused(_TOO_DEEP) from None
    except (duckdb.Error, ValueError) as error:
        raise SqlRefused(f"the statement can't be read: {short(str(error))}") from None
    if parsed.get("error"):
        message = str(parsed.get("error_message", ""))
        if "expression depth" in message:
            raise SqlRefused(_TOO_DEEP)
        if "Only SELECT" not in message:
            raise SqlRefused(f"the statement has a syntax error: {short(message)}")
        kind = _kind(text)
        if kind == "MULTI":
            return _tree(pivots.with_values(text, lambda _: ["x"]))
        if " and " in kind:
            raise SqlRefused(f"several statements were sent ({kind}); send exactly one SELECT statement")
        raise SqlRefused(f"{_written(text) or kind} is not allowed; write one SELECT statement that only reads")
    statements = parsed.get("statements", [])
    if len(statements) != 1:
        raise SqlRefused(f"{len(statements)} statements were sent; send exactly one SELECT statement")
    statement: dict[str, Any] = statements[0]
    return statement


def untree(statement: dict[str, Any]) -> str:
    """The text of a tree of `tree`. It has not been guarded."""
    try:
        whole = json.dumps({"error": False, "statements": [statement]})
        row = _parser().execute("SELECT json_deserialize_sql(?::JSON)", [whole]).fetchone()
    except RecursionError:
        raise SqlRefused(_TOO_DEEP) from None
    except duckdb.Error as error:
        raise SqlRefused(f"the statement can't be written out: {short(str(error))}") from None
    return str(row[0]) if row else ""


def _kind(text: str) -> str:
    try:
        kinds = [statement.type.name for statement in _parser().extract_statements(text)]
    except (duckdb.Error, ValueError):  # ValueError: a kind that DuckDB's Python module has no name for
        return "this statement"
    return kinds[0] if len(kinds) == 1 else " and ".join(kinds[:5])


def _written(text: str) -> str:
    """The word that `text` starts with, where it names the kind of statement: DuckDB calls an INSTALL a LOAD."""
    bare = re.sub(r"^(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)+", "", text, flags=re.DOTALL)
    found = re.match(r"(?:FORCE\s+|UPDATE\s+(?=EXTENSIONS\b))?[A-Z]+\b", bare, re.IGNORECASE)
    word = " ".join(found[0].upper().split()) if found else ""
    return "" if word in ("WITH", "FROM", "SELECT", "VALUES", "TABLE") else word


def _is_value(argument: dict[str, Any]) -> bool:
    """A constant, or a cast of one (TIMESTAMP '2026-01-31')."""
    if argument.get("class") == "CAST":
        return _is_value(argument.get("child") or {})
    return argument.get("class") == "CONSTANT"


def _few_rows(bound: Any, distance: Any) -> bool:
    """Whether a bound of a window's frame is the current row, or a written number of rows up to `_FRAME` from it."""
    if bound == "CURRENT_ROW_ROWS":
        return True
    text = str(((distance or {}).get("literal") or {}).get("text", ""))
    return (
        bound in ("EXPR_PRECEDING_ROWS", "EXPR_FOLLOWING_ROWS")
        and re.fullmatch(r"[0-9]{1,6}", text) is not None
        and int(text) <= _FRAME
    )


@dataclass(frozen=True)
class _Argument:
    """An operator's argument given as a bare name: where it stands, in bytes, and the name."""

    start: int
    length: int
    name: str


class _Walk:
    """One pass over DuckDB's tree. `visible` holds the CTE names in scope and is never mutated; `read` are those of
    the `allowed` tables (folded name -> name) that were met, or CTEs of their names."""

    def __init__(self, allowed: Mapping[str, str]) -> None:
        self.allowed = allowed
        self.read: set[str] = set()
        self.arguments: list[_Argument] = []

    def check(self, tree: dict[str, Any]) -> None:
        try:
            self.value(tree, frozenset())
        except RecursionError:
            raise SqlRefused(_TOO_DEEP) from None

    def value(self, value: Any, visible: frozenset[str]) -> None:
        if isinstance(value, dict):
            self.node(value, visible)
        elif isinstance(value, list):
            for item in value:
                self.value(item, visible)

    def node(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        kind = node.get("type")
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                what = "a parameter" if node["class"] == "PARAMETER" else f"{node['class']} ({kind})"
                raise SqlRefused(f"{what} is not allowed in a statement; write the value or a plain expression")
        elif isinstance(kind, str) and kind not in _NODES:
            raise SqlRefused(f"{kind.removesuffix('_QUERY_NODE')} is not allowed; write one SELECT that only reads")
        if node.get("class") == "WINDOW":
            self.window(node)
        if "function_name" in node:
            self.function(node, functions.ALLOWED, "function")
        if kind == "BASE_TABLE" and "class" not in node:
            self.table(node, visible)
        elif kind == "TABLE_FUNCTION":
            self.table_function(node, visible)
            return
        elif kind == "SHOW_REF" and (node.get("show_type") not in ("DESCRIBE", "SUMMARY") or not node.get("query")):
            raise SqlRefused(f"SHOW is not allowed; DESCRIBE one of the tables: {self.listed()}")
        elif kind == "PIVOT" and any(entry.get("pivot_enum") for entry in node.get("pivots") or ()):
            raise SqlRefused("PIVOT over an enum type is not allowed; list the values: ON column IN ('a', 'b')")
        if kind == "RECURSIVE_CTE_NODE":
            visible = visible | {_fold(str(node.get("cte_name", "")))}
        ctes = (node.get("cte_map") or {}).get("map") or []
        for cte in ctes:
            self.value(cte.get("value"), visible)
            visible = visible | {_fold(str(cte.get("key", "")))}
        for key, child in node.items():
            if key != "cte_map":
                self.value(child, visible)

    def table(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        name, schema = _fold(str(node.get("table_name", ""))), _fold(str(node.get("schema_name", "")))
        catalog = _fold(str(node.get("catalog_name", "")))
        if node.get("at_clause"):
            raise SqlRefused("AT is not allowed; the tables have one version")
        if name in self.allowed:
            self.read.add(name)
        if not schema and not catalog and (name in visible or name in self.allowed):
            return
        if schema == "main" and catalog in ("", "memory") and name in self.allowed:
            return
        if schema == "recurring" and not catalog and name in visible:
            return
        given = ".".join(part for part in (catalog, schema, str(node.get("table_name", ""))) if part)
        raise self.no_table(given)

    def table_function(self, node: dict[str, Any], visible: frozenset[str]) -> None:
        call = node.get("function")
        if not isinstance(call, dict) or call.get("class") != "FUNCTION":
            raise SqlRefused("this table function is not allowed; read from the tables: " + self.listed())
        name = _fold(str(call.get("function_name", "")))
        self.function(call, functions.TABLE_FUNCTIONS | operators.names(), "table function")
        arguments = call.get("arguments") or []
        if name in operators.names():
            self.operator(name, arguments, visible)
        else:
            self.value(arguments, visible)
        self.value({key: child for key, child in node.items() if key not in ("function", "type")}, visible)

    def operator(self, name: str, arguments: list[dict[str, Any]], visible: frozenset[str]) -> None:
        """The first argument is the table, by position; the others are names, values and lists of values."""
        refused = SqlRefused(
            f"{name.upper()} takes a table first, then values and names (several as 'a, b'), "
            f"such as {name.upper()}('table', 'column', top := 3)"
        )
        for position, item in enumerate(arguments):
            argument = item.get("expression") or {}
            alias = _fold(str(item.get("name") or argument.get("alias") or ""))
            if alias == "tbl" or (alias and position == 0):
                raise refused
            given = None
            if argument.get("class") == "COLUMN_REF" and len(argument.get("column_names") or ()) == 1:
                given = str(argument["column_names"][0])
                self.arguments.append(
                    _Argument(int(argument["query_location"]), int(argument["query_location_length"]), given)
                )
            elif argument.get("class") == "CONSTANT" and isinstance(argument.get("literal"), dict):
                given = str(argument["literal"].get("text", ""))
            if position == 0:
                if given is None:
                    raise refused
                if not self.readable(given, visible):
                    raise self.no_table(given)
            elif given is None and not _is_value(argument):
                raise refused

    def readable(self, name: str, visible: frozenset[str]) -> bool:
        """Whether an operator may read `name`. It is a text there, and DuckDB would read dots in it as a path."""
        if _fold(name) in self.allowed:
            self.read.add(_fold(name))
        return _fold(name) in self.allowed or (_fold(name) in visible and re.search(r'[."\']', name) is None)

    def no_table(self, given: str) -> SqlRefused:
        return SqlRefused(f"there is no table {given[:80]!r} in this request; the tables are: {self.listed()}")

    def function(self, node: dict[str, Any], allowed: frozenset[str], what: str) -> None:
        name = _fold(str(node["function_name"]))
        if name not in allowed:
            raise SqlRefused(f"the {what} {name[:80]}() is not allowed; use plain SQL over: {self.listed()}")
        # `column.upper()` is read as a qualified name too, so only names of schemas and catalogs are refused.
        path = [_fold(str(node.get(key) or "")) for key in ("catalog", "schema")]
        if _SCHEMAS.intersection(path):
            raise SqlRefused(f"write {name}() without a schema in front")
        if name in ("printf", "format"):
            first = next((item.get("expression") or {} for item in node.get("arguments") or ()), {})
            text = (first.get("literal") or {}).get("text") if first.get("class") == "CONSTANT" else None
            if any(path) or not isinstance(text, str) or _WIDE.search(text):
                raise SqlRefused(f"{name}() needs a format that is written out and not wider than 999")

    def window(self, node: dict[str, Any]) -> None:
        """An aggregate that goes through its frame for each row needs one frame for the partition, or short ones."""
        name = _fold(str(node.get("function_name", "")))
        excludes = node.get("exclude_clause") != "NO_OTHER"
        anew = excludes and (node.get("distinct") or node.get("arg_orders"))
        if name not in functions.WHOLE_FRAME | functions.SHORT_FRAME and not anew:
            return
        start, end = node.get("start"), node.get("end")
        unordered = not node.get("orders") and end == "CURRENT_ROW_RANGE"
        whole = start == "UNBOUNDED_PRECEDING" and (end == "UNBOUNDED_FOLLOWING" or unordered)
        if whole and not excludes:
            return
        advice = "use GROUP BY, or PARTITION BY without ORDER BY"
        if name not in functions.WHOLE_FRAME:
            if _few_rows(start, node.get("start_expr")) and _few_rows(end, node.get("end_expr")):
                return
            advice += f", or ROWS BETWEEN with up to {_FRAME} on each side"
        raise SqlRefused(
            f"{name}() over a frame that moves with each row is not allowed, it can't be stopped; {advice}"
        )

    def listed(self) -> str:
        names = sorted(self.allowed.values())
        return (", ".join(names[:20]) or "(none)") + (" ..." if len(names) > 20 else "")


_WRITES = (
    exp.DML,
    exp.DDL,
    exp.Command,
    exp.Into,
    exp.Set,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Copy,
    exp.Drop,
)
_READS = (exp.Query, exp.Values, exp.Pivot, exp.Summarize, exp.Describe)


_LIST_FUNCTIONS = re.compile(r"\b(?:apply|reduce)(?=\s*\()", re.IGNORECASE)


def _second_opinion(text: str, allowed: Collection[str]) -> None:
    """sqlglot must read the same: one statement, nothing but reading, no table but the request's."""
    # sqlglot takes these two functions of lists for another dialect's, of which it knows no lambda.
    text = _LIST_FUNCTIONS.sub(r"list_\g<0>", text)
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except RecursionError:
        raise SqlRefused(_TOO_DEEP) from None
    except sqlglot.errors.SqlglotError as error:
        raise SqlRefused(
            f"a second parser can't read the statement, write it in simpler SQL: {short(str(error))}"
        ) from None
    if len(statements) != 1 or not isinstance(statements[0], _READS):
        raise SqlRefused("the statement is not exactly one SELECT; send one SELECT statement that only reads")
    ctes: set[str] = set()
    found: set[str] = set()
    for node in statements[0].walk():
        # sqlglot counts some statements that read (a Subquery, a Select) among DML or DDL.
        if isinstance(node, _WRITES) and not isinstance(node, _READS):
            raise SqlRefused(f"{type(node).__name__.upper()} is not allowed; write one SELECT that only reads")
        if isinstance(node, exp.CTE):
            ctes.add(_fold(node.alias))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            found.add(_fold(node.name))
    unknown = found.difference(allowed, ctes)
    if unknown:
        raise SqlRefused(f"there is no table {min(unknown)[:80]!r} in this request")


def _quote_arguments(text: str, arguments: list[_Argument]) -> str:
    if not arguments:
        return text
    raw = text.encode()
    for argument in sorted(arguments, key=lambda item: item.start, reverse=True):
        raw = raw[: argument.start] + literal(argument.name).encode() + raw[argument.start + argument.length :]
    return raw.decode()


_FORBIDDEN = re.compile(
    r"(?:(?<=[.:!] )|^)(?:Use|Please|You can|Consider|Try)\b[^.]*\b(?:SET|PRAGMA|INSTALL|LOAD)\b[^.]*(?:\.|$)"
)
"""A sentence of DuckDB's that advises what no statement may do."""


def short(message: str) -> str:
    """DuckDB's message without its drawing of the statement and forbidden advice, at most 400 characters."""
    kept = []
    for line in re.sub(r"\x1b\[\d*m", "", message).splitlines():
        if re.match(r"LINE \d+:", line):
            break
        if line.strip():
            kept.append(line.strip())
    return _FORBIDDEN.sub("", " ".join(kept)).strip().removeprefix("Invalid Input Error: ")[:400]


_PIVOT = re.compile(r"\bPIVOT", re.IGNORECASE)


def is_dynamic_pivot(statement: str) -> bool:
    """Whether `statement` holds a PIVOT whose values are still to be found."""
    return bool(_PIVOT.search(statement)) and _kind(statement) == "MULTI"
