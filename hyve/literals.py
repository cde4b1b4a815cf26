"""Python literals and reprs as JSON values: no code runs (H6).

Rules:
- The source is parsed to Python's own syntax tree, and only literals of it are read. Tuples and sets become lists,
  bytes their text (or the source text where they aren't UTF-8), a date or time its ISO text. Flags say so.
- What a constructor call says is kept: the one text or number of `Decimal('1.5')` or `np.float64(1.5)`, the container
  of `OrderedDict([...])`, the keywords of `Pod(name='x')` as an object with the class's name under `__class__`. Of any
  other call the source text stands; so does `<Color.RED: 1>`, which is no Python at all.
- An ellipsis among items (`[1, 2, ...]`, `{...}` of what holds itself) leaves items out: it is no item. Elsewhere it is
  no literal. The word `Ellipsis`, which is how Python prints the object, stands as its source text.
- Strings side by side are one as the value of a key, if anything shows that the text is Python. As items or keys they
  are one only where pprint broke it over lines: else a comma or colon is missing, or numpy printed them (`['a' 'b']`).
- Keys that are no text make `Pairs` with the keys as they are (a tuple as a list); so nothing that only Python takes
  for equal (1, True, 1.0) is dropped.
- Python's parser takes some hundred times the size of what it reads, so a long container is read piece by piece.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from hyve import strictjson
from hyve.brackets import CLOSER
from hyve.strictjson import MAX_DEPTH, Pairs

_PIECE = 1 << 16
"""Characters parsed at a time."""
_ITEM = 1 << 20
"""Longest single text, number or call."""

_TRIPLE = r"""'{3}(?:[^'\\]|\\.|'(?!''))*+(?:'{3}|\\?\Z)|"{3}(?:[^"\\]|\\.|"(?!""))*+(?:"{3}|\\?\Z)"""
# A string that never ends runs to the end of the text, once.
_TOKEN = re.compile(
    rf"""{_TRIPLE}|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|[\[\]{{}}(),:]"""
    r"|<[A-Za-z_](?:[^<>\n]|<[^<>\n]*+>)*+>",
    re.DOTALL,
)
_STRING = re.compile(r"""'[^']*+'|"[^"]*+\"""")
_QUOTED = re.compile(rf"""{_TRIPLE}|'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\"""", re.DOTALL)
# Strings with but blanks between them, which Python joins. They are one where pprint broke it over lines, at a blank.
_JOINED = re.compile(r"\0[ \t]*+[bBuUrR]{0,2}\0")
_BROKEN = re.compile(r"""(?<![\s,:\[({])(?<!\\n)['"][ \t\r]*+\n\s*+[bBuUrR]{0,2}['"]""")
_PYTHON = re.compile(r"'|\b(?:None|True|False)\b")
"""What no JSON has outside of its strings, of which only the quotes are left."""
_SAME_WORDS = (("None", "null"), ("True", "true"), ("False", "false"), ("nan", "NaN"), ("inf", "Infinity"))
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string literal with its prefix; in raw ones escapes are none.
_LITERAL = re.compile(rf"(?P<raw>\b(?:[rR][bB]?|[bB][rR]))?(?P<text>{_QUOTED.pattern})", re.DOTALL)
_UNKNOWN_ESCAPE = re.compile(r"\\(?![\\'\"abfnrtvxuUN0-7\n\r])|(\\.)", re.DOTALL)
_LONG_FLOAT = re.compile(r"\d[\d._]{16}|[eE][+-]?\d{3}")


def read_literal(source: str) -> tuple[Any, tuple[str, ...]] | None:
    """The value of a Python literal or repr (no code runs), with flags; None where it is none."""
    source = source.strip()
    plain = as_json(source)
    if plain is not None and (read := strictjson.read(plain)):
        return read[0], tuple(sorted(read[1]))
    flags: list[str] = []
    try:
        value = _read(source, flags, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, ArithmeticError):
        return None
    if ("\\ud" in source or "\\uD" in source) and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        flags.append("lone_surrogate")
    return value, tuple(dict.fromkeys(flags))


def as_json(source: str) -> str | None:
    """JSON that says the same, where the literal holds nothing but what JSON has too; a hundred times faster to read.

    Whatever else stands in the literal (a tuple, a call, b'...') is no JSON afterwards either, or None comes back.
    """
    if "\\" in source:
        return None
    if '"' in source:
        if '"' in _STRING.sub("", source):
            return None
        if "'" in source:
            source = _STRING.sub(lambda match: match[0] if match[0][0] == '"' else _double_quoted(match[0]), source)
        pieces = re.split(r'("(?:[^"\\]|\\.)*+")', source)
    else:
        pieces = source.split("'")
    # Every second piece is a string; the others are joined, so that each word is looked for once.
    code = "\0".join(pieces[::2])
    if "(" in code or len(pieces) % 2 == 0 or code.count("\0") != len(pieces) // 2:
        return None
    for word, same in _SAME_WORDS:
        code = code.replace(word, same)
    pieces[::2] = code.split("\0")
    return ("" if '"' in source else '"').join(pieces)


