"""Tables -> values: what was parsed, read back from the columns and the signatures of the rows (H21; invariant 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hyve import strictjson
from hyve.literals import read_literal
from hyve.shape import INDEX, LIST, MAP, PAIRS, PARALLEL, TEXT, Path, Signature, TableData
from hyve.strictjson import Pairs


def elements(read: Callable[[str, list[str]], dict[str, pa.Array[Any]]], data: TableData) -> list[Any]:
    """The values of all rows of a table, rebuilt from its columns, which `read` gives, and its child tables."""
    columns: dict[Path, list[Any]] = {}
    children: dict[Path, Callable[[int], list[Any]]] = {}
    wanted = {path: column for path, column in data.columns.items() if not column.derived}
    if wanted:
        arrays = read(data.name, [column.name for column in wanted.values()])
        for path, column in wanted.items():
            array = arrays[column.name]
            values = array.to_pylist()
            if pa.types.is_decimal(array.type):
                values = [None if value is None else int(value) for value in values]
            for row, text in column.exact.items():
                values[row] = text
            columns[path] = values
    for path, child in data.children.items():
        if not child.derived or data.derived:
            children[path] = _slices(elements(read, child), child, data.rows)
    readers: dict[int, Callable[[int], Any]] = {}  # by identity: the signatures of a table are interned
    keys = {
        path: _slices(child.keys, child, data.rows) for path, child in data.children.items() if child.keys is not None
    }
    rebuilt = []
    for row in range(data.rows):
        signature = data.signature(row)
        reader = readers.get(id(signature))
        if reader is None:
            reader = readers[id(signature)] = _reader(signature, (), columns, children, keys)
        rebuilt.append(reader(row))
    return rebuilt


def _slices(items: Sequence[Any], child: TableData, rows: int) -> Callable[[int], list[Any]]:
    """Looks up the run of `items`, one for each row of a child table, that belongs to one of the parent's `rows`."""
    starts = np.searchsorted(child.parents, np.arange(rows + 1)).tolist()

    def look_up(row: int) -> list[Any]:
        return list(items[starts[row] : starts[row + 1]])

    return look_up


def _reader(
    signature: Signature,
    path: Path,
    columns: dict[Path, list[Any]],
    children: dict[Path, Callable[[int], list[Any]]],
    keys: dict[Path, Callable[[int], list[Any]]],
) -> Callable[[int], Any]:
    """A function from a row's number to the value that `signature` describes at `path`."""

    def below(inner: Signature, step: Any) -> Callable[[int], Any]:
        return _reader(inner, (*path, step), columns, children, keys)

    match signature:
        case "v" | "L" | "s":
            column = columns[path]
            return lambda row: column[row]
        case "i":
            column = columns[path]
            return lambda row: int(column[row])
        case "f":
            column = columns[path]
            return lambda row: float(column[row])
        case "b":
            column = columns[path]
            return lambda row: column[row] == "true"
        case "n":
            return lambda row: None
        case "j":
            column = columns[*path, TEXT]
            return lambda row: _load_text(column[row])
        case "l":
            return children[*path, LIST]
        case "d":
            pairs = children[*path, PAIRS]
            return lambda row: Pairs((pair["key"], pair["value"]) for pair in pairs(row))
        case "m":
            entries, names = children[*path, MAP], keys[*path, MAP]
            return lambda row: dict(zip(names(row), entries(row), strict=True))
        case ("t", items):
            readers = [below(item, (INDEX, i)) for i, item in enumerate(items)]
            return lambda row: [reader(row) for reader in readers]
        case ("o", fields):
            parts: list[tuple[Any, Callable[[int], Any]]] = []
            for key, inner in fields:
                if isinstance(inner, tuple) and inner[0] == "p":
                    parts.append((key, _parallel(children[*path, (PARALLEL, inner[1])], key)))
                else:
                    parts.append((key, below(inner, key)))
            return lambda row: {key: reader(row) for key, reader in parts}
        case ("e", place):
            sparse = children[*path[:-1], MAP]
            return lambda row: sparse(row)[place]
    raise AssertionError(f"unknown signature {signature!r}")


def _load_text(text: str) -> Any:
    """The value that `hyve.arrays.dump` wrote."""
    found = strictjson.read(text)
    if found is not None:
        return found[0]
    literal = read_literal(text)
    assert literal is not None  # what is no JSON has keys that are no text
    return literal[0]


def _parallel(rows: Callable[[int], list[Any]], key: Any) -> Callable[[int], Any]:
    return lambda row: [item[key] for item in rows(row)]
