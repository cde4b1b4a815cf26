"""Documents that are not strict JSON: Python literals, repairs, what the end of a text cut, what was escaped (H6-H8).

Rules:
- Several readings are tried, the stricter first, each on one document at a time: a Python literal, near-JSON
  (`hyve.lenient`), near-JSON with quotes inside its strings, and json_repair last.
- json_repair guesses. What it returns counts only where the words of the value are those of the source, in its order,
  none left out, none repeated, none made up, and whose containers are those of the source (H8, `_covers`).
- An ellipsis in the place of items that were left out is no item; what stands there is read, and flagged `elided`.
- No repair goes over what looks like the head of a log line: what follows is another line's.
- Of a cut document the whole items are kept; the token that was cut is told as `tail` and is no value.
- Work is counted in characters, for the caller's allowance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import json_repair

from hyve import strictjson
from hyve.again import INSIDE, LENIENT, LITERAL, Way
from hyve.alike import Alike
from hyve.brackets import CLOSER, balanced, balanced_around
from hyve.elisions import without_ellipses
from hyve.flawed import Flawed, Repair, Unread, read_flawed
from hyve.lenient import read_lenient
from hyve.literals import read_literal
from hyve.rawdecode import fails_at
from hyve.strictjson import MAX_DEPTH, Ahead, Pairs, too_deep

_REPAIR_CHARS, _PROSE = 256 * 1024, 64 * 1024


class Reading(NamedTuple):
    """A value that was read, and where it ends. `tail` is the text of the token that was cut, if one was; `unread` are
    the places in it that stay text; `way` is how it is read again from its text."""

    value: Any
    end: int
    syntax: Literal["json", "python"]
    flags: tuple[str, ...]
    tail: str = ""
    unread: tuple[Unread, ...] = ()
    way: Way | None = None


ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*+[A-Za-z]|\][^\x07\x1b]*+(?:\x07|\x1b\\))")
"""Colour codes and the like."""


BEGUN = re.compile(
    r"""\{\s*+"(?:[^"\\\n]|\\.)*+(?:"\s*+(?![,}\s])|\\?\Z)|\[\s*+\{\s*+(?:"|'(?:[^'\\\n]|\\.)*+'\s*+:|\Z)
    |\{\s*+'(?:[^'\\\n]|\\.)*+'\s*+:|\{\s*+,|\[\s*+(?:"(?:[^"\\\n]|\\.)*+"|-?\d[\d.eE+-]*+)\s*+,\s*+,|\[-?\d[\d.]*+[eE][+-]?\s*+\Z""",
    re.VERBOSE,
)
"""What begins like a JSON document or a Python literal, and like nothing else: an object's first key, a list's first
object, what a comma too many or the end of the text broke."""


class Attempt(NamedTuple):
    """What recovery made of a bracket: a reading or None, its fruitless work, and where the scan may go on without one.

    Work is in units of about a character of strict JSON; that of a reading counts nothing, for the scan goes on behind
    it, but for what json_repair reads far behind the start of a line: no record or log line is so long. `inner` is
    where a list begins in it that may be read by itself, or -1.
    """

    reading: Reading | None
    work: int
    resume: int
    inner: int = -1


