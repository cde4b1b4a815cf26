"""Search answers of Elasticsearch and OpenSearch: hits, nested aggregations, totals."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations

AT = 1_785_603_722_000_000_000  # 2026-08-01T17:02:02Z
MS = 1_785_603_600_000  # 17:00:00


def answer(hits: Any = (), total: Any = 0, **more: Any) -> dict[str, Any]:
    found = {"total": total, "max_score": 1.5, "hits": list(hits)}
    return {"took": 4, "timed_out": False, "_shards": {"total": 5, "failed": 1}, "hits": found} | more


def hit(source: Any, **more: Any) -> dict[str, Any]:
    return {"_index": "shop", "_id": "1", "_score": 1.0, "_source": source} | more


def test_hits() -> None:
    found = relations([answer([hit({"@timestamp": "2026-08-01T17:02:02Z", "order": 7, "time": "noon"}), 5])])
    assert found["hits"] == [
        {
            "time": AT,
            "_index": "shop",
            "_id": "1",
            "_score": 1.0,
            "@timestamp": "2026-08-01T17:02:02Z",
            "order": 7,
            "_source.time": "noon",
        }
    ]
    assert list(found) == ["hits", "searches"]


def test_hits_with_fields_in_place_of_the_source_and_lines_of_a_dump() -> None:
    asked = {"_index": "i", "_id": "2", "_score": None, "fields": {"@timestamp": [AT // 1_000_000], "n": [1]}}
    row = relations([answer([asked])])["hits"][0]
    assert (row["time"], row["_score"], row["n"]) == (AT, None, [1])
    dump = relations([[hit({"a": 1}), hit({"a": 2}, _id="2")]])
    assert [row["a"] for row in dump["hits"]] == [1, 2]
    assert "searches" not in dump


def test_hits_that_are_logs_are_log_records_too() -> None:
    source = {
        "@timestamp": "2026-08-01T17:02:02Z",
        "message": "boom",
        "log": {"level": "error"},
        "service": {"name": "cart"},
    }
    (row,) = relations([answer([hit(source)])])["log_records"]
    assert (row["time"], row["body"], row["severity"], row["service"]) == (AT, "boom", "ERROR", "cart")


@pytest.mark.parametrize(
    ("total", "count", "capped"),
    [
        ({"value": 8, "relation": "eq"}, 8, False),
        ({"value": 10_000, "relation": "gte"}, 10_000, True),
        ({"value": 10_000, "relation": "eq"}, 10_000, False),
        (10_000, 10_000, True),
        (17, 17, False),
        (None, None, False),
        ("many", None, False),
    ],
)
def test_totals(total: Any, count: int | None, capped: bool) -> None:
    (row,) = relations([answer(total=total)])["searches"]
    assert (row["total"], row["total_capped"]) == (count, capped)
    assert (row["took_ms"], row["shards"], row["shards_failed"], row["hits"]) == (4.0, 5, 1, 0)


def test_nested_aggregations() -> None:
    dates = {
        "buckets": [
            {
                "key": MS,
                "key_as_string": "2026-08-01T17:00:00Z",
                "doc_count": 2,
                "p": {"values": {"50.0": 1, "99.0": 9}},
            },
            {"key": MS + 60_000, "doc_count": 1, "p": {"values": [{"key": 50.0, "value": 4}]}},
        ]
    }
    services = {
        "doc_count_error_upper_bound": 0,
        "buckets": [{"key": "cart", "doc_count": 3, "avg_ms": {"value": 1.5}, "over_time": dates}],
    }
    rows = relations([answer(aggregations={"services": services})])["buckets"]
    assert rows == [
        {
            "time": None,
            "aggregation": "services",
            "key": "cart",
            "key_as_string": None,
            "doc_count": 3,
            "parents": {},
            "metrics": {"avg_ms": 1.5},
        },
        {
            "time": MS * 1_000_000,
            "aggregation": "services>over_time",
            "key": str(MS),
            "key_as_string": "2026-08-01T17:00:00Z",
            "doc_count": 2,
            "parents": {"services": "cart"},
            "metrics": {"p": {"50.0": 1.0, "99.0": 9.0}},
        },
        {
            "time": (MS + 60_000) * 1_000_000,
            "aggregation": "services>over_time",
            "key": str(MS + 60_000),
            "key_as_string": None,
            "doc_count": 1,
            "parents": {"services": "cart"},
            "metrics": {"p": {"50.0": 4.0}},
        },
    ]


def test_buckets_inside_a_date_have_its_time() -> None:
    services = {"buckets": [{"key": "web", "doc_count": 6}]}
    dates = {"buckets": [{"key": MS, "doc_count": 6, "by": services, "not": {"doc_count": 1}}]}
    rows = relations([answer(aggregations={"per_min": dates})])["buckets"]
    assert [(row["aggregation"], row["time"]) for row in rows] == [
        ("per_min", MS * 1_000_000),
        ("per_min>by", MS * 1_000_000),
        ("per_min>not", MS * 1_000_000),
    ]


def test_other_kinds_of_aggregation() -> None:
    found = {
        "errors": {"doc_count": 5, "by_host": {"buckets": [{"key": "h1", "doc_count": 5}]}},
        "sizes": {"buckets": {"*-50.0": {"to": 50.0, "doc_count": 1}, "50.0-*": {"from": 50.0, "doc_count": 2}}},
        "pairs": {"buckets": [{"key": {"a": "x", "b": 1}, "doc_count": 1}]},
        "max_price": {"value": 19.5},
        "stats": {"count": 2, "min": 1.0, "max": 2.0, "avg": 1.5, "sum": 3.0},
        "ids": {"buckets": [{"key": MS + 1, "doc_count": 1}]},
        "newest": {"hits": {"total": 1, "hits": []}},
    }
    rows = relations([answer(aggregations=found)])["buckets"]
    assert [(row["aggregation"], row["key"], row["doc_count"], row["metrics"]) for row in rows] == [
        ("errors", None, 5, {}),
        ("errors>by_host", "h1", 5, {}),
        ("sizes", "*-50.0", 1, {"to": 50.0}),
        ("sizes", "50.0-*", 2, {"from": 50.0}),
        ("pairs", '{"a":"x","b":1}', 1, {}),
        ("max_price", None, None, {"max_price": 19.5}),
        ("stats", None, None, {"stats": {"count": 2.0, "min": 1.0, "max": 2.0, "avg": 1.5, "sum": 3.0}}),
        ("ids", str(MS + 1), 1, {}),
    ]
    assert all(row["time"] is None for row in rows), "an id near the present is no date"


def test_many_answers_and_wrapped_ones() -> None:
    found = relations([{"took": 9, "responses": [answer([hit({"a": 1})]), {"error": "x"}, answer(total=3)]}])
    assert [row["total"] for row in found["searches"]] == [0, 3]
    assert len(found["hits"]) == 1
    assert relations([{"id": "x", "is_running": False, "response": answer(total=3)}])["searches"][0]["total"] == 3
    assert relations([{"rawResponse": answer(total=4)}])["searches"][0]["total"] == 4


def test_other_peoples_hits_are_no_searches() -> None:
    assert relations([{"hits": 3}, {"hits": {"hits": []}}, {"aggregations": {"a": 1}}, {"responses": [1]}]) == {}


def test_aggregations_nested_without_end_end() -> None:
    bucket: dict[str, Any] = {"key": "bottom", "doc_count": 1}
    for _ in range(150):
        bucket = {"key": "k", "doc_count": 1, "a": {"buckets": [bucket]}}
    rows = relations([answer(aggregations={"a": {"buckets": [bucket]}})])["buckets"]
    assert len(rows) == 17
