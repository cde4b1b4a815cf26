"""The answer to one request, as plain frozen values.

Rules:
- A claim counts only with evidence: its ids name entries of `Diagnosis.evidence`, each one a statement that was run
  over the request's store, with the rows that came back. Claims whose evidence does not resolve go to `unsupported`.
- A diagnosis none of whose causes is supported is `inconclusive`; code decides that, never the model's word.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["conclusive", "inconclusive", "partial", "failed"]
Mode = Literal["direct", "template", "query", "rules"]


@dataclass(frozen=True)
class Evidence:
    """One statement and what it returned. `rows` may be capped; `total_rows` is the true count."""

    id: str
    sql: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    total_rows: int = 0


@dataclass(frozen=True)
class Claim:
    """One sentence that the evidence named by `evidence` (ids) backs."""

    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class RootCause:
    """What went wrong first. `entity` is a service, host or pod; `confidence` lies in 0..1."""

    entity: str
    summary: str
    confidence: float
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tokens:
    """o200k token counts. `original` is the raw payload, `prompt` the first prompt; the rest is what a model reported
    (or, where it reported nothing, what was counted): `follow_up` the second prompt, `completion` all replies."""

    original: int = 0
    prompt: int = 0
    follow_up: int = 0
    completion: int = 0

    @property
    def saved(self) -> float:
        """Share of the original's tokens that the prompts did not need, 0..1 (0 where nothing was saved)."""
        if self.original <= 0:
            return 0.0
        return max(0.0, 1.0 - (self.prompt + self.follow_up) / self.original)


@dataclass(frozen=True)
class Diagnosis:
    """The whole answer.

    `ms` maps each stage's name to milliseconds. `model` is the model's name, or "rules" where the rules analyst
    answered. `answer` is the model's own text where the request asked for an answer rather than a diagnosis, and
    `charts` holds filled templates. `notes` say what the reader must know: data that was cut, a model that failed.
    """

    status: Status
    summary: str
    root_causes: tuple[RootCause, ...] = ()
    claims: tuple[Claim, ...] = ()
    unsupported: tuple[Claim, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    next_steps: tuple[str, ...] = ()
    answer: str = ""
    charts: tuple[Any, ...] = ()
    mode: Mode = "rules"
    model: str = "rules"
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    ms: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


CUT = "the model's reply was cut at its token limit"
"""The note on a reply that is not whole."""
RULES_SAY = "the rules analyst, asked because"
"""How a note begins that says what the rules analyst found beside another answer."""
RULES_ANSWER = "answered by the rules analyst: "
"""How a note begins that says why the rules analyst answered."""


def with_rows(found: Diagnosis, rows: Diagnosis) -> Diagnosis:
    """What stands after a second reply without an answer: the rows of the first query (`rows`, see
    `hyve.stages.rows_answer`), and why no answer came (`found`: the rules analyst's, or the second query's rows)."""
    if not rows.evidence:
        return found
    (first,) = rows.evidence
    evidence = [first]
    summary = f"No interpretation: the model's query returned {first.total_rows:,} rows."
    if found.mode != "rules":
        evidence += [replace(one, id=f"e{i + 2}") for i, one in enumerate(found.evidence)]
        summary = f"{summary} {found.summary}"
    said = [
        note.replace(RULES_ANSWER, "the model's second reply could not be used: ", 1)
        for note in (*found.notes, *(note for note in rows.notes if note.startswith(RULES_SAY)))
    ]
    note = "the model gave no answer after its query: the rows that it asked for are shown, without an interpretation"
    return replace(
        rows,
        status="partial",
        summary=summary,
        evidence=tuple(evidence),
        unsupported=found.unsupported,
        notes=tuple(dict.fromkeys((note, *said))),
    )
