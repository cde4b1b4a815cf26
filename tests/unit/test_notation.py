"""The notation: exact, never dearer than JSON or TOON, and short where a table, a prefix or a series repeats itself."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import toon_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyve import codecs, notation
from hyve.strictjson import Pairs
from hyve.tokens import count_tokens
from tests.unit.notation_reader import read

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

HOSTILE = [
    *("", " ", "a b", " a", "a ", "-", "null", "true", "NaN", "-Infinity", "1", "1.0", "-0", "007", "+5", "1e5", "1."),
    *(
        "a,b",
        ",",
        ";",
        "a;b",
        ":",
        "a:b",
        "a: b",
        "[",
        "]",
        "{",
        "}",
        "(x)",
        "[1 2]",
        "{a:1}",
        "[3]{a,b}",
        "a{b}",
        "}x",
    ),
    *(
        "# a",
        "#",
        "!x",
        "!",
        "=",
        "=x",
        "x = y",
        "5:x",
        "..",
        "1..3",
        "a..b by 2",
        "stand by 3",
        "*",
        "a*",
        "<ss>",
        ">",
    ),
    *(
        '"',
        '"a"',
        'a"b',
        "\\",
        "\\n",
        "\\u0041",
        "\\u{d83d}",
        "\n",
        "a\nb",
        "\n b",
        "\t",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
    ),
    *(
        "\ud800",
        "\udc00",
        "\ud83d\ude00",
        "é",
        "日本",
        "😀",
        "\u3000x",
        "(key)",
        "(values)",
        "(values):[]",
        "A",
        "B",
        "key",
    ),
    *("# * in a head: the cell goes there", "items:[2]{a,b}", "2025-01-01", "2025-01-02T10:00:00.5Z", "- a", "a: 1"),
]
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=8),
    st.text(st.sampled_from('ab1,;:[]{}()!=#*<>"\\ \n.-T\ud800'), max_size=8),
)
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.sampled_from(
        [0, 1, -1, 0.0, -0.0, 1.0, 1e16, 1e-7, 5e-324, 10**400, math.inf, -math.inf, math.nan, 12345678901]
    ),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
KEYS = st.one_of(st.sampled_from(["a", "b", "c", "id", "time"]), TEXTS)
ABSENT = object()


@st.composite
def columns(draw: st.DrawFn, count: int, inner: st.SearchStrategy[Any]) -> list[Any]:
    """Values of one field: series, times, prefixes, repeated texts, lists of records, anything."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        start, step = draw(st.integers(-5, 10**10)), draw(st.sampled_from([1, -1, 2, 60]))
        return [start + step * i for i in range(count)]
    if kind == 1:
        shape = draw(st.sampled_from(["ORD-%03d", "%d", "stand by %d", "a*%d", "v%d.x", "1.%d", "0%d", "pod %d"]))
        start = draw(st.sampled_from([0, 1, 8, 98]))
        return [shape % (start + i) for i in range(count)]
    if kind in (2, 3):
        layouts = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S.%f+02:00"]
        layout, start = draw(st.sampled_from(layouts)), datetime(2024, 2, 28, 23, 59, 30)
        if kind == 2:
            step = draw(st.sampled_from([1, 0.25, 15, 60, 3600, 86400, -90]))
            return [(start + timedelta(seconds=step * i)).strftime(layout) for i in range(count)]
        steps = draw(
            st.lists(st.integers(0, draw(st.sampled_from([50, 10**5, 10**9]))), min_size=count, max_size=count)
        )
        return [(start + timedelta(seconds=step)).strftime(layout) for step in steps]
    if kind == 4:
        left, right = (
            draw(st.sampled_from(["/api/v1/", "SKU-", "0.", "Error: ", " ", "["])),
            draw(st.sampled_from(["", ".com", "\n"])),
        )
        return [left + draw(TEXTS) + right for _ in range(count)]
    if kind == 5:
        names = st.sampled_from(
            ["checkout-7d9f8b6c5-x2x4z", "payments, and more of it; [yes]", "A", "third-one-55555-9999"]
        )
        return [draw(names) for _ in range(count)]
    if kind == 6:
        return [draw(inner)] * count
    if kind == 7:
        size = draw(st.sampled_from([1, 1, 2, 3, None]))
        return [draw(tables(st.just(draw(st.integers(0, 3)) if size is None else size), inner)) for _ in range(count)]
    return [draw(inner) for _ in range(count)]


