"""Text that is damaged, cut or hostile: nothing raises, is made up or lost, and the work stays linear (H7, H8)."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.document import Document, parse
from hyve.elisions import without_ellipses
from hyve.errors import InputError
from hyve.strictjson import Pairs
from tests.unit.documents import json_values, kept_text, values


def test_a_cut_document_keeps_what_is_whole_and_says_so() -> None:
    document = parse('{"alert":"Crash","pods":["cart-1","cart-2","auth-')
    assert document.parts[0].value == {"alert": "Crash", "pods": ["cart-1", "cart-2"]}
    assert {"truncated", "partial_tail"} <= set(document.flags)


CUT = [
    ('{"alert":"Crash","pods":["cart-1","cart-2","auth-', {"alert": "Crash", "pods": ["cart-1", "cart-2"]}, "auth-"),
    ('[{"pod":"a-1","ok":true},{"pod":"a-2","ok":fal', [{"pod": "a-1", "ok": True}, {"pod": "a-2"}], "fal"),
    ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1]}, "2"),
    ('{"a": 1, "b": [1, 2,', {"a": 1, "b": [1, 2]}, ""),
    ('{"a": 1, "b', {"a": 1}, "b"),
    ('{"a": 1, "b":', {"a": 1}, '"b":'),
    ('{"a": 1, "b": {', {"a": 1}, '"b": {'),
    ('{"a": [1], "a": [2, 3, ', Pairs([("a", [1]), ("a", [2, 3])]), ""),
    ("[{'a': 1}, {'b': 'x", [{"a": 1}], "x"),
    ("[{'a': None, 'b': ('x', 'y'), 'c': Tr", [{"a": None, "b": ["x", "y"]}], "Tr"),
    ("{'a': (1,), 'b': (2", {"a": [1], "b": []}, "2"),
    ("[('a', 1), ('b', datetime.datetime(2024, 5", [["a", 1], ["b"]], "datetime.datetime(2024, 5"),
]


@pytest.mark.parametrize(("text", "value", "tail"), CUT, ids=[text for text, *_ in CUT])
def test_what_is_cut_is_no_value(text: str, value: object, tail: str) -> None:
    for before in ("", '{"first": 1}\n', "look at this:\n"):
        document = parse(before + text)
        part = document.parts[-1]
        assert (part.value, part.partial_tail) == (value, tail)
        assert "truncated" in part.flags
        assert ("partial_tail" in part.flags) == bool(tail)
        assert part.span == (len(before), len((before + text).rstrip()))


def test_a_document_that_its_fence_or_its_paragraph_cuts() -> None:
    document = parse('see\n```json\n{"a": 1, "b": [1, 2\n```\nbye')
    assert (document.parts[0].value, document.parts[0].partial_tail) == ({"a": 1, "b": [1]}, "2")
    assert document.prose == "see\nbye"
    document = parse('dump:\n[{"a": 1}, {"a": 24.22,\n\nWhich one is it?')
    assert document.parts[0].value == [{"a": 1}, {"a": 24.22}]
    assert document.prose == "dump:\nWhich one is it?"
    document = parse('{"a": 1, "b": "cut here\nWhich one is it?')
    assert (document.parts[0].value, document.parts[0].partial_tail) == ({"a": 1}, "cut here")
    assert document.prose == "Which one is it?"


def test_a_cut_number_is_not_shown_as_a_whole_one() -> None:
    assert values('[{"a": 1}, {"a": 12') == [[{"a": 1}]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"part": "valve 3/4" brass, threaded", "qty": 7}', {"part": 'valve 3/4" brass, threaded', "qty": 7}),
        ("{name: 'cart', ready: true}", {"name": "cart", "ready": True}),
        ('{"a": 1, "b": [1, 2,], }', {"a": 1, "b": [1, 2]}),
        ('{"a": 1, // one\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "line 1\nline 2"}', {"a": "line 1\nline 2"}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{\n  "part": "valve 3/4" brass, threaded",\n  "qty": 7\n}', {"part": 'valve 3/4" brass, threaded', "qty": 7}),
        ('{"Name": System Board, "b": 1.50}', {"Name": "System Board", "b": 1.5}),
        ('{"url": "http:\\/\\/x", "say": "it\'s", }', {"url": "http://x", "say": "it's"}),
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


def test_repair_keeps_repeated_keys() -> None:
    document = parse('{"svc": "cart", "p99": 41, "svc": "auth", "p99": 12,}')
    assert document.parts[0].value == Pairs([("svc", "cart"), ("p99", 41), ("svc", "auth"), ("p99", 12)])
    assert document.flags == ("repaired", "duplicate_keys")


@pytest.mark.parametrize(
    "text", ['{"a": 1, "b": , "c": 2}', "[1, 2,, 3]", '{"a": "b" c, "d": 1}', '{"a": "x", "y", "b": 1}']
)
def test_what_a_repair_would_make_up_or_drop_stays_text(text: str) -> None:
    document = parse(text)
    assert document.parts == ()
    assert document.prose == text


def check_spans(document: Document) -> None:
    at = 0
    for part in document.parts:
        assert 0 <= part.span[0] < part.span[1] <= len(document.text)
        if part.syntax != "lines":
            assert at <= part.span[0]
            at = part.span[1]
        assert set(part.flags) <= set(document.flags)


@given(
    st.text(max_size=300)
    | st.text(alphabet="{}[]()\"':,\\ab1\n \r", max_size=300)
    | st.text(alphabet='AB1 |-,\t\n`\x1b[m{}"', max_size=200)
)
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text: str) -> None:
    check_spans(parse(text))


@given(json_values, st.data())
@settings(max_examples=200, deadline=None)
def test_no_damage_raises(value: object, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([json.dumps(value), repr(value), json.dumps(value, indent=1)]))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from([*"{}[]()\"':,\\x \n", ""])) + text[at + 1 :]
    check_spans(parse(text))


@given(st.binary(max_size=300))
def test_no_bytes_raise_but_input_error(data: bytes) -> None:
    try:
        document = parse(data)
    except InputError:
        return
    check_spans(document)
    if not {"utf16", "utf32"} & set(document.flags):
        assert document.text == re.sub("(?m)^\ufeff|(?<=\r)\ufeff", "", data.decode("utf-8", "surrogateescape"))


def calls_of(text: str) -> int:
    """How many functions run, generators go on, when `text` is parsed."""
    count = 0

    def met(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(met)
    try:
        parse(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit",
    [
        "a,b,c\n" + "1,x-2,3\n" * 6 + '{"x": [1,\n {"y": 2}]}\n',
        'a=1 b="x y" c={d: 1} ',
        "the user {name: foo, said: [hello} ",
        'web-{} got {{"a": 1, "b": [2}}\n',
    ],
)
def test_the_work_of_many_parts_grows_with_the_text(unit: str) -> None:
    parse(unit)
    texts = ["".join(unit.format(i) if "{}" in unit else unit for i in range(n)) for n in (200, 400)]
    half, whole = map(calls_of, texts)
    assert 1.5 * half < whole < 2.2 * half


def test_a_line_with_thousands_of_parts_is_one_line() -> None:
    document = parse('before {"a": [1,\n2]}' + ' x {"b": [3]}' * 3_000 + ' y {"c": [4,\n5]} after')
    assert len(document.parts) == 3_003  # the lines are a part: they are long
    assert [row["text"] for row in document.parts[-1].value] == ["before ", " x " * 3_000 + " y ", " after"]


@pytest.mark.parametrize("unit", ["[", '{"a":', '"', "\\", "{'a': ", '{"a": 1} x [', "[1, {a"])
def test_hostile_runs_end_and_nothing_of_them_is_lost(unit: str) -> None:
    count = 100_000 // len(unit)
    document = parse(unit * count + "\nthe end")
    if unit == '{"a": 1} x [':
        assert [part.value for part in document.parts if part.syntax == "json"] == [{"a": 1}] * count
    else:
        kept = "".join(row["text"] for part in document.parts if part.syntax == "lines" for row in part.value)
        assert kept == unit * count + "the end"


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
    text = "\n".join([*lines, broken, lines[0]])
    assert broken.split(",")[0].strip("{") in kept_text(text) or {"a": 1} in values(text)


@pytest.mark.parametrize("depth", [250, 700, 1200, 30_000])
@pytest.mark.parametrize("unit", [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deep_stays_text(depth: int, unit: tuple[str, str]) -> None:
    text = unit[0] * depth + "1" + unit[1] * depth
    document = parse(text)
    assert [part for part in document.parts if part.syntax != "lines"] == []
    assert len(kept_text(text)) >= len(text)
    assert document.flags == ("too_deep",)


ELIDED = [
    ('{"items": [{"id": 1}, {"id": 2}, ... 98 more], "total": 100}', {"items": [{"id": 1}, {"id": 2}], "total": 100}),
    ('{"tags": ["a","b", ... (12 more)], "n": 14}', {"tags": ["a", "b"], "n": 14}),
    ("{'a': [1, 2, ...], 'b': {...}}", {"a": [1, 2], "b": {}}),
    ('[{"a": 1},\n ...\n {"a": 9}]', [{"a": 1}, {"a": 9}]),
    ('[{"a": 1} … and 1,234 more items …]', [{"a": 1}]),
    ('{"a": "x...", "b": [1, 2], ...}', {"a": "x...", "b": [1, 2]}),
    ('{"a": ["x", ... 3 more, "z"]}', {"a": ["x", "z"]}),
]


@pytest.mark.parametrize(("text", "value"), ELIDED, ids=[text for text, _ in ELIDED])
def test_of_items_that_were_left_out_nothing_is_made(text: str, value: object) -> None:
    for before, after in (("", ""), ("log ", " end"), ("2024-05-01T10:00:00Z INFO got ", "\nnext")):
        (part,) = parse(before + text + after).parts
        assert part.value == value
        assert set(part.flags) - {"python_literal"} == {"elided"}
        assert part.span == (len(before), len(before + text))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ..., "b": 1}',
        '{"a": 12..., "b": "x"}',
        '{"a": [1, ... 5], "b": "x"}',
        '{"a": [1, ... true], "b": "x"}',
        '{"a": "x" ... world, "b": 1}',
    ],
)
def test_an_ellipsis_that_can_not_just_be_left_out_makes_the_document_text(text: str) -> None:
    document = parse(text)
    assert (document.parts, document.prose, document.flags) == ((), text, ("unparsed",))


def test_hostile_ellipses_take_linear_time() -> None:
    for unit in ("..., ", "[... ", ", ... ]", "... more ", "... a a a ", "…", '"a" ... '):
        begun = time.process_time()
        without_ellipses("[" + unit * (300_000 // len(unit)) + "...]")
        assert time.process_time() - begun < 3


def test_no_repair_goes_over_the_head_of_a_log_line() -> None:
    """A line of a log is another line's end at most where strict JSON says so."""
    split = (
        '2024-01-01T00:00:00.000000000Z stdout P {"msg":"he\n'
        "2024-01-01T00:00:00.100000000Z stderr F other\n"
        '2024-01-01T00:00:00.200000000Z stdout F llo","d": {"x": 1},"n":1}\n'
        '2024-01-01T00:00:00.300000000Z stdout F {"n":2}'
    )
    document = parse(split)
    assert [part.value for part in document.parts] == [{"n": 2}]
    assert [line for _, line in document.lines] == split.split("\n")
    assert document.flags == ()
    document = parse(
        '2024-05-01T10:00:00Z ERR a {"x": "unterminated\n2024-05-01T10:00:01Z INFO b {"y": 1}\n'
        '2024-05-01T10:00:02Z INFO c "}\n'
    )
    assert [part.value for part in document.parts] == [{"y": 1}]
    assert document.flags == ("unparsed",)
    assert values('INFO a {"id":1,"k":\nERROR order failed\nINFO b [1,2]}') == []
    assert values('web-1 got {"id":1,"k":\nweb-12 order failed\nweb-2 b [1,2]}') == []
    assert values('{"id":1,"k": "x\n10:00:01 WARN failed\n"}') == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('INFO a {"id":1,\n "k": [1,2]}\nERROR order failed', {"id": 1, "k": [1, 2]}),
        ("INFO a {'id': None,\n 'k': [1,2]}\nERROR order failed", {"id": None, "k": [1, 2]}),
        ("INFO a {id: 1,\n k: [1,2],}\nERROR order failed", {"id": 1, "k": [1, 2]}),
        ('INFO a {"id":1, "k": "x\ny"}\nERROR order failed', {"id": 1, "k": "x\ny"}),
    ],
)
def test_documents_of_several_lines_that_begin_behind_a_head(text: str, value: object) -> None:
    document = parse(text)
    assert [part.value for part in document.parts] == [value]
    assert document.prose == "INFO a \nERROR order failed"


