"""Changes of states and of the shares of kinds (H18)."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import shares
from tests.unit.changes_inputs import at, calm_kinds, data_of, requests, rows_in


def shares_in(text: str) -> list[tuple[str, ...]]:
    return re.findall(r"^- (\w+): share of (\S+) (\S+)%→(\S+)%(.*) from rowid (\d+) \((.*)\)$", text, re.MULTILINE)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("kinds", [("up", "down"), ("v1.2", "v1.3"), ("INFO", "ERROR"), (False, True), ("200", "5xx")])
def test_a_state_that_changes_for_good_is_told_with_the_rows_at_its_edge(kinds: tuple[Any, Any], beside: bool) -> None:
    """H18: whatever other columns stand beside it."""
    rows = requests(4)
    for i, row in enumerate(rows):
        if not beside:
            del row["host"], row["region"]
        row["st"] = kinds[i >= 1234]
    for budget in (1000, 4000):
        text = data_of(rows, budget)
        name = json.dumps(kinds[1]).strip('"')
        was = json.dumps(kinds[0]).strip('"')
        assert f"\n- st: {was}→{name} from rowid 1234 (2026-01-31 12:20:34)\n" in text
        assert {1233, 1234} <= set(rows_in(text))
        assert "none of" not in text


@pytest.mark.parametrize(
    ("kinds", "before", "behind"),
    [
        ((200, 500), 0.01, 0.3),
        ((False, True), 0.01, 0.3),
        (("INFO", "ERROR"), 0.05, 0.6),
        ((0, 1), 0.3, 0.01),
        (("ok", "E17"), 0.0, 0.1),
    ],
)
def test_a_share_that_changes_is_told(kinds: tuple[Any, Any], before: float, behind: float) -> None:
    """H18: the shares are those of all rows before and behind the place."""
    rng = np.random.default_rng(9)
    rows = requests(4, 4_000)
    for i, row in enumerate(rows):
        row["st"] = kinds[rng.random() < (before if i < 2_500 else behind)]
    text = data_of(rows, 1000)
    [(column, kind, was, became, of, row_id, _)] = shares_in(text)
    assert (column, kind, of) == ("st", json.dumps(kinds[1]).strip('"'), "")
    place = int(row_id)
    assert abs(place - 2_500) <= 60
    for share, part in ((was, rows[:place]), (became, rows[place:])):
        exact = 100 * np.mean([row["st"] == kinds[1] for row in part])
        assert float(share) == pytest.approx(exact, rel=0.06, abs=0.6)
    assert {place - 1, place} <= set(rows_in(text))
    shown = rows_in(data_of(rows, 4000))
    odd = [row for row in shown if rows[row]["st"] == kinds[1] and row not in (place - 1, place)]
    later = sum(row >= place for row in odd)
    assert later > len(odd) - later if behind > before else later < len(odd) - later


def test_the_share_of_one_series_is_told_as_its_own() -> None:
    rng = np.random.default_rng(9)
    rows = requests(4, 4_000)
    for i, row in enumerate(rows):
        row["kind"] = "ERROR" if rng.random() < (0.6 if row["host"] == "web-2" and i >= 2_500 else 0.01) else "INFO"
    [(column, kind, _, became, of, row_id, _)] = shares_in(data_of(rows, 1000))
    assert (column, kind, of) == ("kind", "ERROR", " of web-2")
    assert abs(int(row_id) - 2_500) <= 30
    assert float(became) == pytest.approx(60, abs=6)


@pytest.mark.parametrize("others", [1, 2, 4])
def test_a_burst_is_counted_up_to_its_ends(others: int) -> None:
    """H14: the shares beside a change are those up to the next one, of one series as of all rows."""
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for i in range(800):
        service = "pay" if rng.random() < 1 / (1 + others) else f"other-{rng.integers(others)}"
        rows.append({"ts": at(10 * i), "service": service, "code": f"E_{rng.integers(4)}"})
        if i == 260:
            rows += [{"ts": at(10 * i + j / 10), "service": "pay", "code": "E_DB_POOL"} for j in range(1, 91)]
    begin, end = 261, 351
    found = [one for one in shares_in(data_of(rows, 1000)) if one[0] == "code"]
    assert [one[:4] for one in found] == [("code", "E_DB_POOL", "0", "100"), ("code", "E_DB_POOL", "100", "0")]
    assert [int(one[5]) for one in found] == [begin, end]
    assert len({one[4] for one in found}) == 1, "one series has both"


@pytest.mark.parametrize("ends", [True, False])
def test_each_share_of_one_series_is_that_between_its_changes(ends: bool) -> None:
    """H14: so far as rows of the series are beside the place, their share can be counted again."""
    rng = np.random.default_rng(3)
    rows = requests(4, 6_000)
    for i, row in enumerate(rows):
        much = row["host"] == "web-2" and 2_000 <= i < (3_500 if ends else 6_000)
        row["kind"] = "ERROR" if rng.random() < (0.7 if much else 0.01) else "INFO"
    found = shares_in(data_of(rows, 1000))
    assert [one[4] for one in found] == [" of web-2"] * (1 + ends)
    places = [0, *(int(one[5]) for one in found), len(rows)]
    own = [
        100 * np.mean([row["kind"] == "ERROR" for row in rows[first:last] if row["host"] == "web-2"])
        for first, last in pairwise(places)
    ]
    told = [(float(one[2]), float(one[3])) for one in found]
    for (was, became), before, behind in zip(told, own[:-1], own[1:], strict=True):
        assert was == pytest.approx(before, rel=0.06, abs=0.6)
        assert became == pytest.approx(behind, rel=0.06, abs=0.6)


def test_columns_that_say_the_same_tell_it_once() -> None:
    rows = requests(4)
    for i, row in enumerate(rows):
        row["state"], row["down"] = ("up", "down")[i >= 1234], i >= 1234
    assert re.findall(r"^- (\w+): up→down from rowid 1234 ", data_of(rows), re.MULTILINE) == ["state"]
    assert "share of" not in data_of(rows)


@pytest.mark.parametrize("count", [300, 2_000])
def test_kinds_without_a_change_have_none(count: int) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        kinds = calm_kinds(rng, count)
        rows = [{"ts": at(i), **{name: f"k{of[i]}" for name, of in kinds.items()}} for i in range(count)]
        assert not shares_in(data_of(rows, 8_000))


def test_names_of_kinds_cannot_end_the_line() -> None:
    rows = requests(4)
    for i, row in enumerate(rows):
        row["st"] = f"a\n## b: {i >= 1234}"
    assert '- st: "a\\n## b: False"→"a\\n## b: True" from rowid 1234' in data_of(rows)


def test_what_takes_the_place_of_a_kind_is_said() -> None:
    """H18: of a version that ends, the one that most rows have then."""
    rows = requests(4)
    for i, row in enumerate(rows):
        row["version"] = "1.2.0" if i < 1_234 else "1.4.0-rc" if i % 50 == 0 else "1.3.0"
    found = re.findall(r"^- version: (.*) from rowid 1234 ", data_of(rows), re.MULTILINE)
    assert found == ["share of 1.2.0 100%→0%, of 1.3.0 0%→98%"]
    for row in rows:
        row["version"] = row["version"].removesuffix("4.0-rc") + "3.0" * row["version"].endswith("rc")
    assert re.findall(r"^- version: (.*) from rowid", data_of(rows), re.MULTILINE) == ["1.2.0→1.3.0"]


@pytest.mark.parametrize("kinds", [(200, 500), ("INFO", "ERROR")])
def test_an_error_rate_that_rises_in_one_of_five_services_is_told(kinds: tuple[Any, Any]) -> None:
    """H18: in all rows it is hardly to be seen; the shares are those of this service."""
    found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = []
        for i in range(6_000):
            service = ("cart", "pay", "search", "user", "ads")[rng.integers(5)]
            failed = rng.random() < (0.15 if service == "pay" and i >= 4_000 else 0.02)
            ms = round(float(rng.lognormal(3, 0.4)), 1)
            rows.append({"ts": at(i), "service": service, "result": kinds[failed], "ms": ms})
        for column, kind, was, became, of, row_id, _ in shares_in(data_of(rows)):
            assert (column, kind, of) == ("result", str(kinds[1]), " of pay")
            own = [row["result"] == kinds[1] for row in rows if row["service"] == "pay"]
            place = sum(row["service"] == "pay" for row in rows[: int(row_id)])
            assert float(was) == pytest.approx(100 * np.mean(own[:place]), abs=0.5)
            assert float(became) == pytest.approx(100 * np.mean(own[place:]), abs=0.5)
            found += abs(int(row_id) - 4_000) <= 600
    assert found >= 3


def test_series_of_kinds_without_a_change_have_none() -> None:
    rng = np.random.default_rng(3)
    kinds = calm_kinds(rng, 3_000)
    hosts, usual = rng.integers(5, size=3_000), np.array([0.01, 0.03, 0.1, 0.3, 0.6])
    kinds["of each"] = (rng.random(3_000) < usual[hosts]).astype(np.int64)
    rows = [
        {"ts": at(i), "host": f"web-{hosts[i]}", **{name: f"k{of[i]}" for name, of in kinds.items()}}
        for i in range(3_000)
    ]
    assert not shares_in(data_of(rows, 8_000))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), min_size=16, max_size=200), st.booleans())
def test_what_is_too_rare_to_drift_drifts_in_no_order_of_its_rows(kinds: list[int], in_order: bool) -> None:
    """H18: the bound by which columns aren't looked at."""
    codes = np.array(sorted(kinds) if in_order else kinds)
    counts = np.bincount(codes, minlength=3)
    if not shares.may_drift(counts.tolist(), len(codes)):
        assert not shares.shares_in(codes, 3, shares.blocks_of(len(codes)))
        edges = shares.blocks_of(len(codes))
        drifts = shares._drifts(shares._counts_in_blocks(codes, 3, np.diff(edges)), edges)
        assert drifts.max() <= shares._DRIFTS


def test_a_kind_of_a_few_rows_may_drift() -> None:
    """H18: six of a hundred, all at the end, may be further from even than by chance; four may not."""
    assert shares.may_drift([94, 6], 100)
    assert not shares.may_drift([96, 4], 100)
