"""DETECT_ANOMALY against plain 3-sigma and STL residuals on series whose anomalies are known.

`python -m tests.bench.anomaly [--seeds FIRST COUNT] [--per-series]` needs `statsmodels` (extra `bench`).

200 series, 40 of each kind, by seed: a trend, a daily period, level shifts, gaps, heavy tails. All but a quarter of
them hold spikes, dips and short bursts besides; noise is partly autocorrelated, half of the series that aren't about a
period have one too, and single samples are missing here and there, which is no anomaly. What is measured:

- An event is found if something is reported within two steps of it: a gap as a gap, all else as anything but a gap.
  What is reported within the shifted part of a series belongs to the shift.
- Reports within two steps of each other are one. Precision is the share of reports that belong to an event, recall the
  share of events that are found; the counts of all series of a kind are added up.
- STL gets the true period (24 without one) and the missing samples interpolated. Neither it nor 3-sigma can see gaps,
  so the last line leaves gaps out. A shift that DETECT_ANOMALY reports counts only by where it begins.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from hyve import sql

KINDS = ("trend", "daily", "shift", "gaps", "heavy")
TOLERANCE = 2
_START = 1_767_225_600  # 2026-01-01T00:00:00Z


@dataclass(frozen=True)
class Event:
    """An anomaly that was put in: `kind` is "spike", "shift" or "gap", the ends are steps, both included."""

    kind: str
    first: int
    last: int


@dataclass(frozen=True)
class Series:
    """`values` on a grid of `step` seconds, NaN where the sample is missing; `period` in steps, 0 without one."""

    kind: str
    seed: int
    step: int
    period: int
    values: np.ndarray
    events: tuple[Event, ...]


def generate(kind: str, seed: int) -> Series:
    """One series; the same for the same arguments."""
    draw = np.random.default_rng([seed, KINDS.index(kind)])
    seasonal = kind == "daily" or (kind != "trend" and draw.random() < 0.5)
    if seasonal:
        step, period, days = [(300, 288, (4, 8)), (900, 96, (5, 15)), (3600, 24, (14, 40))][draw.integers(3)]
        n = period * int(draw.integers(*days))
    else:
        step, period, n = 60, 0, int(draw.integers(400, 2000))
    level = 10 ** draw.uniform(0, 4)
    sigma = level * draw.uniform(0.01, 0.1)
    values = level + sigma * _noise(draw, n, kind)
    if seasonal:
        values += sigma * draw.uniform(4, 20) * _season(draw, n, period)
    if kind == "trend" or draw.random() < 0.2:
        values += sigma * _trend(draw, n)
    events: list[Event] = []
    if kind == "shift":
        events += _shifts(draw, values, sigma)
    if draw.random() > 0.25:
        events += _spikes(draw, values, sigma * (draw.uniform(2, 3) if kind == "heavy" else 1), events)
    if kind == "gaps":
        events += _gaps(draw, values, events)
    if draw.random() < 0.3:
        lost = np.flatnonzero(draw.random(n) < 0.005)
        spikes = {i for e in events for i in range(e.first - 2, e.last + 3) if e.kind != "shift"}
        values[[i for i in lost if i not in spikes and i - 1 not in lost]] = np.nan
    return Series(kind, seed, step, period, values, tuple(sorted(events, key=lambda e: e.first)))


def _noise(draw: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Noise of scale 1: normal and often autocorrelated; for "heavy" Student's t, Laplace or skewed as latencies."""
    if kind == "heavy":
        shape = draw.integers(3)
        if shape == 0:
            return draw.standard_t(3, n)
        if shape == 1:
            return draw.laplace(0, 0.8, n)
        return np.exp(draw.normal(0, 0.6, n)) * 1.2
    noise = draw.normal(0, 1, n)
    rho = draw.choice([0.0, 0.3, 0.6])
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return noise


