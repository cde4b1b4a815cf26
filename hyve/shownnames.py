"""The names of tables and columns as a model may see them: a key of the data that is a secret becomes a name.

Rules:
- What a path says is masked as any text is. Where that changes it, the name is made of the masked path, so that no
  piece of a secret is left in it: `tokens_<token_1>_uses`.
- A shown name is as unique as the true one: it takes the form `name_2` where another has it already.
- A catalog whose names hold no secret is the store's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from hyve.catalog import Catalog, Column, Table
from hyve.naming import free_name
from hyve.redact import Redactor

_APART = re.compile(r"(<[a-z_]+_\d+>)")
_LONGEST = 60


@dataclass(frozen=True)
class Names:
    """`catalog` as a model may see it; `tables` and, by those, `columns`: the true names of the shown ones, in the
    catalog's order; `changed`: of all shown names that are not the true ones, in lower case, what they are."""

    catalog: Catalog
    tables: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str]]
    changed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """The changed names in lower case, and as they are spelled."""
        shown = (one for table, columns in self.columns.items() for one in (table, *columns))
        return {one.lower(): one for one in shown if one.lower() in self.changed}


def shown_names(catalog: Catalog, redactor: Redactor) -> Names:
    """The names of `catalog`; `redactor` has met the data that they come from."""
    texts = {text for table in catalog.tables for text in _texts(table)}
    ordered = sorted(texts)
    masked = dict(zip(ordered, redactor.mask_all(ordered), strict=True))
    if all(text == shown for text, shown in masked.items()):
        own = {table.name: {column.name: column.name for column in table.columns} for table in catalog.tables}
        return Names(catalog, {name: name for name in own}, own)
    taken: set[str] = {table.name.lower() for table in catalog.tables}
    named = {table.name: _name(table.name, table.path, masked, taken) for table in catalog.tables}
    changed = {shown.lower(): name for name, shown in named.items() if shown != name}
    tables: list[Table] = []
    columns: dict[str, dict[str, str]] = {}
    for table in catalog.tables:
        used = {column.name.lower() for column in table.columns}
        above = table.parent or ""
        spelled = {
            column.name: f"parent_{named[above]}"
            if above in named and column.name == f"parent_{above}"
            else _name(column.name, column.path, masked, used)
            for column in table.columns
        }
        changed |= {shown.lower(): name for name, shown in spelled.items() if shown != name}
        columns[named[table.name]] = {shown: name for name, shown in spelled.items()}
        tables.append(
            replace(
                table,
                name=named[table.name],
                path=masked[table.path],
                parent=named.get(above, table.parent),
                columns=tuple(_column(column, spelled, masked) for column in table.columns),
                shapes=tuple(
                    replace(
                        shape,
                        fields=tuple(masked[one] for one in shape.fields),
                        signature=masked[shape.signature],
                    )
                    for shape in table.shapes
                ),
            )
        )
    return Names(Catalog(tuple(tables)), {shown: name for name, shown in named.items()}, columns, changed)


def _texts(table: Table) -> list[str]:
    """All texts of a table's entry that its data made."""
    found = [table.name, table.path]
    found += [text for column in table.columns for text in (column.name, column.path)]
    found += [text for shape in table.shapes for text in (*shape.fields, shape.signature)]
    return found


def _column(column: Column, spelled: Mapping[str, str], masked: Mapping[str, str]) -> Column:
    typed = spelled.get(column.typed, column.typed)
    return replace(column, name=spelled[column.name], path=masked[column.path], typed=typed)


def _name(name: str, path: str, masked: Mapping[str, str], taken: set[str]) -> str:
    """What is shown for a name that comes from what stands at `path`; it is `taken` then."""
    if masked[path] == path and masked[name] == name:
        return name
    shown = masked[path] if masked[path] != path else masked[name]
    parts = (part if _APART.fullmatch(part) else re.sub(r"\W+", "_", part).strip("_") for part in _APART.split(shown))
    made = free_name("_".join(part[-_LONGEST:] for part in parts if part), taken)
    taken.add(made.lower())
    return made


__all__ = ["Names", "shown_names"]
