"""Changes of numbers: levels, what goes on rising, and gaps between times (H18)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from tests.unit.changes_inputs import at, calm, data_of, requests, rows_in


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(301, "301 s"), (7_199, "7199 s"), (9_000, "2 h 30 min"), (4_650_520, "53 d 20 h"), (864_000, "10 d")],
)
def test_a_long_gap_is_said_in_days_and_hours(seconds: int, said: str) -> None:
    rows = [{"ts": at(i if i < 300 else i + seconds - 1), "v": i * 7919 % 997} for i in range(600)]
    assert f": gap of {said} after 2026-01-31 12:04:59 (rowid 299)" in data_of(rows)


def test_levels_of_large_numbers_are_written_out() -> None:
    rows = [{"ts": at(i), "bytes": (500_000_000 if i < 400 else 900_000_000) + i * 7919 % 99_991} for i in range(800)]
    [line] = [line for line in data_of(rows).split("\n") if "bytes: median " in line]
    assert re.search(r"median 5000\d{5}→9000\d{5} from rowid 400 ", line)


@pytest.mark.parametrize("budget", [1000, 2000, 8000])
def test_a_change_of_level_is_told_with_the_rows_at_its_edge(budget: int) -> None:
    rows = requests(1)
    for row in rows[1234:]:
        row["latency"] = round(row["latency"] + 60, 2)
    text = data_of(rows, budget)
    told = re.findall(r"^- latency: median (.*)→(.*) from rowid (\d+) \((.*)\)$", text, re.MULTILINE)
    assert len(told) == 1
    before, behind, row_id, when = told[0]
    with hyve.Datastore.from_document(hyve.parse(json.dumps(rows))) as store:
        medians = "SELECT median(latency) FILTER (rowid < 1234), median(latency) FILTER (rowid >= 1234) FROM records"
        [figures] = store.query(medians).rows
    assert [before, behind] == [f"{figure:.4g}" for figure in figures]
    assert (row_id, when) == ("1234", "2026-01-31 12:20:34")
    assert {1233, 1234} <= set(rows_in(text))
    assert text == data_of(rows, budget)


@given(st.integers(0, 10**6), st.integers(200, 3000), st.floats(0.2, 0.8), st.sampled_from([-1, 1]))
@settings(max_examples=25, deadline=None)
def test_levels_are_found_wherever_they_change(seed: int, count: int, share: float, sign: int) -> None:
    values = np.random.default_rng(seed).normal(size=count)
    place = int(count * share)
    values[place:] += sign * 20
    told = re.findall(r"median (\S+)→(\S+) from rowid (\d+)", data_of([{"v": value} for value in values], 700))
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
        told = re.findall(r"^- latency: median (\S+)→(\S+) from rowid (\d+) \(", data_of(rows), re.MULTILINE)
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
    told = re.findall(r"^- latency: median \S+→\S+(.*) from rowid (\d+) ", data_of(rows), re.MULTILINE)
    assert [series for series, _ in told] == ["" if of == "all" else " of web-1"]
    assert abs(int(told[0][1]) - (count - last)) <= last // 8


def test_medians_are_of_all_rows_up_to_the_neighbouring_change() -> None:
    """H14: what is said of a series with two changes is what SQL says of it."""
    rng = np.random.default_rng(11)
    rows = [
        {
            "ts": at(60 * i),
            "host": f"web-{j}",
            "v": round(float(rng.normal(30 * (1 + (j == 1 and 80 < i < 200)), 2)), 2),
        }
        for i in range(300)
        for j in range(4)
    ]
    told = re.findall(r"^- v: median (\S+)→(\S+) of web-1 from rowid (\d+) \(", data_of(rows), re.MULTILINE)
    assert [int(row) for _, _, row in told] == [81 * 4 + 1, 200 * 4 + 1]
    parts = f"rowid < {told[0][2]}", f"rowid BETWEEN {told[0][2]} AND {int(told[1][2]) - 1}", f"rowid >= {told[1][2]}"
    medians = ", ".join(f"median(v) FILTER ({part})" for part in parts)
    with hyve.Datastore.from_document(hyve.parse(json.dumps(rows))) as store:
        [row] = store.query(f"SELECT {medians} FROM records WHERE host = 'web-1'").rows
    figures = [f"{figure:.4g}" for figure in row]
    assert [list(one[:2]) for one in told] == [figures[:2], figures[1:]]


def test_a_change_that_the_rest_of_the_rows_hides_names_the_rows_it_is_of() -> None:
    """H14: what falls all the time but for one step up has nearly the same median before and behind it."""
    i = np.arange(2_000)
    values = np.round(-0.005 * i + 8 * (i > 900) + np.random.default_rng(2).normal(size=2_000) * 0.5, 3)
    text = data_of([{"ts": at(k), "v": value} for k, value in enumerate(values.tolist())])
    pattern = r"^- v: median (\S+)→(\S+) from rowid 901 \(2026-01-31 12:15:01\) among rowid (\d+) to (\d+)$"
    [(before, behind, first, last)] = re.findall(pattern, text, re.MULTILINE)
    assert [before, behind] == [
        f"{np.median(values[start:end]):.4g}" for start, end in ((int(first), 901), (901, int(last) + 1))
    ]


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
    told = re.findall(r"^- value: median (\S+)→(\S+) of (\S+) from rowid (\d+)", text, re.MULTILINE)
    assert [(of, row) for _, _, of, row in told] == [("10.0.0.1:9100", str(768 + 500))]
    assert [float(value) for value in told[0][:2]] == pytest.approx([10, 18], abs=0.3)
    assert {768 + 499, 768 + 500} <= set(rows_in(text))


def test_a_change_of_several_series_is_told_of_each_and_one_of_all_once() -> None:
    rng = np.random.default_rng(5)
    text = data_of(matrix(lambda series, i: rng.normal(10, 0.5) + 8 * (series > 0 and i >= 500)))
    told = re.findall(r"^- value: median \S+→\S+ of (\S+) from rowid (\d+)", text, re.MULTILINE)
    assert sorted(told) == [("10.0.0.1:9100", str(768 + 500)), ("10.0.0.2:9100", str(2 * 768 + 500))]
    text = data_of(matrix(lambda series, i: rng.normal(10 * series, 0.5) + 8 * (i >= 500)))
    told = re.findall(r"^- value: median (\S+)→(\S+) from rowid (\d+)", text, re.MULTILINE)
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
    value = [{"seq": 7_000 + i + 3_600 * (i >= 333), "v": f"{i * 7919 % 1000} x"} for i in range(1_000)]
    assert "- seq: gap of 3601 after 7332 (rowid 332)" in data_of(value)
    assert ", every 1 but for 1 gap\n" in data_of(value)


@pytest.mark.parametrize("name", ["t", "ts", "epoch", "timestamp", "eventTime"])
@pytest.mark.parametrize("unit", [1, 1.0, 10**3, 10**6, 10**9])
def test_numbers_since_1970_that_hardly_ever_go_back_are_the_time(name: str, unit: float) -> None:
    """H18: gaps, stuck numbers and shares are told of them as of times."""
    rng = np.random.default_rng(4)
    rows = [
        {
            name: (1_700_000_000 + i + 3_600 * (i >= 333)) * unit + (0.25 if type(unit) is float else 0),
            "v": 41.37 if i >= 700 else round(float(rng.normal(40, 4)), 2),
            "status": 500 if i >= 600 and i % 2 else 200,
        }
        for i in range(1_000)
    ]
    text = data_of(rows, 2_000)
    digits = ".25" if type(unit) is float else ""
    assert f"- {name}: gap of 3601 s after 2023-11-14 22:18:52{digits} (rowid 332)" in text
    assert f"- v: stuck at 41.37 from rowid 700 (2023-11-14 23:25:00{digits})" in text
    assert f"- status: share of 500 0%→50% from rowid 601 (2023-11-14 23:23:21{digits})" in text
    rng.shuffle(rows)
    assert not {"stuck", "share"}.intersection(data_of(rows, 2_000).split())


def test_a_number_that_is_held_for_long_changes() -> None:
    rows = requests(3)
    for i, row in enumerate(rows):
        row["replicas"] = 3 if i < 1500 else 5
    text = data_of(rows)
    assert "- replicas: median 3→5 from rowid 1500 (2026-01-31 12:25:00)" in text
    assert {1499, 1500} <= set(rows_in(text))


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
    told = re.findall(r"^- (\w+): median \S+→\S+ from rowid (\d+)", text, re.MULTILINE)
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


def leak(i: int, rng: np.random.Generator, grows: bool) -> float:
    return round(float(500 + rng.normal() * 5 + (3 * i if grows else 0)), 1)


@pytest.mark.parametrize("series", [3, 15, 40])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_leak_in_one_of_several_series_is_told_and_shown(series: int, one_by_one: bool) -> None:
    """H18: one of its first rows, of its last ones, and its largest; what is said of them is what they hold (H14)."""
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
        assert name == "pod-1"
        assert int(begin) in of[:5]
        assert int(end) in of[-5:]
        assert [first, last] == [f"{rows[int(row)]['mem']:.4g}" for row in (begin, end)]
        assert float(first) == pytest.approx(506, abs=10)
        assert float(last) == pytest.approx(1091, abs=10)
        largest = max(of, key=lambda i: float(str(rows[i]["mem"])))
        assert {int(begin), int(end), *({largest} - set(of[-5:]))} <= set(rows_in(text))


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
    pattern = r"^- mem: median (\S+), then rises (\S+)→(\S+) \(rowid (\d+) to (\d+)\) from rowid 301 "
    [(before, behind, last, begin, end)] = re.findall(pattern, data_of(rows), re.MULTILINE)
    assert float(before) == pytest.approx(np.median([row["mem"] for row in rows[:301]]), abs=0.05)
    assert [float(behind), float(last)] == [round(rows[int(row)]["mem"]) for row in (begin, end)]
    assert 301 <= int(begin) < 306
    assert 595 <= int(end) < 600


def stuck_in(text: str) -> list[tuple[str, ...]]:
    return re.findall(r"^- (\w+): stuck at (\S+?)( of \S+)? from rowid (\d+) \(.*?\)( to \d+)?$", text, re.MULTILINE)


@pytest.mark.parametrize("hosts", [1, 20])
@pytest.mark.parametrize("value", [41.37, 47.5])
def test_a_number_that_is_stuck_is_told_and_shown(hosts: int, value: float) -> None:
    """H18: of the series that is stuck, instead of a new level, for good or for a while."""
    for end in (300, 200):
        rng = np.random.default_rng(2)
        rows = [
            {
                "ts": at(60 * i),
                **({"host": f"web-{host:02d}"} if hosts > 1 else {}),
                "v": value if host == hosts // 2 and 120 <= i < end else round(float(rng.normal(40, 4)), 2),
            }
            for i in range(300)
            for host in range(hosts)
        ]
        first, last = (i * hosts + hosts // 2 for i in (120, end - 1))
        until = f" to {last}" if end < 300 else ""
        text = data_of(rows, 2000)
        assert stuck_in(text) == [
            ("v", str(value), f" of web-{hosts // 2:02d}" if hosts > 1 else "", str(first), until)
        ]
        assert "level" not in text
        assert {first - hosts, first} <= set(rows_in(text))


def test_a_counter_that_stops_while_others_go_on_is_stuck() -> None:
    rng = np.random.default_rng(5)
    counts = {host: np.cumsum(rng.integers(50, 150, 120)) for host in range(20)}
    counts[7][60:] = counts[7][60]
    rows = [{"ts": at(60 * i), "host": f"web-{host}", "n": int(counts[host][i])} for i in range(120) for host in counts]
    assert stuck_in(data_of(rows, 2000)) == [("n", str(counts[7][60]), " of web-7", str(60 * 20 + 7), "")]
    for host in counts:
        counts[host][60 + host :] = counts[host][60 + host]
    rows = [{"ts": at(60 * i), "host": f"web-{host}", "n": int(counts[host][i])} for i in range(120) for host in counts]
    assert not stuck_in(data_of(rows, 2000))


@pytest.mark.parametrize("count", [70, 300, 3000])
def test_what_is_calm_is_not_stuck(count: int) -> None:
    """H18: nor what idles, has few values, is constant, or is at a bound."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise, i = rng.normal(50, 9, count).round(2), np.arange(count)
        columns = calm(rng, count) | {
            "idles": np.cumsum(rng.exponential(size=count) * (i % 60 < 30)),
            "stops": np.cumsum(np.where(i < count // 2, 1 + rng.random(count), 0)),
            "few": rng.integers(15, size=count),
            "held": np.repeat(rng.normal(size=count), 3)[:count],
            "none": np.where(i < count // 2, noise, 0),
            "full": np.where(i < count // 2, noise, 100),
            "clipped": np.minimum(noise, 52),
        }
        rows = [
            {"ts": at(place), "host": f"web-{place % 2}", **dict(zip(columns, map(float, values), strict=True))}
            for place, values in enumerate(zip(*columns.values(), strict=True))
        ]
        assert "stuck" not in data_of(rows, 8_000)
