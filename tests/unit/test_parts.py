"""The parts of a long text are read from it each time, and come out as if they were held (H5-H8, H21; invariant 1)."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyve
from hyve import again, strictjson
from hyve.parts import ManyParts
from tests.fuzz.target import same
from tests.unit.documents import fetched
from tests.unit.in_runs import gathered, in_runs, stored

KINDS = (
    '{{"a": {0}, "b": [1, {{"c": "x"}}]}}',
    '{{"a": {0}, "a": 1.50}}',
    '{{"n": 12345678901234567890123.5, "s": "\\ud800 {0}"}},',
    "{{'a': {0}, 'b': None}}",
    "{{'a': ({0}, 'x'), 'when': datetime.date(2026, 1, 31)}}",
    "{{'it\\'s': \"{0}\", 2: nan}},",
    "{{a: {0}, b: word}}",
    "{{a: {0}, b: [1, 2,],}}",
    '{{"a": "say "hi" {0}", "b": 1}}',
    '{{"a":{0}}} {{"b":[{0}]}}',
    '2026-01-31T12:00:00Z INFO got {{"id": {0}, "ok": true}}',
    '\x1b[32m{{"a": {0}}}\x1b[0m',
    '\x1b[32m{{"a": {0}, "b": ["c", "d"]}},\x1b[0m',
    "\x1b[32m{{'a': {0}, 'b': ['c', None]}},\x1b[0m",
    "\x1b[32m{{a: {0}}}, \x1b[0m",
    '{{"a": \x1b[32m{0}\x1b[0m}}',
    '{{\\"a\\": {0}}}',
    '"{{\\"a\\": {0}}}"',
    '[{0}, 2.5, "x"]',
    '[{{"a": {0}}}, {{"a": 2}}]',
    "[]",
    "({0}, 'x')",
    '{{\n "a": {0},\n "b": "\t"\n}}',
    "a,b\n1,2\n3,4\n5,{0}\n",
    "plain words {0}",
    "",
    "{0}",
)


def told(text: str) -> Any:
    document = hyve.parse(text)
    parts = [
        (part.value, part.span, part.syntax, part.flags, part.partial_tail, part.unread) for part in document.parts
    ]
    kept = list(document.syntaxes), "lines" in document.syntaxes, document.lines, document.prose, document.flags
    return parts, kept, gathered(text), stored(text)


def check(text: str, size: int = 1) -> None:
    """A text gives the same parts, rows and tables in both ways."""
    with mock.patch.object(strictjson, "LONG", 1 << 60):
        assert isinstance(hyve.parse(text).parts, tuple)
        held = told(text)
    with in_runs(size), mock.patch("hyve.freetext._LINES", size), mock.patch("hyve.freetext._MOST", size):
        read = told(text)
    assert repr(read) == repr(held)


@pytest.mark.parametrize("kind", KINDS[:-4])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_documents_of_one_kind(kind: str, newline: str) -> None:
    check(newline.join(kind.format(i) for i in range(40)), 1 << 14)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(KINDS)), max_size=8),
    st.sampled_from([1, 1 << 13, 1 << 18]),
)
def test_any_documents(usual: list[str], others: list[tuple[int, str]], size: int) -> None:
    text = [usual[i % len(usual)].format(i) for i in range(30)]
    for place, other in others:
        text.insert(place, other.format(place))
    check("\n".join(text), size)


@pytest.mark.parametrize("kind", [*KINDS[:8], *KINDS[9:18]])
def test_no_value_is_held(kind: str) -> None:
    text = "# a log\n" + "\n".join(kind.format(i) for i in range(60))
    with in_runs():
        parts = hyve.parse(text).parts
    assert isinstance(parts, ManyParts)
    assert len(parts) >= 60
    assert all(part.way is not None and part.held is not part.value for part in parts if part.syntax != "lines")


def test_many_documents_are_read_at_once() -> None:
    """Those of which each can be said in strict JSON are one call; one among them that can't be makes few slower."""
    documents = [(again.LITERAL, f"{{'a': {i}, 'b': None}}") for i in range(100)]
    with mock.patch.object(again.literals, "read_literal", side_effect=AssertionError):
        assert again.values(documents) == [{"a": i, "b": None} for i in range(100)]
    documents[40] = again.LITERAL, "{'a': (1, 2)}"
    found = again.values(documents)
    assert found[40] == {"a": [1, 2]}
    assert found[41] == {"a": 41, "b": None}
    assert again.values([(again.STRICT, '{"a": "\\u007f"}')] * 2) == [{"a": "\x7f"}] * 2


def test_a_document_that_cannot_be_read_again_is_an_error_of_the_input() -> None:
    """What is read with little memory left, or deep in the stack, fails as what was asked for, without a traceback."""
    way = again.Way(lambda source: None)
    with pytest.raises(hyve.InputError, match="a document of 7 characters again"):
        again.values([(way, "{'a': 1")])


