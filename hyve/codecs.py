"""Scalars and columns spelled in few o200k tokens, reversibly (for `hyve.notation`, and for views that show some rows).

o200k splits digits in groups of three, gives most words one token and most punctuation marks one each. So what repeats
from cell to cell moves into the column's head, and times lose their dashes and colons.

A head says how its cells are read. The text after a column's name is one of:

    :main                     constant: every row has this value, no row shows it
    :*.com                    affix: the value is the cell with `.com` put after it; "..." around it: the value is text
    :2025-<mmddThhmmss>Z      time: the cell is that part of the time, without its dashes and colons
    :1..100                   steps: counts on from row to row; `by 60`, `by 15s` where the step is not 1
    :{A:checkout B:cart}      codes: the cell is a code for a value; what has no code stands there itself

Rules:
- A cell is empty where the record has no such key; empty text is `""`.
- Text is bare where it can't be taken for anything else, and quoted as in JSON where it can.
- A codec is chosen by counting tokens of the whole column; same column, same choice.
"""

from __future__ import annotations

import enum
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal

from hyve.tokens import count_tokens


class Absent(enum.Enum):
    """What a record holds under a key that it does not have."""

    ABSENT = enum.auto()


ABSENT: Final = Absent.ABSENT
SCALARS: Final = frozenset({str, int, float, bool, type(None), Absent})

Kind = Literal["constant", "affix", "time", "steps", "codes"]
KINDS: Final[frozenset[Kind]] = frozenset({"constant", "affix", "time", "steps", "codes"})

_CONTROL = "\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff"
_RESERVED = r"(?:null|true|false|NaN|-?Infinity|[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\Z"
_FIRST = rf"[^\s\"!#=\[\]{{}},{_CONTROL}]"
_CELL = re.compile(rf"(?!{_RESERVED}){_FIRST}[^,{_CONTROL}]*(?<![\s\[\]{{}}])\Z")
_PART = re.compile(rf"(?!null\Z){_FIRST}[^,{_CONTROL}]*(?<![\s\[\]{{}}])\Z")
_PACKED = re.compile(r"[^;\[\]{}\"]*\Z")
_INLINE = re.compile(rf"(?!{_RESERVED})(?!.*\.\.)[^\s\"!#=(){{}}\[\],:;{_CONTROL}][^\s\"{{}}\[\],;{_CONTROL}]*\Z")
_HEAD = re.compile(rf"(?!.*(?:\.\.| by | = ))[^\s\"!#=,{{}}()\[\]<>*{_CONTROL}][^,{{}}()\[\]<>*{_CONTROL}]*(?<!\s)\Z")
_LITERAL = re.compile(rf"(?!.*(?:\.\.| = ))[^\",{{}}()\[\]<>*{_CONTROL}]*\Z")
_IS_RESERVED = re.compile(_RESERVED)
_PAIR = re.compile("[\ud800-\udbff](?=[\udc00-\udfff])")
_SURROGATE = re.compile("[\ud800-\udfff]")

_TO_WORD = re.compile(r"(?:.*\W)?", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?\d+\.")

_CODES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SHORT_NUMBER = 8
"""Numbers of more digits, all of one length, are shown by the digits in which they differ."""

_LONG = 200
"""Longer texts are no members of a series."""


@dataclass(frozen=True)
class Codec:
    """How a column is spelled.

    `header` follows the column's name in the head. `cells` are the rows' texts, None where rows don't show the column;
    then `labels` are what its values look like in full. `saved` counts tokens against plain cells, the header paid.
    """

    kind: Kind
    header: str
    cells: tuple[str, ...] | None
    saved: int
    labels: tuple[str, ...] | None = None


def quoted(text: str) -> str:
    r"""`text` as a JSON string, non-ASCII left readable.

    Lone surrogates are `\udXXX`; the first of a high and a low one that stand side by side, which JSON would make one
    character of, is `\u{dXXX}`.
    """
    return escaped(json.dumps(text, ensure_ascii=False))


def escaped(json_text: str) -> str:
    """JSON text with the lone surrogates of its strings spelled as `quoted` does."""
    if _SURROGATE.search(json_text):
        json_text = _PAIR.sub(lambda m: f"\\u{{{ord(m[0]):x}}}", json_text)
        json_text = _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):x}", json_text)
    return json_text


