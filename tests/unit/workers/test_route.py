"""Limits, breaker and fallback around models that fail on command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.errors import HyveError, ModelError
from hyve.reply import ModelReply, ToolCall
from hyve.tokens import count_tokens
from tests.scripted_llm import ScriptedLLM
from workers.route import Breaker, Limited, Pace, Route, configured
from workers.settings import Settings, load

MESSAGES = [{"role": "user", "content": "Why?"}]
DOWN = ModelError("m failed (status 500)", "server")


class Fake:
    """Answers with what the queue holds: an error is raised, a text is said, a callable is awaited."""

    def __init__(self, *queue: Any, name: str = "m") -> None:
        self.name = name
        self.queue = list(queue)
        self.asked = self.flying = self.most = 0

    async def complete(self, messages: Any, tools: Any) -> ModelReply:
        self.asked += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            step = self.queue.pop(0) if len(self.queue) > 1 else self.queue[0]
            if callable(step):
                step = await step()
            if isinstance(step, ModelError):
                raise step
            return step if isinstance(step, ModelReply) else ModelReply(step)
        finally:
            self.flying -= 1


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def failing(model: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(MESSAGES, ())
    return caught.value


async def test_no_more_calls_in_flight_than_allowed() -> None:
    fake = Fake(lambda: asyncio.sleep(0.005, "ok"))
    model = Limited(fake, concurrency=3)
    replies = await asyncio.gather(*(model.complete(MESSAGES, ()) for _ in range(20)))
    assert [reply.text for reply in replies] == ["ok"] * 20
    assert fake.most == 3


async def test_no_more_calls_a_minute_than_allowed() -> None:
    fake = Fake("ok")
    model = Limited(fake, pace=Pace(2, 0), patience=0.05)
    assert (await model.complete(MESSAGES, ())).text == "ok"
    assert (await model.complete(MESSAGES, ())).text == "ok"
    error = await failing(model)
    assert error.kind == "rate"
    assert "HYVE_LLM_REQUESTS_PER_MINUTE" in str(error)
    assert fake.asked == 2  # the third was never sent


async def test_tokens_of_prompt_and_longest_answer_count() -> None:
    fake = Fake("ok")
    model = Limited(fake, pace=Pace(0, 1000), max_tokens=400, patience=0.05)
    for _ in range(2):
        await model.complete(MESSAGES, ())  # about 12 + 400 each
    assert (await failing(model)).kind == "rate"
    one = Limited(fake, pace=Pace(0, 100), max_tokens=400, patience=0.05)
    assert (await one.complete(MESSAGES, ())).text == "ok"  # more than a minute's share goes alone
    assert (await failing(one)).kind == "rate"


class Quick(asyncio.SelectorEventLoop):
    """A loop whose clock goes on to the next timer where nothing else is to be done."""

    now = 1_000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        loop: Any = self
        if not loop._ready and loop._scheduled:
            self.now = max(self.now, loop._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


class Noting:
    """Notes when each call began, and the tokens of its prompt and longest answer; a call takes `seconds`."""

    name = "m"

    def __init__(self, longest: int, seconds: float = 0.0) -> None:
        self.longest, self.seconds = longest, seconds
        self.begun: list[tuple[float, int]] = []

    async def complete(self, messages: Any, tools: Any) -> ModelReply:
        spent = sum(count_tokens(str(part)) for part in messages) + self.longest
        self.begun.append((asyncio.get_running_loop().time(), spent))
        await asyncio.sleep(self.seconds)
        return ModelReply("ok")


@settings(max_examples=40, deadline=None)
@given(
    arrivals=st.lists(st.tuples(st.floats(0, 150), st.integers(0, 400)), min_size=1, max_size=40),
    requests=st.sampled_from([0, 1, 2, 7, 30]),
    tokens=st.sampled_from([0, 150, 900, 3_000]),
)
def test_no_window_of_a_minute_sees_more_than_the_limits(
    arrivals: list[tuple[float, int]], requests: int, tokens: int
) -> None:
    """Whenever calls come and however large they are; all get their turn in the end, in the order in which they came.
    A call of more tokens than a minute has is alone in one."""
    fake = Noting(100)
    model = Limited(fake, pace=Pace(requests, tokens), max_tokens=100, patience=1e5)

    async def call(at: float, words: int) -> None:
        await asyncio.sleep(at)
        await model.complete([{"role": "user", "content": "word " * words}], ())

    async def calls() -> None:
        await asyncio.gather(*(call(*arrival) for arrival in arrivals))

    with asyncio.Runner(loop_factory=Quick) as runner:
        runner.run(calls())
    assert len(fake.begun) == len(arrivals)
    for since, _ in fake.begun:
        within = [spent for at, spent in fake.begun if since <= at < since + 60]
        assert not requests or len(within) <= requests
        assert not tokens or sum(within) <= tokens or len(within) == 1
    if not tokens and not requests:
        assert max(at for at, _ in fake.begun) == 1_000 + max(at for at, _ in arrivals)


def test_a_burst_of_twice_the_limit_gets_its_turns_within_two_minutes() -> None:
    """The default patience is a minute: what came when the first began reaches the next."""
    fake = Noting(0, seconds=2.0)
    model = Limited(fake, pace=Pace(30, 0), concurrency=64)

    async def calls() -> None:
        await asyncio.gather(*(model.complete(MESSAGES, ()) for _ in range(60)))

    with asyncio.Runner(loop_factory=Quick) as runner:
        runner.run(calls())
    first = fake.begun[0][0]
    assert [at - first < 1 for at, _ in fake.begun] == [True] * 30 + [False] * 30
    assert 60 < fake.begun[30][0] - first <= fake.begun[-1][0] - first < 62


async def test_the_tries_of_a_call_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    with ScriptedLLM([{"status": 500}], repeat_last=True) as server:
        route = configured(load(llm_base_url=server.url, llm_model="m", llm_requests_per_minute=2, llm_timeout=30))
        assert route is not None
        assert (await failing(route)).kind == "server"
        assert len(server.requests) == 2
        with pytest.raises(TimeoutError):  # it waits for its turn
            await asyncio.wait_for(route.complete(MESSAGES, ()), 0.2)
        assert len(server.requests) == 2
        await route.aclose()


@pytest.mark.parametrize(("api", "most", "calls"), [("anthropic", 0, 2), ("openai", 0, 9), ("anthropic", 1_000, 9)])
async def test_the_longest_answer_is_counted_as_it_is_sent(api: str, most: int, calls: int) -> None:
    """Anthropic's API always wants a limit: what is sent without a set one counts."""
    with ScriptedLLM([{"raw": "{}"}], repeat_last=True) as server:
        given = {"llm_base_url": server.url, "llm_model": "m", "llm_api": api, "llm_max_tokens": most}
        route = configured(load(**given, llm_tokens_per_minute=9_999, llm_timeout=30, llm_breaker_failures=50))
        assert route is not None
        assert [(await failing(route)).kind for _ in range(calls)] == ["reply"] * calls
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(route.complete(MESSAGES, ()), 0.2)
        assert len(server.requests) == calls
        sent = server.requests[0].body.get("max_tokens", 0)
        assert sent == (most or (4_096 if api == "anthropic" else 0))
        await route.aclose()


