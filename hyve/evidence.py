"""A model's statements of evidence -> evidence that counts, or the reason why it doesn't.

Rules (code decides, not the prompt):
- A row that the prompt shows may be named as evidence too, by its table and the `rowid` it is shown with
  ("spans rowid 17", "spans[17]"): that is the statement which selects it.
- A statement is run under the guard and tight limits, each one once, and all of them within `SECONDS`.
- It counts if it reads a table of the request and gives rows that hold a value. `DESCRIBE` and `SUMMARIZE` tell of
  columns and always give rows: they count for nothing.
- A column of its rows must depend on the data (`hyve.provenance`): `SELECT 'h9 down' FROM records` says what the
  model says. The values of all rows must not be NULL.
- Of a root cause, neither a lone 0 or false nor rows of nothing but false are support, and its entity must occur in
  the data: in a text, or as the name of a table or a column.
- An aggregate over no rows is no evidence, though it gives a row: `SELECT count(*) FROM spans WHERE false` would
  support any claim. Each SELECT that aggregates is run once more with `HAVING count(*) > 0`, inside of subqueries
  and CTEs too; what is left without rows, or with NULL only, does not count. An absence is shown by an aggregate over
  rows that are there: `count(*) FILTER (WHERE ...)`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from hyve import functions, guard
from hyve.diagnosis import Evidence
from hyve.errors import SqlError
from hyve.masked import spelled
from hyve.naming import literal, quote
from hyve.provenance import depends, given, nodes
from hyve.sql import Limits, QueryResult
from hyve.store import Datastore

LIMITS = Limits(rows=20, bytes=64 << 10, seconds=2.0)
"""Bounds of one statement."""

SECONDS = 10.0
"""How long all evidence of one answer may run together."""

_ROW = re.compile(
    r"""(?P<table>\w+|"[^"]+")\s*(?:\[|[.:#]|\s)\s*(?:(?:rowid|row)\s*[=:#]?\s*)?(?P<number>\d{1,12})\]?""", re.I
)
_EACH = 8
_WIDE = 100
"""Columns that one statement looks through."""
_ALL = 40
_SHORT = 1 << 20
"""Characters of a request's texts that are looked through as they stand."""


