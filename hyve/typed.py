"""Text columns -> typed columns beside them: numbers, times, durations, sizes that nearly all of it spells (H9).

Rules:
- A column is typed if 19 of 20 texts in it are, or all but one of at least ten; words for "none" count neither way.
  What is not of the type is NULL there, and headers say how many texts that is. Nothing is guessed, and the text stays.
- Numbers: BIGINT, or DOUBLE; DECIMAL where a double would round whole numbers. NaN and infinities, which would spoil
  every sum, are NULL. Whole numbers beyond 64 bits are ids, unless there are few of them.
- Times: nanoseconds, UTC where each text says its zone, else as written. Most of a column says which of the two it is:
  the instant of a time without a zone among zoned ones isn't known, so it is NULL. Times that 64-bit nanoseconds don't
  reach, such as the year 1 for "not set", and leap seconds are NULL, too.
- Numbers with the time of the last one behind them, as kubectl prints restarts (`12 (2m14s ago)`), are the number.
- Durations are in seconds (`1h2m`, `250ms`, `PT1.5S`). Where all is like `100m` it may be thousandths, and is none,
  unless the column's name tells: of a CPU it is thousandths (a number, of cores), of an age (`LAST SEEN`) minutes.
- Sizes are in bytes: `128Mi` and `1.5 GiB` are of binary units, `512MB` and `100kB` of decimal ones, as the standard
  has it. `5G` may be anything, and is none.
- A 0 without a unit is as good as one with it. A column of which nothing can be read has none.
- Percentages are the number before the sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hyve import zones

KINDS = NUMBER, TIME, SECONDS, BYTES, PERCENT = ("number", "time", "seconds", "bytes", "percent")
"""What a column may spell."""

_DIGITS = r"(?:\d+(?:\.\d*)?|\.\d+)"
_NOT_FINITE = r"[+-]?(?i:nan|inf|infinity)"
_NUMBER = rf"(?:[+-]?{_DIGITS}(?:[eE][+-]?\d{{1,3}})?|{_NOT_FINITE})"
_ROUNDED = r"^[+-]?0*[1-9]\d{15}"
"""Numbers that a double may round to another whole number."""

_AGO = r" \([^()]{1,40} ago\)$"
_CORES = rf"{_DIGITS}m?"

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
_OFFSET = r"[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?"
_ZONE = rf"(?:Z|UTC|GMT|{zones.KNOWN}|{_OFFSET}(?: UTC)?)"
_TIME = (
    rf"\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?: ?{_ZONE})?)?|\d{{4}}/\d\d/\d\d {_CLOCK}"
    rf"|\d\d/[A-Z][a-z]{{2}}/\d{{4}}:{_CLOCK} {_OFFSET}"
    rf"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? [A-Z][a-z]{{2}} \d{{4}} {_CLOCK} {_ZONE}"
)
_WRITTEN = rf"^\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK})?$"
_ZONED = rf"^\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|{_OFFSET})$"
_ACCESS_LOG = r"^(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$"
_MAIL = rf"^[A-Z][a-z]{{2}}, (\d\d?) ([A-Z][a-z]{{2}}) (\d{{4}}) ({_CLOCK}) ({_ZONE})$"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_UNITS = {
    "d": ("d", 86_400),
    "h": ("h", 3_600),
    "m": ("m(?:in)?", 60),
    "s": ("s(?:ec)?", 1),
    "ms": ("ms", -1_000),
    "us": ("[uµμ]s", -1_000_000),
    "ns": ("ns", -1_000_000_000),
}
"""Units of durations: how they are written, and how many seconds they have or (negative) a second has of them."""


def _amounts(units: dict[str, str], between: str = "") -> str:
    """The pattern of amounts of some units one after the other, each in a group called after the unit."""
    return "".join(rf"(?:(?P<{name}>{_DIGITS}){between}{written}{between})?" for name, written in units.items())


_SHORT_DURATION = rf"(?P<sign>[+-]?)(?:{_amounts({name: written for name, (written, _) in _UNITS.items()}, ' ?')}|0)"
_OVER = r" \(x\d+ over [^()]{1,40}\)$"
"""How often an event came, behind its age, as kubectl prints it."""
_ISO_DURATION = rf"(?P<sign>[+-]?)P{_amounts({'d': 'D'})}(?:T{_amounts({'h': 'H', 'm': 'M', 's': 'S'})})?"
_ENDED = r"[a-zDHMS]$|^[+-]?0$"
_CLEAR = r"[dhsi]"
"""What `100m` lacks."""

_SIZE = rf"(?:(?P<amount>{_DIGITS}) ?(?P<unit>[KMGTPE]iB?|[kKMGTPE]?B)|0)"
_SIZES = {
    "": 1,
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", 1)},
    **{unit: 1000**power for power, unit in enumerate("KMGTPE", 1)},
    "k": 1000,
}
"""Bytes of the units of sizes, without their B."""
_SIZE_UNITS, _SIZE_BYTES = pa.array(_SIZES), pa.array([float(size) for size in _SIZES.values()])
_PERCENT = rf"(?P<amount>[+-]?{_DIGITS}) ?%"

_BEGINS = frozenset("0123456789+-.PNnIiMTWFS")
_FEW = 1_000
"""Texts that are looked at one by one: so few take less time than a call of Arrow, whose code is cold between two of
them."""
_SAMPLE, _LONGEST = 64, 400
"""Texts that tell whether a column may spell anything; one of more characters spells nothing."""
_NOTHING = pa.array(
    ["", "-", "--", "N/A", "n/a", "None", "none", "<none>", "null", "NULL", "<nil>", "<unknown>", "<unset>"],
    pa.string(),
)
_NOTHING_TEXTS = frozenset(_NOTHING.to_pylist())
_NULL, _EMPTY, _ZERO, _MINUS = (pa.scalar(text, pa.string()) for text in (None, "", "0", "-"))

_INSTANT = pa.timestamp("ns")

Values = Any
"""An Arrow array, in one piece or in chunks."""


def spelled(texts: Values, name: object = "") -> Iterator[tuple[str, Values]]:
    """What a column of texts spells, be they held as codes: (NUMBER, TIME, ...; the values)."""
    sample = _sample(texts)
    if not _likely(sample, lambda text: text[0] in _BEGINS and len(text) <= _LONGEST):
        return
    of_name: list[_Reader] = []
    if isinstance(name, str) and any(text.endswith("m") for text in sample):
        of_name = [reader for told, reader in _BY_NAME if told.search(name)]
    for kind, form, read in (*of_name, *_READERS):
        if _likely(sample, form.fullmatch):
            array: Any = texts.cast(pa.string()) if pa.types.is_dictionary(texts.type) else texts
            values = read(_without_nothing(array), sample)
            if values is not None and values.null_count < len(values):
                yield kind, values
                return


def _sample(texts: Values) -> list[str]:
    """Some of a column's texts that aren't words for "none", from all of its length."""
    if len(texts) <= _FEW:
        listed = [text for text in texts.to_pylist() if text is not None]
        some = [text for text in _evenly(listed) if text not in _NOTHING_TEXTS]
        if len(some) < _SAMPLE // 2 and len(listed) > _SAMPLE:
            some = _evenly([text for text in listed if text not in _NOTHING_TEXTS])
        return some
    told = texts.drop_null() if texts.null_count else texts
    sample = _spread(told)
    if len(sample) < _SAMPLE // 2 and len(told) > _SAMPLE:
        told = told.cast(pa.string()) if pa.types.is_dictionary(told.type) else told
        sample = _spread(told.filter(pc.invert(pc.is_in(told, _NOTHING))))
    return sample


def _evenly(texts: list[str]) -> list[str]:
    """_SAMPLE of some texts at equal distances, or all if there are no more."""
    return [texts[place] for place in _places(len(texts))[0]] if len(texts) > _SAMPLE else texts


def _without_nothing(texts: Values) -> Values:
    """Texts, null for words for "none"."""
    if len(texts) <= _FEW and _NOTHING_TEXTS.isdisjoint(texts.to_pylist()):
        return texts
    return pc.if_else(pc.is_in(texts, _NOTHING), _NULL, texts)


def _spread(texts: Values) -> list[str]:
    """Those that aren't words for "none" of _SAMPLE texts at equal distances, or of all if there are no more."""
    if len(texts) > _SAMPLE:
        places, array = _places(len(texts))
        if isinstance(texts, pa.ChunkedArray):  # taken together its codes may be too narrow for the texts of all chunks
            found = [texts[place].as_py() for place in places]
        else:
            found = texts.take(array).to_pylist()
    else:
        found = texts.to_pylist()
    return [text for text in found if text not in _NOTHING_TEXTS]


