"""Changes of level and of shares that are told, found and false, as Markdown: `python -m tests.bench.levels`.

What is calm is `tests.unit.changes_inputs.calm` and fainter kinds of the same; it has no change, and what is told of it
is false. A change is found where one is told, and at its place: within a fiftieth of the rows, of skewed numbers within
a twentieth (their values before and behind overlap). Places are random, from a tenth of the rows to nine; onsets are in
the last rows. All numbers of a seed are the columns of one table with times, read as any input is. Kinds without a
change are those of `tests.unit.changes_inputs.calm_kinds`; a change of a share is found within a twentieth of the rows.
They are looked for in all rows, and within each of five series that take turns at random, of which one has the change:
that is found where it is told of this series alone, within a tenth of its rows; places are in the middle two fifths.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import hyve
from hyve import rank
from hyve.changes import Changes
from hyve.columns import Columns
from hyve.profile import profile
from hyve.shares import blocks_of, shares_in, shares_within
from tests.unit.changes_inputs import at, calm, calm_kinds, drawn

Numbers = dict[str, NDArray[np.float64]]
_ROWS = (300, 768, 2_000, 5_000)
_SERIES_ROWS = (768, 2_000, 6_000, 20_000)
_ENDS = ((768, 20), (5_000, 40), (20_000, 60))
"""Rows, and how many of the last are behind the onset."""


def fainter(rng: np.random.Generator, count: int) -> Numbers:
    """More numbers without a level that changes: skewed, related to those before, faint trends, walks and seasons."""
    noise, i = rng.normal(size=count), np.arange(count) / count
    related = {}
    for share in (0.3, 0.7, 0.9, 0.97):
        values = noise.copy()
        for place in range(1, count):
            values[place] += share * values[place - 1]
        related[f"related {share}"] = values
    return {
        "exponential": rng.exponential(size=count) * 50,
        "log-normal": np.exp(0.7 * noise) * 100,
        **related,
        **{f"trend of {size}": size * i + noise for size in (1, 2, 4)},
        **{f"bent by {size}": size * i**2 + noise for size in (2, 4)},
        "trend, log-normal": np.exp(0.7 * i + 0.7 * noise),
        "bent, log-normal": np.exp(1.5 * i**2 + 0.7 * noise),
        "walk below noise": np.cumsum(noise) * 0.03 + rng.normal(size=count),
        "walk in noise": np.cumsum(noise) * 0.08 + rng.normal(size=count),
        "season of 1": np.sin(2 * np.pi * (i + rng.random())) + noise,
        "season of 0.5": 0.5 * np.sin(2 * np.pi * (i + rng.random())) + noise,
        "3 seasons of 1": np.sin(6 * np.pi * (i + rng.random())) + noise,
        "seasons, log-normal": np.exp(0.5 * np.sin(8 * np.pi * (i + rng.random())) + 0.7 * noise),
    }


def changed(rng: np.random.Generator, count: int, place: int) -> Numbers:
    """Numbers of which the level changes at a place: by so many deviations, or so many times."""
    noise, behind = rng.normal(size=count), np.arange(count) >= place
    return {
        **{f"normal +{size}": noise + size * behind for size in (1, 1.5, 3, 4, 6)},
        **{f"log-normal {sigma} x2": np.exp(sigma * noise) * (100 + 100 * behind) for sigma in (0.5, 0.75, 1)},
        **{f"log-normal {sigma} x4": np.exp(sigma * noise) * (100 + 300 * behind) for sigma in (0.5, 1)},
        "exponential x2": rng.exponential(size=count) * (1 + behind),
        "exponential x3": rng.exponential(size=count) * (1 + 2 * behind),
    }


def told(numbers: Numbers, **parted: list[str]) -> dict[str, list[int]]:
    """The rows from which a new level is told of each of the numbers, in rows that some columns part."""
    names = [f"n{i}" for i in range(len(numbers))]
    rows = [
        {"ts": at(second), **{by: of[second] for by, of in parted.items()}, **dict(zip(names, values, strict=True))}
        for second, values in enumerate(zip(*(one.tolist() for one in numbers.values()), strict=True))
    ]
    found: dict[str, list[int]] = {}
    with hyve.Datastore.from_document(hyve.parse(json.dumps(rows))) as store:
        columns = Columns(store, store.catalog.tables[0])
        table = profile(columns)
        changes = Changes(table)
        places = {view.column.name: place for place, view in enumerate(table.views)}
        for name, spelled in zip(numbers, names, strict=True):
            values, there = columns.floats(spelled)
            away = rank.away(values, there, changes.series)
            told_of = changes.levels(places[spelled], values, there, away)
            found[name] = [one.rows[-1] for one in told_of if ": median " in one.text]
    return found


def _of_seed(count: int, last: int, seed: int) -> dict[str, bool]:
    """Which numbers of a seed are found, or have a false change; `last`: those of an onset in so many rows."""
    rng = np.random.default_rng(seed)
    place = count - last if last else int(count * rng.uniform(0.1, 0.9))
    quiet = (
        {} if last else {f"calm: {name}": values for name, values in (calm(rng, count) | fainter(rng, count)).items()}
    )
    moved = changed(rng, count, place)
    found = {}
    for name, rows in told(quiet | moved).items():
        near = max(2, last // 8) if last else count // (50 if name.startswith("normal") else 20)
        found[name] = bool(rows) if name in quiet else len(rows) == 1 and abs(rows[0] - place) <= near
    return found


_CHANGED = {"0 to 100%": (0, 1), "1 to 30%": (0.01, 0.3), "5 to 60%": (0.05, 0.6), "30 to 1%": (0.3, 0.01)} | {
    "1 to 5%": (0.01, 0.05),
    "0 to 3%": (0, 0.03),
    "30 to 60%": (0.3, 0.6),
}
"""The shares of kinds before and behind a place."""


def _kinds_of_seed(count: int, seed: int) -> dict[str, bool]:
    """Which kinds of a seed are found, or have a false change."""
    rng = np.random.default_rng(seed)
    edges = blocks_of(count)
    quiet = calm_kinds(rng, count)
    found = {f"calm: {name}": bool(shares_in(of, int(of.max()) + 1, edges)) for name, of in quiet.items()}
    place = int(count * rng.uniform(0.1, 0.9))
    for name, (before, behind) in _CHANGED.items():
        of = drawn(rng, np.where(np.arange(count) < place, before, behind), count)
        told = shares_in(of, 2, edges)
        found[name] = len(told) == 1 and abs(told[0].at - place) <= count / 20
    return found


def _within_of_seed(count: int, seed: int) -> dict[str, bool]:
    """Which kinds of a seed are found within series, or have a false change."""
    rng = np.random.default_rng(seed)
    owners = rng.integers(_SERIES, size=count)
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=_SERIES)
    quiet = calm_kinds(rng, count) | {
        "of each series": drawn(rng, np.array([0.01, 0.03, 0.1, 0.3, 0.6])[owners], count)
    }
    found = {
        f"calm: {name}": bool(shares_within(of[order], int(of.max()) + 1, sizes, _SERIES)) for name, of in quiet.items()
    }
    place = int(count * rng.uniform(0.3, 0.7))
    moved = (owners == 2) & (np.arange(count) >= place)
    at = int(np.count_nonzero(owners[:place] == 2))
    for became in _RATES:
        of = drawn(rng, np.where(moved, became, 0.02), count)
        told = shares_within(of[order], 2, sizes, _SERIES)
        right = [group for group, _ in told] == [2] and len(told[0][1]) == 1
        found[f"2 to {100 * became:g}%"] = right and abs(told[0][1][0].at - at) <= sizes[2] / 10
    return found


_SERIES, _RATES = 5, (0.05, 0.1, 0.15, 0.2, 0.3)


def _kinds(count: int, seeds: int, within: bool = False) -> dict[str, float]:
    of_seed = _within_of_seed if within else _kinds_of_seed
    of_seeds = [of_seed(count, seed) for seed in range(seeds)]
    return {name: 100 * sum(one[name] for one in of_seeds) / seeds for name in of_seeds[0]}


def _pairs(count: int, seeds: int) -> dict[str, float]:
    """Of which calm numbers a level is told in rows of so many series each, which two columns part."""
    series = _REGIONS * _SERIES
    found: dict[str, int] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        parts = [calm(rng, count) | fainter(rng, count) for _ in range(series)]
        rows = {name: np.stack([part[name] for part in parts], axis=1).ravel() for name in parts[0]}
        region = [f"r{i % series % _REGIONS}" for i in range(count * series)]
        service = [f"s{i % series // _REGIONS}" for i in range(count * series)]
        for name, places in told(rows, region=region, service=service).items():
            found[name] = found.get(name, 0) + bool(places)
    return {f"calm: {name}": 100 * count / seeds for name, count in found.items()}


_REGIONS, _PAIR_ROWS = 3, (100, 300, 800)


def _shares(count: int, last: int, seeds: int) -> dict[str, float]:
    of_seeds = [_of_seed(count, last, seed) for seed in range(seeds)]
    return {name: 100 * sum(one[name] for one in of_seeds) / seeds for name in of_seeds[0]}


def _part(shares: dict[str, float], calm: bool) -> dict[str, float]:
    return {name: share for name, share in shares.items() if name.startswith("calm: ") == calm}


def _table(title: str, heads: list[str], columns: list[dict[str, float]]) -> Iterator[str]:
    yield f"| {title} | {' | '.join(heads)} |"
    yield "|---|" + "---:|" * len(heads)
    for name in columns[0]:
        yield f"| {name.removeprefix('calm: ')} | {' | '.join(f'{column[name]:g}' for column in columns)} |"


def main() -> int:
    """Prints the tables; 1 if more than 2% of any kind that is calm is taken for a change."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--shares", action="store_true", help="of shares only")
    options = parser.parse_args()
    seeds = options.seeds
    of_kinds = [_kinds(count, seeds) for count in _ROWS]
    of_series = [_kinds(count, seeds, within=True) for count in _SERIES_ROWS]
    heads, rows = [f"{count:,} rows" for count in _ROWS], [f"{count:,} rows" for count in _SERIES_ROWS]
    print(*_table("no share changes, % told", heads, [_part(one, True) for one in of_kinds]), "", sep="\n")
    print(*_table("a share changes, % found", heads, [_part(one, False) for one in of_kinds]), "", sep="\n")
    print(*_table("no share of five series, % told", rows, [_part(one, True) for one in of_series]), "", sep="\n")
    print(*_table("of one of five series, % found", rows, [_part(one, False) for one in of_series]), "", sep="\n")
    false = [_part(one, True) for one in of_kinds + of_series]
    if options.shares:
        return int(max(max(one.values()) for one in false) > 2)
    of_pairs = [_pairs(count, max(1, seeds // 4)) for count in _PAIR_ROWS]
    pair_heads = [f"{count} rows each" for count in _PAIR_ROWS]
    print(*_table("no level of 15 series by two columns, % told", pair_heads, of_pairs), "", sep="\n")
    shares = [_shares(count, 0, seeds) for count in _ROWS]
    ends = [_shares(count, last, max(1, seeds // 4)) for count, last in _ENDS]
    false_levels, found = ([_part(one, calm) for one in shares] for calm in (True, False))
    print(*_table("no change, % told", heads, false_levels), "", sep="\n")
    print(*_table("a change anywhere, % found", heads, found), "", sep="\n")
    print(
        *_table("an onset in the last rows, % found", [f"{last} of {count:,}" for count, last in _ENDS], ends), sep="\n"
    )
    return int(max(max(one.values()) for one in false + false_levels) > 2)


if __name__ == "__main__":
    raise SystemExit(main())
