"""Buckets, episodes and SQL literals of the rules analyst."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.rules.timeline import BUCKETS, Window, clock, literal, quote, scan
from hyve.sql import connect, run

MINUTE = 60 * 10**9


def test_a_window_is_cut_into_equal_buckets() -> None:
    window = Window(0, 60 * MINUTE - 1)
    assert (window.width, window.at(3)) == (MINUTE, 3 * MINUTE)
    assert window.bucket() == "((epoch_ns(time) - 0) // 60000000000)"


def test_clock_and_literal_are_utc() -> None:
    assert clock(1_764_448_200_999_999_999) == "20:30:00"
    assert literal(1_764_448_200 * 10**9) == "TIMESTAMP '2025-11-29 20:30:00'"


def test_scan_finds_the_stretch_that_differs() -> None:
    total = [10] * BUCKETS
    bad = [0] * 40 + [5] * 20
    bad[3] = 1
    episode = scan(total, bad)
    assert episode is not None
    assert (episode.start, episode.end, episode.bad, episode.total) == (40, 60, 100, 200)
    assert episode.during == 0.5
    assert episode.before == pytest.approx(1 / 400)
    assert episode.spread == 20
    assert episode.lasting
    assert episode.llr > 100


def test_a_spike_in_two_buckets_with_stragglers_is_no_lasting_episode() -> None:
    total = [5] * BUCKETS
    bad = [0] * BUCKETS
    bad[26], bad[27], bad[31] = 4, 4, 1
    episode = scan(total, bad)
    assert episode is not None
    assert not episode.lasting


def test_scan_of_nothing() -> None:
    assert scan([0] * BUCKETS, [0] * BUCKETS) is None
    assert scan([10] * BUCKETS, [0] * BUCKETS) is None
    assert scan([10] * BUCKETS, [1, 1, 1] + [0] * (BUCKETS - 3)) is None, "three bad events are nothing"
    even = scan([10] * BUCKETS, [1] * BUCKETS)
    assert even is None or even.llr == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=BUCKETS, max_size=BUCKETS))
def test_scan_stays_within_its_counts(pairs: list[tuple[int, int]]) -> None:
    total, bad = [max(p) for p in pairs], [min(p) for p in pairs]
    episode = scan(total, bad)
    if episode is not None:
        assert 0 <= episode.start < episode.end <= BUCKETS
        assert episode.bad == sum(bad[episode.start : episode.end])
        assert episode.total == sum(total[episode.start : episode.end])
        assert episode.during >= episode.before
        assert 1 <= episode.spread <= episode.end - episode.start + 1e-9


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_quoted_text_reads_back_through_the_guard(text: str) -> None:
    assert _through(text) == text


_CONNECTION: list[duckdb.DuckDBPyConnection] = []


def _through(text: str) -> object:
    if not _CONNECTION:
        _CONNECTION.append(connect())
    return run(_CONNECTION[0], f"SELECT {quote(text)} AS t", ()).rows[0][0]
