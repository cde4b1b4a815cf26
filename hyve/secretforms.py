"""How secrets look in a text, and what stands before them.

The patterns are our own: detect-secrets, the best known package of them, gives no positions, takes passwords without
quotes for nothing and every word for a secret, and brings an HTTP client along (measured in the project's decisions).
Each begins at one of a few fixed texts (`places` finds these in one pass) and repeats within bounds.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from hyve.secretfields import Span
from hyve.secretnames import METHODS, keeps, likely

LABELS: Final = ("password", "key", "token", "private_key", "cookie", "email", "ip", "literal")
"""What placeholders are called after; `literal` stands for text that looks like one."""

PLACEHOLDER = re.compile(rf"<({'|'.join(LABELS)})_(\d{{1,9}})>", re.IGNORECASE)

AT = ("@", "%40", "%2540", "&#64;", "&#x40;", "&commat;", r"\u0040")
"""How the sign of an e-mail address is written: as it is, in a URL (within another one, too), in HTML, in JSON."""
_MAILED = (
    rf"(?=[@%&\\])(?:{'|'.join(map(re.escape, AT))})"
    # a name with a letter behind its last dot (IDN, too), or an address, as it is or in brackets
    r"(?:(?:[\w-]{1,63}+\.){1,8}(?:xn--[a-zA-Z0-9-]{2,59}+|[^\W\d_]{2,24}+)(?!-|[^\W_])"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)|\[(?:IPv6:)?[0-9a-fA-F:.]{3,45}\])"
)
EMAIL = re.compile(rf"(?<![\w.+-])[\w.+-]{{1,64}}+(?:[%'](?!(?<=%)(?:25)?40)[\w.+-]{{0,64}}+){{0,8}}+{_MAILED}")
EMAIL_OF_OTHER = re.compile(rf"""(?:"[^"<>\r\n]{{1,64}}"|\#){_MAILED}""")
"""Of a user in quotes, or one that a template of log lines has a variable for."""
_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
IP = re.compile(
    rf"(?<![\w.])(?:{_IPV4}|(?<!:)[0-9a-fA-F]{{0,4}}+:(?:[0-9a-fA-F]{{0,4}}:){{1,6}}"
    rf"(?:{_IPV4}|(?:[0-9a-fA-F]{{1,4}}|(?<=::))(?![\w:]|\.\d)))"
)
"""Addresses of IPv4 and IPv6, the latter with one of the former in it, too. What looks like one may be none."""


@lru_cache(maxsize=4096)
def address_in(text: str) -> int:
    """Where the address begins that `text`, found by `IP`, ends with: `12:30:10.1.2.3` is none, but has one. Its length
    where it has none."""
    for start in (0, text.rfind(":") + 1):
        with suppress(ValueError):
            ipaddress.ip_address(text[start:])
            return start
    return len(text)


class _Form(NamedTuple):
    """A pattern of secrets and how their text begins, in small letters; group 1 is the secret, if there is one."""

    label: str
    begins: tuple[str, ...]
    pattern: re.Pattern[str]


def _short(words: str) -> list[str]:
    """Words that are part of many others, with what may follow a name."""
    return [word + sign for word in words.split() for sign in "\"'\\=:,;|\t\r\n"]


