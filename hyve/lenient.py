"""JSON as people and programs write it when they don't follow its grammar: the second pass (H7).

Rules:
- What is taken: comments, trailing commas, commas too many in an object, a comma left out at a line's end, raw control
  characters in strings, unknown escapes (kept as they stand, and in a Windows path all backslashes), single quotes,
  keys without quotes, `=>` for the colon, words and numbers of JavaScript, Python and Ruby, one-word texts without
  quotes, a list or object whose closer is missing where an outer one closes.
- What is never done: leaving out or adding an item, cutting or joining strings, choosing between repeated keys, making
  a value of an ellipsis.
- `quotes_inside` is the third pass: a quote ends a string only where what follows can follow a string, so that
  `"3/4" brass, threaded"` is one. Comments are all that is dropped.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hyve import strictjson
from hyve.longlists import CLOSER
from hyve.strictjson import MAX_DEPTH, Decoder, Pairs

_GAP = re.compile(r"(?:\s|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_COLON = re.compile(rf"{_GAP.pattern}(?:=>|:){_GAP.pattern}")
_NO_GAP = frozenset(r"""abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_[]{},:"'""")
"""What no gap begins with."""
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"|\'([^\'\\]*+(?:\\.[^\'\\]*+)*+)\'', re.DOTALL)
_TWO_STRINGS = {quote: re.compile(rf"(?<!\\){quote}\s*+[,:;]?\s*+{quote}") for quote in "\"'"}
_NO_COLON = re.compile(
    r"""["']\s*+(?:[\[{,]|(?:true|false|null|None|True|False|NaN|-?\d[\w.+-]*+)\s*+,?\s*+["']|[^"',]*+,\s*+["'])"""
)
"""What stands in no key with quotes inside: a value, and another key behind it."""
_KEY = re.compile(r"[A-Za-z_$@:][\w$.@/-]*+|-?\d[\w.]*+")
_BARE = re.compile(r"""[^\s,\[\]{}"'()<>;`#]++""")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?")
_SLOPPY_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*+)?(?:\.\d*+)?(?<=\d|\.)(?<!\A\.)(?:[eE][+-]?\d++)?")
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]{1,64}")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "nil": None,
    "undefined": None,
}
_FLOATS = {"NaN": "nan", "nan": "nan", "Infinity": "inf", "inf": "inf"}

# What can stand behind a string that ended, by the place where it stands.
_NEXT_KEY = r"""(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[A-Za-z_$@][\w$.@-]*+)\s*+(?::|=>)"""
_AFTER = {
    "key": r"\s*+(?::|=>)",
    "}": rf"\s*+(?:[}}\]]|\Z|,\s*+(?:\}}|\Z|{_NEXT_KEY}))|[^\S\n]*+\n\s*+{_NEXT_KEY}",
    "]": r"""\s*+(?:[}\]]|\Z|,\s*+(?:["'{\[\]]|\Z|-?\d|(?:true|false|null|None|True|False|NaN)\b))""",
}
_INSIDE = {
    (quote, place): re.compile(rf"{quote}([^{quote}\\]*+(?:(?:\\[\s\S]|{quote}(?!{after}))[^{quote}\\]*+)*+){quote}")
    for quote in "\"'"
    for place, after in _AFTER.items()
}
"""A string with quotes inside, by its quote and its place."""

# Text up to a key without quotes, or commas too many, of the kinds that JSON may be told from without more.
_KEY_COLON = r"[A-Za-z_]\w*+\s*+:"
_ODD = re.compile(
    rf"""[^"\[{{,]*+(?:(?:"[^"\\]*+"|,(?!\s*+(?:[,}}\]]|{_KEY_COLON}))|\[(?!\s*+,)|\{{(?!\s*+(?:,|{_KEY_COLON})))[^"\[{{,]*+)*+
    (?:\Z|(?P<last>,(?:\s*+,)*+\s*+(?=\}})|,\s*+(?=\]))
    |(?P<before>\{{\s*+(?={_KEY_COLON})|,(?:\s*+,)*+\s*+(?={_KEY_COLON}|"[^"\\]*+"\s*+:))(?P<key>[A-Za-z_]\w*+)?)""",
    re.VERBOSE,
)


