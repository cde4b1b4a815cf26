"""What a person sees: whole, honest about what is left out, and safe on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hyve.diagnosis import Claim, Diagnosis, Evidence, RootCause, Tokens
from schemas import DiagnosisResult
from streams.report import analyst_line, clean, rows_table, show
from workers.settings import load


def printed(diagnosis: Diagnosis, width: int = 100) -> str:
    out = io.StringIO()
    show(DiagnosisResult.of(diagnosis, request_id="r"), Console(file=out, width=width))
    return out.getvalue()


def test_a_diagnosis_shows_its_claims_with_sql_and_rows() -> None:
    rows = tuple((f"svc-{i}", i * 1.5) for i in range(20))
    text = printed(
        Diagnosis(
            "conclusive",
            "orders ran out of connections",
            root_causes=(RootCause("orders", "pool of 16 is empty", 0.83, ("e1",)),),
            claims=(Claim("waiting grew", ("e1", "e2")),),
            unsupported=(Claim("the moon did it"),),
            evidence=(
                Evidence("e1", "SELECT service,\n  ms FROM spans", ("service", "ms"), rows, 40),
                Evidence("e2", "SELECT 1 AS one", ("one",), ((1,),), 1),
            ),
            next_steps=("roll back",),
            tokens=Tokens(2_000_000, 4_000, 1_000, 50),
            ms={"prepare": 3100.0, "total": 6000.4, "prepare.decode": 9.0},
            notes=("telemetry was cut",),
        )
    )
    for part in (
        "CONCLUSIVE",
        "orders ran out of connections",
        "confidence 83%",
        "pool of 16 is empty",
        "e1: SELECT service,",
        "ms FROM spans",
        "(e1)",
        "svc-17",
        "25.5",
        "(22 more rows)",
        "e2: SELECT 1 AS one",
        "the moon did it",
        "roll back",
        "telemetry was cut",
        "2,000,000",
        "99.75%",
        "3,100",
        "6,000",
    ):
        assert part in text, part
    assert "svc-18" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100


def test_hostile_text_is_neither_markup_nor_control() -> None:
    text = printed(Diagnosis("inconclusive", "\x1b[31mred\x07 [bold]not bold[/bold] [/oops]", notes=("a\nb",)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[31mred\\x07 [bold]not bold[/bold] [/oops]" in text
    assert "a\\nb" in text


def test_values_are_one_line_each() -> None:
    assert [clean(value) for value in (None, True, 0.1234567, 12345678.9, {"a": [1]}, "x\ty")] == [
        "",
        "true",
        "0.123457",
        "12345679",
        '{"a": [1]}',
        "x\\ty",
    ]


def test_the_first_line_says_who_answers() -> None:
    assert "rules analyst" in analyst_line(load())
    assert "HYVE_LLM_BASE_URL" in analyst_line(load())
    named = analyst_line(load(llm_base_url="http://127.0.0.1:1/v1", llm_model="m-7", llm_api_key="sk-secret"))
    assert "m-7" in named
    assert "secret" not in named


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
@pytest.mark.parametrize("columns", [1, 4, 7, 12, 20])
def test_no_value_is_cut_at_the_edge(width: int, columns: int) -> None:
    names = [f"requests_before_{i}" for i in range(columns)]
    rows = [[1234567.25 + i + 100 * r for i in range(columns)] for r in range(3)]
    out = io.StringIO()
    Console(file=out, width=width).print(rows_table(names, rows, 3, width=width))
    text = out.getvalue()
    shown = sum(clean(value) in text for value in rows[0])
    assert shown >= 1
    assert all(clean(row[i]) in text for row in rows for i in range(shown))
    assert max(map(len, text.splitlines())) <= width
    if shown < columns:
        assert f"({columns - shown} more columns)" in text


def test_column_names_are_those_of_the_query() -> None:
    out = io.StringIO()
    names = ["parent_records", "metadata_name", "_id", "a_b", "c_d", "e_f"]
    Console(file=out, width=120).print(rows_table(names, [[1] * 6], 1, width=120))
    head = out.getvalue().split("─")[0]
    assert all(piece in head for name in names for piece in name.replace("_", "_ ").split())
    assert "_" in head
