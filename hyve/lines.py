"""Free text lines -> what each of them carries: time, level, host, key=value pairs, ... (H38).

Rules:
- The text of a line is the data; what is found here stands beside it. So a field may leave out (a "-" that means none,
  the punctuation) but never invents: its text stands in the line, escapes inside quotes undone.
- What kind of lines these are is decided once, from a sample of them. Then a line is matched against the few kinds that
  were seen, the most specific first, and never against the whole table.
- Pairs count where they can't be code, a URL's query or a query's selector: two or more behind a log head or in a line
  of nothing but pairs, or a key that most lines share.
- Each pattern is linear in its line: repeats are possessive or end at a character that they can't contain.

Keys: `time`, `level`, `msg` (what remains behind a head), `logger`, `thread`, `source` (file:line), `host`, `app`,
`pid`, `priority`, `msgid`, `data` (syslog), `container`, `pod`, `stream`, `client`, `user`, `database`, `method`,
`path`, `protocol`, `status`, `bytes`, `referer`, `agent` (requests), `name`, `labels`, `value`, `timestamp`,
`exemplar`, `metric`, `type`, `help`, `unit` (Prometheus exposition text), `json` (a document that was escaped into the
line), the keys of pairs as they are written, and `pairs_left_out`, how many others of these the line has.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hyve.collector import collector_paused
from hyve.escaped import ESCAPED_START, read_escaped
from hyve.formats.exposition import is_exposition, line_fields
from hyve.freetext import thinned
from hyve.recovery import ANSI
from hyve.zones import NAMES

_LOOKED, _SAMPLE = 256, 120
"""Lines that tell what kind of lines all are: those that are looked at (up to twice as many), and those of them on
which everything is tried."""
_BEGINNING = 1 << 16
"""Characters of a line that tell so."""
_WRAPPED = 3
"""Heads that a line may have, one around the other."""
_MAX_KEYS = 1_000
"""Keys of pairs that are kept, the most frequent ones, and pairs of a line: a text of more is no table."""
_LEFT_OUT = "pairs_left_out"
_TAKEN = {"line": "line_value", "text": "text_value"}
"""A line's own columns; a pair of that name moves."""

_ISO = (
    r"\d{4}[-/.]\d\d[-/.]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
    rf"(?: ?(?:(?:Z|UTC|GMT|{NAMES})\b|[+-]\d\d:?\d\d\b))?"
)
_BSD = r"[A-Z][a-z]{2} [ \d]\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_TIME = (
    rf"(?P<time>{_ISO}|{_BSD}|\d\d?[-/]\d\d?[-/](?:\d{{4}}|\d\d) \d\d?:\d\d:\d\d(?:[.,]\d{{1,9}})?(?: [AP]M)?"
    r"|\d\d? [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \d{4}|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
)
_NAMES = (
    "TRACE|DEBUG|DBG|INFO|INF|NOTICE|WARNING|WARN|WRN|ERROR|ERR|FATAL|FTL|CRITICAL|CRIT|SEVERE|ALERT|EMERG|PANIC|DPANIC"
    "|VERBOSE|FINEST|FINER|FINE|CONFIG"
)
_WORDS = "|".join(f"{name}|{name.title()}" for name in _NAMES.split("|"))
_ANY = f"(?P<level>(?i:{_NAMES}))"  # where punctuation holds the place of a level
_UPPER = rf"(?P<level>{_WORDS})\b"
_BOXED = rf"\[ ?(?P<level>(?i:{_NAMES})) *\]"
_LOGGER = r"(?P<logger>[\w$.:/@~<>-]+)"
_DOTTED = r"(?P<logger>[A-Za-z_$][\w$]*(?:(?:\.|::|/|-)[\w$]+)++)"
_THREAD = r"\[(?P<thread>(?:[^\[\]\n]|\[[^\[\]]*+\])++)\]"
_MSG = r"(?P<msg>.*)"


@dataclass(frozen=True)
class _Kind:
    """One way that lines begin. What a `wraps` kind leaves in `msg` is a line with a head of its own."""

    pattern: re.Pattern[str]
    wraps: bool = False


def _kind(pattern: str, wraps: bool = False) -> _Kind:
    return _Kind(re.compile(pattern, re.DOTALL), wraps)


