"""A very long list is read in runs, and comes out as if it had been read at once (H9-H13, H21-H23; invariant 1)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import hyve
from hyve.gather import gather
from hyve.runs import Runs
from hyve.shape import Unsettled, shred
from tests.fuzz.target import same
from tests.unit.documents import fetched
from tests.unit.in_runs import check, described, gathered, in_runs, stored
from tests.unit.test_lossless import scalars, values, written


def around(records: list[Any], place: int) -> Any:
    return (
        records,
        {"kind": "List", "items": records, "n": [1, 2]},
        {"status": {"a": 1}, "data": {"of": "x", "result": records, "notes": [{"n": 1}]}, "more": [{"id": 1}]},
    )[place]


small = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1 << 60, 10**40, "x", "7", "[1]", '{"a": 1}'])
)
lists = st.lists(small, max_size=3) | st.just([1] * 10) | st.just(["a"] * 70)
some = small | lists | st.dictionaries(st.sampled_from(["a", "b", "1", "22"]), small | lists, max_size=3)
records = st.fixed_dictionaries(
    {"id": scalars | small},
    optional={
        "a": some,
        "b": some,
        "c": st.lists(st.dictionaries(st.sampled_from("pq"), some, max_size=2), max_size=2),
    },
)
any_records = st.fixed_dictionaries({"id": small}, optional={"x": values, "y": scalars})


def with_id_first(record: dict[str, Any]) -> dict[str, Any]:
    return {"@id": record["id"], **record}  # cuts are looked for before the key that the first record begins with


@settings(max_examples=60, deadline=None)
@given(
    st.lists((records | any_records).map(with_id_first), min_size=2, max_size=7),
    st.integers(0, 2),
    st.sampled_from([1, 60]),
)
def test_any_records(found: list[Any], place: int, size: int) -> None:
    check(written(around(found, place)), size)


@settings(max_examples=20, deadline=None)
@given(st.lists((records | any_records).map(with_id_first), min_size=2, max_size=7), st.integers(0, 2))
def test_any_store(found: list[Any], place: int) -> None:
    """Invariant 1, with tables, catalog and flags."""
    text = written(around(found, place))
    check(text, look=stored)
    with in_runs(), hyve.Datastore.from_text(text) as store:
        assert same(store.reconstruct(0), hyve.parse(text).parts[0].value)


DISAGREEMENTS: dict[str, list[Any]] = {
    "integers, then fractions": [{"v": 1}, {"v": 2}, {"v": 0.5}],
    "integers that a double rounds, then fractions": [{"v": (1 << 53) + 1}, {"v": 0.5}],
    "numbers, then text": [{"v": 1}, {"v": 0.5}, {"v": "x"}, {"v": True}],
    "integers of any size": [{"v": 1}, {"v": 1 << 70}, {"v": 3}],
    "integers beyond decimals": [{"v": 1}, {"v": 10**40}, {"v": None}],
    "nulls, then values": [{"v": None}, {"v": None}, {"v": "2026-01-01T00:00:00Z"}, {"v": 4}],
    "nulls, then objects": [{"v": None}, {"v": {"a": 1}}, {"v": None}],
    "nulls, then lists": [{"v": None}, {"v": [1]}, {"v": None}],
    "lists of one type, then of two": [{"v": [1]}, {"v": [1, "x"]}],
    "lists of fixed length, then of others": [{"v": [1, "x"]}, {"v": [2, "y"]}, {"v": [1]}],
    "empty lists, then lists": [{"v": []}, {"v": [None]}, {"v": [1, 2]}],
    "empty lists, then lists of objects": [{"v": []}, {"v": [{"a": 1}]}],
    "short lists, then a long one": [{"v": [1]}, {"v": [1] * 80}],
    "lists, then text": [{"v": [1, 2]}, {"v": "x"}],
    "lists that a column refuses": [{"v": [1]}, {"v": [1 << 70]}, {"v": ["\ud800"]}],
    "keys that are data": [{"v": {"1": 1}}, {"v": {"a": 2}}, {"v": {"2": 1}}],
    "maps of records": [{"v": {f"n{i}": {"x": i, "y": i, "z": i} for i in range(n)}} for n in (1, 2, 3)],
    "lists side by side": [{"v": {"t": [1] * n, "u": [2.5] * n, "w": [0] * m}} for n, m in ((3, 3), (20, 20), (20, 5))],
    "lists side by side, not always": [{"v": {"t": [1] * 20, "u": [2] * 20}}, {"v": {"t": [1] * 20}}],
    "keys that come late": [{"a": {}, "z": 1}, {"a": {"x": {"y": 1}}, "z": 2}, {"b": 1, "a": {"w": 3}}],
    "text that holds records": [{"v": "[no"}, {"v": '{"a": 1}'}, {"v": '{"a": [1], "b": "2"}'}],
    "half surrogates": [{"v": "a"}, {"v": "\ud83d"}, {"v": "b"}],
    "no list has items": [{"v": [[]]}, {"v": [[], []]}, {"v": [[{"a": 1}]]}],
}


@pytest.mark.parametrize("found", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("back", [False, True], ids=["", "backwards"])
def test_runs_that_ask_for_different_columns(
    found: list[Any], place: int, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read again in runs, and never as a whole."""
    text = json.dumps(around([{"@id": i, **record} for i, record in enumerate(found[::-1] if back else found)], place))
    with in_runs(), monkeypatch.context() as patch:
        patch.setattr("hyve.groups.shred", None)
        gathered(text)
    check(text)
    check(text, look=stored)


