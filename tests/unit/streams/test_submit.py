"""The record that `hyve request` makes, and what tells it from others of its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.errors import HyveError, InputError
from hyve.stages import Payload as Given
from schemas import DiagnosisRequest, DiagnosisResult, Payload
from streams import submit
from workers import kafka
from workers.settings import load

FILE = Given("app", b'{"a": 1}')


def made(request_id: str = "r", question: str = "why?", **given: Any) -> DiagnosisRequest:
    return submit.request(load(), question, [FILE], request_id=request_id, **given)


@pytest.mark.parametrize("name", ["x" * 201, "a\nb", "a\udcff", "a\x00"])
def test_an_id_that_no_record_can_have_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match=r"no request can have the id '.*': give at most 200 printable char") as caught:
        made(name)
    assert "\n" not in str(caught.value)


def test_an_id_of_200_characters_of_any_script_is_taken() -> None:
    assert made("\u0442" * 200).request_id == "\u0442" * 200


def test_what_asks_the_same_of_the_same_data_is_the_same() -> None:
    """Times are not: it may be asked again tomorrow."""
    first, again = made(seconds=5), made(seconds=9).model_copy(update={"created": 1})
    assert first.deadline != again.deadline
    assert first.digest() == again.digest()


def test_the_same_data_by_a_claim_are_the_same(tmp_path: Path) -> None:
    settings = load(claim_url=f"file://{tmp_path}", claim_bytes=1024)
    data = Given("app", b'{"a": 1}' * 1000)
    inline = submit.request(load(), "why?", [data])
    claimed = submit.request(settings, "why?", [data])
    assert claimed.payloads[0].url
    assert claimed.digest() == inline.digest()


@pytest.mark.parametrize(
    "other",
    [
        {"question": "why not?"},
        {"budget": 777},
        {"kind": "answer"},
        {"focus": ("cart",)},
        {"payloads": ()},
        {"payloads": (Payload(name="app", text='{"a": 2}'),)},
        {"payloads": (Payload(name="web", text='{"a": 1}'),)},
        {"identity": "alert-7"},
    ],
)
def test_what_asks_else_or_of_other_data_is_another(other: dict[str, Any]) -> None:
    assert made().model_copy(update=other).digest() != made().digest()


def test_an_identity_that_is_given_stands_for_the_content() -> None:
    """An alert's request is the same when it is made again and finds other telemetry."""
    request = made().model_copy(update={"identity": "alert-7"})
    assert request.digest() == request.model_copy(update={"question": "x", "payloads": ()}).digest()


@given(st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_who_reads_the_record_says_the_same_of_it(question: str, text: str, focus: list[str]) -> None:
    request = DiagnosisRequest(
        request_id="r", question=question, payloads=(Payload(name="p", text=text),), focus=tuple(focus)
    )
    assert DiagnosisRequest.from_bytes(request.to_bytes()).digest() == request.digest()


def test_lone_surrogates_change_nothing_of_it() -> None:
    request = made(question="caf\udce9", focus=("\ud800",))
    assert DiagnosisRequest.from_bytes(request.to_bytes()).digest() == request.digest()


@pytest.mark.parametrize(("digest", "fits"), [("", True), ("same", True), ("f" * 64, False)])
def test_a_result_of_another_request_is_nobodys_answer(
    monkeypatch: pytest.MonkeyPatch, digest: str, fits: bool
) -> None:
    """A worker of an earlier release says nothing of its request: then the id alone counts."""
    request = made()
    value = DiagnosisResult(request_id="r", status="inconclusive", summary="s", question="old?").to_bytes()
    told = request.digest() if digest == "same" else digest
    headers = ((kafka.REQUEST, told.encode()),) if told else ()
    found = kafka.Stored("hyve.results", 0, 0, 0, b"r", value, headers)
    monkeypatch.setattr(kafka, "wait_for", lambda *_: found)
    if fits:
        assert submit.result(load(), request, 1).question == "old?"
    else:
        with pytest.raises(HyveError, match="the id r was used before, with another question or other data"):
            submit.result(load(), request, 1)
