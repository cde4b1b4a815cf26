"""Templates of log lines: what a line says beside its ids and numbers (H38)."""

from __future__ import annotations

import random
from itertools import zip_longest
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve.templates import kinds_of
from tests.unit.documents import fetched

WORDS = ("face", "bad", "cafe", "add", "feed", "decade", "dead", "beef", "a", "BAD")


def templates(lines: list[str], loaded: bool) -> dict[str, int]:
    """The templates of lines and how many lines have each; if they are not `loaded` at once, while they wait as well.
    All lines come back from their templates and variables."""
    with hyve.Datastore.from_text("\n".join(lines)) as store:
        found = [] if loaded else store.columns("lines", ["template"])["template"].to_pylist()
        rows = fetched(store, "SELECT text, template, variables FROM lines ORDER BY line")
    if not loaded:
        assert [template for _, template, _ in rows] == found
    assert [text for text, *_ in rows] == lines
    for text, template, variables in rows:
        assert "".join(a + b for a, b in zip_longest(template.split("#"), variables, fillvalue="")) == text
    found = [template for _, template, _ in rows]
    return {template: found.count(template) for template in dict.fromkeys(found)}


def heap(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [
        f"2024-01-02 03:00:{i % 60:02d} WARN [gc] heap used id={draw.getrandbits(32):x}-{draw.getrandbits(16):x}"
        for i in range(count)
    ]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("count", [100, 5_000, 20_000])
def test_ids_of_letters_alone_make_no_template_of_their_own(count: int, loaded: bool) -> None:
    """107 templates of 5,000 lines (`id=#-affb`, `id=#-ae`) are one; in runs and at once, before and after loading."""
    assert templates(heap(count), loaded) == {"# # WARN [gc] heap used id=#": count}


@pytest.mark.parametrize(
    ("line", "template"),
    [
        ("request {a:08x} from {b:04x} took {n} ms", "request # from # took # ms"),
        ("trace {a:x} span {b:x}", "trace # span #"),
        ("GET /orders/{b:x}/items", "GET /orders/#/items"),
        ("{b:04x} is up", "# is up"),
        ("commit {b:04X} is in", "commit # is in"),
        ("user {u} logged in", "user # logged in"),
        ("dump {c:02x} {d:02x} {e:02x} of {n}", "dump # # # of #"),
    ],
)
def test_ids_of_many_forms_make_one_template(line: str, template: str) -> None:
    draw = random.Random(5)
    lines = [
        line.format(
            n=i,
            u=UUID(int=draw.getrandbits(128)),
            **dict(zip("abcde", map(draw.getrandbits, (32, 16, 8, 8, 8)), strict=True)),
        )
        for i in range(3_000)
    ]
    assert templates(lines, True) == {template: 3_000}


def test_words_stay() -> None:
    """What stands where no ids stand is a word, however much it looks like one; beside ids too."""
    lines = heap(2_000)
    for word in WORDS:
        lines += [f"mode={word} {i} is {word}, {word} it-{word} /v{i}/{word} x={i}-{word}" for i in range(20)]
    lines += [f"{word} id={i:x}-{i + 77:x}" for i in range(300) for word in ("add", "feed")]
    lines += [f"mode={i}" for i in range(50)]
    found = templates(lines, True)
    assert {template for template in found if "mode" in template} == {
        *(f"mode={w} # is {w}, {w} it-{w} /#/{w} x=#-{w}" for w in WORDS),
        "mode=#",
    }
    assert {template: found[template] for template in ("add id=#", "feed id=#")} == {"add id=#": 300, "feed id=#": 300}
    assert found["# # WARN [gc] heap used id=#"] == 2_000
    assert len(found) == len(WORDS) + 4


def test_a_word_that_comes_again_and_again_among_ids_stays() -> None:
    draw = random.Random(2)
    lines = [f"state={'dead' if i % 5 == 0 else f'{draw.getrandbits(32):x}'} at {i}" for i in range(500)]
    assert templates(lines, True) == {"state=dead at #": 100, "state=# at #": 400}


@pytest.mark.parametrize("suffix", ["d", "b", "f"])
def test_units_are_no_ids(suffix: str) -> None:
    lines = [f"took {i}{suffix}" for i in range(100)] + ["took bad", "took decade", "took feed"]
    assert templates(lines, True) == {"took #": 100, "took bad": 1, "took decade": 1, "took feed": 1}


def test_colours_and_number_signs_are_variables() -> None:
    lines = [f"\x1b[31mERROR\x1b[0m issue #{i} is # of {i * 7}" for i in range(50)]
    assert templates(lines, True) == {"#ERROR# issue ## is # of #": 50}


@pytest.mark.parametrize("marks", ["\ue000", "".join(map(chr, range(0xE000, 0xE008)))])
def test_characters_that_nobody_uses(marks: str) -> None:
    lines = [f"{line} {marks}" for line in heap(3_000)]
    found = templates(lines, True)
    assert len(found) == 1 if len(marks) == 1 else len(found) > 1


@given(
    st.lists(
        st.from_regex(r"(?:id=|is )?(?:[0-9a-f]{1,4}[-.: #'\\]?){0,6}(?:é|\x1b\[3m)?", fullmatch=True), min_size=12
    )
)
@settings(max_examples=60, deadline=None)
def test_any_lines_come_back_from_what_they_say(texts: list[str]) -> None:
    """Invariant: whatever is taken for an id, template and variables give the line."""
    lines = [line for text in texts if (line := text.strip())]
    if lines:
        templates(["it says:", *(f"id=3f{i}c-4{i}d {line}" for i, line in enumerate(lines * 3))], True)


def test_kinds_of_texts_are_those_of_their_templates() -> None:
    assert len(set(kinds_of(heap(5_000)))) == 1
    assert len(set(kinds_of([f"mode={word} {i}" for word in WORDS for i in range(20)]))) == len(WORDS)
