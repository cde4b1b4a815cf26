"""Tables in text: what is one, what its cells are, and what only looks like one."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hyve
from hyve.delimited import read
from hyve.document import parse
from hyve.tables import find
from tests.unit.timed import seconds

ROOT = Path(__file__).parents[2]


def rows(text: str) -> list[dict[str, Any]]:
    table = read(text)
    assert table is not None
    return table.rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2", [{"a": "1", "b": "2"}]),
        ("name,age\nbob,42\n", [{"name": "bob", "age": "42"}]),
        ("id,t\n1,a\n2,b", [{"id": "1", "t": "a"}, {"id": "2", "t": "b"}]),
        ("a\tb\n1\t\n", [{"a": "1", "b": ""}]),
        ("a;b\n1,5;2\n", [{"a": "1,5", "b": "2"}]),
        ("a|b|c\n1|2|3\n", [{"a": "1", "b": "2", "c": "3"}]),
        ("id,name\r1,a\r2,b\r", [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]),
        ("id,name\r\n1, a \r\n\r\n2,b\r\n", [{"id": "1", "name": " a "}, {"id": "2", "name": "b"}]),
        ('a,b,c\n1,2,"x\ny, ""z"""\n3,4,\n', [{"a": "1", "b": "2", "c": 'x\ny, "z"'}, {"a": "3", "b": "4", "c": ""}]),
        ("#id,name\n007,a\n008,b\n", [{"#id": "007", "name": "a"}, {"#id": "008", "name": "b"}]),
        ("name, age\nbob, 42\namy, 37\n", [{"name": "bob", "age": " 42"}, {"name": "amy", "age": " 37"}]),
        (
            ",b\n1,2\n3,4\n5,6\n",
            [{"column_0": "1", "b": "2"}, {"column_0": "3", "b": "4"}, {"column_0": "5", "b": "6"}],
        ),
    ],
)
def test_delimited(text: str, expected: list[dict[str, Any]]) -> None:
    assert rows(text) == expected


def test_comment_lines_before_the_header_are_no_part_of_the_table() -> None:
    text = "# exported by x, 2024\r\n#\r\nid,name\r\n1,a\r\n2,b\r\n"
    table = read(text)
    assert table is not None
    assert table.rows == [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]
    assert text[table.start : table.end] == "id,name\r\n1,a\r\n2,b"


def test_repeated_headers_are_dropped_and_told() -> None:
    table = read("id,t\n1,a\nid,t\n2,b\n")
    assert table is not None
    assert (table.rows, table.flags) == ([{"id": "1", "t": "a"}, {"id": "2", "t": "b"}], ("concatenated",))


def test_ragged_rows() -> None:
    text = "a,b,c\n" + "1,2,3\n" * 100 + "1,2\n1,2,3,4,5\n"
    table = read(text)
    assert table is not None
    assert table.rows[-2:] == [{"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3", "extra_cells": ["4", "5"]}]
    assert table.flags == ("ragged_rows",)
    assert read("a,b,c\n" + "1,2,3\n" * 8 + "1,2\n1,2,3,4,5\n" * 2) is None
    assert read("a,b, c\n" + "1,2,3\n" * 10 + "1,2\n1,2,3,4,5\n") is None


