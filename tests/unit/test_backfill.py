"""Paths, fills, and everything that must not half happen."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import sql
from hyve.backfill import Filled, Step, complete, fill, gaps, parse_path
from hyve.errors import BackfillError
from hyve.reply import FillMapping
from hyve.sql import QueryResult


def result(columns: str, *rows: tuple[Any, ...], total: int | None = None) -> QueryResult:
    names = tuple(columns.split())
    return QueryResult("SELECT ...", names, ("?",) * len(names), rows, len(rows) if total is None else total, 0.0)


def filled(template: Any, columns: str, rows: list[tuple[Any, ...]], *mappings: tuple[str, str]) -> Any:
    return fill(template, [(result(columns, *rows), [FillMapping(*mapping) for mapping in mappings])])


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", [Step("a")]),
        ("a.b", [Step("a"), Step("b")]),
        ("a.(i).y", [Step("a"), Step(column="i"), Step("y")]),
        ("(i)", [Step(column="i")]),
        ("a.0.1", [Step("a"), Step("0", index=True), Step("1", index=True)]),
        ("a[0][(i)].b", [Step("a"), Step("0", index=True), Step(column="i"), Step("b")]),
        (r"a\.b.c\(d\)", [Step("a.b"), Step("c(d)")]),
        (r"a\\b", [Step("a\\b")]),
        (r"\0", [Step("0")]),
        (r"(odd\).name)", [Step(column="odd).name")]),
        ("(count.star)", [Step(column="count.star")]),
        ("http status.2xx", [Step("http status"), Step("2xx")]),
        ("日本.(数)", [Step("日本"), Step(column="数")]),
        (
            "CDSAILineChart.data.list.(series_idx).data.(_row_id).y",
            [Step("CDSAILineChart"), Step("data"), Step("list"), Step(column="series_idx"), Step("data"),
             Step(column="_row_id"), Step("y")],
        ),
    ],
)  # fmt: skip
def test_paths_of_the_grammar(path: str, steps: list[Step]) -> None:
    assert list(parse_path(path)) == steps


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "ends where a key"),
        (".", "no key"),
        ("a.", "ends where a key"),
        ("a..b", "no key or .column. at character 2"),
        ("a.(i", "character 2"),
        ("a.()", "character 2"),
        ("a(i)", "expected '.' at character 1"),
        ("a.(i)y", "expected '.' at character 5"),
        ("a[0", "not closed"),
        ("a[b]", "neither an index nor a"),
        ("a]", "expected '.' at character 1"),
        ("a\\", "character 1"),
        (".".join("a" * 65), "more than 64 steps"),
    ],
)
def test_paths_outside_of_the_grammar_say_where(path: str, says: str) -> None:
    with pytest.raises(BackfillError, match=says):
        parse_path(path)


def test_scalars_lists_pairs_and_maps() -> None:
    template = {"title": {"text": "x"}, "n": None, "list": [], "pairs": [], "map": {}, "points": []}
    rows = [(0, 10, "a", 3), (1, 11, "b", 3), (2, 12, "c", 3)]
    got = filled(
        template,
        "i y k n",
        rows,
        ("n", "n"),
        ("y", "list.(i)"),
        ("i", "pairs.(i).0"),
        ("y", "pairs.(i).1"),
        ("y", "map.(k)"),
        ("y", "points.(i).value.y"),
    )
    assert got == {
        "title": {"text": "x"},
        "n": 3,
        "list": [10, 11, 12],
        "pairs": [[0, 10], [1, 11], [2, 12]],
        "map": {"a": 10, "b": 11, "c": 12},
        "points": [{"value": {"y": 10}}, {"value": {"y": 11}}, {"value": {"y": 12}}],
    }
    assert filled({}, "lo hi", [(1, 2)], ("lo", "range.0"), ("hi", "range.1")) == {"range": [1, 2]}
    assert template == {"title": {"text": "x"}, "n": None, "list": [], "pairs": [], "map": {}, "points": []}


def test_any_column_may_be_an_index_or_a_key_and_rows_may_come_in_any_order() -> None:
    got = filled({"s": []}, "a b v", [(1, 1, "z"), (0, 0, "w"), (1, 0, "y"), (0, 1, "x")], ("v", "s.(a).(b)"))
    assert got == {"s": [["w", "x"], ["y", "z"]]}
    got = filled({"s": {}}, "a b v", [(1, "p", 5), (2, "q", 6)], ("v", "s.(a).(b)"))
    assert got == {"s": {"1": {"p": 5}, "2": {"q": 6}}}


def test_several_fills_go_into_one_template() -> None:
    got = fill(
        {"series": [{"type": "line", "data": []}, {"type": "bar", "data": []}], "max": 0},
        [
            (result("i v", (0, 1), (1, 2)), [FillMapping("v", "series.0.data.(i)")]),
            (result("i v", (0, 3)), [FillMapping("v", "series[1].data[(i)]")]),
            (result("m", (9,)), [FillMapping("M", "max")]),
        ],
    )
    assert got == {"series": [{"type": "line", "data": [1, 2]}, {"type": "bar", "data": [3]}], "max": 9}


def test_the_number_of_the_row_stands_in_for_a_missing_row_id() -> None:
    assert filled({"d": []}, "v", [(7,), (8,)], ("v", "d.(_row_id)")) == {"d": [7, 8]}
    assert filled({"d": []}, "v _row_id", [(7, 1), (8, 0)], ("v", "d.(_row_id)")) == {"d": [8, 7]}


def test_what_is_there_keeps_its_other_content() -> None:
    template = {"list": [{"name": "a", "data": [5]}, None]}
    got = filled(template, "s i v", [(0, 1, 6), (1, 0, 7)], ("v", "list.(s).data.(i)"))
    assert got == {"list": [{"name": "a", "data": [5, 6]}, {"data": [7]}]}


def test_equal_values_may_meet_in_one_place_and_lists_are_copied() -> None:
    shared = [1]
    got = filled({"n": [], "d": []}, "s i name l", [(0, 0, "x", shared), (0, 1, "x", shared)],
                 ("name", "n.(s)"), ("l", "d.(i)"))  # fmt: skip
    assert got == {"n": ["x"], "d": [[1], [1]]}
    got["d"][0].append(2)
    assert shared == [1]
    assert got["d"][1] == [1]


def test_keys_may_hold_dots_and_parentheses() -> None:
    got = filled({}, "k v", [("x.y", 1), ("p(q)", 2)], ("v", r"a\.b.c\(d\).(k)"))
    assert got == {"a.b": {"c(d)": {"x.y": 1, "p(q)": 2}}}


def test_no_rows_leave_the_template_as_it_was() -> None:
    assert filled({"d": []}, "i v", [], ("v", "d.(i)")) == {"d": []}


@pytest.mark.parametrize(
    ("template", "columns", "rows", "mapping", "says"),
    [
        ({"d": []}, "i v", [(0, 1), (2, 3)], ("v", "d.(i)"), "no row fills index 1 of a list of 3"),
        ({"d": []}, "i v", [(1, 1)], ("v", "d.(i)"), "no row fills index 0"),
        ({"d": []}, "i v", [(10**12, 1)], ("v", "d.(i)"), "index 1000000000000 lies beyond the 1 rows"),
        ({"d": []}, "i v", [(-1, 1)], ("v", "d.(i)"), "below 0"),
        ({"d": []}, "i v", [(0.5, 1)], ("v", "d.(i)"), r"\(i\) is 0.5; an index must be an integer"),
        ({"d": []}, "i v", [(None, 1)], ("v", "d.(i)"), r"\(i\) is NULL"),
        ({"d": []}, "i v", [(True, 1)], ("v", "d.(i)"), r"\(i\) is True"),
        ({"d": []}, "i v", [([1], 1)], ("v", "d.(i)"), r"\(i\) is \[1\]"),
        ({"d": []}, "i v", [("x", 1)], ("v", "d.(i)"), "step 2 is 'x', but a list stands there"),
        ({"d": 5}, "i v", [(0, 1)], ("v", "d.(i)"), r"step 1 \(d\) is 5, which has no place inside"),
        ({"d": [{"x": 1}]}, "i v", [(0, 1)], ("v", "d.(i)"), "holds a dict with content"),
        ({"d": 0}, "v", [(1,), (2,)], ("v", "d"), "another row put 1 where this one puts 2"),
        ({"d": 0}, "v", [(1,), (True,)], ("v", "d"), "another row put 1 where this one puts True"),
        ({"d": []}, "i v", [(0, 1)], ("w", "d.(i)"), "no column 'w'; they have: i, v"),
        ({"d": []}, "i v", [(0, 1)], ("v", "d.(j)"), "no column 'j'; they have: i, v"),
        ({"d": []}, "v v", [(0, 1)], ("v", "d.(_row_id)"), "2 columns are called 'v'"),
        (
            {"option": {"series": []}},
            "i v",
            [(0, 1)],
            ("v", "option.seires.(i)"),
            r"no key 'seires' at step 2 \(did you mean 'series'\?\); it has: series",
        ),
        (
            {"chart": {"data": []}, "title": ""},
            "i v",
            [(0, 1)],
            ("v", "data.(i)"),
            r"no key 'data' at the top \('data' stands at 'chart.data'\); it has: chart, title",
        ),
        ({"series": [{"data": []}]}, "i v", [(0, 1)], ("v", "series.0.name"), "no key 'name' at step 3; it has: data"),
        (
            {"title": "none"},
            "i v",
            [(0, 1)],
            ("v", "data.(i)"),
            "no key 'data' at the top; it has: title. Put an empty",
        ),
        ({"d": []}, "idx value", [(0, 1)], ("vlaue", "d.(idx)"), r"no column 'vlaue' \(did you mean 'value'\?\)"),
        ([], "v", [(0,)], ("v", "name"), "step 1 is 'name', but a list stands there"),
        ("text", "v", [(0,)], ("v", "a"), "the template is str"),
        (None, "v", [(0,)], ("v", "a"), "the template is NoneType"),
    ],
)
def test_a_misfit_names_path_and_column_and_fills_nothing(
    template: Any, columns: str, rows: list[tuple[Any, ...]], mapping: tuple[str, str], says: str
) -> None:
    before = copy.deepcopy(template)
    with pytest.raises(BackfillError, match=says) as caught:
        filled(template, columns, rows, mapping)
    assert template == before
    if "template" not in says:
        assert mapping[1] in str(caught.value)


def test_what_rows_made_and_empty_places_take_any_key() -> None:
    template = {"series": [{"name": "a", "data": []}], "byName": {}, "later": None}
    got = filled(template, "s k v", [(0, "x", 1), (1, "y", 2)], ("v", "series.(s).data.0"), ("v", "byName.(k).at.0"),
                 ("v", "later.(s).v"))  # fmt: skip
    assert got["series"] == [{"name": "a", "data": [1]}, {"data": [2]}]
    assert got["byName"] == {"x": {"at": [1]}, "y": {"at": [2]}}
    assert got["later"] == [{"v": 1}, {"v": 2}]


def test_keys_out_of_rows_may_be_new_to_an_object() -> None:
    assert filled({"d": {"a": 0}}, "k v", [("b", 1)], ("v", "d.(k)")) == {"d": {"a": 0, "b": 1}}


def test_no_number_is_null_in_a_chart() -> None:
    rows = ((0, "NaN", "NaN"), (1, 2.5, "x"), (2, "-Infinity", "y"))
    got = QueryResult("SELECT ...", ("i", "v", "t"), ("BIGINT", "DOUBLE", "VARCHAR"), rows, 3, 0.0)
    mappings = [FillMapping("v", "d.(i)"), FillMapping("t", "t.(i)")]
    assert fill({"d": [], "t": []}, [(got, mappings)]) == {"d": [None, 2.5, None], "t": ["NaN", "x", "y"]}
    assert gaps(got, mappings) == 2


def test_what_is_filled_in_is_bounded() -> None:
    many = [(i,) for i in range(5000)]
    with pytest.raises(BackfillError, match="1,280,000 values are to be filled in, the limit is 1,000,000"):
        filled({}, "v", many, *[("v", f"a{n}.(_row_id)") for n in range(256)])
    with pytest.raises(BackfillError, match="over 64 MB would be filled in"):
        filled({"d": []}, "v", [("x" * (1 << 20),)] * 70, ("v", "d.(_row_id)"))


def test_a_capped_result_is_not_filled_in() -> None:
    with pytest.raises(BackfillError, match="gives 5000 rows and only 1 can be filled"):
        fill({"d": []}, [(result("v", (1,), total=5000), [FillMapping("v", "d.(_row_id)")])])


def test_a_later_fill_that_fails_leaves_nothing_behind() -> None:
    template: dict[str, Any] = {"a": [], "b": []}
    with pytest.raises(BackfillError):
        fill(
            template,
            [
                (result("i v", (0, 1)), [FillMapping("v", "a.(i)")]),
                (result("i v", (3, 1)), [FillMapping("v", "b.(i)")]),
            ],
        )
    assert template == {"a": [], "b": []}


def test_indexes_that_grow_with_every_row_stay_cheap() -> None:
    rows = [(i, i * 4999, 1) for i in range(5000)]
    with pytest.raises(BackfillError, match="beyond the 5000 rows"):
        filled({"d": []}, "a i v", rows, ("v", "d.(i)"))
    with pytest.raises(BackfillError, match="beyond the 5000 rows"):
        filled({"d": []}, "a i v", [(i, 4999, 1) for i in range(5000)], ("v", "d.(a).(i)"))


def test_a_template_of_hostile_depth_is_an_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BackfillError, match="nested too deeply"):
        fill(deep, [])
    while deep:  # so that freeing it does not recurse
        deep = deep.pop()


_keys = st.text(min_size=1, max_size=8)
_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)


def _escaped(key: str) -> str:
    return "".join("\\" + char if char in ".()[]\\0123456789" else char for char in key)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_keys, min_size=1, max_size=4, unique=True),
    st.dictionaries(st.tuples(_keys, st.integers(0, 3)), _scalars, min_size=1, max_size=12),
)
def test_what_is_filled_in_reads_back(keys: list[str], values: dict[tuple[str, int], Any]) -> None:
    rows = []
    counts: dict[str, int] = {}
    for (group, _), value in values.items():
        rows.append((group, counts.setdefault(group, 0), value))
        counts[group] += 1
    path = ".".join(_escaped(key) for key in keys) + ".(g).(i).value"
    got = filled({}, "g i v", rows, ("v", path))
    for key in keys:
        got = got[key]
    assert {group: len(items) for group, items in got.items()} == counts
    for group, index, value in rows:
        found = got[group][index]["value"]
        assert found == value
        assert type(found) is type(value)


# The paper's worked example, for the specifications of four charting libraries: 3 series of 768 points.
SERIES, POINTS = 3, 768
QUERY = (
    "SELECT s AS series_idx, row_number() OVER (PARTITION BY s ORDER BY t) - 1 AS _row_id, t, v,"
    " 'series ' || s AS name, row_number() OVER (ORDER BY s, t) - 1 AS n FROM points ORDER BY s, t"
)


@pytest.mark.parametrize(
    ("template", "mappings", "read"),
    [
        (
            {"CDSAILineChart": {"data": {"list": [{"name": "a", "data": []} for _ in range(3)]}}},
            [("v", "CDSAILineChart.data.list.(series_idx).data.(_row_id).y"),
             ("t", "CDSAILineChart.data.list.(series_idx).data.(_row_id).x")],
            lambda chart, s, i: tuple(chart["CDSAILineChart"]["data"]["list"][s]["data"][i][k] for k in "xy"),
        ),
        (
            {"xAxis": {"type": "time"}, "series": [{"type": "line", "name": "", "data": []} for _ in range(3)]},
            [("t", "series.(series_idx).data.(_row_id).0"), ("v", "series.(series_idx).data.(_row_id).1"),
             ("name", "series.(series_idx).name")],
            lambda chart, s, i: tuple(chart["series"][s]["data"][i]),
        ),
        (
            {"chart": {"type": "line"}, "series": []},
            [("t", "series[(series_idx)].data[(_row_id)].x"), ("v", "series[(series_idx)].data[(_row_id)].y"),
             ("name", "series[(series_idx)].name")],
            lambda chart, s, i: (chart["series"][s]["data"][i]["x"], chart["series"][s]["data"][i]["y"]),
        ),
        (
            {"type": "line", "data": {"labels": [], "datasets": []}},
            [("t", "data.labels.(_row_id)"), ("v", "data.datasets.(series_idx).data.(_row_id)"),
             ("name", "data.datasets.(series_idx).label")],
            lambda chart, s, i: (chart["data"]["labels"][i], chart["data"]["datasets"][s]["data"][i]),
        ),
        (
            {"mark": "line", "data": {"values": []}, "encoding": {"x": {"field": "x"}, "y": {"field": "y"}}},
            [("t", "data.values.(n).x"), ("v", "data.values.(n).y"), ("name", "data.values.(n).series")],
            lambda chart, s, i: tuple(chart["data"]["values"][POINTS * s + i][k] for k in "xy"),
        ),
    ],
    ids=["paper", "echarts", "highcharts", "chartjs", "vega-lite"],
)  # fmt: skip
def test_every_point_of_the_worked_example_is_equal(template: Any, mappings: Any, read: Any) -> None:
    connection = sql.connect()
    connection.execute("CREATE TABLE points (s INT, t TIMESTAMP_NS, v DOUBLE)")
    expected = {}
    rows = []
    for s in range(SERIES):
        for i in range(POINTS):
            value = math.sin(s + i / 7) * 10**s + i / 3
            rows.append((s, 1_700_000_000_000_000_000 + i * 60_000_000_001, value))
            expected[s, i] = value
    connection.executemany("INSERT INTO points SELECT ?, make_timestamp_ns(?), ?", rows)
    got = sql.run(connection, QUERY, ("points",))
    assert got.total_rows == SERIES * POINTS == 2304
    chart = fill(template, [(got, [FillMapping(*mapping) for mapping in mappings])])
    times = [
        row[0]
        for row in connection.execute(
            "SELECT strftime(t, '%Y-%m-%dT%H:%M:%S.') || lpad((epoch_ns(t) % 1000000000)::VARCHAR, 9, '0')"
            " FROM points WHERE s = 0 ORDER BY t"
        ).fetchall()
    ]
    points = 0
    for (s, i), value in expected.items():
        assert read(chart, s, i) == (times[i].rstrip("0").rstrip("."), value)
        points += 1
    assert points == 2304
    assert json.loads(json.dumps(chart)) == chart


NAMED = [(0, 0, "a", 5), (0, 1, "a", 6), (1, 0, "b", 7)]


def test_a_key_that_is_missing_beside_a_filled_one_is_added() -> None:
    got = filled(
        {"series": [{"data": []}, {"data": []}]},
        "s i k v",
        NAMED,
        ("v", "series.(s).data.(i)"),
        ("k", "series.(s).name"),
    )
    assert got == {"series": [{"data": [5, 6], "name": "a"}, {"data": [7], "name": "b"}]}


@pytest.mark.parametrize("path", ["series.(s).date", "series.(s).dat", "series.(s).name.text", "titel"])
def test_a_key_that_may_be_mistyped_or_stands_alone_is_not_added(path: str) -> None:
    template = {"title": "", "series": [{"data": []}, {"data": []}]}
    with pytest.raises(BackfillError, match="no key"):
        filled(template, "s i k v", NAMED, ("v", "series.(s).data.(i)"), ("k", path))


def test_placeholders_behind_what_rows_filled_are_removed_and_counted() -> None:
    rows = result("s i k v", *NAMED)
    mappings = [FillMapping("v", "series.(s).data.(i)"), FillMapping("k", "series.(s).name")]
    item = {"name": "", "data": [0, 0, 0, 0]}
    got = complete({"series": [dict(item, data=[0] * 4), dict(item, data=[0] * 4), item]}, [(rows, mappings)])
    assert got == Filled({"series": [{"name": "a", "data": [5, 6]}, {"name": "b", "data": [7]}]}, 0, 6)


def test_items_beside_a_written_index_stay() -> None:
    got = complete({"series": [{"data": []}, {"data": [1, 2.5]}]},
                   [(result("v", (4,)), [FillMapping("v", "series.0.data.(_row_id)")])])  # fmt: skip
    assert got == Filled({"series": [{"data": [4]}, {"data": [1, 2.5]}]}, 2, 0)


@pytest.mark.parametrize(
    ("template", "own"),
    [
        ({"d": [], "grid": {"padding": [1, 2]}, "width": 7}, 0),
        ({"d": [], "data": [1, [2, 3], {"x": 4, "y": 5, "size": 6}, True, None, "8"]}, 5),
        ({"d": [], "series": [{"lineWidth": 2, "values": [[1, 2], [3, 4]]}]}, 4),
    ],
)
def test_numbers_of_the_template_s_own_data_are_counted(template: Any, own: int) -> None:
    assert complete(template, [(result("v", (9,)), [FillMapping("v", "d.(_row_id)")])]).own == own
