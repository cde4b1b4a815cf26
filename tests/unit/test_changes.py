"""Rows that stand out though nobody asked: changes of level, gaps, what is absent, odd ids, all columns (H18, H19)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import hyve
from hyve import rank
from hyve.oddtexts import far_numbers

START = datetime(2026, 1, 31, 12)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat() + "Z"


def data_of(value: Any, budget: int = 1500) -> str:
    text = hyve.view(json.dumps(value), "", budget).text
    return text.split("\n# Data ", 1)[1].split("\n", 1)[1].rsplit("\n# End ", 1)[0]


def rows_in(text: str) -> list[int]:
    return [int(row) for row in re.findall(r"^(\d+)\|", text, re.MULTILINE)]


def requests(seed: int, count: int = 2_000) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "ts": at(i),
            "host": f"web-{rng.integers(4)}",
            "region": str(rng.choice(["eu", "us"])),
            "latency": round(float(rng.normal(100, 10)), 2),
            "trace": f"{int(rng.integers(2**63)):016x}",
            "msg": f"request {rng.integers(10**6)} handled in {rng.integers(100)} ms",
        }
        for i in range(count)
    ]


@pytest.mark.parametrize("budget", [1000, 2000, 8000])
def test_a_change_of_level_is_told_with_the_rows_at_its_edge(budget: int) -> None:
    rows = requests(1)
    for row in rows[1234:]:
        row["latency"] = round(row["latency"] + 60, 2)
    text = data_of(rows, budget)
    told = re.findall(r"^- latency: level (.*)→(.*) from rowid (\d+) \((.*)\)$", text, re.MULTILINE)
    assert len(told) == 1
    before, behind, row_id, when = told[0]
    assert float(before) == pytest.approx(100, abs=3)
    assert float(behind) == pytest.approx(160, abs=3)
    assert (row_id, when) == ("1234", "2026-01-31 12:20:34")
    assert {1233, 1234} <= set(rows_in(text))
    assert text == data_of(rows, budget)


@given(st.integers(0, 10**6), st.integers(200, 3000), st.floats(0.2, 0.8), st.sampled_from([-1, 1]))
@settings(max_examples=25, deadline=None)
def test_levels_are_found_wherever_they_change(seed: int, count: int, share: float, sign: int) -> None:
    values = np.random.default_rng(seed).normal(size=count)
    place = int(count * share)
    values[place:] += sign * 20
    told = re.findall(r"level (\S+)→(\S+) from rowid (\d+)", data_of([{"v": value} for value in values], 700))
    assert len(told) == 1
    assert int(told[0][2]) == place
    assert float(told[0][1]) - float(told[0][0]) == pytest.approx(sign * 20, abs=2)


@pytest.mark.parametrize(("count", "sigma"), [(5_000, 0.5), (5_000, 0.75), (5_000, 1.0), (768, 0.5)])
def test_a_skewed_latency_that_doubles_has_a_new_level(count: int, sigma: float) -> None:
    """H18: twice a log-normal number is less than a spread away, and its values before and behind overlap."""
    found = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = requests(seed, count)
        place = int(count * rng.uniform(0.25, 0.75))
        for i, row in enumerate(rows):
            row["latency"] = round(float(100 * np.exp(sigma * rng.normal())) * (1 + (i >= place)), 2)
        told = re.findall(r"^- latency: level (\S+)→(\S+) from rowid (\d+) \(", data_of(rows), re.MULTILINE)
        found += len(told) == 1 and abs(int(told[0][2]) - place) < count // 20
        for before, behind, _ in told:
            assert 1.6 < float(behind) / float(before) < 2.5
    assert found >= 4


@pytest.mark.parametrize("of", ["all", "web-1"])
@pytest.mark.parametrize(("count", "last", "times"), [(5_000, 40, 0.0), (20_000, 60, 0.0), (5_000, 40, 4.0)])
def test_an_onset_in_the_last_rows_is_told(count: int, last: int, times: float, of: str) -> None:
    """H18: an alert fires just then. The last rows are fewer than a hundredth of all."""
    rows = requests(3, count)
    rng = np.random.default_rng(5)
    for row in rows if times else ():
        row["latency"] = round(float(100 * np.exp(0.5 * rng.normal())), 2)
    if of != "all":
        last *= 4
    for row in rows[-last:]:
        if of in ("all", row["host"]):
            row["latency"] = round(row["latency"] * times if times else row["latency"] + 60, 2)
    told = re.findall(r"^- latency: level \S+→\S+(.*) from rowid (\d+) ", data_of(rows), re.MULTILINE)
    assert [series for series, _ in told] == ["" if of == "all" else " of web-1"]
    assert abs(int(told[0][1]) - (count - last)) <= last // 8


def canary(rows: list[dict[str, Any]], slower: float) -> None:
    """A sixth of the requests goes to pods of another version, all the time."""
    rng = np.random.default_rng(2)
    for row in rows:
        new = rng.random() < 1 / 6
        row["version"], row["pod"] = ("v2", f"new-{rng.integers(2)}") if new else ("v1", f"old-{rng.integers(8)}")
        row["service"] = f"svc-{rng.integers(3)}"
        row["latency"] = round(float(100 * np.exp(0.5 * rng.normal())) * (slower if new else 1), 2)


@pytest.mark.parametrize("budget", [1000, 2000, 4000])
def test_versions_side_by_side_of_which_one_is_slower_are_told(budget: int) -> None:
    """H14, H18: no change in time. The medians are of all rows."""
    rows = requests(1)
    canary(rows, 2.2)
    text = data_of(rows, budget)
    told = re.findall(r"^- latency: median by version: v1 (\S+), v2 (\S+)$", text, re.MULTILINE)
    medians = [np.median([row["latency"] for row in rows if row["version"] == v]) for v in ("v1", "v2")]
    assert [tuple(map(float, pair)) for pair in told] == [pytest.approx(medians, rel=1e-3)]
    assert "level" not in text


def test_versions_alike_and_those_of_different_services_are_not_told() -> None:
    rows = requests(1)
    canary(rows, 1.0)
    assert "median by" not in data_of(rows, 2000)
    for row in rows:  # what differs is the service
        row["version"] = {"svc-0": "1.7", "svc-1": "3.2", "svc-2": "3.2"}[row["service"]]
        row["latency"] *= {"svc-0": 1, "svc-1": 3, "svc-2": 3}[row["service"]]
    assert "median by" not in data_of(rows, 2000)


def test_names_of_categories_cannot_end_the_line() -> None:
    rows = requests(1)
    canary(rows, 3.0)
    for row in rows:
        row["version"] = "a\n## b: 1" if row["version"] == "v2" else "v1\u2028x"
    told = next(line for line in data_of(rows, 2000).split("\n") if "median by" in line)
    assert re.fullmatch(r'- latency: median by version: "v1\\u2028x" [\d.]+, "a\\n## b: 1" [\d.]+', told)


def matrix(values: Callable[[int, int], float], missing: tuple[int, range] = (-1, range(0))) -> dict[str, Any]:
    return {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {
                    "metric": {"__name__": "cpu", "instance": f"10.0.0.{series}:9100"},
                    "values": [
                        [1_769_860_800 + 15 * i, f"{values(series, i):.3f}"]
                        for i in range(768)
                        if (series, i) not in {(missing[0], i) for i in missing[1]}
                    ],
                }
                for series in range(3)
            ],
        },
    }


def test_a_change_of_one_series_is_told_as_its_own() -> None:
    rng = np.random.default_rng(5)
    text = data_of(matrix(lambda series, i: rng.normal(10, 0.5) + 8 * (series == 1 and i >= 500)))
    told = re.findall(r"^- value: level (\S+)→(\S+) of (\S+) from rowid (\d+)", text, re.MULTILINE)
    assert [(of, row) for _, _, of, row in told] == [("10.0.0.1:9100", str(768 + 500))]
    assert [float(value) for value in told[0][:2]] == pytest.approx([10, 18], abs=0.3)
    assert {768 + 499, 768 + 500} <= set(rows_in(text))


def test_a_change_of_several_series_is_told_of_each_and_one_of_all_once() -> None:
    rng = np.random.default_rng(5)
    text = data_of(matrix(lambda series, i: rng.normal(10, 0.5) + 8 * (series > 0 and i >= 500)))
    told = re.findall(r"^- value: level \S+→\S+ of (\S+) from rowid (\d+)", text, re.MULTILINE)
    assert sorted(told) == [("10.0.0.1:9100", str(768 + 500)), ("10.0.0.2:9100", str(2 * 768 + 500))]
    text = data_of(matrix(lambda series, i: rng.normal(10 * series, 0.5) + 8 * (i >= 500)))
    told = re.findall(r"^- value: level (\S+)→(\S+) from rowid (\d+)", text, re.MULTILINE)
    assert [row for _, _, row in told] == ["500"]
    assert [float(value) for value in told[0][:2]] == pytest.approx([10, 18], abs=0.5)


def test_names_of_series_cannot_end_the_line() -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"host": f"a\n## b: {i % 3}", "v": float(rng.normal() + 20 * (i % 3 == 1 and i > 1500))} for i in range(3_000)
    ]
    assert "of a\\n## b: 1 from rowid 1501" in data_of(rows)


def test_gaps_are_told_of_the_table_and_of_a_series() -> None:
    rows = requests(2)
    for i, row in enumerate(rows[700:], 700):
        row["ts"] = at(i + 300)
    text = data_of(rows)
    assert "- ts_ts: gap of 301 s after 2026-01-31 12:11:39 (rowid 699)" in text
    assert {699, 700} <= set(rows_in(text))
    rng = np.random.default_rng(5)
    text = data_of(matrix(lambda series, i: rng.normal(10, 0.5), (1, range(400, 500))))
    gaps = [line for line in text.split("\n") if "gap of" in line]
    assert gaps == ["- time: gap of 1515 s of 10.0.0.1:9100 after 2026-01-31 13:39:45 (rowid 1167)"]
    assert {1167, 1168} <= set(rows_in(text))
    text = data_of(matrix(lambda series, i: rng.normal(10, 0.5), (2, range(600, 768))))
    assert "- time: none of 10.0.0.2:9100 after 2026-01-31 14:29:45 (rowid 2135)" in text


def test_numbers_at_a_fixed_distance_have_gaps_too() -> None:
    value = [{"t": 1_700_000_000 + i + 3_600 * (i >= 333), "v": f"{i * 7919 % 1000} x"} for i in range(1_000)]
    assert "- t: gap of 3601 after 1700000332 (rowid 332)" in data_of(value)
    assert ", every 1 but for 1 gap\n" in data_of(value)


def test_a_number_that_is_held_for_long_changes() -> None:
    rows = requests(3)
    for i, row in enumerate(rows):
        row["replicas"] = 3 if i < 1500 else 5
    text = data_of(rows)
    assert "- replicas: level 3→5 from rowid 1500 (2026-01-31 12:25:00)" in text
    assert {1499, 1500} <= set(rows_in(text))


def calm(rng: np.random.Generator, count: int) -> dict[str, NDArray[np.float64]]:
    """Numbers that have no level that changes."""
    noise, i = rng.normal(size=count), np.arange(count)
    return {
        "noise": noise,
        "tailed": np.exp(1.5 * noise),
        "student": rng.standard_t(2, size=count),
        "either": np.where(rng.random(count) < 0.3, noise + 50, noise),
        "trend": i * 20 / count + noise,
        "bent": (i / count) ** 2 * 30 + noise,
        "walk": np.cumsum(noise),
        "walking": np.cumsum(noise) * 0.3 + rng.normal(size=count),
        "season": np.sin(2 * np.pi * 3 * i / count + rng.random() * 6) * 5 + noise,
        "slow": np.sin(np.pi * i / count + rng.random() * 6) * 5 + noise,
        "days": np.sin(2 * np.pi * 20 * i / count) * 50 + noise,
        "jobs": np.where(i % (count // 15) < count // 60, 30.0, 0.0) + noise,
        "louder": noise * np.where(i > count // 2, 5, 1),
        "burst": noise + 10 * ((i > count // 2) & (i < count // 2 + 4)),
        "events": rng.poisson(0.1, count).astype(float),
        "spikes": np.where(rng.random(count) < 0.02, 100 * rng.random(count), 0),
        "constant": np.full(count, 7.5),
        "total": np.cumsum(rng.exponential(size=count)),
        "reset": np.concatenate([np.cumsum(rng.exponential(size=part)) for part in (count // 3, count - count // 3)]),
        "key": 5_000.0 + i * 7,
    }


@pytest.mark.parametrize("count", [70, 300, 800, 5000])
def test_what_is_calm_has_no_changes(count: int) -> None:
    for seed in range(12 if count < 5000 else 3):
        rng = np.random.default_rng(seed)
        columns = calm(rng, count)
        times = np.cumsum(rng.exponential(size=count))
        rows = [
            {"ts": at(float(time)), **dict(zip(columns, map(float, values), strict=True))}
            for time, values in zip(times, zip(*columns.values(), strict=True), strict=True)
        ]
        text = data_of(rows, 4000)
        told = [line for line in text.split("\n") if "→" in line or "gap of" in line or ": none" in line]
        assert [line for line in told if not re.match("- (trend|bent|slow): (rises|falls) ", line)] == []


def test_series_one_after_another_are_no_changes() -> None:
    rng = np.random.default_rng(1)
    rows = [{"job": f"job-{i // 500}", "v": float(rng.normal(10 * (i // 500), 1))} for i in range(2_000)]
    assert "→" not in data_of(rows)


@pytest.mark.parametrize("metrics", [1, 2, 3])
@pytest.mark.parametrize("counts", [True, False])
def test_where_one_of_interleaved_series_follows_another_is_no_change(metrics: int, counts: bool) -> None:
    rng = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    for service in ("pay", "cart"):
        for code, rate in (("OK", 700), ("ERROR", 30)):
            values = rng.poisson(rate, (72, metrics))
            for i, several in enumerate(np.cumsum(values, axis=0) if counts else values):
                rows += [
                    {
                        "metric": f"m{m}",
                        "value": int(value),
                        "service": service,
                        "code": code,
                        "minutes_ago": 360 - i * 5,
                    }
                    for m, value in enumerate(several)
                ]
    assert "→" not in data_of(rows)


@pytest.mark.parametrize("label", ["version", "pod", "both"])
@pytest.mark.parametrize("late", [0, 10])
def test_a_change_is_told_though_labels_change_with_it(label: str, late: int) -> None:
    rows = requests(6)
    for i, row in enumerate(rows):
        new = i >= 1234 - late
        if label != "pod":
            row["version"] = "v2" if new else "v1"
        if label != "version":
            row["pod"] = f"{'new' if new else 'old'}-{i % 4}"
    assert "level" not in data_of(rows)
    for row in rows[1234:]:
        row["latency"] = round(row["latency"] + 100, 2)
        row["up"] = 0
    for row in rows[:1234]:
        row["up"] = 1
    text = data_of(rows)
    told = re.findall(r"^- (\w+): level \S+→\S+ from rowid (\d+)", text, re.MULTILINE)
    assert sorted(told) == [("latency", "1234"), ("up", "1234")]
    assert {1233, 1234} <= set(rows_in(text))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_counters_of_few_steps_have_no_level(steps: int) -> None:
    rows = requests(3)
    for i, row in enumerate(rows):
        row["restarts_total"] = 3 + i * (steps + 1) // len(rows)
        row["seen"] = 500 + (i * (steps + 2) // len(rows))
    assert "→" not in data_of(rows)
    for i, row in enumerate(rows):
        row["seen"] = 500 if i < 700 or i > 1500 else 501
    assert data_of(rows).count("→") == 2


@pytest.mark.parametrize("kind", ["null", "host", "missing", "list"])
@pytest.mark.parametrize("budget", [1000, 4000])
def test_the_only_row_without_a_value_is_shown(kind: str, budget: int) -> None:
    rows = requests(4)
    for row in rows:
        row["tags"] = ["a", "b"]
    if kind == "missing":
        del rows[777]["msg"]
    else:
        rows[777][{"null": "latency", "host": "host", "list": "tags"}[kind]] = [] if kind == "list" else None
    assert 777 in rows_in(data_of(rows, budget))


def test_what_is_often_absent_does_not_stand_out() -> None:
    rows = requests(4, 600)
    rng = np.random.default_rng(1)
    for row in rows:
        if rng.random() < 0.7:
            row["tag"] = f"tag {rng.integers(101)}"
    shown = [rows[i] for i in rows_in(data_of(rows, 2000))]
    assert 0.15 < sum("tag" not in row for row in shown) / len(shown) < 0.55


@pytest.mark.parametrize(("count", "odd"), [(6, 4), (12, 10), (60, 55)])
def test_all_columns_are_looked_at(count: int, odd: int) -> None:
    rng = np.random.default_rng(3)
    numbers = [{f"m{i}": round(float(x), 3) for i, x in enumerate(rng.normal(50, 5, count))} for _ in range(1_000)]
    numbers[618][f"m{odd}"] = 912.125
    assert re.search(r"^618\|.*912\.125", data_of(numbers), re.MULTILINE)
    texts = [
        {
            f"t{i}": f"task {rng.integers(10**6)} finished step {i} in {rng.integers(99)} ms"
            for i in range(min(count, 8))
        }
        for _ in range(1_000)
    ]
    texts[618][f"t{min(odd, 7)}"] = "kernel panic zqx"
    assert re.search(r"^618\|.*zqx", data_of(texts), re.MULTILINE)


def test_an_odd_id_among_those_of_one_form_is_shown() -> None:
    rng = np.random.default_rng(3)
    rows = [{"id": f"{int(rng.integers(2**63)):016x}", "v": i % 7} for i in range(1_000)]
    assert 618 not in rows_in(data_of(rows))
    rows[618]["id"] = "ZZ-manual-override"
    assert re.search(r"^618\|.*ZZ-manual-override", data_of(rows), re.MULTILINE)


@pytest.mark.parametrize("kind", ["duration", "message"])
def test_a_number_far_above_those_in_the_same_place_of_other_texts_is_shown(kind: str) -> None:
    rng = np.random.default_rng(3)

    def said(value: int) -> str:
        if kind == "duration":
            return f"{value}ms"
        return f"user {rng.integers(10**6)} from 10.0.{rng.integers(255)}.1:{rng.integers(60_000)} latency={value}"

    rows = [{"text": said(int(rng.integers(10, 99))), "v": i % 7} for i in range(1_000)]
    assert 618 not in rows_in(data_of(rows))
    rows[618]["text"] = said(93_000)
    assert re.search(r"^618\|.*93(000|\.0)", data_of(rows), re.MULTILINE)


@given(st.lists(st.text(alphabet="0123456789abZ-_.é =", max_size=40), min_size=50, max_size=300, unique=True))
@settings(max_examples=50, deadline=None)
def test_numbers_far_out_are_those_that_a_pattern_finds(texts: list[str]) -> None:
    """Of texts of one kind, by the numbers that stand first, second ...; longer ones than 15 digits are none."""
    expected = np.zeros(len(texts))
    for place in range(8):
        found = [(number, i) for i, text in enumerate(texts) for number in _number(text, place)]
        numbers = sorted((number for number, _ in found), reverse=True)
        rest = (sum(numbers) - numbers[0]) / max(1, len(numbers) - 1) if numbers else 0
        if len(numbers) < 50 or numbers[0] <= 20 * max(1.0, rest):
            continue
        far = next((i for i in range(1, 4) if numbers[i - 1] >= 10 * max(1, numbers[i])), 0)
        for number, i in found:
            if far and number >= numbers[far - 1]:
                expected[i] = max(expected[i], rank.surprise(len(numbers), 2, far))
    scores = far_numbers(pa.array(texts, pa.string()), np.zeros(len(texts), np.int64))
    assert (np.zeros(len(texts)) if scores is None else scores).tolist() == pytest.approx(expected.tolist())


def _number(text: str, place: int) -> list[int]:
    found = re.findall(r"(?<![\w.:/-])[0-9]+", text)
    return [int(found[place])] if place < len(found) and len(found[place]) <= 15 else []


def drawn(rng: np.random.Generator, share: Any, count: int) -> NDArray[np.int64]:
    """Rows that are of a kind with so large a share, one by one."""
    return (rng.random(count) < share).astype(np.int64)


def lasting(rng: np.random.Generator, share: float, run: int, count: int) -> NDArray[np.int64]:
    """The same, drawn anew once in so many rows."""
    fresh = rng.random(count) * run < 1
    fresh[0] = True
    return drawn(rng, share, count)[np.maximum.accumulate(np.where(fresh, np.arange(count), 0))]


def calm_kinds(rng: np.random.Generator, count: int) -> dict[str, NDArray[np.int64]]:
    """Kinds of which no share changes for good."""
    i = np.arange(count) / count
    phase = 2 * np.pi * rng.random()
    return {
        "even": drawn(rng, 0.5, count),
        "rare": drawn(rng, 0.01, count),
        "few": drawn(rng, 0.002, count),
        "five": rng.choice(5, count, p=[0.4, 0.3, 0.2, 0.07, 0.03]),
        "twelve": rng.choice(12, count, p=[0.89, *[0.01] * 11]),
        "lasting": lasting(rng, 0.5, 5, count),
        "lasting, rare": lasting(rng, 0.05, 5, count),
        "lasting long": lasting(rng, 0.5, max(5, count // 100), count),
        "drift": drawn(rng, 0.1 + 0.2 * i, count),
        "far drift": drawn(rng, 0.2 + 0.6 * i, count),
        "rare drift": drawn(rng, 0.01 + 0.09 * i, count),
        "season": drawn(rng, 0.3 + 0.2 * np.sin(2 * np.pi * i + phase), count),
        "seasons": drawn(rng, 0.3 + 0.2 * np.sin(6 * np.pi * i + phase), count),
        "rare seasons": drawn(rng, 0.03 + 0.025 * np.sin(6 * np.pi * i + phase), count),
        "turns": np.arange(count) % 3,
        "jobs": (np.arange(count) % 50 == 0).astype(np.int64),
        "few in a row": drawn(rng, 0.01, count) | (np.abs(np.arange(count) - int(count * rng.random())) < 3),
    }


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
        assert shares_in(text) == [("st", name, "0", "100", "", "1234", "2026-01-31 12:20:34")]
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


def test_columns_that_say_the_same_tell_it_once() -> None:
    rows = requests(4)
    for i, row in enumerate(rows):
        row["state"], row["down"] = ("up", "down")[i >= 1234], i >= 1234
    assert [column for column, *_ in shares_in(data_of(rows))] == ["state"]


def test_rows_of_a_rare_kind_are_shown_from_all_over_the_table() -> None:
    """H18: the earliest of them would say that it is over."""
    rows = requests(4, 4_000)
    for i, row in enumerate(rows):
        row["st"] = "retry" if i % 40 == 7 else "ok"
    for budget in (1000, 2000, 4000):
        shown = [row for row in rows_in(data_of(rows, budget)) if row % 40 == 7]
        assert len(shown) >= 3
        assert min(shown) < 1_400
        assert max(shown) > 2_500


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
    assert '- st: share of "a\\n## b: True" 0%→100% from rowid 1234' in data_of(rows)


def leak(i: int, rng: np.random.Generator, grows: bool) -> float:
    return round(float(500 + rng.normal() * 5 + (3 * i if grows else 0)), 1)


@pytest.mark.parametrize("series", [3, 15, 40])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_leak_in_one_of_several_series_is_told_and_shown(series: int, one_by_one: bool) -> None:
    """H18: its first row, its last and its largest."""
    rng = np.random.default_rng(9)
    rows = [
        {"t": 1_700_000_000 + 60 * i, "pod": f"pod-{s}", "mem": leak(i, rng, s == 1)}
        for i in range(200)
        for s in range(series)
    ]
    if one_by_one:
        rows.sort(key=lambda row: str(row["pod"]))
    of = [i for i, row in enumerate(rows) if row["pod"] == "pod-1"]
    for budget in (1_000, 4_000):
        text = data_of(rows, budget)
        told = re.findall(r"^- mem: rises (\S+)→(\S+) of (\S+) all the time \(rowid (\d+) to (\d+)\)$", text, re.M)
        [(first, last, name, begin, end)] = told
        assert (name, int(begin), int(end)) == ("pod-1", of[0], of[-1])
        assert float(first) == pytest.approx(506, abs=10)
        assert float(last) == pytest.approx(1091, abs=10)
        assert {of[0], of[-1], max(of, key=lambda i: float(str(rows[i]["mem"])))} <= set(rows_in(text))


def test_what_rises_all_the_time_is_told_and_counters_are_not() -> None:
    rng = np.random.default_rng(9)
    rows = [{"ts": at(i), "mem": leak(i, rng, True), "sent": 1000 + 7.5 * i + i % 3} for i in range(600)]
    told = re.findall(r"^- (\w+): rises (\S+)→(\S+) all the time", data_of(rows), re.MULTILINE)
    assert [name for name, _, _ in told] == ["mem"]
    assert [float(value) for value in told[0][1:]] == pytest.approx([506, 2291], abs=10)


def test_a_level_that_goes_on_rising_is_told_with_its_first_and_its_last_values() -> None:
    """H14: no level is named that never was."""
    rng = np.random.default_rng(9)
    rows = [{"ts": at(i), "mem": leak(i, rng, i > 300)} for i in range(600)]
    pattern = r"^- mem: level (\S+)→(\S+), then rising to (\S+), from rowid 301 "
    [(before, behind, last)] = re.findall(pattern, data_of(rows), re.MULTILINE)
    assert float(before) == pytest.approx(500, abs=3)
    assert float(behind) == pytest.approx(1403 + 15, abs=12)
    assert float(last) == pytest.approx(2297 - 15, abs=12)
