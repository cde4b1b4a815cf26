"""A store between secrets and a model: what the model may see of it, what its statements mean, what its answer says.

Rules:
- `shown` is the store with placeholders where secrets stand, in names too. Views, prompts and follow-ups read nothing
  else: columns, whole values, source texts, rows of a query, errors.
- A statement whose rows a model sees reads masked copies of the tables: whatever it makes of a secret, it makes of the
  placeholder. A secret has one placeholder, so rows that are equal stay so, in groups and joins, too. What it says of a
  secret's own text (its length, how it begins) is said of the placeholder. A number or time that a secret spells is
  NULL.
- `asked` is the store itself, for a model's statements: their placeholders are unmasked before they run. What stays
  masked in answers is masked in it, in the same way, so that no rows, charts or errors tell it.
- `restore` gives an answer its secrets back, but for the kinds that stay masked. Rows of evidence are so already.
- The placeholders are the same whenever a prompt is built again from the same data and the same question.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve import guard
from hyve.catalog import Catalog, Table
from hyve.columns import Columns
from hyve.diagnosis import Diagnosis
from hyve.errors import SqlError
from hyve.prompt import Prompt, Savings
from hyve.provenance import given, nodes
from hyve.redact import Redactor
from hyve.reply import Template
from hyve.secretforms import PLACEHOLDER
from hyve.secretnames import PAIR, VALUE
from hyve.shownnames import Names, shown_names
from hyve.sql import Limits, QueryResult
from hyve.store import Copy, Datastore, Source
from hyve.templates import VARIABLE
from hyve.tokens import count_tokens

_LEARNT = 10_000
"""Values of secret columns that are masked in other columns too, of each column."""
_ROUNDS = 4

P = ParamSpec("P")
T = TypeVar("T")

Make = Callable[[Datastore, Callable[[str], str]], Prompt]
"""Makes a prompt of a store, and of other texts by the function that it is given to mask them."""


class MaskedStore:
    """A `Datastore` and the placeholders of its secrets."""

    def __init__(self, store: Datastore, redactor: Redactor) -> None:
        self.redactor = redactor
        self._store = store
        self._shown = _Shown(store, redactor)
        # Views and stages take a Datastore; what they use of one is here.
        self.shown = cast(Datastore, self._shown)
        self.asked = cast(Datastore, _Asked(store, redactor, self._shown))

    def build(self, make: Make) -> Prompt:
        """The prompt that `make` makes of the store as a model may see it."""
        for _ in range(_ROUNDS):
            self._shown.learn()
            known = self.redactor.found
            prompt = make(self.shown, self.redactor.mask)
            if self.redactor.found == known:
                break  # else a secret that was met late may stand, without its name, in what was read before
        vars(self.shown).pop("sources", None)  # as long as the texts themselves
        if not self.redactor.found:
            return prompt
        original = sum(count_tokens(source.text) for source in self._store.sources)
        return replace(prompt, savings=Savings(original, prompt.prompt_tokens))

    def restore(self, found: Diagnosis) -> Diagnosis:
        """The answer of a model with the secrets back."""
        names = self._shown.names.changed

        def back(value: Any) -> Any:
            return self.redactor.answer(value, names)

        true = {shown: back(shown) for shown in names}
        return replace(
            found,
            summary=back(found.summary),
            root_causes=back(found.root_causes),
            claims=back(found.claims),
            unsupported=back(found.unsupported),
            next_steps=back(found.next_steps),
            answer=back(found.answer),
            notes=back(found.notes),
            evidence=tuple(
                replace(
                    one, sql=self.redactor.unmask_sql(one.sql, true, keep=True), columns=tuple(map(back, one.columns))
                )
                for one in found.evidence
            ),
        )

    def template(self, decision: Template) -> Template:
        """A template with the secrets back, before the rows come in."""
        template = self.redactor.unmask_value(decision.template, keep=True)
        return replace(decision, template=template, text=self.redactor.unmask(decision.text, keep=True))


def build(store: Datastore, kinds: Sequence[str], keep: Sequence[str], make: Make) -> Prompt:
    """The prompt that `make` makes, with what `kinds` name masked. The store knows the placeholders from then on."""
    if not kinds:
        return make(store, str)
    store.masked = MaskedStore(store, Redactor(kinds, keep))
    return store.masked.build(make)


def follows(stage: Callable[Concatenate[Datastore, P], T]) -> Callable[Concatenate[Datastore, P], T]:
    """Has a stage that shows rows to a model see the store as the model may."""

    @wraps(stage)
    def masked(store: Datastore, /, *arguments: P.args, **named: P.kwargs) -> T:
        return stage(store if store.masked is None else store.masked.shown, *arguments, **named)

    return masked


def answers(stage: Callable[Concatenate[Datastore, P], Diagnosis]) -> Callable[Concatenate[Datastore, P], Diagnosis]:
    """Has a stage that makes an answer run statements over the truth, and restore what a model's decision said."""

    @wraps(stage)
    def masked(store: Datastore, /, *arguments: P.args, **named: P.kwargs) -> Diagnosis:
        between = store.masked
        if between is None:
            return stage(store, *arguments, **named)
        given = cast(Any, [between.template(one) if isinstance(one, Template) else one for one in arguments])
        return between.restore(stage(between.asked, *given, **named))

    return masked


