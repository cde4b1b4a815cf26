"""The stages of a request as plain functions: command line, gateway and pipeline call the same ones.

    prepare -> (model) -> decide -> finish                  modes 1 and 2: one call
                             └─> follow_up -> (model) -> finish   mode 3: exactly one more
    rules                                                   no model, or a model that failed

No stage calls a model but `diagnose`, which runs them all in one process. What a bad reply leads to:

    nothing, only thoughts, only calls that can't be used     the rules analyst's answer, with the reason
    a template without its slots, columns or tables           the rules analyst's answer, with the reason
    prose, rubbish, or a huge text for a diagnosis            the summary (cut), inconclusive, and what the rules say
    causes without evidence that counts                       unsupported, inconclusive, and what the rules say
    a query that fails                                        its error and the tables' columns, in the one more call
    a query in place of the last answer                       its rows, said plainly, partial, and what the rules say
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from hyve import evidence as evidences
from hyve import masked
from hyve import prompt as prompts
from hyve.backfill import fill, gaps
from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause, Status, Tokens
from hyve.document import Document, parse
from hyve.errors import BackfillError, HyveError, InputError, ModelError, SqlError
from hyve.prompt import DEFAULT_BUDGET, FOLLOW_UP_BUDGET, Prompt
from hyve.reply import Conclusion, Decision, Direct, Model, ModelReply, Query, Template, conclusion, decide
from hyve.rules import analyse
from hyve.sql import Limits, QueryResult
from hyve.store import Datastore, quote
from hyve.tokens import count_tokens

_ECHO = 2_000
"""Characters of a model's own call that are sent back to it."""
_FILL_SECONDS = 20.0
"""How long all statements of one template may run together."""
_PROSE, _ANSWER = 4_000, 100_000
"""Characters of a model's prose that are kept as summary, and as answer."""


@dataclass(frozen=True)
class Payload:
    """One piece of data: text or bytes, with a name that its tables take where there are several."""

    name: str
    data: str | bytes


@dataclass(frozen=True)
class Request:
    """A question over payloads. `focus`: the entities it is about; `notes`: what the model must be told of the data;
    `ablation`: see `hyve.prompt.ABLATIONS`. `redact`: what a model sees masked (`hyve.redact.KINDS`), `keep_masked`:
    what of it answers show masked, too (`LABELS`)."""

    question: str
    payloads: tuple[Payload, ...]
    budget: int = DEFAULT_BUDGET
    focus: tuple[str, ...] = ()
    kind: Literal["diagnosis", "answer"] = "diagnosis"
    notes: tuple[str, ...] = ()
    ablation: frozenset[str] = frozenset()
    redact: tuple[str, ...] = ("secrets",)
    keep_masked: tuple[str, ...] = ()


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
    built = masked.build(
        store,
        request.redact,
        request.keep_masked,
        lambda shown, mask: prompts.build(
            shown,
            mask(request.question),
            budget=request.budget,
            kind=request.kind,
            focus=tuple(map(mask, request.focus)),
            notes=tuple(map(mask, request.notes)),
            ablation=request.ablation,
        ),
    )
    return replace(built, ms={"store": load_ms, "view": (time.perf_counter() - began) * 1000})


def view(
    text: str | bytes,
    question: str = "",
    budget: int = DEFAULT_BUDGET,
    *,
    ablation: Collection[str] = (),
    redact: Collection[str] = (),
) -> Prompt:
    """The compact prompt for `question` over the data in `text`, in at most `budget` o200k tokens.

    `ablation` leaves parts of it out to see what they are worth (H34): any of "no-rank", "no-truncation" (then there is
    no budget), "toon", "no-postprocessing". `redact` masks what it names (`hyve.redact.KINDS`), as whoever sends the
    prompt to a model should. Raises InputError (nothing to look at) or BudgetError (it names the smallest budget that
    works).
    """
    payloads = (Payload("input", text),)
    request = Request(question, payloads, budget, ablation=frozenset(ablation), redact=tuple(redact))
    store, prompt = prepare(request)
    store.close()
    return prompt


