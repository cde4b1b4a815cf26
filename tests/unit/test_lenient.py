"""Near-JSON: the second and the third pass (H7)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import lenient, strictjson
from hyve.lenient import read_lenient
from hyve.strictjson import Pairs
from tests.unit.timed import seconds


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ('{"a": 1, // said\n /* and */ "b": 2 # done\n}', {"a": 1, "b": 2}),
        ("{name: 'cart', 'it\\'s': \"x\", $ok: true}", {"name": "cart", "it's": "x", "$ok": True}),
        ('{"a": "line 1\nline 2\ttab\x01"}', {"a": "line 1\nline 2\ttab\x01"}),
        ('{"path": "c\\dir\\x41", "u": "\\u00e9\\ud83d\\ude00\\d"}', {"path": "c\\dirA", "u": "é\U0001f600\\d"}),
        ("{\"a\": \"C:\\dir\\new\", 'b': 'd:\\x\\temp'}", {"a": "C:\\dir\\new", "b": "d:\\x\\temp"}),
        ('{"a": "C:\\temp\\users\\new", b: "C:\\\\dir"}', {"a": "C:\\temp\\users\\new", "b": "C:\\dir"}),
        ('{"a": "12:\\d\\n", b: 1}', {"a": "12:\\d\n", "b": 1}),
        ('{:a=>1, "b"=>nil}', {"a": 1, "b": None}),
        ('{"a": 1\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": [1, {"b": 2}}', {"a": [1, {"b": 2}]}),
        ("{a: +1, b: .5, c: 5., d: 0x1F, e: 007, f: 1e3}", {"a": 1, "b": 0.5, "c": 5.0, "d": 31, "e": "007", "f": 1e3}),
        ("{a: None, b: True, c: undefined, d: word}", {"a": None, "b": True, "c": None, "d": "word"}),
        ("{at: 12:30:45, url: http://x/y?z=1}", {"at": "12:30:45", "url": "http://x/y?z=1"}),
        ('{"n": 123456789012345678901234567890, x: 1e400}', {"n": 123456789012345678901234567890, "x": "1e400"}),
        ('{"a": 1 "b": 2}', None),
        ("[1, 2,, 3]", None),
        ("[,]", None),
        ('{"a": }', None),
        ('{"a"}', None),
        ("[a b]", None),
        ("[a:b, 1]", None),
        ("[1, ...]", None),
        ("{a: ..., b: 1}", None),
        ("{a: …}", None),
        ('["a" "b"]', None),
        ('{"a": 1} {"b": 2}', None),
        ('{"a": f(1)}', None),
        ("{" * 300 + "}" * 300, None),
        ("", None),
    ],
)
def test_near_json(source: str, expected: Any) -> None:
    found = read_lenient(source)
    assert (found and found[0]) == expected
    assert json.dumps(found and found[0]) == json.dumps(expected)


def test_flags() -> None:
    assert read_lenient('{"a": 1, "a": 2,}') == (Pairs([("a", 1), ("a", 2)]), ("duplicate_keys",))
    assert read_lenient("{a: 1e400}") == ({"a": "1e400"}, ("number_as_text",))
    found = read_lenient("[nan, -Infinity, +inf]")
    assert found is not None
    assert math.isnan(found[0][0])
    assert found[0][1:] == [-math.inf, math.inf]
    assert found[1] == ("non_finite",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"part": "valve 3/4" brass, threaded", "qty": 7}', {"part": 'valve 3/4" brass, threaded', "qty": 7}),
        ('{"a": "he said "hi", then", "b": 2}', {"a": 'he said "hi", then', "b": 2}),
        ('["x "y", "z"]', ['x "y', "z"]),
        ('{"a": ""b"", "c": 1}', {"a": '"b"', "c": 1}),
        ("{'a': 'it's', 'b': 1}", {"a": "it's", "b": 1}),
        ('{\n  "a": "5" x"\n  "b": "y"\n}', {"a": '5" x', "b": "y"}),
        # Two strings are never joined to one.
        ('{"a": "x", "y", "b": 1}', None),
        ('["a" "b"]', None),
    ],
)
def test_quotes_inside(source: str, expected: Any) -> None:
    assert read_lenient(source) is None
    found = read_lenient(source, quotes_inside=True)
    assert (found and found[0]) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@given(st.lists(json_values) | st.dictionaries(st.text(), json_values))
@settings(deadline=None)
def test_json_is_near_json(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        found = read_lenient(text)
        assert found is not None
        assert repr(found[0]) == repr(value)


@given(st.text(alphabet="{}[]\"':,\\/#*abN1.-+ \n=>", max_size=80))
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text: str) -> None:
    read_lenient(text)
    read_lenient(text, quotes_inside=True)


@pytest.mark.parametrize(
    "unit", ['x"', '",', '{"', "[1,", '{"a":"b",', "/*", "{/*", '" ', 'x", ', "\\", 'x"\n', "# ", "a:"]
)
@pytest.mark.parametrize("head", ["[", '["', '{"a": "', "{"])
def test_hostile_texts_take_linear_time(head: str, unit: str) -> None:
    def took(size: int) -> float:
        text = head + unit * (size // len(unit)) + '"]}'
        return seconds(lambda: (read_lenient(text), read_lenient(text, quotes_inside=True)))

    assert min(took(100_000) for _ in range(3)) < 0.2 + 12 * took(20_000)


@pytest.mark.parametrize(
    ("source", "decoders"), [("{d: 1, name: foo}", 0), ("{a: [" + "1.5, " * 500 + "2e3], b: x}", 1)]
)
def test_a_decoder_is_made_once_and_only_for_numbers_that_need_it(
    source: str, decoders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Counted(lenient.Decoder):
        def __init__(self) -> None:
            made.append(self)
            super().__init__()

    monkeypatch.setattr(lenient, "Decoder", Counted)
    assert read_lenient(source) is not None
    assert len(made) == decoders


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ('{a: 1, "b": [2, {c: 3}]}', '{"a": 1, "b": [2, {"c": 3}]}'),
        ('{"a": 1, , "b": "x,, y",}', '{"a": 1,"b": "x,, y"}'),
        ("[1, [2,],]", "[1, [2]]"),
        ('{"text, key: 1": "{a: 1,}"}', '{"text, key: 1": "{a: 1,}"}'),
    ],
)
def test_keys_without_quotes_and_commas_too_many_become_json(source: str, plain: str) -> None:
    assert lenient.as_json(source) == plain


@pytest.mark.parametrize("source", ['[1,,"a"]', "[,]", "[1,,]", "{,}", '{,"a":1}', '{"a":,}', '{"a"', '{"a": "b\\n",}'])
def test_a_hole_is_no_comma_too_many(source: str) -> None:
    assert strictjson.read(lenient.as_json(source) or "") is None


@given(st.lists(st.sampled_from(["{", "}", "[", "]", ",", ", ", ":", "a", '"b"', "'c'", "1", "null", " ", "\n"])))
@settings(max_examples=500)
def test_what_becomes_json_reads_as_it_does_without(tokens: list[str]) -> None:
    """H7: the shorter way gives what the reader of near-JSON gives, or nothing."""
    for source in ("{a:1," + "".join(tokens) + "}", "[" + "".join(tokens) + "]"):
        plain = lenient.as_json(source)
        read = None if plain is None else strictjson.read(plain)
        if read is not None:
            assert lenient._Reader(source, quotes_inside=False).read() == (read[0], tuple(sorted(read[1])))
