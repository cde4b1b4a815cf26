"""The store worker: requests become stores and prompts, the model's decisions become results.

Rules:
- A request and its queries stand in partitions of the same number, so they meet on the worker that holds
  the store.
- A store that is gone (crash, eviction, rebalance) is built again from the request record, read by its
  position.
- A template of hop 1 that can't be filled goes back to the model with its error, as hop 2. Where hop 2 gives no answer,
  the rows of hop 1's query are what there is.
- Hop 2 is the end: whatever a model says there, a result follows and never a third prompt.
- Every request ends in one result, or one dead letter where its record can't be decoded, or where its data or its
  record can't be reached for minutes (see `streams.patience`). Where a request can't be used (no data, too large, a
  store that kills its process), the result is `failed` and says why.
- Records may come twice: what this process has already answered or passed on, or any process has answered, is not done
  again. Another request under an id that was used is no repetition: it is a dead letter, whatever became of the first.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from hyve.diagnosis import Diagnosis, Tokens
from hyve.errors import HyveError
from schemas import Account, DiagnosisResult, Position, PromptReady, RequestMetrics, StoreCommand
from streams import metrics
from streams.answered import Answered
from streams.app import Incoming, Outgoing, Poison, check_place, now_ms
from streams.patience import patiently
from workers import claims, kafka
from workers.pool import Prepared, RecordUnusable, StoreFault, StoreMissing, StorePool
from workers.settings import Settings

log = logging.getLogger("hyve")

T = TypeVar("T")

ASKED: Final = 1
FOLLOWED: Final = 2
DONE: Final = 3

_SAID = 2_000
"""Characters of a model's text that a failed result shows."""


class Progress:
    """How far each request got in this process, and what tells it from others of its id; the oldest are forgotten."""

    def __init__(self, remember: int = 20_000) -> None:
        self._steps: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._remember = remember

    def of(self, request_id: str) -> int:
        """0 where nothing is known."""
        return self._steps.get(request_id, (0, ""))[0]

    def digest(self, request_id: str) -> str:
        """ "" where it is not known."""
        return self._steps.get(request_id, (0, ""))[1]

    def reached(self, request_id: str, step: int, digest: str = "") -> None:
        """Notes a step; steps only go forward."""
        before, known = self._steps.pop(request_id, (0, ""))
        self._steps[request_id] = max(step, before), known or digest
        if len(self._steps) > self._remember:
            self._steps.popitem(last=False)

    def forget(self, request_id: str) -> None:
        """The request may be asked again; another one of its id may not."""
        if digest := self.digest(request_id):
            self._steps[request_id] = 0, digest
        else:
            self._steps.pop(request_id, None)


