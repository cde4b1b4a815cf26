"""Secrets are masked before a model sees them, and come back: text, SQL, answers."""

from __future__ import annotations

import json
import re
import string
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hyve.masked import mask_column
from hyve.redact import Redactor
from hyve.secretforms import places

SECRET = "Zx9-qT7wLk2"

# What stands around a secret in real data, and what of it is masked.
TOLD = [
    "login failed user=bob password={} host=x",
    "password: {}",
    "PASSWORD => {}",
    '{{"user": "a", "password": "{}", "n": 1}}',
    "{{'user': 'a', 'passwd': '{}'}}",
    '{{"log": "{{\\"user\\": \\"a\\", \\"password\\": \\"{}\\"}}"}}',
    '{{"log": "{{\\"log\\": \\"{{\\\\\\"secret\\\\\\": \\\\\\"{}\\\\\\"}}\\"}}"}}',
    '{{"password": "{}',
    "DB_PASSWORD={}",
    "export API_KEY={}",
    "x-api-key: {}",
    '"client_secret":"{}"',
    "Authorization: Bearer {}",
    "authorization=Basic {}",
    '{{"authorization": "token {}"}}',
    "Cookie: a=b; session={}; c=d",
    '"set-cookie": "sid={}; HttpOnly"',
    "access_token={}&state=1",
    "GET /x?sig={} HTTP/1.1 token={}",
    "postgres://svc:{}@db.internal:5432/orders",
    "amqp://:{}@mq/v",
    "Server=db;User Id=sa;Password={};Encrypt=true",
    "DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=x",
    '{{"name": "DB_PASSWORD", "value": "{}"}}',
    '{{"key": "db.password", "value": {{"stringValue": "{}"}}}}',
    "mysql -u root --password {} -h x",
    "curl -u bob:{} http://x/",
    "<db><password>{}</password></db>",
    "env:\n- name: DB_PASSWORD\n  value: {}\n- name: PORT\n  value: '80'\n",
    '    - name: API_TOKEN\n      value: "{}"\n',
    '{{"value": "{}", "name": "DB_PASSWORD"}}',
    '{{"passwords": ["x1", "{}"], "n": 1}}',
    '{{"tokens": {{"a": "{}", "b": "y2"}}}}',
    '{{"secrets": [{{"name": "db", "value": "{}"}}]}}',
    '{{"credentials": {{"user": "bob", "value": "{}"}}}}',
    '{{"log": "{{\\"tokens\\": {{\\"a\\": \\"{}\\"}}}}"}}',
    "{{'api_key': ['{}']}}",
    '{{"credential": "{}"}}',
    '{{"bearer": "{}"}}',
    '{{"auth": {{"basic": "{}"}}}}',
    '{{"license_key": "{}"}}',
    '{{"secret_key_base": "{}"}}',
    '{{"otp": "{}", "ok": true}}',
    '{{"pin": "{}"}}',
    '{{"csrf": "{}"}}',
    "csrf_token={}",
    '["--token", "{}"]',
    '["serve", "--db-password","{}"]',
    "args:\n- --token\n- {}\n",
    "mysql -uroot -p{} shop",
    '["mysql", "-u", "root", "-p{}"]',
    "sshpass -p {} ssh host",
    "user,password,n\nbob,{},5\n",
    "users:\n- name: u\n  user:\n    client-key-data: {}\n",
    '{{"user": {{"client-key-data": "{}"}}}}',
    '{{"auths": {{"reg.example.org": {{"username": "u", "auth": "{}"}}}}}}',
    "auths:\n  reg.example.org:\n    auth: {}\n",
    "dial app:{}@tcp(db:3306)/shop?parseTime=true",
    '{{"dsn": "app:{}@unix(/run/mysqld.sock)/shop"}}',
    "url=jdbc:oracle:thin:scott/{}@//h:1521/x",
    "statement: ALTER USER app WITH PASSWORD '{}'",
    "CREATE USER 'a'@'%' IDENTIFIED BY '{}'",
    "CREATE USER a IDENTIFIED WITH mysql_native_password BY '{}';",
    "SET PASSWORD FOR a = PASSWORD('{}')",
    '{{"query": "CREATE ROLE a ENCRYPTED PASSWORD \'{}\' LOGIN"}}',
    "port 6379\nrequirepass {}\nmaxmemory 1gb\n",
    "masterauth {}",
    "redis:\n  requirepass: {}\n",
    '["redis-server", "--requirepass", "{}"]',
    "GET /k?X-Amz-Date=20260101&X-Amz-Signature={}&X-Amz-Expires=60",
    '<add key="ApiKey" value="{}"/>',
    '{{"xml": "<add key=\\"ApiKey\\" value=\\"{}\\"/>"}}',
    '{{"ParameterKey": "DBPassword", "ParameterValue": "{}"}}',
    "machine h login bob password {}\n",
    "machine h\n  login bob\n  password {}\n",
    "bindpw={}",
    "bindpw {}\n",
    "sqlcmd -S h -U sa -P {} -Q x",
    "docker login -u u -p {} reg.example.org",
    'Proxy-Authorization: Digest username="u", nonce="n1", response="{}"',
    "https://hooks.slack.com/services/T0/{}",
]
# What stands around what looks like a secret, too.
LIKELY = [
    "STRIPE_KEY={}Ab34Cd56Ef78",
    '{{"name": "OPENAI_KEY", "value": "{}Ab34Cd56Ef78"}}',
    '{{"env": {{"MAPS_KEY": "{}Ab34Cd56Ef78"}}}}',
    "- name: MAPS_KEY\n  value: {}Ab34Cd56Ef78\n",
    "AUTH={} PORT=80",
    '{{"name": "AUTH", "value": "{}"}}',
    "1700000000.1 [0 10.0.0.1:5] AUTH {}",
    '[0 10.0.0.1:5] "AUTH" "default" "{}"',
    "bind as cn=admin,dc=x with password {}",
]
FORMS = [
    "AKIAIOSFODNN7EXAMPLQ",
    "AIzaSyA-1234567890abcdefghijklmnopqrstuv",
    "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijklmnop",
    "glpat-abcdefghij1234567890",
    "xoxb-123456789012-abcdefghijkl",
    "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "hvs.abcdefghijklmnopqrstuvwx",
    "sk_live_abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "gsk_abcdefghijklmnopqrstuvwxyz0123456789",
    "whsec_abcdefghijklmnopqrstuvwxyz012345",
    "lin_api_abcdefghijklmnopqrstuvwxyz0123456789abcd",
    "sq0csp-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
    "nvapi-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
    "123456789:AAE-abcdefghijklmnopqrstuvwxyz012345",
    "https://abcdef0123456789abcdef0123456789@o1.ingest.example.org/5",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nab+/c==\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEA\\n-----END OPENSSH PRIVATE KEY-----",
]
HARMLESS = [
    "total tokens: 512, token=5, max_tokens=100",
    "password is wrong; basic authentication failed; bearer of bad news",
    '{"secretName": "db-creds", "tokenizer": "o200k", "password": null, "passed": true, "api_key_id": "k1"}',
    "key=orders keyspace=shop trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
    "http://shop.example:8080/a?b=c user@host",
    "password=*** secret=<redacted> token=${TOKEN} pwd=[FILTERED]",
    "commit 6f8a992c4e5d at 10.0.0.1, mail bob@example.org",
    '{"credentials": {"user": "bob"}, "cookies": [1], "cookie": [{"n": 1}], "session_id": 5}',
    "compass=n passenger=3 bypass: on",
    "failed to fetch token: connection refused",
    "password: must not be empty",
    "token=expired user=joe",
    '{"error": "Secret: not found"}',
    '{"error": "api_key: expired", "msg": "token: timeout after 30s", "m": "cookie: too large (8192 bytes)"}',
    "token: can't be parsed, Password: Must be longer, token: rpc error: code = Unavailable",
    '{"password": "", "token": "expired", "secret": "invalid", "api_key": "not found"}',
    "user,password\nbob,\nann,expired\njoe,null\n",
    '{"secretKeyRef": {"name": "cart-secrets", "key": "token"}, "secretName": "a"}',
    '{"imagePullSecrets": [{"name": "reg"}]}',
    "secretKeyRef:\n  name: cart-secrets\n  key: password\nimagePullSecrets:\n- name: reg-cred1\n",
    "      CART_TOKEN:  <set to the key 'token' in secret 'cart-secrets'>  Optional: false",
    '{"pwd": "/home/app"}',
    "PWD=/home/app2 OLDPWD=/srv/x1",
    '{"next_token": "abc1", "page_token": "p2", "nextPageToken": "CAE9"}',
    '{"continuation_token": "c3", "lock_token": "l4"}',
    "next_token=abc1 lock_token: l-4",
    '{"credentials": "same-origin", "auth": ["ns1.example.org"]}',
    '{"pins": 4, "mapping": "p1", "shipping": "x9", "author": {"basic": "b1"}}',
    '{"kind": "ConfigMap", "data": {"a": "b1"}}',
    "CACHE_KEY=a1b2c3d4e5f6a7b8c9d0 PARTITION_KEY=a1b2c3d4e5f6a7b8c9d0 ROUTING_KEY=q1w2e3r4t5y6u7i8o9p0",
    '{"primary_key": "a1b2c3d4e5f6a7b8c9d0", "sort_key": "q1w2e3r4t5y6u7i8o9p0", "s3_key": "q1w2e3r4t5y6u7i8o9p0"}',
    '{"IDEMPOTENCY_KEY": "a1b2c3d4e5f6a7b8c9d0", "PUBLIC_KEY": "q1w2e3r4t5y6u7i8o9p0", "AWS_KEY_ID": "q1w2e3r4t5y6u"}',
    "ISSUE_KEY=SHOP-1234 SSH_KEY=/etc/ssh/id_ed25519_2026abcdef TENANT_KEY=orders-eu-west-1-prod MENU_KEY=enter",
    '{"OBJECT_KEY": "logs/2026/03/01/a1b2c3d4e5f6a7b8.json", "foreign_key": "fk_orders_2026_customers_01"}',
    "AUTH=ldap AUTH=oauth2-proxy AUTH=SCRAM-SHA-256 auth=zzzauthval99 BASIC_AUTH=enabled",
    "250-AUTH PLAIN LOGIN CRAM-MD5\nERROR AUTH failed for user1\nAUTH svc-2 timed out\nAUTH ok",
    "requirepass is set; the requirepass directive is missing, masterauth not set",
    "connect with password file, with password authentication, with password: must be set",
    "GET /a?X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host",
    'response="200 OK" digest="sha256:a1b2c3" GET /d\nresponse="a1b2c3d4"',
    "PASSWORD FUNCTION IDENTIFIED BY name; password (optional)",
    "login bob failed, login page password reset",
    '<add key="CacheKey" value="abc1"/> <add key="Timeout" value="30"/>',
    '{"ParameterKey": "InstanceType", "ParameterValue": "m5.large1"}',
    "a@tcp(db:3306)/x, tcp(10.0.0.1:3306), at 10:20:30@tcp",
    "aa:bb:cc:aa:bb:cc 12345678:aab docker login -u u --password-stdin; sqlcmd -S h -U sa",
    "https://registry.example.org/v2/a@sha256:abcdef0123456789abcdef0123456789",
    '{"volumes": [{"name": "v", "secret": {"secretName": "db", "items": [{"key": "a", "path": "b"}]}}]}',
]


