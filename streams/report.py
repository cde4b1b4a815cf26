"""A diagnosis on a terminal: readable at 100 columns, in colour or piped into a file.

Rule: everything shown comes from data that anybody may have written, so control characters are made
visible and no text is read as markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from schemas import DiagnosisResult
from schemas.records import Evidence
from streams.logs import printable
from workers.settings import Settings

ROWS: Final = 18
COLUMNS: Final = 12
_COLOURS: Final = {"conclusive": "green", "inconclusive": "yellow", "partial": "yellow", "failed": "red"}
_NANOS: Final = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\d+")
_TOP: Final = ("collect", "prepare", "model", "query", "model_2", "finish", "total")

POINT_AT_MODEL: Final = (
    "To let a model answer, set HYVE_LLM_BASE_URL (an OpenAI-compatible server, such as https://host/v1), "
    "HYVE_LLM_MODEL and HYVE_LLM_API_KEY, and run this again."
)


def analyst_line(settings: Settings) -> str:
    """Who will answer: the first line of the demo's output."""
    if settings.llm_base_url:
        return f"Analyst: model {settings.llm_model} at {settings.llm_base_url}"
    return "Analyst: the built-in rules analyst answers, because no model is set (HYVE_LLM_BASE_URL)"


def answered_line(settings: Settings, result: DiagnosisResult) -> str:
    """Who did answer."""
    if settings.llm_base_url and result.mode == "rules":
        return f"Analyst: the built-in rules analyst answers, because model {settings.llm_model} failed (see Notes)"
    return analyst_line(settings)


