"""E-mail and IP addresses are masked by setting, whole, and come back."""

from __future__ import annotations

import pytest

from hyve.errors import InputError
from hyve.redact import Redactor


def test_emails_and_addresses_are_masked_by_setting() -> None:
    text = "bob@example.org from 10.0.0.1 and 2001:db8::1, version 1.2.3.4.5, at 10:20:30, bob@example.org"
    assert Redactor().mask(text) == text
    redactor = Redactor(["emails", "ips"])
    assert redactor.mask(text) == "<email_1> from <ip_2> and <ip_3>, version 1.2.3.4.5, at 10:20:30, <email_1>"
    with pytest.raises(InputError, match="'names' can't be masked: there are secrets, emails, ips"):
        Redactor(["names"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("client ::ffff:172.17.0.1 - GET /", "client <ip_1> - GET /"),
        ("/0:0:0:0:0:ffff:10.1.2.3:5432 closed", "/<ip_1>:5432 closed"),
        ("[::FFFF:10.1.2.3]:443 and ::10.1.2.3.", "[<ip_1>]:443 and <ip_2>."),
        ("64:ff9b::192.0.2.33/96", "<ip_1>/96"),
        ("at 12:30:10.1.2.3, at 12:30:10.123", "at 12:30:<ip_1>, at 12:30:10.123"),
        ("fe80::1%eth0 and 2001:db8::7.", "<ip_1>%eth0 and <ip_2>."),
        ("::ffff:10.999.1.1", "::ffff:10.999.1.1"),
    ],
)
def test_an_address_is_masked_whole(text: str, masked: str) -> None:
    """Servers on both protocols log each client's IPv4 address as one of IPv6."""
    redactor = Redactor(["ips"])
    assert redactor.mask(text) == masked
    assert redactor.unmask(masked) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET /x?e=ann%40example.com&y=1", "GET /x?e=<email_1>&y=1"),
        ("r=%3Fe%3Dann%2540example.com%26", "r=%<email_1>%26"),
        ("bob&#64;example.com, bob&commat;example.com", "<email_1>, <email_2>"),
        (r"ann\u0040example.com", "<email_1>"),
        ("jürgen@exämple.de ann@xn--exmple-cua.xn--p1ai 用户@例子.公司", "<email_1> <email_2> <email_3>"),
        ('"quoted user"@example.com "x"', '<email_1> "x"'),
        ("ssh bob@10.1.2.3: no, bob@[10.1.2.3] or bob@[IPv6:::1]", "ssh <email_1>: no, <email_2> or <email_3>"),
        ('"a bob@x.de"@example.com', '"a <email_1>"@example.com'),
        ("o'brien@example.com user='ann@example.com'", "<email_1> user='<email_2>'"),
        ("login #@corp.example", "login <email_1>"),
        ("@decorator x@y pkg@1.2.3 a@b.c it's 40%40", "@decorator x@y pkg@1.2.3 a@b.c it's 40%40"),
    ],
)
def test_an_email_address_is_masked_however_it_is_written(text: str, masked: str) -> None:
    """In URLs, HTML and JSON, with names of other languages, quoted, at an address, and where a log's template has a
    variable in place of the user."""
    redactor = Redactor(["emails"])
    assert redactor.mask(text) == masked
    assert redactor.unmask(masked) == text
