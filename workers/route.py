"""Which model is asked, and when: limits of each model, its circuit breaker, and the one that stands in for it.

Rules:
- A model has at most `concurrency` calls in flight, and within any 60 seconds no more calls and tokens begin than may
  in a minute, tries of a call counted. Tokens are counted as servers do: those of the prompt and the most that the
  answer may have. Limits hold for one process.
- A call that gets no turn within `patience` fails as "rate"; it was never sent.
- After `failures` calls in a row that the server failed (no capacity, errors, silence), each try of each request
  counted, the breaker is open: the model isn't asked for `rest` seconds, or for as long as its Retry-After says, not
  even by requests that wait for their next try. Then one call tries it; until that one's outcome is known all others
  are refused. That it opens and closes is told in the log.
- Where a model fails, the next one is asked, whatever the failure was: a wrong key, a reply that can't be read, or one
  that holds neither a text nor a call that can be used. The last one's reply is given as it is.
  If all fail, the error is the first model's, with the others' beside it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from hyve.errors import ModelError, ReplyError
from hyve.reply import Model, ModelReply, decide
from hyve.tokens import count_tokens
from workers.llm import ChatModel, OnCall
from workers.settings import Settings

log = logging.getLogger("hyve")

Messages = Sequence[Mapping[str, Any]]

_OUTPUT = 1_000
"""Tokens that an answer of no set limit is taken for."""

_WINDOW = 60.5
"""Seconds within which what begins is counted: calls take not equally long to the server that counts them again."""

_WAITING = 1.02
"""How much longer than the patience a call waits for a window to end, so that a minute's patience reaches it."""

_SERVERS_FAULT = frozenset({"rate", "server", "timeout", "connection"})
_LONGEST_REST = 3_600.0


class Resting(ModelError):
    """The model was not asked, as its breaker is open: the log was told when it opened."""


class Breaker:
    """Counts a server's failures in a row. `clock` gives seconds, `name` is the model's, for the log."""

    def __init__(
        self, failures: int, rest: float, clock: Callable[[], float] = time.monotonic, name: str = "the model"
    ) -> None:
        self._failures, self._rest, self._clock, self._name = failures, rest, clock, name
        self._met = 0
        self._until = 0.0
        self._trying = False

    @property
    def left(self) -> float:
        """Seconds for which the model isn't to be asked; 0 where it may be."""
        if self._met < self._failures:
            return 0.0
        left = max(0.0, self._until - self._clock())
        return left or (self._rest if self._trying else 0.0)

    def begin(self) -> None:
        """A call is made. Where the breaker was open, it is the one that tries whether the server is back."""
        self._trying = self._met >= self._failures

    def end(self, error: ModelError | None) -> None:
        """What came of a call. Errors that are not the server's fault show that it answers."""
        self._trying = False
        if error is None or error.kind not in _SERVERS_FAULT:
            if self._met >= self._failures:
                log.warning("llm: %s answers again and is asked as before", self._name)
            self._met = 0
            return
        self._met += 1
        why = f"failed {self._met} times in a row"
        if self._met < self._failures and error.retry_after is not None and error.retry_after >= self._rest:
            self._met, why = self._failures, "has no capacity"  # it says so itself
        if self._met >= self._failures:
            rest = self._rest if error.retry_after is None else max(self._rest, error.retry_after)
            rest = min(rest, _LONGEST_REST)
            if self._clock() >= self._until:  # else it rests already
                log.warning(
                    "llm: %s %s and is not asked for %.0f s (%s)",
                    self._name,
                    why,
                    rest,
                    error,
                )
            self._until = self._clock() + rest

    def again(self, error: ModelError | None) -> bool:
        """Whether a call that failed may be made once more. The failure counts here, unless it is the last: `end` is
        told of that one."""
        if error is None:
            return self.left <= 0
        if self._met + 1 >= self._failures:
            return False
        self._met += 1
        return True

    def abandon(self) -> None:
        """A call was given up by the caller: nothing is known of the server."""
        self._trying = False


