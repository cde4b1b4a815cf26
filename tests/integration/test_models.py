"""The three modes end to end with a model server that answers by a script, and with one that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.pipeline import Pipeline, until
from tests.scripted_llm import ScriptedLLM
from workers import kafka

ROWS = [{"service": f"s{i % 4}", "latency_ms": i % 50} for i in range(300)]
COUNT = "SELECT service, count(*) AS n FROM records GROUP BY service ORDER BY service"
ANSWER = {
    "status": "conclusive",
    "summary": "s1 is slow",
    "root_causes": [{"entity": "s1", "summary": "slow", "confidence": 0.7, "evidence": [COUNT]}],
    "claims": [{"text": "invented", "evidence": ["SELECT * FROM nowhere"]}],
    "next_steps": ["look at s1"],
}


class Model:
    """The server's script; each test sets what comes next."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def __call__(self, body: Any) -> dict[str, Any]:
        return self.steps.pop(0) if self.steps else {"status": 400, "body": "nothing scripted"}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server(model: Model) -> Iterator[ScriptedLLM]:
    with ScriptedLLM([model], repeat_last=True) as server:
        yield server


@pytest.fixture(scope="module")
def pipeline(make_pipeline: Callable[..., Pipeline], server: ScriptedLLM) -> Pipeline:
    return make_pipeline(
        "models",
        HYVE_LLM_BASE_URL=server.url,
        HYVE_LLM_MODEL="scripted-1",
        HYVE_LLM_API_KEY="sk-never-shown",
        HYVE_LLM_TIMEOUT="8",
    ).start("store", "llm")


def test_a_direct_answer(pipeline: Pipeline, model: Model, server: ScriptedLLM) -> None:
    model.steps = [{"text": json.dumps(ANSWER)}]
    pipeline.ask("direct", ROWS)
    result = pipeline.result("direct")
    assert (result.status, result.mode, result.model, result.calls) == (
        "conclusive",
        "direct",
        "scripted-1",
        1,
    )
    assert result.evidence[0].rows == tuple((f"s{i}", 75) for i in range(4))
    assert result.root_causes[0].evidence == (result.evidence[0].id,)
    assert [claim.text for claim in result.unsupported] == ["invented"]
    assert server.requests[-1].headers["authorization"] == "Bearer sk-never-shown"
    assert result.ms["model"] > 0


def test_a_filled_template(pipeline: Pipeline, model: Model) -> None:
    fill = {"sql": COUNT, "mappings": [{"column": "n", "path": "bars.(_row_id).value"}]}
    model.steps = [{"tool": "fill_template", "arguments": {"template": {"bars": []}, "fills": [fill]}}]
    pipeline.ask("template", ROWS)
    result = pipeline.result("template")
    assert (result.status, result.mode, result.calls) == ("conclusive", "template", 1)
    assert result.charts == ({"bars": [{"value": 75}] * 4},)


def test_one_query_then_the_answer(pipeline: Pipeline, model: Model, server: ScriptedLLM) -> None:
    before = len(server.requests)
    model.steps = [
        {"tool": "query_datastore", "arguments": {"sql": "SELECT max(latency_ms) AS worst FROM records"}},
        {"text": json.dumps(ANSWER)},
    ]
    pipeline.ask("query", ROWS)
    result = pipeline.result("query")
    assert (result.status, result.mode, result.calls) == ("conclusive", "query", 2)
    assert 500 < result.tokens.follow_up < 4500
    first, second = (request.body for request in server.requests[before:])
    assert first["tools"]
    assert not second.get("tools")
    assert "49" in second["messages"][-1]["content"]
    hops = [json.loads(record.value)["hop"] for record in pipeline.records("prompts") if record.key == b"query"]
    assert sorted(hops) == [1, 2]


def test_a_second_query_gets_no_third_call(pipeline: Pipeline, model: Model, server: ScriptedLLM) -> None:
    before = len(server.requests)
    call = {"tool": "query_datastore", "arguments": {"sql": COUNT}}
    model.steps = [call, call, call]
    pipeline.ask("insists", ROWS)
    result = pipeline.result("insists")
    assert (result.status, result.mode, result.calls) == ("partial", "query", 2)
    assert result.evidence[0].rows == tuple((f"s{i}", 75) for i in range(4))
    assert len(server.requests) - before == 2


@pytest.mark.parametrize(
    ("name", "step", "says"),
    [
        ("auth", {"status": 401, "body": {"error": {"message": "bad key"}}}, "401"),
        ("server", {"status": 500, "body": "boom"}, "500"),
        ("rubbish", {"raw": "<html>"}, ""),
        ("empty", {"text": ""}, ""),
        ("hang", {"hang": 20}, ""),
    ],
)
def test_a_model_that_fails_leaves_the_answer_to_the_rules(
    pipeline: Pipeline, model: Model, name: str, step: dict[str, Any], says: str
) -> None:
    model.steps = [step] * 8
    pipeline.ask(name, ROWS)
    result = pipeline.result(name)
    assert (result.mode, result.model) == ("rules", "rules")
    said = [note for note in result.notes if "rules analyst" in note]
    assert len(said) == 1
    assert says in said[0]
    assert "sk-never-shown" not in result.model_dump_json()
    model.steps = []


def test_a_prompt_with_another_hop_is_a_dead_letter(pipeline: Pipeline, model: Model) -> None:
    place = {"topic": pipeline.topic("requests"), "partition": 0, "offset": 0}
    prompt = {"request_id": "third", "hop": 3, "messages": [], "request": place}
    pipeline.send("prompts", "third", json.dumps(prompt).encode())
    dead = until(lambda: [record for record in pipeline.records("deadletters") if record.key == b"third"])
    assert json.loads(dead[0].value)["stage"] == "model"
    assert kafka.wait_for(pipeline.settings, pipeline.topic("results"), b"third", 0.5) is None


def test_the_key_stands_in_no_log(pipeline: Pipeline) -> None:
    assert "sk-never-shown" not in pipeline.logs()