@lru_cache(maxsize=64)
def _places(count: int) -> tuple[list[int], pa.Array[Any]]:
    """_SAMPLE places at equal distances of so many: those of a table's columns are the same."""
    places = np.linspace(0, count - 1, _SAMPLE).astype(np.int64)
    return places.tolist(), pa.array(places)


def _likely(sample: Sequence[str], spells: Callable[[str], Any]) -> bool:
    """Whether three of four do: most of a column may do then."""
    odd, most = 0, len(sample) // 4
    for text in sample:
        if not spells(text):
            odd += 1
            if odd > most:
                return False
    return bool(sample)


def _most(array: Values, good: Values) -> Values | None:
    """The texts that are `good`, null for others; None if these are too many."""
    told = len(array) - array.null_count
    odd = told - (pc.sum(good).as_py() or 0)
    if odd == told or (odd * 20 > told and (odd > 1 or told < 10)):
        return None
    return pc.if_else(good, array, _NULL)


def _numbers(texts: Values, sample: Sequence[str]) -> Values | None:
    with suppress(pa.ArrowInvalid):
        return texts.cast(pa.int64())
    try:
        read = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        texts = pc.replace_substring_regex(texts, _AGO, "")
        some = _most(texts, _matches(texts, f"^{_NUMBER}$"))
        if some is None:
            return None
        texts = pc.if_else(_matches(some, rf"^{_NOT_FINITE}$"), _NULL, some)
        read = texts.cast(pa.float64())
        if not pc.any(pc.not_equal(read, pa.scalar(0.0))).as_py():
            return None  # what is not 0 is no number: a size, or a duration
        with suppress(pa.ArrowInvalid):
            return texts.cast(pa.int64())
    lengths: Values = pc.utf8_length(texts)
    if (pc.max(lengths).as_py() or 0) > 15 and (long := pc.sum(_matches(texts, _ROUNDED)).as_py()):
        return _exact(texts, long)
    return pc.if_else(pc.is_finite(read), read, pa.scalar(None, pa.float64()))


