"""Free text lines -> what each of them carries: time, level, host, key=value pairs, ... (H38).

Rules:
- The text of a line is the data; what is found here stands beside it. So a field may leave out (a "-" that means none,
  the punctuation) but never invents: its text stands in the line, escapes inside quotes undone.
- What kind of lines these are is decided once, from a sample. Then a line is matched against the few kinds that were
  seen, the most specific first, and never against the whole table.
- Pairs count where they can't be code, a URL's query or a query's selector: two or more behind a log head or in a line
  of nothing but pairs, or a key that most lines share.
- Each pattern is linear in its line: repeats are possessive or end at a character that they can't contain.

Keys: `time`, `level`, `msg` (what remains behind a head), `logger`, `thread`, `source` (file:line), `host`, `app`,
`pid`, `priority`, `msgid`, `data` (syslog), `container`, `pod`, `stream`, `client`, `user`, `database`, `method`,
`path`, `protocol`, `status`, `bytes`, `referer`, `agent` (requests), `name`, `labels`, `value`, `timestamp`,
`exemplar`, `metric`, `type`, `help`, `unit` (Prometheus exposition text), `json` (a document that was escaped into the
line), and the keys of pairs as they are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hyve.collector import collector_paused
from hyve.formats.exposition import unescaped
from hyve.recovery import ANSI, ESCAPED_START, read_escaped

_SAMPLE = 120
_MAX_KEYS = 256
"""Keys of pairs that are kept, the most frequent ones: a text of a thousand keys is no table."""
_TAKEN = {"line": "line_value", "text": "text_value"}
"""A line's own columns; a pair of that name moves."""

