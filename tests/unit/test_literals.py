"""Python literals and reprs (H6)."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import math
import pprint
import warnings
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hyve.literals import read_literal
from hyve.strictjson import Pairs


def value(source: str) -> Any:
    found = read_literal(source)
    assert found is not None
    return found[0]


def flags(source: str) -> tuple[str, ...]:
    found = read_literal(source)
    assert found is not None
    return found[1]


class Pod(NamedTuple):
    name: str
    replicas: int


class Color(enum.Enum):
    RED = 1


UTC = datetime.UTC
WEST = datetime.timezone(datetime.timedelta(hours=-7))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (repr({"a": None, "b": [True, -1.5], "c": ("x", 1)}), {"a": None, "b": [True, -1.5], "c": ["x", 1]}),
        (repr(datetime.datetime(2024, 5, 1, 12, 0, 30, tzinfo=UTC)), "2024-05-01T12:00:30+00:00"),
        (repr(datetime.datetime(2024, 5, 1, 12, 0, tzinfo=WEST)), "2024-05-01T12:00:00-07:00"),
        (repr(datetime.datetime(2024, 5, 1, 0, 0, 0, 7)), "2024-05-01T00:00:00.000007"),
        ("datetime.datetime(2024, 5, 1, tzinfo=tzutc())", "2024-05-01T00:00:00+00:00"),
        ("datetime(2024, 5, 1, tzinfo=<UTC>)", "2024-05-01T00:00:00+00:00"),
        ("datetime(2024, 5, 1, tzinfo=tzoffset(None, 7200))", "2024-05-01T00:00:00+02:00"),
        ("datetime(2024, 5, 1, tzinfo=psycopg2.tz.FixedOffsetTimezone(offset=60))", "2024-05-01T00:00:00+01:00"),
        (
            "datetime(2024, 5, 1, tzinfo=<DstTzInfo 'Europe/Berlin' CEST+2:00:00 DST>)",
            "2024-05-01T00:00:00+02:00",
        ),
        (repr(datetime.date(2024, 5, 1)), "2024-05-01"),
        (repr(datetime.time(12, 30)), "12:30:00"),
        (repr(datetime.timedelta(days=1, seconds=3)), "1 day, 0:00:03"),
        (repr(decimal.Decimal("1.50")), "1.50"),
        ("UUID('12345678-1234-5678-1234-567812345678')", "12345678-1234-5678-1234-567812345678"),
        ("Timestamp('2024-01-01 00:00:00+0000', tz='UTC')", "2024-01-01 00:00:00+0000"),
        ("[np.float64(1.5), np.int64(-3), np.True_]", None),
        ("[np.float64(1.5), np.int64(-3)]", [1.5, -3]),
        ("array([1., 2.], dtype=float32)", [1.0, 2.0]),
        (repr(collections.OrderedDict(a=1, b=[2])), {"a": 1, "b": [2]}),
        (repr(collections.defaultdict(list, {"a": [1]})), {"a": [1]}),
        (repr(collections.Counter("aab")), {"a": 2, "b": 1}),
        (repr(collections.deque([1, 2], maxlen=3)), [1, 2]),
        (repr(Pod("x", 2)), {"__class__": "Pod", "name": "x", "replicas": 2}),
        (repr([Color.RED]), ["<Color.RED: 1>"]),
        ("{'a': <object object at 0x7f>, 'b': 'x<y'}", {"a": "<object object at 0x7f>", "b": "x<y"}),
        (repr({1, 2}), [1, 2]),
        ("set()", []),
        ("(1+2j)", "1+2j"),
        ("{'a': null, 'b': true, 'c': false}", {"a": None, "b": True, "c": False}),
        ("[1, ..., (2, ...), {...}, {1, ...}]", [1, [2], {}, [1]]),
        ("[Ellipsis, f(...)]", ["Ellipsis", "f(...)"]),
        ("{'a': ...}", None),
        ("...", None),
        ("[x]", None),
        ("[*a]", None),
        ("{**a}", None),
        ("[f'{x}']", None),
        ("[1 + 2]", None),
        ("print('x'", None),
    ],
)
def test_literals_and_reprs(source: str, expected: Any) -> None:
    found = read_literal(source)
    assert (found and found[0]) == expected


def test_zones_that_are_more_than_an_offset_stay_source_text() -> None:
    source = "datetime.datetime(2024, 5, 1, tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin'))"
    assert value(source) == source
    source = "datetime.datetime(2024, 5, 1, fold=1)"
    assert value(source) == source


@pytest.mark.parametrize(
    "call", ["__import__('os').system('true')", "Foo(1, a=2)", "f(**x)", "Foo(a=x)", "date(1, 1)(2)"]
)
def test_other_calls_are_their_source_text(call: str) -> None:
    assert value(f"['é', {call}, 'x']") == ["é", call, "x"]
    assert flags(f"[{call}]") == ("constructor_call",)


def test_keys_that_are_no_text() -> None:
    found = value("{1: 'a', True: 'b', 1.0: 'c', (1, 2): 'd', None: 'e', 'f': 'g'}")
    assert isinstance(found, Pairs)
    assert [(type(key), key, item) for key, item in found] == [
        (int, 1, "a"),
        (bool, True, "b"),
        (float, 1.0, "c"),
        (list, [1, 2], "d"),
        (type(None), None, "e"),
        (str, "f", "g"),
    ]
    assert flags("{1: 'a', True: 'b'}") == ()
    assert flags("{1: 'a', 1: 'b'}") == ("duplicate_keys",)
    assert value("{'a': 1, 'a': 2, 'b': (1,)}") == Pairs([("a", 1), ("a", 2), ("b", [1])])


def test_bytes_lose_nothing() -> None:
    assert value("{'a': b'abc', 'b': b'\\xc3\\xa9', 'c': b'\\xff\\\\xff'}") == {
        "a": "abc",
        "b": "é",
        "c": "b'\\xff\\\\xff'",
    }
    assert flags("[b'x']") == ("bytes",)


def test_numbers_are_exact_or_flagged() -> None:
    assert value("{'a': 1e400, 'b': (-1e400,), 'n': 123456789012345678901234567890}") == {
        "a": "1e400",
        "b": ["-1e400"],
        "n": 123456789012345678901234567890,
    }
    assert flags("[1e400, (1,)]") == ("number_as_text",)
    assert flags("[0.1234567890123456789012, (1,)]") == ("rounded_number",)
    assert value("(1E-400, -0.1E-400, 0E-400, 5e-324)") == ["1E-400", "-0.1E-400", 0.0, 5e-324]
    assert flags("(1E-400, 0.5)") == ("number_as_text",)
    assert repr(value("[float('nan'), float('-inf'), float('Infinity'), float('1.5'), float(x)]")) == (
        """[nan, -inf, inf, "float('1.5')", 'float(x)']"""
    )
    assert flags("[float('nan')]") == ("constructor_call", "non_finite")
    found = value("[nan, -inf, (float,)]".replace(", (float,)", ""))
    assert math.isnan(found[0])
    assert found[1] == -math.inf
    assert flags("[nan, (1,)]") == ("non_finite",)


def test_lone_surrogates_are_flagged() -> None:
    assert flags("['\\ud83d', (1,)]") == ("lone_surrogate",)


def test_unknown_escapes_are_kept_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value(r"('C:\dir', 'a\\b', 'x\'y')") == ["C:\\dir", "a\\b", "x'y"]


def test_strings_are_joined_only_where_one_was_broken_over_lines() -> None:
    printed = {"a": "word " * 40, "b": ["x" * 90, "y\n" * 60]}
    assert value(pprint.pformat(printed)) == printed
    for source in (
        "['a' 'b']",
        "{'a' 'b': 1}",
        "{'a'\n 'b': (1,)}",
        "['a'\n'b', (1,)]",
        "{'a' 'b', 'c'}",
        "(('a' 'b'),)",
    ):
        assert read_literal(source) is None
    assert read_literal("{'a': 'b' 'c': 1}") is None
    assert read_literal('{"a": "it\'s" "None"}') is None
    long = "x" * 70_000
    assert read_literal(f"['a' '{long}', None]") is None
    assert read_literal(f"{{'a' '{long}': None}}") is None
    assert value(f"{{'a': 'b' '{long}', 'c': None}}") == {"a": "b" + long, "c": None}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{'k': 'x' 'y', 'z': 1}", {"k": "xy", "z": 1}),
        ("{'k': 'it\\'s' \"a\"\n r'\\d', 'z': ['y']}", {"k": "it'sa\\d", "z": ["y"]}),
        ("{'k': ('x'\n'y')}", {"k": "xy"}),
        ("Pod(name='a' 'b')", {"__class__": "Pod", "name": "ab"}),
        ("{'k': b'a' b'b'}", {"k": "ab"}),
        ("{'k': '''triple''', 'z': 1}", {"k": "triple", "z": 1}),
        ("{'k': '''it's\n\"two\" lines''', 'z': (1,)}", {"k": 'it\'s\n"two" lines', "z": [1]}),
        ('["""a "b" c""", None, r\'\'\'\\w\'\'\']', ['a "b" c', None, "\\w"]),
    ],
)
@pytest.mark.parametrize("count", [1, 3_000])
def test_strings_side_by_side_and_triple_quoted_ones(source: str, expected: Any, count: int) -> None:
    """Python's grammar joins them; nothing else can stand behind a key."""
    assert value(source) == expected
    assert value("[" + ", ".join([source] * count) + "]") == [expected] * count