def literal(value: Any) -> str:
    """A scalar other than text: null, true, a number with all its digits."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if type(value) is float:
        if value != value:
            return "NaN"
        return repr(value).replace("inf", "Infinity")
    return str(value)


def inline(value: Any) -> str:
    """A scalar between blanks, in an object or a list that stands on one line."""
    if type(value) is not str:
        return literal(value)
    return value if _INLINE.match(value) else quoted(value)


def cell(value: Any, packed: bool = False) -> str:
    """A scalar between commas, in a row; `packed`: in a row that shares its line with other rows."""
    if type(value) is str:
        return value if _CELL.match(value) and (not packed or _PACKED.match(value)) else quoted(value)
    return "" if value is ABSENT else literal(value)


def _part(text: str, packed: bool) -> str:
    """The cell of an affix column: text, whatever it looks like."""
    return text if _PART.match(text) and (not packed or _PACKED.match(text)) else quoted(text)


def head_text(value: Any) -> str:
    """A scalar in a head."""
    if type(value) is not str:
        return literal(value)
    return value if _HEAD.match(value) and not _IS_RESERVED.match(value) else quoted(value)


def times(values: Sequence[str | None]) -> Codec | None:
    """For a table of which some rows are shown: the time codec of a column's texts; None where plain cells do.

    None among `values` is an empty cell, before and after.
    """
    present = [value for value in values if value is not None]
    if not present or not _TIME.fullmatch(present[0][:_LONG]):
        return None
    given = [ABSENT if value is None else value for value in values]
    return _times(given, present, count_tokens("\n".join(present)))


def spell(
    values: Sequence[Any],
    cells: Sequence[str],
    kinds: frozenset[Kind],
    packed: bool = False,
    places: Sequence[int] | None = None,
) -> Codec | None:
    """The cheapest codec among `kinds` for a column whose plain spelling is `cells`; None where that is cheapest.

    `places` are the rows' places in their own list, from 0, where steps may be counted by them.
    """
    if "constant" in kinds and (constant := _constant(values, cells)):
        return constant
    found: list[Codec] = []
    if "steps" in kinds and places is not None and (steps := _steps(values, cells, places)):
        return steps
    present = [value for value in values if value is not ABSENT and value is not None]
    types = set(map(type, present))
    if types == {str}:
        plain = count_tokens("\n".join(cells))
        if "affix" in kinds:
            found += _affixes(values, present, plain, packed)
        if "time" in kinds and _TIME.fullmatch(present[0][:_LONG]) and (time := _times(values, present, plain)):
            found.append(time)
    elif types == {int} and "affix" in kinds and min(present) >= 10**_SHORT_NUMBER:
        found += _digits(values, present, cells)
    if "codes" in kinds and len(values) > 7 and (codes := _codes(values, cells)):
        found.append(codes)
    return max(found, key=lambda codec: codec.saved) if found else None


def _constant(values: Sequence[Any], cells: Sequence[str]) -> Codec | None:
    first = cells[0]
    if not first or len(cells) < 2 or any(text != first for text in cells) or (first[0] in "{!" and first != "{}"):
        return None
    value = values[0]
    if type(value) is str and "*" in value:
        return None  # a head with a star is an affix
    header = ":" + (first if first[0] in "[{" else head_text(value))
    return Codec("constant", header, None, len(cells) * (count_tokens(first) + 1) - count_tokens(header))


def _worth(kind: Kind, header: str, cells: Sequence[str], plain: int) -> Codec | None:
    saved = plain - count_tokens("\n".join(cells)) - count_tokens(header)
    return Codec(kind, header, tuple(cells), saved) if saved > 4 + plain // 20 else None


def _affixes(values: Sequence[Any], present: list[str], plain: int, packed: bool) -> list[Codec]:
    before, behind = ends(present)
    found = []
    for left, right in {(before, behind), (before, ""), ("", behind), ("", "")}:
        header = _affix_header(left, right, any(map(_IS_RESERVED.match, present)))
        if header is None:
            continue
        end = -len(right) or None
        parts = [_part(value[len(left) : end], packed) if type(value) is str else cell(value) for value in values]
        codec = _worth("affix", header, parts, plain)
        if codec:
            found.append(codec)
    return sorted(found, key=lambda codec: (-codec.saved, codec.header))[:1]


def ends(texts: list[str]) -> tuple[str, str]:
    """What all of `texts` begin and end with, up to a word's end: no word and no number is torn apart."""
    before = common(min(texts), max(texts))
    if all(map(_IS_RESERVED.match, texts)):
        alike = before.isdigit() and len(before) > 2 and {len(text) for text in texts} == {len(texts[0])}
        return before if alike and len(texts[0]) > _SHORT_NUMBER and all(map(str.isdigit, texts)) else "", ""
    before = _TO_WORD.match(before)[0]  # type: ignore[index]
    if _DECIMAL.fullmatch(before):
        before = ""
    reverse = [text[::-1] for text in texts]
    behind = re.sub(r"\A\w+", "", common(min(reverse), max(reverse))[::-1])
    over = len(before) + len(behind) - min(map(len, texts))
    return before, re.sub(r"\A\w+", "", behind[over:]) if over > 0 else behind