def recover(
    seen: Alike[Said], text: str, start: int, limit: int, closed: int, line: int, met: set[str], rows: bool = False
) -> Attempt:
    """Tries to read what stands between `start`, a bracket, and `limit`.

    `closed` is the end of the text (blanks left out) or of the code fence, which cuts a document; `limit` is the same,
    or where the next record or log line begins; `line` is where the line of `start` begins. `met` takes the flag
    `too_deep`, and `truncated` where a document was cut before its first whole item. Of a document with one record a
    line (`rows`) it is known that `limit` cuts it, too. `seen` is one for the whole text, from `alike`.
    """
    wrong = fails_at(text, start)
    listed = wrong < 0 or text.find("[", start, wrong) >= 0  # else no list of records begins before the first flaw
    ahead, work = _read_ahead(text, start, limit) if listed else (None, 0)
    run = balanced(text, start, limit) if ahead is None else balanced_around(ahead, start)
    work += _ATTEMPT + run.work
    if run.deep >= 0:
        # Deep indeed where all of it is a document's beginning. What starts within the first MAX_DEPTH levels and is
        # still open reaches as deep.
        _, read, deep = _truncated(text, start, limit)
        met |= {"too_deep"} if deep else set()
        return Attempt(None, work + _PIECES * read, run.deep if deep else start)
    if run.end is not None and run.exact and (found := _literal(text, start, run.end)):
        return Attempt(found, 0, found.end)
    ends = [run.end] if run.end is not None else []
    if run.end is None:
        # What is cut in the middle of a text is text; only the end of the text, of its fence or of a paragraph that the
        # document began cuts it.
        cuts = [limit] if limit == closed else []
        if not text[line : min(start, line + 256)].strip() and (blank := _BLANK_LINE.search(text, start, limit)):
            cuts.append(blank.start())
        for end in cuts:
            reading, read, _ = _cut(text, start, end, ahead)
            if reading is not None and reading.value:
                return Attempt(reading, 0, reading.end)
            if reading is not None and reading.end == limit and BEGUN.match(text, start):
                met.add("truncated")
            work += _PIECES * read
        ends += _ends(text, start, limit, line)
    del ahead  # as large as what is read now
    flawed = Flawed(None, start, (), (), 0)
    if listed:
        flawed = read_flawed(text, start, limit, closed, _record(seen), ellipses=False)
    if flawed.value is not None:
        return _flawed(flawed, start, work)
    for end in ends:
        reading, spent = _repaired(text, start, end, seen)
        work += spent
        if reading is not None:
            return Attempt(reading, work if spent and start - line > _PROSE else 0, end)
    if flawed.elided:
        work += flawed.work
        flawed = read_flawed(text, start, limit, closed, _record(seen), ellipses=True)
    if flawed.value is None and rows and run.end is None and limit < closed:
        reading, read, _ = _cut(text, start, limit, _read_ahead(text, start, limit)[0])
        if reading is not None and reading.value:
            return Attempt(reading, 0, reading.end)
        work += _PIECES * read
    return _flawed(flawed, start, work)


def _flawed(found: Flawed, start: int, work: int) -> Attempt:
    if found.value is None:
        return Attempt(None, work + found.work, max(found.inner, start), found.inner)
    return Attempt(Reading(found.value, found.end, "json", found.flags, unread=found.unread), 0, found.end)


def _record(seen: Alike[Said]) -> Repair:
    """Gives the value and flags of one record that a repair reads for itself."""

    def read(text: str, start: int, end: int) -> tuple[Any, tuple[str, ...]] | None:
        reading, _ = _repaired(text, start, end, seen)
        return None if reading is None or reading.syntax != "json" else (reading.value, reading.flags)

    return read


def cut_large(text: str, start: int, limit: int) -> Reading | None:
    """A long list of records that the end of the text cuts, or what holds it: all but the last are read strictly."""
    ahead = strictjson.read_ahead(text[start:limit].rstrip())
    found = _cut_records(ahead, start) if ahead is not None else None
    reading = found[0] if found else None
    return reading if reading is not None and text[reading.end : limit].strip() == "" else None


