"""Hostile texts against well-formed ones of the same kind, as Markdown: `python -m tests.bench.hostile [CASE ...]`.

For each case the seconds of `hyve.parse` and `Datastore` on 5 MB, over those of a well-formed text of the same kind and
length: JSON (log records, an OTLP export for what nests, or tiny documents), NDJSON, Python reprs, a log (of common or
of very short lines), or a CSV table. Each runs in a process of its own, which is ended after two minutes; of a ratio
above its bound the best of three runs counts. What takes more than five times as long (a document for each line is
repaired, say) must at least be linear: no more than 2.6 times as long as half of it. The cases of `NAMED` may not.
`--view` measures all that `hyve.view` does up to the prompt of 1,500 tokens, instead of reading and storing alone.
`--size` sets another length in MB, `--cpu` takes the processor's time instead of the clock's, for a machine that has
other things to do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import hyve
from tests.bench import payloads
from tests.unit.documents import fetched

RATIO = 5.0
"""Most times the well-formed text's seconds that a hostile one may take."""

GROWTH = 2.6
"""Most times the seconds of half of a text that the whole may take; 4 would be its square."""

BUDGET = 1_500
"""Tokens of the view."""

TIMEOUT = 120.0
"""Seconds after which a run is ended."""

WELL_FORMED: dict[str, Callable[[int], str]] = {
    "json": payloads.logs,
    "nested json": payloads.otlp,
    "ndjson": payloads.lines,
    "python": payloads.python,
    "log": payloads.log,
    "short lines": payloads.short_lines,
    "tiny json": payloads.tiny_documents,
    "tiny python": payloads.tiny_python,
    "csv": payloads.csv,
}


