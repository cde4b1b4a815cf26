"""Lists of records with flaws: all whole records stay data, what could not be read stays text and is told (H7, H8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve import flawed as reader
from hyve import recovery, strictjson
from hyve.document import Document, parse
from tests.fuzz.target import lost
from tests.unit.documents import fetched, values
from tests.unit.in_runs import in_runs

STYLES = {"compact": ("[", ", ", "]"), "lines": ("[\n", ",\n", "\n]"), "pretty": ("[\n  ", ",\n  ", "\n]")}


def record(number: int) -> dict[str, Any]:
    return {"id": number, "text": f"word{number}", "tags": ["a", {"id": number}], "v": number / 7}


def spelled(style: str, number: int) -> str:
    text = json.dumps(record(number), indent=2 if style == "pretty" else None)
    return text.replace("\n", "\n  ")


def flawed(flaw: str, style: str, count: int, place: int) -> tuple[str, list[dict[str, Any]], str]:
    """(a list of so many records with a flaw in or behind one of them, its whole records, what stays text)."""
    before, comma, after = STYLES[style]
    texts = [spelled(style, number) for number in range(count)]
    records = [record(number) for number in range(count)]
    broken = {
        "brace": lambda text: text[:-1].rstrip(),
        "two values": lambda text: text.replace('"text": ', '"text": 5 : '),
        "colon": lambda text: text.replace('"id": ', '"id" '),
    }
    if flaw in broken:
        texts[place] = broken[flaw](texts[place])
        del records[place]
        return before + comma.join(texts) + after, records, texts[place]
    unread, between = {
        "two commas": (",", "," + comma),
        "no comma": ("", comma[1:]),
        "token": ("@@", f", @@{comma}"),
        "log line": (
            line := "2026-01-31 12:00:00 WARN {late}",
            f"{comma.rstrip()}\n{line}\n{comma[1:].strip(chr(10))}",
        ),
    }[flaw]
    text = comma.join(texts[: place + 1]) + between + comma.join(texts[place + 1 :])
    return before + text + after, records, unread


def kept_as_text(document: Document) -> str:
    rows = [row["text"] for part in document.parts if part.syntax == "lines" for row in part.value]
    return "\n".join(rows or [line for _, line in document.lines])


FLAWS = ["brace", "two values", "colon", "two commas", "no comma", "token", "log line"]


@pytest.mark.parametrize(
    ("flaw", "style"),  # a list on one line ends with its line
    [(flaw, style) for flaw in FLAWS for style in STYLES if (flaw, style) != ("log line", "compact")],
)
@pytest.mark.parametrize(("count", "place"), [(6, 0), (6, 3), (6, 4), (3_000, 1_500), (12_000, 7_000)])
def test_one_flaw_leaves_all_whole_records(flaw: str, style: str, count: int, place: int) -> None:
    """H7: however long the list is (one of 12,000 is read in runs), and wherever the flaw stands."""
    text, records, unread = flawed(flaw, style, count, place)
    document = parse(text)
    (part,) = (part for part in document.parts if part.syntax == "json")
    assert part.value == records
    assert part.span == (0, len(text))
    assert [text[start:end] for start, end, _ in part.unread] == ([unread] if unread else [])
    assert part.flags == (("unparsed",) if unread else ("repaired",))
    assert "".join(kept_as_text(document).split()) == "".join(unread.split())
    assert not lost(document)
    if count == 6:
        with hyve.Datastore.from_document(document) as store:
            table = store.catalog.table("records")
            assert table is not None
            assert table.rows == len(records)
            assert store.reconstruct(0) == records


def test_the_last_record_of_a_list_may_be_flawed() -> None:
    for style in STYLES:
        for flaw in ("brace", "two values", "colon"):
            text, records, unread = flawed(flaw, style, 6, 5)
            (part,) = parse(text).parts
            assert part.value == records
            assert [text[start:end] for start, end, _ in part.unread] == [unread]


def test_what_stays_text_says_why_and_on_which_line() -> None:
    text, _, _ = flawed("log line", "pretty", 6, 2)
    document = parse(text)
    (unread,) = document.parts[0].unread
    assert unread.reason == "text between two records"
    assert document.lines == ((text[: unread.start].count("\n") + 1, "2026-01-31 12:00:00 WARN {late}"),)


@pytest.mark.parametrize("damage", ["{,", '"name" ', "@@ "])
def test_a_flaw_in_an_inner_list_takes_no_more_than_one_of_its_records(damage: str) -> None:
    pods = [
        {"name": f"pod-{i}", "labels": {"app": "x"}, "containers": [{"name": f"c{j}", "port": i * j} for j in range(3)]}
        for i in range(5)
    ]
    whole = {"kind": "List", "items": pods, "meta": {"total": 5}}
    text = json.dumps(whole)
    at = text.index('{"name": "c1", "port": 2}')
    text = text[:at] + f'{{{damage}"name": "c1", "port": 2}}' + text[at + len('{"name": "c1", "port": 2}') :]
    (part,) = parse(text).parts
    del pods[2]["containers"][1]  # type: ignore[attr-defined]
    assert part.value == whole
    assert part.flags == ("unparsed",)
    assert [text[start:end] for start, end, _ in part.unread] == [f'{{{damage}"name": "c1", "port": 2}}']


def test_no_record_gets_what_is_another_ones() -> None:
    """H8: the last of an inner list has none behind it; the next that looks like it is the next record's."""
    records = [{"name": f"r{i}", "kids": [{"kid": i}, {"kid": -i}], "end": i} for i in range(4)]
    text = json.dumps(records).replace('{"kid": -1}', '{"kid" -1}')
    (part,) = parse(text).parts
    assert part.value == [records[0], {"name": "r1", "kids": [{"kid": 1}], "end": 1}, *records[2:]]
    assert [text[start:end] for start, end, _ in part.unread] == ['{"kid" -1}']