def _read_ahead(text: str, start: int, limit: int) -> tuple[Ahead | None, int]:
    """(the records of a list of JSON records, which may be damaged further on, or None where it has few of them; the
    fruitless work)."""
    piece = min(_LONGEST_PIECE, max(_SHORTEST_PIECE, (limit - start) // _SOME_PIECES))
    if not strictjson.lists_records(text, start, limit, piece):
        return None, 0
    ahead = strictjson.read_ahead(text[start:limit].rstrip(), piece=piece)
    return ahead, (limit - start) // _COPIED if ahead is None else 0


def _cut(text: str, start: int, limit: int, ahead: Ahead | None) -> tuple[Reading | None, int, bool]:
    """The same as `_truncated`, which reads only what stands around the records that were read `ahead` of the text from
    `start`, to `limit` or further."""
    ahead = ahead and ahead.until(len(text[start:limit].rstrip()))
    found = _cut_records(ahead, start) if ahead is not None else None
    return found or _truncated(text, start, limit)


def _cut_records(ahead: Ahead, start: int) -> tuple[Reading | None, int, bool] | None:
    """What `_truncated` says of a list of records that begins at `start`; None where not enough of it is strict JSON to
    know."""
    reading, read, deep = _truncated(ahead.rest, 0, len(ahead.rest))
    if reading is None:
        return None if deep else (None, read, False)
    if reading.syntax != "json" or not ahead.join(reading.value) or too_deep(reading.value, ahead.text):
        return None
    flags = tuple(dict.fromkeys([*reading.flags, *sorted(ahead.flags)]))
    end = start + reading.end + len(ahead.text) - len(ahead.rest)
    return Reading(reading.value, end, "json", flags, reading.tail), read, False


_SHORTEST_PIECE, _LONGEST_PIECE, _SOME_PIECES = 1 << 10, 1 << 16, 16
_ATTEMPT, _PIECES, _COPIED = 400, 40, 8
_LENIENT, _LITERAL, _REPAIR = 12, 30, 60
"""Work of an attempt, of each token of a cut document, and of each character that is read in one of the other ways:
measured, so that the work is in proportion to the time."""


def _ends(text: str, start: int, limit: int, line: int) -> Iterator[int]:
    """Where a document may end whose quotes and brackets don't tell: the line of its closer, its line's last one."""
    closer = CLOSER[text[start]]
    indent = text[line : min(start, line + 256)]
    first = text.find("\n", start, limit)
    first = limit if first < 0 else first
    if not indent.strip() and (end := text.find(f"\n{indent}{closer}", first, limit)) >= 0:
        yield end + len(indent) + 2
    end = text.rfind(closer, start, first) + 1
    if end:
        yield end


# It begins with a set, which `re` looks for first: most of a text has none of these characters.
_PYTHON = re.compile(
    r"['(NTFE{,](?:(?<=['(])|(?<=[{,])\s*+-?\d[\d.]*+\s*+:"
    r"|(?<=\bN)one\b|(?<=\bT)rue\b|(?<=\bF)alse\b|(?<=\bE)llipsis\b)"
)
_DOUBLE_QUOTED = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _literal(text: str, start: int, end: int) -> Reading | None:
    """A Python literal, where the source has what only Python has; JSON's escapes mean other things there."""
    source = text[start:end]
    return _python(source, end) if _PYTHON.search(_DOUBLE_QUOTED.sub("", source)) else None


def _python(source: str, end: int) -> Reading | None:
    found = read_literal(source)
    if found is None or not isinstance(found[0], dict | list | Pairs) or too_deep(found[0], source):
        return None
    return Reading(found[0], end, "python", ("python_literal", *found[1]), way=LITERAL)


def read_root(text: str, start: int, limit: int) -> Attempt:
    """A tuple or a constructor call that stands alone on its lines, from the bracket or name at `start`."""
    run = balanced(text, text.find("(", start, limit), limit)
    if run.end is None or not run.exact or not REST_BLANK.match(text, run.end):
        return Attempt(None, _ATTEMPT + run.work, start)
    reading = _literal(text, start, run.end)
    return Attempt(reading, 0 if reading else _ATTEMPT + run.work + _LITERAL * (run.end - start), run.end)


_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
REST_BLANK = re.compile(r"[ \t\r]*+(?:\n|\Z)")
"""Nothing but blanks up to the end of the line."""


_ELLIPSIS = re.compile(r"\.\.\.|…")
_ANY_QUOTED = re.compile(r"""\"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'""", re.DOTALL)
_ADJACENT = re.compile(r"\0[ \t]*+[bBuUrRfF]{0,2}\0")
"""Strings side by side, which Python joins, or those around the text of a triple-quoted one: json_repair makes keys of
them."""
_CODE = re.compile(r";[ \t\r]*+(?:[}\n]|\Z)|::|\breturn\b|\bfunction\b")
"""What no data has outside of its strings: json_repair would read a function's body as texts."""


class Said(NamedTuple):
    """What is the same of all documents that look alike: how they are read again, and the work of each character that
    was fruitless or too slow to be free."""

    syntax: Literal["json", "python"] = "json"
    flags: tuple[str, ...] = ()
    way: Way | None = None
    work: int = 0


def alike() -> Alike[Said]:
    """What `recover` remembers of a text's documents, one for each text."""
    return Alike(_read_anew)


def _repaired(text: str, start: int, end: int, seen: Alike[Said]) -> tuple[Reading | None, int]:
    """(the document, the work that was fruitless or too slow to be free)."""
    value, said = seen.read(text[start:end])
    work = said.work * (end - start)
    return (None if value is None else Reading(value, end, said.syntax, said.flags, way=said.way)), work


def _read_anew(source: str) -> tuple[Any, Said]:
    """The value of one document, or None."""
    for inside in (False, True):
        if found := read_lenient(source, quotes_inside=inside):
            value, flags = found
            return value or None, Said("json", ("repaired", *flags), INSIDE if inside else LENIENT)
        if not inside and (plain := without_ellipses(source)) is not None:
            elided = _elided(plain, len(source))
            if elided is not None:
                return elided.value, Said(elided.syntax, elided.flags, elided.way)
    reading = _python(source, len(source))
    if reading is not None:
        return reading.value, Said(reading.syntax, reading.flags, reading.way)
    work = 2 * _LENIENT + _LITERAL
    code = _DOUBLE_QUOTED.sub('""', source)
    if (
        len(source) > _REPAIR_CHARS
        or _CODE.search(code)
        or _ELLIPSIS.search(code)
        or _ADJACENT.search(_ANY_QUOTED.sub("\0", source))
    ):
        return None, Said(work=work)
    repaired = Said("json", ("repaired",), work=work + _REPAIR)
    try:
        value = json_repair.loads(source, skip_json_loads=True)
    except Exception:  # a third-party repairer on hostile text: whatever it raises, the text stays text
        return None, repaired
    if not value or not isinstance(value, dict | list) or too_deep(value, source) or not _covers(value, source):
        return None, repaired
    return value, repaired


def _elided(source: str, end: int) -> Reading | None:
    """A document without its ellipses, where it is one of itself: no guessing beside."""
    if found := strictjson.read(source):
        return Reading(found[0], end, "json", ("elided", *sorted(found[1]))) if found[0] else None
    if reading := _python(source, end):
        return reading._replace(flags=(*reading.flags, "elided"), way=None)
    near = read_lenient(source)
    return Reading(near[0], end, "json", ("repaired", "elided", *near[1])) if near and near[0] else None


_WORD = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?!\w)|\w+")
_FLOAT = re.compile(r"[0-9]+(?:\.[0-9]|[eE][+-]?[0-9]+\Z)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SAME = {"None": "null", "True": "true", "False": "false", "nan": "NaN", "undefined": "null"}
_SIGN = re.compile(r"[@?!#$%^&*~|<>=;]|(?<![\w.-])-(?=\d)")
_EMPTY = re.compile(r'""|\'\'')
_HOLE = re.compile(r"[\[{,:]\s*+,")
_JOINED = re.compile(r'\\"(?:\s|\\[nrt])*+[,:;]?(?:\s|\\[nrt])*+\\"')
_NO_COLON = re.compile(r'\\"\s*+(?:(?:null|true|false|-?\d[\w.+-]*+)\s*+,?|[\[{]|[^",]*+,)\s*+\\"(?:[^"\\]|\\.)*+":')
"""The end of a key that holds a value and another key: what json_repair makes of a colon that is missing."""
_TWO_KEYS = re.compile(r'"(?:[^"\\]|\\[^"])*?[,:]\s*+\\"(?:[^"\\]|\\.)*+":')
"""A key that holds what stands before another one: what json_repair makes of two values side by side."""
_BRACKET = re.compile(r"[\[\]{}]")
# Text without quotes that goes on with a key of its own, as in Go's {Name:x Age:3}.
_KEY_INSIDE = re.compile(r""":[^,:\[\]{}"'\n]*\s[A-Za-z_]\w*:""")


def _covers(value: Any, source: str) -> bool:
    """H8: the words of the value are the words of the source, in the same order, and so are the signs that no document
    is made of.

    And what no words tell: the containers open and close in the same order, no text is empty that wasn't, no item
    between commas is left out, no two strings are one, no key is part of a text.
    """
    shown = json.dumps(value, ensure_ascii=False)
    code = _DOUBLE_QUOTED.sub('""', source)
    return (
        _words(source) == _words(shown)
        and _SIGN.findall(source) == _SIGN.findall(shown)
        and len(_EMPTY.findall(shown)) <= len(_EMPTY.findall(source))
        and _BRACKET.findall(code) == _BRACKET.findall(_DOUBLE_QUOTED.sub('""', shown))
        and not _HOLE.search(code)
        and not _KEY_INSIDE.search(code)
        and not _JOINED.search(shown)
        and not _NO_COLON.search(shown)
        and not _TWO_KEYS.search(shown)
    )


def _words(text: str) -> list[str]:
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)
    words: list[str] = _WORD.findall(text)
    return [repr(float(word)) if _FLOAT.match(word) else _SAME.get(word, word) for word in words]


# A string's quote may have a prefix, as in b'...'. Blanks, brackets and punctuation; anything else is a word.
_PIECE = re.compile(
    r"""\s+|(?:[bBuUrR]{1,2})?(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
    r"""|[\[\]{}(),:]|[^\s\[\]{}(),:"']+""",
    re.DOTALL,
)
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|-?Infinity|NaN")
_PYTHON_SCALAR = re.compile(r"None|True|False|-?(?:nan|inf)|-?\d+\.|\d+j")
_NAME = re.compile(r"[A-Za-z_][\w.]*\Z")


def _truncated(text: str, start: int, limit: int) -> tuple[Reading | None, int, bool]:
    """(a document that ends early, as its whole items, maybe none; the tokens read; whether it is nested too deep).

    None where anything but JSON or a Python literal stands before the end.
    """
    end = limit
    while end > start and text[end - 1].isspace():
        end -= 1
    stack: list[str] = []
    safe: tuple[int, int, bool] | None = None  # where the text may be closed, the depth there, whether behind an item
    state, at = "value", start  # what may come: value, key, colon, next (a comma or a closer)
    python = text[start] == "("
    calls = word_at = -1  # depth at which a call opened, start of the last word
    tail, count = "", 0
    while at < end and (match := _PIECE.match(text, at, end)):
        token, begun, at = match.group(), at, match.end()
        count += 1
        if token.isspace():
            continue
        last = at >= end
        if calls >= 0:  # inside of a constructor call nothing but brackets counts
            if token in CLOSER:
                stack.append(CLOSER[token])
            elif token in (")", "]", "}"):
                if stack.pop() != token:
                    return None, count, False
                if len(stack) == calls:
                    calls, state, safe = -1, "next", (at, len(stack), True)
            continue
        if token in CLOSER and state == "value":
            stack.append(CLOSER[token])
            if len(stack) > MAX_DEPTH:
                return None, count, True
            python |= token == "("
            state = "key" if token == "{" else "value"
            if token != "{":
                safe = (at, len(stack), False)
        elif token == "(" and state == "next" and word_at >= 0 and text[begun - 1] != " ":
            calls, python = len(stack), True
            stack.append(")")
        elif token in (")", "]", "}"):
            if state == "colon" or not stack or stack.pop() != token or not stack:
                return None, count, False
            state, safe = "next", (at, len(stack), True)
        elif token == "," and state == "next":
            state = "key" if stack[-1] == "}" else "value"
        elif token == ":" and state == "colon":
            state = "value"
        elif token[-1] in "\"'" and state in ("key", "value"):
            python |= token[0] != '"'
            if state == "value":
                safe = (at, len(stack), True)
            state = "colon" if state == "key" else "next"
        elif state in ("key", "value") and token not in ",:":
            plain = _SCALAR.fullmatch(token) if state == "value" else None
            if plain is None:
                if (
                    not last
                    and not _PYTHON_SCALAR.fullmatch(token)
                    and not (_SCALAR.fullmatch(token) or (_NAME.match(token) and text[at] == "("))
                ):
                    return None, count, False
                python |= not last
            if last:  # it may be the beginning of a longer one
                tail = token
            elif state == "value" and text[at] != "(":
                safe = (at, len(stack), True)
            word_at = begun
            state = "colon" if state == "key" else "next"
            continue
        else:
            return None, count, False
        word_at = -1
    rest = text[at:end]
    if not stack or (rest and (rest.lstrip("bBuUrR")[:1] not in ('"', "'") or state not in ("key", "value"))):
        return None, count, False
    if (newline := rest.find("\n")) >= 0:  # no string goes over lines: what follows is other text
        end, rest = at + newline, rest[:newline]
    cut, depth, filled = safe or (start + 1, 1, False)
    if rest:
        tail = rest.lstrip("bBuUrR")[1:]
    elif not tail:
        tail = text[cut:end].lstrip(" \t\r\n,")  # a key without its value, a call without its end
    # A tuple of one item needs its comma.
    closed = text[start:cut] + "".join(",)" if c == ")" and filled else c for c in reversed(stack[:depth]))
    found: tuple[Any, Any] | None = read_literal(closed) if python else strictjson.read(closed)
    if found is None or not isinstance(found[0], dict | list | Pairs):
        return None, count, False
    kinds = ("python_literal",) if python else ()
    flags = (*kinds, "truncated", *(("partial_tail",) if tail else ()), *sorted(found[1]))
    return Reading(found[0], end, "python" if python else "json", flags, tail), count, False


def read_cut(source: str) -> Reading | None:
    """A document that ends early, as its whole items, of which there are some; read again the same way."""
    reading = _truncated(source, 0, len(source))[0]
    if reading is None or not reading.value or reading.end < len(source.rstrip()):
        return None
    return reading._replace(way=CUT if source.rstrip(", \t\r") == source else None)


def _read_cut(source: str) -> tuple[Any] | None:
    reading = _truncated(source, 0, len(source))[0]
    return None if reading is None else (reading.value,)


CUT = Way(_read_cut)

NEAR = r"""(?:(?<=\{)\s*+(?:["'(]|b'|[A-Za-z_$:][\w$.-]*+\s*+(?::(?!:)|=>)|-?\d+\s*+:|//|\#|/\*|,\s*+\}
        |(?:None|True|False)\b)
    |(?<=\[)\s*+(?:["'{\[(<]|-?\d[\d.eE+-]*+\s*+,|(?:None|True|False|-?nan|-?inf)\b|[A-Za-z_][\w.]*+\(|b["']|//|/\*))"""
"""How a document that is no strict JSON goes on behind its bracket, as against a bracket of prose or of a log line."""
LIKELY = re.compile(rf"[{{\[]{NEAR}", re.VERBOSE)