def test_records_and_other_items() -> None:
    """What follows the records of a list may be anything."""
    for rest in ([3, None, "x"], [[1], [2, "x"]], [None], [{"other": 1}, 2.5]):
        for place in range(3):
            check(json.dumps(around([{"@id": 1, "a": "7"}, {"@id": 2}, *rest], place)))


def test_lists_that_begin_with_something_else() -> None:
    """Lists are read in runs whatever their first items are, and in whatever order their records have their keys."""
    found = [
        {"n": i, "of": [{"n": j, "x": [i]} for j in range(i % 4)]} if i % 2 else {"x": i, "n": "7"} for i in range(40)
    ]
    for first in ([[0, "row"]], [None, {}], [[], [{"n": 1}]], [1, "x", {"n": {"n": 1}}]):
        for place in range(3):
            text = json.dumps(around([*first, *found], place))
            with in_runs():
                ahead = hyve.parse(text).parts[0].ahead
                assert ahead is not None
                assert len(list(ahead.runs())) > 15
            check(text)
            check(text, look=stored)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
@given(st.lists(values | records, min_size=20, max_size=30), st.integers(0, 2))
def test_any_list(items: list[Any], place: int) -> None:
    """The items are values of any type."""
    check(written(around([{"@id": 1}, *items], place)), 60)


def single(records: list[Any], place: int) -> Any:
    return (
        [records],
        {"kind": "x", "outer": [{"n": 1, "tags": [1, 2], "inner": {"rows": records, "k": [{"z": 1}]}, "end": None}]},
        [{"a": [{"b": [{"c": records, "d": "2"}]}], "b": [{"b": 1}]}],
    )[place]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_string_with_brackets_where_lists_are_looked_for_no_longer(place: int) -> None:
    """That is at half of the text, or 16 KB from its start; most log lines have a bracket or two."""
    check(
        json.dumps(single([{"n": i, "message": f"[{i}] gone: }}]"} for i in range(6)] + [{"n": "]" * 400}] * 3, place))
    )


@example([{"@id": None, "id": None}] * 10 + [{"@id": at, "id": at} for at in ("[", '\u2028{"a": 1}')], 0)
@settings(max_examples=40, deadline=None)
@given(st.lists((records | any_records).map(with_id_first), min_size=12, max_size=20), st.integers(0, 2))
def test_any_list_in_lists_of_one_item(found: list[Any], place: int) -> None:
    """A long list is read in runs though lists hold it; not a list of which one record is most."""
    sizes = [len(written(record)) for record in found]
    assume(2 * max(sizes) < sum(sizes))
    check(written(single(found, place)), 60)


@pytest.mark.parametrize("found", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_runs_of_an_inner_list_that_ask_for_different_columns(
    found: list[Any], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(single([{"@id": i, **record} for i, record in enumerate(found * 4)], place))
    with in_runs(), monkeypatch.context() as patch:
        patch.setattr("hyve.groups.shred", None)
        gathered(text)
    check(text)
    check(text, look=stored)


cells = st.sampled_from(
    ["", "a", "7", "0.5", '"x, y"', '"two\nlines"', '"{""a"": [1]}"', "2026-01-01T00:00:00Z", '"\r"', "é"]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=3, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "# made by hand\n"]),
    st.sampled_from(["", "\n", "\n(3 rows)\n"]),
    st.sampled_from([1, 9]),
)
def test_any_csv(rows: list[list[str]], end: str, before: str, behind: str, size: int) -> None:
    """A table is read in runs of rows; the cells of a row may be several lines."""
    text = before + end.join(map(",".join, [["id", "name", "note"], ["1", "b", "c"], *rows])) + behind
    wanted = hyve.parse(text)
    with in_runs(size):
        found = hyve.parse(text)
        assert [(part.span, part.syntax, part.flags, part.value) for part in found.parts] == [
            (part.span, part.syntax, part.flags, part.value) for part in wanted.parts
        ]
        in_turn = gathered(text)
    assert repr(in_turn) == repr(gathered(text))


def test_csv_in_runs() -> None:
    """Short rows, long rows, blank lines and headers that come again."""
    rows = [f"{i},n{i % 7},{i / 4}" for i in range(120)]
    for more in ([], ["7,x"], ["", "7,x,1,z"], ["id,name,v", "8,y,2"], ["", ""]):
        text = "\n".join(["id,name,v", *rows[:60], *more, *rows[60:]])
        check(text, 60)
        check(text, 60, look=stored)


