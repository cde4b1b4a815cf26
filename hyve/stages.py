"""The stages of a request as plain functions: command line, gateway and pipeline call the same ones.

    prepare -> (model) -> decide -> finish                  modes 1 and 2: one call
                             └─> follow_up -> (model) -> finish   mode 3: exactly one more
    rules                                                   no model, or a model that failed

No stage calls a model but `diagnose`, which runs them all in one process. What a bad reply leads to:

    nothing, only thoughts, only calls that can't be used     the rules analyst's answer, with the reason
    a template without its slots, columns or tables           its error, in the one more call; then the rules analyst
    a diagnosis with neither cause nor claim that counts,     the rules analyst's answer, with the head of what the
      or rubbish                                              model said, and what of it is unsupported
    prose, or a huge text for a diagnosis                     the summary (cut), inconclusive, and what the rules say
    causes without evidence that counts beside claims         unsupported, inconclusive, and what the rules say
    a query that fails                                        its error and the tables' columns, in the one more call
    no answer after a query, or another query                 the rows, said plainly, partial, and what the rules say;
                                                              the first reply's answer where one stood beside its call
    a reply that the model's token limit cut                  a note
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from hyve import evidence as evidences
from hyve import masked
from hyve import prompt as prompts
from hyve.backfill import complete, gaps
from hyve.conclusion import MAX_ITEMS
from hyve.diagnosis import (
    CUT,
    RULES_ANSWER,
    RULES_SAY,
    Claim,
    Diagnosis,
    Evidence,
    RootCause,
    Status,
    Tokens,
    with_rows,
)
from hyve.document import Document, parse
from hyve.errors import BackfillError, HyveError, InputError, ModelError, SqlError
from hyve.jsontext import has_words
from hyve.prompt import DEFAULT_BUDGET, FOLLOW_UP_BUDGET, Prompt
from hyve.reply import Conclusion, Decision, Direct, Model, ModelReply, Query, Template, conclusion, decide
from hyve.rowtext import cut, error_text, fit, rows_text
from hyve.rules import analyse
from hyve.sql import Limits
from hyve.store import Datastore

_ECHO = 2_000
"""Characters of a model's own call that are sent back to it."""
_FILL_SECONDS = 20.0
"""How long all statements of one template may run together."""
_PROSE, _ANSWER, _SAID = 4_000, 100_000, 500
"""Characters of a model's prose that are kept as summary, as answer, and in a note."""


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
    """The store of all payloads, of which some may be empty (flag `empty_input`). Raises InputError where there is
    nothing to load."""
    if not payloads:
        raise InputError("no data was given: a question needs at least one payload")
    return Datastore(_documents(payloads))


def _documents(payloads: Sequence[Payload]) -> Iterator[Document]:
    filled = False
    for number, payload in enumerate(payloads, 1):
        document = parse(payload.data, payload.name if len(payloads) > 1 else "")
        if document.text.strip():
            filled = True
        elif number < len(payloads) or filled:
            document = replace(document, flags=(*document.flags, "empty_input"))
        else:
            which = f"the input {payload.name!r} is" if number == 1 else f"all {number} inputs are"
            raise InputError(f"{which} empty: there is nothing to look at")
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
            mask(prompts.asked(request.question)),
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
    switches, masks = prompts.names("ablation", ablation), prompts.names("redact", redact)
    request = Request(question, payloads, budget, ablation=frozenset(switches), redact=masks)
    store, prompt = prepare(request)
    store.close()
    return prompt


@masked.follows
def follow_up(
    store: Datastore,
    messages: Sequence[Mapping[str, Any]],
    decision: Query | Template,
    budget: int = FOLLOW_UP_BUDGET,
) -> tuple[tuple[dict[str, Any], ...], int]:
    """The messages of the second and last call, and what they cost: the rows asked for in at most `budget` tokens.

    A statement that fails is answered with its error and the tables' columns; the model then answers with what it has.
    A template that can't be filled is answered with its error, to be mended.
    """
    if isinstance(decision, Template):
        content = _misfit(store, decision, budget - 80)
        asked, fallback = "fill_template", json.dumps({"template": decision.template}, ensure_ascii=False)
        short = json.dumps({"template": cut(fallback, _ECHO)})
    else:
        try:
            result = store.query(decision.sql)
            content = rows_text(result, budget - 40)
        except SqlError as error:
            content = error_text(store, decision.sql, error, budget - 40)
        content += "\nThis was the only query. Answer now, as asked above; call nothing."
        asked, fallback = "query_datastore", decision.sql
        short = json.dumps({"sql": cut(decision.sql, _ECHO)})
    added: list[dict[str, Any]]
    if decision.call is not None:
        call = decision.call
        arguments = call.arguments if len(call.arguments) <= _ECHO else short
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
            {"role": "assistant", "content": f"{asked}: {cut(fallback, _ECHO)}"},
            {"role": "user", "content": content},
        ]
    whole = (*map(dict, messages), *added)
    return whole, prompts.size(whole)


