"""A dead letter as programs get it."""

from __future__ import annotations

import base64

import pytest

from schemas import DeadLetter
from streams.deadletters import Letter, described


@pytest.mark.parametrize("replayed", [None, False, True])
def test_whether_a_letter_was_replayed_is_told_to_programs_too(replayed: bool | None) -> None:
    record = DeadLetter(
        value=base64.b64encode(b"raw").decode(),
        key=None,
        topic="hyve.raw",
        partition=1,
        offset=7,
        stage="intake",
        error="no JSON",
        attempts=1,
        failed=1_760_000_000_000,
    )
    told = described(Letter(0, 3, record, replayed))
    assert (told["id"], told["value"], told["offset"]) == ("0:3", "raw", 7)
    assert told.get("replayed") is replayed
    assert ("replayed" in told) is (replayed is not None)