def test_many_kinds() -> None:
    """More than a byte can number."""
    part = hyve.Part({"a": 1}, (0, 8), "json", way=again.STRICT)
    parts = ManyParts('{"a": 1}', (part.but(flags=(str(i),)) for i in range(300)))
    assert [one.flags for one in parts] == [(str(i),) for i in range(300)]
    assert parts[299] == part.but(flags=("299",))
    assert parts[-2:] == (parts[298], parts[299])


@pytest.mark.parametrize("times", [1, 10_000])
def test_lists_on_lines_are_rows(times: int) -> None:
    """Lists without objects are rows where most of several parts are such; a single one is a list of rows."""
    text = "".join(f'[{i}, 0.5, "host {i}"]\n' for i in range(3 * times))
    with hyve.Datastore.from_text(text) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("records", 3 * times)]
        assert fetched(store, "SELECT * FROM records LIMIT 2") == [(0, 0, 0.5, "host 0"), (1, 1, 0.5, "host 1")]
        assert store.reconstruct(3 * times - 1) == [3 * times - 1, 0.5, f"host {3 * times - 1}"]
    with hyve.Datastore.from_text("[1, 2, 3]") as store:
        assert fetched(store, "SELECT value FROM records") == [(1,), (2,), (3,)]
    with hyve.Datastore.from_text('[1, 2]\n{"a": 1}\n{"a": 2}') as store:
        assert fetched(store, "SELECT value FROM records") == [(1,), (2,)]


@pytest.mark.parametrize("times", [1, 5_000])
def test_scalars_on_lines_are_rows(times: int) -> None:
    """Numbers, texts and words of JSON, one a line; lines of something else among many stay text."""
    values = [17, -2.5, 1e300, 'a "b"', True, None, 12345678901234567890123, "\ud83d"] * (2 * times)
    text = "value\n" + "".join(json.dumps(value) + "\n" for value in values)
    document = hyve.parse(text)
    assert same([part.value for part in document.parts[-9:]], values[-9:])
    assert document.lines == ((1, "value"),)
    with hyve.Datastore.from_document(document) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("lines", 1), ("records", len(values))]
        assert same(store.reconstruct(len(values) - 1), values[-1])
        assert fetched(store, "SELECT min(_line), max(_line) FROM records") == [(2, len(values) + 1)]


@pytest.mark.parametrize(
    "text",
    [
        *("1\n2", "007\n008\n009", "1.2.3\n4.5.6\n7.8.9", "+1\n+2\n+3", "a\n1\nb\n2", '"a"b\n' * 4),
        *('"a\tb"\n' * 4, '"a\0b"\n' * 4, '"\\x41"\n' * 4, '"\\u12"\n' * 4, "1\u0662\n" * 4, "1.\u0665\n" * 4),
    ],
)
def test_lines_that_are_no_scalars_stay_text(text: str) -> None:
    assert all(part.syntax == "lines" for part in hyve.parse(text).parts)


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text("\t\0\r\x85\u2028\u0662\\\"'/bu0aAx9.-+eE", max_size=12).map('"{}"'.format),
        st.text("0123456789\u0662\u00b2.-+eE_", min_size=1, max_size=8),
    )
)
def test_what_looks_like_scalars_on_lines_is_read_or_stays_text(line: str) -> None:
    """H5: whatever JSON's own reader says of one of them."""
    found = [part.value for part in hyve.parse(f"{line}\n" * 4).parts if part.syntax == "json"]
    assert same(found, [] if (read := strictjson.read(line)) is None else [read[0]] * 4)


def test_lines_with_commas_are_no_text_beside() -> None:
    """Each is one part, its comma included."""
    text = "".join(f'{{"a": {i}}},\n' for i in range(60_000))
    document = hyve.parse(text)
    assert (len(document.parts), document.lines, document.prose) == (60_000, (), "")
    assert document.parts[59_999].flags == ("repaired",)
    with hyve.Datastore.from_document(document) as store:
        assert [table.name for table in store.catalog.tables] == ["records"]
        assert store.reconstruct(59_999) == {"a": 59_999}


def test_a_long_part_that_is_slow_to_read_again_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 1: one word of Python, and a string that Python's parser has to read, in a list of JSON."""
    records = [{"id": i, "ok": True, "msg": 'a "b"\n', "n": {"t": "x" * 80}} for i in range(6_000)]
    text = json.dumps(records).replace("true", "True", 1)
    document = hyve.parse(text)
    assert isinstance(document.parts, ManyParts)
    assert document.syntaxes[0] == "python"
    monkeypatch.setattr("hyve.literals._parsed", None)  # nothing is read from here on
    with hyve.Datastore.from_document(document) as store:
        assert fetched(store, "SELECT count(*) FROM records") == [(6_000,)]
        assert store.reconstruct(0) == records


def test_documents_that_look_alike_are_read_again_once() -> None:
    sources = [f"{{name: word{i}, said: [hello}}" for i in range(500)]
    read = mock.Mock(wraps=again.LENIENT.read)
    way = again.Way(read, again.LENIENT.plain)
    assert again.values([(way, source) for source in sources]) == [
        {"name": f"word{i}", "said": ["hello"]} for i in range(500)
    ]
    assert read.call_count < 5
