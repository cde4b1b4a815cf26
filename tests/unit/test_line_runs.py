"""Very many lines of free text are read in runs, and come out as if they had been read at once (H38; invariant 1)."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyve
from hyve import lines, strictjson
from hyve.gather import gather
from tests.unit.documents import fetched
from tests.unit.in_runs import described, gathered, in_runs, stored

LOGFMT = 'ts=2026-01-31T12:00:{0:02d}Z level=info msg="handled \\"{0}\\"" dur={0}ms status=20{0}'
ACCESS = '10.0.0.{0} - - [31/Jan/2026:12:00:{0:02d} +0000] "GET /a/{0} HTTP/1.1" 200 {0} "-" "Mozilla/5.0"'
KLOG = "I0131 12:00:{0:02d}.000000       1 main.go:12] synced {0}"
CRI = "2026-01-31T12:00:{0:02d}.000000000Z stdout F {0} done"
PIECE = "2026-01-31T12:00:{0:02d}.000000000Z stderr P {0} and "
SERIES = 'http_requests_total{{method="GET",code="20{0}"}} {0}'
UNSURE = "queue_length {0}"
NGINX = '2026/01/31 12:00:{0:02d} [error] 7#7: *{0} upstream timed out, client: 10.0.0.{0}, request: "GET /a HTTP/1.1"'
OTHERS = (
    "# TYPE queue_length gauge",
    "# HELP http_requests_total All {0} of them",
    "Nothing to see here, {0} of them",
    'sent body {{\\"a\\": {0}}} to x',
    'line {0} with {{"id": {0}, "tags": ["x"]}} in it',
    '{{"id": {0},\n "name": "a"}} behind {0}',
    "\x1b[31mERROR\x1b[0m it broke {0}",
    "line=x text=y a{0}=1",
    "",
    " \t",
    "ok",
)


def told(text: str) -> tuple[Any, Any, Any]:
    return hyve.parse(text).parts[-1].value, gathered(text), stored(text)


def check(text: str, size: int = 1) -> None:
    """A text gives the same rows and tables in both ways."""
    with mock.patch.object(strictjson, "LONG", 1 << 60):
        whole = told(text)
    with in_runs(size), mock.patch("hyve.freetext._LINES", size), mock.patch("hyve.freetext._MOST", size):
        assert hyve.parse(text).parts[-1].free_text is not None
        assert repr(told(text)) == repr(whole)


@pytest.mark.parametrize("kind", [LOGFMT, ACCESS, KLOG, CRI, SERIES, UNSURE, NGINX, *OTHERS[2:8]])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_of_one_kind(kind: str, newline: str) -> None:
    check(newline.join(kind.format(i % 60) for i in range(45)), 7)


kinds = st.sampled_from([LOGFMT, ACCESS, KLOG, CRI, PIECE, SERIES, UNSURE, NGINX])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(kinds, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(OTHERS)), max_size=12),
    st.sampled_from([1, 3, 17]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_lines(usual: list[str], others: list[tuple[int, str]], size: int, newline: str) -> None:
    text = [usual[i % len(usual)].format(i % 60) for i in range(40)]
    for place, other in others:
        text.insert(place, other.format(place))
    check(newline.join(text), size)


def test_the_rows_are_the_lines() -> None:
    """H38: number and text of each line that is not blank; a document of several lines takes its own away."""
    text = [LOGFMT.format(i) for i in range(30)]
    text[3], text[7] = "", 'before {"a": [1,\n 2]} behind'
    with in_runs(5):
        rows = hyve.parse("\n".join(text)).parts[-1].value
    assert rows[:3] == [{"line": i + 1, "text": text[i]} for i in range(3)]
    assert rows[3] == {"line": 5, "text": text[4]}
    assert rows[6:8] == [{"line": 8, "text": "before "}, {"line": 9, "text": " behind"}]
    assert rows[-1] == {"line": 31, "text": text[29]}


def test_the_text_is_read_back() -> None:
    """Invariant 1: what the store gives for the part of lines is what was parsed."""
    text = "\n".join(LOGFMT.format(i) if i % 3 else f"free {i} text" for i in range(60))
    with in_runs(), hyve.Datastore.from_text(text) as store:
        assert store.reconstruct(0) == [{"line": n, "text": line} for n, line in enumerate(text.split("\n"), 1)]
        assert fetched(
            store, "SELECT count(*), sum(dur::INT) FROM (SELECT replace(dur, 'ms', '') AS dur FROM lines)"
        ) == [(60, sum(i for i in range(60) if i % 3))]


def test_keys_that_too_many_lines_bring() -> None:
    """The most frequent keys are kept, of all lines together."""
    text = "\n".join(f"id={i} k{i}=1 often=x" for i in range(lines._MAX_KEYS + 40))
    check(text, 16)
    with in_runs(16):
        (_, (table,), _) = gather([hyve.parse(text)])
    (pairs,) = table.data.children.values()  # the keys are data
    assert pairs.keys is not None
    assert len(set(pairs.keys)) == lines._MAX_KEYS - 2
    columns = {path[-1]: column.array for path, column in table.data.columns.items()}
    counts = {key: array and len(array) - array.null_count for key, array in columns.items()}
    assert (counts["id"], counts["often"], counts["pairs_left_out"]) == (table.data.rows, table.data.rows, 42)


def test_lines_of_which_next_to_none_carries_anything() -> None:
    """Such a table has no columns of fields: neither does it where a run of its own would have them."""
    text = "\n".join(ACCESS.format(1) if i == 70 else f"nothing in {i}" for i in range(140))
    check(text, 10)
    with in_runs(10):
        (_, (table,), _) = gather([hyve.parse(text)])
    assert list(table.data.columns) == [("line",), ("text",)]
    assert described(table.data)[0][1] == 140


def test_samples_that_wait_for_others() -> None:
    """ "queue_length 3" counts where one in ten around it surely is a sample, however the runs are cut."""
    sure, unsure = SERIES.format(1), [UNSURE.format(i) for i in range(9)]
    for text in (
        [*unsure, sure, "prose", *unsure],
        [sure, *unsure, *unsure],
        [*unsure, "-", sure, *unsure, "-", *unsure],
    ):
        check("\n".join([*text, *["prose of no kind"] * 22]), 4)
    with in_runs(2), hyve.Datastore.from_text("\n".join([*unsure, sure, *["prose of no kind"] * 22, *unsure])) as store:
        assert fetched(store, "SELECT name, count(*) FROM metric_points GROUP BY 1 ORDER BY 1") == [
            ("http_requests_total", 1),
            ("queue_length", 9),
        ]


@pytest.mark.parametrize("lines_each", [1, 6, 40])
def test_values_that_repeat_over_some_lines(lines_each: int) -> None:
    """Each run has few of them, all runs together more than the codes of one hold."""
    text = "\n".join(
        f"level=info msg=done trace={i // lines_each:032x} ts={1_700_000_000 + i // lines_each} n={i}"
        for i in range(9_000)
    )
    with hyve.Datastore.from_text(text) as store:
        assert len(text) > strictjson.LONG
        (row,) = store.query("SELECT count(*), count(DISTINCT trace), count(DISTINCT ts), max(n_num) FROM lines").rows
    assert row == (9_000, -(-9_000 // lines_each), -(-9_000 // lines_each), 8_999)
