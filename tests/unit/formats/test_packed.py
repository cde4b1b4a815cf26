"""Payloads inside payloads: what is read, and what is refused."""

from __future__ import annotations

import base64
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.formats import packed


@pytest.mark.parametrize(
    ("given", "data"),
    [
        ("aGk=", b"hi"),
        ("aGk", b"hi"),
        ("aG\nk=\n", b"hi"),
        ("aGk=x", None),
        ("a", None),
        ("aé==", None),
        ("", None),
        (None, None),
        (["aGk="], None),
    ],
)
def test_base64(given: object, data: bytes | None) -> None:
    assert packed.from_base64(given) == data


def test_gzip_whole_cut_damaged_and_twice() -> None:
    zipped = gzip.compress(b"hello" * 100)
    assert packed.gunzip(zipped) == b"hello" * 100
    assert packed.gunzip(b"plain") == b"plain"
    assert packed.gunzip(zipped[:-9]) is None
    assert packed.gunzip(zipped[:12] + b"\0\0\0\0" + zipped[16:]) is None
    assert packed.gunzip(zipped + gzip.compress(b"more")) is None, "half of it would pass for all"


def test_gzip_has_a_bound() -> None:
    assert packed.gunzip(gzip.compress(b"\0" * 10_000_000)) is None
    many = "".join(f"{i}: log line number {i * 7919}\n" for i in range(20_000)).encode()
    assert packed.gunzip(gzip.compress(many)) == many


def test_gzip_has_a_bound_in_all() -> None:
    zipped = gzip.compress("".join(map(str, range(1_000))).encode())
    size = len(packed.gunzip(zipped) or b"")
    with packed.bounded(2 * size + 1):
        assert [packed.gunzip(zipped) is not None for _ in range(4)] == [True, True, False, False]
    assert packed.gunzip(zipped) is not None


def test_lines_and_documents() -> None:
    assert packed.read_lines('{"a":1}\n\n{"a":2}\n') == [{"a": 1}, {"a": 2}]
    assert packed.read_lines('{\n "a": 1\n}') == [{"a": 1}]
    assert packed.read_lines('{"a":1}\nnoise\n{"a":2}') == [{"a": 1}, {"a": 2}]
    assert packed.read_lines("") == []
    assert packed.read_object('{"a":1}') == {"a": 1}
    assert packed.read_object("[1]") == {}
    assert packed.read_json("[" * 5_000 + "]" * 5_000) is None


@given(st.binary(max_size=200))
def test_anything_in_base64_is_read_or_refused(data: bytes) -> None:
    assert packed.from_base64(base64.b64encode(data).decode()) == (data or None)
    packed.unpack(base64.b64encode(data).decode())
    packed.gunzip(b"\x1f\x8b" + data)
