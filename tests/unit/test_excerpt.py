"""What a cut view says of its tables: figures, names, series, heads, ablations (H14-H20, H24, H34; invariants 3, 4)."""

from __future__ import annotations

import json
import math
import os
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toon_format
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hyve
from hyve import columns as columns_module
from hyve import notation, rank
from hyve.columns import Columns
from hyve.naming import quote
from hyve.profile import profile
from hyve.views import least_tokens
from tests.unit.documents import fetched


def data_of(prompt: hyve.Prompt) -> str:
    return prompt.text.split("\n# Data ", 1)[1].split("\n", 1)[1].rsplit("\n# End ", 1)[0]


def rows_of(text: str, table: str) -> tuple[list[str], list[list[str]]]:
    """The head and the cells of a table's rows."""
    lines = text.split(f"## {table}: ")[1].split("\n## ")[0].split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("rowid|"))
    found = [line.split("|") for line in lines[start + 1 :] if re.match(r"\d+\|", line)]
    return lines[start].split("|"), found


values = st.none() | st.integers(-(2**40), 2**40) | st.booleans()
cells = {
    "n": st.none() | st.integers(-(2**40), 2**40),
    "f": st.none() | st.floats().map(lambda number: number + 0.0),  # -0.0 is 0.0 there
    "s": st.none() | st.text(alphabet="ab-1/é", max_size=6),
    "few": st.sampled_from(["x", "y", None]),
    "b": st.none() | st.booleans(),
    "l": st.lists(st.sampled_from(["p", "q"]), max_size=2),
    "t": st.none() | st.datetimes().map(lambda time: time.strftime("20%y-%m-%dT%H:%M:%SZ")),
}


@given(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=30), st.booleans())
@settings(max_examples=40, deadline=None)
def test_figures_are_those_of_sql(value: list[dict[str, Any]], large: bool) -> None:
    """H14: counts, extremes and means of all rows are what DuckDB says, in small tables and in large ones."""
    with pytest.MonkeyPatch.context() as patch, hyve.Datastore.from_text(json.dumps(value)) as store:
        if large:
            patch.setattr(columns_module, "_CELLS", 0)
        for table in store.catalog.tables:
            for view in profile(Columns(store, table)).views:
                name, of = quote(view.column.name), quote(table.name)
                text = "::VARCHAR" if view.time else ""
                finite = f" FILTER (isfinite({name}::DOUBLE))" if view.numeric else ""
                mean = f"avg({name}::DOUBLE){finite}" if view.numeric else "NULL"
                edges = "NULL, NULL" if view.nested else f"(min({name}){finite}){text}, (max({name}){finite}){text}"
                ((distinct, filled, low, high, average),) = fetched(
                    store, f"SELECT count(DISTINCT {name}), count({name}), {edges}, {mean} FROM {of}"
                )
                assert (view.distinct, view.rows - view.nulls) == (distinct, filled)
                assert (view.low, view.high) == (low, high)
                if average is not None and math.isfinite(average):
                    assert view.mean == pytest.approx(average, rel=1e-9, abs=1e-6)
                if view.values:
                    counted = fetched(
                        store,
                        f"SELECT {name}::VARCHAR, count(*) FROM {of} WHERE {name} IS NOT NULL GROUP BY ALL"
                        " ORDER BY 2 DESC, 1",
                    )
                    assert list(view.values) == counted


def test_means_near_the_end_of_doubles_are_finite() -> None:
    value = [{"service": f"s{i % 2}", "v": 1.5e308 + i * 1e300, "pad": f"{i} " + "x" * 30} for i in range(300)]
    text = data_of(hyve.view(json.dumps(value), "?", 1500))
    assert re.search(r"^- v DOUBLE.* mean 1\.5000015e\+308", text, re.MULTILINE)
    assert "- mean v by service: s0=1.50000149e+308, s1=1.5000015e+308" in text
    assert "inf" not in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), json_values, max_size=3), max_size=12).map(lambda rows: rows * 3)
)
@settings(max_examples=40, deadline=None)
def test_what_no_text_stays_under_is_no_more_than_the_notation(value: list[dict[str, Any]]) -> None:
    """Data that fits must not be taken for data that does not."""
    with hyve.Datastore.from_text(json.dumps(value)) as store:
        least = least_tokens([Columns(store, table) for table in store.catalog.tables], 1 << 40)
    assert least <= hyve.count_tokens(notation.encode([value]))