@st.composite
def tables(draw: st.DrawFn, counts: st.SearchStrategy[int], inner: st.SearchStrategy[Any]) -> list[Any]:
    """Lists of records with fields left out, in another order, or replaced by something else."""
    count = draw(counts)
    keys = draw(st.lists(KEYS, min_size=1, max_size=4, unique=True))
    named = {key: draw(columns(count, inner)) for key in keys}
    records: list[Any] = [
        {key: values[i] for key, values in named.items() if values[i] is not ABSENT and draw(st.integers(0, 9))}
        for i in range(count)
    ]
    for i in range(count):
        change = draw(st.integers(0, 40))
        if change == 0:
            records[i] = draw(inner)
        elif change == 1:
            records[i] = dict(reversed(records[i].items()))
        elif change == 2:
            records[i] = Pairs((("a", 1), ("a", records[i])))
    if draw(st.integers(0, 6)) == 0:
        return [list(record.values()) if isinstance(record, dict) else record for record in records]
    return records


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.tuples(st.one_of(KEYS, st.integers(), st.none(), st.booleans()), inner)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        tables(st.sampled_from([2, 3, 5, 9, 12]), inner),
        st.dictionaries(KEYS, st.fixed_dictionaries({"a": inner, "b": SCALARS}), max_size=5),
        st.lists(pairs, min_size=1, max_size=2).map(lambda some: Pairs([*some, some[0]])),
    )


VALUES = st.recursive(SCALARS, _containers, max_leaves=6)


