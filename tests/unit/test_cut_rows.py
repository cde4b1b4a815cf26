"""Documents with a list of one record a line that end early: as the same document on one line (H7, H8)."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

import hyve
from hyve import heads
from hyve.document import parse
from tests.unit.documents import values

RECORDS = [{"id": i, "a": f"x{i}", "n": {"k": [1, {"z": i}]}} for i in range(4)]
ROWS = [json.dumps(record) for record in RECORDS]
PRETTY = [json.dumps(record, indent=1) for record in RECORDS]
TAIL = '"tail":{"b":[1,{"q":"end"}]},"last":"fin"}'
FORMS = {
    "first on a line of its own": '{"meta":{"v":1},"data":[\n' + ",\n".join(ROWS) + "\n]," + TAIL,
    "first behind the bracket": '{"meta":{"v":1},"data":[' + ",\n".join(ROWS) + "]," + TAIL,
    "all on lines": '{\n"meta":{"v":1},\n"data":[\n' + ",\n".join(ROWS) + '\n],\n"last":"fin"\n}',
    "pretty records": '{"meta":{"v":1},"data":[\n' + ",\n".join(PRETTY) + '\n],"last":"fin"}',
    "CRLF": '{"meta":{"v":1},"data":[\r\n' + ",\r\n".join(ROWS) + '\r\n],"last":"fin"}',
    "leading commas": '{"data":[\n' + "\n,".join(ROWS) + '\n],"last":"fin"}',
    "two lists": '{"a":[\n' + ",\n".join(ROWS[:2]) + '\n],"b":[\n' + ",\n".join(ROWS[2:]) + '\n],"last":"fin"}',
    "in a list": '{"a":{"b":[{"c":[\n' + ",\n".join(ROWS) + '\n]}]},"last":"fin"}',
    "one first key": '{"id":9,"data":[' + ",\n".join(ROWS) + '],"last":"fin"}',
}


@pytest.mark.parametrize(("before", "behind"), [("", ""), ("", "\n\nWhat is wrong?"), ("```json\n", "\n```\nwhat?")])
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_cut_are_read_as_on_one_line(form: str, before: str, behind: str) -> None:
    text = FORMS[form]
    for end in range(20, len(text), 3):
        cut = text[:end].rstrip()
        found, wanted = (parse(before + source + behind) for source in (cut, cut.replace("\n", "").replace("\r", "")))
        assert [(part.value, part.flags) for part in found.parts] == [(part.value, part.flags) for part in wanted.parts]
        assert found.flags == wanted.flags
        assert "truncated" in found.flags
    assert len(wanted.parts) == 1


@pytest.mark.parametrize("form", ["first on a line of its own", "first behind the bracket", "all on lines"])
@pytest.mark.parametrize(
    "behind", ["\n2026-01-01T00:00:00Z INFO up\n", '\n{"meta":{"v":2},"data":[],"x":2}\n', '\n{"kind":"X","n":[{}]}\n']
)
def test_rows_that_the_next_record_or_log_line_cuts(form: str, behind: str) -> None:
    text = FORMS[form]
    for end in range(text.index(ROWS[1]) + 1, text.index(ROWS[3]) + len(ROWS[3])):
        if text[:end].rstrip()[-1] in ",[:":
            continue  # what follows may be the next value
        first, *others = values(text[:end] + behind)
        assert isinstance(first, dict)
        assert first["meta"] == {"v": 1}
        whole = [record for record, row in zip(RECORDS, ROWS, strict=True) if text.index(row) + len(row) <= end]
        assert first["data"][: len(whole)] == whole
        assert others == ([json.loads(behind)] if "{" in behind else [])


@pytest.mark.parametrize("lost", ["}", "]}", "\n]}"])
def test_relations_of_rows_that_lack_their_last_bracket(lost: str) -> None:
    """Requirements H21, H22: the wrapper tells what the records are."""
    pods = [
        {"metadata": {"name": f"p{i}"}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}}
        for i in range(5)
    ]
    text = '{"kind":"PodList","apiVersion":"v1","items":[' + ",\n".join(map(json.dumps, pods)) + "\n]}"
    document = parse(text.removesuffix(lost))
    assert document.flags == ("truncated",)
    with hyve.Datastore.from_document(document) as store:
        assert store.query("SELECT name FROM pods").rows == tuple((f"p{i}",) for i in range(5))


@pytest.mark.parametrize(
    "cut", ['{"ts":1,"tags":["a","b"', '{"ts":1,"tags":[', '{"ts":1,"tags":[{"k":1', '{"ts":1,"tags":{"k":1},']
)
def test_a_record_that_was_cut_takes_none_of_the_next_lines(cut: str) -> None:
    records = [{"ts": i, "tags": [{"k": i}]} for i in range(2, 5)]
    found = values("\n".join([cut, *map(json.dumps, records)]) + "\n")
    assert [value for value in (found[0] if isinstance(found[0], list) else found) if value in records] == records


def test_a_whole_list_in_a_document_that_is_no_json_behind_it() -> None:
    text = json.dumps({"kind": "List", "items": RECORDS, "last": "fin"})[:-1]
    assert values(f"{text}\n2026-01-01T00:00:00Z INFO up\n") == [RECORDS]


@pytest.mark.parametrize(
    "unit", ['{"k":[{"c":2},\n', ' {"k":[{"c":2},\n', '{"k":[\n{"c":2},\n{"k":x},\n', '{"k":[{"c":2},\n{"d":2},\n']
)
def test_lists_that_are_begun_on_every_line_take_linear_work(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = {name: Mock(wraps=getattr(heads, name)) for name in ("begins_rows", "next_alone", "next_record")}
    for name, look in looks.items():
        monkeypatch.setattr(heads, name, look)
    counts = []
    for lines in (2_000, 4_000):
        parse(unit * lines + "\n{")
        counts.append(sum(look.call_count for look in looks.values()) - sum(counts))
    assert counts[1] <= 2.1 * counts[0] + 8
