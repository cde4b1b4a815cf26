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
- A model's SQL is unmasked within its quotes, and where it has none. An answer is unmasked but for the kinds that
  `keep` names.
- Time is linear in the text: patterns begin at a word's start or a fixed text, and repeat within bounds.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, Final

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from hyve.errors import InputError
from hyve.placeholders import each, in_sql, in_text, texts_of
from hyve.secretfields import (
    KEPT,
    KUBERNETES,
    LISTED,
    SECRET,
    Span,
    apart,
    csv_secrets,
    json_field,
    json_secrets,
    yaml_field,
    yaml_secrets,
)
from hyve.secretforms import (
    ASSIGNED,
    AT,
    BELOW,
    DIGEST,
    DSN,
    EMAIL,
    EMAIL_OF_OTHER,
    IP,
    LABELS,
    LIKELY,
    OPENED,
    PAIRED,
    PLACEHOLDER,
    address_in,
    before_or_behind,
    name_before,
    places,
    searchable,
)
from hyve.secretnames import (
    ALL,
    EMPTY,
    NAMES,
    PAIR,
    VALUE,
    WAYS,
    below,
    connects,
    held,
    inner_label,
    keeps,
    label_of,
    likely,
    may_keep,
    prose,
    refers,
)
from hyve.strictjson import Pairs
from hyve.templates import VARIABLE

KINDS: Final = ("secrets", "emails", "ips")
"""What can be masked."""
_CRUMB = re.compile(
    r"(?:\A|[;,\s])(?!(?:path|domain|expires|max-age|samesite|version|priority)=)[^=;,\s]{1,200}=([^;,\s]{6,})(?=[;,\s]|\Z)",
    re.IGNORECASE,
)
"""What a cookie keeps, not where and how long it does."""
_FEW, _SHORT, _LONG, _LONGEST = 8, 4, 8, 4_000
_KEPT_TEXTS = 4_000_000
"""Characters of texts that are kept with what they are masked to."""
_DIGESTS = ("Digest ", "digest ", "DIGEST ")
"""Parameters follow, of which one is a secret."""
_PIECED = 500
_PIECE = 6
"""Pieces of a secret with a digit, as templates of log lines take them apart, and what is left there of the secret, are
masked from this length on."""
_PLAIN = frozenset({int, float, bool, type(None)})
"""Types of values that keep no secret where no name says so."""
_CLIENT = re.compile(r"(?:.*/)?(?:mysql|mariadb)[\w-]{0,12}")


def _in_word(text: str, place: int) -> bool:
    """Whether a word goes on across a place."""
    return 0 < place < len(text) and all(char.isalnum() or char == "_" for char in text[place - 1 : place + 1])


