"""What encoding bytes are in, with and without a mark (H5)."""

from __future__ import annotations

import gzip
import random
import struct

import pytest

from hyve.document import parse
from hyve.errors import InputError
from tests.unit.documents import values

TEXTS = [
    '{"a": 1}\n',
    '{"a": "привет мир"}\n' * 3,
    '{"a": "' + "漢字" * 50 + '"}\n',
    '{"a": "αβγ", "b": "Ελλάδα"}\n',
    '{"a": "ошибка", "b": "\U0001f600"}\n',
]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("text", TEXTS)
def test_any_script_in_any_encoding(text: str, mark: str, encoding: str) -> None:
    document = parse((mark + text).encode(encoding))
    assert document.text == text
    assert [part.value for part in document.parts] == values(text)
    assert (encoding[:6].replace("-", "") in document.flags) == (encoding != "utf-8")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_bytes_of_a_character_that_was_cut_are_kept_and_flagged(encoding: str) -> None:
    source = (TEXTS[1] + "x").encode(encoding)
    document = parse(source[:-1])
    assert document.text.startswith(TEXTS[1])
    assert {"lone_surrogate", "concatenated"} <= set(document.flags)
    cut = document.text[len(TEXTS[1]) :]
    assert bytes(ord(char) - 0xDC00 for char in cut) == "x".encode(encoding)[len("".encode(encoding)) :][:-1]


@pytest.mark.parametrize(
    "text", ['{"a":1}\0{"a":2}\0', '{"a":1}\n' + "\0" * 5 + '{"a":2}\n', '{"a":1}\n{"a":2}\n' + "\0" * 999]
)
def test_zero_bytes_of_utf_8_are_none_of_utf_16(text: str) -> None:
    document = parse(text.encode())
    assert document.text == text
    assert [part.value for part in document.parts] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "source",
    [
        random.Random(7).randbytes(5_000),
        struct.pack("<500d", *(i * 1.5 for i in range(500))),
        struct.pack("<500i", *range(500)),
        struct.pack(">500h", *range(500)),
        gzip.compress(random.Random(8).randbytes(3_000)),
        bytes(range(256)) * 10,
    ],
)
def test_binary_data_is_refused(source: bytes) -> None:
    with pytest.raises(InputError):
        parse(source)


def test_other_kinds_of_bytes() -> None:
    for kind in (bytearray, memoryview):
        assert parse(kind(b'{"a": 1}')).parts[0].value == {"a": 1}
