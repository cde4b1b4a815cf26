"""Typed columns beside text: what most of a column's texts spell, and nothing that they don't (H9)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve.formats.scalars import instant_ns
from hyve.typed import spelled

INSTANTS = [f"2026-01-31T12:{i // 60:02d}:{i % 60:02d}.{i % 10}Z" for i in range(2_000)]


def store_of(values: list[Any]) -> hyve.Datastore:
    return hyve.Datastore.from_text(json.dumps([{"t": value} for value in values]))


def types_of(store: hyve.Datastore) -> dict[str, str]:
    return {column.name: column.type for column in store.catalog.tables[0].columns if column.typed}


@pytest.mark.parametrize(
    "odd",
    [
        "not-a-time",
        "2026-12-31T23:59:60Z",  # a leap second, which no timestamp has
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:00:00",  # without a zone: its instant is not known
        "2026-01-31",
        "2026-01-31T12:00:00.1234567891Z",
    ],
)
@pytest.mark.parametrize("place", [0, 1_000, 1_999])
def test_one_odd_text_does_not_take_the_times_of_all_others(odd: str, place: int) -> None:
    """H9: one text of 2,000 is no instant. It alone has none, the header says so, and the text stays."""
    values = [*INSTANTS[:place], odd, *INSTANTS[place + 1 :]]
    with store_of(values) as store:
        assert types_of(store) == {"t_ts": "TIMESTAMP_NS"}
        assert store.query("SELECT t FROM records WHERE t_ts IS NULL").rows == ((odd,),)
        found = store.query("SELECT strftime(t_ts, '%Y-%m-%dT%H:%M:%S') FROM records ORDER BY _row_id").rows
        assert [time for (time,) in found] == [None if text == odd else text[:19] for text in values]
        assert store.reconstruct(0) == [{"t": value} for value in values]
    text = hyve.view(json.dumps([{"t": value, "n": i} for i, value in enumerate(values)]), budget=900).text
    assert f", 1 not a time ({odd})" in text
    if place in (0, 1_999):  # the first and the last row are shown
        assert re.search(rf"^{place}\|{odd}\|{place}$", text, re.MULTILINE)


def test_times_without_a_zone_lose_the_few_that_have_one() -> None:
    """Most of a column says in which way it is written: times as written, or instants in UTC."""
    values = [text[:-1] for text in INSTANTS]
    values[7] = "2026-01-31T12:00:00+02:00"
    with store_of(values) as store:
        assert store.query("SELECT t, t_ts FROM records WHERE _row_id IN (6, 7)").rows == (
            (values[6], "2026-01-31T12:00:06.6"),
            (values[7], None),
        )


def test_instants_of_several_zones_are_in_utc() -> None:
    values = [text.replace("Z", "+02:00") if i % 2 else text for i, text in enumerate(INSTANTS)]
    with store_of(values) as store:
        found = store.query("SELECT max(t_ts)::VARCHAR, min(t_ts)::VARCHAR FROM records").rows
    assert found == (("2026-01-31 12:33:18.8", "2026-01-31 10:00:01.1"),)


def test_half_with_a_zone_and_half_without_are_no_column_of_times() -> None:
    """Which instant half of them is can't be known, and half a column would look like all of it."""
    with store_of([text[: None if i % 2 else -1] for i, text in enumerate(INSTANTS)]) as store:
        assert types_of(store) == {}


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2026-01-31 12:00:01.5 UTC", "2026-01-31T12:00:01.5"),
        ("2026-01-31 12:00:01.5 +0000 UTC", "2026-01-31T12:00:01.5"),
        ("2026/01/31 12:00:01", "2026-01-31T12:00:01"),
        ("31/Jan/2026:14:00:01 +0200", "2026-01-31T12:00:01"),
        ("2026-01-31 12:00:01,5", "2026-01-31T12:00:01.5"),
    ],
)
def test_an_odd_text_among_times_of_other_forms(written: str, instant: str) -> None:
    with store_of([*[written] * 30, "never", *[written] * 30]) as store:
        assert store.query("SELECT DISTINCT t, t_ts FROM records ORDER BY t").rows == (
            (written, instant),
            ("never", None),
        )