@pytest.mark.parametrize("text", [*TOLD, *LIKELY])
def test_a_secret_that_is_told_by_what_stands_at_it_is_masked(text: str) -> None:
    redactor = Redactor()
    given_ = text.replace("{{", "{").replace("}}", "}").replace("{}", SECRET)
    shown = redactor.mask(given_)
    assert SECRET not in shown
    assert redactor.unmask(shown) == given_


@pytest.mark.parametrize("secret", FORMS)
def test_a_secret_of_a_known_form_is_masked_wherever_it_stands(secret: str) -> None:
    for text in (secret, f"pushed with {secret}, then failed", json.dumps({"note": f"x {secret}"}), f"({secret})"):
        redactor = Redactor()
        shown = redactor.mask(text)
        body = max(re.findall(r"[\w+/=-]+", secret), key=len)
        assert body not in shown
        assert redactor.unmask(shown) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().mask(text) == text


@pytest.mark.parametrize(
    "text", ["password=hunter2", "password: S3cr3t!", "password=correcthorse", "password: correcthorse", "pin=4711"]
)
def test_a_value_in_free_text_is_told_from_prose(text: str) -> None:
    assert re.fullmatch(r"(password|pin)(=|: )<password_1>", Redactor().mask(text))


def test_a_secret_has_one_placeholder_and_is_masked_without_its_name() -> None:
    redactor = Redactor()
    shown = redactor.mask_all([f"retry with {SECRET}", f"password={SECRET}", "password=other-1 secret=other-1"])
    assert shown == ["retry with <password_1>", "password=<password_1>", "password=<password_2> secret=<password_2>"]


