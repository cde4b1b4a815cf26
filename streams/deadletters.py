"""Dead letters by hand: list them, look at one, send them again.

Rules:
- A letter is named by where it stands: PARTITION:OFFSET on the dead letters' topic.
- Replaying sends the original bytes under the original key to the original topic, with headers that name the letter
  (`hyve-replayed`), the place where the record first stood, and how often it has failed. Only a deadline that has
  passed is set anew, or the record would fail again at once. A record of a request goes to its old partition, where
  the stage looks for it; all others go where their key leads.
- The letter stays until its topic's retention takes it. That it was replayed is a note behind it on the same topic, a
  record that is no letter: `{"replayed": PARTITION:OFFSET}`. Such letters are left out where all are replayed.
- Sending one twice does no harm: results have deterministic ids, and telemetry is told by where its record first stood.
- What was posted to the webhook has no topic: it can't be replayed, only posted again.
- What a letter holds is anybody's: it is printed with its control characters visible.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

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


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise HyveError("this dead letter is damaged: what it holds is no base64") from None


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
    """Replays what `find` finds, but for letters that were replayed (unless `again`) and those of the webhook; how many
    were sent, and how many left. The topic is read twice, so that no more than a letter is held at a time."""
    sent: set[str] = set()
    now = time.time()
    for _ in () if again else _scan(settings, hours, stage, topic, now, sent):
        pass
    left = 0

    def chosen() -> Iterator[Letter]:
        nonlocal left
        for letter in _scan(settings, hours, stage, topic, now, set()):
            if letter.id in sent or not letter.record.topic:
                left += 1
            else:
                yield letter

    return replay(settings, chosen()), left


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
            if (not stage or record.stage == stage) and (not names or record.topic in names):
                yield Letter(stored.partition, stored.offset, record)
        if reader.timed_out:
            raise HyveError(f"the dead letters could not be read within {_READ_SECONDS:g} s: ask for fewer --hours")


_NOTE = b'{"replayed":"'


def _noted(value: bytes) -> str:
    """The name of the letter that a note says was replayed, "" where the record is no note."""
    return value[len(_NOTE) : -2].decode("utf-8", "replace") if value.startswith(_NOTE) and len(value) < 100 else ""


def get(settings: Settings, name: str) -> Letter:
    """The letter called PARTITION:OFFSET."""
    partition, _, offset = name.partition(":")
    if not (partition.isdecimal() and offset.isdecimal() and len(name) < 30):
        raise InputError(f"{name!r} names no dead letter: give PARTITION:OFFSET, as `hyve deadletters list` prints it")
    position = Position(topic=settings.topic("deadletters"), partition=int(partition), offset=int(offset))
    if position.partition >= kafka.partitions(settings, position.topic):
        raise InputError(f"{position.topic} has no partition {position.partition}")
    try:
        return Letter(
            position.partition, position.offset, DeadLetter.from_bytes(kafka.read_one(settings, position, timeout=10.0))
        )
    except kafka.RecordGone:
        raise HyveError(
            f"there is no dead letter {name}: none was written there yet, or its retention passed"
        ) from None
    except ValueError as error:
        raise HyveError(f"the record at {name} is no dead letter: {error}") from None


def replay(settings: Settings, letters: Iterable[Letter]) -> int:
    """Sends the letters' records again, and returns how many; each is delivered and noted when this returns."""
    with_partition = {settings.topic(name) for name in _WITH_PARTITION}
    sent = 0
    with kafka.producing(settings) as producer:
        waiting = []
        for letter in letters:
            record = letter.record
            if not record.topic:
                raise InputError(
                    f"letter {letter.id} was posted to the webhook and stood on no topic: "
                    f"`hyve deadletters show {letter.id} --raw` prints it, to be mended and posted again"
                )
            future = producer.send(
                record.topic,
                key=letter.key,
                value=renewed(letter.value, int((time.time() + settings.deadline) * 1000)),
                partition=record.partition if record.topic in with_partition else None,
                headers=_headers(letter),
            )
            waiting.append((letter.id, letter.key, letter.partition, future))
        notes = []
        try:
            for name, key, partition, future in waiting:
                try:
                    future.get(60)
                except Exception as error:
                    raise HyveError(f"{sent} sent; letter {name} was not: {type(error).__name__}: {error}") from None
                sent += 1
                note = _NOTE + name.encode() + b'"}'
                notes.append(producer.send(settings.topic("deadletters"), note, key=key, partition=partition))
        finally:
            for noted in notes:
                noted.get(60)
    return sent


def _headers(letter: Letter) -> list[tuple[str, bytes]]:
    record = letter.record
    headers = {name: _bytes(value) for name, value in record.headers.items()}
    headers.setdefault(ORIGIN, f"{record.topic}/{record.partition}/{record.offset}".encode())
    headers[ATTEMPTS] = str(record.attempts).encode()
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
    fields = letter.record.model_dump(mode="json", exclude={"value", "key"})
    key = letter.key
    text = letter.value.decode("utf-8", "backslashreplace")
    return {
        "id": letter.id,
        **({} if letter.replayed is None else {"replayed": letter.replayed}),
        **fields,
        "key": None if key is None else key.decode("utf-8", "backslashreplace"),
        "value": text,
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
        cells = (letter.id, _when(record.failed), record.stage, _place(record), f"{len(letter.value):,}", error)
        made.add_row(*(Text(clean(cell)) for cell in cells))
    return made


def show(letter: Letter, console: Console) -> None:
    """A letter as lines of text, and its record below them."""
    record = letter.record
    lines = {
        "letter": letter.id,
        "failed": _when(record.failed),
        "stage": record.stage,
        "error": record.error,
        "attempts": str(record.attempts),
        "record": _place(record),
        "written": _when(record.timestamp),
        "key": "none" if letter.key is None else letter.key.decode("utf-8", "backslashreplace"),
    }
    for name, text in lines.items():
        console.print(Text(f"{name:<9}", style="bold") + Text(clean(text)), soft_wrap=True)
    text = letter.value.decode("utf-8", "backslashreplace")
    console.print()
    console.print(Text("\n".join(map(clean, text[:SHOWN].split("\n")))), soft_wrap=True)
    if len(text) > SHOWN:
        console.print(Text(f"... ({len(text) - SHOWN:,} more characters; --raw prints the record as it came)", "dim"))


def _place(record: DeadLetter) -> str:
    return f"{record.topic}[{record.partition}]@{record.offset}" if record.topic else "posted to the webhook"


def _when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if 0 < ms < 1 << 42 else "unknown"