@pytest.mark.parametrize(("odd", "typed"), [(5, True), (6, False)])
def test_a_column_is_typed_if_19_of_20_texts_are(odd: int, typed: bool) -> None:
    for good in (str, lambda i: f"{i}.5", lambda i: f"{i}s", lambda i: INSTANTS[i]):
        values = [f"odd {i}" if i % 16 == 3 and i < 16 * odd else good(i) for i in range(100)]
        with store_of(values) as store:
            assert bool(types_of(store)) is typed


def test_words_for_nothing_count_neither_way() -> None:
    values = ["12", "n/a", "-", "", "1.5", "N/A", "none", "NaN"]
    with store_of(values) as store:
        assert store.query("SELECT avg(t_num), count(t_num) FROM records").rows == ((6.75, 2),)


def test_numbers_of_which_a_double_rounds_some_are_exact() -> None:
    """H9: an average of them is no longer refused, and no digit is lost."""
    for values in ([1, 1.5, 2**53 + 1], ["1", "1.5", str(2**53 + 1)]):
        with store_of(values) as store:
            assert types_of(store) == {"t_num": "DECIMAL(38,1)"}
            found = store.query("SELECT max(t_num) = 9007199254740993, avg(t_num), sum(t_num) FROM records").rows
            assert found == ((True, (2**53 + 3.5) / 3, "9007199254740995.5"),)
            assert repr(store.reconstruct(0)) == repr([{"t": value} for value in values])


def test_long_ids_are_no_numbers_and_counters_may_be_long() -> None:
    with store_of([str(10**25 + i) for i in range(100)]) as store:
        assert types_of(store) == {}
    with store_of([*map(str, range(99)), str(2**64 - 1)]) as store:
        assert store.query("SELECT sum(t_num) = 18446744073709556466 FROM records").rows == ((True,),)


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (["250ms", "1.5s", "1h2m", "3m20.5s"], [0.25, 1.5, 3720.0, 200.5]),
        (["123µs", "123μs", "12us", "40ns", "0s"], [0.000123, 0.000123, 0.000012, 4e-8, 0.0]),
        (["PT1.5S", "PT2M", "P1DT1H", "-PT3S"], [1.5, 120.0, 90_000.0, -3.0]),
        (["5d3h", "12d", "41s", "7m"], [442_800.0, 1_036_800.0, 41.0, 420.0]),
        (["1.1 ms", "17 ms", "2 s"], [0.0011, 0.017, 2.0]),
    ],
)
def test_durations_stand_beside_their_text_in_seconds(texts: list[str], seconds: list[float]) -> None:
    """Who asks for the slowest gets it by `max(took_seconds)`."""
    with store_of(texts) as store:
        assert types_of(store) == {"t_seconds": "DOUBLE"}
        found = store.query("SELECT t, t_seconds FROM records ORDER BY _row_id").rows
        assert found == tuple(zip(texts, seconds, strict=True))


@pytest.mark.parametrize(
    "texts",
    [
        ["100m", "250m", "1500m"],  # thousandths of a processor, or minutes
        ["1s", "PT1S"],
        ["s", "ms", "h"],
        ["P", "PT", "-"],
        ["1m1h", "2s1h"],
        ["5G", "1K", "3M"],  # of what, and thousands or 1024
        ["100m", "0", "20m"],
        ["5B", "0"],
    ],
)
def test_texts_of_which_the_unit_is_not_sure_have_none(texts: list[str]) -> None:
    with store_of(texts) as store:
        assert types_of(store) == {}


