"""Every setting, frozen, from `HYVE_*` variables: the only reader of the environment in the project.

Rules: a bad value is one line (`HyveError`) that names the variable, never a traceback; secrets are
masked in `repr`. A name that is nearly a setting's is refused too, for what it was to say would go unheard; any other
that no setting has is told once. All numbers are bounded, so that sums of them fit what Kafka and the clocks take. The
Kafka timeouts' defaults suit a real broker. On the embedded one, a group join takes
half of the rebalance timeout, so its workers are given short ones (see `EMBEDDED`).

How the timeouts stand to each other:
- A worker gives its partitions away when the records in hand are done and committed, and the group waits for it as
  long as `rebalance_timeout` says. Less than the longest call loses nothing: offsets are committed in order, and what
  another worker takes up again has a deterministic id. But it costs the work twice, so the default is above, and a
  worker that is given less says so. Much more would let one that hangs hold up its whole group.
- A worker that is killed commits nothing more. After `session_timeout` others do again what it had in hand, what was
  done but waits for an earlier record of its partition, and the last second's: of an LLM worker each is one more call
  that is paid. A request has one result all the same.
- `stall_timeout` ends a worker, so it must be above the longest work; else one slow request would kill worker after
  worker. That one is refused.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from hyve.errors import HyveError
from hyve.redact import KINDS
from hyve.secretforms import LABELS
from schemas import TOPICS, Topic

log = logging.getLogger("hyve")

EMBEDDED: Final[dict[str, str]] = {
    "HYVE_REBALANCE_TIMEOUT": "4",
    "HYVE_SESSION_TIMEOUT": "6",
    "HYVE_HEARTBEAT_INTERVAL": "1",
    "HYVE_REPLICATION": "1",
    "HYVE_SECURITY_PROTOCOL": "PLAINTEXT",
    "HYVE_SASL_USERNAME": "",
    "HYVE_SASL_PASSWORD": "",
    "HYVE_SSL_CAFILE": "",
    "HYVE_SSL_CERTFILE": "",
    "HYVE_SSL_KEYFILE": "",
}


RAW_FORMATS: Final = ("otlp_proto", "json", "text")
"""What a raw topic may be said to hold; without a word each record is recognised."""

_DAY: Final = 86_400.0
_PREFIX: Final = "HYVE_"
_ALIKE: Final = 0.77
"""From this likeness on (as difflib has it) a name is taken for a setting's that was mistyped."""

_TESTS: Final = ("TEST_", "CORPUS")
"""How the names begin that the project's tests and benchmarks read."""

PATIENCE: Final = 120.0
"""Seconds for which a record waits for what can't be reached: Kafka, or the store of large data."""

_LEAST_MEMORY: Final = 64 << 20
"""Bytes below which a process can build no store at all."""

_WORDS: Final = re.compile(r"\^\(([A-Za-z0-9_|-]+)\)\??\$")
"""Patterns that are a list of words."""

_LINKS: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
"""How the names end that Kubernetes gives each container for a Service, such as one that is called hyve-intake."""


