"""The stages of a request as plain functions: command line, gateway and pipeline call the same ones.

    prepare -> (model) -> decide -> finish                  modes 1 and 2: one call
                             └─> follow_up -> (model) -> finish   mode 3: exactly one more
    rules                                                   no model, or a model that failed

No stage calls a model but `diagnose`, which runs them all in one process.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from hyve import prompt as prompts
from hyve.backfill import fill
from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause, Status, Tokens
from hyve.document import Document, parse
from hyve.errors import HyveError, InputError, ModelError, SqlError
from hyve.prompt import DEFAULT_BUDGET, FOLLOW_UP_BUDGET, Prompt
from hyve.reply import Decision, Direct, Model, ModelReply, Query, Template, conclusion, decide
from hyve.rules import analyse
from hyve.sql import Limits, QueryResult
from hyve.store import Datastore, quote
from hyve.tokens import count_tokens

_EVIDENCE = Limits(rows=20, bytes=64 << 10, seconds=2.0)
_EVIDENCE_SECONDS = 10.0
"""How long all evidence of one answer may run together."""
_ECHO = 2_000
"""Characters of a model's own call that are sent back to it."""


@dataclass(frozen=True)
class Payload:
    """One piece of data: text or bytes, with a name that its tables take where there are several."""

    name: str
    data: str | bytes


@dataclass(frozen=True)
class Request:
    """A question over payloads. `focus`: the entities it is about; `notes`: what the model must be told of the data."""

    question: str
    payloads: tuple[Payload, ...]
    budget: int = DEFAULT_BUDGET
    focus: tuple[str, ...] = ()
    kind: Literal["diagnosis", "answer"] = "diagnosis"
    notes: tuple[str, ...] = ()


def load(payloads: Sequence[Payload]) -> Datastore:
    """The store of all payloads. Raises InputError where there is nothing to load."""
    if not payloads:
        raise InputError("no data was given: pass at least one payload (--file F, or - for standard input)")
    return Datastore(_documents(payloads))


def _documents(payloads: Sequence[Payload]) -> Iterator[Document]:
    for payload in payloads:
        document = parse(payload.data, payload.name if len(payloads) > 1 else "")
        if not document.text.strip():
            raise InputError(f"the input {payload.name!r} is empty: there is nothing to look at")
        if not document.parts and len(payloads) == 1 and len(document.prose) < 3:
            raise InputError(f"the input {payload.name!r} holds no data: give JSON, CSV, Python literals or log lines")
        yield document
        del document  # whoever took it may free it


def prepare(request: Request) -> tuple[Datastore, Prompt]:
    """Parses the payloads, builds the store and the first prompt. Raises InputError or BudgetError."""
    began = time.perf_counter()
    store = load(request.payloads)
    loaded = time.perf_counter()
    try:
        return store, compact(store, request, (loaded - began) * 1000)
    except BaseException:
        store.close()
        raise


def compact(store: Datastore, request: Request, load_ms: float = 0.0) -> Prompt:
    """The first prompt of `request` over a store that is there already."""
    began = time.perf_counter()
    built = prompts.build(
        store, request.question, budget=request.budget, kind=request.kind, focus=request.focus, notes=request.notes
    )
    return replace(built, ms={"store": load_ms, "view": (time.perf_counter() - began) * 1000})


def view(text: str | bytes, question: str = "", budget: int = DEFAULT_BUDGET) -> Prompt:
    """The compact prompt for `question` over the data in `text`, in at most `budget` o200k tokens.

    Raises InputError (nothing to look at) or BudgetError (it names the smallest budget that works).
    """
    store, prompt = prepare(Request(question, (Payload("input", text),), budget))
    store.close()
    return prompt


def follow_up(
    store: Datastore, messages: Sequence[Mapping[str, Any]], decision: Query, budget: int = FOLLOW_UP_BUDGET
) -> tuple[tuple[dict[str, Any], ...], int]:
    """The messages of the second and last call, and what they cost: the rows asked for in at most `budget` tokens.

    A statement that fails is answered with its error and the tables' columns; the model then answers with what it has.
    """
    try:
        result = store.query(decision.sql)
        content = _rows_text(result, budget - 40)
    except SqlError as error:
        content = _error_text(store, decision.sql, error, budget - 40)
    content += "\nThis was the only query. Answer now, as asked above; call nothing."
    added: list[dict[str, Any]]
    if decision.call is not None:
        call = decision.call
        arguments = call.arguments if len(call.arguments) <= _ECHO else json.dumps({"sql": _cut(decision.sql, _ECHO)})
        function = {"name": call.name, "arguments": arguments}
        added = [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call.id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call.id, "content": content},
        ]
    else:
        added = [
            {"role": "assistant", "content": f"query_datastore: {_cut(decision.sql, _ECHO)}"},
            {"role": "user", "content": content},
        ]
    whole = (*map(dict, messages), *added)
    return whole, prompts.size(whole)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…(+{len(text) - limit} chars)"


