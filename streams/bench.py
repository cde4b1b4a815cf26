"""`hyve bench views`: what the views save, what they show and what they cost, on a folder or on inputs of our own.

Rules:
- Every input is measured in a fresh process (`bench_child`); a compared package runs the same way, right after.
- Tokens are o200k's: of the input as compact JSON (as its own text where it is no JSON), as TOON where `toon-format` is
  installed, of the whole prompt (instructions, tools and question included), and of what the data became alone, as a
  compared package is counted. What is saved is said of both, against compact JSON.
- Time is compared by the processor's: what else runs on the machine changes it least.
- What must be shown comes from `truth.json` beside the files or from the built-in inputs (`bench_truth`); entities of
  files without one are found in their JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hyve.errors import InputError
from hyve.tokens import count_tokens
from streams import bench_inputs
from streams.bench_truth import Case, Truth, Verdict, entities, judge, parsed, questions, read_truth

SMALL = 20_000
"""Bytes below which an input does not count for the median of what was saved."""
_CHILD = Path(__file__).with_name("bench_child.py")
_SECONDS = 900
_NO_DATA = frozenset({"truth.json", "README.md", "LICENSE", "LICENSE.txt"})


@dataclass(frozen=True)
class Run:
    """What one package made of an input: `tokens` of all it sends, `data` of what the data became alone. `ms` are
    medians of warm runs, `memory` bytes over start; or `error` says why there is nothing."""

    tokens: int = 0
    data: int = 0
    cut: bool = False
    ms: float = 0.0
    cpu_ms: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    memory: int = 0
    shown: Verdict | None = None
    error: str = ""


@dataclass(frozen=True)
class Measured:
    """One input: its tokens in other forms, what HYVE made of it, and what the compared package did."""

    name: str
    size: int
    json_tokens: int
    toon_tokens: int | None
    truth: Truth
    hyve: Run
    peer: Run | None = None


# Inputs


def load(path: Path) -> tuple[Case, ...]:
    """The cases of a folder's files (or of one file), with the truth of the `truth.json` beside them.

    Its entries are found by what a file's name starts with: `c2` belongs to `c2_logs.json`. Raises InputError.
    """
    if not path.exists():
        raise InputError(f"there is no folder {path}")
    known = _truth_file((path if path.is_dir() else path.parent) / "truth.json")
    if path.is_dir():
        inside = (
            file for file in sorted(path.rglob("*")) if not any(p.startswith(".") for p in file.relative_to(path).parts)
        )
        files = [f for f in inside if f.name not in _NO_DATA and f.suffix != ".md" and (f.is_file() or not f.exists())]
    else:
        files = [path]
    cases = [case for file in files for case in _cases(file, path, known)]
    if not cases:
        raise InputError(f"{path} holds no files to measure")
    return tuple(cases)


def _truth_file(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    found = parsed(_read(file))
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise InputError(f"{file} must be a JSON object of objects, one for each input")
    return found


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None


def _cases(file: Path, root: Path, known: dict[str, Any]) -> tuple[Case, ...]:
    data = _read(file)
    name = str(file.relative_to(root)) if root.is_dir() else file.name
    value = parsed(data)
    key = file.stem if file.stem in known else file.stem.partition("_")[0]
    if key not in known:
        return tuple(
            Case(name, data, question, Truth((), entities(value)), value) for _, question in questions({}, False)
        )
    try:
        truth = read_truth(known[key], data.decode("utf-8", "replace"), value)
        asked = questions(known[key], own="err_in_trunc" in known[key])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            f"truth.json: the entry {key!r} does not fit {file.name} ({type(error).__name__}: {error})"
        ) from None
    return tuple(Case(name + suffix, data, question, truth, value) for suffix, question in asked)


def built_in(kinds: Sequence[str] = (), seed: int = 1, rows: int = 5000) -> tuple[Case, ...]:
    """The cases of the built-in inputs, all kinds where none is named."""
    return tuple(case for kind in kinds or bench_inputs.KINDS for case in bench_inputs.make(kind, seed, rows))


# Measuring


def measure(case: Case, budget: int, runs: int = 5, peer_python: str = "", ablation: Sequence[str] = ()) -> Measured:
    """Measures one case, with Headroom beside it where `peer_python` names an interpreter that has it."""
    with tempfile.NamedTemporaryFile(prefix="hyve-bench-", delete=False) as file:
        file.write(case.data)
    try:
        ours = _run("hyve", [sys.executable, "-P", str(_CHILD)], file.name, case, budget, runs, ablation)
        peer = (
            _run("headroom", [peer_python, "-I", str(_CHILD)], file.name, case, budget, runs) if peer_python else None
        )
    finally:
        os.unlink(file.name)
    json_tokens, toon_tokens = other_forms(case)
    return Measured(case.name, len(case.data), json_tokens, toon_tokens, case.truth, ours, peer)


def other_forms(case: Case) -> tuple[int, int | None]:
    """Tokens as compact JSON or else the text itself, and as TOON, None where that can't be told."""
    text = case.data.decode("utf-8", "replace")
    if case.value is None:
        return count_tokens(text), None
    try:
        compact = count_tokens(json.dumps(case.value, separators=(",", ":"), ensure_ascii=False))
        if importlib.util.find_spec("toon_format") is None:
            return compact, None
        return compact, count_tokens(importlib.import_module("toon_format").encode(case.value))
    except (ValueError, RecursionError, TypeError):
        return count_tokens(text), None


