"""The JSON value that begins somewhere in a text, in a time that is linear in what is read, whatever stands there."""

from __future__ import annotations

import json
import re
from typing import Any

from hyve.exactjson import read_plain
from hyve.strictjson import MAX_DEPTH, STRING, Decoder


def raw_decode(decoder: Decoder, text: str, start: int) -> tuple[Any, int, int]:
    """(value, end, -1) of the JSON value at `start`, or (None, start, offset of the failure).

    Reads a growing window: an error's line and column are counted from the start of what the decoder was given, which
    over a whole file of near-JSON lines would take the square of its length. `decoder.met` is of this value only.
    """
    if (wrong := fails_at(text, start)) >= 0:
        return None, start, wrong
    size = 4096
    while True:
        window = text[start : start + size]
        try:
            value, end = _decoded(decoder, window)
        except json.JSONDecodeError as error:
            cut = error.pos > len(window) - 64 or error.msg.startswith("Unterminated")
            if not cut or start + size >= len(text):
                return None, start, start + error.pos
            size *= 16
        except RecursionError:
            return None, start, _far_below(text, start)
        except ValueError:
            return None, start, start + 1
        else:
            return value, start + end, -1


_PLAIN = json.JSONDecoder()


def _decoded(decoder: Decoder, window: str) -> tuple[Any, int]:
    """(value, end) of the JSON value that a text begins with. Raises ValueError and RecursionError.

    Python's decoder without the hooks of `decoder`, and then orjson, together take a third less time than with them,
    and a quarter of it where there is no such value.
    """
    decoder.met.clear()
    try:
        end = _PLAIN.raw_decode(window)[1]
    except json.JSONDecodeError:
        if decoder.strict:
            raise
    except (ValueError, RecursionError):
        pass  # integers of thousands of digits
    else:
        if (plain := read_plain(window[:end], 0)) is not None:
            return plain[0], end
    return decoder.raw_decode(window)


# What after a bracket can't become JSON, as seen within its first tokens. The decoder finds the same, but by way of an
# exception, which takes ten times as long; and near-JSON has a bracket every few characters.
_W, _KEY, _STARTS = r"[ \t\r\n]*+", r'"[^"\\]{0,64}+(?:\\.[^"\\]{0,64}+){0,8}+"', r'"\[{\dtfnNI-'
_SCALAR = rf"(?:{_KEY}|-?\d[\d.eE+-]*+|true|false|null|NaN|-?Infinity){_W}"
_MEMBER = rf"{_KEY}{_W}:{_W}"
_MEMBERS, _ITEMS = rf"(?:{_MEMBER}{_SCALAR},{_W}){{0,16}}+", rf"(?:{_SCALAR},{_W}){{0,16}}+"
_NO_JSON = re.compile(
    rf"""(?: (?: \{{ {_W} {_MEMBERS} {_MEMBER} | \[ {_W} {_ITEMS} ) (?= [\[{{] ) ){{0,16}}+
    (?: \{{ {_W} {_MEMBERS} (?: [^\s"}}] | {_KEY} {_W} [^\s:] | {_MEMBER} (?: [^\s{_STARTS}] | {_SCALAR} [^\s,}}] ) )
      | \[ {_W} {_ITEMS} (?: [^\s\]{_STARTS}] | {_SCALAR} [^\s,\]] ) )""",
    re.VERBOSE,
)


def fails_at(text: str, start: int) -> int:
    """Where, within the first tokens from `start` on, what stands there is no JSON; -1 where it may be."""
    wrong = _NO_JSON.match(text, start)
    return wrong.end() - 1 if wrong else -1


_FAR = 3 * MAX_DEPTH
_NESTING = re.compile(rf"{STRING.pattern}|[\[{{]{{1,{_FAR}}}+|[\]}}]++")


def _far_below(text: str, start: int) -> int:
    """Where the containers open that the one at `start`, deeper than Python can read, holds _FAR levels further in.

    What opens on the way is, for the most part, too deep as well: Python reads some 900 levels.
    """
    depth = 0
    for match in _NESTING.finditer(text, start):
        first, end = match.span()
        if text[first] in "[{":
            depth += end - first
            if depth >= _FAR:
                return end
        elif text[first] != '"':
            depth -= end - first
    return start + 1
