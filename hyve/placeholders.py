"""Placeholders of secrets in what a model wrote: values, names, SQL.

Rules for SQL:
- Within single quotes a placeholder is part of the text; the quotes of what takes its place are doubled. The name of a
  table or a column may stand there, too, where an operator is given one.
- A name that holds placeholders is one name, in double quotes or in none.
- A placeholder in no quotes is a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hyve.secretforms import PLACEHOLDER

_NAMED = r"(?<!\w)(?:\w{0,64}PLACE)++\w{0,64}+".replace("PLACE", PLACEHOLDER.pattern)
_NAME = re.compile(_NAMED, re.IGNORECASE)
_SQL_PARTS = re.compile(rf"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|{_NAMED}|{PLACEHOLDER.pattern}", re.IGNORECASE)
"""Texts and names in quotes, and names or texts with a placeholder that have none."""


def each(value: Any, change: Callable[[str], str]) -> Any:
    """A value of JSON, or a frozen dataclass, with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {each(key, change): each(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(each(inner, change) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{field.name: each(getattr(value, field.name), change) for field in fields(value) if field.init}
        )
    return value


def texts_of(value: Any) -> list[str]:
    """The different texts of a value of JSON, keys too."""
    found: dict[str, None] = {}
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found[one] = None
        elif isinstance(one, Mapping):
            left.extend(one)
            left.extend(one.values())
        elif isinstance(one, list | tuple):
            left.extend(one)
    return list(found)


def in_text(text: str, names: Mapping[str, str]) -> str:
    """A text in which names that hold placeholders (in lower case) are spelled as given."""
    if not names or "<" not in text:
        return text
    return _NAME.sub(lambda match: names.get(match[0].lower(), match[0]), text)


def in_sql(
    statement: str,
    names: Mapping[str, str],
    back: Callable[[re.Match[str]], str],
    knows: Callable[[str], bool],
) -> str:
    """A statement in which `back` takes the place of placeholders, of those without quotes if `knows` one; `names` that
    hold some (in lower case) are spelled as given."""
    if "<" not in statement:
        return statement

    def spelled(match: re.Match[str]) -> str:
        text = match[0]
        if text[0] in "'\"":
            inner = text[1:-1].replace(text[0] * 2, text[0])
            return _quoted(names.get(inner.lower()) or PLACEHOLDER.sub(back, inner), text[0])
        if text.lower() in names:
            return _quoted(names[text.lower()], '"')
        return PLACEHOLDER.sub(lambda one: _quoted(back(one), "'") if knows(one[0]) else one[0], text)

    return _SQL_PARTS.sub(spelled, statement)


def _quoted(text: str, quote: str) -> str:
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"


__all__ = ["each", "in_sql", "in_text", "texts_of"]