RECORDS = [json.dumps({"id": number, "msg": f"hello {number}"}) for number in range(6)]


@pytest.mark.parametrize("head", ["", "2024-05-01T10:00:00Z INFO got ", "worker-1 got "])
def test_a_broken_record_is_flagged(head: str) -> None:
    lines = [head + record for record in RECORDS]
    assert parse("\n".join(lines)).flags == ("concatenated",)
    lines[2] = lines[2][:-5]
    document = parse("\n".join(lines))
    if not head:  # the lines around tell that it is cut
        assert [part.value["id"] for part in document.parts] == [0, 1, 2, 3, 4, 5]
        assert document.flags == ("concatenated", "truncated", "partial_tail")
        assert (document.parts[2].value, document.parts[2].partial_tail) == ({"id": 2}, "hell")
        return
    assert [part.value["id"] for part in document.parts] == [0, 1, 3, 4, 5]
    assert document.flags == ("unparsed", "concatenated")
    assert lines[2] in [line for _, line in document.lines]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ('{"a": 12', {"truncated", "unparsed"}),
        ('{"a": "hal', {"truncated", "unparsed"}),
        ('x {"a":1', {"truncated", "unparsed"}),
        ('{"a":1}\n{"a":3', {"truncated", "unparsed"}),
        ('{"a": [1, 2\n{"b": 2}', {"unparsed"}),
        ('{"a": 1]', {"unparsed"}),
        ('[{"a" 1]', {"unparsed"}),
        ('w-1 {"a" 1}', {"unparsed"}),
        ("[12] foo\n[ERROR] bar\n[main] {x} y\nint a[] = {1, 2\n{", set()),
        ('puts {"a", "b"', set()),
        ("see [12", set()),
        ("[1,,2]", {"unparsed"}),
        ("{,}", {"unparsed"}),
        ("[1.5e", {"unparsed"}),
        ("{'k': ..., 'n': None}", {"unparsed"}),
        ("{'k': ['a' 'b'], 'n': 1}", {"unparsed"}),
        ('{"k": "a" "b", "n": 1}', {"unparsed"}),
        ("{'k': '''x\ny'', 'n': 1}", {"unparsed"}),
        ("[{'k': lambda: 0}, 1]", {"unparsed"}),
    ],
)
def test_json_that_stays_text_is_flagged(text: str, flags: set[str]) -> None:
    assert set(parse(text).flags) == flags


