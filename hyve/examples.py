"""Example queries over all rows of a table, made from its very schema (H24)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hyve.asked import Named
from hyve.naming import quote
from hyve.numbered import SMALL
from hyve.parted import metric_of
from hyve.profile import ENTITIES, ColumnView, Kinds, Profile, entity_rank, is_dimension, is_measure, parts_rows

_QUOTED = re.compile(r"[ -&(-\[\]-~]{1,60}")
"""Values that are written into an example query: nothing in them has to be escaped."""


def example(found: Profile, ranked: Sequence[int], only: Kinds | None, asked: Sequence[Named]) -> str:
    """A query over all rows, made from this very schema (H24): of the entities that the question names, else of each
    group; none where the table has nothing to group by."""
    views = [found.views[i] for i in ranked]
    likely = sorted(filter(parts_rows, views), key=lambda view: view.numbered)  # names tell more than numbers
    # Of who or what there are many a list tells the least.
    likely += sorted(filter(_many, views), key=entity_rank)
    group = asked[0].view if asked else next(iter(likely), None)
    if group is None:
        return ""
    number = next(filter(is_measure, views), None)
    label, where = quote(group.column.name), []
    if only is not None and not only.all:
        number = next((view for view in views if view.column.name == only.measure), None) if only.rows.any() else None
        where = [f"{quote(only.column)} = '{only.name}'"] if number is not None else []
    names = list(dict.fromkeys(one.value for one in asked if one.view is group and _QUOTED.fullmatch(one.value)))
    table, times = quote(found.table.name), [quote(view.column.name) for view in views if view.time]
    literals = names if group.numeric else [f"'{name}'" for name in names]
    metric = None if number is None else metric_of(found.table, views, number)
    parted = [quote(metric.column.name)] if metric is not None and metric is not group else []
    if len(names) == 1:
        read = [*parted, quote(number.column.name)] if number is not None else ["*"]
        what = ", ".join(["rowid", *times[:1], *read])
        where.insert(0, f"{label} = {literals[0]}")
        orders = [f"{quote(number.column.name)} DESC"] if number is not None else times[:1]
        order = f" ORDER BY {orders[0]}" if orders else ""
        return f"SELECT {what} FROM {table} WHERE {' AND '.join(where)}{order} LIMIT 10"
    if names:
        where.insert(0, f"{label} IN ({', '.join(literals)})")
    known = {column.name.lower() for column in found.table.columns}
    count, mean = _alias("n", known), _alias("mean", known)
    measure = f", avg({quote(number.column.name)}) AS {mean}" if number is not None else ""
    by = count if number is None or is_dimension(group) else mean
    filtered = f" WHERE {' AND '.join(where)}" if where else ""
    groups = ", ".join([label, *parted])
    what = f"{groups}, count(*) AS {count}{measure}"
    return f"SELECT {what} FROM {table}{filtered} GROUP BY {groups} ORDER BY {by} DESC LIMIT 10"


def _many(view: ColumnView) -> bool:
    """Whether a column of more values than are listed tells who or what the rows are about."""
    texts = view.column.type == "VARCHAR" and not view.identifier and not view.same
    return texts and SMALL < view.distinct <= view.rows // 3 and entity_rank(view) < len(ENTITIES)


def _alias(name: str, known: Collection[str]) -> str:
    """A name like this one that no column has."""
    while name in known:
        name += "_"
    return name