class StoreStage:
    """`request` and `command` are the two agents' process functions; `pool` holds the stores."""

    def __init__(
        self,
        settings: Settings,
        pool: StorePool,
        read: Callable[[Position], bytes] | None = None,
        answered: Answered | None = None,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._read = read or (lambda position: kafka.read_one(settings, position))
        self._answered = answered
        self._progress = Progress()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._largest = settings.topics()["results"].max_bytes - 4096

    async def request(self, record: Incoming) -> Sequence[Outgoing]:
        """One request record -> its first prompt, or a failed result."""
        if not record.key:
            raise Poison("a request needs its request_id as the record's key")
        request_id = record.key.decode("utf-8", "replace")
        # Two records of one key may stand in one batch. The second waits: if the first turns out to be unusable, the
        # second is not its repetition and gets its own turn (or its own dead letter).
        turn = self._turns.setdefault(request_id, asyncio.Lock())
        async with turn:
            again = self._progress.of(request_id) >= ASKED or await self._has_result(request_id, record.timestamp)
            if used := self._used(request_id):
                self._check_same(request_id, used, await self._digest(request_id, record))
            if again:
                log.info("store: %s came again and is already on its way", request_id)
                return []
            self._progress.reached(request_id, ASKED)
            try:
                return await self._prepare(request_id, record)
            except BaseException:
                self._progress.forget(request_id)
                raise

    def _used(self, request_id: str) -> str:
        """The digest of the request that has this id; "" where none is known."""
        known = self._progress.digest(request_id)
        return known or ("" if self._answered is None else self._answered.digest(request_id))

    def _check_same(self, request_id: str, used: str, digest: str) -> None:
        if digest and used != digest:
            raise Poison(f"the id {request_id!r} was used before, by a request of other content: send it under another")

    async def _digest(self, request_id: str, record: Incoming) -> str:
        try:
            return await self._pool.digest(request_id, record.value, self._settings.prepare_timeout)
        except RecordUnusable as error:
            raise Poison(str(error)) from None
        except (HyveError, StoreFault) as error:
            log.error("store: %s: %s", request_id, error)
            return ""

    async def _prepare(self, request_id: str, record: Incoming) -> Sequence[Outgoing]:
        position = Position(topic=record.topic, partition=record.partition, offset=record.offset)
        began = time.perf_counter()
        try:
            prepared = await self._built(request_id, record.value)
        except RecordUnusable as error:
            raise Poison(str(error)) from None
        except StoreFault as error:
            log.error("store: %s: %s", request_id, error)
            return await self._unusable(request_id, record, f"the store failed on this data: {_last_line(error)}")
        except HyveError as error:
            return await self._unusable(request_id, record, str(error))
        if prepared.request_id != request_id:
            await self._pool.drop(prepared.request_id)
            raise Poison(f"the record's key {request_id!r} is not its request_id {prepared.request_id!r}")
        self._progress.reached(request_id, ASKED, prepared.digest)
        spent = (time.perf_counter() - began) * 1000
        log.info(
            "store: %s: %d tokens of data, prompt of %d, %.0f ms",
            request_id,
            prepared.original_tokens,
            prepared.prompt_tokens,
            spent,
        )
        prompt = PromptReady(
            request_id=request_id,
            hop=1,
            messages=prepared.messages,
            tools=prepared.tools,
            request=position,
            deadline=prepared.deadline,
            account=Account(
                original=prepared.original_tokens,
                prompt=prepared.prompt_tokens,
                created=prepared.created,
                ms={**prepared.ms, "prepare": spent},
            ),
            digest=prepared.digest,
        )
        return [Outgoing.of("prompts", request_id, prompt)]

    async def command(self, record: Incoming) -> Sequence[Outgoing]:
        """One decision of the model -> the result, or the only follow-up prompt."""
        try:
            command = StoreCommand.from_bytes(record.value)
        except ValueError as error:
            raise Poison(str(error)) from None
        check_place(command.request, self._settings.topic("requests"), record.partition)
        # A worker that died may have left two decisions of one request, which would both answer it side by side.
        turn = self._turns.setdefault(command.request_id, asyncio.Lock())
        async with turn:
            return await self._decided(command, record)

    async def _decided(self, command: StoreCommand, record: Incoming) -> Sequence[Outgoing]:
        since = min(record.timestamp, command.account.created or record.timestamp)
        answered = await self._has_result(command.request_id, since)
        if used := self._used(command.request_id):
            # A worker died between two requests of one id: the store may hold the other's data.
            self._check_same(command.request_id, used, command.digest)
        if answered:
            log.info("store: %s: hop %d came again and has its result", command.request_id, command.hop)
            return []
        step = self._progress.of(command.request_id)
        if step == DONE or (step == FOLLOWED and command.hop == 1):
            log.info("store: %s: hop %d came again and is already done", command.request_id, command.hop)
            return []
        follow_up = command.kind == "query" and command.hop == 1
        # A template may turn out not to fit: then it is followed up, too.
        open_ = follow_up or (command.kind == "template" and command.hop == 1)
        self._progress.reached(command.request_id, FOLLOWED if open_ else DONE)
        try:
            return await (self._follow_up(command) if follow_up else self._finish(command))
        except HyveError as error:
            return self._failed(command, _last_line(error))
        except StoreFault as error:
            log.error("store: %s: %s", command.request_id, error)
            return self._failed(command, _last_line(error))
        except BaseException:
            self._progress.forget(command.request_id)
            raise

    async def _has_result(self, request_id: str, created: int) -> bool:
        """Whether the request, made at `created` (epoch ms) or up to a deadline before, was answered by anybody."""
        since = created - int(self._settings.deadline * 1000)
        return self._answered is not None and await self._answered.has(request_id, since)

    async def _follow_up(self, command: StoreCommand) -> Sequence[Outgoing]:
        limit = self._settings.query_timeout
        began = time.perf_counter()
        done = await self._with_store(
            command, lambda: self._pool.follow_up(command, self._settings.follow_up_budget, limit)
        )
        ms = {**command.account.ms, "query": (time.perf_counter() - began) * 1000}
        prompt = PromptReady(
            request_id=command.request_id,
            hop=2,
            messages=done.messages,
            tools=(),
            asked=command.sql if command.kind == "query" else "",
            request=command.request,
            deadline=command.deadline,
            account=command.account.model_copy(update={"follow_up": done.tokens, "ms": ms}),
            digest=command.digest,
        )
        return [Outgoing.of("prompts", command.request_id, prompt)]

    async def _finish(self, command: StoreCommand) -> Sequence[Outgoing]:
        limit = self._settings.query_timeout
        began = time.perf_counter()
        try:
            diagnosis, question = await self._with_store(command, lambda: self._pool.finish(command, limit))
        except (HyveError, StoreFault) as error:
            if (
                command.kind == "template"
                and command.hop == 1
                and not isinstance(error, (kafka.RecordGone, StoreFault))
            ):
                log.info("store: %s: the template could not be filled", command.request_id)
                return await self._follow_up(command)
            if command.kind == "rules" or isinstance(error, kafka.RecordGone):
                raise
            reason = f"the model's answer could not be used: {_last_line(error)}"
            # What faults may be the query of hop 1, run again: the rules alone must not fault on it, too.
            asked = "" if isinstance(error, StoreFault) else command.asked
            fallback = command.model_copy(update={"kind": "rules", "reason": reason, "asked": asked})
            diagnosis, question = await self._with_store(fallback, lambda: self._pool.finish(fallback, limit))
        self._progress.reached(command.request_id, DONE)
        account = command.account
        now = now_ms()
        ms = {**account.ms, "finish": (time.perf_counter() - began) * 1000}
        if account.created:
            ms["total"] = float(max(0, now - account.created))
        diagnosis = replace(
            diagnosis,
            model="rules" if diagnosis.mode == "rules" else account.model or diagnosis.model,
            calls=account.calls,
            cost=account.cost,
            tokens=Tokens(account.original, account.prompt, account.follow_up, account.completion),
            ms=ms,
        )
        return self._result(
            DiagnosisResult.of(diagnosis, request_id=command.request_id, question=question, finished=now),
            command.digest,
        )

    async def _unusable(self, request_id: str, record: Incoming, why: str) -> Sequence[Outgoing]:
        """The failed result of data that can't be used. It is final, as every result is, where the request can be told
        from others of its id."""
        digest = await self._digest(request_id, record)
        if digest:
            self._progress.reached(request_id, DONE, digest)
        else:
            self._progress.forget(request_id)
        failed = DiagnosisResult.of(Diagnosis("failed", why), request_id=request_id, finished=now_ms())
        return self._result(failed, digest)

    def _failed(self, command: StoreCommand, why: str) -> Sequence[Outgoing]:
        """The failed result of a request whose prompt is out: what a model still says to it comes too late."""
        self._progress.reached(command.request_id, DONE)
        account, now = command.account, now_ms()
        mode = "query" if command.hop == 2 and command.kind != "rules" else command.kind
        said = f"what the model said, which could not be checked: {command.text.strip()[:_SAID]}"
        diagnosis = Diagnosis(
            "failed",
            why,
            mode=mode,
            model="rules" if mode == "rules" else account.model or "rules",
            calls=account.calls,
            cost=account.cost,
            tokens=Tokens(account.original, account.prompt, account.follow_up, account.completion),
            ms={**account.ms, **({"total": float(max(0, now - account.created))} if account.created else {})},
            notes=(said,) if command.text.strip() else (),
        )
        failed = DiagnosisResult.of(diagnosis, request_id=command.request_id, finished=now)
        return self._result(failed, command.digest)

    def _result(self, result: DiagnosisResult, digest: str) -> Sequence[Outgoing]:
        sent = Outgoing.of("results", result.request_id, result)
        if len(sent.value) > self._largest:
            # A chart of millions of points, say: a result that Kafka refuses would be no result at all.
            why = f"the answer of {len(sent.value)} bytes is above the limit of {self._largest} for one result"
            slim = {"status": "failed", "summary": why, "charts": (), "answer": "", "evidence": (), "claims": ()}
            result = result.model_copy(update={**slim, "root_causes": (), "unsupported": ()})
            sent = Outgoing.of("results", result.request_id, result)
        account = RequestMetrics(
            request_id=result.request_id,
            mode=result.mode,
            status=result.status,
            model=result.model,
            calls=result.calls,
            tokens=result.tokens,
            cost=result.cost,
            ms=result.ms,
            finished=result.finished,
        )
        metrics.finished(result)
        if result.status == "failed":
            log.warning("store: %s: failed: %s", result.request_id, result.summary)
        else:
            log.info("store: %s: %s by %s", result.request_id, result.status, result.model)
        return [
            replace(sent, headers={kafka.REQUEST: digest.encode()}) if digest else sent,
            Outgoing.of("metrics", result.request_id, account),
        ]

    async def _with_store(self, command: StoreCommand, call: Callable[[], Awaitable[T]]) -> T:
        """`call()`, after building the request's store again where it is gone."""
        for _ in range(3):
            try:
                return await call()
            except StoreMissing:
                log.info("store: %s: building the store again", command.request_id)
                prepared = await self._built(command.request_id, await self._record(command))
                if prepared.request_id != command.request_id:
                    await self._pool.drop(prepared.request_id)
                    raise Poison(f"the record that it names is of another request, {prepared.request_id!r}") from None
        raise HyveError("its store was lost three times before it could answer: raise HYVE_POOL_STORES or send less")

    async def _built(self, request_id: str, raw: bytes) -> Prepared:
        """The request's store and prompt. `Poison` where its data can't be reached for minutes."""
        try:
            return await patiently(
                lambda: self._pool.prepare(request_id, raw, self._settings.prepare_timeout),
                lambda error: isinstance(error, claims.Unreachable),
                f"store: {request_id}",
            )
        except claims.Unreachable as error:
            raise Poison(str(error)) from None

    async def _record(self, command: StoreCommand) -> bytes:
        """The request's record. `Poison` where Kafka doesn't give it for minutes."""
        try:
            return await patiently(
                lambda: asyncio.to_thread(self._read, command.request), _passing, f"store: {command.request_id}"
            )
        except HyveError as error:
            if not _passing(error):
                raise
            raise Poison(str(error)) from None


def _passing(error: HyveError) -> bool:
    """Whether the request's record may be read later."""
    return isinstance(error, kafka.RecordLate) or not isinstance(error, kafka.RecordGone)


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:500] if lines else type(error).__name__