def _rows_text(result: QueryResult, budget: int) -> str:
    width = len(result.columns)
    while width > 1 and count_tokens("|".join(result.columns[:width])) > budget // 2:
        width = width * 3 // 4
    more = f"|... ({len(result.columns) - width} more columns)" if width < len(result.columns) else ""
    head = f"{result.total_rows:,} rows\n" + _cut("|".join(result.columns[:width]), 4 * budget) + more
    spent = count_tokens(head) + 12
    lines = []
    for row in result.rows:
        cells = ("" if value is None else _cut(str(value).replace("|", "\\|"), 400) for value in row[:width])
        line = "|".join(cells).replace("\n", "\\n")
        spent += count_tokens(line) + 1
        if spent > budget:
            break
        lines.append(line)
    left = result.total_rows - len(lines)
    return "\n".join([head, *lines, *([f"... ({left:,} more rows)"] if left else [])])


def _error_text(store: Datastore, statement: str, error: SqlError, budget: int) -> str:
    lines = [_cut(f"The statement did not run: {error}", 2 * budget)]
    named = [table for table in store.catalog.tables if table.name.lower() in statement.lower()]
    for table in (named or store.catalog.tables)[:8]:
        line = f"{quote(table.name)}({', '.join(quote(column.name) for column in table.columns[:80])})"
        if count_tokens("\n".join([*lines, line])) > budget:
            break
        lines.append(line)
    return "\n".join(lines)


def finish(
    store: Datastore,
    decision: Direct | Template,
    *,
    model: str = "",
    mode: Literal["direct", "query"] = "direct",
    question: str = "",
    focus: Sequence[str] = (),
    kind: Literal["diagnosis", "answer"] = "diagnosis",
) -> Diagnosis:
    """The answer that a decision makes: evidence is run, templates are filled.

    `mode` is "query" where the decision came after a follow-up. A template that can't be filled leaves the answer to
    the rules analyst, marked so.
    """
    if isinstance(decision, Template):
        try:
            return replace(_filled(store, decision), model=model)
        except HyveError as error:
            return rules(store, question, focus, f"the model's template could not be filled: {error}")
    return replace(_concluded(store, decision, kind), model=model, mode=mode)


def _filled(store: Datastore, decision: Template) -> Diagnosis:
    results = [(store.query(part.sql, Limits(rows=200_000, bytes=64 << 20)), part.mappings) for part in decision.fills]
    cut = [result.sql for result, _ in results if result.total_rows > len(result.rows)]
    evidence = tuple(
        Evidence(f"e{i + 1}", result.sql, result.columns, result.rows[: _EVIDENCE.rows], result.total_rows)
        for i, (result, _) in enumerate(results)
    )
    chart = fill(decision.template, results)
    total = sum(result.total_rows for result, _ in results)
    empty = [result.sql for result, _ in results if not result.total_rows]
    return Diagnosis(
        status="partial" if cut or empty else "conclusive",
        summary=decision.text or f"The template was filled with {total:,} rows.",
        evidence=evidence,
        charts=(chart,),
        mode="template",
        notes=(
            *(f"the rows of {statement!r} were capped" for statement in cut),
            *(f"{statement!r} returned no rows: nothing was filled from it" for statement in empty),
        ),
    )


def _concluded(store: Datastore, decision: Direct, kind: Literal["diagnosis", "answer"]) -> Diagnosis:
    found = conclusion(decision.text)
    evidence: dict[str, Evidence] = {}
    failed: dict[str, str] = {}

    began = time.perf_counter()

    def resolve(statements: Sequence[str]) -> tuple[str, ...]:
        ids = []
        for statement in statements[:8]:
            if statement not in evidence and statement not in failed and len(evidence) + len(failed) < 40:
                if not _reads(store, statement):
                    failed[statement] = "it reads none of the tables"
                    continue
                if time.perf_counter() - began > _EVIDENCE_SECONDS:
                    failed[statement] = "the time for evidence was used up"
                    continue
                try:
                    result = store.query(statement, _EVIDENCE)
                except SqlError as error:
                    failed[statement] = str(error)
                    continue
                if not result.total_rows:
                    failed[statement] = "it returns no rows"
                    continue
                number = f"e{len(evidence) + 1}"
                evidence[statement] = Evidence(number, statement, result.columns, result.rows, result.total_rows)
            if statement in evidence:
                ids.append(evidence[statement].id)
        return tuple(dict.fromkeys(ids))

    causes: list[RootCause] = []
    claims: list[Claim] = []
    unsupported: list[Claim] = []
    for cause in found.root_causes:
        ids = resolve(cause.evidence)
        if ids:
            causes.append(RootCause(cause.entity, cause.summary, cause.confidence, ids))
        else:
            unsupported.append(Claim(f"{cause.entity}: {cause.summary}"))
    for claim in found.claims:
        ids = resolve(claim.evidence)
        (claims if ids else unsupported).append(Claim(claim.text, ids))
    status: Status = "inconclusive"
    if found.status == "conclusive" and (causes or (kind == "answer" and claims)):
        status = "conclusive"
    elif found.status == "partial" and (causes or claims):
        status = "partial"
    notes = [f"evidence did not run: {statement!r}: {why}" for statement, why in failed.items()]
    if found.status == "conclusive" and status == "inconclusive" and found.structured:
        notes.append("the model said conclusive, but no root cause of its answer has evidence that resolves")
    return Diagnosis(
        status=status,
        summary=found.summary,
        root_causes=tuple(causes),
        claims=tuple(claims),
        unsupported=tuple(unsupported),
        evidence=tuple(evidence.values()),
        next_steps=found.next_steps,
        answer="" if found.structured else decision.text,
        notes=tuple(notes),
    )


