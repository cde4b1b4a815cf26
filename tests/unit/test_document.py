"""Finding and reading structured parts (H5-H8)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import document as scanned
from hyve.document import parse
from hyve.errors import InputError
from hyve.escaped import embedded
from hyve.strictjson import Pairs
from tests.unit.documents import json_values, kept_text, values


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


def test_utf16_is_told_without_a_mark() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        document = parse('{"a": "é", "b": [1, 2]}'.encode(encoding))
        assert document.parts[0].value == {"a": "é", "b": [1, 2]}
        assert document.flags == ("utf16",)
    document = parse(b"\xff\xfea\x00b")  # cut in the middle of a character
    assert document.text == "a" + chr(0xDC00 + ord("b"))
    assert document.flags == ("utf16", "lone_surrogate")


def test_zero_bytes_are_kept_and_told() -> None:
    document = parse(b"\x00" * 500 + b"2024-01-02 started\nlater")
    assert document.lines == ((1, "\x00" * 500 + "2024-01-02 started"), (2, "later"))
    assert document.flags == ("nul_bytes",)
    document = parse('{"a": "x\x00y"}')
    assert document.parts[0].value == {"a": "x\x00y"}
    assert document.flags == ("nul_bytes", "repaired")
    with pytest.raises(InputError, match="binary"):
        parse(b"\x00" * 10)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_of_any_kind(newline: str) -> None:
    text = newline.join(['{"a": 1}', '{"a": 2}', "text", "", "more"])
    document = parse(text)
    assert [part.value for part in document.parts] == [{"a": 1}, {"a": 2}]
    assert document.lines == ((3, "text"), (5, "more"))
    assert values(newline.join(["id,name", "1,a", "2,b", ""])) == [[{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]]


def test_colour_codes_around_and_inside_of_json() -> None:
    text = '\x1b[32mINFO\x1b[0m got \x1b[36m{\x1b[0m"a"\x1b[0m: \x1b[33m1\x1b[0m, "b": "x"}\x1b[0m done'
    document = parse(text)
    assert [part.value for part in document.parts] == [{"a": 1, "b": "x"}]
    assert document.parts[0].flags == ("ansi",)
    start, end = document.parts[0].span
    assert text[:start] == "\x1b[32mINFO\x1b[0m got "
    assert text[end:] == " done"
    # Codes inside of strings are data.
    assert parse('x\n\x1b[32m{"a": "\x1b[1mbold"}\x1b[0m').parts[0].value == {"a": "\x1b[1mbold"}
    assert parse("\x1b[31mred\x1b[0m alert").flags == ("ansi",)


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


def test_escapes_of_any_depth() -> None:
    document = {"a": [1, {"b": 'x "y" \\z'}]}
    text = json.dumps(document)
    for _ in range(7):
        assert embedded(text) == document
        assert values(f"see:\n{text}\nthanks") == [document]
        text = json.dumps(text)
    bare = json.dumps(json.dumps(document))[1:-1]
    for text in (bare, json.dumps(bare)[1:-1]):
        assert embedded(text) == document
        found = parse(f"see:\n{text}\nthanks")
        assert [part.value for part in found.parts] == [document]
        assert found.flags == ("repaired",)
        assert found.prose == "see:\nthanks"
        # Within a line it is the line's.
        assert parse(f"INFO body={text} sent").parts == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("('a', 1)", ["a", 1]),
        ("(1, {'b': None},\n 'c')", [1, {"b": None}, "c"]),
        ("OrderedDict([('a', 1)])", {"a": 1}),
        ("defaultdict(<class 'list'>, {'a': [1]})", {"a": [1]}),
        ("k8s.Pod(name='x', n=1)", {"__class__": "k8s.Pod", "name": "x", "n": 1}),
        ("[b'abc', {'a': b'x'}]", ["abc", {"a": "x"}]),
        ("{1: 'a', True: 'b'}", Pairs([(1, "a"), (True, "b")])),
        ("[{'a': '''it's\n{\"b\"''', 'c': 'd' 'e'}]", [{"a": 'it\'s\n{"b"', "c": "de"}]),
    ],
)
def test_python_roots(text: str, value: object) -> None:
    document = parse(f"printed:\n{text}\nend")
    assert [part.value for part in document.parts] == [value]
    assert document.parts[0].syntax == "python"
    assert document.prose == "printed:\nend"


@pytest.mark.parametrize(
    "text", ["(see above)", "print('hello')", "(1)", "foo(a=1)", "('a', 1) and more", "int main(void) {}"]
)
def test_what_is_no_python_root(text: str) -> None:
    assert parse(text).parts == ()


def test_lines_of_json_among_text_keep_their_order_and_place() -> None:
    records = [{"n": n} for n in range(10)]
    lines = [json.dumps(record) for record in records]
    text = "\n".join(["start", *lines[:4], "middle", lines[4], "", *lines[5:], "end"])
    document = parse(text)
    assert [part.value for part in document.parts] == records
    assert [text[slice(*part.span)] for part in document.parts] == lines
    assert document.lines == ((1, "start"), (6, "middle"), (14, "end"))


def test_tables_among_other_parts() -> None:
    text = (
        '{"a": 1}\nstdout:\nNAME    READY   NOTE\nweb-1   1/1     {"x": 1}\nweb-2   0/1     [{}]\n\nstderr:\n'
        "\n| k | v |\n|---|---|\n| a | 1 |\n"
    )
    document = parse(text)
    assert [(part.syntax, part.value) for part in document.parts] == [
        ("json", {"a": 1}),
        (
            "table",
            [{"NAME": "web-1", "READY": "1/1", "NOTE": '{"x": 1}'}, {"NAME": "web-2", "READY": "0/1", "NOTE": "[{}]"}],
        ),
        ("table", [{"k": "a", "v": "1"}]),
    ]
    assert document.lines == ((2, "stdout:"), (7, "stderr:"))


def test_a_comment_before_a_table_is_text() -> None:
    document = parse("# exported 2024\nid,name\n1,a\n2,b\n")
    assert [part.value for part in document.parts] == [[{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]]
    assert document.lines == ((1, "# exported 2024"),)


@given(st.dictionaries(st.text(), json_values, min_size=1), st.text(alphabet="abc \n,.:;", max_size=40))
def test_any_object_is_found_inside_any_prose(value: dict[str, object], around: str) -> None:
    text = f"{around}\n{json.dumps(value)}\n{around}"
    found = values(text)
    assert len(found) == 1
    assert repr(found[0]) == repr(value)


paragraphs = st.lists(
    st.text(alphabet="abc XYZ.,:;!?'-()\t", max_size=40).map(lambda text: f"The {text} ends."), min_size=1, max_size=3
).map("\n".join)


@given(st.lists(st.tuples(paragraphs, st.dictionaries(st.text(), json_values, min_size=1)), min_size=1, max_size=3))
@settings(deadline=None)
def test_every_document_between_paragraphs_is_found(pieces: list[tuple[str, dict[str, object]]]) -> None:
    text = ""
    for number, (paragraph, value) in enumerate(pieces):
        text += f"{paragraph}\n{json.dumps(value, indent=2 if number % 2 else None)}\n"
    document = parse(text)
    assert repr([part.value for part in document.parts]) == repr([value for _, value in pieces])
    assert document.prose == "\n".join(line for paragraph, _ in pieces for line in paragraph.split("\n"))


@pytest.mark.parametrize("text", ["0\r0\n", 'a,"b\n1,2\n', 'a,b"c\n1,2\n3,4\n5,6\n'])
def test_what_only_looks_like_a_table_stays_text(text: str) -> None:
    document = parse(text)
    assert document.parts == ()
    assert document.prose.split() == text.split()


def test_columns_of_equal_names_are_all_kept() -> None:
    assert values("a, a,b\n1,2,3\n4,5,6\n7,8,9\n")[0][0] == {"a": "1", "a_2": "2", "b": "3"}  # type: ignore[index]
    assert values(",column_0,b\n1,2,3\n4,5,6\n")[0][0] == {"column_0": "1", "column_0_2": "2", "b": "3"}  # type: ignore[index]


def test_log_lines_with_commas_are_no_table() -> None:
    text = "".join(f"INFO user {name} logged in, session {i}\n" for i, name in enumerate(["al", "bo", "cy", "di"]))
    assert parse(text).parts == ()
    assert kept_text(text).count("logged in") == 4


def test_what_reading_changes_is_flagged() -> None:
    assert parse('{"a": 1e999}').flags == ("number_as_text",)
    assert parse('{"a": ' + "9" * 5000 + "}").flags == ("number_as_text",)
    assert values("[nan, {'a': 1}]")[0][1] == {"a": 1}  # type: ignore[index]


def test_a_table_inside_of_a_part_is_no_part_of_its_own() -> None:
    text = '10:00 got {"a": "x\n| k | v |\n|---|---|\n| 1 | 2 |\n", "b": [1]}\nend'
    document = parse(text)
    assert [(part.value, part.flags) for part in document.parts] == [
        ({"a": "x\n| k | v |\n|---|---|\n| 1 | 2 |\n", "b": [1]}, ("repaired",))
    ]
    assert document.lines == ((1, "10:00 got "), (6, "end"))


@pytest.mark.parametrize("line", ["```restart pod-7``` is what the runbook says", "```ERROR disk full on host7"])
def test_only_bare_fences_are_dropped(line: str) -> None:
    assert parse(f"{line}\nok").prose == f"{line}\nok"
    assert parse("```json\n```").lines == ()


def test_keys_that_are_numbers_stay_numbers_everywhere() -> None:
    for text in ("log {1: [1], 2: [2]} x", "{1: [1], 2: [2]}", '{1: [1], 2: [2], "x": null}'):
        (part,) = parse(text).parts
        assert part.value[:2] == ((1, [1]), (2, [2]))
        assert (type(part.value), part.syntax, part.flags) == (Pairs, "python", ("python_literal",))


def test_a_lone_surrogate_in_text_is_flagged() -> None:
    assert parse('{"a": "\ud800", "b": [1]}').flags == ("lone_surrogate",)
    assert parse("\ud800 hi").flags == ("lone_surrogate",)


def test_a_string_that_holds_a_document_is_no_repair() -> None:
    (part,) = parse(json.dumps('{"a": [1]}')).parts
    assert (part.value, part.flags) == ({"a": [1]}, ("escaped",))


@pytest.mark.parametrize("text", ["{Name:x Age:3}", "got &{Name:x Age:3 Tags:[a b]} y", "{Name:x y Age:3, B:1}"])
def test_what_go_prints_stays_text(text: str) -> None:
    assert (parse(text).parts, parse(text).prose) == ((), text)


def test_a_fence_behind_a_document_is_no_line() -> None:
    document = parse('{"a": null} ```json\nnull\n```')
    assert [part.value for part in document.parts] == [{"a": None}]
    assert document.lines == ((2, "null"),)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("whole", "syntax"), [('{"a":1}', "json"), ("{'a': 1, 'b': None}", "python"), ("id,name,v\n1,a,2\n3,b,4", "csv")]
)
def test_byte_order_marks_of_files_written_one_after_the_other(whole: str, syntax: str, newline: str) -> None:
    whole = whole.replace("\n", newline)
    document = parse(newline.join(["\ufeff" + whole] * 3))
    wanted = parse(newline.join([whole] * 3))
    assert {part.syntax for part in document.parts} == {syntax}
    assert [(part.value, part.span) for part in document.parts] == [(part.value, part.span) for part in wanted.parts]
    assert (document.lines, document.text) == ((), wanted.text)
    assert set(document.flags) == {"bom", *wanted.flags}
    # In a string it is a character.
    assert parse('["\ufeffa"]').parts[0].value == ["\ufeffa"]


@pytest.mark.parametrize(
    "flat", ["[]", "{}", "[ ]", "[12]", '[1, -2.5e3, true, null, "a"]', '["{x}"]', "[] {} [1]", "[][1]{}"]
)
def test_empty_brackets_and_lists_of_scalars_within_a_line_are_no_data(flat: str) -> None:
    for text in (f"INFO {flat} done", f"{flat} INFO done", f"a={flat}", f"x {flat}\n{flat} y"):
        assert values(text) == []
        assert values(text + '\n{"a": [1]}\n') == [{"a": [1]}]
    if " " not in flat.replace(", ", ","):
        alone = [json.loads(flat)] if flat not in ("[][1]{}",) else []
        assert values(f"the list:\n{flat}\nthat was it\n") == alone
    assert values(f'{flat} {{"a": {{"b": []}}}}') == [{"a": {"b": []}}]


@pytest.mark.parametrize("between", ["", " ", "\t", ", "])
def test_empty_and_flat_documents_among_others_of_one_line_are_data(between: str) -> None:
    """H5: one is what it is on a line of its own, where nothing but documents stands on the line."""
    texts = ['{"a": 1}', "{}", "[]", "[1, 2.50]", '{"b": [2]}', "{}"]
    text = between.join(texts)
    document = parse(f"the answers:\n{text}\n")
    assert [part.value for part in document.parts] == [{"a": 1}, {}, [], [1, 2.5], {"b": [2]}, {}]
    assert [document.text[slice(*part.span)] for part in document.parts] == texts
    assert values(f"x {text}") == [{"a": 1}, {"b": [2]}]
    assert values(f"{text} [3] x") == values(text)[:-1]
    assert values('{"a": 1} [3] x {"b": 2} {}') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"a": 1}]]}', [{"a": 1}]),
        ('{"a": {"b": 1}} }\nmore', {"a": {"b": 1}}),
        ("{'a': None}]", {"a": None}),
        ('{\n  "a": 1\n}\n}\n', {"a": 1}),
    ],
)
def test_a_closer_too_many_behind_a_document_is_told(text: str, value: object) -> None:
    document = parse(text)
    assert [part.value for part in document.parts] == [value]
    assert "unparsed" in document.flags


@pytest.mark.parametrize("text", ['[got {"a": 1}]', 'f({"a": 1})', '{"a": 1} } else {', 'x = {\n{"a": 1}\n}'])
def test_a_closer_of_what_surrounds_a_document_is_none_too_many(text: str) -> None:
    document = parse(text)
    assert [part.value for part in document.parts] == [{"a": 1}]
    assert "unparsed" not in document.flags


def test_near_json_far_within_a_line_is_read_up_to_a_bound() -> None:
    """Issue: near-JSON prose takes no more than a few times the time of JSON; what isn't read is told."""
    unit = 'the {"quick": brown, fox} [jumps over "the" lazy dog,'
    on_lines, on_one = parse(f"{unit}\n" * 500), parse(f"{unit} " * 5_000)
    assert [part.value for part in on_lines.parts if part.syntax == "json"] == [{"quick": "brown, fox"}] * 500
    read = [part.value for part in on_one.parts if part.syntax == "json"]
    assert 1_000 < len(read) < 5_000
    assert read == [{"quick": "brown, fox"}] * len(read)
    assert "unparsed" in on_one.flags
    (text,) = (part.value for part in on_one.parts if part.syntax == "lines")
    assert text[0]["text"].strip() == on_one.text.strip()


class _Counted:
    """A pattern that counts the characters which it is asked to search."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.searched = pattern, 0

    def search(self, text: str, at: int) -> re.Match[str] | None:
        match = self.pattern.search(text, at)
        self.searched += (match.start() if match else len(text)) - at
        return match


@pytest.mark.parametrize("line", ["(12, 'a', None)", "Pod(name='a')", '"{\\"a\\": 1}"', "(1 row)", "set(1"])
@pytest.mark.parametrize("end", ["", '{"a": [1]}\n'])
def test_a_text_is_searched_for_brackets_once(monkeypatch: pytest.MonkeyPatch, line: str, end: str) -> None:
    """H8: no quadratic case: what may begin a document without a bracket doesn't start the search for one again."""
    opens = _Counted(scanned._OPEN)
    monkeypatch.setattr(scanned, "_OPEN", opens)
    text = f"{line}\n" * 200 + end
    found = [part for part in parse(text).parts if part.syntax != "lines"]
    assert opens.searched <= len(text)
    assert len(found) == (0 if line in ("(1 row)", "set(1") else 200) + bool(end)