class Pace:
    """What began in the last minute, in calls and in tokens: first come, first served. A limit of 0 is none.

    A bucket that refills would let through twice its size in the minute that it is emptied in.
    """

    def __init__(self, requests: int, tokens: int) -> None:
        self._requests, self.tokens = requests, tokens
        self._begun: deque[tuple[float, int]] = deque()
        self._spent = 0
        self._turn = asyncio.Lock()

    async def turn(self, tokens: int) -> None:
        """Returns when a call of so many tokens may begin. One of more than a minute's has a minute for itself."""
        async with self._turn:
            while (left := self.begin(tokens)) > 0:  # noqa: ASYNC110 - time has no events
                await asyncio.sleep(left)

    def begin(self, tokens: int) -> float:
        """Begins a call and returns 0, or says how many seconds to wait before the next try."""
        if not (self._requests or self.tokens):
            return 0.0
        tokens = min(tokens, self.tokens) if self.tokens else 0
        now = asyncio.get_running_loop().time()
        while self._begun and self._begun[0][0] + _WINDOW <= now:
            self._spent -= self._begun.popleft()[1]
        if (self._requests and len(self._begun) >= self._requests) or self._spent + tokens > self.tokens:
            return self._begun[0][0] + _WINDOW - now
        self._begun.append((now, tokens))
        self._spent += tokens
        return 0.0


class Limited:
    """A model behind its limits and its breaker.

    `max_tokens` are the longest answer's, 0 where that is not known; `patience` is in seconds, `prices` are of a
    million tokens asked and answered.
    """

    def __init__(
        self,
        model: Model,
        *,
        concurrency: int = 64,
        pace: Pace | None = None,
        max_tokens: int = 0,
        patience: float = 60.0,
        prices: tuple[float, float] | None = None,
        breaker: Breaker | None = None,
        on_call: OnCall = lambda _model, _outcome: None,
    ) -> None:
        self.name = model.name
        self._on_call = on_call
        self._model = model
        self._turns = asyncio.Semaphore(concurrency)
        self._pace = pace or Pace(0, 0)
        self._output = max_tokens or _OUTPUT
        self._patience = patience
        self._prices = prices
        self._breaker = breaker or Breaker(5, 30.0)

    async def complete(self, messages: Messages, tools: Messages) -> ModelReply:
        """The model's reply. ModelError at once where the breaker is open, or without a turn within the patience."""
        self._check()
        try:
            async with asyncio.timeout(self._patience):
                await self._turns.acquire()
        except TimeoutError:
            raise self._no_turn("HYVE_LLM_CONCURRENCY") from None
        try:
            await self._pass(messages, tools)
            self._check()  # it may have opened while this call waited
            return await self._ask(messages, tools)
        finally:
            self._turns.release()

    def _check(self) -> None:
        if (left := self._breaker.left) > 0:
            self._on_call(self.name, "resting")
            raise Resting(f"{self.name} failed and is not asked for another {left:.0f} s", "server", left)

    async def _pass(self, messages: Messages, tools: Messages) -> None:
        try:
            async with asyncio.timeout(self._patience * _WAITING):
                needed = _tokens((*messages, *tools)) + self._output if self._pace.tokens else 0
                _NEEDED.set(needed)
                await self._pace.turn(needed)
        except TimeoutError:
            raise self._no_turn("HYVE_LLM_REQUESTS_PER_MINUTE or HYVE_LLM_TOKENS_PER_MINUTE") from None

    async def _ask(self, messages: Messages, tools: Messages) -> ModelReply:
        self._breaker.begin()
        try:
            reply = await self._model.complete(messages, tools)
        except ModelError as error:
            self._breaker.end(error)
            self._on_call(self.name, error.kind)
            raise
        except BaseException:
            self._breaker.abandon()
            raise
        self._breaker.end(None)
        self._on_call(self.name, "ok")
        if self._prices is None or reply.cost is not None:
            return reply
        asked = _tokens((*messages, *tools)) if reply.prompt_tokens is None else reply.prompt_tokens
        return replace(reply, cost=(asked * self._prices[0] + reply.written * self._prices[1]) / 1e6)

    def _no_turn(self, names: str) -> ModelError:
        return ModelError(f"{self.name}: no turn within {self._patience:g} s; raise {names}", "rate")


