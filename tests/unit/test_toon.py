"""`hyve.toon` against the `toon-format` package: equal text wherever TOON keeps the value, None where it doesn't."""

from __future__ import annotations

from typing import Any

import pytest
import toon_format
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import toon
from hyve.strictjson import Pairs

_TEXTS = [
    "",
    "-",
    "a b",
    " a",
    "1",
    "05",
    "1e5",
    "true",
    "null",
    "#x",
    "a,b",
    "a: b",
    "[2]: x",
    '"',
    "\\",
    "\n",
    "é",
    "\ufeffa",
]
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(_TEXTS),
    st.text(max_size=6),
    st.just("\ud800"),
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.one_of(st.sampled_from("abc"), st.sampled_from(_TEXTS))
    records = st.lists(st.fixed_dictionaries({"a": inner, "b": _SCALARS}), max_size=4)
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4), records)


@settings(max_examples=200, deadline=None)
@given(st.recursive(_SCALARS, _containers, max_leaves=15))
def test_same_text_as_the_package_where_toon_keeps_the_value(value: Any) -> None:
    text = toon.encode(value)
    try:
        theirs = toon_format.encode(value)
        kept = repr(toon_format.decode(theirs)) == repr(value)
    except ValueError:
        kept = False
    if text is None:
        assert not kept
    else:
        assert repr(toon_format.decode(text)) == repr(value)
        if kept:
            assert text == theirs


@pytest.mark.parametrize(
    "value", [1.0, -0.0, float("nan"), float("inf"), "\ud800", {"\udc00": 1}, Pairs((("a", 1), ("a", 2)))]
)
def test_what_toon_would_change_is_refused(value: Any) -> None:
    assert toon.encode(value) is None
    assert toon.encode({"a": [value]}) is None
    assert toon.encode([{"a": value}]) is None


def test_records_of_several_orders_are_no_table() -> None:
    text = toon.encode([{"a": 1, "b": 2}, {"b": 3, "a": 4}])
    assert text == "[2]:\n  - a: 1\n    b: 2\n  - b: 3\n    a: 4"


def test_tables_and_keyed_tables() -> None:
    value = {
        "rows": [{"id": 1, "at": {"x": 0.5}}, {"id": 2, "at": {"x": None}}],
        "by": {"a": {"n": "x,y"}, "b": {"n": ""}},
    }
    assert toon.encode(value) == 'rows[2]{id,at{x}}:\n  1,0.5\n  2,null\nby[2:]{n}:\n  a: "x,y"\n  b: ""'