def _likely(name: str, value: Any) -> str:
    return likely(name, value) if isinstance(value, str) else ""


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
        self._told_before: dict[str, str] = {}
        self._silent: frozenset[str] = frozenset()  # texts of the value that is masked now which tell of none
        self._room = _KEPT_TEXTS
        self._automaton: AhoCorasick | None = None

    def mask(self, text: str) -> str:
        """`text` with a placeholder for each secret."""
        return self.mask_known(self._exact.get(text) or self._mask_told(text))

    def mask_all(self, texts: Sequence[str]) -> list[str]:
        """Each text masked; what one of them tells to be a secret is masked in all, and texts that are learnt ones."""
        holding = self._holding(texts)
        told = [
            self._exact.get(text) or (self._mask_told(text) if i in holding else text) for i, text in enumerate(texts)
        ]
        return list(map(self.mask_known, told)) if self._everywhere else told

    def _mask_told(self, text: str) -> str:
        """Masks what its form, a name before it, or its place in a document tells to be a secret. That is the same each
        time, and a prompt is made again where it told of more secrets."""
        before = text if text in self._silent else self._told_before.get(text)
        if before is not None:
            return before
        told = self._without(text, self._told(text) if "secrets" in self.kinds else ())
        if "emails" in self.kinds and any(sign in told for sign in AT):
            for pattern in (EMAIL, EMAIL_OF_OTHER) if '"@' in told or "#@" in told else (EMAIL,):
                told = pattern.sub(lambda match: self._of("email", match[0]), told)
        if "ips" in self.kinds:
            told = IP.sub(self._address, told)
        if told != text and len(text) <= min(_LONGEST, self._room):
            self._told_before[text] = told
            self._room -= len(text)
        return told

    def _told(self, text: str) -> list[Span]:
        """Where secrets stand in a text, in order."""
        fields: list[Span] = []
        if KUBERNETES.search(text):
            fields += json_secrets(text) + yaml_secrets(text)
        spans: list[Span] = []
        last = read = line = 0
        for place, label, pattern in places(text):
            if place >= line:
                found, line = self._table(text, place)
                fields += found
            match = pattern.match(text, place) if place >= (read if pattern in (OPENED, BELOW) else last) else None
            if match is None:
                continue
            if pattern in (OPENED, BELOW):
                found, read = self._held_below(text, place, match)
                fields += found
                continue
            if pattern is PAIRED:
                if (said := label_of(match["name"]) or likely(match["name"], match[2])) and keeps(said, match[2]):
                    fields.append(Span(*match.span(2), said))
                continue
            if pattern is ASSIGNED:
                span = self._assigned(text, match)
            elif pattern in (LIKELY, DSN, DIGEST):
                span = before_or_behind(text, match, last)
            else:
                span = self._formed(label, match)
            if span is not None:
                spans.append(span)
                last = span.end
        if not fields:
            return apart(spans)
        fields = apart(fields)
        for start, end, label in fields:
            self._learn_field(label, text[start:end])
        starts = [span.start for span in fields]
        ends = [span.end for span in fields]
        return apart(
            [*fields, *(span for span in spans if bisect_right(ends, span.start) == bisect_left(starts, span.end))]
        )

    def _held_below(self, text: str, place: int, match: re.Match[str]) -> tuple[list[Span], int]:
        """The secrets in the object, list or block of YAML whose name ends with `match`, and where that is read to."""
        if match.re is BELOW:
            start = text.rfind("\n", max(0, place - _LONGEST), place) + 1
            return yaml_field(text, start) if place - start < _LONGEST else ([], place)
        name = name_before(text, place) + match[0][: match.start("level") - place]
        return json_field(text, match.end(), len(match["level"]), match["mark"], name) if held(name) else ([], place)

    def _table(self, text: str, place: int) -> tuple[list[Span], int]:
        """The secrets of a table whose head may be the line at `place`, and where to look for the next head."""
        start = text.rfind("\n", max(0, place - _LONGEST), place) + 1
        end = text.find("\n", place) + 1 or len(text)
        if end - start > _LONGEST or (not start and place > _LONGEST):
            return [], end
        found, stop = csv_secrets(text, start)
        return found, max(end, stop)

    def _formed(self, label: str, match: re.Match[str]) -> Span | None:
        group = 0 if label == "literal" else match.lastindex or 0
        if label != "literal" and not keeps(label, match[group]):
            return None
        return Span(*match.span(group), label)

    def _assigned(self, text: str, match: re.Match[str]) -> Span | None:
        group = match.lastgroup or ""  # the value ends the pattern
        label = next(filter(match.__getitem__, NAMES))
        name = name_before(text, match.start()) + match[label]
        start, end = match.span(group)
        value = match[group].rstrip(")]}") if group == "bare" else match[group]
        if match["quote"]:
            end = start + len(value)  # a bare value after a quoted name is one of JSON
        if match["option"] is not None and not name.startswith("--" if match["option"].isspace() else "-"):
            return None
        if refers(name) or not keeps(label, value, name) or text.startswith(_DIGESTS, max(0, start - 7)):
            return None
        if group == "bare" and not match["quote"] and match["sign"] != "=" and prose(text, value, end):
            return None
        return Span(start, end, label)

    def _learn_field(self, label: str, secret: str) -> None:
        """Has the value of a field masked in columns that do not have the field's name."""
        if secret.isdigit() and len(secret) < _SHORT:
            return
        self.learn(label, secret)
        if "\\" in secret:
            with suppress(ValueError):
                self.learn(label, str(json.loads(f'"{secret}"')))

    def _holding(self, texts: Sequence[str]) -> Container[int]:
        """Which texts may tell of a secret: of many quickly told for all together."""
        if len(texts) <= _FEW or self.kinds != {"secrets"} or KUBERNETES.search(joined := "\n".join(texts)):
            return range(len(texts))
        ends = list(accumulate(len(text) + 1 for text in texts))
        return {bisect_right(ends, at) for at, _, _ in places(joined)}

    def _without(self, text: str, secrets: Iterable[Span]) -> str:
        """A text with placeholders for secrets that stand in it, and for what looks like a placeholder."""
        parts: list[str] = []
        last = 0
        for start, end, label in secrets:
            parts += self._escape(text[last:start]), self._of(label, text[start:end])
            last = end
        return "".join([*parts, self._escape(text[last:])])

    def _escape(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda match: self._of("literal", match[0]), text) if "<" in text else text

    def mask_known(self, text: str) -> str:
        """Masks what is known to be a secret from elsewhere, in a text that was masked before."""
        if not self._everywhere:
            return text
        if self._automaton is None:
            self._automaton = AhoCorasick(
                map(searchable, self._everywhere),
                matchkind=MatchKind.LeftmostLongest,
                implementation=Implementation.ContiguousNFA,
            )
        if "<" not in text and not self._automaton.find_matches_as_indexes(searchable(text)):
            return text
        parts: list[str] = []
        last = 0
        for start, end in self._matches(text):
            known = text[start:end]
            parts += text[last:start], self._everywhere.get(known, known)
            last = end
        return "".join([*parts, text[last:]])

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where known secrets stand in `text`, outside of placeholders."""
        assert self._automaton is not None
        taken = [match.span() for match in PLACEHOLDER.finditer(text)] if "<" in text else []
        last = 0
        searched = searchable(text)
        for before, after in [*taken, (len(text), len(text))]:
            for _, start, end in self._automaton.find_matches_as_indexes(searched[last:before]):
                if end - start >= _LONG or not (_in_word(text, last + start) or _in_word(text, last + end)):
                    yield last + start, last + end
            last = after

    def mask_value(self, value: Any, name: str = "") -> Any:
        """A value of JSON with its secrets masked; `name` is the field or column that it stands in."""
        texts = texts_of(value)
        holding = self._holding(texts)
        self._silent = frozenset(text for i, text in enumerate(texts) if i not in holding)
        try:
            return self._masked(value, name, self._held(name))
        finally:
            self._silent = frozenset()

    def mask_cells(self, values: Sequence[Any], name: str = "") -> Sequence[Any]:
        """The values of a column with their secrets masked; what one tells to be a secret is masked in all texts."""
        holds = self._held(name)
        if not holds and _PLAIN.issuperset(map(type, values)):
            return values
        texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))
        by_name = holds or may_keep(name)
        shown = [self._masked(text, name, holds) for text in texts] if by_name else self.mask_all(texts)
        known = dict(zip(texts, shown, strict=True))
        return [known[value] if isinstance(value, str) else self._masked(value, name, holds) for value in values]

    def _masked(self, value: Any, name: str, holds: str) -> Any:
        """A value in a field that `holds` a secret, ways to log in, items of a SecretList, or nothing of the kind."""
        if isinstance(value, str):
            said = likely(name, value) if not holds and "secrets" in self.kinds else ""
            if said:
                return self._of(said, value)
            if holds in ("", *WAYS, SECRET) or self._connects(name, value):
                return self.mask(value)
            label = "password" if holds == ALL else holds
            if (
                holds != ALL
                and value[:1] + value[-1:] in ("[]", "{}")
                and (inside := self._json(value, name)) is not None
            ):
                return inside
            kept = not EMPTY.fullmatch(value) if holds == ALL else keeps(label, value, name)
            return self._of(label, value) if kept else self.mask(value)
        if isinstance(value, Pairs | Mapping):
            fields = list(value.items() if isinstance(value, Mapping) else value)
            made = [
                (self._masked(key, "", ""), self._masked(inner, str(key), inside))
                for key, inner, inside in self._fields(fields, holds)
            ]
            return Pairs(made) if isinstance(value, Pairs) else dict(made)
        if isinstance(value, list | tuple):
            return type(value)(self._listed(value, name, holds))
        if isinstance(value, int | float) and not isinstance(value, bool) and holds in ("password", ALL):
            return self._of("password", str(value))
        return value

    def _held(self, name: str) -> str:
        """What an object or a list in a field of this name may hold."""
        return held(name) if "secrets" in self.kinds else ""

    def _fields(self, fields: list[tuple[Any, Any]], holds: str) -> Iterator[tuple[Any, Any, str]]:
        """The fields of an object that `holds` something, and what each of them holds."""
        if "secrets" not in self.kinds:
            yield from ((key, inner, "") for key, inner in fields)
            return
        named = {str(key): inner for key, inner in fields}
        called = next((inner for key, inner in fields if str(key).lower() in PAIR and isinstance(inner, str)), "")
        pair = label_of(called)
        for key, inner in fields:
            key_ = str(key)
            if holds == ALL or (SECRET in (named.get("kind"), holds) and key_ in KEPT):
                yield key, inner, ALL
            elif named.get("kind") == LISTED and key_ == "items":
                yield key, inner, SECRET
            elif key_.lower().startswith(VALUE) and (said := pair or _likely(called, inner)):
                yield key, inner, said
            else:
                nested = isinstance(inner, Mapping | Pairs | list | tuple)
                yield key, inner, (below if nested else inner_label)(key_, "" if holds == SECRET else holds)

    def _listed(self, values: Sequence[Any], name: str, holds: str) -> Iterator[Any]:
        """The values of a list, which may be the arguments of a command."""
        before: Any = None
        client = False
        for value in values:
            said = below("", holds)
            if isinstance(value, str) and not holds and "secrets" in self.kinds:
                if isinstance(before, str) and before.startswith("-") and not value.startswith("-"):
                    said = label_of(before.lstrip("-"))
                client |= bool(_CLIENT.fullmatch(value))
                if client and value.startswith("-p") and len(value) > 2:
                    yield "-p" + self._of("password", value[2:])
                    continue
            before = value
            yield self._masked(value, name, said)

    def _json(self, text: str, name: str) -> str | None:
        """The JSON of a field that keeps secrets with these masked, None if it is none."""
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
        return self.mask_known(self._without(text, json_field(text, 0, 0, '"', name)[0]))

    def label(self, name: str) -> str:
        """What the values of a field or column of this name are, "" where they are no secrets."""
        return label_of(name) if "secrets" in self.kinds else ""

    def unmask(self, text: str, *, keep: bool = False) -> str:
        """`text` with the secrets back; with `keep`, as an answer may show it."""
        return PLACEHOLDER.sub(lambda match: self._back(match, keep), text) if "<" in text else text

    def unmask_value(self, value: Any, *, keep: bool = False) -> Any:
        """`unmask` of all texts in a value of JSON or a frozen dataclass."""
        return each(value, partial(self.unmask, keep=keep))

    def answer(self, value: Any, names: Mapping[str, str]) -> Any:
        """A value as an answer may show it: `names` spelled out (shown one, in lower case -> true one), the secrets
        back, and those that stay masked are so even where the answer has them in clear."""
        told = {shown: true for shown, true in names.items() if not PLACEHOLDER.search(self.unmask(shown, keep=True))}
        return each(value, lambda text: self._answered(in_text(text, told)))

    def _answered(self, text: str) -> str:
        if not self.keep:
            return self.unmask(text)
        parts: list[str] = []
        last = 0
        for match in (*PLACEHOLDER.finditer(text), None):
            parts.append(self.unmask(self.mask(text[last : match.start() if match else len(text)]), keep=True))
            if match:
                parts.append(self._back(match, keep=True))
                last = match.end()
        return "".join(parts)

    def unmask_sql(self, statement: str, names: Mapping[str, str] | None = None, *, keep: bool = False) -> str:
        """A model's statement with the secrets back: quotes in them doubled, and where no quotes are, put around. With
        `keep`, as an answer may show it. `names` (in lower case) are spelled as given, with quotes or without."""
        return in_sql(statement, names or {}, lambda match: self._back(match, keep), self._knows)

    def masked_sql(self, statement: str, names: Mapping[str, str]) -> str:
        """A model's statement for a store whose values are masked: placeholders stay, in quotes."""
        return in_sql(statement, names, lambda match: match[0].lower(), self._knows)

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

    def _connects(self, name: str, value: str) -> bool:
        """Whether a value tells how to connect, and by their names which parts of it are secrets."""
        return connects(name) and bool(self._told(value))

    def learn(self, label: str, secret: str, name: str = "") -> None:
        """Has the value of a secret field masked where it stands alone, too."""
        if keeps(label, secret, name) and not self._connects(name, secret):
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
        if "=" in secret and ";" in secret:
            return  # what else it says is no secret by itself
        if len(secret) > _PIECED:
            return
        for piece in (*VARIABLE.findall(secret), VARIABLE.sub("#", secret)):
            if len(piece) >= _PIECE and piece not in self._placeholders and not piece.isdigit():
                self._of(label, piece)

    def _address(self, match: re.Match[str]) -> str:
        start = address_in(match[0])
        return match[0][:start] + (self._of("ip", match[0][start:]) if start < len(match[0]) else "")

    def _knows(self, placeholder: str) -> bool:
        return placeholder.lower() in self._secrets

    def _back(self, match: re.Match[str], keep: bool = False) -> str:
        placeholder = match[0].lower()
        if keep and match[1].lower() in self.keep:
            return match[0]
        return self._secrets.get(placeholder, match[0])