class Resolver:
    """Runs the statements of one answer. `evidence` holds what counts, `failed` why the others don't, `denied` why some
    of it supports no root cause, `skipped` how many were not looked at: past the eighth of a claim, or the fortieth of
    the answer."""

    def __init__(self, store: Datastore, statements: Iterable[str] = ()) -> None:
        """`statements`: those that will be asked for."""
        self._store = store
        guard.parse_ahead(spelled(store, statement) for statement in islice(statements, _ALL))
        self._tables = {table.name.lower(): table.name for table in store.catalog.tables}
        self._columns = {
            table.name.lower(): [column.name for column in table.columns] for table in store.catalog.tables
        }
        self._began = time.perf_counter()
        self._found: dict[str, Evidence] = {}
        self.failed: dict[str, str] = {}
        self.denied: dict[str, str] = {}
        self.skipped = 0

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What counts, in the order in which it was asked for."""
        return tuple(self._found.values())

    def ids(self, statements: Sequence[str], *, cause: bool = False) -> tuple[str, ...]:
        """The ids of those `statements` that count, for a root cause or for a claim."""
        self.skipped += len(statements[_EACH:])
        for statement in statements[:_EACH]:
            if statement in self._found or statement in self.failed:
                continue
            if len(self._found) + len(self.failed) >= _ALL:
                self.skipped += 1
                continue
            if time.perf_counter() - self._began > SECONDS:
                self.failed[statement] = "the time for evidence was used up"
                continue
            try:
                self._found[statement] = self._run(statement)
            except SqlError as error:
                self.failed[statement] = str(error)
        counted = [item for item in statements[:_EACH] if item in self._found]
        if cause:
            for item in counted:
                if _denies(self._found[item]):
                    self.denied[item] = "nothing but 0 or false supports no root cause"
            counted = [item for item in counted if item not in self.denied]
        return tuple(dict.fromkeys(self._found[item].id for item in counted))

    def occurs(self, entity: str) -> bool:
        """Whether the data holds `entity`, or a word of it, in any case. What takes too long is believed."""
        words = _words(entity)
        if not words:
            return False
        names = [*self._columns, *(name.lower() for columns in self._columns.values() for name in columns)]
        if any(word in name for word in words for name in names):
            return True
        sources = self._store.sources
        if sum(len(source.text) for source in sources) <= _SHORT:  # else the tables are asked, which takes no copy
            written = re.compile("|".join(map(_written, words)))
            if any(written.search(source.text.lower()) for source in sources):
                return True
        digits = all(word.isdigit() for word in words)
        for table in self._store.catalog.tables:
            texts = [quote(column.name) for column in table.columns if digits or _holds_text(column.type)]
            for at in range(0, len(texts), _WIDE):
                if time.perf_counter() - self._began > SECONDS:
                    return True
                row = f"lower(concat_ws(chr(10), {', '.join(f'{name}::VARCHAR' for name in texts[at : at + _WIDE])}))"
                found = " OR ".join(f"({_pattern(word)})" for word in words)
                try:
                    result = self._store.query(
                        f"SELECT 1 FROM (SELECT {row} AS words FROM {quote(table.name)}) WHERE {found} LIMIT 1", LIMITS
                    )
                except SqlError:
                    return True
                if result.total_rows:
                    return True
        return False

    def _run(self, given: str) -> Evidence:
        row = _ROW.fullmatch(given.strip())
        table = row and self._tables.get(row["table"].strip('"').lower())
        statement = f"SELECT * FROM {quote(table)} WHERE rowid = {row['number']}" if row and table else given
        tree = self._tree(statement)
        result = self._store.query(statement, LIMITS)
        self._check(tree, statement, result)
        return Evidence(f"e{len(self._found) + 1}", statement, result.columns, result.rows, result.total_rows)

    def refusal(self, statement: str, result: QueryResult) -> str:
        """Why a statement that gave `result` does not count; "" where it does."""
        try:
            self._check(self._tree(statement), statement, result)
        except SqlError as error:
            return str(error)
        return ""

    def _tree(self, statement: str) -> dict[str, Any]:
        """The tree of a statement that reads values of the tables."""
        tree = guard.tree(spelled(self._store, statement))
        found = list(nodes(tree))
        if self._tables.keys().isdisjoint(_tables(found)):
            raise SqlError("it reads none of the tables")
        if any(node.get("type") == "SHOW_REF" for node in found):
            raise SqlError("it tells of columns, not of values")
        return tree

    def _check(self, tree: dict[str, Any], statement: str, result: QueryResult) -> None:
        """SqlError where the rows of a statement are no evidence."""
        if not result.total_rows:
            raise SqlError("it returns no rows")
        if _empty(result) or (result.total_rows > len(result.rows) and _nulls(result) and self._all_null(statement)):
            raise SqlError("it returns nothing but NULL")
        try:
            reads = depends(tree, self._columns)
        except RecursionError:
            raise SqlError("it is nested too deeply to see what it reads; write it in simpler SQL") from None
        if not _counted(tree, result) and self._counts_nothing(tree):
            raise SqlError(
                "it aggregates no rows; show an absence by count(*) FILTER (WHERE ...) over rows that are there"
            )
        if not reads:
            raise SqlError("no column of its rows depends on the data; select the values that show it")

    def _all_null(self, statement: str) -> bool:
        """Whether rows that were cut off hold nothing but NULL, too."""
        bare = statement.strip().rstrip(";")
        try:
            some = self._store.query(f"SELECT * FROM ({bare}\n) AS t WHERE NOT (COLUMNS(*) IS NULL) LIMIT 1", LIMITS)
        except SqlError:
            return True
        return not some.total_rows

    def _counts_nothing(self, tree: dict[str, Any]) -> bool:
        """Whether nothing is left of the statement once each of its aggregates must have rows. Changes `tree`."""
        if not sum([_need_rows(node) for node in nodes(tree)]):
            return False
        try:
            result = self._store.query(guard.untree(tree), LIMITS)
        except SqlError:  # the statement itself ran; where its stricter form can't (a PIVOT's values), it is believed
            return False
        return not result.total_rows or _empty(result)


def _holds_text(type_: str) -> bool:
    return any(word in type_ for word in ("VARCHAR", "JSON", "ENUM", "UUID"))


_COMMON = re.compile(
    "the|and|for|with|from|services?|servers?|hosts?|pods?|nodes?|containers?|deployments?|databases?|process|systems?|"
    "applications?|components?|instances?|clusters?|requests?|errors?|high|low|slow|down|failed|failures?"
)
"""Words of an entity's phrase that name nothing."""


