"""Which names tell that a secret follows, and which values keep none.

Rules:
- A name tells what its values are (`label_of`); names of references, of pages and of counts tell nothing. Some names
  leave it open, and the value tells (`likely`).
- A field that keeps secrets may hold an object or a list: all values in it are secrets but those of fields that name,
  place or count something (`inner_label`, `below`).
- A status is no secret ("expired"), nor is prose after a colon in free text ("token: connection refused").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NAMES: Final = {
    "password": r"(?:.*[^a-z])?(?:pass(?:word|wd|phrase|code)?s?|pwd|secrets?|client_?secret|connection_?string"
    r"|credentials?|otp(?:_?code)?|requirepass|masterauth|bindpw|auth[^a-z](?:basic|bearer|digest))|pin",
    "key": r"(?:.*[^a-z])?(?:(?:api|access|secret|private|auth|account|shared_?access|encryption|signing|master"
    r"|storage|licen[sc]e)[_.-]?keys?|secret_?key_?base|client[_.-]?key[_.-]?data)",
    "token": r"(?:.*[^a-z])?(?:(?:access|refresh|auth|bearer|session|csrf|id)?token|jwt|sig|x-(?:amz|goog)-signature"
    r"|authorization|bearer"
    r"|x?csrf)|(?:.*[^a-z])?(?:access|api|auth|bearer|csrf|id|refresh|service|session|user)_?tokens|tokens",
    "cookie": r"(?:.*[^a-z])?(?:(?:set-)?cookies?|session_?id)",
}
_NAME = re.compile(
    "|".join(rf"(?P<{label}>(?:{names})(?:_(?:ts|num|hash|value))?)" for label, names in NAMES.items()), re.IGNORECASE
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_REFERENCE = re.compile(
    r"(?:.*[^a-z])?(?:(?:next|prev|previous|page|paging|pagination|continuation|continue|cursor|resume|sync|delta"
    r"|lock|fencing|cancellation|idempotency|start|starting|stop|end|first|last|eos|bos|pad|unk|sep|mask)_?(?:page_?)?token"
    r"|image_?pull_?secrets?)",
    re.IGNORECASE,
)
"""Names of places in a list, of locks, and of other objects."""
_INNER = re.compile(
    r"(?:.*_)?(?:name|key|id|user|username|login|type|kind|path|mount|url|uri|host|hostname|port|namespace|ref|mode|size"
    r"|version|optional|at|in|on|time|ttl|scopes?|status|state|provider|issuer|alg|algorithm|method|scheme|description"
    r"|email|roles?|region|enabled|count|length|age|expiry|expires|expiration|created|updated|reason|domain|errors?|message|msg)",
    re.IGNORECASE,
)
"""Fields that say of a secret what it is called, where it is and how long it holds."""
_AUTH = re.compile(r"(?:.*[^a-z])?auth(?:entication)?", re.IGNORECASE)
_AUTHS = re.compile(r"registry_auths?|auths", re.IGNORECASE)
WAYS: Final = ("auth", "auths")
"""Held by an object of ways to log in, and by one of such objects, as Docker's configuration is."""
_VARIABLE = re.compile(r"[A-Z0-9_]{2,96}_KEY")
_FINDS = re.compile(
    "(?:.*_)?(?:CACHE|PARTITION|ROUTING|PRIMARY|SORT|SORTING|FOREIGN|IDEMPOTENCY|OBJECT|S3|PUBLIC|PUB|ROW|RECORD|HASH"
    "|SHARD|RANGE|GROUP|GROUPING|DEDUP|DEDUPLICATION|MESSAGE|MSG|EVENT|UNIQUE|INDEX|LOOKUP|LOCK|BUCKET|FILE|BLOB|MAP"
    "|REDIS|KAFKA|TRACE|SPAN|CORRELATION|REQUEST|ORDER|USER|TENANT|TOPIC|QUEUE|ISSUE|PROJECT|FEATURE|FLAG|HOST|NODE"
    "|CONFIG|LABEL|TAG|METRIC|SERIES|REGISTRY|JOIN|BUSINESS|NATURAL|SURROGATE|COMPOSITE|CANDIDATE|DISTRIBUTION|CLUSTER"
    "|CLUSTERING|ALERT|INCIDENT|AGGREGATION|TRANSLATION|BUILD|IMAGE|COMMIT|MENU|HOT)_KEY"
)
"""Keys by which something is found."""
_KEY = re.compile(r"(?=(?:.*?\d){2})(?=(?:.*?[A-Za-z]){3})[\w+/=~-]{16,400}", re.DOTALL)
_RUN = re.compile(r"[A-Za-z0-9]{12}")
METHODS: Final = r"oauth|oidc|saml|scram|cram|ntlm|krb|x509|md5|sha[-_]?\d|hs256|rs256|tls"
"""Ways to log in."""
_METHOD = re.compile(METHODS, re.IGNORECASE)
_CONNECTION = re.compile(r"(?:.*[^a-z])?connection_?string(?:_\w{1,8})?", re.IGNORECASE)
_AUTH_INNER = re.compile(r"basic|bearer|digest|value|raw|header|auth", re.IGNORECASE)
_WORKING = re.compile(r"(?:~|\.{0,2}/|[A-Za-z]:\\).*", re.DOTALL)
PAIR: Final = ("key", "name", "parameterkey")
VALUE: Final = ("value", "parametervalue")
"""Fields of a pair, in lower case: what its value is called, and how those begin that hold it."""
ALL: Final = "all"
"""Held by what keeps secrets only, whatever its fields are called."""
EMPTY: Final = re.compile(
    r"(?i)\s*|null|none|nil|true|false|undefined|n/?a|yes|no|\*+|x{3,}|\.{2,}|-+|<[\w -]*>|\[[\w -]*\]|%\w?|\?"
    r"|\$\{?[\w.:-]+\}?|\$\(\w+\)?|<set to the key .{0,400}"
)
"""Values that keep no secret: nothing, what is masked already, names of variables and of places of secrets."""
_WORD = (
    r"(?:(?:un|in)?authori[sz]ed|(?:in)?valid|incorrect|wrong|missing|empty|blank|null|none|required|expired|expiring|revoked"
    r"|rejected|refused|denied|forbidden|failed|failure|failing|errors?|ok|success(?:ful)?|succeeded|unknown|undefined|unset"
    r"|absent|unavailable|unreachable|timeout|disabled|mismatch(?:ed)?|malformed|unsupported|changed|updated|refreshed"
    r"|rotated|issued|(?:un)?verified|accepted|blocked|pending|inactive|omitted|redacted|hidden|masked|filtered|exceeded"
    r"|unexpected|eof|x509|include|same-origin|omit|not[\s_-](?:found|set|valid|provided|present|available|allowed|authori[sz]ed)|timed[\s_-]out"
    r"|too[\s_-](?:short|long|large|weak|old|many))"
)
_AFTER = r"(?:pass(?:word|wd)|token|secret|cookie|key|signature|grant|credentials|session|request)"
_FILLS = rf"(?:(?:must|be|is|was|has|been|are|cannot|not|or|{_AFTER})[\s_-])"
_STATUS = re.compile(
    rf"(?i){_FILLS}{{0,4}}{_WORD}(?:[\s_-]{_FILLS}{{0,4}}{_WORD}){{0,3}}(?:[\s_-]{_AFTER})?[.!:)\]}}]*"
)
_PLAIN = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|x509)[.!:)\]}]*")
_PROSE = re.compile(
    r"(?:'[a-z]{1,2})?[,;:]?[ \t]{1,4}(?!(?:user(?:name)?|login|host|email|role|db|database|port|id|name"
    r"|pass(?:word)?|token|url)[ \t]?[=:])[\"'(<]?[A-Za-z0-9/][^\s=]*+(?!=)",
    re.IGNORECASE,
)