def common(one: str, other: str) -> str:
    """What both texts begin with."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return one[:least]


def _affix_header(left: str, right: str, as_text: bool) -> str | None:
    both = left + right
    if not both and not as_text:
        return None
    if not (_LITERAL.match(left) and _LITERAL.match(right)):
        return None
    if not as_text and not left[:1].isspace() and not right[-1:].isspace():
        return f":{left}*{right}"
    return ":" + quoted(f"{left}*{right}")


def _digits(values: Sequence[Any], present: list[int], cells: Sequence[str]) -> list[Codec]:
    """Long integers of one length, by the digits in which they differ."""
    low, high = str(min(present)), str(max(present))
    before = common(low, high)
    if len(low) != len(high) or len(before) < 3 or len(before) == len(low):
        return []
    parts = [str(value)[len(before) :] if type(value) is int else cell(value) for value in values]
    codec = _worth("affix", f":{before}*", parts, count_tokens("\n".join(cells)))
    return [codec] if codec else []


_TIME = re.compile(
    r"(\d\d)(\d\d)-(\d\d)-(\d\d)(?:([T ])(\d\d):(\d\d)(?::(\d\d)(\.\d{1,12})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_FIELDS = ("yy", "yy", "mm", "dd", "T", "hh", "mm", "ss", ".f")
_MARKS = ("", "", "-", "-", "", "", ":", ":", "")


def _times(values: Sequence[Any], present: list[str], plain: int) -> Codec | None:
    """Times of one layout, by the part in which they differ."""
    matches = [_TIME.fullmatch(text) for text in present]
    groups = [match.groups() for match in matches if match]
    if len(groups) < len(present):
        return None
    columns = [set(column) for column in zip(*groups, strict=True)]
    if any(len(columns[i]) > 1 and (i in (4, 9) or None in columns[i]) for i in (4, 5, 6, 7, 9)):
        return None
    changing = [i for i in range(9) if len(columns[i]) > 1]
    if not changing or changing[0] == 8:
        return None
    first, last = changing[0], changing[-1]
    sample = groups[0]

    def constant(start: int, stop: int) -> str:
        return "".join(_MARKS[i] + (sample[i] or "") for i in range(start, stop) if sample[i] is not None)

    shape = "".join(sample[4] or "" if i == 4 else _FIELDS[i] for i in range(first, last + 1) if columns[i] != {None})
    left = constant(0, first) + _MARKS[first]
    header = f":{left}<{shape}>{constant(last + 1, 9)}{sample[9] or ''}"
    short = iter(["".join(part or "" for part in group[first : last + 1]) for group in groups])
    return _worth("time", header, [next(short) if type(v) is str else cell(v) for v in values], plain)


def _codes(values: Sequence[Any], cells: Sequence[str]) -> Codec | None:
    """Long values that come again and again, by a letter."""
    counts = Counter(text for text in cells if len(text) > 15)
    often = [text for text, count in counts.items() if count > 2]
    if not often or len(counts) > len(cells) // 3:
        return None
    costs = {text: count_tokens(text) for text in often}
    often = [text for text in often if counts[text] * (costs[text] - 1) > costs[text] + 3]
    often = sorted(often, key=lambda text: -counts[text] * costs[text])[: len(_CODES)]
    plain = count_tokens("\n".join(cells))
    if sum(counts[text] * costs[text] for text in often) < 6 * sum(counts[text] for text in often):
        return None
    chosen = set(often)
    code = dict(zip((text for text in counts if text in chosen), _CODES, strict=False))
    if not code or not set(code.values()).isdisjoint(cells):
        return None
    spelled = {text: value for text, value in zip(cells, values, strict=True) if text in code}
    shown = {text: inline(value) if isinstance(value, str) else text for text, value in spelled.items()}
    header = ":{" + " ".join(f"{letter}:{shown[text]}" for text, letter in code.items()) + "}"
    codec = _worth("codes", header, [code.get(text, text) for text in cells], plain)
    return codec if codec and codec.saved > max(30, plain * 2 // 5) else None


def _steps(values: Sequence[Any], cells: Sequence[str], places: Sequence[int]) -> Codec | None:
    """Numbers, numbered texts or times that rise or fall by the same step in every list."""
    if len(values) < 3 or max(places) < 2:
        return None
    kind = type(values[0])
    if kind not in (int, str) or any(type(value) is not kind for value in values):
        return None
    for series in (_integers, _numbered, _moments):
        found = series(values)
        if found is None:
            continue
        numbers, unit = found
        start = next(number for number, place in zip(numbers, places, strict=True) if place == 0)
        second = next(number for number, place in zip(numbers, places, strict=True) if place == 1)
        step = second - start
        if step and all(n == start + step * place for n, place in zip(numbers, places, strict=True)):
            whole = places[-1] == len(values) - 1
            return _steps_codec(values, cells, step, unit, whole)
    return None


def _steps_codec(values: Sequence[Any], cells: Sequence[str], step: int, unit: str, whole: bool) -> Codec:
    first, last = head_text(values[0]), head_text(values[-1])
    if type(values[0]) is str and (first[0] == '"') != (last[0] == '"'):
        first, last = quoted(values[0]), quoted(values[-1])
    by = f" by {_duration(step, unit)}" if unit else "" if abs(step) == 1 and (whole or step == 1) else f" by {step}"
    header = f":{first}..{last if whole else ''}{by}"
    saved = count_tokens("\n".join(cells)) + len(cells) - count_tokens(header)
    return Codec("steps", header, None, saved, tuple(cells))


def _integers(values: Sequence[Any]) -> tuple[list[int], str] | None:
    return (list(values), "") if type(values[0]) is int else None


_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL | re.ASCII)


def _numbered(values: Sequence[Any]) -> tuple[list[int], str] | None:
    """The last number in each text, where all else is the same."""
    if type(values[0]) is not str or len(values[0]) > _LONG:
        return None
    match = _NUMBERED.fullmatch(values[0])
    if match is None:
        return None
    before, digits, behind = match.groups()
    width = len(digits) if digits[0] == "0" else 1
    numbers = []
    for value in values:
        middle = value[len(before) : len(value) - len(behind)]
        if len(middle) > 15 or not (middle.isascii() and middle.isdigit()):
            return None
        number = int(middle)
        if value != f"{before}{number:0{width}d}{behind}":
            return None
        numbers.append(number)
    return numbers, ""


def _moments(values: Sequence[Any]) -> tuple[list[int], str] | None:
    """Times of one layout in the smallest unit they show: `d` days, `m` minutes, `s0` seconds, `s3` milliseconds."""
    if type(values[0]) is not str or (first := _TIME.fullmatch(values[0][:_LONG])) is None:
        return None
    layout = (first[5], first[10], len(first[9] or ""), first[6] is None, first[8] is None)
    moments = []
    for value in values:
        match = _TIME.fullmatch(value[:_LONG])
        if match is None or layout != (match[5], match[10], len(match[9] or ""), match[6] is None, match[8] is None):
            return None
        century, year, month, day, _, hour, minute, second, fraction, _ = match.groups()
        try:
            days = date(int(century + year), int(month), int(day)).toordinal()
        except ValueError:
            return None
        if int(hour or 0) > 23 or int(minute or 0) > 59 or int(second or 0) > 59:
            return None
        if hour is None:
            moments.append(days)
        elif second is None:
            moments.append(days * 1440 + int(hour) * 60 + int(minute))
        else:
            whole = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)
            places = max(0, len(fraction or "") - 1)
            moments.append(whole * 10**places + int((fraction or ".0")[1:]) if places else whole)
    unit = "d" if layout[3] else "m" if layout[4] else f"s{max(0, layout[2] - 1)}"
    return moments, unit


def _duration(step: int, unit: str) -> str:
    """`step` in the largest unit that shows it whole: 1d, -2h, 15s, 0.25s."""
    if unit == "d":
        return f"{step}d"
    sign, size = ("-", -step) if step < 0 else ("", step)
    scale = 10 ** int(unit[1:]) if unit[0] == "s" else 1
    if unit[0] == "s" and size % scale:
        whole, rest = divmod(size, scale)
        return f"{sign}{whole}.{str(rest).zfill(int(unit[1:])).rstrip('0')}s"
    seconds = size // scale if unit[0] == "s" else size * 60
    for name, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{sign}{seconds // length}{name}"
    return f"{sign}{seconds}s"