def _season(draw: np.random.Generator, n: int, period: int) -> np.ndarray:
    """A day of amplitude about 1: a sine with harmonics, or office hours; quieter weekends in some hourly series."""
    phase = (np.arange(n) + draw.integers(period)) / period * 2 * np.pi
    if draw.random() < 0.5:
        day = np.sin(phase) + draw.uniform(0, 0.5) * np.sin(2 * phase + draw.uniform(0, 6))
    else:
        day = np.tanh(draw.uniform(1, 4) * (np.sin(phase) + draw.uniform(-0.5, 0.5)))
    if period == 24 and draw.random() < 0.3:
        day = day * np.where(np.arange(n) // period % 7 >= 5, 0.7, 1.0)
    return day


def _trend(draw: np.random.Generator, n: int) -> np.ndarray:
    x = np.linspace(0, 1, n)
    slope = draw.uniform(5, 40) * draw.choice([-1, 1])
    return slope * (x if draw.random() < 0.6 else x ** draw.uniform(1.5, 3))


def _free(draw: np.random.Generator, n: int, length: int, taken: Iterable[Event]) -> int | None:
    """Where `length` steps fit that are 15 steps off any event and the ends (shifts: off their edges)."""
    for _ in range(50):
        first = int(draw.integers(15, n - 15 - length))
        last = first + length - 1
        if all(
            (last < e.first - 15 or first > e.last + 15)
            or (e.kind == "shift" and first > e.first + 15 and (last < e.last - 15 or e.last == n - 1))
            for e in taken
        ):
            return first
    return None


def _shifts(draw: np.random.Generator, values: np.ndarray, sigma: float) -> list[Event]:
    n, found = len(values), list[Event]()
    for _ in range(int(draw.integers(1, 3))):
        lasting = draw.random() < 0.5 and not any(e.last == n - 1 for e in found)
        length = int(n * draw.uniform(0.1, 0.6)) if lasting else int(n * draw.uniform(0.05, 0.2))
        first = n - length if lasting else _free(draw, n, length, found)
        if first is None or any(first <= e.last + 15 for e in found if lasting):
            continue
        values[first : first + length] += sigma * draw.uniform(4, 10) * draw.choice([-1, 1])
        found.append(Event("shift", first, first + length - 1))
    return found


def _spikes(draw: np.random.Generator, values: np.ndarray, sigma: float, taken: list[Event]) -> list[Event]:
    found: list[Event] = []
    for _ in range(int(draw.integers(1, 6))):
        length = 1 if draw.random() < 0.6 else int(draw.integers(2, 9))
        first = _free(draw, len(values), length, [*taken, *found])
        if first is None:
            continue
        values[first : first + length] += (
            sigma * draw.uniform(5, 12) * draw.choice([-1, 1]) * draw.uniform(0.9, 1.1, length)
        )
        if not any(e.kind == "shift" and e.first <= first <= e.last for e in taken):
            found.append(Event("spike", first, first + length - 1))
    return found


def _gaps(draw: np.random.Generator, values: np.ndarray, taken: list[Event]) -> list[Event]:
    found: list[Event] = []
    for _ in range(int(draw.integers(1, 4))):
        length = int(draw.integers(4, 60))
        first = _free(draw, len(values), length, [*taken, *found])
        if first is not None:
            values[first : first + length] = np.nan
            found.append(Event("gap", first, first + length - 1))
    return found


def three_sigma(series: Series) -> list[Event]:
    """Every value over three standard deviations from the mean."""
    values = series.values
    far = np.abs(values - np.nanmean(values)) > 3 * np.nanstd(values)
    return runs(np.flatnonzero(far))


def stl(sigma: Callable[[np.ndarray], float], k: float, robust: bool = True) -> Callable[[Series], list[Event]]:
    """Residuals of statsmodels' STL over `k` times `sigma` of them."""

    def detect(series: Series) -> list[Event]:
        residual = _residual(series.kind, series.seed, robust)
        known = np.isfinite(series.values)
        return runs(np.flatnonzero(known & (np.abs(residual - np.median(residual)) > k * sigma(residual))))

    return detect


@lru_cache(maxsize=2)
def _residual(kind: str, seed: int, robust: bool) -> np.ndarray:
    from statsmodels.tsa.seasonal import STL  # the extra `bench`

    series = generate(kind, seed)
    x, known = np.arange(len(series.values)), np.isfinite(series.values)
    filled = np.interp(x, x[known], series.values[known])
    return np.asarray(STL(filled, period=series.period or 24, robust=robust).fit().resid)


def mad(residual: np.ndarray) -> float:
    """The standard deviation that a normal distribution with this median absolute deviation has."""
    return float(1.4826 * np.median(np.abs(residual - np.median(residual))))


def ours(series: Series) -> list[Event]:
    """The rows of DETECT_ANOMALY, asked as a model would ask."""
    at = np.flatnonzero(np.isfinite(series.values))
    stamps = ((_START + at * series.step) * 1_000_000_000).astype("datetime64[ns]")
    table = pa.table({"time": stamps, "value": series.values[at]})
    connection = sql.borrow("1GB")
    try:
        connection.register("_source", table)
        connection.execute("CREATE TABLE samples AS SELECT * FROM _source")
        connection.unregister("_source")
        asked = """SELECT kind, epoch(first_time), epoch(CASE WHEN kind = 'shift' THEN first_time ELSE last_time END)
            FROM DETECT_ANOMALY('samples', 'value', top := 1000)"""
        rows = sql.run(connection, asked, ("samples",)).rows
    finally:
        sql.give_back(connection, "1GB", ["samples"])
    found = []
    for kind, first, last in rows:
        steps = [round((seconds - _START) / series.step) for seconds in (first, last)]
        found.append(Event("gap" if kind == "gap" else "spike", steps[0], steps[1]))
    return found


def runs(steps: np.ndarray) -> list[Event]:
    """Flagged steps as reports: what is within TOLERANCE of each other is one."""
    found: list[Event] = []
    for step in map(int, steps):
        if found and step - found[-1].last <= TOLERANCE:
            found[-1] = Event("spike", found[-1].first, step)
        else:
            found.append(Event("spike", step, step))
    return found


def score(series: Series, reports: list[Event]) -> Counter[str]:
    """Counts of events, found ones, reports and right ones; those of gaps under names of their own."""

    def hit(event: Event, report: Event) -> bool:
        near = report.first <= event.last + TOLERANCE and report.last >= event.first - TOLERANCE
        return near and (event.kind == "gap") == (report.kind == "gap")

    counts: Counter[str] = Counter()
    for event in series.events:
        name = "gap " if event.kind == "gap" else ""
        counts[name + "events"] += 1
        counts[name + "found"] += any(hit(event, report) for report in reports)
    for report in reports:
        name = "gap " if report.kind == "gap" else ""
        counts[name + "reports"] += 1
        counts[name + "right"] += any(hit(event, report) for event in series.events)
    return counts


def figures(counts: Counter[str], gaps: bool = True) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    names = ("", "gap ") if gaps else ("",)
    events, found, reports, right = (
        sum(counts[name + what] for name in names) for what in ("events", "found", "reports", "right")
    )
    precision = right / reports if reports else 1.0
    recall = found / events if events else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs=2, type=int, default=(1000, 40), metavar=("FIRST", "COUNT"))
    parser.add_argument("--only", choices=("ours",), help="leave the other methods out")
    parser.add_argument("--per-series", action="store_true", help="print what was missed and what was wrong")
    options = parser.parse_args()
    first, count = options.seeds
    methods: dict[str, Callable[[Series], list[Event]]] = {"DETECT_ANOMALY": ours}
    if options.only is None:
        methods |= {
            "3-sigma": three_sigma,
            "STL, 3 sigma": stl(lambda residual: float(np.std(residual)), 3, robust=False),
            "robust STL, 3 sigma": stl(lambda residual: float(np.std(residual)), 3),
            "robust STL, 3.5 MAD": stl(mad, 3.5),
            "robust STL, 6 MAD": stl(mad, 6),
        }
    all_series = [generate(kind, seed) for kind in KINDS for seed in range(first, first + count)]
    counts: dict[str, dict[str, Counter[str]]] = {name: defaultdict(Counter) for name in methods}
    spent: Counter[str] = Counter()
    for series in all_series:
        for name, method in methods.items():
            started = time.process_time()
            reports = method(series)
            spent[name] += time.process_time() - started
            got = score(series, reports)
            counts[name][series.kind] += got
            wrong = got["reports"] + got["gap reports"] - got["right"] - got["gap right"]
            missed = got["events"] + got["gap events"] - got["found"] - got["gap found"]
            if options.per_series and name == "DETECT_ANOMALY" and (wrong or missed):
                print(series.kind, series.seed, f"period {series.period}, {wrong} wrong, {missed} missed")
                print("   events ", [(e.kind, e.first, e.last) for e in series.events])
                print("   reports", [(e.kind, e.first, e.last) for e in reports])
    events = sum(len(series.events) for series in all_series)
    print(f"{len(all_series)} series, {events} events, seeds {first} to {first + count - 1}\n")
    print("| precision / recall / F1 | " + " | ".join(methods) + " |\n|" + "---|" * (len(methods) + 1))
    for kind in KINDS:
        print(_line(kind, [figures(counts[name][kind]) for name in methods]))
    totals = {name: sum(counts[name].values(), Counter()) for name in methods}
    print(_line("all", [figures(total) for total in totals.values()]))
    print(_line("all, without gaps", [figures(total, gaps=False) for total in totals.values()]))
    print(
        "| ms of CPU a series | " + " | ".join(f"{spent[name] * 1000 / len(all_series):.1f}" for name in methods) + " |"
    )
    print("\nOf the robust STL the first column has the time of all three.")


def _line(label: str, cells: list[tuple[float, float, float]]) -> str:
    return f"| {label} | " + " | ".join(f"{p:.2f} / {r:.2f} / **{f:.2f}**" for p, r, f in cells) + " |"


if __name__ == "__main__":
    main()