def named(name: str, texts: list[str]) -> list[tuple[str, list[Any]]]:
    return [(kind, values.to_pylist()) for kind, values in spelled(pa.array(texts, pa.string()), name)]


@pytest.mark.parametrize("rare", [1, 25])
def test_restarts_with_the_time_of_the_last_one_are_numbers(rare: int) -> None:
    """Most cells of `kubectl get pods` are plain numbers; those that matter have the time behind them."""
    texts = ["0"] * rare + ["12 (2m14s ago)", "3 (5d ago)", "1 (<invalid> ago)"] + ["1"] * rare
    assert named("RESTARTS", texts) == [("number", [0] * rare + [12, 3, 1] + [1] * rare)]
    assert named("x", ["1 (ms)", "2 (s)", "3 (h)"]) == []
    text = "".join(f"cart-{i}   1/1     Running   {cell:<15} 5d\n" for i, cell in enumerate(texts[rare - 1 :][:9]))
    with hyve.Datastore.from_text("NAME     READY   STATUS    RESTARTS        AGE\n" + text) as store:
        found = store.query("SELECT RESTARTS, RESTARTS_num FROM records WHERE RESTARTS_num > 1 ORDER BY 2").rows
        assert found == (("3 (5d ago)", 3), ("12 (2m14s ago)", 12))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (name, [("number", [0.25, 1.0, 0.012, 2.5])])
            for name in ("CPU(cores)", "cpu", "requests.cpu", "cpuRequest")
        ),
        ("cpulimits", []),
        ("took", []),
    ],
)
def test_a_cpu_is_told_by_its_name(name: str, expected: list[Any]) -> None:
    assert named(name, ["250m", "1", "12m", "2.5"]) == expected


def test_an_age_is_told_by_its_name() -> None:
    for name in ("AGE", "LAST SEEN", "last_seen", "Uptime"):
        assert named(name, ["2m", "5m", "11m"]) == [("seconds", [120.0, 300.0, 660.0])]
    for name in ("page", "storage", "took", ""):
        assert named(name, ["2m", "5m", "11m"]) == []


def test_sizes_of_binary_units_stand_beside_their_text_in_bytes() -> None:
    texts = ["128Mi", "1.5Gi", "512B", "3 KiB", "2TiB"]
    with store_of(texts) as store:
        assert types_of(store) == {"t_bytes": "BIGINT"}
        found = store.query("SELECT t_bytes FROM records ORDER BY _row_id").rows
        assert found == ((134217728,), (1610612736,), (512,), (3072,), (2199023255552,))


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["512MB", "1.5GB", "100kB", "12 MB"], [512_000_000, 1_500_000_000, 100_000, 12_000_000]),
        (["512Mi", "1.5Gi", "100Ki", "0"], [536_870_912, 1_610_612_736, 102_400, 0]),
        (["2GiB", "512MiB", "1.2GB", "0B"], [2_147_483_648, 536_870_912, 1_200_000_000, 0]),
        (["0", "0", "0", "0", "3Gi"], [0, 0, 0, 0, 3_221_225_472]),
        (["16Mi", "97Mi", "<unknown>"], [16_777_216, 101_711_872, None]),
    ],
)
def test_sizes_as_tools_mix_them(texts: list[str], sizes: list[int | None]) -> None:
    """A 0 has no unit, a decimal unit is one of 1,000, and a word for "not known" counts neither way."""
    assert named("x", texts) == [("bytes", sizes)]