def test_pieces_of_a_secret_that_templates_of_lines_take_apart_are_masked() -> None:
    redactor = Redactor()
    redactor.mask("password=Zx9abcd-horse!battery77")
    assert "Zx9abcd" not in redactor.mask("variables: [Zx9abcd, battery77]")


def test_what_stands_beside_a_secret_in_a_longer_value_is_shown_elsewhere() -> None:
    redactor = Redactor()
    redactor.mask("Set-Cookie: auth=setc00kie1; Path=/cart-v2; Domain=shop1.example.org; Max-Age=86400000; Secure")
    apart = "GET /cart-v2 at shop1.example.org took 86400000"
    assert redactor.mask(apart) == apart
    assert "setc00kie1" not in redactor.mask("variables: [setc00kie1]")
    text = "Server=db-prod-01;User Id=sa7admin;Password=connpw5;Encrypt=true"
    shown = redactor.mask_value(text, "db.connection_string")
    assert re.fullmatch(r"Server=db-prod-01;User Id=sa7admin;Password=<password_\d+>;Encrypt=true", shown)
    redactor.learn("password", text, "db.connection_string")
    assert redactor.mask("db-prod-01 of sa7admin is down") == "db-prod-01 of sa7admin is down"
    assert redactor.mask(text) == shown
    assert redactor.mask_value("c29tZSBvcGFxdWU9", "connection_string").startswith("<password_")


