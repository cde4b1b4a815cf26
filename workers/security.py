"""How clients prove to Kafka who they are, and know that it is Kafka: the settings as each client takes them.

Both take the standard library's TLS context. Whatever can't be used is a `HyveError` that names the variable; the
password stands in none.
"""

from __future__ import annotations

import ssl
from typing import Any

import certifi

from hyve.errors import HyveError
from workers.settings import Settings


def tls(settings: Settings) -> ssl.SSLContext | None:
    """The context of connections with TLS, which checks the broker's certificate and name; None without TLS."""
    if not settings.security_protocol.endswith("SSL"):
        return None
    variable, path = "HYVE_SSL_CAFILE", settings.ssl_cafile
    try:
        context = ssl.create_default_context(cafile=path or certifi.where())
        if settings.ssl_certfile:
            variable, path = "HYVE_SSL_CERTFILE or HYVE_SSL_KEYFILE", settings.ssl_certfile
            # Without a password of its own OpenSSL asks for one on the terminal.
            context.load_cert_chain(path, settings.ssl_keyfile or None, password="")
    except OSError as error:  # the errors of TLS are some, too
        why = error.strerror if not isinstance(error, ssl.SSLError) and error.strerror else "it holds no usable PEM"
        raise HyveError(f"{variable}: {path} can't be used: {why}") from None
    return context


def client_options(settings: Settings) -> dict[str, Any]:
    """What kafka-python's clients take."""
    options: dict[str, Any] = {"security_protocol": settings.security_protocol}
    if (context := tls(settings)) is not None:
        options["ssl_context"] = context
    if settings.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.sasl_username
        options["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    return options