def _reads(store: Datastore, statement: str) -> bool:
    """Whether a statement names any of the store's tables: what reads no data proves nothing about it."""
    return any(re.search(rf"(?<!\w){re.escape(table.name)}(?!\w)", statement, re.I) for table in store.catalog.tables)


def rows_answer(store: Datastore, decision: Query, *, model: str = "") -> Diagnosis:
    """What stands where a model asks again though there is no third call: the rows it asked for, said plainly."""
    note = "the model asked for a second query instead of answering; its rows are shown, without an interpretation"
    try:
        result = store.query(decision.sql, _EVIDENCE)
    except SqlError as error:
        return Diagnosis("partial", f"No answer: {note}, and the query failed: {error}", mode="query", model=model)
    evidence = Evidence("e1", result.sql, result.columns, result.rows, result.total_rows)
    summary = f"No interpretation: the model's last query returned {result.total_rows:,} rows."
    return Diagnosis("partial", summary, evidence=(evidence,), mode="query", model=model, notes=(note,))


def rules(store: Datastore, question: str = "", focus: Sequence[str] = (), reason: str = "") -> Diagnosis:
    """The rules analyst's answer. `reason` says why no model answered."""
    try:
        found = analyse(store, question, focus)
    except Exception as error:  # the last answer there is: data that the rules stumble over must not take it away
        what = str(error) if isinstance(error, HyveError) else f"{type(error).__name__}: {error}"
        tables = ", ".join(f"{table.name} ({table.rows:,} rows)" for table in store.catalog.tables[:12])
        found = Diagnosis("inconclusive", f"The rules can't read this data ({what}). Tables: {tables}.")
    return replace(found, notes=(*found.notes, f"answered by the rules analyst: {reason}")) if reason else found


async def diagnose(request: Request, store: Datastore, model: Model | None = None) -> Diagnosis:
    """One diagnosis: at most two calls of `model`, and the rules analyst where there is none or it fails.

    `ms` of the answer: prepare (the view; the store is there already), model, query, model_2, finish, total.
    """
    began = time.perf_counter()
    ms: dict[str, float] = {}
    calls = completion = second = 0

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            ms[stage] = (time.perf_counter() - start) * 1000

    async def ask(stage: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Decision:
        nonlocal calls, completion
        if model is None:
            raise ModelError("no model is configured", "connection")
        calls += 1
        with timed(stage):
            try:
                reply = await model.complete(messages, tools)
            except HyveError:
                raise
            except Exception as error:  # a client of the caller's own may raise anything
                raise ModelError(f"the model's client failed: {type(error).__name__}: {error}", "server") from error
        if not isinstance(reply, ModelReply) or not isinstance(reply.text, str):
            raise ModelError(f"the model's client must return a ModelReply with a text, not {reply!r:.80}", "reply")
        completion += reply.completion_tokens if reply.completion_tokens is not None else count_tokens(reply.text)
        return await asyncio.to_thread(decide, reply)

    with timed("prepare"):
        built = await asyncio.to_thread(compact, store, request)
    try:
        decision = await ask("model", built.messages, built.tools)
        mode: Literal["direct", "query"] = "direct"
        if isinstance(decision, Query):
            mode = "query"
            with timed("query"):
                messages, second = await asyncio.to_thread(follow_up, store, built.messages, decision)
            decision = await ask("model_2", messages, ())
        with timed("finish"):
            if isinstance(decision, Query):
                found = await asyncio.to_thread(rows_answer, store, decision, model=_name(model))
            else:
                found = await asyncio.to_thread(
                    finish,
                    store,
                    decision,
                    model=_name(model),
                    mode=mode,
                    question=request.question,
                    focus=request.focus,
                    kind=request.kind,
                )
    except HyveError as error:
        with timed("finish"):
            found = await asyncio.to_thread(rules, store, request.question, request.focus, str(error))
    ms["total"] = (time.perf_counter() - began) * 1000
    tokens = Tokens(built.original_tokens, built.prompt_tokens, second, completion)
    return replace(found, calls=calls, tokens=tokens, ms=ms, notes=(*request.notes, *found.notes))


def _name(model: Model | None) -> str:
    return model.name if model is not None else ""