line_ends = st.sampled_from(["\n", "\r\n", "\n\n  "])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(records | any_records, line_ends), min_size=2, max_size=7), st.sampled_from([1, 60]))
def test_any_lines(found: list[tuple[Any, str]], size: int) -> None:
    """NDJSON: each line is a part."""
    check("".join(written(record) + end for record, end in found), size)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(records | any_records, line_ends), min_size=2, max_size=5))
def test_any_store_of_lines(found: list[tuple[Any, str]]) -> None:
    """Invariant 1 for each part."""
    check("".join(written(record) + end for record, end in found), look=stored)


@pytest.mark.parametrize("found", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_lines_that_ask_for_different_columns(found: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(map(json.dumps, found))
    with in_runs(), monkeypatch.context() as patch:
        patch.setattr("hyve.groups.shred", None)
        gathered(text)
    check(text)


def test_objects_within_that_begin_like_the_records() -> None:
    """They are no places to cut at."""
    found = [{"id": i, "of": [{"id": j, "of": []} for j in range(i % 4)]} for i in range(12)]
    with in_runs():
        ahead = hyve.parse(json.dumps(found)).parts[0].ahead
        assert ahead is not None
        assert len(list(ahead.runs())) == 12
    check(json.dumps(found))


def test_lines_of_lists_are_read_at_once() -> None:
    """They may go to other tables than the objects do."""
    for text in ('{"a": 1}\n[{"a": 2}]\n{"a": 3}\n', '{"a": 1}\n\n{"a": 2}\n["x", 1]\n'):
        wanted = gathered(text)
        with in_runs():
            assert all(part.ahead is None for part in hyve.parse(text).parts)
            assert repr(gathered(text)) == repr(wanted)


def add_all(runs: Runs, found: list[Any]) -> None:
    for item in found:
        runs.add([item])


def test_what_runs_cannot_tell_is_read_at_once() -> None:
    """Keys of which only all records together say whether they are columns; the limits on tables and columns."""
    wide = [{"@id": i, **{f"k{i * 40 + j}": j for j in range(40)}} for i in range(12)]
    nested = [{"@id": i, "v": {f"l{i}_{j}": [{"a": 1}] for j in range(30)}} for i in range(12)]
    several = {f"n{i}": [{"@id": i, "a": 1, "b": 2}, {"@id": i, "a": 1, "b": 2}] for i in range(4)}
    for value in (wide, nested, several):
        check(json.dumps(value))
    runs = Runs()
    with pytest.raises(Unsettled):
        add_all(runs, wide)


def test_runs_of_a_table_are_the_table() -> None:
    """Also of a table of rows that are no objects, and of one run."""
    for found in ([[1, 2], [3, 4], [5]], [1, 2.5, None, "x"], [{"a": 1}], [[{"a": i}] for i in range(5)]):
        runs = Runs()
        made = None
        while made is None:
            add_all(runs, found)
            made = runs.table()
        assert described(made) == described(shred(found))


CORPUS = Path(os.environ.get("HYVE_CORPUS", ""))


@pytest.mark.skipif(not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the corpus is not checked")
def test_corpus_in_runs() -> None:
    """Every JSON file of the corpus that begins with a list of objects, or is lines of them, in some ten runs."""
    checked = 0
    for file in sorted(CORPUS.glob("**/*.*json*")):
        text = file.read_text("utf-8", "surrogateescape")
        with in_runs():
            parts = hyve.parse(text).parts if len(text) < 3_000_000 else ()
        if parts and all(part.ahead is not None for part in parts):
            check(text, len(text) // 10)
            checked += 1
    assert checked > 40


def test_large_tables_are_loaded_by_one_thread_and_read_by_all() -> None:
    """Tables too large for several threads to load hold the same, also after a locked database of one thread."""
    text = json.dumps([{"host": f"node-{i % 3}", "value": i} for i in range(50)])
    plain = stored(text)
    with hyve.Datastore([hyve.parse(text)], threads=1) as store:
        store.query("SELECT 1")
    with mock.patch.object(hyve.store, "_COMPRESSED", 0):
        assert repr(stored(text)) == repr(plain)
        with hyve.Datastore([hyve.parse(text)], threads=2) as store:
            assert fetched(store, "SELECT current_setting('threads')") == [(2,)]


@pytest.mark.parametrize("missing", [0, 7])
def test_records_of_more_keys_than_a_table_has_columns(missing: int) -> None:
    """H22: each is rows of a map. They are never all read at once, and a key that all have is held once."""
    records = [{f"k{key}": key * i for key in range(1_500) if key % 500 != missing * i % 500} for i in range(12)]
    text = json.dumps(records)
    check(text, 20_000)
    with in_runs(20_000), mock.patch("hyve.groups.shred", side_effect=AssertionError):
        (_, (table,), _) = gather([hyve.parse(text)])
    (entries,) = table.data.children.values()
    assert entries.keys == [key for record in records for key in record]
    assert len(set(map(id, entries.keys))) == len({key for record in records for key in record})