async def test_a_call_without_a_turn_fails_and_the_turn_comes_back() -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "late"

    fake = Fake(wait)
    model = Limited(fake, concurrency=1, patience=0.05)
    first = asyncio.create_task(model.complete(MESSAGES, ()))
    await asyncio.sleep(0)
    assert "HYVE_LLM_CONCURRENCY" in str(await failing(model))
    gate.set()
    assert (await first).text == "late"
    assert (await model.complete(MESSAGES, ())).text == "late"


async def test_the_breaker_opens_rests_and_lets_one_call_try() -> None:
    clock = Clock()
    fake = Fake(DOWN, DOWN, DOWN, "back")
    model = Limited(fake, breaker=Breaker(3, 30.0, clock))
    for _ in range(3):
        await failing(model)
    error = await failing(model)
    assert "not asked for another 30 s" in str(error)
    assert fake.asked == 3
    clock.now += 29
    assert "another 1 s" in str(await failing(model))
    clock.now += 1
    assert (await model.complete(MESSAGES, ())).text == "back"
    assert (await model.complete(MESSAGES, ())).text == "back"
    assert fake.asked == 5


async def test_while_one_call_tries_the_others_are_refused_and_a_failure_opens_again() -> None:
    clock = Clock()
    gate = asyncio.Event()

    async def slow() -> Any:
        await gate.wait()
        return DOWN

    fake = Fake(DOWN, slow)
    model = Limited(fake, breaker=Breaker(1, 10.0, clock))
    await failing(model)
    clock.now += 10
    trying = asyncio.create_task(failing(model))
    await asyncio.sleep(0)
    assert "not asked" in str(await failing(model))
    gate.set()
    assert str(await trying) == str(DOWN)
    assert "not asked for another 10 s" in str(await failing(model))
    assert fake.asked == 2