class Settings(BaseSettings):
    """Settings of one process. Times are seconds and sizes bytes unless a name says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, frozen=True, extra="ignore", env_ignore_empty=True, allow_inf_nan=False
    )

    bootstrap_servers: str = Field(default="127.0.0.1:9092", description="host:port of Kafka brokers, by commas.")
    topic_prefix: str = Field(default="hyve", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    raw_topics: str = Field(
        default="", description="Topics that the intake reads, TOPIC or TOPIC=FORMAT, by commas; empty: PREFIX.raw."
    )
    time_behind: float = Field(
        default=7 * _DAY,
        gt=0,
        le=3650 * _DAY,
        description="An event older than its raw record by more has that one's timestamp.",
    )
    time_ahead: float = Field(
        default=600.0, gt=0, le=3_000, description="The same for times to come. Kafka refuses those of over an hour."
    )
    replication: int = Field(default=1, ge=1, le=10, description="Replicas of the topics that HYVE creates.")
    security_protocol: str = Field(default="PLAINTEXT", pattern=r"^(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)$")
    sasl_mechanism: str = Field(default="PLAIN", pattern=r"^(PLAIN|SCRAM-SHA-256|SCRAM-SHA-512)$")
    sasl_username: str = ""
    sasl_password: SecretStr = SecretStr("")
    ssl_cafile: str = Field(default="", description="PEM of who signed the brokers' certificates; empty: certifi's.")
    ssl_certfile: str = Field(default="", description="PEM of the client's own certificate, where brokers want one.")
    ssl_keyfile: str = Field(default="", description="PEM of its key, not encrypted; empty: in HYVE_SSL_CERTFILE.")
    connect_timeout: float = Field(default=5.0, ge=0.1, le=120)

    rebalance_timeout: float = Field(
        default=0.0,
        ge=0,
        le=3600,
        description="How long the group waits for a worker that ends what it has begun; 0: for the longest call.",
    )
    session_timeout: float = Field(
        default=30.0, ge=6, le=1800, description="Silence after which a worker is out of its group; Kafka's own bounds."
    )
    heartbeat_interval: float = Field(default=3.0, ge=0.1, le=900)
    stall_timeout: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        description="Seconds with something to do and nothing done after which /healthz fails; 0: by the others.",
    )
    drain_timeout: float = Field(
        default=300.0, gt=0, le=3600, description="How long SIGTERM waits for the records in hand."
    )
    batch: int = Field(default=16, ge=1, le=1000, description="Records that one agent works on at a time.")
    raw_batch: int = Field(default=64, ge=1, le=5000, description="Raw records that the intake works on at a time.")

    llm_base_url: str = Field(default="", description="OpenAI- or Anthropic-compatible server, as https://host/v1.")
    llm_model: str = ""
    llm_api_key: SecretStr = SecretStr("")
    llm_api: str = Field(default="", pattern=r"^(openai|anthropic)?$", description="Empty: the address says it.")
    llm_timeout: float = Field(
        default=60.0, gt=0, le=_DAY, description="Longest that one model may take, and wait for its turn."
    )
    llm_max_tokens: int = Field(default=0, ge=0, le=1_000_000, description="Most tokens of an answer; 0: the server's.")
    llm_concurrency: int = Field(default=64, ge=1, le=10_000, description="Calls in flight, of each model and process.")
    llm_requests_per_minute: int = Field(
        default=0, ge=0, le=1_000_000, description="0: no limit. Of each model and process."
    )
    llm_tokens_per_minute: int = Field(
        default=0, ge=0, le=10_000_000_000, description="0: no limit. Prompt and longest answer count."
    )
    llm_breaker_failures: int = Field(
        default=5, ge=1, le=1_000_000, description="Failures in a row after which a model rests."
    )
    llm_breaker_rest: float = Field(default=30.0, gt=0, le=3600)
    llm_fallback_model: str = Field(default="", description="Asked where the first model fails.")
    llm_fallback_base_url: str = Field(default="", description="Empty: the first model's server.")
    llm_fallback_api_key: SecretStr = SecretStr("")
    llm_fallback_api: str = Field(default="", pattern=r"^(openai|anthropic)?$")
    llm_prices: str = Field(default="", description="Of a million tokens asked and answered, as 3/15; for `cost`.")
    llm_fallback_prices: str = ""

    budget: int = Field(default=4000, ge=200, le=1_000_000, description="Tokens of the first prompt.")
    follow_up_budget: int = Field(default=2000, ge=200, le=1_000_000, description="Tokens of the second prompt.")
    deadline: float = Field(default=300.0, gt=0, le=_DAY, description="How long one request may take, end to end.")

    redact: str = Field(
        default="secrets", description="What a model sees masked, by commas: secrets, emails, ips. none: nothing."
    )
    redact_keep: str = Field(
        default="", description="What of it answers show masked, too: password, key, token, private_key, cookie..."
    )

    pool_size: int = Field(default=2, ge=1, le=256, description="Processes that hold request stores.")
    pool_stores: int = Field(default=64, ge=1, le=10_000, description="Stores that one process keeps.")
    pool_memory: int = Field(
        default=4 << 30, ge=0, le=1 << 50, description="Bytes that one process may hold (Linux); 0: no limit."
    )
    pool_ttl: float = Field(
        default=900.0, gt=0, le=7 * _DAY, description="Seconds after which a store without an answer is closed."
    )
    prepare_timeout: float = Field(
        default=120.0, gt=0, le=_DAY, description="Longest that building one store may take."
    )
    query_timeout: float = Field(default=30.0, gt=0, le=_DAY, description="Longest that one other store call may take.")

    alert_settle: float = Field(
        default=1.0, ge=0, le=300, description="How long alerts wait for others of their group."
    )
    alert_turns: int = Field(default=4, ge=1, le=64, description="Groups of alerts that are collected for at a time.")
    alert_queue: int = Field(
        default=2000, ge=1, le=100_000, description="Alerts that wait in a worker; Kafka has the rest."
    )
    alert_memory: float = Field(default=24.0, gt=0, le=168, description="Hours in which an alert is asked about once.")
    window_minutes: float = Field(default=15.0, gt=0, le=1440, description="Telemetry before an alert's start.")
    collect_bytes: int = Field(
        default=24 << 20, ge=1024, le=48 << 20, description="Telemetry in one request; the newest is kept."
    )
    collect_timeout: float = Field(default=30.0, gt=0, le=_DAY)
    collect_idle: float = Field(default=0.5, gt=0, le=30, description="Silence after which a partition is read.")
    webhook_bytes: int = Field(default=32 << 20, ge=1024, le=1 << 30, description="Largest webhook body.")

    claim_url: str = Field(default="", description="Where data too large for a record lies: file:///x, s3://bucket/x.")
    claim_bytes: int = Field(default=32 << 20, ge=1024, le=48 << 20, description="Data above which it lies there.")

    http_host: str = "127.0.0.1"
    http_port: int = Field(default=6066, ge=0, le=65535, description="Webhook of the intake worker.")
    metrics_port: int = Field(default=-1, ge=-1, le=65535, description="-1: 9464 intake, 9465 store, 9466 llm.")
    log_level: str = Field(default="INFO", pattern=r"^(DEBUG|INFO|WARNING|ERROR)$")

    @field_validator("llm_base_url", "llm_fallback_base_url")
    @classmethod
    def _http(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return value.rstrip("/")

    @field_validator("llm_prices", "llm_fallback_prices")
    @classmethod
    def _prices(cls, value: str) -> str:
        if value and not re.fullmatch(r"\d{1,9}(\.\d{1,9})?/\d{1,9}(\.\d{1,9})?", value):
            raise ValueError(f"{value!r} is not INPUT/OUTPUT, such as 3/15")
        return value

    @field_validator("raw_topics")
    @classmethod
    def _formats(cls, value: str) -> str:
        for part in value.split(","):
            name, equals, form = (text.strip() for text in part.partition("="))
            if equals and (not name or form not in RAW_FORMATS):
                raise ValueError(f"{part.strip()!r} is not TOPIC=FORMAT, of the formats {', '.join(RAW_FORMATS)}")
        return value

    @field_validator("redact", "redact_keep")
    @classmethod
    def _maskable(cls, value: str, info: ValidationInfo) -> str:
        known = LABELS if info.field_name == "redact_keep" else (*KINDS, "none")
        names = list(filter(None, map(str.strip, value.split(","))))
        for name in names:
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")
        if info.field_name == "redact" and not names:
            raise ValueError(f"{value!r} names nothing: write none to mask nothing, or some of {', '.join(KINDS)}")
        if "none" in names and len(names) > 1:
            raise ValueError(f"{value!r} names none beside others: write either")
        return value

    @field_validator("pool_memory")
    @classmethod
    def _enough(cls, value: int) -> int:
        if 0 < value < _LEAST_MEMORY:
            raise ValueError(f"{value} is too little for any store: write at least {_LEAST_MEMORY}, or 0 for no limit")
        return value

    @field_validator("bootstrap_servers")
    @classmethod
    def _hosts(cls, value: str) -> str:
        for server in value.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or "/" in host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
                raise ValueError(f"{server.strip()!r} is not host:port")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        secret = self.sasl_password.get_secret_value()
        if self.security_protocol.startswith("SASL"):
            if not self.sasl_username or not secret:
                raise ValueError("HYVE_SECURITY_PROTOCOL needs HYVE_SASL_USERNAME and HYVE_SASL_PASSWORD: set both")
        elif self.sasl_username or secret:
            raise ValueError("HYVE_SASL_* is set but HYVE_SECURITY_PROTOCOL is neither SASL_SSL nor SASL_PLAINTEXT")
        if (self.ssl_cafile or self.ssl_certfile) and not self.security_protocol.endswith("SSL"):
            raise ValueError("HYVE_SSL_* is set but HYVE_SECURITY_PROTOCOL is neither SSL nor SASL_SSL")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("HYVE_SSL_KEYFILE is set but HYVE_SSL_CERTFILE is not")
        if self.llm_base_url and not self.llm_model:
            raise ValueError("HYVE_LLM_BASE_URL is set but HYVE_LLM_MODEL is not: name the model to ask")
        if (self.llm_fallback_model or self.llm_fallback_base_url) and not self.llm_base_url:
            raise ValueError("HYVE_LLM_FALLBACK_* is set but HYVE_LLM_BASE_URL is not: name the first model")
        if self.llm_fallback_base_url and not self.llm_fallback_model:
            raise ValueError("HYVE_LLM_FALLBACK_BASE_URL is set but HYVE_LLM_FALLBACK_MODEL is not: name the model")
        if self.heartbeat_interval * 2 > self.session_timeout:
            raise ValueError("HYVE_HEARTBEAT_INTERVAL must be at most half of HYVE_SESSION_TIMEOUT")
        if 0 < self.stall_timeout < (least := max(self.longest_work, 15.0)):
            raise ValueError(
                f"HYVE_STALL_TIMEOUT ({self.stall_timeout:g}) must be at least {least:g}, what one record may take by "
                "HYVE_PREPARE_TIMEOUT, HYVE_QUERY_TIMEOUT, HYVE_COLLECT_TIMEOUT and HYVE_LLM_TIMEOUT: a worker at work "
                "would count as dead"
            )
        return self

    @property
    def llm_patience(self) -> float:
        """Longest that a prompt waits for models: each for its turn and then for its answer, one after the other."""
        return 2 * self.llm_timeout * (2 if self.llm_fallback_model else 1)

    @property
    def longest_call(self) -> float:
        """Longest that one record may be worked on, once its turn has come."""
        return max(self.prepare_timeout, self.query_timeout, self.llm_patience)

    @property
    def rebalance_limit(self) -> float:
        """How long the group waits for a worker before it shares its partitions out without it."""
        return self.rebalance_timeout or self.longest_call * 1.2

    @property
    def longest_work(self) -> float:
        """Longest that one record may keep a worker from all others, tries included."""
        rebuilt = 2 * (self.prepare_timeout + self.query_timeout)  # a store's process may die once in each call
        return max(rebuilt, self.llm_patience, 3 * self.collect_timeout + 6)

    @property
    def stall_limit(self) -> float:
        """Seconds without anything done, with something to do, after which a worker counts as dead."""
        return self.stall_timeout or max(self.longest_work, PATIENCE + self.prepare_timeout) * 1.2

    @property
    def record_limit(self) -> float:
        """Longest that a record may be in hand: all that was taken before it may come first."""
        return max(1000.0, 2 * self.deadline, self.stall_limit, self.batch * self.prepare_timeout)

    @cached_property
    def raw(self) -> tuple[str, ...]:
        """Full names of the raw topics."""
        return tuple(self.raw_formats) or (self.topic("raw"),)

    @cached_property
    def raw_formats(self) -> dict[str, str]:
        """What the raw topics that are named hold: "" (recognised), otlp_proto, json or text."""
        named = (part.partition("=") for part in self.raw_topics.split(","))
        return {name.strip(): form.strip() for name, _, form in named if name.strip()}

    @property
    def redaction(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is masked before a model sees it, and what of that stays masked in answers."""
        named = [tuple(map(str.strip, value.split(","))) for value in (self.redact, self.redact_keep)]
        return tuple(kind for kind in KINDS if kind in named[0]), tuple(label for label in LABELS if label in named[1])

    @property
    def servers(self) -> list[str]:
        """Bootstrap servers as a list."""
        return [server.strip() for server in self.bootstrap_servers.split(",")]

    def topic(self, name: str) -> str:
        """Full name of a topic of the table: "requests" -> "hyve.requests"."""
        return f"{self.topic_prefix}.{name}"

    @staticmethod
    def topics() -> dict[str, Topic]:
        """The table of topics by its short names."""
        return {topic.name: topic for topic in TOPICS}