def test_durations_with_a_zero_and_with_how_often() -> None:
    assert named("took", ["1.5s", "200ms", "1m30s", "0"]) == [("seconds", [1.5, 0.2, 90.0, 0.0])]
    assert named("took", ["0", "0", "0", "7ms"]) == [("seconds", [0.0, 0.0, 0.0, 0.007])]
    assert named("LAST SEEN", ["50m", "3m2s", "2m (x45 over 47m)"]) == [("seconds", [3000.0, 182.0, 120.0])]
    assert named("CPU%", ["16%", "97%", "<unknown>"]) == [("percent", [16.0, 97.0, None])]


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "9999-12-31T00:00:00Z", "1e400", "NaN"])
def test_a_column_of_which_nothing_can_be_read_has_no_typed_one(text: str) -> None:
    assert named("x", [text] * 3) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2026-01-30 11:45:01.123456+01", "2026-01-30 11:45:02+00"], [10, 11]),
        (["Fri, 30 Jan 2026 11:45:01 GMT", "Sun, 1 Feb 2026 11:45:01 GMT"], [11, 11]),
        (["Tue, 03 Feb 2026 11:02:33 +0100", "Tue, 03 Feb 2026 11:02:33 UTC"], [10, 11]),
    ],
)
def test_times_of_databases_and_of_http(texts: list[str], expected: list[int]) -> None:
    """An offset of hours only, and the day of the week before the date."""
    ((kind, times),) = named("x", texts)
    assert (kind, [time.hour for time in times]) == ("time", expected)
    assert [time.day for time in times] == [int(re.findall(r"(?:-|, ?)(\d\d?) ", text)[0]) for text in texts]
    read = [instant_ns(text) for text in texts]
    assert read == [(time.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) * 1_000 for time in times]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_slowest_of_log_lines() -> None:
    """`took=250ms` of log lines is a number of seconds."""
    text = "".join(
        f"2026-01-31T12:00:{i % 60:02d}Z INFO done path=/p{i} took={i * 37 % 1009}ms\n" for i in range(1_200)
    )
    text = text.replace("took=1008ms", "took=1.008s").replace("took=37ms", "took=unknown")
    with hyve.Datastore.from_text(text) as store:
        assert store.query("SELECT took, took_seconds FROM lines ORDER BY took_seconds DESC LIMIT 1").rows == (
            ("1.008s", 1.008),
        )
        assert store.query("SELECT DISTINCT took FROM lines WHERE took_seconds IS NULL").rows == (("unknown",),)


def test_a_typed_column_does_not_tell_the_secret_that_its_text_is() -> None:
    """A model sees neither the text nor the number, time, duration or size that it spells, nor what SQL makes of it."""
    records = [
        {
            "user": f"u{i}",
            "password": f"{i * 37 + 11}h",
            "api_key": str(1234567890123456 + i * 7919),
            "token": f"{i + 1}.5Gi",
            "session_token": f"2026-01-01T00:{i // 60:02d}:{i % 60:02d}Z",
            "took": f"{i}ms",
        }
        for i in range(300)
    ]
    request = hyve.Request("why?", (hyve.Payload("records", json.dumps(records)),), budget=2_000)
    store, prompt = hyve.prepare(request)
    typed = ["password_seconds", "api_key_num", "token_bytes", "session_token_ts"]
    with store:
        assert store.masked is not None
        assert {column.typed and column.name for column in store.catalog.tables[0].columns} == {
            "",
            *typed,
            "took_seconds",
        }
        sums = ", ".join(f"count({name})" for name in [*typed, "took_seconds"])
        assert store.masked.shown.query(f"SELECT {sums} FROM records").rows == ((0, 0, 0, 0, 300),)
        assert store.query(f"SELECT {sums} FROM records").rows == ((300,) * 5,)
    for record in records:
        assert record["api_key"] not in prompt.text
    assert "39600" not in prompt.text
    assert "1610612736" not in prompt.text