@masked.follows
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


def _fit(text: str, budget: int) -> str:
    """The head of `text` that takes at most `budget` tokens, with a marker where it was cut."""
    head = text[: 8 * budget]  # no token is longer on average
    while len(head) > 1 and count_tokens(_cut(text, len(head))) > budget:
        head = head[: len(head) * 3 // 4]
    return _cut(text, len(head))


def _rows_text(result: QueryResult, budget: int) -> str:
    """The rows in at most `budget` tokens, with the true count of all. Cells are cut where else no row would fit."""
    width = len(result.columns)
    while width > 1 and count_tokens("|".join(result.columns[:width])) > budget // 2:
        width = width * 3 // 4
    more = f"|... ({len(result.columns) - width} more columns)" if width < len(result.columns) else ""
    head = f"{result.total_rows:,} rows\n" + _fit("|".join(result.columns[:width]), budget // 2) + more
    spent = count_tokens(head) + 16
    lines: list[str] = []
    for longest in (400, 100, 25, 6):
        left = budget - spent
        for row in result.rows:
            cells = (_cut(_cell(value).replace("|", "\\|"), longest) for value in row[:width])
            line = "|".join(cells).replace("\n", "\\n")
            left -= count_tokens(line) + 1
            if left < 0:
                break
            lines.append(line)
        if lines:
            break
    rest = result.total_rows - len(lines)
    return "\n".join([head, *lines, *([f"... ({rest:,} more rows)"] if rest else [])])


def _cell(value: Any) -> str:
    if isinstance(value, (list, dict, bool)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "" if value is None else str(value)


def _error_text(store: Datastore, statement: str, error: SqlError, budget: int) -> str:
    """The error and the columns of the tables that the statement names (of the first ones where it names none)."""
    lines = [_fit(f"The statement did not run: {error}", budget // 2)]
    words = {word.lower() for word in re.findall(r"\w+", statement)}
    named = [table for table in store.catalog.tables if set(re.findall(r"\w+", table.name.lower())) <= words]
    for table in (named or store.catalog.tables)[:8]:
        columns = [quote(column.name) for column in table.columns]
        room = budget - count_tokens("\n".join(lines)) - 2
        count = min(len(columns), 80)
        while count:
            more = f", ... ({len(columns) - count} more)" if count < len(columns) else ""
            line = f"{quote(table.name)}({', '.join(columns[:count])}{more})"
            if count_tokens(line) <= room:
                lines.append(line)
                break
            count //= 2
        else:
            break
    return "\n".join(lines)


@masked.answers
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
    the rules analyst, marked so. Beside a diagnosis that is prose, or whose causes all lack evidence, a note says what
    the rules analyst found.
    """
    if isinstance(decision, Template):
        try:
            return replace(_filled(store, decision), model=model)
        except HyveError as error:
            return rules(store, question, focus, f"the model's template could not be filled: {error}")
    found = conclusion(decision.text)
    diagnosis = replace(_concluded(store, found, decision.text, kind), model=model, mode=mode)
    if kind == "diagnosis" and (not found.structured or (diagnosis.unsupported and not diagnosis.root_causes)):
        return _with_rules(diagnosis, store, question, focus)
    return diagnosis


def _with_rules(diagnosis: Diagnosis, store: Datastore, question: str, focus: Sequence[str]) -> Diagnosis:
    found = rules(store, question, focus)
    note = (
        f"the rules analyst, asked because the model's answer stands without evidence: {found.status}: {found.summary}"
    )
    return replace(diagnosis, notes=(*diagnosis.notes, note))


def _filled(store: Datastore, decision: Template) -> Diagnosis:
    began = time.perf_counter()
    results = []
    for part in decision.fills:
        left = _FILL_SECONDS - (time.perf_counter() - began)
        if left <= 0:
            raise BackfillError(f"the statements of the fills took over {_FILL_SECONDS:g} s together; ask for less")
        limits = Limits(rows=200_000, bytes=64 << 20, seconds=min(left, Limits.seconds))
        results.append((store.query(part.sql, limits), part.mappings))
    evidence = tuple(
        Evidence(f"e{i + 1}", result.sql, result.columns, result.rows[: evidences.LIMITS.rows], result.total_rows)
        for i, (result, _) in enumerate(results)
    )
    chart = fill(decision.template, results)
    total = sum(result.total_rows for result, _ in results)
    empty = [result.sql for result, _ in results if not result.total_rows]
    missing = sum(gaps(result, mappings) for result, mappings in results)
    return Diagnosis(
        status="partial" if empty else "conclusive",
        summary=_cut(decision.text, _PROSE) or f"The template was filled with {total:,} rows.",
        evidence=evidence,
        charts=(chart,),
        mode="template",
        notes=(
            *(f"{statement!r} returned no rows: nothing was filled from it" for statement in empty),
            *([f"{missing:,} values are NaN or infinite: they are null in the chart"] if missing else []),
        ),
    )


def _concluded(store: Datastore, found: Conclusion, text: str, kind: Literal["diagnosis", "answer"]) -> Diagnosis:
    resolver = evidences.Resolver(store)
    causes: list[RootCause] = []
    claims: list[Claim] = []
    unsupported: list[Claim] = []
    for cause in found.root_causes:
        ids = resolver.ids(cause.evidence)
        if ids:
            causes.append(RootCause(cause.entity, cause.summary, cause.confidence, ids))
        else:
            unsupported.append(Claim(f"{cause.entity}: {cause.summary}"))
    for claim in found.claims:
        ids = resolver.ids(claim.evidence)
        (claims if ids else unsupported).append(Claim(claim.text, ids))
    status: Status = "inconclusive"
    if found.status == "conclusive" and (causes or (kind == "answer" and claims)):
        status = "conclusive"
    elif found.status == "partial" and (causes or claims):
        status = "partial"
    notes = [f"evidence does not count: {statement!r}: {why}" for statement, why in resolver.failed.items()]
    if resolver.skipped:
        notes.append(f"{resolver.skipped} statements of evidence were not run: the answer gave too many")
    if found.status == "conclusive" and status == "inconclusive" and found.structured:
        notes.append("the model said conclusive, but no root cause of its answer has evidence that resolves")
    return Diagnosis(
        status=status,
        summary=_cut(found.summary, _PROSE),
        root_causes=tuple(causes),
        claims=tuple(claims),
        unsupported=tuple(unsupported),
        evidence=resolver.evidence,
        next_steps=found.next_steps,
        answer="" if found.structured else _cut(text, _ANSWER),
        notes=tuple(notes),
    )


@masked.answers
def rows_answer(
    store: Datastore, decision: Query, *, model: str = "", question: str = "", focus: Sequence[str] = ()
) -> Diagnosis:
    """What stands where a model asks again though there is no third call: the rows it asked for, said plainly, and what
    the rules analyst found."""
    note = "the model asked for a second query instead of answering; its rows are shown, without an interpretation"
    try:
        result = store.query(decision.sql, evidences.LIMITS)
    except SqlError as error:
        found = Diagnosis("partial", f"No answer: {note}, and the query failed: {error}", mode="query", model=model)
    else:
        evidence = Evidence("e1", result.sql, result.columns, result.rows, result.total_rows)
        summary = f"No interpretation: the model's last query returned {result.total_rows:,} rows."
        found = Diagnosis("partial", summary, evidence=(evidence,), mode="query", model=model, notes=(note,))
    return _with_rules(found, store, question, focus)


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
        completion += written(reply)
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
                found = await asyncio.to_thread(
                    rows_answer,
                    store,
                    decision,
                    model=_name(model),
                    question=request.question,
                    focus=request.focus,
                )
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


def written(reply: ModelReply) -> int:
    """Tokens that the model wrote: as reported, else those of the text and of the calls."""
    if reply.completion_tokens is not None:
        return reply.completion_tokens
    return count_tokens(reply.text) + sum(count_tokens(f"{call.name} {call.arguments}") for call in reply.tool_calls)


def _name(model: Model | None) -> str:
    return model.name if model is not None else ""