def _misfit(store: Datastore, decision: Template, budget: int) -> str:
    """Why a template can't be filled, and how to mend it."""
    try:
        _filled(store, decision)
        content = "The template was not filled: mend it."
    except SqlError as error:
        content = error_text(store, " ".join(part.sql for part in decision.fills), error, budget)
    except HyveError as error:
        content = fit(f"The template was not filled: {error}", budget)
    return (
        f"{content}\nThis was the only try. Reply now with the whole mended call as text, "
        '{"tool":"fill_template","arguments":{"template":{},"fills":[]}}, or answer as asked above.'
    )


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

    `mode` is "query" where the decision came after a follow-up. A template that can't be filled then leaves the answer
    to the rules analyst, marked so; before, where a call is left to mend it, it raises the HyveError. A diagnosis with
    neither cause nor claim that counts, or of rubbish, leaves the answer to the rules analyst, too. Prose, and a
    diagnosis whose causes all lack evidence, has a note that says what the rules analyst found.
    """
    if isinstance(decision, Template):
        try:
            return replace(_filled(store, decision), model=model)
        except HyveError as error:
            if mode == "direct":
                raise
            return rules(store, question, focus, f"the model's template could not be filled: {error}")
    found = conclusion(decision.text)
    diagnosis = replace(_concluded(store, found, decision.text, kind), model=model, mode=mode)
    if kind != "diagnosis":
        return diagnosis
    if not found.structured and has_words(decision.text):
        return _with_rules(diagnosis, store, question, focus)
    if not diagnosis.root_causes and not diagnosis.claims:
        why = "the model's answer has neither a cause nor a claim with evidence that counts"
        answered = rules(store, question, focus, why)
        said = cut("".join(c if c.isprintable() else " " for c in decision.text[: 4 * _SAID]).strip(), _SAID)
        return replace(
            answered,
            unsupported=(*answered.unsupported, *diagnosis.unsupported),
            notes=(*answered.notes, *diagnosis.notes, f"the model said: {said}"),
        )
    if diagnosis.unsupported and not diagnosis.root_causes:
        return _with_rules(diagnosis, store, question, focus)
    return diagnosis


def _with_rules(diagnosis: Diagnosis, store: Datastore, question: str, focus: Sequence[str]) -> Diagnosis:
    found = rules(store, question, focus)
    note = f"{RULES_SAY} the model's answer stands without evidence: {found.status}: {found.summary}"
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
    chart = complete(decision.template, results)
    total = sum(result.total_rows for result, _ in results)
    missing = sum(gaps(result, mappings) for result, mappings in results)
    resolver = evidences.Resolver(store)
    refused = {result.sql: why for result, _ in results if (why := resolver.refusal(result.sql, result))}
    evidence = tuple(
        Evidence(f"e{i + 1}", result.sql, result.columns, result.rows[: evidences.LIMITS.rows], result.total_rows)
        for i, result in enumerate(result for result, _ in results if result.total_rows)
    )
    notes = [f"a fill does not count as evidence: {statement!r}: {why}" for statement, why in refused.items()]
    if missing:
        notes.append(f"{missing:,} values are NaN or infinite: they are null in the chart")
    if chart.own:
        notes.append(f"{chart.own:,} numbers in the template's data are the model's own: no query gave them")
    if chart.surplus:
        notes.append(f"{chart.surplus:,} placeholders of the template that no row filled were removed")
    return Diagnosis(
        status="partial" if refused else "conclusive",
        summary=cut(decision.text, _PROSE) or f"The template was filled with {total:,} rows.",
        evidence=evidence,
        charts=(chart.value,),
        mode="template",
        notes=tuple(notes),
    )


def _concluded(store: Datastore, found: Conclusion, text: str, kind: Literal["diagnosis", "answer"]) -> Diagnosis:
    named = (*(cause.evidence for cause in found.root_causes), *(claim.evidence for claim in found.claims))
    resolver = evidences.Resolver(store, [statement for statements in named for statement in statements])
    causes: list[RootCause] = []
    claims: list[Claim] = []
    unsupported: list[Claim] = []
    absent: list[str] = []
    for cause in found.root_causes:
        ids = resolver.ids(cause.evidence, cause=True)
        if ids and not resolver.occurs(cause.entity):
            absent.append(cause.entity)
            ids = ()
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
    notes += [f"evidence supports no root cause: {statement!r}: {why}" for statement, why in resolver.denied.items()]
    notes += [
        f"a root cause is not supported: {cut(entity, 200)!r} is nowhere in the data"
        for entity in dict.fromkeys(absent)
    ]
    if found.status and found.status not in get_args(Status):
        known = ", ".join(get_args(Status))
        notes.append(f"the model gave the status {cut(found.status, 40)!r}, which is none of {known}")
    if found.dropped:
        notes.append(f"{found.dropped:,} items of the answer were dropped: it gave more than {MAX_ITEMS} of a kind")
    if resolver.skipped:
        notes.append(f"{resolver.skipped} statements of evidence were not run: the answer gave too many")
    if found.status == "conclusive" and status == "inconclusive" and found.structured:
        notes.append("the model said conclusive, but no root cause of its answer has evidence that resolves")
    return Diagnosis(
        status=status,
        summary=cut(found.summary, _PROSE),
        root_causes=tuple(causes),
        claims=tuple(claims),
        unsupported=tuple(unsupported),
        evidence=resolver.evidence,
        next_steps=found.next_steps,
        answer="" if found.structured else cut(text, _ANSWER),
        notes=tuple(notes),
    )


@masked.answers
def rows_answer(
    store: Datastore, decision: Query, *, model: str = "", question: str = "", focus: Sequence[str] = ()
) -> Diagnosis:
    """What stands where a model asks for a query though no call is left: the rows it asked for, said plainly, and what
    the rules analyst found."""
    why = "the model asked for a second query instead of answering"
    try:
        result = store.query(decision.sql, evidences.LIMITS)
    except SqlError as error:
        summary = f"No answer: {why}, and the query failed: {error}"
        found = Diagnosis("partial", summary, mode="query", model=model)
    else:
        evidence = Evidence("e1", result.sql, result.columns, result.rows, result.total_rows)
        summary = f"No interpretation: the model's last query returned {result.total_rows:,} rows."
        note = f"{why}; the rows of that query are shown, without an interpretation"
        found = Diagnosis("partial", summary, evidence=(evidence,), mode="query", model=model, notes=(note,))
    return _with_rules(found, store, question, focus)


@masked.tells
def rules(store: Datastore, question: str = "", focus: Sequence[str] = (), reason: str = "") -> Diagnosis:
    """The rules analyst's answer. `reason` says why no model answered."""
    try:
        found = analyse(store, question, focus)
    except Exception as error:  # the last answer there is: data that the rules stumble over must not take it away
        what = str(error) if isinstance(error, HyveError) else f"{type(error).__name__}: {error}"
        tables = ", ".join(f"{table.name} ({table.rows:,} rows)" for table in store.catalog.tables[:12])
        found = Diagnosis("inconclusive", f"The rules can't read this data ({what}). Tables: {tables}.")
    return replace(found, notes=(*found.notes, f"{RULES_ANSWER}{reason}")) if reason else found


