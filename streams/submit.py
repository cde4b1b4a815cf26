"""`hyve request`: a question about files, put to a running pipeline, and its result.

Data too large for a record goes to the claim store first (`workers.claims`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from hyve.encodings import decode
from hyve.errors import HyveError, InputError
from hyve.stages import Payload as Given
from schemas import DiagnosisRequest, DiagnosisResult, Payload
from schemas.records import Kind
from workers import claims, kafka
from workers.settings import Settings

_UNWRITABLE = frozenset({"invalid_utf8", "lone_surrogate"})
"""What decoding met that no record can carry."""


def request(
    settings: Settings,
    question: str,
    given: Sequence[Given],
    *,
    request_id: str = "",
    kind: Kind = "diagnosis",
    focus: Sequence[str] = (),
    budget: int | None = None,
    seconds: float | None = None,
) -> DiagnosisRequest:
    """The record of a request, with its data as text; its deadline is in `seconds`. HyveError for binary data, and for
    an id that no record can have."""
    if len(request_id) > 200 or not request_id.isprintable():
        raise InputError(f"no request can have the id {request_id[:60]!r}: give at most 200 printable characters")
    claims.check(settings.claim_url)
    created = int(time.time() * 1000)
    payloads, notes = [], []
    for it in given:
        text, flags = decode(it.data, it.name)
        if _UNWRITABLE.intersection(flags):
            notes.append(f'{it.name} holds bytes that are not UTF-8; they became "?"')
        payloads.append(Payload(name=it.name, text=text))
    made = DiagnosisRequest(
        request_id=request_id or f"request-{uuid.uuid4().hex}",
        question=question,
        payloads=tuple(payloads),
        budget=budget or settings.budget,
        kind=kind,
        focus=tuple(focus),
        deadline=created + int((seconds or settings.deadline) * 1000),
        created=created,
        notes=tuple(notes),
    )
    return claims.check_in(settings.claim_url, made, settings.claim_bytes)


def send(settings: Settings, made: DiagnosisRequest) -> None:
    """Puts a request on its topic; it is there when this returns. InputError where it is too large for a record, and
    HyveError where there is no such topic."""
    data = made.to_bytes()
    largest = settings.topics()["requests"].max_bytes - (1 << 20)
    if len(data) > largest:
        raise InputError(
            f"a request of {len(data):,} bytes is above the {largest:,} of one record: set HYVE_CLAIM_URL, here and "
            "for the workers, to a store of files for large data (file:///folder or s3://bucket/prefix)"
        )
    kafka.partitions(settings, settings.topic("requests"))  # else it would be looked for, for a minute
    with kafka.producing(settings) as producer:
        producer.send(settings.topic("requests"), data, key=made.request_id.encode("utf-8", "replace")).get(60)


def result(settings: Settings, made: DiagnosisRequest, seconds: float) -> DiagnosisResult:
    """Waits for the result. HyveError where none comes in time, and where another request has the id."""
    request_id = made.request_id
    found = kafka.wait_for(settings, settings.topic("results"), request_id.encode("utf-8", "replace"), seconds)
    if found is None:
        raise HyveError(
            f"no result of {request_id} within {seconds:g} s: do store and llm workers run? It may come later "
            f"on {settings.topic('results')}; see also `hyve deadletters list`"
        )
    if found.request and found.request != made.digest():
        raise HyveError(
            f"the id {request_id} was used before, with another question or other data: this request was refused; "
            "give another --id, or none"
        )
    return DiagnosisResult.from_bytes(found.value)