def _exact(texts: Values, long: int) -> Values | None:
    """Numbers, `long` of them with more digits than a double keeps, as decimals; None where these don't hold them."""
    whole = not pc.any(_matches(texts, r"[.eE]")).as_py()
    if whole and long * 20 > len(texts) - texts.null_count:
        return None
    fractions = pc.struct_field(pc.extract_regex(texts, r"\.(?P<digits>\d+)$"), "digits")
    places = pc.max(pc.utf8_length(fractions)).as_py() or 0
    with suppress(pa.ArrowInvalid):
        return texts.cast(pa.decimal128(38, places))
    return None


def _times(texts: Values, sample: Sequence[str]) -> Values | None:
    told = [text for text in sample if len(text) >= 10]
    if len(texts) <= _FEW and _in_range([text for text in texts.to_pylist() if text is not None]):
        read = _instants(texts)
        if read is not None:
            return read
    if any(text[2] == "/" for text in told):
        texts = pc.replace_substring_regex(texts, _ACCESS_LOG, r"\3-\2-\1T\4\5")
    elif any(text[3] == "," for text in told):
        texts = pc.replace_substring_regex(texts, _MAIL, r"\3-\2-\1T\4\5")
        texts = pc.replace_substring_regex(texts, r"-(\d)T", r"-0\1T")
    if any(text[2] == "/" or text[3] == "," for text in told):
        for number, month in enumerate(MONTHS, 1):
            texts = pc.replace_substring(texts, f"-{month}-", f"-{number:02d}-")
    if any(text[4] == "/" for text in told):
        texts = pc.replace_substring(texts, "/", "-", max_replacements=2)
    if any("," in text for text in told):
        texts = pc.replace_substring(texts, ",", ".")
    if any(text.endswith(("UTC", "GMT")) for text in told):
        texts = pc.replace_substring_regex(texts, rf"({_OFFSET}) UTC$", r"\1")
        texts = pc.replace_substring_regex(texts, r" ?(?:UTC|GMT)$", "Z")
    if any(text[-1:] in "KT" for text in told):
        for name, offset in zones.OFFSETS.items():
            texts = pc.replace_substring_regex(texts, rf" ?{name}$", offset)
    if any(" " in text[11:] for text in told):
        texts = pc.replace_substring_regex(texts, rf" (Z|{_OFFSET})$", r"\1")
    if pc.all(_matches(texts, r"^\d{4}-"), min_count=0).as_py():
        read = _instants(_reached(texts))
        if read is not None:
            return read
    zoned, written = (_matches(texts, form) for form in (_ZONED, _WRITTEN))
    some = _most(texts, max(zoned, written, key=lambda good: pc.sum(good).as_py() or 0))
    if some is None:
        return None
    days = pc.utf8_slice_codeunits(some, 0, 10)
    known = pa.array([day for day in pc.unique(days).to_pylist() if day and _is_day(day)], pa.string())
    return _instants(_reached(pc.if_else(pc.is_in(days, known), some, _NULL)))


def _in_range(texts: Sequence[str]) -> bool:
    """Whether 64-bit nanoseconds reach all of some texts that are ISO 8601 times, as the first of them may be: what is
    none is refused when they are read."""
    first, last = min(texts, default="2000-"), max(texts, default="2000-")
    return first[4:5] == "-" and first > "1678" and last < "2262"


