"""Finding and reading structured parts (H5-H8)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.document import embedded, parse
from hyve.errors import InputError
from hyve.strictjson import Pairs


def values(text: str | bytes) -> list[object]:
    return [part.value for part in parse(text).parts]


def test_prose_around_json_stays_prose_and_spans_point_at_the_source() -> None:
    """H5: free text mixed with JSON."""
    text = 'please look at\n{"a": [1, 2]}\nand tell me why'
    document = parse(text)
    assert values(text) == [{"a": [1, 2]}]
    start, end = document.parts[0].span
    assert text[start:end] == '{"a": [1, 2]}'
    assert document.prose == "please look at\nand tell me why"


def test_concatenated_documents_are_all_kept() -> None:
    document = parse('{"id":1}\n{"id":2}{"id":3}\r\n\n[{"id":4},{"id":5}]')
    assert [part.value for part in document.parts] == [{"id": 1}, {"id": 2}, {"id": 3}, [{"id": 4}, {"id": 5}]]
    assert "concatenated" in document.flags


def test_fences_are_stripped() -> None:
    """H6: code fences."""
    document = parse('here:\n```json\n{"a": 1}\n```\nthanks')
    assert [part.value for part in document.parts] == [{"a": 1}]
    assert document.prose == "here:\nthanks"


def test_python_literals() -> None:
    """H6: Python literals, with constructor calls read as what they say."""
    moment = "datetime.datetime(2024, 5, 1, 12, 0, 30, tzinfo=tzutc())"
    text = f"{{'owner': None, 'ok': True, 'tags': ('a', 'b'), 'at': {moment}}}"
    document = parse(text)
    assert document.parts[0].value == {
        "owner": None,
        "ok": True,
        "tags": ["a", "b"],
        "at": "2024-05-01T12:00:30+00:00",
    }
    assert document.parts[0].syntax == "python"
    assert "python_literal" in document.flags


def test_no_python_is_run() -> None:
    text = "{'a': __import__('os').system('true')}"
    document = parse(text)
    assert document.parts[0].value == {"a": "__import__('os').system('true')"}
    assert "constructor_call" in document.flags


def test_duplicate_keys_are_all_kept() -> None:
    document = parse('{"svc": "cart", "p99": 41, "svc": "auth", "p99": 12}')
    assert document.parts[0].value == Pairs([("svc", "cart"), ("p99", 41), ("svc", "auth"), ("p99", 12)])
    assert document.flags == ("duplicate_keys",)


def test_integers_of_any_size_are_exact() -> None:
    assert values('{"over": 18446744073709551616, "low": -9223372036854775808}') == [
        {"over": 18446744073709551616, "low": -9223372036854775808}
    ]


def test_a_cut_document_keeps_what_is_whole_and_says_so() -> None:
    document = parse('{"alert":"Crash","pods":["cart-1","cart-2","auth-')
    assert document.parts[0].value == {"alert": "Crash", "pods": ["cart-1", "cart-2"]}
    assert {"truncated", "partial_tail"} <= set(document.flags)


def test_a_cut_number_is_not_shown_as_a_whole_one() -> None:
    assert values('[{"a": 1}, {"a": 12') == [[{"a": 1}]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"part": "valve 3/4" brass, threaded", "qty": 7}', {"part": 'valve 3/4" brass, threaded', "qty": 7}),
        ("{name: 'cart', ready: true}", {"name": "cart", "ready": True}),
        ('{"a": 1, "b": [1, 2,], }', {"a": 1, "b": [1, 2]}),
    ],
)
def test_repair_on_failure_only_and_flagged(text: str, value: object) -> None:
    """H7."""
    document = parse(text)
    assert document.parts[0].value == value
    assert {"repaired", "python_literal"} & set(document.flags)


def test_repair_that_loses_words_is_refused() -> None:
    """H8: what a repairer drops silently stays text instead."""
    text = '{"a": 1} {"a": 2, "b": lost words here that no value would hold } tail }'
    document = parse(text)
    kept = json.dumps([part.value for part in document.parts]) + document.prose
    for word in ("lost", "words", "here", "hold"):
        assert word in kept


def test_log_brackets_are_no_data() -> None:
    lines = "\n".join(f"[2016-12-19 20:54:33,{i}] TRACE [Broker id=2] isr=[0,1,2] ok" for i in range(30))
    document = parse(lines)
    assert [part.syntax for part in document.parts] == ["lines"]
    assert document.parts[0].value[0] == {
        "line": 1,
        "text": "[2016-12-19 20:54:33,0] TRACE [Broker id=2] isr=[0,1,2] ok",
    }
    assert len(document.parts[0].value) == 30


def test_csv_cells_stay_text() -> None:
    assert values('id,name,value\n1,cart,007\n2,"a,b",\n3,x,{"k": 1}\n') == [
        [
            {"id": "1", "name": "cart", "value": "007"},
            {"id": "2", "name": "a,b", "value": ""},
            {"id": "3", "name": "x", "value": '{"k": 1}'},
        ]
    ]


def test_byte_order_marks_and_utf16() -> None:
    assert values(b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]
    assert parse(b'\xef\xbb\xbf{"a": 1}').flags == ("bom",)
    assert values('{"a": "é"}'.encode("utf-16")) == [{"a": "é"}]


def test_binary_input_is_refused_with_a_reason() -> None:
    with pytest.raises(InputError, match=r"'x\.gz' is binary"):
        parse(b"\x1f\x8b\x08\x00" + bytes(range(256)) * 20, "x.gz")


def test_strings_escaped_many_times_are_expanded() -> None:
    """H5: JSON escaped several times inside strings."""
    inner = json.dumps({"lvl": "error", "n": [1, 2]})
    assert embedded(inner) == {"lvl": "error", "n": [1, 2]}
    assert embedded(json.dumps(inner)) == {"lvl": "error", "n": [1, 2]}
    assert embedded(json.dumps(json.dumps(inner))) == {"lvl": "error", "n": [1, 2]}
    assert embedded("{'a': None}") == {"a": None}
    assert embedded("plain text") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, min_size=1), st.text(alphabet="abc \n,.:;", max_size=40))
def test_any_object_is_found_inside_any_prose(value: dict[str, object], around: str) -> None:
    text = f"{around}\n{json.dumps(value)}\n{around}"
    found = values(text)
    assert len(found) == 1
    assert repr(found[0]) == repr(value)


@given(st.text(max_size=300) | st.text(alphabet="{}[]\"':,\\ab1\n ", max_size=300))
@settings(max_examples=300)
def test_no_text_raises(text: str) -> None:
    document = parse(text)
    for part in document.parts:
        assert 0 <= part.span[0] < part.span[1] <= len(document.text)


@given(st.binary(max_size=300))
def test_no_bytes_raise_but_input_error(data: bytes) -> None:
    try:
        document = parse(data)
    except InputError:
        return
    assert document.text == data.decode(
        "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "surrogateescape"
    ).removeprefix("\ufeff")


@pytest.mark.parametrize("unit", ["[", '{"a":', '"', "\\", "{'a': ", '{"a": 1} x [', "[1, {a"])
def test_hostile_runs_end_and_nothing_of_them_is_lost(unit: str) -> None:
    count = 100_000 // len(unit)
    document = parse(unit * count + "\nthe end")
    if unit == '{"a": 1} x [':
        assert [part.value for part in document.parts if part.syntax == "json"] == [{"a": 1}] * count
    else:
        kept = "".join(row["text"] for part in document.parts if part.syntax == "lines" for row in part.value)
        assert kept == unit * count + "the end"


@pytest.mark.parametrize("text", ["0\r0\n", 'a,"b\n1,2\n', 'a,b"c\n1,2\n3,4\n5,6\n'])
def test_what_only_looks_like_a_table_stays_text(text: str) -> None:
    document = parse(text)
    assert document.parts == ()
    assert document.prose.split() == text.split()


def kept_text(text: str) -> str:
    """Everything of a text that a reader can still get at."""
    document = parse(text)
    lines = [row["text"] for part in document.parts if part.syntax == "lines" for row in part.value]
    values = [json.dumps(part.value) for part in document.parts if part.syntax != "lines"]
    return "\n".join([document.prose, *lines, *values])


def test_a_broken_object_does_not_swallow_the_log_after_it() -> None:
    text = '{"user": "bob", "n": 3\n' + "ERROR disk full\n" * 30
    assert kept_text(text).count("ERROR disk full") == 30
    assert "bob" in kept_text(text)
    text = '10:00 req {"user": "bob", "items": [1, 2\n10:01 ERROR disk full on host7\n'
    assert "ERROR disk full on host7" in kept_text(text)


@pytest.mark.parametrize(
    "broken",
    ['{"a":1,"b":"x', '{"a":', '{"ts": 1, "msg": "hello world, this is a long message, longer than most", "n":'],
)
def test_a_cut_record_does_not_harm_its_neighbours(broken: str) -> None:
    good = [{"a": n, "b": "y"} for n in range(50)]
    lines = [json.dumps(record) for record in good]
    found = values("\n".join([*lines[:20], broken, *lines[20:]]) + "\n")
    assert [value for value in found if value in good] == good
    assert broken.split(",")[0].strip("{") in kept_text("\n".join([*lines, broken, lines[0]]))


def test_columns_of_equal_names_are_all_kept() -> None:
    assert values("a, a,b\n1,2,3\n4,5,6\n7,8,9\n")[0][0] == {"a": "1", "a_2": "2", "b": "3"}  # type: ignore[index]
    assert values(",column_0,b\n1,2,3\n4,5,6\n")[0][0] == {"column_0": "1", "column_0_2": "2", "b": "3"}  # type: ignore[index]


def test_log_lines_with_commas_are_no_table() -> None:
    text = "".join(f"INFO user {name} logged in, session {i}\n" for i, name in enumerate(["al", "bo", "cy", "di"]))
    assert parse(text).parts == ()
    assert kept_text(text).count("logged in") == 4


@pytest.mark.parametrize("depth", [250, 700, 1200, 30_000])
@pytest.mark.parametrize("unit", [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deep_stays_text(depth: int, unit: tuple[str, str]) -> None:
    text = unit[0] * depth + "1" + unit[1] * depth
    document = parse(text)
    assert [part for part in document.parts if part.syntax != "lines"] == []
    assert len(kept_text(text)) >= len(text)


def test_what_reading_changes_is_flagged() -> None:
    assert parse('{"a": 1e999}').flags == ("non_finite",)
    assert parse('{"a": ' + "9" * 5000 + "}").flags == ("integer_as_text",)
    assert values("[nan, {'a': 1}]")[0][1] == {"a": 1}  # type: ignore[index]