@pytest.mark.skipif("HYVE_CORPUS" not in os.environ, reason="HYVE_CORPUS is not set")
def test_the_same_of_real_files() -> None:
    files = [file for file in Path(os.environ["HYVE_CORPUS"]).rglob("*.json") if file.stat().st_size < 200_000]
    assert len(files) > 30
    for file in files:
        with hyve.Datastore.from_text(file.read_bytes()) as store:
            least = least_tokens([Columns(store, table) for table in store.catalog.tables], 1 << 40)
            parts = sum(len(source.syntaxes) for source in store.sources)
            shown = notation.encode([store.reconstruct(i) for i in range(parts)])
            text = store.sources[0].text
        assert least <= min(hyve.count_tokens(shown), hyve.count_tokens(text)), file.name


def test_outliers_are_measured_within_their_own_series() -> None:
    """H18: a spike of a low series is none of a high one; NaN and what is missing stand for themselves."""
    numbers = np.array([10.0, 11, 9, 10, 50, 500, 501, 499, 500, 502, np.nan, 0])
    there = np.array([True] * 11 + [False])
    finite = there & np.isfinite(numbers)
    scores = rank.surprising(rank.away(numbers, finite, np.array([0] * 5 + [1] * 5 + [0, 1])), there & ~finite)
    for start, stop in ((0, 5), (5, 10)):
        series = numbers[start:stop]
        low, median, high = np.percentile(series, [25, 50, 75])
        spread = (high - low) / 1.349
        assert scores[start:stop] == pytest.approx(np.minimum(np.abs(series - median) / spread, 40) / 4)
    assert scores[4] > 5 > 1 > scores[5:10].max()
    assert list(scores[10:]) == [8.0, 0.0]
    assert rank.away(np.array([7.0, 7.0]), np.array([True, True]), np.array([0, 0])).tolist() == [0.0, 0.0]


def test_one_of_many_rare_values_surprises_less() -> None:
    alone = _rare_kinds([0] * 90 + [1] * 9 + [2])
    assert alone is not None
    assert alone[-1] == pytest.approx(math.log(100 / 3))
    assert alone[0] == 0
    many = _rare_kinds([0] * 990 + list(range(1, 11)) + [-1])
    assert many is not None
    assert many[-2] == pytest.approx(math.log(1000 / 11) - math.log(10))
    assert many[-1] == 0
    assert _rare_kinds([0] * 90 + list(range(1, 11))) is None  # eleven kinds, and most of them alone
    assert _rare_kinds([-1, -1]) is None
    assert _rare_kinds([0, 1, 1, 0]) is None


def _rare_kinds(codes: list[int]) -> Any:
    return rank.rare_kinds(np.array(codes, np.int32), np.bincount(np.array(codes) + 1)[1:])


def test_columns_that_say_the_same_are_said_once() -> None:
    value = [
        {"service": f"s{i % 5}", "labels": {"app": f"s{i % 5}"}, "tier": "web", "zone": "", "rack": "", "n": i * i}
        for i in range(2000)
    ]
    text = data_of(hyve.view(json.dumps(value), "?", 1200))
    assert "- the same: labels_app = service" in text
    assert '- constant: tier = web, zone = rack = ""' in text
    assert rows_of(text, "records")[0] == ["rowid", "service", "n"]


def test_series_are_named_and_cut_rows_counted_for_each() -> None:
    """H20, H33: three series of 768 points; the marker counts the rows of each that are not shown."""
    names = ("latency", "orders", "pool")
    draw = random.Random(5)
    value = [{"name": name, "points": [{"t": 60 * i, "v": draw.random()} for i in range(768)]} for name in names]
    text = data_of(hyve.view(json.dumps({"series": value}), "?", 2000))
    assert "- series_idx BIGINT: 3 values, 768 rows each: 0 = latency, 1 = orders, 2 = pool" in text
    head, shown = rows_of(text, "points")
    numbers = [int(row[head.index("series_idx")]) for row in shown]
    left = [768 - numbers.count(i) for i in range(3)]
    assert min(map(numbers.count, range(3))) > 5
    assert f"... ({sum(left):,} more rows; series_idx 0: {left[0]}, 1: {left[1]}, 2: {left[2]})" in text


