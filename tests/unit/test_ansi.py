"""Documents among the colour codes of terminals (H5)."""

from __future__ import annotations

import json

import pytest

import hyve
from hyve.strictjson import LONG

RESET = "\x1b[0m"


def _jq(value: dict[str, object]) -> str:
    """An object as jq prints it in colours."""
    fields = ",".join(f"\x1b[34;1m{json.dumps(key)}{RESET}:\x1b[0;32m{json.dumps(value[key])}{RESET}" for key in value)
    return f"\x1b[1;39m{{{fields}\x1b[1;39m}}{RESET}"


@pytest.mark.parametrize("count", [3, 4_500])
def test_codes_around_and_inside_of_the_documents_of_short_and_long_texts(count: int) -> None:
    """Values are those that were written, read from the text each time where it is long."""
    records = [{"id": i, "msg": f"\x1b[3{i % 8}mok{RESET} {i}"} for i in range(count)]
    plain = [{"id": i, "ok": True, "path": f"/a/{i}"} for i in range(count)]
    inside = [json.dumps(record).replace("\\u001b", "\x1b") for record in records]
    lines = [f"\x1b[32mINFO{RESET} got {a}\n{_jq(b)}" for a, b in zip(inside, plain, strict=True)]
    document = hyve.parse("\n".join(lines))
    parts = [part for part in document.parts if part.syntax == "json"]
    assert [part.value for part in parts] == [value for pair in zip(records, plain, strict=True) for value in pair]
    assert {part.flags for part in parts[::2]} == {("repaired", "ansi")}
    assert {part.flags for part in parts[1::2]} == {("ansi",)}
    for part, source in zip(parts[:2], (inside[0], _jq(plain[0])), strict=True):
        start, end = part.span
        assert document.text[start:end] in source
    assert any(isinstance(part.held, dict) for part in parts) == (len(document.text) < LONG)


@pytest.mark.parametrize("near", ['{a: "\x1b[1mx"}', '{"a": "\x1b[1mx",}'])
def test_codes_inside_of_near_json_are_kept(near: str) -> None:
    (part,) = hyve.parse(f"\x1b[32mok{RESET} {near} \x1b[1mdone{RESET}").parts
    assert (part.value, part.flags) == ({"a": "\x1b[1mx"}, ("repaired", "ansi"))
