"""Documents that look alike are read as each would be by itself (H7, H8)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hyve
from hyve import recovery
from hyve.alike import Alike
from hyve.strictjson import Pairs

WORDS = """brown fox the said Error camelCase abc_def x0 zz
true trueish t None nonesuch n null nan inf info nil undefined e ee e5 E1 _ _x br b u8 f if lambda
Ellipsis NaT return returned function set
0 3 12 35 200 007 1_000 0x1f 1e5 1.5 -3 +4 2j 5. .5 1234567890123456 9876500 3ms 2024-01-01 zqjaaq .if"""
SHAPES = (
    '{"@": @, @}',
    "{@: @, @: '@ @'}",
    '{"@": "@ "@" @", "@": @}',
    '{"@": @, "@": [@, @, @],}',
    "{'@': '@', @: @}",
    '{"@": "@, "@": "@  } @',
    '{.@": @, "@": [@, @],}',
    '{"@": {"@": @, @: @}, "@": @ @}',
    '{"@" @: @}',
    '{"@": "@" @}',
)


def exact(value: object) -> object:
    """A value with its types, which tells 1 from 1.0 and an object from its pairs."""
    if isinstance(value, Pairs):
        return Pairs, [(exact(key), exact(item)) for key, item in value]
    if isinstance(value, dict):
        return [(exact(key), exact(item)) for key, item in value.items()]
    return list(map(exact, value)) if isinstance(value, list) else (type(value), repr(value))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(SHAPES) | st.text("@@@@{}[]:,\"' .-\n", min_size=2, max_size=24).map("{{{}}}".format),
    st.lists(st.lists(st.sampled_from(WORDS.split()), min_size=9, max_size=9), min_size=3, max_size=5),
)
@example('{"@": @, @}', [["a1", "b1", "c1"] * 3, ["a2", "b2", "c2"] * 3, ["a3", "a3", "c3"] * 3])
def test_each_reads_as_it_does_by_itself(shape: str, lines: list[list[str]]) -> None:
    """Hostile words: known ones, parts of numbers, such as a reader leaves an underscore or a point out of."""
    alike = recovery.alike()
    sources = ["".join(piece + word for piece, word in zip(shape.split("@"), line, strict=False)) for line in lines]
    sources = [source + shape.rpartition("@")[2] for source in sources]
    for source in sources * 3:
        value, said = alike.read(source)
        alone, said_alone = alike.read_one(source)
        assert (exact(value), said) == (exact(alone), said_alone)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('the {"quick": %s, %s} [jumps', lambda one, two: {"quick": f"{one}, {two}"}),
        ("the {%s: %s, 'x': [1,],} jumps", lambda one, two: {one: two, "x": [1]}),
        ('{"%s": "the "%s" said", "n": 35}', lambda one, two: {one: f'the "{two}" said', "n": 35}),
    ],
)
def test_lines_of_a_log_that_differ_in_words(line: str, value: Callable[[str, str], object]) -> None:
    """H7: each line has its own words."""
    source = random.Random(7)
    words = [
        ("".join(source.choices("ghkmprs", k=3)), "".join(source.choices("ghkmprs", k=source.randint(4, 9))))
        for _ in range(30)
    ]
    document = hyve.parse("\n".join(line % pair for pair in words))
    assert [part.value for part in document.parts if part.syntax == "json"] == [value(*pair) for pair in words]
    assert all("repaired" in part.flags for part in document.parts if part.syntax == "json")


def test_one_reading_serves_all_that_look_alike() -> None:
    read: list[str] = []

    def reader(source: str) -> tuple[object, None]:
        read.append(source)
        return {"got": source.split()}, None

    alike = Alike(reader)
    found = [
        alike.read(f"{{lost {word} of {number} {word}}}")[0] for word, number in [("abc", 10), ("de", 777), ("xyz", 35)]
    ]
    assert found[1:] == [{"got": ["{lost", "de", "of", "777", "de}"]}, {"got": ["{lost", "xyz", "of", "35", "xyz}"]}]
    assert len(read) == 2, "the first one by itself, and one for all others"
