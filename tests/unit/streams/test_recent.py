"""Only the newest keys are remembered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.recent import Recent


@given(st.lists(st.integers(0, 9)), st.integers(1, 6))
def test_the_newest_distinct_keys_are_held(keys: list[int], most: int) -> None:
    recent = Recent[int](most)
    for key in keys:
        recent.add(key)
    newest = list(dict.fromkeys(reversed(keys)))[:most]
    assert [key for key in range(10) if key in recent] == sorted(newest)