def load(**overrides: Any) -> Settings:
    """Settings from the environment; `overrides` win. Raises `HyveError` that names each bad variable."""
    _check_names(os.environ)
    try:
        return Settings(**overrides)
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False, include_input=False):
            name = _PREFIX + "_".join(str(step) for step in fault["loc"]).upper() if fault["loc"] else ""
            text = fault["msg"].removeprefix("Value error, ")
            if words := _WORDS.fullmatch(str(fault.get("ctx", {}).get("pattern", ""))):
                text = f"must be one of {', '.join(words[1].split('|'))}"
            faults.append(f"{name}: {text}" if name else text)
        raise HyveError(f"bad settings: {'; '.join(faults)}") from None


def _check_names(environ: Mapping[str, str]) -> None:
    """Raises `HyveError` for names that are nearly a setting's; the others that no setting has are told in the log."""
    known = {name.upper() for name in Settings.model_fields}
    mistyped, strange = [], []
    for given, value in environ.items():
        name = given.upper().removeprefix(_PREFIX)
        link = _LINKS.search(name) or (name.endswith("_PORT") and "://" in value)
        if name == given.upper() or name in known or link or name.startswith(_TESTS):
            continue
        if alike := difflib.get_close_matches(name, known, 1, _ALIKE):
            mistyped.append(f"{given}: no setting has this name; is {_PREFIX}{alike[0]} meant?")
        else:
            strange.append(given)
    if mistyped:
        raise HyveError(f"bad settings: {'; '.join(sorted(mistyped))}")
    if new := sorted(set(strange) - _TOLD):
        _TOLD.update(new)
        log.warning("settings: %s: no setting has this name, so it does nothing", ", ".join(new))


_TOLD: set[str] = set()
"""Names that were told."""
