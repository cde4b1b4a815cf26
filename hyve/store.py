"""Document -> Datastore: every part of a request in one unnamed in-memory DuckDB, and back again (H3, H21-H23).

Rules:
- Lossless: base tables and the signatures of their rows give each part back exactly (`reconstruct`). Derived columns
  and tables (expanded text, telemetry relations, log templates) stand beside them and are never needed for that.
- A store belongs to one request and dies with it. Once loaded it is locked: only guarded SELECTs run (`query`).
- Names are stable: a table is called after the last key of its path, a column after its path within the row.

Structural columns: `_row_id` is a row's place in its own list (0-based), `_id` a row's number in its table (where
other tables refer to it), `parent_<table>` the `_id` of the parent row, `series_idx` the number of the list that the
row belongs to among all lists of the table, `_key` the key of a map's entry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, Self

import duckdb
import pyarrow as pa

from hyve import formats, sql
from hyve.document import Document, parse
from hyve.errors import InputError
from hyve.shape import EXPANDED, INDEX, LIST, MAP, NUMBER, PAIRS, TEXT, ColumnData, Path, Signature, TableData, shred
from hyve.strictjson import Pairs

ROOT = "records"
_RESERVED = frozenset({"_id", "_row_id", "_key", "series_idx"})
MASK = r"\w*\d\w*(?:[-.:/]\w*\d\w*)*"
"""What makes two log lines differ though they say the same: ids, addresses, numbers."""


@dataclass(frozen=True)
class Column:
    """A column: its SQL name, DuckDB type, source path (keys joined by dots) and, if derived, that it is."""

    name: str
    type: str
    path: str
    derived: bool = False


@dataclass(frozen=True)
class Shape:
    """How many rows of a table have which fields."""

    rows: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table. `parent` is the table that its `parent_<table>` column refers to; `path` where its rows stood.

    `kind`: "base" tables hold what was parsed, "derived" ones what base columns or free text hold besides, "relation"
    ones recognised telemetry under the names one expects.
    """

    name: str
    columns: tuple[Column, ...]
    rows: int
    path: str
    parent: str | None
    kind: Literal["base", "derived", "relation"]
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """What the store holds: tables in document order, telemetry relations first."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """The table called `name` (in any case), or None."""
        return next((table for table in self.tables if table.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class _Root:
    """One shredded root: which parts its rows came from. A layout entry is (part, first row, end row or None)."""

    data: TableData
    name: str
    layout: tuple[tuple[int, int, int | None], ...] = ()
    relation: bool = False


class Datastore:
    """A request's data. Use as a context manager; `close` frees it."""

    def __init__(self, documents: Sequence[Document], memory_limit: str = "2GB", threads: int = 2) -> None:
        self.documents = tuple(documents)
        self._connection = sql.connect(memory_limit, threads)
        self._parts: list[Any] | None = None
        tables = self._relations()
        taken = {table.name.lower() for table in tables}
        self._roots = self._shred(taken)
        for root in self._roots:
            tables += self._create(root, taken)
        self.catalog = Catalog(tuple(tables))
        sql.lock(self._connection)

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """The store of one parsed text."""
        return cls([document])

    @classmethod
    def from_text(cls, source: str | bytes, name: str = "") -> Self:
        """The store of one text or bytes; see `hyve.parse`."""
        return cls([parse(source, name)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the database. Further queries fail."""
        self._connection.close()

    def query(self, statement: str, limits: sql.Limits = sql.Limits()) -> sql.QueryResult:  # noqa: B008 (frozen)
        """Runs one read-only SELECT over this store's tables. Raises SqlError, SqlRefused or SqlLimit."""
        return sql.run(self._connection, statement, [table.name for table in self.catalog.tables], limits)

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a statement of our own (never of a model's or a user's: those go through `query`)."""
        return self._connection.execute(statement).fetchall()

    def _relations(self) -> list[Table]:
        values = [part.value for document in self.documents for part in document.parts if part.syntax != "lines"]
        tables: list[Table] = []
        for name, rows in formats.relations(values).items():
            if not rows:
                continue
            data = shred(rows, expand=False, derived=True)
            for path, column in data.columns.items():
                array = column.array
                if array is not None and path[-1] in formats.TIME_KEYS:
                    times = array if pa.types.is_int64(array.type) else pa.nulls(len(array), pa.int64())
                    column.array = times.cast(pa.timestamp("ns"))
            taken = {table.name.lower() for table in tables} | {name.lower()}
            tables += self._create(_Root(data, name, relation=True), taken)
        return tables

    def _shred(self, taken: set[str]) -> list[_Root]:
        roots, number = [], 0
        for document in self.documents:
            name = _identifier(document.name) if document.name else ROOT
            lines_name = f"{name}_lines" if document.name else "lines"
            if document.lines:
                prose = [{"line": line, "text": text} for line, text in document.lines]
                roots.append(_Root(shred(prose, expand=False, derived=True), _free(lines_name, taken)))
            rows: list[Any] = []
            layout: list[tuple[int, int, int | None]] = []
            for part in document.parts:
                if part.syntax == "lines":
                    lines = shred(part.value, expand=False)
                    roots.append(_Root(lines, _free(lines_name, taken), ((number, 0, lines.rows),)))
                elif isinstance(part.value, list):
                    layout.append((number, len(rows), len(rows) + len(part.value)))
                    rows.extend(part.value)
                else:
                    layout.append((number, len(rows), None))
                    rows.append(part.value)
                number += 1
            if layout:
                numbers = any(part.syntax == "csv" for part in document.parts)
                data = shred(rows, numbers=numbers)
                roots.append(_Root(data, _free(name, taken), tuple(layout)))
        return roots

    def _create(self, root: _Root, taken: set[str]) -> list[Table]:
        """Creates the tables of one root and returns their catalog entries, parents first."""
        parents: dict[int, TableData] = {}
        tables = []
        # A root that holds nothing but lists has no row to show; its child tables then stand on their own.
        hidden = root.data if not root.data.columns and root.data.rows <= 1 and root.data.children else None
        for data in root.data.walk():
            parent = parents.get(id(data))
            name = root.name if parent is None else self._child_name(data, parent, taken)
            data.name = name
            taken.add(name.lower())
            for child in data.children.values():
                parents[id(child)] = data
            if data is not hidden:
                tables.append(self._load(name, data, None if parent is hidden else parent, root.relation))
        return tables

    def _child_name(self, data: TableData, parent: TableData, taken: set[str]) -> str:
        keys = [key for key in data.path if not isinstance(key, tuple)]
        above = parent.name
        own = keys[len([key for key in parent.path if not isinstance(key, tuple)]) :]
        if not own:
            own = [{PAIRS: "pairs", LIST: "items", MAP: "entries"}.get(data.path[-1], "series")]
        candidates = (str(own[-1]), "_".join(map(str, own)), f"{above}_{own[-1]}")
        free = (name for name in map(_identifier, candidates) if name.lower() not in taken)
        return next(free, None) or _free(_identifier(candidates[-1]), taken)

    def _load(self, name: str, data: TableData, parent: TableData | None, relation: bool) -> Table:
        arrays: dict[str, pa.Array[Any]] = {}
        columns: list[Column] = []

        def add(column: str, array: pa.Array[Any], path: str, derived: bool = False) -> None:
            arrays[column] = array
            columns.append(Column(column, "", path, derived))

        above = parent.name if parent is not None else None
        if data.children:
            add("_id", pa.array(range(data.rows), pa.int64()), "")
        if parent is not None:
            add(f"parent_{above}", pa.array(data.parents, pa.int64()), "")
            numbers = {row: i for i, row in enumerate(dict.fromkeys(data.parents))}
            add("series_idx", pa.array([numbers[row] for row in data.parents], pa.int64()), "")
        add("_row_id", pa.array(data.positions, pa.int64()), "")
        if data.keys is not None:
            add("_key", pa.array([key.encode("utf-8", "replace").decode() for key in data.keys]), "")
        used = {column.lower() for column in arrays} | _RESERVED
        for path, column in data.columns.items():
            column.name = _free(_column_name(path), used)
            used.add(column.name.lower())
            assert column.array is not None
            add(column.name, column.array, _dotted(path), column.derived)
            column.array = None
        source = pa.table(arrays)
        self._connection.register("_source", source)
        template = ""
        if data.path == () and [column.name for column in data.columns.values()] == ["line", "text"]:
            template = f", regexp_replace(text, '\\x1b\\[[0-9;]*m|{MASK}', '#', 'g') AS template"
        self._connection.execute(f"CREATE TABLE {quote(name)} AS SELECT *{template} FROM _source")
        self._connection.unregister("_source")
        described = self._connection.execute(f"DESCRIBE {quote(name)}").fetchall()
        paths = {column.name: column for column in columns}
        return Table(
            name,
            tuple(
                Column(label, kind, paths[label].path, paths[label].derived)
                if label in paths
                else Column(label, kind, "text", True)
                for label, kind, *_ in described
            ),
            data.rows,
            _dotted(data.path) or "$",
            above,
            "relation" if relation else "derived" if data.derived else "base",
            _shapes(data),
        )

    def reconstruct(self, i: int) -> Any:
        """The value of part `i` (counted over all documents), read back from the tables."""
        if self._parts is None:
            self._parts = self._read_back()
        if not 0 <= i < len(self._parts):
            raise InputError(f"there is no part {i}: the store holds parts 0 to {len(self._parts) - 1}")
        return self._parts[i]

    def _read_back(self) -> list[Any]:
        parts: dict[int, Any] = {}
        for root in self._roots:
            if not root.layout:
                continue  # derived: no part is made of it
            rows = self._elements(root.data)
            for number, start, end in root.layout:
                parts[number] = rows[start] if end is None else rows[start:end]
        return [parts[number] for number in sorted(parts)]

    def _elements(self, data: TableData) -> list[Any]:
        """The values of all rows of a table, rebuilt from its columns and its child tables."""
        columns: dict[Path, list[Any]] = {}
        children: dict[Path, Callable[[int], list[Any]]] = {}
        wanted = {path: column for path, column in data.columns.items() if not column.derived}
        if wanted:
            fields = ", ".join(quote(column.name) for column in wanted.values())
            table = self._connection.sql(f"SELECT {fields} FROM {quote(data.name)} ORDER BY rowid").to_arrow_table()
            for index, (path, column) in enumerate(wanted.items()):
                values = table.column(index).to_pylist()
                if pa.types.is_decimal(table.column(index).type):
                    values = [None if value is None else int(value) for value in values]
                for row, text in column.exact.items():
                    values[row] = text
                columns[path] = values
        for path, child in data.children.items():
            if not child.derived or data.derived:
                children[path] = _slices(self._elements(child), child.parents)
        readers: dict[Signature, Callable[[int], Any]] = {}
        keys = {
            path: _slices(child.keys, child.parents) for path, child in data.children.items() if child.keys is not None
        }
        rebuilt = []
        for row in range(data.rows):
            signature = data.signature(row)
            reader = readers.get(signature)
            if reader is None:
                reader = readers[signature] = _reader(signature, (), columns, children, keys)
            rebuilt.append(reader(row))
        return rebuilt


def _slices(items: Sequence[Any], parents: list[int]) -> Callable[[int], list[Any]]:
    """Looks up the run of `items` that belongs to a parent row; the rows of one parent stand side by side."""
    bounds: dict[int, tuple[int, int]] = {}
    start = 0
    for i, parent in enumerate(parents):
        if i and parents[i - 1] != parent:
            start = i
        bounds[parent] = (start, i + 1)

    def look_up(row: int) -> list[Any]:
        first, end = bounds.get(row, (0, 0))
        return list(items[first:end])

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
            return lambda row: parse(f"[{column[row]}]").parts[0].value[0]
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
                    parts.append((key, _parallel(children[*path, ("parallel", inner[1])], key)))
                else:
                    parts.append((key, below(inner, key)))
            return lambda row: {key: reader(row) for key, reader in parts}
    raise AssertionError(f"unknown signature {signature!r}")


def _parallel(rows: Callable[[int], list[Any]], key: Any) -> Callable[[int], Any]:
    return lambda row: [item[key] for item in rows(row)]


@lru_cache(maxsize=1)
def _keywords() -> frozenset[str]:
    """Words that DuckDB does not take unquoted as both a column and a table, found by asking its parser."""
    quoted = set()
    with sql.connect() as connection:
        for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall():
            try:
                connection.extract_statements(f"SELECT {word}, t.{word} FROM {word} WHERE {word} = 1")
            except duckdb.Error:
                quoted.add(word)
    return frozenset(quoted)


def quote(name: str) -> str:
    """`name` as an SQL identifier, in double quotes where DuckDB needs them."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _keywords():
        return name
    return '"' + name.replace('"', '""') + '"'


def _identifier(text: str) -> str:
    cleaned = re.sub(r"\W+", "_", text.encode("utf-8", "ignore").decode()).strip("_")[:60]
    if not cleaned:
        return "field"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned


def _column_name(path: Path) -> str:
    steps = []
    for step in path:
        if isinstance(step, tuple):
            if step[0] == INDEX:
                steps.append(str(step[1]))
            elif step in (NUMBER, TEXT):
                steps.append("num" if step == NUMBER else "json")
        else:
            steps.append(str(step))
    name = _identifier("_".join(steps)) if steps else "value"
    return f"{name}_json" if path and path[-1] == EXPANDED else name


def _dotted(path: Path) -> str:
    out = ""
    for step in path:
        if isinstance(step, tuple):
            out += {INDEX: f"[{step[-1]}]", LIST[0]: "[]", MAP[0]: ".*", PAIRS[0]: "[]"}.get(step[0], "")
        else:
            out += f".{step}" if out else str(step)
    return out


def _free(name: str, taken: set[str] | frozenset[str]) -> str:
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _shapes(data: TableData) -> tuple[Shape, ...]:
    if not isinstance(data.signatures, list):
        return (Shape(data.rows, _fields(data.signatures)),)
    counts = Counter(_fields(signature) for signature in data.signatures)
    return tuple(Shape(rows, fields) for fields, rows in counts.most_common())


def _fields(signature: Signature) -> tuple[str, ...]:
    if isinstance(signature, tuple) and signature[0] == "o":
        return tuple(str(key) for key, _ in signature[1])
    return ()


__all__ = ["Catalog", "Column", "ColumnData", "Datastore", "Shape", "Table", "quote"]
