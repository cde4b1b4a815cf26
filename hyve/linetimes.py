"""The times of log lines -> one typed column, though they are of several logs: what is pasted nearly always is (H9).

Rules:
- Times of one form are read as if they stood alone (`hyve.typed`); what is of no form that is read is NULL, however
  much of the column that is.
- A time that says its zone is in UTC, one that says none is as written: lines are compared by what they show.
- A time without a year (syslog, klog, Android) has the year that puts it nearest to the others of its text, if these
  have one. Of a clock alone nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve import typed
from hyve.typed import MONTHS, TIME, Values

_FORMS = 64
"""Forms that are told apart, the most frequent ones: those of a text that is no trap are few."""
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_YEARLESS = (rf"^({'|'.join(MONTHS)}) ([ \d]\d) ({_CLOCK})$", rf"^(\d\d)-?(\d\d) ({_CLOCK})$")
_HALF_YEAR = 365 * 43_200_000_000_000


def spelled(texts: Values, name: tuple[Any, ...], of_lines: bool) -> Iterator[tuple[str, Values]]:
    """What a column of texts spells, as `typed.spelled` has it; of the times of log lines, those of all forms. `name`
    has one item, or none where the column is its whole table."""
    if not of_lines or name != ("time",):
        yield from typed.spelled(texts, *name)
        return
    told = len(texts) - texts.null_count
    for kind, values in typed.spelled(texts, *name):
        if kind != TIME or len(values) - values.null_count == told:
            yield kind, values
            return
    values = _times(texts)
    if values is not None:
        yield TIME, values


def _times(texts: Values) -> Values | None:
    """The instants of times of several forms; None where none is known."""
    array: Any = texts.cast(pa.string()) if pa.types.is_dictionary(texts.type) else texts
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found, known = np.zeros(len(array), np.int64), np.zeros(len(array), bool)

    def put(rows: Any, values: Any) -> None:
        some = np.asarray(values.is_valid())
        known[rows[some]] = True
        found[rows[some]] = np.asarray(values.drop_null().cast(pa.int64()))

    forms: Any = pc.replace_substring_regex(pc.replace_substring_regex(array, r"\d+", "9"), "[A-Za-z]+", "a")
    forms = forms.dictionary_encode()
    counts = np.bincount(np.asarray(forms.indices.drop_null()), minlength=len(forms.dictionary))
    codes = np.asarray(forms.indices.fill_null(-1))
    for form in np.argsort(-counts, kind="stable")[:_FORMS]:
        rows = np.flatnonzero(codes == form)
        for kind, values in typed.spelled(array.take(pa.array(rows)), "time"):
            if kind == TIME:
                put(rows, values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    if not known.any():
        return None
    middle = int(np.median(found[known]))
    for form in _YEARLESS:
        rows = np.flatnonzero(np.asarray(pc.match_substring_regex(array, form).fill_null(False)) & ~known)
        if len(rows):
            put(rows, _with_year(array.take(pa.array(rows)), form, middle))
    return pa.array(found, mask=~known).cast(pa.timestamp("ns"))


def _with_year(array: Any, form: str, middle: int) -> Any:
    """The instants of times without a year that are nearest to `middle`, in nanoseconds since 1970."""
    near = int(np.datetime64(middle, "ns").astype("datetime64[Y]").astype(int)) + 1970
    written = pc.replace_substring_regex(array, form, r"\1-\2T\3")
    for number, month in enumerate(MONTHS, 1):
        written = pc.replace_substring(written, f"{month}-", f"{number:02d}-")
    written = pc.replace_substring(written, " ", "0")
    best: Any = pa.nulls(len(array), pa.timestamp("ns"))
    for year in (near, near - 1, near + 1):
        texts = pc.binary_join_element_wise(f"{year:04d}", written, "-")
        read = next((values for kind, values in typed.spelled(texts, "time") if kind == TIME), None)
        if read is None:
            continue
        away = pc.abs(pc.subtract(read.cast(pa.int64()), middle))
        best = pc.coalesce(
            pc.if_else(pc.less_equal(away, pa.scalar(_HALF_YEAR)), read, pa.scalar(None, read.type)), best
        )
    return best