def label_of(name: str) -> str:
    """What the values of a field or column of this name are, "" where they are no secrets."""
    return _label_of(name) if name and len(name) <= 200 else ""


@lru_cache(maxsize=4096)
def _label_of(name: str) -> str:
    match = _NAME.fullmatch(_CAPITAL.sub("_", name))
    return str(match.lastgroup) if match and not refers(name) else ""


def refers(name: str) -> bool:
    """Whether a name is one of places in a list, of locks, or of other objects."""
    return _refers(name[-200:])


@lru_cache(maxsize=4096)
def _refers(name: str) -> bool:
    return bool(_REFERENCE.fullmatch(_CAPITAL.sub("_", name)))


def held(name: str) -> str:
    """What an object or a list in a field of this name may hold: a label, or one of `WAYS`."""
    if said := label_of(name):
        return said
    if len(name) > 200:
        return ""
    split = _CAPITAL.sub("_", name)
    return "auths" if _AUTHS.fullmatch(split) else "auth" if _AUTH.fullmatch(split) else ""


def below(name: str, outer: str) -> str:
    """What an object or a list holds in a field of an object that holds `outer`, or in a list (then `name` is "")."""
    if outer == "auths":
        return label_of(name) or "auth"
    return (held(name) or inner_label(name, outer)) if name else outer


def may_keep(name: str) -> bool:
    """Whether a variable of this name may keep a secret, which its value tells: see `likely`."""
    return name == "AUTH" or bool(_VARIABLE.fullmatch(name) and not _FINDS.fullmatch(name))


def likely(name: str, value: str) -> str:
    """The label of a variable's value that looks like a key where the name leaves open whether it is one, else ""."""
    if not may_keep(name) or EMPTY.fullmatch(value):
        return ""
    if name == "AUTH":
        mixed = len(value) >= 8 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
        return "password" if mixed and " " not in value and not _METHOD.search(value) else ""
    if value[0] == "/" or ("/" in value and not set("+=") & set(value)):
        return ""  # a path
    return "key" if _KEY.fullmatch(value) and _RUN.search(value) else ""


def connects(name: str) -> bool:
    """Whether fields of this name tell how to connect: much of what they say is no secret."""
    return len(name) <= 200 and bool(_CONNECTION.fullmatch(_CAPITAL.sub("_", name)))


def inner_label(name: str, outer: str) -> str:
    """The label of a field in an object that holds what `outer` says."""
    if outer in WAYS:
        return label_of(name) or ("password" if outer == "auth" and _AUTH_INNER.fullmatch(name) else "")
    return label_of(name) or ("" if not outer or _INNER.fullmatch(_CAPITAL.sub("_", name[-200:])) else outer)


def keeps(label: str, value: str, name: str = "") -> bool:
    """Whether the value of a field keeps a secret: nothing, a status, a count of tokens and a folder do not."""
    if EMPTY.fullmatch(value) or (len(value) <= 80 and _STATUS.fullmatch(value)):
        return False
    if name.lower() in ("pwd", "oldpwd") and _WORKING.fullmatch(value):
        return False
    return not (label in ("token", "cookie") and value.isdigit())


def prose(text: str, value: str, end: int) -> bool:
    """Whether a value that stands without quotes after a colon in free text, and ends at `end`, begins a sentence."""
    return bool(_PLAIN.fullmatch(value) and _PROSE.match(text, end))
