"""Delimited tables that are cut, flawed or followed by others: what is whole is a table, the rest is said (H7, H8)."""

from __future__ import annotations

import csv
import io
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import csvrows, delimited
from hyve.delimited import read
from hyve.document import parse
from hyve.tables import find
from tests.unit.timed import seconds

HEADER = "ts,service,latency_ms,msg\n"


def line(i: int) -> str:
    return f'2024-01-01T00:{i // 60 % 60:02}:{i % 60:02}Z,{"ab"[i % 2]},{i},"hello, {i}"\n'


def row(i: int) -> dict[str, Any]:
    cells = f"2024-01-01T00:{i // 60 % 60:02}:{i % 60:02}Z", "ab"[i % 2], str(i), f"hello, {i}"
    return dict(zip(("ts", "service", "latency_ms", "msg"), cells, strict=True))


SIZES = pytest.mark.parametrize("count", [50, 20_000])


@SIZES
@pytest.mark.parametrize(
    ("gone", "cells", "tail"),
    [
        (1, 4, ""),  # the newline
        (2, 3, "hello, {last}"),
        (3, 3, "hello, {cut}"),
        (10, 3, ""),  # behind the quote
        (12, 2, "{last}"),
        (13, 2, "{cut}"),
    ],
)
def test_a_cut_table_keeps_whole_rows_and_whole_cells(count: int, gone: int, cells: int, tail: str) -> None:
    """Issue: a cut document keeps what is whole; a half-read string is never shown as a whole one."""
    last = count - 1
    gone += len(str(last)) if gone >= 10 else 0
    gone -= 1 if gone >= 10 else 0
    document = parse((HEADER + "".join(map(line, range(count))))[:-gone])
    (part,) = document.parts
    expected = [row(i) for i in range(count)]
    expected[-1] = dict(list(expected[-1].items())[:cells])
    assert part.value == expected
    assert part.partial_tail == tail.format(last=last, cut=str(last)[:-1])
    assert part.flags == ("truncated",) * (cells < 4) + ("partial_tail",) * bool(tail)
    with hyve.Datastore.from_document(document) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("records", count)]
        assert store.reconstruct(0) == expected


