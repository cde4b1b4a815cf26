"""Times with the name of a zone behind them: the instant is that of the zone, or nobody's."""

from __future__ import annotations

import pytest

import hyve
from hyve.formats.scalars import rfc3339_ns
from tests.unit.gains import data_of


def _log(zone: str) -> str:
    lines = (f"2026-03-01 10:{i // 60:02d}:{i % 60:02d},123 {zone} ERROR fail id={i * 7 % 97}" for i in range(300))
    return "\n".join(lines)


@pytest.mark.parametrize(("zone", "hour"), [("CET", 9), ("CEST", 8), ("EST", 15), ("PDT", 17), ("UTC", 10), ("JST", 1)])
def test_a_zone_of_one_offset_is_read(zone: str, hour: int) -> None:
    text = data_of(hyve.view(_log(zone), "", 2000).text)
    assert f"- time_ts TIMESTAMP_NS: 300 distinct, 2026-03-01 {hour:02d}:00:00.123..2026-03-01 {hour:02d}:04:" in text
    assert "- level VARCHAR = ERROR" in text


@pytest.mark.parametrize("zone", ["CST", "IST", "BST"])
def test_a_zone_that_may_be_several_leaves_a_text_and_says_so(zone: str) -> None:
    text = data_of(hyve.view(_log(zone), "", 2000).text)
    assert "- time VARCHAR: 300 distinct, times in a zone that isn't known" in text
    assert "TIMESTAMP" not in text
    assert "- level VARCHAR = ERROR" in text


def test_a_column_has_times_of_summer_and_winter() -> None:
    rows = [f"2026-03-29 01:{i:02d}:00 CET,{i % 7}" for i in range(60)]
    rows += [f"2026-03-29 03:{i:02d}:00 CEST,{i % 7}" for i in range(60)]
    with hyve.Datastore.from_document(hyve.parse("\n".join(["ts,v", *rows]))) as store:
        [found] = store.query(
            "SELECT min(ts_ts)::VARCHAR, max(ts_ts)::VARCHAR, count(DISTINCT ts_ts) FROM records"
        ).rows
    assert found == ("2026-03-29 00:00:00", "2026-03-29 01:59:00", 120)


@pytest.mark.parametrize(
    ("zone", "seconds"), [("Z", 0), (" CET", -3600), (" EST", 18_000), (" CST", None), (" POST", None)]
)
def test_one_time_is_read_the_same(zone: str, seconds: int | None) -> None:
    read = rfc3339_ns(f"2026-03-01 10:00:00{zone}")
    assert read == (None if seconds is None else (1_772_359_200 + seconds) * 10**9)