def test_flaws_all_over_a_list() -> None:
    texts = [json.dumps(record(i)) if i % 10 else f'{{"id": {i}, "text" {i}}}' for i in range(2_000)]
    text = f"[{', '.join(texts)}]"
    (part,) = (part for part in parse(text).parts if part.syntax == "json")
    assert part.value == [record(i) for i in range(2_000) if i % 10]
    assert len(part.unread) == 200


class Scans:
    """Stands for `re` in the reader, and counts the characters that its searches go over."""

    escape = staticmethod(re.escape)

    def __init__(self) -> None:
        self.characters = 0

    def compile(self, pattern: str) -> SimpleNamespace:
        compiled = re.compile(pattern)

        def search(text: str, start: int, end: int) -> re.Match[str] | None:
            return next(finditer(text, start, end), None)

        def finditer(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
            end = min(end, len(text))
            for match in compiled.finditer(text, start, end):
                self.characters += match.end() - start
                start = match.end()
                yield match
            self.characters += max(0, end - start)

        return SimpleNamespace(search=search, finditer=finditer)


@pytest.mark.parametrize(
    "layout",
    [
        ("[", ", ", "]"),
        ("[", ",", "]"),
        ("[", ",\n", "\n]"),
        ("[\n", ",\n", "\n]"),
        ("[\n", ", ", "]"),
        ("[ ", "\n, ", "]"),
    ],
)
@pytest.mark.parametrize("every", [2, 20])
def test_the_work_for_flaws_is_in_proportion_to_the_text(
    layout: tuple[str, str, str], every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands between the records: no flaw has all of the text behind it searched."""
    before, comma, after = layout
    scanned, work = [], []
    for count in (1_000, 4_000):
        texts = [json.dumps({"id": i, "name": f"r{i}"}) for i in range(count)]
        texts[1::every] = [f'{{"id": {i}, "name": "r"c-{i}"}}' for i in range(1, count, every)]
        text = before + comma.join(texts) + after
        scans = Scans()
        monkeypatch.setattr(reader, "re", scans)
        found = reader.read_flawed(text, 0, len(text), len(text), lambda *_: None, ellipses=False)
        assert found is not None
        assert [one["id"] for one in found.value] == [i for i in range(count) if i % every != 1 % every]
        assert len(found.unread) == count // every
        scanned.append(scans.characters)
        work.append(found.work)
    assert scanned[1] < 6 * scanned[0]
    assert work[1] < 6 * work[0]


@pytest.mark.parametrize("blanks", ["", "\n", "\r\n", "\n  "])
@pytest.mark.parametrize(("flaw", "unread"), [("oops", []), ('"y" "b"', ['{"id": 1, "a": "y" "b"}'])])
def test_rows_without_indentation_stay_in_what_wraps_them(blanks: str, flaw: str, unread: list[str]) -> None:
    """H7: one record a line, as on one line; the wrapper is one record, and its list a table of its own."""
    rows = [f'{{"id": {i}, "a": {flaw if i == 1 else json.dumps("x")}}}' for i in range(4)]
    text = f'{{"kind": "List", "items": [{blanks}{f",{blanks}".join(rows)}{blanks}], "after": {{"x": 1}}}}'
    document = parse(text)
    (part,) = (part for part in document.parts if part.syntax == "json")
    items = [{"id": i, "a": flaw if i == 1 else "x"} for i in range(4) if i != 1 or not unread]
    assert part.value == {"kind": "List", "items": items, "after": {"x": 1}}
    assert [text[start:end] for start, end, _ in part.unread] == unread
    with hyve.Datastore.from_document(document) as store:
        tables = {table.name: table.rows for table in store.catalog.tables}
    assert tables["items"] == len(items)
    assert tables["records"] == 1


@pytest.mark.parametrize("damaged", [*({i} for i in range(6)), {0, 4}, {2, 5}])
def test_one_of_two_lists_without_indentation_is_flawed(damaged: set[int]) -> None:
    rows = [f'{{"id": {i}, "a": {chr(34)}y{chr(34)}{" 5" if i in damaged else ""}}}' for i in range(6)]
    lists = [",\n".join(rows[:3]), ",\n".join(rows[3:])]
    text = f'{{"kind": "List", "items": [\n{lists[0]}\n], "others": [\n{lists[1]}\n], "total": 6}}\n'
    (part,) = (part for part in parse(text).parts if part.syntax == "json")
    whole = [{"id": i, "a": "y"} for i in range(6)]
    items, others = ([one for one in half if one["id"] not in damaged] for half in (whole[:3], whole[3:]))
    assert part.value == {"kind": "List", "items": items, "others": others, "total": 6}
    assert [text[start:end] for start, end, _ in part.unread] == [rows[i] for i in sorted(damaged)]


@pytest.mark.parametrize("tags", [[], ["p", "q"], [{"id": 7}]])
@pytest.mark.parametrize(
    ("damage", "instead", "left"),
    [
        ('"x": "v2"', '"x": oops', [0, 1, 2]),
        ('"x": "v2"', '"x": "v2" "w"', [0, 1]),
        ('"x": "v2"}', '"x": "v2"', [0, 1]),
        ('"x": "v2"', '"x": "v2', [0, 1, 2]),
        ('"x": "v2"', '"x": v2"', [0, 1, 2]),
        ('"x": "v2"', '"x": "v2 {', [0, 1]),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_takes_no_records_of_the_next_one(
    tags: list[Any], indent: int | None, damage: str, instead: str, left: list[int]
) -> None:
    """H8: the last record of a list is flawed, and a list of the same keys follows."""
    lists = {
        name: [{"id": first + i, "tags": tags, "x": f"{letter}{i}"} for i in range(3)]
        for name, first, letter in (("a", 0, "v"), ("b", 10, "w"))
    }
    text = json.dumps(lists, indent=indent)
    damage, instead = (one if indent is None else one.replace("}", "\n  }") for one in (damage, instead))
    assert damage in text
    (part,) = parse(text.replace(damage, instead)).parts
    assert list(part.value) == ["a", "b"]
    assert [one["id"] for one in part.value["a"]] == left
    assert part.value["b"] == lists["b"]


def test_a_list_that_is_read_in_vain_is_charged() -> None:
    text = '[{"a": 1}, {"a" 2' + ", {'b" * 40
    flawed = reader.read_flawed(text, 0, len(text), len(text), lambda *_: None, ellipses=False)
    assert flawed.value is None
    assert flawed.work > len(text)
    assert recovery.recover(recovery.alike(), text, 0, len(text), len(text) + 1, 0, set()).work > flawed.work


def test_what_is_read_in_vain_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are looked for behind a bracket only as long as the allowance lasts: twice the text, twice the work."""

    def looked_at(size: int) -> int:
        looked = []
        read_ahead = strictjson.read_ahead

        def noted(text: str, **more: Any) -> Any:
            looked.append(len(text))
            return read_ahead(text, **more)

        with monkeypatch.context() as patched:
            patched.setattr(strictjson, "read_ahead", noted)
            parse('[{"a":1},' * (size // 9))
        return sum(looked)

    assert 0 < looked_at(1_200_000) <= 2.6 * looked_at(600_000)


def test_a_cut_record_takes_none_of_the_records_on_the_lines_behind_it() -> None:
    text = '{"kind": "List", "items": [\n{"id": 0}\n{"id": 1}\n{"id": 2}\n]\n'
    assert values(text)[-1] == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_a_record_that_a_repair_reads_is_no_flaw() -> None:
    texts = [json.dumps({"id": i, "t": "x"}) for i in range(3_000)]
    texts[7] = "{'id': 7, t: 'say \"hi\"',}"
    texts[9] = '{"id": 9, "t" 5}'
    text = f"[{','.join(texts)}]"
    (part,) = parse(text).parts
    assert part.value[7] == {"id": 7, "t": 'say "hi"'}
    assert [item["id"] for item in part.value] == [i for i in range(3_000) if i != 9]
    assert part.flags == ("repaired", "unparsed")


def test_a_flawed_list_that_nothing_ends_keeps_what_stands_before() -> None:
    records = [record(i) for i in range(5)]
    text = json.dumps(records)[:-1] + ', {"id" 5\nand other text\n'
    document = parse(text)
    assert document.parts[0].value == records
    assert "unparsed" in document.flags
    assert kept_as_text(document).endswith('{"id" 5\nand other text')


def test_a_flawed_list_behind_a_head_does_not_go_over_the_next_line() -> None:
    line = 'INFO got [{"a": 1}, {"a": 2} oops\n'
    text = line + 'INFO got [{"a": 3}, {"a": 4}]\n'
    assert [value for value in values(text) if isinstance(value, list)][-1] == [{"a": 3}, {"a": 4}]


@pytest.mark.parametrize("line", ['{"oops": 1}', '{"oops": 1, "id": [{"x": 1}]}', '[{"oops": 1}]'])
@pytest.mark.parametrize("place", [2, 20])
@pytest.mark.parametrize("long", [False, True])
def test_records_that_a_log_line_with_a_document_parts_are_one_table(line: str, place: int, long: bool) -> None:
    """H9: the line ends the list; what the records behind it are is told by their keys, not by the line's document."""
    texts = [spelled("lines", number) for number in range(30)]
    head, rest = ",\n".join(texts[:place]), ",\n".join(texts[place:])
    text = f"[{head},\nERROR {line} something, broke here\n{rest}]"
    with in_runs(1 << 12) if long else nullcontext(), hyve.Datastore.from_text(text) as store:
        assert fetched(store, "SELECT id FROM records WHERE text LIKE 'word%' ORDER BY id") == [(i,) for i in range(30)]
        roots = sorted(t.rows for t in store.catalog.tables if t.name in ("records", "records_2"))
        assert roots == [1, 30]


def test_objects_that_no_list_is_like_are_one_table() -> None:
    text = '[{"a": 1, "b": 2}]\n{"x": 1}\n{"a": 3, "b": 4}\n{}\n{"y": 1}\n{"b": 1, "a": 2, "a": 3}\n[5]\n'
    with hyve.Datastore.from_text(text) as store:
        assert fetched(store, "SELECT b FROM records ORDER BY b") == [(1,), (2,), (4,)]
        assert fetched(store, "SELECT x, y FROM records_2") == [(1, None), (None, None), (None, 1)]
        assert fetched(store, "SELECT value FROM records_3") == [(5,)]


def test_a_repair_drops_no_signs() -> None:
    """H8: json_repair takes `@?! foo` for `foo`."""
    text = '[{"a": 1, "b": "x"}, {"a": @?! foo, "b": "y"}, {"a": 3, "b": "z"}]'
    (part,) = parse(text).parts
    assert part.value == [{"a": 1, "b": "x"}, {"a": 3, "b": "z"}]
    assert [text[start:end] for start, end, _ in part.unread] == ['{"a": @?! foo, "b": "y"}']


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.text("x,}{[]\"\\'", max_size=8), min_size=1), min_size=4, max_size=9
    ),
    st.sampled_from([None, 2]),
    st.sampled_from(["del", *',:{}[]"x']),
    st.floats(0, 1),
)
@settings(max_examples=150, deadline=None)
def test_any_damage_loses_nothing(records: list[dict[str, str]], indent: int | None, damage: str, at: float) -> None:
    """Invariant 1: what no part holds is text, wherever the damage is."""
    text = json.dumps([{"id": i, **one} for i, one in enumerate(records)], indent=indent)
    place = int(at * (len(text) - 1))
    text = text[:place] + ("" if damage == "del" else damage) + text[place + (damage == "del") :]
    document = parse(text)
    assert not lost(document)
    with hyve.Datastore.from_document(document) as store:
        for i, part in enumerate(document.parts):
            assert repr(store.reconstruct(i)) == repr(part.value)


@pytest.mark.parametrize("depth", [strictjson.MAX_DEPTH - 1, strictjson.MAX_DEPTH + 50])
def test_a_flawed_list_within_more_levels_than_data_has(depth: int) -> None:
    """H8: what stands around is nobody's data and stays text; the list is read by itself."""
    document = parse("[" * depth + '[{"b": 1}, {"b": 2}, {"b" 3}, {"b": 4}]' + "]" * depth)
    assert [part.value for part in document.parts] == [[{"b": 1}, {"b": 2}, {"b": 4}]]
    assert document.flags == ("unparsed",)
