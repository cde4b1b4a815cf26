"""Dead letters by hand: list them, look at one, send them again.

Rules:
- A letter is named by where it stands: PARTITION:OFFSET on the dead letters' topic.
- Replaying sends the original bytes under the original key to the original topic, with headers that name the letter
  (`hyve-replayed`), the place where the record first stood, and how often it has failed. Only a deadline that has
  passed is set anew, or the record would fail again at once. A record of a request goes to its old partition, where
  the stage looks for it; all others go where their key leads.
- A raw record keeps its Kafka timestamp: it is the time of events that have none of their own. Other topics' records
  get a new one, as retention counts from it.
- The letter stays until its topic's retention takes it. That it was replayed is a note behind it on the same topic: a
  `DeadLetter` without a record, whose `replayed` is PARTITION:OFFSET (once `{"replayed": PARTITION:OFFSET}` and nothing
  else). Such letters are left out where all are replayed.
- Sending one twice does no harm: results have deterministic ids, and telemetry is told by where its record first stood.
- What was posted to the webhook has no topic: it can't be replayed, only posted again.
- A record that was replayed and failed again has several letters: of them all, replaying sends the newest.
- A letter that can't be sent (its topic is gone, it is damaged) holds up no other: it is named at the end.
- What a letter holds is anybody's: it is printed with its control characters visible.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hyve.errors import HyveError, InputError
from schemas import DeadLetter, Position
from streams.report import clean
from workers import kafka
from workers.kafka import ATTEMPTS, ORIGIN
from workers.settings import Settings

SHOWN = 4_000
"""Characters of a record that `show` prints."""

_DAMAGED = "this dead letter is damaged: the record that it holds is no base64"
_AT_ONCE = 100
_NAMED = 10
_READ_SECONDS, _IDLE_SECONDS = 60.0, 3.0
_WITH_PARTITION = ("requests", "queries")


@dataclass(frozen=True)
class Letter:
    """A dead letter and where it stands."""

    partition: int
    offset: int
    record: DeadLetter
    replayed: bool | None = None
    """None where nobody looked."""

    @property
    def id(self) -> str:
        """How the command line names it."""
        return f"{self.partition}:{self.offset}"

    @property
    def value(self) -> bytes:
        """The original record's bytes."""
        return _bytes(self.record.value)

    @property
    def key(self) -> bytes | None:
        """The original record's key."""
        return None if self.record.key is None else _bytes(self.record.key)

    @property
    def headers(self) -> dict[str, bytes]:
        """The original record's headers."""
        return {name: _bytes(value) for name, value in self.record.headers.items()}

    @cached_property
    def damaged(self) -> bool:
        """Whether the original record can't be had: `value`, `key` and `headers` may raise then."""
        try:
            _ = self.value, self.key, self.headers
        except HyveError:
            return True
        return False

    @property
    def origin(self) -> str:
        """Where the record first stood, before it was replayed: TOPIC/PARTITION/OFFSET."""
        record = self.record
        first = b"" if self.damaged else self.headers.get(ORIGIN, b"")
        return first.decode("utf-8", "replace") or f"{record.topic}/{record.partition}/{record.offset}"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise HyveError(_DAMAGED) from None


def find(
    settings: Settings, hours: float, *, stage: str = "", topic: str = "", now: float | None = None
) -> list[Letter]:
    """The letters of the last `hours`, the oldest of each partition first; only those of `stage` and `topic` if given.

    `topic` may be a full name or one of the table of topics. What is no dead letter is passed over.
    """
    sent: set[str] = set()
    found = list(_scan(settings, hours, stage, topic, now, sent))
    return [replace(letter, replayed=letter.id in sent) for letter in found]


def replay_all(
    settings: Settings, hours: float, *, stage: str = "", topic: str = "", again: bool = False
) -> tuple[int, int]:
    """Replays what `find` finds, each record once, but for letters that were replayed (unless `again`) and those of the
    webhook; how many were sent, and how many left. The topic is read twice, so that few letters are held at a time."""
    sent: set[str] = set()
    newest: dict[str, tuple[int, int, str]] = {}
    now = time.time()
    for letter in _scan(settings, hours, stage, topic, now, sent):
        place = (letter.record.failed, letter.offset, letter.id)
        newest[letter.origin] = max(place, newest.get(letter.origin, place))
    chosen = {name for _, _, name in newest.values()} - (set() if again else sent)
    left = 0

    def those() -> Iterator[Letter]:
        nonlocal left
        for letter in _scan(settings, hours, stage, topic, now, set()):
            if letter.record.topic and letter.id in chosen:
                yield letter
            else:
                left += 1

    return replay(settings, those()), left


