"""What a text says of its level, and where it says nothing."""

from __future__ import annotations

import time

import pytest

from hyve.formats.levels import severity_in


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ('level=error msg="card declined"', "ERROR"),
        ('ts=2024-02-03T04:05:06Z caller=a.go:1 level=warn msg="ERROR"', "WARN"),
        ('msg="set level=debug" lvl=info', "INFO"),
        ("severity='CRITICAL' x", "FATAL"),
        ('{"level":"error","msg":"x"}', "ERROR"),
        ('{"msg":"x","severity": "WARNING"}', "WARN"),
        ('{"level":50,"msg":"x"}', "ERROR"),
        ('{"log.level":"debug"}', "DEBUG"),
        ("ERROR db down", "ERROR"),
        ("ERROR", "ERROR"),
        ("ERROR:root:boom", "ERROR"),
        ("  [WARN] slow", "WARN"),
        ("2024-02-03 04:05:06,123 ERROR boom", "ERROR"),
        ("2024-02-03T04:05:06.1Z [main] FATAL a.b.C - boom", "FATAL"),
        ("2024-02-03 04:05:06,123 - my.app - CRITICAL - boom", "FATAL"),
        ("[2024-02-03 04:05:06,123: INFO/MainProcess] x", "INFO"),
        ("2024/02/03 04:05:06 [error] 7#7: *1 open() failed", "ERROR"),
        ("2024-02-03 04:05:06 UTC [12] ERROR:  no relation", "ERROR"),
        ("web-1  | DEBUG x", "DEBUG"),
        ("\x1b[31mERROR\x1b[0m boom", "ERROR"),
        ("2024-02-03T04:05:06Z TRACE x", "TRACE"),
        ("panic: runtime error", "FATAL"),
        ("E0102 03:04:05.000001       1 a.go:7] x", "ERROR"),
        ("I0102 03:04:05.000001       1 a.go:7] ERROR x", "INFO"),
        ("", ""),
        ("GET /x 200", ""),
        ("HTTP 500 from db", ""),
        ("got an ERROR from db", ""),
        ("the level is ERROR", ""),
        ("failed, ERROR 5", ""),
        ("3 ERROR lines found", ""),
        ("ERRORS found", ""),
        ("ERROR_COUNT 5", ""),
        ("error: not sure", ""),
        ("level=odd", ""),
        ("game.level=error", ""),
        ('{"level":5}', ""),
        ('{"msg":"\\"level\\":\\"error\\""}', ""),
        ("x" * 300 + " level=error", ""),
    ],
)
def test_levels_in_texts(body: str, severity: str) -> None:
    name, rank = severity_in(body)
    assert name == severity
    assert (rank is None) is (not severity)


@pytest.mark.parametrize("unit", ["[", '"', "\\", "[a ", "\x1b[", "{", "level=", '{"level":', " ", "a1 "])
def test_a_long_text_takes_no_longer(unit: str) -> None:
    long = unit * (5_000_000 // len(unit))
    start = time.process_time()
    for _ in range(20):
        severity_in(long)
    assert time.process_time() - start < 1  # a look at all of it takes longer than that once
