"""Reads the scalars of `hyve.notation`, and the times and series that a head says in short (for `notation_reader`)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": -float("inf"),
}
_WIDTHS = {"yyyy": 4, "yy": 2, "mm": 2, "dd": 2, "hh": 2, "ss": 2, "T": 1, " ": 1}


def scalar(text: str) -> Any:
    """A scalar that stands bare."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if re.search("[.eE]", text) else int(text)
    return text


def unquote(text: str) -> str:
    """A JSON string, with the one escape that JSON doesn't have."""
    parts = re.split(r"((?<!\\)(?:\\\\)*)\\u\{([0-9a-f]{4})\}", text[1:-1])
    out = ""
    for i in range(0, len(parts), 3):
        out += json.loads(f'"{parts[i] + (parts[i + 1] if i + 1 < len(parts) else "")}"')
        out += chr(int(parts[i + 2], 16)) if i + 2 < len(parts) else ""
    return out


def shown(value: Any) -> str:
    """A label: bare where a cell would be."""
    if type(value) is str:
        odd = (
            re.search(r"[,\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]", value)
            or not value
            or value[0] in '"!#=[]{}'
            or value[-1] in "[]{}"
        )
        number = re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", value)
        return json.dumps(value, ensure_ascii=False) if odd or number or value != value.strip() else value
    return str(value)


def moment(shape: str, text: str) -> str:
    """A time from the part that its cell shows."""
    left, _, rest = shape.partition("<")
    parts, _, right = rest.partition(">")
    out, at = left, 0
    before = left[-1:]
    for part in re.findall(r"yyyy|yy|mm|dd|hh|ss|T| |\.f", parts):
        if part == ".f":
            out += text[at:]
            break
        if out != left and part not in ("T", " "):
            out += {"hh": "", "ss": ":", "mm": ":" if before == "hh" else "-", "dd": "-", "yy": ""}[part]
        out += text[at : at + _WIDTHS[part]]
        at += _WIDTHS[part]
        before = part
    return out + right


@dataclass
class Steps:
    """Numbers, numbered texts or times: `first`, `last` where it is said, and the step as text, if any."""

    first: Any
    last: Any
    by: str

    def at(self, place: int) -> Any:
        unit = self.by[-1:] if self.by[-1:].isalpha() else ""
        if unit:
            size = float(self.by[:-1])
            return self.moment(place, size, unit)
        if type(self.first) is int:
            falls = self.last is not None and self.last < self.first
            return self.first + place * (int(self.by) if self.by else -1 if falls else 1)
        before, number = self.numbered(self.first)
        digits = re.search(r"\d+", self.first[before:], re.ASCII)[0]
        falls = self.last is not None and self.numbered(self.last)[1] < number
        number += place * (int(self.by) if self.by else -1 if falls else 1)
        pad = len(digits) if digits[0] == "0" else 1
        return self.first[:before] + f"{number:0{pad}d}" + self.first[before + len(digits) :]

    def numbered(self, text: str) -> tuple[int, int]:
        match = list(re.finditer(r"\d+", text, re.ASCII))[-1]
        return match.start(), int(match[0])

    def moment(self, place: int, size: float, unit: str) -> str:
        text = self.first
        zone = re.search(r"(Z|[+-]\d\d:?\d\d)?$", text[10:])[0]
        bare = text.removesuffix(zone)
        fraction = re.search(r"\.(\d+)$", bare)
        digits = len(fraction[1]) if fraction else 0
        seconds = {"d": 86400, "h": 3600, "m": 60, "s": 1}[unit]
        ticks = round(size * seconds * 10**digits) * place + (int(fraction[1]) if fraction else 0)
        whole_seconds, ticks = divmod(ticks, 10**digits)
        start = datetime.fromisoformat(bare.partition(".")[0])
        moved = start + timedelta(seconds=whole_seconds)
        layout = {10: "%Y-%m-%d", 16: f"%Y-%m-%d{bare[10:11]}%H:%M"}.get(len(bare), f"%Y-%m-%d{bare[10:11]}%H:%M:%S")
        text = moved.strftime(layout).zfill(len(bare.partition(".")[0]))
        return text + (f".{ticks:0{digits}d}" if digits else "") + zone

    def all(self) -> list[Any]:
        """From first to last."""
        values = [self.first]
        while values[-1] != self.last:
            assert len(values) < 100_000, self
            values.append(self.at(len(values)))
        return values
