"""The tables of a Prometheus matrix -> the relation `metric_points`, column by column.

Rules: the rows are those that `formats.prometheus` makes of the samples one by one (a test compares them). Only what
answers usually look like is read: labels that are texts, and samples of a time and a number, which most likely is a
text. For anything else there is no answer, and the samples are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve.choices import are_ids
from hyve.formats import prometheus
from hyve.formats.scalars import EXACT, NUMBER_KEYS, Row, scaled_ns, value_text
from hyve.runs import code_type
from hyve.shape import INDEX, LIST, NUMBER, ColumnData, Path, Signature, TableData

_LABELS = 40
"""Labels that are columns whatever they are called; more of them may be rows of a table."""

_FEW = 4
"""Samples that a series has at least, in the mean: an object is made of each series."""

_NULLS = 1 << 12
"""Rows of a piece of a column without values."""

_NUMBER = r"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|[+-]?Inf|NaN)$"
_LONGEST = 400
"""Characters of a number, as `scalars.number` reads it."""


def metric_table(root: TableData, keys: Path, coded: bool) -> TableData | None:
    """The relation of an answer whose list of series stands at `keys`, or None. `coded`: its texts are codes."""
    series = root.children.get((*keys, LIST)) if keys else root
    samples = series.children.get(("values", LIST)) if series is not None else None
    if series is None or samples is None or not 0 < series.rows * _FEW <= samples.rows:
        return None
    labels, time, values = _labels(series), _times(samples), _values(samples, coded)
    if labels is None or time is None or values is None:
        return None
    value, odd = values
    counts = np.bincount(samples.parents, minlength=series.rows)
    first = list(map(prometheus.series_row, compress(labels, counts)))
    names = dict.fromkeys(chain.from_iterable(row["attributes"] for row in first))
    if len(names) > _LABELS or are_ids(names):
        return None
    counts = counts[counts > 0]
    places = pa.array(np.repeat(np.arange(len(first), dtype=np.int32), counts))
    spread: dict[tuple[str | None, ...], Any] = {}  # the service is what a label says, most likely

    def text_column(texts: Iterable[str | None]) -> Any:
        each = tuple(texts)
        if each not in spread:
            spread[each] = _spread(each, places, coded)
        return spread[each]

    columns: dict[Path, Any] = {}
    for key, example in first[0].items():
        if key == "attributes":
            for name in names:
                columns[key, name] = text_column(row[key].get(name) for row in first)
        elif type(example) is str:
            columns[key,] = text_column(row[key] for row in first)
        elif example is None:
            columns[key,] = {"time": time, "value": value}.get(key) or _nothing(samples.rows, NUMBER_KEYS[key], coded)
    if odd is not None:
        columns["value_text",] = odd
    none = samples.parents[:0]
    made = TableData((), samples.rows, True, none, none, np.arange(samples.rows, dtype=np.int32))
    made.columns = {path: ColumnData(array, derived=True) for path, array in columns.items()}
    made.signatures = _signatures(first, counts, odd)
    return made


def _labels(series: TableData) -> list[dict[str, str | None]] | None:
    """The labels of each series, if all have some and a list of samples."""
    signatures = series.signatures
    made: dict[Signature, list[str]] = {}
    for signature in dict.fromkeys(signatures if isinstance(signatures, list) else (signatures,)):
        fields = dict(signature[1]) if isinstance(signature, tuple) and signature[0] == "o" else {}
        metric = fields.get("metric")
        if fields.get("values") != "l" or not isinstance(metric, tuple) or metric[0] != "o":
            return None
        if any(kind != "v" or type(label) is not str for label, kind in metric[1]):
            return None
        made[signature] = [label for label, _ in metric[1]]
    columns = {}
    for label in dict.fromkeys(chain.from_iterable(made.values())):
        column = series.columns["metric", label]
        if column.array is None or column.exact or not pa.types.is_string(column.array.type):
            return None
        columns[label] = column.array.to_pylist()
    rows = enumerate(signatures if isinstance(signatures, list) else repeat(signatures, series.rows))
    return [{label: columns[label][row] for label in made[signature]} for row, signature in rows]


def _times(samples: TableData) -> Any:
    """The times of samples that are all [number, ...] of two items, in nanoseconds, as an array; else None."""
    signatures = samples.signatures
    for signature in set(signatures) if isinstance(signatures, list) else {signatures}:
        if not isinstance(signature, tuple) or signature[0] != "t" or len(signature[1]) != 2 or signature[1][1] != "v":
            return None
    array = samples.columns[(INDEX, 0),].array
    if array is None or array.null_count or not (pa.types.is_int64(array.type) or pa.types.is_float64(array.type)):
        return None
    seconds, places = np.unique(array.to_numpy(), return_inverse=True)  # series share their times
    times: Any = pa.array([scaled_ns(second, 1) for second in seconds.tolist()], pa.timestamp("ns"))
    return times.take(pa.array(places, pa.int64()))


def _values(samples: TableData, coded: bool) -> tuple[Any, Any] | None:
    """The second items, of which each is a number or spells one, as an array of numbers, and as one of texts what
    `value_text` says of those that a double doesn't hold, if there are any; else None."""
    column = samples.columns[(INDEX, 1),]
    told = samples.columns.get(((INDEX, 1), NUMBER))
    given: Any = column.array
    if given is None or given.null_count or column.exact:
        return None
    if pa.types.is_string(given.type):
        if told is None or told.array is None or pc.max(pc.binary_length(given)).as_py() > _LONGEST:
            return None
        if not pc.all(pc.match_substring_regex(given, _NUMBER)).as_py():
            return None
        read: Any = given if pa.types.is_decimal(told.array.type) else told.array
        array = read.cast(pa.float64(), safe=False)
    elif pa.types.is_int64(given.type):
        array = given.cast(pa.float64(), safe=False)
    elif pa.types.is_float64(given.type):
        array = pc.if_else(pc.is_finite(given), given, pa.scalar(None, pa.float64()))
    else:
        return None
    inexact = pc.fill_null(pc.greater_equal(pc.abs(array), pa.scalar(float(EXACT))), True)
    if not pc.any(inexact).as_py():
        return array, None
    odd = pc.if_else(inexact, given, pa.scalar(None, given.type)).dictionary_encode()
    texts = [value_text(value).get("value_text") for value in odd.dictionary.to_pylist()]
    return array, _spread(texts, odd.indices, coded) if any(texts) else None


