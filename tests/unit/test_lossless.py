"""Any payload in, the same payload back: what holds from outside, whichever way a text takes (H5-H8, H21).

Python's own json is the reference; values, spans and lines together hold the whole of a text, and nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyve import Datastore, Document, HyveError, Pairs, parse
from tests.fuzz.target import lost, same
from tests.unit.documents import fetched


def written(value: Any, indent: int | None = None, plain: bool = False) -> str:
    """`value` as JSON, `Pairs` as the objects that they are. `plain`: no escapes for what is no ASCII."""

    def below(item: Any, level: int) -> str:
        gap = "" if indent is None else "\n" + " " * indent * level
        between = ", " if indent is None else ","
        if isinstance(item, Pairs | dict):
            pairs = item if isinstance(item, Pairs) else item.items()
            inner = [f"{json.dumps(key, ensure_ascii=not plain)}: {below(of, level + 1)}" for key, of in pairs]
            return _bracketed("{}", inner, between, gap, indent)
        if isinstance(item, list):
            return _bracketed("[]", [below(of, level + 1) for of in item], between, gap, indent)
        return json.dumps(item, ensure_ascii=not plain)

    return below(value, 0)


def _bracketed(brackets: str, inner: list[str], between: str, gap: str, indent: int | None) -> str:
    step = "" if indent is None else gap.ljust(len(gap) + indent) if gap else ""
    if not inner:
        return brackets
    return brackets[0] + step + f"{between}{step}".join(inner) + gap + brackets[1]


def reference(text: str) -> Any:
    """What Python's json reads, repeated keys kept."""

    def hook(pairs: list[tuple[str, Any]]) -> Any:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else Pairs(pairs)

    return json.loads(text, object_pairs_hook=hook)


def check_store(document: Document) -> None:
    """The store takes whatever was parsed, shows it in tables of the size that it says, and gives it back."""
    with Datastore.from_document(document) as store:
        for i, part in enumerate(document.parts):
            back = store.reconstruct(i)
            assert same(back, part.value), (back, part.value)
        for table in store.catalog.tables:
            assert fetched(store, f'SELECT count(*) FROM "{table.name}"') == [(table.rows,)]
        assert bool(store.catalog.tables) == bool(document.parts or document.lines)


