"""Wire records: what is written can be read, by this version and by a neighbour."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause, Tokens
from schemas import (
    TOPICS,
    Alert,
    DeadLetter,
    DiagnosisRequest,
    DiagnosisResult,
    Payload,
    StoreCommand,
    TelemetryRecord,
    records,
)


def test_requests_and_queries_have_the_same_partitions() -> None:
    count = {topic.name: topic.partitions for topic in TOPICS}
    assert count["requests"] == count["queries"]


@pytest.mark.parametrize(
    ("inner", "wire"),
    [
        (Diagnosis, DiagnosisResult),
        (Evidence, records.Evidence),
        (Claim, records.Claim),
        (RootCause, records.RootCause),
        (Tokens, records.Tokens),
    ],
)
def test_the_wire_has_a_field_for_each_of_the_library(inner: type, wire: type[BaseModel]) -> None:
    """Unknown fields are kept on the wire, so a forgotten one would pass without its type."""
    assert {field.name for field in dataclasses.fields(inner)} <= set(wire.model_fields)


def test_result_takes_every_field_of_a_diagnosis_by_name() -> None:
    diagnosis = Diagnosis(
        "conclusive",
        "the pool ran dry",
        root_causes=(RootCause("orders", "pool", 0.8, ("e1",)),),
        claims=(Claim("it waited", ("e1",)),),
        evidence=(Evidence("e1", "SELECT 1", ("n",), ((1,),), 1),),
        next_steps=("roll back",),
        mode="query",
        model="m-1",
        calls=2,
        tokens=Tokens(1000, 100, 50, 7),
        ms={"prepare": 2.5},
        notes=("cut",),
    )
    result = DiagnosisResult.of(diagnosis, request_id="r-1", question="why?", finished=5)
    again = DiagnosisResult.from_bytes(result.to_bytes())
    assert again == result
    assert again.root_causes[0].entity == "orders"
    assert again.root_causes[0].evidence == ("e1",)
    assert again.evidence[0].rows == ((1,),)
    assert json.loads(result.to_bytes())["tokens"] == {
        "original": 1000,
        "prompt": 100,
        "follow_up": 50,
        "completion": 7,
        "saved": 0.85,
    }
    assert (again.mode, again.model, again.calls, again.ms, again.notes) == (
        "query",
        "m-1",
        2,
        {"prepare": 2.5},
        ("cut",),
    )


def test_fields_of_a_newer_writer_survive_reading_and_writing() -> None:
    newer = {
        "version": 2,
        "request_id": "r",
        "question": "q",
        "payloads": [{"name": "a", "text": "b", "encoding": "none"}],
        "tenant": {"id": 7},
    }
    request = DiagnosisRequest.from_bytes(json.dumps(newer).encode())
    written = json.loads(request.to_bytes())
    assert written["version"] == 2
    assert written["tenant"] == {"id": 7}
    assert written["payloads"][0]["encoding"] == "none"


def test_a_bad_record_names_the_field() -> None:
    with pytest.raises(ValueError, match="not an Alert: starts_at: Field required"):
        Alert.from_bytes(b'{"fingerprint": "f", "status": "firing"}')
    with pytest.raises(ValueError, match="StoreCommand: hop"):
        StoreCommand.from_bytes(
            b'{"request_id":"r","hop":3,"kind":"query","request":{"topic":"t","partition":0,"offset":0}}'
        )
    with pytest.raises(ValueError, match="Invalid JSON"):
        DeadLetter.from_bytes(b"\xff\xfe")


def test_half_surrogates_and_nan_are_written_as_json() -> None:
    record = TelemetryRecord(
        signal="log", entity="a\ud800", time=1, row={"body": "x\udfff", "v": float("nan"), "big": 10**30}
    )
    assert json.loads(record.to_bytes()) == {
        "signal": "log",
        "entity": "a?",
        "time": 1,
        "row": {"body": "x?", "v": None, "big": 10**30},
    }


@given(st.text(), st.text(max_size=50), st.lists(st.tuples(st.text(max_size=9), st.text()), max_size=4))
def test_any_request_that_is_written_is_read_alike(question: str, note: str, parts: list[tuple[str, str]]) -> None:
    request = DiagnosisRequest(
        request_id="r",
        question=question,
        payloads=tuple(Payload(name=name, text=text) for name, text in parts),
        notes=(note,),
    )
    assert DiagnosisRequest.from_bytes(request.to_bytes()) == request
