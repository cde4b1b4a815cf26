"""What a caller may get wrong is an error that says what, where and what to do, never a traceback from inside."""

from __future__ import annotations

from typing import Any

import pytest

import hyve


@pytest.mark.parametrize("source", [5, 10**12, None, {"a": 1}, [91, 93], 3.5, object()])
def test_what_is_no_text_is_refused(source: Any) -> None:
    """A number was bytes of that length once."""
    kind = type(source).__name__
    with pytest.raises(hyve.InputError, match=rf"the input is an? {kind}: give text or bytes"):
        hyve.parse(source)
    with pytest.raises(hyve.InputError, match=rf"the input 'n' is an? {kind}: give"):
        hyve.parse(source, "n")
    with pytest.raises(hyve.InputError, match=rf"an? {kind}: give text or bytes"):
        hyve.view(source)
    payloads = (hyve.Payload("good", "a"), hyve.Payload("bad", source))
    with pytest.raises(hyve.InputError, match=rf"the input 'bad' is an? {kind}"):
        hyve.prepare(hyve.Request("why?", payloads))


def test_an_input_has_a_name_that_is_a_text() -> None:
    with pytest.raises(hyve.InputError, match="an input's name is a text, not an int"):
        hyve.parse("{}", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [b"[1]", bytearray(b"[1]"), memoryview(b"[1]"), "[1]"])
def test_text_and_bytes_of_any_kind_are_read(source: Any) -> None:
    assert [part.value for part in hyve.parse(source).parts] == [[1]]


def test_zero_bytes_are_counted_where_they_are_the_reason() -> None:
    with pytest.raises(hyve.InputError, match="binary \\(40 control bytes in its first 40\\)"):
        hyve.parse(bytes(40))


@pytest.mark.parametrize("number", ["a", 0.5, None, True, (0,)])
def test_a_part_is_asked_for_by_its_number(number: Any) -> None:
    with (
        hyve.Datastore.from_text('{"a": 1}') as store,
        pytest.raises(hyve.InputError, match=r"a part is told by its number, from 0, not by an? "),
    ):
        store.reconstruct(number)


@pytest.mark.parametrize("document", ["x", None, {"a": 1}, 5])
def test_a_store_is_made_of_documents(document: Any) -> None:
    with pytest.raises(hyve.InputError, match=r"of what hyve.parse gives, not of an? .*: parse it first"):
        hyve.Datastore.from_document(document)


@pytest.mark.parametrize("option", ["ablation", "redact"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("toon", r"not the text 'toon': write \('toon',\)"),
        (None, "not a NoneType"),
        (5, "not an int"),
        ([5], "and an int is none"),
    ],
)
def test_an_option_that_lists_names(option: str, given: Any, said: str) -> None:
    with pytest.raises(hyve.InputError, match=rf"`{option}` takes a list of names, {said}"):
        hyve.view('{"a": 1}', **{option: given})


@pytest.mark.parametrize("budget", ["1000", 1e3, None, True])
def test_a_budget_is_a_whole_number(budget: Any) -> None:
    with pytest.raises(hyve.InputError, match="a budget is a whole number of tokens, such as 4000, not "):
        hyve.view('{"a": 1}', budget=budget)


@pytest.mark.parametrize("question", [5, None, b"why?"])
def test_a_question_is_a_text(question: Any) -> None:
    with pytest.raises(hyve.InputError, match=r"a question is a text, not an? "):
        hyve.view('{"a": 1}', question)
