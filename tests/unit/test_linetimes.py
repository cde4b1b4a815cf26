"""Times of log lines of several forms in one text (H9, H38)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import hyve

CLF = '10.0.0.{i} - - [30/Jan/2026:12:45:0{i} +0100] "GET /a HTTP/1.1" 200 12 "-" "curl"'
LOG4J = "2026-01-30 11:46:0{i},123 ERROR [main] com.example.Cart - failed {i}"
ISO = "2026-01-30T11:47:0{i}.5Z WARN slow {i}"
SLASHES = "2026/01/30 11:48:0{i} [error] 12#0: *1 upstream timed out {i}"
SYSLOG = "Jan 30 11:49:0{i} web-1 sshd[12]: session opened {i}"
KLOG = "E0130 11:50:0{i}.000001       1 reflector.go:12] failed to list {i}"
OFFSET = "2026-01-30T13:51:0{i}+02:00 INFO ready {i}"
CLOCK = "11:52:0{i} INFO no day {i}"
WHEN = {CLF: "11:45:0{i}", LOG4J: "11:46:0{i}.123", ISO: "11:47:0{i}.5", SLASHES: "11:48:0{i}"}
WHEN |= {SYSLOG: "11:49:0{i}", KLOG: "11:50:0{i}.000001", OFFSET: "11:51:0{i}"}


def _times(lines: list[str]) -> list[str | None]:
    """What `time_ts` says of each line, on 30 January 2026."""
    with hyve.Datastore.from_text("\n".join(lines)) as store:
        assert [column.type for column in store.catalog.tables[0].columns if column.name == "time_ts"] == [
            "TIMESTAMP_NS"
        ]
        rows = store.query("SELECT strftime(time_ts, '%Y-%m-%d'), time_ts::VARCHAR FROM lines ORDER BY line").rows
    assert {day for day, _ in rows} <= {"2026-01-30", None}
    return [time and time[11:] for _, time in rows]


def _expected(form: str, i: int) -> str | None:
    return WHEN[form].format(i=i) if form in WHEN else None


@pytest.mark.parametrize(
    "forms",
    [(CLF, LOG4J), (LOG4J, ISO), (ISO, SYSLOG), (CLF, SYSLOG, KLOG), (LOG4J, OFFSET), (SLASHES, CLF), (ISO, CLOCK)],
)
@pytest.mark.parametrize("order", [sorted, lambda pairs: sorted(pairs, key=lambda pair: pair[1])])
def test_the_times_of_each_log_are_typed(
    forms: tuple[str, ...], order: Callable[[list[tuple[str, int]]], list[tuple[str, int]]]
) -> None:
    """One log behind the other, or line by line in turns."""
    pairs = order([(form, i) for form in forms for i in range(6)])
    assert _times([form.format(i=i) for form, i in pairs]) == [_expected(form, i) for form, i in pairs]


def test_a_few_lines_of_another_log_among_very_many() -> None:
    pairs = [(SYSLOG, i % 10) if i % 200 == 7 else (ISO, i % 10) for i in range(20_000)]
    lines = [form.format(i=i) for form, i in pairs]
    with hyve.Datastore.from_text("\n".join(lines)) as store:
        found = store.query("SELECT time_ts::VARCHAR FROM lines WHERE line IN (1, 8, 20000) ORDER BY line").rows
    assert [time for (time,) in found] == ["2026-01-30 11:47:00.5", None, "2026-01-30 11:47:09.5"]


@pytest.mark.parametrize(
    ("year", "day", "expected"),
    [("2026-01-02T00:00:00Z", "Dec 31", "2025-12-31"), ("2025-12-31T00:00:00Z", "Jan  2", "2026-01-02")],
)
def test_a_time_without_a_year_is_near_the_others(year: str, day: str, expected: str) -> None:
    lines = [f"{year} INFO a {i}" for i in range(6)] + [f"{day} 10:00:00 web cron[1]: b {i}" for i in range(6)]
    with hyve.Datastore.from_text("\n".join(lines)) as store:
        found = store.query("SELECT DISTINCT time_ts::DATE::VARCHAR FROM lines ORDER BY 1").rows
    assert found == tuple(sorted([(year[:10],), (expected,)]))


def test_a_day_that_is_none_is_null() -> None:
    lines = [ISO.format(i=i) for i in range(6)] + [f"Feb 30 11:00:0{i} web cron[1]: b" for i in range(6)]
    assert _times(lines) == [_expected(ISO, i) for i in range(6)] + [None] * 6


def test_without_any_year_there_are_no_times() -> None:
    with hyve.Datastore.from_text("\n".join(SYSLOG.format(i=i) for i in range(9))) as store:
        assert "time_ts" not in [column.name for column in store.catalog.tables[0].columns]


def test_a_column_of_json_is_not_read_form_by_form() -> None:
    """Which instants half of the times of a column mean can't be known: there it is guessed by nobody."""
    records = [{"time": form} for form in ("2026-01-30 11:46:00", "2026-01-30T11:46:00Z") * 6]
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        assert [column.name for column in store.catalog.tables[0].columns[1:]] == ["time"]
