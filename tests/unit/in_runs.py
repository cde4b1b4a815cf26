"""The same text read in runs and at once, and all that is to be the same then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

import hyve
from hyve import csvrows, delimited, freetext, parts, strictjson
from hyve.gather import gather
from hyve.shape import TableData
from tests.fuzz.target import same
from tests.unit.documents import fetched


@contextmanager
def in_runs(size: int = 1) -> Iterator[None]:
    """Reads every list that begins with an object in runs of some `size` characters, however short it is."""
    with (
        mock.patch.multiple(strictjson, LONG=0, RUN=size, _PIECE=1, _AROUND=1),
        mock.patch.multiple(delimited, _RUN_CELLS=size, LINES=1),
        mock.patch.object(csvrows, "LINES", 1),
        mock.patch.object(freetext, "_CHARACTERS", min(freetext._CHARACTERS, size)),
        mock.patch.object(parts, "_STEP", max(1, min(parts._STEP, size >> 12))),
    ):
        yield


def described(data: TableData) -> Any:
    """All that a table and those below it hold."""
    columns = []
    for path, column in data.columns.items():
        assert column.array is not None
        kind = column.array.type
        if pa.types.is_dictionary(kind):  # another way to hold the same texts
            kind = kind.value_type
        kind = pa.int64() if pa.types.is_int32(kind) else kind
        plain: Any = column.array.cast(pa.string()) if pa.types.is_timestamp(kind) else column.array
        columns.append((path, str(kind), repr(plain.to_pylist()), column.derived, column.exact))
    return (
        (data.path, data.rows, data.derived, data.lists, data.keys),
        (data.parents.tolist(), data.series.tolist(), data.positions.tolist()),
        data.signatures,
        columns,
        [described(child) for child in data.children.values()],
    )


def gathered(text: str) -> Any:
    """All tables of a text, and what was done to read them."""
    relations, roots, flags = gather([hyve.parse(text)])
    told = [(root.name, list(root.layout), root.source, described(root.data)) for root in (*relations, *roots)]
    return told, flags


def stored(text: str) -> Any:
    """Every table of a text's store with its catalog entry and all of its rows, the parts read back, and the flags."""
    with hyve.Datastore.from_text(text) as store:
        tables = []
        for table in store.catalog.tables:
            name = '"' + table.name.replace('"', '""') + '"'
            tables.append((table, [repr(row) for row in fetched(store, f"SELECT * FROM {name} ORDER BY rowid")]))
        return tables, [store.reconstruct(i) for i in range(len(store.sources[0].syntaxes))], store.flags


def check(text: str, size: int = 1, look: Callable[[str], Any] = gathered) -> None:
    """A text gives the same in both ways."""
    with in_runs(size):
        parts = hyve.parse(text).parts
        assert all(part.ahead is not None for part in parts)
        read, found = [part.value for part in parts], look(text)
    with mock.patch.object(strictjson, "LONG", 1 << 60):
        whole = hyve.parse(text).parts
        assert all(part.ahead is None for part in whole)
        wanted = look(text)
    assert same(read, [part.value for part in whole])
    assert [(part.span, part.flags) for part in parts] == [(part.span, part.flags) for part in whole]
    assert repr(found) == repr(wanted)