def _read(source: str, flags: list[str], depth: int) -> Any:
    if len(source) <= _PIECE:
        return _parsed(source, flags)
    if CLOSER.get(source[0]) != source[-1]:
        if len(source) > _ITEM:
            raise ValueError("too long")
        return _parsed(source, flags)
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    opener = source[0] if source[0] != "(" else "["
    pairs: list[tuple[Any, Any]] = []
    items: list[Any] = []

    def take(text: str) -> None:
        value = _parsed(opener + text + CLOSER[opener], flags) if text.strip() else None
        if isinstance(value, dict):
            pairs.extend(value.items())
        elif isinstance(value, Pairs):
            pairs.extend(value)
        elif value is not None:
            items.extend(value)

    count, begun = 0, 1
    for start, end, colon in _items(source):
        count += 1
        if end - start > _PIECE:
            take(source[begun:start])
            if opener == "{" and colon >= 0:
                key = _parsed(_item(source[start:colon].strip()), flags)
                pairs.append((key, _read(source[colon + 1 : end].strip(), flags, depth + 1)))
            else:
                items.append(_read(_item(source[start:end].strip()), flags, depth + 1))
            begun = end + 1
        elif end - begun > _PIECE:
            take(source[begun:end])
            begun = end + 1
    take(source[begun:-1])
    if (pairs and items) or (source[0] == "(" and count < 2):
        raise ValueError("mixed, or only brackets around a value")
    return _object(pairs, flags) if pairs else items


