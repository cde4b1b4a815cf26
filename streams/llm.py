"""The LLM worker: prompts go to the model, its decision goes back to the store of the request.

Rules:
- The answer to every prompt is one `StoreCommand` in the partition of the request record. Where no model
  is configured, or the model fails, or its reply holds nothing usable, the command asks for the rules
  analyst and says why: a model that is down delays no diagnosis.
- No call outlives the request's deadline. A model bounds itself (its turn and its call); what is waited for here beyond
  that is only a client that doesn't.
- Hop 2 offers no tools; what comes back is passed on as hop 2, and the store worker ends the request. The query of hop
  1 goes along (`sql`, or `text` beside another query), so that its rows are not lost where no answer came.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from hyve.diagnosis import CUT
from hyve.errors import HyveError
from hyve.reply import Decision, Direct, Model, ModelReply, Query, decide
from schemas import Fill, PromptReady, StoreCommand, ToolCall
from streams.app import Incoming, Outgoing, Poison, check_place, now_ms
from workers.settings import Settings

log = logging.getLogger("hyve")

NO_MODEL: Final = "no model is configured (set HYVE_LLM_BASE_URL, HYVE_LLM_MODEL and HYVE_LLM_API_KEY)"


class LlmStage:
    """`process` turns one prompt into one store command. Without a `model` the rules analyst answers."""

    def __init__(self, settings: Settings, model: Model | None) -> None:
        self._model = model
        self._patience = settings.llm_patience
        self._requests = settings.topic("requests")

    async def process(self, record: Incoming) -> Sequence[Outgoing]:
        """Asks the model once. `Poison` only where the record is no prompt."""
        try:
            prompt = PromptReady.from_bytes(record.value)
        except ValueError as error:
            raise Poison(str(error)) from None
        check_place(prompt.request, self._requests)  # the answer goes to its partition
        command = await self._command(prompt)
        quiet = logging.INFO if self._model is None else logging.WARNING  # without a model it is as it was set up
        level = quiet if command.reason else logging.DEBUG
        log.log(level, "llm: %s: hop %d: %s", prompt.request_id, prompt.hop, command.reason or command.kind)
        return [Outgoing.of("queries", prompt.request_id, command, prompt.request.partition)]

    async def _command(self, prompt: PromptReady) -> StoreCommand:
        model = self._model
        if model is None:
            return _rules(prompt, NO_MODEL)
        limit = self._patience
        if prompt.deadline is not None:
            limit = min(limit, (prompt.deadline - now_ms()) / 1000)
        if limit <= 0:
            return _rules(prompt, "the request's deadline passed before the model could be asked")
        began = time.perf_counter()
        try:
            reply = await asyncio.wait_for(model.complete(prompt.messages, prompt.tools), limit)
        except TimeoutError:
            return _rules(_timed(prompt, began), f"the model {model.name} did not answer within {limit:.0f} s")
        except HyveError as error:
            return _rules(_timed(prompt, began), str(error))
        except Exception as error:
            log.exception("llm: %s: the model client failed", prompt.request_id)
            return _rules(_timed(prompt, began), f"the model client failed: {type(error).__name__}")
        prompt = _billed(_timed(prompt, began), reply, model.name)
        try:
            return _from(prompt, decide(reply), reply.cut)
        except HyveError as error:
            cut = f"; {CUT}" if reply.cut else ""
            return _rules(prompt, f"the model's reply could not be used: {error}{cut}")


def _timed(prompt: PromptReady, began: float) -> PromptReady:
    """The prompt with the time since `began` in its account, which a model that fails takes as well."""
    account, stage = prompt.account, "model" if prompt.hop == 1 else "model_2"
    ms = {**account.ms, stage: (time.perf_counter() - began) * 1000}
    return prompt.model_copy(update={"account": account.model_copy(update={"ms": ms})})


def _billed(prompt: PromptReady, reply: ModelReply, name: str) -> PromptReady:
    """The prompt with the call added to its account."""
    account = prompt.account
    update: dict[str, Any] = {
        "completion": account.completion + reply.written,
        "calls": account.calls + 1,
        "model": reply.model or name,
        "cost": account.cost if reply.cost is None else (account.cost or 0.0) + reply.cost,
    }
    return prompt.model_copy(update={"account": account.model_copy(update=update)})


def _from(prompt: PromptReady, decision: Decision, cut: bool) -> StoreCommand:
    base: dict[str, Any] = {
        "request_id": prompt.request_id,
        "hop": prompt.hop,
        "asked": prompt.asked,
        "cut": cut,
        "request": prompt.request,
        "deadline": prompt.deadline,
        "account": prompt.account,
        "digest": prompt.digest,
    }
    if isinstance(decision, Direct):
        return StoreCommand(kind="direct", text=decision.text, **base)
    call = None if decision.call is None else ToolCall.model_validate(decision.call)
    if isinstance(decision, Query):
        return StoreCommand(kind="query", sql=decision.sql, call=call, **base)
    fills = tuple(Fill.model_validate(fill) for fill in decision.fills)
    return StoreCommand(kind="template", template=decision.template, fills=fills, call=call, text=decision.text, **base)


def _rules(prompt: PromptReady, reason: str) -> StoreCommand:
    return StoreCommand(
        request_id=prompt.request_id,
        hop=prompt.hop,
        kind="rules",
        reason=reason[:2000],
        asked=prompt.asked,
        request=prompt.request,
        deadline=prompt.deadline,
        account=prompt.account,
        digest=prompt.digest,
    )
