"""The wire records, as frozen pydantic models.

Rules:
- Readers accept what they don't know: unknown fields survive reading and writing again, so that an older
  worker can pass a newer record on. `version` counts up where a contract changes in more than optional fields; what a
  reader does with other versions, and how to make one, is said in `schemas.contracts`.
- `to_bytes` always yields UTF-8 JSON: half surrogates (legal in JSON text that a model or a log wrote,
  not in UTF-8) become "?", and numbers that JSON lacks become null. `from_bytes` reads them as "?" too, and raises
  `ValueError` on anything else.
- A request is self-contained: every later record only carries its id and its `Position`, from which it is
  read again.
- Times are epoch milliseconds, but for telemetry's `time`, which is epoch nanoseconds.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from schemas import contracts
from schemas.contracts import at_version

Kind = Literal["diagnosis", "answer"]
Mode = Literal["direct", "template", "query", "rules"]
Status = Literal["conclusive", "inconclusive", "partial", "failed"]


class _Part(BaseModel):
    """A piece of a record; also made from the attributes of a value object of the same shape."""

    model_config = ConfigDict(
        frozen=True, extra="allow", from_attributes=True, ser_json_inf_nan="null", protected_namespaces=()
    )


class Record(_Part):
    """Base of every record that stands alone on a topic."""

    version: int = at_version(1)

    def to_bytes(self) -> bytes:
        """The record as UTF-8 JSON. A version of 1 is left out: it is what a record without one has."""
        skip = {"version"} if self.version == 1 else None
        try:
            return self.model_dump_json(exclude=skip).encode("utf-8")
        except (PydanticSerializationError, UnicodeEncodeError):
            value = _clean(self.model_dump(mode="python", exclude=skip))
            return json.dumps(value, ensure_ascii=False).encode("utf-8")

    @classmethod
    def contract(cls) -> int:
        """The version that this class is."""
        return int(cls.model_fields["version"].default)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The record that `data` holds, of this version, one before or the next (see `schemas.contracts`).

        Raises `ValueError` naming the field that doesn't fit, or the version.
        """
        if not data[:64].strip() and not data.strip():
            raise ValueError(f"not {contracts.named(cls.__name__)}: the record is empty")
        current = cls.contract()
        fields: Any = None
        try:
            record = cls.model_validate_json(data)
            version = record.version if "version" in record.model_fields_set else 1
        except ValidationError as error:
            if (mended := _mended(data)) is not None:
                return cls.from_bytes(mended)
            fields = contracts.parsed(data)
            version = contracts.version_of(fields, current)
            if version in (current, current + 1):
                raise ValueError(cls._failure(error, version)) from None
        if version > current + 1:
            raise ValueError(contracts.too_new(cls.__name__, version, current))
        if version >= current:
            return record
        fields = contracts.parsed(data) if fields is None else fields
        try:
            return cls.model_validate(contracts.upgraded(cls.__name__, fields, version, current))
        except ValidationError as error:
            raise ValueError(cls._failure(error, version)) from None

    @classmethod
    def _failure(cls, error: ValidationError, version: int) -> str:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the record"
        told = "" if version == cls.contract() else f" (it is of version {version})"
        return f"not {contracts.named(cls.__name__)}: {where}: {first['msg']}{told}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _mended(data: bytes) -> bytes | None:
    """`data` without half surrogates, where it is JSON that has some; else None."""
    if _HALVES.search(data) is None:
        return None
    try:
        value = json.loads(data)
        clean = _clean(value)
        return None if clean == value else json.dumps(clean, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None


_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")


def _clean(value: Any) -> Any:
    """`value` without half surrogates and without numbers that JSON has no form for."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


class TelemetryRecord(Record):
    """One normalised span, log record, metric point or event of `hyve.telemetry`, keyed by `entity`.

    `signal` "event" is anything else: `row` is the object as it came. "call" is the intake's note for the collector:
    `row` holds "caller" and "callee".
    """

    signal: str = Field(
        description='"span", "span_event", "span_link", "log", "metric", "event", or "call" (who called this entity).'
    )
    entity: str = Field(description="Service, host or pod that the record is about; the Kafka key.")
    time: int = Field(
        description="Event time in epoch ns; the Kafka timestamp is the same in ms, within the settings' limits."
    )
    row: dict[str, Any]


class Alert(Record):
    """One alert of `hyve.alerts`, keyed by its group, as Alertmanager v4 tells it."""

    fingerprint: str = Field(min_length=1)
    status: Literal["firing", "resolved"]
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: str = Field(description="RFC 3339, as the sender wrote it.")
    ends_at: str = ""
    generator_url: str = ""
    received: int = Field(default=0, description="When the webhook took it, epoch ms.")
    group: str = Field(default="", description="What belongs together has the same: the sender's group key, or ours.")
    truncated: int = Field(default=0, description="Alerts of the group that the sender left out.")
    values: dict[str, Any] = Field(default_factory=dict, description="Grafana's: what the rule's queries gave.")


class Payload(_Part):
    """One piece of a request's data: raw text, as a source wrote it, or where that lies if it is too large."""

    name: str
    text: str = ""
    url: str = Field(default="", description="Where the text lies instead, below HYVE_CLAIM_URL.")
    size: int = Field(default=0, description="Bytes of the text at `url`, as UTF-8.")
    digest: str = Field(default="", description="SHA-256 of the text at `url`, hexadecimal.")


class DiagnosisRequest(Record):
    """One question with all its data, on `hyve.requests`, keyed by `request_id`."""

    request_id: str = Field(min_length=1, max_length=200)
    question: str
    payloads: tuple[Payload, ...]
    budget: int = Field(default=4000, gt=0, description="Hard limit of the first prompt, in o200k tokens.")
    kind: Kind = "diagnosis"
    focus: tuple[str, ...] = Field(default=(), description="Entities that the alert names.")
    deadline: int | None = Field(default=None, description="Epoch ms after which nobody waits any more.")
    created: int = Field(default=0, description="Epoch ms.")
    notes: tuple[str, ...] = Field(default=(), description="What the reader must know, such as data that was cut.")
    ms: dict[str, float] = Field(default_factory=dict, description="Time spent before the request was made.")
    identity: str = Field(
        default="",
        description="Requests of one id that have the same are one; empty: those that ask and hold the same.",
    )

    def digest(self) -> str:
        """Tells requests of one id apart that are not the same: SHA-256, hexadecimal, of `identity` or of the content,
        wherever its data lie."""
        asked: Any = self.identity or [
            self.question,
            self.kind,
            self.budget,
            self.focus,
            [(it.name, it.digest if it.url else _sha256(it.text)) for it in self.payloads],
        ]
        return _sha256(json.dumps(asked, ensure_ascii=False))


class Position(_Part):
    """Where a record stands on Kafka."""

    topic: str
    partition: int
    offset: int


class Account(_Part):
    """What a request has cost so far; it travels with the request from stage to stage."""

    original: int = Field(default=0, description="Tokens of the raw payloads.")
    prompt: int = Field(default=0, description="Tokens of the first prompt.")
    follow_up: int = 0
    completion: int = 0
    calls: int = Field(default=0, description="Model calls that were answered.")
    model: str = ""
    cost: float | None = Field(default=None, description="Of all calls, in the currency of the prices that are set.")
    created: int = Field(default=0, description="When the request was made, epoch ms.")
    ms: dict[str, float] = Field(default_factory=dict)


class PromptReady(Record):
    """A prompt for the model, on `hyve.prompts`. Hop 2 is the only follow-up, and it offers no tools."""

    request_id: str
    hop: Literal[1, 2]
    messages: tuple[dict[str, Any], ...] = Field(description="OpenAI chat-completions form.")
    tools: tuple[dict[str, Any], ...] = ()
    asked: str = Field(default="", description="The query of hop 1 whose rows hop 2 shows.")
    request: Position
    deadline: int | None = None
    account: Account = Account()
    digest: str = Field(default="", description="What tells the request from others of its id.")


class ToolCall(_Part):
    """A model's call of a tool, as it stood in the reply; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class FillMapping(_Part):
    """Column of a result and the template path that takes it (H28)."""

    column: str
    path: str


class Fill(_Part):
    """One statement and where its rows go in the template."""

    sql: str
    mappings: tuple[FillMapping, ...] = ()


class StoreCommand(Record):
    """What the request's store has to do next, on `hyve.queries`, in the partition of the request.

    `kind` says which fields count: direct (`text`), template (`template`, `fills`), query (`sql`,
    `call`), rules (`reason`: why no model answered). `asked` is the prompt's.
    """

    request_id: str
    hop: Literal[1, 2]
    kind: Mode
    text: str = ""
    sql: str = ""
    template: Any = None
    fills: tuple[Fill, ...] = ()
    call: ToolCall | None = None
    reason: str = ""
    asked: str = ""
    cut: bool = Field(default=False, description="The model's token limit ended its reply.")
    request: Position
    deadline: int | None = None
    account: Account = Account()
    digest: str = Field(default="", description="What tells the request from others of its id.")


class Evidence(_Part):
    """One statement that was run over the request's data, and what it returned."""

    id: str
    sql: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = Field(default=(), description="May be capped; `total_rows` is the true count.")
    total_rows: int = 0


class Claim(_Part):
    """One sentence and the ids of the evidence that backs it."""

    text: str
    evidence: tuple[str, ...] = ()


class RootCause(_Part):
    """What went wrong first."""

    entity: str
    summary: str
    confidence: float
    evidence: tuple[str, ...] = ()


class Tokens(_Part):
    """o200k tokens: the raw data's, each prompt's, the replies'; `saved` is the share that was spared."""

    original: int = 0
    prompt: int = 0
    follow_up: int = 0
    completion: int = 0
    saved: float = 0.0


class DiagnosisResult(Record):
    """The answer to one request, on `hyve.results`, keyed by `request_id`. It mirrors `hyve.Diagnosis`."""

    request_id: str
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
    tokens: Tokens = Tokens()
    cost: float | None = None
    ms: dict[str, float] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    question: str = ""
    finished: int = Field(default=0, description="Epoch ms.")

    @classmethod
    def of(cls, diagnosis: Any, *, request_id: str, question: str = "", finished: int = 0) -> DiagnosisResult:
        """The result that says what `diagnosis` (a `hyve.Diagnosis`) says, under `request_id`."""
        return cls.model_validate(
            {**vars(diagnosis), "request_id": request_id, "question": question, "finished": finished}
        )


class RequestMetrics(Record):
    """What one request cost, on `hyve.metrics`, keyed by `request_id`."""

    request_id: str
    mode: Mode
    status: Status
    model: str
    calls: int
    tokens: Tokens
    cost: float | None = None
    ms: dict[str, float] = Field(default_factory=dict)
    finished: int = 0


class DeadLetter(Record):
    """A record that could not be used, its bytes as they came, on `hyve.deadletters` under its own key.

    Behind it may stand a note that it was replayed: the same fields, `replayed` set, `topic` and `value` empty.
    """

    value: str = Field(description="The record's value, base64; what replaying sends again.")
    key: str | None = Field(default=None, description="The record's key, base64.")
    headers: dict[str, str] = Field(default_factory=dict, description="The record's headers, their values base64.")
    topic: str
    partition: int
    offset: int
    timestamp: int = Field(default=0, description="The record's Kafka timestamp, epoch ms.")
    stage: str = Field(description="Which step gave up.")
    error: str
    attempts: int = 1
    failed: int = Field(default=0, description="Epoch ms.")
    replayed: str = Field(
        default="", description="PARTITION:OFFSET of the letter that this note says was replayed; empty: no note."
    )
