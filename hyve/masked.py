"""A store between secrets and a model: what the model may see of it, what its statements mean, what its answer says.

Rules:
- `shown` is the store with placeholders where secrets stand. Views, prompts and follow-ups read nothing else: columns,
  whole values, source texts, rows of a query, errors.
- `asked` is the store itself, for a model's statements: their placeholders are unmasked before they run.
- `restore` gives an answer its secrets back, but for the kinds that stay masked. Rows of evidence are true already.
- The placeholders are the same whenever a prompt is built again from the same data and the same question.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa

from hyve.columns import Columns
from hyve.diagnosis import Diagnosis
from hyve.errors import SqlError
from hyve.prompt import Prompt, Savings
from hyve.redact import Redactor
from hyve.reply import Template
from hyve.sql import Limits, QueryResult
from hyve.store import Datastore, Source, Table
from hyve.tokens import count_tokens

_LEARNT = 10_000
"""Values of secret columns that are masked in other columns too, of each column."""
_ROUNDS = 4

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")

Make = Callable[[Datastore, Callable[[str], str]], Prompt]
"""Makes a prompt of a store, and of other texts by the function that it is given to mask them."""


class MaskedStore:
    """A `Datastore` and the placeholders of its secrets."""

    def __init__(self, store: Datastore, redactor: Redactor) -> None:
        self.redactor = redactor
        self._store = store
        # Views and stages take a Datastore; what they use of one is here.
        self.shown = cast(Datastore, _Shown(store, redactor))
        self.asked = cast(Datastore, _Asked(store, redactor))

    def build(self, make: Make) -> Prompt:
        """The prompt that `make` makes of the store as a model may see it."""
        for _ in range(_ROUNDS):
            _ = self.shown.sources  # says most of the secrets that there are
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

        def back(value: Any) -> Any:
            return self.redactor.unmask_value(value, keep=True)

        return replace(
            found,
            summary=back(found.summary),
            root_causes=back(found.root_causes),
            claims=back(found.claims),
            unsupported=back(found.unsupported),
            next_steps=back(found.next_steps),
            answer=back(found.answer),
            notes=back(found.notes),
            evidence=tuple(replace(one, sql=self.redactor.unmask_sql(one.sql)) for one in found.evidence),
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


def answers(
    stage: Callable[Concatenate[Datastore, D, P], Diagnosis],
) -> Callable[Concatenate[Datastore, D, P], Diagnosis]:
    """Has a stage that makes an answer of a decision run its statements over the truth, and restore what it said."""

    @wraps(stage)
    def masked(store: Datastore, decision: D, /, *arguments: P.args, **named: P.kwargs) -> Diagnosis:
        if store.masked is None:
            return stage(store, decision, *arguments, **named)
        if isinstance(decision, Template):
            decision = cast(D, store.masked.template(decision))
        return store.masked.restore(stage(store.masked.asked, decision, *arguments, **named))

    return masked


class _Asked:
    """The store, for the statements of a model."""

    masked = None

    def __init__(self, store: Datastore, redactor: Redactor) -> None:
        self._store, self._redactor = store, redactor
        self.catalog, self.flags = store.catalog, store.flags

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._store.sources

    def query(self, statement: str, limits: Limits | None = None) -> QueryResult:
        return replace(self._run(self._redactor.unmask_sql(statement), limits), sql=statement)

    def _run(self, statement: str, limits: Limits | None) -> QueryResult:
        return self._store.query(statement, limits)


class _Shown(_Asked):
    """The store as a model may see it."""

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What a source says is read first: the names in its text tell most secrets."""
        if "secrets" in self._redactor.kinds:
            for table in self.catalog.tables:
                self._learn(table)
        mask = self._redactor.mask
        return tuple(
            replace(source, text=mask(source.text), prose=mask(source.prose)) for source in self._store.sources
        )

    def reconstruct(self, i: int) -> Any:
        return self._redactor.mask_value(self._store.reconstruct(i))

    def _run(self, statement: str, limits: Limits | None) -> QueryResult:
        try:
            result = super()._run(statement, limits)
        except SqlError as error:
            raise type(error)(self._redactor.mask(str(error))) from None
        shown = map(self._redactor.mask_cells, zip(*result.rows, strict=True), result.columns)
        return replace(result, rows=tuple(zip(*shown, strict=True)))

    def columns(self, table: str, names: Sequence[str], lists: Collection[str] = ()) -> dict[str, pa.Array[Any]]:
        read = self._store.columns(table, names, lists)
        for name, column in read.items():
            masked = mask_column(self._redactor, name, column)
            read[name] = column if masked is None else masked
        return read

    def _learn(self, table: Table) -> None:
        """Learns the values of columns whose name says that they are secret, and of rows whose `key` or `name` does."""
        label = self._redactor.label
        texts = [column.name for column in table.columns if column.type == "VARCHAR"]
        for name in texts:
            if label(name):
                for (value,) in self._distinct(table, name):
                    self._redactor.learn(label(name), value, name)
        named = next((name for name in ("key", "name") if name in texts), "")
        for name in texts if named else ():
            if name.startswith("value"):
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


def mask_column(redactor: Redactor, name: str, column: pa.Array[Any]) -> pa.Array[Any] | None:
    """A column with its secrets masked, None where it has none. Numbers under a password's name are left out."""
    label = redactor.label(name)
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        return pa.nulls(len(column), column.type) if label == "password" and numeric else None
    coded = column.dictionary_encode()
    texts = cast("list[str]", coded.dictionary.to_pylist())
    shown = [redactor.mask_value(text, name) for text in texts] if label else redactor.mask_all(texts)
    return None if shown == texts else pa.array(shown, column.type).take(coded.indices)


__all__ = ["MaskedStore", "answers", "build", "follows", "mask_column"]