def test_lone_surrogates_of_json_stand_in_secrets_and_beside_them() -> None:
    """JSON may escape half of a pair, as whoever cuts a text in an emoji does."""
    redactor = Redactor()
    assert redactor.mask("\ud83e password=ab\ud83e-9x1") == "\ud83e password=<password_1>"
    assert redactor.mask("\udc00 ab\ud83e-9x1 ab\U0010f83e-9x1") == "\udc00 <password_1> ab\U0010f83e-9x1"
    assert redactor.unmask("<password_1>") == "ab\ud83e-9x1"


def test_a_plain_word_is_masked_where_it_is_told_only() -> None:
    redactor = Redactor()
    assert redactor.mask("password=admin and admin") == "password=<password_1> and admin"


def test_text_that_looks_like_a_placeholder_comes_back_as_it_was() -> None:
    redactor = Redactor()
    text = f"<password_1> <PASSWORD_2> password={SECRET} ://<email_1>:pw-9@h <literal_1>"
    shown = redactor.mask(text)
    assert redactor.unmask(shown) == text
    assert "<literal_" in shown


_near = st.one_of(
    st.sampled_from(
        [*FORMS, "<password_1>", "<literal_2>", "<", "_1>", "<key_", "password", "=", ":", '"', "\\", "'", "\n"]
    ),
    st.sampled_from(
        ["://", "a:b@c", "a@b.org", "10.1.2.3", "::1", "token", "bearer ", "secret", "İ", "ß", "Kelvin K", " "]
    ),
    st.sampled_from(
        ['"tokens": {', '"kind":"Secret",', '"data":{"a":"b"', "kind: Secret\n", "data:\n  ", "}", "]", ","]
    ),
    st.sampled_from(["a,token\n", "--token ", '\\"', '\\\\\\"', "value: ", "x: y\n", "mysql -pa", '"auth":{"basic":"']),
    st.text(max_size=6),
    st.text(st.characters(categories=["Cs", "Ll"]), max_size=3),
    st.sampled_from(TOLD).map(lambda text: text.replace("{}", SECRET)),
)