def _scan(
    settings: Settings, hours: float, stage: str, topic: str, now: float | None, sent: set[str]
) -> Iterator[Letter]:
    """Reads once; the names of letters that were replayed are put into `sent` as they are met."""
    until = int((time.time() if now is None else now) * 1000)
    since = max(0, until - int(hours * 3_600_000))
    names = {topic, settings.topic(topic)} if topic else set()
    deadline = time.monotonic() + _READ_SECONDS
    # Somebody waits at a terminal: a broker that is slow to answer must not look like one without letters.
    settings = settings.model_copy(update={"collect_idle": max(_IDLE_SECONDS, settings.collect_idle)})
    with kafka.RangeReader(settings, settings.topic("deadletters"), since, until, deadline) as reader:
        for stored in reader.read(range(reader.partitions)):
            if note := _noted(stored.value):
                sent.add(note)
                continue
            try:
                record = DeadLetter.from_bytes(stored.value)
            except ValueError:
                continue
            if record.replayed:
                sent.add(record.replayed)
                continue
            if (not stage or record.stage == stage) and (not names or record.topic in names):
                yield Letter(stored.partition, stored.offset, record)
        if reader.timed_out:
            raise HyveError(f"the dead letters could not be read within {_READ_SECONDS:g} s: ask for fewer --hours")


_NOTE = b'{"replayed":"'
"""How notes began before they were dead letters by their fields."""


def _noted(value: bytes) -> str:
    """The name of the letter that a note of that kind says was replayed, "" where the record is none."""
    return value[len(_NOTE) : -2].decode("utf-8", "replace") if value.startswith(_NOTE) and len(value) < 100 else ""


def get(settings: Settings, name: str) -> Letter:
    """The letter called PARTITION:OFFSET."""
    partition, _, offset = name.partition(":")
    known = partition.isdecimal() and offset.isdecimal() and len(name) < 40
    if not known or int(partition) >= 1 << 31 or int(offset) >= 1 << 63:
        raise InputError(f"{name!r} names no dead letter: give PARTITION:OFFSET, as `hyve deadletters list` prints it")
    position = Position(topic=settings.topic("deadletters"), partition=int(partition), offset=int(offset))
    if position.partition >= kafka.partitions(settings, position.topic):
        raise InputError(f"{position.topic} has no partition {position.partition}")
    try:
        record = DeadLetter.from_bytes(kafka.read_one(settings, position, timeout=10.0))
    except kafka.RecordEmpty:
        raise HyveError(f"there is no dead letter {name}: its record is empty") from None
    except kafka.RecordGone:
        raise HyveError(
            f"there is no dead letter {name}: none was written there yet, or its retention passed"
        ) from None
    except ValueError as error:
        raise HyveError(f"the record at {name} is no dead letter: {error}") from None
    if record.replayed:
        raise HyveError(f"the record at {name} is no dead letter: it notes that {clean(record.replayed)} was replayed")
    return Letter(position.partition, position.offset, record)


def replay(settings: Settings, letters: Iterable[Letter]) -> int:
    """Sends the letters' records again, and returns how many; each is delivered and noted when this returns.

    HyveError that names the letters which could not be sent, when all others are; where Kafka is silent, at once.
    """
    sender = _Sender(settings, kafka.topic_names(settings))
    with kafka.producing(settings) as producer:
        try:
            for letter in letters:
                sender.send(producer, letter)
        finally:
            sender.note(producer)
    if sender.refused:
        few = "; ".join(sender.refused[:_NAMED])
        more = f"; and {len(sender.refused) - _NAMED} more" if len(sender.refused) > _NAMED else ""
        raise HyveError(f"{sender.sent} sent, {len(sender.refused)} not: {few}{more}")
    return sender.sent


@dataclass
class _Sender:
    """Sends letters' records and notes those that are there. `refused` says why others are not."""

    settings: Settings
    topics: set[str]
    sent: int = 0
    refused: list[str] = field(default_factory=list)
    under_way: list[tuple[Letter, Any]] = field(default_factory=list)
    """Without the records: they may be large, and the producer has them."""

    def send(self, producer: Any, letter: Letter) -> None:
        record = letter.record
        with_partition = {self.settings.topic(name) for name in _WITH_PARTITION}
        ours = {self.settings.topic(name) for name in self.settings.topics() if name != "raw"}
        if not record.topic:
            self._refuse(
                letter,
                "it was posted to the webhook and stood on no topic: "
                f"`hyve deadletters show {letter.id} --raw` prints it, to be mended and posted again",
            )
            return
        if record.topic not in self.topics:
            self._refuse(letter, f"there is no topic {clean(record.topic[:200])} any more")
            return
        try:
            future = producer.send(
                record.topic,
                key=letter.key,
                value=renewed(letter.value, int((time.time() + self.settings.deadline) * 1000)),
                partition=record.partition if record.topic in with_partition else None,
                headers=_headers(letter),
                timestamp_ms=record.timestamp if record.topic not in ours and record.timestamp > 0 else None,
            )
        except KafkaTimeoutError as error:
            raise HyveError(f"{self.sent} sent; letter {letter.id} was not: {kafka.said(error)}") from None
        except (HyveError, KafkaError, ValueError, AssertionError) as error:
            self._refuse(letter, kafka.said(error))
            return
        slim = replace(letter, record=record.model_copy(update={"value": "", "headers": {}}))
        self.under_way.append((slim, future))
        if len(self.under_way) >= _AT_ONCE:
            self.note(producer)

    def note(self, producer: Any) -> None:
        """Waits for the records under way, and notes those that are delivered."""
        under_way, self.under_way = self.under_way, []
        notes = []
        try:
            for letter, future in under_way:
                try:
                    future.get(60)
                except KafkaTimeoutError as error:
                    raise HyveError(f"{self.sent} sent; letter {letter.id} was not: {kafka.said(error)}") from None
                except KafkaError as error:
                    self._refuse(letter, kafka.said(error))
                    continue
                self.sent += 1
                note = _note(letter).to_bytes()
                topic = self.settings.topic("deadletters")
                notes.append(producer.send(topic, note, key=letter.key, partition=letter.partition))
        finally:
            for noted in notes:
                noted.get(60)

    def _refuse(self, letter: Letter, why: str) -> None:
        self.refused.append(f"letter {letter.id}: {why}")


