"""Settings: one reader of the environment, errors of one line, secrets masked."""

from __future__ import annotations

import pytest

from hyve.errors import HyveError
from workers.settings import load


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
        ("HYVE_LOG_LEVEL", "loud", "HYVE_LOG_LEVEL"),
    ],
)
def test_a_bad_value_is_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(HyveError) as caught:
        load()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_key_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYVE_LLM_API_KEY", "sk-very-secret")
    settings = load()
    assert settings.llm_api_key.get_secret_value() == "sk-very-secret"
    assert "very-secret" not in repr(settings)
    assert "very-secret" not in settings.model_dump_json()


def test_settings_are_frozen() -> None:
    with pytest.raises(Exception, match="frozen"):
        load().budget = 1  # type: ignore[misc]


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