NO_TABLES = [
    "a,b\nc,d",
    "Hello, world\nfoo, bar2",
    "Dear Bob, how are you\nI am fine, thanks\nSee you soon, my friend\nBest, 2 of us",
    "WARN disk full, retry 1\nWARN disk full, retry 2\nWARN disk full, retry 3\nWARN disk full, retry 4",
    "import os, sys\nfrom a import b, c\nfrom d import e, f\nimport re, io",
    "SELECT a, b\nFROM t, u\nWHERE a = 1, 2",
    "INSERT INTO t VALUES (1, 2);\nINSERT INTO t VALUES (3, 4);\n",
    "[section]\nkey = a, b\nother = c, d\n",
    "spec:\n  replicas: 3\n  names: [a, b]\n",
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n  File "b.py", line 2, in g\n',
    "java.lang.Error: a, b\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)\n\tat a.B.e(B.java:3)\n",
    "2024-01-02 03:04:05,678 INFO a\n2024-01-02 03:04:05,679 INFO b\n2024-01-02 03:04:05,680 INFO c\n",
    "INFO   server  started\nWARN   server  stopped\nINFO   server  started again\nINFO   server  started\n",
    "The  Quick  Brown\nfox  jumps  over\n",
    "  +-----------+        +------------------+\n  | TCPServer |------->| UnixStreamServer |\n"
    "  +-----------+        +------------------+\n",
    "+------+\n| Base |\n+------+\n   |\n   v\n",
    "   |  m0   | -----\n   ---------    |\n    | |   |     |\n",
    "Some heading\n------------\ntext, text\n",
    "a | b\nc | d\n",
    "    indented code = 1  # a comment\n    more code = 2  # a comment\n",
    'a,"b\n1,2\n',
]


@pytest.mark.parametrize("text", NO_TABLES)
def test_what_is_no_table(text: str) -> None:
    assert read(text) is None
    assert find(text) == []
    assert find(f"intro\n\n{text}\n\nend") == []


def test_source_code_holds_no_table() -> None:
    paths = sorted((ROOT / "hyve").rglob("*.py"))
    assert len(paths) > 10
    for path in paths:
        text = path.read_text()
        assert read(text) is None, path
        assert find(text) == [], path


def test_tables_between_paragraphs_and_in_fences() -> None:
    text = (
        "Numbers, of today:\n\nsvc,p99,err\ncart,41,0\nauth,12,3\nmail,90,1\n\n"
        "and\n```csv\na,b\n1,2\n```\nand as tabs\n\nx\ty\tz\n1\t2\t3\n4\t5\t6\n7\t8\t9\n\nWhy, then?\n"
    )
    assert [(table.rows[0], len(table.rows), table.syntax) for table in find(text)] == [
        ({"svc": "cart", "p99": "41", "err": "0"}, 3, "csv"),
        ({"a": "1", "b": "2"}, 1, "csv"),
        ({"x": "1", "y": "2", "z": "3"}, 3, "csv"),
    ]
    # Two rows between paragraphs may be anything.
    assert find("Numbers:\n\nsvc,p99,err\ncart,41,0\nauth,12,3\n\nWhy?\n") == []


TWENTY = "id,name,v\n" + "1,a,2\n" * 20


@pytest.mark.parametrize(
    "trailer", ["(20 rows affected)", "20 rows", "\n(20 rows)", "(1,234 row(s) affected)", "20 records."]
)
def test_a_count_of_rows_below_a_table_is_no_row_of_it(trailer: str) -> None:
    text = f"{TWENTY}{trailer}\n"
    table = read(text)
    assert table is not None
    assert (table.rows, table.flags) == ([{"id": "1", "name": "a", "v": "2"}] * 20, ())
    assert text[table.end :].strip() == trailer.strip()


def test_one_odd_row_and_a_short_last_row() -> None:
    table = read("a,b,c\n1,2,3\n4,5,6\n7,8\n")
    assert table is not None
    assert table.rows == [{"a": "1", "b": "2", "c": "3"}, {"a": "4", "b": "5", "c": "6"}, {"a": "7", "b": "8"}]
    assert table.flags == ("ragged_rows",)
    table = read("a,b,c\n1,2,3\n4,5,6,x\n7,8,9\n1,2,3\n4\n")
    assert table is not None
    assert (len(table.rows), table.flags) == (5, ("ragged_rows",))
    assert table.rows[1] == {"a": "4", "b": "5", "c": "6", "extra_cells": ["x"]}
    assert table.rows[4] == {"a": "4"}
    assert read("a,b,c\n1,2\n1,2,3\n1\n1,2,3\n1,2,3\n") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,name,\n1,a\n2,b\n", [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]),
        ("id,name,\n1,a,\n", [{"id": "1", "name": "a", "column_2": ""}]),
        (
            "id,name,\n1,a,\n2,b,x\n",
            [{"id": "1", "name": "a", "column_2": ""}, {"id": "2", "name": "b", "column_2": "x"}],
        ),
    ],
)
def test_a_header_that_ends_in_a_delimiter(text: str, expected: list[dict[str, Any]]) -> None:
    table = read(text)
    assert table is not None
    assert (table.rows, table.flags) == (expected, ())