def _repeated(text: str) -> Callable[[int], str]:
    return lambda size: text * (size // len(text))


def _framed(before: str, text: str, after: str) -> Callable[[int], str]:
    return lambda size: before + text * (size // len(text)) + after


def _each_line(make: Callable[[int], str], old: str, new: str) -> Callable[[int], str]:
    return lambda size: make(size).replace(old, new)


HOSTILE: dict[str, tuple[str, Callable[[int], str]]] = {
    "[[[[": ("nested json", _repeated("[")),
    "[[[[ and ]]]]": ("nested json", lambda size: "[" * (size // 2) + "]" * (size // 2)),
    "[{[{": ("nested json", _repeated("[{")),
    '{"a":': ("nested json", _repeated('{"a":')),
    '{"a":[': ("nested json", _repeated('{"a":[')),
    '{"a":1,': ("nested json", _repeated('{"a":1,')),
    '[{"a":1},': ("nested json", _repeated('[{"a":1},')),
    '{"a" on lines': ("short lines", _repeated('{"a"\n')),
    "quotes": ("json", _repeated('"')),
    "[ and quotes": ("json", _framed("[", '"', "]")),
    '["': ("nested json", _repeated('["')),
    '{"': ("nested json", _repeated('{"')),
    "backslashes": ("json", _repeated("\\")),
    "NULs": ("json", _repeated("\0")),
    '[" and backslashes': ("json", _framed('["', "\\", '"]')),
    '\\"': ("json", _repeated('\\"')),
    "\\u0000": ("json", _framed('["', "\\u0000", '"]')),
    "\\ud800": ("json", _framed('["', "\\ud800", '"]')),
    "NUL": ("tiny json", _repeated('{"a":"\0"}')),
    "cut JSON on one line": ("json", lambda size: payloads.logs(size)[:-40]),
    "cut deep JSON on one line": ("nested json", lambda size: payloads.pods(size)[:-140]),
    "cut in a string of 5 MB": ("json", _framed('[{"a": "', "text ", "")),
    "JSON with a comma too many": ("json", lambda size: payloads.logs(size)[:-1] + ",]"),
    "JSON without its first brace": ("json", lambda size: payloads.logs(size)[2:]),
    "JSON without quotes on keys": ("json", _each_line(payloads.logs, '"ts"', "ts")),
    "JSON with its brackets crossed": (
        "nested json",
        lambda size: payloads.otlp(size).translate({0x5D: "}", 0x7D: "]"}),
    ),
    "digits": ("json", _framed("[", "9", "]")),
    "digits after a point": ("json", _framed("[0.", "3", "]")),
    "repeated keys": ("json", _framed("{", '"a":1,', '"a":1}')),
    "distinct keys": ("json", lambda size: "{" + ",".join(f'"k{i}":{i}' for i in range(size // 14)) + "}"),
    "records of distinct keys": ("json", lambda size: json.dumps([{f"k{i}": i} for i in range(size // 18)])),
    "blanks": ("json", _framed("{", " ", "}")),
    "blank lines": ("json", _framed("{", "\n", "x}")),
    "every line cut": ("ndjson", _each_line(payloads.lines, '"}\n', "\n")),
    "every line with two commas": ("ndjson", _each_line(payloads.lines, ', "msg"', ',, "msg"')),
    "every line with single quotes": ("ndjson", _each_line(payloads.lines, '"', "'")),
    "every line without its brace": ("ndjson", _each_line(payloads.lines, '{"ts"', '"ts"')),
    "last line cut": ("ndjson", lambda size: payloads.lines(size)[:-30]),
    "text behind each line": ("ndjson", _each_line(payloads.lines, "}\n", "} ok\n")),
    "single quotes": ("python", _repeated("'")),
    "{'a':": ("python", _repeated("{'a':")),
    "{'a': ( on lines": ("short lines", _repeated("{'a': (\n")),
    "((((": ("python", _repeated("(")),
    "[( and )]": ("python", lambda size: "[(" * (size // 4) + ")]" * (size // 4)),
    "f(f(f(": ("python", _repeated("f(")),
    "unbalanced": ("python", _repeated("{[(]})([")),
    "every repr cut": ("python", _each_line(payloads.python, "'}\n", "\n")),
    "log with braces": ("log", _each_line(payloads.log, "request", 'request {"id": 3, [req={x:')),
    "log with whole JSON": ("log", _each_line(payloads.log, "request", 'request {"id": 3}')),
    "log with brackets": ("log", _each_line(payloads.log, "request", "[[]{}] {a} [1, 2")),
    "prose with braces on one line": ("log", _repeated('the {set} of ["all] {"sets": that ')),
    "documents of one key on one line": ("log", _repeated('a=1 b="x y" c={d: 1} ')),
    "near-JSON in prose on one line": ("log", _repeated("the user {name: foo, said: [hello} ")),
    "near-JSON prose on one line": ("log", _repeated('the {"quick": brown, fox} [jumps over "the" lazy dog, ')),
    "near-JSON prose on lines": ("log", _repeated('the {"quick": brown, fox} [jumps over "the" lazy dog,\n')),
    "near-JSON prose on lines of their own": (
        "log",
        lambda size: "".join(f'the {{"q{i}": brown{i}, fox}} [jumps over "the" lazy dog,\n' for i in range(size // 60)),
    ),
    "[] on one line": ("json", _repeated("[]")),
    "{} on one line": ("json", _repeated("{}")),
    "[1] on one line": ("json", _repeated("[1]")),
    "lists of words on one line": ("json", _repeated('["a", 1] ')),
    "tables between documents": ("csv", _repeated("a,b,c\n" + "1,x-2,3\n" * 6 + '{"x": [1,\n {"y": 2}]}\n')),
    'key="': ("log", _repeated('key="')),
    'key=" on lines': ("short lines", _repeated('key="a\n')),
    "key=": ("log", _repeated("key=")),
    "a=b on one line": ("log", _repeated("a=b ")),
    "a: on one line": ("log", _repeated("a: ")),
    "<": ("log", _repeated("<")),
    "< on lines": ("short lines", _repeated("<a b=\n")),
    "escapes of a terminal": ("log", _repeated("\x1b[")),
    "``` on lines": ("short lines", _repeated("```\n")),
    "digits on one line": ("log", _repeated("1")),
    "1-1-": ("log", _repeated("1-")),
    "one word": ("log", _repeated("a")),
    "blanks only": ("log", lambda size: " " * size + "x"),
    "header, then quotes": ("csv", _framed("a,b,c\n", '"', "")),
    "header, then open quotes": ("csv", _framed("a,b,c\n", '1,2,"\n', "")),
    "commas": ("csv", _repeated(",")),
    "every row with a flawed quote": ("csv", _each_line(payloads.csv, ",ERROR,", ',"ERR"OR,')),
    "every row with an open quote": ("csv", _framed("a,b,c\n", '1,2,"x\n', "")),
    "cut table": ("csv", lambda size: payloads.csv(size)[:-4]),
    "tables between blank lines": ("csv", _repeated("a,b,c\n" + "1,x-2,3\n" * 6 + "\nx,y\n1,2\n\n")),
    "header, then commas": ("csv", _framed("a,b,c\n", ",", "")),
    "header of 5 MB": ("csv", lambda size: ",".join(f"h{i}" for i in range(size // 8)) + "\n1,2\n1,2\n1,2\n"),
    "ragged rows": ("csv", lambda size: payloads.csv(size).replace(",ERROR", ",ERROR,,,")),
    "tabs": ("csv", _repeated("\t")),
    "semicolons on lines": ("csv", _repeated("a;b;c\n;;\n")),
    "tables of aligned columns": (
        "short lines",
        _repeated("$ kubectl get pods\nNAME    READY   AGE\nweb-0   1/1     5m\nweb-1   0/1     12s\n\n"),
    ),
    "tuples on lines": ("tiny python", _repeated("(12, 'a', None)\n")),
    "open tuples on lines": ("short lines", _repeated("(12, 'a', None\n")),
    "calls on lines": ("tiny python", _repeated("Pod(name='web-1', restarts=2)\n")),
    "open calls on lines": ("short lines", _repeated("Pod(name='web-1', restarts=2\n")),
    "JSON strings on lines": ("tiny json", _repeated('"{\\"a\\": 1}"\n')),
    "counts of rows on lines": ("short lines", _repeated("got it\n(1 row)\n\n")),
    "session of psql": ("log", _repeated("shop=# select id from t limit 1;\n id \n----\n 12\n(1 row)\n\n")),
    "tuples before a bracket": ("tiny python", _framed("", "(12, 'a', None)\n", '{"a": [1, 2]}')),
}


NAMED = (
    "[[[[",
    '{"a":',
    "quotes",
    "backslashes",
    "cut JSON on one line",
    "log with braces",
    "log with brackets",
    "prose with braces on one line",
    "near-JSON prose on one line",
    "near-JSON prose on lines",
    "near-JSON prose on lines of their own",
)
"""Cases that must stay within five times the time of a well-formed text, however they grow."""


def main() -> int:
    """Prints the table; 1 if a ratio is above its bound or a run ended in anything but a value or a HyveError."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--size", type=float, default=5.0)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--view", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = round(options.size * 1_000_000)
    if options.measure is not None:
        _measure(options.measure, size, time.process_time if options.cpu else time.perf_counter, options.view)
        return 0
    cases = {name: case for name, case in HOSTILE.items() if name in (options.cases or HOSTILE)}
    well_formed = {kind: _best(kind, options, 3) for kind in dict.fromkeys(kind for kind, _ in cases.values())}
    print("| case | kind | seconds | well formed | ratio | read as |\n|---|---|---:|---:|---:|---|")
    good = True
    for name, (kind, _) in cases.items():
        reference = well_formed[kind][0]
        seconds, outcome = _best(name, options, 1)
        if RATIO * reference < seconds < TIMEOUT:
            seconds, outcome = min((seconds, outcome), _best(name, options, 2))
        within, ratio = seconds <= RATIO * reference, f"{seconds / reference:.2f}"
        if not within and name not in NAMED and seconds < TIMEOUT:
            growth = seconds / _best(name, options, 2, 0.5)[0]
            within, ratio = growth <= GROWTH, f"{ratio} ({growth:.1f} times its half)"
        good &= within
        ratio = ratio if within else f"**{ratio}**"
        shown = name.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
        print(f"| {shown} | {kind} | {seconds:.2f} | {reference:.2f} | {ratio} | {outcome} |", flush=True)
    return 0 if good else 1


def _best(name: str, options: argparse.Namespace, runs: int, part: float = 1.0) -> tuple[float, str]:
    """(seconds, outcome) of the fastest run over the text, or a part of its size."""
    command = [sys.executable, "-m", "tests.bench.hostile", f"--size={options.size * part}", f"--measure={name}"]
    command += ["--cpu"] * options.cpu + ["--view"] * options.view
    found: list[tuple[float, str]] = []
    for _ in range(runs):
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            found.append((float("inf"), f"ended after {TIMEOUT:.0f} s"))
            continue
        last = run.stderr.strip().splitlines()[-1:] or [f"status {run.returncode}"]
        found.append(tuple(json.loads(run.stdout)) if run.returncode == 0 else (float("inf"), last[0][:100]))
    return min(found)


def _measure(name: str, size: int, clock: Callable[[], float], view: bool) -> None:
    """Prints seconds and outcome of one text, in this process."""
    make = WELL_FORMED[name] if name in WELL_FORMED else HOSTILE[name][1]
    text = make(size)
    for warm in WELL_FORMED.values():
        hyve.Datastore.from_text(warm(2_000)).close()
    if view:
        hyve.view(payloads.logs(20_000), budget=BUDGET)
    began = clock()
    try:
        if view:
            prompt = hyve.view(text, budget=BUDGET)
            seconds = clock() - began
            outcome = f"{prompt.prompt_tokens:,} of {prompt.original_tokens:,} tokens"
        else:
            document = hyve.parse(text)
            with hyve.Datastore.from_document(document) as store:
                fetched(store, "SELECT 1")
                seconds = clock() - began
                kinds = dict.fromkeys(part.syntax for part in document.parts)
                outcome = f"{len(document.parts):,} parts {' '.join(kinds)}, {len(store.catalog.tables):,} tables"
                outcome += f"; {' '.join(document.flags)}" if document.flags else ""
    except hyve.HyveError as error:
        seconds = clock() - began
        outcome = f"{type(error).__name__}: {str(error)[:60]}"
    print(json.dumps((seconds, outcome)))


if __name__ == "__main__":
    raise SystemExit(main())
