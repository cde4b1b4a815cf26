"""Store -> excerpt: column and row views of every table, cut to a hard token budget (H14-H20).

Rules:
- What fits is shown whole, in its cheapest lossless form.
- What does not fit is cut with a count: totals in headers are of all rows, and a table that shows fewer rows than it
  has ends in `... (762 more rows)`.
- A larger budget only adds: all climb the same ladder. What stands out or was asked for goes before what is usual; the
  tables that the relations were made from come last.
- No budget is left unused while something is cut: then more rows, more tables and longer cells are shown.
- Same store, same question, same budget: same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyve import codecs, notation, question, rank
from hyve.catalog import Table
from hyve.collector import collector_paused
from hyve.columns import Columns
from hyve.fit import Step, fit
from hyve.growing import LONG
from hyve.ladder import Ladder, LongerCells
from hyve.naming import quote
from hyve.profile import entities, free_text, structural, told
from hyve.store import Datastore
from hyve.tableview import Brief, Switches, TableView, table_view
from hyve.templates import alike
from hyve.tokens import count_tokens

_DETAILED, _BRIEF = 12, 24
_MAIN = 3
"""So many tables have a place before anything is said of the others."""


@dataclass(frozen=True)
class Excerpt:
    """The data section of a prompt. `cut` says whether anything of the data is not in it."""

    text: str
    cut: bool


_REASONS = frozenset({"error", "errors", "exception", "fault", "message", "reason"})
_UTC = "times are UTC"
"""What is said where a table has times; texts of times beside them have the zone that they were written with."""


@collector_paused()
def excerpt(store: Datastore, query: str, budget: int, switches: Switches) -> Excerpt:
    """The data of `store` for a question, in at most `budget` tokens."""
    tables = store.catalog.tables
    columns = [Columns(store, table) for table in tables]
    whole = _whole(store, columns, query, budget, switches)
    if whole is not None:
        return Excerpt(whole, False)
    asked = _asked(store, query) if switches.rank else question.Question()
    asks = asked.and_words_of(_slim(columns)) if switches.rank else asked
    weights = _weights(tables, asked.words)
    ranked = sorted(range(len(tables)), key=lambda i: (-weights[i], i))
    notes = {i: note for i, table in enumerate(tables) if (note := _told_elsewhere(store, table))}
    note = _UTC if any(map(_timed, tables)) else ""
    return Excerpt(fit(_ladder(columns, ranked, weights, notes, asks, switches), tables, budget, note), True)


def _ladder(
    columns: Sequence[Columns],
    ranked: Sequence[int],
    weights: Sequence[float],
    notes: Mapping[int, str],
    asks: question.Question,
    switches: Switches,
) -> Iterator[Iterator[Step] | LongerCells]:
    """All that can be said of the tables, `ranked` by their weights, in the order in which a larger budget says it.

    What relations tell, as `notes` say, is not told twice as long as anything else is cut.
    """
    tables = [read.table for read in columns]
    detailed = [i for i in ranked[:_DETAILED] if i not in notes]
    ladder = Ladder(tables, weights, detailed[:_MAIN])
    views: dict[int, TableView | Brief] = {i: table_view(columns, i, asks, switches) for i in detailed}
    pending = [i for i in ranked if i not in views]
    known = {value for view in views.values() for value in view.named()}
    for i in pending[:_BRIEF]:
        unnamed = tuple(view for view in entities(columns[i]) if not known.issuperset(v for v, _ in view.values))
        known.update(value for view in unnamed for value, _ in view.values)
        if unnamed or (i in notes and i in ranked[:_DETAILED]):
            views[i] = Brief(i, max(weights) / weights[i], tables[i], unnamed, notes.get(i, ""))
    named = [*sorted(views), *(i for i in range(len(tables)) if i not in views)]
    yield ladder.steps((item for i in sorted(views) for item in views[i].items()), named)
    for again in (False, True):
        for i in pending:
            if (i in notes) == again:
                yield ladder.steps(table_view(columns, i, asks, switches, notes.get(i, "")).items())
        if cells := ladder.cut():
            yield LongerCells(cells, LONG)


def _told_elsewhere(store: Datastore, table: Table) -> str:
    """What is said of a table whose rows another one tells; "" where none does."""
    if _as_received(table, store.catalog.tables):
        return ", as received"
    if all(map(structural, table.columns)):
        return ", all in the tables below it"
    logs = store.catalog.table("log_records") if table.name == "container_logs" else None
    return ", the lines of log_records" if logs is not None and logs.rows >= table.rows else ""


def _as_received(table: Table, tables: Sequence[Table]) -> bool:
    """Whether relations were made of what a table holds: of a list of records, of most of them."""
    if not table.source or table.parent or table.path != "$":
        return table.source
    return table.rows <= 2 * max((other.rows for other in tables if other.kind == "relation"), default=0)


def _timed(table: Table) -> bool:
    return any("TIMESTAMP" in column.type for column in table.columns)


def schema(store: Datastore, budget: int) -> str:
    """The tables with their columns in one line of at most `budget` tokens, for data that is shown whole."""
    named = ""
    above = {table.parent for table in store.catalog.tables if table.parent}
    head = f"SQL tables ({_UTC}): " if any(map(_timed, store.catalog.tables)) else "SQL tables: "
    for table in store.catalog.tables:
        columns = [quote(name) for name in (*_keys(table, above), *(column.name for column in told(table)))]
        more = ", ..." if len(columns) > 12 else ""
        longer = f"{named}; " if named else head
        longer += f"{quote(table.name)}({', '.join(columns[:12])}{more})"
        if count_tokens(longer) > budget:
            break
        named = longer
    return named


def _keys(table: Table, above: Collection[str]) -> list[str]:
    """The columns by which a table is joined to the one that it stands below, and to those below it."""
    return ["_id"] * (table.name in above) + [f"parent_{table.parent}"] * bool(table.parent)


def _asked(store: Datastore, query: str) -> question.Question:
    """What is asked for: by the question and by what was written around the data (H17). What stands alone in the data
    asks for rows, too, but says nothing of which tables matter: an address in it has words of any."""
    prose = " ".join(source.prose for source in store.sources).strip()
    return question.read(query).and_words_of(prose)


def _slim(tables: Sequence[Columns]) -> str:
    """The text of what stands alone (H17): the fields of tables of one row."""
    texts = []
    for columns in tables:
        table = columns.table
        if table.rows != 1 or table.kind != "base" or free_text(table):
            continue
        if names := [column.name for column in told(table) if column.type == "VARCHAR"][:20]:
            texts.append(" ".join(filter(None, (columns.array(name)[0].as_py() for name in names)))[:400])
        if len(texts) == 4:
            break
    return " ".join(texts)


def _whole(store: Datastore, columns: Sequence[Columns], query: str, budget: int, switches: Switches) -> str | None:
    """All data in its cheapest lossless form, with the names in `query` spelled out where that fits, too; None where
    it is over the budget."""
    large = any(len(source.text) > budget * 24 + 4096 for source in store.sources)
    if switches.truncation and (large or least_tokens(columns, budget) > budget):
        return None
    shortest = _sections(store, (), switches)
    if switches.truncation and count_tokens(shortest) > budget:
        return None
    names = [
        name for name in question.names(query) if name not in shortest and any(name in s.text for s in store.sources)
    ]
    if not names or switches.toon:
        return shortest
    spelled = _sections(store, names, switches)
    return shortest if switches.truncation and count_tokens(spelled) > budget else spelled


def _sections(store: Datastore, names: Collection[str], switches: Switches) -> str:
    """Each source in its cheapest form."""
    sections, number = [], 0
    for source in store.sources:
        forms = [source.text.strip()]
        if source.syntaxes and "lines" not in source.syntaxes:
            values = [store.reconstruct(i) for i in range(number, number + len(source.syntaxes))]
            prose = source.prose.strip()
            encoded = notation.in_toon(values) if switches.toon else notation.encode(values, names)
            forms.append(f"{prose}\n{encoded}" if prose else encoded)
        number += len(source.syntaxes)
        told = [form for form in forms if all(name in form for name in names if name in source.text)] or forms
        best = forms[-1] if switches.toon else min(told, key=count_tokens)
        sections.append(f"{source.name}:\n{best}" if source.name and len(store.sources) > 1 else best)
    return "\n\n".join(sections)


def least_tokens(columns: Iterable[Columns], enough: int) -> int:
    """Tokens that no lossless text of these tables stays under; the count ends once it is above `enough`.

    A text has each value of a column at least once, without what all of them begin and end with. Columns that may be
    said by a start and a step, hold times or JSON, do not count. The largest are read first: they say most.
    """
    least = 0.0
    times = [{column.typed for column in read.table.columns if column.type == "TIMESTAMP_NS"} for read in columns]
    asked = [
        (read, column)
        for read, instants in zip(columns, times, strict=True)
        if read.table.kind == "base"
        for column in read.table.columns
        if not (column.derived or structural(column) or column.name in instants)
        and column.type in ("VARCHAR", "DOUBLE")
    ]
    for read, column in sorted(asked, key=lambda pair: -pair[0].size(pair[1].name)):
        texts = read.texts(column.name)
        first = {text[:1] for text in texts}
        if any(char.isspace() for char in first):
            first = {text.lstrip()[:1] for text in texts}
        if not texts or "{" in first or "[" in first:
            continue
        if column.type == "VARCHAR" and alike(texts):
            continue
        before = len(codecs.common(min(texts), max(texts))) if len(texts) > 1 else 0
        end = _end(texts, before) if len(texts) > 1 else 0
        stripped = "\n".join([text[before : len(text) - end] for text in texts] if before or end else texts)
        least += 0.8 * max(0, count_tokens(stripped) - len(texts))
        if least > enough:
            return int(least)
    return int(least)


def _end(texts: Sequence[str], before: int) -> int:
    """How many characters all texts end with, the first ones aside."""
    size = min(map(len, texts)) - before
    end = texts[0][len(texts[0]) - size :]
    for text in texts:
        while not text.endswith(end):
            end = end[1:]
        if not end:
            break
    return len(end)


def _weights(tables: Sequence[Table], words: Sequence[str]) -> list[float]:
    """How much each table matters: by size, by the question's words in its names, relations before their source."""
    weights = []
    for table in tables:
        weight = 1.0 + math.log1p(table.rows)
        if table.kind == "relation" or free_text(table):
            weight = max(weight, 6.0)  # a single alert, or what somebody wrote, matters as much as many spans
        names = (table.name, *[column.name for column in table.columns[:200]])
        named = frozenset[str]().union(*map(rank.name_words, names))
        weight *= 1.0 + 0.25 * min(4, len(named.intersection(words)))
        if _as_received(table, tables):  # the relations tell it again, and better, but for why something is so
            weight *= 0.15 * (1.0 if named.isdisjoint(_REASONS) else 1.4)
        weights.append(weight)
    return weights


__all__ = ["Excerpt", "Switches", "excerpt", "schema"]
