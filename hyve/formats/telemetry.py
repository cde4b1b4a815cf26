"""From parsed values to relations and to normalised records: asks each recogniser in turn.

Rules:
- The first recogniser that knows a value takes all of it; rows keep the order of the values, those of the stream
  formats after the others.
- A list that is no known message itself is looked into: its items may be messages (a file of exports in one array). So
  is an object whose members are all objects (messages by name).
- An object that repeats a key is read as an object whose further values have numbered keys (`plain`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hyve.formats import (
    alerting,
    alertmanager,
    apm,
    azure,
    cloudevents,
    cloudtrail,
    cloudwatch,
    cloudwatch_logs,
    containers,
    debezium,
    ec2,
    elasticsearch,
    exposition,
    gcp,
    jaeger,
    kubernetes,
    log_envelopes,
    logs,
    loki,
    otlp,
    packed,
    prometheus,
    solr,
    tempo,
    vector,
    wire,
    zipkin,
)
from hyve.formats.recogniser import Found, Recogniser, Stream
from hyve.formats.scalars import Relations, plain
from hyve.formats.wire import RELATION, Record
from hyve.strictjson import Pairs

RECOGNISERS: tuple[Recogniser, ...] = (
    wire.recognise,
    otlp.recognise,
    alertmanager.recognise,
    alerting.recognise,
    prometheus.recognise,
    vector.recognise,
    loki.recognise,
    zipkin.recognise,
    jaeger.recognise,
    kubernetes.recognise,
    cloudtrail.recognise,
    cloudwatch.recognise,
    cloudwatch_logs.recognise,
    azure.recognise,
    gcp.recognise,
    ec2.recognise,
    elasticsearch.recognise,
    cloudevents.recognise,
    debezium.recognise,
    tempo.recognise,
    solr.recognise,
    log_envelopes.recognise,
    logs.recognise,  # the least particular one: last
)
STREAMS: tuple[Stream, ...] = (containers.STREAM, apm.STREAM)

_MEMO = 1_000
_TELEMETRY = frozenset(RELATION.values())


def find(values: Sequence[Any], texts: Sequence[str] = ()) -> Found:
    """The relations of parsed values and of lines of free text. Texts are whole lines in their order."""
    finder = Finder()
    with packed.bounded():
        finder.take_all(values, inside=False)
    flags: list[str] = []
    for found in chain(finder.streams(), find_lines(lambda: iter([texts]))):
        finder.merge(found.relations)
        flags.extend(found.flags)
    return Found(finder.merged, tuple(dict.fromkeys(flags)))


def find_lines(runs: Callable[[], Iterator[Sequence[str]]]) -> Iterator[Found]:
    """The relations of whole lines of free text, in runs; whoever asks for `runs` reads the text anew."""
    for read in (containers.read_lines, exposition.read_lines):
        yield from read(runs)


def only_logs(keys: Sequence[str]) -> bool:
    """Whether of all formats only a logger's record may have these keys, so that nobody else needs to see it."""
    asked = _asked(set(keys))
    return not asked.streams and asked.recognisers == (logs.recognise,)


def series_keys(value: Any) -> tuple[str, ...] | None:
    """The keys to the list of series in a value that can be nothing but a Prometheus matrix; None in any other."""
    told = prometheus.matrix(value)
    if told is None:
        return None
    keys, shortened = told
    finder = Finder()
    finder.take_all([shortened], inside=False)
    return keys if finder.merged == prometheus.recognise(shortened) else None


def relations(values: Sequence[Any]) -> Relations:
    """Rows of every value that a recogniser knows, by relation name."""
    return find(values).relations


def text_relations(texts: Sequence[str]) -> Relations:
    """Rows of the lines of free text that a format knows: Prometheus' exposition text, container logs."""
    return find((), texts).relations


def normalised(found: Relations) -> list[Record]:
    """The records of the rows that are telemetry."""
    return [
        Record(signal, row["service"], row["time"] or 0, row)
        for signal, name in RELATION.items()
        for row in found.get(name, ())
    ]


def sort_out(values: Sequence[Any]) -> tuple[list[Record], list[Any]]:
    """The normalised records of parsed values, and the values that are no telemetry: those of formats without any
    (Kubernetes' events, alerts) and those that nobody knows. A list that is no message itself counts as its items, and
    so does what stands in a message where its records should."""
    finder = Finder(want_rest=True)
    with packed.bounded():
        finder.take_all(values, inside=False)
    for found in finder.streams():
        finder.merge(found.relations)
    return normalised(finder.merged), finder.rest + finder.strays


