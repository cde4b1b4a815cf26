"""What the tests of reading documents share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from hyve.document import parse
from hyve.store import Datastore


def values(text: str | bytes) -> list[object]:
    return [part.value for part in parse(text).parts]


def fetched(store: Datastore, statement: str) -> list[tuple[Any, ...]]:
    """What DuckDB itself says of a store with all of its tables loaded: no guard, no limits, values as they are."""
    return store._open(*(table.name for table in store.catalog.tables)).execute(statement).fetchall()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


def kept_text(text: str) -> str:
    """Everything of a text that a reader can still get at."""
    document = parse(text)
    lines = [row["text"] for part in document.parts if part.syntax == "lines" for row in part.value]
    values = [json.dumps(part.value) for part in document.parts if part.syntax != "lines"]
    return "\n".join([document.prose, *lines, *values])
