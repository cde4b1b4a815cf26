"""Elasticsearch's and OpenSearch's search answers as rows of `hits`, `buckets` and `searches`.

Rules:
- A hit's row has `_index`, `_id` and `_score`, then the fields of its source under their own names (a `time` of theirs
  is `_source.time`, and so are others of `TIME_KEYS`); `time` is `@timestamp`. Hits that are logs are rows of
  `log_records` as well.
- `buckets` holds the buckets of every aggregation, parents before children. `aggregation` is the path of names, joined
  by ">" as pipeline aggregations write it; `parents` says in which bucket of each aggregation above a bucket lies;
  `metrics` are the values of its sub-aggregations. `time` is that of the bucket of a date histogram, and
  of all buckets in it.
- `searches` has a row for each answer: `total_capped` says that more may have matched than were counted.
"""

from __future__ import annotations

from typing import Any

from hyve.formats import logs
from hyve.formats.recogniser import needs
from hyve.formats.rows import known
from hyve.formats.scalars import TIME_KEYS, Relations, Row, dicts, instant_ns, integer, mapping, number, scaled_ns, text

_DEPTH = 16
_OWN = TIME_KEYS | {"_index", "_id", "_score"}
_COUNTED = 10_000
"""Up to here hits are counted unless the question says otherwise."""
_FROM, _UNTIL = 946_684_800_000, 4_102_444_800_000
"""The years 2000 and 2100 in milliseconds: between them lie the keys of a date histogram."""


@needs("_index _source", "hits", "aggregations", "responses", "response", "rawResponse")
def recognise(value: Any) -> Relations | None:
    """Rows of `hits`, `buckets` and `searches`, or None."""
    if type(value) is not dict:
        return None
    if "_index" in value and type(value.get("_source")) is dict:  # one line of a dump
        result: Relations = {}
        _add_hits([value], result)
        return result
    answers = [value]
    if type(value.get("responses")) is list:
        answers = dicts(value["responses"])
    else:  # asynchronous searches, and what Kibana's inspector shows
        answers += [value[key] for key in ("response", "rawResponse") if type(value.get(key)) is dict]
    answers = [answer for answer in answers if _is_answer(answer)]
    if not answers:
        return None
    result = {}
    for answer in answers:
        hits = mapping(answer.get("hits"))
        shown = dicts(hits.get("hits"))
        _add_hits(shown, result)
        buckets: list[Row] = []
        _aggregations(mapping(answer.get("aggregations")), "", {}, None, 0, buckets)
        if buckets:
            result.setdefault("buckets", []).extend(buckets)
        result.setdefault("searches", []).append(_search(answer, hits, len(shown)))
    return result


def _is_answer(value: dict[str, Any]) -> bool:
    if type(value.get("aggregations")) is dict:
        return "took" in value or any("buckets" in mapping(found) for found in value["aggregations"].values())
    return type(mapping(value.get("hits")).get("hits")) is list and ("took" in value or "_shards" in value)


def _search(answer: dict[str, Any], hits: dict[str, Any], shown: int) -> Row:
    total = hits.get("total")
    count = integer(total.get("value") if type(total) is dict else total)
    shards = mapping(answer.get("_shards"))
    return {
        "took_ms": number(answer.get("took")),
        "timed_out": answer.get("timed_out") is True,
        "total": count,
        "total_capped": mapping(total).get("relation") == "gte" or (type(total) is int and count == _COUNTED),
        "hits": shown,
        "max_score": number(hits.get("max_score")),
        "shards": integer(shards.get("total")),
        "shards_failed": integer(shards.get("failed")),
    }


def _add_hits(hits: list[dict[str, Any]], result: Relations) -> None:
    for hit in hits:
        source = hit["_source"] if type(hit.get("_source")) is dict else mapping(hit.get("fields"))
        result.setdefault("hits", []).append(_hit(hit, source))
        log = logs.record(source)
        if log is not None:
            result.setdefault("log_records", []).append(log)


def _hit(hit: dict[str, Any], source: dict[str, Any]) -> Row:
    stamp = source.get("@timestamp")
    if type(stamp) is list:  # as `fields` has it
        stamp = stamp[0] if stamp else None
    row: Row = {
        "time": instant_ns(stamp),
        "_index": text(hit.get("_index")),
        "_id": text(hit.get("_id")),
        "_score": number(hit.get("_score")),
    }
    for key, inner in source.items():
        row[f"_source.{key}" if key in _OWN else key] = inner
    return row


def _aggregations(
    holder: dict[str, Any], above: str, parents: dict[str, str], time: int | None, depth: int, rows: list[Row]
) -> None:
    """Adds the rows of the aggregations in an answer or in a bucket, which is one of a `time`."""
    if depth > _DEPTH:
        return
    for name, found in holder.items():
        if type(found) is not dict:
            continue
        path = f"{above}>{name}" if above else str(name)
        buckets = found.get("buckets")
        if type(buckets) is dict:  # keyed: a bucket's name is its key
            buckets = [{**bucket, "key": key} for key, bucket in buckets.items() if type(bucket) is dict]
        elif type(buckets) is not list and "doc_count" in found:  # one bucket: filter, global, missing, nested
            buckets = [found]
        if type(buckets) is list:
            buckets = dicts(buckets)
            dates = bool(buckets) and all(map(_is_date, buckets))
            for bucket in buckets:
                at = scaled_ns(bucket.get("key"), 1_000) if dates else time
                row = _row(bucket, path, parents, at)
                rows.append(row)
                inside = {**parents, str(name): row["key_as_string"] or row["key"] or ""}
                _aggregations(bucket, path, inside, at, depth + 1, rows)
        elif not above and _values(found):
            rows.append(_row({str(name): found}, path, parents, None))


def _row(bucket: dict[str, Any], path: str, parents: dict[str, str], time: int | None) -> Row:
    metrics: dict[str, Any] = {
        key: number(bucket[key]) for key in ("from", "to") if number(bucket.get(key)) is not None
    }
    for key, inner in bucket.items():
        if type(inner) is dict and key != "key" and "buckets" not in inner and "doc_count" not in inner:
            values = _values(inner)
            if values:
                metrics[key] = values["value"] if values.keys() == {"value"} else values
    return {
        "time": time,
        "aggregation": path,
        "key": known(bucket.get("key")),
        "key_as_string": known(bucket.get("key_as_string")),
        "doc_count": integer(bucket.get("doc_count")),
        "parents": parents,
        "metrics": metrics,
    }


def _is_date(bucket: dict[str, Any]) -> bool:
    key = bucket.get("key")
    at = integer(key) if type(key) in (int, float) else None
    return at is not None and _FROM <= at < _UNTIL and at % 1_000 == 0


def _values(found: dict[str, Any]) -> dict[Any, float | None]:
    """The numbers of a metric aggregation: `value`, `values` (percentiles), or statistics side by side."""
    if "value" in found:
        return {"value": number(found["value"])}
    inner = found.get("values")
    if type(inner) is list:
        inner = {text(item.get("key")): item.get("value") for item in dicts(inner)}
    picked = inner if type(inner) is dict else found
    return {key: number(one) for key, one in picked.items() if type(one) in (int, float)}
