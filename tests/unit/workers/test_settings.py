"""Settings: one reader of the environment, errors of one line, secrets masked."""

from __future__ import annotations

import logging

import pytest

from hyve.errors import HyveError
from workers import kafka
from workers.settings import PATIENCE, Settings, load

NUMBERS = sorted(name for name, field in Settings.model_fields.items() if field.annotation in (int, float))


def test_environment_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYVE_BOOTSTRAP_SERVERS", "a:1, b:2")
    monkeypatch.setenv("HYVE_TOPIC_PREFIX", "prod")
    monkeypatch.setenv("HYVE_BUDGET", "")
    settings = load()
    assert settings.servers == ["a:1", "b:2"]
    assert settings.topic("requests") == "prod.requests"
    assert settings.raw == ("prod.raw",)
    assert settings.budget == 4000


def test_raw_topics_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYVE_RAW_TOPICS", "otlp_logs, otlp_spans ,")
    assert load().raw == ("otlp_logs", "otlp_spans")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("HYVE_BUDGET", "lots", "HYVE_BUDGET: Input should be a valid integer"),
        ("HYVE_BUDGET", "3", "HYVE_BUDGET: Input should be greater than or equal to 200"),
        ("HYVE_BOOTSTRAP_SERVERS", "localhost", "'localhost' is not host:port"),
        ("HYVE_LLM_BASE_URL", "example.org/v1", "must start with http:// or https://"),
        ("HYVE_LLM_BASE_URL", "https://x/v1", "HYVE_LLM_MODEL is not"),
        ("HYVE_HEARTBEAT_INTERVAL", "20", "at most half of HYVE_SESSION_TIMEOUT"),
        ("HYVE_BOOTSTRAP_SERVERS", "PLAINTEXT://127.0.0.1:9092", "'PLAINTEXT://127.0.0.1:9092' is not host:port"),
        ("HYVE_LOG_LEVEL", "debug", "HYVE_LOG_LEVEL: must be one of DEBUG, INFO, WARNING, ERROR"),
        (
            "HYVE_SECURITY_PROTOCOL",
            "ssl",
            "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ("HYVE_LLM_API", "gemini", "HYVE_LLM_API: must be one of openai, anthropic"),
        (
            "HYVE_POOL_MEMORY",
            "1000",
            "1000 is too little for any store: write at least 67108864, or 0",
        ),
        ("HYVE_REDACT", ",", "HYVE_REDACT: ',' names nothing: write none to mask nothing, or some of secrets"),
        ("HYVE_REDACT", "secrets,none", "HYVE_REDACT: 'secrets,none' names none beside others"),
        ("HYVE_SECURITY_PROTOCOL", "SASL_SSL", "needs HYVE_SASL_USERNAME and HYVE_SASL_PASSWORD"),
        ("HYVE_SASL_PASSWORD", "hidden-value", "neither SASL_SSL nor SASL_PLAINTEXT"),
        ("HYVE_SASL_MECHANISM", "GSSAPI", "HYVE_SASL_MECHANISM"),
        ("HYVE_SSL_CAFILE", "ca.pem", "neither SSL nor SASL_SSL"),
        ("HYVE_SSL_KEYFILE", "key.pem", "HYVE_SSL_CERTFILE is not"),
    ],
)
def test_a_bad_value_is_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(HyveError) as caught:
        load()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hidden-value" not in str(caught.value)


def test_the_key_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYVE_LLM_API_KEY", "sk-very-secret")
    monkeypatch.setenv("HYVE_SASL_PASSWORD", "pw-very-secret")
    settings = load(security_protocol="SASL_SSL", sasl_username="u")
    assert settings.llm_api_key.get_secret_value() == "sk-very-secret"
    assert settings.sasl_password.get_secret_value() == "pw-very-secret"
    assert "very-secret" not in repr(settings)
    assert "very-secret" not in settings.model_dump_json()


def test_settings_are_frozen() -> None:
    with pytest.raises(Exception, match="frozen"):
        load().budget = 1


def test_what_is_masked_is_a_setting() -> None:
    assert load().redaction == (("secrets",), ())
    assert load(redact="ips, secrets", redact_keep="password,token").redaction == (
        ("secrets", "ips"),
        ("password", "token"),
    )
    assert load(redact="none").redaction == ((), ())
    with pytest.raises(HyveError, match="HYVE_REDACT: 'names' is none of secrets, emails, ips, none"):
        load(redact="names")
    with pytest.raises(HyveError, match="HYVE_REDACT_KEEP: 'secrets' is none of password"):
        load(redact_keep="secrets")


def test_raw_topics_may_say_what_they_hold() -> None:
    settings = load(raw_topics=" otlp_spans=otlp_proto ,logs, plain = text")
    assert settings.raw == ("otlp_spans", "logs", "plain")
    assert settings.raw_formats == {"otlp_spans": "otlp_proto", "logs": "", "plain": "text"}
    with pytest.raises(HyveError, match="HYVE_RAW_TOPICS: 'a=avro' is not TOPIC=FORMAT"):
        load(raw_topics="a=avro")