def test_what_a_heads_cells_have_in_common_is_said_once_and_reads_back() -> None:
    """Paths, and times of several days, are written without what all of them share."""
    draw = random.Random(2)
    value = [
        {
            "at": f"2026-04-{1 + i // 500:02d}T{i // 60 % 24:02d}:{i % 60:02d}:00Z",
            "file": f"/var/log/containers/{draw.choice('abc')}/{draw.randrange(10**6)}.log",
            "pod": f"a-very-long-prefix-of-pods-{i % 40}",
        }
        for i in range(2000)
    ]
    text = data_of(hyve.view(json.dumps(value), "?", 2000))
    assert "; * or <...> in a head: the cell goes there, a time without - and :" in text.split("\n")[0]
    head, shown = rows_of(text, "records")
    assert head == ["rowid", "at_ts:2026-04-<dd hhmm>:00", "file:/var/log/containers/*", "pod"]
    assert len(shown) > 20
    for row, at, file, pod in shown:
        source = value[int(row)]
        assert f"/var/log/containers/{file}" == source["file"]
        assert pod == source["pod"]  # names stay whole, so that they are found
        assert f"2026-04-{at[:2]}T{at[3:5]}:{at[5:]}:00Z" == source["at"]


def test_lines_of_text_are_shown_once() -> None:
    """A row of a table of lines does not repeat the fields that stand in its text."""
    draw = random.Random(1)
    lines = [
        f"2026-04-07T10:{i // 60:02d}:{i % 60:02d}Z INFO user={draw.randrange(10**6)} took={draw.randrange(99)}ms"
        for i in range(900)
    ]
    lines[444] = "2026-04-07T10:07:24Z ERROR disk /dev/sda1 is full"
    text = data_of(hyve.view("\n".join(lines), "?", 1500))
    head, shown = rows_of(text, "lines")
    assert [name.split(":")[0] for name in head] == ["rowid", "text"]
    prefix = head[1].removeprefix("text:").removesuffix("*") if ":" in head[1] else ""
    assert all(prefix + row[1] == lines[int(row[0])] for row in shown)
    assert "444" in [row[0] for row in shown]


def test_names_in_tables_that_relations_were_made_from_are_named() -> None:
    """Every entity of a small dimension is named with its rows, though its table is told in brief."""
    spaces = [f"openshift-{name}" for name in ("dns", "ingress", "insights", "sdn", "multus", "config")]
    items = [
        {
            "kind": "ClusterOperator",
            "apiVersion": "config.openshift.io/v1",
            "metadata": {"name": f"operator-{i}", "creationTimestamp": "2020-04-17T12:06:15Z", "uid": f"{i:032x}"},
            "status": {
                "conditions": [{"type": "Available", "status": "True", "reason": f"r{i}", "message": "m " * 40}],
                "relatedObjects": [{"resource": "pods", "name": f"o{i}", "namespace": spaces[i % 6]}] * 2,
            },
        }
        for i in range(120)
    ]
    text = data_of(hyve.view(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), "?", 3000))
    assert "## relatedObjects: 240 rows" in text
    assert all(f"{name}" in text for name in spaces)
    assert re.search(r"^- namespace VARCHAR: 6 values, 40 rows each: ", text, re.MULTILINE)


def test_log_lines_in_envelopes_are_told_once() -> None:
    draw = random.Random(1)
    lines = []
    for i in range(900):
        at = f"2026-03-01T00:{i // 60:02d}:{i % 60:02d}Z"
        record = {
            "time": at,
            "level": draw.choice(["info", "error"]),
            "msg": f"GET /{i} done",
            "ms": draw.randrange(90),
        }
        lines.append(json.dumps({"log": json.dumps(record) + "\n", "stream": "stdout", "time": at}))
    text = data_of(hyve.view("\n".join(lines), "?", 1500))
    assert len(re.findall(r"^450\|", text, re.MULTILINE)) <= 1
    assert "## container_logs: 900 rows, the lines of log_records" in text
    assert re.search(r"^- attributes_ms BIGINT: 90 distinct, 0\.\.89, mean \d", text, re.MULTILINE)  # no count from 0