class Finder:
    """The state of one search: the rows so far, the records of stream formats, whom to ask about which keys, and who
    knew a value.

    `rest`, if it is wanted, are the values that no format of telemetry took, as far in as messages are looked for.
    """

    def __init__(self, want_rest: bool = False) -> None:
        self.merged: Relations = {}
        self.want_rest = want_rest
        self.rest: list[Any] = []
        self.strays: list[Any] = []
        self.gathered: dict[int, list[dict[str, Any]]] = {}
        self.memo: dict[tuple[Any, ...], _Asked] = {}
        self.knew: list[Recogniser] = []

    def merge(self, found: Relations) -> None:
        for name, rows in found.items():
            if rows:
                self.merged.setdefault(name, []).extend(rows)

    def streams(self) -> Iterator[Found]:
        """What the stream formats read in their records, once all of them are gathered."""
        for stream, gathered in self.gathered.items():
            yield STREAMS[stream].read(gathered)

    def take_all(self, values: Sequence[Any], inside: bool) -> None:
        """Takes each of several values; `inside`: they are the items of one, whose own items aren't looked into."""
        if len(values) > 8 and set(map(type, values)) == {dict}:
            together = set().union(*values)
            if not _asked(together).objects:
                self.leave(values)
                return
        for value in values:
            kind = type(value)
            if kind is Pairs:
                value, kind = plain(value), dict
            if kind is dict:
                if not self.take_object(value):
                    if not inside and set(map(type, value.values())) == {dict}:
                        self.take_members(value)
                    else:
                        self.leave([value])
            elif kind is list and not inside:
                if not self.take_list(value):
                    self.take_all(value, inside=True)
            else:
                self.leave([value])

    def leave(self, values: Sequence[Any]) -> None:
        if self.want_rest:
            self.rest.extend(values)

    def take_members(self, value: dict[str, Any]) -> None:
        """Takes an object whose members are objects: messages by name, or one value that nobody knows."""
        before = len(self.rest)
        self.take_all(list(value.values()), inside=True)
        if len(self.rest) - before == len(value):
            self.rest[before:] = [value]

    def take_object(self, value: dict[str, Any]) -> bool:
        asked = self.asked(value)
        for stream in asked.streams:
            if STREAMS[stream].belongs(value):
                self.gathered.setdefault(stream, []).append(value)
                return True
        for recognise in asked.recognisers:
            if recognise is wire.recognise and (inner := wire.carried(value)) is not None:
                return self.take_object(inner)
            found = self.whole(value) if self.want_rest and recognise is otlp.recognise else recognise(value)
            if found is not None:
                self.knew.append(recognise)
                self.took(value, found)
                return True
        return False

    def whole(self, value: dict[str, Any]) -> Relations | None:
        """As a recogniser that leaves nothing behind."""
        found = otlp.whole(value)
        if found is None:
            return None
        self.strays.extend(found[1])
        return found[0]

    def take_list(self, value: list[Any]) -> bool:
        first = value[0] if value else None
        if type(first) is not dict:
            return False
        for recognise in self.asked(first).listed:
            found = recognise(value)
            if found is not None:
                self.knew.append(recognise)
                self.took(value, found)
                return True
        return False

    def took(self, value: Any, found: Relations) -> None:
        self.merge(found)
        if found and _TELEMETRY.isdisjoint(found):
            self.leave([value])

    def asked(self, value: dict[str, Any]) -> _Asked:
        keys = tuple(value)
        known = self.memo.get(keys)
        if known is None:
            known = _asked(set(keys))
            if len(self.memo) < _MEMO:
                self.memo[keys] = known
        return known


@dataclass(frozen=True)
class _Asked:
    """Who may know objects with certain keys: stream formats (by number), recognisers of the objects and of lists that
    begin with one."""

    streams: tuple[int, ...]
    recognisers: tuple[Recogniser, ...]
    listed: tuple[Recogniser, ...]

    @property
    def objects(self) -> bool:
        """Whether anybody is asked about such an object itself."""
        return bool(self.streams or self.recognisers)


_NOBODY = _Asked((), (), ())


def _asked(there: set[Any]) -> _Asked:
    """Looks at the needs that hold one of the keys, each once: a payload may have a set of keys for each object."""
    fitting = {
        place for key in there if key in _INDEX for need, places in _INDEX[key] if need <= there for place in places
    }
    if not fitting:
        return _NOBODY
    order = sorted(fitting)
    return _Asked(
        tuple(number for what, number in order if what == "stream"),
        tuple(RECOGNISERS[number] for what, number in order if what == "object"),
        tuple(RECOGNISERS[number] for what, number in order if what == "list"),
    )


def _index() -> dict[str, list[tuple[frozenset[str], tuple[tuple[str, int], ...]]]]:
    """Every need under that one of its keys which is in the fewest needs, with whom it is a need of."""
    wanted: dict[frozenset[str], list[tuple[str, int]]] = {}
    for number, stream in enumerate(STREAMS):
        for need in stream.needs:
            wanted.setdefault(need, []).append(("stream", number))
    for number, recogniser in enumerate(RECOGNISERS):
        for need in recogniser.needs:
            wanted.setdefault(need, []).extend((("object", number), ("list", number)))
        for need in recogniser.listed:
            wanted.setdefault(need, []).append(("list", number))
    counts = Counter(key for need in wanted for key in need)
    index: dict[str, list[tuple[frozenset[str], tuple[tuple[str, int], ...]]]] = {}
    for need, places in wanted.items():
        index.setdefault(min(sorted(need), key=counts.__getitem__), []).append((need, tuple(places)))
    return index


_INDEX = _index()