@given(st.lists(_near, max_size=8).map("".join), st.sets(st.sampled_from(["secrets", "emails", "ips"])))
@example("password=password_1x9 <password_1>", {"secrets"})
@example("<email_a@b.org_1>", {"secrets", "emails"})
def test_what_is_masked_comes_back(text: str, kinds: set[str]) -> None:
    """unmask(mask(x)) == x, for any text, also one that holds placeholders."""
    redactor = Redactor(kinds)
    first = redactor.mask(text)
    assert redactor.unmask(first) == text
    assert redactor.unmask(redactor.mask(text)) == text  # and once more, when its secrets are known


@given(st.lists(_near, min_size=9, max_size=14), st.sampled_from([("secrets",), ("secrets", "ips")]))
@example(["password=hunter2!"] + ["x hunter2! y", "hunter2!", "İ", "K"] * 3, ("secrets",))
def test_many_texts_are_masked_as_each_alone(texts: list[str], kinds: tuple[str, ...]) -> None:
    together, alone = Redactor(kinds), Redactor(kinds)
    together.mask_all(texts)
    for text in texts:
        alone.mask(text)
    assert together.mask_all(texts) == [alone.mask(text) for text in texts]


_ATTRIBUTES = [
    *['"key"', '"value"', '"stringValue"', 'Value"', '"api_key"', '"Key"', '": "', '":"', '": {', '":{', '", "', '"x"'],
    *[":", " ", "[", "}", ",", "\n", "\\", "a1B2c3D4e5F6g7H8", "password", "key", "value", "é", "-"],
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_ATTRIBUTES), max_size=12).map("".join))
@example('{"value": "x", "key": "password"}')
@example('"api_key": {"key": "a", "value": {"stringValue": "x"}}')
def test_nothing_that_tells_a_secret_is_passed_over_in_attributes_of_otlp(text: str) -> None:
    """What is common in OTLP is not asked about; in a text without its values all is."""

    def told(whole: str) -> list[tuple[int, str]]:
        return [(at, pattern.pattern) for at, _, pattern in places(whole) if pattern.match(text, at)]

    plain = text.replace("stringValue", "StringValue")
    assert [it for it in told(f"{plain} stringValue") if it[0] < len(text)] == told(plain)


_secret = st.text(string.ascii_letters + string.digits + "-_.~!$*^%", min_size=8, max_size=40).filter(
    lambda text: any(c.isdigit() for c in text) and any(c.isalpha() for c in text) and re.fullmatch(r"\w.*\w", text)
)


@settings(max_examples=400)
@given(_secret, st.sampled_from(TOLD[:-1]), st.sampled_from(HARMLESS))
def test_no_secret_is_left_in_the_text(secret: str, text: str, around: str) -> None:
    redactor = Redactor()
    told = text.replace("{{", "{").replace("}}", "}").replace("{}", secret)
    assert secret not in redactor.mask(f"{around}\n{told}\nagain {secret}\n{around}").replace(around, "")


