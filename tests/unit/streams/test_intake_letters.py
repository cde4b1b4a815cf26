"""What the intake can't use keeps its headers: replayed, it is what it was."""

from __future__ import annotations

import base64

from schemas import DeadLetter
from streams.app import Incoming, attempt
from streams.intake import Intake


async def test_a_dead_letter_has_the_headers_of_its_record() -> None:
    headers = {"content-type": b"application/x-protobuf", "ce_id": b"\xff\x00"}
    record = Incoming("raw", 1, 2, b'{"a": 1}', b"k", 1_700_000_000_000, headers)
    (sent,) = await attempt(Intake().process, record, "intake")
    letter = DeadLetter.from_bytes(sent.value)
    assert {name: base64.b64decode(value) for name, value in letter.headers.items()} == headers
    assert "no OTLP export request in protobuf" in letter.error
    again = Incoming("raw", 1, 3, base64.b64decode(letter.value), b"k", letter.timestamp)
    (out,) = await Intake().process(again)
    assert out.key == b"k"