_KINDS = (  # the most specific first
    _kind(rf"(?P<container>[A-Za-z][\w.-]*?(?:[-_]\d++(?= )|(?=  ))) ++\| ?{_MSG}", wraps=True),  # docker compose
    _kind(rf"\[pod/(?P<pod>[^/\]\s]+)/(?P<container>[^\]\s]+)\] {_MSG}", wraps=True),  # kubectl logs --prefix
    _kind(rf"(?P<time>{_ISO}) (?P<stream>stdout|stderr) [FP] {_MSG}", wraps=True),  # container runtime
    # Access logs of web servers: common, combined, with a virtual host before them.
    _kind(
        r"(?:[\w.-]+:\d+ )?(?P<client>[\w.:\[\]-]+) \S+ (?P<user>\S+) "
        r"\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8}[^\]]*+)\] "
        r'"(?:(?P<method>[A-Z]{3,10}) (?P<path>[^\s"]+)(?: (?P<protocol>[^\s"]+))?|[^"\\]*+(?:\\.[^"\\]*+)*+)" '
        r'(?P<status>\d{3}) (?P<bytes>\d+|-)(?: "(?P<referer>(?:[^"\\]|\\.)*+)" "(?P<agent>(?:[^"\\]|\\.)*+)")?'
        rf"(?: {_MSG}|\s*\Z)"
    ),
    # Syslog: RFC 5424, RFC 3164, and what rsyslog writes with ISO times.
    _kind(
        r"<(?P<priority>\d{1,3})>\d (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<msgid>\S+) "
        rf'(?:-|(?P<data>(?:\[[^\s\]=]+(?: [^\s\]="]+="[^"\\]*+(?:\\.[^"\\]*+)*+")*+\])++))(?: \ufeff?{_MSG}|\s*\Z)'
    ),
    _kind(
        rf"(?:<(?P<priority>\d{{1,3}})>)?(?P<time>{_BSD}) (?P<host>[\w.:-]+) "
        rf"(?P<app>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?{_MSG}"
    ),
    _kind(rf"(?P<time>{_ISO}) (?P<host>[\w.:-]+) (?P<app>[^\s:\[]+)\[(?P<pid>\d+)\]: ?{_MSG}"),
    # klog and glog: I0123 12:00:00.000000       1 file.go:12] message
    _kind(
        rf"(?P<level>[IWEF])(?P<time>\d{{4}} \d\d:\d\d:\d\d\.\d+) ++(?P<pid>\d+) (?P<source>[^\s\]:]+:\d+)\] ?{_MSG}"
    ),
    # Spring Boot, Elasticsearch, Ruby, celery, gunicorn, Apache and nginx errors, PostgreSQL, Redis, Android
    _kind(
        rf"{_TIME} ++{_UPPER} ++(?:\[[^\]\n]*+\] ++)?(?P<pid>\d+) --- (?:\[[^\]\n]*+\] ++)?"
        rf"\[ *+(?P<thread>[^\]\n]*+)\] (?:\[[^\]\n]*+\] )?(?P<logger>[^\s:]+) *+: {_MSG}"
    ),
    _kind(rf"\[{_TIME}\]\[{_ANY} *+\]\[(?P<logger>[^\s\]]+) *+\] ?{_MSG}"),
    _kind(rf"[A-Z], \[{_TIME} #(?P<pid>\d+)\] ++{_UPPER} -- (?P<logger>[^:]*?): {_MSG}"),
    _kind(rf"\[{_TIME}: {_ANY}/(?P<thread>[^\]\s]+)\] ?{_MSG}"),
    _kind(rf"\[{_TIME}\] \[(?P<pid>\d+)\] {_BOXED} ?{_MSG}"),
    _kind(
        rf"\[{_TIME}\] \[(?:(?P<logger>[\w-]*):)?{_ANY}\](?: \[pid (?P<pid>\d+)(?::tid \d+)?\])?"
        rf"(?: \[client (?P<client>[^\]\s]+)\])? {_MSG}"
    ),
    _kind(rf"{_TIME} \[{_ANY}\] (?P<pid>\d+)#\d+: (?:\*\d+ )?{_MSG}"),
    _kind(
        rf"{_TIME}(?: [A-Z]{{3,4}})? \[(?P<pid>\d+)\](?: (?P<user>[^\s@]+)@(?P<database>\S+))? "
        rf"(?P<level>LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG\d?|STATEMENT|DETAIL|HINT|CONTEXT): ++{_MSG}"
    ),
    _kind(rf"(?P<pid>\d+):[A-Z] {_TIME} (?P<level>[.*#-]) {_MSG}"),
    _kind(
        rf"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d\.\d{{3}}) ++(?P<pid>\d+) ++(?P<thread>\d+) "
        rf"(?P<level>[VDIWEF]) (?P<logger>[^:\n]*?) *+: {_MSG}"
    ),
    # Tabs between the parts (zap, Istio)
    _kind(rf"{_TIME}\t{_ANY}\t(?:(?P<logger>[\w./:()-]+)\t(?=[^\t{{=]+(?:\t|\Z)))?{_MSG}"),
    # log4j, logback, Python, Rust, and what looks like them
    _kind(rf"\[{_TIME}\] {_UPPER} (?P<msg>.*) \((?P<logger>[\w$.-]+)\)\s*\Z"),
    _kind(rf"\[?{_TIME}\]? \| +{_ANY} *+\| {_LOGGER} [-|]++ {_MSG}"),
    _kind(rf"\[?{_TIME}\]?[ -]++\[?{_UPPER}(?: *+\])? +{_THREAD} ++(?:{_LOGGER} *+)??(?:- |: |\(\): ){_MSG}"),
    _kind(rf"\[?{_TIME}\]?[ -]++{_THREAD} ++{_UPPER} ++{_LOGGER} *+(?:-|:) {_MSG}"),
    _kind(rf"{_TIME} - {_LOGGER} - {_UPPER} - {_MSG}"),
    _kind(rf"{_TIME} - (?P<logger>[\w.-]+):{_UPPER}: (?P<source>[\w./-]+:\d+) - ?{_MSG}"),
    _kind(rf"{_TIME} (?P<pid>\d+) {_UPPER} {_DOTTED} {_MSG}"),
    _kind(rf"{_TIME} {_BOXED} {_LOGGER} - {_MSG}"),
    _kind(rf"\[?{_TIME}\]?[ -]++{_UPPER} ++{_DOTTED}\]?(?::| -) {_MSG}"),
    _kind(rf"\[{_TIME} {_UPPER} ++{_DOTTED}\] {_MSG}"),
    # A time and a level, in this order or the other
    _kind(rf"\[?{_TIME}\]?[ \t:|-]*+{_UPPER}(?:[ \t|:-]++{_MSG}|\s*\Z)"),
    _kind(rf"\[?{_TIME}\]?[ \t:|-]*+{_BOXED}(?:[ \t|:-]++{_MSG}|\s*\Z)"),
    _kind(rf"\[{_TIME} {_ANY}\] {_MSG}"),
    _kind(rf"\[?{_TIME}\]?[ \t|-]++(?P<level>(?i:{_NAMES}))(?:[:|\t] *+| \| *+){_MSG}"),
    _kind(rf"{_UPPER}:? +\[?{_TIME}\]?[ \t:|-]++{_MSG}"),
    _kind(rf"{_BOXED} ++\[?{_TIME}\]?[ \t:|-]++{_MSG}"),
    _kind(rf"(?P<level>{_WORDS})\[\d+\] {_MSG}"),
    _kind(rf"(?P<level>{_NAMES}):(?P<logger>[\w.]+):{_MSG}"),
    _kind(rf"(?P<level>{_WORDS}): ++{_MSG}"),
    _kind(rf"{_BOXED} ++{_MSG}"),
    # A time alone: from Go's logger, or put before each line by whatever kept it.
    _kind(rf"\[?{_TIME}\]?:?(?: (?P<source>[\w./-]+\.\w+:\d+):)?[ \t]++(?:- )?{_MSG}", wraps=True),
)

