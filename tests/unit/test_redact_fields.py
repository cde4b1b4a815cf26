"""Secrets in fields are told by their names: objects and lists of JSON, YAML, Kubernetes Secrets, tables in text."""

from __future__ import annotations

import json

import pytest

from hyve.redact import Redactor

MANIFEST = {
    "apiVersion": "v1",
    "data": {"user": "YWRtaW4=", "p": "cHcx"},
    "kind": "Secret",
    "metadata": {"name": "cart"},
    "stringData": {"note": "expired", "u": "admin"},
}
ITEM = {key: value for key, value in MANIFEST.items() if key != "kind"}
"""As a list has it: what kind its items are, it says itself."""
KEPT = ("YWRtaW4=", "cHcx", "expired", "admin")
YAML = """apiVersion: v1
data:
  user: YWRtaW4=
  p: cHcx
  file: |
    line1
    key: cHcx
kind: Secret
metadata:
  name: cart
stringData:
  note: expired
  u: "admin"
"""


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(MANIFEST),
        json.dumps(MANIFEST, indent=2),
        json.dumps({"items": [{"kind": "ConfigMap", "data": {"a": "shown"}}, MANIFEST]}),
        json.dumps({"metadata": {"annotations": {"last-applied-configuration": json.dumps(MANIFEST)}}, "kind": "Pod"}),
        json.dumps({"log": json.dumps({"last-applied-configuration": json.dumps(MANIFEST)})}),
        f"08:00 INFO applied {json.dumps(MANIFEST)}\n08:01 INFO other",
        YAML,
        json.dumps({"log": json.dumps({"manifest": YAML})}),
        "---\n".join(["kind: ConfigMap\ndata:\n  a: shown\n", YAML, YAML]),
        "items:\n- " + YAML.replace("\n", "\n  ").rstrip(" ") + "- kind: ConfigMap\n  data:\n    a: shown\n",
        json.dumps({"kind": "SecretList", "items": [ITEM, ITEM], "data": {"a": "shown"}}),
        json.dumps({"items": [ITEM], "kind": "SecretList", "metadata": {}}),
        json.dumps([{"items": [ITEM], "kind": "SecretList"}, {"items": [{"data": "shown"}], "kind": "ConfigMapList"}]),
        "items:\n- " + YAML.replace("kind: Secret\n", "").replace("\n", "\n  ").rstrip(" ") + "kind: SecretList\n",
        "kind: SecretList\nitems:\n  - " + YAML.replace("kind: Secret\n", "").replace("\n", "\n    ").rstrip(" "),
    ],
)  # fmt: skip
def test_all_data_of_a_kubernetes_secret_is_masked(text: str) -> None:
    redactor = Redactor()
    shown = redactor.mask(text)
    assert not [value for value in KEPT if value in shown]
    assert "line1" not in shown
    assert "cart" in shown
    assert ("shown" in text) == ("shown" in shown)
    assert redactor.unmask(shown) == text


def test_all_data_of_a_kubernetes_secret_is_masked_as_values() -> None:
    redactor = Redactor()
    others = {"kind": "ConfigMap", "data": {"a": "shown"}}
    listed = {"kind": "SecretList", "items": [{**ITEM, "other": "plain"}, "text"], "data": {"b": "shown too"}}
    shown = json.dumps(redactor.mask_value([{"items": [MANIFEST, others]}, listed]))
    assert not [value for value in KEPT if value in shown]
    assert "cart" in shown
    assert '"shown"' in shown
    for kept in ("shown too", "plain", "text"):
        assert f'"{kept}"' in shown