def as_json(source: str) -> str | None:
    """What may be JSON of the same value: keys without quotes get some, commas too many are left out. Whatever else is
    no JSON is none afterwards, or None."""
    if "\\" in source:
        return None
    pieces, at = [], 0
    while (odd := _ODD.match(source, at)) and odd.lastgroup:
        if odd["last"]:
            pieces.append(source[at : odd.start("last")])
        else:
            key = f'"{odd["key"]}"' if odd["key"] else ""
            pieces.append(source[at : odd.start("before") + 1] + key)
        at = odd.end()
    if odd is None:
        return None
    return "".join([*pieces, source[at:]]) if pieces else source


def read_lenient(source: str, quotes_inside: bool = False) -> tuple[Any, tuple[str, ...]] | None:
    """(value, flags) of `source`, from its first bracket to the end; None where it is no near-JSON."""
    plain = None if quotes_inside else as_json(source)
    read = None if plain is None or plain is source else strictjson.read(plain)
    if read is not None and isinstance(read[0], dict | list | Pairs):
        return read[0], tuple(sorted(read[1]))
    try:
        return _Reader(source, quotes_inside).read()
    except (ValueError, OverflowError):
        return None


class _Reader:
    def __init__(self, source: str, quotes_inside: bool) -> None:
        self.source = source
        self.quotes_inside = quotes_inside
        self.met: set[str] = set()
        self.decoder: Decoder | None = None  # most small documents, of which a log may have very many, need none
        self.at = 0

    def read(self) -> tuple[Any, tuple[str, ...]]:
        """The one container of the source. A stack, not recursion: [closer, items, key] of each open one."""
        source = self.source
        stack: list[tuple[str, list[Any]]] = []
        keys: list[Any] = []  # of each open object the key whose value comes next
        self._skip()
        while True:
            opener = source[self.at : self.at + 1]
            value: Any
            if opener in CLOSER:
                if len(stack) >= MAX_DEPTH:
                    raise ValueError("nested too deep")
                self.at += 1
                stack.append((CLOSER[opener], []))
                done = False
            elif not stack:
                raise ValueError("no container")
            else:
                value = self._scalar(stack[-1][0])
                done = True
            while True:
                closer, items = stack[-1]
                if done:
                    items.append((keys.pop(), value) if closer == "}" else value)
                    done = not self._separated(closer)
                else:
                    self._skip()
                here = source[self.at : self.at + 1]
                if here and here in "}]":
                    # A closer of an outer container closes the inner ones as well.
                    if all(here != outer for outer, _ in stack):
                        raise ValueError("a closer without an opener")
                    value = self._built(closer, items)
                    stack.pop()
                    self.at += here == closer
                    done = True
                    if not stack:
                        self._skip()
                        if self.at < len(source):
                            raise ValueError("more than one value")
                        return value, tuple(sorted(self.met))
                    continue
                if done or not here:
                    raise ValueError("neither a comma nor a closer")
                break
            if stack[-1][0] == "}":
                keys.append(self._key())

    def _skip(self) -> None:
        if self.source[self.at : self.at + 1] in _NO_GAP:
            return
        match = _GAP.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def _separated(self, closer: str) -> bool:
        """Moves past what separates two items; whether there was something that does."""
        before = self.at
        self._skip()
        if self.source[self.at : self.at + 1] == ",":
            self.at += 1
            self._skip()
            while closer == "}" and self.source[self.at : self.at + 1] == ",":  # no member is missing: it has no name
                self.at += 1
                self._skip()
            return True
        return "\n" in self.source[before : self.at] and self.source[self.at : self.at + 1] not in ("", "}", "]")

    def _built(self, closer: str, items: list[Any]) -> Any:
        if closer == "]":
            return items
        value = dict(items)
        if len(value) == len(items):
            return value
        self.met.add("duplicate_keys")
        return Pairs(items)

    def _key(self) -> str:
        if self.source[self.at : self.at + 1] in ('"', "'"):
            key = self._string("key")
        elif match := _KEY.match(self.source, self.at):
            key = match.group()
            self.at = match.end()
            if key.startswith(":"):
                key = key[1:]
            elif key.endswith(":"):
                raise ValueError("no key")
        else:
            raise ValueError("no key")
        colon = _COLON.match(self.source, self.at)
        if colon is None:
            raise ValueError("no colon")
        self.at = colon.end()
        return key

    def _string(self, place: str) -> str:
        source, quote = self.source, self.source[self.at]
        if not self.quotes_inside:
            match = _STRING.match(source, self.at)
            if match is None:
                raise ValueError("a string without an end")
            self.at = match.end()
            return _unescaped(match[1] if match[1] is not None else match[2], quote)
        match = _INSIDE[quote, place].match(source, self.at)
        if match is None:
            raise ValueError("a string without an end")
        self.at, text = match.end(), match[1]
        if place == "key" and _NO_COLON.search(text):
            raise ValueError("no colon")
        if _TWO_STRINGS[quote].search(text):
            raise ValueError("two strings, not one with quotes inside")
        return _unescaped(text, quote)

    def _scalar(self, closer: str) -> Any:
        if self.source[self.at : self.at + 1] in ('"', "'"):
            return self._string(closer)
        match = _BARE.match(self.source, self.at)
        if match is None:
            raise ValueError("no value")
        word = match.group()
        if closer == "]" and ":" in word:
            raise ValueError("a key in a list")
        if "..." in word or "…" in word:
            raise ValueError("what was left out is no value")
        self.at = match.end()
        if word in _WORDS:
            return _WORDS[word]
        if word.lstrip("+-") in _FLOATS:
            self.met.add("non_finite")
            return float(word)
        if word[0].isalpha():
            return word
        if _NUMBER.fullmatch(word):
            return self._number(word)
        if _HEX.fullmatch(word):
            return int(word, 16)
        if any(char.isdigit() for char in word[:3]) and _SLOPPY_NUMBER.fullmatch(word):
            sign, digits = ("-", word[1:]) if word[0] == "-" else ("", word.lstrip("+"))
            whole, _, rest = digits.partition(".")
            exponent = rest.lstrip("0123456789")
            digits = rest[: len(rest) - len(exponent)]
            return self._number(f"{sign}{whole or '0'}{'.' + (digits or '0') if '.' in word else ''}{exponent}")
        return word

    def _number(self, literal: str) -> Any:
        if len(literal) < 16 and literal.isdigit() and literal.isascii():
            return int(literal)
        if self.decoder is None:
            self.decoder = Decoder()
            self.decoder.met = self.met
        return self.decoder.decode(literal)


_PATH = re.compile(r"[A-Za-z]:\\(?!\\)")
"""How a path begins on Windows whose backslashes aren't escaped."""
_ESCAPES = {"'": "'", "`": "`", "\n": "", "\r\n": "", "0": "\0", "v": "\v", "a": "\a"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)


def _unescaped(text: str, quote: str) -> str:
    """What a string's source stands for; escapes that neither JSON nor JavaScript know stay as they are."""
    if "\\" not in text:
        return text
    if quote == '"':
        try:
            return str(json.loads(f'"{text}"', strict=False))
        except ValueError:
            pass

    def one(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1] or match[2], 16))
        char = match[3]
        if char in '"\\/bfnrt':
            return str(json.loads(f'"\\{char}"'))
        return _ESCAPES.get(char, match[0])

    if _PATH.match(text) and any(match[3] and match[3] not in "\"'\\/bfnrt" for match in _ESCAPE.finditer(text)):
        return text  # a path's backslashes: one that is no escape says that the others are none
    plain = _ESCAPE.sub(one, text)
    if re.search("[\ud800-\udbff][\udc00-\udfff]", plain):  # two halves of one character
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return plain