def _items(source: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, offset of its colon or -1) of each item of a container."""
    stack: list[str] = []
    start, colon = 1, -1
    for match in _TOKEN.finditer(source):
        token = match.group()
        if token in CLOSER:
            stack.append(CLOSER[token])
        elif token in ")]}":
            if not stack or stack.pop() != token or (not stack and match.end() < len(source)):
                raise ValueError("brackets don't match")
        elif token == ":" and len(stack) == 1 and colon < 0:
            colon = match.start()
        elif token == "," and len(stack) == 1:
            yield start, match.start(), colon
            start, colon = match.end(), -1
    if stack:
        raise ValueError("brackets don't match")
    if source[start:-1].strip():
        yield start, len(source) - 1, colon


def _parsed(source: str, flags: list[str]) -> Any:
    if "\\" in source:  # Python warns of escapes that it doesn't know, and keeps them
        source = _LITERAL.sub(
            lambda string: string[0] if string["raw"] else _UNKNOWN_ESCAPE.sub(_known_escape, string[0]), source
        )
    python = _TOKEN.sub(_held, source) if "<" in source else source
    return _Reader(source, python != source, flags).value(ast.parse(python, mode="eval").body)


def _joined(source: str) -> bool:
    """Whether there are strings side by side, but for what pprint broke over lines."""
    plain = _QUOTED.sub("\0", source)
    return plain.count("\0") > 1 and (_JOINED.search(plain) or _BROKEN.search(source)) is not None


def _item(source: str) -> str:
    """The source of an item or a key. Raises ValueError where it is more than one string."""
    if source[:1] not in CLOSER and _joined(source):
        raise ValueError("two strings where one was meant, or the other way round")
    return source


def _known_escape(match: re.Match[str]) -> str:
    return match[1] or r"\\"


def _held(match: re.Match[str]) -> str:
    """A string literal as long as the `<...>` in whose place it is parsed."""
    text = match.group()
    return "'" + re.sub(r"['\\]", "_", text[1:-1]) + "'" if text[0] == "<" else text


_TEXTS = frozenset(
    [
        "Decimal",
        "UUID",
        "Timestamp",
        "Timedelta",
        "Period",
        "datetime64",
        "timedelta64",
        "ObjectId",
        "ISODate",
        "NumberLong",
        "NumberInt",
        "NumberDecimal",
        "Path",
        "PosixPath",
        "PurePosixPath",
        "WindowsPath",
        "PureWindowsPath",
        "IPv4Address",
        "IPv6Address",
        "IPv4Network",
        "IPv6Network",
        "URL",
        "str_",
        "bytes_",
        "float16",
        "float32",
        "float64",
        "longdouble",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool_",
    ]
)
"""Constructors of one text or number."""
_OBJECTS = frozenset(
    ["OrderedDict", "dict", "Counter", "mappingproxy", "frozendict", "immutabledict", "AttrDict", "Box", "Munch"]
)
_LISTS = frozenset(
    ["list", "tuple", "set", "frozenset", "deque", "array", "dict_keys", "dict_values", "dict_items", "odict_keys"]
)
"""Constructors of one container; `dtype` and `maxlen` beside it are no data."""
_NAMES = {"nan": float("nan"), "NaN": float("nan"), "inf": float("inf"), "Infinity": float("inf")}
_NON_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_WORDS = {"null": None, "true": True, "false": False}


def _double_quoted(string: str) -> str:
    return '"' + string[1:-1].replace('"', '\\"') + '"'


class _Reader:
    """Reads a syntax tree. `held`: some strings of it stand for a `<...>` of the source."""

    def __init__(self, source: str, held: bool, flags: list[str]) -> None:
        self.source, self.held, self.flags = source, held, flags
        self.long_floats = bool(_LONG_FLOAT.search(source))
        self.joined = _joined(source)
        if self.joined and not _PYTHON.search(_QUOTED.sub(lambda string: string[0][0], source)):
            raise ValueError("JSON that lacks something, which Python would read as one string")
        self.lines: list[bytes] = []

    def text(self, node: ast.expr) -> str:
        """The source text of a node."""
        if not self.lines:
            self.lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", self.source.encode())
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = self.lines[first : last + 1]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode()

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() as value):
                if self.held and (source := self.text(node))[:1] == "<":
                    self.flags.append("constructor_call")
                    return source
                return value
            case ast.Constant(value=None | bool() | int() as value):
                return value
            case ast.Constant(value=float() as number):
                return self._float(number, node) if self.long_floats else number
            case ast.Constant(value=bytes() as raw):
                self.flags.append("bytes")
                try:
                    return raw.decode()
                except UnicodeDecodeError:
                    return self.text(node)
            case ast.Dict(keys=keys, values=values):
                pairs = [
                    (self.item(key), self.value(value))
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                ]
                if len(pairs) < len(keys):
                    raise ValueError("unpacking is no literal")
                return _object(pairs, self.flags)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                there = [item for item in items if not (isinstance(item, ast.Constant) and item.value is ...)]
                if len(there) < len(items):
                    self.flags.append("elided")
                if isinstance(node, ast.Set):
                    if not there:
                        return {}
                    self.flags.append("set")
                return [self.item(item) for item in there]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant() | ast.Name() as operand):
                number = self.value(operand)
                if isinstance(number, int | float) and not isinstance(number, bool):
                    return -number if isinstance(sign, ast.USub) else number
                if "number_as_text" in self.flags and isinstance(number, str):
                    return self.text(node)
            case ast.Name(id=name) if name in _NAMES:
                self.flags.append("non_finite")
                return _NAMES[name]
            case ast.Name(id=name) if name in _WORDS:
                return _WORDS[name]
            case ast.Call():
                self.flags.append("constructor_call")
                met = len(self.flags)
                try:
                    return self._call(node)
                except (ValueError, TypeError, OverflowError):
                    del self.flags[met:]
                    return self.text(node)
            case (
                ast.Constant(value=complex())
                | ast.BinOp(right=ast.Constant(value=complex()))
                | ast.Name(id="NaT" | "Ellipsis")
            ):
                self.flags.append("constructor_call")
                return self.text(node)
        raise ValueError(f"{type(node).__name__} is no literal")

    def item(self, node: ast.expr) -> Any:
        """The value of an item or a key."""
        if self.joined and isinstance(node, ast.Constant):
            _item(self.text(node))
        return self.value(node)

    def _float(self, number: float, node: ast.expr) -> float | str:
        source = self.text(node)
        exact = Decimal(source.replace("_", ""))
        if math.isinf(number) or (number == 0 and exact):
            self.flags.append("number_as_text")
            return source
        if exact != Decimal(repr(number)):
            self.flags.append("rounded_number")
        return number

    def _call(self, node: ast.Call) -> Any:
        """What a call says. Raises ValueError where only its source text says it."""
        full = _dotted(node.func)
        name = full.rpartition(".")[2]
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if not full or None in keywords:
            raise ValueError("no constructor")
        if name in ("datetime", "date", "time", "timedelta"):
            return str(_moment(node)) if name == "timedelta" else _moment(node).isoformat()
        zone = keywords.pop("tz", None) if name == "Timestamp" else None  # its offset stands in the text
        if zone is not None and not (isinstance(zone, ast.Constant) and zone.value == "UTC"):
            raise ValueError("a zone is more than an offset")
        if full == "float" and len(node.args) == 1 and not keywords:
            word = self.value(node.args[0])
            if not isinstance(word, str) or not _NON_FINITE.fullmatch(word):
                raise ValueError("no number that has no digits")
            self.flags.append("non_finite")
            return float(word)
        if name in _TEXTS and len(node.args) == 1 and not keywords:
            value = self.value(node.args[0])
            if isinstance(value, str | int | float):
                return value
        elif name == "defaultdict" and len(node.args) == 2 and not keywords:
            value = self.value(node.args[1])
            if isinstance(value, dict | Pairs):
                return value
        elif name in _OBJECTS and len(node.args) < 2 and (not keywords or not node.args):
            if not node.args:
                return _object([(str(key), self.value(value)) for key, value in keywords.items()], self.flags)
            value = self.value(node.args[0])
            if isinstance(value, dict | Pairs):
                return value
            if isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value):
                return _object([(key, item) for key, item in value], self.flags)
        elif name in _LISTS and len(node.args) < 2 and keywords.keys() <= {"dtype", "maxlen"}:
            value = self.value(node.args[0]) if node.args else []
            if isinstance(value, list):
                self.flags.extend(["set"] if name in ("set", "frozenset") else [])
                return value
        elif keywords and not node.args and "__class__" not in keywords:
            return {"__class__": full, **{str(key): self.value(value) for key, value in keywords.items()}}
        raise ValueError("no constructor that is known")


def _object(pairs: list[tuple[Any, Any]], flags: list[str]) -> dict[str, Any] | Pairs:
    if all(isinstance(key, str) for key, _ in pairs):
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        flags.append("duplicate_keys")
    elif any(isinstance(key, dict | Pairs) for key, _ in pairs):
        raise ValueError("an object is no key")
    elif len({(type(key), repr(key)) for key, _ in pairs}) < len(pairs):
        flags.append("duplicate_keys")
    return Pairs(pairs)


def _dotted(node: ast.expr) -> str:
    """The dotted name that a call calls, "" where it calls anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, node.id])) if isinstance(node, ast.Name) else ""