cells = st.text(alphabet='ab 01,"\n\r\t;|é', max_size=6)


@given(st.lists(st.tuples(cells.filter(bool), cells, cells).map(list), min_size=2, max_size=5))
@settings(deadline=None)
def test_any_cells_come_back(records: list[list[str]]) -> None:
    written = io.StringIO()
    csv.writer(written).writerows([["name", "value_of", "note"], *records])
    assume(len({record[1] for record in records} | {"value_of"}) > 1)
    found = read(written.getvalue())
    assert found is not None
    assert [list(row.values()) for row in found.rows] == records


@given(st.text(alphabet='aB1 ,;|\t\n-+"`#', max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_text_at_all(text: str) -> None:
    end = 0
    for table in [*find(text)]:
        assert end <= table.start < table.end <= len(text)
        assert table.rows
        end = table.end
    read(text)


def test_one_name_many_times_takes_no_long_time() -> None:
    begun = time.process_time()
    table = read("\n".join(",".join([cell] * 30_000) for cell in ("a", "1", "2")))
    assert time.process_time() - begun < 2
    assert table is not None
    assert list(table.rows[0])[:3] + list(table.rows[0])[-1:] == ["a", "a_2", "a_3", "a_30000"]


@pytest.mark.parametrize(
    "unit",
    [
        "AB  CD  EF\n",
        "A{n}  B{n}  C{n}\n",
        "a,b\n",
        "|",
        "-",
        "|-\n",
        "| a |\n",
        "+-\n",
        "AB  CD  EF GH\n1 2 3 4\n",
        '"',
        ",",
        "```\n",
        "A  ",
        "\n\n",
        "a,b\n\n",
        "    | x+\n",
        "1 2\n",
        "1 2 3 4 5 6 7 8 9\n",
        "NAME   READY   AGE\nweb-{n}   1/1   5m\n\n",
        "Filesystem a b Mounted on\n",
        "Filesystem a b Mounted on\n" + "a " * 499 + "\n",
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    def took(size: int) -> float:
        text = "".join(unit.replace("{n}", str(n)) for n in range(size // len(unit)))
        # Below a header, a long one and a short one.
        headers = (" id | v  \n----+----\n  1 | x+\n", "A B C D E F  G H\n", "    " + "A B " * (size // 8) + "\n")
        return seconds(lambda: (read(text), [find(header + text) for header in ("", *headers)]))

    assert min(took(100_000) for _ in range(3)) < 0.3 + 12 * took(20_000)


@pytest.mark.parametrize(
    "names",
    [["名前", "ホスト", "値"], ["id", "名前", "v"], ["a", "é", "b"], ["नाम", "मूल्य", "ß"], ["имя", "хост", "значение"]],
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_header_has_letters_of_any_script(names: list[str], delimiter: str) -> None:
    rows = [[f"x{i}", f"host-{i % 3}", str(i)] for i in range(20)]
    (part,) = parse("\n".join(delimiter.join(row) for row in [names, *rows])).parts
    assert part.syntax == "csv"
    assert part.value == [dict(zip(names, row, strict=True)) for row in rows]


def test_a_table_of_more_columns_than_sql_takes() -> None:
    """Its cells are rows of their own, with the column's name for their key."""
    names = [f"h{i}" for i in range(20_000)]
    text = "\n".join(",".join(row) for row in [names, *([str(i + row) for i in range(20_000)] for row in range(3))])
    with hyve.Datastore.from_text(text) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("records", 3), ("entries", 60_000)]
        found = store.query("SELECT value FROM entries WHERE _key = 'h19999' ORDER BY parent_records").rows
        assert found == (("19999",), ("20000",), ("20001",))


SERIES = [
    '{pod="a"}',
    'cart {pod="a"}',
    "a=b",
    "a{b}",
    "10.0.0.1:9100",
    "a, b",
    'rate(http_requests_total{code="500", job="x"}[5m]) by pod and not by job',
    "5xx",
]


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("around", [("", ""), ("Here it is:\n\n", "\n\nWhy?\n")])
def test_a_header_of_series(name: str, around: tuple[str, str]) -> None:
    """What monitoring exports beside a time has the labels of its series for a header."""
    written = io.StringIO()
    lines = [["Time", name, "checkout"], ["2026-01-30 11:45:00", "1.5", "2"], ["2026-01-30 11:46:00", "", "NaN"]]
    csv.writer(written, lineterminator="\n").writerows([*lines, ["2026-01-30 11:47:00", "-3e-05", "4"]])
    (table,) = [part for part in hyve.parse(written.getvalue().strip().join(around)).parts if part.syntax == "csv"]
    assert table.value[0] == dict(zip(lines[0], lines[1], strict=True))
    assert (len(table.value), table.flags) == (3, ())


@pytest.mark.parametrize("text", ["Time,{pod=a}\nabc,x\ndef,y\n", "a,b=c\nx,1\n", "Hi Bob, a=b\n1, 2\n3, 4x\n"])
def test_what_is_no_header_of_series(text: str) -> None:
    assert [part.syntax for part in hyve.parse(text).parts if part.syntax == "csv"] == []


def test_two_rows_below_lines_of_text() -> None:
    """Reports of a few rows each; a report with the same header is one of its own."""
    report = "Report:\n{0}time,host,{1}\n2026-01-30T11:45:01Z,h1,1\n2026-01-30T11:45:02Z,h2,2.5\n\n"
    for blank in ("", "\n"):
        tables = find("".join(report.format(blank, name) for name in ("cpu1", "cpu2", "cpu2")))
        assert [(list(table.rows[0])[2], len(table.rows), table.flags) for table in tables] == [
            ("cpu1", 2, ()),
            ("cpu2", 2, ()),
            ("cpu2", 2, ()),
        ]
    (queues,) = find("$ queues\nTimeout: 60.0 seconds\nListing queues\nname\tmessages\tused\ncart\t12\t3\nmail\t0\t1\n")
    assert queues.rows[1] == {"name": "mail", "messages": "0", "used": "1"}


def test_tables_with_different_headers_are_different_tables() -> None:
    """A sum over pods has no node in it; what was printed twice is one table."""
    pods = "NAME     CPU(cores)   MEMORY(bytes)\ncart-0   12m          120Mi\ncart-1   3m           45Mi\n\n"
    nodes = "NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nn1     321m         16%    2100Mi          55%\n\n"
    with hyve.Datastore.from_text(pods + nodes + pods) as store:
        assert [(table.name, table.rows) for table in store.catalog.tables] == [("records", 4), ("records_2", 1)]
        assert store.query("SELECT sum(CPU_cores_num) FROM records").rows == ((0.03,),)


@pytest.mark.parametrize(
    "text",
    [
        "#define A_BAD\t0x8000\n#define A_STATE\t0x8001\n#define A_LENGTH\t0x8002\n#define A_VALUE\t0x8003\n",
        "typedef struct {\n    CARD8\treq;\n    BOOL\tpad1;\n    CARD16\tnumber;\n    CARD32\tlength;\n"
        "    CARD32\tlow;\n",
        "    # Option classes\n    ArraySortOptions,\n    CastOptions,\n    CountOptions,\n    CumulativeOptions,\n",
        "    # known paths.\n    sys.path = []\n    paths = set()\n    for path in paths:\n        pass\n",
        "    Ctrl-A      Go to left edge of window.\n    Ctrl-B      Cursor left, to the end.\n"
        "    Ctrl-D      Delete the character below.\n    Ctrl-E      Go to right edge.\n",
    ],
)
def test_lists_in_source_code_are_no_tables(text: str) -> None:
    assert find(text) == []
    assert find(f"text\n\n{text}\ntext\n") == []
