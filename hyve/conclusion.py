"""The answer that a model wrote -> its conclusion: status, causes, claims, and the statements to back them.

Rules: the answer's JSON (fenced or bare, repaired where need be) is read leniently, one item for a list of
one, "80%" or "high" for 0.8, a text for a claim. Anything else is prose: it becomes the summary, and prose
makes no claims. Nothing raises. The statements are the model's words; nobody has run them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyve.jsontext import MAX_TEXT, documents, first, fold, without_thoughts


@dataclass(frozen=True)
class ConcludedCause:
    """A cause as the model gave it; `evidence` are statements that nobody has run yet."""

    entity: str
    summary: str
    confidence: float
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConcludedClaim:
    """A claim as the model gave it."""

    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conclusion:
    """What a Direct text says. `structured` is False where the text was prose, which then is the summary; `dropped`
    counts the causes, claims and steps above the limit of each."""

    status: str = ""
    summary: str = ""
    root_causes: tuple[ConcludedCause, ...] = ()
    claims: tuple[ConcludedClaim, ...] = ()
    next_steps: tuple[str, ...] = ()
    structured: bool = False
    dropped: int = 0


_FIELDS = frozenset({"status", "summary", "rootcauses", "rootcause", "claims", "nextsteps"})
_WORDS = {
    "certain": 0.95, "very high": 0.95, "high": 0.85, "likely": 0.75, "medium": 0.5, "moderate": 0.5,
    "possible": 0.4, "low": 0.25, "unlikely": 0.15, "very low": 0.1, "none": 0.0,
}  # fmt: skip
MAX_ITEMS = 50
"""Causes, claims, steps of one answer, and statements of one of them, that are read."""

_MAX_CHARS = 4_000


def conclusion(text: str) -> Conclusion:
    """The answer JSON in `text`, or the text as a summary without claims. Never raises."""
    text = without_thoughts(text[:MAX_TEXT]) if isinstance(text, str) else ""
    for found in documents(text):
        value = found.value
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            inner = first(value, "diagnosis", "answer", "result", "conclusion")
            for candidate in (value, inner):
                if isinstance(candidate, dict) and _is_answer(candidate):
                    return _conclusion(candidate)
    return Conclusion(summary=text)


def _is_answer(value: Mapping[str, Any]) -> bool:
    """Whether `value` has two fields of the answer, or is nothing but one of them."""
    keys = {fold(key) for key in value}
    return len(keys & _FIELDS) >= min(2, max(len(keys), 1))


def _conclusion(value: Mapping[str, Any]) -> Conclusion:
    causes = []
    for item in _items(first(value, "rootcauses", "rootcause", "causes")):
        if isinstance(item, dict):
            entity = _line(first(item, "entity", "service", "component", "name"))
            summary = _line(first(item, "summary", "description", "cause", "reason", "text"))
            confidence = _confidence(first(item, "confidence", "probability", "score"))
            evidence = _statements(first(item, "evidence", "sql"))
        else:
            entity, summary, confidence, evidence = "", _line(item), 0.0, ()
        if entity or summary:
            causes.append(ConcludedCause(entity, summary, confidence, evidence))
    claims = []
    for item in _items(first(value, "claims", "findings")):
        if isinstance(item, dict):
            claim = _line(first(item, "text", "claim", "summary", "statement"))
            evidence = _statements(first(item, "evidence", "sql"))
        else:
            claim, evidence = _line(item), ()
        if claim:
            claims.append(ConcludedClaim(claim, evidence))
    steps = tuple(
        step
        for item in _items(first(value, "nextsteps", "actions"))
        if (step := _line(first(item, "text", "step", "action", "summary") if isinstance(item, dict) else item))
    )
    status = _line(first(value, "status")).lower()
    summary = _line(first(value, "summary", "answer"))
    lists = (("rootcauses", "rootcause", "causes"), ("claims", "findings"), ("nextsteps", "actions"))
    given = (first(value, *names) for names in lists)
    dropped = sum(max(0, len(items) - MAX_ITEMS) for items in given if isinstance(items, list))
    return Conclusion(status, summary, tuple(causes), tuple(claims), steps, structured=True, dropped=dropped)


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return value[:MAX_ITEMS] if isinstance(value, list) else [value]


def _line(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()[:_MAX_CHARS]
    if isinstance(value, (bool, int, float)):
        return str(value)
    return ""


def _statements(value: Any) -> tuple[str, ...]:
    """SQL texts of an evidence field: texts, or objects with `sql`."""
    found = []
    for item in _items(value):
        sql = _line(first(item, "sql", "query", "statement") if isinstance(item, dict) else item)
        if sql:
            found.append(re.sub(r"\A```(?:sql)?\s*|\s*```\Z", "", sql, flags=re.IGNORECASE))
    return tuple(dict.fromkeys(found))


def _confidence(value: Any) -> float:
    """0..1 from a number, a percentage or a word; 0.0 where it says nothing that can be used."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _WORDS:
            return _WORDS[text]
        match = re.fullmatch(r"~?\s*(\d{1,3}(?:\.\d+)?|\.\d+)\s*(%)?(?:\s*/\s*(10|100|1))?", text)
        if match is None:
            return 0.0
        number = float(match[1])
        value = number / 100 if match[2] else number / float(match[3]) if match[3] else number
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    value = float(min(max(value, -1), 1000)) if isinstance(value, int) else value  # an integer may be of any size
    if not math.isfinite(value):
        return 0.0
    if 1 < value <= 100:
        value = value / 100
    return float(min(max(value, 0.0), 1.0))
