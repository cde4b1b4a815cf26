"""Records that a log shipper cut, anywhere in a text, and texts that are cut at their head (H7, H8)."""

from __future__ import annotations

import json

import pytest

import hyve
from hyve.strictjson import LONG

RECORDS = [{"level": "error", "id": i, "ctx": {"pod": f"web-{i}"}, "msg": "a text that was cut by"} for i in range(6)]
LINES = [json.dumps(record) for record in RECORDS]


def _read(text: str) -> list[tuple[object, tuple[str, ...], str]]:
    return [(part.value, part.flags, part.partial_tail) for part in hyve.parse(text).parts]


CUT = ("truncated", "partial_tail")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "2026-01-30 11:45:00 INFO started\n"])
@pytest.mark.parametrize("behind", ["", "a line of text\n", "a line of text\n" + LINES[5] + "\n", LINES[5] + "\n"])
def test_records_that_are_cut_in_the_middle_of_a_text(before: str, behind: str, newline: str) -> None:
    """Each keeps its whole fields, and its last token is told; what stands around is not touched."""
    cut = [line[:-8] for line in LINES[:5]]
    text = (before + "\n".join(cut) + "\n" + behind).replace("\n", newline)
    kept = [({**record, "ctx": record["ctx"]}, record.pop("msg")) for record in map(dict, RECORDS[:5])]
    found = _read(text)
    expected = [
        ({key: value for key, value in record.items() if key != "msg"}, CUT, "a text that was") for record, _ in kept
    ]
    assert [(value, flags, tail.strip()) for value, flags, tail in found[:5]] == expected
    assert [value for value, *_ in found[5:]] == ([RECORDS[5]] if LINES[5] in behind else [])
    document = hyve.parse(text)
    assert [line for _, line in document.lines] == [
        *before.split("\n")[:1],
        *["a line of text"][: "a line of" in behind],
    ][not before :]
    with hyve.Datastore.from_document(document) as store:
        count = store.query("SELECT count(*), count(DISTINCT id) FROM records WHERE level = 'error'").rows
        assert count == ((5 + (LINES[5] in behind),) * 2,)
        assert [store.reconstruct(i) for i in range(5)] == [value for value, *_ in expected]


@pytest.mark.parametrize("length", [20, 32, 38, 44, 52, 60])
def test_a_record_may_be_cut_anywhere(length: int) -> None:
    """Whatever is whole is the beginning of the record."""
    for number, (value, flags, tail) in enumerate(_read("".join(line[:length] + "\n" for line in LINES))):
        assert isinstance(value, dict)
        record = json.loads(LINES[number])
        assert list(value) == list(record)[: len(value)]
        assert all(record[key] == value[key] for key in value if key != "ctx")
        assert "truncated" in flags
        assert LINES[number][:length].rstrip().endswith(tail)


def test_cut_records_of_a_long_text_are_read_again_from_it() -> None:
    lines = [LINES[i % 6][: 60 + i % 9] for i in range(LONG // 60)]
    document = hyve.parse("\n".join(lines) + "\n")
    assert len(document.parts) == len(lines)
    assert sum(isinstance(part.held, dict) for part in document.parts[:90]) <= 30  # those that end with a blank
    assert [part.value["id"] for part in document.parts[:12]] == [0, 1, 2, 3, 4, 5] * 2


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [\n{"a": 1},\n{"a": 2}]}\n',  # a list's rows are no records of their own
        '{"level": "x", "id": {1 2}\n{"level": "x", "id": 3}\n',  # damaged before its end
    ],
)
def test_what_is_no_cut_record(text: str) -> None:
    assert not any("truncated" in flags for _, flags, _ in _read(text))


@pytest.mark.parametrize(
    "head",
    ['":1,"b":"xx"}\n', '1,"b":{"x":[1]}}\n', '  "b": "x",\n  "c": 1\n},\n', '"level":"info"}\r\n'],
)
def test_a_text_that_is_cut_at_its_head_is_flagged(head: str) -> None:
    """What stands there is no document, and stays text."""
    document = hyve.parse(head + '{"a": 1, "b": "y"}\n{"a": 2, "b": "z"}\n')
    assert "unparsed" in document.flags
    assert [part.value for part in document.parts if part.syntax == "json"][-2:] == [
        {"a": 1, "b": "y"},
        {"a": 2, "b": "z"},
    ]
    assert document.lines[0][1] in head


@pytest.mark.parametrize("head", ["see:\n", 'he said "so"\n', "[1] ok}\n", 'a "b": see {"c": 1}\n', '"a": 1\n\n'])
def test_what_is_no_cut_head(head: str) -> None:
    assert "unparsed" not in hyve.parse(head + '{"a": 1, "b": "y"}\n{"a": 2, "b": "z"}\n').flags


@pytest.mark.parametrize("text", ['{"a":12 34,"b":1}', '{"longkey":12\n34,"b":[1,2,\n3]}', '{"a":true false,"b":1}'])
def test_no_key_is_made_of_a_value_and_a_key(text: str) -> None:
    assert _read(text) == []
    assert "unparsed" in hyve.parse(text).flags