def tells(stage: Callable[Concatenate[Datastore, P], Diagnosis]) -> Callable[Concatenate[Datastore, P], Diagnosis]:
    """Has a stage that answers without a model keep masked what stays so in answers."""
    answering = answers(stage)

    @wraps(stage)
    def masked(store: Datastore, /, *arguments: P.args, **named: P.kwargs) -> Diagnosis:
        keeps = store.masked is not None and store.masked.redactor.keep
        return (answering if keeps else stage)(store, *arguments, **named)

    return masked


def told(store: Datastore, text: str) -> str:
    """A text of whoever asked, as the answer may show it."""
    redactor = None if store.masked is None else store.masked.redactor
    return redactor.unmask(redactor.mask(text), keep=True) if redactor is not None and redactor.keep else text


def spelled(store: Datastore, statement: str) -> str:
    """A statement as `store` runs it."""
    return store.spelled(statement) if isinstance(store, _Masked) else statement


class _Masked(ABC):
    """The store with the names that a model knows, and some of its values masked."""

    masked = None

    def __init__(self, store: Datastore, redactor: Redactor) -> None:
        self._store, self._redactor = store, redactor
        self._copies: dict[str, Copy | None] = {}
        self.flags = store.flags

    @property
    @abstractmethod
    def names(self) -> Names:
        """The names that a model knows."""

    @property
    def catalog(self) -> Catalog:
        return self.names.catalog

    def query(self, statement: str, limits: Limits | None = None) -> QueryResult:
        spelled = self.spelled(statement)
        copies = [copy for name in self._read_by(statement, spelled) if (copy := self._copy(name)) is not None]
        return replace(self._store.query(spelled, limits, copies), sql=statement)

    @abstractmethod
    def spelled(self, statement: str) -> str:
        """A statement as it is run."""

    def _read_by(self, statement: str, spelled: str) -> list[str]:
        """The tables that a statement may read; `spelled` as it is run."""
        small = statement.lower()
        told: set[str] = set()
        with suppress(SqlError):  # an operator's table may be spelled with escapes
            for node in nodes(guard.tree(spelled)):
                told.update(given(node) if node.get("type") == "TABLE_FUNCTION" else ())
        return [name for name in self.names.tables if name.lower() in small or name.lower() in told]

    def _copy(self, name: str) -> Copy | None:
        """What stands for a table, None where it may be read itself."""
        if name not in self._copies:
            true, columns = self.names.tables[name], self.names.columns[name]
            values = self._values(true, list(columns.values()))
            renamed = name != true or any(shown != column for shown, column in columns.items())
            self._copies[name] = Copy(true, name, columns, values) if values or renamed else None
        return self._copies[name]

    def _values(self, table: str, columns: Sequence[str]) -> dict[str, pa.Array[Any]]:
        """Those columns that hold something else in a copy."""
        found = {}
        typed = self._typed(table)
        for name in columns:
            other = changed(self._store.columns(table, [name])[name], name, self._redactor, self._cells)
            if other is not None and name not in typed:
                found[name] = other
        for name, text in typed.items():
            if text in found:
                read = self._store.columns(table, [name, text])
                found[name] = _untold(read[name], read[text], found[text])
        if "text" in found and self._takes_apart(table):
            read = self._store.columns(table, ["text", "variables"])
            found["variables"] = _variables(read["text"], read["variables"], found["text"])
        return found

    def _typed(self, table: str) -> dict[str, str]:
        """The typed columns of a table, and which text each stands beside."""
        known = self._store.catalog.table(table)
        return {} if known is None else {column.name: column.typed for column in known.columns if column.typed}

    def _takes_apart(self, table: str) -> bool:
        """Whether a table holds lines and the variables in them."""
        known = self._store.catalog.table(table)
        return known is not None and any(
            column.name == "variables" and column.derived and column.path == "text" for column in known.columns
        )

    def _cells(self, values: Sequence[Any], name: str) -> Sequence[Any]:
        """The values of a column as they stand in a copy."""
        return self._redactor.mask_cells(values, name)


