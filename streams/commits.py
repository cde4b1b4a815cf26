"""A Faust consumer that commits past no record of ours that was not acknowledged.

Faust takes the lowest acknowledged offset for the start of what is done: where nothing was committed yet, or one record
lies between, it commits past records that it was given and left out. It does leave some out: those that come while a
group shares its partitions anew reach no agent, and are read again later, unless the process dies before.

Rule: nothing is committed until the record at the last committed offset is acknowledged, or, without a commit, the
first one that was fetched. That needs topics whose offsets have no holes: those that HYVE writes. The raw topics are
others', may be compacted or transactional, and are left to Faust.

Faust forgets what was acknowledged and committed of partitions that move, and only then waits for the records in hand:
their last commit never came, and each of them was done once more by whoever got its partition, in the same group.

Rule: partitions are given up when the records in hand are done and committed, where the worker is told to stop, too.

Faust hands out records one after the other and waits where an agent's queue is full: a backlog of requests held up the
commands that would have ended those that were begun, until their stores had to give way to newer ones.

Rule: of the topics that come `last`, no more is taken while half of its agent's queue is full; others are read on.

What Faust does for each record beside handing it on cost as much as our work on it, so some of it is left out:
- Four tasks that race for every record. An agent's queue with room takes it at once; only a full one is waited for in
  such a race, which a rebalance can end.
- A thread and a loop for the client, and a queue of calls between the two, which makes a dozen tasks of one poll.
- Statistics (`Monitor`), and the search for silent streams in them: see `verify_event_path`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, MutableMapping
from functools import partial
from typing import Any, cast

import faust
from faust.sensors.monitor import Monitor
from faust.transport.drivers import aiokafka
from faust.types import TP
from mode.threads import ServiceThread
from mode.utils.futures import maybe_async

from streams import metrics
from streams.connections import paced
from workers.kafka import ISOLATION

LOOK = 0.1
"""Seconds after which a topic that was left out is looked at again."""


class _Task:
    """Runs in a task of the loop what Faust would run in a thread."""

    def __init__(self, service: ServiceThread) -> None:
        self._service = service
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._service._serve()
        except Exception:  # told, and the application's end, by then
            self._service.set_shutdown()

    def stop(self) -> None:
        """Nothing: who calls has waited for the end."""


class _Client(aiokafka.AIOKafkaConsumerThread):
    """The client of a consumer, in the same loop as the application. Faust gives it a thread and a loop of its own, and
    each poll, commit and answer is handed from one to the other: that took longer than what they do."""

    def __init__(self, consumer: Any, *, loop: asyncio.AbstractEventLoop, **named: Any) -> None:
        super().__init__(consumer, loop=loop, thread_loop=loop, Worker=cast(Any, _Task), **named)

    def _create_worker_consumer(self, transport: Any) -> Any:
        # Faust asks for it only where it has transactions of its own.
        client: Any = super()._create_worker_consumer(transport)
        client._isolation_level = ISOLATION
        paced(client._client)
        return client

    async def call_thread(self, fun: Any, *args: Any, **kwargs: Any) -> Any:
        return await maybe_async(fun(*args, **kwargs))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        await self.consumer.on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        await self.consumer.on_partitions_assigned(assigned, generation_id)

    async def _gather_remaining_tasks(self) -> None:
        """Nothing: they are the application's."""


