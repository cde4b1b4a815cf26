"""What is said of a table's columns, a line each, or one of several that take few words (H14)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import Any

from hyve import bundles
from hyve.catalog import Column
from hyve.figures import duration_text, epoch_unit, instant_text, mean_text
from hyve.fit import COLUMNS, Line
from hyve.growing import SHORT, Cell, Listing, Plain
from hyve.ladder import Item
from hyve.mistyped import Mistyped
from hyve.naming import quote
from hyve.profile import SERIES, ColumnView, is_dimension, listed
from hyve.rowview import listing, show
from hyve.zones import unknown

_SAMPLE = 60
_FEW_NAMES = 5
"""So few names are told though means tell them again."""
_THEN = 1.12
"""The priority of names beyond the first ones: a few rows come before them."""
_EDGES = 0.8
"""The priority of first and last values: the first rows show them, too."""
_NUMBERED = "series_idx: of which list a row is, from 0"
_BRIEF = 24
"""Of values of more characters fewer are listed."""
_LABELS = ("the same", "constant", "one value, else empty", "all empty")
_TOGETHER, _EQUAL = 24, 12
"""Most columns of one value that share a line, and that are told together."""


def one_value(view: ColumnView) -> bool:
    return view.distinct <= 1 and not view.odd


def of_few_words(views: Sequence[ColumnView]) -> Iterable[tuple[str, dict[str, tuple[str, ...]]]]:
    """(label, what is listed, each with its columns) of those that take few words: of one value, empty, or the same as
    another. What is nearly empty comes last."""
    groups: dict[str, dict[str, list[Column]]] = {label: {} for label in _LABELS}
    for view in sorted(views, key=lambda view: view.nulls):
        if view.same:
            label, value = "the same", view.spelled or quote(view.same)
        elif not view.distinct:
            label, value = "all empty", ""
        elif view.nulls:
            label, value = "one value, else empty", f"{_item(view)} ×{view.rows - view.nulls:,}"
        else:
            label, value = "constant", _item(view)
        groups[label].setdefault(value, []).append(view.column)
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
    beside: tuple[str, Sequence[str]] | None = None,
    elsewhere: bool = False,
    most: int | None = None,
) -> Item:
    """A column's line: of values `few` at first, and one more for `each_more` tokens that are spent, up to `most`.
    `series` names the numbers of series, `mistyped` tells its texts that have no number or time, `beside` the column
    that it is one to one with and the values in the order of that one's; `elsewhere`: another line lists them."""
    name = view.column.name
    head = f"- {quote(name)} {view.column.type}"
    other = mistyped or Mistyped()
    texts = other.texts
    nulls = other.said + (f", {view.nulls - texts:,} empty" if view.nulls > texts else "")
    nulls += f", {view.odd:,} NaN or infinite" if view.odd else ""

    def line(text: str, *notes: str) -> Line:
        return Line(table, COLUMNS, place, text, (name,), varied=True, notes=notes)

    if view.distinct == 0:
        return Plain(line(f"{head}: {nulls[2:]}" if texts else f"{head}: all empty"), share)
    if view.distinct == 1:
        return Cell(line(f"{head} = "), share, only_value(view), nulls + other.kinds)
    head += other.kinds  # before the counts, which are not of these alone
    mean = "" if view.mean is None else f", mean {mean_text(view.mean, view.low, view.high)}"
    numbered = (_NUMBERED,) if name == SERIES and not series else ()
    if listed(view):
        shown = in_order(view)
        each = f", {row_count(shown[0][1])} each" if alike(view) else ""
        text = f"{head}: {view.distinct} values{each}{mean}{nulls}"
        if elsewhere:
            return Plain(line(text, *numbered), share)
        if beside is not None:
            text, shown = f"{head}, one to one with {quote(beside[0])} and in its order", [(v, 0) for v in beside[1]]
        together = bundles.bundled([value for value, _ in shown]) if (each or beside) and not series else []
        names = series if name == SERIES else {}
        shown = [(f"{value} = {names[value]}" if value in names else value, n) for value, n in shown]
        said = [listing(text) if each or beside else f"{listing(text)} ×{count:,}" for text, count in shown]
        more, notes = more_of(view.distinct), numbered
        if together:
            said, notes = [text for text, _ in together], (*numbered, bundles.NOTE)
            ends = list(accumulate((count for _, count in together), initial=0))
            more = _more_of_bundles(more, ends)
        long = max(1.0, sum(map(len, said)) / len(said) / _BRIEF) ** 2 if not together else 1.0
        begun, each_more = line(f"{text}: ", *notes), each_more * long
        return Listing(begun, share, said[:most], more, few, each_more, then=min(share, _THEN))
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
    if view.column.type == "VARCHAR" and not view.column.typed and view.samples and all(map(unknown, view.samples)):
        nulls += ", times in a zone that isn't known"
    often = "".join(f", {listing(text, 40)} ×{count:,}" for text, count in view.heavy)
    return Plain(
        line(f"{head}: {view.distinct:,} distinct{often}{span}{step}{mean}{nulls}", *numbered),
        share,
        edges,
        parted=True,
        then=_EDGES,
    )


def alike(view: ColumnView) -> bool:
    """Whether all values that a column has are told, and have as many rows each."""
    return view.complete and view.values[0][1] == view.values[-1][1]


def listed_by_means(view: ColumnView, lines: Collection[tuple[str, int]]) -> bool:
    """Whether lines of means, (column, how many), list the values of a column as well as its own line would."""
    if not is_dimension(view) or view.distinct <= _FEW_NAMES or (view.column.name, view.distinct) not in lines:
        return False
    return alike(view) and not bundles.bundled([value for value, _ in in_order(view)])


def in_order(view: ColumnView) -> Sequence[tuple[str, int]]:
    """The values of a column with their rows, as they are listed: those of most rows first; where all have as many, as
    people order names."""
    return sorted(view.values, key=lambda pair: bundles.natural(pair[0])) if alike(view) else view.values


def _more_of_bundles(more: Callable[[int], str], ends: Sequence[int]) -> Callable[[int], str]:
    return lambda listed: more(ends[listed])


def more_of(all_of_them: int) -> Callable[[int], str]:
    """What says how many of all are not listed."""
    return lambda listed: f", ... ({all_of_them - listed:,} more)" if listed < all_of_them else ""


def _instants(view: ColumnView, unit: tuple[int, str]) -> str:
    """` ns = 2026-03-01 10:00:05..10:12:41 UTC`: the unit of times that are numbers, and from when to when they are."""
    low, high = (instant_text(number, unit[0])[:19] for number in (view.low, view.high))
    return f" {unit[1]} = {low}..{high[11:] if low[:10] == high[:10] else high} UTC"


def row_count(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