def test_a_repair_makes_no_containers() -> None:
    for text in ('{"a": ["x", (y z], "n": 4}', '{"a": x y [1, "n": 2}'):
        assert [part.value for part in parse(text).parts if "n" in part.value] == []


@pytest.mark.parametrize("wrap", ["%s", '{"status": "ok", "data": {"result": %s'])
def test_a_large_list_keeps_its_whole_records(wrap: str) -> None:
    records = [{"id": i, "tags": ["a", "b"], "text": "x" * 40} for i in range(2_000)]
    text = (wrap % json.dumps(records))[:90_000]
    (part,) = parse(text).parts
    found = part.value if isinstance(part.value, list) else part.value["data"]["result"]
    assert found[:-1] == records[: len(found) - 1]
    assert len(found) > 800
    assert "truncated" in part.flags


def test_a_large_cut_document_is_read_as_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"id": i, "v": [i, None, float("inf")], "text": "x" * 40} for i in range(2_000)]
    for text in (json.dumps(records), json.dumps({"a": {"b": records}, "c": 1})):
        for end in range(80_000, 80_060):
            quick = parse(text[:end])
            with monkeypatch.context() as patch:
                patch.setattr("hyve.strictjson.read_ahead", lambda *_, **__: None)
                slow = parse(text[:end])
            assert repr(quick.parts) == repr(slow.parts)


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.text("x,}{[]\"\\\n' ", max_size=30)), min_size=30, max_size=60),
    st.floats(0.5, 1.0),
    st.sampled_from(["", "\n\nWhat is wrong?", " and so on", "\n2026-01-01T00:00:00Z INFO up"]),
    st.sampled_from(["%s", '{"a": {"b": %s}, "c": 1}']),
)
@settings(max_examples=40, deadline=None)
def test_any_cut_list_is_read_as_token_by_token(
    records: list[dict[str, str]], at: float, behind: str, wrap: str
) -> None:
    """Invariant 1: what is read by pieces is what is read token by token, wherever the text ends."""
    whole = wrap % json.dumps([{"id": i, **record} for i, record in enumerate(records)])
    text = whole[: int(len(whole) * at)] + behind
    quick = parse(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hyve.strictjson.read_ahead", lambda *_, **__: None)
        slow = parse(text)
    assert repr(quick.parts) == repr(slow.parts)
    assert quick.flags == slow.flags


def test_the_commas_of_lines_that_were_a_list_are_no_text() -> None:
    text = "".join(json.dumps({"id": i}) + ",\n" for i in range(50))
    document = parse(text)
    assert [part.value for part in document.parts] == [{"id": i} for i in range(50)]
    assert document.lines == ()
    assert document.flags == ("concatenated", "repaired")
    assert text[slice(*document.parts[0].span)] == '{"id": 0},'


@pytest.mark.parametrize(
    "unit", ["the {quick} [brown] 'fox' \"jumps: {a: b, c} over\n", "{'a': .., 'z': 1}  {'b': 2}\n"]
)
def test_the_allowance_lasts_for_ordinary_text(unit: str) -> None:
    text = unit * 6_000
    document = parse(text)
    assert max(part.span[1] for part in document.parts if part.syntax != "lines") > len(text) - len(unit)
    assert "unparsed" not in document.flags


def test_an_allowance_that_is_used_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyve.document._ALLOWANCE", (0, 2_000))
    text = "x {a: b c:} y\n" * 200 + "{c: 1, }\n"
    document = parse(text)
    assert [part for part in document.parts if part.syntax != "lines"] == []
    assert "unparsed" in document.flags


@pytest.mark.parametrize("value", ["true", "null", "5", "-1.5", '"x"', '{"x": 1}', "[1]"])
def test_a_missing_colon_makes_no_key_of_a_value(value: str) -> None:
    """H7: the record stays text; another one of the list is read."""
    broken = f'{{"id": 1, "ok" {value}, "msg": "x"}}'
    for text in (broken, f'[{broken}, {{"id": 2, "ok": false, "msg": "y"}}]'):
        document = parse(text)
        found = [part.value for part in document.parts]
        assert not any(
            "msg" in key and key != "msg"
            for part in found
            for row in ([part] if isinstance(part, dict) else part)
            for key in row
        )
        assert "unparsed" in document.flags
        assert '"msg": "x"}' in document.prose
