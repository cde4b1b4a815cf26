"""Secrets out of what a model sees, and back into what comes from it.

    redactor = Redactor()
    shown = redactor.mask("login with password=hunter2!")      # "login with password=<password_1>"
    redactor.unmask(shown)                                      # as it was

Rules:
- The store keeps the truth. Only what is shown is masked, before it is cut or counted, so no piece of a secret is left.
- A secret is known by its form (keys of the large vendors, JWT, PEM, credentials in a URL), by the name before it
  (`password=`, `"api_key": "..."`, `Authorization:`), or by the name of its column or field. What only looks random is
  none: telemetry is full of ids.
- One secret has one placeholder in a request, wherever it stands: without its name too, unless it is a plain word or a
  short number. Text that looks like a placeholder is masked itself, so `unmask(mask(text)) == text` for every text.
- A model's SQL is unmasked within its quotes. An answer is unmasked but for the kinds that `keep` names.
- Time is linear in the text: patterns begin at a word's start or a fixed text, and repeat within bounds.

The patterns are our own: detect-secrets, the best known package of them, gives no positions, takes passwords without
quotes for nothing and every word for a secret, and brings an HTTP client along (measured in the project's decisions).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from hyve.errors import InputError
from hyve.strictjson import Pairs

KINDS: Final = ("secrets", "emails", "ips")
"""What can be masked."""
LABELS: Final = ("password", "key", "token", "private_key", "cookie", "email", "ip", "literal")
"""What placeholders are called after; `literal` stands for text that looks like one."""

_PLACEHOLDER = re.compile(rf"<({'|'.join(LABELS)})_(\d{{1,9}})>", re.IGNORECASE)


class _Form(NamedTuple):
    """A pattern of secrets and how their text begins, in small letters; group 1 is the secret, if there is one."""

    label: str
    begins: tuple[str, ...]
    pattern: re.Pattern[str]


_NAMES = {
    "password": r"pass(?:word|wd|phrase|code)?|pwd|secret|client_?secret|connection_?string",
    "key": r"(?:api|access|secret|private|auth|account|shared_?access|encryption|signing|master|storage)[_.-]?key",
    "token": r"(?:access|refresh|auth|bearer|session|csrf|id)?token|jwt|sig|authorization",
    "cookie": r"(?:set-)?cookie|session_?id",
}
_NAME = re.compile(
    "|".join(rf"(?P<{label}>(?:.*[^a-z])?(?:{names})(?:_(?:ts|num|hash|value))?)" for label, names in _NAMES.items()),
    re.IGNORECASE,
)
"""Names of fields and columns whose values are secrets, split at capitals before."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_WORDS = {
    "password": "password passwd passphrase passcode pwd pass secret",
    "key": " ".join(
        f"{word}{joint}key"
        for word in ("api", "access", "secret", "private", "auth", "account", "sharedaccess", "encryption", "signing")
        for joint in ("", "_", "-", ".")
    ),
    "token": "token jwt sig authorization",
    "cookie": "set-cookie cookie session_id sessionid session-id",
}
_ASSIGNED = re.compile(
    r"""(?:
    (?P<password>passw(?:or)?d|passphrase|passcode|pwd|secret
        |(?:(?<![a-z])pass|(?-i:(?<=[a-z])Pass))(?=["'\s:=]))(?![_.-]?key)
    |(?P<key>\w{3,12}?[_.-]?key(?!s|[_.-]?id))
    |(?P<token>token|jwt|(?<=[?&;"'])sig(?=["'=])|authorization)
    |(?P<cookie>(?<![a-z])(?:set-)?cookie|session[_-]?id)
    )(?:[_-](?:hash|value))?+
    \\{0,7}+["'\])]{0,2}+
    (?:\s{0,4}+(?:=>|:=|[:=])\s{0,4}+|(?<=--password)\s
    |\s{0,4}+,\s{0,4}+\\{0,7}+"value\\{0,7}+"\s{0,4}+:\s{0,4}+(?:\{\s{0,4}+\\{0,7}+"stringValue\\{0,7}+"\s{0,4}+:\s{0,4}+)?+)
    (?:"(?:SCHEME)?+(?P<double>(?:[^"\\]|\\.)++)(?:"|\Z)
    |'(?:SCHEME)?+(?P<single>(?:[^'\\]|\\.)++)(?:'|\Z)
    |(?P<escape>\\{1,7}+)"(?:SCHEME)?+(?P<escaped>[^"\\]{1,4000}+)(?:(?P=escape)"|\\*\Z)
    |(?:SCHEME)?+(?P<bare>(?![\[{(])[^\s,;&"'\\|]{1,4000}+))""".replace(
        "SCHEME", r"(?:bearer|basic|digest|token|apikey|negotiate)\s{1,4}"
    ),
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""A name, its quote (escaped or not), a sign, and the value, which ends with its quotes or the text. A name may also be
that of a pair, {"name": ..., "value": ...}, as environments and OTLP's attributes have it."""


def _form(label: str, begins: str, rest: str, before: str = r"(?<![A-Za-z0-9])", flags: int = 0) -> _Form:
    return _Form(label, tuple(begins.lower().split()), re.compile(before + rest, flags))


_I = re.IGNORECASE
_FORMS = (
    _form("literal", " ".join(f"<{label}_" for label in LABELS), _PLACEHOLDER.pattern, "", _I),
    _form(
        "private_key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        "",
    ),
    _form("cookie", "cookie: set-cookie:", r"(?:set-)?cookie:\s{0,4}+([^\r\n\"'\\]{3,4000}+)", r"(?<![\w-])", _I),
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
    _form("password", "-u --user", r"(?:-u|--user)[ =][\"']?[\w.@-]{1,64}:([^\s\"'<>]{1,200}+)", r"(?<=\s)"),
)
"""What a secret's own form, or what stands at it, tells."""


def _automaton() -> tuple[AhoCorasick, tuple[tuple[str, re.Pattern[str]], ...]]:
    """Finds every place in a text in small letters where a secret may be told; and what to ask there."""
    begins: dict[str, tuple[str, re.Pattern[str]]] = {}
    for form in _FORMS:
        begins |= dict.fromkeys(form.begins, (form.label, form.pattern))
    for label, words in _WORDS.items():
        begins |= dict.fromkeys(words.split(), (label, _ASSIGNED))
    return AhoCorasick(begins, matchkind=MatchKind.Standard), tuple(begins.values())


_HINTS, _ASKED = _automaton()
_CAPITALS = re.compile("[A-Z]+")
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])")
_IP = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)|(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}(?:[0-9a-fA-F]{1,4}|(?<=::))(?![\w:])"
)
_EMPTY = re.compile(
    r"(?i)\s*|null|none|nil|true|false|undefined|n/?a|yes|no|\*+|x{3,}|\.{2,}|-+|<[\w -]*>|\[[\w -]*\]|%\w?|\?"
    r"|\$\{?[\w.:-]+\}?"
)
"""Values that keep no secret: nothing, what is masked already, names of variables."""
_RUN = re.compile(r"\w*\d\w*(?:[-.:/]\w*\d\w*)*")
_CRUMB = re.compile(r"=([^;,\s]{8,})(?=[;,\s]|\Z)")
_FEW = 8
_SHORT, _LONG, _LONGEST = 4, 8, 4_000
_PIECED = 500
_PIECE = 6
"""Pieces of a secret with a digit, as templates of log lines take them apart, are masked from this length on."""


