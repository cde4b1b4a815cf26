"""Document -> Datastore: every part of a request in one unnamed in-memory DuckDB, and back again (H3, H21-H23).

Rules:
- Lossless: base tables and the signatures of their rows give each part back exactly (`reconstruct`). Derived columns
  and tables (expanded text, telemetry relations, log templates) stand beside them and are never needed for that.
- A store belongs to one request and dies with it. Before the first statement that isn't our own it is locked, and from
  then on only guarded SELECTs run (`query`).
- A small store's tables stay Arrow's until SQL is asked: views, catalog and reconstruction need no database, and to
  load one takes longer than they do.
- Names are stable: a table is called after the last key of its path, a column after its path within the row.

Structural columns: `_row_id` is a row's place in its own list (0-based), `_id` a row's number in its table (where
other tables refer to it), `parent_<table>` the `_id` of the parent row, `series_idx` the number of the list that the
row belongs to among all lists of the table, `_key` the key of a map's entry, `_line` the line of the source on which a
part stands that has free text around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter, methodcaller
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from hyve import sql
from hyve.catalog import Catalog, Column, Table, kind_at, shapes
from hyve.declared import LINE, SAID, declared, declared_lines
from hyve.document import Document, parse
from hyve.ducktypes import list_texts, type_name
from hyve.encodings import article, encodable
from hyve.errors import InputError, SqlError
from hyve.functions import arm
from hyve.gather import Root, gather
from hyve.groups import LINES
from hyve.guard import Checked, short
from hyve.limits import trim
from hyve.naming import column_name, dotted, free_name, identifier, quote
from hyve.rebuild import elements
from hyve.shape import LIST, MAP, PAIRS, TYPED, TableData
from hyve.templates import HIDDEN, ids_of, masked_texts, template_of, variables_of

if TYPE_CHECKING:
    from hyve.masked import MaskedStore

_COMPRESSED, _SOME, _ROW_GROUP, _VECTOR = 12 << 20, 8 << 20, 122_880, 2_048
"""Bytes of tables that are worth the time it takes to compress them, in large stores and in small ones, and the rows
that DuckDB compresses and reads together. A store of fewer bytes than the first waits as Arrow."""

_LARGE = 1 << 20
"""Bytes of tables that one thread loads: DuckDB's allocator keeps for each thread what it once needed to compress."""

_PLAIN = frozenset({"VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"})
_STAR = re.compile(r"\*(?!\s*\))")
"""All columns, or a product; no `count(*)`."""

_TRIMMED, _SPARED = 16, 32
"""How many times what was freed is given back while a slice of a table is loaded (twice as many for all slices of a
table, for each time takes as long as more is held), and what part of all columns DuckDB may hold back of it."""

Arrays = dict[str, Any]
"""Arrow arrays by column, chunked ones too."""

_NOTHING: Arrays = {}

_TEXTS = {("value",): ("value_text",)}
"""Columns of relations beside which texts stand for the numbers that they can't hold."""

_RESERVED = frozenset({"_id", "_row_id", "_key", "_line", "series_idx", "rowid"})


@dataclass(frozen=True)
class Source:
    """What a store keeps of a document beside its tables: the text, its prose, and the syntax of each part."""

    name: str
    text: str
    prose: str
    syntaxes: Sequence[str]


@dataclass(frozen=True)
class Copy:
    """What a statement reads in place of the table `of`: its columns (new name -> theirs), with other `values` for some
    (by their names)."""

    of: str
    name: str
    columns: Mapping[str, str]
    values: Mapping[str, pa.Array[Any]]


