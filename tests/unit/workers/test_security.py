"""The settings of TLS and SASL as the clients take them; the integration suite has a broker that asks for them."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi
import pytest

from hyve.errors import HyveError
from workers.security import client_options, tls
from workers.settings import load


def test_without_settings_connections_are_plain() -> None:
    assert client_options(load()) == {"security_protocol": "PLAINTEXT"}


def test_tls_checks_the_brokers_certificate_and_name() -> None:
    context = client_options(load(security_protocol="SSL"))["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_user_without_tls() -> None:
    options = client_options(
        load(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_username="u", sasl_password="p")
    )
    assert options == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }


def test_files_that_can_not_be_used_are_one_line(tmp_path: Path) -> None:
    odd = tmp_path / "odd.pem"
    odd.write_text("no PEM")
    for files, said in (
        ({"ssl_cafile": str(tmp_path / "none")}, "HYVE_SSL_CAFILE: .*none can't be used: No such file or directory"),
        ({"ssl_cafile": str(odd)}, "HYVE_SSL_CAFILE: .*odd.pem can't be used: it holds no usable PEM"),
        ({"ssl_certfile": str(odd)}, "HYVE_SSL_CERTFILE or HYVE_SSL_KEYFILE: .*odd.pem can't be used: it holds no"),
        ({"ssl_cafile": certifi.where(), "ssl_certfile": "/none"}, "HYVE_SSL_CERTFILE or .*No such file"),
    ):
        with pytest.raises(HyveError, match=said):
            tls(load(security_protocol="SSL", **files))