def same(one: Any, other: Any) -> bool:
    """Equal in type, bits and order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


def compact(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    lone = any("\ud800" <= character <= "\udfff" for character in text)
    return json.dumps(value, separators=(",", ":")) if lone else text


def has_pairs(value: Any) -> bool:
    if isinstance(value, Pairs):
        return True
    return isinstance(value, list | dict) and any(map(has_pairs, value.values() if isinstance(value, dict) else value))


@QUICK
@given(VALUES)
def test_any_value_reads_back(value: Any) -> None:
    assert same(read(notation.encode([value])), [value])


@QUICK
@given(st.lists(VALUES, max_size=3))
def test_any_values_read_back_and_the_same_values_give_the_same_text(values: list[Any]) -> None:
    text = notation.encode(values)
    assert same(read(text), values)
    assert notation.encode(values) == text


@QUICK
@given(tables(st.sampled_from([3, 6, 10, 16, 30]), SCALARS))
def test_any_table_reads_back(table: list[Any]) -> None:
    assert same(read(notation.encode([table])), [table])
    assert same(read(notation.encode(table)), table)


@st.composite
def wide_tables(draw: st.DrawFn) -> Any:
    """Few records of many fields, in groups and in lists that hold one object."""
    count = draw(st.integers(2, 9))
    fields = {f"f{i}": draw(columns(count, SCALARS)) for i in range(20)}
    flat = [{key: values[i] for key, values in fields.items()} for i in range(count)]
    inner = [{key: record[key] for key in list(record)[:6] if draw(st.integers(0, 30))} for record in flat]
    form = draw(st.integers(0, 3))
    if form == 1:
        inner = [[one] for one in inner]
    elif form == 2:
        inner = [draw(st.sampled_from([one, [one], [], [one, one], None])) for one in inner]
    records = [record | {"in": one, "end": {}} for record, one in zip(flat, inner, strict=True)]
    return {f"k {i}": record for i, record in enumerate(records)} if form == 3 else records


@settings(QUICK, max_examples=40)
@given(wide_tables())
def test_any_wide_table_reads_back(table: Any) -> None:
    assert same(read(notation.encode([table])), [table])


@QUICK
@given(VALUES)
def test_never_dearer_than_json_or_toon(value: Any) -> None:
    if has_pairs(value) or value == {} or value in ("NaN", "Infinity") or not same(json.loads(compact(value)), value):
        return  # JSON can't hold it; shown as {}, for nothing at all says nothing; texts that bare would be numbers
    costs = [count_tokens(compact(value))]
    try:
        toon = toon_format.encode(value)
        if same(toon_format.decode(toon), value):
            costs.append(count_tokens(toon))
    except ValueError:
        pass
    assert count_tokens(notation.encode([value])) <= min(costs)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_anywhere(text: str) -> None:
    records = [{"a": text, "b": i, text: i % 3} for i in range(12)]
    lists = [{"a": [{"x": text, "y": i}, {"x": "z", "y": text}], "b": text} for i in range(12)]
    for value in (
        text,
        [text],
        {"a": text},
        {text: text},
        records,
        lists,
        [[text, i] for i in range(12)],
        {"a": [text] * 9},
    ):
        for values in ([value], [value, value]):
            assert same(read(notation.encode(values)), values)
            assert same(read(notation._notation(values)), values) or not isinstance(value, list | dict)


def test_types_are_told_apart() -> None:
    values = [1, 1.0, "1", True, "true", None, "null", "", -0.0, 0, math.inf, "Infinity", 10**30, "2025-01-01"]
    for column in (values, values[::-1]):
        table = [{"v": value, "n": i} for i, value in enumerate(column)]
        assert same(read(notation.encode([table])), [table])


def test_missing_null_empty_and_objects_without_keys() -> None:
    table = [
        {"a": 1, "b": {"x": 1, "y": 2}},
        {"a": 2},
        {"a": None, "b": None},
        {"a": "", "b": {}},
        {},
        {"b": {"y": None}},
    ]
    table += [{"a": i, "b": {"x": i, "y": i}} for i in range(20)]
    text = notation.encode([table])
    assert same(read(text), [table])
    assert text.split("\n")[:8] == [
        "# empty cell: no such key; !x: x instead of a record",
        "[26]{a,b{x,y}}",
        "1,1,2",
        "2",
        "null,!null",
        '"",!{}',
        ",",
        ",,null",
    ]


def test_orders_with_items() -> None:
    orders = [
        {
            "id": f"ORD-{i * i:04}",
            "customer": {"name": f"Name {i * i}", "email": f"n{i * 7}@example.com"},
            "currency": "EUR",
            "items": [{"sku": f"SKU-{i}{j}X", "price": 1.5 * j} for j in range(2 + i % 2)],
            "at": f"2025-03-{1 + i * 5 % 28:02}T08:{i * 7 % 60:02}:11Z",
        }
        for i in range(40)
    ]
    text = notation.encode([{"orders": orders}])
    assert text.split("\n")[:7] == [
        "# name:x in a head: x in all rows; * or <...> in a head: the cell goes there, a time without - and :; "
        "rows of name[]>{...} stand below their record",
        "orders:[40]{id:ORD-*,customer{name:Name *,email:*@example.com},currency:EUR,items[]>{sku:SKU-*,price},"
        "at:2025-03-<ddThhmm>:11Z}",
        "0000,0,n0,01T0800",
        " 00X,0.0",
        " 01X,1.5",
        "0001,1,n7,06T0807",
        " 10X,0.0",
    ]
    assert same(read(text), [{"orders": orders}])


def test_a_series_counts_on_and_says_where_it_is() -> None:
    points = [[1_700_000_000 + 60 * i, str(i * i % 97 / 7)] for i in range(300)]
    text = notation.encode([{"metric": {"job": "api"}, "values": points}])
    assert text.split("\n")[:8] == [
        "# * in a head: the cell goes there; a..b in a head: counts on row by row, every 5th row begins with it",
        "metric:{job:api}",
        'values:[300](0:1700000000..1700017940 by 60,1:"*")',
        "0.0",
        "0.14285714285714285",
        "0.5714285714285714",
        "1.2857142857142858",
        "1700000240:2.2857142857142856",
    ]
    assert same(read(text), [{"metric": {"job": "api"}, "values": points}])


def test_few_wide_records_have_a_line_per_field() -> None:
    pods = [
        {f"field{i}": f"value-{i}" for i in range(20)} | {"name": f"checkout-7d9f8b-{i * 37}", "ip": f"10.0.0.{i + 3}"}
        for i in range(3)
    ]
    text = notation.encode([{"items": pods}])
    assert text.startswith("# name:x in a head: x in all rows; ")
    assert "\nitems:[3]{\nfield0:value-0\n" in text
    assert "\nname:checkout-7d9f8b-* = 0,37,74\n" in text
    assert same(read(text), [{"items": pods}])


def test_long_values_that_come_again_get_a_code() -> None:
    names = ["checkout-7d9f8b6c5-x2x4z", "payments-66d8f7c9b4-q8lzn"]
    table = [{"pod": names[i * i % 3 % 2], "v": i * 7919 % 1000} for i in range(60)]
    text = notation.encode([table])
    assert text.split("\n")[1] == f"[60]{{pod:{{A:{names[0]} B:{names[1]}}},v}}"
    assert same(read(text), [table])


def test_objects_are_json_without_what_nothing_needs() -> None:
    value = {"status": "success", "n": 3, "data": {"type": "two words", "tags": ["a", "b"], "none": None, "empty": {}}}
    assert notation.encode([value]) == 'status:success n:3\ndata:{type:"two words" tags:[a b] none:null empty:{}}'


def test_an_object_of_records_is_a_table_with_a_key_column() -> None:
    value = {"flags": {f"flag {i}": {"on": i % 2 == 0, "share": i * 7 % 100} for i in range(12)}}
    lines = notation.encode([value]).split("\n")
    assert lines[1:4] == ["flags:[12]{(key):flag *,on,share}", "0,true,0", "1,false,7"]
    assert same(read("\n".join(lines)), [value])


def test_json_stays_json_where_little_is_saved() -> None:
    value = ["x" * 50, "y y " * 50]
    assert notation.encode([value]) == compact(value)


def test_nothing_and_deep_nesting() -> None:
    assert read(notation.encode([])) == []
    assert notation.encode([{}]) == "{}"
    deep: Any = 1
    for i in range(150):
        deep = {"a": deep, "b": i} if i % 2 else [deep]
    assert notation.encode([deep]) == compact(deep)
    assert same(read(notation.encode([deep])), [deep])
    limit = sys.getrecursionlimit()
    deepest: Any = Pairs(((1, "\ud83d\ude00"), (1, 2)))
    for _ in range(2000):
        deepest = [deepest]
    text = notation.encode([deepest])
    assert text == "[" * 2000 + '{(1):"\\u{d83d}\\ude00",(1):2}' + "]" * 2000
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "value",
    [
        "a" * 3_000_000,
        ["1" * 1_000_000 + "x", "1" * 1_000_000 + "y"] * 3,
        [{"a": "/" + "a" * 1_000_000 + f"!{'b' * 10}{i}"} for i in range(3)],
        [{"a": "\\" * 300_000, "b": '"' * 300_000, "c": " " * 300_000 + str(i)} for i in range(3)],
        [{f"k{i}": i for i in range(10_000)}] * 3,
        [{f"k{i}": i, "x": 1} for i in range(10_000)],
        [list(range(i % 7)) for i in range(30_000)],
    ],
    ids=["one text", "digits", "prefixes", "escapes", "wide", "maps", "ragged"],
)
def test_time_is_linear_in_the_text(value: Any) -> None:
    began = time.process_time()
    text = notation.encode([value])
    assert time.process_time() - began < 5
    assert text


def test_deep_tables_take_no_longer_at_each_level() -> None:
    value: Any = [{"a": i, "b": str(i)} for i in range(20)]
    for i in range(25):
        value = [{"id": 1, "in": value, "s": i}, {"id": 2, "in": [], "s": i}, {"id": 3, "in": [{"a": i}], "s": i}]
    began = time.process_time()
    text = notation.encode([value])
    assert time.process_time() - began < 5
    assert same(read(text), [value])


def test_times_for_views() -> None:
    found = codecs.times([f"2025-05-{20 + i}T0{i}:11:0{i}.{i}78Z" for i in range(9)] + [None])
    assert found is not None
    assert (found.kind, found.header, (found.cells or ())[1]) == ("time", ":2025-05-<ddThhmmss.f>Z", "21T011101.178")
    assert (found.cells or ())[-1] == ""
    assert codecs.times(["a", "b", None]) is None
    assert codecs.times([None, None]) is None


def test_several_values_cost_no_more_than_a_table_of_toon() -> None:
    """Invariant 4 for JSON lines, whose TOON is that of their list."""
    for values in ([{"a": i, "b": [i, {"c": "x y"}]} for i in range(5)], [[1, "a"], [2, "b"]], [1, None, "x"]):
        text = notation.encode(values)
        assert count_tokens(text) <= count_tokens("(values)" + toon_format.encode(values))
        assert read(text) == values
        assert read(notation.in_toon(values)) == values


@pytest.mark.skipif("HYVE_CORPUS" not in os.environ, reason="HYVE_CORPUS is not set")
def test_toon_datasets_cost_at_most_seven_tenths() -> None:
    from tests.bench.notation import cheapest_toon, datasets

    total = best = number = 0
    for file, value in datasets(Path(os.environ["HYVE_CORPUS"]) / "toon"):
        text = notation.encode([value])
        assert same(read(text), [value]), file
        cheaper = min(count_tokens(compact(value)), cheapest_toon(file, value))
        assert count_tokens(text) <= cheaper, file
        total, best, number = total + count_tokens(text), best + cheaper, number + 1
    assert number == 24
    assert total <= 0.7 * best