def _run(
    package: str, command: list[str], path: str, case: Case, budget: int, runs: int, ablation: Sequence[str] = ()
) -> Run:
    request = json.dumps(
        {"path": path, "question": case.question, "budget": budget, "runs": runs, "ablation": list(ablation)}
    )
    above = [str(_CHILD.parents[1]), os.environ.get("PYTHONPATH", "")]
    # By -P and -I the child does not find the modules beside it under their bare names.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, above))} if package == "hyve" else None
    try:
        done = subprocess.run(
            [*command, package], input=request, capture_output=True, text=True, env=env, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Run(error=f"no answer within {_SECONDS} s")
    except OSError as error:
        return Run(error=f"cannot start {command[0]}: {error.strerror or error}")
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines()
        return Run(error=f"the process ended with status {done.returncode}{': ' + said[-1] if said else ''}")
    if "error" in reply:
        return Run(error=reply["error"])
    return Run(
        tokens=reply["tokens"] if "tokens" in reply else count_tokens(reply["text"]),
        data=count_tokens(_section(reply["text"])),
        cut=reply.get("cut", True),
        ms=statistics.median(reply["ms"]),
        cpu_ms=statistics.median(reply["cpu_ms"]),
        stages={name: statistics.median(ms) for name, ms in reply["stages"].items()},
        memory=reply["memory"],
        shown=judge(case.truth, reply["text"], case.question),
    )


def _section(text: str) -> str:
    """The data section of a prompt; of a compared package's text, all of it."""
    found = re.search(r"^# Data (\w+)\n(.*)\n# End \1$", text, re.MULTILINE | re.DOTALL)
    return found[2] if found else text


def headroom(python: str = "") -> tuple[str, str]:
    """(interpreter, version) of Headroom; where it is not installed, ("", what to do)."""
    python = python or sys.executable
    ask = "from importlib.metadata import version; print(version('headroom-ai'))"
    try:
        done = subprocess.run([python, "-I", "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is not None and done.returncode == 0:
        return python, done.stdout.strip()
    return "", (
        f"headroom-ai is not installed for {python}: run `python -m venv V && V/bin/pip install headroom-ai`, "
        "then add --headroom-python V/bin/python"
    )


# Judging


def misses(found: Measured, budget: int) -> list[str]:
    """What of one input is not as it should be, in words."""
    run, shown = found.hyve, found.hyve.shown
    if shown is None:
        return [run.error]
    said = []
    if run.tokens > budget:
        said.append(f"{run.tokens - budget:,} tokens over the budget")
    if run.cut and budget - run.tokens > budget // 20:
        said.append(f"{budget - run.tokens:,} tokens unused though something is cut")
    for label, names in (
        ("not shown", shown.needles_missing),
        ("not named", shown.unnamed),
        ("mean not shown", shown.means_absent),
        ("mean wrong", shown.means_wrong),
    ):
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            said.append(f"{label}: {', '.join(name[:60] for name in names[:4])}{more}")
    if found.peer is not None and not found.peer.error:
        if run.cpu_ms > found.peer.cpu_ms / 2:
            said.append(f"{run.cpu_ms / found.peer.cpu_ms:.2f} of the peer's time (at most 0.50)")
        if run.memory > found.peer.memory:
            said.append(f"{_mb(run.memory)} MB of memory, the peer {_mb(found.peer.memory)}")
    return said


def summary(found: Sequence[Measured], budget: int) -> str:
    """One line over all inputs."""
    fine = [item for item in found if not item.hyve.error]
    large = [item for item in fine if item.size > SMALL]
    over = sum(item.hyve.tokens > budget for item in fine)
    median = (
        f"; median saved of the {len(large)} over {SMALL // 1000} KB: {statistics.median(map(_data_saved, large)):.1%} "
        f"of the data, {statistics.median(map(_saved, large)):.1%} with instructions, tools and question"
        if large
        else ""
    )
    failed = f"; {len(found) - len(fine)} failed" if len(fine) < len(found) else ""
    return f"{len(found)} inputs, {over} above the budget of {budget:,}{median}{failed}"


def _saved(item: Measured) -> float:
    return 1 - item.hyve.tokens / item.json_tokens if item.json_tokens else 0.0


def _data_saved(item: Measured) -> float:
    return 1 - item.hyve.data / item.json_tokens if item.json_tokens else 0.0


# Showing

Cell = Callable[[Measured], str]


def _mb(size: int) -> str:
    return f"{size / (1 << 20):,.0f}"


def _of(run: Run | None, cell: Callable[[Run], str]) -> str:
    return "" if run is None else "failed" if run.error else cell(run)


def _ratio(number: int, of: int) -> str:
    return f"{number}/{of}" if of else ""


def _needles(item: Measured, run: Run | None) -> str:
    return _of(run, lambda r: _ratio(r.shown.needles if r.shown else 0, len(item.truth.needles)))


def _names(item: Measured, run: Run | None) -> str:
    return _of(run, lambda r: _ratio(r.shown.named if r.shown else 0, sum(map(len, item.truth.entities.values()))))


def _means(item: Measured, run: Run | None) -> str:
    def cell(run: Run) -> str:
        wrong = len(run.shown.means_wrong) if run.shown else 0
        return _ratio(run.shown.means if run.shown else 0, len(item.truth.means)) + (
            f", {wrong} wrong" if wrong else ""
        )

    return _of(run, cell)


def tables(peer: str, budget: int) -> tuple[tuple[str, tuple[tuple[str, Cell], ...]], ...]:
    """(title, columns) of the two tables; `peer` names the compared package, or is ""."""
    content: list[tuple[str, Cell]] = [
        ("input", lambda m: m.name),
        ("KB", lambda m: f"{m.size / 1000:,.0f}"),
        ("JSON", lambda m: f"{m.json_tokens:,}"),
        ("TOON", lambda m: "" if m.toon_tokens is None else f"{m.toon_tokens:,}"),
        ("prompt", lambda m: _of(m.hyve, lambda r: f"{r.tokens:,}")),
        ("saved", lambda m: _of(m.hyve, lambda r: f"{_saved(m):.1%}")),
        ("data", lambda m: _of(m.hyve, lambda r: f"{r.data:,}")),
        ("saved", lambda m: _of(m.hyve, lambda r: f"{_data_saved(m):.1%}")),
        ("in budget", lambda m: _of(m.hyve, lambda r: "yes" if r.tokens <= budget else "NO")),
        ("whole", lambda m: _of(m.hyve, lambda r: "no" if r.cut else "yes")),
        ("needles", lambda m: _needles(m, m.hyve)),
        ("named", lambda m: _names(m, m.hyve)),
        ("means", lambda m: _means(m, m.hyve)),
    ]
    cost: list[tuple[str, Cell]] = [
        ("input", lambda m: m.name),
        ("ms", lambda m: _of(m.hyve, lambda r: f"{r.ms:,.0f}")),
        ("CPU ms", lambda m: _of(m.hyve, lambda r: f"{r.cpu_ms:,.0f}")),
        ("store", lambda m: _of(m.hyve, lambda r: f"{r.stages.get('store', 0):,.0f}")),
        ("view", lambda m: _of(m.hyve, lambda r: f"{r.stages.get('view', 0):,.0f}")),
        ("MB", lambda m: _of(m.hyve, lambda r: _mb(r.memory))),
    ]
    if peer:
        content += [
            (f"{peer}: tokens", lambda m: _of(m.peer, lambda r: f"{r.tokens:,}")),
            ("needles", lambda m: _needles(m, m.peer)),
            ("named", lambda m: _names(m, m.peer)),
            ("means", lambda m: _means(m, m.peer)),
        ]
        cost += [
            (f"{peer}: ms", lambda m: _of(m.peer, lambda r: f"{r.ms:,.0f}")),
            ("CPU ms", lambda m: _of(m.peer, lambda r: f"{r.cpu_ms:,.0f}")),
            ("MB", lambda m: _of(m.peer, lambda r: _mb(r.memory))),
            ("time ratio", lambda m: _of(m.peer, lambda r: f"{m.hyve.cpu_ms / r.cpu_ms:.2f}" if r.cpu_ms else "")),
            ("memory ratio", lambda m: _of(m.peer, lambda r: f"{m.hyve.memory / r.memory:.2f}" if r.memory else "")),
        ]
    return (("What the model sees (o200k tokens)", tuple(content)), ("What it costs (median, warm)", tuple(cost)))


def markdown(found: Sequence[Measured], peer: str, budget: int) -> str:
    """Both tables, what is amiss and the summary as Markdown."""
    out = []
    for title, columns in tables(peer, budget):
        out += [f"**{title}**", "", "| " + " | ".join(name for name, _ in columns) + " |"]
        out.append("|" + "|".join("---" if i == 0 else "---:" for i in range(len(columns))) + "|")
        out += ["| " + " | ".join(cell(item) for _, cell in columns) + " |" for item in found]
        out.append("")
    out += [f"- {item.name}: {'; '.join(said)}" for item in found if (said := misses(item, budget))]
    return "\n".join([*out, "", summary(found, budget)])


def show(found: Sequence[Measured], peer: str, budget: int) -> None:
    """Prints the same for a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from streams.report import clean

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(console.width, 150))
    for title, columns in tables(peer, budget):
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for i, (name, _) in enumerate(columns):
            table.add_column(name, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
        for item in found:
            table.add_row(*(Text(clean(cell(item))) for _, cell in columns))
        console.print(table, "", sep="\n")
    for item in found:
        for said in misses(item, budget):
            console.print(Text.assemble(("✗ ", "red"), f"{clean(item.name)}: {clean(said)}"))
    console.print(summary(found, budget), style="bold", markup=False)


def as_json(found: Sequence[Measured], peer: str, budget: int) -> str:
    """All figures for programs."""
    inputs = [
        {
            **asdict(item),
            "saved": round(_saved(item), 4),
            "data_saved": round(_data_saved(item), 4),
            "misses": misses(item, budget),
        }
        for item in found
    ]
    return json.dumps({"budget": budget, "peer": peer or None, "inputs": inputs}, ensure_ascii=False)


def views(
    folder: str,
    *,
    budget: int,
    only: Sequence[str],
    rows: int,
    seed: int,
    runs: int,
    compare: bool,
    headroom_python: str,
    ablation: Sequence[str],
    form: str,
) -> None:
    """The command. `only` picks files by the start of their names, or built-in inputs; `form` is "table", "markdown" or
    "json"."""
    if folder:
        cases: Iterable[Case] = load(Path(folder))
        cases = [case for case in cases if not only or any(case.name.startswith(name) for name in only)]
        if not cases:
            raise InputError(f"no file of {folder} has a name that starts with {' or '.join(only)}")
    else:
        cases = built_in(only, seed, rows)
    python, peer = "", ""
    if compare:
        python, version = headroom(headroom_python)
        if python:
            peer = f"headroom {version}"
        else:
            sys.stderr.write(f"hyve: {version}\n")
    found = [measure(case, budget, runs, python, ablation) for case in _told(list(cases))]
    if form == "table":
        show(found, peer, budget)
    else:
        sys.stdout.write((as_json if form == "json" else markdown)(found, peer, budget) + "\n")


def _told(cases: Sequence[Case]) -> Iterable[Case]:
    """The cases, each told on standard error where somebody watches it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield from cases
        return
    with console.status("") as status:
        for i, case in enumerate(cases, 1):
            status.update(f"{i}/{len(cases)} {case.name}")
            yield case
