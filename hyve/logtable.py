"""A table of log records of one shape -> the relation `log_records`, column by column.

Rules: the rows are those that `formats.logs` makes of the records one by one (a test compares them); where a column
needs more than a look at its distinct values, there is no answer and the records are read one by one. No array is
copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.formats import levels, logs
from hyve.shape import TIME, ColumnData, Path, TableData

_LEVELS = 64
_FEW = 1_000
_IDS = r"^(?:[0-9a-f]{16}|[0-9a-f]{32})$"
_ZEROS = r"^0+$"


def log_table(data: TableData) -> TableData | None:
    """The relation of a root table whose rows all have one shape, or None. A last row that was cut has not."""
    data = _but_cut(data)
    signature = data.signatures
    if not data.rows or data.children or not isinstance(signature, tuple) or signature[0] != "o":
        return None
    plan = logs.plan(tuple(key for key, _ in signature[1]))
    if plan.time is None or plan.body is None or plan.rank or not (plan.levels or plan.marked):
        return None
    if plan.time == "@t" and not plan.levels:  # Serilog leaves out what is no news
        return None
    needed = (plan.body, *plan.levels[:1], *plan.services[:1], *plan.traces[:1], *plan.spans[:1])
    texts = {key: array for key in needed if (array := _texts(data, key)) is not None}
    time = data.columns.get((plan.time, TIME))
    if len(texts) < len(set(needed)) or time is None or time.array is None or time.array.null_count:
        return None
    severity = _severities(texts[plan.levels[0]]) if plan.levels else _severities_in(texts[plan.body])
    ids = [_ids(texts[keys[0]]) if keys else _none(data) for keys in (plan.traces, plan.spans)]
    service = texts[plan.services[0]] if plan.services else None
    if severity is None or ids[0] is None or ids[1] is None or service is None or _blank(service):
        return None
    columns: dict[Path, pa.Array[Any]] = {
        ("time",): time.array,
        ("service",): service,
        ("severity",): severity[0],
        ("severity_number",): severity[1],
        ("body",): texts[plan.body],
        ("trace_id",): ids[0],
        ("span_id",): ids[1],
    }
    for name, keys in (("attributes", plan.attributes), ("resource", plan.resources)):
        for path, column in data.columns.items():
            if path[0] in keys and not column.derived:
                assert column.array is not None  # the store takes arrays away later
                columns[name, *path] = column.array
    made = TableData((), data.rows, True, data.parents, data.series, data.positions)
    made.columns = {path: ColumnData(array, derived=True) for path, array in columns.items()}
    made.signatures = ("o", tuple((key, "v") for key in dict.fromkeys(path[0] for path in columns)))
    return made


def _but_cut(data: TableData) -> TableData:
    """A table of records without the last one, where that ends before it has all that makes a log record."""
    if not isinstance(data.signatures, list) or data.children:
        return data
    first, last = data.signatures[0], data.signatures[-1]
    if not (isinstance(first, tuple) and isinstance(last, tuple) and first[0] == last[0] == "o"):
        return data
    if any(signature is not first for signature in data.signatures[:-1]):
        return data
    plan = logs.plan(tuple(key for key, _ in last[1]))
    if (plan.time is not None and plan.body is not None) or last[1] != first[1][: len(last[1])]:
        return data
    rows = data.rows - 1
    made = TableData((), rows, data.derived, data.parents, data.series[:rows], data.positions[:rows], signatures=first)
    for path, column in data.columns.items():
        array = None if column.array is None else column.array.slice(0, rows)
        made.columns[path] = ColumnData(array, column.derived)
    return made


_EMPTY = pa.scalar("")


def _texts(data: TableData, key: str) -> pa.Array[Any] | None:
    column = data.columns.get((key,))
    array = column.array if column is not None else None
    return array if array is not None and pa.types.is_string(array.type) and not array.null_count else None


def _none(data: TableData) -> pa.Array[Any]:
    return pa.nulls(data.rows, pa.string())


def _blank(texts: pa.Array[Any]) -> bool:
    """Whether some texts are empty."""
    return "" in texts.to_pylist() if len(texts) <= _FEW else bool(pc.any(pc.equal(texts, _EMPTY)).as_py())


def _severities(array: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]] | None:
    """Names and numbers of levels of which each is known."""
    encoded: Any = array if len(array) <= _FEW else array.dictionary_encode()
    each: list[str] = (array if encoded is array else encoded.dictionary).to_pylist()
    distinct = set(each)
    if len(distinct) > _LEVELS:
        return None
    found = {level: levels.severity_of(level) for level in distinct}
    if not all(name for name, _ in found.values()):
        return None
    names, numbers = _columns([found[level] for level in each])
    return (names, numbers) if encoded is array else (names.take(encoded.indices), numbers.take(encoded.indices))


def _severities_in(bodies: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Names and numbers of the levels that messages say themselves."""
    return _columns([levels.severity_in(body or "") for body in bodies.to_pylist()])


def _columns(found: Sequence[tuple[str, int | None]]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    return pa.array([name for name, _ in found], pa.string()), pa.array([number for _, number in found], pa.int64())


def _ids(array: pa.Array[Any]) -> pa.Array[Any] | None:
    """Trace or span ids that need no mending, as they are."""
    if len(array) <= _FEW:  # a pattern takes longer to be read than they do
        ids: list[Any] = array.to_pylist()
        good = {16, 32}.issuperset(map(len, ids)) and not "".join(ids).strip("0123456789abcdef")
        return array if good and all(one.strip("0") for one in ids) else None
    hex_ids = pc.and_(pc.match_substring_regex(array, _IDS), pc.invert(pc.match_substring_regex(array, _ZEROS)))
    return array if np.asarray(hex_ids).all() else None