_REQUEST = re.compile(
    r"""(?:(?P<client>[\w.:]+)[ ]-[ ])?"(?P<method>[A-Z]{3,10})[ ](?P<path>[^\s"]+)[ ](?P<protocol>HTTP/[\d.]+)"
    (?:[ ](?P<status>\d{3})\b)?""",
    re.VERBOSE,
)


def fields(texts: Sequence[str]) -> list[dict[str, Any] | None] | None:
    """What each of the lines carries, None for a line that carries nothing; None where next to no line carries any.

    Values are texts, but for `labels` (an object of texts), `json` (the document) and `pairs_left_out` (a number).
    """
    reader = Reader(texts)
    while True:
        found = reader.read(texts)
        if not reader.again():
            return found if reader.carries else None


class Reader:
    """Reads the lines of one text, which may come in several runs. What kind of lines they are is told beforehand, by
    `texts` that may be all of them: some of these are looked at."""

    def __init__(self, texts: Iterable[str]) -> None:
        looked = [_plain(text[:_BEGINNING]) for text in thinned(texts, _LOOKED)]
        looked = [text for text in looked if text.strip()]
        self._exposition = bool(looked) and is_exposition(_sampled(looked))
        self._kinds: list[list[_Kind]] = []
        self._shared: set[str] = set()
        self._several = False
        self._names: set[str] = set()
        self._kept: set[str] | None = None
        self._requests = any("HTTP/" in text for text in _sampled(looked))
        self._begin()
        if looked and not self._exposition:
            with collector_paused():
                self._learn(looked)

    def _begin(self) -> None:
        self._lines = self._carrying = 0
        self._keys: Counter[str] = Counter()

    def _learn(self, looked: list[str]) -> None:
        sample = _sampled(looked)
        while len(self._kinds) < _WRAPPED and (kinds := _seen(sample)):
            self._kinds.append(kinds)
            sample = _sampled(_heads(looked, self._kinds)[2])
        found, rest, _ = _heads(looked, self._kinds)
        self._shared, self._several = _shared(rest)
        self._names = _labels(rest, found, self._pairs_of(rest, found))
        self._begin()

    @property
    def idle(self) -> bool:
        """Whether no line that was read carries anything."""
        return not self._carrying

    @property
    def carries(self) -> bool:
        """Whether some of the lines that were read carry anything, and not next to none."""
        return self._carrying >= min(2, self._lines) and 0 < self._lines <= self._carrying * 50

    def again(self) -> bool:
        """Whether all lines have to be read once more, from the first one on: they have too many keys."""
        if self._kept is not None or len(self._keys) <= _MAX_KEYS:
            return False
        self._kept = {key for key, _ in self._keys.most_common(_MAX_KEYS)}
        self._begin()
        return True

    @collector_paused()
    def read(self, texts: Sequence[str]) -> list[dict[str, Any] | None]:
        """What each of some lines carries."""
        joined = "\n".join(texts)
        plain = [_plain(text) for text in texts] if "\x1b" in joined else texts
        if self._exposition:
            found = [line_fields(text) for text in plain]
        elif self._kinds or "=" in joined or '\\"' in joined or (self._requests and "HTTP/" in joined):
            found = self._log(plain)
        else:  # nothing is looked for in each of them
            found = [None] * len(plain)
        self._lines += len(found)
        self._carrying += sum(item is not None for item in found)
        return found

    def _log(self, texts: Sequence[str]) -> list[dict[str, Any] | None]:
        found, rest, _ = _heads(texts, self._kinds)
        pairs = self._pairs_of(rest, found)
        labelled = _labelled_of(rest, found, pairs, self._names)
        escaped = any('\\"' in text for text in texts)
        for item, text, *others in zip(found, rest, pairs, labelled, strict=True):
            for other in others:
                for key, value in other.items():
                    item.setdefault(key, value)  # what a head says comes before what the line says of itself
            if self._requests and "HTTP/" in text and "method" not in item and (match := _REQUEST.search(text)):
                for key, value in match.groupdict().items():
                    if value is not None:
                        item.setdefault(key, value)
            if escaped and '\\"' in text and (document := _document(text)) is not None:
                item.setdefault("json", document)
        return [item or None for item in found]

    def _pairs_of(self, texts: list[str], heads: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The key=value pairs of each line. Where pairs end a line with a head, its `msg` is cut to what stands
        before."""
        found: list[dict[str, Any]] = []
        for text, head in zip(texts, heads, strict=True):
            further = _pairs(text) if "=" in text else iter(())
            pairs = list(islice(further, _MAX_KEYS))
            left_out = sum(1 for _ in further)
            if left_out:
                text = text[: pairs[-1][3]]
            if not pairs or not (head or _outside_code(text[: pairs[0][2]])):
                found.append({})
                continue
            if len(pairs) < 2 or not (head or self._several or _nothing_else(text, pairs)):
                pairs = [pair for pair in pairs if pair[0] in self._shared]
            elif (verb := _SQL_VERB.search(text)) and _SQL_REST.search(text, verb.end()):
                pairs = [pair for pair in pairs if pair[2] < verb.start()]
            own = _by_key(pairs)
            found.append(own)
            if left_out and pairs:
                own[_LEFT_OUT] = left_out
            if pairs and "msg" in head:
                before = text[: pairs[0][2]]
                if not before.endswith(("(", "[")) and _nothing_else(text[len(before) :], pairs, len(before)):
                    head["msg"] = before.strip()
                    if not head["msg"]:
                        del head["msg"]
        if (kept := self._kept) is not None:
            return [_cut(item, kept) for item in found]
        for item in filter(None, found):
            self._keys.update(item.keys())
        return found


def _cut(item: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    """The pairs of a line whose keys are kept, and how many others it has."""
    some = {key: value for key, value in item.items() if key in kept}
    if len(some) < len(item):
        some[_LEFT_OUT] = item.get(_LEFT_OUT, 0) + len(item.keys() - kept - {_LEFT_OUT})
    return some


def _by_key(pairs: list[tuple[str, str, int, int]]) -> dict[str, Any]:
    """The values of pairs by key; another value of a key `a` is `a_2`."""
    own: dict[str, Any] = {}
    several: dict[str, set[str]] = {}
    last: Counter[str] = Counter()
    for key, value, *_ in pairs:
        name = _TAKEN.get(key, key)
        first = own.setdefault(name, value)
        if first == value or value in several.setdefault(name, {first}):
            continue
        several[name].add(value)
        last[name] = max(last[name] + 1, 2)
        while (further := f"{name}_{last[name]}") in own:
            last[name] += 1
        own[further] = value
    return own


def _plain(text: str) -> str:
    return ANSI.sub("", text) if "\x1b" in text else text


def _sampled(texts: list[str]) -> list[str]:
    return texts[:: max(1, len(texts) // _SAMPLE)]


def _heads(texts: Sequence[str], levels: list[list[_Kind]]) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """(the fields of each line's head, what remains behind it, of that what may have a further head).

    A head that wraps a line is followed by that line's: `levels` are the kinds of the first heads, of the second ones.
    """
    found: list[dict[str, Any]] = [{} for _ in texts]
    rest = list(texts)
    todo: Sequence[int] = range(len(texts))
    bodies: list[str] = []
    for kinds in levels:
        again, bodies = [], []
        for i in todo:
            text = rest[i]
            for kind in kinds:
                if match := kind.pattern.match(text):
                    known = found[i]
                    known.pop("msg", None)
                    for key, value in match.groupdict().items():
                        if value and value != "-" and key not in known:
                            known[key] = value
                    body = known.get("msg", "")
                    if body.isspace():
                        del known["msg"]
                    rest[i] = body
                    if kind.wraps and body:
                        again.append(i)
                        bodies.append(body)
                    break
        todo = again
    return found, rest, bodies


def _seen(sample: list[str]) -> list[_Kind]:
    """The kinds of line heads in a sample: those that are the first to fit 2% of the lines, and two lines."""
    counts: Counter[int] = Counter()
    for text in sample:
        for i, kind in enumerate(_KINDS):
            if kind.pattern.match(text):
                counts[i] += 1
                break
    least = max(min(2, len(sample)), len(sample) // 50)
    return [kind for i, kind in enumerate(_KINDS) if counts[i] >= least]


def _shared(texts: list[str]) -> tuple[set[str], bool]:
    """(the keys of pairs that at least half of the lines have, whether half of them have several pairs)."""
    candidates = [text for text in texts if "=" in text]
    if not candidates:
        return set(), False
    looked = [[key for key, *_ in islice(_pairs(text), _MAX_KEYS)] for text in _sampled(candidates)]
    total = sum(bool(text.strip()) for text in texts)
    share = len(candidates) / total
    counts = Counter(key for keys in looked for key in set(keys))
    shared = {key for key, count in counts.items() if count * share >= len(looked) / 2 and count >= 2}
    return shared, total >= 5 and sum(len(keys) >= 2 for keys in looked) * share >= len(looked) / 2


# What is no pair is matched first and passed over: quoted text, {...} (JSON, a selector's labels), a tag of markup.
# A quote that is never closed runs to the end.
_PAIR = re.compile(
    r"""(?<!\w)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|\{[^{}]*+\}|<[A-Za-z/][^<>]*+>
    |(?<![^\s,;|(\[])(?P<key>[A-Za-z_@][\w.@/-]*+)=
    (?P<value>"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|'[^']*+'|\[[^\[\]]*+\]|\{[^{}]*+\}
        |(?![=>~\s])(?:[^\s",;]++|[,;](?!\s|[A-Za-z_][\w.@/-]*+=))++|(?=\s+[\w.@-]++=|\s*\Z))(?=[\s,;)\]|&]|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_SQL_VERB = re.compile(r"\b(?:SELECT|UPDATE|INSERT|DELETE|select|insert into|delete from)\b")
_SQL_REST = re.compile(r"\b(?i:from|set|into|where)\b")
_FORM = re.compile(r"&[\w.-]+=")
"""The body of a form: its first key is no key of the line."""
_CLOSERS = {")": "(", "]": "[", "}": "{"}


def _outside_code(before: str) -> bool:
    """Whether pairs behind this may be data: an indented line, and what stands in brackets, is code as often."""
    return not before[:1].isspace() and before.count("(") <= before.count(")")


def _pairs(text: str) -> Iterator[tuple[str, str, int, int]]:
    """(key, value, start, end) of every pair in a line."""
    for match in _PAIR.finditer(text):
        key = match["key"]
        if key is None:
            continue
        value, end = match["value"], match.end()
        if value[:1] == '"':
            value = _unquoted(value)
        elif value[:1] == "'":
            value = value[1:-1]
        elif value[:1] not in "[{":
            bare = value.rstrip(",;")
            while bare and bare[-1] in _CLOSERS and bare.count(bare[-1]) > bare.count(_CLOSERS[bare[-1]]):
                bare = bare[:-1]
            if "?" not in bare and _FORM.search(bare):
                continue
            value = bare
        yield key, value, match.start(), end


def _unquoted(value: str) -> str:
    inner = value[1:-1] if len(value) > 1 and value[-1] == '"' else value[1:]
    if "\\" not in inner:
        return inner
    try:
        decoded = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        return inner
    return str(decoded)


def _nothing_else(text: str, pairs: list[tuple[str, str, int, int]], offset: int = 0) -> bool:
    """Whether a line is logfmt: pairs with blanks between them from its start to its end."""
    at = 0
    for _, _, start, end in pairs:
        if text[at : start - offset].strip(" \t|"):
            return False
        at = end - offset
    return not text[at:].strip()


# " - User: bob - IP: 1.2.3.4" and nginx's ", client: 1.2.3.4, request: "GET / HTTP/1.1""
_LABELLED = re.compile(
    r"""(?:[ ]-[ ]|,[ ])(?P<key>[A-Za-z][\w-]*+(?:[ ][\w-]++){0,2}):[ ]
    (?P<value>"[^"\\]*+(?:\\.[^"\\]*+)*+"(?=[ ]-[ ]|,[ ]|\s*\Z)|(?:[^"\n,\ ]++|,(?![ ])|[ ](?!-[ ]))++)""",
    re.VERBOSE,
)


def _labels(texts: list[str], heads: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> set[str]:
    """The names of `Name: value` pieces between dashes or commas, behind heads; half of the lines hold two of them."""
    candidates = [
        text for text, head, own in zip(texts, heads, pairs, strict=True) if ": " in text and head and not own
    ]
    looked = [{match["key"] for match in _LABELLED.finditer(text)} for text in _sampled(candidates)]
    counts = Counter(key for keys in looked if len(keys) > 1 for key in keys)
    names = {key for key, count in counts.items() if count >= max(3, len(looked) // 50)}
    return names if 2 * sum(len(keys & names) > 1 for keys in looked) >= len(looked) else set()


def _labelled_of(
    texts: list[str], heads: list[dict[str, Any]], pairs: list[dict[str, Any]], names: set[str]
) -> list[dict[str, str]]:
    """The pieces of each line that have these names, where it has several such pieces."""
    found: list[dict[str, str]] = [{} for _ in texts]
    if not names:
        return found
    for own, text, head, others in zip(found, texts, heads, pairs, strict=True):
        if ": " not in text or not head or others:
            continue
        pieces = [(match["key"], match["value"]) for match in _LABELLED.finditer(text)]
        for key, value in pieces if len(pieces) > 1 else ():
            if key in names:
                own.setdefault(_TAKEN.get(key, key), value[1:-1] if value[0] == '"' else value.strip())
    return found


def _document(text: str) -> Any | None:
    """The document that is written into a line with its quotes escaped, as in `body {\\"a\\": 1} sent`."""
    match = ESCAPED_START.search(text)
    found = read_escaped(text, match.start()) if match else None
    return found[0] if found else None