def _number(node: ast.expr) -> int:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sign * node.value
    raise ValueError("no integer")


def _moment(node: ast.expr) -> Any:
    """The datetime, date, time or timedelta of such a call. Raises ValueError where its text would lose something."""
    if not isinstance(node, ast.Call):
        raise ValueError("no call")
    kinds = {"datetime": datetime, "date": date, "time": time, "timedelta": timedelta}
    name = _dotted(node.func).rpartition(".")[2]
    if name not in kinds:
        raise ValueError("no moment")
    values: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg == "tzinfo":
            values["tzinfo"] = _zone(keyword.value)
        elif keyword.arg is None or keyword.arg == "fold":
            raise ValueError("ISO text has no such thing")
        else:
            values[keyword.arg] = _number(keyword.value)
    return kinds[name](*map(_number, node.args), **values)


_OFFSET = re.compile(r"\w+ .*?([+-]\d\d?):(\d\d)(?::00)? (?:STD|DST)")
_UTC_NAMES = ("UTC", "Etc/UTC", "Z")


def _zone(node: ast.expr) -> timezone | None:
    """A time zone of one known offset. Raises ValueError for any other."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):  # stands for <UTC> or <DstTzInfo 'Europe/Berlin' CEST+2:00:00 DST>
            if text == "UTC":
                return UTC
            if offset := _OFFSET.fullmatch(text):
                hours, minutes = int(offset[1]), int(offset[2])
                return timezone(timedelta(hours=hours, minutes=-minutes if offset[1][0] == "-" else minutes))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.upper() == "UTC":
            return UTC
        case ast.Call(args=args, keywords=keywords):
            name = _dotted(node.func).rpartition(".")[2]
            values = [*args, *(keyword.value for keyword in keywords if keyword.arg in ("key", "offset"))]
            if name in ("tzutc", "UTC"):
                return UTC
            if name == "ZoneInfo" and isinstance(values[0], ast.Constant) and values[0].value in _UTC_NAMES:
                return UTC
            if name == "timezone" and len(values) < 3:
                return timezone(_moment(values[0]))
            if name == "tzoffset" and len(values) == 2:
                seconds = values[1]
                return timezone(
                    timedelta(seconds=_number(seconds)) if not isinstance(seconds, ast.Call) else _moment(seconds)
                )
            if name.startswith("FixedOffset"):  # in minutes
                minutes_node = values[0]
                if isinstance(minutes_node, ast.Call):
                    return timezone(_moment(minutes_node))
                return timezone(timedelta(minutes=_number(minutes_node)))
    raise ValueError("no fixed offset")