def _note(letter: Letter) -> DeadLetter:
    """Without a topic, so that one that doesn't know notes replays it no more than what was posted to the webhook."""
    return DeadLetter(
        value="",
        key=letter.record.key,
        topic="",
        partition=-1,
        offset=-1,
        stage="replay",
        error=f"no dead letter: a note that {letter.id} was replayed",
        attempts=0,
        failed=int(time.time() * 1000),
        replayed=letter.id,
    )


def _headers(letter: Letter) -> list[tuple[str, bytes]]:
    headers = {**letter.headers, ORIGIN: letter.origin.encode("utf-8", "replace")}
    headers[ATTEMPTS] = str(letter.record.attempts).encode()
    headers["hyve-replayed"] = letter.id.encode()
    return list(headers.items())


def renewed(value: bytes, deadline: int) -> bytes:
    """A record whose deadline (epoch ms) has passed with `deadline` in its place; all others as they are."""
    try:
        record = json.loads(value)
    except (ValueError, RecursionError):
        return value
    before = record.get("deadline") if isinstance(record, dict) else None
    if type(before) is not int or before > time.time() * 1000:
        return value
    return json.dumps({**record, "deadline": deadline}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def described(letter: Letter) -> dict[str, Any]:
    """A letter for programs: its fields, its name, and its record as text where it is text."""
    fields = letter.record.model_dump(mode="json", exclude={"value", "key", "replayed"})
    key = None if letter.damaged else letter.key
    return {
        "id": letter.id,
        **({} if letter.replayed is None else {"replayed": letter.replayed}),
        **fields,
        "key": None if key is None else key.decode("utf-8", "backslashreplace"),
        "value": None if letter.damaged else letter.value.decode("utf-8", "backslashreplace"),
        **({"damaged": True} if letter.damaged else {}),
    }


def table(letters: Sequence[Letter]) -> Table:
    """One line a letter, the newest last."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("letter", "failed (UTC)", "stage", "record"):
        made.add_column(name, no_wrap=True)
    made.add_column("bytes", justify="right", no_wrap=True)
    made.add_column("error", overflow="fold")
    for letter in letters:
        record = letter.record
        error = f"(replayed) {record.error}" if letter.replayed else record.error
        size = "damaged" if letter.damaged else f"{len(letter.value):,}"
        cells = (letter.id, _when(record.failed), record.stage, _place(record), size, error)
        made.add_row(*(Text(clean(cell)) for cell in cells))
    return made


def listed(letters: Sequence[Letter]) -> str:
    """The table as lines of text, for what is no terminal: as wide as it needs to be, nothing cut or wrapped."""
    console = Console(file=io.StringIO(), width=1 << 16, color_system=None)
    with console.capture() as printed:
        console.print(table(letters))
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def show(letter: Letter, console: Console) -> None:
    """A letter as lines of text, and its record below them."""
    record = letter.record
    key = None if letter.damaged else letter.key
    lines = {
        "letter": letter.id,
        "failed": _when(record.failed),
        "stage": record.stage,
        "error": record.error,
        "attempts": str(record.attempts),
        "record": _place(record),
        "written": _when(record.timestamp),
        "key": "none" if key is None else key.decode("utf-8", "backslashreplace"),
    }
    for name, text in lines.items():
        console.print(Text(f"{name:<9}", style="bold") + Text(clean(text)), soft_wrap=True)
    console.print()
    if letter.damaged:
        console.print(Text(_DAMAGED, "dim"))
        return
    text = letter.value.decode("utf-8", "backslashreplace")
    console.print(Text("\n".join(map(clean, text[:SHOWN].split("\n")))), soft_wrap=True)
    if len(text) > SHOWN:
        console.print(Text(f"... ({len(text) - SHOWN:,} more characters; --raw prints the record as it came)", "dim"))


def _place(record: DeadLetter) -> str:
    return f"{record.topic}[{record.partition}]@{record.offset}" if record.topic else "posted to the webhook"


def _when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if 0 < ms < 1 << 42 else "unknown"