def test_long_literals_are_read_piece_by_piece() -> None:
    records = [{"id": n, "name": f"it's {n}", "tags": ("a", "b"), "none": None} for n in range(1500)]
    expected = [{**record, "tags": ["a", "b"]} for record in records]
    assert value(repr(records)) == expected
    assert value(repr(tuple(records))) == expected
    assert value(repr({"x": records, "y": {str(n): record for n, record in enumerate(records)}, "z": 1})) == {
        "x": expected,
        "y": {str(n): record for n, record in enumerate(expected)},
        "z": 1,
    }
    assert value(repr({n: (n,) for n in range(6_000)})) == Pairs((n, [n]) for n in range(6_000))
    assert value(repr({("a", n) for n in range(5_000)}).replace("{", "{", 1))[0][0] == "a"


@pytest.mark.parametrize("source", ["[(1, 'a')] x" + " " * 70_000, "[(1), " + "x, " * 40_000 + "]", "[(" * 50_000])
def test_long_texts_that_are_no_literal(source: str) -> None:
    assert read_literal(source) is None


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=8)
literals = st.recursive(
    scalars,
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), children, max_size=4)
    ),
    max_leaves=20,
)


def plain(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return [plain(child) for child in item]
    if isinstance(item, dict):
        return {key: plain(child) for key, child in item.items()}
    if isinstance(item, bytes):
        try:
            return item.decode()
        except UnicodeDecodeError:
            return repr(item)
    return item


@given(literals)
@settings(deadline=None)
def test_whatever_python_prints_is_read_back(item: Any) -> None:
    assert repr(value(repr(item))) == repr(plain(item))


@given(st.text(alphabet="[](){}'\"\\,:=<>ab1.- \n\0None", max_size=60))
@example("{'a': 1, 'b: 2, \0'c': 3}")
@settings(max_examples=300, deadline=None)
def test_no_source_raises(source: str) -> None:
    read_literal(source)


def test_the_backslashes_of_raw_strings_are_no_escapes() -> None:
    source = r"""{'a': r'\d\n', 'b': '\d\n', 'c': rb'\w', 'd': "r'\d'", 'e': None, 'f': ()}"""
    found = read_literal(source)
    assert found is not None
    assert found[0] == {"a": r"\d\n", "b": "\\d\n", "c": r"\w", "d": r"r'\d'", "e": None, "f": []}