def _words(entity: str) -> list[str]:
    """What of `entity` must occur: the whole of a single word, else its words that look like names, else all but
    common ones."""
    found = re.findall(r"<\w+>|\w(?:[\w./:@-]*\w)?", entity.lower())
    if len(found) <= 1:
        return found
    found = [word for word in dict.fromkeys(found) if len(word) >= 3 or not word.isalpha()]
    names = [word for word in found if re.search(r"[\d_./:@-]", word)]
    return (names or [word for word in found if not _COMMON.fullmatch(word)] or found)[:8]


def _pattern(word: str) -> str:
    """A condition that `words` hold `word`; a short one must stand alone."""
    if len(word) > 3:
        return f"contains(words, lower({literal(word)}))"  # it may be a placeholder of something else
    return f"regexp_matches(words, {literal(rf'(^|[^a-z0-9]){re.escape(word)}([^a-z0-9]|$)')})"


def _written(word: str) -> str:
    """The same as a regular expression over text in lower case."""
    spelled = re.escape(word)
    return spelled if len(word) > 3 else rf"(?<![a-z0-9]){spelled}(?![a-z0-9])"


def _denies(evidence: Evidence) -> bool:
    """Whether evidence is a lone 0 or false, or rows of nothing but false."""
    cells = [value for row in evidence.rows for value in row]
    if len(cells) == 1 and evidence.total_rows == 1 and isinstance(cells[0], (bool, int, float)):
        return not cells[0]
    return evidence.total_rows == len(evidence.rows) and all(value is False or value is None for value in cells)


def _nulls(result: QueryResult) -> bool:
    return all(value is None for row in result.rows for value in row)


def _empty(result: QueryResult) -> bool:
    """Whether all rows, none of them cut off, hold nothing but NULL."""
    return result.total_rows == len(result.rows) and _nulls(result)


def _tables(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Names that the nodes of a tree read, of tables or CTEs, those that operators are given too; in lower case."""
    for node in found:
        if node.get("type") == "BASE_TABLE":
            yield str(node.get("table_name", "")).lower()
        elif node.get("type") == "TABLE_FUNCTION":
            yield from given(node)


def _counted(tree: dict[str, Any], result: QueryResult) -> bool:
    """Whether a statement of one SELECT says by a `count(*)` of its own that there were rows."""
    selects = [node for node in nodes(tree) if node.get("type") == "SELECT_NODE"]
    shown = selects[0].get("select_list", []) if len(selects) == 1 else []
    return len(shown) == len(result.columns) and any(
        item.get("function_name") == "count_star" and not item.get("filter") and result.rows[0][place]
        for place, item in enumerate(shown)
    )


def _need_rows(node: dict[str, Any]) -> bool:
    """Adds `HAVING count(*) > 0` to a SELECT that aggregates all of its rows; groups always have some."""
    having, sets = node.get("having"), node.get("group_sets")
    if node.get("type") != "SELECT_NODE" or not (having or _aggregates(node.get("select_list"))):
        return False
    if sets and all(sets):
        return False
    some, both = _conditions()
    node["having"] = {**both, "children": [having, some]} if having else some
    return True


def _aggregates(expressions: Any) -> bool:
    """Whether expressions aggregate the rows of their own SELECT."""
    waiting = [expressions]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict) and value.get("class") != "SUBQUERY":
            if value.get("class") == "FUNCTION" and str(value.get("function_name", "")).lower() in functions.AGGREGATES:
                return True
            waiting.extend(value.values())
    return False


@cache
def _conditions() -> tuple[dict[str, Any], dict[str, Any]]:
    """The trees of `count(*) > 0` and of an AND, as this version of DuckDB writes them."""
    both: dict[str, Any] = guard.tree("SELECT 1 HAVING count(*) > 0 AND true")["node"]["having"]
    return both["children"][0], both