async def test_a_try_that_is_cancelled_leaves_room_for_the_next() -> None:
    clock = Clock()
    fake = Fake(DOWN, lambda: asyncio.sleep(60), "back")
    model = Limited(fake, breaker=Breaker(1, 10.0, clock))
    await failing(model)
    clock.now += 10
    trying = asyncio.create_task(model.complete(MESSAGES, ()))
    await asyncio.sleep(0)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    assert (await model.complete(MESSAGES, ())).text == "back"


async def test_what_is_not_the_servers_fault_opens_nothing() -> None:
    fake = Fake(DOWN, ModelError("bad", "request"), DOWN, ModelError("odd", "reply"), DOWN, "fine")
    model = Limited(fake, breaker=Breaker(2, 30.0, Clock()))
    for _ in range(5):
        await failing(model)
    assert (await model.complete(MESSAGES, ())).text == "fine"


async def test_a_retry_after_lengthens_the_rest() -> None:
    clock = Clock()
    fake = Fake(ModelError("no capacity", "rate", 120.0))
    model = Limited(fake, breaker=Breaker(1, 30.0, clock))
    await failing(model)
    clock.now += 119
    assert "another 1 s" in str(await failing(model))


@pytest.mark.parametrize("failing_", [{"status": 500}, {"cut": True}], ids=str)
@pytest.mark.parametrize("at_once", [1, 12])
async def test_tries_count_until_the_breaker_opens_and_none_is_made_behind_it(
    failing_: dict[str, Any], at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that fails gets the calls in flight and a few more, not every try of every request."""
    with ScriptedLLM([failing_], repeat_last=True) as server:
        given = {"llm_base_url": server.url, "llm_model": "m", "llm_breaker_failures": 5, "llm_timeout": 20}
        route = configured(load(**given))
        assert route is not None
        for _ in range(3):
            met = await asyncio.gather(*(failing(route) for _ in range(at_once)))
        assert 5 <= len(server.requests) <= max(5, at_once + 4)
        assert all("not asked for another" in str(error) for error in met)
        await route.aclose()
    (told,) = (record for record in caplog.records if "times in a row" in record.getMessage())
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith("llm: m failed 5 times in a row and is not asked for 30 s (")


async def test_that_a_model_is_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    model = Limited(Fake(DOWN, "back"), breaker=Breaker(1, 30.0, clock, "m"))
    await failing(model)
    clock.now += 30
    assert (await model.complete(MESSAGES, ())).text == "back"
    assert (await model.complete(MESSAGES, ())).text == "back"
    assert [record.getMessage() for record in caplog.records] == [
        "llm: m failed 1 times in a row and is not asked for 30 s (m failed (status 500))",
        "llm: m answers again and is asked as before",
    ]


@pytest.mark.parametrize(("wait", "rests"), [(90.0, True), (5.0, False)])
async def test_a_server_that_says_when_to_ask_again_is_left_alone_for_long(
    wait: float, rests: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A wait as long as the breaker's rest, or longer, is one: others ask their next model, or the rules, at once."""
    clock = Clock()
    fake = Fake(ModelError("m has no capacity (status 429)", "rate", wait), "back")
    model = Limited(fake, breaker=Breaker(5, 30.0, clock, "m"))
    await failing(model)
    if rests:
        assert (await failing(model)).retry_after == wait
        assert fake.asked == 1
        assert "llm: m has no capacity and is not asked for 90 s" in caplog.text
        clock.now += wait
    assert (await model.complete(MESSAGES, ())).text == "back"
    assert fake.asked == 2


@pytest.mark.parametrize("kind", ["auth", "rate", "server", "timeout", "connection", "request", "reply"])
async def test_the_next_model_stands_in_for_every_kind_of_failure(kind: Any) -> None:
    first, second = Fake(ModelError("broken", kind), name="a"), Fake("from b", name="b")
    route = Route([first, second])
    assert route.name == "a"
    assert (await route.complete(MESSAGES, ())).text == "from b"


async def test_where_all_fail_each_is_told_and_the_first_ones_kind_counts() -> None:
    route = Route([Fake(ModelError("a is wrong", "auth")), Fake(ModelError("b is down", "server"))])
    error = await failing(route)
    assert (str(error), error.kind) == ("a is wrong; then b is down", "auth")


async def test_costs_are_those_of_the_model_that_answered() -> None:
    told = ModelReply("ok", prompt_tokens=1_000_000, completion_tokens=100_000)
    first = Limited(Fake(DOWN), prices=(1.0, 1.0))
    second = Limited(Fake(told), prices=(3.0, 15.0))
    assert (await Route([first, second]).complete(MESSAGES, ())).cost == pytest.approx(4.5)
    counted = await Limited(Fake("four words are here"), prices=(0.0, 1e6)).complete(MESSAGES, ())
    assert counted.cost == 4.0
    assert (await Limited(Fake(told)).complete(MESSAGES, ())).cost is None


def settings(**given: Any) -> Settings:
    return load(llm_base_url="http://127.0.0.1:9/v1", llm_model="m", **given)


def test_nothing_is_configured_by_default() -> None:
    assert configured(load()) is None


async def test_a_fallback_on_the_same_server_uses_its_key() -> None:
    with ScriptedLLM([{"status": 400, "body": "no such model"}, {"text": "fine"}]) as server:
        given = {"llm_base_url": server.url, "llm_model": "a", "llm_api_key": "k", "llm_fallback_model": "b"}
        route = configured(load(**given))
        assert route is not None
        assert (await route.complete(MESSAGES, ())).text == "fine"
    assert [(r.body["model"], r.headers["authorization"]) for r in server.requests] == [
        ("a", "Bearer k"),
        ("b", "Bearer k"),
    ]


async def test_a_fallback_elsewhere_never_sees_the_first_key() -> None:
    with ScriptedLLM([{"status": 403}]) as one, ScriptedLLM([{"text": "fine"}]) as other:
        route = configured(
            load(
                llm_base_url=one.url,
                llm_model="a",
                llm_api_key="k",
                llm_fallback_model="b",
                llm_fallback_base_url=other.url,
            )
        )
        assert route is not None
        assert (await route.complete(MESSAGES, ())).text == "fine"
    assert "authorization" not in other.requests[0].headers


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: settings(llm_prices="3"), "HYVE_LLM_PRICES: '3' is not INPUT/OUTPUT"),
        (lambda: settings(llm_fallback_base_url="http://x"), "name the model"),
        (lambda: load(llm_fallback_model="b"), "name the first model"),
        (lambda: settings(llm_api="gemini"), "HYVE_LLM_API"),
    ],
)
def test_settings_that_do_not_fit_are_told(make: Callable[[], Settings], said: str) -> None:
    with pytest.raises(HyveError, match="bad settings") as caught:
        make()
    assert said in str(caught.value)