def test_the_defaults_of_timeouts_stand_above_the_longest_work() -> None:
    settings = load()
    assert settings.rebalance_limit == 1.2 * 120
    assert settings.rebalance_limit > max(settings.prepare_timeout, settings.query_timeout, settings.llm_patience)
    assert settings.longest_work == 2 * (120 + 30)
    assert settings.stall_limit > settings.longest_work
    assert settings.record_limit >= settings.batch * settings.prepare_timeout
    assert settings.record_limit > settings.stall_limit


def test_what_counts_as_dead_follows_the_longest_work() -> None:
    assert load(llm_timeout=600).stall_limit == 1.2 * 2 * 600
    assert load(llm_timeout=600, llm_base_url="http://m/v1", llm_model="m", llm_fallback_model="n").longest_work == 2400
    assert load(prepare_timeout=1000).longest_work == 2060
    short = load(prepare_timeout=5, query_timeout=5, llm_timeout=5, collect_timeout=5)
    assert short.stall_limit > PATIENCE + 5, "what waits for a store of files that is away is not dead"
    assert load(prepare_timeout=1000).rebalance_limit == 1200
    assert load(stall_timeout=301).stall_limit == 301


def test_a_limit_that_would_end_workers_at_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYVE_STALL_TIMEOUT", "200")
    with pytest.raises(
        HyveError, match=r"HYVE_STALL_TIMEOUT \(200\) must be at least 300, what one record may take by"
    ):
        load()
    monkeypatch.setenv("HYVE_PREPARE_TIMEOUT", "60")
    assert load().stall_limit == 200


def test_a_rebalance_timeout_below_the_longest_work_costs_work_but_is_allowed() -> None:
    """Offsets are committed in order, so nothing is lost: the embedded broker needs one of seconds."""
    assert load(rebalance_timeout=4).rebalance_limit == 4


@pytest.mark.parametrize("seconds", ["5", "1801"])
def test_a_session_timeout_that_kafka_refuses_is_refused_here(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("HYVE_SESSION_TIMEOUT", seconds)
    with pytest.raises(HyveError, match="HYVE_SESSION_TIMEOUT: Input should be"):
        load()


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e308", "9" * 400, "-1e308"])
@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_is_without_bounds(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    variable = f"HYVE_{name.upper()}"
    monkeypatch.setenv(variable, value)
    with pytest.raises(HyveError, match=f"^bad settings: {variable}: "):
        load()


def test_the_largest_numbers_give_times_that_kafka_and_clocks_take() -> None:
    """Kafka's are milliseconds of 31 bits, Python's locks wait at most for some 292 years."""
    most = {}
    for name in NUMBERS:
        for bound in Settings.model_fields[name].metadata:
            most[name] = getattr(bound, "le", most.get(name))
    assert set(most) == set(NUMBERS)
    settings = load(**{**most, "stall_timeout": 0, "heartbeat_interval": 1})
    for seconds in (settings.session_timeout, settings.rebalance_timeout, settings.rebalance_limit):
        assert seconds * 1000 < 2**31
    assert max(settings.record_limit, settings.stall_limit, settings.time_behind) < 2**32


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("HYVE_REDACTS", "HYVE_REDACT"),
        ("HYVE_REDACTION", "HYVE_REDACT"),
        ("HYVE_LLM_KEY", "HYVE_LLM_API_KEY"),
        ("HYVE_RAW_TOPIC", "HYVE_RAW_TOPICS"),
        ("hyve_deadlines", "HYVE_DEADLINE"),
    ],
)
def test_a_mistyped_name_is_refused(monkeypatch: pytest.MonkeyPatch, given: str, meant: str) -> None:
    monkeypatch.setenv(given, "emails,ips")
    with pytest.raises(HyveError, match=f"{given}: no setting has this name; is {meant} meant\\?") as caught:
        load()
    assert "emails" not in str(caught.value)


def test_a_name_of_no_setting_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("HYVE_UNHEARD_OF", "hidden-value")
    caplog.set_level(logging.WARNING, "hyve")
    load()
    load()
    assert [record.getMessage() for record in caplog.records if "UNHEARD" in record.getMessage()] == [
        "settings: HYVE_UNHEARD_OF: no setting has this name, so it does nothing"
    ]


def test_what_kubernetes_sets_for_a_service_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (
        "HYVE_STORE_SERVICE_HOST", "HYVE_STORE_SERVICE_PORT", "HYVE_STORE_SERVICE_PORT_HTTP", "HYVE_STORE_PORT",
        "HYVE_STORE_PORT_9465_TCP", "HYVE_STORE_PORT_9465_TCP_ADDR",
    ):  # fmt: skip
        monkeypatch.setenv(name, "tcp://10.0.0.1:9465")
    load()
    assert "HYVE_STORE" not in caplog.text


@pytest.mark.parametrize("name", ["telemetry", "alerts", "requests", "deadletters"])
def test_a_raw_topic_that_hyve_writes_is_refused(name: str) -> None:
    with pytest.raises(HyveError, match=rf"HYVE_RAW_TOPICS: shop.{name} is written by HYVE itself"):
        kafka.check_raw(load(topic_prefix="shop", raw_topics=f"shop.raw, shop.{name}=json"))
    kafka.check_raw(load(topic_prefix="shop", raw_topics="shop.raw=json"))
