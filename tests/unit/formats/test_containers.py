"""Container logs: pieces of long lines joined, JSON lines read, envelopes of Docker, Fluent Bit, Fluentd and CRI."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve.formats import find, relations, sort_out, text_relations
from hyve.formats.scalars import rfc3339_ns
from hyve.strictjson import Pairs

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z
REJOINED = ("rejoined_partial_lines",)


def docker(log: str, stream: str = "stderr", time: str = "2024-02-03T04:05:06.100000001Z") -> dict[str, Any]:
    return {"log": log, "stream": stream, "time": time}


def test_pieces_of_a_line_are_joined_and_its_json_read() -> None:
    """A line cut into three records, and a whole one of the other stream in between. The time is the first piece's, to
    the nanosecond."""
    pieces = [
        docker('{"lvl":"error","msg":"volume da'),
        docker("plain line\n", "stdout", "2024-02-03T04:05:07Z"),
        docker("ta-7 is fu", time="2024-02-03T04:05:06.100000002Z"),
        docker('ll","pct":98}\n', time="2024-02-03T04:05:06.100000003Z"),
    ]
    found = find(pieces)
    assert found.flags == REJOINED
    assert found.relations["container_logs"] == [
        {"time": AT + 100_000_001, "stream": "stderr", "lvl": "error", "msg": "volume data-7 is full", "pct": 98},
        {"time": AT + 1_000_000_000, "stream": "stdout", "log": "plain line"},
    ]
    assert rfc3339_ns("2024-02-03T04:05:06.100000001Z") == AT + 100_000_001, "the exact instant of the text"
    first, second = found.relations["log_records"]
    assert (first["severity"], first["body"], first["attributes"]) == ("ERROR", "volume data-7 is full", {"pct": 98})
    assert (second["severity"], second["body"], second["time"]) == ("", "plain line", AT + 1_000_000_000)
    assert find([pieces]) == found, "the records of a list as those of several values"


def test_whole_lines_are_not_joined() -> None:
    found = find([docker("a\n"), docker("b\n"), docker("c")])
    assert [row["log"] for row in found.relations["container_logs"]] == ["a", "b", "c"]
    assert found.flags == ()


def test_a_line_whose_end_is_missing_is_kept() -> None:
    found = find([docker("a\n"), docker("b1 "), docker("b2")])
    assert [row["log"] for row in found.relations["container_logs"]] == ["a", "b1 b2"]
    assert found.flags == REJOINED


def fluent(log: str, pod: str, **more: Any) -> dict[str, Any]:
    return {"log": log, "stream": "stdout", "time": "2024-02-03T04:05:06Z", "kubernetes": {"pod_name": pod}, **more}


def test_fluent_bit_without_newlines_has_whole_lines() -> None:
    found = find(
        [fluent("one", "cart-0"), fluent("two", "cart-0"), fluent("three\n", "cart-0")] + [fluent("x", "a-0")] * 9
    )
    assert [row["log"] for row in found.relations["container_logs"]][:3] == ["one", "two", "three"]
    assert found.flags == ()
    assert {row["service"] for row in found.relations["log_records"]} == {"cart", "a"}


def test_pieces_of_two_pods_may_alternate() -> None:
    found = find([fluent("a1 ", "a"), fluent("b1 ", "b"), fluent("a2\n", "a"), fluent("b2\n", "b")])
    assert [row["log"] for row in found.relations["container_logs"]] == ["a1 a2", "b1 b2"]


def test_tags_of_the_runtime_end_lines() -> None:
    tagged = [("P", "a1 "), ("F", "a2"), ("F", "b"), ("P", "c1 ")]
    for key in ("log", "message"):
        found = find(
            [{"time": "2024-02-03T04:05:06Z", "stream": "stdout", "logtag": tag, key: log} for tag, log in tagged]
        )
        assert found.relations["container_logs"] == [
            {"time": AT, "stream": "stdout", "log": log} for log in ("a1 a2", "b", "c1 ")
        ]


def test_fluentds_driver_marks_pieces() -> None:
    about = {"container_id": "c", "container_name": "/web", "source": "stdout"}
    piece = {"partial_message": "true", "partial_id": "p"}
    values = [
        {**about, "log": "a1 ", **piece, "partial_ordinal": "1", "partial_last": "false"},
        {**about, "log": "whole"},
        {**about, "log": "a2", **piece, "partial_ordinal": "2", "partial_last": "true"},
    ]
    assert find(values).relations["container_logs"] == [
        {"time": None, **about, "log": "a1 a2"},
        {"time": None, **about, "log": "whole"},
    ]


def test_names_that_clash_lose_nothing() -> None:
    inner = {"time": 5, "stream": "s", "log": "l", "log_time": 6, "end_time": 7, "msg": "m"}
    (row,) = relations([docker(json.dumps(inner) + "\n")])["container_logs"]
    assert row == {
        "time": AT + 100_000_001,
        "stream": "stderr",
        "log_log_time": 5,
        "log_stream": "s",
        "log_log": "l",
        "log_time": 6,
        "log_end_time": 7,
        "msg": "m",
    }


def test_a_time_that_cannot_be_read_is_kept_as_text() -> None:
    (row,) = relations([docker("x\n", time="soon")])["container_logs"]
    assert row == {"time": None, "stream": "stderr", "time_text": "soon", "log": "x"}


def test_repeated_time_keys() -> None:
    """Fluent Bit's own time key beside that of the record."""
    twice = Pairs(
        [("time", "2024-02-03T04:05:06Z"), ("log", "x"), ("stream", "stdout"), ("time", "2024-02-03T04:05:07Z")]
    )
    (row,) = relations([twice])["container_logs"]
    assert row == {"time": AT, "stream": "stdout", "time_2": "2024-02-03T04:05:07Z", "log": "x"}