def clean(value: Any) -> str:
    """One line of printable text for any value of a row."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text)


def show(result: DiagnosisResult, console: Console) -> None:
    """Prints the whole result."""
    colour = _COLOURS.get(result.status, "white")
    console.print()
    console.print(_head(result, colour))
    evidence = {item.id: item for item in result.evidence}
    told = {name for claim in result.claims for name in claim.evidence}
    shown: set[str] = set()
    for cause in result.root_causes:
        line = Text(f"Root cause: {clean(cause.entity)}", style="bold")
        line.append(f"  {clean(cause.summary)}", style="not bold")
        line.append(f"  ({', '.join(cause.evidence)})", style="not bold dim")
        console.print("", line, sep="\n")
        _evidence(console, [name for name in cause.evidence if name not in told], evidence, shown)
    for number, claim in enumerate(result.claims, 1):
        line = Text(f"{number}. ", style="bold")
        line.append(clean(claim.text), style="not bold")
        console.print("", line, sep="\n")
        _evidence(console, claim.evidence, evidence, shown)
    left = [item.id for item in result.evidence if item.id not in shown]
    if left:
        console.print("", Text("Also looked at", style="bold"), sep="\n")
        _evidence(console, left, evidence, shown)
    for chart in result.charts:
        console.print(Text(f"Chart: {clean(chart)[:2000]}"))
    _list(console, "Not supported by evidence", [claim.text for claim in result.unsupported])
    _list(console, "Next steps", result.next_steps)
    _list(console, "Notes", result.notes)
    console.print(_account(result))


def _head(result: DiagnosisResult, colour: str) -> Panel:
    lines = [Text(clean(result.summary))]
    for cause in result.root_causes:
        line = Text("→ ", style=colour)
        line.append(clean(cause.entity), style=f"bold {colour}")
        line.append(f"  confidence {cause.confidence:.0%}")
        lines.append(line)
    if result.answer and not result.root_causes:
        lines.append(Text(clean(result.answer)[:4000]))
    title = Text(f" {result.status.upper()} ", style=f"bold {colour}")
    by = "rules analyst" if result.model == "rules" else f"{clean(result.model)}, {result.calls} call(s)"
    return Panel(
        Group(*lines),
        title=title,
        title_align="left",
        subtitle=Text(f" {by}, mode {result.mode} "),
        box=box.ROUNDED,
    )


def _evidence(console: Console, ids: Sequence[str], evidence: Mapping[str, Evidence], shown: set[str]) -> None:
    for name in ids:
        item = evidence.get(name)
        if item is None:
            continue
        if name in shown:
            console.print(Padding(Text(f"{name}: see above", style="dim"), (0, 0, 0, 2), expand=False))
            continue
        shown.add(name)
        # SQL is printed whole, so that it can be run again: hyve sql --file ...
        sql = Text(f"{name}: ", style="dim")
        sql.append("\n".join(clean(line) for line in item.sql.strip().splitlines()), style="cyan")
        console.print(Padding(sql, (0, 0, 0, 2), expand=False))
        rows = rows_table(item.columns, _brief(item.rows), item.total_rows, ROWS, console.width - 4)
        console.print(Padding(rows, (0, 0, 0, 4)))


def rows_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], total: int, most: int = 50, width: int = 100
) -> Group:
    """The first rows and columns as a table of at most `width` characters, and what is left out, in numbers.

    No value is ever cut at the edge: texts fold, and columns that don't fit any more are left out and counted. `total`
    counts all rows.
    """
    shown = rows[:most]
    texts = [[_short(clean(value)) for value in row] for row in shown]
    fitting, left = 0, width
    for index, column in enumerate(columns[:COLUMNS]):
        cells = [row[index] for row in texts if index < len(row)]
        longest = max(map(len, cells), default=1)
        least = max(longest if longest <= 30 else 16, *map(len, _header(column).split("\n"))) + 3
        if least > left and fitting:
            break
        fitting, left = fitting + 1, left - least
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, width=None)
    for index, column in enumerate(columns[:fitting]):
        values = [row[index] for row in shown if index < len(row)]
        cells = [row[index] for row in texts if index < len(row)]
        longest = max(map(len, cells), default=1)
        number = bool(values) and all(value is None or isinstance(value, int | float) for value in values)
        table.add_column(
            Text(_header(column)),
            justify="right" if number else "left",
            overflow="fold",
            # Numbers, names and times stay whole; long texts and the headers give way.
            min_width=longest if longest <= 30 else 16,
        )
    for row in texts:
        table.add_row(*(Text(cell) for cell in row[:fitting]))
    parts: list[Any] = [table]
    more = []
    if total > len(shown):
        more.append(f"{total - len(shown):,} more rows")
    if len(columns) > fitting:
        more.append(f"{len(columns) - fitting} more columns")
    if more:
        parts.append(Text(f"({' and '.join(more)})", style="dim"))
    return Group(*parts)


def _header(name: str, width: int = 12) -> str:
    """A column's name, broken after underscores into lines of about `width` characters."""
    lines = [""]
    for piece in re.split(r"(?<=_)(?=[^_])", clean(name)):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _brief(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows with times cut to milliseconds, which is what a reader compares; the result itself keeps every digit."""
    return [[_NANOS.sub(r"\1", value) if isinstance(value, str) else value for value in row] for row in rows]


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _list(console: Console, title: str, items: Sequence[str]) -> None:
    if not items:
        return
    console.print()
    console.print(Text(title, style="bold"))
    for item in items:
        console.print(Padding(Text(f"- {clean(item)}"), (0, 0, 0, 2), expand=False))


def _account(result: DiagnosisResult) -> Group:
    tokens = result.tokens
    first = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Tokens", title_justify="left", title_style="bold")
    for name in ("data", "prompt", "follow-up", "replies", "saved"):
        first.add_column(name, justify="right")
    first.add_row(
        f"{tokens.original:,}",
        f"{tokens.prompt:,}",
        f"{tokens.follow_up:,}",
        f"{tokens.completion:,}",
        f"{tokens.saved:.2%}",
    )
    second = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Milliseconds", title_justify="left", title_style="bold")
    names = [name for name in _TOP if name in result.ms]
    for name in names:
        second.add_column(name, justify="right")
    second.add_row(*(f"{result.ms[name]:,.0f}" for name in names))
    parts: list[Any] = [Text(), first]
    if names:
        parts.append(second)
    return Group(*parts)