def test_rows_that_are_the_same_are_shown_once_before_all_others_are() -> None:
    value = [{"alert": f"a{i % 40}", "state": "firing", "n": i % 40} for i in range(2000)]
    value[700] = value[701] = value[702] = {"alert": "disk", "state": "odd", "n": 7}
    text = data_of(hyve.view(json.dumps(value), "?", 1500))
    shown = [row[1:] for row in rows_of(text, "records")[1]]
    assert ["disk", "odd", "7"] in shown
    assert len({*map(tuple, shown)}) == min(len(shown), 41)


@given(
    st.lists(
        st.lists(st.dictionaries(st.sampled_from(["a", "id", "name"]), json_values, min_size=1, max_size=3), max_size=8)
        | st.dictionaries(st.text(max_size=4), json_values, max_size=4),
        min_size=2,
        max_size=4,
    )
)
@example([[], {"Pass": "0"}])
@settings(max_examples=30, deadline=None)
def test_several_documents_cost_no_more_than_the_cheaper_of_json_and_toon_each(documents: list[Any]) -> None:
    """Invariant 4 for a request of several documents: of each the cheaper of compact JSON and TOON."""
    payloads = tuple(hyve.Payload(f"d{i}", json.dumps(value, indent=1)) for i, value in enumerate(documents))
    store, prompt = hyve.prepare(hyve.Request("?", payloads, 200_000, redact=()))  # a mask may be longer than its text
    store.close()
    assert not prompt.cut
    cheapest = []
    for i, value in enumerate(documents):
        forms = [json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
        toon = toon_format.encode(value)
        # {} is an empty text, which shows nothing.
        if toon and json.dumps(toon_format.decode(toon)) == json.dumps(value):
            forms.append(toon)
        cheapest.append(f"d{i}:\n{min(forms, key=hyve.count_tokens)}")
    assert hyve.count_tokens(data_of(prompt)) <= hyve.count_tokens("\n\n".join(cheapest))


@given(st.integers(0, 10_000), st.integers(1_300, 2_000))
@settings(max_examples=12, deadline=None)
def test_twice_the_budget_shows_all_that_half_of_it_shows(seed: int, budget: int) -> None:
    """With more budget the view only gains."""
    draw = random.Random(seed)
    value = [
        {
            "service": draw.choice(["cart", "auth", "mail"]),
            "ms": round(draw.gauss(20, 2), 1),
            "text": "x" * draw.choice([5, 5, 5, 80]),
            "code": draw.choices([200, 500, 503], [90, 9, 1])[0],
        }
        for _ in range(draw.choice([400, 3000]))
    ]

    def shown(tokens: int) -> tuple[set[str], set[str]]:
        text = data_of(hyve.view(json.dumps(value), "why does mail fail?", tokens))
        columns = set(re.findall(r"^- (\w+) (?:VARCHAR|BIGINT|DOUBLE)", text, re.MULTILINE))
        return columns, {row[0] for row in rows_of(text, "records")[1]}

    small, large = shown(budget), shown(2 * budget)
    assert small[0] <= large[0]
    assert small[1] < large[1]


BAD = {
    "columns": json.dumps([{f"c{i}": i for i in range(3_000)}] * 3),
    "tables": json.dumps({f"t{i}": [{f"a{i}": j, "b": f"x{i}"} for j in range(3)] for i in range(500)}),
    "one value": json.dumps([{"v": 1}] * 100_000),
    "all null": json.dumps([{"a": None, "b": None, f"c{i % 2}": None} for i in range(4_000)]),
    "wide": json.dumps([{f"c{i}": i * j for i in range(700)} for j in range(20)]),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("budget", [600, 4_000])
def test_bad_inputs_stay_within_the_budget(name: str, budget: int) -> None:
    prompt = hyve.view(BAD[name], "what is wrong?", budget)
    assert prompt.savings.prompt <= budget
    assert prompt.cut
    assert re.search(r"^(## |Other tables)", data_of(prompt), re.MULTILINE)


def test_a_cell_larger_than_the_budget_is_cut_marked_and_queryable() -> None:
    blob = "".join(random.Random(3).choices("abcdef 123", k=60_000))
    value = [{"id": 1, "blob": blob}]
    prompt = hyve.view(json.dumps(value), "?", 2000)
    found = re.search(r"^- blob VARCHAR = (.*)…\(\+(\d+) chars\)$", data_of(prompt), re.MULTILINE)
    assert found is not None
    assert blob.startswith(found[1])
    assert len(found[1]) + int(found[2]) == 60_000
    assert 1900 < prompt.savings.prompt <= 2000  # as much of it as fits
    with hyve.Datastore.from_text(json.dumps(value)) as store:
        assert store.query("SELECT length(blob) FROM records").rows == ((60_000,),)


def odd_one(rows: int = 3000) -> list[dict[str, Any]]:
    draw = random.Random(7)
    value = [
        {"id": i, "service": draw.choice(["cart", "auth"]), "ms": round(draw.gauss(20, 2), 2)} for i in range(rows)
    ]
    value[1777]["service"] = "ledger"
    return value


def test_without_rank_rows_come_as_they_are() -> None:
    """H34: the needle that rank shows is not among head, tail and evenly spread rows."""
    text = json.dumps(odd_one())
    ranked, plain = (data_of(hyve.view(text, "?", 1500, ablation=a)) for a in ((), ("no-rank",)))
    assert re.search(r"^1777\|.*ledger", ranked, re.MULTILINE)
    assert not re.search(r"^1777\|", plain, re.MULTILINE)
    head, shown = rows_of(plain, "records")
    assert head == ["rowid", "id", "service", "ms"]
    assert {"0", "2999", "1500"} <= {row[0] for row in shown}


def test_without_truncation_all_is_shown_whatever_the_budget() -> None:
    """H34."""
    value = odd_one()
    prompt = hyve.view(json.dumps(value), "?", 1000, ablation=("no-truncation",))
    assert not prompt.cut
    assert prompt.savings.prompt > 1000
    assert notation.encode([value]) in prompt.text


def test_toon_instead_of_the_notation() -> None:
    """H34: data that fits is TOON, and so are the rows of what does not."""
    value = odd_one(20 + 1758)[1770:]
    whole = hyve.view(json.dumps(value), "?", 4000, ablation=("toon",))
    assert toon_format.decode(data_of(whole)) == value
    text = data_of(hyve.view(json.dumps(odd_one()), "?", 1500, ablation=("toon",)))
    found = re.search(r"^\[(\d+)\]\{rowid,.*\}:\n(?:  .*\n)+", text, re.MULTILINE)
    assert found is not None
    rows = toon_format.decode(found[0])
    assert len(rows) == int(found[1]) > 20
    source = odd_one()
    assert all({**source[row["rowid"]], "rowid": row["rowid"]} == row for row in rows)
    assert f"... ({3000 - len(rows):,} more rows)" in text
    value = [
        {"at": f"2026-03-{1 + i % 28:02d}T10:00:00Z", "n": i % 7, "path": f"/var/log/app/{i}"} for i in range(2000)
    ]
    text = data_of(hyve.view(json.dumps(value), "?", 1500, ablation=("toon",)))
    assert re.search(
        r"^\[\d+\]\{rowid,at_ts,n,path\}:\n  0,\"2026-03-01 10:00:00\",0,/var/log/app/0$", text, re.MULTILINE
    )


def test_without_postprocessing_nothing_is_offered_and_a_plain_answer_asked_for() -> None:
    """H34."""
    prompt = hyve.view(json.dumps(odd_one()), "?", 1500, ablation=("no-postprocessing",))
    assert prompt.tools == ()
    assert prompt.cut
    for word in ("SELECT", "query_datastore", "fill_template", "evidence"):
        assert word not in prompt.text
    assert prompt.savings.prompt <= 1500


def test_an_unknown_ablation_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(hyve.InputError, match="'rank': take some of no-rank, no-truncation, toon, no-postprocessing"):
        hyve.view("[1]", "?", ablation=("rank",))


def test_views_with_times_say_once_that_they_are_utc() -> None:
    """H14: times are shown in UTC whatever zone they were written with; data without times says nothing of it."""
    records = [{"t": f"2026-03-01T10:{i % 60:02d}:00+02:00", "n": i, "s": "x" * (i % 40)} for i in range(300)]
    for kept in (300, 5):
        text = hyve.view(json.dumps(records[:kept]), budget=1500).text
        assert text.count("times are UTC") == 1
        assert "UTC" not in hyve.view(json.dumps([{**one, "t": one["n"]} for one in records[:kept]]), budget=1500).text
    assert "2026-03-01 08:00:00" in hyve.view(json.dumps(records), budget=1500).text
