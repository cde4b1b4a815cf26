"""Which output columns of a statement depend on the data, and which are made of nothing but the statement itself.

Rules, over DuckDB's own tree of a statement:
- An expression depends on the data if it holds a column of one of the tables, through subqueries and CTEs too, or
  counts rows of them. Literals, random(), now() and numbers of rows depend on nothing.
- A column of a UNION depends on the data only if it does in each branch.
- What can't be followed (a PIVOT, an operator over a table) is believed where a table stands in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Tree = Mapping[str, Any]
_COUNTS = frozenset({"count", "count_star"})


@dataclass(frozen=True)
class _Relation:
    """What a FROM names. `columns`: whether each one depends on the data; `rest`: the same of columns that have no
    name here; `rows`: whether its rows are the data's."""

    columns: Mapping[str, bool] = field(default_factory=dict)
    rest: bool = False
    rows: bool = False
    name: str = ""

    def flags(self) -> list[tuple[str, bool]]:
        return [*self.columns.items(), *([("", True)] if self.rest else [])]


_Names = Mapping[str, _Relation]
_Scope = tuple[_Relation, ...]


def depends(tree: Tree, tables: Mapping[str, Collection[str]]) -> bool:
    """Whether an output column of the statement depends on `tables` (lower-case name -> its columns)."""
    known = {
        name: _Relation(dict.fromkeys((*(column.lower() for column in columns), "rowid"), True), rows=True)
        for name, columns in tables.items()
    }
    return any(flag for _, flag in _query(tree.get("node") or {}, known, ()))


def _query(node: Tree, names: _Names, outer: _Scope) -> list[tuple[str, bool]]:
    """Name and dependence of each output column of a query node."""
    for entry in (node.get("cte_map") or {}).get("map") or ():
        made = entry.get("value") or {}
        inner = made.get("query_node") or (made.get("query") or {}).get("node") or {}
        names = {**names, entry["key"].lower(): _made(inner, names, outer, made.get("aliases"))}
    kind = node.get("type")
    if kind == "SET_OPERATION_NODE":
        branches = [_query(child, names, outer) for child in node.get("children") or (node["left"], node["right"])]
        first = branches[0]
        if node.get("setop_type") != "UNION":
            return first
        width = min(map(len, branches))
        if not all(len(branch) == len(first) for branch in branches):  # by name, or with a star that can't be counted
            return [("", all(any(flag for _, flag in branch) for branch in branches))]
        return [(first[i][0], all(branch[i][1] for branch in branches)) for i in range(width)]
    if kind == "RECURSIVE_CTE_NODE":
        start = _query(node["left"], names, outer)
        again = {**names, str(node.get("cte_name", "")).lower(): _relation(start, _has_rows(node["left"], names))}
        step = _query(node["right"], again, outer)
        return [(name, flag and (i >= len(step) or step[i][1])) for i, (name, flag) in enumerate(start)]
    if kind == "CTE_NODE":
        made_of = _made(node["query"], names, outer, node.get("aliases"))
        return _query(node["child"], {**names, str(node.get("cte_name", "")).lower(): made_of}, outer)
    if kind != "SELECT_NODE":
        return [("", _has_rows(node, names))]
    own = tuple(_from(node.get("from_table") or {}, names, outer))
    scope = (*own, *outer)
    found: list[tuple[str, bool]] = []
    aliases: dict[str, bool] = {}
    for item in node.get("select_list") or ():
        if item.get("class") == "STAR":
            of = str(item.get("relation_name") or "").lower()
            for relation in own:
                if of in ("", relation.name):
                    found += relation.flags()
            continue
        flag = _expression(item, names, (*scope, _Relation(dict(aliases))), own)
        parts = item.get("column_names") or [""]
        name = str(item.get("alias") or parts[-1]).lower()
        found.append((name, flag))
        if name:
            aliases[name] = flag
    return found


def _made(node: Tree, names: _Names, outer: _Scope, aliases: Sequence[str] | None, name: str = "") -> _Relation:
    return _relation(_query(node, names, outer), _has_rows(node, names), aliases, name)


def _relation(
    columns: Sequence[tuple[str, bool]], rows: bool, aliases: Sequence[str] | None = None, name: str = ""
) -> _Relation:
    named: dict[str, bool] = {}
    rest = False
    for i, (given, flag) in enumerate(columns):
        column = str(aliases[i]).lower() if aliases and i < len(aliases) else given
        if column:
            named[column] = named.get(column, False) or flag
        else:
            rest = rest or flag
    return _Relation(named, rest, rows, name)