any_text = st.text(st.characters(exclude_categories=()), max_size=8)  # surrogates and control characters as well
pieces = st.lists(
    st.sampled_from(
        ["\ud83d", "\ude00", "\x00", '"', "\\", "\\n", "{", '{"a": 1}', "[1, 2]", "k=v", "1", "é", "\u2028"]
    ),
    max_size=4,
).map("".join)
texts = any_text | pieces | st.sampled_from(["", " ", "null", "true", "1.0", "01", "2025-03-04T05:06:07Z", "NaN"])
integers = st.integers() | st.integers(-(1 << 130), 1 << 130) | st.sampled_from([1 << 63, -(1 << 63) - 1, 10**300])
scalars = st.none() | st.booleans() | integers | st.floats() | texts
keys = st.sampled_from(["a", "b", "id", "A", "a b", "a.b", "_id", "_row_id", "key", "value", "rowid", ""]) | texts


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects, some of which repeat keys."""
    pairs = st.lists(st.tuples(keys, inner), max_size=5)
    return pairs.map(lambda found: dict(found) if len(dict(found)) == len(found) else Pairs(found))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        objects(inner),
        st.lists(inner, max_size=4),
        st.lists(st.fixed_dictionaries({"a": scalars}, optional={"b": inner, "c": scalars}), min_size=1, max_size=5),
        # A map whose keys are data; lists of the same length side by side; a list of objects without a common key.
        st.dictionaries(texts, st.fixed_dictionaries({"v": scalars}, optional={"w": inner}), min_size=3, max_size=6),
        st.integers(3, 6).flatmap(
            lambda size: st.fixed_dictionaries(
                {
                    "x": st.lists(integers, min_size=size, max_size=size),
                    "y": st.lists(scalars, min_size=size, max_size=size),
                    "z": inner,
                }
            )
        ),
        st.lists(st.dictionaries(keys, inner, max_size=2), min_size=2, max_size=4),
    )


values = containers(st.recursive(scalars, containers, max_leaves=12))


def wide(value: Any) -> list[dict[str, Any]]:
    return [{f"k{row * i % 150}": value for i in range(120)} for row in (1, 7)]


def nested(value: Any) -> Any:
    for level in range(150):
        value = {"a": value, "b": level} if level % 3 else [level, value]
    return value


@given(values | values.map(nested) | scalars.map(wide), st.sampled_from([None, 0, 2]), st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_document_is_what_pythons_json_reads_and_comes_back(value: Any, indent: int | None, plain: bool) -> None:
    text = written(value, indent, plain)
    document = parse(text)
    (part,) = document.parts
    assert same(part.value, reference(text))
    assert (part.span, part.syntax, document.lines) == ((0, len(text)), "json", ())
    check_store(document)


@given(values, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]))
@settings(max_examples=25, deadline=None)
def test_bytes_are_read_as_their_text_is(value: Any, encoding: str) -> None:
    text = written([{"name": "in ASCII for the most part", "value": value}])
    (part,) = parse(text.encode(encoding)).parts
    assert same(part.value, reference(text))


@given(st.lists(values.filter(bool), min_size=2, max_size=4), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]))
@settings(max_examples=20, deadline=None)
def test_every_line_of_json_comes_back(records: list[Any], newline: str) -> None:
    lines = [written(record) for record in records]
    document = parse(newline.join(lines) + newline)
    assert same([part.value for part in document.parts], list(map(reference, lines)))
    assert [document.text[slice(*part.span)] for part in document.parts] == lines
    assert not document.lines
    check_store(document)


@given(st.lists(values.filter(bool), min_size=2, max_size=4), st.sampled_from(["", " ", "\n"]), st.sampled_from([0, 2]))
@settings(max_examples=20, deadline=None)
def test_every_concatenated_document_comes_back(documents: list[Any], between: str, indent: int) -> None:
    sources = [written([document], indent) for document in documents]
    document = parse(between.join(sources))
    assert lost(document) == ""
    # A list of nothing but scalars is data only where it stands alone on its lines.
    wanted = [value for value in map(reference, sources) if isinstance(value[0], dict | list | Pairs)]
    found = [part.value for part in document.parts if isinstance(part.value[0], dict | list | Pairs)]
    assert same(found, wanted)
    check_store(document)


words = st.sampled_from(
    [
        "harbour",
        "ferry",
        "late",
        "7",
        "12.5",
        "k=v",
        "a,b",
        "(x)",
        "[3]",
        "{y}",
        "{}",
        "'it",
        "10:00",
        '"q"',
        "|",
        ";",
        "#",
    ]
)
sentences = st.lists(words, min_size=1, max_size=8).map(" ".join)
small = st.recursive(
    st.none() | st.integers(0, 99) | st.sampled_from(["ferry", "a, b", 'say "x"', "it's", "{", "x\ny"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c d"]), inner, max_size=3),
    max_leaves=6,
)


def table(rows: list[list[str]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([["id", "pier", "note"], *rows])
    return file.getvalue()


blocks = st.one_of(
    sentences,
    small.map(written),
    small.map(lambda value: written(value, 2)),
    small.map(repr),
    small.map(lambda value: json.dumps(written(value))),
    small.map(lambda value: f"```json\n{written(value)}\n```"),
    st.tuples(sentences, small, sentences).map(lambda found: f"{found[0]} {written(found[1])} {found[2]}"),
    st.tuples(sentences, small).map(lambda found: f"2025-03-04 05:06:07,008 INFO [m-1] {found[0]}: {found[1]!r}"),
    st.tuples(sentences, small).map(lambda found: f"\x1b[32mINFO\x1b[0m {found[0]} \x1b[1m{written(found[1])}\x1b[0m"),
    st.lists(st.lists(sentences, min_size=3, max_size=3), min_size=2, max_size=4).map(table),
    st.sampled_from(["NAME    READY   NOTE\nweb-1   1/1     x\nweb-2   0/1     y", "| a | b |\n|---|---|\n| 1 | 2 |"]),
)


@given(st.lists(blocks, min_size=1, max_size=6), st.sampled_from(["\n", "\n", "\n\n", "\r\n", " "]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_whatever_stands_side_by_side_is_in_a_part_or_a_line(found: list[str], between: str, long: bool) -> None:
    text = between.join(found) + (between + "and so on\n" * 25 if long else "")
    document = parse(text)
    assert lost(document) == ""
    for part in document.parts:
        source = text[slice(*part.span)]
        if part.syntax == "json" and not part.flags:
            assert same(part.value, reference(source))
    check_store(document)


# What may be cut or damaged: no escapes and no words twice, so that each word of a value can be found in the source.
_CODES = st.integers(0, 10**6).map(lambda number: f"w{number:06d}")
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 10**6) | st.floats(-1e6, 1e6).map(lambda n: round(n, 3)) | _CODES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_CODES, inner, max_size=4),
    max_leaves=12,
)
records = st.lists(st.dictionaries(_CODES, _PLAIN, min_size=1, max_size=4), min_size=1, max_size=4)


def is_start(part: Any, whole: Any) -> bool:
    """Whether `part` is `whole` without its end: all items but the last are whole, and that is the start of one."""
    if isinstance(part, Pairs | dict) and isinstance(whole, Pairs | dict):
        mine = list(part if isinstance(part, Pairs) else part.items())
        theirs = list(whole if isinstance(whole, Pairs) else whole.items())
        if not same([key for key, _ in mine], [key for key, _ in theirs[: len(mine)]]):
            return False
        found = [(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=False)]
    elif isinstance(part, list) and isinstance(whole, list) and len(part) <= len(whole):
        found = list(zip(part, whole, strict=False))
    else:
        return same(part, whole)
    return all(same(a, b) for a, b in found[:-1]) and all(is_start(a, b) for a, b in found[-1:])


valued = st.lists(values.filter(bool).map(lambda value: {"v": value}), min_size=1, max_size=3)


@given(records | valued, st.sampled_from([None, 1]), st.data())
@settings(max_examples=80, deadline=None)
def test_a_cut_document_is_the_start_of_the_whole_one(
    whole: list[Any], indent: int | None, data: st.DataObject
) -> None:
    text = written(whole, indent)
    cut = text[: data.draw(st.integers(0, len(text) - 1))].rstrip()
    document = parse(cut)
    assert lost(document) == ""
    found = [part for part in document.parts if part.syntax != "lines"]
    items = list(_whole_items(text, len(cut)))
    assert len(found) == 1 or not items
    for part in found:
        assert "truncated" in part.flags
        assert same(part.value[: len(items)], items)
        assert is_start(part.value, reference(text))
        assert cut.endswith(part.partial_tail)
    check_store(document)


def _whole_items(text: str, end: int) -> Iterator[Any]:
    """The items of the list that is `text` that end before `end`."""
    whole = reference(text)
    at = 1
    for item in whole:
        at += len(text[at:]) - len(text[at:].lstrip(" \n,"))
        at = json.JSONDecoder().raw_decode(text, at)[1]
        if at > end:
            return
        yield item


_WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SAME = {"None": "null", "True": "true", "False": "false"}


def words_of(text: str) -> Counter[str]:
    """The words of a text, numbers by their value."""
    return Counter(repr(float(word)) if word[0].isdigit() else _SAME.get(word, word) for word in _WORD.findall(text))


def leaves(value: Any) -> Iterator[str]:
    """Keys and scalars as texts."""
    if isinstance(value, Pairs | dict):
        for key, inner in value if isinstance(value, Pairs) else value.items():
            yield str(key)
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield str(value)


@given(records, st.sampled_from([written, repr]), st.data())
@settings(max_examples=100, deadline=None)
def test_damage_makes_up_no_word_and_loses_none(value: list[Any], write: Any, data: st.DataObject) -> None:
    text = write(value)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.sampled_from([0, 0, 1, 1, 12]))
        text = text[:at] + data.draw(st.sampled_from([*"{}[]()\"':, \n", "", "\n\n", " stray "])) + text[at + gone :]
    document = parse(text)
    assert lost(document) == ""
    for part in document.parts:
        if part.syntax in ("json", "python") and "constructor_call" not in part.flags:
            read = text[slice(*part.span)]
            for start, end, _ in reversed(part.unread):
                read = f"{read[: start - part.span[0]]} {read[end - part.span[0] :]}"
            source = words_of(read)
            shown = words_of(" ".join([*leaves(part.value), part.partial_tail]))
            assert not shown - source, (part, text)
            # Of a cut document the names of what had no whole item yet are left out.
            assert not source - shown or "truncated" in part.flags, (part, text)
    check_store(document)


@pytest.mark.parametrize(
    "data", [b"", b" \n", "\ufeff".encode(), b"\xff\xfe", b"\x00", b"[" * 3000, b"\x1f\x8b\x08" * 99]
)
def test_what_holds_no_data_is_refused_or_empty(data: bytes) -> None:
    try:
        document = parse(data)
    except HyveError:
        return
    check_store(document)


@pytest.mark.parametrize("form", ["lines", "list", "long", "alone"])
def test_fields_of_a_record_that_repeats_a_key_stand_in_their_columns(form: str) -> None:
    """H21: what doesn't repeat is queried as in other records; what repeats keeps all of its values in the pairs."""
    lines = [
        '{"id": 1, "level": "error", "at": {"x": 5, "x": 6, "y": 7}, "tags": [{"k": 1}], "level": "warn"}',
        '{"id": 2, "level": "info", "at": {"x": 8, "y": 9}, "tags": [{"k": 2}]}',
    ]
    texts = {
        "lines": "\n".join(lines),
        "list": f"[{','.join(lines)}]",
        "long": "\n".join(lines * 5_000),
        "alone": lines[0],
    }
    document = parse(texts[form])
    with Datastore.from_document(document) as store:
        assert [store.reconstruct(i) for i in range(min(len(document.parts), 4))] == [
            part.value for part in document.parts[:4]
        ]
        ids = (1,) if form == "alone" else (1, 2)
        assert store.query("SELECT id FROM records LIMIT 2").rows == tuple((i,) for i in ids)
        if form != "alone":
            rows = store.query("SELECT level, at_x, at_y FROM records LIMIT 2").rows
            assert rows == ((None, None, 7), ("info", 8, 9))
        assert store.query("SELECT value FROM pairs WHERE key = 'level' LIMIT 2").rows == (("error",), ("warn",))