def _reached(times: Values) -> Values:
    """Those that 64-bit nanoseconds reach."""
    reached = pc.and_(pc.greater(times, pa.scalar("1678")), pc.less(times, pa.scalar("2262")))
    return pc.if_else(reached, times, _NULL)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _instants(array: Values) -> Values | None:
    for zone in ("UTC", None):
        with suppress(pa.ArrowInvalid):
            read = array.cast(pa.timestamp("ns", zone))
            return read.view(_INSTANT) if isinstance(read, pa.Array) else read.cast(_INSTANT)
    return None


def _seconds(form: str, texts: Values, sample: Sequence[str], clear: bool) -> Values | None:
    """Durations of a form; unless the form is `clear`, some of them must tell that they are no thousandths."""
    texts = pc.replace_substring_regex(texts, _OVER, "")
    some = _amounting(texts, form)
    if some is None or not (clear or pc.any(_matches(some, _CLEAR)).as_py()):
        return None
    return _total(pc.extract_regex(some, f"^{form}$"))


def _cores(texts: Values, sample: Sequence[str]) -> Values | None:
    some = _most(texts, _matches(texts, f"^{_CORES}$"))
    if some is None:
        return None
    amounts = pc.replace_substring_regex(some, "m$", "").cast(pa.float64())
    return pc.if_else(pc.ends_with(some, "m"), pc.divide(amounts, 1_000.0), amounts)


def _amounting(array: Values, form: str) -> Values | None:
    """The texts of a form of durations that name an amount of something, if most do."""
    return _most(array, pc.and_(_matches(array, f"^{form}$"), _matches(array, _ENDED)))


def _total(amounts: Any) -> Values:
    """The seconds that amounts of units are together."""
    total: Any = 0.0
    for field in amounts.type:
        if field.name == "sign":
            continue
        _, size = _UNITS[field.name]
        amount = _doubles(pc.struct_field(amounts, field.name))
        total = pc.add(total, pc.multiply(amount, float(size)) if size > 0 else pc.divide(amount, float(-size)))
    minus = pc.equal(pc.struct_field(amounts, "sign"), _MINUS)
    return pc.if_else(minus, pc.negate(total), total)


def _sizes(texts: Values, sample: Sequence[str]) -> Values | None:
    found = _found(texts, _SIZE)
    if found is None:
        return None
    units: Any = pc.replace_substring(pc.struct_field(found, "unit"), "B", "")
    if not pc.any(pc.not_equal(units, _EMPTY)).as_py():
        return None
    sizes: Any = pc.multiply(
        _doubles(pc.struct_field(found, "amount")), _SIZE_BYTES.take(pc.index_in(units, _SIZE_UNITS))
    )
    with suppress(pa.ArrowInvalid):
        return sizes.cast(pa.int64())
    return sizes


def _percentages(texts: Values, sample: Sequence[str]) -> Values | None:
    found = _found(texts, _PERCENT)
    return None if found is None else _doubles(pc.struct_field(found, "amount"))


def _found(array: Values, form: str) -> Any:
    """The groups of a form in the texts of which most are like it; else None."""
    some = _most(array, _matches(array, f"^{form}$"))
    return None if some is None else pc.extract_regex(some, f"^{form}$")


def _doubles(texts: Any) -> Any:
    """Numbers; nothing written is 0."""
    return pc.if_else(pc.equal(texts, _EMPTY), _ZERO, texts).cast(pa.float64())


def _matches(array: Values, pattern: str) -> Any:
    return pc.match_substring_regex(array, pattern)


_Reader = tuple[str, re.Pattern[str], Callable[[Any, Sequence[str]], Values | None]]

_READERS: tuple[_Reader, ...] = tuple(
    (kind, re.compile(form, re.ASCII), read)
    for kind, form, read in (
        (NUMBER, rf"{_NUMBER}(?:{_AGO[:-1]})?", _numbers),
        (TIME, _TIME, _times),
        (SECONDS, rf"{_SHORT_DURATION}(?:{_OVER[:-1]})?", partial(_seconds, _SHORT_DURATION, clear=False)),
        (SECONDS, _ISO_DURATION, partial(_seconds, _ISO_DURATION, clear=True)),
        (BYTES, _SIZE, _sizes),
        (PERCENT, _PERCENT, _percentages),
    )
)

_BY_NAME: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"(?:(?<![A-Za-z])cpu|Cpu|CPU)(?![a-z])"), (NUMBER, re.compile(_CORES, re.ASCII), _cores)),
    (
        re.compile(r"(?i)(?<![a-z])(?:age|last.?seen|uptime)(?![a-z])"),
        (SECONDS, re.compile(rf"{_SHORT_DURATION}(?:{_OVER[:-1]})?"), partial(_seconds, _SHORT_DURATION, clear=True)),
    ),
)
"""What a column of texts like `100m` spells, by its name."""