BLOCKS = """app: shop
passwords:
- hunter2a
- "hunter2b"  # old
credentials:
  user: bob
  type: basic
  note: |
    line hunter2c
    and hunter2d

  blob: >-
    hunter2e
  nested:
    deep: hunter2f
    list:
      - name: db
        content: hunter2g
auth:
  enabled: true
  basic: hunter2h
volumes:
  - secret:
      secretName: regcred
      defaultMode: 420
      items:
        - key: tls.crt
          path: my.crt
  - name: scratch
token: |
  hunter2i
imagePullSecrets:
  - name: puller
tokens:
  prompt: 120
after: shop
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["", "    "])
def test_what_stands_below_the_name_of_a_secret_in_yaml_is_masked(newline: str, indent: str) -> None:
    text = newline.join(indent + line if line else "" for line in BLOCKS.split("\n"))
    redactor = Redactor()
    shown = redactor.mask(text)
    assert "hunter" not in shown
    for kept in ("bob", "basic", "true", "regcred", "420", "tls.crt", "my.crt", "scratch", "puller", "120", "name: db"):
        assert kept in shown
    assert shown.count("shop") == 2
    assert redactor.unmask(shown) == text


@pytest.mark.parametrize(
    "text",
    [
        "ERROR invalid token:\n  at com.shop.Auth.check(Auth.java:10)\n  at com.shop.Main.run(Main.java:3)",
        "Exception: bad password:\n    raise ValueError(1)\nmore",
        "the secret:\n  - it rains\nand so on",
        "password:\nuser: bob",
        "password:\n\n  ",
        "credentials:\n  just words here\n  and there",
        "refreshing the token:\n  status: 401\n  error: clock skew of 4 s",
    ],
)
def test_what_stands_below_a_name_and_is_no_yaml_stays(text: str) -> None:
    assert Redactor().mask(text) == text


def test_columns_of_a_table_in_text_are_masked_by_their_head() -> None:
    text = 'user,password,api_token\nbob,pw1,tk1\n"a, b","p,""2",tk2\n\nbob,pw1,tk1\n'
    redactor = Redactor()
    shown = redactor.mask(text)
    assert shown.startswith('user,password,api_token\nbob,<password_1>,<token_2>\n"a, b","<password_3>",<token_4>\n')
    assert redactor.unmask(shown) == text


def test_a_number_ends_before_the_bracket() -> None:
    assert Redactor().mask('{"a": {"pin": 4711}}') == '{"a": {"pin": <password_1>}}'
    assert Redactor().mask("user;pin\nbob;12\n") == "user;pin\nbob;<password_1>\n"


def test_values_under_names_of_secrets_are_masked_and_what_names_them_stays() -> None:
    given_ = {
        "secrets": [{"name": "db", "value": "v1"}],
        "credentials": {"user": "bob", "value": "c1"},
        "auth": {"basic": "b1", "type": "x"},
        "args": ["--token", "t1", "--port", "80", "--db-password", "d1"],
        "command": ["mysql", "-uroot", "-ppw1"],
        "imagePullSecrets": [{"name": "reg"}],
        "valueFrom": {"secretKeyRef": {"name": "cart", "key": "token"}},
        "pwd": "/home/app",
        "password": "expired",
        "next_token": "n1",
    }
    redactor = Redactor()
    shown = json.dumps(redactor.mask_value(given_))
    assert not [value for value in ("v1", "c1", "b1", "t1", "d1", "pw1") if f'{value}"' in shown]
    kept = ("db", "bob", "x", "80", "reg", "cart", "token", "/home/app", "expired", "n1")
    assert [value for value in kept if f'"{value}"' in shown] == list(kept)
    assert redactor.unmask_value(redactor.mask_value(given_)) == given_


def test_fields_and_columns_are_known_by_their_names() -> None:
    redactor = Redactor()
    shown = redactor.mask_value(
        {"dbPassword": "short", "nested": {"api_key": ["k1", "k2"]}, "pin": {"password": 1234}, "user": "bob", "n": 5}
    )
    assert shown == {
        "dbPassword": "<password_1>",
        "nested": {"api_key": ["<key_2>", "<key_3>"]},
        "pin": {"password": "<password_4>"},
        "user": "bob",
        "n": 5,
    }
    cloud = [{"ParameterKey": "DBPassword", "ParameterValue": "v4"}, {"Name": "ApiKey", "Value": "v5"}]
    assert "v4" not in str(Redactor().mask_value(cloud))
    assert "v5" not in str(Redactor().mask_value(cloud))
    likely = {"STRIPE_KEY": "pk9f8s7d6f5g4h3j2k1l0", "CACHE_KEY": "ck1l0k9f8s7d6f5g4h3j2", "AUTH": "zzzauthval99"}
    assert Redactor().mask_value(likely) == {**likely, "STRIPE_KEY": "<key_1>", "AUTH": "<password_2>"}
    assert list(Redactor().mask_cells(["pk9f8s7d6f5g4h3j2k1l0", "none"], "STRIPE_KEY")) == ["<key_1>", "none"]
    docker = {"auths": {"reg": {"auth": "dXNlcjpwYXNz", "email": "a"}}}
    assert Redactor().mask_value(docker) == {"auths": {"reg": {"auth": "<password_1>", "email": "a"}}}
    pairs = [{"name": "DB_PASSWORD", "value": "p w"}, {"key": "auth.token", "value": {"stringValue": "t"}}]
    assert redactor.mask_value(pairs) == [
        {"name": "DB_PASSWORD", "value": "<password_5>"},
        {"key": "auth.token", "value": {"stringValue": "<token_6>"}},
    ]
    for name in ("password", "userPassword", "http.headers.authorization", "X-Api-Key", "sessionId"):
        assert redactor.label(name)
    for name in ("token_type", "max_tokens", "secretName", "key", "message", "passenger", "compass", "design", ""):
        assert not redactor.label(name)