class Datastore:
    """A request's data. Use as a context manager; `close` frees it."""

    masked: MaskedStore | None = None
    """What stands between its secrets and a model, once a prompt was made with them masked."""

    def __init__(self, documents: Iterable[Document], memory_limit: str = "2GB", threads: int = 2) -> None:
        """Takes the values of `documents` in. Given by an iterator they are freed as soon as they are columns."""
        given = list(documents)
        if wrong := [one for one in given if not isinstance(one, Document)]:
            raise InputError(f"a store is made of what hyve.parse gives, not of {article(wrong[0])}: parse it first")
        self.sources = tuple(
            Source(document.name, document.text, document.prose, document.syntaxes) for document in given
        )
        self._parts: list[Any] | None = None
        flags = [flag for document in given for flag in document.flags]
        del documents
        relations, self._roots, met = gather(given)
        self.flags = tuple(dict.fromkeys([*flags, *met]))
        roots = (*relations, *self._roots)
        taken = {root.name.lower() for root in roots}
        self._memory_limit = memory_limit
        self._database: duckdb.DuckDBPyConnection | None = None
        self._closed = self._locked = False
        self._loaded = 0.0
        self._waiting: dict[str, tuple[Arrays, dict[str, str]]] = {}
        self._made: list[str] = []
        size = _size(chain.from_iterable(_arrays(root.data) for root in roots), _BUFFERS)
        if size > _LARGE:
            size = _size(chain.from_iterable(_arrays(root.data) for root in roots))
        self._most = min(_COMPRESSED, max(_SOME, size // 4))
        self._spare = min(_COMPRESSED, size // _SPARED)
        self._text = sum(len(source.text) for source in self.sources)
        at_once = size > _COMPRESSED
        self._own = at_once or size > _LARGE
        if at_once:
            self._open()
        self.catalog = Catalog(tuple(table for root in roots for table in self._create(root, taken)))
        if self._database is not None:
            self._database.execute(f"SET threads = {threads}")

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """The store of one parsed text."""
        return cls([document])

    @classmethod
    def from_text(cls, source: str | bytes, name: str = "") -> Self:
        """The store of one text or bytes; see `hyve.parse`."""
        return cls(map(parse, [source], [name]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the data. Further queries fail."""
        self._closed = True
        self._waiting.clear()
        if self._database is None:
            return
        if self._own:
            self._database.close()
        else:
            sql.give_back(self._database, self._memory_limit, self._made)
        self._database = None

    def _open(self, *tables: str) -> duckdb.DuckDBPyConnection:
        """The database, with those of `tables` that waited loaded now."""
        if self._closed:
            raise InputError("this store is closed: keep it open, in a `with` block, as long as it is asked")
        try:
            if self._database is None:
                limit = self._memory_limit
                if self._own:
                    sql.close_idle()
                self._database = sql.open_database(limit, 1, spare=self._spare) if self._own else sql.borrow(limit)
            for name in tables:
                if name in self._waiting:
                    with sql.counted():
                        self._fill(self._database, name, *self._waiting.pop(name))
        except (duckdb.Error, pa.ArrowException, MemoryError) as error:
            self.close()  # some of its tables are gone
            raise SqlError(f"the data could not be loaded, ask with less of it: {short(str(error))}") from None
        return self._database

    def query(self, statement: str, limits: sql.Limits | None = None, copies: Sequence[Copy] = ()) -> sql.QueryResult:
        """Runs one read-only SELECT over this store's tables, or `copies` in their place. Raises SqlError, SqlRefused
        or SqlLimit."""
        database = self._open()
        if self._own and not self._locked:
            arm(database)
            sql.lock(database)
            self._locked = True
        replaced = {copy.of for copy in copies}
        names = [table.name for table in self.catalog.tables if table.name not in replaced]
        with self._copied(copies):
            return sql.run(database, statement, [*names, *(copy.name for copy in copies)], limits, self._ready)

    def _ready(self, checked: Checked) -> bool:
        """Loads what a statement reads; whether its rows are probably few, and have neither times nor lists."""
        self._open(*checked.tables)
        read = (table for table in self.catalog.tables if table.name in checked.tables)
        others = (column.name.lower() for table in read for column in table.columns if column.type not in _PLAIN)
        text = checked.text.lower()
        return not (self._own or _STAR.search(text) or any(name in text for name in others))

    @contextmanager
    def _copied(self, copies: Sequence[Copy]) -> Iterator[None]:
        """Has temporary tables stand before those of the same names, rows in the same order, for one statement."""
        made: list[str] = []
        try:
            for copy in copies:
                made.append(self._copy(self._open(copy.of), copy))
            yield
        finally:
            for name in made if self._database is not None else ():
                self._open().execute(f"DROP TABLE {name}")
                self._made.remove(name)

    def _copy(self, database: duckdb.DuckDBPyConnection, copy: Copy) -> str:
        """Creates what stands for a table; its full name."""
        name = f"temp.{quote(copy.name)}"
        source = f"main.{quote(copy.of)} AS _old"
        selected = ", ".join(
            f"{'_new' if old in copy.values else '_old'}.{quote(old)} AS {quote(new)}"
            for new, old in copy.columns.items()
        )
        try:
            if copy.values:
                source += f" POSITIONAL JOIN {sql.GIVEN} AS _new"
            statement = f"CREATE TEMP TABLE {quote(copy.name)} AS SELECT {selected} FROM {source}"
            sql.load(database, statement, pa.table(dict(copy.values)))
            self._made.append(name)
        except (duckdb.Error, pa.ArrowException, MemoryError) as error:
            raise SqlError(f"{copy.name} could not be masked, ask with less data: {short(str(error))}") from None
        return name

    def columns(self, table: str, names: Sequence[str], lists: Collection[str] = ()) -> dict[str, pa.Array[Any]]:
        """Columns of a table, in the order of its rows; those that are `lists` as DuckDB's text of them. Texts may
        come as codes."""
        held, _ = self._waiting.get(table, (_NOTHING, {}))
        if held.keys() >= set(names):
            return {name: list_texts(held[name]) if name in lists else _whole(held[name]) for name in names}
        selected = (f"{quote(name)}::VARCHAR AS {quote(name)}" if name in lists else quote(name) for name in names)
        read: pa.Table = self._open(table).sql(f"SELECT {', '.join(selected)} FROM {quote(table)}").to_arrow_table()
        return {name: read.column(i).combine_chunks() for i, name in enumerate(names)}

    def kinds(self, table: str, key: str) -> list[str]:
        """Of which type the value of a `key` is in each row of a base table, as the shapes of the table spell it."""
        walk = (data for root in self._roots for data in root.data.walk() if data.name == table)
        if (data := next(walk, None)) is None:
            return []
        if not isinstance(data.signatures, list):
            return [kind_at(data.signatures, key)] * data.rows
        known = {id(signature): signature for signature in data.signatures}
        kinds = {number: kind_at(signature, key) for number, signature in known.items()}
        return [kinds[id(signature)] for signature in data.signatures]

    def _create(self, root: Root, taken: set[str]) -> list[Table]:
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
                tables.append(self._load(name, data, None if parent is hidden else parent, root))
        return tables

    def _child_name(self, data: TableData, parent: TableData, taken: set[str]) -> str:
        keys = [key for key in data.path if not isinstance(key, tuple)]
        above = parent.name
        own = keys[len([key for key in parent.path if not isinstance(key, tuple)]) :]
        if not own:
            own = [{PAIRS: "pairs", LIST: "items", MAP: "entries"}.get(data.path[-1], "series")]
        candidates = (str(own[-1]), "_".join(map(str, own)), f"{above}_{own[-1]}")
        free = (name for name in map(identifier, candidates) if name.lower() not in taken)
        return next(free, None) or free_name(identifier(candidates[-1]), taken)

    def _load(self, name: str, data: TableData, parent: TableData | None, root: Root) -> Table:
        arrays: Arrays = {}
        columns: list[Column] = []

        def add(column: str, array: Any, path: str = "", derived: bool = False, *of: Any) -> None:
            arrays[column] = array
            columns.append(Column(column, type_name(array.type), path, derived, *of))

        above = parent.name if parent is not None else None
        if data.children:
            add("_id", pa.array(np.arange(data.rows, dtype=np.int64)))
        if parent is not None:
            add(f"parent_{above}", pa.array(data.parents))
            add("series_idx", pa.array(data.series))
        add("_row_id", pa.array(data.positions))
        if data is root.data and root.lines:
            add("_line", pa.array(root.lines, pa.int64()))
        if data.keys is not None:
            add("_key", pa.array(map(encodable, data.keys), pa.string()))
        used = {column.lower() for column in arrays} | _RESERVED
        if root.free_text and data is root.data:
            used |= {"template", "variables"}
        # What was parsed is called first: a derived column never takes the name of one that the source has.
        for path, column in sorted(data.columns.items(), key=lambda item: item[1].derived):
            column.name = free_name(column_name(path), used)
            used.add(column.name.lower())
        for path, column in data.columns.items():
            assert column.array is not None
            source = path[:-1] if path and path[-1] in TYPED else _TEXTS.get(path) if root.relation else None
            typed = data.columns[source].name if source in data.columns else ""
            add(column.name, column.array, dotted(path), column.derived, typed, column.names)
            column.array = None
        said = self._read_text(arrays, columns) if root.free_text and data is root.data else {}
        data.series = data.positions = data.parents[:0]
        if self._database is None:
            self._waiting[name] = arrays, said
        else:
            self._fill(self._database, name, arrays, said)
        return Table(
            name,
            tuple(columns),
            data.rows,
            dotted(data.path) or (LINES if root.free_text else "$"),
            above,
            "relation" if root.relation else "derived" if data.derived else "base",
            shapes(data),
            data.lists,
            root.source,
        )

    def _read_text(self, arrays: Arrays, columns: list[Column]) -> dict[str, str]:
        """Puts what lines say behind their text; gives the SQL of it."""
        columns.sort(key=lambda column: column.name not in LINE)
        first = sum(column.name in LINE for column in columns)
        columns[first:first] = [Column(name, kind, "text", True) for name, kind in SAID.items()]
        ids = ids_of(arrays["text"])
        if self._database is None:
            arrays["template"] = masked_texts(arrays["text"], HIDDEN, ids)
        return {"template": template_of("text", ids), "variables": variables_of("text", ids)}

    def _fill(self, database: duckdb.DuckDBPyConnection, name: str, arrays: Arrays, said: Mapping[str, str]) -> None:
        """Creates a table of `arrays`, which it empties; a large one slice by slice, of which each is freed, and
        compressed before the next one is loaded. `said` is the SQL of what lines say beside their text."""
        source = pa.table(arrays)
        arrays.clear()
        table, texts = f"main.{quote(name)}", list[str]()
        spared = declared_lines(source, said) if said else declared(source, self._text)
        selected = _selected(source.column_names, said) if said and spared is None else "*"
        if spared is not None:
            source, texts = source.select(spared.loaded), spared.texts
            database.execute(f"CREATE TABLE {table} ({spared.definitions})")
            self._made.append(table)
        wide = (field.with_type(pa.int64()) if field.type == pa.int32() else field for field in source.schema)
        schema = source.schema if spared else pa.schema(list(wide))
        rows = max(1, source.num_rows)
        width, step = 0.0, rows
        if self._own:
            stored = (source.column(column) for column in source.column_names if column not in texts)
            width = max(1, _size(stored) / rows + 2 * len(texts))
            least = _ROW_GROUP
            if selected != "*" and rows <= 2 * _ROW_GROUP:  # what is made of texts takes as much again: in halves
                least = (rows // 2 // _VECTOR + 1) * _VECTOR
            step = max(1, int(self._most / width / least)) * least
        slices = [source.slice(start, step) for start in range(0, rows, step)]
        del source
        trims = max(1, min(_TRIMMED, 2 * _TRIMMED // len(slices))) if self._own else 0
        for part in map(list.pop, repeat(slices, len(slices)), repeat(0)):
            self._make_room(database, width * part.num_rows, self._most)
            batches = part.to_batches()[::-1]
            del part
            reader = pa.RecordBatchReader.from_batches(schema, _taken(batches, schema, trims))
            into = f"INSERT INTO {table}" if table in self._made else f"CREATE TABLE {table} AS"
            sql.load(database, f"{into} SELECT {selected} FROM {sql.GIVEN}", reader)
            if table not in self._made:
                self._made.append(table)
            del reader
            if self._own:
                pa.default_memory_pool().release_unused()
            self._make_room(database, 0, self._most)
        for text in texts:
            self._make_room(database, 16 * rows, self._most / 8)
            database.execute(f"ALTER TABLE {table} ALTER COLUMN {quote(text)} TYPE VARCHAR")

    def _make_room(self, database: duckdb.DuckDBPyConnection, size: float, most: float) -> None:
        """Compresses what is loaded before so many bytes more would be too many."""
        if self._loaded and self._loaded + size > most:
            database.execute("CHECKPOINT")
            self._loaded = 0
        self._loaded += size

    def reconstruct(self, i: int) -> Any:
        """The value of part `i` (counted over all documents), read back from the tables."""
        if not isinstance(i, int) or isinstance(i, bool):
            raise InputError(f"a part is told by its number, from 0, not by {article(i)}")
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
            rows = elements(self.columns, root.data)
            for number, start, end in root.layout:
                parts[number] = rows[start] if end is None else rows[start:end]
        return [parts[number] for number in sorted(parts)]


def _selected(names: Sequence[str], said: Mapping[str, str]) -> str:
    """What is selected of the columns of lines that are loaded: what they say stands behind their text."""
    first = [name for name in names if name in LINE]
    made = [name if name in names else f"{found} AS {name}" for name, found in said.items()]
    known = [*first, *(name for name in said if name in names)]
    return f"{', '.join([*first, *made])}, * EXCLUDE ({', '.join(known)})"


def _taken(batches: list[pa.RecordBatch], schema: pa.Schema, trims: int) -> Iterator[pa.RecordBatch]:
    """Batches, the last one first, each of which is freed once it was read; the system gets it back so many times."""
    some = len(batches) // trims + 1 if trims else 0
    while batches:
        batch = batches.pop()
        yield batch if batch.schema.equals(schema) else batch.cast(schema)
        del batch
        if some and len(batches) % some == 0:
            trim()


_NBYTES, _BUFFERS = attrgetter("nbytes"), methodcaller("get_total_buffer_size")
"""The bytes of an Arrow array, and those of all that it is a part of: never fewer, and told thirty times as fast."""


def _size(columns: Iterable[Any], size: Callable[[Any], int] = _NBYTES) -> int:
    """About how many bytes DuckDB takes for columns until it compresses them; 16 for a text that comes as a code."""
    return sum(16 * len(column) if pa.types.is_dictionary(column.type) else size(column) for column in columns)


def _arrays(data: TableData) -> Iterator[Any]:
    """All columns of a table and those below it."""
    columns = (column for table in data.walk() for column in table.columns.values())
    return (column.array for column in columns if column.array is not None)


def _whole(column: Any) -> pa.Array[Any]:
    """A column that may come in chunks as an array; codes of one chunk may be too narrow for the texts of all."""
    if not isinstance(column, pa.ChunkedArray):
        array: pa.Array[Any] = column
        return array
    return (column.cast(_WIDE) if pa.types.is_dictionary(column.type) else column).combine_chunks()


_WIDE = pa.dictionary(pa.int32(), pa.string())


__all__ = ["Copy", "Datastore", "Source"]