_ISO = r"\d{4}[-/.]\d\d[-/.]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d\b))?"
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
        r'"(?:(?P<method>[A-Z]{3,10}) (?P<path>[^\s"]+)(?: (?P<protocol>[^\s"]+))?|(?:[^"\\]|\\.)*+)" '
        r'(?P<status>\d{3}) (?P<bytes>\d+|-)(?: "(?P<referer>(?:[^"\\]|\\.)*+)" "(?P<agent>(?:[^"\\]|\\.)*+)")?'
        rf"(?: {_MSG}|\s*\Z)"
    ),
    # Syslog: RFC 5424, RFC 3164, and what rsyslog writes with ISO times.
    _kind(
        r"<(?P<priority>\d{1,3})>\d (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<msgid>\S+) "
        rf'(?:-|(?P<data>(?:\[[^\s\]=]+(?: [^\s\]="]+="(?:[^"\\]|\\.)*+")*+\])++))(?: \ufeff?{_MSG}|\s*\Z)'
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


@collector_paused()
def fields(texts: Sequence[str]) -> list[dict[str, Any] | None] | None:
    """What each of the lines carries, None for a line that carries nothing; None where next to no line carries any.

    Values are texts, but for `labels` (an object of texts) and `json` (the document).
    """
    plain = [ANSI.sub("", text) if "\x1b" in text else text for text in texts]
    sample = _sampled([text for text in plain if text.strip()])
    if not sample:
        return None
    found = [_exposition(text) for text in plain] if _is_exposition(sample) else _log(plain, sample)
    carrying = sum(item is not None for item in found)
    if carrying < min(2, len(texts)) or carrying * 50 < len(texts):
        return None
    return found


def _sampled(texts: list[str]) -> list[str]:
    return texts[:: max(1, len(texts) // _SAMPLE)]


def _log(texts: list[str], sample: list[str]) -> list[dict[str, Any] | None]:
    found, rest = _heads(texts, sample)
    pairs = _pairs_of(rest, found)
    labelled = _labelled_of(rest, found, pairs)
    requests = any("HTTP/" in text for text in sample)
    escaped = any('\\"' in text for text in texts)
    for item, text, *others in zip(found, rest, pairs, labelled, strict=True):
        for other in others:
            for key, value in other.items():
                item.setdefault(key, value)  # what a head says comes before what the line says of itself
        if requests and "HTTP/" in text and "method" not in item and (match := _REQUEST.search(text)):
            for key, value in match.groupdict().items():
                if value is not None:
                    item.setdefault(key, value)
        if escaped and '\\"' in text and (document := _document(text)) is not None:
            item.setdefault("json", document)
    return [item or None for item in found]


def _heads(texts: list[str], sample: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """(the fields of each line's head, what remains behind it); a head that wraps a line is followed by that line's."""
    found: list[dict[str, Any]] = [{} for _ in texts]
    rest = list(texts)
    todo = list(range(len(texts)))
    for _ in range(3):
        kinds = _seen(sample)
        if not kinds:
            break
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
        if not again:
            break
        todo, sample = again, _sampled(bodies)
    return found, rest


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


# What is no pair is matched first and passed over: quoted text, {...} (JSON, a selector's labels), a tag of markup.
# A quote that is never closed runs to the end.
_PAIR = re.compile(
    r"""(?<!\w)"(?:[^"\\]|\\.)*+(?:"|\Z)|\{[^{}]*+\}|<[A-Za-z/][^<>]*+>
    |(?<![^\s,;|(\[])(?P<key>[A-Za-z_@][\w.@/-]*+)=
    (?P<value>"(?:[^"\\]|\\.)*+(?:"|\Z)|'[^']*+'|\[[^\[\]]*+\]|\{[^{}]*+\}
        |(?![=>~\s])(?:[^\s",;]++|[,;](?!\s|[A-Za-z_][\w.@/-]*+=))++|(?=\s+[\w.@-]++=|\s*\Z))(?=[\s,;)\]|&]|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_SQL_VERB = re.compile(r"\b(?:SELECT|UPDATE|INSERT|DELETE|select|insert into|delete from)\b")
_SQL_REST = re.compile(r"\b(?i:from|set|into|where)\b")
_FORM = re.compile(r"&[\w.-]+=")
"""The body of a form: its first key is no key of the line."""
_CLOSERS = {")": "(", "]": "[", "}": "{"}


def _pairs_of(texts: list[str], heads: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The key=value pairs of each line. Where pairs end a line with a head, its `msg` is cut to what stands before."""
    found: list[dict[str, str]] = [{} for _ in texts]
    candidates = [i for i, text in enumerate(texts) if "=" in text]
    if not candidates:
        return found
    sample = candidates[:: max(1, len(candidates) // _SAMPLE)]
    looked = {i: list(_pairs(texts[i])) for i in sample}
    total = len([text for text in texts if text.strip()])
    share = len(candidates) / total
    counts = Counter(key for pairs in looked.values() for key in {key for key, *_ in pairs})
    shared = {key for key, count in counts.items() if count * share >= len(sample) / 2 and count >= 2}
    several = total >= 5 and sum(len(pairs) >= 2 for pairs in looked.values()) * share >= len(sample) / 2
    for i in candidates:
        text = texts[i]
        pairs = looked[i] if i in looked else list(_pairs(text))
        if not pairs or not (heads[i] or _outside_code(text[: pairs[0][2]])):
            continue
        if len(pairs) < 2 or not (heads[i] or several or _nothing_else(text, pairs)):
            pairs = [pair for pair in pairs if pair[0] in shared]
        elif (verb := _SQL_VERB.search(text)) and _SQL_REST.search(text, verb.end()):
            pairs = [pair for pair in pairs if pair[2] < verb.start()]
        for key, value, *_ in pairs:
            found[i].setdefault(_TAKEN.get(key, key), value)
        if pairs and "msg" in heads[i]:
            before = text[: pairs[0][2]]
            if not before.endswith(("(", "[")) and _nothing_else(text[len(before) :], pairs, len(before)):
                heads[i]["msg"] = before.strip()
                if not heads[i]["msg"]:
                    del heads[i]["msg"]
    every = Counter(key for item in found for key in item)
    if len(every) > _MAX_KEYS:
        kept = {key for key, _ in every.most_common(_MAX_KEYS)}
        found = [{key: value for key, value in item.items() if key in kept} for item in found]
    return found


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
    (?P<value>"(?:[^"\\]|\\.)*+"(?=[ ]-[ ]|,[ ]|\s*\Z)|(?:[^"\n,\ ]++|,(?![ ])|[ ](?!-[ ]))++)""",
    re.VERBOSE,
)


def _labelled_of(texts: list[str], heads: list[dict[str, Any]], pairs: list[dict[str, str]]) -> list[dict[str, str]]:
    """`Name: value` pieces between dashes or commas, behind heads; half of the lines hold two of a set of names."""
    found: list[dict[str, str]] = [{} for _ in texts]
    candidates = [i for i, text in enumerate(texts) if ": " in text and heads[i] and not pairs[i]]
    sample = candidates[:: max(1, len(candidates) // _SAMPLE)]
    looked = [{match["key"] for match in _LABELLED.finditer(texts[i])} for i in sample]
    counts = Counter(key for keys in looked if len(keys) > 1 for key in keys)
    names = {key for key, count in counts.items() if count >= max(3, len(sample) // 50)}
    if not names or 2 * sum(len(keys & names) > 1 for keys in looked) < len(sample):
        return found
    for i in candidates:
        pieces = [(match["key"], match["value"]) for match in _LABELLED.finditer(texts[i])]
        for key, value in pieces if len(pieces) > 1 else ():
            if key in names:
                found[i].setdefault(_TAKEN.get(key, key), value[1:-1] if value[0] == '"' else value.strip())
    return found


def _document(text: str) -> Any | None:
    """The document that is written into a line with its quotes escaped, as in `body {\\"a\\": 1} sent`."""
    match = ESCAPED_START.search(text)
    found = read_escaped(text, match.start()) if match else None
    return found[0] if found else None


_SERIES = re.compile(
    r'(?P<name>[a-zA-Z_:][\w:.]*+)?(?:\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*+")*+)\})?[ \t]+'
    r"(?P<value>[+-]?(?:\d[\d.]*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|0x[\da-fA-F]+|[Ii]nf(?:inity)?|NaN|nan))"
    r"(?:[ \t]+(?P<timestamp>-?\d+(?:\.\d+)?))?(?:[ \t]+#[ \t]*(?P<exemplar>\{.*))?\s*\Z"
)
_LABEL = re.compile(
    r'\s*(?:(?P<name>[a-zA-Z_][\w.]*+)|"(?P<quoted>(?:[^"\\]|\\.)*+)")\s*(?:=\s*"(?P<value>(?:[^"\\]|\\.)*+)")?\s*,?'
)
_COMMENT = re.compile(r"#\s*(?P<what>TYPE|HELP|UNIT)\s+(?P<metric>\S+)(?:\s+(?P<said>.*?))?\s*\Z")


def _is_exposition(sample: list[str]) -> bool:
    told = sum(bool(_COMMENT.match(text)) for text in sample)
    series = [match for text in sample if text[:1] != "#" and (match := _SERIES.match(text.rstrip("\r")))]
    plain = sum(text[:1] != "#" for text in sample)
    certain = told or any(match["labels"] for match in series)
    return bool(certain) and 10 * len(series) >= 9 * plain and told + len(series) >= 2


def _exposition(text: str) -> dict[str, Any] | None:
    """A line of Prometheus or OpenMetrics exposition text."""
    if text[:1] == "#":
        if not (match := _COMMENT.match(text)):
            return None
        what = match["what"].lower()
        said = match["said"] or ""
        return {"metric": match["metric"], what: unescaped(said) if what == "help" else said}
    if not (match := _SERIES.match(text)):
        return None
    name, labels = match["name"], {}
    if inner := match["labels"]:
        at = 0
        while at < len(inner) and (label := _LABEL.match(inner, at)) and label.end() > at:
            key = label["name"] or unescaped(label["quoted"] or "")
            if label["value"] is not None:
                labels[key] = unescaped(label["value"])
            elif name is None:
                name = key
            at = label.end()
    found: dict[str, Any] = {"name": name or labels.get("__name__", ""), "labels": labels, "value": match["value"]}
    for key in ("timestamp", "exemplar"):
        if match[key] is not None:
            found[key] = match[key]
    return found
