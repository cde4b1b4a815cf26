"""What is said of a table's columns, a line each, or one of several that take few words (H14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hyve.catalog import Column
from hyve.figures import duration_text, epoch_unit, instant_text, rounded
from hyve.fit import COLUMNS, Line
from hyve.growing import SHORT, Cell, Listing, Plain
from hyve.ladder import Item
from hyve.mistyped import Mistyped
from hyve.naming import quote
from hyve.profile import SERIES, ColumnView, listed
from hyve.rowview import listing, show

_SAMPLE = 60
_BRIEF = 24
"""Of values of more characters fewer are listed."""
_TOGETHER, _EQUAL = 24, 12
"""Most columns of one value that share a line, and that are told together."""


def one_value(view: ColumnView) -> bool:
    return view.distinct <= 1 and not view.odd


def of_few_words(views: Sequence[ColumnView]) -> Iterable[tuple[str, dict[str, tuple[str, ...]]]]:
    """(label, what is listed, each with its columns) of those that take few words: of one value, empty, or the same as
    another."""
    groups: dict[str, dict[str, list[Column]]] = {}
    for view in views:
        if view.same:
            label, value = "the same", quote(view.same)
        elif not view.distinct:
            label, value = "all empty", ""
        else:
            label, value = f"one value, {view.nulls:,} empty" if view.nulls else "constant", _item(view)
        groups.setdefault(label, {}).setdefault(value, []).append(view.column)
    for label, values in groups.items():
        listed: dict[str, tuple[str, ...]] = {}
        told = 0
        for value, alike in values.items():
            most = _EQUAL if value else 1
            for start in range(0, len(alike), most):
                some = tuple(column.name for column in alike[start : start + most])
                names = [quote(name) for name in some]
                listed[" = ".join([*names, value] if value else names)] = some
                told += len(some)
                if told >= _TOGETHER:
                    yield f"- {label}: ", listed
                    listed, told = {}, 0
        if listed:
            yield f"- {label}: ", listed


def _item(view: ColumnView) -> str:
    """The one value of a column among others."""
    value = only_value(view)
    return listing(value, SHORT) if view.column.type == "VARCHAR" else show(value, SHORT)


def only_value(view: ColumnView) -> Any:
    return view.values[0][0] if view.values else view.low


def column_line(
    table: int,
    place: int,
    share: float,
    view: ColumnView,
    few: int,
    each_more: float,
    series: dict[str, str],
    mistyped: Mistyped | None,
) -> Item:
    """A column's line: of values `few` at first, and one more for `each_more` tokens that are spent. `series` names the
    numbers of series, `mistyped` tells its texts that have no number or time."""
    name = view.column.name
    head = f"- {quote(name)} {view.column.type}"
    other = mistyped or Mistyped()
    texts = other.texts
    nulls = other.said + (f", {view.nulls - texts:,} empty" if view.nulls > texts else "")
    nulls += f", {view.odd:,} NaN or infinite" if view.odd else ""

    def line(text: str) -> Line:
        return Line(table, COLUMNS, place, text, (name,), varied=True)

    if view.distinct == 0:
        return Plain(line(f"{head}: {nulls[2:]}" if texts else f"{head}: all empty"), share)
    if view.distinct == 1:
        return Cell(line(f"{head} = "), share, only_value(view), nulls + other.kinds)
    head += other.kinds  # before the counts, which are not of these alone
    mean = "" if view.mean is None else f", mean {rounded(view.mean, 6)}"
    if listed(view):
        counts = {count for _, count in view.values}
        each = f", {row_count(counts.pop())} each" if len(counts) == 1 and view.complete else ""
        names = series if name == SERIES else {}
        shown = [(f"{value} = {names[value]}" if value in names else value, n) for value, n in view.values]
        said = [listing(text) if each else f"{listing(text)} ×{count:,}" for text, count in shown]
        text = f"{head}: {view.distinct} values{each}{mean}{nulls}: "
        long = max(1.0, sum(map(len, said)) / len(said) / _BRIEF) ** 2
        return Listing(line(text), share, said, more_of(view.distinct), few, each_more * long)
    edges: list[str] = []
    unit = epoch_unit(view)
    filled = view.rows - view.nulls
    short = all(len(str(value)) <= _SAMPLE for value in view.samples)  # the first and last rows show longer ones
    plain = not (view.time or view.identifier or unit or name == SERIES)
    ordered = short and plain and view.step is None
    if len(view.samples) == 5 and filled > 5 and ordered:
        first, last = ([listing(value, 40) for value in part] for part in (view.samples[:3], view.samples[3:]))
        for most, least in ((1, 2), (1, 1), (3, 1), (3, 0)):
            some = [*first[:most], f"... ({filled - most - 2 + least:,} more rows)", *last[least:]]
            edges.append(f", in order: {', '.join(some)}")
    span = f", {show(view.low)}..{show(view.high)}" if (view.numeric or view.time) and view.low is not None else ""
    if unit:
        span += _instants(view, unit)
    step = ""
    if view.step is not None:
        size = view.step.size
        timed = view.time or unit
        step = f", every {duration_text(size / (unit[0] if unit else 1)) if timed else f'{size:g}'}" + (
            f" but for {view.step.gaps} gap{'s' * (view.step.gaps > 1)}" if view.step.gaps else ""
        )
        mean = ""
    often = "".join(f", {listing(text, 40)} ×{count:,}" for text, count in view.heavy)
    return Plain(line(f"{head}: {view.distinct:,} distinct{often}{span}{step}{mean}{nulls}"), share, edges)


def more_of(all_of_them: int) -> Callable[[int], str]:
    """What says how many of all are not listed."""
    return lambda listed: f", ... ({all_of_them - listed:,} more)" if listed < all_of_them else ""


def _instants(view: ColumnView, unit: tuple[int, str]) -> str:
    """` ns = 2026-03-01 10:00:05..10:12:41 UTC`: the unit of times that are numbers, and from when to when they are."""
    low, high = (instant_text(number, unit[0])[:19] for number in (view.low, view.high))
    return f" {unit[1]} = {low}..{high[11:] if low[:10] == high[:10] else high} UTC"


def row_count(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