@SIZES
@pytest.mark.parametrize(
    ("written", "cells", "flag"),
    [
        ('t,a,1,"open quote\n', ["t", "a", "1", "open quote"], "repaired"),
        ('t,a,"open,quote\n', ["t", "a", '"open', "quote"], "repaired"),
        ('"t,a,1,quote\n', ['"t', "a", "1", "quote"], "repaired"),
        ('t,a,1,"x"y\n', ["t", "a", "1", "xy"], "repaired"),
        ('t,a,1,"say "hi" there"\n', ["t", "a", "1", 'say "hi" there'], "repaired"),
        ('t,a,"a ""b"", c"x,d\n', ["t", "a", 'a "b", cx', "d"], "repaired"),
        ('t,a,1,"say "hi, you""\n', ["t", "a", "1", 'say "hi, you"'], "repaired"),
        ('t,a,1,say "hi" there\n', ["t", "a", "1", 'say "hi" there'], ""),
    ],
)
def test_a_flawed_quote_costs_no_row_but_its_own(count: int, written: str, cells: list[str], flag: str) -> None:
    """Issue: nothing is repaired in silence."""
    lines = list(map(line, range(count)))
    expected = [row(i) for i in range(count)]
    for at in (count // 2, count // 2 + 1, count - 3):
        lines[at] = written
        expected[at] = dict(zip(expected[at], cells, strict=True))
    (part,) = parse(HEADER + "".join(lines)).parts
    assert part.value == expected
    assert part.flags == ((flag,) if flag else ())


@SIZES
def test_quotes_that_are_never_closed_where_no_other_row_has_any(count: int) -> None:
    lines = [f"{i},a,b\n" for i in range(count)]
    lines[3] = lines[count // 2] = '7,a,"open\n'
    (part,) = parse("id,x,y\n" + "".join(lines)).parts
    assert [row["y"] for row in part.value] == ["open" if i in (3, count // 2) else "b" for i in range(count)]
    assert part.flags == ("repaired",)


@SIZES
def test_a_table_that_ends_in_a_cell_of_several_lines(count: int) -> None:
    text = HEADER + "".join(map(line, range(count)))
    (part,) = parse(text + 't,a,1,"Traceback:\n  File ""a').parts
    assert (len(part.value), part.value[-1]) == (count + 1, {"ts": "t", "service": "a", "latency_ms": "1"})
    assert (part.partial_tail, part.flags) == ('Traceback:\n  File ""a', ("truncated", "partial_tail"))


def test_what_stands_behind_a_blank_line_is_of_no_cell_that_is_not_closed() -> None:
    document = parse(HEADER + "".join(map(line, range(50))) + 't,a,1,"cut here\n\nWhat is this, then?\nAnd why?\n')
    (part,) = document.parts
    assert (len(part.value), part.partial_tail) == (51, "cut here")
    assert [text for _, text in document.lines] == ["What is this, then?", "And why?"]


@SIZES
@pytest.mark.parametrize("end", [",\n", ",\r\n"])
def test_rows_that_end_in_a_delimiter_that_the_header_lacks(count: int, end: str) -> None:
    text = HEADER + "".join(line(i).rstrip("\n") + end for i in range(count))
    (part,) = parse(text).parts
    assert part.value == [row(i) | {"column_4": ""} for i in range(count)]
    assert part.flags == ()


@SIZES
@pytest.mark.parametrize(
    ("second", "values"),
    [
        ("id,name\n1,a\n2,b\n3,c\n", [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}, {"id": "3", "name": "c"}]),
        ("day,host,cpu,note\n" + "1,h,2,x\n" * 9, [{"day": "1", "host": "h", "cpu": "2", "note": "x"}] * 9),
        ("a\tb\tc\n" + "1\t2\t3\n" * 9, [{"a": "1", "b": "2", "c": "3"}] * 9),
    ],
)
def test_a_table_behind_another_is_one_of_its_own(count: int, second: str, values: list[dict[str, str]]) -> None:
    text = HEADER + "".join(map(line, range(count))) + "\n" + second
    first, other = parse(text).parts
    assert (first.value, other.value) == ([row(i) for i in range(count)], values)
    assert first.flags == other.flags == ()
    assert text[slice(*other.span)] == second.rstrip()
    before = "Two tables:\n\n"
    assert [part.value for part in parse(before + text).parts] == [first.value, other.value]


@SIZES
def test_blank_lines_and_titles_between_the_rows_of_a_table(count: int) -> None:
    rows = list(map(line, range(count)))
    rows[10:10] = ["\n"]
    rows[20:20] = ["\n", "Group B\n", "-------\n", "\n"]
    (part,) = parse(HEADER + "".join(rows)).parts
    assert (len(part.value), part.value[19], part.flags) == (count + 2, {"ts": "Group B"}, ("ragged_rows",))
    text = HEADER + "".join(rows) + "\nThat is all, folks.\n"
    for before in ("", "Here is the export:\n\n"):
        document = parse(before + text)
        assert [len(part.value) for part in document.parts] == [count + 2]
        assert [text for _, text in document.lines][-1] == "That is all, folks."


def test_cells_with_blank_lines_in_a_table_between_paragraphs() -> None:
    text = 'It was:\n\nid,name,note\n1,a,"x\n\ny"\n2,b,z\n3,c,"\n\n\n"\n4,d,e\n\nAnd so on.\n'
    (table,) = find(text)
    assert [row["note"] for row in table.rows] == ["x\n\ny", "z", "\n\n\n", "e"]


@pytest.mark.parametrize(("odd", "is_table"), [(4, True), (5, False)])
def test_one_in_five_rows_may_be_ragged_below_names(odd: int, is_table: bool) -> None:
    table = read("id,name,v\n" + "1,a,2\n" * (20 - odd) + "3,x\n" * (odd - 1) + "3,x,4,5\n")
    assert (table is not None) == is_table
    if table is not None:
        assert (len(table.rows), table.flags) == (20, ("ragged_rows",))
    # Two cells are a comma in a sentence.
    assert read("id,name\n" + "1,a\n" * (20 - odd) + "3,x,4\n" * odd) is None


cells = st.text(alphabet='ab 01"\n|é', max_size=6)
named = st.tuples(st.text(alphabet='ab 01"\n|é', max_size=3), st.sampled_from('ab01"|é'), cells).map("".join)
"""Cells that are not blank."""


@given(st.lists(st.tuples(named, cells, cells).map(list), min_size=4, max_size=8), st.data())
@settings(deadline=None)
def test_a_table_cut_anywhere_is_the_start_of_the_whole_one(records: list[list[str]], data: st.DataObject) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["name", "value_of", "note"], *records])
    text = written.getvalue()
    cut = text[: data.draw(st.integers(0, len(text)))]
    tables = []
    for lines in (1, 7, 1 << 16):
        with mock.patch.object(csvrows, "LINES", lines), mock.patch.object(delimited, "LINES", lines):
            tables.append(read(cut))
    assert tables[0] == tables[1] == tables[2]
    table = tables[0]
    if table is not None:
        found = [list(row.values()) for row in table.rows]
        last = len(found) - 1
        assert found[:last] == records[:last]
        if "truncated" in table.flags:
            assert found[last] == records[last][: len(found[last])]
            assert cut.rstrip("\n").endswith(table.tail)
        assert bool(table.tail) == ("partial_tail" in table.flags)


@given(st.lists(st.text(alphabet='a1,"\n', max_size=12), max_size=12))
@settings(max_examples=300, deadline=None)
def test_flawed_quotes_never_cost_the_rows_around(flawed: list[str]) -> None:
    """Rows that hold no quote stay rows, but for those that a closed cell of several lines takes in."""
    good = [f"{i},x,y" for i in range(400)]
    lines = [*good[:200], *(line for text in flawed for line in text.split("\n") if line), *good[200:]]
    table = read("\n".join(["id,name,note", *lines]) + "\n")
    assert table is not None
    ids = {row.get("id") for row in table.rows}
    assert ids >= {str(i) for i in range(400)}


@pytest.mark.parametrize(
    "unit",
    [
        '1,2,"\n',
        '1,2,"x\n',
        '1,2,"x"y\n',
        '"a,"b,c\n',
        '1,2,"x\n' + "1,2,3\n" * 40,
        '1,2,"x\n' + '1,"",""\n' * 400,
        'a,b,c\n1,2,3\n1,2,3\n1,2,"x\n\n',
        'a,b,c\n1,2,3\n1,2,3\n1,2,"\n\n',
        "a,b,c\n1,2,3\n4,5,6\n7,8,9\n\nx\n\n",
        "a,b,c\n1,2,3\n4,5,6\n7,8\n\n1,2\n\n",
        '1,2,"""\n',
        '"\r',
    ],
)
def test_flawed_tables_take_linear_time(unit: str) -> None:
    def took(size: int) -> float:
        texts = [before + unit * (size // len(unit)) for before in ("a,b,c\n", "a,b,c\n" + "1,2,3\n" * 40)]
        return seconds(lambda: [(find(text), read(text)) for text in texts])

    assert min(took(100_000) for _ in range(3)) < 0.3 + 12 * took(20_000)
