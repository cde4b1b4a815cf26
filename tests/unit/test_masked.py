"""Redaction from end to end: no secret in a prompt or a follow-up; statements and answers have the truth."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyve import Payload, Request, diagnose, prepare
from hyve.reply import Direct, ModelReply, Query
from hyve.stages import finish, follow_up, load, rows_answer

SECRET = "Zx9-qT7wLk2"
PODS = json.dumps(
    [
        {"pod": f"cart-{i}", "env": [{"name": "DB_PASSWORD", "value": SECRET}, {"name": "PORT", "value": "80"}], "n": i}
        for i in range(3)
    ]
)


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "user": f"user{i % 7}",
            "password": f"pw-{i % 3}x",
            "message": f"request {i} with token=tok-{i}-abcdef done",
            "ms": i,
        }
        for i in range(count)
    ]


def csv(count: int) -> str:
    lines = ["user,api_key,ms", *(f"user{i % 7},k{i % 3}y-secret,{i}" for i in range(count))]
    return "\n".join(lines)


MANIFESTS = [
    {
        "apiVersion": "v1",
        "data": {"user": f"YWRtaW{i}=", "p": "cHcx"},
        "kind": "Secret",
        "metadata": {"name": f"cart-{i}"},
    }
    for i in range(40)
]
APPLIED = [
    {"kind": "Pod", "metadata": {"name": one["metadata"], "annotations": {"last-applied": json.dumps(one)}}}
    for one in MANIFESTS
]
NESTED = [{"id": i, "tokens": {"a": f"x1-{i}"}, "secrets": [{"name": "n", "value": f"vv-{i}"}]} for i in range(60)]
SHORT = "\n".join(["user,password,api_token", *(f"user{i},pw{i},tk{i}" for i in range(60))])

LOG = "\n".join(
    f"2026-03-01T08:{i % 60:02d}:00Z ERROR db: connect postgres://svc:{SECRET}@db:5432/o failed after {i} ms"
    for i in range(400)
)


class Scripted:
    """A model that answers what it is told to, and keeps what it saw."""

    name = "scripted"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.seen: list[str] = []

    async def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> ModelReply:
        self.seen.append(json.dumps(list(messages), ensure_ascii=False))
        return ModelReply(self.replies.pop(0))


@pytest.mark.parametrize("budget", [700, 1500, 4000, 40_000])
@pytest.mark.parametrize(
    ("data", "secrets"),
    [
        (PODS, [SECRET]),
        (json.dumps(rows(400)), ["pw-0x", "pw-1x", "pw-2x", *(f"tok-{i}-abcdef" for i in range(400))]),
        (json.dumps(rows(5)), ["pw-0x", "pw-1x", "pw-2x", *(f"tok-{i}-abcdef" for i in range(5))]),
        (csv(300), ["k0y-secret", "k1y-secret", "k2y-secret"]),
        (csv(4), ["k0y-secret", "k1y-secret", "k2y-secret"]),
        (LOG, [SECRET]),
        (json.dumps({"kind": "List", "items": MANIFESTS}), ["YWRtaW0=", "cHcx", "YWRtaW39"]),
        (json.dumps(MANIFESTS[:2]), ["YWRtaW0=", "cHcx"]),
        (json.dumps(APPLIED), ["YWRtaW0=", "cHcx", "YWRtaW39"]),
        (json.dumps(NESTED), ["x1-0", "x1-59", "vv-0", "vv-59"]),
        (SHORT, ["pw1", "pw59", "tk1", "tk59"]),
        (SHORT[:60], ["pw1", "tk1"]),
        ("- name: DB_PASSWORD\n  value: envyamlpw1\n- name: PORT\n  value: 80\n" * 3, ["envyamlpw1"]),
        (json.dumps({"config": {"password": 123456, "pin": 5}}), ["123456"]),
    ],
)  # fmt: skip
def test_no_secret_is_in_the_prompt_and_the_budget_holds(data: str, secrets: list[str], budget: int) -> None:
    """Whole or cut, in tables or text (invariant 2)."""
    asked = (
        "it" if secrets[0].isdigit() or len(secrets[0]) < 5 else secrets[0]
    )  # what is short is known by its field only
    store, prompt = prepare(Request(f"why does {asked} fail?", (Payload("data", data),), budget))
    with store:
        assert not [secret for secret in secrets if secret in prompt.text]
        assert prompt.prompt_tokens <= budget
        assert "<" in prompt.text
        bare = prepare(Request("why?", (Payload("data", data),), budget, redact=()))[1]
        assert prompt.original_tokens == bare.original_tokens


def test_data_without_secrets_has_the_prompt_that_it_had() -> None:
    data = json.dumps([{"user": f"u{i}", "ms": i} for i in range(300)])
    with_, without = (
        prepare(Request("why?", (Payload("data", data),), 1500, redact=kinds))[1].text for kinds in (("secrets",), ())
    )
    assert with_ == without


def test_the_same_data_gives_the_same_placeholders() -> None:
    """A store that is built again knows what its first prompt called each secret (invariant 7)."""
    request = Request("why?", (Payload("data", json.dumps(rows(300))),), 1500)
    assert prepare(request)[1].text == prepare(request)[1].text


async def test_a_query_with_a_placeholder_finds_the_rows_and_shows_no_secret() -> None:
    request = Request("whose password fails?", (Payload("data", json.dumps(rows(400))),), 1500)
    seen = Scripted("nothing")
    await diagnose(request, load(request.payloads), seen)
    placeholder = next(word for word in seen.seen[0].split('"') if "<password_" in word)
    placeholder = placeholder[placeholder.index("<password_") :].split(">")[0] + ">"
    call = {
        "tool": "query_datastore",
        "arguments": {
            "sql": f"SELECT password, message, count(*) AS n FROM records WHERE password = '{placeholder}' GROUP BY ALL"
        },
    }
    answer = {
        "status": "conclusive",
        "summary": f"{placeholder} fails",
        "root_causes": [
            {
                "entity": f"user of {placeholder}",
                "summary": "wrong password",
                "confidence": 0.9,
                "evidence": [f"SELECT password, ms FROM records WHERE password = '{placeholder}' ORDER BY ms"],
            }
        ],
    }
    model = Scripted(json.dumps(call), json.dumps(answer))
    store = load(request.payloads)
    found = await diagnose(request, store, model)
    assert len(model.seen) == 2
    assert "pw-" not in model.seen[1]
    assert "tok-" not in model.seen[1].replace("<tok", "")
    secret = found.summary.removesuffix(" fails")
    assert secret in ("pw-0x", "pw-1x", "pw-2x")
    assert found.status == "conclusive"
    (evidence,) = found.evidence
    assert evidence.sql == f"SELECT password, ms FROM records WHERE password = '{secret}' ORDER BY ms"
    assert evidence.total_rows in (133, 134)
    assert evidence.rows[0][0] == secret
    assert found.root_causes[0].entity == f"user of {secret}"


def test_kinds_that_stay_masked_are_masked_in_the_answer() -> None:
    request = Request("why?", (Payload("data", json.dumps(rows(30))),), 4000, keep_masked=("password",))
    store, prompt = prepare(request)
    with store:
        assert "<password_1>" in prompt.text
        found = finish(store, Direct("see <password_1>"), question="why?")
        assert found.summary == "see <password_1>"


def test_errors_and_last_rows_are_masked_for_the_model_and_not_for_the_user() -> None:
    request = Request("why?", (Payload("data", json.dumps(rows(30))),), 4000)
    store, prompt = prepare(request)
    with store:
        shown = store.masked.redactor.mask_value("pw-0x", "password") if store.masked else ""
        failing = Query(f"SELECT CAST(password AS INTEGER) FROM records WHERE password = '{shown}'", None)
        messages, _ = follow_up(store, prompt.messages, failing)
        text = json.dumps(messages[-2:])
        assert "did not run" in text
        assert "pw-0x" not in text
        last = rows_answer(store, Query(f"SELECT DISTINCT password FROM records WHERE password = '{shown}'", None))
        assert last.evidence[0].rows == (("pw-0x",),)
        assert last.evidence[0].sql == "SELECT DISTINCT password FROM records WHERE password = 'pw-0x'"


_secret = st.text(string.ascii_letters + string.digits + "-_.!", min_size=9, max_size=24).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.isalpha, text)) and (text[0] + text[-1]).isalnum()
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_secret, min_size=1, max_size=3, unique=True), st.integers(1, 60), st.sampled_from([900, 3000]))
def test_secrets_in_columns_and_in_text_are_in_no_prompt(secrets: list[str], count: int, budget: int) -> None:
    table = [
        {"id": i, "access_token": secrets[i % len(secrets)], "note": f"retry {i} with {secrets[-1 - i % len(secrets)]}"}
        for i in range(count)
    ]
    table.append({"id": -1, "access_token": secrets[-1], "note": " and ".join(secrets)})
    known = {row["access_token"] for row in table}
    store, prompt = prepare(Request("why?", (Payload("data", json.dumps(table)),), budget))
    with store:
        assert not [secret for secret in known if secret in prompt.text]
        assert prompt.prompt_tokens <= budget
        assert store.query("SELECT count(DISTINCT access_token) FROM records").rows == ((len(known),),)