def _from(node: Tree, names: _Names, outer: _Scope) -> Iterator[_Relation]:
    """The relations of a FROM."""
    kind, alias = node.get("type"), str(node.get("alias") or "").lower()
    aliases = node.get("column_name_alias")
    if kind == "JOIN":
        left = tuple(_from(node["left"], names, outer))
        yield from left
        yield from _from(node["right"], names, (*left, *outer))
    elif kind == "BASE_TABLE":
        table = str(node.get("table_name", "")).lower()
        read = names.get(table, _Relation())
        yield _relation(read.flags(), read.rows, aliases, alias or table)
    elif kind == "SUBQUERY":
        inner = (node.get("subquery") or {}).get("node") or {}
        yield _made(inner, names, outer, aliases, alias)
    elif kind == "EXPRESSION_LIST":
        rows = node.get("values") or [[]]
        flags = [all(_expression(row[i], names, outer, ()) for row in rows) for i in range(min(map(len, rows)))]
        yield _relation([(f"col{i}", flag) for i, flag in enumerate(flags)], False, aliases, alias)
    elif kind == "TABLE_FUNCTION":
        # An operator's table is given as a text or as a name.
        flag = any(name in names for name in given(node)) or _expression(
            (node.get("function") or {}).get("arguments"), names, outer, ()
        )
        yield _Relation({str(name).lower(): flag for name in aliases or ()}, flag, flag, alias)
    elif kind != "EMPTY":
        flag = _has_rows(node, names)
        yield _Relation(rest=flag, rows=flag, name=alias)


def given(node: Tree) -> list[str]:
    """What a table function is called with, where that may be a table: texts and names, in lower case."""
    found = []
    for item in (node.get("function") or {}).get("arguments") or ():
        argument = item.get("expression") or {}
        literal = argument.get("literal")
        named = literal.get("text", "") if isinstance(literal, dict) else (argument.get("column_names") or [""])[-1]
        found.append(str(named).lower())
    return found


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every node of a tree."""
    waiting = [tree]
    for value in waiting:  # it grows
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _has_rows(tree: Any, names: _Names) -> bool:
    """Whether a table, or a CTE over one, stands anywhere in a tree."""
    for node in nodes(tree):
        if node.get("type") == "BASE_TABLE":
            read = names.get(str(node.get("table_name", "")).lower())
            if read is not None and read.rows:
                return True
        elif node.get("type") == "TABLE_FUNCTION" and any(name in names for name in given(node)):
            return True
    return False


def _expression(value: Any, names: _Names, scope: _Scope, own: _Scope) -> bool:
    """Whether an expression depends on the data. `own` are the relations whose rows an aggregate counts."""
    if isinstance(value, list):
        return any(_expression(item, names, scope, own) for item in value)
    if not isinstance(value, dict):
        return False
    kind = value.get("class")
    if kind == "COLUMN_REF":
        parts = [str(part).lower() for part in value.get("column_names") or ()]
        return _column(parts, scope)
    if kind == "STAR":
        return any(flag for relation in own for _, flag in relation.flags())
    if kind == "POSITIONAL_REFERENCE":
        return any(relation.rows for relation in own)
    if kind == "SUBQUERY":
        inner = (value.get("subquery") or {}).get("node") or {}
        if value.get("subquery_type") == "EXISTS":
            return _has_rows(inner, names)
        child = _expression(value.get("child"), names, scope, own)
        return child or any(flag for _, flag in _query(inner, names, scope))
    if kind == "FUNCTION" and str(value.get("function_name", "")).lower() in _COUNTS:
        return any(relation.rows for relation in own)
    return any(_expression(item, names, scope, own) for item in value.values() if isinstance(item, (dict, list)))


def _column(parts: Sequence[str], scope: _Scope) -> bool:
    """The nearest relation that has one of the parts of a name decides: `table.column`, `column.field`."""
    qualified = [relation for relation in scope if relation.name and relation.name in parts[:-1]]
    for relation in qualified or scope:
        for part in parts:
            if part in relation.columns:
                return relation.columns[part]
            if relation.rows and part == relation.name and len(parts) == 1:  # the whole row
                return any(flag for _, flag in relation.flags())
    return any(relation.rest for relation in qualified or scope)


__all__ = ["depends", "given", "nodes"]