def test_the_line_says_more_than_its_envelope() -> None:
    line = {"level": "warn", "ts": 1706933100, "msg": "m", "service": "basket", "trace_id": "ab" * 16}
    about = {"pod_name": "cart-0", "labels": {"app": "cart"}}
    (row,) = relations([{"log": json.dumps(line), "stream": "stdout", "kubernetes": about, "date": 1706933106.5}])[
        "log_records"
    ]
    assert (row["time"], row["service"], row["severity"]) == (AT - 6_000_000_000, "basket", "WARN")
    assert (row["body"], row["trace_id"]) == ("m", "ab" * 16)
    assert row["resource"] == {"service": "basket", "stream": "stdout", "kubernetes": about, "date": 1706933106.5}
    (wire,) = sort_out([docker('{"a":1}\n')])[0]
    assert (wire.signal, wire.row["body"], wire.row["attributes"]) == ("log", '{"a":1}', {"a": 1})


def test_lines_of_a_container_runtime() -> None:
    texts = [
        '2024-02-03T04:05:06.1Z stderr P {"lvl":',
        "2024-02-03T04:05:06.2+00:00 stdout F other line\r",
        "not of the runtime stdout F",
        "2024-02-03T04:05:06.3Z stderr F 3}",
        "2024-02-03T04:05:06.4Z stdout F",
    ]
    found = find((), texts)
    assert found.flags == REJOINED
    assert found.relations["container_logs"] == [
        {"time": AT + 100_000_000, "stream": "stderr", "lvl": 3},
        {"time": AT + 200_000_000, "stream": "stdout", "log": "other line"},
        {"time": AT + 400_000_000, "stream": "stdout", "log": ""},
    ]
    assert text_relations(["nothing", "of the kind"]) == {}


def test_text_lines_say_their_level() -> None:
    texts = [
        "2024-02-03T04:05:06Z stdout F ERROR db down",
        "2024-02-03T04:05:06Z stdout F an ERROR was seen",
        "2024-02-03T04:05:06Z stderr F E0203 04:05:06.000001       1 a.go:7] x",
    ]
    assert [row["severity"] for row in text_relations(texts)["log_records"]] == ["ERROR", "", "ERROR"]
    found = relations([docker("2024-02-03 04:05:06 WARN slow\n"), docker('{"msg":"ERROR x"}\n'), docker('{"a":1}\n')])
    assert [(row["severity"], row["severity_number"]) for row in found["log_records"]] == [
        ("WARN", 13),
        ("ERROR", 17),
        ("", None),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"log": "x", "stream": "stdout"},
        {"log": "x", "stream": "middle", "time": "t"},
        {"log": 5, "stream": "stdout", "time": "t"},
        {"log": "x", "kubernetes": {"node": "n"}},
        {"log": "x", "time": "2024-02-03T04:05:06Z"},
        {"log": {"message": "m"}},
    ],
)
def test_what_is_no_container_log(value: dict[str, Any]) -> None:
    assert relations([value]) == {}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.booleans()), min_size=1, max_size=8), st.data())
def test_however_lines_are_cut_they_come_back(lines: list[tuple[str, bool]], data: st.DataObject) -> None:
    """Lines of two streams, cut anywhere and interleaved."""
    pieces: dict[str, list[dict[str, Any]]] = {"stdout": [], "stderr": []}
    for line, out in lines:
        stream, rest = "stdout" if out else "stderr", line.replace("\n", "") + "\n"
        while len(rest) > 1 and data.draw(st.booleans()):
            at = data.draw(st.integers(1, len(rest) - 1))
            pieces[stream].append(docker(rest[:at], stream))
            rest = rest[at:]
        pieces[stream].append(docker(rest, stream))
    written: list[dict[str, Any]] = []
    while any(pieces.values()):
        side = data.draw(st.sampled_from([name for name, left in pieces.items() if left]))
        written.append(pieces[side].pop(0))
    found = relations([written])["log_records"]
    for stream in ("stdout", "stderr"):
        bodies = [row["body"] for row in found if row["resource"]["stream"] == stream]
        assert bodies == [
            line.replace("\n", "").removesuffix("\r")
            for line, out in lines
            if ("stdout" if out else "stderr") == stream
        ]
