"""Analytic operators that a statement may call beside DuckDB's own functions (H31).

Rules:
- An operator is a DuckDB table macro over `query_table`, so it runs inside the database, under the same time and memory
  limits as any other statement, and gives back a few rows instead of those that it looked at. What SQL can't say is a
  vectorised Python function that only the macro can call, since the guard lists no such function.
- Its first parameter is `tbl`, the name of one table of the request or of a CTE, always given by position: the guard
  checks that name as it checks every other table. The other parameters are plain values.
- No finding is no row, so that an operator is evidence only where it found something.
- `REGISTRY` holds ours, those that installed packages name under the entry point group `hyve.operators` (an `Operator`
  or several), and what `add` was given. A broken entry point is a warning, and is left out.
- The tool specification and the databases of a process are made once; what comes later is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from hyve.errors import InputError

if TYPE_CHECKING:
    import duckdb

__all__ = ["GROUP", "Function", "Operator", "Registry", "add", "describe", "install", "names"]

GROUP = "hyve.operators"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_WORDS = 300


@dataclass(frozen=True)
class Function:
    """A function for a macro: `call` takes one Arrow array for each of `parameters` and gives back one of `returns`.

    Both are DuckDB types. NULLs are passed on. The call can't be interrupted: its time must be bounded.
    """

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    returns: str


@dataclass(frozen=True)
class Operator:
    """`signature` and `description` are what a model reads, in every request: at most 300 characters together, the
    description may be empty.

    `macro` is what follows the name in `CREATE MACRO`, such as "(tbl, col, top := 5) AS TABLE SELECT ...".
    """

    name: str
    signature: str
    description: str
    macro: str
    functions: tuple[Function, ...] = ()


class Registry:
    """Operators by name. Those given at first are trusted; what `add` gets is tried in a database of its own."""

    def __init__(self, operators: Iterable[Operator] = ()) -> None:
        self._operators = {operator.name.lower(): operator for operator in operators}
        self._closed = False

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All of them, in the order in which they came."""
        return tuple(self._operators.values())

    def names(self) -> frozenset[str]:
        """Their names in lower case."""
        return frozenset(self._operators)

    def add(self, operator: Operator) -> None:
        """Takes one more in. InputError where its name is taken, its macro fails, or it is too late."""
        if not isinstance(operator, Operator):
            raise InputError(f"an operator is a hyve.operators.Operator, not {type(operator).__name__}")
        name = str(operator.name)
        if self._closed:
            raise InputError(f"{name} comes too late: add operators before the first store is asked or prompt is made")
        if not _NAME.fullmatch(name) or name.lower() in self._operators:
            raise InputError(f"an operator can't be called {name[:80]!r}: {_naming(name)}")
        words = operator.signature + operator.description
        if len(words) > _WORDS or not words.isprintable():
            raise InputError(f"signature and description of {name} must be one line of {_WORDS} characters together")
        if not re.match(r"\(\s*tbl\b", operator.macro):
            raise InputError(f"the macro of {name} must start with its parameters, of which the first is tbl")
        _try(operator)
        self._operators[name.lower()] = operator

    def discover(self) -> None:
        """Takes in what installed packages offer; a RuntimeWarning for each that can't be had."""
        for entry in metadata.entry_points(group=GROUP):
            try:
                found = entry.load()
                for operator in [found] if isinstance(found, Operator) else list(found):
                    self.add(operator)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"[:300]
                told = f"the operator {entry.name!r} ({entry.value}) is left out: {reason}"
                warnings.warn(told, RuntimeWarning, stacklevel=2)

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Creates every operator in a database that isn't locked yet."""
        self._closed = True
        for operator in self.operators:
            _create(connection, operator)

    def describe(self) -> str:
        """The operators as lines of text for the tool specification."""
        self._closed = True
        return "\n".join(": ".join(filter(None, (one.signature, one.description))) for one in self.operators)


@cache
def _registry() -> Registry:
    """Ours and those of other packages; made when first asked for, because `hyve.store` imports this module."""
    from hyve.operators import anomaly, change_point, contributors, critical_path, log_templates

    registry = Registry(
        module.OPERATOR for module in (anomaly, change_point, contributors, log_templates, critical_path)
    )
    registry.discover()
    return registry


def add(operator: Operator) -> None:
    """Registers an operator for this process; before the first store is asked. Raises InputError."""
    _registry().add(operator)


def names() -> frozenset[str]:
    """The names of all operators, in lower case."""
    return _registry().names()


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates all operators in a database that isn't locked yet."""
    _registry().install(connection)


def describe() -> str:
    """All operators as lines of text for the tool specification."""
    return _registry().describe()


def _naming(name: str) -> str:
    return "the name is taken" if _NAME.fullmatch(name) else "use up to 40 letters, digits and _, a letter first"


def _create(connection: duckdb.DuckDBPyConnection, operator: Operator) -> None:
    from duckdb.func import ARROW, SPECIAL

    for function in operator.functions:
        connection.create_function(
            function.name,
            function.call,
            list(function.parameters),
            function.returns,
            type=ARROW,
            null_handling=SPECIAL,
        )
    connection.execute(f"CREATE MACRO {operator.name.lower()}{operator.macro}")


def _try(operator: Operator) -> None:
    """InputError unless a database takes the operator, and has no function of its own under any of its names."""
    import duckdb

    with duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": 1}) as connection:
        wanted = [operator.name.lower(), *(function.name.lower() for function in operator.functions)]
        known = {
            name for (name,) in connection.execute("SELECT lower(function_name) FROM duckdb_functions()").fetchall()
        }
        if taken := known.intersection(wanted):
            raise InputError(f"{operator.name} can't be added: DuckDB has a function called {min(taken)}")
        try:
            _create(connection, operator)
        except Exception as error:
            raise InputError(f"{operator.name} can't be added: {error}"[:500]) from None
