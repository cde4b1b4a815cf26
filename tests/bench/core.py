"""Speed and memory of parse and store, as Markdown: `python -m tests.bench.core [--quick] [--cold] [FOLDER]`.

Speed: milliseconds of `hyve.parse` and of `Datastore` (shape and DuckDB) for the files of FOLDER (generated ones
without it) and for a list of 100,000 records of six fields (samples of metrics, and log records, which become a second
table `log_records`), beside the floor, the least that puts the same bytes into
an in-memory DuckDB: orjson, pyarrow's `Table.from_pylist` of the list (or of a list of the one object), `CREATE TABLE`.
Where pyarrow refuses the types, the floor is orjson and DuckDB's `read_json` of the file; a text that is no JSON has
none. Ours and the floor take turns after a round of warming up, the best of N rounds counts, and the floor runs without
Python's cycle collector. A list of records without containers is flat, all else nested.

Growth: seconds for each MB and peak memory at 1, 10 and 100 MB, each in three processes of its own that take turns; the
least time and the largest peak count. The time is relative to that at 1 MB; the memory is what the process held at
most, above what it held before it read the payload, as a multiple of the payload; the payload's bytes and its text
count. It is what a store worker's process (`hyve.sql.dedicate`) sees that has run for a while: before, it has stored
and released 100 KB of the same kind three times in both ways, in runs and at once, and compressed them; the last one
leaves an idle database of some 2 MB, as small stores do in any such process, and the large one closes that. Imports,
libraries' code that is used first, and what DuckDB, Arrow and Python set up once are no part of the payload. The tables
are in DuckDB when the peak is read.
`--cold` prints instead the memory that 1 MB of each kind takes in a process that has stored one record before, and how
much of it are pages of libraries' files that are read for the first time: the system shares them among processes.
`--quick` leaves out 100 MB, `--only KIND` (may be repeated) the other kinds and the speed. `--cpu` takes the
processor's time instead of the clock's, for a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import orjson
import pyarrow as pa

import hyve
from hyve import freetext, parts, sql, store, strictjson
from tests.bench import payloads
from tests.unit.documents import fetched

FLAT, NESTED = 3.0, 6.0
"""Most times the floor that flat records and nested ones may take."""

_TURNS = 3
GROWTH, MEMORY = 1.3, 8.0
"""Most times the seconds for a MB that 1 MB takes, and most times the payload in memory."""

_MB = 1_000_000
_GENERATED = {
    "logs.json": payloads.logs,
    "logs.ndjson": payloads.lines,
    "pods.json": payloads.pods,
    "otlp.json": payloads.otlp,
    "matrix.json": payloads.matrix,
    "table.csv": payloads.csv,
    "mixed.txt": payloads.mixed,
}
_GROWING = {
    "flat": payloads.flat,
    "logs": payloads.logs,
    "lines": payloads.lines,
    "pods": payloads.pods,
    "otlp": payloads.otlp,
    "otlp, one resource": payloads.one_resource,
    "matrix": payloads.matrix,
    "csv": payloads.csv,
    "changing types": payloads.changing,
    "logfmt": payloads.logfmt,
    "access log": payloads.access_log,
    "exposition text": payloads.exposition,
    "log lines": payloads.log,
    "short lines": payloads.short_lines,
    "python": payloads.python,
    "bare keys": payloads.near,
    "commas": payloads.commas,
    "two a line": payloads.pairs,
    "behind heads": payloads.behind_heads,
    "in colours": payloads.coloured,
    "tiny python": payloads.tiny_python,
    "tiny bare keys": payloads.tiny_near,
    "tiny, two a line": payloads.tiny_pairs,
    "numbers": payloads.numbers,
    "rows": payloads.rows,
}


def main() -> int:
    """Prints both tables; 1 if a figure is out of bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=_GROWING, metavar="KIND")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure and options.cold:
        print(json.dumps(_first(options.measure)))
        return 0
    if options.measure:
        print(json.dumps(_measure(options.measure, options)))
        return 0
    if options.cold:
        with tempfile.TemporaryDirectory() as scratch:
            return 0 if _cold(Path(scratch)) else 1
    with tempfile.TemporaryDirectory() as scratch:
        good = bool(options.only) or _speed(Path(scratch), options)
        print()
        good &= _growth((1, 10) if options.quick else (1, 10, 100), Path(scratch), options)
    return 0 if good else 1


def _clock(options: argparse.Namespace) -> Callable[[], float]:
    return time.process_time if options.cpu else time.perf_counter