async def diagnose(request: Request, store: Datastore, model: Model | None = None) -> Diagnosis:
    """One diagnosis: at most two calls of `model`, and the rules analyst where there is none or it fails.

    `ms` of the answer: prepare (the view; the store is there already), model, query, model_2, finish, total.
    """
    began = time.perf_counter()
    ms: dict[str, float] = {}
    calls = completion = second = 0
    cost: float | None = None
    cuts: list[str] = []

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            ms[stage] = (time.perf_counter() - start) * 1000

    async def ask(stage: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Decision:
        nonlocal calls, completion, cost
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
        completion += reply.written
        if reply.cost is not None:
            cost = (cost or 0.0) + reply.cost
        if reply.cut:
            cuts[:] = [CUT]
        return await asyncio.to_thread(decide, reply)

    about: dict[str, Any] = {"question": request.question, "focus": request.focus, "model": _name(model)}

    async def ended(decision: Decision, mode: Literal["direct", "query"]) -> Diagnosis:
        with timed("finish"):
            if isinstance(decision, Query):
                return await asyncio.to_thread(rows_answer, store, decision, **about)
            return await asyncio.to_thread(finish, store, decision, mode=mode, kind=request.kind, **about)

    async def by_rules(error: HyveError) -> Diagnosis:
        with timed("finish"):
            return await asyncio.to_thread(rules, store, request.question, request.focus, str(error))

    async def after(first: Query | Template) -> Diagnosis:
        """The answer of the second call."""
        nonlocal second
        with timed("query"):
            messages, second = await asyncio.to_thread(follow_up, store, built.messages, first)
        decision: Decision | None = None
        try:
            decision = await ask("model_2", messages, ())
            found = await ended(decision, "query")
        except HyveError as error:
            found = await by_rules(error)
        if found.mode != "rules" and not isinstance(decision, Query):
            if isinstance(first, Query) and not found.evidence:
                found = replace(found, evidence=(await ended(first, "query")).evidence)
            return found
        if conclusion(first.text).structured:
            whole = await ended(Direct(first.text), "query")
            if whole.mode != "rules":
                note = "the answer is that of the model's first reply: its second one could not be used"
                return replace(whole, notes=(*whole.notes, note))
        return with_rows(found, await ended(first, "query")) if isinstance(first, Query) else found

    with timed("prepare"):
        built = await asyncio.to_thread(compact, store, request)
    try:
        decision = await ask("model", built.messages, built.tools)
        if isinstance(decision, Query):
            found = await after(decision)
        else:
            try:
                found = await ended(decision, "direct")
            except HyveError:
                if not isinstance(decision, Template):
                    raise
                found = await after(decision)
    except HyveError as error:
        found = await by_rules(error)
    ms["total"] = (time.perf_counter() - began) * 1000
    tokens = Tokens(built.original_tokens, built.prompt_tokens, second, completion)
    notes = (*request.notes, *cuts, *found.notes)
    return replace(found, calls=calls, tokens=tokens, cost=cost, ms=ms, notes=notes)


def _name(model: Model | None) -> str:
    return model.name if model is not None else ""