_values = st.recursive(
    st.none() | st.integers() | st.booleans() | _near,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "password", "key", "value", "api_key", "<token_1>"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def spelled(value: Any, name: str = "") -> Any:
    """The value with numbers under a password's name as text: a placeholder is one."""
    if isinstance(value, dict):
        return {key: spelled(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [spelled(inner, name) for inner in value]
    return str(value) if type(value) is int else value


@given(_values)
def test_values_come_back(value: Any) -> None:
    redactor = Redactor(["secrets", "emails"])
    assert spelled(redactor.unmask_value(redactor.mask_value(value))) == spelled(value)


_told = st.builds(
    lambda told, secret: told.replace("{{", "{").replace("}}", "}").replace("{}", secret),
    st.sampled_from(TOLD),
    st.sampled_from([SECRET, "hunter2-long", "<key_1>"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_values | _told | st.sampled_from(HARMLESS), min_size=9, max_size=24))
def test_many_texts_of_a_value_are_masked_as_few_are(values: list[Any]) -> None:
    """H32: that the texts of a value which tell of no secret are found together, beforehand, changes nothing."""
    together, alone = Redactor(), Redactor()
    assert together.mask_value(values) == [alone.mask_value(value) for value in values]
    assert together.found == alone.found


def test_columns_are_masked_as_values_are() -> None:
    redactor = Redactor()
    column = pa.array(["hello", None, f"password={SECRET}", "hello"])
    masked = mask_column(redactor, "message", column)
    assert masked is not None
    assert masked.to_pylist() == ["hello", None, "password=<password_1>", "hello"]
    assert mask_column(redactor, "message", pa.array(["a", "b"])) is None
    secret = mask_column(redactor, "db_password", pa.array(["a1", None, "a1", "b2", ""]))
    assert secret is not None
    assert secret.to_pylist()[1:] == [None, secret[0].as_py(), secret[3].as_py(), ""]
    assert "a1" not in secret.to_pylist()
    numbers = mask_column(redactor, "password", pa.array([1234, None]))
    assert numbers is not None
    assert numbers.to_pylist() == [None, None]
    assert mask_column(redactor, "message", pa.array([1, 2])) is None


def test_cells_of_a_column_are_masked_together() -> None:
    cells = ["retry with pw-12345", None, 7, "password=pw-12345", {"password": "x1y2"}, "retry with pw-12345", 7]
    redactor = Redactor()
    shown = list(redactor.mask_cells(cells, "note"))
    first = "retry with <password_1>"
    assert shown == [first, None, 7, "password=<password_1>", {"password": "<password_2>"}, first, 7]
    assert list(redactor.mask_cells([1, True, None], "note")) == [1, True, None]
    assert list(redactor.mask_cells([4711, "expired"], "password")) == ["<password_3>", "expired"]


@given(st.lists(_values, max_size=9), st.sampled_from(["", "password", "note", "auth", "tokens"]))
@settings(max_examples=60, deadline=None)
def test_cells_come_back(cells: list[Any], name: str) -> None:
    redactor = Redactor()
    shown = list(redactor.mask_cells(cells, name))
    assert len(shown) == len(cells)
    assert spelled(redactor.unmask_value(shown), name) == spelled(cells, name)


@pytest.mark.parametrize(
    ("secret", "statement", "runs"),
    [
        ("hunter2!", "SELECT * FROM t WHERE p = '{}'", "SELECT * FROM t WHERE p = 'hunter2!'"),
        ("it's-9", "SELECT 1 FROM t WHERE p = '{}'", "SELECT 1 FROM t WHERE p = 'it''s-9'"),
        ("a\"b-9", 'SELECT "{}" FROM t', 'SELECT "a""b-9" FROM t'),
        ("h-2", "SELECT 1 WHERE p = {} AND q LIKE '%{}%'", "SELECT 1 WHERE p = 'h-2' AND q LIKE '%h-2%'"),
        ("x'); DROP", "SELECT '{}'", "SELECT 'x''); DROP'"),
    ],
)  # fmt: skip
def test_the_sql_of_a_model_is_unmasked_within_its_quotes(secret: str, statement: str, runs: str) -> None:
    redactor = Redactor()
    placeholder = redactor.mask_value(secret, "password")
    assert redactor.unmask_sql(statement.replace("{}", placeholder)) == runs
    assert redactor.unmask_sql("SELECT 1 WHERE a < b AND '<password_77>' > ''") == (
        "SELECT 1 WHERE a < b AND '<password_77>' > ''"
    )


def test_kinds_that_stay_masked_in_answers() -> None:
    @dataclass(frozen=True)
    class Answer:
        text: str
        claims: tuple[str, ...]
        share: float

    redactor = Redactor(["secrets", "emails"], keep=["password"])
    shown = redactor.mask("password=hunter2! of bob@example.org")
    assert shown == "password=<password_1> of <email_3>"
    answer = Answer(f"seen: {shown}", (shown,), 0.5)
    assert redactor.unmask_value(answer, keep=True) == Answer(
        "seen: password=<password_1> of bob@example.org", ("password=<password_1> of bob@example.org",), 0.5
    )
    assert redactor.unmask(shown) == "password=hunter2! of bob@example.org"


def test_case_and_unknown_placeholders() -> None:
    redactor = Redactor()
    redactor.mask("password=hunter2!")
    assert redactor.unmask("<PASSWORD_1> <password_9> <b> <key_1>") == "hunter2! <password_9> <b> <key_1>"