@pytest.mark.parametrize(
    "texts",
    [
        ["12", "7", "x"],
        ["1.5", "9007199254740993", "n/a"],
        ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00+01:00", "2026-02-30T12:00:00Z"],
        ["1h2m", "3s", "soon"],
        ["PT3S", "P1D", "soon"],
        ["1Mi", "2B", "-"],
        ["1.5%", "-3 %", "all"],
    ],
)
def test_columns_in_chunks_and_codes_are_read_as_others(texts: list[str]) -> None:
    column = [*texts[:2] * 30, texts[2], None]
    found = {kind: values.to_pylist() for kind, values in spelled(pa.array(column))}
    assert [sum(value is not None for value in values) for values in found.values()] == [60]
    for half in (pa.array(column[:31]), pa.array(column[:31]).dictionary_encode()):
        rest = pa.array(column[31:]).cast(half.type)
        chunked = {kind: values.to_pylist() for kind, values in spelled(pa.chunked_array([half, rest]))}
        assert chunked == found


WRITTEN = st.one_of(
    st.datetimes(datetime(1680, 1, 1), datetime(2260, 1, 1)).map(lambda time: f"{time.isoformat()}Z"),
    st.builds(
        lambda time, zone: f"{time.isoformat(sep=' ')}{'-' if zone < 0 else '+'}{abs(zone):02d}:30",
        st.datetimes(datetime(1680, 1, 1), datetime(2260, 1, 1)),
        st.integers(-11, 13),
    ),
)
ODD = st.one_of(
    st.text(max_size=4),
    st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", fullmatch=True),
    st.sampled_from(["2023-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "0001-01-01T00:00:00Z"]),
)


@settings(max_examples=60, deadline=None)
@given(times=st.lists(WRITTEN, min_size=20, max_size=30), odd=ODD, place=st.integers(0, 20))
def test_a_typed_time_is_the_instant_that_the_text_says(times: list[str], odd: str, place: int) -> None:
    """Invariant 3: never another value, whatever stands among them."""
    values = [*times[:place], odd, *times[place:]]
    with store_of(values) as store:
        assert types_of(store) == {"t_ts": "TIMESTAMP_NS"}
        found = store.query("SELECT epoch_ns(t_ts) FROM records ORDER BY _row_id").rows
    for text, (nanoseconds,) in zip(values, found, strict=True):
        wanted = instant(text)
        assert nanoseconds == wanted or (text == odd and nanoseconds is None and wanted is None), text


def instant(text: str) -> int | None:
    """By Python's own reader; None without a zone, or beyond 64 bits of nanoseconds."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None or not "1678" < text < "2262":
        return None
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70).map(str),
            st.decimals(-(10**20), 10**20, places=3).map("{:f}".format),
            st.floats(-1e6, 1e6).map("{:.6f}".format),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_a_typed_number_is_the_number_that_the_text_says(numbers: list[str]) -> None:
    with store_of(numbers) as store:
        kind = types_of(store).get("t_num")
        if kind is None:
            return
        found = store.query("SELECT t_num::VARCHAR FROM records ORDER BY _row_id").rows
    for text, (number,) in zip(numbers, found, strict=True):
        exact = Decimal(text) == Decimal(number)
        assert exact or (kind == "DOUBLE" and float(text) == float(number) and abs(float(text)) < 1e16)


@pytest.mark.parametrize(
    ("key", "text", "typed"),
    [
        ("CPU%", "16%", "CPU_percent"),
        ("CPU(cores)", "10m", "CPU_cores_num"),
        ("MEMORY(bytes)", "128Mi", "MEMORY_bytes_bytes"),
        ("_took_", "12ms", "took_seconds"),
        ("k" * 70, "12", "k" * 60 + "_num"),
        ("%", "12", "field_num"),
    ],
)
def test_a_typed_column_is_called_after_the_one_beside_it(key: str, text: str, typed: str) -> None:
    """H9: one underscore, and the kind is always told; two that would be called the same stay apart."""
    with hyve.Datastore.from_text(json.dumps([{key: text}] * 6)) as store:
        assert [column.name for column in store.catalog.tables[0].columns if column.typed] == [typed]
    with hyve.Datastore.from_text(json.dumps([{key: text, f"{key}!": text}] * 6)) as store:
        names = [column.name for column in store.catalog.tables[0].columns if column.typed]
        assert names == [typed, f"{typed}_2"]