async def test_what_comes_of_calls_is_told() -> None:
    """Which model fails, of what, and whether it is asked at all."""
    told: list[tuple[str, str]] = []
    with (
        ScriptedLLM([{"status": 500}], repeat_last=True) as first,
        ScriptedLLM([{"text": "yes"}], repeat_last=True) as s,
    ):
        named = load(
            llm_base_url=first.url,
            llm_model="large",
            llm_fallback_base_url=s.url,
            llm_fallback_model="small",
            llm_breaker_failures=2,
            llm_timeout=3,
        )
        model = configured(named, lambda name, outcome: told.append((name, outcome)))
        assert model is not None
        assert (await model.complete(MESSAGES, ())).text == "yes"
        assert (await model.complete(MESSAGES, ())).text == "yes"
    assert told == [
        *(("large", "retry"), ("large", "server"), ("small", "ok")),
        *(("large", "resting"), ("small", "ok")),
    ]


@pytest.mark.parametrize(
    "reply",
    [ModelReply(""), ModelReply("  "), ModelReply("", (ToolCall("1", "rm_rf", "{}"),)),
     ModelReply("", (ToolCall("1", "query_datastore", "{}"),))],
)  # fmt: skip
async def test_a_reply_that_says_nothing_usable_is_a_failure_like_others(
    reply: ModelReply, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Fake(reply), Fake("ok", name="n")
    assert (await Route([first, second]).complete(MESSAGES, ())).text == "ok"
    assert "m: the model's reply" in caplog.text
    assert (await Route([Fake("fine"), second]).complete(MESSAGES, ())).text == "fine"
    assert second.asked == 1
    alone = Route([Fake(reply)])
    assert await alone.complete(MESSAGES, ()) is reply, "who asked says what is wrong with it, and counts its cost"
    error = await failing(Route([Fake(reply), Fake(DOWN, name="n")]))
    assert error.kind == "reply"
    assert str(error).endswith("; then m failed (status 500)")


async def test_that_the_next_model_is_asked_is_told_but_not_while_the_first_rests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = Limited(Fake(DOWN, name="m1"), breaker=Breaker(2, 30.0, Clock(), "m1"))
    route = Route([first, Fake("ok", name="m2")])
    for _ in range(20):
        assert (await route.complete(MESSAGES, ())).text == "ok"
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line.endswith("the next model is asked") for line in told] == [True, False, True]
    assert told[1].startswith("llm: m1 failed 2 times in a row")