class _Shown(_Masked):
    """The store as a model may see it."""

    def learn(self) -> None:
        """Masks anew what was read before: more secrets are known by now."""
        known = self._redactor.mask_known
        self._copies.clear()
        vars(self).pop("names", None)
        self.sources = tuple(
            replace(source, text=known(source.text), prose=known(source.prose)) for source in self.sources
        )

    @cached_property
    def names(self) -> Names:
        return shown_names(self._store.catalog, self._redactor)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What a source says is read first: the names in its text tell most secrets."""
        if "secrets" in self._redactor.kinds:
            for table in self._store.catalog.tables:
                self._learn(table)
        mask = self._redactor.mask
        return tuple(
            replace(source, text=mask(source.text), prose=mask(source.prose)) for source in self._store.sources
        )

    def reconstruct(self, i: int) -> Any:
        return self._redactor.mask_value(self._store.reconstruct(i))

    def columns(self, table: str, names: Sequence[str], lists: Collection[str] = ()) -> dict[str, pa.Array[Any]]:
        true, table = self.names.columns[table], self.names.tables[table]
        read = self._store.columns(
            table, [true[name] for name in names], [true[name] for name in lists if name in true]
        )
        found: dict[str, pa.Array[Any]] = {}
        masked: dict[str, pa.Array[Any] | None] = {}
        typed = self._typed(table)
        for name in names:
            own = true[name]
            column, text = read.pop(own), typed.get(own, own)
            texts = column if text == own else self._store.columns(table, [text])[text]
            if text not in masked:
                masked[text] = mask_column(self._redactor, text, texts)
            other = masked[text]
            found[name] = column if other is None else other if text == own else _untold(column, texts, other)
        return found

    def spelled(self, statement: str) -> str:
        return self._redactor.masked_sql(statement, self.names.spelled)

    def _learn(self, table: Table) -> None:
        """Learns the values of columns whose name says that they are secret, and of rows whose `key` or `name` does."""
        label = self._redactor.label
        texts = [column.name for column in table.columns if column.type == "VARCHAR"]
        for name in texts:
            if label(name):
                for (value,) in self._distinct(table, name):
                    self._redactor.learn(label(name), value, name)
        named = next((name for name in texts if name.lower() in PAIR), "")
        for name in texts if named else ():
            if name.lower().startswith(VALUE):
                for key, value in self._distinct(table, named, name):
                    if label(key):
                        self._redactor.learn(label(key), value)

    def _distinct(self, table: Table, *names: str) -> list[tuple[str, ...]]:
        """The values of some columns that stand in rows where none is null, in order; at most so many."""
        columns = Columns(self._store, table)
        columns.load(names)
        coded = [columns.coded(name) for name in names]
        filled = np.logical_and.reduce([codes >= 0 for codes, _ in coded])
        together = np.zeros(np.count_nonzero(filled), np.int64)
        for codes, values in coded:
            together = together * len(values) + codes[filled]
        rest, texts = np.unique(together), []
        for _, values in reversed(coded):
            rest, places = np.divmod(rest, max(1, len(values)))
            texts.append(values.shown(places))
        return heapq.nsmallest(_LEARNT, zip(*reversed(texts), strict=True))


class _Asked(_Masked):
    """The store, for the statements of a model: the truth, but for what stays masked in answers."""

    def __init__(self, store: Datastore, redactor: Redactor, shown: _Shown) -> None:
        super().__init__(store, redactor)
        self._shown = shown

    @property
    def names(self) -> Names:
        return self._shown.names

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._store.sources

    def spelled(self, statement: str) -> str:
        return self._redactor.unmask_sql(statement, self.names.spelled, keep=True)

    def _read_by(self, statement: str, spelled: str) -> list[str]:
        return super()._read_by(statement, spelled) if self._redactor.keep or self.names.changed else []

    def _values(self, table: str, columns: Sequence[str]) -> dict[str, pa.Array[Any]]:
        return super()._values(table, columns) if self._redactor.keep else {}

    def _cells(self, values: Sequence[Any], name: str) -> Sequence[Any]:
        return [self._redactor.unmask_value(value, keep=True) for value in super()._cells(values, name)]


def changed(
    column: pa.Array[Any], name: str, redactor: Redactor, cells: Callable[[Sequence[Any], str], Sequence[Any]]
) -> pa.Array[Any] | None:
    """A column with its values as `cells` gives them, None where that changes none; numbers of a password as texts."""
    kind = column.type
    if pa.types.is_nested(kind):
        return _changed_lists(column, name, redactor, cells)
    if _is_number(kind) and redactor.label(name) == "password":
        column = column.cast(pa.string())
    elif not _is_text(kind):
        return None
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    told = list(cells(texts, name))
    return None if told == texts else pa.array(told, coded.dictionary.type).take(coded.indices)


def _changed_lists(
    column: pa.Array[Any], name: str, redactor: Redactor, cells: Callable[[Sequence[Any], str], Sequence[Any]]
) -> pa.Array[Any] | None:
    """`changed` of a column of lists."""
    inner = pc.list_flatten(column)
    if _is_text(inner.type) and pc.any(pc.starts_with(inner, "-")).as_py():  # options and their values
        values = column.to_pylist()
        shown = list(cells(values, name))
        return None if shown == values else pa.array(shown, column.type)
    shown_inner = changed(inner, name, redactor, cells)
    if shown_inner is None:
        return None
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(ends, shown_inner, mask=column.is_null())


def _variables(texts: pa.Array[Any], variables: pa.Array[Any], shown: pa.Array[Any]) -> pa.Array[Any]:
    """The variables of lines, none of a secret: however short, they would tell it."""
    rows = cast(
        "zip[tuple[str, list[str], str]]", zip(texts.to_pylist(), variables.to_pylist(), shown.to_pylist(), strict=True)
    )
    found = [own if text == masked else VARIABLE.findall(PLACEHOLDER.sub("", masked)) for text, own, masked in rows]
    made: pa.Array[Any] = pa.array(found, variables.type)
    return made


def _untold(values: pa.Array[Any], texts: pa.Array[Any], shown: pa.Array[Any]) -> pa.Array[Any]:
    """A typed column, without the values of texts that are shown in another way: they would tell the secret."""
    kept: pa.Array[Any] = pc.if_else(pc.equal(texts, shown).fill_null(True), values, pa.scalar(None, values.type))
    return kept


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are texts, which may come as codes."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def mask_column(redactor: Redactor, name: str, column: pa.Array[Any]) -> pa.Array[Any] | None:
    """A column with its secrets masked, None where it has none. Numbers under a password's name are left out."""
    if _is_number(column.type) and redactor.label(name) == "password":
        nulls: pa.Array[Any] = pa.nulls(len(column), column.type)
        return nulls
    return changed(column, name, redactor, redactor.mask_cells)


__all__ = ["MaskedStore", "answers", "build", "changed", "follows", "mask_column", "spelled", "tells", "told"]