_WORDS = {
    "password": [
        *["password", "passwd", "passphrase", "passcode", "pwd", "pass", "secret", "credential"],
        *["requirepass", "masterauth", "bindpw"],
        *_short("pin otp"),
    ],
    "key": [
        f"{word}{joint}key"
        for word in (
            "api",
            "access",
            "secret",
            "private",
            "auth",
            "account",
            "sharedaccess",
            "encryption",
            "signing",
            "license",
        )
        for joint in ("", "_", "-", ".")
    ]
    + ["client-key-data", "client_key_data", "clientkeydata"],
    "token": [*["token", "jwt", "sig", "authorization", "x-amz-signature", "x-goog-signature"], *_short("bearer csrf")],
    "cookie": ["set-cookie", "cookie", "session_id", "sessionid", "session-id"],
}
ASSIGNED = re.compile(
    r"""(?:
    (?P<password>passw(?:or)?d|passphrase|passcode|pwd|secret|credentials?|otp|requirepass|masterauth|bindpw|(?<![\w.])pin
        |(?:(?<![a-z])pass|(?-i:(?<=[a-z])Pass))(?=["'\s:=]))(?![_.-]?key)
    |(?P<key>\w{3,12}?[_.-]?key(?:_base|[_.-]?data)?(?!s|[_.-]?id))
    |(?P<token>x-(?:amz|goog)-signature|token|jwt|bearer|csrf|(?<=[?&;"'])sig(?=["'=])|authorization)
    |(?P<cookie>(?<![a-z])(?:set-)?cookie|session[_-]?id)
    )(?:[_-](?:hash|value))?+
    \\{0,7}+(?P<quote>["'\])]{0,2}+)
    (?:\s{0,4}+(?P<sign>=>|:=|[:=])\s{0,4}+
    |(?P<yaml>[ \t]{0,4}+(?:\r?\n|\\{1,7}n)[ \t]{0,200}+value:[ \t]{1,4}+)
    |\s{1,8}+value\s{0,2}+=\s{0,2}+(?=\\{0,7}["'])
    |\s{0,4}+,\s{0,4}+\\{0,7}+"(?:parameter)?value\\{0,7}+"\s{0,4}+:\s{0,4}+(?:\{\s{0,4}+\\{0,7}+"stringValue\\{0,7}+"\s{0,4}+:\s{0,4}+)?+
    |(?P<option>\s{1,4}+(?!-)|\s{0,4}+,\s{0,4}+(?=\\{0,7}["'])(?!\\{0,7}["']-)
        |[ \t]{0,4}+\r?\n[ \t]{0,200}+-[ \t]{1,4}+(?!-)))
    (?:"(?:SCHEME)?+(?P<double>(?:[^"\\]|\\.)++)(?:"|\Z)
    |'(?:SCHEME)?+(?P<single>(?:[^'\\]|\\.)++)(?:'|\Z)
    |(?P<escape>\\{1,7}+)"(?:SCHEME)?+(?P<escaped>[^"\\]{1,4000}+)(?:(?P=escape)"|\\*\Z)
    |(?(yaml)(?P<line>[^\r\n"'\\|>][^\r\n\\]{0,4000}+)|\Z(?<!\Z))
    |(?:SCHEME)?+(?P<bare>(?![\[{(]|<set\s+to\s)[^\s,;&"'\\|]{1,4000}+))""".replace(
        "SCHEME", r"(?:bearer|basic|digest|token|apikey|negotiate)\s{1,4}"
    ),
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""A name, its quote (escaped or not), a sign, and the value, which ends with its quotes or the text. A name
may also be that of a pair, {"name": ..., "value": ...}, as environments, OTLP's attributes and XML have it, or an
option before its value."""
PAIRED = re.compile(
    r"""value(?P<level>\\{0,15}+)"\s{0,4}+:\s{0,4}+(?P=level)"([^"\\]{1,4000}+)(?P=level)"\s{0,4}+,\s{0,20}+
    (?P=level)"(?:name|key)(?P=level)"\s{0,4}+:\s{0,4}+(?P=level)"(?P<name>[^"\\]{1,200}+)(?P=level)\"""",
    re.VERBOSE,
)
"""A pair with the value first."""
OPENED = re.compile(r"[a-z][\w-]{2,60}?(?P<level>\\{0,15}+)(?P<mark>[\"'])\s{0,4}+:\s{0,20}+(?=[\[{])", re.IGNORECASE)
"""The name of a field that holds an object or a list."""
BELOW = re.compile(
    r"[a-z][\w.-]{2,60}+[\"']?:[ \t]{0,20}+(?:[|>][+-]?\d?[ \t]{0,20}+)?\r?\n(?=[ \t\r\n]{0,400}[\w\"'-])",
    re.IGNORECASE,
)
"""The name of a field of YAML whose value stands below it."""
LIKELY = re.compile(
    r"""(?:_KEY|AUTH)\\{0,7}+["']?+
    (?:\s{0,4}+[:=]\s{0,4}+
    |\s{0,4}+,\s{0,4}+\\{0,7}+"[Vv]alue\\{0,7}+"\s{0,4}+:\s{0,4}+
    |[ \t]{0,4}+\r?\n[ \t]{0,200}+value:[ \t]{1,4}+)
    (?:\\{0,7}+["'])?+(?P<value>[^\s,;&"'\\|<>]{8,400}+)""",
    re.VERBOSE,
)
"""A name of an environment's variable that may keep a secret, and its value, which tells whether it does."""
DSN = re.compile(r"@(?:tcp[46]?|unix)\(", re.IGNORECASE)
"""What stands behind the user and the password of a connection, as Go's drivers spell it."""
DIGEST = re.compile(r"response=(?P<level>\\{0,7}+)\"([^\"\\]{1,400}+)(?P=level)\"", re.IGNORECASE)
"""The answer in a header of digest authentication, if it is one."""
_HOLDERS = "auth passw passphrase passcode pwd secret credential token cookie key bearer otp"


def _form(
    label: str, begins: str | tuple[str, ...], rest: str, before: str = r"(?<![A-Za-z0-9])", flags: int = 0
) -> _Form:
    words = tuple(begins.lower().split()) if isinstance(begins, str) else begins
    return _Form(label, words, re.compile(before + rest, flags))


_I = re.IGNORECASE
_ODD = r"(?=[^\s\"'\\]{0,200}?[\d!@#$%^&*+=~])"
"""No plain word follows."""
_NO_METHOD = rf"(?![\w-]{{0,40}}?(?i:{METHODS}))"
"""No way to log in follows."""
_FORMS = (
    _form("literal", " ".join(f"<{label}_" for label in LABELS), PLACEHOLDER.pattern, "", _I),
    _form(
        "private_key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        "",
    ),
    _form(
        "cookie",
        "cookie: set-cookie:",
        r"(?:set-)?cookie:\s{0,4}+((?=[^\s=;,\"'\\]{1,200}=)[^\r\n\"'\\]{3,4000}+)",
        r"(?<![\w-])",
        _I,
    ),
    _form("token", "eyJ", r"eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}", r"(?<![\w-])"),
    _form("password", "://", r"://[^\s:/@\"'<>\\]{0,128}:([^\s/\"'<>\\]{1,256})@", ""),
    _form("password", "password> passphrase> secret> token>", r"\w{5,10}>([^<>]{1,4000}+)</", "", _I),
    _form("key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
    _form("key", "AIza", r"AIza[\w-]{35,}+"),
    _form("key", "LTAI", r"LTAI[A-Za-z0-9]{12,26}+"),
    _form("key", "sk_live sk_test rk_live rk_test pk_live pk_test", r"[a-z]{2}_(?:live|test)_[A-Za-z0-9]{10,}+"),
    _form("key", "sk-", r"sk-(?:[a-z]{2,12}-)?[\w-]{20,}+"),
    _form("key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _form("key", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    _form("key", "dapi", r"dapi[0-9a-f]{32}"),
    _form("token", "ghp_ gho_ ghs_ ghu_ ghr_", r"gh[opsur]_[A-Za-z0-9]{30,}+"),
    _form("token", "github_pat_ dckr_pat_", r"(?:github|dckr)_pat_[\w-]{20,}+"),
    _form("token", "glpat- gldt- glrt- glcbt- glptt- glagent- glsoat-", r"gl[a-z]{2,5}-[\w-]{20,}+"),
    _form("token", "glsa_ glc_", r"gl(?:sa|c)_[\w=]{30,}+"),
    _form("token", "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xapp-", r"(?:xox[a-z]|xapp)-[\w-]{10,}+"),
    _form("token", "ya29.", r"ya29\.[\w-]{20,}+"),
    _form("token", "gsk_ whsec_", r"(?:gsk|whsec)_[A-Za-z0-9+/=]{20,}+"),
    _form("token", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}+"),
    _form("token", "sq0csp- sq0atp- sq0idp-", r"sq0[a-z]{3}-[\w-]{22,}+"),
    _form("token", "nvapi-", r"nvapi-[\w-]{30,}+"),
    _form("token", ":AA", r":(AA[\w-]{32,36}+)(?![\w-])", r"(?<=\d{8})"),
    _form("token", "npm_ hf_", r"(?:npm|hf)_[A-Za-z0-9]{30,}+"),
    _form("token", "pypi-", r"pypi-[\w-]{40,}+"),
    _form("token", "dop_v1_", r"dop_v1_[0-9a-f]{64}"),
    _form("token", "shpat_ shpca_ shppa_ shpss_", r"shp[a-z]{2}_[0-9a-fA-F]{32}"),
    _form("token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,}+"),
    _form("token", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _form("token", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/([\w/-]{10,200}+)", "", _I),
    _form("token", "api/webhooks/", r"api/webhooks/\d{5,30}/([\w-]{20,200}+)", "", _I),
    _form("token", "bearer", r"bearer\s{1,4}((?=[\w.~+/=-]{0,60}?\d)[\w.~+/-]{8,4000}+=*+)", r"(?<!\w)", _I),
    _form("token", "basic", r"basic\s{1,4}((?=[a-z+/]{0,60}?[\d=])[a-z0-9+/]{8,4000}+=*+)", r"(?<!\w)", _I),
    _form("password", "mysql mariadb", r"(?:mysql|mariadb)[\w-]{0,12}+[^\r\n|;]{0,200}?[\s\"']-p([^\s\"'\\]{1,200}+)"),
    _form(
        "password",
        "sshpass redis-cli mongo",
        r"(?:sshpass|redis-cli|mongo\w{0,8})\s(?:[^\r\n|;]{0,200}?\s)?-[pa]\s?([^\s\"'\\-][^\s\"'\\]{0,200}+)",
    ),
    _form("password", "sqlcmd", r"sqlcmd\s(?:[^\r\n|;]{0,200}?\s)?-P\s?([^\s\"'\\-][^\s\"'\\]{0,200}+)"),
    _form(
        "password",
        tuple(
            f"{tool} login " for tool in ("docker", "podman", "nerdctl", "buildah", "skopeo", "registry", "oc", "az")
        ),
        r"\w{2,8} login\s(?:[^\r\n|;]{0,200}?\s)?-p[ =]?([^\s\"'\\-][^\s\"'\\]{0,200}+)",
    ),
    _form("password", "jdbc:oracle:", r"jdbc:oracle:\w{2,6}:[^\s/@:\"'<>\\]{1,128}/([^\s@\"'<>\\]{1,256}+)@", flags=_I),
    _form(
        "password",
        ("password '", "password('", "password ('", "password( '", "d by '"),
        r"(?:password|(?:(?<=identifie)|(?<=passwor))d\sby)\s?\(?\s?'((?:[^\s'\\]|'')++)'",
        "",
        _I,
    ),
    _form(
        "password",
        ('password "', "password \\", 'd by "', "d by \\"),
        r"(?:(?:(?<=encrypted )|(?<=with ))password|(?:(?<=identifie)|(?<=passwor))d\sby)"
        r"\s?\\{0,7}\"([^\s\"\\]{1,400}+)",
        "",
        _I,
    ),
    _form(
        "password",
        "requirepass masterauth bindpw",
        rf"(?:requirepass|masterauth|bindpw)[ \t]{{1,8}}+[\"']?+(?:{_ODD}([^\s\"'\\,;]{{3,400}}+)"
        r"|(?:(?<=\nrequirepass )|(?<=\nmasterauth ))([^\s\"'\\]{3,400}+)(?=[ \t]*(?:[\r\n]|\Z)))",
        "",
        _I,
    ),
    _form(
        "password",
        ("auth ", 'auth"', "auth\\"),
        r"AUTH[\"\\]{0,8}\s{1,2}(?:(?:default|PLAIN|LOGIN|\\{0,7}\"\w{1,64}\\{0,7}\")\s{1,2})?+[\"\\]{0,8}"
        rf"{_NO_METHOD}(?=[^\s\"'\\]{{0,200}}?\d)(?=[^\s\"'\\]{{0,200}}?[A-Za-z])([^\s\"'\\,;]{{4,400}}+)"
        r"(?=[\"\\]|[ \t]{0,20}+(?:[\r\n]|\Z))",
        r"(?<![\w-])",
    ),
    _form(
        "password",
        ("machine ", "default login "),
        r"(?:machine\s{1,20}+[^\s]{1,200}+|default)\s{1,20}+login\s{1,20}+[^\s]{1,200}+\s{1,20}+password\s{1,20}+"
        r"([^\s\"'\\]{1,400}+)",
    ),
    _form(
        "password",
        ("with password ", "with the password "),
        rf"with (?:the )?password\s{{1,4}}+[\"']?{_NO_METHOD}{_ODD}([^\s\"'\\,;]{{4,200}})"
        r"(?<![.:)\]}])(?=[\s\"'\\,;.:)\]}]|\Z)",
        flags=_I,
    ),
    _form("key", "://", r"://([0-9a-f]{32})@", ""),
    _form("password", "-u --user", r"(?:-u|--user)[ =][\"']?[\w.@-]{1,64}:([^\s\"'<>]{1,200}+)", r"(?<=\s)"),
)
"""What a secret's own form, or what stands at it, tells."""


def _automaton() -> tuple[AhoCorasick, tuple[tuple[str, re.Pattern[str]], ...]]:
    """Finds every place in a text in small letters where a secret may be told; and what to ask there."""
    asked: list[tuple[str, tuple[str, re.Pattern[str]]]] = [
        (begin, (form.label, form.pattern)) for form in _FORMS for begin in form.begins
    ]
    asked += [(word, (label, ASSIGNED)) for label, words in _WORDS.items() for word in words]
    asked += [(word, ("", pattern)) for word in _HOLDERS.split() for pattern in (OPENED, BELOW)]
    asked += [('value"', ("", PAIRED)), ("value\\", ("", PAIRED))]
    asked += [(word, ("", LIKELY)) for word in _short("_key auth") if word[-1] not in ";|\t"]
    asked += [(word, ("", DSN)) for word in ("@tcp(", "@tcp4(", "@tcp6(", "@unix(")]
    asked += [(word, ("", DIGEST)) for word in ('response="', "response=\\")]
    found = AhoCorasick([begin for begin, _ in asked], matchkind=MatchKind.Standard, implementation=Implementation.DFA)
    return found, tuple(ask for _, ask in asked)


_HINTS, _ASKED = _automaton()
"""Finds the fixed texts in small letters; and per text, the label and the pattern to match there."""
_COMMON = tuple(
    (said, said.replace(letter, "."))
    for said, letter in (('"key": "', "e"), ('"key":"', "e"), ('"value": {', "a"), ('"value":{', "a"), ('Value":', "a"))
)
"""What every attribute of OTLP has, and no pattern that is asked there takes: one behind `key` wants an object, a list
or a line's end, one behind `value` a text; and what the automaton passes over instead."""
_NO_NAME = re.compile(r"[^\w.-]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PRIVATE = 0x10F800 - 0xD800
"""From surrogates to characters that nobody uses."""


def places(text: str) -> list[tuple[int, str, re.Pattern[str]]]:
    """Where a secret may be told in a text, first what stands first, and as what by which pattern."""
    told = text
    for said, instead in _COMMON if "stringValue" in text else ():
        told = told.replace(said, instead)
    small = told.lower()
    if len(small) != len(text):  # the one letter that becomes two
        small = told.replace("İ", ".").lower()
    found = _HINTS.find_matches_as_indexes(searchable(small), overlapping=True)
    return [(start, *_ASKED[which]) for start, which in sorted((start, which) for which, start, _ in found)]


def searchable(text: str) -> str:
    """A text as an automaton takes it, of the same length: without lone surrogates, which UTF-8 does not have."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: chr(ord(match[0]) + _PRIVATE), text)


def name_before(text: str, place: int) -> str:
    """What of a name stands before a place."""
    before = text[max(0, place - 64) : place]
    return "" if _NO_NAME.match(before[-1:]) else _NO_NAME.split(before)[-1]


def before_or_behind(text: str, match: re.Match[str], last: int) -> Span | None:
    """A secret that what stands before the match tells, or that stands there; no farther back than `last`."""
    place = match.start()
    line = text[max(last, place - 400) : place]
    if match.re is LIKELY:
        value = match["value"].rstrip(")]}")
        said = likely(re.split(r"[.-]", name_before(text, place) + match[0][:4])[-1], value)
        return Span(match.start("value"), match.start("value") + len(value), said) if said else None
    if match.re is DIGEST:
        return Span(*match.span(2), "token") if "digest" in re.split(r"[\r\n]", line)[-1].lower() else None
    _, colon, password = re.split(r"[\s\"'\\<>]", line)[-1].partition(":")
    return Span(place - len(password), place, "password") if colon and keeps("password", password) else None
