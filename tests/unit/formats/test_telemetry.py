"""The register of formats: who is asked about what, objects that repeat keys, nothing lost and nothing slow by it."""

from __future__ import annotations

import time
from typing import Any

from hyve.formats import RECOGNISERS, find, relations
from hyve.formats.scalars import plain
from hyve.formats.telemetry import STREAMS
from hyve.strictjson import Pairs

LOG = {"time": 1706933106000, "level": "info", "msg": "m"}
EXPORT = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "o"}}]}]}]}


def test_the_order_of_values_is_that_of_the_rows_whatever_stands_between() -> None:
    other = {"id": 1, "value": 2.5}
    values: list[Any] = [LOG, *[other] * 20, EXPORT, "text", [1, [LOG]], {**LOG, "msg": "n"}]
    assert [row["body"] for row in relations(values)["log_records"]] == ["m", "o", "n"]
    assert relations([values[:-2]]) == relations(values[:-2])


def test_one_object_among_many_others_is_found() -> None:
    flat = [{"id": i, "message": "x", "time": 1706933106} for i in range(50)]
    assert [row["body"] for row in relations([[*flat, LOG, *flat]])["log_records"]] == ["m"]


def test_an_object_that_repeats_a_key_is_read() -> None:
    (row,) = relations([Pairs([("time", 1706933106000), ("level", "warn"), ("msg", "m"), ("msg", "n"), (None, 1)])])[
        "log_records"
    ]
    assert (row["body"], row["attributes"]) == ("m", {"msg_2": "n", "": 1})
    assert plain(Pairs([("a", 1), ("a_2", 2), ("a", 3), ("a", 4), (7, 5)])) == {
        "a": 1,
        "a_2": 2,
        "a_3": 3,
        "a_4": 4,
        "7": 5,
    }


def test_every_format_is_registered_with_what_it_needs() -> None:
    for one in (*STREAMS, *RECOGNISERS):
        assert one.needs
        assert all(one.needs), "an empty need would have it asked about everything"
    assert len(set(RECOGNISERS)) == len(RECOGNISERS)
    assert all(recognise(value) is None for recognise in RECOGNISERS for value in ({}, [], [{}], [[]]))


def test_objects_that_are_no_telemetry_cost_next_to_nothing() -> None:
    """100,000 of them at most as long as eight passes over their keys (three on a quiet machine; it was forty)."""
    flat = [
        {"timestamp": i, "metric": "m", "host": f"h{i % 9}", "value": i * 0.5, "unit": "s", "ok": True}
        for i in range(100_000)
    ]

    def took(work: Any) -> float:
        best = 9.0
        for _ in range(5):
            began = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - began)
        return best

    assert find([flat]).relations == {}
    assert took(lambda: find([flat])) < 8 * took(lambda: [tuple(item) for item in flat])


def test_as_many_shapes_as_objects_take_linear_time() -> None:
    shapes = [{f"k{i}": 1, "message": 1, "time": i} for i in range(20_000)]
    began = time.perf_counter()
    assert relations([shapes]) == {}
    assert time.perf_counter() - began < 5
