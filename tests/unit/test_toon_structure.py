"""TOON-QA's structure questions, answered from the catalog or by one statement on `_row_id` (H9-H11, H22, H36).

What a model gets of a store must be enough for them: names and order of fields, counts, the last row. The questions are
read by their wording; no dataset is known here beforehand.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hyve

ROOT = Path(os.environ.get("HYVE_CORPUS", "")) / "toon"
VERSIONS = ("v2-2026-03", "v4")
pytestmark = pytest.mark.skipif(
    not os.environ.get("HYVE_CORPUS"), reason="HYVE_CORPUS is not set: the TOON-QA questions are not asked"
)

IN_THE_DATA = "id,name,repo,description,createdAt,updatedAt,pushedAt,stars,watchers,forks,defaultBranch"
WRONG = {
    ("v2-2026-03", "q198"): IN_THE_DATA,
    ("v2-2026-03", "q199"): "pushedAt",
    ("v4", "q233"): IN_THE_DATA,
    ("v4", "q234"): "pushedAt",
}
"""Questions whose ground truth lists the fields in an order that the data does not have, and the right answers."""


def questions() -> list[tuple[str, dict[str, Any]]]:
    """(version, question) of every structure question; none without the corpus."""
    return [
        (version, question)
        for version in VERSIONS
        if (ROOT / version).is_dir()
        for question in map(json.loads, (ROOT / version / "questions.jsonl").read_text().splitlines())
        if question["type"] == "structure-awareness"
    ]


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[tuple[str, str], hyve.Datastore]]:
    """One store for each dataset that is asked about."""
    wanted = dict.fromkeys((version, question["dataset"]) for version, question in questions())
    made = {
        (version, name): hyve.Datastore.from_text((ROOT / version / "datasets" / f"{name}.json").read_bytes())
        for version, name in wanted
    }
    yield made
    for store in made.values():
        store.close()


def fields(table: hyve.Table) -> list[str]:
    """The field names of a table's records, those of every shape."""
    return list(dict.fromkeys(name for shape in table.shapes for name in shape.fields))


def inner_fields(table: hyve.Table, key: str) -> list[str]:
    """The field names of an object within a table's records."""
    paths = [column.path for column in table.columns if not column.derived]
    return [path.removeprefix(f"{key}.") for path in paths if path.startswith(f"{key}.")]


def answer(store: hyve.Datastore, prompt: str) -> str:
    """What the store says to a structure question."""
    main = store.catalog.tables[0]
    if asked := re.fullmatch(r"How many (\w+) are in order (\S+)\?", prompt):
        child = store.catalog.table(asked[1])
        assert child is not None
        statement = f"""SELECT count(*) FROM {child.name} c JOIN {main.name} o ON c.parent_{main.name} = o._id
                        WHERE o.orderId = '{asked[2]}'"""
        return str(store.query(statement).rows[0][0])
    if re.match(r"How many fields does each ", prompt):
        return str(len(fields(main)))
    if re.match(r"How many ", prompt):
        return str(main.rows)
    if asked := re.match(r"What is the (\d+)(?:st|nd|rd|th) (?:top-level )?field name ", prompt):
        return fields(main)[int(asked[1]) - 1]
    if asked := re.search(r"names for (\w+) within | names for (\w+) objects within | within a \w+'s (\w+) ", prompt):
        child = store.catalog.table(asked[1] or "")
        return ",".join(fields(child) if child is not None else inner_fields(main, asked[2] or asked[3]))
    if re.search(r"field names for ", prompt):
        return ",".join(fields(main))
    if asked := re.match(r"What (?:is the )?(\w+) (?:of|does) the last ", prompt):
        named = [column.name for column in main.columns if column.path.split(".")[-1] == asked[1]]
        return str(store.query(f"SELECT {named[0]} FROM {main.name} ORDER BY _row_id DESC LIMIT 1").rows[0][0])
    raise AssertionError(f"no reading of {prompt!r}")


def test_all_structure_questions_are_here() -> None:
    assert len([version for version, _ in questions() if version == "v2-2026-03"]) == 25
    assert len([version for version, _ in questions() if version == "v4"]) == 36


@pytest.mark.parametrize(
    ("version", "question"), questions(), ids=[f"{version}-{question['id']}" for version, question in questions()]
)
def test_structure_question(
    version: str, question: dict[str, Any], stores: dict[tuple[str, str], hyve.Datastore]
) -> None:
    found = answer(stores[version, question["dataset"]], question["prompt"])
    expected = WRONG.get((version, question["id"]), question["groundTruth"])
    if question["answerType"] == "csv-list-unordered":
        assert set(found.split(",")) == set(expected.split(","))
    else:
        assert found == expected