_NEEDED: ContextVar[int] = ContextVar("needed")
"""Tokens of the call that is made in this task, for its further tries."""


def again(breaker: Breaker, pace: Pace) -> Callable[[ModelError | None], bool]:
    """Whether a call that failed may be made once more: not where its model rests, or its minute is used up."""

    def may(error: ModelError | None) -> bool:
        return breaker.again(error) and (error is not None or pace.begin(_NEEDED.get(0)) <= 0)

    return may


def _check(model: Model, reply: ModelReply) -> None:
    try:
        decide(reply)
    except ReplyError as error:
        raise ModelError(f"{model.name}: {error}", "reply") from None


def _tokens(parts: Iterable[Any]) -> int:
    return sum(count_tokens(str(part)) for part in parts)


class Route:
    """Models in the order in which they are asked, as one. `clients` are what `aclose` closes."""

    def __init__(self, models: Sequence[Model], clients: Sequence[ChatModel] = ()) -> None:
        self._models, self._clients = tuple(models), tuple(clients)
        self.name = self._models[0].name

    async def complete(self, messages: Messages, tools: Messages) -> ModelReply:
        """The reply of the first model that gives one. ModelError where none does."""
        met: list[ModelError] = []
        for model in self._models:
            try:
                reply = await model.complete(messages, tools)
                if model is not self._models[-1]:
                    _check(model, reply)
                return reply
            except ModelError as error:
                met.append(error)
                if len(met) < len(self._models):
                    level = logging.DEBUG if isinstance(error, Resting) else logging.WARNING
                    log.log(level, "llm: %s: the next model is asked", error)
        first, *others = met
        said = "".join(f"; then {error}" for error in others)
        raise ModelError(f"{first}{said}", first.kind, first.retry_after)

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        for client in self._clients:
            await client.aclose()


def configured(settings: Settings, on_call: OnCall = lambda _model, _outcome: None) -> Route | None:
    """The models that the settings name, or None. ModelError where an address or a key can't be used."""
    if not settings.llm_base_url:
        return None
    key = settings.llm_api_key.get_secret_value()
    breakers = [
        Breaker(settings.llm_breaker_failures, settings.llm_breaker_rest, name=name)
        for name in (settings.llm_model, settings.llm_fallback_model)
    ]
    paces = [Pace(settings.llm_requests_per_minute, settings.llm_tokens_per_minute) for _ in breakers]
    first = ChatModel(
        settings.llm_base_url,
        settings.llm_model,
        key,
        api=settings.llm_api,
        timeout=settings.llm_timeout,
        max_tokens=settings.llm_max_tokens,
        on_call=on_call,
        again=again(breakers[0], paces[0]),
    )
    clients, models = [first], [_limited(first, settings, settings.llm_prices, on_call, breakers[0], paces[0])]
    if settings.llm_fallback_model:
        same = not settings.llm_fallback_base_url
        second = ChatModel(
            settings.llm_base_url if same else settings.llm_fallback_base_url,
            settings.llm_fallback_model,
            settings.llm_fallback_api_key.get_secret_value() or (key if same else ""),
            api=settings.llm_fallback_api or (settings.llm_api if same else ""),
            timeout=settings.llm_timeout,
            max_tokens=settings.llm_max_tokens,
            settings="HYVE_LLM_FALLBACK",
            on_call=on_call,
            again=again(breakers[1], paces[1]),
        )
        clients.append(second)
        models.append(_limited(second, settings, settings.llm_fallback_prices, on_call, breakers[1], paces[1]))
    return Route(models, clients)


def _limited(
    model: ChatModel, settings: Settings, prices: str, on_call: OnCall, breaker: Breaker, pace: Pace
) -> Limited:
    asked, _, answered = prices.partition("/")
    return Limited(
        model,
        concurrency=settings.llm_concurrency,
        pace=pace,
        max_tokens=model.longest_answer,
        patience=settings.llm_timeout,
        prices=(float(asked), float(answered)) if prices else None,
        breaker=breaker,
        on_call=on_call,
    )
