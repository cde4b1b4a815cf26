r"""Values -> the cheapest lossless text that a language model reads without training (H19, invariant 4).

The text is the cheapest, by o200k tokens, of compact JSON, TOON and the notation made here; JSON or TOON, which models
know better, also where the notation saves less than 3%. The notation is JSON without the quotes and commas that nothing
needs, and with tables:

    status:success warnings:[] data:{type:"two words" size:{w:1 h:2}}
    orders:[50]{id:ORD-*,customer{name,email:*.com},total,currency:EUR,items[]>{sku:SKU-*,price}}
    0001,Roberto Hodkiewicz,doyle@yahoo,746.52
     OXPKWW,173.47
     GW3VFP,199.79

Rules:
- Between blanks: `key:value`, `[item item]`, `{key:value key:value}`. All of JSON may stand there too.
- `[50]{head}` is a list of 50 records, one a row, cells between commas; `[50](head)` the same of 50 lists. A head names
  the fields in the records' order; what follows a colon says how the cells are spelled, or what all records hold (see
  `hyve.codecs`): `name`, `name:*.com`, `name:constant`. A field `(key)` makes the records an object's members.
- In a head, `name{...}` is an object whose fields are columns, `name(...)` a list whose places are, `name[1]{...}` a
  list of one such object. `name[]{...}` are lists of records, which stand in the cell as `[row;row]` (or after a colon,
  where all are the same), `name[]>{...}` such lists whose rows stand under their record, one blank deeper.
- Few records of many fields have a line per field: `[2]{`, then lines `name:*.com = cell,cell`, then `}`.
- An empty cell is a key that the record doesn't have; empty cells at a row's end are left out, a row of none is `,`.
  Where columns count on from row to row, every fifth row begins with the first one's full value and a colon.
- `!value` is a whole record that is no such record, or in a group's first cell (or a list's) what stands instead of it;
  `!!value` where two of these begin there, inner first. `=value` under a record is what stands instead of a list, `=`
  alone nothing.
- The first line may be a legend, `# ...`; it says what the marks in use mean. Text that could be taken for any of this
  is quoted.
- Keys that are no text stand in parentheses; several values are the list under `(values)`.

Time is linear in the values (times their depth, of which 60 levels are followed); same values, same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from hyve import codecs, toon
from hyve.codecs import KINDS, Kind
from hyve.strictjson import Pairs
from hyve.tokens import count_tokens
from hyve.writer import LEGEND, Writer

_DEPTH = 60
"""Containers nested deeper are shown as JSON."""

_CLEARER = 0.97
"""JSON and TOON are preferred where the notation costs more than this share of theirs."""

_TAKING_APART: frozenset[Kind] = frozenset({"affix", "steps"})
"""Codecs that leave out a part of what cells have in common."""

_NOT_FINITE = re.compile(r"NaN|-?Infinity")
_VALUES = "(values)"
_CONTAINERS = (dict, list, Pairs)


def encode(values: Sequence[Any], names: Collection[str] = ()) -> str:
    """`values` whole, in the cheapest text that reads back exactly and has all of `names` that any such text has.

    Several values: JSON lines, or the notation or TOON of their list under `(values)`.
    """
    depth, repeats = _survey(values)
    plain = [_json_lines(values, depth, repeats)] if values else []
    if depth <= _DEPTH and not repeats and (as_toon := _toon(values)):
        plain.append(as_toon)
    costs = [count_tokens(text) for text in plain]
    cheapest = min(zip(costs, plain, strict=True), key=lambda pair: pair[0]) if plain else None
    if cheapest and (depth == 0 or depth > _DEPTH):
        return cheapest[1]
    text = _notation(values)
    if any(name not in text and (not plain or name in plain[0]) for name in names):
        # A name that codecs take apart can't be found: it is spelled out where that costs no more than JSON or TOON.
        text = _notation(values, KINDS - _TAKING_APART)
    return cheapest[1] if cheapest and count_tokens(text) > cheapest[0] * _CLEARER else text


def in_toon(values: Sequence[Any]) -> str:
    """`values` whole as TOON, or as JSON lines where TOON can't hold them as they are (H34)."""
    depth, repeats = _survey(values)
    as_toon = _toon(values) if depth <= _DEPTH and not repeats else None
    return as_toon or _json_lines(values, depth, repeats)


def _toon(values: Sequence[Any]) -> str | None:
    if len(values) < 2:
        text = toon.encode(values[0]) if values else None
        return None if text is None or _NOT_FINITE.fullmatch(text) else text
    text = toon.encode(list(values))
    return text and f"{_VALUES}{text}"


def _survey(values: Sequence[Any]) -> tuple[int, bool]:
    """How deep containers are nested in the deepest of `values`, and whether one of them is a `Pairs`."""
    depth, repeats = 0, False
    level = [value for value in values if isinstance(value, _CONTAINERS)]
    while level:
        depth += 1
        below: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                below += container.values()
            elif isinstance(container, list):
                below += container
            else:
                repeats = True
                below += [item for pair in container for item in pair]
        level = [value for value in below if isinstance(value, _CONTAINERS)]
    return depth, repeats


def _json_lines(values: Sequence[Any], depth: int, repeats: bool) -> str:
    """Compact JSON, one value a line; keys that are no text stand in parentheses."""
    if repeats or depth > _DEPTH:
        return "\n".join(map(_json, values))
    text = "\n".join([json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in values])
    return codecs.escaped(text)


def _json(value: Any) -> str:
    """Compact JSON of a value that is nested deeper than Python calls functions, or holds `Pairs`."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if type(item) is _Mark:
            out.append(item)
        elif isinstance(item, dict | Pairs):
            pairs = list(item.items() if isinstance(item, dict) else item)
            stack.append(_Mark("}"))
            for i, (key, member) in reversed(list(enumerate(pairs))):
                name = [_Mark(codecs.quoted(key))] if type(key) is str else [_Mark(")"), key, _Mark("(")]
                stack += [member, _Mark(":"), *name, _Mark("," if i else "{")]
            if not pairs:
                stack.append(_Mark("{"))
        elif isinstance(item, list):
            stack.append(_Mark("]"))
            for i, member in reversed(list(enumerate(item))):
                stack += [member, _Mark("," if i else "[")]
            if not item:
                stack.append(_Mark("["))
        else:
            out.append(codecs.quoted(item) if type(item) is str else codecs.literal(item))
    return "".join(out)


class _Mark(str):
    """Punctuation on the stack of `_json`, not a value."""

    __slots__ = ()


def _notation(values: Sequence[Any], kinds: frozenset[Kind] = KINDS) -> str:
    writer = Writer(kinds)
    body = writer.document(values)
    least = count_tokens(body) * (1 - _CLEARER)
    weak = {
        kind
        for kind, saved in writer.saved.items()
        if kind != "constant" and saved < max(least, 2 * count_tokens(LEGEND[kind]))
    }
    if weak:
        writer = Writer(kinds - weak)
        body = writer.document(values)
    used = writer.used
    if {"affix", "time"} <= used:
        used = used - {"affix", "time"} | {"both"}
    legend = "; ".join(text for mark, text in LEGEND.items() if mark in used)
    return f"# {legend}\n{body}" if legend else body
