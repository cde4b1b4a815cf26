"""Strict reading: the fast way and the reference agree in value, type and flag; nothing is lost in silence."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import kept as keeping
from hyve import strictjson
from hyve.rawdecode import raw_decode
from hyve.strictjson import MAX_DEPTH, Decoder, Pairs, flags, read, read_lines, too_deep


def reference(text: str) -> tuple[Any, frozenset[str]] | None:
    """What the reference alone makes of `text`."""
    bare = text.strip()
    decoder = Decoder()
    try:
        value = decoder.decode(bare)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value, bare) else (value, frozenset(flags(bare, decoder)))


def exact(value: Any) -> Any:
    """`value` in a form in which == tells 1 from 1.0 and True, 0.0 from -0.0, Pairs from list, and key orders."""
    if isinstance(value, Pairs):
        return ("pairs", [(exact(key), exact(item)) for key, item in value])
    if isinstance(value, dict):
        return ("dict", [(key, exact(item)) for key, item in value.items()])
    if isinstance(value, list):
        return ("list", [exact(item) for item in value])
    return (type(value).__name__, repr(value))


def same(text: str) -> None:
    """Asserts that `read` does as the reference does."""
    found, wanted = read(text), reference(text)
    if found is None or wanted is None:
        assert found == wanted
        return
    assert exact(found[0]) == exact(wanted[0])
    assert found[1] == wanted[1]


digits = st.text("0123456789", min_size=1, max_size=24)
numbers = st.one_of(
    st.integers().map(str),
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.sampled_from([(1 << 63) - 1, 1 << 63, -(1 << 63), -(1 << 63) - 1, (1 << 64) - 1, 1 << 64, 10**19]).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map("{:.17g}".format),
    st.tuples(st.sampled_from(["", "-"]), st.sampled_from(["0", "1", "9007199254740993", "17"]), digits).map(
        lambda part: f"{part[0]}{part[1]}.{part[2]}"
    ),
    st.tuples(digits, st.sampled_from(["e", "E"]), st.sampled_from(["", "+", "-"]), st.integers(0, 400)).map(
        lambda part: f"{part[0].lstrip('0') or '0'}{part[1]}{part[2]}{part[3]}"
    ),
    st.sampled_from(["-0", "-0.0", "0.1000000000000000000", "1e400", "-1e400", "1e-400", "2e-324", "NaN", "-Infinity"]),
)
pieces = st.one_of(
    st.text(st.characters(exclude_characters='"\\', min_codepoint=32), max_size=6),
    st.sampled_from(['\\"', "\\\\", "\\/", "\\n", "\\u0022", "\\\\u0022", "\\u005c", "\\u00e9", "\\u007f", "\x7f"]),
    st.sampled_from(["\\ud83d\\ude00", "\\ud83d", "\\uDE00", "\\\\ud83d", "\\ude00\\ud83d"]),
    st.sampled_from(["12345678901234567890", " 12345678901234567890 ", "1.2.3.4.5.6.7.8.9.10", "1e-400", "5e-3456,"]),
    st.sampled_from(["},{", "}, {", "[", "]", ":", ",", "................"]),
)
strings = st.lists(pieces, max_size=4).map(lambda parts: '"' + "".join(parts) + '"')
keys = st.one_of(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"\\""', '""']), strings)
blanks = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n  "])


def joined(parts: list[str], opening: str, closing: str) -> str:
    return opening + ",".join(parts) + closing


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    spaced = st.tuples(blanks, inner, blanks).map("".join)
    members = st.tuples(blanks, keys, blanks, st.just(":"), spaced).map("".join)
    return st.one_of(
        st.lists(spaced, max_size=5).map(lambda parts: joined(parts, "[", "]")),
        st.lists(members, max_size=5).map(lambda parts: joined(parts, "{", "}")),
    )


scalars = st.one_of(st.sampled_from(["null", "true", "false"]), numbers, strings)
texts = st.recursive(scalars, containers, max_leaves=12)
documents = st.tuples(blanks, texts, blanks).map("".join)


@settings(max_examples=300, deadline=None)
@given(documents)
def test_fast_and_reference_agree(text: str) -> None:
    assert reference(text) is not None
    same(text)


@settings(max_examples=200, deadline=None)
@given(documents, st.data())
def test_damaged_texts_are_read_by_both_or_by_none(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 3)))
    same(text[:at] + data.draw(st.sampled_from(["", "[", "}", '"', ",", "1", "\\", "\ud800", "\x00"])) + text[until:])


@settings(max_examples=300, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=8))
def test_numbers(literals: list[str]) -> None:
    same(joined(literals, "[", "]"))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["[", '{"rows":[', '{"kind": "x", "tags": ["a"], "data": {"rows": [', '{"rows":1,"rows":[', "[["]),
    st.lists(st.one_of(containers(scalars), texts), min_size=1, max_size=12),
    st.sampled_from([",", ", ", ",\n  "]),
    st.sampled_from(["", ',"more":[{"id":1},{"id":2}]', ', "rows": 2']),
    st.sampled_from(["", "\n", "\u00a0"]),
)
def test_any_piece_length_reads_the_same(opening: str, values: list[str], comma: str, more: str, blank: str) -> None:
    """Long texts are read in pieces; here each piece is a few characters long."""
    records = comma.join(f'{{"id":{value}}}' for value in values)
    closing = "".join({"[": "]", "{": "}"}[char] for char in reversed(opening) if char in "[{")
    closing = closing.removeprefix("]") if '["a"]' in opening else closing
    text = opening + records + "]" + more + closing.removeprefix("]") + blank
    kept = strictjson._PIECE
    try:
        for strictjson._PIECE in (1, 7, 40):
            same(text)
    finally:
        strictjson._PIECE = kept


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ('{"a": 1, "a": 2}', Pairs((("a", 1), ("a", 2))), {"duplicate_keys"}),
        ('{"a": 1, "\\u0061": 2}', Pairs((("a", 1), ("a", 2))), {"duplicate_keys"}),
        ('{"a": 1, "a": 2, "b": "\\u0022\\u0022"}', Pairs((("a", 1), ("a", 2), ("b", '""'))), {"duplicate_keys"}),
        ('{"": 1, "": 1}', Pairs((("", 1), ("", 1))), {"duplicate_keys"}),
        ("[18446744073709551616]", [18446744073709551616], set()),
        ("[-9223372036854775809]", [-9223372036854775809], set()),
        ("[1e400, -1e400, 1e-400]", ["1e400", "-1e400", "1e-400"], {"number_as_text"}),
        ("[" + "9" * 4001 + "]", ["9" * 4001], {"number_as_text"}),
        ("[" + "9" * 4000 + "]", [10**4000 - 1], set()),
        ("[0.12345678901234567891]", [0.12345678901234568], {"rounded_number"}),
        ("[9007199254740993e0]", [9007199254740992.0], {"rounded_number"}),
        ("[8.061587129083921]", [float("8.061587129083921")], {"rounded_number"}),
        ("[8.061587129083921, NaN]", [float("8.061587129083921"), math.nan], {"non_finite", "rounded_number"}),
        ("[9007199254740993.0]", [9007199254740992.0], {"rounded_number"}),
        ("[0.10000000000000001, 0.1000000000000000000]", [0.1, 0.1], set()),
        ("[0.1000000000000000055511151231257827021181583404541015625]", [0.1], set()),
        ("[5e-324, 1.5e-320]", [5e-324, 1.5e-320], set()),
        ("[1.2345e-320]", [1.2345e-320], {"rounded_number"}),
        ("[NaN, -Infinity]", [math.nan, -math.inf], {"non_finite"}),
        ('["\\ud83d\\ude00", "\\\\ud83d"]', ["\U0001f600", "\\ud83d"], set()),
        ('["\\ud83d"]', ["\ud83d"], {"lone_surrogate"}),
        ('["\\ude00\\ud83d"]', ["\ude00\ud83d"], {"lone_surrogate"}),
        ('["NaN", "1e400", "x 0.12345678901234567891 y"]', ["NaN", "1e400", "x 0.12345678901234567891 y"], set()),
        (' \u00a0"text"\n', "text", set()),
        ("-0.0", -0.0, set()),
    ],
)
def test_exact_values(text: str, value: Any, met: set[str]) -> None:
    found = read(text)
    assert found is not None
    assert (exact(found[0]), set(found[1])) == (exact(value), met)


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "[1,]", "{'a': 1}", "[1] [2]", "\ufeff[1]", "[01]", "[.5]", "[1.]", '["\n"]', "nul", "[1", "}"],
)
def test_not_json(text: str) -> None:
    assert read(text) is None


def test_depth_is_counted_exactly() -> None:
    """H5, and nothing recurses: MAX_DEPTH levels are read, one more is not, mixed or in the middle of a long list."""
    for level, end in (("[", "]"), ('{"a":', "}")):
        deepest = level * (MAX_DEPTH - 1) + "[]" + end * (MAX_DEPTH - 1)
        assert read(deepest) is not None
        assert read(f"[{deepest}]") is None
        assert read("[NaN," + deepest[1:-1] + "]" if level == "[" else "[NaN]") is not None
        assert read(f"[NaN,{deepest}]") is None
    assert keeping._SPARE_LEVELS >= 0
    inner = "[" * (MAX_DEPTH - 3) + "]" * (MAX_DEPTH - 3)
    for levels, readable in ((inner, True), (f"[{inner}]", False)):
        records = ",".join(['{"id":1}', f'{{"id":{levels}}}', '{"id":2}'] * 3)
        for _ in range(2):
            kept, strictjson._PIECE = strictjson._PIECE, 1
            try:
                found = read(f'{{"rows":[{records}]}}')
            finally:
                strictjson._PIECE = kept
            assert (found is not None) == readable
    assert read("[" * 100_000 + "]" * 100_000) is None
    assert read('{"a":' * 100_000 + "1" + "}" * 100_000) is None


def test_long_text_is_the_same_in_pieces() -> None:
    records = [{"id": i, "name": f"n{i}", "tags": [{"id": i}, {"id": -i}], "x": i / 7} for i in range(10_000)]
    for text in (
        json.dumps(records),
        json.dumps({"kind": "List", "items": records, "next": None}, indent=2),
        json.dumps({"first": records[:5000], "second": records[5000:], "third": records[:9]}),
        json.dumps({"first": {"items": records[:5000]}, "second": [{"items": records}]}, separators=(",", ":")),
    ):
        found = read(text)
        assert found is not None
        assert json.dumps(found[0]) == json.dumps(json.loads(text))
        assert found[1] == frozenset()
    odd = json.dumps(records).replace('"id": 5000,', '"id": 5000, "id": 1e400,')
    found = read(odd)
    assert found is not None
    assert found[1] == {"duplicate_keys", "number_as_text"}
    assert found[0][5000] == Pairs((("id", 5000), ("id", "1e400"), *list(records[5000].items())[1:]))
    assert found[0][4999] == records[4999]
    assert len(found[0]) == 10_000


line_ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n", " \n\t\n  "])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(containers(scalars).map(lambda text: text.replace("\n", " ").replace("\r", " ")), line_ends)))
def test_lines(records: list[tuple[str, str]]) -> None:
    text = "".join(line + end for line, end in records)
    kept = strictjson._PIECE
    try:
        for strictjson._PIECE in (1, 30, kept):
            found = read_lines(text)
            assert records == [] or found is not None
            for (line, _), (value, start, end, met) in zip(records, found or [], strict=True):
                wanted = reference(line)
                assert wanted is not None
                assert text[start:end] == line.strip()
                assert exact(value) == exact(wanted[0])
                assert met == tuple(sorted(wanted[1]))
    finally:
        strictjson._PIECE = kept


def test_flags_belong_to_their_line() -> None:
    text = '{"a": 1}\r\n\r\n  {"a": 1, "a": 1e400}\r\n[NaN]\n'
    assert read_lines(text) == [
        ({"a": 1}, 0, 8, ()),
        (Pairs((("a", 1), ("a", "1e400"))), 14, 34, ("duplicate_keys", "number_as_text")),
        ([pytest.approx(math.nan, nan_ok=True)], 36, 41, ("non_finite",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"a": 1}\n{"a": 2} {"a": 3}',
        '{"a": 1},{"a": 2}\n{"a": 3}',
        '[1\n2],{"a":1},[3]',
        '{"a": 1}\n\x7f\n{"a": 3}',
        '{"a": 1},"\x7f",{"a": 2}\n{"a": 3}',
        '{"a": 1},5,{"a": 2}\n{"a": 3}',
        '[{}\n{}],"\\u007f",{}',
        '[{}\n{}],"\x7f",{}',
        '{"a":\n1}',
        '{"a": 1}\n"text"',
        '{"a": 1}\n12',
        '{"a": 1}\nprose',
        '{"a": 1}\n{"a": 1',
        "[2026-03-01] started\n[2026-03-01] stopped",
        "{'a': 1}\n{'a': 2}",
        '[{"a": 1},\n{"a": 2}]',
    ],
)
def test_not_lines(text: str) -> None:
    assert read_lines(text) is None


@settings(max_examples=100, deadline=None)
@given(documents, st.sampled_from(["", " ", "]", "x", ",{"]), st.data())
def test_raw_decode_reads_what_the_reference_reads(text: str, after: str, data: st.DataObject) -> None:
    """In the middle of a text, and damaged: the look at the first tokens refuses nothing that is JSON."""
    at = data.draw(st.integers(0, len(text)))
    for inner in (text, text[:at] + data.draw(st.sampled_from(["[", "}", '"', ",", "1", "x"])) + text[at:]):
        decoder, source = Decoder(), "x" + inner.lstrip() + after
        try:
            wanted, end = Decoder().raw_decode(source, 1)
        except ValueError:
            assert raw_decode(decoder, source, 1)[:2] == (None, 1)
        else:
            value, stop, failed = raw_decode(decoder, source, 1)
            assert (exact(value), stop, failed) == (exact(wanted), end, -1)


def test_raw_decode_goes_on_behind_what_is_too_deep() -> None:
    """Where the scan goes on, 600 levels further in, containers still are nested too deep."""
    decoder = Decoder()
    for level, close, offset in (("[", "]", 600), ('{"a":', "}", 599 * 5 + 1), ('[{"a":"[[[["},', "]", 598 * 14 + 2)):
        text = level * 20_000 + "1" + close * 20_000
        assert raw_decode(decoder, text, 0) == (None, 0, offset)


def test_raw_decode_reports_only_its_own_flags() -> None:
    decoder = Decoder()
    text = 'x {"a": 1, "a": [2}  [1e400] {"a": "' + "y" * 10_000 + '", "a": "\\ud800"} z'
    assert raw_decode(decoder, text, 2) == (None, 2, 18)
    assert raw_decode(decoder, text, 21) == (["1e400"], 28, -1)
    assert flags(text[21:28], decoder) == ("number_as_text",)
    value, end, failed = raw_decode(decoder, text, 29)
    assert (value, failed) == (Pairs((("a", "y" * 10_000), ("a", "\ud800"))), -1)
    assert flags(text[29:end], decoder) == ("duplicate_keys", "lone_surrogate")
    assert flags("[1]", decoder) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2_000_000,
        "[" * 1_000_000 + "]" * 1_000_000,
        '{"a":' * 400_000 + "}",
        '[{"a":1}' + " " * 1_000_000 + "," + " " * 1_000_000 + "}]",
        '["' + "\\" * 2_000_001 + '"]',
        '["' + "\\ud800" * 300_000 + '"]',
        "[" + "9" * 2_000_000 + "]",
        "[0." + "1" * 2_000_000 + "]",
        "[1e" + "0" * 2_000_000 + "1]",
        "[" + "9" * 1_000_000 + "e-" + "9" * 1_000_000 + "]",
        "[" + ",".join(["0.12345678901234567891"] * 90_000) + "]",
        "[" + '{"a":1},{"a"' * 160_000 + "]",
        "\n" * 2_000_000,
        "{" + "\n" * 2_000_000 + "x",
        '{"a":1}\n' * 250_000 + "{",
    ],
    ids=lambda text: text[:12].strip() or "blanks",
)
def test_hostile_texts_end_soon(text: str) -> None:
    """2 MB each; the slowest takes a fraction of this limit, and what takes the square of it takes hours."""
    began = time.process_time()
    same_start = read(text)
    read_lines(text)
    assert time.process_time() - began < 10
    assert same_start is None or len(same_start[0]) in (1, 90_000)


def test_what_follows_a_long_list_is_left_to_others() -> None:
    """The records before a damaged place are read ahead; what is left is the same document with a shorter list."""
    records = [{"id": i, "name": f"n{i}", "x": [i, None]} for i in range(20_000)]
    for text, damaged in (
        (json.dumps({"kind": "List", "data": {"items": records}}), '"n19990'),
        (json.dumps(records, indent=1), '"n19990'),
    ):
        cut = text[: text.index(damaged) + 3]
        ahead = strictjson.read_ahead(cut)
        assert ahead is not None
        assert ahead.records is not None
        assert cut[: ahead.cuts[0][0]] + cut[ahead.cuts[-1][1] + len(",") :] == ahead.rest
        assert len(ahead.rest) < 2 * strictjson._PIECE + 100
        assert ahead.records == records[: len(ahead.records)]
        assert ahead.flags == frozenset()
        assert read(cut) is None
        whole = strictjson.read_ahead(text)
        assert whole is not None
        value = json.loads(whole.rest)
        assert whole.join(value)
        assert value == json.loads(text)
        assert not whole.join({"other": []})
        assert not whole.join({"kind": "List", "data": {"items": "cut"}})
    assert strictjson.read_ahead("prose first " + json.dumps(records)) is None
    assert strictjson.read_ahead("[1, 2, 3]") is None