def _speed(scratch: Path, options: argparse.Namespace) -> bool:
    if options.folder is None:
        for name, make in _GENERATED.items():
            (scratch / name).write_text(make(3 * _MB // 2))
        files = sorted(scratch.iterdir())
    else:
        files = sorted(options.folder.glob("*_*.*"))
    for name, listed in (("100,000 samples", payloads.records), ("100,000 log records", payloads.log_records)):
        files.append(scratch / name)
        files[-1].write_text(listed(100_000))
    print("| input | MB | parse ms | store ms | floor ms | ratio | at most | floor |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    good = [_compare(file, options.rounds, _clock(options)) for file in files]
    return all(good)


def _compare(file: Path, rounds: int, clock: Callable[[], float]) -> bool:
    data = file.read_bytes()
    floor, label, bound = _floor(file, data)
    times: list[tuple[float, float, float]] = []
    for _ in range(rounds + 1):
        parse, store = _ours(data, clock)
        gc.disable()
        began = clock()
        if floor:
            floor()
        times.append((parse, store, clock() - began))
        gc.enable()
        gc.collect()
    parse, store = min(((parse, store) for parse, store, _ in times[1:]), key=sum)
    least = min(took for *_, took in times[1:])
    row = f"| {file.name} | {len(data) / _MB:.1f} | {parse * 1e3:.1f} | {store * 1e3:.1f} |"
    if floor is None:
        print(f"{row} | | | {label} |", flush=True)
        return True
    ratio = (parse + store) / least
    print(f"{row} {least * 1e3:.1f} | {ratio:.2f} | {bound:.0f} | {label} |", flush=True)
    return ratio <= bound


def _ours(data: bytes, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of parse and of store."""
    began = clock()
    document = hyve.parse(data)
    parsed = clock()
    store = hyve.Datastore.from_document(document)
    fetched(store, "SELECT 1")  # a small store waits for SQL before it is loaded
    stored = clock()
    store.close()
    return parsed - began, stored - parsed


def _floor(file: Path, data: bytes) -> tuple[Callable[[], Any] | None, str, float]:
    """(what to run, its label, the bound) for one file."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None, "none: no JSON", 0
    rows = value if isinstance(value, list) else [value]
    flat = isinstance(value, list) and not any(isinstance(cell, dict | list) for row in rows for cell in row.values())
    bound = FLAT if flat else NESTED

    def from_pylist() -> None:
        value = orjson.loads(data)
        table = pa.Table.from_pylist(value if isinstance(value, list) else [value])
        with duckdb.connect() as connection:
            connection.register("source", table)
            connection.execute("CREATE TABLE records AS SELECT * FROM source")

    def read_json() -> None:
        orjson.loads(data)
        with duckdb.connect() as connection:
            size = f"maximum_object_size = {len(data) + 1024}"
            connection.execute(f"CREATE TABLE records AS SELECT * FROM read_json('{file}', {size})")

    try:
        pa.Table.from_pylist(rows)
    except pa.ArrowException:
        return read_json, "orjson, read_json", bound
    return from_pylist, "orjson, from_pylist, CREATE TABLE", bound


def _growth(sizes: tuple[int, ...], scratch: Path, options: argparse.Namespace) -> bool:
    print("| records | MB | seconds for a MB | relative to 1 MB | at most | peak memory / payload | at most |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    good = True
    for name in options.only or _GROWING:
        make = _GROWING[name]
        files = {size: scratch / f"{name}-{size}" for size in sizes}
        for size, file in files.items():
            file.write_text(make(size * _MB))
        found: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
        for _ in range(_TURNS):
            for size, file in files.items():
                command = [sys.executable, "-m", "tests.bench.core", "--measure", str(file)]
                command += ["--rounds", str(max(1, options.rounds // size)), *(["--cpu"] if options.cpu else [])]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found[size].append(json.loads(output))
        first = 0.0
        for size, file in files.items():
            length = file.stat().st_size
            pace = min(one["seconds"] for one in found[size]) / length
            memory = max(one["peak"] for one in found[size]) / length
            first = first or pace
            good &= pace <= GROWTH * first and memory <= MEMORY
            print(
                f"| {name} | {length / _MB:.1f} | {pace * _MB:.4f} | {pace / first:.2f} | {GROWTH} "
                f"| {memory:.1f} | {MEMORY:.0f} |",
                flush=True,
            )
            file.unlink()
    return good


def _measure(file: Path, options: argparse.Namespace) -> dict[str, float]:
    """Peak bytes above those held before, and the best seconds of parse and store of `file`."""
    clock = _clock(options)
    sql.dedicate()
    small = _GROWING[file.name.partition("-")[0]](100_000).encode()
    for _ in range(3):
        with (
            mock.patch.multiple(strictjson, LONG=0, RUN=1 << 15, _PIECE=1 << 14),
            mock.patch.object(freetext, "_CHARACTERS", 1 << 15),
            mock.patch.object(parts, "_STEP", 1 << 3),
            mock.patch.object(store, "_SOME", 1 << 16),
        ):
            _ours(small, clock)
        _ours(small, clock)
    Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
    before = _memory("VmRSS")
    data = file.read_bytes()
    with hyve.Datastore.from_text(data) as held:
        fetched(held, "SELECT 1")
        peak = _memory("VmHWM")
    seconds = sum(_ours(data, clock))
    for _ in range(options.rounds - 1):
        gc.collect()
        seconds = min(seconds, sum(_ours(data, clock)))
    return {"peak": peak - before, "seconds": seconds}


def _cold(scratch: Path) -> bool:
    print("| records | peak memory / payload | of it libraries' files | the rest | at most |")
    print("|---|---:|---:|---:|---:|")
    good = True
    for name, make in _GROWING.items():
        file = scratch / f"{name}-1"
        file.write_text(make(_MB))
        command = [sys.executable, "-m", "tests.bench.core", "--cold", "--measure", str(file)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        peak, files = (found[key] / file.stat().st_size for key in ("peak", "files"))
        good &= peak - files <= MEMORY
        print(f"| {name} | {peak:.1f} | {files:.1f} | {peak - files:.1f} | {MEMORY:.0f} |", flush=True)
    return good


def _first(file: Path) -> dict[str, int]:
    """Peak bytes of the first store of `file`, above those held before, and how many of them are pages of files."""
    sql.dedicate()
    with hyve.Datastore.from_text('[{"a": 1}]') as held:
        fetched(held, "SELECT 1")
    Path("/proc/self/clear_refs").write_text("5")
    before, files = _memory("VmRSS"), _memory("RssFile")
    with hyve.Datastore.from_text(file.read_bytes()) as held:
        fetched(held, "SELECT 1")
        return {"peak": _memory("VmHWM") - before, "files": _memory("RssFile") - files}


def _memory(line: str) -> int:
    """Bytes on one line of Linux's account of this process. (ru_maxrss starts with what the parent process held.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{line}:")[2].split()[0]) * 1024


if __name__ == "__main__":
    raise SystemExit(main())