def _in_word(text: str, place: int) -> bool:
    """Whether a word goes on across a place."""
    return 0 < place < len(text) and all(char.isalnum() or char == "_" for char in text[place - 1 : place + 1])


class Redactor:
    """The placeholders of one request."""

    def __init__(self, kinds: Iterable[str] = ("secrets",), keep: Iterable[str] = ()) -> None:
        """`kinds`: some of `KINDS`. `keep`: those of `LABELS` that stay masked in answers. Raises `InputError`."""
        self.kinds, self.keep = frozenset(kinds), frozenset(keep)
        for given, known in ((self.kinds, KINDS), (self.keep, LABELS)):
            if unknown := sorted(given.difference(known)):
                raise InputError(f"{unknown[0]!r} can't be masked: there are {', '.join(known)}")
        self._placeholders: dict[str, str] = {}
        self._secrets: dict[str, str] = {}
        self._everywhere: dict[str, str] = {}
        self._exact: dict[str, str] = {}
        self._automaton: AhoCorasick | None = None

    def mask(self, text: str) -> str:
        """`text` with a placeholder for each secret."""
        return self.mask_all([text])[0]

    def mask_all(self, texts: Sequence[str]) -> list[str]:
        """Each text masked; what one of them tells to be a secret is masked in all, and texts that are learnt ones."""
        if len(texts) > _FEW and not self._may_hold("\n".join(texts)):
            return list(texts)
        told = [self._exact.get(text) or self._mask_told(text) for text in texts]
        return list(map(self._mask_known, told))

    def _mask_told(self, text: str) -> str:
        """Masks what its form or a name before it tells to be a secret."""
        parts: list[str] = []
        last = 0
        for place, label, pattern in self._places(text):
            match = pattern.match(text, place) if place >= last else None
            if match is None:
                continue
            group: int | str = 0 if label == "literal" else match.lastindex or 0
            if pattern is _ASSIGNED:
                group = next(name for name in ("double", "single", "escaped", "bare") if match[name] is not None)
                label = next(name for name in _NAMES if match[name] is not None)
            secret = match[group]
            value = secret.rstrip(")]}") if group == "bare" else secret
            if label != "literal" and (_EMPTY.fullmatch(value) or (label in ("token", "cookie") and value.isdigit())):
                continue  # nothing, or a count of tokens or sessions
            start, end = match.span(group)
            parts += self._escape(text[last:start]), self._of(label, secret)
            last = end
        text = "".join([*parts, self._escape(text[last:])])
        if "emails" in self.kinds and "@" in text:
            text = _EMAIL.sub(lambda match: self._of("email", match[0]), text)
        if "ips" in self.kinds:
            text = _IP.sub(self._address, text)
        return text

    def _may_hold(self, text: str) -> bool:
        """Whether there may be anything to mask: quickly told for many short texts together."""
        if self.kinds - {"secrets"} or self._everywhere or self._exact:
            return True
        return bool(_PLACEHOLDER.search(text)) or any(pattern.match(text, at) for at, _, pattern in self._places(text))

    def _places(self, text: str) -> list[tuple[int, str, re.Pattern[str]]]:
        """Where a secret may be told in a text, first what stands first, and as what by which pattern."""
        if "secrets" not in self.kinds:
            return []
        small = text.lower()
        if len(small) != len(text):  # some letters become two
            small = _CAPITALS.sub(lambda match: match[0].lower(), text)
        found = _HINTS.find_matches_as_indexes(small, overlapping=True)
        return [(start, *_ASKED[which]) for start, which in sorted((start, which) for which, start, _ in found)]

    def _escape(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._of("literal", match[0]), text) if "<" in text else text

    def _mask_known(self, text: str) -> str:
        """Masks what is known to be a secret from elsewhere."""
        if not self._everywhere:
            return text
        if self._automaton is None:
            self._automaton = AhoCorasick(
                self._everywhere, matchkind=MatchKind.LeftmostLongest, implementation=Implementation.ContiguousNFA
            )
        parts: list[str] = []
        last = 0
        for start, end in self._matches(text):
            parts += text[last:start], self._everywhere[text[start:end]]
            last = end
        return "".join([*parts, text[last:]])

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where known secrets stand in `text`, outside of placeholders."""
        assert self._automaton is not None
        taken = [match.span() for match in _PLACEHOLDER.finditer(text)] if "<" in text else []
        last = 0
        for before, after in [*taken, (len(text), len(text))]:
            for _, start, end in self._automaton.find_matches_as_indexes(text[last:before]):
                if end - start >= _LONG or not (_in_word(text, last + start) or _in_word(text, last + end)):
                    yield last + start, last + end
            last = after

    def mask_value(self, value: Any, name: str = "") -> Any:
        """A value of JSON with its secrets masked; `name` is the field or column that it stands in."""
        if isinstance(value, str):
            label = self.label(name)
            if label and not _EMPTY.fullmatch(value):
                return self._of(label, value)
            return self.mask(value)
        if isinstance(value, Pairs):
            return Pairs((self.mask_value(key), self.mask_value(inner, str(key))) for key, inner in value)
        if isinstance(value, Mapping):
            named = value.get("key", value.get("name")) if "value" in value else None
            pair = named if isinstance(named, str) and self.label(named) else ""
            return {
                self.mask_value(key): self.mask_value(inner, pair if key == "value" and pair else str(key))
                if not (pair and isinstance(inner, dict))
                else {kind: self.mask_value(held, pair) for kind, held in inner.items()}
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(self.mask_value(inner, name) for inner in value)
        if isinstance(value, int | float) and not isinstance(value, bool) and self.label(name) == "password":
            return self._of("password", str(value))
        return value

    def label(self, name: str) -> str:
        """What the values of a field or column of this name are, "" where they are no secrets."""
        if not name or "secrets" not in self.kinds or len(name) > 200:
            return ""
        match = _NAME.fullmatch(_CAPITAL.sub("_", name))
        return str(match.lastgroup) if match else ""

    def unmask(self, text: str, *, keep: bool = False) -> str:
        """`text` with the secrets back; with `keep`, as an answer may show it."""
        return _PLACEHOLDER.sub(lambda match: self._back(match, keep), text) if "<" in text else text

    def unmask_value(self, value: Any, *, keep: bool = False) -> Any:
        """`unmask` of all texts in a value of JSON or a frozen dataclass."""
        if isinstance(value, str):
            return self.unmask(value, keep=keep)
        if isinstance(value, Mapping):
            return {
                self.unmask_value(key, keep=keep): self.unmask_value(inner, keep=keep) for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)(self.unmask_value(inner, keep=keep) for inner in value)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {
                field.name: self.unmask_value(getattr(value, field.name), keep=keep)
                for field in fields(value)
                if field.init
            }
            return replace(value, **changed)
        return value

    def unmask_sql(self, statement: str) -> str:
        """A model's statement with the secrets back: quotes in them doubled, and where no quotes are, put around."""
        if "<" not in statement:
            return statement

        def literal(match: re.Match[str]) -> str:
            text = match[0]
            quote = text[0]
            if quote in "'\"":
                inner = _PLACEHOLDER.sub(lambda found: self._back(found).replace(quote, quote * 2), text[1:-1])
                return f"{quote}{inner}{quote}"
            return "'" + self._back(match).replace("'", "''") + "'" if self._knows(text) else text

        return _SQL_PARTS.sub(literal, statement)

    @property
    def found(self) -> int:
        """How many placeholders there are."""
        return len(self._secrets)

    def _of(self, label: str, secret: str) -> str:
        placeholder = self._placeholders.get(secret)
        if placeholder is None:
            placeholder = f"<{label}_{len(self._placeholders) + 1}>"
            self._placeholders[secret] = placeholder
            self._secrets[placeholder] = secret
            if label not in ("literal", "email", "ip"):
                self._remember(label, secret, placeholder)
        return placeholder

    def learn(self, label: str, secret: str) -> None:
        """Has the value of a secret field masked where it stands alone, too."""
        if not _EMPTY.fullmatch(secret):
            self._exact.setdefault(secret, self._of(label, secret))

    def _remember(self, label: str, secret: str, placeholder: str) -> None:
        """Has a secret masked wherever it stands, if it is no word or number that means something else there."""
        if secret.isalpha() and (secret.islower() or len(secret) < _LONG) and len(secret) < 2 * _LONG:
            return
        if not (_LONG if secret.isdigit() else _SHORT) <= len(secret) <= _LONGEST:
            return
        self._everywhere[secret] = placeholder
        self._automaton = None
        for value in _CRUMB.findall(secret) if label == "cookie" else ():
            self._of(label, value)
        for piece in _RUN.findall(secret) if len(secret) <= _PIECED else ():
            if len(piece) >= _PIECE and piece not in self._placeholders and not piece.isdigit():
                self._of(label, piece)

    def _address(self, match: re.Match[str]) -> str:
        try:
            ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        return self._of("ip", match[0])

    def _knows(self, placeholder: str) -> bool:
        return placeholder.lower() in self._secrets

    def _back(self, match: re.Match[str], keep: bool = False) -> str:
        placeholder = match[0].lower()
        if keep and match[1].lower() in self.keep:
            return match[0]
        return self._secrets.get(placeholder, match[0])


_SQL_PARTS = re.compile(rf"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|{_PLACEHOLDER.pattern}", re.IGNORECASE)