class Consumer(aiokafka.Consumer):
    """Knows the first offset that came of each partition since the last seek."""

    def __init__(self, *given: Any, without_holes: frozenset[str], last: frozenset[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self._without_holes = without_holes
        self._last = last
        self._first: dict[TP, int] = {}
        self._giving_up = False

    def _new_consumer_thread(self) -> _Client:
        return _Client(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's
        if self._last and active_partitions:
            busy = {topic for topic in self._last if self._waits(topic)}
            if busy and (free := {tp for tp in active_partitions if tp.topic not in busy}):
                active_partitions, timeout = free, min(timeout, LOOK)
        return await self._thread.getmany(active_partitions, timeout)

    async def _drain_messages(self, fetcher: Any) -> None:
        """Hands on what is polled until `fetcher` or the consumer is stopped."""
        stopped: tuple[type[BaseException], ...] = (*self.consumer_stopped_errors, asyncio.CancelledError)
        try:
            while not (self.should_stop or fetcher.should_stop):
                await asyncio.sleep(0)
                async for tp, message in self.getmany(timeout=1.0):
                    await self._hand_on(tp, message)
        except stopped:
            if not self.app.should_stop:
                raise
        except Exception:
            self.log.exception("the consumer's loop failed")
            raise

    async def _hand_on(self, tp: TP, message: Any) -> None:
        read = self._read_offset[tp]
        if read is not None and message.offset < read:
            return  # it came before
        if read is not None and message.offset - read > 1 and self.app.topics.acks_enabled_for(message.topic):
            await self._add_gap(tp, read + 1, message.offset)
        flows = self.flow_active and self.app.flow_control.is_active()
        if flows and not any(channel.queue.full() for channel in self._channels(tp.topic)):
            await self.callback(message)
        else:
            await self.wait_first(self.callback(message), self.suspend_flow.wait())
        self._read_offset[tp] = message.offset

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing. Faust looks for streams that got nothing or committed nothing for five minutes, and warns of long
        work and of records that wait for one before them. Whether something gets done is told by `streams.health`,
        which knows what is in hand and asks the broker what is left to do."""

    def _waits(self, topic: str) -> bool:
        """Whether so many records of `topic` lie in front of an agent that a poll might not fit."""
        return any(2 * channel.queue.qsize() > channel.queue.maxsize for channel in self._channels(topic))

    def _channels(self, topic: str) -> Collection[Any]:
        """What holds the queues of agents that read `topic`."""
        topics: Any = self.app.topics
        found: Collection[Any] = topics._topic_name_index.get(topic, ())
        return found

    def committed_offset(self, tp: TP) -> int | None:
        """The offset below which all is done, as the group has told Kafka; None where it has told nothing yet."""
        return self._committed_offset[tp]

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Returns when the records in hand are done and committed, or the group waits no longer."""
        self._active_partitions.difference_update(revoked)
        self._paused_partitions.difference_update(revoked)
        self._giving_up = True
        try:
            stops = self.app.should_stop
            if stops:  # the application waits only for its own end, and would close the client at once
                await self.wait_empty()
            else:
                await self._on_partitions_revoked(revoked)
            # A commit that finds another under way waits for that one, which may know less.
            await self.commit()
            if stops:
                await self._on_partitions_revoked(revoked)
        finally:
            self._giving_up = False
            books: tuple[MutableMapping[TP, Any], ...] = (
                self._gap,
                self._acked,
                self._acked_index,
                self._read_offset,
                self._committed_offset,
                self._first,
            )
            for tp in revoked:
                for book in books:
                    book.pop(tp, None)

    async def perform_seek(self) -> None:
        if self._giving_up:
            return  # what is polled then is left to who gets the partition; the books are those of what is in hand
        self._first.clear()
        await super().perform_seek()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - Faust's signature
        async for tp, message in super().getmany(timeout):
            self._first.setdefault(tp, message.offset)
            yield tp, message

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        did: bool = await super()._commit_offsets(offsets, start_new_transaction)
        if did:
            metrics.COMMITS.inc()
        return did

    def _new_offset(self, tp: TP) -> int | None:
        acked = self._acked[tp]
        if acked and tp.topic in self._without_holes:
            # Records before the first that came are gone by retention: the first counts then.
            next_ = max(self._committed_offset[tp] or 0, self._first.get(tp, 0))
            if min(acked) > next_:
                return None
        found: int | None = super()._new_offset(tp)
        return found


class Producer(aiokafka.Producer):
    """Pauses between attempts to reach a broker."""

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        client: Any = super()._new_producer(transactional_id)
        paced(client.client)
        return client


class Uncounted(Monitor):
    """Faust's statistics without those of each record: metrics are `streams.metrics`'."""

    def on_message_in(self, *_: Any) -> None: ...

    def on_message_out(self, *_: Any) -> None: ...

    def on_stream_event_in(self, *_: Any) -> None: ...

    def on_stream_event_out(self, *_: Any) -> None: ...

    def on_send_initiated(self, *_: Any) -> None: ...

    def on_send_completed(self, *_: Any) -> None: ...

    def on_send_error(self, *_: Any) -> None: ...

    def track_tp_end_offset(self, *_: Any) -> None: ...


class App(faust.App):
    """A Faust application with such a consumer. `without_holes` are the full names of the topics that HYVE writes,
    `last` those whose records wait for others. `first` is awaited before the group is joined: whoever gets partitions
    must be able to work on them."""

    first: Callable[[], Awaitable[None]] | None = None

    def __init__(
        self, *given: Any, without_holes: frozenset[str], last: frozenset[str] = frozenset(), **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._without_holes, self._last = without_holes, last

    async def on_first_start(self) -> None:
        await super().on_first_start()
        if self.first is not None:
            await self.first()

    def _new_transport(self) -> Any:
        transport: Any = super()._new_transport()
        transport.Producer = Producer
        transport.Consumer = partial(Consumer, without_holes=self._without_holes, last=self._last)
        return transport