def _nothing(rows: int, kind: type, coded: bool) -> Any:
    """A column of numbers without one; in chunks that share one array where texts are codes."""
    nulls = pa.nulls(min(rows, _NULLS) if coded else rows, pa.float64() if kind is float else pa.int64())
    if not coded:
        return nulls
    return pa.chunked_array([nulls.slice(0, rows - start) for start in range(0, rows, _NULLS)], nulls.type)


def _spread(texts: Sequence[str | None], places: pa.Array[Any], coded: bool) -> Any:
    """The text of each row's series."""
    array: Any = pa.array(texts, pa.string())
    if not coded:
        return array.take(places)
    codes = array.dictionary_encode()
    kind = code_type(len(codes.dictionary))
    return array.take(places) if kind is None else codes.take(places).cast(kind)


def _signatures(first: list[Row], counts: Any, odd: Any) -> Signature | list[Signature]:
    """The signatures of the rows; those that have an `odd` text have one more field."""
    made: dict[tuple[str, ...], Signature] = {}
    for row in first:
        labels = tuple(row["attributes"])
        if labels not in made:
            inner = {"attributes": ("o", tuple((label, "v") for label in labels)), "resource": ("o", ())}
            made[labels] = ("o", tuple((key, inner.get(key, "v")) for key in row))
    if len(made) == 1 and odd is None:
        return next(iter(made.values()))
    each = (repeat(made[tuple(row["attributes"])], count) for row, count in zip(first, counts.tolist(), strict=True))
    signatures = list(chain.from_iterable(each))
    if odd is not None:
        longer = {id(one): (one[0], (*one[1], ("value_text", "v"))) for one in made.values()}
        for place in np.flatnonzero(odd.is_valid().to_numpy(zero_copy_only=False)).tolist():
            signatures[place] = longer[id(signatures[place])]
    return signatures if len(set(map(id, signatures))) > 1 else signatures[0]
